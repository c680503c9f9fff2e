"""Conditional random fields with potentials from a JAX function: gradients by automatic differentiation, and training."""

import itertools

import numpy as np
import pytest

import markovia as mk
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.log_partition_jax import log_partition
from markovia.learning.conditional_fields.marginals import field_marginals
from markovia.learning.conditional_fields.neural_fields import (
    NeuralFieldLoss,
    field_graphs,
    potential_network,
)

jax = pytest.importorskip("jax")
jnp = jax.numpy

TREE = np.array([(0, 1), (2, 1), (1, 3), (4, 3)])


def enumerated(nodes, tables, edges):
    n, k = nodes.shape
    all_y = np.array(list(itertools.product(range(k), repeat=n)))
    logs = nodes[np.arange(n), all_y].sum(axis=1)
    for (a, b), table in zip(edges, tables, strict=True):
        logs = logs + table[all_y[:, a], all_y[:, b]]
    return np.logaddexp.reduce(logs)


@pytest.mark.parametrize("edges", [None, TREE])
def test_the_derivative_of_log_z_is_the_marginals(edges):
    rng = np.random.default_rng(0)
    nodes, tables = rng.normal(size=(5, 3)), rng.normal(size=(4, 3, 3))
    pairs = np.array([(i, i + 1) for i in range(4)]) if edges is None else edges
    with jax.enable_x64(True):
        value = float(jax.jit(lambda a, b: log_partition(a, b, edges))(nodes, tables))
        slopes = jax.jit(jax.grad(lambda a, b: log_partition(a, b, edges), argnums=(0, 1)))
        by_node, by_pair = slopes(jnp.asarray(nodes), jnp.asarray(tables))
    assert value == pytest.approx(enumerated(nodes, tables, pairs), abs=1e-10)
    fields = Fields.of(
        3,
        np.array([0, 5]),
        np.array([0, 4]),
        pairs[:, 0].copy(),
        pairs[:, 1].copy(),
        np.ones((4, 1)),
        share=False,
    )
    found = field_marginals(fields, nodes, tables)
    np.testing.assert_allclose(found.beliefs, by_node, atol=1e-10)
    np.testing.assert_allclose(found.pairs, by_pair, atol=1e-10)


def test_log_z_in_jax_refuses_cycles():
    with pytest.raises(mk.errors.InvalidGraph, match="cycle"):
        log_partition(np.zeros((3, 2)), np.zeros((2, 2)), [(0, 1), (1, 2), (2, 0)])


def network(params, x):
    hidden = jnp.tanh(x @ params["first"] + params["bias"])
    return hidden @ params["second"], params["edges"]


def start(rng, d, hidden, k):
    return {
        "first": rng.normal(size=(d, hidden)),
        "bias": np.zeros(hidden),
        "second": 0.5 * rng.normal(size=(hidden, k)),
        "edges": np.zeros((k, k)),
    }


def rings(n, seed):
    """Labels that persist along a chain; whether a point is inside a ring, which no linear score can tell."""
    rng = np.random.default_rng(seed)
    labels = [np.repeat(rng.integers(2, size=3), 3) for _ in range(n)]
    angle = [rng.uniform(0, 2 * np.pi, size=9) for _ in labels]
    radius = [np.where(y == 1, 1.5, 0.6) + 0.35 * rng.normal(size=9) for y in labels]
    return [
        np.column_stack([r * np.cos(a), r * np.sin(a)]) for r, a in zip(radius, angle, strict=True)
    ], labels


def test_the_gradient_by_marginals_is_that_of_differentiating_through_log_z():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 2)), np.array([0, 2, 1, 1, 0])
    params = start(rng, 2, 4, 3)
    params["edges"] = rng.normal(size=(3, 3))

    def loss(params):
        nodes, table = network(params, jnp.asarray(x))
        score = nodes[np.arange(5), y].sum() + table[y[TREE[:, 0]], y[TREE[:, 1]]].sum()
        return log_partition(nodes, table, TREE) - score

    with jax.enable_x64(True):
        value, wanted = jax.jit(jax.value_and_grad(loss))(jax.tree.map(jnp.asarray, params))
        made = potential_network(network)
        scored = made.scores(params, [x])
        fields, _ = field_graphs(TREE.tolist(), [x], scored)
        found, slopes = NeuralFieldLoss(made, [x], fields, y).by_scores(np.array([0]), scored)
        gradient = made.pull_back(params, [x], slopes)
    assert found == pytest.approx(float(value), abs=1e-10)
    for name in params:
        np.testing.assert_allclose(gradient[name], wanted[name], atol=1e-10)


