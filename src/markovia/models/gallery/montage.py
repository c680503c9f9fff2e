"""Composing one picture of several: which source each pixel comes from, with seams where nobody sees them.

Method: photomontage (Agarwala et al. 2004; seams as Kwatra et al. 2003). Pixel i has a label, its source; a seam between
neighbours p and q from source a to source b costs what the two sources differ there,

    |I_a(p) - I_b(p)| + |I_a(q) - I_b(q)|,

so it runs where they agree. Two sources are one minimum cut, the best montage; more are alpha-expansion moves until none
helps (Boykov, Veksler and Zabih 2001). Cost: pairs of neighbours times sources squared in memory, and a cut a move.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.factors.distributions.checked_numbers import as_numbers, finite_numbers
from markovia.models.crf.grid_crf import many_labels, neighbour_pairs, two_labels
from markovia.models.gallery.pixel_fields import field_energy, pixel_network
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import check_choice
from markovia.runtime.clock import Clock
from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True, eq=False, repr=False)
class Montage(InNotebooks):
    """A picture composed of several.

    Attributes
    ----------
    image
        The picture, in the shape of its sources.
    labels
        The number of each pixel's source, (rows, columns).
    energy
        The cost of all seams and of the sources taken, the mean difference of sources at a pixel counting one.
    exact
        Whether no montage costs less: proved for two sources.
    """

    image: Array
    labels: Ints
    energy: float
    exact: bool
    _field: tuple[Array, Ints, Ints, Array]

    def network(self) -> MarkovNetwork:
        """Return the Markov network of sources, whose weights are exponentials of negative costs, for any engine's bound."""
        scores, tails, heads, tables = self._field
        return pixel_network(scores.reshape(*self.labels.shape, -1), tails, heads, tables, "montage")

    def __repr__(self) -> str:
        rows, cols = self.labels.shape
        used = len(np.unique(self.labels))
        how = "exact" if self.exact else "alpha-expansion"
        return f"Montage({rows} x {cols} pixels of {used} source{'s' * (used > 1)}, energy {self.energy:.6g}, {how})"


def montage(
    images: Sequence[ArrayLike],
    choice: ArrayLike | None = None,
    *,
    costs: ArrayLike | None = None,
    neighbours: Literal[4, 8] = 4,
    time_limit: float | None = None,
) -> Montage:
    """Compose a picture of several that show the same place.

    Parameters
    ----------
    images
        Two or more arrays of one shape, (rows, columns) or (rows, columns, channels), in any unit; a pixel that a source
        does not have is NaN, as beside the overlap of a panorama.
    choice
        Whole numbers (rows, columns): the source that a pixel has to come from, -1 where any may.
    costs
        What taking a pixel from a source costs, (sources, rows, columns), beside seams, of which the mean difference of two
        sources at a pixel costs one; for instance minus its sharpness.
    neighbours
        4, or 8 with the diagonal ones.
    time_limit
        Seconds after which the best so far is kept, with a warning; Ctrl-C does the same.

    Raises
    ------
    InvalidArgument
        For sources that do not fit together, or a pixel that no source may give.

    Examples
    --------
    >>> left, right = np.full((2, 6), 10.0), np.full((2, 6), 10.0)
    >>> left[:, 4], right[:, 1] = 90.0, 70.0  # somebody walked by
    >>> choice = np.full((2, 6), -1)
    >>> choice[:, 0], choice[:, 5] = 0, 1
    >>> found = montage([left, right], choice)
    >>> found.labels.tolist(), found.energy, found.exact
    ([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]], 0.0, True)
    """
    sources = _sources(images)
    k, rows, cols = sources.shape[:3]
    check_choice("neighbours", neighbours, (4, 8))
    seen: Flags = np.asarray(~np.isnan(sources).any(axis=3))
    allowed = _allowed(seen, choice)
    scores = np.zeros((rows * cols, k))
    if costs is not None:
        given = finite_numbers(costs, "costs=")
        if given.shape != (k, rows, cols):
            raise InvalidArgument(f"costs= has shape {given.shape} but needs ({k}, {rows}, {cols})")
        scores -= given.reshape(k, -1).T
    tails, heads = neighbour_pairs(rows, cols, neighbours).T
    tables = -_seams(sources, seen, tails, heads)
    # what may not be taken costs more than all else at its pixel together could save
    most = float(np.ptp(scores, axis=1).max() - neighbours * tables.min(initial=0.0)) + 1.0
    scores = np.where(allowed.reshape(k, -1).T, scores, scores.max(axis=1, keepdims=True) - most)
    if k == 2:
        labels = two_labels(scores, tails, heads, tables)
    else:
        with Clock(time_limit, False) as clock:
            labels = many_labels(scores, tails, heads, tables, clock)
            if clock.over():
                warn_user("the search for seams was cut short; raise time_limit=", ConvergenceWarning)
    field = (scores, tails, heads, tables)
    image = sources.reshape(k, rows * cols, -1)[labels, np.arange(rows * cols)].reshape(np.shape(images[0]))
    return Montage(image, labels.reshape(rows, cols), field_energy(*field, labels), k == 2, field)


