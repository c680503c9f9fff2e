"""The M-step for switching linear dynamics: matrices of each regime from expected sums of products.

Coefficients by generalised least squares over all regimes at once, since those that regimes share are one unknown; then the
covariances, shared or not, of what is left. Each step raises the expected log likelihood (Murphy 1998, Meng and Rubin 1993).
"""

# ruff: noqa: N803, N806 (letters of the literature)

from typing import NamedTuple

import numpy as np

from markovia.runtime.array_types import Array, Flags


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
