"""Searches over orders: BOSS, GRaSP and order-based search, against brute force and the truth."""

from itertools import combinations, permutations

import numpy as np
import pytest

import markovia as mk
from markovia.graphs.kinds.masks import mask_of, members
from markovia.structure.classes_and_orders.boss import _compiled_moves, _plain_moves, boss
from markovia.structure.classes_and_orders.cpdag_masks import ClassGraph, topological
from markovia.structure.classes_and_orders.grasp import grasp
from markovia.structure.classes_and_orders.grow_shrink import GrowShrinkOrder, GrowShrinkTrees
from markovia.structure.classes_and_orders.order_search import order_search
from markovia.structure.scores.family_rows import FamilyRows
from structure_scores_by_hand import (
    CovarianceBIC,
    all_dags,
    covariance_of,
    masks_of,
    random_dag,
    sampled_covariance,
    task_for,
)

METHODS = {"boss": boss, "grasp": grasp, "order-search": order_search}


def tools(score, **knowledge):
    task = task_for(score, **knowledge)
    rows = FamilyRows(score, task.rules.allowed)
    return task, rows, GrowShrinkTrees(rows, task.rules)


def grown_and_shrunk(score, child, before):
    """The parents of one child by plain greedy steps."""
    chosen, value = [], score.local(child)
    while len(chosen) < len(before):
        found = [(score.local(child, [*chosen, c]), -c) for c in before if c not in chosen]
        best, c = max(found)
        if best <= value + 1e-7:
            break
        chosen, value = [*chosen, -c], best
    while chosen:
        best, p = max((score.local(child, [q for q in chosen if q != p]), p) for p in chosen)
        if best <= value + 1e-7:
            break
        chosen, value = [q for q in chosen if q != p], best
    return mask_of(chosen), value


def test_trees_find_the_parents_that_plain_grow_and_shrink_finds():
    rng = np.random.default_rng(0)
    score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 7, 0.5), 80), 80)
    _, _, trees = tools(score)
    for _ in range(60):
        order = rng.permutation(7).tolist()
        state = GrowShrinkOrder(trees, order)
        for k, y in enumerate(order):
            parents, value = grown_and_shrunk(score, y, order[:k])
            assert state.parents()[y] == parents
            assert trees.score[state.node[y]] == pytest.approx(value)
        assert state.value == pytest.approx(
            sum(score.local(y, members(p)) for y, p in enumerate(state.parents()))
        )


@pytest.mark.parametrize("moves", [_plain_moves, _compiled_moves])
def test_the_scores_of_all_places_of_a_variable_are_those_of_the_orders(moves):
    rng = np.random.default_rng(1)
    score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 9, 0.4), 80), 80)
    _, _, trees = tools(score)
    for _ in range(8):
        order = rng.permutation(9).tolist()
        x, others = order[0], order[1:]
        low, high = sorted(rng.integers(0, 9, 2).tolist())
        totals = moves(trees, x, others, low, high)
        wanted = np.array(
            [GrowShrinkOrder(trees, [*others[:j], x, *others[j:]]).value for j in range(low, high + 1)]
        )
        np.testing.assert_allclose(totals - totals[0], wanted - wanted[0], atol=1e-8)


def test_a_rearranged_order_is_scored_as_a_new_one_and_can_be_taken_back():
    rng = np.random.default_rng(2)
    score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 8, 0.5), 80), 80)
    _, _, trees = tools(score)
    state = GrowShrinkOrder(trees, list(range(8)))
    for _ in range(30):
        start, end = sorted(rng.choice(9, 2, replace=False).tolist())
        value, order, nodes = state.value, list(state.order), list(state.node)
        old = state.rearrange(start, rng.permutation(state.order[start:end]).tolist())
        fresh = GrowShrinkOrder(trees, state.order)
        assert (fresh.node, fresh.place) == (state.node, state.place)
        assert fresh.value == pytest.approx(state.value)
        state.undo(start, old, value)
        assert (state.order, state.node, state.value) == (order, nodes, value)


