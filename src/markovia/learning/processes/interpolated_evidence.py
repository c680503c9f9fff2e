"""Processes on a regular grid, read off at rows by interpolation: KISS-GP, and MSGP for constant-time predictions.

With W the weights of cubic interpolation (Keys 1981), few in each row, K is about W K_grid W' (Wilson and Nickisch 2015).
K_grid is never made: products with it are Fourier transforms, whatever the stationary covariance, so a product costs rows
plus the grid, and solutions come by conjugate gradients. KISS estimates log determinants by random probes
(`probed_solve`). MSGP (Wilson, Dann and Nickisch 2015) takes the spectrum of the grid for that of the rows, log|A| ~ sum
log(n / m lambda + noise) of the largest min(n, m) of its m eigenvalues: no randomness, right to a few parts in a hundred
where rows are spread evenly. In both a prediction reads the grid: its mean and its variance cost the same however many
rows there were. For one to four columns: the grid grows with a power of their number. Errors fall with the cube of the
step over the length.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.covariance import Covariance
from markovia.inference.gaussian.function_values import FunctionMoments, as_rows
from markovia.inference.gaussian.structured_operators import (
    LagGrid,
    Preconditioner,
    Probed,
    conjugate_gradients,
    lanczos_root,
    probed_solve,
)
from markovia.inference.result import Info
from markovia.learning.components.block_passes import one_blas_thread
from markovia.learning.processes.evidence_method import Gradient, density, function_and_noise, with_noise
from markovia.learning.processes.iterative_evidence import ProbedEvidence
from markovia.learning.processes.solved_function import CELLS, LEAST, SolvedFunction
from markovia.runtime.array_types import Array, Flags

POINTS = ((1_000, 100_000), (100, 300), (30, 60), (14, 20))
"""Least and most points of each axis of a grid of one, two, three and four columns, where none are said."""
LOST = 0.01
"""A share of the variance that interpolation may err by without a word."""
ROOT = 200
"""Products with the covariance matrix of the rows, for variances."""
MARGIN = 3
"""Points of an axis before the first row and after the last."""


class RegularGrid:
    """A regular grid around some rows, and the weights of cubic interpolation from its points.

    Parameters
    ----------
    X
        The rows.
    points
        How many points each axis has: a number, one a column, or None.

    Examples
    --------
    >>> grid = RegularGrid(np.array([[0.0], [1.0]]), 20)
    >>> at = grid.points[:, 0]
    >>> bool(np.allclose(grid.weights(np.array([[0.3], [0.77]])) @ at**2, [0.3**2, 0.77**2]))
    True
    """

    def __init__(self, X: Array, points: Any = None) -> None:
        d = X.shape[1]
        if d > len(POINTS):
            raise InvalidArgument(
                f"interpolation is for one to {len(POINTS)} columns, since grids grow with a power of their number; inputs "
                f"have {d}; take method='sgpr' or 'svgp'"
            )
        enough = int(np.clip(round(len(X) ** (1.0 / d)), *POINTS[d - 1]))
        counts = np.broadcast_to(enough if points is None else points, (d,))
        if counts.dtype.kind not in "iu" or not (counts > 2 * MARGIN + 1).all():
            raise InvalidArgument(
                f"grid= is how many points each axis has, more than {2 * MARGIN + 1}, not {points!r}"
            )
        low, high = X.min(axis=0), X.max(axis=0)
        self.lags = LagGrid([int(count) for count in counts])
        self.counts = counts
        self.step = np.where(high > low, high - low, 1.0) / (counts - 1 - 2 * MARGIN)
        self.start = low - MARGIN * self.step
        self.offsets = np.array(list(product(range(-1, 3), repeat=d)))
        """The points around a cell that interpolation reads, in steps."""

    @property
    def size(self) -> int:
        """The number of points."""
        return int(self.counts.prod())

    @cached_property
    def points(self) -> Array:
        """All points, one a row."""
        axes = [a + h * np.arange(n) for a, h, n in zip(self.start, self.step, self.counts, strict=True)]
        return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)

    def covers(self, X: Array) -> Flags:
        """Say which rows lie where the grid can be read."""
        at = (X - self.start) / self.step
        return np.asarray(((at >= 1.0) & (at < self.counts - 2)).all(axis=1))

    def near(self, X: Array) -> tuple[Array, Array]:
        """Return the points that each row reads, by number, and their weights: rows by 4^d."""
        at = (X - self.start) / self.step
        cell = np.floor(at).astype(np.int64)
        s = (at - cell)[..., None]
        waves = (
            s * (-0.5 + s * (1.0 - 0.5 * s)),
            1.0 + s * s * (-2.5 + 1.5 * s),
            s * (0.5 + s * (2.0 - 1.5 * s)),
            s * s * (-0.5 + 0.5 * s),
        )
        each = np.concatenate(waves, axis=-1)  # rows by columns by four
        weights: Any = 1.0
        for j in range(X.shape[1]):
            weights = weights * each[:, j, self.offsets[:, j] + 1]
        places = cell[:, None] + self.offsets
        return np.ravel_multi_index(tuple(np.moveaxis(places, -1, 0)), tuple(self.counts)), weights

    def weights(self, X: Array) -> Any:
        """Return the weights of interpolation as a sparse matrix, rows by points."""
        from scipy.sparse import csr_array

        places, weights = self.near(X)
        ends = np.arange(0, places.size + 1, places.shape[1])
        return csr_array((weights.ravel(), places.ravel(), ends), shape=(len(X), self.size))


class KISS(ProbedEvidence):
    """A process on a regular grid, interpolated at rows; its log determinant by random probes.

    Parameters
    ----------
    X, y, probes, rank, tol, most, seed
        As of `ProbedEvidence`.
    grid
        How many points each axis of the grid has: a number, or one a column. Steps above half a length err.

    Examples
    --------
    >>> import markovia as mk
    >>> X = np.random.default_rng(0).uniform(0.0, 10.0, (2_000, 1))
    >>> method = KISS(X, np.sin(X[:, 0]), grid=100)
    >>> at = method.posterior(mk.covariances.RBF(1.0) + mk.covariances.White(0.1)).at([np.pi / 2])
    >>> at.mean().round(3).tolist(), at.sd().round(3).tolist()
    ([0.999], [0.026])
    """

    name: ClassVar[str] = "kiss"

    def __init__(self, X: Any, y: Any, *, grid: Any = None, **settings: Any) -> None:
        super().__init__(X, y, **settings)
        self.grid = RegularGrid(self.X, grid)
        self._near = self.grid.near(self.X)
        self.W = self.grid.weights(self.X)

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the log evidence and its gradient by the free numbers of the covariance."""
        with one_blas_thread():
            return self._evidence(covariance)

    def _evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        rest, noise, variance = function_and_noise(covariance, self.name)
        values, pull = rest.forward(self._lags(rest), np.zeros((1, self.X.shape[1])))
        made = Interpolated(self, values[:, 0], variance)
        found = self._solved(made)
        value = density(self.y, found.alpha, found.logdet)
        if not covariance.free():
            return value, {}
        by_lags, by_noise = self._slopes(made, found)
        g = self.W.T @ found.alpha[:, None]
        by_lags = 0.5 * (self.grid.lags.weights(g, g) - by_lags)
        return value, with_noise(
            pull(by_lags[:, None]), noise, 0.5 * (float(found.alpha @ found.alpha) - by_noise)
        )

    def posterior(self, covariance: Covariance) -> "InterpolatedFunction":
        """Return the posterior of the function without the noise."""
        rest, _, variance = function_and_noise(covariance, self.name)
        made = Interpolated(
            self, rest.value(self._lags(rest), np.zeros((1, self.X.shape[1])))[:, 0], variance
        )
        return InterpolatedFunction(rest, made, self._solved(made), self._info)

    def _lags(self, rest: Covariance) -> Array:
        if not rest.stationary:
            raise InvalidArgument(
                f"{self.name} is for stationary covariances, and {rest!r} is none; method='sgpr' takes any"
            )
        return np.asarray(self.grid.lags.lags * self.grid.step)

    def _solved(self, made: "Interpolated") -> Probed:
        return probed_solve(made.matvec, made.preconditioner, self.y, self.probes, self.tol, self.most)

    def _slopes(self, made: "Interpolated", found: Probed) -> tuple[Array, float]:
        """Return the derivatives of the log determinant by the covariances at lags, and by the noise."""
        P, lags = made.preconditioner, self.grid.lags
        left = np.concatenate([found.left, P.C / -P.rest], axis=1)
        right = np.concatenate([found.right, P.C], axis=1)
        by_lags = lags.weights(self.W.T @ left, self.W.T @ right)
        _, near = self._near
        np.add.at(by_lags, made.apart, near.T @ near / P.rest)  # the preconditioner's diagonal
        return by_lags, float(np.vdot(left, right)) + len(self.y) / P.rest


