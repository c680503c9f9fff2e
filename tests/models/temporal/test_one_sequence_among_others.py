"""Each of several different sequences, driven by inputs of its own, is answered as it is alone; side outputs by formula."""

import numpy as np
import pytest
from scipy.stats import norm
from statsmodels.tsa.statespace.sarimax import SARIMAX
from statsmodels.tsa.statespace.structural import UnobservedComponents

import markovia as mk

RNG = np.random.default_rng(21)
LENGTHS = (9, 14, 6)
DRIVEN = {
    "transition": [[0.9, 0.2], [-0.1, 0.7]],
    "transition_cov": [[0.5, 0.1], [0.1, 0.3]],
    "observation": [[1.0, 0.4], [0.3, -1.0]],
    "observation_cov": [[0.4, -0.1], [-0.1, 0.6]],
    "initial_mean": [1.0, -2.0],
    "initial_cov": [[1.5, 0.2], [0.2, 0.8]],
    "transition_offset": [0.3, -0.4],
    "observation_offset": [2.0, -1.0],
    "transition_input": [[1.0, 0.0, 0.5], [0.0, -2.0, 0.3]],
    "observation_input": [[0.2, 0.0, 1.5], [-0.7, 0.4, 0.0]],
}
Y = [RNG.normal(3.0 * i, 1.0 + i, (n, 2)) for i, n in enumerate(LENGTHS)]
Y[1][4, 0] = Y[2][2] = np.nan
U = [RNG.normal(-2.0 * i, 0.5 + i, (n, 3)) for i, n in enumerate(LENGTHS)]


@pytest.mark.parametrize("form", ["covariance", "square-root", "information"])
@pytest.mark.parametrize("diffuse", [False, True])
def test_a_driven_sequence_among_others_is_what_it_is_alone(form, diffuse):
    model = mk.LinearStateSpace(**{**DRIVEN, "form": form, **({"initial_cov": None} if diffuse else {})})
    many, filtered, smoothed = (
        model.log_prob(Y, inputs=U),
        model.filter(Y, inputs=U),
        model.smooth(Y, inputs=U),
    )
    ahead = model.forecast(Y, 3, inputs=U, future_inputs=U[0][:3])
    for i, (y, u) in enumerate(zip(Y, U, strict=True)):
        assert many[i] == pytest.approx(model.score(y, inputs=u))
        alone = model.forecast(y, 3, inputs=u, future_inputs=U[0][:3])
        for name in ("mean", "lower", "upper"):
            np.testing.assert_allclose(getattr(ahead, name)[i], getattr(alone, name)[0])
        for found, own in ((filtered, model.filter(y, inputs=u)), (smoothed, model.smooth(y, inputs=u))):
            np.testing.assert_allclose(found.mean[i], own.mean[0], atol=1e-9)
            np.testing.assert_allclose(found.cov[i], own.cov[0], atol=1e-9)
        np.testing.assert_allclose(smoothed.lag_cov[i], model.smooth(y, inputs=u).lag_cov[0], atol=1e-9)
        np.testing.assert_allclose(
            filtered.innovations[i], model.filter(y, inputs=u).innovations[0], atol=1e-9
        )


def test_a_driven_sequence_has_the_density_of_its_joint_normal():
    """Means and covariances of all observations at once, propagated by hand with the sequence's own inputs."""
    a, q, c, r = (
        np.array(DRIVEN[n]) for n in ("transition", "transition_cov", "observation", "observation_cov")
    )
    for y, u, found in zip(Y, U, mk.LinearStateSpace(**DRIVEN).log_prob(Y, inputs=U), strict=True):
        mean, cov = np.array(DRIVEN["initial_mean"]), np.array(DRIVEN["initial_cov"])
        means, covs = [], [cov]
        for t in range(len(y)):
            push = np.array(DRIVEN["observation_offset"]) + np.array(DRIVEN["observation_input"]) @ u[t]
            means.append(c @ mean + push)
            mean = a @ mean + DRIVEN["transition_offset"] + np.array(DRIVEN["transition_input"]) @ u[t]
            covs.append(a @ covs[-1] @ a.T + q)
        whole = np.zeros((len(y), 2, len(y), 2))
        for s in range(len(y)):
            for t in range(s, len(y)):
                whole[t, :, s] = c @ np.linalg.matrix_power(a, t - s) @ covs[s] @ c.T
                whole[s, :, t] = whole[t, :, s].T
            whole[s, :, s] += r
        seen = ~np.isnan(y.ravel())
        V = whole.reshape(2 * len(y), -1)[np.ix_(seen, seen)]
        e = (y.ravel() - np.concatenate(means))[seen]
        want = -0.5 * (e @ np.linalg.solve(V, e) + np.linalg.slogdet(2 * np.pi * V)[1])
        assert found == pytest.approx(want, abs=1e-9)


