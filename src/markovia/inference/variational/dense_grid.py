"""Fields in which every pixel is a neighbour of every other: mean field by filtering with Gaussian kernels.

Pixels i and j with the same label weigh `exp(w k_ij / sqrt(s_i s_j))`, where k_ij is a Gaussian of what they differ in
(place, or place and colour) and s_i the sum of k_ij over all j, so that weights do not depend on the size of the picture. A
mean-field update needs only sums of k_ij q_j, which is filtering a picture (Kraehenbuehl and Koltun 2011). Kernels of places
are products of rows and columns, and exact at any size. Kernels with colours are exact up to `MOST_EXACT` pixels; beyond,
pixels are shared out over the corners of a grid of places and colours, blurred there axis by axis, and read off again (the
bilateral grid, Paris and Durand 2006), with the blur narrowed by what sharing out adds: sums are then off by about one
percent with two cells a kernel's width and by some five with one. All pixels are updated at once; a step that would lower
the bound is shortened, along the natural gradient, until it does not, so the bound always rises. Cost of an update: pixels
times labels times (rows + columns), and pixels squared, or pixels times 2^(2 + channels) plus the cells of the grid.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from markovia.errors import ConvergenceWarning, TooLarge, warn_user
from markovia.optimise.ascent import climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NOT_NEGATIVE, POSITIVE, Whole, check

MOST_EXACT = 3000
"""Pixels up to which kernels with colours are whole matrices."""
MOST_CELLS = 1 << 22
"""Cells of a bilateral grid."""
CELLS_A_WIDTH = (2.0, 1.5, 1.0)
"""How many cells of a bilateral grid are as wide as the kernel, best first."""
SHORTEST = 2.0**-20
"""The least share of a step that is tried."""


class PlaceKernel:
    """A Gaussian of places, as products along rows and along columns."""

    def __init__(self, rows: int, cols: int, distance: float) -> None:
        self.down, self.across = (_gaussian(np.arange(n)[:, None] / distance) for n in (rows, cols))

    def sums(self, values: Array) -> Array:
        """Return the sums of k_ij values_j over all other pixels, (pixels, ...)."""
        picture = values.reshape(len(self.down), len(self.across), -1)
        found = np.einsum("ar,rcl->acl", self.down, picture, optimize=True)
        found = np.einsum("bc,acl->abl", self.across, found, optimize=True)
        return np.asarray(found.reshape(values.shape) - values)


class WholeKernel:
    """A Gaussian of features (pixels, features) in units of its width, as one matrix."""

    def __init__(self, features: Array) -> None:
        self.matrix = _gaussian(features)
        np.fill_diagonal(self.matrix, 0.0)

    def sums(self, values: Array) -> Array:
        """Return sums over all other pixels."""
        return np.asarray(self.matrix @ values)


class GridKernel:
    """A Gaussian of features in units of its width, through the corners of a grid, the finest that is small enough."""

    def __init__(self, features: Array) -> None:
        from scipy.sparse import csr_matrix

        n, d = features.shape
        for cells_a_width in CELLS_A_WIDTH:
            scaled = (features - features.min(axis=0)) * cells_a_width
            at = np.floor(scaled).astype(np.int64)
            self.shape = tuple((at.max(axis=0) + 2).tolist())
            if np.prod(self.shape, dtype=np.float64) <= MOST_CELLS:
                break
        else:
            raise TooLarge(
                f"a grid of {' x '.join(map(str, self.shape))} cells is too fine; raise colour_distance= or "
                "colour_range=, or give fewer channels"
            )
        rest = scaled - at
        # sharing out over two corners and reading off again add a variance of 1/6 each; the blur has what is left
        variance = cells_a_width**2 - 1.0 / 3.0
        height = cells_a_width / np.sqrt(variance)
        self.blurs = [height * _gaussian(np.arange(m)[:, None] / np.sqrt(variance)) for m in self.shape]
        corners = np.indices((2,) * d).reshape(d, -1).T
        shares = np.where(corners[None], rest[:, None], 1.0 - rest[:, None]).prod(axis=2)
        cells = np.ravel_multi_index(tuple((at[:, None] + corners[None]).reshape(-1, d).T), self.shape)
        ptr = np.arange(n + 1) * len(corners)
        self.shares = csr_matrix((shares.ravel(), cells, ptr), shape=(n, int(np.prod(self.shape))))
        # what reading off gives a pixel of itself, axis by axis
        both = 2.0 * rest * (1.0 - rest) * np.exp(-0.5 / variance)
        self.own = (height * ((1.0 - rest) ** 2 + rest**2 + both)).prod(axis=1)

    def sums(self, values: Array) -> Array:
        """Return sums over all other pixels."""
        flat = values.reshape(len(values), -1)
        grid = np.asarray(self.shares.T @ flat).reshape(*self.shape, -1)
        for axis, blur in enumerate(self.blurs):
            grid = np.moveaxis(np.tensordot(blur, grid, axes=(1, axis)), 0, axis)
        found = np.asarray(self.shares @ grid.reshape(-1, flat.shape[1])) - self.own[:, None] * flat
        return np.asarray(np.maximum(found, 0.0).reshape(values.shape))


PairKernel: TypeAlias = PlaceKernel | WholeKernel | GridKernel


@dataclass(frozen=True)
class DensePairs:
    """Kernels with their weights, each divided by the roots of its sums at both pixels."""

    kernels: tuple[PairKernel, ...]
    weights: tuple[float, ...]
    roots: tuple[Array, ...]

    @classmethod
    def of(
        cls,
        colours: Array,
        *,
        smoothness: float = 1.0,
        smooth_distance: float = 2.0,
        appearance: float = 4.0,
        colour_distance: float = 20.0,
        colour_range: float = 0.5,
    ) -> "DensePairs":
        """Return the kernels of a picture (rows, columns, channels), colours in the unit of `colour_range`.

        The first is of places, with the weight `smoothness`, the second of places and colours, with the weight
        `appearance`; a weight of zero leaves a kernel out.
        """
        check("smoothness", smoothness, NOT_NEGATIVE)
        check("appearance", appearance, NOT_NEGATIVE)
        check("smooth_distance", smooth_distance, POSITIVE)
        check("colour_distance", colour_distance, POSITIVE)
        check("colour_range", colour_range, POSITIVE)
        rows, cols, channels = colours.shape
        kernels: list[PairKernel] = []
        if smoothness:
            kernels.append(PlaceKernel(rows, cols, smooth_distance))
        if appearance:
            place = np.indices((rows, cols)).reshape(2, -1).T / colour_distance
            features = np.hstack([place, colours.reshape(-1, channels) / colour_range])
            kernels.append(WholeKernel(features) if len(features) <= MOST_EXACT else GridKernel(features))
        weights = [w for w in (smoothness, appearance) if w]
        totals = [np.maximum(kernel.sums(np.ones((rows * cols, 1))), 0.0) for kernel in kernels]
        roots = [np.sqrt(np.divide(1.0, s, out=np.zeros_like(s), where=s > 0.0)) for s in totals]
        return cls(tuple(kernels), tuple(weights), tuple(roots))

    @property
    def exact(self) -> bool:
        """Whether no sum goes through a grid."""
        return not any(isinstance(kernel, GridKernel) for kernel in self.kernels)

    def pull(self, beliefs: Array) -> Array:
        """Return the sum of w k_ij / sqrt(s_i s_j) q_j over all other pixels and kernels."""
        found = np.zeros_like(beliefs)
        for kernel, weight, root in zip(self.kernels, self.weights, self.roots, strict=True):
            found += weight * root * kernel.sums(root * beliefs)
        return found


class DenseBeliefs(NamedTuple):
    """Beliefs (pixels, labels), the bound on log Z after each step, and whether it settled."""

    beliefs: Array
    bounds: tuple[float, ...]
    converged: bool


class _DenseState(NamedTuple):
    beliefs: Array
    logs: Array
    pull: Array
    bound: float


def dense_mean_field(
    scores: Array, pairs: DensePairs, *, max_iter: int = 100, tol: float = 1e-6, **clock: Any
) -> DenseBeliefs:
    """Return mean-field beliefs of a dense field, from the pixels' own scores (pixels, labels) on.

    `tol` is the gain of the bound a pixel at which to stop; `clock` has `climb`'s time limit and bar.
    """
    check("max_iter", max_iter, Whole(1))
    check("tol", tol, NOT_NEGATIVE)
    top = scores.max(axis=1, keepdims=True)

    def at(logs: Array) -> _DenseState:
        logs = logs - logs.max(axis=1, keepdims=True)
        logs = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
        beliefs = np.exp(logs)
        pull = pairs.pull(beliefs)
        # E log weight, pairs counted once, plus entropy; log beliefs of zero probability add nothing
        bound = float((beliefs * (scores - top + 0.5 * pull - logs)).sum() + top.sum())
        return _DenseState(beliefs, logs, pull, bound)

    def step(now: _DenseState) -> tuple[_DenseState, float]:
        aim, share = scores + now.pull, 1.0
        while share > SHORTEST:  # log beliefs less the aim are the natural gradient, so that short steps rise
            after = at(now.logs + share * (aim - now.logs))
            if after.bound >= now.bound:
                return after, after.bound
            share *= 0.5
        return now, now.bound

    begin = at(scores)
    found = climb(
        step, begin, max_iter=max_iter, tol=tol, size=float(len(scores)), first=begin.bound, name="mean field", **clock
    )  # fmt: skip
    if not found.converged:
        settings = "max_iter=, tol= or time_limit=" if clock.get("time_limit") else "max_iter= or tol="
        warn_user(
            f"mean field still gained after {len(found.history)} steps; raise {settings}", ConvergenceWarning
        )
    return DenseBeliefs(found.state.beliefs, (begin.bound, *found.history), found.converged)


def _gaussian(features: Array) -> Array:
    """Return exp(-|f_i - f_j|^2 / 2) of all pairs."""
    squares = (features**2).sum(axis=1)
    apart = np.maximum(squares[:, None] + squares[None, :] - 2.0 * features @ features.T, 0.0)
    return np.asarray(np.exp(-0.5 * apart))
