"""Rows of a data file, block by block, as a model reads them.

DuckDB reads the file as text, a block of rows at a time and in their order, so that a file larger than memory can be
predicted from. A cell means the state that prints like it, or the number it is; what `fit` takes as missing is missing
here, too, unless it is a state. Use it for work that needs rows (prediction, scores of rows); counting has its own, faster
way (`markovia.data.tables.file_sources`).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from markovia.data.tables.coded_cells import MISSING
from markovia.data.tables.data_files import (
    NULLS,
    check_columns,
    connect,
    find_files,
    open_rows,
    quoted_name,
    scan,
    unreadable,
)
from markovia.errors import InvalidArgument, UnknownState, UnknownVariable
from markovia.factors.tables.variable import Variable
from markovia.runtime.libraries import pd

BLOCK = 100_000
"""Rows a block, about."""


def file_blocks(
    path: str | Path | Sequence[str | Path],
    variables: Mapping[str, Variable],
    keep: Sequence[str] = (),
    block: int = BLOCK,
) -> Iterator["tuple[pd.DataFrame, pd.DataFrame]"]:
    """Yield blocks of a file: the columns that are variables, and those to be kept as they are.

    Parameters
    ----------
    path
        A file that ends in .csv, .tsv or .parquet (.csv.gz and .tsv.gz too), or a pattern with `*`.
    variables
        The variables to look for; columns of other names are not read.
    keep
        Names of columns that are handed through as text.
    block
        Rows a block, about.

    Raises
    ------
    UnknownVariable
        If a column to be kept is not there.
    InvalidArgument
        If no column is one of the variables, or the file cannot be read.
    UnknownState
        For a cell that is no state of its column's variable.
    """
    import duckdb

    files, kind = find_files(path)
    table = scan(files, kind, ["all_varchar=true"])
    with connect(ordered=True) as connection:
        try:
            check_columns(connection, files, kind, list(variables))
            relation = connection.sql(f"SELECT * FROM {table}")
            types = dict(zip(relation.columns, (t.id for t in relation.types), strict=True))
            for name in keep:
                if name not in types:
                    raise UnknownVariable(name, types, str(path))
            found = [name for name in types if name in variables]
            if not found:
                shown = ", ".join(map(repr, list(types)[:6])) + (", ..." if len(types) > 6 else "")
                raise InvalidArgument(
                    f"{str(path)!r} has no column of the model's variables; its columns are {shown}"
                )
            listed = [_text_of(n, types[n], f"v{i}") for i, n in enumerate(found)]
            listed += [f"CAST({quoted_name(n)} AS VARCHAR) AS k{i}" for i, n in enumerate(keep)]
            connection.execute(f"SELECT {', '.join(listed)} FROM {table}")
            vectors = max(1, block // 2048)  # DuckDB's own unit
            while len(part := connection.fetch_df_chunk(vectors)):
                nulls = () if kind == "parquet" else NULLS
                cells = {n: _as_states(part[f"v{i}"], variables[n], nulls) for i, n in enumerate(found)}
                kept = part[[f"k{i}" for i in range(len(keep))]].set_axis(list(keep), axis=1)
                yield pd.DataFrame(cells, index=part.index), kept
        except duckdb.Error as error:
            raise unreadable(repr(files[0]), error) from None


def typed_blocks(files: Any) -> Iterator["pd.DataFrame"]:
    """Yield blocks of the rows of data files in their order, numbers as numbers; missing ones are NaN."""
    import duckdb

    opened = open_rows(files)
    with opened.connection as connection:
        try:
            opened.relation.create_view("opened_rows")
            connection.execute("SELECT * FROM opened_rows")
            while len(part := connection.fetch_df_chunk(max(1, BLOCK // 2048))):
                yield part
        except duckdb.Error as error:
            raise unreadable(repr(opened.files[0]), error) from None


def file_columns(path: Any) -> list[str]:
    """Return the names of the columns of data files."""
    import duckdb

    files, kind = find_files(path)
    with connect(ordered=True) as connection:
        try:
            check_columns(connection, files, kind, [])
            return list(connection.sql(f"SELECT * FROM {scan(files, kind, ['all_varchar=true'])}").columns)
        except duckdb.Error as error:
            raise unreadable(repr(files[0]), error) from None


def _text_of(name: str, kind: str, alias: str) -> str:
    """Return a column as text in SQL; the NaN of numbers is null."""
    own = quoted_name(name)
    text = f"CAST({own} AS VARCHAR)"
    if kind in ("float", "double"):
        text = f"CASE WHEN isnan({own}) THEN NULL ELSE {text} END"
    return f"{text} AS {alias}"


def _as_states(column: "pd.Series[Any]", variable: Variable, nulls: Sequence[str]) -> Any:
    """Return text as a categorical column of the variable's states."""
    positions, texts = pd.factorize(column)
    found = variable.positions(texts)
    codes = [MISSING if at is None and text in nulls else at for text, at in zip(texts, found, strict=True)]
    if None in codes:
        raise UnknownState(variable.name, str(texts[codes.index(None)]), variable.states)
    lookup = np.array([*codes, MISSING], dtype=np.int64)
    return pd.Categorical.from_codes(lookup[positions], categories=pd.Index(variable.states, dtype=object))
