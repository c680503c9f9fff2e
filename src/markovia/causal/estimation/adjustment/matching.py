"""Matching: each row's missing potential outcome is the mean outcome of its nearest rows in the other arm.

Nearness is Euclidean in standardised covariates ("nearest"), Mahalanobis, or the difference of the logit of the propensity
("propensity"); a caliper (in standard deviations of that distance's coordinate) leaves rows without a near match out.
Matches are with replacement, and all rows as near as the k-th nearest count alike, so that with discrete covariates every
row of a cell is a match and neither the order of the rows nor chance has a say. With several covariates the bias of
nearest-neighbour matching is removed by regression within arms (`bias_adjusted`), which also takes away what the estimated
propensity adds to the error. Errors are Abadie & Imbens' (2006), from matches within the own arm; the bootstrap fails here.

References: Rubin (1973); Rosenbaum & Rubin (1985); Abadie, Drukker, Herr & Imbens (2004), for ties and their errors;
Abadie & Imbens (2006, 2011, 2016). Cost: c log c by a k-d tree of the c different rows of covariates.
"""

from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from markovia.causal.estimation.adjustment.estimates import ArmMeans
from markovia.errors import InvalidArgument
from markovia.learning.regression.nuisance import Propensity, fit_glm, propensity
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice

DISTANCES = ("nearest", "mahalanobis", "propensity")


def matching(
    treatment: Ints,
    outcome: Array,
    covariates: Array,
    *,
    arms: int = 2,
    population: int | None = None,
    distance: str | None = None,
    neighbours: int = 1,
    caliper: float | None = None,
    bias_adjusted: bool = True,
    score: Propensity | None = None,
) -> ArmMeans:
    """Return the matched means of two or more arms.

    Parameters
    ----------
    treatment, outcome, covariates, arms, population
        See `standardisation`.
    distance
        "nearest", "mahalanobis" or "propensity"; by default the second, and the last where a score is given.
    neighbours
        Matches a row.
    caliper
        The largest distance of a match, in standard deviations; farther rows are left out.
    bias_adjusted
        Whether the outcome of a match is moved by a linear regression to the covariates of the row.
    score
        Probabilities of the arms that are known already; a logistic regression is fitted if not given.
    """
    distance = distance or ("mahalanobis" if score is None else "propensity")
    check_choice("distance", distance, DISTANCES)
    if score is not None and distance != "propensity":
        raise InvalidArgument(f"distance={distance!r} uses no propensity; leave propensity= or distance= out")
    if not covariates.shape[1]:
        covariates = np.zeros((len(outcome), 1))
    sizes = np.bincount(treatment, minlength=arms)
    if sizes.min() < 2:
        raise InvalidArgument(
            f"matching needs two rows or more in each arm, and arm {sizes.argmin()} has fewer"
        )
    metric, probabilities = _coordinates(treatment, covariates, arms, distance, score)
    # a score from elsewhere may tell rows apart that have the same covariates
    told = covariates if score is None else np.column_stack([covariates, metric.round(9)])
    _, first, cell = np.unique(told, axis=0, return_index=True, return_inverse=True)
    place, cell = metric[first], cell.ravel()
    n = len(outcome)
    own = np.eye(arms)[treatment]
    predicted = np.zeros((n, arms))
    if bias_adjusted:
        inside = [treatment == a for a in range(arms)]
        predicted = np.column_stack([fit_glm(covariates[i], outcome[i]).predict(covariates) for i in inside])
    residual = outcome - predicted[np.arange(n), treatment]
    kept = np.ones(n, dtype=bool) if population is None else treatment == population
    imputed, matched = np.empty((n, arms)), []
    for a in range(arms):
        found = _as_near(place, np.bincount(cell, own[:, a], len(place)), min(neighbours, int(sizes[a])))
        if caliper is not None:
            near = found.distance <= caliper * (1.0 if distance == "propensity" else np.sqrt(metric.shape[1]))
            kept &= near[cell] | (treatment == a)
        mean = found.near @ np.bincount(cell, own[:, a] * residual, len(place)) / found.rows
        imputed[:, a] = np.where(treatment == a, outcome, predicted[:, a] + mean[cell])
        matched.append(found)
    if not all((kept & (treatment == a)).any() for a in range(arms) if population in (None, a)):
        raise InvalidArgument(
            f"caliper={caliper:g} leaves no matched rows; widen it" if caliper else "no rows to match"
        )
    # how often each row stands in for others, in shares (K of the paper), and the sum of the shares' squares (K')
    used, squared = np.zeros((n, arms)), np.zeros((n, arms))
    for a, found in enumerate(matched):
        asking = np.bincount(cell, kept & (treatment != a), len(place))
        for total, power in ((used, 1), (squared, 2)):
            total[:, a] = own[:, a] * (found.near.T @ (asking / found.rows**power))[cell]
    members = kept.sum()
    values = imputed[kept].mean(axis=0)
    noise = _own_arm_variance(own, residual, place, cell)
    once = kept[:, None] * own
    repeats = once + used
    away = np.where(kept[:, None], imputed - values, 0.0)
    # each imputed outcome has noise of its own, which is counted once, with the reuse of the rows it comes from
    extra = noise @ (repeats**2 - once - squared)
    covariance = (away.T @ away + np.diag(np.maximum(extra, 0.0))) / members**2
    return ArmMeans(values, covariance, None, repeats.sum(axis=1), probabilities)


