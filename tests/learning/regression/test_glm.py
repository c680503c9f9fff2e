"""Generalised linear models against statsmodels, scikit-learn, finite differences and closed forms."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import markovia as mk
from markovia.errors import ConvergenceWarning, InvalidArgument
from markovia.learning.regression.families import LINKS, family_and_link
from markovia.learning.regression.iteratively_reweighted import fit_softmax
from markovia.learning.regression.objectives import GlmObjective, SoftmaxObjective
from markovia.learning.regression.separated_data import dependent_columns, separated_classes

sm = pytest.importorskip("statsmodels.api")

N = 150
RNG = np.random.default_rng(12)
X = RNG.normal(size=(N, 3)) * 0.5
ETA = X @ [0.6, -0.4, 0.2] + 0.3
WEIGHTS = RNG.integers(1, 4, N).astype(float)
RESPONSES = {
    "gaussian": ETA + 5.0 + RNG.normal(size=N) * 0.3,
    "bernoulli": (RNG.random(N) < 1 / (1 + np.exp(-2 * ETA))).astype(int),
    "poisson": RNG.poisson(np.exp(ETA + 0.5)),
    "gamma": RNG.gamma(3.0, np.exp(ETA) / 3.0) + 0.05,
}
COMBINATIONS = [
    ("gaussian", None),
    ("gaussian", "log"),
    ("bernoulli", None),
    ("bernoulli", "probit"),
    ("bernoulli", "cloglog"),
    ("poisson", None),
    ("poisson", "sqrt"),
    ("poisson", "identity"),
    ("gamma", None),
    ("gamma", "log"),
    ("gamma", "identity"),
]


def reference(family, link):
    kinds = {
        "gaussian": sm.families.Gaussian,
        "bernoulli": sm.families.Binomial,
        "binomial": sm.families.Binomial,
        "poisson": sm.families.Poisson,
        "gamma": sm.families.Gamma,
    }
    links = sm.families.links
    names = {
        "identity": links.Identity,
        "log": links.Log,
        "logit": links.Logit,
        "probit": links.Probit,
        "cloglog": links.CLogLog,
        "inverse": links.InversePower,
        "sqrt": links.Sqrt,
    }
    name = family_and_link(family, link)[1].name
    return kinds[family](link=names[name]())


def theirs(family, link, y, x=X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sm.GLM(y, sm.add_constant(x), family=reference(family, link), **options)
        return model.fit(tol=1e-13, maxiter=500)


def flat(model):
    return np.append(np.ravel(model.intercept_), np.ravel(model.coef_))


def agree(a, b, rtol=1e-6, atol=1e-8):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


# -- side outputs against their definitions --------------------------------------------------------------------------


def unit_deviance(family, y, mu):
    """Twice the log likelihood that is lost by a mean of mu in place of y, a row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(y > 0, y * np.log(y / mu), 0.0)
        return {
            "gaussian": (y - mu) ** 2,
            "poisson": 2 * (log - (y - mu)),
            "gamma": 2 * ((y - mu) / mu - np.log(y / mu)),
            "bernoulli": 2 * (log + np.where(y < 1, (1 - y) * np.log((1 - y) / (1 - mu)), 0.0)),
        }[family]


@pytest.mark.parametrize("family", RESPONSES)
@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_the_deviance_is_of_the_means_whatever_the_penalty(family, l2):
    y, offset = RESPONSES[family], 0.3 * X[:, 1]
    model = mk.regression.GLM(family, "log" if family == "gamma" else None, l2=l2).fit(
        X, y, WEIGHTS, offset=offset
    )
    agree(model.deviance_, WEIGHTS @ unit_deviance(family, y, model.predict_mean(X, offset=offset)))


@pytest.mark.parametrize("family", ["poisson", "bernoulli"])
def test_without_an_intercept_nothing_is_the_offset_alone(family):
    y, offset = RESPONSES[family], 0.3 * X[:, 1] - 0.2
    model = mk.regression.GLM(family, fit_intercept=False).fit(X, y, WEIGHTS, offset=offset)
    mean = np.exp(offset) if family == "poisson" else 1 / (1 + np.exp(-offset))
    agree(model.null_deviance_, WEIGHTS @ unit_deviance(family, y, mean))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_null_deviance_of_classes_is_of_their_shares_or_of_equal_ones(fit_intercept):
    y = RNG.choice(3, N, p=[0.5, 0.2, 0.3])
    model = mk.regression.GLM("categorical", fit_intercept=fit_intercept).fit(X, y, WEIGHTS)
    shares = np.bincount(y, WEIGHTS) / WEIGHTS.sum() if fit_intercept else np.full(3, 1 / 3)
    agree(model.null_deviance_, -2 * WEIGHTS @ np.log(shares[y]))


