"""Sums, products and multiples of covariances, the constant one, and noise of each place."""

# ruff: noqa: D102, N803 (the methods of `Covariance`; letters of the literature)

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any, ClassVar

import numpy as np

from markovia.factors.covariances.covariance import Covariance, Pull
from markovia.runtime.array_types import Array


class Composite(Covariance):
    """What is made of several covariances of the same inputs by an operation; base of `Sum` and `Product`."""

    joined: ClassVar[Callable[[Any, Any], Any]]

    def __init__(self, *parts: Covariance) -> None:
        flat = [inner for part in parts for inner in (part.parts if type(part) is type(self) else (part,))]
        super().__init__(parts=flat)

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        """Whether all parts are."""
        return all(part.stationary for part in self.parts)

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        return reduce(type(self).joined, (part.value(X, Z, xp) for part in self.parts))

    def diag(self, X: Any, xp: Any) -> Any:
        return reduce(type(self).joined, (part.diagonal(X, xp) for part in self.parts))

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        return self._with_pull([part.forward(X, Z) for part in self.parts])

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        return self._with_pull([part.forward_diagonal(X) for part in self.parts])

    def _with_pull(self, found: list[tuple[Array, Pull]]) -> tuple[Array, Pull]:
        raise NotImplementedError


class Sum(Composite):
    """The covariance of a sum of independent functions; `a + b` makes one.

    Examples
    --------
    >>> import markovia as mk
    >>> (mk.covariances.Constant(1.0) + mk.covariances.Constant(2.0)).value([[0.0]]).tolist()
    [[3.0]]
    """

    joined = add

    def _with_pull(self, found: list[tuple[Array, Pull]]) -> tuple[Array, Pull]:
        total = np.array(found[0][0])
        for other, _ in found[1:]:
            total += other
        return total, lambda W: added(pull(W) for _, pull in found)

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        return sum((part.input_gradient(X, Z, W) for part in self.parts), np.zeros_like(X))

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


class Product(Composite):
    """The covariance of a product of independent functions; `a * b` makes one.

    Examples
    --------
    >>> import markovia as mk
    >>> (mk.covariances.Constant(3.0) * mk.covariances.Constant(2.0)).value([[0.0]]).tolist()
    [[6.0]]
    """

    joined = mul

    def _with_pull(self, found: list[tuple[Array, Pull]]) -> tuple[Array, Pull]:
        matrices = [matrix for matrix, _ in found]
        return product(matrices), lambda W: added(
            pull(W * product(matrices, left_out=i)) for i, (_, pull) in enumerate(found)
        )

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        matrices = [part.value(X, Z) for part in self.parts]
        found = [
            part.input_gradient(X, Z, W * product(matrices, left_out=i)) for i, part in enumerate(self.parts)
        ]
        return sum(found, np.zeros_like(X))

    def __repr__(self) -> str:
        return " * ".join(f"({part!r})" if isinstance(part, Sum) else repr(part) for part in self.parts)


class Scaled(Covariance):
    """A covariance times a variance; `variance * covariance` makes one.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.Scaled(4.0, mk.covariances.RBF(1.0)).diagonal([[0.0], [1.0]]).tolist()
    [4.0, 4.0]
    """

    supports: ClassVar = {"variance": "positive"}

    def __init__(self, variance: Any = None, covariance: Covariance | None = None) -> None:
        super().__init__(
            {"variance": variance}, parts=[covariance] if covariance is not None else [Constant(1.0)]
        )

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        """Whether what it multiplies is."""
        return self.parts[0].stationary

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        return self.number("variance") * self.parts[0].value(X, Z, xp)

    def diag(self, X: Any, xp: Any) -> Any:
        return self.number("variance") * self.parts[0].diagonal(X, xp)

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        return self._times(*self.parts[0].forward(X, Z))

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        return self._times(*self.parts[0].forward_diagonal(X))

    def _times(self, inner: Array, pull_inner: Pull) -> tuple[Array, Pull]:
        variance = self.number("variance")

        def pull(W: Array) -> dict[tuple[int, str], Any]:
            own = self.pulled(variance=lambda: np.vdot(W, inner))
            # linear in W: the few results are multiplied, not the matrix
            return {**own, **{key: variance * found for key, found in pull_inner(W).items()}}

        return variance * inner, pull

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        return self.parts[0].input_gradient(X, Z, self.number("variance") * W)

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        return {"variance": spread(y)}

    def __repr__(self) -> str:
        inner = f"({self.parts[0]!r})" if isinstance(self.parts[0], Sum) else repr(self.parts[0])
        value = self.own["variance"]
        plain = isinstance(value, int | float | np.generic)
        return f"{f'{float(value):.6g}' if plain else '?' if value is None else repr(value)} * {inner}"


