"""Particle filtering in dynamic networks of conditional distributions.

Method: what is hidden is drawn from its parents, what was seen weighs the particles, and they are resampled where few are
left. Reference: Gordon, Salmond and Smith (1993); for networks Kanazawa, Koller and Russell (1995).
Cost: linear in particles, steps and variables.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.inference.sequences.boyen_koller import StuckError
from markovia.inference.sequences.slices import SliceEvidence, split_name
from markovia.inference.weighted_draws.resampling import resample
from markovia.runtime.array_types import Array


class ParticleBeliefs(NamedTuple):
    """Filtered probabilities of states, means and variances of numbers by name, and the log evidence of each sequence."""

    states: dict[str, Array]
    mean: dict[str, Array]
    var: dict[str, Array]
    logs: Array


def network_particles(
    steps: Sequence[Mapping[str, Conditional]],
    targets: Sequence[str],
    evidence: SliceEvidence,
    n: int,
    rng: np.random.Generator,
) -> ParticleBeliefs:
    """Filter sequences with n particles.

    Parameters
    ----------
    steps
        The distributions of the variables of first steps, and last those of every later step; parents first.
    targets
        The variables to tell about.
    evidence
        Likelihoods of states and numbers by step.
    n, rng
        How many particles, and where they are drawn from.

    Raises
    ------
    StuckError
        Where no particle agrees with what was seen.
    """
    total = int(evidence.offsets[-1])
    variables = {m: steps[-1][m].variable for m in targets}
    states = {m: np.zeros((total, len(v))) for m, v in variables.items() if not isinstance(v, Quantity)}
    mean = {m: np.zeros(total) for m in targets if m not in states}
    var = {m: np.zeros(total) for m in mean}
    logs = np.zeros(len(evidence.offsets) - 1)
    for s, (a, b) in enumerate(
        zip(evidence.offsets[:-1].tolist(), evidence.offsets[1:].tolist(), strict=True)
    ):
        past: list[dict[str, Any]] = []
        weights = np.zeros(n)
        for step in range(a, b):
            drawn: dict[str, Any] = {}
            before = _log_mean(weights)
            for name, table in steps[min(step - a, len(steps) - 1)].items():
                given = [
                    drawn[base] if not lag else past[lag - 1][base]
                    for base, lag in (split_name(q.name) for q in table.parents)
                ]
                drawn[name], more = _drawn_or_seen(table, given, name, step, evidence, n, rng)
                weights = weights + more
            after = _log_mean(weights)
            if after == -np.inf:
                raise StuckError(step)
            logs[s] += after - before
            shares = np.exp(weights - weights.max())
            shares /= shares.sum()
            for name, rows in states.items():
                rows[step] = np.bincount(drawn[name], shares, minlength=rows.shape[1])
            for name in mean:
                mean[name][step] = shares @ drawn[name]
                var[name][step] = shares @ (drawn[name] - mean[name][step]) ** 2
            past = [drawn, *past[: len(steps) - 2]]
            if 1.0 / np.square(shares).sum() < n / 2:  # the effective number of particles
                kept = resample(weights, n, rng)
                past = [{m: x[kept] for m, x in one.items()} for one in past]
                weights = np.zeros(n)
    return ParticleBeliefs(states, mean, var, logs)


def _drawn_or_seen(
    table: Any,
    given: list[Any],
    name: str,
    step: int,
    evidence: SliceEvidence,
    n: int,
    rng: np.random.Generator,
) -> tuple[Any, Any]:
    """Return a variable's values, drawn or seen, and what they add to the log weights."""
    if name in evidence.numbers and not np.isnan(evidence.numbers[name][step]):
        values: Any = np.full(n, evidence.numbers[name][step])
        return values, table.log_prob(values, given)
    if name in evidence.codes:
        code, card = int(evidence.codes[name][step]), evidence.weights[name].shape[1]
        if code < card:
            values = np.full(n, code)
            return values, table.log_prob(values, given)
        if code > card:
            values = table.sample(given, n, rng)
            with np.errstate(divide="ignore"):
                return values, np.log(evidence.weights[name][code])[values]
    return table.sample(given, n, rng), 0.0


def _log_mean(logs: Array) -> float:
    top = float(logs.max())
    return top if top == -np.inf else top + float(np.log(np.exp(logs - top).mean()))
