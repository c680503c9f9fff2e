"""Covariances of the distance of two inputs: RBF, Matern, rational quadratic; one length, or one a column (ARD).

Each is a function of D, the squared distance in units of the length. What is written down is that function and its
derivatives of any order by D (`radial(D, order)`), so adjoints need no automatic differentiation, and derivatives in JAX
are right at distance zero, where a square root has none. Matern functions are each other's derivatives: with
M_p(s) proportional to s^p K_p(s), dM_p / d(s^2) = -M_(p-1) / 2.
"""

# ruff: noqa: D102, N803, N806 (the methods of `Covariance`; letters of the literature)

from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.covariance import Correlation, Pull, hyper_value, one_or_each
from markovia.factors.functions.parameter import Parameter
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import jax

FEW_COLUMNS = 32
"""Columns up to which JAX adds up squared differences one by one; beyond, distances come from products of rows."""


class Radial(Correlation):
    """A covariance of the distance of two inputs, in units of a length; base of RBF, Matern and RationalQuadratic.

    Parameters
    ----------
    length
        The length-scale; an array has one a column (automatic relevance determination). Not said: fitted, from the spread of
        the inputs.
    ard
        Whether a length that was not said is one for each column.
    columns
        The columns of the inputs that it looks at.
    """

    supports: ClassVar = {"length": "positive"}
    stationary: ClassVar[bool] = True

    def __init__(self, length: Any = None, *, ard: bool = False, columns: Any = None, **more: Any) -> None:
        super().__init__({"length": length, **more}, columns)
        self.ard = ard

    def radial(self, D: Any, order: int, xp: Any, *shape: Any) -> Any:
        """Return the derivative of some order by D of the covariance as a function of D; order 0 is itself."""
        raise NotImplementedError

    def shape(self) -> tuple[Any, ...]:
        """Return hyper-parameters beside the length, which `radial` takes."""
        return ()

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        D = self.squared_distances(X, Z, xp)
        return self.radial(D, 0, np, *self.shape()) if xp is np else traced(self, 0, D, *self.shape())

    def squared_distances(self, X: Any, Z: Any, xp: Any) -> Any:
        """Return squared distances of rows in units of the length."""
        length = one_or_each(self, "length", X)
        A = X / length
        return squared_distances(A, A if Z is None else Z / length, xp)

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        D = self.squared_distances(X, Z, np)
        K = self.radial(D, 0, np, *self.shape())

        def pull(W: Array) -> dict[tuple[int, str], Any]:
            return self.pulled(length=lambda: self._pull_length(X, Z, D, K, W), **self.pull_shape(D, K, W))

        return K, pull

    def slope(self, D: Array, K: Array) -> Array:
        """Return a new array of derivatives by D, where the covariances themselves are known."""
        return np.asarray(self.radial(D, 1, np, *self.shape()))

    def pull_shape(self, D: Array, K: Array, W: Array) -> dict[str, Any]:
        """Return functions that pull weights back to hyper-parameters beside the length."""
        return {}

    def _pull_length(self, X: Array, Z: Array | None, D: Array, K: Array, W: Array) -> Any:
        length = one_or_each(self, "length", X)
        V = self.slope(D, K)
        V *= W
        if np.ndim(length) == 0:
            return -2.0 / length * np.vdot(V, D)
        # sums of V (x_i - x_j)^2 for all columns by one product of matrices
        centre = X.mean(axis=0)
        A = (X - centre) / length
        B = A if Z is None else (Z - centre) / length
        sums = (V.sum(1) @ A**2) + (V.sum(0) @ B**2) - 2.0 * np.einsum("ij,ij->j", A, V @ B)
        return -2.0 / length * sums

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        length = one_or_each(self, "length", X)
        V = 2.0 * W * self.radial(self.squared_distances(X, Z, np), 1, np, *self.shape())
        centre = Z.mean(axis=0)  # far from zero, products of rows have few digits left
        return np.asarray((V.sum(1)[:, None] * (X - centre) - V @ (Z - centre)) / np.square(length))

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        """Start at half the spread of the inputs, that of each column where there are several lengths."""
        sd = column_spreads(X)
        return {"length": sd if self.ard else float(np.sqrt(np.mean(sd**2)) * np.sqrt(X.shape[1]))}

    def __repr__(self) -> str:
        return super().__repr__().replace("()", "(ard=True)") if self.ard else super().__repr__()


