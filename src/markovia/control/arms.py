"""What is known of the arms of a bandit: conjugate posteriors, one an arm, as arrays that all rules read at once.

The posterior of the mean reward of an arm is, by the family of its rewards,

    Bernoulli               p ~ Beta(a, b)
    Poisson                 rate ~ Gamma(shape, rate)
    Exponential             1 / mean ~ Gamma(shape, rate)
    Gaussian, known sd      mean ~ N(m, v)
    Gaussian (NormalGamma)  mean ~ Student t with 2 shape degrees, scale rate / (shape kappa)

Updates are those of the priors themselves. Upper confidence bounds are the largest mean that n observations do not
exclude: max{m : n kl(average, m) <= log f(t)} in the family (KL-UCB), which for a known deviation s is average + s
sqrt(2 log f / n); for an unknown one it is average + s sqrt(exp(2 log f / (n - 2)) - 1). All reach the least regret
possible in the long run.

References: Cappé, Garivier, Maillard, Munos and Stoltz (2013); Cowan, Honda and Katehakis (2018); Lai and Robbins
(1985). Cost of a step: linear in the arms.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from markovia.control.gittins import beta_counts
from markovia.errors import InvalidArgument
from markovia.factors.distributions.conjugate_priors import ConjugatePrior
from markovia.factors.distributions.discrete_families import Bernoulli
from markovia.factors.distributions.gaussian_families import NormalGamma
from markovia.runtime.array_types import Array, Ints

NEWTON_STEPS = 50
"""Steps to an upper bound at most; about six do."""
CURE = (
    "a bandit needs a Beta distribution, or a prior of markovia.exponential: "
    "Bernoulli.conjugate_prior(), Poisson.conjugate_prior(), Exponential.conjugate_prior(), "
    "GaussianKnownVariance.conjugate_prior(var=1.0) or NormalGamma(); or a model to fit"
)


class Arms(ABC):
    """What rules ask about arms.

    Attributes
    ----------
    names
        The arms.
    pulls
        How often each was pulled.
    """

    contextual = False
    least_pulls = 1

    def __init__(self, names: Sequence[Hashable]) -> None:
        self.names = list(names)
        self.pulls: Ints = np.zeros(len(self.names), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.names)

    @abstractmethod
    def observe(self, arm: int, reward: float, context: Any) -> None:
        """Learn from the reward of one pull."""

    @abstractmethod
    def means(self, context: Any) -> Array:
        """Return the expected reward of each arm."""

    @abstractmethod
    def draw(self, context: Any, rng: np.random.Generator) -> Array:
        """Draw the mean reward of each arm from what is known of it."""

    @abstractmethod
    def quantile(self, level: float, context: Any) -> Array:
        """Return that quantile of the mean reward of each arm."""

    @abstractmethod
    def upper_bound(self, log_time: float, context: Any) -> Array:
        """Return the largest mean rewards that are not excluded at the cost of `log_time`."""

    @property
    @abstractmethod
    def posteriors(self) -> list[Any]:
        """What is known of each arm."""


class ConjugateArms(Arms):
    """Arms with rewards from an exponential family and conjugate priors."""

    def __init__(self, priors: Sequence[Any], names: Sequence[Hashable]) -> None:
        super().__init__(names)
        self._posteriors = list(priors)
        kinds = {family_of(p) for p in self._posteriors}
        if len(kinds) > 1:
            raise InvalidArgument(f"all arms have rewards of one family, not of {', '.join(sorted(kinds))}")
        (kind,) = kinds
        self.law = LAWS[kind]()
        self.least_pulls = self.law.least_pulls
        self._numbers = np.array([self.law.parameters(p) for p in self._posteriors])
        self._averages, self._squares = (
            np.zeros(len(self)),
            np.zeros(len(self)),
        )  # of rewards; about their average

    @property
    def posteriors(self) -> list[Any]:
        """The posterior of each arm, an object of `markovia.exponential`."""
        return list(self._posteriors)

    def observe(self, arm: int, reward: float, context: Any) -> None:
        """Learn from the reward of one pull."""
        self._posteriors[arm] = self._posteriors[arm].posterior([reward])
        self._numbers[arm] = self.law.parameters(self._posteriors[arm])
        self.pulls[arm] += 1
        step = reward - self._averages[arm]
        self._averages[arm] += step / self.pulls[arm]
        self._squares[arm] += step * (reward - self._averages[arm])

    def means(self, context: Any) -> Array:
        """Return the posterior means."""
        return self.law.means(*self._numbers.T)

    def draw(self, context: Any, rng: np.random.Generator) -> Array:
        """Draw from each posterior."""
        return self.law.draw(rng, *self._numbers.T)

    def quantile(self, level: float, context: Any) -> Array:
        """Return a quantile of each posterior."""
        return np.asarray(self.law.quantile(level, *self._numbers.T))

    def upper_bound(self, log_time: float, context: Any) -> Array:
        """Return upper confidence bounds from the rewards alone; infinite for an arm with too few pulls."""
        few = self.pulls < self.least_pulls
        n = np.where(few, self.least_pulls, self.pulls)
        spread = np.sqrt(self._squares / n)
        with np.errstate(all="ignore"):
            found = self.law.upper_bound(self._averages, spread, n, log_time, self._posteriors[0])
        return np.where(few, np.inf, found)


def conjugate_prior_of(prior: Any) -> Any:
    """Return a conjugate prior of the rewards; a Beta distribution is that of zeros and ones."""
    if isinstance(prior, NormalGamma) or (isinstance(prior, ConjugatePrior) and family_of(prior) in LAWS):
        return prior
    if hasattr(prior, "concentration1") or type(prior).__name__ == "Beta":
        return Bernoulli.conjugate_prior(*beta_counts(prior))
    raise InvalidArgument(f"{CURE}, not {prior!r:.60}")


def family_of(prior: Any) -> str:
    """Return the name of the family that a prior is of."""
    return "NormalGamma" if isinstance(prior, NormalGamma) else type(prior.family).__name__


class MeanReward(ABC):
    """The law of an arm's mean reward, for all arms at once; `parameters` are two or three numbers an arm."""

    least_pulls = 1

    @abstractmethod
    def parameters(self, posterior: Any) -> tuple[float, ...]:
        """Return the numbers of one posterior."""

    @abstractmethod
    def means(self, *p: Array) -> Array:
        """Return the expected mean rewards."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, *p: Array) -> Array:
        """Draw mean rewards."""

    @abstractmethod
    def quantile(self, level: float, *p: Array) -> Array:
        """Return quantiles of mean rewards."""

    def upper_bound(self, average: Array, spread: Array, n: Ints, log_time: float, prior: Any) -> Array:
        """Return the largest mean whose divergence from the average is log_time / n.

        The divergence is convex in `place`, so that Newton steps from beyond the root come down to it and never pass it.
        """
        allowed = log_time / n
        at = self.beyond(average, allowed)
        for _ in range(NEWTON_STEPS):
            value, slope = self.divergence(average, at)
            step = np.where(slope > 0, (value - allowed) / slope, 0.0)
            step = np.where(np.isfinite(step), step, 0.0)
            at = at - step
            if (np.abs(step) <= 1e-13 * np.abs(at)).all():
                break
        return self.mean_at(average, at)

    def divergence(self, average: Array, place: Array) -> tuple[Array, Array]:
        """Return the divergence of the member with an average from that at a place, and its slope."""
        raise NotImplementedError

    def beyond(self, average: Array, allowed: Array) -> Array:
        """Return places whose divergence is no less than what is allowed."""
        raise NotImplementedError

    def mean_at(self, average: Array, place: Array) -> Array:
        """Return the mean at a place; most are means themselves."""
        return place


class BetaMean(MeanReward):
    """Zeros and ones."""

    def parameters(self, posterior: Any) -> tuple[float, ...]:
        """Return the two counts."""
        return float(posterior.chi[0]), float(posterior.nu - posterior.chi[0])

    def means(self, *p: Array) -> Array:
        """Return a / (a + b)."""
        return p[0] / (p[0] + p[1])

    def draw(self, rng: np.random.Generator, *p: Array) -> Array:
        """Draw probabilities."""
        return rng.beta(*p)

    def quantile(self, level: float, *p: Array) -> Array:
        """Return quantiles of a Beta."""
        from scipy.special import betaincinv

        return np.asarray(betaincinv(*p, level))

    def divergence(self, average: Array, place: Array) -> tuple[Array, Array]:
        """Return that of two coins."""
        from scipy.special import rel_entr

        value = rel_entr(average, place) + rel_entr(1.0 - average, 1.0 - place)
        return value, (place - average) / (place * (1.0 - place))

    def beyond(self, average: Array, allowed: Array) -> Array:
        """Return the lesser of Pinsker's bound and that of kl(a, m) >= -(1 - a) log(1 - m) - entropy(a)."""
        from scipy.special import entr

        entropy = entr(average) + entr(1.0 - average)
        other = -np.expm1(-(allowed + entropy) / (1.0 - average))
        return np.minimum(np.where(average < 1.0, other, 1.0), average + np.sqrt(0.5 * allowed))


