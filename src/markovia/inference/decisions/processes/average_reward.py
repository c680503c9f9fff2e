"""Rewards per step in the long run: gains, and relative values.

Method
------
A policy settles in an end component, in which all states are worth the same: its gain. Relative value iteration bounds
the gains of all components at once, by the least and largest entry of T V - V in each; now and then the policy at hand
is evaluated exactly, and its relative values continued from, as policy iteration does. Which component to settle in is
then a question of total rewards. Where there is one component the process is "unichain" in what matters: every state
has the same best gain.

References: Puterman (1994), chapters 8 and 9; White (1963); Odoni (1969) for the bounds.
Cost: a sparse product a round; a few sparse factorisations.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.end_components import (
    best_total,
    collapsed,
    end_components,
    ending_choice,
    first_of_each,
    open_pairs,
    spread,
)
from markovia.inference.decisions.processes.plan import Plan
from markovia.inference.decisions.processes.policy_iteration import solved
from markovia.inference.result import Info, warn_unconverged
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_number
from markovia.runtime.clock import Clock, Stopwatch
from markovia.runtime.libraries import csgraph, sparse, sparse_solvers

LAZY = 0.5
"""How much of a step is made at once, so that periodic processes settle too."""
ROUNDS = 200_000
FIRST_EVALUATION = 16


@dataclass(frozen=True)
class LongRun:
    """What is earned per step in the long run.

    Attributes
    ----------
    gains
        From each state under the plan, (S,).
    components
        The sets of states that one can settle in; one means that every state has the same gain.
    """

    gains: Array
    components: int


class LongRunGains(NamedTuple):
    """Bounds on the best gain of each component, a choice for each of its nodes, and rounds made."""

    low: Array
    high: Array
    choice: Ints
    rounds: int


def average_reward(
    process: DecisionProcess,
    *,
    tolerance: float = 1e-8,
    time_limit: float | None = None,
    progress: bool | None = None,
) -> Plan:
    """Return the plan with the largest reward per step in the long run.

    Parameters
    ----------
    process
        What to plan for. States that are terminal earn nothing for ever.
    tolerance
        The largest gap, in units of reward per step; where rounding does not let it be so small, what rounding lets it
        be.
    time_limit, progress
        Seconds, and whether to show a bar.

    Returns
    -------
    Plan
        Its value is the gain from the first state; `v` are relative values, zero at one state of each class that the
        policy settles in (the first state, where there is one class); `info.details.gains` are all gains.

    Examples
    --------
    >>> process = DecisionProcess.from_tables([[[0.5, 0.5], [0.4, 0.6]], [[0.8, 0.2], [0.7, 0.3]]], [[6.0, 4], [-3, -5]])
    >>> plan = average_reward(process)
    >>> round(plan.value, 9), plan.v.round(6).tolist()
    (2.0, [0.0, -10.0])
    """
    check_number("tolerance", tolerance, positive=True)
    watch = Stopwatch()
    n, k = process.rewards.shape
    owner = np.tile(np.arange(n), k)
    rewards = process.rewards.T.reshape(-1)
    components = end_components(process.transitions, owner, open_pairs(process))
    inside = np.flatnonzero(components.inside)
    order = np.argsort(owner[inside], kind="stable")
    inside = inside[order]
    with Clock(time_limit, progress, unit="round", name="relative value iteration") as clock:
        gains = component_gains(
            owner[inside],
            process.transitions[inside],
            rewards[inside],
            components.label,
            tolerance=tolerance,
            clock=clock,
        )
    worst = []
    for settling in (gains.low, gains.high):
        pairs, node = collapsed(process, components, settling, np.zeros(n * k))
        values, choice = best_total(pairs, ending_choice(pairs))
        worst.append(np.where(node >= 0, np.append(values, 0.0)[node], 0.0))
        if settling is gains.low:
            action, settles = spread(process, components, node, pairs, choice)
    action[settles] = inside[gains.choice[settles]] // n
    policy = np.eye(k)[action]
    earned, v = long_run(*process.under(policy))
    bound = float(process.first @ np.maximum(worst[1], earned))
    value = float(process.first @ earned)
    gap, least = bound - value, 64.0 * np.finfo(float).eps * max(1.0, float(np.abs(v).max()))
    converged = gap <= max(tolerance, least)
    info = Info(
        "relative value iteration", exact=gap <= max(least, 1e-13), converged=converged, iterations=gains.rounds, error=gap,
        seconds=watch.seconds, compile_seconds=watch.compile_seconds,
        advice="" if converged else "raise time_limit= or tolerance=",
        details=LongRun(earned, components.n + int(process.terminal is not None)),
        note="" if clock.reason is None else f"stopped: {clock.reason}",
    )  # fmt: skip
    if not converged:
        warn_unconverged(info)
    return Plan(process, value, bound, v, process.q(v) - earned[:, None], info, chosen=policy)


def component_gains(
    owner: Ints,
    rows: sparse.csr_array,
    rewards: Array,
    label: Ints,
    *,
    tolerance: float = 1e-10,
    clock: Clock | None = None,
    until_sign: bool = False,
) -> LongRunGains:
    """Return bounds on the best gain of each end component of choices, those of a node side by side.

    Parameters
    ----------
    owner, rows, rewards
        The choices that stay within their component.
    label
        The component of each node, -1 for none.
    tolerance, clock
        When to stop.
    until_sign
        Whether to stop once it is known of each gain whether it is below zero.
    """
    n, n_components = len(label), int(label.max(initial=-1)) + 1
    choice = np.full(n, -1, dtype=np.int64)
    if not len(owner):
        return LongRunGains(np.zeros(n_components), np.zeros(n_components), choice, 0)
    first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    members = owner[first]
    part = label[members]
    values, low, high = np.zeros(n), np.full(n_components, -np.inf), np.full(n_components, np.inf)
    evaluate_at, rounds = FIRST_EVALUATION, 0
    while True:
        q = rewards + rows @ values
        moved = np.maximum.reduceat(q, first) - values[members]
        least, most = np.full(n_components, np.inf), np.full(n_components, -np.inf)
        np.minimum.at(least, part, moved)
        np.maximum.at(most, part, moved)
        better = most - least < high - low
        low, high = np.where(better, least, low), np.where(better, most, high)
        fresh = better[label[owner]]
        best = np.repeat(moved + values[members], np.diff(np.r_[first, len(q)]))
        top = first_of_each(owner, fresh & (q >= best - 1e-15 * np.abs(best)), n)
        choice = np.where(top >= 0, top, choice)
        rounds += 1
        gap, scale = high - low, max(1.0, float(np.abs(values).max()))
        sure = (gap <= max(tolerance, 16.0 * np.finfo(float).eps * scale)) | (
            until_sign & ((low > 0.0) | (high < 0.0))
        )
        if sure[part].all() or rounds >= ROUNDS or (clock is not None and clock.over()):
            break
        if rounds == evaluate_at:
            evaluate_at *= 2
            values[members] = _relative(owner, rows, rewards, members, choice)
            continue
        values[members] += LAZY * moved
        values[members] -= _at_first(values[members], part, n_components)[part]
    unseen = ~np.isfinite(low)
    low[unseen] = high[unseen] = 0.0
    return LongRunGains(low, high, choice, rounds)


def _relative(owner: Ints, rows: sparse.csr_array, rewards: Array, members: Ints, choice: Ints) -> Array:
    """Return the relative values of the choices at hand."""
    taken = choice[members]
    _, values = long_run(sparse.csr_array(rows[taken][:, members]), rewards[taken])
    return values


def _at_first(values: Array, part: Ints, n_components: int) -> Array:
    found = np.zeros(n_components)
    found[part[::-1]] = values[::-1]
    return found


def long_run(rows: sparse.csr_array, rewards: Array) -> tuple[Array, Array]:
    """Return the gain and the relative value of each state of a chain, exactly.

    Relative values are zero at the first state of each class that is never left; where there is one class, at state 0.

    Examples
    --------
    >>> chain = sparse.csr_array(np.array([[0.5, 0.5], [1.0, 0.0]]))
    >>> [part.round(6).tolist() for part in long_run(chain, np.array([3.0, 0.0]))]
    [[2.0, 2.0], [0.0, -2.0]]
    """
    n = len(rewards)
    _, label = csgraph.connected_components(rows, directed=True, connection="strong")
    coo = rows.tocoo()
    leaving = np.zeros(label.max() + 1, dtype=bool)
    leaving[label[coo.coords[0][label[coo.coords[0]] != label[coo.coords[1]]]]] = True
    settled = ~leaving[label]
    inner, outer = np.flatnonzero(settled), np.flatnonzero(~settled)
    classes, member = np.unique(label[inner], return_inverse=True)
    pins = np.unique(member, return_index=True)[1]
    block = sparse.csr_array(rows[inner][:, inner])
    # the value of a class's first state is zero, and its column holds the class's gain
    keep = np.ones(len(inner))
    keep[pins] = 0.0
    system = (sparse.eye_array(len(inner)) - block) @ sparse.diags_array(keep)
    system = system + sparse.csr_array(
        (np.ones(len(inner)), (np.arange(len(inner)), pins[member])), shape=block.shape
    )

    solution = np.atleast_1d(sparse_solvers.splu(sparse.csc_array(system)).solve(rewards[inner]))
    gains, values = np.zeros(n), np.zeros(n)
    gains[inner] = solution[pins][member]
    values[inner] = np.where(keep > 0.0, solution, 0.0)
    if len(outer):
        within, onward = sparse.csr_array(rows[outer][:, outer]), sparse.csr_array(rows[outer][:, inner])
        gains[outer] = solved(within, onward @ gains[inner], 1.0)
        values[outer] = solved(within, rewards[outer] - gains[outer] + onward @ values[inner], 1.0)
    return gains, values - values[0] if len(classes) == 1 else values
