"""How long EM takes on rows with missing cells and with a hidden variable, side by side with pyAgrum and pgmpy.

Run: python benchmarks/learning_em.py [--rows N] [--missing SHARE] [--network NAME] [--limit SECONDS] [--quick]

Task 1: N rows are drawn from the network and a share of the cells is blanked completely at random; every library fits the
tables to a relative change of the log likelihood of 1e-6, from the DataFrame. Task 2: a hidden class with ten observed
children; markovia and pgmpy. What each library found is judged by one function, the log likelihood of the observed cells
under its tables (`bn.log_prob(frame).sum()`); tables with zeros may find a row impossible, and the number of such rows is
shown. Each peer runs in a process of its own that ends at the limit; pyAgrum is asked to stop after half of it, and its
tables of that moment are judged. Where pyAgrum refuses tables with rows that it never saw, it gets a tiny smoothing
prior. Seconds of markovia are medians of at least five runs, compiled beforehand.

The networks are looked for in MARKOVIA_BENCHMARKS/bif, else in ../shared/benchmarks/bif.
"""

import argparse
import logging
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

import markovia as mk


def main() -> int:
    options = _arguments()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    if options.peer:
        task = pickle.loads(Path(options.task).read_bytes())
        {"pyAgrum": _pyagrum, "pgmpy": _pgmpy}[options.peer](*task, options.limit)
        return 0
    file = benchmark_folder() / "bif" / f"{options.network}.bif.gz"
    if file.exists():
        model = mk.load(file)
        frame = model.sample(options.rows, seed=1).astype(object)
        frame = frame.mask(np.random.default_rng(0).random(frame.shape) < options.missing)
        whole = len(frame.dropna())
        print(
            f"{options.network}, {len(frame):,} rows, {options.missing:.0%} missing, {whole:,} rows complete"
        )
        _compare(model, frame, {}, {"pyAgrum", "pgmpy"}, options.limit)
    else:
        print(f"no network {file}; set MARKOVIA_BENCHMARKS to the folder that holds bif/.")
    model = _hidden_class()
    frame = model.sample(options.rows, seed=1).drop(columns="z").astype(object)
    print(f"\na hidden class of 3 states with 10 children, {len(frame):,} rows")
    _compare(model, frame, {"z": 3}, {"pgmpy"}, min(options.limit, 60.0))
    return 0


def _compare(
    model: mk.BayesianNetwork, frame: pd.DataFrame, latent: dict[str, int], peers: set[str], limit: float
) -> None:
    print(f"{'':24}{'seconds':>10}{'iterations':>12}{'log likelihood':>18}  remarks")
    model.copy().fit(frame[:200], latent=latent)  # compiles the kernels, once an installation
    for name, em in {
        "markovia": mk.EM(seed=0),
        "markovia, plain steps": mk.EM(seed=0, accelerate=False),
        "markovia, to 1e-8": mk.EM(seed=0, tolerance=1e-8),
    }.items():
        timed = median_time(lambda bn, em=em: bn.fit(frame, missing=em, latent=latent), model.copy)
        fit = timed.result.fit_
        judged, _ = _judged(timed.result, frame)
        _line(name, timed.record["seconds"], fit.iterations, judged, "")
    with tempfile.TemporaryDirectory() as scratch:
        task = Path(scratch) / "task"
        task.write_bytes(pickle.dumps((model, frame, latent)))
        for peer in sorted(peers, reverse=True):
            if find_spec(peer.casefold()) is None:
                print(f"{peer:24}not installed")
                continue
            arguments = ["learning_em.py", "--peer", peer, "--task", str(task), "--limit", str(limit)]
            found = in_child(arguments, limit + 30.0)
            ended = found.get("ended", "")
            judged = found.get("log likelihood", np.nan)
            remarks = f"{found.get('remarks', '')} {f'ended: {ended}' if ended else ''}".strip()
            _line(peer, found.get("seconds", np.nan), found.get("iterations", 0), judged, remarks)


