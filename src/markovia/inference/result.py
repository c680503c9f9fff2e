"""What an engine gives back: tables or assignments, and how they were obtained."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isnan
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from markovia.errors import ConvergenceWarning, warn_user
from markovia.factors.tables.evidence import Not
from markovia.factors.tables.factor import Factor
from markovia.runtime import ports
from markovia.runtime.array_types import Ints
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Course(NamedTuple):
    """How a computation settled: numbers after some steps, what they are, and whether they fall towards zero."""

    steps: tuple[int, ...]
    values: tuple[float, ...]
    label: str
    step: str = "pass"
    falls: bool = False


@dataclass(frozen=True)
class Record:
    """How an engine came to an answer.

    Attributes
    ----------
    engine
        Who answered, where that is not the engine that was asked.
    exact
        Whether this answer is exact up to rounding; None where the engine always is, or never.
    converged, iterations, error
        As `Info` describes them; the error is in probability, or in nats for a log mass.
    advice
        One sentence on what to try, for an answer that did not converge.
    bound
        For best assignments, an upper bound on the log weight of any assignment (infinite if there is none); None where the
        first one is proved to be best.
    mass_bound
        Where the log mass is a bound: "lower" or "upper".
    tried
        The engines that were tried, in order, where no exact one fitted.
    diagnostics
        For Markov chains, a `Diagnostics`.
    details
        What else the engine has to say: a small frozen dataclass of its own.
    note
        Why it was computed like this, in one sentence.
    """

    engine: str | None = None
    exact: bool | None = None
    converged: bool = True
    iterations: int = 0
    error: float = 0.0
    advice: str = ""
    bound: float | None = None
    mass_bound: Literal["lower", "upper"] | None = None
    tried: tuple[str, ...] = ()
    diagnostics: Any = None
    details: Any = None
    note: str = ""


@dataclass(frozen=True)
class Info(InNotebooks):
    """The provenance of an answer.

    Attributes
    ----------
    engine
        The engine that answered (never "auto").
    exact
        Whether the answer is exact up to rounding: said only by exact engines and closed forms, never by draws.
    converged
        Whether an iterative engine reached its tolerance; always true for exact engines.
    iterations, error
        Iterations made and the engine's own error estimate; zero for exact engines.
    log_evidence
        log of the probability of the evidence (for undirected models relative to the whole mass, where known).
    seconds
        Wall-clock time, without what compiling took.
    compile_seconds
        Wall-clock time that compiling (or loading) code took: paid once for a model and shapes of data.
    tried
        What "auto" tried, in order, where no exact engine fitted.
    advice
        What to try where the answer did not converge.
    mass_bound
        Where `log_evidence` is a bound: "lower" or "upper".
    diagnostics
        What the Markov chains say of themselves (a `Diagnostics`); None for other engines.
    details
        What else the engine has to say, as attributes: `info.details.width`, `.largest_table`, ...; None for nothing.
    note
        Why it was computed like this, in one sentence; empty where there is nothing to say.
    given
        The evidence by name: a state, or likelihoods, `Not(...)` or `Jeffrey(...)` as they were given.
    """

    engine: str
    exact: bool = False
    converged: bool = True
    iterations: int = 0
    error: float = 0.0
    log_evidence: float | None = None
    seconds: float = 0.0
    tried: tuple[str, ...] = ()
    advice: str = ""
    mass_bound: Literal["lower", "upper"] | None = None
    diagnostics: Any = None
    details: Any = None
    given: Mapping[str, Any] = field(default_factory=dict, hash=False)
    note: str = ""
    compile_seconds: float = 0.0

    def evidence(self, width: int = 60) -> str:
        """Return the evidence in about `width` letters; what does not fit is only counted.

        Examples
        --------
        >>> Info("auto", given={"smoke": "yes", "xray": Not("no"), "dysp": [0.2, 0.9]}).evidence()
        'smoke=yes, xray≠no, soft dysp'
        >>> Info("auto", given={"smoke": "yes", "xray": "no", "dysp": "no"}).evidence(12)
        'smoke=yes, … 2 more'
        """
        words: list[str] = []
        for name, said in self.given.items():
            word = _said(name, said)
            if words and len(", ".join([*words, word])) > width:
                break
            words.append(word if len(word) <= width else word[: width - 1] + "…")
        left_out = len(self.given) - len(words)
        return ", ".join(words + [f"… {left_out:,} more"] * (left_out > 0))

    @property
    def course(self) -> Course | None:
        """How the engine settled; None for those that leave no trace."""
        return getattr(self.details, "course", None)

    def plot_convergence(
        self, *, label: str | None = None, ax: "Axes | None" = None, title: str | None = None
    ) -> "Axes":
        """Draw how the engine settled: its bound, or how far messages still moved; see `plotting.plot_convergence`."""
        return ports.draw("plot-convergence", self, label=label, ax=ax, title=title)

    def __str__(self) -> str:
        parts = [self.engine, "exact" if self.exact else "approximate"]
        if not self.converged:
            parts.append("NOT CONVERGED")
        if self.error:
            parts.append(f"error {self.error:.2g}")
        took = f"{self.seconds:.3g} s" if self.seconds >= 1.0 else f"{self.seconds * 1e3:.3g} ms"
        if self.compile_seconds >= 1.0:
            took += f" after {self.compile_seconds:.3g} s of compiling"
        return f"{', '.join(parts)}, {took}{f'; {self.note}' if self.note else ''}"


def _said(name: str, said: Any) -> str:
    if isinstance(said, Not):
        return f"{name}≠{'|'.join(map(str, said.states))}"
    if isinstance(said, Real) and not isinstance(said, int):
        return f"{name}={float(said):.4g}"
    return f"{name}={said}" if isinstance(said, str | int | bool) else f"soft {name}"


def warn_unconverged(info: Info | Record) -> None:
    """Warn that an answer did not reach its tolerance, and say what to try."""
    advice = info.advice or "more iterations, or another engine, may do"
    error = f"error {info.error:.2g} " if info.error else ""  # a search has none
    warn_user(
        f"{info.engine} did not converge ({error}after {info.iterations:,} iterations); {advice}",
        ConvergenceWarning,
    )


def provenance(
    record: Record,
    *,
    engine: str,
    exact: bool,
    log_evidence: float,
    seconds: float,
    given: Mapping[str, Any],
    compile_seconds: float = 0.0,
) -> Info:
    """Return the provenance of an answer from the engine's own record; warns where the answer did not converge.

    Parameters
    ----------
    record
        What the engine says of this answer.
    engine, exact
        Who was asked, and whether it is exact in general; the record has the last word.
    log_evidence
        NaN where it is not known.
    seconds, given, compile_seconds
        As in `Info`.
    """
    info = object.__new__(Info)
    # one step in place of one a field, which the constructor of a frozen dataclass takes: a small answer would feel it
    info.__dict__.update(
        engine=record.engine or engine,
        exact=exact if record.exact is None else record.exact,
        converged=record.converged,
        iterations=record.iterations,
        error=float(record.error),
        log_evidence=None if isnan(log_evidence) else float(log_evidence),
        seconds=seconds,
        compile_seconds=compile_seconds,
        tried=record.tried,
        advice=record.advice,
        mass_bound=record.mass_bound,
        diagnostics=record.diagnostics,
        details=record.details,
        given=given,
        note=record.note,
    )
    if not info.converged:
        warn_unconverged(info)
    return info


NOTHING_TO_SAY = Record()
"""The record of an answer that says nothing of itself: exact from an exact engine."""


@dataclass(frozen=True)
class Tables:
    """Normalised tables by target, the log mass that agrees with the evidence, and how they were obtained."""

    tables: list[Factor]
    log_mass: float
    record: Record = NOTHING_TO_SAY


@dataclass(frozen=True)
class Assignment:
    """State codes of the targets and the log weight of the best completion."""

    codes: Mapping[str, int]
    log_weight: float


class Ranked(list[Assignment]):
    """Assignments, best first, and how they were found."""

    def __init__(self, found: Iterable[Assignment] = (), record: Record = NOTHING_TO_SAY) -> None:
        super().__init__(found)
        self.record = record


class LogMass(float):
    """The log of the weight that agrees with the evidence: a number that says how it was obtained."""

    record: Record

    def __new__(cls, value: float, record: Record = NOTHING_TO_SAY) -> "LogMass":
        """Make the number and keep the record with it."""
        made = super().__new__(cls, value)
        made.record = record
        return made


class Draws(dict[str, Ints]):
    """State codes of the drawn rows by variable, and how they were drawn."""

    def __init__(self, columns: Mapping[str, Ints], record: Record = NOTHING_TO_SAY) -> None:
        super().__init__(columns)
        self.record = record
