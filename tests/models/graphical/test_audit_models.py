"""Wrong answers, blow-ups and bare errors that an audit of the models layer found, as tests."""

import math
import pickle
import time

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia import errors
from markovia.errors import (
    CycleError,
    DuplicateName,
    ImpossibleEvidence,
    InvalidArgument,
    InvalidGraph,
    InvalidTable,
    MarkoviaError,
    TooLarge,
    UnknownState,
    UnknownVariable,
)
from markovia.factors.potentials.potentials import from_energy, ising, potts
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.factor import Factor, product
from markovia.factors.tables.variable import MAX_STATES, Variable
from markovia.graphs import DAG
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork


def chain(n=3):
    return mk.BayesianNetwork("->".join(f"x{i}" for i in range(n)), tables="random", seed=0)


def pair():
    return mk.MarkovNetwork({"a": 2, "b": 2}, [Factor(["a", "b"], [[30, 5], [1, 10]])])


# -- structures and states ---------------------------------------------------------------------------------------


def test_a_lone_string_among_parents_is_one_parent():
    bn = mk.BayesianNetwork({"wet": "rain"})
    assert bn.variables == ["rain", "wet"]
    assert bn.parents("wet") == ["rain"]


@pytest.mark.parametrize("parents", [None, 3, [3], {"rain", "sprinkler"}])
def test_parents_in_a_mapping_that_are_no_list_of_names_are_refused(parents):
    with pytest.raises(InvalidArgument, match="parent"):
        mk.BayesianNetwork({"wet": parents})


@pytest.mark.parametrize("unordered", [{"a", "b"}, frozenset({"a", "b"})])
def test_sets_have_no_order_and_are_refused_where_order_means_something(unordered):
    with pytest.raises(InvalidArgument, match="order"):
        Variable("x", unordered)
    with pytest.raises(InvalidArgument, match="order"):
        mk.BayesianNetwork("x->y", states={"x": unordered})
    with pytest.raises(InvalidArgument, match="targets have an order"):
        pair().query(unordered)
    bn = mk.BayesianNetwork("a; b")
    with pytest.raises(InvalidArgument, match="order"):
        bn.add("z", parents=unordered)
    assert Variable("x", dict.fromkeys(["q", "p"]).keys()).states == ("q", "p")


def test_a_parent_listed_twice_is_refused_and_nothing_changes():
    bn = mk.BayesianNetwork("x; y", tables="uniform")
    with pytest.raises(DuplicateName, match="twice"):
        bn.add("z", parents=["x", "x"], p="uniform")
    with pytest.raises(DuplicateName, match="twice"):
        bn.replace("y", p="uniform", parents=["x", "x"])
    assert bn.variables == ["x", "y"]
    assert bn.edges == []


def test_states_without_a_structure_are_refused():
    with pytest.raises(InvalidArgument, match="structure"):
        mk.BayesianNetwork(states={"a": 3})
    with pytest.raises(InvalidArgument, match="mapping"):
        mk.BayesianNetwork("a->b", states=3)


def test_a_wide_frame_with_a_repeated_row_is_refused():
    bn = mk.BayesianNetwork("x", tables="uniform")
    frame = pd.DataFrame([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], index=[0, 1, 1])
    with pytest.raises(InvalidTable, match="3 rows for 2 configurations"):
        bn.add("y", parents=["x"], p=frame)
    with pytest.raises(InvalidTable, match="2 rows for 1"):
        bn.add("y", p=pd.DataFrame([[0.9, 0.1], [0.2, 0.8]]))
    with pytest.raises(InvalidTable, match="two columns"):
        bn.add("y", states=[0, 1], parents=["x"], p=pd.DataFrame([[1, 0, 0], [1, 0, 0]], columns=[0, 1, 1]))


