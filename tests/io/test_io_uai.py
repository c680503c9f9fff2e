import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from file_fuzz import flips, must_hold, nonsense, peak_memory, shuffled_tokens, truncations
from markovia.errors import InvalidArgument, ParseError, UnsupportedModel
from markovia.io.uai import read_uai, write_uai
from markovia.io.uai_results import (
    read_evid,
    read_map,
    read_mar,
    read_pr,
    write_evid,
    write_map,
    write_mar,
    write_pr,
)
from model_strategies import bayesian_networks, markov_networks
from places import BENCHMARKS

DATA = BENCHMARKS / "uai"
MODELS = sorted(DATA.glob("*/*.uai.gz"))
needs_data = pytest.mark.skipif(not MODELS, reason="the benchmark models are not here")

MARKOV = """MARKOV
3
2 2 3
2
2 0 1
2 1 2

4
 4.000 2.400
 1.000 0.000

6
 2.2500 3.2500 3.7500
 0.0000 0.0000 10.0000
"""
BAYES = """BAYES
3
2 2 3
3
1 0
2 0 1
2 1 2

2
 0.436 0.564
4
 0.128 0.872
 0.920 0.080
6
 0.210 0.333 0.457
 0.811 0.000 0.189
"""


def test_a_markov_file_becomes_a_markov_network_with_integer_states():
    mn = read_uai(MARKOV)
    assert isinstance(mn, mk.MarkovNetwork)
    assert mn.variables == ["x0", "x1", "x2"]
    assert mn.states("x2") == [0, 1, 2]
    assert [f.names for f in mn.factors] == [("x0", "x1"), ("x1", "x2")]
    assert mn.factors[1].values.tolist() == [[2.25, 3.25, 3.75], [0.0, 0.0, 10.0]]


def test_the_last_variable_of_a_bayes_scope_is_the_child():
    bn = read_uai(BAYES)
    assert isinstance(bn, mk.BayesianNetwork)
    assert bn.edges == [("x0", "x1"), ("x1", "x2")]
    assert bn["x2"].row(x1=1).tolist() == [0.811, 0.0, 0.189]


def test_line_breaks_do_not_matter():
    assert read_uai(" ".join(MARKOV.split())).allclose(read_uai("\n".join(MARKOV.split())), atol=0.0)


@given(markov_networks())
@settings(max_examples=40, deadline=None)
def test_a_markov_network_survives_a_round_trip_exactly(mn):
    names = {n: f"x{i}" for i, n in enumerate(mn.variables)}
    twin = read_uai(write_uai(mn))
    assert twin.variables == list(names.values())
    assert [f.names for f in twin.factors] == [tuple(names[n] for n in f.names) for f in mn.factors]
    assert all(np.array_equal(f.values, g.values) for f, g in zip(mn.factors, twin.factors, strict=True))


@given(bayesian_networks())
@settings(max_examples=40, deadline=None)
def test_a_bayesian_network_survives_a_round_trip_exactly(bn):
    twin = read_uai(write_uai(bn))
    assert isinstance(twin, mk.BayesianNetwork)
    for i, name in enumerate(bn.variables):
        assert np.array_equal(twin[f"x{i}"].values, bn[name].values)
        assert twin.parents(f"x{i}") == [f"x{bn.variables.index(p)}" for p in bn.parents(name)]


def test_a_factor_graph_is_written_as_markov_and_a_constant_factor_survives():
    fg = mk.FactorGraph({"a": 2}, [mk.Factor.scalar(3.0), mk.Factor(["a"], [1, 2])])
    twin = read_uai(write_uai(fg))
    assert twin.log_partition() == pytest.approx(math.log(9.0))


def test_a_structure_without_tables_is_refused():
    with pytest.raises(UnsupportedModel, match="no table"):
        write_uai(mk.BayesianNetwork("a->b"))


