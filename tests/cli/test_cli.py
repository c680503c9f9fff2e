"""The command line: right numbers, one sentence for bad input, JSON for scripts, and good manners in pipes."""

import csv
import gzip
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import markovia as mk
from command_line import answer, complaint, run
from markovia.cli.app import app
from markovia.cli.evidence import read_given, read_names
from markovia.cli.terminal import loading
from markovia.cli.terminal.completion import whole_words
from markovia.graphs.separation.open_paths import open_paths
from markovia.inference.densities.draws.density_engine import DensityEngine

SMOKER = ["--given", "smoke=yes"]


def process(*words: str, **options: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "markovia", *words], capture_output=True, text=True, timeout=600, **options
    )


@pytest.fixture
def asia_file(tmp_path: Path) -> Path:
    path = tmp_path / "asia.bif"
    mk.save(mk.examples.asia(), path)
    return path


@pytest.fixture
def odd_file(tmp_path: Path) -> Path:
    """A network whose names and states hold the signs that the command line itself uses."""
    bn = mk.BayesianNetwork(name="odd")
    bn.add("a=b", states=["x=1", "x,2"], p=[0.25, 0.75])
    bn.add("a", states=["b=x=1", "[red]"], p=[0.5, 0.5])
    bn.add("c,d", states=[1, 2], parents=["a=b"], p=[[0.1, 0.9], [0.6, 0.4]])
    path = tmp_path / "odd.json"
    mk.save(bn, path)
    return path


# -- query ----------------------------------------------------------------------------------------------------------


def test_query_prints_the_posterior_and_how_it_was_found():
    result = run("query", "asia", "lung", *SMOKER)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "P(lung | smoke=yes)"
    assert [line.split() for line in lines[1:3]] == [["yes", "0.1"], ["no", "0.9"]]
    assert lines[3].startswith(("variable-elimination, exact", "junction-tree, exact"))
    assert lines[3].endswith("P(evidence) = 0.5")


def test_query_json_has_the_library_s_numbers():
    told = answer("query", "asia", "lung", "bronc", "--given", "dysp=yes", "--given", "xray=no")
    evidence = {"dysp": "yes", "xray": "no"}
    bn = mk.examples.asia()
    for name in ("lung", "bronc"):
        assert told["posteriors"][name] == pytest.approx(bn.query(name, given=evidence).to_dict(), abs=1e-12)
    assert told["given"] == evidence
    assert told["info"]["exact"] is True
    assert told["info"]["log_evidence"] == pytest.approx(bn.log_evidence(given=evidence))


def test_query_joint_is_one_table_over_all_targets():
    told = answer("query", "asia", "lung", "bronc", "--joint", "--given", "smoke=yes")
    cells = {(c["states"]["lung"], c["states"]["bronc"]): c["p"] for c in told["joint"]["table"]}
    assert cells[("yes", "yes")] == pytest.approx(0.06)
    assert cells[("no", "no")] == pytest.approx(0.36)
    text = run("query", "asia", "lung", "bronc", "--joint", *SMOKER).stdout
    assert ["yes", "yes", "0.06"] in [line.split() for line in text.splitlines()]


def test_query_joint_with_many_rows_shows_the_most_probable_ones():
    names = mk.examples.asia().variables
    result = run("query", "asia", *names, "--joint")
    assert "64 most probable of 256 rows" in result.stdout
    best = mk.examples.asia().joint()
    first = result.stdout.splitlines()[2].split()
    assert float(first[-1]) == pytest.approx(best.values.max(), rel=1e-5)


def test_query_all_asks_for_every_variable_without_evidence():
    told = answer("query", "asia", "--all", *SMOKER)
    assert list(told["posteriors"]) == [n for n in mk.examples.asia().variables if n != "smoke"]
    assert told["posteriors"]["bronc"]["yes"] == pytest.approx(0.6)


def test_query_takes_soft_evidence_and_ruled_out_states():
    told = answer("query", "asia", "lung", "--soft", "xray=0.9,0.2", "--not", "smoke=no")
    exact = mk.examples.asia().query("lung", given={"xray": [0.9, 0.2], "smoke": mk.Not("no")})
    assert told["posteriors"]["lung"]["yes"] == pytest.approx(exact["yes"])
    assert told["given"] == {"xray": [0.9, 0.2], "smoke": {"not": ["no"]}}


def test_query_do_cuts_a_variable_off_from_its_causes():
    assert answer("query", "asia", "lung", "--do", "bronc=yes")["posteriors"]["lung"]["yes"] == pytest.approx(
        0.055
    )
    seen = answer("query", "asia", "lung", "--given", "bronc=yes")["posteriors"]["lung"]["yes"]
    assert seen == pytest.approx(0.07)
    assert "P(lung | do(bronc=yes))" in run("query", "asia", "lung", "--do", "bronc=yes").stdout


def test_query_uses_the_engine_it_is_told():
    told = answer("query", "asia", "lung", *SMOKER, "--engine", "enumeration")
    assert told["info"]["engine"] == "enumeration"
    assert told["posteriors"]["lung"]["yes"] == pytest.approx(0.1)


def test_query_matches_integer_states_by_their_text():
    told = answer("query", "monty-hall", "car", "--given", "choice=1,opened=3")
    assert told["posteriors"]["car"] == pytest.approx({"1": 1 / 3, "2": 2 / 3, "3": 0})


def test_query_works_on_undirected_models():
    told = answer("query", "misconception", "A", "--given", "C=0")
    assert told["posteriors"]["A"] == pytest.approx(
        {str(k): v for k, v in mk.examples.misconception().query("A", given={"C": 0}).to_dict().items()}
    )


