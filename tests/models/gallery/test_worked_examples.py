"""Worked examples of the textbooks and course notes, computed again through the public interface."""

import math
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia import Factor, Feature, examples, generators
from markovia.factors import (
    canonical_potentials,
    fold_into_maximal_cliques,
    gibbs_factors,
)
from markovia.factors import (
    product as multiply,
)
from markovia.factors.tables.oracle import joint_oracle
from markovia.graphs import (
    DAG,
    Independence,
    UndirectedGraph,
    chain,
    cycle,
    elimination_cliques,
    implies,
    is_imap,
    is_minimal_imap,
    is_perfect_map,
    junction_tree,
    local_independencies,
    minimal_imap,
    minimal_undirected_imap,
    pairwise_independencies,
)
from markovia.local import LogLinear
from markovia.models.conversions import to_bayesian_network, to_factor_graph, to_markov_network

SEEDS = st.integers(0, 2**32 - 1)


def holds(joint, statement):
    return joint.independent(statement.x, statement.y, statement.given)


def random_joint(seed, names, states=2):
    rng = np.random.default_rng(seed)
    return Factor(names, rng.dirichlet(np.ones(states ** len(names))).reshape([states] * len(names)))


# -- probability ---------------------------------------------------------------------------------------------


@given(SEEDS)
def test_inclusion_exclusion_on_a_joint_table(seed):
    p = random_joint(seed, ["a", "b"])
    either = p[1, 1] + p[1, 0] + p[0, 1]
    assert either == pytest.approx(p.marginal("a")[1] + p.marginal("b")[1] - p[1, 1])
    assert p.total == pytest.approx(1.0)


@given(SEEDS)
def test_chain_rule_and_bayes_rule_rebuild_a_joint(seed):
    p = random_joint(seed, ["a", "b", "c"], states=3)
    a, b_given_a = p.marginal("a"), p.marginal(["a", "b"]).normalize("b")
    c_given_ab = p.normalize("c")
    assert multiply([a, b_given_a, c_given_ab]).allclose(p)
    posterior = (p.marginal(["b", "c"]) / p.marginal("c")) * 1.0
    by_bayes = p.marginal(["b", "c"]).normalize("c") * p.marginal("b") / p.marginal("c")
    assert posterior.allclose(by_bayes)


@given(SEEDS)
def test_resampling_a_cause_from_its_posterior_changes_no_expectation(seed):
    # x ~ P(x), y ~ P(y|x), x' ~ P(x|y): (x', y) is distributed as (x, y)
    p = random_joint(seed, ["x", "y"], states=3)
    again = p.marginal("x") * p.normalize("y") * p.normalize("x").rename({"x": "x'"})
    assert again.marginal(["x'", "y"]).rename({"x'": "x"}).allclose(p)
    assert again.marginal(["x'", "y"]).expectation(lambda x, y: x * y**2) == pytest.approx(
        p.expectation(lambda x, y: x * y**2)
    )


@given(SEEDS)
def test_conditional_independence_is_a_factorisation(seed):
    rng = np.random.default_rng(seed)
    built = Factor(["x", "z"], rng.random((2, 3)) + 0.1) * Factor(["y", "z"], rng.random((2, 3)) + 0.1)
    assert built.independent("x", "y", given="z")
    p = built.normalize()
    assert multiply([p.marginal(["x", "z"]), p.marginal(["y", "z"]).normalize("y")]).allclose(p)
    assert p.normalize("x").allclose(p.marginal(["x", "z"]).normalize("x") * Factor(["y"], [1, 1]))


AXIOMS = [
    ([Independence("x", ["y", "w"], "z")], Independence("x", "y", "z")),
    ([Independence("x", ["y", "w"], "z")], Independence("x", "y", ["z", "w"])),
    ([Independence("x", "y", "z"), Independence("x", "w", ["z", "y"])], Independence("x", ["y", "w"], "z")),
]


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from(AXIOMS))
def test_semigraphoid_axioms_hold_in_networks_that_satisfy_their_premises(seed, axiom):
    premises, conclusion = axiom
    assert implies(premises, conclusion)
    for dag in (
        DAG([("z", "x"), ("z", "y"), ("z", "w"), ("y", "w")]),
        DAG([("x", "z"), ("z", "y"), ("z", "w"), ("w", "y")]),
    ):
        joint = mk.BayesianNetwork(dag, tables="random", seed=seed).joint()
        assert all(holds(joint, s) for s in premises)
        assert holds(joint, conclusion)


def test_intersection_needs_a_positive_distribution():
    same = Factor(["x", "y", "w"], [[[1, 0], [0, 0]], [[0, 0], [0, 1]]])
    premises = [Independence("x", "y", "w"), Independence("x", "w", "y")]
    conclusion = Independence("x", ["y", "w"])
    assert all(holds(same, s) for s in premises)
    assert not holds(same, conclusion)
    assert not implies(premises, conclusion)
    assert implies(premises, conclusion, intersection=True)


