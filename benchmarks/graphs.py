"""How graph algorithms grow: seconds at 25,000, 50,000 and 100,000 nodes of a sparse random DAG.

Run: python benchmarks/graphs.py

Linear work doubles from column to column.
"""

import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

from markovia.graphs import DAG, d_separated, random_dag

SIZES = (25_000, 50_000, 100_000)
REPEATS = 3


def main() -> None:
    graphs = [random_dag(n, max_parents=3, n_edges=2 * n, seed=0) for n in SIZES]
    tasks: dict[str, Callable[[DAG], Any]] = {
        "build from edges": lambda g: DAG(g.edges),
        "topological order": lambda g: g.topological_order(),
        "ancestors of the last node": lambda g: g.ancestors(g.nodes[-1]),
        "moral graph": lambda g: g.moral_graph(),
        "connected components": lambda g: g.connected_components(),
        "d-separation (Bayes ball)": lambda g: d_separated(g, g.nodes[0], g.nodes[-1], g.nodes[10:20]),
    }
    print(f"{'seconds, median of ' + str(REPEATS):30s}" + "".join(f"{n:>12,}" for n in SIZES))
    for name, task in tasks.items():
        row = [statistics.median(_seconds(task, g) for _ in range(REPEATS)) for g in graphs]
        print(f"{name:30s}" + "".join(f"{s:12.3f}" for s in row))


def _seconds(task: Callable[[DAG], Any], graph: DAG) -> float:
    start = perf_counter()
    task(graph)
    return perf_counter() - start


if __name__ == "__main__":
    main()
