"""The small files around a UAI model: evidence and the answers of the inference competitions.

    .evid   how many variables are observed, then pairs `variable value`; or first the number of evidence sets
    .MAR    posterior marginals: the number of variables, then for each its number of states and its marginal
    .PR     log10 of the partition function given the evidence
    .MAP    a most probable assignment: the number of variables, then their values

Answers begin with the word that names them; readers do not insist on it. Some programs put a number of evidence
sets before the answers, or write an answer for every set: `read_mar` and `read_map` return the first set then.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.io.uai import MAX_STATES, NumberStream
from markovia.runtime.array_types import Array
from markovia.runtime.source_text import Source

Evidence = dict[str, int]

_WORD = re.compile(r"\s*+([A-Za-z]++)?")


class PartitionFunction(NamedTuple):
    """The logarithm of a partition function, natural and to base 10."""

    log: float
    log10: float


def read_evid(text: str, source: str | None = None) -> list[Evidence]:
    """Read evidence: one mapping a set, ready to be used as `given=`.

    An empty file holds one empty set. Where the numbers fit both layouts, a single set is meant.

    Raises
    ------
    ParseError
        If the counts and the numbers do not fit, or a variable is observed twice.

    Examples
    --------
    >>> read_evid("2  0 1  5 0")
    [{'x0': 1, 'x5': 0}]
    >>> read_evid("2  1 0 1  1 3 0")
    [{'x0': 1}, {'x3': 0}]
    """
    numbers = NumberStream(Source(text, source))
    total = len(numbers.values)
    if total == 0:
        return [{}]
    first = numbers.integer("the number of observed variables", 0, 2**53)
    if total == 1 + 2 * first:
        found = [_pairs(numbers, first)]
    else:
        if first > numbers.left:
            raise numbers.error(
                f"expected {first:,} observed variables or evidence sets, found {numbers.left} numbers"
            )
        found = []
        for _ in range(first):
            count = numbers.integer("the number of observed variables", 0, 2**53)
            found.append(_pairs(numbers, count))
    numbers.expect_end()
    return found


def write_evid(evidence: Mapping[str, int] | Sequence[Mapping[str, int]]) -> str:
    r"""Write evidence, one set or several; names are `x0, x1, ...` and values positions of states.

    Examples
    --------
    >>> write_evid({"x0": 1, "x5": 0})
    '2 0 1 5 0\n'
    """
    if isinstance(evidence, Mapping):
        return _evidence_line(evidence)
    return f"{len(evidence)}\n" + "".join(map(_evidence_line, evidence))


def read_mar(text: str, source: str | None = None) -> list[Array]:
    r"""Read posterior marginals: one array a variable.

    Raises
    ------
    ParseError
        If the counts and the numbers do not fit.

    Examples
    --------
    >>> [p.tolist() for p in read_mar("MAR\n2 2 0.1 0.9 2 1 0")]
    [[0.1, 0.9], [1.0, 0.0]]
    """
    numbers = _after_word(text, source, "MAR")
    fitting = _marginals(numbers.values, 0, sets=1)
    if fitting is None and numbers.left > 1 and 1 <= numbers.values[0] <= numbers.left:
        # some programs put the number of evidence sets first
        fitting = _marginals(numbers.values, 1, sets=int(numbers.values[0]))
    if fitting is not None:
        return fitting
    found = []
    for _ in range(numbers.integer("the number of variables", 0, 2**53)):
        size = numbers.integer("a number of states", 1, MAX_STATES)
        found.append(numbers.take(size, f"{size:,} probabilities"))
    raise numbers.error(f"expected the end of the file after {len(found):,} marginals")


def write_mar(marginals: Iterable[Any]) -> str:
    r"""Write marginals, one a variable in the model's order: arrays, lists or posteriors of single variables.

    Examples
    --------
    >>> write_mar([[0.1, 0.9], [1.0, 0.0]])
    'MAR\n2 2 0.1 0.9 2 1.0 0.0\n'
    """
    arrays = [np.asarray(getattr(m, "values", m), dtype=np.float64) for m in marginals]
    for array in arrays:
        if array.ndim != 1:
            raise InvalidArgument(
                f"a marginal is a list of probabilities, not an array of shape {array.shape}"
            )
    listed = [f"{len(a)} {' '.join(map(repr, a.tolist()))}" for a in arrays]
    return f"MAR\n{' '.join([str(len(arrays)), *listed])}\n"


def read_pr(text: str, source: str | None = None) -> PartitionFunction:
    r"""Read the logarithm of a partition function (files hold log10).

    Examples
    --------
    >>> read_pr("PR\n2.0").log10
    2.0
    """
    text_without, infinite = re.subn(r"(?i)-inf(inity)?\s*$", "", text)
    numbers = _after_word(text_without, source, "PR")
    if infinite and not numbers.left:
        return PartitionFunction(-np.inf, -np.inf)
    if not 1 <= numbers.left <= 2:
        raise numbers.error(f"expected one number, log10 of the partition function, found {numbers.left:,}")
    log10 = float(numbers.values[-1])
    if not np.isfinite(log10):
        raise numbers.error(f"expected a finite logarithm, found {log10}")
    return PartitionFunction(log10 * log(10.0), log10)


def write_pr(log_partition: float) -> str:
    r"""Write a partition function from its natural logarithm.

    Examples
    --------
    >>> write_pr(0.0)
    'PR\n0.0\n'
    """
    return f"PR\n{float(log_partition) / log(10.0)!r}\n"


def read_map(text: str, source: str | None = None) -> list[int]:
    r"""Read a most probable assignment: one state position a variable.

    Examples
    --------
    >>> read_map("MAP\n3 0 1 1")
    [0, 1, 1]
    """
    numbers = _after_word(text, source, "MAP")
    n = numbers.integer("the number of variables", 0, 2**53)
    sets = 1
    if n != numbers.left and numbers.left and numbers.left == n * (1 + numbers.values[1]):
        sets, n = n, numbers.integer("the number of variables", 0, 2**53)
    values = numbers.integers(n, "the state of each variable", 0, MAX_STATES - 1)
    if sets == 1:
        numbers.expect_end()
    return values


def write_map(states: Iterable[int]) -> str:
    r"""Write an assignment, one state position a variable in the model's order.

    Examples
    --------
    >>> write_map([0, 1, 1])
    'MAP\n3 0 1 1\n'
    """
    listed = [int(s) for s in states]
    return f"MAP\n{' '.join(map(str, [len(listed), *listed]))}\n"


def _pairs(numbers: NumberStream, count: int) -> Evidence:
    flat = numbers.integers(2 * count, f"{count:,} pairs of a variable and its value", 0, 2**53)
    found: Evidence = {}
    for k, (variable, value) in enumerate(zip(flat[::2], flat[1::2], strict=True)):
        if f"x{variable}" in found:
            raise numbers.error(f"expected each variable once, found {variable} twice", back=2 * (count - k))
        found[f"x{variable}"] = value
    return found


def _evidence_line(evidence: Mapping[str, int]) -> str:
    tokens = [str(len(evidence))]
    for name, value in evidence.items():
        if not (isinstance(name, str) and re.fullmatch(r"x\d+", name, re.ASCII)):
            raise InvalidArgument(f"a UAI file knows variables as x0, x1, ..., not as {name!r}")
        tokens += (name[1:], str(int(value)))
    return " ".join(tokens) + "\n"


def _after_word(text: str, source: str | None, word: str) -> NumberStream:
    origin = Source(text, source)
    head = _WORD.match(text)
    if head is None or head[1] is None:
        return NumberStream(origin)
    if head[1].upper() != word:
        raise origin.error(head.start(1), f"expected {word!r}, found {head[1][:40]!r}")
    return NumberStream(origin, head.end())


def _marginals(values: Array, at: int, sets: int) -> list[Array] | None:
    """Return the first of several sets of marginals if all the numbers from a position fit, else None."""
    first: list[Array] | None = None
    for _ in range(sets):
        if at >= len(values) or not 0 <= values[at] <= len(values):
            return None
        found: list[Array] = []
        n, at = int(values[at]), at + 1
        for _ in range(n):
            size = int(values[at]) if at < len(values) and 1 <= values[at] <= MAX_STATES else 0
            if size == 0 or size != values[at] or at + 1 + size > len(values):
                return None
            found.append(values[at + 1 : at + 1 + size].copy())
            at += 1 + size
        first = found if first is None else first
    return first if at == len(values) else None
