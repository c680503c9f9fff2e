"""What "auto" does where no exact engine fits: approximate engines in turn, inside a time budget.

Marginals: loopy belief propagation; if it does not converge, again with damping, then with the residual schedule. Where a
time limit was given, or nothing has converged yet, join-graph propagation then grows its clusters as long as there is
time. If nothing converged, Gibbs sampling takes the rest of the time: a first run says how many draws fit into it. Where a
table is too large for all of these (a noisy-or of hundreds of parents), likelihood weighting is last. The answer of the
last stage that converged is returned (join-graph propagation also if it nearly did); if there is none, that of the join
graph, or else of the last stage. `record.tried` lists all stages.

Log partition function: the same message passing (Bethe or region free energy), then annealed importance sampling, or
likelihood weighting where tables are too large.

Most probable states: a graph cut where one is exact; otherwise a dual bound (dual decomposition) and local search
share the time, and the answer carries value, bound and gap. Marginal MAP is a search whose masses come from the junction
tree, or from loopy belief propagation where that is too wide. Draws come from Gibbs sampling, or from likelihood weighting.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from markovia.errors import ImpossibleEvidence, MarkoviaError, TooLarge, Unanswered, UnsupportedModel
from markovia.inference.engine import Engine, get_engine
from markovia.inference.exact.hopeless_width import hopeless
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.flat_graphs.possibility import plausible_mass
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Draws, LogMass, Ranked, Record, Tables
from markovia.runtime.clock import Clock, now

DEFAULT_SECONDS = 20.0
"""How long approximate engines may take where no limit was given."""
PROVED = 1e-9
NEARLY = 0.01
"""The last change of a probability in join-graph propagation below which it beats loopy propagation that converged."""
GROWING_SECONDS = 2e-3
"""What a join graph takes a variable before its messages run, about; with less time it is not begun."""
LAST_RESORT = 0.1
"""Share of the time that sampling gets even if the others have used up all of it."""
MOST_DRAWS = 1_000_000
"""Draws a chain that Gibbs sampling may be given time for; their record takes some dozen megabytes."""


class SharedTime(Clock):
    """The time that approximate engines share; `patient` where a limit was given, to be used up."""

    def __init__(self, time_limit: float | None, start: float) -> None:
        super().__init__(DEFAULT_SECONDS if time_limit is None else time_limit, progress=False, start=start)
        self.patient = time_limit is not None

    @property
    def left(self) -> float:
        """The seconds that are left, never less than a little."""
        return max(0.05, super().left)

    @property
    def least(self) -> float:
        """The seconds that are left, or the share that the last resort gets in any case."""
        return max(self.left, LAST_RESORT * (self.time_limit or 0.0))

    @property
    def share(self) -> float:
        """The seconds that one run of loopy propagation may take: a fifth, but of a long limit only a little."""
        return min(0.2 * self.left, max(1.0, 0.05 * self.left)) if self.patient else 0.2 * self.left


def settings(name: str, **wanted: Any) -> Engine:
    """Return an engine by name with some of its settings replaced."""
    engine: Any = get_engine(name)
    return replace(engine, **wanted)  # type: ignore[no-any-return]


def passes(clock: SharedTime) -> Iterator[Engine]:
    """Yield message passing in the order in which it is tried."""
    yield settings("loopy-bp", time_limit=clock.share)
    yield settings("loopy-bp", damping=0.5, time_limit=clock.share)
    yield settings("loopy-bp", schedule="residual", damping=0.3, time_limit=clock.share)


def marginals(problem: Problem, targets: Sequence[str], clock: SharedTime, seed: int) -> Tables:
    """Return approximate marginals of the targets."""
    problem = problem.folded()  # these engines need no tables of wide conditionals
    return _staged(problem, clock, seed, lambda engine: engine.marginals(problem, targets))


def joint(problem: Problem, targets: Sequence[str], clock: SharedTime, seed: int) -> Tables:
    """Return an approximate joint table of the targets."""
    problem = problem.folded()  # these engines need no tables of wide conditionals
    return _staged(problem, clock, seed, lambda engine: engine.joint(problem, targets))


def _staged(problem: Problem, clock: SharedTime, seed: int, ask: Callable[[Engine], Tables]) -> Tables:
    tried: list[str] = []
    settled: tuple[str, Tables] | None = None
    last: tuple[str, Tables] | None = None
    closest: tuple[str, Tables] | None = None

    def attempt(engine: Engine, enough: float = -np.inf) -> Tables | None:
        nonlocal settled, last
        try:
            found = ask(engine)
        except ImpossibleEvidence:
            raise
        except MarkoviaError as refused:
            tried.append(f"{engine.name}: {refused}")
            return None
        converged = found.record.converged
        tried.append(f"{_called(engine)}: {'converged' if converged else 'did not converge'}")
        last = (engine.name, found)
        if converged or found.record.error <= enough:
            settled = last
        return found

    for engine in passes(clock):
        attempt(engine)
        if settled is not None or clock.over():
            break
    if GROWING_SECONDS * len(problem.free) < clock.left and (clock.patient or settled is None):
        wider = attempt(
            settings("join-graph", time_limit=(0.9 if clock.patient else 0.3) * clock.left), NEARLY
        )
        closest = None if wider is None else last
    if settled is None and not _gibbs(attempt, clock, seed):
        attempt(settings("likelihood-weighting", time_limit=clock.least, seed=seed))
    chosen = settled or closest or last
    if chosen is None:
        raise Unanswered("no approximate engine could answer: " + "; ".join(tried))
    name, answer = chosen
    said = answer.record
    record = replace(said, exact=bool(said.exact), engine=said.engine or name, tried=tuple(tried))
    return replace(answer, record=record)


def _gibbs(attempt: Callable[[Engine], Tables | None], clock: SharedTime, seed: int) -> bool:
    """Run Gibbs sampling as it is by default, then with as many draws as fit into the time; say whether it could."""
    start = now()
    sampler: Any = settings("gibbs", time_limit=clock.least, seed=seed)
    found = attempt(sampler)
    if found is None or found.record.exact or (found.record.converged and not clock.patient):
        return found is not None
    done, took = int(found.record.details.draws), now() - start
    fits = min(MOST_DRAWS, int(0.8 * done * clock.left / max(took, 1e-3)))
    if not clock.over() and fits >= 2 * done:
        attempt(replace(sampler, draws=fits, time_limit=clock.left))
    return True


def log_mass(problem: Problem, clock: SharedTime, seed: int) -> LogMass:
    """Return a log mass, approximate unless its record says that it is exact."""
    problem = problem.folded()  # these engines need no tables of wide conditionals
    free = problem.free[:1]
    rough = LogMass(np.nan, Record(exact=False, converged=False))
    for engine in passes(clock):
        found = engine.marginals(problem, free)
        if not _plausible(problem, found.log_mass):
            continue
        rough = _mass(found.log_mass, found.record, engine.name) if np.isnan(rough) else rough
        if found.record.converged:
            if clock.patient and GROWING_SECONDS * len(problem.free) < clock.left:
                with suppress(TooLarge):
                    wider = settings("join-graph", time_limit=clock.left).marginals(problem, free)
                    if wider.record.converged:
                        return _mass(wider.log_mass, wider.record, "join-graph")
            return _mass(found.log_mass, found.record, engine.name)
        if clock.over():
            break
    for name in ("annealed-importance", "likelihood-weighting"):
        with suppress(TooLarge, UnsupportedModel):
            mass = settings(name, time_limit=clock.left, seed=seed).log_mass(problem)
            if not np.isnan(mass):
                return _mass(mass, mass.record, name)
    return rough


def _mass(value: float, record: Record, engine: str) -> LogMass:
    return LogMass(value, replace(record, engine=record.engine or engine, exact=bool(record.exact)))


def _plausible(problem: Problem, log_mass: float) -> bool:
    """Say whether a log mass can be that of the problem; free energies of message passing need not be."""
    try:
        return plausible_mass(flat_graph(problem), log_mass)
    except TooLarge:
        return True


def best(problem: Problem, targets: Sequence[str], clock: SharedTime, seed: int) -> Ranked:
    """Return the best assignment found, with an upper bound on any assignment's log weight."""
    if len(targets) < len(problem.free):
        return _marginal_map(problem, targets, clock, seed)
    tried: list[str] = []
    with_cut = _graph_cut(problem, targets, clock)
    if with_cut is not None:
        return with_cut
    dual = settings("dual-decomposition", time_limit=0.35 * clock.left)
    first = dual.best(problem, targets, 1)
    bound = _bound(first)
    tried.append(dual.name)
    if _proved(first, bound):
        return _ranked(first, dual.name, bound, tried)
    search = settings("map-search", time_limit=clock.left, seed=seed, try_exact=False)
    second = search.best(problem, targets, 1)
    tried.append(search.name)
    bound = min(bound, _bound(second))
    if not first or (second and second[0].log_weight >= first[0].log_weight):
        return _ranked(second, search.name, bound, tried)
    return _ranked(first, dual.name, bound, tried)


