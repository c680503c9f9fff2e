"""Limits of the families, Gaussians as graphical models, sums, and parameters that make no distribution."""

import numpy as np
import pytest
from scipy import stats

import markovia as mk
import markovia.exponential as ef
from markovia.errors import InvalidArgument

# -- probabilities of zero and one: limits of the families ---------------------------------------------------------


def test_a_certain_coin_has_everything_but_natural_parameters():
    sure = ef.Bernoulli(1.0)
    np.testing.assert_array_equal(sure.prob([0, 1, 2]), [0.0, 1.0, 0.0])
    assert (sure.mean, sure.variance, sure.entropy(), sure.moments().tolist()) == (1.0, 0.0, 0.0, [1.0])
    assert sure.sample(5, seed=0).tolist() == [1] * 5
    assert sure.kl(ef.Bernoulli(0.25)) == pytest.approx(np.log(4))
    assert ef.Bernoulli(0.25).kl(sure) == np.inf
    assert ef.Bernoulli().with_natural([800.0]).log_prob(0) == -800.0


def test_categories_of_probability_zero_are_counted_with_the_others():
    die = ef.Categorical([0.5, 0.0, 0.5])
    np.testing.assert_allclose(die.prob([0, 1, 2, 3]), [0.5, 0.0, 0.5, 0.0])
    assert set(die.sample(200, seed=0).tolist()) == {0, 2}
    assert die.entropy() == pytest.approx(np.log(2))
    assert die.kl(ef.Categorical([0.25, 0.5, 0.25])) == pytest.approx(np.log(2))
    assert ef.Categorical([0.25, 0.5, 0.25]).kl(die) == np.inf
    last = ef.Multinomial(3, [0.25, 0.75, 0.0])
    rows = np.array([[1, 2, 0], [1, 1, 1]])
    np.testing.assert_allclose(last.prob(rows), stats.multinomial(3, [0.25, 0.75, 0.0]).pmf(rows), atol=1e-15)
    assert ef.Multinomial(3, [0.0, 1.0]).prob([1, 2]) == 0.0


def test_fits_reach_the_limits_of_the_family():
    assert ef.Bernoulli.fit([1, 1, 1]).probs == 1.0
    assert ef.Categorical.fit([0, 2, 2, 1], n_categories=4).probs.tolist() == [0.25, 0.25, 0.5, 0.0]
    np.testing.assert_allclose(ef.Categorical.fit([0, 2, 2]).probs, [1 / 3, 0, 2 / 3])
    np.testing.assert_allclose(ef.Categorical.fit([0, 1, 1], n_categories=3).probs, [1 / 3, 2 / 3, 0])
    np.testing.assert_allclose(ef.Multinomial.fit([[3, 0, 1]]).probs, [0.75, 0.0, 0.25])


def test_the_simplex_estimate_beats_every_other_point():
    counts = np.array([3.0, 1.0, 6.0])
    best = ef.Multinomial.fit([counts]).probs
    np.testing.assert_allclose(best, counts / counts.sum())
    others = np.random.default_rng(0).dirichlet([1, 1, 1], 500)
    assert np.all(counts @ np.log(others.T) <= counts @ np.log(best) + 1e-12)


# -- values outside the support ------------------------------------------------------------------------------------


def test_a_category_that_is_none_has_probability_zero():
    three = ef.Categorical([0.1, 0.2, 0.7])
    np.testing.assert_allclose(
        three.prob([-1, 0, 1, 1.7, 2, 3, np.nan, np.inf]), [0, 0.1, 0.2, 0, 0.7, 0, 0, 0]
    )
    for value in (-1, 1.7, 3):
        assert three.prob(value) == 0.0
        assert three.log_prob(value) == -np.inf
    assert three.prob(2) == pytest.approx(0.7)


def test_counts_that_cannot_be_have_probability_zero():
    pair = ef.Multinomial(3, [0.5, 0.5])
    rows = [[2, 1], [1.5, 1.5], [-1, 4], [4, 0], [np.nan, 3], [np.inf, -np.inf]]
    np.testing.assert_allclose(pair.prob(rows), [0.375, 0, 0, 0, 0, 0])
    for wrong in ([1, 1, 1], [3], 3, [[1], [2]]):
        with pytest.raises(InvalidArgument, match="2 numbers along the last axis"):
            pair.log_prob(wrong)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("alpha", "point", "density"),
    [
        ([0.5, 2, 1], [0, 0, 1], 0.0),  # no limit there; zero by convention
        ([0.5, 2, 1], [0, 0.5, 0.5], np.inf),
        ([0.5, 2, 1], [0.5, 0, 0.5], 0.0),
        ([1, 1, 1], [0, 0, 1], 2.0),
        ([0.5, 0.5], [0, 1], np.inf),
        ([0.5, 2, 1], [-0.5, 0.5, 1], 0.0),
        ([0.5, 2, 1], [0.5, 0.5, 0.5], 0.0),
    ],
)
def test_the_dirichlet_density_on_the_boundary_is_its_limit(alpha, point, density):
    assert ef.Dirichlet(alpha).prob(point) == pytest.approx(density)
    both = ef.Dirichlet(alpha).prob([point, np.full(len(alpha), 1 / len(alpha))])
    inner = stats.dirichlet(alpha).pdf(np.full(len(alpha), 1 / len(alpha)))
    np.testing.assert_allclose(both, [density, inner])


