"""Every practical way to write a conditional table, turned into a `Conditional`.

Accepted: nested lists or an array (parents first, child last), one row a parent configuration (the last parent fastest), a
flat list, a dict of rows, a pandas
DataFrame (wide: one row a parent configuration; long: columns for every variable and one for `p`), a Python
function of the parents' states (returning a state, or probabilities), the words "uniform" and "random",
a `LocalModel` such as `NoisyOr(...)`, `mk.exponential.Bernoulli` and `Categorical`, and a ready `Conditional`.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Protocol, runtime_checkable

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable, UnknownState
from markovia.factors.distributions.discrete_families import Bernoulli, Categorical
from markovia.factors.distributions.exponential_family import ExponentialFamily
from markovia.factors.distributions.finite_distributions import is_distribution, probabilities
from markovia.factors.tables.conditional import (
    Conditional,
    ConditionalTable,
    random_table,
    table_shape,
    uniform_table,
)
from markovia.factors.tables.variable import Variable
from markovia.runtime.checks import numbers
from markovia.runtime.seeds import generator


@runtime_checkable
class LocalModel(Protocol):
    """A recipe for a conditional distribution, bound to its variables when the node is added."""

    @property
    def parent_names(self) -> tuple[str, ...] | None:
        """The parents the recipe itself names, or None where any parents will do."""

    def default_states(self) -> Sequence[Any] | None:
        """Return the child's states where the recipe implies them (booleans for a logical gate), else None."""

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> Conditional:
        """Return the distribution over the given variables."""


def as_conditional(
    variable: Variable,
    parents: tuple[Variable, ...],
    p: Any,
    *,
    seed: int | np.random.Generator | None = None,
    normalise: bool = False,
) -> Conditional:
    """Turn any accepted form into a checked conditional distribution.

    With `normalise`, the rows of a table may be any non-negative numbers and are divided by their sums.

    Examples
    --------
    >>> a, b = Variable("a", 2), Variable("b", 2)
    >>> c = Variable("c", 2)
    >>> as_conditional(c, (a, b), lambda a, b: a ^ b).values.tolist()
    [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    >>> as_conditional(b, (a,), {0: [0.9, 0.1], 1: {0: 0.2, 1: 0.8}}).values.tolist()
    [[0.9, 0.1], [0.2, 0.8]]
    >>> as_conditional(c, (a, b), [[3, 1], [1, 1], [0, 5], [1, 3]], normalise=True).values.tolist()
    [[[0.75, 0.25], [0.5, 0.5]], [[0.0, 1.0], [0.25, 0.75]]]
    """
    if isinstance(p, Conditional):
        if p.variable != variable or set(p.parents) != set(parents):
            raise InvalidTable(
                f"the given distribution is over {p.names}, not over {variable.name!r} and its parents"
            )
        return p
    if isinstance(p, type):
        raise InvalidArgument(f"p={p.__name__} is a class; write {p.__name__}(...)")
    if isinstance(p, LocalModel):
        return p.bind(variable, parents)
    if isinstance(p, str):
        return _by_word(variable, parents, p, seed)
    if is_distribution(p):
        values: Any = probabilities(p)
    elif isinstance(p, ExponentialFamily):
        values = _of_distribution(variable, p)
    elif isinstance(p, Mapping):
        values = _from_rows(variable, parents, p)
    elif hasattr(p, "columns") and hasattr(p, "to_numpy"):
        values = _from_frame(variable, parents, p)
    elif callable(p):
        values = _from_function(variable, parents, p)
    else:
        values = _nested(variable, parents, p)
    return ConditionalTable(variable, parents, values, normalise=normalise)


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's positional arguments: its parents in the graph."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some built-in functions do not tell theirs
        raise InvalidArgument(
            f"{function!r} does not say what its arguments are called; pass parents=[...]"
        ) from None
    if any(q.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) for q in parameters):
        raise InvalidArgument(
            "a function with *args or **kwargs does not name its parents; pass parents=[...]"
        )
    return tuple(q.name for q in parameters if q.kind in kinds and q.default is inspect.Parameter.empty)


def _of_distribution(variable: Variable, p: ExponentialFamily) -> Any:
    if isinstance(p, Bernoulli):
        return [1.0 - p.probs, p.probs]
    if isinstance(p, Categorical):
        return p.probs
    raise InvalidArgument(
        f"{variable.name!r} has states and cannot be {type(p).__name__}; a number takes a distribution of "
        f"markovia.distributions, such as dist.{type(p).__name__}(...)"
    )


def _by_word(
    variable: Variable, parents: tuple[Variable, ...], word: str, seed: int | np.random.Generator | None
) -> ConditionalTable:
    if word == "uniform":
        return uniform_table(variable, parents)
    if word == "random":
        return random_table(variable, parents, generator(seed))
    raise InvalidArgument(f"p={word!r} is not understood; the words are 'uniform' and 'random'")


def _nested(variable: Variable, parents: tuple[Variable, ...], p: Any) -> Any:
    """Give a flat list, or one row a parent configuration, its shape; anything else is checked as it is."""
    if not isinstance(p, np.ndarray):
        try:
            p = np.array(p, dtype=np.float64)
        except (ValueError, TypeError):
            return p
    shape = table_shape(variable, parents)
    if p.ndim < len(shape) and p.shape in ((prod(shape),), (prod(shape[:-1]), shape[-1])):
        return p.reshape(shape)
    return p


