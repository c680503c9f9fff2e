"""Logical gates and arithmetic: a child that is a function of its parents.

Gates look at how many parents are *on* (and, or, exclusive or, not, at least k, exists, for all); arithmetic
children are the minimum, maximum or sum of integer parents, or the number of parents in a given state. The
function is stored, not its table, so the number of parents is not limited; a row costs time linear in it.

A parent of two states is on in its second state unless `on=` (or `of=`, one state for all parents) says
otherwise. A gate's child has two states, the second one is *true*.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from markovia.errors import InvalidArgument, TooLarge, check_known
from markovia.factors.local_models.local_model import (
    CausalIndependence,
    Contribution,
    Recipe,
    on_code,
)
from markovia.factors.tables.conditional import Codes
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array, Flags, Ints

_MAX_OUTCOMES = 2**20
_MAX_VALUE = 2**40


class DeterministicConditional(CausalIndependence):
    """P(child | parents) that puts all mass on one state: a function of the combined parent values."""

    def __init__(
        self,
        variable: Variable,
        parents: tuple[Variable, ...],
        contributions: Sequence[Ints],
        combine: np.ufunc,
        outcomes: Ints,
        codes: Ints,
    ) -> None:
        super().__init__(variable, parents, contributions, np.array([_identity(combine)]))
        self.combine = combine
        self.outcomes = outcomes
        self.codes = codes

    @property
    def n_parameters(self) -> int:
        """Zero: nothing is free."""
        return 0

    def sample(self, parents: Sequence[Codes], size: int, rng: np.random.Generator) -> Ints:
        """Return the child code of each of `size` rows of parent codes."""
        combined: Contribution = np.broadcast_to(self.start, (size, 1))
        for contribution, codes in zip(self.contributions, parents, strict=True):
            combined = self.combine(combined, contribution[codes])
        return self.codes[np.searchsorted(self.outcomes, combined[:, 0])]

    def _finish(self, combined: Contribution) -> Array:
        codes = self.codes[np.searchsorted(self.outcomes, combined)]
        return np.where(np.arange(len(self.variable)) == codes, 0.0, -np.inf)


class Deterministic(Recipe):
    """A child that is a function of its parents; the base of gates and arithmetic.

    Parameters
    ----------
    parents
        Names of the parents; leave them out where the node is added with `parents=[...]`.
    """

    _combine: np.ufunc = np.add

    def __init__(self, *parents: str) -> None:
        for name in parents:
            if not isinstance(name, str):
                raise InvalidArgument(f"{type(self).__name__} takes names of parents, not {name!r}")
        if len(set(parents)) != len(parents):
            raise InvalidArgument(f"{type(self).__name__} names a parent twice: {list(parents)}")
        self._parents = parents

    @property
    def parent_names(self) -> tuple[str, ...] | None:
        """The parents the recipe names, or None where any parents will do."""
        return self._parents or None

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> DeterministicConditional:
        """Return the distribution over the given variables.

        Raises
        ------
        UnknownVariable, InvalidArgument
            If the parents do not fit the recipe or the child lacks a state that can come out.
        """
        self._check_parents(variable, parents)
        contributions = self._contributions(parents)
        outcomes = self._outcomes(contributions)
        codes = self._codes(variable, parents, outcomes)
        return DeterministicConditional(variable, parents, contributions, self._combine, outcomes, codes)

    @abstractmethod
    def _contributions(self, parents: tuple[Variable, ...]) -> list[Ints]:
        """Return the integer that each state of each parent stands for, shape (states, 1)."""

    @abstractmethod
    def _outcomes(self, contributions: list[Ints]) -> Ints:
        """Return every combined value that can occur, sorted."""

    @abstractmethod
    def _codes(self, variable: Variable, parents: tuple[Variable, ...], outcomes: Ints) -> Ints:
        """Return the child code of each outcome."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._parents))})"


class Counting(Deterministic):
    """A function of the number of parents that are on.

    Parameters
    ----------
    parents
        Names of the parents; leave them out where the node is added with `parents=[...]`.
    of
        The state that counts, the same for every parent.
    on
        The state that counts, by parent; it comes before `of`.
    """

    def __init__(self, *parents: str, of: State | None = None, on: Mapping[str, State] | None = None) -> None:
        super().__init__(*parents)
        self.of = of
        self.on = dict(on or {})
        if parents:
            check_known(self.on, parents, f"on= of {type(self).__name__}")

    def _contributions(self, parents: tuple[Variable, ...]) -> list[Ints]:
        check_known(self.on, [p.name for p in parents], f"on= of {type(self).__name__}")
        chosen = self.on if self.of is None else {p.name: self.of for p in parents} | self.on
        cure = "choose it with of= or on={...}"
        return [
            (np.arange(len(p)) == on_code(p, chosen, self.kind, cure)).astype(np.int64)[:, None]
            for p in parents
        ]

    def _outcomes(self, contributions: list[Ints]) -> Ints:
        return np.arange(len(contributions) + 1, dtype=np.int64)


