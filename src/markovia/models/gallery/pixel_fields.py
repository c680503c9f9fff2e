"""Pictures as numbers, and how much neighbouring pixels like to agree: what models of images share.

The weight of a pair falls with its contrast beside that of the whole picture (Boykov and Jolly 2001), so a picture in
another unit has the same weights.
"""

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.potentials import grids
from markovia.factors.potentials.potentials import exponential, finite
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.models.crf.grid_crf import neighbour_pairs, standard_colours
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice, check_number

LEAST_LOG = -650.0
"""The least log weight beside the largest one at a pixel that has an exponential."""


def read_pixels(image: ArrayLike) -> Array:
    """Return a picture as finite numbers of shape (rows, columns, channels)."""
    pixels = finite(image, "the image")
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or not pixels.size:
        raise InvalidArgument("the image has shape (rows, columns) or (rows, columns, channels)")
    return pixels


def pair_weights(
    pixels: Array, coupling: float, contrast: float, neighbours: int
) -> tuple[Ints, Ints, Array]:
    """Return the pairs of neighbours, and `coupling / distance * exp(-contrast * (I_i - I_j)^2 / (2 v))` of each.

    v is the mean of `(I_i - I_j)^2` over all pairs.

    Examples
    --------
    >>> tails, heads, weights = pair_weights(np.array([[[0.0], [1.0]]]), 2.0, 1.0, 4)
    >>> tails.tolist(), heads.tolist(), weights.round(3).tolist()
    ([0], [1], [1.213])
    """
    check_choice("neighbours", neighbours, (4, 8))
    for what, number in (("coupling", coupling), ("contrast", contrast)):
        check_number(what, number)
    rows, cols = pixels.shape[:2]
    tails, heads = neighbour_pairs(rows, cols, neighbours).T
    straight = rows * (cols - 1) + (rows - 1) * cols  # those along rows and columns come first
    far = np.where(np.arange(len(tails)) < straight, 1.0, np.sqrt(2.0))
    flat = standard_colours(pixels).reshape(rows * cols, -1)
    steps = ((flat[tails] - flat[heads]) ** 2).sum(axis=1)
    typical = float(steps.mean()) if len(steps) else 0.0
    return tails, heads, coupling / far * np.exp(-contrast * steps / (2 * typical or 1.0))


def pixel_network(
    scores: Array, tails: Ints, heads: Ints, tables: Array, name: str, which: Ints | None = None
) -> MarkovNetwork:
    """Return the Markov network of log scores (rows, columns, labels) and of log tables, one a pair or `which` each has.

    Scores lower than `LEAST_LOG` below the best one at their pixel are raised to that: where pairs weigh less than this
    together, no best labelling has them, and none changes.
    """
    rows, cols, k = scores.shape
    states = Variable("x", k).states
    variables = [Variable.of(n, states) for n in grids.grid_names(rows, cols)]
    gaps = scores.reshape(-1, k) - scores.reshape(-1, k).max(axis=1, keepdims=True)
    if 8.0 * float(np.abs(tables).max(initial=0.0)) < -LEAST_LOG:
        gaps = np.maximum(gaps, LEAST_LOG)
    factors = Factor.many(zip(variables), exponential(gaps))
    pairs, at = list(exponential(tables)), variables.__getitem__
    scopes = zip(map(at, tails.tolist()), map(at, heads.tolist()), strict=True)
    own = range(len(pairs)) if which is None else which.ravel().tolist()
    factors += Factor.many(scopes, map(pairs.__getitem__, own))
    return MarkovNetwork(grids.grid_variables(rows, cols, factors), factors, name=name)


def field_energy(scores: Array, tails: Ints, heads: Ints, tables: Array, labels: Ints) -> float:
    """Return minus the log weight of labels, of scores (pixels, labels) and a table a pair."""
    pairs = tables[np.arange(len(tails)), labels[tails], labels[heads]]
    return 0.0 - float(np.take_along_axis(scores, labels[:, None], axis=1).sum() + pairs.sum())


def label_log_likelihoods(
    pixels: Array, means: ArrayLike | None, sigmas: ArrayLike, log_likelihoods: ArrayLike | None
) -> Array:
    """Return the log likelihood of each label at each pixel."""
    rows, cols, channels = pixels.shape
    if log_likelihoods is not None and means is None:
        logs = finite(log_likelihoods, "log_likelihoods")
        if logs.ndim != 3 or logs.shape[:2] != (rows, cols) or logs.shape[2] < 1:
            raise InvalidArgument(
                f"log_likelihoods= has shape {logs.shape} but needs ({rows}, {cols}, number of labels)"
            )
        return logs
    if means is None or log_likelihoods is not None:
        raise InvalidArgument("give either means= (and sigmas=) or log_likelihoods=")
    centres = finite(means, "means")
    if centres.ndim == 1:
        centres = centres[:, None]
    if centres.ndim != 2 or not len(centres) or centres.shape[1] not in (1, channels):
        raise InvalidArgument(f"means= has one number a label, or one a label and channel ({channels})")
    widths = finite(sigmas, "sigmas")
    if widths.ndim > 1 or (widths.ndim == 1 and len(widths) != len(centres)) or np.any(widths <= 0):
        raise InvalidArgument("sigmas= is one positive number, or one a label")
    spread = np.broadcast_to(widths, (len(centres),))
    squares = ((pixels[:, :, None, :] - centres) ** 2).sum(axis=3)
    found: Array = -0.5 * squares / spread**2 - channels * np.log(spread)
    return found
