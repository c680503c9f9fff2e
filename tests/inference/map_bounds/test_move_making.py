"""Expansion, swap and shrink moves: each is the best of its kind, the energy falls, bounds hold."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from markovia.inference import Problem
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.map_bounds.move_making import (
    AlphaBetaSwap,
    AlphaExpansion,
    AlphaExpansionBetaShrink,
    MoveSearch,
)

ENGINES = ["alpha-expansion", "alpha-beta-swap", "expansion-shrink"]


def random_labelling(seed, kind, zeros=False):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    uneven = kind == "any"
    cards = {f"v{i}": int(rng.integers(1, k + 1)) if uneven and rng.random() < 0.3 else k for i in range(n)}
    factors = [mk.Factor([v], rng.random(c) + 1e-3) for v, c in cards.items()]
    for a, b in combinations(cards, 2):
        if rng.random() > 0.7:
            continue
        if kind == "potts":
            logs = rng.random() * 2 * np.eye(k)
        elif kind == "metric":
            logs = -rng.random() * np.minimum(2, np.abs(np.subtract.outer(range(k), range(k))))
        else:
            logs = rng.normal(size=(cards[a], cards[b]))
        table = np.exp(logs)
        if zeros:
            table = table * (rng.random(table.shape) > 0.2)
        factors.append(mk.Factor([a, b], table))
    return mk.MarkovNetwork(cards, factors)


def graph_of(model):
    return flat_graph(Problem({n: model.variable(n) for n in model.variables}, model.pieces(), {}))


@pytest.mark.parametrize("engine", [AlphaExpansion(), AlphaBetaSwap(), AlphaExpansionBetaShrink()])
@pytest.mark.parametrize("seed", range(40))
def test_every_move_is_the_best_of_its_kind(engine, seed):
    graph = graph_of(random_labelling(seed, "metric" if seed % 2 else "potts"))
    rng = np.random.default_rng(seed)
    search = MoveSearch(graph, start=rng.integers(0, graph.cards))
    for zero, one, now in engine._moves(graph, search):
        before = search.energy
        choices = [{int(a), int(b)} for a, b in zip(zero, one, strict=True)]
        best = min(search.cost(np.array(c, dtype=np.int64)) for c in product(*choices))
        assert np.array_equal(np.where(now == 1, one, zero), search.codes)
        search.make((zero, one, now))
        assert search.energy == pytest.approx(best, abs=1e-9)
        assert search.energy <= before
    assert search.truncated == 0


@pytest.mark.parametrize("name", ENGINES)
@sampled(seed=st.integers(0, 10**6), kind=st.sampled_from(["potts", "metric", "any"]), zeros=st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_energy_falls_with_every_move_and_the_bound_holds(name, seed, kind, zeros):
    model = random_labelling(seed, kind, zeros and kind == "any")
    try:
        best = model.map(engine="enumeration").log_weight
    except mk.errors.ImpossibleEvidence:
        return
    try:
        found = model.map(engine=name)
    except mk.errors.Unanswered:  # moves alone may not lead out of what zeros rule out
        assert zeros
        return
    assert np.all(np.diff(found.info.details.energies) < 0)
    assert found.log_weight <= best + 1e-9
    assert found.bound >= best - 1e-8
    if found.info.exact:
        assert found.log_weight == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("kind", ["potts", "metric"])
@pytest.mark.parametrize("seed", range(30))
def test_the_factor_two_guarantee_bounds_the_optimum_without_any_sweep(kind, seed):
    model = random_labelling(seed, kind)
    found = model.map(engine=AlphaExpansion(bound_sweeps=0))
    assert found.log_weight <= model.map(engine="enumeration").log_weight + 1e-9 <= found.bound + 1e-8
    assert np.isfinite(found.bound)


def test_potts_models_without_sweeps_have_the_bound_of_half_the_energy():
    model = mk.generators.potts_grid(4, 4, 3, coupling=1.0, field="random", seed=2)
    found = model.map(engine=AlphaExpansion(bound_sweeps=0))
    graph = graph_of(model)
    assert found.bound == pytest.approx(graph.log_scale - (graph.log_scale - found.log_weight) / 2)


def test_no_expansion_or_swap_improves_the_end():
    model = mk.generators.potts_grid(3, 3, 3, coupling=0.8, field="random", seed=5)
    graph = graph_of(model)
    for engine in (AlphaExpansion(), AlphaBetaSwap(), AlphaExpansionBetaShrink()):
        found = model.map(engine=engine)
        codes = np.array([found[n] for n in graph.names])
        search = MoveSearch(graph, start=codes)
        for zero, one, _ in engine._moves(graph, search):
            for choice in product((0, 1), repeat=len(codes)):
                tried = np.where(np.array(choice) == 1, one, zero)
                assert graph.log_weight(tried) <= found.log_weight + 1e-9


def test_the_end_of_shrink_moves_is_one_of_expansions_and_swaps_too():
    for seed in range(20):
        model = random_labelling(seed, "metric" if seed % 2 else "potts")
        graph = graph_of(model)
        found = model.map(engine=AlphaExpansionBetaShrink())
        search = MoveSearch(graph, start=np.array([found[n] for n in graph.names]))
        for engine in (AlphaExpansion(), AlphaBetaSwap()):
            assert not any(search.make(move) for move in engine._moves(graph, search))


def test_one_shrink_move_leads_where_no_expansion_and_no_swap_does():
    # three pixels in a row: the left one has to grow into the middle while the right one leaves that state
    logs = np.full((3, 3), -1.0)
    np.fill_diagonal(logs, 0.0)
    wanted = np.array([0, 0, 1])
    fields = [[0.0, -9.0, -9.0], [0.0, -9.0, -0.5], [-3.5, -0.5, -9.0]]
    model = mk.MarkovNetwork(
        dict.fromkeys("abc", 3),
        [mk.Factor([v], np.exp(f)) for v, f in zip("abc", fields, strict=True)]
        + [mk.Factor([*p], np.exp(logs)) for p in ("ab", "bc", "ac")],
    )
    graph, start = graph_of(model), np.array([0, 2, 0])
    assert [model.map(engine="enumeration")[v] for v in "abc"] == wanted.tolist()
    reached = {}
    for engine in (AlphaExpansion(), AlphaBetaSwap(), AlphaExpansionBetaShrink()):
        search = MoveSearch(graph, start=start)
        reached[engine.name] = []
        for move in engine._moves(graph, search):
            search.make(move)
            reached[engine.name].append(search.codes.tolist())
            search.codes, search.energy = start, search.cost(start)
    assert [name for name, found in reached.items() if wanted.tolist() in found] == ["expansion-shrink"]


def test_variables_of_one_state_do_not_keep_the_others_from_expanding():
    pair = np.exp([[0.0, -1.0, -1.0]])
    model = mk.MarkovNetwork(
        {"a": 1, "b": 3}, [mk.Factor(["a", "b"], pair), mk.Factor(["b"], np.exp([-0.5, 0.0, -2.0]))]
    )
    search = MoveSearch(graph_of(model), start=np.array([0, 1]))
    moves = [
        (zero.tolist(), one.tolist())
        for zero, one, _ in AlphaExpansionBetaShrink()._moves(search.graph, search)
    ]
    assert ([0, 1], [0, 0]) in moves


def test_costs_that_are_no_metric_are_refused_on_demand_and_truncated_otherwise():
    table = np.exp([[0.0, -5.0, -0.1], [-5.0, 0.0, -0.1], [-0.1, -0.1, 0.0]])  # 0 to 1 is cheaper by way of 2
    fields = [mk.Factor([v], np.exp(w)) for v, w in (("a", [2, 0, 0]), ("b", [0, 2, 0]), ("c", [2, 1.5, 0]))]
    model = mk.MarkovNetwork(
        dict.fromkeys("abc", 3), [*fields, *(mk.Factor([*p], table) for p in ("ab", "bc", "ac"))]
    )
    with pytest.raises(mk.errors.Unanswered, match=r"no metric.*trw-s"):
        model.map(engine=AlphaExpansion(nonmetric="refuse"))
    assert (
        model.map(engine=AlphaBetaSwap(nonmetric="refuse")).log_weight
        <= model.map(engine="enumeration").log_weight
    )
    search = MoveSearch(graph_of(model), start=np.array([0, 1, 0]))
    search.make((search.codes, np.full(3, 2), np.zeros(3, dtype=np.int64)))
    assert search.truncated > 0
    repel = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[1.0, 3.0], [3.0, 1.0]])])
    with pytest.raises(mk.errors.Unanswered, match="no semi-metric"):
        repel.map(engine=AlphaBetaSwap(nonmetric="refuse"))


def test_larger_factors_and_bad_settings_are_refused():
    model = mk.MarkovNetwork(
        dict.fromkeys("abc", 2), [mk.Factor([*"abc"], np.arange(1.0, 9.0).reshape(2, 2, 2))]
    )
    with pytest.raises(mk.errors.Unanswered, match="at most two variables"):
        model.map(engine="alpha-expansion")
    with pytest.raises(mk.errors.InvalidArgument, match="nonmetric="):
        AlphaExpansion(nonmetric="ignore")
    with pytest.raises(mk.errors.InvalidArgument, match="max_iterations="):
        AlphaBetaSwap(max_iterations=0)
    with pytest.raises(mk.errors.InvalidArgument, match="time_limit="):
        AlphaBetaSwap(time_limit=-1)


def test_time_that_is_up_at_once_still_gives_a_configuration():
    model = mk.generators.potts_grid(10, 10, 4, coupling=0.5, field="random", seed=0)
    with pytest.warns(mk.errors.ConvergenceWarning):
        found = model.map(engine="alpha-expansion", time_limit=1e-9)
    assert len(found) == 100
    assert found.log_weight <= found.bound
