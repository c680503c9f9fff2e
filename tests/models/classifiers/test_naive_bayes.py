"""Naive Bayes: against scikit-learn, closed forms, brute force over missing cells, and the network it stands for."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

import markovia as mk


def data(seed, n=60, d=4, classes=3, states=3):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    numbers = rng.normal(size=(n, d)) + 0.7 * y[:, None]
    codes = np.concatenate([np.tile(np.arange(states)[:, None], d), rng.integers(0, states, (n - states, d))])
    return rng, numbers, codes, np.array(["c", "a", "b", "d"])[y]


def same(ours, theirs, rows, tolerance=1e-10):
    assert np.array_equal(ours.classes_, theirs.classes_)
    assert np.allclose(
        ours.predict_log_proba(rows), theirs.predict_log_proba(rows), rtol=tolerance, atol=tolerance
    )
    assert np.allclose(
        ours.predict_joint_log_proba(rows), theirs.predict_joint_log_proba(rows), rtol=tolerance
    )
    assert np.array_equal(ours.predict(rows), theirs.predict(rows))


# -- scikit-learn's conventions -----------------------------------------------------------------------------------


@given(st.integers(0, 2**16), st.sampled_from([1e-9, 0.0, 0.1]))
@settings(max_examples=25)
def test_gaussian_naive_bayes_equals_scikit_learns(seed, smoothing):
    _, X, _, y = data(seed)
    same(
        mk.classifiers.GaussianNaiveBayes(var_smoothing=smoothing).fit(X, y),
        GaussianNB(var_smoothing=smoothing).fit(X, y),
        X,
    )


@given(st.integers(0, 2**16), st.sampled_from([1.0, 0.3, 5.0]), st.sampled_from([0.0, 0.5]))
@settings(max_examples=25)
def test_bernoulli_naive_bayes_equals_scikit_learns(seed, alpha, threshold):
    rng, X, _, y = data(seed)
    w = rng.random(len(y))
    ours = mk.classifiers.BernoulliNaiveBayes(alpha=alpha, binarize=threshold)
    theirs = BernoulliNB(alpha=alpha, binarize=threshold)
    same(ours.fit(X, y), theirs.fit(X, y), X)
    same(ours.fit(X, y, sample_weight=w), theirs.fit(X, y, sample_weight=w), X)


@given(st.integers(0, 2**16), st.sampled_from([1.0, 0.3, 5.0]))
@settings(max_examples=25)
def test_categorical_naive_bayes_equals_scikit_learns(seed, alpha):
    rng, _, codes, y = data(seed)
    w = rng.random(len(y))
    ours, theirs = mk.classifiers.CategoricalNaiveBayes(alpha=alpha), CategoricalNB(alpha=alpha)
    same(ours.fit(codes, y), theirs.fit(codes, y), codes)
    same(ours.fit(codes, y, sample_weight=w), theirs.fit(codes, y, sample_weight=w), codes)
    words = np.array(["x", "y", "z"])[codes]
    same(ours.fit(codes, y), theirs.fit(codes, y), codes)
    assert np.allclose(
        ours.fit(words, y).predict_proba(words), theirs.fit(codes, y).predict_proba(codes), atol=1e-12
    )


def test_gaussian_weights_count_like_repeated_rows():
    rng, X, _, y = data(3)
    times = rng.integers(0, 3, len(y))
    times[:3] = 1
    weighted = mk.classifiers.GaussianNaiveBayes().fit(X, y, sample_weight=times)
    repeated = mk.classifiers.GaussianNaiveBayes().fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert np.allclose(weighted.predict_log_proba(X), repeated.predict_log_proba(X), rtol=1e-10)
    assert np.isclose(weighted.log_likelihood_, repeated.log_likelihood_)
    plain = GaussianNB(var_smoothing=0).fit(X, y, sample_weight=times)
    same(mk.classifiers.GaussianNaiveBayes(var_smoothing=0).fit(X, y, sample_weight=times), plain, X)


def test_given_and_uniform_class_priors_are_used():
    _, X, codes, y = data(5)
    prior = [0.5, 0.3, 0.2]
    same(
        mk.classifiers.GaussianNaiveBayes(class_prior=prior).fit(X, y), GaussianNB(priors=prior).fit(X, y), X
    )
    same(
        mk.classifiers.BernoulliNaiveBayes(class_prior="uniform").fit(X, y),
        BernoulliNB(fit_prior=False).fit(X, y),
        X,
    )
    ours = mk.classifiers.CategoricalNaiveBayes(class_prior=prior).fit(codes, y)
    same(ours, CategoricalNB(class_prior=prior).fit(codes, y), codes)
    for wrong in ([0.5, 0.5], [0.9, 0.3, -0.2], "flat"):
        with pytest.raises(mk.errors.InvalidArgument, match="class_prior="):
            mk.classifiers.GaussianNaiveBayes(class_prior=wrong).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        mk.classifiers.GaussianNaiveBayes(),
        mk.classifiers.BernoulliNaiveBayes(),
        mk.classifiers.NaiveBayes(kinds={0: "categorical"}),
    ],
)
def test_batches_give_the_same_as_all_rows_at_once(model):
    _, X, codes, y = data(7, n=90)
    X = np.concatenate([codes[:, :1], X], axis=1)
    whole = clone(model).fit(X, y)
    parts = clone(model)
    for low in range(0, 90, 30):
        parts.partial_fit(X[low : low + 30], y[low : low + 30], classes=["a", "b", "c"])
    assert np.allclose(whole.predict_log_proba(X), parts.predict_log_proba(X), rtol=1e-10)
    assert np.isclose(whole.log_likelihood_, parts.log_likelihood_)
    with pytest.raises(mk.errors.InvalidArgument, match="'e' is none of the classes"):
        parts.partial_fit(X[:1], ["e"])


def test_a_batch_with_a_new_state_is_refused_unless_it_was_announced():
    first, later = [["a"], ["b"]], [["c"], ["a"]]
    model = mk.classifiers.CategoricalNaiveBayes().partial_fit(first, [0, 1], classes=[0, 1])
    before = model.predict_proba(first)
    with pytest.raises(mk.errors.UnknownState, match="'c'"):
        model.partial_fit(later, [0, 1])
    assert np.array_equal(model.predict_proba(first), before)
    known = mk.classifiers.CategoricalNaiveBayes(states={"x0": ["a", "b", "c"]}).partial_fit(
        first, [0, 1], classes=[0, 1]
    )
    known.partial_fit(later, [0, 1])
    assert known.category_count_[0].tolist() == [[1, 0, 1], [1, 1, 0]]


def test_pipelines_searches_clones_and_pickles_work():
    _, X, codes, y = data(11, n=120)
    frame = pd.DataFrame(np.array(["u", "v", "w"])[codes], columns=list("abcd"))
    assert (
        cross_val_score(
            make_pipeline(StandardScaler(), mk.classifiers.GaussianNaiveBayes()), X, y, cv=3
        ).mean()
        > 0.5
    )
    frame["d"] = np.where(np.arange(120) % 5 > 0, y, np.roll(y, 1)).astype(str)  # tells the class, mostly
    # with so many pseudo-counts every column says the same of every class
    found = GridSearchCV(mk.classifiers.CategoricalNaiveBayes(), {"alpha": [0.1, 1e6]}, cv=3).fit(frame, y)
    assert found.best_params_ == {"alpha": 0.1}
    assert found.cv_results_["mean_test_score"][0] > found.cv_results_["mean_test_score"][1] + 0.05
    best = found.best_estimator_
    assert best.feature_names_in_.tolist() == list("abcd")
    assert best.n_features_in_ == 4
    again = pickle.loads(pickle.dumps(best))
    assert np.array_equal(again.predict_proba(frame), best.predict_proba(frame))
    assert clone(best).alpha == best.alpha
    coded = make_pipeline(OrdinalEncoder(), mk.classifiers.CategoricalNaiveBayes()).fit(frame, y)
    plain = mk.classifiers.CategoricalNaiveBayes().fit(frame, y)
    assert np.allclose(coded.predict_proba(frame), plain.predict_proba(frame))


def test_a_failed_fit_leaves_the_classifier_as_it_was():
    _, X, _, y = data(1)
    model = mk.classifiers.GaussianNaiveBayes().fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(X[:, :2], y[:-1])
    assert np.array_equal(model.predict_proba(X), before)


# -- worked numbers and closed forms ------------------------------------------------------------------------------


def test_the_worked_example_of_the_counting_algorithm():
    X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["A", "A", "B", "B"]
    for model in (mk.classifiers.BernoulliNaiveBayes(alpha=0), mk.classifiers.CategoricalNaiveBayes(alpha=0)):
        model.fit(X, y)
        assert model.class_prior_.tolist() == [0.5, 0.5]
        assert model.log_likelihood_ == pytest.approx(6 * np.log(0.5), abs=1e-12)
        assert round(model.log_likelihood_, 6) == -4.158883
    assert mk.classifiers.BernoulliNaiveBayes(alpha=0).fit(X, y).theta_.tolist() == [[1, 0.5], [0, 1]]


@given(st.integers(0, 2**16))
@settings(max_examples=20)
def test_the_log_likelihood_is_that_of_the_training_rows(seed):
    rng, X, codes, y = data(seed)
    X[rng.random(X.shape) < 0.2] = np.nan
    w = rng.random(len(y))
    mixed = pd.DataFrame({"a": X[:, 0], "b": codes[:, 0] > 0, "c": np.array(["p", "q", "r"])[codes[:, 1]]})
    for model, rows in [
        (mk.classifiers.GaussianNaiveBayes(), X),
        (mk.classifiers.BernoulliNaiveBayes(), X),
        (mk.classifiers.CategoricalNaiveBayes(alpha=0), codes),
        (mk.classifiers.NaiveBayes(alpha=0.5), mixed),
    ]:
        model.fit(rows, y, sample_weight=w)
        own = model.predict_joint_log_proba(rows)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        assert model.log_likelihood_ == pytest.approx((w * own).sum(), rel=1e-9)


def test_mixed_columns_multiply_the_distributions_of_their_kinds():
    _, X, codes, y = data(13)
    frame = pd.DataFrame(
        {"n": X[:, 0], "w": np.array(["p", "q", "r"])[codes[:, 0]], "t": codes[:, 1] > 0, "i": codes[:, 2]}
    )
    model = mk.classifiers.NaiveBayes(kinds={"i": "categorical"}, alpha=0.7).fit(frame, y)
    assert model.kinds_ == ["gaussian", "categorical", "bernoulli", "categorical"]
    expected = np.zeros((len(y), 3))
    for c, label in enumerate(model.classes_):
        mine = frame[y == label]
        expected[:, c] = np.log((y == label).mean())
        smooth = model.var_smoothing * frame["n"].var(ddof=0)
        sd = np.sqrt(mine["n"].var(ddof=0) + smooth)
        expected[:, c] += stats.norm.logpdf(frame["n"], mine["n"].mean(), sd)
        for name, states in (("w", 3), ("t", 2), ("i", 3)):
            share = (mine[name].value_counts() + 0.7) / (len(mine) + 0.7 * states)
            floor = 0.7 / (len(mine) + 0.7 * states)
            expected[:, c] += np.log([share.get(v, floor) for v in frame[name]])
    assert np.allclose(model.predict_joint_log_proba(frame), expected, rtol=1e-10)
    with pytest.raises(mk.errors.InvalidArgument, match="did you mean 'gaussian'"):
        mk.classifiers.NaiveBayes(kinds="gausian").fit(frame, y)
    with pytest.raises(mk.errors.UnknownVariable, match="'nn'"):
        mk.classifiers.NaiveBayes(kinds={"nn": "gaussian"}).fit(frame, y)
    with pytest.raises(
        mk.errors.InvalidArgument, match="'w' is gaussian but holds cells that are no numbers"
    ):
        mk.classifiers.NaiveBayes(kinds={"w": "gaussian"}).fit(frame, y)
    with pytest.raises(mk.errors.InvalidArgument, match="'n' holds other numbers than 0 and 1"):
        mk.classifiers.NaiveBayes(kinds={"n": "bernoulli"}).fit(frame, y)


# -- missing cells, zeros, the graph ------------------------------------------------------------------------------


@given(st.integers(0, 2**16))
@settings(max_examples=20)
def test_missing_cells_are_summed_out(seed):
    rng, _, codes, y = data(seed, n=40, d=3)
    model = mk.classifiers.CategoricalNaiveBayes(alpha=0.5).fit(codes, y)
    row = codes[:1].astype(float)
    gap = int(rng.integers(3))
    filled = [np.where(np.arange(3) == gap, v, row[0]) for v in range(3)]
    summed = np.exp(model.predict_joint_log_proba(np.array(filled))).sum(axis=0)
    row[0, gap] = np.nan
    assert np.allclose(np.exp(model.predict_joint_log_proba(row))[0], summed)
    ones = mk.classifiers.BernoulliNaiveBayes(binarize=None).fit((codes > 0).astype(float), y)
    both = [np.where(np.arange(3) == gap, v, (codes[0] > 0)) for v in (0.0, 1.0)]
    summed = np.exp(ones.predict_joint_log_proba(np.array(both))).sum(axis=0)
    hidden = (codes[:1] > 0).astype(float)
    hidden[0, gap] = np.nan
    assert np.allclose(np.exp(ones.predict_joint_log_proba(hidden))[0], summed)


def test_training_with_missing_cells_uses_the_cells_that_are_there():
    rng, X, _, y = data(17)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[y == "a", 3] = np.nan
    model = mk.classifiers.GaussianNaiveBayes(var_smoothing=0).fit(X, y)
    for c, label in enumerate(model.classes_):
        assert np.allclose(model.theta_[c, :3], np.nanmean(X[y == label][:, :3], axis=0))
        assert np.allclose(model.var_[c, :3], np.nanvar(X[y == label][:, :3], axis=0))
    assert model.theta_[0, 3] == pytest.approx(np.nanmean(X[:, 3]))
    assert model.var_[0, 3] == pytest.approx(np.nanvar(X[:, 3]))
    alone = mk.classifiers.GaussianNaiveBayes(var_smoothing=0).fit(X[:, :2], y)
    hidden = X.copy()
    hidden[:, 2:] = np.nan
    assert np.allclose(model.predict_proba(hidden), alone.predict_proba(X[:, :2]))
    never = np.concatenate([X[:, :2], np.full((len(y), 1), np.nan)], axis=1)
    assert np.allclose(
        mk.classifiers.GaussianNaiveBayes(var_smoothing=0).fit(never, y).predict_proba(never),
        alone.predict_proba(X[:, :2]),
    )


@pytest.mark.parametrize(
    "model", [mk.classifiers.BernoulliNaiveBayes(alpha=0), mk.classifiers.CategoricalNaiveBayes(alpha=0)]
)
def test_without_pseudo_counts_impossible_rows_are_named_or_answered_by_the_prior(model):
    X, y = [[1, 0], [1, 0], [0, 1]], ["A", "A", "B"]
    model.fit(X, y)
    assert model.predict_proba([[1, 0], [0, 1]]).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(
        mk.errors.ImpossibleEvidence, match=r"row 1 \(x0=1, x1=1\) has probability zero in every class"
    ):
        model.predict([[1, 0], [1, 1]])
    found = clone(model).set_params(impossible="prior").fit(X, y).predict_proba([[1, 1]])
    assert np.allclose(found, [[2 / 3, 1 / 3]])
    assert np.isneginf(model.predict_joint_log_proba([[1, 1]])).all()


def test_a_row_beyond_all_densities_is_named_or_answered_by_the_prior():
    X, y = [[0.0], [1.0], [5.0], [7.0]], ["a", "a", "b", "b"]
    with pytest.raises(mk.errors.ImpossibleEvidence, match=r"row 1 .*a larger var_smoothing"):
        mk.classifiers.GaussianNaiveBayes().fit(X, y).predict([[0.0], [1e200]])
    lenient = mk.classifiers.GaussianNaiveBayes(impossible="prior").fit(X, y)
    assert lenient.predict_proba([[1e200]]).tolist() == [[0.5, 0.5]]


def test_a_variance_of_zero_is_the_limit_of_small_ones():
    X, y = np.array([[1.0, 0.0], [1.0, 2.0], [3.0, 1.0], [4.0, 3.0]]), ["a", "a", "b", "b"]
    model = mk.classifiers.GaussianNaiveBayes(var_smoothing=0).fit(X, y)
    tiny = mk.classifiers.GaussianNaiveBayes(var_smoothing=1e-13).fit(X, y)
    rows = [[1.0, 1.0], [2.0, 1.0]]
    assert np.allclose(model.predict_proba(rows), tiny.predict_proba(rows), atol=1e-4)
    assert np.allclose(model.predict_proba(rows), [[1, 0], [0, 1]], atol=1e-12)


@given(st.integers(0, 2**16))
@settings(max_examples=10)
def test_the_network_gives_the_same_probabilities(seed):
    _, _, codes, y = data(seed, n=30, d=3)
    words = pd.DataFrame(np.array(["x", "y", "z"])[codes], columns=["p", "q", "r"])
    model = mk.classifiers.CategoricalNaiveBayes().fit(words, y)
    network = model.to_network("label")
    assert set(network.edges) == {("label", "p"), ("label", "q"), ("label", "r")}
    assert np.allclose(
        network.predict_proba(words.head(8), "label").to_numpy(), model.predict_proba(words.head(8))
    )
    ones = pd.DataFrame(codes > 0, columns=["p", "q", "r"])
    mixed = mk.classifiers.NaiveBayes(kinds=["bernoulli", "categorical", "bernoulli"]).fit(ones, y)
    found = mixed.to_network().predict_proba(ones.head(8).astype({"p": int, "r": int}), "class")
    assert np.allclose(found.to_numpy(), mixed.predict_proba(ones.head(8)))


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_network_of_gaussian_features_gives_the_same_probabilities(unit):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    X = pd.DataFrame(
        {"plan": np.array(list("uvw"))[(y + rng.integers(0, 2, 60)) % 3], "size": rng.normal(y, 1 + y)}
    )
    X = X.assign(size=unit * X["size"], new=rng.random(60) < 0.3 + 0.2 * y, empty=np.nan)
    X.loc[3, "size"] = np.nan
    model = mk.classifiers.NaiveBayes(kinds={"empty": "gaussian"}).fit(X, y)
    network = model.to_network("y")
    assert network.variables == ["y", "plan", "size", "new"]
    found = network.predict_proba(X[["plan", "size", "new"]].astype({"new": int}), "y").to_numpy()
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-10)
    # what is missing is summed out
    some = network.query("y", given={"size": 2.0 * unit}).values
    row = pd.DataFrame({"plan": [None], "size": [2.0 * unit], "new": [None], "empty": [np.nan]})
    np.testing.assert_allclose(some, model.predict_proba(row)[0], atol=1e-10)
    only = mk.classifiers.GaussianNaiveBayes().fit(X[["size"]], y)
    np.testing.assert_allclose(
        only.to_network().query("class", given={"size": unit}).values,
        only.predict_proba(pd.DataFrame({"size": [unit]}))[0],
        atol=1e-10,
    )


def test_unseen_states_are_an_error_or_missing():
    X, y = pd.DataFrame({"a": ["u", "v", "u"], "b": [1, 2, 2]}), [0, 1, 1]
    model = mk.classifiers.CategoricalNaiveBayes().fit(X, y)
    new = pd.DataFrame({"a": ["w"], "b": [2]})
    with pytest.raises(mk.errors.UnknownState, match="'w' for 'a'"):
        model.predict(new)
    lenient = mk.classifiers.CategoricalNaiveBayes(unseen="missing").fit(X, y)
    assert np.allclose(lenient.predict_proba(new), model.predict_proba(pd.DataFrame({"a": [None], "b": [2]})))
    with pytest.raises(mk.errors.InvalidArgument, match="not integers; discretise"):
        mk.classifiers.CategoricalNaiveBayes().fit([[0.5], [1.0]], [0, 1])
    with pytest.raises(mk.errors.UnknownVariable, match="'c' in the discrete features"):
        mk.classifiers.CategoricalNaiveBayes(states={"c": 2}).fit(X, y)
    with pytest.raises(mk.errors.InvalidArgument, match="alpha= is a number, 0 or more, not -1"):
        mk.classifiers.CategoricalNaiveBayes(alpha=-1).fit(X, y)


@pytest.mark.parametrize("alpha", [0, 1.0])
def test_sparse_tables_give_the_same_as_dense_ones(alpha):
    _, X, _, y = data(21)
    X = np.where(X > 0.5, X, 0.0)
    thin = sparse.csr_matrix(X)
    dense = mk.classifiers.BernoulliNaiveBayes(alpha=alpha).fit(X, y, sample_weight=np.arange(len(y)))
    found = mk.classifiers.BernoulliNaiveBayes(alpha=alpha).fit(thin, y, sample_weight=np.arange(len(y)))
    assert np.allclose(found.theta_, dense.theta_)
    assert np.allclose(found.predict_joint_log_proba(thin), dense.predict_joint_log_proba(X))
    assert np.isclose(found.log_likelihood_, dense.log_likelihood_)
    rows = sparse.csr_matrix([[1.0, 0.0], [0.0, 1.0]])
    strict = mk.classifiers.BernoulliNaiveBayes(alpha=0).fit(rows, ["a", "b"])
    with pytest.raises(mk.errors.ImpossibleEvidence, match=r"row 0 \(x0=1\.0, x1=1\.0\)"):
        strict.predict(sparse.csr_matrix([[1.0, 1.0]]))
    with pytest.raises(mk.errors.InvalidArgument, match="needs binarize >= 0"):
        mk.classifiers.BernoulliNaiveBayes(binarize=-1.0).fit(thin, y)


def test_labels_of_mixed_types_and_repeated_columns_are_named():
    with pytest.raises(mk.errors.InvalidArgument, match="not a mixture of NoneType, str"):
        mk.classifiers.GaussianNaiveBayes().fit([[0.0], [1.0]], np.array(["a", None], dtype=object))
    with pytest.raises(mk.errors.DuplicateName, match="two columns of X are called 'a'"):
        mk.classifiers.CategoricalNaiveBayes().fit(pd.DataFrame([[0, 1]], columns=["a", "a"]), [0])


def test_polars_and_arrow_tables_are_read():
    cells, y = {"a": ["u", "v", "u", "v"], "b": [1, 2, 2, 1]}, ["n", "y", "n", "y"]
    expected = (
        mk.classifiers.CategoricalNaiveBayes().fit(pd.DataFrame(cells), y).predict_proba(pd.DataFrame(cells))
    )
    for table in (pytest.importorskip("polars").DataFrame, pytest.importorskip("pyarrow").table):
        model = mk.classifiers.CategoricalNaiveBayes().fit(table(cells), y)
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert np.array_equal(model.predict_proba(table(cells)), expected)


def test_columns_of_many_types_are_read():
    frame = pd.DataFrame(
        {
            "category": pd.Categorical(["lo", "hi", "lo", None], categories=["lo", "mid", "hi"]),
            "nullable": pd.array([1, None, 3, 1], dtype="Int64"),
            "wide": [0, 10**9, -5, 0],
            "small": np.array([-100, 100, 0, 100], dtype=np.int8),
            "text": pd.array(["a", "b", None, "a"], dtype="string"),
            "truth": [True, False, True, True],
        }
    )
    model = mk.classifiers.CategoricalNaiveBayes().fit(frame, [0, 1, 0, 1])
    assert model.states_ == [
        ["lo", "mid", "hi"],
        [1, 3],
        [-5, 0, 10**9],
        [-100, 0, 100],
        ["a", "b"],
        [False, True],
    ]
    assert model.category_count_[0].tolist() == [[2, 0, 0], [0, 0, 1]]
    assert model.category_count_[1].tolist() == [[1, 1], [1, 0]]
    assert model.predict_proba(frame).shape == (4, 2)
