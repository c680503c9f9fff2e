"""How long partially observed processes and linear control take, and how far apart their bounds end.

Run: python benchmarks/decisions_pomdp.py [--quick] [--seconds S]

- `tiger`: discount .95, by all vectors, until every belief's gap is below 1e-6;
- `horizon`: the tiger's horizons 1 to 6, whose values are known;
- `maze`: a hundred cells between random walls; moves slip, four sensors tell walls, the goal is worth one and begins anew
  anywhere; without and with misread walls. Printed is the gap as a part of the
  value, after a part of the time and at its end;
- `controller`: the tiger by bounded policy iteration of some nodes;
- `integrator`: the double integrator's gain, alone and with an observed position; a hundred states;
- `swing`: a pendulum swung up by predictive control, a step.

Times are wall seconds, the least of three runs but for mazes.
"""

# ruff: noqa: N806 (letters of the literature)

import argparse
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax.numpy as jnp
import numpy as np

from markovia.inference.decisions.beliefs.belief_plan import solve
from markovia.inference.decisions.beliefs.controllers import bounded_controller
from markovia.inference.decisions.beliefs.partially_observed import PartiallyObserved
from markovia.inference.decisions.numbers.linear_quadratic import LinearQuadratic, regulate
from markovia.inference.decisions.numbers.predictive_control import PredictiveControl
from markovia.inference.decisions.processes.decision_process import DecisionProcess

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
HORIZONS = (-1, -2, 2.72, 2.42125, 3.60915, 5.61881875)


def main(quick: bool = False, seconds: float = 60.0) -> int:
    """Print the table."""
    process = tiger()
    took, plan = least(lambda: solve(process, discount=0.95))
    print(f"tiger, .95         {took:8.3f} s   {plan.value:.8f} (19.37136837), gap {plan.gap:.1e}")
    took, plans = least(lambda: [solve(process, horizon=h) for h in range(1, 7)])
    wrong = max(abs(p.value - v) for p, v in zip(plans, HORIZONS, strict=True))
    print(f"tiger, 1 to 6      {took:8.3f} s   largest error {wrong:.1e}")
    took, controller = least(lambda: bounded_controller(process, discount=0.95, nodes=8), 1)
    print(f"controller         {took:8.3f} s   {controller}")
    for misread in (0.0, 0.02) if quick else (0.0, 0.02, 0.05):
        maze_line(misread, (2.0,) if quick else (seconds / 6, seconds))
    linear()
    swing()
    return 0


def maze_line(misread: float, limits: tuple[float, ...]) -> None:
    """Plan for a maze within some times."""
    process = maze(10, slip=0.1, misread=misread)
    for limit in limits:
        plan = solve(process, discount=0.95, time_limit=limit)
        print(
            f"maze, misread {misread:<4} {plan.info.seconds:8.1f} s   {plan.value:.5f} to {plan.bound:.5f}, gap "
            f"{100 * plan.gap / plan.value:.2f}%, {plan.info.details}",
            flush=True,
        )


def linear() -> None:
    """Solve linear-quadratic problems."""
    A, B, Q = np.array([[1, 0.1], [0, 1]]), np.array([[0], [0.1]]), np.diag([1, 0.1])
    took, feedback = least(lambda: regulate(LinearQuadratic(A, B, Q, 0.01), average=True))
    print(
        f"integrator         {took:8.4f} s   gain {feedback.gain.round(8).tolist()}, residual {feedback.info.error:.1e}"
    )
    seen: Any = {"noise": 0.01 * np.eye(2), "C": [[1.0, 0.0]], "observation_noise": 0.1}
    took, feedback = least(lambda: regulate(LinearQuadratic(A, B, Q, 0.01, **seen), average=True))
    print(f"  position seen    {took:8.4f} s   value {feedback.value:.8f}")
    rng = np.random.default_rng(0)
    large = rng.normal(size=(100, 100)) / 10.0, rng.normal(size=(100, 5))
    took, feedback = least(lambda: regulate(LinearQuadratic(*large, np.eye(100), np.eye(5)), average=True))
    print(f"  100 states       {took:8.4f} s   residual {feedback.info.error:.1e}")


def swing() -> None:
    """Swing a pendulum up, with a torque that is too weak to lift it."""
    control = PredictiveControl(
        lambda x, u: x + 0.1 * jnp.array([x[1], -2.0 * jnp.sin(x[0]) + u[0]]),
        lambda x, u: -((x[0] - jnp.pi) ** 2) - 0.1 * x[1] ** 2 - 0.01 * u[0] ** 2,
        horizon=30, limits=(-1.5, 1.5), max_iter=20,
    )  # fmt: skip
    agent, x = control.stream([0.0, 0.0]), np.zeros(2)
    agent.act()
    began = perf_counter()
    for _ in range(80):
        u = agent.act()
        x = x + 0.1 * np.array([x[1], -2.0 * np.sin(x[0]) + u[0]])
        agent.update(x)
    print(
        f"swing, a step      {(perf_counter() - began) / 80:8.4f} s   ends at {x.round(3).tolist()} (pi, 0)"
    )


def tiger() -> PartiallyObserved:
    """Return the tiger behind one of two doors."""
    door = np.full((2, 2), 0.5)
    flat = DecisionProcess.from_tables(
        [np.eye(2), door, door], [[-1, -100, 10], [-1, 10, -100]], initial=[0.5, 0.5]
    )
    return PartiallyObserved(flat, np.array([[[0.85, 0.15], [0.15, 0.85]], door, door]))


def maze(side: int, slip: float, misread: float, doors: float = 0.5, seed: int = 1) -> PartiallyObserved:
    """Return a maze: a tree of passages, and a part of the other walls taken out."""
    rng, n = np.random.default_rng(seed), side * side
    right = [(c, c + 1) for c in range(n) if c % side < side - 1]
    walls = np.array(right + [(c, c + side) for c in range(n - side)])
    group, passages = list(range(n)), set()

    def root(c: int) -> int:
        while group[c] != c:
            c = group[c]
        return c

    for a, b in rng.permutation(walls).tolist():
        if root(a) != root(b) or rng.random() > doors:
            group[root(a)] = root(b)
            passages |= {(a, b), (b, a)}
    P, wall = np.zeros((4, n, n)), np.zeros((n, 4), dtype=int)
    for c in range(n):
        for m, (down, along) in enumerate(MOVES):
            there = c + side * down + along
            wall[c, m] = (c, there) not in passages
            target = c if wall[c, m] else there
            for a in range(4):
                P[a, c, target] += 1 - slip if a == m else slip / 2 * ((m - a) % 2)
    first = np.append(np.ones(n - 1), 0.0) / (n - 1)
    P[:, -1] = first
    R = np.zeros((n, 4))
    R[-1] = 1.0
    bits = (np.arange(16)[:, None] >> np.arange(4)) & 1
    told = np.where(wall[:, None] == bits[None], 1 - misread, misread).prod(axis=2)
    told = np.hstack([told, np.zeros((n, 1))])
    told[-1] = np.eye(17)[16]
    return PartiallyObserved(
        DecisionProcess.from_tables(P, R, initial=first), np.repeat(told[None], 4, axis=0)
    )


def least(task: Callable[[], Any], runs: int = 3) -> tuple[float, Any]:
    """Return the least seconds of some runs, and what the last one found."""
    best, found = np.inf, None
    for _ in range(runs):
        began = perf_counter()
        found = task()
        best = min(best, perf_counter() - began)
    return best, found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    sys.exit(main(options.quick, options.seconds))
