"""The effects over a class against those of each of its DAGs, found from the covariances alone."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from adjustment_checks import linear_model, random_problem
from markovia.causal import ida
from markovia.causal.identification.equivalence_classes import ancestral_members
from markovia.causal.identification.ida import PossibleEffects
from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs import DAG, MixedGraph, cpdag, equivalence_class, meek
from pag_checks import as_graph, markov_class, maximal_ancestral_graph, random_hidden_case, true_pag


def effects_in(dag, covariance, x, y):
    """Regress each node on its parents, cut the edges into x, and read off the total effects of x on y."""
    number = {name: i for i, name in enumerate(dag.nodes)}
    weights = np.zeros_like(covariance)
    for name in dag.nodes:
        p = [number[parent] for parent in dag.parents(name)]
        if p and name not in x:
            weights[p, number[name]] = np.linalg.solve(covariance[np.ix_(p, p)], covariance[p, number[name]])
    total = np.linalg.inv(np.eye(len(dag)) - weights)
    return tuple(total[number[name], number[y]] for name in x)


def distinct(rows):
    return {tuple((np.round(row, 7) + 0.0).tolist()) for row in np.atleast_2d(rows)}


@pytest.mark.parametrize("adjust", ["parents", "optimal"])
@pytest.mark.parametrize("seed", range(40))
def test_the_effects_are_those_of_all_dags_of_the_class(seed, adjust):
    rng = np.random.default_rng(seed)
    dag, _, x, y = random_problem(rng, 6, edges=int(rng.integers(5, 11)))
    _, covariance, _ = linear_model(dag, rng)
    treatments = [x] if seed % 2 else [x, next(n for n in dag.nodes if n not in (x, y))]
    members = equivalence_class(dag)
    found = ida(cpdag(dag), treatments, y, covariance=covariance, adjust=adjust)
    assert distinct(found.effects) == distinct([effects_in(d, covariance, treatments, y) for d in members])
    parents = {tuple(tuple(sorted(d.parents(t), key=dag.nodes.index)) for t in treatments) for d in members}
    assert set(found.parents) == parents
    assert len(found.parents) == len(parents)  # one row for each choice of parents, each possible choice once


@pytest.mark.parametrize("seed", range(25))
def test_background_knowledge_leaves_the_effects_of_the_dags_that_agree_with_it(seed):
    rng = np.random.default_rng(seed)
    dag, _, x, y = random_problem(rng, 6, edges=int(rng.integers(7, 12)))
    graph = cpdag(dag)
    if not graph.undirected_edges():
        return
    a, b = graph.undirected_edges()[int(rng.integers(len(graph.undirected_edges())))]
    tail, head = (a, b) if dag.has_edge(a, b) else (b, a)
    graph.set_marks(tail, head, mk.graphs.Mark.TAIL, mk.graphs.Mark.ARROW)
    _, covariance, _ = linear_model(dag, rng)
    members = [d for d in equivalence_class(dag) if d.has_edge(tail, head)]
    other = next(n for n in dag.nodes if n not in (x, y))
    for given in (graph, meek(graph)):
        found = ida(given, [x, other], y, covariance=covariance)
        assert distinct(found.effects) == distinct(
            [effects_in(d, covariance, [x, other], y) for d in members]
        )


def test_a_dag_has_one_effect_which_is_the_true_one():
    rng = np.random.default_rng(1)
    dag, _, x, y = random_problem(rng, 7)
    _, covariance, total = linear_model(dag, rng)
    found = ida(dag, x, y, covariance=covariance)
    assert found.effects.shape == (1, 1)
    assert found.effects[0, 0] == pytest.approx(total[dag.nodes.index(x), dag.nodes.index(y)])


def test_a_large_class_is_never_listed():
    names = [f"v{i}" for i in range(60)]
    tree = MixedGraph(
        [f"{names[(i - 1) // 3]} --- {names[i]}" for i in range(1, 60)]
    )  # 60 members for one tree
    clique = MixedGraph(
        [f"{a} --- {b}" for i, a in enumerate(names[:10]) for b in names[i + 1 : 10]]
    )  # 10! members
    assert len(ida(tree, "v1", "v40", covariance=np.eye(60)).effects) == 5
    assert len(ida(clique, "v0", "v1", covariance=np.eye(10)).effects) == 2**9


def test_effects_from_rows_and_from_a_learned_structure():
    rng = np.random.default_rng(0)
    a = rng.normal(size=4000)
    b = 0.8 * a + rng.normal(size=4000)
    c = 0.7 * b + rng.normal(size=4000)
    frame = pd.DataFrame({"a": a, "b": b, "c": c})
    learned = mk.learn_structure(frame, method="pc", progress=False)
    found = ida(learned, "b", "c", frame)
    assert sorted(found.effects[:, 0].round(1).tolist()) == [0.0, 0.7, 0.7]
    assert found.lower["b"] == 0
    assert found.upper["b"] == pytest.approx(0.7, abs=0.05)
    assert found.weakest == {"b": 0.0}
    assert "b: 0 to 0.7" in str(found)
    assert list(found.frame().columns) == ["b", "parents of b"]


def test_the_optimal_sets_vary_less_than_the_parents():
    rng = np.random.default_rng(3)
    dag = DAG([("z", "x"), ("x", "y"), ("w", "y"), ("c", "x"), ("c", "w")])
    graph = cpdag(dag)
    spread = {}
    for adjust in ("parents", "optimal"):
        estimates = []
        for _ in range(60):
            z, c, e = rng.normal(size=(3, 80))
            w = 0.5 * c + rng.normal(size=80)
            x = 2 * z + c + 0.5 * rng.normal(size=80)
            frame = pd.DataFrame({"z": z, "x": x, "y": x + 2 * w + e, "w": w, "c": c})[dag.nodes]
            estimates.append(ida(graph, "x", "y", frame, adjust=adjust).effects[0, 0])
        assert np.mean(estimates) == pytest.approx(1, abs=0.15)
        spread[adjust] = np.std(estimates)
    assert spread["optimal"] < 0.6 * spread["parents"]


def test_what_does_not_fit_is_said_in_one_sentence():
    chain = MixedGraph(["a --- b", "b --- c"])
    with pytest.raises(InvalidArgument, match="needs either data or covariance="):
        ida(chain, "a", "b")
    with pytest.raises(InvalidArgument, match="symmetric matrix"):
        ida(chain, "a", "b", covariance=np.eye(2))
    with pytest.raises(InvalidArgument, match="no column 'c'"):
        ida(chain, "a", "b", pd.DataFrame({"a": [1.0, 2], "b": [2.0, 1]}))
    with pytest.raises(InvalidArgument, match="'b' has missing cells"):
        ida(chain, "a", "b", pd.DataFrame({"a": [1.0, 2], "b": [2.0, None], "c": [1.0, 4]}))
    with pytest.raises(InvalidArgument, match="one outcome"):
        ida(chain, "a", ["b", "c"], covariance=np.eye(3))
    with pytest.raises(InvalidArgument, match="adjust is"):
        ida(chain, "a", "b", covariance=np.eye(3), adjust="children")
    with pytest.raises(InvalidGraph, match="no place in a CPDAG"):
        ida(MixedGraph(["a <-> b"]), "a", "b", covariance=np.eye(2))
    with pytest.raises(InvalidGraph, match="no place in a PAG"):
        ida(MixedGraph(["a o-- b"]), "a", "b", covariance=np.eye(2))
    many = MixedGraph([f"{a} o-o {b}" for a, b in combinations("abcdef", 2)])
    with pytest.raises(InvalidArgument, match="more than 50,000 choices"):
        ida(many, "a", "b", covariance=np.eye(6))
    with pytest.raises(InvalidArgument, match="family"):
        ida(chain, "a", "b", covariance=np.eye(3), family="dag")


@pytest.mark.parametrize("seed", range(15))
def test_the_members_of_a_pag_are_all_mags_with_its_separations(seed):
    dag, hidden, _ = random_hidden_case(seed, observed=(4, 5), density=(0.2, 0.4))
    marks = maximal_ancestral_graph(dag, hidden)
    right = {str(as_graph(m)) for m in markov_class(marks)}
    found = [str(m) for m in ancestral_members(true_pag(marks))]
    assert len(found) == len(set(found)) == len(right)
    assert set(found) == right


@pytest.mark.parametrize("seed", range(40))
def test_the_true_effect_is_among_those_of_a_pag_or_the_class_leaves_it_open(seed):
    dag, hidden, _ = random_hidden_case(seed, observed=(3, 4), density=(0.3, 0.6))
    seen = [n for n in dag.nodes if n not in hidden]
    rng = np.random.default_rng(seed)
    _, covariance, total = linear_model(dag, rng)
    places = [dag.nodes.index(n) for n in seen]
    pag = true_pag(maximal_ancestral_graph(dag, hidden))
    x, y = rng.permutation(seen)[:2]
    found = ida(pag, x, y, covariance=covariance[np.ix_(places, places)], family="pag")
    truth = total[dag.nodes.index(x), dag.nodes.index(y)]
    assert found.open or np.abs(found.effects[:, 0] - truth).min() < 1e-8
    if mk.causal.adjustment_sets(pag, x, y, family="pag"):
        assert not found.open
        assert found.effects[:, 0] == pytest.approx(np.full(len(found.effects), truth), abs=1e-8)


def test_a_directed_edge_of_a_mag_is_an_effect_only_if_it_is_visible():
    hidden = ida(MixedGraph(["x --> y"]), "x", "y", covariance=[[1, 0.5], [0.5, 1]], family="mag")
    assert hidden.open
    assert len(hidden.effects) == 0
    assert "hidden causes confound it" in str(hidden)
    chain = MixedGraph(["z --> x", "x --> y"])
    sigma = [[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]]
    visible = ida(chain, "x", "y", covariance=sigma, family="mag")
    assert not visible.open
    assert visible.effects.tolist() == [[0.5]]


def test_ranges_and_the_weakest_size_are_of_each_treatment_alone():
    effects = np.array([[-3.0, 0.5], [1.0, -2.0], [-0.4, 4.0]])
    found = PossibleEffects(("a", "b"), "y", effects, (((), ()),) * 3)
    assert found.lower == {"a": -3.0, "b": -2.0}
    assert found.upper == {"a": 1.0, "b": 4.0}
    assert found.weakest == {"a": 0.4, "b": 0.5}
