"""What "auto" does where no exact engine fits: approximate engines in turn, inside a time budget.

Marginals: loopy belief propagation; if it does not converge, again with damping, then with the residual schedule. Where a
time limit was given, or nothing has converged yet, join-graph propagation then grows its clusters as long as there is
time. If nothing converged, Gibbs sampling takes the rest of the time. The answer of the last stage that converged is
returned (join-graph propagation also if it nearly did); if there is none, that of the widest message passing.
`details["tried"]` lists all stages.

Log partition function: the same message passing (Bethe or region free energy), then annealed importance sampling.

Most probable states: a graph cut where one is exact; otherwise a dual bound (dual decomposition) and local search
share the time, and the answer carries value, bound and gap. Draws come from Gibbs sampling.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import MarkoviaError, Unanswered
from markovia.inference.engine import Engine, get_engine
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Ranked, Tables

DEFAULT_SECONDS = 20.0
"""How long approximate engines may take where no limit was given."""
PROVED = 1e-9
NEARLY = 0.01
"""The last change of a probability in join-graph propagation below which it beats loopy propagation that converged."""


@dataclass
class Clock:
    """A time budget."""

    end: float
    patient: bool

    @classmethod
    def of(cls, time_limit: float | None, start: float) -> "Clock":
        """Return the budget of a question asked at `start`."""
        return cls(start + (DEFAULT_SECONDS if time_limit is None else time_limit), time_limit is not None)

    @property
    def left(self) -> float:
        """The seconds that are left, never less than a little."""
        return max(0.05, self.end - perf_counter())

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return perf_counter() >= self.end


def settings(name: str, **wanted: Any) -> Engine:
    """Return an engine by name with some of its settings replaced."""
    engine: Any = get_engine(name)
    return replace(engine, **wanted)  # type: ignore[no-any-return]


def passes(clock: Clock) -> Iterator[Engine]:
    """Yield message passing in the order in which it is tried."""
    share = 0.05 if clock.patient else 0.2
    yield settings("loopy-bp", time_limit=share * clock.left)
    yield settings("loopy-bp", damping=0.5, time_limit=share * clock.left)
    yield settings("loopy-bp", schedule="residual", damping=0.3, time_limit=share * clock.left)


def marginals(problem: Problem, targets: Sequence[str], clock: Clock, seed: int) -> Tables:
    """Return approximate marginals of the targets."""
    return _staged(problem, clock, seed, lambda engine: engine.marginals(problem, targets))


def joint(problem: Problem, targets: Sequence[str], clock: Clock, seed: int) -> Tables:
    """Return an approximate joint table of the targets."""
    return _staged(problem, clock, seed, lambda engine: engine.joint(problem, targets))


def _staged(problem: Problem, clock: Clock, seed: int, ask: Callable[[Engine], Tables]) -> Tables:
    tried: list[str] = []
    settled: tuple[str, Tables] | None = None
    last: tuple[str, Tables] | None = None

    def attempt(engine: Engine, enough: float = 0.0) -> bool:
        nonlocal settled, last
        try:
            found = ask(engine)
        except MarkoviaError as refused:
            tried.append(f"{engine.name}: {refused}")
            return False
        converged = bool(found.details.get("converged", True))
        tried.append(f"{_called(engine)}: {'converged' if converged else 'did not converge'}")
        last = (engine.name, found)
        if converged or found.details.get("error", np.inf) <= enough:
            settled = last
        return converged

    for engine in passes(clock):
        if attempt(engine) or clock.over:
            break
    if not clock.over and (clock.patient or settled is None):
        attempt(settings("join-graph", time_limit=(0.9 if clock.patient else 0.5) * clock.left), NEARLY)
    closest = last
    if settled is None and not clock.over:
        attempt(settings("gibbs", time_limit=clock.left, seed=seed))
    chosen = settled or closest or last
    if chosen is None:
        raise Unanswered("no approximate engine could answer: " + "; ".join(tried))
    name, answer = chosen
    details = {"exact": False, **answer.details, "tried": tried}
    return Tables(answer.tables, answer.log_mass, details, answer.engine or name)


def log_mass(problem: Problem, clock: Clock, seed: int) -> tuple[float, str]:
    """Return an approximate log mass and who gave it."""
    free = problem.free[:1]
    for engine in passes(clock):
        found = engine.marginals(problem, free)
        if found.details.get("converged", True):
            if clock.patient and not clock.over:
                wider = settings("join-graph", time_limit=clock.left).marginals(problem, free)
                if wider.details.get("converged", True):
                    return wider.log_mass, "join-graph"
            return found.log_mass, engine.name
        if clock.over:
            break
    sampler = settings("annealed-importance", time_limit=clock.left, seed=seed)
    return sampler.log_mass(problem), sampler.name


def best(problem: Problem, targets: Sequence[str], clock: Clock, seed: int) -> Ranked:
    """Return the best assignment found, with an upper bound on any assignment's log weight in the details."""
    if len(targets) < len(problem.free):
        found = settings("marginal-map", time_limit=clock.left, seed=seed).best(problem, targets, 1)
        return _ranked(found, "marginal-map", np.inf, [])
    tried: list[str] = []
    with_cut = _graph_cut(problem, targets)
    if with_cut is not None:
        return with_cut
    dual = settings("dual-decomposition", time_limit=0.35 * clock.left)
    first = dual.best(problem, targets, 1)
    bound = float(getattr(first, "details", {}).get("bound", np.inf))
    tried.append(dual.name)
    if _proved(first, bound):
        return _ranked(first, dual.name, bound, tried)
    search = settings("map-search", time_limit=clock.left, seed=seed, try_exact=False)
    second = search.best(problem, targets, 1)
    tried.append(search.name)
    bound = min(bound, float(getattr(second, "details", {}).get("bound", np.inf)))
    if not first or (second and second[0].log_weight >= first[0].log_weight):
        return _ranked(second, search.name, bound, tried)
    return _ranked(first, dual.name, bound, tried)


def sample(problem: Problem, n: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """Draw rows by Gibbs sampling."""
    return get_engine("gibbs").sample(problem, n, rng)


def _graph_cut(problem: Problem, targets: Sequence[str]) -> Ranked | None:
    try:
        found = get_engine("graph-cut").best(problem, targets, 1)
    except MarkoviaError:
        return None
    return _ranked(found, "graph-cut", found[0].log_weight if found else -np.inf, ["graph-cut"])


def _proved(found: list[Assignment], bound: float) -> bool:
    return bool(found) and bound - found[0].log_weight <= PROVED * max(1.0, abs(bound))


def _ranked(found: list[Assignment], engine: str, bound: float, tried: list[str]) -> Ranked:
    details = {
        **getattr(found, "details", {}),
        "engine": engine,
        "bound": bound,
        "exact": _proved(found, bound),
        "masses": False,
        "tried": tried,
    }
    return Ranked(details, found)


def _called(engine: Any) -> str:
    """Return an engine's name with the settings that differ between stages."""
    said = [f"{k}={getattr(engine, k)}" for k in ("schedule", "damping") if getattr(engine, k, None)]
    return f"{engine.name}({', '.join(said)})" if said else str(engine.name)
