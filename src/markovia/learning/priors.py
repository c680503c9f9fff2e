"""Prior distributions of conditional tables, said in pseudo-counts.

Every row of a table has its own Dirichlet distribution; observed counts add to its parameters, and the posterior mean
is `(N + a) / sum(N + a)`. References: Heckerman, Geiger & Chickering (1995) for BDeu; Cooper & Herskovits (1992) for K2.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, runtime_checkable

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.conditional import table_shape
from markovia.factors.factor import Array
from markovia.factors.variable import Variable


@runtime_checkable
class Prior(Protocol):
    """Pseudo-counts for the table of any node."""

    def pseudo_counts(self, variable: Variable, parents: Sequence[Variable]) -> Array:
        """Return the Dirichlet parameters of every row, axes `(*parents, child)`."""


@dataclass(frozen=True)
class BDeu:
    """The same `equivalent_sample_size` for every table, spread evenly over its cells.

    Equivalent networks get the same score under it.

    Examples
    --------
    >>> BDeu(12).pseudo_counts(Variable("y", 3), [Variable("x", 2)]).tolist()
    [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]
    """

    equivalent_sample_size: float = 10.0

    def __post_init__(self) -> None:
        _positive(self.equivalent_sample_size, "the equivalent sample size")

    def pseudo_counts(self, variable: Variable, parents: Sequence[Variable]) -> Array:
        """Return the sample size divided by the number of cells, everywhere."""
        shape = table_shape(variable, parents)
        return np.full(shape, self.equivalent_sample_size / prod(shape))


@dataclass(frozen=True)
class Dirichlet:
    """Pseudo-counts given: one number for every cell, or a table for each of some nodes.

    Parameters
    ----------
    alpha
        A positive number for every cell, or a mapping from name to a number or a table with axes `(*parents, child)`
        (anything that broadcasts to it).
    other
        The number for nodes that a mapping leaves out.
    """

    alpha: float | Mapping[str, Any] = 1.0
    other: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, Mapping):
            _positive(self.alpha, "alpha")
        _positive(self.other, "other")

    def pseudo_counts(self, variable: Variable, parents: Sequence[Variable]) -> Array:
        """Return the given numbers in the table's shape."""
        given = self.alpha.get(variable.name, self.other) if isinstance(self.alpha, Mapping) else self.alpha
        shape = table_shape(variable, parents)
        try:
            full = np.broadcast_to(np.asarray(given, dtype=np.float64), shape)
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"the pseudo-counts of {variable.name!r} do not fit its table of shape {shape}"
            ) from None
        if not np.isfinite(full).all() or (full < 0).any():
            raise InvalidArgument(f"the pseudo-counts of {variable.name!r} must be finite and not negative")
        return full.copy()


def K2() -> Dirichlet:  # noqa: N802
    """Return one pseudo-count a cell: every table is as likely as any other."""
    return Dirichlet(1.0)


def Laplace(alpha: float = 1.0) -> Dirichlet:  # noqa: N802
    """Return `alpha` pseudo-counts a cell (additive smoothing)."""
    return Dirichlet(alpha)


def as_prior(prior: Any) -> Prior | None:
    """Return the prior that a name, a number of pseudo-counts a cell, or an object stands for; None for none."""
    if prior is None or isinstance(prior, Prior):
        return prior
    if isinstance(prior, str):
        named: dict[str, Callable[[], Prior]] = {
            "bdeu": BDeu,
            "k2": K2,
            "laplace": Laplace,
            "dirichlet": Dirichlet,
        }
        if prior.casefold() in named:
            return named[prior.casefold()]()
    elif isinstance(prior, int | float | np.number) and not isinstance(prior, bool):
        return Dirichlet(float(prior))
    raise InvalidArgument(
        f"a prior is 'bdeu', 'k2', 'laplace', 'dirichlet', a number of pseudo-counts a cell, or an object such as "
        f"mk.priors.BDeu(10), not {prior!r}"
    )


def _positive(value: Any, what: str) -> None:
    if not isinstance(value, int | float | np.number) or not np.isfinite(value) or value <= 0:
        raise InvalidArgument(f"{what} is a positive number, not {value!r}")
