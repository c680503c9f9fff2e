"""Draws of all variables, one after the other, with a weight: the common ground of the importance samplers.

A `SequentialSampler` is a list of steps. A step draws one variable given those before it: from a conditional
distribution, or in
proportion to a product of tables. What is left of the model is a list of factors; the log weight of a draw is the sum of
their logs, less the log probability of every step that says so. With the model's own conditionals as steps and the
findings as factors this is likelihood weighting; with other tables as steps and the whole model as factors it is
importance sampling.

Where every step has tables of moderate size the draws run in compiled code, otherwise in NumPy through
`Conditional.sample`; other factors are weighed by `Conditional.log_prob`. So a noisy-or of
hundreds of parents never becomes a table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.errors import CycleError, UnsupportedModel
from markovia.factors.tables.conditional import Conditional, ConditionalTable, draw_rows
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.problem import Piece, Problem
from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    from markovia.kernels.sampling.ancestral import Steps

Codes = NDArray[np.int32]
SMALL_TABLE = 2**14  # a structured conditional of at most this many entries is drawn from as a table
CHUNK_CELLS = 2**16  # about a hundredth of a second, so that time limits hold
PLAIN_CELLS = 2**18  # where a chunk is drawn variable by variable in NumPy, which costs as much for few rows
MAX_CHUNK = 2**14


class DrawTable(NamedTuple):
    """A table over columns; axes in the order of the scope."""

    scope: tuple[int, ...]
    values: Array


class Local(NamedTuple):
    """A conditional distribution that stays as it is; the scope is the parents, then the child."""

    scope: tuple[int, ...]
    conditional: Conditional


class DrawStep(NamedTuple):
    """Draw a column in proportion to a product of tables (or from one local model) given earlier columns.

    `weigh` says whether the probability of what was drawn is divided out of the weight.
    """

    column: int
    functions: Sequence[DrawTable | Local]
    weigh: bool


@dataclass(frozen=True)
class SequentialSampler:
    """Steps, factors and a constant that together draw and weigh configurations.

    Attributes
    ----------
    variables
        One a column.
    fixed
        The code of every fixed column; zero for the others.
    steps
        In an order in which every function only looks at fixed and earlier columns.
    factors
        What is multiplied into the weight.
    base
        Added to every log weight.
    """

    variables: Sequence[Variable]
    fixed: Codes
    steps: Sequence[DrawStep]
    factors: Sequence[DrawTable | Local]
    base: float = 0.0
    column: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", {v.name: i for i, v in enumerate(self.variables)})

    @property
    def chunk(self) -> int:
        """How many draws make a chunk: the same on every machine."""
        cells = PLAIN_CELLS if self._flat is None or self._local else CHUNK_CELLS
        return int(np.clip(cells // max(1, len(self.variables)), 64, MAX_CHUNK))

    def draw(self, rows: int, seed: np.random.SeedSequence) -> tuple[Codes, Array]:
        """Return codes, one row a draw and one column a variable, and log weights."""
        base = self.base + self._placed[1]
        if base == -np.inf:
            return np.tile(self.fixed, (rows, 1)), np.full(rows, -np.inf)
        if self._flat is None:
            return self._draw_numpy(rows, np.random.default_rng(seed), base)
        from markovia.kernels.sampling.ancestral import draw_weighted

        codes = np.empty((rows, len(self.variables)), dtype=np.int32)
        logs = np.empty(rows)
        scores = np.empty(max((len(v) for v in self.variables), default=1))
        state = seed.generate_state(4, np.uint64)
        draw_weighted(self._flat, state, codes, logs, base, self.fixed, scores)
        for factor in self._local:
            logs += _logs(factor, codes)
        return codes, logs

    @cached_property
    def _placed(self) -> tuple[list[list[DrawTable | Local]], float]:
        """The factors by the step after which they are complete, and the log of those that always are."""
        place = {step.column: k for k, step in enumerate(self.steps)}
        after: list[list[DrawTable | Local]] = [[] for _ in self.steps]
        constant = 0.0
        for factor in self.factors:
            last = max((place[c] for c in factor.scope if c in place), default=-1)
            if last >= 0:
                after[last].append(factor)
            else:
                constant += float(_logs(factor, self.fixed[None, :])[0])
        return after, constant

    @cached_property
    def _local(self) -> list[DrawTable | Local]:
        """The factors that have no table, such as an observed noisy-or of many parents."""
        return [f for group in self._placed[0] for f in group if isinstance(f, Local)]

    @cached_property
    def _flat(self) -> "Steps | None":
        """The steps as the kernel takes them, or None where a local model is drawn from that has no table."""
        after = self._placed[0]
        if any(isinstance(f, Local) for s in self.steps for f in s.functions):
            return None
        from markovia.kernels.sampling.ancestral import Steps

        functions = [
            _first(f, step.column) for step in self.steps for f in step.functions if isinstance(f, DrawTable)
        ]
        ptr = np.cumsum([0, *(len(s.functions) for s in self.steps)]).astype(np.int64)
        table, scope_ptr, scope, strides, values = _packed(functions)
        own = scope_ptr[:-1]  # the column that is drawn comes first
        others = np.ones(len(scope), dtype=bool)
        others[own] = False
        tables = [[f for f in group if isinstance(f, DrawTable)] for group in after]
        factors = [f for group in tables for f in group]
        factor_ptr = np.cumsum([0, *(len(group) for group in tables)]).astype(np.int64)
        with np.errstate(divide="ignore"):
            f_table, f_ptr, f_scope, f_strides, f_values = _packed(factors)
            logs = np.log(f_values)
        return Steps(
            np.array([s.column for s in self.steps], dtype=np.int64),
            np.array([len(v) for v in self.variables], dtype=np.int64),
            np.array([s.weigh for s in self.steps], dtype=np.int8),
            ptr,
            table,
            strides[own],
            scope_ptr - np.arange(len(scope_ptr)),
            scope[others],
            strides[others],
            values,
            factor_ptr,
            f_table,
            f_ptr,
            f_scope,
            f_strides,
            logs,
        )

    def _draw_numpy(self, rows: int, rng: np.random.Generator, base: float) -> tuple[Codes, Array]:
        codes = np.tile(self.fixed, (rows, 1)).T.copy()  # one contiguous row a variable
        logs = np.full(rows, base)
        for step, complete in zip(self.steps, self._placed[0], strict=True):
            first = step.functions[0]
            if isinstance(first, Local):
                parents = [codes[c] for c in first.scope[:-1]]
                drawn = first.conditional.sample(parents, rows, rng)
                codes[step.column] = drawn
                if step.weigh:
                    logs -= first.conditional.log_prob(drawn, parents)
            else:
                scores = _rows(step, codes, rows)
                drawn = draw_rows(scores, rows, rng)
                codes[step.column] = drawn
                with np.errstate(divide="ignore", invalid="ignore"):
                    total = scores.sum(axis=1)
                    if step.weigh:
                        logs -= np.log(scores[np.arange(rows), drawn] / total)
                    logs[~(total > 0)] = -np.inf
            for factor in complete:
                logs += _logs(factor, codes.T)
        logs[np.isnan(logs)] = -np.inf
        return np.ascontiguousarray(codes.T), logs


def _rows(step: DrawStep, codes: Codes, rows: int) -> Array:
    """Return the unnormalised scores of the states of a step's variable, one row a draw."""
    scores: Array | None = None
    for function in step.functions:
        assert isinstance(function, DrawTable)
        table = _first(function, step.column)
        moved = np.moveaxis(table.values, 0, -1)
        part = moved[tuple(codes[c] for c in table.scope[1:])]
        scores = np.broadcast_to(part, (rows, part.shape[-1])) if scores is None else scores * part
        top = scores.max(axis=1, keepdims=True)
        scores = scores / np.where(top > 0, top, 1.0)
    assert scores is not None
    return scores


