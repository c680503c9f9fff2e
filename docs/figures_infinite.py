"""The pictures of the page on models that learn their number of topics or states."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk
from markovia.plotting import style


def infinite_topics() -> Any:
    """Show how the number of topics settles, and its posterior."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(100, 0.1), 5)
    documents = [rng.choice(100, 50, p=rng.dirichlet(np.full(5, 0.1)) @ topics) for _ in range(200)]
    counts = np.array([np.bincount(words, minlength=100) for words in documents])
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained", width_ratios=(1.6, 1))
    begun = {1: style.BAR, 20: style.INK, 50: "#c0392b"}
    for n_start, colour in begun.items():
        model = mk.HDP(150, burn_in=1, n_start=n_start, random_state=0).fit(counts)
        left.plot(model.n_components_draws_, color=colour, linewidth=1.2, label=f"begun with {n_start}")
    left.axhline(5, color=style.NODE_BORDER, linewidth=0.8, linestyle="--")
    left.set(xlabel="sweep of plain sampling", ylabel="topics over 1%")
    left.legend(fontsize=8, frameon=False)
    model = mk.HDP(150, random_state=0).fit(counts)
    for draws, colour, name in (
        (model.n_components_draws_, style.BAR, "over 1%"),
        (model.n_topics_draws_, style.INK, "with any word"),
    ):
        numbers, times = np.unique(draws, return_counts=True)
        right.plot(numbers, times / times.sum(), "o-", color=colour, markersize=4, linewidth=1, label=name)
    right.set(xlabel="topics, merged while settling", ylabel="posterior", ylim=(0, 1.05), xlim=(0, None))
    right.legend(fontsize=8, frameon=False)
    for one in (left, right):
        one.spines[["top", "right"]].set_visible(False)
    return figure


def topic_tree() -> Any:
    """Show a tree of topics."""
    rng = np.random.default_rng(0)
    shared = ["the", "of", "and", "to", "in", "is", "it", "on"]
    fields = [
        ["note", "tune", "beat", "song", "band", "stage"],
        ["soil", "seed", "leaf", "root", "water", "sun"],
    ]
    kinds = [
        [
            ["piano", "keys", "pedal", "chord", "hammer", "grand"],
            ["drum", "sticks", "snare", "cymbal", "bass", "kit"],
        ],
        [["rose", "thorn", "petal", "bud", "scent", "bush"], ["bean", "pod", "vine", "pea", "pole", "crop"]],
    ]
    pages = []
    for _ in range(120):
        field, kind = rng.integers(2, size=2)
        path = [shared, fields[field], kinds[field][kind]]
        levels = rng.choice(3, 60, p=rng.dirichlet([3, 2, 2]))
        pages.append([str(rng.choice(path[level])) for level in levels])
    return mk.topics.HierarchicalLDA(depth=3, random_state=0).fit(pages).plot_tree(4).figure


def infinite_chain() -> Any:
    """Show a series, its states, and how sure it is that steps share one."""
    rng = np.random.default_rng(0)
    states = np.repeat([0, 1, 2, 1, 0, 2], 40)
    x = rng.normal(np.array([-4.0, 0.0, 4.0])[states], 1.0)
    model = mk.series.InfiniteHMM("gaussian", sticky=True, max_iter=200, random_state=0).fit(x)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained", width_ratios=(1.5, 1))
    found = model.predict(x)
    for k, colour in zip(range(model.n_states_), (style.BAR, "#c0392b", style.INK), strict=False):
        t = np.flatnonzero(found == k)
        left.scatter(t, x[t], s=8, color=colour)
    left.set(xlabel="step", ylabel="seen, by most probable state")
    left.spines[["top", "right"]].set_visible(False)
    shown = right.imshow(model.partition_posterior().co_clustering(), cmap="Blues", vmin=0, vmax=1)
    right.set(xlabel="step", ylabel="step")
    figure.colorbar(shown, ax=right, label="same state", shrink=0.8)
    return figure


FIGURES = (infinite_topics, topic_tree, infinite_chain)
