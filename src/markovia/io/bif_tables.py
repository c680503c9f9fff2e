"""The body of a BIF probability block: rows of numbers to an array.

Two ways to read a body give the same table. The fast one splits it at its semicolons, looks all parent states
up column by column and converts all numbers in one call; it handles complete lists of rows and root tables,
which is nearly everything that real files hold. Whatever it does not recognise goes to the careful one, which
takes statement after statement and knows the position of each.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from markovia.errors import ParseError
from markovia.factors.tables.variable import Variable
from markovia.io.bif_text import Cursor, plain, said
from markovia.io.numbers import is_number, number_list
from markovia.io.rows import RowPolicy, checked_size
from markovia.runtime.array_types import Array
from markovia.runtime.source_text import brief, hint, shown

MAX_DEFAULT_ENTRIES = 2**24
_BETWEEN_COMMAS = re.compile(r"\s*+([^,]++)", re.ASCII)
_WORDS = re.compile(r"[^\s,]++", re.ASCII)


@dataclass
class EntryBudget:
    """How many entries `default` rows may still fill in, over the whole file."""

    left: int = MAX_DEFAULT_ENTRIES


@dataclass
class Body:
    """A probability block to be read: whose it is and where its statements are."""

    variable: Variable
    parents: tuple[Variable, ...]
    cursor: Cursor
    policy: RowPolicy
    budget: EntryBudget
    properties: dict[str, str] = field(default_factory=dict)

    def table(self) -> Array:
        """Return the table with axes `(*parents, child)`.

        Raises
        ------
        ParseError
            If a row is missing, given twice, too long or too short, or no distribution.
        """
        for read in (_fast_rows, _fast_table):
            table = read(self)
            if table is not None:
                return table
        return _careful(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes, parents first."""
        return (*(len(p) for p in self.parents), len(self.variable))

    def checked(self, rows: Array, offset: Callable[[int], int]) -> Array:
        """Apply the row policy; `offset` finds a row in the text."""
        source = self.cursor.source
        table = self.policy.check(
            rows, lambda row: source.position(offset(row)), f"of {shown(self.variable.name)}"
        ).reshape(self.shape)
        table.setflags(write=False)
        return table

    def size(self, available: int | None) -> int:
        """Return the number of entries, or refuse them."""
        try:
            return checked_size(
                self.shape, available=available, what=f"the table of {shown(self.variable.name)}"
            )
        except ParseError as error:
            raise self.cursor.error(error.expected) from None


def _fast_table(body: Body) -> Array | None:
    """Read `table ...;` and nothing else."""
    start, end = body.cursor.pos, body.cursor.end
    text = body.cursor.text[start:end].strip()
    if not (text.startswith("table") and text.endswith(";")) or not text[5:6].isspace():
        return None
    listed = text[5:-1]
    size = _size_or_zero(body)
    if listed.count(",") != size - 1:
        return None
    values = number_list(listed, ",")
    if values is None or values.size != size:
        return None
    place = body.cursor.text.index("table", start)
    return body.checked(_child_last(values, body), lambda _: place)


def _fast_rows(body: Body) -> Array | None:
    """Read a complete list of rows `(states) numbers;` in any order."""
    start, end = body.cursor.pos, body.cursor.end
    k, m = len(body.variable), len(body.parents)
    if m == 0:
        return None
    n = _size_or_zero(body) // k
    text = body.cursor.text
    if n == 0 or text.count(";", start, end) != n:
        return None
    parts = text[start:end].split(";")
    if parts.pop().strip():
        return None
    keys: list[str] = []
    numbers: list[str] = []
    for part in parts:
        left, close, listed = part.partition(")")
        blank, opening, key = left.partition("(")
        if not close or not opening or (blank and not blank.isspace()):
            return None
        keys.append(key)
        numbers.append(listed)
    if {key.count(",") for key in keys} != {m - 1} or {x.count(",") for x in numbers} != {k - 1}:
        return None
    values = number_list(",".join(numbers), ",")
    if values is None or values.size != n * k:
        return None
    flat = _row_numbers(",".join(keys), body.parents, n)
    if flat is None:
        return None
    rows = np.full((n, k), np.nan)
    rows[flat] = values.reshape(n, k)
    if np.bincount(flat, minlength=n).max() != 1:
        return None

    def offset(row: int) -> int:
        listed = int(np.flatnonzero(flat == row)[0])
        before = start + sum(len(p) + 1 for p in parts[:listed])
        return text.index("(", before)

    return body.checked(rows, offset)


def _row_numbers(keys: str, parents: Sequence[Variable], n: int) -> NDArray[np.intp] | None:
    """Return the number of each row in C order over the parents, or None if a state is unknown."""
    tokens = keys.split(",")
    tokens = list(map(str.strip, tokens)) if keys.isascii() else list(map(plain, tokens))
    flat = np.zeros(n, dtype=np.intp)
    try:
        for j, parent in enumerate(parents):
            column = map(parent.codes.__getitem__, tokens[j :: len(parents)])
            flat = flat * len(parent) + np.fromiter(column, dtype=np.intp, count=n)
    except KeyError:
        return None
    return flat


