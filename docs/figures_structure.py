"""Pictures of the page on learned against true graphs.

The graphs are learned from fixed seeds while the pages are built. The times come from `benchmarks/structure_scaling.py`,
which writes them to `data/structure_scaling.json`.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import markovia as mk

MEASURED = Path(__file__).parent / "data" / "structure_scaling.json"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")
MARKERS = "os^Dv<>P"
GREY = "0.75"


def structure_asia() -> Any:
    """Show what greedy equivalence search finds in 2,000 patients of the chest clinic."""
    asia = mk.examples.asia()
    found = mk.learn_structure(asia.sample(2000, seed=0), "ges")
    return found.compare(asia).plot(titles=("GES, 2,000 rows", "truth (its class)"))[0]


def structure_tree() -> Any:
    """Show the best tree beside the true graph, edge by edge."""
    asia = mk.examples.asia()
    tree = mk.learn_structure(asia.sample(2000, seed=0), "chow-liu", root="asia")
    return tree.compare(asia).plot(titles=("Chow-Liu tree, 2,000 rows", "truth"))[0]


def structure_thirty() -> Any:
    """Show a network of thirty variables that greedy equivalence search learns from 5,000 rows."""
    truth, rows = thirty()
    found = mk.learn_structure(rows, "ges")
    figure, axes = plt.subplots(2, 1, figsize=(9.0, 11.0))
    figure.subplots_adjust(left=0.01, right=0.99, top=0.97, bottom=0.05, hspace=0.07)
    found.compare(truth).plot(axes=axes, titles=("GES, 5,000 rows", "truth (its class)"))
    return figure


def structure_rows() -> Any:
    """Show how the distance from the true class falls with more rows."""
    truth, _ = thirty()
    sizes = (250, 1000, 4000, 16_000)
    methods: dict[str, tuple[str, dict[str, Any]]] = {
        "tree (chow-liu)": ("chow-liu", {}),
        "tests (pc, conservative)": ("pc", {"orientation": "conservative"}),
        "tests and score (mmhc)": ("mmhc", {}),
        "score over classes (ges)": ("ges", {}),
    }
    figure, ax = plt.subplots(figsize=(6.5, 4.0), layout="constrained")
    for k, (label, (method, options)) in enumerate(methods.items()):
        distances = []
        for n in sizes:
            learned = [
                mk.learn_structure(truth.sample(n, seed=seed), method, progress=False, **options)
                for seed in range(3)
            ]
            classes = [one.compare(truth).cpdag_shd for one in learned]
            distances.append(float(np.mean([d for d in classes if d is not None])))
        ax.plot(sizes, distances, marker=MARKERS[k], color=COLOURS[k], label=label)
    ax.set(xscale="log", xlabel="rows", ylabel="SHD of the class (mean of three samples)", ylim=(0, None))
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes], minor=False)
    ax.minorticks_off()
    return _plain(figure, ax)


def structure_arrows() -> Any:
    """Show how many arrowheads are right, wrong and missed, by how they were decided."""
    truth, rows = thirty()
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "ges": ("ges", {}),
        'pc, orientation="standard"': ("pc", {}),
        'pc, orientation="majority"': ("pc", {"orientation": "majority"}),
        'pc, orientation="conservative"': ("pc", {"orientation": "conservative"}),
    }
    rates = [mk.learn_structure(rows, m, **options).compare(truth).arrows for m, options in asked.values()]
    figure, ax = plt.subplots(figsize=(7.0, 2.6), layout="constrained")
    left = np.zeros(len(asked))
    for label, colour, ink, numbers in (
        ("right", COLOURS[0], "white", [r.right for r in rates]),
        ("wrong", COLOURS[1], "white", [r.wrong for r in rates]),
        ("missed", GREY, "black", [r.missed for r in rates]),
    ):
        bars = ax.barh(list(asked), numbers, left=left, color=colour, label=label)
        shown = [str(n) if n else "" for n in numbers]
        ax.bar_label(bars, shown, label_type="center", color=ink, fontsize=9)
        left += numbers
    ax.invert_yaxis()
    ax.set_xlabel("arrowheads")
    ax.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def structure_lingam() -> Any:
    """Show the class that covariances settle beside the graph that non-Gaussian noise settles."""
    rows = shop()
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 1.7), layout="constrained")
    layout = {"price": (0.0, 1.0), "ad": (1.0, 1.6), "sales": (2.0, 1.0), "profit": (3.0, 1.0)}
    for ax, method, title in (
        (left, "ges", "GES: a class"),
        (right, "direct-lingam", "DirectLiNGAM: one graph"),
    ):
        mk.learn_structure(rows, method).plot(ax=ax, layout=layout, title=title)
    return figure


def structure_fci() -> Any:
    """Show a graph with a hidden variable beside what FCI learns without it."""
    truth = clinic()
    found = mk.learn_structure(truth.sample(5000, seed=0).drop(columns="gene"), "fci")
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.7), layout="constrained")
    layout = {
        "gene": (1.5, 2.0),
        "smoke": (0.0, 1.0),
        "lung": (1.0, 1.0),
        "allergy": (2.0, 1.0),
        "pollen": (3.0, 1.0),
        "cough": (1.0, 0.0),
    }
    mk.plotting.plot_graph(truth.graph, ax=left, layout=layout, title="truth; gene is not recorded")
    seen = {name: at for name, at in layout.items() if name != "gene"}
    found.plot(ax=right, layout=seen, title="FCI, 5,000 rows")
    right.set(xlim=left.get_xlim(), ylim=left.get_ylim())  # the same scale on both sides
    return figure


def structure_grid() -> Any:
    """Show the couplings of nine spins, learned and true."""
    truth = mk.generators.ising_grid(3, 3, coupling=0.5, seed=0)
    found = mk.learn_structure(truth.sample(2000, seed=0), "ising")
    places = {f"x{i}_{j}": (1.3 * j, -float(i)) for i in range(3) for j in range(3)}
    return found.compare(truth).plot(layout=places, titles=("Ising, 2,000 rows", "truth"))[0]


def structure_scaling() -> Any:
    """Show the time of each method against the number of rows and of variables."""
    found = json.loads(MEASURED.read_text())
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.2), sharey=True, layout="constrained")
    panels = (
        (axes[0], "rows", "rows (37 variables, alarm)"),
        (axes[1], "variables", "variables (10,000 rows, random networks)"),
    )
    for ax, part, label in panels:
        for k, (method, times) in enumerate(found[part].items()):
            sizes = [int(n) for n in times]
            ax.plot(
                sizes,
                list(times.values()),
                marker=MARKERS[k],
                markersize=5,
                color=COLOURS[k],
                label=method,
            )
        ax.set(xscale="log", yscale="log", xlabel=label)
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("seconds")
    axes[0].legend(frameon=False, fontsize=9, loc="upper left")
    sizes = sorted({int(n) for times in found["variables"].values() for n in times})
    axes[1].set_xticks(sizes, [str(n) for n in sizes])
    axes[1].minorticks_off()
    return figure


@cache
def thirty() -> tuple[mk.BayesianNetwork, pd.DataFrame]:
    """Return the random network of the page and 5,000 rows."""
    truth = mk.generators.random_bayesian_network(30, max_parents=3, states=(2, 4), seed=0)
    return truth, truth.sample(5000, seed=0)


def shop() -> dict[str, Any]:
    """Return the rows of the page's linear model with uniform noise."""
    rng = np.random.default_rng(0)
    noise = rng.uniform(-1, 1, size=(4, 2000))
    price = noise[0]
    ad = 0.8 * price + noise[1]
    sales = 1.5 * ad - price + noise[2]
    return {"profit": 0.7 * sales + noise[3], "ad": ad, "price": price, "sales": sales}


def clinic() -> mk.BayesianNetwork:
    """Return the page's network with a variable that nobody records."""
    truth = mk.BayesianNetwork()
    either = [[[0.95, 0.05], [0.6, 0.4]], [[0.6, 0.4], [0.1, 0.9]]]
    truth.add("gene", states=["a", "b"], p=[0.5, 0.5])
    truth.add("smoke", states=["no", "yes"], p=[0.6, 0.4])
    truth.add("pollen", states=["low", "high"], p=[0.5, 0.5])
    truth.add("lung", states=["no", "yes"], parents=["smoke", "gene"], p=either)
    truth.add("allergy", states=["no", "yes"], parents=["gene", "pollen"], p=either)
    truth.add("cough", states=["no", "yes"], parents=["lung"], p=[[0.9, 0.1], [0.2, 0.8]])
    return truth


def _plain(figure: Any, ax: Any) -> Any:
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (
    structure_asia,
    structure_tree,
    structure_thirty,
    structure_rows,
    structure_arrows,
    structure_lingam,
    structure_fci,
    structure_grid,
    structure_scaling,
)
