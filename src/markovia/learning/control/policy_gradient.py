"""Policy gradients: REINFORCE with a baseline, the natural gradient, and both with a price on leaving a prior (soft).

The gradient of the expected return is the mean of grad log pi(a | s) times what followed; a baseline that does not depend on
the action leaves the mean as it is. The natural gradient divides by the Fisher information of the policy, so that it does
not depend on how the policy is written; it is found by conjugate gradients on products, and the step is as long as the
divergence of the new policy from the old may be. A temperature takes tau log(pi / pi0) off each reward, pi0 uniform.
For policies with a logit for each state and action of a known process all is in closed form (`exact_policy_gradient`).

References: Williams (1992); Sutton et al. (2000); Kakade (2002); Peters and Schaal (2008); Schulman et al. (2015) for
products and steps. Cost: one look at each step; natural 2 + `products` of them; exact two linear systems of the states.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.functions.parameter import is_fraction
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.learning.control.acting import forward_pass, log_softmax, mapped, network
from markovia.learning.control.actor_critic import LawActor, Share, judged
from markovia.learning.control.policy_laws import ActionLaw, law_of
from markovia.learning.control.trajectories import Transitions
from markovia.learning.control.trial_loop import Beginning, TrialStream
from markovia.learning.control.worlds import WorldSpaces
from markovia.optimise.players import Player
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NOT_NEGATIVE, Count, NumberRange, Positive, check, check_options
from markovia.runtime.libraries import eqx, jax, jnp, optax, sparse, sparse_solvers


@dataclass(frozen=True, kw_only=True)
class PolicyGradient:
    """REINFORCE with a learned baseline, and its natural and soft kin ("policy-gradient").

    Parameters
    ----------
    natural
        Whether the gradient is divided by the Fisher information.
    temperature
        The price of leaving the uniform policy, in units of reward.
    agents, stretch
        Agents side by side, and steps of all of them together for one move of the policy.
    discount
        What is left of a reward one step later.
    learning_rate
        The size of moves of the baseline, and of the policy unless the gradient is natural.
    divergence
        How far the policy may go in a natural step.
    products, damping
        Steps of conjugate gradients, and what is added to the Fisher information.
    baseline_moves
        Moves of the baseline after each stretch.
    hidden, policy, critic
        The width of the default networks, or recipes, modules or `mk.Parameter` in their place.

    Examples
    --------
    >>> PolicyGradient(natural=True).divergence
    0.01
    """

    natural: bool = False
    temperature: Annotated[float, NOT_NEGATIVE] = 0.0
    agents: Count = 8
    stretch: Count = 1024
    discount: Annotated[float, Share] = 0.99
    learning_rate: Positive = 1e-2
    divergence: Positive = 0.01
    products: Count = 10
    damping: Annotated[float, NumberRange(0.0, np.inf, open="high", said="a number, 0 or more")] = 0.01
    baseline_moves: Count = 20
    hidden: Count = 64
    policy: Any = None
    critic: Any = None
    name: ClassVar[str] = "policy-gradient"
    warm_up: ClassVar[int] = 256

    def __post_init__(self) -> None:
        check_options(self)

    def begin(self, spaces: WorldSpaces, epochs: int, seed: int) -> Beginning:
        """Return both networks and the players that move them."""
        law = law_of(spaces)
        parameters = law.begin(self.policy, spaces.features, seed, self.hidden)
        names = tuple(parameters)
        parameters["critic"] = network(
            self.critic, spaces.features, 1, seed + 1, hidden=self.hidden, activation="tanh"
        )
        loss: Any = ScoreLoss(law)
        rule = Training(learning_rate=self.learning_rate, clip=1.0).optimiser(None)
        if self.natural:
            loss = NaturalLoss(law, names, self.divergence, self.products, self.damping)
            rule = optax.sgd(1.0)
        baseline = Training(learning_rate=min(self.learning_rate, 1e-2)).optimiser(None)
        players = [
            Player(loss, names, rule),
            Player(baseline_loss, ("critic",), baseline, repeats=self.baseline_moves),
        ]
        return Beginning(parameters, {}, players, rule)

    def actor(self, parameters: dict[str, Any], trial: TrialStream) -> LawActor:
        """Return what acts."""
        passes = forward_pass(parameters["policy"]), forward_pass(parameters["critic"])
        return LawActor(law_of(trial.spaces), *passes, parameters.get("log_scale"))

    def batches(self, trial: TrialStream, fresh: Transitions) -> dict[str, Any]:
        """Return the whole stretch, with the price of the policy taken off the rewards."""
        if self.temperature:
            flat = fresh.flat()
            logs = trial.actor.log_probs(trial.inputs(flat.state), flat.action)
            price = self.temperature * (logs - trial.actor.law.log_prior).reshape(fresh.reward.shape)
            fresh = Transitions(
                fresh.state,
                fresh.action,
                fresh.reward - price,
                fresh.after,
                fresh.terminated,
                fresh.truncated,
            )
        return judged(trial, fresh, self.discount, 1.0)


def score_surrogate(log_probs: Any, advantages: Any, weights: Any = None) -> Any:
    """Return what has the gradient of the expected return: mean log probabilities times what followed, held fixed.

    Parameters
    ----------
    log_probs
        log pi(a | s), as JAX traces it.
    advantages
        What followed, less a baseline.
    weights
        How much each counts; equally by default.

    Examples
    --------
    >>> float(score_surrogate(np.log([0.5, 0.5]), np.array([2.0, 0.0])))
    -0.693147...
    """
    held = jax.lax.stop_gradient(jnp.asarray(advantages))
    return jnp.mean(log_probs * held) if weights is None else jnp.sum(weights * log_probs * held)


def natural_direction(divergence: Any, parameters: Any, gradient: Any, products: int, damping: float) -> Any:
    """Return the gradient divided by the Fisher information, by conjugate gradients.

    Parameters
    ----------
    divergence
        A function of parameters, such as the mean divergence of their policy from the present one; its second derivative
        at the present parameters is the Fisher information.
    parameters, gradient
        Trees of arrays.
    products, damping
        As in `PolicyGradient`.
    """
    slope = jax.grad(divergence)

    def fisher(vector: Any) -> Any:
        product = jax.jvp(slope, (parameters,), (vector,))[1]
        return jax.tree.map(lambda p, v: p + damping * v, product, vector)

    exact = max(float(np.finfo(leaf.dtype).eps) for leaf in jax.tree.leaves(gradient))
    solve: Any = jax.scipy.sparse.linalg.cg
    found, _ = solve(fisher, gradient, maxiter=products, tol=exact)
    return found


@dataclass(frozen=True)
class ScoreLoss:
    """Minus the surrogate of the policy gradient, with advantages in units of their spread."""

    law: ActionLaw

    def __call__(self, parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
        """Return the loss."""
        rows = batch.rows
        logs = self.law.log_probs(parameters, rows["input"], rows["action"])
        return -score_surrogate(logs, standardised(rows["advantage"])), memory


@dataclass(frozen=True)
class NaturalLoss:
    """A loss whose gradient is minus the natural step: its length is set by the divergence that is allowed."""

    law: ActionLaw
    names: tuple[str, ...]
    divergence: float
    products: int
    damping: float

    def __call__(self, parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
        """Return the loss."""
        rows = batch.rows
        own, rest = eqx.partition({n: parameters[n] for n in self.names}, is_fraction)
        held = jax.lax.stop_gradient(own)

        def gain(arrays: Any) -> Any:
            logs = self.law.log_probs(eqx.combine(arrays, rest), rows["input"], rows["action"])
            return score_surrogate(logs, standardised(rows["advantage"]))

        def away(arrays: Any) -> Any:
            fixed, moved = eqx.combine(held, rest), eqx.combine(arrays, rest)
            return jnp.mean(self.law.divergence(fixed, moved, rows["input"]))

        value, slope = jax.value_and_grad(gain)(held)
        # the length of the gradient does not count, and a tiny one would vanish in the products
        largest = jnp.max(jnp.stack([jnp.max(jnp.abs(g)) for g in jax.tree.leaves(slope)]))
        slope = jax.tree.map(lambda g: g / jnp.where(largest > 0.0, largest, 1.0), slope)
        direction = natural_direction(away, held, slope, self.products, self.damping)
        rise = tree_product(direction, slope)
        size = jnp.where(rise > 0.0, jnp.sqrt(2 * self.divergence / jnp.where(rise > 0.0, rise, 1.0)), 0.0)
        step = jax.tree.map(lambda d: jax.lax.stop_gradient(size * d), direction)
        return -value - tree_product(jax.tree.map(lambda a, b: a - b, own, held), step), memory


def baseline_loss(parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
    """Return the mean squared error of the baseline."""
    rows = batch.rows
    return jnp.mean((mapped(parameters["critic"], rows["input"])[:, 0] - rows["target"]) ** 2), memory


def standardised(advantage: Any) -> Any:
    """Return advantages less their mean, in units of their spread."""
    moved = advantage - jnp.mean(advantage)
    spread = jnp.std(moved)
    return moved / jnp.where(spread > 0.0, spread, 1.0)


def tree_product(left: Any, right: Any) -> Any:
    """Return the sum of products of all numbers of two trees."""
    return sum(jnp.sum(a * b) for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True))


# -- a logit for each state and action of a known process --------------------------------------------------------------


class ExactGradient(NamedTuple):
    """What a softmax policy is worth from the first state on, and how that changes with its logits, (S, A)."""

    value: float
    gradient: Array


def exact_policy_gradient(
    process: DecisionProcess, logits: Any, *, discount: float, temperature: float = 0.0, natural: bool = False
) -> ExactGradient:
    """Return the value of a softmax policy with a logit for each state and action, and its gradient, in closed form.

    Parameters
    ----------
    process
        What the policy acts in.
    logits
        (S, A); those of forbidden actions do not count.
    discount
        What is left of a reward one step later.
    temperature
        The price of leaving the uniform policy over what is allowed.
    natural
        Whether the gradient is divided by the exact Fisher information: the shortest such vector, which is the advantage
        less its mean over the actions of a state.

    Examples
    --------
    >>> bandit = DecisionProcess.from_tables(np.ones((2, 1, 1)), [[1.0, 0.0]])
    >>> found = exact_policy_gradient(bandit, np.zeros((1, 2)), discount=0.0)
    >>> found.value, found.gradient.tolist()
    (0.5, [[0.25, -0.25]])
    """
    check("discount", discount, Share)
    check("temperature", temperature, NOT_NEGATIVE)
    given = np.asarray(logits, np.float64)
    n = process.n_states
    if given.shape != (n, process.n_actions) or not np.isfinite(given).all():
        raise InvalidArgument(
            f"logits= are finite numbers of shape {(n, process.n_actions)}, one for each state and action"
        )
    allowed = np.ones(given.shape, bool) if process.allowed is None else process.allowed
    logs = log_softmax(np.where(allowed, given, -np.inf))
    policy = np.exp(logs)
    price = temperature * np.where(allowed, logs + np.log(allowed.sum(axis=1))[:, None], 0.0)
    if process.terminal is not None:
        price[process.terminal] = 0.0
    moves, rewards = process.under(policy)
    system = sparse.csc_array(sparse.eye_array(n) - discount * moves)
    solve = sparse_solvers.splu(system)
    v = solve.solve(rewards - (policy * price).sum(axis=1))
    visits = solve.solve(process.first, trans="T")
    advantage = np.where(allowed, process.q(v, discount) - price - v[:, None], 0.0)
    if process.terminal is not None:
        advantage[process.terminal] = 0.0
    value = float(process.first @ v)
    if not natural:
        return ExactGradient(value, visits[:, None] * policy * advantage)
    mean = advantage.sum(axis=1, keepdims=True) / allowed.sum(axis=1, keepdims=True)
    return ExactGradient(value, np.where(allowed & (visits > 0.0)[:, None], advantage - mean, 0.0))
