"""Every error markovia raises on bad input: one sentence that says what is wrong, where, and the cure.

All of them are `MarkoviaError`; each is also the built-in exception a Python user would expect
(`KeyError` for an unknown name, `ValueError` for a bad value, `TypeError` for a wrong keyword).
"""

import sys
import warnings
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any


class MarkoviaError(Exception):
    """Base class of all errors that markovia raises on purpose."""

    def __str__(self) -> str:
        """Show the plain sentence (`KeyError` would show its repr)."""
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the finished message and attributes: a subclass's own arguments are not in `args`."""
        return (_restored, (type(self), self.args, dict(self.__dict__)))


class UnknownVariable(MarkoviaError, KeyError):
    """A name that the model or graph does not have."""

    def __init__(self, name: object, known: Iterable[object] = (), where: str = "the model") -> None:
        known = list(known)
        super().__init__(f"unknown variable {name!r} in {where}{did_you_mean(name, known)}")
        self.name = name


class UnknownState(MarkoviaError, ValueError):
    """A state that a variable does not have."""

    def __init__(self, variable: str, state: object, states: Sequence[object]) -> None:
        shown = ", ".join(repr(s) for s in states[:12]) + (", ..." if len(states) > 12 else "")
        super().__init__(
            f"unknown state {state!r} for {variable!r}; its states are {shown}{did_you_mean(state, states)}"
        )
        self.variable = variable
        self.state = state


class DuplicateName(MarkoviaError, ValueError):
    """A name that is already taken."""


class InvalidTable(MarkoviaError, ValueError):
    """Numbers that are not a table of the announced shape, or not a probability table."""


class InvalidGraph(MarkoviaError, ValueError):
    """A graph that is not what the operation needs."""


class CycleError(InvalidGraph):
    """Directed edges that close a cycle; `cycle` lists its nodes, the first one repeated at the end."""

    def __init__(self, cycle: Sequence[str]) -> None:
        super().__init__("the edges form a directed cycle: " + " -> ".join(str(n) for n in cycle))
        self.cycle = tuple(cycle)


class IncompleteModel(MarkoviaError, ValueError):
    """A question about numbers asked of a model that has only a structure."""


class InvalidArgument(MarkoviaError, ValueError):
    """A value that a function cannot work with."""


class UnknownArgument(MarkoviaError, TypeError):
    """A keyword that a function does not have, with the one that was probably meant."""


class InvalidEvidence(MarkoviaError, ValueError):
    """Evidence that is not a state, a likelihood for every state, or `Not(...)`."""


class ImpossibleEvidence(MarkoviaError, ValueError):
    """Evidence of probability zero; `evidence` is a minimal subset that is already impossible, `row` whose it is."""

    def __init__(self, evidence: dict[str, object], row: object = None) -> None:
        shown = ", ".join(f"{k}={v!r}" for k, v in evidence.items())
        what = "the evidence" if row is None else f"the evidence of row {row!r}"
        cure = "" if row is None else "; impossible='nan' or 'prior' answers the other rows"
        super().__init__(
            f"{what} has probability zero; already these together are impossible: {shown}{cure}"
            if evidence
            else "the model gives every configuration weight zero"
        )
        self.evidence = dict(evidence)
        self.row = row

    @classmethod
    def because(
        cls, message: str, evidence: dict[str, object] | None = None, row: object = None
    ) -> "ImpossibleEvidence":
        """Return the error with a sentence of its own."""
        error = cls(evidence or {}, row)
        error.args = (message,)
        return error


class TooLarge(MarkoviaError, MemoryError):
    """An exact computation whose estimated size is over the budget; raised before anything is allocated.

    `bytes` and `operations` are the estimate, None where it was not made.
    """

    def __init__(
        self,
        message: str = "",
        *,
        bytes: float | None = None,  # noqa: A002
        operations: float | None = None,
    ) -> None:
        super().__init__(message)
        self.bytes = bytes
        self.operations = operations


