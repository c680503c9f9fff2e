"""Regression discontinuity: the jump of the outcome where a running variable crosses a cutoff.

Local linear regressions with triangular weights on both sides; the bias of the line is estimated by a parabola with the
same bandwidth and taken off, with errors that know it (Calonico, Cattaneo & Titiunik, 2014). In the fuzzy design the jump of
the outcome is divided by the treatment's. The bandwidth balances squared bias and variance (Imbens & Kalyanaraman, 2012).
"""

from typing import NamedTuple

import numpy as np

from markovia.causal.estimation.adjustment.estimates import Estimate, estimate
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array


class Discontinuity(NamedTuple):
    """A jump, the bandwidth, how many rows lie within it, and the uncorrected local linear jump."""

    estimate: Estimate
    bandwidth: float
    rows: int
    local_linear: float


def discontinuity(
    running: Array,
    outcome: Array,
    cutoff: float = 0.0,
    *,
    treatment: Array | None = None,
    bandwidth: float | None = None,
    clusters: object = None,
) -> Discontinuity:
    """Return the effect at the cutoff.

    Parameters
    ----------
    running, outcome
        Numbers; rows at or above the cutoff are treated in the sharp design.
    treatment
        0 or 1 for the fuzzy design, where crossing only makes treatment likelier.
    bandwidth
        How far from the cutoff rows count; chosen from the data where None.
    """
    x = running - cutoff
    if not ((x < 0).sum() >= 5 and (x >= 0).sum() >= 5):
        raise InvalidArgument(f"the cutoff {cutoff:g} needs at least five rows on each side")
    h = choose_bandwidth(x, outcome) if bandwidth is None else float(bandwidth)
    near = np.abs(x) < h
    if min((near & (x < 0)).sum(), (near & (x >= 0)).sum()) < 5:
        raise InvalidArgument(f"bandwidth={h:.3g} holds fewer than five rows on a side; widen it")
    value, influence = _jump(x, outcome, h, 2)
    linear = _jump(x, outcome, h, 1)[0]
    if treatment is not None:
        jump, of_treatment = _jump(x, treatment, h, 2)
        if abs(jump) <= 1e-12 * float(treatment.std()):
            raise InvalidArgument(
                "the treatment does not jump at the cutoff, so there is no effect to learn there"
            )
        value = value / jump
        influence = (influence - value * of_treatment) / jump
        linear /= _jump(x, treatment, h, 1)[0]
    return Discontinuity(estimate(value, influence, clusters=clusters), h, int(near.sum()), float(linear))


def _jump(x: Array, y: Array, h: float, order: int) -> tuple[float, Array]:
    """Return the difference of the two sides' polynomials at 0, and its influence function."""
    weights = np.maximum(1 - np.abs(x) / h, 0.0)
    total, influence = 0.0, np.zeros(len(x))
    for sign, side in ((1.0, x >= 0), (-1.0, x < 0)):
        rows = np.flatnonzero(side & (weights > 0))
        basis = (x[rows] / h)[:, None] ** np.arange(order + 1)
        w = weights[rows]
        inverse = np.linalg.pinv((basis * w[:, None]).T @ basis, hermitian=True)
        hat = inverse @ (basis * w[:, None]).T
        coef = hat @ y[rows]
        # HC3: leave-one-out residuals, since few rows carry the value at the edge
        leverage = np.einsum("ij,ji->i", basis, hat)
        residual = (y[rows] - basis @ coef) / np.maximum(1 - leverage, 1e-3)
        total += sign * coef[0]
        influence[rows] = sign * len(x) * hat[0] * residual
    return float(total), influence


def choose_bandwidth(x: Array, y: Array) -> float:
    """Return the bandwidth of Imbens & Kalyanaraman for triangular weights; x is centred at the cutoff."""
    n, unit = len(x), float(x.std())
    x, y = x / unit, y / (float(y.std()) or 1.0)
    pilot = 1.84 * x.std() * n**-0.2
    sides = [(x >= -pilot) & (x < 0), (x >= 0) & (x <= pilot)]
    if min(s.sum() for s in sides) < 3:
        pilot = float(np.abs(x).max())
        sides = [x < 0, x >= 0]
    density = sum(s.sum() for s in sides) / (2 * n * pilot)
    noise = [float(np.var(y[s], ddof=1)) if s.sum() > 1 else float(np.var(y)) for s in sides]
    cubic = np.column_stack([x >= 0, np.ones(n), x, x**2, x**3]).astype(float)
    third = 6 * np.linalg.lstsq(cubic, y, rcond=None)[0][4]
    bends, regular = [], 0.0
    for s, variance in zip((x < 0, x >= 0), noise, strict=True):
        # the pilot window of the curvature, at most all of the side; no floor has a unit, so that none matters
        reach = 3.56 * (variance / max(density * third**2, 1e-300)) ** (1 / 7) * int(s.sum()) ** (-1 / 7)
        wide = min(reach, float(np.abs(x[s]).max()))
        rows = s & (np.abs(x) <= wide)
        if rows.sum() < 5:
            rows, wide = s, float(np.abs(x[s]).max())
        parabola = np.column_stack([np.ones(rows.sum()), x[rows], x[rows] ** 2])
        bends.append(2 * float(np.linalg.lstsq(parabola, y[rows], rcond=None)[0][2]))
        regular += 2160 * variance / (int(rows.sum()) * max(wide, 1e-300) ** 4)
    ratio = sum(noise) / (density * ((bends[1] - bends[0]) ** 2 + regular))
    return unit * float(min(3.4375 * ratio**0.2 * n**-0.2, np.abs(x).max()))
