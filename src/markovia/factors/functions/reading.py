"""Which forms of distribution make a function node, and with which arguments: the rules for `BayesianNetwork.add`."""

import keyword
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from markovia.errors import DuplicateName, InvalidArgument
from markovia.factors.distributions.finite_distributions import is_distribution, is_finite
from markovia.factors.functions.closures import frozen
from markovia.factors.functions.function_node import (
    Flat,
    FunctionNode,
    Input,
    Lag,
    function_arguments,
)
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.table_forms import argument_names, as_conditional
from markovia.factors.tables.variable import State, Variable


def as_function_node(
    variables: Mapping[str, Variable],
    name: str,
    form: Any,
    states: int | Sequence[State] | None = None,
    parents: Sequence[str] | str | None = None,
    plate: str | Sequence[str] | Mapping[str, int] | None = None,
    previous: Mapping[str, str | tuple[str, int]] | None = None,
    first: Any = None,
) -> FunctionNode | None:
    """Return the node that a distribution or a function of parents makes; None where the form is a table's.

    A function whose arguments are discrete nodes alone, without plates, is a table (it is called for each combination of
    their states), unless it returns a distribution of numbers.
    """
    plates, lengths = read_plates(name, plate)
    if previous is None and first is not None:
        raise InvalidArgument(f"first= of {name!r} is for nodes with previous=")
    if isinstance(form, Input):
        return FunctionNode(Quantity(name, "input", plates, lengths), form)
    if hasattr(form, "node_form"):  # a process: a node that is a function
        form, given = form.node_form(name)
        return FunctionNode(Quantity(name, "number", plates, lengths), form, given)
    if isinstance(form, Flat):
        form = _improper()
    _refuse_foreign(name, form)
    form, first = frozen(form), frozen(first)
    function = callable(form) and not is_distribution(form) and not hasattr(form, "columns")
    if not plates and not previous:
        if is_distribution(form):
            if is_finite(form):
                return None
        elif (
            not function
            or hasattr(form, "bind")
            or isinstance(form, type)
            or (_all_discrete(variables, form, parents) and not _of_numbers(variables, form, parents))
        ):
            return None
    if form is None:
        raise InvalidArgument(f"{name!r} is on plates and needs a distribution")
    labels = _labels(name, states)
    quantity = Quantity(name, "number", plates, lengths, labels)
    if is_distribution(form):
        return FunctionNode(quantity, form)
    if not function:
        return _plated_table(variables, quantity, form, states, parents)
    named = _arguments(name, form, parents)
    lags = _lags(name, previous, named, plates)
    arguments = {k: v for k, v in named.items() if k not in lags}
    if name in arguments.values():
        raise InvalidArgument(
            f"{name!r} cannot depend on itself; for earlier elements along a plate say previous={{...: {name!r}}}"
        )
    if lags and first is None:
        raise InvalidArgument(
            f"{name!r} has previous= and needs first=, the distribution of what has no earlier element (or Flat())"
        )
    if first is not None and not (is_distribution(first) or isinstance(first, Flat) or callable(first)):
        raise InvalidArgument(f"first= of {name!r} is a distribution, a function or Flat(), not {first!r}")
    if callable(first) and not is_distribution(first):
        arguments.update({n: n for n in function_arguments(name, first)})
    found = [variables[n] for n in dict.fromkeys(arguments.values()) if n in variables]
    by_state = not plates and not lags and bool(arguments) and all(_discrete(v) for v in found)
    return FunctionNode(
        quantity, form, arguments, found, lags, first, by_state and len(found) == len(arguments)
    )


def _improper() -> Any:
    """Return the density that is one for every number."""
    from numpyro.distributions import ImproperUniform, constraints

    return ImproperUniform(constraints.real, (), ())


def _refuse_foreign(name: str, form: Any) -> None:
    """Refuse a number, and what another library calls a distribution, in words that help."""
    if isinstance(form, Number) or (isinstance(form, np.ndarray) and form.ndim == 0):
        raise InvalidArgument(
            f"{name!r} is to be {form!r}, which is a number and no distribution; leave the node out and give the constant, "
            f"given={{{name!r}: {form!r}}}, or say dist.Delta({form!r}); probabilities of states are a list, p=[...]"
        )
    library = type(form).__module__.partition(".")[0]
    if library in FOREIGN and not is_distribution(form):
        family = getattr(getattr(form, "dist", form), "name", None) or type(form).__name__
        ours = SCIPY_FAMILIES.get(family.removesuffix("_gen").removesuffix("_frozen"))
        example = f"dist.{ours}(...)" if ours else "dist.Normal(0, 1)"
        raise InvalidArgument(
            f"{name!r} has a distribution of {library}, {family}; take it from markovia.distributions: {example}, or a "
            "function that returns one"
        )


FOREIGN = ("scipy", "torch", "pymc", "tensorflow_probability", "pytensor")
"""Libraries whose distributions are none here."""
SCIPY_FAMILIES = {
    "norm": "Normal",
    "expon": "Exponential",
    "gamma": "Gamma",
    "invgamma": "InverseGamma",
    "beta": "Beta",
    "uniform": "Uniform",
    "t": "StudentT",
    "cauchy": "Cauchy",
    "halfcauchy": "HalfCauchy",
    "halfnorm": "HalfNormal",
    "laplace": "Laplace",
    "lognorm": "LogNormal",
    "poisson": "Poisson",
    "bernoulli": "Bernoulli",
    "binom": "Binomial",
    "multivariate_normal": "MultivariateNormal",
    "dirichlet": "Dirichlet",
    "multinomial": "Multinomial",
}
"""What SciPy's distributions are called here."""


