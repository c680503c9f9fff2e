"""How long Kalman filtering and smoothing take parallel in time, beside the sequential filter.

Run: python benchmarks/sequences_parallel.py [--steps T ...] [--states N] [--observed P]

One sequence of a random stable model. "parallel" are associative scans in JAX on its default device; "scan" is a plain
sequential scan in JAX on the same device (an extended filter of linear functions). Seconds are the least of five runs,
compiled beforehand; the greatest difference of means is shown.
"""

# ruff: noqa: N806 (letters of the literature)

import argparse
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import numpy as np

import markovia as mk


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--states", type=int, default=4)
    parser.add_argument("--observed", type=int, default=2)
    options = parser.parse_args()
    rng, n, p = np.random.default_rng(0), options.states, options.observed
    A, B, D = rng.normal(size=(n, n)), rng.normal(size=(n, n)), rng.normal(size=(p, p))
    A = 0.95 * A / np.abs(np.linalg.eigvals(A)).max()
    C, Q, R = rng.normal(size=(p, n)), B @ B.T / n, D @ D.T + 0.1 * np.eye(p)
    line = mk.LinearStateSpace(A, Q, C, R, np.zeros(n), np.eye(n))
    plain = mk.NonlinearStateSpace(lambda x: A @ x, lambda x: C @ x, Q, R, np.zeros(n), np.eye(n))
    print(f"{jax.devices()[0]}, {n} states, {p} observed\n")
    print(f"{'steps':>9} {'':7} {'parallel':>10} {'scan':>10} {'difference':>11}")
    for steps in options.steps:
        y = line.sample(steps, seed=1)[0][0]
        for question in ("filter", "smooth"):
            quick, found = _least(lambda q=question, y=y: getattr(line, q)(y, parallel="time"))  # type: ignore[misc]
            slow, other = _least(lambda q=question, y=y: getattr(plain, q)(y))  # type: ignore[misc]
            gap = np.abs(found.mean[0] - other.mean[0]).max()
            print(f"{steps:9,} {question:7} {quick:10.4f} {slow:10.4f} {gap:11.1e}")
    return 0


def _least(work: Callable[[], Any]) -> tuple[float, Any]:
    found, seconds = work(), []
    for _ in range(5):
        start = perf_counter()
        found = work()
        seconds.append(perf_counter() - start)
    return min(seconds), found


if __name__ == "__main__":
    raise SystemExit(main())
