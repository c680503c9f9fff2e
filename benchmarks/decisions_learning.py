"""Whether learning by trial solves CartPole and Pendulum by its defaults, and how long that takes.

Run: python benchmarks/decisions_learning.py [--quick] [--seeds N] [--first SEED]

Each seed learns with `mk.control.learn(name)`, nothing else said, and is then judged by 100 episodes that it has not seen:
CartPole-v1 is solved at a mean return of 475, Pendulum-v1 at -200. Printed are the mean returns, how many seeds solved it,
the steps in the world, after how many of them the mean return of the last hundred episodes of the learner itself reached the
threshold ("-" for never: it goes on trying), and wall and processor seconds, compiling included. For comparison the
published settings of stable-baselines3's zoo: PPO for CartPole-v1 with 100,000 steps, SAC for Pendulum-v1 with 20,000.
"""

import argparse
import warnings
from time import perf_counter, process_time

import numpy as np

import markovia as mk

TASKS = {"CartPole-v1": (475.0, "PPO, 100,000"), "Pendulum-v1": (-200.0, "SAC, 20,000")}
"""The mean return that solves a task, and the published settings."""


def first_reached(history: mk.control.TrialHistory, threshold: float) -> int | None:
    """Return after how many steps the mean of the last hundred episodes reached the threshold."""
    returns = np.array(history.episode_returns)
    if len(returns) < 100:
        return None
    means = np.convolve(returns, np.ones(100) / 100, mode="valid")
    reached = np.flatnonzero(means >= threshold)
    return history.episode_ends[int(reached[0]) + 99] if len(reached) else None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="one seed")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    seeds = range(options.first, options.first + (1 if options.quick else options.seeds))
    failed = 0
    for name, (threshold, published) in TASKS.items():
        print(f"{name}: solved at {threshold:g}; published settings: {published} steps", flush=True)
        print(
            f"{'seed':>6}{'return':>10}{'interval':>20}{'steps':>10}{'reached at':>12}{'wall s':>9}{'cpu s':>9}"
        )
        solved = 0
        for seed in seeds:
            wall, cpu = perf_counter(), process_time()
            policy = mk.control.learn(name, seed=seed, progress=False)
            wall, cpu = perf_counter() - wall, process_time() - cpu
            found = policy.evaluate(name, episodes=100, seed=1000 + seed)
            solved += found.mean >= threshold
            low, high = found.interval
            reached = first_reached(policy.history, threshold)
            print(
                f"{seed:>6}{found.mean:>10.1f}{f'{low:.1f} to {high:.1f}':>20}{policy.info.iterations:>10,}"
                f"{'-' if reached is None else f'{reached:,}':>12}{wall:>9.1f}{cpu:>9.1f}",
                flush=True,
            )
        print(f"solved by {solved} of {len(seeds)}", flush=True)
        failed += solved < len(seeds)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
