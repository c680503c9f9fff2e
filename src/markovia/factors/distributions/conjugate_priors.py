"""Conjugate priors of exponential families, their posteriors, evidence and predictive distributions.

The prior p(eta) proportional to exp(eta . chi - nu A(eta)) has the same form after data: chi grows by the sum of T(x), nu by
the number of observations. So nu counts pseudo-observations whose average statistics are chi / nu, which is also the
prior expectation of the mean parameters (Diaconis & Ylvisaker, 1979). Where the normaliser Z(chi, nu) is known,

    log p(x) = log h(x) + log Z(chi + T(x), nu + 1) - log Z(chi, nu)

is the predictive probability and the same ratio for many x the evidence. It is known for Bernoulli (beta), categorical and
multinomial (Dirichlet), Poisson and exponential (gamma), and Gaussians. Mean and variance of a Gaussian have a richer
conjugate prior with separate counts for both: `NormalGamma` and `NormalInverseWishart`.
Cost: linear in the data. Reference: Murphy (2012), Machine Learning, chapters 3 and 4.
"""

from math import lgamma, log, pi
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.distributions.standard import Array, as_numbers, draws, finite_numbers, vectors
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from markovia.factors.distributions.exponential_family import ExponentialFamily


class ConjugatePrior:
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

    def __init__(self, family: "ExponentialFamily", chi: ArrayLike, nu: float) -> None:
        from markovia.factors.distributions.exponential_family import ExponentialFamily

        if not isinstance(family, ExponentialFamily):
            raise InvalidArgument(
                f"a conjugate prior belongs to a member of an exponential family, not to {type(family).__name__}"
            )
        self.family = family
        self.chi = family._vector(chi, "the prior's chi")
        self.chi.setflags(write=False)
        count = finite_numbers(nu, "nu")
        if count.ndim:
            raise InvalidArgument(f"nu is one number, not {nu!r}")
        self.nu = float(count)
        kind = type(family).__name__
        proper = (
            self.nu > -1 and self.chi[0] > 0
            if kind == "Exponential"
            else self.nu > 0 and family._realisable(self.chi / self.nu)
        )
        if not proper:
            raise InvalidArgument(
                f"the conjugate prior of a {kind} with chi={np.round(self.chi, 6).tolist()} and nu={self.nu:g} is improper; "
                "nu must be positive and chi / nu inside the mean parameters of the family"
            )

    @property
    def parameters(self) -> "ExponentialFamily":
        """The prior as a distribution of the usual parameter: Beta, Dirichlet, Gamma, Gaussian.

        Raises
        ------
        UnsupportedModel
            For a family whose conjugate prior has no name (gamma, beta, Dirichlet, ...).
        """
        from markovia.factors.distributions import gaussian_families as gaussian
        from markovia.factors.distributions import positive_families as positive

        kind = type(self.family).__name__
        if kind == "Bernoulli":
            return positive.Beta(float(self.chi[0]), float(self.nu - self.chi[0]))
        if kind in ("Categorical", "Multinomial"):
            total = getattr(self.family, "total_count", 1) * self.nu
            return positive.Dirichlet(np.append(self.chi, total - self.chi.sum()))
        if kind == "Poisson":
            return positive.Gamma(float(self.chi[0]), self.nu)
        if kind == "Exponential":
            return positive.Gamma(self.nu + 1.0, float(self.chi[0]))
        if kind == "GaussianKnownVariance":
            return gaussian.Gaussian(float(self.chi[0]) / self.nu, self.family.variance / self.nu)
        raise UnsupportedModel(
            f"the conjugate prior of a {kind} has no usual name; log_density and posterior work without one"
        )

    def mean(self) -> Array:
        """Return the prior expectation of the mean parameters, chi / nu."""
        if not self.nu > 0:
            raise InvalidArgument(f"the mean parameters have no finite expectation for nu={self.nu:g}")
        return self.chi / self.nu

    def mode(self) -> "ExponentialFamily":
        """Return the member whose natural parameters are the most probable: that with mean parameters chi / nu."""
        return self.family.with_mean(self.mean())

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
        from markovia.factors.distributions.exponential_family import total_statistics

        total, mass = total_statistics(self.family, x, weights)
        return ConjugatePrior(self.family, self.chi + total, self.nu + mass)

    def log_normaliser(self) -> float:
        """Return log Z(chi, nu), the log integral of exp(eta . chi - nu A(eta)) over eta.

        Raises
        ------
        UnsupportedModel
            Where it has no closed form.
        """
        kind = type(self.family).__name__
        if (
            kind == "Gaussian"
        ):  # a normal-gamma with kappa = nu and shape (nu + 3) / 2; the Jacobian is tau / 2
            shape = 0.5 * (self.nu + 3.0)
            rate = 0.5 * float(self.chi[1] - self.chi[0] ** 2 / self.nu)
            return 0.5 * log(2.0 * pi / self.nu) + lgamma(shape) - shape * log(rate) - log(2.0)
        if kind == "GaussianKnownVariance":
            spread = self.nu * float(self.family.variance)
            return 0.5 * log(2.0 * pi / spread) + float(self.chi[0]) ** 2 / (2.0 * spread)
        try:
            return self.parameters.log_partition()
        except UnsupportedModel:
            raise UnsupportedModel(
                f"the conjugate prior of a {kind} has no closed normaliser, so no closed evidence or prediction"
            ) from None

    def log_evidence(self, x: Any, weights: ArrayLike | None = None) -> float:
        """Return the log probability of the data with the parameters averaged out."""
        from markovia.factors.distributions.exponential_family import weighted

        after = self.posterior(x, weights)
        base = np.atleast_1d(self.family.log_base_measure(x)).ravel()
        held = weighted(base.size, weights)
        return float(np.where(held > 0, base, 0.0) @ held) + after.log_normaliser() - self.log_normaliser()

    def predictive(self) -> "Predictive":
        """Return the distribution of the next observation."""
        self.log_normaliser()
        return Predictive(self)

    def sample(self, n: int, seed: Seed = None) -> list["ExponentialFamily"]:
        """Draw n members of the family."""
        rng = generator(seed)
        values = self.parameters.sample(draws(n), rng)
        return [self._member(v) for v in values]

    def _member(self, value: Any) -> "ExponentialFamily":
        kind = type(self.family).__name__
        if kind == "GaussianKnownVariance":
            return self.family.with_natural([float(value) / self.family.variance])
        if kind in ("Poisson", "Exponential"):
            at = log(value) if kind == "Poisson" else -float(value)
            return self.family.with_natural([at])
        p = np.array([value, 1.0 - value]) if kind == "Bernoulli" else np.asarray(value)
        p = np.maximum(p, 1e-300)  # a draw that underflowed: its log odds are finite in exact arithmetic
        return self.family.with_natural(np.log(p[:-1]) - np.log(p[-1]))

    def __repr__(self) -> str:
        chi = np.round(self.chi, 6).tolist()
        return f"ConjugatePrior({type(self.family).__name__}, chi={chi}, nu={self.nu:g})"


