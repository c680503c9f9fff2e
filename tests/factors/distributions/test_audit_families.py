"""Exponential families, GLMs and classifiers at the edges: degenerate data, extreme numbers, wrong arguments, identities."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import markovia as mk
from markovia.exponential import (
    Bernoulli,
    Beta,
    Categorical,
    ConjugatePrior,
    Dirichlet,
    Exponential,
    Gamma,
    Gaussian,
    GaussianKnownVariance,
    MarkovField,
    Multinomial,
    MultivariateGaussian,
    NormalInverseWishart,
    Poisson,
    StudentT,
)

# -- numbers that cancel ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.0, 1e6 + 0.3, -1e8 - 0.7])
def test_divergences_of_gaussians_keep_their_digits_where_means_are_large(mean):
    exact = 0.5 * (1.7 / 0.9 + 2.0**2 / 0.9 - 1.0 - np.log(1.7 / 0.9))
    assert Gaussian(mean, 1.7).kl(Gaussian(mean + 2, 0.9)) == pytest.approx(exact, rel=1e-6)
    known = GaussianKnownVariance(mean, 1.7).kl(GaussianKnownVariance(mean + 2, 1.7))
    assert known == pytest.approx(2.0 / 1.7, rel=1e-6)
    one = MultivariateGaussian([mean, 0.0], [[1.7, 0.0], [0.0, 1.0]])
    other = MultivariateGaussian([mean + 2, 0.0], [[0.9, 0.0], [0.0, 1.0]])
    assert one.kl(other) == pytest.approx(exact, rel=1e-6)


def test_divergence_of_vectors_has_its_closed_form():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 3))
    s, t = a @ a.T + np.eye(3), b @ b.T + np.eye(3)
    m, n = rng.normal(size=(2, 3))
    inverse = np.linalg.inv(t)
    gap = n - m
    exact = np.trace(inverse @ s) + gap @ inverse @ gap - 3 + np.log(np.linalg.det(t) / np.linalg.det(s))
    assert MultivariateGaussian(m, s).kl(MultivariateGaussian(n, t)) == pytest.approx(0.5 * exact)


@pytest.mark.parametrize("alpha", [1e-3, 1e-10, 1e-17, 1e-300])
def test_tiny_concentrations_and_shapes_keep_their_digits(alpha):
    assert Beta(alpha, 1.0).log_partition() == pytest.approx(-np.log(alpha), rel=1e-12)
    assert Beta(alpha, 1.0).moments()[0] == pytest.approx(-1 / alpha, rel=1e-9)
    assert Gamma(alpha, 2.0).moments()[1] == pytest.approx(alpha / 2, rel=1e-12)
    tail = Bernoulli.conjugate_prior(alpha, 1.0).posterior([0, 0]).predictive().prob(1)
    assert tail == pytest.approx(alpha / (alpha + 3), rel=1e-9)


def test_infinite_points_have_no_density():
    cases = [
        (Gamma(2.0, 1.0), np.inf),
        (Exponential(1.0), np.inf),
        (Gaussian(0, 1), -np.inf),
        (Beta(2.0, 2.0), np.inf),
        (MultivariateGaussian([0.0, 0.0], [[2.0, 1.0], [1.0, 2.0]]), [np.inf, np.inf]),
    ]
    for family, x in cases:
        assert family.log_prob(x) == -np.inf, family


# -- fits that have no answer ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "data", "settings", "message"),
    [
        (Poisson, [0, 0], {}, "mean count must be positive"),
        (Exponential, [0.0, 0.0], {}, "mean must be positive"),
        (Exponential, [np.inf], {}, "outside the support"),
        (Gamma, [2.0, 2.0], {}, "all values are equal"),
        (Beta, [0.5], {}, "all values are equal"),
        (Dirichlet, [[0.3, 0.7]], {}, "less than one"),
        (Gaussian, [3.0], {}, "do not vary"),
        (Gaussian, [1.0, 2.0], {"weights": [1, 0]}, "do not vary"),
        (MultivariateGaussian, [[1.0, 2.0]], {}, "fewer directions"),
        (MultivariateGaussian, [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], {}, "fewer directions"),
        (Categorical, [0, np.inf], {}, "without gaps"),
        (Categorical, [0, 1e200], {}, "without gaps"),
        (Categorical, [0, 1], {"levels": 3}, "has no levels=, only weights=, n_categories="),
        (Bernoulli, [0, 1], {"foo": 1}, "has no foo=, only weights="),
        (Gaussian, [0, 1], {"var": 1}, "has no var=, only weights="),
        (GaussianKnownVariance, [0, 1], {"mean": 1}, "has no mean=, only weights=, var="),
        (Multinomial, [[1, 2], [1, 1]], {}, "share one positive total"),
        (Bernoulli, [0, 1], {"weights": [-1, 2]}, "not negative, not .-1.0, 2.0."),
    ],
)
def test_data_without_an_estimate_are_refused_in_one_sentence(family, data, settings, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(mk.MarkoviaError, match=message):
            family.fit(data, **settings)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: ConjugatePrior(Bernoulli(), [0.5], [1.0, 2.0]), "nu is one number"),
        (lambda: Gaussian(0, 1).posterior(3, [1.0]), "needs a conjugate prior"),
        (lambda: StudentT(3, [0.0], [[-1.0]]), "not positive definite"),
        (lambda: StudentT(3, [0.0, 0.0], [[1.0]]), "symmetric matrix of 2 rows"),
        (lambda: NormalInverseWishart([[0.0, 0.0]], 1, 3, np.eye(2)), "one vector"),
        (lambda: Poisson().with_natural([1e6]), "leaves the range of doubles"),
        (lambda: Gamma.conjugate_prior([2.0, 2.0]), "improper"),
        (lambda: Gamma.conjugate_prior([]), "improper"),
    ],
)
def test_priors_and_parameters_out_of_place_are_refused(wrong, message):
    with pytest.raises(mk.MarkoviaError, match=message):
        wrong()


def test_a_markov_field_wants_all_columns_or_one_assignment():
    x, y = mk.Variable("x", 2), mk.Variable("y", 2)
    field = MarkovField(mk.local.LogLinear([mk.Feature([x, y], np.eye(2))], [1.0]))
    with pytest.raises(mk.MarkoviaError, match="'y' has 0"):
        field.sufficient_statistics({"x": [0, 1], "y": 0})


# -- identities ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "pseudo", "data"),
    [
        (Gamma, [1.0, 3.0], [2.0, 0.5]),
        (Beta, [0.2, 0.7], [0.5, 0.4]),
        (Dirichlet, [[0.2, 0.8], [0.6, 0.4]], [[0.5, 0.5]]),
    ],
)
def test_families_without_a_named_prior_count_pseudo_observations(family, pseudo, data):
    post = family.conjugate_prior(pseudo).posterior(data)
    assert post.nu == len(pseudo) + len(data)
    best = post.mode()
    np.testing.assert_allclose(best.natural(), family.fit(np.concatenate([pseudo, data])).natural())
    top = post.log_density(best.natural())
    rng = np.random.default_rng(0)
    for step in rng.normal(scale=0.05, size=(20, best.n_parameters)):
        assert post.log_density(best.natural() + step) < top


def test_the_most_probable_natural_parameter_has_the_mean_of_the_prior():
    post = Poisson.conjugate_prior(2.0, 1.0).posterior([3, 5])
    assert post.mode().rate == pytest.approx(10 / 3)


@pytest.mark.parametrize(
    ("family", "first", "second"),
    [
        (Poisson, [1, 5, 0], [2, 2, 2]),
        (Bernoulli, [1, 0, 1], [1, 1, 0]),
        (Gaussian, [0.0, 3.0, 3.0], [1.0, 1.0, 4.0]),
        (Exponential, [1.0, 2.0, 3.0], [0.5, 0.5, 5.0]),
    ],
)
def test_likelihood_ratios_of_data_with_equal_statistics_do_not_depend_on_the_parameters(
    family, first, second
):
    """Neyman's factorisation: data with equal sums of T differ by h alone."""
    some = family.fit([1, 0, 1] if family is Bernoulli else [1.0, 2.0, 4.0])
    assert np.allclose(some.sufficient_statistics(first).sum(0), some.sufficient_statistics(second).sum(0))
    rng = np.random.default_rng(1)
    gaps = []
    for _ in range(5):
        other = some.with_natural(some.natural() * rng.uniform(0.5, 2.0))
        gaps.append(other.log_prob(first).sum() - other.log_prob(second).sum())
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-12)


