"""Hill climbing, tabu search and K2: gains, legal moves, optima, knowledge, limits."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.data.tables.reading_mixed import read_mixed
from markovia.graphs.kinds.equivalence import cpdag
from markovia.structure.dag_search.edge_moves import ADD, REMOVE, REVERSE, EdgeMoves
from markovia.structure.scores.scores import bind_score
from markovia.structure.task.acyclicity import directed_graph

ASIA = mk.examples.asia()
ROWS = ASIA.sample(2000, seed=2)
NAMES = list(ROWS)
STUDY = read_mixed(ROWS)
DENSE = mk.generators.random_bayesian_network(12, max_parents=3, seed=5)


def moves_after(steps, seed, score="bic", least=-np.inf, **known):
    rules = mk.Knowledge(**known).rules(NAMES)
    required = [np.flatnonzero(column).tolist() for column in rules.required.T]
    moves = EdgeMoves(bind_score(score, STUDY), rules, required, least)
    moves.disturb(steps, np.random.default_rng(seed))
    return moves


def neighbours(edges):
    """All graphs one move away, by definition."""
    n = len(edges)
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            other = edges.copy()
            if edges[i, j]:
                other[i, j] = False
                yield (REMOVE, i, j), other
                turned = other.copy()
                turned[j, i] = True
                yield (REVERSE, i, j), turned
            elif not edges[j, i]:
                other[i, j] = True
                yield (ADD, i, j), other


def acyclic(edges):
    return nx.is_directed_acyclic_graph(nx.from_numpy_array(edges.astype(int), create_using=nx.DiGraph))


def total(score, edges):
    return score.total([np.flatnonzero(column).tolist() for column in edges.T])


@given(seed=st.integers(0, 10_000), steps=st.integers(0, 25), limit=st.sampled_from([None, 2]))
@settings(max_examples=20, deadline=None)
def test_kept_gains_and_legal_moves_are_those_of_the_definition(seed, steps, limit):
    known = {"forbidden": [(NAMES[0], NAMES[1])], "required": [(NAMES[2], NAMES[3])], "max_parents": limit}
    moves = moves_after(steps, seed, **known)
    rules, score = moves.rules, moves.score
    assert acyclic(moves.edges)
    now = total(score, moves.edges)
    assert moves.total == pytest.approx(now)
    gains = moves.gains()
    found = {(ADD, i, j): gains.adds[i, j] for i, j in np.argwhere(np.isfinite(gains.adds)).tolist()}
    for t, h, removed, turned in zip(gains.tails, gains.heads, gains.removes, gains.turns, strict=True):
        if np.isfinite(removed):
            found[REMOVE, int(t), int(h)] = removed
        if np.isfinite(turned):
            found[REVERSE, int(t), int(h)] = turned
    expected = {
        move: total(score, edges) - now
        for move, edges in neighbours(moves.edges)
        if acyclic(edges)
        and not (edges & ~rules.allowed).any()
        and not (rules.required & ~edges).any()
        and edges.sum(axis=0).max() <= rules.max_parents
    }
    assert found.keys() == expected.keys()
    for move, gain in expected.items():
        assert found[move] == pytest.approx(gain, abs=1e-6)
    best = moves.best()
    assert best is None or best.gain == pytest.approx(max(expected.values()), abs=1e-6)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_a_walk_through_equivalent_graphs_keeps_class_score_and_knowledge(seed):
    moves = moves_after(14, seed, required=[(NAMES[0], NAMES[4])], forbidden=[(NAMES[1], NAMES[2])])
    before, score = cpdag(directed_graph(moves.edges, NAMES)), moves.total
    moves.walk_in_class(100, np.random.default_rng(seed))
    assert cpdag(directed_graph(moves.edges, NAMES)) == before
    assert moves.total == pytest.approx(score)
    assert moves.edges[0, 4]
    assert not moves.edges[1, 2]
    moves.settle()
    fresh = EdgeMoves(moves.score, moves.rules, moves.parents, -np.inf)
    assert np.array_equal(fresh.blocked, moves.blocked)
    assert np.array_equal(fresh.edges, moves.edges)
    np.testing.assert_allclose(fresh.gains().adds, moves.gains().adds)
    np.testing.assert_allclose(fresh.gains().turns, moves.gains().turns)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_compiled_steps_are_those_of_plain_code(seed):
    from markovia.kernels.structure import edge_steps
    from markovia.structure.dag_search import edge_moves

    ends = []
    for kernel in (None, edge_steps):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(edge_moves, "_kernel", lambda kernel=kernel: kernel)
            moves = moves_after(10, seed, required=[(NAMES[0], NAMES[4])])
            rng = np.random.default_rng(seed)
            taken = []
            for k in range(8):
                moves.walk_in_class(30, rng)
                if k % 2:  # otherwise the step itself finds the ancestors it asks for
                    assert np.array_equal(moves.blocked, reached(moves.edges))
                move = moves.best()
                if move is None:
                    break
                taken.append(move)
                moves.apply(move)
            ends.append((taken, moves.edges, moves.parents, moves.total))
            assert moves.edges.T.nonzero()[1].tolist() == [p for own in moves.parents for p in own]
    assert [m[1:] for m in ends[0][0]] == [m[1:] for m in ends[1][0]]
    assert np.array_equal(ends[0][1], ends[1][1])
    assert ends[0][2] == ends[1][2]
    assert ends[0][3] == pytest.approx(ends[1][3])


def reached(edges):
    """`[i, j]`: a directed path leads from j to i, or they are the same."""
    paths = np.eye(len(edges), dtype=bool) | edges.T
    for _ in range(len(edges)):
        paths = (paths.astype(int) @ paths.astype(int)) > 0
    return paths


@given(seed=st.integers(0, 10_000), steps=st.integers(0, 20))
@settings(max_examples=15, deadline=None)
def test_the_short_lists_hold_the_best_move_wherever_one_gains(seed, steps):
    known = {"forbidden": [(NAMES[0], NAMES[1])], "required": [(NAMES[2], NAMES[3])], "max_parents": 3}
    whole, short = moves_after(steps, seed, **known), moves_after(steps, seed, least=0.0, **known)
    assert short.parents == whole.parents
    best, found = whole.best(), short.best()
    if best is not None and best.gain > whole.rounding:
        assert found[1:] == best[1:]
        assert found.gain == pytest.approx(best.gain)


@pytest.mark.parametrize("name", ["bic", "bdeu", "k2"])
def test_the_pairs_that_gain_are_those_computed_one_by_one(name):
    score = bind_score(name, STUDY)
    wanted = np.random.default_rng(0).random((score.n, score.n)) < 0.7
    np.fill_diagonal(wanted, False)
    found = score.gainful_pairs(wanted, 1.0)
    for j in range(score.n):
        gains = {i: score.local(j, [i]) - score.local(j) for i in range(score.n) if wanted[i, j]}
        expected = {i: gain for i, gain in gains.items() if gain > 1.0}
        assert dict(zip(found[j][0].tolist(), found[j][1].tolist(), strict=True)) == pytest.approx(expected)
        assert (np.diff(found[j][1]) <= 1e-9).all()


def test_tabu_search_is_never_below_hill_climbing():
    climbed = mk.learn_structure(STUDY, "hill-climb", score="bic")
    assert mk.learn_structure(STUDY, "tabu", score="bic").score >= climbed.score - 1e-6


@pytest.mark.parametrize("score", ["bic", "bdeu", "k2"])
@pytest.mark.parametrize("walks", [0, 5])
def test_no_single_edge_improves_the_result(score, walks):
    found = mk.learn_structure(STUDY, "hill-climb", score=score, walks=walks)
    bound = bind_score(score, STUDY)
    number = {name: i for i, name in enumerate(NAMES)}
    edges = np.zeros((len(NAMES), len(NAMES)), dtype=bool)
    for a, b in found.edges:
        edges[number[a], number[b]] = True
    assert total(bound, edges) == pytest.approx(found.score)
    assert all(total(bound, other) <= found.score + 1e-6 for _, other in neighbours(edges) if acyclic(other))


def test_every_step_of_a_climb_raises_the_score():
    found = mk.learn_structure(STUDY, "hill-climb", climbs=1)
    scores = [step.score for step in found.path]
    assert found.path[0].move == "start"
    assert all(b > a for a, b in pairwise(scores))
    assert scores[-1] == pytest.approx(found.score)
    assert found.details.steps == len(scores) - 1


def test_a_climb_without_restarts_gives_the_same_graph_each_time():
    assert mk.learn_structure(STUDY).graph == mk.learn_structure(STUDY, seed=5).graph


def test_climbs_with_walks_end_higher_than_plain_ones_on_the_whole():
    gains = []
    for seed in range(8):
        rows = mk.learn_structure(DENSE.sample(3000, seed=seed), walks=0)
        gains.append(mk.learn_structure(rows.data).score - rows.score)
    assert sum(gains) > 10.0
    assert sum(g > 1e-6 for g in gains) > sum(g < -1e-6 for g in gains)


def test_more_climbs_keep_the_best():
    one = mk.learn_structure(STUDY, climbs=1)
    found = mk.learn_structure(STUDY, climbs=4)
    assert found.score >= one.score - 1e-9
    ends = [k for k, step in enumerate(found.path) if step.move.startswith("climb")]
    assert len(ends) == 3
    tops = [found.path[k - 1].score for k in [*ends, len(found.path)]]
    assert found.score == pytest.approx(max(tops))


def test_restarts_keep_the_best_and_follow_the_seed():
    plain = mk.learn_structure(STUDY, walks=0)
    one = mk.learn_structure(STUDY, walks=0, restarts=4, perturbations=3, seed=1)
    two = mk.learn_structure(STUDY, walks=0, restarts=4, perturbations=3, seed=1)
    assert one.graph == two.graph
    assert one.score >= plain.score - 1e-9
    assert one.details.restarts == 4
    assert sum(step.move.startswith("restart") for step in one.path) == 4


def test_a_search_can_start_from_a_graph_and_stop_after_some_steps():
    found = mk.learn_structure(STUDY, start=ASIA, max_steps=0)
    assert set(found.edges) == set(ASIA.graph.edges)
    assert mk.learn_structure(STUDY, start=ASIA).score >= found.score
    assert mk.learn_structure(STUDY, max_steps=3, walks=0).n_edges == 3
    a, b = ASIA.graph.edges[0]
    with pytest.raises(mk.errors.InvalidArgument, match="forbidden edge"):
        mk.learn_structure(STUDY, start=ASIA, forbidden=[(a, b)])
    with pytest.raises(mk.errors.InvalidArgument, match="max_parents is 1"):
        mk.learn_structure(STUDY, start=ASIA, max_parents=1)
    with pytest.raises(mk.errors.CycleError):
        mk.learn_structure(STUDY, start=ASIA, required=[(b, a)])
    with pytest.raises(mk.errors.InvalidArgument, match="directed graph"):
        mk.learn_structure(STUDY, start="asia")
    with pytest.raises(mk.errors.InvalidArgument, match="restarts= is a whole number"):
        mk.learn_structure(STUDY, restarts=-1)


@pytest.mark.parametrize("method", ["hill-climb", "tabu", "k2"])
def test_searches_obey_what_is_known(method):
    tiers = [NAMES[:3], NAMES[3:]]
    required, forbidden = (NAMES[0], NAMES[7]), (NAMES[1], NAMES[5])
    found = mk.learn_structure(
        STUDY, method, score="aic", tiers=tiers, required=[required], forbidden=[forbidden], max_parents=2
    )
    assert required in found.edges
    assert forbidden not in found.edges
    assert all(len(found.dag.parents(n)) <= 2 for n in NAMES)
    assert not any(a in tiers[1] and b in tiers[0] for a, b in found.edges)
    bound = bind_score("aic", STUDY)
    number = {name: i for i, name in enumerate(NAMES)}
    expected = bound.total([[number[p] for p in found.dag.parents(n)] for n in NAMES])
    assert found.score == pytest.approx(expected)


@pytest.mark.parametrize("method", ["hill-climb", "tabu", "k2"])
def test_searches_stop_at_the_time_limit_with_a_graph(method):
    found = mk.learn_structure(STUDY, method, time_limit=1e-9)
    assert found.stopped == "time limit"
    assert found.n_edges == 0


def test_tabu_search_goes_on_after_the_optimum_and_returns_the_best():
    plain = mk.learn_structure(STUDY, walks=0)
    found = mk.learn_structure(STUDY, "tabu", length=5, max_worse=15, climbs=1)
    scores = [step.score for step in found.path]
    assert found.score == pytest.approx(max(scores))
    assert found.score >= plain.score - 1e-9
    assert min(scores[int(np.argmax(scores)) :]) < found.score - 1e-6
    best = int(np.argmax(np.array(scores) > found.score - 1e-6))
    assert len(scores) - 1 - best == 15
    with pytest.raises(mk.errors.InvalidArgument, match="length= is a whole number"):
        mk.learn_structure(STUDY, "tabu", length=0)


def test_tabu_search_leaves_a_pair_alone_that_it_just_changed():
    found = mk.learn_structure(STUDY, "tabu", length=6, max_worse=20, climbs=0)
    best, recent = -np.inf, []
    for step in found.path[1:]:
        pair = frozenset(step.move.split(" ", 1)[1].split(" -> "))
        assert pair not in recent[-6:] or step.score > best
        recent.append(pair)
        best = max(best, step.score)


def test_k2_finds_parents_along_the_order():
    order = ASIA.graph.topological_order()
    found = mk.learn_structure(ASIA.sample(20_000, seed=1), "k2", order=order)
    assert found.score_name == "k2"
    truth = set(ASIA.graph.edges)
    assert len(truth ^ set(found.edges)) <= 2
    place = {n: i for i, n in enumerate(order)}
    assert all(place[a] < place[b] for a, b in found.edges)
    assert mk.learn_structure(ROWS, "k2", score="bic").score_name == "bic"


def test_k2_checks_its_order():
    with pytest.raises(mk.errors.InvalidArgument, match="every variable once"):
        mk.learn_structure(STUDY, "k2", order=NAMES[1:])
    with pytest.raises(mk.errors.InvalidArgument, match="every variable once"):
        mk.learn_structure(STUDY, "k2", order=[*NAMES, NAMES[0]])
    with pytest.raises(mk.errors.UnknownVariable):
        mk.learn_structure(STUDY, "k2", order=["nobody", *NAMES[1:]])
    with pytest.raises(mk.errors.InvalidArgument, match="against the order"):
        mk.learn_structure(STUDY, "k2", order=NAMES, required=[(NAMES[3], NAMES[0])])


def test_continuous_and_mixed_data_are_climbed_too():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 1500)
    x = rng.normal(size=1500) + 2.0 * group
    y = -1.5 * x + rng.normal(size=1500)
    z = rng.normal(size=1500)
    found = mk.learn_structure({"x": x, "y": y, "z": z})
    assert found.score_name == "gaussian-bic"
    assert set(found.skeleton.edges) == {("x", "y")}
    found = mk.learn_structure({"x": x, "y": y, "group": group, "z": z})
    assert found.score_name == "cg-bic"
    assert {frozenset(e) for e in found.skeleton.edges} == {frozenset("xy"), frozenset(["x", "group"])}


def test_a_file_is_climbed_by_its_counts(tmp_path):
    frame = ROWS.astype(str)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    far = mk.learn_structure(tmp_path / "rows.csv", walks=0, names=NAMES)
    near = mk.learn_structure(frame, walks=0)
    assert far.score == pytest.approx(near.score)


@pytest.mark.parametrize("method", ["hill-climb", "tabu"])
def test_columns_with_one_state_stay_alone(method):
    rows = ROWS.assign(still="x")
    found = mk.learn_structure(rows, method, restarts=2, seed=1) if method == "hill-climb" else None
    found = found or mk.learn_structure(rows, method, max_worse=20)
    assert not any("still" in edge for edge in found.edges)
    assert not any("still" in step.move for step in found.path)
    kept = mk.learn_structure(rows, method, required=[("still", NAMES[0])])
    assert ("still", NAMES[0]) in kept.edges
