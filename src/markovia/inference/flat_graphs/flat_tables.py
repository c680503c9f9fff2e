"""The tables of a model one after the other, so that a question only cuts its evidence out of them in compiled code.

Method: the first question copies all tables into one array and numbers the variables; the model remembers that. Every
question then takes its observed states out, drops conditionals that cannot matter, and multiplies tables inside others
into those. Cost: one pass over the entries. Models with noisy-ors, gates or factors given by entries take another way.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.problem import Piece, Problem
from markovia.runtime.array_types import Array, Ints

if TYPE_CHECKING:
    from collections.abc import Mapping

REMEMBERED = "whole tables"
LARGE = 2**22
"""Entries from which on the copy is not kept for a model without evidence."""
LARGEST = 2**27
"""Entries from which on no copy is kept."""
_scope, _values, _name = attrgetter("variables"), attrgetter("values"), attrgetter("name")
_NO_INTS: Ints = np.zeros(0, dtype=np.int64)
_NO_FLOATS: Array = np.zeros(0)


@dataclass(frozen=True)
class WholeTables:
    """All tables of a model; names as in `FlatGraph`.

    Attributes
    ----------
    pieces
        What the tables were made from.
    variables, number
        The variables in model order, and their numbers by name.
    begins
        Where each table begins in `values`.
    child
        For each table the variable that it sums to one over, or -1.
    mentioned
        One for each variable that is in a table, otherwise zero.
    """

    pieces: list[Piece]
    variables: tuple[Variable, ...]
    number: dict[str, int]
    cards: Ints
    scope_ptr: Ints
    scope: Ints
    begins: Ints
    values: Array
    child: Ints
    mentioned: NDArray[np.int8]


class Cut(NamedTuple):
    """What evidence leaves of the tables; names as in `FlatGraph`."""

    variables: tuple[Variable, ...]
    cards: Ints
    starts: Ints
    unary: Array
    scope_ptr: Ints
    scope: Ints
    strides: Ints
    table_ptr: Ints
    values: Array
    edge_ptr: Ints
    edges: Ints
    edge_factor: Ints
    log_scale: float


def same_pieces(some: Sequence[Piece], others: Sequence[Piece]) -> bool:
    """Say whether two lists hold the same objects."""
    return len(some) == len(others) and list(map(id, some)) == list(map(id, others))


def whole_tables(problem: Problem) -> WholeTables | None:
    """Return the tables of a problem as one array; None where they are not all plain tables, or too large."""
    memory = problem.memory
    kept: WholeTables | None = None if memory is None else memory.get(REMEMBERED)
    if kept is not None and same_pieces(kept.pieces, problem.pieces):
        return kept
    pieces = list(problem.pieces)
    kinds = set(map(type, pieces))
    if not kinds <= {Factor, ConditionalTable}:
        return None
    tables = list(map(_values, pieces))
    if sum([t.size for t in tables]) > LARGEST:
        return None
    made = _joined(problem.variables, pieces, tables, directed=ConditionalTable in kinds)
    if memory is not None and (problem.findings or len(made.values) <= LARGE):
        memory[REMEMBERED] = made
    return made


def _joined(
    variables: "Mapping[str, Variable]", pieces: list[Piece], tables: list[Array], *, directed: bool
) -> WholeTables:
    if directed:
        scopes = [p.variables if isinstance(p, Factor) else (*p.parents, p.variable) for p in pieces]
        number = {n: i for i, n in enumerate(variables)}
        child = [-1 if isinstance(p, Factor) else number[p.variable.name] for p in pieces]
    else:
        scopes = list(map(_scope, pieces))
        number = dict(zip(variables, range(len(variables)), strict=True))
        child = [-1] * len(pieces)
    scope_ptr = np.zeros(len(pieces) + 1, dtype=np.int64)
    np.cumsum(list(map(len, scopes)), out=scope_ptr[1:])
    names = map(_name, chain.from_iterable(scopes))
    scope = np.fromiter(map(number.__getitem__, names), dtype=np.int64, count=int(scope_ptr[-1]))
    mentioned = np.zeros(len(number), dtype=np.int8)
    mentioned[scope] = 1
    begins, values = _one_after_the_other(tables)
    return WholeTables(
        pieces=pieces,
        variables=tuple(variables.values()),
        number=number,
        cards=np.array([len(v.states) for v in variables.values()], dtype=np.int64),
        scope_ptr=scope_ptr,
        scope=scope,
        begins=begins,
        values=values,
        child=np.array(child, dtype=np.int64),
        mentioned=mentioned,
    )


def _one_after_the_other(tables: list[Array]) -> tuple[Ints, Array]:
    """Return where each table begins, and all entries; tables of one shape lie together, which is faster to copy."""
    shapes = [t.shape for t in tables]
    begins = np.zeros(len(tables), dtype=np.int64)
    parts: list[Array] = []
    at = 0
    different = set(shapes)
    if len(tables) < 4 * len(different):
        sizes = np.array([t.size for t in tables], dtype=np.int64)
        parts = [t.reshape(-1) for t in tables]
        begins = np.cumsum(sizes) - sizes
    else:
        kinds = {s: k for k, s in enumerate(different)}
        kind = np.array(list(map(kinds.__getitem__, shapes)), dtype=np.int64)
        for shape, k in kinds.items():
            chosen = np.flatnonzero(kind == k)
            size = prod(shape)
            picked = map(tables.__getitem__, chosen.tolist())
            parts.append(
                np.concatenate([t.reshape(1) for t in picked] if not shape else list(picked)).reshape(-1)
            )
            begins[chosen] = at + size * np.arange(len(chosen))
            at += size * len(chosen)
    values = np.concatenate(parts) if parts else np.zeros(0)
    return begins, np.ascontiguousarray(values, dtype=np.float64)


def cut_tables(problem: Problem, targets: Iterable[str] | None, *, absorb: bool) -> Cut | None:
    """Return what the evidence leaves of the tables; None where `whole_tables` is."""
    from markovia.kernels.flat_graphs.evidence_cutting import cut_down

    whole = whole_tables(problem)
    if whole is None:
        return None
    number, variables = whole.number, whole.variables
    code = np.full(len(variables), -1, dtype=np.int64)
    needed = np.zeros(len(variables), dtype=np.int8)
    soft, likelihoods = [], []
    for name, finding in problem.findings.items():
        i = number[name]
        needed[i] = 1
        if finding.code is None:
            soft.append(i)
            likelihoods.append(finding.weights())
        else:
            code[i] = finding.code
    if targets is not None:
        needed[[number[t] for t in targets]] = 1
    found: Any = cut_down(
        whole.cards, whole.scope_ptr, whole.scope, whole.begins, whole.values, whole.child, whole.mentioned, code,
        needed, targets is not None, *_log_likelihoods(soft, likelihoods), absorb,
    )  # fmt: skip
    return Cut(tuple([variables[i] for i in found[0].tolist()]), *found[1:])


def _log_likelihoods(soft: list[int], likelihoods: list[Array]) -> tuple[Ints, Ints, Array]:
    """Return variables with likelihoods, where those of each begin, and their logarithms."""
    if not soft:
        return _NO_INTS, _NO_INTS, _NO_FLOATS
    starts = np.cumsum([0, *map(len, likelihoods)])
    with np.errstate(divide="ignore"):
        return np.array(soft, dtype=np.int64), starts.astype(np.int64), np.log(np.concatenate(likelihoods))
