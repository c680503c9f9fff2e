"""Regions solved exactly, the core of a search problem, and the searches built on them."""

from itertools import product

import numpy as np
import pytest

import markovia as mk
from markovia.inference.local_search.search_core import core_of
from markovia.inference.local_search.search_space import search_space
from markovia.io.uai_results import read_evid, read_map
from markovia.kernels.maximising.neighbourhoods import choose_region, solve_region, spread_from
from markovia.runtime.seeds import kernel_seed
from model_strategies import log_weights, random_case, random_findings
from places import BENCHMARKS


def space_of(model, given=None):
    return search_space(model._problem(given, "enumeration"))


def chosen(space, limit, rng, candidate=None):
    n = len(space.graph.cards)
    order = np.empty(n, dtype=np.int64)
    inside = np.ones(n, dtype=np.uint8) if candidate is None else candidate
    seed = kernel_seed(rng)
    found = choose_region(space.near, space.bits, inside, rng.permutation(n), limit, np.inf, seed, order)
    return order[:found]


def spin_glass(n, rng, field=0.3):
    names = {f"s{r}_{c}": 2 for r in range(n) for c in range(n)}
    factors = [mk.Factor([v], np.exp(field * rng.normal(size=2))) for v in names]
    for r, c in product(range(n), range(n)):
        for a, b in (((r + 1) % n, c), (r, (c + 1) % n)):
            j = rng.normal()
            factors.append(mk.Factor([f"s{r}_{c}", f"s{a}_{b}"], np.exp([[j, -j], [-j, j]])))
    return mk.MarkovNetwork(names, factors)


@pytest.mark.parametrize("seed", range(25))
def test_a_region_gets_its_best_states_given_the_others(seed):
    rng = np.random.default_rng(seed)
    case = random_case(seed, max_entries=800)
    space = space_of(case.model)
    n = len(space.graph.cards)
    candidate = (rng.random(n) < 0.7).astype(np.uint8)
    order = chosen(space, float(rng.integers(3, 12)), rng, candidate)
    assert all(candidate[order])
    codes = space.at_random(rng)
    new = codes.copy()
    solve_region(space.arrays, kernel_seed(rng), new, order, len(order))
    outside = np.setdiff1d(np.arange(n), order)
    assert np.array_equal(new[outside], codes[outside])
    best = -np.inf
    for states in product(*[range(space.graph.cards[v]) for v in order]):
        tried = codes.copy()
        tried[order] = states
        best = max(best, space.score(tried))
    assert space.score(new) == pytest.approx(best, abs=1e-6)


def induced_bits(space, order):
    """Log2 of the largest table of an elimination order, by sets."""
    ptr, near = space.near
    around = {int(v): set(near[ptr[v] : ptr[v + 1]].tolist()) & set(order.tolist()) for v in order}
    largest = 0.0
    for v in order.tolist():
        scope = around.pop(v)
        largest = max(largest, space.bits[v] + sum(space.bits[u] for u in scope))
        for u in scope:
            around[u] = (around[u] | scope) - {u, v}
    return largest


@pytest.mark.parametrize("limit", [2.0, 5.0, 9.0])
def test_a_region_keeps_its_tables_under_the_limit(limit):
    rng = np.random.default_rng(0)
    for states in (2, 3):
        names = {f"v{i}": states for i in range(60)}
        factors = []
        for _ in range(120):
            scope = [f"v{i}" for i in rng.choice(60, size=int(rng.integers(2, 4)), replace=False)]
            factors.append(mk.Factor(scope, rng.random([states] * len(scope)) + 0.1))
        space = space_of(mk.MarkovNetwork(names, factors))
        sizes = []
        for _ in range(5):
            order = chosen(space, limit, rng)
            assert len(set(order.tolist())) == len(order) > 0
            assert induced_bits(space, order) <= limit + 1e-9
            sizes.append(len(order))
        assert max(sizes) < 60


def test_a_region_of_a_narrow_model_holds_everything():
    names = {f"v{i}": 2 for i in range(30)}
    chain = [mk.Factor([f"v{i}", f"v{i + 1}"], [[1, 2], [3, 1]]) for i in range(29)]
    space = space_of(mk.MarkovNetwork(names, chain))
    assert len(chosen(space, 2.0, np.random.default_rng(0))) == 30


def test_walks_outward_rank_everything_by_distance():
    space = space_of(spin_glass(7, np.random.default_rng(0)))
    rank, distance, queue = np.empty((3, 49), dtype=np.int64)
    deepest = spread_from(space.near, 24, kernel_seed(np.random.default_rng(1)), rank, distance, queue)
    assert sorted(rank.tolist()) == list(range(49))
    assert rank[24] == 0
    assert deepest == distance.max() == 6
    assert np.all(np.diff(distance[np.argsort(rank)]) >= 0)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("bits", [1.0, 3.0, 6.0])
