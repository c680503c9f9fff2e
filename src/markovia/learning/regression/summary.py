"""The table of a fitted generalised linear model: coefficients, standard errors, tests and intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.runtime.array_types import Array


@dataclass(frozen=True)
class GlmSummary:
    """What a fitted model says about each coefficient; prints as a table.

    Attributes
    ----------
    names
        The coefficients, in the order of the covariance.
    coef, standard_error, statistic, p_value, lower, upper
        One number each; the statistic is `coef / standard_error`.
    test
        "z", or "t" where the dispersion was estimated.
    level
        The probability of the interval.
    header
        Facts about the whole fit.
    note
        What the standard errors mean where they are not the usual ones.
    """

    names: tuple[str, ...]
    coef: Array
    standard_error: Array
    statistic: Array
    p_value: Array
    lower: Array
    upper: Array
    test: str
    level: float
    header: dict[str, Any]
    note: str = ""

    def to_pandas(self) -> Any:
        """Return the table as a DataFrame, one row a coefficient."""
        import pandas as pd

        columns = {
            "coef": self.coef,
            "se": self.standard_error,
            self.test: self.statistic,
            "p": self.p_value,
            "lower": self.lower,
            "upper": self.upper,
        }
        return pd.DataFrame(columns, index=list(self.names))

    def __str__(self) -> str:
        lines = [", ".join(f"{k} {_shown(v)}" for k, v in self.header.items())]
        width = max(4, *(len(n) for n in self.names)) if self.names else 4
        share = f"{100 * self.level:g}%"
        titles = ["coef", "se", self.test, "p", f"lower {share}", f"upper {share}"]
        lines.append(" " * width + "".join(f"{t:>12}" for t in titles))
        columns = (self.coef, self.standard_error, self.statistic, self.p_value, self.lower, self.upper)
        for i, name in enumerate(self.names):
            lines.append(f"{name:<{width}}" + "".join(f"{_shown(float(c[i])):>12}" for c in columns))
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)

    __repr__ = __str__


def coefficient_table(
    names: tuple[str, ...],
    coef: Array,
    covariance: Array,
    dof: float | None,
    level: float,
    header: dict[str, Any],
    note: str,
) -> GlmSummary:
    """Return the summary of coefficients with the given covariance; `dof` chooses Student's t over the normal."""
    from scipy.stats import norm, t

    law = norm if dof is None else t(max(dof, 1e-9))
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.sqrt(np.diag(covariance))
        statistic = coef / errors
    half = float(law.ppf(0.5 + level / 2.0)) * errors
    return GlmSummary(
        names,
        coef,
        errors,
        statistic,
        2.0 * np.asarray(law.sf(np.abs(statistic))),
        coef - half,
        coef + half,
        "z" if dof is None else "t",
        level,
        header,
        note,
    )


def _shown(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
