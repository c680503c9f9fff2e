"""The gradient of sigmoid belief networks, against Neal's rule written out and difference quotients."""

import itertools

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument

UNITS = ["h1", "h2", "v1", "v2", "v3"]
EDGES = [("h1", "h2"), ("h1", "v1"), ("h2", "v1"), ("h1", "v2"), ("h2", "v2"), ("h2", "v3"), ("v1", "v3")]
ROWS = {"v1": [1, 0, 1, 1, 0, None], "v2": [1, 1, 0, 1, 0, 1], "v3": [0, 1, 1, 1, 0, 1]}


def network(theta):
    """A sigmoid belief network with two layers; a weight an edge, then a bias a unit."""
    weights = dict(zip(EDGES, theta, strict=False))
    bn = mk.BayesianNetwork()
    for unit, bias in zip(UNITS, theta[len(EDGES) :], strict=True):
        own = {a: weights[a, b] for a, b in EDGES if b == unit}
        bn.add(unit, states=[0, 1], parents=list(own), p=mk.local.Logistic(own, bias=bias))
    return bn


def neal(theta, row_weights):
    """The log likelihood and Neal's rule, state by state."""
    weights, bias = dict(zip(EDGES, theta, strict=False)), dict(zip(UNITS, theta[len(EDGES) :], strict=True))
    slope, total = np.zeros(len(theta)), 0.0

    def sigma(a):
        return 1.0 / (1.0 + np.exp(-a))

    for r, weight in enumerate(row_weights):
        masses, terms = [], []
        for s in itertools.product([0, 1], repeat=5):
            state = dict(zip(UNITS, s, strict=True))
            if any(column[r] not in (None, state[n]) for n, column in ROWS.items()):
                continue
            odds = {i: bias[i] + sum(w * state[a] for (a, b), w in weights.items() if b == i) for i in UNITS}
            sign = {i: 2 * state[i] - 1 for i in UNITS}
            masses.append(np.prod([sigma(sign[i] * odds[i]) for i in UNITS]))
            push = {i: sign[i] * sigma(-sign[i] * odds[i]) for i in UNITS}
            terms.append([push[b] * state[a] for a, b in EDGES] + [push[i] for i in UNITS])
        total += weight * np.log(np.sum(masses))
        slope += weight * np.average(terms, axis=0, weights=masses)
    return total, slope


def as_vector(found):
    return np.array([found.weights[b][a] for a, b in EDGES] + [found.biases[i] for i in UNITS])


@pytest.mark.parametrize("row_weights", [np.ones(6), np.array([2.0, 0.5, 1.0, 0.0, 3.0, 1.0])])
def test_the_gradient_is_neals_rule_and_a_difference_quotient(row_weights):
    theta = np.random.default_rng(0).normal(size=len(EDGES) + len(UNITS))
    found = mk.learning.sigmoid_gradient(network(theta), ROWS, weights=row_weights)
    value, slope = neal(theta, row_weights)
    assert found.exact
    assert found.log_likelihood == pytest.approx(value, abs=1e-10)
    assert as_vector(found) == pytest.approx(slope, abs=1e-10)

    def likelihood(at):
        return neal(at, row_weights)[0]

    steps = 1e-5 * np.eye(len(theta))
    quotient = [(likelihood(theta + e) - likelihood(theta - e)) / 2e-5 for e in steps]
    assert as_vector(found) == pytest.approx(quotient, abs=1e-8)


def test_gibbs_draws_come_near_the_exact_gradient():
    theta = np.random.default_rng(1).normal(size=len(EDGES) + len(UNITS))
    exact = as_vector(mk.learning.sigmoid_gradient(network(theta), ROWS))
    drawn = mk.learning.sigmoid_gradient(network(theta), ROWS, engine="gibbs", seed=0)
    assert not drawn.exact
    # each of six rows is a mean of a thousand draws between -1 and 1, which depend on each other a little
    assert as_vector(drawn) == pytest.approx(exact, abs=4 * np.sqrt(6 * 3 / 1000))
    assert not np.allclose(as_vector(drawn), exact, atol=1e-9)


def test_states_that_are_words_have_slopes_by_state():
    dose = mk.Variable("dose", ["none", "low", "high"])
    bn = mk.BayesianNetwork()
    bn.add("dose", states=dose.states, p=[0.2, 0.3, 0.5])
    bn.add(
        "cured",
        states=["no", "yes"],
        parents=["dose"],
        p=mk.local.Logistic({"dose": {"low": 1.0, "high": 2.0}}),
    )
    found = mk.learning.sigmoid_gradient(bn, {"dose": ["low", "high"], "cured": ["yes", "no"]})
    assert found.weights["cured"] == {}
    want = [0.0, 1 - 1 / (1 + np.exp(-1)), -1 / (1 + np.exp(-2))]
    assert found.by_state["cured"]["dose"] == pytest.approx(want)
    assert "dose" not in found.biases


def test_a_network_without_logistic_nodes_is_refused():
    with pytest.raises(InvalidArgument, match="no node of this network is logistic"):
        mk.learning.sigmoid_gradient(mk.examples.sprinkler(), {"rain": ["yes"]})
