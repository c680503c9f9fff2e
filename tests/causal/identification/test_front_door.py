"""Front-door sets against the definition, every subset, and the formula evaluated on random models."""

import numpy as np
import pytest

from adjustment_checks import RandomModel, random_problem, subsets
from markovia.causal import front_door_sets, is_front_door_set
from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs import DAG, MixedGraph, d_separated


def meets_definition(dag, x, y, z):
    """Check Pearl's three conditions one by one in a DAG whose hidden nodes are drawn."""

    def without_edges_from(names):
        return DAG([e for e in dag.edges if e[0] not in names], nodes=dag.nodes)

    rest = [n for n in dag.nodes if n not in z]
    intercepts = y not in dag.subgraph(rest).descendants(x)
    return (
        intercepts
        and (not z or d_separated(without_edges_from([x]), x, z))
        and all(d_separated(without_edges_from(z), m, y, [x]) for m in z)
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_listed_sets_are_those_that_meet_the_definition(seed):
    rng = np.random.default_rng(seed)
    dag, hidden, x, y = random_problem(rng, 7, latents=2, edges=int(rng.integers(7, 11)))
    rest = [n for n in dag.nodes if n not in {*hidden, x, y}]
    right = {frozenset(z) for z in subsets(rest) if meets_definition(dag, x, y, z)}
    every = [frozenset(z) for z in front_door_sets(dag, x, y, kind="all", latent=hidden)]
    assert len(set(every)) == len(every)
    assert set(every) == right
    assert {frozenset(z) for z in subsets(rest) if is_front_door_set(dag, x, y, z, latent=hidden)} == right
    minimal = [frozenset(z) for z in front_door_sets(dag, x, y, latent=hidden)]
    assert len(set(minimal)) == len(minimal)
    assert set(minimal) == {s for s in right if not any(other < s for other in right)}
    must, never = rest[:1], rest[1:2]
    chosen = front_door_sets(dag, x, y, kind="all", latent=hidden, required=must, forbidden=never)
    assert set(map(frozenset, chosen)) == {s for s in right if s.issuperset(must) and s.isdisjoint(never)}


@pytest.mark.parametrize("seed", range(25))
def test_the_front_door_formula_gives_the_effect_in_random_models(seed):
    rng = np.random.default_rng(seed)
    edges = [("u", "x"), ("u", "y"), ("x", "a"), ("a", "b"), ("b", "y"), ("a", "y"), ("x", "b"), ("b", "c")]
    kept = [e for e in edges if e[0] == "u" or rng.random() < 0.8]
    dag = DAG(kept, nodes=["u", "x", "a", "b", "c", "y"])
    model = RandomModel(dag, rng)
    truth = model.effect(["x"], ["y"])
    for z in front_door_sets(dag, "x", "y", kind="all", latent="u"):
        np.testing.assert_allclose(model.through_front_door(["x"], ["y"], z), truth, atol=1e-12)


def test_the_smallest_sets_come_first_and_a_long_chain_of_mediators_has_one_set_each():
    chain = "x -> a -> b -> c -> y; x <-> y"
    assert front_door_sets(chain, "x", "y") == [("a",), ("b",), ("c",)]
    assert front_door_sets(chain, "x", "y", limit=1)[0] in {("a",), ("b",), ("c",)}
    assert front_door_sets(chain, "x", "y", required="b") == [("b",)]


def test_no_effect_is_intercepted_by_the_empty_set():
    assert front_door_sets("x <-> y", "x", "y") == [()]


def test_a_confounded_mediator_leaves_no_front_door():
    assert front_door_sets("x -> z -> y; x <-> y; z <-> y", "x", "y") == []
    assert front_door_sets("x -> z -> y; x <-> y; x -> y", "x", "y") == []


def test_a_mediator_confounded_by_what_is_itself_no_mediator_leaves_no_front_door():
    # w would shield v if it could be among the mediators, which its own hidden cause forbids
    assert front_door_sets("x -> v -> y; x <-> y; w -> v; w -> y; w <-> y", "x", "y") == []
    assert front_door_sets("x -> v -> y; x <-> y; w -> v; w -> y", "x", "y") == [("v", "w")]


def test_a_class_of_graphs_and_strange_wishes_are_refused():
    with pytest.raises(InvalidGraph, match="stands for many"):
        front_door_sets(MixedGraph(["x --- y"]), "x", "y")
    with pytest.raises(InvalidArgument, match="kind is 'minimal' or 'all'"):
        front_door_sets("x -> y", "x", "y", kind="optimal")
    with pytest.raises(InvalidArgument, match="'y' is a mediator and also treatment or outcome"):
        is_front_door_set("x -> y", "x", "y", "y")
