"""Greedy equivalence search: its moves against brute force, its answers against the truth and another library."""

import numpy as np
import pytest

import markovia as mk
from markovia.graphs.kinds.masks import members
from markovia.structure.classes_and_orders import cpdag_moves
from markovia.structure.classes_and_orders.cpdag_changes import LocalMember, put
from markovia.structure.classes_and_orders.cpdag_masks import ClassGraph, extension, topological
from markovia.structure.classes_and_orders.ges import ges
from markovia.structure.scores import family_rows
from markovia.structure.scores.family_rows import FamilyRows
from structure_scores_by_hand import (
    CovarianceBIC,
    all_classes,
    all_dags,
    covariance_of,
    is_acyclic,
    key,
    masks_of,
    random_dag,
    sampled_covariance,
    task_for,
)


def neighbours_by_hand(kind, dags):
    """The classes that one changed edge of some member leads to."""
    found = set()
    for dag in dags:
        n = len(dag)
        for x in range(n):
            for y in range(n):
                changed = list(dag)
                if kind == "insert" and x != y and not (dag[x] >> y | dag[y] >> x) & 1:
                    changed[y] |= 1 << x
                elif kind == "delete" and dag[y] >> x & 1:
                    changed[y] &= ~(1 << x)
                elif kind == "turn" and dag[x] >> y & 1:
                    changed[x] &= ~(1 << y)
                    changed[y] |= 1 << x
                else:
                    continue
                if is_acyclic(changed):
                    found.add(key(ClassGraph.of_parents(changed)))
    return found - {key(ClassGraph.of_parents(dags[0]))}


def made(graph, move):
    """The class a move leads to and a member of it, after checking that what was found locally is the whole class."""
    change = cpdag_moves.after(graph, move)
    assert change is not None
    before = put(graph, change)
    new = ClassGraph(list(graph.parents), list(graph.joined))
    assert (new.children, new.adjacent) == (graph.children, graph.adjacent)
    put(graph, before)
    dag = extension(new.parents, new.joined)
    assert dag is not None
    assert is_acyclic(dag)
    assert new.same(ClassGraph.of_parents(dag))
    return new, dag


@pytest.mark.parametrize("kind", ["insert", "delete", "turn"])
def test_the_moves_of_every_class_of_four_nodes_lead_to_all_its_neighbours_with_the_right_gains(
    kind, monkeypatch
):
    monkeypatch.setattr(cpdag_moves, "LEAST_GAIN", -np.inf)
    monkeypatch.setattr(family_rows, "LEAST_GAIN", -np.inf)
    rng = np.random.default_rng(0)
    score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 4, 0.7), 50), 50)
    rows = FamilyRows(score, ~np.eye(4, dtype=bool))
    for dags in all_classes().values():
        graph = ClassGraph.of_parents(dags[0])
        value = rows.total(dags[0])
        reached = set()
        for y in range(4):
            if kind == "insert":
                moves = cpdag_moves.inserts(graph, rows, y, 3)
            elif kind == "delete":
                moves = cpdag_moves.scored(rows, cpdag_moves.deletes(graph, y))
            else:
                moves = cpdag_moves.scored(rows, cpdag_moves.turns(graph, y, 3))
            for move in moves:
                if cpdag_moves.closing_path(graph, move) is None:
                    new, dag = made(graph, move)
                    assert move.gain == pytest.approx(rows.total(dag) - value, abs=1e-8)
                    reached.add(key(new))
        assert reached == neighbours_by_hand(kind, dags)


def test_moves_of_random_classes_of_six_nodes_can_be_made_and_gain_what_they_say(monkeypatch):
    monkeypatch.setattr(cpdag_moves, "LEAST_GAIN", -np.inf)
    monkeypatch.setattr(family_rows, "LEAST_GAIN", -np.inf)
    rng = np.random.default_rng(1)
    for _ in range(15):
        dag = random_dag(rng, 6, rng.uniform(0.2, 0.8))
        rows = FamilyRows(CovarianceBIC(sampled_covariance(rng, dag, 60), 60), ~np.eye(6, dtype=bool))
        graph, value = ClassGraph.of_parents(dag), rows.total(dag)
        for y in range(6):
            for move in [
                *cpdag_moves.inserts(graph, rows, y, 5),
                *cpdag_moves.scored(rows, cpdag_moves.deletes(graph, y)),
                *cpdag_moves.scored(rows, cpdag_moves.turns(graph, y, 5)),
            ]:
                if cpdag_moves.closing_path(graph, move) is None:
                    _, changed = made(graph, move)
                    assert move.gain == pytest.approx(rows.total(changed) - value, abs=1e-8)


def test_classes_in_masks_agree_with_the_graphs_of_the_library():
    rng = np.random.default_rng(2)
    for _ in range(40):
        dag = random_dag(rng, 7, rng.uniform(0.1, 0.9))
        names = [f"v{i}" for i in range(7)]
        edges = [(names[x], names[y]) for y in range(7) for x in members(dag[y])]
        graph = ClassGraph.of_parents(dag)
        assert graph.named(names) == mk.graphs.cpdag(mk.graphs.DAG(edges, nodes=names))
        local = LocalMember(graph)
        for member in ([local.parents(v) for v in range(7)], extension(graph.parents, graph.joined)):
            assert graph.same(ClassGraph.of_parents(member))
        place = {v: k for k, v in enumerate(topological(dag))}
        assert all(place[x] < place[y] for y in range(7) for x in members(dag[y]))


