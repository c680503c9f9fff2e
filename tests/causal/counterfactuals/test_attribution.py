"""Attributions against closed forms, brute force over noises, and the axioms of Shapley values."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import norm

import markovia as mk
import markovia.distributions as dist
from markovia.causal import shapley
from markovia.errors import InvalidArgument, UnsupportedModel


def chain():
    m = mk.StructuralModel()
    m.add("x", dist.Normal(0, 1))
    m.add("z", lambda x, e: 2 * x + e, noise=dist.Normal(0, 1))
    m.add("y", lambda x, z, e: x - z + 3 * e, noise=dist.Normal(0, 1))
    return m


def test_shapley_values_are_averages_over_all_orders():
    rng = np.random.default_rng(0)
    worth = {}

    def value(members):
        return worth.setdefault(members, rng.normal())

    players = list("abcd")
    values, errors = shapley(value, players)
    every = list(permutations(players))
    for player in players:
        gains = []
        for order in every:
            before = frozenset(order[: order.index(player)])
            gains.append(value(before | {player}) - value(before))
        assert values[player] == pytest.approx(np.mean(gains))
    assert sum(values.values()) == pytest.approx(value(frozenset(players)) - value(frozenset()))
    assert set(errors.values()) == {0.0}


def test_many_players_are_taken_in_random_orders_with_errors_that_cover():
    players = [f"p{i}" for i in range(14)]
    weights = np.arange(14.0)

    def value(members):
        total = sum(weights[int(p[1:])] for p in members)
        return total + 5.0 * (len(members) >= 7)

    values, errors = shapley(value, players, seed=0)
    for i, p in enumerate(players):
        assert abs(values[p] - (weights[i] + 5 / 14)) < 4 * errors[p]


def test_intrinsic_influence_of_linear_noises_is_their_share_of_the_variance():
    found = mk.causal.intrinsic_influence(chain(), "y")
    assert found.values == pytest.approx({"x": 1.0, "z": 1.0, "y": 9.0})
    assert found.total == pytest.approx(chain().query("y").var())


def test_intrinsic_influence_by_draws_agrees_with_the_closed_form_of_a_product():
    """y = x z with standard normals: neither alone removes any variance, and both share it."""
    m = mk.StructuralModel()
    m.add("x", dist.Normal(0, 1))
    m.add("z", dist.Normal(0, 1))
    m.add("y", lambda x, z: x * z + x)
    found = mk.causal.intrinsic_influence(m, "y", draws=100_000)
    for name, expected in (("x", 1.5), ("z", 0.5)):
        assert abs(found[name] - expected) < 4 * found.errors[name]
        assert 0 < found.errors[name] < 0.1


def test_intrinsic_influence_on_states_shares_their_entropy():
    m = mk.StructuralModel()
    m.add("a", p=[0.5, 0.5])
    m.add("b", lambda e: e, noise=[0.5, 0.5], states=2)
    m.add("c", lambda a, b: a ^ b, states=2)
    found = mk.causal.intrinsic_influence(m, "c")
    assert found.values == pytest.approx({"a": np.log(2) / 2, "b": np.log(2) / 2})


def test_arrow_strength_of_a_linear_model_is_its_closed_form():
    found = mk.causal.arrow_strength(chain(), "y")
    assert found["x", "y"] == pytest.approx(0.5 * np.log(1 + 1 / 9))
    assert found["z", "y"] == pytest.approx(0.5 * np.log(1 + 5 / 9))


def test_arrow_strength_of_tables_is_the_divergence_of_the_cut_network():
    bn = mk.BayesianNetwork("a->b; a->c; b->c", states={"b": 3}, tables="random", seed=1)
    found = mk.causal.arrow_strength(bn, "c")
    joint = bn.query(["a", "b", "c"]).values
    b = bn.query("b").values
    table = bn["c"].values
    cut = np.einsum("abc,b->ac", table, b)
    q = joint.sum(2)[:, :, None] * cut[:, None, :]
    assert found["b", "c"] == pytest.approx(float((joint * np.log(joint / q)).sum()))
    m = mk.StructuralModel()
    m.add("a", p=[0.5, 0.5])
    m.add("d", lambda a, e: a ^ e, noise=[0.8, 0.2], states=2)
    h = -(0.8 * np.log(0.8) + 0.2 * np.log(0.2))
    assert mk.causal.arrow_strength(m, "d")["a", "d"] == pytest.approx(np.log(2) - h)


def test_causal_shapley_values_count_effects_through_other_variables():
    m = chain()
    found = mk.causal.causal_shapley(m, {"x": 1.0, "z": 5.0}, "y")
    # do(x) = -1, do(z) = -5, do(both) = -4, nothing 0
    assert found.values == pytest.approx({"x": (-1 + 1) / 2, "z": (-5 - 3) / 2})
    bn = mk.causal.examples.simpson()
    one = mk.causal.causal_shapley(bn, {"treatment": "A"}, "recovered")
    assert one["treatment"] == pytest.approx(
        bn.do(treatment="A").query("recovered")["yes"] - bn.query("recovered")["yes"]
    )


def test_a_change_is_charged_to_the_mechanism_that_changed():
    def model(slope, mean, law=dist.Normal):
        m = mk.StructuralModel()
        m.add("x", law(mean, 1))
        m.add("y", lambda x, e: slope * x + e, noise=law(0, 1))
        return m

    found = mk.causal.attribute_change(model(2.0, 1.0), model(3.0, 2.0), "y")
    # v(x) = 4, v(y) = 3, v(both) = 6, v(none) = 2
    assert found.values == pytest.approx({"x": 2.5, "y": 1.5})
    spread = mk.causal.attribute_change(model(2.0, 1.0), model(3.0, 1.0), "y", measure="variance")
    assert spread.values == pytest.approx({"x": 0.0, "y": 5.0})
    drawn = mk.causal.attribute_change(model(2.0, 1.0, dist.Laplace), model(3.0, 2.0, dist.Laplace), "y")
    for name, expected in (("x", 2.5), ("y", 1.5)):
        assert abs(drawn[name] - expected) < 4 * drawn.errors[name] + 1e-9


def test_an_anomaly_is_charged_to_the_noise_that_made_it():
    m = mk.StructuralModel()
    m.add("x", dist.Laplace(0, 1))
    m.add("z", lambda x, e: x + e, noise=dist.Normal(0, 1))
    m.add("y", lambda z, e: z + e, noise=dist.Normal(0, 1))
    found = mk.causal.attribute_anomaly(m, {"x": 0.1, "z": 6.1, "y": 6.0}, "y")
    assert found["z"] > 3 * max(abs(found["x"]), abs(found["y"]))
    draws = m.sample(200_000, seed=1)["y"]
    score = -np.log((np.abs(draws - draws.mean()) >= 6.0).mean())
    assert found.total == pytest.approx(score, abs=4 * 0.2)


def test_wrong_attributions_get_one_sentence():
    m = chain()
    with pytest.raises(InvalidArgument, match="needs a value of 'z'"):
        mk.causal.attribute_anomaly(m, {"x": 1.0, "y": 1.0}, "y")
    with pytest.raises(InvalidArgument, match="one kind"):
        mk.causal.attribute_change(m, m.network(), "y")
    m.add("w", lambda y, e: np.tanh(y + e), noise=dist.Normal(0, 1))
    with pytest.raises(UnsupportedModel):
        mk.causal.arrow_strength(m, "w")


def test_errors_of_shares_are_those_of_a_mean_over_batches():
    """Batches of an additive game: a share varies as the player's own gain, and its mean by the root of their number."""
    batches = np.random.default_rng(6).normal(size=(2, 25)) * [[3.0], [0.5]]
    values, errors = shapley(lambda s: sum((batches["ba".index(p)] for p in s), np.zeros(25)), ["a", "b"])
    assert values == pytest.approx({"a": batches[1].mean(), "b": batches[0].mean()})
    assert errors == pytest.approx({p: batches[k].std(ddof=1) / 5 for k, p in ((1, "a"), (0, "b"))})


def test_the_shares_of_an_anomaly_sum_to_its_outlier_score():
    """The score is minus the log of a normal tail: of 3.5 standard deviations in one of unequal noises."""
    m = mk.StructuralModel()
    m.add("x", dist.Normal(1.0, 2.0))
    m.add("y", lambda x, e: 3 * x + e, noise=dist.Normal(0, 0.5))
    sd = np.sqrt(36.25)
    found = mk.causal.attribute_anomaly(
        m, {"x": 1.0 + 2.5 * 2, "y": 3.0 + 2.5 * sd}, "y", draws=40_000, seed=1
    )
    assert found.total == pytest.approx(-np.log(2 * norm.sf(2.5)), abs=0.1)
