"""What targets are distributed as, given the value of the function: likelihoods of Gaussian processes that are not normal.

Noise of a process is a summand of its covariance (`White`); so is a likelihood. It adds nothing to the covariance of the
function, but has hyper-parameters as every part has, so one ascent fits both. Each says its log density with derivatives by
the function's value f and by its own numbers (Laplace), their means under a normal f (variational bounds), and the mean
density (expectation propagation, predictions): in closed form where one pays, otherwise by Gauss-Legendre rules on panels
that are short both where f is likely and where the log density bends: f may be known far better or far worse than the
distance over which it does, with variances from 1e-8 to 1e4, and eight digits are right.
"""

# ruff: noqa: D102, N803, N806 (said once, in the base; letters of the literature)

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument, Unanswered, did_you_mean
from markovia.factors.covariances.algebra import Sum, spread
from markovia.factors.covariances.covariance import Covariance
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import jax, jnp, laws

RULE = np.polynomial.legendre.leggauss(8)
"""Places and weights of the quadrature of a panel."""
REACH = 9.0
"""How far it goes, in standard deviations."""
BELL = np.array([-REACH, -6.0, -4.5, -3.0, -1.5, 0.0, 1.5, 3.0, 4.5, 6.0, REACH])
"""Edges of panels around a normal density, in standard deviations."""
BEND = np.concatenate([-(ends := 2.5 ** np.arange(11.0)), [0.0], ends])
"""Edges of panels around a place where a log density bends, in the distance over which it does."""
HALVINGS = 20
"""Of a standard deviation, until the top of a product of densities is found well enough."""
HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)
BLOCK = 2**16
"""Numbers that are averaged over at once."""
DRAWS, FEW = 256, 64
"""Points by which the softmax of several normal numbers is averaged, with their opposites; and in each step of a fit."""