class Level(Covariance):
    """A variance times a matrix of ones and zeros; base of `Constant` and `White`."""

    supports: ClassVar = {"variance": "positive"}
    stationary: ClassVar[bool] = True
    share: ClassVar[float] = 1.0
    """Of the variance of the targets, where fits start."""

    def __init__(self, variance: Any = None) -> None:
        super().__init__({"variance": variance})

    def _ones(self, X: Any, Z: Any, xp: Any) -> Any:
        raise NotImplementedError

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        return self.number("variance") * self._ones(X, Z, xp)

    def diag(self, X: Any, xp: Any) -> Any:
        return self.number("variance") * xp.ones(len(X))

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        ones = self._ones(X, Z, np)
        return self.number("variance") * ones, lambda W: self.pulled(variance=lambda: np.vdot(W, ones))

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        return self.diag(X, np), lambda w: self.pulled(variance=w.sum)

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        return np.zeros_like(X)

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        return {"variance": self.share * spread(y)}


class Constant(Level):
    """The covariance of an unknown constant with a variance.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.Constant(2.0).value([[0.0], [5.0]]).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """

    def _ones(self, X: Any, Z: Any, xp: Any) -> Any:
        return xp.ones((len(X), len(X if Z is None else Z)))


class White(Level):
    """Independent noise at each place: its variance on the diagonal, nothing between rows of two different arrays.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.covariances.White(0.5).value([[0.0], [0.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    share: ClassVar[float] = 0.1

    def _ones(self, X: Any, Z: Any, xp: Any) -> Any:
        return xp.eye(len(X)) if Z is None else xp.zeros((len(X), len(Z)))


def spread(y: Array) -> float:
    """Return the variance of targets; that of numbers of their size where they do not vary."""
    y = y[np.isfinite(y)] if y.size else np.ones(1)
    found = float(np.var(y))
    size = float(np.mean(np.square(y))) if y.size else 1.0
    return found if found > 1e-24 * size else size or 1.0


def product(matrices: list[Any], left_out: int | None = None) -> Any:
    """Return the product of all matrices but one, number by number."""
    kept = [matrix for i, matrix in enumerate(matrices) if i != left_out]
    return reduce(mul, kept) if kept else 1.0


def added(found: Any) -> dict[tuple[int, str], Any]:
    """Return sums of derivatives: a part that occurs twice has two of each."""
    total: dict[tuple[int, str], Any] = {}
    for part in found:
        for key, value in part.items():
            total[key] = total[key] + value if key in total else value
    return total


def split_white(covariance: Covariance) -> tuple[Covariance | None, tuple[White, ...]]:
    """Return a covariance without the noise that is added to it, and that noise; None where noise is all there is.

    Examples
    --------
    >>> import markovia as mk
    >>> split_white(mk.covariances.RBF(1.0) + mk.covariances.White(0.1))
    (RBF(length=1), (White(variance=0.1),))
    """
    if isinstance(covariance, White):
        return None, (covariance,)
    if not isinstance(covariance, Sum):
        return covariance, ()
    noise = tuple(part for part in covariance.parts if isinstance(part, White))
    rest = [part for part in covariance.parts if not isinstance(part, White)]
    return (None if not rest else rest[0] if len(rest) == 1 else Sum(*rest)), noise
