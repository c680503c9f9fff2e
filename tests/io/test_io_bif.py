import gzip
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from file_fuzz import flips, must_hold, nonsense, peak_memory, shuffled_tokens, truncations
from markovia.errors import ParseError, UnsupportedModel
from markovia.io import bif_tables
from markovia.io.bif import read_bif, write_bif
from places import BENCHMARKS

DATA = BENCHMARKS / "bif"
NETWORKS = sorted(DATA.glob("*.bif.gz"))
needs_data = pytest.mark.skipif(not NETWORKS, reason="the benchmark networks are not here")

DEMO = """// a demo
network "my net" {
  property author = "someone; else" ;
  property "version = 2" ;
}
variable rain {
  type discrete [ 2 ] { no, yes };
  property position = (10, {20}) ;
}
variable "wet grass" {
  type discrete[3]{ <5, "very wet", >=7.5 };
}
probability ( rain ) { table 0.8, 0.2; }
probability ( "wet grass" | rain ) { /* rows
  in any order */
  (yes) 0.1, 0.2, 0.7;
  (no) 0.5, 0.25, 0.25;
  property source = http://example.org/a//b ;
}
"""


def small(body: str, parents: str = "a, b") -> str:
    bar = f"| {parents}" if parents else ""
    return f"""network t {{ }}
variable a {{ type discrete [ 2 ] {{ a0, a1 }}; }}
variable b {{ type discrete [ 3 ] {{ b0, b1, b2 }}; }}
variable c {{ type discrete [ 2 ] {{ c0, c1 }}; }}
probability ( a ) {{ table 0.3, 0.7; }}
probability ( b ) {{ table 0.2, 0.3, 0.5; }}
probability ( c {bar} ) {{ {body} }}
"""


ROWS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
LISTED = " ".join(
    f"(a{i}, b{j}) {ROWS[3 * i + j]}, {1 - ROWS[3 * i + j]!r};" for i, j in product(range(2), range(3))
)


def test_quotes_comments_and_properties_are_understood():
    bn = read_bif(DEMO)
    assert bn.name == "my net"
    assert bn.properties == {"author": "someone; else", "version": "2"}
    assert bn.states("wet grass") == ["<5", "very wet", ">=7.5"]
    assert bn.node_properties == {
        "rain": {"position": "(10, {20})"},
        "wet grass": {"source": "http://example.org/a//b"},
    }
    assert bn["wet grass"].values.tolist() == [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]


def test_a_round_trip_keeps_everything():
    bn = read_bif(DEMO)
    twin = read_bif(write_bif(bn))
    assert not bn.compare(twin, atol=0.0)
    assert (twin.name, twin.properties, twin.node_properties) == (bn.name, bn.properties, bn.node_properties)
    assert twin.variables == bn.variables


