"""Posterior regularisation against brute force: optimality conditions, nearest distribution, slack, evidence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import markovia as mk
from markovia.factors.potentials.log_linear import Feature


def model_and_features(seed):
    rng = np.random.default_rng(seed)
    cards = {"a": 2, "b": 3, "c": 2}
    mn = mk.MarkovNetwork(
        cards,
        [mk.Factor(["a", "b"], rng.random((2, 3)) + 0.1), mk.Factor(["b", "c"], rng.random((3, 2)) + 0.1)],
    )
    v = {n: mn.variable(n) for n in cards}
    features = [
        Feature(v["a"], [0.0, 1.0], "a up"),
        Feature([v["a"], v["c"]], rng.normal(size=(2, 2)), "a with c"),
    ]
    return mn, features, rng


def values_of(features, names, shape):
    """Return each feature as a table over all variables."""
    found = []
    for f in features:
        total = np.zeros(shape)
        for scope, table in f.instances:
            for at in np.ndindex(*shape):
                total[at] += table[tuple(at[names.index(v.name)] for v in scope)]
        found.append(total)
    return np.array(found)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_the_optimality_conditions_hold_and_the_tilted_model_is_p_times_exp(seed):
    mn, features, rng = model_and_features(seed)
    names = ["a", "b", "c"]
    p = mn.query(names).values
    f = values_of(features, names, p.shape)
    before = (f * p).sum(axis=(1, 2, 3))
    bounds = before + rng.normal(0, 0.1, size=2)
    bounds[0] = np.clip(bounds[0], 0.05, 0.95)
    bounds[1] = np.clip(bounds[1], f[1].min() + 0.05, None)
    try:
        tilted, found = mk.posterior_regularisation(mn, features, bounds)
    except mk.errors.InvalidArgument:
        return  # the two bounds together are out of reach
    q = p * np.exp(-np.tensordot(found.multipliers, f, 1))
    q /= q.sum()
    np.testing.assert_allclose(tilted.query(names).values, q, atol=1e-9)
    np.testing.assert_allclose(found.before, before, atol=1e-12)
    np.testing.assert_allclose(found.expectations, (f * q).sum(axis=(1, 2, 3)), atol=1e-9)
    assert np.all(found.multipliers >= 0)
    assert np.all(found.slackness > -1e-6)
    np.testing.assert_allclose(found.multipliers * found.slackness, 0.0, atol=1e-5)
    assert found.kl == pytest.approx(float((q * np.log(q / p)).sum()), abs=1e-9)


def test_no_other_distribution_that_satisfies_the_constraints_is_nearer():
    mn, features, _ = model_and_features(1)
    names = ["a", "b", "c"]
    p = mn.query(names).values
    f = values_of(features, names, p.shape).reshape(2, -1)
    bounds = f @ p.ravel() - np.array([0.15, 0.1])
    _, found = mk.posterior_regularisation(mn, features, bounds)

    def divergence(q):
        return float(np.sum(q * np.log(np.maximum(q, 1e-300) / p.ravel())))

    brute = minimize(
        divergence,
        p.ravel(),
        bounds=[(1e-9, 1)] * p.size,
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1},
            {"type": "ineq", "fun": lambda q: bounds - f @ q},
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.kl == pytest.approx(brute.fun, abs=1e-6)


def test_constraints_that_hold_already_change_nothing():
    mn, features, _ = model_and_features(2)
    tilted, found = mk.posterior_regularisation(mn, features, [1.0, 10.0])
    assert found.multipliers.tolist() == [0.0, 0.0]
    assert found.kl == 0.0
    np.testing.assert_allclose(tilted.query("a").values, mn.query("a").values)


def test_equalities_have_multipliers_of_either_sign():
    mn, features, _ = model_and_features(3)
    for wanted in (0.2, 0.8):
        tilted, found = mk.posterior_regularisation(mn, features[:1], wanted, equal=True)
        assert tilted.query("a")[1] == pytest.approx(wanted, abs=1e-8)
        assert (found.multipliers[0] > 0) == (wanted < found.before[0])


def test_slack_lets_constraints_be_missed_by_its_length():
    mn, features, _ = model_and_features(4)
    other = mn.copy()
    other.add_factor(mk.Factor(["a", "c"], [[2.0, 1.0], [0.5, 3.0]]))
    bounds = (values_of(features, list("abc"), (2, 3, 2)) * other.query(list("abc")).values).sum(
        axis=(1, 2, 3)
    )
    _, strict = mk.posterior_regularisation(mn, features, bounds, equal=True)
    _, loose = mk.posterior_regularisation(mn, features, bounds, equal=True, slack=0.05)
    assert np.linalg.norm(loose.slackness) == pytest.approx(0.05, abs=1e-6)
    assert loose.kl < strict.kl
    # the miss points along the multipliers
    along = loose.multipliers / np.linalg.norm(loose.multipliers)
    np.testing.assert_allclose(-loose.slackness, 0.05 * along, atol=1e-6)
    _, free = mk.posterior_regularisation(mn, features, bounds, equal=True, slack=5.0)
    assert free.kl == 0.0


def test_evidence_comes_first_and_directed_models_work():
    asia = mk.examples.asia()
    lung = Feature(asia.variable("lung"), lambda s: float(s == "yes"), "lung cancer")
    tilted, found = mk.posterior_regularisation(asia, [lung], 0.3, given={"xray": "yes"})
    assert found.before[0] == pytest.approx(asia.query("lung", given={"xray": "yes"})["yes"], abs=1e-9)
    assert tilted.query("lung")["yes"] == pytest.approx(0.3, abs=1e-8)
    assert "xray" not in tilted.variables
    # what depends on lung only through it keeps its conditional distribution
    kept = tilted.query("smoke", given={"lung": "yes"})["yes"]
    assert kept == pytest.approx(asia.query("smoke", given={"lung": "yes", "xray": "yes"})["yes"], abs=1e-9)


def test_constraints_out_of_reach_are_refused():
    mn, features, _ = model_and_features(5)
    with pytest.raises(mk.errors.InvalidArgument, match="no distribution gives"):
        mk.posterior_regularisation(mn, features[:1], -0.5)
    up = Feature(mn.variable("a"), [0.0, 1.0])
    with pytest.raises(mk.errors.InvalidArgument, match="contradict"):
        mk.posterior_regularisation(mn, [up, up], [0.2, 0.6], equal=True)
    with pytest.raises(mk.errors.InvalidArgument, match="bounds="):
        mk.posterior_regularisation(mn, features, [0.5])


def test_weights_tilt_the_model_and_the_objective_is_minus_log_z():
    mn, features, _ = model_and_features(6)
    names = ["a", "b", "c"]
    p = mn.query(names).values
    f = values_of(features, names, p.shape)
    for weights in ([0.0, 0.0], [1.2, -0.7]):
        tilted, found = mk.posterior_regularisation(mn, features, weights=weights)
        q = p * np.exp(np.tensordot(weights, f, 1))
        assert found.objective == pytest.approx(-np.log(q.sum()), abs=1e-9)
        q /= q.sum()
        np.testing.assert_allclose(tilted.query(names).values, q, atol=1e-9)
        assert found.kl == pytest.approx(float((q * np.log(q / p)).sum()), abs=1e-9)
        np.testing.assert_allclose(found.expectations, (f * q).sum(axis=(1, 2, 3)), atol=1e-9)
        # the same multipliers as the projection onto the expectations that were reached
        _, back = mk.posterior_regularisation(mn, features, found.expectations, equal=True)
        np.testing.assert_allclose(back.multipliers, found.multipliers, atol=1e-4)


def test_a_rule_of_great_weight_is_kept_in_every_state():
    mn, _, _ = model_and_features(7)
    rule = Feature([mn.variable("a"), mn.variable("c")], lambda a, c: float(a == 0 or c == 1), "a means c")
    tilted, _ = mk.posterior_regularisation(mn, [rule], weights=60.0)
    assert tilted.query(["a", "c"])[1, 0] == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(mk.errors.InvalidArgument, match="one of both"):
        mk.posterior_regularisation(mn, [rule])
    with pytest.raises(mk.errors.InvalidArgument, match="weights only pull"):
        mk.posterior_regularisation(mn, [rule], weights=1.0, equal=True)
