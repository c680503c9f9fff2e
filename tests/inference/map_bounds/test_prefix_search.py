"""Beam search and A*: scores of beginnings are bounds, what is thrown away is accounted for, proofs are proofs."""

import pickle
from importlib import import_module
from itertools import pairwise, product

import numpy as np
import pytest

import markovia as mk
from markovia.engines import AStar, BeamSearch
from markovia.inference import Problem
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.map_bounds import a_star, beam_search
from markovia.inference.map_bounds.beam_search import beam
from markovia.inference.map_bounds.mini_buckets import mini_buckets, search_order
from markovia.kernels.plain_code import _plain_module, plain_code


def random_model(rng, zeros=0.0, pairs=False, scale=1.5):
    n = int(rng.integers(2, 8))
    names = [f"v{i}" for i in range(n)]
    cards = {v: int(rng.integers(1, 4)) for v in names}
    factors = [mk.Factor([v], np.exp(rng.normal(0, scale, k))) for v, k in cards.items()]
    for _ in range(int(rng.integers(1, 10))):
        scope = [
            str(v) for v in rng.choice(names, 2 if pairs else min(n, int(rng.integers(2, 4))), replace=False)
        ]
        table = np.exp(rng.normal(0, scale, [cards[v] for v in scope]))
        factors.append(mk.Factor(scope, np.where(rng.random(table.shape) < zeros, 0.0, table)))
    return mk.MarkovNetwork(cards, factors)


def graph_of(model):
    return flat_graph(Problem({n: model.variable(n) for n in model.variables}, model.pieces(), {}))


def every_weight(graph):
    shape = tuple(graph.cards.tolist())
    return graph.log_weights(np.array(list(product(*map(range, shape))))).reshape(shape)


def scores(buckets, codes):
    """Return the score of every beginning of a configuration, worked out table by table."""
    t, held, found = buckets.tables, {}, [buckets.bound]

    def entry(table, places):
        return t.values[t.base[table] + sum(t.strides[e] * held[t.scope[e]] for e in places)]

    for depth, variable in enumerate(buckets.order.tolist()):
        score = found[-1]
        for table in t.leaving[t.leaving_ptr[depth] : t.leaving_ptr[depth + 1]]:
            score = score - entry(table, range(t.scope_ptr[table], t.scope_ptr[table + 1]))
        held[t.slot[depth]] = codes[variable]
        for table in t.joining[t.joining_ptr[depth] : t.joining_ptr[depth + 1]]:
            score = score + entry(table, range(t.scope_ptr[table], t.scope_ptr[table + 1]))
        if score == -np.inf:
            return found + [score] * (len(codes) - depth)
        found.append(score)
    return found


@pytest.mark.parametrize("most", [0, 1, 6, 4096])
@pytest.mark.parametrize("pairs", [False, True], ids=["tables", "pairs"])
def test_the_score_of_a_beginning_bounds_all_that_begin_so_and_is_the_weight_at_the_end(most, pairs):
    rng = np.random.default_rng(most + pairs)
    for trial in range(12):
        graph = graph_of(random_model(rng, zeros=0.25 * (trial % 2), pairs=pairs))
        if graph.log_scale == -np.inf:
            continue
        weights = every_weight(graph)
        buckets = mini_buckets(graph, search_order(graph), most)
        assert buckets.bound >= weights.max() - 1e-9
        if buckets.bound == -np.inf:
            continue
        if most == 4096:
            assert buckets.split == 0
            assert buckets.bound == pytest.approx(weights.max(), abs=1e-9)
        for codes in product(*map(range, weights.shape)):
            own = scores(buckets, codes)
            assert own[-1] == pytest.approx(weights[codes], abs=1e-9)
            assert np.all(
                np.diff([s for s in own if s > -np.inf]) <= 1e-9
            )  # so each bounds what comes after it


