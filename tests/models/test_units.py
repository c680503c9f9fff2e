"""The unit of the data is the data's own affair: likelihood fits, scores and tests scale with it, and move with its origin.

Each row of the table fits one estimator to data in units of `c` around `shift`, and says of what it found by which power of
`c` it is larger: 0 for shares, labels and p-values, 1 for means, 2 for variances.
"""

import warnings
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest

import markovia as mk

RNG = np.random.default_rng(11)
GROUPS = np.vstack(
    [
        RNG.normal([0.0, 3.0, 1.0], [1.0, 0.5, 2.0], (60, 3)),
        RNG.normal([5.0, -1.0, 2.0], [0.7, 1.5, 1.0], (45, 3)),
    ]
)[RNG.permutation(105)]
KIND = np.where(GROUPS[:, 0] - GROUPS[:, 1] > 0.3, "b", "a")
KIND[::13] = "a"
_FACTOR = RNG.normal(size=(150, 2))
FACTORS = _FACTOR @ [[1.0, 2.0, -1.0, 0.4, 0.0], [0.0, 0.5, 1.0, -1.3, 2.0]] + RNG.normal(
    0, [0.5, 0.8, 1, 0.6, 0.9], (150, 5)
)
_U = RNG.uniform(-1, 1, (400, 3))
CAUSAL = np.column_stack([_U[:, 0], 1.5 * _U[:, 0] + 0.6 * _U[:, 1], 0.0 * _U[:, 2]])
CAUSAL[:, 2] = 0.8 * CAUSAL[:, 1] - 0.9 * CAUSAL[:, 0] + 0.7 * _U[:, 2]
REGRESSORS = RNG.normal([0.0, 2.0], [1.0, 3.0], (90, 2))
RESPONSE = 1.0 + REGRESSORS @ [0.7, -0.3] + RNG.normal(0, 0.6, 90)
SWITCHED = np.where(RNG.random(90) < 0.4, 6.0 - 2.0 * REGRESSORS[:, 0] + RNG.normal(0, 0.3, 90), RESPONSE)
_STATES = np.cumsum(RNG.random(160) < 0.1) % 2
SERIES = np.where(_STATES == 1, 3.0, -1.0) + np.where(_STATES == 1, 0.5, 1.1) * RNG.normal(size=160)
WALK = np.cumsum(RNG.normal(0, 0.7, 90)) + RNG.normal(0, 1.0, 90)
WALK[[3, 40, 41]] = np.nan
PULLED = np.zeros(140)
for _t in range(1, 140):
    PULLED[_t] = 0.8 * PULLED[_t - 1] + RNG.normal(0, 1.3)
INPUT = RNG.normal(0, 2.0, (90, 1))
PANEL = np.outer(PULLED[:80], [1.0, -0.6, 2.0]) + RNG.normal(0, [0.5, 0.8, 1.1], (80, 3))
NAMES = ["u", "v", "w"]


def of_mixture(m):
    order = np.argsort(m.means_[:, 0])
    return {
        "weights": (m.weights_[order], 0),
        "means": (m.means_[order], 1),
        "covariances": (np.asarray(m.covariances_)[order], 2),
        "converged": (m.converged_, 0),
    }


def gaussian_mixture(kind, **more):
    def fit(c, shift):
        m = mk.GaussianMixture(2, covariance_type=kind, random_state=3, **more).fit(c * (GROUPS + shift))
        found = of_mixture(m) if kind not in ("tied",) else {"weights": (np.sort(m.weights_), 0)}
        return found | {"proba": (np.sort(m.predict_proba(c * (GROUPS + shift)), axis=1), 0)}

    return fit


def student_mixture(c, shift):
    m = mk.mixtures.StudentTMixture(2, random_state=3, init_params="kmeans").fit(c * (GROUPS + shift))
    means = m.component_params_["means"]
    return {"weights": (np.sort(m.weights_), 0), "means": (means[np.argsort(means[:, 0])], 1)}