class Predictive:
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

    def mean(self) -> Array:
        """Return the expected statistics of the next observation, chi / nu."""
        return self.prior.mean()

    def sample(self, n: int, seed: Seed = None) -> Any:
        """Draw n observations, each from parameters of its own."""
        rng = generator(seed)
        drawn = [member.sample(1, rng)[0] for member in self.prior.sample(n, rng)]
        return np.array(drawn)

    def __repr__(self) -> str:
        return f"Predictive({self.prior!r})"


class NormalGamma:
    """The prior of a Gaussian's mean and precision: tau ~ Gamma(shape, rate), mean ~ N(mean, 1 / (kappa tau)).

    Examples
    --------
    >>> post = NormalGamma(mean=0, kappa=1, shape=2, rate=2).posterior([1.0, 3.0])
    >>> post
    NormalGamma(mean=1.33333, kappa=3, shape=3, rate=4.33333)
    >>> post.predictive().dof
    6.0
    """

    def __init__(self, mean: float = 0.0, kappa: float = 1.0, shape: float = 1.0, rate: float = 1.0) -> None:
        self.location = float(finite_numbers(mean, "the mean"))
        self.kappa, self.shape, self.rate = (
            _positive(v, n) for v, n in ((kappa, "kappa"), (shape, "shape"), (rate, "rate"))
        )

    def posterior(self, x: ArrayLike, weights: ArrayLike | None = None) -> "NormalGamma":
        """Return the distribution after seeing numbers."""
        from markovia.factors.distributions.exponential_family import weighted

        data = np.atleast_1d(finite_numbers(x, "the data"))
        if data.ndim != 1:
            raise InvalidArgument(f"the data are one column of numbers, not shape {data.shape}")
        held = weighted(data.size, weights)
        n = float(held.sum())
        if not n:
            return self
        average = float(held @ data) / n
        scatter = float(held @ (data - average) ** 2)
        kappa = self.kappa + n
        shift = self.kappa * n * (average - self.location) ** 2 / (2.0 * kappa)
        return NormalGamma(
            (self.kappa * self.location + n * average) / kappa,
            kappa,
            self.shape + 0.5 * n,
            self.rate + 0.5 * scatter + shift,
        )

    def log_prob(self, mean: float, precision: float) -> float:
        """Return the log density of a mean and a precision."""
        if not precision > 0:
            return -np.inf
        gamma = (
            self.shape * log(self.rate)
            - lgamma(self.shape)
            + (self.shape - 1.0) * log(precision)
            - self.rate * precision
        )
        spread = self.kappa * precision
        return gamma + 0.5 * log(spread / (2.0 * pi)) - 0.5 * spread * (mean - self.location) ** 2

    def log_evidence(self, x: ArrayLike, weights: ArrayLike | None = None) -> float:
        """Return the log probability of the data with the parameters averaged out."""
        after = self.posterior(x, weights)
        n = 2.0 * (after.shape - self.shape)
        return after._log_normaliser() - self._log_normaliser() - 0.5 * n * log(2.0 * pi)

    def _log_normaliser(self) -> float:
        return lgamma(self.shape) - self.shape * log(self.rate) - 0.5 * log(self.kappa)

    def predictive(self) -> "StudentT":
        """Return the distribution of the next observation: a Student t."""
        scale = self.rate * (self.kappa + 1.0) / (self.shape * self.kappa)
        return StudentT(2.0 * self.shape, [self.location], [[scale]])

    def sample(self, n: int, seed: Seed = None) -> list["ExponentialFamily"]:
        """Draw n Gaussians."""
        from markovia.factors.distributions.gaussian_families import Gaussian

        rng = generator(seed)
        precision = rng.gamma(self.shape, 1.0 / self.rate, draws(n))
        means = rng.normal(self.location, 1.0 / np.sqrt(self.kappa * precision))
        return [Gaussian(float(m), 1.0 / float(t)) for m, t in zip(means, precision, strict=True)]

    def __repr__(self) -> str:
        return f"NormalGamma(mean={self.location:g}, kappa={self.kappa:g}, shape={self.shape:g}, rate={self.rate:g})"


