"""Sequences of every form become the same flat array, and wrong ones are named."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from markovia.data.sequences.sequences import read_inputs, read_sequences
from markovia.errors import InvalidArgument, UnknownVariable

A, B = np.arange(6.0).reshape(3, 2), np.array([[7.0, 8.0]])
LONG = pd.DataFrame({"who": ["b", "a", "b", "b"], "x": [0.0, 7.0, 2.0, 4.0], "y": [1.0, 8.0, 3.0, 5.0]})


@pytest.mark.parametrize(
    "found",
    [
        read_sequences([A, B]),
        read_sequences((A.tolist(), B.tolist())),
        read_sequences(np.vstack([A, B]), [3, 1]),
        read_sequences(LONG, by="who"),
        read_sequences(pl.from_pandas(LONG), by="who", columns=["x", "y"]),
        read_sequences([LONG[LONG.who == w][["x", "y"]] for w in "ba"]),
    ],
)
def test_every_form_is_the_same_flat_array(found):
    np.testing.assert_array_equal(found.values, [*A, *B])
    assert found.offsets.tolist() == [0, 3, 4]
    first, second = found.split(found.values)
    np.testing.assert_array_equal(first, A)
    np.testing.assert_array_equal(second, B)


def test_one_array_is_one_sequence_and_numbers_are_steps():
    assert read_sequences(A).lengths.tolist() == [3]
    assert read_sequences([1, 2, 3]).values.shape == (3, 1)
    assert read_sequences([[1, 2], [3]]).lengths.tolist() == [2, 1]  # a list of lists of symbols
    assert read_sequences(np.zeros((2, 5, 3))).lengths.tolist() == [5, 5]
    assert read_sequences(["rain", "sun"]).values.dtype == object
    assert read_sequences(LONG, by="who").names == ("b", "a")


@pytest.mark.parametrize(
    ("data", "more", "said"),
    [
        ([A, np.zeros((0, 2))], {}, "sequence 1 has no steps"),
        ([A, np.zeros((2, 3))], {}, "sequence 1 has 3 columns where sequence 0 has 2"),
        (A, {"lengths": [2, 2]}, "add up to 4, but there are 3"),
        (A, {"lengths": [3, 0]}, "sequence 1 has no steps"),
        (A, {"lengths": [1.5, 1.5]}, "whole numbers"),
        ([A, B], {"lengths": [3, 1]}, "a list has one array a sequence"),
        ([], {}, "no steps"),
        (7, {}, "not int"),
        (LONG.assign(who=["b", None, "b", "b"]), {"by": "who"}, "row 1 has no 'who'"),
        (LONG, {"by": "who", "lengths": [4]}, "not both"),
        (np.zeros((3, 0)), {}, "no entries"),
    ],
)
def test_what_is_wrong_is_said_with_the_sequence(data, more, said):
    with pytest.raises(InvalidArgument, match=said):
        read_sequences(data, **more)


def test_an_unknown_column_gets_the_nearest_one():
    with pytest.raises(UnknownVariable, match="who"):
        read_sequences(LONG, by="whoo")


def test_numbers_are_checked_with_their_place():
    assert np.isnan(read_sequences([[1.0, None], [2.0]]).numbers()).tolist() == [[False], [True], [False]]
    with pytest.raises(InvalidArgument, match="step 1 of sequence 0 has a missing value"):
        read_sequences([[1.0, None], [2.0]]).numbers(missing=False)
    with pytest.raises(InvalidArgument, match="step 0 of sequence 1 has an infinite value"):
        read_sequences([[1.0], [np.inf]]).numbers()
    with pytest.raises(InvalidArgument, match="step 1 of sequence 0 has 'b', which is no number"):
        read_sequences([[1.0, "b"]]).numbers()


def test_files_are_sequences(tmp_path):
    LONG.to_csv(tmp_path / "all.csv", index=False)
    assert read_sequences(tmp_path / "all.csv", by="who").lengths.tolist() == [3, 1]
    assert read_sequences([str(tmp_path / "all.csv")] * 2, columns=["x"]).lengths.tolist() == [4, 4]


def test_dates_put_the_steps_of_each_sequence_in_order():
    frame = pd.DataFrame(
        {
            "who": ["b", "a", "b", "a"],
            "when": pd.to_datetime(["2024-03-02", "2024-01-02", "2024-03-01", "2024-01-01"]),
            "x": [4.0, 2.0, 3.0, 1.0],
        }
    )
    found = read_sequences(frame, by="who")
    assert (found.names, found.columns, found.values[:, 0].tolist()) == (
        ("b", "a"),
        ("x",),
        [3.0, 4.0, 1.0, 2.0],
    )
    # zones change nothing, and a column that is asked for is a column
    zoned = frame.assign(when=frame["when"].dt.tz_localize("UTC"))
    assert read_sequences(zoned, by="who").values.tolist() == found.values.tolist()
    assert read_sequences(frame, by="who", columns=["x"]).values[:, 0].tolist() == [4.0, 3.0, 2.0, 1.0]
    alone = read_sequences(frame.drop(columns="who"))
    assert alone.single
    assert alone.values[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0]
    pieces = read_sequences(frame.drop(columns="who"), lengths=[2, 2])
    assert pieces.values[:, 0].tolist() == [2.0, 4.0, 1.0, 3.0]


def test_dates_that_do_not_tell_an_order_are_refused():
    frame = pd.DataFrame({"when": pd.to_datetime(["2024-01-01", "2024-01-01"]), "x": [1.0, 2.0]})
    with pytest.raises(
        InvalidArgument, match=r"row 1 has the date 2024-01-01.* of another step of its sequence"
    ):
        read_sequences(frame)
    with pytest.raises(InvalidArgument, match="row 1 has no date in 'when'"):
        read_sequences(frame.assign(when=[frame["when"][0], pd.NaT]))
    with pytest.raises(InvalidArgument, match="'when' and 'then' both hold dates"):
        read_sequences(frame.assign(then=frame["when"]))


def test_sequences_that_were_read_are_taken_as_they_are():
    read = read_sequences([[1.0, 2.0], [3.0]])
    assert read_sequences(read) is read
    for how in ({"lengths": [2, 1]}, {"by": "who"}):
        with pytest.raises(InvalidArgument, match="these sequences were read before"):
            read_sequences(read, **how)


def test_inputs_belong_to_the_steps_of_their_sequences():
    rows = read_sequences([[1.0, 2.0], [3.0]])
    for given in ([[5.0, 6.0], [7.0]], np.array([5.0, 6.0, 7.0]), read_sequences([[5.0, 6.0], [7.0]])):
        assert read_inputs(given, rows).tolist() == [[5.0], [6.0], [7.0]]
    named = pd.DataFrame({"who": ["v", "u", "v"], "x": [1.0, 3.0, 2.0]})
    drivers = pd.DataFrame({"who": ["v", "v", "u"], "u": [5.0, 6.0, 7.0]})
    assert read_inputs(drivers, read_sequences(named, by="who"), by="who").tolist() == [[5.0], [6.0], [7.0]]
    with pytest.raises(InvalidArgument, match="inputs= has 4 steps, but the sequences have 3"):
        read_inputs(np.ones(4), rows)
    with pytest.raises(InvalidArgument, match="those of sequence 0 do not"):
        read_inputs([[5.0], [6.0, 7.0]], rows)
    with pytest.raises(InvalidArgument, match="step 1 of sequence 0 has a missing value"):
        read_inputs([[5.0, np.nan], [7.0]], rows)
