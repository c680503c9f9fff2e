"""Structural series, ARIMA and dynamic factors against statsmodels."""

import warnings

import numpy as np
import pytest
from statsmodels.tsa.statespace.dynamic_factor import DynamicFactor as PeerFactor
from statsmodels.tsa.statespace.initialization import Initialization
from statsmodels.tsa.statespace.sarimax import SARIMAX
from statsmodels.tsa.statespace.structural import UnobservedComponents

import markovia as mk
from markovia.errors import InvalidArgument


def series(steps=80, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(steps)
    y = np.cumsum(rng.normal(0.1, 0.5, steps)) + np.sin(2 * np.pi * t / 4) + rng.normal(0, 0.7, steps)
    y[[11, 30, 31]] = np.nan
    return y


STRUCTURAL = [
    ("local level", {}, [0.5, 0.3]),
    ("local linear trend", {}, [0.5, 0.3, 0.02]),
    ("smooth trend", {}, [0.5, 0.02]),
    ("random walk", {}, [0.8]),
    ("local level", {"seasonal": 4}, [0.5, 0.3, 0.05]),
    ("local level", {"cycle": True}, [0.5, 0.3, 0.2, 0.7, 0.8]),
    ("local linear trend", {"seasonal": 4, "cycle": True}, [0.5, 0.3, 0.01, 0.05, 0.2, 0.7, 0.8]),
    ("irregular", {}, [0.5]),
    ("dconstant", {}, [0.5]),
    ("deterministic trend", {"autoregressive": 2}, [0.5, 0.3, 0.6, -0.2]),
    ("lldtrend", {}, [0.5, 0.3]),
    ("random walk with drift", {"autoregressive": 1}, [0.3, 0.2, 0.5]),
    ("fixed intercept", {"autoregressive": 1}, [0.3, 0.9]),
    ("fixed slope", {"autoregressive": 1}, [0.3, 0.9]),
    ("random trend", {}, [0.1]),
]


@pytest.mark.parametrize(("trend", "more", "params"), STRUCTURAL)
def test_structural_likelihoods_are_those_of_statsmodels(trend, more, params):
    y = series()
    theirs = {"seasonal": more.get("seasonal"), "cycle": more.get("cycle", False)}
    theirs["autoregressive"] = more.get("autoregressive")
    peer = UnobservedComponents(
        y,
        trend,
        **theirs,
        stochastic_cycle=theirs["cycle"],
        damped_cycle=theirs["cycle"],
        use_exact_diffuse=True,
    )
    if more.get("cycle"):  # theirs starts diffuse, though it dies out
        start = Initialization(peer.k_states)
        start.set((0, peer.k_states - 2), "diffuse")
        start.set((peer.k_states - 2, peer.k_states), "stationary")
        peer.ssm.initialization = start
    ours = mk.series.StructuralSeries(trend, **more, params=params)
    assert ours.log_prob(y)[0] == pytest.approx(peer.loglike(np.array(params)), abs=1e-6)


ARIMAS = [
    ((1, 0, 0), (0, 0, 0, 0), False, [0.5, 1.1]),
    ((2, 0, 1), (0, 0, 0, 0), True, [0.3, 0.5, -0.2, 0.4, 1.1]),
    ((0, 1, 2), (0, 0, 0, 0), False, [0.4, 0.2, 1.1]),
    ((1, 2, 1), (0, 0, 0, 0), False, [0.4, 0.2, 1.1]),
    ((1, 1, 0), (0, 0, 0, 0), True, [0.2, 0.4, 1.1]),
    ((1, 1, 1), (1, 1, 1, 4), False, [0.4, -0.3, 0.2, -0.5, 0.9]),
    ((0, 0, 0), (1, 0, 0, 4), False, [0.6, 0.9]),
]


@pytest.mark.parametrize(("order", "seasonal", "constant", "params"), ARIMAS)
def test_arima_likelihoods_and_forecasts_are_those_of_statsmodels(order, seasonal, constant, params):
    y = series()
    peer = SARIMAX(
        y, order=order, seasonal_order=seasonal, trend="c" if constant else "n", use_exact_diffuse=True
    )
    ours = mk.ARIMA(order, seasonal_order=seasonal, constant=constant, params=params)
    assert ours.log_prob(y)[0] == pytest.approx(peer.loglike(np.array(params)), abs=1e-6)
    ahead = peer.smooth(params).get_forecast(5)
    found = ours.forecast(y, 5)
    np.testing.assert_allclose(found.mean[0][:, 0], ahead.predicted_mean, atol=1e-6)
    np.testing.assert_allclose(found.lower[0][:, 0], ahead.conf_int()[:, 0], atol=1e-5)


@pytest.mark.parametrize(("factors", "order"), [(1, 1), (1, 2), (2, 1)])
def test_dynamic_factor_likelihoods_are_those_of_statsmodels(factors, order):
    rng = np.random.default_rng(1)
    y = rng.normal(size=(50, 3))
    y[4, 1] = np.nan
    ours = mk.series.DynamicFactor(3, factors, order)
    params = np.concatenate(
        [rng.normal(size=3 * factors), [0.5, 0.7, 0.9], 0.3 * rng.normal(size=factors**2 * order)]
    )
    peer = PeerFactor(y, k_factors=factors, factor_order=order)
    assert ours.set_params(params=params).log_prob(y)[0] == pytest.approx(peer.loglike(params), abs=1e-6)


def test_inputs_have_weights_as_in_statsmodels():
    rng = np.random.default_rng(2)
    u, y = rng.normal(size=(80, 2)), series()
    peer = UnobservedComponents(y, "local level", exog=u, use_exact_diffuse=True)
    params = {"irregular": 0.5, "level": 0.3, "input0": 1.5, "input1": -0.7}
    ours = mk.series.StructuralSeries(params=params)
    assert ours.log_prob(y, inputs=u)[0] == pytest.approx(
        peer.loglike(np.array(list(params.values()))), abs=1e-6
    )
    told = mk.series.StructuralSeries().fit(y + u @ [1.5, -0.7], inputs=u)
    assert told.params_["input0"] == pytest.approx(1.5, abs=4 * told.standard_errors_["input0"])
    assert told.forecast(y, 3, inputs=u, future_inputs=np.zeros((3, 2))).mean[0].shape == (3, 1)


def test_fits_are_at_least_as_likely_as_those_of_statsmodels_with_its_standard_errors():
    y = series(200, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = SARIMAX(y, order=(1, 1, 1), use_exact_diffuse=True).fit(disp=False, cov_type="approx")
    ours = mk.ARIMA((1, 1, 1)).fit(y)
    assert ours.log_likelihood_ > peer.llf - 1e-5
    assert ours.log_likelihood_ == pytest.approx(ours.score(y), abs=1e-9)
    np.testing.assert_allclose(list(ours.params_.values()), peer.params, atol=5e-3)
    np.testing.assert_allclose(list(ours.standard_errors_.values()), peer.bse, rtol=0.05)
    assert ours.aic_ == pytest.approx(peer.aic, abs=1e-4)


@pytest.mark.parametrize(
    "model",
    [
        mk.series.StructuralSeries("local level", seasonal=4),
        mk.series.StructuralSeries(cycle=True),
        mk.ARIMA((2, 0, 0), constant=True),
    ],
)
def test_learned_parameters_beat_others_nearby(model):
    y = series(120, 4)
    model.fit(y)
    for name, value in model.params_.items():
        for by in (0.98, 1.02):
            moved = type(model)(**{**model.get_params(), "params": {**model.params_, name: value * by}})
            assert moved.score(y) < model.log_likelihood_ + 1e-6


def test_a_factor_model_finds_the_common_movement():
    truth = mk.series.DynamicFactor(4, params=[1.0, -0.8, 0.5, 1.2, 0.3, 0.3, 0.3, 0.3, 0.8])
    ys, xs = truth.sample(150, seed=1)
    found = mk.series.DynamicFactor(4).fit(ys)
    assert found.log_likelihood_ > truth.score(ys)
    factor = found.smooth(ys).mean[0][:, 0]
    assert abs(np.corrcoef(factor, xs[0][:, 0])[0, 1]) > 0.9


def test_what_is_wrong_is_said():
    with pytest.raises(mk.MarkoviaError, match="fit the model, or give params="):
        mk.ARIMA().log_prob([1.0, 2.0])
    with pytest.raises(mk.MarkoviaError, match="one number for each of ar1, variance"):
        mk.ARIMA(params={"ar1": 0.5}).log_prob([1.0, 2.0])
    with pytest.raises(mk.MarkoviaError, match="order= is 3 whole numbers"):
        mk.ARIMA((1, -1, 0)).fit([1.0, 2.0])
    with pytest.raises(mk.MarkoviaError, match="number of seasons"):
        mk.ARIMA(seasonal_order=(1, 0, 0, 0)).fit([1.0, 2.0])
    with pytest.raises(mk.MarkoviaError, match="trend="):
        mk.series.StructuralSeries("walk").fit([1.0, 2.0])
    with pytest.raises(mk.MarkoviaError, match="cycle_bounds="):
        mk.series.StructuralSeries(cycle=True, cycle_bounds=(5, 3)).fit([1.0, 2.0])
    with pytest.raises(mk.MarkoviaError, match="2 numbers a step, but the model observes 1"):
        mk.ARIMA().fit(np.ones((5, 2)))
    with pytest.raises(mk.MarkoviaError, match="not stationary"):
        mk.series.DynamicFactor(2, params=[1, 1, 1, 1, 1.5]).log_prob(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("model", "series"),
    [
        (mk.ARIMA(order=(1, 0, 0)), [np.full(9, np.nan)]),
        (mk.ARIMA(order=(0, 1, 1)), [np.r_[np.nan, 2.0, np.nan], np.r_[5.0, np.nan]]),
        (mk.series.StructuralSeries(), [np.full(9, np.nan)]),
        (mk.series.StructuralSeries("smooth trend"), [np.r_[1.0, np.nan, 2.5, np.nan]]),
    ],
    ids=[
        "arima without a number",
        "one difference short",
        "level without a number",
        "trend through two numbers",
    ],
)
def test_series_that_tell_nothing_but_their_start_are_refused(model, series):
    with pytest.raises(InvalidArgument, match="nothing to learn from"):
        model.fit(series)
    assert not hasattr(model, "params_")
    # one number more is something to learn from
    model.fit([np.r_[one, 7.0, 6.5] for one in series])