def _line(name: str, seconds: float, iterations: int, log_likelihood: float, remarks: str) -> None:
    print(f"{name:24}{seconds:10.3f}{iterations or '':>12}{log_likelihood:18.3f}  {remarks}", flush=True)


def _judged(model: mk.BayesianNetwork, frame: pd.DataFrame) -> tuple[float, int]:
    """Return the log likelihood of the rows that are possible, and how many are not."""
    logs = model.log_prob(frame)
    return float(logs[np.isfinite(logs)].sum()), int((~np.isfinite(logs)).sum())


def _report(
    model: mk.BayesianNetwork, frame: pd.DataFrame, seconds: float, iterations: int, remarks: str
) -> None:
    report(["seconds"], seconds)
    report(["iterations"], iterations)
    log_likelihood, impossible = _judged(model, frame)
    report(["log likelihood"], -np.inf if impossible else log_likelihood)
    if impossible:
        remarks += f", {impossible:,} rows have probability zero; the others {log_likelihood:.3f}"
    report(["remarks"], remarks)


def _pyagrum(model: mk.BayesianNetwork, frame: pd.DataFrame, latent: Any, limit: float) -> None:
    import pyagrum as gum

    template = mk.io.to_pyagrum(model)
    strings = frame.astype(object).where(frame.notna(), "?").astype(str)
    remarks = "maximum likelihood"
    for weight in (0.0, 1e-6):
        start = perf_counter()
        learner = gum.BNLearner(strings, template, ["?"])
        if weight:
            learner.useSmoothingPrior(weight)
            remarks = f"refuses without a prior; smoothing {weight:g}"
        learner.useEM(1e-6)
        learner.EMsetMaxTime(500.0 * limit)  # milliseconds; it is looked at between iterations only
        try:
            learned = learner.learnParameters(template.dag())
            break
        except gum.DatabaseError:
            if weight:
                raise
    seconds = perf_counter() - start
    remarks += f", {learner.EMStateMessage()}"
    _report(mk.io.from_pyagrum(learned), frame, seconds, learner.EMnbrIterations(), remarks)


def _pgmpy(model: mk.BayesianNetwork, frame: pd.DataFrame, latent: dict[str, int], limit: float) -> None:
    from pgmpy.estimators import ExpectationMaximization
    from pgmpy.models import DiscreteBayesianNetwork

    template = mk.io.to_pgmpy(model)
    graph = DiscreteBayesianNetwork(template.edges(), latents=set(latent))
    names = {n: model.states(n) for n in model.variables}
    start = perf_counter()
    estimator = ExpectationMaximization(graph, frame, state_names=names)
    tables = estimator.get_parameters(latent_card=latent or None, show_progress=False, seed=0)
    seconds = perf_counter() - start
    graph.add_cpds(*tables)
    used = len(estimator.data)
    _report(mk.io.from_pgmpy(graph), frame, seconds, 0, f"uses {used:,} of {len(frame):,} rows")


def _hidden_class() -> mk.BayesianNetwork:
    rng = np.random.default_rng(4)
    bn = mk.BayesianNetwork()
    bn.add("z", states=3, p=[0.2, 0.3, 0.5])
    for i in range(10):
        bn.add(f"x{i}", states=3, parents=["z"], p=rng.dirichlet(np.full(3, 0.7), size=3))
    return bn


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--missing", type=float, default=0.1)
    parser.add_argument("--network", default="alarm")
    parser.add_argument("--limit", type=float, default=150.0)
    parser.add_argument("--quick", action="store_true", help="500 rows, peers for at most 20 seconds")
    parser.add_argument("--peer", choices=["pyAgrum", "pgmpy"], help=argparse.SUPPRESS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.rows, options.limit = min(options.rows, 500), min(options.limit, 20.0)
    return options


if __name__ == "__main__":
    sys.exit(main())