def test_the_log_partition_is_infinite_outside_its_domain():
    assert Exponential().log_partition([0.0]) == np.inf
    assert Gamma().log_partition([0.0, 0.1]) == np.inf
    assert Beta().log_partition([-1.0, 0.0]) == np.inf
    assert Gaussian(0, 1).log_partition([0.0, 0.0]) == np.inf
    assert MultivariateGaussian([0.0, 0.0], np.eye(2)).log_partition(np.zeros(6)) == np.inf


def test_natural_parameters_of_a_gaussian_chain_are_zero_off_its_edges():
    """A Gaussian field has the statistics x_s^2 and x_s x_t of its edges only: Theta = -Lambda."""
    precision = np.array([[2.0, 0.7, 0.0], [0.7, 1.5, -0.4], [0.0, -0.4, 1.0]])
    family = MultivariateGaussian([0.0, 0.0, 0.0], np.linalg.inv(precision))
    theta = 2.0 * family.natural()[3:].reshape(3, 3)
    np.testing.assert_allclose(theta, -precision, atol=1e-12)
    x = np.array([0.3, -1.0, 2.0])
    assert family.log_prob(x) == pytest.approx(
        -0.5 * x @ precision @ x + 0.5 * np.linalg.slogdet(precision)[1] - 1.5 * np.log(2 * np.pi)
    )


