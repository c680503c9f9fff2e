"""Covariances of the product of two inputs, linear, polynomial and arc-cosine, and Brownian motion: none is stationary."""

# ruff: noqa: D102, N803, N806 (the methods of `Covariance`; letters of the literature)

from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import spread
from markovia.factors.covariances.covariance import Covariance, Pull, one_or_each
from markovia.factors.covariances.periodic import summed
from markovia.factors.covariances.radial import squared_distances, traced
from markovia.runtime.array_types import Array


class Linear(Covariance):
    """The covariance of a linear function, sum_j variance_j (x_j - offset_j) (z_j - offset_j).

    Parameters
    ----------
    variance
        The variance of the slopes, one number or one a column.
    offset
        Where all such functions are zero, one number or one a column; None is fitted.
    columns
        The columns of the inputs that it looks at.

    Examples
    --------
    A straight line whose two weights have variance 1 is 1 + x z:

    >>> import markovia as mk
    >>> (mk.covariances.Constant(1.0) + mk.covariances.Linear(1.0)).value([[2.0]], [[3.0]]).tolist()
    [[7.0]]
    """

    supports: ClassVar = {"variance": "positive", "offset": "real"}

    def __init__(self, variance: Any = None, offset: Any = 0.0, *, columns: Any = None) -> None:
        super().__init__({"variance": variance, "offset": offset}, columns)

    def _from_offset(self, X: Any) -> Any:
        return X - one_or_each(self, "offset", X)

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        A = self._from_offset(X)
        return (A * one_or_each(self, "variance", X)) @ (A if Z is None else self._from_offset(Z)).T

    def diag(self, X: Any, xp: Any) -> Any:
        return (self._from_offset(X) ** 2 * one_or_each(self, "variance", X)).sum(axis=1)

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        A, variance = self._from_offset(X), one_or_each(self, "variance", X)
        B = A if Z is None else self._from_offset(Z)

        def pull(W: Array) -> dict[tuple[int, str], Any]:
            back, forth = W @ B, W.T @ A
            return self.pulled(
                variance=lambda: summed(back * A, variance),
                offset=lambda: summed(-np.concatenate([back, forth]) * variance, self.number("offset")),
            )

        return (A * variance) @ B.T, pull

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        A, variance = self._from_offset(X), one_or_each(self, "variance", X)
        return (A**2 * variance).sum(axis=1), lambda w: self.pulled(
            variance=lambda: summed(w[:, None] * A**2, variance),
            offset=lambda: summed(-2.0 * w[:, None] * A * variance, self.number("offset")),
        )

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        return np.asarray((W @ self._from_offset(Z)) * self.number("variance"))

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        """Start at slopes that reach the spread of the targets, and at the mean of the inputs."""
        offset = (
            X.mean(axis=0)
            if self.own["offset"] is None
            else self._from_offset(np.zeros_like(X[:1]))[0] * -1.0
        )
        return {"variance": spread(y) / _size(X - offset), "offset": offset}


class Polynomial(Covariance):
    """The covariance of polynomials up to a degree, (variance * x z + offset)^degree.

    Parameters
    ----------
    degree
        A whole number from 1.
    offset
        What weighs lower powers.
    variance
        What multiplies the product of the inputs, one number or one a column.
    columns
        The columns of the inputs that it looks at.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.Polynomial(2, offset=1.0, variance=1.0).value([[2.0]], [[3.0]]).tolist()
    [[49.0]]
    """

    supports: ClassVar = {"offset": "positive", "variance": "positive"}

    def __init__(
        self, degree: int = 2, offset: Any = None, variance: Any = None, *, columns: Any = None
    ) -> None:
        if isinstance(degree, bool) or not isinstance(degree, int) or degree < 1:
            raise InvalidArgument(f"the degree of Polynomial is a whole number from 1, not {degree!r}")
        super().__init__({"offset": offset, "variance": variance}, columns)
        self.degree = degree

    def _inner(self, X: Any, Z: Any) -> Any:
        return (X * one_or_each(self, "variance", X)) @ Z.T + self.number("offset")

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        return self._inner(X, X if Z is None else Z) ** self.degree

    def _inner_diagonal(self, X: Any) -> Any:
        return (X**2 * one_or_each(self, "variance", X)).sum(axis=1) + self.number("offset")

    def diag(self, X: Any, xp: Any) -> Any:
        return self._inner_diagonal(X) ** self.degree

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        other = X if Z is None else Z
        inner = self._inner(X, other)

        def pull(W: Array) -> dict[tuple[int, str], Any]:
            V = self.degree * W * inner ** (self.degree - 1)
            return self.pulled(
                offset=V.sum, variance=lambda: summed((V @ other) * X, self.number("variance"))
            )

        return inner**self.degree, pull

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        inner = self._inner_diagonal(X)

        def pull(w: Array) -> dict[tuple[int, str], Any]:
            v = self.degree * w * inner ** (self.degree - 1)
            return self.pulled(
                offset=v.sum, variance=lambda: summed(v[:, None] * X**2, self.number("variance"))
            )

        return inner**self.degree, pull

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        slope = self.degree * W * self._inner(X, Z) ** (self.degree - 1)
        return np.asarray((slope @ Z) * self.number("variance"))

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        half = 0.5 * spread(y) ** (1.0 / self.degree)
        return {"offset": half, "variance": half / _size(X)}

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({self.degree}, ", 1).replace(", )", ")")


