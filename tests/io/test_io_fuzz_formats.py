"""Every text format: exact round trips of random networks, and malformed text ends in ParseError only."""

import json
import random
import re
import time
import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.errors import ParseError, UnsupportedModel
from markovia.io.dagitty import read_dagitty, write_dagitty
from markovia.io.dne import read_dne, write_dne
from markovia.io.dsc import read_dsc, write_dsc
from markovia.io.lavaan import read_lavaan, write_lavaan
from markovia.io.net import read_net, write_net
from markovia.io.xdsl import read_xdsl, write_xdsl
from markovia.io.xmlbif import read_xmlbif, write_xmlbif

NETWORK_FORMATS = {
    "net": (read_net, write_net),
    "dne": (read_dne, write_dne),
    "dsc": (read_dsc, write_dsc),
    "xmlbif": (read_xmlbif, write_xmlbif),
    "xdsl": (read_xdsl, write_xdsl),
}
GRAPH_FORMATS = {"dagitty": (read_dagitty, write_dagitty), "lavaan": (read_lavaan, write_lavaan)}
ALL_FORMATS = {**NETWORK_FORMATS, **GRAPH_FORMATS}

NASTY = ["a b", "x;y", 'say "hi"', "<tag>", "&amp;", "it's", "%", "//", "{", "}", "(", "100%", "µ", "日本", "-1",
         " ", "\t", "a\nb", "\\", "\\n", "node", "potential", "state", "x=y", "a|b", "[", "_", "\x00", "0", "1.5",
         "true", "markovia_name", '"', "]]>", "A" * 70]  # fmt: skip
names = st.one_of(st.sampled_from(NASTY), st.text(min_size=1, max_size=6), st.sampled_from("abcdefgh"))
states = st.one_of(
    st.integers(1, 4),
    st.lists(names, min_size=1, max_size=4, unique=True),
    st.lists(st.one_of(names, st.integers(-3, 12)), min_size=1, max_size=4, unique=True),
    st.just([False, True]),
    st.just(["", "1", 1, True]).map(lambda items: items[:3]),
)
properties = st.dictionaries(
    st.one_of(st.sampled_from(["label", "title", "name", "position", "center", "states", "kind", "comment",
                               "genie.name", "genie.interior.color", "smile.target", "HR_Desc", "type"]), names),
    st.one_of(names, st.sampled_from(["(10 20)", "(1, 2)", "", "10", "TRUE", "a = b"]), st.text(max_size=5)),
    max_size=4,
)  # fmt: skip


@st.composite
def networks(draw: st.DrawFn) -> mk.BayesianNetwork:
    ids = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    bn = mk.BayesianNetwork(name=draw(st.one_of(st.just(""), names)))
    for i, name in enumerate(ids):
        parents = draw(st.lists(st.sampled_from(ids[:i]), unique=True, max_size=3)) if i else []
        bn.add(name, states=draw(states), parents=parents)
        if draw(st.integers(0, 9)):
            shape = (*(len(bn.variable(p)) for p in parents), len(bn.variable(name)))
            table = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
            table[rng.random(shape[:-1]) < 0.2] = np.eye(shape[-1])[0]
            bn.replace(name, table)
        if draw(st.booleans()):
            bn.node_properties[name] = draw(properties)
    bn.node_properties = {n: p for n, p in bn.node_properties.items() if p}
    bn.properties = draw(properties)
    return bn


def assert_same(one: mk.BayesianNetwork, two: mk.BayesianNetwork) -> None:
    assert one.variables == two.variables
    assert one.name == two.name
    for name in one.variables:
        assert one.variable(name) == two.variable(name)
        assert one.parents(name) == two.parents(name)
        assert one.has_table(name) == two.has_table(name)
        if one.has_table(name):
            np.testing.assert_array_equal(one[name].values, two[name].values)
    assert one.properties == two.properties
    assert one.node_properties == two.node_properties


@pytest.mark.slow
@pytest.mark.parametrize("form", NETWORK_FORMATS)
@settings(max_examples=30, deadline=None)
@given(bn=networks())
def test_a_round_trip_keeps_names_states_tables_and_properties_exactly(
    form: str, bn: mk.BayesianNetwork
) -> None:
    read, write = NETWORK_FORMATS[form]
    text = write(bn)
    assert_same(read(text), bn)
    assert write(read(text)) == text


