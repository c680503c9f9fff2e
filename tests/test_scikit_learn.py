"""scikit-learn's own checks of every estimator, and the list of what fails on purpose."""

import inspect
import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

import markovia as mk
from markovia.runtime.estimator import Estimator

FRACTIONS = "the check trains on numbers with fractions, which discrete classifiers refuse"
GAPS = "missing cells are refused in fit unless missing= says what to do with them, and summed out in predict"
DISCRETE = {
    "check_positive_only_tag_during_fit": FRACTIONS,
    "check_sample_weight_equivalence_on_dense_data": FRACTIONS,
    "check_classifiers_one_label_sample_weights": FRACTIONS,
}
SAME = "the check's rows are all the same once they are zeros and ones, and two components need two"
TAKEN = "the check takes everything that has predict_proba for a classifier"
STARTS = {
    f"check_sample_weight_equivalence_on_{what}_data": "the random starts depend on the number of rows"
    for what in ("dense", "sparse")
}
SYMBOLS = {
    "check_dtype_object": "cells are any symbols, and what is none is refused as a bad value, not a bad type"
}
DRAWN = {
    "check_sample_weight_equivalence_on_dense_data": "the start is drawn, and depends on the number of rows"
}
NO_DENSITY = dict.fromkeys(
    ["check_fit_score_takes_y", "check_n_features_in_after_fitting", "check_pipeline_consistency",
     "check_methods_sample_order_invariance", "check_methods_subset_invariance"],
    "rows have no density, and score says so",
)  # fmt: skip
GIVEN = dict.fromkeys(
    ["check_fit_score_takes_y", "check_estimators_dtypes", "check_dtype_object", "check_pipeline_consistency",
     "check_estimators_pickle", "check_f_contiguous_array_estimator", "check_transformer_data_not_an_array",
     "check_transformer_general", "check_transformer_preserve_dtypes", "check_methods_sample_order_invariance",
     "check_methods_subset_invariance", "check_dict_unchanged", "check_fit_idempotent"],
    "y is what rows are given: fitted with it, the model is asked with it",
)  # fmt: skip
ON_PURPOSE = {
    "DirichletProcessMixture": {},
    "Mixture": {},
    "GaussianMixture": {},
    "BernoulliMixture": {
        **STARTS,
        **dict.fromkeys(
            [
                "check_sample_weights_shape",
                "check_sample_weights_not_overwritten",
                "check_sample_weights_pandas_series",
                "check_sample_weights_not_an_array",
                "check_fit_idempotent",
                "check_fit_check_is_fitted",
                "check_n_features_in",
            ],
            SAME,
        ),
        **dict.fromkeys(["check_estimator_sparse_array", "check_estimator_sparse_matrix"], TAKEN),
    },
    "PoissonMixture": dict.fromkeys(
        [*STARTS, "check_estimator_sparse_array", "check_estimator_sparse_matrix"], FRACTIONS
    ),
    "StudentTMixture": {},
    "CategoricalMixture": {"check_sample_weight_equivalence_on_dense_data": FRACTIONS, **SYMBOLS},
    "LatentClass": SYMBOLS,
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
    "GaussianProcess": {},
    "GaussianProcessClassifier": {},
    "KernelDensity": {},
    "KernelPCA": {},
    "KernelRidge": {},
    "LocalLinear": {},
    "NadarayaWatson": {},
    "RelevanceVectorClassifier": {},
    "RelevanceVectorRegressor": {},
    "SupportVectorClassifier": {},
    "SupportVectorRegressor": {},
    "FactorAnalysis": {},
    "ProbabilisticPCA": {},
    "RegressionMixture": {},
    "MixtureOfExperts": DRAWN,
    "ICA": {},
    "KMeans": DRAWN,
    "LatentFeatures": {},
    "PoissonFactorisation": {},
    "RBM": {},
    "VAE": {},
    "AdversarialAutoencoder": {},
    "EnergyModel": {},
    "Diffusion": {},
    "Flow": GIVEN,
    "GAN": NO_DENSITY,
    "InfoGAN": NO_DENSITY,
}
SEQUENCES = {
    "ARIMA",
    "DynamicFactor",
    "LinearStateSpace",
    "StructuralSeries",
    "CRF",
    "ChainCRF",
    "ContextFreeGrammar",
    "FeatureCRF",
    "GridCRF",
    "HDP",
    "HMM",
    "HiddenSemiMarkov",
    "HiddenStateCRF",
    "HiddenStateGridCRF",
    "HierarchicalLDA",
    "InfiniteHMM",
    "FactorialHMM",
    "CoupledHMM",
    "MEMM",
    "MarkovChainMixture",
    "NeuralCRF",
    "NonlinearStateSpace",
    "ParticleFilter",
    "SegmentCRF",
    "SequenceMixture",
    "StructuredSVM",
    "SwitchingStateSpace",
}
"""Estimators whose rows are sequences, images or documents, which the checks cannot make."""
DOCUMENTS = {
    "AuthorTopics",
    "BigramTopics",
    "CorrelatedTopics",
    "DynamicTopics",
    "HMMLDA",
    "LSI",
    "LabelledLDA",
    "PLSI",
    "SupervisedLDA",
    "TiedTopics",
    "AilmentTopics",
    "UnigramMixture",
    "LDA",
}
"""Estimators whose rows are documents: counts are whole numbers, and the checks make fractions."""
BITS = {
    "Autoregressive", "ConditionalRBM", "ConditionalVAE", "ConvolutionalRBM", "DBM", "DBN", "SemiSupervisedVAE",
    "SequenceVAE", "SigmoidBeliefNetwork",
}  # fmt: skip
"""Estimators of bits, pictures or sequences, or whose rows are given the y that they come with."""
NETWORKS = {"SumProductNetwork"}
"""Estimators with the verbs of networks, `predict(rows, target)` and `query`, which the checks cannot call."""
SETTINGS = {
    "DirichletProcessMixture": {"max_iter": 5},
    "BernoulliMixture": {"binarize": 0.5},
    "LatentFeatures": {"max_iter": 5, "n_init": 1},
    "PoissonFactorisation": {"max_iter": 3},
    "RegressionMixture": {"max_iter": 10},
    "ICA": {"max_iter": 20},
    "LogisticRegression": {"l2": 0.01},
    "PoissonRegression": {"l2": 0.01},
    "SoftmaxRegression": {"l2": 0.01},
    "GaussianProcessClassifier": {"method": "laplace", "max_iter": 3},
    "GLM": {"family": "gamma", "link": "log", "l2": 0.01},
    "RBM": {"visible": "gaussian", "epochs": 2},
    "VAE": {"latent": 1, "hidden": 4, "likelihood": "gaussian", "epochs": 2},
    "AdversarialAutoencoder": {"latent": 2, "hidden": 4, "epochs": 2},
    "EnergyModel": {"hidden": 4, "layers": 1, "objective": "score-matching", "epochs": 2},
    "Diffusion": {"steps": 4, "hidden": 4, "epochs": 2},
    "Flow": {"bend": "affine", "layers": 1, "hidden": 4, "epochs": 2},
    "GAN": {"latent": 2, "hidden": 4, "epochs": 2},
    "InfoGAN": {"latent": 2, "hidden": 4, "epochs": 2},
}