def dirichlet_process(c, shift):
    m = mk.DirichletProcessMixture(random_state=3, max_iter=60).fit(c * (GROUPS + shift))
    return {"n": (m.n_components_, 0), "labels": (m.labels_ == m.labels_[0], 0)}


def mixture_of_two_kinds(c, shift):
    """Numbers, one of them all but constant in a component, beside categories: components of their own."""
    narrow = np.where(KIND == "b", GROUPS[:, 0], 1e-4 * GROUPS[:, 0])
    frame = pd.DataFrame({"x": c * (narrow + shift), "y": c * (GROUPS[:, 1] + shift), "kind": KIND})
    m = mk.Mixture(
        {"x": "gaussian", "y": "gaussian", "kind": "categorical"}, 2, reg_covar=1e-2, random_state=3
    )
    proba = m.fit(frame).predict_proba(frame)
    return {"proba": (np.sort(proba, axis=1), 0), "weights": (np.sort(m.weights_), 0)}


def k_means(c, shift):
    m = mk.KMeans(2, random_state=3).fit(c * (GROUPS + shift))
    return {
        "centres": (m.cluster_centers_[np.argsort(m.cluster_centers_[:, 0])], 1),
        "inertia": (m.inertia_, 2),
    }


def factor_analysis(c, shift):
    m = mk.mixtures.FactorAnalysis(2).fit(c * (FACTORS + shift))
    return {"noise": (m.noise_variance_, 2), "shared": (m.components_.T @ m.components_, 2), "mean": (m.mean_, 1),
            "converged": (m.converged_, 0)}  # fmt: skip


def probabilistic_pca(c, shift):
    m = mk.mixtures.ProbabilisticPCA(2).fit(c * (FACTORS + shift))
    return {"noise": (m.noise_variance_, 2), "shared": (m.components_.T @ m.components_, 2)}


def probabilistic_pca_with_gaps(c, shift):
    rows = c * (FACTORS + shift)
    rows[[3, 20, 21], [1, 0, 4]] = np.nan
    m = mk.mixtures.ProbabilisticPCA(2).fit(rows)
    return {"noise": (m.noise_variance_, 2), "shared": (m.components_.T @ m.components_, 2)}


def independent_components(c, shift):
    m = mk.mixtures.ICA(3, random_state=2).fit(c * (CAUSAL + shift))
    return {"mixing": (np.abs(m.mixing_), 1), "mean": (m.mean_, 1)}


def gaussian_hmm(kind):
    def fit(c, shift):
        m = mk.HMM(2, emission="gaussian", covariance_type=kind, random_state=1).fit(c * (SERIES + shift))
        order = np.argsort(m.means_[:, 0])
        return {"moves": (m.transmat_[np.ix_(order, order)], 0), "means": (m.means_[order], 1)}

    return fit


def semi_markov(c, shift):
    m = mk.series.HiddenSemiMarkov(2, emission="gaussian", max_duration=25, random_state=1).fit(
        c * (SERIES + shift)
    )
    return {"means": (np.sort(m.means_[:, 0]), 1)}


def factorial_hmm(c, shift):
    m = mk.series.FactorialHMM((2, 2), random_state=1, max_iter=30).fit([c * (SERIES + shift)])
    return {"log_prob": (m.score([c * (SERIES + shift)]) + len(SERIES) * np.log(c), 0)}


def naive_bayes(c, shift):
    m = mk.classifiers.GaussianNaiveBayes().fit(c * (GROUPS + shift), KIND)
    return {"theta": (m.theta_, 1), "var": (m.var_, 2), "proba": (m.predict_proba(c * (GROUPS + shift)), 0)}


def mixed_naive_bayes(c, shift):
    frame = pd.DataFrame(c * (GROUPS + shift), columns=NAMES).assign(k=np.where(GROUPS[:, 1] > 1, "x", "y"))
    m = mk.classifiers.NaiveBayes().fit(frame, KIND)
    return {"proba": (m.predict_proba(frame), 0)}


