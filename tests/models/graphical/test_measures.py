"""Association under a model, independence of a distribution, and the verbs undirected models share."""

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
import markovia.exponential as ef
from markovia.factors import joint_oracle
from markovia.graphs import d_separated, independencies_of, is_imap, is_perfect_map, minimal_imap
from markovia.learning import hsic, hsic_of_table, mmd, mmd_of_tables
from model_strategies import brute_force, markov_networks


@pytest.mark.parametrize("n", [4, 16, 18])
def test_weak_dependence_is_seen_under_a_long_condition(n):
    bn = mk.BayesianNetwork()
    bn.add("a", p=[0.5, 0.5])
    bn.add("b", parents=["a"], p=[[0.6, 0.4], [0.4, 0.6]])
    others = [f"x{i}" for i in range(n - 2)]
    for name in others:
        bn.add(name, p=[0.5, 0.5])
    joint = bn.joint()
    assert not joint.independent("a", "b", given=others)
    assert joint.independent("a", others[0], given=["b", *others[1:]])


def test_rare_events_can_be_dependent():
    rare = mk.Factor(["a", "b"], [[1 - 1.5e-9, 5e-10], [5e-10, 5e-10]])
    assert not rare.independent("a", "b")


def test_a_potential_that_is_a_product_is_independent_although_the_graph_has_the_edge():
    mn = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[1, 2], [2, 4]])])
    assert not mn.independent("a", "b")
    assert mn.joint().independent("a", "b")


def test_all_independencies_of_a_table_are_listed():
    p1 = mk.Factor(["x", "y"], [[0.08, 0.32], [0.12, 0.48]])
    p2 = mk.Factor(["x", "y"], [[0.4, 0.3], [0.2, 0.1]])
    assert [str(s) for s in independencies_of(p1, p1.names)] == ["x ⊥ y"]
    assert independencies_of(p2, p2.names) == []
    xor = mk.Factor(["x", "y", "z"], [[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    assert {str(s) for s in independencies_of(joint_oracle(xor), xor.names)} == {"x ⊥ y", "x ⊥ z", "y ⊥ z"}


def test_graphs_are_compared_with_tables_gaussians_and_models_directly():
    bn = mk.examples.student()
    joint = bn.joint()
    assert is_imap(bn.graph, joint)
    assert is_imap(bn.graph, bn)
    smaller = bn.graph
    smaller.remove_edge("difficulty", "grade")
    assert not is_imap(smaller, joint)
    assert minimal_imap(joint, bn.variables).graph == bn.graph
    chain = ef.MultivariateGaussian.from_precision([0, 0, 0], [[2, -1, 0], [-1, 2, -1], [0, -1, 2]])
    assert is_perfect_map(chain.graph(), chain)


def test_the_directed_graph_of_a_gaussian_states_only_what_holds():
    precision = [[2.0, 0.0, 0.7], [0.0, 2.0, 0.6], [0.7, 0.6, 2.0]]
    normal = ef.MultivariateGaussian.from_precision([0, 0, 0], precision, ("a", "b", "c"))
    assert abs(normal.covariance_matrix[0, 1]) > 0.05
    assert not d_separated(normal.dag(), "a", "b")
    assert is_imap(normal.dag(), normal)
    collider = ef.MultivariateGaussian([0, 0, 0], [[1, 0, 1], [0, 1, 1], [1, 1, 3]], ("a", "b", "c"))
    assert set(collider.dag().edges) == {("a", "c"), ("b", "c")}
    assert collider.independent("a", "b")
    assert not collider.independent("a", "b", given="c")


def test_partial_correlation_of_a_gaussian_is_that_of_the_residuals():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 4))
    normal = ef.MultivariateGaussian(np.zeros(4), a @ a.T + np.eye(4))
    cov = normal.covariance_matrix
    rest = [2, 3]
    left = cov[:2, :2] - cov[:2, rest] @ np.linalg.solve(cov[np.ix_(rest, rest)], cov[rest, :2])
    expected = left[0, 1] / np.sqrt(left[0, 0] * left[1, 1])
    assert normal.partial_correlation()[0, 1] == pytest.approx(expected, abs=1e-12)
    assert normal.correlation()[0, 1] == pytest.approx(cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1]))


