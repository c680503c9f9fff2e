"""Approximate marginal MAP: search over the states of the targets, sums over the others by an engine.

Method: the weight of an assignment of the targets is the mass of the problem with the targets observed. For one target at
a time the masses of all its states come from one question: its posterior and the mass given all other targets. The search
starts from the best states of the targets' marginals and from their part of the most probable configuration, climbs by
single changes, and goes on from the local maximum by tabu moves; masses are remembered. With the junction tree as inner
engine only what a change of one finding touches is computed again. References: Park and Darwiche (2004), "Complexity results
and approximation strategies for MAP explanations".
Cost: one inner question for each target and move.
Use it for targets=[...] where the constrained elimination of `VariableElimination` is too wide.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from markovia.errors import ImpossibleEvidence, InvalidArgument, TooLarge, Unanswered
from markovia.factors.tables.evidence import read_finding
from markovia.inference.approximate import Approximate, can_answer
from markovia.inference.engine import Engine, get_engine
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Ranked, Record
from markovia.runtime.array_types import Array
from markovia.runtime.checks import AnySeed, Count, FromZero, TimeLimit
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import generator

Codes = tuple[int, ...]


@dataclass(frozen=True)
class MarginalMapDetails:
    """Questions to the inner engine, moves, starts after the first, when each improvement came, and who summed."""

    evaluations: int
    moves: int
    restarts: int
    trace: tuple[tuple[float, float], ...]
    inner: str


@dataclass(frozen=True)
class MarginalMapSearch(Approximate):
    """Assignments of some variables of large probability, all others summed out.

    Parameters
    ----------
    engine
        Who sums: a name or an engine that gives log partition functions; the junction tree by default.
    search
        "tabu" goes on from local maxima, "hill-climbing" starts again from a random change of half of the targets.
    max_evaluations
        Questions to the inner engine at most.
    restarts
        New starts after the first two.
    tenure
        Moves for which a target that was changed keeps its state, in tabu search.
    seed, time_limit
        Seed of the random numbers, and seconds.

    Examples
    --------
    >>> import markovia as mk
    >>> asia = mk.examples.asia()
    >>> engine = mk.engines.MarginalMapSearch(seed=0)
    >>> best = asia.map(given={"xray": "yes"}, targets=["lung", "smoke"], engine=engine)
    >>> best.to_dict()
    {'lung': 'yes', 'smoke': 'yes'}
    """

    engine: str | Engine = "junction-tree"
    search: Literal["tabu", "hill-climbing"] = "tabu"
    max_evaluations: Count = 5_000
    restarts: FromZero = 3
    tenure: Count = 3
    seed: AnySeed = None
    time_limit: TimeLimit = None

    name: ClassVar[str] = "marginal-map"
    answers: ClassVar[frozenset[str]] = frozenset({"best"})

    def __post_init__(self) -> None:
        super().__post_init__()
        inner = get_engine(self.engine)
        if not can_answer(inner, "log_mass"):
            raise InvalidArgument(
                f"engine= needs log partition functions, which {inner.name!r} does not give"
            )

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the best assignments of the targets that were met."""
        if not targets:
            mass = get_engine(self.engine).log_mass(problem)
            return Ranked([Assignment({}, mass)] if mass > -np.inf else [])
        run = _LocalSearchRun(self, problem, list(targets))
        with run.clock:
            finished = run.go()
        ranked = sorted(run.known.items(), key=lambda item: (-item[1], item[0]))[:m]
        record = Record(
            converged=finished,
            iterations=run.moves,
            bound=np.inf,
            advice="give it more time or more evaluations",
            details=MarginalMapDetails(
                run.evaluations, run.moves, run.restarts, tuple(run.trace), run.inner.name
            ),
        )
        found = [Assignment(dict(zip(targets, codes, strict=True)), w) for codes, w in ranked if w > -np.inf]
        return Ranked(found, record)


