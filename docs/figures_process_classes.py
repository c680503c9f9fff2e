"""The pictures of the page on classification with honest probabilities."""

# ruff: noqa: N806 (letters of the literature)

from functools import cache
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import markovia as mk
from markovia.plotting import style

k = mk.covariances
MAP = "RdBu_r"


def drawn(n: int, seed: int) -> tuple[Any, Any, Any]:
    """Return rows, classes and the probabilities that these were drawn with; as on the page."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, size=(n, 2))
    p = 1.0 / (1.0 + np.exp(-3.0 * np.sin(1.5 * X[:, 0]) - X[:, 1]))
    return X, (rng.uniform(size=n) < p).astype(int), p


@cache
def models() -> dict[str, Any]:
    """Return what is compared, fitted to the rows of the page."""
    X, y, _ = drawn(150, 0)
    return {
        "Gaussian process": mk.gp.GaussianProcessClassifier().fit(X, y),
        "5 nearest neighbours": KNeighborsClassifier(5).fit(X, y),
    }


def process_classes() -> Any:
    """Show the probability of a class over the plane, and along a line that leaves the rows behind."""
    X, y, _ = drawn(150, 0)
    grid = np.linspace(-6.0, 6.0, 90)
    plane = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    figure, panels = plt.subplots(1, 3, figsize=(10.2, 3.1), layout="constrained", width_ratios=(1, 1, 1.15))
    for panel, (name, model) in zip(panels, models().items(), strict=False):
        p = model.predict_proba(plane)[:, 1].reshape(90, 90)
        shown = panel.pcolormesh(grid, grid, p, cmap=MAP, vmin=0.0, vmax=1.0, rasterized=True)
        for code, mark in ((0, "o"), (1, "^")):
            panel.scatter(
                *X[y == code].T, s=9, marker=mark, color="white", edgecolor=style.INK, linewidth=0.5
            )
        panel.set(title=name, xlabel="x0", ylabel="x1", aspect="equal")
    figure.colorbar(shown, ax=panels[1], label="probability of class 1")
    line = np.stack([np.linspace(-6.0, 12.0, 200), np.zeros(200)], axis=1)
    for name, model in models().items():
        panels[2].plot(line[:, 0], model.predict_proba(line)[:, 1], label=name)
    panels[2].plot(
        line[:, 0], 1.0 / (1.0 + np.exp(-3.0 * np.sin(1.5 * line[:, 0]))), ":", color=style.EDGE, label="true"
    )
    panels[2].axvspan(-3.0, 3.0, color="0.93", zorder=0)
    panels[2].set(
        title="along x1 = 0; rows in the grey part", xlabel="x0", ylim=(0.0, 1.4), yticks=[0.0, 0.5, 1.0]
    )
    panels[2].legend(loc="upper right", fontsize=7)
    return figure


def process_calibration() -> Any:
    """Show how often what was given a probability came true."""
    X, y, _ = drawn(20_000, 1)
    figure, panels = plt.subplots(
        1, 2, figsize=(8.6, 5.0), gridspec_kw={"bottom": 0.26, "top": 0.92, "wspace": 0.35}
    )
    for panel, (name, model) in zip(panels, models().items(), strict=True):
        mk.learning.calibration(y, model.predict_proba(X)).plot(ax=panel, title=name)
    return figure


def process_counts() -> Any:
    """Show counts, and the rate behind them with its band: a Poisson likelihood, and one of ordered levels."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0.0, 10.0, 60))[:, None]
    counts = rng.poisson(np.exp(1.2 + np.sin(x[:, 0])))
    levels = np.digitize(1.5 * np.sin(0.8 * x[:, 0]) + 0.6 * rng.normal(size=60), [-0.6, 0.6])
    at = np.linspace(-1.0, 12.0, 200)[:, None]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.0), layout="constrained")
    rate = mk.GaussianProcess(k.Scaled(None, k.RBF()), likelihood="poisson").fit(x, counts)
    f = rate.function().at(at)
    level = rate.covariance_.hypers()["poissoncounts.level"].value
    low, high = (np.exp(level + end) for end in f.interval(0.9))
    left.fill_between(at[:, 0], low, high, alpha=0.25, label="90% of the rate")
    left.plot(at[:, 0], np.exp(level + f.mean()), label="rate")
    left.plot(at[:, 0], np.exp(1.2 + np.sin(at[:, 0])), ":", color=style.EDGE, label="true rate")
    left.plot(x, counts, "o", color=style.INK, markersize=3)
    left.set(title="counts", xlabel="x", ylim=(0.0, 20.0))
    left.legend(fontsize=7, loc="upper left")
    ordered = mk.GaussianProcess(k.Scaled(None, k.RBF()), likelihood="ordinal").fit(x, levels)
    shares = np.cumsum(ordered.class_probabilities(at), axis=1)
    below = np.zeros(len(at))
    for code, (name, shade) in enumerate((("low", "0.35"), ("middle", "0.65"), ("high", "0.88"))):
        right.fill_between(at[:, 0], below, shares[:, code], color=shade, label=name)
        below = shares[:, code]
        right.plot(
            x[levels == code],
            np.full((levels == code).sum(), 1.03 + 0.04 * code),
            "|",
            color=shade,
            clip_on=False,
        )
    right.set(title="probabilities of ordered levels", xlabel="x", ylim=(0.0, 1.15), yticks=[0.0, 0.5, 1.0])
    right.legend(fontsize=7, loc="lower right")
    return figure


FIGURES = (process_classes, process_calibration, process_counts)