class GammaMean(MeanReward):
    """Counts."""

    def parameters(self, posterior: Any) -> tuple[float, ...]:
        """Return shape and rate."""
        return float(posterior.chi[0]), float(posterior.nu)

    def means(self, *p: Array) -> Array:
        """Return shape / rate."""
        return p[0] / p[1]

    def draw(self, rng: np.random.Generator, *p: Array) -> Array:
        """Draw rates."""
        return rng.gamma(p[0], 1.0 / p[1])

    def quantile(self, level: float, *p: Array) -> Array:
        """Return quantiles of a gamma."""
        from scipy.special import gammaincinv

        return np.asarray(gammaincinv(p[0], level) / p[1])

    def divergence(self, average: Array, place: Array) -> tuple[Array, Array]:
        """Return that of two Poisson laws."""
        from scipy.special import kl_div

        return kl_div(average, place), 1.0 - average / place

    def beyond(self, average: Array, allowed: Array) -> Array:
        """Return a + 2 d + sqrt(2 a d): kl(a, m) >= (m - a)^2 / (2 m)."""
        return average + 2.0 * allowed + np.sqrt(2.0 * average * allowed)


class InverseGammaMean(MeanReward):
    """Waiting times: the mean is one over a rate."""

    def parameters(self, posterior: Any) -> tuple[float, ...]:
        """Return shape and rate."""
        return float(posterior.nu + 1.0), float(posterior.chi[0])

    def means(self, *p: Array) -> Array:
        """Return rate / (shape - 1), infinite up to shape 1."""
        return np.where(p[0] > 1.0, p[1] / np.where(p[0] > 1.0, p[0] - 1.0, 1.0), np.inf)

    def draw(self, rng: np.random.Generator, *p: Array) -> Array:
        """Draw mean times."""
        return p[1] / rng.gamma(p[0])

    def quantile(self, level: float, *p: Array) -> Array:
        """Return quantiles of an inverse gamma."""
        from scipy.special import gammainccinv

        return np.asarray(p[1] / gammainccinv(p[0], level))

    def divergence(self, average: Array, place: Array) -> tuple[Array, Array]:
        """Return that of two exponential laws, the place being the log of the ratio of their means."""
        return np.expm1(-place) + place, -np.expm1(-place)

    def beyond(self, average: Array, allowed: Array) -> Array:
        """Return 1 + d."""
        return 1.0 + allowed

    def mean_at(self, average: Array, place: Array) -> Array:
        """Return the average times the ratio."""
        return np.asarray(average * np.exp(np.minimum(place, 700.0)))


