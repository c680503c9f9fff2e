"""Maximum entropy Markov models: against enumeration, softmax regression, their Bayesian network, and label bias."""

import itertools
import warnings

import numpy as np
import pytest

import markovia as mk

BARRED = -690.0
"""A log probability that counts for nothing."""
LECTURE = [
    {1: [0.4, 0.6, 0, 0, 0], 2: [0.2, 0.2, 0.2, 0.2, 0.2]},
    {1: [0.45, 0.55, 0, 0, 0], 2: [0.2, 0.3, 0.1, 0.2, 0.2]},
    {1: [0.5, 0.5, 0, 0, 0], 2: [0.2, 0.3, 0.1, 0.2, 0.2]},
]
"""The lecture's label bias: state 2 is preferred at every step, state 1 has two successors and state 2 has five."""


def lecture_model():
    coef = np.zeros((6, 5, 4))  # one feature a step: whole tables are weights
    coef[0, :, 0] = [np.log(0.5), np.log(0.5), BARRED, BARRED, BARRED]
    for t, tables in enumerate(LECTURE, 1):
        for before in range(1, 6):
            with np.errstate(divide="ignore"):
                coef[before, :, t] = np.maximum(np.log(tables.get(before, [0.2] * 5)), BARRED)
    return mk.MEMM.from_weights([1, 2, 3, 4, 5], coef, np.zeros((5, 5)))


def tagged(seed=0, n=25):
    rng = np.random.default_rng(seed)
    inputs = [
        [{"word": f"w{i}", "big": float(i) / 3} for i in rng.integers(4, size=rng.integers(1, 5))]
        for _ in range(n)
    ]
    labels = [[("x", "y", "z")[rng.integers(3)] if rng.random() < 0.4 else "x" for _ in s] for s in inputs]
    return inputs, labels


def test_the_path_that_is_never_favoured_locally_has_probability_009_and_wins():
    model = lecture_model()
    steps = np.eye(4)
    both = np.exp(model.log_prob([steps, steps], [[1, 1, 1, 1], [2, 2, 2, 2]]))
    np.testing.assert_allclose(both / 0.5, [0.09, 0.018], rtol=1e-9)  # each path begins with probability 0.5
    tables = model.network(steps)
    for t in range(1, 4):
        for before in (1, 2):
            next_one = tables.query(f"y{t}", given={f"y{t - 1}": before})
            assert next_one[2] == max(next_one.values)  # state 2 is preferred whatever comes before
    paths, logs = model.k_best([steps], 3)[0]
    assert paths[:, :3].tolist()[:2] == [[1, 1, 1], [1, 1, 1]]  # the last step of state 1 is a tie
    np.testing.assert_allclose(np.exp(logs[:2]), 0.045, rtol=1e-9)
    assert np.exp(logs[2]) < 0.045


@pytest.mark.parametrize("per_label", [False, True])
def test_answers_are_those_of_enumeration_and_of_the_bayesian_network(per_label):
    inputs, labels = tagged()
    model = mk.MEMM(per_label=per_label).fit(inputs, labels)
    for x in inputs[:6]:
        network = model.network(x)
        every = {}
        for y in itertools.product(model.classes_.tolist(), repeat=len(x)):
            every[y] = float(np.exp(model.log_prob([x], [list(y)])[0]))
            given = {f"y{t}": v for t, v in enumerate(y)}
            assert network.log_evidence(given) == pytest.approx(np.log(every[y]), abs=1e-9)
        assert sum(every.values()) == pytest.approx(1.0)
        assert tuple(model.predict([x])[0].tolist()) == max(every, key=every.get)
        smoothed = model.smooth([x])[0]
        for t in range(len(x)):
            np.testing.assert_allclose(smoothed[t], network.query(f"y{t}").values, atol=1e-10)
        paths, logs = model.k_best([x], 3)[0]
        best = sorted(every.values(), reverse=True)[:3]
        np.testing.assert_allclose(np.exp(logs), best, atol=1e-12)
        assert len(paths) == len(best)
    assert model.log_partition(inputs).max() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("per_label", [False, True])
