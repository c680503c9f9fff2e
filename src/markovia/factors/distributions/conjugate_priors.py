"""Conjugate priors of exponential families, their posteriors, evidence and predictive distributions.

The prior p(eta) proportional to exp(eta . chi - nu A(eta)) has the same form after data: chi grows by the sum of T(x), nu by
the number of observations. So nu counts pseudo-observations whose average statistics are chi / nu, which is also the
prior expectation of the mean parameters (Diaconis & Ylvisaker, 1979). Where the normaliser Z(chi, nu) is known,

    log p(x) = log h(x) + log Z(chi + T(x), nu + 1) - log Z(chi, nu)

is the predictive probability and the same ratio for many x the evidence. It is known for Bernoulli (beta), categorical and
multinomial (Dirichlet), Poisson and exponential (gamma), and Gaussians. Mean and variance of a Gaussian have a richer
conjugate prior with separate counts for both: `NormalGamma` and `NormalInverseWishart`, beside their Gaussians.
Each family says itself what its prior is.
Cost: linear in the data. Reference: Murphy (2012), Machine Learning, chapters 3 and 4.
"""

from math import lgamma, log, pi
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import (
    as_numbers,
    draws,
    finite_numbers,
    number,
    positive,
    positive_definite,
    vectors,
)
from markovia.factors.distributions.exponential_family import ExponentialFamily, total_statistics, weighted
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks


class ConjugatePrior(InNotebooks):
    """The prior exp(eta . chi - nu A(eta)) of a family's natural parameters.

    Parameters
    ----------
    family
        Any member of the family; only its structure (number of categories, known variance) matters.
    chi
        The total of the statistics of the pseudo-observations.
    nu
        Their number.

    Examples
    --------
    >>> from markovia.exponential import Bernoulli
    >>> prior = ConjugatePrior(Bernoulli(), chi=[1.0], nu=2.0)
    >>> prior.parameters
    Beta(a=1, b=1)
    >>> round(float(prior.posterior([1, 1, 0]).predictive().prob(1)), 6)
    0.6
    """

    def __init__(self, family: ExponentialFamily, chi: ArrayLike, nu: float) -> None:
        if not isinstance(family, ExponentialFamily):
            raise InvalidArgument(
                f"a conjugate prior belongs to a member of an exponential family, not to {type(family).__name__}"
            )
        self.family = family
        self.chi = family._vector(chi, "the prior's chi")
        self.chi.setflags(write=False)
        self.nu = number(nu, "nu")
        if not family._proper(self.chi, self.nu):
            kind = type(family).__name__
            raise InvalidArgument(
                f"the conjugate prior of a {kind} with chi={np.round(self.chi, 6).tolist()} and nu={self.nu:g} is improper; "
                "nu must be positive and chi / nu inside the mean parameters of the family"
            )

    @property
    def parameters(self) -> ExponentialFamily:
        """The prior as a distribution of the usual parameter: Beta, Dirichlet, Gamma, Gaussian.

        Raises
        ------
        UnsupportedModel
            For a family whose conjugate prior has no name (gamma, beta, Dirichlet, ...).
        """
        return self.family._prior_parameters(self.chi, self.nu)

    def moments(self) -> Array:
        """Return the prior expectation of the mean parameters, chi / nu."""
        if not self.nu > 0:
            raise InvalidArgument(f"the mean parameters have no finite expectation for nu={self.nu:g}")
        return self.chi / self.nu

    def mode(self) -> ExponentialFamily:
        """Return the member whose natural parameters are the most probable: that with mean parameters chi / nu."""
        return self.family.with_moments(self.moments())

    def log_density(self, eta: ArrayLike) -> float:
        """Return eta . chi - nu A(eta), the log density of natural parameters without the normaliser."""
        at = self.family._eta(eta)
        return float(at @ self.chi) - self.nu * self.family.log_partition(at)

    def posterior(self, x: Any, weights: ArrayLike | None = None) -> "ConjugatePrior":
        """Return the distribution after seeing data.

        Parameters
        ----------
        x
            Observations in the support of the family.
        weights
            One number an observation; a weight of 2 counts twice.
        """
        total, mass = total_statistics(self.family, x, weights)
        return ConjugatePrior(self.family, self.chi + total, self.nu + mass)

    def log_normaliser(self) -> float:
        """Return log Z(chi, nu), the log integral of exp(eta . chi - nu A(eta)) over eta.

        Raises
        ------
        UnsupportedModel
            Where it has no closed form.
        """
        return self.family._prior_log_normaliser(self.chi, self.nu)

    def log_evidence(self, x: Any, weights: ArrayLike | None = None) -> float:
        """Return the log probability of the data with the parameters averaged out."""
        after = self.posterior(x, weights)
        base = np.atleast_1d(self.family.log_base_measure(x)).ravel()
        held = weighted(base.size, weights)
        return float(np.where(held > 0, base, 0.0) @ held) + after.log_normaliser() - self.log_normaliser()

    def predictive(self) -> "Predictive":
        """Return the distribution of the next observation."""
        self.log_normaliser()
        return Predictive(self)

    def sample(self, n: int, seed: Seed = None) -> list[ExponentialFamily]:
        """Draw n members of the family."""
        rng = generator(seed)
        values = self.parameters.sample(draws(n), rng)
        return [self.family._with_parameter(v) for v in values]

    def __repr__(self) -> str:
        chi = np.round(self.chi, 6).tolist()
        return f"ConjugatePrior({type(self.family).__name__}, chi={chi}, nu={self.nu:g})"


