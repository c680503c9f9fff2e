"""What an engine gives back: tables or assignments, and how they were obtained."""

import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from markovia.errors import ConvergenceWarning
from markovia.factors.tables.factor import Factor


@dataclass(frozen=True)
class Info:
    """The provenance of an answer.

    Attributes
    ----------
    engine
        The engine that answered (never "auto").
    exact
        Whether the answer is exact up to rounding.
    converged
        Whether an iterative engine reached its tolerance; always true for exact engines.
    iterations, error
        Iterations made and the engine's own error estimate; zero for exact engines.
    log_evidence
        log of the probability of the evidence (for undirected models relative to the whole mass, where known).
    seconds
        Wall-clock time.
    details
        What else the engine has to say: width, entries of the largest table, ...
    """

    engine: str
    exact: bool = True
    converged: bool = True
    iterations: int = 0
    error: float = 0.0
    log_evidence: float | None = None
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def diagnostics(self) -> Any:
        """What the Markov chains say of themselves (a `Diagnostics`); None for other engines."""
        return self.details.get("diagnostics")

    def __str__(self) -> str:
        parts = [self.engine, "exact" if self.exact else "approximate"]
        if not self.converged:
            parts.append("NOT CONVERGED")
        if self.error:
            parts.append(f"error {self.error:.2g}")
        took = f"{self.seconds:.3g} s" if self.seconds >= 1.0 else f"{self.seconds * 1e3:.3g} ms"
        return f"{', '.join(parts)}, {took}"


def warn_unconverged(info: Info) -> None:
    """Warn that an answer did not reach its tolerance, and say what to try."""
    advice = info.details.get("advice", "more iterations, or another engine, may do")
    error = f"error {info.error:.2g} " if info.error else ""  # a search has none
    warnings.warn(
        f"{info.engine} did not converge ({error}after {info.iterations:,} iterations); {advice}",
        ConvergenceWarning,
        stacklevel=outside(),
    )


def outside() -> int:
    """Return the stack level of the caller outside this package, as seen from the function that warns."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "markovia":
        frame, level = frame.f_back, level + 1
    return level


@dataclass(frozen=True)
class Tables:
    """Normalised tables by target, the log mass that agrees with the evidence, engine details, and who answered."""

    tables: list[Factor]
    log_mass: float
    details: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None


@dataclass(frozen=True)
class Assignment:
    """State codes of the targets and the log weight of the best completion."""

    codes: Mapping[str, int]
    log_weight: float


class Ranked(list[Assignment]):
    """Assignments, best first, with the engine's details."""

    def __init__(self, details: Mapping[str, Any], found: Iterable[Assignment] = ()) -> None:
        super().__init__(found)
        self.details = details
