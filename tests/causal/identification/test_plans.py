"""Plans over time: the g-formula against networks whose treatments follow the plan."""

import numpy as np
import pytest

import markovia as mk
from markovia.causal.identification.plans import identify_plan
from markovia.errors import InvalidArgument, NotIdentifiable
from markovia.factors.tables.conditional import ConditionalTable

GRAPH = "u -> l1; u -> y; a0 -> l1; l1 -> a1; a0 -> a1; a0 -> y; a1 -> y"


def world(seed):
    """Two treatments; a hidden u is a cause of what is seen between them and of the outcome."""
    rng = np.random.default_rng(seed)
    bn = mk.BayesianNetwork()
    for name, above in {
        "u": [],
        "a0": [],
        "l1": ["u", "a0"],
        "a1": ["l1", "a0"],
        "y": ["u", "a0", "a1"],
    }.items():
        bn.add(name, rng.dirichlet([2.0, 2.0], size=[2] * len(above)), states=[0, 1], parents=above)
    return bn


def following(bn, first, second):
    """The network in which the treatments follow a plan."""
    found = bn.copy()
    found.replace("a0", [1.0 - first, float(first)])
    rows = [[[1.0 - second(l1, a0), float(second(l1, a0))] for a0 in (0, 1)] for l1 in (0, 1)]
    found.replace("a1", rows)
    return found.query("y")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("second", [lambda l1, a0: l1, lambda l1, a0: 1 - (l1 & a0), lambda l1, a0: a0])
def test_a_plan_has_the_outcome_of_the_network_that_follows_it(seed, second):
    bn = world(seed)
    plan = identify_plan(GRAPH, {"a1": ["l1", "a0"], "a0": []}, "y", latent="u")
    assert list(plan.sees) == ["a0", "a1"]
    for first in (0, 1):
        found = plan.evaluate(bn, a0=first, a1=second)
        np.testing.assert_allclose(found.values, following(bn, first, second).values, atol=1e-12)


def test_a_plan_may_be_tables_with_chances():
    bn, rng = world(1), np.random.default_rng(5)
    plan = identify_plan(GRAPH, {"a1": ["l1", "a0"], "a0": []}, "y", latent="u")
    first, second = rng.dirichlet([1.0, 1.0]), rng.dirichlet([1.0, 1.0], size=(2, 2))
    a0, l1, a1 = (bn.variable(n) for n in ("a0", "l1", "a1"))
    tables = {"a0": ConditionalTable(a0, [], first), "a1": ConditionalTable(a1, [a0, l1], second)}
    bn_that_follows = bn.copy()
    bn_that_follows.replace("a0", first)
    bn_that_follows.replace("a1", second, parents=["a0", "l1"])
    np.testing.assert_allclose(
        plan.evaluate(bn, tables).values, bn_that_follows.query("y").values, atol=1e-12
    )
    mixed = plan.evaluate(bn, a0=tables["a0"], a1=lambda l1: l1).values
    parts = [plan.evaluate(bn, a0=a, a1=lambda l1: l1).values for a in (0, 1)]
    np.testing.assert_allclose(mixed, first @ parts, atol=1e-12)
    blind = identify_plan(GRAPH, {"a1": ["l1"], "a0": []}, "y", latent="u")
    with pytest.raises(InvalidArgument, match="asks for 'a0', but it sees l1"):
        blind.evaluate(bn, tables)


def test_what_confounds_the_second_treatment_unseen_leaves_plans_open():
    with pytest.raises(NotIdentifiable):
        identify_plan(GRAPH + "; u -> a1", {"a0": [], "a1": ["l1"]}, "y", latent="u")


def test_bad_plans_are_refused_in_a_sentence():
    with pytest.raises(InvalidArgument, match="cannot look at 'l1', which comes after it"):
        identify_plan(GRAPH, {"a0": ["l1"]}, "y", latent="u")
    with pytest.raises(InvalidArgument, match="no observed variable 'u'"):
        identify_plan(GRAPH, {"a0": ["u"]}, "y", latent="u")
    with pytest.raises(InvalidArgument, match="cannot look at the outcome 'y'"):
        identify_plan("y -> a", {"a": ["y"]}, "y")
    plan = identify_plan(GRAPH, {"a0": [], "a1": ["l1"]}, "y", latent="u")
    with pytest.raises(InvalidArgument, match="asks for 'a0', but it sees l1"):
        plan.evaluate(world(0), a0=1, a1=lambda a0: a0)
    with pytest.raises(InvalidArgument, match="for each of a0, a1"):
        plan.evaluate(world(0), a0=1)
