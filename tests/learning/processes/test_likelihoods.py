"""Likelihoods: derivatives, averages over a normal f, predictions, laws, and what they say to bad targets."""

import numpy as np
import pytest
from scipy.stats import norm, poisson, t

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.learning.processes.likelihoods import (
    LIKELIHOODS as WORDS,
)
from markovia.learning.processes.likelihoods import (
    BernoulliLogit,
    BernoulliProbit,
    Likelihood,
    NoiseProcess,
    NormalNoise,
    OrdinalProbit,
    PoissonCounts,
    SoftmaxClasses,
    StudentTNoise,
    as_likelihood,
    split_likelihood,
    with_likelihood,
)
from process_likelihoods import LIKELIHOODS, dense_panels

F = np.array([-40.0, -12.0, -3.0, -0.5, 0.0, 0.3, 2.0, 9.0, 40.0])
ONE_FUNCTION = {
    "normal": [0.0, 3.0], "student-t": [0.0, 3.0, -20.0], "bernoulli": [0, 1], "probit": [0, 1], "ordinal": [0, 1, 2, 3],
    "poisson": [0, 3, 50],
}  # fmt: skip
"""Targets to try of likelihoods of one function."""


def cases():
    return [(LIKELIHOODS[word](), float(y)) for word, found in ONE_FUNCTION.items() for y in found]


def slope(function, x, step):
    return (function(x + step) - function(x - step)) / (2.0 * step)


@pytest.mark.parametrize(("likelihood", "y"), cases(), ids=repr)
def test_derivatives_are_those_of_the_log_density(likelihood, y):
    y, found = np.full(len(F), y), likelihood.derivatives(np.full(len(F), y), F)
    for order in range(3):
        numeric = slope(lambda f, k=order: likelihood.derivatives(y, f)[k], F, 1e-5)
        size = 1e-3 + np.abs(found[order + 1])
        # a difference has the digits that the values leave
        assert np.all(
            np.abs(numeric - found[order + 1]) < 1e-6 * size + 3e-10 * np.abs(found[order]) + 1e-11 * F**4
        )


@pytest.mark.parametrize(("likelihood", "y"), cases(), ids=repr)
def test_derivatives_by_own_numbers_are_those_of_the_log_density(likelihood, y):
    f = np.array([-3.0, -0.5, 0.3, 2.0])
    y, values = np.full(len(f), y), {name: np.asarray(likelihood.number(name)) for name in likelihood.own}
    found = likelihood.by_hypers(y, f)
    assert set(found) == set(likelihood.own)
    prefix = type(likelihood).__name__.lower()
    for name, value in values.items():
        for at in np.ndindex(value.shape):

            def moved(step, name=name, value=value, at=at):
                changed = value.copy()
                changed[at] += step
                return np.stack(
                    likelihood.with_values({f"{prefix}.{name}": changed[()]}).derivatives(y, f)[:3]
                )

            numeric = slope(moved, 0.0, 1e-5)
            exact = np.stack([np.broadcast_to(d, f.shape + value.shape)[(..., *at)] for d in found[name]])
            np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-7)


HARD = [
    (NormalNoise(1e-4), 3.0), (StudentTNoise(0.01, 0.8), 30.0), (StudentTNoise(0.7, 3000.0), 40.0),
    (OrdinalProbit(-1.0, np.array([0.5, 8.0])), 2.0), (PoissonCounts(0.4), 10_000.0),
]  # fmt: skip


