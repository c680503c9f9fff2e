"""Covariances that repeat: periodic, quasi-periodic, cosine, spectral mixture.

Each is a function of rows that are put on circles first. Half the squared distance on the circle is 2 sin^2(pi r / period),
so a periodic covariance is an RBF there, and a cosine is the product of rows there; adjoints of all hyper-parameters come
from one product of a matrix with those rows.
"""

# ruff: noqa: D102, N803, N806 (the methods of `Covariance`; letters of the literature)

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import Product, spread
from markovia.factors.covariances.covariance import Correlation, Covariance, Pull, one_or_each
from markovia.factors.covariances.radial import RBF, column_spreads, squared_distances
from markovia.runtime.array_types import Array


class Periodic(Correlation):
    """The periodic covariance exp(-2 sin^2(pi distance / period) / length^2); with several columns, their product.

    Parameters
    ----------
    length
        How smooth one period is: large is nearly a sine. One number, or one a column.
    period
        After what distance functions repeat. One number, or one a column.
    columns
        The columns of the inputs that it looks at.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.Periodic(1.0, period=2.0).value([[0.0]], [[1.0], [2.0]]).round(6).tolist()  # exp(-2), 1
    [[0.135335, 1.0]]
    """

    supports: ClassVar = {"length": "positive", "period": "positive"}
    stationary: ClassVar[bool] = True

    def __init__(self, length: Any = None, period: Any = None, *, columns: Any = None) -> None:
        super().__init__({"length": length, "period": period}, columns)

    def _placed(self, X: Any, xp: Any) -> Any:
        """Return rows whose squared distance is D, where the covariance is exp(-D / 2)."""
        length, period = one_or_each(self, "length", X), one_or_each(self, "period", X)
        angle = 2.0 * np.pi / period * X
        return xp.concatenate([xp.cos(angle) / length, xp.sin(angle) / length], axis=1)

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        A = self._placed(X, xp)
        return xp.exp(-0.5 * squared_distances(A, A if Z is None else self._placed(Z, xp), xp))

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        A = self._placed(X, np)
        B = A if Z is None else self._placed(Z, np)
        K = np.exp(-0.5 * squared_distances(A, B, np))

        def pull(W: Array) -> dict[tuple[int, str], Any]:
            d, (length, period) = X.shape[1], (self.number(name) for name in self.own)
            rows, placed, back = _of_both(_differences, W * K, X, A, Z, B)
            turned = -2.0 * np.pi * rows * _around(placed, back) / np.square(period)
            scaled = -(back * placed)
            return self.pulled(
                length=lambda: summed((scaled[:, :d] + scaled[:, d:]) / length, length),
                period=lambda: summed(turned, period),
            )

        return K, pull

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        A, B = self._placed(X, np), self._placed(Z, np)
        back = _differences(W * np.exp(-0.5 * squared_distances(A, B, np)), A, B)
        return np.asarray(2.0 * np.pi / self.number("period") * _around(A, back))

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        """Start at a length of one radius, and a period of the spread of the inputs."""
        return {"length": 1.0, "period": float(np.mean(column_spreads(X)))}


class QuasiPeriodic(Product):
    """A periodic covariance that fades: a `Periodic` times an `RBF`, whose length is the decay.

    Parameters
    ----------
    length, period, columns
        As in `Periodic`.
    decay
        The length of the RBF.

    Examples
    --------
    >>> import markovia as mk
    >>> k = mk.covariances.QuasiPeriodic(1.0, period=2.0, decay=4.0)
    >>> k, k.value([[0.0]], [[4.0]]).round(6).tolist()  # exp(-1/2)
    (Periodic(length=1, period=2) * RBF(length=4), [[0.606531]])
    """

    def __init__(
        self, length: Any = None, period: Any = None, decay: Any = None, *, columns: Any = None
    ) -> None:
        super().__init__(Periodic(length, period, columns=columns), RBF(decay, columns=columns))