class ArcCosine(Covariance):
    """The covariance of a network with one layer of infinitely many hidden units, of powers of what is positive.

    With u = (x, 1), its products weighed by the two variances, and their angle t it is `|u|^n |v|^n J_n(t) / pi` (Cho and
    Saul 2009); order n = 0 is of steps, 1 of rectified linear units, 2 of their squares.

    Parameters
    ----------
    order
        0, 1 or 2.
    weight
        The variance of the weights of the inputs, one number or one a column.
    bias
        The variance of the biases.
    columns
        The columns of the inputs that it looks at.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.ArcCosine(0, 1.0, 1.0).value([[1.0]], [[1.0], [-1.0]]).round(6).tolist()
    [[1.0, 0.5]]
    """

    supports: ClassVar = {"weight": "positive", "bias": "positive"}

    def __init__(self, order: int = 1, weight: Any = None, bias: Any = None, *, columns: Any = None) -> None:
        if order not in (0, 1, 2):
            raise InvalidArgument(f"the order of ArcCosine is 0, 1 or 2, not {order!r}")
        super().__init__({"weight": weight, "bias": bias}, columns)
        self.order = int(order)

    def radial(self, D: Any, order: int, xp: Any, *shape: Any) -> Any:
        """Return J_n / pi as a function of the squared distance D of the two directions, or a derivative by D.

        With c = cos t = 1 - D/2: dJ_2/dc = 4 J_1, dJ_1/dc = J_0, dJ_0/dc = 1 / sin t; the angle comes from D, as the
        cosine of a small one has no digits.
        """
        n, factor = self.order, 1.0 / np.pi
        for _ in range(order):
            factor *= -0.5 * (max(n, 0) ** 2 or 1)
            n -= 1
        c, rest = 1.0 - 0.5 * D, np.pi - 2.0 * xp.arcsin(xp.minimum(0.5 * xp.sqrt(D), 1.0))
        s = xp.sqrt(xp.maximum(D * (1.0 - 0.25 * D), 0.0))
        if n >= 0:
            J = rest if n == 0 else s + rest * c if n == 1 else 3.0 * s * c + rest * (1.0 + 2.0 * c * c)
            return factor * J
        if n < -2:
            raise InvalidArgument(f"derivatives of order {order} of ArcCosine({self.order}) are not known")
        # infinite where directions are the same, or opposite; only ever multiplied by a change of zero
        here = s > 0.0
        s = xp.where(here, s, 1.0)
        return xp.where(here, factor * (1.0 / s if n == -1 else c / s**3), 0.0)

    def _directions(self, X: Any, xp: Any) -> tuple[Any, Any]:
        """Return rows u of length one, and the lengths that they had."""
        root = xp.sqrt(xp.asarray(one_or_each(self, "weight", X)))
        u = xp.concatenate(
            [X * root, xp.ones((len(X), 1)) * xp.sqrt(xp.asarray(self.number("bias")))], axis=1
        )
        size = xp.sqrt((u**2).sum(axis=1))
        return u / size[:, None], size

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        u, a = self._directions(X, xp)
        v, b = (u, a) if Z is None else self._directions(Z, xp)
        D = squared_distances(u, v, xp)
        return (
            a[:, None] ** self.order
            * b**self.order
            * (self.radial(D, 0, np) if xp is np else traced(self, 0, D))
        )

    def diag(self, X: Any, xp: Any) -> Any:
        return self._directions(X, xp)[1] ** (2 * self.order) * (1.0, 1.0, 3.0)[self.order]

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        def pull(w: Array) -> dict[tuple[int, str], Any]:
            size, factor = self._directions(X, np)[1], (0.0, 1.0, 6.0)[self.order]
            by_square = factor * w * size ** (2 * self.order - 2)
            weight = self.number("weight")
            return self.pulled(
                weight=lambda: summed(by_square[:, None] * X**2, weight), bias=lambda: by_square.sum()
            )

        return self.diag(X, np), pull

    def _pull_rows(self, u: Array, a: Array, v: Array, b: Array, W: Array) -> Array:
        """Return the derivative by the rows a u, before they had length one."""
        n, D = self.order, squared_distances(u, v, np)
        V = W * a[:, None] ** (n - 1) * b**n
        # by the length, and by the direction: the cosine c = 1 - D / 2 moves across u alone
        across = -2.0 * V * self.radial(D, 1, np)
        return np.asarray(
            (n * (V * self.radial(D, 0, np)).sum(axis=1) - (across * (1.0 - 0.5 * D)).sum(axis=1))[:, None]
            * u
            + across @ v
        )

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        u, a = self._directions(X, np)
        v, b = (u, a) if Z is None else self._directions(Z, np)

        def pull(W: Array) -> dict[tuple[int, str], Any]:
            back = self._pull_rows(u, a, v, b, W) * (u * a[:, None])
            forth = self._pull_rows(v, b, u, a, W.T) * (v * b[:, None])
            weight, bias = self.number("weight"), self.number("bias")
            both = 0.5 * (back.sum(axis=0) + forth.sum(axis=0))  # by half the logs of weights and bias
            return self.pulled(
                weight=lambda: summed(both[None, :-1] / weight, weight), bias=lambda: both[-1] / bias
            )

        return self.k(X, Z, np), pull

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        back = self._pull_rows(*self._directions(X, np), *self._directions(Z, np), W)
        return np.asarray(back[:, :-1] * np.sqrt(self.number("weight")))

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        half = 0.5 * spread(y) ** (1.0 / self.order) if self.order else 0.5
        return {"weight": half / _size(X), "bias": half}

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({self.order}, ", 1).replace(", )", ")")


