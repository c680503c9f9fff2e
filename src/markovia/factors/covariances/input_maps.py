"""Covariances of inputs that were mapped first, that change at a place, and of a user's own functions."""

# ruff: noqa: D102, N803, N806 (the methods of `Covariance`; letters of the literature)

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import added
from markovia.factors.covariances.covariance import Covariance, Pull
from markovia.factors.covariances.definiteness import fault_of
from markovia.factors.covariances.radial import column_spreads
from markovia.factors.functions.parameter import ModuleSkeleton, Parameter
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.traced_functions import traced


class Warped(Covariance):
    """A covariance of inputs that went through a function: k(g(x), g(z)).

    Parameters
    ----------
    covariance
        A covariance of what the function returns.
    function
        From one row of inputs to a row, or a number, in `jax.numpy`. A `mk.Parameter` of a module, or of a recipe of
        `mk.networks`, is fitted along with the hyper-parameters (a deep kernel); a module as it is stays fixed.
    columns
        The columns of the inputs that the function gets.
    shape
        What a row is reshaped to before: (steps, numbers) for recurrent networks, whose last step counts.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import markovia as mk
    >>> k = mk.covariances.Warped(mk.covariances.Linear(1.0), jnp.log)
    >>> k.value([[1.0]], [[2.0]]).tolist(), k.value([[2.0]], [[2.0]]).round(6).tolist()
    ([[0.0]], [[0.480453]])
    """

    supports: ClassVar = {"weights": "real"}

    def __init__(
        self,
        covariance: Covariance,
        function: Any,
        *,
        columns: Any = None,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        if not isinstance(covariance, Covariance):
            raise InvalidArgument(
                f"Warped takes a covariance and then a function of a row, not {covariance!r} first"
            )
        is_module = isinstance(function, Parameter) and function.is_module
        if not is_module and not callable(function):
            raise InvalidArgument("Warped takes a function of a row, a module, or a mk.Parameter of one")
        own: dict[str, Any] = {}
        if is_module:  # its numbers are one hyper-parameter, a vector
            numbers = None if function.value is None else function.skeleton.vector(function.value)
            own["weights"] = (
                None if numbers is None else Parameter(numbers, prior=function.prior, fixed=function.fixed)
            )
        super().__init__(own, columns, parts=[covariance])
        self.function, self.shape = function, shape

    def _skeleton(self) -> ModuleSkeleton:
        found: ModuleSkeleton = self.function.skeleton
        return found

    def _rows_through(self, X: Any, weights: Any) -> Any:
        """Return the rows that the function makes of rows; JAX."""
        function = self.function if weights is None else self._skeleton().module(weights)
        with traced(f"the function of {self!r}"):
            found = jax.vmap(function)(X if self.shape is None else jnp.reshape(X, (len(X), *self.shape)))
        return found[:, None] if found.ndim == 1 else found if found.ndim == 2 else found[:, -1]

    def _weights(self) -> Any:
        if not self.own:
            return None
        return (
            self.starts(np.zeros(0), np.zeros(0))["weights"]
            if self.own["weights"] is None
            else self.number("weights")
        )

    def _through(self, X: Any, xp: Any) -> Any:
        if xp is not np:
            return self._rows_through(X, self._weights())
        with x64():
            weights = self._weights()
            return np.asarray(
                self._rows_through(jnp.asarray(X), None if weights is None else jnp.asarray(weights)),
                np.float64,
            )

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        return self.parts[0].value(self._through(X, xp), None if Z is None else self._through(Z, xp), xp)

    def diag(self, X: Any, xp: Any) -> Any:
        return self.parts[0].diagonal(self._through(X, xp), xp)

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        U, V = self._through(X, np), None if Z is None else self._through(Z, np)
        K, inner = self.parts[0].forward(U, V)

        def pull(W: Array) -> dict[tuple[int, str], Any]:
            if V is None:
                return {**inner(W), **self._pull_weights(X, self.parts[0].input_gradient(U, U, W + W.T))}
            by_both = [self.parts[0].input_gradient(U, V, W), self.parts[0].input_gradient(V, U, W.T)]
            return {**inner(W), **self._pull_weights(np.concatenate([X, Z]), np.concatenate(by_both))}

        return K, pull

    def _pull_weights(self, X: Array, by_rows: Array) -> dict[tuple[int, str], Any]:
        """Return the derivative by the numbers of the module from that by what it returns."""
        if not self.own or not self.is_free("weights"):
            return {}
        with x64():
            _, back = jax.vjp(
                lambda w: self._rows_through(jnp.asarray(X), w), jnp.asarray(self.number("weights"))
            )
            return {(id(self), "weights"): np.asarray(back(jnp.asarray(by_rows))[0])}

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        by_rows = self.parts[0].input_gradient(self._through(X, np), self._through(Z, np), W)
        with x64():
            weights = self._weights()
            weights = None if weights is None else jnp.asarray(weights)
            _, back = jax.vjp(lambda rows: self._rows_through(rows, weights), jnp.asarray(X))
            return np.asarray(back(jnp.asarray(by_rows))[0])

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        return {"weights": self._skeleton().vector(self.function.recipe.build(0))}

    def inputs_of_parts(self, X: Array) -> Array:
        return np.asarray(self._through(X, np))

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", None) or repr(self.function)
        columns = "" if self.columns is None else f", columns={list(self.columns)}"
        return f"Warped({self.parts[0]!r}, {name}{columns})"


class Changepoint(Covariance):
    """One covariance before a place in a column and another after it, with a smooth step between.

    With s(x) = 1 / (1 + exp(-steepness (x - at))) it is (1 - s(x)) before(x, z) (1 - s(z)) + s(x) after(x, z) s(z).

    Parameters
    ----------
    before, after
        The two covariances.
    at
        Where it changes.
    steepness
        How fast, over the unit of the column.
    column
        The column of the inputs that says where; the two covariances see all columns.

    Examples
    --------
    >>> import markovia as mk
    >>> k = mk.covariances.Changepoint(mk.covariances.Constant(1.0), mk.covariances.Constant(4.0), at=0.0, steepness=50.0)
    >>> k.diagonal([[-1.0], [0.0], [1.0]]).round(4).tolist()
    [1.0, 1.25, 4.0]
    """

    supports: ClassVar = {"at": "real", "steepness": "positive"}

    def __init__(
        self, before: Covariance, after: Covariance, at: Any = None, steepness: Any = None, *, column: int = 0
    ) -> None:
        super().__init__({"at": at, "steepness": steepness}, parts=[before, after])
        self.column = int(column)

    def _steps(self, X: Any, xp: Any) -> tuple[Any, Any]:
        """Return how much each row is before, and how much after; neither loses digits far away."""
        if self.column >= X.shape[1]:
            raise InvalidArgument(
                f"Changepoint looks at column {self.column}, and inputs have {X.shape[1]} (numbered from 0)"
            )
        half = 0.5 * self.number("steepness") * (X[:, self.column] - self.number("at"))
        lower = xp.exp(-2.0 * xp.abs(half))
        small, large = lower / (1.0 + lower), 1.0 / (1.0 + lower)
        return xp.where(half > 0, small, large), xp.where(half > 0, large, small)

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        left = self._steps(X, xp)
        right = left if Z is None else self._steps(Z, xp)
        both = [
            a[:, None] * b * part.value(X, Z, xp) for a, b, part in zip(left, right, self.parts, strict=True)
        ]
        return both[0] + both[1]

    def diag(self, X: Any, xp: Any) -> Any:
        both = [a**2 * part.diagonal(X, xp) for a, part in zip(self._steps(X, xp), self.parts, strict=True)]
        return both[0] + both[1]

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        found = [part.forward(X, Z) for part in self.parts]
        left, other = self._steps(X, np), X if Z is None else Z
        right = self._steps(other, np)

        def pull(W: Array) -> dict[tuple[int, str], Any]:
            by_left = [(W * K) @ b for (K, _), b in zip(found, right, strict=True)]
            by_right = [a @ (W * K) for (K, _), a in zip(found, left, strict=True)]
            inner = [back(W * a[:, None] * b) for (_, back), a, b in zip(found, left, right, strict=True)]
            return added(
                [self._pull_steps(X, left, by_left), self._pull_steps(other, right, by_right), *inner]
            )

        return sum(
            (a[:, None] * b * K for (K, _), a, b in zip(found, left, right, strict=True)), np.zeros(1)
        ), pull

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        found, steps = [part.forward_diagonal(X) for part in self.parts], self._steps(X, np)

        def pull(w: Array) -> dict[tuple[int, str], Any]:
            by_steps = [2.0 * w * a * v for (v, _), a in zip(found, steps, strict=True)]
            inner = [back(w * a**2) for (_, back), a in zip(found, steps, strict=True)]
            return added([self._pull_steps(X, steps, by_steps), *inner])

        return self.diag(X, np), pull

    def _pull_steps(
        self, X: Array, steps: tuple[Array, Array], by_steps: list[Array]
    ) -> dict[tuple[int, str], Any]:
        """Return derivatives by where and how steeply it changes, from those by how much rows are before and after."""
        slope = (by_steps[1] - by_steps[0]) * steps[0] * steps[1]
        return self.pulled(
            at=lambda: -self.number("steepness") * slope.sum(),
            steepness=lambda: slope @ (X[:, self.column] - self.number("at")),
        )

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        left, right = self._steps(X, np), self._steps(Z, np)
        total = np.zeros_like(X)
        for sign, a, b, part in zip((-1.0, 1.0), left, right, self.parts, strict=True):
            total += part.input_gradient(X, Z, W * a[:, None] * b)
            slope = sign * self.number("steepness") * left[0] * left[1]
            total[:, self.column] += slope * ((W * part.value(X, Z)) @ b)
        return total

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        """Start in the middle of the inputs, with a step over a tenth of their spread."""
        x = X[:, self.column]
        return {"at": float(np.median(x)), "steepness": 10.0 / float(column_spreads(x[:, None])[0])}

    def __repr__(self) -> str:
        shown = super().__repr__()
        return f"{shown[:-1]}, column={self.column})" if self.column else shown


class FromFunction(Covariance):
    """A covariance of a user's own: any function k(x, z) of two rows, in `jax.numpy`.

    It is symmetric and positive definite, or refused at the first inputs where it is seen not to be.

    Parameters
    ----------
    function
        From two rows, and hyper-parameters by name, to a number.
    columns
        The columns of the inputs that it gets.
    hypers
        Its hyper-parameters: numbers, arrays, or `mk.Parameter` for what is fitted.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import markovia as mk
    >>> k = mk.covariances.FromFunction(lambda x, z, a: jnp.exp(-a * jnp.abs(x - z).sum()), a=mk.Parameter(2.0))
    >>> k.value([[0.0]], [[0.5]]).round(6).tolist()
    [[0.367879]]
    """

    def __init__(self, function: Callable[..., Any], *, columns: Any = None, **hypers: Any) -> None:
        if not callable(function):
            raise InvalidArgument(f"FromFunction takes a function k(x, z) of two rows, not {function!r}")
        for name, value in hypers.items():
            if value is None:
                raise InvalidArgument(
                    f"{name} of FromFunction needs a number, or a mk.Parameter to start from"
                )
        supports = {n: h.support or "real" if isinstance(h, Parameter) else "real" for n, h in hypers.items()}
        self.supports = supports  # type: ignore[misc]
        super().__init__(hypers, columns)
        self.function = function
        self.looked_at = np.zeros(1)  # how many rows were; one array for all copies with other numbers

    def _pairs(self, X: Any, Z: Any) -> Any:
        hypers = {name: self.number(name) for name in self.own}

        def pair(x: Any, z: Any) -> Any:
            return jnp.reshape(self.function(x, z, **hypers), ())

        with traced(f"the function of {self!r}"):
            return jax.vmap(lambda x: jax.vmap(lambda z: pair(x, z))(Z))(X)

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        if xp is not np:
            return self._pairs(X, X if Z is None else Z)
        self._look(X if Z is None else np.concatenate([X, Z]))
        with x64():
            return np.array(self._pairs(jnp.asarray(X), jnp.asarray(X if Z is None else Z)), np.float64)

    def diag(self, X: Any, xp: Any) -> Any:
        hypers = {name: self.number(name) for name in self.own}
        if xp is not np:
            return jax.vmap(lambda x: jnp.reshape(self.function(x, x, **hypers), ()))(X)
        with x64():
            return np.array(self.diag(jnp.asarray(X), jnp), np.float64)

    def _look(self, X: Array) -> None:
        """Check some rows, more than before: a function that is no covariance makes answers that mean nothing."""
        some = X[np.unique(np.linspace(0, len(X) - 1, min(60, len(X))).astype(int))]
        if len(some) <= self.looked_at[0]:
            return
        with x64():
            K = np.asarray(self._pairs(jnp.asarray(some), jnp.asarray(some)), np.float64)
        if said := fault_of(K):
            raise InvalidArgument(f"the function of {self!r} is no covariance: {said}")
        self.looked_at[0] = len(some)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return super().__repr__().replace("(", f"({name}, ", 1).replace(", )", ")")
