"""The pictures of the page on functions with error bars."""

# ruff: noqa: N806 (letters of the literature)

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk
from markovia.plotting import style

k = mk.covariances


def _rows() -> tuple[Any, Any]:
    """Return the rows of the guide."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 6.0, 25))[:, None]
    return x, 20.0 + 3.0 * np.sin(x[:, 0]) + 0.3 * rng.normal(size=25)


def gaussian_process_posterior() -> Any:
    """Show what is known of a function without rows, after three and after 25, with functions drawn from it."""
    X, y = _rows()
    places = np.linspace(-1.0, 9.0, 300)
    covariance = mk.GaussianProcess().fit(X, y).covariance_
    known = covariance.with_values({n: h.value for n, h in covariance.free().items()})
    figure, panels = plt.subplots(1, 3, figsize=(8.4, 2.6), sharey=True, layout="constrained")
    for panel, at in zip(panels, ([], [4, 12, 20], list(range(25))), strict=True):
        # a row far away says nothing of the function here
        rows, seen = (X[at], y[at]) if at else ([[1e6]], [20.0])
        f = mk.GaussianProcess(known, mean=20.0).fit(rows, seen).function()
        f.at(places).plot(ax=panel, title=f"{len(at) or 'no'} rows")
        panel.plot(places, f.draws(3, seed=1)(places).T, color=style.EDGE, linewidth=0.8)
        panel.plot(X[at], y[at], "o", color=style.INK, markersize=3.5, zorder=4)
        panel.legend().remove()
        panel.set(xlabel="x", ylabel="")
    panels[0].set_ylabel("f")
    return figure


def gaussian_process_outlier() -> Any:
    """Show the same rows with one that went wrong, under normal noise and under noise with heavy tails."""
    X, y = _rows()
    y[7] = 60.0
    scaled = k.Scaled(None, k.RBF())
    figure, panels = plt.subplots(1, 2, figsize=(7.4, 2.8), layout="constrained")
    for panel, model, title in (
        (panels[0], mk.GaussianProcess(scaled + k.White()), "normal noise"),
        (panels[1], mk.GaussianProcess(scaled, likelihood="student-t"), "Student-t noise"),
    ):
        fitted = model.fit(X, y)
        fitted.function().at(np.linspace(-0.5, 6.5, 300)).plot(ax=panel, title=title)
        panel.plot(X, y, "o", color=style.INK, markersize=3, zorder=4)
        panel.legend().remove()
        panel.set(xlabel="x", ylabel="y", ylim=(0.0, 65.0))
    return figure


FIGURES = (gaussian_process_posterior, gaussian_process_outlier)
