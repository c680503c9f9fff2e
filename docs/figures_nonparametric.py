"""Pictures of the pages on clusters, random partitions and latent features; everything is drawn from fixed seeds."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk


def broken_sticks() -> Any:
    """Show sticks broken with a small and a large concentration."""
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 2.8), layout="constrained")
    for ax, concentration in zip(axes, (1.0, 8.0), strict=True):
        mk.processes.GEM(concentration).plot(ax=ax, seed=1, title=f"concentration {concentration:g}")
    return figure


def growing_tables() -> Any:
    """Show the tables of one restaurant, and how their number grows with and without a discount."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.2), layout="constrained")
    mk.processes.ChineseRestaurant(3.0).plot(200, ax=left, seed=2)
    n = 2000
    for discount, colour in ((0.0, "#0072B2"), (0.5, "#D55E00")):
        law = mk.processes.ChineseRestaurant(3.0, discount)
        for seed in range(4):
            labels = law.sample(n, seed=seed)
            right.plot(np.maximum.accumulate(labels) + 1, color=colour, linewidth=0.8, alpha=0.6)
        sizes = np.unique(np.geomspace(1, n, 60).astype(int))
        expected = [law.expected_tables(int(i)) for i in sizes]
        right.plot(sizes, expected, color=colour, linewidth=2.2, label=f"discount {discount:g}")
    right.set(xlabel="customers", ylabel="tables")
    right.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False)
    return figure


def random_measures() -> Any:
    """Show a draw from a Dirichlet process, and groups that share atoms."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.0), layout="constrained")
    mk.processes.DirichletProcess(10.0).plot(ax=left, seed=0)
    mk.processes.HierarchicalDirichletProcess(5.0, 2.0).plot(ax=right, seed=3)
    return figure


def trees_and_links() -> Any:
    """Show paths down a tree of restaurants, and items that sit with near ones."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.0), layout="constrained")
    mk.processes.NestedChineseRestaurant(1.0, depth=3).plot(30, ax=left, seed=4)
    times = np.arange(24.0)
    back = np.where(times[:, None] > times, times[:, None] - times, np.inf)
    mk.processes.DistanceDependentRestaurant(back, 0.4, scale=2.0).plot(ax=right, seed=1)
    return figure


def buffets() -> Any:
    """Show which items have which features, for two concentrations."""
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.2), layout="constrained")
    for ax, concentration in zip(axes, (1.0, 5.0), strict=True):
        law = mk.processes.IndianBuffet(4.0, concentration)
        law.plot(40, ax=ax, seed=0)
        ax.set_title(f"concentration {concentration:g}: {ax.get_title()}", fontsize=10)
    return figure


def images() -> tuple[Any, Any]:
    """Return the four true pictures and a hundred noisy sums; as in `guide/latent_features.md`."""
    parts = np.zeros((4, 6, 6))
    parts[0, 1, 0:3] = parts[0, 0:3, 1] = 1
    parts[1, 0:3, 3:6] = 1
    parts[1, 1, 4] = 0
    parts[2, 3:6, 0] = parts[2, 3, 0:3] = 1
    parts[3, 4, 3:6] = parts[3, 3:6, 4] = 1
    rng = np.random.default_rng(0)
    has = rng.random((100, 4)) < 0.5
    return parts, has @ parts.reshape(4, 36) + 0.5 * rng.normal(size=(100, 36))


def latent_images() -> Any:
    """Show noisy images, the four features behind them, and those found."""
    parts, x = images()
    model = mk.LatentFeatures(random_state=0).fit(x)
    figure, axes = plt.subplots(3, 1, figsize=(6.2, 5.4), layout="constrained")
    panel = np.full((6, 27), np.nan)
    rows = (x[:4], parts.reshape(4, 36), model.components_[:4])
    names = "four of the hundred images", "true features", f"features found: {model.n_components_}"
    for ax, shown, name in zip(axes, rows, names, strict=True):
        for i, row in enumerate(shown):
            panel[:, 7 * i : 7 * i + 6] = row.reshape(6, 6)
        ax.imshow(panel.copy(), cmap="Greys", vmin=-0.4, vmax=1.6)
        ax.set_title(name, fontsize=10)
        ax.set_axis_off()
    return figure


def sure_clusters() -> Any:
    """Show a mixture of two groups, and how sure rows are of their group; as in `guide/clustering_with_uncertainty.md`."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal([0, 0], 1, (100, 2)), rng.normal([4, 4], 1, (300, 2))])
    mixture = mk.GaussianMixture(n_components=2, random_state=0).fit(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
    mixture.plot(rows, ax=left, title="components, and rows by how sure they are")
    side = np.linspace(-4.0, 8.0, 160)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    large = int(mixture.weights_.argmax())
    chance = mixture.predict_proba(grid)[:, large].reshape(160, 160)
    shown = right.contourf(side, side, chance, levels=np.linspace(0, 1, 11), cmap="RdYlBu", alpha=0.7)
    right.scatter(*rows.T, s=4, color="black", alpha=0.5)
    right.set_title("probability of the larger group")
    figure.colorbar(shown, ax=right, shrink=0.85)
    for ax in (left, right):
        ax.set(xlim=(-4, 8), ylim=(-4, 8), xlabel="x0", ylabel="x1")
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def infinite_mixture() -> Any:
    """Show groups that were found, rows that belong together, and how many groups; as in `guide/infinite_mixtures.md`."""
    rng = np.random.default_rng(0)
    centres = np.array([[-4, 0], [0, 4], [4, 0], [0, -4]])
    x = centres[rng.integers(0, 4, 300)] + rng.normal(0, 0.7, (300, 2))
    found = mk.DirichletProcessMixture(max_iter=100, random_state=0).fit(x)
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.4), layout="constrained")
    found.plot(x, ax=axes[0], title="the point partition")
    found.posterior_.plot(what="matrix", ax=axes[1])
    found.posterior_.plot(what="number", ax=axes[2])
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (
    broken_sticks,
    growing_tables,
    random_measures,
    trees_and_links,
    buffets,
    latent_images,
    sure_clusters,
    infinite_mixture,
)