def test_independence_does_not_survive_conditioning_on_a_common_effect():
    xor = mk.BayesianNetwork()
    xor.add("x", p=[0.5, 0.5])
    xor.add("y", p=[0.5, 0.5])
    xor.add("z", lambda x, y: x ^ y)
    p = xor.joint()
    assert p.independent("x", "y")
    assert not p.independent("x", "y", given="z")


def test_two_by_two_tables_that_ask_for_independence():
    p = Factor(["x", "y"], [[0.16, 0.04], [0.16, 0.64]])
    assert not p.independent("x", "y")
    assert p.marginal("x")[1] * p.marginal("y")[1] == pytest.approx(0.544)
    assert p.mutual_information("x", "y") == pytest.approx(0.126467, abs=5e-7)
    p1 = Factor(["x", "y"], [[0.08, 0.32], [0.12, 0.48]])
    p2 = Factor(["x", "y"], [[0.4, 0.3], [0.2, 0.1]])
    assert p1.mutual_information("x", "y") == pytest.approx(0.0, abs=1e-12)
    assert p2.mutual_information("x", "y") == pytest.approx(0.00402174, abs=5e-9)
    empty, forward = DAG(nodes=["x", "y"]), DAG([("x", "y")])
    assert is_imap(empty, joint_oracle(p1))
    assert is_perfect_map(empty, joint_oracle(p1))
    assert is_imap(forward, joint_oracle(p1))
    assert not is_minimal_imap(forward, joint_oracle(p1))
    assert not is_imap(empty, joint_oracle(p2))
    assert is_perfect_map(forward, joint_oracle(p2))


# -- directed models -----------------------------------------------------------------------------------------


def test_eight_nodes_need_eighteen_numbers_instead_of_255():
    bn = examples.eight_nodes(tables="random", seed=0)
    assert bn.count_parameters() == 18
    joint = bn.joint()
    assert joint.size - 1 == 255
    # brute force: P(x8 | x1) sums over the 2^6 configurations of the others
    brute = joint.reduce({"x1": 1}).marginal("x8").normalize()
    assert bn.query("x8", given={"x1": 1}).factor().allclose(brute)


def test_the_undirected_form_of_the_eight_nodes_has_partition_function_one():
    bn = examples.eight_nodes(tables="random", seed=1)
    mn = to_markov_network(bn)
    assert mn.log_partition() == pytest.approx(0.0, abs=1e-12)
    assert mn.joint().allclose(bn.joint())
    added = {frozenset(e) for e in mn.edges} - {frozenset(e) for e in bn.edges}
    assert added == {frozenset(["x3", "x4"]), frozenset(["x5", "x6"])}


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 7), SEEDS)
def test_moralising_keeps_the_joint_and_needs_no_normaliser(n, seed):
    bn = generators.random_bayesian_network(n, max_parents=3, states=(2, 3), seed=seed)
    mn = to_markov_network(bn)
    assert mn.log_partition() == pytest.approx(0.0, abs=1e-9)
    assert mn.joint().allclose(bn.joint())
    assert {frozenset(e) for e in mn.edges} == {frozenset(e) for e in bn.graph.moral_graph().edges}


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(2, 5), SEEDS)
def test_a_network_is_an_imap_and_almost_surely_a_perfect_map_of_its_distribution(n, seed):
    bn = generators.random_bayesian_network(n, max_parents=3, concentration=2.0, seed=seed)
    oracle = joint_oracle(bn.joint(), tolerance=1e-12)
    assert is_imap(bn.graph, oracle)
    # exact coincidences have measure zero, so the tolerance is far below anything the tables make likely
    assert is_perfect_map(bn.graph, joint_oracle(bn.joint(), tolerance=1e-13))


def test_equal_rows_are_independent_though_not_separated():
    bn = mk.BayesianNetwork()
    bn.add("a", p=[0.3, 0.7])
    bn.add("b", parents=["a"], p=[[0.4, 0.6], [0.4, 0.6]])
    assert not bn.independent("a", "b")
    assert bn.joint().independent("a", "b")
    assert is_imap(bn.graph, joint_oracle(bn.joint()))
    assert not is_perfect_map(bn.graph, joint_oracle(bn.joint()))


@pytest.mark.parametrize(
    ("line", "alone", "given"),
    [("a<-b->c", False, True), ("a->b->c", False, True), ("a->b<-c", True, False)],
)
def test_common_cause_cascade_and_common_effect(line, alone, given):
    bn = mk.BayesianNetwork(line, tables="random", seed=0)
    joint = bn.joint()
    assert bn.independent("a", "c") == joint.independent("a", "c") == alone
    assert bn.independent("a", "c", given="b") == joint.independent("a", "c", given="b") == given


def test_local_independencies_of_example_11():
    bn = mk.BayesianNetwork("B->D->E<-C; A", tables="random", seed=3)
    expected = {
        Independence("A", ["B", "C", "D", "E"]),
        Independence("B", ["A", "C"]),
        Independence("C", ["A", "B", "D"]),
        Independence("D", ["A", "C"], "B"),
        Independence("E", ["A", "B"], ["C", "D"]),
    }
    assert set(bn.independencies("local")) == expected
    assert all(holds(bn.joint(), s) for s in expected)


