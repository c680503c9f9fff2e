import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, UnknownArgument, UnsupportedModel
from markovia.inference.decisions.processes.bellman import EvaluatedOperator, SoftOperator
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.value_iteration import value_iteration
from markovia.learning.control.deep_q import DeepQ, chosen_worth
from markovia.learning.control.trial_loop import learn_by_trial
from markovia.learning.control.worlds import worlds_of
from markovia.networks import mlp
from trial_worlds import Aim, Broken, Corridor

QUICK = {"hidden": 16}
SHORT = {"steps": 700, "hidden": 16}
"""The same for several tests, which then share compiled code."""
WARM = {"warm_up": 100, "discount": 0.5}
OWN = {"deep-q": SHORT | WARM, "soft-actor-critic": SHORT | WARM, "posterior-sampling": {"steps": 700}}


def right(policy, n=4):
    return [policy.act(s) for s in range(n)] == [1] * n


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("actor-critic", {"steps": 4000, "stretch": 256, "batch": 64}),
        ("policy-gradient", {"steps": 5000, "stretch": 256}),
        pytest.param(
            "policy-gradient", {"steps": 5000, "stretch": 256, "natural": True}, marks=pytest.mark.slow
        ),
        (
            "deep-q",
            {"steps": 2500, "warm_up": 300, "discount": 0.9, "moves": 32, "batch": 64, "follow": 0.02},
        ),
    ],
)
def test_each_method_learns_to_walk_a_corridor(method, settings):
    policy = mk.control.learn(Corridor, method, seed=0, **QUICK, **settings)
    assert right(policy)
    assert policy.evaluate(Corridor, episodes=10, seed=0).mean == 1.0


@pytest.mark.parametrize(
    "method", ["soft-actor-critic", pytest.param("actor-critic", marks=pytest.mark.slow)]
)
def test_numbers_are_aimed_at(method):
    steps = {"steps": 1500, "warm_up": 300} if method[0] == "s" else {"steps": 10_000}
    policy = mk.control.learn(lambda: Aim(1e6, sight=1e-6), method, seed=0, discount=0.5, **QUICK, **steps)
    found = [float(policy.act(np.array([x * 1e-6]))[0]) / 2.0 for x in (-0.8, 0.0, 0.8)]
    assert found == pytest.approx([-0.4, 0.0, 0.4], abs=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
@pytest.mark.parametrize("method", ["actor-critic", "policy-gradient", "deep-q", "posterior-sampling"])
def test_the_unit_of_rewards_changes_nothing(method, unit):
    own = OWN.get(method, SHORT)
    first, second = (
        mk.control.learn(lambda pay=pay: Corridor(pay=pay), method, seed=0, **own) for pay in (1.0, unit)
    )
    assert len(first.history.episode_ends) > 20
    assert first.history.episode_ends == second.history.episode_ends
    assert np.allclose(unit * np.array(first.history.episode_returns), second.history.episode_returns)


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "sight"), [(2.0**-20, 2.0**20), (2.0**20, 2.0**-20)])
@pytest.mark.parametrize("method", ["soft-actor-critic", "actor-critic"])
def test_units_of_rewards_and_observations_change_nothing_for_numbers(method, unit, sight):
    first, second = (
        mk.control.learn(lambda u=u, s=s: Aim(u, sight=s), method, seed=0, **OWN.get(method, SHORT))
        for u, s in ((1.0, 1.0), (unit, sight))
    )
    assert np.allclose(
        unit * np.array(first.history.episode_returns), second.history.episode_returns, rtol=1e-3
    )


@pytest.mark.parametrize(
    ("operator", "double"),
    [(SoftOperator(0.5), False), pytest.param(EvaluatedOperator([0.3, 0.7]), True, marks=pytest.mark.slow)],
)
def test_q_of_a_table_is_the_q_of_the_operator(operator, double):
    moves = np.array([[[1.0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1], [0, 0, 1]]])
    rewards = 4.0 * np.array([[0.1, 0.0], [0.0, 0.0], [0.0, 1.0]])
    process = DecisionProcess.from_tables(moves, rewards)
    method = DeepQ(
        operator=operator, discount=0.8, double=double, network=mlp(3, 2, layers=1, hidden=32), follow=0.05, warm_up=500,
        explore=0.5,
    )  # fmt: skip
    found = learn_by_trial(method, worlds_of(process, 4, 20), 4000, seed=0, progress=False)
    unit = found.actor.unit
    q = unit * found.actor.q(np.eye(3, dtype=np.float32))
    plan = value_iteration(process, 0.8, operator=operator)
    assert np.allclose(q, plan.q, atol=0.15)


