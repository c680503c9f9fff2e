"""Expected counts where the missing cells hang together too widely for a clique tree: an engine answers case by case.

The families that touch a component, with the observed states put in, are factors over its variables alone; the engine is
asked for the joint posterior of each family's missing variables. Loopy belief propagation reads all of them off one run.
Engines that draw but know no log mass, such as Gibbs, give the counts of their draws.
Cost: one run a distinct case and iteration. EM with such counts need not be monotone.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import ImpossibleEvidence
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.factor import Factor
from markovia.inference.approximate import can_answer
from markovia.inference.engine import Engine
from markovia.inference.problem import Problem
from markovia.learning.incomplete.incomplete_rows import IncompleteRows
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import generator

DRAWS = 1000
"""Draws a case, for engines that only draw."""


class _Touching(NamedTuple):
    """A family around a component: its number, the states of its observed variables, its missing variables."""

    family: int
    place: tuple[Any, ...]
    free: tuple[str, ...]


class _Case(NamedTuple):
    row: int
    weight: float
    members: tuple[int, ...]
    touching: tuple[_Touching, ...]


class WideCases:
    """The distinct components of some rows that no exact tree sums out.

    Parameters
    ----------
    rows
        The layout; its `wide` groups are taken.
    engine
        Who answers.
    seed
        For engines that draw; the same draws' seeds serve every iteration.
    """

    def __init__(self, rows: IncompleteRows, engine: Engine, seed: Any = None) -> None:
        self.rows = rows
        self.engine = engine
        self.entropy = int(generator(seed).integers(2**63))
        self.draws = not can_answer(engine, "log_mass")
        found: dict[Any, _Case] = {}
        for g in rows.wide.tolist():
            row, pattern = int(rows.groups.row[g]), int(rows.groups.pattern[g])
            members = rows.groups.member[slice(*rows.groups.member_start[pattern : pattern + 2])].tolist()
            touching = self._touching(row, members)
            key = (pattern, *(-1 if isinstance(i, slice) else i for t in touching for i in t.place))
            before = found.get(key)
            weight = float(rows.weights[row]) + (0.0 if before is None else before.weight)
            found[key] = _Case(row if before is None else before.row, weight, tuple(members), touching)
        self.cases = list(found.values())

    def expect(self, tables: Sequence[Conditional], counts: Array) -> tuple[float, int]:
        """Add the expected counts; return the log mass (NaN if unknown) and how many cases did not converge."""
        split = self.rows.layout.split(counts)
        total, unconverged = 0.0, 0
        for number, case in enumerate(self.cases):
            problem = self._problem(case, tables)
            if self.draws:
                rng = np.random.default_rng([self.entropy, number])
                drawn = self.engine.sample(problem, DRAWS, rng)
                for t in case.touching:
                    table = split[t.family][t.place]
                    np.add.at(table, tuple(drawn[n] for n in t.free), case.weight / DRAWS)
                total = np.nan
                continue
            log_mass, converged = 0.0, True
            for t in case.touching:
                answer = self.engine.joint(problem, t.free)
                if answer.log_mass == -np.inf:
                    raise ImpossibleEvidence(self._shown(case))
                split[t.family][t.place] += case.weight * answer.tables[0].values
                log_mass, converged = answer.log_mass, converged and answer.record.converged
            total += case.weight * log_mass
            unconverged += not converged
        return total, unconverged

    def fill(self, tables: Sequence[Conditional], codes: Any, rng: np.random.Generator | None) -> None:
        """Put the engine's best states into `codes`, or with a generator a draw, group by group."""
        rows = self.rows
        for g in rows.wide.tolist():
            row, pattern = int(rows.groups.row[g]), int(rows.groups.pattern[g])
            members = rows.groups.member[slice(*rows.groups.member_start[pattern : pattern + 2])].tolist()
            problem = self._problem(_Case(row, 1.0, tuple(members), self._touching(row, members)), tables)
            if rng is None:
                found: Any = self.engine.best(problem, problem.free, 1)[0].codes
            else:
                found = {n: drawn[0] for n, drawn in self.engine.sample(problem, 1, rng).items()}
            for v in members:
                codes[v, row] = found[rows.layout.names[v]]

    def _touching(self, row: int, members: list[int]) -> tuple[_Touching, ...]:
        layout, arrays = self.rows.layout, self.rows.layout.arrays
        codes = self.rows.codes[:, row].tolist()
        inside = set(members)
        families = sorted(
            {int(f) for v in members for f in arrays.of_family[arrays.of_start[v] : arrays.of_start[v + 1]]}
        )
        found = []
        for f in families:
            scope = layout.scopes[f]
            index = tuple(slice(None) if v in inside else codes[v] for v in scope)
            found.append(_Touching(f, index, tuple(layout.names[v] for v in scope if v in inside)))
        return tuple(found)

    def _problem(self, case: _Case, tables: Sequence[Conditional]) -> Problem:
        own = self.rows.layout.variables
        variables = {own[v].name: own[v] for v in case.members}
        pieces = [
            Factor.of(
                tuple(variables[n] for n in t.free), np.ascontiguousarray(tables[t.family].values[t.place])
            )
            for t in case.touching
        ]
        return Problem(variables, pieces, {}, {})

    def _shown(self, case: _Case) -> dict[str, object]:
        variables, codes = self.rows.layout.variables, self.rows.codes[:, case.row].tolist()
        return {v.name: v.states[c] for v, c in zip(variables, codes, strict=True) if c >= 0}
