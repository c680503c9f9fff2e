"""Discrete random variables: a name and an ordered tuple of states.

Files and frames often write a state in another type than the model has it: text for a number or a truth value, or the
other way round. `Variable.positions` is the one place that says which state a value means.
"""

import re
from collections.abc import Iterable, Mapping, Sized
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from markovia.errors import InvalidArgument, TooLarge, UnknownState

State: TypeAlias = str | int | bool
MAX_STATES = 2**24
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_TRUTH = {"true": 1, "false": 0}


class _Meaning(NamedTuple):
    """What a value is or writes: a truth value or an integer."""

    truth: bool
    number: int


class Variable:
    """A discrete random variable.

    Parameters
    ----------
    name
        Any non-empty string.
    states
        The states in order (strings, integers or booleans, no two equal), or a number `k` for the
        integers `0 ... k-1`. At most 2**24.

    Examples
    --------
    >>> Variable("rain", ["no", "yes"])
    Variable('rain', ['no', 'yes'])
    >>> Variable("die", 6).states
    (0, 1, 2, 3, 4, 5)
    >>> Variable("rain", ["no", "yes"]).index("yes")
    1
    """

    __slots__ = ("_codes", "name", "states")

    name: str
    states: tuple[State, ...]
    _codes: dict[State, int] | None

    def __init__(self, name: str, states: int | Iterable[State] = 2) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"a variable's name is a non-empty string, not {name!r}")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "states", _clean_states(name, states))
        object.__setattr__(self, "_codes", None)

    @classmethod
    def of(cls, name: str, states: "tuple[State, ...]") -> "Variable":
        """Build from states already known to be distinct plain Python values (no checks)."""
        variable = object.__new__(cls)
        _set_name(variable, name)
        _set_states(variable, states)
        _set_codes(variable, None)
        return variable

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Variable is immutable; cannot set {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Variable.of, (self.name, self.states))

    def __len__(self) -> int:
        return len(self.states)

    @property
    def domain(self) -> str:
        """What its values are: one of some states."""
        return "states"

    @property
    def cardinality(self) -> int:
        """The number of states."""
        return len(self.states)

    @property
    def codes(self) -> Mapping[State, int]:
        """A read-only mapping from state to position."""
        return MappingProxyType(self._lookup())

    @property
    def numbered(self) -> bool:
        """Whether the states are just `0 ... k-1`."""
        return self.states == tuple(range(len(self.states))) and not isinstance(self.states[0], bool)

    def index(self, state: object) -> int:
        """Return the position of a state, or of the state that a value means (see `positions`).

        Raises
        ------
        UnknownState
            If the variable has no such state; the message lists those it has.
        """
        try:
            return self._lookup()[state]  # type: ignore[index]
        except (KeyError, TypeError):
            (found,) = self.positions([state])
        if found is None:
            raise UnknownState(self.name, state, self.states)
        return found

    def positions(self, values: Iterable[object]) -> list[int | None]:
        """Return for each value the position of the state that it means, None where it means none.

        A value means the state it equals. Text also means the integer or boolean that it writes (`"3"`, `"3.0"`, `"true"`
        in any case), and an integer or boolean the text that writes it. Where the states are a pair of truth values, be
        they `False, True`, `0, 1` or such text, 0 is false and 1 is true. Text never means other text, but for the case
        of `true` and `false`.

        Examples
        --------
        >>> Variable("wet", [False, True]).positions(["true", True, 1, "1", "yes"])
        [1, 1, 1, 1, None]
        >>> Variable("wet", ["true", "false"]).positions([True, 0, "TRUE", "1"])
        [0, 1, 0, None]
        """
        known = self._lookup()
        meanings: dict[tuple[bool, _Meaning], int] | None = None
        found: list[int | None] = []
        for value in values:
            try:
                at = known.get(value)  # type: ignore[call-overload]
            except TypeError:
                at = None
            if at is None:
                if meanings is None:
                    meanings = self._meanings()
                meaning = _meaning(value)
                at = None if meaning is None else meanings.get((not isinstance(value, str), meaning))
            found.append(at)
        return found

    def parse(self, text: str) -> State:
        """Return the state that a text means, for command lines and files.

        Examples
        --------
        >>> Variable("die", 6).parse("3")
        3
        """
        return self.states[self.index(text)]

    def renamed(self, name: str) -> "Variable":
        """Return the same states under another name."""
        return Variable(name, self.states)

    def _meanings(self) -> dict[tuple[bool, _Meaning], int]:
        """Return the position of each state by whether it is text and what it means; what two states mean is left out."""
        meant = [_meaning(state) for state in self.states]
        truths = all(m is not None and m.number in (0, 1) for m in meant)
        found: dict[tuple[bool, _Meaning], int] = {}
        twice = set()
        for i, (state, m) in enumerate(zip(self.states, meant, strict=True)):
            # text such as "01" is a name, since no number prints like it
            if m is None or (isinstance(state, str) and not m.truth and state != str(m.number)):
                continue
            keys = {
                (isinstance(state, str), _Meaning(t, m.number))
                for t in ((False, True) if truths else (m.truth,))
            }
            if m.truth:  # "TRUE" may stand for "true"
                keys.add((False, m))
            twice |= keys & found.keys()
            found.update(dict.fromkeys(keys, i))
        return {key: i for key, i in found.items() if key not in twice}

    def _lookup(self) -> dict[State, int]:
        if self._codes is None:
            object.__setattr__(self, "_codes", {state: i for i, state in enumerate(self.states)})
        assert self._codes is not None
        return self._codes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variable):
            return NotImplemented
        return (
            self.name == other.name
            and self.states == other.states
            and list(map(type, self.states)) == list(map(type, other.states))
        )

    def __hash__(self) -> int:
        return hash((self.name, self.states))

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {list(self.states) if not self.numbered else len(self.states)!r})"


