"""Models made to order: shapes, limits, reproducibility, and answers against independent formulas."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia import generators as make
from markovia.graphs import UndirectedGraph, triangulate
from markovia.local import NoisyOrConditional


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 3), st.integers(0, 10**6))
def test_random_networks_are_valid_and_keep_their_limits(n, max_parents, seed):
    bn = make.random_bayesian_network(n, max_parents=max_parents, states=(2, 4), seed=seed)
    bn.validate()
    assert bn.variables == [f"x{i}" for i in range(n)]
    assert all(len(bn.parents(v)) <= max_parents for v in bn.variables)
    assert all(2 <= len(bn.states(v)) <= 4 for v in bn.variables)
    assert bn.joint().total == pytest.approx(1.0)


@pytest.mark.parametrize(
    "build",
    [
        lambda seed: make.random_bayesian_network(9, states=(2, 3), deterministic=0.3, seed=seed),
        lambda seed: make.random_tree_network(9, seed=seed),
        lambda seed: make.random_k_tree_network(9, 2, seed=seed),
        lambda seed: make.random_k_tree_network(9, 2, kind="markov", seed=seed),
        lambda seed: make.random_markov_network(9, seed=seed),
        lambda seed: make.random_markov_network(9, scope_size=3, states=(2, 3), seed=seed),
        lambda seed: make.ising_grid(3, 3, coupling="random", field="random", seed=seed),
        lambda seed: make.potts_grid(3, 3, coupling="random", seed=seed),
        lambda seed: make.qmr(8, 5, causes=(1, 4), seed=seed),
        lambda seed: make.three_sat(make.random_clauses(6, 10, seed=seed)),
    ],
)
def test_the_same_seed_gives_the_same_model_and_another_seed_another(build):
    assert build(3).allclose(build(3))
    assert build(np.random.default_rng(3)).allclose(build(3))
    assert not build(3).allclose(build(4))


def test_density_follows_the_number_or_the_probability_of_edges():
    assert len(make.random_bayesian_network(30, max_parents=None, n_edges=60, seed=0).edges) == 60
    assert len(make.random_bayesian_network(10, max_parents=None, edge_probability=1.0, seed=0).edges) == 45
    assert make.random_bayesian_network(10, edge_probability=0.0, seed=0).edges == []


def test_concentration_moves_rows_between_uniform_and_certain():
    flat = make.random_bayesian_network(50, concentration=1e6, seed=0)
    sharp = make.random_bayesian_network(50, concentration=1e-2, seed=0)
    assert max(np.abs(flat[v].values - 0.5).max() for v in flat.variables) < 0.01
    assert np.mean([sharp[v].values.max(axis=-1).mean() for v in sharp.variables]) > 0.95


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_share_of_certain_rows_is_as_asked(share):
    bn = make.random_bayesian_network(300, max_parents=3, states=3, deterministic=share, seed=1)
    rows = np.concatenate([bn[v].values.reshape(-1, 3) for v in bn.variables])
    assert np.mean(rows.max(axis=1) == 1.0) == pytest.approx(share, abs=0.05)
    bn.validate()


def test_random_trees_have_one_parent_each():
    bn = make.random_tree_network(40, states=(2, 5), seed=0)
    assert sorted(len(bn.parents(v)) for v in bn.variables) == [0] + [1] * 39
    bn.validate()


@pytest.mark.parametrize("kind", ["bayesian", "markov"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_k_tree_models_have_treewidth_k(kind, k):
    model = make.random_k_tree_network(25, k, kind=kind, seed=k)
    graph = model.graph.moral_graph() if kind == "bayesian" else model.graph
    assert max(len(c) for c in triangulate(graph).graph.maximal_cliques()) == k + 1
    assert model.query("x24").info.details.width <= k
    assert set(model.variables) == {f"x{i}" for i in range(25)}


@pytest.mark.parametrize("kind", ["bayesian", "markov"])
def test_partial_k_trees_do_not_exceed_their_width(kind):
    model = make.random_k_tree_network(30, 3, kind=kind, keep=0.5, seed=2)
    assert len(model) == 30
    edges = len(model.edges) if kind == "markov" else len(model.graph.moral_graph().edges)
    full = make.random_k_tree_network(30, 3, kind="markov", seed=2)
    assert edges < len(full.edges)
    assert set(map(frozenset, model.edges)) <= set(map(frozenset, full.edges))
    model.log_partition()


def test_random_markov_networks_have_the_asked_degree():
    for degree, size in ((2, 2), (6, 2), (19, 2), (6, 3)):
        mn = make.random_markov_network(20, degree=degree, scope_size=size, fields=False, seed=0)
        assert len(mn.factors) == round(20 * degree / (size * (size - 1)))
        assert all(len(f.names) == size for f in mn.factors)
    assert len(make.random_markov_network(20, seed=0).factors) == 20 + 30
    assert make.random_markov_network(1, degree=0, seed=0).variables == ["x0"]


def test_scopes_can_be_given():
    square = UndirectedGraph([("x0", "x1"), ("x1", "x2"), ("x2", "x3"), ("x3", "x0")])
    mn = make.random_markov_network(5, scopes=square.edges, fields=False, strength=0.0, seed=0)
    assert {frozenset(e) for e in mn.edges} == {frozenset(e) for e in square.edges}
    assert np.exp(mn.log_partition()) == pytest.approx(2**5)
    with pytest.raises(mk.errors.UnknownVariable, match="x9"):
        make.random_markov_network(4, scopes=[("x0", "x9")])


def test_ising_grid_weighs_configurations_by_its_energy():
    mn = make.ising_grid(2, 3, coupling=0.7, field=0.2)
    assert mn.variables == [f"x{r}_{c}" for r in range(2) for c in range(3)]
    z = 0.0
    for flat in product([-1, 1], repeat=6):
        x = np.reshape(flat, (2, 3))
        log_weight = 0.7 * ((x[:, 1:] * x[:, :-1]).sum() + (x[1:] * x[:-1]).sum()) + 0.2 * x.sum()
        assert mn.energy(dict(zip(mn.variables, flat, strict=True))) == pytest.approx(-log_weight)
        z += np.exp(log_weight)
    assert np.exp(mn.log_partition()) == pytest.approx(z)


def test_potts_grid_rewards_equal_neighbours():
    mn = make.potts_grid(2, 2, ["a", "b", "c"], coupling=0.5)
    z = sum(
        np.exp(0.5 * ((p == q) + (p == r) + (q == s) + (r == s)))
        for p, q, r, s in product(range(3), repeat=4)
    )
    assert np.exp(mn.log_partition()) == pytest.approx(z)
    assert make.potts_grid(1, 1, 4).query("x0_0")[2] == pytest.approx(0.25)
    torus = make.potts_grid(4, 4, 2, periodic=True)
    assert {len(torus.neighbors(v)) for v in torus.variables} == {4}


def test_qmr_findings_are_leaky_noisy_ors():
    bn = make.qmr(6, 4, causes=(2, 4), seed=0)
    assert bn.variables == [*(f"d{i}" for i in range(6)), *(f"f{i}" for i in range(4))]
    for finding in ("f0", "f1", "f2", "f3"):
        table = bn[finding]
        assert isinstance(table, NoisyOrConditional)
        assert 2 <= len(table.parents) <= 4
        strengths, leak, on = table.parameters()
        assert set(on) == {1}
        assert ((strengths >= 0.1) & (strengths <= 0.9)).all()
        assert 0.001 <= leak <= 0.05
        for present in product([0, 1], repeat=len(table.parents)):
            absent = (1 - leak) * np.prod([1 - s for s, x in zip(strengths, present, strict=True) if x])
            assert table.values[(*present, 0)] == pytest.approx(absent)
    assert all(0.001 <= bn.query(f"d{i}")["yes"] <= 0.1 for i in range(6))


@pytest.mark.slow
def test_qmr_with_hundreds_of_causes_is_sampled_and_scored_without_tables():
    bn = make.qmr(300, 40, causes=250, seed=0)
    rows = bn.sample(50, seed=0)
    assert rows.shape == (50, 340)
    scores = bn.log_prob(rows)
    diseases = np.sum(
        [bn[f"d{i}"].log_prob(np.array(rows[f"d{i}"] == "yes", int), []) for i in range(300)], axis=0
    )
    for j in (0, 17):
        total = diseases[j]
        for i in range(40):
            strengths, leak, _ = bn[f"f{i}"].parameters()
            present = np.array([rows[p][j] == "yes" for p in bn.parents(f"f{i}")])
            absent = np.log1p(-leak) + np.log1p(-strengths[present]).sum()
            total += absent if rows[f"f{i}"][j] == "no" else np.log(-np.expm1(absent))
        assert scores[j] == pytest.approx(total)
    with pytest.raises(mk.errors.TooLarge):
        bn["f0"].values  # noqa: B018
    one = bn.query("f0", engine="junction-tree")  # a chain of small tables
    strengths, leak, _ = bn["f0"].parameters()
    chances = np.array([bn[p].values[1] for p in bn.parents("f0")])
    assert one["no"] == pytest.approx((1 - leak) * np.prod(1 - chances * strengths))
    assert bn.count_parameters() == 300 + 40 * 251


CLAUSES = [(1, -2, -3), (2, 3, -4), (4, -1, -2)]


@pytest.mark.parametrize("encoding", ["single", "chain"])
def test_three_sat_counts_satisfying_assignments(encoding):
    bn = make.three_sat(CLAUSES, encoding)
    assert bn.query("s")[1] == pytest.approx(0.625)  # 10 of 16
    true = dict.fromkeys(["x1", "x2", "x3", "x4"], 1)
    assert bn.query("s", given=true)[1] == 1.0
    assert bn.map(given={"s": 1})["s1" if encoding == "chain" else "c1"] == 1


@pytest.mark.parametrize("encoding", ["single", "chain"])
def test_an_unsatisfiable_formula_has_probability_zero(encoding):
    clauses = [
        tuple(s * i for s, i in zip(signs, (1, 2, 3), strict=True)) for signs in product([1, -1], repeat=3)
    ]
    bn = make.three_sat(clauses, encoding)
    assert bn.query("s")[1] == 0.0
    assert bn.log_evidence(given={"s": 1}) == -np.inf
    with pytest.raises(mk.errors.ImpossibleEvidence, match="s=1"):
        bn.query("x1", given={"s": 1})
    almost = make.three_sat(clauses[1:], encoding)
    assert almost.query("s")[1] == pytest.approx(1 / 8)
    assert almost.query("x1", given={"s": 1})[0] == 1.0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.sampled_from([-4, -3, -2, -1, 1, 2, 3, 4]), min_size=1, max_size=3), max_size=6))
def test_both_encodings_agree_with_counting(clauses):
    satisfied = sum(
        all(any((i > 0) == x[abs(i) - 1] for i in clause) for clause in clauses)
        for x in product([False, True], repeat=4)
    )
    for encoding in ("single", "chain"):
        bn = make.three_sat(clauses, encoding, n=4)
        assert bn.query("s")[1] == pytest.approx(satisfied / 16)


def test_the_chain_encoding_keeps_tables_small_where_the_single_node_cannot():
    clauses = make.random_clauses(12, 50, seed=0)
    chain = make.three_sat(clauses, "chain")
    satisfied = sum(
        all(any((i > 0) == x[abs(i) - 1] for i in clause) for clause in clauses)
        for x in product([False, True], repeat=12)
    )
    assert chain.query("s")[1] == pytest.approx(satisfied / 2**12)
    assert max(chain[v].n_rows for v in chain.variables) == 8
    entries = sum(chain[v].values.size for v in chain.variables if v.startswith(("c", "s")))
    assert entries <= 49 * 2**4 + 50 * 2**5 + 2  # what the lecture notes allow for K = 50 clauses
    single = make.three_sat(clauses, "single")
    assert single.query("s", engine=mk.engines.Auto(approximate=False))[1] == pytest.approx(satisfied / 2**12)


def test_random_clauses_use_three_different_variables_and_both_signs():
    clauses = make.random_clauses(20, seed=0)
    assert len(clauses) == 85
    assert all(len({abs(i) for i in clause}) == 3 and max(map(abs, clause)) <= 20 for clause in clauses)
    assert {np.sign(i) for clause in clauses for i in clause} == {-1, 1}


def test_a_markov_chain_follows_powers_of_its_matrix():
    initial, step = np.array([0.2, 0.5, 0.3]), np.array([[0.5, 0.5, 0.0], [0.1, 0.6, 0.3], [0.0, 0.2, 0.8]])
    bn = make.markov_chain(initial, step, 12, states=["a", "b", "c"])
    for t in (0, 1, 5, 11):
        np.testing.assert_allclose(bn.query(f"x{t}").values, initial @ np.linalg.matrix_power(step, t))
    assert len(make.markov_chain([1.0], [[1.0]], 1)) == 1


def test_the_ice_cream_model_has_its_textbook_answers():
    bn = make.hidden_markov_model(
        [0.8, 0.2],
        [[0.6, 0.4], [0.5, 0.5]],
        [[0.2, 0.4, 0.4], [0.5, 0.4, 0.1]],
        3,
        states=["H", "C"],
        symbols=[1, 2, 3],
    )
    assert bn.variables == ["z0", "x0", "z1", "x1", "z2", "x2"]
    seen = {"x0": 3, "x1": 1, "x2": 3}
    assert np.exp(bn.log_evidence(given=seen)) == pytest.approx(0.028562)
    for t, p in enumerate((0.936629, 0.396051, 0.822631)):
        assert bn.query(f"z{t}", given=seen)["H"] == pytest.approx(p, abs=5e-7)
    best = bn.map(given=seen)
    assert list(best.values()) == ["H", "C", "H"]
    assert np.exp(best.log_prob) == pytest.approx(0.0128)


@pytest.mark.slow
def test_chains_share_one_table_and_grow_to_a_hundred_thousand_variables():
    bn = make.markov_chain([1, 0], [[0.9, 0.1], [0.5, 0.5]], 100_000)
    assert len(bn) == 100_000
    assert bn["x1"].values is bn["x99999"].values
    assert bn.query("x100")[0] == pytest.approx(5 / 6)
    assert bn.independent("x0", "x99999", given="x500")


def test_large_grids_and_networks_are_built():
    assert len(make.potts_grid(128, 128, 3).factors) == 2 * 128 * 127
    assert len(make.random_bayesian_network(10_000, seed=0)) == 10_000
    assert len(make.random_tree_network(10_000, seed=0).edges) == 9_999


@pytest.mark.slow
def test_a_quarter_of_a_million_pixels_are_built():
    assert len(make.potts_grid(512, 512, 3)) == 512 * 512


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: make.random_bayesian_network(3, states=0), "states"),
        (lambda: make.random_bayesian_network(3, states=(3, 2)), "states"),
        (lambda: make.random_bayesian_network(3, concentration=0), "concentration"),
        (lambda: make.random_bayesian_network(3, deterministic=1.5), "deterministic"),
        (lambda: make.random_bayesian_network(-1), "number of nodes"),
        (lambda: make.random_k_tree_network(3, 3), "k-tree"),
        (lambda: make.random_k_tree_network(5, 2, kind="undirected"), "kind="),
        (lambda: make.random_markov_network(5, degree=9), "degree"),
        (lambda: make.random_markov_network(5, scope_size=1), "scope_size"),
        (lambda: make.random_markov_network(5, strength=-1), "strength"),
        (lambda: make.ising_grid(0, 3), "grid"),
        (lambda: make.qmr(0, 3), "disease"),
        (lambda: make.qmr(3, 3, causes=4), "causes"),
        (lambda: make.qmr(3, 3, causes=1, prior=(0.5, 1.5)), "prior"),
        (lambda: make.qmr(3, 3, causes=1, leak=(0.0, 0.5)), "leak"),
        (lambda: make.three_sat([(1, 0, 2)]), "literals"),
        (lambda: make.three_sat([()]), "literals"),
        (lambda: make.three_sat([(1, 2, 3, 4)]), "literals"),
        (lambda: make.three_sat([(1, 2, 3)], n=2), "n="),
        (lambda: make.three_sat([(1, 2, 3)], "star"), "encoding="),
        (lambda: make.random_clauses(2), "n="),
        (lambda: make.markov_chain([0.5, 0.5], [[1, 0], [0, 1]], 0), "T="),
        (lambda: make.markov_chain(0.5, [[1, 0], [0, 1]], 3), "initial"),
        (lambda: make.hidden_markov_model([1.0], [[1.0]], [[1.0]], 2, hidden="x"), "both be called"),
    ],
)
def test_impossible_requests_are_refused(build, message):
    with pytest.raises(mk.errors.InvalidArgument, match=message):
        build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: make.markov_chain([0.5, 0.6], [[1, 0], [0, 1]], 3), "sums to 1.1"),
        (lambda: make.markov_chain([0.5, 0.5], [[1, 0], [0.3, 0.3]], 3), "x0=1 sums to 0.6"),
        (lambda: make.hidden_markov_model([0.5, 0.5], np.eye(2), [[0.5, 0.5], [0.7, 0.7]], 3), "sums to 1.4"),
        (lambda: make.hidden_markov_model([0.5, 0.5], np.eye(2), 1.0, 3), "shape"),
    ],
)
def test_rows_that_are_no_distribution_are_named(build, message):
    with pytest.raises(mk.errors.InvalidTable, match=message):
        build()
