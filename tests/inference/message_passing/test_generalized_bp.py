"""Generalised belief propagation: fixed points, exact cases, convergence, free energies, settings."""

import warnings
from itertools import pairwise

import numpy as np
import pytest

import markovia as mk
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.message_passing.generalized_bp import GeneralizedBP
from markovia.inference.message_passing.join_graph import JoinGraph
from model_strategies import log_marginal, log_sum, log_weights, random_case, random_findings

VARIANTS = ["parent-to-child", "double-loop"]


def ask(engine, model, given=None):
    problem = model._problem(given or {}, "junction-tree")
    return engine.marginals(problem, problem.free)


def spin_glass(rows, columns, strength, seed, field=0.5):
    rng = np.random.default_rng(seed)
    names = [[f"s{i}_{j}" for j in range(columns)] for i in range(rows)]
    factors = []
    for i in range(rows):
        for j in range(columns):
            h = field * rng.normal()
            factors.append(mk.Factor([names[i][j]], np.exp([h, -h])))
            for other in (names[i][j + 1 : j + 2], [row[j] for row in names[i + 1 : i + 2]]):
                if other:
                    w = strength * rng.normal()
                    factors.append(mk.Factor([names[i][j], other[0]], np.exp([[w, -w], [-w, w]])))
    return mk.MarkovNetwork({n: 2 for row in names for n in row}, factors)


def belief_propagation(graph, rounds=3000):
    """Plain flooding belief propagation with damping on a flat graph: marginals and the Bethe log partition function."""
    n = len(graph.variables)
    unary = [graph.unary[graph.starts[i] : graph.starts[i + 1]] for i in range(n)]
    edges = [(f, k, int(i)) for f in range(graph.n_factors) for k, i in enumerate(graph.members(f))]
    to_variable = {(f, k): np.ones(len(unary[i])) / len(unary[i]) for f, k, i in edges}
    at = {i: [(f, k) for f, k, j in edges if j == i] for i in range(n)}

    def weighted(f, skip=None):
        table = graph.table(f).copy()
        for k, i in enumerate(graph.members(f)):
            if k != skip:
                message = unary[i].copy()
                for e in at[i]:
                    if e != (f, k):
                        message = message * to_variable[e]
                shape = [1] * table.ndim
                shape[k] = -1
                table = table * (message / message.sum()).reshape(shape)
        return table

    for _ in range(rounds):
        fresh = {}
        for f, k, _ in edges:
            summed = weighted(f, k).sum(axis=tuple(a for a in range(graph.table(f).ndim) if a != k))
            fresh[f, k] = 0.5 * to_variable[f, k] + 0.5 * summed / summed.sum()
        change = max(np.abs(fresh[e] - to_variable[e]).max() for e in fresh)
        to_variable = fresh
        if change < 1e-12:
            break
    beliefs = []
    log_z = graph.log_scale
    for i in range(n):
        b = unary[i] * np.prod([to_variable[e] for e in at[i]], axis=0)
        b = b / b.sum()
        beliefs.append(b)
        log_z += (b * (np.log(unary[i]) - (1 - len(at[i])) * np.log(b))).sum()
    for f in range(graph.n_factors):
        b = weighted(f)
        b = b / b.sum()
        log_z += (b * (np.log(graph.table(f)) - np.log(b))).sum()
    return beliefs, log_z


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(3))
def test_factors_as_clusters_have_the_fixed_point_of_belief_propagation(variant, seed):
    model = spin_glass(3, 3, 0.4, seed)
    graph = flat_graph(model._problem({}, "junction-tree"))
    beliefs, log_z = belief_propagation(graph)
    found = ask(GeneralizedBP(clusters="factors", variant=variant, tolerance=1e-9), model)
    assert found.record.converged
    assert not found.record.exact
    assert found.log_mass == pytest.approx(log_z, abs=1e-6)
    for table, b in zip(found.tables, beliefs, strict=True):
        np.testing.assert_allclose(table.values, b, atol=1e-6)


