import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from model_strategies import brute_force, markov_networks, random_evidence


def pair():
    return mk.MarkovNetwork({"a": ["x", "y"], "b": 2}, [mk.Factor(["a", "b"], [[30, 5], [1, 10]])])


def test_factors_take_over_the_states_of_the_model():
    mn = pair()
    assert mn.factors[0].variable("a").states == ("x", "y")
    assert mn.query("a")["x"] == pytest.approx(35 / 46)
    assert np.exp(mn.log_partition()) == pytest.approx(46)
    assert mn.log_evidence({"a": "y"}) == pytest.approx(np.log(11 / 46))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda mn: mn.add("a", 2), mk.errors.DuplicateName, "already has"),
        (
            lambda mn: mn.add_factor(mk.Factor(["b", "a"], np.ones((3, 2)))),
            mk.errors.InvalidTable,
            "3 states, but it has 2",
        ),
        (
            lambda mn: mn.add_factor(mk.Factor(["new", "b"], np.ones((3, 2)))),
            mk.errors.UnknownVariable,
            r"'new' in the declared variables; add\('new', 3\) declares it",
        ),
        (
            lambda mn: mn.add_factor(mk.Factor([mk.Variable("a", ["p", "q"])], [1, 2])),
            mk.errors.InvalidTable,
            "states",
        ),
        (lambda mn: mn.remove("a"), mk.errors.InvalidArgument, "factors mention 'a'"),
        (lambda mn: mn.remove_factor(5), mk.errors.InvalidArgument, "1 factors"),
        (lambda mn: mn.rename("a", "b"), mk.errors.DuplicateName, "one name"),
        (lambda mn: mn.independent("a", "c"), mk.errors.UnknownVariable, "'c'"),
    ],
)
def test_a_failed_edit_changes_nothing(call, error, message):
    mn = pair()
    with pytest.raises(error, match=message):
        call(mn)
    assert mn.allclose(pair())
    assert mn.variables == ["a", "b"]


def test_edits_are_seen_by_the_graph_and_the_partition_function():
    mn = pair()
    assert np.exp(mn.log_partition()) == pytest.approx(46)
    mn.add("c", 3)
    assert np.exp(mn.log_partition()) == pytest.approx(138)
    mn.add_factor(mk.Factor(["b", "c"], np.full((2, 3), 2.0)))
    assert set(mn.graph.edges) == {("a", "b"), ("b", "c")}
    assert mn.independent("a", "c", given="b")
    assert mn.markov_blanket("b") == {"a", "c"}
    mn.remove_factor(1)
    mn.remove("c")
    mn.rename("b", "z")
    assert mn.factors[0].names == ("a", "z")
    assert np.exp(mn.log_partition()) == pytest.approx(46)


@sampled(model=markov_networks(), seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_conditioning_gives_the_reduced_model(model, seed):
    given = random_evidence(model, np.random.default_rng(seed))
    table = brute_force(model, given)
    reduced = model.condition(given)
    hard = [n for n, v in given.items() if isinstance(v, int)]
    assert reduced.variables == [n for n in model.variables if n not in hard]
    expected = table.sum(axis=tuple(model.variables.index(n) for n in hard))
    np.testing.assert_allclose(
        brute_force(reduced, {}), expected, atol=1e-9 * max(1.0, expected.max(initial=0))
    )


@sampled(model=markov_networks(zeros=False), seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_summing_a_variable_out_keeps_the_rest(model, seed):
    if len(model) < 2:
        return
    name = model.variables[seed % len(model)]
    rest = model.marginalise(name)
    axis = model.variables.index(name)
    np.testing.assert_allclose(brute_force(rest, {}), brute_force(model, {}).sum(axis=axis), rtol=1e-9)


@sampled(model=markov_networks(zeros=False))
@settings(max_examples=40, deadline=None)
def test_a_directed_version_has_the_same_joint(model):
    assert model.to_bayesian_network().joint().allclose(model.joint(), atol=1e-9)
    assert model.to_factor_graph().joint().allclose(model.joint(), atol=1e-12)


def test_a_four_cycle_needs_a_fill_edge_to_be_directed():
    mn = mk.examples.misconception()
    with pytest.raises(mk.errors.InvalidGraph, match="not chordal"):
        mn.to_bayesian_network(allow_fill=False)
    directed = mn.to_bayesian_network()
    assert len(directed.edges) == 5
    assert directed.joint().allclose(mn.joint(), atol=1e-12)


@sampled(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_canonical_potentials_rebuild_a_positive_joint_with_its_own_graph(seed):
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d"]
    ring = [
        mk.Factor([x, y], rng.random((2, 2)) + 0.1) for x, y in zip(names, names[1:] + names[:1], strict=True)
    ]
    model = mk.MarkovNetwork(dict.fromkeys(names, 2), ring)
    again = mk.MarkovNetwork.from_joint(model.joint())
    assert again.joint().allclose(model.joint(), atol=1e-12)
    assert set(map(frozenset, again.edges)) <= set(map(frozenset, model.edges))


def test_builders_agree_with_their_formulas():
    ising = mk.MarkovNetwork.ising({("a", "b"): 0.7}, {"a": 0.2})
    z = sum(np.exp(0.7 * x * y + 0.2 * x) for x in (-1, 1) for y in (-1, 1))
    assert np.exp(ising.log_partition()) == pytest.approx(z)
    assert ising.query(["a", "b"])[1, -1] == pytest.approx(np.exp(-0.7 + 0.2) / z)
    potts = mk.MarkovNetwork.potts([("a", "b")], 3, strength=1.5)
    assert potts.query(["a", "b"])[1, 1] == pytest.approx(np.exp(1.5) / (3 * np.exp(1.5) + 6))
    energy = mk.MarkovNetwork.from_energies([(["a"], [0.0, 2.0])], temperature=2.0)
    assert energy.query("a")[0] == pytest.approx(1 / (1 + np.exp(-1)))
    assert energy.energy({"a": 1}) == pytest.approx(1.0)
    machine = mk.MarkovNetwork.boltzmann([[0, 0.5], [0.5, 0]], [0.1, -0.2], names=["u", "v"], states=(0, 1))
    assert machine.query(["u", "v"])[1, 1] / machine.query(["u", "v"])[0, 0] == pytest.approx(
        np.exp(0.5 + 0.1 - 0.2)
    )


def test_one_three_way_factor_and_three_pairs_differ_as_factor_graphs_only():
    cards = {"a": 2, "b": 2, "c": 2}
    one = mk.FactorGraph(cards, [mk.Factor(["a", "b", "c"], np.ones((2, 2, 2)))])
    three = mk.FactorGraph(cards, [mk.Factor([x, y], np.ones((2, 2))) for x, y in ("ab", "bc", "ac")])
    assert len(one.graph.factors) == 1
    assert len(three.graph.factors) == 3
    assert one.undirected_graph == three.undirected_graph
    assert one.edges == [("a", "f0"), ("b", "f0"), ("c", "f0")]


def test_a_model_of_weight_zero_is_refused_when_validated():
    model = mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [0, 0])])
    with pytest.raises(mk.errors.IncompleteModel, match="weight zero"):
        model.validate()
    with pytest.raises(mk.errors.ImpossibleEvidence, match="every configuration"):
        model.query("a")


