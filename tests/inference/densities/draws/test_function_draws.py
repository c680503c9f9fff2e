"""What answers say of nodes that are functions: at inputs, over draws and states, against formulas and quadrature."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, Unanswered, UnknownVariable

k = mk.covariances
X = np.array([0.3, -1.2, 2.0, 0.9, -0.4, 3.1])
Y = np.array([1.0, 0.2, -0.7, 0.4, 1.3, -0.2])
GIVEN = {"x": X, "y": Y}
THERE = np.array([0.0, 1.5, 8.0])


def rbf(a, b, length=1.2, variance=1.3):
    return variance * np.exp(-0.5 * ((np.asarray(a)[:, None] - np.asarray(b)) / length) ** 2)


def conditioned(length=1.2, noise=0.09, variance=1.3, there=THERE):
    """Return mean and covariance of the function at inputs, from the formula."""
    gain = rbf(there, X, length, variance) @ np.linalg.inv(
        rbf(X, X, length, variance) + noise * np.eye(len(X))
    )
    return gain @ Y, rbf(there, there, length, variance) - gain @ rbf(X, there, length, variance)


def evidence(length, noise=0.09, variance=1.3):
    return stats.multivariate_normal.logpdf(Y, np.zeros(6), rbf(X, X, length, variance) + noise * np.eye(6))


@pytest.fixture(scope="module")
def known():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.3), plate="row")
    return m, m.query("f", given=GIVEN)


def test_moments_are_those_of_the_formula(known):
    _, post = known
    mean, cov = conditioned()
    there = post.at(THERE)
    assert there.mean() == pytest.approx(mean, abs=1e-13)
    assert there.cov() == pytest.approx(cov, abs=1e-13)
    assert there.sd() == pytest.approx(np.sqrt(np.diag(cov)), abs=1e-13)
    assert post.at(0.0).mean() == pytest.approx(mean[0])
    assert np.ndim(post.at(0.0).mean()) == 0
    assert post.info.exact
    assert post.info.engine == "gaussian-process"
    assert post.info.note == "f summed out"
    assert post.info.log_evidence == pytest.approx(evidence(1.2), abs=1e-12)


def test_the_numbers_of_the_reference_table():
    for cov, log_evidence, mean, sd in (
        (k.RBF(length=1.0), -3.3602643363, -0.21661077, 0.40458324),
        (k.Matern52(length=1.0), -3.4051925874, -0.20786890, 0.51861839),
        (k.Periodic(1.0, 1.5), -4.5837120517, 0.12267824, 0.96085941),
    ):
        m = mk.BayesianNetwork()
        m.add("f", mk.GP(cov))
        m.add("y", lambda f, x: dist.Normal(f(x), 0.1**0.5), plate="row")
        post = m.query("f", given={"x": np.array([0.0, 0.5, 2.0]), "y": np.array([1.0, 0.2, -0.7])})
        found = post.info.log_evidence, post.at(1.0).mean(), post.at(1.0).sd()
        assert found == pytest.approx((log_evidence, mean, sd), abs=5e-9)


def test_the_face_of_a_posterior(known):
    _, post = known
    mean, cov = conditioned()
    sd = np.sqrt(np.diag(cov))
    there = post.at(THERE)
    low, high = there.interval(0.9)
    assert low == pytest.approx(stats.norm.ppf(0.05, mean, sd))
    assert high == pytest.approx(stats.norm.ppf(0.95, mean, sd))
    assert there.quantile(0.2) == pytest.approx(stats.norm.ppf(0.2, mean, sd))
    assert there.probability({"f": mk.Interval(0.0, np.inf)}) == pytest.approx(stats.norm.sf(0, mean, sd))
    values = np.array([0.5, -0.2, 0.1])
    assert there.log_prob(values) == pytest.approx(stats.multivariate_normal.logpdf(values, mean, cov))
    assert there.to_pandas().columns.tolist() == ["x", "mean", "sd", "low", "high"]
    draws = there.sample(20_000, seed=0)["f"]
    assert np.abs(draws.mean(0) - mean).max() < 5 * sd.max() / np.sqrt(20_000)
    assert np.abs(np.cov(draws.T) - cov).max() < 0.05
    assert "NodeFunction of f" in repr(post)


def test_functions_that_are_drawn_stay_themselves(known):
    _, post = known
    functions = post.draws(500, seed=0)
    first, again = functions(THERE), functions(np.array([0.0, 0.75]))
    assert np.abs(again[:, 0] - first[:, 0]).max() < 1e-3
    mean, cov = conditioned(there=np.array([0.0, 0.75]))
    assert np.abs(again.mean(0) - mean).max() < 5 * np.sqrt(np.diag(cov)).max() / np.sqrt(500)


def test_far_away_the_prior_comes_back(known):
    _, post = known
    assert post.at(1e6).mean() == pytest.approx(0.0, abs=1e-12)
    assert post.at(1e6).var() == pytest.approx(1.3)


@pytest.mark.parametrize("family", [dist.Exponential, dist.Poisson])
def test_children_that_nobody_saw_leave_the_answer_exact(family):
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.3), plate="row")
    m.add("later", lambda f, x: family(jnp.exp(f(x))), plate="row")
    m.add("cost", lambda later: 2.0 * later, plate="row")
    post = m.query("f", given=GIVEN)
    assert post.info.exact
    assert post.at(THERE).mean() == pytest.approx(conditioned()[0], abs=1e-12)


def test_points_interpolate_without_noise():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(k.RBF(length=0.5**0.5)))
    post = m.query("f", given={"f": mk.Points([0.0, 1.0], [0.0, 1.0])})
    assert post.at([0.0, 1.0]).mean() == pytest.approx([0.0, 1.0], abs=1e-8)
    assert post.at([0.0, 1.0]).sd() == pytest.approx([0.0, 0.0], abs=1e-4)
    assert (post.at(0.5).mean(), post.at(0.5).var()) == pytest.approx((0.569349, 0.113181), abs=1e-6)


def mixture():
    m = mk.BayesianNetwork()
    m.add("season", states=["no", "yes"], p=[0.7, 0.3])
    m.add("f", lambda season: mk.GP(1.3 * k.RBF(length=0.5 if season == "yes" else 1.2)))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.3), plate="row")
    return m, m.query("f", given=GIVEN)


def test_a_discrete_parent_makes_a_mixture():
    _, post = mixture()
    logs = np.array([np.log(0.7) + evidence(1.2), np.log(0.3) + evidence(0.5)])
    p = np.exp(logs - logsumexp(logs))
    (m0, c0), (m1, c1) = conditioned(), conditioned(0.5)
    mean = p[0] * m0 + p[1] * m1
    cov = p[0] * (c0 + np.outer(m0 - mean, m0 - mean)) + p[1] * (c1 + np.outer(m1 - mean, m1 - mean))
    assert post.weights == pytest.approx(p, abs=1e-12)
    assert post.at(THERE).mean() == pytest.approx(mean, abs=1e-12)
    assert post.at(THERE).cov() == pytest.approx(cov, abs=1e-12)
    median = post.at(THERE).quantile(0.5)
    halves = sum(
        w * stats.norm.cdf(median, a, np.sqrt(np.diag(c)))
        for w, a, c in zip(p, (m0, m1), (c0, c1), strict=True)
    )
    assert halves == pytest.approx(0.5, abs=1e-9)


@pytest.mark.slow
def test_predictions_below_a_discrete_parent_are_of_its_states():
    m, post = mixture()
    there = post.at(THERE)
    drawn = m.sample(1000, given=post, inputs={"x": THERE}, seed=0)["y"].to_numpy()
    assert np.abs(drawn.mean(0) - there.mean()).max() < 5 * np.sqrt((there.var() + 0.09).max() / 1000)


def test_several_functions_are_asked_for_by_name():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("g", mk.GP(k.RBF(length=0.3)))
    m.add("y", lambda f, g, x: dist.Normal(f(x) + g(x), 0.3), plate="row")
    post = m.query(["f", "g"], given=GIVEN)
    S = rbf(X, X) + rbf(X, X, 0.3, 1.0) + 0.09 * np.eye(6)
    assert post.at("g", THERE).mean() == pytest.approx(
        rbf(THERE, X, 0.3, 1.0) @ np.linalg.solve(S, Y), abs=1e-12
    )
    assert post["f"].at(THERE).mean() == pytest.approx(rbf(THERE, X) @ np.linalg.solve(S, Y), abs=1e-12)
    with pytest.raises(InvalidArgument, match="say of which"):
        post.at(THERE)
    with pytest.raises(UnknownVariable):
        post.at("h", THERE)
    with pytest.raises(InvalidArgument, match=r"post.at\('f', x\)"):
        post.mean("f")
    assert "f, g summed out" in repr(post)


def test_leave_one_out_is_that_of_the_formula(known):
    _, post = known
    found = post.log_likelihood()["y"].ravel()
    for i in range(6):
        others = np.arange(6) != i
        S = rbf(X, X) + 0.09 * np.eye(6)
        gain = S[i, others] @ np.linalg.inv(S[np.ix_(others, others)])
        mean, var = gain @ Y[others], S[i, i] - gain @ S[others, i]
        assert found[i] == pytest.approx(stats.norm.logpdf(Y[i], mean, np.sqrt(var)), abs=1e-12)


def test_a_pickle_keeps_the_function_without_the_model(known):
    _, post = known
    again = pickle.loads(pickle.dumps(post))
    assert again.at(THERE).mean() == pytest.approx(post.at(THERE).mean(), abs=1e-13)
    assert again.at(THERE).cov() == pytest.approx(post.at(THERE).cov(), abs=1e-13)
    with pytest.raises(Unanswered):
        again.sample()


def test_the_best_explanation_has_the_function_too(known):
    model, post = known
    best = model.map(given=GIVEN)
    assert best["f"].at(THERE).mean() == pytest.approx(post.at(THERE).mean(), abs=1e-12)


# -- not normal --------------------------------------------------------------------------------------------------------

LABELS = {"x": np.array([0.0, 0.5, 2.0]), "y": np.array([1, 0, 1])}


def labelled():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(k.RBF(length=1.0)))
    m.add("y", lambda f, x: dist.Bernoulli(logits=f(x)), plate="row")
    return m


def by_quadrature(there=(), nodes=40):
    """Return the log evidence of labels, means and variances of the function, by Gauss-Hermite quadrature over noise."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack([g.ravel() for g in np.meshgrid(z, z, z, indexing="ij")])
    weight = np.einsum("a,b,c->abc", w, w, w).ravel() / (2 * np.pi) ** 1.5
    K = rbf(LABELS["x"], LABELS["x"], 1.0, 1.0)
    f = np.linalg.cholesky(K) @ grid
    signs = np.array([1.0, -1.0, 1.0])[:, None]
    mass = weight * np.prod(1.0 / (1.0 + np.exp(-signs * f)), axis=0)
    total = mass.sum()
    gain = rbf(np.asarray(there), LABELS["x"], 1.0, 1.0) @ np.linalg.inv(K)
    means = gain @ f
    centre = means @ mass / total
    rest = 1.0 - np.einsum("ij,ij->i", gain, rbf(np.asarray(there), LABELS["x"], 1.0, 1.0))
    return np.log(total), centre, (means - centre[:, None]) ** 2 @ mass / total + rest