@pytest.mark.parametrize(("likelihood", "y"), cases() + HARD, ids=repr)
@pytest.mark.parametrize(
    "m", [-6.0, pytest.param(-40.0, marks=pytest.mark.slow), 0.3, pytest.param(40.0, marks=pytest.mark.slow)]
)
def test_averages_over_a_normal_f_are_integrals(likelihood, y, m):
    for v in (1e-8, 0.01, 1.0, 100.0, 1e4):
        Y, M, V = np.array([y]), np.array([m]), np.array([v])
        z, weight = dense_panels(likelihood, y, m, v)
        with np.errstate(over="ignore", under="ignore"):
            log, first, second, _ = likelihood.derivatives(np.full(len(z), y), m + np.sqrt(v) * z)
            by = likelihood.by_hypers(np.full(len(z), y), m + np.sqrt(v) * z)
            bell = weight * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
            logs = log - 0.5 * z * z
            share = weight * np.exp(logs - logs.max())
            total = share.sum()
            share /= total
            inside = abs(z[np.argmax(logs)]) < 25.0  # else nothing but rounding is known of the tail
            if not isinstance(likelihood, PoissonCounts) or m + 20.0 * np.sqrt(v) < 60.0:
                for mine, what in zip(likelihood.expected(Y, M, V), (log, first, second), strict=True):
                    np.testing.assert_allclose(
                        mine, bell @ what, rtol=2e-7, atol=2e-9 * (1.0 + np.abs(what).max() * 1e-3)
                    )
                for name, slopes in likelihood.expected_by_hypers(Y, M, V).items():
                    np.testing.assert_allclose(slopes, bell @ by[name][0], rtol=1e-5, atol=1e-5)
            if inside:
                log_z, d1, d2 = likelihood.tilted(Y, M, V)
                np.testing.assert_allclose(
                    log_z, np.log(total) + logs.max() - 0.5 * np.log(2.0 * np.pi), rtol=1e-8, atol=1e-8
                )
                np.testing.assert_allclose(d1, share @ first, rtol=1e-6, atol=1e-8 / np.sqrt(v))
                exact = share @ ((first - share @ first) * (z - share @ z)) / np.sqrt(v)
                np.testing.assert_allclose(d2, exact, rtol=1e-6, atol=1e-8 / v)
                for name, slopes in likelihood.tilted_by_hypers(Y, M, V).items():
                    np.testing.assert_allclose(slopes, share @ by[name][0], rtol=1e-5, atol=1e-5)


def test_closed_forms_agree_with_quadrature():
    y, m, v = np.array([0.0, 3.0]), np.array([0.4, 1.1]), np.array([0.3, 2.0])
    for likelihood in (LIKELIHOODS["normal"](), LIKELIHOODS["poisson"](), LIKELIHOODS["ordinal"]()):
        for name in ("expected", "tilted"):
            found = getattr(likelihood, name)(y, m, v)
            np.testing.assert_allclose(found, getattr(Likelihood, name)(likelihood, y, m, v), rtol=1e-8)
            by = getattr(likelihood, f"{name}_by_hypers")(y, m, v)
            for key, value in getattr(Likelihood, f"{name}_by_hypers")(likelihood, y, m, v).items():
                np.testing.assert_allclose(by[key], value, rtol=1e-7)


def test_the_probability_of_a_probit_is_that_of_a_normal_number():
    m, v = np.array([-30.0, -1.0, 0.0, 2.0]), np.array([0.5, 1e4, 1e-8, 3.0])
    found = BernoulliProbit().probabilities(m, v)
    np.testing.assert_allclose(found[:, 1], norm.cdf(m / np.sqrt(1.0 + v)), rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)


def test_two_levels_in_order_are_a_probit():
    y, f, v = np.array([0.0, 1.0, 1.0]), np.array([-2.0, 0.3, 9.0]), np.array([0.1, 2.0, 5.0])
    two, probit = OrdinalProbit(0.0, np.zeros(0)), BernoulliProbit()
    for name, values in (("derivatives", (y, f)), ("expected", (y, f, v)), ("tilted", (y, f, v))):
        np.testing.assert_allclose(getattr(two, name)(*values), getattr(probit, name)(*values), rtol=1e-12)


def test_noise_without_heavy_tails_is_normal():
    y, m, v = np.array([0.3, 2.0]), np.array([0.0, -1.0]), np.array([0.5, 3.0])
    heavy, normal = StudentTNoise(0.6, 1e7), NormalNoise(0.36)
    np.testing.assert_allclose(heavy.derivatives(y, m)[:3], normal.derivatives(y, m)[:3], rtol=1e-5)
    np.testing.assert_allclose(heavy.tilted(y, m, v), normal.tilted(y, m, v), rtol=1e-5)


def test_log_densities_are_those_of_scipy():
    f = np.array([-1.0, 0.2, 2.0])
    y = np.array([0.0, 3.0, 5.0])
    np.testing.assert_allclose(
        PoissonCounts(0.4).derivatives(y, f)[0], poisson.logpmf(y, np.exp(0.4 + f)), rtol=1e-12
    )
    np.testing.assert_allclose(
        StudentTNoise(0.6, 3.0).derivatives(y, f)[0], t.logpdf(y, 3.0, f, 0.6), rtol=1e-12
    )
    np.testing.assert_allclose(NormalNoise(0.6).derivatives(y, f)[0], norm.logpdf(y, f, 0.6**0.5), rtol=1e-12)


