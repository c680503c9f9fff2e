"""A column without a single cell teaches nothing: it is refused by name, not given a mean."""

import numpy as np
import pytest

import markovia as mk

ROWS = np.random.default_rng(2).normal([3.0, -1.0, 7.0], [0.5, 2.0, 1.3], (30, 3))
ROWS[:, 1] = np.nan


@pytest.mark.parametrize(
    "mixture",
    [
        mk.GaussianMixture(2, random_state=0),
        mk.GaussianMixture(2, covariance_type="diag", random_state=0),
        mk.Mixture({"x0": "gaussian", "x1": "gaussian", "x2": "gaussian"}, n_components=2, random_state=0),
        mk.mixtures.FactorAnalysis(1),
    ],
    ids=["gaussian", "diagonal", "columns", "factors"],
)
def test_a_mixture_refuses_a_column_without_cells(mixture):
    with pytest.raises(mk.errors.InvalidArgument, match="the column 'x1'"):
        mixture.fit(ROWS)


def test_naive_bayes_leaves_a_column_without_cells_unlearned():
    classes = np.arange(30) % 2
    whole = mk.classifiers.GaussianNaiveBayes().fit(ROWS, classes)
    without = mk.classifiers.GaussianNaiveBayes().fit(ROWS[:, [0, 2]], classes)
    assert np.isnan(whole.theta_[:, 1]).all()
    assert np.isnan(whole.var_[:, 1]).all()
    np.testing.assert_array_equal(whole.theta_[:, [0, 2]], without.theta_)
    new = np.array([[3.1, 5.0, 6.0], [2.8, np.nan, 7.5]])
    np.testing.assert_allclose(whole.predict_proba(new), without.predict_proba(new[:, [0, 2]]))
    assert whole.log_likelihood_ == without.log_likelihood_


def test_a_later_batch_may_bring_the_column():
    classes = np.arange(30) % 2
    later = ROWS.copy()
    later[:, 1] = np.linspace(-2.0, 4.0, 30)
    made = (
        mk.classifiers.GaussianNaiveBayes()
        .partial_fit(ROWS, classes, classes=[0, 1])
        .partial_fit(later, classes)
    )
    np.testing.assert_allclose(made.theta_[:, 1], [later[::2, 1].mean(), later[1::2, 1].mean()])
