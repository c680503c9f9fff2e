"""The summary of a fitted model of sequences: what it is, how well it fits, and its values with what is known about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.runtime.shown import SHOWN, aligned, html_table

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95
COLUMNS = ("value", "standard error", "z", "p", "lower", "upper")


@dataclass(frozen=True, repr=False)
class SeriesSummary:
    """A table that prints, shows itself in notebooks, and is a frame.

    Attributes
    ----------
    title
        What the model is.
    facts
        What is known of it as a whole: how many numbers it was learned from, the log likelihood, criteria, iterations.
    values, standard_errors
        Its coefficients by name, and their standard errors; NaN where there are none.
    """

    title: str
    facts: Mapping[str, Any]
    values: Mapping[str, float]
    standard_errors: Mapping[str, float]

    @classmethod
    def of(
        cls, title: str, facts: Mapping[str, Any], values: Mapping[str, Any], errors: Mapping[str, Any]
    ) -> "SeriesSummary":
        """Return the summary of arrays by name, one coefficient an entry: `transition[0, 1]`."""
        flat = {place: x for name, array in values.items() for place, x in _entries(name, array)}
        known = {place: x for name, array in errors.items() for place, x in _entries(name, array)}
        said = {name: fact for name, fact in facts.items() if fact is not None}
        return cls(title, said, flat, {name: known.get(name, np.nan) for name in flat})

    def to_pandas(self) -> "pd.DataFrame":
        """Return a row a coefficient: its value, standard error, z, p (that it is zero) and 95% interval.

        Examples
        --------
        >>> SeriesSummary("walk", {}, {"drift": 1.0}, {"drift": 0.5}).to_pandas().round(3).values.tolist()
        [[1.0, 0.5, 2.0, 0.046, 0.02, 1.98]]
        """
        import pandas as pd
        from scipy.special import ndtr, ndtri

        value, error = (
            np.array(list(part.values()), dtype=np.float64) for part in (self.values, self.standard_errors)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            z = value / error
        reach = float(ndtri(0.5 + LEVEL / 2)) * error
        columns = (value, error, z, 2 * ndtr(-np.abs(z)), value - reach, value + reach)
        return pd.DataFrame(
            dict(zip(COLUMNS, columns, strict=True)), index=pd.Index(list(self.values), name="coefficient")
        )

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        frame = self.to_pandas()
        if not np.isfinite(frame["standard error"]).any():
            frame = frame[["value"]]
        rows = [
            [str(name), *(_number(x) for x in row)]
            for name, row in zip(frame.index, frame.values, strict=True)
        ]
        return ["", *frame.columns], rows

    def __str__(self) -> str:
        header, rows = self._rows()
        facts = aligned(["", ""], [[name, _number(fact)] for name, fact in self.facts.items()]).strip("\n")
        more = [f"... and {len(rows) - SHOWN:,} more"] * (len(rows) > SHOWN)
        return "\n".join(
            [self.title, *([facts] if self.facts else []), "", aligned(header, rows[:SHOWN]), *more]
        )

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        header, rows = self._rows()
        facts = html_table([], [[name, _number(fact)] for name, fact in self.facts.items()], title=self.title)
        return facts + html_table(header, rows)


def _number(x: Any) -> str:
    if isinstance(x, bool | np.bool_):
        return "yes" if x else "no"
    if not isinstance(x, float | np.floating):
        return str(x)
    value = float(x)
    return "" if np.isnan(value) else f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.1f}"


def _entries(name: str, array: Any) -> Iterable[tuple[str, float]]:
    try:
        found = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):  # a value that is no array of numbers has no row
        return
    for place, x in np.ndenumerate(found):
        yield (f"{name}[{', '.join(map(str, place))}]" if place else name), float(x)
