"""What is known of a function that is a Markov process along one input: moments and draws in linear time.

New inputs are merged with those of the data and passed by the same filter and backward pass, as rows without an
observation; inputs may come in any order, and repeat. Covariances between new inputs follow from products of transitions
between neighbours (de Jong and MacKinnon 1988). Draws are of whole states, by filtering forwards and sampling backwards;
a state makes the past and the future independent, so a function that was drawn is completed at further inputs from the
two states beside them.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from markovia.factors.covariances.markov_form import MarkovForm
from markovia.inference.gaussian.function_values import FunctionMoments, FunctionPosterior, as_rows, root
from markovia.inference.result import Info
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator

HOME = "markovia.kernels.sequences.markov_process:"
SINGULAR = 1e-14
"""Directions of a state whose variance is below this part of the largest are known already."""


class MarkovFiltered(NamedTuple):
    """What the filter found: its log likelihood, predicted moments, and each observation's variance and error."""

    value: float
    A: Array
    Q: Array
    seen: Any
    means: Array
    covs: Array
    spread: Array
    away: Array


def markov_filter(
    form: MarkovForm, noise: float, times: Array, y: Array, keep: bool = True, moves: Any = None
) -> MarkovFiltered:
    """Filter observations at sorted inputs; those that are NaN are not there. The process's `moves` may be known.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where an observation without noise repeats what is known.
    """
    A, Q = form.transition(np.diff(times)) if moves is None else moves[:2]
    n, s = len(y), len(form.H)
    seen = np.isfinite(y).astype(np.int8)
    room = n if keep else 0
    arrays = [np.zeros((room, *shape)) for shape in ((s,), (s, s), (), ())]
    value, at = either(HOME + "markov_filter", n * (s**3 * 5 + 20))(
        *map(np.ascontiguousarray, (A, Q, form.P0, form.H)), noise, y, seen, keep, *arrays, *room_for(s, 3)
    )
    if at >= 0:
        raise np.linalg.LinAlgError(
            f"the input {times[at]:g} repeats others, or is as good as equal, and there is no noise; add a White, or drop it"
        )
    return MarkovFiltered(float(value), A, Q, seen, *arrays)


def markov_backward(
    form: MarkovForm, found: MarkovFiltered, gradient: bool
) -> tuple[float, Array, Array, Array, Array]:
    """Return the derivative by the noise, r and N of all rows, and those by A and Q; none of these without `gradient`."""
    n, s = found.means.shape
    r, N = np.empty((n, s)), np.empty((n, s, s))
    by_moves = np.zeros((2, n - 1 if gradient else 0, s, s))
    backward = either(HOME + "markov_backward", n * (s**3 * (10 if gradient else 5) + 25))
    by_noise = backward(np.ascontiguousarray(found.A), form.H, *found[3:], r, N, *by_moves, *room_for(s, 3))
    return by_noise, r, N, *by_moves


def room_for(states: int, vectors: int) -> list[Array]:
    """Return what kernels compute in: some vectors and two matrices."""
    return [np.empty(states) for _ in range(vectors)] + [np.empty((states, states)) for _ in range(2)]


class MarkovPosterior(FunctionPosterior):
    """A function along one input given noisy values of it, as a Markov process.

    Parameters
    ----------
    form
        The process.
    noise
        The variance of the noise of values.
    times, y
        Inputs in order, and values at them.
    log_evidence
        The log density of the values.
    """

    def __init__(self, form: MarkovForm, noise: float, times: Array, y: Array, log_evidence: float) -> None:
        self._form, self._noise, self._times, self._y = form, noise, times, y
        self.info = Info("state-space", exact=True, log_evidence=log_evidence)

    def moments(self, X: Array, *, joint: bool = False) -> FunctionMoments:
        """Return the mean and variances, or the covariance matrix, at the rows of X."""
        new, form = _along(form_column(self._form), X), self._form
        order = np.argsort(np.concatenate([self._times, new]), kind="stable")
        times = np.concatenate([self._times, new])[order]
        found = markov_filter(
            form, self._noise, times, np.concatenate([self._y, np.full(len(new), np.nan)])[order]
        )
        _, r, N, _, _ = markov_backward(form, found, False)
        rows = np.flatnonzero(order >= len(self._times))
        place = order[rows] - len(self._times)
        P, N = found.covs[rows], N[rows]
        seen = P @ form.H
        means = np.empty((1, len(new)))
        means[0, place] = found.means[rows] @ form.H + np.einsum("ti,ti->t", seen, r[rows])
        if not joint:
            variances = np.empty((1, len(new)))
            variances[0, place] = seen @ form.H - np.einsum("ti,tij,tj->t", seen, N, seen)
            return FunctionMoments(means, np.maximum(variances, 0.0))
        steps = np.zeros((len(new), len(form.H), len(form.H)))
        asked = (order >= len(self._times)).astype(np.int8)
        either(HOME + "markov_products", len(times) * (len(form.H) ** 3 + 4) * 2.5)(
            np.ascontiguousarray(found.A),
            form.H,
            found.seen,
            found.covs,
            found.spread,
            asked,
            steps,
            *room_for(len(form.H), 1),
        )
        # Cov(x_i, x_k) = P_i T_i' ... T_(k-1)' (I - N_k P_k): rows H P_i T' ... grow by one with each k
        carried, covariance = np.empty((0, len(form.H))), np.empty((len(new), len(new)))
        ends = form.H - np.einsum("tij,tj->ti", N, seen)
        for k in range(len(new)):
            carried = np.vstack([carried, seen[k]])
            covariance[place[k], place[: k + 1]] = covariance[place[: k + 1], place[k]] = carried @ ends[k]
            carried = carried @ steps[k].T
        return FunctionMoments(means, covariance[None])

    def draws(self, n: int, seed: Seed = None) -> Callable[[Any], Array]:
        """Return n functions: states drawn at the rows, and completed at inputs as they are asked for."""
        rng, form = generator(seed), self._form
        found = markov_filter(form, self._noise, self._times, self._y)
        # filtered moments: what is seen at a row itself, too
        K = (
            np.where(found.seen[:, None] > 0, found.covs @ form.H, 0.0)
            / np.where(found.seen > 0, found.spread, 1.0)[:, None]
        )
        means = (found.means + K * found.away[:, None])[:, None]
        covs = found.covs - (K * found.spread[:, None])[:, :, None] * K[:, None]
        gains, rest = _smoothed(found.A, found.Q, covs[:-1], found.covs[1:])
        states = means + rng.standard_normal((len(covs), n, len(form.H))) @ root_of(
            np.concatenate([rest, covs[-1:]])
        )
        states[:-1] -= found.means[1:, None] @ gains.swapaxes(1, 2)
        either(HOME + "backward_states", 5 * states.size)(
            np.ascontiguousarray(gains), np.zeros(len(states), np.int8), states
        )
        times = self._times

        def functions(X: Any) -> Array:
            nonlocal times, states
            asked = _along(form_column(form), as_rows(X))
            fresh = np.setdiff1d(asked, times)
            if len(fresh):
                times, states = _completed(form, times, states, fresh, rng)
            return np.asarray((states[np.searchsorted(times, asked)] @ form.H).T)

        return functions