def test_known_variances_of_rows_go_with_their_rows():
    each, y, f = np.array([0.1, 2.0]), np.array([0.5, 0.5]), np.zeros(2)
    found = NormalNoise(each).derivatives(y, f)
    for i, variance in enumerate(each):
        np.testing.assert_allclose(
            [d[i] for d in found], [d[i] for d in NormalNoise(variance).derivatives(y, f)]
        )
    np.testing.assert_allclose(
        Likelihood.expected(NormalNoise(each), y, f, np.ones(2)),
        NormalNoise(each).expected(y, f, np.ones(2)),
        rtol=1e-10,
    )


@pytest.mark.parametrize(
    "word", ["normal", "student-t", "bernoulli", "ordinal", "poisson", "heteroscedastic"]
)
def test_targets_have_the_moments_of_simulated_ones(word):
    """Mean and variance of targets, averaged over f, from half a million draws of both."""
    rng, n = np.random.default_rng(1), 500_000
    likelihood = StudentTNoise(0.4, 7.0) if word == "student-t" else LIKELIHOODS[word]()
    f = 0.3 + 0.8 * rng.normal(size=n)
    g = -0.2 + 0.5 * rng.normal(size=n)
    drawn = {
        "normal": lambda: f + 0.3**0.5 * rng.normal(size=n),
        "student-t": lambda: f + 0.4 * rng.standard_t(7.0, size=n),
        "bernoulli": lambda: rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-f)),
        "ordinal": lambda: np.digitize(f + rng.normal(size=n), np.array([-0.7, -0.1, 0.8])),
        "poisson": lambda: rng.poisson(np.exp(0.3 + f)),
        "heteroscedastic": lambda: f + np.exp(0.5 * (g - 1.0)) * rng.normal(size=n),
    }[word]()
    pair = (np.array([[0.3], [-0.2]]), np.array([[0.64], [0.25]]))
    mean, variance = likelihood.target(*(pair if word == "heteroscedastic" else (pair[0][0], pair[1][0])))
    error = drawn.std() / np.sqrt(n)
    assert abs(mean[0] - drawn.mean()) < 4.0 * error
    assert abs(variance[0] / drawn.var() - 1.0) < 0.02


def test_noise_with_two_degrees_of_freedom_has_no_variance():
    assert StudentTNoise(0.4, 2.0).target(np.zeros(1), np.ones(1))[1][0] == np.inf


def test_probabilities_of_classes_are_means_of_softmaxes():
    m, V = np.array([[0.5], [-0.3], [1.0]]), np.array([[[1.0, 0.4, 0.0], [0.4, 2.0, -0.3], [0.0, -0.3, 0.5]]])
    found = SoftmaxClasses(3).probabilities(m, V)
    f = np.random.default_rng(0).multivariate_normal(m[:, 0], V[0], size=400_000)
    shares = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[0], shares.mean(axis=0), atol=2e-3)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    order = [2, 0, 1]
    moved = SoftmaxClasses(3).probabilities(m[order], V[np.ix_([0], order, order)])
    np.testing.assert_allclose(moved[0], found[0, order], atol=3e-3)


@pytest.mark.slow
def test_laws_of_the_network_have_the_same_densities():
    """What a network samples from is what the closed forms compute with."""
    import jax.numpy as jnp

    from markovia.runtime.double_precision import x64

    f, g = np.array([-1.0, 0.2, 2.0]), np.array([0.3, -0.4, 0.1])
    with x64():
        for word, found in ONE_FUNCTION.items():
            likelihood = LIKELIHOODS[word]()
            likelihood = likelihood.with_values({name: h.value for name, h in likelihood.hypers().items()})
            for y in found:
                y = np.full(3, float(y))
                law = likelihood.law(jnp.asarray(f)).log_prob(
                    jnp.asarray(y if word in ("normal", "student-t") else y.astype(int))
                )
                np.testing.assert_allclose(law, likelihood.derivatives(y, f)[0], rtol=1e-8, atol=1e-10)
        law = SoftmaxClasses(2).law(jnp.asarray(f), jnp.asarray(g)).log_prob(jnp.asarray([0, 1, 1]))
        both = np.stack([f, g])
        np.testing.assert_allclose(law, (both - np.logaddexp(f, g))[[0, 1, 1], [0, 1, 2]], rtol=1e-10)
        law = (
            NoiseProcess(mk.covariances.RBF(1.0), -1.0)
            .law(jnp.asarray(f), jnp.asarray(g))
            .log_prob(jnp.zeros(3))
        )
        np.testing.assert_allclose(law, norm.logpdf(0.0, f, np.exp(0.5 * (g - 1.0))), rtol=1e-10)