@pytest.mark.parametrize("labelled_first", [True, False])
def test_plain_name_factors_take_over_states_whatever_their_order(labelled_first):
    plain = Factor(["b", "a"], [[1, 2], [3, 4]])
    labelled = Factor([Variable("a", ["x", "y"])], [1, 1])
    mn = mk.MarkovNetwork([], [labelled, plain] if labelled_first else [plain, labelled])
    assert mn.states("a") == ["x", "y"]
    assert mn.query("a")["y"] == pytest.approx(0.6)
    assert mn.variables == (["a", "b"] if labelled_first else ["b", "a"])


def test_two_labelled_factors_that_disagree_are_still_refused():
    with pytest.raises(InvalidTable, match="states"):
        mk.MarkovNetwork(
            [],
            [Factor([Variable("a", ["x", "y"])], [1, 1]), Factor([Variable("a", ["u", "v"])], [1, 1])],
        )


# -- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [1, 0, -2, "2", True, 0.5, math.inf, math.nan])
def test_a_base_that_is_no_number_above_one_is_refused(base):
    f = Factor(["a", "b"], [[30, 5], [1, 10]])
    disjoint = Factor(["a", "b"], [[0, 5], [1, 10]])
    for ask in (
        lambda: f.entropy(base=base),
        lambda: f.kl(disjoint, base=base),
        lambda: f.mutual_information("a", "b", base=base),
        lambda: pair().mutual_information("a", "b", base=base),
        lambda: pair().query("a").entropy(base=base),
    ):
        with pytest.raises(InvalidArgument, match="base="):
            ask()


def test_mutual_information_is_measured_in_the_unit_of_the_base():
    f = Factor(["a", "b"], [[1, 0], [0, 1]])
    assert f.mutual_information("a", "b", base=2) == pytest.approx(1.0)
    assert f.mutual_information("a", "b") == pytest.approx(math.log(2))


def test_a_model_of_weight_zero_has_no_probabilities():
    mn = mk.MarkovNetwork({"a": 2}, [Factor(["a"], [1, 0]), Factor(["a"], [0, 1])])
    assert mn.log_partition() == -math.inf
    for ask in (
        lambda: mn.log_evidence(),
        lambda: mn.log_evidence({"a": 0}),
        lambda: mn.log_prob([{"a": 0}]),
        lambda: mn.log_prob([{"a": None}]),
        lambda: mn.query("a"),
    ):
        with pytest.raises(ImpossibleEvidence, match="every configuration weight zero"):
            ask()
    with pytest.raises(MarkoviaError, match="weight zero"):
        mn.validate()


def test_a_finite_energy_never_becomes_a_forbidden_configuration():
    with pytest.raises(InvalidTable, match="infinite energy"):
        from_energy(["a"], [0.0, 800.0])
    with pytest.raises(InvalidTable, match="zero in floating point"):
        potts([("a", "b")], 2, strength=-800.0)
    assert from_energy(["a"], [0.0, math.inf]).values.tolist() == [1.0, 0.0]
    assert from_energy(["a"], [0.0, 700.0]).values[1] > 0


# -- size --------------------------------------------------------------------------------------------------------


def test_a_product_beyond_the_limit_is_refused_before_it_is_allocated():
    wide = [Factor([f"x{i}"], np.ones(2**8)) for i in range(4)]
    with pytest.raises(TooLarge, match="4,294,967,296 entries"):
        product(wide)
    half = product(wide[:2])
    with pytest.raises(TooLarge, match="entries"):
        half * product(wide[2:])


def test_summing_out_a_hub_is_refused_when_its_product_is_too_large():
    spokes = [f"s{i}" for i in range(40)]
    mn = mk.MarkovNetwork(factors=[Factor(["hub", s], [[3, 1], [1, 3]]) for s in spokes])
    with pytest.raises(TooLarge, match="entries"):
        mn.marginalise("hub")
    few = mk.MarkovNetwork(factors=[Factor(["hub", s], [[3, 1], [1, 3]]) for s in spokes[:4]])
    rest = few.marginalise("hub")
    assert rest.query(["s0", "s3"]).allclose(few.query(["s0", "s3"]))


def test_a_variable_has_a_largest_number_of_states():
    for states in (3 * 10**8, range(3 * 10**8), MAX_STATES + 1):
        with pytest.raises(TooLarge, match="states"):
            Variable("a", states)


