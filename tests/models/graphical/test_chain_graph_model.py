"""Chain-graph models against their formula written out over the joint table."""

import pickle
from itertools import combinations

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, InvalidTable, ParseError, UnknownState, UnknownVariable
from markovia.graphs import ChainGraph

FOUR = "a -> c; c -- d; b -> d"


def random_chain_graph(rng, n=5):
    """Return a chain graph of blocks that are drawn first: lines inside a block, arrows from earlier ones."""
    block = np.sort(rng.integers(0, 3, n))
    edges = [
        f"v{i} {'---' if block[i] == block[j] else '-->'} v{j}"
        for i, j in combinations(range(n), 2)
        if rng.random() < 0.5
    ]
    return ChainGraph(edges, nodes=[f"v{i}" for i in range(n)])


def random_model(graph, rng, states=2):
    """Return a model with a random potential on every complete set of two or three nodes in each closure."""
    factors = [mk.Factor([v], rng.gamma(2.0, size=states)) for v in graph]
    for part in graph.chain_components():
        parents = sorted(graph.boundary(part))
        closure = graph.subgraph([*part, *parents]).skeleton()
        closure.add_edges(combinations(parents, 2))
        scopes = [c for size in (2, 3) for c in combinations(closure.nodes, size) if set(c) & set(part)]
        complete = [scope for scope in scopes if closure.is_clique(scope)]
        factors += [mk.Factor(c, np.exp(1.5 * rng.normal(size=[states] * len(c)))) for c in complete]
    return mk.causal.ChainGraphModel(graph, factors, variables=dict.fromkeys(graph.nodes, states)), factors


def spread(factor, names):
    """Return a factor as an array with an axis for every name."""
    values = factor.transpose(sorted(factor.names, key=names.index)).values
    return np.expand_dims(values, tuple(i for i, n in enumerate(names) if n not in factor.names))


def written_out(graph, factors, states=2):
    """Return the joint table: over components, the product of the potentials over its sum over the component."""
    names, joint = graph.nodes, np.ones([states] * len(graph))
    for part in graph.chain_components():
        inside = [
            f
            for f in factors
            if set(f.names) & set(part) and set(f.names) <= set(part) | graph.boundary(part)
        ]
        field = np.ones([states] * len(graph))
        for factor in inside:
            field = field * spread(factor, names)
        joint = joint * field / field.sum(axis=tuple(names.index(n) for n in part), keepdims=True)
    return joint


def test_the_network_has_the_joint_of_the_formula_and_lwf_separation_is_its_independence():
    rng = np.random.default_rng(2)
    answers = []
    for _ in range(8):
        graph = random_chain_graph(rng)
        model, factors = random_model(graph, rng)
        joint = written_out(graph, factors)
        assert np.isclose(joint.sum(), 1.0)
        np.testing.assert_allclose(
            model.to_network().joint().transpose(graph.nodes).normalize().values, joint, rtol=1e-9
        )
        table = mk.Factor(graph.nodes, joint)
        for a, b in combinations(graph.nodes, 2):
            rest = [v for v in graph if v not in (a, b)]
            for given in (c for k in range(4) for c in combinations(rest, k)):
                said = model.independent(a, b, given)
                # random potentials hide no dependence: what is not separated is dependent
                assert said == (table.mutual_information(a, b, given) < 1e-12)
                answers.append(said)
    assert 0.1 < np.mean(answers) < 0.9


def test_a_model_with_one_node_a_component_is_a_bayesian_network_also_under_do():
    bn = mk.examples.sprinkler()
    model = mk.causal.ChainGraphModel(bn.graph, bn.to_markov_network().factors)
    given = {"wet": "yes"}
    np.testing.assert_allclose(model.query("rain", given).values, bn.query("rain", given).values)
    done = model.do({"sprinkler": "yes"})
    assert "sprinkler" not in done.variables
    np.testing.assert_allclose(
        done.query("rain", given).values, bn.do({"sprinkler": "yes"}).query("rain", given).values
    )


def test_do_keeps_the_rest_of_a_component_given_what_is_set():
    rng = np.random.default_rng(3)
    graph = ChainGraph(["a --> c", "c --- d", "b --> d", "d --> e"])
    model, factors = random_model(graph, rng)
    names = graph.nodes
    # P(a) P(b) P(c | a, b, d) P(e | d) at d = 1
    joint = mk.Factor(names, written_out(graph, factors))
    parts = [
        joint.marginal("a"),
        joint.marginal("b"),
        joint.conditional("c", ["a", "b", "d"]),
        joint.conditional("e", "d"),
    ]
    expected = (parts[0] * parts[1] * parts[2] * parts[3]).reduce({"d": 1})
    done = model.do({"d": 1})
    np.testing.assert_allclose(
        done.query(["a", "b", "c", "e"]).values, expected.transpose(["a", "b", "c", "e"]).values, rtol=1e-9
    )
    with pytest.raises(UnknownState):
        model.do({"d": 7})
    with pytest.raises(InvalidArgument, match="one of its states"):
        model.do({"d": [0.5, 0.5]})


