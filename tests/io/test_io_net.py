"""Hugin NET files."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ParseError
from markovia.io.net import read_net, write_net

CLINIC = r"""
% a small chest clinic, in the style of Hugin 6
net
{
    node_size = (80 40);
    HR_Grid_X = "10";
    name = "chest clinic";
}

node smoke
{
    label = "Smoker? (\"yes\" or \"no\")";
    position = (100 200);
    states = ("no" "yes" );
    HR_State_0 = "";
    HR_Desc = "100% sure;
on two lines";
}
discrete node lung
{
    states = ("absent" "present"); /* a block
    comment */
    subtype = label;
}
node dysp { states = ("no" "some" "bad"); position = (-10, 5); }  // other comments

potential (smoke) { data = ( 0.5 0.5 ); }
potential ( dysp | smoke lung )
{
    data = ((( 0.8 0.15 0.05 )    %  absent  no
             ( 0.4 0.4 0.2 ))     %  present no
            (( 0.6 0.25 0.15 )    %  absent  yes
             ( 0.1 1E-1 .8 )));   %  present yes
}
potential (lung | smoke ) { data = ((0.99 0.01)(0.9 0.1)); experience = (10 20); }
"""


def test_a_realistic_file_is_read_in_full() -> None:
    bn = read_net(CLINIC)
    assert bn.name == "chest clinic"
    assert bn.variables == ["smoke", "lung", "dysp"]
    assert bn.states("dysp") == ["no", "some", "bad"]
    assert bn.parents("dysp") == ["smoke", "lung"]
    assert bn["dysp"].row(smoke="no", lung="present").tolist() == [0.4, 0.4, 0.2]
    assert bn["dysp"].row(smoke="yes", lung="absent").tolist() == [0.6, 0.25, 0.15]
    assert bn["dysp"].row(smoke="yes", lung="present").tolist() == [0.1, 0.1, 0.8]
    assert bn.properties == {"node_size": "(80 40)", "HR_Grid_X": "10"}
    assert bn.node_properties["smoke"] == {
        "label": 'Smoker? ("yes" or "no")',
        "position": "(100 200)",
        "HR_State_0": "",
        "HR_Desc": "100% sure;\non two lines",
    }
    assert bn.node_properties["dysp"] == {"position": "(-10, 5)"}


def test_what_was_read_is_written_back_with_its_attributes() -> None:
    text = write_net(read_net(CLINIC))
    assert "position = (100 200);" in text
    assert 'HR_Grid_X = "10";' in text
    assert write_net(read_net(text)) == text
    assert not read_net(text).compare(read_net(CLINIC), atol=0)


def test_unquoted_states_and_flat_tables_are_accepted() -> None:
    bn = read_net(
        "net {} node a { states = (0 1-2 x.y ); } node b { states = (t f); }"
        "potential (a) { data = (0.2 0.3 0.5); } potential (b | a) { data = (1 0 0.5 0.5 0 1); }"
    )
    assert bn.states("a") == ["0", "1-2", "x.y"]
    assert bn["b"].values.tolist() == [[1, 0], [0.5, 0.5], [0, 1]]


def test_a_class_around_the_nodes_is_looked_through() -> None:
    bn = read_net('class Oobn { inputs = (); node_size = (1 2); node a { states = ("x" "y"); } }')
    assert bn.name == "Oobn"
    assert bn.states("a") == ["x", "y"]
    assert bn.properties == {"inputs": "()", "node_size": "(1 2)"}


def test_a_potential_without_data_leaves_the_structure() -> None:
    bn = read_net('net {} node a { states = ("x"); } node b { states = ("y" "z"); } potential (b | a) { }')
    assert bn.parents("b") == ["a"]
    assert not bn.has_table("b")
    assert not bn.has_table("a")
    assert not read_net(write_net(bn)).has_table("b")


def test_subtypes_without_labels_get_their_values_as_states() -> None:
    bn = read_net(
        "net {} node n { subtype = number; state_values = (0 1 5); } node b { subtype = boolean; }"
        "node i { subtype = interval; state_values = (-infinity 0 2.5); } "
        "node r { subtype = number; state_values = (0.5 1.5); }"
    )
    assert bn.states("n") == [0, 1, 5]
    assert bn.states("b") == [False, True]
    assert bn.states("i") == ["-infinity - 0", "0 - 2.5"]
    assert bn.states("r") == ["0.5", "1.5"]
    assert read_net(write_net(bn)).states("n") == [0, 1, 5]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "expected 'net' or 'class', found the end of the file"),
        ("net { name = ; }", "1:14", "expected a value, found ';'"),
        ("net {} decision d { }", "1:8", "expected the states of 'd'"),
        ("net {}\nfunction u { }", "2:1", "function nodes are not supported"),
        ("net {} continuous node c { }", "1:8", "continuous nodes are not supported"),
        ("net {} node a { states = (); }", "1:8", "expected the states of 'a'"),
        ('net {} node a { states = ("x" "x"); }', "1:8", "repeat 'x'"),
        ('net {} node a { states = ("x" "y); }', "1:31", "expected the end of this string"),
        ('net {} node a { states = ("x"); } node a { states = ("x"); }', "1:35", "declared twice"),
        ('net {} node a { states = ("x"); } potential (b) { }', "1:35", "expected a declared node, found 'b'"),
        ('net {} node a { states = ("x"); } potential (a | c) { }', "1:50", "expected a declared variable, found 'c'"),
        ('net {} node a { states = ("x"); } potential (a | a) { }', "1:50", "expected distinct parents"),
        ('net {} node a { states = ("x"); } potential (a b) { }', "1:48", "expected '|' or ')'"),
        ('net {} node a { states = ("x"); } potential (a) { data = (0.5 0.5); }', "1:58", "expected 1 numbers"),
        ('net {} node a { states = ("x"); } potential (a) { data = (0.5; }', "1:62", "expected ')'"),
        ('net {} node a { states = ("x"); } potential (a) { data = (0.5)); }', "1:63", "found ')'"),
        ('net {} node a { states = ("x"); } potential (a) { data = (one); }', "1:59", "found 'one'"),
        ('net {} node a { states = ("x"); } potential (a) { data = (1..2); }', "1:59", "found '1..2'"),
        ('net {} node a { states = ("x"); } potential (a) { data = (1) }', "1:62", "expected ';'"),
        ('net {} node a { states = ("x"); } potential (a) { data = normal (0, 1); }', "1:58", "'normal'"),
        ('net {} node a { states = ("x"); } potential (a) { model_nodes = (); }', "1:63", "expressions are not"),
        ('net {} node a { states = ("x"); } potential (a) { data = (1); } potential (a) { }', "1:65", "second one"),
        ('net {} node a { states = ("x"); } }', "1:35", "expected 'node' or 'potential', found '}'"),
        ("net { x = (1, 2]; }", "1:16", "expected the bracket"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what_was_expected(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        read_net(text, "demo.net")
    assert str(error.value).startswith(f"demo.net:{place}: ")
    assert message in str(error.value)


def test_a_cycle_is_reported_with_its_nodes() -> None:
    text = "net {}" + "".join(f'node {n} {{ states = ("x"); }}' for n in "ab")
    with pytest.raises(ParseError, match=r"cycle: . -> . -> ."):
        read_net(text + "potential (a | b) { data = ((1)); } potential (b | a) { data = ((1)); }")


def test_strange_names_become_identifiers_with_a_readable_label() -> None:
    bn = mk.BayesianNetwork()
    bn.add("x-ray (chest)", states=["no", "yes"], p=[0.5, 0.5])
    text = write_net(bn)
    assert "node x_ray_chest {" in text
    assert 'label = "x-ray (chest)";' in text
    assert read_net(text).variables == ["x-ray (chest)"]
    assert read_net(text).node_properties == {}


def random_network(seed: int) -> mk.BayesianNetwork:
    return mk.BayesianNetwork(
        "a{lo|mid|hi}->c{x|y}<-b{p|q}; b->d{u|v|w}; a->d; c->d", tables="random", seed=seed, name="cross"
    )


def test_pyagrum_reads_our_files_and_we_read_its(tmp_path) -> None:
    gum = pytest.importorskip("pyagrum")
    bn = random_network(1)
    ours, theirs = tmp_path / "ours.net", tmp_path / "theirs.net"
    ours.write_text(write_net(bn))
    other = gum.loadBN(str(ours))
    for name in bn.variables:
        table = other.cpt(name)
        aligned = np.transpose(table.toarray(), [table.names[::-1].index(n) for n in bn[name].names])
        np.testing.assert_allclose(aligned, bn[name].values, atol=1e-9)
    gum.saveBN(other, str(theirs))
    assert not read_net(theirs.read_text()).compare(bn, atol=1e-6)


def test_pgmpy_reads_our_files_and_we_read_its(tmp_path) -> None:
    pgmpy = pytest.importorskip("pgmpy.readwrite")
    bn = random_network(2)
    ours, theirs = tmp_path / "ours.net", tmp_path / "theirs.net"
    ours.write_text(write_net(bn))
    other = pgmpy.NETReader(str(ours)).get_model()
    for name in bn.variables:
        cpd = other.get_cpds(name)
        aligned = np.transpose(cpd.values, [cpd.variables.index(n) for n in bn[name].names])
        np.testing.assert_allclose(aligned, bn[name].values, atol=1e-9)
    pgmpy.NETWriter(other).write(str(theirs))
    assert not read_net(theirs.read_text()).compare(bn, atol=1e-6)


@pytest.mark.parametrize("blank", ["\u00a0", "\x85", "\u2003", "\x1c"])
def test_a_blank_that_is_not_ascii_is_no_separator_in_a_table(blank: str) -> None:
    text = f'net {{}} node a {{ states = ("s" "t"); }}\npotential (a) {{ data = (0.5{blank}0.5); }}'
    with pytest.raises(ParseError) as error:
        read_net(text)
    assert (error.value.line, error.value.column) == (2, 25)
    assert error.value.expected == f"expected a number, found {f'0.5{blank}0.5'!r}"
