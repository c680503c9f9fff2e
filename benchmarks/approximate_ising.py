"""All approximate engines on one Ising grid: error against time.

The grid is small enough for the junction tree, so every error is a true one: 20 x 20 spins, couplings drawn uniformly
between -0.5 and 1 (frustrated here and there), fields between -0.2 and 0.2. Each engine runs with a ladder of settings
(iterations, draws, cluster sizes), every run in the same process after a warm-up; the error is the mean Hellinger distance
of all marginals. For the log partition function the error is absolute.

Run: python benchmarks/approximate_ising.py [--output FILE]     (about two minutes)
"""

import argparse
import json
import math
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from approximate_uai import hellinger

import markovia as mk

DATA = Path(__file__).parents[1] / "docs" / "data" / "approximate_ising.json"
SIZE = 20


def the_grid() -> Any:
    """Return the model that everybody runs on."""
    rng = np.random.default_rng(7)
    across, down = rng.uniform(-0.5, 1.0, (SIZE, SIZE - 1)), rng.uniform(-0.5, 1.0, (SIZE - 1, SIZE))
    edges = {
        (f"x{i}_{j}", f"x{i}_{j + 1}"): float(across[i, j]) for i in range(SIZE) for j in range(SIZE - 1)
    }
    edges |= {(f"x{i}_{j}", f"x{i + 1}_{j}"): float(down[i, j]) for i in range(SIZE - 1) for j in range(SIZE)}
    field = {f"x{i}_{j}": float(rng.uniform(-0.2, 0.2)) for i in range(SIZE) for j in range(SIZE)}
    return mk.MarkovNetwork.ising(edges, field)


def ladders() -> dict[str, list[Any]]:
    """Return every engine with settings from quick to thorough."""
    e = mk.engines
    return {
        "loopy-bp": [e.LoopyBP(max_iterations=k) for k in (1, 3, 10, 30, 100, 1000)],
        "loopy-bp, residual": [
            e.LoopyBP(schedule="residual", max_iterations=k) for k in (3, 10, 30, 100, 1000)
        ],
        "generalized-bp, 2x2 blocks": [
            e.GeneralizedBP(clusters="blocks", max_iterations=k) for k in (3, 10, 30, 300)
        ],
        "join-graph": [e.JoinGraph(max_entries=2**k) for k in (4, 8, 12, 16, 20)],
        "tree-reweighted": [e.TreeReweighted(max_iterations=k) for k in (3, 10, 100, 1000)],
        "mean-field": [e.MeanField(restarts=k, max_iterations=300) for k in (1, 4, 16)],
        "structured-mean-field": [e.StructuredMeanField(max_iterations=k) for k in (2, 10, 100)],
        "gibbs": [e.Gibbs(draws=n, seed=0) for n in (30, 300, 3_000, 30_000)],
        "gibbs, tree blocks": [e.Gibbs(draws=n, blocks="trees", seed=0) for n in (30, 300, 3_000)],
        "metropolis": [e.MetropolisHastings(draws=n, seed=0) for n in (30, 300, 3_000, 30_000)],
        "parallel-tempering": [e.ParallelTempering(draws=n, seed=0) for n in (30, 300, 3_000)],
        "annealed-importance": [e.AnnealedImportance(particles=n, seed=0) for n in (100, 1_000, 5_000)],
        "importance": [e.ImportanceSampling(draws=n, seed=0) for n in (1_000, 10_000, 100_000)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=DATA)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    model = the_grid()
    mk.engines.load_kernels()
    start = perf_counter()
    exact = model.marginals(engine="junction-tree")
    seconds = perf_counter() - start
    log_z = model.log_partition(engine="junction-tree")
    found: dict[str, Any] = {
        "size": SIZE,
        "junction-tree": {"seconds": seconds},
        "marginals": {},
        "log_z": {},
    }
    print(f"junction-tree: {seconds:.3f} s, log Z {log_z:.6f}")
    for name, engines in ladders().items():
        model.marginals(engine=engines[0])  # compiled kernels are loaded here
        for engine in engines:
            start = perf_counter()
            answer = model.marginals(engine=engine)
            seconds = perf_counter() - start
            error = float(np.mean([hellinger(answer[n].values, exact[n].values) for n in model.variables]))
            info = next(iter(answer.values())).info
            found["marginals"].setdefault(name, []).append([seconds, error, bool(info.converged)])
            print(
                f"{name:28} {seconds:9.4f} s   error {error:.5f}   {'' if info.converged else 'not converged'}",
                flush=True,
            )
            if "log_mass" in engine.answers:
                off = engine.log_mass(model._problem(None)) - log_z
                found["log_z"].setdefault(name, []).append([seconds, off if math.isfinite(off) else None])
    bounds = model.log_partition(bounds=True)
    found["bounds"] = [bounds.lower - log_z, bounds.upper - log_z]
    print(f"bounds: {bounds.lower - log_z:+.3f} ... {bounds.upper - log_z:+.3f} around log Z")
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
