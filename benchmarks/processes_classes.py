"""How long classification by Gaussian processes takes and how honest it is, side by side with scikit-learn in one run.

Run: python benchmarks/processes_classes.py [--quick] [--rows N] [--runs N]

Two classes drawn from known probabilities, two inputs, a scaled RBF with a length for each column, both libraries from
the same start. `scikit-learn` is its GaussianProcessClassifier (Laplace). Printed are processor and wall seconds (the
least of the runs, which take turns), the log evidence that each says, and for 2,000 new rows the log loss, the share of
wrong classes, and the root mean square distance of probabilities from the true ones; the last line is what the true
probabilities themselves lose.
"""

# ruff: noqa: N806 (letters of the literature)

import argparse
import sys
import warnings
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier, kernels
from threadpoolctl import threadpool_limits

import markovia as mk

k = mk.covariances
NEW = 2000


def main(quick: bool = False, rows: int = 1000, runs: int = 2) -> int:
    """Print the table."""
    warnings.simplefilter("ignore")
    rows, runs = (min(rows, 200), 1) if quick else (rows, runs)
    X, label, truth = drawn(rows + NEW)
    wide = (1e-9, 1e9)
    start = kernels.ConstantKernel(1.0, wide) * kernels.RBF([1.0, 1.0], wide)
    P = mk.Parameter

    def ours(method: str) -> Any:
        covariance = k.Scaled(P(1.0), k.RBF(P(np.ones(2))))
        return mk.gp.GaussianProcessClassifier(covariance, method=method)

    peers = {
        **{f"markovia, {m}": lambda m=m: ours(m) for m in ("laplace", "ep", "variational")},
        "scikit-learn": lambda: GaussianProcessClassifier(start),
    }
    best: dict[str, Any] = {}
    with threadpool_limits(1, user_api="blas"):
        for _ in range(runs):
            for name, make in peers.items():
                cpu, wall = process_time(), perf_counter()
                model = make().fit(X[:rows], label[:rows])
                cpu, wall = process_time() - cpu, perf_counter() - wall
                before = best.get(name, (np.inf, np.inf))
                best[name] = min(cpu, before[0]), min(wall, before[1]), model
    titles = ("cpu s", "wall s", "evidence", "log loss", "wrong", "from truth")
    print(f"{f'classes, n = {rows:,}':<24}" + "".join(f"{t:>12}" for t in titles))
    for name, (cpu, wall, model) in best.items():
        p = model.predict_proba(X[rows:])[:, 1]
        evidence = getattr(model, "log_marginal_likelihood_value_", np.nan)
        show(name, cpu, wall, float(evidence), *quality(p, label[rows:], truth[rows:]))
    show("the truth", np.nan, np.nan, np.nan, *quality(truth[rows:], label[rows:], truth[rows:]))
    return 0


def drawn(n: int) -> tuple[Any, Any, Any]:
    """Return inputs, classes drawn for them, and the probabilities that these were drawn with."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (n, 2))
    truth = 1.0 / (1.0 + np.exp(-3.0 * np.sin(1.5 * X[:, 0]) - 2.0 * np.cos(X[:, 1])))
    return X, (rng.random(n) < truth).astype(int), truth


def quality(p: Any, label: Any, truth: Any) -> tuple[float, float, float]:
    """Return the log loss of probabilities, the share of wrong classes, and how far they are from the truth."""
    loss = -np.mean(np.where(label == 1, np.log(p), np.log1p(-p)))
    return float(loss), float(np.mean((p > 0.5) != (label == 1))), float(np.sqrt(np.mean((p - truth) ** 2)))


def show(name: str, *cells: float) -> None:
    print(
        f"{name:<24}" + "".join(f"{c:>12.4g}" if np.isfinite(c) else f"{'':>12}" for c in cells), flush=True
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    sys.exit(main(options.quick, options.rows, options.runs))
