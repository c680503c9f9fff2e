"""Prior distributions of conditional tables, said in pseudo-counts.

Every row of a table has its own Dirichlet distribution; observed counts add to its parameters, and the posterior mean
is `(N + a) / sum(N + a)`. References: Heckerman, Geiger & Chickering (1995) for BDeu and prior networks; Cooper &
Herskovits (1992) for K2.

A node whose distribution is a local model (noisy-or, logistic, ...) has no table of its own. Under a prior each of its
parents is treated as if it were the only one: the prior's pseudo-counts for the table of the child given that one parent,
and for the child alone, count as seen. `Gaussian` instead shrinks the weights of logistic and softmax nodes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, runtime_checkable

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.tables.conditional import table_shape
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Positive, check_number, check_options


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
        check_number("equivalent_sample_size", self.equivalent_sample_size, positive=True)

    def pseudo_counts(self, variable: Variable, parents: Sequence[Variable]) -> Array:
        """Return the sample size divided by the number of cells, everywhere."""
        shape = table_shape(variable, parents)
        return np.full(shape, self.equivalent_sample_size / prod(shape))


@dataclass(frozen=True)
class NormalInverseGamma:
    """The prior of linear-Gaussian nodes, in rows: as if so many had been seen that show no dependence on the parents.

    The variance has an inverse-gamma distribution around the column's own, with `strength` rows' worth of knowledge; given
    it, bias and weights are Gaussian around the column's mean and zero. Larger strength draws weights harder to zero.

    Parameters
    ----------
    strength
        The number of rows.
    tables
        The prior of the tables in the same network, as in `fit(prior=...)`; None for maximum likelihood.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = {"x": [0.1, 1.2, 1.9, 3.3], "y": [0.2, 2.1, 4.2, 6.3]}
    >>> bn = mk.BayesianNetwork("x->y").fit(rows, prior=mk.priors.NormalInverseGamma(0.5))
    >>> bn["y"].row().weights["x"] < mk.BayesianNetwork("x->y").fit(rows)["y"].row().weights["x"]
    True
    """

    strength: Positive = 1.0
    tables: Any = None

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class Wishart:
    """The prior of a Gaussian field's precision K, with the graph's zeros, and of its mean.

    K has a density proportional to `|K|^((degrees - 2) / 2) exp(-tr(K scale) / 2)` (a G-Wishart distribution; on
    decomposable graphs the covariance is hyper inverse Wishart). Given K, the mean is Gaussian around `center` with
    precision `rows` times K.

    Parameters
    ----------
    degrees
        A positive number; about as many rows as the prior counts for.
    scale
        A positive definite matrix in the order of the variables, or a frame by name; by default `degrees` times the columns'
        variances on the diagonal.
    center
        A number, or one a variable; by default the columns' means.
    rows
        How many rows the mean is known by.

    Examples
    --------
    >>> import markovia as mk
    >>> field = mk.GaussianMarkovNetwork([[1.0, 0.5], [0.5, 1.0]], names=["a", "b"])
    >>> rows = {"a": [1.0, 2.0, 4.0], "b": [1.5, 2.5, 4.5]}
    >>> bool(field.fit(rows, prior=mk.priors.Wishart(center=0.0)).posterior_.log_evidence < 0)
    True
    """

    degrees: Positive = 3.0
    scale: Any = None
    center: Any = None
    rows: Positive = 1.0

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, repr=False)
class Dirichlet:
    """Pseudo-counts given: one number for every cell, or a table for each of some nodes.

    Parameters
    ----------
    alpha
        A positive number for every cell, or a mapping from name to a number or a table with axes `(*parents, child)`
        (anything that broadcasts to it). A zero in a table says that this state is impossible there: without data
        against it the cell stays zero.
    other
        The number for nodes that a mapping leaves out.

    Examples
    --------
    >>> prior = Dirichlet({"y": [[1, 2], [3, 0]]}, other=0.5)
    >>> prior
    Dirichlet({'y': 2 x 2 table}, other=0.5)
    >>> prior.pseudo_counts(Variable("x", 2), []).tolist()
    [0.5, 0.5]
    """

    alpha: float | Mapping[str, Any] = 1.0
    other: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, Mapping):
            check_number("alpha", self.alpha, positive=True)
        check_number("other", self.other, positive=True)

    @staticmethod
    def from_network(network: Any, equivalent_sample_size: float) -> "PriorNetwork":
        """Return the prior that says: as if so many rows had been drawn from this network.

        Parameters
        ----------
        network
            A model with tables over (at least) the variables of the network to fit; its graph may be another one.
        equivalent_sample_size
            The number of such rows.

        Examples
        --------
        >>> import markovia as mk
        >>> expert = mk.BayesianNetwork()
        >>> expert.add("rain", states=["no", "yes"], p=[0.8, 0.2])
        >>> prior = Dirichlet.from_network(expert, 10)
        >>> prior
        PriorNetwork(1 variables, equivalent_sample_size=10)
        >>> mk.BayesianNetwork("rain{no|yes}").fit({"rain": ["yes"] * 10}, prior=prior)["rain"].values.tolist()
        [0.4, 0.6]
        """
        return PriorNetwork(network, equivalent_sample_size)

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

    def check_names(self, known: Collection[str]) -> None:
        """Raise `UnknownVariable` if a mapping names a node that is not fitted."""
        for name in self.alpha if isinstance(self.alpha, Mapping) else ():
            if name not in known:
                raise UnknownVariable(name, known, "the network that the prior is for")

    def __repr__(self) -> str:
        if not isinstance(self.alpha, Mapping):
            return f"Dirichlet({self.alpha:g})"
        shown = [f"{name!r}: {_shape_of(table)}" for name, table in list(self.alpha.items())[:4]]
        shown += ["..."] if len(self.alpha) > 4 else []
        return f"Dirichlet({{{', '.join(shown)}}}, other={self.other:g})"


class PriorNetwork:
    """Pseudo-counts `n P(parents, child)` under a network that is believed before the data; `Dirichlet.from_network`."""

    def __init__(self, network: Any, equivalent_sample_size: float) -> None:
        check_number("equivalent_sample_size", equivalent_sample_size, positive=True)
        if not hasattr(network, "query"):
            raise InvalidArgument(f"a prior network is a model with tables, not {network!r}")
        self.network = network.copy()
        self.equivalent_sample_size = float(equivalent_sample_size)

    def pseudo_counts(self, variable: Variable, parents: Sequence[Variable]) -> Array:
        """Return the sample size times the network's joint distribution of parents and child."""
        scope = (*parents, variable)
        table_shape(variable, parents)
        for v in scope:
            known = self.network.variable(v.name)
            if known.states != v.states:
                raise InvalidArgument(
                    f"the states of {v.name!r} are {list(v.states)} here, but {list(known.states)} in the prior network"
                )
        joint: Array = self.network.query([v.name for v in scope]).values
        return self.equivalent_sample_size * joint

    def __repr__(self) -> str:
        size = f"{self.equivalent_sample_size:g}"
        return f"PriorNetwork({len(self.network)} variables, equivalent_sample_size={size})"