def test_independent_vectors_add_their_covariances():
    one = ef.MultivariateGaussian([0, 0], 4.0 * np.eye(2))
    two = ef.MultivariateGaussian([1, 2], 9.0 * np.eye(2))
    np.testing.assert_allclose((one + two).covariance_matrix, 13.0 * np.eye(2))
    assert (one + two).mean.tolist() == [1, 2]
    with pytest.raises(mk.errors.InvalidArgument, match="same coordinates"):
        one + ef.MultivariateGaussian([0], [[1]])


def numeric_chain():
    bn = mk.BayesianNetwork()
    bn.add("age", states=[1, 2, 3, 4], p=[0.25] * 4)
    bn.add("height", lambda age: {10 * age: 0.7, 10 * age + 5: 0.3}, states=[10, 15, 20, 25, 30, 35, 40, 45])
    bn.add("words", lambda age: {3 * age: 0.6, 3 * age + 1: 0.4}, states=[3, 4, 6, 7, 9, 10, 12, 13])
    return bn


def test_height_and_vocabulary_are_correlated_until_age_is_known():
    bn = numeric_chain()
    assert bn.correlation("height", "words") > 0.9
    assert bn.partial_correlation("height", "words", given="age") == pytest.approx(0.0, abs=1e-9)
    assert bn.hsic("height", "words") > 0.01
    assert bn.hsic("height", "words", given={"age": 2}) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(mk.errors.InvalidArgument, match="nothing of"):
        bn.do(age=2).partial_correlation("age", "words", given="height")


def test_kernel_measures_of_tables_equal_those_of_data_with_these_frequencies():
    counts = np.array([[3, 1, 0], [2, 5, 4]])
    x = np.repeat([0, 0, 0, 1, 1, 1], counts.ravel())
    y = np.repeat([0, 1, 2, 0, 1, 2], counts.ravel())
    assert hsic_of_table(counts) == pytest.approx(hsic(x, y, kernel="discrete"), abs=1e-12)
    p, q = np.array([4, 1, 2]), np.array([1, 3, 3])
    first, second = np.repeat(range(3), p), np.repeat(range(3), q)
    assert mmd_of_tables(p, q) == pytest.approx(mmd(first, second, kernel="discrete"), abs=1e-12)
    with pytest.raises(mk.errors.InvalidArgument):
        mmd_of_tables([1, 2], [1, 2, 3])
    with pytest.raises(mk.errors.InvalidArgument):
        hsic_of_table([[1, -1], [1, 1]])
    with pytest.raises(mk.errors.InvalidArgument, match="symmetric"):
        hsic_of_table([[1, 1], [1, 1]], x_kernel=[[1, 2], [0, 1]])


def test_discrete_distributions_are_node_forms_and_others_name_the_place_for_numbers():
    bn = mk.BayesianNetwork()
    bn.add("coin", ef.Bernoulli(0.3))
    bn.add("die", ef.Categorical([0.2, 0.3, 0.5]))
    assert bn.query("coin")[1] == pytest.approx(0.3)
    assert bn.query("die").values.tolist() == [0.2, 0.3, 0.5]
    with pytest.raises(mk.errors.InvalidArgument, match="a number takes a distribution"):
        bn.add("height", ef.Gaussian(0, 1))


def test_hidden_units_are_dependent_until_the_visible_ones_are_known():
    w, a, b = np.array([[1.0, -0.5], [0.3, 2.0], [0.7, 1.0]]), [0.1, -0.2, 0.3], [-0.4, 0.2]
    rbm = mk.MarkovNetwork.restricted_boltzmann(w, a, b)
    joint = rbm.joint()
    assert not joint.independent("h0", "h1")
    assert joint.independent("h0", "h1", given=["v0", "v1", "v2"])
    assert joint.independent("v0", "v1", given=["v2", "h0", "h1"])
    v = np.array([1, 0, 1])
    posterior = rbm.query("h0", given={"v0": 1, "v1": 0, "v2": 1})[1]
    assert posterior == pytest.approx(1 / (1 + np.exp(-(b[0] + v @ w[:, 0]))))