def test_a_table_lists_the_child_slowest_as_pyagrum_reads_it(tmp_path):
    text = small("table 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4;")
    ours = read_bif(text)["c"]
    assert ours.values[..., 0].tolist() == [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
    gum = pytest.importorskip("pyagrum")
    (tmp_path / "t.bif").write_text(text)
    network = gum.loadBN(str(tmp_path / "t.bif"))  # a table crashes once its network is gone
    theirs = network.cpt("c")
    for i, j in product(range(2), range(3)):
        assert theirs[{"a": i, "b": j}][0] == pytest.approx(ours.values[i, j, 0])


@pytest.mark.parametrize(
    "body",
    [
        LISTED,
        " ".join(reversed([f"{r};" for r in LISTED.split(";") if r.strip()])),
        LISTED.replace("(", "( ").replace(")", " )"),
        LISTED.replace(", b", " b").replace(", 0", " 0"),
        LISTED.replace("a0", '"a0"'),
        LISTED + " property k = v ;",
        LISTED.replace("(a0, b0) 0.1, 0.9;", "") + " default 0.1 0.9;",
        "property {x} ; " + LISTED,
    ],
)
def test_every_way_to_list_rows_gives_the_same_table(body):
    assert np.allclose(
        read_bif(small(body))["c"].values[..., 0], np.reshape(ROWS, (2, 3)), rtol=0, atol=1e-15
    )


def test_the_fast_and_the_careful_way_read_the_same_table(monkeypatch):
    fast = read_bif(small(LISTED))
    monkeypatch.setattr(bif_tables, "_fast_rows", lambda body: None)
    monkeypatch.setattr(bif_tables, "_fast_table", lambda body: None)
    assert not fast.compare(read_bif(small(LISTED)), atol=0.0)


def test_blocks_may_come_in_any_order_and_a_bar_without_parents_is_a_root():
    text = "probability ( a | ) { table 0.5 0.5; } variable a { type discrete [2] { x y }; }"
    assert read_bif(text)["a"].values.tolist() == [0.5, 0.5]


def test_states_are_text_and_may_be_numbers():
    text = "network n {} variable a { type discrete [3] { 0, 1, 1.5 }; } probability (a) { table 0.25, 0.25, 0.5; }"
    assert read_bif(text).states("a") == ["0", "1", "1.5"]


def test_an_unnamed_network_stays_unnamed_and_one_called_unknown_keeps_its_name():
    for name in ("", "unknown", "table", "two words", 'a "quoted" \\ name'):
        bn = mk.BayesianNetwork("a", tables="uniform", name=name)
        assert read_bif(write_bif(bn)).name == name


@pytest.mark.parametrize(
    ("text", "found", "wanted"),
    [
        ("", "", "'network'"),
        ("// nothing", "", "'network'"),
        ("hello", "hello", "'network'"),
        ("network x {\n  color red;\n}", "color", "'property'"),
        ("network x { property ; }", ";", "name of a property"),
        ("network x { property a = b }", "a = b", "';'"),
        ("network x {\n}\nvariables a { }", "variables", "'variable'"),
        ("network x {\n}\nnetwork y { }", "network y", "'variable'"),
        ("network x {\n", "", "'property'"),
        ("variable a { type discrete [ 2 ] { x } ; }", "x }", "announces, 2"),
        ("variable a { type discrete [ 2 ] { x, } ; }", "x, }", "announces, 2"),
        ("variable a { type discrete [ 2 ] { x, x } ; }", "x, x }", "twice"),
        ("variable a { type continuous; }", "continuous", "'discrete'"),
        ("variable a { type discrete [ two ] { x, y } ; }", "two", "number of states"),
        ("variable a { type discrete [ 999999999999999 ] { x, y } ; }", "x, y", "1,048,576"),
        ("variable a { type discrete [ 2 ] { x, y } }", "}", "';'"),
        ("variable a { type discrete [ 2 ] { x, y } ; }", "a {", "probability block"),
        ("variable a { property x; }", "}", "'type'"),
        (
            "variable a { type discrete [ 1 ] { x }; }\nvariable a { type discrete [ 1 ] { x }; } //",
            "a { type discrete [ 1 ] { x }; } //",
            "second",
        ),
        ('variable "a { }', '"a', "closing quote"),
        ("network x { } /* never closed", "/*", "'*/'"),
        ("variable a { type discrete [ 1 ] { x }; } probability ( a ) { table 1;", "{ table", "'}'"),
        (
            "variable a { type discrete [ 1 ] { x }; } probability ( ) { table 1; }",
            ") {",
            "name of a variable",
        ),
        ("variable a { type discrete [ 1 ] { x }; } probability a { table 1; }", "a { table", "'('"),
        (small("table 0.5, 0.4;", ""), "table 0.5, 0.4", "sums to 1"),
        (small("table 0.5, -0.5, 1;", ""), "1; }", "2 probabilities"),
        (small("table 1.5, -0.5;", ""), "table 1.5", "negative"),
        (small("table nan, 1;", ""), "nan", "number"),
        (small("table 0.5;", ""), "; }", "2 probabilities"),
        (small("table 1e999, 0;", ""), "table 1e999", "finite"),
        (small("tabel 0.5, 0.5;", ""), "tabel", "'table'"),
        (small("table 1, 0; table 1, 0;", ""), "table 1, 0; }", "single table"),
        (small("table 1, 0; default 1, 0;", ""), "table 1, 0; default", "both"),
        (small("default 1, 0; default 1, 0;"), "default 1, 0; }", "single default"),
        (small("(a0, b0) 0.5, 0.5;"), "(a0, b0)", "a='a0', b='b1'"),
        (small(LISTED.replace("b2", "b22")), "b22) 0.3", "did you mean 'b2'"),
        (small(LISTED + "(a0, b0) 0.5, 0.4;"), "(a0, b0) 0.5, 0.4", "given above"),
        (small(LISTED.replace("(a1, b1) 0.5", "(a1, b1) 0.6")), "(a1, b1) 0.6", "sum to 1.1"),
        (small(LISTED.replace("a1, b1", "a1")), "(a1) 0.5", "2 parents"),
        (small(LISTED, "a, d"), "d ) {", "declared variable"),
        (small(LISTED, "a, a"), "a ) {", "different variables"),
        (small(LISTED).replace("( b )", "( a )"), "probability ( a ) { table 0.2", "found two"),
        (
            small(LISTED).replace("( b ) { table 0.2, 0.3, 0.5;", "( b | c ) { default 0, 0, 1;"),
            "probability ( b | c",
            "acyclic",
        ),
    ],
)
def test_errors_say_where_and_what(text, found, wanted):
    with pytest.raises(ParseError) as caught:
        read_bif(text, "net.bif")
    error = caught.value
    assert wanted in str(error)
    assert str(error).startswith(f"net.bif:{error.line}:{error.column}: ")
    at = sum(len(line) + 1 for line in text.split("\n")[: error.line - 1]) + error.column - 1
    assert text[at:].lstrip().startswith(found) if found else not text[at:].strip()


def test_rounded_rows_are_rescaled_with_one_warning():
    body = LISTED.replace("(a0, b0) 0.1,", "(a0, b0) 0.101,").replace("(a1, b0) 0.4,", "(a1, b0) 0.395,")
    with pytest.warns(UserWarning, match=r"2 probability rows .* up to 0.005") as caught:
        table = read_bif(small(body))["c"].values
    assert len(caught) == 1
    assert np.allclose(table.sum(axis=-1), 1.0, rtol=0, atol=1e-12)
    assert table[0, 1, 0] == 0.2


def test_a_table_that_no_file_could_list_is_refused_before_memory_is_taken():
    many = [
        f"variable v{i} {{ type discrete [ 2 ] {{ x, y }}; }} probability ( v{i} ) {{ table 1, 0; }}"
        for i in range(40)
    ]
    names = ", ".join(f"v{i}" for i in range(40))
    head = "network n {}\n" + "\n".join(many) + "\nvariable c { type discrete [ 2 ] { x, y }; }\n"
    with peak_memory() as peak:
        for body, limit in (("table 1, 0;", "entries|numbers"), ("default 1, 0;", "entries")):
            for parents in (names, ", ".join(f"v{i}" for i in range(25))):
                with pytest.raises(ParseError, match=limit):
                    read_bif(f"{head}probability ( c | {parents} ) {{ {body} }}")
    assert peak() < 20e6


def test_default_rows_fill_a_table_of_reasonable_size():
    many = [
        f"variable v{i} {{ type discrete [ 2 ] {{ x, y }}; }} probability ( v{i} ) {{ table 1, 0; }}"
        for i in range(10)
    ]
    names = ", ".join(f"v{i}" for i in range(10))
    text = (
        "\n".join(many)
        + f"variable c {{ type discrete [ 2 ] {{ x, y }}; }} probability ( c | {names} ) {{ default 0.25, 0.75; }}"
    )
    assert read_bif(text)["c"].values.shape == (2,) * 11


def test_what_bif_cannot_say_is_refused_with_the_reason():
    with pytest.raises(UnsupportedModel, match="Bayesian networks only"):
        write_bif(mk.MarkovNetwork({"a": 2}))
    with pytest.raises(UnsupportedModel, match="has none"):
        write_bif(mk.BayesianNetwork("a->b"))
    with pytest.raises(UnsupportedModel, match="same text"):
        write_bif(mk.BayesianNetwork("a", states={"a": [1, "1"]}, tables="uniform"))


def test_integer_and_boolean_states_come_back_as_such():
    bn = mk.BayesianNetwork()
    bn.add("die", states=[1, 2, 3], p=[0.5, 0.25, 0.25])
    bn.add("high", states=[True, False], parents=["die"], p=[[0, 1], [0.25, 0.75], [1, 0]])
    bn.add("said", states=[0, "zero", "no"], parents=["high"], p="uniform")
    bn.node_properties = {"die": {"colour": "red", "markovia_states": "mine"}}
    text = write_bif(bn)
    twin = read_bif(text)
    assert "property markovia_states = int ;" in text
    assert [twin.variable(n) for n in twin.variables] == [bn.variable(n) for n in bn.variables]
    assert not bn.compare(twin, atol=0.0)
    assert twin.node_properties == bn.node_properties
    assert write_bif(twin) == text


@pytest.mark.parametrize("mark", ["int", "[1, 1]", "[1]", "[1, [2"])
def test_a_mark_that_does_not_fit_the_states_is_a_parse_error(mark):
    text = small(LISTED).replace("{ a0, a1 };", f"{{ a0, a1 }}; property markovia_states = {mark} ;")
    with pytest.raises(ParseError, match=r"^net.bif:2:10: "):
        read_bif(text, "net.bif")


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6).filter(
    lambda s: not any("\ufdd0" <= c <= "\ufdef" for c in s)
)


