"""Multiplicative utilities against the equations that define them."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovia as mk
from markovia.control import Multiplicative, multiplicative

weights = st.lists(st.floats(0.01, 0.95), min_size=2, max_size=6)


@given(weights, st.integers(0, 10**6))
def test_the_form_solves_its_equations(ks, seed):
    form = multiplicative({f"a{i}": k for i, k in enumerate(ks)})
    K = form.interaction
    assert K > -1
    assert (K < 0) == (sum(ks) > 1 + 1e-12)
    assert (K > 0) == (sum(ks) < 1 - 1e-12)
    assert np.log1p(K * np.array(ks)).sum() == pytest.approx(np.log1p(K), rel=1e-9, abs=1e-12)
    u = np.random.default_rng(seed).random(len(ks))
    assert 1 + K * form(*u) == pytest.approx(np.prod(1 + K * np.array(ks) * u), rel=1e-9, abs=1e-9)
    assert form(*np.ones(len(ks))) == pytest.approx(1.0, rel=1e-6)
    assert form(*np.zeros(len(ks))) == 0.0
    assert form(*np.eye(len(ks))) == pytest.approx(ks)


def test_two_attributes_have_a_closed_form():
    assert multiplicative({"a": 0.4, "b": 0.5}).interaction == pytest.approx(0.1 / 0.2)
    assert multiplicative({"a": 0.6, "b": 0.9}).interaction == pytest.approx(-0.5 / 0.54)


def test_weights_that_sum_to_one_are_additive():
    form = multiplicative({"a": 0.1, "b": 0.2, "c": 0.7})
    assert form.interaction == 0.0
    assert form(1.0, 0.5, 0.0) == pytest.approx(0.2)
    assert multiplicative({"a": 1.0})(0.3) == pytest.approx(0.3)


@pytest.mark.parametrize(
    "bad", [{"a": 0.0, "b": 0.5}, {"a": 1.2}, {"a": 0.5}, {"a": 1.0, "b": 0.5}, {"a": "x"}, [0.5]]
)
def test_bad_weights_are_refused(bad):
    with pytest.raises(mk.errors.InvalidArgument):
        multiplicative(bad)


def test_a_decision_weighs_attributes_by_the_form_in_any_order_of_parents():
    bn = mk.BayesianNetwork()
    bn.add("treat", mk.Decision(3))
    cost, life = np.array([1.0, 0.6, 0.0]), np.array([0.0, 0.7, 1.0])
    bn.add("life", mk.Utility(life), parents=["treat"])
    bn.add("cost", mk.Utility(cost), parents=["treat"])
    form = multiplicative({"cost": 0.4, "life": 0.5})
    bn.add("total", mk.Utility(form), parents=["life", "cost"])
    total = 0.4 * cost + 0.5 * life + 0.5 * 0.2 * cost * life
    policy = bn.decide()
    assert policy.value == pytest.approx(total.max())
    assert policy.act("treat") == int(total.argmax())


def test_forms_are_equal_and_pickled_by_their_weights():
    form = Multiplicative({"a": 0.3, "b": 0.3})
    again = pickle.loads(pickle.dumps(form))
    assert again == form
    assert hash(again) == hash(form)
    assert form != Multiplicative({"a": 0.3, "b": 0.4})
