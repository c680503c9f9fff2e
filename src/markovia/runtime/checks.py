"""Checks of the options that methods, scores and tests share: one sentence each, with the option's name."""

from collections.abc import Sequence
from math import isfinite

import numpy as np

from markovia.errors import InvalidArgument


def check_count(name: str, value: object, least: int = 0, *, none: bool = False) -> None:
    """Raise unless an option is a whole number that is large enough; `none` allows None too.

    Examples
    --------
    >>> check_count("restarts", -1)
    Traceback (most recent call last):
        ...
    markovia.errors.InvalidArgument: restarts= is a whole number, 0 or more, not -1
    """
    if none and value is None:
        return
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        rest = ", or None" if none else ""
        raise InvalidArgument(f"{name}= is a whole number, {least} or more{rest}, not {value!r}")


def check_number(name: str, value: object, *, positive: bool = False) -> None:
    """Raise unless an option is a finite number, 0 or more, or above 0."""
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    size = float(value) if good else -1.0  # type: ignore[arg-type]
    if not isfinite(size) or size < 0 or (positive and size == 0):
        raise InvalidArgument(f"{name}= is a number, {'above 0' if positive else '0 or more'}, not {value!r}")


def check_level(name: str, value: object) -> None:
    """Raise unless an option is a level of a test: a number between 0 and 1."""
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not good or not 0 < float(value) < 1:  # type: ignore[arg-type]
        raise InvalidArgument(f"{name}= is between 0 and 1, not {value!r}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless an option is one of some words.

    Examples
    --------
    >>> check_choice("rule", "xor", ["or", "and"])
    Traceback (most recent call last):
        ...
    markovia.errors.InvalidArgument: rule= is 'or' or 'and', not 'xor'
    """
    if not isinstance(value, str) or value not in choices:
        *first, last = map(repr, choices)
        listed = f"{', '.join(first)} or {last}" if first else last
        raise InvalidArgument(f"{name}= is {listed}, not {value!r}")


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
