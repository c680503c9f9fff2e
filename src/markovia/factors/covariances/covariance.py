"""Covariance functions as one hierarchy with two faces: NumPy with closed-form adjoints, and JAX.

`value(X, Z, xp)` is written once for NumPy and `jax.numpy`. `forward(X, Z)` is NumPy alone: the matrix, and a function that
pulls weights W on it back to the hyper-parameters, the sums of W * dK/dtheta. A sum hands W on to its parts, a
product W times the other part, so that no array with an axis a hyper-parameter is ever made.

A hyper-parameter that is a number is fixed; one that is a `Parameter` is fitted; one that was not said is fitted, too, and
starts at the scale of the data (`started`). In a node's function it may be a parent's value, which JAX traces.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from markovia.errors import IncompleteModel, InvalidArgument
from markovia.factors.functions.parameter import Parameter
from markovia.runtime.array_types import Array
from markovia.runtime.registry import resolve

if TYPE_CHECKING:
    from markovia.factors.covariances.column_factors import ColumnFactor
    from markovia.factors.covariances.markov_form import MarkovForm
    from markovia.factors.covariances.spectral import Frequencies

Pull = Callable[[Array], dict[tuple[int, str], Any]]
"""From weights W to the sums of W * dK/dtheta, by hyper-parameter: (id of its part, its name); those that are free."""


MAY_BE_ZERO = frozenset({"variance", "kappa", "weights", "offset"})
"""Hyper-parameters that are added or multiplied by, and never divided by."""


@dataclass(frozen=True)
class Hyper:
    """A hyper-parameter of a covariance.

    Attributes
    ----------
    part
        The covariance that it belongs to, one of those that the whole is made of.
    name
        What that covariance calls it.
    value
        A number or an array; None where it was not said.
    support
        "positive", "real" or "unit".
    free
        Whether it is fitted.
    prior
        The distribution of the number, where it has one.
    """

    part: "Covariance"
    name: str
    value: Any
    support: str
    free: bool
    prior: Any = None


class Covariance:
    """A covariance function k(x, x') of two inputs, rows of numbers.

    Add and multiply covariances with each other, and multiply them with variances. `columns` picks the columns of the inputs
    that it looks at; all of them by default.

    Examples
    --------
    >>> import markovia as mk
    >>> k = 2.0 * mk.covariances.RBF(length=1.5) + mk.covariances.White(0.1)
    >>> k
    2 * RBF(length=1.5) + White(variance=0.1)
    >>> k.value([[0.0], [1.5]]).round(4).tolist()
    [[2.1, 1.2131], [1.2131, 2.1]]
    """

    supports: ClassVar[Mapping[str, str]] = {}
    """The hyper-parameters of its own in order, each with its support."""
    stationary: ClassVar[bool] = False
    """Whether it depends on the difference of two inputs alone."""
    __array_ufunc__ = None  # so that NumPy leaves `variance * covariance` to `__rmul__`

    def __init__(
        self,
        own: Mapping[str, Any] | None = None,
        columns: Sequence[int] | int | None = None,
        parts: Sequence["Covariance"] = (),
    ) -> None:
        self.own = {
            name: hyper_value(type(self).__name__, name, value) for name, value in (own or {}).items()
        }
        self.columns = None if columns is None else _columns(type(self).__name__, columns)
        self.parts = tuple(parts)
        for name, value in self.own.items():
            self._check(name, value.value if isinstance(value, Parameter) else value)

    # -- what a covariance has to say ---------------------------------------------------------------------------

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        """Return the matrix of covariances between rows of X and rows of Z (X itself where that is None)."""
        raise NotImplementedError

    def diag(self, X: Any, xp: Any) -> Any:
        """Return the variances at the rows of X."""
        raise NotImplementedError

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        """Return the matrix of rows of X by rows of Z (X itself where None), and what pulls weights on it back; NumPy."""
        return by_jax(self, lambda made, xp: made.k(xp.asarray(X), None if Z is None else xp.asarray(Z), xp))

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        """Return the variances at the rows of X, and what pulls weights on them back; NumPy."""
        return by_jax(self, lambda made, xp: made.diag(xp.asarray(X), xp))

    def pull_inputs(self, X: Array, Z: Array, W: Array) -> Array:
        """Return the derivative of sum(W * k(X, Z)) by X, an array of the shape of X; NumPy."""
        from markovia.runtime.double_precision import x64
        from markovia.runtime.libraries import jax, jnp

        with x64():
            _, back = jax.vjp(lambda rows: self.k(rows, jnp.asarray(Z), jnp), jnp.asarray(X))
            return np.asarray(back(jnp.asarray(W))[0])

    def inputs_of_parts(self, X: Array) -> Array:
        """Return the inputs that its parts get."""
        return X

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        """Return where hyper-parameters that were not said start, from the scale of inputs and targets."""
        return {}

    # -- faces ----------------------------------------------------------------------------------------------------

    def value(self, X: Any, Z: Any = None, xp: Any = np) -> Any:
        """Return the matrix of covariances between rows of X and rows of Z.

        Without Z they are those of X with itself, where noise of each place (`White`) counts on the diagonal.
        """
        X = self._rows(X, xp)
        return self.k(X, None if Z is None else self._rows(Z, xp), xp)

    def diagonal(self, X: Any, xp: Any = np) -> Any:
        """Return the variances at the rows of X, without the matrix."""
        return self.diag(self._rows(X, xp), xp)

    def forward(self, X: Any, Z: Any = None) -> tuple[Array, Pull]:
        """Return the matrix that `value` says, and what pulls weights on it back to free hyper-parameters.

        Examples
        --------
        >>> import numpy as np
        >>> import markovia as mk
        >>> k = mk.covariances.RBF(length=mk.Parameter(2.0, support="positive"))
        >>> K, pull = k.forward(np.array([[0.0], [1.0]]))
        >>> [round(float(v), 6) for v in pull(np.ones((2, 2))).values()]  # 2 exp(-1/8) / 8
        [0.220624]
        """
        return self.adjoint(self._rows(X, np), None if Z is None else self._rows(Z, np))

    def forward_diagonal(self, X: Any) -> tuple[Array, Pull]:
        """Return the variances at the rows of X, and what pulls a weight for each back, as `forward` does."""
        return self.adjoint_diagonal(self._rows(X, np))

    def input_gradient(self, X: Any, Z: Any, W: Array) -> Array:
        """Return the derivative of sum(W * k(X, Z)) by the numbers of X, for all of its columns.

        Examples
        --------
        >>> import numpy as np
        >>> import markovia as mk
        >>> mk.covariances.Linear(1.0, columns=1).input_gradient([[1.0, 2.0]], [[3.0, 4.0]], np.ones((1, 1))).tolist()
        [[0.0, 4.0]]
        """
        found = self.pull_inputs(self._rows(X, np), self._rows(Z, np), W)
        width = np.shape(X)[1] if np.ndim(X) == 2 else 1
        return found if self.columns is None else found @ np.eye(width)[list(self.columns)]

    def state_space(self) -> "MarkovForm | None":
        """Return the covariance as a Markov process along one column (`markov_form`); None where it is none.

        Matern covariances of one column, cosines, constants, their multiples, sums and products are.
        """
        form: MarkovForm | None = _late("markov_form:markov_form")(self)
        return form

    def spectral_density(self, omega: Any) -> Array:
        """Return the Fourier transform S of k at angular frequencies, rows of as many numbers as columns that it looks at.

        k(r) is the integral of S(omega) cos(omega r) over all omega, over (2 pi)^columns (`spectral`).
        """
        return self.spectral_forward(omega)[0]

    def spectral_forward(self, omega: Any) -> tuple[Array, Pull]:
        """Return the spectral density at angular frequencies, and what pulls weights on it back to free hyper-parameters."""
        omega = np.asarray(omega, dtype=np.float64)
        rows = omega.reshape(-1, 1) if omega.ndim < 2 else omega
        found: tuple[Array, Pull] = _late("spectral:spectral_forward")(self, rows)
        return found

    def spectral_draws(self, n: int, d: int, rng: np.random.Generator) -> "Frequencies":
        """Return n random frequencies of d columns with weights: k(x, z) is the mean of sum(w cos(omega (x - z)))."""
        drawn: Frequencies = _late("spectral:spectral_draws")(self, n, d, rng)
        return drawn

    def factors_over_columns(self, d: int) -> "list[ColumnFactor] | None":
        """Return one covariance a column whose product it is; None where it is no such product (`column_factors`)."""
        found: list[ColumnFactor] | None = _late("column_factors:factors_over_columns")(self, d)
        return found

    def _rows(self, X: Any, xp: Any) -> Any:
        X = xp.asarray(X)
        if X.dtype.kind not in "fbiu" or X.ndim > 2:
            what = f"an array of {X.ndim} axes" if X.ndim > 2 else X.dtype
            raise InvalidArgument(f"inputs of a covariance are rows of numbers, not {what}")
        X = xp.asarray(X, float) if X.dtype.kind != "f" else X
        if X.ndim < 2:
            X = xp.reshape(X, (-1, 1))
        if self.columns is not None:
            if max(self.columns) >= X.shape[1]:
                raise InvalidArgument(
                    f"{type(self).__name__} looks at column {max(self.columns)}, and inputs have {X.shape[1]} "
                    "(numbered from 0)"
                )
            X = X[:, list(self.columns)]
        return X

    # -- hyper-parameters -------------------------------------------------------------------------------------------

    def tree(self) -> Iterator["Covariance"]:
        """Go through the covariance and all that it is made of, each once, the whole first."""
        seen: dict[int, Covariance] = {}

        def visit(part: Covariance) -> None:
            if id(part) not in seen:
                seen[id(part)] = part
                for inner in part.parts:
                    visit(inner)

        visit(self)
        yield from seen.values()

    def hypers(self) -> dict[str, Hyper]:
        """Return all hyper-parameters by name: `rbf.length`, and `rbf2.length` for the second such part.

        Examples
        --------
        >>> import markovia as mk
        >>> k = mk.covariances
        >>> {n: h.free for n, h in (2.0 * k.RBF() + k.White(0.1)).hypers().items()}
        {'scaled.variance': False, 'rbf.length': True, 'white.variance': False}
        """
        found: dict[str, Hyper] = {}
        times: dict[str, int] = {}
        for part in self.tree():
            kind = type(part).__name__.lower()
            if part.own:
                times[kind] = times.get(kind, 0) + 1
                kind += str(times[kind]) if times[kind] > 1 else ""
            for name, value in part.own.items():
                free = value is None or (isinstance(value, Parameter) and not value.fixed)
                is_parameter = isinstance(value, Parameter)
                support = (value.support if is_parameter else None) or part.supports[name]
                found[f"{kind}.{name}"] = Hyper(
                    part,
                    name,
                    value.value if is_parameter else value,
                    support,
                    free,
                    value.prior if is_parameter else None,
                )
        return found

    def free(self) -> dict[str, Hyper]:
        """Return the hyper-parameters that are fitted, by name."""
        return {name: hyper for name, hyper in self.hypers().items() if hyper.free}

    def with_values(self, values: Mapping[str, Any], *, keep: bool = False) -> "Covariance":
        """Return the covariance with other numbers, by the names of `hypers`.

        With `keep` those that were fitted stay parameters, at their new values; otherwise they are numbers, and fixed.
        """
        hypers = self.hypers()
        fresh: dict[int, dict[str, Any]] = {}
        for name, value in values.items():
            if name not in hypers:
                raise InvalidArgument(f"there is no hyper-parameter {name!r}; there are {', '.join(hypers)}")
            hyper = hypers[name]
            old = hyper.part.own[hyper.name]
            if keep and hyper.free:
                # a support that is given to Parameter is checked there, which loads a compiler; here it holds already
                start = old if isinstance(old, Parameter) else Parameter(0.0)
                value = start.with_value(np.asarray(value, dtype=np.float64))
                value.support = hyper.support
            else:
                value = hyper_value(type(hyper.part).__name__, hyper.name, value)
                hyper.part._check(hyper.name, value)
            fresh.setdefault(id(hyper.part), {})[hyper.name] = value
        return self._replaced(fresh, {})

    def _replaced(self, fresh: Mapping[int, Mapping[str, Any]], made: dict[int, "Covariance"]) -> Self:
        if id(self) not in made:
            other = copy(self)
            other.own = {**self.own, **fresh.get(id(self), {})}
            made[id(self)] = other
            other.parts = tuple(part._replaced(fresh, made) for part in self.parts)
        return made[id(self)]  # type: ignore[return-value]

    def started(self, X: Any, y: Any) -> "Covariance":
        """Return the covariance with parameters in place of what was not said, at the scale of the data."""
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        X = X.reshape(-1, 1) if X.ndim < 2 else X
        suggested: dict[int, dict[str, Any]] = {}

        def visit(part: Covariance, X: Array) -> None:
            X = part._rows(X, np)
            if id(part) not in suggested:
                suggested[id(part)] = part.starts(X, y) if any(v is None for v in part.own.values()) else {}
                for inner in part.parts:
                    visit(inner, part.inputs_of_parts(X))

        visit(self, X)
        found = {n: suggested[id(h.part)][h.name] for n, h in self.hypers().items() if h.value is None}
        return self.with_values(found, keep=True) if found else self

    def number(self, name: str) -> Any:
        """Return a hyper-parameter of its own as a number, an array, or what JAX traces."""
        value = self.own[name]
        if value is None:
            raise IncompleteModel(
                f"{name} of {type(self).__name__} was not said, and starts at the scale of the data in fit; fit first, or "
                f"give a number"
            )
        return value.value if isinstance(value, Parameter) else value

    def is_free(self, name: str) -> bool:
        """Say whether a hyper-parameter of its own is fitted."""
        value = self.own[name]
        return value is None or (isinstance(value, Parameter) and not value.fixed)

    def pulled(self, **grads: Callable[[], Any]) -> dict[tuple[int, str], Any]:
        """Return derivatives of those hyper-parameters of its own that are free; functions, called only for them."""
        return {(id(self), name): grad() for name, grad in grads.items() if self.is_free(name)}

    def _check(self, name: str, value: Any, support: str | None = None) -> None:
        """Refuse a number outside the support; what is traced cannot be looked at."""
        if value is None or not isinstance(value, int | float | np.ndarray | np.generic):
            return
        value, support = np.asarray(value), support or self.supports.get(name, "real")
        # variances and what else is added may be zero; what is divided by may not
        inside = value > 0.0 if support == "positive" and name not in MAY_BE_ZERO else value >= 0.0
        if support == "unit":
            inside = inside & (value <= 1.0)
        if not np.isfinite(value).all() or (support != "real" and not inside.all()):
            words = {"positive": "a positive number", "unit": "a number from 0 to 1"}.get(
                support, "a finite number"
            )
            raise InvalidArgument(f"{name} of {type(self).__name__} is {words}, not {value}")

    # -- algebra ----------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> "Covariance":
        return self._joined("Sum", self, other)

    def __radd__(self, other: Any) -> "Covariance":
        return self._joined("Sum", other, self)

    def __mul__(self, other: Any) -> "Covariance":
        return self._joined("Product", self, other) if isinstance(other, Covariance) else self.__rmul__(other)

    def __rmul__(self, other: Any) -> "Covariance":
        return self._joined("Scaled", other, self)

    @staticmethod
    def _joined(kind: str, *pair: Any) -> "Covariance":
        """Return a sum, a product or a multiple; a number that is added is a constant."""
        found: Covariance = NotImplemented
        if all(isinstance(one, Covariance) or _is_number(one) for one in pair):
            if kind == "Sum":
                pair = tuple(
                    one if isinstance(one, Covariance) else _late("algebra:Constant")(one) for one in pair
                )
            found = _late(f"algebra:{kind}")(*pair)
        return found

    def __pow__(self, times: int) -> "Covariance":
        if not isinstance(times, int) or times < 1:
            raise InvalidArgument("a covariance is raised to a whole number, 1 or more")
        return self if times == 1 else self * self ** (times - 1)

    def __repr__(self) -> str:
        said = [f"{n}={_shown(v)}" for n, v in self.own.items() if v is not None]
        if self.columns is not None:
            said.append(f"columns={list(self.columns)}")
        return f"{type(self).__name__}({', '.join([*map(repr, self.parts), *said])})"


class Correlation(Covariance):
    """A covariance of functions whose variance is one at every input."""

    def diag(self, X: Any, xp: Any) -> Any:
        """Return ones."""
        return xp.ones(len(X))

    def adjoint_diagonal(self, X: Array) -> tuple[Array, Pull]:
        """Return ones, which no hyper-parameter moves."""
        zeros = {name: (lambda name=name: np.zeros(np.shape(self.number(name)))) for name in self.own}
        return np.ones(len(X)), lambda w: self.pulled(**zeros)


def by_jax(
    covariance: Covariance, function: Callable[[Covariance, Any], Any]
) -> tuple[Any, Callable[..., Any]]:
    """Return what a function of a covariance and of NumPy is, and what pulls weights on it back, by JAX.

    Examples
    --------
    >>> import markovia as mk
    >>> k = mk.covariances.Constant(mk.Parameter(3.0))
    >>> value, pull = by_jax(k, lambda made, xp: made.number("variance") ** 2)
    >>> float(value), [float(v) for v in pull(1.0).values()]
    (9.0, [6.0])
    """
    from markovia.runtime.double_precision import x64
    from markovia.runtime.libraries import jax, jnp

    free = covariance.free()

    def pull(*weights: Any) -> dict[tuple[int, str], Any]:
        if not free:
            return {}
        with x64():
            start = {name: jnp.asarray(hyper.value) for name, hyper in free.items()}
            found, back = jax.vjp(lambda values: function(covariance.with_values(values), jnp), start)
            by = jax.tree.unflatten(jax.tree.structure(found), [jnp.asarray(w) for w in weights])
            slopes = back(by)[0]
        return {(id(h.part), h.name): np.asarray(slopes[name]) for name, h in free.items()}

    return function(covariance, np), pull


def one_or_each(cov: Covariance, name: str, X: Any) -> Any:
    """Return a hyper-parameter that is one number, or one a column of the inputs X."""
    value = cov.number(name)
    if np.ndim(value) and np.shape(value) != (X.shape[1],):
        raise InvalidArgument(
            f"{name} of {type(cov).__name__} has the shape {np.shape(value)}, and its inputs {X.shape[1]} columns; one "
            "number, or one for each column"
        )
    return value


def _late(home: str) -> Any:
    """Import what a covariance is asked for from a file that builds on this one."""
    return resolve(f"{__package__}.{home}")


def _columns(kind: str, columns: Any) -> tuple[int, ...]:
    found = np.atleast_1d(np.asarray(columns))
    if found.ndim > 1 or not found.size or found.dtype.kind not in "iu" or found.min() < 0:
        raise InvalidArgument(
            f"columns of {kind} are numbers of columns of the inputs, from 0, not {columns!r}"
        )
    return tuple(found.tolist())


def _is_number(value: Any) -> bool:
    """Say whether it is a number, an array, a parameter, or what JAX traces."""
    return isinstance(value, int | float | np.ndarray | np.generic | Parameter) or hasattr(value, "dtype")


def hyper_value(kind: str, name: str, value: Any) -> Any:
    """Return a number as NumPy has it; parameters and what is traced as they are."""
    if (
        value is None
        or isinstance(value, Parameter)
        or (hasattr(value, "dtype") and not isinstance(value, np.ndarray))
    ):
        if isinstance(value, Parameter) and value.is_module:
            raise InvalidArgument(
                f"{name} of {kind} is a number or an array; a module warps inputs: Warped(cov, module)"
            )
        return value
    try:
        return np.asarray(value, dtype=np.float64)[()]
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{name} of {kind} is a number, an array or a mk.Parameter, not {value!r}"
        ) from None


def _shown(value: Any) -> str:
    if isinstance(value, Parameter):
        return repr(value)
    if np.ndim(value) == 0 and isinstance(value, int | float | np.generic):
        return f"{float(value):.6g}"
    return str(np.round(value, 6).tolist()) if isinstance(value, np.ndarray) else type(value).__name__
