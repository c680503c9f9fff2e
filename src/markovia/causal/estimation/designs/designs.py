"""Effects from designs rather than graphs: discontinuities and differences in differences.

Each takes a frame and names of columns and answers with an `Effect`, as `effect` does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.causal.estimation.adjustment.estimates import Estimate
from markovia.causal.estimation.designs import difference_in_differences as did
from markovia.causal.estimation.designs.discontinuity import discontinuity
from markovia.causal.estimation.effect_result import Effect, listed
from markovia.causal.estimation.methods import dose
from markovia.causal.estimation.study import Study, in_order_of_time, levels_of, read_study
from markovia.causal.two_levels import EARLIER, LATER, TREATED, UNTREATED, need_two, second_of_two
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, check_known
from markovia.graphs.kinds.named import Names, as_names
from markovia.runtime import ports
from markovia.runtime.libraries import pd
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def regression_discontinuity(
    frame: Any,
    running: str,
    outcome: str,
    *,
    cutoff: float,
    treatment: str | None = None,
    treated: Any = None,
    bandwidth: float | None = None,
    level: float = 0.95,
) -> Effect:
    """Estimate the effect of crossing a cutoff, or with `treatment=` of the treatment that crossing makes likelier.

    It is the effect at the cutoff, and says nothing of rows far from it (with `treatment=`, on those whom crossing moves).

    Parameters
    ----------
    running, outcome, cutoff
        Columns of numbers; rows at or above the cutoff are on the treated side.
    treatment, treated
        A column of two values or of doses, and which of the two is the treatment, where the values do not say so.
    bandwidth
        How far from the cutoff rows count; chosen from the data where None.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(15, 25, 2000)
    >>> wage = 10 + age + 3 * (age >= 20) + rng.normal(size=2000)
    >>> found = regression_discontinuity({"age": age, "wage": wage}, "age", "wage", cutoff=20)
    >>> abs(found.value - 3) < 3 * found.standard_error
    True
    """
    table = complete(frame, [running, outcome, *([treatment] if treatment else [])])
    x, y = (table[c].to_numpy(dtype=float) for c in (running, outcome))
    taken, levels = None, ("no", "yes")
    at = f"where {running} = {cutoff:g}, at the cutoff"
    what = f"difference in mean {outcome} between {running} at or above {cutoff:g} and below, {at}"
    if treatment is not None:
        study = read_study(table, treatment, outcome, ())
        taken, levels = dose(study), (0, 1)  # type: ignore[assignment]
        if study.levels is not None and len(study.levels) == 2:
            high = treated_level(study, treatment, treated)
            taken, levels = (study.codes == high).astype(float), (study.levels[1 - high], study.levels[high])
        what = f"difference in mean {outcome} between {treatment} = {levels[1]} and {levels[0]}, {at}, among those whom "
        what += "crossing it moves"
    found = discontinuity(x, y, cutoff, treatment=taken, bandwidth=bandwidth)
    kind = "fuzzy" if treatment else "sharp"
    return designed(
        found.estimate, level, f"{kind} discontinuity", treatment or f"{running} >= {cutoff:g}", outcome, table,
        f"{running} crosses {cutoff:g}, and rows near it on both sides are alike but for that",
        f"local lines within {found.bandwidth:.4g} of the cutoff ({found.rows:,} rows), corrected for their bias; "
        f"uncorrected {found.local_linear:.4g}", target="cutoff", levels=levels, what=what,
    )  # fmt: skip


def difference_in_differences(
    frame: Any,
    outcome: str,
    *,
    group: str,
    period: str,
    treated: Any = None,
    later: Any = None,
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
        Columns of two values.
    treated, later
        The group that is treated, and the period after its treatment. They may be left out where the values say it: 0 and
        1, False and True, words such as "control" or "after"; numbers and dates for the period. The result's `treated`
        and `control` hold the groups.
    unit
        A column of units: errors are clustered by it, and with covariates and both periods of every unit the doubly robust
        estimate of the change is used.
    """
    names = [outcome, group, period, *as_names(covariates), *([unit] if unit else [])]
    table = complete(frame, names)
    need_two(levels_of(table[group]), group)
    need_two(levels_of(table[period]), period, "keep the rows of two, or take all with staggered_differences")
    study = read_study(table, group, outcome, as_names(covariates), clusters=unit)
    time = read_study(table, period, outcome, ())
    high, last = treated_level(study, group, treated), _last(time, period, later)
    inside, after = (study.codes == high).astype(np.int64), (time.codes == last).astype(np.int64)
    y = table[outcome].to_numpy(dtype=float)
    if unit and study.covariates.shape[1]:
        order = np.lexsort((after, table[unit].to_numpy()))
        early, late = order[::2], order[1::2]
        paired = len(order) % 2 == 0 and (table[unit].to_numpy()[early] == table[unit].to_numpy()[late]).all()
        if not (paired and (after[early] == 0).all() and (after[late] == 1).all()):
            raise InvalidArgument(f"with covariates every {unit!r} needs one row in each period")
        seed = int(generator(random_state).integers(2**31))
        found = did.panel_difference(
            y[early], y[late], inside[early], study.covariates[early], learner=learner, seed=seed
        )
        how = "doubly robust in the change of every unit"
    else:
        found = did.difference_in_differences(y, inside, after, study.covariates, clusters=study.clusters)
        how = f"least squares with errors {'clustered by ' + unit if unit else 'robust to unequal variances'}"
    alike = f", given {listed(as_names(covariates))}" if covariates else ""
    assert study.levels is not None
    assert time.levels is not None
    levels = study.levels[1 - high], study.levels[high]
    return designed(
        found, level, "difference in differences", group, outcome, table,
        f"without treatment both groups would have changed alike{alike}",
        how, target="att", levels=levels,
        what=f"change of mean {outcome} from {period} = {time.levels[1 - last]} to {time.levels[last]} in the treated "
        f"group, {group} = {levels[1]}, beyond that in {levels[0]}",
    )  # fmt: skip


