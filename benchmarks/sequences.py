"""How fast models of sequences are learned and asked, beside peers, in one run.

Run: python benchmarks/sequences.py [--quick] [--parts hmm kalman crf particles]

1. `hmm`: Baum-Welch, smoothing and Viterbi beside hmmlearn, dynamax and pomegranate (`sequences_hmm.py`);
2. `kalman`: filtering and smoothing beside statsmodels and dynamax (`sequences_kalman.py`);
3. `crf`: learning and decoding of chains beside CRFsuite (`sequences_crf.py`);
4. `particles`: a particle filter for stochastic volatility beside particles (`sequences_particles.py`).

Peers that are not installed are named and left out. MARKOVIA_THREADS=1 OMP_NUM_THREADS=1 is one core.
"""

import sys

from parts import run_parts

PARTS = ("hmm", "kalman", "crf", "particles")

if __name__ == "__main__":
    sys.exit(run_parts("sequences", PARTS, __doc__))
