"""The same rows in every library and file give the same structure, and far rows are counted or fetched as asked."""

import os
import shutil
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest

import data_backends as backends
import markovia as mk
from markovia.data.tables import reading_mixed as reading_mixed
from markovia.data.tables.reading_mixed import read_mixed
from markovia.data.tables.row_sources import CodedTable

ROWS = pd.DataFrame({c: column.astype(str) for c, column in mk.examples.asia().sample(1500, seed=2).items()})
CODES = ROWS.apply(lambda c: c.map({"no": 0, "yes": 1}))
SEARCHES = ("hill-climb", "pc", "ges")


def several_parquet(frame, folder):
    for k in range(3):
        frame[k::3].to_parquet(folder / f"part{k}.parquet")
    return [folder / f"part{k}.parquet" for k in range(3)]


def learned(method, data, **settings):
    """Return the marked edges that a method learns."""
    found = mk.learn_structure(data, method, **settings)
    return {(frozenset((a, b)), text) for a, b, text in found._listed()}, found


SOURCES = [
    backends.as_mapping, backends.as_list, backends.as_pandas_objects, backends.as_structured, backends.as_polars,
    backends.as_arrow, backends.as_polars_lazy, backends.as_duckdb, backends.as_csv, backends.as_compressed_csv,
    backends.as_parquet, backends.as_several_files, several_parquet,
]  # fmt: skip


@cache
def from_rows(method):
    return learned(method, ROWS)


OTHERS = [(m, s) for m in ("pc", "ges") for s in (backends.as_polars, several_parquet)]


@pytest.mark.parametrize(("method", "source"), [*(("hill-climb", s) for s in SOURCES), *OTHERS])
def test_every_source_gives_the_same_structure(method, source, tmp_path):
    edges, found = learned(method, source(ROWS, tmp_path))
    expected, near = from_rows(method)
    assert found.nodes == near.nodes
    assert edges == expected
    if near.score is not None:
        assert found.score == pytest.approx(near.score)


@pytest.mark.parametrize(
    ("method", "source"),
    [
        ("hill-climb", backends.as_polars_lazy),
        ("hill-climb", backends.as_duckdb),
        ("hill-climb", backends.as_csv),
        ("pc", several_parquet),
        ("ges", backends.as_parquet),
    ],
)
def test_rows_counted_where_they_are_give_the_same_structure(method, source, tmp_path):
    columns = list(ROWS.columns)[1:5]
    edges, found = learned(method, source(ROWS, tmp_path), in_memory=False, names=columns)
    expected, _ = learned(method, ROWS, names=columns)
    assert not isinstance(found.data.table, CodedTable)
    assert edges == expected


def test_a_matrix_gives_the_same_structure_with_numbered_names():
    found = mk.learn_structure(CODES.to_numpy())
    named = mk.learn_structure(CODES)
    assert found.score == pytest.approx(named.score)
    assert [(int(a[1:]), int(b[1:])) for a, b in found.edges] == [
        (list(CODES).index(a), list(CODES).index(b)) for a, b in named.edges
    ]


def test_a_fitted_network_comes_from_the_rows_of_the_search(tmp_path):
    near = mk.learn_structure(ROWS).fit()
    for settings in ({}, {"in_memory": False}, {"in_memory": True}):
        assert mk.learn_structure(backends.as_parquet(ROWS, tmp_path), **settings).fit().allclose(near)


# -- what is fetched -------------------------------------------------------------------------------------------------


def test_small_files_are_fetched_and_large_ones_counted_in_place(tmp_path, monkeypatch):
    path = backends.as_parquet(ROWS, tmp_path)
    assert isinstance(read_mixed(path).table, CodedTable)
    assert not isinstance(read_mixed(path, in_memory=False).table, CodedTable)
    monkeypatch.setattr(reading_mixed, "HELD_BYTES", 1000)
    large = read_mixed(path)
    assert not isinstance(large.table, CodedTable)
    assert large.total == 1500
    forced = read_mixed(path, in_memory=True)
    assert isinstance(forced.table, CodedTable)
    assert forced.total == 1500
    assert forced.n_rows < 400


def test_few_distinct_rows_are_fetched_however_many_rows_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(reading_mixed, "HELD_BYTES", 2000)
    mixed = read_mixed(backends.as_parquet(ROWS, tmp_path), names=["smoke", "lung"])
    assert isinstance(mixed.table, CodedTable)
    assert mixed.n_rows == 4
    assert mixed.total == 1500
    assert mixed.repeats


def test_rows_that_seldom_repeat_are_fetched_one_by_one(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 4, (300, 12)), columns=[f"v{i}" for i in range(12)])
    mixed = read_mixed(backends.as_parquet(frame, tmp_path))
    assert mixed.n_rows == 300
    assert mixed.table.weights is None
    repeated = read_mixed(backends.as_parquet(ROWS, tmp_path))
    assert repeated.repeats
    assert repeated.spread().table.weights is None
    assert repeated.spread().n_rows == 1500


