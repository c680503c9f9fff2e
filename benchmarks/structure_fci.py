"""FCI and RFCI beside causal-learn's FCI, in one run, on one thread.

Run: python benchmarks/structure_fci.py [--quick]

1. `oracle`: random graphs with hidden variables, d-separation instead of a test: how many graphs are the same, and the time;
2. `data`: rows of alarm (37 variables), G2 at level 0.05: time, tests and edges. causal-learn has a time limit.

The data are sampled with a fixed seed from the network in MARKOVIA_BENCHMARKS, else ../shared/benchmarks.
"""

import argparse
import contextlib
import io
import json
import subprocess
import sys
import warnings
from time import perf_counter
from typing import Any

import numpy as np
from structure_data import sampled

import markovia as mk
from markovia.graphs import Mark, MixedGraph

LIMIT = 120
"""Seconds for the peer on data."""


def oracle(graphs: int, seed: int = 0) -> dict[str, Any]:
    """Learn random graphs with an oracle; return counts and seconds."""
    row: dict[str, Any] = {"graphs": graphs, "same": 0, "ours_s": 0.0, "causal_learn_s": 0.0}
    rng = np.random.default_rng(seed)
    for _ in range(graphs):
        n, hidden = int(rng.integers(4, 10)), int(rng.integers(1, 4))
        order = rng.permutation(n + hidden)
        rate = rng.uniform(0.15, 0.45)
        names = [f"x{i}" for i in range(n)] + [f"h{i}" for i in range(hidden)]
        edges = [
            (names[order[i]], names[order[j]])
            for i in range(n + hidden)
            for j in range(i + 1, n + hidden)
            if rng.random() < rate
        ]
        dag = mk.graphs.DAG(edges, nodes=names)
        start = perf_counter()
        ours = mk.learn_structure(method="fci", test=mk.ci_tests.Oracle(dag, latent=names[n:])).graph
        row["ours_s"] += perf_counter() - start
        start = perf_counter()
        theirs = _causal_learn_oracle(dag, names, n)
        row["causal_learn_s"] += perf_counter() - start
        row["same"] += ours == theirs
    return row


def data(n_rows: int) -> list[dict[str, Any]]:
    """Learn alarm from rows; return one line for each method."""
    rows = sampled("alarm", n_rows)
    mk.learn_structure(rows, method="rfci", test="g2", alpha=0.05, depth=1)  # compiles what is compiled
    found = []
    for method in ("fci", "rfci"):
        best, got = float("inf"), None
        for _ in range(3):
            start = perf_counter()
            got = mk.learn_structure(rows, method=method, test="g2", alpha=0.05, progress=False)
            best = min(best, perf_counter() - start)
        assert got is not None
        found.append(
            {"method": f"markovia {method}", "seconds": best, "tests": got.n_tests, "edges": got.n_edges}
        )
    return found


def peer_on_data(n_rows: int) -> dict[str, Any]:
    """Learn alarm with causal-learn in a process of its own, which may run out of time."""
    row: dict[str, Any] = {"method": "causal-learn fci"}
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--peer", str(n_rows)],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return row | {"seconds": f"more than {LIMIT}"}
    except subprocess.CalledProcessError as error:
        return row | {"seconds": f"failed: {error.stderr.strip().splitlines()[-1]}"}
    return row | json.loads(done.stdout.splitlines()[-1])


def _peer(n_rows: int) -> None:
    from causallearn.search.ConstraintBased.FCI import fci

    rows = sampled("alarm", n_rows)
    codes = np.column_stack([rows[c].astype("category").cat.codes for c in rows.columns]).astype(float)
    start = perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        graph, _ = fci(codes, "gsq", 0.05, show_progress=False)
    print(json.dumps({"seconds": perf_counter() - start, "edges": graph.get_num_edges()}))


def _causal_learn_oracle(dag: mk.graphs.DAG, names: list[str], n: int) -> MixedGraph:
    import networkx as nx
    from causallearn.search.ConstraintBased.FCI import fci

    number = {name: i for i, name in enumerate(names)}
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(names)))
    graph.add_edges_from((number[a], number[b]) for a, b in dag.edges)
    rows = np.random.default_rng(0).normal(size=(n + 1, n))
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, _ = fci(rows, "d_separation", 0.05, true_dag=graph, show_progress=False)
    marks = {-1: Mark.TAIL, 1: Mark.ARROW, 2: Mark.CIRCLE}
    ends = found.graph
    return MixedGraph(
        [
            (names[i], names[j], marks[ends[i, j]], marks[ends[j, i]])
            for i in range(n)
            for j in range(i + 1, n)
            if ends[i, j]
        ],
        nodes=names[:n],
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer graphs and rows, no peer on data")
    parser.add_argument("--peer", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        _peer(options.peer)
        return 0
    print("oracle:", oracle(50 if options.quick else 500), flush=True)
    n_rows = 2_000 if options.quick else 10_000
    for row in data(n_rows):
        print("data:", row, flush=True)
    if not options.quick:
        print("data:", peer_on_data(n_rows), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
