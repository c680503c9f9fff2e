"""Linear systems with quadratic costs: the best control is linear in the state, or in its mean where it is only observed.

    x[t+1] = A x[t] + B u[t] + offset + N(0, noise),   y[t] = C x[t] + N(0, observation_noise)
    cost of a step: x'Q x + u'R u + 2 x'N u + 2 q'x + 2 r'u + constant

Method: the Riccati recursion of control is that of a Kalman filter of the dual system (A', B', Q, R) run backwards, so it is
run by the Kalman kernels. Without a horizon it runs until it rests, or, where that takes long, by doubling (Anderson 1978),
which takes the logarithm of the steps. Observed states are estimated by the filter, and the control takes their means
(certainty equivalence; Joseph and Tou 1961). Values are minus costs. References: Kalman (1960); Anderson and Moore (1990).

Cost: states cubed a step; without a horizon a few hundred steps, or a few dozen doublings.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.decisions.numbers.feedback import Feedback
from markovia.inference.decisions.processes.value_bounds import DISCOUNT
from markovia.inference.result import Info
from markovia.inference.sequences.kalman_filter import KalmanFilter
from markovia.inference.sequences.state_space import StateSpace
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NumberRange, check, check_count, check_number, numbers
from markovia.runtime.clock import Stopwatch

STEPS = 512
"""Steps of the recursion before it is doubled."""
DOUBLINGS = 60
_ANY = NumberRange(open="both", said="a finite number")
SINGULAR = 1e-12
"""A matrix with an eigenvalue below this part of the largest one is singular; below minus that it is no cost at all."""


@dataclass(frozen=True, eq=False, repr=False)
class LinearQuadratic:
    """A linear system, what its steps cost, and what is observed of it.

    Parameters
    ----------
    A, B
        (n, n) and (n, m): what a step makes of states and controls.
    Q, R, N
        (n, n), (m, m) and (n, m): costs of squares; N, by default 0, of products of states and controls.
    noise
        (n, n), the covariance of a step's noise; by default 0.
    C, observation_noise
        (p, n) and (p, p), what is observed and the covariance of its noise; without C the state is.
    offset, observation_offset
        What is added in each step.
    q, r, constant
        Half the linear costs of states and controls, and what each step costs anyway.
    final
        (n, n), the cost of the state after a horizon; by default 0.
    initial_mean, initial_cov
        The law of the first state; by default 0, known.
    states, controls, heard
        Names of the numbers, where they have names.

    Examples
    --------
    >>> walk = LinearQuadratic(1, 1, 1, 1, final=1, initial_mean=[1.0])
    >>> feedback = regulate(walk, horizon=2)
    >>> feedback.act([1.0]).round(6).tolist()
    [-0.6]
    """

    A: Any
    B: Any
    Q: Any
    R: Any
    N: Any = None
    noise: Any = None
    C: Any = None
    observation_noise: Any = None
    offset: Any = None
    observation_offset: Any = None
    q: Any = None
    r: Any = None
    constant: float = 0.0
    final: Any = None
    initial_mean: Any = None
    initial_cov: Any = None
    states: Sequence[str] = ()
    controls: Sequence[str] = ()
    heard: Sequence[str] = ()

    def __post_init__(self) -> None:
        A, B = _matrix("A", self.A), _matrix("B", self.B)
        n, m = len(A), B.shape[1]
        kept = {"A": _shaped("A", A, (n, n)), "B": _shaped("B", B, (n, m))}
        for name, shape in {
            "Q": (n, n),
            "R": (m, m),
            "N": (n, m),
            "noise": (n, n),
            "final": (n, n),
            "initial_cov": (n, n),
        }.items():
            given = getattr(self, name)
            kept[name] = np.zeros(shape) if given is None else _shaped(name, _matrix(name, given), shape)
        for name, size in {"offset": n, "q": n, "r": m, "initial_mean": n}.items():
            kept[name] = _vector(name, getattr(self, name), size)
        if self.C is not None:
            C = _shaped("C", _matrix("C", self.C), (None, n))
            given = np.zeros((len(C),) * 2) if self.observation_noise is None else self.observation_noise
            kept["C"] = C
            kept["observation_noise"] = _shaped(
                "observation_noise", _matrix("observation_noise", given), (len(C),) * 2
            )
            kept["observation_offset"] = _vector("observation_offset", self.observation_offset, len(C))
        for name in ("Q", "R", "noise", "final", "initial_cov", "observation_noise"):
            if name in kept:
                kept[name] = _semidefinite(name, kept[name])
        check("constant", self.constant, _ANY)
        for name, value in kept.items():
            object.__setattr__(self, name, value)
        if least_share(self.R) <= SINGULAR:
            raise InvalidArgument("R= is positive definite: every control costs something")
        whole = np.block([[self.Q, self.N], [self.N.T, self.R]])
        _semidefinite("the cost of states and controls together, [[Q, N], [N', R]],", whole)

    @property
    def n_states(self) -> int:
        """How many numbers the state has."""
        return len(self.A)

    def __repr__(self) -> str:
        seen = "" if self.C is None else f", {len(self.C)} observed"
        return f"LinearQuadratic({self.n_states} states, {self.B.shape[1]} controls{seen})"


def regulate(
    system: LinearQuadratic,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    average: bool = False,
    tolerance: float = 1e-12,
) -> Feedback:
    """Return the best control of a linear system with quadratic costs.

    Parameters
    ----------
    system
        What is controlled.
    horizon, discount, average
        Exactly one: how many controls there are; what a cost a step later counts, below 1; or whether the mean cost of a
        step in the long run counts.
    tolerance
        The residual of the Riccati equation that is small enough, as a part of its solution.

    Raises
    ------
    UnsupportedModel
        Where no control keeps costs bounded, or what is observed does not tell a growing state.

    Examples
    --------
    >>> cart = LinearQuadratic([[1, 0.1], [0, 1]], [[0], [0.1]], np.diag([1, 0.1]), 0.01)
    >>> regulate(cart, average=True).gain.round(8).tolist()
    [[7.60447174, 4.97764814]]
    """
    if (horizon is not None) + (discount is not None) + bool(average) != 1:
        raise InvalidArgument("give exactly one of horizon=, discount= and average=True")
    check_count("horizon", horizon, 1, none=True)
    check_number("tolerance", tolerance, positive=True)
    if discount is not None:
        check("discount", discount, DISCOUNT)
    watch = Stopwatch()
    if horizon is not None:
        return _of_horizon(system, horizon, watch)
    return _stationary(system, 1.0 if discount is None else discount, tolerance, watch)


def riccati_steps(A: Array, B: Array, Q: Array, R: Array, start: Array, count: int) -> Array:
    """Return the costs of states before 0, 1, ... count steps, (count + 1, n, n): a Kalman filter of the dual system.

    Examples
    --------
    >>> riccati_steps(np.eye(1), np.eye(1), np.eye(1), np.eye(1), np.eye(1), 1)[:, 0, 0].tolist()
    [1.0, 1.5]
    """
    n, m = B.shape
    dual = _state_space(A.T, Q, B.T, R, np.zeros(n), start)
    run = KalmanFilter(dual, np.zeros((count + 1, m)), np.array([0, count + 1]))
    return np.asarray(run.gains.before[run.gains.slot])


def _state_space(T: Array, Q: Array, Z: Array, H: Array, mean: Array, cov: Array) -> StateSpace:
    """Return the model that the Kalman kernels run over."""
    T, Q, Z, H = (np.ascontiguousarray(part)[None] for part in (T, Q, Z, H))
    n, p = T.shape[-1], Z.shape[-2]
    return StateSpace(T, Q, Z, H, np.zeros((1, n)), np.zeros((1, p)), mean, cov, np.zeros(n, dtype=bool))


class Resting(NamedTuple):
    """Where a Riccati recursion rests, and its residual there, as a part of it; None where it grows without bound."""

    matrix: Array | None
    residual: float


def riccati_rest(A: Array, B: Array, Q: Array, R: Array, tolerance: float) -> Resting:
    """Return where the costs of states come to rest, from 0 on.

    Examples
    --------
    >>> golden = riccati_rest(np.eye(1), np.eye(1), np.eye(1), np.eye(1), 1e-12)
    >>> golden.matrix.round(6).tolist()
    [[1.618034]]
    """
    with np.errstate(all="ignore"):
        P = riccati_steps(A, B, Q, R, np.zeros_like(Q), STEPS)[-1]
        if _residual(A, B, Q, R, P) > tolerance and least_share(R) > SINGULAR:
            P = _doubled(A, B @ np.linalg.solve(R, B.T), Q)
            if np.isfinite(P).all():
                P = riccati_steps(A, B, Q, R, P, 2)[-1]
        residual = _residual(A, B, Q, R, P)
    return Resting(P if residual <= max(1e3 * tolerance, 1e-9) else None, residual)


def _residual(A: Array, B: Array, Q: Array, R: Array, P: Array) -> float:
    """Return the largest entry that a step changes, as a part of the largest there is."""
    if not np.isfinite(P).all():
        return np.inf
    G = B.T @ P @ A
    after = Q + A.T @ P @ A - G.T @ np.linalg.solve(R + B.T @ P @ B, G)
    return float(np.abs(after - P).max() / (np.abs(P).max() or 1.0))


def _doubled(A: Array, G: Array, H: Array) -> Array:
    """Return the Riccati recursion after two to the power of many steps from 0 (structured doubling)."""
    unit = np.eye(len(A))
    for _ in range(DOUBLINGS):
        before = H
        W = unit + G @ H
        if not np.isfinite(W).all() or np.linalg.cond(W) > 1e15:
            return np.full_like(H, np.inf)
        solved = np.linalg.solve(W, np.hstack([A, G]))
        E, F = solved[:, : len(A)], solved[:, len(A) :]
        A, G, H = A @ E, G + A @ F @ A.T, H + A.T @ H @ E
        H, G = (H + H.T) / 2.0, (G + G.T) / 2.0
        if np.abs(H - before).max() <= 1e-16 * np.abs(H).max():
            break
    return H


def _pieces(s: LinearQuadratic, P: Array, p: Array, discount: float) -> tuple[Array, Array, Array]:
    """Return the gain K and the push k of u = -K x - k, and M, where P and p are paid after the step."""
    M = s.R + discount * s.B.T @ P @ s.B
    G = s.N.T + discount * s.B.T @ P @ s.A
    g = s.r + discount * (P @ s.offset + p) @ s.B
    solved = np.linalg.solve(M, np.concatenate([G, g[..., None]], axis=-1))
    return solved[..., :-1], solved[..., -1], M


def _without_cross(s: LinearQuadratic) -> tuple[Array, Array]:
    """Return the A and Q of the same costs without products of states and controls: u = v - inverse(R) N' x."""
    moved = np.linalg.solve(s.R, s.N.T)
    return s.A - s.B @ moved, s.Q - s.N @ moved


