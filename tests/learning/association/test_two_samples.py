"""Scores of two samples against brute force and closed forms."""

import numpy as np
import pytest
from scipy.stats import energy_distance as of_scipy
from sklearn.linear_model import LogisticRegression

from markovia.errors import InvalidArgument
from markovia.learning import density_ratio, energy_distance, mode_coverage

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 2)), RNG.normal(1, 2, (20, 2))


def brute(a, b, same=False):
    gaps = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))
    return gaps.sum() / (len(a) * (len(b) - 1)) if same else gaps.mean()


def test_energy_distance_is_that_of_all_pairs(monkeypatch):
    biased = 2 * brute(X, Y) - brute(X, X) - brute(Y, Y)
    unbiased = 2 * brute(X, Y) - brute(X, X, True) - brute(Y, Y, True)
    for block in (2000, 7):
        monkeypatch.setattr("markovia.learning.association.two_samples.BLOCK", block)
        assert energy_distance(X, Y) == pytest.approx(biased, rel=1e-12)
        assert energy_distance(X, Y, estimator="unbiased") == pytest.approx(unbiased, rel=1e-12)
    assert energy_distance(X[:, 0], Y[:, 0]) == pytest.approx(of_scipy(X[:, 0], Y[:, 0]) ** 2)
    order, turn = RNG.permutation(30), np.linalg.qr(RNG.normal(size=(2, 2)))[0]
    assert energy_distance(X[order] @ turn, Y @ turn) == pytest.approx(biased)
    assert energy_distance(1e-9 * X, 1e-9 * Y) == pytest.approx(1e-9 * biased)
    assert energy_distance(X, X) == pytest.approx(0, abs=1e-12)
    # two normals of one spread, far apart: 2 |m| - 4 / sqrt(pi)
    a, b = RNG.normal(size=4000), RNG.normal(50, 1, 4000)
    assert energy_distance(a, b) == pytest.approx(100 - 4 / np.sqrt(np.pi), abs=0.2)


def test_a_classifier_tells_the_ratio_of_densities_whatever_the_sizes():
    a, b = RNG.normal(0, 1, 1500), RNG.normal(1, 1, 500)
    found = density_ratio(a, b, classifier=LogisticRegression())
    exact = 0.5 - np.concatenate([a, b])  # log N(0, 1) - log N(1, 1)
    np.testing.assert_allclose(found.log_ratio, exact, atol=0.6)
    grid = np.linspace(-8, 9, 20001)
    p, q = (np.exp(-0.5 * (grid - m) ** 2) / np.sqrt(2 * np.pi) for m in (0, 1))
    mean = 0.5 * (p + q)
    js = 0.5 * np.trapezoid(p * np.log(p / mean) + q * np.log(q / mean), grid)
    assert found.jensen_shannon == pytest.approx(js, abs=0.03)
    same = density_ratio(X[:15], X[15:], folds=3)
    assert same.jensen_shannon < 0.1
    assert 0 <= same.accuracy <= 1


def test_modes_are_counted():
    centres = np.array([[0.0, 0], [4, 0], [8, 0]])
    rows = np.concatenate([np.repeat(centres[:2], [60, 39], axis=0), [[2.0, 0]]])
    found = mode_coverage(rows, centres, 0.5)
    assert found.counts.tolist() == [60, 39, 0]
    assert found.near == 0.99
    assert found.covered == 2
    assert mode_coverage(rows, centres, 0.5, least=1.5).covered == 1
    assert "2 of 3 modes, 99.0%" in str(found)


def test_samples_that_do_not_fit_are_refused():
    with pytest.raises(InvalidArgument, match="2 and 1 columns"):
        energy_distance(X, Y[:, :1])
    with pytest.raises(InvalidArgument, match="at least 2 rows"):
        energy_distance(X[:1], Y, estimator="unbiased")
    with pytest.raises(InvalidArgument, match="estimator"):
        energy_distance(X, Y, estimator="exact")
    with pytest.raises(InvalidArgument, match="missing"):
        energy_distance(np.where(X > 0, np.nan, X), Y)
    with pytest.raises(InvalidArgument, match="positive"):
        mode_coverage(X, Y, 0)
    with pytest.raises(InvalidArgument, match="5 folds"):
        density_ratio(X[:3], Y)
