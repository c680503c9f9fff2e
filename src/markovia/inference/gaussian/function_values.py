"""A function that is known up to a Gaussian process: what it is at inputs that are asked for, and draws of the whole of it.

A `FunctionPosterior` says the mean and the covariance of the function at any inputs; where hyper-parameters were sampled, or
summed out over states, it is a mixture of such, with a weight for each. `at(X)` answers as every posterior does.
"""

# ruff: noqa: N803 (letters of the literature)

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, Unanswered
from markovia.inference.number_distributions import shortest_interval
from markovia.inference.posterior_questions import (
    PosteriorQuestions,
    check_element,
    element_of,
    numbers_meant,
)
from markovia.inference.result import Info
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import pd
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = 60
"""Halvings of an interval in which a quantile of a mixture is looked for."""
MOST_JOINT = 3000
"""Inputs up to which values are drawn together by a Cholesky factor of their covariance."""


class FunctionMoments(NamedTuple):
    """Means and variances (or covariance matrices) of a function at inputs, one a component."""

    means: Array
    """Components by inputs."""
    variances: Array
    """Components by inputs, or by inputs by inputs."""


class FunctionPosterior:
    """What is known of a function: a Gaussian process given data, or a mixture of such.

    A subclass says its moments at inputs (`moments`); a mixture also the weights of its components.

    Attributes
    ----------
    name
        What the function is called.
    info
        How it was obtained.
    """

    name: str = "f"
    info: Info

    @property
    def weights(self) -> Array:
        """The weight of each component; one where it is a single process."""
        return np.ones(1)

    def moments(self, X: Array, *, joint: bool = False) -> FunctionMoments:
        """Return means and variances at the rows of X; with `joint` covariance matrices."""
        raise NotImplementedError

    def means(self, X: Array) -> Array:
        """Return the means at the rows of X, which cost less than variances."""
        return np.asarray(self.weights @ self.moments(X).means)

    def target_moments(self, X: Array) -> tuple[Array, Array]:
        """Return means and variances of targets that are not normal at the rows of X, averaged over the function."""
        raise Unanswered(
            f"{type(self).__name__} is a function; targets of its own are known where they are not normal"
        )

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class at the rows of X, averaged over the function, where targets are classes."""
        raise Unanswered(f"targets of {type(self).__name__} are no classes")

    def draws(self, n: int, seed: Seed = None) -> Callable[[Any], Array]:
        """Return n functions drawn together: called with inputs, it returns functions by inputs.

        What was returned before stays: all calls are of the same functions.
        """
        raise Unanswered(
            f"functions of {type(self).__name__} are not drawn whole; draw values: post.at(x).sample(n)"
        )

    def at(self, X: Any) -> "FunctionValues":
        """Return what the function is at some inputs: a number, or one row or number an input."""
        rows = as_rows(X)
        return FunctionValues(self, rows, np.shape(X) if np.ndim(X) < 2 else np.shape(X)[:1])

    def mean_function(self) -> Callable[[Any], Array]:
        """Return the mean as a function of inputs."""
        return lambda X: self.at(X).mean()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name}: {self.info.engine}; ask .at(x)>"


class FunctionValues(PosteriorQuestions):
    """A function at some inputs, as a posterior: `mean()`, `sd()`, `interval()`, `cov()`, `sample(n)`, `plot()`.

    Examples
    --------
    >>> import markovia as mk
    >>> gp = mk.GaussianProcess(mk.covariances.RBF(1.0) + mk.covariances.White(0.1), mean=0.0)
    >>> values = gp.fit([[0.0], [0.5], [2.0]], [1.0, 0.2, -0.7]).function().at([1.0])
    >>> values.mean().round(6).tolist(), values.sd().round(6).tolist()
    ([-0.216611], [0.404583])
    """

    def __init__(self, process: FunctionPosterior, X: Array, shape: tuple[int, ...]) -> None:
        self._process, self.X, self.shape = process, X, shape
        self.names, self.info = (process.name,), process.info

    @cached_property
    def _moments(self) -> FunctionMoments:
        return self._process.moments(self.X)

    @cached_property
    def _joint(self) -> FunctionMoments:
        return self._process.moments(self.X, joint=True)

    def cov(self) -> Array:
        """Return the covariance matrix of the values, inputs by inputs."""
        return self._covariance(self.names)[0]

    def _distribution(self, name: str, what: str) -> "MixtureOfProcesses":
        base, at = element_of(name, self.names)
        if base not in self.names:
            raise InvalidArgument(f"there is no {name!r}; the function is called {self.names[0]!r}")
        check_element(base, at, self.shape)
        found = self._moments
        pick: Any = slice(None) if not at else np.ravel_multi_index(at, self.shape)
        shape = () if at else self.shape
        sd = np.sqrt(np.maximum(found.variances[:, pick], 0.0))
        return MixtureOfProcesses(self._process.weights, found.means[:, pick], sd, shape)

    def _covariance(self, names: Sequence[str]) -> tuple[Array, list[tuple[int, ...]]]:
        w, (means, covs) = self._process.weights, self._joint
        centre = w @ means
        away = means - centre
        return np.einsum("c,cij->ij", w, covs) + (away.T * w) @ away, [self.shape]

    def _probability_of(self, event: Mapping[str, Any]) -> Any:
        (name, said), *_ = event.items()
        meant = numbers_meant(name, said)
        law = self._distribution(name, "probability")
        return law.cdf(meant.high) - law.cdf(meant.low)

    def _probability_where(self, happened: Callable[..., bool], names: Sequence[str]) -> float:
        drawn = self.sample(10_000, seed=0)[self.names[0]]
        return float(np.mean([bool(happened(row)) for row in drawn]))

    def sample(self, n: int = 1, seed: Seed = None) -> dict[str, Any]:
        """Draw n times the values at all inputs together."""
        if len(self.X) > MOST_JOINT:
            return {self.names[0]: self._process.draws(n, seed)(self.X).reshape((n, *self.shape))}
        rng = generator(seed)
        means, covs = self._joint
        which = rng.choice(len(means), size=n, p=self._process.weights)
        found = np.empty((n, len(self.X)))
        for c in np.unique(which):
            rows = which == c
            found[rows] = means[c] + rng.standard_normal((int(rows.sum()), len(self.X))) @ root(covs[c]).T
        return {self.names[0]: found.reshape((n, *self.shape))}

    def log_prob(self, values: Any) -> float:
        """Return the log density of values at all inputs together; minus infinity where they cannot be."""
        from scipy.special import logsumexp
        from scipy.stats import multivariate_normal

        means, covs = self._joint
        flat = np.ravel(np.asarray(values, dtype=np.float64))
        each = [
            multivariate_normal.logpdf(flat, m, C, allow_singular=True)
            for m, C in zip(means, covs, strict=True)
        ]
        return float(logsumexp(each, b=self._process.weights))

    def to_pandas(self, prob: float = 0.9) -> "pd.DataFrame":
        """Return inputs, means, standard deviations and intervals, one row an input."""
        low, high = self.interval(prob)
        columns = {f"x{j}" if self.X.shape[1] > 1 else "x": self.X[:, j] for j in range(self.X.shape[1])}
        numbers = {"mean": self.mean(), "sd": self.sd(), "low": low, "high": high}
        return pd.DataFrame({**columns, **{name: np.ravel(v) for name, v in numbers.items()}})

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None, prob: float = 0.9) -> "Axes":
        """Draw the mean with a band, against the only input."""
        return ports.draw("plot-function-values", self, ax=ax, title=title, prob=prob)

    def __repr__(self) -> str:
        return f"<{self.names[0]} at {len(self.X)} inputs; {self.info.engine}>"

    def __str__(self) -> str:
        return str(self.to_pandas().head(20).to_string(index=False))


class MixtureOfProcesses:
    """Numbers that are mixtures of normal ones, all at once: components by numbers."""

    def __init__(self, weights: Array, means: Array, sds: Array, shape: tuple[int, ...]) -> None:
        self.weights, self.shape = weights, shape
        self.means, self.sds = (np.reshape(v, (len(weights), -1)) for v in (means, sds))

    def mean(self) -> Any:
        """Return the means."""
        return (self.weights @ self.means).reshape(self.shape)

    def variance(self) -> Any:
        """Return the variances: those within components, and that of their means."""
        centre = self.weights @ self.means
        return (self.weights @ (self.sds**2 + (self.means - centre) ** 2)).reshape(self.shape)

    def cdf(self, x: Any) -> Any:
        """Return the probability of being at most x."""
        from scipy.special import ndtr

        x = np.broadcast_to(np.asarray(x, dtype=np.float64), self.shape or (1,)).reshape(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (x - self.means) / self.sds
        each = np.where(self.sds > 0, ndtr(z), x >= self.means)  # without spread, a step
        return (self.weights @ each).reshape(self.shape)

    def quantile(self, q: float) -> Any:
        """Return a quantile: in closed form for one component, by halving otherwise."""
        from scipy.special import ndtri

        ends = (
            self.means + self.sds * ndtri(q) if 0.0 < q < 1.0 else self.means + np.where(q, np.inf, -np.inf)
        )
        low, high = ends.min(axis=0), ends.max(axis=0)
        if len(self.weights) == 1 or not np.isfinite(low).all():
            return low.reshape(self.shape)
        for _ in range(STEPS):
            middle = 0.5 * (low + high)
            above = self.cdf(middle.reshape(self.shape)).reshape(-1) >= q
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return high.reshape(self.shape)

    def shortest(self, prob: float) -> tuple[Any, Any]:
        """Return the shortest intervals with a probability; of one normal number that is the central one."""
        if len(self.weights) == 1:
            return self.quantile(0.5 - prob / 2.0), self.quantile(0.5 + prob / 2.0)
        return shortest_interval(self.quantile, prob)


def as_rows(X: Any) -> Array:
    """Return inputs as rows of numbers; numbers are rows of one column.

    Raises
    ------
    InvalidArgument
        For what is not numbers, or has gaps.
    """
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument("inputs of a function are numbers, one row of them an input") from None
    if rows.ndim > 2:
        raise InvalidArgument(f"inputs of a function are rows of numbers, not an array of shape {rows.shape}")
    if not np.isfinite(rows).all():
        at = np.argwhere(~np.isfinite(rows))[0]
        raise InvalidArgument(f"an input of a function is not a finite number, at {tuple(map(int, at))}")
    return rows.reshape(-1, 1) if rows.ndim < 2 else rows


def root(covariance: Array) -> Array:
    """Return a square root of a covariance matrix, which may be singular, or of each of several."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])
