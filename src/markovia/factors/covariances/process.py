"""A Gaussian process as what a node is: a function, which children call; and what may be known of one."""

# ruff: noqa: N803 (letters of the literature)

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.covariance import Covariance
from markovia.factors.functions.function_node import FixedFunction
from markovia.factors.functions.parameter import Parameter
from markovia.runtime.array_types import Array


class GP:
    """A Gaussian process: a node that is a function, known by how alike its values are at two inputs.

    It has no inputs of its own. A child's function calls it: `f(x)` with a number, (n,) or (n, d) numbers; `f(x, k)` takes
    columns side by side; `f.grad(x)`, `f.integral(a, b)`. Where all children are observed normal numbers that are linear in
    the function, it is summed out exactly; otherwise its values are inferred.

    Parameters
    ----------
    covariance
        One of `mk.covariances`, or a sum or product of such.
    mean
        The mean: a number, a `mk.Parameter`, or a function of the inputs (numbers, or rows of them).
    inducing
        Inputs at which the function is inferred instead of at all rows, or how many of them (chosen among the rows); for
        many rows with children that are not normal.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> m = mk.BayesianNetwork()
    >>> m.add("f", mk.GP(mk.covariances.RBF(length=1.0)))
    >>> m.add("y", lambda f, x: dist.Normal(f(x), 0.1**0.5), plate="row")
    >>> post = m.query("f", given={"x": np.array([0.0, 0.5, 2.0]), "y": np.array([1.0, 0.2, -0.7])})
    >>> there = post.at(1.0)
    >>> round(there.mean(), 6), round(there.sd(), 6), post.info.exact
    (-0.216611, 0.404583, True)
    """

    def __init__(self, covariance: Covariance, mean: Any = 0.0, *, inducing: Any = None) -> None:
        if not isinstance(covariance, Covariance):
            raise InvalidArgument(
                f"a process has a covariance of mk.covariances, such as mk.covariances.RBF(1.0), not {covariance!r}"
            )
        if isinstance(mean, type | str) or (isinstance(mean, Parameter) and mean.is_module):
            raise InvalidArgument(f"the mean of a process is a number or a function of inputs, not {mean!r}")
        if inducing is not None:
            many = isinstance(inducing, int | np.integer) and not isinstance(inducing, bool)
            inducing = int(inducing) if many else _rows(inducing)
            if many and inducing < 1:
                raise InvalidArgument(
                    "inducing= is the number of inducing inputs, 1 or more, or these inputs themselves"
                )
        self.covariance, self.mean, self.inducing = covariance, mean, inducing

    def mean_at(self, X: Any, xp: Any) -> Any:
        """Return the mean at rows of inputs."""
        if not callable(self.mean):
            return xp.zeros(len(X)) + (self.mean.value if isinstance(self.mean, Parameter) else self.mean)
        found = xp.asarray(self.mean(X[:, 0] if X.shape[1] == 1 else X))
        return xp.broadcast_to(xp.reshape(found, (-1,)), (len(X),))

    def free(self) -> dict[str, Any]:
        """Return what is fitted, by name: hyper-parameters of the covariance, and the mean where it is a parameter."""
        found: dict[str, Any] = dict(self.covariance.free())
        return found | (
            {"mean": self.mean} if isinstance(self.mean, Parameter) and not self.mean.fixed else {}
        )

    def with_values(self, values: Mapping[str, Any]) -> "GP":
        """Return the process with numbers in place of what is fitted, by the names of `free`."""
        inner = {name: value for name, value in values.items() if name != "mean"}
        return GP(self.covariance.with_values(inner), values.get("mean", self.mean), inducing=self.inducing)

    def node_form(self, name: str) -> tuple[Any, dict[str, str]]:
        """Return what a node that is this process is made of: itself, or a function of parameters that are fitted."""
        fitted = FittedProcess(name, self)
        return (fitted, fitted.arguments) if fitted.hypers else (self, {})

    def __repr__(self) -> str:
        mean = (
            ""
            if not callable(self.mean) and not np.ndim(self.mean) and self.mean == 0
            else f", mean={self.mean!r}"
        )
        return f"GP({self.covariance!r}{mean})"