@pytest.mark.slow
def test_laplace_has_the_evidence_and_the_mode_of_the_reference_table():
    post = labelled().query("f", given=LABELS, engine="laplace")
    assert post.info.log_evidence == pytest.approx(-2.30442346, abs=2e-8)
    assert post.info.details.mode["f"] == pytest.approx([0.0841996, 0.0474415, 0.3194535], abs=2e-6)
    assert "f whitened at 3 places (y is Bernoulli" in post.info.note


@pytest.mark.slow
def test_whitened_laplace_is_exact_where_the_child_is_all_but_normal():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("y", lambda f, x: dist.StudentT(1e7, f(x), 0.3), plate="row")
    post = m.query("f", given=GIVEN, engine="laplace")
    assert post.info.log_evidence == pytest.approx(evidence(1.2), abs=1e-5)


@pytest.mark.slow
def test_inducing_inputs_at_the_data_are_exact():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2), inducing=X))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.3), plate="row")
    post = m.query("f", given=GIVEN, engine="laplace")
    assert post.info.log_evidence == pytest.approx(evidence(1.2), abs=1e-5)
    assert "inducing" in post.info.note


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["nuts", "advi"])
def test_labels_by_samplers_agree_with_quadrature(engine):
    there = np.array([0.0, 0.5, 1.0, 2.0])
    _, mean, var = by_quadrature(there)
    post = labelled().query("f", given=LABELS, engine=engine)
    found = post.at(there)
    assert np.abs(found.mean() - mean).max() < (0.06 if engine == "nuts" else 0.15)
    assert found.var() == pytest.approx(var, rel=0.1 if engine == "nuts" else 0.3)


