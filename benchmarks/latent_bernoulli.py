"""Bernoulli mixtures: seconds a step of EM, and the optimum that is found by default, beside stepmix.

Run: python benchmarks/latent_bernoulli.py [--quick]

The truth's log likelihood a row is what a good optimum reaches or passes by a little.
"""

import argparse
import warnings
from importlib.util import find_spec
from time import perf_counter, process_time
from typing import Any

import numpy as np

import markovia as mk

STEPS = 10


def timed(make: Any, rows: Any) -> tuple[float, float, Any]:
    """Return wall and processor seconds of a fit, and the model."""
    wall, cpu = perf_counter(), process_time()
    model = make.fit(rows)
    return perf_counter() - wall, process_time() - cpu, model


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    n, d, k = (10_000, 50, 10) if parser.parse_args().quick else (100_000, 50, 10)
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    probs, which = rng.beta(0.7, 0.7, (k, d)), rng.integers(0, k, n)
    rows = (rng.random((n, d)) < probs[which]).astype(np.float64)
    joint = rows @ np.log(probs.T) + (1.0 - rows) @ np.log1p(-probs.T) - np.log(k)
    print(f"{n:,} x {d}, K = {k}; the truth has {np.logaddexp.reduce(joint, axis=1).mean():.4f} nats a row")
    start = {
        "weights_init": np.full(k, 1 / k),
        "params_init": {"probs": rng.uniform(0.3, 0.7, (k, d))},
        "tol": 0.0,
    }
    short, long = (
        min(
            (timed(mk.mixtures.BernoulliMixture(k, max_iter=steps, **start), rows) for _ in range(3)),
            key=lambda t: t[1],
        )
        for steps in (1, 1 + STEPS)
    )
    own = [(b - a) / STEPS for a, b in zip(short[:2], long[:2], strict=True)]
    print(f"  markovia  {own[0]:.4f} ({own[1]:.4f}) s a step")
    for seed in range(3):
        wall, cpu, model = timed(mk.mixtures.BernoulliMixture(k, random_state=seed), rows)
        print(f"  markovia by default, seed {seed}: {model.score(rows):.4f} in {wall:.2f} ({cpu:.2f}) s")
    if find_spec("stepmix") is None:
        print("  stepmix is not installed")
        return
    from stepmix.stepmix import StepMix

    common: dict[str, Any] = {
        "n_components": k,
        "measurement": "binary",
        "progress_bar": 0,
        "random_state": 0,
    }
    short, long = (
        timed(StepMix(**common, max_iter=steps, abs_tol=0.0, rel_tol=0.0), rows) for steps in (1, 1 + STEPS)
    )
    each = [(b - a) / STEPS for a, b in zip(short[:2], long[:2], strict=True)]
    print(f"  stepmix   {each[0]:.4f} ({each[1]:.4f}) s a step   {each[1] / own[1]:.1f} times markovia's")
    wall, cpu, model = timed(StepMix(**common), rows)
    print(f"  stepmix by default: {model.score(rows):.4f} in {wall:.2f} ({cpu:.2f}) s")


if __name__ == "__main__":
    main()
