"""Monte Carlo by hand: worked numbers of the inverse transform, rejection and importance sampling."""

import numpy as np
import pytest

import markovia as mk
from markovia.monte_carlo import importance_estimate, inverse_transform, rejection_sample


def normal(scale=1.0):
    return (
        lambda rng, n: scale * rng.standard_normal(n),
        lambda x: -(x**2) / (2 * scale**2) - np.log(scale * np.sqrt(2 * np.pi)),
    )


def cauchy():
    return lambda rng, n: rng.standard_cauchy(n), lambda x: -np.log(np.pi * (1 + x**2))


def test_the_median_of_an_exponential_comes_from_one_half():
    quantile = lambda u: -np.log1p(-u) / 2.0  # noqa: E731
    assert quantile(np.array([0.5]))[0] == pytest.approx(0.346574, abs=1e-6)
    draws = inverse_transform(quantile, 40_000, seed=0)
    assert abs(np.mean(draws < 0.346574) - 0.5) < 4 * 0.5 / 200
    assert abs(draws.mean() - 0.5) < 4 * 0.5 / 200


def test_a_cumulative_function_without_an_inverse_is_inverted_by_bisection():
    rng_draws = inverse_transform(lambda u: -np.log1p(-u) / 2.0, 500, seed=4)
    found = inverse_transform(lambda x: 1.0 - np.exp(-2.0 * x), 500, seed=4, bracket=(0.0, 50.0))
    assert np.allclose(found, rng_draws, atol=1e-9)
    with pytest.raises(mk.errors.InvalidArgument, match="not from 0 to 1"):
        inverse_transform(lambda x: 1.0 - np.exp(-2.0 * x), 5, bracket=(0.0, 1.0))


def test_outcomes_are_drawn_by_their_probabilities():
    p = np.array([0.1, 0.0, 0.6, 0.3])
    counts = np.bincount(inverse_transform(p, 20_000, seed=1), minlength=4)
    assert counts[1] == 0
    expected = 20_000 * p[p > 0]
    assert ((counts[p > 0] - expected) ** 2 / expected).sum() < 13.8  # chi-square, 2 degrees, 0.1%
    with pytest.raises(mk.errors.InvalidArgument, match="sum to one"):
        inverse_transform([0.5, 0.6], 3)


def test_a_normal_under_a_cauchy_envelope_is_kept_as_often_as_computed():
    k = 2 * np.pi / np.sqrt(np.e)
    assert k == pytest.approx(3.810945, abs=1e-6)
    assert np.sqrt(2 * np.pi) / k == pytest.approx(0.657745, abs=1e-6)
    found = rejection_sample(lambda x: -(x**2) / 2, *cauchy(), np.log(k), 20_000, seed=1)
    assert abs(found.acceptance - 0.657745) < 4 * np.sqrt(0.6577 * 0.3423 / found.tries)
    assert found.log_mass == pytest.approx(np.log(np.sqrt(2 * np.pi)), abs=0.02)
    assert abs(found.draws.mean()) < 4 / np.sqrt(20_000)
    assert abs((found.draws**2).mean() - 1.0) < 4 * np.sqrt(2 / 20_000)


def test_an_envelope_that_is_too_low_is_noticed_with_the_factor_it_needs():
    with pytest.raises(mk.errors.InvalidArgument, match="log_k must be at least"):
        rejection_sample(lambda x: -(x**2) / 2, *cauchy(), np.log(3.0), 1_000, seed=0)


@pytest.mark.parametrize("dimension", [1, 50, 200])
def test_acceptance_falls_exponentially_with_the_dimension(dimension):
    scale = 1.01
    found = rejection_sample(
        lambda x: -(x**2).sum(axis=1) / 2 - dimension * np.log(np.sqrt(2 * np.pi)),
        lambda rng, n: scale * rng.standard_normal((n, dimension)),
        lambda x: -(x**2).sum(axis=1) / (2 * scale**2) - dimension * np.log(scale * np.sqrt(2 * np.pi)),
        dimension * np.log(scale),
        1_000,
        seed=0,
    )
    expected = scale**-dimension
    assert abs(found.acceptance - expected) < 4 * np.sqrt(expected / found.tries)
    assert pytest.approx(1 / 20959, rel=1e-4) == 1.01**-1000


