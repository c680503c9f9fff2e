"""Gaussian fields under a Wishart prior, against SciPy, products over cliques, and numerical integration."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import markovia as mk

PATH = [("a", "b"), ("b", "c"), ("b", "d"), ("c", "d")]  # cliques ab, bcd; separator b
SQUARE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]


def field(edges, names):
    precision = dict.fromkeys(names, 4.0) | dict.fromkeys(edges, 1.0)
    return mk.GaussianMarkovNetwork(precision, names=list(names))


def some_rows(names, n=12, seed=0):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(len(names), len(names)))
    return pd.DataFrame(rng.normal(size=(n, len(names))) @ mix + 1.0, columns=list(names))


def some_prior(names, seed=1):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(len(names), len(names) + 2))
    scale = pd.DataFrame(half @ half.T, index=list(names), columns=list(names))
    return mk.priors.Wishart(degrees=3.5, scale=scale, center=0.5, rows=1.7)


def complete(names):
    return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]


def posterior(edges, names, rows, prior):
    return field(edges, names).fit(rows[list(names)], prior=prior).posterior_


def test_the_complete_graph_has_the_wishart_posterior_of_scipy():
    names, prior = "abc", some_prior("abc")
    rows = some_rows(names)
    post = posterior(complete(names), names, rows, prior)
    # prior times likelihood over posterior is the evidence, at any mean and precision
    rng = np.random.default_rng(2)
    half = rng.normal(size=(3, 5))
    k, mu = half @ half.T, rng.normal(size=3)

    def log_density(degrees, scale, center, known):
        wishart = stats.wishart(degrees + 2, np.linalg.inv(scale))
        return wishart.logpdf(k) + stats.multivariate_normal(center, np.linalg.inv(known * k)).logpdf(mu)

    wanted = (
        log_density(3.5, prior.scale.to_numpy(), np.full(3, 0.5), 1.7)
        + stats.multivariate_normal(mu, np.linalg.inv(k)).logpdf(rows.to_numpy()).sum()
        - log_density(post.degrees, post.scale, post.center, post.rows)
    )
    assert post.log_evidence == pytest.approx(wanted, rel=1e-10)
    exact = stats.wishart(post.degrees + 2, np.linalg.inv(post.scale))
    np.testing.assert_allclose(post.mean(), exact.mean(), rtol=1e-10)
    np.testing.assert_allclose(post.mode(), exact.mode(), rtol=1e-8)
    drawn, means = post.sample(20_000, seed=0)
    error = np.sqrt(exact.var() / 20_000)
    assert (np.abs(drawn.mean(axis=0) - exact.mean()) < 4.5 * error).all()
    np.testing.assert_allclose(drawn.var(axis=0), exact.var(), rtol=0.08)
    covariance = post.scale / (post.degrees - 2) / post.rows
    np.testing.assert_allclose(np.cov(means.T), covariance, atol=0.06 * covariance.max())
    assert (np.abs(means.mean(axis=0) - post.center) < 4.5 * np.sqrt(np.diag(covariance) / 20_000)).all()


def test_a_decomposable_graph_is_a_product_over_cliques_divided_by_separators():
    names, prior, rows = "abcd", some_prior("abcd"), some_rows("abcd")
    post = posterior(PATH, names, rows, prior)

    def part(some):
        return posterior(complete(some), some, rows, prior)

    blocks = {"ab": 1, "bcd": 1, "b": -1}
    assert post.log_evidence == pytest.approx(
        sum(s * part(b).log_evidence for b, s in blocks.items()), rel=1e-10
    )
    wanted = np.zeros((4, 4))
    for block, sign in blocks.items():
        at = [names.index(x) for x in block]
        wanted[np.ix_(at, at)] += sign * part(block).mean()
    np.testing.assert_allclose(post.mean(), wanted, atol=1e-12)
    drawn, _ = post.sample(20_000, seed=1)
    assert (drawn[:, 0, 2:] == 0.0).all()
    assert (drawn[:, 2:, 0] == 0.0).all()
    assert np.linalg.eigvalsh(drawn)[:, 0].min() > 0
    np.testing.assert_allclose(drawn.mean(axis=0), wanted, atol=5 * drawn.std(axis=0).max() / np.sqrt(20_000))
    inverse = np.linalg.inv(drawn).mean(axis=0)  # every clique's covariance is inverse Wishart
    expected = post.scale / (post.degrees - 2)
    for block in ("ab", "bcd"):
        at = np.ix_(*[[names.index(x) for x in block]] * 2)
        np.testing.assert_allclose(inverse[at], expected[at], atol=0.02 * expected.max())
    fitted = field(PATH, names).fit(rows, prior=prior)
    np.testing.assert_allclose(fitted.precision.toarray(), wanted, atol=1e-12)
    assert sorted(fitted.edges) == sorted(PATH)


def test_the_evidence_is_the_integral_over_precisions():
    scale = np.array([[1.5, 0.4], [0.4, 0.7]])
    rows = some_rows("ab", 4)
    x = rows.to_numpy()
    post = posterior(
        [("a", "b")], "ab", rows, mk.priors.Wishart(degrees=2.5, scale=scale, center=0.0, rows=2.0)
    )
    s = np.linspace(-9, 5, 141)
    u, v, z = np.meshgrid(s, s, np.linspace(-7, 7, 141), indexing="ij")
    w = np.tanh(z)
    k = [[np.exp(u), w * np.exp((u + v) / 2)], [w * np.exp((u + v) / 2), np.exp(v)]]
    log_det = u + v + np.log1p(-(w**2))
    prior = 0.25 * log_det - 0.5 * sum(k[i][j] * scale[i, j] for i in (0, 1) for j in (0, 1))
    prior = np.exp(prior + 1.5 * (u + v)) * (1 - w**2)  # with the Jacobian of these coordinates
    among = (
        np.eye(4) + 0.5
    )  # covariance of the rows, the mean integrated out, in units of one over the precision
    products = x.T @ np.linalg.inv(among) @ x
    logs = -4 * np.log(2 * np.pi) - np.linalg.slogdet(among)[1] + 2 * log_det
    logs = logs - 0.5 * sum(k[i][j] * products[i, j] for i in (0, 1) for j in (0, 1))
    found = np.log((prior * np.exp(logs)).sum() / prior.sum())
    assert post.log_evidence == pytest.approx(found, abs=1e-4)


def test_other_graphs_have_the_mode_and_say_what_they_lack():
    prior, rows = some_prior("abcd"), some_rows("abcd")
    fitted = field(SQUARE, "abcd").fit(rows, prior=prior)
    post = fitted.posterior_
    assert not post.decomposable
    wanted = post.scale / (post.degrees - 2)
    precision = fitted.precision.toarray()
    np.testing.assert_allclose(precision, post.mode(), rtol=1e-12)
    assert precision[0, 2] == precision[1, 3] == 0.0
    inverse = np.linalg.inv(precision)  # the gradient of the log density is zero on edges and diagonal
    for i, j in [(0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (1, 2), (2, 3), (3, 0)]:
        assert inverse[i, j] == pytest.approx(wanted[i, j], rel=1e-8)
    for ask in (post.mean, lambda: post.sample(3), lambda: post.log_evidence):
        with pytest.raises(mk.errors.Unanswered, match=r"decomposable .* graphs only; mode"):
            ask()


def test_few_rows_and_no_scale_are_enough_and_nonsense_is_refused():
    rows = some_rows("abc", 3)
    post = posterior(complete("abc"), "abc", rows, mk.priors.Wishart())
    np.testing.assert_allclose(post.scale, 3 * rows.cov(ddof=0) + np.diag(3 * rows.var(ddof=0)), rtol=1e-10)
    np.testing.assert_allclose(post.center, rows.mean(), rtol=1e-12)
    assert field(PATH, "abcd").fit(some_rows("abcd")).posterior_ is None
    with pytest.raises(mk.errors.InvalidArgument, match="degrees= is a number, above 0"):
        mk.priors.Wishart(degrees=0)
    with pytest.raises(
        mk.errors.InvalidArgument, match="symmetric, positive definite matrix with a row for each of 3"
    ):
        field([], "abc").fit(rows, prior=mk.priors.Wishart(scale=-np.eye(3)))
    with pytest.raises(mk.errors.InvalidArgument, match="center= of a Wishart prior"):
        field([], "abc").fit(rows, prior=mk.priors.Wishart(center=[0.0, 1.0]))
    with pytest.raises(mk.errors.InvalidArgument, match=r"or mk.priors.Wishart"):
        field([], "abc").fit(rows, prior="wishart")
