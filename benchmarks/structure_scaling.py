"""Time of structure learning against the number of rows and of variables.

Run: python benchmarks/structure_scaling.py [--quick] [--json FILE]
     python benchmarks/structure_scaling.py --many [1000 2000 ...] [--methods ges pc ...]

Rows: alarm (37 variables), 1,000 to 1,000,000 rows. Variables: random networks with two parents a node at most and two to
four states, 10,000 rows, 10 to 400 variables. Each figure is one run in this process after a small one that loads the
compiled code; a method is left out beyond the size at which it took longer than the limit. The guide draws what `--json`
writes.

`--many`: random sparse networks of 100 to 10,000 binary variables (1.2 parents a node on average), 2,000 rows, each method
and size in a process of its own: wall and processor seconds, the largest memory, the score, and the structural Hamming
distance to the class of the true graph.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from structure_data import sampled, states_of

import markovia as mk

MANY_SIZES = (100, 500, 1_000, 2_000, 10_000)
MANY_METHODS = ("ges", "hill-climb", "pc")
MANY_LIMIT = 600.0
METHODS = ("chow-liu", "hill-climb", "tabu", "ges", "boss", "pc", "mmhc")
LIMIT = 30.0


def rows_of_sizes(sizes: tuple[int, ...]) -> dict[str, dict[int, float]]:
    """Learn alarm from more and more rows."""
    data = sampled("alarm", max(sizes))
    states = states_of("alarm", data)
    return measured({n: (data.iloc[:n], states) for n in sizes})


def random_networks(sizes: tuple[int, ...], n_rows: int) -> dict[str, dict[int, float]]:
    """Learn random networks of more and more variables."""
    cases: dict[int, tuple[pd.DataFrame, Any]] = {}
    for n in sizes:
        rng = np.random.default_rng(n)
        states = {f"x{i}": int(rng.integers(2, 5)) for i in range(n)}
        dag = mk.graphs.random_dag(n, max_parents=2, seed=n)
        network = mk.BayesianNetwork(dag, states=states, tables="random", seed=n)
        rows = network.sample(n_rows, seed=n)
        cases[n] = (rows.iloc[:, rng.permutation(n)], states)
    return measured(cases)


def measured(cases: dict[int, tuple[pd.DataFrame, Any]]) -> dict[str, dict[int, float]]:
    """Return the seconds of each method on each case; the first case is run twice and its first run thrown away."""
    found: dict[str, dict[int, float]] = {}
    for method in METHODS:
        found[method] = {}
        for k, (size, (rows, states)) in enumerate(cases.items()):
            for _ in range(2 if k == 0 else 1):
                start = perf_counter()
                learned = mk.learn_structure(
                    rows, method, states=states, time_limit=2 * LIMIT, progress=False
                )
                seconds = perf_counter() - start
            if learned.stopped:
                break
            found[method][size] = round(seconds, 4)
            print(f"{method:12} {size:>9,} {seconds:9.3f} s", flush=True)
            if seconds > LIMIT:
                break
    return found


def sparse_network(n: int, n_rows: int, seed: int) -> tuple[mk.graphs.DAG, pd.DataFrame]:
    """Return a random sparse graph over binary variables, and rows of a network with it."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    codes = np.zeros((n_rows, n), dtype=np.int8)
    edges = []
    for place, node in enumerate(order):
        size = min(place, int(rng.choice([0, 1, 2, 3], p=[0.2, 0.5, 0.2, 0.1])))
        parents = rng.choice(order[:place], size=size, replace=False) if size else []
        states = np.zeros(n_rows, dtype=np.int64)
        for parent in parents:
            states = 2 * states + codes[:, parent]
            edges.append((f"x{parent}", f"x{node}"))
        table = rng.beta(0.6, 0.6, 2**size) if size else rng.beta(3.0, 3.0, 1)
        codes[:, node] = rng.random(n_rows) < table[states]
    names = [f"x{k}" for k in range(n)]
    return mk.graphs.DAG(edges, nodes=names), pd.DataFrame(codes, columns=names)


def one_of_many(method: str, n: int) -> None:
    """Learn one network in this process and print what it took."""
    import resource

    _, few = sparse_network(100, 2_000, 100)
    mk.learn_structure(few, method, progress=False)  # loads the compiled code
    truth, rows = sparse_network(n, 2_000, n)
    start, worked = perf_counter(), process_time()
    found = mk.learn_structure(rows, method, time_limit=MANY_LIMIT, progress=False)
    seconds, worked = perf_counter() - start, process_time() - worked
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    score = "" if found.score is None else f"score {found.score:,.1f}"
    distance = mk.graphs.compare_graphs(found.cpdag, mk.graphs.cpdag(truth)).shd if n <= 2_000 else "-"
    print(
        f"{method:11} {n:>7,} {seconds:8.2f} s wall {worked:8.2f} s processor {memory:5.2f} GiB "
        f"{found.n_edges:>7,} edges  SHD {distance} {score} {found.stopped or ''}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--json", type=Path, help="where the figures are written")
    parser.add_argument("--many", nargs="*", type=int, help="sparse binary networks of these sizes")
    parser.add_argument("--methods", nargs="*", default=MANY_METHODS, help="the methods of --many")
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one_of_many(options.one[0], int(options.one[1]))
        return 0
    if options.many is not None:
        for method in options.methods:
            for n in options.many or MANY_SIZES:
                subprocess.run([sys.executable, __file__, "--one", method, str(n)], check=False)
        return 0
    quick = options.quick
    print("seconds against the number of rows (alarm)")
    rows = rows_of_sizes((1_000, 10_000) if quick else (1_000, 10_000, 100_000, 1_000_000))
    print("seconds against the number of variables (random networks, 10,000 rows)")
    variables = random_networks((10, 50) if quick else (10, 25, 50, 100, 200, 400), 10_000)
    if options.json:
        made = {"date": str(date.today()), "cores": os.cpu_count(), "python": platform.python_version()}
        found = {"made": made, "rows": rows, "variables": variables}
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
