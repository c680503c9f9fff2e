"""Labels under rules and among neighbours against a general optimiser, closed forms and limits."""

import numpy as np
import pytest
from scipy.optimize import minimize

from markovia.errors import InvalidArgument
from markovia.learning.fields.regularised_labels import LabelConstraints, LabelRule, regularised_labels


def constraints(n, k, *, rules=(), edges=()):
    """Rules are (when, then, weight, confidence), edges (i, j, strength)."""
    listed = np.array(edges, dtype=float).reshape(-1, 3)
    return LabelConstraints(
        np.array([r[0] for r in rules], dtype=float).reshape(-1, n),
        np.array([r[1] for r in rules], dtype=bool).reshape(-1, k),
        np.array([np.nan if r[2] is None else r[2] for r in rules]),
        np.array([np.nan if r[3] is None else r[3] for r in rules]),
        listed[:, :2].astype(int),
        listed[:, 2],
    )


def brute(p, given):
    """Minimise the objective over all distributions; absolute values as pairs of slack variables."""
    n, k = p.shape
    e = len(given.edges)
    free = np.isnan(given.weights)

    def held(q):
        return np.einsum("ln,nk,lk->l", given.when, q, given.then)

    def value(v):
        q = v[: n * k].reshape(n, k)
        kl = np.sum(q * np.log(np.maximum(q, 1e-300) / p))
        return kl - given.weights[~free] @ held(q)[~free] + 0.5 * np.repeat(given.strengths, k) @ v[n * k :]

    def gaps(v):
        q, t = v[: n * k].reshape(n, k), v[n * k :].reshape(e, k)
        away = q[given.edges[:, 0]] - q[given.edges[:, 1]]
        return np.concatenate([(t - away).ravel(), (t + away).ravel()])

    wanted = (given.confidence * given.when.sum(axis=1))[free]
    rows = [
        {"type": "eq", "fun": lambda v: v[: n * k].reshape(n, k).sum(axis=1) - 1},
        {"type": "ineq", "fun": lambda v: held(v[: n * k].reshape(n, k))[free] - wanted},
        {"type": "ineq", "fun": gaps},
    ]
    start = np.concatenate([p.ravel(), np.ones(e * k)])
    box = [(1e-9, 1)] * (n * k) + [(0, 2)] * (e * k)
    return minimize(
        value, start, bounds=box, constraints=rows, method="SLSQP", options={"ftol": 1e-13, "maxiter": 2000}
    )


@pytest.mark.parametrize("seed", range(2))
def test_rules_and_neighbours_together_have_the_optimum_of_a_general_optimiser(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), 4)
    given = constraints(
        4, 3,
        rules=[(rng.random(4), [1, 0, 0], 1.3, None), ([1, 1, 0, 1], [0, 1, 1], None, 0.8)],
        edges=[(0, 1, 0.7), (1, 2, 0.3), (3, 0, 1.5)],
    )  # fmt: skip
    found, wanted = regularised_labels(np.log(p), given), brute(p, given)
    assert found.objective == pytest.approx(wanted.fun, abs=1e-5)
    assert found.probabilities == pytest.approx(wanted.x[:12].reshape(4, 3), abs=2e-3)
    assert 0 <= found.gap < 1e-5
    assert found.weights[0] == 1.3
    assert found.weights[1] >= 0
    assert found.reached[1] > 0.8 - 1e-5
    assert found.weights[1] * (found.reached[1] - 0.8) == pytest.approx(0.0, abs=1e-4)


def test_a_weight_multiplies_odds_and_its_limits_are_the_posterior_and_certainty():
    p = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
    for weight in (0.0, 0.8, 200.0):
        given = constraints(2, 3, rules=[([1.0, 0.5], [0, 1, 1], weight, None)])
        q = p * np.exp(weight * np.outer([1.0, 0.5], [0, 1, 1]))
        found = regularised_labels(np.log(p), given)
        assert found.probabilities == pytest.approx(q / q.sum(axis=1, keepdims=True))
        assert found.objective == pytest.approx(-np.log(q.sum(axis=1)).sum())  # minus log Z
    assert found.probabilities[:, 0] == pytest.approx(0.0, abs=1e-9)


def test_neighbours_part_only_as_far_as_their_strength_lets_them():
    p = np.array([[0.9, 0.1], [0.2, 0.8]])
    near = regularised_labels(np.log(p), constraints(2, 2, edges=[(0, 1, 50.0)])).probabilities
    together = np.sqrt(p[0] * p[1])  # one distribution for both: the geometric mean
    assert near[0] == pytest.approx(together / together.sum(), abs=1e-5)
    assert near[1] == pytest.approx(near[0], abs=1e-5)
    # below that each moves by the whole pull s / 2 of each label
    far = regularised_labels(np.log(p), constraints(2, 2, edges=[(0, 1, 0.4)])).probabilities
    tilt = np.exp(0.2 * np.array([[-1, 1], [1, -1]]))
    assert far == pytest.approx(p * tilt / (p * tilt).sum(axis=1, keepdims=True), abs=1e-7)


def test_certain_rows_stay_certain_and_pull_their_neighbours():
    with np.errstate(divide="ignore"):
        log_p = np.log(np.array([[1.0, 0.0], [0.5, 0.5]]))
    found = regularised_labels(log_p, constraints(2, 2, edges=[(0, 1, 1.0)]))
    assert found.probabilities[0].tolist() == [1.0, 0.0]
    assert found.probabilities[1, 0] == pytest.approx(1 / (1 + np.exp(-1.0)), abs=1e-6)


def test_a_confidence_that_is_reached_already_has_no_weight_and_one_above_is_met_exactly():
    p = np.array([[0.7, 0.3], [0.6, 0.4], [0.5, 0.5]])
    for wanted in (0.4, 0.8):  # the posteriors have 0.65
        found = regularised_labels(np.log(p), constraints(3, 2, rules=[([1, 1, 0], [1, 0], None, wanted)]))
        assert found.reached[0] == pytest.approx(max(wanted, 0.65), abs=1e-6)
        assert (found.weights[0] == 0.0) == (wanted < 0.65)
        assert found.probabilities[2] == pytest.approx([0.5, 0.5])


def test_rules_that_contradict_each_other_are_refused():
    given = constraints(1, 2, rules=[([1.0], [1, 0], None, 0.9), ([1.0], [0, 1], None, 0.9)])
    with pytest.raises(InvalidArgument, match="contradict"):
        regularised_labels(np.log([[0.5, 0.5]]), given)
    for wrong in ({}, {"weight": 1.0, "confidence": 0.5}, {"confidence": 1.5}, {"weight": -1.0}):
        with pytest.raises(InvalidArgument):
            LabelRule(len, "x", **wrong)
