"""Many cases at once: answers for an uploaded table, cases drawn from the model, both as files."""

import gzip

import pandas as pd
import pytest

import markovia as mk
from studio_page import ask, settled, state

ASIA = mk.examples.asia()
PATIENCE = 120_000
"""Milliseconds that a job may take on a busy machine."""


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True], ids=["csv", "csv.gz"])
def test_every_row_of_a_table_is_answered_and_downloaded(asia, tmp_path, packed):
    rows = ASIA.sample(60, seed=2)[["asia", "smoke", "xray", "dysp"]]
    rows.loc[3, "xray"] = rows.loc[7, "dysp"] = None
    text = rows.to_csv(index=False).encode()
    file = tmp_path / ("cases.csv.gz" if packed else "cases.csv")
    file.write_bytes(gzip.compress(text) if packed else text)
    asia.locator('.mk-node[data-name="lung"] .mk-title').click()
    problem = ask(asia, "Answers for many cases", "Answer all")
    assert "choose a table of cases" in problem.inner_text()
    asia.get_by_label("Cases (CSV or Parquet)").set_input_files(file)
    asia.get_by_label("Add to the answers").fill("bronc")
    asia.get_by_label("Add to the answers").press("Enter")
    asia.get_by_role("button", name="Answer all").click()
    asia.get_by_text("60 cases answered.").wait_for(timeout=PATIENCE)
    with asia.expect_download() as coming:
        asia.get_by_role("button", name="Download the answers").click()
    assert coming.value.suggested_filename == "cases-answers.csv"
    told = pd.read_csv(coming.value.path())
    assert list(told.columns[:4]) == list(rows.columns)
    for target in ("lung", "bronc"):
        wanted = ASIA.predict_proba(rows, target)
        for said in wanted.columns:
            assert told[f"P({target}={said})"].to_numpy() == pytest.approx(wanted[said].to_numpy())


@pytest.mark.slow
def test_cases_are_drawn_given_the_findings(asia):
    state(asia, "xray", "yes").click()
    settled(asia)
    ask(asia, "Draw cases", "Draw")
    with asia.expect_download() as coming:
        asia.get_by_role("button", name="Download 100 rows").click()
    told = pd.read_csv(coming.value.path())
    assert told.equals(ASIA.sample(100, given={"xray": "yes"}, seed=0).astype(told.dtypes))
