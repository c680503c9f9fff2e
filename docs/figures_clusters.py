"""The pictures of the pages about hidden groups."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000")


def how_many_clusters() -> Any:
    """Show rows, coloured by component, and what BIC and ICL say of one to six; as in `guide/how_many_clusters.md`."""
    rng = np.random.default_rng(0)
    wide = np.where(rng.random((300, 1)) < 0.5, 0.5, 1.5) * rng.normal(size=(300, 2))
    others = [rng.normal(size=(150, 2)) * 0.5 + centre for centre in ([-1.0, -6.0], [7.0, 0.0])]
    rows = np.concatenate([wide, *others])
    model = mk.GaussianMixture(n_init=3, random_state=0)
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.4), layout="constrained")
    choices = [mk.mixtures.choose_components(model, rows, range(1, 7), criterion=c) for c in ("bic", "icl")]
    labels = choices[0].best.predict(rows)
    axes[0].scatter(*rows.T, s=8, c=[COLOURS[label % len(COLOURS)] for label in labels])
    axes[0].set_aspect("equal")
    axes[0].set_title(f"{choices[0].n_components} components by BIC")
    axes[0].spines[["top", "right"]].set_visible(False)
    for choice, ax in zip(choices, axes[1:], strict=True):
        choice.plot(ax=ax)
    return figure


def hidden_lines() -> Any:
    """Show two regressions in one cloud, and two experts on a curve; as in `guide/how_many_clusters.md`."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2.0, 2.0, (400, 1))
    y = np.where(rng.random(400) < 0.5, 1.0 + 2.0 * x[:, 0], -x[:, 0]) + 0.3 * rng.normal(size=400)
    curve = np.abs(x[:, 0]) + 0.1 * rng.normal(size=400)
    grid = np.linspace(-2.0, 2.0, 200)[:, None]
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
    lines = mk.mixtures.RegressionMixture(2, random_state=0).fit(x, y)
    axes[0].scatter(
        x[:, 0], y, s=8, c=[COLOURS[k] for k in lines.predict_components(x, y).argmax(axis=1)], alpha=0.6
    )
    for k, line in enumerate(lines.predict_means(grid).T):
        axes[0].plot(grid[:, 0], line, color=COLOURS[k], linewidth=2.0)
    axes[0].set_title("a mixture of regressions")
    experts = mk.mixtures.MixtureOfExperts(2, random_state=0).fit(x, curve)
    axes[1].scatter(
        x[:, 0], curve, s=8, c=[COLOURS[k] for k in experts.predict_components(x).argmax(axis=1)], alpha=0.6
    )
    axes[1].plot(grid[:, 0], experts.predict(grid), color="black", linewidth=2.0)
    axes[1].set_title("a mixture of experts")
    for ax in axes:
        ax.set_xlabel("x")
        ax.set_ylabel("y")
        ax.spines[["top", "right"]].set_visible(False)
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (how_many_clusters, hidden_lines)
