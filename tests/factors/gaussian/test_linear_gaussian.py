"""Linear-Gaussian nodes: how they are written, what they say, and what is refused."""

import pickle

import numpy as np
import pytest

import markovia as mk


@pytest.fixture
def network():
    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.5, "b": 0.5})
    m.add("e", [0.3, 0.7])
    m.add("u", mk.LinearGaussian(1.0, {}, 2.0))
    m.add("x", {"a": mk.LinearGaussian(0, {"u": 1}, 1), "b": mk.LinearGaussian(5, {}, 2)}, parents=["d"])
    return m


def test_a_node_prints_its_regressions(network):
    assert repr(network["u"]) == "GaussianConditional p(u)\nmean  variance\n   1         2"
    assert "a     u         1" in repr(network["x"])
    assert "<td>a</td><td>u</td>" in network["x"]._repr_html_()
    network.add("w", mk.LinearGaussian(-1, {"u": -1, "x": 0.5}, 0))
    assert "-1 - u + 0.5 x" in repr(network["w"])
    assert network["x"].to_pandas().loc["b", "bias"].tolist() == [5.0]


def test_weights_name_the_continuous_parents_and_the_list_the_discrete_ones(network):
    assert network.parents("x") == ["d", "u"]
    rows = {(s, k): mk.LinearGaussian(k, {"x": 1.0 if s == "a" else 0.0}, 1) for s in "ab" for k in (0, 1)}
    network.add("y", rows, parents=["d", "e"])
    assert network.parents("y") == ["d", "e", "x"]
    assert network["y"].row(d="b", e=1) == mk.LinearGaussian(1, {"x": 0.0}, 1)
    assert network["y"].n_parameters == 4 * 3
    network.add("z", mk.LinearGaussian(0, {"x": 1}, 1), parents=["d"])  # the same for every state
    assert network["z"].row(d="a") == network["z"].row(d="b")


def test_densities_and_draws_follow_the_regression(network):
    node = network["x"]
    codes, u = np.array([0, 1, 0]), np.array([2.0, 2.0, -1.0])
    logs = node.log_prob(np.array([2.5, 2.5, 0.0]), [codes, u])
    mean, variance = np.array([2.0, 5.0, -1.0]), np.array([1.0, 2.0, 1.0])
    expected = -0.5 * np.log(2 * np.pi * variance) - (np.array([2.5, 2.5, 0.0]) - mean) ** 2 / (2 * variance)
    np.testing.assert_allclose(logs, expected, atol=1e-12)
    drawn = node.sample([np.ones(50_000, int), np.zeros(50_000)], 50_000, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(5.0, abs=4 * np.sqrt(2 / 50_000))


def test_a_deterministic_node_has_its_value_with_probability_one(network):
    network.add("s", mk.LinearGaussian(0, {"u": 2}, 0))
    np.testing.assert_array_equal(
        network["s"].log_prob(np.array([4.0, 4.1]), [np.array([2.0, 2.0])]), [0.0, -np.inf]
    )


def test_a_node_can_be_replaced_renamed_copied_and_pickled(network):
    network.replace("x", {"a": mk.LinearGaussian(1, {}, 1), "b": mk.LinearGaussian(2, {"u": 3}, 1)})
    assert network["x"].row(d="b").weights == {"u": 3.0}
    network.rename("u", "v")
    assert network["x"].row(d="b").weights == {"v": 3.0}
    twin = pickle.loads(pickle.dumps(network))
    assert twin["x"].allclose(network["x"])
    assert twin.query("x").mean() == network.query("x").mean()
    recipe = pickle.loads(pickle.dumps(mk.LinearGaussian(1, {"a": 2}, 3)))
    assert recipe == mk.LinearGaussian(1, {"a": 2}, 3)


def test_two_nodes_are_compared_up_to_the_order_of_parents():
    one, other = mk.BayesianNetwork(), mk.BayesianNetwork()
    for m, weights in ((one, {"a": 1, "b": 2}), (other, {"b": 2, "a": 1})):
        m.add("a", mk.LinearGaussian())
        m.add("b", mk.LinearGaussian())
        m.add("c", mk.LinearGaussian(0, weights, 1))
    assert one["c"].allclose(other["c"])
    other.replace("c", mk.LinearGaussian(0, {"b": 1, "a": 2}, 1))
    assert not one["c"].allclose(other["c"])


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: m.add("q", mk.LinearGaussian(0, {"d": 1}, 1)), "'d', which has states"),
        (lambda m: m.add("q", mk.LinearGaussian(0, {"nobody": 1}, 1)), "nobody"),
        (lambda m: m.add("q", mk.LinearGaussian(0, {}, -1)), "zero or positive"),
        (lambda m: m.add("q", mk.LinearGaussian("high")), "bias is a number"),
        (
            lambda m: m.add("q", mk.LinearGaussian(0, {"u": float("nan")}, 1)),
            "weight of 'u' is a finite number",
        ),
        (lambda m: m.add("q", mk.LinearGaussian(0, [1, 2], 1)), "mapping from parent"),
        (lambda m: m.add("q", {"a": mk.LinearGaussian()}, parents=["d"]), "no regression for d='b'"),
        (lambda m: m.add("q", {"c": mk.LinearGaussian()}, parents=["d"]), "unknown state 'c'"),
        (
            lambda m: m.add("q", {"a": mk.LinearGaussian(), "b": mk.LinearGaussian()}),
            "parents=\\[...\\] names them",
        ),
        (lambda m: m.add("q", mk.LinearGaussian(), states=["lo", "hi"]), "no states"),
        (lambda m: m.replace("d", mk.LinearGaussian()), "'d' has states"),
        (lambda m: m["x"].values, "no table"),
        (lambda m: m["x"].row(), "needs a state for 'd'"),
        (lambda m: m.do(u="high"), "is a number"),
        (lambda m: m.states("u"), "has no states"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(network, act, message):
    before = repr(network)
    with pytest.raises(mk.MarkoviaError, match=message):
        act(network)
    assert repr(network) == before
