"""Exponential families: one interface for distributions of the form h(x) exp(eta . T(x) - A(eta)).

`eta` are the natural parameters, `T` the sufficient statistics, `A` the log partition function (a convex function) and `h`
the base measure. Everything else follows from A: its gradient is the mean parameter mu = E[T], its Hessian the covariance
of T (the Fisher information), its Bregman divergence the Kullback-Leibler divergence, its convex conjugate A* minus the
entropy (up to E[log h]), and maximum likelihood is moment matching: the mu of the estimate is the average of T over the
data. Where mu -> eta has no closed form it is found by damped Newton steps on the convex function A(eta) - eta . mu.
`moments()` are the mean parameters E[T]; `mean` and `variance` are those of x itself, as in NumPyro.

A representation is *minimal* if no linear combination of the statistics is constant; then eta <-> mu is one to one. A
categorical of K states is given here by K - 1 log odds against the last state. The multivariate Gaussian (vec of a symmetric
matrix) and Markov fields of indicator features are *overcomplete*: several eta name the same distribution. `minimal` says
which, `n_free` counts the free parameters. Reference: Wainwright & Jordan (2008), chapter 3; Brown (1986).
Cost: closed forms; a Newton step is cubic in the number of parameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.distributions.checked_numbers import as_numbers, finite_numbers
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed
from markovia.runtime.shown import InNotebooks

_STEPS = 200


class ExponentialFamily(InNotebooks, ABC):
    """One member of an exponential family.

    Constructors take the usual parameters; `with_natural` and `with_moments` give the member of the same family with other
    parameters. Methods with an optional `eta` look at that point of the family instead of at this member.
    """

    minimal: ClassVar[bool] = True

    # -- what a family says ----------------------------------------------------------------------------------------

    @abstractmethod
    def natural(self) -> Array:
        """Return the natural parameters eta."""

    @abstractmethod
    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member of this family with the given natural parameters."""

    @abstractmethod
    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return A(eta); infinite outside its domain."""

    @abstractmethod
    def moments(self, eta: ArrayLike | None = None) -> Array:
        """Return the mean parameters mu = E[T(x)], the gradient of A; E[x] itself is `mean`."""

    @abstractmethod
    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the covariance of T(x): the Hessian of A, the Fisher information of eta."""

    @abstractmethod
    def sufficient_statistics(self, x: Any) -> Array:
        """Return T(x), the statistics along the last axis."""

    @abstractmethod
    def log_base_measure(self, x: Any) -> Any:
        """Return log h(x); minus infinity outside the support."""

    @abstractmethod
    def sample(self, n: int, seed: Seed = None) -> Any:
        """Draw n values."""

    @property
    @abstractmethod
    def mean(self) -> Any:
        """E[x]."""

    @property
    @abstractmethod
    def variance(self) -> Any:
        """Var[x], of each coordinate where x is a vector."""

    # -- what follows ----------------------------------------------------------------------------------------------

    @property
    def n_parameters(self) -> int:
        """The number of natural parameters."""
        return int(self.natural().size)

    @property
    def n_free(self) -> int:
        """The number of free parameters: those of a minimal representation."""
        return self.n_parameters

    def base_measure(self, x: Any) -> Any:
        """Return h(x)."""
        return np.exp(self.log_base_measure(x))

    def log_prob(self, x: Any) -> Any:
        """Return the log density or log probability of a value, or of each value of an array."""
        return self.canonical_log_prob(x)

    def prob(self, x: Any) -> Any:
        """Return the density or probability."""
        return np.exp(self.log_prob(x))

    def canonical_log_prob(self, x: Any, eta: ArrayLike | None = None) -> Any:
        """Return log h(x) + eta . T(x) - A(eta), the definition itself; minus infinity outside the support."""
        at = self._eta(eta)
        base = np.asarray(self.log_base_measure(x), dtype=np.float64)
        with np.errstate(all="ignore"):
            inner = np.asarray(self.sufficient_statistics(x)) @ at
            return np.where(np.isneginf(base), -np.inf, base + inner - self.log_partition(at))[()]

    def entropy(self) -> float:
        """Return the (differential) entropy: -A*(mu) - E[log h(x)].

        Examples
        --------
        >>> from markovia.exponential import Gaussian
        >>> round(Gaussian(0.0, 1.0).entropy(), 6)
        1.418939
        """
        return -self.conjugate_dual() - self._expected_log_base()

    def kl(self, other: "ExponentialFamily") -> float:
        """Return KL(self || other), the Bregman divergence of A; both must be of the same family.

        Examples
        --------
        >>> from markovia.exponential import Poisson
        >>> round(Poisson(2.0).kl(Poisson(3.0)), 6)
        0.18907
        """
        self._same_family(other)
        ours, theirs = self.natural(), other.natural()
        gap = self.log_partition(theirs) - self.log_partition(ours) - float(self.moments() @ (theirs - ours))
        return max(0.0, gap)

    def conjugate_dual(self, mu: ArrayLike | None = None) -> float:
        """Return A*(mu) = sup over eta of eta . mu - A(eta); infinite where no member, nor a limit of members, has mean mu.

        Examples
        --------
        >>> from markovia.exponential import Bernoulli
        >>> coin = Bernoulli().with_natural([1.0])
        >>> round(float(coin.moments()[0]), 6), round(coin.conjugate_dual(), 6), round(coin.log_partition(), 6)
        (0.731059, -0.582203, 1.313262)
        """
        if mu is None:
            return float(self.natural() @ self.moments()) - self.log_partition()
        point = self._mu(mu)
        if not self._realisable(point):
            return np.inf
        return self._dual(point)

    def fisher_information(self, eta: ArrayLike | None = None, *, jacobian: ArrayLike | None = None) -> Array:
        """Return the Fisher information of one observation: the covariance of the score, and the curvature of `kl`.

        Parameters
        ----------
        eta
            Where in the family; at this member by default.
        jacobian
            The derivatives of the natural parameters (rows) by other parameters (columns), whose information is then
            returned: J' F J.

        Examples
        --------
        Of the mean and the variance of a Gaussian, whose natural parameters are mean / variance and -1 / (2 variance):

        >>> from markovia.exponential import Gaussian
        >>> m, v = 1.0, 2.0
        >>> Gaussian(m, v).fisher_information(jacobian=[[1 / v, -m / v**2], [0, 0.5 / v**2]]).round(6).tolist()
        [[0.5, 0.0], [0.0, 0.125]]
        """
        found = self.covariance(eta)
        if jacobian is None:
            return found
        turn = finite_numbers(jacobian, "the jacobian")
        if turn.ndim != 2 or len(turn) != len(found):
            raise InvalidArgument(
                f"the jacobian has a row for each of {len(found)} natural parameters, not the shape {turn.shape}"
            )
        return np.asarray(turn.T @ found @ turn)

    def natural_gradient(
        self, gradient: ArrayLike, eta: ArrayLike | None = None, *, jacobian: ArrayLike | None = None
    ) -> Array:
        """Return the steepest direction where steps are measured by `kl`, not by the distance of parameters: F^-1 gradient.

        It is the same change of the distribution in whatever parameters. In natural parameters it is the gradient by the
        mean parameters. Where several parameters name one distribution, it is one of the directions that do this.

        Parameters
        ----------
        gradient
            The derivatives of what is climbed, by the natural parameters (or by those that `jacobian` tells of).
        eta, jacobian
            As in `fisher_information`.

        Examples
        --------
        >>> from markovia.exponential import Bernoulli
        >>> coin = Bernoulli(0.2)
        >>> coin.natural_gradient([0.7 - 0.2]).round(6).tolist()  # log likelihood of 70% heads: (0.7 - p) / (p (1 - p))
        [3.125]
        """
        information = self.fisher_information(eta, jacobian=jacobian)
        slope = np.atleast_1d(finite_numbers(gradient, "the gradient"))
        if slope.shape != (len(information),):
            raise InvalidArgument(f"the gradient is {len(information)} numbers, not of shape {slope.shape}")
        # a unit diagonal first, so that the units of the statistics do not decide what counts as zero
        size = np.sqrt(np.diag(information))
        size = np.where(size > 0, size, 1.0)
        scaled = information / np.outer(size, size)
        if self.minimal and jacobian is None:
            return np.asarray(np.linalg.solve(scaled, slope / size) / size)
        return np.asarray(np.linalg.lstsq(scaled, slope / size, rcond=1e-12)[0] / size)

    def natural_from_moments(self, mu: ArrayLike) -> Array:
        """Return the natural parameters whose mean parameters are mu.

        Raises
        ------
        InvalidArgument
            If no member of the family has these mean parameters; on the boundary the natural parameters are infinite.
        """
        point = self._mu(mu)
        if not self._realisable(point):
            raise InvalidArgument(
                f"no {type(self).__name__} has the mean parameters {np.round(point, 6).tolist()}: {self._mean_space}"
            )
        return self._to_natural(point)

    def with_moments(self, mu: ArrayLike) -> Self:
        """Return the member of this family with the given mean parameters."""
        return self.with_natural(self.natural_from_moments(mu))

    def posterior(self, prior: Any, x: Any, weights: ArrayLike | None = None) -> Any:
        """Return a conjugate prior after seeing data; the same as `prior.posterior(x, weights)`."""
        if not hasattr(prior, "posterior"):
            raise InvalidArgument(
                f"a posterior needs a conjugate prior such as {type(self).__name__}.conjugate_prior(...), not {prior!r}"
            )
        return prior.posterior(x, weights)

    # -- what its conjugate prior exp(eta . chi - nu A(eta)) is ------------------------------------------------------

    def _proper(self, chi: Array, nu: float) -> bool:
        """Say whether the conjugate prior can be normalised."""
        return nu > 0 and self._realisable(chi / nu)

    def _prior_parameters(self, chi: Array, nu: float) -> "ExponentialFamily":
        """Return the conjugate prior as a distribution of the usual parameter, where that has a name."""
        raise UnsupportedModel(
            f"the conjugate prior of a {type(self).__name__} has no usual name; log_density and posterior work without one"
        )

    def _prior_log_normaliser(self, chi: Array, nu: float) -> float:
        """Return the log integral of exp(eta . chi - nu A(eta)) over eta."""
        try:
            return self._prior_parameters(chi, nu).log_partition()
        except UnsupportedModel:
            raise UnsupportedModel(
                f"the conjugate prior of a {type(self).__name__} has no closed normaliser, so no closed evidence or "
                "prediction"
            ) from None

    def _with_parameter(self, value: Any) -> Self:
        """Return the member with a usual parameter that was drawn from `_prior_parameters`."""
        make: Callable[[Any], Self] = type(self)
        return make(value)

    # -- for subclasses --------------------------------------------------------------------------------------------

    _mean_space: ClassVar[str] = "they are outside the mean parameters of the family"

    @abstractmethod
    def _realisable(self, mu: Array) -> bool:
        """Say whether mu is in the interior of the mean space."""

    def _to_natural(self, mu: Array) -> Array:
        return newton_to_natural(self, mu, self._start(mu))

    def _start(self, mu: Array) -> Array:
        return self.natural()

    def _dual(self, mu: Array) -> float:
        eta = self._to_natural(mu)
        return float(eta @ mu) - self.log_partition(eta)

    def _expected_log_base(self) -> float:
        return 0.0

    def _structure(self) -> tuple[Any, ...]:
        """Return what two members must share to be of one family, besides their class."""
        return (self.n_parameters,)

    def _same_family(self, other: object) -> None:
        if not isinstance(other, ExponentialFamily) or type(other) is not type(self):
            raise InvalidArgument(
                f"the divergence needs two members of one family, not {type(self).__name__} and {type(other).__name__}"
            )
        if self._structure() != other._structure():
            raise InvalidArgument(
                f"the divergence needs two members of one family, not {self!r} and {other!r}"
            )

    def _eta(self, eta: ArrayLike | None) -> Array:
        if eta is None:
            return self.natural()
        return self._vector(eta, "the natural parameters")

    def _mu(self, mu: ArrayLike) -> Array:
        return self._vector(mu, "the mean parameters")

    def _vector(self, values: ArrayLike, what: str) -> Array:
        array = np.atleast_1d(finite_numbers(values, what))
        if array.shape != (self.n_parameters,):
            raise InvalidArgument(
                f"{what} of a {type(self).__name__} are {self.n_parameters} numbers, not shape {array.shape}"
            )
        return array


