"""Coordinate ascent and stochastic variational inference against their fixed points."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.densities.closed_forms.plate_rows import PlateRows

RNG = np.random.default_rng(0)


@pytest.mark.slow
def test_cavi_is_at_the_fixed_point_of_a_normal_with_unknown_precision():
    m = mk.BayesianNetwork()
    m.add("tau", dist.Gamma(2.0, 1.0))
    m.add("mu", dist.Normal(1.0, 3.0))
    m.add("y", lambda mu, tau: dist.Normal(mu, tau**-0.5), plate="row")
    y = RNG.normal(2, 1.5, size=12)
    post = m.query(["mu", "tau"], given={"y": y}, engine="cavi")
    mean, sd, tau = post.mean("mu"), post.sd("mu"), post.mean("tau")
    a, b = 2 + 6, 1 + 0.5 * (((y - mean) ** 2).sum() + 12 * sd**2)
    assert tau == pytest.approx(a / b, rel=1e-6)
    assert post.sd("tau") == pytest.approx(np.sqrt(a) / b, rel=1e-6)
    assert sd**-2 == pytest.approx(1 / 9 + 12 * tau, rel=1e-6)
    assert mean == pytest.approx((1 / 9 + tau * y.sum()) / (1 / 9 + 12 * tau), rel=1e-6)
    grid = np.linspace(-8, 10, 20_001)
    b_at = 1 + 0.5 * ((y[:, None] - grid) ** 2).sum(axis=0)
    inner = gammaln(8) - 8 * np.log(b_at) - gammaln(2) - 6 * np.log(2 * np.pi)
    evidence = np.log(np.trapezoid(np.exp(inner + stats.norm(1, 3).logpdf(grid)), grid))
    assert evidence - 0.1 < post.info.log_evidence < evidence
    assert post.info.mass_bound == "lower"
    assert np.diff(post.info.details.bounds).min() > -1e-9
    by_hand = (
        stats.norm(mean, sd).entropy() + stats.gamma(a, scale=1 / b).entropy()
        + stats.norm(1, 3).logpdf(mean) - sd**2 / 18
        + stats.gamma(a, scale=1 / b).expect(lambda t: stats.gamma(2).logpdf(t) + 6 * np.log(t / (2 * np.pi)))
        - tau * (b - 1)
    )  # fmt: skip
    assert post.info.log_evidence == pytest.approx(by_hand, rel=1e-6)


@pytest.fixture(scope="module")
def mixture():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0.0, 5.0), plate={"k": 2})
    m.add("z", lambda: dist.Categorical(np.array([0.3, 0.7])), plate="row")
    m.add("y", lambda z, mu: dist.Normal(mu[z], 0.8), plate="row")
    y = np.r_[RNG.normal(-2, 0.8, size=90), RNG.normal(1, 0.8, size=210)]
    return m, y, m.query("mu", given={"y": y}, engine="cavi")


@pytest.mark.slow
def test_cavi_is_at_the_fixed_point_of_a_mixture(mixture):
    _, y, post = mixture
    mean, sd = post.mean(), post.sd()
    logs = np.log([0.3, 0.7]) - 0.5 * ((y[:, None] - mean) ** 2 + sd**2) / 0.64
    r = np.exp(logs - logs.max(axis=1, keepdims=True))
    r /= r.sum(axis=1, keepdims=True)
    precision = 1 / 25 + r.sum(axis=0) / 0.64
    assert np.allclose(sd**-2, precision, rtol=1e-5)
    assert np.allclose(mean, (r * y[:, None]).sum(axis=0) / 0.64 / precision, rtol=1e-5)
    assert np.allclose(np.sort(mean), [-2, 1], atol=0.3)
    assert np.diff(post.info.details.bounds).min() > -1e-9
    assert post.info.details.starts.max() == post.info.log_evidence
    assert np.allclose(np.asarray(post["z"]), r, atol=0.02)


@pytest.mark.slow
def test_svi_comes_to_the_answer_of_cavi_from_batches(mixture):
    m, y, best = mixture
    rows = np.tile(y, 10)
    engine = mk.engines.SVI(batch_size=200, passes=6.0, seed=3)
    post = m.query("mu", given={"y": rows}, engine=engine)
    order = np.argsort(post.mean())
    assert np.allclose(post.mean()[order], np.sort(best.mean()), atol=0.05)
    assert np.allclose(post.sd()[order] * np.sqrt(10), best.sd()[np.argsort(best.mean())], rtol=0.1)
    assert post.info.details.batch_size == 200
    assert post.info.details.passes == pytest.approx(6.0)
    with pytest.raises(InvalidArgument, match="not 'z'"):
        m.query("z", given={"y": rows}, engine=engine)


@pytest.mark.slow
def test_svi_with_rates_one_over_t_averages_a_pass_exactly():
    m = mk.BayesianNetwork()
    m.add("rate", dist.Gamma(2.0, 3.0))
    m.add("n", lambda rate, exposure: dist.Poisson(rate * exposure), plate="row")
    n, exposure = RNG.poisson(4.0, size=600), RNG.uniform(0.5, 2, size=600)
    engine = mk.engines.SVI(plate="row", batch_size=60, passes=1.0, kappa=1.0)
    post = m.query("rate", given={"n": n, "exposure": exposure}, engine=engine)
    assert post.mean() == pytest.approx((2 + n.sum()) / (3 + exposure.sum()), rel=1e-9)
    assert post.sd() == pytest.approx(np.sqrt(2 + n.sum()) / (3 + exposure.sum()), rel=1e-9)
    assert post.info.iterations == 10


def test_only_the_rows_of_a_batch_are_taken(tmp_path):
    x = np.memmap(tmp_path / "x.bin", np.float64, "w+", shape=(500, 3))
    x[:] = np.arange(1500).reshape(500, 3)
    m = mk.BayesianNetwork()
    m.add("beta", dist.Normal(0, 1), plate={"column": 3})
    m.add("s", mk.Input(), plate=["column", "row"])
    m.add("y", lambda x, beta, s: dist.Normal(x @ beta + s.sum(axis=0), 1.0), plate="row")
    given = {"y": np.arange(500.0), "x": x, "s": np.ones((3, 500)) * np.arange(500)}
    rows = PlateRows.of(m._problem(given), "row")
    assert rows.count == 500
    assert rows.axes == {"y": 0, "x": 0, "s": 1}
    taken = rows.take(np.array([3, 70]))
    assert taken["x"].tolist() == [[9, 10, 11], [210, 211, 212]]
    assert taken["s"].shape == (3, 2)
    assert taken["y"].tolist() == [3, 70]
    assert np.shares_memory(rows.problem.inputs["x"], x)  # the file is not copied


def test_what_mean_field_cannot_treat_is_refused_by_name():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 1))
    m.add("sigma", dist.HalfCauchy(1.0))
    m.add("y", lambda mu, sigma: dist.Normal(mu, sigma), plate="row")
    y = np.ones(40)
    for engine in ("cavi", "svi"):
        with pytest.raises(UnsupportedModel, match=f"{engine}.*'sigma'.*nuts"):
            m.query("mu", given={"y": y}, engine=engine)
    with pytest.raises(InvalidArgument, match=r"no plate 'rows'.*row"):
        m.query("mu", given={"y": y}, engine=mk.engines.SVI(plate="rows"))
    with pytest.raises(InvalidArgument, match="kappa"):
        mk.engines.SVI(kappa=0.3)
