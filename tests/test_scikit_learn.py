"""scikit-learn's own checks of every estimator, and the list of what fails on purpose."""

import inspect
import warnings

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator

import markovia as mk

FRACTIONS = "the check trains on numbers with fractions, which discrete classifiers refuse"
GAPS = "missing cells are refused in fit unless missing= says what to do with them, and summed out in predict"
DISCRETE = {
    "check_positive_only_tag_during_fit": FRACTIONS,
    "check_sample_weight_equivalence_on_dense_data": FRACTIONS,
    "check_classifiers_one_label_sample_weights": FRACTIONS,
}
ON_PURPOSE = {
    "Discretizer": {"check_dtype_object": "columns of a matrix that hold no numbers are kept as they are"},
    "CategoricalNaiveBayes": DISCRETE,
    "BayesianNetworkClassifier": {**DISCRETE, "check_estimators_pickle": GAPS},
    "TreeAugmentedNaiveBayes": {**DISCRETE, "check_estimators_pickle": GAPS},
    "BernoulliNaiveBayes": {},
    "GaussianNaiveBayes": {},
    "NaiveBayes": {},
    "LabelPropagation": {},
    "LinearRegression": {},
    "LogisticRegression": {},
    "PoissonRegression": {},
    "SoftmaxRegression": {},
    "GLM": {},
}
SEQUENCES = {
    "ARIMA",
    "DynamicFactor",
    "LinearStateSpace",
    "StructuralSeries",
    "CRF",
    "ChainCRF",
    "FeatureCRF",
    "GridCRF",
    "HMM",
    "HiddenSemiMarkov",
    "FactorialHMM",
    "CoupledHMM",
    "MEMM",
    "NeuralCRF",
    "NonlinearStateSpace",
    "ParticleFilter",
    "SegmentCRF",
    "SequenceMixture",
    "SwitchingStateSpace",
}
"""Estimators whose rows are sequences or images, which the checks cannot make."""
SETTINGS = {
    "LogisticRegression": {"l2": 0.01},
    "PoissonRegression": {"l2": 0.01},
    "SoftmaxRegression": {"l2": 0.01},
    "GLM": {"family": "gamma", "link": "log", "l2": 0.01},
}


def test_every_estimator_is_in_the_list():
    found = {n for n in dir(mk) if inspect.isclass(o := getattr(mk, n)) and issubclass(o, BaseEstimator)}
    assert found == set(ON_PURPOSE) | SEQUENCES


@pytest.mark.parametrize("name", ON_PURPOSE)
def test_the_checks_fail_only_where_the_list_says_so(name):
    checked(getattr(mk, name)(**SETTINGS.get(name, {})), ON_PURPOSE[name])


def test_other_settings_fail_only_where_said():
    order = {
        "check_sample_weight_equivalence_on_dense_data": "the random order depends on the number of rows"
    }
    checked(mk.LinearRegression(solver="sgd", random_state=0), order)
    checked(mk.BayesianNetworkClassifier(missing="drop"), DISCRETE)
    checked(mk.TreeAugmentedNaiveBayes(missing="drop"), DISCRETE)
    checked(mk.LabelPropagation(graph="knn", unreachable="uniform", clamping=2.0), {})


def checked(model, on_purpose):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, expected_failed_checks=on_purpose, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(on_purpose)