def test_what_is_chosen_and_what_is_valued_agree_where_both_are_one():
    rng = np.random.default_rng(0)
    q, other = rng.standard_normal((2, 5, 3))
    for operator in (SoftOperator(0.4), SoftOperator(0.4, entropy=True), EvaluatedOperator([0.2, 0.3, 0.5])):
        assert np.allclose(chosen_worth(operator, q, q), operator.value(q))
    policy = SoftOperator(0.4).policy(q)
    price = 0.4 * (policy * np.log(3 * policy)).sum(axis=1)
    assert np.allclose(chosen_worth(SoftOperator(0.4), q, other), (policy * other).sum(axis=1) - price)


@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("actor-critic", "reward"),
        ("actor-critic", "observation"),
        ("deep-q", "observation"),
        ("posterior-sampling", "reward"),
    ],
)
def test_a_world_that_returns_nan_is_refused_in_one_sentence(method, what):
    with pytest.raises(InvalidArgument, match=f"returned an? {what} that is no finite number after"):
        mk.control.learn(lambda: Broken(what), method, steps=1000, seed=0, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["actor-critic", "deep-q", "posterior-sampling"])
def test_one_action_and_one_state_are_learned_too(method):
    process = DecisionProcess.from_tables(np.ones((1, 1, 1)), [[2.0]])
    policy = mk.control.learn(process, method, steps=600, horizon=10, seed=0, progress=False)
    found = policy.evaluate(process, episodes=5, horizon=10, seed=0)
    assert policy.act(0) == 0
    assert found.mean == 20.0
    assert found.interval == (20.0, 20.0)


def test_auto_takes_the_actor_critic_that_fits_the_actions():
    assert mk.control.learn(Corridor, seed=0, **SHORT).info.engine == "actor-critic"
    assert mk.control.learn(Aim, seed=0, **SHORT, **WARM).info.engine == "soft-actor-critic"


def test_learning_ends_at_its_target_and_the_same_seed_gives_the_same_numbers():
    first, second = (
        mk.control.learn(Corridor, "actor-critic", steps=20_000, target=0.9, seed=1, stretch=256, hidden=16)
        for _ in range(2)
    )
    assert first.history == second.history
    assert first.history.steps[-1] < 10_000
    assert "settled" in first.info.note
    assert first.history.returns[-1] >= 0.9


@pytest.mark.slow
def test_a_policy_comes_back_from_its_file(tmp_path):
    for env, settings in (
        (Corridor, {"method": "deep-q", "operator": SoftOperator(0.1), **WARM}),
        (Aim, WARM),
        (Aim, {"method": "actor-critic"}),
    ):
        policy = mk.control.learn(env, seed=0, **SHORT, **settings)
        policy.save(tmp_path / "policy.npz")
        back = mk.control.LearnedPolicy.load(tmp_path / "policy.npz")
        seen = [0, 1, 2] if env is Corridor else [np.array([x]) for x in (-0.5, 0.1, 7.0)]
        assert [back.act(s) for s in seen] == [policy.act(s) for s in seen]
        assert [back.act(s, explore=True, seed=4) for s in seen] == [
            policy.act(s, explore=True, seed=4) for s in seen
        ]
        assert back.history == policy.history


def test_a_module_of_ones_own_is_trained_and_acts():
    import equinox as eqx
    import jax

    class Table(eqx.Module):
        logits: jax.Array

        def __call__(self, x):
            return x @ self.logits

    start = Table(jax.numpy.zeros((5, 2)))
    policy = mk.control.learn(
        Corridor,
        "actor-critic",
        steps=6000,
        stretch=256,
        policy=mk.Parameter(start),
        learning_rate=0.03,
        seed=0,
    )
    assert right(policy)
    with pytest.raises(UnsupportedModel, match="only perceptrons"):
        policy.save("nowhere.npz")


def test_wrong_words_are_answered_with_the_right_ones():
    with pytest.raises(InvalidArgument, match="did you mean 'deep-q'"):
        mk.control.learn(Corridor, "deepq")
    with pytest.raises(UnknownArgument, match="did you mean 'discount'"):
        mk.control.learn(Corridor, "deep-q", discont=0.9)
    with pytest.raises(InvalidArgument, match="horizon= is a whole number, 1 or more"):
        mk.control.learn(DecisionProcess.from_tables(np.ones((1, 1, 1)), [[1.0]]), horizon=0)
    with pytest.raises(InvalidArgument, match="time limit of its own"):
        mk.control.learn(Corridor, horizon=5)
    with pytest.raises(UnsupportedModel, match="method='soft-actor-critic'"):
        mk.control.learn(Aim, "deep-q")
    with pytest.raises(UnsupportedModel, match="method='deep-q'"):
        mk.control.learn(Corridor, "soft-actor-critic")
    with pytest.raises(InvalidArgument, match="takes 5 numbers and returns 2"):
        mk.control.learn(Corridor, "actor-critic", policy=mlp(3, 2))
    with pytest.raises(InvalidArgument, match="env= is an environment"):
        mk.control.learn(3)