class Gate(Counting):
    """A child that is true or false according to how many parents are on."""

    def default_states(self) -> Sequence[State]:
        """Return False and True."""
        return [False, True]

    def _codes(self, variable: Variable, parents: tuple[Variable, ...], outcomes: Ints) -> Ints:
        self._check_binary(variable)
        return self._true(outcomes, len(parents)).astype(np.int64)

    @abstractmethod
    def _true(self, counts: Ints, n: int) -> Flags:
        """Say for each count of parents that are on, out of n, whether the gate is true."""


class AndGate(Gate):
    """True when every parent is on.

    Examples
    --------
    >>> a, b = Variable("a", ["no", "yes"]), Variable("b", ["no", "yes"])
    >>> AndGate().bind(Variable("c", [False, True]), (a, b)).values[..., 1].tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """

    kind = "and gate"

    def _true(self, counts: Ints, n: int) -> Flags:
        return np.equal(counts, n)


class OrGate(Gate):
    """True when at least one parent is on.

    Examples
    --------
    >>> a, b = Variable("a", ["no", "yes"]), Variable("b", ["no", "yes"])
    >>> OrGate("a", "b").bind(Variable("c", [False, True]), (a, b)).values[..., 1].tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """

    kind = "or gate"

    def _true(self, counts: Ints, n: int) -> Flags:
        return counts >= 1


class XorGate(Gate):
    """True when an odd number of parents is on.

    Examples
    --------
    >>> a, b = Variable("a", ["no", "yes"]), Variable("b", ["no", "yes"])
    >>> XorGate().bind(Variable("c", [False, True]), (a, b)).values[..., 1].tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    kind = "xor gate"

    def _true(self, counts: Ints, n: int) -> Flags:
        return np.equal(counts % 2, 1)


class NotGate(Gate):
    """True when the only parent is off.

    Examples
    --------
    >>> NotGate("a").bind(Variable("b", [False, True]), (Variable("a", 2),)).values.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    kind = "not gate"

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> DeterministicConditional:
        """Return the distribution over the given variables."""
        if len(parents) != 1:
            raise InvalidArgument(f"a not gate has one parent; {variable.name!r} has {len(parents)}")
        return super().bind(variable, parents)

    def _true(self, counts: Ints, n: int) -> Flags:
        return np.equal(counts, 0)


class AtLeast(Gate):
    """True when `k` or more parents are on.

    Examples
    --------
    >>> votes = tuple(Variable(name, ["no", "yes"]) for name in "abc")
    >>> p = AtLeast(2).bind(Variable("passed", [False, True]), votes)
    >>> p.row(a="yes", b="no", c="yes").tolist()
    [0.0, 1.0]
    """

    kind = "threshold gate"

    def __init__(
        self, k: int, *parents: str, of: State | None = None, on: Mapping[str, State] | None = None
    ) -> None:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 0:
            raise InvalidArgument(f"AtLeast takes a number of parents first, not {k!r}")
        super().__init__(*parents, of=of, on=on)
        self.k = int(k)

    def _true(self, counts: Ints, n: int) -> Flags:
        return counts >= self.k

    def __repr__(self) -> str:
        return f"AtLeast({', '.join([str(self.k), *map(repr, self._parents)])})"


class Exists(OrGate):
    """True when at least one parent is in the state `of`.

    Examples
    --------
    >>> cars = tuple(Variable(name, ["red", "green", "blue"]) for name in "ab")
    >>> Exists(of="red").bind(Variable("c", [False, True]), cars).row(a="blue", b="red").tolist()
    [0.0, 1.0]
    """

    kind = "exists gate"


class ForAll(AndGate):
    """True when every parent is in the state `of`.

    Examples
    --------
    >>> cars = tuple(Variable(name, ["red", "green", "blue"]) for name in "ab")
    >>> ForAll(of="red").bind(Variable("c", [False, True]), cars).row(a="blue", b="red").tolist()
    [1.0, 0.0]
    """

    kind = "for-all gate"


class Count(Counting):
    """The number of parents that are on, or in the state `of`.

    Examples
    --------
    >>> coins = tuple(Variable(name, ["tails", "heads"]) for name in "abc")
    >>> Count(of="tails").implied_states(coins)
    [0, 1, 2, 3]
    >>> p = Count(of="tails").bind(Variable("n", 4), coins)
    >>> p.row(a="tails", b="heads", c="tails").tolist()
    [0.0, 0.0, 1.0, 0.0]
    """

    kind = "count"

    def implied_states(self, parents: tuple[Variable, ...]) -> Sequence[State]:
        """Return 0 to the number of parents."""
        return list(range(len(parents) + 1))

    def _codes(self, variable: Variable, parents: tuple[Variable, ...], outcomes: Ints) -> Ints:
        return _find(variable, self.kind, [int(n) for n in outcomes])


