"""Draws from the posterior of a hidden Markov model: blocked Gibbs sampling.

Each sweep draws all states given the parameters (forward filtering, backward sampling) and all parameters given the states,
from their conjugate laws. States have no names of their own, so each draw is relabelled to agree as far as it can with one
path of reference. References: Chib (1996); Papastamoulis and Iliopoulos (2010). Cost of a sweep: that of filtering.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from markovia.learning.components.conjugate_draws import dirichlet_rows
from markovia.learning.components.families import Observations
from markovia.learning.sequences.baum_welch import HiddenMarkov, Priors, counted, refuse
from markovia.learning.sequences.transition_masks import masked
from markovia.runtime.array_types import Array, Ints


class GibbsRun(NamedTuple):
    """Where one chain begins, and its seed."""

    model: HiddenMarkov
    seed: Any


def gibbs_chain(
    run: GibbsRun,
    seen: Observations,
    priors: Priors,
    *,
    draws: int,
    warmup: int,
    reference: Ints | None,
    where: Callable[[int], str] = str,
) -> dict[str, Array]:
    """Return draws of start, transition and the emission's parameters by name, one entry a draw.

    They are relabelled to a path of reference, where there is one.
    """
    rng = np.random.default_rng(run.seed)
    model, k = run.model, len(run.model.start)
    allowed = model.start > 0.0, model.transition > 0.0
    refuse(model.chain.filter(seen.seen_by(model.emission)).stuck, where)
    kept: dict[str, list[Array]] = {}
    for sweep in range(warmup + draws):
        states = model.chain.draw(seen.seen_by(model.emission), 1, rng)[0]
        expected = counted(model, seen, states, np.zeros(len(seen.offsets) - 1))
        start = dirichlet_rows(np.where(allowed[0], expected.starts + priors.start, 0.0), rng)
        transition = dirichlet_rows(np.where(allowed[1], expected.pairs[0] + priors.transition, 0.0), rng)
        if priors.fixed is not None:
            transition = masked(transition, np.where(allowed[1], priors.fixed, 0.0))
        weights = seen.weights(expected.sums)
        emission: Any = model.emission
        prior = emission.whole_prior(seen.rows, weights, priors.emission)
        model = HiddenMarkov(start, transition, emission.redrawn(seen.rows, weights, prior, rng))
        if sweep < warmup:
            continue
        order = np.arange(k) if reference is None else matching(states, reference, k)
        values = {"start": start[order], "transition": transition[np.ix_(order, order)]}
        values |= {n: v[order] if reference is not None else v for n, v in model.emission.params.items()}
        for name, value in values.items():
            kept.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in kept.items()}


def matching(states: Ints, reference: Ints, k: int) -> Ints:
    """Return for each state of a path of reference the state that agrees with it most, all different.

    Examples
    --------
    >>> matching(np.array([2, 2, 0, 1]), np.array([0, 0, 1, 2]), 3).tolist()
    [2, 0, 1]
    """
    from scipy.optimize import linear_sum_assignment

    both = np.bincount(reference * k + states, minlength=k * k).reshape(k, k)
    return np.asarray(linear_sum_assignment(both, maximize=True)[1], dtype=np.int64)