class UnknownEngine(MarkoviaError, ValueError):
    """An inference engine that is not registered."""


class Unanswered(MarkoviaError, ValueError):
    """A question that the chosen engine cannot answer, with an engine that can."""


class ConvergenceWarning(UserWarning):
    """An approximate answer that did not reach its tolerance, with what to try."""


class ApproximateWarning(UserWarning):
    """A number or rows that are approximate because no exact engine fits; only answers without an `info` need it."""


class DeviceWarning(UserWarning):
    """There is no GPU, or it failed, and the processor answers in its place; said once a process."""


class IgnoredColumnWarning(UserWarning):
    """Columns of the data that are no variables of the model, and are not looked at."""


class OutsideVocabularyWarning(UserWarning):
    """Words of documents that a model of topics does not know, and that tell it nothing."""


class AccidentalShapeWarning(UserWarning):
    """A parent on another plate that broadcasts only because two plates happen to be equally long."""


class NotIdentifiable(MarkoviaError, ValueError):
    """A causal effect that the graph and the observed distribution do not determine.

    `hedge` holds two nested sets of names (C-forests, the larger first) that prove it, or None where the failure is of
    another kind.
    """

    def __init__(self, message: str, hedge: tuple[frozenset[str], frozenset[str]] | None = None) -> None:
        super().__init__(message)
        self.hedge = hedge


class NoOverlap(MarkoviaError, ValueError):
    """A treatment that never occurs where it would have to, so that its effect there cannot be known."""


class UnknownFormat(MarkoviaError, ValueError):
    """A file whose suffix or `format=` names no supported format."""


class UnsupportedModel(MarkoviaError, ValueError):
    """A model that a file format or another library cannot express."""


class ParseError(MarkoviaError, ValueError):
    """A malformed file: where (file, line, column, both from 1) and what was expected there."""

    def __init__(
        self, message: str, *, file: str | Path | None = None, line: int = 1, column: int = 1
    ) -> None:
        super().__init__(f"{file if file is not None else '<string>'}:{line}:{column}: {message}")
        self.file = None if file is None else str(file)
        self.line = line
        self.column = column
        self.expected = message


def _restored(kind: type[MarkoviaError], args: tuple[Any, ...], attributes: dict[str, Any]) -> MarkoviaError:
    error = Exception.__new__(
        kind, *args
    )  # sets `args`; the class's own __init__ would write the message anew
    error.__dict__.update(attributes)
    return error


def did_you_mean(wrong: object, known: Iterable[object]) -> str:
    """Return ` (did you mean 'x'?)` for the nearest known name, or the empty string.

    Examples
    --------
    >>> did_you_mean("Yes", ["no", "yes"])
    " (did you mean 'yes'?)"
    """
    folded: dict[str, object] = {}
    for candidate in known:
        folded.setdefault(str(candidate).casefold(), candidate)
    near = get_close_matches(str(wrong).casefold(), folded, n=1, cutoff=0.6)
    return f" (did you mean {folded[near[0]]!r}?)" if near else ""


def check_known(names: Iterable[object], known: Collection[Any], where: str = "the model") -> None:
    """Raise at the first name that is not among those known.

    Examples
    --------
    >>> check_known(["rain", "wer"], ["rain", "wet"], "the graph")
    Traceback (most recent call last):
        ...
    markovia.errors.UnknownVariable: unknown variable 'wer' in the graph (did you mean 'wet'?)
    """
    for name in names:
        if name not in known:
            raise UnknownVariable(name, known, where)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the line outside this package that led here."""
    warnings.warn(message, category, stacklevel=outside())


def outside() -> int:
    """Return the stack level of the caller outside this package, as seen from the function that warns."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "markovia":
        frame, level = frame.f_back, level + 1
    return level


def __dir__() -> list[str]:
    """List what is defined here, without what it is made of."""
    return sorted(n for n, v in globals().items() if n[0] != "_" and getattr(v, "__module__", "") == __name__)
