"""Pruned products have the sums of the whole ones, and lose what cannot occur or matters to nobody."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovia.inference.sliced.pruned_states import Pruned, prune


def joint(scopes, tables, cards):
    """The product of all tables, one axis a variable."""
    whole = np.ones(cards)
    for scope, table in zip(scopes, tables, strict=True):
        order = np.argsort(scope)
        shape = [cards[v] if v in scope else 1 for v in range(len(cards))]
        whole = whole * np.transpose(table, order).reshape(shape)
    return whole


def spread(found: Pruned, cards, hidden):
    """The product of what is left, over the states there were; hidden variables summed out."""
    open_cards = [1 if v in hidden and n == 1 else n for v, n in enumerate(found.cards)]
    small = np.exp(found.log_scale) * joint(found.scopes, found.tables, open_cards)
    small = small.sum(axis=tuple(hidden), keepdims=True)
    whole = np.zeros([1 if v in hidden else n for v, n in enumerate(cards)])
    if found.possible:
        whole[np.ix_(*[[0] if v in hidden else found.kept[v] for v in range(len(cards))])] = small
    return whole


@st.composite
def products(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 6))
    zeros = draw(st.sampled_from([0.0, 0.3, 0.6, 0.8]))
    rows = draw(st.sampled_from(["numbers", "ones", "permutations"]))
    cards = rng.integers(1, 4, n).tolist()
    scopes, tables = [], []
    for _ in range(draw(st.integers(0, 2 * n))):
        scope = tuple(rng.permutation(n)[: rng.integers(0, min(n, 4) + 1)].tolist())
        shape = [cards[v] for v in scope]
        table = rng.random(shape) * 10.0 ** rng.integers(-3, 4)
        if rows == "ones" and rng.random() < 0.7:
            # products of parts, as logic has them
            table = np.ones(shape)
            for a in range(len(shape)):
                table *= (rng.random(shape[a]) + 0.2).reshape(
                    [-1 if b == a else 1 for b in range(len(shape))]
                )
        if rows == "permutations" and len(scope) == 2 and shape[0] == shape[1]:
            table = table * np.eye(shape[0])[rng.permutation(shape[0])]
        scopes.append(scope)
        tables.append(table * (rng.random(shape) >= zeros))
    hidden = [v for v in range(n) if rng.random() < draw(st.sampled_from([0.0, 0.5, 1.0]))]
    return scopes, tables, cards, hidden


@given(products())
def test_sums_over_hidden_variables_stay_what_they_are(product):
    scopes, tables, cards, hidden = product
    whole = joint(scopes, tables, cards).sum(axis=tuple(hidden), keepdims=True)
    for unasked in ((), hidden):
        found = prune(scopes, tables, cards, unasked)
        assert found.possible or not whole.any()
        assert found.possible == (found.log_scale > -np.inf)
        mass = joint(scopes, tables, cards).sum(axis=tuple(unasked), keepdims=True)
        assert np.allclose(spread(found, cards, unasked), mass, rtol=1e-10, atol=0)
        for v, states in enumerate(found.kept):
            assert found.cards[v] in ((len(states), 1) if v in unasked else (len(states),))
        assert all(found.cards[v] > 1 for scope in found.scopes for v in scope)
        assert all(
            t.shape == tuple(found.cards[v] for v in s)
            for s, t in zip(found.scopes, found.tables, strict=True)
        )


@given(products())
def test_every_state_that_a_table_does_not_support_is_removed(product):
    scopes, tables, cards, _ = product
    alive = np.ones((len(cards), 3), bool) & (np.arange(3) < np.array(cards)[:, None])
    for _ in range(sum(cards)):
        for scope, table in zip(scopes, tables, strict=True):
            left = table * joint(
                [(a,) for a in range(len(scope))], [alive[v, : cards[v]] for v in scope], table.shape
            )
            for a, v in enumerate(scope):
                alive[v, : cards[v]] &= left.any(axis=tuple([b for b in range(len(scope)) if b != a]))
    # in whatever order the tables come; rules that join tables may find more
    for way in (1, -1):
        found = prune(scopes[::way], tables[::way], cards)
        assert not found.possible or all(alive.any(axis=1))
        if found.possible:
            assert all(set(found.kept[v]) <= set(np.flatnonzero(alive[v])) for v in range(len(cards)))


@given(products())
def test_pruning_twice_is_pruning_once(product):
    scopes, tables, cards, hidden = product
    once = prune(scopes, tables, cards, hidden)
    again = prune(once.scopes, once.tables, once.cards)
    if once.possible:
        assert again.cards == once.cards
        assert {frozenset(s) for s in again.scopes} == {frozenset(s) for s in once.scopes}
        assert again.log_scale == pytest.approx(0.0, abs=1e-12)


def test_states_are_removed_along_a_chain_and_decided_variables_disappear():
    step = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    scopes = [(i, i + 1) for i in range(5)]
    found = prune([*scopes, (0,)], [step] * 5 + [np.array([0.0, 1.0, 0.0])], [3] * 6)
    assert [k.tolist() for k in found.kept] == [[1]] + [[1, 2]] * 5
    assert (0, 1) not in found.scopes
    decided = prune([*scopes, (0,)], [step] * 5 + [np.array([0.0, 0.0, 0.5])], [3] * 6)
    assert decided.scopes == []
    assert decided.log_scale == pytest.approx(np.log(0.5))


def test_no_configuration_is_possible():
    exclusive = 1.0 - np.eye(2)
    found = prune([(0, 1), (1, 0), (0,)], [np.eye(2), exclusive, np.ones(2)], [2, 2])
    assert not found.possible
    assert found.log_scale == -np.inf
    assert found.tables == []
    # three variables of two states cannot all differ, which no table shows by itself
    assert not prune([(0, 1), (1, 2), (2, 0)], [exclusive] * 3, [2] * 3).possible


def test_a_table_of_zeros_and_one_that_is_a_number():
    assert not prune([(0,)], [np.zeros(2)], [2]).possible
    assert not prune([()], [np.array(0.0)], [2]).possible
    assert prune([()], [np.array(4.0)], [2]).log_scale == pytest.approx(np.log(4.0))


def test_hidden_variables_in_no_table_count_their_states():
    found = prune([], [], [3, 2], hidden=[0])
    assert found.cards == [1, 2]
    assert found.log_scale == pytest.approx(np.log(3.0))


def test_small_tables_are_multiplied_into_those_around_them():
    rng = np.random.default_rng(0)
    scopes = [(0, 1, 2), (1, 0), (2,), (2, 3), (3,)]
    cards = [2, 3, 2, 4]
    found = prune(scopes, [rng.random([cards[v] for v in s]) for s in scopes], cards)
    assert sorted(map(sorted, found.scopes)) == [[0, 1, 2], [2, 3]]


def test_large_tables_are_left_alone():
    cards = [32, 32, 16]
    rng = np.random.default_rng(0)
    scopes = [(0, 1, 2), (0, 1)]
    tables = [rng.random(cards), rng.random((32, 32))]
    found = prune(scopes, tables, cards)
    assert found.scopes == scopes
    assert found.tables[0] is tables[0]


def test_entries_that_a_product_would_lose_are_kept_apart():
    deep = np.array([[1.0, 1e-180], [1e-180, 1.0]])
    found = prune([(0, 1), (1, 0)], [deep, deep], [2, 2])
    assert len(found.tables) == 2
    assert prune([(0, 1), (1, 0)], [deep**0.5, deep**0.5], [2, 2]).tables[0].min() == pytest.approx(1e-180)


def test_barren_nodes_go_however_long_their_tail():
    rng = np.random.default_rng(1)
    step = rng.random((2, 2, 2)) + 0.1
    step /= step.sum(axis=2, keepdims=True)
    # a grid of children that nobody sees ties the roots 0 and 1 together only in appearance
    scopes = [(0,), (1,), (0, 1, 2), (1, 2, 3), (2, 3, 4), (0, 4, 5)]
    tables = [np.array([0.3, 0.7]), np.array([0.6, 0.4]), step, step, step, step]
    found = prune(scopes, tables, [2] * 6, hidden=[2, 3, 4, 5])
    assert sorted(found.scopes) == [(0,), (1,)]
    assert prune(scopes, tables, [2] * 6, hidden=range(6)).log_scale == pytest.approx(0.0, abs=1e-12)


def test_copies_take_the_place_of_each_other():
    rng = np.random.default_rng(2)
    turn = np.eye(3)[[2, 0, 1]]
    tables = [turn, rng.random((3, 3)), rng.random((3, 3))]
    found = prune([(0, 1), (0, 2), (1, 3)], tables, [3] * 4)
    assert sum([sorted(s) != [0, 1] for s in found.scopes]) == 2
    stays = set.intersection(*[set(s) for s in found.scopes if sorted(s) != [0, 1]])
    assert len(stays) == 1
    assert stays < {0, 1}
    # one that is asked about stays, the hidden one goes
    asked = prune([(0, 1), (0, 2), (1, 3)], tables, [3] * 4, hidden=[0])
    assert sorted(map(sorted, asked.scopes)) == [[1, 2], [1, 3]]


def test_variables_that_do_not_interact_given_the_others_are_separated():
    rng = np.random.default_rng(3)
    one, two = rng.random((2, 3, 4)), rng.random((2, 3, 2))
    table = one[..., None] * two[:, :, None, :]
    found = prune([(0, 1, 2, 3)], [table], [2, 3, 4, 2])
    assert sorted(map(sorted, found.scopes)) == [[0, 1, 2], [0, 1, 3]]
    table[0, 0, 0, 0] *= 1.001
    assert len(prune([(0, 1, 2, 3)], [table], [2, 3, 4, 2]).scopes) == 1
    # not where another table has both anyway
    table = one[..., None] * two[:, :, None, :]
    assert len(prune([(0, 1, 2, 3), (2, 3, 4)], [table, rng.random((4, 2, 2))], [2, 3, 4, 2, 2]).scopes) == 2


def test_a_product_of_lines_falls_apart():
    lines = [np.array([0.2, 3.0]), np.array([1.0, 0.5, 0.1]), np.array([2.0, 7.0])]
    table = lines[0][:, None, None] * lines[1][:, None] * lines[2]
    found = prune([(2, 0, 1)], [table.transpose(2, 0, 1)], [2, 3, 2])
    assert sorted(found.scopes) == [(0,), (1,), (2,)]
    assert np.allclose(spread(found, [2, 3, 2], ()), table, rtol=1e-12)