def _sources(images: Sequence[ArrayLike]) -> Array:
    """Return the sources, (sources, rows, columns, channels)."""
    arrays = [as_numbers(image, f"image {i}") for i, image in enumerate(images)]
    if len(arrays) < 2:
        raise InvalidArgument("a montage is made of two or more images")
    for i, array in enumerate(arrays):
        if array.shape != arrays[0].shape or array.ndim not in (2, 3) or not array.size:
            raise InvalidArgument(
                f"image {i} has shape {array.shape}; all need one shape, (rows, columns) or (rows, columns, channels)"
            )
        if np.isinf(array).any():
            raise InvalidArgument(f"image {i} has an infinite entry; a pixel that is not there is NaN")
    found = np.stack(arrays)
    return found[..., None] if found.ndim == 3 else found


def _allowed(seen: Flags, choice: ArrayLike | None) -> Flags:
    """Return which source may give which pixel, (sources, rows, columns)."""
    k, allowed = len(seen), seen
    if choice is not None:
        chosen = np.asarray(choice)
        right = chosen.shape == seen.shape[1:] and chosen.dtype.kind in "iu"
        if not right or not -1 <= chosen.min() <= chosen.max() < k:
            raise InvalidArgument(
                f"choice= has shape {seen.shape[1:]} and whole numbers from -1 (any source) to {k - 1}"
            )
        allowed = seen & ((chosen == -1) | (chosen == np.arange(k)[:, None, None]))
    empty = np.argwhere(~allowed.any(axis=0))
    if len(empty):
        raise InvalidArgument(
            f"no source may give the pixel in row {empty[0][0]}, column {empty[0][1]}; every image that may is NaN there"
        )
    return allowed


def _seams(sources: Array, seen: Flags, tails: Ints, heads: Ints) -> Array:
    """Return what a seam between two neighbours costs from each source to each, (pairs, sources, sources)."""
    k = len(sources)
    flat, known = sources.reshape(k, -1, sources.shape[3]), seen.reshape(k, -1)
    scale = float(np.nanmax(np.abs(flat), initial=0.0)) or 1.0
    flat = np.where(known[:, :, None], flat, 0.0) / scale  # squares of tiny units do not vanish
    differ = np.sqrt(((flat[:, None] - flat[None, :]) ** 2).sum(axis=3))
    both = known[:, None] & known[None, :]
    off = both & ~np.eye(k, dtype=bool)[:, :, None]
    typical = float(differ[off].mean()) if off.any() else 0.0
    differ = np.where(both, differ / (typical or 1.0), 0.0)
    here, there = differ[:, :, tails], differ[:, :, heads]
    # where one of the two pixels lacks one of the two sources, the other pixel counts twice
    total = here + there + np.where(both[:, :, tails], 0.0, there) + np.where(both[:, :, heads], 0.0, here)
    return np.ascontiguousarray(total.transpose(2, 0, 1))
