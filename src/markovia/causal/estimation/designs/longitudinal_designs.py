"""Effects of treatments that follow one another, and of what goes through mediators: frames in, effects out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.causal.estimation.adjustment.estimates import Estimate, bootstrap, estimate, with_bootstrap
from markovia.causal.estimation.adjustment.mediation_effects import natural_effects
from markovia.causal.estimation.adjustment.over_time import marginal_structural_model, regime_mean
from markovia.causal.estimation.designs.designs import complete, designed, treated_level
from markovia.causal.estimation.effect_result import Effect, listed
from markovia.causal.estimation.study import Study, read_study
from markovia.causal.two_levels import TREATED, UNTREATED, second_of_two
from markovia.errors import InvalidArgument
from markovia.graphs.kinds.named import Names, as_names
from markovia.learning.control.logged_rules import rule_probabilities
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks


def effect_over_time(
    frame: Any,
    treatments: Sequence[str],
    outcome: str,
    *,
    covariates: Sequence[Names],
    treated: Sequence[Any] | Mapping[str, Any] | None = None,
    control: Sequence[Any] | Mapping[str, Any] | None = None,
    method: str = "doubly robust",
    learner: Any = None,
    level: float = 0.95,
    repetitions: int = 200,
    random_state: Seed = 0,
) -> Effect:
    """Estimate the effect of a sequence of treatments, with covariates that earlier ones change and later ones follow.

    Parameters
    ----------
    treatments
        Columns of two values, in the order of time: 0 and 1, or others with `treated` and `control`.
    covariates
        For each time the columns measured before its treatment.
    treated, control
        The regimes to compare, a value for each time: always and never by default. Or policies: a mapping from each
        treatment to a table given earlier columns, to a function of them, or to a value.
    method
        "doubly robust", "g-computation" (bootstrapped), or "msm": the slope of a marginal structural model by the number
        of treatments.
    """
    check_choice("method", method, ("doubly robust", "g-computation", "msm"))
    blocks = [as_names(c) for c in covariates]
    table = complete(frame, [*treatments, outcome, *(n for block in blocks for n in block)])
    if not len(blocks) == len(treatments):
        raise InvalidArgument(f"covariates= needs one entry for each of the {len(treatments)} treatments")
    times = [read_study(table, t, outcome, ()) for t in treatments]
    policies = [v if isinstance(v, Mapping) else None for v in (treated, control)]
    if any(p is not None and set(p) != set(treatments) for p in policies):
        raise InvalidArgument(f"a policy says what to do for each of {listed(treatments)}")
    if method == "msm" and any(p is not None for p in policies):
        raise InvalidArgument(
            "a marginal structural model compares numbers of treatments; a policy needs 'doubly robust'"
        )
    regimes = [
        [None] * len(times) if v is None or isinstance(v, Mapping) else list(v) for v in (treated, control)
    ]
    if any(len(v) != len(times) for v in regimes):
        raise InvalidArgument(f"treated= and control= need a value for each of the {len(times)} treatments")
    ones = [
        _one_of(study, t, _levels_asked(study, pair, policies), method)
        for study, t, *pair in zip(times, treatments, *regimes, strict=True)
    ]
    for values, turn in zip(regimes, (0, 1), strict=True):
        values[:] = [ends[turn] if v is None else v for v, ends in zip(values, ones, strict=True)]
    a = np.column_stack([table[t].to_numpy() == one for t, (one, _) in zip(treatments, ones, strict=True)])
    a = a.astype(np.int64)
    codes: list[list[Any]] = [
        [int(v == one) for v, (one, _) in zip(values, ones, strict=True)]
        if policy is None
        else _followed(policy, table, treatments, blocks, ones)
        for values, policy in zip(regimes, policies, strict=True)
    ]
    given = [read_study(table, treatments[0], outcome, block).covariates for block in blocks]
    base = read_study(table, treatments[0], outcome, ())
    rng = generator(random_state)
    seed = int(rng.integers(2**31))

    def compared(rows: Any) -> Estimate:
        past = [block[rows] for block in given]
        if method == "msm":
            return marginal_structural_model(a[rows], base.outcome[rows], past, learner=learner, seed=seed)
        one, two = (
            regime_mean(
                a[rows], base.outcome[rows], past, [p if np.ndim(p) == 0 else p[rows] for p in g],
                robust=method == "doubly robust", family=base.family, learner=learner, seed=seed,
            )
            for g in codes
        )  # fmt: skip
        assert one.influence is not None
        assert two.influence is not None
        return estimate(one.value - two.value, one.influence - two.influence)

    found = compared(slice(None))
    if method == "g-computation":
        found = with_bootstrap(found, bootstrap(lambda rows: compared(rows).value, len(a), repetitions, rng))
    said = [
        f"regime {values}" if p is None else "a policy" for values, p in zip(regimes, policies, strict=True)
    ]
    what = "per treatment" if method == "msm" else f"{said[0]} against {said[1].removeprefix('regime ')}"
    return designed(
        found, level, method, listed(treatments), outcome, table,
        "at each time the earlier columns hold all common causes of the treatment and what follows", what,
    )  # fmt: skip


def _levels_asked(study: Study, pair: Sequence[Any], policies: Sequence[Any]) -> tuple[Any, Any]:
    """Return the levels two regimes give at a time; beside a policy it does not matter which is called treated."""
    if all(p is not None for p in policies):
        assert study.levels is not None
        return study.levels[-1], study.levels[-1]
    if any(p is not None for p in policies):
        other = pair[0] if pair[1] is None else pair[1]
        return other, other
    return pair[0], pair[1]


def _followed(
    policy: Mapping[str, Any], table: Any, treatments: Sequence[str], blocks: Sequence[Sequence[str]],
    ends: Sequence[tuple[Any, Any]],
) -> list[Array]:  # fmt: skip
    """Return for each time the probability with which a policy treats each row."""
    known: list[str] = []
    found = []
    for name, block, (one, other) in zip(treatments, blocks, ends, strict=True):
        known += [n for n in block if n not in known]
        found.append(rule_probabilities(name, [other, one], policy[name], table, known)[:, 1])
        known.append(name)
    return found


def _one_of(study: Study, column: str, asked: tuple[Any, Any], method: str) -> tuple[Any, Any]:
    """Return the treated level of a column and the other: as the levels say, or as the regimes do."""
    words = (UNTREATED, TREATED)
    found = second_of_two(study.levels, None, column, "treated", words)
    assert study.levels is not None
    for value in asked:
        if value is not None:
            second_of_two(study.levels, value, column, "treated", words)  # refused where it is no level
    if found is None and (asked[0] is None or asked[0] != asked[1] or method == "msm"):
        found = treated_level(study, column, asked[0] if asked[0] != asked[1] else None)
    one = (
        1 if found is None else found
    )  # a time at which both regimes agree needs no more than two different codes
    return study.levels[one], study.levels[1 - one]


@dataclass(frozen=True)
class Mediation(InNotebooks):
    """Natural effects of a treatment: `total` is the sum of `direct` and `indirect`, each an `Effect`."""

    total: Effect
    direct: Effect
    indirect: Effect

    @property
    def share(self) -> float:
        """The part of the total effect that goes through the mediators."""
        return self.indirect.value / self.total.value

    def __str__(self) -> str:
        lines = [f"{self.total.treatment} = {self.total.treated} against {self.total.control}"]
        for name, e in (("total", self.total), ("direct", self.direct), ("indirect", self.indirect)):
            low, high = e.interval
            lines.append(f"{name:<9} {e.value:.4g} ({low:.4g} to {high:.4g})")
        return "\n".join([*lines, f"{self.share:.0%} of the effect goes through the mediators"])


def mediation(
    frame: Any,
    treatment: str,
    mediators: Names,
    outcome: str,
    *,
    treated: Any = None,
    covariates: Names = (),
    learner: Any = None,
    level: float = 0.95,
    random_state: Seed = 0,
) -> Mediation:
    """Split the effect of a binary treatment into what goes through mediators and what does not.

    Parameters
    ----------
    treated
        The treated level, where the two levels do not say it themselves as 0 and 1 or "no" and "yes" do.
    covariates
        Columns that hold the common causes of treatment, mediators and outcome, none of them caused by the treatment.
    """
    between = as_names(mediators)
    table = complete(frame, [treatment, outcome, *between, *as_names(covariates)])
    study = read_study(table, treatment, outcome, as_names(covariates), mediators=between)
    high = treated_level(study, treatment, treated)
    assert study.levels is not None
    assert study.mediators is not None
    levels = study.levels[1 - high], study.levels[high]
    arm = (study.codes == high).astype(np.int64)
    parts = natural_effects(
        arm, study.outcome, study.mediators, study.covariates, family=study.family, learner=learner,
        seed=int(generator(random_state).integers(2**31)),
    )  # fmt: skip
    why = f"{listed(as_names(covariates)) or 'nothing'} confounds treatment, {listed(between)} and outcome"
    made = [
        designed(
            part,
            level,
            f"natural {name} effect",
            treatment,
            outcome,
            table,
            why,
            f"through {listed(between)}",
            study=study,
            levels=levels,
        )
        for name, part in zip(("total", "direct", "indirect"), parts, strict=True)
    ]
    return Mediation(*made)