class Predictive(InNotebooks):
    """The distribution of the next observation under a conjugate prior or posterior."""

    def __init__(self, prior: ConjugatePrior) -> None:
        self.prior = prior

    def log_prob(self, x: Any) -> Any:
        """Return the log predictive probability or density of each value."""
        family, prior = self.prior.family, self.prior
        base = np.asarray(family.log_base_measure(x), dtype=np.float64)
        statistics = np.asarray(family.sufficient_statistics(x)).reshape(-1, prior.chi.size)
        now = prior.log_normaliser()
        logs = np.full(base.size, -np.inf)
        for i in np.flatnonzero(np.isfinite(base.ravel())):
            logs[i] = ConjugatePrior(family, prior.chi + statistics[i], prior.nu + 1.0).log_normaliser() - now
        return (logs.reshape(base.shape) + base)[()]

    def prob(self, x: Any) -> Any:
        """Return the predictive probability or density."""
        return np.exp(self.log_prob(x))

    def moments(self) -> Array:
        """Return the expected statistics of the next observation, chi / nu."""
        return self.prior.moments()

    def sample(self, n: int, seed: Seed = None) -> Any:
        """Draw n observations, each from parameters of its own."""
        rng = generator(seed)
        drawn = [member.sample(1, rng)[0] for member in self.prior.sample(n, rng)]
        return np.array(drawn)

    def __repr__(self) -> str:
        return f"Predictive({self.prior!r})"


class StudentT(InNotebooks):
    """The Student t distribution of numbers or vectors: what a Gaussian predicts when its variance is not known."""

    def __init__(self, dof: float, loc: ArrayLike, scale: ArrayLike) -> None:
        self.dof = positive(dof, "dof")
        self.loc = np.atleast_1d(finite_numbers(loc, "loc"))
        if self.loc.ndim != 1:
            raise InvalidArgument(f"loc is one vector, not of shape {self.loc.shape}")
        self.scale, self._factor = positive_definite(np.atleast_2d(scale), self.loc.size, "scale")

    def log_prob(self, x: ArrayLike) -> Any:
        """Return the log density; of plain numbers where there is one coordinate."""
        k = self.loc.size
        points = as_numbers(x, "a value")[..., None] if k == 1 else vectors(x, k, "a point")
        if k == 1 and np.ndim(x) and np.shape(x)[-1] == 1 and np.ndim(x) > 1:
            points = as_numbers(x, "a value")
        centred = (points - self.loc).reshape(-1, k)
        squares = (centred * np.linalg.solve(self.scale, centred.T).T).sum(axis=1)
        norm = (
            lgamma(0.5 * (self.dof + k))
            - lgamma(0.5 * self.dof)
            - 0.5 * k * log(self.dof * pi)
            - 0.5 * float(np.linalg.slogdet(self.scale)[1])
        )
        logs = norm - 0.5 * (self.dof + k) * np.log1p(squares / self.dof)
        return logs.reshape(points.shape[:-1])[()]

    def prob(self, x: ArrayLike) -> Any:
        """Return the density."""
        return np.exp(self.log_prob(x))

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n numbers, or rows."""
        rng = generator(seed)
        noise = rng.standard_normal((draws(n), self.loc.size)) @ self._factor.T
        rows = self.loc + noise / np.sqrt(rng.chisquare(self.dof, n) / self.dof)[:, None]
        return np.asarray(rows[:, 0] if self.loc.size == 1 else rows)

    def __repr__(self) -> str:
        return (
            f"StudentT(dof={self.dof:g}, loc={self.loc.tolist()}, scale={np.round(self.scale, 6).tolist()})"
        )
