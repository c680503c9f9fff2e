"""Expectation-maximisation for directed networks: missing cells and variables that are never observed.

Each iteration takes the expected counts of all families under the present tables (E-step) and estimates the tables from
them as from counts (M-step), so priors, fixed tables and whatever else the estimator knows work as on complete data.
The log likelihood of the observed cells, plus the log prior where there is one, never falls: with q the posterior of
the missing cells it is the free energy `E_q[log p(x, z)] + H(q)`, which the M-step raises and the E-step makes tight.
Every third step is extrapolated and kept where it is better.
References: Dempster, Laird & Rubin (1977); Neal & Hinton (1998); Lauritzen (1995); Varadhan & Roland (2008) for the
extrapolation.
Cost: an expectation (`markovia.learning.incomplete.incomplete_rows`) and an estimate for each iteration.
Use it through `fit`; the answer is a local maximum, so with hidden variables try several `restarts`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import Any, Literal, NamedTuple

import numpy as np

from markovia.data.tables.row_sources import CodedTable
from markovia.errors import (
    ApproximateWarning,
    ImpossibleEvidence,
    InvalidArgument,
    warn_user,
)
from markovia.factors.tables.conditional import Conditional
from markovia.inference.engine import Engine, get_engine
from markovia.learning.incomplete.e_step import Expectation, ExpectedCounter
from markovia.learning.tables.fit_record import Fit
from markovia.learning.tables.table_learner import TableLearner
from markovia.optimise.ascent import Climb, best_of, climb, every_climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import SECONDS, Count, Damping, check, check_options
from markovia.runtime.clock import Clock, now
from markovia.runtime.seeds import Seed, generator

Start = Literal["auto", "available", "current", "uniform", "random"]
STARTS = ("auto", "available", "current", "uniform", "random")
NAMES = ("max_iterations", "tolerance")
"""What `max_iter` and `tol` of other estimators are called here."""
TABLE_CHANGE = 1e-3
"""The change of any probability below which a run without a log likelihood stops."""


@dataclass(frozen=True)
class EM:
    """Settings of expectation-maximisation, for `fit(..., missing=mk.EM(...))`.

    Parameters
    ----------
    tolerance
        Stop when an iteration (with `accelerate`, three of them together) raises the objective by no more than this a cell
        that is observed.
    max_iterations
        Stop here in any case, with a warning.
    restarts
        Runs from different starts; the best is kept. The first run starts as `start` says, the others at random.
    start
        "available": from the rows that observe a family whole. "current": from the tables the network has. "uniform",
        "random". "auto" takes what is available, and random tables where nothing is: for hidden variables.
    seed
        For random starts and engines that draw.
    engine
        "auto" sums exactly, and asks loopy belief propagation where an exact sum would be too large;
        "junction-tree" never approximates; any other engine is asked case by case. Exact sums run on the engine's device,
        by default on a GPU where one is there and the processor takes long (`mk.engines.Auto(device="gpu")`).
    accelerate
        Extrapolate every third step and keep it where it is better (SQUAREM); the objective still never falls.
    hard
        Count the most probable completion of each row instead of the expected one.
    n_jobs
        Processes for the restarts, as joblib understands it.
    progress
        Whether to show a progress bar; by default on a terminal if it takes long.
    time_limit
        Seconds after which the best so far is kept; so does Ctrl-C.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork("rain->wet")
    >>> rows = {"rain": ["no", "no", "yes", None], "wet": ["no", "yes", "yes", "yes"]}
    >>> fitted = bn.fit(rows, missing=mk.EM(tolerance=1e-12))
    >>> fitted["rain"].values.round(3).tolist(), fitted.fit_.converged
    ([0.625, 0.375], True)
    """

    tolerance: Damping = 1e-6
    max_iterations: Count = 1000
    restarts: Count = 1
    start: Start = "auto"
    seed: Seed = None
    engine: str | Engine = "auto"
    accelerate: bool = True
    hard: bool = False
    n_jobs: int | None = None
    progress: bool | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_options(self)
        if self.n_jobs is not None and (
            not isinstance(self.n_jobs, int) or isinstance(self.n_jobs, bool) or self.n_jobs == 0
        ):
            raise InvalidArgument(f"n_jobs= is a whole number other than 0, or None, not {self.n_jobs!r}")
        check("time_limit", self.time_limit, SECONDS)
        get_engine(self.engine)


def as_em(missing: Any) -> EM | None:
    """Return the settings that `missing=` stands for; None where rows are not to be completed."""
    if isinstance(missing, EM):
        return missing
    if isinstance(missing, str) and missing == "em":
        return EM()
    if isinstance(missing, str) and missing in ("error", "drop"):
        return None
    raise InvalidArgument(
        f"missing= is 'em', 'drop', 'error' or settings such as mk.EM(restarts=5), not {missing!r}"
    )


class EMState(NamedTuple):
    """Tables, what the data say under them, the objective, that of the first tables, and expectations to leap from."""

    tables: Sequence[Conditional]
    expectation: Expectation
    objective: float
    first: float
    trail: tuple[Expectation, ...] = ()


def fit_by_em(
    learner: TableLearner, table: CodedTable, settings: EM, hidden: Collection[str] = ()
) -> tuple[list[Conditional], Sequence[Array], Fit]:
    """Learn tables from rows with missing cells; return them, their expected counts and a record.

    Parameters
    ----------
    learner
        Turns counts into tables; its families are the network's, in order.
    table
        The rows; families' variables without a column are hidden.
    settings
        How to run.
    hidden
        Variables that are never observed, even if there is a column.
    """
    begin = now()
    if any(n in table.variables for n in hidden):
        kept = [v for v in table.variables.values() if v.name not in hidden]
        table = CodedTable(kept, np.stack([table.column(v.name) for v in kept]), table.weights)
    counter = ExpectedCounter(learner.families, table, settings.engine, settings.seed)
    runs = em_runs(learner, counter, settings)
    best = best_of(runs)
    best.warn(settings.tolerance, NAMES)
    end = best.state
    found = list(end.tables)
    expectation = counter.expect(found) if settings.hard else end.expectation
    if not counter.exact and counter.engine.name == "auto":
        warn_user(
            "the expected counts are approximate (by loopy belief propagation): the missing cells of "
            f"{len(counter.rows.wide):,} cases hang together too widely for exact sums",
            ApproximateWarning,
        )
    families = learner.families
    never = [f.variable.name for f in families if not _has(table, f.variable.name)]
    details: dict[str, Any] = {
        "objective": end.objective,
        "start_objective": end.first,
        "restarts": [run.state.objective for run in runs],
        "exact": expectation.exact,
        "hard": settings.hard,
        "free_energy": sum(expectation.by_family.values()) + expectation.entropy,
        "entropy": expectation.entropy,
        "distinct_cases": len(counter.rows.cases.pattern),
        "hidden": never,
        "latent": list(hidden),
    }
    if counter.rows.device == "gpu":
        details["device"] = "gpu"
    if not expectation.exact:
        details["unconverged_cases"] = expectation.unconverged
    if best.reason == "interrupted":
        details["interrupted"] = True
    record = Fit(
        "em",
        table.n_rows,
        table.total,
        expectation.log_likelihood,
        expectation.by_family,
        learner.n_parameters(found),
        sum(table.missing().values()),
        converged=best.converged,
        iterations=len(best.history),
        history=tuple(best.history),
        seconds=now() - begin,
        details=details,
    )
    return found, expectation.counts, record


def _has(table: CodedTable, name: str) -> bool:
    """Say whether a variable has a column with at least one value."""
    return name in table.variables and table.missing()[name] < table.n_rows


def em_runs(learner: TableLearner, counter: Any, settings: EM) -> list[Climb[EMState]]:
    """Run from every start; a run that is cut is the last."""
    starts = list(enumerate(generator(settings.seed).spawn(settings.restarts)))
    with Clock(settings.time_limit, False):
        return every_climb(
            partial(_one_run, learner, counter, settings),
            starts,
            n_jobs=settings.n_jobs,
            progress=settings.progress,
        )


def _one_run(
    learner: TableLearner,
    counter: Any,
    settings: EM,
    which: tuple[int, np.random.Generator],
    progress: bool | None,
) -> Climb[EMState]:
    number, rng = which
    start = settings.start if number == 0 else "random"
    return run_em(learner, counter, starting_tables(learner, counter, start, rng), settings, progress)


def run_em(
    learner: TableLearner,
    counter: Any,
    tables: Sequence[Conditional],
    settings: EM,
    progress: bool | None = False,
) -> Climb[EMState]:
    """Climb from given tables (see `climb`); a number observed is a cell.

    The tables that come back are those whose likelihood was computed last, so the numbers belong together.
    """
    expect = counter.complete if settings.hard else counter.expect
    quick = settings.accelerate and counter.exact and not settings.hard

    def step(now: EMState) -> tuple[EMState, float]:
        trail = (*now.trail, now.expectation) if quick else ()
        if len(trail) == 3:
            leap, trail = _leap(learner, counter, trail), (now.expectation,)
            if leap is not None and leap[2] > now.objective:
                return EMState(*leap, now.first), leap[2]
        after = learner.estimate(now.expectation.counts)
        then = expect(after)
        value = then.log_likelihood + learner.log_prior(after)
        if value == -np.inf:
            raise _impossible_family(then)
        return EMState(after, then, value, now.first, trail), value

    def still(before: EMState, after: EMState) -> bool:
        return isnan(after.objective) and _largest_change(before.tables, after.tables) <= TABLE_CHANGE

    begin = expect(tables)
    first = begin.log_likelihood + learner.log_prior(tables)
    # a step after a leap gains little by itself, so that gains are taken over three
    how: dict[str, Any] = {"span": 3} if quick else {"first": first, "may_fall": not counter.exact}
    return climb(
        step, EMState(tables, begin, first, first), max_iter=settings.max_iterations, tol=settings.tolerance,
        size=max(1.0, counter.observed), settled=still, progress=progress, unit="iteration", **how,
    )  # fmt: skip


def _leap(
    learner: TableLearner, counter: ExpectedCounter, trail: Sequence[Expectation]
) -> tuple[list[Conditional], Expectation, float] | None:
    """Extrapolate three steps of expected counts (SQUAREM); return the tables, their expectation and objective.

    Counts are extrapolated, not tables, so that whatever the estimator keeps to still holds. A count that would become
    negative is halved instead.
    """
    before, middle, last = (np.concatenate([np.ravel(n) for n in e.counts]) for e in trail)
    step, bend = middle - before, last - 2 * middle + before
    bent = float(np.linalg.norm(bend))
    length = float(np.linalg.norm(step)) / bent if bent > 0 else 1.0
    if not 1.0 < length < np.inf:
        return None
    far = before + 2 * length * step + length**2 * bend
    counts = counter.rows.layout.split(np.where(far > 0, far, last / 2))
    tables = learner.estimate(counts)
    try:
        found = counter.expect(tables)
    except ImpossibleEvidence:
        return None
    return tables, found, found.log_likelihood + learner.log_prior(tables)


def starting_tables(
    learner: TableLearner, counter: ExpectedCounter, start: str, rng: np.random.Generator
) -> list[Conditional]:
    """Return the tables of a start, estimated from made-up counts so that the estimator's constraints hold."""
    families = learner.families
    if start == "current":
        lacking = [f.variable.name for f in families if f.before is None]
        if lacking:
            raise InvalidArgument(f"start='current' needs tables, and {lacking[0]!r} has none")
        return [f.before for f in families if f.before is not None]
    layout = counter.rows.layout
    counts = []
    for seen, shape in zip(layout.split(counter.rows.complete), layout.shapes, strict=True):
        total = max(1.0, float(counter.rows.weights.sum()))
        if start == "uniform":
            counts.append(np.full(shape, total / seen.size))
        elif start == "random" or (start == "auto" and not seen.any()):
            rows = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
            counts.append(rows * (total * shape[-1] / seen.size))
        else:
            counts.append(seen + 1.0 / shape[-1])
    return learner.estimate(counts)


def _impossible_family(found: Expectation) -> ImpossibleEvidence:
    """Return the error for tables that stay fixed and exclude what rows show."""
    name = next(n for n, value in found.by_family.items() if value == -np.inf)
    return ImpossibleEvidence.because(
        f"the distribution of {name!r} stays fixed, and it excludes states that rows show"
    )


def _largest_change(before: Sequence[Conditional], after: Sequence[Conditional]) -> float:
    return max(float(np.abs(a.values - b.values).max()) for a, b in zip(before, after, strict=True))