class Likelihood(Covariance):
    """What targets are distributed as given the function; a summand of the covariance that adds nothing to it.

    Examples
    --------
    >>> import markovia as mk
    >>> (mk.covariances.RBF(1.0) + StudentTNoise(scale=0.5, df=4.0)).value([[0.0], [0.0]]).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    word: ClassVar[str] = ""
    """The word of `likelihood=`."""
    whole: ClassVar[bool] = True
    """Whether targets are whole numbers, so that f has a unit of its own."""
    concave: ClassVar[bool] = True
    """Whether the log density is concave in f."""
    ways: ClassVar[tuple[str, ...]] = ("laplace", "ep", "variational")
    """The methods that know it, the first by default."""

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        return xp.zeros((len(X), len(X if Z is None else Z)))

    def diag(self, X: Any, xp: Any) -> Any:
        return xp.zeros(len(X))

    # -- what a likelihood has to say; arrays of targets and values broadcast ---------------------------------------

    def below(self) -> float | None:
        """Return what targets that are whole numbers, 0 or more, are below; None where they are any numbers."""
        return None

    def checked(self, y: Array) -> Array:
        """Return targets, or say which are none."""
        end = self.below()
        wrong = ~np.isfinite(y) if end is None else ~((y >= 0) & (y == np.floor(y)) & (y < end))
        if wrong.any():
            row, most = int(np.argmax(wrong)), "" if end in (None, np.inf) else f" and below {end:g}"
            what = "finite numbers" if end is None else f"whole numbers, 0 or more{most}"
            raise InvalidArgument(
                f"targets of likelihood={self.word!r} are {what}; row {row} holds {y[row]:g}"
            )
        return y

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array, Array]:
        """Return the log density and its first, second and third derivative by f."""
        raise NotImplementedError

    def curvature(self, y: Array, f: Array) -> Array:
        """Return weights that are not negative, with which a Newton step is an ascent."""
        return -self.derivatives(y, f)[2]

    def bends(self, y: Array) -> tuple[Array, Any]:
        """Return where the log density bends as a function of f, rows by places, and the distance over which it does."""
        raise NotImplementedError

    def by_hypers(self, y: Array, f: Array) -> dict[str, Any]:
        """Return derivatives of the log density and of its first two derivatives by its own numbers; arrays' axes last."""
        return {}

    def target(self, m: Array, v: Array) -> tuple[Array, Array]:
        """Return mean and variance of a target where f is normal with mean m and variance v."""
        raise NotImplementedError

    def probabilities(self, m: Array, v: Array) -> Array:
        """Return the probability of each class, averaged over f: inputs by classes."""
        raise Unanswered(f"targets of likelihood={self.word!r} are no classes")

    def law(self, *f: Any) -> Any:
        """Return the distribution of targets given the functions, for a network."""
        raise NotImplementedError

    # -- averages over a normal f ------------------------------------------------------------------------------------

    def expected(self, y: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return the means of the log density and of its first and second derivative."""
        z, share = self._panels(y, m, v)
        log, first, second, _ = self.derivatives(y[:, None], _at(z, m, v))
        return _mean(share, log), _mean(share, first), _mean(share, second)

    def expected_by_hypers(self, y: Array, m: Array, v: Array) -> dict[str, Any]:
        """Return the sums over rows of the mean derivatives by its own numbers."""
        if not self.own:
            return {}
        z, share = self._panels(y, m, v)
        return self._averaged(y, _at(z, m, v), share)

    def tilted(self, y: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return the log of the mean density, and its first and second derivative by m."""
        z, share, log_z, slope = self._shares(y, m, v)
        # means of the slope, as integrals by parts have it: no differences of what is almost equal where v is small
        first = _mean(share, slope)
        slope -= first[:, None]
        return log_z, first, _mean(share * slope, z - _mean(share, z)[:, None]) / np.sqrt(v)

    def tilted_by_hypers(self, y: Array, m: Array, v: Array) -> dict[str, Any]:
        """Return the sums over rows of the derivatives of the log of the mean density by its own numbers."""
        if not self.own:
            return {}
        z, share, _, _ = self._shares(y, m, v)
        return self._averaged(y, _at(z, m, v), share)

    def _averaged(self, y: Array, f: Array, share: Array) -> dict[str, Any]:
        found = self.by_hypers(y[:, None], f)
        return {name: np.einsum("iq...,iq->...", d[0], share) for name, d in found.items()}

    def _panels(self, y: Array, m: Array, v: Array, top: Array | None = None) -> tuple[Array, Array]:
        """Return places in standard deviations of f, and weights with its density, rows by places."""
        sd = np.sqrt(np.maximum(v, 1e-300))
        places, distance = self.bends(y)
        bends = ((places - m[:, None])[:, :, None] + np.asarray(distance)[..., None, None] * BEND) / sd[
            :, None, None
        ]
        edges = [bends.reshape(len(y), -1)]
        if top is None:
            edges.append(np.broadcast_to(BELL, (len(y), len(BELL))))
        else:
            narrow = 1.0 / np.sqrt(1.0 + v * self.curvature(y, m + sd * top))
            edges += [top[:, None] + BELL, top[:, None] + narrow[:, None] * BELL]
        middle = 0.0 if top is None else top[:, None]
        low, high = np.minimum(middle, 0.0) - REACH, np.maximum(middle, 0.0) + REACH
        ends = np.sort(np.clip(np.concatenate(edges, axis=1), low, high), axis=1)
        half = 0.5 * np.diff(ends, axis=1)
        wide = (half > 0.0).any(axis=0)
        half = half[:, wide, None]
        z = (ends[:, :-1][:, wide, None] + half * (1.0 + RULE[0])).reshape(len(y), -1)
        weights = (half * RULE[1]).reshape(z.shape)
        return z, weights * np.exp(-0.5 * z * z - HALF_LOG_2PI) if top is None else weights

    def _shares(self, y: Array, m: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        """Return places in standard deviations, the share of each in the mean density, the log of that, and slopes."""
        # the top of the product: between the mean and where the slope there leads to, or the top of heavy tails
        sd = np.sqrt(v)
        near = np.zeros(len(y))
        far = sd * self.derivatives(y, m)[1] if self.concave else (self.bends(y)[0][:, 0] - m) / sd
        for _ in range(HALVINGS + int(np.log2(1.0 + np.abs(far).max(initial=0.0)))):
            middle = 0.5 * (near + far)
            beyond = (sd * self.derivatives(y, m + sd * middle)[1] - middle) * far < 0.0
            near, far = np.where(beyond, near, middle), np.where(beyond, middle, far)
        z, weights = self._panels(y, m, v, near)
        logs, slope, _, _ = self.derivatives(y[:, None], _at(z, m, v))
        logs = logs - 0.5 * z * z - HALF_LOG_2PI
        top = logs.max(axis=1, keepdims=True)
        share = weights * np.exp(logs - top)
        total = share.sum(axis=1, keepdims=True)
        return z, share / total, (np.log(total) + top)[:, 0], slope


class NormalNoise(Likelihood):
    """Normal noise with a variance; an array holds the known variance of each row.

    Examples
    --------
    >>> NormalNoise(0.5).derivatives(np.ones(1), np.zeros(1))[1].tolist()
    [2.0]
    """

    supports: ClassVar = {"variance": "positive"}
    word: ClassVar[str] = "normal"
    whole: ClassVar[bool] = False

    def __init__(self, variance: Any = None) -> None:
        super().__init__({"variance": variance})
        if self.is_free("variance") and variance is not None and np.ndim(variance.value):
            raise InvalidArgument("variances of each row are known numbers; NoiseProcess() finds them out")

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        return {"variance": 0.1 * spread(y)}

    def _variance(self, y: Array) -> Any:
        variance = self.number("variance")
        if np.ndim(variance) and len(variance) != len(y):
            raise InvalidArgument(
                f"NormalNoise has the variances of {len(variance)} rows, and was asked for {len(y)}"
            )
        return variance[(slice(None), *[None] * (np.ndim(y) - 1))] if np.ndim(variance) else variance

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array, Array]:
        s, r = self._variance(y), y - f
        return -HALF_LOG_2PI - 0.5 * np.log(s) - 0.5 * r * r / s, r / s, -1.0 / s + 0.0 * r, 0.0 * r

    def by_hypers(self, y: Array, f: Array) -> dict[str, Any]:
        s, r = self._variance(y), y - f
        return {"variance": (-0.5 / s + 0.5 * r * r / s**2, -r / s**2, 1.0 / s**2 + 0.0 * r)}

    def expected(self, y: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
        log, first, second, _ = self.derivatives(y, m)
        return log + 0.5 * v * second, first, second

    def expected_by_hypers(self, y: Array, m: Array, v: Array) -> dict[str, Any]:
        s = self._variance(y)
        return {"variance": np.sum(0.5 * ((y - m) ** 2 + v) / s**2 - 0.5 / s)}

    def bends(self, y: Array) -> tuple[Array, Any]:
        return y[:, None], np.sqrt(self._variance(y))

    def target(self, m: Array, v: Array) -> tuple[Array, Array]:
        return m, v + self._variance(m)

    def law(self, *f: Any) -> Any:
        return laws.Normal(f[0], self.number("variance") ** 0.5)


class StudentTNoise(Likelihood):
    """Noise with a scale and degrees of freedom: outliers are let be. Both are fitted unless they are said.

    Examples
    --------
    >>> StudentTNoise(scale=1.0, df=3.0).derivatives(np.array([0.0, 9.0]), np.zeros(2))[1].round(3).tolist()
    [0.0, 0.429]
    """

    supports: ClassVar = {"scale": "positive", "df": "positive"}
    word: ClassVar[str] = "student-t"
    whole: ClassVar[bool] = False
    concave: ClassVar[bool] = False

    def __init__(self, scale: Any = None, df: Any = None) -> None:
        super().__init__({"scale": scale, "df": df})

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        middle = 1.4826 * float(np.median(np.abs(y - np.median(y))))  # outliers do not move it
        return {"scale": 0.3 * (middle or np.sqrt(spread(y))), "df": 4.0}

    def _numbers(self) -> tuple[Any, Any, Any]:
        scale, df = self.number("scale"), self.number("df")
        return scale, df, df * scale**2

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array, Array]:
        from scipy.special import gammaln

        _, df, c = self._numbers()
        r = y - f
        A = r * r + c
        head = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) - 0.5 * np.log(np.pi * c)
        log = head - 0.5 * (df + 1.0) * np.log1p(r * r / c)
        return (
            log,
            (df + 1.0) * r / A,
            (df + 1.0) * (r * r - c) / A**2,
            (df + 1.0) * 2.0 * r * (r * r - 3.0 * c) / A**3,
        )

    def curvature(self, y: Array, f: Array) -> Array:
        _, df, c = self._numbers()
        return np.asarray(
            (df + 1.0) / ((y - f) ** 2 + c)
        )  # that of EM, where noise is normal with a variance a row

    def bends(self, y: Array) -> tuple[Array, Any]:
        return y[:, None], np.sqrt(self._numbers()[2])

    def by_hypers(self, y: Array, f: Array) -> dict[str, Any]:
        from scipy.special import psi

        scale, df, c = self._numbers()
        r2, r = (y - f) ** 2, y - f
        A = r2 + c
        by_c = (
            -0.5 / c + 0.5 * (df + 1.0) * r2 / (c * A),
            -(df + 1.0) * r / A**2,
            (df + 1.0) * (c - 3.0 * r2) / A**3,
        )
        head = 0.5 * (psi(0.5 * (df + 1.0)) - psi(0.5 * df))
        by_df = (head - 0.5 * np.log1p(r2 / c), r / A, (r2 - c) / A**2)  # at the same c = df scale^2
        return {
            "scale": tuple(2.0 * df * scale * d for d in by_c),
            "df": tuple(a + scale**2 * b for a, b in zip(by_df, by_c, strict=True)),
        }

    def target(self, m: Array, v: Array) -> tuple[Array, Array]:
        _, df, c = self._numbers()
        return m, v + (c / (df - 2.0) if df > 2.0 else np.inf)

    def law(self, *f: Any) -> Any:
        return laws.StudentT(self.number("df"), f[0], self.number("scale"))