@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_where_the_dispersion_is_estimated_tests_are_of_student(family):
    model = mk.regression.GLM(family, "log").fit(X[:12], RESPONSES[family][:12], WEIGHTS[:12])
    table, free = model.summary(0.8), WEIGHTS[:12].sum() - 4
    assert table.test == "t"
    agree(table.p_value, 2 * stats.t(free).sf(np.abs(model._flat_ / model.standard_errors_)))
    agree(table.upper, model._flat_ + stats.t(free).ppf(0.9) * model.standard_errors_)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma"])
def test_the_score_is_the_share_of_weighted_deviance_explained(family):
    y = RESPONSES[family]
    model = mk.regression.GLM(family, None if family == "gaussian" else "log").fit(X, y)
    weights = WEIGHTS * (y > np.median(y))  # far from uniform: the weighted mean is another
    mean = np.full(N, np.average(y, weights=weights))
    left, null = (weights @ unit_deviance(family, y, mu) for mu in (model.predict_mean(X), mean))
    agree(model.score(X, y, weights), 1 - left / null)


# -- against statsmodels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "link"), COMBINATIONS)
def test_coefficients_errors_and_deviance_are_those_of_statsmodels(family, link):
    y = RESPONSES[family]
    ours = mk.regression.GLM(family, link).fit(X, y)
    other = theirs(family, link, y)
    assert ours.converged_
    agree(flat(ours), other.params)
    agree(ours.standard_errors_, other.bse, rtol=1e-5)
    agree(ours.covariance_, other.cov_params(), rtol=1e-4, atol=1e-7)
    agree(ours.deviance_, other.deviance)
    agree(ours.null_deviance_, other.null_deviance, rtol=1e-5)
    agree(ours.dispersion_, other.scale, rtol=1e-5)
    agree(ours.predict_mean(X), other.fittedvalues)
    if family != "gaussian":
        agree(ours.log_likelihood_, other.llf, rtol=1e-5)
    if family in ("bernoulli", "poisson"):
        table = ours.summary()
        agree(table.p_value, other.pvalues, rtol=1e-4)
        agree(np.column_stack([table.lower, table.upper]), other.conf_int(), rtol=1e-4, atol=1e-6)
    assert np.all(np.diff(ours.path_) <= 1e-12)  # rounding


@pytest.mark.parametrize(("family", "link"), [("poisson", None), ("bernoulli", None), ("gamma", "log")])
def test_weights_and_offsets_are_those_of_statsmodels(family, link):
    y, offset = RESPONSES[family], np.linspace(-0.2, 0.3, N)
    ours = mk.regression.GLM(family, link).fit(X, y, WEIGHTS, offset=offset)
    other = theirs(family, link, y, freq_weights=WEIGHTS, offset=offset)
    agree(flat(ours), other.params)
    agree(ours.standard_errors_, other.bse, rtol=1e-5)
    agree(ours.deviance_, other.deviance)
    if family == "poisson":
        again = mk.regression.GLM(family).fit(X, y, WEIGHTS, exposure=np.exp(offset))
        agree(flat(again), flat(ours))
        agree(ours.predict(X, offset=offset), again.predict(X, exposure=np.exp(offset)))
        agree(ours.null_deviance_, other.null_deviance, rtol=1e-5)


def test_binomial_counts_are_those_of_statsmodels():
    trials = RNG.integers(1, 9, N)
    wins = RNG.binomial(trials, 1 / (1 + np.exp(-ETA)))
    pairs = np.column_stack([wins, trials - wins])
    ours = mk.regression.GLM("binomial").fit(X, pairs)
    other = theirs("binomial", None, pairs)
    agree(flat(ours), other.params)
    agree(ours.standard_errors_, other.bse, rtol=1e-5)
    agree(ours.deviance_, other.deviance)
    agree(ours.log_likelihood_, other.llf)
    agree(flat(mk.regression.GLM("binomial").fit(X, wins / trials, trials)), flat(ours))


def test_linear_regression_is_ordinary_least_squares():
    y = RESPONSES["gaussian"]
    ours, other = mk.regression.LinearRegression().fit(X, y), sm.OLS(y, sm.add_constant(X)).fit()
    agree(flat(ours), other.params, rtol=1e-10)
    agree(ours.log_likelihood_, other.llf)
    table = ours.summary(0.9)
    agree(table.statistic, other.tvalues)
    agree(table.p_value, other.pvalues)
    agree(np.column_stack([table.lower, table.upper]), other.conf_int(0.1))
    agree(ours.score(X, y), other.rsquared)
    assert ours.n_iter_ == 1
    design = np.column_stack([np.ones(N), X])
    agree(flat(ours), np.linalg.solve(design.T @ design, design.T @ y), rtol=1e-10)
    assert list(table.to_pandas().index) == ["intercept", "x0", "x1", "x2"]