@pytest.mark.parametrize("clusters", ["factors", "blocks", "loops", "intersections"])
@pytest.mark.parametrize("seed", range(3))
def test_both_variants_find_the_same_stationary_point(clusters, seed):
    model = spin_glass(3, 4, 0.5, seed)
    one, other = (ask(GeneralizedBP(clusters=clusters, variant=v, tolerance=1e-8), model) for v in VARIANTS)
    assert one.record.converged
    assert other.record.converged
    assert one.log_mass == pytest.approx(other.log_mass, abs=1e-5)
    for a, b in zip(one.tables, other.tables, strict=True):
        np.testing.assert_allclose(a.values, b.values, atol=1e-5)


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_blocks_are_closer_to_the_truth_than_single_factors(strength):
    errors = {"factors": [], "blocks": []}
    for seed in range(4):
        model = spin_glass(4, 4, strength, seed)
        truth = ask(mk.engines.JunctionTree(), model)
        for clusters in errors:
            found = ask(GeneralizedBP(clusters=clusters, variant="double-loop"), model)
            gaps = [
                np.abs(a.values - b.values).max() for a, b in zip(found.tables, truth.tables, strict=True)
            ]
            errors[clusters].append((float(np.mean(gaps)), abs(found.log_mass - truth.log_mass)))
    bethe, kikuchi = np.mean(errors["factors"], axis=0), np.mean(errors["blocks"], axis=0)
    assert (kikuchi < 0.5 * bethe).all()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(25))
def test_junction_tree_clusters_are_exact_on_random_models(variant, seed):
    case = random_case(seed, max_entries=2000)
    given = random_findings(case, np.random.default_rng(seed)) if seed % 2 else {}
    logs = log_weights(case, given)
    log_z = float(log_sum(logs))
    problem = case.model._problem(given, "junction-tree")
    for engine in (GeneralizedBP(variant=variant), JoinGraph(), JoinGraph(symmetry=False)):
        found = engine.marginals(problem, problem.free)
        assert found.record.exact
        if log_z == -np.inf:
            assert found.log_mass == -np.inf
            continue
        assert found.log_mass == pytest.approx(log_z, abs=1e-8)
        for name, table in zip(problem.free, found.tables, strict=True):
            expected = np.exp(log_marginal(case, logs, [name]) - log_z)
            np.testing.assert_allclose(table.values, expected, atol=1e-9)


@pytest.mark.parametrize("clusters", ["factors", "intersections", "loops", "join-graph"])
def test_the_double_loop_converges_and_its_free_energy_never_rises(clusters):
    steps = 0
    for seed in range(100, 130):
        case = random_case(seed, max_entries=1000)
        engine = GeneralizedBP(clusters=clusters, variant="double-loop", max_entries=4)
        found = ask(engine, case.model)
        if found.log_mass == -np.inf:
            assert float(log_sum(log_weights(case))) == -np.inf
            continue
        assert found.record.converged, seed
        energies = found.record.details.free_energies
        assert np.diff(energies).max(initial=-np.inf) < 1e-6
        steps += len(energies)
        if energies:
            assert found.log_mass == pytest.approx(-energies[-1], abs=1e-9)
    assert steps > 50


def test_the_double_loop_converges_where_messages_run_away():
    model = spin_glass(5, 5, 3.0, 2, field=0.1)
    for clusters in ("factors", "blocks"):
        found = ask(GeneralizedBP(clusters=clusters, variant="double-loop"), model)
        assert found.record.converged
        assert np.diff(found.record.details.free_energies).max(initial=-np.inf) < 1e-6


