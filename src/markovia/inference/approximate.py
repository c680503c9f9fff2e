"""What approximate engines share: which questions they answer, and how an answer says how good it is.

An approximate engine is a frozen dataclass that derives from `Approximate`, names in `answers` the questions it can answer,
and implements those. The others then fail with a sentence that names an engine that would do.

An answer carries a `Record` of how it was obtained, which the model makes the `Info` of its answer and warns by: whether it
converged, the error, whether it happens to be exact (such as message passing on a tree), advice, bounds.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import ClassVar

import numpy as np

from markovia.errors import TooLarge, Unanswered
from markovia.factors.tables.evidence import read_finding
from markovia.factors.tables.factor import Factor
from markovia.inference.engine import ASKED_FOR, QUESTIONS, TABLES, instead
from markovia.inference.problem import Problem
from markovia.inference.result import Draws, LogMass, Ranked, Tables
from markovia.runtime.checks import check_options

MAX_CASES = 20_000


class Approximate:
    """Base of approximate engines: questions outside `answers` are refused by name."""

    name: ClassVar[str]
    exact: ClassVar[bool] = False
    answers: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check_options(self)

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together, by conditioning on one after the other."""
        if "marginals" not in self.answers:
            raise self._refusal("joint" if len(targets) > 1 else "marginals")
        return joint_by_conditioning(self, problem, targets)

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target."""
        raise self._refusal("marginals")

    def log_mass(self, problem: Problem) -> LogMass:
        """Return an estimate of the log of the total weight that agrees with the findings: that of marginals of nothing."""
        if "log_mass" not in self.answers:
            raise self._refusal("log_mass")
        found = self.marginals(problem, ())
        return LogMass(found.log_mass, found.record)

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the best assignment that was found."""
        raise self._refusal("best")

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n configurations of the free variables given the findings, as state codes."""
        raise self._refusal("sample")

    def _refusal(self, question: str) -> Unanswered:
        return Unanswered(
            f"engine {self.name!r} does not give {ASKED_FOR[question]}; {instead(TABLES, question)}"
        )

    def _refuse_parts(self, problem: Problem, targets: Sequence[str], m: int = 1) -> None:
        """Refuse marginal MAP and lists of best assignments, for engines that maximise over everything."""
        if len(targets) < len(problem.free):
            raise Unanswered(
                f"engine {self.name!r} maximises over all variables together; for targets=[...] "
                f"{instead(TABLES, 'best of some')}"
            )
        if m > 1:
            raise Unanswered(
                f"engine {self.name!r} finds one assignment, not the m={m} best; {instead(TABLES, 'several best')}"
            )


def can_answer(engine: object, question: str) -> bool:
    """Say whether an engine answers a kind of question; exact engines answer all."""
    return question in getattr(engine, "answers", QUESTIONS)


def joint_by_conditioning(engine: Approximate, problem: Problem, targets: Sequence[str]) -> Tables:
    """Return a joint table as P(a) P(b | a) P(c | a, b) ..., each from the engine's marginals.

    The engine runs once for every configuration of all targets but the last that has any weight; the runs share its time
    limit.
    """
    variables = tuple(problem.variables[n] for n in targets)
    if not targets:
        found = engine.marginals(problem, problem.free[:1])
        return Tables([Factor.scalar(1.0)], found.log_mass, found.record)
    if len(targets) == 1:
        return engine.marginals(problem, targets)
    cases = int(np.prod([len(v) for v in variables[:-1]]))
    if cases > MAX_CASES:
        raise TooLarge(
            f"engine {engine.name!r} would run {cases:,} times for the joint of {len(targets)} variables "
            f"(at most {MAX_CASES:,}); ask for fewer, or use engine='gibbs'"
        )
    limit = getattr(engine, "time_limit", None)
    if limit is not None:
        runs = sum(prod(len(v) for v in variables[:k]) for k in range(len(targets)))
        engine = replace(engine, time_limit=limit / runs)  # type: ignore[type-var]
    first = engine.marginals(problem, targets[:1])
    if first.log_mass == -np.inf:
        return first
    values = np.zeros(tuple(len(v) for v in variables))
    record = first.record

    def fill(conditioned: Problem, depth: int, prefix: tuple[int, ...], weight: float, row: Factor) -> None:
        nonlocal record
        for code, p in enumerate(row.values.tolist()):
            if p <= 0:
                continue
            if depth == len(targets) - 1:
                values[(*prefix, code)] = weight * p
                continue
            variable = variables[depth]
            finding = read_finding(variable, variable.states[code])
            inner = conditioned.with_findings({**conditioned.findings, variable.name: finding})
            answer = engine.marginals(inner, [targets[depth + 1]])
            if answer.log_mass == -np.inf:  # messages gave weight to a state that cannot be
                continue
            record = replace(
                record,
                converged=record.converged and answer.record.converged,
                error=max(record.error, answer.record.error),
                exact=bool(record.exact and answer.record.exact),
            )
            fill(inner, depth + 1, (*prefix, code), weight * p, answer.tables[0])

    fill(problem, 0, (), 1.0, first.tables[0])
    if not values.any():
        return Tables([], -np.inf, record)
    return Tables([Factor.of(variables, values / values.sum())], first.log_mass, record)
