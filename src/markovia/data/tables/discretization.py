"""Continuous columns as bins: equal width, equal frequency, k-means in one dimension, and supervised MDL.

The first three look at one column alone. MDL cuts a column where that tells most about a discrete target, and as long as
the information is worth the cut's description; a column that says nothing about the target keeps a single bin.
Reference: U. Fayyad & K. Irani, Multi-interval discretization of continuous-valued attributes for classification
learning (IJCAI 1993); S. Lloyd, Least squares quantization in PCM (1982).
Cost: a sort for each column; MDL is then linear in rows times target states for each cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from markovia.data.tables.distant_rows import is_far, near_rows
from markovia.data.tables.in_memory import cheap_columns, eager_columns
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_options
from markovia.runtime.estimator import Estimator
from markovia.runtime.libraries import pd

MOST_ROUNDS = 1000


@dataclass(eq=False, repr=False)
class Discretizer(TransformerMixin, Estimator):  # type: ignore[misc]
    """Replace numbers by the bin they fall into.

    Parameters
    ----------
    bins
        The number of bins, for all columns or as a mapping from names; "mdl" finds it itself.
    strategy
        "uniform" (equal width), "quantile" (equal frequency; bins that would be empty are left out), "kmeans" (the
        middles between centres of one-dimensional k-means) or "mdl" (against a discrete target).
    target
        The column that "mdl" predicts; or give it as `y` to `fit`. It is not discretised itself.
    columns
        The columns to discretise; all that hold numbers by default. Others are kept as they are.
    labels
        "interval" for strings such as "[1.5, 3)", "codes" for the integers 0, 1, ..., or a list of names (a mapping from
        columns to lists).

    Attributes
    ----------
    edges_ : dict
        For each column its edges, the smallest and the largest number seen included. A number that equals an inner edge
        belongs to the bin above it; what lies outside belongs to the first or the last bin.

    Examples
    --------
    >>> import markovia as mk
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"height": [1.5, 1.6, 1.7, 1.9, None], "smokes": [True, False, True, True, False]})
    >>> ready = mk.Discretizer(bins=2).fit_transform(rows)
    >>> ready["height"].cat.categories.tolist()
    ['(-inf, 1.7)', '[1.7, inf)']
    >>> mk.counts(ready, ["smokes", "height"]).values.tolist()
    [[1.0, 0.0], [1.0, 2.0]]
    """

    bins: int | Mapping[str, int] = 5
    strategy: Literal["uniform", "quantile", "kmeans", "mdl"] = "uniform"
    target: str | None = None
    columns: Sequence[str] | None = None
    labels: str | Sequence[Any] | Mapping[str, Sequence[Any]] = "interval"

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Find the edges.

        Parameters
        ----------
        X
            A frame of any library, a mapping of columns, a matrix, or data files. Missing cells are not looked at.
        y
            For "mdl", the target's value in each row, if `target` names no column.
        """
        check_options(self)
        X = self._rows(X, first=True)  # noqa: N806
        names, get = _columns(X)
        for name in self._named():
            if name not in names:
                raise UnknownVariable(name, names, "the data")
        classes = self._classes(get, y)
        edges: dict[str, Array] = {}
        for name in self._chosen(names, get):
            cells = _numbers(name, get(name))
            known = ~np.isnan(cells)
            values = cells[known]
            if not len(values):
                raise InvalidArgument(f"the column {name!r} has no value to find bins for")
            with np.errstate(over="ignore", invalid="ignore"):
                wide = not np.isfinite(values.max() - values.min())
            if wide:
                raise InvalidArgument(
                    f"the column {name!r} holds an infinite number, or spans too large a range"
                )
            if classes is not None and len(classes) != len(cells):
                raise InvalidArgument(f"there are {len(cells)} rows, but y has {len(classes)}")
            edges[name] = self._edges(name, values, None if classes is None else classes[known])
        self.edges_ = edges
        self._names = np.array(names, dtype=object)
        if not _is_matrix(X):
            self.n_features_in_, self.feature_names_in_ = len(names), self._names
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self._labels = {name: self._bin_labels(name, e) for name, e in edges.items()}
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return the data with bins in place of numbers.

        A pandas or Polars frame keeps its other columns and gets ordered categories; all else becomes a DataFrame; a
        matrix gets codes (with NaN where a cell is missing, then as floats). A missing cell stays missing.
        """
        check_is_fitted(self)
        X = self._rows(X, first=False)  # noqa: N806
        names, get = _columns(X)
        for name in self.edges_:
            if name not in names:
                raise UnknownVariable(name, names, "the data")
        codes = {name: self._codes(name, get(name)) for name in self.edges_}
        if _is_matrix(X):
            return self._as_matrix(X, names, codes)
        if type(X).__module__.partition(".")[0] == "polars":
            import polars as pl

            made = []
            for name, found in codes.items():
                labels = self._labels[name]
                cells = [None if c < 0 else labels[c] for c in found.tolist()]
                words = all(isinstance(label, str) for label in labels)
                made.append(pl.Series(name, cells, dtype=pl.Enum(labels) if words else None))
            return X.with_columns(made)
        frame = X.copy() if isinstance(X, pd.DataFrame) else pd.DataFrame({n: get(n) for n in names})
        place = {str(label): label for label in frame.columns}
        for name, found in codes.items():
            frame[place[name]] = pd.Categorical.from_codes(
                found, categories=pd.Index(self._labels[name]), ordered=True
            )
        return frame

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` gives: those of the data."""
        check_is_fitted(self)
        if input_features is not None and list(input_features) != list(self._names):
            raise InvalidArgument(f"the columns were {list(self._names)} when it was fitted")
        names: NDArray[Any] = self._names
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    # -- inside ----------------------------------------------------------------------------------------------------

    def _rows(self, X: Any, first: bool) -> Any:  # noqa: N803
        """Return what names its columns as it is, and anything else as a matrix that scikit-learn accepts."""
        if _is_nameless(X):
            return validate_data(self, X, reset=first, dtype=None, ensure_all_finite="allow-nan")
        return near_rows(X)

    def _named(self) -> list[str]:
        """Return every column that an argument names."""
        named = [] if self.target is None else [self.target]
        if self.columns is not None:
            named += [self.columns] if isinstance(self.columns, str) else self.columns
        for given in (self.bins, self.labels):
            named += given if isinstance(given, Mapping) else ()
        return named

    def _chosen(self, names: Sequence[str], get: Any) -> list[str]:
        if self.columns is not None:
            return [self.columns] if isinstance(self.columns, str) else list(self.columns)
        return [n for n in names if n != self.target and _is_numeric(get(n))]

    def _classes(self, get: Any, y: Any) -> NDArray[np.int64] | None:
        if self.strategy != "mdl":
            return None
        if y is None and self.target is None:
            raise InvalidArgument("strategy='mdl' needs a target: target='column', or fit(X, y)")
        cells = pd.Series(y if self.target is None else get(self.target))
        if cells.isna().any():
            raise InvalidArgument("the target misses a cell; drop such rows first")
        codes: NDArray[np.int64] = pd.factorize(cells)[0].astype(np.int64)
        return codes

    def _edges(self, name: str, values: Array, classes: NDArray[np.int64] | None) -> Array:
        low, high = float(values.min()), float(values.max())
        if classes is not None:
            return np.array([low, *mdl_cuts(values, classes), high])
        bins = self.bins.get(name, 5) if isinstance(self.bins, Mapping) else self.bins
        if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
            raise InvalidArgument(f"bins= is a number of bins for {name!r}, at least 1, not {bins!r}")
        if low == high:
            return np.array([low, high])
        if self.strategy == "uniform":
            return np.linspace(low, high, int(bins) + 1)
        if self.strategy == "quantile":
            found = np.unique(np.quantile(values, np.linspace(0, 1, int(bins) + 1)))
            return np.array([low, *found[(found > low) & (found < high)], high])
        return np.array([low, *_kmeans_cuts(np.sort(values), int(bins)), high])

    def _codes(self, name: str, column: Any) -> NDArray[np.int64]:
        cells = _numbers(name, column)
        codes = np.searchsorted(self.edges_[name][1:-1], cells, side="right").astype(np.int64)
        codes[np.isnan(cells)] = -1
        return codes

    def _as_matrix(self, X: Any, names: Sequence[str], codes: Mapping[str, Any]) -> Any:  # noqa: N803
        columns = []
        for i, name in enumerate(names):
            column = codes.get(name, X[:, i])
            if name in codes and (column < 0).any():
                column = np.where(column < 0, np.nan, column)
            columns.append(column)
        return np.column_stack(columns)

    def _bin_labels(self, name: str, edges: Array) -> list[Any]:
        n = len(edges) - 1
        if isinstance(self.labels, str):
            if self.labels == "codes":
                return list(range(n))
            if self.labels != "interval":
                raise InvalidArgument(f"labels= is 'interval', 'codes' or a list, not {self.labels!r}")
            return interval_labels(edges[1:-1])
        given = self.labels.get(name) if isinstance(self.labels, Mapping) else self.labels
        if given is None:
            return interval_labels(edges[1:-1])
        if len(given) != n:
            raise InvalidArgument(f"the column {name!r} has {n} bins, but {len(given)} labels are given")
        if len(set(given)) < n:
            raise InvalidArgument(f"the labels of {name!r} repeat: {list(given)}")
        return list(given)