@dataclass(frozen=True)
class Gaussian:
    """Weights of logistic and softmax nodes are drawn from a normal distribution around zero (ridge, L2).

    Parameters
    ----------
    scale
        The standard deviation of a weight; biases are free.
    tables
        The prior of all other nodes, in any form that `fit` takes; one pseudo-count a cell by default.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("dose", states=[0, 1, 2], p="uniform")
    >>> bn.add("cured", mk.local.Logistic({"dose": 1.0}))
    >>> rows = {"dose": [0, 1, 1, 2], "cured": [False, False, True, True]}
    >>> bn.fit(rows, prior=Gaussian(scale=1.0))["cured"].row(dose=2).round(3).tolist()
    [0.337, 0.663]
    """

    scale: float = 1.0
    tables: Any = 1.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale, positive=True)
        as_prior(self.tables)

    def pseudo_counts(self, variable: Variable, parents: Sequence[Variable]) -> Array:
        """Return the pseudo-counts of the prior for tables."""
        prior = as_prior(self.tables)
        shape = table_shape(variable, parents)
        return np.zeros(shape) if prior is None else prior.pseudo_counts(variable, parents)


def K2() -> Dirichlet:  # noqa: N802
    """Return one pseudo-count a cell: every table is as likely as any other.

    Examples
    --------
    >>> K2()
    Dirichlet(1)
    """
    return Dirichlet(1.0)


def Laplace(alpha: float = 1.0) -> Dirichlet:  # noqa: N802
    """Return `alpha` pseudo-counts a cell (additive smoothing).

    Examples
    --------
    >>> Laplace(0.5).pseudo_counts(Variable("y", 2), []).tolist()
    [0.5, 0.5]
    """
    return Dirichlet(alpha)


def as_prior(prior: Any) -> Prior | None:
    """Return the prior that a name, a number of pseudo-counts a cell, or an object stands for; None for none."""
    if prior is None or (isinstance(prior, Prior) and not isinstance(prior, type)):
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


def _shape_of(table: Any) -> str:
    shape = np.shape(table)
    return f"{' x '.join(map(str, shape))} table" if shape else f"{table:g}"
