"""Sparse linear models by evidence: each weight w_j is N(0, 1 / a_j), and the precisions a_j are fitted.

Where the evidence of a_j has no top the weight is zero, and its column is dropped. A step adds, changes or drops the one
column that gains most (Tipping and Faul 2003), and the noise of normal targets takes its EM step, so that their evidence
never falls. Binary targets are logistic, by Laplace's approximation. Cost of a step: rows x columns x kept.
"""

# ruff: noqa: N806 (letters of the literature)

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from markovia.factors.covariances.algebra import spread
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array, Ints

LEAST_NOISE = 1e-9
"""The smallest variance of the noise, in units of that of the targets."""


@dataclass(frozen=True)
class RelevantWeights:
    """The columns that are kept, precisions of their weights, the noise (0 where binary), and the weights' posterior."""

    kept: Ints
    precisions: Array
    noise: float
    mean: Array
    cov: Array


def relevant_weights(
    design: Array, y: Array, *, binary: bool, max_iter: int, tol: float
) -> Climb[RelevantWeights]:
    """Return the weights of a design's columns; `y` are numbers, or zeros and ones where `binary`."""
    none = np.zeros(0)
    start = RelevantWeights(none.astype(int), none, 0.0 if binary else spread(y), none, np.zeros((0, 0)))
    step = partial(_step, design, y)
    found = climb(step, start, max_iter=max_iter, tol=tol, size=len(y), may_fall=binary, name="relevance")
    return replace(found, state=_posterior(design, y, found.state)[0])


def _posterior(
    design: Array, y: Array, state: RelevantWeights
) -> tuple[RelevantWeights, float, Array, Array]:
    """Return the posterior of weights, the log evidence, and the curvature and slope of each row's log likelihood."""
    Phi, a, w = design[:, state.kept], state.precisions, state.mean

    def likelihood(w: Array) -> tuple[float, Array, Array]:
        """Return the log density of targets and weights, and slope and curvature by the function at rows."""
        f, prior = Phi @ w, -0.5 * float(a @ w**2)
        if state.noise:
            log_norm = -0.5 * len(y) * np.log(2.0 * np.pi * state.noise)
            slope = (y - f) / state.noise
            return prior + log_norm - 0.5 * float((y - f) @ slope), slope, np.full(len(y), 1.0 / state.noise)
        p = np.exp(-np.logaddexp(0.0, -f))
        return prior - float(np.logaddexp(0.0, np.where(y > 0.0, -f, f)).sum()), y - p, p * (1.0 - p)

    for _ in range(50):  # Newton's steps, halved where they do not climb; one is all for normal targets
        height, slope, curve = likelihood(w)
        H = (Phi.T * curve) @ Phi + np.diag(a)
        move = np.linalg.solve(H, Phi.T @ slope - a * w)
        size = 1.0
        while size > 1e-9 and likelihood(w + size * move)[0] < height:
            size *= 0.5
        w = w + size * move
        if state.noise or np.abs(move).max(initial=0.0) <= 1e-10 * np.abs(w).max(initial=0.0):
            break
    height, slope, curve = likelihood(w)
    H = (Phi.T * curve) @ Phi + np.diag(a)
    evidence = height + 0.5 * (float(np.log(a).sum()) - float(np.linalg.slogdet(H)[1]))
    return replace(state, mean=w, cov=np.asarray(np.linalg.inv(H), dtype=np.float64)), evidence, curve, slope


def _step(design: Array, y: Array, state: RelevantWeights) -> tuple[RelevantWeights, float]:
    """Return the state after the change of one precision that gains most; the evidence is that of the state before."""
    state, evidence, curve, slope = _posterior(design, y, state)
    kept, noise, m = state.kept, state.noise, design.shape[1]
    # s and q: the precision and the pull that data have for a weight, given all other columns
    G = design.T @ (curve[:, None] * design[:, kept])
    s, q = curve @ design**2 - np.einsum("ij,jk,ik->i", G, state.cov, G), design.T @ slope
    a, weights = np.full(m, np.inf), np.zeros(m)
    a[kept], weights[kept] = state.precisions, state.mean
    own = np.ones(m)
    own[kept] = a[kept] / (a[kept] - s[kept])  # takes out the column's own part
    s, q = own * s, own * q
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.where(q * q > s, s * s / (q * q - s), np.inf)
        gain = _part(top, s, q) - _part(a, s, q)
    gain[~np.isfinite(gain) | ~(s > 0.0)] = 0.0
    gain[kept] *= 1.0 + 1e-6  # a column whose twin is kept stays out
    best = int(np.argmax(gain))
    a[best] = top[best] if gain[best] > 1e-10 * len(y) else a[best]
    after = np.flatnonzero(np.isfinite(a))
    if noise:
        error = y - design[:, kept] @ state.mean
        known = len(kept) - float(state.precisions @ np.diag(state.cov))  # how many weights data determine
        noise = max((float(error @ error) + noise * known) / len(y), LEAST_NOISE * spread(y))
    return RelevantWeights(after, a[after], noise, weights[after], np.zeros((0, 0))), evidence


def _part(a: Array, s: Array, q: Array) -> Array:
    """Return the part of the log evidence that a precision has, zero where it is infinite."""
    return np.where(np.isfinite(a), 0.5 * (np.log(a) - np.log(a + s) + q * q / (a + s)), 0.0)
