"""How fast hidden groups are found, and how good they are, beside peers, in one run.

Run: python benchmarks/latent.py [--quick] [--parts gmm kmeans bernoulli lda hdp dpm]

1. `gmm`: a step of EM for Gaussian mixtures beside scikit-learn (`latent_gmm.py`);
2. `kmeans`: k-means beside scikit-learn and faiss (`latent_kmeans.py`);
3. `bernoulli`: a step and the optimum of Bernoulli mixtures beside stepmix (`latent_bernoulli.py`);
4. `lda`: topics beside tomotopy, scikit-learn and gensim (`latent_lda.py`);
5. `hdp`: how many topics there are, beside tomotopy and gensim (`latent_hdp.py`);
6. `dpm`: how many clusters there are, beside scikit-learn (`latent_dpm.py`).

Peers that are not installed are named and left out. MARKOVIA_THREADS=1 OMP_NUM_THREADS=1 is one core.
"""

import sys

from parts import run_parts

PARTS = ("gmm", "kmeans", "bernoulli", "lda", "hdp", "dpm")

if __name__ == "__main__":
    sys.exit(run_parts("latent", PARTS, __doc__))