class FittedProcess:
    """The function of a node whose covariance has hyper-parameters that are fitted: parameters of the network.

    Called with their values by name, it returns the process.
    """

    def __init__(self, node: str, process: GP) -> None:
        self.node, self.process = node, process
        self.hypers = {f"{node}.{name}": name for name in process.free()}
        """What the hyper-parameters are called in the network, and in the process."""

    def network_parameters(self) -> dict[str, Parameter]:
        """Return the parameters of the network; one that was not said is no number yet."""
        free, found = self.process.free(), {}
        for name, inner in self.hypers.items():
            own = free[inner]
            if own.prior is not None:
                raise InvalidArgument(
                    f"{inner} has a prior, and in a network what has a prior is a node that the process depends on: "
                    "add('length', dist.LogNormal(0, 1)) and add('f', lambda length: mk.GP(...))"
                )
            start = Parameter(1.0 if own.value is None else own.value, support=own.support)
            # a length for each column is as long as there are columns, which only data tell
            found[name] = start.with_value(np.asarray(np.nan)) if own.value is None else start
        return found

    def started(self, values: Mapping[str, Any], X: Array, y: Array) -> dict[str, Array]:
        """Return starts, at the scale of inputs and outputs, of those hyper-parameters that are no number yet."""
        free = self.process.free()
        wanted = {n: inner for n, inner in self.hypers.items() if n in values and free[inner].value is None}
        covariance = self.process.covariance.started(X, y)
        return {n: np.asarray(covariance.hypers()[inner].value, float) for n, inner in wanted.items()}

    def __call__(self, **values: Any) -> GP:
        """Return the process at values of its hyper-parameters, called as `arguments` says."""
        return self.process.with_values(
            {self.hypers[name]: values[key] for key, name in self.arguments.items()}
        )

    @property
    def arguments(self) -> dict[str, str]:
        """What the arguments are called, and the parameters that they stand for."""
        return {f"hyper{i}": name for i, name in enumerate(self.hypers)}

    @property
    def parents(self) -> tuple[str, ...]:
        """The names of the arguments."""
        return tuple(self.arguments)

    def __repr__(self) -> str:
        return repr(self.process)


class Points:
    """Values that a function is known to have at some inputs: `given={"f": mk.Points(x, values)}`.

    Parameters
    ----------
    x, values
        Inputs, and the function's value at each.

    Examples
    --------
    >>> import markovia as mk
    >>> m = mk.BayesianNetwork()
    >>> m.add("f", mk.GP(mk.covariances.RBF(width=1.0)))
    >>> there = m.query("f", given={"f": mk.Points([0.0, 1.0], [0.0, 1.0])}).at(0.5)
    >>> round(there.mean(), 6), round(there.var(), 6)
    (0.569349, 0.113181)
    """

    def __init__(self, x: Any, values: Any) -> None:
        self.x = _rows(x)
        self.values = np.ravel(np.asarray(values, dtype=np.float64))
        if self.x.ndim > 2 or len(self.x) != len(self.values):
            raise InvalidArgument(
                f"mk.Points has {len(self.x)} inputs and {len(self.values)} values; one value for each input"
            )
        if not np.isfinite(self.values).all() or not np.isfinite(self.x).all():
            raise InvalidArgument("inputs and values of mk.Points are finite numbers")

    def __repr__(self) -> str:
        return f"Points of {len(self.x)} inputs"


def is_process(found: Any) -> bool:
    """Say whether what a node's function says is a function itself."""
    return isinstance(found, GP | FixedFunction)


def _rows(x: Any) -> Array:
    rows = np.asarray(x, dtype=np.float64)
    return rows.reshape(-1, 1) if rows.ndim < 2 else rows
