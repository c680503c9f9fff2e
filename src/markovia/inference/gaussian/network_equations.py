"""From a network and its evidence to equations: what is left of every node when known numbers and states are put in.

Nodes without discrete parents (or with observed ones) give plain equations. A node whose regression depends on states
that are not known gives one equation a configuration of them; the unknown numbers it is connected to form a component,
whose discrete scope holds all such states. An equation in which no number is unknown is a table over states, or a constant.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log, pi
from operator import is_
from typing import Any

import numpy as np

from markovia.errors import InvalidEvidence, UnsupportedModel
from markovia.factors.gaussian.gaussian_field import GaussianField
from markovia.factors.gaussian.linear_gaussian import SAME_VALUE, GaussianConditional
from markovia.factors.quantities.soft_findings import Interval, Soft
from markovia.factors.tables.evidence import Finding
from markovia.factors.tables.variable import Variable
from markovia.inference.gaussian.linear_system import System
from markovia.inference.problem import Piece, Problem
from markovia.runtime.array_types import Array, Flags, Ints


class FlatNetwork:
    """All Gaussian pieces of a model as flat arrays, made once a model."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = list(pieces)
        self.switched = [p for p in pieces if isinstance(p, GaussianConditional) and p.discrete]
        self.by_child = {p.variable.name: p for p in pieces if isinstance(p, GaussianConditional)}
        self.fields = [p for p in pieces if isinstance(p, GaussianField)]
        self.tables = [p for p in pieces if p.kind == "table"]
        plain = [p for p in pieces if isinstance(p, GaussianConditional) and not p.discrete]
        self.names = list(self.by_child)
        self.names.extend(n for f in self.fields for n in f.names)
        self.place = place = {n: i for i, n in enumerate(self.names)}
        self.child = np.array([place[p.variable.name] for p in plain], dtype=np.int64)
        self.bias = np.array([p.bias for p in plain], dtype=np.float64)
        self.variance = np.array([p.variance for p in plain], dtype=np.float64)
        self.start = np.zeros(len(plain) + 1, np.int64)
        np.cumsum([len(p.continuous) for p in plain], out=self.start[1:])
        self.parent = np.array([place[q.name] for p in plain for q in p.continuous], dtype=np.int64)
        self.weight = np.concatenate([np.zeros(0), *[p.weights for p in plain]])
        self.row_of = np.repeat(np.arange(len(plain)), np.diff(self.start))


@dataclass
class SwitchedRow:
    """An equation for every configuration of some discrete variables; the coefficients have those axes first."""

    scope: tuple[Variable, ...]
    columns: list[int]
    coefficient: Array
    constant: Array
    variance: Array


@dataclass
class Component:
    """Unknown numbers that hang together, and the states that their equations depend on."""

    names: list[str]
    scope: tuple[Variable, ...]
    system: System
    """Its plain equations."""
    rows: list[SwitchedRow]
    intervals: list[tuple[int, Interval]] = field(default_factory=list)


@dataclass
class Equations:
    """A problem with its evidence put in."""

    names: list[str]
    """The numbers of the plain system."""
    system: System
    intervals: list[tuple[int, Interval]]
    components: list[Component]
    log_tables: list[tuple[tuple[Variable, ...], Array]]
    tables: list[Piece]
    log_constant: float


def flat_network(problem: Problem) -> FlatNetwork:
    """Return the pieces as flat arrays, kept with the model."""
    memory = {} if problem.memory is None else problem.memory
    kept: FlatNetwork | None = memory.get("flat network")
    if (
        kept is None
        or len(kept.pieces) != len(problem.pieces)
        or not all(map(is_, kept.pieces, problem.pieces))
    ):
        kept = memory["flat network"] = FlatNetwork(problem.pieces)
        memory.pop("sparse patterns", None)
        memory.pop("log z", None)
    return kept


