"""Mixtures of regressions and of experts, learned by expectation-maximisation.

    p(y | x) = sum_k g_k(x) p(y | x, k),    g(x) = softmax(V x), or shares that do not depend on x

Experts are linear (Gaussian around b_k x) or logistic. Each turn gives rows to experts by their posterior, and lets every
expert learn from its weighted rows: least squares, or Newton's steps, as for the gate, which start where the last turn
ended. The penalised likelihood never falls. A Gaussian expert could shrink onto rows it passes through; its variance has a
floor.
References: Jordan and Jacobs (1994), DeSarbo and Cron (1988). Cost of a turn: rows x experts x columns^2.
"""

from dataclasses import dataclass, replace

import numpy as np

from markovia.learning.latent.k_means import Partition, lloyd, plus_plus
from markovia.learning.regression.iteratively_reweighted import fit_softmax
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array

FLOOR = 1e-6
"""The smallest variance of an expert, as a share of that of y."""
NEWTON = 8
"""The most steps of gates and logistic experts in a turn."""


@dataclass(frozen=True)
class Experts:
    """The parameters: `coefs (k, p)`, `variances (k,)` or None where experts are logistic, `gate (k, p)` scores.

    A row x has a one in front. `gated` says whether the gate looks at x, or only at that one.
    """

    coefs: Array
    variances: Array | None
    gate: Array
    gated: bool
    l2: float

    def log_gates(self, x: Array) -> Array:
        """Return log g_k(x), (rows, k)."""
        scores = x @ self.gate.T
        return np.asarray(scores - np.logaddexp.reduce(scores, axis=1)[:, None])

    def means(self, x: Array) -> Array:
        """Return the mean of y in each component, (rows, k)."""
        scores = x @ self.coefs.T
        return scores if self.variances is not None else np.asarray(1.0 / (1.0 + np.exp(-scores)))

    def log_densities(self, x: Array, y: Array) -> Array:
        """Return log p(y | x, k), (rows, k)."""
        scores = x @ self.coefs.T
        if self.variances is None:
            return np.asarray(y[:, None] * scores - np.logaddexp(0.0, scores))
        squares = (y[:, None] - scores) ** 2 / self.variances
        return np.asarray(-0.5 * (squares + np.log(2.0 * np.pi * self.variances)))

    def log_joint(self, x: Array, y: Array) -> Array:
        """Return log g_k(x) p(y | x, k)."""
        return self.log_gates(x) + self.log_densities(x, y)

    def objective(self, x: Array, y: Array, weights: Array) -> float:
        """Return the log likelihood less the penalty."""
        logs = np.logaddexp.reduce(self.log_joint(x, y), axis=1)
        return float(weights @ logs) - self._penalty()

    def _penalty(self) -> float:
        return 0.5 * self.l2 * float((self.coefs[:, 1:] ** 2).sum() + (self.gate[:, 1:] ** 2).sum())

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        k, p = self.coefs.shape
        return int(k * p + (k if self.variances is not None else 0) + (k - 1) * (p if self.gated else 1))


