"""How good and how fast the searches over classes and orders are, side by side with peers, in one run.

Run: python benchmarks/structure_classes.py [--networks child alarm:1000 ...] [--peers pyAgrum pgmpy causal-learn]
[--limit S] [--seed S]

1. Rows are drawn from each network with a fixed seed and its columns shuffled; every search gets the same data frame. Shown
   are the BIC of what was found (log-likelihood in nats minus ln(n) / 2 for each free parameter, computed by one function,
   larger is better), the structural Hamming distance between its CPDAG and that of the network (pairs whose edge
   differs), and seconds of processor time from the data frame on, the best of several runs. All use one thread; markovia's
   searches a second time all threads, with seconds by the clock.
2. `discrete`: GES of markovia and of causal-learn with the score BDeu (one imaginary row) on small networks.
3. `gaussian`: rows of a linear Gaussian model on a random graph; GES of markovia and of causal-learn with the same score.

pyAgrum's search is greedy hill climbing. Peers run in processes of their own, which end at the limit. Data are sampled
from the networks in MARKOVIA_BENCHMARKS, else ../shared/benchmarks.
"""

import argparse
import logging
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from stopwatch import benchmark_folder, in_child, report
from structure_data import network, sampled

import markovia as mk

NETWORKS = [
    *(
        f"{name}:10000"
        for name in ("child", "insurance", "alarm", "hailfinder", "hepar2", "win95pts", "andes")
    ),
    "alarm:1000",
]
PEERS = {"pyAgrum": "pyagrum", "pgmpy": "pgmpy", "causal-learn": "causallearn"}
OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "ges": ("ges", {}),
    "boss, no kicks": ("boss", {"kicks": 0}),
    "boss": ("boss", {}),
    "boss, 30 kicks": ("boss", {"kicks": 30}),
    "grasp": ("grasp", {}),
}
DISCRETE = [("asia", 1_000), ("asia", 10_000), ("sachs", 10_000), ("child", 1_000), ("child", 10_000)]
SLOW_PEERS_TO = {"pgmpy": 60, "causal-learn": 40}
"""The largest number of variables that slow peers are asked for."""


def main() -> int:
    options = _arguments()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MARKOVIA_THREADS"):
        os.environ.setdefault(name, "1")
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    if options.child:
        _run_child(options)
        return 0
    rows = []
    for entry in options.networks:
        name, _, size = entry.partition(":")
        file = benchmark_folder() / "bif" / f"{name}.bif.gz"
        if not file.exists():
            print(f"no network {file}; set MARKOVIA_BENCHMARKS to the folder that holds bif/.")
            continue
        print(f"\n{name}, {int(size or 10000):,} rows")
        rows += compare(name, int(size or 10000), options)
    if "causal-learn" in options.peers:
        for name, size in DISCRETE:
            print(f"\n{name}, {size:,} rows, BDeu")
            rows += compare_discrete(name, size, options)
        print("\na Gaussian model of 25 variables, 1,000 rows")
        rows += compare_gaussian(options)
    return 0


