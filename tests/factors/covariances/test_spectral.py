"""Stationary covariances by their frequencies: the density's integral, and the mean over draws, is the covariance."""

import numpy as np
import pytest
from scipy.integrate import quad, trapezoid

import markovia as mk
from markovia.errors import InvalidArgument

k = mk.covariances
P = mk.Parameter
DENSE = {
    "rbf": lambda: P(1.4) * k.RBF(P(0.8)),
    "matern 1/2": lambda: k.Matern12(P(0.8)),
    "matern 3/2": lambda: k.Matern32(P(0.8)),
    "matern 5/2": lambda: k.Matern52(P(0.8)) + P(0.3) * k.RBF(P(2.0)),
    "rational quadratic": lambda: k.RationalQuadratic(P(0.8), alpha=P(1.7)),
    "rational quadratic, heavy tails": lambda: k.RationalQuadratic(P(0.8), alpha=P(0.4)),
    "spectral mixture": lambda: k.SpectralMixture(P([0.9, 0.4]), P([0.3, 0.0]), P([0.2, 0.5])),
}
r = np.array([0.0, 0.3, 1.0, 2.2])


@pytest.mark.slow
@pytest.mark.parametrize("name", DENSE)
def test_the_density_integrates_to_the_covariance(name):
    cov = DENSE[name]()
    # frequencies over many orders: tails are powers, and a slow covariance has a peak at zero
    expected = cov.value(np.zeros((1, 1)), r[:, None])[0]
    for lag, value in zip(r, expected, strict=True):
        if lag == 0.0:
            t = np.linspace(-60.0, 30.0, 20001)
            found = trapezoid(cov.spectral_density(np.exp(t)) * np.exp(t), t) / np.pi
        else:
            S = lambda w: float(cov.spectral_density([w])[0])  # noqa: E731
            found = quad(S, 0.0, np.inf, weight="cos", wvar=lag, limlst=200, epsabs=1e-7)[0] / np.pi
        assert found == pytest.approx(value, abs=2e-5)


@pytest.mark.parametrize(
    "cov", [k.RBF([0.8, 0.5]), k.Matern32([0.8, 0.5]), k.RationalQuadratic([0.8, 0.5], 2.5)]
)
def test_the_density_in_two_columns_integrates_to_the_variance(cov):
    # polar coordinates of lengths times frequencies: the density depends on their distance from zero alone
    t = np.linspace(-12.0, 14.0, 4001)
    w = np.exp(t)[:, None] * [1 / 0.8, 0.0]
    found = trapezoid(cov.spectral_density(w) / 0.4 * 2 * np.pi * np.exp(2 * t), t) / (2 * np.pi) ** 2
    assert found == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    "name", [n if n[0] != "r" else pytest.param(n, marks=pytest.mark.slow) for n in DENSE]
)
def test_pulls_of_the_density_are_differences(name):
    # where tails are heavy, the density has a pole at zero
    cov, omega, w = DENSE[name](), np.array([0.3 * ("heavy" in name), 0.4, 2.0]), np.array([0.3, -1.0, 0.7])
    S, pull = cov.spectral_forward(omega)
    np.testing.assert_array_equal(S, cov.spectral_density(omega))
    slopes = pull(w)
    for name_, hyper in cov.free().items():
        value, h = np.asarray(hyper.value, float), 1e-5
        expected = np.zeros(value.shape)
        for i in np.ndindex(value.shape):
            step = np.zeros(value.shape)
            step[i] = h
            up, down = (
                cov.with_values({name_: value + s * step}).spectral_density(omega) @ w for s in (1, -1)
            )
            expected[i] = (up - down) / (2 * h)
        np.testing.assert_allclose(slopes[id(hyper.part), hyper.name], expected, rtol=1e-6, atol=1e-7)


X = np.random.default_rng(1).normal(size=(5, 2))
DRAWN = {
    "rbf": lambda: k.RBF(P([0.8, 1.5])),
    "matern 1/2": lambda: k.Matern12(P(1.2)),
    "matern 5/2": lambda: P(2.0) * k.Matern52(P(0.8), columns=1),
    "rational quadratic": lambda: k.RationalQuadratic(P(0.9), alpha=P(0.7)),
    "spectral mixture": lambda: k.SpectralMixture(
        P([0.9, 0.4]), P([[0.3, 0.1], [0.0, 0.5]]), P(np.full((2, 2), 0.2))
    ),
    "sum": lambda: P(0.5) * k.RBF(P(0.8)) + k.Constant(P(0.7)) + k.Cosine(P(2.0), columns=0),
    "product": lambda: k.Matern32(P(1.5), columns=0) * k.Cosine(P(2.0), columns=1) * P(1.7) * k.RBF(P(3.0)),
    "product of sums": lambda: (k.RBF(P(1.0)) + k.Constant(P(0.3))) * (k.Cosine(P(2.0)) + k.Constant(P(0.3))),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_mean_over_draws_is_the_covariance(name):
    cov, n = DRAWN[name](), 60_000
    drawn = cov.spectral_draws(n, 2, np.random.default_rng(0))
    waves = (X[:, None] - X)[..., None, :] @ drawn.omega.T  # rows by rows by draws
    terms = n * np.cos(waves[..., 0, :]) * drawn.weights
    error = 5 * terms.std(axis=-1) / n**0.5 + 1e-12
    assert (np.abs(terms.mean(axis=-1) - cov.value(X)) < error).all()
    assert drawn.weights.sum() == pytest.approx(cov.value(X)[0, 0], rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_draws_of_a_seed_move_smoothly_with_the_numbers(name):
    cov, n = DRAWN[name](), 12
    drawn = cov.spectral_draws(n, 2, np.random.default_rng(0))
    a, b = np.random.default_rng(1).normal(size=(n, 2)), np.random.default_rng(2).normal(size=n)
    slopes = drawn.pull(a, b)
    for name_, hyper in cov.free().items():
        value, h = np.asarray(hyper.value, float), 1e-5
        step = np.random.default_rng(3).normal(size=value.shape)
        ends = []
        for sign in (1.0, -1.0):
            # parts keep their draws: the shape of a rational quadratic moves where its quantiles are
            moved = cov.with_values({name_: value + sign * h * step})
            again = moved.spectral_draws(n, 2, np.random.default_rng(0))
            ends.append(np.vdot(a, again.omega) + b @ again.weights)
        found = np.vdot(slopes[id(hyper.part), hyper.name], step)
        assert found == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-7)


def test_what_has_no_frequencies_is_said():
    with pytest.raises(InvalidArgument, match="Linear has no spectral density; RBF, Matern"):
        k.Linear(1.0).spectral_density([0.0])
    with pytest.raises(InvalidArgument, match="Linear has no random frequencies"):
        (k.RBF(1.0) * k.Linear(1.0)).spectral_draws(5, 1, np.random.default_rng(0))
    with pytest.raises(InvalidArgument, match="1 frequencies are too few for a covariance of 2 parts"):
        (k.RBF(1.0) + k.RBF(1.0)).spectral_draws(1, 1, np.random.default_rng(0))
    with pytest.raises(InvalidArgument, match="a sum over different columns has no spectral density"):
        (k.RBF(1.0, columns=0) + k.RBF(1.0, columns=1)).spectral_density([[0.0]])
