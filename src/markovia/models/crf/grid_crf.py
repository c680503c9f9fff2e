"""Conditional random fields on images: segmentation trained by pseudo-likelihood and decoded by graph cuts.

Every pixel is a node with features; neighbouring pixels like to agree, the more so the larger the learned weight
times the edge's features, such as `1 / (1 + |x_i - x_j|)`, which is small across borders. With edge weights of zero
or more (`attractive`) the best labelling is a minimum cut for two labels and alpha-expansion finds a good one for
more. Pseudo-likelihood (Besag 1975) makes training a convex problem without any inference. References: Kumar and
Hebert (2003); Boykov, Veksler and Zabih (2001). Cost of one gradient: pixels times labels times (features +
neighbours); no loop over pixels in Python. Use it for images; `markovia.images.segmentation_model` is the same model
with weights given by hand.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import as_numbers, finite_numbers
from markovia.factors.potentials import grids
from markovia.inference.map_bounds.flow_network import FlowNetwork
from markovia.inference.variational.dense_grid import DensePairs, dense_mean_field
from markovia.learning.conditional_fields.marginals import Method
from markovia.learning.conditional_fields.objective import EdgeWeights
from markovia.learning.conditional_fields.reading import FieldGraph, Inputs
from markovia.models.crf.base import LARGEST_LOG, Scored, largest_range
from markovia.models.crf.crf import CRF
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Choice, Count, Positive
from markovia.runtime.clock import Clock

EdgeFeatures = Literal["constant", "contrast"]


@dataclass(eq=False, repr=False, kw_only=True)
class GridCRF(CRF):
    """A conditional random field on images.

    X is a list of images, arrays of shape (rows, columns) or (rows, columns, features); Y a list of label images of shape
    (rows, columns). Sizes may differ.

    Parameters
    ----------
    edge_features
        "constant": the weight 1 for every pair of neighbours; "contrast": the constant and `1 / (1 + |x_i - x_j|)`
        (Euclidean over `contrast_channels`); or a function of the two arrays (pairs, features) of the ends' features
        that returns an array (pairs, edge features).
    contrast_channels
        The features that "contrast" looks at, by number; None for all.
    neighbours
        4, or 8 with the diagonal ones.
    edge_weights, attractive, C, l1, fit_intercept, damping, solver, max_iter, tol
        As in `CRF`; edges attract by default.
    edge_C
        The penalty of edge weights, see `CRF`. Where labels are very smooth, pseudo-likelihood trusts neighbours too
        much, because a pixel's true neighbours say nearly everything about it: thin shapes vanish. A small `edge_C` often
        helps; its best value depends on the pictures, so choose it on some that were kept back.
    inference
        "pseudo-likelihood" by default. Marginals after training are from loopy belief propagation, or the method named here.
    batch_size, learning_rate, random_state, progress
        As in `CRF`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> row, column = np.mgrid[:40, :40]
    >>> discs = [(np.hypot(row - a, column - b) < 9).astype(int) for a, b in rng.integers(5, 35, size=(6, 2))]
    >>> images = [disc + rng.normal(scale=0.6, size=disc.shape) for disc in discs]
    >>> crf = GridCRF().fit(images[:5], discs[:5])
    >>> bool(crf.score(images[5:], discs[5:]) > 0.97)  # a threshold on each pixel alone gets 79% right
    True
    """

    graph: Any = field(default=None, init=False)
    decoding: Any = field(default="auto", init=False)
    edge_features: Annotated[
        EdgeFeatures | Callable[[Array, Array], Array],
        Choice(("constant", "contrast"), "a function", also=(Callable,)),
    ] = "constant"
    contrast_channels: Sequence[int] | None = None
    neighbours: Literal[4, 8] = 4
    edge_weights: EdgeWeights = "same"
    attractive: bool = True
    inference: Method = "pseudo-likelihood"
    tol: Positive = 1e-3
    batch_size: Count = 1

    def fit(self, X: Any, Y: Any) -> Self:  # noqa: N803
        """Learn the weights from images and their label images."""
        return super().fit(X, Y)

    def predict_dense(
        self, X: Any, *, smoothness: float = 1.0, smooth_distance: float = 2.0, appearance: float = 4.0,  # noqa: N803
        colour_distance: float = 20.0, colour_range: float = 0.5, max_iter: int = 100, tol: float = 1e-6,
    ) -> list[NDArray[Any]]:  # fmt: skip
        """Return label images by mean field where all pairs of pixels count, in the place of the learned edges.

        Parameters
        ----------
        X
            Images.
        smoothness, smooth_distance, appearance, colour_distance, colour_range, max_iter, tol
            As in `mk.images.dense_segmentation`; colours are the features, or `contrast_channels` of them.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> labels = [np.repeat([[0, 1]], 12, axis=0).repeat(6, axis=1) for _ in range(3)]
        >>> images = [y + rng.normal(scale=0.7, size=y.shape) for y in labels]
        >>> crf = GridCRF().fit(images[:2], labels[:2])
        >>> bool((crf.predict_dense(images[2:], appearance=0.0, smoothness=4.0)[0] == labels[2]).mean() > 0.9)
        True
        """
        listed = list(X)
        scored = self._scored(listed)
        found = []
        for image, scores in zip(listed, self._cut(scored.scores, scored), strict=True):
            pixels = _image(image, 0)
            seen = pixels if self.contrast_channels is None else pixels[:, :, list(self.contrast_channels)]
            pairs = DensePairs.of(
                standard_colours(seen), smoothness=smoothness, smooth_distance=smooth_distance, appearance=appearance,
                colour_distance=colour_distance, colour_range=colour_range,
            )  # fmt: skip
            beliefs = dense_mean_field(scores, pairs, max_iter=max_iter, tol=tol).beliefs
            found.append(self.classes_[beliefs.argmax(axis=1)])
        return self._shaped(listed, found)

    def _read_training(self, inputs: Any, labels: Any) -> tuple[Inputs, NDArray[Any], NDArray[Any]]:
        read, shapes = self._read_images(inputs)
        listed = [np.asarray(y) for y in labels]
        if len(listed) != len(shapes):
            raise InvalidArgument(f"there are {len(shapes)} images but {len(listed)} label images")
        for g, (y, shape) in enumerate(zip(listed, shapes, strict=True)):
            if y.shape != shape:
                raise InvalidArgument(
                    f"image {g} has {shape[0]} x {shape[1]} pixels but labels of shape {y.shape}"
                )
        flat = np.concatenate([y.ravel() for y in listed])
        return read, flat, np.unique(flat)

    def _scored(self, inputs: Any, *, own: bool = False) -> Scored:
        self._need_fit()
        read, shapes = self._read_images(inputs)
        one = len(shapes) == 1
        graph = FieldGraph(None, tuple(grids.grid_names(*shapes[0])), None) if one else None
        return self._potentials(read, graph, own)

    def _flat_labels(self, labels: Any) -> Any:
        return [np.asarray(y).ravel() for y in labels]

    def _shaped(self, inputs: Any, found: list[Any]) -> list[Any]:
        shapes = [np.shape(x)[:2] for x in inputs]
        return [f.reshape(*s, *f.shape[1:]) for f, s in zip(found, shapes, strict=True)]

    def _read_images(self, images: Any) -> tuple[Inputs, list[tuple[int, int]]]:
        arrays = [_image(x, g) for g, x in enumerate(images)]
        if not arrays:
            raise InvalidArgument("there is no image; give a list with at least one")
        odd = next((g for g, a in enumerate(arrays) if a.shape[2] != arrays[0].shape[2]), None)
        if odd is not None:
            raise InvalidArgument(
                f"image {odd} has {arrays[odd].shape[2]} features a pixel but image 0 has {arrays[0].shape[2]}"
            )
        shapes = [(a.shape[0], a.shape[1]) for a in arrays]
        node_ptr = np.concatenate(([0], np.cumsum([a * b for a, b in shapes]))).astype(np.int64)
        pairs = [neighbour_pairs(*shape, self.neighbours) for shape in shapes]
        edges = np.concatenate([p + first for p, first in zip(pairs, node_ptr.tolist(), strict=False)])
        edge_ptr = np.concatenate(([0], np.cumsum([len(p) for p in pairs]))).astype(np.int64)
        features = np.concatenate([a.reshape(-1, a.shape[2]) for a in arrays])
        tails, heads = edges[:, 0].copy(), edges[:, 1].copy()
        edge_features = self._edge_rows(features, tails, heads)
        return Inputs(features, node_ptr, edge_ptr, tails, heads, edge_features, None), shapes

    def _edge_rows(self, features: Array, tails: Ints, heads: Ints) -> Array:
        if callable(self.edge_features):
            rows = finite_numbers(
                self.edge_features(features[tails], features[heads]), "what edge_features= returns"
            )
            if rows.ndim != 2 or len(rows) != len(tails):
                raise InvalidArgument(
                    f"edge_features= returned shape {rows.shape}, not ({len(tails)}, features)"
                )
            return rows
        if self.edge_features == "constant":
            return np.ones((len(tails), 1))
        width = features.shape[1]
        channels = range(width) if self.contrast_channels is None else list(self.contrast_channels)
        if not all(isinstance(c, int | np.integer) and 0 <= c < width for c in channels):
            raise InvalidArgument(f"contrast_channels= are numbers from 0 to {width - 1}, not {channels!r}")
        seen = features[:, channels]
        step = np.sqrt(((seen[tails] - seen[heads]) ** 2).sum(axis=1))
        return np.column_stack([np.ones(len(tails)), 1.0 / (1.0 + step)])

    def _best_with_cycles(self, scored: Scored, g: int) -> Ints:
        fields = scored.fields
        first, last = int(fields.node_ptr[g]), int(fields.node_ptr[g + 1])
        edges = slice(int(fields.edge_ptr[g]), int(fields.edge_ptr[g + 1]))
        tails, heads = fields.tails[edges] - first, fields.heads[edges] - first
        tables = scored.tables[fields.row[edges]]
        own = np.diagonal(tables, axis1=1, axis2=2)
        both = own[:, :, None] + own[:, None, :] - tables - tables.transpose(0, 2, 1)
        if len(self.classes_) == 2 and bool(np.all(both >= -1e-12)):
            return two_labels(scored.scores[first:last], tails, heads, tables)
        return many_labels(scored.scores[first:last], tails, heads, tables)


def standard_colours(pixels: Array) -> Array:
    """Return colours about their mean, in units of their standard deviation over all channels together.

    Examples
    --------
    >>> standard_colours(np.array([[[1e-9], [3e-9]]])).ravel().round(6).tolist()
    [-1.0, 1.0]
    """
    about = pixels - pixels.mean(axis=(0, 1))
    about = about / (float(np.abs(about).max()) or 1.0)  # so that squares of tiny units do not vanish
    return np.asarray(about / (float(np.sqrt((about**2).mean())) or 1.0))


def neighbour_pairs(rows: int, columns: int, neighbours: int = 4) -> Ints:
    """Return the pairs of neighbouring pixels of an image, pixels numbered row by row.

    Examples
    --------
    >>> neighbour_pairs(2, 2).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    place = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    ends = [(place[:, :-1], place[:, 1:]), (place[:-1], place[1:])]
    if neighbours == 8:
        ends += [(place[:-1, :-1], place[1:, 1:]), (place[:-1, 1:], place[1:, :-1])]
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ends])


