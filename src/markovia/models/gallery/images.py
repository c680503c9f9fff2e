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
from markovia.factors.potentials.potentials import exponential, finite
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_level, check_number

__all__ = ["denoising_model", "image_labels", "segmentation_model"]

TINY = 1e-12


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
    return _network(rows, cols, factors, "denoising")


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
    (I_i - I_j)^2 / (2 v))` and v is the mean of `(I_i - I_j)^2` over all pairs of neighbours.

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
    pixels = finite(image, "the image")
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or not pixels.size:
        raise InvalidArgument("the image has shape (rows, columns) or (rows, columns, channels)")
    check_choice("neighbours", neighbours, (4, 8))
    for what, number in (("coupling", coupling), ("contrast", contrast)):
        check_number(what, number)
    logs = _log_likelihoods(pixels, means, sigmas, log_likelihoods)
    rows, cols, n_labels = logs.shape
    states = Variable("x", n_labels).states
    variables = [Variable.of(n, states) for n in grids.grid_names(rows, cols)]
    table = exponential(logs.reshape(-1, n_labels) - logs.reshape(-1, n_labels).max(axis=1, keepdims=True))
    table.setflags(write=False)
    factors = Factor.many(zip(variables), table)
    tails, heads, weights = _weights(pixels, float(coupling), float(contrast), neighbours)
    different, which = np.unique(weights, return_inverse=True)
    pairs = exponential(different[:, None, None] * np.eye(n_labels))
    pairs.setflags(write=False)
    tables, at = list(pairs), variables.__getitem__
    scopes = zip(map(at, tails.tolist()), map(at, heads.tolist()), strict=True)
    factors += Factor.many(scopes, map(tables.__getitem__, which.ravel().tolist()))
    return _network(rows, cols, factors, "segmentation")


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


def _log_likelihoods(
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


def _weights(
    pixels: Array, coupling: float, contrast: float, neighbours: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Return the pairs of neighbours and the weight of each."""
    rows, cols = pixels.shape[:2]
    place = np.arange(rows * cols).reshape(rows, cols)
    pairs = [(place[:, :-1], place[:, 1:], 1.0), (place[:-1], place[1:], 1.0)]
    if neighbours == 8:
        pairs += [
            (place[:-1, :-1], place[1:, 1:], np.sqrt(2.0)),
            (place[:-1, 1:], place[1:, :-1], np.sqrt(2.0)),
        ]
    tails = np.concatenate([a.ravel() for a, _, _ in pairs])
    heads = np.concatenate([b.ravel() for _, b, _ in pairs])
    far = np.concatenate([np.full(a.size, d) for a, _, d in pairs])
    flat = pixels.reshape(rows * cols, -1)
    steps = ((flat[tails] - flat[heads]) ** 2).sum(axis=1)
    typical = float(steps.mean()) if len(steps) else 0.0
    return tails, heads, coupling / far * np.exp(-contrast * steps / max(2 * typical, TINY))


def _network(rows: int, cols: int, factors: list[Factor], name: str) -> MarkovNetwork:
    return MarkovNetwork(grids.grid_variables(rows, cols, factors), factors, name=name)
