"""`markovia compare` on the command line."""

from functools import partial
from pathlib import Path

import pytest

import command_line
import markovia as mk
from markovia.cli.compare import compare_tables

run, answer, complaint = (
    partial(word, "compare") for word in (command_line.run, command_line.answer, command_line.complaint)
)
EVEN = [[0.5, 0.5], [0.5, 0.5]]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    """Two networks: an edge turned, one gone, one more, and one table that differs."""
    first, second = mk.BayesianNetwork(), mk.BayesianNetwork()
    first.add("b", states=["no", "yes"], p=[0.5, 0.5])
    first.add("a", states=["no", "yes"], parents=["b"], p=EVEN)
    first.add("c", states=["no", "yes"], parents=["b"], p=[[0.9, 0.1], [0.2, 0.8]])
    first.add("d", states=["no", "yes"], parents=["a"], p=EVEN)
    second.add("a", states=["no", "yes"], p=[0.5, 0.5])
    second.add("b", states=["no", "yes"], parents=["a"], p=EVEN)
    second.add("c", states=["no", "yes"], parents=["b"], p=[[0.8, 0.2], [0.2, 0.8]])
    second.add("d", states=["no", "yes"], parents=["c"], p=EVEN)
    for model, name in ((first, "first.bif"), (second, "second.bif")):
        model.save(tmp_path / name)
    return str(tmp_path / "first.bif"), str(tmp_path / "second.bif")


def test_the_distances_and_the_edges_are_told(pair):
    told = answer(*pair)
    first, second = (mk.load(p) for p in pair)
    assert (told["level"], told["nodes"], told["edges"], told["true_edges"]) == ("dag", 4, 3, 3)
    assert told["shd"] == 3
    assert told["cpdag_shd"] == 2
    assert told["missing"] == [["c", "d"]]
    assert told["extra"] == [["a", "d"]]
    assert told["reversed"] == told["reoriented"] == [["a", "b"]]
    assert told["sid"] == mk.graphs.sid(first, second)
    assert told["skeleton"]["precision"] == pytest.approx(2 / 3)
    assert {"kind": "reversed", "learned": "b --> a", "truth": "a --> b"} in told["differences"]


def test_tables_with_the_same_parents_are_compared(pair):
    tables = answer(*pair)["tables"]
    assert tables["compared"] == 1
    assert tables["different"] == {"c": "tables differ by up to 0.1"}
    assert "1 of 1 with the same parents differ (c: tables differ by up to 0.1)" in run(*pair).stdout


def test_a_model_is_the_same_as_itself():
    text = run("asia", "asia").stdout
    assert "the graphs are the same" in text
    assert "all 8 with the same parents are the same" in text
    assert answer("asia", "asia")["sid"] == 0


def test_people_read_one_line_for_each_difference(pair):
    lines = run(*pair).stdout.splitlines()
    assert any(
        line.split() == ["SHD", "3:", "1", "missing,", "1", "extra,", "1", "reversed"] for line in lines
    )
    assert any(line.startswith("SHD of CPDAGs") and line.endswith("2") for line in lines)
    assert any(line.split() == ["reversed", "b", "-->", "a", "a", "-->", "b"] for line in lines)


def test_other_states_are_told(tmp_path):
    for name, states in (("x", ["no", "yes"]), ("y", ["off", "on"])):
        model = mk.BayesianNetwork()
        model.add("a", states=states, p=[0.5, 0.5])
        model.save(tmp_path / f"{name}.bif")
    tables = answer(str(tmp_path / "x.bif"), str(tmp_path / "y.bif"))["tables"]
    assert tables == {
        "compared": 0,
        "different": {},
        "other_states": {"a": "states ['no', 'yes'] and ['off', 'on']"},
    }


def test_a_picture_is_drawn(pair, tmp_path):
    for name, start in (("both.png", b"\x89PNG"), ("both.svg", b"<?xml")):
        assert run(*pair, "--plot", str(tmp_path / name)).exit_code == 0
        assert (tmp_path / name).read_bytes().startswith(start)


def test_graphs_without_tables_and_classes_are_compared(tmp_path):
    asia = mk.examples.asia().graph
    mk.save(mk.graphs.cpdag(asia), tmp_path / "class.json")
    told = answer(str(tmp_path / "class.json"), "asia")
    assert (told["level"], told["shd"], told["tables"]) == ("cpdag", 0, None)
    assert told["sid"]["lower"] == 0
    pag = mk.learn_structure(method="fci", test=mk.ci_tests.Oracle(asia, latent=["smoke"])).graph
    mk.save(pag, tmp_path / "pag.json")
    other = pag.copy()
    a, b, *_ = other.edges[0]
    other.remove_edge(a, b)
    mk.save(other, tmp_path / "other.json")
    told = answer(str(tmp_path / "other.json"), str(tmp_path / "pag.json"))
    assert (told["level"], told["shd"], told["mark_distance"], told["sid"]) == ("pag", 1, 2, None)


def test_bad_input_gets_exit_code_2_and_one_sentence(pair, tmp_path):
    assert "only the learned graph has" in complaint("asia", "sprinkler")
    assert "neither a file nor a bundled model" in complaint("asia", "asiaa")
    assert "its suffix is .png" in complaint(*pair, "--plot", str(tmp_path / "x.nonsense"))
    assert "cannot write" in complaint(*pair, "--plot", str(tmp_path / "none" / "x.png"))
    assert "Missing argument" in complaint("asia")


def test_tables_are_compared_whatever_the_order_of_states():
    a = mk.BayesianNetwork()
    a.add("x", states=["no", "yes"], p=[0.3, 0.7])
    a.add("y", states=["no", "yes"], parents=["x"], p=[[0.9, 0.1], [0.2, 0.8]])
    b = mk.BayesianNetwork()
    b.add("x", states=["yes", "no"], p=[0.7, 0.3])
    b.add("y", states=["yes", "no"], parents=["x"], p=[[0.8, 0.2], [0.1, 0.9]])
    assert compare_tables(a, b) == {"compared": 2, "different": {}, "other_states": {}}
    b.replace("y", p=[[0.75, 0.25], [0.1, 0.9]])
    assert compare_tables(a, b)["different"] == {"y": "tables differ by up to 0.05"}
