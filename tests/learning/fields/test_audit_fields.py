"""Undirected models and CRFs at the edges: extreme features, degenerate data, wrong labels, and models from textbooks."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.special import expit

import markovia as mk
from markovia import Feature, Variable
from markovia.errors import ConvergenceWarning

ROWS = {"a": [0, 0, 0, 1, 1], "b": [0, 0, 1, 1, 1]}


def pair():
    return mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[1, 1], [1, 1]])])


# -- fitting fields --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize(
    "method", ["exact", "pseudo-likelihood", "loopy-bp", "tree-reweighted", "mean-field"]
)
def test_features_may_be_of_any_size(unit, method):
    """The weight of c times a feature is that of the feature divided by c."""
    up = Feature("a", [0.0, unit], "up")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mk.fit_log_linear([up], {"a": ROWS["a"]}, method=method)
    assert found.converged
    assert found.weights[0] * unit == pytest.approx(np.log(2 / 3), rel=1e-5)


def test_features_of_very_different_sizes_are_fitted_together():
    rng = np.random.default_rng(0)
    data = {n: rng.integers(0, 2, 200) for n in "abc"}
    a, b, c = (Variable(n, 2) for n in "abc")
    parts = [Feature(a, [0.0, 1.0]), Feature([a, b], np.eye(2)), Feature([b, c], [[0.0, 1.0], [1.0, 2.0]])]
    plain = mk.fit_log_linear(parts, data, tolerance=1e-9)
    units = [1e5, 1e-4, 30.0]
    scaled = [Feature(f.instances[0][0], u * f.instances[0][1]) for f, u in zip(parts, units, strict=True)]
    found = mk.fit_log_linear(scaled, data, tolerance=1e-7)
    np.testing.assert_allclose(found.weights * units, plain.weights, rtol=1e-5, atol=1e-7)
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-6)


def test_a_penalty_far_stronger_than_the_data_is_no_trouble():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pair().fit(ROWS, l2=1e12).fit_
    assert found.converged
    np.testing.assert_allclose(found.details["fit"].weights, 0.0, atol=1e-10)


def test_weights_without_a_finite_best_value_are_reported():
    for data in ([1, 1, 1], [0, 0, 0]):
        with pytest.warns(ConvergenceWarning, match="largest or the smallest value of 'heads'"):
            mk.fit_log_linear([Feature("x", [0.0, 1.0], "heads")], {"x": data})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mk.fit_log_linear([Feature("x", [0.0, 1.0], "heads")], {"x": [1, 1, 1]}, l2=1.0)
        mk.fit_log_linear([Feature("x", [1.0, 1.0], "constant")], {"x": [1, 0, 1]})
        pair().fit({"a": [0], "b": [1]})  # free tables have zeros instead


def test_a_tied_feature_at_its_largest_sum_is_reported_and_one_below_it_is_not():
    v = [Variable(f"x{i}", 2) for i in range(3)]
    same = Feature.tied([Feature([v[i], v[i + 1]], np.eye(2)) for i in range(2)], "same")
    with pytest.warns(ConvergenceWarning, match="'same'"):
        mk.fit_log_linear([same], {"x0": [0, 1], "x1": [0, 1], "x2": [0, 1]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mk.fit_log_linear([same], {"x0": [0, 1], "x1": [0, 1], "x2": [0, 0]})
    assert expit(found.weights[0]) == pytest.approx(0.75, abs=1e-5)


def test_scaling_a_potential_changes_no_probability():
    rng = np.random.default_rng(1)
    tables = rng.random((2, 2, 2)) + 0.1
    plain = mk.MarkovNetwork(
        dict.fromkeys("abc", 2), [mk.Factor(["a", "b"], tables[0]), mk.Factor(["b", "c"], tables[1])]
    )
    scaled = mk.MarkovNetwork(
        dict.fromkeys("abc", 2),
        [mk.Factor(["a", "b"], 7e5 * tables[0]), mk.Factor(["b", "c"], 1e-9 * tables[1])],
    )
    np.testing.assert_allclose(plain.query(["a", "b", "c"]).values, scaled.query(["a", "b", "c"]).values)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: pair().fit(ROWS, features=[]), "features= is empty"),
        (lambda: mk.fit_log_linear([], ROWS), "features= is empty"),
        (lambda: pair().fit(ROWS, start="abc"), "start= has one finite number a weight, 4"),
        (lambda: pair().fit({"a": [0]}), "unknown variable 'b' in the data"),
        (lambda: pair().fit({"a": [0, None], "b": [0, 1]}), "1 cells are missing"),
        (lambda: pair().fit({"a": [None], "b": [1]}, missing="drop"), "no rows to learn from"),
        (lambda: pair().fit(ROWS, weights=[0] * 5), "no rows to learn from"),
        (lambda: mk.posterior_regularisation(3, [], []), "network is needed, not int"),
        (lambda: mk.posterior_regularisation(pair(), [], [], given={"a": 1, "b": 1}), "nothing left"),
        (
            lambda: mk.posterior_regularisation(pair(), Feature("a", [0, 1]), "x"),
            "one finite number a feature",
        ),
        (
            lambda: mk.posterior_regularisation(pair(), Feature("a", [0, 1]), 0.5, equal=[True, False]),
            "equal=",
        ),
    ],
)
def test_fits_of_fields_refuse_in_one_sentence(wrong, message):
    with pytest.raises(mk.MarkoviaError, match=message):
        wrong()


def test_one_feature_need_not_be_in_a_list():
    found = mk.fit_log_linear(Feature("a", [0, 1]), {"a": [0, 1, 1]})
    assert found.weights[0] == pytest.approx(np.log(2), abs=1e-5)


# -- conditional fields from textbooks -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_field_without_edges_is_a_logistic_regression_with_twice_the_weight():
    """p(y | x) = exp(y w.x) / (exp(w.x) + exp(-w.x)) = 1 / (1 + exp(-2 y w.x)) for y = -1, +1."""
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=3), rng.normal(size=(5, 3))
    crf = mk.crf.CRF.from_weights([-1, 1], [-w, w], np.zeros((2, 2)), graph=[])
    np.testing.assert_allclose(crf.predict_proba([x])[0][:, 1], expit(2 * x @ w), rtol=1e-12)
    data = [rng.normal(size=(4, 3)) for _ in range(20)]
    labels = [np.where(rng.random(4) < expit(2 * d @ w), 1, -1) for d in data]
    field = mk.crf.CRF(graph=[], C=np.inf, tol=1e-8).fit(data, labels)
    flat = mk.regression.LogisticRegression().fit(np.concatenate(data), np.concatenate(labels))
    np.testing.assert_allclose(field.coef_[1] - field.coef_[0], flat.coef_[0], rtol=1e-4)


LETTERS = "ginqu"


def spell(bonus, word):
    """Return the score of a word: q-u, i-n-g at the end, and membership in a dictionary."""
    pairs = sum(a + b == "qu" for a, b in itertools.pairwise(word))
    return bonus[0] * pairs + bonus[1] * (word[-3:] == "ing") + bonus[2] * (word in ("quing", "gnigg"))


def test_words_with_pair_third_order_and_dictionary_potentials():
    """Handwriting: phi(y_c, x_c), phi(y_(c-1), y_c), an inhomogeneous phi of the last three, and phi(y in dictionary)."""
    names = [f"y{i}" for i in range(5)]
    place = {n: i for i, n in enumerate(names)}
    states = {n: list(LETTERS) for n in names}
    looks = mk.crf.ConditionalFeature(names, lambda x, at, y: x[place[at[0]]][LETTERS.index(y)], "looks")
    after = mk.crf.ConditionalFeature(
        list(itertools.pairwise(names)), lambda x, at, a, b: a + b == "qu", "q-u"
    )
    ending = mk.crf.ConditionalFeature([tuple(names[2:])], lambda x, at, *y: "".join(y) == "ing", "i-n-g")
    known = mk.crf.ConditionalFeature(
        [tuple(names)], lambda x, at, *y: "".join(y) in ("quing", "gnigg"), "word"
    )
    x = np.random.default_rng(3).normal(size=(5, 5))
    bonus = np.array([1.5, 2.0, 0.7])
    words = ["".join(w) for w in itertools.product(LETTERS, repeat=5)]
    look = np.array([sum(x[i][LETTERS.index(c)] for i, c in enumerate(w)) for w in words])
    scores = look + [spell(bonus, w) for w in words]
    p = np.exp(scores - scores.max())
    p /= p.sum()
    crf = mk.crf.FeatureCRF(states, [looks, after, ending, known]).set_weights([1.0, *bonus])
    assert "".join(crf.predict([x])[0].values()) == words[int(p.argmax())]
    expected = [
        p @ look,
        sum(q * sum(a + b == "qu" for a, b in itertools.pairwise(w)) for q, w in zip(p, words, strict=True)),
        sum(q for q, w in zip(p, words, strict=True) if w.endswith("ing")),
        sum(q for q, w in zip(p, words, strict=True) if w in ("quing", "gnigg")),
    ]
    np.testing.assert_allclose(crf.expected_features(x), expected, atol=1e-9)


def test_forbidden_transitions_have_weight_minus_infinity():
    rng = np.random.default_rng(0)
    table = np.array([[0.3, -np.inf], [0.2, -0.4]])
    crf = mk.ChainCRF.from_weights([0, 1], [[0.5], [-0.2]], table, start=[0.0, -np.inf])
    x = rng.normal(size=(5, 1))
    scores = {}
    for y in itertools.product([0, 1], repeat=5):
        if y[0] == 0 and (0, 1) not in itertools.pairwise(y):
            steps = sum(table[a, b] for a, b in itertools.pairwise(y))
            scores[y] = steps + sum([0.5, -0.2][v] * x[i, 0] for i, v in enumerate(y))
    assert crf.log_partition([x])[0] == pytest.approx(np.logaddexp.reduce(list(scores.values())))
    assert tuple(crf.predict([x])[0].tolist()) == max(scores, key=scores.get)
    assert crf.log_prob([x], [[0, 0, 1, 1, 1]])[0] == -np.inf


def test_several_labels_of_one_picture_depend_on_each_other():
    """Multi-label classification: one node a label, all pairs joined; sea and beach go together."""
    rng = np.random.default_rng(0)
    names = ["sea", "beach", "car"]
    scene = rng.random(300) < 0.5
    truth = np.column_stack([scene, scene ^ (rng.random(300) < 0.1), rng.random(300) < 0.5]).astype(int)
    hints = truth + rng.normal(scale=[1.0, 3.0, 1.0], size=truth.shape)  # a beach is hard to see
    inputs = [
        dict(zip(names, [{f"{n} hint": h, n: 1.0} for n, h in zip(names, row, strict=True)], strict=True))
        for row in hints
    ]
    labels = [dict(zip(names, row, strict=True)) for row in truth.tolist()]
    graph = list(itertools.combinations(names, 2))
    joined = mk.crf.CRF(graph, fit_intercept=False).fit(inputs[:200], labels[:200])
    alone = mk.crf.CRF(mk.graphs.UndirectedGraph(nodes=names), fit_intercept=False).fit(
        inputs[:200], labels[:200]
    )
    assert joined.score(inputs[200:], labels[200:]) > alone.score(inputs[200:], labels[200:])
    assert (
        joined.score_exact(inputs[200:], labels[200:]) > alone.score_exact(inputs[200:], labels[200:]) + 0.1
    )


# -- conditional fields at the edges ---------------------------------------------------------------------------------------


def enumerate_field(scores, table, edges):
    k, found = scores.shape[1], {}
    for y in itertools.product(range(k), repeat=len(scores)):
        found[y] = sum(scores[i, v] for i, v in enumerate(y)) + sum(table[y[a], y[b]] for a, b in edges)
    return found


@pytest.mark.parametrize(
    "edges", [[(0, 1), (0, 1)], [(0, 1), (1, 0), (1, 2)], [(0, 1), (1, 2), (0, 2), (0, 2)], []]
)
def test_edges_that_are_given_twice_count_twice(edges):
    node, table = np.array([[0.3], [-0.4]]), np.array([[0.5, -0.2], [0.1, 0.9]])
    x = np.array([[1.0], [2.0], [0.5]])
    crf = mk.crf.CRF.from_weights([0, 1], node, table, graph=None)
    exact = enumerate_field(x @ node.T, table, edges)
    assert crf.log_partition([(x, edges)])[0] == pytest.approx(np.logaddexp.reduce(list(exact.values())))
    assert tuple(crf.predict([(x, edges)])[0].tolist()) == max(exact, key=exact.get)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_best_labellings_of_loops_do_not_underflow(size, sign):
    rng = np.random.default_rng(5)
    node, table = sign * size * rng.random((3, 1)), 0.4 * size * np.eye(3) - (size if sign < 0 else 0)
    edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
    for _ in range(5):
        x = rng.normal(size=(4, 1))
        exact = enumerate_field(x @ node.T, table, edges)
        crf = mk.crf.CRF.from_weights([0, 1, 2], node, table, graph=None)
        assert exact[tuple(crf.predict([(x, edges)])[0].tolist())] == pytest.approx(max(exact.values()))
        grid = mk.crf.GridCRF.from_weights([0, 1, 2], node, table)
        square = enumerate_field(x @ node.T, table, [(0, 1), (2, 3), (0, 2), (1, 3)])
        found = grid.predict([x.reshape(2, 2)])[0].ravel().tolist()
        assert square[tuple(found)] == pytest.approx(max(square.values()))


X, Y = [np.eye(2)[[0, 1, 0]], np.eye(2)[[1, 1]]], [[0, 1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: mk.crf.CRF().fit([np.zeros((0, 2))], [[]]), "no instance has a node"),
        (lambda: mk.crf.CRF().fit(X, [[None] * 3, [None] * 2]), "not all strings"),
        (lambda: mk.crf.CRF().fit(X, [["a", 1, "a"], ["a", "a"]]), "not all strings, or all whole numbers: 'a', 1"),
        (lambda: mk.crf.CRF().fit(X, [["a", "b", "a"], [1, 1]]), "some instances are strings"),
        (lambda: mk.crf.CRF().fit(X, Y).log_likelihood(X, [["0", "1", "0"], ["1", "1"]]), "unknown label '0'"),
        (lambda: mk.crf.CRF().fit(X, [list("121"), list("22")]).log_likelihood(X, [[12, 1, 1], [2, 2]]), "unknown label 12"),
        (lambda: mk.crf.CRF(3).fit(X, Y), "graph= is 'chain', pairs of nodes"),
        (lambda: mk.crf.CRF([0, 1]).fit(X, Y), "list of pairs"),
        (lambda: mk.crf.CRF(tol="a").fit(X, Y), "tol= is a number, above 0, not 'a'"),
        (lambda: mk.crf.CRF(solver="sgd", learning_rate=-1).fit(X, Y), "learning_rate= is a number, above 0"),
        (lambda: mk.crf.CRF(damping="a").fit(X, Y), "damping="),
        (lambda: mk.crf.CRF.from_weights([0, 1], [[np.nan], [1]], np.zeros((2, 2))), "coef must hold finite"),
        (lambda: mk.crf.CRF.from_weights([0, 1], [[0], [1]], np.full((2, 2), np.inf)), "edge_coef must hold"),
        (lambda: mk.crf.CRF.from_weights([0, 0], [[0], [1]], np.zeros((2, 2))), "different labels"),
        (lambda: mk.crf.CRF.from_weights([0, 1], [[0], [1]], np.zeros((2, 2)), [1, 2, 3]), "intercept= has one"),
        (lambda: mk.ChainCRF.from_weights([0, 1], [[0], [1]], np.zeros((2, 2)), start=[1]), "start= has one"),
        (lambda: mk.crf.GridCRF(edge_features="contrast", contrast_channels=[4]).fit([np.eye(2)], [np.eye(2, dtype=int)]),
         "numbers from 0 to 0"),
        (lambda: mk.crf.GridCRF(edge_features=lambda a, b: "x").fit([np.eye(2)], [np.eye(2, dtype=int)]), "returns must be"),
        (lambda: mk.crf.GridCRF(edge_features=lambda a, b: a * np.nan).fit([np.eye(2)], [np.eye(2, dtype=int)]), "finite"),
        (lambda: mk.crf.GridCRF().fit([[["a", "b"]]], [[[0, 1]]]), "image 0 must be a number"),
    ],
)  # fmt: skip
def test_conditional_fields_refuse_in_one_sentence(wrong, message):
    with pytest.raises(mk.MarkoviaError, match=message):
        wrong()


def test_pictures_of_one_pixel_and_of_one_line_are_pictures():
    rng = np.random.default_rng(0)
    shapes = [(1, 1), (1, 5), (4, 1), (3, 3)]
    labels = [(np.indices(s).sum(axis=0) // 2) % 2 for s in shapes]
    images = [y + rng.normal(scale=0.3, size=y.shape) for y in labels]
    for neighbours in (4, 8):
        crf = mk.crf.GridCRF(neighbours=neighbours, edge_features="contrast").fit(images, labels)
        assert [p.shape for p in crf.predict(images)] == shapes
        assert [p.shape for p in crf.predict_proba(images)] == [(*s, 2) for s in shapes]


def test_empty_instances_add_nothing():
    plain = mk.ChainCRF().fit(X, Y)
    more = mk.ChainCRF(C=2.0).fit([*X, np.zeros((0, 2))], [*Y, []])
    np.testing.assert_allclose(more.coef_, plain.coef_, atol=1e-4)
    assert more.log_prob([np.zeros((0, 2))], [[]])[0] == 0.0


def test_networks_with_missing_inputs_are_refused_and_not_answered():
    jax = pytest.importorskip("jax")
    assert jax is not None

    def potentials(params, x):
        return x @ params["w"], params["e"]

    start = {"w": np.zeros((2, 2)), "e": np.zeros((2, 2))}
    crf = mk.crf.NeuralCRF(potentials, start, epochs=2, random_state=0).fit(X, Y)
    for ask in (crf.predict, crf.predict_proba, crf.log_partition):
        with pytest.raises(mk.MarkoviaError, match="scores of instance 1 are missing or infinite"):
            ask([X[0], X[1] * np.nan])
    with pytest.raises(mk.MarkoviaError, match="scores of instance 0"):
        mk.crf.NeuralCRF(potentials, start).fit([x * np.nan for x in X], Y)
    for setting, value in (("learning_rate", -1), ("weight_decay", -1), ("tol", "a")):
        with pytest.raises(mk.MarkoviaError, match=f"{setting}= is"):
            mk.crf.NeuralCRF(potentials, start, **{setting: value}).fit(X, Y)
    with pytest.raises(mk.MarkoviaError, match="params="):
        mk.crf.NeuralCRF(potentials, {**start, "w": np.full((2, 2), np.nan)}).fit(X, Y)