@pytest.mark.parametrize(
    ("text", "line", "column", "wanted"),
    [
        ("", 1, 1, "'MARKOV'"),
        ("NETWORK 1", 1, 1, "'MARKOV'"),
        ("MARKOV", 1, 7, "number of variables"),
        ("MARKOV\n-1", 2, 1, "number of variables"),
        ("MARKOV\n2\n2", 3, 2, "2 numbers of states, but the file ends after 1 of them"),
        ("BAYES\n100\n2 2 2", 3, 6, "100 numbers of states, but the file ends after 3 of them"),
        ("BAYES\n1\n2\n100\n1 0", 5, 4, "100 scopes, but the file ends after 1 of them"),
        ("MARKOV\n1\xa02", 2, 1, r"'1\xa02'"),
        ("MARKOV\n1\n2\n1 # functions\n1 0\n2 3 5", 4, 3, "comment"),
        ("MARKOV\n1\n0\n0", 3, 1, "number of states"),
        ("MARKOV\n1\n2.5\n0", 3, 1, "2.5"),
        ("MARKOV\n1\n9999999999\n0", 3, 1, "1,048,576"),
        ("MARKOV\n1\n2\n1\n2 0 0\n4 1 1 1 1", 5, 3, "each variable once"),
        ("MARKOV\n1\n2\n1\n1 1\n2 1 1", 5, 3, "from 0 to 0"),
        ("MARKOV\n1\n2\n1\n65 1\n2 1 1", 5, 1, "size of a scope"),
        ("MARKOV\n1\n2\n1\n1 0\n3 1 1 1", 6, 1, "2 entries"),
        ("MARKOV\n1\n2\n1\n1 0\n2 1 one", 6, 5, "'one'"),
        ("MARKOV\n1\n2\n1\n1 0\n2 1 -1", 6, 5, "not negative"),
        ("MARKOV\n1\n2\n1\n1 0\n2 1 1e999", 6, 5, "finite"),
        ("MARKOV\n1\n2\n1\n1 0\n2 1", 6, 4, "2 entries"),
        ("MARKOV\n1\n2\n1\n1 0\n2 1 1 7", 6, 7, "end of the file"),
        ("BAYES\n1\n2\n1\n1 0\n2 0.5 0.4", 6, 3, "sums to 1"),
        ("BAYES\n2\n2 2\n2\n1 0\n1 0\n2 0.5 0.5\n2 0.5 0.5", 6, 1, "ends with a child"),
        ("BAYES\n1\n2\n1\n0\n2 0.5 0.5", 5, 1, "ends with a child"),
        ("BAYES\n2\n2 2\n1\n1 0\n2 0.5 0.5", 6, 1, "one function for each"),
        ("BAYES\n2\n1 1\n2\n2 0 1\n2 1 0\n1 1\n1 1", 1, 1, "acyclic"),
    ],
)
def test_errors_say_where_and_what(text, line, column, wanted):
    with pytest.raises(ParseError) as caught:
        read_uai(text, "m.uai")
    assert wanted in str(caught.value)
    assert (caught.value.file, caught.value.line, caught.value.column) == ("m.uai", line, column)


def test_rounded_rows_of_a_bayes_file_are_rescaled_with_one_warning():
    with pytest.warns(UserWarning, match="1 probability row was") as caught:
        bn = read_uai(BAYES.replace("0.436", "0.437"))
    assert len(caught) == 1
    assert bn["x0"].values.sum() == pytest.approx(1.0, abs=1e-15)


# -- pyAgrum --------------------------------------------------------------------------------------------------------


def agrum_file(tmp_path, structure):
    gum = pytest.importorskip("pyagrum")
    gum.initRandom(7)
    theirs = gum.fastBN(structure)
    gum.saveBN(theirs, str(tmp_path / "theirs.uai"))
    return gum, theirs, (tmp_path / "theirs.uai").read_text()


@pytest.mark.parametrize(
    "structure", ["a[2]->c[2]<-b[3]", "a[2]->d[3]<-b[3]; c[4]->d; d->e[2]<-a; f[2]", "a[3]"]
)
def test_files_by_pyagrum_are_read_with_their_first_parent_fastest(tmp_path, structure):
    gum, theirs, _ = agrum_file(tmp_path, structure)
    ours = mk.load(tmp_path / "theirs.uai")
    names = {n: f"x{theirs.idFromName(n)}" for n in theirs.names()}
    for name in theirs.names():
        for observed in sorted(theirs.names() - {name}):
            engine = gum.LazyPropagation(theirs)
            engine.setEvidence({observed: 1})
            expected = engine.posterior(name).toarray()
            found = ours.query(names[name], given={names[observed]: 1}).values
            np.testing.assert_allclose(found, expected, atol=2e-5)
        parents = [names[n] for n in theirs.cpt(name).names[1:]]
        assert ours.parents(names[name]) == parents
        np.testing.assert_allclose(
            ours[names[name]].values,
            theirs.cpt(name).toarray().transpose(*reversed(range(len(parents))), len(parents)),
            atol=2e-6,
        )


def test_what_pyagrum_wrote_survives_our_own_dialect(tmp_path):
    _, _, text = agrum_file(tmp_path, "a[2]->c[2]<-b[3]")
    ours = read_uai(text)
    assert read_uai(write_uai(ours)).allclose(ours, atol=0.0)
    assert read_uai(text.replace("\n", "\r\n")).allclose(ours, atol=0.0)


