"""Dividing a picture into regions by a field in which all pixels are neighbours, by mean field.

Method, references and cost: `markovia.inference.variational.dense_grid`. Neighbours on a grid only smooth borders, and cut
thin parts off; pixels that look alike keep together over any distance here. The answer is a local optimum of a bound, not a
proved best labelling. Use `segmentation_model` where proofs count, and this where a picture has fine parts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import TooLarge
from markovia.inference.variational.dense_grid import DensePairs, dense_mean_field
from markovia.models.crf.grid_crf import standard_colours
from markovia.models.gallery.pixel_fields import label_log_likelihoods, pixel_network, read_pixels
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.shown import InNotebooks

MOST_PIXELS = 200
"""Pixels up to which all pairs are written down as a network."""


@dataclass(frozen=True, eq=False, repr=False)
class DenseSegmentation(InNotebooks):
    """Regions of a picture by mean field.

    Attributes
    ----------
    labels
        The most probable label of each pixel, (rows, columns).
    probabilities
        The beliefs, (rows, columns, labels).
    bound
        A lower bound on the log of the sum of all labellings' weights, of the field with the kernels that were used;
        `bounds` has it after each step, and it never falls.
    converged
        Whether it settled.
    filter
        "exact", or "bilateral grid" where sums over all pixels were approximated, as they are above 3000 pixels.
    """

    labels: Ints
    probabilities: Array
    bounds: tuple[float, ...]
    converged: bool
    filter: str
    _logs: Array
    _pairs: DensePairs

    @property
    def bound(self) -> float:
        """The bound at the end."""
        return self.bounds[-1]

    def network(self) -> MarkovNetwork:
        """Return the Markov network of all pairs, for other engines; of small pictures alone."""
        n, k = self.labels.size, self._logs.shape[2]
        if n > MOST_PIXELS:
            raise TooLarge(
                f"{n:,} pixels have {n * (n - 1) // 2:,} pairs; a network is written down up to {MOST_PIXELS}"
            )
        tails, heads = np.triu_indices(n, 1)
        tables = self._pairs.pull(np.eye(n))[tails, heads][:, None, None] * np.eye(k)
        return pixel_network(self._logs, tails, heads, tables, "dense segmentation")

    def __repr__(self) -> str:
        rows, cols = self.labels.shape
        end = "" if self.converged else ", not converged"
        return f"DenseSegmentation({rows} x {cols} pixels, {self.probabilities.shape[2]} labels, {self.filter} filter{end})"


def dense_segmentation(
    image: ArrayLike,
    means: ArrayLike | None = None,
    sigmas: ArrayLike = 1.0,
    *,
    log_likelihoods: ArrayLike | None = None,
    smoothness: float = 1.0,
    smooth_distance: float = 2.0,
    appearance: float = 4.0,
    colour_distance: float = 20.0,
    colour_range: float = 0.5,
    max_iter: int = 100,
    tol: float = 1e-6,
    time_limit: float | None = None,
    progress: bool | None = None,
) -> DenseSegmentation:
    """Divide a picture into regions, all pairs of pixels counting, by mean field.

    Parameters
    ----------
    image, means, sigmas, log_likelihoods
        As in `segmentation_model`.
    smoothness, smooth_distance
        How many nats a pixel gains, about, if all pixels near it have its label, and how far near is, in pixels.
    appearance, colour_distance, colour_range
        How many nats it gains if all pixels that are near and alike have its label, how far that reaches in pixels, and how
        different colours may be, in standard deviations of the picture.
    max_iter, tol
        Steps at most; the gain of the bound a pixel at which to stop.
    time_limit, progress
        Seconds at most, and whether to show a bar; Ctrl-C keeps what there is.

    Raises
    ------
    TooLarge
        For a picture of many channels whose colours are too many for a grid.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> row, column = np.mgrid[:24, :24]
    >>> cross = ((abs(row - 12) < 2) | (abs(column - 12) < 2)).astype(int)
    >>> picture = cross + rng.normal(scale=0.15, size=cross.shape)
    >>> guess = np.where(rng.random(cross.shape) < 0.25, 1 - cross, cross)  # a classifier that is often wrong
    >>> found = dense_segmentation(picture, log_likelihoods=np.where(guess[:, :, None] == [0, 1], 0.0, -1.1))
    >>> found, round(float((guess == cross).mean()), 2), round(float((found.labels == cross).mean()), 2)
    (DenseSegmentation(24 x 24 pixels, 2 labels, exact filter), 0.75, 1.0)
    """
    pixels = read_pixels(image)
    logs = label_log_likelihoods(pixels, means, sigmas, log_likelihoods)
    pairs = DensePairs.of(
        standard_colours(pixels), smoothness=smoothness, smooth_distance=smooth_distance, appearance=appearance,
        colour_distance=colour_distance, colour_range=colour_range,
    )  # fmt: skip
    beliefs, bounds, converged = dense_mean_field(
        logs.reshape(-1, logs.shape[2]), pairs, max_iter=max_iter, tol=tol, time_limit=time_limit, progress=progress
    )  # fmt: skip
    beliefs = beliefs.reshape(logs.shape)
    how = "exact" if pairs.exact else "bilateral grid"
    return DenseSegmentation(beliefs.argmax(axis=2), beliefs, bounds, converged, how, logs, pairs)