def sample_network() -> mk.BayesianNetwork:
    bn = mk.BayesianNetwork(
        "smoke{no|yes}->lung{no|yes}->xray{clear|shadow|dark}; smoke->bronc{no|yes}; lung->dysp{0|1}<-bronc",
        tables="random", seed=4, name="chest clinic",
    )  # fmt: skip
    bn.rename({"xray": "chest x-ray"})
    bn.properties = {"author": "nobody"}
    bn.node_properties = {"smoke": {"comment": 'a "quoted" remark'}}
    return bn


def test_the_same_model_through_every_format_gives_the_same_posterior() -> None:
    bn = sample_network()
    evidence = {"chest x-ray": "dark", "dysp": "1"}
    expected = bn.query(["lung", "bronc"], given=evidence)
    for read, write in NETWORK_FORMATS.values():
        for again in (read(write(bn)), read(write(read(write(bn))))):
            assert again.query(["lung", "bronc"], given=evidence).values.tolist() == expected.values.tolist()


def test_a_model_passes_through_all_formats_in_a_row_unchanged() -> None:
    bn = again = sample_network()
    for read, write in NETWORK_FORMATS.values():
        again = read(write(again))
    assert_same(again, bn)


def test_load_and_save_find_these_formats_by_suffix(tmp_path) -> None:
    bn = sample_network()
    for form in NETWORK_FORMATS:
        for suffix in (form, f"{form}.gz"):
            mk.save(bn, tmp_path / f"clinic.{suffix}")
            assert_same(mk.load(tmp_path / f"clinic.{suffix}"), bn)
    for form in GRAPH_FORMATS:
        with pytest.warns(UserWarning, match="only the graph"):
            mk.save(bn, tmp_path / f"clinic.{form}")
        assert mk.load(tmp_path / f"clinic.{form}") == bn.graph
    (tmp_path / "bad.net").write_text("net {")
    with pytest.raises(ParseError, match=r"bad\.net:1:6: expected"):
        mk.load(tmp_path / "bad.net")


@pytest.mark.parametrize("states", [40, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", NETWORK_FORMATS)
def test_a_table_with_many_entries_loads_in_seconds(form: str, states: int) -> None:
    read, write = NETWORK_FORMATS[form]
    structure = {"a": [], "b": ["a"], "c": ["a", "b"]}
    bn = mk.BayesianNetwork(structure, states=dict.fromkeys(structure, states), tables="random", seed=0)
    text = write(bn)
    start = time.process_time()
    again = read(text)
    assert time.process_time() - start < 20.0
    np.testing.assert_array_equal(again["c"].values, bn["c"].values)


@pytest.mark.parametrize("form", NETWORK_FORMATS)
def test_only_bayesian_networks_can_be_written(form: str) -> None:
    with pytest.raises(UnsupportedModel, match="Bayesian network"):
        NETWORK_FORMATS[form][1](mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [3, 5])]))


@pytest.mark.parametrize("form", NETWORK_FORMATS)
def test_a_noisy_or_is_written_as_its_table_and_refused_when_that_is_too_large(form: str) -> None:
    read, write = NETWORK_FORMATS[form]
    bn = mk.BayesianNetwork()
    causes = [f"c{i}" for i in range(40)]
    for name in causes:
        bn.add(name, p=[0.9, 0.1])
    bn.add("few", mk.local.NoisyOr({"c0": 0.5, "c1": 0.25}, leak=0.1), states=["no", "yes"])
    assert read(write(bn))["few"].row(c0=1, c1=0).tolist() == pytest.approx([0.45, 0.55])
    bn.add("many", mk.local.NoisyOr(dict.fromkeys(causes, 0.5)), states=["no", "yes"])
    with pytest.raises(UnsupportedModel, match="full tables"):
        write(bn)


