from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from markovia.errors import InvalidArgument
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.learning.control.policy_gradient import (
    NaturalLoss,
    PolicyGradient,
    exact_policy_gradient,
    natural_direction,
    score_surrogate,
)
from markovia.learning.control.policy_laws import CountedActions
from markovia.learning.control.trial_loop import TrialStream
from markovia.learning.control.worlds import SimulatedProcess
from markovia.optimise.row_batches import Batch
from markovia.runtime.double_precision import x64

S, A = 3, 2
RNG = np.random.default_rng(0)
FIRST = RNG.dirichlet(np.ones(S))
MOVES = RNG.dirichlet(np.ones(S), size=(A, S))
REWARDS = RNG.standard_normal((2, S, A))
"""Rewards of the first and of the second step."""


class Table(eqx.Module):
    """A logit for each state and action."""

    logits: jax.Array

    def __call__(self, x):
        return x @ self.logits


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def enumerated(logits, temperature=0.0):
    """Return each trajectory of two steps: states, actions, probability, and rewards after the price."""
    policy = softmax(logits)
    price = temperature * np.log(policy * A)
    found = []
    for s, a, t, b in product(range(S), range(A), range(S), range(A)):
        chance = FIRST[s] * policy[s, a] * MOVES[a, s, t] * policy[t, b]
        found.append(
            ((s, t), (a, b), chance, (REWARDS[0, s, a] - price[s, a], REWARDS[1, t, b] - price[t, b]))
        )
    return found


def expected_return(logits, temperature=0.0):
    return sum(chance * sum(rewards) for _, _, chance, rewards in enumerated(logits, temperature))


def differences(function, at, step=1e-6):
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        move = np.zeros_like(at)
        move[place] = step
        found[place] = (function(at + move) - function(at - move)) / (2 * step)
    return found


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("baseline", [0.0, 5.0])
def test_the_score_gradient_of_all_trajectories_is_the_difference_of_enumerated_returns(
    temperature, baseline
):
    logits = np.random.default_rng(1).standard_normal((S, A))
    rows, actions, ahead, weights = [], [], [], []
    for states, chosen, chance, rewards in enumerated(logits, temperature):
        for k in range(2):
            rows.append(np.eye(S)[states[k]])
            actions.append(chosen[k])
            ahead.append(sum(rewards[k:]) - baseline * (1 + states[k]))
            weights.append(chance)
    law = CountedActions(A)
    with x64():

        def surrogate(table):
            logs = law.log_probs({"policy": lambda x: x @ table}, jnp.array(rows), jnp.array(actions))
            return score_surrogate(logs, np.array(ahead), np.array(weights))

        found = np.asarray(jax.jit(jax.grad(surrogate))(jnp.asarray(logits)))
    expected = differences(lambda at: expected_return(at, temperature), logits)
    assert np.allclose(found, expected, atol=1e-8)


def test_the_natural_direction_is_the_gradient_over_the_enumerated_fisher_information():
    logits = np.random.default_rng(2).standard_normal((S, A))
    policy, gradient = softmax(logits), differences(expected_return, logits)
    visits = FIRST + FIRST @ np.einsum("sa,ast->st", policy, MOVES)
    fisher = np.zeros((S * A, S * A))
    for s, a in product(range(S), range(A)):
        score = np.zeros((S, A))
        score[s] = np.eye(A)[a] - policy[s]
        fisher += visits[s] * policy[s, a] * np.outer(score.ravel(), score.ravel())
    expected = (np.linalg.pinv(fisher) @ gradient.ravel()).reshape(S, A)
    law = CountedActions(A)
    with x64():
        fixed = {"policy": lambda x: x @ jnp.asarray(logits)}

        def divergence(table):
            return jnp.sum(visits * law.divergence(fixed, {"policy": lambda x: x @ table}, jnp.eye(S)))

        direct = jax.jit(lambda at, slope: natural_direction(divergence, at, slope, 6, 0.0))
        found = np.asarray(direct(jnp.asarray(logits), jnp.asarray(gradient)))
    # shifts of all logits of a state change nothing, and are left out by the pseudo-inverse
    assert np.allclose(found - found.mean(axis=1, keepdims=True), expected, atol=1e-8)


def random_process(seed, terminal=False, allowed=False):
    rng = np.random.default_rng(seed)
    moves, rewards = rng.dirichlet(np.ones(4), size=(3, 4)), rng.standard_normal((4, 3))
    ends = np.arange(4) == 3 if terminal else None
    may = None
    if allowed:
        may = np.ones((4, 3), bool)
        may[0, 1] = may[2, 0] = False
    return DecisionProcess.from_tables(
        moves, rewards, initial=rng.dirichlet(np.ones(4)), terminal=ends, allowed=may
    )