def _size_or_zero(body: Body) -> int:
    """Return the number of entries if that many could be listed; the careful way explains if not."""
    size = 1
    for k in body.shape:
        size *= k
        if size > body.cursor.end - body.cursor.pos:
            return 0
    return size if len(body.shape) <= 64 else 0


def _child_last(values: Array, body: Body) -> Array:
    """Turn a `table` list, where the child varies slowest, into one row a parent configuration."""
    k = len(body.variable)
    return np.ascontiguousarray(values.reshape(k, -1).T)


# -- the careful way ---------------------------------------------------------------------------------------------


def _careful(body: Body) -> Array:
    cursor, variable = body.cursor, body.variable
    k = len(variable)
    opened = cursor.pos
    listed: dict[int, tuple[int, list[float]]] = {}
    default: tuple[int, list[float]] | None = None
    table: tuple[int, Array] | None = None
    while cursor.peek():
        place, word = cursor.take()
        if word == "property":
            key, value = cursor.rest_of_property()
            body.properties[key] = value
        elif word == "(":
            row = _row_of(body, place)
            if row in listed:
                raise cursor.error("expected each row once; this one was given above", place)
            listed[row] = (place, _numbers(body, k, place))
        elif word == "default":
            if default is not None:
                raise cursor.error("expected a single default row; one was given above", place)
            default = (place, _numbers(body, k, place))
        elif word == "table":
            if table is not None:
                raise cursor.error("expected a single table; one was given above", place)
            size = body.size(cursor.end - cursor.pos)
            table = (place, np.array(_numbers(body, size, place)))
        else:
            raise cursor.error(
                f"expected 'table', 'default', 'property' or a row in parentheses, found {said(word)}", place
            )
    if table is not None:
        if listed or default:
            raise cursor.error("expected either a table or separate rows, found both", table[0])
        at, values = table
        return body.checked(_child_last(values, body), lambda _: at)
    return _assembled(body, listed, default, opened)


def _assembled(
    body: Body,
    listed: dict[int, tuple[int, list[float]]],
    default: tuple[int, list[float]] | None,
    opened: int,
) -> Array:
    k = len(body.variable)
    n = body.size(None) // k
    missing = n - len(listed)
    if missing and default is None:
        gap = next(row for row in range(n) if row not in listed)
        states = np.unravel_index(gap, body.shape[:-1]) if body.parents else ()
        named = ", ".join(f"{p.name}={p.states[int(i)]!r}" for p, i in zip(body.parents, states, strict=True))
        wanted = f"a row for {brief(named)}" if named else "a table"
        raise body.cursor.error(
            f"expected {wanted} in the block of {shown(body.variable.name)}; {missing:,} of {n:,} rows are missing",
            opened,
        )
    if missing:
        body.budget.left -= missing * k
        if body.budget.left < 0:
            raise body.cursor.error(
                f"expected default rows that fill in at most {MAX_DEFAULT_ENTRIES:,} entries in one file",
                opened,
            )
    rows = np.empty((n, k))
    if default is not None:
        rows[:] = default[1]
    if listed:
        rows[list(listed)] = [numbers for _, numbers in listed.values()]
    return body.checked(
        rows, lambda row: listed[row][0] if row in listed else default[0] if default else opened
    )


def _row_of(body: Body, place: int) -> int:
    """Read the parent states of a row, up to its closing parenthesis; return the row's number."""
    cursor, parents = body.cursor, body.parents
    at, raw = cursor.until(")", "parent states")
    cursor.expect(")")
    found = [(m.start(1), plain(m[1])) for m in _BETWEEN_COMMAS.finditer(raw)]
    if len(found) != len(parents):
        found = [(m.start(), plain(m.group())) for m in _WORDS.finditer(raw)]
    if len(found) != len(parents):
        raise cursor.error(
            f"expected one state for each of the {len(parents)} parents of {shown(body.variable.name)}, "
            f"found {len(found)}",
            place,
        )
    row = 0
    for parent, (start, state) in zip(parents, found, strict=True):
        code = parent.codes.get(state)
        if code is None:
            raise cursor.error(
                f"expected a state of {shown(parent.name)}, found {said(state)}{hint(state, parent.states)}",
                at + start,
            )
        row = row * len(parent) + code
    return row


def _numbers(body: Body, count: int, place: int) -> list[float]:
    """Read `count` numbers and the semicolon after them."""
    cursor = body.cursor
    values: list[float] = []
    while True:
        at, token = cursor.take()
        if token == ";":
            if len(values) != count:
                raise cursor.error(
                    f"expected {count} probabilities for {shown(body.variable.name)}, found {len(values)}", at
                )
            return values
        if token == ",":
            continue
        if not is_number(token):
            raise cursor.error(f"expected a number or ';', found {said(token)}", at)
        if len(values) == count:
            raise cursor.error(
                f"expected ';' after {count} probabilities for {shown(body.variable.name)}, found {said(token)}",
                at,
            )
        values.append(float(token))
