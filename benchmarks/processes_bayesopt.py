"""How low searches with few trials come, side by side with optuna's Gaussian process, in one run.

Run: python benchmarks/processes_bayesopt.py [--quick] [--seeds N] [--first SEED] [--calls N] [--noise-free]

Branin (two parameters) and Hartmann-6, all settings at their defaults, the two libraries in turn for each seed. Printed are
the median, the best and the worst regret (how far the lowest value is above the known minimum), how many searches ended
within 0.1 of it (for Hartmann-6: in the valley of the lowest minimum), and processor and wall seconds for each suggestion.
"""

import argparse
import logging
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

import markovia as mk

STEEPNESS = np.array([
    [10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14],
])  # fmt: skip
CENTRES = 1e-4 * np.array([
    [1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991], [2348, 1451, 3522, 2883, 3047, 6650],
    [4047, 8828, 8732, 5743, 1091, 381],
])  # fmt: skip
HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
Point = dict[str, float]


def branin(point: Point) -> float:
    x, y = point["x"], point["y"]
    valley = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return float(valley**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)


def hartmann(point: Point) -> float:
    x = np.array(list(point.values()))
    return -float(HEIGHTS @ np.exp(-(STEEPNESS * (x - CENTRES) ** 2).sum(axis=1)))


PROBLEMS: dict[str, tuple[Callable[[Point], float], dict[str, tuple[float, float]], float]] = {
    "Branin": (branin, {"x": (-5.0, 10.0), "y": (0.0, 15.0)}, 0.39788735772973816),
    "Hartmann-6": (hartmann, {f"x{i}": (0.0, 1.0) for i in range(6)}, -3.322368011415515),
}


def by_markovia(name: str, seed: int, calls: int, noise_free: bool) -> float:
    function, space, lowest = PROBLEMS[name]
    noise = 0.0 if noise_free else None
    return (
        mk.bayesopt.minimize(function, space, calls, noise=noise, seed=seed, progress=False).best_value
        - lowest
    )


def by_optuna(name: str, seed: int, calls: int, noise_free: bool) -> float:
    import optuna

    function, space, lowest = PROBLEMS[name]
    sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=noise_free)
    study = optuna.create_study(sampler=sampler)
    study.optimize(
        lambda trial: function({k: trial.suggest_float(k, *ends) for k, ends in space.items()}),
        n_trials=calls,
    )
    return float(study.best_value) - lowest


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument(
        "--noise-free", action="store_true", help="tell both libraries that values have no noise"
    )
    parser.add_argument("--quick", action="store_true", help="two seeds and half the calls")
    options = parser.parse_args(arguments)
    if options.quick:
        options.seeds, options.calls = min(options.seeds, 2), options.calls // 2
    warnings.simplefilter("ignore")
    peers: dict[str, Any] = {"markovia": by_markovia}
    try:
        import optuna
        import torch  # noqa: F401

        optuna.logging.set_verbosity(logging.ERROR)
        peers["optuna GP"] = by_optuna
    except ImportError:
        print("optuna, or the torch that its Gaussian process needs, is absent")
    titles = ("median", "best", "worst", "within .1", "cpu s each", "wall s each")
    print(f"{'regret after ' + str(options.calls):<24}" + "".join(f"{title:>13}" for title in titles))
    for name in PROBLEMS:
        found: dict[str, list[tuple[float, float, float]]] = {peer: [] for peer in peers}
        for seed in range(options.first, options.first + options.seeds):
            for peer, search in peers.items():
                cpu, wall = process_time(), perf_counter()
                regret = search(name, seed, options.calls, options.noise_free)
                found[peer].append((regret, process_time() - cpu, perf_counter() - wall))
        for peer, runs in found.items():
            regrets, cpus, walls = np.array(runs).T
            cells = [f"{x:.2g}" for x in (np.median(regrets), regrets.min(), regrets.max())]
            cells += [f"{(regrets < 0.1).sum()} of {len(regrets)}"]
            cells += [f"{seconds.sum() / options.calls / len(regrets):.3f}" for seconds in (cpus, walls)]
            print(f"{name + ', ' + peer:<24}" + "".join(f"{cell:>13}" for cell in cells), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
