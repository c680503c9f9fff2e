"""Observed treatments as decisions: the decisions see what is listed, and plans that are not identified are refused."""

from itertools import product

import numpy as np
import pytest

import markovia as mk
from markovia.causal.identification.plans import identify_plan
from markovia.errors import InvalidArgument, NotIdentifiable, UnknownVariable
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import Utility
from markovia.models.graphical.decisions.freeing import freed

GRAPH = {"u": [], "a0": [], "l1": ["u", "a0"], "a1": ["l1", "a0"], "y": ["u", "a0", "a1"]}


def world(graph, seed=0):
    rng = np.random.default_rng(seed)
    bn = mk.BayesianNetwork()
    for name, above in graph.items():
        bn.add(name, rng.dirichlet([2.0, 2.0], size=[2] * len(above)), states=[0, 1], parents=above)
    bn.add("gain", Utility([0, 1]), parents=["y"])
    return bn


def test_treatments_become_decisions_that_see_what_is_listed():
    bn = world(GRAPH)
    found = freed(bn, {"a1": ["l1", "a0"], "a0": []}, latent="u")
    assert isinstance(found["a0"], DecisionNode)
    assert found["a1"].parent_names == ("l1", "a0")
    assert bn["a1"].kind == "table"
    assert found["y"].allclose(bn["y"])


@pytest.mark.parametrize("seed", range(3))
def test_the_freed_network_is_worth_what_the_formula_says_without_what_is_hidden(seed):
    bn = world(GRAPH, seed)
    plan = identify_plan(GRAPH_TEXT, {"a0": [], "a1": ["l1"]}, "y", latent="u")
    found = freed(bn, {"a0": [], "a1": ["l1"]}, latent="u")
    for first, *second in product((0, 1), repeat=3):
        put = found.copy()
        put.replace("a0", np.eye(2)[first])
        put.replace("a1", np.eye(2)[second])
        put.remove("gain")
        formula = plan.evaluate(bn, a0=first, a1=lambda l1, said=second: said[l1])
        assert put.query("y")[1] == pytest.approx(formula[1], abs=1e-12)


GRAPH_TEXT = "; ".join(f"{p} -> {n}" for n, above in GRAPH.items() for p in above)


def test_a_plan_that_is_not_identified_is_refused_with_the_open_path():
    with pytest.raises(NotIdentifiable, match="a1 <- u -> y stays open"):
        freed(world({**GRAPH, "a1": ["l1", "a0", "u"]}), {"a0": [], "a1": ["l1"]}, latent="u")
    freed(world({**GRAPH, "a1": ["l1", "a0", "u"]}), {"a0": [], "a1": ["l1"]})  # u seen and adjusted for
    bow = world({"u": [], "x": ["u"], "m": ["x", "u"], "y": ["m"]})
    with pytest.raises(NotIdentifiable, match="x <- u -> m -> y stays open") as refused:
        freed(bow, {"x": []}, latent="u")
    assert refused.value.hedge is not None


def test_a_front_door_identifies_what_no_adjustment_does():
    bn = world({"u": [], "x": ["u"], "m": ["x"], "y": ["m", "u"]})
    found = freed(bn, {"x": []}, latent="u")
    plan = identify_plan("u -> x -> m -> y; u -> y", {"x": []}, "y", latent="u")
    put = found.copy()
    put.replace("x", [0.0, 1.0])
    put.remove("gain")
    assert put.query("y")[1] == pytest.approx(plan.evaluate(bn, x=1)[1], abs=1e-12)


def test_edges_without_a_direction_at_a_treatment_are_refused_and_others_not():
    bn = mk.BayesianNetwork("x->y; z->y; z->w", tables="random", seed=0)
    bn.equivalence_class = mk.graphs.MixedGraph(["x --> y", "z --> y", "z --- w"])
    freed(bn, {"x": []})
    with pytest.raises(NotIdentifiable, match="z --- w without a direction"):
        freed(bn, {"z": []})


def test_sights_that_come_after_are_refused_with_the_way_to_them():
    with pytest.raises(InvalidArgument, match="'a0' cannot see 'a1', which comes after it: a0 -> a1"):
        freed(world(GRAPH), {"a0": ["a1"]})
    with pytest.raises(InvalidArgument, match="cannot see 'u', which is latent"):
        freed(world(GRAPH), {"a1": ["u"]}, latent="u")


def test_without_a_utility_all_that_is_observed_has_to_be_identified():
    graph = {"u": [], "x": [], "y": ["x"], "s": ["x", "u"], "t": ["s", "u"]}
    bn = world(graph)
    bn.remove("gain")
    freed(bn, {"x": []}, latent="u")
    hidden = world({**graph, "x": ["u"]})
    freed(hidden, {"x": []}, latent="u")  # the utility is of y alone
    hidden.remove("gain")
    with pytest.raises(NotIdentifiable, match="x <- u -> s"):
        freed(hidden, {"x": []}, latent="u")
    freed(hidden, {"x": []}, latent="u", outcome="y")


def test_bad_names_are_refused_in_a_sentence():
    bn = world(GRAPH)
    with pytest.raises(UnknownVariable, match="a9"):
        freed(bn, {"a9": []})
    with pytest.raises(InvalidArgument, match="names none"):
        freed(bn, {})
    with pytest.raises(InvalidArgument, match="latent: nobody saw"):
        freed(bn, {"u": []}, latent="u")
    with pytest.raises(InvalidArgument, match="a utility already"):
        freed(bn, {"gain": []})
    with pytest.raises(InvalidArgument, match="a decision already"):
        freed(freed(bn, {"a0": []}), {"a0": []})
    with pytest.raises(NotIdentifiable, match="depends on 'y', which is latent"):
        freed(bn, {"a0": []}, latent="y")