def test_fit_reaches_the_greatest_likelihood_and_does_not_depend_on_rows_order_or_units_of_weight():
    rng = np.random.default_rng(4)
    graph = ChainGraph(["a --> c", "c --- d", "b --> d"])
    truth, _ = random_model(graph, rng)
    rows = truth.sample(3000, seed=0)
    model = mk.causal.ChainGraphModel(graph).fit(rows)
    assert all(fit.converged for fit in model.fits_.values())
    # at the greatest likelihood of the component given its parents, expected and observed counts of its cliques agree
    counts = np.zeros((2, 2, 2, 2))
    np.add.at(counts, tuple(rows[n] for n in "abcd"), 1 / len(rows))
    learned = model.query(["a", "b", "c", "d"]).values
    expected = counts.sum(axis=(2, 3), keepdims=True) * learned / learned.sum(axis=(2, 3), keepdims=True)
    for others in ((1, 3), (0, 1), (0, 2)):  # the cliques a c, c d and b d
        np.testing.assert_allclose(expected.sum(axis=others), counts.sum(axis=others), atol=2e-5)
    np.testing.assert_allclose(learned.sum(axis=(1, 2, 3)), counts.sum(axis=(1, 2, 3)), atol=1e-5)
    assert (counts * np.log(learned)).sum() > (
        counts * np.log(truth.query(["a", "b", "c", "d"]).values)
    ).sum()
    again = mk.causal.ChainGraphModel(graph).fit(rows.iloc[::-1].assign(w=1e6), weights="w")
    np.testing.assert_allclose(again.query(["a", "b", "c", "d"]).values, learned, atol=1e-4)


def test_rows_with_gaps_are_refused_or_dropped_and_a_failed_fit_changes_nothing():
    rows = {"a": [0, 0, 1, 1, None, 0], "c": [0, 1, 1, 0, 1, 1], "d": [1, 1, 0, 0, 1, 0]}
    model = mk.causal.ChainGraphModel("a -> c; c -- d", variables={"a": 2, "c": 2, "d": 2})
    with pytest.raises(InvalidArgument, match="cells are missing"):
        model.fit(rows)
    assert model.fits_ == {}
    assert model.query("c")[0] == 0.5
    model.fit(rows, missing="drop")
    assert model.query("a")[0] == pytest.approx(0.6, abs=1e-6)
    assert model.query("c", given={"a": 1})[0] == pytest.approx(0.5, abs=1e-4)


def test_a_long_component_with_extreme_potentials_is_normalised():
    n = 60
    text = "; ".join([f"x{i} -- x{i + 1}" for i in range(n - 1)] + ["a -> x0"])
    factors = [
        mk.Factor([f"x{i}", f"x{i + 1}"], np.array([[3.0, 1.0], [1.0, 3.0]]) * 1e-250) for i in range(n - 1)
    ]
    factors += [mk.Factor(["a", "x0"], [[1e250, 1e249], [1.0, 9.0]]), mk.Factor(["a"], [1.0, 3.0])]
    model = mk.causal.ChainGraphModel(text, factors)
    np.testing.assert_allclose(model.query("a").values, [0.25, 0.75])
    assert model.query("x0", given={"a": 0})[0] == pytest.approx(10 / 11)
    end = 0.5 + 0.5 * 0.5 ** (n - 1) * (9 / 11)
    assert model.query(f"x{n - 1}", given={"a": 0})[0] == pytest.approx(end, abs=1e-12)


def test_bad_models_are_one_sentence():
    pull = [[2, 1], [1, 2]]
    with pytest.raises(InvalidArgument, match="a factor over a, b is in no component"):
        mk.causal.ChainGraphModel(FOUR, [mk.Factor(["a", "b"], pull)])
    with pytest.raises(InvalidArgument, match="a factor over a, d"):
        mk.causal.ChainGraphModel(FOUR, [mk.Factor(["a", "d"], pull)])
    with pytest.raises(UnknownVariable):
        mk.causal.ChainGraphModel(FOUR, [mk.Factor(["a", "q"], pull)])
    with pytest.raises(InvalidArgument, match="the states of 'a' are not known"):
        mk.causal.ChainGraphModel(FOUR).query("a")
    never = mk.causal.ChainGraphModel("a -> c", [mk.Factor(["a", "c"], [[1, 2], [0, 0]])])
    with pytest.raises(InvalidTable, match="forbid all states where a = 1"):
        never.query("c")
    model = mk.causal.ChainGraphModel("a -> c; c -- d", variables={"a": 2, "c": 2, "d": ["x", "y"]})
    assert model.query("d", given={"a": 1})["y"] == 0.5
    with pytest.raises(UnknownVariable):
        model.fit({"a": [0, 1], "c": [1, 0]})
    assert pickle.loads(pickle.dumps(model)).query("d")["x"] == 0.5


def test_a_model_comes_back_from_its_file(tmp_path):
    model, _ = random_model(ChainGraph(["a --> c", "c --- d", "b --> d"]), np.random.default_rng(6))
    model.save(tmp_path / "model.json")
    back = mk.load(tmp_path / "model.json")
    assert type(back) is mk.causal.ChainGraphModel
    assert back.graph == model.graph
    np.testing.assert_array_equal(back.query(["c", "d"]).values, model.query(["c", "d"]).values)
    spoiled = (tmp_path / "model.json").read_text().replace('["a", "-", ">", "c"]', '["a", ">", ">", "c"]')
    (tmp_path / "model.json").write_text(spoiled)
    with pytest.raises(ParseError, match="arrows and lines alone"):
        mk.load(tmp_path / "model.json")