class BernoulliLogit(Likelihood):
    """Targets 0 and 1, where the log odds of a one are f.

    Examples
    --------
    >>> BernoulliLogit().probabilities(np.zeros(1), np.ones(1)).round(6).tolist()
    [[0.5, 0.5]]
    """

    word: ClassVar[str] = "bernoulli"
    ways: ClassVar[tuple[str, ...]] = ("ep", "laplace", "variational")

    def below(self) -> float | None:
        return 2

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array, Array]:
        sign = np.where(y > 0.5, 1.0, -1.0)
        toward = sign * f
        small = np.exp(-np.abs(f))
        large = 1.0 / (1.0 + small)
        q = small * large * large
        other = np.where(toward > 0.0, small, 1.0) * large  # the probability of the other class
        return np.minimum(toward, 0.0) + np.log(large), sign * other, -q, sign * q * (1.0 - 2.0 * other)

    def bends(self, y: Array) -> tuple[Array, Any]:
        return np.zeros((len(y), 1)), 2.0

    def cuts(self) -> Array:
        """Return where f goes over from one class to the next."""
        return np.zeros(1)

    def probabilities(self, m: Array, v: Array) -> Array:
        logs = [self.tilted(np.full(len(m), float(c)), m, v)[0] for c in range(len(self.cuts()) + 1)]
        return np.exp(np.stack(logs, axis=1))

    def target(self, m: Array, v: Array) -> tuple[Array, Array]:
        p = self.probabilities(m, v)
        at = np.arange(p.shape[1])
        return p @ at, p @ at**2 - (p @ at) ** 2

    def law(self, *f: Any) -> Any:
        return laws.Bernoulli(logits=f[0])