class NormalMean(MeanReward):
    """Numbers with a known deviation."""

    def parameters(self, posterior: Any) -> tuple[float, ...]:
        """Return mean and deviation."""
        nu, variance = float(posterior.nu), float(posterior.family.variance)
        return float(posterior.chi[0]) / nu, float(np.sqrt(variance / nu))

    def means(self, *p: Array) -> Array:
        """Return the means."""
        return np.array(p[0])

    def draw(self, rng: np.random.Generator, *p: Array) -> Array:
        """Draw means."""
        return rng.normal(*p)

    def quantile(self, level: float, *p: Array) -> Array:
        """Return quantiles of a normal."""
        from scipy.special import ndtri

        return np.asarray(p[0] + p[1] * ndtri(level))

    def upper_bound(self, average: Array, spread: Array, n: Ints, log_time: float, prior: Any) -> Array:
        """Return average + s sqrt(2 log f / n)."""
        return average + np.sqrt(2.0 * float(prior.family.variance) * log_time / n)


class StudentMean(MeanReward):
    """Numbers with an unknown deviation."""

    least_pulls = 3

    def parameters(self, posterior: Any) -> tuple[float, ...]:
        """Return location, scale and degrees of freedom of the mean."""
        scale = np.sqrt(posterior.rate / (posterior.shape * posterior.kappa))
        return float(posterior.location), float(scale), 2.0 * float(posterior.shape)

    def means(self, *p: Array) -> Array:
        """Return the locations."""
        return np.array(p[0])

    def draw(self, rng: np.random.Generator, *p: Array) -> Array:
        """Draw means."""
        return np.asarray(p[0] + p[1] * rng.standard_t(p[2]))

    def quantile(self, level: float, *p: Array) -> Array:
        """Return quantiles of a Student t."""
        from scipy.special import stdtrit

        return np.asarray(p[0] + p[1] * stdtrit(p[2], level))

    def upper_bound(self, average: Array, spread: Array, n: Ints, log_time: float, prior: Any) -> Array:
        """Return average + s sqrt(exp(2 log f / (n - 2)) - 1)."""
        return average + spread * np.sqrt(np.expm1(np.minimum(2.0 * log_time / np.maximum(n - 2, 1), 700.0)))


LAWS: dict[str, type[MeanReward]] = {
    "Bernoulli": BetaMean, "Poisson": GammaMean, "Exponential": InverseGammaMean,
    "GaussianKnownVariance": NormalMean, "NormalGamma": StudentMean,
}  # fmt: skip
"""The laws of mean rewards, by the family of the rewards."""