def equations_of(problem: Problem, targets: Iterable[str] | None) -> Equations:
    """Put the evidence in; numbers that neither the targets nor the evidence depend on are left out."""
    flat = flat_network(problem)
    values = np.full(len(flat.names), np.nan)
    soft: list[tuple[int, float, float]] = []
    intervals: dict[int, Interval] = {}
    for name, finding in problem.findings.items():
        i = flat.place.get(name)
        if i is None:
            continue
        if finding.value is not None:
            values[i] = _value(name, finding.value)
        elif isinstance(finding.said, Interval):
            intervals[i] = finding.said
        else:
            soft.append((i, *_normal(name, finding)))
    codes = {n: f.code for n, f in problem.findings.items() if f.code is not None}
    known = ~np.isnan(values)
    needed = _needed(flat, targets, known, [*intervals, *(s[0] for s in soft)])
    unknown = needed & ~known
    rows = _plain_rows(flat, values, needed)
    log_constant = _spare(rows)
    switched: list[SwitchedRow] = []
    log_tables: list[tuple[tuple[Variable, ...], Array]] = []
    for piece in flat.switched:
        child = flat.place[piece.variable.name]
        if not needed[child]:
            continue
        row = _switched_row(flat, piece, child, values, codes)
        if not row.columns:
            table = _log_density(row.constant, row.variance)
            if row.scope:
                log_tables.append((row.scope, table))
            else:
                log_constant += float(table)
        elif row.scope:
            switched.append(row)
        else:
            rows.append(row.columns, row.coefficient, float(row.constant), float(row.variance))
    for i, mean, variance in soft:
        rows.append([i], np.ones(1), mean, variance)
    label = _components(len(flat.names), rows, switched, flat)
    mixed: dict[int, list[SwitchedRow]] = {}
    for row in switched:
        mixed.setdefault(int(label[row.columns[0]]), []).append(row)
    apart = np.isin(label, list(mixed)) if mixed else np.zeros(len(flat.names), bool)
    system, names = _system(flat, rows, unknown & ~apart, values, problem.memory)
    inside = {flat.place[n]: k for k, n in enumerate(names)}
    components = []
    for group, mine in mixed.items():
        part, own = _system(flat, rows, unknown & (label == group), values, problem.memory)
        at = {flat.place[n]: k for k, n in enumerate(own)}
        for row in mine:
            row.columns = [at[i] for i in row.columns]
        scope = tuple(dict.fromkeys(v for r in mine for v in r.scope))
        components.append(
            Component(own, scope, part, mine, [(at[i], f) for i, f in intervals.items() if i in at])
        )
    return Equations(
        names, system, [(inside[i], f) for i, f in intervals.items() if i in inside], components, log_tables,
        flat.tables, log_constant,
    )  # fmt: skip


class _EquationRows:
    """Plain equations in lists, numbers counted as in the model."""

    def __init__(self, row: Ints, column: Ints, coefficient: Array, constant: Array, variance: Array) -> None:
        self.row, self.column, self.coefficient = row, column, coefficient
        self.constant, self.variance = constant, variance
        self.more: list[tuple[list[int], Array, float, float]] = []

    def append(self, columns: list[int], coefficient: Array, constant: float, variance: float) -> None:
        self.more.append((columns, coefficient, constant, variance))

    def settle(self) -> None:
        """Take the appended equations in."""
        if self.more:
            n = len(self.constant)
            self.row = np.concatenate(
                [self.row, *[np.full(len(m[0]), n + k) for k, m in enumerate(self.more)]]
            )
            self.column = np.concatenate([self.column, *[np.array(m[0], dtype=np.int64) for m in self.more]])
            self.coefficient = np.concatenate([self.coefficient, *[m[1] for m in self.more]])
            self.constant = np.concatenate([self.constant, [m[2] for m in self.more]])
            self.variance = np.concatenate([self.variance, [m[3] for m in self.more]])
            self.more = []


def _plain_rows(flat: FlatNetwork, values: Array, needed: Flags) -> _EquationRows:
    kept = needed[flat.child]
    child, parent, weight = flat.child, flat.parent, flat.weight
    known = ~np.isnan(values)
    x = np.where(known, values, 0.0)
    constant = flat.bias + np.bincount(flat.row_of, weight * x[parent], len(child)) - x[child]
    own = np.flatnonzero(kept & ~known[child])
    link = np.flatnonzero(kept[flat.row_of] & ~known[parent] & (weight != 0.0))
    place = np.cumsum(kept) - 1
    return _EquationRows(
        place[np.concatenate([own, flat.row_of[link]])],
        np.concatenate([child[own], parent[link]]),
        np.concatenate([np.ones(len(own)), -weight[link]]),
        constant[kept],
        flat.variance[kept],
    )


def _spare(rows: _EquationRows) -> float:
    """Take the equations out in which nothing is unknown; return the sum of their log densities."""
    full = np.zeros(len(rows.constant), bool)
    full[rows.row] = True
    total = float(_log_density(rows.constant[~full], rows.variance[~full]).sum())
    place = np.cumsum(full) - 1
    rows.row, rows.constant, rows.variance = place[rows.row], rows.constant[full], rows.variance[full]
    return total


