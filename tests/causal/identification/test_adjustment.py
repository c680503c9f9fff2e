"""Adjustment sets against the criterion by paths, against truncated factorisation, and against every subset."""

import numpy as np
import pytest

import markovia as mk
from adjustment_checks import RandomModel, linear_model, meets_criterion, random_problem, subsets
from markovia.causal.identification.adjustment import (
    adjustment_sets,
    each_adjustment_set,
    is_adjustment_set,
    is_backdoor_set,
)
from markovia.errors import InvalidArgument, InvalidGraph, UnknownVariable
from markovia.graphs import DAG, MixedGraph, d_separated, latent_projection, random_dag

PEARL = DAG(
    [
        ("x1", "x3"), ("x1", "x4"), ("x2", "x4"), ("x2", "x5"), ("x3", "x"), ("x4", "x"), ("x4", "y"), ("x5", "y"),
        ("x", "x6"), ("x6", "y"),
    ],
    nodes=["x1", "x2", "x3", "x4", "x5", "x6", "x", "y"],
)  # fmt: skip


def minimal_among(sets):
    return {s for s in sets if not any(other < s for other in sets)}


def as_sets(found):
    return [frozenset(names) for names in found]


def test_pearls_graph_has_fifteen_valid_and_four_minimal_sets():
    assert len(adjustment_sets(PEARL, "x", "y", kind="all")) == 15
    assert adjustment_sets(PEARL, "x", "y") == [("x1", "x4"), ("x2", "x4"), ("x3", "x4"), ("x4", "x5")]
    assert adjustment_sets(PEARL, "x", "y", kind="optimal") == [("x4", "x5")]


def test_what_lies_below_a_causal_path_is_forbidden():
    edges = ["x m", "m y", "m below", "y after", "x aside", "c x", "c y"]
    graph = DAG([tuple(edge.split()) for edge in edges])
    assert adjustment_sets(graph, "x", "y", kind="all") == [("c",), ("aside", "c")]


@pytest.mark.parametrize("seed", range(60))
def test_the_listed_sets_are_those_whose_adjustment_equals_truncated_factorisation(seed):
    rng = np.random.default_rng(seed)
    dag, hidden, x, y = random_problem(rng, int(rng.integers(4, 8)), latents=int(rng.integers(0, 3)))
    model = RandomModel(dag, rng)
    truth = model.effect([x], [y])
    observed = [name for name in dag.nodes if name not in {*hidden, x, y}]
    right = {
        frozenset(z) for z in subsets(observed) if np.allclose(model.adjusted([x], [y], z), truth, atol=1e-10)
    }
    found = as_sets(adjustment_sets(dag, x, y, kind="all", latent=hidden))
    assert len(set(found)) == len(found)
    assert set(found) == right
    minimal = as_sets(adjustment_sets(dag, x, y, latent=hidden))
    assert len(set(minimal)) == len(minimal)
    assert set(minimal) == minimal_among(right)


@pytest.mark.parametrize("seed", range(40))
def test_sets_of_treatments_and_outcomes_agree_with_the_criterion_path_by_path(seed):
    rng = np.random.default_rng(seed)
    dag, hidden, *_ = random_problem(rng, 7, latents=int(rng.integers(0, 3)))
    graph = latent_projection(dag, hidden)
    names = rng.permutation(graph.nodes).tolist()
    x, y = names[:2], names[2:3] if seed % 2 else names[2:4]
    rest = [name for name in graph.nodes if name not in {*x, *y}]
    right = {frozenset(z) for z in subsets(rest) if meets_criterion(graph, x, y, z)}
    assert set(as_sets(adjustment_sets(graph, x, y, kind="all"))) == right
    assert set(as_sets(adjustment_sets(graph, x, y))) == minimal_among(right)
    assert {frozenset(z) for z in subsets(rest) if is_adjustment_set(graph, x, y, z)} == right


@pytest.mark.parametrize("seed", range(15))
def test_joint_effects_by_adjustment_equal_truncated_factorisation(seed):
    rng = np.random.default_rng(seed)
    dag, hidden, *_ = random_problem(rng, 6, latents=1)
    names = rng.permutation([n for n in dag.nodes if n not in hidden]).tolist()
    x, y = names[:2], names[2:3]
    model = RandomModel(dag, rng)
    truth = model.effect(x, y)
    for z in subsets(n for n in names if n not in {*x, *y}):
        assert is_adjustment_set(dag, x, y, z, latent=hidden) == np.allclose(
            model.adjusted(x, y, z), truth, atol=1e-10
        )


