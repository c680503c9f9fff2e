"""Directions by residual independence: additive noise, post-nonlinear, linear; the regressions and tests below them."""

from functools import partialmethod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

import markovia as mk
from markovia.learning.association.kernel_tests import hsic, hsic_test
from markovia.runtime.clock import Clock
from markovia.structure.ci_tests.gamma_hsic import centred_factor, gamma_hsic
from markovia.structure.ci_tests.incomplete_cholesky import gaussian_factor
from markovia.structure.functional.pnl import _Model, normal_scores, post_nonlinear_noise
from markovia.structure.functional.smooth_regression import LENGTHS, smooth_fit


def test_uniform_residuals_are_independent_only_in_the_causal_direction_and_gaussian_ones_in_both():
    directions = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, e = rng.uniform(-1, 1, (2, 600))
        found = mk.pairwise_direction(x, 0.8 * x + e, "lingam")
        directions.append(found.direction)
        assert found.backward.p_value < 1e-6
        x, e = rng.normal(size=(2, 600))
        found = mk.pairwise_direction(x, 0.8 * x + e, "lingam")
        assert found.forward.p_value > 0.01
        assert found.backward.p_value > 0.01
        assert found.direction is None
    assert directions == [("x", "y")] * 4


@pytest.mark.parametrize(
    "curve",
    [lambda x: x + x**3 / 2, pytest.param(lambda x: np.sin(2 * x), marks=pytest.mark.slow), lambda x: x**2],
    ids=["cubic", "sine", "square"],
)
def test_additive_noise_gives_the_direction_on_every_seed(curve):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-2, 2, 500)
        y = curve(x) + 0.4 * rng.laplace(size=500)
        assert mk.pairwise_direction(x, y).direction == ("x", "y")
        turned = mk.pairwise_direction(y, x, names=("b", "a"))
        assert turned.direction == ("a", "b")
        assert "a -> b" in str(turned)


@pytest.mark.parametrize("model", ["anm", "pnl"])
def test_independent_variables_have_no_direction(model):
    x, y = np.random.default_rng(3).normal(size=(2, 400))
    found = mk.pairwise_direction(x, y, model)
    assert found.direction is None
    assert "independent" in found.reason


def post_nonlinear_examples(rng, n):
    uniform = rng.uniform(-1.7, 1.7, (2, n))
    laplace = rng.laplace(size=(2, n))
    yield uniform[0], (uniform[0] + uniform[0] ** 3 / 3 + 0.7 * uniform[1]) ** 3
    yield laplace[0], (laplace[0] + laplace[0] ** 3 / 3 + 0.7 * uniform[1]) ** 3
    yield uniform[0], np.cbrt(uniform[0] ** 2 + 0.4 * laplace[1])
    yield uniform[1], np.exp(uniform[1] ** 3 / 2 + 0.5 * uniform[0])


@pytest.mark.slow
def test_the_post_nonlinear_model_gives_seven_directions_in_eight_and_no_wrong_one():
    right = 0
    for seed in range(2):
        for x, y in post_nonlinear_examples(np.random.default_rng(seed), 500):
            found = mk.pairwise_direction(x, y, "pnl")
            assert found.direction in (("x", "y"), None)
            right += found.direction is not None
    assert right >= 7


def test_additive_noise_rejects_what_the_post_nonlinear_model_explains():
    rng = np.random.default_rng(0)
    x, e = rng.uniform(-1.7, 1.7, (2, 800))
    y = (x + x**3 / 3 + 0.7 * e) ** 3
    assert mk.pairwise_direction(x, y, "anm").forward.p_value < 0.001
    assert mk.pairwise_direction(x, y, "pnl").forward.p_value > 0.05


def test_the_noise_of_the_post_nonlinear_model_is_recovered():
    rng = np.random.default_rng(1)
    x, e = rng.uniform(-1, 1, 1500), rng.laplace(size=1500) / 2
    noise = post_nonlinear_noise(x, np.exp(np.sin(3 * x) + e))
    assert np.corrcoef(noise, e)[0, 1] > 0.99


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_the_post_nonlinear_gradient_is_that_of_finite_differences(seed):
    rng = np.random.default_rng(seed)
    x, e = rng.normal(size=(2, 120))
    model = _Model(normal_scores(x), normal_scores((x + e) ** 3))
    start = model.start()
    theta = start + 0.2 * rng.normal(size=len(start))
    numeric = [(model(theta + d)[0] - model(theta - d)[0]) / 2e-6 for d in 1e-6 * np.eye(len(theta))]
    np.testing.assert_allclose(model(theta)[1], numeric, atol=1e-7)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_low_rank_hsic_is_hsic(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=80)
    y = rng.normal(size=(80, 2)) + 0.5 * x[:, None] ** 2
    assert gamma_hsic(x, y).statistic == pytest.approx(hsic(x, y), rel=1e-3)