@pytest.mark.parametrize("name", ["boss", "grasp"])
@pytest.mark.parametrize("order", ["ges", "data"])
def test_the_true_class_is_found_from_the_covariance_of_the_population(name, order):
    found = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        dag = random_dag(rng, int(rng.integers(2, 9)), rng.uniform(0.1, 0.5))
        score = CovarianceBIC(covariance_of(rng, dag), 1e8)
        got = METHODS[name](task_for(score), order=order)
        found += got.graph == ClassGraph.of_parents(dag).named(score.data.names)
    assert found >= 11


@pytest.mark.parametrize("name", list(METHODS))
def test_with_starts_the_best_graph_of_all_is_nearly_always_found_and_never_surpassed(name):
    hits = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 4, 0.6), 40), 40)
        rows = FamilyRows(score, ~np.eye(4, dtype=bool))
        best = max(rows.total(dag) for dag in all_dags())
        got = METHODS[name](task_for(score), starts=6)
        assert got.score <= best + 1e-9
        assert got.score == pytest.approx(rows.total(masks_of(mk.graphs.extend(got.graph))))
        hits += got.score > best - 1e-9
    assert hits >= 12


def test_listed_families_give_the_best_order_of_all():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 5, 0.6), 40), 40)

        def best(y, before, score=score):
            return max(score.local(y, s) for k in range(4) for s in combinations(before, k))

        wanted = max(sum(best(y, order[:k]) for k, y in enumerate(order)) for order in permutations(range(5)))
        got = order_search(task_for(score), families="listed", starts=8)
        assert got.score == pytest.approx(wanted)


@pytest.mark.parametrize("name", list(METHODS))
def test_knowledge_is_obeyed_by_some_member_and_directs_what_it_settles(name):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 6, 0.5), 100), 100)
        order = [str(v) for v in rng.permutation(score.data.names)]
        task = task_for(
            score,
            tiers=[order[:2], order[2:4], order[4:]],
            required=[(order[0], order[4]), (order[4], order[5])],
            forbidden=[(order[2], order[3]), (order[3], order[2]), (order[1], order[5])],
            max_parents=2,
        )
        got = METHODS[name](task, starts=2)
        member = masks_of(mk.graphs.extend(got.graph))
        assert mk.graphs.meek(got.graph) == got.graph
        assert max(own.bit_count() for own in member) <= 2
        assert all(task.rules.allowed[x, y] for y in range(6) for x in members(member[y]))
        assert order[4] in got.graph.children(order[0])
        assert order[5] in got.graph.children(order[4])
        assert not got.graph.adjacent(order[2], order[3])
        assert got.score == pytest.approx(FamilyRows(score, task.rules.pairs).total(member))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(METHODS))
def test_more_starts_are_never_worse_and_a_seed_settles_the_answer(name):
    rng = np.random.default_rng(5)
    score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 14, 0.4), 60), 60)
    values = [METHODS[name](task_for(score, seed=3), starts=k).score for k in (1, 2, 5)]
    assert values == sorted(values)
    again = METHODS[name](task_for(score, seed=3), starts=5)
    assert again.score == values[-1]
    assert again.graph == METHODS[name](task_for(score, seed=3), starts=5).graph


def shrinking_score():
    """A sum that has a close copy: the copy is the best single parent, and superfluous beside the two summands."""
    first, second = np.eye(2)
    copy = first + second
    loadings = np.array([[*copy, 0.6, 0.0], [*first, 0.0, 0.0], [*second, 0.0, 0.0], [*copy, 0.0, 0.3]])
    return CovarianceBIC(loadings @ loadings.T, 2000)


def test_a_parent_that_better_ones_replace_is_taken_away_again():
    score = shrinking_score()
    assert score.local(3, [0]) > max(score.local(3, [1]), score.local(3, [2]))
    assert score.local(3, [1, 2]) > score.local(3, [0, 1, 2])
    task, _, trees = tools(score)
    state = GrowShrinkOrder(trees, [0, 1, 2, 3])
    assert trees.grown[state.node[3]] == mask_of([0, 1, 2])
    assert state.parents() == [0, mask_of([0]), mask_of([0, 1]), mask_of([1, 2])]
    assert state.value == pytest.approx(
        sum(score.local(y, members(p)) for y, p in enumerate(state.parents()))
    )
    # no later phase is left that could take the copy away; both orders give the class of the truth
    wanted = ClassGraph.of_parents([mask_of([1, 2]), 0, 0, mask_of([1, 2])]).named(score.data.names)
    for moves in ([0, 1, 2, 3], [3, 2, 1, 0]):
        order = [score.data.names[v] for v in moves]
        assert boss(task, order=order, kicks=0, backward=False).graph == wanted
    kept = tools(score, required=[("v0", "v3")])[2]
    assert GrowShrinkOrder(kept, [0, 1, 2, 3]).parents()[3] == mask_of([0, 1, 2])


