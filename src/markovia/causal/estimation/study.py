"""A data frame read as the arrays that estimators take: codes or numbers of the treatment, numbers for all the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable, check_known
from markovia.learning.regression.nuisance import Propensity
from markovia.runtime.array_types import Array, Ints

if TYPE_CHECKING:
    import pandas as pd

MOST_LEVELS = 10
"""Whole-number treatments with more values than this count as continuous."""
MISSING = ("error", "drop", "indicator")


@dataclass(frozen=True)
class Study:
    """Rows as numbers.

    Attributes
    ----------
    treatment
        Codes of `levels`, or numbers where those are None.
    outcome, family, event
        Numbers; "gaussian", "bernoulli" or "poisson"; the state that counts as 1 where the outcome has two.
    covariates, columns, coding
        Shape (n, columns), a name for each, and the categories of each variable (None for numbers).
    instruments, mediators, clusters
        Further columns where the method needs them.
    rows
        The positions of the rows in the frame.
    score
        Probabilities of the treatment's levels that are known already.
    """

    treatment: Array
    outcome: Array
    covariates: Array
    levels: tuple[Any, ...] | None
    family: str
    event: Any
    columns: tuple[str, ...]
    coding: Mapping[str, tuple[Any, ...] | None]
    rows: Ints
    instruments: Array | None = None
    mediators: Array | None = None
    clusters: Any = None
    score: Propensity | None = None

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.outcome)

    @property
    def codes(self) -> Ints:
        """The treatment's codes."""
        return self.treatment.astype(np.int64)

    def take(self, rows: Any) -> "Study":
        """Return some of the rows."""
        further: dict[str, Any] = {
            k: v[rows]
            for k in ("instruments", "mediators", "clusters")
            if (v := getattr(self, k)) is not None
        }
        if self.score is not None:
            p, own = self.score
            further["score"] = Propensity(p[rows], None if own is None else own[rows])
        return replace(
            self, treatment=self.treatment[rows], outcome=self.outcome[rows], covariates=self.covariates[rows],
            rows=self.rows[rows], **further,
        )  # fmt: skip

    def encoded(self, frame: "pd.DataFrame") -> Array:
        """Return the covariates of other rows, coded as these are."""
        absent = [name for name in self.coding if name not in frame.columns]
        if absent:
            raise UnknownVariable(absent[0], frame.columns, "the rows")
        parts = [_columns(frame[name], name, categories)[0] for name, categories in self.coding.items()]
        return np.column_stack(parts) if parts else np.empty((len(frame), 0))


def read_study(
    frame: "pd.DataFrame",
    treatment: str,
    outcome: str | None,
    covariates: Sequence[str],
    *,
    instruments: Sequence[str] = (),
    mediators: Sequence[str] = (),
    clusters: str | None = None,
    given: Mapping[str, Any] | None = None,
    missing: str = "error",
) -> Study:
    """Read the columns of a question, which may be one without an outcome; `given` keeps the rows that agree with it."""
    single = [name for name in (treatment, outcome, clusters) if name]
    names = [*single, *covariates, *instruments, *mediators]
    check_known((*names, *(given or {})), frame.columns, "the data")
    keep = np.ones(len(frame), dtype=bool)
    for name, value in (given or {}).items():
        keep &= (frame[name] == value).to_numpy()
        if not keep.any():
            raise InvalidArgument(f"no row has {', '.join(f'{n}={v!r}' for n, v in (given or {}).items())}")
    gaps = frame[names].isna()
    if missing == "indicator":
        gaps = gaps.drop(columns=list(covariates))
    if missing == "error" and gaps.to_numpy()[keep].any():
        counts = {name: int(gaps[name][keep].sum()) for name in names if gaps[name][keep].any()}
        shown = ", ".join(f"{name!r} ({count} of {int(keep.sum())})" for name, count in counts.items())
        raise InvalidArgument(f"cells are missing in {shown}; missing='drop' leaves such rows out")
    keep &= ~gaps.to_numpy().any(axis=1)
    rows = np.flatnonzero(keep)
    if not len(rows):
        raise InvalidArgument("no row is left: each has a missing cell")
    table = frame.iloc[rows]
    levels, numbers = treatment_levels(table[treatment], treatment)
    family, event, y = (
        _outcome(table[outcome], outcome) if outcome else ("gaussian", None, np.zeros(len(rows)))
    )
    coding = {name: _categories(table[name]) for name in covariates}
    read = [_columns(table[name], name, coding[name]) for name in covariates]
    if missing == "indicator":
        blanks = [name for name in covariates if table[name].isna().any()]
        read += [
            (table[name].isna().to_numpy().astype(float)[:, None], [f"{name} missing"]) for name in blanks
        ]
    matrix = np.column_stack([part for part, _ in read]) if read else np.empty((len(rows), 0))
    columns = [c for _, listed in read for c in listed]
    # a column that never changes (what is given, a rare state) tells nothing
    varies = np.ptp(matrix, axis=0) > 0 if len(columns) else np.zeros(0, dtype=bool)
    if missing != "indicator" and not varies.all():
        dull = {name for name in covariates if table[name].nunique() < 2}
        coding = {name: c for name, c in coding.items() if name not in dull}
        read = [_columns(table[name], name, coding[name]) for name in coding]
        matrix = np.column_stack([part for part, _ in read]) if read else np.empty((len(rows), 0))
        columns = [c for _, listed in read for c in listed]
    return Study(
        numbers, y, matrix, levels, family, event, tuple(columns), coding, rows,
        _together(table, instruments), _together(table, mediators),
        table[clusters].to_numpy() if clusters else None,
    )  # fmt: skip


