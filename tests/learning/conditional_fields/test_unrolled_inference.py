"""Inference of a fixed number of steps: beliefs by hand and by brute force, gradients by finite differences, training."""

import itertools
import pickle

import numpy as np
import pytest

import markovia as mk
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.marginals import field_marginals
from markovia.learning.conditional_fields.neural_fields import field_graphs, potential_network
from markovia.learning.conditional_fields.unrolled_inference import UnrolledFieldLoss

jax = pytest.importorskip("jax")
jnp = jax.numpy

TREE = [(0, 1), (2, 1), (1, 3), (4, 3)]
RING = [(0, 1), (1, 2), (3, 2), (3, 0)]


def some_scores(n, m, k, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)), 0.7 * rng.normal(size=(m, k, k))


def enumerated_marginals(nodes, tables, edges):
    n, k = nodes.shape
    weight = np.empty((k,) * n)
    for y in itertools.product(range(k), repeat=n):
        pairs = sum(t[y[a], y[b]] for t, (a, b) in zip(tables, edges, strict=True))
        weight[y] = np.exp(sum(nodes[i, y[i]] for i in range(n)) + pairs)
    weight /= weight.sum()
    return np.array([weight.sum(axis=tuple(j for j in range(n) if j != i)) for i in range(n)])


def unrolled(nodes, tables, edges, **options):
    with jax.enable_x64(True):
        return np.exp(np.asarray(mk.crf.unrolled_marginals(nodes, tables, edges, **options)))


def test_belief_propagation_is_exact_on_a_tree_from_its_longest_path_on():
    nodes, tables = some_scores(5, 4, 3)
    truth = enumerated_marginals(nodes, tables, TREE)
    found = unrolled(nodes, tables, TREE, steps=3, method="unrolled-bp")  # the longest path has three edges
    np.testing.assert_allclose(found, truth, atol=1e-12)
    assert np.abs(unrolled(nodes, tables, TREE, steps=2, method="unrolled-bp") - truth).max() > 1e-3


def test_mean_field_steps_are_those_written_out():
    nodes, tables = some_scores(4, 4, 3, seed=1)
    q = np.full((4, 3), 1 / 3)
    for _ in range(5):
        new = nodes.copy()
        for table, (a, b) in zip(tables, RING, strict=True):
            new[a] += table @ q[b]
            new[b] += table.T @ q[a]
        new = np.exp(new) / np.exp(new).sum(axis=1, keepdims=True)
        q = new**0.7 * q**0.3
        q /= q.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(unrolled(nodes, tables, RING, steps=5, damping=0.3), q, atol=1e-12)


def test_many_steps_end_where_compiled_inference_does():
    nodes, tables = some_scores(4, 4, 2, seed=2)
    tails, heads = np.array(RING).T
    fields = Fields.of(2, np.array([0, 4]), np.array([0, 4]), tails, heads, np.ones((4, 1)), share=False)
    settled = field_marginals(fields, nodes, tables, "loopy-bp").beliefs
    found = unrolled(nodes, tables, RING, steps=300, method="unrolled-bp", damping=0.2)
    np.testing.assert_allclose(found, settled, atol=1e-5)


def potentials(params, x):
    return jnp.tanh(x @ params["first"]) @ params["second"], params["edges"]


def start(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "first": rng.normal(size=(2, 3)),
        "second": rng.normal(size=(3, 2)),
        "edges": rng.normal(size=(2, 2)),
    }


def ring_of(x):
    n = len(x)
    return [(i, (i + 1) % n) for i in range(n)]


@pytest.mark.parametrize("method", ["unrolled-mean-field", "unrolled-bp"])
def test_the_gradient_through_all_steps_is_that_of_finite_differences(method):
    rng = np.random.default_rng(3)
    inputs = [rng.normal(size=(n, 2)) for n in (4, 5, 3)]  # of different sizes, with cycles
    labels = rng.integers(2, size=12)
    params = start()
    with jax.enable_x64(True):
        network = potential_network(potentials)
        fields, _ = field_graphs(ring_of, inputs, network.scores(params, inputs))
        loss = UnrolledFieldLoss(network, inputs, fields, labels, damping=0.1, unrolled=method, steps=3)
        which = np.array([0, 2])

        def value(held):
            return loss.by_scores(which, network.scores(held, [inputs[0], inputs[2]]))[0]

        some = [inputs[0], inputs[2]]
        _, slopes = loss.by_scores(which, network.scores(params, some))
        found = network.pull_back(params, some, slopes)
        for name, array in params.items():
            for at in np.ndindex(*array.shape):
                step = np.zeros_like(array)
                step[at] = 1e-5
                ends = [value({**params, name: array + sign * step}) for sign in (1, -1)]
                assert float(found[name][at]) == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-7)


def test_a_field_is_trained_through_its_steps_and_predicts_with_them():
    rng = np.random.default_rng(0)
    signs = [np.repeat(rng.choice([-1.0, 1.0], (3, 2)), 3, axis=0) for _ in range(24)]
    Y = [(s[:, 0] > 0).astype(int) for s in signs]
    X = [s + rng.normal(scale=0.7, size=s.shape) for s in signs]
    crf = mk.crf.NeuralCRF(
        potentials,
        start(),
        graph=ring_of,
        inference="unrolled-mean-field",
        steps=4,
        epochs=25,
        learning_rate=0.1,
        random_state=0,
    ).fit(X[:16], Y[:16])
    assert crf.loss_curve_[-1] < 0.5 * crf.loss_curve_[0]
    assert crf.score(X[16:], Y[16:]) > 0.8
    nodes, edges = potentials(crf.params_, X[0])
    by_hand = unrolled(nodes, edges, ring_of(X[0]), steps=4)
    np.testing.assert_allclose(crf.predict_proba(X[:1])[0], by_hand, atol=1e-5)
    assert crf.predict(X[:1])[0].tolist() == by_hand.argmax(axis=1).tolist()
    again = pickle.loads(pickle.dumps(crf))
    np.testing.assert_allclose(again.predict_proba(X[:1])[0], by_hand, atol=1e-5)
    # the field itself still has its own likelihood
    assert crf.log_prob(X[:1], Y[:1])[0] < 0.0


def test_bad_steps_and_edges_are_refused():
    nodes, tables = some_scores(3, 2, 2)
    with pytest.raises(mk.errors.InvalidArgument, match="steps="):
        mk.crf.unrolled_marginals(nodes, tables, steps=-1)
    with pytest.raises(mk.errors.InvalidArgument, match="names node 5"):
        mk.crf.unrolled_marginals(nodes, tables, [(0, 5), (1, 2)])
    with pytest.raises(mk.errors.InvalidArgument, match="method="):
        mk.crf.unrolled_marginals(nodes, tables, method="gibbs")
    with pytest.raises(mk.errors.InvalidArgument, match="inference="):
        mk.crf.NeuralCRF(potentials, start(), inference="unrolled").fit([np.zeros((3, 2))], [[0, 1, 0]])
    with np.errstate(divide="ignore"):
        bars = np.log([[1.0, 0.0], [1.0, 1.0]])
    with pytest.raises(mk.errors.InvalidArgument, match="finite scores"):
        mk.crf.NeuralCRF(
            lambda p, x: (x @ p["first"][:, :2], p["edges"] + bars), start(),
            inference="unrolled-bp", epochs=1,
        ).fit([np.zeros((3, 2))], [[0, 1, 0]])  # fmt: skip
