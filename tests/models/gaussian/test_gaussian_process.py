"""`mk.GaussianProcess`: fits, predictions, updates, left-out rows, likelihoods, its network, and what it refuses."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

import markovia as mk
from markovia.errors import ConvergenceWarning, InvalidArgument, TooLarge, Unanswered

k = mk.covariances
X3, Y3 = np.array([[0.0], [0.5], [2.0]]), np.array([1.0, 0.2, -0.7])
RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 3.0, (40, 2))
Y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=40)
NEW = RNG.uniform(0.0, 3.0, (6, 2))


@pytest.fixture(scope="module")
def fitted():
    return mk.GaussianProcess().fit(X, Y)


def fixed(model):
    """Return the fitted covariance as numbers."""
    return model.covariance_.with_values({n: h.value for n, h in model.covariance_.free().items()})


# -- fits ------------------------------------------------------------------------------------------------


def test_the_fit_is_at_the_top_that_scikit_learn_finds(fitted):
    kernel = kernels.ConstantKernel(1.0, (1e-9, 1e9)) * kernels.RBF(
        [1.0, 1.0], (1e-9, 1e9)
    ) + kernels.WhiteKernel(0.1, (1e-9, 1e9))
    theirs = GaussianProcessRegressor(kernel, alpha=0.0).fit(X, Y - Y.mean())
    assert fitted.log_marginal_likelihood() == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-5)
    mean, sd = theirs.predict(NEW, return_std=True)
    np.testing.assert_allclose(fitted.predict(NEW), mean + Y.mean(), atol=1e-3)
    np.testing.assert_allclose(fitted.predict(NEW, return_std=True)[1], sd, atol=1e-3)
    assert fitted.converged_
    assert (fitted.method_, fitted.info_.exact) == ("exact", True)
    assert "40 rows are few enough" in fitted.info_.note
    assert fitted.noise_variance_ == pytest.approx(0.01, rel=0.6)


def test_the_answers_are_those_of_the_dense_formulas(fitted):
    K, cross, own = fixed(fitted).value(X), fixed(fitted).value(X, NEW), fixed(fitted).value(NEW)
    mean, cov = fitted.predict(NEW, return_cov=True)
    np.testing.assert_allclose(mean, Y.mean() + cross.T @ np.linalg.solve(K, Y - Y.mean()), atol=1e-10)
    np.testing.assert_allclose(cov, own - cross.T @ np.linalg.solve(K, cross), atol=1e-10)
    np.testing.assert_allclose(fitted.predict(NEW, return_std=True)[1], np.sqrt(np.diag(cov)), atol=1e-10)
    without = fitted.function().at(NEW)
    np.testing.assert_allclose(without.mean(), mean, atol=1e-12)
    np.testing.assert_allclose(without.cov(), cov - fitted.noise_variance_ * np.eye(6), atol=1e-12)
    np.testing.assert_allclose(
        fitted.log_density(NEW, mean), norm.logpdf(0.0, 0.0, np.sqrt(np.diag(cov))), atol=1e-10
    )
    assert fitted.log_marginal_likelihood() == pytest.approx(
        multivariate_normal.logpdf(Y, np.full(40, Y.mean()), K)
    )
    assert fitted.log_marginal_likelihood({"white.variance": 0.5}) == pytest.approx(
        multivariate_normal.logpdf(
            Y - Y.mean(), np.zeros(40), K + (0.5 - fitted.noise_variance_) * np.eye(40)
        )
    )


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_of_inputs_and_targets_only_change_units(fitted, unit):
    moved = mk.GaussianProcess().fit(X * [unit, 1.0], unit * Y + 3.0 * unit)
    mean, sd = fitted.predict(NEW, return_std=True)
    there, spread = moved.predict(NEW * [unit, 1.0], return_std=True)
    np.testing.assert_allclose(there / unit - 3.0, mean, rtol=1e-5)
    np.testing.assert_allclose(spread / unit, sd, rtol=1e-4)
    assert moved.log_marginal_likelihood() + 40 * np.log(unit) == pytest.approx(
        fitted.log_marginal_likelihood(), abs=1e-5
    )


def test_the_order_of_rows_changes_nothing(fitted):
    order = RNG.permutation(40)
    other = mk.GaussianProcess().fit(X[order], Y[order])
    np.testing.assert_allclose(other.predict(NEW), fitted.predict(NEW), atol=1e-5)


@pytest.mark.parametrize("speed", [3.0, 8.0])
def test_a_fast_function_is_not_taken_for_noise(speed):
    x = np.linspace(0.0, 6.0, 40)[:, None]
    y = np.sin(speed * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    assert mk.GaussianProcess().fit(x, y).noise_variance_ < 0.05


def test_numbers_that_are_said_stay_and_parameters_move():
    model = mk.GaussianProcess(k.RBF(0.7) + k.White(mk.Parameter(0.5))).fit(X, Y)
    assert model.covariance_.hypers()["rbf.length"].value == 0.7
    assert model.noise_variance_ != 0.5
    np.testing.assert_array_equal(
        fixed(mk.GaussianProcess(k.RBF(0.7) + k.White(0.5)).fit(X, Y)).value(NEW),
        (k.RBF(0.7) + k.White(0.5)).value(NEW),
    )


def test_restarts_find_a_better_top_and_the_seed_repeats_them():
    x = np.linspace(0.0, 6.0, 25)[:, None]
    y = np.sin(2.0 * x[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=25)
    slow = k.Scaled(mk.Parameter(0.5), k.RBF(mk.Parameter(6.0))) + k.White(mk.Parameter(0.5))
    many, again = (mk.GaussianProcess(slow, restarts=3, seed=1).fit(x, y) for _ in range(2))
    tops = [start.objective for start in many.fit_.starts]
    assert len(tops) == 4
    assert many.fit_.objective == max(tops) > min(tops) + 10.0
    assert many.log_marginal_likelihood() == again.log_marginal_likelihood()


def test_a_warm_start_goes_on_from_the_last_fit():
    model = mk.GaussianProcess(warm_start=True).fit(X, Y)
    before = model.n_iter_
    assert model.fit(X, Y).n_iter_ < max(before / 2, 2)
    assert model.fit(X[:, :1], Y).covariance_.hypers()["rbf.length"].value.shape == (
        1,
    )  # one length fewer: anew


def test_few_steps_or_a_time_limit_keep_the_best_and_warn(monkeypatch):
    with pytest.warns(ConvergenceWarning, match="max_iter="):
        model = mk.GaussianProcess(max_iter=1).fit(X, Y)
    assert not model.converged_
    assert not model.info_.converged
    with pytest.warns(ConvergenceWarning):
        assert mk.GaussianProcess(time_limit=1e-9).fit(X, Y).fit_.reason == "time limit"


def test_no_compiler_is_loaded_by_a_fit_and_its_answers():
    script = """