ENGINES = [
    BeamSearch(), BeamSearch(width=1), BeamSearch(width=1, lookahead=0), BeamSearch(width=2, lookahead=1),
    BeamSearch(width=2000, lookahead=0), AStar(), AStar(table_limit=1), AStar(table_limit=4, max_nodes=7),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_bounds_hold_and_claims_are_true_beside_brute_force(engine, monkeypatch):
    monkeypatch.setattr(a_star, "WIDTH", 1)  # a beam any wider leaves nothing to search on such models
    monkeypatch.setattr(a_star, "FEW", 5)
    rng = np.random.default_rng(3)
    ends = set()
    for trial in range(60):
        model = random_model(rng, zeros=0.3 * (trial % 3 == 0), scale=3.0 if trial % 2 else 1.0)
        best = every_weight(graph_of(model)).max()
        try:
            found = model.map(engine=engine)
        except mk.errors.MarkoviaError:
            # zeros rule out everything, or what a narrow beam kept
            assert best == -np.inf or (engine.width == 1 and engine.lookahead == 0)
            continue
        assert found.log_weight <= best + 1e-9
        assert found.bound >= best - 1e-9
        assert not found.info.exact or found.log_weight == pytest.approx(best, abs=1e-8)
        if isinstance(engine, AStar):
            ends.add(found.info.details.ended)
            assert found.info.exact == (found.info.details.ended == "proved") or found.gap == 0.0
        elif engine.width == 2000 or engine.lookahead == 4096:
            assert found.info.exact
    if isinstance(engine, AStar):
        assert ends >= ({"proved"} if engine.max_nodes > 7 else {"proved", "memory"})


def test_best_first_search_finds_and_proves_the_best_from_a_poor_beginning(monkeypatch):
    def poor(graph, buckets, width, deadline):
        return beam_search.Beam(np.zeros(len(graph.cards), dtype=np.int64), True, buckets.bound, 0)

    monkeypatch.setattr(a_star, "beam", poor)
    monkeypatch.setattr(a_star, "FEW", 50)  # a hash table this small is full of other nodes
    extended = 0
    for seed in range(4):
        spins = mk.generators.ising_grid(5, 6, coupling="random", field="random", seed=seed)
        truth = spins.map(engine="junction-tree").log_weight
        for limit in (1, 8):
            found = spins.map(engine=AStar(table_limit=limit))
            assert found.info.exact
            assert found.log_weight == pytest.approx(truth, abs=1e-8)
            assert found.info.details.first_bound >= truth - 1e-9
            extended += found.info.details.extended
    assert extended > 1000


def test_beginnings_of_one_hash_are_told_apart(monkeypatch):
    home = "markovia.kernels.maximising.prefix_search"
    plain = plain_code(f"{home}:best_first")
    monkeypatch.setitem(_plain_module(home).best_first.__globals__, "_hash", lambda *_: 0)
    monkeypatch.setattr(import_module(home), "best_first", plain)
    monkeypatch.setattr(a_star, "WIDTH", 1)
    monkeypatch.setattr(beam_search, "polished", lambda graph, codes: codes)
    rng = np.random.default_rng(6)
    names = [f"v{i}" for i in range(10)]
    for _ in range(3):
        scopes = [[str(v) for v in rng.choice(names, 3, replace=False)] for _ in range(16)]
        tables = [mk.Factor(scope, np.exp(rng.normal(size=(2, 2, 2)))) for scope in scopes]
        model = mk.MarkovNetwork(dict.fromkeys(names, 2), tables)
        found = model.map(engine=AStar(table_limit=1, max_nodes=2000))
        assert found.info.exact
        assert found.log_weight == pytest.approx(every_weight(graph_of(model)).max(), abs=1e-8)


def test_a_wider_beam_throws_away_less_and_a_narrow_one_can_be_wrong():
    # the first of a chain is better in state 0, which rules the best end out
    model = mk.MarkovNetwork(
        {"a": 2, "b": 2}, [mk.Factor(["a"], [2.0, 1.0]), mk.Factor(["a", "b"], [[1.0, 1.0], [9.0, 1.0]])]
    )
    greedy = model.map(engine=BeamSearch(width=1, lookahead=0))
    wide = model.map(engine=BeamSearch(width=2, lookahead=0))
    assert wide.to_dict() == {"a": 1, "b": 0}
    assert wide.info.exact
    assert wide.info.details.pruned == 0
    graph = graph_of(model)
    narrow = beam(graph, mini_buckets(graph, np.arange(2), 0), 1)
    assert narrow.pruned == 1
    assert narrow.bound == pytest.approx(np.log(9.0))
    assert greedy.bound >= np.log(9.0) - 1e-12


def test_beginnings_that_leave_the_same_behind_count_once():
    # a chain of k states needs a beam of k only, however long it is
    rng = np.random.default_rng(1)
    names = [f"x{t}" for t in range(60)]
    links = [mk.Factor([a, b], np.exp(rng.normal(size=(4, 4)))) for a, b in pairwise(names)]
    chain = mk.MarkovNetwork(dict.fromkeys(names, 4), links)
    found = chain.map(engine=BeamSearch(width=4, lookahead=0))
    assert found.info.exact
    assert found.info.details.pruned == 0
    assert found.log_weight == pytest.approx(chain.map(engine="junction-tree").log_weight, abs=1e-9)


def test_an_impossible_model_is_no_answer_and_memory_that_is_too_small_a_bound():
    odd = mk.MarkovNetwork(
        {"a": 2, "b": 2}, [mk.Factor(["a", "b"], np.eye(2)), mk.Factor(["a", "b"], 1 - np.eye(2))]
    )
    ring = [mk.Factor([u, v], 1 - np.eye(2)) for u, v in ("ab", "bc", "ca")]
    for model in (odd, mk.MarkovNetwork(dict.fromkeys("abc", 2), ring)):
        for engine in (BeamSearch(), BeamSearch(lookahead=0), AStar(), AStar(table_limit=1)):
            with pytest.raises(mk.errors.MarkoviaError, match=r"zero|positive|impossible"):
                model.map(engine=engine)
    spins = mk.generators.ising_grid(12, 12, coupling="random", field="random", seed=3)
    with pytest.warns(mk.errors.ConvergenceWarning, match="max_nodes"):
        found = spins.map(engine=AStar(table_limit=4, max_nodes=500))
    assert found.info.details.ended == "memory"
    assert not found.info.exact
    assert (
        found.log_weight
        <= spins.map(engine="junction-tree").log_weight
        <= found.bound
        <= found.info.details.first_bound
    )


def test_time_that_is_up_narrows_the_beam_and_leaves_a_bound(monkeypatch):
    spins = mk.generators.ising_grid(8, 8, coupling="random", field="random", seed=0)
    truth = spins.map(engine="junction-tree").log_weight
    clock = iter(range(10**6))
    monkeypatch.setattr(beam_search, "now", lambda: float(next(clock)))
    monkeypatch.setattr(beam_search, "WORK", 1)
    with pytest.warns(mk.errors.ConvergenceWarning):
        late = spins.map(engine=BeamSearch(lookahead=2, time_limit=10.0))
    assert late.log_weight <= truth <= late.bound


def test_the_unit_of_weights_changes_nothing_and_engines_travel():
    rng = np.random.default_rng(8)
    tables = [
        (["a", "b"], rng.random((3, 3))),
        (["b", "c"], rng.random((3, 3))),
        (["c", "a"], rng.random((3, 3))),
    ]
    answers = []
    for unit in (1e-9, 1.0, 1e9):
        model = mk.MarkovNetwork(dict.fromkeys("abc", 3), [mk.Factor(s, unit * t) for s, t in tables])
        for engine in (AStar(table_limit=1), BeamSearch(width=3, lookahead=1)):
            found = model.map(engine=pickle.loads(pickle.dumps(engine)))
            answers.append((tuple(found.to_dict().items()), round(found.log_weight - 3 * np.log(unit), 9)))
    assert len(set(answers)) == 1