@pytest.mark.slow
def test_a_network_learns_what_a_linear_field_cannot():
    inputs, labels = rings(60, 0)
    fresh, truth = rings(40, 1)
    params = start(np.random.default_rng(0), 2, 8, 2)
    model = mk.crf.NeuralCRF(network, params, epochs=40, learning_rate=0.05, random_state=0).fit(
        inputs, labels
    )
    linear = mk.crf.CRF().fit(inputs, labels)
    assert model.score(fresh, truth) > 0.9 > linear.score(fresh, truth) + 0.15
    assert model.loss_curve_[-1] < 0.5 * model.loss_curve_[0]
    assert -model.log_likelihood(fresh, truth) < -linear.log_likelihood(fresh, truth)
    proba = model.predict_proba(fresh)[0]
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(model.network(fresh[0]).query("y3").values, proba[3], atol=1e-9)
    edges = model.params_["edges"]
    assert edges[0, 0] + edges[1, 1] > edges[0, 1] + edges[1, 0]
    assert model.score_exact(fresh, truth) <= model.score(fresh, truth)


def test_a_linear_network_reaches_the_optimum_of_a_plain_field():
    inputs, labels = rings(40, 3)
    params = {"w": np.zeros((3, 2)), "edges": np.zeros((2, 2))}

    def linear(params, x):
        return jnp.column_stack([x, jnp.ones(len(x))]) @ params["w"], params["edges"]

    plain = mk.crf.CRF(C=np.inf).fit(inputs, labels)
    model = mk.crf.NeuralCRF(
        linear, params, epochs=120, batch_size=40, learning_rate=0.1, random_state=0
    ).fit(inputs, labels)
    assert model.log_likelihood(inputs, labels) == pytest.approx(
        plain.log_likelihood(inputs, labels), rel=1e-3
    )


def test_lengths_may_differ_and_the_same_seed_gives_the_same_network():
    rng = np.random.default_rng(0)
    labels = [rng.integers(2, size=n) for n in (3, 5, 3, 1, 5)]
    inputs = [y[:, None] + 0.3 * rng.normal(size=(len(y), 1)) for y in labels]
    params = start(rng, 1, 3, 2)
    one, two = (
        mk.crf.NeuralCRF(network, params, epochs=5, random_state=1).fit(inputs, labels) for _ in range(2)
    )
    np.testing.assert_array_equal(one.params_["first"], two.params_["first"])
    assert [len(y) for y in one.predict(inputs)] == [3, 5, 3, 1, 5]


@pytest.mark.slow
def test_any_graph_and_method_works_for_neural_potentials():
    rng = np.random.default_rng(0)
    cycle = [(0, 1), (1, 2), (2, 3), (3, 0)]
    labels = [np.where(rng.random(4) < 0.15, 1 - i % 2, i % 2) for i in range(40)]
    inputs = [y[:, None] + rng.normal(size=(4, 1)) for y in labels]
    params = start(rng, 1, 3, 2)
    for method in ("exact", "loopy-bp", "pseudo-likelihood", "gibbs"):
        model = mk.crf.NeuralCRF(
            network,
            params,
            graph=cycle,
            inference=method,
            epochs=25,
            batch_size=20,
            learning_rate=0.05,
            random_state=0,
        ).fit(inputs, labels)
        edges = model.params_["edges"]
        assert edges[0, 0] + edges[1, 1] > edges[0, 1] + edges[1, 0] + 0.5
        assert model.score(inputs, labels) > 0.7
    own = mk.crf.NeuralCRF(network, params, graph=lambda x: cycle, epochs=2, random_state=0).fit(
        inputs, labels
    )
    assert (
        own.network(inputs[0]).edges
        == mk.crf.NeuralCRF(network, params, graph=cycle, epochs=2)
        .fit(inputs, labels)
        .network(inputs[0])
        .edges
    )


