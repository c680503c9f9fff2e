"""Confounding-equivalence against adjustment formulas worked out on random models, and the propensity's identity."""

from itertools import combinations

import numpy as np
import pytest

import markovia as mk
from causal_worlds import full_dag, full_model, random_admg
from markovia.causal import confounding_equivalent, propensity_identity
from markovia.errors import InvalidArgument, NoOverlap, UnknownVariable


def adjusted(joint, x, y, given):
    """Return sum_z P(y | x, z) P(z), written out."""
    table = joint.marginal([x, y, *given]).transpose([x, y, *given]).values
    table = table.reshape(*table.shape[:2], -1)
    return (table / table.sum(axis=1, keepdims=True) * table.sum(axis=(0, 1))).sum(axis=2)


def test_equivalent_sets_are_those_that_adjust_alike_in_random_models():
    rng = np.random.default_rng(0)
    answers = []
    for seed in range(14):
        graph = random_admg(rng, 5, arrows=0.5, joined=0.15)
        x, y = map(str, rng.choice(graph.nodes, 2, replace=False))
        below = full_dag(graph).descendants(x)
        others = [v for v in graph.nodes if v not in below and v not in (x, y)]
        sets = [c for k in range(len(others) + 1) for c in combinations(others, k)]
        joints = [full_model(graph, 2 * seed + k).query(graph.nodes).factor() for k in range(2)]
        by_set = {s: [adjusted(joint, x, y, s) for joint in joints] for s in sets}
        for one, two in combinations(sets, 2):
            alike = all(
                np.allclose(a, b, rtol=0, atol=1e-10) for a, b in zip(by_set[one], by_set[two], strict=True)
            )
            assert confounding_equivalent(graph, x, y, one, two) == alike, (graph, x, y, one, two)
            assert confounding_equivalent(graph, x, y, two, one) == alike
            answers.append(alike)
    assert 0.1 < np.mean(answers) < 0.9
    assert len(answers) > 100


def test_sets_that_the_treatment_changes_are_refused():
    for bad in ("m", "y", "x"):
        with pytest.raises(InvalidArgument, match="does not change"):
            confounding_equivalent("z -> x -> m -> y", "x", "y", "z", bad)
    with pytest.raises(UnknownVariable):
        confounding_equivalent("z -> x -> y", "x", "y", "z", "q")
    assert confounding_equivalent("z -> x -> y", "x", "y", (), "z")


def test_score_covariates_and_weights_agree_to_rounding_in_every_distribution():
    rng = np.random.default_rng(1)
    for states in (2, 3):
        values = rng.dirichlet(np.full(states * 2 * 3 * 2 * 2, 0.5)).reshape(states, 2, 3, 2, 2)
        joint = mk.Factor(["x", "y", "a", "b", "c"], values)
        found = propensity_identity(joint, "x", "y", ["a", "b", "c"])
        np.testing.assert_allclose(
            found.by_covariates.values, adjusted(joint, "x", "y", ["a", "b", "c"]), rtol=1e-12
        )
        assert found.gap < 1e-13
        assert found.imbalance < 1e-11
        assert found.by_score.values.sum() == pytest.approx(states)
        assert (found.cells, found.scores.shape) == (12, (12, states))


def test_a_score_that_joins_cells_still_adjusts_and_unadjusted_shares_do_not():
    rng = np.random.default_rng(2)
    # x depends on a + b alone: nine cells, five scores
    h = np.array([0.1, 0.3, 0.5, 0.7, 0.9])[np.add.outer(range(3), range(3))]
    cells = rng.dirichlet(np.ones(9)).reshape(3, 3)
    y = rng.uniform(0.1, 0.9, size=(2, 3, 3))
    x = np.stack([1 - h, h])
    joint = mk.Factor(["x", "y", "a", "b"], np.stack([x * (1 - y) * cells, x * y * cells], axis=1))
    found = propensity_identity(joint, "x", "y", ["a", "b"])
    assert (found.cells, len(found.scores)) == (9, 5)
    np.testing.assert_allclose(np.sort(found.scores[:, 1]), [0.1, 0.3, 0.5, 0.7, 0.9])
    assert found.gap < 1e-14
    np.testing.assert_allclose(found.by_score.values[:, 1], (y * cells).sum(axis=(1, 2)))
    seen = joint.conditional("y", "x").transpose(["x", "y"]).values
    assert np.abs(seen - found.by_score.values).max() > 0.01
    assert "9 cells" in str(found)
    assert "5 scores" in str(found)


def test_a_treatment_that_never_occurs_somewhere_and_bad_names_are_refused():
    joint = mk.Factor(["x", "y", "c"], [[[0.1, 0.2], [0.1, 0.2]], [[0.0, 0.2], [0.0, 0.2]]])
    with pytest.raises(NoOverlap, match="x = 1 never occurs"):
        propensity_identity(joint, "x", "y", "c")
    with pytest.raises(InvalidArgument, match="different variables"):
        propensity_identity(joint, "x", "y", ["x"])
    empty = propensity_identity(joint, "x", "y", [])
    assert empty.cells == 1
    rows = {"x": [0, 0, 1, 1], "y": [0, 1, 0, 1], "c": [0, 0, 0, 0]}
    assert propensity_identity(rows, "x", "y", "c").by_weights.values.tolist() == [[0.5, 0.5], [0.5, 0.5]]
