"""`markovia identify`: formulas, sets and hedges on the command line."""

from pathlib import Path

import pytest

from command_line import answer, complaint, run

HIDDEN = "z -> x -> y; x <-> y"


def test_a_back_door_is_told_with_its_formula_and_sets():
    told = answer("identify", "x -> y; a -> x; a -> b; b -> y", "x", "y")
    assert told["identified"]
    assert told["rule"] == "back-door"
    assert told["adjustment_sets"] == [["a"], ["b"]]
    assert told["formula"].startswith("P(y | do(x)) = Σ_")
    text = run("identify", "x -> y; a -> x; a -> b; b -> y", "x", "y").stdout
    assert "adjustment sets: {a}, {b}" in text
    assert "assumes: no two variables have a common cause outside the graph" in text


def test_a_hedge_is_an_answer_and_no_error():
    result = run("identify", HIDDEN, "x", "y")
    assert result.exit_code == 0
    assert "not identified" in result.stdout
    assert "instruments (for linear models): z" in result.stdout
    told = answer("identify", HIDDEN, "x", "y")
    assert told["identified"] is False
    assert told["hedge"] == [["x", "y"], ["y"]]
    assert told["instruments"] == [{"name": "z", "given": []}]
    assert told["adjustment_sets"] == []


def test_hidden_and_known_variables_change_the_question():
    assert answer("identify", "asia", "bronc", "dysp", "--latent", "smoke")["adjustment_sets"] == [
        ["lung"],
        ["either"],
    ]
    told = answer("identify", "asia", "bronc", "dysp", "--given", "smoke")
    assert told["formula"] == "P(dysp | do(bronc), smoke) = P(dysp | bronc, smoke)"
    assert "adjustment_sets" not in told


def test_several_treatments_are_separated_by_commas():
    told = answer("identify", "a -> b -> y; c -> a; c -> y", "a,b", "y")
    assert told["treatment"] == ["a", "b"]
    assert told["adjustment_sets"] == [["c"]]
    assert "instruments" not in told


def test_no_effect_needs_no_sets():
    told = answer("identify", "y -> x", "x", "y")
    assert told["rule"] == "no effect"
    assert "adjustment_sets" not in told


def test_a_dagitty_file_says_what_is_latent(tmp_path: Path):
    file = tmp_path / "graph.dagitty"
    file.write_text("dag { u [latent] u -> {x y} x -> y }")
    assert answer("identify", str(file), "x", "y")["identified"] is False


def test_a_class_of_graphs_is_answered_by_adjustment():
    told = answer("identify", "z -- x; x -> y; w -> y", "x", "y")
    assert told["rule"] == "adjustment"
    assert "front_door_sets" not in told


def test_latex_prints_the_formula_alone():
    assert (
        run("identify", "x -> y", "x", "y", "--latex").stdout == "P(y \\mid \\mathrm{do}(x)) = P(y \\mid x)\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("x -> y", "x", "x"), "'x' is both treatment and outcome"),
        (("x -> y", "x", "w"), "unknown variable 'w'"),
        (("x -> y -> x", "x", "y"), "cycle"),
        (("no-such-model", "x", "y"), "neither a file nor a bundled model"),
        (("x -> y", "x", "y", "--latent", "x"), "'x' is latent"),
    ],
)
def test_bad_questions_end_with_one_sentence(words, sentence):
    assert sentence in complaint("identify", *words)
