"""Rules of a context-free grammar as people write them.

    S  -> NP VP
    NP -> 'she' [0.4] | 'fish' [0.6]
    VP -> V NP [0.7] | V [0.3]
    V  -> 'eats'

Words are in quotes, alternatives are parted by `|`, probabilities stand in brackets (all alternatives of a symbol have one,
or none, and then all are equally probable), a side that is empty or `ε` derives nothing, `#` begins a remark. The first
symbol is the start. Or a mapping, `{"S": {"NP VP": 1.0}, "NP": {"she": 0.4, ...}}`: what is no key is a word.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable, did_you_mean
from markovia.inference.circuits.grammar import GrammarRule
from markovia.runtime.array_types import Array

TOKEN = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>[^"]*)"|\[(?P<p>[^\]]*)\]|(?P<bar>\|)|(?P<name>[^\s'"|\[\]]+)"""
)
REMARK = re.compile(r"""('[^']*'|"[^"]*")|#.*""")
EMPTY = ("ε", "epsilon")
Alternative = tuple[tuple[str, ...], tuple[bool, ...], float | None]


def read_rules(rules: Any) -> tuple[tuple[GrammarRule, ...], Array]:
    """Return the rules and the probability of each.

    Examples
    --------
    >>> rules, p = read_rules("S -> 'a' S 'b' [0.4] | [0.6]")
    >>> [str(rule) for rule in rules], p.tolist()
    (["S -> 'a' S 'b'", 'S -> ε'], [0.4, 0.6])
    """
    if isinstance(rules, str):
        lines = [REMARK.sub(r"\1", line).strip() for line in rules.splitlines()]
        written = [pair for line in lines if line for pair in _line(line)]
    elif isinstance(rules, Mapping):
        written = [(str(left), one) for left, right in rules.items() for one in _listed(left, right)]
    else:
        raise InvalidArgument(
            f"a grammar is a text of rules such as 'S -> NP VP', or a mapping, not {rules!r}"
        )
    if not written:
        raise InvalidArgument("a grammar has at least one rule, such as 'S -> NP VP'")
    lefts = dict.fromkeys(left for left, _ in written)
    found: dict[GrammarRule, float | None] = {}
    for left, (right, quoted, p) in written:
        words = tuple(word or s not in lefts for s, word in zip(right, quoted, strict=True))
        if isinstance(rules, str) and words != quoted:
            lost = next(s for s, word in zip(right, quoted, strict=True) if not word and s not in lefts)
            raise InvalidArgument(
                f"no rule has {lost!r} on its left side{did_you_mean(lost, list(lefts))}; words are in quotes"
            )
        rule = GrammarRule(left, right, words)
        if rule in found:
            raise InvalidArgument(f"the rule {rule} is there twice")
        found[rule] = p
    return tuple(found), _probabilities(found)


def _line(line: str) -> list[tuple[str, Alternative]]:
    """Return the left side of a line with each of its alternatives."""
    left, arrow, right = line.replace("→", "->").partition("->")
    if not arrow or len(left.split()) != 1:
        raise InvalidArgument(
            f"{line!r} is no rule; one is written 'S -> NP VP', with one symbol on the left"
        )
    return [(left.strip(), one) for one in _alternatives(right, line)]


def _alternatives(right: str, line: str) -> list[Alternative]:
    """Return the alternatives of a right side: symbols, which of them are words, and the probability if there is one."""
    rest = TOKEN.sub("", right).strip()
    if rest:
        raise InvalidArgument(
            f"{rest!r} in {line!r} has no other end; words are in quotes, probabilities in brackets"
        )
    found: list[Alternative] = [((), (), None)]
    for token in TOKEN.finditer(right):
        (names, words, p), kind = found[-1], token.lastgroup or ""
        said = token[kind]
        if kind == "bar":
            found.append(((), (), None))
        elif kind == "p":
            found[-1] = (names, words, _number(said, line))
        elif not (kind == "name" and said in EMPTY):
            found[-1] = ((*names, said), (*words, kind != "name"), p)
    return found


def _number(said: Any, where: str) -> float:
    try:
        found = float(said)
    except (TypeError, ValueError):
        found = np.nan
    if not 0.0 <= found <= 1.0:
        raise InvalidTable(f"{said!r} in {where!r} is no probability; give a number from 0 to 1")
    return found


def _listed(left: Any, right: Any) -> list[Alternative]:
    """Return the alternatives of one symbol of a mapping: a mapping to probabilities, or only a list of them."""
    if isinstance(right, str) or not isinstance(right, Iterable):
        raise InvalidArgument(
            f"{left!r} maps to its alternatives, such as {{'NP VP': 1.0}}, not to {right!r}"
        )
    found: list[Alternative] = []
    for one in right:
        p = _number(right[one], str(left)) if isinstance(right, Mapping) else None
        if isinstance(one, str):
            found += [(names, words, p) for names, words, _ in _alternatives(one, one)]
        else:
            found.append((tuple(map(str, one)), (False,) * len(one), p))
    return found


def _probabilities(rules: Mapping[GrammarRule, float | None]) -> Array:
    """Return one probability a rule: those that were given, or equal shares."""
    names = list(dict.fromkeys(rule.left for rule in rules))
    place = {name: i for i, name in enumerate(names)}
    at = np.array([place[rule.left] for rule in rules])
    given = np.array(list(rules.values()), dtype=np.float64)  # NaN for none
    sizes, gaps = np.bincount(at), np.bincount(at, np.isnan(given))
    given = np.where((gaps == sizes)[at], 1.0 / sizes[at], given)
    totals = np.bincount(at, given)
    for left, total in zip(names, totals.tolist(), strict=True):
        if np.isnan(total):
            raise InvalidTable(
                f"some rules of {left!r} have a probability and some have none; give all or none"
            )
        if abs(total - 1.0) > 1e-6:
            raise InvalidTable(f"the probabilities of the rules of {left!r} sum to {total:.6g}, not to 1")
    return np.asarray(given / totals[at])
