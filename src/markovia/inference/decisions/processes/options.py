"""Times between decisions that differ: semi-Markov processes, and options that act for a while.

Both become a process whose transitions say where one is at the next decision, with a discount for each state and
action: the expected discount until then. Every solver for discounts takes such a table in place of one number.

Method
------
- Durations: after action a in s the next decision comes after k steps with probability d(k | s, a), or after a time
  with a given mean discount; rewards are paid when the action is taken.
- An option acts by a policy of its own until it ends, in state s with probability b(s). With P and r those of its
  policy, what follows it solves linear systems: R = r + g P (1 - b) R and F = g P (b + (1 - b) F), where F(s, s') is
  the discounted probability of ending in s'.

References: Howard (1971); Sutton, Precup and Singh (1999), "Between MDPs and semi-MDPs".
Cost: for options one sparse factorisation and S right-hand sides each.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable
from markovia.inference.decisions.processes.decision_process import DecisionProcess, require_room
from markovia.inference.decisions.processes.value_bounds import DISCOUNT
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import check, numbers
from markovia.runtime.libraries import sparse


class SemiMarkovChoices(NamedTuple):
    """A process at its decisions, and the discount of what follows each action, (S, A)."""

    process: DecisionProcess
    discount: Array


def semi_markov(process: DecisionProcess, durations: Any, discount: float) -> SemiMarkovChoices:
    """Return a process whose actions take time.

    Parameters
    ----------
    process
        The transitions from decision to decision, and the rewards of actions.
    durations
        How many steps each action takes, (S, A), or the probabilities of taking 1, 2, ... steps, (S, A, K).
    discount
        Of one step.

    Examples
    --------
    >>> from markovia.inference.decisions.processes.value_iteration import value_iteration
    >>> process = DecisionProcess.from_tables([[[1.0]], [[1.0]]], [[1.0, 1.5]], actions=["quick", "slow"])
    >>> timed = semi_markov(process, [[1, 2]], 0.5)
    >>> round(value_iteration(*timed).value, 6)  # 1 a step for ever, or 1.5 every second step
    2.0
    """
    check("discount", discount, DISCOUNT)
    table = numbers(
        durations, "durations are numbers of steps, or probabilities of 1, 2, ... steps", InvalidTable
    )
    shape = process.rewards.shape
    if table.shape == shape:
        if not (table > 0.0).all() or not np.isfinite(table).all():
            raise InvalidTable("an action takes a time above zero")
        return SemiMarkovChoices(process, discount**table)
    if table.ndim != 3 or table.shape[:2] != shape or not (table >= 0.0).all():
        raise InvalidTable(
            f"durations have the shape {shape}, or {(*shape, 'K')} with probabilities of 1 to K steps"
        )
    if len(wrong := np.argwhere(np.abs(table.sum(axis=2) - 1.0) > 1e-6)):
        s, a = wrong[0].tolist()
        raise InvalidTable(
            f"the probabilities of durations of action {process.action_name(a)!r} in state {process.state_name(s)!r} sum "
            f"to {table[s, a].sum():.6g}, not to 1"
        )
    return SemiMarkovChoices(process, table @ discount ** np.arange(1, table.shape[2] + 1))


@dataclass(frozen=True)
class TemporalOption:
    """A way to act for a while.

    Parameters
    ----------
    policy
        What is done meanwhile: an action a state, or probabilities of actions, (S, A).
    ends
        The probability of ending in each state that is reached, (S,).
    starts
        Where it may be begun, (S,) truth values; everywhere by default.
    """

    policy: Any
    ends: Any
    starts: Any = None


def with_options(
    process: DecisionProcess,
    options: Mapping[Hashable, TemporalOption],
    discount: float,
    *,
    primitive: bool = True,
) -> SemiMarkovChoices:
    """Return the process whose decisions are among options.

    Parameters
    ----------
    process
        What is acted in.
    options
        By name.
    discount
        Of one step.
    primitive
        Whether single actions may be taken as well.

    Examples
    --------
    >>> from markovia.inference.decisions.processes.value_iteration import value_iteration
    >>> right = np.eye(4, k=1) + np.diag([0, 0, 0, 1.0])
    >>> hall = DecisionProcess.from_tables([right], [-1.0, -1, -1, 0], terminal=[3], actions=["right"])
    >>> run = TemporalOption(np.zeros(4, dtype=int), ends=[0, 0, 0, 1])
    >>> plan = value_iteration(*with_options(hall, {"run": run}, 0.5, primitive=False))
    >>> plan.v.round(6).tolist()  # as by single steps
    [-1.75, -1.5, -1.0, 0.0]
    """
    check("discount", discount, DISCOUNT)
    if not options:
        raise InvalidArgument("options= names at least one way to act")
    n, k = process.rewards.shape
    require_room(3.0 * n * n, "where an option ends, from each state", "take fewer states")
    laws, rewards, allowed = [], [], []
    names: list[Hashable] = []
    if primitive:
        names += [process.action_name(a) for a in range(k)]
        laws += [discount * process.transitions[a * n : (a + 1) * n].toarray() for a in range(k)]
        rewards += list(process.rewards.T)
        allowed += list(np.ones((k, n), dtype=bool) if process.allowed is None else process.allowed.T)
    for name, option in options.items():
        law, reward, starts = _run(process, name, option, discount)
        laws.append(law)
        rewards.append(reward)
        allowed.append(starts)
        names.append(name)
    if len({*names}) < len(names):
        raise InvalidArgument("options have names of their own, other than the actions'")
    stacked = np.concatenate(laws)
    sums = stacked.sum(axis=1)
    rows = np.divide(
        stacked, sums[:, None], out=np.tile(np.eye(n), (len(names), 1)), where=sums[:, None] > 0.0
    )
    found = DecisionProcess(
        sparse.csr_array(rows), np.stack(rewards, axis=1), process.initial, np.stack(allowed, axis=1),
        process.terminal, process.states, names,
    )  # fmt: skip
    return SemiMarkovChoices(found, np.minimum(sums.reshape(len(names), n).T, np.nextafter(1.0, 0.0)))


def _run(
    process: DecisionProcess, name: Hashable, option: TemporalOption, discount: float
) -> tuple[Array, Array, Flags]:
    """Return where an option ends, discounted (S, S), what it earns until then (S,), and where it may begin."""
    n, k = process.rewards.shape
    policy = np.asarray(option.policy)
    if policy.shape == (n,) and policy.dtype.kind in "iu" and policy.min() >= 0 and (policy.max() < k):
        policy = np.eye(k)[policy]
    if policy.shape != (n, k) or not (policy >= 0.0).all() or np.abs(policy.sum(axis=1) - 1.0).max() > 1e-6:
        raise InvalidTable(
            f"the policy of option {name!r} is an action a state, or probabilities of shape {(n, k)}"
        )
    if process.allowed is not None and (policy[~process.allowed] > 0.0).any():
        raise InvalidTable(f"option {name!r} takes an action where it is not allowed")
    ends = numbers(option.ends, f"ends= of option {name!r} holds one probability a state", InvalidTable)
    if ends.shape != (n,) or not ((ends >= 0.0) & (ends <= 1.0)).all():
        raise InvalidTable(f"ends= of option {name!r} holds {n} probabilities, one a state")
    starts = np.ones(n, dtype=bool) if option.starts is None else np.asarray(option.starts)
    if starts.shape != (n,) or starts.dtype != np.bool_:
        raise InvalidTable(f"starts= of option {name!r} holds {n} truth values, one a state")
    if process.terminal is not None:
        ends[process.terminal] = 1.0
    rows, mean = process.under(policy)
    moves = discount * rows.toarray()
    going_on = np.eye(n) - moves * (1.0 - ends)
    solution = np.linalg.solve(going_on, np.column_stack([moves * ends, mean]))
    return np.maximum(solution[:, :n], 0.0), solution[:, n], starts