def _of_horizon(s: LinearQuadratic, horizon: int, watch: Stopwatch) -> Feedback:
    A, Q = _without_cross(s)
    P = riccati_steps(A, s.B, Q, s.R, s.final, horizon)[::-1]
    p = np.zeros((horizon + 1, s.n_states))
    if s.q.any() or s.r.any() or s.offset.any():
        K, _, _ = _pieces(s, P[1:], p[1:], 1.0)
        # a step of the linear part, whose terms but one are known beforehand
        closed = s.A - s.B @ K
        known = s.q - s.r @ K + np.einsum("tij,ti->tj", closed, P[1:] @ s.offset)
        for t in range(horizon - 1, -1, -1):
            p[t] = known[t] + p[t + 1] @ closed[t]
    K, k, M = _pieces(s, P[1:], p[1:], 1.0)
    paid = _constants(s, P[1:], p[1:], k, M, 1.0)
    doubt = np.zeros(horizon)
    if s.C is not None:
        after = filter_covariances(s, horizon)
        doubt = np.einsum("tji,tjk,tkl,tli->t", K, M, K, after)
    left = np.append(np.cumsum((paid + doubt)[::-1])[::-1], 0.0)
    value = -(_expected(s, P[0], p[0]) + left[0])
    info = Info(
        "linear-quadratic",
        exact=True,
        iterations=horizon,
        seconds=watch.seconds,
        compile_seconds=watch.compile_seconds,
    )
    return Feedback(s, float(value) + 0.0, K, k, P, p, left, info, horizon=horizon)