def test_names_and_states_may_hold_the_signs_of_the_command_line(odd_file: Path):
    told = answer("query", str(odd_file), "c,d", "--given", "a=b=x=1")
    # `a=b=x=1` reads as variable `a`, state `b=x=1`: the first split that makes sense
    assert told["given"] == {"a": "b=x=1"}
    told = answer("query", str(odd_file), "c,d", "--given", "a=b=x,2")
    assert told["given"] == {"a=b": "x,2"}
    assert told["posteriors"]["c,d"]["1"] == pytest.approx(0.6)
    text = run("query", str(odd_file), "a").stdout
    assert ["[red]", "0.5"] in [line.split() for line in text.splitlines()]


# -- evidence as text -------------------------------------------------------------------------------------------------


def test_evidence_may_be_separated_by_commas_with_spaces():
    assert read_given(mk.examples.asia(), ["smoke=yes, xray = no"]) == {"smoke": "yes", "xray": "no"}


def test_ruling_out_two_states_of_one_variable_adds_up():
    evidence = read_given(mk.examples.student(), (), (), ["grade=A", "grade=C"])
    assert evidence == {"grade": mk.Not("A", "C")}


def test_names_may_be_separated_by_commas():
    assert read_names(mk.examples.asia(), ["lung, bronc", "dysp"]) == ["lung", "bronc", "dysp"]


# -- map --------------------------------------------------------------------------------------------------------------


def test_map_finds_the_most_probable_explanation():
    told = answer("map", "asia", "--given", "dysp=yes", "-m", "5")
    joint = mk.examples.asia().joint().reduce({"dysp": "yes"})
    best = sorted(joint.values.reshape(-1) / joint.total, reverse=True)[:5]
    assert [e["p"] for e in told["explanations"]] == pytest.approx(best)
    states = told["explanations"][0]["states"]
    assert states == joint.argmax()
    assert "dysp" not in states


def test_map_with_targets_sums_out_the_rest():
    told = answer("map", "asia", "--given", "xray=yes,dysp=yes", "--targets", "lung,bronc")
    joint = mk.examples.asia().query(["lung", "bronc"], given={"xray": "yes", "dysp": "yes"})
    assert told["explanations"][0]["states"] == joint.argmax()
    assert told["explanations"][0]["p"] == pytest.approx(joint.values.max())


def test_map_prints_the_best_and_what_the_next_ones_change():
    text = run("map", "asia", "--given", "dysp=yes", "-m", "3").stdout
    rows = [line.split() for line in text.splitlines()]
    assert ["bronc", "yes"] in rows
    assert any(row[:1] == ["2"] and "=" in row[-1] for row in rows)
    assert "proved best" in text


def test_map_after_an_intervention_uses_the_cut_network():
    told = answer("map", "asia", "--do", "smoke=no", "--targets", "smoke")
    assert told["explanations"][0]["states"] == {"smoke": "no"}
    assert told["explanations"][0]["p"] == pytest.approx(1.0)


# -- sample -----------------------------------------------------------------------------------------------------------


def test_sample_writes_csv_that_the_seed_reproduces():
    one, two, three = (run("sample", "asia", "-n", "50", "--seed", s).stdout for s in ("7", "7", "8"))
    assert one == two != three
    rows = list(csv.DictReader(io.StringIO(one)))
    assert len(rows) == 50
    assert list(rows[0]) == mk.examples.asia().variables
    frame = mk.examples.asia().sample(50, seed=7)
    assert [row["lung"] for row in rows] == frame["lung"].tolist()


def test_sample_follows_the_posterior():
    rows = answer("sample", "asia", "-n", "4000", "--seed", "1", *SMOKER)["rows"]
    assert {row["smoke"] for row in rows} == {"yes"}
    share = sum(row["bronc"] == "yes" for row in rows) / len(rows)
    assert share == pytest.approx(0.6, abs=4 * (0.6 * 0.4 / 4000) ** 0.5)


