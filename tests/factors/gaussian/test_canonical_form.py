"""The algebra of Gaussian factors against dense formulas."""

import numpy as np
import pytest
from hypothesis import given, settings

import markovia as mk
from gaussian_references import conditioned, moments, random_network, seeds
from markovia.factors.gaussian.canonical_form import product


def random_moments(rng, n):
    half = rng.normal(size=(n, n))
    return rng.normal(size=n), half @ half.T + 0.3 * np.eye(n)


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_moments_go_into_canonical_form_and_back(seed):
    rng = np.random.default_rng(seed)
    mean, covariance = random_moments(rng, 4)
    f = mk.GaussianFactor.from_moments(list("abcd"), mean, covariance)
    np.testing.assert_allclose(f.mean(), mean, atol=1e-9)
    np.testing.assert_allclose(f.covariance(), covariance, atol=1e-9)
    assert f.log_total() == pytest.approx(0.0, abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_marginals_and_evidence_agree_with_the_textbook(seed):
    rng = np.random.default_rng(seed)
    mean, covariance = random_moments(rng, 4)
    f = mk.GaussianFactor.from_moments(list("abcd"), mean, covariance)
    kept = f.marginal(["d", "b"])
    np.testing.assert_allclose(kept.mean(), mean[[3, 1]], atol=1e-9)
    np.testing.assert_allclose(kept.covariance(), covariance[np.ix_([3, 1], [3, 1])], atol=1e-9)
    left, m, s, log_density = conditioned(list("abcd"), mean, covariance, {"c": 0.5, "a": -1.0})
    cut = f.reduce({"c": 0.5, "a": -1.0})
    assert list(cut.names) == left
    np.testing.assert_allclose(cut.mean(), m, atol=1e-9)
    np.testing.assert_allclose(cut.covariance(), s, atol=1e-9)
    assert cut.log_total() == pytest.approx(log_density, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_the_product_of_regressions_is_the_joint_density_and_division_undoes_it(seed):
    network = random_network(np.random.default_rng(seed), 5)
    factors = []
    for name in network.variables:
        r = network[name].row()
        factors.append(mk.GaussianFactor.from_regression(name, r.bias, r.weights, r.variance))
    joint = product(factors)
    names, mean, covariance = moments(network, {})
    at = [joint.names.index(n) for n in names]
    np.testing.assert_allclose(joint.mean()[at], mean, atol=1e-8)
    np.testing.assert_allclose(joint.covariance()[np.ix_(at, at)], covariance, rtol=1e-8, atol=1e-8)
    assert joint.log_total() == pytest.approx(0.0, abs=1e-8)
    assert (joint / factors[-1]).allclose(
        product(factors[:-1]) * mk.GaussianFactor(factors[-1].names, 0 * factors[-1].precision)
    )


def test_a_gaussian_as_a_pairwise_field_is_the_same_density():
    """Inventory 004 A4, A7: the density factors into nodes and pairs with Theta = Sigma^-1."""
    rng = np.random.default_rng(5)
    mean, covariance = random_moments(rng, 3)
    theta = np.linalg.inv(covariance)
    x = rng.normal(size=3)
    gap = x - mean
    pairs = sum(-theta[i, j] * gap[i] * gap[j] for i in range(3) for j in range(i))
    nodes = sum(-0.5 * theta[i, i] * gap[i] ** 2 for i in range(3))
    f = mk.GaussianFactor.from_moments(list("abc"), mean, covariance)
    value = f.log_value(dict(zip("abc", x, strict=True)))
    top = f.log_value(dict(zip("abc", mean, strict=True)))
    assert value - top == pytest.approx(pairs + nodes, abs=1e-9)


def test_natural_parameters_are_those_of_the_exponential_family():
    """Inventory 000a F3: eta = (Sigma^-1 mu, -Sigma^-1 / 2), A = mu' Sigma^-1 mu / 2 + log |Sigma| / 2."""
    rng = np.random.default_rng(6)
    mean, covariance = random_moments(rng, 3)
    f = mk.GaussianFactor.from_moments(list("abc"), mean, covariance)
    np.testing.assert_allclose(f.information, np.linalg.solve(covariance, mean), atol=1e-10)
    log_partition = 0.5 * mean @ np.linalg.solve(covariance, mean) + 0.5 * np.linalg.slogdet(covariance)[1]
    assert f.log_constant == pytest.approx(-1.5 * np.log(2 * np.pi) - log_partition, abs=1e-10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mk.GaussianFactor(["a", "a"], np.eye(2)), "named twice"),
        (lambda: mk.GaussianFactor(["a", "b"], [[1, 2], [0, 1]]), "not symmetric"),
        (lambda: mk.GaussianFactor(["a"], np.eye(2)), "1 x 1"),
        (lambda: mk.GaussianFactor(["a"], [[0.0]]).mean(), "not positive definite"),
        (lambda: mk.GaussianFactor(["a", "b"], np.zeros((2, 2))).marginal("a"), "not positive definite"),
        (lambda: mk.GaussianFactor(["a"], [[1.0]]).reduce({"b": 1}), "unknown variable 'b'"),
        (lambda: mk.GaussianFactor.from_regression("a", 0, {}, 0.0), "positive"),
    ],
)
def test_what_is_no_gaussian_is_refused(make, message):
    with pytest.raises(mk.MarkoviaError, match=message):
        make()
