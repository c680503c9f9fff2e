"""Plans: what is cached, what the search minds, and which cliques run side by side."""

from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from markovia.factors.tables.variable import Variable
from markovia.inference.exact import tree_plan
from markovia.inference.exact.tree_plan import CompiledTree, TreeStructure, forget_plans, plan_for
from markovia.runtime.threads import in_parallel, thread_count

seeds = st.integers(0, 2**32 - 1)


def random_structure(rng, most=40, card=None):
    n = int(rng.integers(1, most))
    scopes = [[int(v) for v in rng.permutation(n)[: rng.integers(1, min(4, n) + 1)]] for _ in range(n)]
    return [int(c) for c in rng.integers(1, 4, size=n)] if card is None else [card] * n, scopes


def entries(plan):
    return [prod(plan.card[plan.clique_slots(c)].tolist()) for c in range(plan.n_cliques)]


def test_a_structure_is_planned_once_and_each_setting_has_its_own_plan():
    forget_plans()
    shape = ([2, 2, 3], [[0, 1], [1, 2], [2, 0]])
    plan = plan_for(TreeStructure(*shape))
    assert plan_for(TreeStructure(*shape)) is plan
    assert plan_for(TreeStructure(*shape), effort=2.0) is not plan
    assert plan_for(TreeStructure(*shape), last=[0]) is not plan
    assert plan_for(TreeStructure([2, 2, 4], shape[1])) is not plan
    assert plan_for(TreeStructure(shape[0], [[0, 1], [1, 2], [0, 2]])) is not plan
    forget_plans()
    again = plan_for(TreeStructure(*shape))
    assert again is not plan
    assert np.array_equal(again.program, plan.program)


def test_a_structure_of_named_variables_has_their_places_as_ids():
    a, b, c = Variable("a", 2), Variable("b", 3), Variable("c", 4)
    named = TreeStructure.over({"a": a, "b": b, "c": c}, [(c, a), (), (b,)])
    assert named.key == TreeStructure([2, 3, 4], [[2, 0], [], [1]]).key


def test_tables_of_any_layout_and_precision_are_loaded_one_after_the_other():
    plan = plan_for(TreeStructure([2, 3], [[0, 1], [1, 0], [1]]))
    tables = [
        np.arange(6.0).reshape(2, 3),
        np.arange(6.0, 12.0).reshape(2, 3).T,
        np.arange(3, dtype=np.float32),
    ]
    for some in ([0], [1], [2], [0, 0, 1], [0, 2], [0, 1, 2], []):
        loaded = CompiledTree(plan, [Variable("a", 2), Variable("b", 3)], [tables[i] for i in some]).raw
        assert loaded.dtype == np.float64
        assert loaded.tolist() == [float(x) for i in some for x in tables[i].ravel()]


def test_the_cache_keeps_what_was_used_last(monkeypatch):
    forget_plans()
    monkeypatch.setattr(tree_plan, "CACHED_PLANS", 2)
    first, second = plan_for(TreeStructure([2], [[0]])), plan_for(TreeStructure([3], [[0]]))
    assert plan_for(TreeStructure([2], [[0]])) is first
    plan_for(TreeStructure([4], [[0]]))
    assert plan_for(TreeStructure([2], [[0]])) is first
    assert plan_for(TreeStructure([3], [[0]])) is not second


def test_models_of_one_shape_share_a_plan():
    engine = mk.engines.JunctionTree()
    models = [mk.BayesianNetwork("a->b->c<-a", tables="random", seed=s) for s in range(2)]
    first, second = (engine.plan(m._problem(None)) for m in models)
    assert first is second


@sampled(seed=seeds)
@settings(max_examples=60)
def test_a_given_order_is_used_and_the_total_is_that_of_its_cliques(seed):
    rng = np.random.default_rng(seed)
    card, scopes = random_structure(rng, 12)
    order = rng.permutation(len(card)).tolist()
    plan = plan_for(TreeStructure(card, scopes), order=order)
    assert plan.order.tolist() == order
    own = np.diff(plan.clique_start) > plan.n_separator  # helper cliques remove nothing and do not count
    sizes = [size for size, counts in zip(entries(plan), own, strict=True) if counts]
    assert plan.total == sum(sizes)
    assert plan.largest == max(sizes)
    assert plan.n_maximal == len(sizes)
    assert plan.width == max(len(plan.clique_slots(c)) for c in range(plan.n_cliques)) - 1
    assert plan.entries_given(np.zeros(len(card), dtype=np.int64)) == plan.n_cliques
    searched = plan_for(TreeStructure(card, scopes), effort=100.0)
    assert sorted(searched.order.tolist()) == sorted(order)


