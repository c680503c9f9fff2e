"""Summaries, one-step predictions and pictures of fitted series."""

import warnings

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.statespace.sarimax import SARIMAX

import markovia as mk
from markovia.errors import IncompleteModel, UnsupportedModel

Y = np.cumsum(np.random.default_rng(0).normal(size=60))


@pytest.fixture(scope="module")
def fitted():
    return mk.ARIMA((1, 1, 1)).fit(Y)


@pytest.fixture(scope="module")
def peer():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SARIMAX(Y, order=(1, 1, 1), use_exact_diffuse=True).fit(disp=False, cov_type="approx")


def test_coefficients_errors_p_values_and_criteria_are_those_of_statsmodels(fitted, peer):
    found = fitted.summary()
    frame = found.to_pandas()
    assert list(frame.index) == ["ar1", "ma1", "variance"]
    np.testing.assert_allclose(frame["value"], peer.params, atol=2e-3)
    np.testing.assert_allclose(frame["standard error"], peer.bse, rtol=0.02)
    np.testing.assert_allclose(frame["p"], peer.pvalues, atol=2e-3)
    np.testing.assert_allclose(frame[["lower", "upper"]], peer.conf_int(), atol=0.01)
    assert found.facts["AIC"] == pytest.approx(peer.aic, abs=1e-3)
    assert found.facts["log likelihood"] == pytest.approx(peer.llf, abs=1e-4)
    assert found.facts["numbers"] == 60


def test_steps_are_predicted_as_statsmodels_predicts_them(fitted, peer):
    theirs = peer.model.smooth(list(fitted.params_.values())).predict()
    found = fitted.predict(Y)
    np.testing.assert_allclose(found[0][1:, 0], theirs[1:], atol=1e-6)
    assert np.asarray(found).shape == (60, 1)


def test_a_fitted_series_says_what_it_learned_when_printed(fitted):
    text, page = str(fitted), fitted._repr_html_()
    for said in ("ARIMA(order=(1, 1, 1))", "log likelihood", "AIC", "BIC", "standard error", "ma1"):
        assert said in text
        assert said in page
    assert repr(fitted) == "ARIMA(order=(1, 1, 1))" == str(mk.ARIMA((1, 1, 1)))
    assert str(fitted.summary()) == repr(fitted.summary()) == text


def test_given_values_have_a_summary_without_errors_and_unknown_ones_none():
    table = mk.ARIMA((1, 0, 0), params=[0.5, 2.0]).summary([1.0, 2.0])
    assert dict(table.values) == {"ar1": 0.5, "variance": 2.0}
    assert np.isnan(table.standard_errors["ar1"])
    assert "standard error" not in str(table)
    assert "log likelihood" in str(table)
    with pytest.raises(IncompleteModel):
        mk.ARIMA((1, 0, 0)).summary()


def test_matrices_have_a_row_an_entry_with_the_errors_of_those_learned():
    model = mk.LinearStateSpace(
        0.5, 1, 1, 1, 0, 1, method="gradient", learn=["transition", "transition_cov"]
    ).fit(Y)
    frame = model.summary().to_pandas()
    assert frame.loc["transition[0, 0]", "standard error"] == model.standard_errors_["transition"][0, 0]
    assert np.isnan(frame.loc["observation[0, 0]", "standard error"])
    assert np.isinf(mk.LinearStateSpace(1, 1, 1, 1).summary().values["initial_cov[0, 0]"])


def test_matrices_that_are_learned_are_counted_in_the_criteria():
    seen = Y.copy()
    seen[3] = np.nan
    model = mk.LinearStateSpace(
        np.eye(2),
        np.eye(2),
        [[1, 0]],
        1,
        [0, 0],
        np.eye(2),
        learn=["transition", "transition_cov"],
        max_iter=2,
    )
    switching = mk.SwitchingStateSpace(1.0, [[[0.1]], [[4.0]]], max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # four entries and a triangle; two of the chain's rows, its start, two variances, and four that regimes share
        for one, free in ((model.fit(seen), 4 + 3), (switching.fit(seen), 2 + 1 + 2 + 5)):
            facts = one.summary().facts
            assert facts["numbers"] == len(Y) - 1
            assert facts["free parameters"] == one.n_free == free
            assert facts["AIC"] == pytest.approx(2 * free - 2 * facts["log likelihood"])
            assert facts["BIC"] == pytest.approx(np.log(len(Y) - 1) * free - 2 * facts["log likelihood"])
            assert one.summary(seen).facts["AIC"] == pytest.approx(one.aic(seen))
            assert one.bic(seen) == pytest.approx(np.log(len(Y) - 1) * free - 2 * one.score(seen))


def test_hidden_chains_have_their_criteria_on_sequences():
    model = mk.HMM(2, emission="gaussian", random_state=0).fit(Y)
    found = model.summary(Y)
    assert found.facts["BIC"] == pytest.approx(model.bic(Y))
    assert found.facts["AIC"] == pytest.approx(model.aic(Y))
    assert found.values["transition[1, 0]"] == model.transmat_[1, 0]
    assert found.values["means[1, 0]"] == model.means_[1, 0]
    assert "means[0, 0]" in str(model)
    assert "covariances" in str(model.summary())


@pytest.mark.parametrize(
    "model",
    [
        mk.series.FactorialHMM([2, 2], max_iter=2, random_state=0),
        mk.series.SequenceMixture(mk.MarkovChain(), 2, max_iter=2, random_state=0),
        mk.HMM(2, order=2, max_iter=2, random_state=0),
        mk.HMM(2, algorithm="stochastic", max_iter=2, random_state=0),
    ],
    ids=["factorial", "mixture", "order 2", "stochastic"],
)
def test_every_fitted_model_of_sequences_prints(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit([[0, 1, 1, 0, 0, 1, 0, 1], [1, 1, 0, 0, 1, 0, 1, 1]])
    assert type(model).__name__ in str(model)
    assert "iterations" in str(model)


def test_a_series_draws_itself_with_its_forecast(fitted):
    axes = fitted.plot(pd.Series(Y), 5)
    lines = [line for line in axes.flat[0].get_lines() if len(line.get_xdata()) == 5]
    np.testing.assert_allclose(lines[0].get_ydata(), fitted.forecast(Y, 5).mean[0][:, 0])


def test_a_particle_filter_says_where_predictions_are():
    import markovia.distributions as dist

    walk = mk.ParticleFilter(dist.Normal(0, 1), lambda x: dist.Normal(x, 1), lambda x: dist.Normal(x, 1))
    with pytest.raises(UnsupportedModel, match=r"forecast\(\)"):
        walk.predict(Y)
