"""Contrastive divergence: the chains draw from the model, and persistent chains find the maximum of the likelihood."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.factors.potentials.log_linear import Feature
from markovia.factors.tables.variable import Variable
from markovia.learning.fields import contrastive_divergence as module
from markovia.learning.fields.contrastive_divergence import Chains, cells_of
from markovia.learning.fields.exact_expectations import WrittenOut
from markovia.learning.fields.field_layout import layout_of_features
from markovia.learning.fields.penalties import Penalty
from markovia.learning.fields.stochastic_gradient import descend


def small_ising(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")]
    couplings = {e: float(rng.normal(0, 0.5)) for e in edges}
    mn = mk.MarkovNetwork.ising(couplings, {v: float(rng.normal(0, 0.3)) for v in "abcd"})
    features = [Feature(mn.variable(v), [-1.0, 1.0]) for v in "abcd"]
    features += [Feature([mn.variable(a), mn.variable(b)], [[1.0, -1.0], [-1.0, 1.0]]) for a, b in edges]
    return features, mn.sample(n, seed=seed + 1)


def test_chains_draw_from_the_model_whatever_its_states_and_scopes():
    rng = np.random.default_rng(3)
    v = [Variable("x", 2), Variable("y", 3), Variable("z", 2), Variable("u", 4)]
    features = [
        Feature([v[0], v[1]], rng.normal(size=(2, 3))),
        Feature([v[3], v[2], v[1]], rng.normal(size=(4, 2, 3))),
        Feature(v[2], [0.0, 0.7]),
    ]
    layout = layout_of_features(features, v)
    tables = layout.log_tables(np.array([0.8, 0.6, -1.0]))
    _, exact = WrittenOut(layout)(tables)
    chains = Chains(layout, np.zeros((400, 4), dtype=np.int8), np.random.default_rng(1))
    chains.run(tables, 50)
    parts = np.array([chains.run(tables, 40, 0) for _ in range(25)])
    error = parts.std(axis=0) / np.sqrt(len(parts))
    assert np.all(np.abs(parts.mean(axis=0) - exact) < 5 * error + 1e-3)
    last = chains.run(tables, 3)
    np.testing.assert_allclose(last, cells_of(layout, chains.states), atol=1e-12)


@pytest.mark.slow
def test_persistent_chains_find_the_maximum_of_the_likelihood():
    features, data = small_ising()
    exact = mk.fit_log_linear(features, data, method="exact")
    settings = mk.learning.ContrastiveDivergence(persistent=True, sweeps=2, chains=400, step=0.3)
    found = mk.fit_log_linear(features, data, method=settings, max_iterations=1500, seed=5)
    assert found.converged
    assert found.fit.method == "pcd"
    # noise of a gradient of 400 chains, averaged over the last half of the run: about 0.01
    assert np.abs(found.weights - exact.weights).max() < 0.03
    assert 0 <= exact.log_likelihood - found.log_likelihood < 2.0
    np.testing.assert_allclose(found.expected, found.observed, atol=0.02)


def test_monte_carlo_expectations_do_too():
    features, data = small_ising()
    exact = mk.fit_log_linear(features, data, method="exact")
    found = mk.fit_log_linear(
        features, data, method=mk.engines.Gibbs(draws=100, burn_in=10, chains=20), seed=2
    )
    assert found.fit.method == "gibbs"
    assert found.converged
    assert 0 <= exact.log_likelihood - found.log_likelihood < 2.0


@pytest.mark.slow
def test_contrastive_divergence_with_more_sweeps_comes_nearer():
    """Rows around three patterns, which no pairwise model fits: chains that start there forget them only slowly."""
    features, _ = small_ising(10)
    rng = np.random.default_rng(0)
    patterns = np.array([[-1, -1, -1, -1], [1, 1, 1, 1], [-1, 1, -1, 1]])
    rows = patterns[rng.choice(3, 6000, p=[0.5, 0.3, 0.2])]
    rows = np.where(rng.random(rows.shape) < 0.15, -rows, rows)
    data = pd.DataFrame(rows, columns=list("abcd"))
    exact = mk.fit_log_linear(features, data, method="exact")
    gaps = []
    for sweeps in (1, 10):
        settings = mk.learning.ContrastiveDivergence(persistent=False, sweeps=sweeps, chains=400, step=0.3)
        found = mk.fit_log_linear(features, data, method=settings, max_iterations=800, seed=3)
        assert found.fit.method == "cd"
        gaps.append(exact.log_likelihood - found.log_likelihood)
    assert 0 <= gaps[1] < gaps[0] / 4


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_the_same_seed_gives_the_same_weights_whatever_the_number_of_threads(monkeypatch):
    features, data = small_ising(300)
    for method in ("cd", "pcd"):
        found = []
        for threads in ("1", "2"):
            monkeypatch.setenv("MARKOVIA_THREADS", threads)
            one = mk.fit_log_linear(features, data, method=method, max_iterations=40, seed=9)
            found.append(one.weights)
        np.testing.assert_array_equal(found[0], found[1])
        other = mk.fit_log_linear(features, data, method=method, max_iterations=40, seed=10).weights
        assert np.any(other != found[0])


def test_penalties_hold_in_stochastic_gradients_too():
    features, data = small_ising(500)
    found = mk.fit_log_linear(features, data, method="pcd", l1={"edges": 1e4}, max_iterations=200, seed=1)
    assert np.all(found.weights[4:] == 0)
    assert np.any(found.weights[:4] != 0)
    strong = mk.fit_log_linear(features, data, method="pcd", l2=5000.0, max_iterations=300, seed=1)
    exact = mk.fit_log_linear(features, data, method="exact", l2=5000.0)
    assert np.abs(strong.weights - exact.weights).max() < 0.02


def still(n, **penalties):
    zero = np.zeros(n)
    return Penalty(penalties.get("l2", zero), penalties.get("l1", zero), np.full(n, -1), np.zeros(0))


def test_steps_are_as_long_as_robbins_and_monro_say_and_the_last_half_is_averaged():
    """Step t is step / (1 + t / decay) / scale long; the answer is the mean over the last half of the run."""
    slope, scale, steps = np.array([1.0, -2.0]), np.array([0.5, 4.0]), 9
    seen = []

    def gradient(weights, t):
        seen.append((t, weights.copy()))
        return slope

    found = descend(gradient, np.array([1.0, 1.0]), scale, still(2), steps=steps, step=0.3, decay=4.0)
    lengths = [0.3 / (1 + t / 4) for t in range(steps)]
    path = [np.array([1.0, 1.0]) - sum(lengths[: t + 1]) * slope / scale for t in range(steps)]
    assert [t for t, _ in seen] == list(range(steps))
    np.testing.assert_allclose([w for _, w in seen[1:]], path[:-1])
    np.testing.assert_allclose(found.weights, np.mean(path[5:], axis=0))  # steps 5 to 8: 2 t >= 9
    assert found.norms == [2.0] * steps
    assert found.error == pytest.approx(2.0)
    assert found.noise == 0.0


def test_penalties_shrink_by_the_length_of_the_step():
    """L2 adds its slope, L1 shrinks by step length times its weight, and then the last point is the answer."""
    slope, scale = np.array([0.2, -0.1, 0.4]), np.array([0.5, 1.0, 2.0])
    l2, l1 = np.array([0.3, 0.0, 1.0]), np.array([0.0, 0.5, 0.1])
    found = descend(
        lambda w, t: slope,
        np.array([1.0, 0.2, -1.0]),
        scale,
        still(3, l2=l2, l1=l1),
        steps=6,
        step=0.4,
        decay=2.0,
    )
    w = np.array([1.0, 0.2, -1.0])
    for t in range(6):
        length = 0.4 / (1 + t / 2) / scale
        w = w - length * (slope + l2 * w)
        w = np.sign(w) * np.maximum(np.abs(w) - length * l1, 0)
    np.testing.assert_allclose(found.weights, w)


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_the_first_step_of_contrastive_divergence_is_as_long_as_asked_and_halves_after_its_share(monkeypatch):
    features, data = small_ising(100)
    given = {}

    def record(gradient, start, scale, penalty, **settings):
        given.update(settings, scale=scale)
        return descend(gradient, start, scale, penalty, **settings)

    monkeypatch.setattr(module, "descend", record)
    settings = mk.learning.ContrastiveDivergence(step=0.07, decay=0.25, chains=10)
    mk.fit_log_linear(features, data, method=settings, max_iterations=40, seed=0)
    assert (given["step"], given["decay"], given["steps"]) == (0.07, 10.0, 40)
    spins = np.where(data[list("abcd")].to_numpy() == 1, 1.0, -1.0)
    np.testing.assert_allclose(given["scale"][:4], np.maximum(spins.var(axis=0), 0.05))


@pytest.mark.slow
def test_row_weights_are_kept():
    features, data = small_ising(200)
    weights = (data["a"] == 1).to_numpy() * 3.0 + 0.5
    exact = mk.fit_log_linear(features, data, weights=weights, method="exact")
    for method in ("cd", "pcd"):
        found = mk.fit_log_linear(features, data, weights=weights, method=method, seed=1, max_iterations=1500)
        assert exact.log_likelihood - found.log_likelihood < 0.02 * abs(exact.log_likelihood)


def test_settings_that_make_no_sense_are_refused():
    features, data = small_ising(50)
    for wrong in ({"sweeps": 0}, {"chains": 1.5}, {"step": -1.0}, {"decay": 0}, {"skip": 1}):
        with pytest.raises(mk.errors.InvalidArgument):
            mk.learning.ContrastiveDivergence(**wrong)
    with pytest.raises(mk.errors.InvalidArgument, match="stochastic gradient"):
        mk.fit_log_linear(features, data, method="pcd", optimizer="lbfgs")