def test_softmax_regression_is_the_multinomial_logit_of_statsmodels():
    y = RNG.integers(0, 3, N)
    ours, other = mk.regression.SoftmaxRegression().fit(X, y), sm.MNLogit(y, sm.add_constant(X)).fit(disp=0)
    found = np.column_stack([ours.intercept_, ours.coef_])
    agree(found[0], np.zeros(4))
    agree(found[1:], np.asarray(other.params).T, rtol=1e-5)
    agree(ours.standard_errors_, np.asarray(other.bse).T.ravel(), rtol=1e-5)
    agree(ours.log_likelihood_, other.llf)
    agree(ours.predict_proba(X), other.predict(sm.add_constant(X)), rtol=1e-5)
    assert "2: x1" in str(ours.summary())


# -- against scikit-learn -------------------------------------------------------------------------------------------


def test_l2_penalties_have_the_stated_conventions():
    y = RESPONSES["bernoulli"]
    other = sk.LogisticRegression(C=1 / 2.5, tol=1e-10, max_iter=1000).fit(X, y, WEIGHTS)
    ours = mk.regression.LogisticRegression(l2=2.5).fit(X, y, WEIGHTS)
    agree(flat(ours), flat(other), rtol=1e-5)
    agree(ours.predict_proba(X), other.predict_proba(X), rtol=1e-5)
    other = sk.Ridge(alpha=2.5).fit(X, RESPONSES["gaussian"])
    agree(flat(mk.regression.LinearRegression(l2=2.5).fit(X, RESPONSES["gaussian"])), flat(other))
    other = sk.PoissonRegressor(alpha=2.5 / N, tol=1e-10, max_iter=1000).fit(X, RESPONSES["poisson"])
    agree(flat(mk.regression.PoissonRegression(l2=2.5).fit(X, RESPONSES["poisson"])), flat(other), rtol=1e-5)
    other = sk.GammaRegressor(alpha=2.5 / N, tol=1e-10, max_iter=1000).fit(X, RESPONSES["gamma"])
    agree(flat(mk.regression.GLM("gamma", "log", l2=2.5).fit(X, RESPONSES["gamma"])), flat(other), rtol=1e-5)
    y = RNG.integers(0, 3, N)
    other = sk.LogisticRegression(C=1 / 2.5, tol=1e-10, max_iter=1000).fit(X, y)
    agree(mk.regression.SoftmaxRegression(l2=2.5).fit(X, y).coef_, other.coef_, rtol=1e-4, atol=1e-6)


def test_l1_penalties_have_the_stated_conventions():
    y = RESPONSES["gaussian"]
    other = sk.Lasso(alpha=8.0 / N, tol=1e-12).fit(X, y)
    agree(flat(mk.regression.LinearRegression(l1=8.0).fit(X, y)), flat(other), rtol=1e-6)
    other = sk.ElasticNet(alpha=12.0 / N, l1_ratio=8 / 12, tol=1e-12).fit(X, y)
    agree(flat(mk.regression.LinearRegression(l1=8.0, l2=4.0).fit(X, y)), flat(other), rtol=1e-6)
    y = RESPONSES["bernoulli"]
    other = sk.LogisticRegression(C=1 / 5.0, l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=50_000).fit(
        X, y
    )
    ours = mk.regression.LogisticRegression(l1=5.0).fit(X, y)
    agree(flat(ours), flat(other), rtol=1e-4, atol=1e-6)
    assert np.any(ours.coef_ == 0)
    assert np.isnan(ours.standard_errors_).all()
    assert "L1" in str(ours.summary())


@pytest.mark.parametrize(("family", "link"), COMBINATIONS)
def test_l1_solutions_satisfy_the_kkt_conditions(family, link):
    y = RESPONSES[family]
    l1 = 6.0
    ours = mk.regression.GLM(family, link, l1=l1, l2=0.5).fit(X, y)
    response, chosen = family_and_link(family, link)
    objective = GlmObjective(
        np.column_stack([np.ones(N), X]), y.astype(float), np.ones(N), np.zeros(N), response, chosen,
        np.array([0.0, 0.5, 0.5, 0.5]),
    )  # fmt: skip
    b = flat(ours)
    gradient = objective.gradient(b)
    assert abs(gradient[0]) < 1e-4
    for g, c in zip(gradient[1:], b[1:], strict=True):
        assert abs(g + l1 * np.sign(c)) < 1e-4 if c else abs(g) <= l1 + 1e-4


