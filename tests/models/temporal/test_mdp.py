"""Decision processes given by tables: known values, environments read as tables, and episodes that are drawn."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, InvalidTable, UnsupportedModel

WAIT = [[0.1, 0.9, 0.0], [0.1, 0.0, 0.9], [0.1, 0.0, 0.9]]
CUT = [[1.0, 0.0, 0.0]] * 3


def forest(**more):
    return mk.MDP(
        [WAIT, CUT],
        [[0, 0], [0, 1], [4, 2]],
        states=["young", "middle", "old"],
        actions=["wait", "cut"],
        **more,
    )


def random_mdp(seed=0, **more):
    rng = np.random.default_rng(seed)
    return mk.MDP(rng.dirichlet(np.ones(4), size=(3, 4)), rng.normal(size=(4, 3)), **more)


def test_the_network_that_it_is_has_the_same_plans():
    m = random_mdp(1, initial=2, allowed=np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1]], dtype=bool))
    p = m.process()
    assert p.decide(discount=0.8).v == pytest.approx(m.decide(discount=0.8).v, abs=1e-12)
    assert p.decide(horizon=3).value == pytest.approx(m.decide(horizon=3).value)
    assert p.unroll(3).decide().value == pytest.approx(m.decide(horizon=3).value)
    assert p.decide(average=True).value == pytest.approx(m.decide(average=True).value)


def test_a_policy_is_worth_what_its_episodes_earn():
    m = random_mdp(2, initial=0)
    policy = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    rows = m.sample(20_000, steps=3, policy=policy, seed=1)
    assert rows.groupby("episode").reward.sum().mean() == pytest.approx(
        m.evaluate(policy, horizon=3).value, abs=0.03
    )
    assert m.evaluate([0, 1, 2, 0], discount=0.9).value <= m.decide(discount=0.9).value
    assert m.evaluate(m.decide(discount=0.9), discount=0.9).value == pytest.approx(
        m.decide(discount=0.9).value
    )


def test_moves_are_drawn_by_their_probabilities():
    m = random_mdp(4)
    rows = m.sample(3000, steps=10, seed=0)
    counts = np.zeros((3, 4, 4))
    np.add.at(counts, (rows.action.astype(int), rows.state.astype(int), rows.next_state.astype(int)), 1)
    law = m.table.transitions.toarray().reshape(3, 4, 4)
    n = counts.sum(axis=2, keepdims=True)
    assert (np.abs(counts / n - law) < 5 * np.sqrt(law * (1 - law) / n) + 1e-9).all()


def test_episodes_end_where_the_process_is_over_and_come_again_from_the_same_seed():
    m = mk.MDP([[[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]]], [-1.0, -1.0, 0.0], terminal=[2], initial=0)
    rows = m.sample(50, steps=4, seed=3)
    last = rows.groupby("episode").tail(1)
    assert (last.terminated == (last.next_state == 2)).all()
    assert set(rows.groupby("episode").size()) == {1, 4}
    assert rows.equals(m.sample(50, steps=4, seed=3))


def test_a_plan_for_some_steps_is_followed_step_by_step():
    m = forest(initial="middle")
    rows = m.sample(20, steps=3, policy=m.decide(horizon=3), seed=0)
    assert set(rows[(rows.step == 2) & (rows.state == "middle")].action) <= {"cut"}
    with pytest.raises(InvalidArgument, match="the plan has 3 steps, not 4"):
        m.sample(1, steps=4, policy=m.decide(horizon=3))


def test_one_state_and_one_action_are_enough():
    m = mk.MDP([[[1.0]]], [2.0])
    assert m.decide(discount=0.5).value == 4.0
    assert m.decide(horizon=3).value == 6.0
    assert m.decide(average=True).value == 2.0
    assert mk.MDP([[[1.0]]], [0.0], terminal=[0]).decide(discount=1).value == 0.0


def test_policies_that_are_none_are_refused():
    with pytest.raises(InvalidArgument, match="'burn' is no action"):
        forest().evaluate(["wait", "burn", "cut"], discount=0.9)
    with pytest.raises(InvalidTable, match="sum to one"):
        forest().evaluate([[0.5, 0.4]] * 3, discount=0.9)


# -- environments as tables -----------------------------------------------------------------------------------------


class TableWorld:
    """A world with a table of moves, as toy_text has it."""

    def __init__(self, table, initial=None):
        self.P = table
        if initial is not None:
            self.initial_state_distrib = initial


def test_moves_that_terminate_end_the_process_though_their_state_goes_on():
    table = {
        0: {0: [(1.0, 1, 0.0, False)], 1: [(1.0, 1, 5.0, True)]},
        1: {0: [(1.0, 0, 1.0, False)], 1: [(1.0, 1, -1.0, False)]},
    }
    m = mk.MDP.from_env(TableWorld(table, [1.0, 0.0]))
    assert m.states == [0, 1, "over"]
    plan = m.decide(discount=0.5)
    assert plan.v.tolist() == [5.0, 3.5, 0.0]  # not 5 + what state 1 could earn


def test_a_world_that_earns_nan_or_has_no_table_is_refused_in_one_sentence():
    with pytest.raises(InvalidTable, match="action 0 in state 0 earns nan"):
        mk.MDP.from_env(TableWorld({0: {0: [(1.0, 0, np.nan, False)]}}))
    with pytest.raises(UnsupportedModel, match="can only be tried"):
        mk.MDP.from_env(object())


@pytest.mark.parametrize(
    ("name", "discount", "value"),
    [
        ("FrozenLake-v1", 0.99, 0.542025932),
        ("FrozenLake-v1", 1, 0.823529412),
        ("CliffWalking", 1, -13.0),
        ("Taxi", 1, 7.93),
    ],
)
def test_the_worlds_of_gymnasium_have_their_known_values(name, discount, value):
    gymnasium = pytest.importorskip("gymnasium")
    full = max(n for n in gymnasium.registry if n.startswith(name) and "Slippery" not in n)
    m = mk.MDP.from_env(gymnasium.make(name if "-v" in name else full))
    plan = m.decide(discount=discount)
    assert plan.value == pytest.approx(value, abs=2e-9 if name.startswith("Frozen") else 2e-3)
    assert plan.info.exact