def _coordinates(
    treatment: Ints, covariates: Array, arms: int, distance: str, score: Propensity | None
) -> tuple[Array, Array | None]:
    """Return coordinates whose Euclidean distance is the one asked for, in standard deviations; the propensity's, too."""
    if distance == "propensity":
        probabilities = (score or propensity(treatment, covariates, arms)).probabilities
        p = np.clip(probabilities, 1e-9, 1.0)
        logits = np.log(p[:, 1:] / p[:, [0]])
        return np.asarray(logits / np.maximum(logits.std(axis=0), 1e-12)), probabilities
    centred = covariates - covariates.mean(axis=0)
    if distance == "nearest":
        return np.asarray(centred / np.maximum(centred.std(axis=0), 1e-12)), None
    covariance = centred.T @ centred / max(len(centred) - 1, 1)
    values, vectors = np.linalg.eigh(covariance)
    fine = values > 1e-10 * max(float(values.max()), 1e-300)
    return np.asarray(centred @ (vectors[:, fine] / np.sqrt(values[fine]))) if fine.any() else centred, None


class _Neighbourhood(NamedTuple):
    """What is near each cell: its k-th smallest distance, the cells within it (sparse 0 and 1), and the rows in those."""

    distance: Array
    near: Any
    rows: Array


def _as_near(place: Array, count: Any, k: int) -> _Neighbourhood:
    """Return for each place all that are as near as the k-th nearest row, `count` rows being at each place."""
    from scipy.sparse import csr_array
    from scipy.spatial import cKDTree

    filled = np.flatnonzero(count)
    tree = cKDTree(place[filled])
    # one place more than k: it tells whether there are ties
    asked = min(k + 1, len(filled))
    gap, found = (np.asarray(v).reshape(len(place), asked) for v in tree.query(place, k=asked))
    reached = (count[filled][found].cumsum(axis=1) >= k).argmax(axis=1)
    distance = gap[np.arange(len(place)), reached]
    # ties are ties up to rounding: coordinates are in standard deviations
    radius = distance * (1 + 1e-9) + 1e-9
    tied = (gap <= radius[:, None]).sum(axis=1) > reached + 1
    row, rank = np.nonzero((np.arange(asked) <= reached[:, None]) & ~tied[:, None])
    balls = tree.query_ball_point(place[tied], radius[tied])
    rows = np.append(row, np.repeat(np.flatnonzero(tied), [len(ball) for ball in balls]))
    columns = filled[np.append(found[row, rank], np.fromiter(chain.from_iterable(balls), dtype=np.int64))]
    near = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(place), len(place)))
    return _Neighbourhood(distance, near, near @ count)


def _own_arm_variance(own: Array, outcome: Array, place: Array, cell: Ints) -> Array:
    """Return an estimate of the outcome's variance at each row, from the nearest others of its arm (all that are tied)."""
    variance = np.zeros(len(outcome))
    for member in own.T:
        # of a row and its m nearest others: m / (m + 1) times the squared distance from the others' mean
        found = _as_near(place, np.bincount(cell, member, len(place)), 2)
        mean = (found.near @ np.bincount(cell, member * outcome, len(place)) / found.rows)[cell]
        size = found.rows[cell]
        variance += member * (outcome - mean) ** 2 * size / (size - 1)
    return variance