def linear_regression(c, shift):
    m = mk.regression.LinearRegression().fit(REGRESSORS, c * (RESPONSE + shift))
    return {"coef": (m.coef_, 1), "errors": (m.standard_errors_, 1), "dispersion": (m.dispersion_, 2)}


def small_regressors(c, shift):
    m = mk.regression.LinearRegression().fit(c * (REGRESSORS + shift), RESPONSE)
    return {"coef": (m.coef_, -1), "converged": (m.converged_, 0)}


def logistic_regression(c, shift):
    m = mk.regression.LogisticRegression().fit(c * (REGRESSORS + shift), RESPONSE > 1)
    return {
        "coef": (m.coef_, -1),
        "proba": (m.predict_proba(c * (REGRESSORS + shift)), 0),
        "converged": (m.converged_, 0),
    }


def poisson_regression(c, shift):
    m = mk.regression.PoissonRegression().fit(c * (REGRESSORS + shift), np.round(np.exp(0.3 * RESPONSE)))
    return {"coef": (m.coef_, -1), "converged": (m.converged_, 0)}


def gamma_glm(c, shift):
    m = mk.regression.GLM("gamma", link="log").fit(REGRESSORS, c * np.exp(0.4 * RESPONSE))
    return {"coef": (m.coef_, 0), "errors": (m.standard_errors_, 0), "converged": (m.converged_, 0)}


def gaussian_log_glm(c, shift):
    m = mk.regression.GLM("gaussian", link="log").fit(REGRESSORS, c * np.exp(0.4 * RESPONSE))
    return {"coef": (m.coef_, 0), "errors": (m.standard_errors_, 0), "converged": (m.converged_, 0)}


def lms_glm(c, shift):
    m = mk.regression.GLM("gaussian", solver="lms").fit(REGRESSORS, c * RESPONSE)
    return {"coef": (m.coef_, 1), "rounds": (m.n_iter_, 0)}


def discontinuity(c, shift):
    rows = pd.DataFrame(
        {"r": c * (REGRESSORS[:, 1] + shift), "y": c * (RESPONSE + (REGRESSORS[:, 1] > 2.2) + shift)}
    )
    found = mk.causal.regression_discontinuity(rows, "r", "y", cutoff=c * (2.2 + shift))
    return {"estimate": (found.value, 1), "error": (found.standard_error, 1)}


def granger_causes(c, shift):
    rows = pd.DataFrame(c * (PANEL + shift), columns=NAMES)
    found = mk.granger(rows, lags=2)
    return {"p": ([(one.f, one.f_p, one.lr) for one in found], 0)}


def lbfgs_glm(c, shift):
    m = mk.regression.GLM("gaussian", solver="lbfgs").fit(REGRESSORS, c * (RESPONSE + shift))
    return {"coef": (m.coef_, 1)}


def lbfgs_logistic(c, shift):
    m = mk.regression.GLM("binomial", solver="lbfgs").fit(c * (REGRESSORS + shift), RESPONSE > 1)
    return {"coef": (m.coef_, -1)}


def regression_mixture(c, shift):
    m = mk.mixtures.RegressionMixture(2, random_state=1, n_init=3).fit(REGRESSORS, c * (SWITCHED + shift))
    order = np.argsort(m.weights_)
    return {
        "coef": (m.coef_[order], 1),
        "variances": (m.variances_[order], 2),
        "weights": (m.weights_[order], 0),
    }


def mixture_of_experts(c, shift):
    m = mk.mixtures.MixtureOfExperts(2, random_state=1).fit(REGRESSORS, c * (SWITCHED + shift))
    order = np.argsort(m.variances_)
    return {"coef": (m.coef_[order], 1), "variances": (m.variances_[order], 2)}


def linear_gaussian_network(c, shift):
    rows = pd.DataFrame(c * (CAUSAL + shift), columns=NAMES)
    m = mk.BayesianNetwork("u->v; u->w; v->w").fit(rows)
    found = m.query("w", given={"u": c * (0.3 + shift), "v": c * (0.9 + shift)})
    return {"sd": (found.sd(), 1), "expected": (found.mean() - c * shift, 1)}