def two_labels(scores: Array, tails: Ints, heads: Ints, tables: Array) -> Ints:
    """Return the best labels (0 or 1) of a field whose tables attract, by one minimum cut."""
    n = len(scores)
    same0, there, back, same1 = -tables[:, 0, 0], -tables[:, 0, 1], -tables[:, 1, 0], -tables[:, 1, 1]
    terminal = scores[:, 0] - scores[:, 1]
    terminal = terminal + np.bincount(tails, weights=back - same0, minlength=n)
    terminal = terminal + np.bincount(heads, weights=same1 - back, minlength=n)
    capacity = np.maximum(there + back - same0 - same1, 0.0)
    return FlowNetwork(n, tails, heads).cut(capacity, np.zeros(len(capacity)), terminal).ones


def many_labels(scores: Array, tails: Ints, heads: Ints, tables: Array, clock: Clock | None = None) -> Ints:
    """Return good labels of a field with several labels, by alpha-expansion moves until none helps or the time is over."""
    from markovia.inference.flat_graphs.flat_graph import FlatGraph
    from markovia.inference.map_bounds.move_making import MoveSearch
    from markovia.learning.conditional_fields.fields import link_nodes

    n, k = scores.shape
    m = len(tails)
    # the best labelling is the same for smaller scores, as long as their exponentials stay above zero
    largest = max(largest_range(scores), largest_range(tables))
    if largest > LARGEST_LOG:
        scores, tables = scores * (LARGEST_LOG / largest), tables * (LARGEST_LOG / largest)
    scope = np.stack([tails, heads], axis=1).ravel()
    ptr, links = link_nodes(n, tails, heads)
    owner = np.repeat(np.arange(n), np.diff(ptr))
    unary = scores - scores.max(axis=1, keepdims=True)
    top = tables.max(axis=(1, 2), keepdims=True)
    graph = FlatGraph(
        variables=(),  # moves are about numbers, not names
        cards=np.full(n, k, dtype=np.int64),
        starts=np.arange(n + 1, dtype=np.int64) * k,
        unary=np.exp(unary).ravel(),
        scope_ptr=np.arange(m + 1, dtype=np.int64) * 2,
        scope=scope,
        strides=np.tile(np.array([k, 1], dtype=np.int64), m),
        table_ptr=np.arange(m + 1, dtype=np.int64) * k * k,
        values=np.exp(tables - top).ravel(),
        edge_ptr=ptr,
        edges=2 * links + (heads[links] == owner),
        edge_factor=np.repeat(np.arange(m, dtype=np.int64), 2),
        log_scale=0.0,
    )
    search = MoveSearch(graph)
    better = True
    while better:
        better = False
        for label in range(k):
            if clock is not None and clock.over():
                return search.codes
            zero = np.zeros(n, dtype=np.int64)
            better = search.make((search.codes, np.full(n, label, dtype=np.int64), zero)) or better
    return search.codes


def _image(x: Any, g: int) -> Array:
    array = as_numbers(x, f"image {g}")
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or not array.size:
        raise InvalidArgument(
            f"image {g} has shape {np.shape(x)}; (rows, columns) or (rows, columns, features) is needed"
        )
    if not np.all(np.isfinite(array)):
        raise InvalidArgument(f"image {g} has a missing or infinite entry")
    return array
