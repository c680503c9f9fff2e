"""Structured mean field for chains that are seen through a sum: each chain keeps its own Markov posterior.

    y_t ~ Normal(sum_i means[i][z_i,t], covariance),   q(z) = prod_i q_i(z_i)

Given the others, the best q_i is a hidden chain with the log densities of what they leave over; chains take turns until the
lower bound on log p(y) settles. Reference: Ghahramani and Jordan (1997). Cost of a turn: steps times states squared of each
chain, instead of the square of their product. Use it where there are too many joint states.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from markovia.inference.sequences.hidden_chain import Expected, HiddenChain, Observed
from markovia.runtime.array_types import Array, Ints

HEATS = (64.0, 16.0, 4.0, 2.0)
"""How much noise there seems to be, in turn, before there is as much as there is."""


class SeenSum(NamedTuple):
    """Observations `y (steps, columns)`, which steps have one, `offsets` of sequences, `means` of chains, `covariance`."""

    y: Array
    there: Any
    offsets: Ints
    means: tuple[Array, ...]
    covariance: Array


class FactorialMeanField(NamedTuple):
    """What chains know: `probs[i] (steps, states)`, and how the turns went.

    `counts` are the expected counts of each chain, `seen` what each is seen by, `bounds` lie below log p of each sequence.
    """

    probs: list[Array]
    counts: list[Expected]
    seen: list[Observed]
    bounds: Array
    turns: int
    converged: bool


def structured_mean_field(
    chains: Sequence[HiddenChain],
    seen: SeenSum,
    *,
    begin: Sequence[Array] | None = None,
    max_turns: int = 200,
    tol: float = 1e-8,
) -> FactorialMeanField:
    """Return the posteriors of chains that are nearest to the joint one.

    Parameters
    ----------
    chains
        The chains.
    seen
        What they are seen by.
    begin
        Posteriors to begin with. By default they are found with more noise than there is, which is then taken away: turns
        that begin with all states alike soon settle on poor ones where there is little noise.
    max_turns, tol
        Turns at most, and the gain of the bound, as a share of it, below which they stop.
    """
    probs = begin
    for heat in HEATS if begin is None else ():
        hot = seen._replace(covariance=heat * seen.covariance)
        probs = _turns(chains, hot, probs, 20, 1e-4).probs
    return _turns(chains, seen, probs, max_turns, tol)


def _turns(
    chains: Sequence[HiddenChain], seen: SeenSum, begin: Sequence[Array] | None, max_turns: int, tol: float
) -> FactorialMeanField:
    n, d = seen.y.shape
    y = np.where(seen.there[:, None], seen.y, 0.0)
    # in coordinates where the noise is white
    root = np.linalg.inv(np.linalg.cholesky(seen.covariance))
    y, means = y @ root.T, [one @ root.T for one in seen.means]
    squares = [(one**2).sum(axis=1) for one in means]
    front = -0.5 * d * np.log(2.0 * np.pi) + np.log(np.diag(root)).sum()
    probs = [np.full((n, len(one)), 1.0 / len(one)) for one in means] if begin is None else list(begin)
    expected = [p @ m for p, m in zip(probs, means, strict=True)]
    found: list[Expected] = [None] * len(chains)  # type: ignore[list-item]
    given: list[Observed] = [None] * len(chains)  # type: ignore[list-item]
    before, converged, turns = -np.inf, False, 0
    bounds = np.empty(len(seen.offsets) - 1)
    total = np.sum(expected, axis=0)
    while turns < max_turns and not converged:
        turns += 1
        entropies = np.zeros_like(bounds)
        for i, chain in enumerate(chains):
            left = y - (total - expected[i])
            logs = np.where(seen.there[:, None], left @ means[i].T - 0.5 * squares[i], 0.0)
            given[i] = Observed.of(logs, seen.offsets)
            found[i] = chain.expect(given[i])
            probs[i] = found[i].sums
            total = total - expected[i]
            expected[i] = probs[i] @ means[i]
            total = total + expected[i]
            # E log p(z_i) less E log q_i(z_i)
            entropies += found[i].log_probs - _by_sequence((probs[i] * logs).sum(axis=1), seen.offsets)
        spread = sum(p @ s - (e**2).sum(axis=1) for p, s, e in zip(probs, squares, expected, strict=True))
        each = front - 0.5 * (((y - total) ** 2).sum(axis=1) + spread)
        bounds = _by_sequence(np.where(seen.there, each, 0.0), seen.offsets) + entropies
        now = float(bounds.sum())
        converged = now - before < tol * (1.0 + y.size)
        before = now
    return FactorialMeanField(probs, found, given, bounds, turns, converged)


def _by_sequence(values: Array, offsets: Ints) -> Array:
    return np.asarray(np.add.reduceat(values, offsets[:-1]))
