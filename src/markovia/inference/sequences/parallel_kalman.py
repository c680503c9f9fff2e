"""Kalman filtering and smoothing parallel in time: associative scans in JAX, for a GPU and long sequences.

Each step becomes an element of a semigroup, and prefix products of all steps take log(steps) rounds of batched matrix
algebra instead of one round a step (Sarkka and Garcia-Fernandez 2021). Work: steps times states cubed, several times that
of the sequential filter, so on a few processors that one is faster.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.sequences.gaussian_steps import StateMoments, condition, symmetric
from markovia.inference.sequences.padded import PerSequence
from markovia.inference.sequences.state_results import FilteredStates, SmoothedStates
from markovia.inference.sequences.state_space import StateSpace
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jnp

Parallel: TypeAlias = Literal["time"] | None


class Matrices(NamedTuple):
    """The matrices of each step, (steps, ...): all but the start's have the axis."""

    A: Any
    c: Any
    Q: Any
    C: Any
    d: Any
    R: Any
    mean: Any
    cov: Any


class KalmanPasses(NamedTuple):
    """Means and covariances after, before and given everything, and the log likelihood."""

    mean: Any
    cov: Any
    predicted_mean: Any
    predicted_cov: Any
    smoothed_mean: Any
    smoothed_cov: Any
    log_prob: Any


def _step(A: Any, c: Any, Q: Any, C: Any, d: Any, R: Any, y: Any) -> Any:
    """Return a step's element: the next state given this one, and what its observation says about this one."""
    seen = ~jnp.isnan(y)
    H = jnp.where(seen[:, None], C, 0.0)
    S = H @ Q @ H.T + jnp.where(seen[:, None] & seen, R, 0.0) + jnp.diag(jnp.where(seen, 0.0, 1.0))
    away = jnp.where(seen, y - C @ c - d, 0.0)
    W = jnp.linalg.solve(S, jnp.concatenate([H, away[:, None]], axis=1))
    K = Q @ W[:, :-1].T
    keep = jnp.eye(len(A)) - K @ H
    back = A.T @ H.T
    return keep @ A, c + K @ away, symmetric(keep @ Q), back @ W[:, -1], symmetric(back @ W[:, :-1] @ A)


def _turned(M: Any) -> Any:
    return M.swapaxes(-1, -2)


def _times(M: Any, x: Any) -> Any:
    return (M @ x[..., None])[..., 0]


def _then(one: Any, two: Any) -> Any:
    """Compose filtering elements of neighbouring stretches."""
    (A, b, C, eta, J), (A2, b2, C2, eta2, J2) = one, two
    between = jnp.eye(A.shape[-1]) + C @ J2
    forth = _turned(jnp.linalg.solve(_turned(between), _turned(A2)))  # A2 (I + C J2)^-1
    back = _turned(jnp.linalg.solve(between, A))  # A' (I + J2 C)^-1
    return (
        forth @ A,
        _times(forth, b + _times(C, eta2)) + b2,
        symmetric(forth @ C @ _turned(A2) + C2),
        _times(back, eta2 - _times(J2, b)) + eta,
        symmetric(back @ J2 @ A + J),
    )


def _before(later: Any, one: Any) -> Any:
    """Compose smoothing elements of neighbouring stretches, the later one first."""
    (E2, g2, L2), (E, g, L) = later, one
    return E @ E2, _times(E, g2) + g, symmetric(E @ L2 @ _turned(E) + L)