import sys
import numpy as np
import markovia as mk
X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
k = mk.covariances
whole = mk.Parameter(2.0, support="positive") * k.Matern32(ard=True) * k.RBF(columns=[0]) + k.Linear() + k.White()
gp = mk.GaussianProcess(whole).fit(X, y)
gp.predict(X, return_std=True), gp.leave_one_out(), gp.function().at(X).sample(2), gp.sample_y(X, 2), gp.update(X[:2], y[:2])
print(sorted({"jax", "numpyro", "numba", "matplotlib"} & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


# -- means, errors, several columns ----------------------------------------------------------------------


def test_the_mean_is_the_average_or_what_is_said():
    K = k.RBF(1.0) + k.White(0.1)
    far = [[1e6]]
    assert mk.GaussianProcess(K).fit(X3, Y3).predict(far) == pytest.approx(Y3.mean())
    assert mk.GaussianProcess(K, mean=2.0).fit(X3, Y3).predict(far) == pytest.approx(2.0)
    line = mk.GaussianProcess(K, mean=lambda x: 3.0 * x).fit(X3, Y3)
    assert line.predict([[100.0]]) == pytest.approx(300.0)
    rest = mk.GaussianProcess(K, mean=0.0).fit(X3, Y3 - 3.0 * X3[:, 0])
    np.testing.assert_allclose(line.predict(X3), 3.0 * X3[:, 0] + rest.predict(X3))


def test_known_errors_are_the_alpha_of_scikit_learn():
    errors = np.array([0.1, 0.5, 1.0])
    ours = mk.GaussianProcess(k.RBF(1.0), mean=0.0).fit(X3, Y3, errors=errors)
    theirs = GaussianProcessRegressor(kernels.RBF(1.0), alpha=errors**2, optimizer=None).fit(X3, Y3)
    mean, sd = theirs.predict([[1.0]], return_std=True)
    assert ours.predict([[1.0]]) == pytest.approx(mean)
    assert ours.function().at([1.0]).sd() == pytest.approx(sd)
    with pytest.raises(Unanswered, match="errors"):
        ours.update([[3.0]], [1.0])
    for wrong in (-errors, errors[:2], [errors], ["a", "b", "c"], np.full(3, np.nan)):
        with pytest.raises(InvalidArgument, match="one a row: finite numbers, 0 or more"):
            ours.fit(X3, Y3, errors=wrong)


def test_columns_of_targets_are_functions_with_one_covariance():
    two = np.stack([Y, 5.0 - Y**2], axis=1)
    model = mk.GaussianProcess(k.RBF(1.0) + k.White(0.1)).fit(X, two)
    each = [mk.GaussianProcess(k.RBF(1.0) + k.White(0.1)).fit(X, column) for column in two.T]
    mean, sd = model.predict(NEW, return_std=True)
    assert mean.shape == sd.shape == (6, 2)
    assert model.predict(NEW, return_cov=True)[1].shape == (6, 6, 2)
    for j, one in enumerate(each):
        np.testing.assert_allclose(mean[:, j], one.predict(NEW), atol=1e-10)
        np.testing.assert_allclose(sd[:, j], one.predict(NEW, return_std=True)[1], atol=1e-10)
        np.testing.assert_allclose(model.function(j).at(NEW).mean(), one.predict(NEW), atol=1e-10)
        np.testing.assert_allclose(model.leave_one_out().mean[:, j], one.leave_one_out().mean, atol=1e-10)
    assert model.log_marginal_likelihood() == pytest.approx(
        sum(one.log_marginal_likelihood() for one in each)
    )
    np.testing.assert_allclose(
        model.log_density(NEW, mean),
        sum(one.log_density(NEW, m) for one, m in zip(each, mean.T, strict=True)),
    )
    model.update(NEW, mean + 1.0)
    np.testing.assert_allclose(
        model.predict(NEW)[:, 0], each[0].update(NEW, mean[:, 0] + 1.0).predict(NEW), atol=1e-9
    )
    with pytest.raises(InvalidArgument, match="one of 2 targets"):
        model.function(2)
    with pytest.raises(InvalidArgument, match="several columns"):
        mk.GaussianProcess(method="sgpr").fit(X, two)


def test_outputs_stacked_in_a_column_share_what_an_index_says():
    x = np.linspace(0.0, 5.0, 20)
    stacked = np.concatenate([np.column_stack([x, 0.0 * x]), np.column_stack([x[:5], 1.0 + 0.0 * x[:5]])])
    y = np.concatenate([np.sin(x), -np.sin(x[:5])])
    B = np.array([[1.0, -0.95], [-0.95, 1.0]])
    model = mk.GaussianProcess(k.RBF(1.0, columns=[0]) * k.Index(B, column=1) + k.White(1e-3), mean=0.0).fit(
        stacked, y
    )
    there = np.column_stack([x, np.ones(20)])
    np.testing.assert_allclose(
        model.predict(there), -0.95 * np.sin(x), atol=0.12
    )  # learned from the other output


# -- leave-one-out, updates, samples ---------------------------------------------------------------------


def test_left_out_rows_are_what_refits_without_them_say():
    K = 1.3 * k.Matern52(0.8) + k.White(0.2)
    model = mk.GaussianProcess(K, mean=0.4).fit(X, Y)
    found = model.leave_one_out()
    for i in (0, 7, 39):
        rest = np.arange(40) != i
        mean, sd = mk.GaussianProcess(K, mean=0.4).fit(X[rest], Y[rest]).predict(X[[i]], return_std=True)
        assert found.mean[i] == pytest.approx(mean[0], abs=1e-10)
        assert found.sd[i] == pytest.approx(sd[0], abs=1e-10)
        assert found.log_density[i] == pytest.approx(norm.logpdf(Y[i], mean[0], sd[0]), abs=1e-9)


def test_an_update_is_a_refit_at_the_same_numbers():
    K = 1.3 * k.RBF(0.8) + k.White(0.2)
    whole = mk.GaussianProcess(K, mean=0.4).fit(X, Y)
    parts = (
        mk.GaussianProcess(K, mean=0.4).fit(X[:20], Y[:20]).update(X[20:21], Y[20:21]).update(X[21:], Y[21:])
    )
    np.testing.assert_allclose(parts.predict(NEW), whole.predict(NEW), atol=1e-10)
    np.testing.assert_allclose(
        parts.predict(NEW, return_std=True)[1], whole.predict(NEW, return_std=True)[1], atol=1e-10
    )
    np.testing.assert_allclose(parts.leave_one_out().mean, whole.leave_one_out().mean, atol=1e-9)
    assert parts.log_marginal_likelihood() == pytest.approx(whole.log_marginal_likelihood())
    sparse = (
        mk.GaussianProcess(K, mean=0.4, method="sgpr", inducing=X[:8])
        .fit(X[:20], Y[:20])
        .update(X[20:], Y[20:])
    )
    np.testing.assert_allclose(
        sparse.predict(NEW),
        mk.GaussianProcess(K, mean=0.4, method="sgpr", inducing=X[:8]).fit(X, Y).predict(NEW),
        atol=1e-9,
    )


def test_samples_have_the_moments_that_are_predicted():
    model = mk.GaussianProcess(k.RBF(1.0) + k.White(0.1), mean=0.0).fit(X3, Y3)
    mean, cov = model.predict([[1.0], [1.2]], return_cov=True)
    drawn = model.sample_y([[1.0], [1.2]], 20_000, seed=0)
    assert drawn.shape == (2, 20_000)
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=4.5 * np.sqrt(cov.max() / 20_000))
    np.testing.assert_allclose(np.cov(drawn), cov, atol=0.02)
    two = (
        mk.GaussianProcess(k.RBF(1.0) + k.White(0.1), mean=0.0)
        .fit(X3, np.stack([Y3, -Y3], 1))
        .sample_y(X3, 5, seed=0)
    )
    assert two.shape == (3, 2, 5)


def test_without_noise_values_are_met_and_nothing_is_unknown_there():
    model = mk.GaussianProcess(k.RBF(1.0)).fit(X3, Y3)
    mean, sd = model.predict(X3, return_std=True)
    np.testing.assert_allclose(mean, Y3, atol=1e-10)
    np.testing.assert_allclose(sd, 0.0, atol=1e-7)


# -- the network -----------------------------------------------------------------------------------------


def test_the_network_answers_the_same(fitted):
    network = fitted.network()
    there = network.query("f", given={"x": X, "y": Y}).at(NEW)
    np.testing.assert_allclose(there.mean(), fitted.function().at(NEW).mean(), atol=1e-9)
    np.testing.assert_allclose(there.cov(), fitted.function().at(NEW).cov(), atol=1e-9)
    assert there.info.log_evidence == pytest.approx(fitted.log_marginal_likelihood(), abs=1e-8)


def test_without_noise_the_network_knows_points_of_the_function():
    model = mk.GaussianProcess(k.RBF(1.0), mean=0.3).fit(X3, Y3)
    there = model.network().query("f", given={"f": mk.Points(X3, Y3)}).at([1.0])
    np.testing.assert_allclose(there.mean(), model.predict([[1.0]]), atol=1e-8)


# -- other methods and likelihoods -----------------------------------------------------------------------


def test_inducing_points_at_the_rows_are_exact():
    K = 1.3 * k.RBF(0.8) + k.White(0.2)
    exact = mk.GaussianProcess(K).fit(X, Y)
    points = mk.GaussianProcess(K, inducing=X).fit(X, Y)
    assert points.method_ == "sgpr"
    assert "inducing= was said" in points.info_.note
    np.testing.assert_allclose(points.predict(NEW), exact.predict(NEW), atol=1e-5)
    assert points.log_marginal_likelihood() == pytest.approx(exact.log_marginal_likelihood(), abs=1e-4)


def test_options_go_to_the_method_that_has_them_and_no_other():
    assert mk.GaussianProcess(k.RBF(1.0) + k.White(0.1), features=50).fit(X, Y).method_ == "fourier"
    with pytest.raises(InvalidArgument, match="method='exact' takes no inducing="):
        mk.GaussianProcess(method="exact", inducing=5).fit(X, Y)
    with pytest.raises(InvalidArgument, match="method= is 'auto'"):
        mk.GaussianProcess(method="sparse").fit(X, Y)


def test_little_memory_makes_auto_take_inducing_points_and_exact_refuse():
    K = k.RBF(1.0) + k.White(0.1)
    assert mk.GaussianProcess(K, memory=1e4).fit(X, Y).method_ == "sgpr"
    with pytest.raises(TooLarge, match="method='sgpr'"):
        mk.GaussianProcess(K, memory=1e4, method="exact").fit(X, Y)


def test_heavy_tails_leave_an_outlier_alone():
    x = np.linspace(0.0, 5.0, 30)[:, None]
    y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=30)
    y[12] = 30.0
    K = k.RBF(1.0)
    robust = mk.GaussianProcess(K, likelihood="student-t", mean=0.0).fit(x, y)
    normal = mk.GaussianProcess(K + k.White(), mean=0.0).fit(x, y)
    away = [np.abs(np.delete(m.predict(x) - np.sin(x[:, 0]), 12)).max() for m in (robust, normal)]
    assert away[0] < 0.2 < away[1]
    assert robust.method_ == "laplace"
    mean, sd = robust.predict(x, return_std=True)
    np.testing.assert_allclose(mean, robust.predict(x))
    assert (sd > robust.function().at(x).sd()).all()