def test_softmax_l1_satisfies_the_kkt_conditions():
    y = RNG.integers(0, 3, N)
    ours = mk.regression.SoftmaxRegression(l1=4.0).fit(X, y)
    design = np.column_stack([np.ones(N), X])
    objective = SoftmaxObjective(design, np.eye(3)[y], np.zeros((N, 3)), np.zeros(4), True)
    b = np.column_stack([ours.intercept_, ours.coef_])
    gradient = objective.gradient(b.ravel()).reshape(3, 4)
    assert np.abs(gradient[:, 0]).max() < 1e-4
    held = b[:, 1:] != 0
    agree(gradient[:, 1:][held], -4.0 * np.sign(b[:, 1:][held]), atol=1e-4)
    assert np.all(np.abs(gradient[:, 1:][~held]) <= 4.0 + 1e-4)
    assert (~held).any()


# -- gradients, Hessians, identities -------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "link"), COMBINATIONS)
def test_gradients_and_observed_curvature_are_finite_differences(family, link):
    y = RESPONSES[family].astype(float)
    response, chosen = family_and_link(family, link)
    design = np.column_stack([np.ones(N), X])
    objective = GlmObjective(design, y, WEIGHTS, np.zeros(N), response, chosen, np.full(4, 0.3))
    b = flat(mk.regression.GLM(family, link, l2=3.0).fit(X, y)) * 1.05
    h = 1e-5
    steps = np.eye(4) * h
    numeric = [(objective.value(b + s) - objective.value(b - s)) / (2 * h) for s in steps]
    agree(objective.gradient(b), numeric, rtol=1e-5, atol=1e-4)
    numeric = [(objective.gradient(b + s) - objective.gradient(b - s)) / (2 * h) for s in steps]
    agree(objective.hessian(b, observed=True), numeric, rtol=1e-5, atol=1e-3)
    if link is None:  # the canonical link: gradient X'(y - mu), Hessian X'WX
        mu = chosen.inverse(design @ b)
        sign = -1.0 if chosen.name == "inverse" else 1.0
        agree(objective.gradient(b), -sign * design.T @ (WEIGHTS * (y - mu)) + 0.3 * b)
        w = WEIGHTS * response.variance(mu)
        agree(objective.hessian(b), (design * w[:, None]).T @ design + 0.3 * np.eye(4))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(COMBINATIONS), st.integers(0, 2**32 - 1), st.floats(0.1, 3.0), st.floats(0.05, 2.0))
def test_iterations_never_raise_the_objective_and_end_where_the_gradient_vanishes(pair, seed, size, l2):
    family, link = pair
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(25, 2)) * size
    y = {
        "gaussian": rng.normal(size=25) + (6 if link == "log" else 0),
        "bernoulli": rng.permutation(np.arange(25) % 2),
        "poisson": rng.poisson(3, 25),
        "gamma": rng.gamma(1.0, 2.0, 25) + 1e-3,
    }[family].astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = mk.regression.GLM(family, link, l2=l2).fit(x, y)
    assert np.all(np.diff(model.path_) <= 1e-12 * (1 + abs(model.path_[0])))
    if model.converged_ and family_and_link(family, link)[1].valid is None and link != "identity":
        response, chosen = family_and_link(family, link)
        design = np.column_stack([np.ones(25), x])
        penalty = np.array([0.0, l2, l2])
        objective = GlmObjective(design, y, np.ones(25), np.zeros(25), response, chosen, penalty)
        assert np.abs(objective.gradient(flat(model))).max() < 1e-4 * (1 + np.abs(y).sum())


def test_softmax_gradient_and_hessian_are_finite_differences():
    counts = RNG.integers(0, 4, (N, 3)).astype(float)
    for symmetric in (False, True):
        objective = SoftmaxObjective(X, counts, np.zeros((N, 3)), np.full(3, 0.2), symmetric)
        b = RNG.normal(size=objective.free * 3)
        steps = np.eye(b.size) * 1e-5
        numeric = [(objective.value(b + s) - objective.value(b - s)) / 2e-5 for s in steps]
        agree(objective.gradient(b), numeric, rtol=1e-5, atol=1e-5)
        numeric = [(objective.gradient(b + s) - objective.gradient(b - s)) / 2e-5 for s in steps]
        agree(objective.hessian(b), numeric, rtol=1e-5, atol=1e-4)