class Cosine(Correlation):
    """The covariance of a wave of unknown phase and height, cos(2 pi distance / period); with several columns, a plane wave.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.Cosine(period=4.0).value([[0.0]], [[2.0], [4.0]]).round(6).tolist()
    [[-1.0, 1.0]]
    """

    supports: ClassVar = {"period": "positive"}
    stationary: ClassVar[bool] = True

    def __init__(self, period: Any = None, *, columns: Any = None) -> None:
        super().__init__({"period": period}, columns)

    def _placed(self, X: Any, xp: Any) -> Any:
        angle = (2.0 * np.pi / one_or_each(self, "period", X) * X).sum(axis=1)
        return xp.stack([xp.cos(angle), xp.sin(angle)], axis=1)

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        A = self._placed(X, xp)
        return A @ (A if Z is None else self._placed(Z, xp)).T

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        A = self._placed(X, np)
        B = A if Z is None else self._placed(Z, np)

        def pull(W: Array) -> dict[tuple[int, str], Any]:
            rows, placed, back = _of_both(_products, W, X, A, Z, B)
            period = self.number("period")
            turned = -2.0 * np.pi * rows * _around(placed, back) / np.square(period)
            return self.pulled(period=lambda: summed(turned, period))

        return A @ B.T, pull

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        around = _around(self._placed(X, np), W @ self._placed(Z, np))
        return np.asarray(around * (2.0 * np.pi / self.number("period") * np.ones(X.shape[1])))

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        return {"period": float(np.mean(column_spreads(X)))}