def test_sample_in_blocks_has_one_header_and_every_row(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("markovia.cli.sample.BLOCK", 7)
    lines = run("sample", "asia", "-n", "20", "--seed", "0").stdout.splitlines()
    assert len(lines) == 21
    assert sum(line.startswith("asia,") for line in lines) == 1
    assert len(set(lines[1:8]) | set(lines[8:15])) > 1


def test_sample_writes_to_a_file(tmp_path: Path):
    path = tmp_path / "rows.csv"
    told = answer("sample", "asia", "-n", "12", "--seed", "3", "-o", str(path))
    assert told["output"] == str(path)
    assert path.read_text() == run("sample", "asia", "-n", "12", "--seed", "3").stdout


def test_a_failed_sample_leaves_no_file(tmp_path: Path):
    path = tmp_path / "rows.csv"
    complaint("sample", "asia", "-g", "lung=yes", "-g", "either=no", "-o", str(path))
    assert not path.exists()


def test_sample_of_no_rows_is_just_the_header():
    assert run("sample", "asia", "-n", "0").stdout == ",".join(mk.examples.asia().variables) + "\n"


# -- independent ------------------------------------------------------------------------------------------------------


def test_independent_shows_the_open_trail_and_why_it_is_open():
    text = run("independent", "asia", "lung", "bronc", "--given", "smoke", "--given", "dysp").stdout
    assert text.splitlines() == [
        "lung is not independent of bronc given smoke, dysp",
        "  lung -> either -> dysp <- bronc  (open)",
        "      either is a chain and not observed: open",
        "      dysp is a collider and observed: open",
    ]


def test_independent_shows_how_every_trail_is_blocked():
    told = answer("independent", "asia", "lung", "bronc", "--given", "smoke")
    assert told["independent"] is True
    assert [t["trail"] for t in told["trails"]] == [
        "lung <- smoke -> bronc",
        "lung -> either -> dysp <- bronc",
    ]
    assert not any(t["open"] for t in told["trails"])
    assert told["more_trails"] is False
    text = run("independent", "asia", "lung", "bronc", "--given", "smoke").stdout
    assert "every trail between them is blocked" in text
    assert "smoke is a fork and observed: blocked" in text


def test_independent_takes_sets():
    told = answer("independent", "asia", "asia,smoke", "xray,dysp", "--given", "either,bronc")
    assert told["independent"] is True
    assert (
        answer("independent", "asia", "asia,smoke", "xray,dysp", "--given", "either")["independent"] is False
    )


def test_independent_cuts_a_long_list_of_trails():
    told = answer("independent", "asia", "smoke", "dysp", "--limit", "1")
    assert len(told["trails"]) == 1
    assert told["more_trails"] is True
    assert told["trails"][0]["trail"] == "smoke -> bronc -> dysp"


def test_independent_speaks_of_paths_in_undirected_models():
    told = answer("independent", "misconception", "A", "C", "--given", "B,D")
    assert told["independent"] is True
    assert told["separated_by"] == ["B", "D"]
    told = answer("independent", "misconception", "A", "C", "--given", "B")
    assert told["independent"] is False
    assert told["paths"] == [{"path": "A - D - C", "nodes": ["A", "D", "C"], "open": True}]
    assert told["more_paths"] is False
    assert "A - D - C" in run("independent", "misconception", "A", "C", "--given", "B").stdout


def test_independent_lists_every_open_path_of_an_undirected_model():
    text = run("independent", "misconception", "A", "C").stdout
    assert text.splitlines()[1:] == [
        "  A - B - C  (open: nothing on it is observed)",
        "  A - D - C  (open: nothing on it is observed)",
    ]
    told = answer("independent", "misconception", "A,B", "C", "--limit", "3")
    assert [p["path"] for p in told["paths"]] == ["B - C", "A - B - C", "A - D - C"]
    assert told["more_paths"] is True
    assert "and more" in run("independent", "misconception", "A", "C", "--limit", "1").stdout


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 0.9))
def test_open_paths_are_all_simple_paths_shortest_first(seed: int, density: float):
    drawn = nx.gnp_random_graph(7, density, seed=seed)
    graph = mk.graphs.UndirectedGraph(
        [(f"v{a}", f"v{b}") for a, b in drawn.edges], nodes=[f"v{n}" for n in drawn]
    )
    listed = list(open_paths(graph, "v0", "v6", given=["v3"]))
    drawn.remove_node(3)
    expected = [[f"v{n}" for n in path] for path in nx.all_simple_paths(drawn, 0, 6)]
    assert sorted(listed) == sorted(expected)
    assert list(map(len, listed)) == sorted(map(len, expected))


def test_the_first_open_paths_of_a_dense_graph_come_at_once():
    nodes = [f"v{k}" for k in range(40)]
    graph = mk.graphs.UndirectedGraph([(a, b) for k, a in enumerate(nodes) for b in nodes[:k]])
    graph.add_edge("v0", "start")
    graph.add_edge("start", "goal")
    # only one path leads to the goal, and the dense part behind the start is a dead end
    assert list(open_paths(graph, "start", "goal")) == [["start", "goal"]]
    first = list(islice(open_paths(graph, "v1", "v2"), 40))
    assert list(map(len, first)) == [2] + [3] * 38 + [4]


def test_unconnected_variables_are_independent_without_a_trail(odd_file: Path):
    text = run("independent", str(odd_file), "a", "a=b").stdout
    assert text.splitlines() == ["a is independent of a=b", "  no trail joins them"]


# -- info, convert, lists ---------------------------------------------------------------------------------------------


def test_info_counts_what_the_model_is_made_of():
    told = answer("info", "asia", "--variables")
    expected = {"kind": "BayesianNetwork", "variables": 8, "edges": 8, "parameters": 18, "joint_states": 256}
    assert expected.items() <= told.items()
    assert told["treewidth_bound"] == 2
    assert (told["roots"], told["leaves"]) == (["asia", "smoke"], ["xray", "dysp"])
    assert told["components"] == 1
    assert told["largest_family"]["entries"] == 8
    assert {"name": "lung", "states": ["yes", "no"], "parents": ["smoke"]} in told["variables_listed"]


def test_info_text_lists_the_variables_on_request():
    rows = [line.split() for line in run("info", "asia", "--variables").stdout.splitlines()]
    assert ["edges", "8"] in rows
    assert ["either", "yes,", "no", "lung,", "tub"] in rows
    assert ["either", "yes,", "no", "lung,", "tub"] not in [
        line.split() for line in run("info", "asia").stdout.splitlines()
    ]


def test_info_describes_undirected_models():
    told = answer("info", "misconception")
    assert (told["kind"], told["edges"], told["factors"], told["treewidth_bound"]) == (
        "MarkovNetwork",
        4,
        4,
        2,
    )
    assert "largest factor" in run("info", "misconception").stdout


@pytest.mark.parametrize("suffix", [".xmlbif", ".json", ".net", ".xdsl", ".dne", ".dsc", ".json.gz"])
def test_convert_keeps_the_posterior(asia_file: Path, suffix: str):
    target = asia_file.with_name("copy" + suffix)
    told = answer("convert", str(asia_file), str(target))
    assert told["variables"] == 8
    assert told["bytes"] == target.stat().st_size
    assert answer("query", str(target), "lung", *SMOKER)["posteriors"]["lung"]["yes"] == pytest.approx(0.1)


def test_convert_obeys_named_formats_over_suffixes(asia_file: Path):
    odd = asia_file.rename(asia_file.with_name("asia.data"))
    target = asia_file.with_name("out.txt")
    assert run("convert", str(odd), str(target), "--from", "bif", "--to", "json").exit_code == 0
    assert json.loads(target.read_text())
    assert answer("info", str(odd), "--format", "bif")["variables"] == 8