def treated_level(study: Study, column: str, asked: Any) -> int:
    """Return which of a column's two levels is the treated one; never by the alphabet."""
    found = second_of_two(study.levels, asked, column, "treated", (UNTREATED, TREATED))
    if found is None:
        one, two = (repr(v) for v in study.levels or ())
        raise InvalidArgument(
            f"nothing tells whether {one} or {two} of {column!r} is treated; say treated={one} or treated={two}"
        )
    return found


def _last(time: Study, column: str, asked: Any) -> int:
    """Return which of two periods is the later one: numbers and dates have an order, words may have a meaning."""
    found = second_of_two(time.levels, asked, column, "later", (EARLIER, LATER))
    levels = time.levels or ()
    if found is None and not any(isinstance(v, str) for v in levels):
        return 1
    if found is None:
        one, two = map(repr, levels)
        raise InvalidArgument(
            f"nothing tells whether {one} or {two} of {column!r} comes after; say later={one} or later={two}"
        )
    return found


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
    before
        For -2, -3, ... periods from the start what the comparison finds where there is no effect yet, beside -1.
    pre_trend
        The test that all of these are zero at once; None where no group has two periods before its start.
    """

    average: Effect
    by_length: Mapping[int, Effect]
    by_group: Mapping[tuple[Any, Any], Effect]
    before: Mapping[int, Effect] = field(default_factory=dict)
    pre_trend: did.PreTrend | None = None

    def event_study(self) -> "pd.DataFrame":
        """Return a row for each time from the start, before and after: value, standard_error, low, high and p_value.

        The period before the start, -1, is what the others are compared with, and zero.
        """
        rows = {k: [e.value, e.standard_error, *e.interval, e.p_value] for k, e in self.before.items()}
        rows[-1] = [0.0, 0.0, 0.0, 0.0, 1.0]
        rows |= {k: [e.value, e.standard_error, *e.interval, e.p_value] for k, e in self.by_length.items()}
        columns = ["value", "standard_error", "low", "high", "p_value"]
        index = pd.Index(sorted(rows), name="since_start")
        return pd.DataFrame([rows[k] for k in index], index=index, columns=columns)

    def plot(self, *, ax: Any = None) -> "Axes":
        """Draw the event study: effects by the time from the start, with their intervals."""
        return ports.draw("plot-event-study", self, ax=ax)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a row for each start and period: value, standard error and interval."""
        rows = [(*key, e.value, e.standard_error, *e.interval) for key, e in self.by_group.items()]
        return pd.DataFrame(rows, columns=["start", "period", "value", "standard_error", "lower", "upper"])

    def __str__(self) -> str:
        trend = "" if self.pre_trend is None else f"\n  before   {self.pre_trend}"
        listing = self.to_pandas().to_string(index=False, float_format="{:.4g}".format)
        return f"{self.average}{trend}\n\n{listing}"


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
    >>> list(found.event_study().index), found.pre_trend.dof, found.pre_trend.p_value > 0.05
    ([-2, -1, 0, 1, 2], 1, True)
    """
    names = as_names(covariates)
    table = complete(frame, [outcome, unit, period, *names])
    check_known([start], table.columns, "the data")
    in_order_of_time(table[period], period)
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
        return designed(
            found, level, "staggered difference in differences", start, outcome, table,
            f"without treatment all groups would have changed alike{alike}", which, target="att",
        )  # fmt: skip

    earlier = did.group_time_effects(
        wide[outcome].to_numpy(float), places, before, learner=learner, seed=seed, leads=True
    )
    lengths: dict[int, list[did.GroupTime]] = {}
    for part in (*parts, *earlier):
        lengths.setdefault(part.period - part.group, []).append(part)
    since = {
        k: made(
            did.averaged(lengths[k], places), f"{abs(k)} periods {'after' if k >= 0 else 'before'} the start"
        )
        for k in sorted(lengths)
    }
    return StaggeredEffects(
        made(did.averaged(parts, places), "over all groups and their treated periods"),
        {k: e for k, e in since.items() if k >= 0},
        {(times[p.group], times[p.period]): made(p.estimate, "one group in one period") for p in parts},
        {k: e for k, e in since.items() if k < 0},
        did.pre_trend(earlier),
    )


def complete(frame: Any, names: Sequence[str]) -> "pd.DataFrame":
    """Return the named columns, in which nothing is missing."""
    table = as_frame(frame)
    check_known(names, table.columns, "the data")
    gaps = [name for name in names if table[name].isna().any()]
    if gaps:
        raise InvalidArgument(f"cells are missing in {listed(map(repr, gaps))}; drop or fill them first")
    return table


def designed(
    found: Estimate, level: float, method: str, treatment: str, outcome: str, table: "pd.DataFrame", why: str, how: str,
    *, target: str = "ate", study: Study | None = None, levels: tuple[Any, Any] = ("no", "yes"), what: str = "",
) -> Effect:  # fmt: skip
    """Return the effect of a design; `levels` are the control and the treated one, `what` says what is compared."""
    return Effect(
        estimate=found, level=level, method=method, why=why, formula=None, target=target, measure="difference",
        treatment=treatment, outcome=outcome, control=levels[0], treated=levels[1], notes=(how,), study=study,
        frame=table, what=what,
    )  # fmt: skip