def _log_density(gap: Array, variance: Array) -> Array:
    """Return log N(gap; 0, variance); without variance, whether the gap is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = -0.5 * (log(2 * pi) + np.log(variance) + gap**2 / variance)
    return np.where(variance == 0.0, np.where(np.abs(gap) <= SAME_VALUE * 10, 0.0, -np.inf), logs)


def _switched_row(
    flat: FlatNetwork, piece: GaussianConditional, child: int, values: Array, codes: dict[str, int]
) -> SwitchedRow:
    index = tuple(codes.get(v.name, slice(None)) for v in piece.discrete)
    scope = tuple(v for v in piece.discrete if v.name not in codes)
    constant, weights, variance = piece.bias[index], piece.weights[index], piece.variance[index]
    columns, parts = [], []
    if np.isnan(values[child]):
        columns.append(child)
        parts.append(np.ones(constant.shape))
    else:
        constant = constant - values[child]
    for k, parent in enumerate(piece.continuous):
        j = flat.place[parent.name]
        if not np.isnan(values[j]):
            constant = constant + weights[..., k] * values[j]
        elif np.any(weights[..., k]):
            columns.append(j)
            parts.append(-weights[..., k])
    coefficient = np.stack(parts, axis=-1) if parts else np.zeros((*np.shape(constant), 0))
    return SwitchedRow(scope, columns, coefficient, np.asarray(constant), np.asarray(variance))


def _needed(flat: FlatNetwork, targets: Iterable[str] | None, known: Flags, softly: Sequence[int]) -> Flags:
    """Say which numbers the targets and the evidence depend on."""
    n = len(flat.names)
    wanted = None if targets is None else [flat.place[t] for t in targets if t in flat.place]
    if wanted is None or flat.fields or len(wanted) + int(known.sum()) >= n:
        return np.ones(n, bool)
    needed = np.zeros(n, bool)
    parents: dict[int, Any] = {
        flat.place[p.variable.name]: [flat.place[q.name] for q in p.continuous] for p in flat.switched
    }
    row_at = np.full(n, -1, np.int64)
    row_at[flat.child] = np.arange(len(flat.child))
    stack = [*wanted, *softly, *np.flatnonzero(known).tolist()]
    needed[stack] = True
    while stack:
        i = stack.pop()
        row = row_at[i]
        above = (
            flat.parent[flat.start[row] : flat.start[row + 1]].tolist() if row >= 0 else parents.get(i, ())
        )
        for j in above:
            if not needed[j]:
                needed[j] = True
                stack.append(j)
    return needed


def _components(n: int, rows: _EquationRows, switched: Sequence[SwitchedRow], flat: FlatNetwork) -> Ints:
    """Return which numbers hang together; only looked at where some equation depends on states."""
    rows.settle()
    label = np.zeros(n, np.int64)
    if not switched:
        return label
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    # equations are vertices too, after the numbers
    ends = [np.stack([rows.column, n + rows.row])]
    at = n + len(rows.constant)
    for row in switched:
        ends.append(np.stack([row.columns, np.full(len(row.columns), at)]))
        at += 1
    for piece in flat.fields:
        entries = piece.precision.tocoo()
        ends.append(np.stack([entries.row, entries.col]))
    one, other = np.concatenate(ends, axis=1)
    return np.asarray(
        connected_components(coo_matrix((np.ones(len(one)), (one, other)), shape=(at, at)), directed=False)[
            1
        ][:n],
        dtype=np.int64,
    )


def _system(
    flat: FlatNetwork, rows: _EquationRows, inside: Flags, values: Array, memory: dict[Any, Any] | None
) -> tuple[System, list[str]]:
    """Return the plain equations over some of the numbers, and the names of these."""
    at = np.flatnonzero(inside)
    place = np.full(len(inside), -1, np.int64)
    place[at] = np.arange(len(at))
    mine = inside[rows.column]
    row, column, coefficient = rows.row[mine], place[rows.column[mine]], rows.coefficient[mine]
    # an equation's own number stays first: the entries come in that order
    order = np.argsort(row, kind="stable")
    row, column, coefficient = row[order], column[order], coefficient[order]
    used, again = np.unique(row, return_inverse=True)
    start = np.zeros(len(used) + 1, np.int64)
    np.cumsum(np.bincount(again, minlength=len(used)), out=start[1:])
    system = System(
        len(at), start, column, coefficient, rows.constant[used], rows.variance[used], memory=memory
    )
    for piece in flat.fields:
        own = np.array([flat.place[n] for n in piece.names])
        kept = inside[own]
        x = np.where(np.isnan(values[own]), 0.0, values[own])
        seen = piece.precision @ x
        h = np.zeros(len(at))
        h[place[own[kept]]] = (piece.information - seen)[kept]
        system.precision = piece.precision[np.flatnonzero(kept)][:, np.flatnonzero(kept)].tocsr()
        system.information = h
        system.log_constant += float(piece.information @ x) - 0.5 * float(x @ seen)
    return system, [flat.names[i] for i in at.tolist()]


def _value(name: str, value: Any) -> float:
    if np.ndim(value):
        raise InvalidEvidence(f"the value of {name!r} is one number, not an array of shape {np.shape(value)}")
    number = float(value)
    if not np.isfinite(number):
        raise InvalidEvidence(f"the value of {name!r} is a finite number, not {number}")
    return number


def _normal(name: str, finding: Finding) -> tuple[float, float]:
    said: Any = finding.said.distribution if isinstance(finding.said, Soft) else None
    if type(said).__name__ != "Normal" or not hasattr(said, "loc"):
        raise UnsupportedModel(
            f"engine 'gaussian' takes Soft(dist.Normal(...)) as a likelihood of {name!r}, not {finding.said!r}; "
            "use engine='nuts'"
        )
    mean, deviation = np.asarray(said.loc, np.float64), np.asarray(said.scale, np.float64)
    if mean.ndim or deviation.ndim or not deviation > 0:
        raise InvalidEvidence(f"Soft(...) on {name!r} is one Normal of positive scale")
    return float(mean), float(deviation) ** 2
