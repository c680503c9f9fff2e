"""One rule for rows in every verb: extra columns, missing columns and cells, impossible rows."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.errors import IgnoredColumnWarning, ImpossibleEvidence, UnknownVariable

ROWS = pd.DataFrame({"smoke": ["yes", None, "no"], "xray": ["no", "yes", None]}, index=["a", "b", "c"])
VERBS = {
    "log_prob": lambda bn, rows: bn.log_prob(rows),
    "log_evidence": lambda bn, rows: bn.log_evidence(rows),
    "marginals": lambda bn, rows: bn.marginals(rows).to_pandas(),
    "predict": lambda bn, rows: bn.predict(rows, ["lung", "tub"]),
    "predict_proba": lambda bn, rows: bn.predict_proba(rows, ["lung", "tub"]),
    "log_likelihood": lambda bn, rows: bn.log_likelihood(rows),
    "log_likelihood by row": lambda bn, rows: bn.log_likelihood(rows, by="row"),
    "score": lambda bn, rows: bn.score(rows),
}
every_verb = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)


@pytest.fixture(scope="module")
def asia():
    return mk.examples.asia()


def same(a, b):
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b)
    else:
        assert np.asarray(a) == pytest.approx(np.asarray(b), rel=1e-12)


@every_verb
@pytest.mark.filterwarnings("ignore::markovia.errors.IgnoredColumnWarning")
def test_extra_columns_change_nothing(asia, verb):
    same(verb(asia, ROWS), verb(asia, ROWS.assign(note=["x", "y", "z"], number=[1, 2, 3])))


@every_verb
def test_missing_columns_are_summed_out(asia, verb):
    same(verb(asia, ROWS), verb(asia, ROWS.assign(dysp=None, bronc=np.nan)))


@every_verb
@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT], ids=["None", "NaN", "NA", "NaT"])
def test_every_kind_of_gap_is_a_missing_cell(asia, verb, gap):
    rows = ROWS.astype(object)
    rows[rows.isna()] = gap
    same(verb(asia, ROWS), verb(asia, rows))


def test_numbers_of_missing_columns_are_those_of_summing_by_hand(asia):
    joint = asia.query(["smoke", "xray"])
    expected = [
        np.log(joint["yes", "no"]),
        np.log(asia.query("xray")["yes"]),
        np.log(asia.query("smoke")["no"]),
    ]
    assert asia.log_likelihood(ROWS, by="row") == pytest.approx(expected)
    assert asia.score(ROWS) == pytest.approx(np.mean(expected))


def test_an_extra_column_is_named_once_with_what_may_have_been_meant(asia):
    with pytest.warns(IgnoredColumnWarning, match=r"'xrey'.*did you mean 'xray'") as said:
        asia.predict(ROWS.rename(columns={"xray": "xrey"}), "lung")
    assert len(said) == 1
    assert said[0].filename == __file__
    with pytest.raises(UnknownVariable, match="note"):
        asia.predict(pd.DataFrame({"note": [1]}), "lung")


@pytest.mark.parametrize("gap", [None, np.nan, np.float32("nan"), pd.NA, pd.NaT])
def test_a_gap_in_given_is_no_evidence(asia, gap):
    assert asia.query("lung", given={"smoke": gap, "xray": "yes"}).allclose(
        asia.query("lung", given={"xray": "yes"})
    )


def test_a_series_is_a_mapping(asia):
    row = ROWS.loc["b"]
    assert asia.query("lung", given=row).allclose(asia.query("lung", given={"xray": "yes"}))
    assert asia.map(given=row).to_dict() == asia.map(given={"xray": "yes"}).to_dict()
    assert asia.log_evidence(given=row) == pytest.approx(asia.log_evidence(given={"xray": "yes"}))


IMPOSSIBLE = pd.DataFrame(
    {"tub": ["yes", "yes", "no"], "either": ["yes", "no", "no"], "smoke": ["yes", "yes", "no"]},
    index=[7, 8, 9],
)


@pytest.mark.parametrize("engine", ["auto", "variable-elimination"])
def test_an_impossible_row_is_named(asia, engine):
    with pytest.raises(ImpossibleEvidence, match=r"row 8 .*tub='yes', either='no'.*impossible='nan'") as said:
        asia.predict(IMPOSSIBLE, "lung", engine=engine)
    assert said.value.row == 8
    assert said.value.evidence == {"tub": "yes", "either": "no"}


@pytest.mark.parametrize("engine", ["auto", "variable-elimination"])
def test_an_impossible_row_does_not_end_a_batch(asia, engine):
    others = asia.predict_proba(IMPOSSIBLE.drop(8), "xray", engine=engine)
    prior = asia.query("xray")
    for impossible, expected in (("nan", [np.nan, np.nan]), ("prior", [prior["yes"], prior["no"]])):
        found = asia.predict_proba(IMPOSSIBLE, "xray", engine=engine, impossible=impossible)
        pd.testing.assert_frame_equal(found.drop(8), others)
        assert found.loc[8].tolist() == pytest.approx(expected, nan_ok=True)
        rows = asia.marginals(IMPOSSIBLE, ["xray"], engine=engine, impossible=impossible)["xray"]
        assert rows.loc[8].tolist() == pytest.approx(expected, nan_ok=True)
    guessed = asia.predict(IMPOSSIBLE, "xray", engine=engine, impossible="nan")
    assert guessed.isna().tolist() == [False, True, False]
    assert asia.predict(IMPOSSIBLE, "xray", engine=engine, impossible="prior")[8] == "no"


def test_a_word_that_is_none_of_the_three_is_refused(asia):
    with pytest.raises(mk.errors.InvalidArgument, match="'nan'"):
        asia.predict(IMPOSSIBLE, "xray", impossible="skip")


def test_numbers_as_states_with_a_gap_stay_readable():
    bn = mk.BayesianNetwork("a->b")
    bn.fit({"a": [0, 0, 1, 1], "b": [0, 0, 1, 1]})
    found = bn.predict([{"a": 0, "b": 0}, {"a": 0, "b": 1}], ["a"], impossible="nan")
    assert found["a"].tolist() == [0, 1]  # the target's own column is not looked at
    assert bn.marginals([{"a": 0, "b": 1}], ["b"], impossible="nan")["b"].isna().all().all()
