"""Covariances of one column as Markov processes, for fits in linear time: `covariance.state_space()` gives a `MarkovForm`.

The function is f(x) = H s(x), and along sorted inputs the state s moves by s(x + dt) = A(dt) s(x) + noise of covariance
Q(dt), starting with covariance P0, which is stationary: P0 = A P0 A' + Q. Q is never computed as that difference, which
has no digits left for small dt. States of a Matern covariance are the derivatives of the function in units of the length:
with lambda = sqrt(2 nu) / length they are f, f' / lambda, f'' / lambda^2. So A and Q depend on a = lambda dt alone, P0 on
nothing:

    A = exp(-a) (I + N a + N^2 a^2 / 2),   N nilpotent,   dA/da = F A,   F = N - I
    Q = q int_0^a e^(-2s) c(s) c(s)' ds,   c(s) the last column of A(s) e^s,   dQ/da = q e^(-2a) c(a) c(a)'

and the integrals of s^k e^(-2s) are incomplete gamma functions: that of the highest order, and positive terms added to it.
Matern 1/2, 3/2, 5/2 have 1, 2, 3 states; a cosine is a rotation of 2 without noise, a constant 1. A sum stacks states; a
product multiplies them: Q = Q1 x P2 + (A1 P1 A1') x Q2.
"""

# ruff: noqa: N803, N806 (letters of the literature)

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np

from markovia.factors.covariances.algebra import Constant, Product, Scaled, Sum, added
from markovia.factors.covariances.covariance import Covariance
from markovia.factors.covariances.periodic import Cosine
from markovia.factors.covariances.radial import Matern
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array

HOME = "markovia.kernels.sequences.markov_process:matern_moves"
ANY = -1
"""The column of what does not depend on its inputs."""


class MarkovMoves(NamedTuple):
    """Matrices of steps, or weights on them: A and Q of shape (steps, states, states), P0 of (states, states)."""

    A: Array
    Q: Array
    P0: Array


PullMoves = Callable[[MarkovMoves], dict[tuple[int, str], Any]]
"""From weights on the matrices of steps to derivatives by free hyper-parameters: (id of the part, its name)."""
Stepper = Callable[[Array, bool], tuple[MarkovMoves, PullMoves]]
"""From steps to their matrices and what pulls weights back, where that is asked for."""


@dataclass(frozen=True)
class MarkovForm:
    """A covariance of one column as a Markov process.

    Attributes
    ----------
    H
        The vector that makes the function's value of the state, the same for all hyper-parameters.
    P0
        The covariance of the state at the first input, and at any other before anything is seen.
    column
        The column of the inputs that it runs along; None where it has to be the only one, -1 where it depends on none.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> form = (2.0 * mk.covariances.Matern32(1.5)).state_space()
    >>> A, Q = form.transition(np.array([0.0, 0.3, 1e9]))
    >>> A.shape, Q[2].round(6).tolist()
    ((3, 2, 2), [[2.0, 0.0], [0.0, 2.0]])
    """

    H: Array
    P0: Array
    column: int | None
    stepper: Stepper

    def transition(self, dt: Any) -> tuple[Array, Array]:
        """Return A and Q of steps dt of zero or more, each of shape (steps, states, states)."""
        return self.stepper(np.asarray(dt, dtype=np.float64).reshape(-1), False)[0][:2]

    def forward(self, dt: Array, moving: bool = True) -> tuple[MarkovMoves, PullMoves]:
        """Return A, Q and P0 of steps, and, where they are `moving`, what pulls weights on them back to hyper-parameters.

        A length that is an array of one number has the derivatives of that number.
        """
        return self.stepper(dt, moving)


