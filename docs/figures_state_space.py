"""The pictures of the pages on tracking and on forecasting."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

import markovia as mk
from markovia.plotting import style

STEP = np.kron(np.eye(2), [[1.0, 1.0], [0.0, 1.0]])
FIXES = [[1, 0, 0, 0], [0, 0, 1, 0]]


def tracking_a_target() -> Any:
    """Show a boat's path, its fixes, and the ellipses of filter and smoother where fixes are missing."""
    boat = mk.LinearStateSpace(STEP, 0.01 * np.eye(4), FIXES, 0.5 * np.eye(2), np.zeros(4), np.eye(4))
    ys, xs = boat.sample(50, seed=0)
    ys[0][20:25] = np.nan
    figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharex=True, sharey=True)
    for ax, name, found in zip(
        axes, ("filtered", "smoothed"), (boat.filter(ys), boat.smooth(ys)), strict=True
    ):
        for mean, cov in zip(found.mean[0][:, [0, 2]], found.cov[0][:, [0, 2]][:, :, [0, 2]], strict=True):
            values, vectors = np.linalg.eigh(cov)
            angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
            width, height = 2 * np.sqrt(5.991 * values[::-1])
            ax.add_patch(
                Ellipse(tuple(mean), width, height, angle=angle, color=style.BAR, alpha=0.18, linewidth=0)
            )
        ax.plot(*xs[0][:, [0, 2]].T, color=style.INK, linewidth=1.2, label="true path")
        ax.plot(*ys[0].T, "o", color=style.NODE_BORDER, markersize=3, label="fixes")
        ax.plot(*found.mean[0][:, [0, 2]].T, color=style.BAR, linewidth=1.2, label=f"{name}, 95% ellipses")
        ax.set(xlabel="east", ylabel="north" if name == "filtered" else "")
        ax.legend(fontsize=8)
    return figure


def turning_boat() -> Any:
    """Show a boat that turns, and the probability of a manoeuvre."""
    calm, wild = np.diag([0.0, 1e-4, 0.0, 1e-4]), np.diag([0.0, 0.3, 0.0, 0.3])
    model = mk.SwitchingStateSpace(
        STEP, [calm, wild], FIXES, 0.25 * np.eye(2), [0.0, 1.0, 0.0, 0.0], 0.1 * np.eye(4),
        regime_transition=[[0.97, 0.03], [0.1, 0.9]], method="imm",
    )  # fmt: skip
    ys, xs, regimes = model.sample(80, seed=6)
    found = model.filter(ys)
    figure, (top, below) = plt.subplots(
        2, figsize=(7, 5), layout="constrained", gridspec_kw={"height_ratios": [3, 1]}
    )
    top.plot(*xs[0][:, [0, 2]].T, color=style.INK, linewidth=1.2, label="true path")
    top.plot(*ys[0].T, "o", color=style.NODE_BORDER, markersize=3, label="fixes")
    top.plot(*found.mean[0][:, [0, 2]].T, color=style.BAR, linewidth=1.2, label="filtered")
    top.set(xlabel="east", ylabel="north")
    top.legend(fontsize=8)
    t = np.arange(80)
    true = np.asarray(regimes[0], dtype=np.float64)
    shade = {"color": style.NODE_BORDER, "alpha": 0.25, "step": "mid", "linewidth": 0}
    below.fill_between(t, true, label="manoeuvre", **shade)
    below.plot(t, found.regimes[0][:, 1], color=style.BAR, linewidth=1.4, label="its probability")
    below.set(xlabel="t", ylim=(0, 1.05))
    below.legend(fontsize=8)
    return figure


def _sales() -> tuple[Any, Any]:
    rng, t = np.random.default_rng(0), np.arange(120)
    season = 8 * np.sin(2 * np.pi * t / 12) + 4 * np.cos(4 * np.pi * t / 12)
    sales = 100 + np.cumsum(0.4 + rng.normal(0, 0.8, 120)) + season + rng.normal(0, 1.5, 120)
    sales[[40, 41]] = np.nan
    return sales, mk.series.StructuralSeries("local linear trend", seasonal=12).fit(sales)


def series_parts() -> Any:
    """Show a series with its level, and its season."""
    sales, model = _sales()
    axes = model.smooth(sales).plot([0, 2])
    for ax, name in zip(axes.flat, ("level", "season"), strict=True):
        ax.set_ylabel(name)
    axes[0, 0].plot(sales, color=style.INK, linewidth=0.9, label="sales")
    axes[0, 0].legend(fontsize=8, loc="upper left", frameon=False)
    axes[1, 0].set_xlabel("month")
    return axes


def structural_forecast() -> Any:
    """Show the last years of a series, its forecast and the intervals."""
    sales, model = _sales()
    axes = model.forecast(sales, 24, level=0.8).plot(sales, last=60)
    axes[0, 0].set_xlabel("month")
    return axes


FIGURES = (tracking_a_target, turning_boat, series_parts, structural_forecast)