def sample(problem: Problem, n: int, rng: np.random.Generator) -> Draws:
    """Draw rows by Gibbs sampling, or by likelihood weighting where tables are too large."""
    problem = problem.folded()  # these engines need no tables of wide conditionals
    try:
        rows, name = get_engine("gibbs").sample(problem, n, rng), "gibbs"
    except TooLarge as too_large:
        try:
            name = "likelihood-weighting"
            rows = get_engine(name).sample(problem, n, rng)
        except UnsupportedModel:
            raise too_large from None
    return Draws(rows, replace(rows.record, engine=name, exact=False))


def _marginal_map(problem: Problem, targets: Sequence[str], clock: SharedTime, seed: int) -> Ranked:
    """Search the best states of some variables; masses are exact where a junction tree fits."""
    search: Any = settings("marginal-map", time_limit=clock.left, seed=seed)
    try:
        if hopeless(problem, ()):
            raise TooLarge("the junction tree is out of reach")
        found = search.best(problem, targets, 1)
    except TooLarge:
        inner = settings("loopy-bp", damping=0.3, time_limit=0.2 * clock.left)
        found = replace(search, engine=inner, time_limit=clock.left).best(problem, targets, 1)
    return _ranked(found, search.name, np.inf, [search.name])


def _graph_cut(problem: Problem, targets: Sequence[str], clock: SharedTime) -> Ranked | None:
    limit = clock.left if clock.patient else None
    try:
        found = settings("graph-cut", time_limit=limit).best(problem, targets, 1)
    except MarkoviaError:
        return None
    exact = found.record.converged  # within the limit; otherwise the answer is that of a local search
    bound = (found[0].log_weight if found else -np.inf) if exact else _bound(found)
    return _ranked(found, "graph-cut", bound, ["graph-cut"])


def _proved(found: list[Assignment], bound: float) -> bool:
    return bool(found) and bound < np.inf and bound - found[0].log_weight <= PROVED * max(1.0, abs(bound))


def _bound(found: Ranked) -> float:
    return np.inf if found.record.bound is None else found.record.bound


def _ranked(found: Ranked, engine: str, bound: float, tried: list[str]) -> Ranked:
    exact = _proved(found, bound)
    record = replace(found.record, engine=engine, bound=bound, exact=exact, tried=tuple(tried))
    return Ranked(found, record)


def _called(engine: Any) -> str:
    """Return an engine's name with the settings that differ between stages."""
    said = [f"{k}={getattr(engine, k)}" for k in ("schedule", "damping") if getattr(engine, k, None)]
    return f"{engine.name}({', '.join(said)})" if said else str(engine.name)
