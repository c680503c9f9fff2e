"""Loopy belief propagation here, by PGMax (JAX) and by pyAgrum: time and distance of the fixed points.

- A Potts grid of 4 states, 50 rounds of flooding from uniform messages, against PGMax at temperature 1. PGMax is
  compiled before the clock runs, and runs for the same number of rounds without damping, in single precision (its
  default) and in double precision. The Python that `--pgmax-python` names runs it, so that it may live elsewhere.
- Networks of the Bayesian Network Repository with all leaves observed, against pyAgrum's LoopyBeliefPropagation. Processor
  times, from evidence to the objects of all marginals; "cold" is for a model never asked before.

A peer that is not installed is skipped with a message.

Run: python benchmarks/approximate_bp.py [--quick] [--pgmax-python PATH] [--side N] [--only grid|networks]
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

ROUNDS = 50
STATES = 4
NETWORKS = [
    "asia",
    "cancer",
    "earthquake",
    "survey",
    "sachs",
    "child",
    "alarm",
    "insurance",
    "water",
    "mildew",
    "barley",
    "hailfinder",
    "hepar2",
    "win95pts",
    "pathfinder",
    "munin1",
    "andes",
    "diabetes",
    "pigs",
    "link",
    "munin",
]
QUICK = ("asia", "child", "alarm", "insurance", "win95pts", "andes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smaller grid and fewer networks")
    parser.add_argument("--pgmax-python", default=sys.executable, help="a Python that has pgmax")
    parser.add_argument("--side", type=int, help="rows and columns of the grid; 512 by default")
    parser.add_argument("--only", choices=["grid", "networks"])
    parser.add_argument("--pgmax-child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pgmax_child:
        pgmax_child(Path(options.pgmax_child))
        return
    if options.only != "networks":
        grid(options.side or (64 if options.quick else 512), options.pgmax_python)
    if options.only != "grid":
        networks(QUICK if options.quick else NETWORKS)


# -- the grid ------------------------------------------------------------------------------------------------------


def grid(side: int, python: str) -> None:
    """Measure a Potts grid."""
    import markovia as mk

    print(f"Potts grid {side} x {side}, {STATES} states, {ROUNDS} rounds of flooding")
    rng = np.random.default_rng(0)
    field = rng.uniform(-1, 1, size=(side, side, STATES))
    coupling = 0.4
    start = perf_counter()
    model = mk.generators.potts_grid(side, side, STATES, coupling, field)
    print(f"  building the model      {perf_counter() - start:8.3f} s")
    problem = model._problem(None)
    mk.generators.potts_grid(3, 3, STATES).query("x0_0", engine="loopy-bp")  # loads the compiled code
    from markovia.inference.message_passing.message_graph import message_graph
    from markovia.inference.message_passing.schedules import SUM, ScheduleSettings, propagate

    start = perf_counter()
    graph = message_graph(problem, absorb=True)
    print(f"  flat arrays             {perf_counter() - start:8.3f} s")
    settings = ScheduleSettings("flooding", 0.0, 1e-300, ROUNDS, None, "uniform", None)
    seconds, cpu = _wall_and_cpu(lambda: propagate(graph, SUM, settings))
    print(f"  markovia                {seconds:8.3f} s ({cpu:.3f} s of processors)", flush=True)
    engine = mk.engines.LoopyBP(schedule="flooding", max_iterations=ROUNDS, tolerance=1e-300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = model.marginals(engine=engine)
    own = np.stack([answer[n].values for n in model.variables]).reshape(side, side, STATES)
    for double in (False, True):
        peer = run_pgmax(field, coupling, python, double)
        if peer is None:
            return
        theirs, their_seconds, their_cpu = peer
        bits = "64 bits" if double else "32 bits"
        print(
            f"  PGMax, {bits}          {their_seconds:8.3f} s ({their_cpu:.3f} s of processors): "
            f"{their_seconds / seconds:.1f} times as long ({their_cpu / cpu:.1f}), "
            f"largest difference of a marginal {np.abs(own - theirs).max():.2g}"
        )


def run_pgmax(
    field: np.ndarray, coupling: float, python: str, double: bool
) -> tuple[np.ndarray, float, float] | None:
    """Run PGMax in a process of its own; None if it is not installed there."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "grid.npz"
        np.savez(file, field=field, coupling=coupling, double=double)
        done = subprocess.run(
            [python, __file__, "--pgmax-child", str(file)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["?"])[-1]
            missing = "No module named" in last
            why = "not installed (pip install pgmax jax; --pgmax-python PATH)" if missing else last
            print(f"  PGMax                    skipped: {why}")
            return None
        found = np.load(Path(folder) / "found.npz")
        return found["marginals"], float(found["seconds"]), float(found["cpu"])


def pgmax_child(file: Path) -> None:
    """Run PGMax on a grid and save marginals and seconds beside it."""
    import jax

    given = np.load(file)
    jax.config.update("jax_enable_x64", bool(given["double"]))
    if not hasattr(jax.lib, "xla_bridge"):  # PGMax asks for the backend under the name it had in older JAX
        from types import SimpleNamespace

        from jax.extend.backend import get_backend

        jax.lib.xla_bridge = SimpleNamespace(get_backend=get_backend)
    from pgmax import fgraph, fgroup, infer, vgroup

    field, coupling = given["field"], float(given["coupling"])
    side, _, states = field.shape
    variables = vgroup.NDVarArray(num_states=states, shape=(side, side))
    graph = fgraph.FactorGraph(variable_groups=variables)
    pairs = [[variables[i, j], variables[i, j + 1]] for i in range(side) for j in range(side - 1)]
    pairs += [[variables[i, j], variables[i + 1, j]] for i in range(side - 1) for j in range(side)]
    graph.add_factors(
        fgroup.PairwiseFactorGroup(
            variables_for_factors=pairs, log_potential_matrix=coupling * np.eye(states)
        )
    )
    build = getattr(infer, "build_inferer", None)
    bp = build(graph.bp_state, backend="bp") if build else infer.BP(graph.bp_state, temperature=1.0)
    extra = {"temperature": 1.0} if build else {}
    arrays = bp.init(evidence_updates={variables: field})

    def run() -> Any:
        done = bp.run(arrays, num_iters=ROUNDS, damping=0.0, **extra)
        return jax.block_until_ready(done)

    run()
    seconds, cpu = _wall_and_cpu(run)
    beliefs = bp.get_beliefs(run())
    marginals = np.asarray(infer.get_marginals(beliefs)[variables])
    np.savez(file.with_name("found.npz"), marginals=marginals, seconds=seconds, cpu=cpu)


# -- networks ------------------------------------------------------------------------------------------------------


def networks(names: tuple[str, ...] | list[str]) -> None:
    """Measure networks with all leaves observed."""
    import markovia as mk

    try:
        import pyagrum
    except ImportError:
        pyagrum = None
        print("pyAgrum is not installed (pip install pyagrum); only own times are shown")
    from stopwatch import benchmark_folder

    folder = benchmark_folder() / "bif"
    if not folder.exists():
        print(f"there are no networks in {folder}; set MARKOVIA_BENCHMARKS")
        return
    mk.examples.sprinkler().query("wet", engine="loopy-bp")
    print("network        markovia       cold    pyAgrum  times  difference  rounds")
    for name in names:
        file = folder / f"{name}.bif.gz"
        if not file.exists():
            continue
        model = mk.load(file)
        row = model.sample(1, seed=0).iloc[0]
        given = {n: row[n] for n in model.variables if not model.children(n)}
        free = [n for n in model.variables if n not in given]
        engine = mk.engines.LoopyBP(schedule="residual", tolerance=1e-9, absorb=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cold = min(_cold(model, given, engine) for _ in range(4))
            other = {**given, next(iter(given)): [1.0] * len(model.states(next(iter(given))))}
            seconds = min(_warm(model, given, other, engine) for _ in range(5))
            answer = model.marginals(given=given, engine=engine)
        rounds = answer[free[0]].info.iterations if answer[free[0]].info.converged else "not converged"
        line = f"{name:12s} {seconds * 1e3:7.2f} ms {cold * 1e3:7.2f} ms"
        if pyagrum is None:
            print(f"{line} {'':25s} {rounds}")
            continue
        network = mk.io.to_pyagrum(model)
        evidence = {n: model.states(n).index(s) for n, s in given.items()}
        theirs, posteriors = pyagrum_times(pyagrum, network, evidence, free)
        off = max(np.abs(answer[n].values - p).max() for n, p in zip(free, posteriors, strict=True))
        print(f"{line} {theirs * 1e3:7.1f} ms {theirs / seconds:6.1f} {off:11.2g}  {rounds}", flush=True)


def pyagrum_times(pyagrum: Any, network: Any, evidence: dict[str, int], free: list[str]) -> tuple[float, Any]:
    """Return the best time of pyAgrum at the same tolerance, and its marginals at a tighter one."""

    def run(epsilon: float) -> list[Any]:
        inference = pyagrum.LoopyBeliefPropagation(network)
        inference.setEpsilon(epsilon)
        inference.setMinEpsilonRate(epsilon)
        inference.setMaxIter(1000)
        inference.setEvidence(evidence)
        inference.makeInference()
        return [inference.posterior(n) for n in free]

    seconds = _timed(lambda: run(1e-9))
    for _ in range(3 if seconds < 2 else 0):
        seconds = min(seconds, _timed(lambda: run(1e-9)))
    return seconds, [p.toarray() for p in run(1e-14)]


def _cold(model: Any, given: Any, engine: Any) -> float:
    """Time a question on a model that has not been asked anything."""
    fresh = model.copy()
    return _timed(lambda: fresh.marginals(given=given, engine=engine))


def _warm(model: Any, given: Any, other: Any, engine: Any) -> float:
    """Time a question on a model that has answered another one before."""
    model.marginals(given=other, engine=engine)
    return _timed(lambda: model.marginals(given=given, engine=engine))


def _wall_and_cpu(task: Any) -> tuple[float, float]:
    """Return the least wall-clock time and the least processor time of three runs."""
    walls, cpus = [], []
    for _ in range(3):
        wall, cpu = perf_counter(), process_time()
        task()
        walls.append(perf_counter() - wall)
        cpus.append(process_time() - cpu)
    return min(walls), min(cpus)


def _timed(task: Any) -> float:
    """Return the processor time of a task: both sides run in one thread, and other processes do not disturb it."""
    start = process_time()
    task()
    return process_time() - start


if __name__ == "__main__":
    main()