def network_with_gaps(c, shift):
    rows = pd.DataFrame(c * (CAUSAL[:120] + shift), columns=NAMES)
    rows.loc[::7, "v"] = np.nan
    m = mk.BayesianNetwork("u->v; u->w; v->w").fit(rows, missing=mk.EM(seed=0))
    found = m.query("w", given={"u": c * (0.3 + shift)})
    return {"sd": (found.sd(), 1), "expected": (found.mean() - c * shift, 1)}


def gaussian_field(c, shift):
    start = mk.GaussianMarkovNetwork([[2.0, 0.5, 0.0], [0.5, 2.0, 0.5], [0.0, 0.5, 2.0]], names=NAMES)
    m = start.fit(pd.DataFrame(c * (CAUSAL + shift), columns=NAMES))
    return {
        "precision": (
            np.asarray(m.precision.todense() if hasattr(m.precision, "todense") else m.precision),
            -2,
        )
    }


def found_edges(method, columns=None, **options):
    def learn(c, shift):
        rows = pd.DataFrame(c * ((CAUSAL if columns is None else columns) + shift))
        rows.columns = [f"x{i}" for i in rows]
        found = mk.learn_structure(rows, method, seed=0, **options)
        return {"edges": (np.frombuffer(str(found.edges).encode(), dtype=np.uint8), 0)}

    return learn


def structure_score(name):
    def score(c, shift):
        rows = pd.DataFrame(c * (CAUSAL + shift), columns=NAMES).assign(
            k=np.where(CAUSAL[:, 0] > 0.2, "x", "y")
        )
        rows = rows if name == "cg-bic" else rows[NAMES]
        edges = mk.graphs.DAG([("u", "v"), ("v", "w")] + ([("k", "w")] if name == "cg-bic" else []))
        found = mk.score_graph(edges, rows, name)
        return {"score": (found + 3 * len(rows) * np.log(c), 0)}

    return score


def independence(name, given=("v",)):
    def test(c, shift):
        rows = pd.DataFrame(c * (CAUSAL[:150] + shift), columns=NAMES)
        if name == "mixed":
            rows["u"] = np.where(CAUSAL[:150, 0] > 0.2, "x", "y")
        found = mk.independence_test(rows, "u", "w", given, test=name)
        return {"p": (found.p_value, 0), "statistic": (found.statistic, 0)}

    return test


def direction(model):
    def test(c, shift):
        x = CAUSAL[:150, 0]
        y = x**3 + x + 0.3 * CAUSAL[:150, 1]
        found = mk.pairwise_direction(c * (x + shift), c * (y + shift), model)
        return {"forward": (found.direction == "x -> y", 0)}

    return test


def of_series(m, powers):
    found = {name: (value, powers.get(name, 0)) for name, value in m.params_.items()}
    errors = {f"error of {name}": (value, powers.get(name, 0)) for name, value in m.standard_errors_.items()}
    return found | errors | {"converged": (m.converged_, 0)}


def arima(c, shift):
    m = mk.ARIMA((1, 0, 1), constant=True).fit(c * (PULLED + shift))
    found = of_series(m, {"variance": 2, "constant": 1})
    mean = m.params_["constant"] / (1 - m.params_["ar1"]) - c * shift
    return {n: v for n, v in found.items() if "constant" not in n} | {"level": (mean, 1)}


def seasonal_arima(c, shift):
    m = mk.ARIMA((0, 1, 1), seasonal_order=(0, 1, 1, 4)).fit(c * (WALK[:60] + shift))
    return of_series(m, {"variance": 2})


def drifting_arima(c, shift):
    m = mk.ARIMA((1, 1, 0), constant=True).fit(c * (WALK + shift + 30.0 * np.arange(90)))
    return of_series(m, {"variance": 2, "constant": 1})