def test_minimal_imap_of_a_distribution_depends_on_the_order():
    bn = mk.BayesianNetwork("x1->x3<-x2", tables="random", seed=0)
    oracle = joint_oracle(bn.joint())
    good = minimal_imap(oracle, ["x1", "x2", "x3"]).graph
    bad = minimal_imap(oracle, ["x3", "x2", "x1"])
    assert set(good.edges) == {("x1", "x3"), ("x2", "x3")}
    assert set(bad.graph.edges) == {("x3", "x2"), ("x3", "x1"), ("x2", "x1")}
    assert not any(answer for _, answer in bad.queries)
    assert is_minimal_imap(bad.graph, oracle)
    assert not is_perfect_map(bad.graph, oracle)


def test_minimal_imap_of_the_five_variable_question():
    bn = mk.BayesianNetwork("x1->x3->x5<-x4<-x2", tables="random", seed=5)
    found = minimal_imap(joint_oracle(bn.joint()), ["x1", "x2", "x3", "x4", "x5"])
    parents = {name: set(found.graph.parents(name)) for name in found.graph.nodes}
    assert parents == {"x1": set(), "x2": set(), "x3": {"x1"}, "x4": {"x2"}, "x5": {"x3", "x4"}}
    asked = {}
    for question, answer in found.queries:
        child = max(question.x | question.y)
        asked.setdefault(child, []).append(answer)
    assert asked["x2"] == [True]
    assert asked["x3"] == [False, True]
    assert asked["x4"] == [False, False, True]


def test_exclusive_or_is_pairwise_independent_and_has_no_perfect_map():
    xor = Factor(["x", "y", "z"], [[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    oracle = joint_oracle(xor)
    for a, b in combinations(xor.names, 2):
        assert xor.independent(a, b)
    assert not xor.independent("x", ["y", "z"])
    for order in permutations(xor.names):
        graph = minimal_imap(oracle, order).graph
        assert len(graph.edges) == 2
        assert is_imap(graph, oracle)
        assert not is_perfect_map(graph, oracle)


def test_markov_blankets_of_both_kinds_of_model_shield_in_numbers():
    bn = mk.BayesianNetwork("x4->x2->x1<-x3", tables="random", seed=0)
    assert bn.markov_blanket("x2") == {"x4", "x1", "x3"}
    wide = examples.eight_nodes(tables="random", seed=2)
    blanket = wide.markov_blanket("x6")
    assert blanket == {"x3", "x4", "x5", "x7", "x8"}
    assert wide.joint().independent("x6", set(wide.variables) - blanket - {"x6"}, given=blanket)
    grid = examples.pixel_grid()
    assert grid.markov_blanket("y1") == {"y2", "y4"}
    assert grid.joint().independent("y1", ["y3", "y5", "y6", "y7", "y8", "y9"], given=["y2", "y4"])


def test_rolling_a_dynamic_network_forward_is_an_explicit_network():
    initial, step = [0.3, 0.7], [[0.9, 0.1], [0.4, 0.6]]
    unrolled = generators.markov_chain(initial, step, 4)
    explicit = mk.BayesianNetwork()
    explicit.add("x0", p=initial)
    for t in range(1, 4):
        explicit.add(f"x{t}", parents=[f"x{t - 1}"], p=step)
    assert unrolled.allclose(explicit)
    rows = unrolled.sample(20_000, seed=0)
    exact = unrolled.query("x3")[1]
    assert rows["x3"].mean() == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 20_000))


# -- undirected models ---------------------------------------------------------------------------------------


def test_two_sets_of_potentials_give_one_joint():
    rng = np.random.default_rng(0)
    y = rng.dirichlet([1, 1])
    x_given_y, z_given_y = rng.dirichlet([1, 1], size=2), rng.dirichlet([1, 1, 1], size=2)
    states = {"x": 2, "y": 2, "z": 3}
    one = mk.MarkovNetwork(
        states, [Factor(["y", "x"], y[:, None] * x_given_y), Factor(["y", "z"], z_given_y)]
    )
    two = mk.MarkovNetwork(
        states, [Factor(["y", "x"], x_given_y), Factor(["y", "z"], y[:, None] * z_given_y)]
    )
    assert not one.allclose(two)
    assert one.joint().allclose(two.joint())
    assert one.log_partition() == pytest.approx(0.0)


def test_maximal_cliques_pairs_and_all_cliques_as_tables():
    triangles = UndirectedGraph([("A", "B"), ("A", "D"), ("B", "D"), ("B", "C"), ("C", "D")])
    assert sorted(map(sorted, triangles.maximal_cliques())) == [["A", "B", "D"], ["B", "C", "D"]]
    pairs = generators.random_markov_network(
        4, scopes=[("x0", "x1"), ("x0", "x3"), ("x1", "x3"), ("x1", "x2"), ("x2", "x3")], seed=0
    )
    folded = fold_into_maximal_cliques(pairs.factors, pairs.graph.maximal_cliques())
    assert sorted(f.shape for f in folded) == [(2, 2, 2), (2, 2, 2)]
    assert multiply(folded).normalize().allclose(pairs.joint())


def test_one_factor_and_three_pairs_share_a_graph_but_not_a_factor_graph():
    three = mk.MarkovNetwork(
        {"a": 2, "b": 2, "c": 2}, [Factor(list(p), [[1, 2], [3, 4]]) for p in ("ab", "ac", "bc")]
    )
    parity = np.indices((2, 2, 2)).sum(axis=0) % 2 + 1.0
    whole = mk.MarkovNetwork({"a": 2, "b": 2, "c": 2}, [Factor(["a", "b", "c"], parity)])
    assert three.graph == whole.graph
    assert len(to_factor_graph(three).factor_names) == 3
    assert len(to_factor_graph(whole).factor_names) == 1
    assert canonical_potentials(three.joint())[frozenset("abc")].allclose(
        Factor(["a", "b", "c"], np.ones((2, 2, 2)))
    )
    assert not canonical_potentials(whole.joint())[frozenset("abc")].allclose(
        Factor(["a", "b", "c"], np.ones((2, 2, 2)))
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), SEEDS)
def test_separation_in_the_graph_is_independence_in_every_gibbs_distribution(n, seed):
    mn = generators.random_markov_network(n, degree=min(2, n - 1), seed=seed)
    oracle = joint_oracle(mn.joint())
    assert is_imap(mn.graph, oracle)
    rebuilt = gibbs_factors(mn.joint(), mn.graph)
    assert multiply(rebuilt).normalize().allclose(mn.joint())


