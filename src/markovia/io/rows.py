"""What every file reader does with probability rows and with announced table sizes.

Files carry rounded numbers, so a row that should sum to one often does not. One policy for all formats:

- a row within `EXACT` of one is kept bit for bit, so that writing and reading a model is exact;
- a row within `ROUNDED` is what printing a few digits leaves, and is divided by its sum, so that dropping a variable and
  summing it out are the same;
- a row further off but within `REPAIR` is divided by its sum too, and one `UserWarning` a file says how many rows were
  rescaled and how far off the worst one was;
- anything else (also a negative, infinite or undefined entry) is a `ParseError` at the row's position.

Sizes are checked before memory is asked for: a file of ten bytes can announce a table of a trillion entries.
"""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from markovia.errors import ParseError, warn_user
from markovia.runtime.array_types import Array

Locate = Callable[[int], tuple[int, int]]

EXACT = 1e-12
ROUNDED = 1e-6
REPAIR = 1e-2
MAX_ENTRIES = 2**28
MAX_AXES = 64


class RowPolicy:
    """Checks the probability rows of one file; make one a file, call `finish` once everything has been read.

    Parameters
    ----------
    source
        The file's name for messages.

    Examples
    --------
    >>> policy = RowPolicy("demo.bif")
    >>> policy.check(np.array([[0.25, 0.75], [1.0, 0.0]]), lambda row: (row + 1, 1)).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    >>> policy.finish()
    >>> policy.check(np.array([[0.25, 0.25]]), lambda row: (row + 1, 1))
    Traceback (most recent call last):
    ...
    markovia.errors.ParseError: demo.bif:1:1: the probabilities sum to 0.5; expected a row that sums to 1
    """

    def __init__(self, source: str | None = None) -> None:
        self.source = source
        self.repaired = 0
        self.worst = 0.0

    def check(self, values: Array, locate: Locate, what: str = "") -> Array:
        """Return the rows as they are to be stored.

        Parameters
        ----------
        values
            Any shape; the last axis is the distribution.
        locate
            Line and column (from 1) of a row, counted over the leading axes in C order; called only for errors.
        what
            Whose rows they are, e.g. "of 'rain'", for the message.

        Raises
        ------
        ParseError
            At the first row that is no probability distribution.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            sums = values.sum(axis=-1)
            off = np.abs(sums - 1.0)
            # one pass over the sums settles a clean table; NaN compares false and so counts as unsettled
            if values.size and off.max() <= EXACT and values.min() >= 0.0:
                return values
            bad = ~((off <= REPAIR) & (values >= 0.0).all(axis=-1))
        if bad.any():
            first = int(np.argmax(bad))
            row = values.reshape(-1, values.shape[-1])[first]
            line, column = locate(first)
            raise ParseError(_complaint(row, what), file=self.source, line=line, column=column)
        self.repaired += int((off > ROUNDED).sum())
        self.worst = max(self.worst, float(off.max(initial=0.0)))
        return np.where((off > EXACT)[..., None], values / np.where(sums > 0.0, sums, 1.0)[..., None], values)

    def finish(self) -> None:
        """Warn once about all the rows that were rescaled, if any."""
        if self.repaired:
            warn_user(
                f"{self.source or '<string>'}: {self.repaired} probability "
                f"{'row was' if self.repaired == 1 else 'rows were'} rescaled to sum to 1 "
                f"(off by up to {self.worst:.3g})"
            )
            self.repaired = 0


def checked_size(shape: Sequence[int], *, available: int | None = None, what: str = "the table") -> int:
    """Return the number of entries of a table, or refuse it before anything is allocated.

    Parameters
    ----------
    shape
        The announced sizes of the axes, plain integers.
    available
        How many numbers the text can possibly hold, e.g. its number of characters or tokens; no limit if None.
    what
        The thing that is too large, for the message.

    Raises
    ------
    ParseError
        Without a place, which the reader knows: if an axis is empty, there are more than 64 axes, more than 2**28 entries,
        or more than are available.

    Examples
    --------
    >>> checked_size((3, 2))
    6
    >>> checked_size((2**29,))
    Traceback (most recent call last):
    ...
    markovia.errors.ParseError: <string>:1:1: the table would have 536,870,912 entries; expected at most 268,435,456
    """
    if len(shape) > MAX_AXES:
        raise ParseError(f"{what} would have {len(shape)} axes; expected at most {MAX_AXES}")
    if any(k < 1 for k in shape):
        raise ParseError(f"{what} would have an axis without states; expected at least 1 state")
    entries = prod(shape)
    if entries > MAX_ENTRIES:
        shown = f"{entries:,}" if entries < 10**18 else "over 10**18"
        raise ParseError(f"{what} would have {shown} entries; expected at most {MAX_ENTRIES:,}")
    if available is not None and entries > available:
        raise ParseError(
            f"{what} needs {entries:,} numbers; expected no more than the {available:,} there is room for"
        )
    return entries


def _complaint(row: Array, what: str) -> str:
    of = f" {what}" if what else ""
    if not np.isfinite(row).all():
        return f"a probability{of} is not a finite number; expected numbers from 0 to 1"
    if (row < 0.0).any():
        return f"a probability{of} is negative ({float(row.min()):.9g}); expected numbers from 0 to 1"
    return f"the probabilities{of} sum to {float(row.sum()):.9g}; expected a row that sums to 1"