def test_a_sample_has_a_largest_number_of_cells():
    with pytest.raises(TooLarge, match="rows"):
        chain().sample(10**13)
    with pytest.raises(TooLarge, match="rows"):
        pair().sample(10**13)


def test_editing_edge_by_edge_does_not_rebuild_the_graph(monkeypatch):
    n = 2000
    bn = mk.BayesianNetwork()
    for i in range(n + 1):
        bn.add(f"x{i}")
    assert bn.children("x0") == []
    built = []
    original = DAG.from_parents.__func__
    monkeypatch.setattr(
        DAG, "from_parents", classmethod(lambda cls, p: built.append(len(p)) or original(cls, p))
    )
    for i in range(n):
        bn.add_edge(f"x{i}", f"x{i + 1}")
    bn.add("leaf", parents=["x5"])
    assert bn.children("x5") == ["x6", "leaf"]
    for i in range(n):
        bn.remove_edge(f"x{i}", f"x{i + 1}")
        assert bn.children(f"x{i}") == (["leaf"] if i == 5 else [])
    bn.remove("leaf")
    for i in range(n):
        bn.remove(f"x{i}")
    assert built == []
    assert bn.graph.nodes == [f"x{n}"]


def test_the_graph_follows_every_edit():
    bn = chain(4)
    assert bn.graph == DAG([("x0", "x1"), ("x1", "x2"), ("x2", "x3")])
    bn.add_edge("x0", "x3")
    bn.remove("x3")
    bn.add("x3", parents=["x1"])
    bn.add("y", lambda x0, x3: x0 ^ x3)
    bn.remove("y")
    bn.replace("x2", p="uniform", parents=["x0", "x3"])
    assert bn.graph == DAG([("x0", "x1"), ("x1", "x3"), ("x0", "x2"), ("x3", "x2")])
    assert bn.graph.nodes == bn.variables == ["x0", "x1", "x2", "x3"]
    assert bn.graph.topological_order() == bn.copy().graph.topological_order()


def test_a_failed_edit_leaves_the_graph_as_it_was():
    bn = chain()
    before = bn.graph
    with pytest.raises(CycleError):
        bn.add_edge("x2", "x0")
    with pytest.raises(InvalidTable):
        bn.add_edge("x0", "x2", p=[[1.0, 2.0]])
    with pytest.raises(CycleError):
        bn.add_edge("x1", "x1")
    with pytest.raises(InvalidTable):
        bn.remove_edge("x0", "x1")
    with pytest.raises(InvalidTable):
        bn.add("z", parents=["x0"], p=[[1.0, 2.0]])
    with pytest.raises(InvalidGraph):
        bn.remove("x1")
    with pytest.raises(CycleError):
        bn.replace("x0", p="uniform", parents=["x2"])
    assert bn.graph == before
    assert bn.graph.nodes == before.nodes
    assert bn.edges == [("x0", "x1"), ("x1", "x2")]
    bn.add_edge("x0", "x2")
    assert bn.children("x0") == ["x1", "x2"]


def test_a_copy_and_its_original_do_not_share_their_graph():
    bn = chain()
    assert bn.children("x0") == ["x1"]
    twin = bn.copy()
    twin.add_edge("x0", "x2")
    bn.remove("x2")
    assert bn.children("x0") == ["x1"]
    assert twin.children("x0") == ["x1", "x2"]
    assert "x2" not in bn.graph
    cut = twin.do(x1=0)
    assert cut.children("x0") == ["x2"]
    assert twin.children("x0") == ["x1", "x2"]


def test_comparing_two_large_undirected_models_is_linear_in_their_factors():
    n = 3000
    factors = [Factor([f"x{i}", f"x{i + 1}"], [[3, 1], [1, i + 1]]) for i in range(n)]
    one, two = mk.MarkovNetwork(factors=factors), mk.MarkovNetwork(factors=factors[::-1])
    start = time.process_time()
    assert one.allclose(two)
    assert time.process_time() - start < 3.0
    doubled = mk.MarkovNetwork(factors=[*factors[:-1], factors[0]])
    doubled.add(f"x{n}")
    assert not doubled.allclose(one)
    assert not one.allclose(doubled)


