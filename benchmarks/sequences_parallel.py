"""How long Kalman filtering and smoothing, and hidden Markov models, take parallel in time, beside sequential sums.

Run: python benchmarks/sequences_parallel.py [--part kalman|hmm] [--steps T ...] [--states N] [--observed P]

"hmm": one sequence of 1,000,000 steps of a random Gaussian HMM with 8 states; "sequential" are compiled loops on processors.
"kalman": one sequence of a random stable model; "scan" is a plain sequential scan in JAX on the same device (an extended
filter of linear functions). "parallel" are associative scans in JAX on its default device. Seconds are the least of five
runs, compiled beforehand; the greatest difference is shown.
"""

# ruff: noqa: N806 (letters of the literature)

import argparse
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import numpy as np

import markovia as mk
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.inference.sequences.parallel_chain import parallel_best, parallel_sums


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=("kalman", "hmm"), nargs="+", default=["kalman", "hmm"])
    parser.add_argument("--steps", type=int, nargs="+")
    parser.add_argument("--states", type=int)
    parser.add_argument("--observed", type=int, default=2)
    options = parser.parse_args()
    if "kalman" in options.part:
        kalman(options.steps or [1_000, 10_000, 100_000], options.states or 4, options.observed)
    if "hmm" in options.part:
        hidden_chains(options.steps or [1_000_000], options.states or 8)
    return 0


def kalman(lengths: list[int], n: int, p: int) -> None:
    rng = np.random.default_rng(0)
    A, B, D = rng.normal(size=(n, n)), rng.normal(size=(n, n)), rng.normal(size=(p, p))
    A = 0.95 * A / np.abs(np.linalg.eigvals(A)).max()
    C, Q, R = rng.normal(size=(p, n)), B @ B.T / n, D @ D.T + 0.1 * np.eye(p)
    line = mk.LinearStateSpace(A, Q, C, R, np.zeros(n), np.eye(n))
    plain = mk.series.NonlinearStateSpace(lambda x: A @ x, lambda x: C @ x, Q, R, np.zeros(n), np.eye(n))
    print(f"{jax.devices()[0]}, {n} states, {p} observed\n")
    print(f"{'steps':>9} {'':7} {'parallel':>10} {'scan':>10} {'difference':>11}")
    for steps in lengths:
        y = line.sample(steps, seed=1)[0][0]
        for question in ("filter", "smooth"):
            quick, found = _least(lambda q=question, y=y: getattr(line, q)(y, parallel="time"))  # type: ignore[misc]
            slow, other = _least(lambda q=question, y=y: getattr(plain, q)(y))  # type: ignore[misc]
            gap = np.abs(found.mean[0] - other.mean[0]).max()
            print(f"{steps:9,} {question:7} {quick:10.4f} {slow:10.4f} {gap:11.1e}")


def hidden_chains(lengths: list[int], k: int) -> None:
    rng = np.random.default_rng(0)
    chain = HiddenChain(np.full(k, 1 / k), 0.9 * np.eye(k) + 0.1 * rng.dirichlet(np.ones(k), k))
    print(f"\n{jax.devices()[0]}, {k} hidden states\n")
    print(f"{'steps':>9} {'':7} {'parallel':>10} {'sequential':>10} {'difference':>11}")
    for steps in lengths:
        seen = Observed.of(rng.normal(size=(steps, k)))
        for question, parallel, sequential in (
            (
                "filter",
                lambda s=seen: parallel_sums(chain, s, smoothing=False)[0].now,
                lambda s=seen: chain.filter(s).now,
            ),
            (
                "smooth",
                lambda s=seen: parallel_sums(chain, s, smoothing=True)[1],
                lambda s=seen: chain.smooth(s).sums,
            ),
            (
                "decode",
                lambda s=seen: parallel_best(chain, s)[1],
                lambda s=seen: chain.best(s)[1],
            ),
        ):
            quick, found = _least(parallel)
            slow, other = _least(sequential)
            print(
                f"{steps:9,} {question:7} {quick:10.4f} {slow:10.4f} {np.abs(found - other).max():11.1e}",
                flush=True,
            )


def _least(work: Callable[[], Any]) -> tuple[float, Any]:
    found, seconds = work(), []
    for _ in range(5):
        start = perf_counter()
        found = work()
        seconds.append(perf_counter() - start)
    return min(seconds), found


if __name__ == "__main__":
    raise SystemExit(main())
