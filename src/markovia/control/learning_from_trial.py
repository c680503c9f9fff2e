"""Learning what to do by trying it: one verb for environments of Gymnasium, objects like them, and decision processes."""

from typing import Any, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.result import Info
from markovia.learning.control.acting import InputScale
from markovia.learning.control.actor_critic import ActorCritic
from markovia.learning.control.deep_q import DeepQ
from markovia.learning.control.learned_policy import LearnedPolicy
from markovia.learning.control.model_based import PosteriorSampling, TableActor, posterior_sampling
from markovia.learning.control.policy_gradient import PolicyGradient
from markovia.learning.control.soft_actor_critic import SoftActorCritic
from markovia.learning.control.trial_loop import learn_by_trial
from markovia.learning.control.worlds import worlds_of
from markovia.runtime.checks import Choice, NumberRange, check, check_count
from markovia.runtime.clock import Stopwatch
from markovia.runtime.keyword_advice import unknown_argument
from markovia.runtime.seeds import Seed, generator

Method = ActorCritic | DeepQ | SoftActorCritic | PolicyGradient | PosteriorSampling
METHODS: dict[str, type[Method]] = {
    m.name: m for m in (ActorCritic, DeepQ, SoftActorCritic, PolicyGradient, PosteriorSampling)
}
STEPS = {
    "actor-critic": 100_000, "deep-q": 50_000, "soft-actor-critic": 20_000, "policy-gradient": 100_000,
    "posterior-sampling": 10_000,
}  # fmt: skip
"""Steps in the world, where nothing is said."""
Name = Literal["auto", "actor-critic", "deep-q", "soft-actor-critic", "policy-gradient", "posterior-sampling"]


def learn(
    env: Any, method: Name | Method = "auto", *, steps: int | None = None, horizon: int | None = None,
    target: float | None = None, seed: Seed = None, time_limit: float | None = None, progress: bool | None = None,
    **settings: Any,
) -> LearnedPolicy:  # fmt: skip
    """Learn by trial what to do in an environment.

    Parameters
    ----------
    env
        An environment of Gymnasium or its name, any object with its `reset`, `step` and spaces, a function that makes one,
        or a process (`mk.MDP`). Several agents try at once where copies can be made.
    method
        "actor-critic" (clipped), "deep-q", "policy-gradient" (also natural, soft), "posterior-sampling" (a model of counted
        states), or "soft-actor-critic" for actions that are numbers; or the settings of one. "auto" is soft actor-critic
        for numbers and actor-critic for actions that are counted.
    steps
        Steps in the world, of all agents together; by default what the method mostly needs for small tasks.
    horizon
        Steps after which the episodes of a process are cut.
    target
        A mean return of a hundred episodes in a row at which learning ends.
    seed
        What random numbers are made from.
    time_limit, progress
        Seconds after which learning ends with what is there, as after Ctrl-C; and whether to show a bar.
    settings
        Those of the method, such as `discount=`, `agents=` or `policy=mk.networks.mlp(...)`.

    Returns
    -------
    LearnedPolicy
        It can `act`, `evaluate`, `plot` and `save`.

    Raises
    ------
    InvalidArgument
        If the environment returns a number that is none.
    UnsupportedModel
        If the method is not for such actions or observations.

    Examples
    --------
    >>> import markovia as mk
    >>> line = mk.MDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[0.0, 1.0], [0, 0]], terminal=[1])
    >>> mk.control.learn(line, "posterior-sampling", steps=200, horizon=5, discount=0.9, seed=0).act(0)
    1
    """
    check_count("steps", steps, 1, none=True)
    check_count("horizon", horizon, 1, none=True)
    check("target", target, NumberRange(-np.inf, np.inf, open="both", said="a number", none=True))
    chosen, worlds = _chosen(env, method, horizon, settings)
    total = STEPS[chosen.name] if steps is None else steps
    watch, rng = Stopwatch(), generator(seed)
    if isinstance(chosen, PosteriorSampling):
        found = posterior_sampling(
            worlds, total, settings=chosen, seed=rng, target=target, time_limit=time_limit, progress=progress
        )
        info = Info(
            chosen.name, iterations=found.steps, seconds=watch.seconds, note=f"ended by {found.reason!r}"
        )
        actor = TableActor(found.plan.policy[:-1])
        return LearnedPolicy(actor, InputScale(worlds.spaces), found.history, info, found.posterior)
    outcome = learn_by_trial(
        chosen, worlds, total, seed=rng, target=target, time_limit=time_limit, progress=progress
    )
    info = Info(
        chosen.name, iterations=outcome.steps, seconds=watch.seconds, note=f"ended by {outcome.reason!r}",
        compile_seconds=watch.compile_seconds,
    )  # fmt: skip
    return LearnedPolicy(outcome.actor, outcome.inputs, outcome.history, info, outcome.parameters)


def _chosen(env: Any, method: Any, horizon: int | None, settings: dict[str, Any]) -> tuple[Method, Any]:
    """Return the settings of the method, and the environments side by side."""
    if isinstance(method, Method):
        if settings:
            raise InvalidArgument(f"method= has its settings already; say {next(iter(settings))}= there")
        return method, worlds_of(env, method.agents, horizon)
    check("method", method, Choice(("auto", *METHODS), "the settings of one"))
    if method == "auto":
        first = worlds_of(env, 1, horizon)
        method = "soft-actor-critic" if first.spaces.numbers else "actor-critic"
    kind: Any = METHODS[method]
    advice = unknown_argument(kind.__init__, settings, f"learn(method={method!r}, ...)")
    if advice is not None:
        raise advice
    chosen: Any = kind(**settings)
    return chosen, worlds_of(env, chosen.agents, horizon)