def _logs(factor: DrawTable | Local, codes: Codes) -> Array:
    columns = [codes[:, c] for c in factor.scope]
    if isinstance(factor, Local):
        return factor.conditional.log_prob(columns[-1], columns[:-1])
    with np.errstate(divide="ignore"):
        logs: Array = np.log(np.atleast_1d(factor.values[tuple(columns)]))
    return logs


def _first(table: DrawTable, column: int) -> DrawTable:
    """Return a table as one whose first axis is the given column."""
    at = table.scope.index(column)
    scope = (column, *table.scope[:at], *table.scope[at + 1 :])
    return DrawTable(scope, np.moveaxis(table.values, at, 0))


def _packed(tables: Sequence[DrawTable]) -> tuple[Any, ...]:
    """Return offsets, scope pointers, scopes, strides and values of tables, one after the other."""
    sizes = [t.values.size for t in tables]
    offsets = np.cumsum([0, *sizes]).astype(np.int64)[:-1]
    scope_ptr = np.cumsum([0, *(len(t.scope) for t in tables)]).astype(np.int64)
    scope = np.array([c for t in tables for c in t.scope], dtype=np.int64)
    strides: list[int] = []
    for t in tables:
        shape = t.values.shape
        strides.extend(prod(shape[k + 1 :]) for k in range(len(shape)))
    values = np.concatenate([np.zeros(0), *(np.ascontiguousarray(t.values).ravel() for t in tables)])
    return offsets, scope_ptr, scope, np.array(strides, dtype=np.int64), values