@settings(max_examples=15, deadline=None, derandomize=True)
@given(SEEDS)
def test_both_constructions_of_the_minimal_undirected_map_agree_on_positive_distributions(seed):
    mn = generators.random_markov_network(5, degree=2, seed=seed)
    oracle = joint_oracle(mn.joint(), tolerance=1e-13)
    by_pairs = minimal_undirected_imap(oracle, mn.variables, "pairwise")
    assert by_pairs == minimal_undirected_imap(oracle, mn.variables, "blanket")
    assert {frozenset(e) for e in by_pairs.edges} == {frozenset(e) for e in mn.edges}


def test_pixel_grid_independencies_by_graph_and_by_numbers():
    mn = examples.pixel_grid()
    joint = mn.joint()
    rest = [f"y{k}" for k in range(1, 10)]
    questions = [
        ("y1", ["y3", "y5", "y6", "y7", "y8", "y9"], ["y2", "y4"]),
        ("y1", "y3", [n for n in rest if n not in ("y1", "y3")]),
        (["y1", "y2", "y3"], ["y7", "y8", "y9"], ["y4", "y5", "y6"]),
    ]
    for x, y, z in questions:
        assert mn.independent(x, y, given=z)
        assert joint.independent(x, y, given=z)
    assert not mn.independent("y1", "y9")
    assert not joint.independent("y1", "y9")
    for name in rest:
        brute = mn.query(name, engine="enumeration")
        assert mn.query(name).allclose(brute)
    assert mn.map().to_dict() == joint.argmax()


def test_global_independencies_without_a_factorisation():
    support = ["0000", "1000", "1100", "1110", "1111", "0111", "0011", "0001"]
    values = np.zeros((2, 2, 2, 2))
    for word in support:
        values[tuple(map(int, word))] = 1 / 8
    p = Factor(["x0", "x1", "x2", "x3"], values)
    square = cycle(4)
    assert is_imap(square, joint_oracle(p))
    assert p.independent("x0", "x2", given=["x1", "x3"])
    assert p.independent("x1", "x3", given=["x0", "x2"])
    # edge potentials would have to be positive everywhere, so they cannot give 0101 weight zero
    for a, b in square.edges:
        marginal = p.marginal([a, b]).values * 8
        assert sorted(marginal.ravel()) == [1, 1, 3, 3]
    assert p[0, 1, 0, 1] == 0.0
    with pytest.raises(mk.errors.InvalidTable):
        gibbs_factors(p, square)


def test_local_independencies_that_are_not_global():
    bn = mk.BayesianNetwork()
    bn.add("x2", p=[0.5, 0.5])
    bn.add("x4", p=[0.5, 0.5])
    bn.add("x1", lambda x2: x2)
    bn.add("x5", lambda x4: x4)
    bn.add("x3", lambda x2, x4: x2 & x4)
    p = bn.joint()
    path = UndirectedGraph([("x1", "x2"), ("x2", "x3"), ("x3", "x4"), ("x4", "x5")])
    assert len(local_independencies(path)) == 5
    assert all(holds(p, s) for s in local_independencies(path))
    assert not p.independent("x2", "x4", given="x3")
    assert not is_imap(path, joint_oracle(p))


def test_pairwise_independencies_that_are_not_local():
    values = np.zeros((2, 2, 2))
    values[0, 0, 0] = values[1, 1, 1] = 0.5
    p = Factor(["x1", "x2", "x3"], values)
    graph = UndirectedGraph([("x1", "x2")], nodes=["x1", "x2", "x3"])
    assert len(pairwise_independencies(graph)) == 2
    assert all(holds(p, s) for s in pairwise_independencies(graph))
    assert not p.independent("x1", "x3")
    assert not all(holds(p, s) for s in local_independencies(graph))


