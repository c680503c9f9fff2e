"""`markovia effect`: an effect from a CSV on the command line."""

import pytest

from command_line import answer, complaint, run
from markovia.causal.simulated_worlds import linear_world


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    world = linear_world(400, seed=1)
    frame = world.frame.assign(sex=["f", "m"] * 200)
    path = tmp_path_factory.mktemp("effect") / "data.csv"
    frame.to_csv(path, index=False)
    return str(path), world.graph


def test_an_effect_is_told_with_how_and_why(rows):
    path, graph = rows
    text = run("effect", path, "--graph", graph, "--treatment", "t", "--outcome", "y").stdout
    assert text.startswith("The effect of t on y is ")
    for word in ("what", "how", "why", "rows", "overlap", "balance"):
        assert f"\n  {word}" in text
    told = answer("effect", path, "--graph", graph, "-t", "t", "-y", "y", "--method", "regression")
    assert told["adjustment"] == ["x1", "x2"]
    assert told["interval"][0] < 2 < told["interval"][1]
    assert told["n"] == 400


def test_given_values_and_levels_are_read_as_the_column_has_them(rows):
    path, graph = rows
    asked = ["effect", path, "--graph", f"{graph}; sex -> y", "-t", "t", "-y", "y"]
    told = answer(*asked, "--given", "sex=f")
    assert told["n"] == 200
    flipped = answer(*asked, "--control", "1", "--treated", "0")
    assert flipped["value"] < 0
    assert (flipped["treated"], flipped["control"]) == (0, 1)


def test_a_report_judges_and_draws(rows, tmp_path):
    path, graph = rows
    picture = tmp_path / "report.png"
    asked = ["effect", path, "--graph", graph, "-t", "t", "-y", "y", "--method", "regression", "--report"]
    text = run(*asked, "--plot", str(picture)).stdout
    assert "Attempts to refute it" in text
    assert "Verdict: " in text
    assert picture.stat().st_size > 10_000
    assert {r["kind"] for r in answer(*asked)["refutations"]} >= {"placebo treatment", "dummy outcome"}


def test_bad_input_is_one_sentence(rows):
    path, graph = rows
    asked = ["effect", path, "--graph", graph, "-y", "y"]
    assert "unknown variable 'tt'" in complaint(*asked, "-t", "tt")
    assert "no effect on itself" in complaint(*asked, "-t", "y")
    assert "written COLUMN=VALUE" in complaint(*asked, "-t", "t", "--given", "sex")