def test_comments_that_are_not_by_pyagrum_are_refused_where_they_stand(tmp_path):
    _, _, text = agrum_file(tmp_path, "a[2]->c[2]<-b[3]")
    for damaged, line in ((text.replace("   # c", " # c"), 5), (text + "# done", text.count("\n") + 1)):
        with pytest.raises(ParseError, match="found a comment") as caught:
            read_uai(damaged)
        assert caught.value.line == line


def test_errors_in_files_by_pyagrum_point_into_the_file(tmp_path):
    _, _, text = agrum_file(tmp_path, "a[2]->b[2]")
    lines = text.split("\n")
    lines[-4] = "  0.5 0.7 "
    with pytest.raises(ParseError, match=r"sum to 1\.2") as caught:
        read_uai("\n".join(lines))
    assert (caught.value.line, caught.value.column) == (len(lines) - 3, 3)


def test_markov_networks_by_pyagrum_are_refused(tmp_path):
    gum = pytest.importorskip("pyagrum")
    gum.saveMRF(gum.fastMRF("a[2]--b[3]--c[2]"), str(tmp_path / "m.uai"))
    with pytest.raises(ParseError, match=r":2:\d+: expected a number, found a comment"):
        mk.load(tmp_path / "m.uai")


# -- evidence and answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [{}]),
        ("0", [{}]),
        ("0\n", [{}]),
        ("1\n0", [{}]),
        ("2 0 1 5 0", [{"x0": 1, "x5": 0}]),
        ("2\n0 1\n5 0\n", [{"x0": 1, "x5": 0}]),
        ("1\n2 0 1 5 0", [{"x0": 1, "x5": 0}]),
        ("2\n1 0 1\n2 3 0 4 1", [{"x0": 1}, {"x3": 0, "x4": 1}]),
    ],
)
def test_every_layout_of_evidence_is_read(text, expected):
    assert read_evid(text) == expected
    assert read_evid(write_evid(expected[0])) == expected[:1]
    assert read_evid(write_evid(expected * 3)) == expected * 3


@pytest.mark.parametrize(
    "text",
    ["1", "2 0 1", "1 0 1 2", "1 0 -1", "1 0 0.5", "2 0 1 0 1", "x", "1 a 1", "99999999999", "1e300 1"],
)
def test_malformed_evidence_is_refused(text):
    with pytest.raises(ParseError):
        read_evid(text)


def test_answers_survive_a_round_trip():
    marginals = [np.array([0.1, 0.9]), np.array([1 / 3, 1 / 3, 1 / 3])]
    assert all(np.array_equal(a, b) for a, b in zip(read_mar(write_mar(marginals)), marginals, strict=True))
    assert read_map(write_map([0, 2, 1])) == [0, 2, 1]
    assert read_pr(write_pr(-12.5)).log == pytest.approx(-12.5, abs=1e-12)
    assert read_pr("PR\n-inf") == (-math.inf, -math.inf)


def test_posteriors_can_be_written_as_marginals():
    bn = read_uai(BAYES)
    found = read_mar(write_mar(bn.query(n) for n in bn.variables))
    assert found[0].tolist() == pytest.approx([0.436, 0.564])


def test_a_number_of_evidence_sets_before_the_answer_is_tolerated():
    assert [p.tolist() for p in read_mar("MAR\n1\n1 2 0.5 0.5")] == [[0.5, 0.5]]
    assert read_map("MAP\n1\n3 0 1 1") == [0, 1, 1]
    assert read_pr("PR\n1\n2.0").log10 == 2.0
    assert [p.tolist() for p in read_mar("MAR\n2\n1 2 0.5 0.5\n1 2 0.25 0.75")] == [[0.5, 0.5]]
    assert read_map("MAP\n2\n2 0 1\n2 1 1") == [0, 1]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_mar, "MAR\n1 2 0.5"), (read_mar, "MAR"), (read_mar, "PR\n1"), (read_mar, "MAR\n1 2 0.5 0.5 7"),
        (read_map, "MAP\n2 0"), (read_map, "MAP\n"), (read_map, "MAP\n1 0.5"), (read_map, "MAP\n1 0 0 0"),
        (read_pr, "PR\n"), (read_pr, "PR\n1 2 3"), (read_pr, "PR\nlog"), (read_pr, "PR 1e999"),
    ],
)  # fmt: skip
def test_malformed_answers_are_refused(read, text):
    with pytest.raises(ParseError):
        read(text)


def test_evidence_by_other_names_is_refused():
    with pytest.raises(InvalidArgument, match="x0"):
        write_evid({"rain": 1})