def test_a_collider_has_no_undirected_perfect_map_and_a_square_no_directed_one():
    collider = mk.BayesianNetwork("x->z<-y", tables="random", seed=0)
    oracle = joint_oracle(collider.joint())
    names = collider.variables
    for size in range(4):
        for edges in combinations(combinations(names, 2), size):
            assert not is_perfect_map(UndirectedGraph(edges, nodes=names), oracle)
    square = joint_oracle(examples.misconception().joint())
    assert is_perfect_map(examples.misconception().graph, square)
    for order in permutations("ABCD"):
        assert not is_perfect_map(minimal_imap(square, order).graph, square)


def test_chordal_models_become_networks_without_loss_and_cycles_need_a_chord():
    path = examples.three_chain()
    directed = to_bayesian_network(path, allow_fill=False)
    assert directed.joint().allclose(path.joint())
    assert is_perfect_map(directed.graph, joint_oracle(path.joint()))
    square = examples.misconception()
    with pytest.raises(mk.errors.InvalidGraph, match="chordal"):
        to_bayesian_network(square, allow_fill=False)
    filled = to_bayesian_network(square)
    assert filled.joint().allclose(square.joint())
    assert len(filled.edges) == 5


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_partition_function_of_a_cycle_is_the_trace_of_its_matrices(seed):
    rng = np.random.default_rng(seed)
    tables = [rng.random((3, 3)) + 0.1 for _ in range(4)]
    names = ["x1", "x2", "x3", "x4"]
    factors = [Factor([names[i], names[(i + 1) % 4]], t) for i, t in enumerate(tables)]
    mn = mk.MarkovNetwork(dict.fromkeys(names, 3), factors)
    trace = np.trace(tables[0] @ tables[1] @ tables[2] @ tables[3])
    assert math.exp(mn.log_partition()) == pytest.approx(trace)
    assert mn.log_partition(engine="enumeration") == pytest.approx(math.log(trace))
    assert mn.query("x1").info.details.width == 2


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_conditioning_a_chain_on_its_middle_leaves_two_separate_nodes(seed):
    rng = np.random.default_rng(seed)
    names = ["x1", "x2", "x3", "x4"]
    factors = [Factor([n], rng.random(3) + 0.1) for n in names]
    factors += [Factor([a, b], rng.random((3, 3)) + 0.1) for a, b in pairwise(names)]
    mn = mk.MarkovNetwork(dict.fromkeys(names, 3), factors)
    rest = mn.condition({"x2": 1, "x3": 2})
    assert rest.variables == ["x1", "x4"]
    assert rest.edges == []
    brute = mn.joint().reduce({"x2": 1, "x3": 2}).normalize()
    assert rest.joint().allclose(brute)
    assert rest.log_partition() == pytest.approx(mn.log_partition(given={"x2": 1, "x3": 2}))
    assert rest.query("x1").allclose(mn.query("x1", given={"x2": 1}))
    phi = factors[0].values * factors[4].values[:, 1]
    np.testing.assert_allclose(rest.query("x1").values, phi / phi.sum())


def test_local_markov_property_of_an_ising_model():
    mn = generators.ising_grid(2, 3, coupling="random", field="random", seed=0)
    joint = mn.joint()
    others = {n: 1 for n in mn.variables if n != "x0_1"}
    near = dict.fromkeys(mn.neighbors("x0_1"), 1)
    full = joint.reduce(others).normalize()
    assert mn.query("x0_1", given=near).factor().allclose(full)


def test_a_bad_elimination_order_of_a_chain_makes_wider_tables():
    mn = generators.random_markov_network(6, scopes=chain(6).edges, seed=0)
    natural = mk.engines.VariableElimination(order=[f"x{i}" for i in range(6)])
    bad = mk.engines.VariableElimination(order=["x1", "x2", "x3", "x4", "x0", "x5"])
    one, two = (mn.query("x5", engine=engine) for engine in (natural, bad))
    assert (one.info.details.width, two.info.details.width) == (1, 2)
    assert one.allclose(two)


# -- numbered examples ---------------------------------------------------------------------------------------


def test_example_51_exact_inference_on_a_chain():
    mn = examples.three_chain()
    table = multiply(mn.factors)
    assert table.total == 120
    assert table.transpose(["x1", "x2", "x3"]).values.ravel().tolist() == [10, 50, 10, 6, 2, 10, 20, 12]
    assert table.marginal(["x1", "x2"]).values.tolist() == [[60, 16], [12, 32]]
    assert table.marginal("x1").values.tolist() == [76, 44]
    assert table.max_out("x3").transpose(["x1", "x2"]).values.tolist() == [[50, 10], [10, 20]]
    assert table.max_out(["x2", "x3"]).values.tolist() == [50, 20]
    assert math.exp(mn.log_partition()) == pytest.approx(120)
    assert mn.query("x1").values.tolist() == pytest.approx([76 / 120, 44 / 120])
    best = mn.map()
    assert best.to_dict() == {"x1": 0, "x2": 0, "x3": 1}
    assert math.exp(best.log_prob) == pytest.approx(50 / 120)
    assert mn.energy(best) == pytest.approx(-math.log(50))


