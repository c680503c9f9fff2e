"""How often intervals for the value of a policy cover it, and how far estimates are off, method by method.

Run: python benchmarks/decisions_evaluation.py [--quick] [--repetitions 500] [--seed 0] [--worlds one two rare]
                                                 [--output FILE]

1. `one`: one decision, a covariate of three values that steers it;
2. `two`: two decisions, rewards after each; a hidden cause of what is seen in between and of the last reward, so neither
   adjusting for it nor leaving it out would be right;
3. `rare`: two decisions of which the policy takes what was done in 7 to 17% of the rows: heavy weights.

Each world is drawn `--repetitions` times; the truth is computed by enumeration. Probabilities of what was done are fitted as
tables, fitted by logistic regression (right in all worlds), or known. With tables all methods are the g-formula.
"""

import argparse
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from markovia.learning.control.off_policy import METHODS, off_policy_value
from markovia.learning.control.trajectory_weights import LoggedStage

Z = 1.959963984540054


class World(NamedTuple):
    """Rows for each draw, the policy's and the logging's probabilities of them, and what the policy is worth."""

    draw: Callable[[np.random.Generator], tuple[list[LoggedStage], list[Any], list[Any]]]
    truth: float


def logistic(v: Any) -> Any:
    return 1 / (1 + np.exp(-v))


def stage(name: str, history: list[Any], action: Any, reward: Any, levels: int = 2) -> LoggedStage:
    columns = np.column_stack(history).astype(float)
    cell = np.zeros(len(action), dtype=np.int64)
    for column in history:
        cell = cell * levels + column
    return LoggedStage(name, (0, 1), columns, cell, action, reward)


def both(p: Any) -> Any:
    return np.column_stack([1 - p, p])


def one_decision(n: int = 400) -> World:
    """Choose one of two doses by an illness of three grades; the policy treats the ill with probability 0.9."""

    def chance(ill: Any) -> Any:
        return logistic(-1.0 + 0.9 * ill)

    def wanted(ill: Any) -> Any:
        return np.where(ill > 0, 0.9, 0.2)

    def mean(ill: Any, a: Any) -> Any:
        return 10 - 3.0 * ill + a * (2.0 * ill - 1.0)

    def draw(rng: np.random.Generator) -> Any:
        ill = rng.choice(3, n, p=[0.5, 0.3, 0.2])
        a = (rng.random(n) < chance(ill)).astype(np.int64)
        y = mean(ill, a) + rng.standard_t(5, n)
        return [stage("dose", [ill], a, y, 3)], [both(wanted(ill))], [both(chance(ill))]

    truth = sum(
        p * sum(w * mean(ill, a) for a, w in enumerate((1 - wanted(ill), wanted(ill))))
        for ill, p in enumerate([0.5, 0.3, 0.2])
    )
    return World(draw, float(truth))