# -- errors ------------------------------------------------------------------------------------------------------

MADE = {
    errors.UnknownVariable: lambda: UnknownVariable("rian", ["rain"], "the model"),
    errors.UnknownState: lambda: UnknownState("rain", "Yes", ["no", "yes"]),
    errors.CycleError: lambda: CycleError(["a", "b", "a"]),
    errors.ImpossibleEvidence: lambda: ImpossibleEvidence({"rain": "yes"}),
    errors.ParseError: lambda: errors.ParseError("a number", file="x.bif", line=3, column=7),
}


def all_errors():
    return sorted(
        {c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, MarkoviaError)},
        key=lambda c: c.__name__,
    )


@pytest.mark.parametrize("kind", all_errors(), ids=lambda c: c.__name__)
def test_every_error_survives_pickling(kind):
    error = MADE.get(kind, lambda: kind("one sentence"))()
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


REFUSED = {
    "do a list": lambda: chain().do(["x0"]),
    "relevant given None": lambda: chain().relevant("x0", given=None),
    "undirected relevant given None": lambda: pair().relevant("a", given=None),
    "subnetwork of a number": lambda: chain().subnetwork(3),
    "compare with a number": lambda: chain().compare(3),
    "compare undirected with a number": lambda: pair().compare(3),
    "allclose with another kind": lambda: chain().allclose(pair()),
    "allclose with a directed one": lambda: pair().allclose(chain()),
    "conditionals that are numbers": lambda: mk.BayesianNetwork.from_conditionals([1]),
    "conditionals that are no list": lambda: mk.BayesianNetwork.from_conditionals(1),
    "names as variables": lambda: mk.MarkovNetwork(["a", "b"]),
    "a number as variables": lambda: mk.MarkovNetwork(3),
    "a number as factors": lambda: mk.MarkovNetwork({"a": 2}, 3),
    "one factor as factors": lambda: mk.MarkovNetwork({"a": 2}, Factor(["a"], [1, 2])),
    "ising of a list": lambda: mk.MarkovNetwork.ising([("a", "b")]),
    "ising fields of a list": lambda: ising({("a", "b"): 1.0}, [1.0]),
    "pairwise of lists": lambda: mk.MarkovNetwork.pairwise(["a"], [("a", "b")]),
    "potts of a number": lambda: mk.MarkovNetwork.potts(3, 2),
    "energies in a mapping": lambda: mk.MarkovNetwork.from_energies({("a", "b"): [[0, 1], [1, 0]]}),
    "energies that are no pairs": lambda: mk.MarkovNetwork.from_energies([3]),
    "a factor removed by name": lambda: pair().remove_factor("f0"),
    "energy of likelihoods": lambda: pair().energy({"a": [0.5, 0.5], "b": 0}),
    "rename lists": lambda: chain().rename(["x0"], ["b"]),
    "rename lists undirected": lambda: pair().rename(["a"], ["b"]),
    "rename a mapping and a name": lambda: chain().rename({"x0": "b"}, "c"),
    "rename states to a number": lambda: chain().rename_states("x0", 3),
    "rename states to a string": lambda: chain().rename_states("x0", "xy"),
    "add a list": lambda: chain().add(["z"]),
    "add with a number as parents": lambda: chain().add("z", parents=3),
    "add a function without a signature": lambda: chain().add("z", max),
    "add a function of another arity": lambda: chain().add("z", lambda a, b: a, parents=["x0"]),
    "a dynamic network of numbers": lambda: DynamicBayesianNetwork(3, 4),
}