def test_wrong_shapes_are_named():
    bad = mk.crf.NeuralCRF(lambda p, x: (x, jnp.zeros((7, 2, 2))), {"a": np.zeros(1)})
    with pytest.raises(mk.errors.InvalidArgument, match="2 edges and 2 labels"):
        bad.fit([np.zeros((3, 2))], [[0, 1, 0]])
    alone = mk.crf.NeuralCRF(lambda p, x: x, {"a": np.zeros(1)})
    with pytest.raises(mk.errors.InvalidArgument, match="returns a pair"):
        alone.fit([np.zeros((3, 2))], [[0, 1, 0]])


def test_training_leaves_jax_as_it_was():
    before = jnp.ones(1).dtype
    params = {"edges": np.zeros((2, 2))}
    mk.crf.NeuralCRF(lambda p, x: (x, p["edges"]), params, epochs=1).fit([np.zeros((2, 2))], [[0, 1]])
    assert jnp.ones(1).dtype == before


def runs(n=30, seed=0):
    rng = np.random.default_rng(seed)
    labels = [np.repeat(rng.integers(2, size=3), 4) for _ in range(n)]
    inputs = [y[:, None] * [[1.0, -1.0]] + rng.normal(size=(12, 2)) for y in labels]
    return inputs, labels


@pytest.mark.slow
def test_any_equinox_module_is_an_emission():
    import equinox as eqx
    import jax

    inputs, labels = runs()
    one_node = eqx.nn.MLP(2, 2, 8, 1, key=jax.random.PRNGKey(0))

    class Whole(eqx.Module):
        net: eqx.nn.MLP

        def __call__(self, x):
            return jax.vmap(self.net)(x)

    settings = {"epochs": 5, "learning_rate": 0.05, "random_state": 0}
    one = mk.crf.NeuralCRF(one_node, **settings).fit(inputs, labels)
    two = mk.crf.NeuralCRF(Whole(one_node), sees="input", **settings).fit(inputs, labels)
    assert one.score(inputs, labels) > 0.85
    np.testing.assert_allclose(one.transitions_, two.transitions_)
    assert one.transitions_[0, 0] > one.transitions_[0, 1]  # labels stay
    # the trained module's scores and the learned table are the model
    scores = np.asarray(jax.vmap(one.module_)(inputs[0]))
    chain = mk.ChainCRF.from_weights([0, 1], np.eye(2), one.transitions_)
    np.testing.assert_allclose(one.predict_proba(inputs[:1])[0], chain.smooth([scores])[0], atol=1e-5)
    # a module as params of a function that makes both scores
    three = mk.crf.NeuralCRF(lambda net, x: (jax.vmap(net)(x), np.zeros((2, 2))), one_node, **settings)
    assert three.fit(inputs, labels).score(inputs, labels) > 0.7
    assert three.module_(inputs[0][0]).shape == (2,)


def test_a_module_sees_nodes_whatever_else_would_fit():
    rng = np.random.default_rng(0)
    inputs = [
        rng.normal(size=(2, 2)) for _ in range(6)
    ]  # as many nodes as features: the layer takes the whole, too
    labels = [[0, 1]] * 6
    crf = mk.crf.NeuralCRF(mk.networks.mlp(2, 2, layers=0), epochs=2, random_state=0).fit(inputs, labels)
    layer = crf.module_.layers[0]
    scores = [x @ np.asarray(layer.weight).T + np.asarray(layer.bias) for x in inputs]
    chain = mk.ChainCRF.from_weights([0, 1], np.eye(2), crf.transitions_)
    np.testing.assert_allclose(crf.predict_proba(inputs)[0], chain.smooth(scores)[0], atol=1e-5)


def test_a_module_without_arrays_is_refused():
    inputs, labels = runs(3)
    with pytest.raises(mk.errors.InvalidArgument, match="no arrays to train"):
        mk.crf.NeuralCRF(lambda x: x).fit(inputs, labels)
