"""How long Markov decision processes take, side by side with pymdptoolbox where it is installed.

Run: python benchmarks/decisions_mdp.py [--quick] [--runs N]

- `grid 100 x 100`: moves go astray with probability 0.1, each costs 1, the last corner is home; discount 0.99, to a gap
  of 1e-8;
- `grid 30 x 30`: the same beside the peer, whose setting up checks a sparse table entry by entry (three minutes for the
  larger grid), and whose value iteration has epsilon = 1e-8;
- `soft`: the same at temperature 0.1, ours alone;
- `grid 1000 x 1000`: a million states, ours alone;
- `random`: 2,000 states, 10 actions, 20 successors each; value iteration, policy iteration and the linear program;
- `factored`: 16 machines in a row, one repaired a step: 65,536 joint states and 17 actions by backward messages.

Wall seconds are the least of the runs.
"""

import argparse
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

import markovia as mk


def main(quick: bool = False, runs: int = 3) -> int:
    """Print the table."""
    print(f"{'':<34}{'seconds':>10}   what was found")
    mk.MDP([[[1.0]]], [0.0]).decide(discount=0.5)  # load everything
    tables, rewards, home = grid(100)
    taken, m = least(1, lambda: mk.MDP(tables, rewards, terminal=home, initial=0))
    line("grid 100 x 100, set up", taken)
    m.decide(discount=0.99)  # compile
    m.decide(discount=0.99, temperature=0.1)
    for name, options in (
        ("value iteration", {}),
        ("modified policy iteration", {"method": "modified policy iteration"}),
    ):
        taken, plan = least(runs, lambda options=options: m.decide(discount=0.99, **options))
        line(f"  {name}", taken, f"V[0] {plan.v[0]:.9f}, gap {plan.gap:.1e}, {plan.info.details}")
    taken, plan = least(runs, lambda: m.decide(discount=0.99, temperature=0.1))
    line("  soft, temperature 0.1", taken, f"V[0] {plan.v[0]:.9f}, gap {plan.gap:.1e}")
    peer(runs, *grid(30)[:2])
    if not quick:
        large()
    random_process(runs, 500 if quick else 2000)
    machines(10 if quick else 16)
    return 0


def large() -> None:
    """Plan for a million states."""
    tables, rewards, home = grid(1000)
    taken, m = least(1, lambda: mk.MDP(tables, rewards, terminal=home, initial=0))
    line("grid 1000 x 1000, set up", taken)
    taken, plan = least(1, lambda: m.decide(discount=0.99))
    line("  value iteration", taken, f"V[-2] {plan.v[-2]:.9f}, gap {plan.gap:.1e}, {plan.info.details}")


def peer(runs: int, tables: list[Any], rewards: Any) -> None:
    """Plan for a small grid by both, home being a state without cost."""
    size = len(rewards)
    stay = sparse.csr_array(([1.0], ([size - 1], [size - 1])), shape=(size, size))
    kept = sparse.diags_array(np.r_[np.ones(size - 1), 0.0])
    closed = [sparse.csr_matrix(kept @ t + stay) for t in tables]
    costs = np.repeat(np.r_[rewards[:-1], 0.0][:, None], 4, axis=1)
    taken, m = least(1, lambda: mk.MDP(closed, costs))
    line("grid 30 x 30, set up", taken)
    taken, plan = least(runs, lambda: m.decide(discount=0.99, method="value iteration"))
    line("  value iteration", taken, f"V[0] {plan.v[0]:.9f}, gap {plan.gap:.1e}")
    try:
        from mdptoolbox import mdp
    except ImportError:
        print("  pymdptoolbox is not installed")
        return
    taken, theirs = least(1, lambda: mdp.ValueIteration(closed, costs, 0.99, epsilon=1e-8, max_iter=100_000))
    line("  pymdptoolbox, set up", taken)
    taken, _ = least(1, theirs.run)
    line("  pymdptoolbox, value iteration", taken, f"V[0] {theirs.V[0]:.9f}")


def random_process(runs: int, n: int) -> None:
    """Plan for a process without structure, by three methods."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(10 * n), 20)
    weights = rng.exponential(size=len(rows))
    table = sparse.csr_array((weights, (rows, rng.integers(0, n, len(rows)))), shape=(10 * n, n))
    table = sparse.diags_array(1.0 / table.sum(axis=1)) @ table
    m = mk.MDP(table, rng.normal(size=(n, 10)))
    for method in ("value iteration", "policy iteration", "linear program"):
        taken, plan = least(
            1 if method == "linear program" else runs,
            lambda method=method: m.decide(discount=0.99, method=method),
        )
        line(f"random, {n:,} states, {method}", taken, f"value {plan.value:.9f}, gap {plan.gap:.1e}")


def machines(n: int) -> None:
    """Plan for a row of machines, each worn by its neighbour."""
    p = mk.DynamicBayesianNetwork()
    names = [f"m{i}" for i in range(n)]
    for i, name in enumerate(names):
        near = [f"{names[i - 1]}@-1"] if i else []
        table = np.zeros((*(2,) * (1 + len(near)), n + 1, 2))
        for at in np.ndindex(*table.shape[:-1]):
            worn = 0.0 if at[-1] == i else 1.0 if at[0] else 0.1 + 0.2 * (len(near) and at[1])
            table[at] = [1 - worn, worn]
        p.add(name, table, states=2, parents=[f"{name}@-1", *near, "fix@-1"], initial=[1.0, 0.0])
    p.add("fix", mk.Decision(n + 1), parents=names)
    for name in names:
        p.add(f"up {name}", mk.Utility([1.0, 0.0]), parents=[name])
    taken, plan = least(1, lambda: p.decide(discount=0.9, tolerance=1e-4))
    line(f"factored, {n} machines", taken, f"value {plan.value:.6f}, gap {plan.gap:.1e}, {plan.process}")


def grid(side: int, slip: float = 0.1) -> tuple[list[Any], Any, Any]:
    """Return the moves, rewards and end of a square of cells."""
    size = side * side
    row, column = np.divmod(np.arange(size), side)
    ends = [
        np.clip(row + up, 0, side - 1) * side + np.clip(column + right, 0, side - 1)
        for up, right in ((-1, 0), (1, 0), (0, -1), (0, 1))
    ]
    tables = []
    for a in range(4):
        weights = np.full(4, slip / 3)
        weights[a] = 1 - slip
        entries = (np.repeat(weights, size), (np.tile(np.arange(size), 4), np.concatenate(ends)))
        tables.append(sparse.csr_array(entries, shape=(size, size)))
    return tables, np.full(size, -1.0), np.arange(size) == size - 1


def least(runs: int, task: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least wall seconds of some runs, and what the last one found."""
    best, found = np.inf, None
    for _ in range(runs):
        began = perf_counter()
        found = task()
        best = min(best, perf_counter() - began)
    return best, found


def line(what: str, taken: float, found: str = "") -> None:
    """Print one row."""
    print(f"{what:<34}{taken:>10.3f}   {found}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    sys.exit(main(options.quick, options.runs))
