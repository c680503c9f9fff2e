"""Black-box variational inference: the two gradients, control variates, Rao-Blackwellisation, the bound's identities."""

import math

import numpy as np
import pytest

import markovia as mk

VI = mk.variational


def square(z):
    return (z**2).sum()


def error(values):
    return float(values.std() / math.sqrt(len(values)))


def test_both_gradients_are_unbiased_and_their_variances_are_thirty_and_four():
    score = VI.score_gradients(square, [1.0], [1.0], 200_000, seed=1)[:, 0]
    smooth = VI.reparameterised_gradients(square, [1.0], [1.0], 20_000, seed=1, gradient=lambda z: 2 * z)[
        :, 0
    ]
    assert abs(score.mean() - 2.0) < 4.5 * error(score) < 0.06
    assert abs(smooth.mean() - 2.0) < 4.5 * error(smooth) < 0.07
    assert score.var() == pytest.approx(30.0, rel=0.06)
    assert smooth.var() == pytest.approx(4.0, rel=0.06)


def test_a_control_variate_lowers_the_variance_and_keeps_the_mean():
    plain = VI.score_gradients(square, [1.0], [1.0], 50_000, seed=2)[:, 0]
    better = VI.score_gradients(square, [1.0], [1.0], 50_000, seed=2, control_variate=True)[:, 0]
    assert abs(better.mean() - 2.0) < 4.5 * error(better)
    # the best multiple is E f s^2 = 4, which leaves Var((z^2 - 4) s) = E (z^2 - 4)^2 s^2 - 4 = 14
    assert better.var() == pytest.approx(14.0, rel=0.1)
    assert plain.var() > 25


def test_the_expected_score_is_zero():
    scores = VI.score_gradients(lambda z: 1.0, [0.3, -2.0], [0.5, 2.0], 40_000, seed=0)
    assert np.all(np.abs(scores.mean(axis=0)) < 4.5 * scores.std(axis=0) / 200)


@pytest.mark.parametrize("gradient", ["score", "reparameterised"])
def test_the_fit_finds_independent_normal_distributions(gradient):
    def target(z):
        return -0.5 * (z[0] - 2.0) ** 2 / 0.25 - 0.5 * (z[1] + 1.0) ** 2

    fit = VI.black_box_vi(target, [0.0, 0.0], gradient=gradient, steps=1500, seed=3)
    assert np.allclose(fit.mean, [2.0, -1.0], atol=0.12)
    assert np.allclose(fit.sd, [0.5, 1.0], rtol=0.12)
    assert fit.elbo[-100:].mean() == pytest.approx(math.log(2 * math.pi * 0.5), abs=0.15)
    assert fit.sample(5000, seed=0).mean(axis=0) == pytest.approx(fit.mean, abs=0.06)


def test_rao_blackwellised_scores_vary_less_and_reach_the_same_fit():
    terms = [(lambda z, k=k: -0.5 * (z[0] - k) ** 2, [k]) for k in range(6)]

    def whole(z):
        return sum(term(z[at]) for term, at in terms)

    start = np.zeros(6)
    split = VI.black_box_vi(terms, start, steps=800, samples=5, control_variate=False, seed=1)
    joined = VI.black_box_vi(whole, start, steps=800, samples=5, control_variate=False, seed=1)
    exact = np.arange(6.0)
    assert np.abs(split.mean - exact).max() < 0.25
    assert np.abs(split.mean - exact).mean() < 0.7 * np.abs(joined.mean - exact).mean()
    with pytest.raises(mk.errors.InvalidArgument, match="gradient='score'"):
        VI.black_box_vi(terms, start, gradient="reparameterised")


def normal(x, mean, variance):
    return -0.5 * (x - mean) ** 2 / variance - 0.5 * math.log(2 * math.pi * variance)


def joint(z):
    """p(z) = N(0, 1), x | z ~ N(2 z, 1), at x = 1; the posterior is N(0.4, 0.2)."""
    return normal(z[0], 0.0, 1.0) + normal(1.0, 2.0 * z[0], 1.0)


def test_the_evidence_is_the_bound_plus_the_divergence():
    bound = VI.gaussian_elbo(joint, [0.1], [[0.5]])
    gap = VI.gaussian_kl([0.1], [[0.5]], [0.4], [[0.2]])
    assert bound == pytest.approx(-2.340512, abs=1e-6)
    assert gap == pytest.approx(0.516855, abs=1e-6)
    assert bound + gap == pytest.approx(-1.823657, abs=1e-6)
    reconstruction = VI.gaussian_elbo(lambda z: normal(1.0, 2.0 * z[0], 1.0), [0.1], [[0.5]])
    entropy = 0.5 * math.log(2 * math.pi * math.e * 0.5)
    prior = VI.gaussian_kl([0.1], [[0.5]], [0.0], [[1.0]])
    assert reconstruction - entropy - prior == pytest.approx(bound)  # E log p(x | z) - KL(q || p(z))


def test_the_largest_bound_is_the_log_partition_function():
    """Gibbs' variational principle, on an unnormalised normal density of two numbers."""
    precision = np.array([[2.0, 0.8], [0.8, 1.0]])
    centre = np.array([0.5, -1.0])

    def energy(x):
        return -0.5 * (x - centre) @ precision @ (x - centre)

    log_z = math.log(2 * math.pi) - 0.5 * math.log(np.linalg.det(precision))
    covariance = np.linalg.inv(precision)
    assert VI.gaussian_elbo(energy, centre, covariance) == pytest.approx(log_z)
    rng = np.random.default_rng(0)
    for _ in range(20):
        root = rng.normal(size=(2, 2))
        mean, spread = rng.normal(size=2), root @ root.T + 0.1 * np.eye(2)
        bound = VI.gaussian_elbo(energy, mean, spread)
        assert bound + VI.gaussian_kl(mean, spread, centre, covariance) == pytest.approx(log_z)
        assert bound < log_z
    # the best of independent ones has the diagonal of the precision
    independent = np.diag(1.0 / np.diag(precision))
    best = VI.gaussian_elbo(energy, centre, independent)
    for scale in (0.8, 1.25):
        assert VI.gaussian_elbo(energy, centre, scale * independent) < best
    assert VI.gaussian_elbo(lambda x: 0.0, centre, covariance) == pytest.approx(  # entropy
        0.5 * math.log((2 * math.pi * math.e) ** 2 * np.linalg.det(covariance))
    )


def test_bad_input_is_told():
    with pytest.raises(mk.errors.InvalidArgument, match="sd="):
        VI.score_gradients(square, [1.0], [0.0], 10)
    with pytest.raises(mk.errors.InvalidArgument, match="too many"):
        VI.gaussian_elbo(square, np.zeros(6), np.eye(6))
    with pytest.raises(mk.errors.InvalidArgument, match="vector"):
        VI.black_box_vi(square, 0.0)