def markov_form(covariance: Covariance) -> MarkovForm | None:
    """Return a covariance as a Markov process of few states; None where it is none."""
    if isinstance(covariance, Sum | Product):
        forms = [form for part in covariance.parts if (form := markov_form(part)) is not None]
        if len(forms) < len(covariance.parts) or len({f.column or 0 for f in forms if f.column != ANY}) > 1:
            return None
        return _joined(forms, _summed if isinstance(covariance, Sum) else _multiplied)
    if isinstance(covariance, Scaled):
        inner = markov_form(covariance.parts[0])
        return None if inner is None else _scaled(covariance, inner)
    if isinstance(covariance, Constant):  # a state that never moves
        still = MarkovForm(np.ones(1), np.ones((1, 1)), ANY, lambda dt, _: (_still(len(dt)), _nothing))
        return _scaled(covariance, still)
    name = {Matern: "length", Cosine: "period"}.get(
        Matern if isinstance(covariance, Matern) else type(covariance)
    )
    if name is None or np.size(covariance.number(name)) != 1 or len(covariance.columns or (0,)) != 1:
        return None
    unit = float(np.reshape(covariance.number(name), ()))
    H, stepper = _matern(covariance.degree) if isinstance(covariance, Matern) else _rotation()

    def steps(dt: Array, moving: bool) -> tuple[MarkovMoves, PullMoves]:
        moves, (dA, dQ), a = stepper(dt / unit, moving)

        def by_unit(W: MarkovMoves) -> float:
            by_a = np.einsum("tij,tij->t", W.A, dA) + np.einsum("tij,tij->t", W.Q, dQ)
            return float(-(a @ by_a) / unit)

        return moves, lambda W: covariance.pulled(**{name: lambda: by_unit(W)})

    P0 = stepper(np.zeros(0), False)[0].P0
    return MarkovForm(H, P0, None if covariance.columns is None else covariance.columns[0], steps)


def _nothing(_: MarkovMoves) -> dict[tuple[int, str], Any]:
    return {}


def _still(steps: int) -> MarkovMoves:
    return MarkovMoves(np.ones((steps, 1, 1)), np.zeros((steps, 1, 1)), np.ones((1, 1)))


@cache
def _matern(degree: int) -> tuple[Array, Callable[..., Any]]:
    """Return H of a Matern process and its matrices of steps in units of the length, derivatives by a = sqrt(2 nu) dt."""
    size = degree + 1
    F = np.eye(size, k=1)
    F[-1] = [-comb(size, j) for j in range(size)]
    powers = np.array([np.linalg.matrix_power(F + np.eye(size), j) / factorial(j) for j in range(size)])
    # matrices M_k of c(s) c(s)' = sum M_k s^k, times the whole integrals of s^k e^(-2s), for a function of variance 1
    M = np.zeros((2 * degree + 1, size, size))
    for i in range(size):
        for j in range(size):
            M[i + j] += np.outer(powers[i, :, -1], powers[j, :, -1]) * factorial(i + j) / 2.0 ** (i + j + 1)
    M /= M[:, 0, 0].sum()
    P0 = np.where(np.abs(M.sum(axis=0)) < 1e-14, 0.0, M.sum(axis=0))

    def steps(dt: Array, moving: bool) -> tuple[MarkovMoves, Any, Array]:
        a = np.sqrt(2.0 * degree + 1.0) * dt
        A, Q = np.empty((2, len(a), size, size))
        by_a = np.empty((2, len(a) if moving else 0, size, size))
        either(HOME, len(a) * (4 * size**3 + 60))(
            a, F, powers, M, A, Q, *by_a, np.empty(2 * size), np.empty(2 * size)
        )
        return MarkovMoves(A, Q, P0), by_a, a

    return np.eye(size)[0], steps


@cache
def _rotation() -> tuple[Array, Callable[..., Any]]:
    """Return H and the matrices of steps in units of the period of a cosine, with derivatives by the angle."""

    def turns(angle: Array) -> Array:
        return np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], -1).reshape(-1, 2, 2)

    def steps(dt: Array, moving: bool) -> tuple[MarkovMoves, Any, Array]:
        angle = 2.0 * np.pi * dt
        none = np.zeros((len(dt), 2, 2))
        return MarkovMoves(turns(angle), none, np.eye(2)), (turns(angle + 0.5 * np.pi), none), angle

    return np.eye(2)[0], steps


def _scaled(covariance: Covariance, inner: MarkovForm) -> MarkovForm:
    """Return the form of a variance times a form."""
    v = float(covariance.number("variance"))

    def steps(dt: Array, moving: bool) -> tuple[MarkovMoves, PullMoves]:
        m, pull_inner = inner.stepper(dt, moving)

        def pull(W: MarkovMoves) -> dict[tuple[int, str], Any]:
            own = covariance.pulled(variance=lambda: np.vdot(W.Q, m.Q) + np.vdot(W.P0, m.P0))
            return {**own, **pull_inner(MarkovMoves(W.A, v * W.Q, v * W.P0))}

        return MarkovMoves(m.A, v * m.Q, v * m.P0), pull

    return MarkovForm(inner.H, np.asarray(v * inner.P0, np.float64), inner.column, steps)


