"""Tables as text: one aligned line an entry, as factors, conditional tables and posteriors print."""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from markovia.factors.tables.variable import Variable


def render_table(
    variables: Sequence[Variable], values: NDArray[np.float64], label: str, limit: int = 40
) -> str:
    """Return an aligned text table, one line an entry, shortened after `limit` lines."""
    header = [v.name for v in variables] + [label]
    states = [v.states for v in variables]
    lines = [
        [*(str(s[k]) for s, k in zip(states, i, strict=True)), f"{values[i]:.6g}"]
        for i, _ in zip(np.ndindex(*values.shape), range(limit), strict=False)
    ]
    widths = [max(len(row[c]) for row in [header, *lines]) for c in range(len(header))]
    last = len(header) - 1
    text = [
        "  ".join(
            cell.rjust(w) if c == last else cell.ljust(w)
            for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in [header, *lines]
    ]
    if values.size > limit:
        text.append(f"... {values.size - limit:,} more of {prod(values.shape):,} entries")
    return "\n".join(text)