@pytest.mark.filterwarnings("error")
def test_the_beta_density_has_its_limits_and_is_zero_outside():
    np.testing.assert_allclose(ef.Beta(0.5, 2).prob([0, 1, -0.1, 1.1, np.inf]), [np.inf, 0, 0, 0, 0])


@pytest.mark.parametrize("wrong", [[0.5], [[0.5], [0.5]], 1.0, [0.1, 0.2, 0.3, 0.4]])
def test_vectors_of_the_wrong_length_are_refused_and_not_spread_out(wrong):
    for law in (ef.Dirichlet([1, 2, 3]), ef.MultivariateGaussian(np.zeros(3), np.eye(3))):
        with pytest.raises(InvalidArgument, match="3 numbers along the last axis"):
            law.log_prob(wrong)
    with pytest.raises(InvalidArgument, match="3 numbers along the last axis"):
        ef.MultivariateGaussian(np.zeros(3), np.eye(3)).mahalanobis(wrong)


# -- Gaussians as graphical models ---------------------------------------------------------------------------------


def test_mahalanobis_distances_are_lengths_where_the_covariance_is_the_identity():
    rows = np.random.default_rng(0).normal(size=(10, 4))
    standard = ef.MultivariateGaussian(np.zeros(4), np.eye(4))
    np.testing.assert_allclose(standard.mahalanobis(rows), np.linalg.norm(rows, axis=1))
    assert standard.mahalanobis([np.inf, 0, 0, 0]) == np.inf


def test_gaussian_potentials_multiply_to_the_density():
    precision = np.array([[2.0, -0.5, 0.0], [-0.5, 1.5, 0.3], [0.0, 0.3, 1.0]])
    normal = ef.MultivariateGaussian.from_precision([0.5, -1.0, 0.0], precision, ("a", "b", "c"))
    assert normal.graph() == mk.graphs.UndirectedGraph([("a", "b"), ("b", "c")])
    assert normal.dag().edges == [("a", "b"), ("b", "c")]
    assert normal.with_natural(normal.natural()).names == ("a", "b", "c")
    rng = np.random.default_rng(2)
    gaps = []
    for _ in range(5):
        x = rng.normal(size=3)
        logs = normal.log_potentials(x)
        assert set(logs) == {("a",), ("b",), ("c",), ("a", "b"), ("b", "c")}
        gaps.append(float(normal.log_prob(x)) - sum(logs.values()))
    np.testing.assert_allclose(gaps, gaps[0])
    with pytest.raises(InvalidArgument, match="one point"):
        normal.log_potentials(rng.normal(size=(4, 3)))


def test_the_gaussian_density_of_stacked_rows_keeps_their_shape():
    normal = ef.MultivariateGaussian([1, 2], [[2, 0.5], [0.5, 1]])
    points = np.random.default_rng(0).normal(size=(4, 3, 2))
    reference = stats.multivariate_normal([1, 2], [[2, 0.5], [0.5, 1]]).logpdf(points)
    np.testing.assert_allclose(normal.log_prob(points), reference)


def test_a_fitted_gaussian_names_its_coordinates():
    rows = np.random.default_rng(0).normal(size=(200, 2))
    fitted = ef.MultivariateGaussian.fit(rows, names=["height", "weight"])
    assert fitted.names == ("height", "weight")
    np.testing.assert_allclose(fitted.covariance_matrix, np.cov(rows.T, bias=True))


def test_sums_of_independent_gaussians_add_variances():
    total = ef.Gaussian(1.0, 9.0) + ef.Gaussian(-2.0, 16.0)
    assert (total.mean, total.variance) == (-1.0, 25.0)
    draws = ef.Gaussian(1.0, 9.0).sample(50_000, seed=1) + ef.Gaussian(-2.0, 16.0).sample(50_000, seed=2)
    assert abs(draws.std() - 5.0) < 0.1


