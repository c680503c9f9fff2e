"""Gaussian processes of very many rows on a GPU: exact by a Cholesky factor in blocks, conjugate gradients beyond; 64 bits.

Run: python benchmarks/processes_gpu.py [--exact N ...] [--cg N ...] [--check N]

Five columns of inputs, a smooth function and noise of .2. First the two methods are compared with LAPACK at `--check` rows.
Then for each size: seconds of a value of the log evidence with its gradient (seven numbers), first with compilation and
again without; seconds of the posterior, and of means and variances at rows that were not seen (1,000; 32 by conjugate
gradients, where a variance is a solution of its own), with their RMSE and mean negative log density. Without a GPU it runs
on the processor.
"""

# ruff: noqa: N806 (letters of the literature)

import argparse
from time import perf_counter
from typing import Any

import numpy as np

import markovia as mk
from markovia.learning.processes.blocked_evidence import BlockedEvidence
from markovia.learning.processes.exact_evidence import ExactEvidence
from markovia.learning.processes.iterative_evidence import ConjugateGradients

NOISE = 0.2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--exact", type=int, nargs="*", default=[10_000])
    parser.add_argument("--cg", type=int, nargs="*", default=[10_000])
    parser.add_argument("--check", type=int, default=2_000)
    options = parser.parse_args()
    import jax

    print("device:", jax.devices()[0].device_kind, jax.default_backend())
    check(options.check)
    print(
        f"{'method':>8}{'rows':>10}{'first s':>10}{'again s':>10}{'posterior':>11}{'predict':>9}{'rmse':>8}{'nlpd':>8}"
    )
    for n in options.exact:
        row(BlockedEvidence, n)
    for n in options.cg:
        row(ConjugateGradients, n)
    return 0


def data(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return rows, targets, and the function's values without noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 5))
    f = np.sin(2.0 * X[:, 0]) + np.cos(X[:, 1] * X[:, 2]) + 0.5 * X[:, 3] * np.sin(X[:, 4])
    return X, f + NOISE * rng.standard_normal(n), f


def covariance() -> Any:
    """Return a covariance with free numbers: a variance, five lengths and noise."""
    k = mk.covariances
    length = mk.Parameter(np.full(5, 1.5), support="positive")
    scaled = k.Scaled(mk.Parameter(1.0, support="positive"), k.RBF(length))
    return scaled + k.White(mk.Parameter(NOISE**2, support="positive"))


def check(n: int) -> None:
    """Print how far both methods are from LAPACK."""
    X, y, _ = data(n)
    k = covariance()
    value, slopes = ExactEvidence(X, y).evidence(k)
    for method in (BlockedEvidence, ConjugateGradients):
        mine, its = method(X, y).evidence(k)
        worst = max(
            float(np.abs(its[key] - slopes[key]).max()) / (1.0 + float(np.abs(slopes[key]).max()))
            for key in slopes
        )
        print(
            f"{method.name} against LAPACK at {n:,}: log evidence {mine - value:+.2e} of {value:.3f}; slopes {worst:.1e}"
        )


def row(method: Any, n: int) -> None:
    """Print one line of the table."""
    X, y, _ = data(n)
    new, seen, _ = data(32 if method is ConjugateGradients else 1_000, seed=1)
    k = covariance()
    made = method(X, y)
    times = []
    for _ in range(2):
        at = perf_counter()
        made.evidence(k)
        times.append(perf_counter() - at)
    at = perf_counter()
    post = made.posterior(k)
    posterior, at = perf_counter() - at, perf_counter()
    values = post.at(new)
    mean, sd = values.mean(), np.sqrt(values.sd() ** 2 + NOISE**2)
    predict = perf_counter() - at
    rmse = np.sqrt(np.mean((mean - seen) ** 2))
    nlpd = np.mean(0.5 * np.log(2.0 * np.pi * sd**2) + 0.5 * ((seen - mean) / sd) ** 2)
    print(
        f"{method.name:>8}{n:>10,}{times[0]:>10.2f}{times[1]:>10.2f}{posterior:>11.2f}{predict:>9.2f}{rmse:>8.4f}{nlpd:>8.3f}",
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
