"""Closed forms against the formulas of textbooks, and what has none."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betaln, gammaln

import markovia as mk
import markovia.distributions as dist
from markovia.errors import UnsupportedModel

positive = st.floats(0.2, 5.0)
seeds = st.integers(0, 10_000)
few = settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.generate])


def constant(x):
    """Return a constant that compiled code takes as an argument."""
    return np.asarray(x, dtype=float)


@pytest.fixture(scope="module")
def counts():
    m = mk.BayesianNetwork()
    m.add("p", lambda a, b: dist.Beta(a, b))
    m.add("k", lambda p: dist.Binomial(10, p), plate="row")
    m.add("rate", lambda a, b: dist.Gamma(a, b), plate={"group": 2})
    m.add("n", lambda rate, g: dist.Poisson(rate[g]), plate="row")
    m.add("wait", lambda rate, g: dist.Exponential(rate[g]), plate="row")
    m.add("share", lambda a: dist.Dirichlet(a * np.ones(3)))
    m.add("c", lambda share: dist.Categorical(share), plate="row")
    m.add("fair", dist.Uniform(0, 1))
    m.add("coin", lambda fair: dist.Bernoulli(fair), plate="row")
    return m


@pytest.mark.slow
@few
@given(positive, positive, seeds)
def test_independent_pairs_have_their_textbook_posteriors(counts, a, b, seed):
    rng = np.random.default_rng(seed)
    k, n, c, coin = (rng.integers(high, size=6) for high in (11, 5, 3, 2))
    g, wait = np.array([0, 1, 1, 0, 1, 1]), rng.exponential(size=6)
    evidence = {
        "k": k,
        "n": n,
        "wait": wait,
        "g": g,
        "c": c,
        "coin": coin,
        "a": constant(a),
        "b": constant(b),
    }
    post = counts.query(["p", "rate", "share", "fair"], given=evidence, engine="conjugate")
    assert post.info.engine == "conjugate"
    assert post.info.exact
    beta = stats.beta(a + k.sum(), b + 60 - k.sum())
    assert post.mean("p") == pytest.approx(beta.mean(), rel=1e-9)
    assert post.interval("p", 0.8) == pytest.approx(beta.interval(0.8), rel=1e-9)
    members = np.bincount(g)
    shape, speed = a + np.bincount(g, n) + members, b + members + np.bincount(g, wait)
    assert np.allclose(post.mean("rate"), shape / speed, rtol=1e-9)
    assert np.allclose(post.sd("rate"), np.sqrt(shape) / speed, rtol=1e-9)
    alpha = a + np.bincount(c, minlength=3)
    assert np.allclose(post.mean("share"), alpha / alpha.sum(), rtol=1e-9)
    assert np.allclose(post.sd("share"), stats.dirichlet(alpha).var() ** 0.5, rtol=1e-9)
    heads = coin.sum()
    evidence_by_hand = (
        stats.binom.logpmf(k, 10, 0.5).sum() + 60 * np.log(2) + betaln(a + k.sum(), b + 60 - k.sum()) - betaln(a, b)
        + (gammaln(shape) - shape * np.log(speed)).sum() - 2 * (gammaln(a) - a * np.log(b)) - gammaln(n + 1).sum()
        + gammaln(alpha).sum() - gammaln(alpha.sum()) - 3 * gammaln(a) + gammaln(3 * a)
        + betaln(1 + heads, 7 - heads)
    )  # fmt: skip
    assert post.info.log_evidence == pytest.approx(evidence_by_hand, rel=1e-9)
    at = {"p": 0.3, "rate": [1.0, 2.0], "share": [0.2, 0.3, 0.5], "fair": 0.6}
    by_hand = (
        beta.logpdf(0.3) + stats.gamma(shape, scale=1 / speed).logpdf([1.0, 2.0]).sum()
        + stats.dirichlet(alpha).logpdf([0.2, 0.3, 0.5]) + stats.beta(1 + heads, 7 - heads).logpdf(0.6)
    )  # fmt: skip
    assert post.log_prob(at) == pytest.approx(by_hand, rel=1e-9)


@pytest.fixture(scope="module")
def regressions():
    made = {}
    for scale in ("variance", "precision"):
        m = mk.BayesianNetwork()
        if scale == "variance":
            m.add("s", lambda a, b: dist.InverseGamma(a, b))
        else:
            m.add("s", lambda a, b: dist.Gamma(a, b))
        power = 0.5 if scale == "variance" else -0.5
        m.add("beta", lambda s, width, power=power: dist.Normal(0.5, width * s**power), plate="column")
        m.add("X", mk.Input(), plate=["row", "column"])
        m.add("y", lambda X, beta, s, power=power: dist.Normal(X @ beta, s**power), plate="row")
        made[scale] = m
    return made


@pytest.mark.slow
@few
@given(st.sampled_from(["variance", "precision"]), positive, positive, positive, seeds)
def test_regression_with_unknown_noise_is_student_t(regressions, scale, a, b, width, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(9, 3)), rng.normal(size=9) * 3
    evidence = {"X": X, "y": y, "a": constant(a), "b": constant(b), "width": constant(width)}
    post = regressions[scale].query(["beta", "s"], given=evidence, engine="conjugate")
    V = np.linalg.inv(np.eye(3) / width**2 + X.T @ X)
    m = V @ (X.T @ y + 0.5 / width**2)
    a_n = a + 4.5
    b_n = b + 0.5 * (y @ y + 0.75 / width**2 - m @ np.linalg.inv(V) @ m)
    root = stats.invgamma(a_n, scale=b_n) if scale == "variance" else stats.gamma(a_n, scale=1 / b_n)
    t = stats.t(2 * a_n, m, np.sqrt(b_n / a_n * np.diag(V)))
    assert post.info.engine == "conjugate"
    assert np.allclose(post.mean("beta"), m, rtol=1e-8, atol=1e-9)
    assert np.allclose(post.sd("beta"), t.std(), rtol=1e-8)
    assert np.allclose(post.interval("beta", 0.9), t.interval(0.9), rtol=1e-8, atol=1e-8)
    assert post.sd("s") == pytest.approx(root.std(), rel=1e-8)
    by_hand = gammaln(a_n) - gammaln(a) + a * np.log(b) - a_n * np.log(b_n) - 4.5 * np.log(2 * np.pi)
    by_hand += 0.5 * np.linalg.slogdet(V)[1] - 3 * np.log(width)
    assert post.info.log_evidence == pytest.approx(by_hand, rel=1e-8)
    s, beta = 0.7, np.array([0.1, -0.4, 1.0])
    spread = s if scale == "variance" else 1 / s
    joint = root.logpdf(s) + stats.multivariate_normal(m, V * spread).logpdf(beta)
    assert post.log_prob({"beta": beta, "s": s}) == pytest.approx(joint, rel=1e-8)
    alone = stats.multivariate_t(m, V * b_n / a_n, 2 * a_n).logpdf(beta)
    assert post["beta"].log_prob(beta) == pytest.approx(alone, rel=1e-8)
    assert np.allclose(post["beta"].log_prob(np.stack([beta, beta])), alone)


def test_each_group_has_its_own_scale():
    m = mk.BayesianNetwork()
    m.add("tau", dist.Gamma(2.0, 3.0), plate="group")
    m.add("mu", lambda tau: dist.Normal(0, (2 * tau) ** -0.5), plate="group")
    m.add("y", lambda mu, tau: dist.Normal(mu, tau**-0.5), plate=["row", "group"])
    y = np.random.default_rng(3).normal(size=(5, 4)) * [1, 2, 3, 4]
    post = m.query(["mu", "tau"], given={"y": y}, engine="conjugate")
    mean = y.sum(axis=0) / 7
    b = 3 + 0.5 * ((y**2).sum(axis=0) - 7 * mean**2)
    assert np.allclose(post.mean("mu"), mean)
    assert np.allclose(post.mean("tau"), 4.5 / b)
    assert np.allclose(post.sd("mu"), stats.t(9, mean, np.sqrt(b / 4.5 / 7)).std())
    drawn = post.sample(100_000, seed=1)
    assert np.allclose(drawn["mu"].std(axis=0), post.sd("mu"), rtol=0.05)
    gaps = (drawn["mu"] - mean) * np.sqrt(drawn["tau"] * 7)
    assert np.allclose(gaps.std(axis=0), 1.0, rtol=0.02)


@few
@given(positive, positive, seeds)
def test_jointly_normal_quantities_are_conditioned_exactly(chain, a, b, seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=5)
    post = chain.query(["level", "x"], given={"y": y, "a": constant(a), "b": constant(b)}, engine="conjugate")
    # level ~ N(1, a), x_0 ~ N(level, 1), x_t ~ N(0.9 x_{t-1} + level, b), y_t ~ N(2 x_t, 0.5)
    lower = np.eye(6)
    scales = np.array([a, 1.0, b, b, b, b])
    weights = np.zeros((6, 6))
    weights[1:, 0] = 1.0
    weights[np.arange(2, 6), np.arange(1, 5)] = 0.9
    inverse = np.linalg.inv(lower - weights)
    prior_mean, prior = inverse[:, 0], inverse @ np.diag(scales**2) @ inverse.T
    seen = np.hstack([np.zeros((5, 1)), 2 * np.eye(5)])
    total = seen @ prior @ seen.T + 0.25 * np.eye(5)
    gain = prior @ seen.T @ np.linalg.inv(total)
    mean = prior_mean + gain @ (y - seen @ prior_mean)
    covariance = prior - gain @ seen @ prior
    assert post.info.engine == "conjugate"
    assert np.allclose(np.r_[post.mean("level"), post.mean("x")], mean, atol=1e-8)
    assert np.allclose(np.r_[post.sd("level"), post.sd("x")], np.sqrt(np.diag(covariance)), rtol=1e-8)
    by_hand = stats.multivariate_normal(seen @ prior_mean, total).logpdf(y)
    assert post.info.log_evidence == pytest.approx(by_hand, rel=1e-8)


@pytest.fixture(scope="module")
def chain():
    m = mk.BayesianNetwork()
    m.add("level", lambda a: dist.Normal(1, a))
    m.add(
        "x",
        lambda before, level, b: dist.Normal(0.9 * before + level, b),
        plate="t",
        previous={"before": "x"},
        first=lambda level: dist.Normal(level, 1.0),
    )
    m.add("y", lambda x: dist.Normal(2 * x, 0.5), plate="t")
    return m


def test_flat_priors_give_least_squares():
    m = mk.BayesianNetwork()
    m.add("line", lambda: dist.ImproperUniform(dist.constraints.real_vector, (), (2,)))
    m.add("y", lambda line, x: dist.Normal(line[0] + line[1] * x, 2.0), plate="row")
    x = np.arange(6.0)
    y = 1 + 3 * x + np.sin(x)
    post = m.query("line", given={"y": y, "x": x}, engine="conjugate")
    slope, intercept = np.polyfit(x, y, 1)
    assert post.info.engine == "conjugate"
    assert np.allclose(post.mean(), [intercept, slope])
    assert np.allclose(post.sd()[1], 2.0 / np.sqrt(((x - x.mean()) ** 2).sum()))


def test_the_posterior_has_the_face_of_draws(regressions):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    evidence = {"X": X, "y": y, "a": constant(2), "b": constant(1), "width": constant(3)}
    post = regressions["variance"].query(["beta", "s"], given=evidence)
    assert post.draws["beta"].shape == (4, 1000, 3)
    flat = post.draws["beta"].reshape(-1, 3)
    assert np.allclose(flat.mean(axis=0), post.mean("beta"), atol=5 * post.sd("beta").max() / 60)
    assert np.allclose(np.quantile(flat, 0.95, axis=0), post.interval("beta", 0.9)[1], rtol=0.1)
    assert list(post.summary().index) == ["beta[0]", "beta[1]", "beta[2]", "s"]
    assert list(post.summary().columns) == ["mean", "sd", "5%", "95%"]
    assert post.to_pandas().shape == (4000, 4)
    assert "beta[2]" in str(post)
    assert "conjugate, exact" in repr(post)
    assert "<table" in post._repr_html_()
    assert post["s"].mean() == post.mean("s")
    assert post.log_likelihood()["y"].shape == (4, 1000, 9)
    assert "Student t" in post.info.note
    drawn = regressions["variance"].sample(3, given=evidence, seed=1)
    assert np.asarray(
        drawn["beta"].tolist() if hasattr(drawn["beta"], "tolist") else drawn["beta"]
    ).shape == (3, 3)
    assert regressions["variance"].log_evidence(evidence) == post.info.log_evidence


@pytest.mark.slow
def test_predictions_are_drawn_from_the_closed_form():
    m = mk.BayesianNetwork()
    m.add("rate", dist.Gamma(2.0, 1.0))
    m.add("n", lambda rate, exposure: dist.Poisson(rate * exposure), plate="row")
    exposure = np.array([1.0, 50.0])
    post = m.query("rate", given={"n": [3, 90], "exposure": exposure})
    assert post.mean() == pytest.approx(95 / 52)
    drawn = m.sample(4000, given=post, seed=0)
    assert np.allclose(np.asarray(drawn["n"]).mean(axis=0), 95 / 52 * exposure, rtol=0.05)
    variance = 95 / 52 * 50 * (1 + 50 / 52)  # negative binomial
    assert np.asarray(drawn["n"])[:, 1].var() == pytest.approx(variance, rel=0.1)


def no_closed_form(build, evidence, words):
    m = mk.BayesianNetwork()
    build(m)
    with pytest.raises(UnsupportedModel, match=words):
        m.query(next(iter(m.variables)), given=evidence, engine="conjugate")


Y = np.array([0.3, -1.0, 2.0, 0.7])


def test_a_scale_that_is_no_precision_is_refused():
    def build(m):
        m.add("mu", dist.Normal(0, 1))
        m.add("sigma", dist.Exponential(1.0))
        m.add("y", lambda mu, sigma: dist.Normal(mu, sigma), plate="row")

    no_closed_form(build, {"y": Y}, "'sigma'.*nuts")


def test_a_prior_that_is_not_scaled_with_the_noise_is_refused():
    def build(m):
        m.add("mu", dist.Normal(0, 1))
        m.add("tau", dist.Gamma(2.0, 1.0))
        m.add("y", lambda mu, tau: dist.Normal(mu, tau**-0.5), plate="row")

    no_closed_form(build, {"y": Y}, "'tau'.*nuts")


def test_a_change_point_is_refused_though_gradients_do_not_see_it():
    def build(m):
        m.add("when", dist.Normal(0, 1))
        m.add("y", lambda when, t: dist.Normal(1.0 * (t > when), 1.0), plate="row")

    no_closed_form(build, {"y": Y, "t": np.arange(4.0) - 2}, "'when'")


def test_products_of_unknown_numbers_and_discrete_ones_are_refused():
    def product(m):
        m.add("a", dist.Normal(0, 1))
        m.add("b", dist.Normal(0, 1))
        m.add("y", lambda a, b: dist.Normal(a * b, 1.0), plate="row")

    no_closed_form(product, {"y": Y}, "'a', 'b' are not normal together")

    def mixture(m):
        m.add("mu", dist.Normal(0, 1))
        m.add("z", dist.Categorical(np.ones(2) / 2), plate="row")
        m.add("y", lambda mu, z: dist.Normal(mu * z, 1.0), plate="row")

    no_closed_form(mixture, {"y": Y}, "'z' is discrete")


def test_a_flat_prior_without_data_is_refused():
    def build(m):
        m.add("mu", lambda: dist.ImproperUniform(dist.constraints.real, (), ()))

    no_closed_form(build, {}, "'mu' is improper")