def squared_distances(A: Any, B: Any, xp: Any) -> Any:
    """Return squared distances of all rows of A from all rows of B."""
    if xp is np:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(A, B, "sqeuclidean"))
    if A.shape[1] <= FEW_COLUMNS:
        return sum(((A[:, j, None] - B[None, :, j]) ** 2 for j in range(A.shape[1])), 0.0 * A[:, :1])
    return xp.maximum((A**2).sum(1)[:, None] + (B**2).sum(1)[None] - 2.0 * A @ B.T, 0.0)


def column_spreads(X: Array) -> Array:
    """Return the standard deviation of each column; the size of its numbers where they are all the same."""
    sd, size = X.std(axis=0), np.abs(X).max(axis=0, initial=0.0)
    # the deviation of equal numbers is not always zero
    sd = np.where(sd > 1e-14 * size, sd, size)
    return np.asarray(np.where(sd > 0, sd, 1.0))


def traced(cov: Any, order: int, D: Any, *shape: Any) -> Any:
    """Return the derivative of some order in JAX, whose own derivative by D is that of the next order."""

    @jax.custom_jvp
    def function(D: Any, *shape: Any) -> Any:
        return cov.radial(D, order, jax.numpy, *shape)

    @function.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        D, *more = primals
        moved = traced(cov, order + 1, D, *more) * tangents[0]
        if more:
            _, by_shape = jax.jvp(
                lambda *s: cov.radial(D, order, jax.numpy, *s), tuple(more), tuple(tangents[1:])
            )
            moved = moved + by_shape
        return function(*primals), moved

    return function(D, *(jax.numpy.asarray(s, D.dtype) for s in shape))


class RBF(Radial):
    """The squared exponential exp(-distance^2 / (2 length^2)); functions with it are smooth.

    `width` is the other convention in use, exp(-distance^2 / width): width = 2 length^2.

    Examples
    --------
    >>> import markovia as mk
    >>> k = mk.covariances.RBF(length=2.0)
    >>> k.value([[0.0]], [[2.0]]).round(6).tolist()  # exp(-1/2)
    [[0.606531]]
    >>> mk.covariances.RBF(width=1.0).own["length"].round(6)
    np.float64(0.707107)
    """

    def __init__(
        self, length: Any = None, *, ard: bool = False, columns: Any = None, width: Any = None
    ) -> None:
        if width is not None:
            if length is not None:
                raise InvalidArgument("RBF takes a length or a width, width = 2 length^2, not both")
            if isinstance(width, Parameter):
                if width.prior is not None or width.is_module:
                    raise InvalidArgument(
                        "width= of RBF is a number; a prior is one of length=, length = (width / 2)^0.5"
                    )
                length = width.with_value(np.asarray(np.sqrt(0.5 * width.value)))
            else:
                width = hyper_value("RBF", "width", width)
                self._check("width", width, "positive")
                length = (0.5 * width) ** 0.5
        super().__init__(length, ard=ard, columns=columns)

    def radial(self, D: Any, order: int, xp: Any, *shape: Any) -> Any:
        if (
            xp is np and order == 0
        ):  # by far the most common: in place, since new arrays cost as much as the numbers
            E = np.multiply(D, -0.5)
            return np.exp(E, out=E) if isinstance(E, np.ndarray) else np.exp(E)
        return (-0.5) ** order * xp.exp(-0.5 * D)

    def slope(self, D: Array, K: Array) -> Array:
        return -0.5 * K