class OrdinalProbit(BernoulliLogit):
    """Targets 0, 1, 2, ... in order: the number of cut points below f plus normal noise with variance one.

    Parameters
    ----------
    first
        The first cut point.
    gaps
        The distances from each cut point to the next; an array, one less than there are cut points.
    """

    supports: ClassVar = {"first": "real", "gaps": "positive"}
    word: ClassVar[str] = "ordinal"

    def __init__(self, first: Any = None, gaps: Any = None) -> None:
        super().__init__({"first": first, "gaps": gaps})

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        from scipy.special import ndtri

        counts = np.bincount(y.astype(int), minlength=2) + 0.5
        cuts = np.sqrt(2.0) * ndtri(np.cumsum(counts)[:-1] / counts.sum())
        return {"first": cuts[0], "gaps": np.maximum(np.diff(cuts), 0.05)}

    def cuts(self) -> Array:
        return np.cumsum(np.concatenate([[self.number("first")], np.atleast_1d(self.number("gaps"))]))

    def below(self) -> float | None:
        return np.inf if self.own.get("gaps", 0) is None else len(self.cuts()) + 1

    def bends(self, y: Array) -> tuple[Array, Any]:
        cuts, at = self.cuts(), y.astype(int)
        return np.stack([cuts[np.maximum(at - 1, 0)], cuts[np.minimum(at, len(cuts) - 1)]], axis=1), 1.0

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array, Array]:
        log, high, low, u, w = self._edges(y, f)
        first = low - high
        second = w * low - u * high - first**2
        third = (w * w - 1.0) * low - (u * u - 1.0) * high
        return log, first, second, third - 3.0 * first * second - first**3

    def _edges(self, y: Array, f: Array, noise: Any = 1.0) -> tuple[Array, ...]:
        """Return the log probability, the normal densities at its two edges relative to it, and the edges."""
        from scipy.special import log_ndtr

        edges = np.concatenate([[-np.inf], self.cuts(), [np.inf]])
        at = y.astype(int)
        w, u = (edges[at] - f) / noise, (edges[at + 1] - f) / noise
        far = w + u > 0.0  # the tail that both edges are nearer to
        a, b = np.where(far, -u, w), np.where(far, -w, u)
        top, bottom = log_ndtr(b), log_ndtr(a)
        log = top + np.log(-np.expm1(np.minimum(bottom - top, -1e-300)))
        high, low = np.exp(-0.5 * u * u - HALF_LOG_2PI - log), np.exp(-0.5 * w * w - HALF_LOG_2PI - log)
        return log, high, low, np.where(np.isfinite(u), u, 0.0), np.where(np.isfinite(w), w, 0.0)

    def by_hypers(self, y: Array, f: Array, noise: Any = 1.0) -> dict[str, Any]:
        _, high, low, u, w = self._edges(y, f, noise)
        first = low - high
        second = w * low - u * high - first**2
        # each edge moves the log probability by its relative density, whose own log is quadratic in f
        by_high = np.stack([high, high * (u - first), high * ((u - first) ** 2 - 1.0 - second)]) / noise
        by_low = -np.stack([low, low * (w - first), low * ((w - first) ** 2 - 1.0 - second)]) / noise
        k = np.arange(1, len(self.cuts()))
        above, below = (y[..., None] >= k), (y[..., None] >= k + 1)
        return {"first": by_high + by_low, "gaps": by_high[..., None] * above + by_low[..., None] * below}

    def tilted(self, y: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
        noise = np.sqrt(1.0 + v)
        log, high, low, u, w = self._edges(y, m, noise)
        first = low - high
        return log, first / noise, (w * low - u * high - first**2) / noise**2

    def tilted_by_hypers(self, y: Array, m: Array, v: Array) -> dict[str, Any]:
        return {name: d[0].sum(axis=0) for name, d in self.by_hypers(y, m, np.sqrt(1.0 + v)).items()}

    def law(self, *f: Any) -> Any:
        below = jax.scipy.special.ndtr(jnp.asarray(self.cuts()) - f[0][..., None])
        ends = jnp.zeros((*f[0].shape, 1))
        probs = jnp.diff(jnp.concatenate([ends, below, 1.0 + ends], axis=-1), axis=-1)
        return laws.Categorical(probs=probs)


class BernoulliProbit(OrdinalProbit):
    """Targets 0 and 1: whether f plus normal noise with variance one is positive."""

    word: ClassVar[str] = "probit"

    supports: ClassVar = {}

    def __init__(self) -> None:
        Likelihood.__init__(self)

    def cuts(self) -> Array:
        return np.zeros(1)

    def by_hypers(self, y: Array, f: Array, noise: Any = 1.0) -> dict[str, Any]:
        return {}

    def law(self, *f: Any) -> Any:
        return laws.Bernoulli(probs=jax.scipy.special.ndtr(f[0]))


class PoissonCounts(Likelihood):
    """Counts whose log rate is a level plus f; the level is fitted, from the log of the mean count on, unless it is said.

    Examples
    --------
    >>> PoissonCounts(level=0.0).target(np.zeros(1), np.full(1, 2.0))[0].round(6).tolist()  # exp(m + v / 2)
    [2.718282]
    """

    supports: ClassVar = {"level": "real"}
    word: ClassVar[str] = "poisson"

    def __init__(self, level: Any = None) -> None:
        super().__init__({"level": level})

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        return {"level": float(np.log(max(y.mean(), 0.5 / len(y))))}

    def below(self) -> float | None:
        return np.inf

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array, Array]:
        from scipy.special import gammaln

        log_rate = self.number("level") + f
        rate = np.exp(np.minimum(log_rate, 700.0))
        return y * log_rate - rate - gammaln(y + 1.0), y - rate, -rate, -rate

    def bends(self, y: Array) -> tuple[Array, Any]:
        size = np.maximum(y, 0.5)[:, None]
        return np.log(size) - self.number("level"), 1.0 / np.sqrt(size[:, 0])

    def by_hypers(self, y: Array, f: Array) -> dict[str, Any]:
        return {"level": self.derivatives(y, f)[1:]}

    def expected(self, y: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
        from scipy.special import gammaln

        rate = self._rate(m, v)
        return y * (self.number("level") + m) - rate - gammaln(y + 1.0), y - rate, -rate

    def expected_by_hypers(self, y: Array, m: Array, v: Array) -> dict[str, Any]:
        return {"level": np.sum(y - self._rate(m, v))}

    def _rate(self, m: Array, v: Array) -> Array:
        return np.asarray(np.exp(np.minimum(self.number("level") + m + 0.5 * v, 700.0)))

    def target(self, m: Array, v: Array) -> tuple[Array, Array]:
        rate = self._rate(m, v)
        return rate, rate + rate**2 * np.expm1(v)

    def law(self, *f: Any) -> Any:
        return laws.Poisson(jnp.exp(self.number("level") + f[0]))


class NoiseProcess(Likelihood):
    """Normal noise whose log variance is a level plus a process of its own: noise that differs from place to place.

    Parameters
    ----------
    covariance
        That of the log variance; by default a scaled RBF, which is fitted.
    level
        The log variance around which the process varies.
    """

    supports: ClassVar = {"level": "real"}
    word: ClassVar[str] = "heteroscedastic"
    whole: ClassVar[bool] = False
    ways: ClassVar[tuple[str, ...]] = ("variational",)

    def __init__(self, covariance: Covariance | None = None, level: Any = None) -> None:
        from markovia.factors.covariances.algebra import Scaled
        from markovia.factors.covariances.radial import RBF
        from markovia.factors.functions.parameter import Parameter

        # the log variance has no unit, so its process starts at one whatever the targets are
        own = Scaled(Parameter(1.0, support="positive"), RBF()) if covariance is None else covariance
        super().__init__({"level": level}, parts=[own])

    def starts(self, X: Array, y: Array) -> dict[str, Any]:
        return {"level": float(np.log(0.1 * spread(y)))}

    def expected(self, y: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
        """As every likelihood; m, v and derivatives have a row for f and one for the log variance."""
        precision = np.exp(np.minimum(-self.number("level") - m[1] + 0.5 * v[1], 700.0))
        r = y - m[0]
        half = 0.5 * precision * (r * r + v[0])
        log = -HALF_LOG_2PI - 0.5 * (self.number("level") + m[1]) - half
        return log, np.stack([precision * r, half - 0.5]), np.stack([-precision, -half])

    def expected_by_hypers(self, y: Array, m: Array, v: Array) -> dict[str, Any]:
        return {"level": self.expected(y, m, v)[1][1].sum()}

    def target(self, m: Array, v: Array) -> tuple[Array, Array]:
        return m[0], v[0] + np.exp(self.number("level") + m[1] + 0.5 * v[1])

    def law(self, *f: Any) -> Any:
        return laws.Normal(f[0], jnp.exp(0.5 * (self.number("level") + f[1])))


class SoftmaxClasses(Likelihood):
    """Classes 0, 1, ..., each with a function of its own; their probabilities are the softmax of the functions.

    Examples
    --------
    >>> SoftmaxClasses(3).probabilities(np.zeros((3, 1)), np.eye(3)[None]).round(2).tolist()
    [[0.33, 0.33, 0.33]]
    """

    word: ClassVar[str] = "categorical"
    ways: ClassVar[tuple[str, ...]] = ("variational", "laplace")

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.classes = classes

    def below(self) -> float | None:
        return self.classes

    def probabilities(self, m: Array, V: Array) -> Array:
        """Return the probability of each class, averaged: from means (classes by inputs) and covariances (inputs first)."""
        from scipy.special import softmax

        from markovia.inference.gaussian.function_values import root

        points = np.concatenate([self._points, -self._points])
        return np.stack(
            [softmax(at + points @ L.T, axis=1).mean(axis=0) for at, L in zip(m.T, root(V), strict=True)]
        )

    def expected(self, y: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
        """As every likelihood; m, v and derivatives have a row for each class, whose functions are independent.

        The second derivatives are twice those by the variances of the average over the same points: what a bound climbs.
        """
        hot, sd = (np.arange(self.classes) == y[:, None]).astype(np.float64), np.sqrt(v.T)
        log, first, second = np.zeros(len(y)), np.zeros(sd.shape), np.zeros(sd.shape)
        both = np.concatenate([self._points[:FEW], -self._points[:FEW]])
        for z in np.array_split(both, max(1, min(len(both), both.size * len(y) // BLOCK))):
            f = m.T + sd * z[:, None]
            top = f.max(axis=2)
            slope = np.exp(f - top[:, :, None])
            total = slope.sum(axis=2)
            slope /= -total[:, :, None]
            slope += hot
            log += ((hot * f).sum(axis=2) - top - np.log(total)).sum(axis=0)
            first += slope.sum(axis=0)
            second += np.einsum("snc,sc->nc", slope, z)
        n = len(both)
        return log / n, first.T / n, np.minimum(second / sd, 0.0).T / n

    @cached_property
    def _points(self) -> Array:
        """Even draws of as many standard normal numbers as classes; their opposites are to be taken, too."""
        from scipy.special import ndtri
        from scipy.stats.qmc import Sobol

        return np.asarray(ndtri(np.clip(Sobol(self.classes, seed=0).random(DRAWS), 1e-12, 1.0 - 1e-12)))

    def law(self, *f: Any) -> Any:
        return laws.Categorical(logits=jnp.stack(f, axis=-1))

    def __repr__(self) -> str:
        return f"SoftmaxClasses({self.classes})"


LIKELIHOODS: Mapping[str, type[Likelihood]] = {
    kind.word: kind
    for kind in (NormalNoise, StudentTNoise, BernoulliLogit, BernoulliProbit, OrdinalProbit, PoissonCounts,
                 NoiseProcess, SoftmaxClasses)
}  # fmt: skip
"""The likelihoods by the word of `likelihood=`."""


def as_likelihood(said: Any) -> Likelihood:
    """Return the likelihood that a word stands for; one that is there already as it is.

    Examples
    --------
    >>> as_likelihood("poisson")
    PoissonCounts()
    """
    if isinstance(said, Likelihood):
        return said
    if not isinstance(said, str) or said not in LIKELIHOODS:
        near = did_you_mean(said, LIKELIHOODS) if isinstance(said, str) else ""
        raise InvalidArgument(
            f"likelihood= is {', '.join(LIKELIHOODS)} or an object of those, not {said!r}{near}"
        )
    return LIKELIHOODS[said]()


def with_likelihood(covariance: Covariance, said: Any, X: Array, y: Array) -> Covariance:
    """Return a covariance plus a likelihood, both started at the scale of the data.

    Log odds and log rates have no unit: their processes start as those of a function with variance one.
    """
    likelihood = as_likelihood(said)
    scale = np.resize([1.0, -1.0], len(y)) if likelihood.whole else y
    likelihood.checked(y)
    return Sum(covariance.started(X, scale), likelihood.started(X, y))


def split_likelihood(covariance: Covariance) -> tuple[Covariance, Likelihood]:
    """Return a covariance without the likelihood that is added to it, and that."""
    parts = covariance.parts if isinstance(covariance, Sum) else (covariance,)
    found = [part for part in parts if isinstance(part, Likelihood)]
    rest = [part for part in parts if not isinstance(part, Likelihood)]
    if len(found) != 1 or not rest:
        raise InvalidArgument(
            "this method takes a covariance plus one likelihood, such as RBF() + BernoulliLogit(); "
            f"there are {len(found)} in {covariance!r}"
        )
    return (rest[0] if len(rest) == 1 else Sum(*rest)), found[0]


def _mean(share: Array, values: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", share, values))


def _at(z: Array, m: Array, v: Array) -> Array:
    """Return f that is z standard deviations off its mean."""
    return m[:, None] + np.sqrt(np.maximum(v, 0.0))[:, None] * z
