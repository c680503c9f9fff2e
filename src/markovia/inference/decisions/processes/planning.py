"""Which solver plans for a process: by how long it lasts, what happens at a decision, and how large it is."""

from collections.abc import Mapping
from typing import Any

from markovia.errors import InvalidArgument, TooLarge, UnsupportedModel
from markovia.inference.decisions.processes.average_reward import average_reward
from markovia.inference.decisions.processes.bellman import DecisionOperator, HardOperator, SoftOperator
from markovia.inference.decisions.processes.decision_process import DecisionProcess, StateProcess
from markovia.inference.decisions.processes.finite_horizon import finite_horizon
from markovia.inference.decisions.processes.occupancy_program import UtilityLimit, occupancy_program
from markovia.inference.decisions.processes.plan import Plan
from markovia.inference.decisions.processes.policy_iteration import policy_iteration
from markovia.inference.decisions.processes.total_reward import total_reward
from markovia.inference.decisions.processes.value_iteration import value_iteration
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count
from markovia.runtime.memory_budget import readable

METHODS = ("auto", "value iteration", "policy iteration", "modified policy iteration", "linear program")
SMALL = 2_000
"""States up to which policies are evaluated exactly unasked."""
SWEEPS = 10
"""Sweeps of an evaluation in modified policy iteration."""


def check_time(horizon: int | None, discount: Any, average: bool) -> None:
    """Raise unless exactly one of horizon, discount and average is said.

    Examples
    --------
    >>> check_time(None, 0.9, True)
    Traceback (most recent call last):
        ...
    markovia.errors.InvalidArgument: say one of horizon=, discount= or average=True, not discount= and average=True
    """
    said = [
        n
        for n, given in (
            ("horizon=", horizon is not None),
            ("discount=", discount is not None),
            ("average=True", average),
        )
        if given
    ]
    if len(said) != 1:
        raise InvalidArgument(
            f"say one of horizon=, discount= or average=True{f', not {said[0]} and {said[1]}' if said else ''}"
        )
    if horizon is not None:
        check_count("horizon", horizon, 1)


def operator_of(temperature: float | None, entropy: bool, prior: Any = None) -> DecisionOperator:
    """Return what happens at a decision: the best, or the soft best at a temperature."""
    if temperature is not None:
        return SoftOperator(temperature, prior, entropy)
    if entropy or prior is not None:
        raise InvalidArgument("entropy= and prior= belong to a soft plan; say temperature= too")
    return HardOperator()


def plan_process(
    process: StateProcess,
    *,
    horizon: int | None = None,
    discount: float | Array | None = None,
    average: bool = False,
    temperature: float | None = None,
    entropy: bool = False,
    prior: Any = None,
    limits: Mapping[str, UtilityLimit] | None = None,
    final: Array | None = None,
    method: str = "auto",
    tolerance: float = 1e-8,
    time_limit: float | None = None,
    progress: bool | None = None,
) -> Plan:
    """Return the best plan for a process.

    Parameters
    ----------
    process
        A `DecisionProcess`, or a `FactoredProcess`.
    horizon, discount, average
        Exactly one: how many decisions; what a reward a step later is worth (1 for total rewards until the process is
        over); or rewards per step in the long run.
    temperature, entropy, prior
        For soft plans, as `SoftOperator` takes them.
    limits
        Utilities that a discounted plan must keep within limits, by name.
    final
        With a horizon: what states are worth after the last step.
    method
        One of "value iteration", "policy iteration", "modified policy iteration" and "linear program", for discounted
        plans. "auto" is policy iteration up to 2,000 states and value iteration above.
    tolerance, time_limit, progress
        As in `value_iteration`.

    Examples
    --------
    >>> process = DecisionProcess.from_tables([[[0.5, 0.5], [0, 1]], [[1, 0], [1, 0]]], [[5.0, 10.0], [-1.0, 2.0]])
    >>> [round(plan_process(process, **when).value, 4) for when in ({"horizon": 2}, {"discount": 0.5}, {"average": True})]
    [16.0, 16.0, 10.0]
    """
    check_time(horizon, discount, average)
    check_choice("method", method, METHODS)
    operator = operator_of(temperature, entropy, prior)
    if final is not None and horizon is None:
        raise InvalidArgument("final= is what states are worth after the last step; say horizon= too")
    total = isinstance(discount, int | float) and discount == 1
    if method != "auto" and (horizon is not None or average or total):
        raise InvalidArgument(f"method={method!r} is for discounts below one; leave method= out")
    if limits is not None and (
        discount is None or method not in ("auto", "linear program") or temperature is not None
    ):
        raise InvalidArgument(
            "limits= are kept by a discounted plan of method='linear program' without temperature="
        )
    if horizon is not None:
        return finite_horizon(process, horizon, operator=operator, final=final)
    if not isinstance(process, DecisionProcess):
        if average or limits or method not in ("auto", "value iteration") or total:
            n, k = process.rewards.shape
            raise TooLarge(
                f"this plan needs the table of all moves, {n:,} x {k} x {n:,} states ({readable(8.0 * n * n * k)}); "
                "a discount below one, or a horizon, does without",
                bytes=8.0 * n * n * k,
            )
        assert discount is not None
        return value_iteration(
            process,
            discount,
            operator=operator,
            tolerance=tolerance,
            time_limit=time_limit,
            progress=progress,
        )
    if average or total:
        if temperature is not None:
            raise UnsupportedModel("a soft plan has a horizon or a discount below one; say one of them")
        return (
            average_reward(process, tolerance=tolerance, time_limit=time_limit, progress=progress)
            if average
            else total_reward(process)
        )
    assert discount is not None
    if limits is not None or method == "linear program":
        if temperature is not None:
            raise UnsupportedModel("the linear program has no temperature; take method='policy iteration'")
        return occupancy_program(process, discount, limits=limits, time_limit=time_limit)
    if method == "auto":
        method = "policy iteration" if process.n_states <= SMALL else "value iteration"
    if method == "value iteration":
        return value_iteration(
            process,
            discount,
            operator=operator,
            tolerance=tolerance,
            time_limit=time_limit,
            progress=progress,
        )
    return policy_iteration(
        process, discount, operator=operator, sweeps=SWEEPS if method.startswith("modified") else None, tolerance=tolerance,
        time_limit=time_limit, progress=progress,
    )  # fmt: skip
