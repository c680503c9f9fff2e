"""The same rows in every library that data may come from; used by the tests of counting and fitting."""

import numpy as np
import pandas as pd
import pytest


def rows(n=400, seed=0, gaps=True):
    """Return a frame with strings, integers, booleans, nullable integers and weights, some cells missing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "word": rng.choice(["pear", "apple", "Fig"], n, p=[0.5, 0.3, 0.2]),
            "digit": rng.choice([3, 1, 10, -2], n),
            "flag": rng.random(n) < 0.3,
            "grade": rng.choice([1.0, 2.0, 3.0], n),
            "load": rng.integers(1, 5, n) / 2,
        }
    )
    if gaps:
        frame["word"] = frame["word"].where(rng.random(n) > 0.1, None)
        frame["grade"] = frame["grade"].where(rng.random(n) > 0.1, np.nan)
    return frame


def cells(frame):
    """Return the columns as lists of plain Python values, None where a cell is missing."""
    return {
        c: [None if pd.isna(v) else v.item() if isinstance(v, np.generic) else v for v in frame[c]]
        for c in frame
    }


def as_mapping(frame, folder):
    return cells(frame)


def as_list(frame, folder):
    columns = cells(frame)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def as_pandas(frame, folder):
    return frame


def as_pandas_objects(frame, folder):
    return pd.DataFrame(cells(frame), dtype=object)


def as_pandas_nullable(frame, folder):
    return frame.convert_dtypes()


def as_structured(frame, folder):
    kinds = [(c, object if frame[c].dtype.kind not in "biuf" else frame[c].dtype) for c in frame]
    table = np.empty(len(frame), dtype=kinds)
    for name, column in cells(frame).items():
        table[name] = [np.nan if v is None and table.dtype[name].kind == "f" else v for v in column]
    return table


def as_polars(frame, folder):
    pl = pytest.importorskip("polars")
    return pl.DataFrame(cells(frame))


def as_polars_categorical(frame, folder):
    pl = pytest.importorskip("polars")
    return pl.DataFrame(cells(frame)).with_columns(pl.col("word").cast(pl.Categorical))


def as_polars_lazy(frame, folder):
    return as_polars(frame, folder).lazy()


def as_arrow(frame, folder):
    pa = pytest.importorskip("pyarrow")
    return pa.table(cells(frame))


def as_duckdb(frame, folder):
    import duckdb

    duckdb_frame = as_arrow(frame, folder)  # noqa: F841
    return duckdb.connect().sql("SELECT * FROM duckdb_frame")


def as_csv(frame, folder):
    path = folder / "rows.csv"
    frame.to_csv(path, index=False)
    return path


def as_compressed_csv(frame, folder):
    path = folder / "rows.csv.gz"
    frame.to_csv(path, index=False)
    return str(path)


def as_tsv(frame, folder):
    path = folder / "rows.tsv"
    frame.to_csv(path, index=False, sep="\t")
    return path


def as_parquet(frame, folder):
    pytest.importorskip("pyarrow")
    path = folder / "rows.parquet"
    frame.to_parquet(path)
    return path


def as_several_files(frame, folder):
    half = len(frame) // 2
    for i, part in enumerate((frame[:half], frame[half:])):
        part.to_csv(folder / f"part{i}.csv", index=False)
    return str(folder / "part*.csv")


def as_list_of_files(frame, folder):
    as_several_files(frame, folder)
    return [folder / "part0.csv", folder / "part1.csv"]


EAGER = [
    as_mapping, as_list, as_pandas, as_pandas_objects, as_pandas_nullable, as_structured, as_polars,
    as_polars_categorical, as_arrow,
]  # fmt: skip
LAZY = [
    as_polars_lazy, as_duckdb, as_csv, as_compressed_csv, as_tsv, as_parquet, as_several_files, as_list_of_files,
]  # fmt: skip
