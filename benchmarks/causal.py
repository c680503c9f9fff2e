"""How fast causal questions are answered, beside peers, in one run.

Run: python benchmarks/causal.py [--quick] [--parts adjustment counterfactuals effects]

1. `adjustment`: adjustment sets and instruments in random graphs (`causal_adjustment.py`);
2. `counterfactuals`: counterfactuals on networks (`causal_counterfactuals.py`);
3. `effects`: doubly robust effects with gradient boosting beside EconML and DoubleML (`causal_effects.py`).

Peers that are not installed are left out. MARKOVIA_THREADS=1 OMP_NUM_THREADS=1 is one core.
"""

import sys

from parts import run_parts

PARTS = ("adjustment", "counterfactuals", "effects")

if __name__ == "__main__":
    sys.exit(run_parts("causal", PARTS, __doc__))