@dataclass(frozen=True)
class Units:
    """What brings columns and y to mean 0 and variance 1, so that penalties and floors know no unit; y of classes stays."""

    x_mean: Array
    x_scale: Array
    y_mean: float
    y_scale: float

    @classmethod
    def of(cls, x: Array, y: Array, weights: Array, *, logistic: bool) -> "Units":
        """Return the units of rows, which have a one in front."""
        mean = np.average(x[:, 1:], axis=0, weights=weights)
        spread = np.sqrt(np.average((x[:, 1:] - mean) ** 2, axis=0, weights=weights))
        spread = np.where(spread > 1e-12 * np.abs(mean), spread, 1.0)
        if logistic:
            return cls(mean, spread, 0.0, 1.0)
        level, scale = float(np.average(y, weights=weights)), float(np.sqrt(_variance(y, weights)))
        return cls(mean, spread, level, scale if scale > 1e-12 * abs(level) else 1.0)

    def standard(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return rows and y in these units."""
        rows = np.column_stack([x[:, :1], (x[:, 1:] - self.x_mean) / self.x_scale])
        return rows, (y - self.y_mean) / self.y_scale

    def restored(self, made: Experts) -> Experts:
        """Return experts of rows and y as they were."""
        coefs, gate = (self._of_rows(scores) for scores in (made.coefs, made.gate))
        coefs = self.y_scale * coefs
        coefs[:, 0] += self.y_mean
        variances = None if made.variances is None else self.y_scale**2 * made.variances
        return replace(made, coefs=coefs, variances=variances, gate=gate)

    def _of_rows(self, scores: Array) -> Array:
        slopes = scores[:, 1:] / self.x_scale
        return np.column_stack([scores[:, 0] - slopes @ self.x_mean, slopes])


def learn_experts(
    start: Experts, x: Array, y: Array, weights: Array, *, max_iter: int, tol: float
) -> Climb[Experts]:
    """Climb the objective a unit of weight (see `climb`); its history has that after each turn."""
    size, least = weights.sum(), FLOOR * _variance(y, weights)

    def turn(now: Experts) -> tuple[Experts, float]:
        joint = now.log_joint(x, y)
        shares = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]) * weights[:, None]
        after = _learned(now, x, y, shares, least)
        return after, after.objective(x, y, weights) / size

    first = start.objective(x, y, weights) / size
    return climb(turn, start, max_iter=max_iter, tol=tol, first=first)


def _variance(y: Array, weights: Array) -> float:
    mean = weights @ y / weights.sum()
    return max(float(weights @ (y - mean) ** 2 / weights.sum()), 1e-300)


def _learned(made: Experts, x: Array, y: Array, shares: Array, least: float) -> Experts:
    """Return experts and gate learned from the share of each row that belongs to each component."""
    p = x.shape[1]
    penalty = np.full(p, made.l2)
    penalty[0] = 0.0
    coefs = made.coefs.copy()
    variances = made.variances
    for j, own in enumerate(shares.T):
        if made.variances is None:
            counts = np.column_stack([own * (1.0 - y), own * y])
            # two symmetric scores share the penalty of their difference
            start = np.stack([-0.5 * coefs[j], 0.5 * coefs[j]])
            found = fit_softmax(x, counts, 2.0 * penalty, symmetric=True, start=start, max_iter=NEWTON).coef
            coefs[j] = found[1] - found[0]
        elif made.l2 > 0.0:
            moments = (x.T * own) @ x + np.diag(penalty * made.variances[j])
            coefs[j] = np.linalg.lstsq(moments, x.T @ (own * y), rcond=None)[0]
        else:
            root = np.sqrt(own)
            coefs[j] = np.linalg.lstsq(root[:, None] * x, root * y, rcond=None)[0]
    sizes = shares.sum(axis=0)
    if variances is not None:
        left = (shares * (y[:, None] - x @ coefs.T) ** 2).sum(axis=0)
        variances = np.where(
            sizes > 0.0, np.maximum(left / np.where(sizes > 0.0, sizes, 1.0), least), variances
        )
    if not made.gated:
        gate = np.zeros_like(made.gate)
        gate[:, 0] = np.log(np.maximum(sizes / sizes.sum(), 1e-300))
    elif len(sizes) > 1:
        gate = fit_softmax(x, shares, penalty, symmetric=True, start=made.gate, max_iter=NEWTON).coef
    else:
        gate = made.gate
    return replace(made, coefs=coefs, variances=variances, gate=gate)


def first_experts(
    x: Array, y: Array, weights: Array, k: int, rng: np.random.Generator, *, logistic: bool, gated: bool, l2: float,
    around: bool,
) -> Experts:  # fmt: skip
    """Return experts to begin with: `around` clusters of rows and y, or through a few rows drawn for each."""
    p = x.shape[1]
    if around:
        table = np.column_stack([x[:, 1:], y])
        spread = table.std(axis=0)
        part = Partition((table - table.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), weights)
        labels = lloyd(part, plus_plus(part.rows, weights, k, rng), max_iter=20).labels
        shares = np.where(np.arange(k) == labels[:, None], 1.0, 0.1 / k) * weights[:, None]
    else:
        shares = np.full((len(x), k), 0.1 / k)
        few = min(len(x), 2 * p)
        for j in range(k):
            shares[rng.choice(len(x), few, replace=False), j] = 1.0
        shares *= weights[:, None]
    variance = _variance(y, weights)
    blank = Experts(np.zeros((k, p)), None if logistic else np.full(k, variance), np.zeros((k, p)), gated, l2)
    made = _learned(replace(blank, gated=False), x, y, shares, FLOOR * variance)
    # experts through a few rows are too sure of themselves to share any others
    wide = None if made.variances is None else np.full(k, max(float(made.variances.mean()), 0.05 * variance))
    return replace(made, variances=wide, gated=gated)
