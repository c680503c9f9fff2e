"""The pictures of the guide, each drawn by the library itself; run by `conf.py` before the pages are read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk
from markovia.learning import correlation_graph, partial_correlation_graph

EVIDENCE = {"xray": "yes", "dysp": "yes"}


def sprinkler_monitors() -> Any:
    """Show every posterior of the sprinkler network once the grass is seen to be wet."""
    return mk.examples.sprinkler().plot(given={"wet": "yes"}, posteriors=True, title="")


def posterior_bars() -> Any:
    """Show one posterior as bars."""
    return mk.examples.student().query("grade", given={"letter": "strong"}).plot()


def asia_network() -> Any:
    """Show the chest-clinic network with two findings shaded."""
    return mk.examples.asia().plot(given=EVIDENCE, title="")


def open_trail() -> Any:
    """Show why lung and bronc depend on each other once dyspnoea is seen."""
    bn = mk.examples.asia()
    given = ["smoke", "dysp"]
    return bn.plot(given=given, highlight=bn.open_trails("lung", "bronc", given=given), title="")


def cpdag() -> Any:
    """Show the equivalence class of the chest-clinic graph."""
    return mk.plotting.plot_graph(mk.graphs.cpdag(mk.examples.asia().graph))


def mixed_graph() -> Any:
    """Show a directed and a bidirected edge between the same two nodes."""
    return mk.plotting.plot_graph(mk.MixedGraph(["a --> b", "b --> c", "b <-> c", "c --> d"]))


def misconception() -> Any:
    """Show a Markov network without a directed equal."""
    return mk.examples.misconception().plot(title="")


def factor_graph() -> Any:
    """Show the same model with its factors."""
    return mk.examples.misconception().to_factor_graph().plot(title="")


def junction_tree() -> Any:
    """Show the junction tree of the chest-clinic network."""
    return mk.plotting.plot_graph(mk.graphs.junction_tree(mk.examples.asia().graph.moral_graph()))


def association_graphs() -> Any:
    """Show who is correlated with whom, before and after the other columns are taken into account."""
    data = children()
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 2.6), layout="constrained")
    mk.plotting.plot_graph(correlation_graph(data), ax=left, title="correlation")
    mk.plotting.plot_graph(partial_correlation_graph(data), ax=right, title="partial correlation")
    return figure


def children() -> dict[str, Any]:
    """Draw the ages, heights and vocabularies of 300 children as the association page does."""
    rng = np.random.default_rng(0)
    age = rng.uniform(2, 12, 300)
    return {
        "height": 80 + 6 * age + rng.normal(0, 5, 300),
        "words": 900 * age + rng.normal(0, 500, 300),
        "age": age,
    }


FIGURES: tuple[Callable[[], Any], ...] = (
    sprinkler_monitors,
    posterior_bars,
    asia_network,
    open_trail,
    cpdag,
    mixed_graph,
    misconception,
    factor_graph,
    junction_tree,
    association_graphs,
)


def draw_all(folder: Path, suffix: str = ".svg") -> list[Path]:
    """Write every picture into a folder and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for draw in FIGURES:
        drawn = draw()
        figure = getattr(drawn, "figure", None) or drawn
        path = folder / f"{draw.__name__.replace('_', '-')}{suffix}"
        # the same bytes every time, so that an unchanged picture does not rebuild its page
        with plt.rc_context({"svg.hashsalt": "markovia"}):
            figure.savefig(
                path, facecolor="white", dpi=150, metadata={"Date": None} if suffix == ".svg" else None
            )
        plt.close(figure)
        written.append(path)
    return written