def level_with_input(c, shift):
    m = mk.series.StructuralSeries("local level").fit(
        c * (WALK + shift + 0.4 * INPUT[:, 0]), inputs=INPUT * c**0.5
    )
    return of_series(m, {"irregular": 2, "level": 2, "input0": 0.5})


def structural(c, shift):
    m = mk.series.StructuralSeries("local linear trend", seasonal=3).fit(c * (WALK + shift))
    return {
        n: v
        for n, v in of_series(m, dict.fromkeys(m.parameter_names, 2)).items()
        if m.params_.get(n, 1) > 1e-9 * c**2
    }


def dynamic_factor(c, shift):
    m = mk.series.DynamicFactor(3).fit(PANEL * [c, 1.0, 1 / c])
    powers = {"loading0.0": 1, "loading2.0": -1, "variance0": 2, "variance2": -2}
    return of_series(m, powers)


def local_level_by_gradient(c, shift):
    m = mk.LinearStateSpace(
        1, 1, 1, 1, learn=["observation_cov", "transition_cov"], method="gradient", tol=1e-9
    )
    m.fit(c * (WALK + shift))
    return {"noise": (m.observation_cov_, 2), "level": (m.transition_cov_, 2), "converged": (m.converged_, 0),
            "error": (m.standard_errors_["transition_cov"], 2)}  # fmt: skip


def state_space_by_gradient(c, shift):
    learn = ["transition", "transition_cov", "observation_cov", "observation_offset"]
    start = {"initial_mean": 0, "initial_cov": c**2, "learn": learn, "method": "gradient", "tol": 1e-9}
    m = mk.LinearStateSpace(0.4, 1, 1, 1, **start).fit(c * (PULLED + shift))
    return {"moves": (m.transition_, 0), "spread": (m.transition_cov_ + m.observation_cov_, 2),
            "offset": (m.observation_offset_ - c * shift, 1)}  # fmt: skip


def state_space_by_em(c, shift):
    start = {
        "transition_cov": c**2,
        "observation_cov": c**2,
        "initial_mean": c * shift,
        "initial_cov": 4 * c**2,
    }
    m = mk.LinearStateSpace(1, **start, learn=["transition_cov", "observation_cov"], max_iter=300).fit(
        c * (WALK + shift)
    )
    return {"noise": (m.observation_cov_, 2), "level": (m.transition_cov_, 2), "iterations": (m.n_iter_, 0)}


