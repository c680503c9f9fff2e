"""Gradient fits of state-space matrices against expectation-maximisation, statsmodels and numerical Hessians."""

import warnings

import numpy as np
import pytest
from statsmodels.tools.numdiff import approx_hess
from statsmodels.tsa.statespace.structural import UnobservedComponents

import markovia as mk

TRUE = {
    "transition": [[0.8, 0.1], [0.0, 0.6]],
    "transition_cov": [[0.5, 0.2], [0.2, 0.4]],
    "observation": np.eye(2),
    "observation_cov": 0.3 * np.eye(2),
    "initial_mean": np.zeros(2),
    "initial_cov": np.eye(2),
}
LEARN = {"transition": [[1, 1], [0, 1]], "transition_cov": True, "observation_cov": np.eye(2, dtype=bool)}
START = {**TRUE, "transition": [[0.5, 0.0], [0.0, 0.5]], "transition_cov": np.eye(2), "learn": LEARN}


@pytest.fixture(scope="module")
def data():
    ys = mk.LinearStateSpace(**TRUE).sample(200, 2, seed=0)[0]
    ys[1][20:30, 0] = np.nan
    return ys


@pytest.fixture(scope="module")
def fitted(data):
    return mk.LinearStateSpace(**START, method="gradient", max_iter=500, tol=1e-9).fit(data)


@pytest.mark.slow
def test_gradients_end_where_expectation_maximisation_does(data, fitted):
    em = mk.LinearStateSpace(**START, max_iter=3000, tol=1e-12).fit(data)
    assert fitted.converged_
    assert fitted.score(data) == pytest.approx(em.score(data), abs=1e-5)
    assert fitted.score(data) >= em.score(data) - 1e-8
    for name in ("transition_", "transition_cov_", "observation_cov_"):
        np.testing.assert_allclose(getattr(fitted, name), getattr(em, name), atol=1e-3)
    assert fitted.transition_[1, 0] == 0.0
    assert fitted.log_likelihoods_[1] == pytest.approx(fitted.score(data))
    assert not hasattr(em, "standard_errors_")


def test_standard_errors_are_those_of_the_numerical_hessian(data, fitted):
    A, Q, R = fitted.transition_, fitted.transition_cov_, fitted.observation_cov_

    def score(p):
        given = {
            "transition": [[p[0], p[1]], [0.0, p[2]]],
            "transition_cov": [[p[3], p[4]], [p[4], p[5]]],
            "observation_cov": np.diag(p[6:]),
        }
        return mk.LinearStateSpace(**{**TRUE, **given}).score(data)

    at = np.array([A[0, 0], A[0, 1], A[1, 1], Q[0, 0], Q[1, 0], Q[1, 1], R[0, 0], R[1, 1]])
    want = np.sqrt(np.diag(np.linalg.inv(-approx_hess(at, score))))
    a, q, r = (fitted.standard_errors_[k] for k in ("transition", "transition_cov", "observation_cov"))
    found = [a[0, 0], a[0, 1], a[1, 1], q[0, 0], q[0, 1], q[1, 1], r[0, 0], r[1, 1]]
    np.testing.assert_allclose(found, want, rtol=2e-3)
    assert np.isnan(a[1, 0])
    assert np.isnan(r[0, 1])


def test_a_local_level_is_that_of_statsmodels():
    rng = np.random.default_rng(1)
    y = np.cumsum(rng.normal(0, 0.7, 150)) + rng.normal(0, 1.0, 150)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = UnobservedComponents(y, "llevel", use_exact_diffuse=True)
        peer = peer.fit(disp=0, cov_type="approx", method="bfgs", gtol=1e-8)
    names = ["observation_cov", "transition_cov"]
    model = mk.LinearStateSpace(1, 1, 1, 1, learn=names, method="gradient", tol=1e-10).fit(y)
    np.testing.assert_allclose(
        [model.observation_cov_[0, 0], model.transition_cov_[0, 0]], peer.params, rtol=1e-3
    )
    assert model.score(y) == pytest.approx(peer.llf, abs=1e-6)
    np.testing.assert_allclose([model.standard_errors_[n][0, 0] for n in names], peer.bse, rtol=5e-3)


def test_what_the_data_do_not_tell_has_no_standard_error():
    rng = np.random.default_rng(2)
    y = np.r_[np.nan, rng.normal(3.0, 2.0, 100)]
    names = ["observation_cov", "transition_cov", "observation_offset"]  # only the sum of the variances shows
    model = mk.LinearStateSpace(0, 1, 1, 1, 0, 1, learn=names, method="gradient").fit(y)
    assert np.isnan(model.standard_errors_["observation_cov"][0, 0])
    assert np.isnan(model.standard_errors_["transition_cov"][0, 0])
    found = model.standard_errors_["observation_offset"][0]
    assert found == pytest.approx(np.nanstd(y) / 10, rel=1e-3)
    assert model.observation_cov_[0, 0] + model.transition_cov_[0, 0] == pytest.approx(np.nanvar(y), rel=1e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "newton"}, "method="),
        ({"learn": []}, "nothing to fit"),
        ({"learn": {"initial_cov": [[0, 1], [1, 0]]}}, "no blocks"),
    ],
)
def test_wrong_settings_are_named_and_leave_the_model_as_it_was(data, change, words):
    model = mk.LinearStateSpace(**{**START, "method": "gradient", **change})
    with pytest.raises(mk.MarkoviaError, match=words):
        model.fit(data)
    assert not hasattr(model, "transition_")


def test_a_variance_at_zero_has_no_standard_error_and_leaves_the_others_theirs():
    y = np.random.default_rng(4).normal(size=200) + (-1.0) ** np.arange(
        200
    )  # turns back every step: no level moves so
    model = mk.series.StructuralSeries("local level").fit(y)
    assert model.params_["level"] < 1e-6
    assert np.isnan(model.standard_errors_["level"])
    want = model.params_["irregular"] * np.sqrt(2 / 199)
    assert model.standard_errors_["irregular"] == pytest.approx(want, rel=1e-2)
