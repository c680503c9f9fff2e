"""TRW-S and dual decomposition: bounds hold and never rise, trees are exact, clusters close gaps."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from markovia.inference import Problem
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.map_bounds.dual_regions import Regions
from markovia.inference.map_bounds.trw_s import PairSweeps
from model_strategies import cases, log_weights, random_findings
from places import BENCHMARKS
from random_trees import random_tree

ENGINES = ["trw-s", "dual-decomposition"]
FOLDER = BENCHMARKS


def graph_of(model):
    return flat_graph(Problem({n: model.variable(n) for n in model.variables}, model.pieces(), {}))


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", ENGINES)
@sampled(case=cases(max_entries=2000), seed=st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_bounds_are_above_the_optimum_and_never_rise(name, case, seed):
    given = random_findings(case, np.random.default_rng(seed))
    logs = log_weights(case, given)
    best = float(logs.max())
    if best == -np.inf:
        try:
            assert case.model.map(given=given, engine=name).log_weight == -np.inf
        except mk.errors.ImpossibleEvidence:
            return
        return
    found = case.model.map(given=given, engine=name)
    assert found.log_weight <= best + 1e-8
    assert found.bound >= best - 1e-7
    bounds = found.info.details.bounds
    assert all(b <= a + 1e-9 for a, b in pairwise(bounds))
    assert all(b >= best - 1e-7 for b in bounds)
    if found.info.exact:
        assert found.log_weight == pytest.approx(best, abs=1e-7)
        assert found.gap == 0.0


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("seed", range(40))
def test_trees_are_exact(name, seed):
    model = random_tree(seed, wide=seed % 2 == 0)
    try:
        best = model.map(engine="enumeration").log_weight
    except mk.errors.ImpossibleEvidence:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.map(engine=name)
        return
    found = model.map(engine=name)
    assert found.info.exact
    assert found.log_weight == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("name", ENGINES)
def test_attractive_grids_are_solved_as_by_graph_cut(name):
    model = mk.generators.ising_grid(12, 12, coupling=0.4, field="random", seed=1)
    found = model.map(engine=name)
    assert found.info.exact
    assert found.log_weight == pytest.approx(model.map(engine="graph-cut").log_weight, abs=1e-8)


def test_pair_messages_and_tables_agree_on_the_bound():
    model = mk.generators.potts_grid(5, 5, 3, coupling="random", field="random", seed=0)
    pairs, regions = PairSweeps(graph_of(model)), Regions(graph_of(model))
    for _ in range(300):
        pairs.there_and_back()
        regions.there_and_back()
    best = model.map(engine="junction-tree").log_weight
    assert pairs.bound >= best - 1e-9
    assert pairs.bound == pytest.approx(regions.bound, rel=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_handing_messages_over_to_tables_changes_neither_weights_nor_bound(seed):
    rng = np.random.default_rng(seed)
    cards = {f"v{i}": int(rng.integers(1, 4)) for i in range(6)}
    factors = [mk.Factor([v], rng.random(c)) for v, c in cards.items()]
    names = list(cards)
    for i in range(6):
        for j in range(i):
            if rng.random() < 0.6:
                order = [names[i], names[j]] if rng.random() < 0.5 else [names[j], names[i]]
                factors.append(mk.Factor(order, rng.random([cards[n] for n in order]) + 0.01))
    graph = graph_of(mk.MarkovNetwork(cards, factors))
    pairs, regions = PairSweeps(graph), Regions(graph)
    for _ in range(5):
        pairs.there_and_back()
    regions.adopt(*pairs.reparametrised(), pairs.bound)
    codes = np.indices(graph.cards).reshape(len(graph.cards), -1).T
    where = np.add.reduceat(codes[:, graph.scope] * graph.strides, graph.scope_ptr[:-1], axis=1)
    moved = regions.potentials[graph.starts[:-1] + codes].sum(axis=1)
    moved += regions.tables[graph.table_ptr[:-1] + where].sum(axis=1)
    assert np.allclose(pairs.bound + moved, graph.log_weights(codes), atol=1e-9)
    assert regions.potentials.max() <= 1e-12
    assert regions.tables.max() <= 1e-12
    before = regions.bound
    regions.there_and_back()
    assert regions.bound <= before + 1e-12


def test_a_cluster_closes_the_gap_of_a_frustrated_cycle():
    apart = np.exp([[0.0, 1.0], [1.0, 0.0]])
    for n in (3, 5, 9):
        names = [f"v{i}" for i in range(n)]
        pairs = [(names[i], names[(i + 1) % n]) for i in range(n)]
        model = mk.MarkovNetwork(dict.fromkeys(names, 2), [mk.Factor([*p], apart) for p in pairs])
        loose = model.map(engine=mk.engines.DualDecomposition(tighten=False))
        assert loose.bound == pytest.approx(n)
        assert loose.log_weight == pytest.approx(n - 1)
        assert not loose.info.exact
        tight = model.map(engine="dual-decomposition")
        assert tight.info.exact
        assert tight.info.details.clusters >= 1
        assert tight.log_weight == pytest.approx(n - 1)


@pytest.mark.parametrize("seed", range(6))
def test_spin_glasses_are_solved_with_clusters(seed):
    model = mk.generators.ising_grid(7, 7, coupling="random", field="random", seed=seed)
    loose, tight = (model.map(engine=mk.engines.DualDecomposition(tighten=t)) for t in (False, True))
    best = model.map(engine="junction-tree").log_weight
    assert tight.bound <= loose.bound + 1e-9
    assert tight.info.exact
    assert tight.log_weight == pytest.approx(best, abs=1e-8)


def test_tables_that_share_pairs_agree_on_them_when_tightened():
    rng = np.random.default_rng(0)
    cards = dict.fromkeys("abcd", 2)
    for _ in range(20):
        factors = [mk.Factor([*s], np.exp(2 * rng.normal(size=(2, 2, 2)))) for s in ("abc", "bcd", "acd")]
        model = mk.MarkovNetwork(cards, factors)
        found = model.map(engine="dual-decomposition")
        assert found.info.exact
        assert found.log_weight == pytest.approx(model.map(engine="enumeration").log_weight)


@pytest.mark.parametrize("name", ENGINES)
def test_small_and_odd_models(name):
    assert mk.MarkovNetwork({"a": 3}, [mk.Factor(["a"], [1, 5, 2])]).map(engine=name).to_dict() == {"a": 1}
    alone = mk.MarkovNetwork({"a": 1, "b": 2}, []).map(engine=name)
    assert alone.info.exact
    model = mk.generators.ising_grid(2, 2, field="random", seed=0)
    everything = dict.fromkeys(model.variables, 1)
    assert model.map(given=everything, engine=name).log_weight == pytest.approx(
        model.map(given=everything, engine="enumeration").log_weight
    )
    impossible = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], np.eye(2))])
    with pytest.raises(mk.errors.ImpossibleEvidence):
        impossible.map(given={"a": 0, "b": 1}, engine=name)


@pytest.mark.parametrize("name", ENGINES)
def test_time_and_settings(name):
    model = mk.generators.ising_grid(20, 20, coupling="random", field="random", seed=0)
    with pytest.warns(mk.errors.ConvergenceWarning):
        found = model.map(engine=name, time_limit=1e-9)
    assert found.log_weight <= found.bound
    kind = {"trw-s": mk.engines.TRWS, "dual-decomposition": mk.engines.DualDecomposition}[name]
    with pytest.raises(mk.errors.InvalidArgument, match="max_iterations="):
        kind(max_iterations=0)
    with pytest.raises(mk.errors.InvalidArgument, match="tolerance="):
        kind(tolerance=-1.0)
    with pytest.raises(mk.errors.Unanswered, match=r"most probable|log partition"):
        model.log_partition(engine=name)


@pytest.mark.parametrize("instance", ["Segmentation_13", "Segmentation_19"])
def test_competition_instances_are_proved_optimal(instance):
    file = FOLDER / "uai" / "MAP" / f"{instance}.uai.gz"
    if not file.exists():
        pytest.skip("benchmark models are not here")
    model = mk.load(file)
    words = (file.parent / f"{instance}.uai.evid").read_text().split()
    numbers = [int(w) for w in words][len(words) % 2 == 0 :]
    given = {f"x{numbers[k]}": numbers[k + 1] for k in range(1, len(numbers), 2)}
    found = model.map(given=given, engine="dual-decomposition")
    assert found.info.exact
    assert found.log_weight == pytest.approx(
        model.map(given=given, engine="junction-tree").log_weight, abs=1e-6
    )
