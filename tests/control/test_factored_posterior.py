import numpy as np
import pytest

import markovia as mk
from markovia.errors import UnknownVariable, UnsupportedModel

RNG = np.random.default_rng(0)
WEATHER = np.array([[0.9, 0.1], [0.3, 0.7]])
STOCK = np.array(
    [
        [[[0.8, 0.2], [0.1, 0.9]], [[0.9, 0.1], [0.6, 0.4]]],
        [[[0.1, 0.9], [0.05, 0.95]], [[0.7, 0.3], [0.2, 0.8]]],
    ]
)
"""The next stock, given that before, the weather before and what was done."""
WORTH = np.array([[[0.0, -0.3], [1.0, 0.7]], [[0.0, -0.3], [2.0, 1.7]]])


def process(weather=WEATHER, stock=STOCK):
    found = mk.DynamicBayesianNetwork()
    found.add("weather", weather, states=["dry", "wet"], parents=["weather@-1"], initial=[0.5, 0.5])
    found.add("stock", stock, states=2, parents=["stock@-1", "weather@-1", "order@-1"], initial=[1.0, 0.0])
    found.add("order", mk.Decision(2), parents=["weather", "stock"])
    found.add("profit", mk.Utility(WORTH), parents=["weather", "stock", "order"])
    return found


def simulated(choose, steps, rng):
    w, s, rows = 0, 0, []
    for _ in range(steps):
        order = choose(w, s)
        rows.append((("dry", "wet")[w], s, order))
        s, w = rng.choice(2, p=STOCK[s, w, order]), rng.choice(2, p=WEATHER[w])
    return dict(zip(("weather", "stock", "order"), map(list, zip(*rows, strict=True)), strict=True))


def flat():
    return process(np.full((2, 2), 0.5), np.full((2, 2, 2, 2), 0.5))


def test_counts_are_those_of_steps_with_the_one_before_and_episodes_do_not_touch():
    posterior = mk.control.FactoredPosterior(flat(), prior=0.5)
    rows = {
        "run": [0, 0, 0, 1, 1], "weather": ["dry", "wet", "wet", "dry", "dry"],
        "stock": [0, 1, 1, 0, 1], "order": [1, 0, 0, 1, 1],
    }  # fmt: skip
    posterior.add(rows, by="run")
    assert posterior.counts["weather"].tolist() == [[1, 1], [0, 1]]
    assert posterior.counts["stock"].sum() == 3
    assert posterior.counts["stock"][0, 0, 1].tolist() == [0, 2]
    assert posterior.counts["stock"][1, 1, 0].tolist() == [0, 1]
    assert posterior.mean().transition["weather"].values.tolist() == [[0.5, 0.5], [0.25, 0.75]]


def test_draws_have_dirichlet_rows():
    posterior = mk.control.FactoredPosterior(flat(), prior=1.0)
    posterior.counts["weather"][:] = [[5, 2], [0, 3]]
    rng = np.random.default_rng(1)
    draws = np.array([posterior.draw(rng).transition["weather"].values for _ in range(400)])
    mean = np.array([[6, 3], [1, 4]]) / [[9], [5]]
    spread = np.sqrt(mean * (1 - mean) / [[10], [6]])
    assert np.allclose(draws.mean(axis=0), mean, atol=4 * spread.max() / 20)
    assert np.allclose(draws.std(axis=0), spread, rtol=0.2)


def test_plans_for_drawn_networks_settle_on_the_best_plan():
    rng, posterior = np.random.default_rng(2), mk.control.FactoredPosterior(flat())
    for _ in range(12):
        plan = posterior.thompson(discount=0.9, seed=rng)
        posterior.add(simulated(lambda w, s, plan=plan: plan.act((("dry", "wet")[w], s)), 100, rng))
    found, best = posterior.mean().decide(discount=0.9), process().decide(discount=0.9)
    assert np.array_equal(found.policy, best.policy)
    assert np.allclose(found.v, best.v, rtol=0.1)


def test_sequences_without_a_variable_and_processes_of_numbers_are_refused():
    with pytest.raises(UnknownVariable, match="'order'"):
        mk.control.FactoredPosterior(flat()).add({"weather": ["dry", "wet"], "stock": [0, 0]})
    plain = mk.DynamicBayesianNetwork()
    plain.add("s", WEATHER, states=2, parents=["s@-1"], initial=[1, 0])
    with pytest.raises(UnsupportedModel, match="no decision"):
        mk.control.FactoredPosterior(plain)