def test_only_wanted_columns_decide_whether_rows_are_fetched(tmp_path):
    path = backends.as_parquet(ROWS.assign(height=np.linspace(1, 2, len(ROWS))), tmp_path)
    assert read_mixed(path).kinds[-1] == "continuous"
    assert read_mixed(path, names=list(ROWS.columns)).discrete
    far = read_mixed(path, names=["smoke", "lung"], in_memory=False)
    assert not isinstance(far.table, CodedTable)
    mixed = read_mixed(path, names=["height", "smoke"])
    assert mixed.kinds == ("continuous", "discrete")
    np.testing.assert_allclose(mixed.matrix[:, 0], np.linspace(1, 2, len(ROWS)))


@pytest.mark.parametrize(
    "source",
    [backends.as_csv, backends.as_parquet, backends.as_duckdb, backends.as_polars_lazy, backends.as_arrow],
)
def test_kinds_of_columns_do_not_depend_on_where_rows_live(source, tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "measured": rng.normal(size=40).round(3),
            "whole": rng.integers(0, 3, 40).astype(float),
            "number": rng.integers(0, 3, 40),
            "word": rng.choice(["x", "y"], 40),
        }
    )
    frame.loc[3, "measured"] = np.nan
    mixed = read_mixed(source(frame, tmp_path))
    assert mixed.kinds == ("continuous", "discrete", "discrete", "discrete")
    assert mixed.missing()["measured"] == 1
    np.testing.assert_allclose(mixed.matrix[:, 0], frame["measured"])
    assert read_mixed(source(frame, tmp_path), continuous=False, names=["whole", "word"]).discrete
    numbers = read_mixed(source(frame, tmp_path), continuous=["number", "measured"])
    assert numbers.kinds == ("continuous", "discrete", "continuous", "discrete")


def test_weights_of_far_rows_are_a_column(tmp_path):
    times = np.arange(len(ROWS)) % 3
    path = backends.as_parquet(ROWS.assign(times=times.astype(float)), tmp_path)
    expected = mk.learn_structure(ROWS, weights=times)
    for settings in ({}, {"in_memory": False}):
        found = mk.learn_structure(path, weights="times", **settings)
        assert found.nodes == list(ROWS.columns)
        assert found.score == pytest.approx(expected.score)
        assert found.edges == expected.edges
    with pytest.raises(mk.errors.InvalidArgument, match="given by name"):
        mk.learn_structure(path, weights=times)


def test_far_rows_that_miss_cells_are_dropped_where_they_are(tmp_path):
    holes = ROWS.astype(object).copy()
    holes.loc[:99, "lung"] = None
    path = backends.as_parquet(holes, tmp_path)
    expected = mk.learn_structure(ROWS[100:])
    for settings in ({}, {"in_memory": False}):
        with pytest.raises(mk.errors.InvalidArgument, match="100 in 'lung'"):
            mk.learn_structure(path, **settings)
        found = mk.learn_structure(path, missing="drop", **settings)
        assert found.score == pytest.approx(expected.score)
        assert "100 of 1,500 rows" in found.notes[0]


def test_the_bootstrap_takes_far_rows(tmp_path):
    sure = mk.bootstrap_structure(
        backends.as_parquet(ROWS, tmp_path), replicates=5, seed=0, names=["smoke", "lung", "bronc"]
    )
    assert sure.adjacent("smoke", "bronc") == 1.0


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        mk.learn_structure(tmp_path / "none.csv")
    (tmp_path / "bad.parquet").write_text("no parquet")
    with pytest.raises(mk.MarkoviaError, match=r"bad\.parquet"):
        mk.learn_structure(tmp_path / "bad.parquet")


# -- clusters --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("in_memory", [None, False])
def test_dask_frames_give_the_same_structure(in_memory):
    dask = pytest.importorskip("dask.dataframe")
    columns = ["smoke", "lung", "bronc"]
    frame = dask.from_pandas(ROWS, npartitions=3)
    found = mk.learn_structure(frame, names=columns, in_memory=in_memory)
    assert found.edges == mk.learn_structure(ROWS, names=columns).edges
    mixed = dask.from_pandas(ROWS.assign(height=np.linspace(1, 2, len(ROWS))), npartitions=2)
    mixed = read_mixed(mixed, names=["height", "smoke"])
    assert mixed.kinds == ("continuous", "discrete")
    assert mixed.matrix.sum() == pytest.approx(1.5 * len(ROWS))


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Spark needs Java, which is not installed")
    builder = sql.SparkSession.builder.master("local[2]").appName("markovia tests")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.pyspark.python": sys.executable,
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        pytest.skip(f"Spark does not start here: {str(error).splitlines()[0]}")
    yield session
    session.stop()


@pytest.mark.slow
def test_spark_tables_give_the_same_structure(spark, tmp_path):
    columns = ["smoke", "lung", "bronc"]
    path = tmp_path / "rows.parquet"
    ROWS.assign(height=np.linspace(1, 2, len(ROWS))).to_parquet(path)
    frame = spark.read.parquet(str(path))
    expected = mk.learn_structure(ROWS, names=columns)
    for in_memory in (None, False):
        found = mk.learn_structure(frame, names=columns, in_memory=in_memory)
        assert found.edges == expected.edges
        assert found.score == pytest.approx(expected.score)
    assert read_mixed(frame, names=["height", "smoke"]).kinds == ("continuous", "discrete")