def test_a_file_with_only_a_graph_answers_questions_about_the_graph(tmp_path: Path):
    path = tmp_path / "mediation.dagitty"
    path.write_text("dag { x -> m -> y\n x <- u -> y }")
    told = answer("independent", str(path), "x", "y", "--given", "m,u")
    assert told["independent"] is True
    assert answer("independent", str(path), "x", "y", "--given", "m")["trails"][0]["trail"] == "x <- u -> y"
    assert set(answer("info", str(path))["without_table"]) == {"x", "m", "y", "u"}
    for words in (["query", str(path), "x"], ["map", str(path)], ["sample", str(path)]):
        assert "this file holds only a structure, without tables" in complaint(*words)


def test_a_graph_with_undirected_edges_can_only_be_converted(tmp_path: Path):
    path = tmp_path / "confounded.dagitty"
    path.write_text("dag { x -> y\n x <-> y }")
    assert "only `markovia convert`" in complaint("info", str(path))
    target = tmp_path / "confounded.lavaan"
    assert answer("convert", str(path), str(target))["variables"] == 2
    assert target.read_text()


def test_every_bundled_model_is_listed_and_loads():
    told = answer("examples")["examples"]
    assert {"asia", "monty-hall", "misconception"} <= {row["name"] for row in told}
    for row in told:
        assert loading.open_model(row["name"]).variables
    assert "monty-hall" in run("examples").stdout


ENGINES = {row["name"]: row for row in answer("engines")["engines"]}


