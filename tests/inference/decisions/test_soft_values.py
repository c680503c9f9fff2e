"""Messages of control as inference against sums over all paths."""

import numpy as np
import pytest

from markovia.errors import InvalidArgument
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.finite_horizon import finite_horizon
from markovia.inference.decisions.processes.soft_values import soft_values


def test_messages_sum_over_all_paths():
    rng = np.random.default_rng(4)
    process = DecisionProcess.from_tables(
        rng.dirichlet(np.ones(3), size=(2, 3)), -rng.random((3, 2)), initial=rng.dirichlet(np.ones(3))
    )
    tau, steps = 0.3, 3
    moves = process.transitions.toarray().reshape(2, 3, 3)
    total, by_first = 0.0, np.zeros((3, 2))
    for path in np.ndindex(*(3, 2) * steps):
        states, actions = path[::2], path[1::2]
        weight = process.first[states[0]] * 0.5**steps
        for t in range(steps):
            weight *= np.exp(process.rewards[states[t], actions[t]] / tau)
            weight *= moves[actions[t], states[t], states[t + 1]] if t + 1 < steps else 1.0
        total += weight
        by_first[states[0], actions[0]] += weight
    both = soft_values(process, steps, temperature=tau)
    assert both.log_evidence == pytest.approx(np.log(total))
    assert both.exact.policy[0] == pytest.approx(by_first / by_first.sum(axis=1, keepdims=True))
    assert 0.0 < both.kl == pytest.approx(both.log_evidence - both.elbo)
    # the variational plan's bound, by its definition: rewards and divergence from uniform along its own paths
    law, bound = process.first, 0.0
    for t in range(steps):
        policy = both.variational.policy[t]
        bound += law @ (policy * (process.rewards / tau - np.log(policy / 0.5))).sum(axis=1)
        law = np.einsum("s,sa,asn->n", law, policy, moves)
    assert both.elbo == pytest.approx(bound)


def test_certain_moves_from_a_given_state_leave_no_divergence():
    rng = np.random.default_rng(1)
    moves = np.eye(4)[rng.integers(0, 4, size=(3, 4))]
    process = DecisionProcess.from_tables(moves, -rng.random((4, 3)), initial=2)
    both = soft_values(process, 5, temperature=0.2)
    assert both.kl == pytest.approx(0.0, abs=1e-12)
    assert both.exact.policy == pytest.approx(both.variational.policy)


def test_a_low_temperature_gives_the_best_plan_and_the_best_luck():
    rng = np.random.default_rng(2)
    process = DecisionProcess.from_tables(
        rng.dirichlet(np.ones(3), size=(2, 3)), -rng.random((3, 2)), initial=0
    )
    both = soft_values(process, 3, temperature=1e-5)
    assert both.variational.value == pytest.approx(finite_horizon(process, 3).value, abs=1e-4)
    lucky = np.zeros(3)
    for _ in range(3):
        lucky = (process.rewards + lucky.max()).max(
            axis=1
        )  # every move is possible, so chance may choose any
    assert both.exact.value == pytest.approx(lucky[0], abs=1e-3)


def test_rewards_above_zero_are_no_probabilities_unless_shifted():
    process = DecisionProcess.from_tables([[[1.0]], [[1.0]]], [[1.0, -1.0]], actions=["win", "lose"])
    with pytest.raises(InvalidArgument, match="'win' in state 0 is 1"):
        soft_values(process, 2, temperature=1.0)
    assert soft_values(process, 2, temperature=1.0, shift=True).exact.policy[0, 0] == pytest.approx(
        [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))]
    )
