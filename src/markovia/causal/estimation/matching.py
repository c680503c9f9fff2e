"""Matching: each row's missing potential outcome is the mean outcome of its nearest rows in the other arm.

Nearness is Euclidean in standardised covariates ("nearest"), Mahalanobis, or the difference of the logit of the propensity
("propensity"); a caliper (in standard deviations of that distance's coordinate) leaves rows without a near match out.
Matches are with replacement. With several covariates the bias of nearest-neighbour matching is removed by regression
within arms (`bias_adjusted`), which also takes away what the estimated propensity adds to the error. Errors are Abadie &
Imbens' (2006), from matches within the own arm; the bootstrap fails here.

References: Rubin (1973); Rosenbaum & Rubin (1985); Abadie & Imbens (2006, 2011, 2016). Cost: n log n by a k-d tree.
"""

import numpy as np

from markovia.causal.estimation.estimates import ArmMeans
from markovia.causal.estimation.nuisance import fit_glm, propensity
from markovia.errors import InvalidArgument
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
    distance: str = "mahalanobis",
    neighbours: int = 1,
    caliper: float | None = None,
    bias_adjusted: bool = True,
) -> ArmMeans:
    """Return the matched means of two or more arms.

    Parameters
    ----------
    treatment, outcome, covariates, arms, population
        See `standardisation`.
    distance
        "nearest", "mahalanobis" or "propensity".
    neighbours
        Matches a row.
    caliper
        The largest distance of a match, in standard deviations; farther rows are left out.
    bias_adjusted
        Whether the outcome of a match is moved by a linear regression to the covariates of the row.
    """
    check_choice("distance", distance, DISTANCES)
    if not covariates.shape[1]:
        covariates = np.zeros((len(outcome), 1))
    metric = _coordinates(treatment, covariates, arms, distance)
    n = len(outcome)
    imputed, counts = np.empty((n, arms)), np.zeros((n, arms))
    residual = outcome.copy()
    kept = np.ones(n, dtype=bool) if population is None else treatment == population
    neighbour_of: list[tuple[Ints, Ints]] = []
    for a in range(arms):
        inside = np.flatnonzero(treatment == a)
        rows = np.flatnonzero(treatment != a)
        gap, found = _nearest(metric[inside], metric[rows], min(neighbours, len(inside)))
        if caliper is not None:
            near = gap[:, -1] <= caliper * (1.0 if distance == "propensity" else np.sqrt(metric.shape[1]))
            kept[rows[~near]] = False
        values = outcome[inside][found]
        if bias_adjusted:
            predicted = fit_glm(covariates[inside], outcome[inside]).predict(covariates)
            values = values + predicted[rows][:, None] - predicted[inside][found]
            residual[inside] -= predicted[inside]
        imputed[inside, a], imputed[rows, a] = outcome[inside], values.mean(axis=1)
        neighbour_of.append((rows, inside[found]))
    if not all((kept & (treatment == a)).any() for a in range(arms) if population in (None, a)):
        raise InvalidArgument(
            f"caliper={caliper:g} leaves no matched rows; widen it" if caliper else "no rows to match"
        )
    for a, (rows, found) in enumerate(neighbour_of):
        chosen = kept[rows]
        np.add.at(counts[:, a], found[chosen].ravel(), 1.0 / found.shape[1])
    members = kept.sum()
    values = imputed[kept].mean(axis=0)
    noise = _own_arm_variance(treatment, residual, metric, arms)
    own = (kept[:, None] & (treatment[:, None] == np.arange(arms))).astype(float)
    repeats = own + counts
    m = min(neighbours, int(np.bincount(treatment, minlength=arms).min()))
    away = np.where(kept[:, None], imputed - values, 0.0)
    # each imputed outcome has noise of its own, which is counted once, with the reuse of the rows it comes from
    extra = noise @ (repeats**2 - own - counts / m)
    covariance = (away.T @ away + np.diag(np.maximum(extra, 0.0))) / members**2
    return ArmMeans(values, covariance, None, repeats.sum(axis=1))


def _coordinates(treatment: Ints, covariates: Array, arms: int, distance: str) -> Array:
    """Return coordinates in which the Euclidean distance is the one asked for, in standard deviations."""
    if distance == "propensity":
        p = np.clip(propensity(treatment, covariates, arms).probabilities, 1e-9, 1.0)
        logits = np.log(p[:, 1:] / p[:, [0]])
        return np.asarray(logits / np.maximum(logits.std(axis=0), 1e-12))
    centred = covariates - covariates.mean(axis=0)
    if distance == "nearest":
        return np.asarray(centred / np.maximum(centred.std(axis=0), 1e-12))
    covariance = centred.T @ centred / max(len(centred) - 1, 1)
    values, vectors = np.linalg.eigh(covariance)
    fine = values > 1e-10 * max(float(values.max()), 1e-300)
    return np.asarray(centred @ (vectors[:, fine] / np.sqrt(values[fine]))) if fine.any() else centred


def _nearest(points: Array, targets: Array, k: int) -> tuple[Array, Ints]:
    """Return distances and positions of the k nearest points of each target, both of shape (targets, k)."""
    from scipy.spatial import cKDTree

    gap, found = cKDTree(points).query(targets, k=k)
    return np.asarray(gap).reshape(len(targets), k), np.asarray(found).reshape(len(targets), k)


def _own_arm_variance(treatment: Ints, outcome: Array, metric: Array, arms: int) -> Array:
    """Return an estimate of the outcome's variance at each row: half the squared difference from its neighbour's."""
    variance = np.zeros(len(outcome))
    for a in range(arms):
        inside = np.flatnonzero(treatment == a)
        if len(inside) < 2:
            continue
        _, found = _nearest(metric[inside], metric[inside], 2)
        # among ties the row itself may come second
        other = np.where(found[:, 0] == np.arange(len(inside)), found[:, 1], found[:, 0])
        variance[inside] = (outcome[inside] - outcome[inside][other]) ** 2 / 2.0
    return variance
