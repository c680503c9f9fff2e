"""Decisions: nodes that somebody chooses, seeing exactly their parents.

A decision has no distribution until a policy gives it one. With states it is one of them; without, a number.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from markovia.errors import IncompleteModel, InvalidArgument, UnsupportedModel, check_known
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Codes, Conditional, table_shape
from markovia.factors.tables.table_forms import argument_names
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array

Allowed: TypeAlias = NDArray[np.bool_]


class Decision:
    """A recipe for a node that is chosen; its parents are what is seen before it.

    Parameters
    ----------
    states
        What there is to choose from, or how many; None where a number is chosen.
    allowed
        A function of what is seen (its arguments name parents) that returns the states that may be chosen there; or a
        table of truth values with axes `(*parents, states)`.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("weather", {"dry": 0.7, "rain": 0.3})
    >>> bn.add("forecast", [[0.9, 0.1], [0.2, 0.8]], states=["dry", "rain"], parents=["weather"])
    >>> bn.add("umbrella", mk.Decision(["take", "leave"]), parents=["forecast"])
    >>> bn.add("comfort", mk.Utility([[20, 100], [20, -50]]), parents=["weather", "umbrella"])
    >>> bn.decide()["umbrella"].row(forecast="rain").tolist()
    [1.0, 0.0]
    """

    __slots__ = ("allowed", "states")
    parent_names: ClassVar[None] = None
    """Any parents will do."""

    def __init__(
        self,
        states: int | Sequence[State] | None = None,
        allowed: Callable[..., Iterable[State]] | Any = None,
    ) -> None:
        self.states = None if states is None else Variable("decision", states).states
        self.allowed = allowed
        if states is None and allowed is not None:
            raise InvalidArgument("allowed= is for decisions among states; a number may be any")

    @property
    def domain(self) -> str:
        """What is chosen: "states", or a "real" number."""
        return "real" if self.states is None else "states"

    def default_states(self) -> Sequence[State] | None:
        """Return what there is to choose from."""
        return self.states

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> "DecisionNode":
        """Return the node over the given variables."""
        if isinstance(variable, Quantity):
            return DecisionNode(variable, parents)
        if self.states is not None and tuple(variable.states) != self.states:
            raise InvalidArgument(
                f"{variable.name!r} has states {list(variable.states)}, its decision {list(self.states)}; say them once"
            )
        return DecisionNode(variable, parents, _allowed_table(variable, parents, self.allowed))

    def __repr__(self) -> str:
        return f"Decision({'' if self.states is None else list(self.states)})"


class DecisionNode(Conditional):
    """A variable that somebody chooses, and what is seen before.

    Attributes
    ----------
    variable
        What is chosen: one of some states, or a number.
    parents
        Exactly what is seen.
    allowed
        Truth values with axes `(*parents, states)`, or None where everything is allowed.
    """

    kind: ClassVar[str] = "decision"

    def __init__(
        self, variable: Variable, parents: Sequence[Variable] = (), allowed: Allowed | None = None
    ) -> None:
        if variable.name in (names := [p.name for p in parents]) or len({*names}) < len(names):
            raise InvalidArgument(f"{variable.name!r} and what it sees, {names}, must be different variables")
        self.variable = variable
        self.parents = tuple(parents)
        self.allowed = allowed

    @property
    def values(self) -> NoReturn:
        """Refuse: nobody has decided yet."""
        raise undecided(self.variable.name)

    def log_prob(self, child: Codes, parents: Sequence[Codes]) -> Array:
        """Refuse: nobody has decided yet."""
        raise undecided(self.variable.name)

    def sample(self, parents: Sequence[Codes], size: int, rng: np.random.Generator) -> Any:
        """Refuse: nobody has decided yet."""
        raise undecided(self.variable.name)

    def rebound(self, variable: Variable, parents: tuple[Variable, ...]) -> "DecisionNode":
        """Return the same decision over renamed variables."""
        return DecisionNode(variable, parents, self.allowed)

    def fixed_at(self, value: Any) -> Conditional:
        """Return the decision made from outside: a state, a number, or a linear rule of what is seen."""
        if not isinstance(self.variable, Quantity):
            return super().fixed_at(value)
        rule = value if isinstance(value, LinearGaussian) else LinearGaussian(value, {}, 0.0)
        return rule.bind(self.variable, tuple(p for p in self.parents if p.name in rule.weights))

    @property
    def n_parameters(self) -> int:
        """None: nothing is learned about a decision."""
        return 0

    def allclose(self, other: Conditional, *, atol: float = 1e-12) -> bool:
        """Say whether the same is chosen from, seeing the same; there are no numbers to compare."""
        return (
            isinstance(other, DecisionNode)
            and self.variable == other.variable
            and {*self.parents} == {*other.parents}
            and (self.allowed is None) == (other.allowed is None)
            and (self.allowed is None or bool(np.array_equal(self.allowed, _axes_as(other, self.parents))))
        )

    def __repr__(self) -> str:
        seen = ", ".join(self.parent_names) or "nothing"
        among = "a number" if isinstance(self.variable, Quantity) else list(self.variable.states)
        rules = ", not everything is allowed" if self.allowed is not None else ""
        return f"DecisionNode {self.variable.name}: {among}, seeing {seen}{rules}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<code>{escape(repr(self))}</code>"


def undecided(name: str) -> IncompleteModel:
    """Return the refusal of a question whose answer depends on a decision that nobody has made."""
    setting = f"do({name}=...)" if name.isidentifier() else f"do({{{name!r}: ...}})"
    return IncompleteModel(
        f"the answer depends on {name!r}, which is not decided: ask follow(decide()), set it with {setting}, or name its "
        "state in given="
    )


def _allowed_table(variable: Variable, parents: tuple[Variable, ...], form: Any) -> Allowed | None:
    """Return which states may be chosen given what is seen; None where all may."""
    if form is None:
        return None
    if number := next((p.name for p in parents if isinstance(p, Quantity)), None):
        raise UnsupportedModel(
            f"allowed= of {variable.name!r} cannot list what it sees of {number!r}, a number"
        )
    shape = table_shape(variable, parents, cure="let it see less")
    if callable(form):
        named = argument_names(form)
        check_known(named, [p.name for p in parents], f"what {variable.name!r} sees")
        table = np.zeros(shape, dtype=bool)
        codes = np.ndindex(*shape[:-1])
        for at, states in zip(codes, product(*(p.states for p in parents)), strict=True):
            seen: Mapping[str, State] = dict(zip([p.name for p in parents], states, strict=True))
            chosen = form(*(seen[n] for n in named))
            listed = [chosen] if isinstance(chosen, str | int) else list(chosen)
            table[(*at, [variable.index(s) for s in listed])] = True
    else:
        table = np.asarray(form)
        if table.shape != shape or table.dtype != np.bool_:
            raise InvalidArgument(
                f"allowed= of {variable.name!r} is a function of what it sees, or truth values of shape {shape}"
            )
    if len(empty := np.argwhere(~table.any(axis=-1))):
        where = ", ".join(f"{p.name}={p.states[i]!r}" for p, i in zip(parents, empty[0], strict=True))
        raise InvalidArgument(
            f"nothing is allowed for {variable.name!r}{f' where {where}' if where else ''}; allow a state"
        )
    table = table.copy()
    table.setflags(write=False)
    return None if table.all() else table


def _axes_as(node: DecisionNode, parents: Sequence[Variable]) -> Allowed:
    """Return what a node allows with the axes of its parents in another order."""
    assert node.allowed is not None
    place = {p: i for i, p in enumerate(node.parents)}
    return node.allowed.transpose([*(place[p] for p in parents), len(parents)])