def test_the_likelihood_of_independent_rows_is_the_textbook_sum():
    rng = np.random.default_rng(0)
    rows, m, s = rng.normal(size=(6, 2)), np.array([0.3, -1.0]), np.array([[1.0, 0.4], [0.4, 2.0]])
    gaps = rows - m
    quadratic = sum(g @ np.linalg.inv(s) @ g for g in gaps)
    total = -3.0 * np.log(np.linalg.det(s)) - 0.5 * quadratic - 6.0 * np.log(2 * np.pi)
    assert MultivariateGaussian(m, s).log_prob(rows).sum() == pytest.approx(total)


def test_resampling_the_cause_given_the_effect_leaves_the_joint_as_it_was():
    """E f(x, y) = E f(x', y) for x' drawn from p(x | y)."""
    rng = np.random.default_rng(4)
    p, q = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4), size=3)
    bn = mk.BayesianNetwork()
    bn.add("x", states=3, p=p)
    bn.add("y", states=4, parents="x", p=q)
    back = np.array([bn.query("x", given={"y": i}).values for i in range(4)])
    bn.add("again", states=3, parents="y", p=back)
    np.testing.assert_allclose(bn.query(["again", "y"]).values, bn.query(["x", "y"]).values, atol=1e-14)
    assert not np.allclose(bn.query(["x", "again"]).values, np.diag(p))