@pytest.mark.parametrize("temperature", [0.0, 0.5])
@pytest.mark.parametrize(("terminal", "allowed"), [(False, False), (True, False), (False, True)])
def test_the_exact_gradient_is_the_difference_of_exact_values(temperature, terminal, allowed):
    process = random_process(3, terminal, allowed)
    logits = np.random.default_rng(4).standard_normal((4, 3))

    def value(at):
        return exact_policy_gradient(process, at, discount=0.9, temperature=temperature).value

    found = exact_policy_gradient(process, logits, discount=0.9, temperature=temperature)
    assert np.allclose(found.gradient, differences(value, logits), atol=1e-7)


def test_the_exact_value_is_the_sum_of_many_steps():
    process, logits = random_process(5), np.random.default_rng(6).standard_normal((4, 3))
    policy = softmax(logits)
    moves = np.einsum("sa,ast->st", policy, process.transitions.toarray().reshape(3, 4, 4))
    paid = (policy * (process.rewards - 0.3 * np.log(3 * policy))).sum(axis=1)
    at, total = process.initial, 0.0
    for t in range(400):
        total += 0.9**t * at @ paid
        at = at @ moves
    found = exact_policy_gradient(process, logits, discount=0.9, temperature=0.3)
    assert found.value == pytest.approx(total, abs=1e-12)


def test_the_exact_natural_gradient_is_the_gradient_over_the_fisher_information():
    process, logits = random_process(7), np.random.default_rng(8).standard_normal((4, 3))
    policy = softmax(logits)
    moves = np.einsum("sa,ast->st", policy, process.transitions.toarray().reshape(3, 4, 4))
    visits = np.linalg.solve(np.eye(4) - 0.8 * moves.T, process.initial)
    fisher = np.zeros((12, 12))
    for s in range(4):
        block = visits[s] * (np.diag(policy[s]) - np.outer(policy[s], policy[s]))
        fisher[3 * s : 3 * s + 3, 3 * s : 3 * s + 3] = block
    plain = exact_policy_gradient(process, logits, discount=0.8)
    natural = exact_policy_gradient(process, logits, discount=0.8, natural=True)
    assert np.allclose(natural.gradient.ravel(), np.linalg.pinv(fisher) @ plain.gradient.ravel(), atol=1e-9)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_a_stretch_of_many_agents_says_points_along_the_exact_gradient(temperature):
    moves = np.random.default_rng(9).dirichlet(np.ones(2), size=(2, 2))
    process = DecisionProcess.from_tables(moves, [[1.0, 0.0], [0.5, 2.0]], initial=[0.3, 0.7])
    discount = 0.5
    agents = 4000
    logits = np.array([[1.5, -1.5], [-1.0, 1.0]], np.float32)
    method = PolicyGradient(
        discount=discount, temperature=temperature, policy=Table(jnp.asarray(logits)), stretch=agents * 12
    )
    trial = TrialStream(
        method, SimulatedProcess(process, agents, horizon=12), np.random.default_rng(10), 10**6
    )
    start = method.begin(trial.spaces, 1, 0)
    trial.actor = method.actor(start.parameters, trial)
    first = trial.runner.collect(trial._explore, 12)
    rows = method.batches(trial, first)
    weights = (discount ** np.arange(12))[:, None] * np.ones((12, agents))
    law = CountedActions(2)

    def surrogate(table):
        logs = law.log_probs({"policy": lambda x: x @ table}, rows["input"], rows["action"])
        return score_surrogate(logs, rows["advantage"], weights.ravel() / agents)

    found = np.asarray(jax.jit(jax.grad(surrogate))(jnp.asarray(logits, np.float32)))
    expected = exact_policy_gradient(process, logits, discount=discount, temperature=temperature).gradient
    along = (found * expected).sum() / np.linalg.norm(found) / np.linalg.norm(expected)
    assert along > 0.99


@pytest.mark.slow
def test_a_natural_step_goes_as_far_as_it_may():
    law, rng = CountedActions(3), np.random.default_rng(11)
    parameters = law.begin(None, 2, 0, 8)
    rows = {
        "input": rng.standard_normal((200, 2)).astype(np.float32),
        "action": rng.integers(3, size=200),
        "advantage": rng.standard_normal(200).astype(np.float32),
    }
    loss = NaturalLoss(law, ("policy",), 0.01, 30, 1e-3)
    arrays, rest = eqx.partition(parameters, eqx.is_inexact_array)
    slope = jax.jit(jax.grad(lambda a: loss(eqx.combine(a, rest), {}, None, Batch(rows, None))[0]))(arrays)
    moved = eqx.combine(jax.tree.map(lambda a, g: a - g, arrays, slope), rest)
    far = float(jnp.mean(law.divergence(parameters, moved, rows["input"])))
    assert 0.005 < far < 0.015


def test_logits_of_another_shape_are_refused():
    with pytest.raises(InvalidArgument, match=r"shape \(4, 3\)"):
        exact_policy_gradient(random_process(0), np.zeros((3, 4)), discount=0.9)
