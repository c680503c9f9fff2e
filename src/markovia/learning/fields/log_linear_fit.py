"""Fitting the weights of a log-linear model: the objective, its gradient, and the search for its minimum.

Maximum likelihood minimises the mean negative log likelihood

    f(w) = log Z(w) - w · F(X) / n,        gradient  E_w[F] - F(X) / n,        Hessian  Cov_w[F],

which is convex; at the minimum the model's expected features are the data's. log Z and E[F] come from exact inference, or
from an approximate engine (then it is a surrogate likelihood), or the likelihood is replaced by the pseudo-likelihood.
The search is L-BFGS, proximal gradients where a penalty has corners, or stochastic gradients.
References: Della Pietra, Della Pietra and Lafferty (1997); Koller and Friedman (2009), chapter 20. Cost of a step: one
inference, whatever the number of rows. Interrupting keeps the best weights so far.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.potentials.log_linear import Feature, LogLinear
from markovia.learning.fields.field_layout import FieldLayout
from markovia.learning.fields.identifiability import Identifiability, identifiability_of, most_free
from markovia.learning.fields.penalties import Penalty
from markovia.optimise.minimise import minimise
from markovia.optimise.proximal_gradient import minimise_composite
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.runtime.progress import Advance, progress_bar

OPTIMISERS = ("auto", "lbfgs", "proximal", "sgd")
REPORTED = 300
"""Weights up to which a fit looks by itself at which directions the data cannot tell apart."""


class Expectations(Protocol):
    """What gives log Z and the marginals of all tables."""

    exact: bool

    def __call__(self, log_tables: Array) -> tuple[float, Array]:
        """Return log Z and the marginals of all tables, one after the other."""


@dataclass(frozen=True)
class FieldFit:
    """Fitted weights of a log-linear model, and how they were found.

    Attributes
    ----------
    weights
        One a feature (or a table entry).
    method
        "exact", "pseudo-likelihood", "ipf", "pcd", ... and for surrogates the engine's name.
    log_likelihood
        Of all rows, in nats; not a number where log Z is out of reach.
    observed, expected
        The features' means in the data, and their expectations under the model as the method sees them.
    gradient
        Their difference `expected - observed`: the gradient of the mean negative log likelihood without penalties. For
        pseudo-likelihood the gradient of its own objective.
    converged, iterations, history
        Whether the tolerance was met, the steps, and the best objective (a row) after each.
    error
        Distance from optimal: the largest entry of the gradient, weights in units of their features, or of a proximal step.
    details
        More, by method.
    """

    layout: FieldLayout = field(repr=False)
    weights: Array
    method: str
    log_likelihood: float
    n_rows: int
    total: float
    observed: Array
    expected: Array
    gradient: Array
    converged: bool
    iterations: int
    history: Sequence[float]
    error: float
    features: tuple[Feature, ...] = ()
    penalty: Penalty | None = None
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def model(self) -> LogLinear:
        """The features with their weights."""
        return LogLinear(self.features, self.weights)

    @cached_property
    def identifiability(self) -> Identifiability:
        """Which directions of the weights change no probability."""
        known: Identifiability | None = self.details.get("identifiability")
        return identifiability_of(self.layout) if known is None else known

    @property
    def n_parameters(self) -> int:
        """Weights that are free to move: with L1 those that are not zero, otherwise less what changes no probability.

        For more than a few hundred features it is the smaller of their number and that of the interactions inside their
        tables.
        """
        if self.penalty is not None and not self.penalty.smooth:
            return int(np.count_nonzero(self.weights))
        if self.features and len(self.weights) <= REPORTED:
            return self.identifiability.rank
        return most_free(self.layout)

    def __str__(self) -> str:
        state = "converged" if self.converged else "did NOT converge"
        return (
            f"{len(self.weights):,} weights fitted by {self.method} on {self.n_rows:,} rows in {self.seconds:.3g} s; "
            f"{state} after {self.iterations} iterations\nlog likelihood {self.log_likelihood:.6f} "
            f"({self.log_likelihood / self.total:.6f} a row)"
        )


class LogLinearSearch:
    """An objective that remembers its best point and its history, and may show a bar.

    Parameters
    ----------
    smooth
        The mean loss of a row and its gradient at some weights.
    penalty
        Added to it.
    units
        The unit of each weight's feature, its largest value; L-BFGS sees weights times units, so that features may be of any
        size.
    """

    def __init__(
        self, smooth: Callable[[Array], tuple[float, Array]], penalty: Penalty, units: Array | None = None
    ) -> None:
        self._smooth, self.penalty = smooth, penalty
        self.units = np.ones(len(penalty.l2)) if units is None else units
        if penalty.smooth:  # a penalty far stronger than the data sets the scale instead
            self.units = np.maximum(self.units, np.sqrt(penalty.l2))
        self.history: list[float] = []
        self.best = np.inf
        self.point = np.zeros(0)
        self._advance: Advance = lambda n=1, note="": None

    def smooth(self, weights: Array) -> tuple[float, Array]:
        """Return the loss with its L2 penalty, and the gradient."""
        value, gradient = self._smooth(weights)
        ridge, slope = self.penalty.ridge(weights)
        value += ridge
        whole = value + (0.0 if self.penalty.smooth else self.penalty.rough(weights))
        if whole < self.best:
            self.best, self.point = whole, weights.copy()
            self.history.append(whole)
        self._advance(1)
        return value, gradient + slope

    def run(
        self, start: Array, optimizer: str, steps: int, tolerance: float, progress: bool | None = None
    ) -> tuple[Array, float, bool]:
        """Minimise; return the weights, their distance from optimal, and whether it was interrupted."""
        rough = not self.penalty.smooth
        if optimizer == "lbfgs" and rough:
            raise InvalidArgument(
                "l1 and group_l1 have corners, which L-BFGS cannot cross; use optimizer='proximal'"
            )
        interrupted = False
        with progress_bar(progress) as self._advance:
            try:
                self.descend(start, optimizer, steps, tolerance)
            except KeyboardInterrupt:
                if not len(self.point):
                    raise
                interrupted = True
        return self.point, self.residual(self.point, self._smooth(self.point)[1]), interrupted

    def descend(
        self,
        start: Array,
        optimizer: str,
        steps: int,
        tolerance: float,
        *,
        convex: bool = True,
        clock: Clock | None = None,
    ) -> int:
        """Search from a start, until a clock says stop; return the steps made. The best point is kept here."""
        if optimizer == "proximal" or not self.penalty.smooth:
            return minimise_composite(
                self.smooth, self.penalty.rough, self.penalty.shrunk, start, steps, tolerance
            ).iterations
        return minimise(
            self.smooth, start, units=1.0 / self.units, convex=convex, max_iter=steps, tol=tolerance, flat=0.0, clock=clock,
        ).iterations  # fmt: skip

    def residual(self, weights: Array, gradient: Array) -> float:
        """Return how far weights are from optimal, given the gradient there without penalties."""
        whole = gradient + self.penalty.ridge(weights)[1]
        return self.penalty.residual(weights, whole / self.units if self.penalty.smooth else whole)


def likelihood(
    layout: FieldLayout, expectations: Expectations, observed: Array
) -> Callable[[Array], tuple[float, Array]]:
    """Return the mean negative log likelihood of a row and its gradient as a function of the weights.

    Parameters
    ----------
    layout
        The model.
    expectations
        log Z and marginals.
    observed
        The share of the rows in each cell.

    Examples
    --------
    >>> from markovia.factors.tables.variable import Variable
    >>> from markovia.learning.fields.exact_expectations import exact_expectations
    >>> from markovia.learning.fields.field_layout import layout_of_features
    >>> layout = layout_of_features([Feature(Variable("coin", 2), [0.0, 1.0])])
    >>> loss = likelihood(layout, exact_expectations(layout), np.array([0.25, 0.75]))
    >>> value, gradient = loss(np.zeros(1))
    >>> round(value, 6), gradient.tolist()
    (0.693147, [-0.25])
    """
    target = layout.features(observed)
    finite = np.isfinite(layout.base) & (layout.base != 0)
    offset = float(layout.base[finite] @ observed[finite])

    def loss(weights: Array) -> tuple[float, Array]:
        log_z, marginals = expectations(layout.log_tables(weights))
        return log_z - float(weights @ target) - offset, layout.features(marginals) - target

    return loss


def unseen_cells(layout: FieldLayout, observed: Array) -> Array:
    """Return minus infinity for cells that no row shows and that have a weight of their own, zero for others.

    For free tables without a penalty this is the maximum of the likelihood and of the pseudo-likelihood: the slope towards
    smaller weights never ends. A cell counts if one of its weights is used in unseen cells only.
    """
    seen = np.asarray((layout.transposed != 0) @ (observed > 0)) > 0
    dead = (layout.design != 0) @ (~seen) > 0
    return np.where(np.asarray(dead) & (observed == 0), -np.inf, 0.0)
