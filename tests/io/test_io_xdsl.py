"""GeNIe XDSL files."""

import itertools

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ParseError
from markovia.io.xdsl import read_xdsl, write_xdsl

VENTURE = """<?xml version="1.0" encoding="ISO-8859-1"?>
<smile version="1.0" id="VentureBN" numsamples="1000" discsamples="10000">
  <nodes>
    <cpt id="Success">
      <state id="Success" />
      <state id="Failure" />
      <probabilities>0.2 0.8</probabilities>
      <property id="literature">Some reference</property>
    </cpt>
    <cpt id="Market" target="true">
      <state id="Up" />
      <state id="Down" />
      <probabilities>0.3 0.7</probabilities>
    </cpt>
    <cpt id="Forecast" diagtype="observation">
      <state id="Good" />
      <state id="Moderate" />
      <state id="Poor" />
      <parents>Success Market</parents>
      <probabilities>0.4 0.4 0.2 0.35 0.4 0.25 0.1 0.3 0.6 0.05 0.25 0.7</probabilities>
    </cpt>
    <deterministic id="Report">
      <state id="Buy" />
      <state id="Wait" />
      <parents>Forecast</parents>
      <resultingstates>Buy Wait Wait</resultingstates>
    </deterministic>
  </nodes>
  <extensions>
    <genie version="1.0" app="GeNIe 2.1" name="Venture">
      <node id="Success">
        <name>Success of the venture</name>
        <interior color="e5f6f7" />
        <font color="000000" name="Arial" size="8" />
        <position>54 11 138 62</position>
      </node>
      <submodel id="Sub1">
        <name>Inner</name>
        <node id="Forecast"><name>Expert forecast</name><barchart active="true" width="128" /></node>
      </submodel>
      <textbox><caption>a note</caption></textbox>
    </genie>
  </extensions>
</smile>
"""


def test_a_realistic_file_is_read_in_full() -> None:
    bn = read_xdsl(VENTURE)
    assert bn.name == "VentureBN"
    assert bn.variables == ["Success", "Market", "Forecast", "Report"]
    assert bn.parents("Forecast") == ["Success", "Market"]
    # the last parent varies faster than the first
    assert bn["Forecast"].row(Success="Success", Market="Down").tolist() == [0.35, 0.4, 0.25]
    assert bn["Forecast"].row(Success="Failure", Market="Up").tolist() == [0.1, 0.3, 0.6]
    assert bn["Report"].values.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert bn.properties == {"smile.numsamples": "1000", "smile.discsamples": "10000"}
    assert bn.node_properties["Success"] == {
        "literature": "Some reference",
        "genie.name": "Success of the venture",
        "genie.interior.color": "e5f6f7",
        "genie.font.color": "000000",
        "genie.font.name": "Arial",
        "genie.font.size": "8",
        "genie.position": "54 11 138 62",
    }
    assert bn.node_properties["Market"] == {"smile.target": "true"}
    assert bn.node_properties["Forecast"]["genie.barchart.width"] == "128"


def test_what_was_read_is_written_back_with_its_drawing() -> None:
    bn = read_xdsl(VENTURE)
    text = write_xdsl(bn)
    assert '<cpt id="Market" target="true">' in text
    assert '<font color="000000" name="Arial" size="8" />' in text
    again = read_xdsl(text)
    assert not again.compare(bn, atol=0)
    assert (again.properties, again.node_properties) == (bn.properties, bn.node_properties)


def noisy_file(strengths: str, parameters: str) -> str:
    return f"""<smile version="1.0" id="n"><nodes>
    <cpt id="cold"><state id="severe"/><state id="mild"/><state id="no"/><probabilities>.1 .2 .7</probabilities></cpt>
    <cpt id="flu"><state id="yes"/><state id="no"/><probabilities>0.1 0.9</probabilities></cpt>
    <noisymax id="fever"><state id="high"/><state id="low"/><state id="none"/><parents>cold flu</parents>
      <strengths>{strengths}</strengths><parameters>{parameters}</parameters></noisymax></nodes></smile>"""


PARAMETERS = "0.3 0.4 0.3  0.1 0.2 0.7  0 0 1   0.6 0.3 0.1  0 0 1   0.05 0.05 0.9"


def test_a_noisy_max_takes_the_strongest_of_independent_effects() -> None:
    bn = read_xdsl(noisy_file("0 1 2 0 1", PARAMETERS))
    rows = np.array(PARAMETERS.split(), dtype=float).reshape(6, 3)
    cold, flu, leak = rows[:3], rows[3:5], rows[5]
    for i, j in itertools.product(range(3), range(2)):
        expected = np.zeros(3)
        for a, b, c in itertools.product(range(3), repeat=3):
            expected[min(a, b, c)] += cold[i, a] * flu[j, b] * leak[c]
        np.testing.assert_allclose(bn["fever"].values[i, j], expected, atol=1e-12)
    assert bn["fever"].n_parameters < 12
    again = read_xdsl(write_xdsl(bn))
    np.testing.assert_allclose(again["fever"].values, bn["fever"].values, atol=1e-15)


def test_strengths_say_which_column_belongs_to_which_state() -> None:
    plain = read_xdsl(noisy_file("0 1 2 0 1", PARAMETERS))
    # the same columns, now in an order that makes "severe" and "yes" the states without effect
    turned = read_xdsl(noisy_file("2 1 0 1 0", PARAMETERS))
    np.testing.assert_allclose(turned["fever"].values, plain["fever"].values[::-1, ::-1], atol=1e-15)
    # here the columns follow the states, and the strengths only name the state without effect
    by_state = "0 0 1  0.1 0.2 0.7  0.3 0.4 0.3   0 0 1  0.6 0.3 0.1   0.05 0.05 0.9"
    np.testing.assert_allclose(
        read_xdsl(noisy_file("2 1 0 1 0", by_state))["fever"].values, turned["fever"].values, atol=1e-15
    )


