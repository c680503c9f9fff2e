"""Means and covariances of Gaussians from sums over weighted rows, with a normal-inverse-Wishart prior or none.

`kind` says what may vary: "full", "diag", "spherical", or "tied" (one covariance for all). A prior's `ridge` is added to
every covariance: a number is a share of the columns' variance, an array the variance itself. A covariance that would be
singular gets a millionth of the columns' variance. Reference: Murphy (2012), section 4.6.3, for the prior.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from markovia.learning.components.families import NOTHING
from markovia.runtime.array_types import Array

CovarianceType = Literal["full", "diag", "tied", "spherical"]
RIDGE = 1e-6
"""The share of the columns' variance that is added to a singular covariance."""
NORMAL_PRIOR = ("mean", "strength", "scale", "df")


def normal_from_sums(
    own: Any,
    size: Array,
    first: Array,
    second: Array,
    about: Array,
    prior: Mapping[str, Any],
    seen: Array | None = None,
) -> Any:
    """Return Gaussians like `own` from sums of (x - about) and of its products, or only its squares where that will do.

    `seen (states, columns)` is how much each column was seen, where cells are missing.
    """
    k, d = own.means.shape
    strength, centre, scale, more = prior_numbers(prior, d)
    count = np.broadcast_to(size[:, None] if seen is None else seen, (k, d))
    fed = count > NOTHING
    moved = np.where(
        fed,
        (first + strength * (centre - about)) / np.where(fed, count + strength, 1.0),
        own.means - about,
    )
    means = about + moved
    apart = means - centre
    squared = second if second.ndim == 2 else np.diagonal(second, axis1=1, axis2=2)
    total = pooled_variance(count, first, squared, about)
    if second.ndim == 2:
        squares = second - 2.0 * moved * first + count * moved**2 + strength * apart**2 + np.diag(scale)
        if own.kind == "spherical":
            squares = np.repeat(squares.sum(axis=1, keepdims=True), d, axis=1)
            count = np.repeat(count.sum(axis=1, keepdims=True), d, axis=1) + more * (d - 1.0)
        before = np.diagonal(own.covariances, axis1=1, axis2=2)
        found = np.where(fed, squares / np.where(fed, count + more, 1.0), before)
        covariances = floored(found[:, :, None] * np.eye(d), prior, lambda: total, own.kind)
    else:
        crossed = moved[:, :, None] * first[:, None, :]
        scatter = second - crossed - crossed.swapaxes(1, 2)
        scatter += size[:, None, None] * moved[:, :, None] * moved[:, None, :]
        scatter += strength * apart[:, :, None] * apart[:, None, :]
        covariances = covariance_mode(own.covariances, scatter, size, own.kind, prior, lambda: total)
    return replace(own, means=means, covariances=covariances)


def covariance_mode(
    before: Array,
    scatter: Array,
    size: Array,
    kind: CovarianceType,
    prior: Mapping[str, Any],
    spread: Callable[[], Array],
) -> Array:
    """Return covariances from sums of squares around means; states without data keep theirs."""
    d = scatter.shape[-1]
    _, _, scale, more = prior_numbers(prior, d)
    fed = size > NOTHING
    if kind == "tied":
        scatter = np.repeat(scatter[fed].sum(axis=0)[None], len(size), axis=0)
        count = np.full(len(size), size[fed].sum() + more)
    else:
        count = size + more
    found = before.copy()
    found[fed] = shaped((scatter + scale)[fed] / count[fed, None, None], kind)
    if kind == "tied" and fed.any():
        found[:] = found[fed][0]
    return floored(found, prior, spread, kind)


def pooled_variance(count: Array, first: Array, squared: Array, about: Array) -> Array:
    """Return the `column_scale` of columns over all states, from sums of (x - about) and of its squares."""
    many = np.maximum(count.sum(axis=0), NOTHING)
    about = np.broadcast_to(about, first.shape)
    mean = (first + count * about).sum(axis=0) / many
    away = about - mean
    variance = (squared + 2.0 * away * first + count * away**2).sum(axis=0) / many
    return column_scale(variance, mean)


def column_scale(variance: Array, mean: Array) -> Array:
    """Return the variances of columns; of one that is the same in all rows the square of that, or one."""
    same = variance <= 1e-24 * mean**2
    return np.asarray(np.where(same, np.where(mean == 0.0, 1.0, mean**2), variance))


def ridge_of(prior: Mapping[str, Any], spread: Callable[[], Array]) -> Array:
    """Return the variances that a prior adds to those of columns with such a spread."""
    given = np.asarray(prior["ridge"])
    return np.asarray(given if given.ndim else given * spread())


def floored(
    covariances: Array, prior: Mapping[str, Any], spread: Callable[[], Array], kind: CovarianceType
) -> Array:
    """Return covariances with the prior's ridge added, and singular ones with a little more."""
    if "ridge" in prior:
        floor = ridge_of(prior, spread)
        floor = np.full(len(floor), floor.mean()) if kind == "spherical" else floor
        covariances = covariances + np.diag(floor)
    return regular(covariances, spread)


def prior_numbers(prior: Mapping[str, Any], d: int) -> tuple[Any, Any, Array, Any]:
    """Return a prior's strength, mean, scale matrix and what it adds to the number of rows."""
    scale = np.asarray(prior.get("scale", 0.0))
    full = scale if scale.ndim == 2 else scale * np.eye(d)
    more = prior["df"] + d + 2.0 if "df" in prior else 0.0
    return prior.get("strength", 0.0), prior.get("mean", np.zeros(d)), full, more


def normal_prior(means: Array, covariances: Array, kind: CovarianceType, prior: Mapping[str, Any]) -> float:
    """Return the log density of a normal-inverse-Wishart prior, up to a constant."""
    if not set(prior) & set(NORMAL_PRIOR):
        return 0.0
    d = means.shape[1]
    strength, centre, scale, more = prior_numbers(prior, d)
    inverses, log_sizes = np.linalg.inv(covariances), np.linalg.slogdet(covariances)[1]
    apart = means - centre
    near = strength * np.einsum("ki,kij,kj->k", apart, inverses, apart)
    each = more * log_sizes + np.einsum("ij,kji->k", scale, inverses)
    return float(-0.5 * (near.sum() + (each[0] if kind == "tied" else each.sum())))


def shaped(covariances: Array, kind: CovarianceType) -> Array:
    """Return covariances with only what their kind lets vary."""
    d = covariances.shape[-1]
    if kind in ("full", "tied"):
        return np.asarray((covariances + np.swapaxes(covariances, 1, 2)) / 2.0)
    spread = np.diagonal(covariances, axis1=1, axis2=2)
    if kind == "spherical":
        spread = np.repeat(spread.mean(axis=1, keepdims=True), d, axis=1)
    return np.asarray(spread[:, :, None] * np.eye(d))


def regular(covariances: Array, spread: Callable[[], Array]) -> Array:
    """Return covariances, those that are singular with a little of the columns' variance added."""
    least = np.linalg.eigvalsh(covariances)[:, 0]
    poor = least <= 1e-14 * np.trace(covariances, axis1=1, axis2=2)
    if poor.any():
        found = spread()
        ridge = np.diag(RIDGE * np.where(found > 0.0, found, 1.0))
        covariances = np.where(poor[:, None, None], covariances + ridge, covariances)
    return covariances