def test_example_53_satisfiability_as_inference():
    clauses = [(1, -2, -3), (2, 3, -4), (4, -1, -2)]
    for encoding in ("single", "chain"):
        bn = generators.three_sat(clauses, encoding)
        assert bn.query("s")[1] == pytest.approx(0.625)
        assert bn.query("s", given={"x1": 1, "x2": 1, "x3": 1, "x4": 1})[1] == 1.0


@pytest.mark.parametrize(
    ("order", "width"), [(["x1", "x2", "x3", "x4", "x5"], 2), (["x2", "x1", "x3", "x4", "x5"], 3)]
)
def test_example_54_elimination_orders_of_different_width(order, width):
    mn = examples.cycle_with_tail()
    answer = mn.query("x5", engine=mk.engines.VariableElimination(order=order))
    assert answer.info.details.width == width
    assert answer.allclose(mn.query("x5", engine="enumeration"))


def test_example_71_viterbi_and_smoothing():
    bn = examples.three_step_hmm()
    seen = {"x1": 0, "x2": 0, "x3": 0}
    first, second = bn.map(given=seen, m=2)
    assert first.to_dict() == {"y1": 0, "y2": 0, "y3": 0}
    assert math.exp(first.log_prob) == pytest.approx(0.138915)
    assert second.to_dict() == {"y1": 1, "y2": 1, "y3": 1}
    assert math.exp(second.log_prob) == pytest.approx(0.06912)
    assert math.exp(bn.log_evidence(given=seen)) == pytest.approx(0.283425)
    assert math.exp(first.log_posterior) == pytest.approx(0.4901297, abs=5e-8)
    smoothed = bn.marginals(given=seen)
    for name, p in {"y1": 0.5827468, "y2": 0.6390580, "y3": 0.6649907}.items():
        assert smoothed[name][0] == pytest.approx(p, abs=5e-8)
    # the same as a chain of two potentials
    psi12 = Factor(["y1", "y2"], [[0.315, 0.035], [0.06, 0.24]])
    psi23 = Factor(["y2", "y3"], [[0.441, 0.042], [0.084, 0.288]])
    assert psi12.max_out("y1").values.tolist() == [0.315, 0.24]
    assert (psi12 * psi23).total == pytest.approx(0.283425)


def test_example_75_chain_crf():
    mn = examples.chain_crf()
    assert math.exp(mn.log_partition()) == pytest.approx(33.0486787, abs=5e-8)
    assert mn.log_partition() == pytest.approx(3.4979816, abs=5e-8)
    for name, p in {"y1": 0.8728929, "y2": 0.9523017, "y3": 0.9145480}.items():
        assert mn.query(name)[1] == pytest.approx(p, abs=5e-8)
    assert mn.query(["y1", "y2"]).values.ravel() == pytest.approx(
        [0.0403305, 0.0867766, 0.0073677, 0.8655252], abs=5e-8
    )
    assert mn.query(["y2", "y3"]).values.ravel() == pytest.approx(
        [0.0357861, 0.0119122, 0.0496659, 0.9026358], abs=5e-8
    )
    assert mn.map().to_dict() == {"y1": 1, "y2": 1, "y3": 1}
    assert mn.log_prob([{"y1": 1, "y2": 1, "y3": 0}])[0] == pytest.approx(-3.0979816, abs=5e-8)
    inputs = (0.1, 0.7, 0.3)
    on = Feature.tied(Feature([f"y{j}"], [0.0, x]) for j, x in enumerate(inputs, start=1))
    differ = Feature.tied(Feature(pair, [[0, 1], [1, 0]]) for pair in (["y1", "y2"], ["y2", "y3"]))
    model = LogLinear([on, differ], [3.0, -2.0])
    observed = model.feature_vector({"y1": 1, "y2": 1, "y3": 0})
    assert observed == pytest.approx([0.8, 1.0])
    expected = model.expected_features(lambda names: mn.query(names).factor())
    assert expected == pytest.approx([1.0282649, 0.1557224], abs=5e-8)
    assert observed - expected - 2 * model.weights / 10 == pytest.approx([-0.8282649, 1.2442776], abs=5e-8)


def test_example_76_six_spins():
    mn = examples.six_spins()
    assert math.exp(mn.log_partition()) == pytest.approx(740073.10365, abs=5e-5)
    assert mn.log_partition() == pytest.approx(13.5145042490, abs=5e-10)
    best = mn.map()
    assert list(best.values()) == [-1, 1, 1, 1, 1, 1]
    assert mn.energy(best) == pytest.approx(-13.0)
    assert math.exp(best.log_prob) == pytest.approx(0.5977969, abs=5e-8)
    published = [0.0704556, 0.7356655, 0.9676177, 0.9687721, 0.9690957, 0.8690288]
    marginals = mn.marginals()
    assert [marginals[f"y{j}"][1] for j in range(1, 7)] == pytest.approx(published, abs=5e-8)
    joint = mn.joint()
    agree = joint.expectation(lambda *y: sum(a + b > 1 for a, b in pairwise(y)))
    assert agree == pytest.approx(3.5584155, abs=5e-8)
    assert joint.marginal(["y1", "y3"]).expectation(lambda a, b: -2 * a * b) == pytest.approx(
        1.8450674, abs=5e-8
    )
    assert mn.query("y3").info.details.width == 2


