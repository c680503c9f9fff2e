"""Chow-Liu trees and forests, branchings, tree-augmented naive Bayes."""

from itertools import combinations, pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.data.tables.reading_mixed import read_mixed
from markovia.structure.scores import pair_information
from markovia.structure.scores.scores import bind_score
from markovia.structure.trees.spanning_trees import maximum_branching, maximum_spanning_tree


def chain_rows(seed, n=1500, names="abcde"):
    rng = np.random.default_rng(seed)
    columns = {names[0]: rng.integers(0, 3, n)}
    for before, name in pairwise(names):
        noise = rng.random(n) < 0.35
        columns[name] = np.where(noise, rng.integers(0, 3, n), columns[before])
    return pd.DataFrame(columns)


def branchings(weights):
    """Every choice of parents without a cycle, over edges that weigh something."""
    n = len(weights)
    for parents in product(*[[-1, *(i for i in range(n) if weights[i, k] > 0)] for k in range(n)]):
        ok = True
        for k in range(n):
            seen, v = set(), k
            while v >= 0 and v not in seen:
                seen.add(v)
                v = parents[v]
            ok &= v < 0
        if ok:
            yield parents


def worth(weights, parents):
    return sum(weights[p, k] for k, p in enumerate(parents) if p >= 0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_a_branching_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    weights = np.round(rng.normal(0.5, 1.0, (n, n)), 2)
    weights[rng.random((n, n)) < 0.3] = -np.inf
    np.fill_diagonal(weights, -np.inf)
    found = maximum_branching(weights)
    best = max(worth(weights, p) for p in branchings(weights))
    assert tuple(found) in set(branchings(weights))
    assert worth(weights, found) == pytest.approx(best)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_networkx_finds_trees_of_the_same_weight(seed):
    nx = pytest.importorskip("networkx")
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    weights = rng.random((n, n))
    weights = weights + weights.T
    parents = maximum_spanning_tree(weights, int(rng.integers(n)))
    tree = nx.maximum_spanning_tree(nx.from_numpy_array(weights - np.diag(np.diag(weights))))
    assert worth(weights, parents) == pytest.approx(sum(d["weight"] for _, _, d in tree.edges(data=True)))
    directed = rng.random((n, n))
    np.fill_diagonal(directed, 0.0)
    theirs = nx.maximum_branching(nx.from_numpy_array(directed, create_using=nx.DiGraph))
    assert worth(directed, maximum_branching(directed)) == pytest.approx(
        sum(d["weight"] for _, _, d in theirs.edges(data=True))
    )


def test_the_tree_is_the_one_of_largest_likelihood():
    rows = chain_rows(1, 400)
    score = bind_score("log-likelihood", read_mixed(rows))
    gain = np.array(
        [[score.local(k, [p]) - score.local(k) if p != k else 0.0 for k in range(5)] for p in range(5)]
    )
    best = max(worth(gain, p) for p in branchings(np.maximum(gain, 1e-12) * (1 - np.eye(5))))
    found = mk.learn_structure(rows, "chow-liu")
    parents = [[list(rows.columns).index(p) for p in found.dag.parents(n)] for n in rows.columns]
    empty = score.total([[]] * 5)
    assert score.total(parents) - empty == pytest.approx(best, abs=1e-6)
    assert found.details.gain == pytest.approx(best, abs=1e-6)
    assert found.skeleton.edges == [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]


def test_the_root_turns_the_edges_and_nothing_else():
    rows = chain_rows(2)
    found = mk.learn_structure(rows, "chow-liu", root="c")
    assert sorted(found.edges) == [("b", "a"), ("c", "b"), ("c", "d"), ("d", "e")]
    assert mk.learn_structure(rows, "chow-liu", root=2).edges == found.edges
    assert found.weights[2, 1] == pytest.approx(found.details.mutual_information[1, 2])
    with pytest.raises(mk.errors.UnknownVariable, match="'z'"):
        mk.learn_structure(rows, "chow-liu", root="z")


def test_a_forest_leaves_out_edges_that_do_not_pay():
    rows = chain_rows(3)
    rows["noise"] = np.random.default_rng(0).integers(0, 4, len(rows))
    whole = mk.learn_structure(rows, "chow-liu")
    forest = mk.learn_structure(rows, "chow-liu", forest="bic")
    assert whole.n_edges == 5
    assert forest.n_edges == 4
    assert not forest.skeleton.neighbors("noise")
    best = mk.learn_structure(rows, "exact", max_parents=1)
    score = bind_score("bic", read_mixed(rows))
    names = list(rows.columns)
    parents = [[names.index(p) for p in forest.dag.parents(n)] for n in names]
    assert score.total(parents) == pytest.approx(best.score, abs=1e-6)
    assert mk.learn_structure(rows, "chow-liu", forest="aic").n_edges >= 4
    with pytest.raises(mk.errors.InvalidArgument, match="forest= is"):
        mk.learn_structure(rows, "chow-liu", forest="bdeu")


def information(a, b):
    """n times the mutual information of two columns of states, and the parameters of an edge between them."""
    table = pd.crosstab(a, b).to_numpy().astype(float)
    n, shares = table.sum(), np.outer(table.sum(axis=1), table.sum(axis=0))
    some = table > 0
    value = (table[some] * np.log(n * table[some] / shares[some])).sum()
    return value, (table.shape[0] - 1) * (table.shape[1] - 1)


@pytest.mark.parametrize("forest", ["bic", "aic"])
def test_the_gain_of_a_forest_is_its_formula(forest):
    """Each edge: rows times mutual information, less log(rows) / 2 (BIC) or 1 (AIC) a parameter; never below zero."""
    rows = chain_rows(6, 300, "abc")
    rng = np.random.default_rng(64)
    rows["weak"] = np.where(rng.random(300) < 0.17, rows["b"], rng.integers(0, 3, 300))
    rows["noise"] = rng.integers(0, 4, 300)
    charge = np.log(300) / 2 if forest == "bic" else 1.0
    found = mk.learn_structure(rows, "chow-liu", forest=forest)
    gains = {}
    for a, b in combinations(rows.columns, 2):
        value, free = information(rows[a], rows[b])
        gains[a, b] = value - charge * free
    expected = {("a", "b"), ("b", "c")} | ({("b", "weak")} if forest == "aic" else set())
    assert {tuple(sorted(e)) for e in found.edges} == expected
    assert found.details.gain == pytest.approx(sum(gains[e] for e in expected))
    assert gains["b", "weak"] * (1 if forest == "aic" else -1) > 0


@pytest.mark.parametrize("forest", ["bic", "aic"])
def test_an_edge_of_measurements_costs_one_parameter_and_of_states_all_but_one(forest):
    rng = np.random.default_rng(7)
    n = 80
    group = rng.integers(0, 3, n)
    x = 0.9 * group + rng.normal(size=n)
    y = 0.8 * x + rng.normal(size=n)
    rows = pd.DataFrame({"group": np.array(list("uvw"))[group], "x": x, "y": y})
    charge = np.log(n) / 2 if forest == "bic" else 1.0
    within = np.mean((x - np.array([x[group == k].mean() for k in range(3)])[group]) ** 2)
    first = 0.5 * n * np.log(x.var() / within) - 2 * charge
    second = -0.5 * n * np.log(1 - np.corrcoef(x, y)[0, 1] ** 2) - charge
    found = mk.learn_structure(rows, "chow-liu", forest=forest)
    assert found.skeleton.edges == [("group", "x"), ("x", "y")]
    assert found.details.gain == pytest.approx(first + second)


@pytest.mark.parametrize("seed", range(5))
def test_knowledge_gives_the_best_tree_among_those_allowed(seed):
    rng = np.random.default_rng(seed)
    rows = chain_rows(seed, 300)
    names = list(rows.columns)
    forbidden = [
        (a, b) for a in names for b in names if a != b and rng.random() < 0.3 and (a, b) != ("e", "a")
    ]
    known = {"required": [("e", "a")], "forbidden": forbidden}
    found = mk.learn_structure(rows, "chow-liu", forest="bic", **known)
    best = mk.learn_structure(rows, "exact", max_parents=1, **known)
    score = bind_score("bic", read_mixed(rows))
    parents = [[names.index(p) for p in found.dag.parents(n)] for n in names]
    assert ("e", "a") in found.edges
    assert not set(forbidden) & set(found.edges)
    assert score.total(parents) == pytest.approx(best.score, abs=1e-6)
    assert mk.learn_structure(rows, "chow-liu", **known).n_edges >= found.n_edges


def test_what_no_tree_can_do_is_named():
    rows = chain_rows(1, 100)
    with pytest.raises(mk.errors.InvalidArgument, match="two required"):
        mk.learn_structure(rows, "chow-liu", required=[("a", "c"), ("b", "c")])
    with pytest.raises(mk.errors.InvalidArgument, match="root 'c' has a required parent"):
        mk.learn_structure(rows, "chow-liu", required=[("a", "c")], root="c")
    assert mk.learn_structure(rows, "chow-liu", max_parents=0).n_edges == 0


def test_gaussian_columns_are_weighed_by_their_correlation():
    rng = np.random.default_rng(1)
    a = rng.normal(size=800)
    b = a + rng.normal(size=800)
    c = b + 2 * rng.normal(size=800)
    rows = pd.DataFrame({"a": a, "b": b, "c": c})
    found = mk.learn_structure(rows, "chow-liu")
    assert found.edges == [("a", "b"), ("b", "c")]
    rho = np.corrcoef(a, b)[0, 1]
    assert found.details.mutual_information[0, 1] == pytest.approx(-0.5 * np.log(1 - rho**2))
    best = mk.learn_structure(rows, "exact", max_parents=1)
    assert mk.learn_structure(rows, "chow-liu", forest="bic").skeleton.edges == best.skeleton.edges
    with pytest.raises(mk.errors.InvalidArgument, match="'c' is constant"):
        mk.learn_structure(rows.assign(c=0.5), "chow-liu", continuous=["a", "b", "c"])


def test_mixed_columns_are_weighed_by_the_variance_between_states():
    rng = np.random.default_rng(2)
    group = rng.integers(0, 3, 900)
    near = group * 1.5 + rng.normal(size=900)
    far = near + rng.normal(size=900)
    rows = pd.DataFrame({"group": np.array(list("xyz"))[group], "near": near, "far": far})
    found = mk.learn_structure(rows, "chow-liu")
    assert found.skeleton.edges == [("group", "near"), ("near", "far")]
    within = sum(((near[group == k] - near[group == k].mean()) ** 2).sum() for k in range(3)) / 900
    expected = 0.5 * np.log(near.var() / within)
    assert found.details.mutual_information[0, 1] == pytest.approx(expected)


def test_weights_and_files_count_like_rows(tmp_path):
    rows = chain_rows(4, 200).astype(str)
    times = np.random.default_rng(0).integers(1, 4, len(rows))
    repeated = mk.learn_structure(rows.loc[rows.index.repeat(times)], "chow-liu")
    weighted = mk.learn_structure(rows, "chow-liu", weights=times)
    assert np.allclose(repeated.details.mutual_information, weighted.details.mutual_information)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert (
        mk.learn_structure(tmp_path / "rows.csv", "chow-liu").edges
        == mk.learn_structure(rows, "chow-liu").edges
    )


def test_counting_in_several_passes_changes_nothing(monkeypatch):
    rows = chain_rows(5, 200)
    once = mk.learn_structure(rows, "chow-liu").details.mutual_information
    monkeypatch.setattr(pair_information, "CELLS_AT_ONCE", 10)
    assert np.array_equal(mk.learn_structure(rows, "chow-liu").details.mutual_information, once)


def class_rows(seed, n=1500):
    bn = mk.BayesianNetwork("y->a; y->b; y->c; y->d; a->b; b->c; c->d", tables="random", seed=seed)
    return bn.sample(n, seed=seed)


def test_tan_is_the_graph_of_the_classifier():
    rows = class_rows(3)
    found = mk.learn_structure(rows, "tan", target="y")
    model = mk.classifiers.TreeAugmentedNaiveBayes(root=next(n for n in rows.columns if n != "y")).fit(
        rows.drop(columns="y"), rows["y"]
    )
    assert set(found.edges) == set(model.network_.edges)
    assert found.details.tree == model.tree_
    assert np.allclose(found.details.conditional_mutual_information, model.conditional_mutual_information_)


def test_tan_is_the_best_graph_of_its_form():
    rows = class_rows(5, 400)
    found = mk.learn_structure(rows, "tan", target="y", root="b")
    names = list(rows.columns)
    score = bind_score("log-likelihood", read_mixed(rows))
    y = names.index("y")
    features = [k for k in range(5) if k != y]
    gain = np.zeros((5, 5))
    for p in features:
        for k in features:
            if p != k:
                gain[p, k] = score.local(k, [y, p]) - score.local(k, [y])
    best = max(worth(gain, p) for p in branchings(np.maximum(gain, 1e-12) * (gain != 0)))
    base = score.total([[] if k == y else [y] for k in range(5)])
    parents = [[names.index(p) for p in found.dag.parents(n)] for n in names]
    assert score.total(parents) - base == pytest.approx(best, abs=1e-6)
    assert found.dag.parents("b") == ["y"]


def test_tan_obeys_what_is_known():
    rows = class_rows(6, 400)
    plain = mk.learn_structure(rows, "tan", target="y", max_parents=1)
    assert sorted(plain.edges) == [("y", n) for n in "abcd"]
    found = mk.learn_structure(
        rows, "tan", target="y", required=[("d", "a")], forbidden=[("b", "c"), ("c", "b")]
    )
    assert ("d", "a") in found.edges
    assert not found.skeleton.has_edge("b", "c")
    with pytest.raises(mk.errors.InvalidArgument, match="needs the class"):
        mk.learn_structure(rows, "tan")
    with pytest.raises(mk.errors.InvalidArgument, match="'y' -> 'a' is forbidden"):
        mk.learn_structure(rows, "tan", target="y", forbidden=[("y", "a")])
    with pytest.raises(mk.errors.InvalidArgument, match="'a' -> 'y' is required"):
        mk.learn_structure(rows, "tan", target="y", required=[("a", "y")])
    with pytest.raises(mk.errors.UnknownVariable):
        mk.learn_structure(rows, "tan", target="z")
