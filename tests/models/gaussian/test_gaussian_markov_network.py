"""Gaussian fields by their precision, against dense formulas."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy import sparse

import markovia as mk
from gaussian_references import conditioned, moments, random_network, seeds


def random_precision(rng, n):
    half = sparse.random(n, n, density=0.3, random_state=int(rng.integers(2**31)))
    return (half @ half.T + sparse.diags(rng.uniform(0.5, 2.0, n))).tocsr()


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_a_field_answers_as_dense_conditioning_does(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    precision, mean = random_precision(rng, n), rng.normal(size=n)
    m = mk.GaussianMarkovNetwork(precision, mean=mean)
    covariance = np.linalg.inv(precision.toarray())
    evidence = {x: float(rng.normal()) for x in m.variables if rng.random() < 0.4}
    left, after, spread, log_density = conditioned(m.variables, mean, covariance, evidence)
    assert m.log_evidence(evidence) == pytest.approx(log_density, abs=1e-8)
    found = m.marginals(given=evidence)
    assert list(found) == left
    np.testing.assert_allclose([p.mean() for p in found.values()], after, atol=1e-8)
    np.testing.assert_allclose([p.var() for p in found.values()], np.diag(spread), atol=1e-8)
    if left:
        best = m.map(given=evidence)
        np.testing.assert_allclose([best[x] for x in left], after, atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_directed_and_undirected_forms_are_the_same_distribution(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, int(rng.integers(1, 8)))
    field = network.to_markov_network()
    assert isinstance(field, mk.GaussianMarkovNetwork)
    names, mean, covariance = moments(network, {})
    at = [field.variables.index(x) for x in names]
    inverse = np.linalg.inv(field.precision.toarray())
    np.testing.assert_allclose(inverse[np.ix_(at, at)], covariance, rtol=1e-7, atol=1e-7)
    again = field.to_bayesian_network()
    names_again, mean_again, covariance_again = moments(again, {})
    order = [names_again.index(x) for x in names]
    np.testing.assert_allclose(mean_again[order], mean, atol=1e-7)
    np.testing.assert_allclose(covariance_again[np.ix_(order, order)], covariance, rtol=1e-6, atol=1e-7)
    rows = network.sample(4, seed=rng)
    np.testing.assert_allclose(field.log_prob(rows), network.log_prob(rows), atol=1e-7)


def test_a_large_field_becomes_a_network_by_its_sparse_factor():
    precision = sparse.diags([-np.ones(399), np.full(400, 2.5), -np.ones(399)], [-1, 0, 1]).tocsr()
    field = mk.GaussianMarkovNetwork(precision, mean=np.arange(400.0))
    network = field.to_bayesian_network(allow_fill=False)
    assert len(network.edges) == 399
    assert network.query("x200").mean() == pytest.approx(200.0, abs=1e-9)
    assert network.query("x7").var() == pytest.approx(field.query("x7").var(), abs=1e-12)
    assert network.to_markov_network().precision.toarray() == pytest.approx(precision.toarray(), abs=1e-9)


def test_the_graph_is_the_pattern_of_the_precision():
    """Inventory 004 B1: Theta_ij = 0 if and only if there is no edge, independence given all others."""
    m = mk.GaussianMarkovNetwork({("a", "b"): 0.5, ("b", "c"): -0.5, "a": 1, "b": 1, "c": 1, "d": 2})
    assert set(map(frozenset, m.edges)) == {frozenset("ab"), frozenset("bc")}
    assert m.markov_blanket("b") == {"a", "c"}
    assert m.independent("a", "c", given="b")
    assert not m.independent("a", "c")
    assert m.query(["a", "c"], given={"b": 0.3}).correlation("a", "c") == pytest.approx(0.0, abs=1e-12)
    assert m.query(["a", "c"]).correlation("a", "c") != pytest.approx(0.0, abs=1e-3)
    assert m.graph.n_edges == 2
    assert repr(m) == "GaussianMarkovNetwork(4 variables, 2 edges)"


def test_a_square_needs_a_chord_to_become_directed():
    square = {
        **dict.fromkeys("abcd", 3.0),
        ("a", "b"): 1.0,
        ("b", "c"): 1.0,
        ("c", "d"): 1.0,
        ("d", "a"): 1.0,
    }
    m = mk.GaussianMarkovNetwork(square)
    with pytest.raises(mk.MarkoviaError, match="not chordal"):
        m.to_bayesian_network(allow_fill=False)
    assert len(m.to_bayesian_network().edges) == 5


def test_label_propagation_is_decoding_in_a_gaussian_field():
    """Inventory 004 E25: the best labels solve the linear system of the weighted graph."""
    weights = {("l0", "u0"): 2.0, ("l1", "u1"): 1.0, ("u0", "u1"): 3.0}
    nodes = ["l0", "l1", "u0", "u1"]
    laplacian = np.zeros((4, 4))
    for (a, b), w in weights.items():
        i, j = nodes.index(a), nodes.index(b)
        laplacian[[i, j], [i, j]] += w
        laplacian[i, j] = laplacian[j, i] = -w
    m = mk.GaussianMarkovNetwork(laplacian + 1e-9 * np.eye(4), names=nodes)
    best = m.map(given={"l0": -1.0, "l1": 1.0})
    expected = np.linalg.solve(laplacian[2:, 2:], -laplacian[2:, :2] @ [-1.0, 1.0])
    np.testing.assert_allclose([best["u0"], best["u1"]], expected, atol=1e-7)


@settings(max_examples=15, deadline=None)
@given(seeds)
def test_a_fit_agrees_with_the_data_on_edges_and_has_zeros_elsewhere(seed):
    rng = np.random.default_rng(seed)
    n = 5
    m = mk.GaussianMarkovNetwork(random_precision(rng, n))
    frame = pd.DataFrame(rng.normal(size=(60, n)) @ rng.normal(size=(n, n)), columns=m.variables)
    m.fit(frame)
    fitted = np.linalg.inv(m.precision.toarray())
    sample = np.cov(frame.to_numpy().T, ddof=0)
    for i, a in enumerate(m.variables):
        assert fitted[i, i] == pytest.approx(sample[i, i], rel=1e-6)
        for j, b in enumerate(m.variables):
            if m.graph.has_edge(a, b):
                assert fitted[i, j] == pytest.approx(sample[i, j], rel=1e-5, abs=1e-6 * np.abs(sample).max())
    np.testing.assert_allclose([m.query(x).mean() for x in m.variables], frame.mean(), atol=1e-8)
    complete = mk.GaussianMarkovNetwork(np.ones((n, n)) + np.eye(n), names=list(frame.columns)).fit(frame)
    np.testing.assert_allclose(
        np.linalg.inv(complete.precision.toarray()), sample, rtol=1e-6, atol=1e-7 * np.abs(sample).max()
    )


def test_few_rows_need_a_prior():
    m = mk.GaussianMarkovNetwork(np.ones((4, 4)) + np.eye(4))
    rows = np.random.default_rng(0).normal(size=(3, 4))
    with pytest.raises(mk.MarkoviaError, match="prior=1"):
        m.fit(rows)
    assert m.fit(rows, prior=2.0).query("x0").sd() > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mk.GaussianMarkovNetwork([[1.0, 0.5], [0.2, 1.0]]), "not symmetric: see 'x0' and 'x1'"),
        (lambda: mk.GaussianMarkovNetwork([[1.0, 0.0], [0.0, 0.0]]), "precision of 'x1' is not positive"),
        (lambda: mk.GaussianMarkovNetwork(np.eye(2), names=["a"]), "1 names"),
        (lambda: mk.GaussianMarkovNetwork(np.eye(2), names=["a", "a"]), "'a'"),
        (
            lambda: mk.GaussianMarkovNetwork(np.eye(2), mean=[0], names=["a", "b"]),
            "mean= is 2 finite numbers",
        ),
        (lambda: mk.GaussianMarkovNetwork(np.eye(2), mean={"q": 1.0}), "unknown variable 'q'"),
        (lambda: mk.GaussianMarkovNetwork(np.eye(1), mean=[0], information=[0]), "not both"),
        (lambda: mk.GaussianMarkovNetwork({"a": 1, "b": 1, ("a", "b"): 0.1, ("b", "a"): 0.2}), "differs"),
        (lambda: mk.GaussianMarkovNetwork([[1.0, 2.0], [2.0, 1.0]]).query("x0"), "not positive definite"),
        (lambda: mk.GaussianMarkovNetwork("abc"), "square matrix"),
        (lambda: mk.GaussianMarkovNetwork(np.eye(1)).to_factor_graph(), "tables"),
    ],
)
def test_what_is_no_precision_is_refused(make, message):
    with pytest.raises(mk.MarkoviaError, match=message):
        make()
