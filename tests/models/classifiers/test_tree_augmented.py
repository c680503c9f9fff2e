"""Tree-augmented naive Bayes: the best tree by brute force, conditional information, roots, missing cells."""

import itertools
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import markovia as mk


def rows(seed, features=4, n=120):
    rng = np.random.default_rng(seed)
    names = [f"f{k}" for k in range(features)]
    edges = [("y", name) for name in names]
    edges += [(names[int(rng.integers(k))], names[k]) for k in range(1, features)]
    states = {name: int(rng.integers(2, 4)) for name in names} | {"y": 3}
    return mk.BayesianNetwork(edges, states=states, tables="random", seed=seed).sample(n, seed=seed + 1)


def split(frame):
    return frame.drop(columns="y"), frame["y"]


@given(st.integers(0, 2**16))
@settings(max_examples=12)
def test_no_other_tree_has_a_higher_likelihood(seed):
    frame = rows(seed)
    X, y = split(frame)
    model = mk.classifiers.TreeAugmentedNaiveBayes(prior=None).fit(X, y)
    best = -np.inf
    for tree in itertools.combinations(itertools.combinations(X.columns, 2), 3):
        graph = nx.Graph(tree)
        if len(graph) == 4 and nx.is_connected(graph):
            edges = [*nx.bfs_edges(graph, "f0"), *(("y", name) for name in X.columns)]
            best = max(best, mk.BayesianNetwork(edges).fit(frame).fit_.log_likelihood)
    assert model.log_likelihood_ == pytest.approx(best, abs=1e-9)


@given(st.integers(0, 2**16))
@settings(max_examples=12)
def test_the_weights_are_conditional_mutual_information(seed):
    frame = rows(seed)
    X, y = split(frame)
    found = mk.classifiers.TreeAugmentedNaiveBayes().fit(X, y).conditional_mutual_information_
    assert np.allclose(found, found.T)
    for (i, a), (j, b) in itertools.combinations(enumerate(X.columns), 2):
        expected = sum(
            (y == c).mean()
            * mk.learning.mutual_information_of_table(pd.crosstab(X[a][y == c], X[b][y == c], normalize=True))
            for c in y.unique()
        )
        assert found[i, j] == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 2**16))
@settings(max_examples=8)
def test_the_root_does_not_matter_for_maximum_likelihood(seed):
    X, y = split(rows(seed))
    models = [
        mk.classifiers.TreeAugmentedNaiveBayes(root=root, prior=None, impossible="prior").fit(X, y)
        for root in (None, "f2", 3)
    ]
    assert [m.network_.parents(r) for m, r in zip(models, ("f0", "f2", "f3"), strict=True)] == [["y"]] * 3
    for model in models[1:]:
        assert model.log_likelihood_ == pytest.approx(models[0].log_likelihood_, abs=1e-9)
        assert np.allclose(model.predict_proba(X), models[0].predict_proba(X), atol=1e-9)


def test_a_planted_tree_is_found_again():
    frame = rows(5, features=7, n=20_000)
    X, y = split(frame)
    model = mk.classifiers.TreeAugmentedNaiveBayes().fit(X, y)
    rng = np.random.default_rng(5)
    planted = {frozenset((f"f{int(rng.integers(k))}", f"f{k}")) for k in range(1, 7)}
    assert {frozenset(edge) for edge in model.tree_} == planted
    assert model.score(X, y) >= mk.classifiers.CategoricalNaiveBayes().fit(X, y).score(X, y)


def test_a_repeated_feature_does_not_count_twice():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    noisy = np.where(rng.random(4000) < 0.7, y, 1 - y)
    X = np.column_stack([noisy] * 5)
    truth = np.where(noisy == 1, 0.7, 0.3)
    tree = mk.classifiers.TreeAugmentedNaiveBayes().fit(X, y).predict_proba(X)[:, 1]
    naive = mk.classifiers.CategoricalNaiveBayes().fit(X, y).predict_proba(X)[:, 1]
    assert np.abs(tree - truth).max() < 0.03
    assert np.abs(naive - truth).max() > 0.25


@given(st.integers(0, 2**16))
@settings(max_examples=10)
def test_predictions_are_those_of_the_network_with_or_without_missing_cells(seed):
    X, y = split(rows(seed))
    model = mk.classifiers.TreeAugmentedNaiveBayes().fit(X, y)
    some = X.head(10).astype(object).mask(np.random.default_rng(seed).random((10, 4)) < 0.3)
    for asked in (X.head(10), some):
        expected = model.network_.predict_proba(asked, "y").to_numpy()
        assert np.allclose(model.predict_proba(asked), expected, atol=1e-12)
        assert np.allclose(np.exp(model.predict_log_proba(asked)), expected, atol=1e-12)
        assert np.array_equal(model.predict(asked), model.classes_[expected.argmax(axis=1)])


