from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovia.learning.control.actor_critic import judged
from markovia.learning.control.returns import backward_sums, discounted_returns, generalised_advantages
from markovia.learning.control.trajectories import Transitions


def random_record(seed, steps=13, agents=3):
    rng = np.random.default_rng(seed)
    ended = rng.random((steps, agents)) < 0.2
    cut = (rng.random((steps, agents)) < 0.2) & ~ended
    return *rng.standard_normal((3, steps, agents)), ended, cut


@given(st.integers(0, 200), st.sampled_from([0.0, 0.3, 0.95, 1.0]), st.sampled_from([0.0, 0.5, 0.99]))
def test_advantages_are_the_direct_sum_of_temporal_differences(seed, trace, discount):
    reward, value, after, ended, cut = random_record(seed)
    found = generalised_advantages(reward, value, after, ended, cut, discount=discount, trace=trace)
    expected = np.zeros_like(reward)
    steps, agents = reward.shape
    for agent in range(agents):
        for t in range(steps):
            weight = 1.0
            for u in range(t, steps):
                ahead = 0.0 if ended[u, agent] else after[u, agent]
                expected[t, agent] += weight * (reward[u, agent] + discount * ahead - value[u, agent])
                if ended[u, agent] or cut[u, agent]:
                    break
                weight *= discount * trace
    assert np.allclose(found, expected, atol=1e-12)


@given(st.integers(0, 200), st.sampled_from([0.0, 0.9, 1.0]))
def test_returns_are_the_direct_sum_and_only_a_cut_takes_the_value_of_what_was_seen(seed, discount):
    reward, _, after, ended, cut = random_record(seed)
    found = discounted_returns(reward, ended, cut, discount=discount, value_after=after)
    expected = np.zeros_like(reward)
    steps, agents = reward.shape
    for agent in range(agents):
        for t in range(steps):
            for u in range(t, steps):
                expected[t, agent] += discount ** (u - t) * reward[u, agent]
                if ended[u, agent]:
                    break
                if cut[u, agent] or u == steps - 1:
                    expected[t, agent] += discount ** (u - t + 1) * after[u, agent]
                    break
    assert np.allclose(found, expected, atol=1e-12)


def test_with_a_whole_trace_and_no_values_advantages_are_returns():
    reward, _, _, ended, cut = random_record(1)
    zero = np.zeros_like(reward)
    found = generalised_advantages(reward, zero, zero, ended, cut, discount=0.9, trace=1.0)
    assert np.allclose(found, discounted_returns(reward, ended, cut, discount=0.9))


@pytest.mark.parametrize("steps", [1, 2, 7, 64, 1000])
def test_sums_by_doubling_are_sums_one_by_one(steps):
    rng = np.random.default_rng(steps)
    terms, shares = rng.standard_normal(steps), rng.random(steps)
    expected, ahead = np.zeros(steps), 0.0
    for t in reversed(range(steps)):
        expected[t] = ahead = terms[t] + shares[t] * ahead
    assert np.allclose(backward_sums(terms, shares), expected, rtol=1e-12, atol=1e-12)


def test_a_critic_is_told_of_the_future_where_an_episode_was_cut_and_of_none_where_it_ended():

    no, yes = np.zeros((1, 2), bool), np.array([[True, False]])
    actor = SimpleNamespace(critic=lambda rows: rows, log_probs=lambda rows, actions: np.zeros(len(rows)))
    trial = SimpleNamespace(
        actor=actor, memory={}, inputs=lambda states: np.reshape(states, (-1, 1)).astype(float)
    )
    # both agents see 3 and then 5, which is also what the critic says of them, and get 2
    rows = Transitions([[3, 3]], [[0, 0]], [[2.0, 2.0]], [[5, 5]], yes, ~yes)
    found = judged(trial, rows, 0.5, 0.9)
    assert np.allclose(found["target"], [1.0, 1.0 + 0.5 * 5.0])  # a reward of 2 is the unit
    assert np.allclose(found["advantage"], [1.0 - 3.0, 3.5 - 3.0])
    assert np.allclose(
        judged(trial, Transitions([[3, 3]], [[0, 0]], [[2.0, 2.0]], [[5, 5]], no, no), 0.5, 0.9)["target"],
        3.5,
    )
