"""Components as nodes of a network: the network has the density of the components, and no edge that says nothing."""

import numpy as np
import pytest

from markovia.errors import UnsupportedModel
from markovia.learning.components.discrete import Bernoulli, Categorical, Poisson
from markovia.learning.components.gaussian import Gaussian
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.hidden_states.component_nodes import add_components, column_names

WEIGHTS = np.array([0.3, 0.7])


def network_of(components, names):
    network = BayesianNetwork()
    network.add("k", states=[0, 1], p=WEIGHTS)
    add_components(network, components, names, ["k"])
    return network


def test_the_columns_of_gaussians_have_their_joint_density():
    means = np.array([[0.0, 1.0, -2.0], [3.0, -1.0, 0.5]])
    roots = np.random.default_rng(0).normal(size=(2, 3, 3))
    components = Gaussian(means, roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(3))
    names = column_names("x", components)
    assert names == ["x_0", "x_1", "x_2"]
    network = network_of(components, names)
    rows = np.random.default_rng(1).normal(size=(5, 3))
    logs = components.log_densities(rows) + np.log(WEIGHTS)
    for k in (0, 1):
        found = network.log_prob({"k": [k] * 5, **dict(zip(names, rows.T, strict=True))})
        np.testing.assert_allclose(found, logs[:, k], rtol=1e-10)


def test_columns_that_are_independent_in_every_component_have_no_edge():
    components = Gaussian(np.zeros((2, 2)), np.array([np.diag([1.0, 2.0]), np.diag([3.0, 4.0])]))
    assert network_of(components, ["a", "b"]).edges == [("k", "a"), ("k", "b")]


def test_tables_are_those_of_symbols_and_of_ones():
    table = np.array([[0.9, 0.1], [0.2, 0.8]])
    symbols = Categorical(table, ("no", "yes"))
    assert column_names("x", symbols) == ["x"]
    np.testing.assert_allclose(network_of(symbols, ["x"])["x"].values, table)
    ones = network_of(Bernoulli(np.array([[0.9, 0.3], [0.2, 0.6]])), ["a", "b"])
    np.testing.assert_allclose(ones["b"].values, [[0.7, 0.3], [0.4, 0.6]])


def test_labels_name_the_states_of_several_parents():
    network = BayesianNetwork()
    for name in "ij":
        network.add(name, states=[0, 1], p=[0.5, 0.5])
    components = Gaussian(np.arange(4.0)[:, None], np.ones((4, 1, 1)))
    add_components(network, components, ["x"], ["i", "j"], [(0, 0), (0, 1), (1, 0), (1, 1)])
    assert [network.query("x", given={"i": i, "j": j}).mean() for i in (0, 1) for j in (0, 1)] == [0, 1, 2, 3]


def test_components_without_nodes_are_refused():
    with pytest.raises(UnsupportedModel, match="Poisson components are no nodes"):
        network_of(Poisson(np.ones((2, 1))), ["x"])