# -- generalised linear models ---------------------------------------------------------------------------------------------


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, (x[:, 0] + rng.normal(size=n) > 0).astype(int), rng.poisson(np.exp(0.3 * x[:, 0]))


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (mk.regression.LinearRegression(l2=np.inf), {}, "l2= is a number, 0 or more, not inf"),
        (mk.regression.LogisticRegression(tol="a"), {}, "tol= is a positive number or None"),
        (mk.regression.LinearRegression(tol=-1), {}, "tol= is a positive number or None"),
        (
            mk.regression.LogisticRegression(solver="lms", learning_rate=-1),
            {},
            "learning_rate= is a positive number or None",
        ),
        (
            mk.regression.LogisticRegression(solver="sgd", learning_rate="a"),
            {},
            "learning_rate= is a positive number or None",
        ),
        (mk.regression.LinearRegression(), {"y": list("abcd") * 10}, "y must be numbers"),
        (mk.regression.LinearRegression(), {"offset": ["a"] * 40}, "the offset must be numbers"),
        (
            mk.regression.LogisticRegression(),
            {"offset": [0.0] * 39 + [np.nan]},
            "the offset of row 39 is missing",
        ),
        (mk.regression.LogisticRegression(), {"y": np.ones(40, dtype=int)}, "only one class, 1$"),
        (mk.regression.GLM("binomial"), {"y": np.zeros((40, 2))}, "needs a success or a failure"),
        (mk.regression.GLM("bernoulli", "log"), {}, "does not have under the link 'log'"),
    ],
)
def test_regressions_refuse_in_one_sentence(model, change, message):
    x, y, _ = rows()
    given = {"y": y, **change}
    with np.errstate(all="ignore"), pytest.raises(mk.MarkoviaError, match=message):
        model.fit(x, **given)
    assert not hasattr(model, "coef_")


def test_an_interval_of_a_summary_has_a_probability():
    x, y, _ = rows()
    with pytest.raises(mk.MarkoviaError, match="level= is between 0 and 1"):
        mk.regression.LinearRegression().fit(x, y).summary(level="a")


def test_log_probabilities_do_not_end_where_probabilities_do():
    x, y, counts = rows()
    far = 1e6 * np.array([[1.0, 0.0], [-1.0, 0.0]])
    logistic = mk.regression.LogisticRegression().fit(x, y)
    slope, level = logistic.coef_[0, 0], logistic.intercept_[0]
    np.testing.assert_allclose(
        logistic.predict_log_proba(far)[:, 0], [-(level + 1e6 * slope), 0.0], rtol=1e-12, atol=1e-12
    )
    softmax = mk.regression.SoftmaxRegression().fit(x, np.minimum(counts, 2))
    eta = softmax.linear_predictor(far)
    np.testing.assert_allclose(softmax.predict_log_proba(far), eta - eta.max(axis=1, keepdims=True))
    for model in (logistic, softmax):
        assert np.isfinite(model.predict_log_proba(far)).all()
        np.testing.assert_allclose(np.exp(model.predict_log_proba(x)), model.predict_proba(x), atol=1e-14)


def test_coefficients_do_not_depend_on_the_unit_of_the_columns():
    x, y, counts = rows()
    for make, target in (
        (mk.regression.LogisticRegression, y),
        (mk.regression.PoissonRegression, counts),
        (mk.regression.LinearRegression, y),
    ):
        plain = make().fit(x, target)
        for unit in (1e-6, 1e6):
            other = make().fit(x * unit, target)
            np.testing.assert_allclose(other.coef_ * unit, plain.coef_, rtol=1e-8)
            np.testing.assert_allclose(
                other.standard_errors_[1:] * unit, plain.standard_errors_[1:], rtol=1e-6
            )
        moved = make().fit(x + 1e5, target)
        np.testing.assert_allclose(moved.coef_, plain.coef_, rtol=1e-5, atol=1e-7)


def test_the_hessian_of_logistic_regression_is_singular_where_a_column_is_repeated():
    x, _, _ = rows()
    mu = expit(x @ [0.5, -1.0])
    twice = np.column_stack([x, x[:, 0]])
    smallest = np.linalg.eigvalsh(twice.T @ (twice * (mu * (1 - mu))[:, None]))[0]
    assert smallest == pytest.approx(0.0, abs=1e-12)
    y = (np.random.default_rng(0).random(40) < mu).astype(int)
    with pytest.warns(mk.errors.ConvergenceWarning, match="not unique: column 2"):
        repeated = mk.regression.LogisticRegression().fit(twice, y)
    np.testing.assert_allclose(
        repeated.predict_proba(twice), mk.regression.LogisticRegression().fit(x, y).predict_proba(x)
    )