def test_weights_count_like_repeated_rows():
    X, y = split(rows(9))
    times = np.random.default_rng(1).integers(1, 4, len(y))
    weighted = mk.classifiers.TreeAugmentedNaiveBayes().fit(X, y, sample_weight=times)
    repeated = mk.classifiers.TreeAugmentedNaiveBayes().fit(
        X.loc[np.repeat(X.index, times)], np.repeat(y, times)
    )
    assert weighted.tree_ == repeated.tree_
    assert np.allclose(weighted.predict_proba(X), repeated.predict_proba(X))


def test_arrays_strings_single_columns_and_pickles():
    X, y = split(rows(7))
    words = np.array(["u", "v", "w"])[X.to_numpy()]
    model = mk.classifiers.TreeAugmentedNaiveBayes().fit(words, np.array(["no", "yes", "maybe"])[y])
    assert sorted(model.classes_) == ["maybe", "no", "yes"]
    assert model.network_.parents("x0") == ["class"]
    assert np.allclose(model.predict_proba(words).sum(axis=1), 1)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(words), model.predict_proba(words))
    alone = mk.classifiers.TreeAugmentedNaiveBayes(prior="laplace").fit(words[:, :1], y)
    assert alone.tree_ == []
    assert cross_val_score(mk.classifiers.TreeAugmentedNaiveBayes(unseen="missing"), X, y, cv=3).mean() > 0.5


def test_priors_reach_every_table():
    X, y = split(rows(4))
    model = mk.classifiers.TreeAugmentedNaiveBayes(prior=mk.priors.BDeu(5)).fit(X, y)
    expected = mk.BayesianNetwork(model.network_.edges).fit(
        pd.concat([X, y], axis=1), prior=mk.priors.BDeu(5)
    )
    for name in X.columns:
        assert np.allclose(
            model.network_[name].values, np.transpose(expected[name].values, _order(model, expected, name))
        )


def _order(model, expected, name):
    ours, theirs = [*model.network_.parents(name), name], [*expected.parents(name), name]
    return [theirs.index(n) for n in ours]


def test_wrong_settings_are_named():
    X, y = split(rows(2))
    with pytest.raises(mk.errors.UnknownVariable, match="'f9'"):
        mk.classifiers.TreeAugmentedNaiveBayes(root="f9").fit(X, y)
    with pytest.raises(mk.errors.InvalidArgument, match="root= is the name or position"):
        mk.classifiers.TreeAugmentedNaiveBayes(root=4).fit(X, y)
    with pytest.raises(mk.errors.DuplicateName, match="two columns of X are called 'f1'"):
        mk.classifiers.TreeAugmentedNaiveBayes().fit(X.set_axis(["f0", "f1", "f1", "f3"], axis=1), y)
    with pytest.raises(mk.errors.InvalidArgument, match="a feature is called 'f0'"):
        mk.classifiers.TreeAugmentedNaiveBayes(target="f0").fit(X, y)
    with pytest.raises(mk.errors.InvalidArgument, match="not integers; discretise it first"):
        mk.classifiers.TreeAugmentedNaiveBayes().fit(X + 0.5, y)
    fitted = mk.classifiers.TreeAugmentedNaiveBayes().fit(X, y)
    before = fitted.predict_proba(X)
    with pytest.raises(mk.errors.InvalidArgument, match="a prior is"):
        fitted.set_params(prior="flat").fit(X, y)
    assert np.array_equal(clone(fitted).set_params(prior="bdeu").fit(X, y).predict_proba(X), before)
    assert np.array_equal(fitted.predict_proba(X), before)


def test_counting_in_several_passes_changes_nothing(monkeypatch):
    from markovia.structure.scores import pair_information

    X, y = split(rows(6))
    once = mk.classifiers.TreeAugmentedNaiveBayes().fit(X, y).conditional_mutual_information_
    monkeypatch.setattr(pair_information, "CELLS_AT_ONCE", 20)
    assert np.array_equal(
        mk.classifiers.TreeAugmentedNaiveBayes().fit(X, y).conditional_mutual_information_, once
    )


@pytest.mark.slow
def test_pgmpy_finds_the_same_tree():
    search = pytest.importorskip("pgmpy.estimators").TreeSearch
    frame = rows(8, features=6, n=2000)
    X, y = split(frame)
    theirs = search(frame, root_node="f0", n_jobs=1).estimate(
        estimator_type="tan", class_node="y", show_progress=False
    )
    ours = mk.classifiers.TreeAugmentedNaiveBayes().fit(X, y)
    assert set(theirs.edges) == set(ours.network_.edges)
