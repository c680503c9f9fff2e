"""The pictures of the page on Gaussian processes of many rows."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk
from markovia.learning.processes.exact_evidence import ExactEvidence
from markovia.learning.processes.inducing_points import SGPR, SoR
from markovia.plotting import style

k = mk.covariances
NUMBERS = 1.0 * k.RBF(0.8) + k.White(0.04)


def band(ax: Any, x: Any, values: Any, name: str = "mean, 90% band") -> None:
    """Draw a mean with its band."""
    low, high = values.interval(0.9)
    ax.fill_between(x, low, high, color=style.BAR, alpha=0.2, linewidth=0)
    ax.plot(x, values.mean(), color=style.BAR, linewidth=1.4, label=name)


def wave(n: int) -> tuple[Any, Any]:
    """Return inputs and noisy values of a wave that fades."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0.0, 8.0, n)
    return x, np.sin(2.0 * x) * np.exp(-0.1 * x) + 0.2 * rng.standard_normal(n)


def many_points_inducing() -> Any:
    """Show one set of rows fitted with more and more inducing points."""
    x, y = wave(200)
    at = np.linspace(-0.5, 8.5, 300)
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained", sharex=True, sharey=True)
    exact = ExactEvidence(x[:, None], y).posterior(NUMBERS).at(at)
    for ax, m in zip(axes, (3, 6, 12), strict=True):
        method = SGPR(x[:, None], y, inducing=m)
        band(ax, at, method.posterior(NUMBERS).at(at))
        ends = np.transpose(exact.interval(0.9))
        ax.plot(at, ends, color=style.INK, linewidth=0.7, linestyle="--", label=["exact", None])
        ax.plot(x, y, ".", color=style.NODE_BORDER, markersize=3, zorder=0)
        assert method.places is not None
        ax.plot(method.places[:, 0], np.full(len(method.places), -1.55), "^", color=style.INK, markersize=5)
        ax.set(title=f"{m} points, bound {method.evidence(NUMBERS)[0]:,.0f}", xlabel="x", ylim=(-1.7, 1.7))
    axes[0].set(ylabel="y")
    axes[0].legend(fontsize=7, loc="upper right")
    return figure


def many_points_away() -> Any:
    """Show standard deviations of three ways to use the same points, and the exact ones."""
    x, y = wave(120)
    x, y = x[(x < 3.0) | (x > 5.5)], y[(x < 3.0) | (x > 5.5)]
    at, points = np.linspace(-1.0, 9.0, 400), np.array([[0.5], [1.3], [2.1], [2.9], [6.3], [7.1]])
    figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for name, kind, colour in (("SoR", SoR, style.BAR), ("SGPR, FITC and DTC", SGPR, style.NODE_BORDER)):
        sd = kind(x[:, None], y, inducing=points).posterior(NUMBERS).at(at).sd()
        ax.plot(at, sd, color=colour, linewidth=1.6, label=name)
    exact = ExactEvidence(x[:, None], y).posterior(NUMBERS).at(at).sd()
    ax.plot(at, exact, color=style.INK, linestyle="--", linewidth=1.1, label="exact")
    ax.plot(points[:, 0], np.full(len(points), -0.05), "^", color=style.INK, markersize=5, label="points")
    ax.plot(x, np.full(len(x), -0.12), "|", color=style.NODE_BORDER, markersize=5, label="rows")
    ax.set(xlabel="x", ylabel="standard deviation of f", ylim=(-0.2, 1.5))
    ax.legend(fontsize=7, ncol=3, loc="upper center")
    return figure


def many_points_state_space() -> Any:
    """Show a long irregular series with a gap, its mean and band, and functions drawn whole."""
    rng = np.random.default_rng(1)
    t = np.sort(rng.uniform(0.0, 60.0, 900))
    t = t[(t < 24.0) | (t > 31.0)]
    y = np.sin(t) + 0.5 * np.sin(0.31 * t) + 0.3 * rng.standard_normal(len(t))
    gp = mk.GaussianProcess(k.Scaled(None, k.Matern52()) + k.White(), method="state-space").fit(t[:, None], y)
    at, function = np.linspace(18.0, 38.0, 500), gp.function()
    figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    band(ax, at, function.at(at))
    drawn = function.draws(3, seed=3)(at)
    ax.plot(at, drawn.T, color=style.INK, linewidth=0.6, alpha=0.7, label=["three draws", None, None])
    here = (t > 18.0) & (t < 38.0)
    ax.plot(t[here], y[here], ".", color=style.NODE_BORDER, markersize=3, zorder=0)
    ax.set(xlabel="t", ylabel="y", title=f"{len(t)} rows, seen around the gap")
    ax.legend(fontsize=8)
    return figure


FIGURES = (many_points_inducing, many_points_away, many_points_state_space)
