"""How fast the best graph is found and proven, beside peers, in one run.

Run: python benchmarks/structure_exact.py [--quick] [--parts networks small]

1. `networks`: BIC on rows sampled from benchmark networks, columns shuffled: child (20 variables) is the goal, proven in
   under 10 s at 10,000 rows; asia and sachs beside it, insurance and alarm with a time limit,
   the largest with a limited in-degree;
2. `small`: where peers can follow: Gaussian columns with causal-learn's exact search (A* and dynamic programming), five
   discrete columns with pgmpy's exhaustive search.

Networks come from MARKOVIA_BENCHMARKS, else ../shared/benchmarks. All run with the threads that MARKOVIA_THREADS says, 1 by
default here; the compiled code is warm.
`processor` is the time on the processor: on a machine that others use it says more. Peers that are not installed are named
and left out.
"""

import argparse
import contextlib
import io
import os
import sys
from time import perf_counter, process_time
from typing import Any

os.environ.setdefault("MARKOVIA_THREADS", "1")

import numpy as np
import pandas as pd
from structure_data import sampled

import markovia as mk
from markovia.data.tables.reading_mixed import read_mixed

NETWORKS: list[tuple[str, int, dict[str, Any]]] = [
    ("asia", 10_000, {}),
    ("sachs", 10_000, {}),
    ("child", 1_000, {}),
    ("child", 10_000, {}),
    ("insurance", 1_000, {}),
    ("insurance", 10_000, {}),
    ("alarm", 1_000, {}),
    ("alarm", 10_000, {"max_parents": 3}),
]
LIMIT = 120.0


def networks(quick: bool) -> list[list[str]]:
    """Time the proof on sampled rows."""
    table = [
        [
            "network",
            "rows",
            "in-degree",
            "seconds",
            "processor",
            "best of",
            "score",
            "gap",
            "families scored",
            "sets expanded",
        ]
    ]
    mk.learn_structure(sampled("asia", 500), "exact", algorithm="a-star", progress=False)
    for name, n, options in NETWORKS[: 4 if quick else None]:
        rows = sampled(name, n)
        best, runs, processor = None, 0, float("inf")
        while runs < 3 and (best is None or best.seconds < 20):
            begin = process_time()
            found = mk.learn_structure(rows, "exact", time_limit=LIMIT, progress=False, **options)
            processor = min(processor, process_time() - begin)
            runs += 1
            if best is None or found.seconds < best.seconds:
                best = found
        assert best is not None
        gap = best.details.gap
        table.append(
            [
                name,
                f"{n:,}",
                str(options.get("max_parents", "any")),
                f"{best.seconds:.2f}",
                f"{processor:.2f}",
                str(runs),
                f"{best.score:.1f}",
                "proven" if best.optimal else "unknown" if gap is None else f"{gap:.1f}",
                f"{best.details.families_scored:,}",
                f"{best.details.expanded:,}",
            ]
        )
    return table


def gaussian_rows(n_variables: int, n: int, seed: int) -> pd.DataFrame:
    """Rows of a random linear-Gaussian network."""
    rng = np.random.default_rng(seed)
    pull = np.triu(rng.normal(size=(n_variables, n_variables)), 1)
    pull *= rng.random(pull.shape) < 0.35
    rows = rng.normal(size=(n, n_variables)) @ np.linalg.inv(np.eye(n_variables) - pull)
    return pd.DataFrame(rows, columns=[f"x{k}" for k in range(n_variables)])


def timed(task: Any) -> tuple[float, Any]:
    """Seconds and result of one call, what it prints thrown away."""
    begin = perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = task()
    return perf_counter() - begin, found


def small(quick: bool) -> list[list[str]]:
    """Time small problems beside peers."""
    table = [["data", "method", "seconds", "BIC of its graph"]]
    for n_variables in (6, 8) if quick else (6, 8, 10):
        rows = gaussian_rows(n_variables, 1000, 3)
        names = list(rows.columns)
        bound = mk.scores.GaussianBIC().bind(read_mixed(rows))
        for algorithm in ("dynamic-programming", "a-star"):
            seconds, found = min(
                (
                    timed(
                        lambda a=algorithm, r=rows: mk.learn_structure(
                            r, "exact", algorithm=a, progress=False
                        )
                    )
                    for _ in range(3)
                ),
                key=lambda pair: pair[0],
            )
            table.append(
                [f"Gaussian, {n_variables}", f"markovia {algorithm}", f"{seconds:.3f}", f"{found.score:.3f}"]
            )
        try:
            from causallearn.search.ScoreBased.ExactSearch import bic_exact_search
        except ImportError:
            table.append([f"Gaussian, {n_variables}", "causal-learn is not installed", "", ""])
            continue
        for method in ("dp", "astar"):
            seconds, (matrix, _) = timed(
                lambda m=method, r=rows: bic_exact_search(r.to_numpy(), search_method=m)
            )
            score = bound.total([np.flatnonzero(matrix[:, k]).tolist() for k in range(len(names))])
            table.append(
                [f"Gaussian, {n_variables}", f"causal-learn {method}", f"{seconds:.3f}", f"{score:.3f}"]
            )
    rows = sampled("cancer", 2000)
    seconds, found = min(
        (timed(lambda: mk.learn_structure(rows, "exact", progress=False)) for _ in range(3)),
        key=lambda pair: pair[0],
    )
    table.append(["cancer, 5", "markovia", f"{seconds:.3f}", f"{found.score:.3f}"])
    try:
        from pgmpy.estimators import ExhaustiveSearch
    except ImportError:
        table.append(["cancer, 5", "pgmpy has no exhaustive search here", "", ""])
        return table
    if quick:
        return table
    bound = mk.scores.BIC().bind(read_mixed(rows))
    text = rows.astype(str)
    seconds, graph = timed(lambda: ExhaustiveSearch(text, scoring_method="bic-d").estimate())
    names = list(rows.columns)
    score = bound.total(
        [[names.index(p) for p in graph.get_parents(n)] if n in graph.nodes else [] for n in names]
    )
    table.append(["cancer, 5", "pgmpy exhaustive", f"{seconds:.3f}", f"{score:.3f}"])
    return table


def show(table: list[list[str]]) -> None:
    """Print rows in columns."""
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    for row in table:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True
        )


def main() -> int:
    """Run the parts that are asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller data, no slow peers")
    parser.add_argument("--parts", nargs="+", choices=("networks", "small"), default=("networks", "small"))
    options = parser.parse_args()
    print(f"threads: {os.environ['MARKOVIA_THREADS']}")
    for part in options.parts:
        print(f"== {part} ==", flush=True)
        show({"networks": networks, "small": small}[part](options.quick))
    return 0


if __name__ == "__main__":
    sys.exit(main())
