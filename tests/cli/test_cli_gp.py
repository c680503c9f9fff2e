"""`markovia gp`: the numbers of the library, rows, pictures, and what it says to bad input."""

import numpy as np
import pandas as pd
import pytest
from tests.command_line import answer, complaint, run

import markovia as mk


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 6.0, 25))
    frame = pd.DataFrame(
        {"name": "a", "x": x, "z": rng.normal(size=25), "y": np.sin(x) + 0.1 * rng.normal(size=25)}
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    return str(tmp_path / "data.csv"), frame


def test_the_numbers_are_those_of_the_library(data):
    path, frame = data
    k = mk.covariances
    model = mk.GaussianProcess(k.Scaled(None, k.Matern52(ard=True)) + k.White()).fit(
        frame[["x", "z"]], frame["y"]
    )
    told = answer("gp", path, "--target", "y", "--covariance", "matern52")
    assert told["inputs"] == ["x", "z"]
    assert told["log_evidence"] == pytest.approx(model.log_marginal_likelihood(), abs=1e-6)
    assert told["method"] == "exact"
    assert told["hyper_parameters"]["matern52.length"] == pytest.approx(
        model.covariance_.hypers()["matern52.length"].value, rel=1e-6
    )
    assert told["left_out_rmse"] == pytest.approx(
        np.sqrt(np.mean((frame["y"] - model.leave_one_out().mean) ** 2)), rel=1e-6
    )
    assert 0.7 < told["left_out_inside_90"] <= 1.0


def test_rows_of_another_file_and_a_picture(data, tmp_path):
    path, frame = data
    frame[["x"]].head(3).to_csv(tmp_path / "new.csv", index=False)
    out, picture = tmp_path / "out.csv", tmp_path / "curve.svg"
    result = run(
        "gp",
        path,
        "-t",
        "y",
        "-c",
        "x",
        "--at",
        str(tmp_path / "new.csv"),
        "-o",
        str(out),
        "--plot",
        str(picture),
    )
    assert result.exit_code == 0, result.stderr
    assert "method exact" in result.stdout
    assert "rbf.length of x" in result.stdout
    assert f"drew it to {picture}" in result.stdout
    found = pd.read_csv(out)
    model = mk.GaussianProcess().fit(frame[["x"]], frame["y"])
    mean, sd = model.predict(frame[["x"]].head(3), return_std=True)
    np.testing.assert_allclose(found[["mean", "sd"]], np.column_stack([mean, sd]), rtol=1e-6)
    assert picture.read_text().startswith("<?xml")
    told = answer("gp", path, "-t", "y", "-c", "x", "--at", str(tmp_path / "new.csv"))
    assert [row["mean"] for row in told["predictions"]] == pytest.approx(mean.tolist())


def test_rows_with_gaps_are_left_out_and_counted(data, tmp_path):
    path, frame = data
    frame.loc[3, "x"] = np.nan
    frame.to_csv(path, index=False)
    told = answer("gp", path, "-t", "y", "-c", "x", "--method", "exact")
    assert (told["rows"], told["dropped"]) == (24, 1)
    assert "left out for missing cells: 1" in run("gp", path, "-t", "y", "-c", "x").stdout


def test_bad_input_is_one_line(data, tmp_path):
    path, _ = data
    assert "unknown variable 'w'" in complaint("gp", path, "--target", "w")
    assert "did you mean 'matern32'" in complaint("gp", path, "-t", "y", "--covariance", "matern3")
    assert "there is no input" in complaint("gp", path, "-t", "y", "-c", "y")
    assert "method= is 'auto'" in complaint("gp", path, "-t", "y", "--method", "best")
    assert "--plot writes .png" in complaint(
        "gp", path, "-t", "y", "-c", "x", "--plot", str(tmp_path / "a.xyz")
    )
    assert "positive number of seconds" in complaint("gp", path, "-t", "y", "--time-limit", "-1")
