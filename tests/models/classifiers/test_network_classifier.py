"""Bayesian-network classifiers: any structure, against the network's own answers, brute force and scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import markovia as mk
from model_strategies import bayesian_networks


@given(bayesian_networks(max_nodes=5), st.integers(0, 2**16))
@settings(max_examples=25)
def test_predictions_are_those_of_the_fitted_network(bn, seed):
    rng = np.random.default_rng(seed)
    target = bn.variables[int(rng.integers(len(bn.variables)))]
    frame = bn.sample(50, seed=seed)
    X, y = frame.drop(columns=target), frame[target]
    if not X.shape[1]:
        return
    model = mk.classifiers.BayesianNetworkClassifier(bn, prior=1.0).fit(X, y)
    fitted = bn.copy().fit(frame, prior=1.0)
    for name in bn.variables:
        assert np.allclose(model.network_[name].values, fitted[name].values)
    order = [fitted.states(target).index(label) for label in model.classes_.tolist()]
    some = X.head(8).astype(object).mask(rng.random((8, X.shape[1])) < 0.4)
    for asked in (X.head(8), some):
        expected = fitted.predict_proba(asked, target).to_numpy()[:, order]
        assert np.allclose(model.predict_proba(asked), expected, atol=1e-11)
        assert np.allclose(model.predict_log_proba(asked), np.log(expected), atol=1e-9)


def test_a_naive_structure_is_categorical_naive_bayes():
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 3, (80, 4)), rng.integers(0, 2, 80)
    network = mk.classifiers.BayesianNetworkClassifier("naive", prior=None, impossible="prior").fit(X, y)
    plain = mk.classifiers.CategoricalNaiveBayes(alpha=0, impossible="prior").fit(X, y)
    assert np.allclose(network.predict_proba(X), plain.predict_proba(X))
    assert network.log_likelihood_ == pytest.approx(plain.log_likelihood_)
    tan = mk.classifiers.BayesianNetworkClassifier("tan").fit(X, y)
    assert np.allclose(
        tan.predict_proba(X), mk.classifiers.TreeAugmentedNaiveBayes().fit(X, y).predict_proba(X)
    )


def test_structures_come_as_text_graph_mapping_or_edges():
    rows = mk.examples.sprinkler().sample(400, seed=0)
    X, y = rows.drop(columns="rain"), rows["rain"]
    edges = [("cloudy", "sprinkler"), ("cloudy", "rain"), ("sprinkler", "wet"), ("rain", "wet")]
    parents = {"cloudy": [], "sprinkler": ["cloudy"], "rain": ["cloudy"], "wet": ["sprinkler", "rain"]}
    text = "cloudy->sprinkler->wet; cloudy->rain->wet"
    found = [
        mk.classifiers.BayesianNetworkClassifier(s).fit(X, y).predict_proba(X)
        for s in (text, mk.graphs.DAG(edges), parents, edges)
    ]
    for other in found[1:]:
        assert np.allclose(other, found[0])
    network = mk.examples.sprinkler()
    kept = {n: network[n].values.copy() for n in network.variables}
    mk.classifiers.BayesianNetworkClassifier(network, target="rain").fit(X, y.to_numpy())
    assert all(np.array_equal(network[n].values, kept[n]) for n in kept)


def test_columns_outside_the_structure_are_not_looked_at():
    rows = mk.examples.sprinkler().sample(200, seed=1)
    X, y = rows.drop(columns="rain"), rows["rain"]
    model = mk.classifiers.BayesianNetworkClassifier("rain->wet").fit(X.assign(noise=0.5), y)
    small = mk.classifiers.BayesianNetworkClassifier("rain->wet").fit(X[["wet"]], y)
    assert np.allclose(model.predict_proba(X.assign(noise=0.1)), small.predict_proba(X[["wet"]]))
    with pytest.raises(mk.errors.UnknownVariable, match=r"'wett' in the features.*did you mean 'wet'"):
        mk.classifiers.BayesianNetworkClassifier("rain->wett").fit(X, y)
    with pytest.raises(mk.errors.UnknownVariable, match="'class' in the structure; target="):
        mk.classifiers.BayesianNetworkClassifier("rain->wet").fit(X, y.to_numpy())


def test_a_class_that_training_never_met_keeps_its_column():
    network = mk.BayesianNetwork("y{no|maybe|yes}->x")
    model = mk.classifiers.BayesianNetworkClassifier(network, prior=1.0)
    model.fit(pd.DataFrame({"x": [0, 1, 1]}), pd.Series(["no", "yes", "yes"], name="y"))
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    assert np.allclose(model.predict_proba(pd.DataFrame({"x": [1]})).sum(), 1)
    assert model.predict_proba(pd.DataFrame({"x": [1]}))[0, 0] > 0
    with pytest.raises(mk.errors.InvalidArgument, match="'perhaps' is none of the classes"):
        model.fit(pd.DataFrame({"x": [0]}), pd.Series(["perhaps"], name="y"))


def test_states_that_a_network_has_cannot_be_given_again():
    network = mk.BayesianNetwork("y{no|yes}->x{lo|hi}")
    with pytest.raises(mk.errors.InvalidArgument, match="states of 'x' are already known"):
        mk.classifiers.BayesianNetworkClassifier(network, states={"x": ["a", "b"]}).fit(
            pd.DataFrame({"x": ["lo", "hi"]}), pd.Series(["no", "yes"], name="y")
        )


def test_impossible_rows_are_named_or_answered_by_the_prior_with_and_without_gaps():
    X = pd.DataFrame({"a": [0, 0, 1], "b": [0, 0, 1], "c": [0, 1, 1]})
    y = pd.Series(["u", "u", "v"], name="y")
    strange = pd.DataFrame({"a": [0, 1, 1, 0], "b": [0, 0, 0, 0], "c": [0.0, 0.0, np.nan, np.nan]})
    model = mk.classifiers.BayesianNetworkClassifier(prior=None).fit(X, y)
    with pytest.raises(mk.errors.ImpossibleEvidence, match=r"row 1 .*probability zero in every class"):
        model.predict(strange)
    lenient = mk.classifiers.BayesianNetworkClassifier(prior=None, impossible="prior").fit(X, y)
    assert np.allclose(lenient.predict_proba(strange), [[1, 0], [2 / 3, 1 / 3], [2 / 3, 1 / 3], [1, 0]])


def test_an_approximate_engine_answers_every_row():
    rows = mk.examples.sprinkler().sample(300, seed=3)
    X, y = rows.drop(columns="rain"), rows["rain"]
    text = "cloudy->sprinkler->wet; cloudy->rain->wet"
    exact = mk.classifiers.BayesianNetworkClassifier(text).fit(X, y).predict_proba(X.head(3))
    sampled = mk.classifiers.BayesianNetworkClassifier(
        text, engine=mk.engines.LikelihoodWeighting(draws=4000, seed=1)
    ).fit(X, y)
    found = sampled.predict_proba(X.head(3))
    assert np.allclose(found, exact, atol=0.06)
    assert not np.allclose(found, exact, atol=1e-9)
    with pytest.raises(mk.errors.UnknownEngine):
        mk.classifiers.BayesianNetworkClassifier(text, engine="junction").fit(X, y)


class Halves(TransformerMixin, BaseEstimator):
    """Stands for any transformer that turns numbers into pandas categories."""

    def fit(self, X, y=None):
        self.cuts_ = np.median(X, axis=0)
        return self

    def transform(self, X):
        columns = {
            f"v{k}": pd.Categorical(np.where(X[:, k] > c, "high", "low"), ["low", "high"])
            for k, c in enumerate(self.cuts_)
        }
        return pd.DataFrame(columns)


def test_a_pipeline_with_a_discretiser_can_be_searched_and_pickled():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 3)) + 1.5 * y[:, None]
    pipe = make_pipeline(Halves(), mk.classifiers.BayesianNetworkClassifier())
    found = GridSearchCV(pipe, {"bayesiannetworkclassifier__structure": ["naive", "tan"]}, cv=3).fit(X, y)
    assert found.best_score_ > 0.8
    model = found.best_estimator_
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert model[-1].network_.states("v0") == ["low", "high"]
    with pytest.raises(mk.errors.InvalidArgument, match="not integers; discretise it first"):
        mk.classifiers.BayesianNetworkClassifier().fit(X, y)


def test_unseen_states_are_an_error_or_missing():
    X, y = pd.DataFrame({"a": ["u", "v", "u", "v"], "b": ["p", "q", "q", "q"]}), [0, 1, 0, 1]
    new = pd.DataFrame({"a": ["w"], "b": ["q"]})
    model = mk.classifiers.BayesianNetworkClassifier().fit(X, y)
    with pytest.raises(mk.errors.UnknownState, match="unknown state 'w' for 'a'"):
        model.predict(new)
    lenient = mk.classifiers.BayesianNetworkClassifier(unseen="missing").fit(X, y)
    expected = model.predict_proba(pd.DataFrame({"a": [None], "b": ["q"]}))
    assert np.allclose(lenient.predict_proba(new), expected)
    stated = mk.classifiers.BayesianNetworkClassifier(states={"a": ["u", "v", "w"]}).fit(X, y)
    assert stated.network_.states("a") == ["u", "v", "w"]
    assert stated.predict_proba(new).shape == (1, 2)


def test_missing_cells_at_fitting_are_an_error_or_dropped():
    X = pd.DataFrame({"a": ["u", None, "u", "v"], "b": ["p", "q", "q", "q"]})
    y = ["no", "yes", "no", "yes"]
    with pytest.raises(mk.errors.InvalidArgument, match="1 cells are missing"):
        mk.classifiers.BayesianNetworkClassifier().fit(X, y)
    dropped = mk.classifiers.BayesianNetworkClassifier(missing="drop").fit(X, y)
    whole = mk.classifiers.BayesianNetworkClassifier(states={"b": ["p", "q"]}).fit(
        X.iloc[[0, 2, 3]], [y[0], y[2], y[3]]
    )
    assert np.allclose(dropped.predict_proba(X), whole.predict_proba(X))
    assert clone(dropped).missing == "drop"


@pytest.mark.parametrize("method", ["hill-climb", "ges", "chow-liu"])
def test_the_name_of_a_method_learns_the_structure(method):
    rows = mk.examples.asia().sample(2000, seed=3)
    model = mk.classifiers.BayesianNetworkClassifier(structure=method).fit(
        rows.drop(columns="lung"), rows["lung"]
    )
    found = mk.learn_structure(rows[[*rows.columns.drop("lung"), "lung"]], method)
    assert set(model.network_.edges) == set(found.dag.edges)
    assert len(model.network_.edges) > 4
    other = mk.classifiers.BayesianNetworkClassifier(found.dag).fit(rows.drop(columns="lung"), rows["lung"])
    assert np.allclose(
        model.predict_proba(rows.drop(columns="lung")), other.predict_proba(rows.drop(columns="lung"))
    )