def test_the_gamma_approximation_keeps_its_level_and_agrees_with_permutations():
    rng = np.random.default_rng(0)
    p = [gamma_hsic(*rng.normal(size=(2, 150))).p_value for _ in range(200)]
    assert kstest(p, "uniform").pvalue > 0.001
    x, y = rng.normal(size=(2, 200))
    for share in (0.0, 0.1, 0.2, 0.3):
        z = y + share * x**2
        assert gamma_hsic(x, z).p_value == pytest.approx(
            hsic_test(x, z, n_permutations=800).p_value, abs=0.05
        )


def test_incomplete_factors_are_within_their_tolerance():
    points = np.random.default_rng(0).normal(size=(120, 2))
    whole = np.exp(-0.5 * ((points[:, None] - points) ** 2).sum(axis=2) / 0.8**2)
    factor = gaussian_factor(points, 0.8, 1e-5)
    gap = whole - factor @ factor.T
    assert np.abs(gap).max() <= 1.01e-5
    assert factor.shape[1] < 100
    assert gaussian_factor(points, 0.8, 1e-12, most=7).shape == (120, 7)


def test_smooth_regression_is_the_gaussian_process_of_the_largest_restricted_likelihood():
    rng = np.random.default_rng(0)
    n = 60
    x = rng.uniform(-2, 2, n)
    y = np.sin(2 * x) + 0.2 * rng.normal(size=n)
    found = smooth_fit(x, y)
    z = (x - x.mean()) / x.std()
    design = np.column_stack([np.ones(n), z])
    basis = np.linalg.svd(design)[0][:, 2:]  # contrasts that do not see the trend
    contrasts = basis.T @ y

    def likelihood(length, ratio):
        kernel = np.exp(-0.5 * (z[:, None] - z) ** 2 / length**2)
        cov = basis.T @ kernel @ basis + ratio * np.eye(n - 2)
        quadratic = contrasts @ np.linalg.solve(cov, contrasts)
        return -0.5 * ((n - 2) * np.log(quadratic / (n - 2)) + np.linalg.slogdet(cov)[1])

    ratios = np.exp(np.linspace(-8, 2, 201))
    best, length, ratio = max((likelihood(k, r), k, r) for k in LENGTHS for r in ratios)
    assert found.length == length
    assert found.log_likelihood == pytest.approx(best, abs=1e-2)
    kernel = np.exp(-0.5 * (z[:, None] - z) ** 2 / length**2)
    solved = np.linalg.inv(kernel + ratio * np.eye(n))
    beta = np.linalg.solve(design.T @ solved @ design, design.T @ solved @ y)
    expected = design @ beta + kernel @ solved @ (y - design @ beta)
    np.testing.assert_allclose(found.fitted, expected, atol=0.01)


def test_a_line_is_fitted_as_a_line_and_nothing_by_the_mean():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    fit = smooth_fit(x, 3 * x + 1)
    np.testing.assert_allclose(fit.fitted, 3 * x + 1, atol=1e-9)
    np.testing.assert_allclose(smooth_fit(x[:, None][:, :0], x).fitted, x.mean())
    y = np.sin(2 * x[:150]) * x[150:]
    inputs = np.column_stack([x[:150], x[150:]])
    assert smooth_fit(inputs, y).residuals.std() < 0.1 * y.std()


