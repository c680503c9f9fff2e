"""Blocks of quantities with a distribution of a known family: natural parameters, draws, densities, averages.

A block is one or several latent nodes. Its natural parameters are read off a log density by derivatives (`coefficients`),
which is exact where the log density is of the family. `points` are two places (for correlated normal blocks two a dimension)
that have, with equal weights, the block's expected statistics: any function that is linear in the statistics has its exact
expectation there, which is all that mean-field updates need.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log, pi, prod
from typing import Any

import numpy as np

from markovia.runtime.libraries import jax, jnp

Values = Mapping[str, Any]
LOG_2PI = log(2.0 * pi)
TINY = 1e-290


@dataclass(frozen=True, eq=False)
class ConjugateBlock(ABC):
    """Quantities that are updated together, by name with their shapes."""

    shapes: Mapping[str, tuple[int, ...]]

    def coefficients(self, f: Callable[[Values], Any], at: Values) -> Any:
        """Return the natural parameters of a log density of the block; exact where it is of the family."""
        places = self.places(at)
        return self.solve(places, jax.vmap(jax.grad(f))(places))

    @abstractmethod
    def places(self, at: Values) -> dict[str, Any]:
        """Return places whose gradients tell the natural parameters, along a new first axis; the first is `at`."""

    @abstractmethod
    def solve(self, places: Values, slopes: Values) -> Any:
        """Return the natural parameters that gradients at `places` tell."""

    @abstractmethod
    def slope(self, x: Values, eta: Any) -> dict[str, Any]:
        """Return the gradient of `kernel`."""

    @abstractmethod
    def kernel(self, x: Values, eta: Any) -> Any:
        """Return the statistics times natural parameters: the log density without its constant."""

    @abstractmethod
    def log_density(self, x: Values, eta: Any) -> Any:
        """Return the log density."""

    @abstractmethod
    def draw(self, key: Any, eta: Any) -> dict[str, Any]:
        """Draw the block."""

    @abstractmethod
    def mean(self, eta: Any) -> dict[str, Any]:
        """Return the mean; inside the support."""

    @abstractmethod
    def points(self, eta: Any) -> dict[str, Any]:
        """Return places with the expected statistics, along a new first axis."""

    @abstractmethod
    def entropy(self, eta: Any) -> Any:
        """Return the entropy."""

    def tangent(self, slope: Values, at: Values) -> Any:
        """Return the part of a gradient that counts, as one vector: for points on a simplex that along it."""
        return np.concatenate([np.ravel(slope[n]) for n in self.shapes])

    @property
    def name(self) -> str:
        """The name of the first quantity."""
        return next(iter(self.shapes))


# -- normal -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NormalBlock(ConjugateBlock):
    """Real numbers with a normal distribution: natural parameters are precision times mean, and precision.

    The precision is a vector where the numbers are `diagonal`: independent of one another.
    """

    diagonal: bool

    def coefficients(self, f: Callable[[Values], Any], at: Values) -> Any:
        """Return precision times mean, and precision, from gradient and Hessian."""
        start = self.flat(at)

        def g(x: Any) -> Any:
            return f(self.named(x))

        slope = jax.grad(g)
        if self.diagonal:
            steep, curve = jax.jvp(slope, (start,), (jnp.ones_like(start),))
            return steep - curve * start, -curve
        hessian = jax.hessian(g)(start)
        precision = -0.5 * (hessian + hessian.T)
        return slope(start) + precision @ start, precision

    def places(self, at: Values) -> dict[str, Any]:
        """Return one more place for all numbers together, or one for each of them where they may be correlated."""
        start = self.flat(at)
        steps = np.maximum(1.0, np.abs(start))
        return self.named(start + np.concatenate([np.zeros((1, len(start))), self._steps(steps)]))

    def _steps(self, steps: Any) -> Any:
        return steps[None] if self.diagonal else np.diag(steps)

    def solve(self, places: Values, slopes: Values) -> Any:
        """Return precision times mean, and precision, from differences of gradients, which are linear."""
        at, g = self.flat(places, 1), self.flat(slopes, 1)
        if self.diagonal:
            precision = -(g[1] - g[0]) / (at[1] - at[0])
            return g[0] + precision * at[0], precision
        hessian = (g[1:] - g[0]) / np.diag(at[1:] - at[0])[:, None]
        precision = -0.5 * (hessian + hessian.T)
        return g[0] + precision @ at[0], precision

    def slope(self, x: Values, eta: Any) -> dict[str, Any]:
        """Return h - Px."""
        flat, (h, precision) = self.flat(x), eta
        return self.named(h - (precision * flat if self.diagonal else precision @ flat))

    def kernel(self, x: Values, eta: Any) -> Any:
        """Return h'x - x'Px / 2."""
        flat, (h, precision) = self.flat(x), eta
        return h @ flat - 0.5 * flat @ (precision * flat if self.diagonal else precision @ flat)

    def moments(self, eta: Any) -> tuple[Any, Any]:
        """Return the mean, and a root of the covariance (deviations where diagonal)."""
        from jax.scipy.linalg import cho_solve, solve_triangular

        h, precision = eta
        if self.diagonal:
            return h / precision, 1.0 / jnp.sqrt(precision)
        lower = jnp.linalg.cholesky(precision)
        return cho_solve((lower, True), h), solve_triangular(lower, jnp.eye(len(h)), lower=True).T

    def log_density(self, x: Values, eta: Any) -> Any:
        """Return the log density."""
        h, precision = eta
        if self.diagonal:
            half, square = 0.5 * jnp.sum(jnp.log(precision)), jnp.sum(h**2 / precision)
        else:
            from jax.scipy.linalg import solve_triangular

            lower = jnp.linalg.cholesky(precision)
            half = jnp.sum(jnp.log(jnp.diagonal(lower)))
            square = jnp.sum(solve_triangular(lower, h, lower=True) ** 2)
        return self.kernel(x, eta) - 0.5 * square + half - 0.5 * LOG_2PI * len(h)

    def draw(self, key: Any, eta: Any) -> dict[str, Any]:
        """Draw the block."""
        mean, root = self.moments(eta)
        noise = jax.random.normal(key, mean.shape)
        return self.named(mean + (root * noise if self.diagonal else root @ noise))

    def mean(self, eta: Any) -> dict[str, Any]:
        """Return the mean."""
        return self.named(self.moments(eta)[0])

    def points(self, eta: Any) -> dict[str, Any]:
        """Return the mean plus and minus deviations; plus and minus scaled columns of the root where not diagonal."""
        mean, root = self.moments(eta)
        steps = root[None] if self.diagonal else root.T * jnp.sqrt(len(mean))
        return self.named(jnp.concatenate([mean + steps, mean - steps]))

    def entropy(self, eta: Any) -> Any:
        """Return the entropy."""
        h, precision = eta
        half = 0.5 * jnp.sum(jnp.log(precision)) if self.diagonal else 0.5 * jnp.linalg.slogdet(precision)[1]
        return 0.5 * len(h) * (LOG_2PI + 1.0) - half

    def flat(self, x: Values, lead: int = 0) -> Any:
        """Return the quantities as one vector, behind `lead` axes."""
        parts = [x[n].reshape((*np.shape(x[n])[:lead], -1)) for n in self.shapes]
        return _xp(parts[0]).concatenate(parts, axis=-1)

    def named(self, flat: Any) -> dict[str, Any]:
        """Return the quantities by name, behind the leading axes of `flat`."""
        found, at = {}, 0
        for name, shape in self.shapes.items():
            found[name] = flat[..., at : at + prod(shape)].reshape((*flat.shape[:-1], *shape))
            at += prod(shape)
        return found


# -- families of one number -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoStatisticFamily:
    """An exponential family of one number with two statistics.

    Attributes
    ----------
    statistics, slopes
        `x -> (T1, T2)`, and their derivatives.
    other
        `x -> x'`: a second place to look at, apart from x.
    parameters
        `(c1, c2) -> (a, b)`: usual parameters from natural ones.
    normaliser
        `(a, b) -> number`: log of the integral of exp(c'T).
    expected
        `(a, b) -> (E T1, E T2)`.
    mean, draw
        `(a, b) -> number`, `(key, a, b) -> number`.
    points
        `(E T1, E T2) -> (x, x')`: two places whose average statistics are those.
    """

    name: str
    statistics: Callable[[Any], tuple[Any, Any]]
    slopes: Callable[[Any], tuple[Any, Any]]
    other: Callable[[Any], Any]
    parameters: Callable[[Any, Any], tuple[Any, Any]]
    normaliser: Callable[[Any, Any], Any]
    expected: Callable[[Any, Any], tuple[Any, Any]]
    mean: Callable[[Any, Any], Any]
    draw: Callable[[Any, Any, Any], Any]
    points: Callable[[Any, Any], tuple[Any, Any]]


def _gamma() -> TwoStatisticFamily:
    def draw(key: Any, a: Any, b: Any) -> Any:
        return jnp.maximum(jax.random.gamma(key, a) / b, TINY)

    def points(log_mean: Any, mean: Any) -> tuple[Any, Any]:
        gap = jnp.sqrt(-jnp.expm1(jnp.minimum(2.0 * (log_mean - jnp.log(mean)), 0.0)))
        return mean * (1.0 + gap), mean * (1.0 - gap)

    def expected(a: Any, b: Any) -> tuple[Any, Any]:
        from jax.scipy.special import digamma

        return digamma(a) - jnp.log(b), a / b

    return TwoStatisticFamily(
        "gamma",
        lambda x: (_log(x), x),
        lambda x: (1.0 / x, 1.0 + 0.0 * x),
        lambda x: 2.0 * x,
        lambda c1, c2: (c1 + 1.0, -c2),
        lambda a, b: _gammaln(a) - a * _log(b),
        expected,
        lambda a, b: a / b,
        draw,
        points,
    )


def _inverse_gamma() -> TwoStatisticFamily:
    gamma = _gamma()

    def expected(a: Any, b: Any) -> tuple[Any, Any]:
        log_mean, mean = gamma.expected(a, b)
        return -log_mean, mean

    def points(log_mean: Any, mean: Any) -> tuple[Any, Any]:
        first, second = gamma.points(-log_mean, mean)
        return 1.0 / first, 1.0 / second

    return TwoStatisticFamily(
        "inverse-gamma",
        lambda x: (_log(x), 1.0 / x),
        lambda x: (1.0 / x, -1.0 / x**2),
        lambda x: 2.0 * x,
        lambda c1, c2: (-c1 - 1.0, -c2),
        lambda a, b: _gammaln(a) - a * _log(b),
        expected,
        lambda a, b: b / _at_least(a - 1.0, 0.5),  # beside the mode where there is no mean
        lambda key, a, b: 1.0 / gamma.draw(key, a, b),
        points,
    )


def _beta() -> TwoStatisticFamily:
    def draw(key: Any, a: Any, b: Any) -> Any:
        return jnp.clip(jax.random.beta(key, a, b), TINY, 1.0 - 1e-16)

    def points(first: Any, second: Any) -> tuple[Any, Any]:
        p, q = jnp.exp(2.0 * first), jnp.exp(2.0 * second)  # x x' and (1 - x)(1 - x')
        half = 0.5 * (1.0 + p - q)
        gap = jnp.sqrt(jnp.maximum(half**2 - p, 0.0))
        high = half + gap
        return high, p / high

    def expected(a: Any, b: Any) -> tuple[Any, Any]:
        from jax.scipy.special import digamma

        return digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)

    def other(x: Any) -> Any:
        return _xp(x).where(x < 0.5, 0.75, 0.25)

    def statistics(x: Any) -> tuple[Any, Any]:
        return _xp(x).log(x), _xp(x).log1p(-x)

    return TwoStatisticFamily(
        "beta",
        statistics,
        lambda x: (1.0 / x, -1.0 / (1.0 - x)),
        other,
        lambda c1, c2: (c1 + 1.0, c2 + 1.0),
        lambda a, b: _gammaln(a) + _gammaln(b) - _gammaln(a + b),
        expected,
        lambda a, b: a / (a + b),
        draw,
        points,
    )


def _xp(x: Any) -> Any:
    """Return NumPy for its arrays, which need no compiling, and JAX's NumPy for others."""
    if isinstance(x, np.ndarray | np.generic | float):
        return np
    return jnp


def _log(x: Any) -> Any:
    return _xp(x).log(x)


def _gammaln(x: Any) -> Any:
    from jax.scipy.special import gammaln

    return gammaln(x)


def _at_least(x: Any, low: float) -> Any:
    return jnp.maximum(x, low)


FAMILIES = {f.name: f for f in (_gamma(), _inverse_gamma(), _beta())}


@dataclass(frozen=True, eq=False)
class ScalarBlock(ConjugateBlock):
    """Independent numbers of one family with two statistics; natural parameters are arrays of the node's shape."""

    family: TwoStatisticFamily

    def places(self, at: Values) -> dict[str, Any]:
        """Return a second place."""
        x = at[self.name]
        return {self.name: _xp(x).stack([x, self.family.other(x)])}

    def solve(self, places: Values, slopes: Values) -> Any:
        """Return the natural parameters, from two linear equations."""
        x, y = places[self.name][0], places[self.name][1]
        g, h = slopes[self.name][0], slopes[self.name][1]
        (p, q), (r, s) = self.family.slopes(x), self.family.slopes(y)
        determinant = p * s - q * r
        return (g * s - h * q) / determinant, (h * p - g * r) / determinant

    def slope(self, x: Values, eta: Any) -> dict[str, Any]:
        """Return the gradient of `kernel`."""
        first, second = self.family.slopes(x[self.name])
        return {self.name: eta[0] * first + eta[1] * second}

    def kernel(self, x: Values, eta: Any) -> Any:
        """Return statistics times natural parameters."""
        first, second = self.family.statistics(x[self.name])
        return (eta[0] * first + eta[1] * second).sum()

    def log_density(self, x: Values, eta: Any) -> Any:
        """Return the log density."""
        return self.kernel(x, eta) - jnp.sum(self.family.normaliser(*self.family.parameters(*eta)))

    def draw(self, key: Any, eta: Any) -> dict[str, Any]:
        """Draw the block."""
        return {self.name: self.family.draw(key, *self.family.parameters(*eta))}

    def mean(self, eta: Any) -> dict[str, Any]:
        """Return the mean."""
        return {self.name: self.family.mean(*self.family.parameters(*eta))}

    def points(self, eta: Any) -> dict[str, Any]:
        """Return two places with the expected statistics."""
        expected = self.family.expected(*self.family.parameters(*eta))
        return {self.name: jnp.stack(self.family.points(*expected))}

    def entropy(self, eta: Any) -> Any:
        """Return the entropy."""
        usual = self.family.parameters(*eta)
        first, second = self.family.expected(*usual)
        return jnp.sum(self.family.normaliser(*usual) - eta[0] * first - eta[1] * second)


@dataclass(frozen=True, eq=False)
class DirichletBlock(ConjugateBlock):
    """Independent points on a simplex; the natural parameters are the concentrations less one."""

    def places(self, at: Values) -> dict[str, Any]:
        """Return a second place on the simplex."""
        x = at[self.name]
        xp = _xp(x)
        tilted = x * xp.exp(_signs(xp, x.shape[-1]))
        return {self.name: xp.stack([x, tilted / tilted.sum(-1, keepdims=True)])}

    def solve(self, places: Values, slopes: Values) -> Any:
        """Return the natural parameters, from gradients along the simplex at two places.

        In coordinates u with x = softmax(u), the gradient of c' log x is c - x sum(c): two places give sum(c), then c.
        """
        x, g = places[self.name], slopes[self.name]
        g = x * (g - (x * g).sum(-1, keepdims=True))
        apart = x[0] - x[1]
        total = -((g[0] - g[1]) * apart).sum(-1, keepdims=True) / (apart**2).sum(-1, keepdims=True)
        return g[0] + x[0] * total

    def slope(self, x: Values, eta: Any) -> dict[str, Any]:
        """Return the gradient of `kernel`."""
        return {self.name: eta / x[self.name]}

    def kernel(self, x: Values, eta: Any) -> Any:
        """Return statistics times natural parameters."""
        return (eta * _log(x[self.name])).sum()

    def log_density(self, x: Values, eta: Any) -> Any:
        """Return the log density."""
        return self.kernel(x, eta) - self._normaliser(eta + 1.0)

    def _normaliser(self, a: Any) -> Any:
        return jnp.sum(_gammaln(a)) - jnp.sum(_gammaln(jnp.sum(a, -1)))

    def draw(self, key: Any, eta: Any) -> dict[str, Any]:
        """Draw the block."""
        x = jnp.maximum(jax.random.dirichlet(key, eta + 1.0), TINY)
        return {self.name: x / jnp.sum(x, -1, keepdims=True)}

    def mean(self, eta: Any) -> dict[str, Any]:
        """Return the mean."""
        return {self.name: (eta + 1.0) / jnp.sum(eta + 1.0, -1, keepdims=True)}

    def _expected(self, eta: Any) -> Any:
        from jax.scipy.special import digamma

        return digamma(eta + 1.0) - digamma(jnp.sum(eta + 1.0, -1, keepdims=True))

    def points(self, eta: Any) -> dict[str, Any]:
        """Return two points on the simplex with the expected logs: softmax of these plus and minus d times signs.

        Both are on it where (P e^d + M e^-d)(P e^-d + M e^d) = 1, with P and M the sums of exp(E log x) of either sign.
        """
        logs = self._expected(eta)
        signs = _signs(jnp, logs.shape[-1])
        p = jnp.sum(jnp.where(signs > 0, jnp.exp(logs), 0.0), -1, keepdims=True)
        m = jnp.sum(jnp.where(signs < 0, jnp.exp(logs), 0.0), -1, keepdims=True)
        d = 0.5 * jnp.arccosh(jnp.maximum((1.0 - p**2 - m**2) / (2.0 * p * m), 1.0))
        high, low = logs + d * signs, logs - d * signs
        # the norms of the two are e^t and e^-t; together they keep the average of the logs
        return {self.name: jnp.stack([jnp.exp(x - _norm(x)) for x in (high, low)])}

    def entropy(self, eta: Any) -> Any:
        """Return the entropy."""
        return self._normaliser(eta + 1.0) - jnp.sum(eta * self._expected(eta))

    def tangent(self, slope: Values, at: Values) -> Any:
        """Return x (g - x'g): the gradient along the simplex, in softmax coordinates."""
        x, g = at[self.name], slope[self.name]
        return np.ravel(x * (g - (x * g).sum(-1, keepdims=True)))


def _signs(xp: Any, count: int) -> Any:
    return xp.where(xp.arange(count) % 2 == 0, 1.0, -1.0)


def _norm(logs: Any) -> Any:
    return jax.nn.logsumexp(logs, axis=-1, keepdims=True)
