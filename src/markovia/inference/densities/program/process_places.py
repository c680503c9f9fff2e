"""Where a function was asked for, and how what was asked is distributed: values, gradients and integrals at inputs.

A call of a process is a `Place`: inputs, and what is asked there. All of it is linear in the function, so any two places
have a covariance: derivatives are those of the covariance function, by forward differentiation along one column at a
time (every row of the matrix depends on its own input alone, so no array gets a further axis), integrals are sums with the
weights of Gauss-Legendre quadrature.

`Conditioned` is a process given what is known of it: observations that are linear in some places, perhaps with noise, or
values at places. It is one Cholesky factor that grows by a block with each further place (a posterior, a draw at more inputs
and the whitened values of a sampler are the same recursion).
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.covariances.process import GP
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp

QUADRATURE = 40
"""Points of Gauss-Legendre quadrature in an integral."""
JITTER, MOST_JITTER = 1e-9, 1e-4
"""What is added to a diagonal before it is whitened, in units of its mean; raised tenfold where that does not do."""


@dataclass
class Place:
    """A call of a function.

    Attributes
    ----------
    kind
        "value", "grad" or "integral".
    x
        Inputs, rows by columns; of an integral the lower and the upper end.
    shape
        The shape that the answer has.
    member
        Which of the functions of a plate each row is about; None where there is one function.
    of
        The function that is called.
    """

    kind: str
    x: Any
    shape: tuple[int, ...]
    member: Any = None
    of: str = "f"

    @property
    def size(self) -> int:
        """How many numbers are asked for."""
        return len(self.x) * (self.x.shape[1] if self.kind == "grad" else 1)

    def to(self, xp: Any) -> "Place":
        """Return the place with arrays of NumPy or of JAX."""
        member = None if self.member is None else xp.asarray(self.member)
        return Place(self.kind, xp.asarray(self.x, float), self.shape, member, self.of)


def same_place(a: Place, b: Place) -> bool:
    """Say whether two calls with plain numbers ask for the same."""
    alike = a.kind == b.kind and a.x.shape == b.x.shape and (a.member is None) == (b.member is None)
    return (
        alike
        and np.array_equal(np.asarray(a.x), np.asarray(b.x))
        and (a.member is None or np.array_equal(np.asarray(a.member), np.asarray(b.member)))
    )


def read_place(kind: str, arguments: Sequence[Any], member: Any = None, of: str = "f") -> Place:
    """Return the place that a call is about: a number, (n,) numbers or (n, d); further arguments are columns beside.

    Raises
    ------
    InvalidArgument
        For what is not rows of numbers.
    """
    if not arguments:
        raise InvalidArgument(f"a function is called with inputs: {of}(x)")
    if any(hasattr(a, "called_by") or callable(a) for a in arguments):
        raise InvalidArgument(
            f"{of!r} is called with numbers, and was given a function; call that one first: {of}(g(x))"
        )
    xp = jnp if any(isinstance(a, jax.Array) for a in (*arguments, member)) else np
    parts = [xp.asarray(a) for a in arguments]
    if any(p.ndim > 2 for p in parts):
        wrong = next(p.shape for p in parts if p.ndim > 2)
        raise InvalidArgument(
            f"a function is called with numbers, (n,) or (n, d) of them, not an array of shape {wrong}"
        )
    if kind == "integral" and len(parts) != 2:
        raise InvalidArgument("an integral is between two ends: f.integral(a, b)")
    rows = max((p.shape[0] for p in parts if p.ndim), default=1)
    if member is not None and np.ndim(member):
        rows = max(rows, len(member))
    columns = [
        xp.broadcast_to(
            xp.reshape(p, (-1, p.shape[1] if p.ndim == 2 else 1)), (rows, p.shape[1] if p.ndim == 2 else 1)
        )
        for p in parts
    ]
    x = columns[0] if len(columns) == 1 else xp.concatenate(columns, axis=1)
    single = all(p.ndim == 0 for p in parts) and not np.ndim(member)
    shape: tuple[Any, ...] = () if single else (rows,)
    if kind == "grad" and parts[0].ndim == 2:
        shape = (rows, x.shape[1])
    elif kind == "grad" and x.shape[1] > 1:
        raise InvalidArgument("f.grad takes all columns as one array: f.grad(x) with x of shape (n, d)")
    x = x if x.dtype.kind == "f" else xp.asarray(x, float)
    if isinstance(x, np.ndarray) and not np.isfinite(x).all():
        at = np.argwhere(~np.isfinite(x))[0]
        raise InvalidArgument(
            f"{of!r} is called with an input that is no finite number, in row {at[0]}; drop that row, or give its input a "
            "distribution"
        )
    along = None if member is None else xp.broadcast_to(xp.asarray(member), (rows,))
    return Place(kind, x, shape, along, of)


# -- covariances of places ------------------------------------------------------------------------------------------


Processes = Mapping[str, GP]
"""Functions by name; they are independent of each other."""


def covariance(processes: Processes, a: Place, b: Place | None, xp: Any) -> Any:
    """Return the covariance matrix of what two places ask for; of one with itself where there is no second."""
    other = a if b is None else b
    if a.of != other.of:
        return xp.zeros((a.size, other.size))
    cov = processes[a.of].covariance
    if a.kind == other.kind == "value":
        K = cov.value(a.x, None if b is None else b.x, xp)
    else:
        with x64():  # also where all else is NumPy
            K = xp.asarray(asked_of(a, lambda X: asked_of(other, lambda Z: cov.value(X, Z, jnp), 1), 0))
    if a.member is not None or other.member is not None:
        K = K * (_spread(a, xp)[:, None] == _spread(other, xp)[None])
    return K


def _spread(place: Place, xp: Any) -> Any:
    if place.member is None:
        raise UnsupportedModel("a function on a plate is one a element: index it, f[g](x)")
    return xp.repeat(place.member, place.x.shape[1]) if place.kind == "grad" else place.member


def asked_of(place: Place, function: Any, axis: int) -> Any:
    """Return what a place asks of a function whose values at rows of inputs run along an axis of a matrix; in JAX."""
    x = jnp.asarray(place.x)
    if place.kind == "value":
        return function(x)
    if place.kind == "integral":
        nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE)
        half = 0.5 * (x[:, 1] - x[:, 0])[:, None]
        found = function((x[:, :1] + half * (1.0 + nodes)).reshape(-1, 1))
        found = found.reshape((*found.shape[:axis], len(x), QUADRATURE, *found.shape[axis + 1 :]))
        return jnp.einsum("nq,nqm->nm" if axis == 0 else "nq,mnq->mn", half * weights, found)
    # every row of the matrix depends on its own input, so one direction for all rows is one derivative for each
    units = [jnp.zeros_like(x).at[:, j].set(1.0) for j in range(x.shape[1])]
    found = [jax.jvp(function, (x,), (unit,))[1] for unit in units]
    shape = (place.size, -1) if axis == 0 else (-1, place.size)
    return jnp.stack(found, axis=axis + 1).reshape(shape)


def mean(processes: Processes, place: Place, xp: Any) -> Any:
    """Return the mean of what a place asks for."""
    process = processes[place.of]
    if place.kind == "value":
        return process.mean_at(place.x, xp)
    with x64():
        return xp.asarray(asked_of(place, lambda x: process.mean_at(x, jnp)[:, None], 0)).reshape(-1)


# -- a process given what is known of it ------------------------------------------------------------------------------


@dataclass
class LinearSight:
    """Numbers that are linear in what some places ask for, perhaps with noise.

    Attributes
    ----------
    places
        The places, each with the matrix (numbers by what it asks for) that it enters with: a vector stands for a diagonal
        matrix, None for the identity.
    numbers
        Their values, less what does not depend on the function.
    noise
        Variances of independent noise; None for none, where a little is added for stability.
    """

    places: Sequence[tuple[Place, Any]]
    numbers: Any
    noise: Any = None

    def to(self, xp: Any) -> "LinearSight":
        """Return the same with arrays of NumPy or of JAX."""
        places = [(place.to(xp), None if M is None else xp.asarray(M)) for place, M in self.places]
        return LinearSight(
            places, xp.asarray(self.numbers), None if self.noise is None else xp.asarray(self.noise)
        )

    def mean(self, processes: Processes, xp: Any) -> Any:
        """Return the mean of the numbers."""
        return sum((times(M, mean(processes, place, xp)) for place, M in self.places), 0.0)

    def cross(self, processes: Processes, other: Place, xp: Any) -> Any:
        """Return the covariance between what another place asks for and the numbers."""
        parts = [times_right(covariance(processes, other, place, xp), M) for place, M in self.places]
        return sum(parts[1:], parts[0])

    def own(self, processes: Processes, xp: Any) -> Any:
        """Return the covariance of the numbers among each other, noise aside."""
        total: Any = 0.0
        for i, (a, A) in enumerate(self.places):
            for j, (b, B) in enumerate(self.places):
                if j < i:
                    continue
                part = times(A, times_right(covariance(processes, a, None if i == j else b, xp), B))
                total = total + part if i == j else total + part + part.T
        return total


def plain_process(process: GP) -> GP:
    """Return a process with hyper-parameters as plain numbers, for NumPy."""
    numbers = {n: np.asarray(h.value) for n, h in process.covariance.hypers().items() if h.value is not None}
    mean = process.mean if callable(process.mean) else np.asarray(process.mean)
    return GP(process.covariance.with_values(numbers), mean)


def times(M: Any, K: Any) -> Any:
    """Return a matrix times another (or a vector); a vector stands for a diagonal matrix, None for the identity."""
    if M is None:
        return K
    if M.ndim == 1:
        return M * K if K.ndim == 1 else M[:, None] * K
    return M @ K


def times_right(K: Any, M: Any) -> Any:
    """Return a matrix times the transpose of another."""
    if M is None:
        return K
    return K * M[None] if M.ndim == 1 else K @ M.T


def joint_covariance(processes: Processes, known: Sequence[LinearSight], xp: Any) -> Any:
    """Return the covariance of all known numbers among each other, noise included."""
    rows = []
    for i, one in enumerate(known):
        own = one.own(processes, xp)
        own = own if one.noise is None else own + xp.diag(xp.broadcast_to(one.noise, (len(own),)))
        left = [_stacked_cross(processes, one, old, xp) for old in known[:i]]
        rows.append([*left, own])
    if len(rows) == 1:
        return rows[0][0]
    whole = [
        [rows[max(i, j)][min(i, j)] if j <= i else rows[j][i].T for j in range(len(rows))]
        for i in range(len(rows))
    ]
    return xp.block(whole)


class Conditioned:
    """A process given what is known of it, that grows by what is drawn from it.

    Parameters
    ----------
    processes
        The functions before anything is known.
    known
        What is known of it.
    xp
        NumPy or `jax.numpy`.
    """

    def __init__(self, processes: Processes, known: LinearSight | None = None, xp: Any = jnp) -> None:
        self.processes, self.xp = processes, xp
        self.known: list[LinearSight] = []
        self.L: Any = None
        self.white: Any = None
        self.log_prob: Any = 0.0
        if known is not None:
            self.learn(known)

    def learn(self, known: LinearSight) -> None:
        """Take in what is known: one more block of the Cholesky factor, and its part of the log density."""
        K = known.own(self.processes, self.xp)
        away = known.numbers - known.mean(self.processes, self.xp)
        L21, rest = self._left(lambda old: _stacked_cross(self.processes, known, old, self.xp), K)
        diagonal = known.noise
        L22 = self._factor(rest, diagonal, K)
        if L21 is not None:
            away = away - L21 @ self.white
        white = _solve(L22, away, self.xp)
        self.log_prob = self.log_prob - 0.5 * (white @ white) - self.xp.log(self.xp.diagonal(L22)).sum()
        self.log_prob = self.log_prob - 0.5 * len(white) * np.log(2.0 * np.pi)
        self._append(known, L21, L22, white)

    def _left(self, cross: Any, K: Any) -> tuple[Any, Any]:
        """Return the block of the factor beside a new one, and the covariance that is left of the new one."""
        if self.L is None:
            return None, K
        C = self.xp.concatenate([cross(old) for old in self.known], axis=1)
        L21 = _solve(self.L, C.T, self.xp).T
        return L21, K - L21 @ L21.T

    def _factor(self, rest: Any, noise: Any, before: Any) -> Any:
        """Return the factor of the covariance of a new block given others; `before` is what it was without these."""
        if noise is not None:
            rest = rest + self.xp.diag(self.xp.broadcast_to(noise, (len(rest),)))
            return np.linalg.cholesky(rest) if self.xp is np else jnp.linalg.cholesky(rest)
        scale = self.xp.mean(self.xp.diagonal(before)) if len(rest) else 1.0
        return jittered_factor(rest, scale)[0] if self.xp is np else whitening_factor(rest, scale)

    def _append(self, known: LinearSight, L21: Any, L22: Any, white: Any) -> None:
        xp = self.xp
        if self.L is None:
            self.L, self.white = L22, white
        else:
            top = xp.concatenate([self.L, xp.zeros((len(self.L), len(L22)))], axis=1)
            self.L = xp.concatenate([top, xp.concatenate([L21, L22], axis=1)])
            self.white = xp.concatenate([self.white, white])
        self.known.append(known)

    def moments(self, place: Place, *, joint: bool = True) -> tuple[Any, Any]:
        """Return mean and covariance (or variances) of what a place asks for, given what is known."""
        xp = self.xp
        centre = mean(self.processes, place, xp)
        if joint or place.kind != "value":
            K = covariance(self.processes, place, None, xp)
        else:
            K = self.processes[place.of].covariance.diagonal(place.x, xp)
        if self.L is not None:
            C = xp.concatenate([old.cross(self.processes, place, xp) for old in self.known], axis=1)
            L21 = _solve(self.L, C.T, xp).T
            centre = centre + L21 @ self.white
            K = K - L21 @ L21.T if K.ndim == 2 else xp.maximum(K - (L21 * L21).sum(1), 0.0)
        return centre, (xp.diagonal(K) if K.ndim == 2 and not joint else K)

    def extend(self, place: Place, white: Any) -> Any:
        """Return values that a place asks for, made of standard normal numbers; from now on they are known.

        Columns of numbers are as many functions, drawn together, of which `white` then has columns, too.
        """
        K = covariance(self.processes, place, None, self.xp)
        L21, rest = self._left(lambda old: old.cross(self.processes, place, self.xp), K)
        L22 = self._factor(rest, None, K)
        centre = mean(self.processes, place, self.xp)
        value = (centre if white.ndim == 1 else centre[:, None]) + L22 @ white
        if L21 is not None:
            value = value + L21 @ self.white
        self._append(LinearSight([(place, None)], value), L21, L22, white)
        return value

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the array module; what is pickled is of NumPy."""
        return {k: v for k, v in self.__dict__.items() if k != "xp"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state, xp=np)

    def copy(self) -> "Conditioned":
        """Return the same, to be extended by itself."""
        other = object.__new__(Conditioned)
        other.__dict__.update(self.__dict__, known=list(self.known))
        return other

    def extend_all(self, places: Mapping[Any, Place], white: Any) -> dict[Any, Any]:
        """Return values of several places together, by their keys."""
        found, at = {}, 0
        for key, place in places.items():
            found[key] = self.extend(place, white[at : at + place.size])
            at += place.size
        return found


