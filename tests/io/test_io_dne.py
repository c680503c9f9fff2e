"""Netica DNE files."""

import pytest

import markovia as mk
from markovia.errors import ParseError
from markovia.io.dne import read_dne, write_dne

CLINIC = r"""// ~->[DNET-1]->~

// File created by a licensed user using Netica 5.15 on Nov 09, 2016 at 17:33:54.

bnet ChestClinic {
autoupdate = TRUE;
whenchanged = 1478673234;
comment = "A \"classic\" \
    example\n";

visual V1 {
    defdispform = BELIEFBARS;
    nodefont = font {shape= "Arial"; size= 9;};
    windowposn = (25, 25, 1220, 502);
    NodeSet Node {BuiltIn = 1; Color = 0x00E1E1E1;};
    };

node VisitAsia {
    kind = NATURE;
    discrete = TRUE;
    chance = CHANCE;
    states = (visit, no_visit);
    parents = ();
    probs =
        // visit        no_visit
          (0.01,        0.99);
    title = "Visit to Asia";
    whenchanged = 1478673234;
    visual V1 {
        center = (180, 72);
        height = 3;
        };
    };

node Tuberculosis {
    kind = NATURE;
    discrete = TRUE;
    states = (present, absent);
    statetitles = ("is there", "is not");
    parents = (VisitAsia);
    numcases = 1;
    probs =
        // present      absent         // VisitAsia
          ((0.05,        0.95),        // visit
           (@imposs,     1));          /* no_visit */
    };

node Sum {
    kind = NATURE;
    chance = DETERMIN;
    discrete = TRUE;
    numstates = 3;
    inputs = (, first);
    parents = (VisitAsia, Tuberculosis);
    functable = ((2, 1), (#1, 0));
    };

node Load {
    kind = NATURE;
    discrete = FALSE;
    levels = (-INFINITY, 0, 10.5, INFINITY);
    parents = ();
    probs = (0.25, 0.25, 0.5);
    };

node TITLE1 {
    kind = CONSTANT;
    discrete = FALSE;
    parents = ();
    title = "a note on the drawing";
    };
NodeSet Diseases {Nodes = (Tuberculosis);};
};
"""


def test_a_realistic_file_is_read_in_full() -> None:
    bn = read_dne(CLINIC)
    assert bn.name == "ChestClinic"
    assert bn.variables == ["VisitAsia", "Tuberculosis", "Sum", "Load"]
    assert bn["Tuberculosis"].values.tolist() == [[0.05, 0.95], [0.0, 1.0]]
    assert bn.states("Sum") == [0, 1, 2]
    assert bn["Sum"].row(VisitAsia="visit", Tuberculosis="absent").tolist() == [0, 1, 0]
    assert bn["Sum"].row(VisitAsia="no_visit", Tuberculosis="present").tolist() == [0, 1, 0]
    assert bn["Sum"].row(VisitAsia="no_visit", Tuberculosis="absent").tolist() == [1, 0, 0]
    assert bn.states("Load") == [0, 1, 2]
    assert bn.properties == {
        "autoupdate": "TRUE",
        "whenchanged": "1478673234",
        "comment": 'A "classic" example\n',
    }
    assert bn.node_properties["VisitAsia"] == {
        "title": "Visit to Asia",
        "whenchanged": "1478673234",
        "center": "(180, 72)",
    }
    assert bn.node_properties["Tuberculosis"] == {"statetitles": '("is there", "is not")', "numcases": "1"}


def test_what_was_read_is_written_back_with_its_attributes() -> None:
    bn = read_dne(CLINIC)
    text = write_dne(bn)
    assert text.startswith("// ~->[DNET-1]->~\n")
    assert "visual V1 { center = (180, 72); };" in text
    assert 'statetitles = ("is there", "is not");' in text
    assert "whenchanged = 1478673234;" in text
    again = read_dne(text)
    assert not again.compare(bn, atol=0)
    assert (again.properties, again.node_properties) == (bn.properties, bn.node_properties)


def test_identifiers_are_cut_to_what_netica_allows_and_come_back_whole() -> None:
    bn = mk.BayesianNetwork()
    long = "a_very_long_name_that_netica_would_refuse"
    bn.add(long, states=[f"{long}_{i}" for i in range(3)], p=[0.5, 0.25, 0.25])
    bn.add(long + "_too", states=["no", "yes"], parents=long, p=[[1, 0], [0, 1], [0.5, 0.5]])
    text = write_dne(bn)
    node_lines = [line.split()[1] for line in text.splitlines() if line.startswith("node ")]
    assert all(len(name) <= 30 for name in node_lines)
    assert len(set(node_lines)) == 2
    assert read_dne(text).variables == bn.variables
    assert read_dne(text).states(long) == bn.states(long)
    assert read_dne(text).node_properties == {}


def test_a_node_without_probabilities_leaves_the_structure() -> None:
    bn = read_dne("bnet x { node a { states = (s, t); }; node b { states = (u, v); parents = (a); }; }")
    assert bn.edges == [("a", "b")]
    assert not bn.has_table("b")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "expected 'bnet', found the end of the file"),
        ("bnet x {", "1:9", "expected an attribute or '}'"),
        ("bnet x { } y", "1:12", "expected the end of the file"),
        ("bnet x { y z }", "1:14", "expected '=' or '{'"),
        ("bnet x { node d { kind = DECISION; }; }", "1:10", "expected the states of 'd'"),
        ("bnet x { node d { kind = ASSUME; }; }", "1:26", "nodes of the kind 'ASSUME' are not supported"),
        ("bnet x { node c { discrete = FALSE; }; }", "1:10", "continuous nodes are not supported"),
        ("bnet x { node c { kind = NATURE; }; }", "1:10", "expected the states of 'c'"),
        ("bnet x { node c { numstates = 0; }; }", "1:19", "expected a possible number of states"),
        ("bnet x { node c { numstates = many; }; }", "1:19", "expected the number of states"),
        ("bnet x { node c { states = (a, b) }; }", "1:35", "expected ';', found '}'"),
        ("bnet x { node c { states = (a, b); probs = (0.5, 0.5, 0); }; }", "1:44", "expected 2 numbers for 'c'"),
        ("bnet x { node c { states = (a, b); probs = (0.5, @what); }; }", "1:50", "found '@what'"),
        ("bnet x { node c { states = (a, b); functable = (c); }; }", "1:49", "expected a state of 'c'"),
        ("bnet x { node c { states = (a, b); functable = (a, b); }; }", "1:48", "expected 1 states"),
        ("bnet x { node c { states = (a); parents = (d); }; }", "1:44", "found 'd'"),
        ("bnet x { /* } ", "1:10", "expected the end of this comment"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what_was_expected(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        read_dne(text, "demo.dne")
    assert str(error.value).startswith(f"demo.dne:{place}: ")
    assert message in str(error.value)


@pytest.mark.parametrize("blank", ["\u00a0", "\x85", "\u2003", "\x1c"])
def test_a_blank_that_is_not_ascii_is_no_separator_in_a_table(blank: str) -> None:
    text = f"bnet x {{ node a {{ states = (s, t);\nprobs = (0.5,{blank}0.5); }}; }};"
    with pytest.raises(ParseError) as error:
        read_dne(text)
    assert (error.value.line, error.value.column) == (2, 14)
    assert error.value.expected == f"expected a number, found {blank + '0.5'!r}"