def _stationary(s: LinearQuadratic, discount: float, tolerance: float, watch: Stopwatch) -> Feedback:
    A, Q = _without_cross(s)
    root = np.sqrt(discount)
    rest = riccati_rest(root * A, root * s.B, Q, s.R, tolerance)
    if rest.matrix is None:
        raise UnsupportedModel(_growing(root * s.A, root * s.B))
    P, n = rest.matrix, s.n_states
    K, _, M = _pieces(s, P, np.zeros(n), discount)
    closed = s.A - s.B @ K
    p = np.zeros(n)
    if s.q.any() or s.r.any() or s.offset.any():
        known = s.q - K.T @ s.r + discount * closed.T @ P @ s.offset
        p = np.linalg.solve(np.eye(n) - discount * closed.T, known)
    K, k, M = _pieces(s, P, p, discount)
    rate = float(_constants(s, P, p, k, M, discount))
    doubt, resting = _doubt(s, K.T @ M @ K, discount, tolerance)
    if discount == 1.0:
        value, left = -(rate + doubt), np.zeros(())
    else:
        left = np.asarray(rate / (1.0 - discount) + doubt)
        value = -(_expected(s, P, p) + float(left))
    info = Info(
        "linear-quadratic", exact=True, converged=rest.residual <= tolerance, error=rest.residual, seconds=watch.seconds,
        compile_seconds=watch.compile_seconds,
    )  # fmt: skip
    return Feedback(s, float(value) + 0.0, K, k, P, p, left, info, discount=discount, filter_cov=resting)