@pytest.mark.parametrize("ask", REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_type_gets_one_clear_sentence(ask):
    with pytest.raises(InvalidArgument) as caught:
        ask()
    assert 15 < len(str(caught.value)) < 250


def test_an_unhashable_name_is_in_no_model():
    assert ["x0"] not in chain()
    assert ["a"] not in pair()
    assert 0 not in chain()


def test_one_name_makes_a_subnetwork():
    assert chain().subnetwork("x0").variables == ["x0"]


def test_a_function_with_the_right_arity_may_be_called_with_any_argument_names():
    bn = chain(2)
    bn.add("z", lambda p, *rest, scale=1: p ^ rest[0], parents=["x0", "x1"])
    assert bn["z"].values[1, 1, 0] == 1.0


def test_the_codes_of_a_variable_cannot_be_changed():
    v = Variable("a", ["x", "y"])
    assert dict(v.codes) == {"x": 0, "y": 1}
    with pytest.raises(TypeError):
        v.codes["z"] = 2
    assert v.index("y") == 1


@pytest.mark.parametrize("seed", ["a", -1, 1.5])
def test_a_seed_that_is_none_is_refused(seed):
    for ask in (
        lambda: chain().sample(3, seed=seed),
        lambda: pair().sample(3, seed=seed),
        lambda: chain().fill("random", seed=seed),
        lambda: mk.BayesianNetwork("a->b", tables="random", seed=seed),
        lambda: chain().conditional_modes(seed=seed),
        lambda: mk.generators.random_markov_network(4, seed=seed),
    ):
        with pytest.raises(InvalidArgument, match="seed"):
            ask()


# -- rows --------------------------------------------------------------------------------------------------------


def test_an_empty_model_samples_rows_without_columns():
    assert mk.BayesianNetwork().sample(3).shape == (3, 0)
    assert mk.MarkovNetwork().sample(3).shape == (3, 0)
    assert chain().sample(0, seed=0).shape == (0, 3)


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical([0, 1, 1]),
        pd.Index([0, 1, 1]),
        pd.array([0, 1, 1]),
        pd.Series([0, 1, 1]),
        np.array([0, 1, 1]),
        (0, 1, 1),
        {0: 0, 1: 1, 2: 1},
    ],
    ids=lambda c: type(c).__name__,
)
def test_any_iterable_that_is_no_string_is_a_column(column):
    mn = pair()
    expected = mn.log_prob(pd.DataFrame({"a": [0, 1, 1], "b": [1, 1, 1]}))
    np.testing.assert_allclose(mn.log_prob({"a": column, "b": 1}), expected)
    np.testing.assert_allclose(mn.log_prob({"b": 1, "a": column}), expected)


def test_ranges_and_generators_are_columns_and_single_cells_a_row():
    mn = pair()
    expected = mn.log_prob([{"a": 0}, {"a": 1}])
    np.testing.assert_allclose(mn.log_prob({"a": range(2)}), expected)
    np.testing.assert_allclose(mn.log_prob({"a": (i for i in range(2))}), expected)
    np.testing.assert_allclose(mn.log_prob({"a": np.array(1)}), expected[1:])
    assert mn.log_prob({"a": []}).shape == (0,)


def test_cells_that_are_lists_are_unknown_states():
    for rows in ([{"a": [1, 2]}], {"a": [[0], [1, 0]]}, [{"a": {1}}], [{"a": 0}, {"a": (0, [1])}]):
        with pytest.raises(UnknownState, match="'a'"):
            pair().log_prob(rows)


def test_columns_that_do_not_fit_are_refused():
    for rows in ({"a": [0, 1], "b": [0]}, {"a": {0, 1}}, {"a": np.zeros((2, 2))}):
        with pytest.raises(InvalidArgument, match="column"):
            pair().log_prob(rows)


def test_an_intervention_may_name_a_variable_self():
    bn = mk.BayesianNetwork("self->interventions", tables="uniform")
    assert bn.do(self=1, interventions=0).edges == []


def test_a_ready_table_with_a_repeated_parent_is_refused():
    x, z = Variable("x", 2), Variable("z", 2)
    bn = mk.BayesianNetwork("x", tables="uniform")
    twice = ConditionalTable.of(z, (x, x), np.full((2, 2, 2), 0.5))
    with pytest.raises(DuplicateName, match="twice"):
        bn.add("z", twice)