class MSGP(KISS):
    """A process on a regular grid, interpolated at rows; its log determinant by the spectrum of the grid.

    Parameters
    ----------
    X, y, grid, rank, tol, most, seed
        As of `KISS`; there are no probes.
    """

    name: ClassVar[str] = "msgp"

    def __init__(self, X: Any, y: Any, **settings: Any) -> None:
        super().__init__(X, y, probes=1, **settings)

    def _solved(self, made: "Interpolated") -> Probed:
        solved = conjugate_gradients(
            made.matvec, self.y[:, None], made.preconditioner.solve, self.tol, self.most
        )
        _, scaled, share, rest = self._spectrum(made)
        logdet = float(share * np.log(scaled).sum() + rest * np.log(made.noise))
        none = np.zeros((len(self.y), 0))
        return Probed(solved.solutions[:, 0], logdet, np.nan, none, none, solved.residual, solved.steps)

    def _slopes(self, made: "Interpolated", found: Probed) -> tuple[Array, float]:
        which, scaled, share, rest = self._spectrum(made)
        slopes = np.zeros(self.grid.lags.size)
        slopes[which] = np.where(scaled > made.noise, share * (len(self.y) / self.grid.size) / scaled, 0.0)
        return self.grid.lags.by_values(slopes), float(share * (1.0 / scaled).sum() + rest / made.noise)

    def _spectrum(self, made: "Interpolated") -> tuple[Any, Array, float, float]:
        """Return where the largest eigenvalues of the grid are, those of rows with noise, their share, and rows left."""
        n, m = len(self.y), self.grid.size
        spectrum = np.maximum(self.grid.lags.eigenvalues(made.values), 0.0)
        # the ring has more eigenvalues than the grid has points: each counts for less
        share = m / spectrum.size
        count = round(min(n, m) / share)
        which = np.unravel_index(np.argsort(spectrum, axis=None)[::-1][:count], spectrum.shape)
        return which, n / m * spectrum[which] + made.noise, share, n - share * count

    def _info(self, found: Probed) -> Info:
        return replace(super()._info(found), note="log determinant from the spectrum of the grid")


