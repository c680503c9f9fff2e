"""What the bridges to other libraries' objects share: names, states, rounded rows, and factors with one scope.

Other libraries name nodes by any hashable object and states by anything; here names are strings and states are
strings, integers or booleans. What fits is kept, everything else is written as text.
"""

from collections.abc import Hashable, Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from markovia.errors import DuplicateName, InvalidTable, MarkoviaError, ParseError, UnsupportedModel
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.factor import Factor, product
from markovia.factors.tables.variable import State, Variable
from markovia.io.rows import RowPolicy
from markovia.models.graphical.factor_model import FactorModel
from markovia.runtime.array_types import Array


def require(module: str, package: str) -> Any:
    """Import an optional module, or say how to install its package.

    Raises
    ------
    MarkoviaError
        If the package is not installed.

    Examples
    --------
    >>> require("no_such_module", "no-such-package")
    Traceback (most recent call last):
    ...
    markovia.errors.MarkoviaError: this needs no-such-package; install it with: pip install no-such-package
    """
    try:
        return import_module(module)
    except ImportError:
        raise MarkoviaError(f"this needs {package}; install it with: pip install {package}") from None


def text_names(nodes: Iterable[Hashable]) -> dict[Any, str]:
    """Return the name of each node as a string.

    Raises
    ------
    DuplicateName
        If two nodes print alike, such as 1 and '1'.

    Examples
    --------
    >>> text_names([1, "b", (0, 2)])
    {1: '1', 'b': 'b', (0, 2): '(0, 2)'}
    """
    names: dict[Any, str] = {}
    owner: dict[str, Any] = {}
    for node in nodes:
        name = str(node)
        if name in owner and node not in names:
            raise DuplicateName(
                f"the nodes {owner[name]!r} and {node!r} would both be called {name!r}; rename one"
            )
        names[node] = name
        owner[name] = node
    return names


def plain_states(states: Iterable[Any]) -> list[State]:
    """Return states as they are where all are strings, integers or booleans, and as text otherwise.

    Examples
    --------
    >>> plain_states([np.int64(3), 4.0]), plain_states([0.5, 1.0])
    ([3, 4], ['0.5', '1.0'])
    """
    items = [s.item() if isinstance(s, np.generic) else s for s in states]
    whole = [int(s) if isinstance(s, float) and s.is_integer() else s for s in items]
    if all(isinstance(s, str | int) for s in whole):
        return whole
    return [str(s) for s in items]


class PeerTables:
    """Makes conditional tables of another library's numbers, which may be rounded; call `finish` at the end."""

    def __init__(self, library: str) -> None:
        self._rows = RowPolicy(f"{library} model")

    def conditional(self, variable: Variable, parents: Sequence[Variable], values: Array) -> ConditionalTable:
        """Return the table over `(*parents, variable)`, its rows rescaled where they are rounded.

        Raises
        ------
        InvalidTable
            If a row is no distribution, or the shape is not that of the variables.
        """
        own = np.array(values, dtype=np.float64)
        if own.shape != tuple(len(v) for v in (*parents, variable)):
            raise InvalidTable(
                f"the table of {variable.name!r} has shape {own.shape} in the order (parents, child), "
                f"but its variables have {[len(v) for v in (*parents, variable)]} states"
            )
        try:
            own = self._rows.check(own, lambda row: (row + 1, 1), f"of {variable.name!r}")
        except ParseError as error:
            raise InvalidTable(f"row {error.line} of the table: {error.expected}") from None
        return ConditionalTable(variable, parents, own)

    def finish(self) -> None:
        """Warn once if rows were rescaled."""
        self._rows.finish()


def one_factor_per_scope(model: FactorModel, library: str) -> list[Factor]:
    """Return factors with the same product of which no two are over the same variables, and every variable has one.

    Other libraries keep factors in sets or by their variables, so a second factor over the same ones would be lost or
    refused: those are multiplied. A constant goes into another factor; a variable in no factor gets one of ones.

    Raises
    ------
    UnsupportedModel
        If the model is a constant and nothing else.

    Examples
    --------
    >>> from markovia import MarkovNetwork
    >>> f = Factor(["a", "b"], [[1, 2], [3, 4]])
    >>> model = MarkovNetwork({"a": 2, "b": 2}, [f, f.transpose(["b", "a"]), Factor.scalar(10)])
    >>> one_factor_per_scope(model, "pgmpy")[0].values.tolist()
    [[10.0, 40.0], [90.0, 160.0]]
    """
    scopes: dict[frozenset[str], list[Factor]] = {}
    for factor in model.factors:
        scopes.setdefault(frozenset(factor.names), []).append(factor)
    constant = product(scopes.pop(frozenset(), [])).total
    merged = [
        group[0] if len(group) == 1 else product(group).transpose(group[0].names) for group in scopes.values()
    ]
    mentioned = {name for factor in merged for name in factor.names}
    idle = [model.variable(name) for name in model.variables if name not in mentioned]
    merged += [Factor.of((v,), np.ones(len(v))) for v in idle]
    if constant != 1.0:
        if not merged:
            raise UnsupportedModel(
                f"{library} has no factor without variables, and this model has nothing else"
            )
        merged[0] = merged[0] * constant
    return merged
