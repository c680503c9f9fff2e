"""Planning as a linear program over how often each action is taken in each state, with limits on other utilities.

Method
------
x(s, a) is the discounted number of times that a is taken in s. These are the x >= 0 with, for each state, sum_a x(s, a)
- sum x(s', a') b P(s | s', a') = first(s); rewards and limits are linear in x. HiGHS solves the program. Its policy
x(s, a) / sum_a x(s, a), random where a limit binds, is then evaluated exactly; and for prices of the limits (the dual
solution) the best value of rewards minus priced utilities, by policy iteration, is an upper bound on any policy that
keeps the limits. So value and bound do not rest on the solver's tolerances.

References: d'Epenoux (1963); Altman (1999), "Constrained Markov Decision Processes".

Cost: a sparse program with S A variables and S rows; tens of thousands of states at most.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.plan import Plan
from markovia.inference.decisions.processes.policy_iteration import policy_iteration, solved
from markovia.inference.decisions.processes.value_bounds import check_discount
from markovia.inference.decisions.processes.value_iteration import scaled_rows
from markovia.inference.result import Info
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import Kind, check, numbers
from markovia.runtime.clock import Stopwatch
from markovia.runtime.libraries import sparse


@dataclass(frozen=True)
class UtilityLimit:
    """What a discounted sum of some utility must stay within.

    Parameters
    ----------
    utility
        Per step, (S, A) or (S,).
    least, most
        What its expected discounted sum is at least, and at most.
    """

    utility: Array
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Occupancy:
    """How often a policy does what, what that makes of limited utilities, and what a limit costs.

    Attributes
    ----------
    visits
        Discounted expected number of times each action is taken in each state, (S, A).
    utilities
        The expected discounted sum of each limited utility.
    prices
        How much more reward one unit more of each limit would bring.
    """

    visits: Array
    utilities: Mapping[str, float] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)


def occupancy_program(
    process: DecisionProcess,
    discount: float | Array,
    *,
    limits: Mapping[str, UtilityLimit] | None = None,
    time_limit: float | None = None,
) -> Plan:
    """Return the best plan among those that keep some limits.

    Parameters
    ----------
    process, discount
        As in `value_iteration`. What is limited are sums from the first state on, so the plan may depend on `initial`.
    limits
        By name, a `UtilityLimit`.
    time_limit
        Seconds for the solver.

    Raises
    ------
    InvalidArgument
        Where no policy keeps the limits.

    Examples
    --------
    >>> process = DecisionProcess.from_tables([[[1.0]], [[1.0]]], [[0.0, 1.0]], actions=["rest", "work"])
    >>> tired = UtilityLimit([[0.0, 1.0]], most=1.5)
    >>> plan = occupancy_program(process, 0.5, limits={"tired": tired})
    >>> round(plan.value, 9), plan.policy.round(9).tolist(), plan.gap < 1e-9
    (1.5, [[0.25, 0.75]], True)
    """
    check_discount(discount, process)
    watch = Stopwatch()
    known = _checked(process, limits or {})
    open_states = np.ones(process.n_states, dtype=bool) if process.terminal is None else ~process.terminal
    rows = process.transitions if np.ndim(discount) == 0 else scaled_rows(process, np.asarray(discount))
    factor = float(discount) if np.ndim(discount) == 0 else 1.0
    visits, prices = _program(process, rows, factor, open_states, known, time_limit, discount)
    priced = process.rewards - sum(
        (p * u for p, u in zip(prices, [u for u, _, _ in known.values()], strict=True)), 0.0
    )
    relaxed = policy_iteration(_with_rewards(process, priced), discount)
    weights = visits.sum(axis=1, keepdims=True)
    policy = np.where(
        weights > 1e-12 * weights.max(), visits / np.where(weights > 0.0, weights, 1.0), relaxed.policy
    )
    taken, mean = process.under(policy, rows)
    v = solved(taken, mean, factor)
    first = process.first
    utilities = {
        name: float(first @ solved(taken, (policy * u).sum(axis=1), factor))
        for name, (u, _, _) in known.items()
    }
    paid = sum(
        p * (most if p > 0.0 else least)
        for p, (_, least, most) in zip(prices, known.values(), strict=True)
        if p != 0.0
    )
    info = Info(
        "linear program", exact=True, seconds=watch.seconds, compile_seconds=watch.compile_seconds,
        details=Occupancy(_visits(taken, factor, first)[:, None] * policy, utilities, dict(zip(known, prices, strict=True))),
    )  # fmt: skip
    value = float(first @ v)
    return Plan(
        process, value, max(value, relaxed.bound + paid), v, process.q(v, discount), info, chosen=policy
    )


def _checked(
    process: DecisionProcess, limits: Mapping[str, UtilityLimit]
) -> dict[str, tuple[Array, float, float]]:
    """Return each utility as (S, A), nothing where the process is over, with its least and most."""
    found = {}
    for name, limit in limits.items():
        check(f"limits[{name!r}]", limit, Kind((UtilityLimit,), "a UtilityLimit"))
        table = numbers(limit.utility, f"the utility {name!r} is a table of numbers", InvalidTable)
        if table.shape == (process.n_states,):
            table = np.repeat(table[:, None], process.n_actions, axis=1)
        if table.shape != process.rewards.shape or not np.isfinite(table).all():
            raise InvalidTable(f"the utility {name!r} is finite numbers of shape {process.rewards.shape}")
        if process.terminal is not None:
            table[process.terminal] = 0.0
        least = -np.inf if limit.least is None else float(limit.least)
        most = np.inf if limit.most is None else float(limit.most)
        if not least <= most:
            raise InvalidArgument(f"the limits of {name!r} are least <= most, not {least:g} and {most:g}")
        found[name] = (table, least, most)
    return found


def _program(
    process: DecisionProcess,
    rows: sparse.csr_array,
    factor: float,
    open_states: Flags,
    limits: Mapping[str, tuple[Array, float, float]],
    time_limit: float | None,
    discount: float | Array,
) -> tuple[Array, Array]:
    """Return visits (S, A) and the price of each limit."""
    from scipy.optimize import linprog

    n, k = process.rewards.shape
    free = np.tile(open_states, k)
    if process.allowed is not None:
        free &= process.allowed.T.reshape(-1)
    pairs = np.flatnonzero(free)
    if not len(pairs):
        return np.zeros((n, k)), np.zeros(len(limits))
    stay = sparse.csr_array((np.ones(len(pairs)), (np.arange(len(pairs)), pairs % n)), shape=(len(pairs), n))
    balance = sparse.csr_array(stay - factor * rows[pairs]).T.tocsr()[np.flatnonzero(open_states)]
    sides, ends, owner, signs = [], [], [], []
    for i, (table, least, most) in enumerate(limits.values()):
        for end, sign in ((most, 1.0), (-least, -1.0)):
            if np.isfinite(end):
                sides.append(sign * table.T.reshape(-1)[pairs])
                ends.append(end)
                owner.append(i)
                signs.append(sign)
    program = {
        "c": -process.rewards.T.reshape(-1)[pairs],
        "A_ub": np.array(sides) if sides else None,
        "b_ub": np.array(ends) if sides else None,
        "A_eq": balance,
        "b_eq": process.first[open_states],
    }
    limit = {} if time_limit is None else {"time_limit": float(time_limit)}
    # interior points, without presolve, took a twentieth of the simplex method's time on dense processes
    found = linprog(**program, method="highs-ipm", options={**limit, "presolve": False})
    if found.status != 0:
        found = linprog(**program, method="highs", options=limit)
    if found.status == 2:
        raise _infeasible(process, limits, discount)
    if found.x is None:
        raise InvalidArgument(f"the linear program was not solved ({found.message}); raise time_limit=")
    visits = np.zeros(n * k)
    visits[pairs] = np.maximum(found.x, 0.0)
    prices = np.zeros(len(limits))
    if sides:
        np.add.at(prices, owner, np.array(signs) * np.maximum(0.0, -found.ineqlin.marginals))
    return visits.reshape(k, n).T, prices


def _infeasible(
    process: DecisionProcess, limits: Mapping[str, tuple[Array, float, float]], discount: float | Array
) -> InvalidArgument:
    """Return the refusal of limits that no policy keeps, with the first that is out of reach by itself."""
    for name, (table, least, most) in limits.items():
        smallest = -policy_iteration(_with_rewards(process, -table), discount).value
        if smallest > most:
            return InvalidArgument(
                f"no policy keeps {name!r} at most {most:g}; the least that one reaches is {smallest:.6g}"
            )
        largest = policy_iteration(_with_rewards(process, table), discount).value
        if largest < least:
            return InvalidArgument(
                f"no policy keeps {name!r} at least {least:g}; the most that one reaches is {largest:.6g}"
            )
    return InvalidArgument(
        f"no policy keeps the limits of {', '.join(map(repr, limits))} together; widen one of them"
    )


def _visits(taken: sparse.csr_array, factor: float, first: Array) -> Array:
    """Return the discounted number of visits to each state."""
    return solved(sparse.csr_array(taken.T), first, factor)


def _with_rewards(process: DecisionProcess, rewards: Array) -> DecisionProcess:
    from dataclasses import replace

    return replace(process, rewards=rewards)