def test_quadrature_has_the_exact_evidence_of_the_reference_table():
    assert by_quadrature(nodes=30)[0] == pytest.approx(-2.28398257, abs=1e-8)


# -- inside NUTS -------------------------------------------------------------------------------------------------------


def hierarchical():
    m = mk.BayesianNetwork()
    m.add("length", dist.LogNormal(0, 0.5))
    m.add("share", dist.Beta(2, 2))
    m.add("f", lambda length, share: mk.GP(2.0 * share * k.RBF(length)))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.3), plate="row")
    return m


def on_a_grid(there=THERE):
    """Return posterior means of length and share, and mean and variance of the function, by quadrature over both."""
    t, w = np.polynomial.legendre.leggauss(40)
    log_length, share = 1.0 * t * 2.5, 0.5 * (t + 1)
    logs = np.array(
        [
            [
                stats.norm.logpdf(a, 0, 0.5)
                + stats.beta.logpdf(s, 2, 2)
                + evidence(np.exp(a), variance=2 * s)
                for s in share
            ]
            for a in log_length
        ]
    )
    p = np.exp(logs - logs.max()) * np.outer(w, w)
    p /= p.sum()
    each = [[conditioned(np.exp(a), variance=2 * s, there=there) for s in share] for a in log_length]
    mean = sum(p[i, j] * each[i][j][0] for i in range(40) for j in range(40))
    second = sum(
        p[i, j] * (np.diag(each[i][j][1]) + each[i][j][0] ** 2) for i in range(40) for j in range(40)
    )
    length = (p.sum(1) @ np.exp(log_length), p.sum(1) @ np.exp(2 * log_length))
    return length, p.sum(0) @ share, mean, second - mean**2


