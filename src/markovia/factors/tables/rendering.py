"""Tables as text and HTML: one aligned line an entry, as factors, conditional tables and posteriors print."""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from markovia.factors.tables.variable import Variable
from markovia.runtime.shown import SHOWN, aligned, html_table


def render_table(
    variables: Sequence[Variable], values: NDArray[np.float64], label: str, limit: int = 40
) -> str:
    """Return an aligned text table, one line an entry, shortened after `limit` lines."""
    header = [v.name for v in variables] + [label]
    text = aligned(header, _lines(variables, values, limit), left=len(variables))
    if values.size > limit:
        text += f"\n... {values.size - limit:,} more of {prod(values.shape):,} entries"
    return text


def table_html(
    variables: Sequence[Variable], values: NDArray[np.float64], label: str, *, title: str = "", note: str = ""
) -> str:
    """Return the same as HTML."""
    return html_table(
        [v.name for v in variables] + [label], _lines(variables, values, SHOWN + 1), title=title, note=note
    )


def _lines(variables: Sequence[Variable], values: NDArray[np.float64], limit: int) -> list[list[str]]:
    states = [v.states for v in variables]
    return [
        [*(str(s[k]) for s, k in zip(states, i, strict=True)), f"{values[i]:.6g}"]
        for i, _ in zip(np.ndindex(*values.shape), range(limit), strict=False)
    ]
