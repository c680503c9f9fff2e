"""The estimators beside statsmodels, DoubleML and EconML on the same rows; skipped where those are not installed."""

import numpy as np
import pytest

from markovia.causal.estimation.adjustment.double_ml import partially_linear
from markovia.causal.estimation.adjustment.doubly_robust import aipw
from markovia.causal.estimation.adjustment.estimates import contrast
from markovia.causal.estimation.adjustment.over_time import marginal_structural_model
from markovia.causal.estimation.adjustment.standardisation import slope
from markovia.causal.simulated_worlds import lalonde_like
from markovia.learning.regression.nuisance import fit_glm


@pytest.fixture(scope="module")
def rows():
    frame = lalonde_like(2000, seed=3).frame
    return (
        frame["t"].to_numpy(int),
        frame["y"].to_numpy(float),
        frame.drop(columns=["t", "y"]).to_numpy(float),
    )


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson"])
def test_models_and_their_robust_errors_are_those_of_statsmodels(rows, family):
    sm = pytest.importorskip("statsmodels.api")
    _, y, x = rows
    target = {"gaussian": y, "bernoulli": (y > 5).astype(float), "poisson": np.maximum(np.round(y), 0)}[
        family
    ]
    kind = {
        "gaussian": sm.families.Gaussian(),
        "bernoulli": sm.families.Binomial(),
        "poisson": sm.families.Poisson(),
    }
    peer = sm.GLM(target, sm.add_constant(x), family=kind[family]).fit(cov_type="HC0", tol=1e-12)
    own = fit_glm(x, target, family)
    influence = own.coef_influence(x, target, np.ones(len(y)))
    errors = np.sqrt((influence**2).sum(axis=0)) / len(y)
    assert own.coef == pytest.approx(peer.params, rel=1e-6, abs=1e-8)
    assert errors == pytest.approx(peer.bse, rel=1e-5)


def test_the_slope_is_the_coefficient_of_least_squares_with_interactions(rows):
    sm = pytest.importorskip("statsmodels.api")
    _, y, x = rows
    dose, others = x[:, 4], x[:, :3]
    centred = others - others.mean(axis=0)
    design = sm.add_constant(np.column_stack([dose, centred, dose[:, None] * centred]))
    peer = sm.OLS(y, design).fit(cov_type="HC0")
    own = slope(dose, y, others)
    assert own.value == pytest.approx(peer.params[1])
    # the centre is estimated too, so the errors are a little larger where the interactions matter
    assert peer.bse[1] * 0.99 < own.standard_error < peer.bse[1] * 1.5


def test_a_marginal_structural_model_of_one_time_is_the_weighted_regression(rows):
    sm = pytest.importorskip("statsmodels.api")
    t, y, x = rows
    p = sm.GLM(t, sm.add_constant(x), family=sm.families.Binomial()).fit(tol=1e-12).fittedvalues
    weights = np.where(t == 1, t.mean() / p, (1 - t.mean()) / (1 - p))
    peer = sm.WLS(y, sm.add_constant(t), weights=weights).fit(cov_type="HC0")
    own = marginal_structural_model(t[:, None], y, [x])
    assert own.value == pytest.approx(peer.params[1], rel=1e-6)
    assert own.standard_error < peer.bse[1]


@pytest.mark.slow
def test_effects_and_errors_are_those_of_doubleml(rows):
    doubleml = pytest.importorskip("doubleml")
    from sklearn.linear_model import LinearRegression, LogisticRegression

    t, y, x = rows
    data = doubleml.DoubleMLData.from_arrays(x, y, t)
    np.random.seed(0)  # noqa: NPY002
    peer = doubleml.DoubleMLIRM(
        data, LinearRegression(), LogisticRegression(C=1e6, max_iter=5000), n_rep=5
    ).fit()
    own = contrast(aipw(t, y, x), 1, 0)
    assert own.value == pytest.approx(peer.coef[0], abs=0.25 * own.standard_error)
    assert own.standard_error == pytest.approx(peer.se[0], rel=0.05)
    line = doubleml.DoubleMLPLR(
        data, LinearRegression(), LogisticRegression(C=1e6, max_iter=5000), n_rep=5
    ).fit()
    found = partially_linear(t.astype(float), y, x)
    assert found.value == pytest.approx(line.coef[0], abs=0.25 * found.standard_error)
    assert found.standard_error == pytest.approx(line.se[0], rel=0.05)


@pytest.mark.slow
def test_effects_and_errors_are_those_of_econml(rows):
    dr = pytest.importorskip("econml.dr")
    from sklearn.linear_model import LinearRegression, LogisticRegression

    t, y, x = rows
    model = dr.LinearDRLearner(
        model_regression=LinearRegression(),
        model_propensity=LogisticRegression(C=1e6, max_iter=5000),
        cv=5,
        random_state=0,
    )
    model.fit(y, t, X=None, W=x)
    peer = model.intercept__inference(T=1)
    own = contrast(aipw(t, y, x), 1, 0)
    assert own.value == pytest.approx(float(np.ravel(peer.point_estimate)[0]), abs=0.4 * own.standard_error)
    assert own.standard_error == pytest.approx(float(np.ravel(peer.stderr)[0]), rel=0.05)