class Brownian(Covariance):
    """Brownian motion along one column, variance * min(x - start, z - start); before the start it is zero.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.Brownian(1.0).value([[1.0], [2.0]]).tolist()
    [[1.0, 1.0], [1.0, 2.0]]
    """

    supports: ClassVar = {"variance": "positive", "start": "real"}

    def __init__(self, variance: Any = None, start: Any = 0.0, *, columns: Any = None) -> None:
        super().__init__({"variance": variance, "start": start}, columns)

    def _since(self, X: Any) -> Any:
        if X.shape[1] != 1:
            raise InvalidArgument(
                f"Brownian runs along one column, and inputs have {X.shape[1]}; say which: columns=0"
            )
        return X[:, 0] - self.number("start")

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        x = self._since(X)
        z = x if Z is None else self._since(Z)
        return self.number("variance") * xp.maximum(xp.minimum(x[:, None], z), 0.0)

    def diag(self, X: Any, xp: Any) -> Any:
        return self.number("variance") * xp.maximum(self._since(X), 0.0)

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        x = self._since(X)
        z = x if Z is None else self._since(Z)
        return self._with_pull(np.maximum(np.minimum(x[:, None], z), 0.0))

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        return self._with_pull(np.maximum(self._since(X), 0.0))

    def _with_pull(self, since: Array) -> tuple[Array, Pull]:
        variance = self.number("variance")
        return variance * since, lambda W: self.pulled(
            variance=lambda: np.vdot(W, since), start=lambda: -variance * W[since > 0.0].sum()
        )

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        x, z = self._since(X)[:, None], self._since(Z)
        # at a tie, half of each side's derivative
        slope = np.where(np.minimum(x, z) > 0.0, (x < z) + 0.5 * (x == z), 0.0)
        return np.asarray(self.number("variance") * (W * slope).sum(axis=1)[:, None])

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        start = float(X.min()) if self.own["start"] is None else float(self.number("start"))
        length = float(np.mean(np.maximum(X - start, 0.0)))
        return {"variance": spread(y) / (length or 1.0), "start": start}


def _size(X: Array) -> float:
    """Return the mean of squared lengths of rows; 1 where all are zero."""
    return float(np.mean(np.square(X).sum(axis=1))) or 1.0
