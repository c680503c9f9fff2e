"""How fast graphs are learned by tests of conditional independence, side by side with causal-learn, pgmpy and pyAgrum.

Run: python benchmarks/structure_tests.py [--rows N] [--networks NAME ...] [--seed S] [--limit SECONDS] [--quick]

Task 1: PC (order-independent) with the G2 test at level 0.05 on rows drawn from a network, columns shuffled, fixed
seeds. Each library runs in a process of its own that ends at the limit, with one thread; markovia a second time with
all threads. Shown are the seconds (for markovia the median of at least five runs, compiled beforehand; for others one
run, the tests they make included, the import not), the edges of the skeleton, whether it is causal-learn's, and
precision and recall against the network. pgmpy is asked for no limit on the conditioning set; pyAgrum for its own PC
with G2. pybnesian could not be installed and is not measured. Task 2: what one test costs, by the size of
the conditioning set. Task 3: max-min hill climbing.

The networks are looked for in MARKOVIA_BENCHMARKS/bif, else in ../shared/benchmarks/bif.
"""

import argparse
import logging
import os
import pickle
import sys
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from stopwatch import benchmark_folder, in_child, median_time, report
from structure_data import network, sampled

import markovia as mk

ALPHA = 0.05
PEERS = {"causal-learn": "causallearn", "pgmpy": "pgmpy", "pyAgrum": "pyagrum"}
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MARKOVIA_THREADS", "NUMBA_NUM_THREADS")


def main() -> int:
    options = _arguments()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    if options.child:
        frame = pickle.loads(Path(options.task).read_bytes())
        {
            "markovia": _markovia,
            "causal-learn": _causal_learn,
            "pgmpy": _pgmpy,
            "pyAgrum": _pyagrum,
            "single": _single_tests,
            "mmhc": _mmhc,
        }[options.child](frame)
        return 0
    for name in options.networks:
        file = benchmark_folder() / "bif" / f"{name}.bif.gz"
        if not file.exists():
            print(f"no network {file}; set MARKOVIA_BENCHMARKS to the folder that holds bif/.")
            continue
        model, frame = network(name), sampled(name, options.rows, options.seed)
        for row in pc_rows(name, model, frame, options.limit):
            print(row, flush=True)
        if not options.quick:
            for row in (*single_rows(frame, options.limit), *climb_rows(model, frame, options.limit)):
                print(row, flush=True)
    return 0


def pc_rows(name: str, model: Any, frame: pd.DataFrame, limit: float) -> list[str]:
    """Return one line a library: seconds, skeleton, agreement."""
    found = {
        "markovia": _run("markovia", frame, limit),
        "markovia, all threads": _run("markovia", frame, limit, None),
    }
    for peer, module in PEERS.items():
        found[peer] = _run(peer, frame, limit) if find_spec(module) else {"ended": "not installed"}
    truth = {frozenset(e) for e in model.graph.edges}
    reference = _pairs(found["causal-learn"])
    lines = [f"PC, {name}, {len(frame):,} rows, G2, alpha {ALPHA}; the network has {len(truth)} edges"]
    lines.append(f"{'':24}{'seconds':>9}{'tests':>8}{'edges':>7}  causal-learn's  precision  recall")
    for who, result in found.items():
        if "seconds" not in result:
            lines.append(f"{who:24}{result.get('ended', 'no answer'):>9}")
            continue
        pairs = _pairs(result)
        same = (
            "-"
            if reference is None
            else "the same"
            if pairs == reference
            else f"{len(pairs ^ reference)} differ"
        )
        hits = len(pairs & truth)
        lines.append(
            f"{who:24}{result['seconds']:9.3f}{result.get('tests', '-'):>8}{len(pairs):7}  {same:14}  "
            f"{hits / max(1, len(pairs)):9.2f}{hits / len(truth):8.2f}"
        )
    if "seconds" in found["causal-learn"]:
        ratio = found["causal-learn"]["seconds"] / found["markovia"]["seconds"]
        lines.append(f"causal-learn takes {ratio:.1f} times as long as markovia with one thread")
    return lines


def single_rows(frame: pd.DataFrame, limit: float) -> list[str]:
    """Return what one test costs by the size of the conditioning set."""
    found = _run("single", frame, limit)
    lines = [f"one test, {len(frame):,} rows, microseconds{'':6}markovia  causal-learn"]
    for size, cost in sorted(found.get("each", {}).items()):
        lines.append(
            f"  {size} given{'':25}{1e6 * cost['markovia']:13.1f}{1e6 * cost.get('causal-learn', np.nan):14.1f}"
        )
    return lines


def climb_rows(model: Any, frame: pd.DataFrame, limit: float) -> list[str]:
    """Return how max-min hill climbing does."""
    found = _run("mmhc", frame, limit)
    if "seconds" not in found:
        return [f"max-min hill climbing: {found.get('ended', 'no answer')}"]
    truth = {frozenset(e) for e in model.graph.edges}
    hits = len((_pairs(found) or set()) & truth)
    return [
        f"max-min hill climbing: {found['seconds']:.3f} s, BIC {found['score']:.1f}, {len(found['edges'])} edges, "
        f"{hits} of {len(truth)} found"
    ]


