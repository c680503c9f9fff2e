"""XMLBIF files."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ParseError
from markovia.io.xmlbif import read_xmlbif, write_xmlbif

DOG = """<?xml version="1.0" encoding="US-ASCII"?>
<!-- in the style of JavaBayes -->
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
  <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
]>
<BIF VERSION="0.3">
<NETWORK>
<NAME>Dog-Problem</NAME>
<PROPERTY>credal-set constant-density-bounded 1.1</PROPERTY>
<PROPERTY>author = Charniak &amp; co</PROPERTY>
<VARIABLE TYPE="nature">
  <NAME>bowel-problem</NAME>
  <OUTCOME>true</OUTCOME>
  <OUTCOME>false</OUTCOME>
  <PROPERTY>position = (190, 69)</PROPERTY>
</VARIABLE>
<VARIABLE TYPE="nature">
  <NAME>dog out</NAME>
  <VALUE>&lt; 1 hour</VALUE>
  <VALUE>1 - 2</VALUE>
  <VALUE>more</VALUE>
</VARIABLE>
<VARIABLE>
  <NAME>family-out</NAME>
  <OUTCOME>true</OUTCOME><OUTCOME>false</OUTCOME>
</VARIABLE>
<DEFINITION>
  <FOR>dog out</FOR>
  <GIVEN>bowel-problem</GIVEN>
  <GIVEN>family-out</GIVEN>
  <TABLE> <!-- problem, out --> 0.99 0.01 0
          <!-- problem, in -->  0.97 0.02 0.01
          0.9 0.05 0.05
          0.3 .3 4e-1 </TABLE>
