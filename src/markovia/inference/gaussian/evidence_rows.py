"""Many rows of evidence about a Gaussian or mixed network at once.

Rows that miss the same cells and agree in their states share one Gaussian (a mixture of them, where states that matter are
not known): its mean and covariance are found once, and all their numbers go through one triangular solve. Where that does
not pay, because too many configurations would have to be listed, rows are asked one by one.
Cost: one small factor for each pattern of missing cells, configuration of states and row of a mixture; linear in the rows.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.evidence import Finding, Findings
from markovia.inference.engine import TABLES, get_engine
from markovia.inference.gaussian.least_squares import LOG_2PI
from markovia.inference.gaussian.network_equations import equations_of, flat_network
from markovia.inference.gaussian.solving import solve
from markovia.inference.problem import Problem
from markovia.inference.result import Info
from markovia.runtime.array_types import Array, Ints

LISTED = 1024
"""Configurations of unknown states up to which all rows of a pattern are answered together."""
WIDEST = 2000
"""Numbers in a row up to which their covariance matrix is written out."""


class RowAnswers(NamedTuple):
    """For every row the log of its density, and by target its probabilities (rows x states) or moments (rows x 2)."""

    log_mass: Array
    targets: dict[str, Array]


def row_answers(problem: Problem, columns: Mapping[str, Any], n: int, targets: Sequence[str]) -> RowAnswers:
    """Answer every row; `problem` has no findings, columns hold codes or numbers (-1 or NaN for a missing cell)."""
    sizes = {
        t: 2 if isinstance(problem.variables[t], Quantity) else len(problem.variables[t]) for t in targets
    }
    found = RowAnswers(np.empty(n), {t: np.full((n, k), np.nan) for t, k in sizes.items()})
    if (
        not targets
        and len(columns) == len(problem.variables)
        and all(isinstance(p, Conditional) for p in problem.pieces)
    ):
        whole = np.ones(n, bool)
        for column in columns.values():
            whole &= ~_missing(column)
        rows = np.flatnonzero(whole)
        found.log_mass[rows] = complete_log_prob(problem, {k: c[rows] for k, c in columns.items()}, len(rows))
    else:
        whole = np.zeros(n, bool)
    rest = np.flatnonzero(~whole)
    seen = (
        np.stack([~_missing(c[rest]) for c in columns.values()], axis=1)
        if columns
        else np.ones((len(rest), 0))
    )
    kinds = [n for n in columns if not isinstance(problem.variables[n], Quantity)]
    key = np.column_stack(
        [seen, *(np.where(_missing(columns[k][rest]), -1, columns[k][rest]) for k in kinds)]
    )
    patterns, group = np.unique(key, axis=0, return_inverse=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(group.reshape(-1), minlength=len(patterns)))
    for k in range(len(patterns)):
        rows = rest[order[(ends[k - 1] if k else 0) : ends[k]]]
        if len(rows):
            known = [name for name, there in zip(columns, patterns[k], strict=False) if there]
            _answer(problem, {name: columns[name][rows] for name in known}, rows, targets, found)
    return found


def complete_log_prob(problem: Problem, columns: Mapping[str, Any], n: int) -> Array:
    """Return the log density of complete rows of a directed model."""
    total = np.zeros(n)
    for piece in problem.pieces:
        assert isinstance(piece, Conditional)
        total += piece.log_prob(columns[piece.variable.name], [columns[q] for q in piece.parent_names])
    return total


def _answer(
    problem: Problem, cells: Mapping[str, Any], rows: Ints, targets: Sequence[str], found: RowAnswers
) -> None:
    """Answer the rows of one pattern, which agree in their states."""
    numbers = [n for n in cells if isinstance(problem.variables[n], Quantity)]
    codes = {n: int(c[0]) for n, c in cells.items() if n not in numbers}
    findings: Findings = {
        n: Finding(problem.variables[n], problem.variables[n].states[c], code=c) for n, c in codes.items()
    }
    asked = [t for t in targets if t not in cells]
    wanted = [t for t in asked if isinstance(problem.variables[t], Quantity)]
    switches = _switches(problem, [*numbers, *wanted], codes)
    scope = tuple(dict.fromkeys([*(t for t in asked if t not in wanted), *switches]))
    shape = tuple(len(problem.variables[n]) for n in scope)
    if prod(shape) > LISTED or len(numbers) > WIDEST or len(rows) == 1:
        _one_by_one(problem, cells, findings, rows, asked, found)
        return
    tables = Problem(
        {n: v for n, v in problem.variables.items() if not isinstance(v, Quantity)},
        [p for p in problem.pieces if p.kind in TABLES],
        findings,
    )
    log_states, weights = 0.0, np.ones(1)
    if tables.variables:
        engine = get_engine("auto")
        log_states = float(engine.log_mass(tables))
        if log_states == -np.inf:
            found.log_mass[rows] = -np.inf
            return
        if scope:
            weights = engine.joint(tables, list(scope)).tables[0].transpose(list(scope)).values.reshape(-1)
    x = np.stack([cells[n] for n in numbers], axis=1) if numbers else np.zeros((len(rows), 0))
    logs = np.full((len(weights), len(rows)), -np.inf)
    means, variances = np.zeros((len(weights), len(wanted), len(rows))), np.zeros((len(weights), len(wanted)))
    for d in np.flatnonzero(weights > 0.0).tolist():
        chosen: dict[str, Any] = dict(zip(scope, np.unravel_index(d, shape), strict=True)) if scope else {}
        fixed: Findings = {
            n: Finding(problem.variables[n], None, code=int(c)) for n, c in {**codes, **chosen}.items()
        }
        part = _gaussian(problem.with_findings(fixed), numbers, wanted, x)
        if part is None:
            _one_by_one(problem, cells, findings, rows, asked, found)
            return
        logs[d], means[d], variances[d] = part
        logs[d] += np.log(weights[d])
    top = logs.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    share = np.exp(logs - top)
    mass = share.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found.log_mass[rows] = log_states + top + np.log(mass)
        share /= mass
    for k, t in enumerate(wanted):
        mean = (share * means[:, k]).sum(axis=0)
        spread = (share * (variances[:, k, None] + (means[:, k] - mean) ** 2)).sum(axis=0)
        found.targets[t][rows] = np.stack([mean, spread], axis=1)
    by_state = share.reshape(*shape, len(rows))
    for axis, t in enumerate(scope):
        if t in asked:
            away = tuple(k for k in range(len(shape)) if k != axis)
            found.targets[t][rows] = by_state.sum(axis=away).T


def _switches(problem: Problem, numbers: Sequence[str], codes: Mapping[str, int]) -> list[str]:
    """Return the unknown states that the regressions of some numbers and their ancestors depend on."""
    flat = flat_network(problem)
    pieces = flat.by_child
    stack, seen = list(numbers), set(numbers)
    found: dict[str, None] = {}
    while stack:
        piece = pieces.get(stack.pop())
        for v in () if piece is None else piece.discrete:
            if v.name not in codes:
                found[v.name] = None
        for q in () if piece is None else piece.continuous:
            if q.name not in seen:
                seen.add(q.name)
                stack.append(q.name)
    return list(found)


def _gaussian(
    problem: Problem, numbers: Sequence[str], wanted: Sequence[str], x: Array
) -> tuple[Array, Array, Array] | None:
    """Return log densities of rows, means and variances of the wanted numbers; None where a density does not exist."""
    if not numbers and not wanted:
        return np.zeros(len(x)), np.zeros((0, len(x))), np.zeros(0)
    e = equations_of(problem, [*numbers, *wanted])
    solution = solve(e.system)
    place = {n: k for k, n in enumerate(e.names)}
    at = np.array([place[n] for n in (*numbers, *wanted)])
    k = len(numbers)
    mean, covariance = solution.mean[at], solution.covariance(at)
    try:
        root = np.linalg.cholesky(covariance[:k, :k])
    except np.linalg.LinAlgError:
        return None
    size = np.diag(root)
    if k and size.min() ** 2 < 1e-12 * covariance.diagonal().max():
        return None
    half = np.linalg.solve(root, np.column_stack([(x - mean[:k]).T, covariance[:k, k:]]))
    z, across = half[:, : len(x)], half[:, len(x) :]
    logs = -0.5 * (k * LOG_2PI + (z**2).sum(axis=0)) - np.log(size).sum()
    return logs, mean[k:, None] + across.T @ z, covariance.diagonal()[k:] - (across**2).sum(axis=0)


def _one_by_one(
    problem: Problem,
    cells: Mapping[str, Any],
    findings: Findings,
    rows: Ints,
    asked: Sequence[str],
    found: RowAnswers,
) -> None:
    engine = get_engine("gaussian")
    for k, row in enumerate(rows.tolist()):
        own = dict(findings)
        for name, column in cells.items():
            if name not in own:
                own[name] = Finding(problem.variables[name], float(column[k]), value=float(column[k]))
        here = problem.with_findings(own)
        found.log_mass[row] = engine.log_mass(here)
        if found.log_mass[row] == -np.inf or not asked:
            continue
        answer: Any = engine.marginals(here, asked)
        for t in asked:
            p = answer.posterior([t], Info("gaussian", exact=True))
            isnumber = isinstance(problem.variables[t], Quantity)
            found.targets[t][row] = (p.mean(), p.var()) if isnumber else p.values


def _missing(column: Any) -> Any:
    return np.isnan(column) if column.dtype.kind == "f" else column < 0
