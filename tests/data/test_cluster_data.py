"""Rows on a cluster: two Dask workers in processes of their own, and a local Spark session."""

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from data_backends import rows
from markovia.data.tables.reading import read_data
from markovia.data.tables.row_sources import CodedTable

NAMES = ["word", "digit", "flag", "grade"]


@pytest.fixture(scope="module")
def dask_client():
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Spark needs Java, which is not installed")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.pyspark.python": sys.executable,
        "spark.log.level": "ERROR",
    }
    builder = sql.SparkSession.builder.master("local[2]").appName("markovia tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        pytest.skip(f"Spark does not start here: {str(error).splitlines()[0]}")
    yield session
    session.stop()


def check(data, frame):
    """Compare everything a source is asked with what the rows in memory say."""
    far, near = read_data(data, NAMES, weights="load"), read_data(frame, NAMES, weights="load")
    assert {n: v.states for n, v in far.variables.items()} == {n: v.states for n, v in near.variables.items()}
    assert far.n_rows == near.n_rows
    assert np.isclose(far.total, near.total)
    assert far.missing() == near.missing()
    scopes = [["word", "digit"], ["flag", "grade"], ["grade", "word", "flag"], []]
    for a, b in zip(far.counts(scopes), near.counts(scopes), strict=True):
        assert np.allclose(a, b)
    assert np.isclose(far.without_gaps().total, frame.dropna()["load"].sum())
    here = far.in_memory()
    assert isinstance(here, CodedTable)
    assert np.allclose(here.counts([NAMES])[0], near.counts([NAMES])[0])
    fitted = mk.BayesianNetwork("word->digit; word->flag; grade->flag").fit(data, missing="drop")
    expected = mk.BayesianNetwork("word->digit; word->flag; grade->flag").fit(frame, missing="drop")
    for name in NAMES:
        assert np.allclose(fitted[name].values, expected[name].values)
    with pytest.raises(mk.errors.UnknownState, match="unknown state 'Fig' for 'word'"):
        mk.counts(data, "word", states={"word": ["apple", "pear"]})
    with pytest.raises(mk.errors.InvalidArgument, match="'load' holds numbers that are not integers"):
        mk.counts(data, "load")


@pytest.mark.slow
def test_two_dask_workers_count_like_one_process(dask_client):
    dask_frames = pytest.importorskip("dask.dataframe")
    frame = rows()
    assert len(dask_client.scheduler_info(n_workers=-1)["workers"]) == 2
    check(dask_frames.from_pandas(frame, npartitions=4), frame)


@pytest.mark.slow
def test_dask_categories_are_states_in_their_order(dask_client):
    dask_frames = pytest.importorskip("dask.dataframe")
    kind = pd.CategoricalDtype(["lo", "mid", "hi"])
    frame = pd.DataFrame({"a": pd.Series(["hi", "lo", None, "hi"], dtype=kind)})
    found = mk.counts(dask_frames.from_pandas(frame, npartitions=2), "a")
    assert found.variables[0].states == ("lo", "mid", "hi")
    assert found.values.tolist() == [1, 0, 2]


@pytest.mark.slow
def test_a_spark_session_counts_like_one_process(spark):
    frame = rows()
    columns = {
        c: [None if pd.isna(v) else v.item() if isinstance(v, np.generic) else v for v in frame[c]]
        for c in frame
    }
    listed = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    kinds = "word string, digit bigint, flag boolean, grade double, load double"
    check(spark.createDataFrame(listed, schema=kinds), frame)


@pytest.mark.slow
def test_many_tables_are_counted_in_batches_on_a_spark_session(spark, monkeypatch):
    import markovia.data.tables.frame_sources as frame_sources
    import markovia.data.tables.grouped_source as grouped_source

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (40, 8)), columns=[f"v{i}" for i in range(8)])
    scopes = [[f"v{i}", f"v{(i + 1) % 8}"] for i in range(8)]
    widths = []
    grouped = frame_sources._spark_groups

    def watched(rows, sets, most, weighted):
        found = grouped(rows, sets, most, weighted)
        columns = len({n for one in sets for n in one})
        if len(sets) > 1:
            assert min(most, sum(map(len, found))) * columns <= 64
        widths.append(columns)
        return found

    monkeypatch.setattr(frame_sources, "_spark_groups", watched)
    monkeypatch.setattr(grouped_source, "BATCH_CELLS", 64)
    monkeypatch.setattr(frame_sources.LazySource, "_most_columns", 5)
    far = read_data(spark.createDataFrame(frame), scopes=scopes)
    for a, b in zip(far.counts(scopes), read_data(frame).counts(scopes), strict=True):
        assert np.array_equal(a, b)
    assert max(widths) <= 5
    assert len(widths) > 2
