"""The engines for marginals and log Z on one Ising grid: error against time.

The grid is small enough for the junction tree, so every error is a true one: 20 x 20 spins, couplings drawn uniformly
between -0.5 and 1 (frustrated here and there), fields between -0.2 and 0.2. Each engine runs with a ladder of settings
(iterations, draws, cluster sizes). Every run gets a model that was just made, after a warm-up that loads compiled code;
quick runs are repeated and the fastest counts. The error is the mean Hellinger distance of all marginals, and the signed
distance of the log partition function.

Run: python benchmarks/approximate_ising.py [--output FILE] [--only NAME ...]     (about four minutes)
"""

import argparse
import json
import math
import os
import platform
import warnings
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from approximate_uai import hellinger

import markovia as mk

DATA = Path(__file__).parents[1] / "docs" / "data" / "approximate_ising.json"
SIZE = 20
REPEATED, RUNS = 0.5, 5
"""A run is repeated until it adds up to so many seconds, at most so often."""


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


def ladders() -> dict[str, list[tuple[str, Any]]]:
    """Return every engine with settings from quick to thorough, each with the setting that changes."""
    e = mk.engines

    def ladder(setting: str, values: tuple[int, ...], make: Callable[[int], Any]) -> list[tuple[str, Any]]:
        return [(setting.format(v), make(v)) for v in values]

    blocks = "blocks"
    return {
        "loopy-bp": ladder(
            "max_iterations={}", (1, 2, 3, 5, 10, 30, 1000), lambda k: e.LoopyBP(max_iterations=k)
        ),
        "loopy-bp, residual": ladder(
            "max_iterations={}",
            (1, 3, 10, 30, 1000),
            lambda k: e.LoopyBP(schedule="residual", max_iterations=k),
        ),
        "generalized-bp, parent-to-child": ladder(
            "max_iterations={}",
            (3, 10, 30, 300),
            lambda k: e.GeneralizedBP(clusters=blocks, max_iterations=k),
        ),
        "generalized-bp, double-loop": ladder(
            "max_iterations={}",
            (1, 3, 10, 30, 100),
            lambda k: e.GeneralizedBP(clusters=blocks, variant="double-loop", max_iterations=k),
        ),
        "join-graph": ladder(
            "max_entries=2**{}", (2, 4, 8, 12, 16, 20), lambda k: e.JoinGraph(max_entries=2**k)
        ),
        "tree-reweighted": ladder("optimise={}", (0, 3, 10, 30), lambda k: e.TreeReweighted(optimise=k)),
        "mean-field": ladder("restarts={}", (1, 4, 16, 64), lambda k: e.MeanField(restarts=k)),
        "structured-mean-field": ladder(
            "max_iterations={}", (2, 10, 200), lambda k: e.StructuredMeanField(max_iterations=k)
        ),
        "structured-mean-field, blocks": ladder(
            "block={}", (2, 4, 6, 8), lambda k: e.StructuredMeanField(blocks, block=k)
        ),
        "gibbs": ladder("draws={}", (30, 300, 3_000, 30_000), lambda n: e.Gibbs(draws=n, seed=0)),
        "gibbs, trees": ladder(
            "draws={}", (30, 300, 3_000, 10_000), lambda n: e.Gibbs(draws=n, blocks="trees", seed=0)
        ),
        "metropolis": ladder(
            "draws={}", (30, 300, 3_000, 10_000), lambda n: e.MetropolisHastings(draws=n, seed=0)
        ),
        "parallel-tempering": ladder(
            "draws={}", (30, 300, 3_000), lambda n: e.ParallelTempering(draws=n, seed=0)
        ),
        "annealed-importance": ladder(
            "particles={}", (10, 100, 500), lambda n: e.AnnealedImportance(particles=n, seed=0)
        ),
        "importance": ladder(
            "draws={}", (1_000, 10_000, 100_000), lambda n: e.ImportanceSampling(draws=n, seed=0)
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=DATA)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these ladders; the others are kept")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    mk.engines.load_kernels()
    old = json.loads(options.output.read_text()) if options.only and options.output.exists() else {}
    seconds, exact = fastest(lambda model: model.marginals(engine="junction-tree"))
    log_seconds, log_z = fastest(lambda model: model.log_partition(engine="junction-tree"))
    found: dict[str, Any] = {
        "made": {
            "date": date.today().isoformat(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        | {name: version(name) for name in ("numpy", "numba")},
        "size": SIZE,
        "junction-tree": old.get("junction-tree", {"marginals": seconds, "log_z": log_seconds}),
        "marginals": old.get("marginals", {}),
        "log_z": old.get("log_z", {}),
        "bounds": old.get("bounds"),
    }
    print(f"junction-tree: {seconds:.3f} s, log Z {log_z:.6f} in {log_seconds:.3f} s")
    for name, engines in ladders().items():
        if options.only and name not in options.only:
            continue
        ask(the_grid(), engines[0][1])  # compiled code is loaded here
        found["marginals"][name], found["log_z"][name] = [], []
        for setting, engine in engines:
            seconds, answer = fastest(lambda model, e=engine: ask(model, e))
            error = float(np.mean([hellinger(p.values, exact[n].values) for n, p in answer.items()]))
            info = next(iter(answer.values())).info
            row = {
                "setting": setting,
                "seconds": seconds,
                "error": error,
                "converged": bool(info.converged),
            }
            found["marginals"][name].append(row)
            said = f"{name:32} {setting:26} {seconds:8.4f} s   error {error:.5f}"
            if "log_mass" in engine.answers:
                log_seconds, value = fastest(lambda model, e=engine: model.log_partition(engine=e))
                off = value - log_z if math.isfinite(value) else None
                side = info.mass_bound
                found["log_z"][name].append(
                    {"setting": setting, "seconds": log_seconds, "off": off, "bound": side}
                )
                said += f"   log Z {off if off is None else f'{off:+.4f}'} in {log_seconds:.4f} s"
            print(said + ("" if info.converged else "   not converged"), flush=True)
        if not found["log_z"][name]:
            del found["log_z"][name]
    if not options.only:
        seconds, bounds = fastest(lambda model: model.log_partition(bounds=True))
        found["bounds"] = {"seconds": seconds, "lower": bounds.lower - log_z, "upper": bounds.upper - log_z}
        print(f"bounds: {bounds.lower - log_z:+.3f} ... {bounds.upper - log_z:+.3f} around log Z")
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(found, indent=1) + "\n")


def ask(model: Any, engine: Any) -> Any:
    """Return all marginals."""
    return model.marginals(engine=engine)


def fastest(task: Callable[[Any], Any]) -> tuple[float, Any]:
    """Return the shortest time of a task on a model that was just made, and its answer."""
    seconds: list[float] = []
    answer = None
    while not seconds or (sum(seconds) < REPEATED and len(seconds) < RUNS):
        model = the_grid()
        start = perf_counter()
        answer = task(model)
        seconds.append(perf_counter() - start)
    return round(min(seconds), 6), answer


if __name__ == "__main__":
    main()