def _constants(s: LinearQuadratic, P: Array, p: Array, k: Array, M: Array, discount: float) -> Array:
    """Return what a step costs whatever the state, where P and p are paid after it."""
    noise = np.einsum("...ij,ji->...", P, s.noise) + (P @ s.offset) @ s.offset + 2.0 * p @ s.offset
    return np.asarray(s.constant + discount * noise - np.einsum("...i,...ij,...j->...", k, M, k))


def _expected(s: LinearQuadratic, P: Array, p: Array) -> float:
    mean = s.initial_mean
    return float(mean @ P @ mean + 2.0 * p @ mean + np.trace(P @ s.initial_cov))


def filter_covariances(s: LinearQuadratic, count: int) -> Array:
    """Return the covariances of the first states given what was observed up to them, (count, n, n).

    Examples
    --------
    >>> walk = LinearQuadratic(1, 1, 1, 1, noise=1, C=1, observation_noise=1, initial_cov=1)
    >>> filter_covariances(walk, 2)[:, 0, 0].round(6).tolist()
    [0.5, 0.6]
    """
    space = _state_space(s.A, s.noise, s.C, s.observation_noise, s.initial_mean, s.initial_cov)
    run = KalmanFilter(space, np.zeros((count, len(s.C))), np.array([0, count]))
    return np.asarray(run.gains.after[run.gains.slot])