# -- rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", NETWORK_FORMATS)
def test_rounded_rows_are_rescaled_with_one_warning_and_wrong_rows_are_refused_in_place(form: str) -> None:
    read, write = NETWORK_FORMATS[form]
    bn = mk.BayesianNetwork()
    bn.add("a", states=["no", "yes"], p=[0.5, 0.5])
    bn.add("b", states=["no", "yes"], parents="a", p=[[0.125, 0.875], [0.375, 0.625]])
    text = write(bn)
    with pytest.warns(UserWarning, match="2 probability rows") as caught:
        rounded = read(text.replace("0.125", "0.126").replace("0.375", "0.376"))
    assert len(caught) == 1
    np.testing.assert_allclose(rounded["b"].values.sum(axis=1), 1.0, atol=1e-15)
    with pytest.raises(ParseError, match=r"sum to 1\.525") as error:
        read(text.replace("0.625", "1.15"))
    line = next(i for i, x in enumerate(text.splitlines(), 1) if "0.375" in x)
    assert error.value.line == line
    for wrong in ("-0.625", "1e999", "nan", "0.6x", "0,6"):
        with pytest.raises(ParseError):
            read(text.replace("0.625", wrong))


# -- malformed text -------------------------------------------------------------------------------------------


def assert_parses_or_complains(read: Callable[..., object], text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        complaint = None
        try:
            read(text, "fuzzed.txt")
        except ParseError as error:
            complaint = error
    if complaint is not None:
        assert complaint.file == "fuzzed.txt"
        assert 1 <= complaint.line <= text.count("\n") + 1
        assert complaint.column >= 1


def sample_texts() -> dict[str, str]:
    bn = sample_network()
    texts = {form: write(bn) for form, (_, write) in NETWORK_FORMATS.items()}
    texts["dagitty"] = (
        'dag { bb="0,0,1,1" {a b} -> c -> d ; u [latent, pos="1,2"] c <-> d [beta=.3] "x y" -- a @-> b }'
    )
    texts["lavaan"] = (
        'f =~ 1*x1 + start(0.5)*x2 +\n  c(a,b)*x3 # note\n"x4" ~ 1\n'.replace('"x4"', "x4")
        + "y + z ~ 0.5*f ; x1 ~~ x2\nind := a*b\n"
    )
    return texts


@pytest.mark.parametrize("form", ALL_FORMATS)
def test_every_truncation_parses_or_complains(form: str) -> None:
    text = sample_texts()[form]
    step = max(1, len(text) // 200)
    for end in range(0, len(text), step):
        assert_parses_or_complains(ALL_FORMATS[form][0], text[:end])


@pytest.mark.parametrize("form", ALL_FORMATS)
def test_damaged_characters_parse_or_complain(form: str) -> None:
    text, rng = sample_texts()[form], random.Random(1)
    alphabet = '"\\(){}[]<>;:=|,%/*-+.eE019 \n\t\x00\x1f\ufeff\ud800é日&#!@~'
    for _ in range(200):
        damaged = list(text)
        for _ in range(rng.choice([1, 1, 2, 5])):
            at = rng.randrange(len(damaged))
            action = rng.randrange(3)
            if action == 0:
                damaged[at] = rng.choice(alphabet)
            elif action == 1:
                del damaged[at]
            else:
                damaged.insert(at, rng.choice(alphabet))
        assert_parses_or_complains(ALL_FORMATS[form][0], "".join(damaged))


@pytest.mark.parametrize("form", ALL_FORMATS)
def test_deleted_repeated_and_shuffled_tokens_parse_or_complain(form: str) -> None:
    tokens, rng = re.findall(r"\w+|\s+|\W", sample_texts()[form]), random.Random(2)
    for _ in range(200):
        damaged = list(tokens)
        i, j = sorted(rng.randrange(len(damaged)) for _ in range(2))
        action = rng.randrange(4)
        if action == 0:
            del damaged[i : i + rng.choice([1, 2, 10])]
        elif action == 1:
            damaged[i:i] = damaged[j : j + rng.choice([1, 3, 20])]
        elif action == 2:
            damaged[i], damaged[j] = damaged[j], damaged[i]
        else:
            rng.shuffle(damaged)
        assert_parses_or_complains(ALL_FORMATS[form][0], "".join(damaged))


@pytest.mark.parametrize("form", ALL_FORMATS)
@settings(max_examples=50, deadline=None)
@given(text=st.one_of(st.text(max_size=80), st.binary(max_size=80).map(lambda b: b.decode("latin-1"))))
def test_random_text_parses_or_complains(form: str, text: str) -> None:
    assert_parses_or_complains(ALL_FORMATS[form][0], text)


@pytest.mark.parametrize("form", NETWORK_FORMATS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_damaged_marks_parse_or_complain(form: str, data: st.DataObject) -> None:
    bn = mk.BayesianNetwork(name="n n")
    bn.add("a b", states=["x y", 1, True][:2], p=[0.5, 0.5])
    bn.node_properties["a b"] = {"k k\n": "v"}
    text = NETWORK_FORMATS[form][1](bn)
    marks = [m.start() for m in re.finditer("markovia_", text)]
    at = data.draw(st.sampled_from(marks)) + data.draw(st.integers(0, 40))
    junk = data.draw(
        st.sampled_from(["[", "1e999", "{}", "null", "[[]]", "9" * 5000, "int", "bool", "-", "[" * 9000])
    )
    assert_parses_or_complains(NETWORK_FORMATS[form][0], text[:at] + junk + text[at + 1 :])


DEEP = 20_000
TORTURE = {
    "net": [
        "net {} node x { states = " + "(" * DEEP,
        "net {} node x { position = " + "(" * DEEP + ")" * DEEP + "; }",
        'net {} node x { states = ("a"); } potential (x) { data = ' + "(" * DEEP + "1" + ")" * DEEP + "; }",
        'net {} node x { states = ("a"); } potential (x) { data = ' + "(" * DEEP + "1;}",
        "net {}" + "/*" * DEEP,
        "net {} node x { label = " + '"\\' * DEEP,
        "class c " + "{" * DEEP,
    ],
    "dne": [
        "bnet x { visual V " + "{" * DEEP,
        "bnet x { node a { numstates = 999999999; }; };",
        "bnet x { node a { numstates = " + "9" * 10_000 + "; }; };",
        "bnet x { node a { states = (s, t); functable = " + "(" * DEEP + "; }; };",
        "bnet x { node a { numstates = 60000; functable = (#0); }; node b { numstates = 60000; parents = (a);"
        " functable = (" + "#1," * 60000 + "); }; };",
    ],
    "dsc": [
        'belief network "x" node a { type : discrete [ 999999999 ]; }',
        'belief network "x" node a { type : discrete [ 1e9 ] = { "a" }; }',
        'belief network "x" ' + "node a { " + "(" * DEEP,
        'belief network "x"'
        + "".join(f" node n{i} {{ type : discrete [ 1000 ]; }}" for i in range(4))
        + " probability ( n0 | n1, n2, n3 ) { default : 1; }",
        'belief network "x" node a { type : discrete [ 2 ]; } probability ( a | a ) {' + "(0):" * DEEP,
    ],
    "xmlbif": [
        "<BIF>" + "<NETWORK>" * DEEP,
        '<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><BIF>&b;</BIF>',
        '<!DOCTYPE BIF [<!ENTITY x SYSTEM "file:///etc/passwd">]><BIF><NETWORK><NAME>&x;</NAME></NETWORK></BIF>',
        '<!DOCTYPE BIF SYSTEM "http://localhost/x.dtd"><BIF><NETWORK><NAME>&x;</NAME></NETWORK></BIF>',
        '<!DOCTYPE BIF [<!ENTITY % p "x"> %p;]><BIF/>',
        "<BIF " + " ".join(f'a{i}=""' for i in range(4_000)) + "/>",
        "<BIF><NETWORK><VARIABLE><NAME>a</NAME>" + "<OUTCOME/>" * 1000 + "</VARIABLE></NETWORK></BIF>",
    ],
    "xdsl": [
        "<smile>" + "<nodes>" * DEEP,
        '<!DOCTYPE s [<!ENTITY a "1 1 1 1 1"><!ENTITY b "&a;&a;&a;">]><smile id="&b;"/>',
        "<smile><nodes><cpt id='x'><state id='a'/><parents>" + "y " * DEEP + "</parents></cpt></nodes></smile>",
        "<smile><extensions><genie>" + "<submodel>" * 90 + "</submodel>" * 90 + "</genie></extensions></smile>",
    ],
    "dagitty": [
        "dag " + "{" * DEEP,
        "dag {" + "{" * DEEP + "a" + "}" * DEEP + "}",
        "dag {" + "a -> " * DEEP,
        "dag {" + " ".join(f"n{i}" for i in range(9)) + "x [" * DEEP,
        "dag { {" + " ".join(f"a{i}" for i in range(4_000)) + "} -> {"
        + " ".join(f"b{i}" for i in range(4_000)) + "} }",
    ],
    "lavaan": [
        "y ~ " + "(" * DEEP,
        "y ~ x" + " + x" * DEEP,
        "+".join(f"y{i}" for i in range(4_000)) + "~" + "+".join(f"x{i}" for i in range(4_000)),
        "y ~ " + "1*" * DEEP + "x",
    ],
}  # fmt: skip


@pytest.mark.parametrize("form", ALL_FORMATS)
def test_deep_nesting_absurd_sizes_and_entities_end_quickly(form: str) -> None:
    for text in TORTURE[form]:
        start = time.process_time()
        assert_parses_or_complains(ALL_FORMATS[form][0], text)
        assert time.process_time() - start < 10.0


@pytest.mark.parametrize("size", [50_000, pytest.param(20_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", ALL_FORMATS)
def test_long_nonsense_ends_quickly(form: str, size: int) -> None:
    head = sample_texts()[form][:20]
    for filler in ("x", "(", "{", '"', " ", "\n", "0.1 ", "<a>", "a b;", "/*", "%", "~"):
        for text in (filler * (size // len(filler)), head + filler * (size // len(filler))):
            assert_parses_or_complains(ALL_FORMATS[form][0], text)


@pytest.mark.slow
@pytest.mark.parametrize("form", ALL_FORMATS)
def test_a_hundred_megabytes_of_nonsense_are_refused_in_time_and_space(form: str) -> None:
    head = sample_texts()[form][:20]
    read = ALL_FORMATS[form][0]
    for filler in ("x", '"', "a b;", "<a>", "/*"):
        text = head + filler * (100_000_000 // len(filler))
        start = time.process_time()
        tracemalloc.start()
        try:
            assert_parses_or_complains(read, text)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert time.process_time() - start < 120.0
        assert peak < 1_500_000_000


def test_what_is_no_text_is_refused() -> None:
    for wrong in (3, None, [1]):
        with pytest.raises(mk.errors.InvalidArgument, match="text or bytes"):
            mk.io.loads(wrong, "json")  # type: ignore[arg-type]


HUGE = ["x" * 100_000, "9" * 100_000, '"' + "y" * 100_000 + '"', "\x01" * 100_000]


@pytest.mark.slow
@pytest.mark.parametrize("form", sorted(set(mk.io.formats()) - {"pomdp"}))
def test_no_complaint_repeats_a_huge_token(form: str) -> None:
    graph = mk.graphs.MixedGraph(["a --> b", "b <-> c"])
    text = mk.io.dumps(graph if form in GRAPH_FORMATS else sample_network(), form)
    rng = random.Random(3)
    complaints: list[str] = []
    places = [m.span() for m in re.finditer(r"\w+|[^\w\s]", text)]
    damaged = [
        text[:a] + huge + text[b:] for a, b in rng.sample(places, min(25, len(places))) for huge in HUGE
    ]
    words = sorted(set(re.findall(r"[A-Za-z]\w*", text)))
    for word in rng.sample(words, min(12, len(words))):
        long = re.sub(rf"\b{word}\b", word + "x" * 100_000, text)
        damaged += [long, long.replace("0.", "0.9"), long.replace("0.", ",0.")]
    for case in damaged:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                mk.io.loads(case, form)
            except ParseError as error:
                complaints.append(str(error))
    assert len(complaints) > 20
    assert max(map(len, complaints)) < 500


LOUD = "L" * 100_000


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("dne", f"bnet x {{ node a {{ kind = {LOUD}; }}; }};"),
        ("dne", f"bnet x {{ node a {{ states = (s, t); markovia_states = {LOUD}; }}; }};"),
        ("net", f'net {{}} node a {{ states = ("s" "t"); markovia_states = "[\\"{LOUD}\\"]"; }}'),
        ("xmlbif", "<BIF><NETWORK><VARIABLE><NAME>a</NAME><OUTCOME>t</OUTCOME><PROPERTY>markovia_states = bool"
         f"</PROPERTY><OUTCOME>{LOUD}</OUTCOME></VARIABLE></NETWORK></BIF>"),
        ("net", f'net {{}} node a {{ states = ("{LOUD}" "{LOUD}"); }}'),
        ("net", f'net {{}} node {LOUD} {{ states = ("s"); }} node b {{ states = ("s"); }}'
         f"potential ({LOUD} | b) {{ data = (1); }} potential (b | {LOUD}) {{ data = (1); }}"),
        ("dagitty", f"dag {{ {LOUD} -> b -> {LOUD} }}"),
        ("dagitty", "dag { " + " -> ".join(f"n{i}" for i in range(5_000)) + " -> n0 }"),
        ("lavaan", f"{LOUD} ~ b ; b ~ {LOUD}"),
        ("json", '{"format": "markovia", "version": 1, "kind": "dag", "nodes": ["NAME", "b"], "edges": '
         '[["NAME", "b"], ["b", "NAME"]]}'.replace("NAME", LOUD)),
        ("bif", f"network x {{ }} variable {LOUD} {{ type discrete [ 2 ] {{ s, t }}; }} variable b {{ type discrete"
         f" [ 1 ] {{ u }}; }} probability ( b ) {{ table 1; }} probability ( b | {LOUD} ) {{ (s) 1; }}"),
        ("bif", f"network x {{ }} variable {LOUD} {{ type discrete [ 2 ] {{ {LOUD}, t }}; }} variable b {{ type"
         f" discrete [ 1 ] {{ u }}; }} probability ( b | {LOUD} ) {{ (t) 1; }}"),
    ],
)  # fmt: skip
def test_complaints_about_long_names_are_short(form: str, text: str) -> None:
    with pytest.raises(ParseError) as error:
        mk.io.loads(text, form)
    assert len(str(error.value)) < 500


CONTROL = ["a\0b", "a\x01b", "a\x85b", "a\u2028b", "a\r\nb", "a\ufdd0b", "\x1f"]


@pytest.mark.parametrize("place", ["name", "state", "network", "key", "value"])
@pytest.mark.parametrize("form", sorted(set(mk.io.formats()) - {"uai", "pomdp"}))
def test_control_characters_come_back_or_are_refused_on_writing(form: str, place: str) -> None:
    for text in CONTROL:
        bn = mk.BayesianNetwork(name=text if place == "network" else "n")
        name = text if place == "name" else "a"
        bn.add(name, states=[text if place == "state" else "s", "t"], p=[0.5, 0.5])
        if place in ("key", "value"):
            bn.node_properties[name] = {text: "v"} if place == "key" else {"k": text}
        subject = bn.graph if form in GRAPH_FORMATS else bn
        try:
            written = mk.io.dumps(subject, form)
        except UnsupportedModel as error:
            assert form in ("bif", "dagitty")
            assert ".json" in str(error)  # noqa: PT017
            assert "\0" in text or "\ufdd0" in text
            continue
        again = mk.io.loads(written, form)
        if form in GRAPH_FORMATS:
            assert again.nodes == [name]
        else:
            assert_same(again, bn)


def test_marks_are_json_or_plain_text() -> None:
    bn = mk.BayesianNetwork()
    bn.add("a b", states=["x", 1], p=[0.5, 0.5])
    text = write_xmlbif(bn)
    marks = dict(re.findall(r"<PROPERTY>(markovia_\w+) = (.*?)</PROPERTY>", text))
    assert json.loads(marks["markovia_states"]) == ["x", 1]
    assert "markovia_name" not in marks
    assert "markovia_name" in write_net(bn)