# -- the competition -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_data
def test_all_models_of_the_competition_load_with_their_evidence_and_answers():
    for path in MODELS:
        model = mk.load(path)
        stem = str(path).removesuffix(".gz")
        (evidence,) = read_evid(Path(f"{stem}.evid").read_text(), stem)
        assert all(value in model.states(name) for name, value in evidence.items())
        if Path(f"{stem}.MAR").exists():
            marginals = read_mar(Path(f"{stem}.MAR").read_text(), stem)
            assert [len(p) for p in marginals] == [len(model.states(n)) for n in model.variables]
        if Path(f"{stem}.MAP").exists():
            states = read_map(Path(f"{stem}.MAP").read_text(), stem)
            assert all(s in model.states(n) for n, s in zip(model.variables, states, strict=True))


@needs_data
@pytest.mark.parametrize("name", ["Pedigree_11", "Pedigree_13", "Segmentation_11", "Grids_11", "CSP_13"])
def test_partition_functions_agree_with_the_published_ones(name):
    model = mk.load(DATA / "MAR" / f"{name}.uai.gz")
    (evidence,) = read_evid((DATA / "MAR" / f"{name}.uai.evid").read_text())
    published = read_pr((DATA / "PR" / f"{name}.uai.PR").read_text())
    # six digits are published
    assert model.log_partition(given=evidence) / math.log(10) == pytest.approx(
        published.log10, abs=0, rel=3.5e-6
    )


@needs_data
def test_marginals_agree_with_the_published_ones():
    model = mk.load(DATA / "MAR" / "Pedigree_11.uai.gz")
    (evidence,) = read_evid((DATA / "MAR" / "Pedigree_11.uai.evid").read_text())
    published = read_mar((DATA / "MAR" / "Pedigree_11.uai.MAR").read_text())
    free = [i for i, n in enumerate(model.variables) if n not in evidence][:12]
    for i in free:
        assert model.query(f"x{i}", given=evidence).values == pytest.approx(published[i], abs=1e-6)


# -- damage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [MARKOV, BAYES])
def test_truncated_files_are_refused(text):
    text = text.rstrip()[:-1]  # cutting digits off the last number leaves a number
    assert all(must_hold(read_uai, cut) for cut in truncations(text.rstrip("0123456789. "), 200))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("text", [MARKOV, BAYES])
def test_damaged_files_give_a_model_or_a_parse_error(text, seed):
    refused = [
        must_hold(read_uai, damaged)
        for damaged in [*flips(text, 300, seed), *shuffled_tokens(text, 300, seed)]
    ]
    assert sum(refused) > len(refused) // 3


@given(st.text(max_size=100))
@settings(deadline=None)
def test_random_text_is_refused(text):
    for head in ("", "MARKOV ", "BAYES 2 2 2 2 1 0 1 1 "):
        must_hold(read_uai, head + text)
    for read in (read_evid, read_mar, read_pr, read_map):
        must_hold(read, text)


@given(st.lists(st.integers(-1, 6), max_size=40))
@settings(max_examples=300, deadline=None)
def test_random_numbers_give_a_model_or_a_parse_error(numbers):
    text = " ".join(map(str, numbers))
    must_hold(read_uai, f"MARKOV {text}")
    must_hold(read_uai, f"BAYES {text}")
    for read in (read_evid, read_mar, read_map):
        must_hold(read, text)


NONSENSE = ["1 ", "0 ", "9", "2 ", "x", "1048576 ", "\n", "-", "1e9 "]


@pytest.mark.slow
def test_megabytes_of_nonsense_are_refused_in_time_and_space():
    for head in ("", "MARKOV ", "MARKOV 1000000000 ", "BAYES 1 2 1 1 0 "):
        for piece in NONSENSE:
            text = head + piece * (1_000_000 // len(piece))
            assert must_hold(read_uai, text)
        text = head + nonsense(5_000_000, 2, "0123456789 \n.e-")
        assert must_hold(read_uai, text)
    with peak_memory() as peak:
        must_hold(read_uai, text, seconds=60)
        must_hold(read_uai, "MARKOV 4 1048576 1048576 1048576 1048576 1 4 0 1 2 3 4 1 1 1 1", seconds=60)
    assert peak() < 200e6


@pytest.mark.slow
def test_a_hundred_megabytes_of_nonsense_are_refused_in_time():
    for head in ("", "MARKOV ", "BAYES 1 2 1 1 0 "):
        for piece in ("1 ", "2 ", "x", "9", "0.125 "):
            assert must_hold(read_uai, head + piece * (100_000_000 // len(piece)), seconds=60)


def test_gzip_files_of_the_competition_need_no_unpacking(tmp_path):
    (tmp_path / "m.uai.gz").write_bytes(gzip.compress(MARKOV.encode()))
    assert mk.load(tmp_path / "m.uai.gz").allclose(read_uai(MARKOV), atol=0.0)