@pytest.mark.parametrize("seed", range(40))
def test_required_and_forbidden_variables_and_costs_choose_among_all_valid_sets(seed):
    rng = np.random.default_rng(seed)
    dag, hidden, x, y = random_problem(rng, 7, latents=int(rng.integers(0, 2)), edges=9)
    rest = rng.permutation([n for n in dag.nodes if n not in {*hidden, x, y}]).tolist()
    must, never = rest[:1], rest[1:2]
    every = as_sets(adjustment_sets(dag, x, y, kind="all", latent=hidden))
    right = {s for s in every if s.issuperset(must) and s.isdisjoint(never)}
    settings = {"latent": hidden, "required": must, "forbidden": never}
    assert set(as_sets(adjustment_sets(dag, x, y, kind="all", **settings))) == right
    assert set(as_sets(adjustment_sets(dag, x, y, **settings))) == minimal_among(right)
    costs = {name: float(rng.integers(1, 6)) for name in rest}
    cheapest = adjustment_sets(dag, x, y, kind="minimum", costs=costs, **settings)
    if right:
        price = {s: sum(costs[n] for n in s) for s in right}
        assert price[frozenset(cheapest[0])] == min(price.values())
    else:
        assert cheapest == []


@pytest.mark.parametrize("seed", [3, 6, 19, 22, 27])
def test_the_cheapest_of_several_hundred_sets_is_found_where_flows_have_to_be_rerouted(seed):
    rng = np.random.default_rng(seed)
    layers = [["x"], ["a0", "a1", "a2"], ["b0", "b1", "b2"], ["c0", "c1", "c2"], ["y"]]
    edges = [("x", "y")]
    for above, below in ((2, 1), (2, 3), (1, 0), (3, 4)):
        edges += [(p, q) for p in layers[above] for q in layers[below] if rng.random() < 0.55]
    dag = DAG(edges, nodes=[name for layer in layers for name in layer])
    costs = {name: float(rng.integers(1, 6)) for name in dag.nodes if name not in "xy"}
    every = adjustment_sets(dag, "x", "y", kind="all")
    (found,) = adjustment_sets(dag, "x", "y", kind="minimum", costs=costs)
    assert found in every
    assert sum(costs[n] for n in found) == min(sum(costs[n] for n in z) for z in every)


def test_what_reaches_the_outcome_only_through_another_treatment_may_be_adjusted_for():
    graph = "a -> v -> b -> y"
    assert adjustment_sets(graph, ["a", "b"], "y", kind="all") == [(), ("v",)]
    assert not is_adjustment_set(graph, "a", "y", "v")


def asymptotic_variance(covariance, names, x, y, given):
    """Return the variance of y left given x and Z over that of x left given Z: what least squares has."""

    def left(target, others):
        t, o = names.index(target), [names.index(n) for n in others]
        if not o:
            return covariance[t, t]
        return covariance[t, t] - covariance[t, o] @ np.linalg.solve(
            covariance[np.ix_(o, o)], covariance[o, t]
        )

    return left(y, [x, *given]) / left(x, given)


@pytest.mark.parametrize("seed", range(40))
def test_no_valid_set_has_a_smaller_asymptotic_variance_than_the_optimal_one(seed):
    rng = np.random.default_rng(seed)
    dag, hidden, x, y = random_problem(rng, 7, latents=seed % 2)
    _, covariance, _ = linear_model(dag, rng)
    best = adjustment_sets(dag, x, y, kind="optimal", latent=hidden)
    # with hidden variables, or no effect, no set need be best of all, but one is best of the minimal ones
    kind = "minimal" if hidden or y not in dag.descendants(x) else "all"
    others = adjustment_sets(dag, x, y, kind=kind, latent=hidden)
    assert bool(best) == bool(others)
    if best:
        assert is_adjustment_set(dag, x, y, best[0], latent=hidden)
        variance = {z: asymptotic_variance(covariance, dag.nodes, x, y, z) for z in [*others, *best]}
        assert variance[best[0]] <= min(variance.values()) * (1 + 1e-9)


