"""The pictures of the page on kernel machines."""

# ruff: noqa: N806 (letters of the literature)

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk
from markovia.plotting import style

k = mk.covariances
ACCENT, SECOND = "#c0392b", "#1f8a70"


def _plain(ax: Any, title: str) -> None:
    ax.set_title(title, fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)


def kernel_smoothers() -> Any:
    """Show an average, a line and ridge on the same rows, and what relevance vectors keep of them."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 10.0, 60))[:, None]
    y = np.sin(x[:, 0]) + 0.3 * x[:, 0] + 0.25 * rng.normal(size=60)
    at = np.linspace(-0.5, 10.5, 300)[:, None]
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained", sharey=True)
    for ax in axes:
        ax.plot(x[:, 0], y, ".", color=style.INK, alpha=0.5, markersize=5)
    for kind, colour in (("NadarayaWatson", ACCENT), ("LocalLinear", SECOND), ("KernelRidge", style.BAR)):
        model = getattr(mk.gp, kind)().fit(x, y)
        axes[0].plot(at[:, 0], model.predict(at), color=colour, linewidth=1.6, label=kind)
    axes[0].legend(frameon=False, fontsize=8)
    _plain(axes[0], "averages bend at the borders, lines do not")
    sparse = mk.gp.RelevanceVectorRegressor(k.RBF(1.5)).fit(x, y)
    mean, sd = sparse.predict(at, return_std=True)
    axes[1].plot(at[:, 0], mean, color=style.BAR, linewidth=1.6)
    axes[1].fill_between(
        at[:, 0], mean - 1.96 * sd, mean + 1.96 * sd, color=style.BAR, alpha=0.15, linewidth=0.0
    )
    kept = sparse.relevance_
    axes[1].plot(x[kept, 0], y[kept], "o", mfc="none", mec=ACCENT, markersize=9, label="relevance vectors")
    axes[1].legend(frameon=False, fontsize=8)
    _plain(axes[1], f"{len(kept)} of 60 rows are enough")
    return figure


def kernel_densities() -> Any:
    """Show densities of two humps by three rules for the bandwidth."""
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.normal(-3.0, 0.3, 60), rng.normal(2.0, 1.0, 60)])[:, None]
    at = np.linspace(-6.5, 6.0, 400)[:, None]
    truth = 0.5 * np.exp(-0.5 * ((at[:, 0] + 3.0) / 0.3) ** 2) / 0.3 + 0.5 * np.exp(
        -0.5 * (at[:, 0] - 2.0) ** 2
    )
    figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    ax.fill_between(
        at[:, 0], truth / np.sqrt(2.0 * np.pi), color=style.INK, alpha=0.12, linewidth=0.0, label="truth"
    )
    for rule, colour in (("scott", ACCENT), ("likelihood", style.BAR)):
        model = mk.gp.KernelDensity(rule).fit(x)
        label = f'"{rule}", {model.bandwidth_[0]:.2f}'
        ax.plot(at[:, 0], np.exp(model.score_samples(at)), color=colour, linewidth=1.6, label=label)
    ax.plot(x[:, 0], np.full(len(x), -0.015), "|", color=style.INK, alpha=0.6, markersize=6)
    ax.legend(frameon=False, fontsize=8)
    _plain(ax, "one bandwidth for two humps")
    return figure


def kernel_margins() -> Any:
    """Show a machine's decision with its margin and support vectors, and two rings in kernel principal components."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(0.0, 2.0 * np.pi, 160)
    ring = np.repeat([1.0, 3.0], 80)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * (ring + 0.35 * rng.normal(size=160))[:, None]
    y = np.where(ring < 2.0, "inner", "outer")
    model = mk.gp.SupportVectorClassifier(k.RBF(1.5), C=1.0).fit(X, y)
    report = model.optimality()["inner", "outer"]
    line = np.linspace(-4.2, 4.2, 120)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
    height = model.decision_function(grid).reshape(120, 120)
    axes[0].contourf(line, line, height, [-1.0, 1.0], colors=["#e8e8e8"])
    axes[0].contour(line, line, height, [0.0], colors=[style.INK], linewidths=1.2)
    colours = np.where(y == "inner", ACCENT, style.BAR)
    axes[0].scatter(*X.T, s=9, c=colours)
    axes[0].scatter(*X[report.support].T, s=42, facecolors="none", edgecolors=style.INK, linewidths=0.7)
    axes[0].set_aspect("equal")
    _plain(axes[0], f"{len(report.support)} support vectors, {report.margin_errors} inside the margin")
    scores = mk.gp.KernelPCA(2, covariance=k.RBF(1.5)).fit_transform(X)
    axes[1].scatter(*scores.T, s=9, c=colours)
    axes[1].set_xlabel("first component")
    axes[1].set_ylabel("second")
    _plain(axes[1], "the rings in two kernel principal components")
    return figure


FIGURES = (kernel_smoothers, kernel_densities, kernel_margins)
