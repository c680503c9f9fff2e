"""How fast sets of variables to adjust for are found, side by side with DoWhy, in one run.

Run: python benchmarks/causal_adjustment.py [--sizes 30 50 1000] [--graphs 10] [--peer-python PYTHON] [--limit 30]

Random DAGs with two edges a node (degree 4), a treatment with parents and one of its descendants as the outcome. Shown are
medians and the largest of all graphs in milliseconds of processor time: one minimal set, the first ten, the cheapest, the
optimal one; `cold` is the first call of a process, by the clock, after the import. DoWhy's default back-door search (the
one that its `identify_effect` runs) gets the same graphs in a process of its own for each, which ends at the limit.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import markovia as mk

DOWHY = """
import json, sys, time
import networkx as nx
from dowhy.causal_identifier.auto_identifier import BackdoorAdjustment, identify_backdoor
edges, x, y = json.load(sys.stdin)
graph = nx.DiGraph(edges)
start = time.process_time()
sets = identify_backdoor(graph, [x], [y], list(graph.nodes), BackdoorAdjustment.BACKDOOR_DEFAULT)
print(json.dumps([time.process_time() - start, len(sets)]))
"""
COLD = """
import sys, time
import markovia as mk
graph = mk.graphs.random_dag(int(sys.argv[1]), n_edges=2 * int(sys.argv[1]), seed=int(sys.argv[2]))
start = time.perf_counter()
mk.causal.adjustment_sets(graph, sys.argv[3], sys.argv[4], limit=1)
print(time.perf_counter() - start)
"""


def main() -> int:
    options = _arguments()
    for size in options.sizes:
        problems = [problem(size, seed) for seed in range(options.graphs)]
        print(
            f"\n{size:,} nodes, {options.graphs} graphs          median      largest   (ms of processor time)"
        )
        for what, ask in ASKED.items():
            shown(what, [1e3 * timed(lambda: ask(*one[1:])) for one in problems])  # noqa: B023
        cold = [1e3 * float(child([COLD, *map(str, one_of(p, size))])) for p in problems[:3]]
        shown("one set, cold, by the clock", cold)
        if options.peer_python:
            with_dowhy(problems, options)
    return 0


ASKED: dict[str, Callable[[Any, str, str], Any]] = {
    "one minimal set": lambda g, x, y: mk.causal.adjustment_sets(g, x, y, limit=1),
    "the first ten minimal sets": lambda g, x, y: mk.causal.adjustment_sets(g, x, y, limit=10),
    "the cheapest": lambda g, x, y: mk.causal.adjustment_sets(g, x, y, kind="minimum"),
    "the optimal one": lambda g, x, y: mk.causal.adjustment_sets(g, x, y, kind="optimal"),
    "front-door sets, the first": lambda g, x, y: mk.causal.front_door_sets(g, x, y, limit=1),
}


def problem(size: int, seed: int) -> tuple[int, Any, str, str]:
    """Return the seed, a graph, a treatment with parents and a descendant of it."""
    graph = mk.graphs.random_dag(size, n_edges=2 * size, seed=seed)
    rng = np.random.default_rng(seed)
    while True:
        x = str(rng.choice([name for name in graph.nodes if graph.parents(name)]))
        if below := sorted(graph.descendants(x)):
            return seed, graph, x, str(rng.choice(below))


def one_of(asked: tuple[int, Any, str, str], size: int) -> tuple[int, int, str, str]:
    return size, asked[0], asked[2], asked[3]


def timed(task: Callable[[], Any]) -> float:
    """Return the median processor time of five runs after a warm-up."""
    task()
    seconds = []
    for _ in range(5):
        start = process_time()
        task()
        seconds.append(process_time() - start)
    return statistics.median(seconds)


def child(arguments: list[str]) -> str:
    run = subprocess.run([sys.executable, "-c", *arguments], capture_output=True, check=True, text=True)
    return run.stdout


def with_dowhy(problems: list[tuple[int, Any, str, str]], options: argparse.Namespace) -> None:
    found, late = [], 0
    for _, graph, x, y in problems:
        begun = perf_counter()
        try:
            run = subprocess.run(
                [options.peer_python, "-c", DOWHY],
                input=json.dumps([graph.edges, x, y]),
                capture_output=True,
                check=True,
                text=True,
                timeout=options.limit,
            )
        except subprocess.TimeoutExpired:
            late += 1
            found.append(1e3 * (perf_counter() - begun))
            if late == 3:
                break
            continue
        found.append(1e3 * json.loads(run.stdout.splitlines()[-1])[0])
    shown(f"DoWhy, back-door ({late} of {len(found)} over {options.limit:g} s)", found)


def shown(what: str, milliseconds: list[float]) -> None:
    print(f"{what:<40} {statistics.median(milliseconds):12,.2f} {max(milliseconds):12,.2f}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=Path(__file__).name)
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 50, 1000])
    parser.add_argument("--graphs", type=int, default=10)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one graph of DoWhy")
    here = sys.executable if find_spec("dowhy") else None
    parser.add_argument("--peer-python", default=here, help="the Python that has DoWhy")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
