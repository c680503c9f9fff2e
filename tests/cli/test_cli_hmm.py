"""`markovia hmm fit|decode|forecast` on files of rows."""

import io

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from command_line import answer, complaint, run
from markovia.cli.app import _as_options


@pytest.fixture
def regimes(tmp_path):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, 60), rng.normal(8, 1, 60)])
    frame = pd.DataFrame({"who": np.repeat(["a", "b"], 60), "x": np.concatenate([x[30:90], x[30:90][::-1]])})
    frame.to_csv(tmp_path / "x.csv", index=False)
    return tmp_path, frame


def test_fit_decode_and_forecast_agree_with_the_library(regimes):
    folder, frame = regimes
    data, model = str(folder / "x.csv"), str(folder / "m.json")
    told = answer("hmm", "fit", data, "--id", "who", "--states", "2", "-o", model, "--seed", "1")
    assert (told["emission"], told["sequences"], told["steps"], told["columns"]) == (
        "gaussian",
        2,
        120,
        ["x"],
    )
    hmm = mk.load(model)
    assert told["log_likelihood"] == pytest.approx(hmm.score(frame, by="who"))
    states = pd.read_csv(io.StringIO(run("hmm", "decode", model, data, "-i", "who", "--proba").stdout))
    assert list(states.columns) == ["who", "step", "state", "P(state=0)", "P(state=1)"]
    assert states["state"].tolist() == np.concatenate(hmm.decode(frame, by="who")).tolist()
    assert states["P(state=1)"].to_numpy() == pytest.approx(np.concatenate(hmm.smooth(frame, by="who"))[:, 1])
    ahead = answer("hmm", "forecast", model, data, "--id", "who", "--steps", "3")["forecast"]
    assert [row["P(state=0)"] for row in ahead] == pytest.approx(
        np.concatenate(hmm.forecast(frame, 3, by="who"))[:, 0]
    )
    assert [row["who"] for row in ahead] == ["a"] * 3 + ["b"] * 3


def test_words_are_categorical_and_files_are_written(regimes):
    folder, _ = regimes
    pd.DataFrame({"w": list("aabbaabbab")}).to_csv(folder / "w.csv", index=False)
    model, out = str(folder / "w.json"), str(folder / "states.csv")
    assert "categorical" in run("hmm", "fit", str(folder / "w.csv"), "-o", model).stdout
    assert mk.load(model).emission_.symbols == ("a", "b")
    assert "wrote 10 rows" in run("hmm", "decode", model, str(folder / "w.csv"), "-o", out).stdout
    assert len(pd.read_csv(out)) == 10


def test_whole_numbers_below_zero_are_symbols_without_a_word_of_python(tmp_path):
    pd.DataFrame({"move": [-1, 0, 1, -1, 1, 0, -1, 1]}).to_csv(tmp_path / "m.csv", index=False)
    model = str(tmp_path / "m.json")
    run("hmm", "fit", str(tmp_path / "m.csv"), "--emission", "categorical", "-o", model)
    assert mk.load(model).emission_.symbols == (-1, 0, 1)


def test_advice_names_options_of_the_shell():
    assert _as_options("the symbols cannot be put in order; say symbols=").endswith("all text or all numbers")
    assert _as_options("name it in continuous=") == "name it in --continuous"
    assert _as_options("leave it out with names=; or not") == "leave it out with --columns; or not"


def test_what_does_not_fit_is_one_sentence(regimes):
    folder, _ = regimes
    data = str(folder / "x.csv")
    assert "'whom'" in complaint("hmm", "fit", data, "--id", "whom", "-o", str(folder / "m.json"))
    assert ".json file" in complaint("hmm", "fit", data, "-o", "m.bif")
    assert "BayesianNetwork, not a hidden Markov model" in complaint("hmm", "decode", "asia", data)
    assert "emission=" in complaint(
        "hmm", "fit", data, "-c", "x", "--emission", "gauss", "-o", str(folder / "m.json")
    )
    assert "no number" in complaint(
        "hmm", "fit", data, "--emission", "gaussian", "-o", str(folder / "m.json")
    )
