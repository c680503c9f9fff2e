"""Learning a graph on the command line."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from command_line import answer, complaint, run
from markovia.cli import learn as learn_module

FRAME = mk.examples.sprinkler().sample(800, seed=3)


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.csv"
    FRAME.to_csv(path, index=False)
    return str(path)


def test_a_network_is_learned_fitted_and_written(rows: str, tmp_path: Path):
    out = tmp_path / "model.bif"
    result = run("learn", rows, "--method", "hill-climb", "--prior", "bdeu", "--ess", "4", "-o", str(out))
    assert result.exit_code == 0, result.stderr
    found = mk.learn_structure(FRAME)
    model = mk.load(out)
    assert model.allclose(found.fit(prior=mk.priors.BDeu(4)), atol=1e-6)
    assert f"directed graph with 4 nodes and {found.n_edges} edges, by hill-climb (bic)" in result.stdout
    assert f"wrote BayesianNetwork with 4 variables to {out} (" in result.stdout
    for a, b in found.edges:
        assert f"{a} --> {b}" in result.stdout


def test_a_network_saved_as_bif_takes_the_data_it_came_from(tmp_path: Path):
    rng = np.random.default_rng(1)
    doors = rng.integers(1, 4, 300)
    frame = pd.DataFrame({"doors": doors, "open": rng.random(300) < doors / 4})
    data, out = tmp_path / "rows.csv", tmp_path / "model.bif"
    frame.to_csv(data, index=False)
    assert run("learn", str(data), "-o", str(out)).exit_code == 0
    model = mk.load(out)
    assert model.states("doors") == [1, 2, 3]
    assert model.states("open") == [False, True]
    told = answer("score", str(out), str(data))
    assert told["log_likelihood"] == pytest.approx(model.log_prob(frame).sum())
    assert told["rows"] == 300
    assert run("fit", str(out), str(data), "-o", str(tmp_path / "again.bif")).exit_code == 0
    assert mk.load(tmp_path / "again.bif").allclose(model)
    assert run("predict", str(out), str(data), "--target", "open").exit_code == 0


def test_without_an_output_the_graph_is_printed(rows: str, tmp_path: Path):
    before = set(tmp_path.iterdir())
    assert "-->" in run("learn", rows).stdout
    assert set(tmp_path.iterdir()) == before


def test_one_json_document_says_everything(rows: str, tmp_path: Path):
    out = tmp_path / "model.json"
    told = answer("learn", rows, "-o", str(out), "--max-parents", "1")
    found = mk.learn_structure(FRAME, max_parents=1)
    assert [(e["from"], e["to"]) for e in told["edges"]] == found.edges
    assert told["score"] == pytest.approx(found.score)
    assert (told["method"], told["kind"], told["score_name"]) == ("hill-climb", "directed graph", "bic")
    assert told["rows"] == 800
    assert told["bytes"] == out.stat().st_size


def test_knowledge_is_obeyed(rows: str):
    told = answer(
        "learn", rows, "--required", "wet->cloudy", "--forbidden", "rain->wet, wet->rain",
        "--tier", "wet", "--tier", "cloudy,sprinkler",
    )  # fmt: skip
    edges = {(e["from"], e["to"]) for e in told["edges"]}
    assert ("wet", "cloudy") in edges
    assert not edges & {("rain", "wet"), ("wet", "rain"), ("cloudy", "wet"), ("sprinkler", "wet")}


def test_columns_and_weights_are_chosen(tmp_path: Path):
    path = tmp_path / "rows.parquet"
    times = np.arange(800) % 3
    FRAME.astype(str).assign(times=times.astype(float)).to_parquet(path)
    told = answer("learn", str(path), "--columns", "wet,rain", "--weights", "times")
    assert told["nodes"] == ["wet", "rain"]
    assert told["rows"] == times.sum()


def test_missing_cells_are_dropped_where_asked(tmp_path: Path):
    holes = FRAME.astype(object).copy()
    holes.iloc[:5, 0] = None
    path = tmp_path / "holes.csv"
    holes.to_csv(path, index=False)
    assert "--missing drop" in complaint("learn", str(path))
    result = run("learn", str(path), "--missing", "drop")
    assert "note: 5 of 800 rows miss a cell" in result.stdout


def test_a_bootstrap_says_how_sure_each_edge_is(rows: str, tmp_path: Path):
    out = tmp_path / "model.json"
    told = answer("learn", rows, "--bootstrap", "12", "--seed", "1", "-o", str(out))
    sure = mk.bootstrap_structure(FRAME.astype(str), replicates=12, seed=1)
    assert told["replicates"] == 12
    assert told["threshold"] == pytest.approx(sure.threshold)
    assert {(e["from"], e["to"]) for e in told["edges"]} == set(sure.consensus().edges)
    assert told["confidence"][0]["strength"] == 1.0
    assert mk.load(out).has_table("rain")
    text = run("learn", rows, "--bootstrap", "5", "--seed", "1").stdout
    assert "strength" in text
    assert "significant above" in text


def test_a_class_of_graphs_gives_one_member_and_says_so(rows: str, tmp_path: Path, monkeypatch):
    mixed = mk.learn_structure(FRAME).data
    classed = mk.results.LearnedStructure(
        mk.graphs.MixedGraph(["cloudy --- rain", "rain --> wet", "sprinkler --> wet"]), "ges", data=mixed
    )
    monkeypatch.setattr(learn_module, "learn_structure", lambda *_, **__: classed)
    out = tmp_path / "model.bif"
    result = run("learn", rows, "-o", str(out))
    assert result.exit_code == 0, result.stderr
    assert "one member of the class" in " ".join(result.stdout.split())
    assert mk.graphs.cpdag(mk.load(out).graph) == classed.graph
    graph = tmp_path / "graph.dagitty"
    run("learn", rows, "-o", str(graph))
    assert mk.load(graph) == classed.graph


def test_graphs_without_tables_go_into_formats_for_graphs(rows: str, tmp_path: Path, monkeypatch):
    pag = mk.results.LearnedStructure(
        mk.graphs.MixedGraph(["a o-> b", "b <-> c"]), "fci", data=mk.learn_structure(FRAME).data
    )
    monkeypatch.setattr(learn_module, "learn_structure", lambda *_, **__: pag)
    assert "partial ancestral graph" in complaint("learn", rows, "-o", str(tmp_path / "model.bif"))
    out = tmp_path / "graph.json"
    assert "without parameters" in run("learn", rows, "-o", str(out)).stdout
    assert mk.load(out) == pag.graph


def test_measurements_are_declared(tmp_path: Path, monkeypatch):
    seen = {}

    def spy(data, method, **settings):
        seen.update(settings)
        return mk.results.LearnedStructure(mk.graphs.DAG(nodes=["a"]), method)

    monkeypatch.setattr(learn_module, "learn_structure", spy)
    path = tmp_path / "rows.csv"
    pd.DataFrame({"a": [1, 2]}).to_csv(path, index=False)
    for word, meant in (("all", True), ("none", False), ("a, b", ["a", "b"])):
        run(
            "learn",
            str(path),
            "--continuous",
            word,
            "--set",
            "depth=3",
            "--set",
            "how=fast",
            "--alpha",
            "0.1",
        )
        assert seen["continuous"] == meant
    assert (seen["depth"], seen["how"], seen["alpha"]) == (3, "fast", 0.1)


def test_the_graph_is_drawn(rows: str, tmp_path: Path):
    picture = tmp_path / "graph.png"
    assert f"drew {picture}" in run("learn", rows, "--plot", str(picture)).stdout
    assert picture.read_bytes()[1:4] == b"PNG"
    sure = tmp_path / "sure.svg"
    run("learn", rows, "--bootstrap", "3", "--plot", str(sure))
    assert "<svg" in sure.read_text()
    assert "--plot writes" in complaint("learn", rows, "--plot", str(tmp_path / "graph.xyz"))


def test_what_is_wrong_is_said_in_one_sentence(rows: str, tmp_path: Path):
    assert "did you mean 'ges'" in complaint("learn", rows, "-m", "gess")
    assert "names no format" in complaint("learn", rows, "-o", str(tmp_path / "model.foo"))
    assert "name a file" in complaint("learn", rows, "-o", "-")
    assert "such as 'rain->wet'" in complaint("learn", rows, "--required", "rain")
    assert "did you mean 'rain'" in complaint("learn", rows, "--required", "rainn->wet")
    assert "takes no lenght" in complaint("learn", rows, "--set", "lenght=3")
    assert "such as restarts=5" in complaint("learn", rows, "--set", "lenght")
    assert "--jobs is for" in complaint("learn", rows, "--jobs", "2")
    assert "takes no --test" in complaint("learn", rows, "--test", "g2")
    assert "no such file" in complaint("learn", str(tmp_path / "none.csv"))
    assert "--time-limit" in complaint("learn", rows, "--time-limit", "0")
    assert "cannot write" in complaint("learn", rows, "-o", str(tmp_path / "nowhere" / "model.bif"))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "rows.csv is empty; data begin with a line of column names"),
        ("\n\n", "is empty"),
        ("a,b\n", "no rows"),
    ],
)
def test_a_file_without_rows_gets_one_sentence(text: str, hint: str, tmp_path: Path):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    mk.BayesianNetwork("a->b", tables="uniform").save(tmp_path / "ab.json")
    assert hint in complaint("learn", str(path))
    assert hint in complaint("score", str(tmp_path / "ab.json"), str(path))
    assert hint in complaint("fit", str(tmp_path / "ab.json"), str(path), "-o", str(tmp_path / "out.json"))
    assert not (tmp_path / "out.json").exists()


def test_a_setting_without_a_value_is_refused(rows: str):
    assert "--set target= has no value" in complaint("learn", rows, "-m", "tan", "--set", "target=")


def test_the_help_shows_examples_and_methods():
    text = " ".join(run("learn", "--help").stdout.split())
    assert "markovia learn data.csv --method ges -o model.bif" in text
    for name in ("hill-climb", "pc", "boss"):
        assert name in text
