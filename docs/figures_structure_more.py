"""Pictures of the pages on expert knowledge, sure edges and undirected graphs.

Everything is learned from fixed seeds while the pages are built.
"""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import markovia as mk

Array = NDArray[np.float64]
TIERS = [["asia", "smoke"], ["tub", "lung", "bronc"], ["either"], ["xray", "dysp"]]
PLACES = {
    "asia": (0.0, 3.0),
    "smoke": (2.2, 3.0),
    "tub": (0.0, 2.0),
    "lung": (1.5, 2.0),
    "bronc": (3.2, 2.0),
    "either": (0.7, 1.0),
    "xray": (0.0, 0.0),
    "dysp": (2.4, 0.0),
}
FIRST, SECOND = "#1f6f8b", "#d1603d"


def knowledge() -> Any:
    """Show the best graph by the data alone beside the best that obeys what is known; as in `guide/expert_knowledge.md`."""
    rows = mk.examples.asia().sample(1000, seed=3)
    alone = mk.learn_structure(rows, "exact")
    informed = mk.learn_structure(rows, "exact", tiers=TIERS, required=[("asia", "tub")])
    compared = mk.graphs.compare_graphs(alone.dag, informed.dag)
    titles = (f"data alone: BIC {alone.score:,.1f}", f"with knowledge, the truth: BIC {informed.score:,.1f}")
    return compared.plot(titles=titles)[0]


def edge_confidence() -> Any:
    """Show how sure the edges of the chest clinic are with few and with many rows."""
    asia = mk.examples.asia()
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained")
    for ax, n in zip(axes, (500, 5000), strict=True):
        sure = mk.bootstrap_structure(asia.sample(n, seed=3), "ges", replicates=100, tiers=TIERS, seed=0)
        sure.plot(ax=ax, least=0.1, title=f"{n:,} rows", layout=PLACES)
    return figure


def moving_voter() -> Any:
    """Show with whom the voter who changes sides is tied, by the two methods for networks that change."""
    votes = mk.examples.roll_call(seed=0)
    at = np.linspace(0, len(votes) - 1, 28)
    found = {
        "kernel-weighted: smooth": mk.learn_structure(
            votes, "kernel-weighted", times="time", at=at, bandwidth=60, alpha=0.2
        ),
        "TESLA: jumps": mk.learn_structure(votes, "tesla", times="time", periods=28, lambda1=0.12),
    }
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.4), layout="constrained")
    for ax, (title, one) in zip(axes, found.items(), strict=True):
        times, first, second = _ties(one)
        drawn: Any = {"drawstyle": "steps-mid"} if "TESLA" in title else {}
        ax.plot(times, first, color=FIRST, label="with the first party", **drawn)
        ax.plot(times, second, color=SECOND, label="with the second party", **drawn)
        ax.set(title=title, xlabel="vote", ylabel="sum of the mover's couplings")
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    return figure


def _ties(found: mk.results.LearnedStructure) -> tuple[Array, Array, Array]:
    """Return the times, and at each the sum of the mover's couplings with either party."""
    names = found.nodes
    own = found.details.weights[:, names.index("mover")]
    party = np.array([name[0] if name != "mover" else "" for name in names])
    times: Array = found.details.times
    return times, own[:, party == "a"].sum(axis=1), own[:, party == "b"].sum(axis=1)


FIGURES: tuple[Callable[[], Any], ...] = (knowledge, edge_confidence, moving_voter)