def _joined(
    forms: list[MarkovForm], join: Callable[[MarkovForm, MarkovForm, int | None], MarkovForm]
) -> MarkovForm:
    """Return the form of a sum (join: `_summed`) or of a product (`_multiplied`) of forms along one column."""
    along = {f.column for f in forms if f.column != ANY} or {ANY}
    column = None if None in along else along.pop()  # None, the only one there is, is the stricter word
    return reduce(lambda one, two: join(one, two, column), forms)


def _summed(one: MarkovForm, two: MarkovForm, column: int | None) -> MarkovForm:
    """Return the form of a sum: states side by side."""
    a = len(one.H)

    def steps(dt: Array, moving: bool) -> tuple[MarkovMoves, PullMoves]:
        (m, pull_m), (n, pull_n) = one.stepper(dt, moving), two.stepper(dt, moving)

        def pull(W: MarkovMoves) -> dict[tuple[int, str], Any]:
            return added(
                [
                    pull_m(MarkovMoves(*(w[..., :a, :a] for w in W))),
                    pull_n(MarkovMoves(*(w[..., a:, a:] for w in W))),
                ]
            )

        return MarkovMoves(*map(_blocks, m, n)), pull

    return MarkovForm(np.concatenate([one.H, two.H]), _blocks(one.P0, two.P0), column, steps)


def _multiplied(one: MarkovForm, two: MarkovForm, column: int | None) -> MarkovForm:
    """Return the form of a product: every pair of states, Q = Q1 x P2 + (A1 P1 A1') x Q2."""
    a, b = len(one.H), len(two.H)

    def steps(dt: Array, moving: bool) -> tuple[MarkovMoves, PullMoves]:
        (m, pull_m), (n, pull_n) = one.stepper(dt, moving), two.stepper(dt, moving)
        kept = m.A @ m.P0 @ m.A.swapaxes(1, 2)  # what is left of a state's own covariance after a step

        def pull(W: MarkovMoves) -> dict[tuple[int, str], Any]:
            A, Q, P0 = (w.reshape(*w.shape[:-2], a, b, a, b) for w in W)
            by_kept = np.einsum("tikjl,tkl->tij", Q, n.Q)
            mine = MarkovMoves(
                np.einsum("tikjl,tkl->tij", A, n.A) + (by_kept + by_kept.swapaxes(1, 2)) @ m.A @ m.P0,
                np.einsum("tikjl,kl->tij", Q, n.P0),
                np.einsum("ikjl,kl->ij", P0, n.P0) + (m.A.swapaxes(1, 2) @ by_kept @ m.A).sum(axis=0),
            )
            its = MarkovMoves(
                np.einsum("tikjl,tij->tkl", A, m.A),
                np.einsum("tikjl,tij->tkl", Q, kept),
                np.einsum("ikjl,ij->kl", P0, m.P0) + np.einsum("tikjl,tij->kl", Q, m.Q),
            )
            return added([pull_m(mine), pull_n(its)])

        return MarkovMoves(_kron(m.A, n.A), _kron(m.Q, n.P0) + _kron(kept, n.Q), _kron(m.P0, n.P0)), pull

    return MarkovForm(np.asarray(np.kron(one.H, two.H), np.float64), _kron(one.P0, two.P0), column, steps)


def _blocks(one: Array, two: Array) -> Array:
    """Return matrices on the diagonal of larger ones, for all steps."""
    a, b = one.shape[-1], two.shape[-1]
    whole = np.zeros((*one.shape[:-2], a + b, a + b))
    whole[..., :a, :a], whole[..., a:, a:] = one, two
    return whole


def _kron(one: Array, two: Array) -> Array:
    """Return Kronecker products for all steps; what has no steps is the same at each."""
    found = np.einsum("...ij,...kl->...ikjl", one, two)
    size = one.shape[-1] * two.shape[-1]
    return np.asarray(found.reshape(*found.shape[:-4], size, size))