def read_plates(
    name: str, plate: str | Sequence[str] | Mapping[str, int] | None
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the names of plates in order, and the lengths that are declared."""
    if plate is None:
        return (), {}
    named = (plate,) if isinstance(plate, str) else tuple(plate)
    for item in named:
        if not isinstance(item, str) or not item.isidentifier() or keyword.iskeyword(item):
            raise InvalidArgument(
                f"a plate of {name!r} is named by an identifier such as 'row', not {item!r}"
            )
    if len(set(named)) < len(named):
        raise DuplicateName(f"{name!r} is on one plate twice: {', '.join(named)}")
    lengths = dict(plate) if isinstance(plate, Mapping) else {}
    for item, length in lengths.items():
        if not isinstance(length, int | np.integer) or isinstance(length, bool) or length < 1:
            raise InvalidArgument(f"the length of plate {item!r} is a positive integer, not {length!r}")
    return named, {k: int(v) for k, v in lengths.items()}


def _labels(name: str, states: int | Sequence[State] | None) -> tuple[State, ...]:
    return () if states is None else tuple(Variable(name, states).states)


def _arguments(name: str, form: Callable[..., Any], parents: Sequence[str] | str | None) -> dict[str, str]:
    """Return what each argument refers to: the name it has, or the parents in order."""
    parameters = function_arguments(name, form)
    if parents is None:
        return {q: q for q in parameters}
    named = [parents] if isinstance(parents, str) else list(parents)
    if len(named) != len(parameters):
        raise InvalidArgument(
            f"the function for {name!r} takes {len(parameters)} arguments and parents= names {len(named)}"
        )
    return dict(zip(parameters, named, strict=True))


def _lags(
    name: str,
    previous: Mapping[str, str | tuple[str, int]] | None,
    arguments: Mapping[str, str],
    plates: tuple[str, ...],
) -> dict[str, Lag]:
    if not previous:
        return {}
    if not plates:
        raise InvalidArgument(f"previous= of {name!r} needs a plate to go back along")
    found = {}
    for parameter, said in previous.items():
        if parameter not in arguments:
            raise InvalidArgument(
                f"previous= of {name!r} names {parameter!r}, which its function does not take ({', '.join(arguments)})"
            )
        node, steps = (said, 1) if isinstance(said, str) else said
        if not isinstance(node, str) or not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
            raise InvalidArgument(
                f"previous={{{parameter!r}: ...}} of {name!r} is a node's name, or (name, steps back), not {said!r}"
            )
        found[parameter] = Lag(node, steps)
    return found


def _discrete(variable: Variable) -> bool:
    return not isinstance(variable, Quantity)


def _parents_of(form: Callable[..., Any], parents: Sequence[str] | str | None) -> list[str]:
    if parents is not None:
        return [parents] if isinstance(parents, str) else list(parents)
    return list(argument_names(form))


def _all_discrete(variables: Mapping[str, Variable], form: Any, parents: Sequence[str] | str | None) -> bool:
    named = _parents_of(form, parents)
    return all(n in variables and _discrete(variables[n]) for n in named)


def _of_numbers(
    variables: Mapping[str, Variable],
    form: Callable[..., Any],
    parents: Sequence[str] | str | None,
) -> bool:
    """Say whether a function of states returns a distribution that is not over a few states."""
    states = [variables[n].states[0] for n in _parents_of(form, parents)]
    try:
        answer = form(*states)
    except Exception:  # the table's own reading says what is wrong
        return False
    return (is_distribution(answer) and not is_finite(answer)) or hasattr(answer, "node_form")


def _plated_table(
    variables: Mapping[str, Variable],
    quantity: Quantity,
    form: Any,
    states: int | Sequence[State] | None,
    parents: Sequence[str] | str | None,
) -> FunctionNode:
    """Return a discrete node on plates, given by a table, as a function that looks its rows up."""
    named = [] if parents is None else [parents] if isinstance(parents, str) else list(parents)
    rows = []
    for n in named:
        parent = variables.get(n)
        if parent is None or (isinstance(parent, Quantity) and not parent.labels):
            raise InvalidArgument(
                f"{quantity.name!r} has a table, so its parent {n!r} must have states; give states= to {n!r}, or write a "
                "function that returns a distribution"
            )
        rows.append(Variable(n, parent.labels if isinstance(parent, Quantity) else parent.states))
    shape = np.shape(form) if not isinstance(form, str | Mapping) else ()
    own = Variable(quantity.name, states if states is not None else (shape[-1] if shape else 2))
    table = as_conditional(own, tuple(rows), form).values
    labelled = Quantity(quantity.name, "number", quantity.plates, quantity.lengths, own.states)
    lookup = TableLookup(tuple(named), table)
    return FunctionNode(labelled, lookup, {n: n for n in named}, [variables[n] for n in named])


class TableLookup:
    """The function of a table: the row of the parents' positions, as a categorical distribution."""

    def __init__(self, parents: tuple[str, ...], table: Any) -> None:
        self.parents = parents
        self.table = np.asarray(table)

    def __call__(self, **positions: Any) -> Any:
        """Return the distribution for arrays of positions by parent."""
        import jax.numpy as jnp
        import numpyro.distributions as theirs

        table = jnp.asarray(self.table)
        index = tuple(positions[n] for n in self.parents)
        return theirs.Categorical(probs=table[index] if index else table)