class FittedFamily(ExponentialFamily):
    """A family whose structure shows in the data, so that the class itself can be fitted."""

    def sufficient_statistics(self, x: Any) -> Array:
        """Return T(x), the statistics along the last axis: x itself unless the family says otherwise."""
        return as_numbers(x, "a value")[..., None]

    @classmethod
    def fit(cls, x: ArrayLike, weights: ArrayLike | None = None, **structure: Any) -> Self:
        """Return the maximum-likelihood member: the one whose mean parameters are the average of T over the data.

        Parameters
        ----------
        x
            The data, one value (or row) an observation.
        weights
            One number an observation, not negative; a weight of 2 counts twice.
        **structure
            What the data may not show: `n_categories` of a categorical.

        Raises
        ------
        InvalidArgument
            If a value is outside the support, or the estimate lies on the boundary, where it has no natural parameters.
        """
        data = as_numbers(x, "the data")
        only_known(cls, structure)
        shape = cls._template(data, **structure)
        moments = average_statistics(shape, data, weights)
        return shape._narrow(data, weights) or shape.with_moments(moments)

    def _narrow(self, data: Array, weights: ArrayLike | None) -> Self | None:
        """Return the fit to values that hardly differ, where averages of T cancel; None where they will do."""
        return None

    _structures: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def _template(cls, data: Array, **structure: Any) -> Self:
        """Return any member with the structure of the data."""
        return cls(**structure)


