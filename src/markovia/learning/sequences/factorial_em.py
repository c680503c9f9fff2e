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
from markovia.learning.sequences.baum_welch import BaumWelchSettings, counted_rows
from markovia.learning.sequences.joint_chains import AdditiveGaussian, JointChains
from markovia.runtime.progress import progress_bar


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
) -> BaumWelchSettings:
    """Learn from starting values until an iteration raises the bound by less than `tol`."""
    history: list[float] = []
    converged, begin = False, None
    with progress_bar(progress, max_iter, unit="iteration") as advance:
        for _ in range(max_iter):
            # what was known before never lowers the bound, and a fresh look may find better posteriors
            looks = [mean_field(model, seen), *([] if begin is None else [mean_field(model, seen, begin)])]
            found = max(looks, key=lambda one: float(one.bounds.sum()))
            begin = found.probs
            history.append(float(found.bounds.sum()))
            model = _learned(model, seen, found)
            advance(note=f"{history[-1]:.6g}")
            if len(history) > 1 and history[-1] - history[-2] < tol:
                converged = True
                break
    sums = np.concatenate([one.sums.sum(axis=0) for one in found.counts])
    return BaumWelchSettings(model, history, converged, np.flatnonzero(sums <= NOTHING).tolist())


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
