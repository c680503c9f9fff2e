"""Models and graphs go to networkx, pgmpy and pyAgrum and come back the same, with the same posteriors."""

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.factors.tables.conditional import ConditionalTable
from markovia.io.networkx_interop import from_networkx, to_networkx
from markovia.io.pgmpy_interop import from_pgmpy, to_pgmpy
from markovia.io.pyagrum_interop import from_pyagrum, to_pyagrum


class Peer:
    """A library that is loaded when a test first needs it: collecting would load it in each worker."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        return getattr(pytest.importorskip(self.module), name)


pgmpy_models = Peer("pgmpy.models")
pgmpy_base = Peer("pgmpy.base")
pgmpy_factors = Peer("pgmpy.factors.discrete")
pgmpy_inference = Peer("pgmpy.inference")
gum = Peer("pyagrum")

NAMES = ["a", "is it wet?", "x1", "Größe", "f0"]
STATES = [
    ["no", "yes"],
    [0, 1, 2],
    [3, 7, 20],
    [-1, 0],
    [False, True],
    [5, 2, 9],
    ["<= 2", "> 2", 'a "quoted" one'],
    ["1", "0"],
    ["only"],
    ["a|b", "{c}"],
]
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def networks(draw, states=STATES):
    """Draw a Bayesian network of up to five nodes with random tables, its parents in any order."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, 5))]
    variables: list[mk.Variable] = []
    conditionals = []
    for name in names:
        variable = mk.Variable(name, draw(st.sampled_from(states)))
        parents = list(rng.permutation(len(variables))[: rng.integers(0, 1 + min(3, len(variables)))])
        chosen = [variables[i] for i in parents]
        values = rng.dirichlet(np.ones(len(variable)), size=[len(p) for p in chosen])
        conditionals.append(ConditionalTable(variable, chosen, values))
        variables.append(variable)
    return mk.BayesianNetwork.from_conditionals(conditionals, name="drawn")