class _LocalSearchRun:
    """One search: the masses met so far and how many questions they took."""

    def __init__(self, settings: MarginalMapSearch, problem: Problem, targets: list[str]) -> None:
        self.settings, self.problem, self.targets = settings, problem, targets
        self.inner = get_engine(settings.engine)
        self.by_row = can_answer(self.inner, "marginals")
        self.rng = generator(settings.seed)
        self.cards = [len(problem.variables[t]) for t in targets]
        self.known: dict[Codes, float] = {}
        self.best = -np.inf
        self.evaluations, self.moves, self.restarts = 0, 0, 0
        self.trace: list[tuple[float, float]] = []
        self.clock = Clock(settings.time_limit, progress=False)

    @property
    def over(self) -> bool:
        return self.clock.over() or self.evaluations >= self.settings.max_evaluations

    def go(self) -> bool:
        """Search; return whether at least one local maximum was reached."""
        finished = False
        for number in range(2 + self.settings.restarts):
            start = (
                self._from_marginals()
                if number == 0
                else self._from_best()
                if number == 1
                else self._kicked()
            )
            if start is None:
                continue
            self.restarts = number
            codes = self._climb(start)
            finished |= codes is not None
            if codes is not None and self.settings.search == "tabu":
                self._tabu(codes)
            if self.over:
                break
        return finished

    def row(self, codes: Codes, t: int) -> Array:
        """Return the log mass for each state of one target, the others as they are."""
        all_codes = [(*codes[:t], s, *codes[t + 1 :]) for s in range(self.cards[t])]
        if not all(c in self.known for c in all_codes):
            self._ask(all_codes, codes, t)
        return np.array([self.known[c] for c in all_codes])

    def _ask(self, all_codes: list[Codes], codes: Codes, t: int) -> None:
        masses = None
        if self.by_row:
            rest = self._with({i: c for i, c in enumerate(codes) if i != t})
            self.evaluations += 1
            found = self.inner.marginals(rest, [self.targets[t]])
            if found.log_mass == -np.inf:
                masses = [-np.inf] * len(all_codes)
            elif not np.isnan(found.log_mass):
                with np.errstate(divide="ignore"):
                    masses = (np.log(found.tables[0].values) + found.log_mass).tolist()
        if masses is None:
            masses = [self.inner.log_mass(self._with(dict(enumerate(c)))) for c in all_codes]
            self.evaluations += len(all_codes)
        self.known.update(zip(all_codes, masses, strict=True))
        if max(masses) > self.best:
            self.best = max(masses)
            self.trace.append((self.clock.seconds, self.best))

    def _with(self, fixed: dict[int, int]) -> Problem:
        """Return the problem with some targets observed; a target's own soft finding stays as a factor of weight."""
        findings = dict(self.problem.findings)
        pieces = list(self.problem.pieces)
        for i, code in fixed.items():
            variable = self.problem.variables[self.targets[i]]
            soft = findings.get(variable.name)
            if soft is not None:
                pieces.append(soft.factor())
            findings[variable.name] = read_finding(variable, variable.states[code])
        if len(pieces) == len(self.problem.pieces):
            return self.problem.with_findings(findings)
        return Problem(self.problem.variables, pieces, findings)

    def _from_marginals(self) -> Codes | None:
        if not can_answer(self.inner, "marginals"):
            return tuple([int(self.rng.integers(c)) for c in self.cards])
        found = self.inner.marginals(self.problem, self.targets)
        self.evaluations += 1
        if found.log_mass == -np.inf:
            return None
        return tuple([int(np.argmax(t.values)) for t in found.tables])

    def _from_best(self) -> Codes | None:
        if not can_answer(self.inner, "best"):
            return None
        try:
            found = self.inner.best(self.problem, self.problem.free, 1)
        except (TooLarge, Unanswered, ImpossibleEvidence):
            return None
        return tuple([found[0].codes[t] for t in self.targets]) if found else None

    def _kicked(self) -> Codes:
        """Return the best assignment so far with about half of the targets changed at random."""
        if not self.known:
            return tuple([int(self.rng.integers(c)) for c in self.cards])
        top = max(self.known.items(), key=lambda item: (item[1], item[0]))[0]
        return tuple(
            [
                int(self.rng.integers(n)) if self.rng.random() < 0.5 else c
                for c, n in zip(top, self.cards, strict=True)
            ]
        )

    def _climb(self, codes: Codes) -> Codes | None:
        """Change one target after the other to its best state until none helps; None if the time was over before."""
        quiet, t = 0, 0
        while quiet < len(self.targets):
            if self.over and self.known:
                return None
            row = self.row(codes, t)
            new = int(np.argmax(row))
            if row[new] > row[codes[t]] + 1e-12:
                codes = (*codes[:t], new, *codes[t + 1 :])
                self.moves += 1
                quiet = 0
            else:
                quiet += 1
            t = (t + 1) % len(self.targets)
        return codes

    def _tabu(self, codes: Codes) -> None:
        """Make the best change of a target that was not changed lately, again and again."""
        free_at = [0] * len(self.targets)
        patience = 2 * len(self.targets) + 5
        tenure = min(self.settings.tenure, len(self.targets) - 1)
        quiet, step, best = 0, 0, self.best
        while quiet < patience and not self.over:
            step += 1
            choice: tuple[float, int, int] | None = None
            for t in range(len(self.targets)):
                row = self.row(codes, t)
                row[codes[t]] = -np.inf
                s = int(np.argmax(row))
                allowed = free_at[t] <= step or row[s] > best
                if self.cards[t] > 1 and allowed and (choice is None or row[s] > choice[0]):
                    choice = (float(row[s]), t, s)
                if self.over:
                    return
            if choice is None:
                return
            _, t, s = choice
            codes = (*codes[:t], s, *codes[t + 1 :])
            free_at[t] = step + 1 + tenure
            self.moves += 1
            quiet = 0 if self.best > best else quiet + 1
            best = self.best
