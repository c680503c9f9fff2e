"""Conditional mutual information tested by permutation within strata, for discrete data.

Method: the statistic is the empirical conditional mutual information of x and y given S, in nats. Under independence every
arrangement of the y cells within a stratum of S is equally likely, so tables with the same margins in every stratum are
drawn (Patefield's algorithm, what shuffling y within strata would give) and the p-value is the share of draws, the data
included, that say at least as much. It is exact whatever the number of rows, where G2 asks for large counts
(Tsamardinos and Borboudakis, *Permutation testing improves Bayesian network learning*, ECML 2010).

Cost: draws times cells of the table, whatever the number of rows. The draws depend only on the seed and the question,
so answers do not depend on the order of the tests. Tables of counts are all it needs, so rows may live anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count
from markovia.structure.ci_tests.ci_tests import CITest, Measured, Query
from markovia.structure.ci_tests.table_tests import discrete_table, stratified, table_statistic

DRAWN_CELLS = 2**22
"""Cells of the tables that are drawn at once."""


@dataclass(frozen=True)
class PermutationCMI:
    """Conditional mutual information with a permutation p-value, for discrete data.

    Parameters
    ----------
    alpha
        Independence is accepted where the p-value is larger.
    permutations
        How many tables are drawn; the smallest p-value is 1 / (permutations + 1).
    seed
        For the draws.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = {"a": [0, 0, 0, 1, 1, 1, 0, 1], "b": [0, 0, 0, 1, 1, 1, 0, 1]}
    >>> mk.learn_structure(rows, method="pc", test=mk.ci_tests.PermutationCMI(permutations=200)).n_edges
    1
    """

    alpha: float = 0.05
    permutations: int = 1000
    seed: int = 0

    def bind(self, data: MixedTable) -> CITest:
        """Return the test for these data."""
        return PermutationInformationTest(data, self.alpha, self.permutations, self.seed)


class PermutationInformationTest(CITest):
    """Conditional mutual information by permutation, bound to data."""

    name = "cmi"
    costly = True

    def __init__(self, data: MixedTable, alpha: float, permutations: int, seed: int) -> None:
        super().__init__(data.names, alpha)
        check_count("permutations", permutations, 1)
        check_count("seed", seed)
        if 1.0 / (permutations + 1) > alpha:
            raise InvalidArgument(
                f"with {permutations} permutations no p-value is below alpha = {alpha}; take more"
            )
        self.table = discrete_table(data, "cmi")
        self.cards = data.cards
        self.total = data.total
        self.permutations = permutations
        self.seed = seed

    def _compute(self, queries: Sequence[Query]) -> Array:
        return self._measure(queries).p_value

    def _measure(self, queries: Sequence[Query]) -> Measured:
        p, statistic = np.empty(len(queries)), np.empty(len(queries))
        for place, counts in stratified(self.table, self.names, self.cards, queries):
            x, y, given = queries[place]
            rng = np.random.default_rng([self.seed, x, y, *given])
            statistic[place] = table_statistic(counts)[0] / (2.0 * self.total)
            p[place] = permutation_p_value(counts, self.permutations, rng)
        return Measured(p, statistic, np.full(len(queries), np.nan))


def permutation_p_value(counts: Array, permutations: int, rng: np.random.Generator) -> float:
    """Return the share of tables with the same margins in every stratum, the observed one included, that depend as much."""
    from scipy.special import xlogy
    from scipy.stats import random_table

    whole = np.rint(counts)
    if np.abs(counts - whole).max(initial=0.0) > 1e-9:
        raise InvalidArgument("a permutation test needs whole numbers of rows; the weights have fractions")
    observed, drawn = 0.0, np.zeros(permutations)
    for table in whole.astype(np.int64):
        table = table[table.any(axis=1)][:, table.any(axis=0)]
        if min(table.shape) < 2:
            continue
        observed += float(xlogy(table, table).sum())
        margins = random_table(table.sum(axis=1), table.sum(axis=0))
        step = max(1, DRAWN_CELLS // table.size)
        for first in range(0, permutations, step):
            last = min(first + step, permutations)
            some = margins.rvs(last - first, random_state=rng)
            some = some.reshape(last - first, -1)
            drawn[first:last] += xlogy(some, some).sum(axis=1)
    as_much = int((drawn >= observed - 1e-9 * max(1.0, abs(observed))).sum())
    return (1.0 + as_much) / (1.0 + permutations)
