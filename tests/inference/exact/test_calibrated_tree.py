"""Belief propagation on a junction tree, looked at: worked examples, brute force, numbers beyond doubles."""

import pickle

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ImpossibleEvidence, InvalidArgument
from model_strategies import about, log_marginal, log_sum, log_weights, random_case, random_findings, tries


def pairwise(*edges, seed=0):
    rng = np.random.default_rng(seed)
    names = sorted({n for e in edges for n in e})
    return mk.MarkovNetwork(
        dict.fromkeys(names, 2), [mk.Factor(list(e), rng.random((2, 2)) + 0.1) for e in edges]
    )


def test_the_absorbed_chain_has_the_posterior_of_its_far_end():
    bn = mk.BayesianNetwork()
    bn.add("d", states=2, p=[0.3, 0.7])
    bn.add("c", states=2, parents=["d"], p=[[0.9, 0.1], [0.2, 0.8]])
    bn.add("b", states=2, parents=["c"], p=[[0.6, 0.4], [0.3, 0.7]])
    bn.add("a", states=2, parents=["b"], p=[[0.5, 0.5], [0.1, 0.9]])
    found = bn.junction_tree().calibrate({"a": 0})
    assert np.exp(found.log_mass) == pytest.approx(0.2692)
    assert found.query("d").values == pytest.approx([0.3655275, 0.6344725], abs=5e-8)
    assert {frozenset(s) for s in found.tree.separators} == {frozenset("b"), frozenset("c")}


def test_messages_go_to_the_root_and_back_in_the_order_of_the_textbook():
    model = pairwise("12", "23", "24", "35", "45")
    tree = model.junction_tree(order=list("12345"))
    assert [set(c) for c in tree.cliques] == [set("12"), set("234"), set("345")]
    found = tree.calibrate(root=1)
    assert found.schedule == ((0, 1), (2, 1), (1, 2), (1, 0))
    assert found.has_running_intersection
    # a message is what eliminating everything behind its separator leaves
    behind = mk.factors.product([model.factors[3], model.factors[4]]).marginal(["3", "4"])
    assert found.messages[1].factor().allclose(behind)
    whole = mk.factors.product(model.factors[1:]).marginal(["2"])
    assert found.messages[3].factor().allclose(whole)


def test_beliefs_messages_and_mass_are_those_of_the_joint_table():
    for seed in tries(60):
        case = random_case(seed, max_entries=800)
        rng = np.random.default_rng(seed)
        given = random_findings(case, rng)
        logs = log_weights(case, given)
        tree = case.model.junction_tree()
        root = int(rng.integers(max(1, len(tree))))
        with about(seed, given, root):
            if np.isneginf(log_sum(logs)):
                with pytest.raises(ImpossibleEvidence):
                    tree.calibrate(given, root=root)
                continue
            found = tree.calibrate(given, root=root)
            assert found.log_mass == pytest.approx(float(log_sum(logs)), abs=1e-9)
            tables = [*zip(tree.cliques, found.beliefs, strict=True)]
            tables += zip(tree.separators, found.separator_beliefs, strict=True)
            fixed = {n for n, said in given.items() if isinstance(said, int)}
            for names, belief in tables:
                assert belief.names == tuple(n for n in names if n not in fixed)
                whole = np.exp(log_marginal(case, logs, list(names)) - log_sum(logs))
                at = tuple(given[n] if n in fixed else slice(None) for n in names)
                assert belief.values == pytest.approx(whole[at], abs=1e-10)
            assert len(found.messages) == 2 * len(tree.edges)
            assert found.disagreement < 1e-12
            # both messages over an edge make up its separator belief
            sent = {(m.source, m.target): m.table for m in found.messages}
            for (a, b), belief in zip(tree.edges, found.separator_beliefs, strict=True):
                both = (sent[a, b] * sent[b, a]).transpose(belief.names).normalize()
                assert both.values == pytest.approx(belief.values, abs=1e-10)


def test_numbers_beyond_doubles_and_many_cliques_are_no_trouble():
    n = 1500
    tiny = [mk.Factor([f"x{i}", f"x{i + 1}"], [[3e-300, 1e-300], [1e-300, 3e-300]]) for i in range(n)]
    model = mk.MarkovNetwork({f"x{i}": 2 for i in range(n + 1)}, tiny)
    found = model.junction_tree().calibrate({"x0": 1})
    assert found.log_mass == pytest.approx(n * np.log(4e-300), rel=1e-12)
    assert found.query("x1").values == pytest.approx([0.25, 0.75])
    assert "more" in str(found)


def test_what_cannot_be_asked_of_a_tree_is_said_in_a_sentence():
    bn = mk.examples.asia()
    tree = bn.junction_tree()
    with pytest.raises(InvalidArgument, match="one of 6 cliques"):
        tree.calibrate(root=6)
    found = tree.calibrate({"xray": "yes"})
    with pytest.raises(InvalidArgument, match="'xray' is observed"):
        found.query("xray")
    with pytest.raises(InvalidArgument, match="no clique contains asia, dysp"):
        found.query(["asia", "dysp"])
    with pytest.raises(ImpossibleEvidence, match="tub='yes', either='no'"):
        tree.calibrate({"tub": "yes", "either": "no"})
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian(0.0, {}, 1.0))
    m.add("y", mk.LinearGaussian(0.0, {"x": 1.0}, 1.0))
    with pytest.raises(mk.errors.UnsupportedModel, match="has no states"):
        m.junction_tree().calibrate()
    again = pickle.loads(pickle.dumps(found))
    assert again.query("lung").allclose(found.query("lung"))
    assert str(again) == str(found)