@pytest.mark.slow
def test_draws_of_hyper_parameters_agree_with_quadrature():
    (first, _), share, _, _ = on_a_grid()
    engine = mk.engines.NUTS(seed=0, draws=500, warmup=300, progress=False)
    post = hierarchical().query(["length", "share"], given=GIVEN, engine=engine)
    summary = post.summary()
    assert (np.abs(summary["mean"] - np.array([first, share])) < 4 * summary["mcse"]).all()
    assert post.info.note == "f summed out"
    assert not post.info.exact


@pytest.mark.slow
def test_all_that_follows_from_draws_agrees_with_quadrature_for_several_seeds():
    (first, second), share, mean, var = on_a_grid()
    m = hierarchical()
    for seed in (1, 2, 3):
        engine = mk.engines.NUTS(seed=seed, draws=500, warmup=300, progress=False)
        post = m.query(["length", "share"], given=GIVEN, engine=engine)
        summary = post.summary()
        wanted = np.array([first, share])
        assert (np.abs(summary["mean"] - wanted) < 4 * summary["mcse"]).all()
        assert post.sd("length") == pytest.approx(np.sqrt(second - first**2), rel=0.2)
        assert not post.stats.diverging.any()
        there = post.at(THERE)
        assert np.abs(there.mean() - mean).max() < 0.06
        assert there.var() == pytest.approx(var, rel=0.15)
    drawn = m.sample(1000, given=post, inputs={"x": THERE}, seed=0)["y"].to_numpy()
    assert np.abs(drawn.mean(0) - mean).max() < 5 * np.sqrt((var.max() + 0.09) / 1000) + 0.05
    assert np.abs(drawn.var(0) - var - 0.09).max() < 0.15
    loo = post.loo()
    assert np.isfinite(loo.elpd)
    assert len(loo.pointwise) == 6
    kept = pickle.loads(pickle.dumps(post["f"]))
    assert np.abs(kept.at(THERE).mean() - mean).max() < 0.2
    with pytest.raises(Unanswered, match="know their model no more"):
        pickle.loads(pickle.dumps(post)).at(THERE)
    best = m.map(given=GIVEN)
    assert 0 < best["share"] < 1
    assert np.isfinite(best["f"].at(THERE).mean()).all()


@pytest.mark.slow
def test_counts_never_diverge():
    """Centred, this model had 1,479 diverging trajectories of 4,000."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 10, 20))
    m = mk.BayesianNetwork()
    m.add("length", dist.LogNormal(0, 1))
    m.add("scale", dist.HalfNormal(2))
    m.add("f", lambda length, scale: mk.GP(scale**2 * k.RBF(length)))
    m.add("y", lambda f, x: dist.Poisson(jnp.exp(f(x))), plate="row")
    post = m.query(["length", "scale"], given={"x": x, "y": rng.poisson(np.exp(np.sin(x)))})
    assert int(post.stats.diverging.sum()) == 0
    assert "whitened at 20 places" in post.info.note
    assert np.abs(post.at(x).mean() - np.sin(x)).mean() < 0.4
