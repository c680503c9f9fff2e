"""How good and how fast structure learning is, beside peers, in one run.

Run: python benchmarks/structure.py [--quick] [--parts NAME ...]

1. `hill_climbing`: hill climbing beside pyAgrum's and pgmpy's;
2. `classes`: greedy equivalence search and searches over orders beside pyAgrum, pgmpy and causal-learn;
3. `exact`: the proven optimum;
4. `tests`: PC beside causal-learn's;
5. `functional`: LiNGAM beside causal-learn's, NOTEARS;
6. `undirected`: the graphical lasso beside scikit-learn's, neighbourhood selection, roll calls;
7. `fci`: FCI and RFCI beside causal-learn's, with an oracle and on data;
8. `files`: structure from rows on disk;
9. `scaling`: time against the number of rows and of variables.

Data are sampled with fixed seeds from the networks in MARKOVIA_BENCHMARKS, else ../shared/benchmarks, columns shuffled.
Peers that are not installed are named and left out.
"""

import sys

from parts import run_parts

PARTS = ("hill_climbing", "classes", "exact", "tests", "functional", "undirected", "fci", "files", "scaling")

if __name__ == "__main__":
    sys.exit(run_parts("structure", PARTS, __doc__))