def test_the_core_has_the_same_best_weight_and_leads_back_to_it(seed, bits):
    case = random_case(seed, max_entries=800)
    given = random_findings(case, np.random.default_rng(seed), rate=0.2)
    space = space_of(case.model, given)
    if not len(space.graph.variables) or np.isneginf(space.graph.log_scale):
        return
    core = core_of(space, bits)
    assert sorted([*core.kept.tolist(), *core.gone.tolist()]) == list(range(len(space.graph.cards)))
    cards = core.space.graph.cards
    configurations = [np.array(c, dtype=np.int64) for c in product(*[range(k) for k in cards])]
    top = max(space.score(core.lift(c)) for c in configurations)
    assert top + space.graph.log_scale == pytest.approx(float(log_weights(case, given).max()), abs=1e-6) or (
        np.isneginf(log_weights(case, given).max())
    )
    if len(cards):
        best = max(configurations, key=core.space.score)
        assert space.score(core.lift(best)) == pytest.approx(top, abs=1e-6)
        gaps = [core.space.score(c) - space.score(core.lift(c)) for c in configurations]
        assert np.ptp(gaps) < 1e-6
        whole = space.at_random(np.random.default_rng(seed))
        assert space.score(core.lift(core.down(whole))) >= space.score(whole) - 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_spin_glasses_are_solved_and_never_above_the_best(seed):
    model = spin_glass(9, np.random.default_rng(seed))
    best = model.map(engine="junction-tree")
    for table_limit in (2**8, 2**12):
        engine = mk.engines.LargeNeighbourhood(table_limit=table_limit, rounds=12, seed=seed)
        found = model.map(engine=engine)
        assert found.log_weight == pytest.approx(best.log_weight)
        assert not found.info.exact


def test_a_region_of_everything_proves_the_answer():
    model = spin_glass(5, np.random.default_rng(0))
    found = model.map(engine=mk.engines.LargeNeighbourhood(seed=0))
    assert found.info.exact
    assert found.gap == 0.0
    assert found.log_weight == pytest.approx(model.map(engine="junction-tree").log_weight)


def test_a_start_is_never_made_worse():
    model = spin_glass(12, np.random.default_rng(1))
    first = model.map(engine=mk.engines.IteratedConditionalModes(restarts=0))
    engine = mk.engines.LargeNeighbourhood(table_limit=16, rounds=1, start=first.to_dict(), seed=0)
    assert model.map(engine=engine).log_weight >= first.log_weight - 1e-9


def test_map_search_is_exact_where_the_tree_fits_and_searches_otherwise():
    small, large = spin_glass(6, np.random.default_rng(0)), spin_glass(16, np.random.default_rng(0))
    exact = small.map(engine=mk.engines.MapSearch(seed=0))
    assert exact.info.exact
    assert exact.info.engine == "junction-tree"
    assert exact.gap == 0.0
    searched = small.map(engine=mk.engines.MapSearch(try_exact=False, table_limit=64, seed=0))
    assert searched.info.engine == "map-search"
    assert searched.log_weight == pytest.approx(exact.log_weight)
    first = large.map(engine=mk.engines.MapSearch(rounds=2, table_limit=2**10, seed=3))
    again = large.map(engine=mk.engines.MapSearch(rounds=2, table_limit=2**10, seed=3))
    assert first.to_dict() == again.to_dict()
    assert first.gap == np.inf


def test_an_interruption_gets_through(monkeypatch):
    from markovia.inference.local_search import large_neighbourhood

    model = spin_glass(14, np.random.default_rng(0))
    real, calls = large_neighbourhood.RegionSearch._step, []

    def step(self, *args):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(self, *args)

    monkeypatch.setattr(large_neighbourhood.RegionSearch, "_step", step)
    with pytest.raises(KeyboardInterrupt):
        model.map(engine=mk.engines.LargeNeighbourhood(chains=1, seed=0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Grids_26", "Promedas_51", "Segmentation_13", "wcsp_15"])
def test_competition_instances_reach_the_published_weight(name):
    home = BENCHMARKS / "uai" / "MAP"
    if not (home / f"{name}.uai.gz").exists():
        pytest.skip("needs the UAI instances (MARKOVIA_BENCHMARKS)")
    model = mk.load(home / f"{name}.uai.gz")
    (given,) = read_evid((home / f"{name}.uai.evid").read_text())
    published = dict(zip(model.variables, read_map((home / f"{name}.uai.MAP").read_text()), strict=True))
    space = space_of(model, given)
    reference = space.graph.log_weight(np.array([published[n] for n in space.graph.names]))
    found = model.map(given=given, engine=mk.engines.MapSearch(rounds=20, seed=0))
    assert found.log_weight >= reference - 1e-6
