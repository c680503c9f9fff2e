"""Six months of rain in Vancouver, nine days of each: a table that fits on a slide, for models of rainy days."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MONTHS = ("000110011", "100000100", "111111111", "111100111", "000011000", "011000011")
"""A month each, 1 for a day with rain."""


def rain_months() -> "pd.DataFrame":
    """Return six months in Vancouver, a row each, whose first nine days (`day1` ... `day9`) are "dry" or "rain".

    Examples
    --------
    >>> frame = rain_months()
    >>> frame.shape, int((frame == "rain").to_numpy().sum())
    ((6, 9), 28)
    """
    import pandas as pd

    days = [f"day{j}" for j in range(1, 10)]
    return pd.DataFrame([["rain" if c == "1" else "dry" for c in month] for month in MONTHS], columns=days)