@st.composite
def networks(draw):
    names = draw(st.lists(words, min_size=1, max_size=4, unique=True))
    bn = mk.BayesianNetwork(name=draw(words))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    for i, name in enumerate(names):
        states = draw(st.lists(words, min_size=1, max_size=3, unique=True))
        parents = names[:i] if draw(st.booleans()) else []
        shape = (*(len(bn.states(p)) for p in parents), len(states))
        bn.add(name, states=states, parents=parents, p=rng.dirichlet(np.ones(shape[-1]), size=shape[:-1]))
        bn.node_properties[name] = draw(st.dictionaries(words.map(str.strip).filter(bool), words, max_size=2))
    bn.properties = draw(st.dictionaries(words.map(str.strip).filter(bool), words, max_size=2))
    return bn


@given(networks())
@settings(max_examples=150, deadline=None)
def test_any_names_states_and_properties_survive_a_round_trip(bn):
    twin = read_bif(write_bif(bn))
    assert twin.variables == bn.variables
    assert not bn.compare(twin, atol=0.0)
    assert all(twin.parents(n) == bn.parents(n) for n in bn.variables)
    assert twin.name == bn.name
    assert twin.properties == bn.properties
    assert twin.node_properties == {n: p for n, p in bn.node_properties.items() if p}


