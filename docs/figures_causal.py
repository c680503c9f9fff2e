"""Pictures of the pages on causes and effects."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt

import markovia as mk
from markovia.plotting import plot_effect

PEARL = [
    ("x1", "x3"), ("x1", "x4"), ("x2", "x4"), ("x2", "x5"), ("x3", "x"), ("x4", "x"), ("x4", "y"), ("x5", "y"),
    ("x", "x6"), ("x6", "y"),
]  # fmt: skip


def adjustment_pearl() -> Any:
    """Show that adjusting for x4 opens a path, and that x5 closes it; as in `guide/what_to_adjust_for.md`."""
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 5.2))
    for ax, given in zip(axes, (["x4"], ["x4", "x5"]), strict=True):
        title = "adjusted for " + " and ".join(given)
        plot_effect(mk.graphs.DAG(PEARL), "x", "y", given, ax=ax, title=title)
    return figure


def effect_report() -> Any:
    """Show a report on an effect; as in `guide/from_csv_to_effect.md`."""
    world = mk.causal.simulated_worlds.lalonde_like(2000, seed=1)
    graph = world.graph + "; jobless -> earlier; education -> earlier; age -> married"
    return mk.causal.effect(world.frame, graph, "t", "y").report().plot()


FIGURES: tuple[Callable[[], Any], ...] = (
    adjustment_pearl,
    effect_report,
)