@cache
def parallel_program(smoothing: bool) -> Callable[[Matrices, Any], KalmanPasses]:
    """Return a compiled filter, and smoother if asked for, of one sequence: (matrices, y) -> Found."""
    import jax

    def run(model: Matrices, y: Any) -> KalmanPasses:
        n = model.mean.shape[0]
        C, d, R = model.C[0], model.d[0], model.R[0]
        seen_as = StateMoments(C @ model.mean + d, C @ model.cov @ C.T, model.cov @ C.T)
        m, P, _ = condition(model.mean, model.cov, seen_as, R, y[0])
        none = jnp.zeros((n, n))
        rest = jax.vmap(_step)(
            model.A[:-1], model.c[:-1], model.Q[:-1], model.C[1:], model.d[1:], model.R[1:], y[1:]
        )
        first = (none, m, P, jnp.zeros(n), none)
        every = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)
        _, mean, cov, _, _ = jax.lax.associative_scan(_then, every)
        moved = jnp.einsum("tab,tb->ta", model.A, mean) + model.c
        spread = symmetric(model.A @ cov @ model.A.swapaxes(1, 2) + model.Q)
        before = jnp.concatenate([model.mean[None], moved[:-1]])
        before_cov = jnp.concatenate([model.cov[None], spread[:-1]])

        def seen(m: Any, P: Any, C: Any, d: Any, R: Any, y: Any) -> Any:
            return condition(m, P, StateMoments(C @ m + d, C @ P @ C.T, P @ C.T), R, y)[2]

        log_prob = jax.vmap(seen)(before, before_cov, model.C, model.d, model.R, y).sum()
        if not smoothing:
            return KalmanPasses(mean, cov, before, before_cov, None, None, log_prob)
        E = jnp.swapaxes(jnp.linalg.solve(spread, model.A @ cov), 1, 2).at[-1].set(0.0)
        g = mean - jnp.einsum("tab,tb->ta", E, moved)
        L = symmetric(cov - E @ model.A @ cov)
        _, smoothed, smoothed_cov = jax.lax.associative_scan(_before, (E, g, L), reverse=True)
        return KalmanPasses(mean, cov, before, before_cov, smoothed, smoothed_cov, log_prob)

    program: Callable[[Matrices, Any], KalmanPasses] = jax.jit(run)
    return program


def in_parallel_time(
    space: StateSpace, y: Array, offsets: Ints, c: Array, d: Array, single: bool, *, smoothing: bool
) -> tuple[FilteredStates, SmoothedStates]:
    """Run a model over sequences, one after the other, each parallel in time.

    Parameters
    ----------
    space
        The matrices, with a start that is known.
    y, offsets
        The observations, one row a step; sequence i has the rows `offsets[i]` to `offsets[i + 1]`.
    c, d
        All that is added to states and observations, one for all rows or one a row.
    single
        Whether results are those of one array, and not of a list.
    smoothing
        Whether to smooth, too; else what is returned second is empty.
    """
    if space.diffuse.any():
        raise UnsupportedModel("a diffuse start is not run in parallel; give initial_cov= finite variances")
    if y.shape[1] != space.n_observed:
        raise InvalidArgument(
            f"the sequences have {y.shape[1]} numbers a step, but the model observes {space.n_observed}"
        )
    if space.steps is not None and int(np.diff(offsets).max()) > space.steps:
        raise InvalidArgument(f"the model has matrices for {space.steps} steps only")
    parts: list[KalmanPasses] = []
    expected: list[tuple[Array, Array]] = []
    for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        T = b - a

        def each(stack: Array, T: int = T) -> Array:
            return np.broadcast_to(stack, (T, *stack.shape[1:])) if len(stack) == 1 else stack[:T]

        def own(rows: Array, a: int = a, b: int = b) -> Array:
            return np.broadcast_to(rows, (b - a, rows.shape[1])) if len(rows) == 1 else rows[a:b]

        model = Matrices(
            each(space.transition), own(c), each(space.transition_cov), each(space.observation), own(d),
            each(space.observation_cov), space.initial_mean, space.initial_cov,
        )  # fmt: skip
        with x64():
            found = KalmanPasses(
                *(None if p is None else np.array(p) for p in parallel_program(smoothing)(model, y[a:b]))
            )
        parts.append(found)
        expected.append(
            (
                np.einsum("tab,tb->ta", model.C, found.predicted_mean) + model.d,
                model.C @ found.predicted_cov @ model.C.swapaxes(1, 2) + model.R,
            )
        )
    log_prob = np.array([float(one.log_prob) for one in parts])

    def split(name: str) -> PerSequence:
        return PerSequence([getattr(one, name) for one in parts], single=single)

    filtered = FilteredStates(
        PerSequence.of(y, offsets, single), split("mean"), split("cov"), split("predicted_mean"), split("predicted_cov"),
        PerSequence([m for m, _ in expected], single=single), PerSequence([v for _, v in expected], single=single),
        log_prob,
    )  # fmt: skip
    return filtered, SmoothedStates(split("smoothed_mean"), split("smoothed_cov"), log_prob)
