"""Label propagation: the minimum of the energy, the Gaussian field, harmonic functions, graphs, and when it can help."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.datasets import make_moons

import markovia as mk
from markovia.exponential import MultivariateGaussian
from markovia.learning.prediction.label_propagation import energy, propagate_labels


def field(seed, known=3, unknown=5, classes=None, density=0.6):
    rng = np.random.default_rng(seed)
    w = rng.random((known, unknown)) * (rng.random((known, unknown)) < density)
    w[rng.integers(known, size=unknown), np.arange(unknown)] += 0.1
    v = np.triu(rng.random((unknown, unknown)) * (rng.random((unknown, unknown)) < density), k=1)
    y = rng.normal(size=known) if classes is None else rng.normal(size=(known, classes))
    return y, w, v + v.T


@given(st.integers(0, 2**16))
@settings(max_examples=25)
def test_the_solution_minimises_the_energy(seed):
    y, w, v = field(seed)
    found = propagate_labels(y, w, v).values
    best = optimize.minimize(lambda z: energy(y, z, w, v), np.zeros(5), tol=1e-14)
    assert np.allclose(found, best.x, atol=1e-4)
    low = energy(y, found, w, v)
    assert low <= best.fun + 1e-9
    for step in np.random.default_rng(seed).normal(size=(10, 5)):
        assert energy(y, found + 0.01 * step, w, v) > low


@given(st.integers(0, 2**16))
@settings(max_examples=25)
def test_the_solution_is_the_mean_of_the_gaussian_field(seed):
    y, w, v = field(seed)
    found = propagate_labels(y, w, v)
    # the joint field of all labels, with a weak pull to zero so that it has a covariance, conditioned on the known ones
    everything = np.block([[np.zeros((3, 3)), w], [w.T, v]])
    laplacian = np.diag(everything.sum(axis=0)) - everything
    pull = 1e-9
    joint = MultivariateGaussian.from_precision(np.zeros(8), 2.0 * laplacian + pull * np.eye(8))
    cov = joint.covariance_matrix
    mean = cov[3:, :3] @ np.linalg.solve(cov[:3, :3], y)
    assert np.allclose(found.values, mean, atol=1e-4)
    gaussian = found.gaussian()
    assert np.allclose(gaussian.mean, found.values)
    assert np.allclose(
        gaussian.covariance_matrix,
        cov[3:, 3:] - cov[3:, :3] @ np.linalg.solve(cov[:3, :3], cov[:3, 3:]),
        atol=1e-4,
    )
    # the log density differs from minus the energy by a constant
    points = np.random.default_rng(seed).normal(size=(4, 5))
    offsets = gaussian.log_prob(points) + [energy(y, z, w, v) for z in points]
    assert np.allclose(offsets, offsets[0])
    assert {frozenset(e) for e in gaussian.graph().edges} == {
        frozenset((f"z{i}", f"z{j}")) for i in range(5) for j in range(i) if v[i, j] > 0
    }


@given(st.integers(0, 2**16))
@settings(max_examples=25)
def test_every_unknown_label_is_the_average_of_its_neighbours(seed):
    y, w, v = field(seed, classes=3)
    z = propagate_labels(y, w, v).values
    average = (w.T @ y + v @ z) / (w.sum(axis=0) + v.sum(axis=0))[:, None]
    assert np.allclose(z, average)
    assert (z.max(axis=0) <= y.max(axis=0) + 1e-12).all()
    assert (z.min(axis=0) >= y.min(axis=0) - 1e-12).all()


@given(st.integers(0, 2**16))
@settings(max_examples=15)
def test_sparse_dense_direct_and_iterative_solutions_agree(seed):
    y, w, v = field(seed, known=4, unknown=30, classes=2, density=0.2)
    dense = propagate_labels(y, w, v).values
    small, big = sparse.csr_matrix(w), sparse.csr_matrix(v)
    assert np.allclose(propagate_labels(y, small, big).values, dense)
    for solver in ("direct", "cg"):
        assert np.allclose(propagate_labels(y, small, big, solver=solver).values, dense, atol=1e-8)
    assert propagate_labels(y, w, v, solver="cg").iterations > 0
    assert np.allclose(propagate_labels(y, w, v, solver="cg").values, dense, atol=1e-8)


def test_a_large_chain_is_a_straight_line():
    n = 20_000
    chain = sparse.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1])
    ends = sparse.csr_matrix(([1.0, 1.0], ([0, 1], [0, n - 1])), (2, n))
    for solver in ("direct", "auto"):  # conjugate gradients would need as many steps as there are nodes
        found = propagate_labels([0.0, 1.0], ends, chain, solver=solver)
        assert np.allclose(found.values, np.arange(1, n + 1) / (n + 1), atol=1e-6)
        assert found.iterations == 0


def test_a_large_random_graph_is_solved_by_few_iterations():
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 4000, (2, 30_000))
    half = sparse.coo_matrix((rng.random(30_000), ends), (4000, 4000)).tocsr()
    graph, reach = half + half.T, sparse.csr_matrix(rng.random((5, 4000)) * (rng.random((5, 4000)) < 0.1))
    y = rng.normal(size=(5, 3))
    found = propagate_labels(y, reach, graph)
    assert 0 < found.iterations < 500
    z = found.values
    average = (reach.T @ y + graph @ z - graph.diagonal()[:, None] * z) / (
        np.asarray(reach.sum(axis=0)).reshape(-1)
        + np.asarray(graph.sum(axis=0)).reshape(-1)
        - graph.diagonal()
    )[:, None]
    assert np.allclose(z, average, atol=1e-8)


def test_wrong_weights_are_named():
    y, w, v = field(0)
    with pytest.raises(mk.errors.InvalidArgument, match="not symmetric"):
        propagate_labels(y, w, np.triu(v + 1))
    with pytest.raises(mk.errors.InvalidArgument, match="finite and not negative"):
        propagate_labels(y, -w, v)
    with pytest.raises(mk.errors.InvalidArgument, match="3 known labels, but to_unknown= has 2 rows"):
        propagate_labels(y, w[:2], v)
    with pytest.raises(mk.errors.InvalidArgument, match=r"shape \(5, 5\)"):
        propagate_labels(y, w, v[:3, :3])
    with pytest.raises(mk.errors.InvalidArgument, match="solver="):
        propagate_labels(y, w, v, solver="qr")
    alone = np.zeros((5, 5))
    w[:, 2] = 0
    with pytest.raises(
        mk.errors.InvalidArgument, match=r"1 unknown labels are connected to no known one .*number 2"
    ):
        propagate_labels(y, w, alone)


# -- the estimator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings_", [{"graph": "rbf", "gamma": 30.0}, {"graph": "knn", "n_neighbors": 6}])
def test_two_moons_need_one_label_each(settings_):
    X, y = make_moons(240, noise=0.05, random_state=0)
    given_ = np.full(240, -1)
    given_[[np.flatnonzero(y == c)[0] for c in (0, 1)]] = 0, 1
    model = mk.classifiers.LabelPropagation(**settings_).fit(X, given_)
    assert (model.transduction_ == y).mean() > 0.97
    new, truth = make_moons(100, noise=0.05, random_state=1)
    assert model.score(new, truth) > 0.95
    assert np.allclose(model.predict_proba(new).sum(axis=1), 1)


def test_held_labels_give_the_harmonic_function_of_the_graph():
    rng = np.random.default_rng(1)
    half = np.triu(rng.random((9, 9)), k=1)
    weights = half + half.T
    y = np.array(["a", "b", "c", "?", "?", "?", "?", "a", "?"])
    model = mk.classifiers.LabelPropagation(graph="precomputed", unlabelled="?").fit(weights, y)
    free = y == "?"
    one_hot = (y[~free][:, None] == np.array(["a", "b", "c"])).astype(float)
    expected = propagate_labels(one_hot, weights[np.ix_(~free, free)], weights[np.ix_(free, free)]).values
    assert np.allclose(model.label_distributions_[free], expected)
    assert np.array_equal(model.transduction_[~free], y[~free])
    thin = mk.classifiers.LabelPropagation(graph="precomputed", unlabelled="?").fit(
        sparse.csr_matrix(weights), y
    )
    assert np.allclose(thin.label_distributions_, model.label_distributions_)
    assert np.allclose(
        model.predict_proba(weights[:2]),
        weights[:2] @ model.label_distributions_ / weights[:2].sum(axis=1)[:, None],
    )


def test_tied_labels_can_be_overruled_and_become_held_ones_as_the_weight_grows():
    X = np.array([[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2]])
    y = np.array([0, 0, 1, 0, 1, -1, 1])
    loose = mk.classifiers.LabelPropagation(gamma=1.0, clamping=0.1).fit(X, y)
    assert loose.transduction_[2] == 0
    held = mk.classifiers.LabelPropagation(gamma=1.0).fit(X, y)
    assert held.transduction_[2] == 1
    tight = mk.classifiers.LabelPropagation(gamma=1.0, clamping=1e9).fit(X, y)
    assert np.allclose(tight.label_distributions_, held.label_distributions_, atol=1e-6)
    # the tied solution minimises its own energy
    weights = np.exp(-((X - X.T) ** 2))
    np.fill_diagonal(weights, 0)
    known = np.flatnonzero(y >= 0)
    ties = np.zeros((len(known), len(y)))
    ties[np.arange(len(known)), known] = 0.1
    targets = np.eye(2)[y[known]]
    low = energy(targets, loose.label_distributions_, ties, weights)
    for step in np.random.default_rng(0).normal(size=(20, 7, 2)):
        assert energy(targets, loose.label_distributions_ + 0.01 * step, ties, weights) > low


def test_rows_without_a_path_to_a_label_are_named_or_left_open():
    X = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    y = np.array([0, 1, -1, -1, -1, -1])
    with pytest.raises(mk.errors.InvalidArgument, match=r"3 rows are connected to no labelled one .*row 3"):
        mk.classifiers.LabelPropagation(graph="knn", n_neighbors=2).fit(X, y)
    model = mk.classifiers.LabelPropagation(graph="knn", n_neighbors=2, unreachable="uniform").fit(X, y)
    assert np.allclose(model.label_distributions_[3:], 0.5)
    for blank, labels in ((-1, ["a", "b", -1, -1, -1, -1]), (None, ["a", "b", None, None, None, None])):
        named = mk.classifiers.LabelPropagation(unlabelled=blank, unreachable="uniform").fit(X, labels)
        assert named.classes_.tolist() == ["a", "b"]
    with pytest.raises(mk.errors.InvalidArgument, match="no row has a label"):
        mk.classifiers.LabelPropagation().fit(X, np.full(6, -1))
    for wrong in ({"graph": "epsilon"}, {"gamma": -1.0}, {"clamping": 0.0}, {"unreachable": "drop"}):
        with pytest.raises(mk.errors.InvalidArgument, match=f"{next(iter(wrong))}="):
            mk.classifiers.LabelPropagation(**wrong).fit(X, y)


def test_unlabelled_rows_tell_something_only_if_they_share_their_law_with_the_others():
    # D: the law of features, w: the classifier; Xbar and ybar are the unlabelled rows, Xnew and ynew the test row
    shared = mk.graphs.DAG.from_parents(
        {
            "D": [],
            "w": [],
            "X": ["D"],
            "Xbar": ["D"],
            "Xnew": ["D"],
            "y": ["X", "w"],
            "ybar": ["Xbar", "w"],
            "ynew": ["Xnew", "w"],
        }
    )
    apart = mk.graphs.DAG([e for e in shared.edges if e != ("D", "Xbar")])
    for graph, answer in ((shared, False), (apart, True)):
        bn = mk.BayesianNetwork(graph)
        assert bn.independent("Xbar", "ynew", given=["X", "y"]) is answer
    assert mk.BayesianNetwork(shared).independent("Xbar", "ynew", given=["X", "y", "Xnew"])
    assert not mk.BayesianNetwork(apart).independent("Xbar", "ynew", given=["X", "y", "ybar"])
