"""Effects from designs rather than graphs: discontinuities, differences in differences, synthetic controls, time.

Each takes a frame and names of columns and answers with an `Effect`, as `effect` does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.causal.estimation import difference_in_differences as did
from markovia.causal.estimation.discontinuity import discontinuity
from markovia.causal.estimation.effect_result import Effect, listed
from markovia.causal.estimation.estimates import Estimate, bootstrap, estimate, with_bootstrap
from markovia.causal.estimation.mediation_effects import natural_effects
from markovia.causal.estimation.over_time import marginal_structural_model, regime_mean
from markovia.causal.estimation.study import Study, read_study
from markovia.causal.estimation.synthetic_controls import Synthesis, synthesise
from markovia.data.frames import as_frame
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.graphs.named import Names, as_names
from markovia.runtime import ports
from markovia.runtime.checks import check_choice
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def regression_discontinuity(
    frame: Any,
    running: str,
    outcome: str,
    *,
    cutoff: float,
    treatment: str | None = None,
    bandwidth: float | None = None,
    level: float = 0.95,
) -> Effect:
    """Estimate the effect of crossing a cutoff, or with `treatment=` of the treatment that crossing makes likelier.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(15, 25, 2000)
    >>> wage = 10 + age + 3 * (age >= 20) + rng.normal(size=2000)
    >>> found = regression_discontinuity({"age": age, "wage": wage}, "age", "wage", cutoff=20)
    >>> abs(found.value - 3) < 3 * found.standard_error
    True
    """
    table = _complete(frame, [running, outcome, *([treatment] if treatment else [])])
    x, y = (table[c].to_numpy(dtype=float) for c in (running, outcome))
    taken = None
    if treatment is not None:
        taken = read_study(table, treatment, outcome, ()).treatment
    found = discontinuity(x, y, cutoff, treatment=taken, bandwidth=bandwidth)
    kind = "fuzzy" if treatment else "sharp"
    return _designed(
        found.estimate, level, f"{kind} discontinuity", treatment or f"{running} >= {cutoff:g}", outcome, table,
        f"{running} crosses {cutoff:g}, and rows near it on both sides are alike but for that",
        f"local lines within {found.bandwidth:.4g} of the cutoff ({found.rows:,} rows), corrected for their bias; "
        f"uncorrected {found.local_linear:.4g}",
    )  # fmt: skip


def difference_in_differences(
    frame: Any,
    outcome: str,
    *,
    group: str,
    period: str,
    unit: str | None = None,
    covariates: Names = (),
    learner: Any = None,
    level: float = 0.95,
    random_state: Seed = 0,
) -> Effect:
    """Estimate the effect on the treated group from its change beyond the other group's.

    Parameters
    ----------
    group, period
        Columns of two values; the second of each is the treated group and the later period.
    unit
        A column of units: errors are clustered by it, and with covariates and both periods of every unit the doubly robust
        estimate of the change is used.
    """
    names = [outcome, group, period, *as_names(covariates), *([unit] if unit else [])]
    table = _complete(frame, names)
    study = read_study(table, group, outcome, as_names(covariates), clusters=unit)
    time = read_study(table, period, outcome, ())
    for name, read in ((group, study), (period, time)):
        if read.levels is None or len(read.levels) != 2:
            raise InvalidArgument(
                f"{name!r} needs two values, an earlier and a later one or untreated and treated"
            )
    y = table[outcome].to_numpy(dtype=float)
    if unit and study.covariates.shape[1]:
        order = np.lexsort((time.codes, table[unit].to_numpy()))
        early, late = order[::2], order[1::2]
        paired = len(order) % 2 == 0 and (table[unit].to_numpy()[early] == table[unit].to_numpy()[late]).all()
        if not (paired and (time.codes[early] == 0).all() and (time.codes[late] == 1).all()):
            raise InvalidArgument(f"with covariates every {unit!r} needs one row in each period")
        seed = int(generator(random_state).integers(2**31))
        found = did.panel_difference(
            y[early], y[late], study.codes[early], study.covariates[early], learner=learner, seed=seed
        )
        how = "doubly robust in the change of every unit"
    else:
        found = did.difference_in_differences(
            y, study.codes, time.codes, study.covariates, clusters=study.clusters
        )
        how = f"least squares with errors {'clustered by ' + unit if unit else 'robust to unequal variances'}"
    alike = f", given {listed(as_names(covariates))}" if covariates else ""
    return _designed(
        found, level, "difference in differences", group, outcome, table,
        f"without treatment both groups would have changed alike{alike}",
        how, target="att",
    )  # fmt: skip


@dataclass(frozen=True)
class StaggeredEffects(InNotebooks):
    """Effects where treatment starts at different times; prints as a table.

    Attributes
    ----------
    average
        Over all treated units and their treated periods.
    by_length
        For 0, 1, ... periods after the start, the effect on the groups that are followed so long.
    by_group
        For each start and period the effect on the units that started then.
    """

    average: Effect
    by_length: Mapping[int, Effect]
    by_group: Mapping[tuple[Any, Any], Effect]

    def to_pandas(self) -> "pd.DataFrame":
        """Return a row for each start and period: value, standard error and interval."""
        import pandas as pd

        rows = [(*key, e.value, e.standard_error, *e.interval) for key, e in self.by_group.items()]
        return pd.DataFrame(rows, columns=["start", "period", "value", "standard_error", "lower", "upper"])

    def __str__(self) -> str:
        return f"{self.average}\n\n{self.to_pandas().to_string(index=False, float_format='{:.4g}'.format)}"


def staggered_differences(
    frame: Any, outcome: str, *, unit: str, period: str, start: str, covariates: Names = (), learner: Any = None,
    level: float = 0.95, random_state: Seed = 0,
) -> StaggeredEffects:  # fmt: skip
    """Estimate effects where units are treated from different periods on, each against units not treated by then.

    Parameters
    ----------
    unit, period
        Columns; every unit has one row in each period.
    start
        A column with the first period in which the row's unit is treated; a missing cell for units that never are.
    covariates
        Columns whose values in the first period are adjusted for, doubly robustly.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shop, year = np.repeat(np.arange(300), 4), np.tile(np.arange(2001, 2005), 300)
    >>> first = np.array([2002, 2003, np.nan])[shop % 3]
    >>> sales = year - 2000 + 2.0 * (year >= first) + rng.normal(size=1200)
    >>> rows = {"shop": shop, "year": year, "first": first, "sales": sales}
    >>> found = staggered_differences(rows, "sales", unit="shop", period="year", start="first")
    >>> abs(found.average.value - 2) < 3 * found.average.standard_error, sorted(found.by_length)
    (True, [0, 1, 2])
    """
    names = as_names(covariates)
    table = _complete(frame, [outcome, unit, period, *names])
    if start not in table.columns:
        raise UnknownVariable(start, table.columns, "the data")
    times = np.sort(table[period].unique())
    wide = {
        name: table.pivot_table(index=unit, columns=period, values=name, aggfunc="first")
        for name in (outcome, *names)
    }
    firsts = table.groupby(unit)[start]
    if (
        len(table) != wide[outcome].size
        or wide[outcome].isna().any().any()
        or (firsts.nunique(dropna=False) > 1).any()
    ):
        raise InvalidArgument(f"every {unit!r} needs one row in each {period!r}, and one value of {start!r}")
    begins = firsts.first().to_numpy()
    never = np.asarray(firsts.first().isna(), bool)
    places = np.where(never, len(times), np.searchsorted(times, np.where(never, times[0], begins)))
    before = np.column_stack(
        [np.empty((len(places), 0)), *(wide[name].to_numpy(float)[:, 0] for name in names)]
    )
    seed = int(generator(random_state).integers(2**31))
    parts = did.group_time_effects(wide[outcome].to_numpy(float), places, before, learner=learner, seed=seed)
    if not parts:
        raise InvalidArgument(
            "no group has a period before its start and two units in it beside two that are untreated then"
        )
    alike = f", given {listed(names)}" if names else ""

    def made(found: Estimate, which: str) -> Effect:
        return _designed(
            found, level, "staggered difference in differences", start, outcome, table,
            f"without treatment all groups would have changed alike{alike}", which, target="att",
        )  # fmt: skip

    lengths: dict[int, list[did.GroupTime]] = {}
    for part in parts:
        lengths.setdefault(part.period - part.group, []).append(part)
    return StaggeredEffects(
        made(did.averaged(parts, places), "over all groups and their treated periods"),
        {k: made(did.averaged(lengths[k], places), f"{k} periods after the start") for k in sorted(lengths)},
        {(times[p.group], times[p.period]): made(p.estimate, "one group in one period") for p in parts},
    )


@dataclass(frozen=True)
class SyntheticControl(InNotebooks):
    """A treated unit against its synthetic control; prints, and `plot()` draws both with the placebos.

    Attributes
    ----------
    value, p_value
        The average gap after the start, and the placebo p-value.
    weights
        Of the units that make up the control, largest first.
    synthesis
        The numbers behind it.
    """

    value: float
    p_value: float
    weights: "pd.Series[float]"
    synthesis: Synthesis
    times: tuple[Any, ...]
    unit: Any
    outcome: str

    def __str__(self) -> str:
        used = ", ".join(f"{name} {w:.2f}" for name, w in self.weights.items() if w > 0.005)
        units = len(self.synthesis.placebo_gaps) + 1
        return (
            f"{self.outcome} of {self.unit} is {self.value:.4g} away from its synthetic control after the start "
            f"(p = {self.p_value:.3f} among {units} units)\n  weights  {used}"
        )

    def plot(self, *, ax: Any = None) -> "Axes":
        """Draw the gaps of the treated unit and of the placebos."""
        drawn: Axes = ports.call("plot-synthetic-control", self, ax=ax)
        return drawn


def synthetic_control(
    frame: Any, outcome: str, *, unit: str, time: str, treated: Any, start: Any
) -> SyntheticControl:
    """Compare a treated unit with the mixture of the others that followed it best before the start.

    Parameters
    ----------
    outcome, unit, time
        Columns; every unit has a row at every time.
    treated, start
        The treated unit, and the first time at which it was treated.
    """
    import pandas as pd

    table = _complete(frame, [outcome, unit, time])
    wide = table.pivot_table(index=unit, columns=time, values=outcome, aggfunc="mean")
    if wide.isna().to_numpy().any():
        raise InvalidArgument(f"every {unit!r} needs a row at every {time!r}")
    for value, known, what in ((treated, wide.index, unit), (start, wide.columns, time)):
        if value not in known:
            raise UnknownVariable(value, known, f"the column {what!r}")
    donors = wide.drop(index=treated)
    found = synthesise(
        wide.loc[treated].to_numpy(float), donors.to_numpy(float), int(list(wide.columns).index(start))
    )
    weights = pd.Series(found.weights, index=donors.index).sort_values(ascending=False)
    return SyntheticControl(
        found.effect, found.p_value, weights, found, tuple(wide.columns), treated, outcome
    )


def effect_over_time(
    frame: Any,
    treatments: Sequence[str],
    outcome: str,
    *,
    covariates: Sequence[Names],
    treated: Sequence[int] | None = None,
    control: Sequence[int] | None = None,
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
        Columns of 0 and 1, in the order of time.
    covariates
        For each time the columns measured before its treatment.
    treated, control
        The regimes to compare: always and never by default.
    method
        "doubly robust", "g-computation" (bootstrapped), or "msm": the slope of a marginal structural model by the number
        of treatments.
    """
    check_choice("method", method, ("doubly robust", "g-computation", "msm"))
    blocks = [as_names(c) for c in covariates]
    table = _complete(frame, [*treatments, outcome, *(n for block in blocks for n in block)])
    a = np.column_stack([read_study(table, t, outcome, ()).codes for t in treatments])
    given = [read_study(table, treatments[0], outcome, block).covariates for block in blocks]
    base = read_study(table, treatments[0], outcome, ())
    rng = generator(random_state)
    seed = int(rng.integers(2**31))
    high = list(treated or [1] * len(treatments))
    low = list(control or [0] * len(treatments))

    def compared(rows: Any) -> Estimate:
        past = [block[rows] for block in given]
        if method == "msm":
            return marginal_structural_model(a[rows], base.outcome[rows], past, learner=learner, seed=seed)
        one, two = (
            regime_mean(
                a[rows], base.outcome[rows], past, g, robust=method == "doubly robust", family=base.family,
                learner=learner, seed=seed,
            )
            for g in (high, low)
        )  # fmt: skip
        assert one.influence is not None
        assert two.influence is not None
        return estimate(one.value - two.value, one.influence - two.influence)

    found = compared(slice(None))
    if method == "g-computation":
        found = with_bootstrap(found, bootstrap(lambda rows: compared(rows).value, len(a), repetitions, rng))
    what = "per treatment" if method == "msm" else f"regime {high} against {low}"
    return _designed(
        found, level, method, listed(treatments), outcome, table,
        "at each time the earlier columns hold all common causes of the treatment and what follows", what,
    )  # fmt: skip


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
        lines = []
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
    covariates: Names = (),
    learner: Any = None,
    level: float = 0.95,
    random_state: Seed = 0,
) -> Mediation:
    """Split the effect of a binary treatment into what goes through mediators and what does not.

    Parameters
    ----------
    covariates
        Columns that hold the common causes of treatment, mediators and outcome, none of them caused by the treatment.
    """
    between = as_names(mediators)
    table = _complete(frame, [treatment, outcome, *between, *as_names(covariates)])
    study = read_study(table, treatment, outcome, as_names(covariates), mediators=between)
    if study.levels is None or len(study.levels) != 2:
        raise InvalidArgument(f"natural effects need a treatment of two levels, and {treatment!r} has more")
    assert study.mediators is not None
    parts = natural_effects(
        study.codes, study.outcome, study.mediators, study.covariates, family=study.family, learner=learner,
        seed=int(generator(random_state).integers(2**31)),
    )  # fmt: skip
    why = f"{listed(as_names(covariates)) or 'nothing'} confounds treatment, {listed(between)} and outcome"
    made = [
        _designed(
            part,
            level,
            f"natural {name} effect",
            treatment,
            outcome,
            table,
            why,
            f"through {listed(between)}",
            study=study,
        )
        for name, part in zip(("total", "direct", "indirect"), parts, strict=True)
    ]
    return Mediation(*made)


def _complete(frame: Any, names: Sequence[str]) -> "pd.DataFrame":
    """Return the named columns, in which nothing is missing."""
    table = as_frame(frame)
    for name in names:
        if name not in table.columns:
            raise UnknownVariable(name, table.columns, "the data")
    gaps = [name for name in names if table[name].isna().any()]
    if gaps:
        raise InvalidArgument(f"cells are missing in {listed(map(repr, gaps))}; drop or fill them first")
    return table


def _designed(
    found: Estimate, level: float, method: str, treatment: str, outcome: str, table: "pd.DataFrame", why: str, how: str,
    *, target: str = "ate", study: Study | None = None,
) -> Effect:  # fmt: skip
    levels: Mapping[int, Any] = (
        dict(enumerate(study.levels)) if study is not None and study.levels else {0: "no", 1: "yes"}
    )
    return Effect(
        estimate=found, level=level, method=method, why=why, formula=None, target=target, measure="difference",
        treatment=treatment, outcome=outcome, control=levels[0], treated=levels[1], notes=(how,), study=study,
        frame=table,
    )  # fmt: skip