class Arithmetic(Deterministic):
    """An operation on the values of integer parents."""

    def implied_states(self, parents: tuple[Variable, ...]) -> Sequence[State]:
        """Return every value that can come out, in order."""
        meaning = self._meaning(parents)
        return [meaning(int(n)) for n in self._outcomes(self._contributions(parents))]

    def _contributions(self, parents: tuple[Variable, ...]) -> list[Ints]:
        if not parents:
            raise InvalidArgument(f"a {self.kind} needs at least one parent")
        values = []
        for parent in parents:
            words = [s for s in parent.states if isinstance(s, str)]
            if words:
                raise InvalidArgument(
                    f"a {self.kind} needs integer states; {parent.name!r} has the state {words[0]!r}"
                )
            numbers = [int(s) for s in parent.states]
            if max(map(abs, numbers)) > _MAX_VALUE:
                raise InvalidArgument(
                    f"a {self.kind} takes states up to {_MAX_VALUE:,}; {parent.name!r} has larger"
                )
            values.append(np.array(numbers, dtype=np.int64)[:, None])
        return values

    def _outcomes(self, contributions: list[Ints]) -> Ints:
        reached: Ints = np.unique(contributions[0])
        for contribution in contributions[1:]:
            reached = np.unique(self._combine.outer(reached, np.unique(contribution)))
            if len(reached) > _MAX_OUTCOMES:
                raise TooLarge(f"the {self.kind} of {len(contributions)} parents has over a million outcomes")
        return reached

    def _codes(self, variable: Variable, parents: tuple[Variable, ...], outcomes: Ints) -> Ints:
        meaning = self._meaning(parents)
        return _find(variable, self.kind, [meaning(int(n)) for n in outcomes])

    def _meaning(self, parents: tuple[Variable, ...]) -> Callable[[int], State]:
        """Return the map from a combined value to a state of the child."""
        return int


class Sum(Arithmetic):
    """The sum of integer parents.

    Examples
    --------
    >>> dice = (Variable("a", range(1, 7)), Variable("b", range(1, 7)))
    >>> total = Variable("total", Sum().implied_states(dice))
    >>> total.states
    (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    >>> int(Sum().bind(total, dice).values[..., total.index(7)].sum())
    6
    """

    kind = "sum"


class Extremum(Arithmetic):
    """The smallest or largest parent: by value for integers, else by position in states all parents share."""

    def _contributions(self, parents: tuple[Variable, ...]) -> list[Ints]:
        if self._ordinal(parents):
            return [np.arange(len(p), dtype=np.int64)[:, None] for p in parents]
        return super()._contributions(parents)

    def _meaning(self, parents: tuple[Variable, ...]) -> Callable[[int], State]:
        return parents[0].states.__getitem__ if self._ordinal(parents) else int

    @staticmethod
    def _ordinal(parents: tuple[Variable, ...]) -> bool:
        words = any(isinstance(s, str) for p in parents for s in p.states)
        return words and all(p.states == parents[0].states for p in parents)


class Max(Extremum):
    """The largest parent value.

    Integer states compare as numbers. Other states compare by their order, which all parents must share.

    Examples
    --------
    >>> sites = tuple(Variable(name, ["low", "medium", "high"]) for name in "ab")
    >>> worst = Variable("worst", Max().implied_states(sites))
    >>> Max().bind(worst, sites).row(a="low", b="medium").tolist()
    [0.0, 1.0, 0.0]
    """

    kind = "maximum"
    _combine = np.maximum


class Min(Extremum):
    """The smallest parent value.

    Integer states compare as numbers. Other states compare by their order, which all parents must share.

    Examples
    --------
    >>> a, b = Variable("a", [1, 2, 3]), Variable("b", [2, 5])
    >>> Min().implied_states((a, b))
    [1, 2, 3]
    """

    kind = "minimum"
    _combine = np.minimum


def _find(variable: Variable, kind: str, results: Sequence[State]) -> Ints:
    missing = [r for r in results if r not in variable.codes]
    if missing:
        raise InvalidArgument(
            f"the {kind} can be {missing[0]!r}, which is no state of {variable.name!r}; leave states= out, "
            f"or include all of {', '.join(map(repr, results[:12]))}{', ...' if len(results) > 12 else ''}"
        )
    return np.array([variable.codes[r] for r in results], dtype=np.int64)


def _identity(combine: np.ufunc) -> int:
    """Return the integer that changes nothing: zero for a sum, an end of the range for an extremum."""
    if combine is np.minimum:
        return int(np.iinfo(np.int64).max)
    return int(np.iinfo(np.int64).min) if combine is np.maximum else 0