</DEFINITION>
<DEFINITION><FOR>bowel-problem</FOR><TABLE>0.01 0.99</TABLE></DEFINITION>
<DEFINITION><FOR>family-out</FOR><TABLE><![CDATA[0.15 0.85]]></TABLE></DEFINITION>
</NETWORK>
</BIF>
"""


def test_a_realistic_file_is_read_in_full() -> None:
    bn = read_xmlbif(DOG)
    assert bn.name == "Dog-Problem"
    assert bn.variables == ["bowel-problem", "dog out", "family-out"]
    assert bn.states("dog out") == ["< 1 hour", "1 - 2", "more"]
    assert bn.parents("dog out") == ["bowel-problem", "family-out"]
    row = bn["dog out"].factor().reduce({"bowel-problem": "true", "family-out": "false"})
    assert row.values.tolist() == [0.97, 0.02, 0.01]
    assert bn["family-out"].values.tolist() == [0.15, 0.85]
    assert bn.properties == {"credal-set constant-density-bounded 1.1": "", "author": "Charniak & co"}
    assert bn.node_properties == {"bowel-problem": {"position": "(190, 69)"}}


def test_what_was_read_is_written_back_with_its_properties() -> None:
    bn = read_xmlbif(DOG)
    text = write_xmlbif(bn)
    assert "<PROPERTY>credal-set constant-density-bounded 1.1</PROPERTY>" in text
    assert "<NAME>dog out</NAME>" in text
    again = read_xmlbif(text)
    assert not again.compare(bn, atol=0)
    assert (again.properties, again.node_properties) == (bn.properties, bn.node_properties)


def test_a_definition_without_a_table_leaves_the_structure() -> None:
    bn = read_xmlbif(
        "<BIF><NETWORK><VARIABLE><NAME>a</NAME><OUTCOME>x</OUTCOME></VARIABLE>"
        "<VARIABLE><NAME>b</NAME><OUTCOME>x</OUTCOME></VARIABLE>"
        "<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN></DEFINITION></NETWORK></BIF>"
    )
    assert bn.edges == [("a", "b")]
    assert not bn.has_table("b")


def variable(name: str, *states: str) -> str:
    return f"<VARIABLE><NAME>{name}</NAME>{''.join(f'<OUTCOME>{s}</OUTCOME>' for s in states)}</VARIABLE>"


def definition(inside: str) -> str:
    return f"<DEFINITION><FOR>{inside}</DEFINITION>"


def network(*parts: str) -> str:
    return "\n".join(["<BIF>", "<NETWORK>", *parts, "</NETWORK>", "</BIF>"])


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "no element found"),
        ("hello", "1:1", "expected '<'"),
        ("<BIF>", "1:6", "no element found"),
        ("<BIF></bif>", "1:8", "mismatched tag"),
        ("<html/>", "1:1", "expected <BIF>, found <html>"),
        ("<BIF/>", "1:1", "expected <NETWORK>"),
        ("<!DOCTYPE b [\n<!ENTITY a 'b'>]><BIF/>", "2:12", "expected no entity declarations, found 'a'"),
        ("<BIF>&nbsp;</BIF>", "1:6", "undefined entity"),
        (network("<VARIABLE/>"), "3:1", "expected <NAME>"),
        (network('<VARIABLE TYPE="goal"><NAME>a</NAME></VARIABLE>'), "3:1", "'goal' variables are not supported"),
        (network(variable("a")), "3:1", "at least one state"),
        (network(variable("a", "x", "x")), "3:1", "repeat 'x'"),
        (network(variable("a", "x"), variable("a", "x")), "4:1", "found 'a' again"),
        (network(variable("a", "x"), "<DEFINITION/>"), "4:1", "expected one <FOR>"),
        (network(variable("abc", "x"), definition("abd</FOR>")), "4:13", "did you mean 'abc'"),
        (network(variable("a", "x"), definition("a</FOR><GIVEN>b</GIVEN>")), "4:25", "found 'b'"),
        (network(variable("a", "x"), definition("a</FOR><TABLE>1 2</TABLE>")), "4:25", "expected 1 numbers"),
        (network(variable("a", "x"), definition("a</FOR><TABLE>\n<!-- 1 --> é</TABLE>")), "5:12", "found 'é'"),
        (network(variable("é", "x"), definition("é</FOR><TABLE>  2</TABLE>")), "4:34", "sum to 2"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what_was_expected(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        read_xmlbif(text, "demo.xml")
    assert str(error.value).startswith(f"demo.xml:{place}: ")
    assert message in str(error.value)


def random_network(seed: int) -> mk.BayesianNetwork:
    return mk.BayesianNetwork(
        "a{lo|mid|hi}->c{x|y}<-b{p|q}; b->d{u|v|w}; a->d; c->d", tables="random", seed=seed, name="cross"
    )


@pytest.mark.filterwarnings("ignore:.*rescaled:UserWarning")
def test_pyagrum_reads_our_files_and_we_read_its(tmp_path) -> None:
    gum = pytest.importorskip("pyagrum")
    bn = random_network(1)
    ours, theirs = tmp_path / "ours.bifxml", tmp_path / "theirs.bifxml"
    ours.write_text(write_xmlbif(bn))
    other = gum.loadBN(str(ours))
    for name in bn.variables:
        table = other.cpt(name)
        aligned = np.transpose(table.toarray(), [table.names[::-1].index(n) for n in bn[name].names])
        np.testing.assert_allclose(aligned, bn[name].values, atol=1e-6)
    gum.saveBN(other, str(theirs))
    assert not read_xmlbif(theirs.read_text()).compare(bn, atol=2e-6)


def test_pgmpy_reads_our_files_and_we_read_its(tmp_path) -> None:
    pgmpy = pytest.importorskip("pgmpy.readwrite")
    bn = random_network(2)
    ours, theirs = tmp_path / "ours.xml", tmp_path / "theirs.xml"
    ours.write_text(write_xmlbif(bn))
    other = pgmpy.XMLBIFReader(str(ours)).get_model()
    for name in bn.variables:
        cpd = other.get_cpds(name)
        aligned = np.transpose(cpd.values, [cpd.variables.index(n) for n in bn[name].names])
        np.testing.assert_allclose(aligned, bn[name].values, atol=1e-9)
    pgmpy.XMLBIFWriter(other).write(str(theirs))
    assert not read_xmlbif(theirs.read_text()).compare(bn, atol=1e-6)


def test_a_blank_that_is_not_ascii_is_no_separator_in_a_table_and_positions_count_it() -> None:
    text = (
        "<BIF><NETWORK><VARIABLE><NAME>a</NAME><OUTCOME>s</OUTCOME><OUTCOME>t</OUTCOME></VARIABLE>"
        "<DEFINITION><FOR>a</FOR>\n<TABLE>{}</TABLE></DEFINITION></NETWORK></BIF>"
    )
    for table, column, word in (("0.5\xa00.5", 8, "0.5\xa00.5"), ("0.5 à 0.5 zz", 12, "à")):
        with pytest.raises(ParseError) as error:
            read_xmlbif(text.format(table))
        assert error.value.line == 2
        assert error.value.column == column
        assert repr(word) in str(error.value)
