"""A node whose distribution is a value or a function of its parents: what a Bayesian model is written in.

The function is kept as the user wrote it; its argument names say what it depends on. Which of them are nodes and which are
constants is known only when the model is asked, and so are shapes. See `markovia.inference.densities.program.program`.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Codes, Conditional
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Array


class Input:
    """A node that has no distribution: a constant or covariate that comes with `given`.

    Declaring one gives it plates, so that it is aligned with other nodes on them.

    Examples
    --------
    >>> import markovia as mk
    >>> m = mk.BayesianNetwork()
    >>> m.add("sigma", mk.Input(), plate="school")
    >>> m.variables
    ['sigma']
    """

    def __repr__(self) -> str:
        return "Input()"


class Flat:
    """No preference: every value weighs one. For the first step of a chain, or as the prior of a number.

    As a prior it is improper, a density that has no integral: engines that sample or optimise a density take it, wherever
    the data make the posterior proper; it cannot be drawn from, so there are no prior predictive draws.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> m = mk.BayesianNetwork()
    >>> m.add("b", mk.Flat())
    >>> m.add("y", lambda b: dist.Normal(b, 1), plate="row")
    >>> round(m.map(given={"y": np.array([1.0, 2.0, 6.0])})["b"], 3)
    3.0
    """

    def __repr__(self) -> str:
        return "Flat()"


@dataclass(frozen=True)
class FixedFunction:
    """A function set from outside, in place of a process: `m.do(f=np.sin)`."""

    function: Callable[..., Any]

    def __repr__(self) -> str:
        return f"FixedFunction({getattr(self.function, '__name__', self.function)!r})"


class Lag(NamedTuple):
    """An argument that is an earlier element of a node along the last plate."""

    node: str
    steps: int


class FunctionNode(Conditional):
    """P(variable | parents) as a distribution that a function returns.

    Attributes
    ----------
    form
        A distribution, a function, an `Input`, or an array (a node set from outside).
    arguments
        What the function's arguments refer to, by parameter: names of nodes, constants or plates.
    previous
        Arguments that are earlier elements along the last plate.
    first
        The distribution of the first elements, where there is no earlier one.
    by_state
        Whether discrete parents come as states instead of positions.
    """

    kind: ClassVar[str] = "distribution"

    def __init__(
        self,
        variable: Quantity,
        form: Any,
        arguments: Mapping[str, str] | None = None,
        parents: Sequence[Variable] = (),
        previous: Mapping[str, Lag] | None = None,
        first: Any = None,
        by_state: bool = False,
    ) -> None:
        self.variable: Quantity = variable
        self.parents = tuple(parents)
        self.form = form
        self.arguments = dict(arguments or {})
        self.previous = dict(previous or {})
        self.first = first
        self.by_state = by_state

    def with_parents(self, parents: Sequence[Variable]) -> "FunctionNode":
        """Return the same node when more (or fewer) of its arguments are nodes."""
        return FunctionNode(
            self.variable, self.form, self.arguments, parents, self.previous, self.first, self.by_state
        )

    def with_variable(self, variable: Quantity) -> "FunctionNode":
        """Return the same distribution of a quantity that was there before, with the lengths its plates had."""
        return FunctionNode(
            variable, self.form, self.arguments, self.parents, self.previous, self.first, self.by_state
        )

    def rebound(self, variable: Variable, parents: tuple[Variable, ...]) -> Self:
        """Return the same distribution over renamed variables."""
        assert isinstance(variable, Quantity)
        fresh = {old.name: new.name for old, new in zip(self.parents, parents, strict=True)}
        fresh[self.variable.name] = variable.name
        arguments = {k: fresh.get(v, v) for k, v in self.arguments.items()}
        previous = {k: Lag(fresh.get(lag.node, lag.node), lag.steps) for k, lag in self.previous.items()}
        return type(self)(variable, self.form, arguments, parents, previous, self.first, self.by_state)

    def fixed_at(self, value: Any) -> "FunctionNode":
        """Return the node set to a value from outside; one that is a function, to a function."""
        if callable(value):
            return FunctionNode(self.variable, FixedFunction(value))
        return FunctionNode(self.variable, np.asarray(value))

    @property
    def observed_only(self) -> bool:
        """Whether it is an input, which has no distribution."""
        return isinstance(self.form, Input)

    @property
    def n_parameters(self) -> int:
        """None: a function has no parameters of its own."""
        return 0

    @property
    def n_rows(self) -> int:
        """One: there is no table."""
        return 1

    @property
    def values(self) -> Array:
        """Refuse: there is no table."""
        self._no_table()

    def log_prob(self, child: Codes, parents: Sequence[Codes]) -> Array:
        """Refuse: shapes are known only to the whole model."""
        self._no_table()

    def sample(self, parents: Sequence[Codes], size: int, rng: np.random.Generator) -> Any:
        """Refuse: shapes are known only to the whole model."""
        self._no_table()

    def __repr__(self) -> str:
        given = f" | {', '.join(self.arguments.values())}" if self.arguments else ""
        over = f" for each {', '.join(self.variable.plates)}" if self.variable.plates else ""
        return f"FunctionNode p({self.variable.name}{given}){over}: {form_name(self.form)}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<code>{escape(repr(self))}</code>"

    def _no_table(self) -> NoReturn:
        raise UnsupportedModel(f"{self.variable.name!r} is a distribution of numbers and has no table")


def function_arguments(name: str, function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments that have no default: what the function's node depends on.

    Raises
    ------
    InvalidArgument
        For `*args`, `**kwargs`, and functions that do not tell their arguments.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        raise InvalidArgument(
            f"the function for {name!r} does not say what its arguments are called; write a lambda around it"
        ) from None
    for q in parameters:
        if q.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise InvalidArgument(
                f"the function for {name!r} takes *{q.name}, which names no parents; write its arguments out"
            )
    return tuple(q.name for q in parameters if q.default is inspect.Parameter.empty)


def form_name(form: Any) -> str:
    """Return a short text for a node's form."""
    if callable(form) and not is_distribution(form):
        return str(getattr(form, "__name__", None) or repr(form))
    return type(form).__name__ if is_distribution(form) else repr(form)
