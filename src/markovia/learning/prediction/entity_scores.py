"""Scores of labelled spans: how many entities were found exactly, from BIO or BIOES labels.

An entity counts as found if its kind, its first and its last token are right. Method: that of the CoNLL-2000 scorer: a span
begins at B or S, or at an I or E that follows no span of its kind, and ends where it does not go on, so that labels that
break the scheme have spans too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument


class Span(NamedTuple):
    """An entity: its kind, its first token and the one behind its last."""

    kind: str
    start: int
    end: int


class SpanScore(NamedTuple):
    """Precision, recall and their harmonic mean; how many entities there are."""

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class EntityScores:
    """Scores of entities.

    Attributes
    ----------
    micro, macro
        Over all entities, and the mean over kinds.
    by_kind
        The scores of each kind.
    """

    micro: SpanScore
    macro: SpanScore
    by_kind: dict[str, SpanScore]

    @property
    def f1(self) -> float:
        """The F1 over all entities."""
        return self.micro.f1

    def __str__(self) -> str:
        rows = [*self.by_kind.items(), ("all", self.micro), ("mean", self.macro)]
        width = max(len(name) for name, _ in rows)
        lines = [f"{'':{width}}  precision  recall     f1  support"]
        lines += [
            f"{name:{width}}  {s.precision:9.3f}  {s.recall:6.3f}  {s.f1:5.3f}  {s.support:7,d}"
            for name, s in rows
        ]
        return "\n".join(lines)


def entity_spans(labels: Iterable[Any]) -> list[Span]:
    """Return the spans of one sequence of BIO or BIOES labels.

    Examples
    --------
    >>> entity_spans(["B-PER", "I-PER", "O", "B-LOC", "B-LOC"])
    [Span(kind='PER', start=0, end=2), Span(kind='LOC', start=3, end=4), Span(kind='LOC', start=4, end=5)]
    """
    found = []
    kind, start, running = "", 0, False
    t = -1
    for t, label in enumerate(labels):
        letter, _, own = str(label).partition("-")
        inside = letter in ("I", "E") and running and own == kind
        if running and not inside:
            found.append(Span(kind, start, t))
        if inside:
            running = letter == "I"
        else:
            running = letter in ("B", "I", "E", "S")
            kind, start = own, t
            if letter in ("E", "S"):
                running = False
        if letter in ("E", "S"):
            found.append(Span(kind, start, t + 1))
    if running:
        found.append(Span(kind, start, t + 1))
    return found


def entity_scores(true: Sequence[Iterable[Any]], found: Sequence[Iterable[Any]]) -> EntityScores:
    """Return precision, recall and F1 of the entities of sequences with BIO or BIOES labels.

    Parameters
    ----------
    true, found
        One sequence of labels each; `B-PER`, `I-PER` (and `E-PER`, `S-PER`) are parts of an entity of kind PER, others
        such as `O` of none.

    Examples
    --------
    >>> found = entity_scores([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "O"]])
    >>> found.micro
    SpanScore(precision=1.0, recall=0.5, f1=0.6666666666666666, support=2)
    """
    if len(true) != len(found):
        raise InvalidArgument(
            f"there are {len(true)} sequences of true labels and {len(found)} of found ones"
        )
    counts: dict[str, list[int]] = {}
    for i, (one, other) in enumerate(zip(true, found, strict=True)):
        left, right = list(one), list(other)
        if len(left) != len(right):
            raise InvalidArgument(f"sequence {i} has {len(left)} true labels and {len(right)} found ones")
        spans, guesses = set(entity_spans(left)), set(entity_spans(right))
        for which, entities in enumerate((spans & guesses, guesses, spans)):
            for span in entities:
                counts.setdefault(span.kind, [0, 0, 0])[which] += 1
    by_kind = {kind: _score(*counts[kind]) for kind in sorted(counts)}
    totals = np.array(list(counts.values()) or [[0, 0, 0]]).sum(axis=0).tolist()
    means = np.array([s[:3] for s in by_kind.values()] or [(0.0, 0.0, 0.0)]).mean(axis=0)
    macro = SpanScore(float(means[0]), float(means[1]), float(means[2]), totals[2])
    return EntityScores(_score(*totals), macro, by_kind)


def _score(right: int, found: int, true: int) -> SpanScore:
    precision, recall = right / found if found else 0.0, right / true if true else 0.0
    both = precision + recall
    return SpanScore(precision, recall, 2 * precision * recall / both if both else 0.0, true)
