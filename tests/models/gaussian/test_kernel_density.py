"""Kernel density estimates: their integrals, SciPy and scikit-learn at the same bandwidth, and what rules choose."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gaussian_kde
from sklearn.neighbors import KernelDensity as TheirDensity

import markovia as mk
from markovia.models.gaussian.kernel_density import BUMPS, KernelDensity


def rows(seed=0, n=40, d=2):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.arange(1.0, d + 1.0)


@pytest.mark.parametrize("kernel", BUMPS)
def test_densities_integrate_to_one(kernel):
    X = rows(n=5, d=1)
    model = KernelDensity(0.4, kernel=kernel).fit(X)
    ends = np.sort(np.concatenate([X[:, 0] - 0.4, X[:, 0] + 0.4, X[:, 0]]))

    def density(x):
        return float(np.exp(model.score_samples([[x]])[0]))

    total = sum(quad(density, a, b)[0] for a, b in zip([-30.0, *ends], [*ends, 30.0], strict=True))
    assert total == pytest.approx(1.0, abs=1e-6)
    grid = (np.arange(300) + 0.5) / 300.0 * 24.0 - 12.0
    plane = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    flat = KernelDensity([1.0, 1.5], kernel=kernel).fit([[0.0, 0.0], [0.5, 1.0]])
    assert np.exp(flat.score_samples(plane)).sum() * 0.08**2 == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("kernel", BUMPS)
def test_densities_are_scikit_learns_at_the_same_bandwidth(kernel):
    X, new, weights = rows(1, d=3), rows(2, d=3), np.random.default_rng(3).uniform(size=40)
    ours = KernelDensity(1.3, kernel=kernel).fit(X, sample_weight=weights)
    theirs = TheirDensity(bandwidth=1.3, kernel=kernel).fit(X, sample_weight=weights)
    np.testing.assert_allclose(ours.score_samples(new), theirs.score_samples(new), rtol=1e-9)
    assert ours.score(X) == pytest.approx(theirs.score(X) / 40)


@pytest.mark.parametrize("rule", ["scott", "silverman"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rules_are_scipys(rule, weighted):
    x, new = rows(4, d=1), np.linspace(-3.0, 3.0, 20)
    weights = np.random.default_rng(5).uniform(size=40) if weighted else None
    theirs = gaussian_kde(x[:, 0], bw_method=rule, weights=weights)
    ours = KernelDensity(rule).fit(x, sample_weight=weights)
    assert ours.bandwidth_[0] == pytest.approx(theirs.covariance[0, 0] ** 0.5)
    np.testing.assert_allclose(np.exp(ours.score_samples(new[:, None])), theirs(new), rtol=1e-10)
    # of several columns each has its own: the diagonal of SciPy's matrix
    X = rows(6, d=3)
    whole = gaussian_kde(X.T, bw_method=rule).covariance
    np.testing.assert_allclose(KernelDensity(rule).fit(X).bandwidth_ ** 2, np.diag(whole))


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_likelihood_chooses_what_a_fine_grid_chooses(kernel):
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.normal(-3.0, 0.3, 25), rng.normal(3.0, 1.0, 25)])[:, None]
    weights = rng.uniform(0.5, 1.5, 50)
    model = KernelDensity("likelihood", kernel=kernel).fit(x, sample_weight=weights)

    def left_out(width):
        each = [
            KernelDensity(width, kernel=kernel)
            .fit(np.delete(x, i, 0), sample_weight=np.delete(weights, i))
            .score_samples(x[[i]])[0]
            for i in range(50)
        ]
        return weights @ np.array(each) / weights.sum()

    width = float(model.bandwidth_[0])
    around = [left_out(width * s) for s in (0.25, 0.5, 0.7, 0.9, 0.99, 1.01, 1.1, 1.4, 2.0, 4.0)]
    assert left_out(width) >= max(around) - 1e-9
    assert width < 0.8 * KernelDensity().fit(x).bandwidth_[0]  # two humps: the rule for one is too wide


def test_weights_are_repetitions():
    X = rows(8, n=10)
    counts = np.arange(10) % 3
    for rule in ("scott", 0.5):
        one, other = (
            KernelDensity(rule).fit(X, sample_weight=counts),
            KernelDensity(rule).fit(np.repeat(X, counts, 0)),
        )
        if rule != "scott":  # whose number of rows is that which the weights are worth
            np.testing.assert_allclose(one.score_samples(X), other.score_samples(X))
        assert len(one.X_fit_) == 6  # rows without weight are not kept


@pytest.mark.parametrize("kernel", BUMPS)
def test_draws_have_the_moments_of_the_density(kernel):
    model = KernelDensity([0.7, 2.0], kernel=kernel).fit([[0.0, 0.0], [3.0, -1.0]], sample_weight=[1.0, 3.0])
    drawn = model.sample(40_000, seed=0)
    np.testing.assert_allclose(drawn.mean(axis=0), [2.25, -0.75], atol=4.0 * drawn.std(axis=0).max() / 200.0)
    # by its density: the share of draws in a box is the integral over it
    grid = np.stack(np.meshgrid(np.arange(0.005, 1.0, 0.01), np.arange(0.005, 1.0, 0.01)), axis=-1).reshape(
        -1, 2
    )
    expected = np.exp(model.score_samples(grid)).mean()
    share = ((drawn > 0.0) & (drawn < 1.0)).all(axis=1).mean()
    assert share == pytest.approx(expected, abs=4.0 * (expected / 40_000) ** 0.5)


def test_the_network_is_the_same_mixture_and_answers_conditional_questions():
    X, new = rows(9, n=8), rows(10, n=5)
    model = KernelDensity([0.5, 0.8]).fit(X)
    network = model.network()
    np.testing.assert_allclose(
        network.log_prob({"x0": new[:, 0], "x1": new[:, 1]}), model.score_samples(new), rtol=1e-9
    )
    # the mean of a column given the other is the average of Nadaraya and Watson
    smooth = mk.gp.NadarayaWatson(mk.covariances.RBF(0.5)).fit(X[:, :1], X[:, 1])
    assert network.query("x1", given={"x0": 0.3}).mean() == pytest.approx(smooth.predict([[0.3]])[0])
    with pytest.raises(mk.errors.UnsupportedModel, match="kernel='gaussian'"):
        KernelDensity(kernel="tophat").fit(X).network()


@pytest.mark.parametrize("unit", [1e-9, 1e9])
@pytest.mark.parametrize("rule", ["scott", "likelihood"])
def test_units_and_order_scale_the_answer(rule, unit):
    X, order = rows(11), np.random.default_rng(0).permutation(40)
    one, other, mixed = (KernelDensity(rule).fit(Z) for Z in (X, X * [unit, 1.0], X[order]))
    np.testing.assert_allclose(other.bandwidth_, one.bandwidth_ * [unit, 1.0], rtol=1e-5)
    np.testing.assert_allclose(mixed.bandwidth_, one.bandwidth_, rtol=1e-9)
    np.testing.assert_allclose(
        other.score_samples(X * [unit, 1.0]) + np.log(unit), one.score_samples(X), atol=1e-3
    )


def test_odd_rows_have_a_density():
    for X in ([[3.0]], np.full((5, 2), 7.0), np.zeros((3, 1)), np.column_stack([rows(d=1), np.ones(40)])):
        assert np.isfinite(KernelDensity().fit(X).score_samples(X)).all()
    assert np.isneginf(KernelDensity(kernel="tophat").fit([[0.0]]).score_samples([[99.0]])).all()


def test_ties_leave_the_likelihood_without_a_best_bandwidth_and_it_says_so():
    with pytest.warns(mk.errors.ConvergenceWarning, match="many are the same; take bandwidth='scott'"):
        KernelDensity("likelihood").fit(np.repeat(rows(n=5, d=1), 4, axis=0))


def test_bad_input_is_told_in_a_sentence():
    X = rows()
    with pytest.raises(mk.errors.InvalidArgument, match="bandwidth= has 3 numbers, and rows 2 columns"):
        KernelDensity([1.0, 1.0, 1.0]).fit(X)
    for wrong in (0.0, -1.0, "wide", [1.0, 0.0]):
        with pytest.raises(mk.errors.MarkoviaError, match="bandwidth"):
            KernelDensity(wrong).fit(X)
    with pytest.raises(mk.errors.InvalidArgument, match="row 1 of X misses 'x0'"):
        KernelDensity().fit([[1.0], [np.nan]])
    with pytest.raises(mk.errors.MarkoviaError):
        KernelDensity().fit(X, sample_weight=-np.ones(40))
    with pytest.raises(mk.errors.MarkoviaError):
        KernelDensity().fit(X, sample_weight=np.zeros(40))


def test_blocks_give_what_all_at_once_gives(monkeypatch):
    X = rows(12)
    model = KernelDensity("likelihood").fit(X)
    monkeypatch.setattr("markovia.models.gaussian.kernel_density.BLOCK", 90)
    again = KernelDensity("likelihood").fit(X)
    np.testing.assert_allclose(again.bandwidth_, model.bandwidth_, rtol=1e-12)
    np.testing.assert_allclose(again.score_samples(X), model.score_samples(X), rtol=1e-12)