# the slots themselves, since the class refuses assignments; faster than object.__setattr__
_set_name = Variable.__dict__["name"].__set__
_set_states = Variable.__dict__["states"].__set__
_set_codes = Variable.__dict__["_codes"].__set__


def _meaning(value: object) -> _Meaning | None:
    """Return the integer or truth value that a value is or writes, None where it is neither."""
    if isinstance(value, bool | np.bool_):
        return _Meaning(True, int(value))
    if isinstance(value, str):
        if value.casefold() in _TRUTH:
            return _Meaning(True, _TRUTH[value.casefold()])
        if len(value) > 32 or _NUMBER.fullmatch(value) is None:
            return None
        value = int(value) if value.lstrip("+-").isdigit() else float(value)
    if isinstance(value, float | np.floating):
        return _Meaning(False, int(value)) if value.is_integer() else None
    return _Meaning(False, int(value)) if isinstance(value, int | np.integer) else None


def _clean_states(name: str, states: int | Iterable[State]) -> tuple[State, ...]:
    if isinstance(states, bool | np.bool_ | str):
        raise InvalidArgument(f"the states of {name!r} are a list of states or their number, not {states!r}")
    if isinstance(states, set | frozenset):
        raise InvalidArgument(f"the states of {name!r} have an order, which a set does not; give a list")
    number = (
        states if isinstance(states, int | np.integer) else len(states) if isinstance(states, Sized) else 0
    )
    if number > MAX_STATES:
        raise TooLarge(f"{name!r} would have {number:,} states; a variable has at most {MAX_STATES:,}")
    if isinstance(states, int | np.integer):
        if states < 1:
            raise InvalidArgument(f"{name!r} needs at least one state, not {states}")
        return tuple(range(int(states)))
    try:
        items = tuple(_plain(name, state) for state in states)
    except TypeError:
        raise InvalidArgument(
            f"the states of {name!r} are a list of states or their number, not {states!r}"
        ) from None
    if not items:
        raise InvalidArgument(f"{name!r} needs at least one state")
    if len(set(items)) != len(items):
        seen: set[State] = set()
        twice = next(s for s in items if s in seen or seen.add(s))  # type: ignore[func-returns-value]
        raise InvalidArgument(f"the states of {name!r} repeat {twice!r}")
    return items


def _plain(name: str, state: object) -> State:
    if isinstance(state, np.generic):
        state = state.item()
    if isinstance(state, str | int):
        return str(state) if isinstance(state, str) else state
    if isinstance(state, float) and state.is_integer():
        return int(state)
    raise InvalidArgument(f"a state of {name!r} is a string, an integer or a boolean, not {state!r}")
