"""Discrete rows with gaps, completed under a network: what structural EM searches over.

Every incomplete row becomes the rows it may stand for, each with its posterior probability as weight; counts of any family
over these rows are its expected counts, exactly. Where the completions would be too many, or `draws` are asked, each row is
drawn so many times from its posterior instead. Tables are learned by EM (`markovia.learning.incomplete.em`), whose
expectations are exact sums on clique trees.
Cost: of completing, for each row the product of the states of its missing cells times the variables; or the draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from markovia.data.tables.reading_mixed import DISCRETE, MixedTable
from markovia.data.tables.row_sources import CodedTable
from markovia.errors import ImpossibleEvidence, InvalidArgument
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.learning.incomplete.e_step import ExpectedCounter
from markovia.learning.incomplete.em import EM, run_em, starting_tables
from markovia.learning.tables.table_learner import NodeFamily, TableLearner, weighted_log
from markovia.runtime.array_types import Array, Ints

Parents = Sequence[Sequence[int]]
MOST_ROWS = 1_000_000
"""Completed rows up to which each row is completed in every way."""
DEFAULT_DRAWS = 20


@dataclass
class FittedTables:
    """Tables of a network, the log likelihood of the observed cells, and whether EM converged."""

    parents: list[tuple[int, ...]]
    tables: Sequence[Conditional]
    log_likelihood: float
    converged: bool


class TableCompletion:
    """Rows with gaps over discrete variables, some never observed.

    Parameters
    ----------
    table
        The rows.
    variables
        All variables in order; those without a column are hidden.
    draws
        Completions drawn for each row; None for all of them where they are not too many.
    rng
        For draws and random starts.
    """

    def __init__(
        self,
        table: CodedTable,
        variables: Sequence[Variable],
        draws: int | None,
        rng: np.random.Generator,
        tolerance: float,
    ) -> None:
        self.variables = tuple(variables)
        codes = np.full((len(variables), table.n_rows), -1, dtype=np.int64)
        for k, v in enumerate(variables):
            if v.name in table.variables:
                codes[k] = table.column(v.name)
        weights = np.ones(table.n_rows) if table.weights is None else table.weights
        distinct, place = np.unique(codes.T, axis=0, return_inverse=True)
        self.codes = np.ascontiguousarray(distinct.T)
        self.weights: Array = np.bincount(place.ravel(), weights, minlength=len(distinct)).astype(np.float64)
        self.table = CodedTable(self.variables, self.codes.astype(np.int32), self.weights)
        self.rng = rng
        self.settings = EM(tolerance=tolerance, progress=False)
        cards = np.array([len(v) for v in variables], dtype=np.float64)
        ways = np.where(self.codes < 0, cards[:, None], 1.0).prod(axis=0)
        self.draws = draws
        if draws is None and ways.sum() > MOST_ROWS:
            self.draws = DEFAULT_DRAWS
        self.cards = cards.astype(np.int64)
        self._all: tuple[Ints, Ints] | None = None

    @property
    def exact(self) -> bool:
        """Whether rows are completed in every way."""
        return self.draws is None

    def start(self, parents: Parents, random: bool) -> FittedTables:
        """Return tables to begin with: from the rows that show a family whole, or random ones."""
        learner, counter = self._learner(parents)
        tables = starting_tables(learner, counter, "random" if random else "auto", self.rng)
        return FittedTables([tuple(p) for p in parents], tables, -np.inf, False)

    def improved(self, now: FittedTables) -> FittedTables:
        """Run EM from some tables."""
        learner, counter = self._learner(now.parents)
        run = run_em(learner, counter, now.tables, self.settings)
        return FittedTables(
            now.parents, run.state.tables, run.state.expectation.log_likelihood, run.converged
        )

    def estimated(self, parents: Parents, data: MixedTable) -> FittedTables:
        """Return the tables of another graph by maximum likelihood from completed rows."""
        return FittedTables([tuple(p) for p in parents], self._fitted(parents, data)[1], -np.inf, False)

    def complete_log_likelihood(self, parents: Parents, data: MixedTable) -> float:
        """Return the log likelihood of completed rows under the tables that fit them best."""
        return float(
            sum(weighted_log(n, t.values) for n, t in zip(*self._fitted(parents, data), strict=True))
        )

    def _fitted(self, parents: Parents, data: MixedTable) -> tuple[Sequence[Array], Sequence[Conditional]]:
        families = self._families(parents)
        assert data.table is not None
        counts = data.table.counts([f.scope for f in families])
        return counts, TableLearner(families).estimate(counts)

    def completed(self, now: FittedTables) -> MixedTable:
        """Return weighted complete rows with the posterior of the missing cells under some tables."""
        codes, weights = self._drawn(now) if self.draws is not None else self._in_every_way(now)
        table = CodedTable(self.variables, codes.astype(np.int32), weights)
        return MixedTable([v.name for v in self.variables], [DISCRETE] * len(self.variables), table, None)

    def _in_every_way(self, now: FittedTables) -> tuple[Ints, Array]:
        if self._all is None:
            self._all = every_completion(self.codes, self.cards)
        codes, owner = self._all
        logs = self._log_joint(now, codes)
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        top = np.maximum.reduceat(logs, first)
        if np.isneginf(top).any():
            row = int(owner[first[int(np.isneginf(top).argmax())]])
            raise ImpossibleEvidence(
                {
                    v.name: v.states[c]
                    for v, c in zip(self.variables, self.codes[:, row], strict=False)
                    if c >= 0
                }
            )
        share = np.exp(logs - top[owner])
        share /= np.add.reduceat(share, first)[owner]
        keep = share > 0
        weights: Array = (share * self.weights[owner])[keep]
        return codes[:, keep], weights

    def _drawn(self, now: FittedTables) -> tuple[Ints, Array]:
        assert self.draws is not None
        _, counter = self._learner(now.parents)
        if len(counter.rows.wide):
            raise InvalidArgument("the missing cells hang together too widely to be drawn; limit max_parents")
        theta = counter.rows.layout.flat(now.tables)
        gaps = (self.codes < 0).any(axis=0)
        parts, weights = [self.codes[:, ~gaps]], [self.weights[~gaps]]
        for _ in range(self.draws):
            filled, _ = counter.rows.filled(theta, self.rng)
            parts.append(filled[:, gaps].astype(np.int64))
            weights.append(self.weights[gaps] / self.draws)
        return np.concatenate(parts, axis=1), np.concatenate(weights)

    def _log_joint(self, now: FittedTables, codes: Ints) -> Array:
        logs = np.zeros(codes.shape[1])
        for child, (parents, table) in enumerate(zip(now.parents, now.tables, strict=True)):
            with np.errstate(divide="ignore"):
                logs += np.log(table.values)[tuple(codes[v] for v in (*parents, child))]
        return logs

    def _families(self, parents: Parents) -> list[NodeFamily]:
        own = self.variables
        return [NodeFamily(v, tuple(own[p] for p in ps)) for v, ps in zip(own, parents, strict=True)]

    def _learner(self, parents: Parents) -> tuple[TableLearner, ExpectedCounter]:
        families = self._families(parents)
        return TableLearner(families), ExpectedCounter(families, self.table)


def every_completion(codes: Ints, cards: Ints) -> tuple[Ints, Ints]:
    """Return each row completed in every way, one column a completed row, and the row that each stands for, in order."""
    gaps = codes < 0
    patterns, of_row = np.unique(gaps.T, axis=0, return_inverse=True)
    parts, owners = [], []
    for k, pattern in enumerate(patterns):
        rows = np.flatnonzero(of_row.ravel() == k)
        missing = np.flatnonzero(pattern)
        ways = (
            np.indices(cards[missing].tolist()).reshape(len(missing), -1)
            if len(missing)
            else np.zeros((0, 1), int)
        )
        block = np.repeat(codes[:, rows], ways.shape[1], axis=1)
        if len(missing):
            block[missing] = np.tile(ways, len(rows))
        parts.append(block)
        owners.append(np.repeat(rows, ways.shape[1]))
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    return np.concatenate(parts, axis=1)[:, order], owner[order]
