"""Tests of innovations against statsmodels and formulas, with gaps at the start, in between and at the end."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.diagnostic import acorr_ljungbox
from statsmodels.stats.stattools import jarque_bera

from markovia.errors import InvalidArgument
from markovia.inference.sequences.innovation_tests import innovation_tests


def errors(seed, n=83):
    """Skewed, correlated innovations about a mean that is not zero, whose spread grows."""
    rng = np.random.default_rng(seed)
    e = 0.3 + np.convolve(rng.gamma(2.0, 0.4, n + 1) - 0.8, [1.0, 0.4], "valid")
    return e * np.linspace(0.7, 1.6, n)


@pytest.mark.parametrize("lags", [None, 1, 7])
@pytest.mark.parametrize("seed", [1, 2])
def test_numbers_and_p_values_are_those_of_statsmodels(seed, lags):
    e = errors(seed)
    found = innovation_tests(e, lags)
    box = acorr_ljungbox(e, lags=[lags or 10]).iloc[0]
    assert (found.ljung_box.statistic, found.ljung_box.p_value) == pytest.approx(
        (box["lb_stat"], box["lb_pvalue"])
    )
    assert (found.jarque_bera.statistic, found.jarque_bera.p_value) == pytest.approx(jarque_bera(e)[:2])


@pytest.mark.parametrize("turned", [False, True], ids=["growing", "shrinking"])
def test_the_test_of_equal_variances_has_two_sides_and_thirds_with_their_gaps(turned):
    e = errors(4)
    e[[0, 1, 30, 31, 80]] = np.nan
    e = e[::-1] if turned else e
    early, late = (part[~np.isnan(part)] for part in (e[:28], e[-28:]))
    ratio = np.mean(late**2) / np.mean(early**2)
    law = stats.f(len(late), len(early))
    found = innovation_tests(e).heteroskedasticity
    assert len(early) != len(late)
    assert found.statistic == pytest.approx(ratio)
    assert found.p_value == pytest.approx(2 * min(law.cdf(ratio), law.sf(ratio)))


def test_missing_innovations_are_left_out_of_the_others():
    e = errors(5)
    holes = np.insert(e, [0, 40, 83], np.nan)
    with_gaps, without = innovation_tests(holes), innovation_tests(e)
    assert with_gaps.ljung_box == without.ljung_box
    assert with_gaps.jarque_bera == without.jarque_bera
    with pytest.raises(InvalidArgument, match="too few"):
        innovation_tests(holes[:6])