def form_column(form: MarkovForm) -> int | None:
    """Return the column of the inputs that a process runs along; None where it has to be the only one."""
    return 0 if form.column == -1 else form.column


def _along(column: int | None, X: Array) -> Array:
    return np.ascontiguousarray(X[:, column or 0])


def _smoothed(A: Array, Q: Array, P: Array, ahead: Array) -> tuple[Array, Array]:
    """Return gains and covariances of states given the ones after them, from covariances before and predicted ones."""
    size = np.sqrt(np.maximum(np.einsum("tii->ti", ahead), np.finfo(float).tiny))
    scaled = ahead / (size[:, :, None] * size[:, None])
    inverse = np.linalg.pinv(scaled, rcond=SINGULAR, hermitian=True) / (size[:, :, None] * size[:, None])
    gains = P @ A.swapaxes(1, 2) @ inverse
    kept = np.eye(P.shape[1]) - gains @ A
    # a sum of squares stays a covariance, however little is left
    return gains, kept @ P @ kept.swapaxes(1, 2) + gains @ Q @ gains.swapaxes(1, 2)


def root_of(covs: Array) -> Array:
    """Return transposed roots of covariance matrices whose entries may differ by many orders of size."""
    size = np.sqrt(np.maximum(np.einsum("tii->ti", covs), np.finfo(float).tiny))
    return np.asarray(root(covs / (size[:, :, None] * size[:, None])).swapaxes(1, 2) * size[:, None])


def _completed(form: MarkovForm, times: Array, states: Array, fresh: Array, rng: Any) -> tuple[Array, Array]:
    """Return inputs and states with fresh inputs among them, drawn given the states on both sides."""
    merged = np.concatenate([times, fresh])
    order = np.argsort(merged, kind="stable")
    merged, new = merged[order], order >= len(times)
    whole = np.concatenate([states, np.zeros((len(fresh), *states.shape[1:]))])[order]
    # from the known state to the left; where there is none, from nothing
    left = np.maximum.accumulate(np.where(new, -1, np.arange(len(merged))))
    rows = np.flatnonzero(new)

    def ahead(at: Any) -> tuple[Array, Array]:
        start = left[rows]
        A, Q = form.transition(
            merged[at] - merged[np.maximum(start, 0)] * (start >= 0) - merged[at] * (start < 0)
        )
        none = (start < 0)[:, None, None]
        return np.where(none, 0.0, whole[np.maximum(start, 0)] @ A.swapaxes(1, 2)), np.where(none, form.P0, Q)

    after = np.minimum(rows + 1, len(merged) - 1)
    (means, covs), (later, predicted) = ahead(rows), ahead(after)
    A, Q = form.transition(merged[after] - merged[rows])
    gains, rest = _smoothed(A, Q, covs, predicted)
    last = rows == len(merged) - 1
    gains[last], rest[last] = 0.0, covs[last]
    noise = rng.standard_normal((len(rows), *states.shape[1:])) @ root_of(rest)
    whole[rows] = means - later @ gains.swapaxes(1, 2) + noise
    moves = np.zeros((len(merged), *gains.shape[1:]))
    moves[rows] = gains
    either(HOME + "backward_states", 5 * whole.size)(moves, (~new).astype(np.int8), whole)
    return merged, whole
