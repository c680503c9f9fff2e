import numpy as np
import pytest
from scipy import stats

import markovia as mk
import markovia.distributions as dist


@pytest.mark.parametrize(
    ("ours", "reference", "points"),
    [
        (dist.Normal(1.5, 2.0), stats.norm(1.5, 2.0), [-1.0, 0.0, 3.7]),
        (dist.Uniform(-1.0, 3.0), stats.uniform(-1.0, 4.0), [-2.0, -1.0, 0.5, 3.0, 3.1]),
        (dist.Beta(2.0, 5.0), stats.beta(2.0, 5.0), [0.1, 0.5, 0.9]),
    ],
)
def test_densities_agree_with_scipy(ours, reference, points):
    np.testing.assert_allclose(ours.log_prob(points), reference.logpdf(points), atol=1e-12)
    assert ours.mean == pytest.approx(reference.mean())
    assert ours.variance == pytest.approx(reference.var())
    draws = ours.sample(20_000, seed=0)
    assert stats.kstest(draws, reference.cdf).pvalue > 1e-3


def test_discrete_probabilities_agree_with_scipy():
    np.testing.assert_allclose(dist.Bernoulli(0.3).prob([0, 1, 2]), [0.7, 0.3, 0.0])
    multinomial = dist.Multinomial(5, [0.2, 0.3, 0.5])
    rows = np.array([[1, 2, 2], [5, 0, 0], [1, 1, 1]])
    np.testing.assert_allclose(
        multinomial.prob(rows), stats.multinomial(5, [0.2, 0.3, 0.5]).pmf(rows), atol=1e-12
    )
    np.testing.assert_allclose(dist.Categorical([0.2, 0.8]).prob([0, 1, 1]), [0.2, 0.8, 0.8])


def test_the_multinomial_coefficient_alone_is_no_distribution():
    whole = dist.Multinomial(3, [0.4, 0.6])
    assert sum(float(whole.prob([k, 3 - k])) for k in range(4)) == pytest.approx(1.0)
    assert float(dist.Multinomial(3, [0.5, 0.5]).prob([2, 1])) == pytest.approx(0.375)


def test_the_simplex_estimate_beats_every_other_point():
    counts = np.array([3.0, 1.0, 6.0])
    best = dist.Multinomial.fit([counts]).probs
    np.testing.assert_allclose(best, counts / counts.sum())
    rng = np.random.default_rng(0)
    others = rng.dirichlet([1, 1, 1], 500)
    assert np.all(counts @ np.log(others.T) <= counts @ np.log(best) + 1e-12)


def test_dirichlet_density_and_conjugate_update():
    prior = dist.Dirichlet([2, 3, 4])
    assert float(prior.prob([0.2, 0.3, 0.5])) == pytest.approx(7.56)
    points = np.random.default_rng(1).dirichlet([2, 3, 4], 20)
    np.testing.assert_allclose(prior.log_prob(points), stats.dirichlet([2, 3, 4]).logpdf(points.T))
    after = prior.posterior([1, 0, 2])
    assert after.concentration.tolist() == [3, 3, 6]
    ratio = after.log_prob(points) - prior.log_prob(points) - np.log(points) @ [1, 0, 2]
    np.testing.assert_allclose(ratio, ratio[0])
    assert dist.Beta(1, 1).posterior(3, 1).mean == pytest.approx(4 / 6)


def test_gaussian_density_distance_and_graph():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 4))
    normal = dist.MultivariateNormal(rng.normal(size=4), a @ a.T + np.eye(4))
    rows = rng.normal(size=(10, 4))
    reference = stats.multivariate_normal(normal.loc, normal.covariance_matrix)
    np.testing.assert_allclose(normal.log_prob(rows), reference.logpdf(rows))
    standard = dist.MultivariateNormal(np.zeros(4), np.eye(4))
    np.testing.assert_allclose(standard.mahalanobis(rows), np.linalg.norm(rows, axis=1))
    assert float(dist.MultivariateNormal([0, 0], [[1, 0], [0, 4]]).mahalanobis([1, 2])) ** 2 == pytest.approx(
        2
    )


def test_gaussian_potentials_multiply_to_the_density():
    precision = np.array([[2.0, -0.5, 0.0], [-0.5, 1.5, 0.3], [0.0, 0.3, 1.0]])
    normal = dist.MultivariateNormal.from_precision([0.5, -1.0, 0.0], precision, ("a", "b", "c"))
    assert normal.graph() == mk.UndirectedGraph([("a", "b"), ("b", "c")])
    assert normal.dag().edges == [("a", "b"), ("b", "c")]
    rng = np.random.default_rng(2)
    gaps = []
    for _ in range(5):
        x = rng.normal(size=3)
        logs = normal.log_potentials(x)
        assert set(logs) == {("a",), ("b",), ("c",), ("a", "b"), ("b", "c")}
        gaps.append(float(normal.log_prob(x)) - sum(logs.values()))
    np.testing.assert_allclose(gaps, gaps[0])


def test_sums_of_independent_gaussians_add_variances():
    total = dist.Normal(1.0, 3.0) + dist.Normal(-2.0, 4.0)
    assert (total.loc, total.scale) == (-1.0, 5.0)
    draws = dist.Normal(1.0, 3.0).sample(50_000, seed=1) + dist.Normal(-2.0, 4.0).sample(50_000, seed=2)
    assert abs(draws.std() - 5.0) < 0.1


def test_fits_are_maximum_likelihood():
    rng = np.random.default_rng(0)
    x = rng.normal(2.0, 3.0, 500)
    fitted = dist.Normal.fit(x)
    assert (fitted.loc, fitted.scale) == pytest.approx((x.mean(), x.std()))
    for shift in (0.9, 1.1):
        assert fitted.log_prob(x).sum() > dist.Normal(fitted.loc, fitted.scale * shift).log_prob(x).sum()
    assert dist.Bernoulli.fit([0, 1, 1, 1]).probs == pytest.approx(0.75)
    assert dist.Categorical.fit([0, 2, 2, 1], 4).probs.tolist() == [0.25, 0.25, 0.5, 0.0]
    rows = rng.normal(size=(200, 3))
    np.testing.assert_allclose(dist.MultivariateNormal.fit(rows).covariance_matrix, np.cov(rows.T, bias=True))
    assert dist.Uniform.fit(x).high == x.max()


@pytest.mark.parametrize(
    "make",
    [
        lambda: dist.Normal(0, 0),
        lambda: dist.Bernoulli(1.2),
        lambda: dist.Categorical([0.5, 0.6]),
        lambda: dist.Dirichlet([1, 0]),
        lambda: dist.Beta(0, 1),
        lambda: dist.Uniform(1, 1),
        lambda: dist.Multinomial(-1, [1.0]),
        lambda: dist.MultivariateNormal([0, 0], [[1, 2], [2, 1]]),
        lambda: dist.MultivariateNormal([0], [[1, 0], [0, 1]]),
        lambda: dist.Normal.fit([]),
        lambda: dist.Multinomial.fit([[1, 2], [1, 1]]),
    ],
)
def test_impossible_parameters_are_refused(make):
    with pytest.raises(mk.InvalidArgument):
        make()