def test_every_engine_is_listed_with_the_questions_it_answers():
    assert list(ENGINES) == mk.engines.engine_names()
    assert ENGINES["junction-tree"]["answers"] == ["query", "map", "sample", "log_partition"]
    assert ENGINES["gibbs"]["answers"] == ["query", "map", "sample"]
    assert ENGINES["trw-s"]["answers"] == ["map"]
    assert ENGINES["auto"]["time_limit"]
    assert not ENGINES["junction-tree"]["time_limit"]
    lines = {line.split()[0]: line for line in run("engines").stdout.splitlines() if line}
    assert "with a bound" in lines["trw-s"]
    assert " all  " in lines["variable-elimination"]
    assert " exact  " in lines["variable-elimination"]
    assert "query, map, sample  " in lines["gibbs"]
    assert "  approximate  " in lines["gibbs"]
    assert "exact if it fits" in lines["auto"]
    assert ENGINES["nuts"]["kinds"] == ["distribution", "gaussian", "table"]
    assert ENGINES["loopy-bp"]["kinds"] == ["table"]
    assert "  distribution, gaussian, table  " in lines["nuts"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_answers_a_query_or_says_that_it_does_not(name):
    words = ["query", "asia", "lung", *SMOKER, "--engine", name]
    if name == "forward":
        assert "without evidence" in complaint(*words)
        words = ["query", "asia", "smoke", "--engine", name]
        assert answer(*words)["posteriors"]["smoke"]["yes"] == pytest.approx(0.5, abs=0.05)
    elif "query" not in ENGINES[name]["answers"]:
        assert complaint(*words).endswith(
            f"engine {name!r} does not give marginals; use --engine loopy-bp or 'auto'"
        )
    elif isinstance(mk.engines.get_engine(name), DensityEngine):
        assert f"engine {name!r} is for models with numbers" in complaint(*words)
    else:
        told = answer(*words)
        off = 1e-9 if ENGINES[name]["exact"] else 0.05
        assert told["posteriors"]["lung"]["yes"] == pytest.approx(0.1, abs=off)
        assert told["info"]["engine"] == name or name == "auto"


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_explains_or_says_that_it_does_not(name):
    words = ["map", "sprinkler", "--given", "wet=yes", "--engine", name]
    if "map" not in ENGINES[name]["answers"]:
        assert "does not give most probable states; use --engine max-product" in complaint(*words)
    elif isinstance(mk.engines.get_engine(name), DensityEngine):
        assert "use --engine max-product" in complaint(*words)
    elif name == "swendsen-wang":
        assert "use --engine gibbs" in complaint(*words)
    else:
        best, *_ = answer("map", "sprinkler", "--given", "wet=yes", "--engine", "enumeration")["explanations"]
        told = answer(*words)
        found, *_ = told["explanations"]
        assert found["normalised"]
        assert found["bound"] is None or found["bound"] >= best["log_prob"] - 1e-9
        assert found["log_prob"] <= best["log_prob"] + 1e-9
        assert found["log_prob"] == pytest.approx(best["log_prob"]) or not told["info"]["exact"]


@pytest.mark.slow
def test_map_says_what_is_known_of_the_value():
    climbed = run("map", "misconception", "--engine", "icm").stdout
    assert "log weight = " in climbed
    assert "without a bound" in climbed
    assert "p = " not in climbed
    cut = run("map", "misconception", "--engine", "trw-s").stdout
    assert "of the best in log" in cut  # a bound that is not met: the cycle is frustrated
    assert "proved best" in run("map", "misconception", "--engine", "dual-decomposition").stdout
    assert "p = " in run("map", "misconception").stdout


def test_query_and_map_take_a_time_limit():
    for words in (["query", "asia", "lung"], ["query", "asia", "lung", "tub", "--joint"], ["map", "asia"]):
        assert answer(*words, "--time-limit", "5")["info"]["exact"]
        assert "--time-limit is a positive number of seconds, not 0" in complaint(*words, "--time-limit", "0")
        assert "has no time limit" in complaint(*words, "--time-limit", "5", "--engine", "enumeration")
    told = answer("map", "asia", "--engine", "large-neighbourhood", "--time-limit", "0.2")
    assert told["info"]["engine"] == "large-neighbourhood"


def test_formats_are_listed_with_their_suffixes():
    told = {row["name"]: row for row in answer("formats")["formats"]}
    assert {"bif", "json", "uai"} <= set(told)
    assert ".bif" in told["bif"]["suffixes"]
    assert ".bif" in run("formats").stdout


def test_an_existing_file_wins_over_a_bundled_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asia_file: Path
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cancer").write_bytes(asia_file.read_bytes())
    assert answer("info", "cancer", "--format", "bif")["name"] == "asia"
    (tmp_path / "student").mkdir()
    assert answer("info", "student")["variables"] == 5


# -- demo -------------------------------------------------------------------------------------------------------------


def test_demo_tells_real_numbers_within_a_hundred_columns():
    result = run("demo")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert 55 <= len(lines) <= 85
    rows = [line.split() for line in lines]
    assert any(row[:2] == ["lung", "0.055"] for row in rows)
    assert any(row[:2] == ["P(lung=yes", "|"] and "0.07" in row for row in rows)
    assert "lung <- smoke -> bronc" in result.stdout
    assert result.stdout.count("identical to the original") == 2
    assert "impossible: lung='yes', either='no'" in " ".join(result.stdout.split())


def test_demo_json_agrees_with_the_library():
    told = answer("demo")
    bn = mk.examples.asia()
    evidence = {"xray": "yes", "dysp": "yes"}
    assert (told["model"], told["name"], told["facts"]["variables"]) == ("asia", "asia", 8)
    assert told["posteriors"]["after"]["lung"] == pytest.approx(bn.query("lung", given=evidence)["yes"])
    assert told["explanation"]["best"][0]["states"] == bn.map(given=evidence).to_dict()
    assert told["intervention"]["lung_doing_bronc"] == pytest.approx(0.055)
    assert [a["independent"] for a in told["independence"]] == [False, True, False]
    assert [f["difference"] for f in told["files"]] == [0, 0]


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["info", "nowhere.bif"], "there is no file 'nowhere.bif'"),
        (["info", "asai"], "did you mean 'asia'?"),
        (["query", "asia", "lnug"], "did you mean 'lung'?"),
        (["query", "asia", "lung", "--given", "smoke=Yes"], "did you mean 'yes'?"),
        (["query", "asia", "lung", "--given", "smok=yes"], "did you mean 'smoke'?"),
        (["query", "asia", "lung", "--given", "smoke"], "has no '='"),
        (["query", "asia", "lung", "--given", "smoke=yes,xray=maybe"], "unknown state 'maybe' for 'xray'"),
        (["query", "asia", "lung", "--given", "smoke=yes", "xray=yes"], "--given xray=yes"),
        (["query", "asia", "lung", "-g", "smoke=yes", "-g", "smoke=no"], "two pieces of evidence on 'smoke'"),
        (["query", "asia", "lung", "--soft", "xray=0.3"], "'xray' has 2 states"),
        (["query", "asia", "lung", "--soft", "xray=a,b"], "needs 2 numbers"),
        (["query", "asia", "lung", "--soft", "xray=-1,1"], "not negative"),
        (["query", "asia", "lung", "--not", "xray=yes,xray=no"], "rules out every state"),
        (["query", "asia", "lung", "--engine", "magic"], "unknown engine 'magic'"),
        (["query", "asia", "smoke", "-g", "lung=yes,either=no"], "probability zero"),
        (["query", "asia"], "--all"),
        (["query", "asia", "lung", "--all"], "leave out the targets"),
        (["query", "misconception", "A", "--do", "B=0"], "needs a Bayesian network"),
        (["query", "asia", "lung", "--do", "smoke=yes,smoke=no"], "twice"),
        (["query", "asia", "lung", "--frob"], "--frob"),
        (["frobnicate"], "frobnicate"),
        (["--frob"], "--frob"),
        (["query"], "MODEL"),
        (["map", "asia", "-m", "0"], "'-m'"),
        (["map", "asia", "-m", "five"], "'-m'"),
        (["sample", "asia", "-n", "-1"], "'-n'"),
        (["sample", "asia", "--seed", "-4"], "'--seed'"),
        (["sample", "asia", "-n", "3", "-o", "no/such/folder/rows.csv"], "no such file or directory"),
        (["independent", "asia", "lung", "lung"], "share 'lung'"),
        (["independent", "asia", "lung", "bronc", "-g", "lung"], "share 'lung'"),
        (["independent", "asia", "lung", "nobody"], "unknown variable 'nobody'"),
        (["convert", "asia", "out.nonsense"], "nonsense"),
        (["convert", "asia", "no/such/folder/out.bif"], "folder"),
        (["info", "asia", "--format", "nonsense"], "nonsense"),
    ],
)
def test_bad_input_gets_exit_code_2_and_one_sentence(
    words: list[str], hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert hint in complaint(*words)
    if words[0] not in ("frobnicate", "--frob"):
        complaint(*words, "--json")
    assert list(tmp_path.iterdir()) == []


def test_a_malformed_file_is_reported_with_its_position(asia_file: Path):
    text = asia_file.read_text().replace("probability", "improbability", 1)
    asia_file.write_text(text)
    line = complaint("query", str(asia_file), "lung")
    position = line.split(str(asia_file))[1].split(":")
    assert text.splitlines()[int(position[1]) - 1].startswith("improbability")


def test_a_classic_that_is_not_bundled_says_where_it_is():
    assert "download alarm.bif.gz from the Bayesian network repository" in complaint("info", "alarm")


def test_a_file_of_a_process_is_refused_with_the_way_out(tmp_path: Path):
    steps = mk.BayesianNetwork("x@-1->x", tables="uniform")
    path = tmp_path / "process.json"
    mk.DynamicBayesianNetwork(mk.BayesianNetwork("x", tables="uniform"), steps).save(path)
    assert "unroll(steps)" in complaint("query", str(path), "x")


def test_names_that_uai_loses_are_told(tmp_path: Path):
    result = run("convert", "asia", str(tmp_path / "asia.uai"))
    assert "UAI has no names: variables were written as x0, x1, ..." in result.stderr
    again = run("convert", str(tmp_path / "asia.uai"), str(tmp_path / "again.uai"))
    assert again.exit_code == 0
    assert again.stderr == ""


def test_a_directory_is_not_a_model(tmp_path: Path):
    assert "is a directory" in complaint("info", str(tmp_path))


def test_a_misspelt_file_suggests_its_neighbour(asia_file: Path):
    assert "asia.bif'?" in complaint("info", str(asia_file.with_name("assia.bif")))


def test_a_network_without_tables_says_so(tmp_path: Path):
    path = tmp_path / "bare.json"
    mk.save(mk.BayesianNetwork("a->b"), path)
    assert "this file holds only a structure, without tables" in complaint("query", str(path), "a")
    assert answer("info", str(path))["without_table"] == ["a", "b"]
    for suffix in (".bif", ".uai"):
        target = path.with_suffix(suffix)
        line = complaint("convert", str(path), str(target))
        assert "this file holds only a structure, without tables" in line
        assert "fill(" not in line
        assert not target.exists()


def test_a_network_with_some_tables_names_the_variables_without(tmp_path: Path):
    path = tmp_path / "half.json"
    bn = mk.BayesianNetwork("a->b")
    bn.replace("a", p=[0.5, 0.5])
    mk.save(bn, path)
    assert "1 of 2 variables have no table: 'b'" in complaint("query", str(path), "a")


def test_complaints_name_options_and_no_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    unknown = tmp_path / "model.biff"
    unknown.touch()
    for words, option in (
        (["info", str(unknown)], "--format"),
        (["convert", str(unknown), "out.bif"], "--from"),
        (["convert", "asia", str(unknown)], "--to"),
    ):
        line = complaint(*words)
        assert line.endswith(f"or say {option}")
        assert "format=" not in line
    monkeypatch.setattr("markovia.inference.exact.variable_elimination.default_budget", lambda: 1)
    monkeypatch.setattr("markovia.inference.exact.variable_elimination.SMALL", 0)
    line = complaint("query", "asia", "--all", "--engine", "variable-elimination")
    assert "ask for fewer variables" in line
    assert "max_bytes" not in line


def test_an_empty_word_is_not_called_a_directory():
    assert "empty" in complaint("info", "")


def test_a_model_without_variables_has_nothing_to_ask(tmp_path: Path):
    path = tmp_path / "empty.json"
    mk.save(mk.BayesianNetwork(), path)
    assert "the model has no variables" in run("query", str(path), "--all").stdout
    everything = [f"-g{n}=no" for n in mk.examples.asia().variables]
    assert "every variable has evidence" in run("query", "asia", "--all", *everything).stdout


def test_map_speaks_of_evidence_only_if_there_is_some():
    assert "given the evidence" not in run("map", "asia").stdout
    assert "given the evidence" in run("map", "asia", "--given", "dysp=yes").stdout


# -- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["info"],
        ["query", "--all"],
        ["map"],
        ["sample", "-n", "2"],
        ["independent", "a", "b"],
    ],
    ids=lambda words: words[0],
)
def test_every_document_has_the_word_and_the_name(words: list[str], tmp_path: Path):
    command, *rest = words
    for name in ("clinic", ""):
        path = tmp_path / "model.json"
        mk.save(mk.BayesianNetwork("a->b", tables="uniform", name=name), path)
        told = answer(command, str(path), *rest)
        assert (told["model"], told["name"]) == (str(path), name or None)
        target = str(tmp_path / "copy.json")
        told = answer("convert", str(path), target)
        assert (told["model"], told["name"], told["output"]) == (str(path), name or None, target)


