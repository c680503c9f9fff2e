"""Conditional random fields on chains, trees and graphs: against enumeration, closed forms and independent libraries."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import markovia as mk
from markovia.learning.conditional_fields.clique_plan import clique_plan
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.marginals import FieldSampler, field_marginals
from markovia.learning.conditional_fields.objective import PairwiseObjective

CYCLE = [(0, 1), (1, 2), (2, 3), (3, 0)]


def enumerate_field(scores, edges, tables):
    """Return log Z, node and edge marginals, the best labelling and its score, by brute force."""
    n, k = scores.shape
    all_y = np.array(list(itertools.product(range(k), repeat=n)))
    logs = scores[np.arange(n), all_y].sum(axis=1)
    for (a, b), table in zip(edges, tables, strict=True):
        logs = logs + table[all_y[:, a], all_y[:, b]]
    top = logs.max()
    p = np.exp(logs - top)
    mass = top + np.log(p.sum())
    p /= p.sum()
    nodes = np.array([[p[all_y[:, i] == a].sum() for a in range(k)] for i in range(n)])
    pairs = np.zeros((len(edges), k, k))
    for e, (a, b) in enumerate(edges):
        np.add.at(pairs[e], (all_y[:, a], all_y[:, b]), p)
    return mass, nodes, pairs, all_y[np.argmax(logs)], top


def fields_of(graphs, k, rng, n_edge_features=2):
    """Link several small graphs (nodes, edges)."""
    node_ptr = np.cumsum([0, *(n for n, _ in graphs)])
    edge_ptr = np.cumsum([0, *(len(e) for _, e in graphs)])
    flat = [(a + node_ptr[g], b + node_ptr[g]) for g, (_, edges) in enumerate(graphs) for a, b in edges]
    pairs = np.array(flat, dtype=np.int64).reshape(-1, 2)
    rows = rng.normal(size=(len(pairs), n_edge_features))
    return Fields.of(k, node_ptr, edge_ptr, pairs[:, 0].copy(), pairs[:, 1].copy(), rows)


@st.composite
def forests(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    graphs = []
    for n in draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)):
        edges = []
        for i in range(1, n):
            if rng.random() < 0.85:
                j = int(rng.integers(i))
                edges.append((i, j) if rng.random() < 0.5 else (j, i))
        graphs.append((n, edges))
    return graphs, draw(st.integers(2, 4)), rng


@st.composite
def loopy_graphs(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    graphs = []
    for n in draw(st.lists(st.integers(3, 5), min_size=1, max_size=3)):
        pairs = list(itertools.combinations(range(n), 2))
        chosen = rng.permutation(len(pairs))[: int(rng.integers(n, len(pairs) + 1))]
        graphs.append((n, [pairs[i] for i in chosen]))
    return graphs, draw(st.integers(2, 3)), rng


@settings(max_examples=25)
@given(forests())
def test_trees_have_the_marginals_and_best_labellings_of_enumeration(case):
    graphs, k, rng = case
    fields = fields_of(graphs, k, rng)
    assert fields.forest.all()
    scores = rng.normal(scale=2, size=(fields.node_ptr[-1], k))
    tables = rng.normal(scale=2, size=(len(fields.rows), k, k))
    found = field_marginals(fields, scores, tables, "exact")
    best, weight = fields.best(scores, tables, np.arange(len(graphs)))
    for g, (_, edges) in enumerate(graphs):
        nodes, pairs = slice(*fields.node_ptr[g : g + 2]), slice(*fields.edge_ptr[g : g + 2])
        mass, p, q, y, top = enumerate_field(scores[nodes], edges, tables[pairs])
        assert found.log_mass[g] == pytest.approx(mass, abs=1e-10)
        np.testing.assert_allclose(found.beliefs[nodes], p, atol=1e-12)
        np.testing.assert_allclose(found.pairs[pairs], q, atol=1e-12)
        assert weight[g] == pytest.approx(top)
        np.testing.assert_array_equal(best[nodes], y)


@settings(max_examples=20)
@given(loopy_graphs())
def test_clique_trees_have_the_marginals_of_enumeration_and_bounds_hold(case):
    graphs, k, rng = case
    fields = fields_of(graphs, k, rng)
    scores = rng.normal(size=(fields.node_ptr[-1], k))
    tables = rng.normal(size=(len(fields.rows), k, k))
    found = field_marginals(fields, scores, tables, "exact")
    for g, (_, edges) in enumerate(graphs):
        nodes, pairs = slice(*fields.node_ptr[g : g + 2]), slice(*fields.edge_ptr[g : g + 2])
        mass, p, q, _, _ = enumerate_field(scores[nodes], edges, tables[pairs])
        assert found.log_mass[g] == pytest.approx(mass, abs=1e-10)
        np.testing.assert_allclose(found.beliefs[nodes], p, atol=1e-12)
        np.testing.assert_allclose(found.pairs[pairs], q, atol=1e-12)
    assert np.all(field_marginals(fields, scores, tables, "mean-field").log_mass <= found.log_mass + 1e-9)
    upper = field_marginals(fields, scores, tables, "tree-reweighted", sweeps=3000, damping=0.5)
    if upper.error < 1e-6:
        assert np.all(upper.log_mass >= found.log_mass - 1e-6)


def test_appearance_probabilities_are_those_of_spanning_forests():
    rng = np.random.default_rng(0)
    grid = [(i, i + 1) for i in range(8) if i % 3 < 2] + [(i, i + 3) for i in range(6)]
    fields = fields_of([(9, grid), (3, [(0, 1), (1, 2)]), (2, [(0, 1), (1, 0)])], 2, rng)
    rho = fields.appearance()
    sums = np.add.reduceat(rho, fields.edge_ptr[:-1])
    np.testing.assert_allclose(sums, [8, 2, 1])
    np.testing.assert_allclose(rho[-4:-2], 1)
    assert np.all((rho > 0) & (rho <= 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "symmetric", "same"])
@pytest.mark.parametrize(
    "method", ["exact", "pseudo-likelihood", "loopy-bp", "tree-reweighted", "mean-field"]
)
def test_gradients_are_those_of_finite_differences(method, kind):
    rng = np.random.default_rng(3)
    fields = fields_of([(4, CYCLE), (3, [(0, 1), (2, 1)]), (1, [])], 3, rng)
    features, labels = rng.normal(size=(8, 2)), rng.integers(3, size=8)
    objective = PairwiseObjective(
        fields, features, labels, edge_weights=kind, C=3.0, edge_C=5.0, method=method
    )
    theta = 0.3 * rng.normal(size=objective.size)
    _, gradient = objective(theta)
    for j in range(objective.size):
        step = np.zeros(objective.size)
        step[j] = 1e-5
        slope = (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-5
        assert gradient[j] == pytest.approx(slope, abs=2e-6)
    parts = [objective(theta, np.array([g])) for g in range(3)]
    np.testing.assert_allclose(sum(g for _, g in parts), gradient, atol=1e-9)


def test_the_exact_gradient_is_that_of_automatic_differentiation():
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(1)
    features, edge_rows = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    labels = np.array([0, 2, 1, 1])
    ends = np.array(CYCLE)
    fields = Fields.of(3, np.array([0, 4]), np.array([0, 4]), ends[:, 0].copy(), ends[:, 1].copy(), edge_rows)
    objective = PairwiseObjective(fields, features, labels)
    theta = rng.normal(size=objective.size)
    all_y = np.array(list(itertools.product(range(3), repeat=4)))

    def brute_force(theta):
        node, edge = theta[:6].reshape(3, 2), theta[6:].reshape(2, 3, 3)

        def score(y):
            pairs = edge[:, y[:, ends[:, 0]], y[:, ends[:, 1]]]  # edge features, labellings, edges
            return (features * node[y]).sum((1, 2)) + (edge_rows.T[:, None, :] * pairs).sum((0, 2))

        return jax.nn.logsumexp(score(all_y)) - score(labels[None])[0]

    with jax.enable_x64(True):
        value, gradient = jax.jit(jax.value_and_grad(brute_force))(jax.numpy.asarray(theta))
    found = objective(theta)
    assert found[0] == pytest.approx(float(value), abs=1e-10)
    np.testing.assert_allclose(found[1], np.asarray(gradient), atol=1e-10)


def test_the_objective_is_convex_along_lines():
    rng = np.random.default_rng(5)
    fields = fields_of([(4, CYCLE), (3, [(0, 1), (1, 2)])], 2, rng)
    for method in ("exact", "pseudo-likelihood"):
        objective = PairwiseObjective(fields, rng.normal(size=(7, 2)), rng.integers(2, size=7), method=method)
        for _ in range(20):
            a, b = rng.normal(scale=3, size=(2, objective.size))
            assert objective((a + b) / 2)[0] <= (objective(a)[0] + objective(b)[0]) / 2 + 1e-9


def test_gibbs_marginals_agree_with_exact_ones_within_monte_carlo_error():
    rng = np.random.default_rng(2)
    fields = fields_of([(4, CYCLE)], 3, rng)
    scores, tables = rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 3))
    exact = field_marginals(fields, scores, tables)
    drawn = field_marginals(
        fields, scores, tables, "gibbs", sampler=FieldSampler.of(fields, rng, 100, 40_000)
    )
    np.testing.assert_allclose(drawn.beliefs, exact.beliefs, atol=0.02)  # about five standard errors
    np.testing.assert_allclose(drawn.pairs, exact.pairs, atol=0.02)


def test_huge_scores_neither_overflow_nor_underflow():
    scores = np.array([[0.0, 5000.0], [3000.0, 0.0], [0.0, 100.0]])
    tables = np.array([[[0.0, -4000.0], [-9000.0, 0.0]], [[0.0, -900.0], [0.0, 10.0]]])
    fields = fields_of([(3, [(0, 1), (1, 2)])], 2, np.random.default_rng(0))
    found = field_marginals(fields, scores, tables)
    mass, p, _, _, _ = enumerate_field(scores, [(0, 1), (1, 2)], tables)
    assert found.log_mass[0] == pytest.approx(mass)
    np.testing.assert_allclose(found.beliefs, p, atol=1e-12)


def test_the_number_of_threads_does_not_change_the_answer(monkeypatch):
    rng = np.random.default_rng(0)
    graphs = [(40, [(i // 2, i) for i in range(1, 40)]) for _ in range(300)]
    fields = fields_of(graphs, 3, rng, 1)
    fields.rows, fields.row = np.ones((1, 1)), np.zeros(len(fields.tails), dtype=np.int64)
    features = rng.normal(size=(12_000, 3))
    objective = PairwiseObjective(fields, features, rng.integers(3, size=12_000))
    theta = rng.normal(size=objective.size)
    monkeypatch.setenv("MARKOVIA_THREADS", "1")
    one = objective(theta)
    monkeypatch.setenv("MARKOVIA_THREADS", "2")
    two = objective(theta)
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])


# -- worked examples ----------------------------------------------------------------------------------------------


def three_node_chain():
    """The chain of Example 75: f1 = sum x_j y_j, f2 = number of neighbours that differ."""
    place = {"y1": 0, "y2": 1, "y3": 2}
    on = mk.crf.ConditionalFeature(list(place), lambda x, at, y: x[place[at[0]]] * y, "f1")
    differs = mk.crf.ConditionalFeature([("y1", "y2"), ("y2", "y3")], lambda x, at, y, z: float(y != z), "f2")
    return mk.crf.FeatureCRF(dict.fromkeys(place, 2), [on, differs], C=10.0).set_weights([3.0, -2.0])


def test_example_75_with_features_as_functions():
    crf, x, y = three_node_chain(), [0.1, 0.7, 0.3], [1, 1, 0]
    np.testing.assert_allclose(crf.feature_vector(x, y), [0.8, 1.0])
    np.testing.assert_allclose(crf.expected_features(x), [1.0282649, 0.1557224], atol=5e-8)
    np.testing.assert_allclose(crf.gradient([x], [y]), [-0.2282649, 0.8442776], atol=5e-8)
    np.testing.assert_allclose(crf.gradient([x], [y], penalised=True), [-0.8282649, 1.2442776], atol=5e-8)
    for penalised in (False, True):  # both speak of the same function

        def value(weights, penalised=penalised):
            return three_node_chain().set_weights(weights).log_likelihood([x], [y], penalised=penalised)

        slope = approx_fprime(crf.coef_, value, 1e-6)
        np.testing.assert_allclose(crf.gradient([x], [y], penalised=penalised), slope, atol=1e-4)
    assert crf.log_likelihood([x], [y]) - value(crf.coef_) == pytest.approx((3.0**2 + 2.0**2) / 10)
    assert crf.log_likelihood([x], [y]) == pytest.approx(-3.0979816, abs=5e-8)
    network = crf.network(x)
    assert np.exp(network.log_partition()) == pytest.approx(33.0486787, abs=5e-8)
    assert network.log_partition() == pytest.approx(3.4979816, abs=5e-8)
    assert crf.predict([x]) == [{"y1": 1, "y2": 1, "y3": 1}]
    proba = crf.predict_proba([x])[0]
    np.testing.assert_allclose([proba[n][1] for n in proba], [0.8728929, 0.9523017, 0.9145480], atol=5e-8)


def test_example_75_with_arrays_as_features():
    crf = mk.crf.CRF.from_weights([0, 1], [[0.0], [3.0]], [[0.0, -2.0], [-2.0, 0.0]])
    x = np.array([[0.1], [0.7], [0.3]])
    assert np.exp(crf.log_partition([x])[0]) == pytest.approx(33.0486787, abs=5e-8)
    assert crf.log_likelihood([x], [[1, 1, 0]]) == pytest.approx(-3.0979816, abs=5e-8)
    edges = crf.predict_edges([x])[0]
    np.testing.assert_allclose(edges[0].ravel(), [0.0403305, 0.0867766, 0.0073677, 0.8655252], atol=5e-8)
    np.testing.assert_allclose(edges[1].ravel(), [0.0357861, 0.0119122, 0.0496659, 0.9026358], atol=5e-8)
    assert crf.predict([x])[0].tolist() == [1, 1, 1]
    network = crf.network(x)
    for engine in ("junction-tree", "enumeration", "loopy-bp"):
        assert network.query("y0", engine=engine)[1] == pytest.approx(0.8728929, abs=5e-8)


def test_features_as_functions_and_as_arrays_learn_the_same_weights():
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=3) for _ in range(30)]
    labels = [rng.integers(2, size=3) for _ in range(30)]
    by_function = three_node_chain().fit(inputs, labels)
    assert np.abs(by_function.gradient(inputs, labels, penalised=True)).max() < 1e-3
    objective = PairwiseObjective(
        Fields.of(2, np.arange(31) * 3, np.arange(31) * 2, *_chains(30, 3), np.ones((60, 1))),
        np.concatenate(inputs)[:, None],
        np.concatenate(labels),
    )
    theta = np.array([0.0, by_function.coef_[0], 0.0, by_function.coef_[1], by_function.coef_[1], 0.0])
    _, gradient = objective(theta)
    slopes = np.array([gradient[1], gradient[3] + gradient[4]])
    np.testing.assert_allclose(slopes, -2 * by_function.coef_ / 10.0, atol=1e-3)


def _chains(count, length):
    tails = (np.arange(count)[:, None] * length + np.arange(length - 1)).ravel()
    return tails, tails + 1


def test_a_feature_of_three_labels_needs_no_pairs():
    parity = mk.crf.ConditionalFeature([("a", "b", "c")], lambda x, at, a, b, c: x * ((a + b + c) % 2), "odd")
    crf = mk.crf.FeatureCRF({"a": 2, "b": 2, "c": 2}, [parity]).set_weights([2.0])
    odd = 4 * np.exp(2.0) / (4 * np.exp(2.0) + 4)
    np.testing.assert_allclose(crf.expected_features(1.0), [odd])
    rows = crf.network(1.0).sample(400, seed=1)[["a", "b", "c"]].to_numpy()
    fitted = mk.crf.FeatureCRF({"a": 2, "b": 2, "c": 2}, [parity], C=np.inf).fit([1.0] * 400, rows)
    share = (rows.sum(axis=1) % 2).mean()
    assert fitted.coef_[0] == pytest.approx(np.log(share / (1 - share)), abs=1e-3)
    best = list(fitted.predict([1.0])[0].values())
    assert sum(best) % 2 == 1
    assert fitted.score_exact([1.0] * 400, rows) == pytest.approx((rows == best).all(axis=1).mean())
    assert fitted.score([1.0] * 400, rows) == pytest.approx((rows == best).mean())


def rain(n, seed):
    """Months of 28 days whose chance of rain depends on the month: sampled from a chain with month weights."""
    rng = np.random.default_rng(seed)
    months = rng.integers(12, size=n)
    wet = 1.2 * np.cos(2 * np.pi * np.arange(12) / 12)
    inputs = [np.eye(12)[[m] * 28] for m in months]
    teacher = mk.crf.CRF.from_weights(
        [0, 1], np.stack([np.zeros(12), wet - 0.3]), [[0.9, 0.0], [0.0, 0.9]], graph="chain"
    )
    samples = {m: teacher.network(np.eye(12)[[m] * 28]).sample(n, seed=int(m)) for m in range(12)}
    labels = [samples[m].iloc[i].to_numpy() for i, m in enumerate(months.tolist())]
    return inputs, labels, teacher


def test_month_features_lower_the_conditional_likelihood_loss_of_rain():
    inputs, labels, teacher = rain(240, 0)
    without = [np.zeros((28, 1)) for _ in inputs]
    independent = (
        -np.log([np.mean(labels), 1 - np.mean(labels)]) @ [np.mean(labels), 1 - np.mean(labels)] * 28
    )
    chain = mk.crf.CRF(C=np.inf, edge_weights="same").fit(without, labels)
    months = mk.crf.CRF(C=50.0, edge_weights="same", fit_intercept=False).fit(inputs, labels)
    chain_loss = -chain.log_likelihood(without, labels) / 240
    month_loss = -months.log_likelihood(inputs, labels) / 240
    assert month_loss < chain_loss - 0.2 < independent - 0.4
    assert months.edge_coef_[0, 0, 0] == pytest.approx(0.9, abs=0.12)
    fresh, truth, _ = rain(120, 7)
    assert months.log_likelihood(fresh, truth) == pytest.approx(
        teacher.log_likelihood(fresh, truth), rel=0.02
    )


# -- what users hold ----------------------------------------------------------------------------------------------


def tagged(n=60, seed=0, k=3, d=2):
    rng = np.random.default_rng(seed)
    labels, inputs = [], []
    names = np.array(["red", "green", "blue"])[:k]
    for _ in range(n):
        length = int(rng.integers(1, 9))
        y = [int(rng.integers(k))]
        for _ in range(length - 1):
            y.append(y[-1] if rng.random() < 0.7 else int(rng.integers(k)))
        inputs.append(np.eye(k)[y][:, :d] + rng.normal(scale=0.7, size=(length, d)))
        labels.append(names[y])
    return inputs, labels


def test_without_edges_it_is_multinomial_logistic_regression():
    inputs, labels = tagged()
    x, y = np.concatenate(inputs), np.concatenate(labels)
    crf = mk.crf.CRF(graph=[], C=2.0, tol=1e-8).fit([row[None] for row in x], y[:, None])
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000).fit(x, y)
    np.testing.assert_allclose(crf.coef_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(
        np.concatenate(crf.predict_proba([x[:4]])), peer.predict_proba(x[:4]), atol=1e-4
    )


def test_the_fit_is_a_stationary_point_and_beats_its_neighbours():
    inputs, labels = tagged()
    crf = mk.crf.CRF(tol=1e-7).fit(inputs, labels)
    assert crf.training_.converged

    def penalised(model):
        penalty = ((model.coef_**2).sum() + (model.edge_coef_**2).sum()) / 2.0
        return model.log_likelihood(inputs, labels) - penalty

    best = penalised(crf)
    assert -best == pytest.approx(crf.training_.value)
    rng = np.random.default_rng(0)
    for _ in range(5):
        moved = mk.crf.CRF.from_weights(
            crf.classes_,
            crf.coef_ + 0.05 * rng.normal(size=crf.coef_.shape),
            crf.edge_coef_ + 0.05 * rng.normal(size=crf.edge_coef_.shape),
            crf.intercept_,
        )
        assert penalised(moved) < best


def test_answers_agree_with_the_network_by_any_engine():
    inputs, labels = tagged()
    for crf in (mk.crf.CRF().fit(inputs, labels), mk.ChainCRF().fit(inputs, labels)):
        x = next(x for x in inputs if len(x) == 5)
        network = crf.network(x)
        assert network.states("y0") == ["blue", "green", "red"]
        proba = crf.predict_proba([x])[0]
        for i in range(5):
            np.testing.assert_allclose(
                network.query(f"y{i}", engine="junction-tree").values, proba[i], atol=1e-9
            )
        assert [network.map()[f"y{i}"] for i in range(5)] == crf.predict([x])[0].tolist()
        assert network.log_partition() == pytest.approx(crf.log_partition([x])[0])
        y = crf.predict([x])[0]
        assert crf.log_prob([x], [y])[0] == pytest.approx(network.map().log_prob)


def test_scores_count_nodes_and_whole_instances():
    crf = mk.crf.CRF.from_weights([0, 1], [[0.0], [1.0]], np.zeros((2, 2)))
    inputs, labels = [[[1.0], [1.0]], [[-1.0]]], [[1, 0], [0]]
    assert crf.score(inputs, labels) == pytest.approx(2 / 3)
    assert crf.score_exact(inputs, labels) == pytest.approx(1 / 2)
    assert [y.tolist() for y in crf.predict_by_node(inputs)] == [[1, 1], [0]]


@pytest.mark.slow
def test_graphs_of_different_shapes_train_together():
    rng = np.random.default_rng(0)
    shapes = [(4, CYCLE), (3, [(0, 1), (1, 2)]), (5, [(0, 1), (0, 2), (0, 3), (0, 4)]), (1, [])]
    inputs, labels = [], []
    for i in range(120):
        n, edges = shapes[i % 4]
        y = np.full(n, rng.integers(2)) if rng.random() < 0.8 else rng.integers(2, size=n)
        inputs.append((y[:, None] + rng.normal(size=(n, 1)), edges))
        labels.append(y)
    crf = mk.crf.CRF(None, edge_weights="same").fit(inputs, labels)
    assert crf.edge_coef_[0, 0, 0] > 0.5
    alone = mk.crf.CRF([], C=2.0).fit([(x, []) for x, _ in inputs], labels)
    assert crf.score(inputs, labels) > alone.score([(x, []) for x, _ in inputs], labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close = mk.crf.CRF(None, edge_weights="same", inference="loopy-bp").fit(inputs, labels)
    assert close.edge_coef_[0, 0, 0] == pytest.approx(crf.edge_coef_[0, 0, 0], rel=0.1)


def test_named_nodes_take_labels_and_features_by_name():
    graph = mk.graphs.UndirectedGraph([("left", "middle"), ("middle", "right")])
    rng = np.random.default_rng(0)
    inputs = [{n: rng.normal(size=2) for n in graph.nodes} for _ in range(20)]
    labels = [{n: "yes" if x[n][0] > 0 else "no" for n in graph.nodes} for x in inputs]
    crf = mk.crf.CRF(graph).fit(inputs, labels)
    assert crf.network(inputs[0]).variables == graph.nodes
    assert crf.score(inputs, labels) > 0.9
    with pytest.raises(mk.errors.UnknownVariable, match="middle"):
        crf.predict([{"left": [0, 0], "right": [0, 0]}])


def test_features_by_name_equal_the_same_features_as_arrays():
    rng = np.random.default_rng(0)
    words = np.array(["a", "b", "c"])
    picks = [rng.integers(3, size=rng.integers(1, 6)) for _ in range(30)]
    labels = [np.where(p > 0, "N", "D") for p in picks]
    by_name = [[{"word": str(words[i]), "place": float(t)} for t, i in enumerate(p)] for p in picks]
    arrays = [np.column_stack([np.eye(3)[p], np.arange(len(p))]) for p in picks]
    settings = {
        "start_end": True,
        "fit_intercept": True,
        "all_possible_states": True,
        "all_possible_transitions": True,
    }
    one, two = (mk.ChainCRF(tol=1e-8, **settings).fit(x, labels) for x in (by_name, arrays))
    assert one.training_.value == pytest.approx(two.training_.value, abs=1e-6)
    order = [one.feature_names_.index(n) for n in ("word:a", "word:b", "word:c", "place")]
    np.testing.assert_allclose(one.coef_[:, order], two.coef_, atol=1e-3)
    unseen = one.predict([[{"word": "never seen"}, {"word": "a"}]])
    assert unseen[0].shape == (2,)


def test_start_and_end_weights_see_the_first_and_last_position():
    labels = [["first", "rest", "rest", "last"][:1] + ["rest"] * n + ["last"] for n in range(1, 20)]
    inputs = [np.zeros((len(y), 1)) for y in labels]
    crf = mk.ChainCRF(C=100.0).fit(inputs, labels)
    assert crf.score_exact(inputs, labels) == 1.0
    first, last = list(crf.classes_).index("first"), list(crf.classes_).index("last")
    assert crf.start_.argmax() == first
    assert crf.end_.argmax() == last
    again = mk.ChainCRF.from_weights(
        crf.classes_, crf.coef_, crf.transitions_, crf.intercept_, start=crf.start_, end=crf.end_
    )
    np.testing.assert_allclose(again.log_prob(inputs, labels), crf.log_prob(inputs, labels))


def test_global_normalisation_lets_later_inputs_change_earlier_labels():
    # Label bias: states 1 and 4 have one successor each, so a locally normalised model must ignore what comes next.
    weights = np.full((6, 6), -30.0)
    for a, b in ((0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 3)):
        weights[a, b] = 0.0
    see = np.zeros((6, 3))
    see[2, 1] = see[5, 2] = 2.0  # the second letter tells "rib" from "rob"
    crf = mk.crf.CRF.from_weights(range(6), see, weights)
    letters = np.eye(3)
    assert crf.predict([letters[[0, 0, 1, 0]]])[0].tolist() == [0, 1, 2, 3]
    assert crf.predict([letters[[0, 0, 2, 0]]])[0].tolist() == [0, 4, 5, 3]


def test_attractive_edges_stay_at_zero_where_neighbours_repel():
    rng = np.random.default_rng(0)
    labels = [np.arange(6) % 2 for _ in range(20)]
    inputs = [rng.normal(size=(6, 1)) for _ in labels]
    crf = mk.crf.CRF(edge_weights="same", attractive=True).fit(inputs, labels)
    assert crf.edge_coef_[0, 0, 0] == 0.0
    assert mk.crf.CRF(edge_weights="same").fit(inputs, labels).edge_coef_[0, 0, 0] < -0.5


def test_an_l1_penalty_makes_weights_of_noise_zero():
    inputs, labels = tagged(80)
    rng = np.random.default_rng(0)
    noisy = [np.column_stack([x, rng.normal(size=(len(x), 5))]) for x in inputs]
    crf = mk.crf.CRF(C=np.inf, l1=8.0, tol=1e-7).fit(noisy, labels)
    assert np.mean(np.abs(crf.coef_[:, 2:]) < 1e-8) > 0.5
    assert np.abs(crf.coef_[:, :2]).max() > 0.5


@pytest.mark.slow
def test_stochastic_gradients_come_close_to_the_optimum():
    inputs, labels = tagged(150)
    exact = mk.crf.CRF().fit(inputs, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rough = mk.crf.CRF(solver="sgd", max_iter=40, random_state=0).fit(inputs, labels)
        same = mk.crf.CRF(solver="sgd", max_iter=40, random_state=0).fit(inputs, labels)
        drawn = mk.crf.CRF(solver="sgd", inference="gibbs", max_iter=60, random_state=0).fit(inputs, labels)
    best = exact.log_likelihood(inputs, labels)
    assert rough.log_likelihood(inputs, labels) == pytest.approx(best, rel=0.03)
    assert drawn.log_likelihood(inputs, labels) == pytest.approx(best, rel=0.06)
    np.testing.assert_allclose(
        rough.coef_, same.coef_, rtol=1e-12
    )  # plain and compiled code round differently


def test_chains_reach_the_objective_that_crfsuite_reaches(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    rng = np.random.default_rng(0)
    picks = [rng.integers(4, size=rng.integers(2, 7)) for _ in range(40)]
    labels = [["ab"[int(i > 1) ^ int(rng.random() < 0.2)] for i in p] for p in picks]
    inputs = [[{f"w{i}": 1.0} for i in p] for p in picks]
    trainer = pycrfsuite.Trainer(verbose=False, algorithm="lbfgs")
    for x, y in zip(inputs, labels, strict=True):
        trainer.append([dict(n) for n in x], y)
    trainer.set_params(
        {"c1": 0.0, "c2": 0.5, "feature.possible_states": True, "feature.possible_transitions": True}
    )
    trainer.train(str(tmp_path / "crfsuite.model"))
    ours = mk.ChainCRF(start_end=False, fit_intercept=False, C=2.0, tol=1e-8).fit(inputs, labels)
    assert ours.training_.value == pytest.approx(trainer.logparser.last_iteration["loss"], rel=1e-4)


def test_it_is_a_scikit_learn_estimator():
    for crf in (mk.crf.CRF(C=3.0, l1=0.1), mk.ChainCRF(start_end=False), mk.crf.GridCRF(neighbours=8)):
        copied = clone(crf)
        assert copied.get_params() == crf.get_params()
    assert mk.crf.CRF().set_params(C=5.0).C == 5.0


def test_a_failed_fit_leaves_the_model_as_it_was():
    inputs, labels = tagged()
    crf = mk.crf.CRF().fit(inputs, labels)
    before = crf.coef_.copy()
    with pytest.raises(mk.errors.InvalidArgument):
        crf.fit(inputs, labels[:-1])
    np.testing.assert_array_equal(crf.coef_, before)


@pytest.mark.parametrize(
    ("settings", "inputs", "labels", "message"),
    [
        ({}, [[[1.0]]], [[0], [1]], "1 instances but 2 labellings"),
        ({}, [[[1.0], [2.0]]], [[0]], "instance 0 has 2 nodes"),
        ({}, [[[1.0], [2.0]], [[1.0, 2.0]]], [[0, 1], [1]], "instance 1 has 2 node features"),
        ({}, [[[np.nan], [2.0]]], [[0, 1]], "missing or infinite"),
        ({}, [[[1.0], [2.0]]], [[0, 0]], "two different ones"),
        ({}, [[[1.0], [2.0]]], [[0.5, 1.0]], "not real numbers"),
        ({"graph": None}, [[[1.0], [2.0]]], [[0, 1]], "no edges"),
        ({"graph": [(0, 5)]}, [[[1.0], [2.0]]], [[0, 1]], "node 5"),
        ({"graph": [(1, 1)]}, [[[1.0], [2.0]]], [[0, 1]], "with itself"),
        ({"graph": "ring"}, [[[1.0], [2.0]]], [[0, 1]], "'chain'"),
        ({"inference": "loopy"}, [[[1.0], [2.0]]], [[0, 1]], "did you mean 'loopy-bp'"),
        ({"inference": "gibbs"}, [[[1.0], [2.0]]], [[0, 1]], "solver='sgd'"),
        ({"attractive": True}, [[[1.0], [2.0]]], [[0, 1]], "edge_weights='same'"),
        ({"C": 0}, [[[1.0], [2.0]]], [[0, 1]], "C= is a positive number"),
        ({}, [], [], "no instance"),
    ],
)
def test_bad_input_gets_one_sentence_that_names_the_place(settings, inputs, labels, message):
    with pytest.raises(mk.MarkoviaError, match=message):
        mk.crf.CRF(**settings).fit(inputs, labels)


def test_an_unfitted_model_and_unknown_labels_are_refused():
    with pytest.raises(mk.errors.IncompleteModel, match="fit"):
        mk.crf.CRF().predict([[[1.0]]])
    inputs, labels = tagged()
    crf = mk.crf.CRF().fit(inputs, labels)
    with pytest.raises(mk.errors.InvalidArgument, match="unknown label 'pink'"):
        crf.log_likelihood(inputs[:1], [["pink"] * len(inputs[0])])
    with pytest.raises(mk.errors.InvalidArgument, match="2 node features but the inputs have 3"):
        crf.predict([np.zeros((2, 3))])


def test_exact_inference_refuses_wide_graphs_and_auto_says_what_it_did():
    rng = np.random.default_rng(0)
    n = 26
    edges = list(itertools.combinations(range(n), 2))
    x, y = rng.normal(size=(n, 1)), rng.integers(2, size=n)
    with pytest.raises(mk.errors.TooLarge, match="loopy-bp"):
        mk.crf.CRF(edges, inference="exact").fit([x], [y])
    weak = mk.crf.CRF.from_weights([0, 1], [[0.0], [1.0]], 0.01 * np.eye(2), graph=edges)
    with pytest.warns(mk.errors.ApproximateWarning, match="too wide"):
        weak.predict_proba([x])


def test_the_clique_plan_refuses_before_it_allocates():
    scopes = list(itertools.combinations(range(60), 2))
    with pytest.raises(mk.errors.TooLarge):
        clique_plan([3] * 60, scopes)


def test_training_says_when_auto_is_not_exact(monkeypatch):
    monkeypatch.setattr("markovia.learning.conditional_fields.fields.Fields.plan", lambda fields, g: None)
    rng = np.random.default_rng(0)
    square = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    inputs = [rng.normal(size=(4, 1)) for _ in range(20)]
    labels = [(x[:, 0] + rng.normal(size=4) > 0).astype(int) for x in inputs]
    with pytest.warns(mk.errors.ApproximateWarning, match="too wide for exact training"):
        mk.crf.CRF(square).fit(inputs, labels)


@pytest.mark.parametrize("kind", ["CRF", "ChainCRF"])
def test_a_label_that_fitting_never_met_counts_as_wrong(kind):
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(4, 2)) for _ in range(6)]
    y = [np.where(s[:, 0] > 0, "up", "down") for s in x]
    model = getattr(mk.crf, kind)().fit(x, y)
    right = model.score(x, y)
    strange = [labels.astype(object) for labels in y]
    strange[0][1] = "sideways"
    was_right = model.predict(x)[0][1] == y[0][1]
    assert model.score(x, strange) == pytest.approx(right - was_right / 24)
    assert model.score_exact(x, strange) <= model.score_exact(x, y)