@pytest.mark.parametrize("clusters", ["factors", "loops", "intersections", "auto"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_log_mass_of_a_tree_is_exact(clusters, variant):
    rng = np.random.default_rng(5)
    names = [f"v{i}" for i in range(9)]
    factors = [mk.Factor([names[rng.integers(i)], names[i]], rng.random((3, 3))) for i in range(1, 9)]
    tree = mk.MarkovNetwork(dict.fromkeys(names, 3), factors)
    found = ask(GeneralizedBP(clusters=clusters, variant=variant), tree)
    assert found.record.exact
    assert found.log_mass == pytest.approx(tree.log_partition(engine="enumeration"), abs=1e-10)


def test_clusters_can_be_given_by_name_and_are_completed_by_the_factors():
    grid = spin_glass(2, 4, 0.8, 3)
    whole = GeneralizedBP(
        clusters=[
            ["s0_0", "s0_1", "s1_0", "s1_1"],
            ["s0_1", "s0_2", "s1_1", "s1_2"],
            ["s0_2", "s0_3", "s1_2", "s1_3"],
        ]
    )
    found = ask(whole, grid)
    assert found.record.exact
    assert found.log_mass == pytest.approx(grid.log_partition(), abs=1e-9)
    part = ask(GeneralizedBP(clusters=[["s0_0", "s0_1", "s1_0", "s1_1"]]), grid)
    assert not part.record.exact
    assert part.record.details.clusters == 1 + 6
    with pytest.raises(mk.errors.UnknownVariable):
        ask(GeneralizedBP(clusters=[["s0_0", "nobody"]]), grid)


@pytest.mark.parametrize(
    "engine", [GeneralizedBP(clusters="blocks"), GeneralizedBP(), JoinGraph(max_entries=16)]
)
def test_joint_posteriors_come_from_a_cluster_or_by_conditioning(engine):
    grid = spin_glass(3, 4, 0.4, 1)
    for names in (["s0_0", "s0_1"], ["s1_1", "s0_0"], ["s0_0", "s2_3"]):
        found = grid.query(names, engine=engine)
        np.testing.assert_allclose(found.values, grid.query(names).values, atol=0.02)
        assert found.values.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "engine", ["generalized-bp", "join-graph", GeneralizedBP(clusters="factors"), JoinGraph(max_entries=2)]
)
def test_impossible_evidence_is_refused(engine):
    bn = mk.BayesianNetwork()
    bn.add("a", states=["x", "y"], p=[0.5, 0.5])
    bn.add("b", states=["x", "y"], parents=["a"], p=[[1.0, 0.0], [0.0, 1.0]])
    bn.add("c", states=["x", "y"], parents=["a", "b"], p=[[[1, 0], [0.5, 0.5]], [[0.5, 0.5], [0, 1]]])
    with pytest.raises(mk.errors.ImpossibleEvidence):
        bn.query("b", given={"a": "x", "c": "y"}, engine=engine)
    np.testing.assert_allclose(bn.query("b", given={"c": "y"}, engine=engine).values, [0.0, 1.0])


@pytest.mark.parametrize("engine", [GeneralizedBP(), GeneralizedBP(clusters="factors"), JoinGraph()])
def test_small_and_empty_models_are_answered(engine):
    lone = mk.MarkovNetwork({"a": 3}, [mk.Factor(["a"], [1.0, 2.0, 1.0])])
    np.testing.assert_allclose(lone.query("a", engine=engine).values, [0.25, 0.5, 0.25])
    bare = mk.MarkovNetwork({"a": 2, "b": 1}, [])
    assert bare.log_partition(engine=engine) == pytest.approx(np.log(2.0))
    assert lone.log_partition(given={"a": 1}, engine=engine) == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("engine", [GeneralizedBP(), GeneralizedBP(clusters="factors"), JoinGraph()])
def test_products_far_below_the_smallest_number_do_not_underflow(engine):
    n = 40
    names = [f"v{i}" for i in range(n)]
    tiny = np.array([[1e-120, 1e-160], [1e-170, 1e-120]])
    chain = mk.MarkovNetwork(dict.fromkeys(names, 2), [mk.Factor([a, b], tiny) for a, b in pairwise(names)])
    assert chain.log_partition(engine=engine) == pytest.approx(chain.log_partition(), rel=1e-10)


def test_an_answer_that_did_not_settle_warns():
    grid = spin_glass(5, 5, 1.5, 0)
    with pytest.warns(mk.errors.ConvergenceWarning, match="double-loop"):
        grid.query("s0_0", engine=GeneralizedBP(clusters="blocks", max_iterations=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grid.query("s0_0", engine=GeneralizedBP(clusters="blocks", variant="double-loop"))


@pytest.mark.parametrize(
    "settings",
    [
        {"clusters": "squares"},
        {"clusters": ["ab"]},
        {"variant": "triple-loop"},
        {"damping": 1.0},
        {"tolerance": -1e-3},
        {"max_iterations": 0},
        {"loop_length": 2},
        {"max_entries": 0},
        {"time_limit": 0},
    ],
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(mk.errors.InvalidArgument):
        GeneralizedBP(**settings)