class NormalInverseWishart:
    """The prior of a Gaussian's mean vector and covariance: S ~ IW(dof, scale), mean ~ N(mean, S / kappa).

    Examples
    --------
    >>> prior = NormalInverseWishart([0.0, 0.0], kappa=1.0, dof=4.0, scale=[[1.0, 0.0], [0.0, 1.0]])
    >>> post = prior.posterior([[1.0, 2.0], [3.0, 0.0]])
    >>> post.kappa, post.dof, post.location.round(4).tolist()
    (3.0, 6.0, [1.3333, 0.6667])
    """

    def __init__(self, mean: ArrayLike, kappa: float, dof: float, scale: ArrayLike) -> None:
        self.location = np.atleast_1d(finite_numbers(mean, "the mean"))
        self.scale = finite_numbers(scale, "the scale matrix")
        self.kappa = _positive(kappa, "kappa")
        self.dof = _positive(dof, "dof")
        k = self.location.size
        if self.location.ndim != 1:
            raise InvalidArgument(f"the mean is one vector, not of shape {self.location.shape}")
        if self.dof <= k - 1:
            raise InvalidArgument(f"dof must be above {k - 1}, the dimension less one, not {self.dof:g}")
        if self.scale.shape != (k, k) or not np.allclose(self.scale, self.scale.T):
            raise InvalidArgument(
                f"the scale is a symmetric matrix of {k} rows, not shape {self.scale.shape}"
            )
        if np.linalg.eigvalsh(self.scale)[0] <= 0:
            raise InvalidArgument("the scale matrix is not positive definite")

    def posterior(self, x: ArrayLike, weights: ArrayLike | None = None) -> "NormalInverseWishart":
        """Return the distribution after seeing rows of numbers."""
        from markovia.factors.distributions.exponential_family import weighted

        rows = np.atleast_2d(finite_numbers(x, "the data"))
        if rows.ndim != 2 or rows.shape[1] != self.location.size:
            raise InvalidArgument(
                f"the data are rows of {self.location.size} numbers, not shape {rows.shape}"
            )
        held = weighted(len(rows), weights)
        n = float(held.sum())
        if not n:
            return self
        average = held @ rows / n
        centred = rows - average
        kappa = self.kappa + n
        gap = average - self.location
        scale = (
            self.scale + (centred * held[:, None]).T @ centred + self.kappa * n / kappa * np.outer(gap, gap)
        )
        return NormalInverseWishart(
            (self.kappa * self.location + n * average) / kappa, kappa, self.dof + n, scale
        )

    def log_evidence(self, x: ArrayLike, weights: ArrayLike | None = None) -> float:
        """Return the log probability of the data with the parameters averaged out."""
        after = self.posterior(x, weights)
        n = after.kappa - self.kappa
        return after._log_normaliser() - self._log_normaliser() - 0.5 * n * self.location.size * log(2.0 * pi)

    def _log_normaliser(self) -> float:
        from scipy.special import multigammaln

        k = self.location.size
        return float(
            0.5 * self.dof * k * log(2.0)
            + multigammaln(0.5 * self.dof, k)
            - 0.5 * self.dof * np.linalg.slogdet(self.scale)[1]
            + 0.5 * k * log(2.0 * pi / self.kappa)
        )

    def predictive(self) -> "StudentT":
        """Return the distribution of the next observation: a multivariate Student t."""
        dof = self.dof - self.location.size + 1.0
        return StudentT(dof, self.location, self.scale * (self.kappa + 1.0) / (self.kappa * dof))

    def sample(self, n: int, seed: Seed = None) -> list["ExponentialFamily"]:
        """Draw n multivariate Gaussians."""
        from scipy.stats import invwishart

        from markovia.factors.distributions.gaussian_families import MultivariateGaussian

        rng = generator(seed)
        found: list[ExponentialFamily] = []
        for _ in range(draws(n)):
            cov = np.atleast_2d(invwishart.rvs(self.dof, self.scale, random_state=rng))
            found.append(MultivariateGaussian(rng.multivariate_normal(self.location, cov / self.kappa), cov))
        return found

    def __repr__(self) -> str:
        mean, scale = np.round(self.location, 6).tolist(), np.round(self.scale, 6).tolist()
        return f"NormalInverseWishart(mean={mean}, kappa={self.kappa:g}, dof={self.dof:g}, scale={scale})"