@pytest.mark.parametrize("phases", [("forward", "backward"), ("forward", "backward", "turning")])
def test_the_true_class_is_found_from_the_covariance_of_the_population(phases):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        dag = random_dag(rng, int(rng.integers(2, 10)), rng.uniform(0.1, 0.5))
        score = CovarianceBIC(covariance_of(rng, dag), 1e10)
        found = ges(task_for(score), phases=phases)
        names = score.data.names
        assert found.graph == ClassGraph.of_parents(dag).named(names)


def test_on_few_rows_the_best_class_of_all_is_usually_found_and_never_surpassed():
    hits = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        score = CovarianceBIC(sampled_covariance(rng, random_dag(rng, 4, 0.6), 40), 40)
        rows = FamilyRows(score, ~np.eye(4, dtype=bool))
        best = max(rows.total(dag) for dag in all_dags())
        found = ges(task_for(score))
        assert found.score <= best + 1e-9
        assert found.score == pytest.approx(rows.total(masks_of(mk.graphs.extend(found.graph))))
        assert found.path[-1].score == pytest.approx(found.score)
        hits += found.score > best - 1e-9
    assert hits >= 20


def test_the_score_is_at_least_that_of_causal_learn():
    from causallearn.search.ScoreBased.GES import ges as other

    better = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        dag = random_dag(rng, 7, 0.4)
        data = rng.multivariate_normal(np.zeros(7), covariance_of(rng, dag), size=200)
        theirs = other(data, score_func="local_score_BIC")["G"].graph
        graph = ClassGraph(
            [sum(1 << x for x in range(7) if theirs[y, x] == 1 and theirs[x, y] == -1) for y in range(7)],
            [sum(1 << x for x in range(7) if theirs[y, x] == -1 and theirs[x, y] == -1) for y in range(7)],
        )
        score = CovarianceBIC(np.cov(data.T, bias=True), 200)
        rows = FamilyRows(score, ~np.eye(7, dtype=bool))
        value = rows.total(extension(graph.parents, graph.joined))
        mine = ges(task_for(score)).score
        assert mine >= value - 1e-6
        better += mine > value + 1e-6
    assert better < 4


def test_knowledge_is_obeyed_by_some_member_and_directs_what_it_settles():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        dag = random_dag(rng, 6, 0.5)
        score = CovarianceBIC(sampled_covariance(rng, dag, 100), 100)
        names = score.data.names
        order = [str(v) for v in rng.permutation(names)]
        tiers = [order[:2], order[2:4], order[4:]]
        required = [(order[0], order[4])]
        forbidden = [(order[2], order[3]), (order[3], order[2]), (order[1], order[5])]
        task = task_for(score, tiers=tiers, required=required, forbidden=forbidden, max_parents=2)
        found = ges(task)
        graph = found.graph
        assert mk.graphs.meek(graph) == graph
        member = masks_of(mk.graphs.extend(graph))
        for y in range(6):
            assert member[y].bit_count() <= 2
            assert all(task.rules.allowed[x, y] for x in members(member[y]))
        for a, b in required:
            assert b in graph.children(a)
        assert not graph.adjacent(order[2], order[3])
        assert found.score == pytest.approx(FamilyRows(score, task.rules.pairs).total(member))


def test_tiers_leave_a_partly_directed_graph_and_the_truth_is_found_with_them():
    for seed in range(15):
        rng = np.random.default_rng(seed)
        dag = random_dag(rng, 7, 0.35)
        score = CovarianceBIC(covariance_of(rng, dag), 1e8)
        order = [score.data.names[v] for v in topological(dag)]
        task = task_for(score, tiers=[order[:3], order[3:]])
        wanted = ClassGraph.of_parents(dag).informed(task.rules)
        assert ges(task).graph == wanted.named(score.data.names)


def test_knowledge_that_no_member_can_obey_is_found_out():
    rules = task_for(CovarianceBIC(np.eye(3), 10), forbidden=[("v0", "v1")]).rules
    collider = ClassGraph.of_parents([0, 0b101, 0])
    assert collider.informed(rules) is None
    chain = ClassGraph.of_parents([0, 0b001, 0b010])
    assert [members(m) for m in chain.informed(rules).parents] == [[1], [], []]


def test_tables_of_a_network_are_learned_and_a_limit_keeps_the_best_so_far():
    rows = mk.examples.sprinkler().sample(5000, seed=3)
    found = mk.learn_structure(rows, method="ges")
    assert found.cpdag == mk.graphs.cpdag(found.dag)
    assert mk.graphs.i_equivalent(found.dag, mk.examples.sprinkler().graph)
    assert found.details.moves["forward"] >= 4
    stopped = mk.learn_structure(rows, method="ges", time_limit=1e-9)
    assert stopped.stopped == "time limit"
    assert stopped.n_edges == 0


def test_a_score_that_tells_equivalent_graphs_apart_ends_too():
    rows = mk.examples.sprinkler().sample(400, seed=3)

    class Uneven(CovarianceBIC):
        equivalent = False

        def _one(self, child, parents):
            return super()._one(child, parents) - 0.5 * child * len(parents)

    score = Uneven(np.cov(rows.apply(lambda c: c.astype("category").cat.codes).to_numpy().T), 400)
    found = ges(task_for(score))
    member = masks_of(mk.graphs.extend(found.graph))
    assert found.score == pytest.approx(FamilyRows(score, ~np.eye(4, dtype=bool)).total(member))


def test_unknown_phases_are_named():
    with pytest.raises(mk.errors.InvalidArgument, match="'sideways'"):
        mk.learn_structure(mk.examples.sprinkler().sample(50, seed=0), method="ges", phases=["sideways"])
