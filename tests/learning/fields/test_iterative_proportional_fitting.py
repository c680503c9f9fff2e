"""Iterative proportional fitting: the data's margins, the closed form, rising likelihood, zeros."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.learning.fields import iterative_proportional_fitting as module


def network(scopes, cards):
    return mk.MarkovNetwork(cards, [mk.Factor(s, np.ones([cards[n] for n in s])) for s in scopes])


def rows_of(cards, n, seed):
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 100, size=n)
    return {v: (rng.integers(0, k, size=n) + (base % (i + 2))) % k for i, (v, k) in enumerate(cards.items())}


def margin(rows, names, cards):
    table = np.zeros([cards[n] for n in names])
    np.add.at(table, tuple(np.asarray(rows[n]) for n in names), 1.0)
    return table / len(next(iter(rows.values())))


LOOP = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
CARDS = {"a": 2, "b": 3, "c": 2, "d": 2}


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_it_reaches_the_maximum_of_the_likelihood_and_the_margins_of_the_data(seed):
    rng = np.random.default_rng(seed)
    names = list(CARDS)
    scopes = [
        tuple(rng.permutation(names)[: int(rng.integers(1, 4))]) for _ in range(int(rng.integers(1, 6)))
    ]
    scopes = [tuple(str(n) for n in s) for s in scopes]
    rows = rows_of(CARDS, 300, seed)
    mn = network(scopes, CARDS)
    scaled, exact = mn.copy().fit(rows, method="ipf"), mn.copy().fit(rows, method="exact", tolerance=1e-8)
    assert scaled.fit_.converged
    assert scaled.fit_.log_likelihood == pytest.approx(exact.fit_.log_likelihood, abs=1e-4)
    joint = scaled.query(names)
    np.testing.assert_allclose(joint.values, exact.query(names).values, atol=1e-4)
    for scope in scopes:
        np.testing.assert_allclose(scaled.query(list(scope)).values, margin(rows, scope, CARDS), atol=1e-7)
    by_hand = float(np.sum(scaled.log_prob({n: rows[n] for n in names})))
    assert scaled.fit_.log_likelihood == pytest.approx(by_hand, rel=1e-9)


def test_the_likelihood_rises_with_every_sweep_in_both_ways(monkeypatch):
    rows = rows_of(CARDS, 500, 3)
    one = network(LOOP, CARDS).fit(rows, method="ipf")
    monkeypatch.setattr(module, "JOINT", 0)
    other = network(LOOP, CARDS).fit(rows, method="ipf")
    for found in (one, other):
        history = np.array(found.fit_.history)
        assert len(history) > 3
        assert np.all(np.diff(history) >= -1e-12)
    np.testing.assert_allclose(one.fit_.history, other.fit_.history, atol=1e-10)
    np.testing.assert_allclose(one.query(list("abcd")).values, other.query(list("abcd")).values, atol=1e-9)


@pytest.mark.parametrize(
    "scopes",
    [
        [("a", "b"), ("b", "c"), ("c", "d")],
        [("a", "b", "c"), ("c", "b", "d")],
        [("a", "b"), ("c", "d")],
        [("a", "b"), ("c",)],
        [("b",), ("a", "b"), ("b", "c"), ("b", "d")],
    ],
)
def test_decomposable_models_are_written_down_in_one_pass(scopes, monkeypatch):
    rows = rows_of(CARDS, 200, 5)
    direct = network(scopes, CARDS).fit(rows)
    assert direct.fit_.details["decomposable"]
    assert direct.fit_.iterations == 1
    monkeypatch.setattr(module, "perfect_order", lambda layout: None)
    scaled = network(scopes, CARDS).fit(rows, method="ipf")
    assert not scaled.fit_.details["decomposable"]
    np.testing.assert_allclose(
        direct.query(list("abcd")).values, scaled.query(list("abcd")).values, atol=1e-9
    )
    assert direct.fit_.log_likelihood == pytest.approx(scaled.fit_.log_likelihood, rel=1e-10)
    if not any("d" in s for s in scopes):
        np.testing.assert_allclose(direct.query("d").values, 0.5)


def test_loops_and_triangles_of_pairs_are_not_decomposable():
    rows = rows_of(CARDS, 200, 6)
    for scopes in (LOOP, [("a", "b"), ("b", "c"), ("a", "c")]):
        found = network(scopes, CARDS).fit(rows, method="ipf")
        assert not found.fit_.details["decomposable"]
        assert found.fit_.iterations > 1


def test_pairs_that_no_row_shows_get_weight_zero_and_zeros_of_the_factors_stay():
    rows = {
        "a": [0, 0, 0, 1, 1, 1],
        "b": [0, 1, 1, 1, 1, 2],
        "c": [0, 1, 0, 1, 1, 0],
        "d": [0, 0, 1, 1, 0, 1],
    }
    found = network(LOOP, CARDS).fit(rows, method="ipf")
    assert found.query(["a", "b"])[1, 0] == 0.0
    np.testing.assert_allclose(found.query(["a", "b"]).values, margin(rows, ("a", "b"), CARDS), atol=1e-6)
    held = network(LOOP, CARDS)
    held.remove_factor(0)
    held.add_factor(mk.Factor(["a", "b"], [[1, 1, 1], [0, 1, 1]]))
    held.fit(rows, method="ipf")
    assert held.query(["a", "b"])[1, 0] == 0.0


def test_a_long_chain_is_fitted_at_once():
    rng = np.random.default_rng(0)
    n, k = 400, 60
    rows = {f"x{i}": rng.integers(0, 3, size=k) for i in range(n)}
    cards = dict.fromkeys(rows, 3)
    found = network([(f"x{i}", f"x{i + 1}") for i in range(n - 1)], cards).fit(rows)
    assert found.fit_.method == "ipf"
    assert found.fit_.details["decomposable"]
    np.testing.assert_allclose(
        found.query(["x200", "x201"]).values, margin(rows, ("x200", "x201"), cards), atol=1e-9
    )
