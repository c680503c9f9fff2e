"""Adaptive rejection sampling: exact draws from any log-concave density, a sentence for any other."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from markovia.errors import InvalidArgument
from markovia.inference.theory import adaptive_rejection
from markovia.monte_carlo import adaptive_rejection_sample

EVERYWHERE = (-np.inf, np.inf)
DENSITIES = {
    "normal": (lambda x: -(x**2) / 2, EVERYWHERE, stats.norm),
    "narrow and far": (lambda x: -(((x - 1234.5) / 1e-4) ** 2) / 2, EVERYWHERE, stats.norm(1234.5, 1e-4)),
    "tail": (lambda x: -(x**2) / 2, (5.0, np.inf), stats.truncnorm(5, np.inf)),
    "both ends": (lambda x: -(x**2) / 2, (-1.0, 3.0), stats.truncnorm(-1, 3)),
    "gamma": (lambda x: 1.5 * np.log(x) - x, (0.0, np.inf), stats.gamma(2.5)),
    "large shape": (lambda x: 1e6 * np.log(x) - x, (0.0, np.inf), stats.gamma(1e6 + 1)),
    "beta": (lambda x: 2 * np.log(x) + 3 * np.log1p(-x), (0.0, 1.0), stats.beta(3, 4)),
    "straight lines": (lambda x: -np.abs(x), EVERYWHERE, stats.laplace),
    "zero where not said": (lambda x: np.where(x < 0, -np.inf, -3 * x), EVERYWHERE, stats.expon(scale=1 / 3)),
    "a step": (lambda x: np.where((x < 0) | (x > 1), -np.inf, 0.0), EVERYWHERE, stats.uniform),
    "gumbel": (lambda x: -x - np.exp(-x), EVERYWHERE, stats.gumbel_r),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_draws_follow_the_density_and_nearly_all_are_kept(name):
    log_density, support, law = DENSITIES[name]
    found = adaptive_rejection_sample(log_density, 20_000, support, seed=1)
    assert stats.kstest(found.draws, law.cdf).pvalue > 1e-3
    assert len(found.draws) == 20_000
    assert found.acceptance > 0.95
    assert (found.draws > support[0]).all()
    assert (found.draws < support[1]).all()


def test_a_density_may_rise_up_to_the_end_of_its_support():
    found = adaptive_rejection_sample(lambda x: 2 * x, 20_000, (-np.inf, 0.0), seed=1)
    assert stats.kstest(-found.draws, stats.expon(scale=0.5).cdf).pvalue > 1e-3


def test_the_estimated_mass_is_the_integral():
    for log_density, support in [
        (lambda x: -(x**4), (-1.0, np.inf)),
        (lambda x: 3 * np.log(x) - x**2 + 7, (0.0, np.inf)),
    ]:
        true = integrate.quad(lambda t, h=log_density: np.exp(h(np.array(t))), *support)[0]
        found = adaptive_rejection_sample(log_density, 20_000, support, seed=0)
        assert np.exp(found.log_mass) == pytest.approx(true, rel=3e-3)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_draws_go_with_the_unit_and_repeat_with_the_seed(unit):
    plain = adaptive_rejection_sample(lambda x: -(np.abs(x) ** 1.5), 500, seed=7)
    turned = adaptive_rejection_sample(lambda x: -(np.abs(x / unit) ** 1.5), 500, seed=7)
    assert turned.draws / unit == pytest.approx(plain.draws, rel=1e-6)
    again = adaptive_rejection_sample(lambda x: -(np.abs(x) ** 1.5), 500, seed=7)
    assert (again.draws == plain.draws).all()


def test_draws_are_as_exact_under_an_envelope_that_stays_loose(monkeypatch):
    monkeypatch.setattr(adaptive_rejection, "POINTS", 0)
    monkeypatch.setattr(adaptive_rejection, "GRID", 4)
    found = adaptive_rejection_sample(lambda x: 1.5 * np.log(x) - x, 50_000, (0.0, np.inf), seed=2)
    assert found.acceptance < 0.8
    assert stats.kstest(found.draws, stats.gamma(2.5).cdf).pvalue > 1e-2
    assert found.log_mass == pytest.approx(gammaln(2.5), abs=0.02)


@pytest.mark.parametrize(
    "log_density",
    [
        lambda x: -np.log1p(x**2),
        lambda x: np.logaddexp(-((x - 3) ** 2) / 2, -((x + 3) ** 2) / 2),
        lambda x: np.logaddexp(-((x - 30) ** 2) / 2, -((x + 30) ** 2) / 2),
        lambda x: np.where((np.abs(x) < 1) | (np.abs(x) > 2), -(x**2), -np.inf),
    ],
    ids=["Cauchy", "two modes", "two modes far apart", "a gap"],
)
def test_a_density_that_is_not_log_concave_is_refused(log_density):
    with pytest.raises(InvalidArgument, match=r"not log-concave near -?\d"):
        adaptive_rejection_sample(log_density, 1000, seed=0)


def test_what_cannot_be_drawn_from_is_said_in_a_sentence():
    with pytest.raises(InvalidArgument, match="does not fall towards both ends; give its support="):
        adaptive_rejection_sample(lambda x: 0.0 * x, 10)
    with pytest.raises(InvalidArgument, match="no point with a density was found"):
        adaptive_rejection_sample(lambda x: np.where(np.abs(x - 50.5) < 0.4, 0.0, -np.inf), 10)
    here = adaptive_rejection_sample(
        lambda x: np.where(np.abs(x - 50.5) < 0.4, 0.0, -np.inf), 2000, start=50.5, seed=0
    )
    assert stats.kstest(here.draws, stats.uniform(50.1, 0.8).cdf).pvalue > 1e-3
    with pytest.raises(InvalidArgument, match="no number below infinity at"):
        adaptive_rejection_sample(lambda x: np.log(x) - x, 10)
    with pytest.raises(InvalidArgument, match="the smaller one first"):
        adaptive_rejection_sample(lambda x: -x, 10, (1.0, 0.0))
    with pytest.raises(InvalidArgument, match="one number for each point"):
        adaptive_rejection_sample(lambda x: -1.0, 10)
