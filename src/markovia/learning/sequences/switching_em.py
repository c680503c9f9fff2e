"""Expectation-maximisation for switching linear dynamics: matrices of each regime from expected sums of products.

The E-step is a smoother that is handed in. M-step: coefficients by generalised least squares over all regimes at once, since
those that regimes share are one unknown; then the covariances, shared or not, of what is left. Each step raises the
expected log likelihood (Murphy 1998, Meng and Rubin 1993).
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from markovia.inference.sequences.switching_filter import Back, Regimes
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array, Flags


class _Best(NamedTuple):
    """The model to go on from, and the best one so far with its log likelihood."""

    model: Regimes
    best: Regimes
    value: float


def learn_switching(
    start: Regimes,
    y: Array,
    smooth: Callable[[Regimes], list[Back]],
    learn: Collection[str],
    shared: Collection[str],
    *,
    max_iter: int,
    tol: float,
    time_limit: float | None = None,
    progress: bool | None = False,
) -> Climb[Regimes]:
    """Climb the log likelihood from a model (see `climb`), and return the best model of all iterations.

    Parameters
    ----------
    start, y
        The model to begin with; one row a step of all sequences, NaN where a number is missing.
    smooth
        Returns what is known of each sequence under a model. Approximate expectations may lose some likelihood.
    learn, shared
        The names of what is learned, and of what is the same for all regimes.
    """

    def step(now: _Best) -> tuple[_Best, float]:
        found = smooth(now.model)
        value = float(sum(float(one.log_prob) for one in found))
        best = (now.model, value) if value >= now.value else (now.best, now.value)
        return _Best(improved_regimes(now.model, found, y, learn, shared), *best), value

    size = max(1, int((~np.isnan(y)).sum()))
    found = climb(
        step, _Best(start, start, -np.inf), max_iter=max_iter, tol=tol, size=size, may_fall=True, time_limit=time_limit,
        progress=progress,
    )  # fmt: skip
    return Climb(found.state.best, found.history, found.reason)


def improved_regimes(
    model: Regimes, found: list[Back], y: Array, learn: Collection[str], shared: Collection[str]
) -> Regimes:
    """Return the model that expected sums of products ask for."""
    pairs: list[Any] = [np.sum([one.pairs[i] for one in found], axis=0) for i in range(6)]
    w = [np.exp(one.logs) for one in found]

    def trio(part: str, sums: SwitchingSums, now: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        matrix, offset, cov = now
        n = matrix.shape[2]
        free = np.array([part in learn] * n + [f"{part}_offset" in learn])
        alike = np.array([part in shared] * n + [f"{part}_offset" in shared])
        both, new = regressed(
            sums, np.concatenate([matrix, offset[:, :, None]], axis=2), cov, free, alike,
            cov_free=f"{part}_cov" in learn, cov_alike=f"{part}_cov" in shared,
        )  # fmt: skip
        return both[:, :, :-1], both[:, :, -1], new

    moved: Any = (model.A, model.b, model.Q)
    if pairs[0].sum() > 0:
        moved = trio("transition", SwitchingSums(pairs[0].sum(axis=0), *pairs[1:]), moved)
    x, V = np.concatenate([one.mean for one in found]), np.concatenate([one.cov for one in found])
    sums = observed_sums(y, np.concatenate(w), x, V, model.C, model.d, model.R)
    shown: Any = trio("observation", sums, (model.C, model.d, model.R))
    first = np.array([one[0] for one in w])
    m, S = np.array([one.mean[0] for one in found]), np.array([one.cov[0] for one in found])
    mean, cov = _first_states(first, m, S, (model.mean, model.cov), learn, shared)
    start, moves = model.start, model.moves
    with np.errstate(divide="ignore"):
        if "regime_start" in learn:
            start = np.log(first.mean(axis=0))
        if "regime_transition" in learn:
            left = pairs[0].sum(axis=1, keepdims=True)
            moves = np.where(left > 1e-9, np.log(pairs[0] / np.where(left > 1e-9, left, 1.0)), model.moves)
    return Regimes(start, moves, moved[0], moved[1], moved[2], shown[0], shown[1], shown[2], mean, cov)


def _first_states(
    w: Array, m: Array, V: Array, now: tuple[Array, Array], learn: Collection[str], shared: Collection[str]
) -> tuple[Array, Array]:
    """Return the mean and covariance of first states from their (sequences, regimes) weights and moments."""
    mean, cov = now
    total = w.sum(axis=0)
    seen = total > 1e-9
    if "initial_mean" in learn:
        sums = np.einsum("sk,ska->ka", w, m)
        own = np.where(seen[:, None], sums / np.where(seen, total, 1.0)[:, None], mean)
        mean = (
            np.broadcast_to(sums.sum(axis=0) / total.sum(), mean.shape) if "initial_mean" in shared else own
        )
    if "initial_cov" in learn:
        away = m - mean
        sums = np.einsum("sk,skab->kab", w, V) + np.einsum("sk,ska,skb->kab", w, away, away)
        own = np.where(seen[:, None, None], sums / np.where(seen, total, 1.0)[:, None, None], cov)
        cov = np.broadcast_to(sums.sum(axis=0) / total.sum(), cov.shape) if "initial_cov" in shared else own
    return np.array(mean), np.array(cov)


class SwitchingSums(NamedTuple):
    """For each regime: weight, and expected sums of x x', x, y x', y y', y."""

    mass: Array
    xx: Array
    x1: Array
    yx: Array
    yy: Array
    y1: Array


