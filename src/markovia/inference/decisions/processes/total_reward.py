"""Rewards without a discount: how much is earned until the process is over.

Method
------
States among which one can stay for ever without any reward are taken together (`end_components`), and may settle for
nothing. Whoever could go round for ever and earn on average has no best plan, which is refused. What is left ends
surely under every policy that is not infinitely bad, so policy iteration from one that ends, with exact evaluations,
ends at the best plan.

References: Bertsekas and Tsitsiklis (1991), "An analysis of stochastic shortest path problems"; Puterman (1994),
chapter 7. Cost: a few sparse factorisations.
"""

from dataclasses import dataclass

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.decisions.processes.average_reward import component_gains
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.end_components import (
    StatePairs,
    best_total,
    collapsed,
    end_components,
    ending_choice,
    goes_on,
    open_pairs,
    spread,
)
from markovia.inference.decisions.processes.plan import Plan
from markovia.inference.decisions.processes.policy_iteration import solved
from markovia.inference.result import Info
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import Stopwatch


@dataclass(frozen=True)
class Ending:
    """How a process ends: the expected number of steps until it is over, or settled, from each state."""

    steps: Array


def total_reward(process: DecisionProcess) -> Plan:
    """Return the plan with the largest expected total reward.

    Parameters
    ----------
    process
        What to plan for; it ends in states that are terminal, or that are never left and earn nothing.

    Raises
    ------
    InvalidArgument
        Where some policy goes round for ever and loses nothing by it, or where no policy ends.

    Examples
    --------
    >>> walk = [[[0.0, 1, 0], [0, 0, 1], [0, 0, 1]], [[1.0, 0, 0], [1, 0, 0], [0, 0, 1]]]
    >>> process = DecisionProcess.from_tables(walk, -1.0 * np.ones((3, 2)), terminal=[2], actions=["on", "back"])
    >>> total_reward(process).v.tolist()
    [-2.0, -1.0, 0.0]
    """
    watch = Stopwatch()
    n, k = process.rewards.shape
    owner = np.tile(np.arange(n), k)
    usable, rewards = open_pairs(process), process.rewards.T.reshape(-1)
    idle = end_components(process.transitions, owner, usable & (rewards == 0.0))
    pairs, node = collapsed(process, idle, np.zeros(idle.n), rewards)
    _refuse_rounds(process, pairs, node)
    start = ending_choice(pairs)
    if len(stuck := np.flatnonzero(start < 0)):
        name = process.state_name(int(np.flatnonzero(node == stuck[0])[0]))
        raise InvalidArgument(
            f"from state {name!r} no policy ever ends, so its total reward is minus infinity; say discount= or "
            "average=True, or which states are terminal"
        )
    values, choice = best_total(pairs, start)
    v = np.where(node >= 0, np.append(values, 0.0)[node], 0.0)
    action, _ = spread(process, idle, node, pairs, choice)
    policy = np.eye(k)[action]
    q = process.q(v)
    best = q.max(axis=1) if process.allowed is None else np.where(process.allowed, q, -np.inf).max(axis=1)
    steps = solved(pairs.rows[choice], (pairs.source[choice] >= 0).astype(float), 1.0)
    rounding = max(0.0, float((best - v).max())) * float(steps.max(initial=0.0))
    value = float(process.first @ v)
    info = Info(
        "policy iteration",
        exact=rounding <= 1e-9 * max(1.0, float(np.abs(v).max())),
        error=rounding,
        seconds=watch.seconds,
        compile_seconds=watch.compile_seconds,
        details=Ending(np.where(node >= 0, np.append(steps, 0.0)[node], 0.0)),
    )
    return Plan(process, value, value + rounding, v, q, info, chosen=policy)


def _refuse_rounds(process: DecisionProcess, pairs: StatePairs, node: Ints) -> None:
    """Raise where one can go round for ever among nodes without losing by it."""
    left = end_components(pairs.rows, pairs.owner, goes_on(pairs))
    if not left.n:
        return
    gaining = np.zeros(left.n, dtype=bool)
    gaining[left.label[pairs.owner[left.inside & (pairs.rewards > 0.0)]]] = True
    if not gaining.any():
        return  # whatever earned nothing was taken together, so each way round loses
    inside = left.inside & gaining[left.label[pairs.owner]]
    gains = component_gains(
        pairs.owner[inside], pairs.rows[inside], pairs.rewards[inside], left.label, until_sign=True
    )
    for c in np.flatnonzero(gaining & (gains.high >= 0.0)):
        name = process.state_name(int(np.flatnonzero(node == np.flatnonzero(left.label == c)[0])[0]))
        raise InvalidArgument(
            f"from state {name!r} one can go round for ever and earn {gains.high[c]:.3g} a step, so the total reward has no "
            "limit; say discount= or average=True, or which states are terminal"
        )