def two_decisions(n: int, intercept: float, slope: float, policy: tuple[Callable[..., Any], ...]) -> World:
    """Treat at two visits; what is seen at the second answers to the first and shares a hidden cause with the end."""

    def first(l1: Any) -> Any:
        return logistic(intercept + slope * l1)

    def second(l1: Any, a1: Any, l2: Any) -> Any:
        return logistic(intercept + slope * l2 + 0.3 * a1 - 0.2 * l1)

    def seen(l1: Any, a1: Any, u: Any) -> Any:
        return 0.2 + 0.2 * l1 - 0.15 * a1 + 0.4 * u

    def early(l1: Any, a1: Any) -> Any:
        return 1.0 - 0.5 * a1 + l1

    def late(l1: Any, a1: Any, l2: Any, a2: Any, u: Any) -> Any:
        return 5.0 - 2.0 * l2 + a2 * (2.5 * l2 - 0.5) + a1 + 2.0 * u + 0.0 * l1

    def draw(rng: np.random.Generator) -> Any:
        l1, u = rng.integers(0, 2, n), rng.integers(0, 2, n)
        a1 = (rng.random(n) < first(l1)).astype(np.int64)
        l2 = (rng.random(n) < seen(l1, a1, u)).astype(np.int64)
        a2 = (rng.random(n) < second(l1, a1, l2)).astype(np.int64)
        r1 = early(l1, a1) + rng.normal(size=n)
        r2 = late(l1, a1, l2, a2, u) + rng.normal(size=n)
        stages = [stage("a1", [l1], a1, r1), stage("a2", [l1, a1, l2], a2, r2)]
        asked = [both(policy[0](l1)), both(policy[1](l2))]
        return stages, asked, [both(first(l1)), both(second(l1, a1, l2))]

    truth = 0.0
    for l1, u, a1, l2, a2 in product((0, 1), repeat=5):
        p1, p2 = float(policy[0](l1)), float(policy[1](l2))
        chance = seen(l1, a1, u)
        weight = 0.25 * (p1 if a1 else 1 - p1) * (chance if l2 else 1 - chance) * (p2 if a2 else 1 - p2)
        truth += weight * float(early(l1, a1) + late(l1, a1, l2, a2, u))
    return World(draw, truth)


def worlds() -> dict[str, World]:
    follow = (lambda l1: 1.0 * l1, lambda l2: 1.0 * l2)
    mixed = (lambda l1: 0.2 + 0.6 * l1, lambda l2: 0.1 + 0.8 * l2)
    always = (lambda l1: 1.0 + 0.0 * l1, lambda l2: 0.6 + 0.4 * l2)
    return {
        "one": one_decision(),
        "two": two_decisions(800, -0.3, 0.8, follow),
        "two, mixed": two_decisions(800, -0.3, 0.8, mixed),
        "rare": two_decisions(6000, -2.4, 0.5, always),
    }


def coverage(world: World, repetitions: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return for each method and kind of fit the bias, the spread and the share of intervals that cover the truth."""
    kinds = {"tabular": ("tabular", False), "linear": ("linear", False), "known": ("linear", True)}
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for rng in np.random.default_rng(seed).spawn(repetitions):
        stages, asked, logged = world.draw(rng)
        for kind, (learner, known) in kinds.items():
            for method in METHODS:
                if known and method == "fitted Q":
                    continue
                one = off_policy_value(
                    stages, asked, method, learner=learner, logged=logged if known else None
                )
                found.setdefault((kind, method), []).append((one.value, one.standard_error))
    rows = []
    for (kind, method), pairs in found.items():
        values, errors = np.array(pairs).T
        rows.append({
            "fit": kind, "method": method, "bias": float(values.mean() - world.truth), "sd": float(values.std(ddof=1)),
            "mean error": float(errors.mean()), "coverage": float((abs(values - world.truth) <= Z * errors).mean()),
        })  # fmt: skip
    return rows


def main() -> int:
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("--quick", action="store_true", help="50 repetitions")
    reader.add_argument("--repetitions", type=int, default=500)
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--worlds", nargs="*", default=list(worlds()))
    reader.add_argument("--output", type=Path)
    options = reader.parse_args()
    everything = {}
    for name, world in worlds().items():
        if name not in options.worlds:
            continue
        start = process_time()
        rows = coverage(world, 50 if options.quick else options.repetitions, options.seed)
        everything[name] = {"truth": world.truth, "rows": rows}
        print(f"\n{name}: truth {world.truth:.4f} ({process_time() - start:.0f} s)")
        print(f"{'fit':8} {'method':22} {'bias':>9} {'sd':>8} {'mean error':>10} {'coverage':>8}")
        for row in rows:
            print(
                f"{row['fit']:8} {row['method']:22} {row['bias']:9.4f} {row['sd']:8.4f} {row['mean error']:10.4f} "
                f"{row['coverage']:8.3f}"
            )
    if options.output:
        options.output.write_text(json.dumps(everything, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