def test_training_is_softmax_regression_on_features_and_the_label_before(per_label):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(n, 2)) for n in (4, 3, 5, 2, 4, 4)]
    labels = [rng.integers(3, size=len(x)) for x in inputs]
    ours = mk.MEMM(C=2.0, per_label=per_label, tol=1e-9).fit(inputs, labels)
    rows, before = [], []
    for x, y in zip(inputs, labels, strict=True):
        last = np.eye(4)[np.concatenate([[0], y[:-1] + 1])]
        rows.append(np.column_stack([*(last[:, i : i + 1] * x for i in range(4))] if per_label else [x]))
        before.append(last)
    design = np.column_stack([np.concatenate(rows), np.concatenate(before)])
    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=5000)
    theirs.fit(design, np.concatenate(labels))
    moves = np.vstack([ours.start_, ours.transitions_])
    np.testing.assert_allclose(moves, theirs.coef_[:, -4:].T, atol=1e-5)
    coef = ours.coef_.transpose(1, 0, 2).reshape(3, -1) if per_label else ours.coef_
    np.testing.assert_allclose(coef, theirs.coef_[:, :-4], atol=1e-5)


@pytest.mark.parametrize("per_label", [False, True])
def test_absolute_values_make_weights_zero_where_no_other_is_better(per_label):
    from markovia.data.text.tokens import read_tags, read_tokens
    from markovia.learning.conditional_fields.local_objective import LocalObjective

    inputs, labels = tagged()
    model = mk.MEMM(C=5.0, l1=0.8, per_label=per_label, tol=1e-8).fit(inputs, labels)
    tokens = read_tokens(inputs, grow=True)
    theta = model.training_.point
    value, gradient = LocalObjective(tokens, read_tags(labels, tokens)[0], 3, C=5.0, apart=per_label)(theta)
    zero = theta == 0.0
    assert 3 < zero.sum() < len(theta) - 3
    assert np.abs(gradient[zero]).max() <= 0.8 + 1e-6
    np.testing.assert_allclose(gradient[~zero], -0.8 * np.sign(theta[~zero]), atol=1e-5)
    assert model.objective_ == pytest.approx(value + 0.8 * np.abs(theta).sum())


def test_a_chain_field_uses_later_letters_where_a_memm_cannot():
    """The example of Lafferty et al.: "rib" and "rob" begin alike, and each has a path of its own."""
    rng = np.random.default_rng(0)
    paths = {"rib": [1, 2, 3], "rob": [4, 5, 6]}
    inputs, labels = [], []
    for _ in range(300):
        word = ("rib", "rob")[rng.integers(2)]
        letters = [c if rng.random() < 0.97 else str(rng.choice(list("riob"))) for c in word]
        inputs.append([[c] for c in letters])
        labels.append(paths[word])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        memm, field = mk.MEMM(C=100.0).fit(inputs, labels), mk.ChainCRF(C=100.0).fit(inputs, labels)
    clean = [[["r"], ["i"], ["b"]], [["r"], ["o"], ["b"]]]
    assert [y.tolist() for y in field.predict(clean)] == [[1, 2, 3], [4, 5, 6]]
    assert field.score(inputs, labels) > 0.95
    assert memm.score(inputs, labels) < 0.65
    first = [one[0, 0] for one in memm.smooth(clean)]
    assert first[0] == pytest.approx(
        first[1], abs=1e-9
    )  # what comes later says nothing about the first label


def test_missing_labels_are_refused_by_name():
    with pytest.raises(mk.errors.InvalidArgument, match="step 1 of sequence 0 has no label"):
        mk.MEMM().fit([[["a"], ["b"], ["a"]]], [["x", None, "y"]])
    with pytest.raises(mk.errors.InvalidArgument, match="two different ones"):
        mk.MEMM().fit([[["a"], ["b"]]], [["x", "x"]])
