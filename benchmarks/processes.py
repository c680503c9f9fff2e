"""How fast Gaussian processes, kernel machines and searches with few trials are, and how good, beside peers, in one run.

Run: python benchmarks/processes.py [--quick] [--parts exact classes scale node bayesopt machines]

1. `exact`: regression by all pairs of rows, a first fit, and the CO2 series, beside scikit-learn and tinygp;
2. `classes`: classification beside scikit-learn;
3. `scale`: Markov covariances, inducing points, a million rows, beside tinygp;
4. `node`: a function summed out inside NUTS, beside NumPyro by hand;
5. `bayesopt`: the search of a minimum beside optuna's Gaussian process;
6. `machines`: kernel ridge, support vectors, relevance vectors beside scikit-learn.

Peers that are not installed are named and left out. `processes_gpu.py` is for a machine with a GPU.
"""

import sys

from parts import run_parts

PARTS = ("exact", "classes", "scale", "node", "bayesopt", "machines")

if __name__ == "__main__":
    sys.exit(run_parts("processes", PARTS, __doc__))
