"""Most probable states of images: seconds, energies and gaps of the engines with a bound.

Run: python benchmarks/approximate_map.py [size]

A binary denoising problem of size x size pixels (512 by default) by one minimum cut, and a Potts segmentation of a
quarter of that side with five labels by moves and by message passing. The models are built before the clock starts;
so are their flat arrays, whose time is printed on its own. Kernels are loaded by a small problem first. Best of
three runs.
"""

import sys
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import markovia as mk
from markovia.inference.flat_graphs.flat_graph import FlatGraph, build_flat_graph, flat_graph
from markovia.inference.map_bounds.trw_s import PairSweeps
from markovia.inference.problem import Problem
from markovia.models.gallery.images import denoising_model, segmentation_model

RUNS = 3
LIMIT = 10.0


def main() -> None:
    warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    for engine in ("graph-cut", "trw-s", "alpha-expansion", "alpha-beta-swap", "dual-decomposition"):
        mk.generators.ising_grid(4, 4, coupling=0.3, field="random", seed=0).map(engine=engine)
    denoising(size)
    segmentation(max(size // 4, 4))


def denoising(size: int) -> None:
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:size, :size]
    clean = (np.hypot(y - size / 2, x - size / 2) < size / 3) ^ ((y // 16 + x // 16) % 5 == 0)
    noisy = clean ^ (rng.random(clean.shape) < 0.2)
    seconds, model = best_of(lambda: denoising_model(noisy.astype(int), coupling=0.5, noise=0.2), runs=1)
    print(f"denoising, {size} x {size} pixels, 2 labels")
    print(f"  the model                  {seconds:8.3f} s")
    problem = problem_of(model)
    seconds, _ = best_of(lambda: build_flat_graph(problem))
    print(f"  its flat arrays            {seconds:8.3f} s")
    graph = flat_graph(problem)
    report("graph-cut", problem)
    seconds = best_of(lambda: sweeps(graph), RUNS)[0]
    messages = 10 * 2 * graph.n_factors
    print(f"  trw-s messages, a million  {seconds / messages * 1e6:8.3f} s")
    report("trw-s", problem)


def segmentation(size: int) -> None:
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:size, :size]
    truth = (x * 3 // size + 2 * (np.hypot(y - size / 2, x - size / 2) < size / 4)) % 5
    image = truth / 4 + rng.normal(scale=0.3, size=truth.shape)
    model = segmentation_model(image, np.arange(5) / 4, 0.3, coupling=0.7)
    problem = problem_of(model)
    flat_graph(problem)
    print(f"segmentation, {size} x {size} pixels, 5 labels, at most {LIMIT:g} s each")
    for engine in ("alpha-expansion", "alpha-beta-swap", "trw-s", "dual-decomposition"):
        report(engine, problem)


def report(engine: str, problem: Problem) -> None:
    chosen = mk.engines.get_engine(engine, LIMIT)
    seconds, found = best_of(lambda: chosen.best(problem, problem.free, 1))
    value = found[0].log_weight
    gap = found.record.bound - value
    print(
        f"  {engine:26s} {seconds:8.3f} s   log weight {value:14.4f}   gap {gap:10.4g}   exact {found.record.exact}"
    )


def sweeps(graph: FlatGraph) -> None:
    state = PairSweeps(graph)
    for _ in range(10):
        state.there_and_back()


def problem_of(model: mk.MarkovNetwork) -> Problem:
    return Problem({n: model.variable(n) for n in model.variables}, model.pieces(), {}, {})


def best_of(task: Callable[[], Any], runs: int = RUNS) -> tuple[float, Any]:
    """Return the least seconds of some runs, and the last result."""
    times, result = [], None
    for _ in range(runs):
        start = perf_counter()
        result = task()
        times.append(perf_counter() - start)
    return min(times), result


if __name__ == "__main__":
    main()
