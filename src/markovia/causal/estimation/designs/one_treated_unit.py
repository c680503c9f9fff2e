"""One treated unit against a mixture of others: synthetic controls from a frame, with covariates where there are some."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.causal.estimation.designs.designs import complete
from markovia.causal.estimation.designs.synthetic_controls import Synthesis, synthesise
from markovia.causal.estimation.study import in_order_of_time
from markovia.errors import InvalidArgument, MarkoviaError, UnknownVariable, did_you_mean
from markovia.graphs.kinds.named import Names, as_names
from markovia.runtime import ports
from markovia.runtime.libraries import pd
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class UnknownUnit(UnknownVariable):
    """A unit or a time that a column does not have."""

    def __init__(self, argument: str, value: object, column: str, known: Collection[object]) -> None:
        some = [*map(repr, list(known)[:12]), *(["..."] if len(known) > 12 else [])]
        near = did_you_mean(value, known)
        MarkoviaError.__init__(
            self, f"{argument}={value!r} is no value of {column!r}, which has {', '.join(some)}{near}"
        )
        self.name = value


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
    predictors
        With covariates a row for each and for the outcome before the start: the treated unit's value, the synthetic
        control's, the average of the others, and how much it counted; else None.
    """

    value: float
    p_value: float
    weights: "pd.Series[float]"
    synthesis: Synthesis
    times: tuple[Any, ...]
    unit: Any
    outcome: str
    predictors: "pd.DataFrame | None" = None

    def __str__(self) -> str:
        used = ", ".join(f"{name} {w:.2f}" for name, w in self.weights.items() if w > 0.005)
        units = len(self.synthesis.placebo_gaps) + 1
        alike = (
            ""
            if self.predictors is None
            else "\n" + self.predictors.to_string(float_format="{:.4g}".format).replace("\n", "\n  ")
        )
        return (
            f"{self.outcome} of {self.unit} is {self.value:.4g} away from its synthetic control after the start "
            f"(p = {self.p_value:.3f} among {units} units)\n  weights  {used}{alike}"
        )

    def plot(self, *, ax: Any = None) -> "Axes":
        """Draw the gaps of the treated unit and of the placebos."""
        return ports.draw("plot-synthetic-control", self, ax=ax)


def synthetic_control(
    frame: Any, outcome: str, *, unit: str, time: str, treated: Any, start: Any, covariates: Names = ()
) -> SyntheticControl:
    """Compare a treated unit with the mixture of the others that followed it best before the start.

    Parameters
    ----------
    outcome, unit, time
        Columns; every unit has a row at every time.
    treated, start
        The treated unit, and the first time at which it was treated.
    covariates
        Columns of numbers, whose averages before the start the mixture is to have, too. Then it is chosen by these and the
        average outcome before the start, each counting so much that the outcome is followed best (Abadie, Diamond &
        Hainmueller, 2010).

    Examples
    --------
    >>> rows = [(u, t, z * t + 5 * (u == "north" and t >= 6), z) for u, z in
    ...         {"north": 2.0, "east": 1.0, "south": 3.0, "west": 8.0}.items() for t in range(9)]
    >>> frame = pd.DataFrame(rows, columns=["region", "year", "sales", "shops"])
    >>> found = synthetic_control(
    ...     frame, "sales", unit="region", time="year", treated="north", start=6, covariates="shops"
    ... )
    >>> round(found.value, 3), found.predictors.loc["shops", ["treated", "synthetic"]].round(3).tolist()
    (5.0, [2.0, 2.0])
    """
    names = as_names(covariates)
    table = complete(frame, [outcome, unit, time, *names])
    in_order_of_time(table[time], time)
    wide = table.pivot_table(index=unit, columns=time, values=outcome, aggfunc="mean")
    if wide.isna().to_numpy().any():
        raise InvalidArgument(f"every {unit!r} needs a row at every {time!r}")
    for argument, value, known, column in (
        ("treated", treated, wide.index, unit),
        ("start", start, wide.columns, time),
    ):
        if value not in known:
            raise UnknownUnit(argument, value, column, known.tolist())
    first = int(list(wide.columns).index(start))
    donors = wide.drop(index=treated)
    own, others = wide.loc[treated].to_numpy(float), donors.to_numpy(float)
    if not names:
        found = synthesise(own, others, first)
        return _shown(found, wide, donors.index, treated, outcome, None)
    if words := next((n for n in names if not pd.api.types.is_numeric_dtype(table[n])), None):
        raise InvalidArgument(
            f"the covariate {words!r} is no column of numbers; make one of 0 and 1 for each word"
        )
    early = table[table[time].isin(list(wide.columns[:first]))]
    means = early.groupby(unit)[names].mean().reindex(wide.index)
    means[f"{outcome} before"] = wide.iloc[:, :first].mean(axis=1)
    alike = means.drop(index=treated).to_numpy(float)
    found = synthesise(own, others, first, (means.loc[treated].to_numpy(float), alike))
    predictors = pd.DataFrame(
        {
            "treated": means.loc[treated],
            "synthetic": found.weights @ alike,
            "others": alike.mean(axis=0),
            "importance": found.importance,
        }
    )
    return _shown(found, wide, donors.index, treated, outcome, predictors)


def _shown(
    found: Synthesis, wide: "pd.DataFrame", donors: Any, treated: Any, outcome: str, predictors: Any
) -> SyntheticControl:
    weights = pd.Series(np.asarray(found.weights), index=donors).sort_values(ascending=False)
    times = tuple(wide.columns)
    return SyntheticControl(found.effect, found.p_value, weights, found, times, treated, outcome, predictors)
