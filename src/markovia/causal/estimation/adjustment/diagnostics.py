"""Whether a comparison is fair: overlap of the propensities, balance of the covariates, effective sample sizes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.shown import InNotebooks, aligned

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SMALL = 0.1
"""A standardised difference below this is called balanced."""
OUTSIDE = 0.01
"""A probability of treatment below this is called extreme."""


@dataclass(frozen=True)
class Overlap(InNotebooks):
    """Probabilities of being in either arm.

    Attributes
    ----------
    low, high
        The smallest and largest probability of the treated arm.
    extreme
        The share of rows whose probability of some arm is below one in a hundred.
    effective
        Kish's effective number of rows of each arm under the weights.
    model
        Which model says so, where the method itself needs no model of the treatment; empty for the one that was used.
    """

    low: float
    high: float
    extreme: float
    effective: tuple[float, ...]
    model: str = ""

    @property
    def good(self) -> bool:
        """Whether next to no rows have extreme probabilities."""
        return self.extreme <= 0.01

    def __str__(self) -> str:
        verdict = (
            "good"
            if self.good
            else f"poor: {self.extreme:.1%} of rows have a probability below {OUTSIDE:g} of an arm"
        )
        sizes = ", ".join(f"{size:,.0f}" for size in self.effective)
        model = f" {self.model}" if self.model else ""
        return f"{verdict}; probabilities{model} {self.low:.3f} to {self.high:.3f}; effective rows {sizes}"


@dataclass(frozen=True)
class Balance(InNotebooks):
    """Standardised differences of means between two arms, before and after weighting; `plot()` is the love plot."""

    columns: tuple[str, ...]
    before: Array
    after: Array | None

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row a covariate."""
        import pandas as pd

        return pd.DataFrame(
            {"before": self.before, "after": self.after}, index=pd.Index(self.columns, name="covariate")
        )

    @property
    def worst(self) -> tuple[float, float]:
        """The largest differences before and after, without sign; NaN where there is none."""
        both = (self.before, self.after)
        return tuple(float(np.abs(v).max()) if v is not None and len(v) else float("nan") for v in both)  # type: ignore[return-value]

    def __str__(self) -> str:
        after = np.full(len(self.before), np.nan) if self.after is None else self.after
        rows = [
            [c, f"{b:+.3f}", f"{a:+.3f}"] for c, b, a in zip(self.columns, self.before, after, strict=True)
        ]
        return aligned(["covariate", "before", "after"], rows)

    def plot(self, *, ax: Any = None) -> "Axes":
        """Draw the differences before and after."""
        return ports.draw("plot-balance", self, ax=ax)


def overlap(codes: Ints, probabilities: Array, weights: Array, treated: int, model: str = "") -> Overlap:
    """Return how the propensities of the arms overlap."""
    p = probabilities[:, treated]
    sizes = []
    for a in range(probabilities.shape[1]):
        own = weights[codes == a]
        sizes.append(float(own.sum() ** 2 / max(float(own @ own), 1e-300)))
    extreme = float((probabilities.min(axis=1) < OUTSIDE).mean())
    return Overlap(float(p.min()), float(p.max()), extreme, tuple(sizes), model)


def balance(
    codes: Ints,
    covariates: Array,
    columns: tuple[str, ...],
    weights: Array | None,
    treated: int,
    control: int,
) -> Balance:
    """Return standardised differences of the covariates' means; the unit is the pooled standard deviation before."""
    arms = [covariates[codes == treated], covariates[codes == control]]
    unit = np.sqrt(np.maximum(sum(a.var(axis=0) for a in arms) / 2, 1e-300))
    before = (arms[0].mean(axis=0) - arms[1].mean(axis=0)) / unit
    if weights is None:
        return Balance(columns, before, None)
    means = []
    for arm in (treated, control):
        w = weights[codes == arm]
        means.append(w @ covariates[codes == arm] / max(float(w.sum()), 1e-300))
    return Balance(columns, before, (means[0] - means[1]) / unit)