def test_classes_and_counts_are_predicted_by_their_means():
    x = np.linspace(0.0, 6.0, 30)[:, None]
    up = np.sin(x[:, 0]) > 0.0
    classes = mk.GaussianProcess(2.0 * k.RBF(1.0), likelihood="bernoulli").fit(x, up.astype(float))
    np.testing.assert_allclose(classes.predict(x), classes.class_probabilities(x)[:, 1])
    np.testing.assert_allclose(classes.log_density(x, np.ones(30)), np.log(classes.predict(x)), atol=1e-6)
    three = mk.GaussianProcess(2.0 * k.RBF(1.0), likelihood="categorical").fit(
        x, np.clip(x[:, 0] // 2.0, 0, 2)
    )
    assert three.predict([[1.0], [3.0], [5.0]]).tolist() == [0, 1, 2]
    assert three.log_density([[1.0]], [0]) == pytest.approx(np.log(three.class_probabilities([[1.0]])[0, 0]))
    counts = mk.GaussianProcess(k.RBF(1.0), likelihood="poisson").fit(x, np.round(np.exp(1.0 + up)))
    assert counts.predict([[1.5]]) > 1.5 * counts.predict([[4.5]])
    with pytest.raises(InvalidArgument, match="mean= is for"):
        mk.GaussianProcess(likelihood="poisson", mean=1.0).fit(x, up)
    with pytest.raises(InvalidArgument, match=r"row 0 holds 0\.5"):
        mk.GaussianProcess(likelihood="poisson").fit(x, x[:, 0] + 0.5)


def test_what_has_no_closed_form_says_so():
    model = mk.GaussianProcess(k.RBF(1.0), likelihood="student-t").fit(X3, Y3)
    with pytest.raises(Unanswered, match="method='exact', not for 'laplace'"):
        model.leave_one_out()
    with pytest.raises(Unanswered, match="no covariance in closed form"):
        model.predict(X3, return_cov=True)
    with pytest.raises(Unanswered, match="no classes"):
        model.class_probabilities(X3)
    with pytest.raises(InvalidArgument, match="two answers"):
        model.predict(X3, return_std=True, return_cov=True)


# -- odd data --------------------------------------------------------------------------------------------


def test_equal_targets_leave_hyper_parameters_where_they_start():
    for y in (np.zeros(5), np.full(5, 1e6 / 3.0)):
        with pytest.warns(UserWarning, match="all targets are equal"):
            model = mk.GaussianProcess().fit(np.arange(5.0)[:, None], y)
        assert "all targets are equal" in model.info_.note
        mean, sd = model.predict([[2.5]], return_std=True)
        assert mean == pytest.approx(y[0])
        assert 0.0 < sd[0] <= max(1.2, 1.2 * y[0])


def test_one_row_and_constant_columns_are_fine():
    with pytest.warns(UserWarning, match="all targets are equal"):
        assert mk.GaussianProcess().fit([[3.0]], [5.0]).predict([[3.0]]) == pytest.approx(5.0)
    assert mk.GaussianProcess(mean=0.0).fit([[3.0]], [5.0]).predict([[1e9]]) == pytest.approx(0.0, abs=1e-6)
    wide = mk.GaussianProcess().fit(np.column_stack([X, np.full(40, 7.0)]), Y)
    np.testing.assert_allclose(
        wide.predict(np.column_stack([NEW, np.full(6, 7.0)])),
        mk.GaussianProcess().fit(X, Y).predict(NEW),
        atol=1e-4,
    )


def test_repeated_inputs_without_noise_say_their_jitter_once():
    twice = [[0.0], [0.0], [1.0]]
    with pytest.warns(UserWarning, match=r"was added to variances.*White\(\)") as told:
        model = mk.GaussianProcess(k.RBF(1.0)).fit(twice, [1.0, 1.0, 2.0])
    assert len(told) == 1
    assert "was added to variances" in model.info_.note
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mk.GaussianProcess(k.RBF(1.0) + k.White(0.1)).fit(twice, [1.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("model", "X", "y", "sentence"),
    [
        (mk.GaussianProcess(), [[0.0], [np.nan]], [1.0, 2.0], "row 1 of X misses 'x0'"),
        (mk.GaussianProcess(), [[0.0], [1.0]], [1.0, np.nan], "targets y are finite numbers"),
        (mk.GaussianProcess(), [[0.0], [1.0]], None, "requires y to be passed"),
        (mk.GaussianProcess(k.White()), X3, Y3, "noise alone"),
        (mk.GaussianProcess("rbf"), X3, Y3, "covariance= is one of mk.covariances"),
        (mk.GaussianProcess(mean="zero"), X3, Y3, "mean= is a finite number or a function"),
        (mk.GaussianProcess(mean=np.nan), X3, Y3, "mean= is a finite number or a function"),
        (mk.GaussianProcess(likelihood="gauss"), X3, Y3, "likelihood= is"),
        (mk.GaussianProcess(inducing=0), X3, Y3, "inducing= is a number of points"),
        (mk.GaussianProcess(k.RBF([1.0, 2.0])), X3, Y3, "one number, or one for each column"),
        (mk.GaussianProcess(k.RBF(columns=[3])), X3, Y3, "looks at column 3"),
        (mk.GaussianProcess(restarts=-1), X3, Y3, "restarts= is a whole number"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_the_estimator_as_it_was(model, X, y, sentence):
    before = dict(vars(model))
    with pytest.raises(mk.MarkoviaError, match=sentence):
        model.fit(X, y)
    assert vars(model) == before


def test_a_failed_fit_or_update_keeps_the_last_one(fitted):
    expected = fitted.predict(NEW)
    with pytest.raises(InvalidArgument):
        fitted.update(NEW, np.full(6, np.nan))
    with pytest.raises(InvalidArgument, match="shape"):
        fitted.update(NEW, np.zeros((6, 2)))
    np.testing.assert_array_equal(fitted.predict(NEW), expected)
    assert len(fitted.X_fit_) == 40


def test_copies_frames_and_clones():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = mk.GaussianProcess(k.RBF(1.0) + k.White(0.1)).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as that names are missing
        model.log_density(frame, Y), model.update(frame, Y), model.sample_y(frame), model.class_probabilities
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame))
    again = clone(mk.GaussianProcess(k.RBF() + k.White(), restarts=2))
    assert repr(again) == "GaussianProcess(covariance=RBF() + White(), restarts=2)"