def test_clique_tree_of_a_four_node_chain_by_absorption():
    bn = mk.BayesianNetwork()
    bn.add("D", p=[0.3, 0.7])
    bn.add("C", parents=["D"], p=[[0.9, 0.1], [0.2, 0.8]])
    bn.add("B", parents=["C"], p=[[0.6, 0.4], [0.3, 0.7]])
    bn.add("A", parents=["B"], p=[[0.5, 0.5], [0.1, 0.9]])
    assert math.exp(bn.log_evidence(given={"A": 0})) == pytest.approx(0.2692)
    assert bn.query("D", given={"A": 0}).values == pytest.approx([0.3655275, 0.6344725], abs=5e-8)
    joint = bn.joint()
    tree = junction_tree(bn.graph.moral_graph())
    assert {frozenset(c) for c in tree.cliques} == {frozenset("AB"), frozenset("BC"), frozenset("CD")}
    assert {frozenset(s) for s in tree.separators} == {frozenset("B"), frozenset("C")}
    cliques = [joint.marginal(c) for c in tree.cliques]
    separators = [joint.marginal(s) for s in tree.separators]
    assert (multiply(cliques) / multiply(separators)).allclose(joint)
    # one pass of absorption from {A, B} with A = 0 entered
    ab, bc, cd = (
        multiply([bn["A"].factor()]),
        multiply([bn["B"].factor()]),
        bn["C"].factor() * bn["D"].factor(),
    )
    phi_b = (ab * Factor(["A"], [1, 0])).sum_out("A")
    bc_new = bc * phi_b
    cd_new = cd * bc_new.sum_out("B")
    assert cd_new.total == pytest.approx(0.2692)
    assert cd_new.marginal("D").normalize().allclose(bn.query("D", given={"A": 0}).factor())
    # the same rule on a calibrated tree, where the old separator is divided out and evidence moves only the change
    psi_ab, psi_bc, phi = (joint.marginal(list(c)) for c in ("AB", "BC", "B"))
    phi_new = (psi_ab * Factor(["A"], [1, 0])).sum_out("A")
    psi_bc_new = psi_bc * (phi_new / phi)
    assert psi_bc_new.total == pytest.approx(0.2692)
    assert psi_bc_new.normalize().allclose(bn.query(["B", "C"], given={"A": 0}).factor())


def test_sprinkler_query_by_the_product_rule():
    bn = examples.wet_grass()
    assert bn.query("grass", given={"rain": "yes"})["yes"] == pytest.approx(0.8 * 0.99 + 0.99 * 0.01)


def test_rain_chain_is_consistent_with_its_published_likelihood():
    mn = examples.rain_chain()
    days = mn.variables
    log_z = mn.log_partition()
    assert log_z == pytest.approx(35.6924, abs=5e-5)
    marginals = mn.marginals()
    dry = sum(marginals[d]["dry"] for d in days)
    same = 0.0
    for a, b in pairwise(days):
        pair = mn.query([a, b])
        same += pair["dry", "dry"] + pair["rain", "rain"]
    assert dry == pytest.approx(16.4927, abs=5e-5)
    assert same == pytest.approx(19.1029, abs=5e-5)
    assert log_z - 0.16 * dry - 0.85 * same == pytest.approx(16.8162, abs=5e-5)
    rain = 1 - dry / 28
    assert rain == pytest.approx(0.41098, abs=5e-6)
    assert 28 * mk.Factor(["x"], [1 - rain, rain]).entropy() == pytest.approx(18.9619, abs=5e-5)
    assert marginals["day1"]["rain"] == pytest.approx(0.4338, abs=5e-5)
    assert marginals["day14"]["rain"] == pytest.approx(0.4079, abs=5e-5)
    assert mn.query("day15", given={"day14": "rain"})["rain"] == pytest.approx(0.642, abs=5e-4)
    assert mn.query("day15", given={"day14": "dry"})["rain"] == pytest.approx(0.247, abs=5e-4)
    after = mn.marginals(given={"day1": "rain"})
    published = {2: 0.642, 3: 0.500, 4: 0.444, 5: 0.422, 6: 0.414, 7: 0.410, 27: 0.418, 28: 0.434}
    for day, p in published.items():
        assert after[f"day{day}"]["rain"] == pytest.approx(p, abs=5e-4)


def test_rain_chain_in_spins_is_the_same_model():
    mn = examples.rain_chain(days=6)
    spins = mk.MarkovNetwork(
        {d: [-1, 1] for d in mn.variables},
        [
            *(Factor([mk.Variable(d, [-1, 1])], np.exp([0.08, -0.08])) for d in mn.variables),
            *(
                Factor(
                    [mk.Variable(a, [-1, 1]), mk.Variable(b, [-1, 1])],
                    np.exp([[0.425, -0.425], [-0.425, 0.425]]),
                )
                for a, b in pairwise(mn.variables)
            ),
        ],
    )
    np.testing.assert_allclose(spins.joint().values, mn.joint().values)


