"""Deciding in processes: which problem the decisions' sights make of it, and who solves that.

- The decisions see the state: a Markov decision process on the joint states of what they see. Small ones are solved
  with the table of all moves, large ones by backward messages.
- They see something of it, and remember (`memory="perfect"`): a partially observed process, planned for by beliefs.
- They see something of it and remember nothing, for so many steps: the unrolled network's own `decide`.
- They are numbers: a linear system with quadratic costs.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.factored_process import FLAT_ENTRIES, FactoredProcess
from markovia.inference.decisions.processes.plan import Plan
from markovia.inference.decisions.processes.planning import METHODS, check_time, plan_process
from markovia.models.temporal.dynamic.decision_steps import (
    DecisionSteps,
    decision_steps,
    factored_process,
    is_arrival,
)
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice

if TYPE_CHECKING:
    from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork

MEMORIES = ("drawn", "perfect")


def decide_process(
    process: "DynamicBayesianNetwork",
    *,
    horizon: int | None = None,
    discount: float | None = None,
    average: bool = False,
    temperature: float | None = None,
    entropy: bool = False,
    memory: str = "drawn",
    method: str = "auto",
    tolerance: float = 1e-8,
    time_limit: float | None = None,
    progress: bool | None = None,
) -> Any:
    """Answer `decide` of a dynamic network; its docstring has the arguments."""
    check_time(horizon, discount, average)
    check_choice("memory", memory, MEMORIES)
    if _decides_numbers(process):
        from markovia.inference.decisions.numbers.linear_quadratic import regulate
        from markovia.models.temporal.dynamic.linear_quadratic_reading import linear_quadratic_of

        _refuse_options("a linear system", temperature, method)
        system = linear_quadratic_of(process)
        if system.C is not None and memory != "perfect":
            raise UnsupportedModel(
                "a decision that sees a noisy number and forgets what it saw before has no closed form; say "
                "memory='perfect', or let it see the state"
            )
        return regulate(system, horizon=horizon, discount=discount, average=average)
    steps = decision_steps(process)
    if not steps.unseen:
        check_choice("method", method, METHODS)
        return _plan(
            steps, horizon=horizon, discount=discount, average=average, temperature=temperature, entropy=entropy,
            method=method, tolerance=tolerance, time_limit=time_limit, progress=progress,
        )  # fmt: skip
    if memory == "perfect":
        from markovia.inference.decisions.beliefs.belief_plan import solve
        from markovia.models.temporal.dynamic.partially_observed_reading import partially_observed_of

        if temperature is not None or average:
            raise UnsupportedModel(
                f"{steps.unseen}; plans by beliefs have a horizon or a discount, and no temperature"
            )
        return solve(
            partially_observed_of(process), horizon=horizon, discount=discount, method=None if method == "auto" else method,
            tolerance=tolerance, progress=progress, **({} if time_limit is None else {"time_limit": time_limit}),
        )  # fmt: skip
    if horizon is None:
        raise UnsupportedModel(
            f"{steps.unseen}, so the decisions do not see the state; say memory='perfect' to let them remember, or "
            "horizon= for a policy of each step"
        )
    _refuse_options(f"decisions that do not see the state ({steps.unseen})", temperature, method)
    unrolled: Any = process.unroll(horizon)
    return unrolled.decide(memory=memory)


def state_process(process: "DynamicBayesianNetwork") -> FactoredProcess:
    """Return the decision process on what the decisions see, or raise where that is not the state."""
    steps = decision_steps(process)
    if steps.unseen:
        raise UnsupportedModel(f"{steps.unseen}, so the decisions do not see the state; let them see it")
    return factored_process(steps)


def flat_process(process: "DynamicBayesianNetwork") -> DecisionProcess:
    """Return the decision process on what the decisions see, with the table of all moves."""
    return state_process(process).flat()


def stationary_rules(process: "DynamicBayesianNetwork", plan: Plan) -> dict[str, Array]:
    """Return a plan that is the same at all steps as a table for each decision, axes `(*sights, states)`.

    Raises
    ------
    UnsupportedModel
        If the plan changes from step to step, or draws several decisions together.
    """
    if plan.horizon is not None:
        raise UnsupportedModel(
            "the plan is another one at each step; follow it in the network of all steps: unroll(steps).decide()"
        )
    network = process.transition
    decisions = network.decisions
    cards = [len(network.variable(d)) for d in decisions]
    seen = [len(network.variable(n)) for n in plan.names]
    policy = plan.policy.reshape(*seen, -1)
    if len(decisions) > 1 and not ((policy == 0) | (policy == 1)).all():
        raise UnsupportedModel("a plan that draws several decisions together is no table for each of them")
    joint = policy.reshape(*seen, *cards)
    axes = len(seen)
    found = {}
    for k, d in enumerate(decisions):
        own = joint.sum(axis=tuple(axes + j for j in range(len(cards)) if j != k))
        sights = network.parents(d)
        others = tuple(i for i, n in enumerate(plan.names) if n not in sights)
        own = own.max(axis=others) if others else own  # what is not seen is the same for all its states
        left = [n for n in plan.names if n in sights]
        found[d] = own.transpose([*(left.index(n) for n in sights), len(left)])
    return found


def playable_process(process: "DynamicBayesianNetwork") -> Any:
    """Return what an environment can play: a decision process, or a partially observed one."""
    if not decision_steps(process).unseen:
        return flat_process(process)
    from markovia.models.temporal.dynamic.partially_observed_reading import partially_observed_of

    return partially_observed_of(process)


def _plan(steps: DecisionSteps, *, horizon: int | None, discount: float | None, **options: Any) -> Plan:
    """Return the plan of a process whose decisions see the state."""
    weight = 1.0 if discount is None else discount
    arrives = any(is_arrival(steps.transition[n]) for n in steps.utilities)
    whole = factored_process(steps)
    if arrives:  # what a move earns on arrival is earned a step later
        here = factored_process(steps, arrivals=False)
        whole.rewards = here.rewards + weight * (whole.rewards - here.rewards)
    needs_all = options["average"] or discount == 1 or options["method"] not in ("auto", "value iteration")
    flat: Any = whole
    if whole.flat_entries <= FLAT_ENTRIES or (needs_all and horizon is None):
        flat = whole.flat()
    if horizon is None or not arrives:
        return _named(plan_process(flat, horizon=horizon, discount=discount, **options), steps)
    last = plan_process(here, horizon=1, discount=None, **options)
    if horizon == 1:
        return _named(last, steps)
    plan = plan_process(flat, horizon=horizon - 1, discount=None, final=last.v[0], **options)
    v, q = np.concatenate([plan.v, last.v]), np.concatenate([plan.q, last.q])
    return _named(Plan(plan.process, plan.value, plan.bound, v, q, plan.info, plan.operator), steps)


def _named(plan: Plan, steps: DecisionSteps) -> Plan:
    return Plan(
        plan.process,
        plan.value,
        plan.bound,
        plan.v,
        plan.q,
        plan.info,
        plan.operator,
        plan.chosen,
        tuple(steps.sights),
    )


def _decides_numbers(process: "DynamicBayesianNetwork") -> bool:
    networks = process.ready()
    return any(
        networks[-1][n].kind == "decision" and isinstance(networks[-1].variable(n), Quantity)
        for n in process.variables
    )


def _refuse_options(what: str, temperature: float | None, method: str) -> None:
    if temperature is not None:
        raise UnsupportedModel(f"temperature= is for decisions that see the state, not for {what}")
    if method != "auto":
        raise InvalidArgument(f"method= is for decisions that see the state, not for {what}; leave it out")