def only_known(family: type[FittedFamily], structure: dict[str, Any]) -> None:
    """Raise if a fit was given what its family does not know."""
    for name in structure:
        if name not in family._structures:
            known = ", ".join(f"{n}=" for n in ("weights", *family._structures))
            raise InvalidArgument(f"the fit of a {family.__name__} has no {name}=, only {known}")


def average_statistics(family: ExponentialFamily, x: Any, weights: ArrayLike | None = None) -> Array:
    """Return the weighted average of T over data in the support."""
    total, mass = total_statistics(family, x, weights)
    if not mass > 0:
        raise InvalidArgument("a fit needs at least one row with a positive weight")
    return total / mass


def total_statistics(
    family: ExponentialFamily, x: Any, weights: ArrayLike | None = None
) -> tuple[Array, float]:
    """Return the weighted sum of T over the data and the sum of the weights."""
    log_base = np.atleast_1d(family.log_base_measure(x))
    if log_base.ndim > 1:
        raise InvalidArgument(f"the data are one value or row an observation, not of shape {np.shape(x)}")
    held = weighted(log_base.size, weights)
    outside = (np.isneginf(log_base) | np.isnan(log_base)) & (held > 0)
    if outside.any():
        raise InvalidArgument(
            f"row {int(np.flatnonzero(outside)[0])} of the data is outside the support of {type(family).__name__}"
        )
    if not log_base.size:
        return np.zeros(family.n_parameters), 0.0
    statistics = np.asarray(family.sufficient_statistics(x)).reshape(log_base.size, -1)
    kept = held > 0
    total: Array = held[kept] @ statistics[kept]
    return total, float(held.sum())