def test_the_two_forms_of_the_logistic_loss_are_the_same():
    y = RESPONSES["bernoulli"].astype(float)
    response, link = family_and_link("bernoulli", None)
    objective = GlmObjective(X, y, np.ones(N), np.zeros(N), response, link, np.zeros(3))
    w = np.array([0.5, -1.0, 2.0])
    mu = 1 / (1 + np.exp(-X @ w))
    cross_entropy = -(y * np.log(mu) + (1 - y) * np.log(1 - mu)).sum()
    signs = 2 * y - 1
    agree(objective.value(w), cross_entropy)
    agree(cross_entropy, np.log1p(np.exp(-signs * (X @ w))).sum())
    a = np.linspace(-5, 5, 11)
    sigmoid = LINKS["logit"].inverse
    agree(sigmoid(-a), 1 - sigmoid(a))
    agree(LINKS["logit"].slope(a), sigmoid(a) * (1 - sigmoid(a)))
    far = GlmObjective(
        np.array([[1.0], [1.0]]), np.array([1.0, 0.0]), np.ones(2), np.zeros(2), response, link, np.zeros(1)
    )
    assert far.value(np.array([800.0])) == pytest.approx(800.0)


@pytest.mark.parametrize("link", LINKS)
def test_links_are_inverses_with_their_derivatives(link):
    g = LINKS[link]
    eta = np.linspace(0.2, 1.5, 9) if g.valid else np.linspace(-1.5, 1.5, 9)
    agree(g.of(g.inverse(eta)), eta)
    h = 1e-6
    agree(g.slope(eta), (g.inverse(eta + h) - g.inverse(eta - h)) / (2 * h), rtol=1e-6)
    agree(g.bend(eta), (g.slope(eta + h) - g.slope(eta - h)) / (2 * h), rtol=1e-6, atol=1e-6)
    if g.tails:
        up, down, slope = g.tails(eta)
        agree(np.exp(up), g.inverse(eta))
        agree(np.exp(down), 1 - g.inverse(eta))
        agree(np.exp(slope), g.slope(eta))
        extreme = np.array([-700.0, -40.0, 40.0]) if link != "cloglog" else np.array([-700.0, -40.0, 5.0])
        assert all(np.isfinite(t).all() for t in g.tails(extreme))


