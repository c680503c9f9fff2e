"""How long hill climbing takes and how good its graphs are, beside pyAgrum's and pgmpy's.

Run: python benchmarks/structure_hill_climbing.py [--networks child,alarm,...] [--seed S] [--pgmpy SECONDS]
[--one-thread] [--quick]

Rows are sampled from known networks with fixed seeds, the columns shuffled, and only the states that occur are known. Every
library gets the same rows as text in a pandas frame; reading them is not timed for ours and pyAgrum's (they read once and
search often), for pgmpy there is no such difference. Seconds are the best of three searches (one if it takes more than ten
seconds), each with nothing remembered; on a busy machine those of the processor say more. BIC is the log-likelihood in nats
minus ln(n)/2 for each free parameter, computed by one function for all graphs; SHD is the number of pairs whose edge in the
class of graphs (CPDAG) differs from the truth's.
pgmpy runs in a process of its own and is stopped after --pgmpy seconds (0 leaves it out).

The networks are looked for in MARKOVIA_BENCHMARKS/bif, else in ../shared/benchmarks/bif.
"""

import argparse
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from stopwatch import benchmark_folder, in_child, report
from structure_data import network, sampled

from markovia.runtime.threads import thread_count

RUNS = 3
LONG = 10.0
ALL = [
    ("child", 10_000),
    ("insurance", 10_000),
    ("alarm", 10_000),
    ("hailfinder", 10_000),
    ("hepar2", 10_000),
    ("win95pts", 10_000),
    ("andes", 10_000),
    ("alarm", 1_000),
]
ANCHORS = {
    ("child", 10_000): 0.05,
    ("insurance", 10_000): 0.11,
    ("alarm", 10_000): 0.18,
    ("hailfinder", 10_000): 0.18,
    ("hepar2", 10_000): 0.53,
    ("win95pts", 10_000): 1.1,
    ("andes", 10_000): 8.9,
    ("alarm", 1_000): 0.07,
}
"""Seconds of pybnesian's hill climbing, measured once on another machine with one thread."""


def main() -> int:
    options = _arguments()
    warnings.simplefilter("ignore")
    if options.one_thread:
        os.environ["MARKOVIA_THREADS"] = "1"
    if not (benchmark_folder() / "bif").exists():
        print("no networks; set MARKOVIA_BENCHMARKS to the folder that holds bif/. Nothing measured.")
        return 0
    if options.child:
        name, n = options.child.split(":")
        return _pgmpy(name, int(n), options.seed)
    few = ["child", "alarm"] if options.quick else None
    chosen = options.networks.split(",") if options.networks else few
    print(
        f"{os.cpu_count()} cores; markovia threads: {os.environ.get('MARKOVIA_THREADS', 'all')}; pyAgrum: 1"
    )
    print(f"{'data':<20}{'search':<26}{'seconds':>9}{'CPU':>9}{'BIC':>14}{'SHD':>6}{'edges':>7}")
    for name, n in ALL:
        if chosen is None or name in chosen:
            for row in measure(name, n, options.seed, options.pgmpy):
                print(row, flush=True)
    if not options.one_thread and thread_count() > 1:
        return subprocess.run([sys.executable, *sys.argv, "--one-thread"], check=False).returncode
    return 0