DOORS = (mk, mk.series, mk.crf, mk.topics, mk.mixtures, mk.classifiers, mk.regression, mk.deep, mk.gp)
ESTIMATORS = {
    n: found
    for door in DOORS
    for n in dir(door)
    if inspect.isclass(found := getattr(door, n)) and issubclass(found, Estimator)
}


def test_every_estimator_is_in_the_list():
    assert set(ESTIMATORS) == set(ON_PURPOSE) | SEQUENCES | DOCUMENTS | NETWORKS | BITS


SLOW = {
    "StudentTMixture": "GaussianMixture", "Mixture": "GaussianMixture", "CategoricalMixture": "GaussianMixture",
    "LatentClass": "GaussianMixture", "BernoulliMixture": "GaussianMixture", "PoissonMixture": "GaussianMixture",
    "KernelRidge": "NadarayaWatson", "LocalLinear": "NadarayaWatson",
    "RelevanceVectorClassifier": "RelevanceVectorRegressor",
    "MixtureOfExperts": "RegressionMixture", "VAE": "itself, in `make test-all`", "AdversarialAutoencoder": "VAE",
    "EnergyModel": "VAE", "RBM": "VAE", "Diffusion": "VAE", "Flow": "VAE", "GAN": "VAE", "InfoGAN": "VAE",
}  # fmt: skip
"""Estimators whose checks take long, and those with the same code around the fit that are always checked."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in ON_PURPOSE]
)
def test_the_checks_fail_only_where_the_list_says_so(name):
    checked(ESTIMATORS[name](**SETTINGS.get(name, {})), ON_PURPOSE[name])


def test_other_settings_fail_only_where_said():
    order = {
        "check_sample_weight_equivalence_on_dense_data": "the random order depends on the number of rows"
    }
    checked(mk.regression.LinearRegression(solver="sgd", max_iter=20, random_state=0), order)
    checked(mk.classifiers.BayesianNetworkClassifier(missing="drop"), DISCRETE)
    checked(mk.classifiers.TreeAugmentedNaiveBayes(missing="drop"), DISCRETE)
    checked(mk.classifiers.LabelPropagation(graph="knn", unreachable="uniform", clamping=2.0), {})


def checked(model, on_purpose):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, expected_failed_checks=on_purpose, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(on_purpose)
