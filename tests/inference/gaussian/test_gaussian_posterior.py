"""The face of a Gaussian or mixture posterior: moments, intervals, densities, draws, text."""

import numpy as np
import pytest
from scipy.stats import norm

import markovia as mk


@pytest.fixture
def mixed():
    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.3, "b": 0.7})
    m.add("x", {"a": mk.LinearGaussian(0, {}, 1), "b": mk.LinearGaussian(4, {}, 4)}, parents=["d"])
    m.add("y", mk.LinearGaussian(1, {"x": 2}, 0.5))
    return m


def test_a_mixture_has_the_moments_distribution_and_quantiles_of_its_components(mixed):
    p = mixed.query("x")
    assert p.mean() == pytest.approx(2.8)
    assert p.var() == pytest.approx(0.3 * 1 + 0.7 * (4 + 16) - 2.8**2)
    assert p.sd() == pytest.approx(np.sqrt(p.var()))
    assert p.cdf(1.0) == pytest.approx(0.3 * norm.cdf(1) + 0.7 * norm.cdf(1, 4, 2))
    assert p.cdf(p.quantile(0.3)) == pytest.approx(0.3, abs=1e-12)
    low, high = p.interval(0.8)
    assert (p.cdf(low), p.cdf(high)) == pytest.approx((0.1, 0.9))
    assert p.interval("x", 0.8) == (low, high)
    grid = np.array([-1.0, 2.0])
    expected = np.log(0.3 * norm.pdf(grid) + 0.7 * norm.pdf(grid, 4, 2))
    np.testing.assert_allclose(p.log_prob(grid), expected, atol=1e-12)
    assert p.log_prob(2.0) == pytest.approx(expected[1])


def test_a_joint_posterior_hands_out_its_parts(mixed):
    p = mixed.query(["y", "d", "x"])
    assert p.names == ("y", "d", "x")
    assert p.states == [{"d": "a"}, {"d": "b"}]
    assert p["d"]["b"] == pytest.approx(0.7)
    assert p["x"].mean() == pytest.approx(2.8)
    assert p.marginal(["x", "y"]).names == ("x", "y")
    variance = p.var("x")
    np.testing.assert_allclose(
        p.covariance(["x", "y"]), [[variance, 2 * variance], [2 * variance, 4 * variance + 0.5]]
    )
    assert p.correlation("x", "y") == pytest.approx(2 * variance / np.sqrt(variance * (4 * variance + 0.5)))
    point = {"x": 1.0, "y": 3.5, "d": "b"}
    expected = np.log(0.7) + norm.logpdf(1, 4, 2) + norm.logpdf(3.5, 3, np.sqrt(0.5))
    assert p.log_prob(point) == pytest.approx(expected)
    rows = p.sample(30_000, seed=0)
    assert (rows["d"] == "b").mean() == pytest.approx(0.7, abs=4 * 0.46 / np.sqrt(30_000))
    assert rows["x"].mean() == pytest.approx(2.8, abs=4 * np.sqrt(variance / 30_000))
    np.testing.assert_allclose(p.log_prob({n: v[:2] for n, v in rows.items()}).shape, (2,))


def test_one_gaussian_has_an_entropy_and_a_mixture_is_told_apart(mixed):
    one = mixed.query("x", given={"d": "b"})
    assert one.entropy() == pytest.approx(0.5 * np.log(2 * np.pi * np.e * 4))
    assert one.entropy(base=2) == pytest.approx(one.entropy() / np.log(2))
    with pytest.raises(mk.MarkoviaError, match="no closed form"):
        mixed.query("x").entropy()


def test_it_prints_as_a_small_table(mixed):
    p = mixed.query(["x", "d"])
    assert str(p).splitlines()[0].split() == ["mean", "sd", "5%", "95%"]
    assert str(p).splitlines()[-1] == "d  a 0.3, b 0.7"
    assert "mixture of 2 Gaussians" in repr(p)
    assert "<td>x</td>" in p._repr_html_()
    frame = p.to_pandas()
    assert list(frame.index) == ["x"]
    assert frame.loc["x", "mean"] == pytest.approx(2.8)
    assert "mean 2.8, sd 2.5" in str(mixed.marginals())
    assert "2 components" in str(mixed.marginals())


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda p: p.mean(), "name one of"),
        (lambda p: p.mean("d"), "'d' has states"),
        (lambda p: p.mean("q"), "unknown variable 'q'"),
        (lambda p: p.interval("x", 2.0), "between 0 and 1"),
        (lambda p: p.quantile(1.0, "x"), "between 0 and 1"),
        (lambda p: p.log_prob(1.0), "mapping"),
        (lambda p: p.log_prob({"x": 1.0}), "needs a value for 'd'"),
        (lambda p: p.marginal("q"), "unknown variable 'q'"),
    ],
)
def test_what_it_cannot_say_is_refused(mixed, act, message):
    with pytest.raises(mk.MarkoviaError, match=message):
        act(mixed.query(["x", "d"]))


def test_a_number_that_is_certain_has_no_spread(mixed):
    p = mixed.do(x=2.0).query("x")
    assert (p.mean(), p.sd(), p.interval()) == (2.0, 0.0, (2.0, 2.0))
    assert (p.cdf(1.9), p.cdf(2.0)) == (0.0, 1.0)
