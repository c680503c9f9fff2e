"""`markovia cluster`: rows with their component and its probabilities, the number by BIC, a mixture that is kept."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from command_line import answer, complaint, run


@pytest.fixture
def flowers(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in (0.0, 6.0, 12.0)])
    path = tmp_path / "flowers.csv"
    pd.DataFrame(rows, columns=["long", "wide"]).to_csv(path, index=False)
    return path


def test_rows_come_back_with_their_component(flowers, tmp_path):
    model, rows = str(tmp_path / "m.json"), str(tmp_path / "rows.csv")
    done = run("cluster", str(flowers), "--choose", "4", "--model", model, "-o", rows)
    assert "3 groups of 180 rows (GaussianMixture)" in done.stdout
    table = pd.read_csv(tmp_path / "rows.csv")
    assert list(table) == ["long", "wide", "component", *(f"P(component={k})" for k in range(3))]
    assert [len(set(table.component[i : i + 60])) for i in (0, 60, 120)] == [1, 1, 1]
    again = mk.load(tmp_path / "m.json").predict_proba(table[["long", "wide"]])
    assert table.filter(like="P(").to_numpy() == pytest.approx(again)


def test_json_has_everything(flowers):
    found = answer("cluster", str(flowers), "-k", "3", "--covariance", "diag")
    assert found["components"] == 3
    assert sum(found["weights"]) == pytest.approx(1.0)
    assert len(found["assignments"]) == 180


def test_categories_are_latent_classes(tmp_path):
    frame = pd.DataFrame({"a": ["x", "y"] * 20, "b": ["u", "v"] * 20})
    frame.to_csv(tmp_path / "d.csv", index=False)
    found = answer("cluster", str(tmp_path / "d.csv"))
    assert found["kind"] == "LatentClass"
    assert len({(row["a"], row["component"]) for row in found["assignments"]}) == 2


def test_two_answers_to_one_question_are_refused(flowers):
    assert "give one" in complaint("cluster", str(flowers), "-k", "2", "--choose", "3")
    assert "'tall'" in complaint("cluster", str(flowers), "--column", "tall")
