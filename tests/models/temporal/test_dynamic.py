import numpy as np
import pytest

import markovia as mk


def umbrella():
    first = mk.BayesianNetwork()
    first.add("rain", states=["no", "yes"], p=[0.5, 0.5])
    first.add("umbrella", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
    later = mk.BayesianNetwork()
    later.add("rain@-1", states=["no", "yes"])
    later.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]])
    later.add("umbrella", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
    return mk.DynamicBayesianNetwork(first, later)


def test_unrolling_gives_the_explicit_graph():
    network = umbrella().unroll(4)
    expected = [(f"rain@{t}", f"rain@{t + 1}") for t in range(3)] + [
        (f"rain@{t}", f"umbrella@{t}") for t in range(4)
    ]
    assert set(network.edges) == set(expected)


def test_filtering_agrees_with_the_forward_recursion():
    network = umbrella().unroll(6)
    transition, emission = np.array([[0.7, 0.3], [0.3, 0.7]]), np.array([[0.8, 0.2], [0.1, 0.9]])
    seen = [1, 1, 0, 1, 1]
    belief = np.array([0.5, 0.5])
    for t, u in enumerate(seen):
        if t:
            belief = belief @ transition
        belief = belief * emission[:, u]
        belief /= belief.sum()
    given = {f"umbrella@{t}": ["no", "yes"][u] for t, u in enumerate(seen)}
    np.testing.assert_allclose(network.query("rain@4", given=given).values, belief, atol=1e-12)
    np.testing.assert_allclose(network.query("rain@5", given=given).values, belief @ transition, atol=1e-12)


def test_draws_from_the_unrolled_network_follow_the_chain():
    rows = umbrella().unroll(3).sample(40_000, seed=0)
    stay = (rows["rain@1"] == rows["rain@2"]).mean()
    assert abs(stay - 0.7) < 4.5 * np.sqrt(0.21 / 40_000)


def test_mismatched_networks_are_refused():
    process = umbrella()
    other = process.transition.copy()
    other.rename("umbrella", "coat")
    with pytest.raises(mk.errors.InvalidGraph, match="same variables"):
        mk.DynamicBayesianNetwork(process.initial, other)
    with pytest.raises(mk.errors.InvalidArgument, match="at least one step"):
        process.unroll(0)
    states = process.transition.copy()
    states.rename_states("rain@-1", ["dry", "wet"])
    with pytest.raises(mk.errors.InvalidTable, match="step 0"):
        mk.DynamicBayesianNetwork(process.initial, states)