# -- Bayesian networks ---------------------------------------------------------------------------------------------


def refuse_undirected(problem: Problem, engine: str) -> None:
    """Refuse pieces that are not conditional distributions, one a variable."""
    factor = next((p for p in problem.pieces if isinstance(p, Factor)), None)
    if factor is not None:
        raise UnsupportedModel(
            f"engine {engine!r} draws parents before children, but the factor over {list(factor.names)} has no "
            "direction; use engine='importance' or 'annealed-importance'"
        )
    seen: set[str] = set()
    for piece in problem.pieces:
        assert isinstance(piece, Conditional)
        if piece.variable.name in seen:
            raise UnsupportedModel(
                f"engine {engine!r} needs one conditional distribution a variable, but {piece.variable.name!r} has "
                "two; use engine='importance'"
            )
        seen.add(piece.variable.name)


def in_order(conditionals: Iterable[Conditional]) -> list[Conditional]:
    """Return conditional distributions with parents before children."""
    by_child = {c.variable.name: c for c in conditionals}
    left = {n: sum(q in by_child for q in c.parent_names) for n, c in by_child.items()}
    children: dict[str, list[str]] = {}
    for n, c in by_child.items():
        for q in c.parent_names:
            children.setdefault(q, []).append(n)
    ready = [n for n, k in left.items() if k == 0]
    found: list[Conditional] = []
    for n in ready:  # grows while it is read
        found.append(by_child[n])
        for child in children.get(n, ()):
            left[child] -= 1
            if left[child] == 0:
                ready.append(child)
    if len(found) < len(by_child):
        raise CycleError([n for n, k in left.items() if k > 0])
    return found


def ancestral_sampler(
    problem: Problem, targets: Iterable[str] | None, engine: str, *, draw_evidence: bool = False
) -> SequentialSampler:
    """Return the sampler that draws a Bayesian network from its own conditionals and weighs by the findings.

    Parameters
    ----------
    problem
        Conditional distributions and findings.
    targets
        What is asked for; what does not matter to it is left out. None keeps everything.
    engine
        The engine that asks, for its error messages.
    draw_evidence
        Draw observed variables too, and multiply by the finding's weights divided by the largest, so that every weight is
        a probability of acceptance.
    """
    refuse_undirected(problem, engine)
    pieces = problem.relevant(targets)
    names = {n for p in pieces for n in p.names}
    names.update(problem.variables if targets is None else targets, [v.name for v in problem.unmentioned()])
    variables = [v for n, v in problem.variables.items() if n in names]
    column = {v.name: i for i, v in enumerate(variables)}
    fixed = np.zeros(len(variables), dtype=np.int32)
    hard: Mapping[str, int] = {n: f.code for n, f in problem.findings.items() if f.code is not None}
    for n, code in hard.items():
        if n in column and not draw_evidence:
            fixed[column[n]] = code
    steps: list[DrawStep] = []
    factors: list[DrawTable | Local] = []
    base = 0.0
    drawn = set()
    for piece in in_order([p for p in pieces if isinstance(p, Conditional)]):
        local = local_of(piece, column)
        name = piece.variable.name
        drawn.add(name)
        if name in hard and not draw_evidence:
            factors.append(local)
        else:
            steps.append(DrawStep(column[name], [local], weigh=False))
    for variable in variables:  # what no piece mentions weighs all its states alike
        if variable.name not in drawn and (variable.name not in hard or draw_evidence):
            steps.insert(
                0, DrawStep(column[variable.name], [uniform(column[variable.name], variable)], False)
            )
            base += float(np.log(len(variable)))
    for n, finding in problem.findings.items():
        if n in column and (not finding.hard or draw_evidence):
            weights = finding.weights()
            top = float(weights.max()) if draw_evidence else 1.0
            base += float(np.log(top))
            factors.append(DrawTable((column[n],), weights / top))
    return SequentialSampler(variables, fixed, steps, factors, base)


def local_of(piece: Piece, column: Mapping[str, int]) -> DrawTable | Local:
    """Return a piece over columns: a table where it has a small one or is one, else the conditional itself."""
    scope = tuple(column[n] for n in piece.names)
    if isinstance(piece, Factor | ConditionalTable):
        return DrawTable(scope, piece.values)
    if piece.n_rows * len(piece.variable) <= SMALL_TABLE and len(scope) <= 32:
        return DrawTable(scope, piece.values)
    return Local(scope, piece)


def uniform(column: int, variable: Variable) -> DrawTable:
    """Return the table that gives every state the same probability."""
    return DrawTable((column,), np.full(len(variable), 1.0 / len(variable)))
