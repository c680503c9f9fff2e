"""Pictures of the pages on approximate inference: Markov chains, and all engines on one Ising grid.

The chains are run here, with fixed seeds. The comparison of engines is drawn from `data/approximate_ising.json`, which
`benchmarks/approximate_ising.py` measured.
"""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

import markovia as mk

MEASURED = Path(__file__).parent / "data" / "approximate_ising.json"
KINDS = {
    "message passing": ("#0072B2", ("loopy-bp", "generalized-bp", "join-graph", "tree-reweighted")),
    "variational": ("#D55E00", ("mean-field", "structured-mean-field")),
    "Monte Carlo": (
        "#009E73",
        ("gibbs", "metropolis", "parallel-tempering", "annealed-importance", "importance"),
    ),
}
"""The three families: a colour that colour-blind readers can tell from the others, and the engines."""
MARKERS = "osD^vP"


def chain_traces() -> Any:
    """Show chains that mix beside chains that are stuck: the log weight above, a state below."""
    runs = {
        "coupling 0.3: the chains agree": mk.generators.ising_grid(12, 12, coupling=0.3),
        "coupling 1: each chain is stuck": mk.generators.ising_grid(12, 12, coupling=1.0),
    }
    figure, axes = plt.subplots(2, 2, figsize=(9.0, 4.6), layout="constrained", sharex="row")
    for column, (title, model) in enumerate(runs.items()):
        report = _ask(model, mk.engines.Gibbs(draws=400, burn_in=100, seed=1)).info.diagnostics
        upper = report.plot_trace("log weight", ax=axes[0, column], title=title)
        lower = report.plot_trace("x5_5=1", ax=axes[1, column], title="")
        upper.set_xlabel("")
        lower.set_ylim(-0.05, 1.05)
        for ax, name in ((upper, "log weight"), (lower, "x5_5=1")):
            ax.set_ylabel(name if column == 0 else "")
            if ax is not axes[0, 1]:
                ax.get_legend().remove()
    return figure


def chain_autocorrelation() -> Any:
    """Show how fast three samplers forget on a grid near its critical temperature."""
    grid = mk.generators.ising_grid(16, 16, coupling=0.42)
    engines = {
        "Gibbs()": mk.engines.Gibbs(draws=3000, seed=0),
        'Gibbs(blocks="trees")': mk.engines.Gibbs(draws=3000, blocks="trees", seed=0),
        "SwendsenWang()": mk.engines.SwendsenWang(draws=3000, seed=0),
    }
    figure, axes = plt.subplots(1, 3, figsize=(9.0, 2.8), layout="constrained", sharey=True)
    for ax, (title, engine) in zip(axes, engines.items(), strict=True):
        _ask(grid, engine).info.diagnostics.plot_autocorrelation("x5_5=1", max_lag=60, ax=ax, title=title)
        if ax is not axes[-1]:
            ax.get_legend().remove()
        if ax is not axes[0]:
            ax.set_ylabel("")
    return figure


def approximate_ising() -> Any:
    """Show error against time of every engine: marginals, and the log partition function."""
    found = json.loads(MEASURED.read_text())
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 6.4), layout="constrained")
    marks: dict[str, tuple[str, str, str]] = {}
    for colour, engines in KINDS.values():
        names = [n for n in found["marginals"] if n.partition(",")[0] in engines]
        for i, name in enumerate(names):
            marks[name] = (colour, MARKERS[i % len(MARKERS)], "-" if i < len(MARKERS) else "--")
    for name, (colour, marker, line) in marks.items():
        rows = found["marginals"][name]
        _ladder(left, [(r["seconds"], r["error"], r["converged"]) for r in rows], colour, marker, line, name)
        rows = [r for r in found["log_z"].get(name, ()) if r["off"]]
        _ladder(right, [(r["seconds"], abs(r["off"]), True) for r in rows], colour, marker, line, None)
    for ax, asked, title in ((left, "marginals", "marginals"), (right, "log_z", "log partition function")):
        ax.axvline(found["junction-tree"][asked], color="0.35", linestyle=":", linewidth=1.2)
        ax.annotate(
            "junction tree (exact)", (found["junction-tree"][asked], 0.02), xycoords=("data", "axes fraction"),
            rotation=90, ha="right", va="bottom", fontsize=8, color="0.35",
            bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1},
        )  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="seconds", title=title)
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    left.set_ylabel("mean Hellinger distance")
    right.set_ylabel("distance from log Z, nats")
    _legend(figure, *left.get_legend_handles_labels())
    return figure


APPROXIMATE: tuple[Callable[[], Any], ...] = (chain_traces, chain_autocorrelation, approximate_ising)


def _ladder(
    ax: Any,
    points: list[tuple[float, float, bool]],
    colour: str,
    marker: str,
    line: str,
    label: str | None,
) -> None:
    """Draw one engine from quick to thorough; hollow marks did not converge."""
    if not points:
        return
    seconds, errors, _ = zip(*points, strict=True)
    ax.plot(seconds, errors, color=colour, linestyle=line, linewidth=1.1, alpha=0.8)
    for second, error, converged in points:
        fill = colour if converged else "white"
        ax.plot([second], [error], marker, color=colour, markerfacecolor=fill, markersize=6)
    ax.plot([], [], marker=marker, color=colour, linestyle=line, linewidth=1.1, markersize=6, label=label)


def _legend(figure: Any, handles: list[Any], labels: list[str]) -> None:
    """Put one column for each family below the panels, with the family's name on top."""
    blank = plt.Line2D([], [], linewidth=0)
    columns = []
    for kind, (_, engines) in KINDS.items():
        mine = [(h, n) for h, n in zip(handles, labels, strict=True) if n.partition(",")[0] in engines]
        columns.append([(blank, kind), *mine])
    height = max(map(len, columns))
    cells = [cell for column in columns for cell in column + [(blank, "")] * (height - len(column))]
    shown = [list(part) for part in zip(*cells, strict=True)]
    legend = figure.legend(*shown, loc="outside lower center", ncols=len(columns), frameon=False, fontsize=9)
    for text in legend.get_texts():
        if text.get_text() in KINDS:
            text.set(fontweight="bold", color=KINDS[text.get_text()][0])


def _ask(model: Any, engine: Any) -> Any:
    """Ask for one spin; chains that are stuck on purpose need not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        return model.query("x5_5", engine=engine)
