"""The pictures of the page on state-space models."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

import markovia as mk
from markovia.plotting import style


def tracking_a_target() -> Any:
    """Show a target's path, what was seen of it, and the filter's ellipses, wider where nothing was seen."""
    step = np.kron(np.eye(2), [[1.0, 1.0], [0.0, 1.0]])
    noise, seen = 0.01 * np.eye(4), [[1, 0, 0, 0], [0, 0, 1, 0]]
    target = mk.LinearStateSpace(step, noise, seen, 0.5 * np.eye(2), np.zeros(4), np.eye(4))
    ys, xs = target.sample(50, seed=0)
    ys[0][20:25] = np.nan
    found = target.filter(ys)
    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for mean, cov in zip(found.mean[0][:, [0, 2]], found.cov[0][:, [0, 2]][:, :, [0, 2]], strict=True):
        values, vectors = np.linalg.eigh(cov)
        angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
        width, height = 2 * np.sqrt(5.991 * values[::-1])
        ax.add_patch(
            Ellipse(tuple(mean), width, height, angle=angle, color=style.BAR, alpha=0.18, linewidth=0)
        )
    ax.plot(*xs[0][:, [0, 2]].T, color=style.INK, linewidth=1.2, label="true path")
    ax.plot(*ys[0].T, "o", color=style.NODE_BORDER, markersize=3, label="observed")
    ax.plot(*found.mean[0][:, [0, 2]].T, color=style.BAR, linewidth=1.2, label="filtered, 95% ellipses")
    ax.set(xlabel="east", ylabel="north")
    ax.legend(fontsize=8)
    return figure


def structural_forecast() -> Any:
    """Show a series with a trend and a season, its forecast and the intervals."""
    t = np.arange(80)
    y = 0.1 * t + 2 * np.sin(2 * np.pi * t / 4) + np.random.default_rng(0).normal(size=80)
    ahead = mk.StructuralSeries("local linear trend", seasonal=4).fit(y).forecast(y, 16)
    later = np.arange(80, 96)
    figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    ax.plot(t, y, color=style.INK, linewidth=1.0, label="observed")
    ax.plot(later, ahead.mean[0][:, 0], color=style.BAR, linewidth=1.4, label="forecast")
    ax.fill_between(
        later,
        ahead.lower[0][:, 0],
        ahead.upper[0][:, 0],
        color=style.BAR,
        alpha=0.2,
        linewidth=0,
        label="95% intervals",
    )
    ax.set(xlabel="t", ylabel="y")
    ax.legend(fontsize=8)
    return figure


FIGURES = (tracking_a_target, structural_forecast)