def weighted(n: int, weights: ArrayLike | None) -> Array:
    """Return checked weights of n observations; ones where none are given."""
    if weights is None:
        return np.ones(n)
    held = finite_numbers(weights, "the weights")
    if held.shape != (n,) or not np.all(held >= 0):
        shown = np.round(held, 6).tolist() if held.size <= 10 else f"shape {held.shape}"
        raise InvalidArgument(f"the weights are {n} numbers that are not negative, not {shown}")
    return held


def newton_to_natural(family: ExponentialFamily, mu: Array, start: Array) -> Array:
    """Return eta with mean parameters mu, by damped Newton steps on A(eta) - eta . mu from a point of the domain."""
    eta = start
    value = family.log_partition(eta) - float(eta @ mu)
    for _ in range(_STEPS):
        gradient = family.moments(eta) - mu
        scale = np.maximum(1.0, np.abs(mu))
        if float(np.max(np.abs(gradient) / scale)) < 1e-15:
            break
        step = np.linalg.lstsq(family.covariance(eta), gradient, rcond=None)[0]
        slope = float(gradient @ step)
        size = 1.0
        while size > 1e-14:
            tried = eta - size * step
            found = family.log_partition(tried) - float(tried @ mu)
            if found <= value - 1e-4 * size * slope or (np.isfinite(found) and size * slope < 1e-15):
                break
            size *= 0.5
        else:
            break
        moved = float(np.max(np.abs(size * step) / np.maximum(1e-300, np.abs(eta) + 1e-8)))
        eta, value = tried, found
        if moved < 1e-15:
            break
    gradient = family.moments(eta) - mu
    if float(np.max(np.abs(gradient) / np.maximum(1.0, np.abs(mu)))) > 1e-6:
        raise InvalidArgument(
            f"the mean parameters {np.round(mu, 6).tolist()} are too near the boundary of the family to be matched"
        )
    return eta