def _pairs(result: dict[str, Any]) -> set[frozenset[str]] | None:
    return {frozenset(e) for e in result["edges"]} if "edges" in result else None


def _run(what: str, frame: pd.DataFrame, limit: float, threads: str | None = "1") -> dict[str, Any]:
    kept = {name: os.environ.get(name) for name in ONE_THREAD}
    for name in ONE_THREAD:
        os.environ.pop(name, None)
        if threads is not None:
            os.environ[name] = threads
    try:
        with tempfile.TemporaryDirectory() as folder:
            task = Path(folder) / "frame.pickle"
            task.write_bytes(pickle.dumps(frame))
            return in_child([Path(__file__).name, "--child", what, "--task", str(task)], limit)
    finally:
        for name, value in kept.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _codes(frame: pd.DataFrame) -> Any:
    return np.column_stack([frame[c].astype("category").cat.codes for c in frame.columns]).astype(np.int64)


def _markovia(frame: pd.DataFrame) -> None:
    from markovia.kernels.structure import table_tests

    table_tests.load()
    timed = median_time(
        lambda f: mk.learn_structure(f, method="pc", test="g2", alpha=ALPHA, progress=False), lambda: frame
    )
    report(["seconds"], timed.record["seconds"])
    report(["tests"], timed.result.n_tests)
    report(["edges"], [list(e) for e in timed.result.skeleton.edges])


def _causal_learn(frame: pd.DataFrame) -> None:
    from causallearn.search.ConstraintBased.PC import pc

    names, cells = list(frame.columns), _codes(frame)
    start = perf_counter()
    found = pc(cells, ALPHA, "gsq", stable=True, show_progress=False)
    report(["seconds"], perf_counter() - start)
    marks = found.G.graph
    n = len(names)
    report(
        ["edges"], [[names[i], names[j]] for i in range(n) for j in range(i) if marks[i, j] or marks[j, i]]
    )
    report(["tests"], len(found.test.pvalue_cache) - 3)


def _pgmpy(frame: pd.DataFrame) -> None:
    from pgmpy.estimators import PC

    frame = frame.astype("category")
    start = perf_counter()
    found = PC(frame).estimate(
        variant="stable", ci_test="g_sq", return_type="skeleton", significance_level=ALPHA, max_cond_vars=len(frame.columns),
        n_jobs=1, show_progress=False,
    )  # fmt: skip
    report(["seconds"], perf_counter() - start)
    report(["edges"], [list(e) for e in found[0].edges])


def _pyagrum(frame: pd.DataFrame) -> None:
    import pyagrum as gum

    start = perf_counter()
    learner = gum.BNLearner(frame.astype(str))
    learner.setNumberOfThreads(1)
    learner.usePC()
    learner.useG2Test()
    learner.setPCAlpha(ALPHA)
    learner.setPCStable(True)
    found = learner.learnPDAG()
    report(["seconds"], perf_counter() - start)
    number = {learner.nameFromId(k): k for k in range(len(frame.columns))}
    name = {k: n for n, k in number.items()}
    pairs = {*found.arcs(), *found.edges()}
    report(["edges"], [[name[a], name[b]] for a, b in pairs])


def _single_tests(frame: pd.DataFrame) -> None:
    from markovia.data.tables.reading_mixed import read_mixed
    from markovia.kernels.structure import table_tests

    table_tests.load()
    mixed = read_mixed(frame)
    rng = np.random.default_rng(0)
    cells = _codes(frame)
    for size in range(5):
        picked = [rng.permutation(len(frame.columns))[: size + 2].tolist() for _ in range(200)]
        queries = [(p[0], p[1], tuple(p[2:])) for p in picked]
        timed = median_time(lambda test: test.p_values(queries), lambda: mk.ci_tests.G2().bind(mixed))  # noqa: B023
        report(["each", str(size), "markovia"], timed.record["seconds"] / len(queries))
        if find_spec("causallearn"):
            from causallearn.utils.cit import CIT

            timed = median_time(
                lambda test: [test(*q) for q in queries[:50]],  # noqa: B023
                lambda: CIT(cells, "gsq"),
            )
            report(["each", str(size), "causal-learn"], timed.record["seconds"] / 50)


def _mmhc(frame: pd.DataFrame) -> None:
    timed = median_time(
        lambda f: mk.learn_structure(f, method="mmhc", test="g2", score="bic", alpha=ALPHA, progress=False),
        lambda: frame,
    )
    report(["seconds"], timed.record["seconds"])
    report(["score"], timed.result.score)
    report(["edges"], [list(e) for e in timed.result.skeleton.edges])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--networks", nargs="+", default=["alarm"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each library")
    parser.add_argument("--quick", action="store_true", help="only PC")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