class StudentT:
    """The Student t distribution of numbers or vectors: what a Gaussian predicts when its variance is not known."""

    def __init__(self, dof: float, loc: ArrayLike, scale: ArrayLike) -> None:
        self.dof = _positive(dof, "dof")
        self.loc = np.atleast_1d(finite_numbers(loc, "loc"))
        self.scale = np.atleast_2d(finite_numbers(scale, "the scale matrix"))
        k = self.loc.size
        if self.loc.ndim != 1 or self.scale.shape != (k, k) or not np.allclose(self.scale, self.scale.T):
            raise InvalidArgument(
                f"the scale is a symmetric matrix of {k} rows, not shape {self.scale.shape}"
            )
        if np.linalg.eigvalsh(self.scale)[0] <= 0:
            raise InvalidArgument("the scale matrix is not positive definite")

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
        noise = rng.standard_normal((draws(n), self.loc.size)) @ np.linalg.cholesky(self.scale).T
        rows = self.loc + noise / np.sqrt(rng.chisquare(self.dof, n) / self.dof)[:, None]
        return np.asarray(rows[:, 0] if self.loc.size == 1 else rows)

    def __repr__(self) -> str:
        return (
            f"StudentT(dof={self.dof:g}, loc={self.loc.tolist()}, scale={np.round(self.scale, 6).tolist()})"
        )


def _positive(value: object, what: str) -> float:
    number = finite_numbers(value, what)  # type: ignore[arg-type]
    if number.ndim or not number > 0:
        raise InvalidArgument(f"{what} is a positive number, not {value!r}")
    return float(number)