# -- solvers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize(("family", "link"), [c for c in COMBINATIONS if c[1] not in ("sqrt", "identity")])
def test_solvers_agree(solver, family, link):
    if family == "gamma" and link is None and solver == "lbfgs":
        with pytest.raises(InvalidArgument, match="cannot stay inside"):
            mk.regression.GLM(family, link, solver=solver).fit(X, RESPONSES[family])
        return
    y = RESPONSES[family]
    one = mk.regression.GLM(family, link).fit(X, y)
    two = mk.regression.GLM(family, link, solver=solver, max_iter=500).fit(X, y)
    assert two.converged_
    agree(flat(two), flat(one), rtol=1e-3, atol=1e-4)
    assert two.deviance_ <= one.deviance_ * (1 + 1e-7)


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson"])
def test_online_rules_come_close_and_repeat_themselves(family):
    y = RESPONSES[family]
    exact = mk.regression.GLM(family).fit(X, y)
    model = mk.regression.GLM(family, solver="sgd", learning_rate=0.3, max_iter=150, tol=1e-9, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = clone(model).fit(X, y)
        again = clone(model).fit(X, y)
    agree(flat(first), flat(again), rtol=0, atol=0)
    assert first.deviance_ - exact.deviance_ < 0.01 * exact.deviance_


def test_the_lms_rule_is_one_step_a_row():
    y = RESPONSES["gaussian"]
    model = mk.regression.LinearRegression(solver="lms", learning_rate=0.05)
    model.partial_fit(X[:10], y[:10])
    model.partial_fit(X[10:20], y[10:20])
    theta = np.zeros(4)
    for x, target in zip(np.column_stack([np.ones(20), X[:20]]), y[:20], strict=True):
        theta += 0.05 * (target - theta @ x) * x
    agree(flat(model), theta)
    logistic = mk.regression.LogisticRegression(solver="lms", learning_rate=0.1)
    logistic.partial_fit(X[:5], ["b", "a", "b", "a", "a"], classes=["a", "b"])
    theta = np.zeros(4)
    for x, target in zip(np.column_stack([np.ones(5), X[:5]]), [1, 0, 1, 0, 0], strict=True):
        theta += 0.1 * (target - 1 / (1 + np.exp(-theta @ x))) * x
    agree(flat(logistic), theta)
    with pytest.raises(InvalidArgument, match="not announced"):
        logistic.partial_fit(X[:2], ["a", "c"])
    assert not hasattr(mk.regression.LinearRegression(), "partial_fit")


def test_softmax_learns_online():
    y = np.array(["r", "g", "b"])[RNG.integers(0, 3, N)]
    exact = mk.regression.SoftmaxRegression(l2=1.0).fit(X, y)
    online = mk.regression.SoftmaxRegression(
        l2=1.0, solver="sgd", learning_rate=0.5, max_iter=100, random_state=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        online.fit(X, y)
    agree(online.predict_proba(X), exact.predict_proba(X), rtol=0, atol=0.03)


def test_counts_and_repeated_rows_give_the_same_softmax():
    counts = RNG.integers(0, 4, (20, 3))
    rows = np.column_stack([np.ones(20), X[:20]])
    fit = fit_softmax(rows, counts, l2=[0.0, 0.5, 0.5, 0.5])
    labels = np.concatenate([np.repeat(np.arange(3), c) for c in counts])
    again = mk.regression.SoftmaxRegression(l2=0.5).fit(np.repeat(X[:20], counts.sum(axis=1), axis=0), labels)
    agree(fit.coef[:, 1:], again.coef_, rtol=1e-6)
    agree(fit.log_likelihood, again.log_likelihood_)
    assert np.abs(fit.coef.sum(axis=0)).max() < 1e-8
    free = fit_softmax(rows, counts + 1.0)
    least = fit_softmax(rows, counts + 1.0, symmetric=True)
    agree(least.coef, free.coef - free.coef.mean(axis=0), rtol=1e-6)
    with pytest.raises(InvalidArgument, match="same number of rows"):
        fit_softmax(rows, counts[:5])


# -- trouble --------------------------------------------------------------------------------------------------------


def test_separated_classes_are_reported():
    x = np.arange(10.0)[:, None]
    with pytest.warns(ConvergenceWarning, match="has no finite maximum"):
        mk.regression.LogisticRegression().fit(x, x[:, 0] > 4.5)
    with pytest.warns(ConvergenceWarning, match="has no finite maximum"):
        mk.regression.SoftmaxRegression().fit(x, np.repeat([0, 1, 2], [3, 4, 3]))
    with pytest.warns(ConvergenceWarning, match="has no finite maximum"):
        mk.regression.PoissonRegression().fit((x > 4.5).astype(float), np.where(x[:, 0] > 4.5, 0, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mk.regression.LogisticRegression(l2=0.1).fit(x, x[:, 0] > 4.5)
        mk.regression.LogisticRegression().fit(x, np.arange(10) % 3 == 0)


def test_separation_that_is_too_large_to_decide_is_not_hidden(monkeypatch):
    from markovia.learning.regression import separated_data

    x = np.array([[0.0], [1.0], [1.0], [2.0]])
    with pytest.warns(ConvergenceWarning, match="are separated"):
        mk.regression.LogisticRegression().fit(x, [0, 0, 1, 1])
    monkeypatch.setattr(separated_data, "_LARGEST", 1)
    with pytest.warns(ConvergenceWarning, match="may be separated"):
        mk.regression.LogisticRegression().fit(x, [0, 0, 1, 1])


def test_a_steep_slope_is_not_called_separation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mk.regression.LogisticRegression().fit(x, 15 * x[:, 0] + rng.logistic(size=400) > 0)
        mk.regression.PoissonRegression().fit(x * 3, rng.poisson(np.exp(4 * x[:, 0])))


def test_quasi_separation_is_told_from_steep_slopes():
    x = np.array([[0.0], [1.0], [1.0], [2.0]])
    assert separated_classes(np.column_stack([np.ones(4), x]), np.array([0, 0, 1, 1]), 2)
    assert not separated_classes(np.column_stack([np.ones(4), x]), np.array([0, 1, 0, 0]), 2)


def test_dependent_columns_are_named_and_predictions_still_right():
    doubled = np.column_stack([X, X[:, 0] + X[:, 1]])
    for family in ("gaussian", "bernoulli"):
        y = RESPONSES[family]
        with pytest.warns(ConvergenceWarning, match="column 3 is a linear combination"):
            ours = mk.regression.GLM(family).fit(doubled, y)
        agree(ours.predict_mean(doubled), mk.regression.GLM(family).fit(X, y).predict_mean(X))
    with pytest.warns(ConvergenceWarning, match="'d' is a linear combination"):
        mk.regression.LinearRegression().fit(
            pd.DataFrame(doubled, columns=list("abcd")), RESPONSES["gaussian"]
        )
    assert dependent_columns(doubled, np.ones(N)) == [3]
    design = np.column_stack([X, X[:, 0]])
    assert np.linalg.eigvalsh(design.T @ design)[0] == pytest.approx(0.0, abs=1e-10)


def test_ill_conditioned_columns_are_solved_accurately():
    x = np.linspace(0, 1, N)
    powers = np.column_stack([x**k for k in range(1, 9)])
    y = powers.sum(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = mk.regression.LinearRegression().fit(powers, y)
    agree(model.predict(powers), y, rtol=1e-8)
    agree(model.coef_, np.ones(8), rtol=1e-3)


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (mk.regression.GLM("possion"), RESPONSES["poisson"], "did you mean 'poisson'"),
        (mk.regression.GLM("poisson", "logg"), RESPONSES["poisson"], "did you mean 'log'"),
        (mk.regression.GLM(solver="magic"), RESPONSES["gaussian"], "irls"),
        (mk.regression.GLM(l2=-1.0), RESPONSES["gaussian"], "l2= is a number"),
        (mk.regression.GLM(l1=1.0, solver="sgd"), RESPONSES["gaussian"], "no L1 penalty"),
        (mk.regression.GLM(max_iter=0), RESPONSES["gaussian"], "max_iter"),
        (mk.regression.GLM("poisson"), RESPONSES["gaussian"] - 10, "not negative"),
        (mk.regression.GLM("gamma"), RESPONSES["poisson"], "positive numbers"),
        (mk.regression.LogisticRegression(), np.arange(N) % 3, "SoftmaxRegression"),
        (mk.regression.LogisticRegression(), np.zeros(N), "one class"),
        (mk.regression.GLM("categorical", "log"), np.arange(N) % 3, "softmax link only"),
    ],
)
def test_bad_settings_and_responses_are_refused(model, y, message):
    with pytest.raises(InvalidArgument, match=message):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = mk.regression.SoftmaxRegression().fit(X, np.arange(N) % 3)
    before = model.predict_proba(X)
    with pytest.raises(InvalidArgument):
        model.fit(X[:, :2], np.array(["a", "b"])[np.arange(N) % 2], offset=np.ones(N))
    assert model.n_features_in_ == 3
    agree(model.predict_proba(X), before)


def test_bad_offsets_are_refused():
    with pytest.raises(InvalidArgument, match="log link"):
        mk.regression.LinearRegression().fit(X, RESPONSES["gaussian"], exposure=np.ones(N))
    with pytest.raises(InvalidArgument, match="one finite number a row"):
        mk.regression.LinearRegression().fit(X, RESPONSES["gaussian"], offset=np.ones(3))
    with pytest.raises(InvalidArgument, match="no offset"):
        mk.regression.SoftmaxRegression().fit(X, np.arange(N) % 3, offset=np.ones(N))


def test_an_online_rule_that_diverges_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidArgument, match="smaller one"):
            mk.regression.LinearRegression(solver="lms", learning_rate=50.0).fit(X, RESPONSES["gaussian"])


def test_a_run_that_stops_early_warns():
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 steps"):
        mk.regression.LogisticRegression(max_iter=1).fit(X, RESPONSES["bernoulli"])


# -- scikit-learn ---------------------------------------------------------------------------------------------------


def test_models_work_in_pipelines_and_cross_validation():
    y = np.where(RESPONSES["bernoulli"] == 1, "yes", "no")
    pipe = make_pipeline(StandardScaler(), mk.regression.LogisticRegression(l2=1.0))
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.5
    assert cross_val_score(mk.regression.PoissonRegression(), X, RESPONSES["poisson"], cv=3).shape == (3,)
    model = clone(mk.regression.GLM("gamma", "log", l2=0.3).set_params(l1=0.1))
    assert model.get_params()["l1"] == 0.1
    assert is_classifier(mk.regression.SoftmaxRegression())
    assert is_regressor(mk.regression.GLM("gamma"))
    assert is_classifier(mk.regression.GLM("bernoulli"))
    assert not hasattr(mk.regression.GLM("poisson"), "predict_proba")
    ours = mk.regression.PoissonRegression().fit(X, RESPONSES["poisson"])
    other = sk.PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000).fit(X, RESPONSES["poisson"])
    agree(ours.score(X, RESPONSES["poisson"]), other.score(X, RESPONSES["poisson"]))


# -- at weights of one's own ----------------------------------------------------------------------------------------


def _log_likelihood(family, y, mu, w, phi):
    law = {
        "gaussian": lambda: stats.norm(mu, np.sqrt(phi)).logpdf(y),
        "bernoulli": lambda: stats.bernoulli(mu).logpmf(y),
        "poisson": lambda: stats.poisson(mu).logpmf(y),
        "gamma": lambda: stats.gamma(1 / phi, scale=mu * phi).logpdf(y),
    }
    return float(w @ law[family]())


@pytest.mark.parametrize(
    ("family", "link", "inverse"),
    [
        ("gaussian", None, lambda e: e),
        ("bernoulli", None, lambda e: 1 / (1 + np.exp(-e))),
        ("bernoulli", "probit", lambda e: stats.norm.cdf(e)),
        ("poisson", None, np.exp),
        ("poisson", "sqrt", lambda e: e**2),
        ("gamma", "log", np.exp),
    ],
)
def test_likelihood_gradient_and_hessian_at_given_weights(family, link, inverse):
    rng = np.random.default_rng(3)
    x, w, offset = (
        rng.normal(size=(12, 2)),
        rng.integers(0, 4, size=12).astype(float),
        0.1 * rng.normal(size=12),
    )
    y = rng.integers(0, 2, size=12) if family == "bernoulli" else rng.integers(1, 6, size=12).astype(float)
    b = np.array([2.0, 0.2, -0.3])
    phi = 1.7 if family in ("gaussian", "gamma") else None

    def at(b):
        return _log_likelihood(family, y, inverse(b[0] + x @ b[1:] + offset), w, phi or 1.0)

    model = mk.regression.GLM(family, link)
    found = model.likelihood(x, y, b[1:], b[0], sample_weight=w, offset=offset, dispersion=phi)
    assert found.log_likelihood == pytest.approx(at(b), rel=1e-12)
    assert found.names == ("intercept", "x0", "x1")
    assert not hasattr(model, "classes_")  # asking leaves the model unfitted
    steps = 1e-4 * np.eye(3)
    gradient = [(at(b + s) - at(b - s)) / 2e-4 for s in steps]
    assert found.gradient == pytest.approx(gradient, rel=1e-6, abs=1e-6)
    ask = partial(model.likelihood, x, y, sample_weight=w, offset=offset, dispersion=phi)
    slopes = [
        (ask((b + s)[1:], (b + s)[0]).gradient - ask((b - s)[1:], (b - s)[0]).gradient) / 2e-4 for s in steps
    ]
    assert found.hessian == pytest.approx(np.array(slopes), rel=1e-6, abs=1e-6)


def test_the_likelihood_of_held_out_rows_is_that_of_their_predictions():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    y = np.array(["a", "b", "c"])[(x @ [[1, 0, -1], [0, 1, -1]] + rng.gumbel(size=(80, 3))).argmax(axis=1)]
    model = mk.regression.SoftmaxRegression().fit(x[:60], y[:60])
    held = model.likelihood(x[60:], y[60:])
    p = model.predict_proba(x[60:])
    assert held.log_likelihood == pytest.approx(
        np.log(p[np.arange(20), np.searchsorted(model.classes_, y[60:])]).sum()
    )
    assert held.gradient.shape == (9,)
    assert held.names[:2] == ("a: intercept", "a: x0")
    own = model.likelihood(x[:60], y[:60])
    assert own.log_likelihood == pytest.approx(model.log_likelihood_)
    assert own.gradient == pytest.approx(np.zeros(9), abs=1e-8)
    moved = model.likelihood(
        x[:60], y[:60], model.coef_ + 0.1, model.intercept_
    )  # all classes alike change nothing
    assert moved.log_likelihood == pytest.approx(own.log_likelihood)
    # the fitted variance is taken for rows that were not seen
    line = mk.regression.LinearRegression().fit(x[:60], x[:60, 0] + rng.normal(size=60))
    law = stats.norm(line.predict(x[60:]), np.sqrt(line.dispersion_))
    assert line.likelihood(x[60:], x[60:, 0]).log_likelihood == pytest.approx(law.logpdf(x[60:, 0]).sum())


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_likelihood_at_given_weights_goes_with_the_unit(unit):
    x, y = np.array([[1.0], [2.0], [4.0]]), [1, 3, 9]
    plain = mk.regression.GLM("poisson").likelihood(x, y, [0.5], 0.1)
    turned = mk.regression.GLM("poisson").likelihood(x * unit, y, [0.5 / unit], 0.1)
    assert turned.log_likelihood == pytest.approx(plain.log_likelihood)
    assert turned.gradient == pytest.approx(plain.gradient * [1, unit])
    sure = mk.regression.GLM("bernoulli").likelihood([[1.0], [-1.0]], [0, 1], [800.0])
    assert sure.log_likelihood == pytest.approx(-1600.0)  # where probabilities are below the smallest number


def test_weights_that_do_not_fit_are_refused():
    glm = mk.regression.GLM("poisson", "identity")
    x, y = [[1.0], [2.0]], [1, 2]
    with pytest.raises(InvalidArgument, match="has a mean that the family 'poisson' does not have"):
        glm.likelihood(x, y, [-1.0])
    with pytest.raises(InvalidArgument, match="one number for each of 1 columns"):
        glm.likelihood(x, y, [1.0, 2.0])
    with pytest.raises(InvalidArgument, match="no dispersion"):
        glm.likelihood(x, y, [1.0], dispersion=2.0)
    with pytest.raises(InvalidArgument, match="comes with coef="):
        mk.regression.GLM().fit(x, y).likelihood(x, y, intercept=1.0)
    with pytest.raises(NotFittedError):
        glm.likelihood(x, y)