class Interpolated:
    """W K_grid W' + noise for one covariance, with its preconditioner."""

    def __init__(self, method: KISS, values: Array, noise: float) -> None:
        self.method, self.values, self.noise = method, values, noise
        self.lags, self.W = method.grid.lags, method.W
        self._ring = self.lags.ring(values)
        offsets, counts = method.grid.offsets, np.array(self.lags.counts)
        apart = np.moveaxis(offsets[:, None] - offsets[None] + counts - 1, -1, 0)
        self.apart = np.ravel_multi_index(tuple(apart), tuple(2 * counts - 1))
        """Which lags lie between the points that a row reads."""

    def on_grid(self, V: Array) -> Array:
        """Return the product of the grid's covariance with columns."""
        return self.lags.matvec(self._ring, V)

    def matvec(self, V: Array) -> Array:
        """Return the product with columns."""
        return np.asarray(self.W @ self.on_grid(self.W.T @ V) + self.noise * V)

    @cached_property
    def diagonal(self) -> Array:
        """The variances at the rows, without the noise."""
        _, near = self.method._near
        return np.asarray(np.einsum("ij,ij->i", near @ self.values[self.apart], near))

    @cached_property
    def preconditioner(self) -> Preconditioner:
        """A partial Cholesky factor plus the noise."""
        counts, (near, weights) = self.lags.counts, self.method._near
        table = self.values.reshape([2 * g - 1 for g in counts])

        def row(i: int) -> Array:
            on_grid = np.zeros(counts)
            for point, weight in zip(
                np.stack(np.unravel_index(near[i], counts), axis=1), weights[i], strict=True
            ):
                # the lags between one point and all of them lie side by side
                on_grid += (
                    weight
                    * table[
                        tuple(slice(g - 1 - c, 2 * g - 1 - c) for g, c in zip(counts, point, strict=True))
                    ]
                )
            return np.asarray(self.W @ on_grid.ravel())

        return Preconditioner(self.diagonal, row, self.noise, self.method.rank)


