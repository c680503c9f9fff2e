"""The pictures of the guide, each drawn by the library itself; run by `conf.py` before the pages are read.

Measurements are not repeated here: `benchmarks/exact.py` writes them to `data/exact.json`.
"""

import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# samplers of pictures run for a second and compile for ten: machine code of the plainest kind is there sooner
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk
from markovia.learning import correlation_graph, partial_correlation_graph

sys.path.insert(0, str(Path(__file__).parent))
import figures_bayesian
import figures_bayesian_more
import figures_bayesopt
import figures_belief_nets
import figures_boltzmann
import figures_causal
import figures_clusters
import figures_covariances
import figures_decisions
import figures_diffusion
import figures_energy
import figures_fitting
import figures_flows
import figures_function_nodes
import figures_gans
import figures_gaussian_processes
import figures_infinite
import figures_kernel_machines
import figures_learning
import figures_many_points
import figures_map
import figures_nonparametric
import figures_particles
import figures_pictures
import figures_plans
import figures_process_classes
import figures_processes
import figures_state_space
import figures_structure
import figures_structure_more
import figures_taggers
import figures_topics
import figures_trial
import figures_vae
from figures_approximate import APPROXIMATE

MEASURED = Path(__file__).parent / "data" / "exact.json"
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


def mixture_posterior() -> Any:
    """Show the posterior of a number that depends on a state, with its two components."""
    plant = mk.BayesianNetwork()
    plant.add("valve", {"open": 0.9, "stuck": 0.1})
    flow = {"open": mk.LinearGaussian(5, {}, 1), "stuck": mk.LinearGaussian(1, {}, 0.5)}
    plant.add("flow", flow, parents=["valve"])
    plant.add("level", mk.LinearGaussian(2, {"flow": 1.5}, 1))
    return plant.query("flow", given={"level": 5.0}).plot()


def cpdag() -> Any:
    """Show the equivalence class of the chest-clinic graph."""
    return mk.plotting.plot_graph(mk.graphs.cpdag(mk.examples.asia().graph))


def mixed_graph() -> Any:
    """Show a directed and a bidirected edge between the same two nodes."""
    return mk.plotting.plot_graph(mk.graphs.MixedGraph(["a --> b", "b --> c", "b <-> c", "c --> d"]))


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


def exact_speed() -> Any:
    """Show the time of a run against the size of the tree, for every network and instance that was measured."""
    found = json.loads(MEASURED.read_text())
    figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    groups = {
        "networks": ("Bayesian networks", "#1f6f8b", "o"),
        "uai": ("UAI 2014 instances", "#d1603d", "^"),
    }
    runs = []
    for group, (label, colour, marker) in groups.items():
        measured = [
            (one["run"]["entries"], one["run"]["seconds"]) for one in found[group].values() if "run" in one
        ]
        if measured:
            ax.scatter(*zip(*measured, strict=True), s=26, color=colour, marker=marker, label=label, zorder=3)
        runs += measured
    entries, seconds = np.array(runs).T
    large = entries >= 1e5  # below, the time is what a call costs
    rate = float(np.median(seconds[large] / entries[large]))
    line = np.array([seconds.min() / rate, entries.max()])
    label = f"{rate * 1e9:.2g} ns an entry"
    ax.plot(line, rate * line, color="0.6", linewidth=1, label=label, zorder=1)
    ax.set(xscale="log", yscale="log", xlabel="entries of the tree's tables", ylabel="seconds a run")
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (
    sprinkler_monitors,
    posterior_bars,
    asia_network,
    open_trail,
    mixture_posterior,
    cpdag,
    mixed_graph,
    misconception,
    factor_graph,
    junction_tree,
    association_graphs,
    exact_speed,
    *APPROXIMATE,
    *figures_bayesian.FIGURES,
    *figures_bayesian_more.FIGURES,
    *figures_bayesopt.FIGURES,
    *figures_belief_nets.FIGURES,
    *figures_boltzmann.FIGURES,
    *figures_causal.FIGURES,
    *figures_clusters.FIGURES,
    *figures_covariances.FIGURES,
    *figures_function_nodes.FIGURES,
    *figures_gaussian_processes.FIGURES,
    *figures_kernel_machines.FIGURES,
    *figures_diffusion.FIGURES,
    *figures_energy.FIGURES,
    *figures_many_points.FIGURES,
    *figures_map.FIGURES,
    *figures_fitting.FIGURES,
    *figures_learning.FIGURES,
    *figures_structure.FIGURES,
    *figures_structure_more.FIGURES,
    *figures_taggers.FIGURES,
    *figures_process_classes.FIGURES,
    *figures_processes.FIGURES,
    *figures_state_space.FIGURES,
    *figures_particles.FIGURES,
    *figures_pictures.FIGURES,
    *figures_nonparametric.FIGURES,
    *figures_infinite.FIGURES,
    *figures_topics.FIGURES,
    *figures_flows.FIGURES,
    *figures_vae.FIGURES,
    *figures_gans.FIGURES,
    *figures_decisions.FIGURES,
    *figures_plans.FIGURES,
    *figures_trial.FIGURES,
)


def draw_all(folder: Path, suffix: str = ".svg") -> list[Path]:
    """Write every picture into a folder, the tables into the folder "tables" beside it, and return the files.

    A process for each core draws: most pictures wait for a sampler, and some for its compiler.
    """
    import approximate_tables
    import exact_tables

    folder.mkdir(parents=True, exist_ok=True)
    written = [*exact_tables.write_all(folder.with_name("tables"))]
    written += approximate_tables.write_all(folder.with_name("tables"))
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return written + list(pool.map(partial(_draw, folder, suffix), range(len(FIGURES))))


def _draw(folder: Path, suffix: str, number: int) -> Path:
    """Write one picture."""
    draw = FIGURES[number]
    drawn = draw()
    drawn = drawn.flat[0] if isinstance(drawn, np.ndarray) else drawn
    figure = getattr(drawn, "figure", None) or drawn
    path = folder / f"{draw.__name__.replace('_', '-')}{suffix}"
    # the same bytes every time, so that an unchanged picture does not rebuild its page
    with plt.rc_context({"svg.hashsalt": "markovia"}):
        figure.savefig(path, facecolor="auto", dpi=150, metadata={"Date": None} if suffix == ".svg" else None)
    plt.close(figure)
    return path
