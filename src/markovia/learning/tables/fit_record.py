"""What a fit did: how, on how much data, how well, and what it could not see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log, nan
from typing import Any

from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True)
class Fit(InNotebooks):
    """The provenance of fitted parameters; prints as a short report.

    Attributes
    ----------
    method
        "counting", "em", or what else estimated them.
    n_rows, total
        Rows used, and the sum of their weights.
    log_likelihood
        Of the data under the fitted parameters, in nats.
    by_family
        The log likelihood of each node given its parents; they sum to `log_likelihood` for complete data, and to the
        expected complete log likelihood otherwise.
    n_parameters
        Free parameters that were estimated.
    missing_cells
        Cells of the fitted columns without a value.
    unseen_rows
        For each node the number of parent configurations that no row shows (without a prior they are uniform).
    converged, iterations, history
        For iterative methods: whether the tolerance was reached, the steps, and the objective after each.
    seconds
        Wall-clock time.
    details
        More, by method.
    """

    method: str
    n_rows: int
    total: float
    log_likelihood: float
    by_family: Mapping[str, float]
    n_parameters: int
    missing_cells: int = 0
    unseen_rows: Mapping[str, int] = field(default_factory=dict)
    converged: bool = True
    iterations: int = 1
    history: Sequence[float] = ()
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bic(self) -> float:
        """Log likelihood minus `log(total) / 2` a parameter; larger is better. NaN without rows."""
        if not self.total > 0:
            return nan
        return self.log_likelihood - 0.5 * log(self.total) * self.n_parameters

    @property
    def aic(self) -> float:
        """Log likelihood minus one a parameter; larger is better."""
        return self.log_likelihood - self.n_parameters

    def __str__(self) -> str:
        lines = [
            f"fitted by {self.method} on {self.n_rows:,} rows in {self.seconds:.3g} s",
            f"log likelihood {self.log_likelihood:.6f} ({self.log_likelihood / max(self.total, 1e-300):.6f} a row), "
            f"{self.n_parameters:,} parameters, BIC {self.bic:.3f}"
            if self.total > 0
            else "no rows",
        ]
        if self.missing_cells:
            lines.append(f"{self.missing_cells:,} cells missing")
        if self.iterations > 1 or not self.converged:
            state = "converged" if self.converged else "did NOT converge"
            lines.append(f"{state} after {self.iterations} iterations")
        unseen = sum(self.unseen_rows.values())
        if unseen:
            tables = len(self.unseen_rows)
            lines.append(
                f"never seen: {unseen:,} parent configuration{'s' * (unseen > 1)} in {tables} table{'s' * (tables > 1)}"
            )
        return "\n".join(lines)
