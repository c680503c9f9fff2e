"""The methods that `effect` knows by name: what each needs of the graph, what it is called, and how it is run."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from markovia.causal.estimation.adjustment.double_ml import partially_linear
from markovia.causal.estimation.adjustment.doubly_robust import aipw, tmle
from markovia.causal.estimation.adjustment.estimates import ArmMeans, Estimate, contrast
from markovia.causal.estimation.adjustment.front_door_effects import front_door_lines, front_door_table
from markovia.causal.estimation.adjustment.instrumental_variables import late, two_stage_least_squares
from markovia.causal.estimation.adjustment.matching import matching
from markovia.causal.estimation.adjustment.meta_learners import meta_learner
from markovia.causal.estimation.adjustment.standardisation import slope, standardisation
from markovia.causal.estimation.adjustment.stratification import stratification
from markovia.causal.estimation.adjustment.weighting import ipw
from markovia.causal.estimation.study import MOST_LEVELS, Study
from markovia.errors import InvalidArgument, UnknownArgument, did_you_mean


@dataclass(frozen=True)
class EffectSettings:
    """What is asked of a method: arms (or doses) to compare, population, measure, learner, seed, further options."""

    treated: Any
    control: Any
    population: int | None = None
    measure: str = "difference"
    learner: Any = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


class EffectMethod(NamedTuple):
    """A method: how it is run, its name in words, what it rests on, and the functions whose options it takes."""

    run: Callable[[Study, EffectSettings], tuple[Estimate, ArmMeans | None]]
    title: str
    route: str
    takes: tuple[Callable[..., Any], ...]


def run(method: str, study: Study, settings: EffectSettings) -> tuple[Estimate, ArmMeans | None]:
    """Estimate by a method, after a look at its options."""
    chosen = METHODS[method]
    known = {p for f in chosen.takes for p in inspect.signature(f).parameters} - _PASSED
    for name in settings.options:
        if name not in known:
            listed = f"; it takes {', '.join(sorted(known))}" if known else ""
            raise UnknownArgument(
                f"method={method!r} has no option {name!r}{did_you_mean(name, known)}{listed}"
            )
    return chosen.run(study, settings)


def check_takes_score(method: str) -> None:
    """Refuse a method that has no use for a propensity score."""
    users = [
        name
        for name, m in METHODS.items()
        if any("score" in inspect.signature(f).parameters for f in m.takes)
    ]
    if method not in users:
        raise InvalidArgument(
            f"method={method!r} uses no propensity score; take {', '.join(map(repr, users))}"
        )


_PASSED = {
    "treatment", "outcome", "covariates", "arms", "family", "population", "learner", "clusters", "seed",
    "instrument", "instruments", "mediators", "kind", "targeted", "score",
}  # fmt: skip


def _call(
    function: Callable[..., Any], study: Study, settings: EffectSettings, *args: Any, **more: Any
) -> Any:
    """Call an estimator with those of the study's facts that it takes."""
    facts = {
        "family": study.family, "population": settings.population, "learner": settings.learner,
        "clusters": study.clusters, "seed": settings.seed, "arms": len(study.levels or ()), "score": study.score, **more,
    }  # fmt: skip
    takes = inspect.signature(function).parameters
    return function(*args, **{k: v for k, v in {**facts, **settings.options}.items() if k in takes})


def _of_arms(
    function: Callable[..., ArmMeans],
) -> Callable[[Study, EffectSettings], tuple[Estimate, ArmMeans | None]]:
    def estimated(study: Study, settings: EffectSettings) -> tuple[Estimate, ArmMeans | None]:
        if study.levels is None:
            raise InvalidArgument(
                f"this method compares the levels of a treatment, and this one has more than {MOST_LEVELS} values; "
                "use 'double-ml' or 'regression', or cut it into classes"
            )
        means = _call(function, study, settings, study.codes, study.outcome, study.covariates)
        return contrast(means, settings.treated, settings.control, settings.measure), means

    return estimated


def _regression(study: Study, settings: EffectSettings) -> tuple[Estimate, ArmMeans | None]:
    if study.levels is not None:
        return _of_arms(standardisation)(study, settings)
    _only_differences(settings)
    return _per_dose(
        _call(slope, study, settings, study.treatment, study.outcome, study.covariates), study, settings
    ), None


def _partially_linear(study: Study, settings: EffectSettings) -> tuple[Estimate, ArmMeans | None]:
    _only_differences(settings)
    return _per_dose(
        _call(partially_linear, study, settings, dose(study), study.outcome, study.covariates),
        study,
        settings,
    ), None


