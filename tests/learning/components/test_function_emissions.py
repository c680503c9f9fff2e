"""Emissions that a function makes: where their parameters may lie is read off its distribution, without values."""

import numpy as np
from scipy import stats

import markovia.distributions as dist
from markovia.learning.components.functions import FunctionEmission


def test_parameters_of_a_function_s_distribution_need_not_hold_made_up_numbers():
    probs = np.array([[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]])
    found = FunctionEmission(lambda probs: dist.Categorical(probs), {"probs": probs})
    rows = np.array([[2.0], [0.0], [1.0]])
    np.testing.assert_allclose(found.log_densities(rows), np.log(probs[:, [2, 0, 1]].T), rtol=1e-12)
    assert found.n_free == 4  # two simplexes of three


def test_a_factor_of_a_covariance_stays_one():
    root = np.array([[[1.0, 0.0], [0.5, 2.0]], [[0.3, 0.0], [-1.0, 0.7]]])
    made = FunctionEmission(
        lambda scale_tril: dist.MultivariateNormal(np.zeros(2), scale_tril=scale_tril), {"scale_tril": root}
    )
    assert made.n_free == 6
    rows = np.array([[0.4, -1.0], [2.0, 0.1]])
    exact = [stats.multivariate_normal.logpdf(rows, np.zeros(2), L @ L.T) for L in root]
    np.testing.assert_allclose(made.log_densities(rows), np.transpose(exact), rtol=1e-10)