class InterpolatedFunction(SolvedFunction):
    """A function read off a grid: means and variances at an input cost the same however many rows there were.

    Inputs outside the grid are known by their covariances with its points. Variances come from the space that `ROOT`
    products span (Pleiss and others 2018), which never makes them too small.
    """

    def __init__(self, covariance: Covariance, made: Interpolated, found: Probed, info: Any) -> None:
        method, P = made.method, made.preconditioner

        def solve(V: Array) -> Array:
            return conjugate_gradients(made.matvec, V, P.solve, method.tol, method.most).solutions

        said, prior = info(found), covariance.diagonal(method.X)
        lost = float(np.abs(made.diagonal / prior - 1.0).max())
        if lost > LOST:
            said = replace(
                said,
                note=f"{said.note}; interpolation errs by {lost:.0%} of the variance: the grid is coarse",
            )
        super().__init__(method.X, method.y, covariance, made.noise, solve, said, found.alpha)
        self._made, self.grid = made, method.grid
        self._mean = self._kept(found.alpha[:, None])

    @cached_property
    def _root(self) -> tuple[Array, Array]:
        made = self._made
        start = made.matvec(made.method.probes[: len(self.y), :1])[:, 0]
        return self._kept(lanczos_root(made.matvec, start, ROOT))

    def _kept(self, V: Array) -> tuple[Array, Array]:
        """Return columns that weigh rows as they weigh the points of the grid, and the functions there."""
        on_grid = np.asarray(self._made.W.T @ V)
        return on_grid, self._made.on_grid(on_grid)

    def _read(self, X: Array, kept: tuple[Array, Array]) -> Array:
        inside = self.grid.covers(X)
        found = np.empty((len(X), kept[1].shape[1]))
        found[inside] = self.grid.weights(X[inside]) @ kept[1]
        step = max(LEAST, CELLS // self.grid.size)
        for at in np.split(np.flatnonzero(~inside), range(step, int((~inside).sum()), step)):
            found[at] = self.covariance.value(X[at], self.grid.points) @ kept[0] if len(at) else 0.0
        return found

    def weighted(self, X: Array, V: Array) -> Array:
        """Return the sums of covariances between inputs and rows, weighted by columns: inputs by columns."""
        return self._read(X, self._kept(V))

    def means(self, X: Any) -> Array:
        """Return the means at inputs, without variances."""
        return self._read(as_rows(X), self._mean)[:, 0]

    def moments(self, X: Array, *, joint: bool = False) -> FunctionMoments:
        """Return the mean and variances, or the covariance matrix, at the rows of X."""
        mean, R = self._read(X, self._mean)[:, 0], self._read(X, self._root)
        if joint:
            return FunctionMoments(mean[None], (self.covariance.value(X, X) - R @ R.T)[None])
        variances = self.covariance.diagonal(X) - np.einsum("ij,ij->i", R, R)
        return FunctionMoments(mean[None], np.maximum(variances, 0.0)[None])