def _front_door(study: Study, settings: EffectSettings) -> tuple[Estimate, ArmMeans | None]:
    assert study.mediators is not None
    few = len(np.unique(study.mediators, axis=0)) <= max(20, study.n // 50)
    if study.levels is not None and few and settings.options.get("form", "table") == "table":
        means = front_door_table(
            study.codes, study.outcome, study.mediators, arms=len(study.levels), clusters=study.clusters
        )
        return contrast(means, settings.treated, settings.control, settings.measure), means
    _only_differences(settings)
    found = front_door_lines(dose(study), study.outcome, study.mediators, clusters=study.clusters)
    return _per_dose(found, study, settings), None


def _two_stage(study: Study, settings: EffectSettings) -> tuple[Estimate, ArmMeans | None]:
    _only_differences(settings)
    found = _call(
        two_stage_least_squares,
        study,
        settings,
        dose(study),
        study.outcome,
        study.covariates,
        study.instruments,
    )
    return _per_dose(found, study, settings), None


def _wald(study: Study, settings: EffectSettings) -> tuple[Estimate, ArmMeans | None]:
    _binary_instrument(study)
    if study.covariates.shape[1]:
        raise InvalidArgument(
            "Wald's ratio has no room for covariates, which this instrument needs; use 'late' or '2sls'"
        )
    return _two_stage(study, settings)


def _late(study: Study, settings: EffectSettings) -> tuple[Estimate, ArmMeans | None]:
    _only_differences(settings)
    instrument = _binary_instrument(study)
    if study.levels is None or len(study.levels) != 2:
        raise InvalidArgument("the effect on compliers needs a treatment of two levels; use '2sls'")
    found = _call(late, study, settings, study.treatment, study.outcome, study.covariates, instrument)
    return _scaled(found, settings.treated - settings.control), None


def _conditional_mean(kind: str) -> Callable[[Study, EffectSettings], tuple[Estimate, ArmMeans | None]]:
    def estimated(study: Study, settings: EffectSettings) -> tuple[Estimate, ArmMeans | None]:
        _only_differences(settings)
        if study.levels is None:
            raise InvalidArgument(
                "meta-learners compare two levels of a treatment; use 'double-ml' for numbers"
            )
        two = study.take(np.isin(study.codes, [settings.treated, settings.control]))
        arm = (two.codes == settings.treated).astype(np.int64)
        model = _call(meta_learner, two, settings, arm, two.outcome, two.covariates, kind=kind)
        among = two.covariates
        if settings.population is not None:
            among = among[two.codes == settings.population]
        p = model.probabilities
        if p is not None and len(study.levels) == 2 and settings.treated == 0:
            p = p[:, ::-1]  # in the order of the levels
        return Estimate(float(model.values(among).mean()), float("nan"), probabilities=p), None

    return estimated


def dose(study: Study) -> Any:
    """Return the treatment as numbers: those of its levels where they are numbers, else 0, 1, ..."""
    if study.levels is None or not all(isinstance(v, int | float | np.number) for v in study.levels):
        return study.treatment
    return np.array([float(v) for v in study.levels])[study.codes]


def _per_dose(found: Estimate, study: Study, settings: EffectSettings) -> Estimate:
    """Return a slope times the difference of the two doses that are compared."""
    if study.levels is None:
        scale = float(settings.treated) - float(settings.control)
    else:
        numbers = all(isinstance(v, int | float | np.number) for v in study.levels)
        ends = [float(study.levels[k]) if numbers else float(k) for k in (settings.treated, settings.control)]
        scale = ends[0] - ends[1]
    return _scaled(found, scale)


def _scaled(found: Estimate, scale: float) -> Estimate:
    influence = None if found.influence is None else found.influence * scale
    return replace(
        found,
        value=found.value * scale,
        standard_error=found.standard_error * abs(scale),
        influence=influence,
    )


def _only_differences(settings: EffectSettings) -> None:
    if settings.measure != "difference":
        raise InvalidArgument(
            f"this method estimates differences; for the {settings.measure} use 'aipw' or 'regression'"
        )


def _binary_instrument(study: Study) -> Any:
    assert study.instruments is not None
    if study.instruments.shape[1] != 1 or len(np.unique(study.instruments)) != 2:
        raise InvalidArgument("this method needs one instrument of two values; use '2sls'")
    return (study.instruments[:, 0] == study.instruments.max()).astype(np.int64)


METHODS: dict[str, EffectMethod] = {
    "regression": EffectMethod(
        _regression, "regression and standardisation", "adjustment", (standardisation, slope)
    ),
    "matching": EffectMethod(_of_arms(matching), "matching", "adjustment", (matching,)),
    "stratification": EffectMethod(
        _of_arms(stratification), "stratification", "adjustment", (stratification,)
    ),
    "ipw": EffectMethod(_of_arms(ipw), "inverse-probability weighting", "adjustment", (ipw,)),
    "aipw": EffectMethod(_of_arms(aipw), "doubly robust weighting (AIPW)", "adjustment", (aipw,)),
    "tmle": EffectMethod(_of_arms(tmle), "targeted maximum likelihood", "adjustment", (tmle,)),
    "double-ml": EffectMethod(
        _partially_linear, "double machine learning", "adjustment", (partially_linear,)
    ),
    **{
        f"{kind}-learner": EffectMethod(
            _conditional_mean(kind), f"the {kind.upper()}-learner", "adjustment", (meta_learner,)
        )
        for kind in ("s", "t", "x", "r", "dr")
    },
    "front-door": EffectMethod(_front_door, "the front-door formula", "front-door", (lambda form: None,)),
    "2sls": EffectMethod(_two_stage, "two-stage least squares", "instrument", ()),
    "wald": EffectMethod(_wald, "Wald's ratio", "instrument", ()),
    "late": EffectMethod(_late, "the doubly robust effect on compliers", "instrument", (late,)),
}
