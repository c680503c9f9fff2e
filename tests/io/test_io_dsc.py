"""MSBN DSC files."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ParseError
from markovia.io.dsc import read_dsc, write_dsc

# as bnlearn writes them: the first parent varies fastest, rows are addressed by position
SURVEY = """belief network "unknown"
node A {
  type : discrete [ 3 ] = { "young", "adult", "old" };
}
node S {
  type : discrete [ 2 ] = { "M", "F" };
}
node E {
  type : discrete [ 2 ] = { "high", "uni" };
}
probability ( A ) {
   0.3, 0.5, 0.2;
}
probability ( S ) {
   0.6, 0.4;
}
probability ( E | A, S ) {
  (0, 0) : 0.75, 0.25;
  (1, 0) : 0.72, 0.28;
  (2, 0) : 0.88, 0.12;
  (0, 1) : 0.64, 0.36;
  (1, 1) : 0.7, 0.3;
  (2, 1) : 0.9, 0.1;
}
"""

MSBN = """// in the style of MSBN
belief network "car start"
properties
{
    type MS_Author = string, "who made it";
    import standard.MS_Addins;
    MS_Author = "nobody";
}
node Battery
{
    name: "Battery power (\\"12V\\")";
    type: discrete[3] = { "High", "Low", "Zero volts" };
    position: (8, 10);
    category = "electric";
}
node Starts { type: discrete[2] = { "Yes", "No" }; }
node Bell { type: discrete[2]; }
/* tables */
probability(Battery) { 0.9, 0.05, 0.05; }
probability(Starts | Battery, Bell)
{
    ("High", 0): 0.99, 0.01;
    (High, 1): 0.97, 0.03; // by name
    ("Zero volts", 1): 0, 1;
    default: 0.5, 0.5;
}
"""


def test_rows_are_placed_by_their_positions() -> None:
    bn = read_dsc(SURVEY)
    assert bn.name == "unknown"
    assert bn.parents("E") == ["A", "S"]
    assert bn["E"].values[:, 0, 0].tolist() == [0.75, 0.72, 0.88]
    assert bn["E"].values[:, 1, 0].tolist() == [0.64, 0.7, 0.9]


def test_a_realistic_file_with_names_comments_and_defaults_is_read_in_full() -> None:
    bn = read_dsc(MSBN)
    assert bn.name == "car start"
    assert bn.states("Battery") == ["High", "Low", "Zero volts"]
    assert bn.states("Bell") == [0, 1]
    assert bn["Starts"].row(Battery="High", Bell=1).tolist() == [0.97, 0.03]
    assert bn["Starts"].row(Battery="Zero volts", Bell=1).tolist() == [0, 1]
    assert bn["Starts"].row(Battery="Low", Bell=0).tolist() == [0.5, 0.5]
    assert not bn.has_table("Bell")
    assert bn.properties == {"MS_Author": "nobody"}
    assert bn.node_properties["Battery"] == {
        "name": 'Battery power ("12V")',
        "position": "(8, 10)",
        "category": "electric",
    }


@pytest.mark.parametrize("text", [SURVEY, MSBN])
def test_what_was_read_is_written_back(text: str) -> None:
    bn = read_dsc(text)
    again = read_dsc(write_dsc(bn))
    assert not again.compare(bn, atol=0)
    assert (again.properties, again.node_properties) == (bn.properties, bn.node_properties)


def test_rows_in_one_piece_and_row_by_row_give_the_same_table() -> None:
    bn = mk.BayesianNetwork("a[3]->c[4]<-b[2]; d[2]->c", tables="random", seed=5)
    text = write_dsc(bn)
    commented = text.replace(";", "; // by hand")
    np.testing.assert_array_equal(read_dsc(commented)["c"].values, bn["c"].values)
    np.testing.assert_array_equal(read_dsc(text)["c"].values, bn["c"].values)


ONE = (
    'belief network "x" node a { type : discrete [ 2 ] = { "s", "t" }; } node b { type : discrete [ 2 ]; }\n'
)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "expected 'network'"),
        ('belief network "x" nodes', "1:20", "expected 'node', 'probability' or 'properties', found 'nodes'"),
        ('belief network "x" node a { }', "1:20", "expected the type of 'a'"),
        ('belief network "x" node a { type : continuous; }', "1:36", "expected 'discrete'"),
        ('belief network "x" node a { type : discrete [ 3 ] = { "s" }; }', "1:47", "expected 1 (the states listed)"),
        ('belief network "x" node a { type : discrete [ many ]; }', "1:47", "expected the number of states"),
        (ONE + "probability ( c ) { 0.5, 0.5; }", "2:1", "expected a declared node, found 'c'"),
        (ONE + "probability ( a | c ) { (0) : 0.5, 0.5; }", "2:19", "found 'c'"),
        (ONE + "probability ( a ) { 0.5, 0.5, 0; }", "2:21", "expected 2 numbers for 'a', found 3"),
        (ONE + "probability ( a ) { 0.5, half; }", "2:26", "found 'half'"),
        (ONE + "probability ( a ) {\n  0.2,\n 0.3, zz;\n}", "4:7", "found 'zz'"),
        (ONE + "probability ( a | b ) {\n default : 0.5, /* half */ 1_0; }", "3:28", "found '1_0'"),
        (ONE + "probability ( a ) { 0.5, 0.5 }", "2:30", "expected a number, found '}'"),
        (ONE + "probability ( a | b ) { (0) : 0.5, 0.5; }", "2:1", "expected 2 rows for 'a', found 1"),
        (ONE + "probability ( a | b ) { (0) : 0.5, 0.5; (0) : 1, 0; }", "2:42", "expected the positions of a new row"),
        (ONE + "probability ( a | b ) { (0) : 0.5, 0.5; (2) : 1, 0; }", "2:42", "expected the positions of a new row"),
        (ONE + "probability ( a | b ) { (0) : 0.5, 0.5; (1) : 1; }", "2:40", "expected 1 positions and 2 numbers"),
        (ONE + "probability ( a | b ) { (0) : 0.5, 0.5; (1, 1) : 1; }", "2:40", "expected 1 positions and 2 numbers"),
        (ONE + 'probability ( a | b ) { ("0") : 0.5, 0.5; (1) : 1; }', "2:43", "expected 2 numbers"),
        (ONE + 'probability ( a | b ) { ("0") : 0.5, 0.5; ("2") : 1, 0; }', "2:44", "expected a state of 'b'"),
        (ONE + 'probability ( a | b ) { ("0") : 0.5, 0.5; (0) : 1, 0; }', "2:43", "found this one again"),
        (ONE + 'probability ( a | b ) { ("0", 1) : 0.5, 0.5; }', "2:25", "expected a state for each of 1 parents"),
        (ONE + "probability ( a | b ) {\n(0) : 0.5, 0.5;\n  (1) : 0.9, 0.9; }", "4:4", "sum to 1.8"),
        (ONE + 'probability ( a | b ) {\n("0") : 0.5, 0.5;\n  (1) : 0.9, 0.9; }', "4:3", "sum to 1.8"),
        (ONE + "probability ( a ) { 1, 0; } probability ( a ) { 1, 0; }", "2:29", "second one of 'a'"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what_was_expected(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        read_dsc(text, "demo.dsc")
    assert str(error.value).startswith(f"demo.dsc:{place}: ")
    assert message in str(error.value)