def compare(name: str, size: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return one row a search on data of a network."""
    model, frame = network(name), sampled(name, size, options.seed)
    truth = mk.graphs.cpdag(model.graph)
    judge = _judge(frame)
    found = [{"search": "(the network)", "bic": judge(model.graph), "shd": 0, "seconds": None}]
    _line(found[-1])
    for label, (method, more) in OWN.items():
        mk.learn_structure(frame, method=method, seed=1, time_limit=5.0, **more)  # loads the compiled code
        best, runs, result = np.inf, 0, None
        while runs < options.runs and (runs == 0 or best * runs < 20.0):
            start = process_time()
            result = mk.learn_structure(frame, method=method, seed=1, **more)
            best = min(best, process_time() - start)
            runs += 1
        assert result is not None
        found.append(_row(label, judge, truth, result.cpdag, result.dag, best))
        found[-1]["all_threads"] = _with_all_threads(frame, method, more, options.runs)
        _line(found[-1])
    for peer in options.peers:
        if frame.shape[1] > SLOW_PEERS_TO.get(peer, 10**9):
            continue
        answer = _peer(peer, frame, options)
        if isinstance(answer, str):
            print(f"{peer:24}{answer}", flush=True)
            continue
        dag = mk.graphs.DAG([tuple(e) for e in answer["edges"]], nodes=list(frame.columns))
        found.append(_row(peer, judge, truth, mk.graphs.cpdag(dag), dag, answer["seconds"]))
        _line(found[-1])
    return found


def _with_all_threads(frame: pd.DataFrame, method: str, more: dict[str, Any], runs: int) -> float:
    """Return the seconds by the clock with all threads."""
    from markovia.runtime.threads import thread_count

    kept = {name: os.environ.pop(name) for name in ("OMP_NUM_THREADS", "MARKOVIA_THREADS")}
    best, done = np.inf, 0
    os.environ["MARKOVIA_THREADS"] = str(thread_count())
    while done < runs and (done == 0 or best * done < 20.0):
        start = perf_counter()
        mk.learn_structure(frame, method=method, seed=1, **more)
        best, done = min(best, perf_counter() - start), done + 1
    os.environ.update(kept)
    return best


def compare_discrete(name: str, size: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of GES with the score that causal-learn has for discrete data; `bic` is that score."""
    from markovia.data.tables.reading_mixed import read_mixed
    from markovia.structure.scores.scores import bind_score

    frame = sampled(name, size, options.seed)
    truth = mk.graphs.cpdag(network(name).graph)
    score = bind_score(mk.scores.BDeu(1.0), read_mixed(frame))
    number = {column: k for k, column in enumerate(frame.columns)}

    def judge(dag: mk.graphs.DAG) -> float:
        return score.total([[number[p] for p in dag.parents(column)] for column in frame.columns])

    best, result = np.inf, None
    for _ in range(options.runs):
        start = process_time()
        result = mk.learn_structure(frame, method="ges", score=mk.scores.BDeu(1.0))
        best = min(best, process_time() - start)
    assert result is not None
    found = [_row("ges", judge, truth, result.cpdag, result.dag, best)]
    _line(found[-1])
    answer = _peer("causal-learn", frame, options)
    if isinstance(answer, str):
        print(f"{'causal-learn':24}{answer}", flush=True)
        return found
    dag = mk.graphs.DAG([tuple(e) for e in answer["edges"]], nodes=list(frame.columns))
    found.append(_row("causal-learn", judge, truth, mk.graphs.cpdag(dag), dag, answer["seconds"]))
    _line(found[-1])
    print(f"causal-learn takes {answer['seconds'] / best:.0f} times as long", flush=True)
    return found


def compare_gaussian(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of GES on Gaussian data."""
    rng = np.random.default_rng(0)
    n = 25
    weights = np.triu(rng.uniform(0.4, 1.0, (n, n)) * rng.choice([-1, 1], (n, n)), 1)
    weights *= rng.random((n, n)) < 4.0 / n
    noise = rng.normal(size=(1000, n))
    data = noise @ np.linalg.inv(np.eye(n) - weights)
    names = [f"v{i}" for i in range(n)]
    frame = _shuffled(pd.DataFrame(data, columns=names))
    edges = [(names[i], names[j]) for i in range(n) for j in range(n) if weights[i, j]]
    truth = mk.graphs.cpdag(mk.graphs.DAG(edges, nodes=names))
    judge = _judge(frame)
    best, result = np.inf, None
    for _ in range(options.runs):
        start = process_time()
        result = mk.learn_structure(frame, method="ges")
        best = min(best, process_time() - start)
    assert result is not None
    found = [_row("ges", judge, truth, result.cpdag, result.dag, best)]
    _line(found[-1])
    answer = _peer("causal-learn", frame, options)
    if isinstance(answer, str):
        print(f"{'causal-learn':24}{answer}", flush=True)
    else:
        dag = mk.graphs.DAG([tuple(e) for e in answer["edges"]], nodes=list(frame.columns))
        found.append(_row("causal-learn", judge, truth, mk.graphs.cpdag(dag), dag, answer["seconds"]))
        _line(found[-1])
    return found


def distance(a: mk.graphs.MixedGraph, b: mk.graphs.MixedGraph) -> int:
    """Return the number of pairs whose edge differs."""
    nodes = a.nodes
    return sum(set(a.marks(x, y)) != set(b.marks(x, y)) for k, x in enumerate(nodes) for y in nodes[:k])


def _row(
    label: str,
    judge: Callable[[mk.graphs.DAG], float],
    truth: mk.graphs.MixedGraph,
    graph: mk.graphs.MixedGraph,
    dag: mk.graphs.DAG,
    seconds: float,
) -> dict[str, Any]:
    return {"search": label, "bic": judge(dag), "shd": distance(truth, graph), "seconds": seconds}


def _line(row: dict[str, Any]) -> None:
    seconds = "" if row["seconds"] is None else f"{row['seconds']:10.3f}"
    if "all_threads" in row:
        seconds += f"{row['all_threads']:10.3f}"
    print(f"{row['search']:24}{row['bic']:14.1f}{row['shd']:6d}{seconds}", flush=True)


def _judge(frame: pd.DataFrame) -> Callable[[mk.graphs.DAG], float]:
    from markovia.data.tables.reading_mixed import read_mixed
    from markovia.structure.scores.scores import bind_score

    score = bind_score(None, read_mixed(frame))
    number = {name: k for k, name in enumerate(frame.columns)}

    def judged(dag: mk.graphs.DAG) -> float:
        return score.total([[number[p] for p in dag.parents(name)] for name in frame.columns])

    return judged


def _shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    order = np.random.default_rng(1).permutation(frame.columns)
    return frame[[str(c) for c in order]]


def _peer(peer: str, frame: pd.DataFrame, options: argparse.Namespace) -> Any:
    if find_spec(PEERS[peer]) is None:
        return "not installed"
    with tempfile.TemporaryDirectory() as scratch:
        task = Path(scratch) / "task"
        task.write_bytes(pickle.dumps(frame))
        given = ["--child", peer, "--task", str(task), "--runs", str(options.runs)]
        answer = in_child(["structure_classes.py", *given], options.limit)
    if "edges" not in answer:
        ended = answer.get("ended")
        return f"more than {options.limit:g} s" if ended == "time" else str(ended)
    return answer


def _run_child(options: argparse.Namespace) -> None:
    frame = pickle.loads(Path(options.task).read_bytes())
    search = {"pyAgrum": _pyagrum, "pgmpy": _pgmpy, "causal-learn": _causal_learn}[options.child]
    best, runs, spent = np.inf, 0, 0.0
    while runs < options.runs and (runs == 0 or spent < 20.0):
        start = process_time()
        edges = search(frame)
        seconds = process_time() - start
        best, spent, runs = min(best, seconds), spent + seconds, runs + 1
        report(["edges"], [list(e) for e in edges])
        report(["seconds"], best)


def _pyagrum(frame: pd.DataFrame) -> list[tuple[str, str]]:
    import pyagrum

    learner = pyagrum.BNLearner(frame)
    learner.setNumberOfThreads(1)
    learner.useScoreBIC()
    learner.useGreedyHillClimbing()
    names = list(learner.names())
    return [(names[a], names[b]) for a, b in learner.learnDAG().arcs()]


def _pgmpy(frame: pd.DataFrame) -> list[tuple[str, str]]:
    from pgmpy.estimators import HillClimbSearch

    return list(HillClimbSearch(frame).estimate(scoring_method="bic-d", show_progress=False).edges())


def _causal_learn(frame: pd.DataFrame) -> list[tuple[str, str]]:
    from causallearn.search.ScoreBased.GES import ges

    names = list(frame.columns)
    if all(frame[c].dtype.kind == "f" for c in names):
        found = ges(frame.to_numpy(), score_func="local_score_BIC")["G"].graph
    else:
        codes = frame.apply(lambda c: c.astype("category").cat.codes).to_numpy().astype(float)
        found = ges(codes, score_func="local_score_BDeu")["G"].graph
    n = len(names)
    edges: list[str] = []
    for i in range(n):
        for j in range(n):
            if found[i, j] == -1 and found[j, i] == 1:
                edges.append(f"{names[i]} --> {names[j]}")
            elif i < j and found[i, j] == found[j, i] == -1:
                edges.append(f"{names[i]} --- {names[j]}")
    return mk.graphs.extend(mk.graphs.MixedGraph(edges, nodes=names)).edges


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", default=NETWORKS, help="such as child or alarm:1000")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one peer")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="two small networks, pyAgrum alone")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.networks, options.peers = ["child:2000", "alarm:1000"], ["pyAgrum"]
    return options


if __name__ == "__main__":
    sys.exit(main())
