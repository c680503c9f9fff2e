"""The highest points of a mixture of Gaussians.

Method: mean shift (Carreira-Perpinan 2000): from the mean of each heavy component, repeat the fixed-point step that never
lowers the density, and keep the best end. There may be higher modes that no start leads to, so the answer is approximate
as soon as there are two components.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from markovia.inference.gaussian.gaussian_posterior import MixtureOfGaussians
from markovia.inference.result import Assignment, Ranked, Record
from markovia.runtime.array_types import Array

STARTS, STEPS = 50, 500


def best_of_mixture(
    mixture: MixtureOfGaussians, targets: Sequence[str], m: int, log_mass: float, record: Record
) -> Ranked:
    """Return the m best configurations of the mixture's states, each with the highest point of its numbers."""
    found = []
    groups: dict[tuple[int, ...], list[int]] = {}
    for k, codes in enumerate(mixture.codes.tolist()):
        groups.setdefault(tuple(codes), []).append(k)
    for codes, members in groups.items():
        x, log_density = highest(mixture, np.array(members))
        values: dict[str, Any] = dict(zip([v.name for v in mixture.states], codes, strict=True))
        values.update(zip(mixture.numbers, x.tolist(), strict=True))
        found.append(Assignment({n: values[n] for n in targets}, log_density + log_mass))
    found.sort(key=lambda a: -a.log_weight)
    several = len(mixture.weights) > len(groups)
    return Ranked(
        found[:m], replace(record, exact=not several and record.exact, bound=np.inf if several else None)
    )


def highest(mixture: MixtureOfGaussians, members: Any) -> tuple[Array, float]:
    """Return the highest point found among some components, and its log density."""
    weights, means, covariances = (
        mixture.weights[members],
        mixture.means[members],
        mixture.covariances[members],
    )
    inverses = np.linalg.inv(covariances)
    norms = np.log(weights) - 0.5 * np.linalg.slogdet(2 * np.pi * covariances)[1]
    pulled = (inverses @ means[..., None])[..., 0]

    def logs(x: Array) -> Array:
        gap = x - means
        return np.asarray(norms - 0.5 * np.einsum("ki,kij,kj->k", gap, inverses, gap))

    best, top = means[0], -np.inf
    for start in np.argsort(-norms)[:STARTS]:
        x = means[start]
        for _ in range(STEPS if len(members) > 1 else 0):
            each = logs(x)
            share = np.exp(each - each.max())
            share /= share.sum()
            after = np.linalg.solve(np.tensordot(share, inverses, 1), share @ pulled)
            done = np.abs(after - x).max() <= 1e-12 * (1.0 + np.abs(x).max())
            x = after
            if done:
                break
        each = logs(x)
        value = float(each.max() + np.log(np.exp(each - each.max()).sum()))
        if value > top:
            best, top = x, value
    return best, top