def switching(c, shift):
    given = {
        "transition": [[[0.9]], [[0.5]]], "transition_cov": [[[c**2]], [[4 * c**2]]], "observation": 1,
        "observation_cov": c**2, "initial_mean": 0, "initial_cov": c**2, "regime_transition": [[0.9, 0.1], [0.2, 0.8]],
        "learn": ["transition", "transition_cov", "observation_cov"], "max_iter": 8, "tol": 1e-3,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = mk.SwitchingStateSpace(**given).fit([c * PULLED[:80]])
    return {"moves": (m.transition_, 0), "spread": (m.transition_cov_, 2), "iterations": (m.n_iter_, 0)}


LOCATION = 40.0
MOVES = ("mean", "means", "theta", "centres")
"""What goes along with the data; all else stays where it is."""
TABLE = {  # the fit, and whether data may be anywhere
    "mixture, full": (gaussian_mixture("full"), True),
    "mixture, diag": (gaussian_mixture("diag"), True),
    "mixture, spherical": (gaussian_mixture("spherical"), True),
    "mixture, tied": (gaussian_mixture("tied"), True),
    "mixture of factor analysers": (gaussian_mixture("low-rank"), True),
    "mixture, online": (gaussian_mixture("full", method="online"), True),
    "student mixture": (student_mixture, True),
    "mixture of two kinds of columns": (mixture_of_two_kinds, True),
    "dirichlet process": (dirichlet_process, True),
    "k-means": (k_means, True),
    "factor analysis": (factor_analysis, True),
    "probabilistic pca": (probabilistic_pca, True),
    "probabilistic pca with gaps": (probabilistic_pca_with_gaps, True),
    "ica": (independent_components, True),
    "hmm, full": (gaussian_hmm("full"), True),
    "hmm, diag": (gaussian_hmm("diag"), True),
    "hidden semi-Markov": (semi_markov, True),
    "factorial hmm": (factorial_hmm, True),
    "naive Bayes": (naive_bayes, True),
    "naive Bayes, mixed": (mixed_naive_bayes, True),
    "linear regression": (linear_regression, True),
    "regressors": (small_regressors, True),
    "logistic regression": (logistic_regression, True),
    "poisson regression": (poisson_regression, True),
    "gamma regression": (gamma_glm, False),
    "regression with a log link": (gaussian_log_glm, False),
    "regression by LMS": (lms_glm, False),
    "regression discontinuity": (discontinuity, True),
    "granger": (granger_causes, True),
    "regression by L-BFGS": (lbfgs_glm, True),
    "logistic regression by L-BFGS": (lbfgs_logistic, True),
    "regression mixture": (regression_mixture, True),
    "mixture of experts": (mixture_of_experts, True),
    "linear Gaussian network": (linear_gaussian_network, True),
    "network with gaps": (network_with_gaps, True),
    "Gaussian Markov network": (gaussian_field, True),
    "direct-lingam": (found_edges("direct-lingam"), True),
    "ica-lingam": (found_edges("ica-lingam"), True),
    "anm": (found_edges("anm", CAUSAL[:100, :2]), True),
    "pnl": (found_edges("pnl", CAUSAL[:100, :2]), True),
    "notears": (found_edges("notears", standardise=True), True),
    "hill-climb": (found_edges("hill-climb"), True),
    "ges": (found_edges("ges"), True),
    "boss": (found_edges("boss"), True),
    "pc": (found_edges("pc"), True),
    "graphical-lasso": (found_edges("graphical-lasso", FACTORS), True),
    "neighbourhood": (found_edges("neighbourhood", FACTORS), True),
    "partial-correlation": (found_edges("partial-correlation", FACTORS), True),
    "gaussian-bic": (structure_score("gaussian-bic"), True),
    "cg-bic": (structure_score("cg-bic"), True),
    "fisher-z": (independence("fisher-z"), True),
    "mixed test": (independence("mixed"), True),
    "kci": (independence("kci"), True),
    "hsic": (independence("hsic", ()), True),
    "direction by anm": (direction("anm"), True),
    "arima": (arima, True),
    "seasonal arima with gaps": (seasonal_arima, True),
    "drifting arima": (drifting_arima, True),
    "local level with an input": (level_with_input, True),
    "structural series": (structural, True),
    "dynamic factor, each series its unit": (dynamic_factor, False),
    "local level by gradient": (local_level_by_gradient, True),
    "state space by gradient": (state_space_by_gradient, True),
    "state space by EM": (state_space_by_em, True),
    "switching state space": (switching, False),
}


@lru_cache
def at_one(name):
    return TABLE[name][0](1.0, 0.0)


def compared(found, want, what):
    want = np.asarray(want, dtype=float)
    np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-4 * np.abs(want).max(initial=0), err_msg=what)


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "c"),
    [
        *((name, 1e-9) for name in TABLE),
        *(pytest.param(name, 1e9, marks=[pytest.mark.slow] * (k % 3 > 0)) for k, name in enumerate(TABLE)),
    ],
)
def test_a_fit_scales_with_the_unit_of_its_data(name, c):
    for what, (value, power) in TABLE[name][0](c, 0.0).items():
        compared(np.asarray(value, dtype=float) / c**power, at_one(name)[what][0], f"{what} at {c:g}")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", [name for name, (_, anywhere) in TABLE.items() if anywhere])
def test_a_fit_moves_with_the_origin_of_its_data(name):
    for what, (value, _) in TABLE[name][0](1.0, LOCATION).items():
        here = np.asarray(value, dtype=float)
        compared(here - LOCATION if what in MOVES else here, at_one(name)[what][0], what)
