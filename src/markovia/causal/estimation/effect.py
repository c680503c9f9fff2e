"""From a frame and a graph to an effect: read, identify, choose a method and say why, estimate, diagnose."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from markovia.causal.estimation.adjustment.estimates import (
    MEASURES,
    ArmMeans,
    Estimate,
    bootstrap,
    contrast,
    with_bootstrap,
)
from markovia.causal.estimation.adjustment.plug_in import observed_network, outcome_mean
from markovia.causal.estimation.arms import arms, joint_treatment
from markovia.causal.estimation.diagnosis import diagnosed
from markovia.causal.estimation.effect_result import Effect, listed
from markovia.causal.estimation.effect_table import EffectTable
from markovia.causal.estimation.methods import METHODS, EffectSettings, check_takes_score, run
from markovia.causal.estimation.propensity_score import PropensityScore
from markovia.causal.estimation.study import MISSING, Study, read_study
from markovia.causal.identification.adjustment import adjustment_sets, is_adjustment_set
from markovia.causal.identification.estimand import Estimand
from markovia.causal.identification.front_door import front_door_sets
from markovia.causal.identification.identify import identify
from markovia.causal.identification.instruments import instruments as graph_instruments
from markovia.causal.problem import Family, Problem
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, NoOverlap, NotIdentifiable, UnknownVariable, check_known
from markovia.graphs.kinds.named import Names, as_names
from markovia.learning.regression.nuisance import propensity as fit_propensity
from markovia.runtime.checks import check_choice, check_count, check_level
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    import pandas as pd

TARGETS = ("ate", "att", "atc")


@overload
def effect(frame: Any, graph: object, treatment: Names, outcome: str, **options: Any) -> Effect: ...
@overload
def effect(
    frame: Any, graph: object, treatment: Names, outcome: list[str] | tuple[str, ...], **options: Any
) -> EffectTable: ...
def effect(
    frame: Any,
    graph: object,
    treatment: Names,
    outcome: Names,
    *,
    method: str = "auto",
    estimand: str = "ate",
    measure: str = "difference",
    control: Any = None,
    treated: Any = None,
    adjustment: Names | None = None,
    instrument: Names | None = None,
    given: Mapping[str, Any] | None = None,
    latent: Names = (),
    family: Family = "auto",
    learner: Any = None,
    propensity: PropensityScore | None = None,
    errors: str = "influence",
    level: float = 0.95,
    clusters: str | None = None,
    missing: str = "error",
    repetitions: int = 200,
    random_state: Seed = 0,
    **options: Any,
) -> Effect | EffectTable:
    """Estimate the effect of a treatment on an outcome from rows and a causal graph.

    Parameters
    ----------
    frame
        Rows: a data frame of any kind, a mapping of columns, or CSV and Parquet files by their paths.
    graph
        What `mk.causal.identify` takes, such as `"age -> t; age -> y; t -> y"`, a DAG or a learned structure. Its variables
        are columns of the frame, but for those in `latent`.
    treatment, outcome
        A column each. A treatment of two or a few values is compared level by level, other numbers by the slope. An outcome
        has two states, or is a number; whole numbers from 0 are taken as counts. Several treatments are set together, all
        of them treated against none; several outcomes are answered one by one, in an `EffectTable`.
    method
        "auto" picks one and says why in `effect.why`. By adjustment: "regression", "matching", "stratification", "ipw",
        "aipw", "tmle", "double-ml" (partially linear) and the meta-learners "s-learner", "t-learner", "x-learner",
        "r-learner", "dr-learner". Others: "front-door", "2sls", "wald", "late", and "plug-in", which fits the network and
        evaluates any formula.
    estimand
        "ate" for everyone, "att" for the treated, "atc" for the untreated.
    measure
        "difference", "ratio" or "odds ratio" of the mean outcomes.
    control, treated
        The values to compare. By default 0 and 1, or of two levels the one whose name says that it is the control ("no",
        "placebo", ...) and the other; where no name tells, the first and the second in order, and a note says so. Of
        several treatments a value for each, such as `{"drug": "none", "diet": "none"}`.
    adjustment, instrument
        Columns to adjust for, or to use as instruments, instead of the graph's choice; both are checked against it.
    given
        Values of other columns: the effect among the rows that have them.
    latent, family
        Variables of the graph that the frame does not have, and what its edges mean, as for `mk.causal.identify`.
    learner
        None for generalised linear models, "boosting", "forest", a scikit-learn estimator, or a mapping of "outcome" and
        "treatment" to such.
    propensity
        What `propensity_score` fitted to the same rows, for "matching", "stratification", "ipw", "aipw" or "tmle"; its
        covariates are then what is adjusted for. The bootstrap takes it as known.
    errors, level, clusters, repetitions
        "influence" or "bootstrap" with so many samples; the level of intervals; a column of clusters. Methods without
        a known influence function are bootstrapped in any case.
    missing
        "error", "drop" for rows without missing cells, or "indicator", which fills covariates and marks the gaps.
    random_state
        For folds and the bootstrap.
    **options
        Of the method: `folds=`, `clip=`, `trim=`, `stabilised=`, `distance=`, `caliper=`, `neighbours=`, `strata=`.

    Returns
    -------
    Effect
        `value`, `interval`, `p_value`, and what stands behind them; `print` it, `plot()` it, `refute()` it. Of a list of
        outcomes an `EffectTable`, a mapping from outcomes to effects.

    Raises
    ------
    NotIdentifiable
        If neither a formula nor an instrument is found; see `mk.causal.bounds`.
    InvalidArgument, UnknownVariable, NoOverlap
        In one sentence.

    Examples
    --------
    >>> import markovia as mk
    >>> world = mk.causal.simulated_worlds.linear_world(2000, seed=1)
    >>> found = mk.causal.effect(world.frame, world.graph, "t", "y")
    >>> found.method, found.adjustment, abs(found.value - world.ate) < 3 * found.standard_error
    ('aipw', ('x1', 'x2'), True)
    >>> both = mk.causal.effect(world.frame, world.graph, "t", ["y"])
    >>> both["y"].value == found.value, list(both.to_pandas().columns)
    (True, ['value', 'standard_error', 'low', 'high', 'p_value'])
    """
    asked = dict(locals())  # the question as it was put, before anything else has a name
    if not isinstance(outcome, str):
        more = asked.pop("options")
        asked |= {"frame": as_frame(frame), **more}
        return EffectTable({name: effect(**{**asked, "outcome": name}) for name in as_names(outcome)})
    check_choice("method", method, ["auto", *METHODS, "plug-in"])
    check_choice("estimand", estimand, TARGETS)
    check_choice("measure", measure, MEASURES)
    check_choice("errors", errors, ("influence", "bootstrap"))
    check_choice("missing", missing, MISSING)
    check_level("level", level)
    check_count("repetitions", repetitions, 2)
    if given is not None and not isinstance(given, Mapping):
        raise InvalidArgument("given= maps columns to values, such as given={'sex': 'f'}")
    table = as_frame(frame)
    problem = Problem.of(graph, treatment, outcome, list(given or {}), latent, family)
    check_known((*problem.treatment, outcome, *(given or {})), table.columns, "the data")
    treatment = listed(problem.treatment)
    if propensity is not None:
        adjustment = _adjustment_of_score(propensity, problem, adjustment)
    notes: tuple[str, ...] = ()
    formula, why_not = _identified(problem)
    if formula is not None and formula.rule == "no effect":
        return _no_effect(table, problem, formula, estimand, measure, level)
    if len(problem.treatment) > 1:
        table, control, treated, notes = joint_treatment(
            table, problem.treatment, treatment, control, treated
        )
    plan = _planned(table, problem, formula, why_not, method, adjustment, instrument)
    study = read_study(
        table, treatment, outcome, plan.adjustment, instruments=plan.instruments, mediators=plan.mediators,
        clusters=clusters, given=given, missing=missing,
    )  # fmt: skip
    name = plan.method or _best(study, plan, measure)
    if propensity is not None:
        check_takes_score(name)
        study = replace(study, score=propensity.for_rows(study))
    low, high, note = arms(study.levels, treatment, control, treated)
    population = None if estimand == "ate" else high if estimand == "att" else low
    if population is not None and (
        study.levels is None
        or METHODS.get(name, METHODS["2sls"]).route != "adjustment"
        or name == "double-ml"
    ):
        raise InvalidArgument(
            f"estimand={estimand!r} needs a treatment of levels and a method by adjustment, not {name!r}"
        )
    rng = generator(random_state)
    settings = EffectSettings(high, low, population, measure, learner, int(rng.integers(2**31)), options)
    if name == "plug-in":
        assert formula is not None
        again = _plug_in(table, formula, settings, dict(given or {}))
    else:
        again = lambda s: run(name, s, settings)  # noqa: E731
    if METHODS.get(name, METHODS["2sls"]).route == "adjustment" and study.levels is not None:
        _check_overlap(study, low, high)
    found, means = again(study)
    if errors == "bootstrap" or not np.isfinite(found.standard_error):
        if name == "matching":
            raise InvalidArgument("the bootstrap fails for matching; its errors come from errors='influence'")
        draws = bootstrap(
            lambda rows: again(study.take(rows))[0].value, study.n, repetitions, rng, study.clusters
        )
        found = with_bootstrap(found, draws)
    levels = study.levels
    result = Effect(
        estimate=found, level=level, method=name, why=plan.why(name), formula=formula, target=estimand, measure=measure,
        treatment=treatment, outcome=outcome, control=low if levels is None else levels[low],
        treated=high if levels is None else levels[high], adjustment=plan.adjustment, mediators=plan.mediators,
        instruments=plan.instruments, given=dict(given or {}), study=study, means=means, settings=settings, again=again,
        frame=table, graph=problem.graph, notes=(*notes, *note),
    )  # fmt: skip
    return diagnosed(result)


class _Plan:
    """What will be done and why: a method (None to choose by the data), and the columns it needs."""

    def __init__(self, method: str | None, route: str, reason: str, **columns: Sequence[str]) -> None:
        self.method, self.route, self.reason = method, route, reason
        self.adjustment = tuple(columns.get("adjustment", ()))
        self.mediators = tuple(columns.get("mediators", ()))
        self.instruments = tuple(columns.get("instruments", ()))

    def why(self, name: str) -> str:
        """Say in a sentence why the method was taken."""
        if self.method is not None:
            return f"{self.reason}; the method was asked for"
        because = {
            "aipw": "AIPW is right if either its outcome model or its treatment model is",
            "double-ml": "the treatment is a number, and double machine learning estimates its slope with flexible models",
            "front-door": "the front-door formula needs no hidden cause to be seen",
            "2sls": "two-stage least squares uses the instrument's part of the treatment alone",
            "wald": "with one binary instrument and no covariates that is Wald's ratio",
            "late": "treatment and instrument have two values, and covariates are adjusted for doubly robustly",
            "plug-in": "no simpler rule applies, so the network is fitted and the formula evaluated on it",
        }[name]
        return f"{self.reason}, and {because}"


def _identified(problem: Problem) -> tuple[Estimand | None, NotIdentifiable | None]:
    try:
        return identify(
            problem.graph, treatment=problem.treatment, outcome=problem.outcome, given=problem.given,
            family=problem.family,
        ), None  # fmt: skip
    except NotIdentifiable as error:
        return None, error


def _planned(
    table: "pd.DataFrame",
    problem: Problem,
    formula: Estimand | None,
    why_not: NotIdentifiable | None,
    method: str,
    adjustment: Names | None,
    instrument: Names | None,
) -> _Plan:
    """Decide on a route: what is asked for, else adjustment, the front door, the general formula, an instrument."""
    x, y = listed(problem.treatment), problem.outcome[0]
    wanted = None if method == "auto" else method
    route = METHODS[wanted].route if wanted in METHODS else "plug-in" if wanted else None
    if adjustment is not None:
        route = route or "adjustment"
    if instrument is not None:
        route = "instrument"
        if wanted is not None and METHODS.get(wanted, METHODS["aipw"]).route != "instrument":
            raise InvalidArgument(f"method={wanted!r} uses no instrument; take '2sls', 'wald' or 'late'")
    if route in (None, "adjustment"):
        plan = _by_adjustment(table, problem, adjustment, wanted)
        if plan is not None:
            return plan
        if route == "adjustment":
            better = "front-door" if formula is not None and formula.rule == "front-door" else "plug-in"
            raise why_not or InvalidArgument(
                f"no set of observed variables can be adjusted for here; method={better!r} can answer"
                + ("; so can mk.causal.effect_over_time" if len(problem.treatment) > 1 else "")
            )
    if problem.is_class:
        raise why_not or InvalidArgument(
            "a class of graphs is answered by adjustment; orient its edges for other methods"
        )
    if route == "front-door" or (route is None and formula is not None and formula.rule == "front-door"):
        sets = [s for s in front_door_sets(problem.graph, problem.treatment, y, limit=20) if _has(table, s)]
        if not sets:
            raise why_not or InvalidArgument(
                f"no mediators meet the front-door criterion from {x!r} to {y!r}"
            )
        verbs = (
            "carry all of the effect and share"
            if len(sets[0]) > 1
            else "carries all of the effect and shares"
        )
        reason = f"by the graph, {listed(sets[0])} {verbs} no hidden cause with either end"
        return _Plan(wanted, "front-door", reason, mediators=sets[0])
    if route == "plug-in" or (route is None and formula is not None):
        if formula is None:
            assert why_not is not None
            raise why_not
        needed = {n for term in formula.expression.terms() for n in term.free}
        absent = sorted(n for n in needed if n not in table.columns)
        if absent:
            raise _unrecorded(absent[0], table)
        return _Plan(wanted, "plug-in", f"the effect is identified ({formula.because()})")
    return _by_instrument(table, problem, why_not, instrument, wanted)


def _adjustment_of_score(score: object, problem: Problem, asked: Names | None) -> tuple[str, ...]:
    """Return the covariates of a propensity score, which are what is adjusted for."""
    if not isinstance(score, PropensityScore):
        raise InvalidArgument(f"propensity= is what mk.causal.propensity_score returns, not {score!r}")
    if problem.treatment != (score.treatment,):
        raise InvalidArgument(
            f"the propensity score is one of {score.treatment!r}, not of {listed(problem.treatment)}"
        )
    if asked is not None and set(as_names(asked)) != set(score.covariates):
        raise InvalidArgument(
            f"the propensity score is given {listed(score.covariates) or 'nothing'}; adjustment= names other columns"
        )
    return score.covariates


def _by_adjustment(
    table: "pd.DataFrame", problem: Problem, asked: Names | None, wanted: str | None
) -> _Plan | None:
    x, y, given = problem.treatment, problem.outcome, problem.given
    if asked is not None:
        chosen = tuple(as_names(asked))
        if not is_adjustment_set(problem.graph, x, y, (*chosen, *given), family=problem.family):
            raise InvalidArgument(
                f"by the graph, adjusting for {listed(chosen) or 'nothing'} does not give the effect of {listed(x)!r} on "
                f"{y[0]!r}; mk.causal.adjustment_sets lists the sets that do"
            )
        return _Plan(
            wanted,
            "adjustment",
            f"adjusting for {listed(chosen) or 'nothing'} was asked for, and the graph allows it",
            adjustment=chosen,
        )
    sets = adjustment_sets(
        problem.graph, x, y, kind="optimal", required=given, limit=1, family=problem.family
    )
    if not sets:
        return None
    best = [s for s in sets if _has(table, s)]
    if not best:
        unseen = [n for n in problem.graph.nodes if n not in table.columns]
        best = adjustment_sets(
            problem.graph,
            x,
            y,
            kind="minimum",
            required=given,
            forbidden=unseen,
            limit=1,
            family=problem.family,
        )
    if not best:
        raise _unrecorded(next(n for n in sets[0] if n not in table.columns), table)
    chosen = tuple(n for n in best[0] if n not in given)
    if chosen:
        verb = "block" if len(chosen) > 1 else "blocks"
        reason = f"by the graph, {listed(chosen)} {verb} every back-door path from {listed(x)} to {y[0]}"
    else:
        reason = f"by the graph, nothing confounds {listed(x)} and {y[0]}"
    return _Plan(wanted, "adjustment", reason, adjustment=chosen)


def _by_instrument(
    table: "pd.DataFrame",
    problem: Problem,
    why_not: NotIdentifiable | None,
    asked: Names | None,
    wanted: str | None,
) -> _Plan:
    x, y = listed(problem.treatment), problem.outcome[0]
    if len(problem.treatment) > 1:
        raise why_not or InvalidArgument("an instrument is for the effect of one treatment on one outcome")
    found = [i for i in graph_instruments(problem.graph, x, y) if _has(table, (i.name, *i.given))]
    if asked is not None:
        names = as_names(asked)
        known = {i.name: i for i in found}
        for name in names:
            check_known([name], problem.graph.nodes, "the graph")
            if name not in known:
                raise InvalidArgument(
                    f"by the graph, {name!r} is no instrument for the effect of {x!r} on {y!r}"
                )
        found = [known[n] for n in names]
    if not found:
        raise why_not or InvalidArgument(
            f"by the graph, there is no instrument for the effect of {x!r} on {y!r}"
        )
    used = [i for i in found if i.given == found[0].given]
    names = [i.name for i in used]
    verb = "move" if len(names) > 1 else "moves"
    reason = f"hidden causes join {x} and {y}, but {listed(names)} {verb} {y} only through {x}"
    return _Plan(wanted, "instrument", reason, adjustment=found[0].given, instruments=names)


def _best(study: Study, plan: _Plan, measure: str) -> str:
    """Return the method for the data at hand on a route."""
    if plan.route == "adjustment":
        return "aipw" if study.levels is not None else "double-ml"
    if plan.route != "instrument":
        return plan.route
    assert study.instruments is not None
    binary = study.instruments.shape[1] == 1 and len(np.unique(study.instruments)) == 2
    if not binary or study.levels is None or len(study.levels) != 2:
        return "2sls"
    return "late" if study.covariates.shape[1] else "wald"


def _check_overlap(study: Study, low: int, high: int) -> None:
    """Refuse arms that the covariates tell apart perfectly."""
    if not study.covariates.shape[1]:
        return
    rows = np.isin(study.codes, [low, high])
    arm = (study.codes[rows] == high).astype(np.int64)
    p = fit_propensity(arm, study.covariates[rows], 2).probabilities[:, 1]
    if p[arm == 1].min() > p[arm == 0].max():
        verb = "tells" if len(study.columns) == 1 else "tell"
        raise NoOverlap(
            f"no overlap: {listed(study.columns)} {verb} the two arms apart in every row, so no row has a counterpart in "
            "the other arm; adjust for less or study rows where both arms occur"
        )


def _plug_in(
    table: "pd.DataFrame", formula: Estimand, settings: EffectSettings, given: Mapping[str, Any]
) -> Any:
    """Return a function from a study to the effect by fitting the network to its rows."""
    x, y = formula.treatment, formula.outcome[0]
    states = {
        n: sorted(table[n].dropna().unique().tolist(), key=str)
        for n in formula.graph.nodes
        if n in table.columns and not np.issubdtype(table[n].to_numpy().dtype, np.number)
    }

    def estimated(study: Study) -> tuple[Estimate, None]:
        rows = table.iloc[study.rows].copy()
        for k, name in enumerate(x):
            kind: Any = table[name].dtype
            if study.levels is not None:
                levels: Any = np.array(
                    [_part(level, k, x) for level in study.levels],
                    dtype=kind if getattr(kind, "kind", "O") in "iufb" else object,
                )
                rows[name] = levels[study.codes]
            else:
                rows[name] = study.treatment
        if study.event is None:
            kind = table[y].dtype
            rows[y] = study.outcome.astype(kind)
        elif (rows[y] == study.event).to_numpy().astype(float).tolist() != study.outcome.tolist():
            other = next(v for v in table[y].unique().tolist() if v != study.event)
            rows[y] = np.where(study.outcome == 1, study.event, other)
        model = observed_network(formula, rows, states)
        ends = (settings.treated, settings.control)
        values = ends if study.levels is None else [study.levels[k] for k in ends]
        settled = [{n: _plain(_part(v, k, x)) for k, n in enumerate(x)} for v in values]
        means = [outcome_mean(formula, model, do, _plain(study.event), given) for do in settled]
        unknown = ArmMeans(np.array(means), np.full((2, 2), np.nan))
        return replace(contrast(unknown, 0, 1, settings.measure), standard_error=float("nan")), None

    return estimated


def _part(level: Any, k: int, names: Sequence[str]) -> Any:
    """Return the value of one treatment in a level: of several that are set together, a level has one for each."""
    return level[k] if len(names) > 1 else level


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _has(table: "pd.DataFrame", names: Sequence[str]) -> bool:
    return all(name in table.columns for name in names)


def _unrecorded(name: str, table: "pd.DataFrame") -> UnknownVariable:
    return UnknownVariable(
        name,
        table.columns,
        f"the data, though the graph has it; if it was not recorded, say latent=[{name!r}]",
    )


def _no_effect(
    table: "pd.DataFrame", problem: Problem, formula: Estimand, target: str, measure: str, level: float
) -> Effect:
    x, y = listed(problem.treatment), problem.outcome[0]
    ratio = measure != "difference"
    return Effect(
        estimate=Estimate(1.0 if ratio else 0.0, 0.0, on_log_scale=ratio), level=level, method="none",
        why=f"by the graph, {x} has no effect on {y}: no directed path leads from one to the other",
        formula=formula, target=target, measure=measure, treatment=x, outcome=y, control=None, treated=None,
        frame=table, graph=problem.graph,
    )  # fmt: skip
