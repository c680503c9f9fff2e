"""Every solver of flat processes against the enumeration of all deterministic policies."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia.inference.decisions.processes.average_reward import average_reward
from markovia.inference.decisions.processes.bellman import EvaluatedOperator, HardOperator, SoftOperator
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.finite_horizon import finite_horizon
from markovia.inference.decisions.processes.occupancy_program import occupancy_program
from markovia.inference.decisions.processes.policy_iteration import policy_iteration
from markovia.inference.decisions.processes.total_reward import total_reward
from markovia.inference.decisions.processes.value_iteration import value_iteration

SEEDS = st.integers(0, 10**6)
METHODS = {
    "value iteration": value_iteration,
    "policy iteration": policy_iteration,
    "modified": lambda *a, **k: policy_iteration(*a, sweeps=3, **k),
    "linear program": occupancy_program,
}


def random_process(seed, *, density=0.6, states=None, actions=None, ends=False, forbid=False):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5)) if states is None else states
    k = int(rng.integers(1, 4)) if actions is None else actions
    tables = rng.dirichlet(np.ones(n), size=(k, n)) * (rng.random((k, n, n)) < density)
    tables[..., 0] += np.where(tables.sum(axis=-1) == 0.0, 1.0, 0.0)
    tables /= tables.sum(axis=-1, keepdims=True)
    allowed = rng.random((n, k)) < 0.7 if forbid else None
    if forbid:
        allowed[np.arange(n), rng.integers(0, k, n)] = True
    terminal = np.arange(n) == n - 1 if ends and n > 1 else None
    rewards = np.round(rng.normal(size=(n, k)), 1)
    return DecisionProcess.from_tables(
        tables, rewards, initial=rng.dirichlet(np.ones(n)), allowed=allowed, terminal=terminal
    )


def policies(process):
    n, k = process.rewards.shape
    choices = [range(k) if process.allowed is None else np.flatnonzero(process.allowed[s]) for s in range(n)]
    for picks in product(*choices):
        yield np.eye(k)[list(picks)]


def discounted(process, policy, discount):
    rows, mean = process.under(policy)
    return np.linalg.solve(np.eye(process.n_states) - discount * rows.toarray(), mean)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=12, deadline=None)
@given(seed=SEEDS)
def test_discounted_values_are_those_of_the_best_of_all_policies(method, seed):
    process = random_process(seed, ends=seed % 2, forbid=seed % 3 == 0)
    best = np.max([discounted(process, p, 0.9) for p in policies(process)], axis=0)
    plan = METHODS[method](process, 0.9)
    assert plan.v == pytest.approx(best, abs=2e-7 if method != "linear program" else 1e-5)
    assert plan.value <= process.first @ best + 1e-9 <= plan.bound + 2e-9
    own = process.first @ discounted(process, plan.policy, 0.9)
    assert plan.value - 1e-9 <= own <= plan.bound + 1e-9
    assert plan.gap < 1e-6


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_plans_for_some_steps_are_the_best_of_all_policies_of_each_step(seed):
    process = random_process(seed, states=2, actions=2, ends=seed % 2)
    steps, best = 3, -np.inf
    for sequence in product(list(policies(process)), repeat=steps):
        value = np.zeros(2)
        for policy in reversed(sequence):
            rows, mean = process.under(policy)
            value = mean + 0.8 * (rows @ value)
        best = max(best, process.first @ value)
    plan = finite_horizon(process, steps, discount=0.8)
    assert plan.value == pytest.approx(best, abs=1e-12)
    assert plan.policy.shape == (3, 2, 2)
    assert plan.info.exact


def gain(process, policy):
    """Return the long-run reward per step, by a limit of lazy powers."""
    rows, mean = process.under(policy)
    power = np.linalg.matrix_power(0.5 * (np.eye(process.n_states) + rows.toarray()), 2**14)
    return power @ mean


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, density=st.sampled_from([0.15, 0.3, 0.8]))
def test_gains_are_those_of_the_best_of_all_policies_where_there_are_several_chains_too(seed, density):
    process = random_process(seed, density=density, ends=seed % 2, forbid=seed % 3 == 0)
    every = [gain(process, p) for p in policies(process)]
    best = np.max(every, axis=0)
    plan = average_reward(process)
    assert plan.info.details.gains == pytest.approx(best, abs=1e-6)
    assert gain(process, plan.policy) == pytest.approx(best, abs=1e-6)
    assert plan.value - 1e-7 <= process.first @ best <= plan.bound + 1e-7
    # the average-reward equation, with the policy's own gains
    rows, mean = process.under(plan.policy)
    assert mean + rows @ plan.v - plan.info.details.gains == pytest.approx(plan.v, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(
    seed=SEEDS, density=st.sampled_from([0.2, 0.4, 0.8]), sign=st.sampled_from(["costs", "prizes", "both"])
)
def test_total_rewards_are_those_of_the_best_of_all_policies(seed, density, sign):
    process = random_process(seed, density=density, states=4, actions=2, ends=True)
    rewards = process.rewards.copy()
    into = (process.transitions[:, [3]].toarray() > 0).reshape(2, 4).T
    if sign == "costs":
        rewards = -np.abs(rewards)
    if sign == "prizes":
        rewards = np.where(into, np.abs(rewards), 0.0)
    if sign == "both":
        rewards = np.where(into, 5.0 * np.abs(rewards), -np.abs(rewards) - 0.1)
    process = DecisionProcess(process.transitions, rewards, process.initial, terminal=process.terminal)
    # so small a discount is nothing where what is at stake is finite, and shows what is not
    every = np.array([discounted(process, p, 1.0 - 1e-9) for p in policies(process)])
    best = every.max(axis=0)
    if best.min() < -1e5:
        with pytest.raises(Exception, match="no policy ever ends"):
            total_reward(process)
        return
    if best.max() > 1e5:
        with pytest.raises(Exception, match="go round for ever"):
            total_reward(process)
        return
    plan = total_reward(process)
    assert plan.v == pytest.approx(best, abs=1e-4)
    assert discounted(process, plan.policy, 1.0 - 1e-9) == pytest.approx(best, abs=1e-4)
    assert plan.info.exact


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, temperature=st.sampled_from([0.01, 0.5, 20.0]), entropy=st.booleans())
def test_soft_values_solve_their_equation_and_are_the_best_of_their_objective(seed, temperature, entropy):
    process = random_process(seed, ends=seed % 2, forbid=seed % 3 == 0)
    operator = SoftOperator(temperature, entropy=entropy)
    one, other = (
        value_iteration(process, 0.9, operator=operator),
        policy_iteration(process, 0.9, operator=operator),
    )
    assert one.v == pytest.approx(other.v, abs=1e-6)
    again = operator.value(process.q(other.v, 0.9), process.allowed)
    if process.terminal is not None:
        again[process.terminal] = 0.0
    assert again == pytest.approx(other.v, abs=1e-8)
    hard = policy_iteration(process, 0.9).v
    choices = process.n_actions if process.allowed is None else process.allowed.sum(axis=1).max()
    slack = temperature * np.log(choices) / (1.0 - 0.9)
    assert (other.v >= hard - 1e-8).all() if entropy else (other.v <= hard + 1e-8).all()
    assert (np.abs(other.v - hard) <= slack + 1e-8).all()


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_the_value_of_a_given_policy_is_that_of_its_equations(seed):
    process = random_process(seed, ends=seed % 2)
    policy = np.random.default_rng(seed).dirichlet(np.ones(process.n_actions), size=process.n_states)
    truth = discounted(process, policy, 0.9)
    for method in (value_iteration, policy_iteration):
        assert method(process, 0.9, operator=EvaluatedOperator(policy)).v == pytest.approx(truth, abs=1e-7)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("method", METHODS)
def test_units_of_reward_only_rescale_values(method, unit):
    process = random_process(5, states=4, actions=3)
    scaled = DecisionProcess(process.transitions, unit * process.rewards, process.initial)
    truth = policy_iteration(process, 0.9).v
    options = {} if method == "linear program" else {"tolerance": 1e-9 * unit}
    plan = METHODS[method](scaled, 0.9, **options)
    assert plan.v / unit == pytest.approx(truth, rel=1e-6)


def test_the_soft_value_is_the_hard_one_as_the_temperature_falls():
    process = random_process(11, states=4, actions=3)
    hard = policy_iteration(process, 0.9, operator=HardOperator()).v
    gaps = [
        np.abs(policy_iteration(process, 0.9, operator=SoftOperator(t)).v - hard).max()
        for t in (1.0, 0.1, 0.01, 1e-4)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1.1e-4 * np.log(3) / 0.1
