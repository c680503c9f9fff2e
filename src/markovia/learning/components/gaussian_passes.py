"""Passes over blocks of rows for Gaussians.

Where it is safe the log density is written as a linear function of a row's products, x_i and x_i x_j, about a common origin:
two matrix products do a step of EM. That loses digits where components are very narrow for how far they lie apart; then each
component is whitened by itself, about its own mean. Cells that are missing (NaN) are summed out: exactly, row pattern by row
pattern, by the Gaussian of what is seen, and statistics get the expected values of what is not (Ghahramani, Jordan 1994).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.learning.components.block_passes import BlockPass, LinearPass
from markovia.learning.components.normal_sums import normal_from_sums
from markovia.runtime.array_types import Array, Flags

LOST = 1e-9
"""The error of a log density above which components are whitened one by one."""
LOG_2PI = float(np.log(2.0 * np.pi))


def gaussian_pass(own: Any, *, gaps: bool, origin: Array | None) -> BlockPass:
    """Return the pass for a `Gaussian`, about an origin where that is said."""
    if own.kind in ("diag", "spherical"):
        return _diagonal(own, gaps, own.means.mean(axis=0) if origin is None else origin)
    about = own.means.mean(axis=0) if origin is None else origin
    if gaps:
        return _Patterns(own, np.broadcast_to(about, own.means.shape) if origin is not None else own.means)
    precisions = np.linalg.inv(own.covariances)
    reach = np.abs(own.means - about).max(axis=0) + 3.0 * np.sqrt(
        np.diagonal(own.covariances, axis1=1, axis2=2).max(axis=0)
    )
    lost = np.finfo(np.float64).eps * np.einsum("i,kij,j->k", reach, np.abs(precisions), reach)
    if origin is None and not (lost < LOST).all():
        return _Whitened(own)
    return _products(own, precisions, about)


def _products(own: Any, precisions: Array, about: Array) -> LinearPass:
    k, d = own.means.shape
    rows, columns = np.triu_indices(d)
    apart = own.means - about
    pulled = np.einsum("kij,kj->ki", precisions, apart)
    quadratic = np.where(rows == columns, -0.5, -1.0) * precisions[:, rows, columns]
    coefficients = np.hstack([pulled, quadratic])
    sizes = np.linalg.slogdet(own.covariances)[1]
    constants = -0.5 * (sizes + d * LOG_2PI + np.einsum("ki,ki->k", pulled, apart))

    def features(block: Array) -> Array:
        found = np.empty((coefficients.shape[1], len(block)))
        np.subtract(block.T, about[:, None], out=found[:d])
        at = d
        for i in range(d):
            np.multiply(found[i:d], found[i], out=found[at : at + d - i])
            at += d - i
        return found

    def make(size: Array, sums: Array, prior: Mapping[str, Any]) -> Any:
        second = np.empty((k, d, d))
        second[:, rows, columns] = second[:, columns, rows] = sums[:, d:]
        return normal_from_sums(own, size, sums[:, :d], second, about, prior)

    return LinearPass(features, coefficients, constants, make)


def _diagonal(own: Any, gaps: bool, about: Array) -> LinearPass:
    d = own.means.shape[1]
    variances = np.diagonal(own.covariances, axis1=1, axis2=2)
    apart = own.means - about
    each = -0.5 * (np.log(variances) + LOG_2PI + apart**2 / variances)
    parts = [apart / variances, -0.5 / variances, *([each] if gaps else [])]

    def features(block: Array) -> Array:
        found = np.empty((len(parts) * d, len(block)))
        np.subtract(block.T, about[:, None], out=found[:d])
        if gaps:
            found[2 * d :] = ~np.isnan(found[:d])
            np.nan_to_num(found[:d], copy=False)
        np.multiply(found[:d], found[:d], out=found[d : 2 * d])
        return found

    def make(size: Array, sums: Array, prior: Mapping[str, Any]) -> Any:
        seen = sums[:, 2 * d :] if gaps else None
        return normal_from_sums(own, size, sums[:, :d], sums[:, d : 2 * d], about, prior, seen)

    constants = np.zeros(len(own.means)) if gaps else each.sum(axis=1)
    return LinearPass(features, np.hstack(parts), constants, make)


@dataclass(frozen=True)
class _Whitened:
    """A pass in which each component looks at rows from its own mean."""

    own: Any

    @property
    def width(self) -> int:
        return int(self.own.means.shape[1] * (self.own.means.shape[1] + 1))

    def logs(self, block: Any) -> tuple[Array, Any]:
        rows, (k, d) = np.ascontiguousarray(block.T), self.own.means.shape
        factors = np.linalg.cholesky(self.own.covariances)
        inverses = np.linalg.inv(factors)
        found = np.empty((k, len(block)))
        for j in range(k):
            white = inverses[j] @ (rows - self.own.means[j][:, None])
            np.einsum("in,in->n", white, white, out=found[j])
        found += 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)[:, None] + d * LOG_2PI
        found *= -0.5
        return found, rows

    def sums(self, kept: Any, shares: Array) -> Array:
        found = []
        for mean, own in zip(self.own.means, shares, strict=True):
            apart = kept - mean[:, None]
            pulled = apart * own
            found.append(np.concatenate([pulled.sum(axis=1), (pulled @ apart.T).ravel()]))
        return np.array(found)

    def learned(self, size: Array, sums: Array, prior: Mapping[str, Any]) -> Any:
        k, d = self.own.means.shape
        return normal_from_sums(
            self.own, size, sums[:, :d], sums[:, d:].reshape(k, d, d), self.own.means, prior
        )


@dataclass(frozen=True)
class _Patterns:
    """A pass over rows that miss cells; quick where rows of one pattern lie together."""

    own: Any
    about: Array

    @property
    def width(self) -> int:
        return int(self.own.means.shape[1] * (self.own.means.shape[1] + 1))

    def logs(self, block: Any) -> tuple[Array, Any]:
        return pattern_logs(block, self.own.means, self.own.covariances), block

    def sums(self, kept: Any, shares: Array) -> Array:
        k, d = self.own.means.shape
        first, second = np.zeros((k, d)), np.zeros((k, d, d))
        means, covariances = self.own.means, self.own.covariances
        for rows, seen in patterns(kept):
            values, gone, own = kept[rows][:, seen], ~seen, shares[:, rows]
            for j in range(k):
                pull = np.linalg.solve(covariances[j][np.ix_(seen, seen)], covariances[j][np.ix_(seen, gone)])
                filled = np.empty((len(rows), d))
                filled[:, seen] = values - self.about[j, seen]
                filled[:, gone] = (values - means[j, seen]) @ pull + (means[j, gone] - self.about[j, gone])
                pulled = filled * own[j][:, None]
                first[j] += pulled.sum(axis=0)
                second[j] += pulled.T @ filled
                left = covariances[j][np.ix_(gone, gone)] - covariances[j][np.ix_(gone, seen)] @ pull
                second[j][np.ix_(gone, gone)] += own[j].sum() * left
        return np.hstack([first, second.reshape(k, -1)])

    def learned(self, size: Array, sums: Array, prior: Mapping[str, Any]) -> Any:
        k, d = self.own.means.shape
        return normal_from_sums(self.own, size, sums[:, :d], sums[:, d:].reshape(k, d, d), self.about, prior)


def pattern_logs(rows: Array, means: Array, covariances: Array) -> Array:
    """Return the log densities of what rows show, (components, rows)."""
    found = np.zeros((len(means), len(rows)))
    for at, seen in patterns(rows):
        if not seen.any():
            continue
        values = rows[at][:, seen].T
        factors = np.linalg.cholesky(covariances[:, seen][:, :, seen])
        inverses = np.linalg.inv(factors)
        sizes = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        for j, mean in enumerate(means[:, seen]):
            white = inverses[j] @ (values - mean[:, None])
            squares = np.einsum("in,in->n", white, white)
            found[j, at] = -0.5 * (squares + sizes[j] + len(values) * LOG_2PI)
    return found


def patterns(rows: Array) -> list[tuple[Any, Flags]]:
    """Return which rows show which columns: places and flags, one pair a pattern."""
    seen = ~np.isnan(rows)
    kinds, codes = np.unique(np.packbits(seen, axis=1), axis=0, return_inverse=True)
    order = np.argsort(codes.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(codes.ravel(), minlength=len(kinds)))
    return [(at, seen[at[0]]) for at in np.split(order, ends[:-1])]


def pattern_order(rows: Array) -> Any:
    """Return places of rows such that rows of one pattern lie together."""
    return np.concatenate([at for at, _ in patterns(rows)])