@needs_data
@pytest.mark.parametrize("path", NETWORKS, ids=lambda p: p.name.split(".")[0])
def test_the_networks_of_the_repository_load_and_survive_a_round_trip(path):
    bn = mk.load(path)
    bn.validate()
    if path.stat().st_size < 100_000:
        assert not bn.compare(read_bif(write_bif(bn)), atol=0.0)


@needs_data
@pytest.mark.parametrize("name", ["asia", "insurance", "water", "munin1"])
def test_tables_agree_with_pyagrum(name, tmp_path):
    gum = pytest.importorskip("pyagrum")
    path = tmp_path / f"{name}.bif"
    path.write_bytes(gzip.decompress((DATA / f"{name}.bif.gz").read_bytes()))
    theirs, ours = gum.loadBN(str(path)), mk.load(path)
    for variable in ours.variables:
        cpt = theirs.cpt(variable)
        order = [*ours.parents(variable), variable]
        # the axes of pyAgrum's array are the names in reverse
        turned = np.transpose(cpt.toarray(), [list(cpt.names)[::-1].index(n) for n in order])
        assert np.allclose(turned, ours[variable].values, atol=1e-6)


def test_written_files_are_read_by_pyagrum(tmp_path):
    gum = pytest.importorskip("pyagrum")
    ours = mk.BayesianNetwork("a->c{lo|mid|hi}<-b->d", tables="random", seed=4, name="demo")
    mk.save(ours, tmp_path / "m.bif")
    theirs = gum.loadBN(str(tmp_path / "m.bif"))
    for variable in ours.variables:
        cpt = theirs.cpt(variable)
        order = [*ours.parents(variable), variable]
        turned = np.transpose(cpt.toarray(), [list(cpt.names)[::-1].index(n) for n in order])
        assert np.allclose(turned, ours[variable].values, atol=1e-7)