def test_a_node_of_an_ising_model_given_the_others_is_a_logistic_regression():
    """Markov fields as GLMs: log odds of one node are linear in its neighbours."""
    rng = np.random.default_rng(0)
    h, j = 0.3, {"b": 0.7, "c": -0.4}
    spins = [-1, 1]
    factors = [mk.Factor(["a"], np.exp(h * np.array(spins)))]
    factors += [mk.Factor(["a", n], np.exp(w * np.outer(spins, spins))) for n, w in j.items()]
    mn = mk.MarkovNetwork(dict.fromkeys("abc", spins), factors)
    data = mn.sample(4000, seed=rng)
    found = mk.regression.LogisticRegression().fit(data[["b", "c"]], data["a"])
    exact = [2 * h, 2 * j["b"], 2 * j["c"]]
    for b, c in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        p = mn.query("a", given={"b": b, "c": c})[1]
        assert p == pytest.approx(expit(exact @ np.array([1, b, c])))
    flat = np.r_[found.intercept_, found.coef_[0]]
    np.testing.assert_array_less(np.abs(flat - exact), 4 * found.standard_errors_)


# -- classifiers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [mk.classifiers.GaussianNaiveBayes, mk.classifiers.NaiveBayes])
def test_numbers_too_large_for_a_variance_are_refused_and_not_answered_with_nan(make):
    x, y, _ = rows()
    fitted = make().fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(mk.MarkoviaError, match="variance of column 0 leaves the range of doubles"):
            fitted.fit(x * 1e200, y)
    assert np.isfinite(fitted.predict_proba(x)).all()
    for unit in (1e-100, 1e100):
        np.testing.assert_allclose(
            make().fit(x * unit, y).predict_proba(x * unit), fitted.predict_proba(x), rtol=1e-6
        )


def test_a_threshold_is_a_number():
    with pytest.raises(mk.MarkoviaError, match="binarize= is a number or None"):
        mk.classifiers.BernoulliNaiveBayes(binarize="x").fit([[0.0], [1.0]], [0, 1])


def test_negative_weights_of_a_graph_are_named():
    some = np.ones((4, 4)) - 2.0 * np.eye(4)[[1, 0, 3, 2]]
    for graph in (some, -np.ones((4, 4))):
        with pytest.raises(mk.MarkoviaError, match="negative"):
            mk.classifiers.LabelPropagation(graph="precomputed").fit(graph, [0, 1, -1, -1])


def test_answers_from_several_threads_are_those_of_one():
    x, y, _ = rows(200)
    models = [
        mk.regression.LogisticRegression().fit(x, y),
        mk.classifiers.GaussianNaiveBayes().fit(x, y),
        mk.classifiers.CategoricalNaiveBayes().fit((x > 0).astype(int), y),
    ]
    for model in models:
        data = (x > 0).astype(int) if isinstance(model, mk.classifiers.CategoricalNaiveBayes) else x
        alone = model.predict_proba(data)
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda _, m=model, d=data: m.predict_proba(d), range(16)):
                np.testing.assert_array_equal(found, alone)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(data), alone)


def test_densities_of_the_families_are_those_of_scipy_far_from_their_mode():
    assert Gaussian(3.0, 2.0).log_prob(1e5) == pytest.approx(stats.norm(3, 2**0.5).logpdf(1e5))
    assert Poisson(1e-3).log_prob(40) == pytest.approx(stats.poisson(1e-3).logpmf(40))
    assert Gamma(0.01, 1e-4).log_prob(1e-300) == pytest.approx(stats.gamma(0.01, scale=1e4).logpdf(1e-300))
    assert Beta(0.02, 50.0).log_prob(1e-200) == pytest.approx(stats.beta(0.02, 50).logpdf(1e-200))
