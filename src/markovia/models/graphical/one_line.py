"""Networks written on one line: `"rain->wet{no|yes}<-sprinkler; wet->slip[3]"`.

Grammar (blanks and line breaks around marks are free)::

    network := trail (";" trail)*
    trail   := node (("->" | "<-") node)*
    node    := name [ "[" k "]" | "[" low "," high "]" | "{" state ("|" state)* "}" ]

`[k]` gives the integer states 0 ... k-1, `[low,high]` the integers from low to high, `{a|b}` named states. A node
without either has two states, 0 and 1. The states may be written at any one mention of the node. A name with a dash that
no arrow touches is written in quotes, `"x-ray"`. The form `[a][b|a][c|a:b]` that R users know is understood too.
"""

import re
from dataclasses import dataclass, field
from typing import NoReturn

from markovia.errors import ParseError
from markovia.factors.tables.variable import State

_NAME = re.compile(r"""\s*(?:"([^"]+)"|([^\s\[\]{}<>|;:,"-]+(?:-(?!>)[^\s\[\]{}<>|;:,"-]+)*))\s*""")
_ARROW = re.compile(r"\s*(->|<-)\s*")
_STATES = re.compile(r"\s*(?:\[\s*(-?\d+)\s*(?:,\s*(-?\d+)\s*)?\]|\{([^}]*)\})\s*")
_MODEL_STRING = re.compile(r"\s*(\[[^\[\]]+\]\s*)+\s*")


@dataclass
class OneLine:
    """Parents of every node in order of appearance, and the states that were written."""

    parents: dict[str, list[str]] = field(default_factory=dict)
    states: dict[str, tuple[State, ...]] = field(default_factory=dict)


def parse_one_line(text: str) -> OneLine:
    """Parse a one-line network.

    Raises
    ------
    ParseError
        With the column and what was expected there.

    Examples
    --------
    >>> parse_one_line("rain->wet{no|yes}<-sprinkler").parents
    {'rain': [], 'wet': ['rain', 'sprinkler'], 'sprinkler': []}
    >>> parse_one_line("[a][b|a][c|a:b]").parents
    {'a': [], 'b': ['a'], 'c': ['a', 'b']}
    """
    if "->" not in text and "<-" not in text and _MODEL_STRING.fullmatch(text):
        return _model_string(text)
    result = OneLine()
    at = 0
    while True:
        at = _trail(text, at, result)
        if at < len(text) and text[at] != ";":
            dash = " (did you mean '->'?)" if text[at] == "-" else ""
            _fail(text, at, f"expected '->', '<-', ';' or the end{dash}")
        at += 1
        if not text[at:].strip():
            _refuse_dashes(text, result)
            return result


def _refuse_dashes(text: str, result: OneLine) -> None:
    """Ask whether `a-b` stands for `a->b` where it is a variable by itself: without quotes and without edges."""
    joined = {end for child, parents in result.parents.items() if parents for end in (child, *parents)}
    for name in result.parents:
        if "-" in name and name not in joined and f'"{name}"' not in text:
            edge = name.replace("-", "->")
            _fail(
                text,
                text.index(name),
                f"expected '->' or '<-'; did you mean {edge!r}? (a name with a dash: '\"{name}\"')",
            )


def _trail(text: str, at: int, result: OneLine) -> int:
    left, at = _node(text, at, result)
    while (arrow := _ARROW.match(text, at)) is not None:
        right, at = _node(text, arrow.end(), result)
        parent, child = (left, right) if arrow[1] == "->" else (right, left)
        if parent not in result.parents[child]:
            result.parents[child].append(parent)
        left = right
    return at


def _node(text: str, at: int, result: OneLine) -> tuple[str, int]:
    match = _NAME.match(text, at)
    if match is None:
        _fail(text, at, "expected a variable's name")
    name = match[1] or match[2]
    result.parents.setdefault(name, [])
    end = match.end()
    listed = _STATES.match(text, end)
    if listed is not None:
        states = _read_states(text, end, listed)
        if result.states.setdefault(name, states) != states:
            _fail(text, end, f"{name!r} was given other states before")
        end = listed.end()
    elif end < len(text) and text[end] in "[{":
        _fail(text, end, "expected [k], [low,high] or {state|state}")
    return name, end


def _read_states(text: str, at: int, match: re.Match[str]) -> tuple[State, ...]:
    if match[3] is not None:
        states: tuple[State, ...] = tuple(s.strip() for s in match[3].split("|"))
        if "" in states or len(set(states)) != len(states):
            _fail(text, at, "states between | are distinct and not empty")
        return states
    low, high = (0, int(match[1]) - 1) if match[2] is None else (int(match[1]), int(match[2]))
    if high < low:
        _fail(text, at, "expected at least one state")
    if high - low >= 10**6:
        _fail(text, at, "expected at most a million states")
    return tuple(range(low, high + 1))


def _model_string(text: str) -> OneLine:
    result = OneLine()
    for match in re.finditer(r"\[([^\[\]]+)\]", text):
        name, _, given = match[1].partition("|")
        parents = [p.strip() for p in given.split(":")] if given else []
        if not name.strip() or "" in parents:
            _fail(text, match.start(), "expected [name] or [name|parent:parent]")
        if name.strip() in result.parents:
            _fail(text, match.start(), f"{name.strip()!r} is listed twice")
        result.parents[name.strip()] = parents
    for child, parents in list(result.parents.items()):
        for parent in parents:
            if parent not in result.parents:
                _fail(text, text.index(parent), f"parent {parent!r} of {child!r} has no entry of its own")
    return result


def _fail(text: str, at: int, expected: str) -> NoReturn:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    raise ParseError(expected, line=line, column=column)
