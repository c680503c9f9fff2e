"""Adjustment in CPDAGs, MAGs and PAGs against every member of the class."""

import numpy as np
import pytest

from adjustment_checks import meets_criterion, random_problem, subsets
from markovia.causal import adjustment_sets, front_door_sets, identify, is_adjustment_set, visible_edges
from markovia.errors import InvalidArgument, InvalidGraph, NotIdentifiable
from markovia.graphs import DAG, MixedGraph, cpdag, equivalence_class
from pag_checks import as_graph, learned, markov_class, maximal_ancestral_graph, random_hidden_case, true_pag


def roles(rng, names, treatments=1):
    shuffled = rng.permutation(names).tolist()
    return shuffled[:treatments], shuffled[treatments : treatments + 1]


@pytest.mark.parametrize("seed", range(60))
def test_a_set_is_valid_in_a_cpdag_if_and_only_if_it_is_in_all_its_dags(seed):
    rng = np.random.default_rng(seed)
    dag, *_ = random_problem(rng, 6, edges=int(rng.integers(5, 10)))
    x, y = roles(rng, dag.nodes, 1 + seed % 2)
    graph, members = cpdag(dag), equivalence_class(dag)
    rest = [n for n in dag.nodes if n not in {*x, *y}]
    valid = [{frozenset(z) for z in subsets(rest) if is_adjustment_set(d, x, y, z)} for d in members]
    right = set.intersection(*valid)
    assert {frozenset(z) for z in adjustment_sets(graph, x, y, kind="all", family="cpdag")} == right
    minimal = {s for s in right if not any(other < s for other in right)}
    assert {frozenset(z) for z in adjustment_sets(graph, x, y, family="cpdag")} == minimal
    best = adjustment_sets(graph, x, y, kind="optimal", family="cpdag")
    assert bool(best) == bool(right)
    if best and set(y) <= dag.descendants(x):
        assert all(adjustment_sets(d, x, y, kind="optimal") == best for d in members)


@pytest.mark.parametrize("seed", range(40))
def test_a_set_is_valid_in_a_mag_if_it_meets_the_criterion_with_visible_edges(seed):
    rng = np.random.default_rng(seed)
    dag, hidden, _ = random_hidden_case(seed, observed=(4, 6))
    mag = as_graph(maximal_ancestral_graph(dag, hidden))
    x, y = roles(rng, mag.nodes, 1 + seed % 2)
    rest = [n for n in mag.nodes if n not in {*x, *y}]
    visible = set(visible_edges(mag))
    right = {frozenset(z) for z in subsets(rest) if meets_criterion(mag, x, y, z, visible=visible)}
    found = {frozenset(z) for z in adjustment_sets(mag, x, y, kind="all", family="mag")}
    assert found == right
    assert all(is_adjustment_set(dag, x, y, z, latent=hidden) for z in found)


@pytest.mark.parametrize("seed", range(40))
def test_a_set_is_valid_in_a_pag_if_and_only_if_it_is_in_all_its_mags(seed):
    rng = np.random.default_rng(seed)
    dag, hidden, _ = random_hidden_case(seed, observed=(4, 5), density=(0.2, 0.4))
    marks = maximal_ancestral_graph(dag, hidden)
    pag = true_pag(marks)
    x, y = roles(rng, pag.nodes)
    rest = [n for n in pag.nodes if n not in {*x, *y}]
    valid = []
    for member in map(as_graph, markov_class(marks)):
        visible = set(visible_edges(member))
        valid.append(
            {frozenset(z) for z in subsets(rest) if meets_criterion(member, x, y, z, visible=visible)}
        )
    right = set.intersection(*valid)
    assert {frozenset(z) for z in adjustment_sets(pag, x, y, kind="all", family="pag")} == right
    assert {frozenset(z) for z in subsets(rest) if is_adjustment_set(pag, x, y, z, family="pag")} == right


def test_an_edge_of_a_mag_may_hide_a_confounder_and_one_of_a_dag_may_not():
    graph = MixedGraph(["x --> y"])
    assert adjustment_sets(graph, "x", "y") == [()]
    assert adjustment_sets(graph, "x", "y", family="mag") == []
    assert adjustment_sets(MixedGraph(["c --> x", "x --> y"]), "x", "y", family="mag") == [()]


def test_what_fci_learned_is_a_pag_even_if_no_circle_is_left():
    found = learned(DAG([("a", "c"), ("b", "c"), ("c", "d")]))
    assert adjustment_sets(found, "c", "d") == [()]
    assert adjustment_sets(found, "a", "c") == []


def test_a_directed_edge_that_fci_learned_is_not_taken_for_the_effect_unless_it_is_visible():
    found = learned(
        DAG([("a", "c"), ("b", "c"), ("c", "d"), ("u", "c"), ("u", "e"), ("e", "d")]), latent=["u"]
    )
    assert identify(found, treatment="c", outcome="d").rule == "adjustment"
    collider = learned(DAG([("a", "c"), ("b", "c")]))
    with pytest.raises(NotIdentifiable):
        identify(collider, treatment="a", outcome="c")
    with pytest.raises(InvalidGraph, match="may hide a cause"):
        front_door_sets(found, "c", "d")


def test_a_text_may_say_that_its_graph_is_a_mag():
    assert adjustment_sets("mag { x -> y }", "x", "y") == []
    assert adjustment_sets("dag { x -> y }", "x", "y") == [()]
    with pytest.raises(NotIdentifiable):
        identify("mag { x -> y }", treatment="x", outcome="y")


def test_background_knowledge_in_a_cpdag_may_make_an_effect_adjustable():
    chain = MixedGraph(["x --- y", "y --- z"])
    assert adjustment_sets(chain, "x", "z") == []
    assert adjustment_sets(MixedGraph(["x --> y", "y --- z", "z --- w"]), "x", "y") == [()]


def test_an_edge_that_does_not_belong_to_the_family_is_named():
    with pytest.raises(InvalidGraph, match="the edge a --- b has no place in a MAG"):
        adjustment_sets(MixedGraph(["a --- b"]), "a", "b", family="mag")
    with pytest.raises(InvalidGraph, match="the edge a <-> b has no place in a CPDAG"):
        adjustment_sets(MixedGraph(["a <-> b", "b --- c"]), "a", "b")


def test_a_bare_graph_of_arrows_is_an_admg_unless_it_is_said_to_be_a_mag():
    arrow, chain = MixedGraph(["x --> y"]), MixedGraph(["z --> x", "x --> y"])
    assert identify(arrow, treatment="x", outcome="y").rule == "back-door"
    with pytest.raises(NotIdentifiable, match="not identified by adjustment"):
        identify(arrow, treatment="x", outcome="y", family="mag")
    assert identify(chain, treatment="x", outcome="y", family="mag").adjustment == ()
    with pytest.raises(InvalidArgument, match="family"):
        identify(arrow, treatment="x", outcome="y", family="dag")
