"""Which of two levels is the treated one, or the later one: as asked, by 0 and 1, or by words; never by the alphabet."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument

UNTREATED = {
    "no",
    "none",
    "never",
    "control",
    "controls",
    "placebo",
    "untreated",
    "unexposed",
    "false",
    "0",
    "off",
}
TREATED = {"yes", "treated", "treatment", "exposed", "intervention", "true", "1", "on"}
EARLIER = {"before", "pre", "baseline", "earlier", "early", "first", "start"}
LATER = {"after", "post", "followup", "follow-up", "later", "late", "second", "end"}
"""Words that say which of two states is which; the alphabet does not."""


def need_two(
    levels: Sequence[Any] | None, column: str, cure: str = "keep the rows of the two to compare"
) -> None:
    """Refuse a column that has not two values, with those it has.

    Examples
    --------
    >>> need_two((2001, 2002, 2003), "year")
    Traceback (most recent call last):
    ...
    markovia.errors.InvalidArgument: 'year' needs two values, not 3 (2001, 2002, 2003): keep the rows of the two to compare
    """
    if levels is None or len(levels) != 2:
        some = [*map(repr, (levels or ())[:6]), *(["..."] if len(levels or ()) > 6 else [])]
        has = f" ({', '.join(some)}): {cure}" if some else ""
        raise InvalidArgument(f"{column!r} needs two values, not {len(levels) if levels else 'many'}{has}")


def second_of_two(
    levels: Sequence[Any] | None, asked: Any, column: str, argument: str, words: tuple[set[str], set[str]]
) -> int | None:
    """Return which of two levels is the treated one (or the later one): as asked, or as the levels themselves say.

    0 and 1, False and True, and words such as "control" or "after" speak for themselves. None where nothing tells; an
    `InvalidArgument` where there are not two levels or the one asked for is not among them.

    Examples
    --------
    >>> second_of_two(("drug", "placebo"), None, "arm", "treated", (UNTREATED, TREATED))
    0
    """
    need_two(levels, column)
    assert levels is not None
    shown = " and ".join(map(repr, levels))
    if asked is not None:
        if asked not in levels:
            raise InvalidArgument(f"{argument}={asked!r} is no value of {column!r}, which has {shown}")
        return list(levels).index(asked)
    if list(levels) == [0, 1]:
        return 1
    said = [str(v).strip().lower() for v in levels]
    tells = [(said[1 - k] in words[0]) + (said[k] in words[1]) - (said[k] in words[0]) for k in (0, 1)]
    return None if tells[0] == tells[1] else int(np.argmax(tells))
