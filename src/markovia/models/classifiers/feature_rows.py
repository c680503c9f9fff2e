"""Rows that estimators are given, as numbers or column by column, and one sentence for each way in which they are none.

Rows that are fine are looked at once; only after a failure is it found out which cell of which column is to blame. Words of
scikit-learn stand where its own checks of estimators look for them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from markovia.errors import DuplicateName, InvalidArgument, MarkoviaError
from markovia.runtime.array_types import Array, Ints

TEXT = "code it as numbers, or leave the column out"
ROWS = "rows are an array, a frame, or a list of equally long lists of numbers"


class NoNumber(InvalidArgument, TypeError):
    """A cell that is neither a number nor text."""


def numbers(
    estimator: Any,
    features: Any,
    *,
    reset: bool,
    sparse: bool = False,
    gaps: str | None = None,
    text: str = TEXT,
    unlearned: bool = False,
) -> Any:
    """Return rows as a table of finite float64, NaN for missing cells; CSR for sparse ones where they are accepted.

    Parameters
    ----------
    estimator, features, reset
        Whose rows they are, the rows, and whether their columns are the estimator's from now on.
    sparse
        Whether sparse matrices are accepted.
    gaps
        What to do about missing cells where every cell is needed; None where cells may be missing.
    text
        What to do about a column of text.
    unlearned
        Whether a column without a single cell may be learned from; otherwise such a column is refused when `reset`.
    """
    try:
        rows = validate_data(
            estimator,
            features,
            reset=reset,
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,
            accept_sparse="csr" if sparse else False,
        )
    except (TypeError, ValueError) as error:
        raise _explained(features, error, text) from None
    cells = rows if isinstance(rows, np.ndarray) else rows.data
    with np.errstate(over="ignore", invalid="ignore"):
        total = cells.sum()
    if np.isfinite(total):
        return rows
    infinite, missing = np.isinf(cells), np.isnan(cells)
    if infinite.any():
        i, name = _place(estimator, rows, infinite)
        raise InvalidArgument(
            f"row {i} of X is infinite (inf) in the column {name!r}; give a number"
            + (", or NaN where it is missing" if gaps is None else "")
        )
    if gaps is not None:
        check_gaps(estimator, rows, missing, gaps)
    if reset and not unlearned and isinstance(rows, np.ndarray) and (empty := missing.all(axis=0)).any():
        name = feature_names(estimator)[int(np.argmax(empty))]
        raise InvalidArgument(f"all cells of the column {name!r} are missing; leave it out")
    return rows


def columns(estimator: Any, features: Any, *, reset: bool) -> list[Any]:
    """Return the features column by column, as arrays or pandas Series that keep their types."""
    if hasattr(features, "to_pandas"):
        features = features.to_pandas()
    framed = hasattr(features, "iloc")
    if framed:
        check_table(features)
        check_names(features)
    try:
        if not framed:
            cells = _as_objects(features)
            features = check_array(cells, dtype=None, ensure_all_finite="allow-nan", estimator=estimator)
        elif not all(features.shape):
            lack = "sample(s)" if not len(features) else "feature(s)"
            raise InvalidArgument(
                f"Found array with 0 {lack} (shape={features.shape}) while a minimum of 1 is required."
            )
        validate_data(estimator, features, reset=reset, skip_check_array=True)
    except (TypeError, ValueError) as error:
        raise _explained(features, error, None) from None
    if framed:
        return [features.iloc[:, k] for k in range(features.shape[1])]
    return list(np.ascontiguousarray(features.T))  # strided columns cost more than the copy


def category_codes(estimator: Any, members: Sequence[str], cells: list[Any], *, reset: bool) -> Ints:
    """Return places of symbols in the estimator's `categories_`, which `reset` finds out; -1 for missing cells."""
    found = []
    for name, column in zip(members, cells, strict=True):
        listed = [None if c is None or c != c else c for c in np.asarray(column).tolist()]
        if reset:
            strange = next((c for c in listed if isinstance(c, dict | list | set)), None)
            if strange is not None:
                raise InvalidArgument(f"the column {name!r} holds {strange!r}; a symbol is text or a number")
            there = {c for c in listed if c is not None}
            if not there:
                raise InvalidArgument(f"all cells of the column {name!r} are missing")
            try:
                estimator.categories_[name] = sorted(there)
            except TypeError:
                raise InvalidArgument(
                    f"the column {name!r} mixes text and numbers; make all of it text: column.astype(str)"
                ) from None
        place = {symbol: i for i, symbol in enumerate(estimator.categories_[name])}
        codes = np.array([-1 if c is None else place.get(c, -2) for c in listed], dtype=np.int64)
        if (codes == -2).any():
            row = int(np.argmax(codes == -2))
            shown = ", ".join(map(repr, estimator.categories_[name][:12]))
            raise InvalidArgument(
                f"row {row} has {listed[row]!r} in the column {name!r}, which fit has not seen; there were {shown}"
            )
        found.append(codes)
    return np.column_stack(found)


def check_gaps(estimator: Any, rows: Any, missing: Any, cure: str) -> None:
    """Raise where cells are missing, and name the first."""
    if missing.any():
        i, name = _place(estimator, rows, missing)
        raise InvalidArgument(
            f"row {i} of X misses {name!r} (NaN), as do {int(missing.sum()) - 1:,} other cells; {cure}"
        )


