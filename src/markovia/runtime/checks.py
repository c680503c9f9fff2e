"""What an option may be, said once as data: constraints that check a value and name what would be right.

A dataclass of settings declares them with its options, `draws: Annotated[int, Whole(1)] = 1_000` (a `Literal` or `bool` says
by itself what may be), and calls `check_options(self)` when it is made; a function calls `check("draws", draws, Whole(1))`.
Each refusal is one sentence, "draws= is a whole number, 1 or more, not 0"; the declarations can be read, for instance by a
test that tries bad values.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

import numpy as np

from markovia.errors import InvalidArgument, MarkoviaError, did_you_mean
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator

SHOWN = 120
"""The most characters that are shown of what is no array of numbers."""


@dataclass(frozen=True, repr=False)
class Constraint(ABC):
    """What an option may be; `none` allows None too."""

    none: bool = field(default=False, kw_only=True)

    @abstractmethod
    def admits(self, value: Any) -> bool:
        """Say whether a value other than None may be."""

    @abstractmethod
    def words(self) -> str:
        """Say what a value may be."""

    def __str__(self) -> str:
        words = self.words()
        return f"{words}{',' if ',' in words else ''} or None" if self.none else words

    def __repr__(self) -> str:
        return f"<{self}>"  # what `help` shows beside a setting


@dataclass(frozen=True, repr=False)
class Whole(Constraint):
    """A whole number, `least` or more, and no more than `most` where that is given."""

    least: int = 0
    most: int | None = None

    def admits(self, value: Any) -> bool:
        """Say whether a value is such a number."""
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return whole and self.least <= value and (self.most is None or value <= self.most)

    def words(self) -> str:
        """Say which numbers may be."""
        if self.most is None:
            return f"a whole number, {self.least} or more"
        return f"a whole number from {self.least} to {self.most}"


@dataclass(frozen=True, repr=False)
class NumberRange(Constraint):
    """A number between `low` and `high`; the ends belong to it unless they are `open`: "low", "high" or "both"."""

    low: float = -inf
    high: float = inf
    open: str = ""
    said: str = ""

    def admits(self, value: Any) -> bool:
        """Say whether a value is such a number."""
        if not isinstance(value, int | float | np.number) or isinstance(value, bool):
            return False
        above = value > self.low if self.open in ("low", "both") else value >= self.low
        below = value < self.high if self.open in ("high", "both") else value <= self.high
        return bool(above and below)

    def words(self) -> str:
        """Say which numbers may be."""
        return self.said or f"a number between {self.low:g} and {self.high:g}"


POSITIVE = NumberRange(0.0, inf, open="both", said="a number, above 0")
NOT_NEGATIVE = NumberRange(0.0, inf, open="high", said="a number, 0 or more")
PENALTY = NumberRange(0.0, inf, open="low", said="a positive number")
LEVEL = NumberRange(0.0, 1.0, open="both", said="between 0 and 1")
DAMPING = NumberRange(0.0, 1.0, open="high", said="a number from 0 up to but not 1")
SECONDS = NumberRange(0.0, inf, open="low", said="a positive number of seconds", none=True)
BYTES = NumberRange(said="a number of bytes", none=True)


@dataclass(frozen=True, repr=False)
class Choice(Constraint):
    """One of some words or whole numbers; `other` names a kind of value that may be as well, and `also` its types."""

    choices: tuple[str | int, ...] = ()
    other: str = ""
    also: tuple[type, ...] = ()

    def admits(self, value: Any) -> bool:
        """Say whether a value is one of the choices, or of another kind that may be."""
        if (
            isinstance(value, str | int | np.integer)
            and not isinstance(value, bool)
            and value in self.choices
        ):
            return True
        return isinstance(value, self.also) and not isinstance(value, str)

    def __str__(self) -> str:
        return self.words()

    def words(self) -> str:
        """Name the choices."""
        more = [self.other] * bool(self.other) + ["None"] * self.none
        *first, last = [*map(repr, self.choices), *more]
        return f"{', '.join(first)} or {last}" if first else last


@dataclass(frozen=True, repr=False)
class Flag(Constraint):
    """True or False."""

    def admits(self, value: Any) -> bool:
        """Say whether a value is one of the two."""
        return isinstance(value, bool | np.bool_)

    def __str__(self) -> str:
        return "True, False or None" if self.none else "True or False"

    def words(self) -> str:
        """Name the two."""
        return "True or False"


@dataclass(frozen=True, repr=False)
class NameLists(Choice):
    """One of some words, or lists of names, such as [["a", "b"], ["c"]]."""

    other: str = "a list of lists of names"

    def admits(self, value: Any) -> bool:
        """Say whether a value is one of the words, or lists of names."""
        if isinstance(value, str):
            return value in self.choices
        return isinstance(value, Iterable) and all(
            isinstance(v, Iterable) and not isinstance(v, str) for v in value
        )


@dataclass(frozen=True, repr=False)
class Kind(Constraint):
    """A value of some types; a word is no list of names."""

    types: tuple[type, ...] = ()
    said: str = ""

    def admits(self, value: Any) -> bool:
        """Say whether a value is of one of the types."""
        return isinstance(value, self.types) and (str in self.types or not isinstance(value, str))

    def words(self) -> str:
        """Say what the value may be."""
        return self.said


@dataclass(frozen=True, repr=False)
class Several(Constraint):
    """A list, tuple or array of values that another constraint admits: `size` of them, or any number but none."""

    each: Constraint
    said: str
    size: int | None = None

    def admits(self, value: Any) -> bool:
        """Say whether a value is such a list."""
        if not isinstance(value, list | tuple | np.ndarray) or np.ndim(value) == 0:
            return False
        right = len(value) > 0 if self.size is None else len(value) == self.size
        return right and all(self.each.admits(one) for one in value)

    def words(self) -> str:
        """Say what the values are."""
        return self.said


@dataclass(frozen=True, repr=False)
class Either(Constraint):
    """What one of some constraints admits."""

    options: tuple[Constraint, ...]

    def admits(self, value: Any) -> bool:
        """Say whether one of them admits a value."""
        return any(option.admits(value) for option in self.options)

    def words(self) -> str:
        """Say what each of them asks for."""
        *first, last = [option.words() for option in self.options]
        listed = ", ".join(first)
        return f"{listed}{',' if ',' in listed or ' or ' in listed else ''} or {last}"


@dataclass(frozen=True, repr=False)
class Seeding(Constraint):
    """What `seed=` may be."""

    none: bool = field(default=True, kw_only=True)

    def admits(self, value: Any) -> bool:
        """Say whether a value seeds a generator."""
        try:
            generator(value)
        except InvalidArgument:
            return False
        return True

    def words(self) -> str:
        """Say what seeds may be."""
        return "a whole number >= 0, a NumPy Generator or SeedSequence"


Count: TypeAlias = Annotated[int, Whole(1)]
Positive: TypeAlias = Annotated[float, POSITIVE]
PositiveOrNone: TypeAlias = Annotated[
    float | None, NumberRange(0.0, inf, open="both", said="a positive number", none=True)
]
Penalty: TypeAlias = Annotated[float, PENALTY]
PenaltyOrNone: TypeAlias = Annotated[float | None, replace(PENALTY, none=True)]
Tolerance: TypeAlias = Annotated[float, NOT_NEGATIVE]
Damping: TypeAlias = Annotated[float, DAMPING]
Decay: TypeAlias = Annotated[float, NumberRange(0.5, 1.0, open="low", said="above 0.5, up to 1")]
Bytes: TypeAlias = Annotated[float | None, BYTES]
TimeLimit: TypeAlias = Annotated[float | None, SECONDS]
CountOrNone: TypeAlias = Annotated[int | None, Whole(1, none=True)]
FromZero: TypeAlias = Annotated[int, Whole(0)]
FromZeroOrNone: TypeAlias = Annotated[int | None, Whole(0, none=True)]
Start: TypeAlias = Annotated[
    Mapping[str, Any] | None, Kind((Mapping,), said="a mapping from names to states", none=True)
]
WholeSeed: TypeAlias = Annotated[int | None, Whole(0, none=True)]
AnySeed: TypeAlias = Annotated[Seed, Seeding()]


class Option(NamedTuple):
    """An option of a settings dataclass: its name, what it may be, and its default."""

    name: str
    constraint: Constraint
    default: Any


_declared: dict[type, tuple[Option, ...]] = {}


def declared(settings: type) -> tuple[Option, ...]:
    """Return the constraints that a dataclass declares with its options.

    Examples
    --------
    >>> from markovia.engines import TabuSearch
    >>> str(next(o.constraint for o in declared(TabuSearch) if o.name == "time_limit"))
    'a positive number of seconds or None'
    """
    if settings not in _declared:
        found = [(f, _constraint(f.type)) for f in fields(settings)]
        _declared[settings] = tuple(
            [Option(f.name, said, f.default) for f, said in found if said is not None]
        )
    return _declared[settings]


def _constraint(annotation: Any) -> Constraint | None:
    """Return the constraint that an annotation carries; a `Literal` or `bool` says by itself what may be."""
    for said in getattr(annotation, "__metadata__", ()):
        if isinstance(said, Constraint):
            return said
    if get_origin(annotation) is Literal:
        return Choice(get_args(annotation))
    if get_origin(annotation) in (Union, UnionType) and get_origin(get_args(annotation)[0]) is Literal:
        choices, *rest = get_args(annotation)
        return Choice(get_args(choices), none=True) if rest == [NoneType] else None
    return Flag() if annotation is bool else Flag(none=True) if annotation == bool | None else None


def check_options(settings: object) -> None:
    """Raise for the first option of a settings dataclass that is not what it declares.

    Examples
    --------
    >>> @dataclass
    ... class Search:
    ...     restarts: Annotated[int, Whole(0)] = 3
    >>> check_options(Search(restarts=-1))
    Traceback (most recent call last):
        ...
    markovia.errors.InvalidArgument: restarts= is a whole number, 0 or more, not -1
    """
    for name, constraint, default in declared(type(settings)):
        value = getattr(settings, name)
        if value is not default:
            check(name, value, constraint)


def check(name: str, value: object, constraint: Constraint) -> None:
    """Raise unless an option is what a constraint asks for.

    Examples
    --------
    >>> check("rule", "xor", Choice(("or", "and")))
    Traceback (most recent call last):
        ...
    markovia.errors.InvalidArgument: rule= is 'or' or 'and', not 'xor' (did you mean 'or'?)
    """
    if (value is None and constraint.none) or (value is not None and constraint.admits(value)):
        return
    nearest = did_you_mean(value, constraint.choices) if isinstance(constraint, Choice) else ""
    raise InvalidArgument(f"{name}= is {constraint}, not {value!r}{nearest}")


def check_count(name: str, value: object, least: int = 0, *, none: bool = False) -> None:
    """Raise unless an option is a whole number that is large enough; `none` allows None too."""
    check(name, value, Whole(least, none=none))


def check_number(name: str, value: object, *, positive: bool = False) -> None:
    """Raise unless an option is a finite number, 0 or more, or above 0."""
    check(name, value, POSITIVE if positive else NOT_NEGATIVE)


def check_level(name: str, value: object) -> None:
    """Raise unless an option is a level of a test: a number between 0 and 1."""
    check(name, value, LEVEL)


def check_choice(name: str, value: object, choices: Iterable[str | int], *, none: bool = False) -> None:
    """Raise unless an option is one of some words; `none` allows None too."""
    check(name, value, Choice(tuple(choices), none=none))


def numbers(values: Any, rule: str, error: type[MarkoviaError] = InvalidArgument) -> Array:
    """Return a new array of floats, or raise that the rule was not followed, and what was given in place of it.

    Examples
    --------
    >>> numbers([[1, 2], [3]], "weights are numbers, all rows equally long")
    Traceback (most recent call last):
        ...
    markovia.errors.InvalidArgument: weights are numbers, all rows equally long, not [[1, 2], [3]]
    """
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{rule}, not {values!r:.{SHOWN}}") from None


def penalty_given(name: str, value: float | None, choose: str | None, choices: Sequence[str]) -> str:
    """Say how a penalty is settled: "fixed" where it is given, else as `choose` says, by default the first choice.

    Examples
    --------
    >>> penalty_given("alpha", 0.1, None, ["ebic", "cv"]), penalty_given("alpha", None, None, ["ebic", "cv"])
    ('fixed', 'ebic')
    """
    if value is None:
        if choose is not None:
            check_choice("choose", choose, choices)
        return choose or choices[0]
    if choose is not None:
        raise InvalidArgument(f"give {name}= or choose=, not both")
    check_number(name, value)
    return "fixed"
