"""Learning and predicting on the command line: fit, score and predict over data files."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from command_line import answer, complaint, run
from markovia.data.tables.file_blocks import file_blocks
from markovia.data.tables.reading import read_data


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    mk.examples.asia().sample(500, seed=3).to_csv(path, index=False)
    return path


def test_score_is_the_sum_over_rows(rows: Path):
    told = answer("score", "asia", str(rows), "--worst", "2")
    logs = mk.examples.asia().log_prob(pd.read_csv(rows))
    assert np.isclose(told["log_likelihood"], logs.sum())
    assert told["rows"] == 500
    assert told["worst"][0] == {"row": int(logs.argmin()) + 1, "log_prob": pytest.approx(logs.min())}
    assert "500 rows, log likelihood" in run("score", "asia", str(rows)).stdout


def test_score_sums_out_empty_cells(tmp_path: Path):
    path = tmp_path / "few.csv"
    path.write_text("smoke,lung,comment\nyes,,old\n,no,\n")
    logs = mk.examples.asia().log_prob({"smoke": ["yes", None], "lung": [None, "no"]})
    assert np.isclose(answer("score", "asia", str(path))["log_likelihood"], logs.sum())


def test_predict_writes_one_line_a_row(rows: Path):
    text = run("predict", "asia", str(rows), "--target", "lung").stdout
    lines = list(csv.DictReader(io.StringIO(text)))
    expected = mk.examples.asia().predict(pd.read_csv(rows), "lung")
    assert [line["lung"] for line in lines] == expected.tolist()


def test_predict_gives_probabilities_and_keeps_columns(rows: Path, tmp_path: Path):
    out = tmp_path / "answers.csv"
    told = answer("predict", "asia", str(rows), "-t", "lung,tub", "--proba", "--keep", "xray", "-o", str(out))
    assert told["rows"] == 500
    frame = pd.read_csv(out)
    assert list(frame)[:2] == ["xray", "lung"]
    exact = mk.examples.asia().predict_proba(pd.read_csv(rows), ["lung", "tub"])
    assert np.allclose(frame["P(tub=yes)"], exact["tub"]["yes"])


def test_parquet_is_read_as_well(rows: Path, tmp_path: Path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    pd.read_csv(rows).to_parquet(path)
    assert answer("score", "asia", str(path)) == {**answer("score", "asia", str(rows)), "data": str(path)}


def test_blocks_keep_the_order_of_rows(rows: Path):
    asia = mk.examples.asia()
    variables = {n: asia.variable(n) for n in asia.variables}
    parts = [part for part, _ in file_blocks(rows, variables, block=1)]
    whole = pd.concat(parts, ignore_index=True).astype(object)
    assert whole.equals(pd.read_csv(rows).astype(object))


def test_fit_writes_the_fitted_model(rows: Path, tmp_path: Path):
    structure, out = tmp_path / "structure.bif", tmp_path / "model.bif"
    mk.save(mk.examples.asia(), structure)
    told = answer("fit", str(structure), str(rows), "--prior", "bdeu", "--ess", "5", "-o", str(out))
    expected = mk.examples.asia().fit(pd.read_csv(rows), prior=mk.priors.BDeu(5))
    fitted = mk.load(out)
    for name in fitted.variables:
        assert np.allclose(fitted[name].values, expected[name].values, atol=1e-12)
    assert np.isclose(told["log_likelihood"], expected.fit_.log_likelihood)
    report = run("fit", "asia", str(rows), "-o", str(out)).stdout
    assert "fitted by counting on 500 rows" in report


def test_numbers_in_a_file_are_the_states_that_print_like_them(tmp_path: Path):
    path, structure, out = tmp_path / "d.csv", tmp_path / "s.bif", tmp_path / "m.bif"
    path.write_text("a,b\n0,1\n1,1\n1,0\n1,1\n")
    bn = mk.BayesianNetwork("a{0|1}->b{0|1}", tables="uniform")
    assert bn.states("a") == ["0", "1"]
    mk.save(bn, structure)
    answer("fit", str(structure), str(path), "-o", str(out))
    assert mk.load(out)["a"].values.tolist() == [0.25, 0.75]


def test_fit_uses_rows_with_missing_cells(tmp_path: Path):
    path, out = tmp_path / "d.csv", tmp_path / "m.json"
    path.write_text("rain,wet\nyes,yes\nno,no\nno,\n,yes\nyes,yes\nno,no\n")
    mk.save(mk.BayesianNetwork("rain{no|yes}->wet{no|yes}"), tmp_path / "s.json")
    told = answer("fit", str(tmp_path / "s.json"), str(path), "-o", str(out))
    assert told["method"] == "em"
    assert told["missing_cells"] == 2
    assert "2 cells are missing" in complaint(
        "fit", str(tmp_path / "s.json"), str(path), "-o", str(out), "--missing", "error"
    )


def test_bad_words_get_one_sentence(rows: Path, tmp_path: Path):
    out = str(tmp_path / "m.bif")
    assert "--prior is one of" in complaint("fit", "asia", str(rows), "--prior", "flat", "-o", out)
    assert "--ess is the sample size" in complaint("fit", "asia", str(rows), "--ess", "3", "-o", out)
    assert "no such file" in complaint("score", "asia", str(tmp_path / "none.csv"))
    assert "data files end in" in complaint("score", "asia", str(tmp_path / "rows.xlsx"))
    assert "did you mean 'lung'" in complaint("predict", "asia", str(rows), "-t", "lungs")
    odd = tmp_path / "odd.csv"
    odd.write_text("smoke\nperhaps\n")
    assert "unknown state 'perhaps' for 'smoke'" in complaint("predict", "asia", str(odd), "-t", "lung")
    assert not Path(out).exists()


def test_em_over_a_file_counts_all_its_rows(tmp_path: Path):
    path = tmp_path / "d.csv"
    path.write_text("rain,wet\n" + "yes,yes\nno,no\nno,\n" * 50)
    bn = mk.BayesianNetwork("rain->wet").fit(path)
    assert bn.fit_.n_rows == 150
    assert bn.fit_.total == 150


def test_cells_that_fitting_takes_as_missing_are_missing_for_rows_too(tmp_path: Path):
    path = tmp_path / "few.csv"
    cells = ["NA", "null", "NaN", "N/A", ""]
    path.write_text("smoke,lung\n" + "".join(f"yes,{cell}\n" for cell in cells))
    expected = mk.examples.asia().log_prob({"smoke": ["yes"] * len(cells)}).sum()
    assert np.isclose(answer("score", "asia", str(path))["log_likelihood"], expected)
    assert read_data(path, states={"lung": ["no", "yes"]}).missing() == {"smoke": 0, "lung": len(cells)}


def test_a_state_that_reads_like_a_missing_cell_is_a_state(tmp_path: Path):
    path = tmp_path / "few.csv"
    path.write_text("a,b\nNA,NA\nx,0\n")
    variables = {"a": mk.Variable("a", ["NA", "x"]), "b": mk.Variable("b", [0, 1])}
    ((part, _),) = file_blocks(path, variables)
    assert part["a"].tolist() == ["NA", "x"]
    assert part["b"].isna().tolist() == [True, False]


def test_whole_numbers_with_a_point_are_whole_numbers(tmp_path: Path):
    variables = {"a": mk.Variable("a", [0, 1]), "b": mk.Variable("b", [False, True])}
    frame = pd.DataFrame({"a": [1.0, None, 0.0], "b": ["TRUE", "false", "True"]})
    frame.to_csv(tmp_path / "f.csv", index=False)
    frame.to_parquet(tmp_path / "f.parquet")
    for name in ("f.csv", "f.parquet"):
        ((part, _),) = file_blocks(tmp_path / name, variables)
        assert part["a"].cat.codes.tolist() == [1, -1, 0]
        assert part["b"].tolist() == [True, False, True]
    (tmp_path / "g.csv").write_text("a\n0.5\n")
    with pytest.raises(mk.errors.UnknownState, match=r"'0\.5' for 'a'"):
        next(file_blocks(tmp_path / "g.csv", variables))


def test_a_pattern_names_several_files(tmp_path: Path):
    for k, state in enumerate(["yes", "no"]):
        (tmp_path / f"part{k}.csv").write_text(f"smoke\n{state}\n")
    found = pd.concat(
        [p for p, _ in file_blocks(tmp_path / "part*.csv", {"smoke": mk.Variable("smoke", ["no", "yes"])})]
    )
    assert found["smoke"].tolist() == ["yes", "no"]


def test_hidden_variables_are_named_on_the_command_line(tmp_path: Path):
    structure, data, out = tmp_path / "s.json", tmp_path / "d.csv", tmp_path / "m.json"
    mk.save(mk.BayesianNetwork("z[2]->a{n|y}; z->b{n|y}", tables="uniform"), structure)
    data.write_text("a,b\n" + "y,y\nn,n\n" * 20)
    assert "if it is never observed, say --latent z" in complaint(
        "fit", str(structure), str(data), "-o", str(out)
    )
    told = answer("fit", str(structure), str(data), "--latent", "z", "--seed", "0", "-o", str(out))
    assert told["method"] == "em"
    assert np.isclose(told["log_likelihood"], 40 * np.log(0.5), rtol=1e-3)
    assert "--latent is a name" in complaint(
        "fit", str(structure), str(data), "--latent", "z=many", "-o", str(out)
    )


def test_no_rows_give_a_header_and_a_failed_prediction_no_file(tmp_path: Path, monkeypatch):
    data, out = tmp_path / "d.csv", tmp_path / "o.csv"
    data.write_text("smoke\n")
    header = run("predict", "asia", str(data), "-t", "lung", "--proba").stdout
    assert header == "lung,P(lung=yes),P(lung=no)\n"
    data.write_text("smoke\n" + "yes\n" * 5000 + "perhaps\n")
    monkeypatch.setattr("markovia.data.tables.file_blocks.file_blocks.__defaults__", ((), 2048))
    assert "perhaps" in complaint("predict", "asia", str(data), "-t", "lung", "-o", str(out))
    assert not out.exists()
    assert "both name 'smoke'" in complaint("predict", "asia", str(data), "-t", "smoke", "-k", "smoke")