def _doubt(
    s: LinearQuadratic, weight: Array, discount: float, tolerance: float
) -> tuple[float, Array | None]:
    """Return what it costs that the state is only observed, a step or discounted, and the covariance that remains."""
    if s.C is None:
        return 0.0, None
    rest = riccati_rest(s.A.T, s.C.T, s.noise, s.observation_noise, tolerance)
    if rest.matrix is None:
        raise UnsupportedModel(
            "what is observed does not tell a state that grows or wanders for ever, so that its variance has no "
            "bound; observe more of it"
        )
    S = rest.matrix
    seen = s.C @ S
    resting = S - seen.T @ np.linalg.lstsq(seen @ s.C.T + s.observation_noise, seen, rcond=None)[0]
    if discount == 1.0:
        return float(np.trace(weight @ resting)), resting
    each = np.einsum("ij,tji->t", weight, filter_covariances(s, STEPS))
    powers = discount ** np.arange(STEPS)
    return float(each @ powers + np.trace(weight @ resting) * discount**STEPS / (1.0 - discount)), resting


def _growing(A: Array, B: Array) -> str:
    """Say which mode of a system no control reaches."""
    modes = np.linalg.eigvals(A)
    for mode in modes[np.argsort(-np.abs(modes))]:
        if abs(mode) < 1.0 - 1e-9:
            break
        reach = np.linalg.svd(np.hstack([A - mode * np.eye(len(A)), B.astype(complex)]), compute_uv=False)
        if reach[-1] <= 1e-9 * max(1.0, reach[0]):
            size = f"{mode.real:.4g}" if abs(mode.imag) < 1e-12 else f"{mode:.4g}"
            return (
                f"no control reaches the mode of A with eigenvalue {size}, so that costs grow without bound; "
                "give B= a way to it, or take horizon="
            )
    return "the Riccati equation does not come to rest; take horizon="


def least_share(matrix: Array) -> float:
    """Return the least eigenvalue of a symmetric matrix as a part of the largest.

    Examples
    --------
    >>> least_share(np.diag([4.0, 1.0]))
    0.25
    """
    values = np.linalg.eigvalsh(matrix)
    return float(values[0] / (np.abs(values).max() or 1.0))


def _matrix(name: str, value: Any) -> Array:
    found = np.atleast_2d(numbers(value, f"{name}= is a matrix of numbers"))
    if found.ndim != 2 or not found.size or not np.isfinite(found).all():
        raise InvalidArgument(f"{name}= is a matrix of finite numbers")
    return np.ascontiguousarray(found)


def _vector(name: str, value: Any, size: int) -> Array:
    found = np.zeros(size) if value is None else np.atleast_1d(numbers(value, f"{name}= holds numbers"))
    if found.shape != (size,) or not np.isfinite(found).all():
        raise InvalidArgument(f"{name}= holds {size} finite numbers, not the shape {found.shape}")
    return found


def _shaped(name: str, found: Array, shape: tuple[int | None, int | None]) -> Array:
    if any(want not in (None, have) for want, have in zip(shape, found.shape, strict=True)):
        raise InvalidArgument(
            f"{name}= is {' by '.join(str(w or 'any') for w in shape)}, not of shape {found.shape}"
        )
    return found


def _semidefinite(name: str, found: Array) -> Array:
    """Return a matrix made symmetric, or raise where it is not, or has a negative eigenvalue."""
    scale = np.abs(found).max() or 1.0
    if np.abs(found - found.T).max() > 1e-9 * scale:
        raise InvalidArgument(f"{name}{'=' if name.isidentifier() else ''} is symmetric")
    found = (found + found.T) / 2.0
    if least_share(found) < -SINGULAR * 10:
        raise InvalidArgument(
            f"{name}{'=' if name.isidentifier() else ''} has a negative eigenvalue, {np.linalg.eigvalsh(found)[0]:.4g}"
        )
    return found
