"""Policy iteration, exact or modified: evaluate a policy, then take the best for its values, until nothing changes.

Method
------
Evaluating is one sparse linear system (I - P D) v = r, or with `sweeps` so many Gauss-Seidel sweeps of the policy
alone, which cost one action's nonzeros instead of all. For a soft operator each round is a Newton step on its Bellman
equation. Bounds come from the residual (`value_bounds`), so the gap is certified either way.

References: Howard (1960); Puterman and Shin (1978), "Modified policy iteration algorithms for discounted Markov
decision problems"; soft: Geist, Scherrer and Pietquin (2019), "A theory of regularized Markov decision processes".

Cost: a few to a few dozen rounds; each a sparse factorisation, cheap on grids and as dear as S^3 where every state
leads to every other one.
"""

import numpy as np

from markovia.inference.decisions.processes.bellman import DecisionOperator, HardOperator
from markovia.inference.decisions.processes.decision_process import DecisionProcess, require_room
from markovia.inference.decisions.processes.plan import Plan
from markovia.inference.decisions.processes.value_bounds import check_discount, shifts
from markovia.inference.decisions.processes.value_iteration import (
    GaussSeidel,
    backed_up,
    finished,
    first_values,
    rounding,
)
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count, check_number
from markovia.runtime.clock import Clock, Stopwatch
from markovia.runtime.libraries import sparse, sparse_solvers

ROUNDS = 10_000
STALLED = 6
"""Rounds without narrower bounds or higher values after which rounding is to blame."""
DENSE_SHARE = 0.05
"""Share of nonzeros above which a system is solved as a dense one."""


def policy_iteration(
    process: DecisionProcess,
    discount: float | Array,
    *,
    operator: DecisionOperator | None = None,
    sweeps: int | None = None,
    tolerance: float = 1e-8,
    time_limit: float | None = None,
    progress: bool | None = None,
) -> Plan:
    """Return the best plan: exact up to rounding, or to the tolerance with `sweeps`.

    Parameters
    ----------
    process, discount, operator, tolerance, time_limit, progress
        As in `value_iteration`.
    sweeps
        How many Gauss-Seidel sweeps evaluate a policy; None solves for its values.

    Examples
    --------
    >>> process = DecisionProcess.from_tables([[[0.5, 0.5], [0, 1]], [[1, 0], [1, 0]]], [[5.0, 10.0], [-1.0, 2.0]])
    >>> plan = policy_iteration(process, 0.5)
    >>> plan.v.round(9).tolist(), plan.info.exact
    ([20.0, 12.0], True)
    >>> policy_iteration(process, 0.5, sweeps=4).v.round(6).tolist()
    [20.0, 12.0]
    """
    check_discount(discount, process)
    check_number("tolerance", tolerance, positive=True)
    check_count("sweeps", sweeps, 1, none=True)
    watch = Stopwatch()
    operator = HardOperator() if operator is None else operator
    improving = HardOperator(tie=0.0) if isinstance(operator, HardOperator) else operator
    steps = GaussSeidel(process, discount, improving)
    values = first_values(process, discount, operator)
    narrowest, backups, stalled, highest = np.inf, 0, 0, -np.inf
    with Clock(time_limit, progress, unit="round", name="policy iteration") as clock:
        while True:
            q = process.q(values, discount)
            after = backed_up(process, operator, q)
            bounds = shifts(values, after, discount)
            gap, least = bounds.high - bounds.low, rounding(after, discount)
            backups += 1
            clock.advance(value=gap)
            # news may travel one state a round: bounds then stay as wide while values rise
            total = float(after.mean())
            rises = total > highest + least / len(after)
            stalled = 0 if rises or gap < 0.999 * narrowest else stalled + 1
            highest = max(total, highest)
            narrowest = min(gap, narrowest)
            enough = 16.0 * least if sweeps is None else max(tolerance, least)
            if gap <= enough or stalled >= STALLED or backups >= ROUNDS or clock.over():
                break
            if sweeps is None:
                values = solved(*steps.policy_rows(q), steps.discount)
            else:
                values = after.copy()
                steps.under_policy(values, q, sweeps)
        reason = clock.reason
    converged = gap <= max(tolerance, least)
    exact = sweeps is None and reason is None and gap <= 64.0 * least
    return finished(
        process, discount, operator, after, bounds, watch, converged, backups, steps.sweeps, reason,
        "policy iteration" if sweeps is None else "modified policy iteration", exact,
    )  # fmt: skip


def solved(rows: sparse.csr_array, rewards: Array, discount: float) -> Array:
    """Return the values of a policy with these transitions (S, S) and rewards (S,).

    Examples
    --------
    >>> solved(sparse.csr_array(np.eye(2)), np.array([1.0, 2.0]), 0.5).tolist()
    [2.0, 4.0]
    """
    n = len(rewards)
    if rows.nnz > DENSE_SHARE * n * n:
        require_room(2.0 * n * n, "the equations of a policy", "take method='value iteration'")
        return np.asarray(np.linalg.solve(np.eye(n) - discount * rows.toarray(), rewards))

    system = sparse.csc_array(sparse.eye_array(n) - discount * rows)
    return np.asarray(sparse_solvers.splu(system).solve(rewards))
