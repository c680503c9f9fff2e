"""Markov random fields on images: removing noise from black-and-white pictures, and dividing pictures into regions.

Every pixel is a variable `x{row}_{column}`; neighbouring pixels like to agree. The best labelling is a most
probable configuration: `model.map(engine="graph-cut")` for two labels, `engine="alpha-expansion"` or `"trw-s"` for
more.
References: Geman and Geman (1984); Greig, Porteous and Seheult (1989); Boykov and Jolly (2001) for weights that
depend on contrast.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.errors import InvalidArgument
from markovia.factors.potentials import grids
from markovia.models.gallery.dense_segmentation import DenseSegmentation, dense_segmentation
from markovia.models.gallery.grab_cut import Cutout, grab_cut
from markovia.models.gallery.montage import Montage, montage
from markovia.models.gallery.pixel_fields import (
    label_log_likelihoods,
    pair_weights,
    pixel_network,
    read_pixels,
)
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.runtime.checks import check_level

__all__ = [
    "Cutout",
    "DenseSegmentation",
    "Montage",
    "denoising_model",
    "dense_segmentation",
    "grab_cut",
    "image_labels",
    "montage",
    "segmentation_model",
]  # fmt: skip


def denoising_model(image: ArrayLike, coupling: float = 0.7, noise: float = 0.1) -> MarkovNetwork:
    """Build a binary Markov random field whose best configuration is the clean image.

    The weight of a labelling is the product of `exp(coupling)` for each pair of equal neighbours and
    `exp(-coupling)` for each other one, and of `1 - noise` for each pixel that keeps its value and `noise` for each
    that does not.

    Parameters
    ----------
    image
        A two-dimensional array of 0 and 1 (or False and True), the noisy image.
    coupling
        How much neighbours like to agree; positive for `engine="graph-cut"`.
    noise
        The probability that a pixel was flipped, between 0 and 1.

    Examples
    --------
    >>> model = denoising_model([[1, 1, 1], [1, 0, 1], [1, 1, 1]], coupling=1.0, noise=0.1)
    >>> image_labels(model.map(engine="graph-cut"), (3, 3)).tolist()
    [[1, 1, 1], [1, 1, 1], [1, 1, 1]]
    """
    pixels = np.asarray(image)
    if pixels.ndim != 2 or not pixels.size or not np.isin(pixels, (0, 1)).all():
        raise InvalidArgument("the image is a two-dimensional array of 0 and 1")
    check_level("noise", noise)
    rows, cols = pixels.shape
    signs = 2.0 * pixels - 1.0
    field = 0.5 * float(np.log((1 - noise) / noise)) * signs
    factors = grids.ising_grid(rows, cols, coupling, field, states=(0, 1))
    return MarkovNetwork(grids.grid_variables(rows, cols, factors), factors, name="denoising")


def segmentation_model(
    image: ArrayLike,
    means: ArrayLike | None = None,
    sigmas: ArrayLike = 1.0,
    *,
    log_likelihoods: ArrayLike | None = None,
    coupling: float = 1.0,
    contrast: float = 0.0,
    neighbours: Literal[4, 8] = 4,
) -> MarkovNetwork:
    """Build a Potts model whose best configuration divides an image into regions, one label for each kind of region.

    Neighbouring pixels i and j with the same label weigh `exp(w)`, where `w = coupling / distance * exp(-contrast *
    (I_i - I_j)^2 / (2 v))` and v is the mean of `(I_i - I_j)^2` over all pairs of neighbours. Log likelihoods may differ as
    much as they like: a label that is exp(650) times less likely than another one at its pixel counts as just that.

    Parameters
    ----------
    image
        An array of shape (rows, columns), or (rows, columns, channels).
    means, sigmas
        The mean of each label's intensity (shape (labels,), or (labels, channels)) and the standard deviations, one
        number or one a label: pixels are Gaussian given their label.
    log_likelihoods
        Instead of means: the log likelihood of each label at each pixel, shape (rows, columns, labels).
    coupling
        How much neighbours like to have the same label, zero or more.
    contrast
        Zero for the same weight everywhere; larger values make borders cheap where the image changes.
    neighbours
        4, or 8 with the diagonal ones.

    Examples
    --------
    >>> model = segmentation_model([[0.1, 0.2, 0.9], [0.0, 0.7, 1.1]], means=[0.0, 1.0], sigmas=0.3, coupling=0.5)
    >>> image_labels(model.map(engine="graph-cut"), (2, 3)).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    pixels = read_pixels(image)
    tails, heads, weights = pair_weights(pixels, coupling, contrast, neighbours)
    logs = label_log_likelihoods(pixels, means, sigmas, log_likelihoods)
    different, which = np.unique(weights, return_inverse=True)
    tables = different[:, None, None] * np.eye(logs.shape[2])
    return pixel_network(logs, tails, heads, tables, "segmentation", which)


def image_labels(found: Mapping[str, Any], shape: tuple[int, int]) -> NDArray[Any]:
    """Return the labels of an explanation (or any mapping from `x{row}_{column}` to a label) as an array.

    Examples
    --------
    >>> image_labels({"x0_0": 1, "x0_1": 0}, (1, 2)).tolist()
    [[1, 0]]
    """
    rows, cols = shape
    names = grids.grid_names(rows, cols)
    if any(n not in found for n in names) or len(found) != len(names):
        raise InvalidArgument(f"the labels are not those of an image of {rows} x {cols} pixels")
    return np.array([found[n] for n in names]).reshape(rows, cols)
