"""Batches from wherever rows are: each row once an epoch, the same order for the same seed, and no thread left behind."""

import threading

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

from markovia.data import batches as module
from markovia.data.batches import batches
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.optimise.row_batches import RowBatches
from markovia.optimise.training import Training

FRAME = pd.DataFrame({"a": np.arange(23.0), "b": -np.arange(23.0), "name": list("x" * 23)})


def blocks():
    for at in range(0, 23, 5):
        yield {"a": np.arange(at, min(at + 5, 23)), "b": -np.arange(at, min(at + 5, 23))}


def rows_of(made, epoch=0):
    """Return the rows of an epoch without those that only fill up, and check that columns stay together."""
    found = []
    for batch in made.epoch(epoch):
        assert np.array_equal(batch.rows["a"], -batch.rows["b"])
        found.append(batch.rows["a"][batch.weight > 0])
    return np.concatenate(found)


@pytest.mark.parametrize("seed", [None, 3])
def test_blocks_give_each_row_once_and_the_last_batch_is_filled_up_with_weight_zero(seed):
    made = batches(blocks, 4, seed=seed, pool=9)
    every = list(made.epoch(0))
    assert [len(b.weight) for b in every] == [4] * 6
    assert [b.weight.sum() for b in every] == [4, 4, 4, 4, 4, 3]
    found = rows_of(made)
    assert sorted(found.tolist()) == list(range(23))
    if seed is None:
        assert found.tolist() == list(range(23))


def test_the_same_seed_and_epoch_give_the_same_order_and_rows_are_mixed_across_blocks():
    made = batches(blocks, 4, seed=3, pool=9)
    first = rows_of(made)
    assert np.array_equal(first, rows_of(batches(blocks, 4, seed=3, pool=9)))
    assert not np.array_equal(first, rows_of(made, 1))
    assert not np.array_equal(first, rows_of(batches(blocks, 4, seed=4, pool=9)))
    assert {int(a) // 5 for a in first[:5]} > {0}  # rows of the second block before the first is through
    whole = rows_of(batches(blocks, 4, seed=3, pool=1000))
    assert abs(np.corrcoef(whole, np.arange(23))[0, 1]) < 0.5


def test_files_are_read_in_blocks_with_the_columns_that_are_asked_for(tmp_path):
    path = tmp_path / "rows.csv"
    FRAME.to_csv(path, index=False)
    assert rows_of(batches(path, 4, columns=["a", "b"])).tolist() == list(range(23))
    FRAME[["a", "b"]].to_parquet(tmp_path / "rows.parquet")
    parquet = batches(str(tmp_path / "*.parquet"), 6, seed=1)
    assert sorted(rows_of(parquet).tolist()) == list(range(23))
    assert parquet.digest != batches(str(tmp_path / "*.parquet"), 6, seed=2).digest
    with pytest.raises(InvalidArgument, match="'name' has cells that are not numbers"):
        next(batches(path, 4).epoch(0))
    with pytest.raises(UnknownVariable, match="'c'"):
        next(batches(path, 4, columns=["c"]).epoch(0))


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
def test_frames_and_arrays_stay_in_memory(frame):
    made = batches(frame, 6, seed=0, columns=["a", "b"])
    assert isinstance(made, RowBatches)
    assert made.data["b"].tolist() == FRAME["b"].tolist()
    assert isinstance(batches({"x": np.zeros((7, 2))}, 3), RowBatches)
    with pytest.raises(InvalidArgument, match="function that returns a new one"):
        batches(iter([1]), 3)
    with pytest.raises(InvalidArgument, match="size= is a whole number, 1 or more, not 0"):
        batches(FRAME, 0)


def test_what_goes_wrong_while_reading_is_told_and_whoever_stops_asking_stops_the_thread():
    def broken():
        yield {"a": np.zeros(4)}
        raise OSError("the disk is gone")

    reading = batches(broken, 2).epoch(0)
    next(reading)
    next(reading)
    with pytest.raises(OSError, match="the disk is gone"):
        next(reading)
    closed = []

    def endless():
        try:
            while True:
                yield {"a": np.zeros(4)}
        finally:
            closed.append(True)

    reading = batches(endless, 2).epoch(0)
    next(reading)
    assert any(t.name == "markovia-batches" for t in threading.enumerate())
    reading.close()
    assert not any(t.name == "markovia-batches" for t in threading.enumerate())
    assert closed == [True]
    assert module.AHEAD >= 1


def test_training_on_a_file_is_training_on_its_rows(tmp_path):
    path = tmp_path / "rows.parquet"
    table = pd.DataFrame({"a": np.arange(24.0) / 24, "b": 2 * np.arange(24.0) / 24})
    table.to_parquet(path)

    def loss(w, memory, key, batch):
        error = (batch.rows["b"] - w * batch.rows["a"]) ** 2
        return jnp.sum(batch.weight * error) / batch.weight.sum(), memory

    settings = Training(epochs=5, learning_rate=0.1, seed=0, precision="float64")
    streamed = settings.run(loss, 0.0, batches(path, 6))
    here = settings.run(loss, 0.0, batches({n: table[n].to_numpy() for n in "ab"}, 6))
    np.testing.assert_allclose(streamed.parameters, here.parameters, rtol=1e-12)
    assert streamed.steps == here.steps == 20