class SpectralMixture(Covariance):
    """A sum of cosines that fade, sum_q w_q exp(-2 pi^2 (scale_q r)^2) cos(2 pi mean_q r): any stationary covariance nearly.

    Parameters
    ----------
    weights
        The variance of each component.
    means
        The mean frequency of each in cycles, one number a component, or one row of them with a number a column.
    scales
        The standard deviations of the frequencies, likewise.
    components
        How many there are, where nothing says it.
    columns
        The columns of the inputs that it looks at.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.SpectralMixture([2.0], [0.5], [0.1]).value([[0.0]], [[0.0], [1.0]]).round(6).tolist()
    [[2.0, -1.641737]]
    """

    supports: ClassVar = {"weights": "positive", "means": "real", "scales": "positive"}
    stationary: ClassVar[bool] = True

    def __init__(
        self,
        weights: Any = None,
        means: Any = None,
        scales: Any = None,
        *,
        components: int = 3,
        columns: Any = None,
    ) -> None:
        super().__init__({"weights": weights, "means": means, "scales": scales}, columns)
        said = {np.shape(h.value)[:1] for h in self.hypers().values() if h.value is not None}
        if len(said) > 1 or () in said:
            raise InvalidArgument(
                "weights, means and scales of SpectralMixture are arrays with one entry a component, as many of each"
            )
        self.components = said.pop()[0] if said else components

    def mixture(self, d: int, xp: Any = np) -> list[tuple[Any, Any, Any]]:
        """Return weight, angular mean frequencies and their standard deviations of each component, for d columns."""
        rows = []
        for name in ("means", "scales"):
            value = xp.asarray(self.number(name))
            value = value[:, None] if value.ndim == 1 and d == 1 else value
            if value.shape != (self.components, d):
                raise InvalidArgument(
                    f"{name} of SpectralMixture have the shape {value.shape}, and inputs {d} columns; one row a component, "
                    "with a number a column"
                )
            rows.append(2.0 * np.pi * value)
        weights = self.number("weights")
        return [(weights[q], rows[0][q], rows[1][q]) for q in range(self.components)]

    @staticmethod
    def _component(X: Any, Z: Any, mean: Any, scale: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return how much a component fades between rows, and the rows on the circle."""
        circled = [xp.stack([xp.cos(rows @ mean), xp.sin(rows @ mean)], axis=1) for rows in (X, Z)]
        return xp.exp(-0.5 * squared_distances(X * scale, Z * scale, xp)), *circled

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        total: Any = 0.0
        for weight, mean, scale in self.mixture(X.shape[1], xp):
            faded, A, B = self._component(X, X if Z is None else Z, mean, scale, xp)
            total = total + weight * faded * (A @ B.T)
        return total

    def diag(self, X: Any, xp: Any) -> Any:
        return xp.asarray(self.number("weights")).sum() * xp.ones(len(X))

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        other = X if Z is None else Z

        def pull(W: Array) -> dict[tuple[int, str], Any]:
            found = []
            for weight, mean, scale in self.mixture(X.shape[1]):
                faded, A, B = self._component(X, other, mean, scale)
                waves = A @ B.T
                rows, placed, back = _of_both(_products, weight * W * faded, X, A, Z, B)
                by_mean = (_around(placed, back) * rows).sum(axis=0)
                rows, placed, back = _of_both(_differences, weight * W * faded * waves, X, X, Z, other)
                by_scale = (back * rows).sum(axis=0) * scale
                # derivatives of the circular numbers, times 2 pi
                found.append((np.vdot(W, faded * waves), 2.0 * np.pi * by_mean, 2.0 * np.pi * by_scale))
            slopes = {n: [f[i] for f in found] for i, n in enumerate(self.own)}
            shaped = {n: np.reshape(slope, np.shape(self.number(n))) for n, slope in slopes.items()}
            return self.pulled(**{n: (lambda slope=slope: slope) for n, slope in shaped.items()})

        return self.k(X, Z, np), pull

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        numbers = {name: np.asarray(self.number(name)) for name in self.own}
        slopes = {name: (lambda name=name: 0.0 * numbers[name]) for name in ("means", "scales")}
        weights = numbers["weights"]
        return self.diag(X, np), lambda w: self.pulled(
            weights=lambda: w.sum() * np.ones_like(weights), **slopes
        )

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        total = np.zeros_like(X)
        for weight, mean, scale in self.mixture(X.shape[1]):
            faded, A, B = self._component(X, Z, mean, scale)
            V = weight * W * faded
            total += _around(A, V @ B) * mean + _differences(V * (A @ B.T), X, Z) * np.square(scale)
        return total

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        """Start with frequencies from half a cycle over the range of the inputs upwards, each twice the last."""
        q = np.arange(self.components)[:, None]
        cycles = 1.0 / (np.sqrt(12.0) * column_spreads(X))
        return {
            "weights": np.full(self.components, spread(y) / self.components),
            "means": 0.5 * 2.0**q * cycles,
            "scales": 0.25 * 2.0**q * cycles,
        }


def _of_both(
    back: Callable[[Array, Array, Array], Array], V: Array, X: Array, A: Array, Z: Array | None, B: Array
) -> tuple[Array, Array, Array]:
    """Return inputs, where they are placed, and derivatives by that: of both sides of a matrix, one below the other.

    A and B are the places, B is A where there is no Z. A shift of all inputs changes no stationary covariance: they are
    taken from their mean, so that no digits are lost.
    """
    centre = X.mean(axis=0)
    if Z is None:
        return X - centre, A, back(V + V.T, A, A)
    return (
        np.concatenate([X, Z]) - centre,
        np.concatenate([A, B]),
        np.concatenate([back(V, A, B), back(V.T, B, A)]),
    )


def _products(V: Array, A: Array, B: Array) -> Array:
    """Return the derivative of sum(V * a_i b_j) by the rows of A."""
    return np.asarray(V @ B)


def _differences(V: Array, A: Array, B: Array) -> Array:
    """Return the derivative of -sum(V |a_i - b_j|^2) / 2 by the rows of A, from a common centre."""
    centre = B.mean(axis=0)
    return np.asarray(V @ (B - centre) - V.sum(axis=1)[:, None] * (A - centre))


def _around(A: Array, back: Array) -> Array:
    """Return the derivative by angles of rows (cosines, sines), from that by the rows."""
    d = A.shape[1] // 2
    return np.asarray(A[:, :d] * back[:, d:] - A[:, d:] * back[:, :d])


def summed(rows: Array, like: Any) -> Any:
    """Return sums over rows, and over columns where a number is one for all of them."""
    return rows.sum(axis=0) if np.ndim(like) else rows.sum()
