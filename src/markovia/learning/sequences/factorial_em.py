"""Learning of factorial hidden Markov models by variational EM.

Structured mean field takes the place of the exact posterior, and neither step lowers the bound.
Reference: Ghahramani and Jordan (1997).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from markovia.inference.sequences.factorial_mean_field import (
    FactorialMeanField,
    SeenSum,
    structured_mean_field,
)
from markovia.inference.sequences.hidden_chain import HiddenChain
from markovia.learning.components.families import NOTHING, Observations
from markovia.learning.components.normal_sums import regular
from markovia.learning.sequences.baum_welch import LearnedChain, counted_rows
from markovia.learning.sequences.joint_chains import AdditiveGaussian, JointChains
from markovia.optimise.ascent import Climb, climb


def mean_field(model: JointChains, seen: Observations, begin: Any = None) -> FactorialMeanField:
    """Return what chains know, each for itself; `begin` are posteriors to begin with."""
    chains = [HiddenChain(s, t) for s, t in zip(model.starts, model.transitions, strict=True)]
    return structured_mean_field(chains, _seen_sum(model, seen), begin=begin)


def _seen_sum(model: JointChains, seen: Observations) -> SeenSum:
    emission: Any = model.emission
    there = seen.codes < len(seen.rows)
    rows = np.concatenate([seen.rows, np.zeros((1, seen.rows.shape[1]))])[seen.codes]
    return SeenSum(rows, there, seen.offsets, emission.means, emission.covariance)


def learn_by_mean_field(
    model: JointChains, seen: Observations, *, max_iter: int, tol: float, progress: bool | None
) -> Climb[LearnedChain]:
    """Climb the bound from starting values (see `climb`)."""

    def step(now: tuple[JointChains, Any]) -> tuple[tuple[JointChains, Any], float]:
        (chains, before), looks = now, [mean_field(now[0], seen)]
        if before is not None:
            # what was known before never lowers the bound, and a fresh look may find better posteriors
            looks.append(mean_field(chains, seen, before.probs))
        best = max(looks, key=lambda one: float(one.bounds.sum()))
        return (_learned(chains, seen, best), best), float(best.bounds.sum())

    start: tuple[JointChains, Any] = model, None
    found = climb(
        step, start, max_iter=max_iter, tol=tol, size=seen.steps, progress=progress, unit="iteration"
    )
    sums = np.concatenate([one.sums.sum(axis=0) for one in found.state[1].counts])
    return Climb(LearnedChain(found.state[0], sums <= NOTHING), found.history, found.reason)


def _learned(model: JointChains, seen: Observations, found: FactorialMeanField) -> JointChains:
    """Return the model that makes expected counts most probable."""
    starts, transitions = [], []
    for start, table, one in zip(model.starts, model.transitions, found.counts, strict=True):
        starts.append(counted_rows(one.starts, start, 1.0))
        transitions.append(counted_rows(one.pairs[0], table, 1.0))
    y, there = _seen_sum(model, seen)[:2]
    y, probs = y[there], [one[there] for one in found.probs]
    every = np.concatenate(probs, axis=1)
    both = every.T @ every  # chains are independent of one another, a chain's states exclude one another
    ends = np.cumsum([0, *model.sizes])
    for a, b, one in zip(ends[:-1], ends[1:], probs, strict=True):
        both[a:b, a:b] = np.diag(one.sum(axis=0))
    with_y = every.T @ y
    means = np.linalg.pinv(both, hermitian=True) @ with_y
    cross = means.T @ with_y
    scatter = y.T @ y - cross - cross.T + means.T @ both @ means
    covariance = regular((scatter + scatter.T)[None] / (2.0 * len(y)), lambda: y.var(axis=0))[0]
    emission: Any = model.emission
    made: AdditiveGaussian = replace(
        emission, means=tuple(np.split(means, ends[1:-1])), covariance=covariance
    )
    return model._replace(starts=tuple(starts), transitions=tuple(transitions), emission=made)
