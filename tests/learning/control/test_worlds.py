import signal

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, TooLarge, UnsupportedModel
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.learning.control.replay import ReplayMemory
from markovia.learning.control.trajectories import Transitions, collect
from markovia.learning.control.worlds import worlds_of
from trial_worlds import Aim, Corridor, Counted


def test_agents_walk_a_process_as_its_table_says():
    rng = np.random.default_rng(0)
    process = DecisionProcess.from_tables(
        rng.dirichlet(np.ones(4), size=(2, 4)),
        rng.standard_normal((4, 2)),
        initial=[0.1, 0.2, 0.7, 0],
        terminal=[3],
    )
    rows = collect(process, 2000, agents=50, seed=1)
    assert np.array_equal(rows.reward, process.rewards[rows.state, rows.action])
    assert np.array_equal(rows.terminated, rows.after == 3)
    assert not rows.truncated.any()
    table = process.transitions.toarray().reshape(2, 4, 4)
    for s in range(3):
        for a in range(2):
            here = rows.after[(rows.state == s) & (rows.action == a)]
            shares = np.bincount(here, minlength=4) / len(here)
            assert np.allclose(shares, table[a, s], atol=4 * 0.5 / np.sqrt(len(here)))
    begins = rows.state[np.flatnonzero(rows.terminated[:-1]) + 1]
    assert np.allclose(
        np.bincount(begins, minlength=3) / len(begins), [0.1, 0.2, 0.7], atol=4 * 0.5 / np.sqrt(len(begins))
    )


def test_a_horizon_cuts_episodes_and_ends_none():
    process = DecisionProcess.from_tables(np.ones((1, 1, 1)), [[1.0]])
    rows = collect(process, 10, agents=2, horizon=4, seed=0)
    assert np.flatnonzero(rows.truncated).tolist() == [3, 7, 13, 17]
    assert not rows.terminated.any()


def test_what_was_seen_last_is_kept_and_episodes_begin_anew():
    rows = collect(lambda: Corridor(3), 6, act=lambda states, rng: np.ones(len(states), int), seed=0)
    assert rows.state.tolist() == [0, 1, 0, 1, 0, 1]
    assert rows.after.tolist() == [1, 2, 1, 2, 1, 2]
    assert rows.terminated.tolist() == [False, True] * 3


def test_an_environment_that_cannot_be_copied_stays_alone_and_a_maker_makes_many():
    assert worlds_of(Corridor(), 5).n == 1
    assert worlds_of(Corridor, 5).n == 5


def test_states_and_actions_may_be_counted_from_another_number():
    class Shifted(Corridor):
        def __init__(self):
            super().__init__()
            self.observation_space, self.action_space = Counted(5, 10), Counted(2, 1)

        def reset(self, *, seed=None):
            at, info = super().reset(seed=seed)
            return at + 10, info

        def step(self, action):
            assert action in (1, 2)
            at, *rest = super().step(action - 1)
            return at + 10, *rest

    policy = mk.control.learn(Shifted, "posterior-sampling", steps=300, seed=0)
    assert [policy.act(s) for s in (10, 11, 12, 13)] == [2] * 4
    with pytest.raises(InvalidArgument, match="one of 5 states, not 3"):
        policy.act(3)


def test_the_same_seed_collects_the_same_rows():
    first, second = (collect(Aim, 20, agents=2, seed=7) for _ in range(2))
    assert np.array_equal(first.state, second.state)
    assert np.array_equal(first.action, second.action)


def test_an_interrupt_keeps_what_was_learned():
    class Interrupting(Corridor):
        left = 900

        def step(self, action):
            Interrupting.left -= 1
            if Interrupting.left == 0:
                signal.raise_signal(signal.SIGINT)
            return super().step(action)

    policy = mk.control.learn(Interrupting, "policy-gradient", steps=100_000, stretch=256, hidden=16, seed=0)
    assert "interrupted" in policy.info.note
    assert policy.info.iterations < 2000
    assert policy.act(0) in (0, 1)


def test_processes_with_forbidden_actions_or_without_an_open_state_are_refused():
    table = np.ones((2, 1, 1))
    with pytest.raises(UnsupportedModel, match="some actions are forbidden"):
        mk.control.learn(DecisionProcess.from_tables(table, [[0.0, 1.0]], allowed=[[True, False]]))
    with pytest.raises(InvalidArgument, match="every state of the process is terminal"):
        mk.control.learn(DecisionProcess.from_tables(table, [[0.0, 1.0]], terminal=[0]))


def test_a_memory_keeps_the_last_rows_and_is_not_too_large():
    no = np.zeros(7, bool)
    rows = Transitions(np.arange(7), np.zeros(7, int), np.arange(7.0), np.arange(7), no, no)
    memory = ReplayMemory(5)
    for _ in range(3):
        memory.add(rows)
    assert sorted(memory.rows().reward) == [2, 3, 4, 5, 6]
    assert memory.draw(np.random.default_rng(0), (3, 4)).state.shape == (3, 4)
    with pytest.raises(TooLarge, match="give a smaller memory="):
        ReplayMemory(10**12).add(rows)


@pytest.mark.slow
def test_gymnasium_environments_are_copied_by_name_and_by_what_they_are():
    gymnasium = pytest.importorskip("gymnasium")
    assert worlds_of("CartPole-v1", 3).n == worlds_of(gymnasium.make("CartPole-v1"), 3).n == 3
    policy = mk.control.learn("CartPole-v1", steps=2000, seed=0)
    assert policy.evaluate("CartPole-v1", episodes=5, seed=0).mean > 5
    with pytest.raises(InvalidArgument, match="give one environment"):
        worlds_of(gymnasium.make_vec("CartPole-v1", 2), 3)
