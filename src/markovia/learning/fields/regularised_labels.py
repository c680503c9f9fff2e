"""Posteriors of labels under rules and among neighbours: what posterior regularisation makes of them, row by row.

Method: rows have posteriors p_i(y). The distributions q that minimise

    sum_i KL(q_i || p_i) - sum_l w_l sum_i E_qi[r_li(y)] + sum_(i,j) s_ij TV(q_i, q_j)

are `q_i(y) = p_i(y) exp(sum_l w_l r_li(y) - sum_j u_ij(y)) / Z_i` with antisymmetric u in `[-s_ij/2, s_ij/2]`: a rule r that
holds to a degree pulls by its weight (Ganchev et al. 2010; Hu et al. 2016), and neighbours are drawn to the same labels by
total variation. Where a rule has a confidence instead of a weight, its expectation is at least that, and the weight is its
multiplier. All unknowns together maximise one concave dual, by projected spectral gradients; the gap between both
objectives says how near the answer is. Cost of a step: rows x labels x rules, and neighbours x labels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.optimise.proximal_gradient import minimise_composite
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import NumberRange, check

FAR = 1e3
"""A learned weight beyond which rules count as contradictory."""
WEIGHT = NumberRange(0.0, np.inf, open="high", said="a number, 0 or more", none=True)
SHARE = NumberRange(0.0, 1.0, said="a number from 0 to 1", none=True)


@dataclass(frozen=True)
class LabelRule:
    """A rule of soft logic: where `when` holds, the label is one of `then`.

    Parameters
    ----------
    when
        A function of the frame of rows without the label, which returns for each row whether, or to which degree from 0 to
        1, the rule speaks of it.
    then
        A label, or a list of them.
    weight
        How strongly it pulls: the odds of such labels against others are multiplied by exp(weight).
    confidence
        Instead: the share of the rows it speaks of in which it is to hold at least; the weight is then learned.
    """

    when: Callable[[Any], Any]
    then: Any
    weight: float | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if (self.weight is None) == (self.confidence is None):
            raise InvalidArgument("a rule has a weight= or a confidence=, one of both")
        check("weight", self.weight, WEIGHT)
        check("confidence", self.confidence, SHARE)
        if not callable(self.when):
            raise InvalidArgument(f"when= is a function of a frame, not {self.when!r}")


@dataclass(frozen=True, eq=False)
class RegularisedLabels:
    """Distributions of labels under rules and among neighbours: what was minimised, and by how much it may be missed."""

    probabilities: Array
    """Rows x labels."""
    weights: Array
    reached: Array
    """Of each rule: the share of the rows it speaks of in which it is expected to hold."""
    objective: float
    gap: float
    dual: Array
    """The unknowns, from which another search may go on."""


@dataclass(frozen=True, eq=False)
class LabelConstraints:
    """Rules, which have a weight or a confidence (the other is NaN), and pairs of rows with how strongly they are drawn."""

    when: Array
    """Rules x rows: to which degree each speaks of a row."""
    then: Flags
    """Rules x labels: which labels it demands there."""
    weights: Array
    confidence: Array
    edges: Ints
    strengths: Array


def regularised_labels(
    log_p: Array, given: LabelConstraints, start: Array | None = None, *, max_iterations: int = 500
) -> RegularisedLabels:
    """Find the distributions of labels, given the logarithms of posteriors, rows x labels; -inf stays impossible.

    Examples
    --------
    A rule of weight log 3 that speaks of the first row makes its label three times as probable against the other:

    >>> rule = LabelConstraints(
    ...     np.array([[1.0, 0.0]]), np.array([[False, True]]), np.log([3.0]), np.array([np.nan]),
    ...     np.zeros((0, 2), dtype=int), np.zeros(0))
    >>> regularised_labels(np.log([[0.5, 0.5], [0.5, 0.5]]), rule).probabilities.round(6).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    from scipy.sparse import csr_array

    (n, k), free = log_p.shape, np.isnan(given.weights)
    ends = len(given.edges)
    places = (np.tile(np.arange(ends), 2), given.edges.T.ravel())
    incidence = csr_array((np.repeat([1.0, -1.0], ends), places), shape=(ends, n))
    spoken = given.when.sum(axis=1)
    wanted = (np.nan_to_num(given.confidence) * spoken)[free]
    box = np.repeat(given.strengths / 2.0, k)
    many = int(free.sum())

    def weights_of(dual: Array) -> Array:
        weights = given.weights.copy()
        weights[free] = dual[:many]
        return weights

    def tilted(dual: Array) -> tuple[Array, Array, float]:
        """Return q, how far each rule holds under it, and minus the dual objective."""
        pull = (given.when * weights_of(dual)[:, None]).T @ given.then
        scores = log_p + pull - incidence.T @ dual[many:].reshape(ends, k)
        log_z = np.logaddexp.reduce(scores, axis=1)
        q = np.exp(scores - log_z[:, None])
        now = np.einsum("ln,nk,lk->l", given.when, q, given.then)
        return q, now, float(log_z.sum()) - float(dual[:many] @ wanted)

    def smooth(dual: Array) -> tuple[float, Array]:
        q, now, value = tilted(dual)
        return value / n, np.concatenate([now[free] - wanted, -(incidence @ q).ravel()]) / n

    def shrink(dual: Array, _: float) -> Array:
        return np.concatenate([np.maximum(dual[:many], 0.0), np.clip(dual[many:], -box, box)])

    dual = np.zeros(many + ends * k) if start is None else start
    if len(dual):
        dual = minimise_composite(smooth, lambda _: 0.0, shrink, dual, max_iterations, 1e-9).point
    q, now, value = tilted(dual)
    weights = weights_of(dual)
    if many and weights[free].max() > FAR and (wanted - now[free] > 1e-6 * n).any():
        raise InvalidArgument(
            "the rules contradict each other or what the model rules out: their weights grow without end"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = float(np.where(q > 0, q * (np.log(q) - log_p), 0.0).sum())
    apart = 0.5 * np.abs(incidence @ q).sum(axis=1)
    primal = divergence - float(given.weights[~free] @ now[~free]) + float(given.strengths @ apart)
    reached = np.divide(now, spoken, out=np.ones_like(now), where=spoken > 0)
    return RegularisedLabels(q, weights, reached, -value, max(primal + value, 0.0), dual)