def _stacked_cross(processes: Processes, known: LinearSight, old: LinearSight, xp: Any) -> Any:
    """Return the covariance between two blocks of known numbers, the new ones in rows."""
    parts = [times(M, old.cross(processes, place, xp)) for place, M in known.places]
    return sum(parts[1:], parts[0])


def _solve(L: Any, b: Any, xp: Any) -> Any:
    """Return the solution of a lower triangular system."""
    if xp is np:
        from scipy.linalg import solve_triangular

        return solve_triangular(L, b, lower=True)
    return jax.scipy.linalg.solve_triangular(L, b, lower=True)


def jittered_factor(K: Any, scale: float) -> tuple[Any, float]:
    """Return the Cholesky factor of a matrix that may be singular, and what share of a scale was added to it; NumPy."""
    jitter, scale = JITTER, float(scale) or 1.0
    while jitter <= MOST_JITTER * 1.01:
        try:
            return np.linalg.cholesky(K + jitter * scale * np.eye(len(K))), jitter
        except np.linalg.LinAlgError:
            jitter *= 10.0
    raise InvalidArgument(
        f"the covariance matrix is not positive definite: its smallest eigenvalue is {np.linalg.eigvalsh(K)[0]:.3g}"
    )


def whitening_factor(K: Any, scale: Any) -> Any:
    """Return the Cholesky factor of a matrix that may be singular, with a share of a scale on its diagonal; in JAX.

    What is added is raised until the factor is finite; its derivative is that of the factor which was found.
    """

    @jax.custom_jvp
    def factor(K: Any, scale: Any) -> Any:
        eye = jnp.eye(len(K))

        def more(state: Any) -> Any:
            jitter, L = state
            return ~jnp.all(jnp.isfinite(L)) & (jitter < MOST_JITTER)

        def again(state: Any) -> Any:
            jitter = state[0] * 10.0
            return jitter, jnp.linalg.cholesky(K + jitter * scale * eye)

        start = (jnp.asarray(JITTER / 10.0), jnp.full_like(K, jnp.nan))
        return jax.lax.while_loop(more, again, start)[1]

    @factor.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        L = factor(*primals)
        inner = jax.scipy.linalg.solve_triangular(L, tangents[0], lower=True)
        inner = jax.scipy.linalg.solve_triangular(L, inner.T, lower=True).T
        half = jnp.tril(inner, -1) + 0.5 * jnp.diag(jnp.diagonal(inner))
        return L, L @ half

    return factor(K, jax.lax.stop_gradient(scale))


def normal_log_density(away: Any, S: Any) -> Any:
    """Return the log density of a vector with mean zero and a covariance matrix; its derivative is in closed form (JAX)."""

    @jax.custom_jvp
    def density(away: Any, S: Any) -> Any:
        L = jnp.linalg.cholesky(S)
        white = jax.scipy.linalg.solve_triangular(L, away, lower=True)
        return -0.5 * (white @ white) - jnp.log(jnp.diagonal(L)).sum() - 0.5 * len(away) * np.log(2.0 * np.pi)

    @density.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (away, S), (moved, dS) = primals, tangents
        L = jnp.linalg.cholesky(S)
        inverse = jax.scipy.linalg.cho_solve((L, True), jnp.eye(len(away)))
        alpha = inverse @ away
        value = -0.5 * (away @ alpha) - jnp.log(jnp.diagonal(L)).sum() - 0.5 * len(away) * np.log(2.0 * np.pi)
        W = 0.5 * (jnp.outer(alpha, alpha) - inverse)
        return value, jnp.vdot(W, dS) - alpha @ moved

    return density(away, S)
