"""K-means: seconds to the end and a turn, and how good the optimum is, beside scikit-learn and faiss.

Run: python benchmarks/latent_kmeans.py [--quick]

Rows are drawn around centres with variance 1, so that the true centres have an inertia of about the number of columns a row.
All with their defaults, one start; then ten turns from the same rows. Processor seconds, wall seconds in brackets.
"""

import argparse
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.cluster import KMeans as Peer

import markovia as mk


def measured(name: str, fit: Callable[[], Any], per: Callable[[Any], tuple[float, int]], n: int) -> None:
    """Print the seconds of a fit, those a turn, and its inertia a row."""
    wall, cpu = perf_counter(), process_time()
    model = fit()
    wall, cpu = perf_counter() - wall, process_time() - cpu
    inertia, turns = per(model)
    print(
        f"{name:<36} {cpu:8.2f} s ({wall:8.2f})   {turns:4d} turns {cpu / turns:8.3f} s a turn   "
        f"inertia a row {inertia / n:.4f}"
    )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    n, d, k = (100_000, 16, 100) if parser.parse_args().quick else (1_000_000, 16, 100)
    for spread in (3.0, 1.0):
        compared(n, d, k, spread)


def compared(n: int, d: int, k: int, spread: float) -> None:
    """Measure all on rows whose centres are drawn with a spread."""
    rng = np.random.default_rng(0)
    centres = spread * rng.normal(size=(k, d))
    rows = centres[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    ten: dict[str, Any] = {"init": rows[:k].copy(), "n_init": 1, "max_iter": 10, "tol": 0.0}
    warnings.simplefilter("ignore")
    mk.KMeans(k, init=ten["init"]).fit(rows[:2_000])  # compiled
    print(f"{n:,} x {d}, k = {k}, centres spread by {spread:g}:")

    def ours(model: Any) -> tuple[float, int]:
        return model.inertia_, model.n_iter_

    measured("markovia, default", lambda: mk.KMeans(k, random_state=0).fit(rows), ours, n)
    measured("scikit-learn, default", lambda: Peer(k, random_state=0).fit(rows), ours, n)
    measured("markovia, ten turns", lambda: mk.KMeans(k, **ten).fit(rows), ours, n)
    measured("scikit-learn, ten turns", lambda: Peer(k, **ten).fit(rows), ours, n)
    try:
        import faiss
    except ImportError:
        print("faiss is not installed")
        return
    single = rows.astype(np.float32)

    def by_faiss() -> Any:
        found = faiss.Kmeans(d, k, niter=10, max_points_per_centroid=n)
        found.train(single)
        return found

    measured("faiss, ten turns", by_faiss, lambda found: (float(found.obj[-1]), 10), n)


if __name__ == "__main__":
    main()