def regressed(
    sums: SwitchingSums,
    coefficients: Array,
    covs: Array,
    free: Flags,
    alike: Flags,
    *,
    cov_free: bool,
    cov_alike: bool,
) -> tuple[Array, Array]:
    """Return the coefficients (regimes, outputs, inputs and a constant) and covariances of y on x.

    Parameters
    ----------
    sums
        What is expected of the products.
    coefficients, covs
        As they are now.
    free, alike
        Which columns of the coefficients are learned, and which are the same for all regimes.
    cov_free, cov_alike
        The same of the covariances.
    """
    K, p, width = coefficients.shape
    S = np.zeros((K, width, width))
    S[:, :-1, :-1], S[:, :-1, -1], S[:, -1, :-1], S[:, -1, -1] = sums.xx, sums.x1, sums.x1, sums.mass
    R = np.concatenate([sums.yx, sums.y1[:, :, None]], axis=2)
    found = coefficients.copy()
    if free.any():
        entries = np.arange(K * p * width).reshape(K, p, width)
        unknown = np.where(alike, entries[:1], entries)[:, :, free]
        names, where = np.unique(unknown, return_inverse=True)
        where = where.reshape(K, p, -1)
        left, right = np.zeros((len(names), len(names))), np.zeros(len(names))
        for k in range(K):
            W = np.linalg.pinv(covs[k], hermitian=True)
            at = where[k].ravel()
            inside = np.ix_(np.tile(free, p), np.tile(free, p))
            left[np.ix_(at, at)] += np.kron(W, S[k])[inside]
            right[at] += (W @ (R[k] - np.where(free, 0.0, coefficients[k]) @ S[k]))[:, free].ravel()
        solved = np.linalg.lstsq(left, right, rcond=1e-12)[0]
        found[:, :, free] = solved[where]
    if not cov_free:
        return found, covs
    away = sums.yy - found @ R.swapaxes(1, 2) - R @ found.swapaxes(1, 2) + found @ S @ found.swapaxes(1, 2)
    away = (away + away.swapaxes(1, 2)) / 2
    if cov_alike:
        return found, np.broadcast_to(away.sum(axis=0) / sums.mass.sum(), covs.shape).copy()
    seen = sums.mass > 1e-9  # a regime that nothing visits keeps what it had
    return found, np.where(seen[:, None, None], away / np.where(seen, sums.mass, 1.0)[:, None, None], covs)


def observed_sums(
    y: Array,
    weights: Array,
    x: Array,
    V: Array,
    C: Array,
    d: Array,
    R: Array,
) -> SwitchingSums:
    """Return the sums for observations, missing numbers as they are expected given states and the step's other numbers.

    Parameters
    ----------
    y
        One row a step; NaN is missing.
    weights, x, V
        For each step and regime: its probability, and the state's mean and covariance.
    C, d, R
        The matrices of the regimes as they are now.
    """
    K, p, n = C.shape
    found = SwitchingSums(
        np.zeros(K),
        np.zeros((K, n, n)),
        np.zeros((K, n)),
        np.zeros((K, p, n)),
        np.zeros((K, p, p)),
        np.zeros((K, p)),
    )
    kinds, kind = np.unique(~np.isnan(y), axis=0, return_inverse=True)
    for number, there in enumerate(kinds):
        if not there.any():
            continue
        rows, gone = np.flatnonzero(kind.ravel() == number), ~there
        for k in range(K):
            w, m, full = weights[rows, k], x[rows, k], y[rows].copy()
            G, noise = np.zeros((p, n)), np.zeros((p, p))
            B = R[k][np.ix_(gone, there)] @ np.linalg.pinv(R[k][np.ix_(there, there)])
            G[gone] = C[k][gone] - B @ C[k][there]
            noise[np.ix_(gone, gone)] = R[k][np.ix_(gone, gone)] - B @ R[k][np.ix_(there, gone)]
            full[:, gone] = m @ G[gone].T + d[k][gone] + (full[:, there] - d[k][there]) @ B.T
            spread = np.einsum("t,tab->ab", w, V[rows, k])
            found.mass[k] += w.sum()
            found.xx[k] += (w[:, None] * m).T @ m + spread
            found.x1[k] += w @ m
            found.yx[k] += (w[:, None] * full).T @ m + G @ spread
            found.yy[k] += (w[:, None] * full).T @ full + G @ spread @ G.T + w.sum() * noise
            found.y1[k] += w @ full
    return found