# -- what makes no distribution ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: ef.Categorical.fit([0.9, 1.9]),
        lambda: ef.Categorical.fit([-1, 0]),
        lambda: ef.Categorical.fit([0, 3], n_categories=2),
        lambda: ef.Categorical.fit([0, 1], n_categories=2.5),
        lambda: ef.Categorical.fit(["a", "b"]),
        lambda: ef.Categorical.fit([]),
        lambda: ef.Bernoulli.fit([0, 2]),
        lambda: ef.Bernoulli.fit([0.5, 0.5]),
        lambda: ef.Gaussian.fit([]),
        lambda: ef.Multinomial.fit([[1.5, 1.5]]),
        lambda: ef.Multinomial.fit([[-1, 3]]),
        lambda: ef.Multinomial.fit([[1, 2], [1, 1]]),
        lambda: ef.MultivariateGaussian.fit([1.0, 2.0]),
        lambda: ef.MultivariateGaussian.fit([[1.0, np.nan], [2.0, 1.0]]),
        lambda: ef.MultivariateGaussian.fit([[1.0, 2.0], [2.0, 1.0], [0.0, 0.0]], names=["a"]),
        lambda: ef.Beta(np.nan, 1),
        lambda: ef.Beta(1, np.inf),
        lambda: ef.Beta(0, 1),
        lambda: ef.Beta("a", 1),
        lambda: ef.Gaussian("a", 1),
        lambda: ef.Gaussian(0, np.inf),
        lambda: ef.Gaussian(np.nan, 1),
        lambda: ef.Gaussian(0, None),
        lambda: ef.Bernoulli("0.5"),
        lambda: ef.Bernoulli(np.nan),
        lambda: ef.Bernoulli(1.2),
        lambda: ef.Categorical([0.5, 0.6]),
        lambda: ef.Categorical(["0.5", "0.5"]),
        lambda: ef.Categorical([np.nan, 1.0]),
        lambda: ef.Categorical("ab"),
        lambda: ef.Dirichlet([1, 0]),
        lambda: ef.Dirichlet([1, np.inf]),
        lambda: ef.Dirichlet(["a", 1]),
        lambda: ef.Multinomial(-1, [1.0]),
        lambda: ef.Multinomial(2.5, [1.0]),
        lambda: ef.Multinomial("2", [1.0]),
        lambda: ef.MultivariateGaussian([0, 0], [[1, 2], [2, 1]]),
        lambda: ef.MultivariateGaussian([0], [[1, 0], [0, 1]]),
        lambda: ef.MultivariateGaussian([np.nan], [[1]]),
        lambda: ef.MultivariateGaussian([0], [[np.inf]]),
        lambda: ef.MultivariateGaussian(["a"], [[1]]),
        lambda: ef.MultivariateGaussian([0, 0], np.eye(2), "ab"),
        lambda: ef.MultivariateGaussian([0, 0], np.eye(2), (1, 2)),
        lambda: ef.MultivariateGaussian.from_precision([0, 0], [[1, 1], [1, 1]]),
        lambda: ef.MultivariateGaussian.from_precision([0, 0], [1, 1]),
        lambda: ef.Gaussian().log_prob("a"),
        lambda: ef.Gaussian().sample(-1),
        lambda: ef.Gaussian().sample(2.5),
        lambda: ef.MultivariateGaussian([0], [[1]]).sample(-1),
    ],
)
def test_parameters_and_data_that_make_no_distribution_are_refused(make):
    with pytest.raises(InvalidArgument):
        make()


@pytest.mark.parametrize("spread", [1e-3, 1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize(("family", "middle"), [("Gamma", 2.0), ("Gamma", 5e3), ("Beta", 0.3), ("Beta", 0.9)])
def test_fits_to_nearly_constant_data_keep_the_mean_and_the_variance(family, middle, spread):
    rng = np.random.default_rng(0)
    data = middle * (1.0 + spread * np.clip(rng.normal(size=200), -1, 0.9))
    found = getattr(mk.exponential, family).fit(data)
    assert found.mean == pytest.approx(data.mean(), rel=1e-6)
    assert found.variance == pytest.approx(data.var(), rel=20 * spread + 1e-6)
    weights = rng.integers(0, 3, 200)
    twice = getattr(mk.exponential, family).fit(data, weights)
    assert twice.variance == pytest.approx(np.repeat(data, weights).var(), rel=20 * spread + 1e-6)


@pytest.mark.parametrize(("family", "value"), [("Gamma", 2.0), ("Beta", 0.3)])
def test_equal_values_have_no_fit(family, value):
    with pytest.raises(mk.errors.InvalidArgument, match="all values are equal"):
        getattr(mk.exponential, family).fit(np.full(50, value))
