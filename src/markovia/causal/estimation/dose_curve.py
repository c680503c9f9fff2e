"""The answer of `Effect.dose_response`: a curve of mean outcomes by the dose of a treatment."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.causal.estimation.adjustment.dose_response import DoseCurve, dose_difference
from markovia.causal.estimation.adjustment.estimates import Estimate, estimate
from markovia.errors import InvalidArgument
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import pd
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class DoseResponse(InNotebooks):
    """The mean outcome had everybody received a dose; prints as a table, and `plot()` draws the curve.

    Attributes
    ----------
    treatment, outcome, doses
        Names, and the doses.
    curve
        Values, influence functions and bandwidth.
    level
        Of the intervals, which hold at each dose by itself.
    """

    treatment: str
    outcome: str
    doses: Array
    curve: DoseCurve
    level: float
    clusters: Any = field(default=None, repr=False)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a row for each dose: the mean outcome, its standard error and interval."""
        found = [
            estimate(float(v), own, clusters=self.clusters)
            for v, own in zip(self.curve.values, self.curve.influence.T, strict=True)
        ]
        rows = [[e.value, e.standard_error, *e.interval(self.level)] for e in found]
        index = pd.Index(self.doses, name=self.treatment)
        return pd.DataFrame(rows, index=index, columns=["value", "standard_error", "low", "high"])

    def difference(self, treated: float, control: float) -> Estimate:
        """Return the effect of one of the doses against another, with its error."""
        places: list[int] = []
        for dose in (treated, control):
            near = np.flatnonzero(np.isclose(self.doses, dose))
            if not len(near):
                raise InvalidArgument(
                    f"the curve has no dose {dose:g}; ask for it with dose_response(doses=[{control:g}, {treated:g}])"
                )
            places.append(int(near[0]))
        return dose_difference(self.curve, places[0], places[1], self.clusters)

    def __str__(self) -> str:
        head = f"mean {self.outcome} by the dose of {self.treatment} ({self.level:.0%} intervals)"
        return f"{head}\n{self.to_pandas().to_string(float_format='{:.4g}'.format)}"

    def plot(self, *, ax: Any = None) -> "Axes":
        """Draw the curve with its intervals."""
        return ports.draw("plot-dose-response", self, ax=ax)
