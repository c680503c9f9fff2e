"""Lazy frames through Narwhals: Polars, Dask, Spark and what else it knows; the rows are grouped where they live.

Each group-by is described in Narwhals' expressions. Polars and Dask run all of them together in one pass over the rows,
Spark as one query with GROUPING SETS; elsewhere they run one after the other.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from markovia.data.tables.grouped_source import Group, GroupedSource
from markovia.data.tables.in_memory import wanted_columns
from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import State, Variable

ROWS, WEIGHT = "markovia_rows_", "markovia_weight_"


def open_lazy(
    data: Any,
    names: Sequence[str] | None,
    variables: Mapping[str, Variable],
    states: Mapping[str, int | Sequence[State]],
    weights: Any,
    scopes: Iterable[Sequence[str]] | None,
) -> "LazySource":
    """Open a lazy frame that Narwhals knows."""
    import narwhals as nw

    return LazySource(nw.from_native(data), names, variables, states, weights, scopes or ())


class LazySource(GroupedSource):
    """Rows of a lazy frame; see `markovia.data.tables.grouped_source.GroupedSource`."""

    def __init__(
        self,
        frame: Any,
        names: Sequence[str] | None,
        variables: Mapping[str, Variable],
        states: Mapping[str, int | Sequence[State]],
        weights: Any,
        scopes: Iterable[Sequence[str]],
    ) -> None:
        if weights is not None and not isinstance(weights, str):
            raise InvalidArgument("the weights of rows in a lazy frame are a column, given by name")
        import narwhals as nw

        schema = frame.collect_schema()
        chosen, weight = wanted_columns(list(schema), names, weights)
        if not chosen:
            raise InvalidArgument("the data have no columns that are wanted")
        self._floats = [n for n in chosen if schema[n] in (nw.Float32, nw.Float64, nw.Decimal)]
        cleaned = [nw.col(n) for n in chosen if n not in self._floats]
        for name in self._floats:
            column = nw.col(name) if schema[name] != nw.Decimal else nw.col(name).cast(nw.Float64)
            cleaned.append(nw.when(~column.is_nan()).then(column).otherwise(None).alias(name))
        if weight is not None:
            cleaned.append(nw.col(weight).cast(nw.Float64).alias(WEIGHT))
            self._check_weights(weight, frame.select(cleaned[-1]))
        self._frame = frame.select(*cleaned)
        backend = frame.implementation
        if not (backend.is_pyspark() or backend.is_pyspark_connect()):
            self._most_columns = sys.maxsize  # each group-by has a frame of its own
        self._open(chosen, weight, variables, states, _categories(frame, schema, chosen), scopes)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_rows:,} rows over {len(self.variables)} variables>"

    def _groups(self, sets: Sequence[Sequence[str]], most: int) -> list[list[Group]]:
        import narwhals as nw

        rows = self._frame.drop_nulls(list(self.variables)) if self._whole else self._frame
        if rows.implementation.is_pyspark() or rows.implementation.is_pyspark_connect():
            return _spark_groups(rows, sets, most, self._weight is not None)
        weighted = [] if self._weight is None else [nw.col(WEIGHT).sum().alias(WEIGHT)]
        asked = []
        for names in sets:
            count = nw.len().alias(ROWS)
            asked.append(
                rows.group_by(*names).agg(count, *weighted) if names else rows.select(count, *weighted)
            )
        results = []
        for names, found in zip(sets, _collected(asked), strict=True):
            if len(found) > most:
                found = found.head(most + 1)
            columns = [_plain(found[n].to_list()) for n in names]
            numbers = found[ROWS].to_list()
            columns += [numbers, numbers if self._weight is None else found[WEIGHT].to_list()]
            results.append(list(zip(*columns, strict=True)))
        return results

    def _fractions(self, names: Sequence[str]) -> str | None:
        import narwhals as nw

        floats = [n for n in names if n in self._floats]
        if not floats:
            return None
        rest = [(((nw.col(n) % 1) > 0) | ((nw.col(n) % 1) < 0)).cast(nw.Int64).max().alias(n) for n in floats]
        large = [nw.col(n).abs().max().alias(f"{n} abs") for n in floats]
        found = _collected([self._frame.select(*rest, *large)])[0].row(0)
        for name, odd, size in zip(floats, found, found[len(floats) :], strict=False):
            if odd or (size is not None and size >= 2.0**62):
                return name
        return None

    def _check_weights(self, column: str, weights: Any) -> None:
        import narwhals as nw

        w = nw.col(WEIGHT)
        asked = weights.select(
            w.min().alias("low"), w.max().alias("high"), w.null_count().alias("gaps"), w.sum().alias("sum")
        )
        try:
            low, high, gaps, total = _collected([asked])[0].row(0)
        except Exception as error:
            raise InvalidArgument(f"the weights in {column!r} are numbers, one a row") from error
        nan = total is not None and total != total
        if gaps or nan or not ((low or 0.0) >= 0 and (high or 0.0) < float("inf")):
            raise InvalidArgument("a row's weight is a number that is finite and not negative")


def _spark_groups(rows: Any, sets: Sequence[Sequence[str]], most: int, weighted: bool) -> list[list[Group]]:
    """Group a Spark frame by all sets in one query; a set is known by the columns that `grouping_id` says it has."""
    import narwhals as nw

    names = list(dict.fromkeys(n for one in sets for n in one))
    at = {n: i for i, n in enumerate(names)}
    columns = [nw.col(n).alias(f"c{i}") for n, i in at.items()]
    native = nw.to_native(rows.select(*columns, *([nw.col(WEIGHT).alias("w")] if weighted else [])))
    listed = ", ".join(f"c{i}" for i in range(len(names)))
    grouped = ", ".join("(" + ", ".join(f"c{at[n]}" for n in one) + ")" for one in sets)
    total = "sum(w)" if weighted else "count(*)"
    query = (
        f"SELECT grouping_id({listed}) AS g, {listed}, count(*) AS n, {total} AS t FROM {{rows}} "
        f"GROUP BY {listed} GROUPING SETS ({grouped}) LIMIT {min(most + 1, 2**31 - 1)}"
    )
    if not names:
        query = f"SELECT 0 AS g, count(*) AS n, {total} AS t FROM {{rows}}"
    found: dict[int, list[Any]] = {}
    for row in native.sparkSession.sql(query, rows=native).collect():
        found.setdefault(row[0], []).append(tuple(row)[1:])
    results: list[list[Group]] = []
    for one in sets:
        absent = sum(1 << (len(names) - 1 - i) for n, i in at.items() if n not in one)
        results.append([(*(r[at[n]] for n in one), r[-2], r[-1]) for r in found.get(absent, [])])
    return results


def _collected(asked: Sequence[Any]) -> list[Any]:
    """Run lazy frames, together where the library can, and return Narwhals frames in memory."""
    import narwhals as nw

    implementation = asked[0].implementation
    natives = [nw.to_native(a) for a in asked]
    try:
        if implementation.is_polars():
            import polars as pl

            return [nw.from_native(f) for f in pl.collect_all(natives, engine="streaming")]
        if implementation.is_dask():
            return [
                nw.from_native(f.reset_index(drop=True)) for f in import_module("dask.base").compute(*natives)
            ]
        return [a.collect() for a in asked]
    except (OSError, MemoryError):
        raise
    except Exception as error:  # whatever the library raises when the frame's own steps fail
        told = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise InvalidArgument(f"the rows of the lazy frame cannot be computed: {told}") from error


def _categories(frame: Any, schema: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the categories of columns that have them in an order: enumerations, and categories known to Dask."""
    import narwhals as nw

    found = {n: list(schema[n].categories) for n in names if isinstance(schema[n], nw.Enum)}
    if frame.implementation.is_dask():
        sample = nw.to_native(frame)._meta
        for name in names:
            kind = sample[name].dtype
            if hasattr(kind, "categories") and getattr(sample[name].cat, "known", True):
                listed = kind.categories.tolist()
                if "__UNKNOWN_CATEGORIES__" not in listed:
                    found[name] = listed
    return found


def _plain(values: list[Any]) -> list[Any]:
    """Return cells as plain Python values; NaN and NA are None."""
    plain = []
    for value in values:
        itself = value == value  # false for NaN, neither true nor false for pandas.NA
        known = value is not None and isinstance(itself, bool | np.bool_) and bool(itself)
        plain.append((value.item() if hasattr(value, "item") else value) if known else None)
    return plain