# -- damage --------------------------------------------------------------------------------------------------------


def test_truncated_files_are_refused():
    text = DEMO + write_bif(mk.BayesianNetwork("x->y{a|b|c}<-z", tables="random", seed=0)).partition("}\n")[2]
    read_bif(text)
    empty = text[: text.index("\nvariable")]  # a network without variables is a network
    refused = [must_hold(read_bif, cut) for cut in truncations(text.rstrip(), 400) if cut.rstrip() != empty]
    assert all(refused)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_give_a_model_or_a_parse_error(seed):
    damaged = [*flips(DEMO + small(LISTED).partition("}\n")[2], 400, seed), *shuffled_tokens(DEMO, 400, seed)]
    refused = [must_hold(read_bif, text) for text in damaged]
    assert sum(refused) > len(refused) // 3


@given(st.text(max_size=300))
@settings(deadline=None)
def test_random_text_is_refused(text):
    must_hold(read_bif, text)
    must_hold(read_bif, f"network x {{ }} variable {text}")
    must_hold(read_bif, f"network x {{ {text}")


NONSENSE = [
    'abc {}();,|"/*\n\t0.5 ',
    *('"', '"\\', '" ', "/*", "// ", "property ", "{", "(", ";", "\\", "é\n"),
    *("variable ", "variable a {", "0.5, ", "((a) 0.5;"),
]
DECLARED = "variable a { type discrete [ 2 ] { x, y }; } probability ( a "
PREFIXES = [
    "",
    "network x { ",
    "variable a { type discrete [ 2 ] { ",
    f"{DECLARED} ) {{ table ",
    f"{DECLARED} | ",
]


@pytest.mark.slow
@pytest.mark.parametrize("alphabet", NONSENSE)
def test_megabytes_of_nonsense_are_refused_in_time_and_space(alphabet):
    for prefix in PREFIXES:
        text = prefix + (
            alphabet * (1_000_000 // len(alphabet))
            if len(alphabet) < 16
            else nonsense(5_000_000, 1, alphabet)
        )
        assert must_hold(read_bif, text)
    with peak_memory() as peak:
        must_hold(read_bif, text, seconds=30)
    assert peak() < 20 * len(text)


@pytest.mark.slow
@pytest.mark.parametrize("alphabet", [NONSENSE[0], "0.5, ", "a ", "variable a {"])
def test_a_hundred_megabytes_of_nonsense_are_refused_in_time_and_space(alphabet):
    for prefix in PREFIXES:
        text = prefix + (
            alphabet * (100_000_000 // len(alphabet)) if len(alphabet) < 16 else nonsense(10**8, 1, alphabet)
        )
        assert must_hold(read_bif, text, seconds=60)


def test_a_huge_number_of_variables_is_linear():
    blocks = [
        f"variable v{i} {{ type discrete [ 1 ] {{ x }}; }} probability ( v{i} ) {{ table 1; }}"
        for i in range(20_000)
    ]
    assert not must_hold(read_bif, "\n".join(blocks), seconds=20)


def test_warnings_are_not_left_behind_by_a_failed_read():
    body = LISTED.replace("(a0, b0) 0.1,", "(a0, b0) 0.101,").replace("(a1, b2) 0.6,", "(a1, b2) 0.9,")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ParseError):
            read_bif(small(body))


@needs_data
def test_alarm_answers_whether_the_tube_is_kinked():
    bn = mk.load(DATA / "alarm.bif.gz")
    assert (len(bn), len(bn.edges), bn.count_parameters()) == (37, 46, 509)
    given = {"PRESS": "HIGH"}
    prior, posterior = bn.query("KINKEDTUBE")["TRUE"], bn.query("KINKEDTUBE", given=given)["TRUE"]
    assert prior == pytest.approx(0.04)
    # by the rule of Bayes from two likelihoods, which eliminate the other variables in another order
    seen = [bn.query("PRESS", given={"KINKEDTUBE": s})["HIGH"] for s in ("TRUE", "FALSE")]
    assert posterior == pytest.approx(0.04 * seen[0] / (0.04 * seen[0] + 0.96 * seen[1]), rel=1e-9)