def check_counts(estimator: Any, rows: Any, what: str, *, ones: bool = False, cure: str = "") -> None:
    """Raise for cells that are no counts, or with `ones` neither 0 nor 1; missing ones are let by."""
    cells = rows if isinstance(rows, np.ndarray) else rows.data
    with np.errstate(invalid="ignore"):
        low = cells < 0.0
        wrong = low if low.any() else (cells != np.floor(cells)) | (cells > (1.0 if ones else np.inf))
    wrong = wrong & ~np.isnan(cells)
    if wrong.any():
        i, name = _place(estimator, rows, wrong)
        strange = cells[wrong][0]
        sign = "Negative values in data: " if strange < 0.0 else ""
        raise InvalidArgument(
            f"{sign}row {i} of X holds {strange:g} in the column {name!r}; {what} "
            f"{'are 0 or 1' if ones else 'are whole numbers, 0 or more'}{cure}"
        )


def check_room(what: str, k: int, rows: Array) -> None:
    """Raise where there are more clusters or components than rows."""
    if k > len(rows):
        raise InvalidArgument(f"{what}={k} is more than the n_samples={len(rows)} rows of X; ask for fewer")


def feature_names(estimator: Any) -> list[str]:
    """Return the names of the fitted columns; x0, x1, ... where they have none."""
    named = getattr(estimator, "feature_names_in_", None)
    return [f"x{k}" for k in range(estimator.n_features_in_)] if named is None else [str(n) for n in named]


def check_names(features: Any) -> None:
    """Raise where two columns of a frame have the same name."""
    if hasattr(features, "iloc") and features.ndim == 2 and features.columns.has_duplicates:
        twice = features.columns[features.columns.duplicated()][0]
        raise DuplicateName(f"two columns of X are called {twice!r}; rename one")


def check_table(features: Any) -> None:
    """Raise for what is no table of rows and columns."""
    if features is None or isinstance(features, str | bytes | dict | set) or np.isscalar(features):
        raise InvalidArgument(f"X is {_shown(features)}; {ROWS}")
    if (
        isinstance(features, list | tuple)
        and features
        and all(isinstance(row, list | tuple | np.ndarray) for row in features)
    ):
        lengths = [len(row) for row in features]
        uneven = next((i for i, n in enumerate(lengths) if n != lengths[0]), None)
        if uneven is not None:
            raise InvalidArgument(
                f"row {uneven} of X has length {lengths[uneven]}, and row 0 length {lengths[0]}; {ROWS}"
            )
    shape = np.shape(features) if not hasattr(features, "shape") else features.shape
    if len(shape) == 1:
        what = f"has one dimension and length {shape[0]}" if shape[0] else "is empty"
        raise InvalidArgument(
            f"X {what}, where rows and columns are expected. Reshape your data: X.reshape(-1, 1) is one column, "
            f"X.reshape(1, -1) one row"
        )
    if len(shape) > 2:
        raise InvalidArgument(f"X has {len(shape)} dimensions, shape {tuple(shape)}; {ROWS}")


def _explained(features: Any, error: Exception, text: str | None) -> Exception:
    """Return the error that says why rows could not be read."""
    if hasattr(features, "tocsr"):
        dense = "X is a sparse matrix, where every cell is needed; give X.toarray()"
        return InvalidArgument(dense if "Sparse" in str(error) else str(error))
    check_names(features)
    check_table(features)
    for name, column in _columns(features):
        if column.dtype.kind == "c":
            return InvalidArgument(
                f"Complex data not supported: the column {name!r} holds complex numbers; give their real and imaginary "
                f"parts as columns"
            )
        if text is not None and column.dtype.kind in "mM":
            return InvalidArgument(
                f"the column {name!r} holds times, {column[0]} in row 0, where numbers are expected; give the days or "
                f"seconds since a first one"
            )
        if text is None or column.dtype.kind not in "OUS":
            continue
        for i, cell in enumerate(column.tolist()):
            if isinstance(cell, str | bytes) and not _is_number(cell):
                return InvalidArgument(
                    f"the column {name!r} holds text, {cell!r} in row {i}, where numbers are expected; "
                    + text.format(name=name)
                )
            if not isinstance(cell, str | bytes) and not _is_number(cell):
                return NoNumber(
                    f"the column {name!r} holds {_shown(cell)} in row {i}, where numbers are expected ({error})"
                )
    return error if isinstance(error, MarkoviaError) else InvalidArgument(str(error))


def _as_objects(features: Any) -> Any:
    """Keep lists of mixed cells as objects: NumPy would turn numbers beside text into text."""
    if isinstance(features, list | tuple):
        table = np.asarray(features)
        if table.dtype.kind in "US":
            return np.asarray(features, dtype=object)
    return features


def _columns(features: Any) -> Iterator[tuple[str, Array]]:
    """Yield the names and the cells of columns."""
    if hasattr(features, "to_pandas"):
        features = features.to_pandas()
    if hasattr(features, "iloc"):
        for i, name in enumerate(features.columns):
            yield str(name), features.iloc[:, i].to_numpy()
        return
    cells = np.asarray(features, dtype=object if isinstance(features, list | tuple) else None)
    for i, column in enumerate(cells.T):
        yield f"x{i}", column


def _place(estimator: Any, rows: Any, wrong: Any) -> tuple[int, str]:
    """Return the row and the name of the column of the first cell that is wrong."""
    first = int(np.flatnonzero(wrong)[0])
    if isinstance(rows, np.ndarray):
        i, j = divmod(first, rows.shape[1])
    else:
        i, j = int(np.searchsorted(rows.indptr, first, side="right")) - 1, int(rows.indices[first])
    return i, feature_names(estimator)[j]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"a {type(value).__name__}"


def _is_number(cell: Any) -> bool:
    if cell is None:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    except TypeError:
        return type(cell).__name__ in ("NAType", "NaTType")
    return True