def test_hidden_variables_elsewhere_do_not_cost_the_optimal_set_of_all():
    graph = "z -> x -> y <- o; z <-> x"
    assert adjustment_sets(graph, "x", "y", kind="optimal") == [("o",)]
    assert adjustment_sets(graph + "; o <-> y", "x", "y", kind="optimal") == [()]


@pytest.mark.parametrize("seed", range(30))
def test_the_back_door_criterion_forbids_descendants_and_blocks_paths_into_the_treatment(seed):
    rng = np.random.default_rng(seed)
    dag, _, x, y = random_problem(rng, 6)
    below = dag.descendants(x)
    cut = DAG([e for e in dag.edges if e[0] != x], nodes=dag.nodes)
    for z in subsets(n for n in dag.nodes if n not in (x, y)):
        right = not below & set(z) and d_separated(cut, x, y, z)
        assert is_backdoor_set(dag, x, y, z) == right
        if right and y in below:
            assert is_adjustment_set(dag, x, y, z)


def test_adjusting_in_a_network_gives_what_do_gives():
    bn = mk.examples.asia()
    sets = adjustment_sets(bn, "bronc", "dysp")
    assert ("smoke",) in sets
    truth = bn.do({"bronc": "yes"}).query("dysp").values
    for (z,) in sets:
        prior = bn.query(z)
        total = sum(
            prior[s] * bn.query("dysp", given={"bronc": "yes", z: s}).values for s in bn.variable(z).states
        )
        np.testing.assert_allclose(total, truth, atol=1e-12)


def test_a_graph_of_a_thousand_nodes_gives_its_first_minimal_sets_one_by_one():
    dag = random_dag(1000, n_edges=2000, seed=0)
    found = each_adjustment_set(dag, "x305", "x925")
    for _ in range(3):
        assert is_adjustment_set(dag, "x305", "x925", next(found))


def test_exponentially_many_minimal_sets_are_listed_up_to_a_limit():
    edges = [("a0", "x"), ("a39", "y"), ("x", "y")]
    for k in range(0, 40, 2):  # a ladder: each rung can be cut on either of two nodes
        edges += [(f"r{k}", "x"), (f"r{k}", f"s{k}"), (f"s{k}", "y")]
    found = adjustment_sets(DAG(edges), "x", "y", limit=25)
    assert len(set(found)) == 25
    assert all(len(z) == 20 for z in found)


def test_no_effect_needs_no_adjustment_beyond_separation():
    assert adjustment_sets("y -> x", "x", "y") == []
    assert adjustment_sets("y -> m -> x", "x", "y") == [("m",)]
    assert adjustment_sets(DAG(nodes=["x", "y"]), "x", "y") == [()]


@pytest.mark.parametrize(
    ("arguments", "settings", "sentence"),
    [
        (("x", "x"), {}, "both treatment and outcome"),
        (("x", "y"), {"kind": "best"}, "kind is 'minimal'"),
        (("x", "y"), {"costs": {"z": 1}}, "costs are for kind='minimum'"),
        (("x", "y"), {"kind": "minimum", "costs": {"z": 0}}, "the cost of 'z' is a positive number"),
        (("x", "y"), {"required": "x"}, "'x' is required and also treatment or outcome"),
        (("x", "y"), {"required": "z", "forbidden": "z"}, "both required and forbidden"),
        (("x", "y"), {"family": "tree"}, "family= is 'auto'"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_in_one_sentence(arguments, settings, sentence):
    with pytest.raises(InvalidArgument, match=sentence):
        adjustment_sets("z -> x -> y <- z", *arguments, **settings)


def test_unknown_and_hidden_names_are_named():
    with pytest.raises(UnknownVariable, match="'w'"):
        adjustment_sets("x -> y", "x", "y", required="w")
    with pytest.raises(UnknownVariable, match="'u'"):
        adjustment_sets("u -> x -> y <- u", "x", "y", latent="u", required="u")
    with pytest.raises(InvalidGraph, match="no place in a MAG"):
        adjustment_sets(MixedGraph(["x o-> y"]), "x", "y", family="mag")
