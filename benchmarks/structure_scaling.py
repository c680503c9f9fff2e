"""Time of structure learning against the number of rows and of variables.

Run: python benchmarks/structure_scaling.py [--quick] [--json FILE]

Rows: alarm (37 variables), 1,000 to 1,000,000 rows. Variables: random networks with two parents a node at most and two to
four states, 10,000 rows, 10 to 400 variables. Each figure is one run in this process after a small one that loads the
compiled code; a method is left out beyond the size at which it took longer than the limit. The guide draws what `--json`
writes.
"""

import argparse
import json
import os
import platform
import sys
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from structure_data import sampled, states_of

import markovia as mk

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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--json", type=Path, help="where the figures are written")
    options = parser.parse_args()
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