def _together(table: "pd.DataFrame", names: Sequence[str]) -> Array | None:
    if not names:
        return None
    return np.column_stack([_columns(table[name], name, _categories(table[name]))[0] for name in names])


def _is_numeric(column: Any) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return bool(is_numeric_dtype(column)) and not is_bool_dtype(column)


def levels_of(column: Any) -> list[Any]:
    """Return the values of a column in order: as written for categories, sorted otherwise."""
    present = column.dropna().unique().tolist()
    if str(column.dtype) == "category":
        return [v for v in column.cat.categories.tolist() if v in set(present)]
    try:
        return sorted(present)
    except TypeError:
        return sorted(present, key=str)


def in_order_of_time(column: Any, name: str) -> None:
    """Refuse periods in words: sorted, "after" would come before "before"."""
    if any(isinstance(v, str) for v in column.dropna().unique()):
        raise InvalidArgument(f"the times in {name!r} are words, which have no order; give numbers or dates")


def _categories(column: Any) -> tuple[Any, ...] | None:
    """Return the categories of a column, or None for numbers."""
    return None if _is_numeric(column) else tuple(levels_of(column))


def _columns(column: Any, name: str, categories: tuple[Any, ...] | None) -> tuple[Array, list[str]]:
    """Return a variable as columns of numbers: itself, or an indicator of every category but the first."""
    if categories is None:
        values = column.to_numpy(dtype=float)
        gaps = np.isnan(values)
        if gaps.any():
            values = np.where(gaps, np.nanmean(values), values)
        return values[:, None], [name]
    cells = column.to_numpy(dtype=object)
    listed = [f"{name}={c}" for c in categories[1:]]
    return np.column_stack([cells == c for c in categories[1:]] or [np.zeros((len(cells), 0))]).astype(
        float
    ), listed


def treatment_levels(column: Any, name: str) -> tuple[tuple[Any, ...] | None, Array]:
    """Return the levels of a treatment and its codes, or None and its numbers."""
    levels = levels_of(column)
    if len(levels) < 2:
        raise InvalidArgument(
            f"the treatment {name!r} is {levels[0]!r} in every row, so nothing can be learned about its effect"
        )
    if _is_numeric(column):
        values = column.to_numpy(dtype=float)
        whole = bool((values == np.round(values)).all())
        if len(levels) > 2 and not (whole and len(levels) <= MOST_LEVELS):
            return None, values
        return tuple(levels), np.searchsorted(np.array(levels, dtype=float), values).astype(float)
    place = {v: k for k, v in enumerate(levels)}
    if len(levels) > MOST_LEVELS:
        raise InvalidArgument(f"the treatment {name!r} has {len(levels)} states; join some, or give a number")
    return tuple(levels), np.array([place[v] for v in column.tolist()], dtype=float)


def _outcome(column: Any, name: str) -> tuple[str, Any, Array]:
    """Return the family of an outcome, the state that counts as 1, and its numbers."""
    levels = levels_of(column)
    if not _is_numeric(column):
        if len(levels) > 2:
            raise InvalidArgument(
                f"the outcome {name!r} has {len(levels)} states; make a column of the one in question, such as "
                f"frame[{name!r}] == {levels[-1]!r}"
            )
        return "bernoulli", levels[-1], (column == levels[-1]).to_numpy(dtype=float)
    values = column.to_numpy(dtype=float)
    if set(levels) <= {0, 1}:
        return "bernoulli", 1, values
    counts = (
        str(column.dtype).startswith(("int", "uint", "Int")) and values.min() >= 0 and values.mean() <= 30
    )
    return ("poisson" if counts else "gaussian"), None, values
