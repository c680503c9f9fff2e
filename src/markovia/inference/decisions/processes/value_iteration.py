"""Value iteration for discounted processes, with certified bounds.

Method
------
Each round backs all values up at once, which bounds the best values from both sides (`value_bounds`). In between come
sweeps of whichever kind narrows the bounds more for what it costs; all are tried: Gauss-Seidel sweeps,
forwards and backwards in turns, that take the best action in place, or the policy at hand, or only simultaneous backups.
Sweeps carry news through grids and long corridors, backups let what is the same for all states drop out, as it does
quickly where the process mixes. SoftOperator and given policies are backed up by the operator, with sweeps of its policy.

References: Puterman (1994), chapter 6; Porteus (1971); Gauss-Seidel: Kushner and Kleinman (1971).

Cost: the nonzeros of the transitions a sweep.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.inference.decisions.processes.bellman import (
    DecisionOperator,
    EvaluatedOperator,
    HardOperator,
    SoftOperator,
)
from markovia.inference.decisions.processes.decision_process import DecisionProcess, StateProcess
from markovia.inference.decisions.processes.plan import Plan
from markovia.inference.decisions.processes.value_bounds import Shifts, check_discount, shifts
from markovia.inference.result import Info, warn_unconverged
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import check_number
from markovia.runtime.clock import Clock, Stopwatch

SWEEPS = 8
"""Gauss-Seidel sweeps in a round."""
ROUNDS = 100_000
EPSILON = float(np.finfo(np.float64).eps)
STALLED = 20
"""Rounds without narrower bounds after which rounding is to blame."""
ADVICE = "raise time_limit= or tolerance=, or take method='policy iteration'"


@dataclass(frozen=True)
class SweepCounts:
    """How often values were backed up: all at once, and one after the other."""

    backups: int
    sweeps: int


def value_iteration(
    process: StateProcess,
    discount: float | Array,
    *,
    operator: DecisionOperator | None = None,
    tolerance: float = 1e-8,
    time_limit: float | None = None,
    progress: bool | None = None,
    start: Array | None = None,
) -> Plan:
    """Return a plan whose gap is at most the tolerance, from every state.

    Parameters
    ----------
    process
        What to plan for.
    discount
        What a reward a step later is worth, below one; or one number for each state and action (`semi_markov`).
    operator
        What happens at a decision: `HardOperator()` by default, `SoftOperator(temperature)`, or `EvaluatedOperator(policy)`.
    tolerance
        The largest gap, in units of reward; where rounding does not let it be so small, what rounding lets it be.
    time_limit, progress
        Seconds, and whether to show a bar. A plan that ran out of time has its honest gap.
    start
        Values to begin with.

    Returns
    -------
    Plan
        Its `v` are lower bounds on what its policy is worth, and no policy is worth more than `v + gap`.

    Examples
    --------
    >>> process = DecisionProcess.from_tables([[[0.5, 0.5], [0, 1]], [[1, 0], [1, 0]]], [[5.0, 10.0], [-1.0, 2.0]])
    >>> plan = value_iteration(process, 0.5)
    >>> plan.v.round(6).tolist(), plan.gap < 1e-7
    ([20.0, 12.0], True)
    """
    check_discount(discount, process)
    check_number("tolerance", tolerance, positive=True)
    watch = Stopwatch()
    operator = HardOperator() if operator is None else operator
    sweeper = GaussSeidel(process, discount, operator) if isinstance(process, DecisionProcess) else None
    values = first_values(process, discount, operator) if start is None else np.array(start, dtype=np.float64)
    costs = _costs(process, operator)
    rates = dict.fromkeys(costs, 0.0)
    narrowest, stalled, kind, backups = np.inf, 0, "backups", 0
    with Clock(time_limit, progress, unit="round", name="value iteration") as clock:
        while True:
            q = process.q(values, discount)
            after = backed_up(process, operator, q)
            bounds = shifts(values, after, discount)
            gap = bounds.high - bounds.low
            enough = max(tolerance, rounding(after, discount))
            backups += 1
            clock.advance(value=gap)
            stalled = 0 if gap < (1.0 - 1e-6) * narrowest else stalled + 1
            if gap <= enough or stalled >= STALLED or backups >= ROUNDS or clock.over():
                break
            if np.isfinite(narrowest):
                gained = np.log(narrowest / gap) if gap > 0.0 else 0.0
                rates[kind] = gained / costs[kind]
            narrowest = min(narrowest, gap)
            kind = _next_kind(backups, rates)
            values = after
            if sweeper is not None and kind != "backups":
                values = after.copy()
                if kind == "sweeps":
                    sweeper.run(values, q, SWEEPS)
                else:
                    sweeper.under_policy(values, q, SWEEPS)
        reason, sweeps = clock.reason, 0 if sweeper is None else sweeper.sweeps
    return finished(process, discount, operator, after, bounds, watch, gap <= enough, backups, sweeps, reason)


def rounding(values: Array, discount: float | Array) -> float:
    """Return the gap that rounding alone may leave."""
    return 8.0 * EPSILON * float(np.abs(values).max()) / (1.0 - float(np.max(discount)))


def backed_up(process: StateProcess, operator: DecisionOperator, q: Array) -> Array:
    """Return what the operator makes of Q in each state; nothing where the process is over."""
    found = np.array(operator.value(q, process.allowed), dtype=np.float64)
    if process.terminal is not None:
        found[process.terminal] = 0.0
    return found


def _costs(process: StateProcess, operator: DecisionOperator) -> dict[str, float]:
    """Return what each kind of round costs, in passes over the transitions; no clock, so that plans come out the same."""
    if not isinstance(process, DecisionProcess):
        return {"backups": 1.0}
    one_action = 1.0 + (SWEEPS + 2.0) / process.n_actions
    if isinstance(operator, HardOperator):
        return {"sweeps": 1.0 + SWEEPS, "backups": 1.0, "policy": one_action}
    return {"sweeps": 1.0 + SWEEPS if isinstance(operator, SoftOperator) else one_action, "backups": 1.0}


def _next_kind(rounds: int, rates: dict[str, float]) -> str:
    """Return which kind of round to make next: all in turns at first, then the best, another now and then."""
    kinds = list(rates)
    if rounds <= 2 * len(kinds):
        return kinds[(rounds - 1) % len(kinds)]
    if rounds % 32 == 0:
        return kinds[rounds // 32 % len(kinds)]
    return max(kinds, key=lambda kind: rates[kind])


def finished(
    process: StateProcess,
    discount: float | Array,
    operator: DecisionOperator,
    after: Array,
    bounds: Shifts,
    watch: Stopwatch,
    converged: bool,
    backups: int,
    sweeps: int,
    reason: str | None = None,
    engine: str = "value iteration",
    exact: bool = False,
) -> Plan:
    """Return the plan that backed-up values and their bounds make."""
    low, high = after + bounds.low, after + bounds.high
    if process.terminal is not None:
        low[process.terminal] = high[process.terminal] = 0.0
    q = process.q(low, discount)
    loss = tie_loss(operator, q, process.allowed, process.terminal) / (1.0 - float(np.max(discount)))
    if loss.max() > max(0.1 * (bounds.high - bounds.low), rounding(after, discount)):
        operator, loss = (
            HardOperator(tie=0.0),
            np.zeros_like(loss),
        )  # what looks like a tie is none at this precision
    low -= loss
    first = process.first
    value, bound = float(first @ low), float(first @ high)
    exact = exact and bound - value <= 64.0 * rounding(after, discount)
    info = Info(
        engine, exact=exact, converged=converged, iterations=backups, error=bounds.high - bounds.low,
        seconds=watch.seconds, compile_seconds=watch.compile_seconds, advice="" if converged else ADVICE,
        details=SweepCounts(backups, sweeps), note="" if reason is None else f"stopped: {reason}",
    )  # fmt: skip
    if not converged:
        warn_unconverged(info)
    return Plan(process, value, bound, low, q, info, operator)


def tie_loss(operator: DecisionOperator, q: Array, allowed: Flags | None, terminal: Flags | None) -> Array:
    """Return how much less than the best a step may get because the first of equally good actions is taken."""
    if not isinstance(operator, HardOperator):
        return np.zeros(len(q))
    loss = (
        operator.value(q, allowed)
        - np.take_along_axis(q, operator.choices(q, allowed)[:, None], axis=1)[:, 0]
    )
    if terminal is not None:
        loss = np.where(terminal, 0.0, loss)
    return np.where(terminal, 0.0, loss.max()) if terminal is not None else np.full(len(q), loss.max())


def first_values(process: StateProcess, discount: float | Array, operator: DecisionOperator) -> Array:
    """Return the same value everywhere, below all values, so that the first backup raises each of them."""
    least = float(np.min(operator.value(process.rewards, process.allowed)))
    most = float(np.max(discount))
    found = np.full(process.n_states, min(0.0, least) / (1.0 - most))
    if process.terminal is not None:
        found[process.terminal] = 0.0
    return found


class GaussSeidel:
    """Sweeps of a process under an operator, forwards and backwards in turns."""

    def __init__(self, process: DecisionProcess, discount: float | Array, operator: DecisionOperator) -> None:
        self.process, self.operator, self.sweeps = process, operator, 0
        self.discount = float(discount) if np.ndim(discount) == 0 else 1.0
        self._rows = process.transitions
        if np.ndim(discount):
            self._rows = scaled_rows(process, np.asarray(discount))
        self._allowed: Flags = np.zeros((0, 0), dtype=bool) if process.allowed is None else process.allowed
        self._rewards = np.ascontiguousarray(process.rewards)

    def run(self, values: Array, q: Array, sweeps: int) -> None:
        """Make some sweeps in place; Q is what the operator's policy is taken from."""
        if isinstance(self.operator, HardOperator):
            self.best(values, sweeps)
        elif isinstance(self.operator, SoftOperator):
            self.soft_best(values, self.operator, sweeps)
        else:
            self.under_policy(values, q, sweeps)

    def best(self, values: Array, sweeps: int) -> None:
        """Take the best action in each state."""
        from markovia.kernels.sparse_matrices.bellman_sweep import best_sweep

        rows = self._rows
        for _ in range(sweeps):
            best_sweep(
                rows.indptr, rows.indices, rows.data, self._rewards, self._allowed, self.discount, values,
                self.sweeps % 2 == 0,
            )  # fmt: skip
            self.sweeps += 1

    def soft_best(self, values: Array, operator: SoftOperator, sweeps: int) -> None:
        """Take the soft best in each state."""
        from markovia.kernels.sparse_matrices.bellman_sweep import soft_sweep

        rows, process = self._rows, self.process
        prior = np.atleast_2d(operator.log_prior(process.n_actions, process.allowed))
        ends: Flags = np.zeros(0, dtype=bool) if process.terminal is None else process.terminal
        for _ in range(sweeps):
            soft_sweep(
                rows.indptr, rows.indices, rows.data, self._rewards, self._allowed, ends, prior, operator.temperature,
                self.discount, values, self.sweeps % 2 == 0,
            )  # fmt: skip
            self.sweeps += 1

    def under_policy(self, values: Array, q: Array, sweeps: int) -> None:
        """Take the operator's policy for Q, as if its choice of words cost what it costs at Q."""
        from markovia.kernels.sparse_matrices.bellman_sweep import policy_sweep

        rows, rewards = self.policy_rows(q)
        for _ in range(sweeps):
            policy_sweep(
                rows.indptr, rows.indices, rows.data, rewards, self.discount, values, self.sweeps % 2 == 0
            )
            self.sweeps += 1

    def policy_rows(self, q: Array) -> tuple[Any, Array]:
        """Return the transitions (scaled by discounts of their own) and rewards of the operator's policy for Q.

        Rewards hold whatever the operator adds, such as entropy: they are what is missing to the mean of the future.
        """
        allowed, process = self.process.allowed, self.process
        if isinstance(self.operator, HardOperator):
            n = process.n_states
            picks = self.operator.choices(q, allowed)
            return self._rows[picks * n + np.arange(n)], self._rewards[np.arange(n), picks]
        policy = np.asarray(self.operator.policy(q, allowed))
        rows, mean = process.under(policy, self._rows)
        if isinstance(self.operator, EvaluatedOperator):
            return rows, mean
        expected = np.where(policy > 0.0, policy * q, 0.0).sum(axis=1)
        extra = np.asarray(self.operator.value(q, allowed)) - expected
        if process.terminal is not None:
            extra[process.terminal] = 0.0
        return rows, mean + extra


def scaled_rows(process: DecisionProcess, discount: Array) -> Any:
    """Return the transitions times the discount of each state and action."""
    from scipy import sparse

    rows = process.transitions
    scale = np.repeat(discount.T.reshape(-1), np.diff(rows.indptr))
    return sparse.csr_array((rows.data * scale, rows.indices, rows.indptr), shape=rows.shape)
