"""Kalman filtering on precisions and information vectors: what is known may begin at nothing at all.

Means and covariances follow from precisions afterwards, where these can be inverted; so does the log likelihood, that of the
exact diffuse start, or NaN for a sequence that does not tell all of it. Transitions have to be invertible, and observations
to have noise. Cost: steps times states cubed. Reference: Anderson and Moore, Optimal Filtering (1979).
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.sequences.kalman_filter import check_steps, root, sequence_ranges
from markovia.inference.sequences.kalman_results import Filtered
from markovia.inference.sequences.padded import PerSequence
from markovia.inference.sequences.state_space import StateSpace
from markovia.kernels.plain_code import either
from markovia.kernels.sequences.kalman_records import KalmanSteps
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.threads import in_parallel

_NOTHING = 1e-11
"""The share of a precision's size below which a direction is not known at all."""


@dataclass(frozen=True, repr=False, kw_only=True)
class FilteredInformation(Filtered):
    """Filtered states with what the information filter carries.

    Attributes
    ----------
    precision, information
        The inverse of the state's covariance, and that times its mean, after the step's observation.
    predicted_precision, predicted_information
        The same before the step's observation.
    """

    parts: tuple[Array, Array, Array, Array]

    @cached_property
    def precision(self) -> PerSequence:
        """The inverse of each state's covariance; singular where not all is known yet."""
        return PerSequence.of(self.parts[2], self.offsets, self.single)

    @cached_property
    def information(self) -> PerSequence:
        """The precision times the mean of each state."""
        return PerSequence.of(self.parts[3], self.offsets, self.single)

    @cached_property
    def predicted_precision(self) -> PerSequence:
        """The inverse of each state's covariance before its observation."""
        return PerSequence.of(self.parts[0], self.offsets, self.single)

    @cached_property
    def predicted_information(self) -> PerSequence:
        """The precision times the mean of each state before its observation."""
        return PerSequence.of(self.parts[1], self.offsets, self.single)


def information_filter(
    space: StateSpace,
    y: Array,
    offsets: Ints,
    c: Array,
    d: Array,
    *,
    at: Callable[[int], str] = "row {}".format,
    single: bool = False,
) -> FilteredInformation:
    """Filter sequences; arguments are those of `KalmanFilter`, with all that is added to states and observations.

    Raises
    ------
    InvalidArgument
        For a transition or a covariance of the start that has no inverse, or an observation without noise.

    Examples
    --------
    >>> from markovia.inference.sequences.state_space import state_space
    >>> none = np.zeros((1, 1))
    >>> found = information_filter(state_space(1, 0.5, 1, 2), np.array([[3.0], [5.0]]), np.array([0, 2]), none, none)
    >>> found.precision[0][:, 0, 0].tolist(), found.predicted_precision[0][0].tolist(), found.mean[0][0].tolist()
    ([0.5, 0.9], [[0.0]], [3.0])
    """
    check_steps(space, y, offsets, at)
    rows, n, p = len(y), space.n_states, space.n_observed
    known = np.flatnonzero(~space.diffuse)
    start, (sign, size) = np.zeros((n, n)), np.linalg.slogdet(space.transition)
    try:
        if not sign.all():
            raise np.linalg.LinAlgError
        back = np.ascontiguousarray(np.linalg.inv(space.transition).swapaxes(1, 2))
        start[np.ix_(known, known)] = np.linalg.inv(space.initial_cov[np.ix_(known, known)])
    except np.linalg.LinAlgError:
        raise InvalidArgument(
            'form="information" inverts transition= and initial_cov=, and one of them has no inverse; take '
            'form="square-root"'
        ) from None
    count = len(offsets) - 1
    L, h = np.repeat(start[None], count, axis=0), np.tile(start @ space.initial_mean, (count, 1))
    made = tuple((np.empty((rows, n, n)), np.empty((rows, n))) for _ in range(2))
    constant, lower, z = np.empty(rows), np.empty((rows, p, p)), np.empty((rows, p, n))
    seen = ~np.isnan(y)
    roots = root(space.transition_cov)
    steps = KalmanSteps(back, roots, space.observation, space.observation_cov, seen, offsets, offsets[:-1])
    run = either("markovia.kernels.sequences.information:information", 3 * rows * n * n * (n + p))
    given, kept = (L, h), (*made[1], constant)
    wrong = in_parallel(
        lambda task, work: run(steps, y - d, c, *task, given, made[0], kept, (lower, z, work)),
        sequence_ranges(offsets),
        lambda: np.empty((2, max(n, p), 2 * max(n, p))),
    )
    if max(wrong) >= 0:
        raise InvalidArgument(
            f"{at(min(r for r in wrong if r >= 0))} has an observation without noise, whose precision is infinite; give "
            'observation_cov= some noise there, or take form="square-root"'
        )
    before, after = _moments(*made[0]), _moments(*made[1])
    gaps = None
    if before[2].any():
        gaps = (np.asarray(before[2].any(axis=(1, 2)), dtype=np.int64), before[2], after[2])
    found = FilteredInformation(
        space=space, y=y, offset=d, offsets=offsets, before=before[0], after=after[0], slot=np.arange(rows),
        cov_before=before[1], cov_after=after[1], vague=gaps, log_prob=np.zeros(count), single=single,
        parts=made[0] + made[1],
    )  # fmt: skip
    each = _log_probs(found, seen)
    m, S = space.initial_mean[known], start[np.ix_(known, known)]
    first = 0.5 * (np.linalg.slogdet(S)[1] - m @ S @ m)
    for q, (a, b) in enumerate(pairwise(offsets.tolist())):
        told = a
        if before[2][a].any():  # densities of y and x up to where all is told, then those of y given y before
            told = next((row for row in range(a, b) if not after[2][row].any()), b)
            if told == b:
                found.log_prob[q] = np.nan
                continue
            moves = size[0] * (told - a) if len(size) == 1 else size[: told - a].sum()
            each[told] = first + constant[told] - moves
            each[told] += 0.5 * (made[1][1][told] @ after[0][told] - np.linalg.slogdet(made[1][0][told])[1])
        found.log_prob[q] = each[told:b].sum()
    return found


def _moments(precision: Array, information: Array) -> tuple[Array, Array, Array]:
    """Return means and covariances, and the projections on what is not known."""
    scale = np.sqrt(np.maximum(np.einsum("tii->ti", precision), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    values, axes = np.linalg.eigh(precision / scale[:, :, None] / scale[:, None, :])
    gone = values < _NOTHING
    inverse = np.where(gone, 0.0, 1.0 / np.where(gone, 1.0, values))
    axes = axes / scale[:, :, None]
    cov = (axes * inverse[:, None]) @ axes.swapaxes(1, 2)
    return (cov @ information[:, :, None])[:, :, 0], cov, (axes * gone[:, None]) @ axes.swapaxes(1, 2)


def _log_probs(found: Filtered, seen: Flags) -> Array:
    """Return the log density of each step's observation given those before, where all is known beforehand."""
    v = np.where(seen, found.y - found.expected, 0.0)
    F = np.where(seen[:, :, None] & seen[:, None, :], found.expected_cov, np.eye(seen.shape[1]))
    F = np.where(np.isfinite(F).all(axis=(1, 2), keepdims=True), F, np.eye(seen.shape[1]))
    square = np.einsum("ti,ti->t", v, np.linalg.solve(F, v[:, :, None])[:, :, 0])
    logs = seen.sum(axis=1) * np.log(2 * np.pi) + np.linalg.slogdet(F)[1]
    return np.asarray(-0.5 * (logs + square))