def test_the_counts_of_a_certain_rate_spread_as_far_as_they_should():
    mean, variance = PoissonCounts(0.0).target(np.array([1.0]), np.array([1e-12]))
    assert mean[0] == pytest.approx(variance[0]) == pytest.approx(np.e)
    mean, variance = PoissonCounts(0.0).target(np.array([1.0]), np.array([0.5]))
    assert variance[0] > mean[0] == pytest.approx(np.exp(1.25))


# -- words, starts and bad targets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "targets", "said"),
    [
        (
            "poisson",
            [0.0, -1.0, 2.0],
            "targets of likelihood='poisson' are whole numbers, 0 or more; row 1 holds -1",
        ),
        ("poisson", [0.0, 1.5, 2.0], "row 1 holds 1.5"),
        (
            "ordinal",
            [0.0, 1.0, 0.5],
            "targets of likelihood='ordinal' are whole numbers, 0 or more; row 2 holds 0.5",
        ),
        ("bernoulli", [0.0, 1.0, 2.0], "whole numbers, 0 or more and below 2; row 2 holds 2"),
        ("probit", [0.0, 1.0, -1.0], "row 2 holds -1"),
        ("student-t", [0.0, np.nan, 1.0], "are finite numbers; row 1 holds nan"),
        ("heteroscedastic", [0.0, np.inf, 1.0], "are finite numbers; row 1 holds inf"),
        ("categorical", [0.0, 3.0, 1.0], "below 3; row 1 holds 3"),
    ],
)
def test_targets_that_are_none_are_named(word, targets, said):
    with pytest.raises(InvalidArgument, match=said):
        with_likelihood(mk.covariances.RBF(), word, np.arange(3.0)[:, None], np.array(targets))


def test_a_word_that_is_none_is_answered_with_those_that_are():
    with pytest.raises(InvalidArgument, match="did you mean 'poisson'"):
        as_likelihood("poison")
    with pytest.raises(InvalidArgument, match=r"likelihood= is normal, student-t, .* not 3"):
        as_likelihood(3)
    assert {type(as_likelihood(word)) for word in WORDS} == set(WORDS.values())
    assert as_likelihood(own := BernoulliLogit()) is own


def test_a_covariance_has_one_likelihood():
    rest, found = split_likelihood(mk.covariances.RBF(1.0) + mk.covariances.White(0.1) + BernoulliLogit())
    assert repr(rest) == "RBF(length=1) + White(variance=0.1)"
    assert isinstance(found, BernoulliLogit)
    for wrong in (mk.covariances.RBF(1.0), mk.covariances.RBF(1.0) + BernoulliLogit() + BernoulliProbit()):
        with pytest.raises(InvalidArgument, match="a covariance plus one likelihood"):
            split_likelihood(wrong)


def test_variances_of_rows_need_as_many_rows_and_are_known():
    with pytest.raises(InvalidArgument, match="variances of 2 rows, and was asked for 3"):
        NormalNoise([0.1, 0.2]).derivatives(np.zeros(3), np.zeros(3))
    with pytest.raises(InvalidArgument, match="variances of each row are known numbers"):
        NormalNoise(mk.Parameter(np.ones(3), support="positive"))


def test_starts_follow_the_unit_of_the_targets():
    """Noise is a share of the targets' spread; log odds and log rates have no unit."""
    X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 4.0, 2.0, 8.0, 3.0])

    def numbers(word, targets):
        found = with_likelihood(2.0 * mk.covariances.RBF(), word, X, targets).hypers()
        return {name: np.asarray(h.value) for name, h in found.items()}

    for unit in (1e-9, 1e9):
        np.testing.assert_allclose(
            numbers("student-t", unit * y)["studenttnoise.scale"],
            unit * numbers("student-t", y)["studenttnoise.scale"],
        )
        assert numbers("heteroscedastic", unit * y)["noiseprocess.level"] == pytest.approx(
            numbers("heteroscedastic", y)["noiseprocess.level"] + 2.0 * np.log(unit)
        )
    assert numbers("poisson", y)["poissoncounts.level"] == pytest.approx(np.log(3.0))
    assert numbers("ordinal", y)["ordinalprobit.gaps"].shape == (7,)
    constant = numbers("student-t", np.full(6, 5.0))
    assert constant["studenttnoise.scale"] > 0.0
    assert np.isfinite(numbers("poisson", np.zeros(6))["poissoncounts.level"])
