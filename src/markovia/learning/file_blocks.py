"""Rows of a data file, block by block, as a model reads them.

A file (CSV, TSV or Parquet, also compressed) is read by DuckDB as text, a block of rows at a time and in their order, so
that a file larger than memory can be predicted from. A cell means the state that prints like it; an empty cell is
missing. Use it for work that needs rows (prediction, scores of rows); counting has its own, faster way
(`markovia.learning.file_sources`).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnknownFormat, UnknownState, UnknownVariable
from markovia.factors.variable import Variable

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 100_000
"""Rows a block, about."""
_READERS = {
    ".csv": "read_csv({}, all_varchar=true, header=true)",
    ".tsv": "read_csv({}, all_varchar=true, header=true, delim='\\t')",
    ".parquet": "read_parquet({})",
}


def file_blocks(
    path: str | Path, variables: Mapping[str, Variable], keep: Sequence[str] = (), block: int = BLOCK
) -> Iterator["tuple[pd.DataFrame, pd.DataFrame]"]:
    """Yield blocks of a file: the columns that are variables, and those to be kept as they are.

    Parameters
    ----------
    path
        A file that ends in .csv, .tsv or .parquet (.csv.gz and .tsv.gz too).
    variables
        The variables to look for; columns of other names are not read.
    keep
        Names of columns that are handed through as text.
    block
        Rows a block, about.

    Raises
    ------
    UnknownVariable
        If a column to be kept is not there, or none of the variables is.
    UnknownState
        For a cell that is no state of its column's variable.
    """
    import duckdb
    import pandas as pd

    scan = _scan(path)
    with duckdb.connect() as connection:
        try:
            columns = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]
        except duckdb.Error as error:
            raise InvalidArgument(f"cannot read {str(path)!r}: {str(error).splitlines()[0]}") from None
        for name in keep:
            if name not in columns:
                raise UnknownVariable(name, columns, str(path))
        found = [name for name in columns if name in variables]
        if not found:
            raise UnknownVariable(columns[0] if columns else "", variables, f"the columns of {str(path)!r}")
        wanted = list(dict.fromkeys([*found, *keep]))
        listed = ", ".join(f"CAST({_quoted(n)} AS VARCHAR) AS {_quoted(n)}" for n in wanted)
        connection.execute(f"SELECT {listed} FROM {scan}")
        vectors = max(1, block // 2048)  # DuckDB's own unit
        while len(part := connection.fetch_df_chunk(vectors)):
            cells = {n: _as_states(part[n], variables[n]) for n in found}
            yield pd.DataFrame(cells, index=part.index), part[list(keep)]


def is_data_file(path: str | Path) -> bool:
    """Say whether a file's name ends like one that can be read as data."""
    return _suffix(path) in _READERS


def _suffix(path: str | Path) -> str:
    name = Path(path).name.casefold()
    for packed in (".gz", ".zst"):
        name = name.removesuffix(packed)
    return Path(name).suffix


def _scan(path: str | Path) -> str:
    if not is_data_file(path):
        raise UnknownFormat(f"{str(path)!r}: data files end in {', '.join(_READERS)} (or .csv.gz)")
    if not Path(path).exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    return _READERS[_suffix(path)].format("'" + str(path).replace("'", "''") + "'")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _as_states(column: "pd.Series[Any]", variable: Variable) -> Any:
    """Return text as a categorical column of the variable's states."""
    import pandas as pd

    known = {str(state): code for code, state in enumerate(variable.states)}
    if all(isinstance(state, bool) for state in variable.states):
        known |= {text.casefold(): code for text, code in known.items()}
    positions, texts = pd.factorize(column)
    lookup = np.array([known.get(str(t), -2) for t in texts] + [-1], dtype=np.int64)
    if (lookup == -2).any():
        raise UnknownState(variable.name, str(texts[int((lookup == -2).argmax())]), variable.states)
    return pd.Categorical.from_codes(lookup[positions], categories=pd.Index(variable.states, dtype=object))
