"""Tables of what follows a history of symbols, from counts, with pseudo-counts and shorter histories to fall back on.

    p(x | h) = (n(h, x) + smoothing + back_off p(x | h')) / (n(h) + ...)

where h' is h without its oldest symbol, and so on down to no history at all (MacKay and Peto, 1995). A history that was
never seen has the law of the next shorter one. Cost: one pass over the steps for each length of history.
"""

import numpy as np

from markovia.errors import TooLarge
from markovia.runtime.array_types import Array, Ints

MOST_CELLS = 2**26


def windows(codes: Ints, offsets: Ints, n: int, width: int) -> tuple[Ints, Ints]:
    """Return the windows of a width that lie in a sequence and miss nothing: their places and their last steps.

    Codes are 0 ... n-1, others are gaps. A window's place counts its symbols as digits, the oldest first.
    """
    since = np.arange(len(codes)) - np.repeat(offsets[:-1], np.diff(offsets))
    ends = np.flatnonzero(since >= width - 1)
    places = np.zeros(len(ends), dtype=np.int64)
    whole = np.ones(len(ends), dtype=bool)
    for back in range(width - 1, -1, -1):
        here = codes[ends - back]
        whole &= (here >= 0) & (here < n)
        places = places * n + here
    return places[whole], ends[whole]


def history_table(
    codes: Ints, offsets: Ints, weights: Array, n: int, order: int, smoothing: float, back_off: float
) -> Array:
    """Return p(next symbol | the last `order` symbols), (symbols, ..., symbols), from weighted sequences.

    Examples
    --------
    >>> history_table(np.array([0, 0, 1, 0, 0]), np.array([0, 5]), np.ones(1), 2, 1, 0.0, 0.0).round(3).tolist()
    [[0.667, 0.333], [1.0, 0.0]]
    """
    require_room(n, order)
    by_step = np.repeat(weights, np.diff(offsets))
    shorter = np.full(n, 1.0 / n)
    for k in range(order + 1):
        places, ends = windows(codes, offsets, n, k + 1)
        counts = _counted(places, by_step[ends], n, k)
        shorter = smoothed(counts, shorter, smoothing, back_off if k else 0.0)
    return shorter


def start_table(codes: Ints, offsets: Ints, weights: Array, n: int, order: int, smoothing: float) -> Array:
    """Return the law of the first `order` symbols, (symbols, ..., symbols); shorter sequences count as far as they go."""
    found: Array = np.ones(())
    for k in range(order):
        places, ends = windows(codes, offsets, n, k + 1)
        sequence = np.searchsorted(offsets, ends, side="right") - 1
        first = ends - k == offsets[sequence]
        counts = _counted(places[first], weights[sequence[first]], n, k)
        even = np.full((n,) * (k + 1), 1.0 / n)
        found = np.asarray(found[..., None] * smoothed(counts, even, smoothing, 0.0))
    return found


def _counted(places: Ints, weights: Array, n: int, k: int) -> Array:
    found = np.bincount(places, weights, n ** (k + 1)).astype(np.float64)
    return found.reshape((n,) * (k + 1))


def smoothed(counts: Array, shorter: Array, smoothing: float, back_off: float) -> Array:
    """Return counts as distributions along the last axis; rows without counts have the law of the shorter history."""
    more = counts + smoothing + back_off * shorter
    size = more.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(size > 0.0, more / np.where(size > 0.0, size, 1.0), shorter))


def require_room(n: int, order: int) -> None:
    """Refuse tables that are too large."""
    if n ** (order + 1) > MOST_CELLS:
        raise TooLarge(
            f"a chain of order {order} on {n} symbols has a table of {n ** (order + 1):,} cells, over the limit of "
            f"{MOST_CELLS:,}; take a lower order="
        )