def measure(name: str, n: int, seed: int, pgmpy_seconds: float) -> Iterator[str]:
    """Yield a line for each search on one sample."""
    import markovia as mk
    from markovia.data.tables.reading_mixed import read_mixed
    from markovia.kernels.structure import edge_steps, family_scores

    model, rows = sample(name, n, seed)
    mixed = read_mixed(rows)
    family_scores.load()
    edge_steps.load()

    def line(what: str, spent: tuple[float, float] | str, graph: Any) -> str:
        head = f"{name + ', ' + format(n, ','):<20}{what:<26}"
        if isinstance(spent, str):
            return f"{head}{spent:>9}"
        bic = mk.score_graph(graph, mixed, "bic")
        return f"{head}{spent[0]:>9.3f}{spent[1]:>9.3f}{bic:>14.1f}{shd(graph, model.graph):>6}{graph.n_edges:>7}"

    searches = [
        ("hill-climb", {}),
        ("hill-climb, climbs=1", {"climbs": 1}),
        ("hill-climb, walks=0", {"walks": 0}),
        ("hill-climb, restarts=10", {"restarts": 10, "seed": 0}),
        ("tabu", {}),
    ]
    for what, settings in searches:
        method = what.partition(",")[0]

        def search(method: str = method, settings: dict[str, Any] = settings) -> Any:
            return mk.learn_structure(mixed, method, score="bic", **settings)

        spent, found = best_time(lambda: None, lambda _, search=search: search())
        yield line(what, spent, found.dag)
    peer = _agrum(rows)
    if peer is None:
        yield line("pyAgrum", "absent", None)
    else:
        spent, graph = peer
        yield line("pyAgrum hill climbing", spent, graph)
    yield line("pybnesian, other machine", f"({ANCHORS[name, n]})", None)
    if pgmpy_seconds:
        child = in_child([Path(__file__).name, "--child", f"{name}:{n}", "--seed", str(seed)], pgmpy_seconds)
        if "seconds" in child:
            graph = mk.graphs.DAG([tuple(e) for e in child["edges"]], nodes=list(rows))
            yield line("pgmpy hill climbing", tuple(child["seconds"]), graph)
        else:
            yield line("pgmpy hill climbing", f"{child.get('ended', 'failed')}"[:9], None)


def sample(name: str, n: int, seed: int) -> tuple[Any, Any]:
    """Return the network and rows of it as text, the columns shuffled."""
    return network(name), sampled(name, n, seed).astype("str")


def best_time(prepare: Callable[[], Any], search: Callable[[Any], Any]) -> tuple[tuple[float, float], Any]:
    """Return the seconds of the fastest run by the clock and of the processor, and what it found."""
    clock = processor = float("inf")
    found = None
    for _ in range(RUNS):
        ready = prepare()
        start, begun = perf_counter(), process_time()
        found = search(ready)
        processor = min(processor, process_time() - begun)
        clock = min(clock, perf_counter() - start)
        if clock > LONG:
            break
    return (clock, processor), found


def shd(graph: Any, truth: Any) -> int:
    """Return the number of pairs of nodes whose edge differs between the classes of two graphs."""
    from markovia.graphs.kinds.equivalence import cpdag

    def marks(found: Any) -> set[tuple[Any, ...]]:
        edges = set()
        for a, b, at_a, at_b in cpdag(found).edges:
            edges.add((a, b, at_a, at_b) if a < b else (b, a, at_b, at_a))
        return edges

    one, two = marks(graph), marks(truth)
    return len({e[:2] for e in one ^ two})


def _agrum(rows: Any) -> tuple[tuple[float, float], Any] | None:
    try:
        import pyagrum as gum
    except ImportError:
        return None
    import markovia as mk

    def learner() -> Any:
        made = gum.BNLearner(rows)
        made.useGreedyHillClimbing()
        made.useScoreBIC()
        made.useNoPrior()
        made.setNumberOfThreads(1)
        return made

    spent, (ready, graph) = best_time(learner, lambda ready: (ready, ready.learnDAG()))
    names = ready.names()
    edges = [(names[a], names[b]) for a, b in graph.arcs()]
    return spent, mk.graphs.DAG(edges, nodes=list(rows))


def _pgmpy(name: str, n: int, seed: int) -> int:
    from pgmpy.estimators import HillClimbSearch

    _, rows = sample(name, n, seed)
    start, begun = perf_counter(), process_time()
    found = HillClimbSearch(rows.astype("category")).estimate(scoring_method="bic-d", show_progress=False)
    report(["seconds"], [perf_counter() - start, process_time() - begun])
    report(["edges"], [list(e) for e in found.edges()])
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", help="names, separated by commas; all by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--pgmpy", type=float, default=0.0, help="seconds that pgmpy may take; 0 leaves it out"
    )
    parser.add_argument(
        "--one-thread", action="store_true", help="one thread alone; by default all threads, then one"
    )
    parser.add_argument("--quick", action="store_true", help="child and alarm alone")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