def test_a_node_without_probabilities_leaves_the_structure() -> None:
    bn = read_xdsl(
        '<smile><nodes><cpt id="a"><state id="x"/></cpt>'
        '<cpt id="b"><state id="y"/><parents>a</parents></cpt></nodes></smile>'
    )
    assert bn.edges == [("a", "b")]
    assert not bn.has_table("a")


def nodes(*parts: str) -> str:
    return "\n".join(["<smile>", "<nodes>", *parts, "</nodes>", "</smile>"])


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("<smile>", "1:8", "no element found"),
        ("<BIF/>", "1:1", "expected <smile>"),
        ("<smile/>", "1:1", "expected <nodes>"),
        ("<smile><nodes/><dynamic/></smile>", "1:16", "dynamic networks are not supported"),
        (nodes('<decision id="d"/>'), "3:1", "expected one or more distinct states"),
        (nodes('<equation id="u"/>'), "3:1", "<equation> nodes are not supported"),
        (nodes('<equation id="e"/>'), "3:1", "<equation> nodes are not supported"),
        (nodes("<cpt/>"), "3:1", "expected an id in <cpt>"),
        (nodes('<cpt id="a"><state/></cpt>'), "3:13", "expected an id in <state>"),
        (nodes('<cpt id="a"><state id="x"/></cpt>', '<cpt id="a"><state id="x"/></cpt>'), "4:1", "declared twice"),
        (nodes('<cpt id="a"><state id="x"/><parents>b</parents></cpt>'), "3:28", "found 'b'"),
        (nodes('<cpt id="a"><state id="x"/><probabilities>1 0</probabilities></cpt>'), "3:28", "expected 1 numbers"),
        (nodes('<cpt id="a"><state id="x"/><probabilities>x</probabilities></cpt>'), "3:43", "found 'x'"),
        (nodes('<deterministic id="a"><state id="x"/><resultingstates>y</resultingstates></deterministic>'),
         "3:55", "expected a state of 'a', found 'y'"),
        (nodes('<deterministic id="a"><state id="x"/><resultingstates>x x</resultingstates></deterministic>'),
         "3:38", "expected 1 states"),
        (nodes('<noisymax id="a"><state id="x"/><parameters>1 1 1</parameters></noisymax>'), "3:33", "parameters"),
        (noisy_file("0 0 2 0 1", PARAMETERS), "5:7", "expected strengths"),
        (noisy_file("0 1 2 0 1", PARAMETERS.replace("0.6", "0.9")), "5:85", "sum to 1.3"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what_was_expected(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        read_xdsl(text, "demo.xdsl")
    assert str(error.value).startswith(f"demo.xdsl:{place}: ")
    assert message in str(error.value)


def random_network(seed: int) -> mk.BayesianNetwork:
    return mk.BayesianNetwork(
        "a{lo|mid|hi}->c{x|y}<-b{p|q}; b->d{u|v|w}; a->d; c->d", tables="random", seed=seed, name="cross"
    )


@pytest.mark.filterwarnings("ignore:.*rescaled:UserWarning")
def test_files_by_pyagrum_are_read_with_their_first_parent_fastest(tmp_path) -> None:
    gum = pytest.importorskip("pyagrum")
    other = gum.fastBN("a{lo|mid|hi}->c{x|y}<-b{p|q}; b->d{u|v|w}; a->d; c->d")
    theirs = tmp_path / "theirs.xdsl"
    gum.saveBN(other, str(theirs))
    bn = read_xdsl(theirs.read_text())
    for name in bn.variables:
        table = other.cpt(name)
        aligned = np.transpose(table.toarray(), [table.names[::-1].index(n) for n in bn[name].names])
        np.testing.assert_allclose(bn[name].values, aligned, atol=2e-6)


def test_pyagrum_reads_our_files_where_nodes_have_one_parent(tmp_path) -> None:
    gum = pytest.importorskip("pyagrum")
    bn = mk.BayesianNetwork("a{lo|mid|hi}->c{x|y}->d{u|v|w}; a->e{s|t}", tables="random", seed=3)
    ours = tmp_path / "ours.xdsl"
    ours.write_text(write_xdsl(bn))
    other = gum.loadBN(str(ours))
    for name in bn.variables:
        table = other.cpt(name)
        aligned = np.transpose(table.toarray(), [table.names[::-1].index(n) for n in bn[name].names])
        np.testing.assert_allclose(aligned, bn[name].values, atol=1e-6)


def test_pgmpy_reads_our_files_and_we_read_its(tmp_path) -> None:
    pgmpy = pytest.importorskip("pgmpy.readwrite")
    bn = random_network(2)
    ours, theirs = tmp_path / "ours.xdsl", tmp_path / "theirs.xdsl"
    ours.write_text(write_xdsl(bn))
    other = pgmpy.XDSLReader(str(ours)).get_model()
    for name in bn.variables:
        cpd = other.get_cpds(name)
        aligned = np.transpose(cpd.values, [cpd.variables.index(n) for n in bn[name].names])
        np.testing.assert_allclose(aligned, bn[name].values, atol=1e-9)
    pgmpy.XDSLWriter(other).write(str(theirs))
    assert not read_xdsl(theirs.read_text()).compare(bn, atol=1e-6)
