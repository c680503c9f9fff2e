"""UAI, the format of the inference competitions: Markov and Bayesian networks as numbers and nothing else.

A file is a stream of tokens: the word `MARKOV` or `BAYES`; the number of variables and the number of states of
each; the number of functions and the scope of each (its length, then variables from 0); then for each function
the number of its entries and the entries, the last variable of the scope fastest.

    MARKOV 2  2 2  1  2 0 1  4  30 5 1 10

The format has no names, so variables are `x0, x1, ...` and states are integers from 0. Writing a model that has
names loses them (and properties); the native JSON format keeps everything. In a `BAYES` file the last variable
of a scope is the child of the others.

pyAgrum writes `BAYES` files in a dialect: behind each scope comes a comment with the variable's name, and in the
tables the first parent, not the last one, varies fastest (the child before both). Such files are known by the
exact layout of their head and are read as they are meant. Comments anywhere else are refused, also those in
pyAgrum's `MARKOV` files, whose tables are in an order that the file does not tell.

Evidence and result files (`.evid`, `.MAR`, `.PR`, `.MAP`) are in `markovia.io.uai_results`.

Cost: linear; all numbers are converted in one call. Limits: 2**20 states a variable, 64 variables a function,
2**28 entries a table. Reference: the file formats page of the UAI 2014 inference competition.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from markovia.errors import (
    CycleError,
    IncompleteModel,
    MarkoviaError,
    ParseError,
    UnsupportedModel,
    warn_user,
)
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.io.identifiers import refusal
from markovia.io.numbers import is_number, number_list
from markovia.io.rows import RowPolicy, checked_size
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.factor_model import FactorModel
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.source_text import Source, brief, shown

MAX_STATES = 2**20
_MOST = 2**53
_HEAD = re.compile(r"\s*+(\S++)", re.ASCII)
_TOKEN = re.compile(r"\S++", re.ASCII)
# the head of a file by pyAgrum, down to its blanks, so that a hand-made file with comments is not taken for one
_AGRUM = re.compile(
    r"BAYES\r?\n\d++\r?\n(?:\d++ )+\r?\n\d++\r?\n(?:\d++(?: \d++)+   # [^\n]*+\n)+\r?\n\r?\n", re.ASCII
)
_COMMENT = re.compile(r"#[^\n]*+")


def read_uai(text: str, source: str | None = None) -> MarkovNetwork | BayesianNetwork:
    """Read a Markov network or a Bayesian network from UAI text.

    Parameters
    ----------
    text
        The whole file.
    source
        The file's name for messages.

    Raises
    ------
    ParseError
        If the text is not a UAI model; with line, column and what was expected.

    Examples
    --------
    >>> mn = read_uai("MARKOV 2  2 2  1  2 0 1  4  30 5 1 10")
    >>> mn.variables, round(mn.query("x0")[0], 4)
    (['x0', 'x1'], 0.7609)
    """
    origin = Source(text, source)
    dialect = _AGRUM.match(text) if "#" in text else None
    if dialect is not None:
        # blanks of the same length, so that every position stays what it is in the file
        plain = _COMMENT.sub(lambda comment: " " * len(comment[0]), dialect[0])
        text = plain + text[dialect.end() :]
        origin = Source(text, source)
    head = _HEAD.match(text)
    if head is None or head[1].upper() not in ("MARKOV", "BAYES"):
        found = shown(head[1]) if head else "the end of the file"
        raise origin.error(head.start(1) if head else 0, f"expected 'MARKOV' or 'BAYES', found {found}")
    numbers = NumberStream(origin, head.end())
    variables = _variables(numbers)
    scopes = _scopes(numbers, len(variables))
    if head[1].upper() == "MARKOV":
        factors = [Factor.of(own, values) for own, values, _ in _tables(numbers, variables, scopes)]
        numbers.expect_end()
        return MarkovNetwork(variables, factors)
    return _bayesian(numbers, variables, scopes, first_fastest=dialect is not None)


def write_uai(model: GraphicalModel) -> str:
    """Write any discrete model: a Bayesian network as `BAYES`, the others as `MARKOV`.

    Names of variables and states, and properties, are not part of the format and are lost.

    Raises
    ------
    UnsupportedModel
        If a node has no table, or its table is too large to list.

    Examples
    --------
    >>> import markovia as mk
    >>> mn = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[30, 5], [1, 10]])])
    >>> print(write_uai(mn))
    MARKOV
    2
    2 2
    1
    2 0 1
    <BLANKLINE>
    4
     30.0 5.0 1.0 10.0
    <BLANKLINE>
    """
    if isinstance(model, BayesianNetwork):
        word = "BAYES"
    elif isinstance(model, FactorModel):
        word = "MARKOV"
    else:
        raise refusal(model, "UAI files hold discrete models only")
    try:
        factors = [p if isinstance(p, Factor) else p.factor() for p in model.pieces()]
    except IncompleteModel as error:
        raise UnsupportedModel(f"UAI needs every table: {error}") from None
    except MarkoviaError as error:
        raise UnsupportedModel(f"UAI lists every entry of a table: {error}") from None
    number = {name: i for i, name in enumerate(model.variables)}
    if any(name != f"x{i}" or not model.variable(name).numbered for name, i in number.items()):
        warn_user(
            "UAI has no names: variables were written as x0, x1, ... and states as 0, 1, ...; .json keeps them"
        )
    lines = [
        word,
        str(len(number)),
        " ".join(str(len(model.variable(n))) for n in number),
        str(len(factors)),
        *(" ".join(map(str, [len(f.names), *(number[n] for n in f.names)])) for f in factors),
    ]
    for factor in factors:
        lines += ("", str(factor.size), " " + " ".join(map(repr, factor.values.reshape(-1).tolist())))
    return "\n".join(lines) + "\n"


class NumberStream:
    """The numbers of a text, all converted at once, taken from the front with a position for every complaint.

    Parameters
    ----------
    source
        The text.
    start
        The offset of the first number.
    """

    def __init__(self, source: Source, start: int = 0) -> None:
        self.source = source
        self.start = start
        self.at = 0
        values = number_list(source.text[start:])
        if values is None:
            for token in _TOKEN.finditer(source.text, start):
                if token.group().startswith("#"):
                    raise source.error(
                        token.start(), "expected a number, found a comment, which UAI files lack"
                    )
                if not is_number(token.group()):
                    raise source.error(token.start(), f"expected a number, found {shown(token.group())}")
            raise source.error(start, "expected numbers with white space between them")
        self.values = values

    @property
    def left(self) -> int:
        """How many numbers have not been taken."""
        return len(self.values) - self.at

    def error(self, message: str, back: int = 0) -> ParseError:
        """Return the error for the next number, or the one taken `back` numbers ago."""
        tokens = _TOKEN.finditer(self.source.text, self.start)
        token = next(islice(tokens, max(self.at - back, 0), None), None)
        return self.source.error(token.start() if token else len(self.source.text), message)

    def take(self, count: int, what: str) -> Array:
        """Return the next numbers."""
        if count > self.left:
            short = len(self.values)
            self.at = short
            raise self.error(f"expected {what}, found the end of the file")
        self.at += count
        return self.values[self.at - count : self.at]

    def cut_short(self, count: int, found: int, what: str) -> ParseError:
        """Return the error for a list that the file announces and does not hold to its end."""
        return self.source.error(
            len(self.source.text), f"expected {count:,} {what}, but the file ends after {found:,} of them"
        )

    def integer(self, what: str, low: int, high: int) -> int:
        """Return the next number, which is an integer from low to high."""
        value = float(self.take(1, what)[0])
        if not low <= value <= high or value != int(value):
            raise self.error(
                f"expected {what}, an integer from {low:,} to {high:,}, found {value:.12g}", back=1
            )
        return int(value)

    def integers(self, count: int, what: str, low: int, high: int) -> list[int]:
        """Return the next numbers, which are integers from low to high."""
        values = self.take(count, what)
        wrong = (values < low) | (values > high) | (values != np.floor(values))
        if wrong.any():
            first = int(np.argmax(wrong))
            raise self.error(
                f"expected {what}, an integer from {low:,} to {high:,}, found {values[first]:.12g}",
                back=count - first,
            )
        taken: list[int] = values.astype(np.int64).tolist()
        return taken

    def expect_end(self) -> None:
        """Complain about numbers that are left over."""
        if self.left:
            raise self.error(f"expected the end of the file, found {self.left:,} more numbers")


def _variables(numbers: NumberStream) -> list[Variable]:
    n = numbers.integer("the number of variables", 0, _MOST)
    if n > numbers.left:
        raise numbers.cut_short(n, numbers.left, "numbers of states")
    sizes = numbers.integers(n, "a number of states", 1, MAX_STATES)
    # every variable of a model has a table of its own size; a few more states than numbers do no harm
    if sum(sizes) > 2**22 + len(numbers.source.text):
        raise numbers.error(f"expected fewer states, found {sum(sizes):,} in all", back=n)
    states = {k: tuple(range(k)) for k in set(sizes)}
    return [Variable.of(f"x{i}", states[k]) for i, k in enumerate(sizes)]


def _scopes(numbers: NumberStream, n: int) -> list[list[int]]:
    count = numbers.integer("the number of functions", 0, _MOST)
    ahead = _each(numbers.values, numbers.at)
    scopes: list[list[int]] = []
    for _ in range(count):
        size = next(ahead, None)
        if size is None:
            raise numbers.cut_short(count, len(scopes), "scopes")
        raw = list(islice(ahead, int(size))) if 0.0 <= size <= 64.0 else []
        if len(raw) != size or (raw and not (min(raw) >= 0.0 and max(raw) < n)):
            raise _bad_scope(numbers, n)
        scope = list(map(int, raw))
        if scope != raw or len(set(scope)) != size:
            raise _bad_scope(numbers, n)
        numbers.at += 1 + len(scope)
        scopes.append(scope)
    return scopes


def _bad_scope(numbers: NumberStream, n: int) -> ParseError:
    """Find what is wrong with the scope that begins here."""
    try:
        size = numbers.integer("the size of a scope", 0, 64)
        numbers.integers(size, "a variable", 0, n - 1)
    except ParseError as error:
        return error
    return numbers.error("expected each variable once in a scope", back=size)


def _each(values: Array, at: int, chunk: int = 2**16) -> Iterator[float]:
    """Yield plain numbers without turning the whole array into Python objects."""
    for start in range(at, len(values), chunk):
        yield from values[start : start + chunk].tolist()


def _tables(
    numbers: NumberStream, variables: Sequence[Variable], scopes: Sequence[list[int]]
) -> list[tuple[tuple[Variable, ...], Array, int]]:
    """Return, for each function, its variables, its table and the stream position of its first entry."""
    values = numbers.values
    values.setflags(write=False)  # tables are views of it
    clean = bool(((values >= 0.0) & (values < np.inf)).all())
    sizes: dict[tuple[int, ...], int] = {}
    tables = []
    for scope in scopes:
        own = tuple([variables[i] for i in scope])
        shape = tuple([len(v.states) for v in own])
        if shape not in sizes:
            try:
                sizes[shape] = checked_size(shape, available=max(numbers.left, 1))
            except ParseError as error:
                raise numbers.error(error.expected) from None
        size = sizes[shape]
        at = numbers.at + 1
        if at > len(values) or values[at - 1] != size:
            announced = numbers.integer("the number of entries of a table", 0, 2**53)
            raise numbers.error(
                f"expected a table of {size:,} entries for its scope, found {announced:,}", back=1
            )
        numbers.at = at
        table = numbers.take(size, f"{size:,} entries of a table")
        if not clean and not ((table >= 0.0) & (table < np.inf)).all():
            first = int(np.argmax(~((table >= 0.0) & (table < np.inf))))
            raise numbers.error(
                f"expected an entry that is finite and not negative, found {table[first]:.12g}",
                back=size - first,
            )
        tables.append((own, table.reshape(shape), at))
    return tables


def _bayesian(
    numbers: NumberStream,
    variables: Sequence[Variable],
    scopes: Sequence[list[int]],
    first_fastest: bool,
) -> BayesianNetwork:
    if len(scopes) != len(variables):
        raise numbers.error(
            f"expected one function for each of the {len(variables):,} variables, found {len(scopes):,}"
        )
    children: set[int] = set()
    for i, scope in enumerate(scopes):
        if not scope or scope[-1] in children:
            raise numbers.error(
                "expected a scope that ends with a child, each variable in its turn",
                back=sum(1 + len(s) for s in scopes[i:]),
            )
        children.add(scope[-1])
    policy = RowPolicy(numbers.source.name)
    conditionals: dict[str, ConditionalTable] = {}
    for own, values, at in _tables(numbers, variables, scopes):
        *parents, child = own

        def locate(row: int, at: int = at, child: Variable = child) -> tuple[int, int]:
            error = numbers.error("", back=numbers.at - at - row * len(child))
            return error.line, error.column

        table = policy.check(values.reshape(-1, len(child)), locate, f"of {child.name!r}")
        shape = values.shape[:-1]
        if first_fastest:
            backwards = table.reshape(*reversed(shape), len(child))
            table = np.moveaxis(backwards, -1, 0).T
        table = np.ascontiguousarray(table.reshape(values.shape))
        table.setflags(write=False)
        conditionals[child.name] = ConditionalTable.of(child, tuple(parents), table)
    numbers.expect_end()
    try:
        network = BayesianNetwork.from_conditionals(conditionals[v.name] for v in variables)
    except CycleError as error:
        raise numbers.source.error(0, f"expected an acyclic network; {brief(str(error))}") from None
    policy.finish()
    return network
