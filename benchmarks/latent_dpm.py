"""How many clusters there are, where six made the rows: Dirichlet-process mixtures beside scikit-learn.

Run: python benchmarks/latent_dpm.py [--quick]

Rows of two numbers from six normal distributions of random shapes and sizes, some of which overlap; the best that any
clustering can do is the partition by the true densities. Clusters count from 1% of the rows on. scikit-learn runs
with ten components at most and its defaults, and tuned: a small concentration, weak means and steps until it converges.
Seconds are wall (processor).
"""

import sys
import warnings
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal, wishart
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture

import markovia as mk

CLUSTERS = 6
TUNED = {"weight_concentration_prior": 0.01, "mean_precision_prior": 0.01, "max_iter": 1_000}


def rows_of(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, the clusters that made them, and the clusters that the true densities say."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(CLUSTERS, 5.0))
    means = rng.uniform(-10.0, 10.0, (CLUSTERS, 2))
    shapes = wishart(4, np.eye(2) / 4.0, seed=rng).rvs(CLUSTERS)
    truth = rng.choice(CLUSTERS, n, p=shares)
    rows = means[truth] + np.einsum("kij,kj->ki", np.linalg.cholesky(shapes)[truth], rng.normal(size=(n, 2)))
    laws = [multivariate_normal(m, s) for m, s in zip(means, shapes, strict=True)]
    return (
        rows,
        truth,
        np.argmax([np.log(p) + law.logpdf(rows) for p, law in zip(shares, laws, strict=True)], 0),
    )


def line(labels: np.ndarray, truth: np.ndarray) -> str:
    """Return what a clustering is worth."""
    over = int((np.bincount(labels) > 0.01 * len(labels)).sum())
    return f"{over:3d} clusters over 1%, ARI {adjusted_rand_score(truth, labels):.4f}"


def main() -> None:
    """Compare on a few data sets."""
    quick = "--quick" in sys.argv
    n = 1_000 if quick else 5_000
    makers: dict[str, Any] = {
        "markovia": mk.DirichletProcessMixture,
        "markovia, variational": partial(mk.DirichletProcessMixture, method="variational"),
        "scikit-learn": partial(BayesianGaussianMixture, n_components=10),
        "scikit-learn, tuned": partial(BayesianGaussianMixture, n_components=10, **TUNED),
    }
    warnings.simplefilter("ignore")
    for seed in range(1 if quick else 4):
        rows, truth, best = rows_of(seed, n)
        print(f"data set {seed}: {n:,} x 2, {CLUSTERS} clusters; the true densities: {line(best, truth)}")
        for name, make in makers.items():
            if seed == 0:
                make(random_state=0).fit(rows[:1_000])  # compiles, loads
            wall, cpu = perf_counter(), process_time()
            labels = make(random_state=seed).fit_predict(rows)
            seconds = f"{perf_counter() - wall:6.2f} ({process_time() - cpu:6.2f}) s"
            print(f"  {name:22s}{line(labels, truth)}, {seconds}", flush=True)


if __name__ == "__main__":
    main()
