"""What the text of cells means: whole numbers, numbers with fractions, booleans, or text.

A column is read as a whole: it holds numbers only if all of its cells write some.
"""

import re
from collections.abc import Iterable, Sequence

WHOLE = re.compile(r"\s*[+-]?(0|[1-9]\d*)\s*", re.ASCII)
NUMBER = re.compile(
    r"\s*[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*|\s*[+-]?(inf|infinity)\s*", re.ASCII | re.IGNORECASE
)


def written_numbers(values: Sequence[str]) -> Sequence[int | float | str]:
    """Return text as numbers where all of it writes them: integers of 64 bits, else floats. "02" is a name.

    Examples
    --------
    >>> written_numbers(["1", "2"]), written_numbers(["1", "02"]), written_numbers(["1", "2.5"]), written_numbers(["1", "x"])
    ([1, 2], ['1', '02'], [1.0, 2.5], ['1', 'x'])
    """
    if all(WHOLE.fullmatch(v) for v in values):
        whole = [int(v) for v in values]
        if all(-(2**63) <= v < 2**63 for v in whole):
            return whole
    if all(NUMBER.fullmatch(v) for v in values):
        return [float(v) for v in values]
    return values


def written_truths(values: Sequence[str]) -> Sequence[bool | str]:
    """Return text as booleans where all of it writes them, in any case.

    Examples
    --------
    >>> written_truths(["True", "FALSE"]), written_truths(["true", "maybe"])
    ([True, False], ['true', 'maybe'])
    """
    truths = [v.casefold() for v in values]
    return [v == "true" for v in truths] if {*truths} <= {"true", "false"} else values


def fractions(values: Iterable[object]) -> bool:
    """Say whether numbers that are not whole are among the values; infinite ones are not."""
    return any(isinstance(v, float) and v - v == 0 and not v.is_integer() for v in values)
