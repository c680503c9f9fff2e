"""The two phases of the gradient of an undirected model whose rows miss cells: what is given, and what the model dreams.

With x the observed cells of a row and h the others (hidden variables, and missing cells), the likelihood of a row is a ratio
of two sums over configurations, p(x) = Z(x) / Z, so that

    log p(x) = log Z(x) - log Z,        gradient  E[F | x] - E[F].

The *positive phase* E[F | x] is exact where the missing cells of a row fall into narrow pieces once the others are known
(`ExactPositivePhase`: the clique trees of `learning/incomplete`, equal cases once), and otherwise a product of
distributions, which makes log Z(x) a lower bound (`MeanFieldPositivePhase`). The *negative phase* is any `Expectations`, or
Gibbs chains (`contrastive_divergence.py`). References: Ackley, Hinton and Sejnowski (1985); Neal and Hinton (1998);
Salakhutdinov and Hinton (2009) for mean field here. Cost: the distinct cases times the entries of their cliques; for mean
field the distinct rows times sweeps times the entries of the tables around each missing cell.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.row_sources import CodedTable
from markovia.errors import TooLarge
from markovia.kernels.plain_code import either
from markovia.learning.fields.contrastive_divergence import equal_parts
from markovia.learning.fields.field_layout import FieldLayout
from markovia.learning.fields.log_linear_fit import Expectations
from markovia.learning.incomplete.incomplete_rows import IncompleteRows, TableLayout, full_codes
from markovia.runtime.array_types import Array
from markovia.runtime.threads import in_parallel

SWEEPS = 100
"""Sweeps of mean field over a row at most; the bound holds after any of them."""
STILL = 1e-8
"""The change of a probability in a sweep of mean field below which a row has settled."""


class PhaseStatistics(NamedTuple):
    """What rows say under some log tables.

    Attributes
    ----------
    log_mass
        The mean over rows of log Z(x), or of a lower bound on it; minus infinity where a row has weight zero.
    cells
        The mean over rows of the marginals of all tables given the row, one after the other.
    beliefs
        Where mean field ended, one row a distinct row and one column a single cell; empty for exact sums.
    """

    log_mass: float
    cells: Array
    beliefs: Array


class ExactPositivePhase:
    """The positive phase by exact sums over the missing cells; refused where those of a row hang together too widely.

    Parameters
    ----------
    layout, table
        The model and the rows; variables without a column are hidden.

    Examples
    --------
    >>> from markovia.factors.potentials.log_linear import Feature
    >>> from markovia.factors.tables.variable import Variable
    >>> from markovia.learning.fields.field_layout import layout_of_features
    >>> seen, hidden = Variable("seen", 2), Variable("hidden", 2)
    >>> layout = layout_of_features([Feature([seen, hidden], [[0.0, 0.0], [0.0, 1.0]])])
    >>> phase = ExactPositivePhase(layout, CodedTable([seen], np.array([[0, 1, 1]])))
    >>> layout.features(phase(layout.log_tables(np.zeros(1))).cells).round(4).tolist()  # both seen and hidden
    [0.3333]
    """

    exact = True

    def __init__(self, layout: FieldLayout, table: CodedTable) -> None:
        scopes: list[tuple[int, ...]] = [(i,) for i in range(len(layout.variables))]
        self.layout = layout
        self.rows = IncompleteRows(TableLayout(layout.variables, scopes + layout.scopes), table)
        self.total = float(self.rows.weights.sum())
        shown = np.add.reduceat(self.rows.complete, layout.cell_ptr[:-1])
        self._whole = np.flatnonzero(shown > 0)  # tables that some row shows without a gap
        if len(self.rows.wide):
            row = int(self.rows.groups.row[self.rows.wide[0]])
            raise TooLarge(
                f"the cells that row {row} misses hang together too widely to be summed out exactly; use "
                "method='mean-field'"
            )

    def __call__(
        self, log_tables: Array, beliefs: Array | None = None, weights: Array | None = None
    ) -> PhaseStatistics:
        """Return what the rows say, with the given weights in place of their own; equal pieces are summed once."""
        rows = self.rows
        total = self.total if weights is None else float(weights.sum())
        if weights is None:
            counts = rows.complete.copy()
        else:
            used = np.flatnonzero(weights > 0)
            counts = rows.count(rows.codes[:, used], weights[used], self._whole)
        shifted, top = self._shifted(log_tables)
        some = counts > 0
        seen = float(counts[some] @ shifted[some])
        log_mass, bad = rows.expect(np.exp(shifted), counts, weights)
        if bad >= 0:
            return PhaseStatistics(-np.inf, np.full(self.layout.n_cells, np.nan), np.zeros(0))
        return PhaseStatistics((seen + log_mass) / total + top, counts / total, np.zeros(0))

    def drawn(self, log_tables: Array, rng: np.random.Generator) -> NDArray[Any]:
        """Return the codes of all rows, one column a row, with what is missing drawn given the rest."""
        return self.rows.filled(np.exp(self._shifted(log_tables)[0]), rng)[0]

    def _shifted(self, log_tables: Array) -> tuple[Array, float]:
        """Return tables less their largest entries, and the sum of these, because each row meets each table once."""
        top = np.maximum.reduceat(log_tables, self.layout.cell_ptr[:-1])
        top = np.where(np.isfinite(top), top, 0.0)
        return log_tables - np.repeat(top, np.diff(self.layout.cell_ptr)), float(top.sum())


class MeanFieldPositivePhase:
    """The positive phase with a product of distributions for the missing cells of each row: a lower bound.

    Parameters
    ----------
    layout, table
        As for `ExactPositivePhase`; nothing is too wide.
    """

    exact = False

    def __init__(self, layout: FieldLayout, table: CodedTable) -> None:
        self.layout = layout
        own = np.ones(table.n_rows) if table.weights is None else table.weights
        self.total = float(own.sum())
        codes, place = np.unique(full_codes(layout.variables, table), axis=1, return_inverse=True)
        self._place, self.codes = place.ravel(), np.ascontiguousarray(codes.T)
        self.weights = np.bincount(self._place, own, minlength=len(self.codes))

    @cached_property
    def even(self) -> Array:
        """One for what is observed, the same probability for every state of what is not."""
        arrays = self.layout.arrays
        owner = np.repeat(np.arange(len(arrays.cards)), arrays.cards)
        state = np.arange(self.layout.n_single) - arrays.starts[owner]
        seen = self.codes[:, owner]
        return np.where(seen < 0, 1.0 / arrays.cards[owner], (seen == state).astype(np.float64))

    def __call__(
        self, log_tables: Array, beliefs: Array | None = None, weights: Array | None = None
    ) -> PhaseStatistics:
        """Return the bound and what the products expect; it never falls when it goes on from its own beliefs."""
        layout, k, each = self.layout, self.layout.n_single, self.weights
        if weights is not None:
            each = np.bincount(self._place, weights, minlength=len(self.codes)).astype(np.float64)
        used = np.flatnonzero(each > 0)
        q = np.ascontiguousarray((self.even if beliefs is None or not len(beliefs) else beliefs)[used])
        bounds, rows = np.empty(len(used)), (np.ascontiguousarray(self.codes[used]), each[used])
        steps = 20.0 * len(used) * layout.n_cells
        ascend = either("markovia.kernels.fields.clamped_mean_field:clamped_mean_field", steps)

        def part(task: tuple[int, int], scores: Array) -> Array:
            counts = np.zeros(layout.n_cells)
            ascend(
                *task, SWEEPS, STILL, rows, layout.arrays, (log_tables[:k], log_tables[k:]), q, scores, bounds,
                (counts[:k], counts[k:]),
            )  # fmt: skip
            return counts

        found = in_parallel(part, equal_parts(len(used)), lambda: np.empty(int(layout.arrays.cards.max())))
        total = float(each.sum())
        return PhaseStatistics(float(bounds @ rows[1]) / total, np.sum(found, axis=0) / total, q)

    def drawn(self, log_tables: Array, rng: np.random.Generator) -> NDArray[Any]:
        """Return the codes of all rows, one column a row, with any states in place of what is missing."""
        codes = self.codes[self._place].T
        return np.where(codes < 0, rng.integers(self.layout.arrays.cards[:, None], size=codes.shape), codes)


PositivePhase: TypeAlias = ExactPositivePhase | MeanFieldPositivePhase


def incomplete_likelihood(
    layout: FieldLayout, positive: PositivePhase, negative: Expectations
) -> Callable[[Array], tuple[float, Array]]:
    """Return the mean negative log likelihood of what rows show, and its gradient, as a function of the weights.

    With mean field it is an upper bound on it, and the gradient that of the bound. It is not convex.

    Parameters
    ----------
    layout
        The model.
    positive, negative
        The phase of the rows, and log Z with the model's own marginals.

    Examples
    --------
    >>> from markovia.factors.potentials.log_linear import Feature
    >>> from markovia.factors.tables.variable import Variable
    >>> from markovia.learning.fields.exact_expectations import exact_expectations
    >>> from markovia.learning.fields.field_layout import layout_of_features
    >>> seen, hidden = Variable("seen", 2), Variable("hidden", 2)
    >>> layout = layout_of_features([Feature([seen, hidden], [[0.0, 0.0], [0.0, 1.0]])])
    >>> phase = ExactPositivePhase(layout, CodedTable([seen], np.array([[0, 1, 1]])))
    >>> value, gradient = incomplete_likelihood(layout, phase, exact_expectations(layout))(np.zeros(1))
    >>> round(value, 6), gradient.round(4).tolist()
    (0.693147, [-0.0833])
    """

    def loss(weights: Array) -> tuple[float, Array]:
        log_tables = layout.log_tables(weights)
        clamped = positive(log_tables)
        log_z, marginals = negative(log_tables)
        return log_z - clamped.log_mass, layout.features(marginals - clamped.cells)

    return loss


def positive_phase(layout: FieldLayout, table: CodedTable, how: str = "auto") -> PositivePhase:
    """Return the phase of rows: "exact", "mean-field", or "auto" for exact sums where they are narrow enough."""
    if how != "mean-field":
        try:
            return ExactPositivePhase(layout, table)
        except TooLarge:
            if how == "exact":
                raise
    return MeanFieldPositivePhase(layout, table)
