"""dagitty and lavaan model strings."""

import warnings

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.errors import ParseError, UnsupportedModel
from markovia.graphs import DAG, Mark, MixedGraph, UndirectedGraph
from markovia.io.dagitty import read_dagitty, read_dagitty_roles, write_dagitty
from markovia.io.lavaan import read_lavaan, write_lavaan

SEBASTIANI = """
dag {
bb="-2.4,-3.1,2.1,2.8"
"Beta blocker" [exposure,pos="-1.7,-0.6"]
MI [outcome, pos="1.2,-0.6"]
Age [adjusted]   // a comment
U [latent]
Age -> { "Beta blocker" MI }
"Beta blocker" -> BP -> MI <- U -> BP
# another one
}
"""


def test_a_realistic_dagitty_model_is_read_in_full() -> None:
    graph = read_dagitty(SEBASTIANI)
    assert isinstance(graph, DAG)
    assert graph.nodes == ["Beta blocker", "MI", "Age", "U", "BP"]
    assert set(graph.edges) == {
        ("Age", "Beta blocker"),
        ("Age", "MI"),
        ("Beta blocker", "BP"),
        ("BP", "MI"),
        ("U", "MI"),
        ("U", "BP"),
    }
    assert read_dagitty_roles(SEBASTIANI) == {
        "Beta blocker": {"exposure"},
        "MI": {"outcome"},
        "Age": {"adjusted"},
        "U": {"latent"},
        "BP": set(),
    }


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("dag{x -> y <- z}", ["x --> y", "z --> y"]),
        ("dag { x -> y; x <-> y }", ["x --> y", "x <-> y"]),
        ("dag named { a -> b -> c <- d }", ["a --> b", "b --> c", "d --> c"]),
        ("dag { {a b} -> {c d} }", ["a --> c", "a --> d", "b --> c", "b --> d"]),
        ("dag { {a -> b} -> c }", ["a --> b", "a --> c", "b --> c"]),
        ("dag { a -> b [beta=.5] b -> c [pos=\"1,2\"]; d }", ["a --> b", "b --> c"]),
        ("pdag { x -- y -> z }", ["x --- y", "y --> z"]),
        ("mag { x <-> y -- z }", ["x <-> y", "y --- z"]),
        ("pag { a @-> b @-@ c <-@ d @-- e --@ f }", ["a o-> b", "b o-o c", "d o-> c", "d o-- e", "e --o f"]),
        ("dag { x-1 -> y.2 }", ["x-1 --> y.2"]),
        ("dag { }", []),
    ],
)  # fmt: skip
def test_dagitty_edges(text: str, edges: list[str]) -> None:
    graph = read_dagitty(text)
    as_mixed = MixedGraph.from_dag(graph) if isinstance(graph, DAG) else graph
    assert as_mixed == MixedGraph(edges, nodes=as_mixed.nodes)
    assert isinstance(graph, DAG) == all("-->" in edge for edge in edges)
    assert read_dagitty(write_dagitty(graph)) == graph


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "expected one of dag, pdag, mag, pag, graph, digraph, found the end of the text"),
        ("tree { }", "1:1", "found 'tree'"),
        ("dag x -> y", "1:7", "expected '{'"),
        ("dag { x -> }", "1:12", "expected a node at the other end"),
        ("dag { -> x }", "1:7", "expected a node, found '->'"),
        ("dag { x -> -> y }", "1:12", "expected a node"),
        ("dag { x\n-> y", "2:5", "expected a node, an edge or '}'"),
        ("dag { x } y", "1:11", "expected the end of the text"),
        ("dag { [latent] }", "1:7", "expected a node"),
        ("dag { x [latent }", "1:17", "expected a value, found '}'"),
        ("dag { x > y }", "1:9", "found '>'"),
        ('dag { "x -> y }', "1:7", "found '\"'"),
        ("dag { x -> y -> x }", "1:14", "cycle: "),
        ("dag { x -> x }", "1:9", "from 'x' to itself"),
        ("pdag { x -- x }", "1:10", "from 'x' to itself"),
    ],
)  # fmt: skip
def test_dagitty_errors_say_where_and_what_was_expected(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        read_dagitty(text, "demo.dagitty")
    assert str(error.value).startswith(f"demo.dagitty:{place}: ")
    assert message in str(error.value)


HOLZINGER = """
# three latent variables
visual  =~ x1 + 0.5*x2 +
           lambda*x3
textual =~ NA*x4 + start(0.8)*x5
  + equal("a")*x6          ! goes on
speed   =~ c(1, 1)*x7

textual + speed ~ visual + b1*age
x1 ~~ 0.2*x4
visual ~~ visual ; x9 ~~ x9
x1 ~ 1
grip <~ left + right
indirect := b1*lambda
b1 > 0
x1 | t1 + t2
"""


def test_a_realistic_lavaan_model_is_read_in_full() -> None:
    graph = read_lavaan(HOLZINGER)
    assert isinstance(graph, MixedGraph)
    assert graph.bidirected_edges() == [("x1", "x4")]
    assert graph.children("visual") == ["x1", "x2", "x3", "textual", "speed"]
    assert graph.children("textual") == ["x4", "x5", "x6"]
    assert graph.parents("speed") == ["visual", "age"]
    assert graph.parents("grip") == ["left", "right"]
    assert graph.neighbors("x9") == []
    assert "indirect" not in graph
    assert "t1" not in graph


def test_lavaan_without_covariances_is_a_dag() -> None:
    assert read_lavaan("y ~ x1 + x2\nf =~ y") == DAG([("x1", "y"), ("x2", "y"), ("f", "y")])
    assert read_lavaan("y ~ x:z") == DAG([("x:z", "y")])
    assert read_lavaan("") == DAG()


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("y", "1:1", "expected a relation"),
        ("y ~", "1:3", "expected a variable on each side"),
        ("~ x", "1:1", "expected a variable on each side"),
        ("y ~ x + + z", "1:3", "expected a variable on each side"),
        ("y ~ x z", "1:7", "expected '*' or '+' before 'z'"),
        ("y ~ x\n ~ z", "2:2", "expected a variable"),
        ("y ~ x ~ z", "1:7", "expected one relation"),
        ("y ~ 2*(x", "1:8", "expected ')'"),
        ("y ~ x)", "1:6", "expected '(' before ')'"),
        ("y ~ \"x\"", "1:5", "expected a variable"),
        ("y ~ $x", "1:5", "found '$'"),
        ("group: 1\ny ~ x", "1:6", "found ':'"),
        ("y ~ y", "1:3", "from 'y' to itself"),
        ("y ~ x\nx ~ y", "2:3", "cycle"),
        ('# markovia_name: a = "\ny ~ a', "1:1", "expected a JSON string"),
    ],
)  # fmt: skip
def test_lavaan_errors_say_where_and_what_was_expected(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        read_lavaan(text, "demo.lavaan")
    assert str(error.value).startswith(f"demo.lavaan:{place}: ")
    assert message in str(error.value)


def test_lavaan_cannot_say_undirected_edges() -> None:
    with pytest.raises(UnsupportedModel, match="a --- b"):
        write_lavaan(MixedGraph(["a --- b"]))
    with pytest.raises(UnsupportedModel, match="a o-> b"):
        write_lavaan(MixedGraph(["a o-> b"]))


@pytest.mark.parametrize("write", [write_dagitty, write_lavaan])
def test_models_are_written_by_their_graph_and_other_things_refused(write) -> None:
    bn = mk.BayesianNetwork("a->b<-c")
    assert write(bn) == write(bn.graph)
    with pytest.raises(UnsupportedModel, match="has none"):
        write({"a": 1})
    with pytest.raises(UnsupportedModel, match="has none"):
        write(mk.FactorGraph({"a": 2}, [mk.Factor(["a"], [3, 5])]))


@pytest.mark.parametrize("form", ["dagitty", "lavaan"])
def test_tables_that_a_graph_format_loses_are_told_once(form: str) -> None:
    expected = f"only the graph was written: tables, states and properties are not part of {form}"
    with pytest.warns(UserWarning, match=form) as caught:
        mk.io.dumps(mk.BayesianNetwork("a->b", tables="uniform"), form)
    assert [str(w.message) for w in caught] == [expected]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mk.io.dumps(mk.BayesianNetwork("a->b"), form)
        mk.io.dumps(DAG([("a", "b")]), form)


def test_the_sides_of_a_covariance_stay_where_they_are() -> None:
    text = write_lavaan(MixedGraph(["x --> y", "x <-> y", "b <-> y", "a <-> b"], nodes=["y", "x"]))
    assert text == "y ~ x\na ~~ b\nb ~~ y\nx ~~ y\n"
    assert write_lavaan(read_lavaan(text)) == text


def test_undirected_models_are_written_as_dagitty() -> None:
    mn = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[3, 5], [1, 1]])])
    with pytest.warns(UserWarning, match="not part of dagitty"):
        assert read_dagitty(write_dagitty(mn)) == MixedGraph(["a --- b"])
    assert write_dagitty(UndirectedGraph([("a", "b")])).startswith("pdag {")


