"""Exponential families against scipy.stats, automatic differentiation, numerical integration and worked numbers."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import gammaln

import markovia as mk
from markovia import exponential as ef
from markovia.errors import InvalidArgument, TooLarge, UnsupportedModel

COV = np.array([[2.0, 0.6, 0.1], [0.6, 1.0, -0.2], [0.1, -0.2, 0.5]])
MEMBERS = {
    "bernoulli": (ef.Bernoulli(0.3), stats.bernoulli(0.3), [0, 1, 2, 0.5, -1]),
    "poisson": (ef.Poisson(3.7), stats.poisson(3.7), [0, 1, 7, 40, -1, 2.5]),
    "exponential": (ef.Exponential(2.5), stats.expon(scale=1 / 2.5), [0.0, 0.1, 3.0, -1.0]),
    "gamma": (ef.Gamma(2.3, 0.7), stats.gamma(2.3, scale=1 / 0.7), [0.1, 1.0, 9.0, -1.0]),
    "beta": (ef.Beta(2.2, 0.8), stats.beta(2.2, 0.8), [0.1, 0.5, 0.99, -0.5, 1.5]),
    "gaussian": (ef.Gaussian(-1.5, 2.5), stats.norm(-1.5, 2.5**0.5), [-9.0, -1.5, 0.0, 4.0]),
    "known": (ef.GaussianKnownVariance(-1.5, 2.5), stats.norm(-1.5, 2.5**0.5), [-9.0, -1.5, 0.0, 4.0]),
}
VECTORS = {
    "categorical": ef.Categorical([0.2, 0.5, 0.3]),
    "multinomial": ef.Multinomial(6, [0.2, 0.5, 0.3]),
    "dirichlet": ef.Dirichlet([0.7, 2.0, 3.5]),
    "multivariate": ef.MultivariateGaussian([1.0, -2.0, 0.5], COV),
}
ALL = {**{k: m for k, (m, _, _) in MEMBERS.items()}, **VECTORS}


def log_law(reference, x):
    return reference.logpmf(x) if hasattr(reference.dist, "pmf") else reference.logpdf(x)


def agree(a, b, **tolerance):
    np.testing.assert_allclose(a, b, **{"rtol": 1e-10, "atol": 1e-12, **tolerance})


@pytest.fixture(scope="module")
def x64():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield jax


# -- against scipy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEMBERS)
def test_densities_entropy_and_moments_are_those_of_scipy(name):
    member, reference, points = MEMBERS[name]
    agree(member.log_prob(points), log_law(reference, np.array(points, dtype=float)))
    agree(member.prob(points[0]), np.exp(log_law(reference, points[0])))
    agree(member.entropy(), reference.entropy())
    agree(member.mean, reference.mean())
    agree(member.variance, reference.var())


def test_vector_densities_entropies_and_moments_are_those_of_scipy():
    c, m, d, g = VECTORS.values()
    agree(c.log_prob([0, 1, 2]), np.log([0.2, 0.5, 0.3]))
    assert np.isneginf(c.log_prob([3, -1, 0.5])).all()
    agree(c.entropy(), stats.entropy([0.2, 0.5, 0.3]))
    law = stats.multinomial(6, [0.2, 0.5, 0.3])
    agree(m.log_prob([[1, 2, 3], [6, 0, 0]]), law.logpmf([[1, 2, 3], [6, 0, 0]]))
    assert np.isneginf(m.log_prob([1, 2, 4]))
    agree(m.entropy(), law.entropy())
    agree(m.mean, law.mean())
    agree(m.covariance_matrix, law.cov())
    agree(m.variance, np.diag(law.cov()))
    law = stats.dirichlet([0.7, 2.0, 3.5])
    agree(d.log_prob([0.2, 0.3, 0.5]), law.logpdf([0.2, 0.3, 0.5]))
    assert np.isneginf(d.log_prob([[0.2, 0.3, 0.6], [0.5, 0.0, 0.5]])).all()
    agree(d.entropy(), law.entropy())
    agree(d.mean, law.mean())
    agree(d.covariance_matrix, law.cov())
    agree(d.variance, np.diag(law.cov()))
    law = stats.multivariate_normal([1.0, -2.0, 0.5], COV)
    points = [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]
    agree(g.log_prob(points), law.logpdf(points))
    agree(g.entropy(), law.entropy())
    agree(g.mean, law.mean)
    agree(g.covariance_matrix, COV)
    agree(g.variance, np.diag(COV))


@pytest.mark.parametrize("name", MEMBERS)
def test_samples_follow_the_distribution(name):
    member, reference, _ = MEMBERS[name]
    drawn = member.sample(4000, seed=7)
    assert drawn.shape == (4000,)
    if hasattr(reference.dist, "pmf"):
        values, counts = np.unique(np.minimum(drawn, 8), return_counts=True)
        expected = np.array([reference.sf(7) if v == 8 else reference.pmf(v) for v in values])
        assert stats.chisquare(counts, expected / expected.sum() * 4000).pvalue > 0.001
    else:
        assert stats.kstest(drawn, reference.cdf).pvalue > 0.001
    agree(drawn, member.sample(4000, seed=7))


@pytest.mark.parametrize("name", ALL)
def test_average_statistics_of_samples_are_the_mean_parameters(name):
    member = ALL[name]
    statistics = member.sufficient_statistics(member.sample(20_000, seed=3))
    error = np.sqrt(np.diag(member.covariance()) / 20_000)
    assert np.all(np.abs(statistics.mean(axis=0) - member.moments()) < 4.5 * error)


def test_the_entropy_of_large_counts_keeps_its_digits():
    for rate in (9_999.0, 10_001.0):
        x = np.arange(20_000)
        logs = stats.poisson(rate).logpmf(x)
        agree(ef.Poisson(rate).entropy(), -(np.exp(logs) @ logs), rtol=1e-9)
    agree(ef.Poisson(1e12).entropy(), stats.norm(0, 1e6).entropy(), rtol=1e-12)
    assert ef.Poisson(1e-12).entropy() == pytest.approx(1e-12 * (1 - np.log(1e-12)), rel=1e-6)


# -- the family -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_the_density_is_the_canonical_form(name):
    member = ALL[name]
    drawn = member.sample(20, seed=1)
    agree(member.log_prob(drawn), member.canonical_log_prob(drawn), rtol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_natural_and_mean_parameters_go_back_and_forth(name):
    member = ALL[name]
    agree(member.with_natural(member.natural()).moments(), member.moments())
    agree(member.with_moments(member.moments()).natural(), member.natural(), rtol=1e-8)
    agree(member.natural_from_moments(member.moments()), member.natural(), rtol=1e-8)


@pytest.mark.parametrize("name", ALL)
def test_gradient_and_hessian_of_the_log_partition_are_mean_and_covariance(name):
    member = ALL[name]
    eta, h = member.natural(), 1e-5
    steps = np.eye(eta.size) * h
    if name == "multivariate":  # a symmetric matrix is moved symmetrically
        k = 3
        pairs = [(i, j) for i in range(k) for j in range(k)]
        twins = [k + j * k + i for i, j in pairs]
        steps[k:] = (steps[k:] + steps[twins]) / 2
    gradient = [(member.log_partition(eta + s) - member.log_partition(eta - s)) / (2 * h) for s in steps]
    agree(gradient, member.moments(), rtol=1e-5, atol=1e-6)
    hessian = [(member.moments(eta + s) - member.moments(eta - s)) / (2 * h) for s in steps]
    agree(hessian, member.covariance(), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_moments_agree_with_automatic_differentiation(x64):
    jnp, gammaln = x64.numpy, x64.scipy.special.gammaln

    def gaussian(eta):
        k = 3
        first, second = eta[:k], eta[k:].reshape(k, k)
        second = (second + second.T) / 2
        return -0.25 * first @ jnp.linalg.solve(second, first) - 0.5 * jnp.linalg.slogdet(-2 * second)[1]

    partition = {
        "bernoulli": lambda e: jnp.log1p(jnp.exp(e[0])),
        "poisson": lambda e: jnp.exp(e[0]),
        "exponential": lambda e: -jnp.log(-e[0]),
        "gamma": lambda e: gammaln(e[0] + 1) - (e[0] + 1) * jnp.log(-e[1]),
        "dirichlet": lambda e: (gammaln(jnp.append(e, e.sum() + 2) + 1) * jnp.array([1, 1, 1, -1])).sum(),
        "gaussian": lambda e: -(e[0] ** 2) / (4 * e[1]) - 0.5 * jnp.log(-2 * e[1]),
        "known": lambda e: 2.5 * e[0] ** 2 / 2,
        "categorical": lambda e: jnp.log(1 + jnp.exp(e).sum()),
        "multinomial": lambda e: 6 * jnp.log(1 + jnp.exp(e).sum()),
        "multivariate": gaussian,
    }

    def everything(etas):
        return {n: (a(etas[n]), x64.grad(a)(etas[n]), x64.hessian(a)(etas[n])) for n, a in partition.items()}

    found = x64.jit(everything)({n: jnp.asarray(ALL[n].natural()) for n in partition})
    for name, (value, gradient, hessian) in found.items():
        agree(ALL[name].log_partition(), value, rtol=1e-9)
        agree(ALL[name].moments(), gradient, rtol=1e-9)
        agree(ALL[name].covariance(), hessian, rtol=1e-8, atol=1e-10)


def test_the_duality_of_the_bernoulli_has_the_worked_numbers():
    coin = ef.Bernoulli().with_natural([1.0])
    mu = float(coin.moments()[0])
    assert mu == pytest.approx(0.731058579, abs=1e-9)
    assert coin.conjugate_dual() == pytest.approx(-0.582203109, abs=1e-9)
    assert mu - coin.conjugate_dual() == pytest.approx(1.313261688, abs=1e-9)
    assert coin.log_partition() == pytest.approx(1.313261688, abs=1e-9)
    assert coin.conjugate_dual([0.0]) == coin.conjugate_dual([1.0]) == 0.0
    assert coin.conjugate_dual([1.2]) == np.inf


@pytest.mark.parametrize("name", ALL)
def test_the_dual_meets_the_log_partition_at_the_mean_and_nowhere_else(name):
    member = ALL[name]
    mu = member.moments()
    agree(member.conjugate_dual(mu), float(member.natural() @ mu) - member.log_partition(), rtol=1e-8)
    other = member.with_moments(0.9 * mu + 0.1 * type(member).fit(member.sample(50, seed=0)).moments())
    assert member.conjugate_dual(mu) >= float(other.natural() @ mu) - other.log_partition() - 1e-12


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "exponential", "gamma", "beta", "gaussian"])
def test_divergence_is_the_expected_log_ratio(name):
    one = MEMBERS[name][0]
    two = one.with_natural(one.natural() * 1.2)
    if name in ("bernoulli", "poisson"):
        x = np.arange(2 if name == "bernoulli" else 80)
        expected = float((one.prob(x) * (one.log_prob(x) - two.log_prob(x))).sum())
    else:
        low, high = MEMBERS[name][1].ppf([1e-14, 1 - 1e-14])

        def ratio(x):
            return float(one.prob(x) * (one.log_prob(x) - two.log_prob(x)))

        expected = integrate.quad(ratio, low, high, limit=200)[0]
    agree(one.kl(two), expected, rtol=1e-5)
    assert one.kl(one) == pytest.approx(0.0, abs=1e-12)


def test_divergence_of_gaussians_has_its_closed_form():
    one, two = VECTORS["multivariate"], ef.MultivariateGaussian([0.0, 0.0, 0.0], np.diag([1.0, 2.0, 3.0]))
    inverse = np.linalg.inv(two.covariance_matrix)
    gap = one.mean - two.mean
    logs = np.linalg.slogdet(two.covariance_matrix)[1] - np.linalg.slogdet(one.covariance_matrix)[1]
    agree(one.kl(two), 0.5 * (np.trace(inverse @ COV) + gap @ inverse @ gap - 3 + logs))


def test_the_multivariate_gaussian_has_the_inventory_form():
    g = VECTORS["multivariate"]
    m, precision = g.mean, np.linalg.inv(COV)
    agree(g.natural(), np.concatenate([precision @ m, -0.5 * precision.ravel()]))
    agree(g.log_partition(), 0.5 * m @ precision @ m + 0.5 * np.linalg.slogdet(COV)[1])
    agree(g.log_partition(g.natural()), g.log_partition())
    agree(g.base_measure(m), (2 * np.pi) ** -1.5)
    assert (g.n_parameters, g.n_free, g.minimal) == (12, 9, False)
    assert VECTORS["categorical"].n_parameters == 2


# -- fitting --------------------------------------------------------------------------------------------------------


def test_fits_are_maximum_likelihood():
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, 1.5, 300)
    shape, _, scale = stats.gamma.fit(x, floc=0)
    g = ef.Gamma.fit(x)
    agree([g.shape, g.rate], [shape, 1 / scale], rtol=1e-6)
    x = rng.beta(0.6, 2.0, 300)
    a, b, _, _ = stats.beta.fit(x, floc=0, fscale=1)
    agree([ef.Beta.fit(x).a, ef.Beta.fit(x).b], [a, b], rtol=1e-4)
    x = rng.normal(1e6, 0.01, 300)
    g = ef.Gaussian.fit(x)
    agree([g.mean, g.variance], [x.mean(), x.var()], rtol=1e-7)
    x = rng.multivariate_normal([5.0, -3.0], [[1, 0.5], [0.5, 2]], 200)
    agree(ef.MultivariateGaussian.fit(x).covariance_matrix, np.cov(x.T, bias=True))
    assert ef.Poisson.fit([1, 4, 4]).rate == pytest.approx(3.0, rel=1e-14)
    assert ef.Exponential.fit([1.0, 3.0]).rate == 0.5
    agree(ef.Multinomial.fit([[1, 2, 3], [3, 2, 1]]).probs, np.ones(3) / 3)
    agree(ef.Categorical.fit([0, 1, 1, 2]).probs, [0.25, 0.5, 0.25])
    x = rng.dirichlet([0.3, 5.0, 50.0], 400)
    d = ef.Dirichlet.fit(x)
    for i in range(3):  # no other concentration is likelier
        for change in (0.98, 1.02):
            alpha = d.concentration * np.where(np.arange(3) == i, change, 1.0)
            assert ef.Dirichlet(alpha).log_prob(x).sum() < d.log_prob(x).sum()


@pytest.mark.parametrize("name", ALL)
def test_a_weight_of_two_is_the_row_twice(name):
    member = ALL[name]
    x = member.sample(40, seed=2)
    weights = np.arange(40) % 3
    twice = np.repeat(x, weights, axis=0)
    structure = {"var": 2.5} if name == "known" else {}
    agree(
        type(member).fit(x, weights, **structure).natural(),
        type(member).fit(twice, **structure).natural(),
        rtol=1e-8,
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.02, 200.0), min_size=2, max_size=6))
def test_dirichlet_concentrations_are_found_from_their_mean_parameters(alpha):
    member = ef.Dirichlet(alpha)
    agree(member.with_moments(member.moments()).concentration, alpha, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 1e4), st.floats(1e-3, 1e3))
def test_gamma_parameters_are_found_from_their_mean_parameters(shape, rate):
    back = ef.Gamma().with_moments(ef.Gamma(shape, rate).moments())
    agree([back.shape, back.rate], [shape, rate], rtol=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_log_partition_is_convex(data):
    member = ALL[data.draw(st.sampled_from([n for n in ALL if n != "multivariate"]))]
    numbers = st.lists(st.floats(-3, 3), min_size=member.n_parameters, max_size=member.n_parameters)
    one, two = (member.natural() + 0.2 * np.array(data.draw(numbers)) for _ in range(2))
    share = data.draw(st.floats(0.0, 1.0))
    a, b, middle = (member.log_partition(e) for e in (one, two, share * one + (1 - share) * two))
    if np.isfinite(a) and np.isfinite(b):
        assert middle <= share * a + (1 - share) * b + 1e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1.0))
def test_the_gaussian_log_partition_is_convex(seed, share):
    rng = np.random.default_rng(seed)
    etas = []
    for _ in range(2):
        root = rng.normal(size=(3, 3))
        etas.append(ef.MultivariateGaussian(rng.normal(size=3), root @ root.T + 0.1 * np.eye(3)).natural())
    g = VECTORS["multivariate"]
    ends = share * g.log_partition(etas[0]) + (1 - share) * g.log_partition(etas[1])
    assert g.log_partition(share * etas[0] + (1 - share) * etas[1]) <= ends + 1e-8 * (1 + abs(ends))


# -- conjugate priors ---------------------------------------------------------------------------------------------


def test_beta_bernoulli():
    prior = ef.Bernoulli.conjugate_prior(a=2.0, b=3.0)
    post = ef.Bernoulli().posterior(prior, [1, 1, 0, 1])
    assert (post.parameters.a, post.parameters.b) == (5.0, 4.0)
    agree(post.predictive().prob([0, 1]), [4 / 9, 5 / 9])
    agree(post.moments(), [5 / 9])
    law = stats.betabinom(4, 2.0, 3.0)
    agree(np.exp(prior.log_evidence([1, 1, 0, 1])) * 4, law.pmf(3))


def test_dirichlet_categorical_and_multinomial():
    post = ef.Categorical.conjugate_prior([1.0, 2.0, 3.0]).posterior([0, 0, 2], weights=[1, 1, 2])
    agree(post.parameters.concentration, [3.0, 2.0, 5.0])
    agree(post.predictive().prob([0, 1, 2]), [0.3, 0.2, 0.5])
    prior = ef.Multinomial.conjugate_prior(5, [1.0, 2.0, 3.0])
    rows = [[1, 2, 2], [0, 0, 5]]
    agree(prior.posterior(rows).parameters.concentration, [2.0, 4.0, 10.0])
    law = stats.dirichlet_multinomial([1.0, 2.0, 3.0], 5)
    agree(prior.predictive().log_prob(rows), law.logpmf(rows))


def test_gamma_poisson_and_gamma_exponential():
    post = ef.Poisson.conjugate_prior(shape=2.0, rate=1.5).posterior([3, 0, 4])
    assert (post.parameters.shape, post.parameters.rate) == (9.0, 4.5)
    x = np.arange(12)
    agree(post.predictive().log_prob(x), stats.nbinom(9.0, 4.5 / 5.5).logpmf(x))
    post = ef.Exponential.conjugate_prior(shape=0.5, rate=1.5).posterior([1.0, 2.5])
    assert (post.parameters.shape, post.parameters.rate) == (2.5, 5.0)
    t = np.array([0.1, 1.0, 7.0])
    agree(post.predictive().log_prob(t), stats.lomax(2.5, scale=5.0).logpdf(t))


def test_no_data_leave_the_prior_as_it_was():
    prior = ef.Poisson.conjugate_prior(shape=2.0, rate=1.5)
    assert prior.posterior([]).parameters.shape == 2.0
    assert ef.NormalGamma(1, 2, 3, 4).posterior([]).rate == 4.0


def test_the_evidence_of_weighted_rows_is_that_of_repeated_ones():
    counts, weights = np.array([3, 0, 5, 2]), np.array([2, 1, 0, 3])
    prior = ef.Poisson.conjugate_prior(2.5, 1.5)
    agree(prior.log_evidence(counts, weights), prior.log_evidence(np.repeat(counts, weights)))
    seen, shape, rate = np.repeat(counts, weights), 2.5, 1.5
    total, n = seen.sum(), len(seen)
    # the base measure of counts, 1 / x!, is not 1: the rate integrated out by hand
    by_hand = (
        shape * np.log(rate)
        - gammaln(shape)
        + gammaln(shape + total)
        - (shape + total) * np.log(rate + n)
        - gammaln(seen + 1).sum()
    )
    agree(prior.log_evidence(counts, weights), by_hand)


def test_gaussian_priors():
    post = ef.GaussianKnownVariance.conjugate_prior(var=4.0, prior_mean=1.0, prior_var=2.0).posterior(
        [3.0, 5.0]
    )
    precision = 1 / 2.0 + 2 / 4.0
    agree(post.parameters.variance, 1 / precision)
    agree(post.parameters.mean, (1.0 / 2.0 + 8.0 / 4.0) / precision)
    x = np.array([-3.0, 0.0, 4.0])
    agree(
        post.predictive().log_prob(x),
        stats.norm(post.parameters.mean, (4 + 1 / precision) ** 0.5).logpdf(x),
    )
    ng = ef.Gaussian.conjugate_prior(mean=1.0, kappa=2.0, shape=3.0, rate=4.0)
    law = stats.t(6.0, 1.0, (4.0 * 3.0 / (3.0 * 2.0)) ** 0.5)
    agree(ng.predictive().log_prob(x), law.logpdf(x))
    niw = ef.NormalInverseWishart([1.0], 2.0, 6.0, [[8.0]])  # the same prior in one dimension
    agree(niw.predictive().log_prob(x), law.logpdf(x))
    data = np.array([0.3, 2.0, -1.0, 4.0])
    agree(ng.log_evidence(data), niw.log_evidence(data[:, None]))
    chain, total = ng, 0.0
    for value in data:  # the evidence is the product of predictions
        total += float(chain.predictive().log_prob(value))
        chain = chain.posterior([value])
    agree(ng.log_evidence(data), total)
    agree(chain.rate, ng.posterior(data).rate)
    niw = ef.MultivariateGaussian.conjugate_prior(
        [0.0, 1.0], kappa=0.5, dof=5.0, scale=[[2.0, 0.3], [0.3, 1.0]]
    )
    rows = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5]])
    post = niw.posterior(rows)
    law = stats.multivariate_t(post.location, post.scale * (4.5 / (3.5 * 7.0)), 7.0)
    agree(post.predictive().log_prob(rows), law.logpdf(rows))


def test_the_general_prior_of_a_gaussian_is_a_normal_gamma():
    general = ef.ConjugatePrior(ef.Gaussian(), chi=[2.0, 9.0], nu=3.0)
    named = ef.NormalGamma(2 / 3, 3.0, (3.0 + 3.0) / 2, 0.5 * (9.0 - 4.0 / 3.0))
    x = np.array([-1.0, 0.5, 2.0])
    agree(general.predictive().log_prob(x), named.predictive().log_prob(x))
    agree(general.log_evidence(x), named.log_evidence(x))
    assert named.log_prob(0.5, 2.0) == pytest.approx(
        stats.gamma(3.0, scale=1 / named.rate).logpdf(2.0) + stats.norm(2 / 3, 6.0**-0.5).logpdf(0.5)
    )


@pytest.mark.parametrize("name", ALL)
def test_every_family_has_the_general_prior(name):
    member = ALL[name]
    prior = ef.ConjugatePrior(member, chi=3.0 * member.moments(), nu=3.0)
    x = member.sample(5, seed=4)
    post = prior.posterior(x)
    agree(post.chi, prior.chi + member.sufficient_statistics(x).sum(axis=0))
    assert post.nu == 8.0
    eta = member.natural()
    likelihood = float(member.sufficient_statistics(x).sum(axis=0) @ eta) - 5 * member.log_partition()
    agree(post.log_density(eta) - prior.log_density(eta), likelihood, rtol=1e-8)


@pytest.mark.parametrize("name", ["gamma", "beta", "dirichlet"])
def test_a_prior_without_closed_normaliser_says_so(name):
    prior = ef.ConjugatePrior(ALL[name], chi=2.0 * ALL[name].moments(), nu=2.0)
    with pytest.raises(UnsupportedModel, match="no closed normaliser"):
        prior.predictive()


def test_predictive_draws_follow_the_predictive_distribution():
    pred = ef.Poisson.conjugate_prior(shape=3.0, rate=1.0).predictive()
    drawn = pred.sample(3000, seed=0)
    law = stats.nbinom(3.0, 0.5)
    assert abs(drawn.mean() - law.mean()) < 4.5 * law.std() / 3000**0.5
    drawn = ef.NormalGamma(1.0, 2.0, 3.0, 4.0).predictive().sample(3000, seed=0)
    assert stats.kstest(drawn, stats.t(6.0, 1.0, 2.0**0.5).cdf).pvalue > 0.001
    gaussians = ef.NormalInverseWishart([0.0, 1.0], 2.0, 8.0, np.eye(2)).sample(500, seed=1)
    spread = np.array([g.covariance_matrix for g in gaussians]).mean(axis=0)
    agree(spread, np.eye(2) / 5.0, atol=0.05)


# -- Markov fields ------------------------------------------------------------------------------------------------


def triangle():
    v = [mk.Variable(n, 2) for n in "abc"]
    features = [mk.Feature(x, [0.0, 1.0]) for x in v]
    features += [mk.Feature([v[i], v[j]], np.eye(2)) for i, j in ((0, 1), (1, 2), (0, 2))]
    return mk.local.LogLinear(features, [0.5, -0.3, 0.2, 0.8, -0.4, 0.6])


def test_a_markov_field_is_an_exponential_family():
    model = triangle()
    field = ef.MarkovField(model)
    agree(field.log_partition(), np.log(model.joint().values.sum()))
    agree(field.moments(), model.expected_features())
    h = 1e-5
    steps = np.eye(6) * h
    numeric = [
        (field.log_partition(model.weights + s) - field.log_partition(model.weights - s)) / (2 * h)
        for s in steps
    ]
    agree(numeric, field.moments(), rtol=1e-6)
    numeric = [(field.moments(model.weights + s) - field.moments(model.weights - s)) / (2 * h) for s in steps]
    agree(numeric, field.covariance(), rtol=1e-5, atol=1e-8)
    p = model.joint().normalize().values
    agree(field.entropy(), -(p * np.log(p)).sum())
    agree(field.conjugate_dual(field.moments()), -field.entropy(), rtol=1e-7)
    agree(field.with_moments(field.moments()).natural(), model.weights, atol=1e-7)
    assert field.n_free == 6
    assert field.log_prob({"a": 1, "b": 0, "c": 1}) == pytest.approx(np.log(p[1, 0, 1]))


def test_a_markov_field_is_fitted_by_moment_matching():
    field = ef.MarkovField(triangle())
    rows = field.sample(500, seed=5)
    fitted = field.fit(rows)
    agree(fitted.moments(), field.sufficient_statistics(rows).mean(axis=0), atol=1e-9)
    assert fitted.log_prob(rows).sum() >= field.log_prob(rows).sum()
    agree(field.fit(pd.DataFrame(rows)).natural(), fitted.natural())
    q = field.with_natural(field.natural() * 0.5)
    p = field.log_linear.joint().normalize().values
    r = q.log_linear.joint().normalize().values
    agree(field.kl(q), (p * np.log(p / r)).sum())


def test_the_indicators_of_a_network_are_its_marginals():
    mn = mk.MarkovNetwork({"a": 2, "b": 3}, [mk.Factor(["a", "b"], [[1.0, 2.0, 0.0], [3.0, 1.0, 4.0]])])
    field = ef.MarkovField(mn)
    agree(field.log_partition(), mn.log_partition())
    table = mn.joint().values / mn.joint().values.sum()
    agree(field.moments(), table[table > 0])
    assert field.log_prob({"a": 0, "b": 2}) == -np.inf
    agree(field.entropy(), -(table[table > 0] * np.log(table[table > 0])).sum())
    assert field.n_free == 4
    bn = mk.examples.sprinkler()
    assert ef.MarkovField(bn).log_partition() == pytest.approx(0.0, abs=1e-12)


def test_the_mean_parameters_of_a_grid_are_its_exact_marginals():
    couplings = {}
    for i, j in np.ndindex(4, 4):
        couplings |= {(f"x{i}{j}", f"x{i + 1}{j}"): 0.3} if i < 3 else {}
        couplings |= {(f"x{i}{j}", f"x{i}{j + 1}"): -0.2} if j < 3 else {}
    mn = mk.MarkovNetwork.ising(couplings, {"x00": 0.4})
    field = ef.MarkovField(mn)
    found = field.moments()
    table = mn.query(["x00", "x10"])
    place = [f.name for f in field.log_linear.features].index("[x00=-1, x10=1]")
    assert found[place] == pytest.approx(table[-1, 1], abs=1e-10)
    agree(field.log_partition(), mn.log_partition())


def test_a_markov_field_says_what_it_cannot_do():
    field = ef.MarkovField(triangle())
    with pytest.raises(InvalidArgument, match="marginal polytope"):
        field.with_moments([2.0, 0, 0, 0, 0, 0])
    with pytest.raises(InvalidArgument, match="labels"):
        field.mean  # noqa: B018
    with pytest.raises(InvalidArgument, match="no state for 'c'"):
        field.log_prob({"a": 0, "b": 1})
    big = ef.MarkovField(mk.MarkovNetwork.ising({(f"x{i}", f"x{i + 1}"): 0.1 for i in range(20)}))
    assert np.isfinite(big.log_partition())
    with pytest.raises(TooLarge):
        big.covariance()


# -- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: ef.Bernoulli(1.2), "0 <= probs <= 1"),
        (lambda: ef.Bernoulli(1.0).natural(), "no finite natural parameters"),
        (lambda: ef.Categorical([0.5, 0.6]), "sum to one"),
        (lambda: ef.Categorical([0.5, 0.5, 0.0]).natural(), "no finite natural parameters"),
        (lambda: ef.Bernoulli().natural_from_moments([1.0]), "strictly between"),
        (lambda: ef.Poisson(0.0), "positive"),
        (lambda: ef.Gamma(-1.0, 1.0), "shape of a Gamma"),
        (lambda: ef.Gaussian(0.0, 0.0), "variance"),
        (lambda: ef.MultivariateGaussian([0, 0], [[1, 2], [2, 1]]), "positive definite"),
        (lambda: ef.Exponential().with_natural([0.5]), "negative"),
        (lambda: ef.Gaussian().with_natural([0.5, 0.5]), "negative"),
        (lambda: ef.Gaussian().with_natural([0.5]), "2 numbers"),
        (lambda: ef.Gaussian().with_moments([2.0, 3.0]), "E\\[x\\^2\\] must be above"),
        (lambda: ef.Dirichlet([1, 1]).with_moments([-0.1, -0.1]), "less than one"),
        (lambda: ef.Gaussian.fit([2.0, 2.0]), "do not vary"),
        (lambda: ef.MultivariateGaussian.fit([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), "positive definite"),
        (lambda: ef.Poisson.fit([]), "at least one row"),
        (lambda: ef.Poisson.fit([[1, 2], [3, 4]]), "one value or row an observation"),
        (lambda: ef.Gaussian.fit([np.nan, 1.0]), "row 0 .* outside the support"),
        (lambda: ef.Poisson.fit([1, -1]), "row 1 .* outside the support"),
        (lambda: ef.Poisson.fit([1.0], weights=[-1.0]), "not negative"),
        (lambda: ef.Poisson.fit([1.0], weights=[0.0]), "positive weight"),
        (lambda: ef.Poisson().kl(ef.Exponential()), "two members of one family"),
        (lambda: ef.Multinomial(2, [0.5, 0.5]).kl(ef.Multinomial(3, [0.5, 0.5])), "two members"),
        (lambda: ef.ConjugatePrior(ef.Bernoulli(), [3.0], 2.0), "improper"),
        (lambda: ef.NormalInverseWishart([0, 0], 1.0, 0.5, np.eye(2)), "dof must be above"),
        (lambda: ef.Poisson(1.0).sample(-1), "number of draws"),
    ],
)
def test_bad_parameters_and_data_are_refused_in_one_sentence(wrong, message):
    with pytest.raises(InvalidArgument, match=message):
        wrong()


def test_bernoulli_and_categorical_are_tables_of_a_network():
    bn = mk.BayesianNetwork()
    bn.add("x", mk.exponential.Bernoulli(0.3))
    bn.add("y", mk.exponential.Categorical([0.2, 0.3, 0.5]))
    assert bn["x"].values.tolist() == [0.7, 0.3]
    assert np.allclose(bn["y"].values, [0.2, 0.3, 0.5])
    with pytest.raises(mk.errors.InvalidArgument, match="'z' has states and cannot be Poisson"):
        bn.add("z", mk.exponential.Poisson(2.0))


@pytest.mark.parametrize("name", [n for n in ALL if n != "multivariate"])
def test_fisher_information_is_the_curvature_of_the_divergence(name):
    member = ALL[name]
    at, step = member.natural(), 1e-4 * np.random.default_rng(0).normal(size=member.n_parameters)
    # the terms of third order cancel between the two sides
    both = member.kl(member.with_natural(at + step)) + member.kl(member.with_natural(at - step))
    assert both == pytest.approx(step @ member.fisher_information() @ step, rel=1e-4)


def test_a_natural_gradient_is_one_step_of_the_distribution_in_any_parameters():
    # F^-1 of a likelihood's gradient is the gap of the mean parameters, carried over by the derivative of the map
    for member, mean in [(ef.Gaussian(1.0, 2.0), [1.5, 4.0]), (ef.Categorical([0.2, 0.5, 0.3]), [0.3, 0.3])]:
        gap = np.asarray(mean) - member.moments()
        in_natural = member.natural_gradient(gap)
        assert member.covariance() @ in_natural == pytest.approx(gap)
        to_natural = np.linalg.inv(member.covariance())  # derivatives of eta by mu
        in_means = member.natural_gradient(to_natural.T @ gap, jacobian=to_natural)
        assert in_means == pytest.approx(gap)
        assert to_natural @ in_means == pytest.approx(in_natural)


def test_the_information_of_other_parameters_is_theirs():
    m, v = 1.3, 0.7  # natural parameters m / v and -1 / (2 v)
    turn = [[1 / v, -m / v**2], [0.0, 0.5 / v**2]]
    agree(ef.Gaussian(m, v).fisher_information(jacobian=turn), [[1 / v, 0.0], [0.0, 0.5 / v**2]])


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_natural_gradient_does_not_depend_on_the_unit(unit):
    scale = np.array([unit, unit**2])
    plain = ef.Gaussian(0.5, 2.0).natural_gradient([0.3, -0.2])
    turned = ef.Gaussian(0.5 * unit, 2.0 * unit**2).natural_gradient(np.array([0.3, -0.2]) * scale)
    assert turned * scale == pytest.approx(plain)


def test_an_overcomplete_family_takes_a_step_that_moves_its_mean_parameters():
    member = ef.MultivariateGaussian([0.5, -1.0], [[2.0, 0.3], [0.3, 1.0]])
    gap = np.array([0.1, 0.2, 0.3, 0.05, 0.05, 0.2])
    assert member.covariance() @ member.natural_gradient(gap) == pytest.approx(gap)
    with pytest.raises(InvalidArgument, match="6 numbers"):
        member.natural_gradient([1.0])
    with pytest.raises(InvalidArgument, match="a row for each of 6 natural parameters"):
        member.fisher_information(jacobian=np.eye(2))