def interval_labels(cuts: Array) -> list[str]:
    """Return the names of the intervals between cuts, with as many digits as keep them apart.

    Examples
    --------
    >>> interval_labels(np.array([1.0, 2.5]))
    ['(-inf, 1)', '[1, 2.5)', '[2.5, inf)']
    """
    shown = [f"{c:.6g}" for c in cuts]
    if len(set(shown)) < len(shown):
        shown = [repr(float(c)) for c in cuts]
    ends = ["-inf", *shown, "inf"]
    return [f"{'[' if i else '('}{ends[i]}, {ends[i + 1]})" for i in range(len(ends) - 1)]


def mdl_cuts(values: Array, classes: NDArray[np.int64]) -> list[float]:
    """Return the cuts of Fayyad and Irani: halves between values, accepted by minimum description length.

    Examples
    --------
    >>> mdl_cuts(np.array([1.0, 2, 3, 4, 5, 6, 7, 8]), np.array([0, 0, 0, 0, 1, 1, 1, 1]))
    [4.5]
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    ends = np.flatnonzero(np.diff(ordered, append=np.inf) > 0)  # the last row of each distinct value
    hot = np.zeros((len(values), int(classes.max()) + 1))
    hot[np.arange(len(values)), classes[order]] = 1
    below = np.concatenate([np.zeros((1, hot.shape[1])), np.cumsum(hot, axis=0)[ends]])
    distinct = ordered[ends]
    cuts: list[float] = []
    waiting = [(0, len(distinct))]
    while waiting:
        first, last = waiting.pop()
        at = _best_cut(below[first : last + 1])
        if at is not None:
            middle = first + at
            low, high = float(distinct[middle - 1]), float(distinct[middle])
            half = low + (high - low) / 2
            cuts.append(half if low < half else high)
            waiting += [(first, middle), (middle, last)]
    return sorted(cuts)


def _best_cut(below: Array) -> int | None:
    """Return after how many distinct values to cut, given class counts below each of them; None for no cut."""
    counts = below - below[0]
    total = counts[-1]
    n = float(total.sum())
    if len(counts) < 3:
        return None
    left = counts[1:-1]
    right = total - left
    sizes = left.sum(axis=1)
    left_entropy, right_entropy = _entropy(left), _entropy(right)
    split = (sizes * left_entropy + (n - sizes) * right_entropy) / n
    at = int(np.argmin(split))
    whole = float(_entropy(total[None])[0])
    k, k_left, k_right = (int(np.count_nonzero(c)) for c in (total, left[at], right[at]))
    # log2(3^k - 2), without large powers
    delta = k * np.log2(3.0) + np.log1p(-2.0 * 3.0**-k) / np.log(2.0)
    delta -= k * whole - k_left * left_entropy[at] - k_right * right_entropy[at]
    if whole - split[at] <= (np.log2(n - 1) + delta) / n:
        return None
    return at + 1


def _entropy(counts: Array) -> Array:
    """Return the entropy of each row of counts, in bits."""
    p = counts / counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        bits: Array = -np.where(p > 0, p * np.log2(p), 0.0).sum(axis=1)
    return bits


def _kmeans_cuts(ordered: Array, k: int) -> Array:
    """Return the middles between centres of Lloyd's algorithm on sorted numbers, started from equal widths."""
    edges = np.linspace(ordered[0], ordered[-1], k + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    sums = np.concatenate([[0.0], np.cumsum(ordered - ordered[0])])
    for _ in range(MOST_ROUNDS):
        places = np.concatenate(
            [[0], np.searchsorted(ordered, (centres[1:] + centres[:-1]) / 2, side="right"), [len(ordered)]]
        )
        sizes = np.diff(places)
        kept = sizes > 0
        moved = ordered[0] + np.diff(sums[places])[kept] / sizes[kept]
        if len(moved) == len(centres) and np.array_equal(moved, centres):
            break
        centres = moved
    middles: Array = (centres[1:] + centres[:-1]) / 2
    return middles


def _is_nameless(data: Any) -> bool:
    """Say whether data are a matrix of some kind: an array, a sparse one, a list of lists."""
    if isinstance(data, list | tuple):
        return not data or not isinstance(data[0], Mapping | str | PathLike)
    return not isinstance(data, str | PathLike) and not is_far(data) and not cheap_columns(data)


def _is_matrix(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.dtype.names is None


def _columns(data: Any) -> tuple[list[str], Any]:
    """Return the names of the columns, and what fetches one."""
    columns = eager_columns(data)
    return list(columns.names), columns.get


def _is_numeric(column: Any) -> bool:
    kind = getattr(column, "dtype", None)
    if kind is not None and hasattr(kind, "is_numeric"):  # Polars
        return bool(kind.is_numeric())
    if kind is not None and hasattr(kind, "kind"):
        return kind.kind in "iuf"
    if type(column).__module__.partition(".")[0] == "pyarrow":
        from pyarrow import types

        held = column.type
        return bool(types.is_integer(held) or types.is_floating(held) or types.is_decimal(held))
    return False


def _numbers(name: str, column: Any) -> Array:
    """Return a column as floats, NaN where a cell is missing."""
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    if isinstance(kind, str) and kind and kind in "mMc":
        raise InvalidArgument(f"the column {name!r} does not hold real numbers, but {column.dtype}")
    try:
        if hasattr(column, "to_numpy") and type(column).__module__.partition(".")[0] == "pandas":
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
        cells = column.to_numpy() if hasattr(column, "to_numpy") else column
        return np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"the column {name!r} does not hold numbers") from None
