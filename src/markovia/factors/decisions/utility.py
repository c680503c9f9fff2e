"""Utilities: nodes that say what an outcome is worth.

A utility has no states and no distribution. Several of them add up; one whose parents are utilities says how these are
weighed against each other.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, NoReturn

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable, UnsupportedModel
from markovia.factors.decisions.quadratic import Quadratic
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import MAX_TABLE_ENTRIES, Codes, Conditional
from markovia.factors.tables.rendering import render_table
from markovia.factors.tables.table_forms import argument_names
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Array


class Worth(Quantity):
    """What a utility node is about: an amount, which nobody observes and which no distribution is of."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name, "utility")

    def renamed(self, name: str) -> "Worth":
        """Return the same under another name."""
        return Worth(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Worth, (self.name,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Worth) and self.name == other.name

    def __hash__(self) -> int:
        return hash((Worth, self.name))


class Utility:
    """A recipe for a node that says what its parents are worth.

    Parameters
    ----------
    form
        A table (axes in the order of the parents), a mapping from states (tuples of states for several parents) to
        amounts, a number (no parents), or a function of the parents' states, whose argument names are the parents. Of
        numbers: a function, or a `Quadratic`. Of other utilities: a function of their amounts.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("oil", [0.5, 0.3, 0.2], states=["dry", "wet", "soaking"])
    >>> bn.add("drill", mk.Decision(["yes", "no"]))
    >>> bn.add("gain", mk.Utility(lambda oil, drill: 0 if drill == "no" else {"dry": -70, "wet": 50, "soaking": 200}[oil]))
    >>> round(bn.decide().value, 6)
    20.0
    """

    __slots__ = ("form",)
    domain: ClassVar[str] = "utility"

    def __init__(self, form: Any) -> None:
        if isinstance(form, type | str):
            raise InvalidArgument(f"a utility is a table, a mapping, a function or a Quadratic, not {form!r}")
        self.form = form

    @property
    def parent_names(self) -> tuple[str, ...] | None:
        """The parents that a function or a quadratic form names; None where any will do."""
        if isinstance(self.form, Quadratic):
            return self.form.parent_names
        named: tuple[str, ...] | None = getattr(self.form, "parent_names", None)
        if named is not None:
            return named
        return argument_names(self.form) if callable(self.form) else None

    def default_states(self) -> None:
        """Return None: an amount has no states."""
        return

    def variable_named(self, name: str) -> Worth:
        """Return the variable that the node is about."""
        return Worth(name)

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> "UtilityNode":
        """Return the node over the given variables."""
        if not isinstance(variable, Worth):
            raise UnsupportedModel(f"{variable.name!r} has states; a utility is a node of its own: add() it")
        return UtilityNode(variable, parents, self.form)

    def __repr__(self) -> str:
        return f"Utility({getattr(self.form, '__name__', None) or self.form!r})"


class UtilityNode(Conditional):
    """What the states, numbers or utilities that are its parents are worth.

    Attributes
    ----------
    variable, parents
        The amount, and what it depends on.
    worth
        The amounts, axes in the order of the parents; None where a parent is a number or a utility.
    form
        What the user wrote.
    combines
        Whether the parents are utilities.
    """

    kind: ClassVar[str] = "utility"

    def __init__(self, variable: Worth, parents: Sequence[Variable], form: Any) -> None:
        self.variable: Worth = variable
        self.parents = tuple(parents)
        if len({variable.name, *self.parent_names}) != len(self.parents) + 1:
            raise InvalidTable(
                f"{variable.name!r} and its parents {list(self.parent_names)} must be different"
            )
        utilities = [isinstance(p, Worth) for p in self.parents]
        self.combines = any(utilities)
        if self.combines and not all(utilities):
            mixed = self.parents[utilities.index(False)].name
            raise InvalidArgument(
                f"{variable.name!r} weighs utilities against each other, and {mixed!r} is none; give {mixed!r} a utility "
                "of its own first"
            )
        self.form = form
        self.worth: Array | None = None
        if self.combines or any(isinstance(p, Quantity) for p in self.parents):
            if not callable(form):
                raise InvalidArgument(
                    f"{variable.name!r} is worth a function of {', '.join(map(repr, self.parent_names))}, not a table"
                )
        else:
            self.worth = self.form = _amounts(variable.name, self.parents, form)

    def amount(self, **parents: Any) -> Any:
        """Return what values of all parents, by name, are worth; numbers may be arrays."""
        if self.worth is not None:
            return float(self.worth[tuple(p.index(parents[p.name]) for p in self.parents)])
        return called(self.form, self.parent_names, parents)

    @property
    def values(self) -> NoReturn:
        """Refuse: amounts are no probabilities."""
        raise self._refusal()

    def log_prob(self, child: Codes, parents: Sequence[Codes]) -> Array:
        """Refuse: an amount has no probability."""
        raise self._refusal()

    def sample(self, parents: Sequence[Codes], size: int, rng: np.random.Generator) -> Any:
        """Refuse: an amount is not drawn."""
        raise self._refusal()

    def rebound(self, variable: Variable, parents: tuple[Variable, ...]) -> "UtilityNode":
        """Return the same amounts over renamed variables or states."""
        assert isinstance(variable, Worth)
        if self.worth is not None:
            return UtilityNode(variable, parents, self.worth)
        names = dict(zip(self.parent_names, [p.name for p in parents], strict=True))
        form = self.form
        if isinstance(form, Quadratic):
            return UtilityNode(variable, parents, form.renamed(names))
        return UtilityNode(variable, parents, Renamed(form, self.parent_names, tuple(names.values())))

    def fixed_at(self, value: Any) -> NoReturn:
        """Refuse: what something is worth is not set from outside."""
        raise InvalidArgument(
            f"{self.variable.name!r} is a utility and is not set; replace() changes what it says"
        )

    @property
    def n_parameters(self) -> int:
        """None: nothing is learned about a utility."""
        return 0

    def allclose(self, other: Conditional, *, atol: float = 1e-12) -> bool:
        """Say whether the same outcomes are worth the same."""
        if not isinstance(other, UtilityNode) or {*self.parents} != {*other.parents}:
            return False
        if self.worth is None or other.worth is None:
            return self.form is other.form or bool(self.form == other.form)
        place = {p: i for i, p in enumerate(other.parents)}
        theirs = other.worth.transpose([place[p] for p in self.parents])
        return bool(np.allclose(self.worth, theirs, rtol=0.0, atol=atol))

    def __repr__(self) -> str:
        head = f"UtilityNode {self.variable.name}({', '.join(self.parent_names)})"
        if self.worth is None or self.worth.size > 4096 or not self.parents:
            shown = self.form if self.worth is None else float(self.worth) if not self.parents else "..."
            return f"{head} = {getattr(shown, '__name__', None) or repr(shown)}"
        return f"{head}\n{render_table(self.parents, self.worth, 'worth')}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"

    def _refusal(self) -> UnsupportedModel:
        name = self.variable.name
        return UnsupportedModel(
            f"{name!r} is a utility and has no distribution of its own; ask utility(), or decide()"
        )


class Renamed:
    """A function under other names for its arguments."""

    def __init__(self, function: Callable[..., Any], old: tuple[str, ...], new: tuple[str, ...]) -> None:
        self.function, self.old, self.parent_names = function, old, new

    def __call__(self, *numbers: Any) -> Any:
        """Call the function with the arguments in its own order."""
        return called(self.function, self.old, dict(zip(self.old, numbers, strict=True)))


def called(form: Callable[..., Any], parents: Sequence[str], given: Mapping[str, Any]) -> Any:
    """Call a function of parents: by name where its arguments are their names, else in order."""
    if isinstance(form, Quadratic):
        return form(**given)
    named = getattr(form, "parent_names", None) or argument_names(form)
    if {*named} == {*parents}:
        return form(*(given[n] for n in named))
    return form(*(given[n] for n in parents))


def _amounts(name: str, parents: tuple[Variable, ...], form: Any) -> Array:
    """Return a table of amounts in the order of the parents, read from any form."""
    shape = tuple(len(p) for p in parents)
    if len(shape) > 64 or np.prod(shape, dtype=object) > MAX_TABLE_ENTRIES:
        from markovia.errors import TooLarge

        raise TooLarge(
            f"the table of {name!r} would have {np.prod(shape, dtype=object):,} entries; split the utility"
        )
    if callable(form):
        table = _from_function(name, parents, form, shape)
    elif isinstance(form, Mapping):
        table = _from_mapping(name, parents, form, shape)
    else:
        try:
            table = np.array(form, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidTable(
                f"the amounts of {name!r} are a regular list of numbers, not {form!r}"
            ) from None
        if table.shape != shape:
            if table.size != np.prod(shape) or table.ndim > len(shape):
                wanted = " x ".join(f"{p.name}({len(p)})" for p in parents) or "one number"
                raise InvalidTable(
                    f"the amounts of {name!r} have shape {table.shape}, but its parents are {wanted}"
                )
            table = table.reshape(shape)
    if len(bad := np.argwhere(~np.isfinite(table))):
        at = ", ".join(f"{p.name}={p.states[i]!r}" for p, i in zip(parents, bad[0], strict=True))
        raise InvalidTable(
            f"the worth of {name!r}{f' for {at}' if at else ''} is {table[tuple(bad[0])]}; amounts are finite (forbid "
            "choices with mk.Decision(states, allowed=...))"
        )
    table.setflags(write=False)
    return table


def _from_function(name: str, parents: tuple[Variable, ...], form: Any, shape: tuple[int, ...]) -> Array:
    names = [p.name for p in parents]
    table = np.empty(shape)
    for at, states in zip(np.ndindex(*shape), product(*(p.states for p in parents)), strict=True):
        answer = called(form, names, dict(zip(names, states, strict=True)))
        try:
            table[at] = float(answer)
        except (TypeError, ValueError):
            said = ", ".join(map(repr, states))
            raise InvalidTable(f"the worth of {name!r} for ({said}) is a number, not {answer!r}") from None
    return table


def _from_mapping(
    name: str, parents: tuple[Variable, ...], form: Mapping[Any, Any], shape: tuple[int, ...]
) -> Array:
    table = np.full(shape, np.nan)
    filled = np.zeros(shape, dtype=bool)
    for key, amount in form.items():
        states = key if isinstance(key, tuple) else (key,)
        if len(states) != len(parents):
            raise InvalidTable(
                f"the key {key!r} of {name!r} has {len(states)} states; one a parent, in the order "
                f"{[p.name for p in parents]}"
            )
        at = tuple(p.index(s) for p, s in zip(parents, states, strict=True))
        table[at] = amount
        filled[at] = True
    if not filled.all():
        first = np.argwhere(~filled)[0]
        at_missing = ", ".join(f"{p.name}={p.states[i]!r}" for p, i in zip(parents, first, strict=True))
        raise InvalidTable(f"{name!r} does not say what {at_missing} is worth")
    return table
