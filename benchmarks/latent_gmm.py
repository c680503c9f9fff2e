"""Gaussian mixtures: seconds a step of EM beside scikit-learn, from the same start, on groups that overlap.

Run: python benchmarks/latent_gmm.py [--quick]

Both begin with the same means, weights and precisions and must have the same objective after the same steps. Seconds a step
are those of STEPS more steps, divided by STEPS; processor seconds in brackets. Then a fit with all defaults.
"""

import argparse
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture as Peer

import markovia as mk

STEPS = 5


def groups(n: int, d: int, k: int) -> np.ndarray[Any, Any]:
    """Return rows of k groups that overlap."""
    rng = np.random.default_rng(0)
    roots = rng.normal(0.0, 0.4, (k, d, d)) + np.eye(d)
    centres = rng.normal(0.0, 1.5, (k, d))
    which = rng.integers(0, k, n)
    return np.asarray(centres[which] + np.einsum("nij,nj->ni", roots[which], rng.standard_normal((n, d))))


def seconds_a_step(make: Callable[[int], Any], rows: Any) -> tuple[float, float, Any]:
    """Return wall and processor seconds a step, the least of three, and the fitted model."""
    best = (np.inf, np.inf)
    for _ in range(3):
        times = []
        for steps in (1, 1 + STEPS):
            model = make(steps)
            wall, cpu = perf_counter(), process_time()
            model.fit(rows)
            times.append((perf_counter() - wall, process_time() - cpu))
        best = min(best, tuple((b - a) / STEPS for a, b in zip(*times, strict=True)), key=lambda t: t[1])  # type: ignore[assignment]
    return *best, model


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    n, d, k = (20_000, 10, 20) if parser.parse_args().quick else (200_000, 10, 20)
    warnings.simplefilter("ignore")
    rows = groups(n, d, k)
    rng = np.random.default_rng(1)
    start: dict[str, Any] = {
        "weights_init": np.full(k, 1 / k),
        "means_init": rows[rng.choice(n, k, replace=False)],
        "tol": 0.0,
        "random_state": 0,
    }
    for kind in ("full", "diag", "tied"):
        one = np.linalg.inv(np.cov(rows.T))
        precisions = {
            "full": np.repeat(one[None], k, axis=0),
            "tied": one,
            "diag": np.tile(np.diag(one), (k, 1)),
        }[kind]
        given = {**start, "covariance_type": kind, "precisions_init": precisions}
        ours = seconds_a_step(lambda steps, given=given: mk.GaussianMixture(k, max_iter=steps, **given), rows)
        theirs = seconds_a_step(
            lambda steps, given=given: Peer(k, max_iter=steps, init_params="random", **given), rows
        )
        assert abs(ours[2].lower_bound_ - theirs[2].lower_bound_) < 1e-9, (
            ours[2].lower_bound_,
            theirs[2].lower_bound_,
        )
        print(f"{n:,} x {d}, K = {k}, {kind}: seconds a step (processor seconds)")
        print(f"  markovia      {ours[0]:.4f} ({ours[1]:.4f})")
        print(
            f"  scikit-learn  {theirs[0]:.4f} ({theirs[1]:.4f})   {theirs[1] / ours[1]:.1f} times markovia's"
        )
    for name, make in (("markovia", mk.GaussianMixture), ("scikit-learn", Peer)):
        wall, cpu = perf_counter(), process_time()
        model: Any = make(k, random_state=0).fit(rows)
        print(
            f"  by default: {name:13} {perf_counter() - wall:.2f} ({process_time() - cpu:.2f}) s, {model.n_iter_} steps, "
            f"log likelihood a row {model.score(rows):.4f}"
        )


if __name__ == "__main__":
    main()
