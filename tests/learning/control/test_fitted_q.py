import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, NoOverlap
from markovia.inference.decisions.processes.bellman import EvaluatedOperator, HardOperator, SoftOperator
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.value_iteration import value_iteration
from markovia.learning.control.fitted_q import fitted_q
from markovia.learning.control.trajectories import Transitions, collect

N, K = 4, 3


class Means:
    """Least squares without a constant: on indicators of states the mean of each."""

    def fit(self, X, y):
        self.weights = np.linalg.lstsq(X, y, rcond=None)[0]
        return self

    def predict(self, X):
        return X @ self.weights


def random_rows(seed, n=400, ends=0.1):
    rng = np.random.default_rng(seed)
    ended = rng.random(n) < ends
    return Transitions(
        np.r_[np.repeat(np.arange(N), K), rng.integers(N, size=n - N * K)],
        np.r_[np.tile(np.arange(K), N), rng.integers(K, size=n - N * K)],
        rng.standard_normal(n), rng.integers(N, size=n), ended, ~ended & (rng.random(n) < 0.2),
    )  # fmt: skip


def frequencies(rows):
    """Return the process of the batch: mean rewards, and shares of what followed; the last state is the end."""
    moves, rewards = np.zeros((K, N + 1, N + 1)), np.zeros((N + 1, K))
    for s in range(N):
        for a in range(K):
            here = (rows.state == s) & (rows.action == a)
            rewards[s, a] = rows.reward[here].mean()
            for t, ended in zip(rows.after[here], rows.terminated[here], strict=True):
                moves[a, s, N if ended else t] += 1 / here.sum()
    moves[:, N, N] = 1.0
    return DecisionProcess.from_tables(moves, rewards, terminal=[N])


OPERATORS = [
    HardOperator(),
    SoftOperator(0.7),
    SoftOperator(0.7, prior=[0.2, 0.3, 0.5]),
    EvaluatedOperator([0.5, 0.25, 0.25]),
]


@pytest.mark.parametrize("operator", OPERATORS)
def test_with_a_table_fitted_q_is_value_iteration_on_the_frequencies(operator):
    rows = random_rows(0)
    found = fitted_q(rows, discount=0.9, operator=operator)
    plan = value_iteration(frequencies(rows), 0.9, operator=operator, tolerance=1e-13)
    assert found.converged
    assert np.allclose(found.v(np.arange(N)), plan.v[:N], rtol=0, atol=1e-10)
    assert np.allclose(found.q(np.arange(N)), plan.q[:N], rtol=0, atol=1e-10)


@pytest.mark.parametrize("operator", [HardOperator(), SoftOperator(0.5)])
def test_with_a_horizon_each_step_is_one_backup(operator):
    rows = random_rows(1)
    process, value = frequencies(rows), np.zeros(N + 1)
    found = fitted_q(rows, horizon=3, operator=operator)
    for step in (2, 1, 0):
        q = process.q(value)
        assert np.allclose(found.q(np.arange(N), step), q[:N], rtol=0, atol=1e-12)
        value = operator.value(q)
        value[N] = 0.0


def test_a_regression_on_indicators_is_the_table():
    rows = random_rows(2)
    table = fitted_q(rows, discount=0.8)
    found = fitted_q(rows, discount=0.8, regressor=Means(), rounds=150)
    assert found.converged
    assert np.allclose(found.q(np.arange(N)), table.q(np.arange(N)), rtol=0, atol=1e-9)


def test_a_table_of_all_moves_is_soft_values_of_the_process():
    rng = np.random.default_rng(3)
    follow, rewards = rng.integers(N, size=(K, N)), rng.standard_normal((N, K))
    moves = np.eye(N)[follow]
    s, a = np.divmod(np.arange(N * K), K)
    no = np.zeros(N * K, bool)
    rows = Transitions(s, a, rewards[s, a], follow[a, s], no, no)
    plan = value_iteration(
        DecisionProcess.from_tables(moves, rewards), 0.95, operator=SoftOperator(0.3), tolerance=1e-13
    )
    found = fitted_q(rows, discount=0.95, operator=SoftOperator(0.3))
    assert np.allclose(found.v(np.arange(N)), plan.v, rtol=0, atol=1e-10)


def test_the_order_of_rows_and_units_of_rewards_change_nothing_else():
    rows, order = random_rows(4), np.random.default_rng(5).permutation(400)
    parts = [rows.state, rows.action, rows.reward, rows.after, rows.terminated, rows.truncated]
    for unit in (1e-9, 1e9):
        turned = Transitions(
            *(p[order] * (unit if i == 2 else 1) for i, p in enumerate(parts[:4])),
            *(p[order] for p in parts[4:]),
        )
        first, second = fitted_q(rows, discount=0.9), fitted_q(turned, discount=0.9)
        assert np.allclose(second.q(np.arange(N)), unit * first.q(np.arange(N)), rtol=1e-9)


def test_what_was_never_tried_is_not_advised():
    no = np.zeros(2, bool)
    found = fitted_q(Transitions([0, 1], [1, 0], [-5.0, -1.0], [1, 1], no, no), discount=0.5)
    assert found.unseen.tolist() == [[True, False], [False, True]]
    assert found.act([0, 1]).tolist() == [1, 0]
    assert found.v([0]).item() == pytest.approx(-6.0)


@pytest.mark.slow
def test_forests_and_networks_learn_where_to_go_on_a_line():
    rng = np.random.default_rng(6)
    at, move = rng.uniform(-1, 1, 300), rng.integers(2, size=300)
    after = np.clip(at + np.where(move == 1, 0.2, -0.2), -1, 1)
    no = np.zeros(300, bool)
    rows = Transitions(at[:, None], move, -np.abs(after), after[:, None], no, no)
    from sklearn.tree import DecisionTreeRegressor

    for regressor in (DecisionTreeRegressor(min_samples_leaf=5), mk.networks.mlp(1, 1, hidden=16)):
        found = fitted_q(rows, discount=0.5, regressor=regressor, rounds=3)
        assert found.act(np.array([[-0.8], [-0.5], [0.5], [0.8]])).tolist() == [1, 1, 0, 0]


def test_collected_transitions_of_a_process_lead_to_its_plan():
    rng = np.random.default_rng(7)
    process = DecisionProcess.from_tables(
        rng.dirichlet(np.ones(3), size=(2, 3)), 3 * rng.standard_normal((3, 2))
    )
    rows = collect(process, 1000, agents=20, horizon=10, seed=0)
    found, plan = fitted_q(rows, discount=0.7), value_iteration(process, 0.7)
    assert np.allclose(found.v(np.arange(3)), plan.v, atol=0.3)
    assert found.act(np.arange(3)).tolist() == plan.policy.argmax(axis=1).tolist()


def test_bad_questions_are_answered_in_one_sentence():
    rows = random_rows(8)
    with pytest.raises(InvalidArgument, match="give discount="):
        fitted_q(rows)
    with pytest.raises(InvalidArgument, match="horizon= is a whole number, 1 or more"):
        fitted_q(rows, horizon=0)
    with pytest.raises(InvalidArgument, match="'reward' of the transitions"):
        Transitions([0], [0], [np.nan], [0], [False], [False])
    no = np.zeros(2, bool)
    with pytest.raises(NoOverlap, match="action 1 was never tried"):
        fitted_q(Transitions([0, 0], [0, 2], [1.0, 1.0], [0, 0], no, no), discount=0.5, regressor=Means())