def test_a_homogeneous_rain_chain_has_its_entropy_rate():
    bn = generators.markov_chain([0.63, 0.37], [[0.75, 0.25], [0.35, 0.65]], 28, states=["dry", "rain"])
    total = bn.query("x0").entropy()
    for t in range(1, 28):
        total += bn.query([f"x{t - 1}", f"x{t}"]).entropy() - bn.query(f"x{t - 1}").entropy()
    assert total == pytest.approx(16.79, abs=5e-3)
    assert np.mean([bn.query(f"x{t}")["rain"] for t in range(28)]) == pytest.approx(0.414, abs=5e-4)


def test_wide_chains_cost_what_the_formula_says():
    # 28 x 28 binary lattice: 784 tables of 2^29 entries; asked for all marginals it is refused beforehand
    mn = generators.ising_grid(28, 28)
    sizes = [2 ** len(c) for c in elimination_cliques(mn.graph, mn.variables)]
    assert max(sizes) == 2**29
    assert 0.9 * 784 * 2**29 < sum(sizes) <= 784 * 2**29 == 420_906_795_008
    engine = mk.engines.VariableElimination(max_bytes=2**30)
    with pytest.raises(mk.errors.TooLarge, match="width"):
        mn.marginals(engine=engine)


@pytest.mark.parametrize("n", [2, 5, 10])
def test_the_full_table_of_n_binary_variables_has_two_to_the_n_minus_one_numbers(n):
    names = [f"x{i}" for i in range(n)]
    complete = mk.BayesianNetwork({name: names[:i] for i, name in enumerate(names)})
    assert complete.count_parameters() == 2**n - 1
    assert generators.random_bayesian_network(n, max_parents=0).count_parameters() == n


def test_oracles_refuse_what_they_cannot_answer():
    p = Factor(["a", "b"], [[1, 2], [3, 4]])
    with pytest.raises(mk.errors.UnknownVariable, match="c"):
        joint_oracle(p)(frozenset("a"), frozenset("c"), frozenset())
    with pytest.raises(mk.errors.InvalidArgument, match="overlap"):
        joint_oracle(p)(frozenset("a"), frozenset("a"), frozenset())
    with pytest.raises(mk.errors.InvalidArgument, match="tolerance"):
        joint_oracle(p, tolerance=-1.0)
    with pytest.raises(mk.errors.InvalidTable, match="zero"):
        joint_oracle(Factor(["a"], [0, 0]))


def test_the_oracle_answers_every_question_as_brute_force_does():
    bn = generators.random_bayesian_network(4, seed=11)
    joint = bn.joint()
    oracle = joint_oracle(joint)
    names = bn.variables
    for groups in product(range(4), repeat=4):
        x, y, z = (frozenset(n for n, g in zip(names, groups, strict=True) if g == k) for k in (1, 2, 3))
        if x and y:
            p = {k: joint.marginal(sorted(k)) for k in (x | y | z, x | z, y | z, z)}
            gap = (p[x | y | z] * p[z]).transpose(sorted(x | y | z)).values - (p[x | z] * p[y | z]).transpose(
                sorted(x | y | z)
            ).values
            assert oracle(x, y, z) == oracle(y, x, z) == bool(np.abs(gap).max() <= 1e-9)


def test_the_six_spins_have_the_printed_junction_tree():
    tree = junction_tree(examples.six_spins().graph)
    cliques = [frozenset(c) for c in tree.cliques]
    named = {frozenset(f"y{i}" for i in c) for c in ("123", "234", "345", "56")}
    assert set(cliques) == named
    assert {frozenset(s) for s in tree.separators} == {
        frozenset({"y2", "y3"}),
        frozenset({"y3", "y4"}),
        frozenset({"y5"}),
    }
    assert tree.has_running_intersection()


def test_a_query_on_eight_binary_variables_sums_over_two_to_the_six_configurations():
    bn = examples.eight_nodes()
    x1, x8 = bn.variables[0], bn.variables[7]
    assert bn.joint().size == 2**8
    assert bn.joint().reduce({x1: bn.states(x1)[0], x8: bn.states(x8)[0]}).size == 2**6


@pytest.mark.parametrize("rolls", [[1, 2, 1, 5, 6], [6, 6, 6, 2, 6]])
def test_a_short_casino_sequence_agrees_with_the_sum_over_all_paths(rolls):
    bn = examples.dishonest_casino(T=5)
    hidden = [v for v in bn.variables if len(bn.states(v)) == 2]
    seen = [v for v in bn.variables if len(bn.states(v)) == 6]
    emission = {0: [1 / 6] * 6, 1: [0.1] * 5 + [0.5]}
    total = 0.0
    for path in product((0, 1), repeat=5):
        p = 0.5 * emission[path[0]][rolls[0] - 1]
        for (a, b), roll in zip(pairwise(path), rolls[1:], strict=True):
            p *= (0.95 if a == b else 0.05) * emission[b][roll - 1]
        total += p
    given = {v: bn.states(v)[r - 1] for v, r in zip(seen, rolls, strict=True)}
    assert len(hidden) == 5
    assert bn.log_evidence(given=given) == pytest.approx(math.log(total), abs=1e-12)