def test_sampling_an_undirected_model_follows_its_joint():
    mn = mk.examples.misconception()
    n = 400_000
    counts = mn.sample(n, seed=0).value_counts()
    for states, p in mn.joint().to_dict().items():
        seen = counts.get(states, 0)
        if n * p > 10:
            assert abs(seen - n * p) < 4.5 * np.sqrt(n * p * (1 - p)), states
        else:
            assert seen < 30, states


def test_log_prob_is_normalised():
    mn = pair()
    rows = [{"a": s, "b": t} for s in ("x", "y") for t in (0, 1)]
    assert np.exp(mn.log_prob(rows)).sum() == pytest.approx(1.0)
    assert np.exp(mn.log_prob([{"a": "x"}]))[0] == pytest.approx(35 / 46)


@pytest.mark.parametrize("kind", [mk.MarkovNetwork, mk.FactorGraph])
def test_a_factor_over_an_undeclared_name_is_refused_where_variables_were_declared(kind):
    factor = mk.Factor(["rain", "wte"], [[1, 2], [3, 4]])
    with pytest.raises(
        mk.errors.UnknownVariable, match=r"'wte' in the declared variables \(did you mean 'wet'\?\)"
    ):
        kind({"rain": 2, "wet": 2}, [factor])
    assert kind(factors=[factor]).variables == ["rain", "wte"]
    for model in (kind({"rain": 2, "wet": 2}), kind({"rain": 2, "wet": 2}).copy()):
        with pytest.raises(
            mk.errors.UnknownVariable, match=r"did you mean 'wet'\?\); add\('wte', 2\) declares it"
        ):
            model.add_factor(factor)
        assert (model.variables, model.factors) == (["rain", "wet"], [])
        model.add("wte")
        model.add_factor(factor)
        assert model.variables == ["rain", "wet", "wte"]


@pytest.mark.parametrize("kind", [mk.MarkovNetwork, mk.FactorGraph])
def test_a_factor_brings_its_variables_where_none_were_declared(kind):
    first, second = mk.Factor(["a", "b"], np.ones((2, 2))), mk.Factor(["b", "c"], np.ones((2, 3)))
    for model in (kind(factors=[first]), kind(factors=[first]).copy()):
        with pytest.raises(mk.errors.InvalidTable, match="'b'"):
            model.add_factor(mk.Factor(["new", "b"], np.ones((2, 3))))
        assert model.variables == ["a", "b"]
        model.add_factor(second)
        assert model.variables == ["a", "b", "c"]


def test_an_edit_drops_the_record_of_a_fit_of_factors():
    model = mk.MarkovNetwork(factors=[mk.Factor(["a", "b"], [[1, 1], [1, 1]])])
    model.fit({"a": [0, 1, 1], "b": [0, 1, 0]}, l2=0.1)
    assert model.fit_ is not None
    assert model.copy().fit_ is model.fit_
    model.add_factor(mk.Factor(["a"], [1, 2]))
    assert model.fit_ is None
