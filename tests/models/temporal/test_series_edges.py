"""What models of series say to data and values that they cannot have."""

import math

import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, UnknownArgument, UnknownState


def walk(observation, **settings):
    return mk.ParticleFilter(
        dist.Normal(0, 1),
        lambda x: dist.Normal(x, 1),
        observation,
        n_particles=20,
        random_state=0,
        **settings,
    )


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (mk.ARIMA((2, 1, 2)), [1.0, 2.0, 4.0]),
        (mk.series.StructuralSeries("irregular", autoregressive=2), [1.0, np.nan, 2.0, 0.5]),
        (mk.ARIMA((1, 0, 1), constant=True), [[1.0, 2.0], [3.0]]),
    ],
)
def test_fewer_numbers_than_parameters_are_refused(model, y):
    with pytest.raises(InvalidArgument, match=r"too little to learn \d parameters from: \d numbers in all"):
        model.fit(y)


def test_as_many_numbers_as_parameters_are_enough():
    assert set(mk.ARIMA((1, 0, 0)).fit([1.0, 2.0]).params_) == {"ar1", "variance"}


def test_a_series_of_gaps_has_nothing_to_learn_from():
    with pytest.raises(InvalidArgument, match="nothing to learn from: no numbers"):
        mk.ARIMA().fit([np.nan] * 5)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (mk.ARIMA((1, 0, 0), params=[1.5, 1.0]), "ar1=1.5, which is not stationary"),
        (mk.ARIMA((2, 0, 0), params=[0.5, 0.5, 1.0]), "ar1=0.5, ar2=0.5, which is not stationary"),
        (
            mk.ARIMA((0, 0, 0), seasonal_order=(1, 0, 0, 4), params=[-1.0, 1.0]),
            "seasonal_ar1=-1, which is not",
        ),
        (mk.series.StructuralSeries(params=[1.0, -1.0]), "level=-1: variances are 0 or more"),
        (mk.series.StructuralSeries(cycle=True, params=[1, 1, 1, 9.0, 0.5]), "frequency=9, outside"),
    ],
)
def test_parameters_that_cannot_be_are_named(model, said):
    with pytest.raises(InvalidArgument, match=said):
        model.forecast([1.0, 2.0], 1)


def test_noninvertible_averages_are_models_all_the_same():
    assert np.isfinite(mk.ARIMA((0, 0, 1), params=[2.0, 1.0]).score([1.0, 2.0, 0.5]))


def test_a_trend_without_noise_says_what_to_add():
    with pytest.raises(
        InvalidArgument, match="'fixed intercept' has no noise of its own; add autoregressive="
    ):
        mk.series.StructuralSeries("fixed intercept").fit(np.arange(9.0))


@pytest.mark.parametrize(
    ("call", "right"),
    [
        (lambda: mk.ARIMA(trend="c"), "constant"),
        (lambda: mk.series.DynamicFactor(k_factors=1), "n_factors"),
        (lambda: mk.series.StructuralSeries(ar=1), "autoregressive"),
        (lambda: mk.ParticleFilter(num_particles=10), "n_particles"),
    ],
)
def test_words_of_other_libraries_get_ours(call, right):
    with pytest.raises(UnknownArgument, match=f"it is {right}= here"):
        call()


def test_a_bad_value_of_a_stream_is_at_its_own_update():
    rain = mk.DynamicBayesianNetwork()
    rain.add(
        "rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5]
    )
    rain.add("seen", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
    stream = rain.stream()
    for value in ("yes", None):
        stream.update({"seen": value})
    with pytest.raises(UnknownState, match="step 2: unknown state 'maybe'"):
        stream.update({"seen": "maybe"})
    assert stream.step == 2


def test_a_bad_number_of_a_particle_filter_is_at_its_own_update():
    level = walk(lambda x: dist.Normal(x, 1))
    for y in (1.0, np.nan):
        level.update(y)
    with pytest.raises(InvalidArgument, match=r"^step 2 has 'wet', which is no number"):
        level.update("wet")
    with pytest.raises(InvalidArgument, match=r"^step 2 has an infinite value"):
        level.update(np.inf)
    assert level.state.t == 2


@pytest.mark.parametrize(
    ("law", "y", "values"),
    [
        (lambda x: dist.Gamma(2.0, 1.0), [1.0, -1.0], "has -1, .*numbers above 0"),
        (lambda x: dist.Poisson(3.0), [1.0, 0.5], "has 0.5, .*whole numbers from 0"),
        (
            lambda x: dist.Beta(2.0, 2.0).expand([2]).to_event(1),
            np.array([[0.5, 0.5], [0.5, 3.0]]),
            "has 3, .*from 0 to 1",
        ),
        (lambda x: dist.Bernoulli(0.3), [1.0, 2.0], "has 2, .*are 0 or 1"),
    ],
)
def test_what_no_state_gives_is_said_without_advice_to_take_more_particles(law, y, values):
    with pytest.raises(InvalidArgument, match=f"step 1 of sequence 0 {values}") as caught:
        walk(law).filter(y)
    assert "more particles" not in str(caught.value)


def test_ranges_that_depend_on_the_state_are_asked_of_the_particles():
    with pytest.raises(InvalidArgument, match="all particles have weight zero at step 0"):
        walk(lambda x: dist.Uniform(x, x + 1e-3)).filter([50.0])


@pytest.mark.parametrize("function", [np.sin, math.sin, float])
def test_numpy_in_a_function_says_jax_numpy(function):
    with pytest.raises(
        InvalidArgument, match=r"observation= cannot be compiled: it calls NumPy.*jnp\.sin for np\.sin"
    ):
        walk(lambda x: dist.Normal(function(x), 1)).filter([1.0])
    with pytest.raises(InvalidArgument, match=r"transition= cannot be compiled.*jnp\.sin"):
        mk.series.NonlinearStateSpace(lambda x: function(x[0]), lambda x: x).filter([1.0])


def test_a_branch_in_a_function_says_where():
    with pytest.raises(InvalidArgument, match=r"observation= branches on .* use jnp\.where"):
        walk(lambda x: dist.Normal(x if x > 0 else 0.0, 1)).filter([1.0])
