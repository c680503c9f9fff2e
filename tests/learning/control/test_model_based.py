import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, TooLarge, UnsupportedModel
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.value_iteration import value_iteration
from markovia.learning.control.model_based import ProcessPosterior
from markovia.learning.control.trajectories import Transitions, collect
from trial_worlds import Aim, Corridor


def swim():
    """A river of six states: to the right is slow and well paid, to the left is easy and hardly paid."""
    moves = np.zeros((2, 6, 6))
    rewards = np.zeros((6, 2))
    for s in range(6):
        moves[0, s, max(s - 1, 0)] = 1.0
        moves[1, s, min(s + 1, 5)] += 0.35
        moves[1, s, s] += 0.6
        moves[1, s, max(s - 1, 0)] += 0.05
    rewards[0, 0], rewards[5, 1] = 0.005, 1.0
    return DecisionProcess.from_tables(moves, rewards, initial=0)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_plans_for_draws_find_the_best_policy_of_a_process(unit):
    process = swim()
    paid = DecisionProcess(process.transitions, unit * process.rewards, process.initial)
    policy = mk.control.learn(
        paid, "posterior-sampling", steps=4000, horizon=50, discount=0.95, reward_size=unit, seed=0
    )
    plan = value_iteration(process, 0.95)
    assert [policy.act(s) for s in range(6)] == plan.policy.argmax(axis=1).tolist() == [1] * 6


def test_draws_are_dirichlet_rows_around_their_mean():
    no = np.zeros(30, bool)
    after = np.r_[np.zeros(20, int), np.ones(10, int)]
    posterior = ProcessPosterior(2, 1, prior=0.5)
    posterior.add(Transitions(np.zeros(30, int), np.zeros(30, int), np.ones(30), after, no, no))
    rng = np.random.default_rng(0)
    rows = np.array([posterior.draw(rng).transitions.toarray()[0] for _ in range(1000)])
    shapes = np.array([20.5, 10.5, 0.5])
    mean = shapes / shapes.sum()
    assert np.allclose(rows.mean(axis=0), mean, atol=4 * np.sqrt(0.007 / 1000))
    assert np.allclose(rows.var(axis=0), mean * (1 - mean) / (1 + shapes.sum()), rtol=0.25)
    assert np.allclose(posterior.mean().transitions.toarray()[0], mean)


def test_the_posterior_settles_on_the_process():
    rng = np.random.default_rng(1)
    process = DecisionProcess.from_tables(rng.dirichlet(np.ones(3), size=(2, 3)), rng.standard_normal((3, 2)))
    posterior = ProcessPosterior(3, 2)
    posterior.add(collect(process, 2000, agents=20, seed=0))
    for found in (posterior.mean(), posterior.draw(seed=0)):
        near = found.transitions.toarray().reshape(2, 4, 4)[:, :3, :3]
        assert np.allclose(near, process.transitions.toarray().reshape(2, 3, 3), atol=0.03)
        assert np.allclose(found.rewards[:3], process.rewards, atol=1e-3)


def test_ends_of_episodes_are_learned_and_cuts_are_not():
    posterior = ProcessPosterior(2, 1, prior=1e-9)
    posterior.add(Transitions([0, 1], [0, 0], [1.0, 1.0], [1, 0], [True, False], [False, True]))
    v = value_iteration(posterior.mean(), 0.5).v
    assert v[:2] == pytest.approx([1.0, 1.5], abs=1e-6)


def test_the_same_seed_gives_the_same_policy_and_history():
    first, second = (mk.control.learn(Corridor, "posterior-sampling", steps=300, seed=3) for _ in range(2))
    assert first.history == second.history
    assert [first.act(s) for s in range(4)] == [second.act(s) for s in range(4)] == [1] * 4


def test_numbers_and_large_worlds_are_refused():
    with pytest.raises(UnsupportedModel, match="counts states and actions"):
        mk.control.learn(Aim, "posterior-sampling", steps=10)
    with pytest.raises(TooLarge, match="counts of all moves"):
        ProcessPosterior(10_000_000, 10)
    with pytest.raises(InvalidArgument, match="beyond the 1 and 1"):
        ProcessPosterior(1, 1).add(Transitions([1], [0], [0.0], [0], [False], [False]))