@sampled(seed=seeds)
@settings(max_examples=60)
def test_variables_to_eliminate_last_come_last(seed):
    rng = np.random.default_rng(seed)
    card, scopes = random_structure(rng, 15)
    last = rng.permutation(len(card))[: rng.integers(1, len(card) + 1)].tolist()
    plan = plan_for(TreeStructure(card, scopes), last=last)
    assert set(plan.order.tolist()[len(card) - len(last) :]) == set(last)


@sampled(seed=seeds)
@settings(max_examples=60)
def test_a_schedule_runs_every_clique_once_and_children_before_parents(seed):
    rng = np.random.default_rng(seed)
    card, scopes = random_structure(rng, 60, card=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MARKOVIA_THREADS", str(rng.integers(1, 5)))
        patch.setattr(tree_plan, "PARALLEL", 1)
        patch.setattr(tree_plan, "SPLIT", int(rng.integers(1, 40)))
        patch.setattr(tree_plan, "STRETCH", int(rng.choice([1, 30, 1000])))
        forget_plans()
        plan = plan_for(TreeStructure(card, scopes))
        below, above = plan.schedule
    forget_plans()
    runs = [*below, *above]
    assert sorted(c for first, last in runs for c in range(first, last)) == list(range(plan.n_cliques))
    parent = plan.parent.tolist()
    for first, last in below:  # nothing outside sends into a subtree that runs on its own
        assert not [c for c, p in enumerate(parent) if first <= p < last and not first <= c < last]
    done = {c for first, last in below for c in range(first, last)}
    for first, last in above:
        for c in range(first, last):
            assert all(k in done for k, p in enumerate(parent) if p == c)
            done.add(c)


def test_a_small_tree_runs_in_one_piece_and_a_large_one_in_several(monkeypatch):
    monkeypatch.setenv("MARKOVIA_THREADS", "2")
    forget_plans()
    chain = plan_for(TreeStructure([2] * 5, [[i, i + 1] for i in range(4)]))
    assert chain.schedule == ([], [(0, chain.n_cliques)])
    wide = plan_for(TreeStructure([32] * 60, [[i, i + 1, i + 2] for i in range(58)]))
    assert wide.total > tree_plan.PARALLEL
    assert len(wide.schedule.below) > 1
    forget_plans()


def test_a_plan_beyond_all_memory_is_described_without_being_laid_out():
    plan = plan_for(TreeStructure([2] * 60, [list(pair) for pair in combinations(range(60), 2)]))
    assert plan.n_cliques == 1
    assert plan.width == 59
    assert plan.total == 2.0**60
    assert plan.bytes >= 8 * 2.0**60
    assert len(plan.program) < 20_000


def test_the_number_of_threads_is_what_the_environment_says(monkeypatch):
    monkeypatch.setenv("MARKOVIA_THREADS", "3")
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert thread_count() == 3
    monkeypatch.delenv("MARKOVIA_THREADS")
    assert thread_count() == 5
    for nonsense in ("many", "0", "-1", ""):
        monkeypatch.setenv("MARKOVIA_THREADS", nonsense)
        assert thread_count() == 5
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert thread_count() >= 1


def test_parallel_work_comes_back_in_order_with_a_room_for_each_thread():
    rooms = []

    def make_room():
        rooms.append(object())
        return rooms[-1]

    found = in_parallel(lambda task, room: (task * task, room in rooms), range(50), make_room, threads=3)
    assert found == [(k * k, True) for k in range(50)]
    assert 1 <= len(rooms) <= 3
    assert in_parallel(lambda task, room: task, [], make_room) == []


def test_an_error_in_parallel_work_comes_out_and_the_next_work_runs():
    def fail(task, room):
        raise ValueError(f"task {task}")

    with pytest.raises(ValueError, match="task"):
        in_parallel(fail, range(10), lambda: None, threads=2)
    assert in_parallel(lambda task, room: -task, range(4), lambda: None, threads=2) == [0, -1, -2, -3]