class Matern(Radial):
    """A Matern covariance; base of `Matern12`, `Matern32` and `Matern52`."""

    degree: ClassVar[int] = 0
    """The smoothness less a half: how often functions with it can be differentiated."""

    def radial(self, D: Any, order: int, xp: Any, *shape: Any) -> Any:
        p, c = self.degree - order, 2.0 * self.degree + 1.0
        s2 = c * D
        # derivatives that are infinite at distance zero are only ever multiplied by a distance of zero
        here = s2 > 0.0 if p < 0 else None
        s = xp.sqrt(s2 if here is None else xp.where(here, s2, 1.0))
        e = xp.exp(-s)
        sign = (-0.5 * c) ** order * {0: 1.0, 1: 1.0, 2: 1.0 / 3.0}[self.degree]
        if p == 2:
            return sign * (3.0 + 3.0 * s + s2) * e
        if p == 1:
            return sign * (1.0 + s) * e
        if p == 0:
            return sign * e
        shape_of = {
            -1: lambda: 1.0 / s,
            -2: lambda: (1.0 + s) / s**3,
            -3: lambda: (3.0 + 3.0 * s + s * s) / s**5,
        }
        if p not in shape_of:
            raise InvalidArgument(f"derivatives of order {order} of {type(self).__name__} are not known")
        return xp.where(here, sign * shape_of[p]() * e, 0.0)


class Matern12(Matern):
    """The exponential covariance exp(-distance / length) (Ornstein-Uhlenbeck); functions with it are continuous and rough.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.Matern12(2.0).value([[0.0]], [[2.0]]).round(6).tolist()
    [[0.367879]]
    """

    degree: ClassVar[int] = 0


class Matern32(Matern):
    """The Matern 3/2 covariance (1 + s) exp(-s), s = sqrt(3) distance / length; functions have one derivative.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.Matern32(1.0).value([[0.0]], [[1.0]]).round(6).tolist()
    [[0.483358]]
    """

    degree: ClassVar[int] = 1


class Matern52(Matern):
    """The Matern 5/2 covariance (1 + s + s^2/3) exp(-s), s = sqrt(5) distance / length; functions have two derivatives.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.Matern52(1.0).value([[0.0]], [[1.0]]).round(6).tolist()
    [[0.523994]]
    """

    degree: ClassVar[int] = 2


class RationalQuadratic(Radial):
    """A mixture of RBFs of many lengths, (1 + distance^2 / (2 alpha length^2))^-alpha; RBF for a large alpha.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.RationalQuadratic(1.0, alpha=1.0).value([[0.0]], [[1.0]]).round(6).tolist()
    [[0.666667]]
    """

    supports: ClassVar = {"length": "positive", "alpha": "positive"}

    def __init__(
        self, length: Any = None, alpha: Any = None, *, ard: bool = False, columns: Any = None
    ) -> None:
        super().__init__(length, ard=ard, columns=columns, alpha=alpha)

    def shape(self) -> tuple[Any, ...]:
        return (self.number("alpha"),)

    def radial(self, D: Any, order: int, xp: Any, *shape: Any) -> Any:
        (alpha,) = shape
        factor: Any = 1.0
        for j in range(order):
            factor = factor * -0.5 * (alpha + j) / alpha
        return factor * xp.exp(-(alpha + order) * xp.log1p(D / (2.0 * alpha)))

    def slope(self, D: Array, K: Array) -> Array:
        return np.asarray(-0.5 * K / (1.0 + D / (2.0 * self.number("alpha"))))

    def pull_shape(self, D: Array, K: Array, W: Array) -> dict[str, Any]:
        def alpha() -> Any:
            rest = D / (2.0 * self.number("alpha"))
            return np.vdot(W * K, rest / (1.0 + rest) - np.log1p(rest))

        return {"alpha": alpha}

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        return {**super().starts(X, y), "alpha": 1.0}