def _from_rows(variable: Variable, parents: tuple[Variable, ...], rows: Mapping[Any, Any]) -> Any:
    shape = table_shape(variable, parents)
    if not parents:
        if set(rows) == {()}:
            return _one_row(variable, rows[()], "the only row")
        return _one_row(variable, rows, "the only row")
    values = np.full(shape, np.nan)
    for key, row in rows.items():
        states = key if isinstance(key, tuple) else (key,)
        if len(states) != len(parents):
            raise InvalidTable(
                f"the row key {key!r} of {variable.name!r} has {len(states)} states; "
                f"one a parent is needed, in the order {[p.name for p in parents]}"
            )
        at = tuple(q.index(s) for q, s in zip(parents, states, strict=True))
        values[at] = _one_row(variable, row, f"the row for {key!r}")
    missing = np.argwhere(np.isnan(values[..., 0]))
    if len(missing):
        where = ", ".join(f"{q.name}={q.states[i]!r}" for q, i in zip(parents, missing[0], strict=True))
        raise InvalidTable(f"the table of {variable.name!r} has no row for {where} ({len(missing)} missing)")
    return values


def _from_function(variable: Variable, parents: tuple[Variable, ...], function: Callable[..., Any]) -> Any:
    values = np.empty(table_shape(variable, parents))
    _require_arity(variable, parents, function)
    for codes, states in zip(
        np.ndindex(*values.shape[:-1]), product(*(q.states for q in parents)), strict=True
    ):
        answer = function(*states)
        where = f"the answer for ({', '.join(map(repr, states))})"
        if isinstance(answer, np.generic):
            answer = answer.item()
        if answer is None:
            raise InvalidTable(f"{where} of {variable.name!r} is None; return a state or probabilities")
        if isinstance(answer, str | int | bool):
            row = np.zeros(len(variable))
            row[variable.index(answer)] = 1.0
            values[codes] = row
        elif isinstance(answer, float):
            values[codes] = _bernoulli(variable, answer, where)
        else:
            values[codes] = _one_row(variable, answer, where)
    return values


def _require_arity(variable: Variable, parents: tuple[Variable, ...], function: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:  # some built-in functions do not tell theirs
        return
    try:
        signature.bind(*parents)
    except TypeError as problem:
        raise InvalidArgument(
            f"the function for {variable.name!r} is called with one state a parent, "
            f"in the order {[q.name for q in parents]}, but takes {signature} ({problem})"
        ) from None


def _bernoulli(variable: Variable, p: float, where: str) -> list[float]:
    if len(variable) != 2:
        raise InvalidTable(f"{where} of {variable.name!r} is one number; that is enough only for two states")
    return [1.0 - p, p]


def _one_row(variable: Variable, row: Any, where: str) -> Any:
    if is_distribution(row):
        row = probabilities(row)
    elif isinstance(row, Mapping):
        for state in row:
            if state not in variable.codes:
                raise UnknownState(variable.name, state, variable.states)
        row = [row.get(state, 0.0) for state in variable.states]
    values = numbers(row, f"{where} of {variable.name!r} is a list of probabilities", InvalidTable)
    if values.ndim == 0:
        return _bernoulli(variable, float(values), where)
    if values.shape != (len(variable),):
        raise InvalidTable(
            f"{where} of {variable.name!r} has {values.size} entries for {len(variable)} states"
        )
    return values


def _floats(variable: Variable, numbers: Any) -> Any:
    try:
        return numbers.to_numpy(dtype=float)
    except (ValueError, TypeError):
        raise InvalidTable(f"the frame for {variable.name!r} holds entries that are not numbers") from None


def _from_frame(variable: Variable, parents: tuple[Variable, ...], frame: Any) -> Any:
    columns = list(frame.columns)
    if len(set(columns)) < len(columns):
        raise InvalidTable(f"the frame for {variable.name!r} has two columns of one name: {columns}")
    involved = [*(q.name for q in parents), variable.name]
    if set(involved) <= set(columns):
        extra = [c for c in columns if c not in involved]
        if len(extra) != 1:
            raise InvalidTable(
                f"a long frame for {variable.name!r} has one column a variable and one of probabilities; "
                f"the columns beyond {involved} are {extra}"
            )
        values = np.full(table_shape(variable, parents), np.nan)
        axes = (*parents, variable)
        codes = tuple([q.index(s) for s in frame[q.name]] for q in axes)
        if len(set(zip(*codes, strict=True))) != len(frame):
            raise InvalidTable(f"the long frame for {variable.name!r} lists a combination of states twice")
        values[codes] = _floats(variable, frame[extra[0]])
        if np.isnan(values).any():
            raise InvalidTable(
                f"the long frame for {variable.name!r} does not list every combination of states"
            )
        return values
    rows = {}
    for key, row in zip(frame.index, _floats(variable, frame), strict=True):
        rows[key if parents else ()] = dict(zip(columns, row, strict=True))
    if len(rows) < len(frame):
        raise InvalidTable(
            f"the frame for {variable.name!r} has {len(frame)} rows for {len(rows)} configurations of the parents; "
            "each has one row"
        )
    names = [n for n in frame.index.names if n is not None]
    if parents and len(names) == len(parents) and names != [q.name for q in parents]:
        if set(names) != {q.name for q in parents}:
            raise InvalidTable(
                f"the frame's index levels are {names}, the parents {[q.name for q in parents]}"
            )
        order = [names.index(q.name) for q in parents]
        rows = {tuple(key[i] for i in order): row for key, row in rows.items()}
    return _from_rows(variable, parents, rows)