@st.composite
def markov_networks(draw, kind=mk.MarkovNetwork):
    """Draw an undirected model over four variables; scopes may repeat and a variable may have no factor."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    variables = [mk.Variable(name, draw(st.sampled_from(STATES))) for name in NAMES[:4]]
    factors = []
    for _ in range(draw(st.integers(1, 5))):
        scope = [variables[i] for i in rng.permutation(4)[: rng.integers(1, 4)]]
        factors.append(mk.Factor(scope, rng.random([len(v) for v in scope]) + 0.1))
    return kind(variables, factors)


def same_joint(one, two):
    return one.joint().allclose(two.joint(), atol=1e-12)


# -- pgmpy ----------------------------------------------------------------------------------------------------------


@few
@given(networks())
def test_a_network_survives_the_way_to_pgmpy_and_back(bn):
    theirs = to_pgmpy(bn)
    assert theirs.check_model()
    back = from_pgmpy(theirs)
    assert back.name == "drawn"
    assert back.allclose(bn, atol=0.0)
    assert all(back.variable(n) == bn.variable(n) for n in bn.variables)
    assert all(back.parents(n) == bn.parents(n) for n in bn.variables)


@few
@given(networks())
def test_pgmpy_gives_the_same_posteriors(bn):
    target, *rest = bn.variables[::-1]
    evidence = {rest[-1]: bn.states(rest[-1])[-1]} if rest else {}
    answer = pgmpy_inference.VariableElimination(to_pgmpy(bn)).query(
        [target], evidence=evidence, show_progress=False
    )
    ours = bn.query(target, given=evidence)
    assert answer.state_names[target] == list(ours.states)
    np.testing.assert_allclose(answer.values, ours.values, atol=1e-12)


@few
@given(st.integers(0, 2**32 - 1))
def test_a_random_pgmpy_network_keeps_its_meaning(seed):
    theirs = pgmpy_models.DiscreteBayesianNetwork.get_random(n_nodes=4, edge_prob=0.6, n_states=3, seed=seed)
    ours = from_pgmpy(theirs)
    infer = pgmpy_inference.VariableElimination(theirs)
    first, *_, last = theirs.nodes
    state = theirs.get_cpds(first).state_names[first][1]
    answer = infer.query([last], evidence={first: state}, show_progress=False)
    np.testing.assert_allclose(
        ours.query(str(last), given={str(first): state}).values, answer.values, atol=1e-9
    )


@few
@given(markov_networks())
def test_a_markov_network_means_the_same_in_pgmpy(mn):
    theirs = to_pgmpy(mn)
    assert theirs.check_model()
    assert same_joint(from_pgmpy(theirs), mn)
    assert from_pgmpy(theirs).log_partition() == pytest.approx(mn.log_partition())
    answer = pgmpy_inference.VariableElimination(theirs).query([NAMES[0]], show_progress=False)
    answer.normalize()
    np.testing.assert_allclose(answer.values, mn.query(NAMES[0]).values, atol=1e-9)


@few
@given(markov_networks(kind=mk.FactorGraph))
def test_a_factor_graph_means_the_same_in_pgmpy(fg):
    theirs = to_pgmpy(fg)
    assert theirs.check_model()
    back = from_pgmpy(theirs)
    assert isinstance(back, mk.FactorGraph)
    assert same_joint(back, fg)


def test_equal_factors_are_not_lost_in_pgmpy():
    # pgmpy keeps the factors of a query in a set, where two equal ones are one
    f = mk.Factor(["a", "b"], [[1, 2], [3, 1]])
    mn = mk.MarkovNetwork({"a": 2, "b": 2}, [f, f, mk.Factor.scalar(3.0)])
    theirs = to_pgmpy(mn)
    answer = pgmpy_inference.VariableElimination(theirs).query(["a"], show_progress=False)
    np.testing.assert_allclose(answer.values, [15, 30])
    assert from_pgmpy(theirs).log_partition() == pytest.approx(np.log(45))


def test_pgmpy_tables_are_read_child_first_and_last_parent_fastest():
    theirs = pgmpy_models.DiscreteBayesianNetwork([("p", "c"), ("q", "c")])
    values = np.arange(1.0, 13.0).reshape(2, 6)
    values /= values.sum(axis=0)
    theirs.add_cpds(
        pgmpy_factors.TabularCPD("p", 2, [[0.5], [0.5]]),
        pgmpy_factors.TabularCPD("q", 3, [[0.2], [0.3], [0.5]]),
        pgmpy_factors.TabularCPD("c", 2, values, evidence=["p", "q"], evidence_card=[2, 3]),
    )
    table = from_pgmpy(theirs)["c"]
    assert table.parent_names == ("p", "q")
    assert table.row(p=1, q=0).tolist() == pytest.approx(values[:, 3].tolist())


def test_names_and_states_of_pgmpy_that_are_no_strings_become_text():
    theirs = pgmpy_models.DiscreteBayesianNetwork([(1, (2, "x"))])
    theirs.add_cpds(
        pgmpy_factors.TabularCPD(1, 2, [[0.5], [0.5]], state_names={1: [0.5, 1.5]}),
        pgmpy_factors.TabularCPD(
            (2, "x"),
            2,
            np.eye(2),
            [1],
            [2],
            state_names={1: [0.5, 1.5], (2, "x"): [np.int64(4), np.int64(6)]},
        ),
    )
    ours = from_pgmpy(theirs)
    assert ours.variables == ["1", "(2, 'x')"]
    assert ours.states("1") == ["0.5", "1.5"]
    assert ours.states("(2, 'x')") == [4, 6]
    clash = pgmpy_models.DiscreteBayesianNetwork([(1, "1")])
    with pytest.raises(mk.errors.DuplicateName, match="'1'"):
        from_pgmpy(clash)


def test_state_names_of_a_parent_win_over_bare_numbers_and_orders_are_matched():
    theirs = pgmpy_models.DiscreteBayesianNetwork([("p", "c"), ("p", "d")])
    theirs.add_cpds(
        pgmpy_factors.TabularCPD("p", 2, [[0.9], [0.1]], state_names={"p": ["no", "yes"]}),
        pgmpy_factors.TabularCPD("c", 2, [[0.7, 0.4], [0.3, 0.6]], ["p"], [2]),
        pgmpy_factors.TabularCPD(
            "d", 2, [[0.2, 0.8], [0.8, 0.2]], ["p"], [2], state_names={"p": ["yes", "no"], "d": ["l", "r"]}
        ),
    )
    ours = from_pgmpy(theirs)
    assert ours.states("p") == ["no", "yes"]
    assert ours["c"].row(p="yes").tolist() == [0.4, 0.6]
    assert ours["d"].row(p="yes").tolist() == [0.2, 0.8]
    theirs.add_cpds(
        pgmpy_factors.TabularCPD(
            "d", 2, np.eye(2), ["p"], [2], state_names={"p": ["y", "n"], "d": ["l", "r"]}
        )
    )
    with pytest.raises(mk.errors.InvalidTable, match="'p'"):
        from_pgmpy(theirs)


def test_a_pgmpy_network_may_lack_tables_and_have_latent_nodes():
    theirs = pgmpy_models.DiscreteBayesianNetwork([("u", "x"), ("x", "y")], latents={"u"})
    theirs.add_cpds(
        pgmpy_factors.TabularCPD("u", 3, [[0.2], [0.3], [0.5]], state_names={"u": ["l", "m", "h"]})
    )
    ours = from_pgmpy(theirs)
    assert ours.has_table("u")
    assert not ours.has_table("y")
    assert ours.states("u") == ["l", "m", "h"]
    assert ours.node_properties == {"u": {"latent": "true"}}
    back = to_pgmpy(ours)
    assert back.latents == {"u"}
    assert [cpd.variable for cpd in back.get_cpds()] == ["u"]
    assert set(back.edges()) == set(theirs.edges())


def test_a_noisy_or_of_pgmpy_comes_as_its_table():
    theirs = pgmpy_models.DiscreteBayesianNetwork([("x", "y"), ("z", "y")])
    prior = {"x": [[0.3], [0.7]], "z": [[0.6], [0.4]]}
    cpds = [pgmpy_factors.TabularCPD(n, 2, p, state_names={n: ["True", "False"]}) for n, p in prior.items()]
    theirs.add_cpds(*cpds, pgmpy_factors.NoisyORCPD("y", [0.8, 0.5], ["x", "z"]))
    ours = from_pgmpy(theirs)
    assert ours["y"].row(x="True", z="True").tolist() == pytest.approx([0.9, 0.1])
    assert ours["y"].row(x="False", z="True").tolist() == pytest.approx([0.5, 0.5])


def test_rounded_rows_are_rescaled_with_a_warning_and_wrong_ones_refused():
    theirs = pgmpy_models.DiscreteBayesianNetwork()
    theirs.add_node("a")
    theirs.add_cpds(pgmpy_factors.TabularCPD("a", 3, [[0.333], [0.333], [0.333]]))
    with pytest.warns(UserWarning, match="1 probability row was rescaled"):
        ours = from_pgmpy(theirs)
    assert ours["a"].values.sum() == pytest.approx(1.0, abs=1e-15)
    theirs = pgmpy_models.DiscreteBayesianNetwork()
    theirs.add_node("a")
    theirs.add_cpds(pgmpy_factors.TabularCPD("a", 2, [[0.5], [0.6]]))
    with pytest.raises(mk.errors.InvalidTable, match=r"'a' sum to 1\.1"):
        from_pgmpy(theirs)


@pytest.mark.parametrize(
    ("graph", "kind"),
    [
        (mk.graphs.DAG([("a", "b"), ("c", "b")], nodes=["z"]), "DAG"),
        (mk.graphs.UndirectedGraph([("a", "b"), ("c", "b")], nodes=["z"]), "UndirectedGraph"),
        (mk.graphs.MixedGraph(["a --> b", "b --- c"], nodes=["z"]), "PDAG"),
        (mk.graphs.MixedGraph(["a --> b", "b <-> a", "b <-> c"], nodes=["z"]), "ADMG"),
        (mk.graphs.MixedGraph(["a o-> b", "b o-o c", "c <-> d"], nodes=["z"]), "AncestralBase"),
    ],
)
def test_graphs_survive_the_way_to_pgmpy_and_back(graph, kind):
    theirs = to_pgmpy(graph)
    assert type(theirs).__name__ == kind
    assert from_pgmpy(theirs) == graph


def test_pgmpy_models_that_would_lose_their_numbers_are_refused():
    with pytest.raises(mk.errors.UnsupportedModel, match="LinearGaussianBayesianNetwork"):
        from_pgmpy(pgmpy_models.LinearGaussianBayesianNetwork([("a", "b")]))
    with pytest.raises(mk.errors.UnsupportedModel, match="DynamicBayesianNetwork"):
        from_pgmpy(pgmpy_models.DynamicBayesianNetwork([(("a", 0), ("a", 1))]))
    with pytest.raises(mk.errors.InvalidArgument, match="expected a pgmpy model, not str"):
        from_pgmpy("asia")
    with pytest.raises(mk.errors.UnsupportedModel, match="several edges"):
        to_pgmpy(mk.graphs.MixedGraph(["a o-> b", "a <-> b"]))


# -- pyAgrum --------------------------------------------------------------------------------------------------------


@few
@given(networks())
def test_a_network_survives_the_way_to_pyagrum_and_back(bn):
    theirs = to_pyagrum(bn)
    assert all("domainSize=1" in complaint for complaint in theirs.check())  # one state is legal here
    back = from_pyagrum(theirs)
    assert back.name == "drawn"
    assert back.properties == {}
    assert back.allclose(bn, atol=0.0)
    assert all(back.variable(n) == bn.variable(n) for n in bn.variables)


@few
@given(networks())
def test_pyagrum_gives_the_same_posteriors(bn):
    theirs = to_pyagrum(bn)
    engine = gum.LazyPropagation(theirs)
    target, *rest = bn.variables[::-1]
    evidence = {}
    if rest:
        evidence = {rest[-1]: bn.states(rest[-1])[-1]}
        engine.setEvidence({rest[-1]: len(bn.states(rest[-1])) - 1})
    engine.makeInference()
    np.testing.assert_allclose(
        engine.posterior(target).toarray().reshape(-1), bn.query(target, given=evidence).values, atol=1e-9
    )


@few
@given(st.integers(0, 2**31 - 1))
def test_a_random_pyagrum_network_keeps_its_meaning(seed):
    gum.initRandom(seed + 1)
    theirs = gum.fastBN("a[3]->b{x|y}->d[2,5]; a->c{1|4|9}->d; e->d; d->f[0,0.5,1,2]", 2)
    ours = from_pyagrum(theirs)
    assert ours.states("b") == ["x", "y"]
    assert ours.states("c") == [1, 4, 9]
    assert ours.states("d") == [2, 3, 4, 5]
    assert ours.states("f") == ["[0;0.5[", "[0.5;1[", "[1;2]"]
    engine = gum.LazyPropagation(theirs)
    engine.setEvidence({"c": 2, "f": 0})
    engine.makeInference()
    for name in ("a", "b", "d", "e"):
        answer = ours.query(name, given={"c": 9, "f": "[0;0.5["})
        np.testing.assert_allclose(engine.posterior(name).toarray(), answer.values, atol=1e-9)


@few
@given(markov_networks())
def test_a_markov_network_means_the_same_in_pyagrum(mn):
    theirs = to_pyagrum(mn)
    back = from_pyagrum(theirs)
    assert same_joint(back, mn)
    assert back.log_partition() == pytest.approx(mn.log_partition())
    engine = gum.ShaferShenoyMRFInference(theirs)
    engine.makeInference()
    theirs_says = (
        engine.posterior(NAMES[0]).toarray().reshape(-1)
    )  # may keep axes of variables with one state
    np.testing.assert_allclose(theirs_says, mn.query(NAMES[0]).values, atol=1e-9)


def test_a_markov_field_of_pyagrum_keeps_its_factors():
    gum.initRandom(7)
    theirs = gum.fastMRF("a{x|y}--b[3]--c; c--d{1|5}")
    ours = from_pyagrum(theirs)
    assert sorted(sorted(f.names) for f in ours.factors) == [["a", "b", "c"], ["c", "d"]]
    engine = gum.ShaferShenoyMRFInference(theirs)
    engine.setEvidence({"d": 1})
    engine.makeInference()
    np.testing.assert_allclose(
        engine.posterior("b").toarray().reshape(-1), ours.query("b", given={"d": 5}).values, atol=1e-9
    )


def test_tables_outlive_the_pyagrum_network_they_came_from():
    theirs = gum.fastBN("A->B")
    theirs.cpt("A")[:] = [0.25, 0.75]
    ours = from_pyagrum(theirs)
    del theirs
    for _ in range(20):
        gum.fastBN("C[5]->D[7]")
    assert ours["A"].values.tolist() == [0.25, 0.75]


def test_properties_descriptions_and_missing_tables_go_both_ways():
    bn = mk.BayesianNetwork("a->b", name="half done")
    bn.replace("a", p=[0.5, 0.5])
    bn.properties["author"] = "me & you"
    bn.node_properties["a"] = {"description": "the first"}
    theirs = to_pyagrum(bn)
    assert theirs.property("author") == "me & you"
    assert theirs.variable("a").description() == "the first"
    back = from_pyagrum(theirs)
    assert (back.name, back.properties, back.node_properties) == (bn.name, bn.properties, bn.node_properties)
    assert back.has_table("a")
    assert not back.has_table("b")


def test_structured_conditionals_go_out_as_tables():
    bn = mk.BayesianNetwork()
    bn.add("x", p=[0.5, 0.5])
    bn.add("y", mk.local.NoisyOr({"x": 0.8}, leak=0.1), states=["no", "yes"])
    expected = bn["y"].values
    np.testing.assert_allclose(from_pyagrum(to_pyagrum(bn))["y"].values, expected, atol=1e-15)
    np.testing.assert_allclose(from_pgmpy(to_pgmpy(bn))["y"].values, expected, atol=1e-15)


def test_states_that_print_alike_cannot_go_to_pyagrum():
    bn = mk.BayesianNetwork()
    bn.add("a", states=[1, "1"], p=[0.5, 0.5])
    with pytest.raises(mk.errors.UnsupportedModel, match="print as '1'"):
        to_pyagrum(bn)
    assert from_pgmpy(to_pgmpy(bn)).states("a") == [1, "1"]


def test_other_objects_are_refused_with_their_type():
    with pytest.raises(mk.errors.UnsupportedModel, match="InfluenceDiagram"):
        from_pyagrum(gum.InfluenceDiagram())
    with pytest.raises(mk.errors.InvalidArgument, match="not int"):
        from_pyagrum(3)
    with pytest.raises(mk.errors.InvalidArgument, match="not DAG"):
        to_pyagrum(mk.graphs.DAG([("a", "b")]))


# -- networkx -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "graph",
    [
        mk.graphs.DAG([("a", "b"), ("c", "b")], nodes=["z"]),
        mk.graphs.UndirectedGraph([("a", "b"), ("c", "b")], nodes=["z"]),
        mk.graphs.MixedGraph(["a --> b", "a <-> b", "c o-o b"], nodes=["z"]),
        mk.graphs.BipartiteGraph({"f": ["a", "b"], "a": ["b"]}, variables=["z"]),
    ],
)
def test_graphs_survive_the_way_to_networkx_and_back(graph):
    back = from_networkx(to_networkx(graph))
    assert type(back) is type(graph)
    assert back == graph


def test_networkx_nodes_that_are_no_strings_become_text():
    grid = from_networkx(nx.grid_2d_graph(2, 2))
    assert grid.nodes == ["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"]
    assert grid.n_edges == 4
    with pytest.raises(mk.errors.DuplicateName, match="'1'"):
        from_networkx(nx.Graph([(1, "1")]))


def test_bad_networkx_graphs_are_refused():
    with pytest.raises(mk.errors.CycleError, match=r"a -> b -> a|b -> a -> b"):
        from_networkx(nx.DiGraph([("a", "b"), ("b", "a")]))
    with pytest.raises(mk.errors.InvalidGraph, match="itself"):
        from_networkx(nx.Graph([("a", "a")]))
    with pytest.raises(mk.errors.InvalidArgument, match="not list"):
        from_networkx([("a", "b")])
    mixed = to_networkx(mk.graphs.MixedGraph(["a --> b"]))
    mixed.add_edge("b", "c")
    with pytest.raises(mk.errors.InvalidGraph, match="marks"):
        from_networkx(mixed)


def test_models_carry_states_and_tables_to_networkx():
    bn = mk.BayesianNetwork("a{x|y}->c<-b[3]", tables="random", seed=1, name="net")
    g = to_networkx(bn, tables=True)
    assert g.graph["name"] == "net"
    assert set(g.edges) == {("a", "c"), ("b", "c")}
    assert g.nodes["a"]["states"] == ["x", "y"]
    assert g.nodes["c"]["parents"] == bn.parents("c")
    np.testing.assert_array_equal(g.nodes["c"]["table"], bn["c"].values)
    assert "table" not in to_networkx(bn).nodes["c"]
    with pytest.raises(mk.errors.IncompleteModel, match="'a'"):
        to_networkx(mk.BayesianNetwork("a->b"), tables=True)

    factors = [mk.Factor(["a", "b"], [[1, 2], [3, 4]]), mk.Factor(["b"], [1, 2])]
    mn = to_networkx(mk.MarkovNetwork({"a": 2, "b": ["l", "r"]}, factors), tables=True)
    assert set(mn.edges) == {("a", "b")}
    assert mn.nodes["b"]["states"] == ["l", "r"]
    assert [(names, table.tolist()) for names, table in mn.graph["factors"]] == [
        (["a", "b"], [[1, 2], [3, 4]]),
        (["b"], [1, 2]),
    ]
    fg = to_networkx(mk.FactorGraph({"a": 2, "b": ["l", "r"]}, factors), tables=True)
    assert fg.nodes["variable", "b"]["states"] == ["l", "r"]
    assert fg.nodes["factor", "f1"]["table"].tolist() == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("networkx", "from markovia.io.networkx_interop import to_networkx as f"),
        ("pgmpy", "from markovia.io.pgmpy_interop import to_pgmpy as f"),
        ("pyagrum", "from markovia.io.pyagrum_interop import to_pyagrum as f"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(module, call):
    program = (
        f"import sys; sys.modules[{module!r}] = None\nimport markovia as mk\n{call}\n"
        "try:\n    f(mk.BayesianNetwork('a->b', tables='uniform'))\n"
        "except mk.MarkoviaError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"this needs {module}; install it with: pip install {module}"