def test_rejection_gives_up_with_advice():
    with pytest.raises(mk.errors.InvalidArgument, match="importance_estimate"):
        rejection_sample(lambda x: -(x**2) / 2, *cauchy(), 20.0, 1_000, seed=0, max_tries=10_000)


def test_the_second_moment_of_the_weights_is_as_computed():
    assert 4 / np.sqrt(7) == pytest.approx(1.511858, abs=1e-6)
    found = importance_estimate(lambda x: x**2, normal()[1], *normal(2.0), 200_000, seed=0)
    assert 200_000 / found.effective == pytest.approx(1.511858, rel=0.01)
    assert found.pareto_k < 0.5
    assert abs(found.value - 1.0) < 4 * found.error


@pytest.mark.parametrize("normalised", [True, False])
def test_estimates_are_calibrated(normalised):
    found = [
        importance_estimate(
            lambda x: np.cos(x), normal()[1], *normal(1.5), 2_000, seed=s, normalised=normalised
        )
        for s in range(80)
    ]
    zs = np.array([(e.value - np.exp(-0.5)) / e.error for e in found])
    assert abs(zs.mean()) < 4 / np.sqrt(80)
    assert 0.75 < zs.std() < 1.3


def test_the_normalised_estimate_needs_no_normaliser_and_finds_it():
    found = importance_estimate(lambda x: x**2, lambda x: -(x**2) / 2, *normal(2.0), 50_000, seed=3)
    assert abs(found.value - 1.0) < 4 * found.error
    assert abs(found.log_mass - 0.5 * np.log(2 * np.pi)) < 4 * found.log_mass_error
    wrong = importance_estimate(
        lambda x: x**2, lambda x: -(x**2) / 2, *normal(2.0), 50_000, seed=3, normalised=False
    )
    assert wrong.value == pytest.approx(np.sqrt(2 * np.pi), rel=0.05)


def test_the_best_proposal_has_no_variance():
    p = np.array([0.1, 0.2, 0.3, 0.4])
    f = np.array([5.0, 1.0, 2.0, 0.5])
    q = f * p / (f * p).sum()
    found = importance_estimate(
        lambda x: f[x],
        lambda x: np.log(p[x]),
        lambda rng, n: rng.choice(4, size=n, p=q),
        lambda x: np.log(q[x]),
        50,
        seed=0,
        normalised=False,
    )
    assert found.value == pytest.approx((f * p).sum())
    assert found.error < 1e-12


def test_a_proposal_with_light_tails_is_reported():
    bad = importance_estimate(lambda x: x**2, normal()[1], *normal(0.4), 20_000, seed=0)
    good = importance_estimate(lambda x: x**2, normal()[1], *cauchy(), 20_000, seed=0)
    assert bad.pareto_k > 0.7 > 0.5 > good.pareto_k
    assert good.effective > 20 * bad.effective
    with pytest.raises(mk.errors.InvalidArgument, match="misses the target"):
        importance_estimate(lambda x: x, lambda x: np.full(len(x), -np.inf), *normal(), 10)


def test_forward_sampling_of_three_variables_follows_their_order():
    """Example 79: x3 has parents x1 and x2, so it is drawn last and given both."""
    bn = mk.BayesianNetwork()
    bn.add("x1", states=[0, 1], p=[0.3, 0.7])
    bn.add("x2", states=[0, 1], p=[0.6, 0.4])
    bn.add("x3", states=[0, 1], parents=["x1", "x2"], p=[[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    rows = bn.sample(2_000, engine="forward", seed=0)
    assert (rows["x3"] == (rows["x1"] ^ rows["x2"])).all()
    assert abs((rows["x3"] == 1).mean() - (0.3 * 0.4 + 0.7 * 0.6)) < 4 * 0.5 / np.sqrt(2_000)
