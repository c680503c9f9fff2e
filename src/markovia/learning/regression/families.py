"""The parts of a generalised linear model: response families with their variance functions, and link functions.

A GLM says: eta = X theta (+ offset), mu = g^-1(eta), and y comes from an exponential family with mean mu and variance
phi V(mu). The canonical link makes eta the natural parameter; then the gradient of the log likelihood is X'(y - mu) / phi
and its Hessian -X'WX / phi with W = diag(V(mu)). Reference: McCullagh & Nelder (1989), Generalized Linear Models.

    family      V(mu)        canonical link     dispersion phi
    gaussian    1            identity           estimated
    bernoulli   mu (1 - mu)  logit              1
    binomial    mu (1 - mu)  logit              1   (mu is the share of successes, a weight the number of trials)
    poisson     mu           log                1
    gamma       mu^2         inverse            estimated
    categorical              softmax            1   (several linear predictors; see iteratively_reweighted.fit_softmax)

The inverse link is eta = 1 / mu: the natural parameter of the gamma, -1 / mu, up to its sign.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, did_you_mean
from markovia.runtime.array_types import Array

_TINY = 1e-300


@dataclass(frozen=True)
class Link:
    """A link function g with mu = g^-1(eta).

    Attributes
    ----------
    name
        How it is called.
    of
        g(mu).
    inverse
        mu at eta.
    slope
        d mu / d eta.
    bend
        The second derivative of mu.
    valid
        Which eta are allowed; all where None.
    tails
        log mu, log(1 - mu) and the log of the slope, for links to probabilities: they keep their digits where mu itself
        rounds to 0 or 1.
    """

    name: str
    of: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    bend: Callable[[Array], Array]
    valid: Callable[[Array], NDArray[np.bool_]] | None = None
    tails: Callable[[Array], tuple[Array, Array, Array]] | None = None


def sigmoid(eta: Array) -> Array:
    """Return 1 / (1 + e^-eta) without overflow.

    Examples
    --------
    >>> sigmoid(np.array([-800.0, 0.0, 800.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    from scipy.special import expit

    return np.asarray(expit(eta))


def _exp(eta: Array) -> Array:
    return np.exp(np.minimum(eta, 700.0))


def _normal(eta: Array) -> Array:
    return np.asarray(np.exp(-0.5 * eta * eta) / np.sqrt(2.0 * pi))


def _probit(mu: Array) -> Array:
    from scipy.special import ndtri

    return np.asarray(ndtri(mu))


def _ndtr(eta: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr(eta))


def _cloglog_slope(eta: Array) -> Array:
    return np.exp(np.minimum(eta, 700.0) - _exp(eta))


def _logit_tails(eta: Array) -> tuple[Array, Array, Array]:
    down = -np.maximum(eta, 0.0) - np.log1p(np.exp(-np.abs(eta)))
    up = down + eta
    return up, down, up + down


def _probit_tails(eta: Array) -> tuple[Array, Array, Array]:
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(eta)), np.asarray(log_ndtr(-eta)), -0.5 * eta * eta - 0.5 * log(2.0 * pi)


def _cloglog_tails(eta: Array) -> tuple[Array, Array, Array]:
    rate = _exp(eta)
    with np.errstate(divide="ignore"):
        up = np.where(eta < -30.0, eta - 0.5 * rate, np.log(-np.expm1(-rate)))
    return up, -rate, eta - rate


LINKS: dict[str, Link] = {
    "identity": Link("identity", lambda mu: mu, lambda eta: eta, np.ones_like, np.zeros_like),
    "log": Link("log", np.log, _exp, _exp, _exp),
    "logit": Link(
        "logit",
        lambda mu: np.log(mu) - np.log1p(-mu),
        sigmoid,
        lambda eta: sigmoid(eta) * sigmoid(-eta),
        lambda eta: sigmoid(eta) * sigmoid(-eta) * (sigmoid(-eta) - sigmoid(eta)),
        tails=_logit_tails,
    ),
    "probit": Link(
        "probit", _probit, _ndtr, _normal, lambda eta: -eta * _normal(eta), tails=_probit_tails
    ),
    "cloglog": Link(
        "cloglog",
        lambda mu: np.log(-np.log1p(-mu)),
        lambda eta: -np.expm1(-_exp(eta)),
        _cloglog_slope,
        lambda eta: _cloglog_slope(eta) * (1.0 - _exp(eta)),
        tails=_cloglog_tails,
    ),
    "inverse": Link(
        "inverse",
        lambda mu: 1.0 / mu,
        lambda eta: 1.0 / eta,
        lambda eta: -1.0 / eta**2,
        lambda eta: 2.0 / eta**3,
        lambda eta: eta > 0,
    ),
    "sqrt": Link(
        "sqrt", np.sqrt, lambda eta: eta**2, lambda eta: 2.0 * eta, lambda eta: np.full_like(eta, 2.0),
        lambda eta: eta > 0,
    ),
}  # fmt: skip


class Response:
    """A response family: variance function, deviance, log likelihood and what values y may take."""

    name = ""
    canonical = "identity"
    dispersed = False
    """Whether the dispersion is estimated; it is 1 otherwise."""
    support = ""

    def inside(self, y: Array) -> NDArray[np.bool_]:
        """Say which responses are possible."""
        raise NotImplementedError

    def allowed(self, mu: Array) -> bool:
        """Say whether all means are inside the family."""
        raise NotImplementedError

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""
        raise NotImplementedError

    def variance_slope(self, mu: Array) -> Array:
        """Return the derivative of V."""
        raise NotImplementedError

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        """Return twice the log likelihood ratio of the saturated model, one number a row."""
        raise NotImplementedError

    def log_likelihood(self, y: Array, mu: Array, weights: Array, dispersion: float) -> float:
        """Return the weighted log likelihood with all constants."""
        raise NotImplementedError

    def start(self, y: Array) -> Array:
        """Return means near the data that the link can take."""
        return (y + float(y.mean())) / 2.0


class GaussianResponse(Response):
    """Real numbers of constant variance."""

    name, canonical, dispersed, support = "gaussian", "identity", True, "finite numbers"

    def inside(self, y: Array) -> NDArray[np.bool_]:
        """All of them."""
        return np.isfinite(y)

    def allowed(self, mu: Array) -> bool:
        """All finite means."""
        return bool(np.isfinite(mu).all())

    def variance(self, mu: Array) -> Array:
        """1."""
        return np.ones_like(mu)

    def variance_slope(self, mu: Array) -> Array:
        """0."""
        return np.zeros_like(mu)

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        """Return the squared residual."""
        return np.asarray((y - mu) ** 2)

    def log_likelihood(self, y: Array, mu: Array, weights: Array, dispersion: float) -> float:
        """At the maximum-likelihood variance, whatever the dispersion given."""
        n = float(weights.sum())
        variance = max(float(weights @ (y - mu) ** 2) / n, _TINY)
        return -0.5 * n * (log(2.0 * pi * variance) + 1.0)


class BinomialResponse(Response):
    """Shares of successes between 0 and 1; a row's weight is its number of trials."""

    name, canonical, support = "binomial", "logit", "shares between 0 and 1"

    def inside(self, y: Array) -> NDArray[np.bool_]:
        """From 0 to 1."""
        return (y >= 0) & (y <= 1)

    def allowed(self, mu: Array) -> bool:
        """From 0 to 1; a link may round to the ends."""
        return bool(((mu >= 0) & (mu <= 1)).all())

    def variance(self, mu: Array) -> Array:
        """Return mu (1 - mu)."""
        return np.asarray(mu * (1.0 - mu))

    def variance_slope(self, mu: Array) -> Array:
        """1 - 2 mu."""
        return 1.0 - 2.0 * mu

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        """Twice the Kullback-Leibler divergence."""
        return 2.0 * (_ratio(y, mu) + _ratio(1.0 - y, 1.0 - mu))

    def log_likelihood(self, y: Array, mu: Array, weights: Array, dispersion: float) -> float:
        """With the binomial coefficients of the trials."""
        from scipy.special import gammaln, xlog1py, xlogy

        wins = weights * y
        kernel = xlogy(wins, mu) + xlog1py(weights - wins, -mu)
        coefficient = gammaln(weights + 1) - gammaln(wins + 1) - gammaln(weights - wins + 1)
        return float((kernel + coefficient).sum())

    def start(self, y: Array) -> Array:
        """Half way to one half."""
        return (y + 0.5) / 2.0


class BernoulliResponse(BinomialResponse):
    """Zeros and ones; a row's weight repeats it."""

    name, support = "bernoulli", "two classes"

    def log_likelihood(self, y: Array, mu: Array, weights: Array, dispersion: float) -> float:
        """Return minus the cross entropy."""
        return -0.5 * float(weights @ self.unit_deviance(y, mu))


class PoissonResponse(Response):
    """Counts."""

    name, canonical, support = "poisson", "log", "numbers that are not negative"

    def inside(self, y: Array) -> NDArray[np.bool_]:
        """Not negative."""
        return (y >= 0) & np.isfinite(y)

    def allowed(self, mu: Array) -> bool:
        """Positive."""
        return bool(((mu > 0) & np.isfinite(mu)).all())

    def variance(self, mu: Array) -> Array:
        """Return mu."""
        return mu

    def variance_slope(self, mu: Array) -> Array:
        """1."""
        return np.ones_like(mu)

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        """2 (y log(y / mu) - y + mu)."""
        return 2.0 * (_ratio(y, mu) - y + mu)

    def log_likelihood(self, y: Array, mu: Array, weights: Array, dispersion: float) -> float:
        """With log y!."""
        from scipy.special import gammaln, xlogy

        return float(weights @ (xlogy(y, mu) - mu - gammaln(y + 1.0)))

    def start(self, y: Array) -> Array:
        """Towards the average, away from zero."""
        return np.maximum((y + float(y.mean())) / 2.0, 1e-3)


class GammaResponse(Response):
    """Positive numbers whose standard deviation grows with their mean."""

    name, canonical, dispersed, support = "gamma", "inverse", True, "positive numbers"

    def inside(self, y: Array) -> NDArray[np.bool_]:
        """Positive."""
        return (y > 0) & np.isfinite(y)

    def allowed(self, mu: Array) -> bool:
        """Positive."""
        return bool(((mu > 0) & np.isfinite(mu)).all())

    def variance(self, mu: Array) -> Array:
        """mu^2."""
        return np.asarray(mu**2)

    def variance_slope(self, mu: Array) -> Array:
        """2 mu."""
        return 2.0 * mu

    def unit_deviance(self, y: Array, mu: Array) -> Array:
        """2 ((y - mu) / mu - log(y / mu))."""
        ratio = y / mu
        return 2.0 * (ratio - 1.0 - np.log(ratio))

    def log_likelihood(self, y: Array, mu: Array, weights: Array, dispersion: float) -> float:
        """At the given dispersion: shape 1 / phi, mean mu."""
        from scipy.special import gammaln

        shape = 1.0 / max(dispersion, _TINY)
        logs = shape * np.log(shape / mu) + (shape - 1.0) * np.log(y) - shape * y / mu - gammaln(shape)
        return float(weights @ logs)


FAMILIES: dict[str, Response] = {
    r.name: r
    for r in (
        GaussianResponse(),
        BernoulliResponse(),
        BinomialResponse(),
        PoissonResponse(),
        GammaResponse(),
    )
}


def family_and_link(family: str, link: str | None) -> tuple[Response, Link]:
    """Return the response family and the link by name; None is the canonical link.

    Examples
    --------
    >>> response, link = family_and_link("poisson", None)
    >>> link.name
    'log'
    """
    if family not in FAMILIES:
        known = [*FAMILIES, "categorical"]
        raise InvalidArgument(f"family={family!r} is none of {', '.join(known)}{did_you_mean(family, known)}")
    response = FAMILIES[family]
    name = response.canonical if link is None else link
    if name not in LINKS:
        raise InvalidArgument(f"link={link!r} is none of {', '.join(LINKS)}{did_you_mean(name, LINKS)}")
    return response, LINKS[name]


def _ratio(y: Array, mu: Array) -> Array:
    """Return y log(y / mu), 0 where y is 0."""
    from scipy.special import xlogy

    return np.asarray(xlogy(y, y) - xlogy(y, mu))