names = st.one_of(
    st.text(min_size=1, max_size=6),
    st.sampled_from(["a b", "dag", "x.1", "{", '"', "\\", "group", "->", "latent", "µ"])
)  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn, marks: list[tuple[Mark, Mark]]) -> DAG | MixedGraph:
    nodes = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    pairs = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    if draw(st.booleans()):
        return DAG(chosen, nodes=nodes)
    graph = MixedGraph([(a, b, *draw(st.sampled_from(marks))) for a, b in chosen], nodes=nodes)
    assume(len(graph.directed_edges()) < graph.n_edges or not has_cycle(graph))
    return graph


def has_cycle(graph: MixedGraph) -> bool:
    try:
        graph.to_dag()
    except mk.errors.CycleError:
        return True
    return False


@pytest.mark.parametrize("write", [write_dagitty, write_lavaan])
def test_a_graph_that_could_not_be_read_again_is_not_written(write) -> None:
    with pytest.raises(mk.errors.UnsupportedModel, match="no directed cycle"):
        write(MixedGraph(["a --> b", "b --> c", "c --> a"]))


def mixed(graph: DAG | MixedGraph) -> MixedGraph:
    return MixedGraph.from_dag(graph) if isinstance(graph, DAG) else graph


TAIL, ARROW, CIRCLE = Mark.TAIL, Mark.ARROW, Mark.CIRCLE


@settings(max_examples=150, deadline=None)
@given(graph=graphs([(a, b) for a in Mark for b in Mark]))
def test_a_dagitty_round_trip_keeps_the_graph(graph: DAG | MixedGraph) -> None:
    assume("\0" not in "".join(graph.nodes))
    again = read_dagitty(write_dagitty(graph))
    assert mixed(again) == mixed(graph)
    assert again.nodes == graph.nodes
    assert write_dagitty(again) == write_dagitty(graph)


@settings(max_examples=150, deadline=None)
@given(graph=graphs([(TAIL, ARROW), (ARROW, ARROW)]))
def test_a_lavaan_round_trip_keeps_the_graph(graph: DAG | MixedGraph) -> None:
    text = write_lavaan(graph)
    assert mixed(read_lavaan(text)) == mixed(graph)
    assert write_lavaan(read_lavaan(text)) == text
