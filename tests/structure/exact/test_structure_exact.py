"""Exact structure learning: the best graph equals the best of all graphs, with proof, bounds and limits."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.data.tables.reading_mixed import read_mixed
from markovia.runtime.clock import Clock
from markovia.structure.exact.order_problem import order_problems
from markovia.structure.scores.parent_set_scores import most_parents, scored_parent_sets
from markovia.structure.scores.scores import bind_score
from places import BENCHMARKS


def random_rows(n_variables, n_rows, seed, edges=0.5, cards=(2, 3)):
    rng = np.random.default_rng(seed)
    columns = {}
    for k in range(n_variables):
        own = int(rng.integers(cards[0], cards[1] + 1))
        parents = [f"x{j}" for j in range(k) if rng.random() < edges][-3:]
        code = np.zeros(n_rows, dtype=int)
        for p in parents:
            code = code * 4 + columns[p]
        tables = rng.dirichlet(np.full(own, 0.6), size=code.max() + 1)
        columns[f"x{k}"] = (
            (rng.random(n_rows)[:, None] > tables[code].cumsum(axis=1)).sum(axis=1).clip(0, own - 1)
        )
    order = rng.permutation(n_variables)
    return pd.DataFrame({f"x{k}": columns[f"x{k}"] for k in order})


def all_graphs(n):
    """The parent masks of every directed acyclic graph over n variables, one row a graph."""
    grid = (
        np.stack(np.meshgrid(*[np.arange(2**n)] * n, indexing="ij"), axis=-1).reshape(-1, n)
        if n < 4
        else None
    )
    if grid is None:
        choices = [np.array([m for m in range(2**n) if not m >> k & 1]) for k in range(n)]
        grid = np.stack(np.meshgrid(*choices, indexing="ij"), axis=-1).reshape(-1, n)
    left = np.full(len(grid), 2**n - 1)
    for _ in range(n):
        for k in range(n):
            left &= ~np.where((grid[:, k] & left) == 0, 1 << k, 0)
    return grid[left == 0]


GRAPHS = {4: all_graphs(4), 5: all_graphs(5)}


def members(mask):
    return tuple(k for k in range(mask.bit_length()) if mask >> k & 1)


def brute_force(rows, score, names, required=(), forbidden=(), max_parents=None, **reading):
    """The best score of all graphs that obey what is known."""
    bound = bind_score(score, read_mixed(rows, **reading))
    n = len(names)
    graphs = GRAPHS[n]
    for a, b in required:
        graphs = graphs[(graphs[:, names.index(b)] >> names.index(a) & 1) == 1]
    for a, b in forbidden:
        graphs = graphs[(graphs[:, names.index(b)] >> names.index(a) & 1) == 0]
    if max_parents is not None:
        few = np.array([m.bit_count() <= max_parents for m in range(2**n)])
        graphs = graphs[few[graphs].all(axis=1)]
    tables = np.zeros((n, 2**n))
    for k in range(n):
        masks = [m for m in range(2**n) if not m >> k & 1]
        tables[k, masks] = bound.many([(k, members(m)) for m in masks])
    return float(sum(tables[k][graphs[:, k]] for k in range(n)).max())


def test_the_graphs_are_all_there_are():
    assert len(GRAPHS[4]) == 543
    assert len(GRAPHS[5]) == 29281


@pytest.mark.parametrize(
    ("score", "algorithm"),
    [
        *((score, "dynamic-programming") for score in ("bic", "aic", "bdeu", "k2", "qnml", "log-likelihood")),
        *((score, "a-star") for score in ("bic", "bdeu")),
        *(pytest.param(s, "a-star", marks=pytest.mark.slow) for s in ("aic", "k2", "qnml", "log-likelihood")),
    ],
)
def test_the_best_of_five_variables_is_the_best_of_all_graphs(score, algorithm):
    for seed in range(3):
        rows = random_rows(5, [60, 300, 2000][seed], seed)
        names = list(rows.columns)
        found = mk.learn_structure(rows, "exact", score=score, algorithm=algorithm)
        assert found.optimal
        assert found.bound == pytest.approx(found.score, abs=1e-6)
        assert found.score == pytest.approx(brute_force(rows, score, names), abs=1e-6)
        parents = [[names.index(p) for p in found.dag.parents(n)] for n in names]
        assert bind_score(score, read_mixed(rows)).total(parents) == pytest.approx(found.score, abs=1e-6)


@pytest.mark.parametrize("algorithm", ["auto", "a-star"])
def test_knowledge_is_obeyed_and_the_rest_is_best(algorithm):
    for seed in range(4):
        rows = random_rows(5, 400, 10 + seed)
        names = list(rows.columns)
        rng = np.random.default_rng(seed)
        pairs = list(combinations(rng.permutation(names).tolist(), 2))
        required, forbidden = pairs[:2], [(b, a) for a, b in pairs[2:5]] + pairs[5:7]
        asked = {"required": required, "forbidden": forbidden, "max_parents": 2}
        found = mk.learn_structure(rows, "exact", algorithm=algorithm, **asked)
        assert found.optimal
        assert set(required) <= set(found.edges)
        assert not set(forbidden) & set(found.edges)
        assert max(len(found.dag.parents(n)) for n in names) <= 2
        assert found.score == pytest.approx(brute_force(rows, "bic", names, **asked), abs=1e-6)


def test_gaussian_data_have_a_best_graph_too():
    rng = np.random.default_rng(3)
    mixing = np.triu(rng.normal(size=(5, 5)), 1) * (rng.random((5, 5)) < 0.5)
    rows = pd.DataFrame(rng.normal(size=(200, 5)) @ np.linalg.inv(np.eye(5) - mixing), columns=list("abcde"))
    found = mk.learn_structure(rows, "exact")
    assert found.score_name == "gaussian-bic"
    assert found.score == pytest.approx(brute_force(rows, None, list("abcde")), abs=1e-6)


def test_both_algorithms_agree_on_more_variables():
    for seed in range(3):
        rows = random_rows(11, 500, 20 + seed, edges=0.25)
        known = {} if seed else {"required": [("x3", "x1"), ("x9", "x1")], "max_parents": 3}
        tables = mk.learn_structure(rows, "exact", algorithm="dynamic-programming", **known)
        paths = mk.learn_structure(rows, "exact", algorithm="a-star", **known)
        assert tables.optimal
        assert paths.optimal
        assert tables.score == pytest.approx(paths.score, abs=1e-6)
        assert tables.bound == pytest.approx(paths.bound, abs=1e-6)
        assert mk.learn_structure(rows, "hill-climb", **known).score <= paths.score + 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_paths_from_a_poor_start_reach_the_same_optimum(seed, monkeypatch):
    from markovia.structure.exact import shortest_path_search

    rows = random_rows(9, 300, 40 + seed, edges=0.3)
    best = mk.learn_structure(rows, "exact", algorithm="dynamic-programming").score

    def poor(problem, start, rng, rounds=None):
        placed, loss = 0, 0.0
        for k in start:
            loss += problem.loss(k, placed)
            placed |= 1 << k
        return list(start), loss

    monkeypatch.setattr(shortest_path_search, "local_order", poor)
    found = mk.learn_structure(rows, "exact", algorithm="a-star")
    assert found.optimal
    assert found.score == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_paths_that_outgrow_their_first_room_reach_the_same_optimum(seed, monkeypatch):
    from markovia.structure.exact import shortest_path_search as module

    rows, rooms, made = random_rows(9, 120, seed), [], module._nodes
    monkeypatch.setattr(module, "FIRST_ROOM", 1)
    monkeypatch.setattr(module, "local_order", lambda problem, start, *rest: (start, np.inf))
    monkeypatch.setattr(module, "_nodes", lambda room, *old: rooms.append(room) or made(room, *old))
    found = mk.learn_structure(rows, "exact", score="aic", algorithm="a-star")
    assert len(rooms) > 1
    best = mk.learn_structure(rows, "exact", score="aic", algorithm="dynamic-programming")
    assert found.score == pytest.approx(best.score, rel=1e-12)


@pytest.mark.parametrize("score", ["bic", "aic", "bdeu", "k2"])
def test_bounds_leave_out_only_sets_that_a_subset_beats(score):
    rows = random_rows(7, 150 if score in ("bic", "aic") else 40, 5)
    mixed = read_mixed(rows)
    bound = bind_score(score, mixed)
    rules = mk.Knowledge().rules(mixed.names)
    found = scored_parent_sets(bound, rules, Clock(progress=False))
    assert found.complete
    assert found.n_scored < 7 * 2**6
    for x in range(7):
        others = [k for k in range(7) if k != x]
        sets = [c for size in range(7) for c in combinations(others, size)]
        scores = dict(zip(sets, bound.many([(x, s) for s in sets]).tolist(), strict=True))
        needed = {
            s
            for s in sets
            if all(scores[s] > scores[t] + 1e-9 for size in range(len(s)) for t in combinations(s, size))
        }
        assert needed <= set(found.sets[x])
        kept = dict(zip(found.sets[x], found.scores[x].tolist(), strict=True))
        assert all(kept[s] == pytest.approx(scores[s], abs=1e-6) for s in kept)
        assert list(found.scores[x]) == sorted(found.scores[x], reverse=True)


def test_no_best_graph_under_bic_has_more_parents_than_the_bound():
    rows = random_rows(8, 100, 6, cards=(2, 2))
    found = mk.learn_structure(rows, "exact")
    assert max(len(found.dag.parents(n)) for n in found.nodes) <= most_parents(100)


def test_parts_that_cannot_form_cycles_are_solved_apart():
    rows = random_rows(6, 500, 7)
    first, second = sorted(rows.columns)[:3], sorted(rows.columns)[3:]
    found = mk.learn_structure(rows, "exact", tiers=[first, second])
    assert len(found.details.parts) >= 2
    assert all(set(p) <= set(first) or set(p) <= set(second) for p in found.details.parts)
    barred = [(a, b) for a in second for b in first]
    names = list(rows.columns)
    shrunk = mk.learn_structure(
        rows[names[:5]], "exact", forbidden=[e for e in barred if set(e) <= set(names[:5])]
    )
    allowed = [e for e in barred if set(e) <= set(names[:5])]
    assert shrunk.score == pytest.approx(
        brute_force(rows[names[:5]], "bic", names[:5], forbidden=allowed), abs=1e-6
    )


def test_a_problem_numbered_otherwise_is_the_same_problem():
    rows = random_rows(6, 300, 8)
    bound = bind_score("bic", read_mixed(rows))
    sets = scored_parent_sets(bound, mk.Knowledge().rules(list(rows.columns)), Clock(progress=False))
    problem = max(order_problems(sets), key=lambda p: p.m)
    order = np.random.default_rng(0).permutation(problem.m).tolist()
    other = problem.reordered(order)
    assert other.parents(range(problem.m)) == problem.parents(order)


def test_a_stop_gives_a_bound_that_holds():
    rows = random_rows(12, 200, 9, edges=0.5)
    best = mk.learn_structure(rows, "exact", score="aic", max_parents=4)
    assert best.optimal
    for nodes in (1, 40, 200):
        early = mk.learn_structure(
            rows, "exact", score="aic", max_parents=4, algorithm="a-star", max_nodes=nodes
        )
        assert early.score <= best.score + 1e-6
        assert early.bound >= best.score - 1e-6
        assert early.optimal == (early.bound - early.score < 1e-6)
    at_once = mk.learn_structure(rows, "exact", time_limit=1e-9)
    assert at_once.stopped == "time limit"
    assert not at_once.optimal
    assert at_once.bound is None


def test_what_does_not_fit_is_refused_beforehand():
    rows = random_rows(12, 100, 10, edges=0.5)
    with pytest.raises(mk.errors.TooLarge, match=r"dynamic programming over \d+ variables needs"):
        mk.learn_structure(
            rows, "exact", score="aic", max_parents=2, algorithm="dynamic-programming", max_gigabytes=1e-6
        )
    with pytest.raises(mk.errors.TooLarge, match="no bound"):
        mk.learn_structure(rows, "exact", score="log-likelihood", max_families=1000)
    with pytest.raises(mk.errors.TooLarge, match="families would have to be scored"):
        mk.learn_structure(rows, "exact", max_families=100)
    with pytest.raises(mk.errors.InvalidArgument, match="algorithm= is"):
        mk.learn_structure(rows, "exact", algorithm="magic")


def test_weighted_rows_count_as_often_as_they_weigh():
    rows = random_rows(6, 200, 11)
    times = np.random.default_rng(0).integers(1, 4, len(rows))
    repeated = mk.learn_structure(rows.loc[rows.index.repeat(times)], "exact")
    weighted = mk.learn_structure(rows, "exact", weights=times)
    assert weighted.score == pytest.approx(repeated.score, abs=1e-6)


def test_rows_in_a_file_give_the_same(tmp_path):
    rows = random_rows(5, 300, 12).astype(str)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    there = mk.learn_structure(tmp_path / "rows.csv", "exact")
    here = mk.learn_structure(rows, "exact")
    assert there.optimal
    assert there.score == pytest.approx(here.score, abs=1e-6)


def test_small_inputs():
    one = mk.learn_structure({"a": [0, 1, 1]}, "exact")
    assert one.optimal
    assert one.n_edges == 0
    same = mk.learn_structure({"a": [0, 1] * 30, "b": [0, 1] * 30, "c": [0] * 60}, "exact")
    assert same.skeleton.edges == [("a", "b")]


def benchmark(name):
    folder = BENCHMARKS
    path = Path(folder) / "bif" / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"the benchmark network {name} is not here")
    return mk.load(path)


def test_the_best_graph_of_asia_is_proven():
    rows = benchmark("asia").sample(2000, seed=1)
    found = mk.learn_structure(rows, "exact")
    assert found.optimal
    assert found.score >= mk.learn_structure(rows, "hill-climb").score - 1e-6


@pytest.mark.slow
def test_causal_learn_finds_the_same_optimum():
    search = pytest.importorskip("causallearn.search.ScoreBased.ExactSearch").bic_exact_search
    rng = np.random.default_rng(4)
    mixing = np.triu(rng.normal(size=(6, 6)), 1) * (rng.random((6, 6)) < 0.5)
    rows = rng.normal(size=(500, 6)) @ np.linalg.inv(np.eye(6) - mixing)
    graph, _ = search(rows, search_method="dp")
    ours = mk.learn_structure(pd.DataFrame(rows, columns=list("abcdef")), "exact")
    bound = bind_score(None, read_mixed(pd.DataFrame(rows, columns=list("abcdef"))))
    theirs = bound.total([np.flatnonzero(graph[:, k]).tolist() for k in range(6)])
    assert ours.score >= theirs - 1e-6


@pytest.mark.slow
def test_the_best_graph_of_child_is_proven():
    rows = benchmark("child").sample(10_000, seed=1)
    found = mk.learn_structure(rows, "exact")
    assert found.optimal
    assert found.score >= mk.learn_structure(rows, "hill-climb").score - 1e-6
