"""Functions at inputs, as posteriors: normal ones, and mixtures of them, against integrals by sums and draws."""

import numpy as np
import pytest
from scipy.stats import norm

import markovia as mk
from markovia.errors import InvalidArgument, Unanswered
from markovia.inference.gaussian.exact_function import ExactFunction
from markovia.inference.gaussian.function_values import (
    FunctionMoments,
    FunctionPosterior,
    FunctionValues,
    as_rows,
    root,
)
from markovia.inference.result import Info

f = ExactFunction([[0.0], [0.5], [2.0]], [1.0, 0.2, -0.7], mk.covariances.RBF(1.0), 0.1)


class Mixture(FunctionPosterior):
    """Two processes without data, of different means and variances."""

    info = Info("mixture")
    weights = np.array([0.25, 0.75])

    def moments(self, X, *, joint=False):
        means = np.stack([np.zeros(len(X)), 1.0 + X[:, 0]])
        eye = np.eye(len(X)) if joint else np.ones(len(X))
        return FunctionMoments(means, np.stack([eye, 4.0 * eye]))


def test_one_process_answers_as_a_normal_distribution():
    values = f.at([1.0, 3.0])
    law = norm(values.mean(), values.sd())
    np.testing.assert_allclose(values.interval(0.9), law.interval(0.9))
    np.testing.assert_allclose(values.quantile(0.3), law.ppf(0.3))
    assert f.at(1.0).probability({"f": mk.Interval(-1.0, 0.0)}) == pytest.approx(
        norm.cdf(0.0, f.at(1.0).mean(), f.at(1.0).sd()) - norm.cdf(-1.0, f.at(1.0).mean(), f.at(1.0).sd())
    )


def test_shapes_follow_the_inputs():
    assert np.shape(f.at(1.0).mean()) == ()
    assert f.at([1.0, 2.0]).mean().shape == (2,)
    assert f.at([[1.0], [2.0], [3.0]]).sample(5, seed=0)["f"].shape == (5, 3)
    assert f.at([[1.0], [2.0]]).cov().shape == (2, 2)


def test_a_mixture_has_the_moments_quantiles_and_draws_of_one():
    values = FunctionValues(Mixture(), np.array([[0.0], [2.0]]), (2,))
    mean = 0.75 * np.array([1.0, 3.0])
    variance = 0.25 * (1.0 + mean**2) + 0.75 * (4.0 + (np.array([1.0, 3.0]) - mean) ** 2)
    np.testing.assert_allclose(values.mean(), mean)
    np.testing.assert_allclose(values.var(), variance)
    np.testing.assert_allclose(np.diag(values.cov()), variance)
    q = values.quantile(0.2)
    np.testing.assert_allclose(0.25 * norm.cdf(q) + 0.75 * norm.cdf(q, [1.0, 3.0], 2.0), 0.2, atol=1e-9)
    drawn = values.sample(20_000, seed=0)["f"]
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=4.5 * np.sqrt(variance.max() / 20_000))
    np.testing.assert_allclose(np.cov(drawn.T), values.cov(), atol=0.2)
    dense = np.log(
        0.25 * np.prod(norm.pdf([0.3, 0.1])) + 0.75 * np.prod(norm.pdf([0.3, 0.1], [1.0, 3.0], 2.0))
    )
    assert values.log_prob([0.3, 0.1]) == pytest.approx(dense)


def test_a_table_has_a_row_for_each_input():
    table = f.at([1.0, 3.0]).to_pandas(prob=0.5)
    assert table.columns.tolist() == ["x", "mean", "sd", "low", "high"]
    np.testing.assert_allclose(table["high"], table["mean"] + norm.ppf(0.75) * table["sd"])
    assert str(f.at([1.0])).splitlines()[0].split() == table.columns.tolist()


def test_wrong_inputs_are_one_sentence():
    with pytest.raises(InvalidArgument, match="not a finite number, at \\(1, 0\\)"):
        f.at([[0.0], [np.nan]])
    with pytest.raises(InvalidArgument, match="inputs of a function are numbers"):
        as_rows(["a"])
    with pytest.raises(InvalidArgument, match="shape \\(1, 1, 1\\)"):
        as_rows([[[1.0]]])
    with pytest.raises(InvalidArgument, match="the function is called 'f'"):
        f.at([1.0]).mean("g")
    with pytest.raises(Unanswered, match="not drawn whole"):
        Mixture().draws(3)
    with pytest.raises(Unanswered, match="no classes"):
        f.probabilities(np.zeros((1, 1)))


def test_a_root_of_a_singular_matrix_is_one():
    A = np.ones((3, 3))
    np.testing.assert_allclose(root(A) @ root(A).T, A, atol=1e-12)