def series(steps=120, seed=3):
    rng = np.random.default_rng(seed)
    y = 4.0 + np.cumsum(rng.normal(0.2, 0.6, steps)) + rng.normal(0, 0.8, steps)
    y[[7, 8, 50]] = np.nan
    return y


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_intervals_of_forecasts_have_their_level_on_both_sides(level):
    y, params = series(), [0.6, -0.2, 0.9]
    found = mk.ARIMA((1, 1, 1), params=params).forecast(y, 6, level=level)
    peer = SARIMAX(y, order=(1, 1, 1), use_exact_diffuse=True).smooth(params).get_forecast(6)
    wide = norm.ppf(0.5 + level / 2) * np.sqrt(peer.var_pred_mean)
    np.testing.assert_allclose(found.mean[0][:, 0], peer.predicted_mean, atol=1e-7)
    np.testing.assert_allclose(found.upper[0][:, 0] - found.mean[0][:, 0], wide, rtol=1e-7)
    np.testing.assert_allclose(found.mean[0][:, 0] - found.lower[0][:, 0], wide, rtol=1e-7)


def test_side_outputs_of_a_constant_far_from_zero_are_those_of_statsmodels():
    rng = np.random.default_rng(5)
    e, y = rng.normal(0, 1.3, 200), np.zeros(200)
    for t in range(1, 200):
        y[t] = 0.6 * y[t - 1] + e[t]
    y += 50.0
    ours = mk.ARIMA((1, 0, 1), constant=True).fit(y)
    peer = SARIMAX(y, order=(1, 0, 1), trend="c").fit(
        start_params=list(ours.params_.values()), disp=False, cov_type="approx", gtol=1e-10
    )
    assert ours.log_likelihood_ == pytest.approx(peer.llf, abs=1e-5)
    assert ours.score(y) == pytest.approx(ours.log_likelihood_, abs=1e-6)
    np.testing.assert_allclose(list(ours.params_.values()), peer.params, rtol=2e-2)
    np.testing.assert_allclose(list(ours.standard_errors_.values()), peer.bse, rtol=3e-2)
    scale = np.sqrt(np.diag(ours.covariance_))
    peers = np.asarray(peer.cov_params())
    np.testing.assert_allclose(
        ours.covariance_ / scale[:, None] / scale, peers / peer.bse[:, None] / peer.bse, atol=0.02
    )
    assert ours.aic_ == pytest.approx(peer.aic, abs=1e-4)
    assert ours.bic_ == pytest.approx(peer.bic, abs=1e-4)


def test_criteria_count_observed_numbers_parameters_and_diffuse_states():
    y = series()
    ours = mk.series.StructuralSeries("local level").fit(y)
    peer = UnobservedComponents(y, "llevel", use_exact_diffuse=True).smooth(list(ours.params_.values()))
    assert ours.log_likelihood_ == pytest.approx(peer.llf, abs=1e-6)
    assert ours.aic_ == pytest.approx(2 * 3 - 2 * peer.llf, abs=1e-5)
    assert ours.bic_ == pytest.approx(3 * np.log(117) - 2 * peer.llf, abs=1e-5)


def test_a_fit_has_converged_only_where_no_other_start_does_better():
    y = series()
    assert not mk.ARIMA((2, 1, 1), max_iter=1).fit(y).converged_
    found = mk.ARIMA((2, 1, 1)).fit(y)
    assert found.converged_
    rng = np.random.default_rng(0)
    for name, value in found.params_.items():
        for by in (-1e-3, 1e-3):
            moved = mk.ARIMA((2, 1, 1), params={**found.params_, name: value * (1 + by) + by})
            assert moved.score(y) <= found.log_likelihood_ + 1e-7
    for _ in range(20):
        other = dict(
            zip(found.parameter_names, [*rng.uniform(-0.6, 0.6, 3), rng.uniform(0.3, 3)], strict=True)
        )
        assert mk.ARIMA((2, 1, 1), params=other).score(y) < found.log_likelihood_


def test_several_series_of_different_levels_are_fitted_as_one_sum():
    first, second = series(60, 1), 1e4 + series(70, 2)
    found = mk.series.StructuralSeries("local level").fit([first, second])
    parts = [
        mk.series.StructuralSeries("local level", params=found.params_).score(y) for y in (first, second)
    ]
    assert found.log_likelihood_ == pytest.approx(sum(parts), abs=1e-6)
    assert found.converged_
    assert 0.1 < found.params_["level"] < 1.0
