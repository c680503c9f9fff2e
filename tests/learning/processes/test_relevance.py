"""Precisions of weights by evidence: against densities, brute force over sets of columns, and equations of the optimum."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from markovia.learning.processes.relevance import relevant_weights


def log_evidence(design, y, precisions, noise):
    """Return the log density of normal targets, with the weights integrated out."""
    C = noise * np.eye(len(y)) + (design / precisions) @ design.T
    return multivariate_normal.logpdf(y, np.zeros(len(y)), C)


def weights(design, y, *, binary=False, max_iter=2000, tol=1e-10):
    return relevant_weights(design, y, binary=binary, max_iter=max_iter, tol=tol)


def sparse_problem(seed, n=30, m=5, used=2, noise=0.3):
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(n, m))
    truth = np.zeros(m)
    truth[:used] = rng.choice([-1.5, 1.0, 2.0], used)
    return design, design @ truth + noise * rng.normal(size=n)


def best_of(design, y):
    """Return the most evidence that precisions of these columns and the noise can have."""
    n, m = design.shape

    def lost(p):
        C = np.exp(p[-1]) * np.eye(n) + (design * np.exp(-p[:-1])) @ design.T
        inverse = np.linalg.inv(C)
        a = inverse @ y
        q, s = design.T @ a, np.einsum("ij,ik,kj->j", design, inverse, design)
        value = 0.5 * (y @ a + np.linalg.slogdet(C)[1] + n * np.log(2.0 * np.pi))
        slope = [0.5 * np.exp(-p[:-1]) * (q * q - s), [0.5 * np.exp(p[-1]) * (np.trace(inverse) - a @ a)]]
        return value, np.concatenate(slope)

    return -minimize(lost, np.zeros(m + 1), jac=True, bounds=[(-12.0, 12.0)] * (m + 1)).fun


@pytest.mark.parametrize("seed", range(3))
def test_no_set_of_columns_has_more_evidence_at_its_own_best_precisions(seed):
    design, y = sparse_problem(seed, n=12, m=4)
    found = weights(design, y)
    sets = [list(kept) for size in range(4) for kept in combinations(range(4), size)]
    best = max(best_of(design[:, kept], y) for kept in sets)
    assert found.objective > best - 1e-5
    at = found.state
    assert found.objective == pytest.approx(
        log_evidence(design[:, at.kept], y, at.precisions, at.noise), abs=1e-6
    )
    assert set(at.kept) >= {0, 1}


def test_the_equations_of_the_optimum_hold_at_the_end():
    """MacKay's fixed points for what is kept; for what is not, data ask for less than the prior allows (q^2 <= s)."""
    design, y = sparse_problem(11, n=60, m=12, used=3)
    at = weights(design, y, tol=1e-13).state
    known = 1.0 - at.precisions * np.diag(at.cov)
    np.testing.assert_allclose(at.precisions, known / at.mean**2, rtol=1e-3)
    error = y - design[:, at.kept] @ at.mean
    assert at.noise == pytest.approx(error @ error / (len(y) - known.sum()), rel=1e-3)
    inverse = np.linalg.inv(
        at.noise * np.eye(60) + (design[:, at.kept] / at.precisions) @ design[:, at.kept].T
    )
    out = np.setdiff1d(np.arange(12), at.kept)
    q, s = design[:, out].T @ inverse @ y, np.einsum("ij,ik,kj->j", design[:, out], inverse, design[:, out])
    assert len(out)
    assert (q * q <= s * (1.0 + 1e-3)).all()


def test_the_posterior_of_weights_is_that_of_the_linear_model_with_these_precisions():
    design, y = sparse_problem(3)
    at = weights(design, y).state
    Phi = design[:, at.kept]
    cov = np.linalg.inv(np.diag(at.precisions) + Phi.T @ Phi / at.noise)
    np.testing.assert_allclose(at.cov, cov, rtol=1e-8)
    np.testing.assert_allclose(at.mean, cov @ Phi.T @ y / at.noise, rtol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_the_evidence_of_normal_targets_never_falls(seed):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-4.0, 4.0, 40))
    design = np.column_stack([np.ones(40), np.exp(-0.5 * (X[:, None] - X) ** 2)])
    found = weights(design, np.sinc(X) + 0.1 * rng.normal(size=40), tol=1e-8)
    assert found.converged
    assert np.diff(found.history).min() > -1e-7
    assert len(found.state.kept) < 15


def test_binary_targets_end_where_the_laplace_evidence_is_flat():
    rng = np.random.default_rng(5)
    design = rng.normal(size=(80, 6))
    y = (rng.random(80) < 1.0 / (1.0 + np.exp(-2.0 * design[:, 0]))).astype(float)
    found = weights(design, y, binary=True)
    at = found.state
    assert 0 in at.kept
    assert len(at.kept) < 6
    assert at.noise == 0.0
    Phi = design[:, at.kept]

    def laplace(logs):
        """Return the mode of weights and the evidence, by the formulas."""
        a = np.exp(logs)

        def lost(w):
            f = Phi @ w
            return np.logaddexp(0.0, f).sum() - y @ f + 0.5 * a @ w**2

        mode = minimize(lost, np.zeros(len(a)), tol=1e-12).x
        p = 1.0 / (1.0 + np.exp(-Phi @ mode))
        H = (Phi.T * (p * (1.0 - p))) @ Phi + np.diag(a)
        return mode, -lost(mode) + 0.5 * logs.sum() - 0.5 * np.linalg.slogdet(H)[1]

    mode, evidence = laplace(np.log(at.precisions))
    np.testing.assert_allclose(at.mean, mode, atol=1e-5)
    assert found.objective == pytest.approx(evidence, abs=1e-6)
    # MacKay's fixed point, which leaves out how the curvature moves with the mode
    np.testing.assert_allclose(at.precisions * at.mean**2, 1.0 - at.precisions * np.diag(at.cov), rtol=1e-3)


def test_useless_and_empty_columns_are_dropped():
    design, y = sparse_problem(2)
    empty = np.column_stack([design, np.zeros(30)])
    assert 5 not in weights(empty, y).state.kept
    nothing = weights(np.zeros((30, 2)), y)
    assert len(nothing.state.kept) == 0
    assert nothing.state.noise == pytest.approx(np.mean(y**2))


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_of_targets_scale_the_answer(unit):
    design, y = sparse_problem(4)
    one, other = weights(design, y).state, weights(design, unit * y).state
    assert one.kept.tolist() == other.kept.tolist()
    np.testing.assert_allclose(other.mean / unit, one.mean, rtol=1e-5)
    assert other.noise / unit**2 == pytest.approx(one.noise, rel=1e-5)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_of_columns_scale_their_weights(unit):
    design, y = sparse_problem(4)
    one, other = weights(design, y).state, weights(unit * design, y).state
    assert one.kept.tolist() == other.kept.tolist()
    np.testing.assert_allclose(other.mean * unit, one.mean, rtol=1e-5)


def test_twins_count_once():
    design, y = sparse_problem(8)
    found = weights(design[:, [0, 0, 1, 1, 2]], y)
    single = weights(design[:, [0, 1, 2]], y)
    assert found.objective == pytest.approx(single.objective, abs=1e-4)
    assert len(found.state.kept) == len(single.state.kept)


def test_no_steps_at_all_is_told():
    design, y = sparse_problem(1)
    assert not weights(design, y, max_iter=1).converged
