"""L1-penalised logistic regression of each spin on the others: what Ising neighbourhoods and changing networks share.

Columns with two states are read as -1 and +1 (the first state is -1). In the Ising model `p(x)` proportional to
`exp(sum_i theta_i x_i + sum_ij theta_ij x_i x_j)` a spin has probability `logistic(2 x_k (theta_k + sum_j theta_kj x_j))`
given the others; its mean negative logarithm plus `alpha sum_j |theta_kj|` is minimised by Newton steps over the columns in
use, each solved by coordinate descent (as glmnet: Friedman, Hastie and Tibshirani 2010). Fits stop when the optimality
conditions hold to `TOLERANCE`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import InvalidArgument
from markovia.kernels.plain_code import either
from markovia.kernels.structure.structure_records import SpinFits
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice, check_level
from markovia.structure.task.knowledge import Rules

TOLERANCE = 1e-8
MAX_STEPS = 200
FIELDS = ("free", "penalised", "none")


@dataclass(frozen=True, eq=False)
class Spins:
    """Rows over two-state columns as -1 and +1.

    Attributes
    ----------
    names
        The columns.
    design
        One row a column, a last row of ones for the field, one column a data row.
    weights
        One number a data row.
    rules
        What is known beforehand, over these columns.
    """

    names: tuple[str, ...]
    design: Array
    weights: Array
    rules: Rules

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    def in_order(self, order: Ints) -> "Spins":
        """Return the rows in another order."""
        return replace(self, design=np.ascontiguousarray(self.design[:, order]), weights=self.weights[order])


def read_spins(
    mixed: MixedTable, rules: Rules, what: str, without: Sequence[str] = (), *, grouped: bool = False
) -> Spins:
    """Read two-state columns, or say which column is no such thing; `grouped` puts equal rows together."""
    chosen = [k for k, n in enumerate(mixed.names) if n not in without]
    names = tuple(mixed.names[k] for k in chosen)
    for k in chosen:
        if mixed.kinds[k] != "discrete":
            raise InvalidArgument(
                f"{what} needs columns with two states, and {mixed.names[k]!r} has measurements"
            )
        if mixed.cards[k] != 2:
            raise InvalidArgument(
                f"{what} needs columns with two states, and {mixed.names[k]!r} has {mixed.cards[k]}; "
                "l1-pseudo-likelihood takes any number"
            )
    if len(names) < 2:
        raise InvalidArgument(f"{what} needs at least two columns")
    table = mixed.codes()
    if table.n_rows == 0 or table.total <= 0:
        raise InvalidArgument(f"{what} needs rows")
    if grouped:
        codes, weights = table.distinct(names)
        cells = codes.T
    else:
        cells = np.array([table.column(name) for name in names])
        weights = (
            np.ones(table.n_rows) if table.weights is None else np.asarray(table.weights, dtype=np.float64)
        )
    design = np.ones((len(names) + 1, cells.shape[1]))
    design[:-1] = 2.0 * cells - 1.0
    used = np.ix_(chosen, chosen)
    return Spins(names, design, weights, Rules(rules.allowed[used], rules.required[used], rules.max_parents))


def read_field(field: str) -> float:
    """Return what the penalty of the field is multiplied by: 0, 1, or infinite for no field."""
    check_choice("field", field, FIELDS)
    return {"free": 0.0, "penalised": 1.0, "none": np.inf}[field]


def spin_factors(rules: Rules, field: float) -> Array:
    """Return for each spin what the penalty of each parameter is multiplied by; the last one is the field's."""
    n = len(rules.allowed)
    factors = np.full((n, n + 1), field)
    factors[:, :n] = np.where(rules.pairs, 1.0, np.inf)
    factors[:, :n][rules.required_pairs] = 0.0
    factors[np.arange(n), np.arange(n)] = np.inf
    return factors


def need_variation(spins: Spins, field: float) -> None:
    """Raise where a free field would be infinite: a column with one state only."""
    if field == 0.0:
        means = spins.design[:-1] @ spins.weights / spins.total
        flat = np.abs(means) >= 1.0 - 1e-15
        if flat.any():
            raise InvalidArgument(
                f"the column {spins.names[int(flat.argmax())]!r} has the same state in all rows; leave it out"
            )


def fit_spin(
    design: Array,
    node: int,
    shares: Array,
    factor: Array,
    alphas: Array,
    start: Array | None = None,
    tolerance: float = TOLERANCE,
) -> SpinFits:
    """Fit one spin for decreasing penalties; the shares of the rows sum to one."""
    fits = SpinFits(np.zeros((len(alphas), len(design))), np.zeros(len(alphas)), np.zeros(len(alphas)))
    if start is not None:
        fits.thetas[0] = start
    steps = 6 * len(alphas) * design.size * (1 + len(design) / 4)
    logistic_path = either("markovia.kernels.structure.sparse_logistic:logistic_path", steps)
    logistic_path(design, node, shares, factor, alphas, tolerance, MAX_STEPS, fits)
    return fits


def largest_alpha(design: Array, node: int, shares: Array, factor: Array) -> float:
    """Return the least penalty that leaves all penalised parameters of a spin at zero."""
    start = fit_spin(design, node, shares, np.where(factor == 0, 0.0, np.inf), np.zeros(1))
    y = design[node]
    margin = start.thetas[0] @ design
    slope = -2.0 * shares * y / (1.0 + np.exp(2.0 * y * margin))
    open_ones = np.isfinite(factor) & (factor > 0)
    return float(np.abs(design[open_ones] @ slope).max(initial=0.0)) * (1 + 1e-7)  # rounding joins nothing


def rate_alpha(n: int, total: float, level: float) -> float:
    """Return the penalty that noise alone exceeds with a chance of about `level` anywhere in a graph of n spins."""
    from scipy.special import ndtri

    check_level("level", level)
    return float(-ndtri(level / (2 * max(n, 2) ** 2)) / np.sqrt(total))
