"""The door to inverse reinforcement learning: from a process in any form and demonstrations to rewards."""

from typing import Any

from markovia.errors import InvalidArgument
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.learning.control.demonstrations import Demonstrations, RewardFeatures
from markovia.learning.control.inverse import InverseReward, fitted_weights
from markovia.learning.control.reward_modules import trained_reward
from markovia.learning.control.reward_objectives import reward_objective
from markovia.models.temporal.dynamic.dynamic_decisions import flat_process
from markovia.models.temporal.dynamic.mdp import MDP
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.runtime.checks import DAMPING, check, check_choice, check_count, check_number


def inverse(
    process: Any,
    trajectories: Any,
    features: Any,
    *,
    model: str = "causal",
    horizon: int | None = None,
    discount: float | None = None,
    temperature: float = 1.0,
    reward: Any = None,
    l2: float = 0.0,
    max_iter: int = 500,
    time_limit: float | None = None,
    training: Any = None,
) -> InverseReward:
    """Return rewards that make demonstrations probable.

    Parameters
    ----------
    process
        An `MDP`, a `DynamicBayesianNetwork` whose decisions see the state, or a `DecisionProcess`; its rewards are not
        looked at.
    trajectories
        A list: for each trajectory a list of pairs (state, action), or a pair of lists of states and actions, with one
        state more where the last one was seen. Or `Transitions`.
    features
        (S, F) or (S, A, F) numbers; a function of state and action; or a mapping from names to tables or functions of
        one number.
    model
        "causal" or "trajectory" (`markovia.learning.control.inverse` tells of both).
    horizon
        How many steps lay ahead at the beginning of each trajectory; by default as many as it has. Shorter ones then
        end in a state that is terminal.
    discount
        What a reward one step later was worth. Without a horizon there was then no last step.
    temperature
        How soft the demonstrations are; it only sets the unit of the rewards.
    reward
        Instead of weights: a module, or a `Parameter` with one, from features to one number.
    l2
        A penalty: l2 / 2 times the squared weights, in the sum over trajectories. Perfect demonstrations need one.
    max_iter, time_limit
        Steps and seconds at most.
    training
        How a module is trained (`mk.Training`).

    Examples
    --------
    Three states in a row, of which the last is liked and the first is left:

    >>> left, right = [[1, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    >>> process = MDP([left, right], [0.0, 0.0, 0.0], actions=["left", "right"])
    >>> walks = [[(0, "right"), (1, "right"), (2, "right")], [(0, "right"), (1, "left"), (0, "right")]]
    >>> found = inverse(process, walks, {"place": [0.0, 1.0, 2.0]})
    >>> found.weights.round(4).tolist(), found.observed.round(4).tolist(), found.converged
    ([0.5706], [2.0], True)
    """
    flat = process_of(process)
    check_choice("model", model, ("causal", "trajectory"))
    check_number("temperature", temperature, positive=True)
    check_number("l2", l2)
    check_count("horizon", horizon, 1, none=True)
    if discount is not None:
        check("discount", discount, DAMPING)
        if model == "trajectory":
            raise InvalidArgument(
                "model='trajectory' weighs whole trajectories and has no discount; give horizon= or neither"
            )
    shown = Demonstrations.read(trajectories, flat)
    given = RewardFeatures.read(features, flat)
    objective = reward_objective(flat, shown, model, horizon, discount, temperature)
    if reward is not None:
        return trained_reward(objective, given, reward, training)
    return fitted_weights(objective, given, l2=l2, max_iter=max_iter, time_limit=time_limit)


def process_of(model: Any) -> DecisionProcess:
    """Return the process on numbered states that a model is."""
    if isinstance(model, DynamicBayesianNetwork):
        return flat_process(model)
    found = model.table if isinstance(model, MDP) else model
    if not isinstance(found, DecisionProcess):
        raise InvalidArgument(
            "an MDP, a DynamicBayesianNetwork with decisions or a DecisionProcess is needed, not "
            f"{type(model).__name__}"
        )
    return found
