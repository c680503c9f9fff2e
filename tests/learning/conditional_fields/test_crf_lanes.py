"""Gradients of many trees side by side are those of one tree after the other, whatever their shapes and weights."""

import numpy as np
import pytest
from numba import njit

from markovia.kernels.fields.crf_lanes import _exponentials
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.objective import PairwiseObjective
from markovia.learning.conditional_fields.tree_lanes import Lanes


@pytest.fixture
def mixed(monkeypatch):
    """Lay trees side by side even where lanes have different tables at most steps."""
    monkeypatch.setattr("markovia.learning.conditional_fields.tree_lanes.MOST_MIXED", 1.0)


def _forests(rng, k, sizes, same=False, roots=0.1, kinds=1, turn=False):
    """Random forests; each node hangs below an earlier one or is a root, edges point either way if turned."""
    tails, heads, edge_ptr, first = [], [], [0], 0
    shape = [int(rng.integers(i)) if rng.random() > roots else -1 for i in range(1, max(sizes))]
    for n in sizes:
        if not same:
            shape = [int(rng.integers(i)) if rng.random() > roots else -1 for i in range(1, n)]
        for i, p in enumerate(shape[: n - 1], start=1):
            if p >= 0:
                ends = (i, p) if turn and (i % 3 == 0 if same else rng.random() < 0.5) else (p, i)
                tails.append(first + ends[0])
                heads.append(first + ends[1])
        first += n
        edge_ptr.append(len(tails))
    rows = rng.integers(kinds, size=len(tails))[:, None] if kinds > 1 else np.ones((len(tails), 1))
    node_ptr = np.concatenate([[0], np.cumsum(sizes)])
    return Fields.of(
        k, node_ptr, np.array(edge_ptr), np.array(tails), np.array(heads), rows.astype(np.float64)
    )


def _both(fields, rng, scale, d=3):
    """Return value and gradient with lanes, and tree by tree."""
    n = int(fields.node_ptr[-1])
    objective = PairwiseObjective(fields, rng.normal(size=(n, d)), rng.integers(fields.k, size=n))
    assert objective._lanes is not None
    theta = scale * rng.normal(size=objective.size)
    found = objective(theta)
    undone = np.isnan(objective._lanes.gradient(*_arguments(objective, theta))[0]).any()
    objective._lanes = None
    return found, objective(theta), undone


def _arguments(objective, theta):
    node, edge = objective.unpack(theta)
    return node, objective._tables(edge)


@pytest.mark.parametrize("k", [2, 3, 5, 7])
@pytest.mark.parametrize(("same", "turn"), [(True, False), (True, True), (False, False), (False, True)])
def test_trees_side_by_side_have_the_gradient_of_one_after_the_other(k, same, turn, mixed):
    rng = np.random.default_rng(k)
    for sizes in ([6] * 70, rng.integers(5, 9, size=100).tolist()):
        fields = _forests(rng, k, sizes, same=same, turn=turn)
        for scale in (0.0, 0.5, 5.0):
            (value, gradient), (expected, slope), undone = _both(fields, rng, scale, d=1 + k)
            assert not undone
            assert value == pytest.approx(expected, rel=1e-11, abs=1e-9)
            assert np.allclose(gradient, slope, atol=1e-9)


@pytest.mark.parametrize("scale", [50.0, 500.0, 5000.0])
def test_huge_weights_neither_overflow_nor_underflow(scale, mixed):
    rng = np.random.default_rng(3)
    left = 0
    for trial in range(6):
        fields = _forests(rng, 4, [12] * 40, same=trial % 2 == 0, turn=True)
        (value, gradient), (expected, slope), undone = _both(fields, rng, scale)
        left += undone
        assert np.isfinite(value)
        assert np.all(np.isfinite(gradient))
        assert value == pytest.approx(expected, rel=1e-11)
        assert np.allclose(gradient, slope, atol=1e-7)
    assert left > 0 or scale < 100  # such weights do reach the method in logarithms


def test_features_that_are_not_kept_give_the_same_gradient(monkeypatch, mixed):
    rng = np.random.default_rng(5)
    fields = _forests(rng, 3, rng.integers(1, 9, size=150).tolist(), turn=True)
    features = rng.normal(size=(int(fields.node_ptr[-1]), 4))
    weights, tables = rng.normal(size=(3, 4)), rng.normal(size=(1, 3, 3))
    kept = Lanes.of(fields, features).gradient(weights, tables)
    monkeypatch.setattr("markovia.learning.conditional_fields.tree_lanes.MOST_KEPT", 0)
    again = Lanes.of(fields, features)
    assert again.kept is None
    for one, other in zip(kept, again.gradient(weights, tables), strict=True):
        assert np.array_equal(one, other)


def test_cycles_and_tables_that_differ_everywhere_are_left_to_other_methods():
    rng = np.random.default_rng(6)
    triangle = np.array([0, 1, 2]), np.array([1, 2, 0])
    ends = [np.concatenate([t + 3 * g for g in range(20)]) for t in triangle]
    fields = Fields.of(2, np.arange(21) * 3, np.arange(21) * 3, *ends, np.ones((60, 1)))
    assert Lanes.of(fields, np.ones((60, 1))) is None
    fields = _forests(rng, 2, [9] * 64, kinds=3, roots=0.0)
    assert Lanes.of(fields, np.ones((576, 1))) is None


def test_the_polynomial_is_the_exponential_to_the_last_digits():
    given = -np.concatenate([np.linspace(0, 40, 4001), np.linspace(40, 800, 4001)])
    scores = np.stack([np.zeros(len(given)), given])
    run = njit(lambda *arrays: _exponentials(*arrays))
    run(scores, np.empty(len(given)), np.zeros(len(given)))
    true = np.where(given >= -708.0, np.exp(given), 0.0)
    assert np.all(scores[0] == 1.0)
    assert np.allclose(scores[1], true, rtol=3e-14, atol=0.0)
    assert np.allclose(scores[1, :4001], true[:4001], rtol=3e-15, atol=0.0)