def test_states_that_print_alike_stay_apart(tmp_path: Path):
    path = tmp_path / "mixed.json"
    bn = mk.BayesianNetwork()
    bn.add("mix", states=[1, "1", 2], p=[0.5, 0.25, 0.25])
    bn.add("plain", states=[1, 2], p=[0.5, 0.5])
    mk.save(bn, path)
    told = answer("query", str(path), "--all")["posteriors"]
    assert told["mix"] == [{"state": 1, "p": 0.5}, {"state": "1", "p": 0.25}, {"state": 2, "p": 0.25}]
    assert told["plain"] == {"1": 0.5, "2": 0.5}
    for option in ("--given", "--not", "--do"):
        assert "'1' could be 1 or '1' of 'mix'" in complaint("query", str(path), "plain", option, "mix=1")
    assert answer("query", str(path), "plain", "--given", "mix=2")["given"] == {"mix": 2}


# -- standard input and output ----------------------------------------------------------------------------------------


def test_a_dash_is_standard_input_and_output(asia_file: Path):
    written = run("convert", "asia", "-", "--to", "bif")
    assert written.exit_code == 0
    assert written.stdout_bytes == asia_file.read_bytes()
    for words in (["info", "-", "--format", "bif", "--json"], ["query", "-", "lung", "-f", "bif", "--json"]):
        told = json.loads(CliRunner().invoke(app, words, input=written.stdout_bytes).stdout)
        assert (told["model"], told["name"]) == ("-", "asia")
    through = CliRunner().invoke(
        app, ["convert", "-", "-", "--from", "bif", "--to", "json"], input=written.stdout_bytes
    )
    assert mk.io.loads(through.stdout, "json").allclose(mk.examples.asia())
    assert run("sample", "asia", "-n", "3", "-s", "1", "-o", "-").stdout == (
        run("sample", "asia", "-n", "3", "-s", "1").stdout
    )