@pytest.mark.parametrize("seed", [105, 112, 114, 201])
def test_singular_tucks_find_more_than_covered_ones_and_tucks_of_any_edge_more_again(seed):
    rng = np.random.default_rng(seed)
    score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 4, 0.6), 200), 200)

    def found(singular_depth, any_depth):
        settings = {"depth": 1, "singular_depth": singular_depth, "any_depth": any_depth}
        return grasp(task_for(score), order="data", **settings).score

    assert found(0, 0) < found(1, 0) - 0.1
    assert found(1, 0) < found(1, 1) - 0.1
    rows = FamilyRows(score, ~np.eye(4, dtype=bool))
    assert found(1, 1) <= max(rows.total(dag) for dag in all_dags()) + 1e-9


def test_deeper_tucks_are_never_worse_where_they_begin_with_what_shallower_ones_found():
    better = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 8, 0.5), 200), 200)
        covered = grasp(task_for(score), order="data", depth=1, singular_depth=0, any_depth=0)
        begin = [score.data.names[v] for v in topological(masks_of(mk.graphs.extend(covered.graph)))]
        every = grasp(task_for(score), order=begin, depth=3)
        assert every.score >= covered.score - 1e-9
        better += every.score > covered.score + 1e-6
    assert better >= 3


@pytest.mark.parametrize("name", list(METHODS))
def test_rows_of_a_network_are_learned_by_name_and_a_limit_keeps_the_best_so_far(name):
    rows = mk.examples.sprinkler().sample(5000, seed=3)
    got = mk.learn_structure(rows, method=name, order=["wet", "rain", "sprinkler", "cloudy"], seed=0)
    assert mk.graphs.i_equivalent(got.dag, mk.examples.sprinkler().graph)
    assert got.score == pytest.approx(mk.learn_structure(rows, method="ges").score)
    stopped = mk.learn_structure(rows, method=name, time_limit=1e-9, order="data")
    assert stopped.stopped == "time limit"
    assert stopped.score <= got.score


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": ["cloudy"]}, "each of the 4 variables once"),
        ({"order": "best"}, "'ges', 'data' or a list"),
        ({"order": ["cloudy", "rain", "wet", "snow"]}, "snow"),
        ({"starts": 0}, "starts= is a whole number, 1 or more"),
    ],
)
@pytest.mark.parametrize("name", list(METHODS))
def test_bad_options_are_named(name, options, message):
    rows = mk.examples.sprinkler().sample(50, seed=3)
    with pytest.raises(mk.MarkoviaError, match=message):
        mk.learn_structure(rows, method=name, **options)


def test_an_order_is_topological_in_the_graph_it_stands_for():
    rng = np.random.default_rng(7)
    score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 8, 0.5), 100), 100)
    _, _, trees = tools(score)
    state = GrowShrinkOrder(trees, rng.permutation(8).tolist())
    assert GrowShrinkOrder(trees, topological(state.parents())).value >= state.value - 1e-9


def test_boss_goes_on_from_the_better_of_two_starts():
    better = {"ges": 0, "data": 0}
    for seed in range(12):
        rows = mk.generators.random_bayesian_network(9, max_parents=3, seed=seed).sample(300, seed=seed)
        score = {
            order: mk.learn_structure(rows, "boss", order=order, kicks=0, backward=False).score
            for order in ("ges", "data", "both")
        }
        assert score["both"] == pytest.approx(max(score["ges"], score["data"]), abs=1e-6)
        for order in better:
            better[order] += score[order] > min(score["ges"], score["data"]) + 1e-6
    assert all(better.values())  # neither start is always the better one