def nonlinear_rows(n, seed):
    """a -> b -> d, a -> c -> d, with nonlinear effects."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-2, 2, n)
    b = 1.5 * np.sin(2 * a) + 0.4 * rng.normal(size=n)
    c = a**2 / 2 + 0.4 * rng.uniform(-1.7, 1.7, n)
    d = np.sin(2 * b) + c + 0.5 * b * c + 0.3 * rng.normal(size=n)
    return {"d": d, "b": b, "a": a, "c": c}


@pytest.mark.slow
def test_resit_finds_a_nonlinear_diamond():
    for seed in (0, 1):
        found = mk.learn_structure(nonlinear_rows(500, seed), "anm", alpha=0.01)
        assert set(found.edges) == {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}
        assert found.details.order[0] == "a"
        assert found.details.order[-1] == "d"
        assert found.n_tests > 10
        assert found.details.residual_p_values.min() >= 0.01


def test_resit_obeys_what_is_known():
    rows = nonlinear_rows(300, 0)
    found = mk.learn_structure(
        rows, "anm", required=[("d", "a")], forbidden=[("b", "c"), ("c", "b")], max_parents=1
    )
    assert ("d", "a") in found.edges
    assert not found.skeleton.has_edge("b", "c")
    assert max(len(found.dag.parents(n)) for n in found.nodes) <= 1
    stopped = mk.learn_structure(rows, "anm", required=[("d", "a")], time_limit=1e-9)
    assert stopped.edges == [("d", "a")]
    assert stopped.stopped == "time limit"


@pytest.mark.parametrize("method", ["anm", "pnl"])
def test_two_columns_become_a_graph_of_at_most_one_edge(method):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.7, 1.7, 350)
    rows = {"effect": x + x**3 + rng.uniform(-1.7, 1.7, 350), "cause": x}
    found = mk.learn_structure(rows, method, alpha=0.01)
    assert found.edges == [("cause", "effect")]
    assert found.details.p_values[1, 0] > 0.01 > found.details.p_values[0, 1]
    assert found.details.direction.alpha == 0.01
    turned = mk.learn_structure(rows, method, forbidden=[("cause", "effect")])
    assert turned.edges == []
    assert turned.notes
    forced = mk.learn_structure(rows, method, required=[("effect", "cause")])
    assert forced.edges == [("effect", "cause")]
    only = mk.learn_structure(rows, method, forbidden=[("effect", "cause")])
    assert only.edges == [("cause", "effect")]
    assert mk.learn_structure(rows, method, max_parents=0).edges == []


def test_comparing_gives_a_direction_where_tests_do_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    y = np.tanh(x) + 0.6 * rng.normal(size=500) * (1 + 0.5 * np.abs(x))  # the noise grows: no additive noise
    test = mk.pairwise_direction(x, y)
    compared = mk.pairwise_direction(x, y, decide="compare")
    assert test.direction is None
    assert compared.direction is not None
    larger = compared.forward.p_value >= compared.backward.p_value
    assert compared.direction == (("x", "y") if larger else ("y", "x"))


@pytest.mark.parametrize("model", ["pnl", "anm"])
def test_a_direction_is_not_sought_beyond_the_time_limit(model, monkeypatch):
    """Wherever the time ends, in a fit or in a test, next to nothing is done any more."""
    x, e = np.random.default_rng(0).uniform(-1, 1, (2, 60))
    rows = {"x": x, "y": np.exp(x + x**3 + 0.5 * e)}
    looks, evaluations, real = [], [], _Model.__call__

    def evaluated(self, theta):
        evaluations.append(1)
        return real(self, theta)

    monkeypatch.setattr(_Model, "__call__", evaluated)

    def over(self, after):
        looks.append(1)
        self.reason = "time limit" if len(looks) >= after else None
        return self.reason is not None

    for after in (1, 5, 60):
        looks.clear()
        evaluations.clear()
        monkeypatch.setattr(Clock, "over", partialmethod(over, after=after))
        found = mk.learn_structure(rows, model, decide="compare")
        assert found.edges == []
        assert found.stopped == "time limit"
        assert "stopped before both directions" in found.notes[0]
        assert after <= len(looks) <= after + 6
        assert len(evaluations) < after
    forced = mk.learn_structure(rows, model, required=[("y", "x")])
    assert forced.edges == [("y", "x")]


def test_kernels_of_low_rank_ask_for_the_time_at_every_column():
    x, y = np.random.default_rng(0).normal(size=(2, 300))
    asked = []
    plain = gamma_hsic(x, y)
    assert gamma_hsic(x, y, over=lambda: asked.append(1)) == plain
    assert len(asked) >= centred_factor(x).shape[1] + centred_factor(y).shape[1]
    assert centred_factor(x, over=lambda: True).shape == (300, 0)


def test_a_time_limit_holds_for_many_rows():
    x, e = np.random.default_rng(0).normal(size=(2, 40_000))
    found = mk.learn_structure({"x": x, "y": np.log1p(np.exp(x + x**3 / 3 + e))}, "pnl", time_limit=0.2)
    assert found.stopped == "time limit"
    assert found.seconds < 2.0  # 20 s without a limit; a busy machine may be slow to look


def test_wrong_arguments_are_refused():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50))
    for bad, message in (
        (lambda: mk.pairwise_direction(x, y, "abc"), "model="),
        (lambda: mk.pairwise_direction(x, y[:10]), "pairs"),
        (lambda: mk.pairwise_direction(x[:5], y[:5]), "at least 20"),
        (lambda: mk.pairwise_direction(x, np.zeros(50)), "constant"),
        (lambda: mk.pairwise_direction(x, y, decide="x"), "decide="),
        (lambda: mk.pairwise_direction(x, y, alpha=0), "alpha="),
        (lambda: mk.pairwise_direction(["a"] * 50, y), "x holds numbers, not"),
        (lambda: mk.learn_structure(rng.normal(size=(50, 3)), "pnl"), "pnl takes two columns, not 3"),
        (lambda: mk.learn_structure(rng.normal(size=(50, 3)), "anm", decide="compare"), "two columns"),
        (lambda: mk.learn_structure(rng.normal(size=(50, 1)), "anm"), "two columns or more"),
    ):
        with pytest.raises(mk.errors.InvalidArgument, match=message):
            bad()