@pytest.mark.parametrize("name", ["bif", "xmlbif", "net", "xdsl", "dne", "dsc", "json", "dagitty", "uai"])
def test_the_format_of_standard_input_is_seen_from_its_beginning(name: str):
    text = mk.io.dumps(mk.examples.asia(), name)
    told = json.loads(CliRunner().invoke(app, ["info", "-", "--json"], input=text).stdout)
    assert len(told["variables"]) == 8 if isinstance(told["variables"], list) else told["variables"] == 8


def test_standard_input_that_begins_like_no_format_gets_one_sentence():
    for text, hint in [("hello", "say it with --format"), (b"\x1f\x8b\x08", "gunzip")]:
        result = CliRunner().invoke(app, ["info", "-"], input=text)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
        assert hint in result.stderr
    malformed = CliRunner().invoke(app, ["info", "-", "--format", "bif"], input="net")
    assert "<stdin>:1:1" in malformed.stderr


def test_rows_may_come_through_standard_input(tmp_path: Path):
    rows = mk.examples.asia().sample(50, seed=1)
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    plain, packed = path.read_bytes(), gzip.compress(path.read_bytes())
    for words in (["score", "asia"], ["predict", "asia", "-t", "lung"], ["learn"]):
        by_name = run(*words[:2], str(path), *words[2:], "--json")
        told = json.loads(by_name.stdout)
        for data in (plain, packed):
            piped = CliRunner().invoke(app, [*words[:2], "-", *words[2:], "--json"], input=data)
            again = json.loads(piped.stdout)
            assert again.pop("data") == "-"
            assert {k: v for k, v in again.items() if k != "seconds"} == {
                k: v for k, v in told.items() if k not in ("data", "seconds")
            }


@pytest.mark.slow
def test_standard_output_is_utf8_whatever_the_terminal_speaks(tmp_path: Path):
    bn = mk.BayesianNetwork()
    bn.add("größe", states=["klein", "groß"], p=[0.5, 0.5])
    mk.save(bn, tmp_path / "size.json")
    done = subprocess.run(
        [sys.executable, "-m", "markovia", "convert", str(tmp_path / "size.json"), "-", "--to", "net"],
        capture_output=True,
        timeout=600,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert mk.io.loads(done.stdout, "net").states("größe") == ["klein", "groß"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["info", "-"], "standard input is empty"),
        (["convert", "-", "out.bif"], "standard input is empty"),
        (["score", "-", "-"], "not both"),
        (["score", "asia", "-"], "standard input is empty; data begin with a line of column names"),
        (["learn", "-"], "standard input is empty"),
        (["convert", "asia", "-"], "say the format with --to"),
        (["convert", "asia", "-", "--to", "bif", "--json"], "cannot both go to standard output"),
        (["sample", "asia", "-o", "-", "--json"], "cannot both go to standard output"),
        (["info", "-", "--format", "bif.gz"], "gunzip"),
        (["convert", "asia", "-", "--to", "bif.gz"], "gzip"),
        (["info", "-", "--format", "nonsense"], "unknown format 'nonsense'"),
    ],
)
def test_a_dash_that_cannot_work_gets_one_sentence(
    words: list[str], hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert hint in complaint(*words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "redirection"),
    [
        ("info asia", ">&-"),
        ("query asia lung --json", ">&- 2>&-"),
        ("sample asia -n 3", "<&- >&-"),
        ("convert asia - --to bif", ">&-"),
    ],
)
def test_a_closed_standard_output_is_no_error(words: str, redirection: str):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m markovia {words} {redirection}"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_closed_standard_input_gets_one_sentence():
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m markovia info - --format bif <&-"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 2
    assert done.stderr == "markovia: there is no standard input to read from\n"


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("markovia.cli.info.describe", lambda model: 1 / 0)
    result = run("info", "asia")
    assert result.exit_code == 1
    assert isinstance(result.exception, ZeroDivisionError)


def test_a_warning_is_one_line_on_stderr(monkeypatch: pytest.MonkeyPatch):
    import warnings

    def warn_and_open(word: str, format: str | None = None):  # noqa: A002
        warnings.warn("rows were normalised", UserWarning, stacklevel=1)
        return mk.examples.asia()

    monkeypatch.setattr("markovia.cli.info.open_model", warn_and_open)
    result = run("info", "asia", "--json")
    assert json.loads(result.stdout)["variables"] == 8
    assert result.stderr == "markovia: warning: rows were normalised\n"


# -- help and completion ----------------------------------------------------------------------------------------------


def test_every_command_has_help_with_examples():
    commands = [
        "info",
        "convert",
        "query",
        "map",
        "sample",
        "independent",
        "formats",
        "examples",
        "engines",
        "demo",
    ]
    overview = run("--help").stdout
    for command in commands:
        assert command in overview
        text = run(command, "--help").stdout
        assert "Examples:" in text
        assert f"markovia {command}" in text
        assert "--json" in text


def test_no_command_at_all_prints_the_help():
    result = run()
    assert result.exit_code == 0
    assert "Usage" in result.stdout


def test_version_is_the_package_s():
    assert run("--version").stdout == f"markovia {mk.__version__}\n"


def test_models_complete_to_bundled_names_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.bif").touch()
    (tmp_path / "more").mkdir()
    assert loading.complete_model("mo") == ["monty-hall", "more/"]
    assert loading.complete_model("mi") == ["misconception", "mine.bif"]
    assert loading.complete_model(f"{tmp_path}/mi") == [f"{tmp_path}/mine.bif"]


def test_the_shell_completes_assignments_of_the_model_on_the_line():
    environment = os.environ | {
        "_MARKOVIA_COMPLETE": "complete_bash",
        "COMP_WORDS": "markovia query asia lung --given smo",
        "COMP_CWORD": "5",
        "_TYPER_COMPLETE_ARGS": "markovia query asia lung --given smo",
    }
    done = process(env=environment)
    assert done.stdout.split() == ["smoke=yes", "smoke=no"]


