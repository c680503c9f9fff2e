"""Factor analysis and probabilistic principal components: rows that are linear in a few hidden factors, plus noise.

    x = mean + W z + e,    z ~ N(0, I),    e ~ N(0, diag(psi))

One variance for all columns makes it probabilistic PCA. From whole rows only their covariance S is needed
(`from_covariance`, O(columns^3) a turn): given psi the best W are the leading eigenvectors of psi^-1/2 S psi^-1/2, and
psi = diag(S - W W') then raises the likelihood again; with one variance that is a closed form. With missing cells it is EM
in the factors, in which each column is regressed on the factors of the rows that have it (`from_rows`, O(rows x columns x
factors^2) a turn); nothing is filled in.
References: Tipping and Bishop (1999), Rubin and Thayer (1982), Barber (2012), section 21.2.
"""

from dataclasses import dataclass

import numpy as np

from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array

LEAST = 1e-10
"""The smallest noise of a column, as a share of its variance."""
BLOCK = 4096
"""Rows whose posteriors are in memory at a time."""


@dataclass(frozen=True)
class Factors:
    """The parameters: `mean (columns,)`, `loadings (columns, factors)` and `noise (columns,)`."""

    mean: Array
    loadings: Array
    noise: Array

    @property
    def covariance(self) -> Array:
        """The covariance of rows."""
        return np.asarray(self.loadings @ self.loadings.T + np.diag(self.noise))

    def posteriors(self, rows: Array) -> tuple[Array, Array, Array]:
        """Return means (rows, factors) and covariances of the factors given each row, and the log density of each row.

        Missing cells (NaN) are summed out.
        """
        there = ~np.isnan(rows)
        apart = np.where(there, rows - self.mean, 0.0)
        q = self.loadings.shape[1]
        scaled = self.loadings / self.noise[:, None]
        squares = (scaled[:, :, None] * self.loadings[:, None, :]).reshape(-1, q * q)
        # rows that show the same columns share a covariance
        codes = there @ np.exp2(np.arange(there.shape[1])) if there.shape[1] < 53 else np.arange(len(there))
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        kinds = there[first]
        precision = np.eye(q) + (kinds.astype(np.float64) @ squares).reshape(-1, q, q)
        spread = np.asarray(np.linalg.inv(precision), dtype=np.float64)[which]
        pulled = apart @ scaled
        means = (spread @ pulled[:, :, None])[:, :, 0]
        lengths = (apart**2 / self.noise).sum(axis=1) - (means * pulled).sum(axis=1)
        sizes = kinds @ np.log(2.0 * np.pi * self.noise) + np.linalg.slogdet(precision)[1]
        return means, spread, -0.5 * (lengths + sizes[which])


def from_covariance(
    mean: Array,
    covariance: Array,
    q: int,
    *,
    one_noise: bool,
    noise: Array | None = None,
    max_iter: int = 1000,
    tol: float = 1e-8,
) -> Climb[Factors]:
    """Return the factors that make rows of a covariance most probable, from a first `noise`; `max_iter=1` is one turn."""
    spread = np.diag(covariance)
    if one_noise:
        made = _principal(mean, covariance, q)
        return Climb(made, [_log_likelihood(made, covariance)], "converged")
    # a column that does not vary has no noise to divide by
    least = np.where(spread > 0.0, LEAST * spread, LEAST * max(float(spread.max()), 1e-300))

    def turn(now: Factors) -> tuple[Factors, float]:
        root = np.sqrt(now.noise)
        values, vectors = np.linalg.eigh(covariance / root[:, None] / root)
        lead = np.sqrt(np.maximum(values[::-1][:q] - 1.0, 0.0))
        loadings = root[:, None] * vectors[:, ::-1][:, :q] * lead
        after = Factors(mean, loadings, np.maximum(spread - (loadings**2).sum(axis=1), least))
        return after, _log_likelihood(after, covariance)

    start = Factors(mean, np.zeros((len(mean), q)), np.maximum(spread if noise is None else noise, least))
    return climb(turn, start, max_iter=max_iter, tol=tol)


def _principal(mean: Array, covariance: Array, q: int) -> Factors:
    d = len(mean)
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    left = float(values[q:].mean()) if q < d else 0.0
    noise = max(left, LEAST * max(float(values[0]), 1e-300))
    return Factors(mean, vectors[:, :q] * np.sqrt(np.maximum(values[:q] - noise, 0.0)), np.full(d, noise))


def _log_likelihood(made: Factors, covariance: Array) -> float:
    """Return the log likelihood of a row, on average over rows with a covariance around the mean."""
    model = made.covariance
    size = np.linalg.slogdet(model)[1] + len(model) * np.log(2.0 * np.pi)
    return float(-0.5 * (size + np.trace(np.linalg.solve(model, covariance))))


def from_rows(
    rows: Array,
    weights: Array,
    start: Factors,
    *,
    one_noise: bool,
    max_iter: int,
    tol: float,
) -> Climb[Factors]:
    """Return the factors that make the cells that are there most probable, by EM from a start."""
    return climb(lambda now: _turn(now, rows, weights, one_noise), start, max_iter=max_iter, tol=tol)


def _turn(made: Factors, rows: Array, weights: Array, one_noise: bool) -> tuple[Factors, float]:
    """Return new factors, each column regressed on them and a one over the rows that have it, and the old likelihood."""
    d, q = made.loadings.shape
    products, sums = np.zeros((d, (q + 1) ** 2)), np.zeros((d, q + 1))
    squares, counts, value = np.zeros(d), np.zeros(d), 0.0
    for first in range(0, len(rows), BLOCK):
        part, w = rows[first : first + BLOCK], weights[first : first + BLOCK, None]
        means, spread, logs = made.posteriors(part)
        value += float(w[:, 0] @ logs)
        given = np.concatenate([means, np.ones((len(part), 1))], axis=1)
        second = given[:, :, None] * given[:, None, :]
        second[:, :q, :q] += spread
        there = w * ~np.isnan(part)
        cells = np.where(np.isnan(part), 0.0, part)
        products += there.T @ second.reshape(len(part), -1)
        sums += (there * cells).T @ given
        squares += (there * cells**2).sum(axis=0)
        counts += there.sum(axis=0)
    found = np.linalg.solve(products.reshape(d, q + 1, q + 1), sums[:, :, None])[:, :, 0]
    left = np.maximum(squares - (found * sums).sum(axis=1), 0.0)
    noise = np.full(d, left.sum() / counts.sum()) if one_noise else left / counts
    spread_of = squares / counts - (sums[:, q] / counts) ** 2
    least = LEAST * np.where(spread_of > 0.0, spread_of, max(float(spread_of.max()), 1e-300))
    return Factors(found[:, q], found[:, :q], np.maximum(noise, least)), value / float(weights.sum())


def rotated(loadings: Array, gamma: float, turns: int = 500) -> Array:
    """Return the loadings turned so that each factor has few large ones: varimax for gamma 1, quartimax for 0.

    Reference: Kaiser (1958).
    """
    d, q = loadings.shape
    turn, before = np.eye(q), 0.0
    for _ in range(turns):
        now = loadings @ turn
        u, s, v = np.linalg.svd(loadings.T @ (now**3 - gamma / d * now * (now**2).sum(axis=0)))
        turn = u @ v
        if s.sum() <= before * (1.0 + 1e-10):
            break
        before = s.sum()
    return np.asarray(loadings @ turn)
