"""Planning for so many steps: backward induction, exact.

V_T = final, and V_t = operator(r + discount P V_{t+1}); the policy may differ from step to step. The same recursion
with a soft operator gives the backward messages of control as inference.

References: Bellman (1957), "Dynamic Programming".
Cost: T sparse products; T S A numbers are kept.
"""

import numpy as np

from markovia.errors import InvalidTable
from markovia.inference.decisions.processes.bellman import DecisionOperator, HardOperator
from markovia.inference.decisions.processes.decision_process import StateProcess, require_room
from markovia.inference.decisions.processes.plan import Plan
from markovia.inference.decisions.processes.value_iteration import backed_up
from markovia.inference.result import Info
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NumberRange, check, check_count, numbers
from markovia.runtime.clock import Stopwatch

WEIGHT = NumberRange(0.0, 1.0, said="a number from 0 to 1")


def finite_horizon(
    process: StateProcess,
    horizon: int,
    *,
    discount: float | Array = 1.0,
    operator: DecisionOperator | None = None,
    final: Array | None = None,
) -> Plan:
    """Return the best plan for so many steps.

    Parameters
    ----------
    process
        What to plan for.
    horizon
        How many decisions are taken, one or more.
    discount
        What a reward a step later is worth, from 0 to 1; or one number for each state and action.
    operator
        What happens at a decision: `HardOperator()` by default.
    final
        What it is worth to be in each state after the last step; nothing by default.

    Examples
    --------
    >>> from markovia.inference.decisions.processes.decision_process import DecisionProcess
    >>> process = DecisionProcess.from_tables([[[0.5, 0.5], [0, 1]], [[1, 0], [1, 0]]], [[5.0, 10.0], [-1.0, 2.0]])
    >>> plan = finite_horizon(process, 2)
    >>> plan.v.tolist(), plan.act(1, step=0)
    ([[20.0, 12.0], [10.0, 2.0]], 1)
    """
    check_count("horizon", horizon, 1)
    for weight in np.ravel(discount)[:1] if np.ndim(discount) == 0 else ():
        check("discount", float(weight), WEIGHT)
    n, k = process.rewards.shape
    require_room(
        float(horizon) * n * (k + 1), f"the plan of {horizon:,} steps", "ask for fewer steps, or discount="
    )
    watch = Stopwatch()
    operator = HardOperator() if operator is None else operator
    values = np.zeros(n) if final is None else numbers(final, "final= holds one number a state", InvalidTable)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise InvalidTable(f"final= holds {n} finite numbers, one a state")
    v, q = np.empty((horizon, n)), np.empty((horizon, n, k))
    ends = process.terminal
    for t in range(horizon - 1, -1, -1):
        q[t] = process.q(values, discount)
        values = backed_up(process, operator, q[t])
        if ends is not None and final is not None:  # whoever has arrived keeps what arriving is worth
            values[ends] = np.asarray(final)[ends]
        v[t] = values
    worth = float(process.first @ v[0])
    info = Info(
        "backward induction",
        exact=True,
        iterations=horizon,
        seconds=watch.seconds,
        compile_seconds=watch.compile_seconds,
    )
    return Plan(process, worth, worth, v, q, info, operator)