@pytest.mark.slow
def test_bash_completes_the_state_behind_the_sign_where_it_splits_words(tmp_path: Path):
    shell = BashAtATerminal(tmp_path)
    try:
        assert shell.after_tab("markovia query asia lung --given smoke=y").endswith("--given smoke=yes ")
        assert shell.after_tab("markovia query asia lung --given=smoke=y").endswith("--given=smoke=yes ")
        listed = shell.after_tab("markovia query asia lung --given smoke=", tabs=2)
        assert {"no", "yes"} <= set(listed.split())
        assert "asia=yes" not in listed
        shell.enter("COMP_WORDBREAKS=${COMP_WORDBREAKS//=}")
        assert shell.after_tab("markovia query asia lung --given smoke=y").endswith("--given smoke=yes ")
    finally:
        shell.close()


@pytest.mark.parametrize(
    ("pieces", "current", "last", "before"),
    [
        (["m", "-g", "smoke", "="], 3, "smoke=", "smoke="),
        (["m", "-g", "smoke", "=", ""], 4, "", ""),
        (["m", "-g", "smoke", "=", "y", "lung"], 4, "smoke=y", "smoke="),
        (["m", "-g", "smoke", "=", "yes", "xr"], 5, "xr", ""),
        (["m", "-g", "a", ":", "b", "=", "c"], 6, "a:b=c", "a:b="),
        (["m", "-g", "a", "==", "b"], 4, "a==b", "a=="),
        (["m", "-g", "'smoke=y"], 2, "'smoke=y", ""),
        (["m", "-g"], 2, "", ""),
    ],
)
def test_pieces_of_a_word_are_put_together(pieces: list[str], current: int, last: str, before: str):
    words, kept = whole_words(pieces, current)
    assert (words[:2], words[-1], kept) == (["m", "-g"], last, before)


class BashAtATerminal:
    """A real bash with markovia's completion, on a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        program = folder / "markovia"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m markovia "$@"\n')
        program.chmod(0o755)
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.environ.update(
                PATH=f"{folder}:{os.environ['PATH']}", PS1="PROMPT ", TERM="dumb", HOME=str(folder)
            )
            os.execvp("bash", ["bash", "--norc", "--noprofile"])
        self.enter("bind 'set enable-bracketed-paste off'; stty cols 200")
        self.enter('eval "$(_MARKOVIA_COMPLETE=source_bash markovia)"')

    def enter(self, line: str) -> None:
        os.write(self.terminal, f"{line}; echo DO''NE\n".encode())
        # before the prompt the terminal is not yet in the hands of the line editor
        self._read_until("DONE\r\nPROMPT ")

    def after_tab(self, line: str, tabs: int = 1) -> str:
        """Return what the terminal shows after typing a line and pressing the tabulator."""
        os.write(self.terminal, line.encode() + b"\t" * tabs)
        # bash answers the mark only when it has finished completing
        os.write(self.terminal, b"\x16\x1dEND")
        shown = self._read_until("^]END").removesuffix("^]END")
        os.write(self.terminal, b"\x03")
        self.enter(":")
        return shown

    def close(self) -> None:
        os.write(self.terminal, b"\x03\nexit\n")
        os.close(self.terminal)
        os.waitpid(self.process, 0)

    def _read_until(self, mark: str, seconds: float = 300) -> str:
        shown = ""
        end = time.monotonic() + seconds
        while mark not in shown:
            assert time.monotonic() < end, f"bash never showed {mark!r}: {shown!r}"
            if select.select([self.terminal], [], [], 0.2)[0]:
                shown += os.read(self.terminal, 65536).decode(errors="replace").replace("\a", "")
        return shown


# -- real processes ---------------------------------------------------------------------------------------------------


def test_the_module_runs_and_answers():
    done = process("query", "asia", "lung", "--given", "smoke=yes", "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["posteriors"]["lung"]["yes"] == pytest.approx(0.1)


def test_the_module_fails_with_one_sentence_and_no_traceback(tmp_path: Path):
    broken = tmp_path / "broken.bif"
    broken.write_bytes(b"network \x00 {")
    for words in (
        ["info", "nowhere.bif"],
        ["info", str(broken)],
        ["query", "asia", "lung", "--given", "smoke"],
    ):
        done = process(*words)
        assert done.returncode == 2
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1
        assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error():
    program = f"{sys.executable} -m markovia sample asia -n 300000 --seed 0 | head -n 2"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", program], capture_output=True, text=True, timeout=600
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.slow
def test_a_pipe_gets_plain_text_without_colours_padding_or_wrapping(tmp_path: Path):
    bn = mk.BayesianNetwork()
    bn.add("v", states=["s" * 150, "t"], p=[0.5, 0.5])
    mk.save(bn, tmp_path / "long.json")
    done = process("info", str(tmp_path / "long.json"), "--variables", env=os.environ | {"COLUMNS": "40"})
    assert "\x1b" not in done.stdout
    assert "s" * 150 + ", t" in done.stdout
    assert all(line == line.rstrip() for line in done.stdout.splitlines())


@pytest.mark.slow
def test_a_narrow_encoding_gets_plain_bars_and_no_crash():
    done = process("demo", env=os.environ | {"PYTHONIOENCODING": "ascii", "NO_COLOR": "1"})
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "####" in done.stdout


def test_interrupting_ends_with_130():
    running = subprocess.Popen(
        [sys.executable, "-m", "markovia", "sample", "asia", "-n", "100000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout is not None
    running.stdout.read(1000)
    time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=300)
    assert running.returncode == 130
    assert b"Traceback" not in errors


def test_answering_a_query_imports_neither_pandas_nor_matplotlib():
    program = (
        "import sys; sys.argv = ['markovia', 'query', 'asia', 'lung']\n"
        "from markovia.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print([m for m in ('pandas', 'matplotlib', 'scipy', 'networkx', 'jax', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