def test_a_centred_boltzmann_energy_is_the_same_machine():
    rng = np.random.default_rng(3)
    theta = rng.normal(size=(3, 3))
    theta = (theta + theta.T) / 2
    np.fill_diagonal(theta, 0.0)
    mu = rng.normal(size=3)
    machine = mk.MarkovNetwork.boltzmann(-2 * theta, 2 * theta @ mu)
    joint = machine.joint()
    states = [np.array([u, v, w]) for u in (-1, 1) for v in (-1, 1) for w in (-1, 1)]
    weights = np.array([np.exp(-(x - mu) @ theta @ (x - mu)) for x in states])
    np.testing.assert_allclose(joint.values.ravel(), weights / weights.sum(), atol=1e-12)


@sampled(model=markov_networks(max_nodes=5, zeros=False), seed=st.integers(0, 10_000))
@settings(max_examples=60)
def test_the_relevant_part_of_an_undirected_model_gives_the_same_posterior(model, seed):
    rng = np.random.default_rng(seed)
    names = [str(n) for n in rng.permutation(model.variables)]
    target, seen = names[0], names[1 : 1 + rng.integers(0, 3)]
    given = {n: model.states(n)[rng.integers(len(model.states(n)))] for n in seen}
    small = model.relevant(target, seen)
    kept = {n: s for n, s in given.items() if n in small}
    assert small.query(target, given=kept).allclose(model.query(target, given=given), atol=1e-10)


def test_the_relevant_part_of_a_chain_ends_at_what_is_observed():
    chain = mk.MarkovNetwork.ising({("a", "b"): 1.0, ("b", "c"): 1.0, ("c", "d"): 1.0, ("d", "e"): 1.0})
    assert chain.relevant("c", ["b", "d"]).variables == ["b", "c", "d"]
    assert len(chain.relevant("c", ["b", "d"]).factors) == 2


def test_undirected_models_are_compared_and_renamed():
    one = mk.examples.misconception()
    two = one.copy()
    assert one.compare(two) == []
    name = one.variables[0]
    two.rename_states(name, {one.states(name)[0]: "never"})
    assert [d.where for d in one.compare(two)] == [name]
    assert two.query(name)["never"] == pytest.approx(one.query(name).values[0])
    three = one.copy()
    three.remove_factor(0)
    three.add("extra", 2)
    told = [str(d) for d in one.compare(three)]
    assert "extra: only in the second" in told
    assert any("a factor only in the first" in t for t in told)
    four = one.copy()
    first = four.factors[0]
    four.remove_factor(0)
    four.add_factor(first * 2)
    assert any("factors differ by up to" in str(d) for d in one.compare(four))
    assert {str(s) for s in one.to_factor_graph().independencies("pairwise")} == {
        str(s) for s in one.independencies("pairwise")
    }


def test_conditioning_a_directed_network_keeps_the_mass_of_the_evidence():
    bn = mk.examples.asia()
    given = {"dysp": "yes", "xray": [0.3, 0.7]}
    rest = bn.condition(given)
    assert "dysp" not in rest
    assert rest.log_partition() == pytest.approx(bn.log_evidence(given))
    assert rest.query("lung").allclose(bn.query("lung", given=given), atol=1e-12)
    np.testing.assert_allclose(
        brute_force(rest, {}), brute_force(bn, given)[..., bn.states("dysp").index("yes")], atol=1e-15
    )


def test_a_model_climbs_to_a_configuration_no_single_change_improves():
    bn = mk.examples.asia()
    found = bn.conditional_modes(given={"xray": "yes"}, seed=0)
    assert found.states["xray"] == "yes"
    assert found.log_weight == pytest.approx(float(bn.log_prob([found.states])[0]))
    best = bn.map(given={"xray": "yes"})
    polished = bn.conditional_modes(best, given={"xray": "yes"})
    assert {n: polished.states[n] for n in best} == dict(best)


def test_naive_bayes_prediction_is_the_rule_of_bayes():
    bn = mk.BayesianNetwork()
    prior = np.array([0.7, 0.3])
    words = {"free": np.array([[0.9, 0.1], [0.2, 0.8]]), "meeting": np.array([[0.6, 0.4], [0.95, 0.05]])}
    bn.add("spam", states=["no", "yes"], p=prior)
    for name, table in words.items():
        bn.add(name, parents=["spam"], p=table)
    rows = [{"free": f, "meeting": m} for f in (0, 1) for m in (0, 1)]
    scores = np.array([prior * words["free"][:, r["free"]] * words["meeting"][:, r["meeting"]] for r in rows])
    expected = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(bn.predict_proba(rows, "spam").to_numpy(), expected, atol=1e-12)
