"""A log-linear model as flat arrays, and what the data say about it: how often each feature is used.

A model `p(x | w) = exp(w · F(x)) / Z(w)` is a sum of log tables, one a scope. All tables lie in one vector of *cells*: first
one cell a state of each variable, then the tables over two or more variables. A sparse matrix, the *design*, takes weights
to cells:

    log tables = base + design @ w,     E[F] = design' @ (marginals of the scopes),     F(X) / n = design' @ (data margins).

Tied features are columns with entries in many tables; free tables are columns with one entry. A table inside a wider one
is added to that one, so that scopes are as few as possible. The data are read once: their margins on the scopes are all
that maximum likelihood needs (sufficient statistics), and the rows may then be forgotten.
Cost: one pass over the entries of all features, and one over the rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from markovia.data.tables.row_sources import MAX_CELLS, RowSource
from markovia.errors import InvalidArgument, InvalidTable, TooLarge
from markovia.factors.potentials.log_linear import Feature
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.kernels.fields.field_records import FieldArrays
from markovia.runtime.array_types import Array, Ints

Entry = tuple[tuple[Variable, ...], Array]


@dataclass(frozen=True)
class FieldLayout:
    """Variables, scopes and the design of a log-linear model.

    Attributes
    ----------
    variables
        All variables in order; their position is their number below.
    arrays
        States, scopes, strides and tables of the variables, as kernels take them.
    design
        One row a cell, one column a weight (a SciPy CSR matrix).
    base
        What is added to the log tables whatever the weights: zero, logs of a fixed model, minus infinity for a zero.
    names
        One name a weight.
    owner
        For each weight the first table it is in: the number of a variable, or `len(variables) +` that of a table.
    """

    variables: tuple[Variable, ...]
    arrays: FieldArrays
    design: Any
    base: Array
    names: Sequence[str]
    owner: Ints

    @property
    def n_weights(self) -> int:
        """The number of weights."""
        return int(self.design.shape[1])

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.base)

    @property
    def n_single(self) -> int:
        """The number of cells of single variables, which come first."""
        return int(self.arrays.starts[-1])

    @property
    def n_tables(self) -> int:
        """The number of tables of two or more variables."""
        return len(self.arrays.table_ptr) - 1

    @cached_property
    def scopes(self) -> list[tuple[int, ...]]:
        """The variables of each table of two or more, by number."""
        return (
            [tuple(s) for s in np.split(self.arrays.scope, self.arrays.scope_ptr[1:-1])]
            if self.n_tables
            else []
        )

    @cached_property
    def cell_ptr(self) -> Ints:
        """Where each table begins among the cells, single variables first, with the end."""
        return np.concatenate((self.arrays.starts, self.n_single + self.arrays.table_ptr[1:]))

    @cached_property
    def transposed(self) -> Any:
        """The design with rows and columns exchanged."""
        return self.design.T.tocsr()

    @cached_property
    def alike(self) -> list[tuple[Ints, tuple[int, ...], Ints]]:
        """Tables of one shape together: their numbers, the shape, and the cells of each, one row a table."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for f, members in enumerate(self.scopes):
            groups.setdefault(tuple(self.arrays.cards[list(members)].tolist()), []).append(f)
        found = []
        for shape, tables in groups.items():
            which = np.array(tables, dtype=np.int64)
            cells = self.n_single + self.arrays.table_ptr[which][:, None] + np.arange(prod(shape))
            found.append((which, shape, cells))
        return found

    @cached_property
    def neighbours(self) -> tuple[Ints, Ints]:
        """For each variable the variables it shares a table with: pointers, then numbers in order."""
        n = max(len(self.variables), 1)
        arity = np.diff(self.arrays.scope_ptr)
        pairs = []
        for k in np.unique(arity).tolist():
            members = self.arrays.scope[self.arrays.scope_ptr[:-1][arity == k][:, None] + np.arange(k)]
            i, j = np.nonzero(~np.eye(k, dtype=bool))
            pairs.append((members[:, i] * n + members[:, j]).ravel())
        keys = np.unique(np.concatenate(pairs)) if pairs else np.zeros(0, dtype=np.int64)
        return np.searchsorted(keys // n, np.arange(len(self.variables) + 1)), keys % n

    def log_tables(self, weights: Array) -> Array:
        """Return the log tables at some weights, all cells one after the other."""
        return np.asarray(self.base + self.design @ weights)

    def features(self, cells: Array) -> Array:
        """Return what cells add up to for each weight: expectations from marginals, gradients from gradients."""
        return np.asarray(self.transposed @ cells)

    def observed(self, source: RowSource) -> Array:
        """Return the share of the rows in each cell: the margins of the data on all scopes, by one pass.

        Raises
        ------
        InvalidArgument
            If there are no rows, if cells are missing, or if rows show what the model rules out.
        """
        require_rows(source)
        names = [v.name for v in self.variables]
        scopes = [(n,) for n in names] + [tuple(names[i] for i in s) for s in self.scopes]
        cells = np.concatenate([t.ravel() for t in source.counts(scopes)]) / source.total
        bad = np.flatnonzero((cells > 0) & np.isneginf(self.base))
        if len(bad):
            table = int(np.searchsorted(self.cell_ptr, bad[0], side="right")) - 1
            raise InvalidArgument(
                f"rows show states of {', '.join(map(repr, scopes[table]))} together whose weight is fixed at zero; "
                "give such entries of the factors a positive weight"
            )
        return cells

    @property
    def units(self) -> Array:
        """For each weight the largest absolute value of its feature in a cell; one for features that are zero."""
        largest = np.asarray(abs(self.design).max(axis=0).todense()).ravel()
        return np.where(largest > 0, largest, 1.0)

    def extreme(self, means: Array) -> list[str]:
        """Return the names of features whose mean is the largest or the smallest that the sum of their tables allows."""
        entries = self.design.tocoo()
        sizes = np.diff(self.cell_ptr)
        table = np.repeat(np.arange(len(sizes)), sizes)[entries.row]
        order = np.lexsort((entries.col, table))
        table, weight, values = table[order], entries.col[order], entries.data[order]
        first = np.flatnonzero(np.r_[True, (np.diff(table) != 0) | (np.diff(weight) != 0)][: len(table)])
        if not len(first):
            return []
        least, most = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
        partly = (
            np.diff(np.append(first, len(table))) < sizes[table[first]]
        )  # other cells of the table have zero
        low = np.bincount(weight[first], np.where(partly, np.minimum(least, 0.0), least), self.n_weights)
        high = np.bincount(weight[first], np.where(partly, np.maximum(most, 0.0), most), self.n_weights)
        room = 1e-12 * np.maximum(np.abs(low), np.abs(high))
        found = (high > low + room) & ((means >= high - room) | (means <= low + room))
        return [self.names[j] for j in np.flatnonzero(found).tolist()]

    def spread(self, observed: Array) -> Array:
        """Return for each weight the variance of its feature in the data, its tables taken as independent."""
        squared = self.design.copy()
        squared.data = squared.data**2
        second = np.asarray(squared.T @ observed)
        table = np.searchsorted(self.cell_ptr, np.arange(self.n_cells), side="right") - 1
        from scipy.sparse import coo_matrix

        by_table = coo_matrix((observed, (table, np.arange(self.n_cells)))).tocsr() @ self.design
        by_table.data = by_table.data**2
        return np.asarray(second - np.asarray(by_table.sum(axis=0)).ravel())


def require_rows(source: RowSource, gaps: bool = False) -> None:
    """Raise unless there are rows and, where there may be no gaps, no cell is missing."""
    holes = {n: k for n, k in source.missing().items() if k}
    if holes and not gaps:
        worst = max(holes.items(), key=lambda item: item[1])
        raise InvalidArgument(
            f"{sum(holes.values()):,} cells are missing ({worst[1]:,} of them in {worst[0]!r}); missing='em' sums them out, "
            "missing='drop' leaves out their rows"
        )
    if not source.total > 0:
        raise InvalidArgument("there are no rows to learn from")


def layout_of_features(
    features: Sequence[Feature], variables: Iterable[Variable] = (), fixed: Sequence[Factor] = ()
) -> FieldLayout:
    """Lay out a model with one weight a feature.

    Parameters
    ----------
    features
        The features; one that is tied has several tables.
    variables
        Variables of the model that no feature need mention; they come first.
    fixed
        Factors whose logs are added whatever the weights.
    """
    wrong = next((f for f in features if not isinstance(f, Feature)), None)
    if wrong is not None:
        raise InvalidArgument(f"features are a list of mk.Feature, not {wrong!r}")
    entries = [(k, v, t) for k, f in enumerate(features) for v, t in f.instances]
    own = _variables(variables, [v for _, v, _ in entries] + [f.variables for f in fixed])
    return _laid_out(own, entries, [f.name for f in features], fixed)


def layout_of_tables(factors: Sequence[Factor], variables: Iterable[Variable] = ()) -> FieldLayout:
    """Lay out a model whose tables are free: one weight an entry; entries that are zero stay zero."""
    own = _variables(variables, [f.variables for f in factors])
    names = _EntryNames(factors)
    return _laid_out(
        own, None, names, [Factor.of(f.variables, (f.values > 0).astype(np.float64)) for f in factors]
    )


class _EntryNames(Sequence[str]):
    """Names of the entries of tables, made when asked for."""

    def __init__(self, factors: Sequence[Factor]) -> None:
        self._factors = factors
        self._ends = np.cumsum([0, *(f.size for f in factors)])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        k %= len(self)
        f = int(np.searchsorted(self._ends, k, side="right")) - 1
        factor = self._factors[f]
        at = np.unravel_index(k - int(self._ends[f]), factor.values.shape)
        pairs = zip(factor.variables, at, strict=True)
        return f"[{', '.join(f'{v.name}={v.states[int(i)]!r}' for v, i in pairs)}]"

    def __iter__(self) -> Iterator[str]:
        return (self[k] for k in range(len(self)))


def _variables(given: Iterable[Variable], scopes: Iterable[Sequence[Variable]]) -> dict[str, Variable]:
    own = {v.name: v for v in given}
    for scope in scopes:
        for v in scope:
            if own.setdefault(v.name, v) is not v and own[v.name].states != v.states:
                raise InvalidTable(f"{v.name!r} has different states in two places")
    return own


def _laid_out(
    own: Mapping[str, Variable],
    entries: Sequence[tuple[int, tuple[Variable, ...], Array]] | None,
    names: Sequence[str],
    fixed: Sequence[Factor],
) -> FieldLayout:
    """Lay out weighted tables and fixed factors; without entries each entry of a fixed factor has its own weight."""
    number = {n: i for i, n in enumerate(own)}
    cards = np.array([len(v) for v in own.values()], dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(cards))).astype(np.int64)
    n = len(own)
    measured = [] if entries is None else [tuple([number[v.name] for v in vs]) for _, vs, _ in entries]
    held = [tuple([number[v.name] for v in f.variables]) for f in fixed]
    wide = dict.fromkeys([tuple(s) for s in (*measured, *held) if len(s) > 1])
    scopes, host = _hosts(list(wide))
    sizes = [int(prod(cards[list(s)].tolist())) for s in scopes]
    if sum(sizes) > MAX_CELLS:
        raise TooLarge(f"the tables of the model would have {sum(sizes):,} entries together")
    table_ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    n_cells = int(starts[-1] + table_ptr[-1])

    def home(scope: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """Return where the cells of a scope's table begin, and the scope that it is part of."""
        if len(scope) == 1:
            return int(starts[scope[0]]), scope
        h = host[scope]
        return int(starts[-1] + table_ptr[h]), scopes[h]

    rows: list[Any] = []
    columns: list[Any] = []
    values: list[Array] = []
    owner = np.zeros(len(names), dtype=np.int64)
    first = np.ones(len(names), dtype=bool)
    base = np.zeros(n_cells)
    at = 0
    if entries is not None:
        for scope, (k, _, table) in zip(measured, entries, strict=True):
            start, wide_scope = home(scope) if scope else (0, scope)
            if not scope:
                continue  # a constant changes no distribution
            flat = _spread(table, scope, wide_scope, cards)
            used = np.flatnonzero(flat)
            rows.append(start + used)
            columns.append(np.full(len(used), k))
            values.append(flat[used])
            if first[k]:
                owner[k] = scope[0] if len(scope) == 1 else n + host[scope]
                first[k] = False
    for scope, factor in zip(held, fixed, strict=True):
        with np.errstate(divide="ignore"):
            logs = np.log(factor.values)
        if not scope:
            at += 1
            continue
        start, wide_scope = home(scope)
        flat = _spread(logs, scope, wide_scope, cards)
        base[start : start + len(flat)] += flat
        if entries is None:
            places = _spread(np.arange(factor.size).reshape(factor.values.shape), scope, wide_scope, cards)
            rows.append(start + np.arange(len(flat)))
            columns.append(at + places)
            values.append(np.ones(len(flat)))
            owner[at : at + factor.size] = scope[0] if len(scope) == 1 else n + host[scope]
            at += factor.size
    from scipy.sparse import coo_matrix

    nothing = [np.zeros(0)]
    design = coo_matrix(
        (
            np.concatenate(values or nothing),
            (
                np.concatenate(rows or nothing).astype(np.int64),
                np.concatenate(columns or nothing).astype(np.int64),
            ),
        ),
        shape=(n_cells, len(names)),
    ).tocsr()
    arity = np.array([len(s) for s in scopes], dtype=np.int64)
    scope_ptr = np.concatenate(([0], np.cumsum(arity))).astype(np.int64)
    scope_flat = np.array([i for s in scopes for i in s], dtype=np.int64)
    strides = np.ones(len(scope_flat), dtype=np.int64)
    for k in range(int(arity.max(initial=0)) - 1, 0, -1):
        here = scope_ptr[:-1][arity > k] + k
        strides[here - 1] = strides[here] * cards[scope_flat[here]]
    edges = np.argsort(scope_flat, kind="stable")
    return FieldLayout(
        tuple(own.values()),
        FieldArrays(
            cards,
            starts,
            scope_ptr,
            scope_flat,
            strides,
            table_ptr,
            np.searchsorted(scope_flat[edges], np.arange(n + 1)).astype(np.int64),
            np.repeat(np.arange(len(scopes), dtype=np.int64), arity)[edges],
            strides[edges],
        ),
        design,
        base,
        names,
        owner,
    )


def _hosts(scopes: list[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], dict[tuple[int, ...], int]]:
    """Return the scopes that are in no other one, and for each scope the number of one that holds it."""
    kept: list[tuple[int, ...]] = []
    members: list[frozenset[int]] = []
    holders: dict[int, list[int]] = {}
    host: dict[tuple[int, ...], int] = {}
    for scope in sorted(scopes, key=len, reverse=True):
        fewest: Sequence[int] = min((holders.get(i, ()) for i in scope), key=len)
        found = next((h for h in fewest if members[h].issuperset(scope)), None)
        if found is None:
            found = len(kept)
            kept.append(scope)
            members.append(frozenset(scope))
            for i in scope:
                holders.setdefault(i, []).append(found)
        host[scope] = found
    return kept, host


def _spread(table: Any, scope: tuple[int, ...], wide: tuple[int, ...], cards: Ints) -> Any:
    """Return a table over the axes of a wider scope, flat."""
    if scope == wide:
        return table.ravel()
    order = [scope.index(i) for i in wide if i in scope]
    shape = [int(cards[i]) if i in scope else 1 for i in wide]
    return np.broadcast_to(table.transpose(order).reshape(shape), cards[list(wide)].tolist()).ravel()
