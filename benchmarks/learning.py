"""How fast parameters are learned, beside peers, in one run.

Run: python benchmarks/learning.py [--quick] [--parts counts em fields crf]

1. `counts`: tables of alarm from 1,000,000 rows of a data frame, and from a Parquet file that is larger than the memory it
   may use (`learning_counts.py`);
2. `em`: tables of alarm from 5,000 rows with a tenth of the cells missing (`learning_em.py`);
3. `fields`: a 64 x 64 Ising model by pseudo-likelihood, and binary images by persistent contrastive divergence
   (`learning_fields.py`);
4. `crf`: a conditional random field on a tree of 50 nodes (`learning_crf.py`).

Data are sampled with fixed seeds from the networks in MARKOVIA_BENCHMARKS, else ../shared/benchmarks. Peers that are not
installed are named and left out.
"""

import sys

from parts import run_parts

PARTS = ("counts", "em", "fields", "crf")

if __name__ == "__main__":
    sys.exit(run_parts("learning", PARTS, __doc__))
