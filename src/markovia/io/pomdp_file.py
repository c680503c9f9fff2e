"""Cassandra's `.pomdp` files, which solvers of partially observed processes exchange.

    discount: 0.95
    values: reward
    states: left right
    actions: listen open
    observations: 2
    start: uniform
    T: listen  identity
    T: open  uniform
    O: listen : left  0.85 0.15
    O: * : * : *  0.5
    R: listen : * : * : *  -1

A line `T:`, `O:` or `R:` addresses one entry, a row or a whole matrix; `*` stands for everything, and later lines win. Costs
(`values: cost`) are turned into rewards, and rewards that depend on where a step leads or what is heard then are averaged.
Writing is complete but for names that are no words, which become numbers. Reference: A. Cassandra's file specification.
Cost: linear in the text, and the dense tables.
"""

import re
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from markovia.errors import MarkoviaError, ParseError, UnsupportedModel
from markovia.inference.decisions.processes.decision_process import require_room
from markovia.io.numbers import is_number
from markovia.models.temporal.dynamic.pomdp import POMDP
from markovia.runtime.array_types import Array
from markovia.runtime.source_text import Source, brief, hint, shown

_TOKEN = re.compile(r"#[^\n]*+|:|[^\s:#]++", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_HEAD = ("discount", "values", "states", "actions", "observations", "start")
_TABLES = ("T", "O", "R")
_RESERVED = {*_HEAD, *_TABLES, "identity", "uniform", "reset", "include", "exclude", "reward", "cost"}
MOST_NAMES = 2**20


def read_pomdp(text: str, source: str | None = None) -> POMDP:
    """Read a `.pomdp` file.

    Parameters
    ----------
    text
        The file's content.
    source
        Its name, for errors.

    Raises
    ------
    ParseError
        If the text is no process in this format; with line, column and what was expected.

    Examples
    --------
    >>> read_pomdp('''discount: 0.9
    ... values: reward
    ... states: 2
    ... actions: stay
    ... observations: 1
    ... T: stay identity
    ... O: stay uniform
    ... R: stay : 1 : * : * 1.0''').decide().value.__round__(6)
    5.0
    """
    return _PomdpReader(Source(text, source)).read()


def write_pomdp(model: object) -> str:
    """Write a `POMDP`.

    Raises
    ------
    UnsupportedModel
        For any other model, and for what is heard before the first action, which the format does not know.

    Examples
    --------
    >>> print(write_pomdp(POMDP([np.eye(2)], [[1.0], [1.0]], [0.0, 1.0], discount=0.9)).splitlines()[0])
    discount: 0.9
    """
    if not isinstance(model, POMDP):
        raise UnsupportedModel(f".pomdp files hold a POMDP, not a {type(model).__name__}; save it as .json")
    flat, process = model.flat, model.flat.process
    if flat.first_observation is not None:
        raise UnsupportedModel(
            ".pomdp files know nothing that is heard before the first action; let an action come first"
        )
    if process.allowed is not None:
        raise UnsupportedModel(".pomdp files allow every action; leave out those that are not allowed")
    if len(flat.heard) > 1:
        raise UnsupportedModel(".pomdp files know one thing that is heard; name observations together")
    names = [process.states, process.actions, next(iter(flat.heard.values()))]
    sizes = (process.n_states, process.n_actions, flat.n_observations)
    lines = [f"discount: {1.0 if model.discount is None else model.discount!r}", "values: reward"]
    for word, own, size in zip(("states", "actions", "observations"), names, sizes, strict=True):
        lines.append(f"{word}: {_words(own, size)}")
    lines.append("start: " + " ".join(repr(float(p)) for p in process.first))
    for a in range(process.n_actions):
        lines += [f"T: {a}", *_rows(model.transitions[a]), f"O: {a}", *_rows(model.observation_table[a])]
    for s, a in np.argwhere(process.rewards != 0.0).tolist():
        lines.append(f"R: {a} : {s} : * : * {float(process.rewards[s, a])!r}")
    return "\n".join(lines) + "\n"


def _words(names: Sequence[Hashable] | None, size: int) -> str:
    usable = names is not None and all(
        isinstance(n, str) and _NAME.fullmatch(n) and n not in _RESERVED for n in names
    )
    return " ".join(map(str, names)) if usable and names is not None else str(size)


def _rows(table: Array) -> list[str]:
    return [" ".join(repr(float(p)) for p in row) for row in table]


class _PomdpReader:
    """The tokens of a file, and the tables that they have filled so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = [
            (t.group(), t.start()) for t in _TOKEN.finditer(source.text) if not t.group().startswith("#")
        ]
        self.next = 0
        self.names: dict[str, list[str]] = {}
        self.discount, self.sign = 1.0, 1.0
        self.start: Array | None = None

    def read(self) -> POMDP:
        while self.next < len(self.tokens) and self.word not in _TABLES:
            self.head(self.keyword(_HEAD))
        for word in ("states", "actions", "observations"):
            if word not in self.names:
                raise self.error(f"expected '{word}:' before the tables")
        k, n, O = (len(self.names[w]) for w in ("actions", "states", "observations"))  # noqa: N806, E741
        require_room(float(k) * n * (n + O), "the tables of this file", "it is too large to read")
        self.T, self.O, self.R = np.zeros((k, n, n)), np.zeros((k, n, O)), np.zeros((k, n, 1, 1))
        while self.next < len(self.tokens):
            word = self.keyword(_TABLES)
            if word == "R":
                self.reward()
            else:
                self.chances(self.T if word == "T" else self.O, "states" if word == "T" else "observations")
        return self.model()

    def model(self) -> POMDP:
        """Return the process of the tables."""
        n = self.T.shape[1]
        start = np.full(n, 1.0 / n) if self.start is None else self.start
        worth = self.R[..., 0] if self.R.shape[3] == 1 else np.einsum("asto,ato->ast", self.R, self.O)
        rewards = worth[..., 0] if worth.shape[2] == 1 else np.einsum("ast,ast->as", worth, self.T)
        named = {word: own for word, own in self.names.items() if not all(is_number(name) for name in own)}
        discount = self.discount if self.discount < 1.0 else None
        try:
            return POMDP(
                self.T, list(self.O), self.sign * rewards.T, initial=start,
                states=named.get("states"), actions=named.get("actions"), observations=named.get("observations"),
                discount=discount,
            )  # fmt: skip
        except ParseError:
            raise
        except MarkoviaError as problem:
            raise self.source.error(0, f"expected a process; {brief(str(problem))}") from None

    # -- tokens ----------------------------------------------------------------------------------------------------

    @property
    def word(self) -> str:
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    def error(self, message: str, back: int = 0) -> ParseError:
        at = self.next - back
        offset = self.tokens[at][1] if at < len(self.tokens) else len(self.source.text)
        return self.source.error(offset, message)

    def take(self, what: str) -> str:
        if self.next >= len(self.tokens):
            raise self.error(f"expected {what}, found the end of the file")
        self.next += 1
        return self.tokens[self.next - 1][0]

    def keyword(self, known: Sequence[str]) -> str:
        word = self.take("a keyword")
        if word not in known:
            raise self.error(
                f"expected {' or '.join(map(repr, known))}, found {shown(word)}{hint(word, known)}", 1
            )
        if word != "start" or self.word == ":":  # `start include:` has its colon later
            self.colon()
        return word

    def colon(self) -> None:
        if self.take("':'") != ":":
            raise self.error(f"expected ':', found {shown(self.tokens[self.next - 1][0])}", 1)

    def number(self) -> float:
        word = self.take("a number")
        if not is_number(word):
            raise self.error(f"expected a number, found {shown(word)}", 1)
        return float(word)

    def listed(self) -> list[str]:
        """Return words up to the next keyword, which a colon follows."""
        found = []
        while self.next < len(self.tokens) and not (
            self.word in _HEAD or (self.word in _TABLES and self.colon_follows())
        ):
            found.append(self.take("a name"))
        return found

    def colon_follows(self) -> bool:
        return self.next + 1 < len(self.tokens) and self.tokens[self.next + 1][0] == ":"

    # -- the head --------------------------------------------------------------------------------------------------

    def head(self, word: str) -> None:
        """Read one line of the head."""
        if word == "discount":
            self.discount = self.number()
            if not 0.0 <= self.discount <= 1.0:
                raise self.error("expected a discount from 0 to 1", 1)
        elif word == "values":
            kind = self.take("'reward' or 'cost'")
            if kind not in ("reward", "cost"):
                raise self.error(f"expected 'reward' or 'cost', found {shown(kind)}", 1)
            self.sign = 1.0 if kind == "reward" else -1.0
        elif word == "start":
            self.first_belief()
        else:
            own = self.listed()
            if len(own) == 1 and own[0].isascii() and own[0].isdigit():
                if not 0 < (len(own[0]) < 9 and int(own[0])) <= MOST_NAMES:
                    raise self.error(f"expected a number of {word} from 1 to {MOST_NAMES:,}", 1)
                own = [str(i) for i in range(int(own[0]))]
            if not own or len({*own}) < len(own):
                raise self.error(f"expected different names of {word}, or their number")
            self.names[word] = own

    def first_belief(self) -> None:
        """Read `start:`, which is a law, a state, "uniform", or states that are included or excluded."""
        if "states" not in self.names:
            raise self.error("expected 'states:' before 'start:'")
        n, how = len(self.names["states"]), ""
        if self.word in ("include", "exclude"):
            how = self.take("include")
            self.colon()
        own = self.listed()
        if how:
            flags = np.zeros(n)
            for name in own:
                flags[self.index(name, "states")] = 1.0
            flags = flags if how == "include" else 1.0 - flags
            if not flags.any():
                raise self.error("expected a state to begin in")
            self.start = flags / flags.sum()
        elif own == ["uniform"]:
            self.start = np.full(n, 1.0 / n)
        elif len(own) == 1 and n > 1:
            self.start = np.eye(1, n, int(self.index(own[0], "states")))[0]
        elif len(own) == n and all(map(is_number, own)):
            self.start = np.array([float(p) for p in own])
        else:
            raise self.error(f"expected {n} probabilities, a state or 'uniform'")

    # -- the tables ------------------------------------------------------------------------------------------------

    def index(self, name: str, kind: str) -> Any:
        """Return where a name stands, or everything for `*`."""
        known = self.names[kind]
        if name == "*":
            return slice(None)
        if name in known:
            return known.index(name)
        if name.isascii() and name.isdigit() and len(name) < 9 and int(name) < len(known):
            return int(name)
        raise self.error(f"expected one of the {kind} or '*', found {shown(name)}{hint(name, known)}", 1)

    def address(self, kinds: Sequence[str]) -> list[Any]:
        """Read names with colons between them, as many as there are."""
        found = [self.index(self.take("a name"), kinds[0])]
        while self.word == ":" and len(found) < len(kinds):
            self.colon()
            found.append(self.index(self.take("a name"), kinds[len(found)]))
        return found

    def row(self, size: int) -> Array:
        return np.array([self.number() for _ in range(size)])

    def chances(self, table: Array, last: str) -> None:
        """Read an entry, a row or a matrix of transitions or observations."""
        at = self.address(("actions", "states", last))
        n, m = table.shape[1:]
        if len(at) == 3:
            table[tuple(at)] = self.number()
        elif len(at) == 2 and self.word == "reset":
            self.take("reset")
            table[tuple(at)] = np.full(n, 1.0 / n) if self.start is None else self.start
        elif self.word == "uniform":
            self.take("uniform")
            table[tuple(at)] = 1.0 / m
        elif len(at) == 1 and self.word == "identity":
            if n != m:
                raise self.error("expected a matrix: only transitions are an identity")
            self.take("identity")
            table[at[0]] = np.eye(n)
        else:
            table[tuple(at)] = self.row(m) if len(at) == 2 else self.row(n * m).reshape(n, m)

    def reward(self) -> None:
        """Read a reward, or those of all observations, or of all next states and observations."""
        at = self.address(("actions", "states", "states", "observations"))
        n, m = self.T.shape[1], self.O.shape[2]
        if len(at) < 2:
            raise self.error("expected ':' and a state")
        everything = slice(None)
        if len(at) == 4:
            value: Any = self.number()
            ends, heard = at[2] != everything, at[3] != everything
        else:
            value = self.row(m) if len(at) == 3 else self.row(n * m).reshape(n, m)
            ends, heard = len(at) == 2 or at[2] != everything, True
        k = len(self.T)
        shape = (k, n, n if ends else self.R.shape[2], m if heard else self.R.shape[3])
        if shape != self.R.shape:
            require_room(float(np.prod(shape)), "the rewards of this file", "it is too large to read")
            self.R = np.broadcast_to(self.R, shape).copy()
        self.R[tuple(at)] = value
