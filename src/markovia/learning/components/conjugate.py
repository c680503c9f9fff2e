"""Families of components with a conjugate prior: what Bayesian mixtures ask of them.

A family holds its prior and answers, for rows that belong by weight to components: the posterior's parameters, its log
normaliser (a ratio of them is the rows' probability), expected log densities (variational Bayes), means and draws. As
`ConjugateRows` it goes to the compiled samplers that sum parameters out. Unsaid priors follow the data's scale.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument, did_you_mean
from markovia.inference.collapsed.conjugate_rows import (
    BERNOULLI,
    CATEGORICAL,
    DIAGONAL,
    GAUSSIAN,
    MULTINOMIAL,
    POISSON,
    ConjugateRows,
)
from markovia.learning.components.conjugate_draws import dirichlet_rows, inverse_wishart
from markovia.learning.components.discrete import Bernoulli, Multinomial, Poisson, log_factorials
from markovia.learning.components.gaussian import Gaussian
from markovia.runtime.array_types import Array
from markovia.runtime.checks import numbers

Params = dict[str, Array]


class ConjugateFamily(ABC):
    """Components of one kind over rows of `d` columns."""

    names: ClassVar[tuple[str, ...]]
    """The parameters, each with one entry a component."""

    @property
    @abstractmethod
    def kind(self) -> int:
        """The kind of kernels."""

    @abstractmethod
    def flat(self) -> Array:
        """Return the prior as kernels read it."""

    @abstractmethod
    def posterior(self, rows: Array, weights: Array) -> Params:
        """Return the parameters of the conjugate law given rows by weight, (rows, components); no row gives the prior."""

    @abstractmethod
    def log_normaliser(self, law: Params) -> Array:
        """Return the log normaliser of each component's law, up to a constant of the family."""

    @abstractmethod
    def expected_logs(self, law: Params, rows: Array) -> Array:
        """Return the expected log density of each row under each component's law."""

    @abstractmethod
    def means(self, law: Params) -> Params:
        """Return the mean of each parameter."""

    @abstractmethod
    def drawn(self, rows: Array, weights: Array, rng: np.random.Generator) -> Params:
        """Return a draw of parameters given rows by weight."""

    @abstractmethod
    def log_densities(self, params: Params, rows: Array) -> Array:
        """Return the log density of each row in each component."""

    def base(self, rows: Array) -> Array:
        """Return what enters a row's log density whatever the parameters; `log_densities` of the kernels leave it out."""
        return np.zeros(len(rows))

    def seen(self, rows: Array, most: int = 0) -> ConjugateRows:
        """Return the rows as compiled samplers read them; a component may have `most` rows of other data."""
        return ConjugateRows(self.kind, self.flat(), np.ascontiguousarray(rows), most)

    def none(self, rows: Array) -> Params:
        """Return the prior as the law of one component."""
        return self.posterior(rows[:0], np.zeros((0, 1)))


@dataclass(frozen=True)
class NormalFamily(ConjugateFamily):
    """Normal distributions with a normal-inverse-Wishart prior, or one for each column where `diagonal`."""

    mean: Array
    strength: float
    scale: Array
    df: float
    diagonal: bool = False
    names: ClassVar = ("means", "covariances")

    @property
    def kind(self) -> int:
        """The kind of kernels."""
        return DIAGONAL if self.diagonal else GAUSSIAN

    def flat(self) -> Array:
        """Return the prior as kernels read it."""
        scale = np.diag(self.scale) if self.diagonal else np.linalg.cholesky(self.scale).ravel()
        return np.concatenate([[self.strength, self.df], self.mean, scale])

    def posterior(self, rows: Array, weights: Array) -> Params:
        """Return means, strengths, scales and degrees of freedom."""
        size = weights.sum(axis=0)
        strength = self.strength + size
        apart = rows - self.mean
        off = weights.T @ apart / strength[:, None]
        mean = self.mean + off
        d, k = len(self.mean), len(size)
        if self.diagonal:
            scale = np.diag(self.scale) + weights.T @ apart**2 - strength[:, None] * off**2
        elif len(rows) * d < 50_000:  # one product for all components
            squares = (apart[:, :, None] * apart[:, None, :]).reshape(len(rows), d * d)
            scale = self.scale + (weights.T @ squares).reshape(k, d, d)
            scale -= strength[:, None, None] * off[:, :, None] * off[:, None, :]
        else:
            scale = np.array([(apart * w[:, None]).T @ apart for w in weights.T]) + self.scale
            scale -= strength[:, None, None] * off[:, :, None] * off[:, None, :]
        return {"mean": mean, "strength": strength, "scale": scale, "df": self.df + size}

    def log_normaliser(self, law: Params) -> Array:
        """Return log Gamma_d(df / 2) - df / 2 log |scale| - d / 2 log strength - d df / 2 log pi."""
        from scipy.special import gammaln, multigammaln

        d, df = len(self.mean), law["df"]
        common = -0.5 * d * (np.log(law["strength"]) + df * np.log(np.pi))
        if self.diagonal:
            return np.asarray(common + d * gammaln(df / 2.0) - df / 2.0 * np.log(law["scale"]).sum(axis=1))
        return np.asarray(common + multigammaln(df / 2.0, d) - df / 2.0 * np.linalg.slogdet(law["scale"])[1])

    def expected_logs(self, law: Params, rows: Array) -> Array:
        """Return the expected log density of each row."""
        from scipy.special import digamma

        d, df = len(self.mean), law["df"]
        found = np.empty((len(rows), len(df)))
        for c in range(len(df)):
            apart = rows - law["mean"][c]
            if self.diagonal:
                scale = law["scale"][c]
                log_precision = d * (digamma(df[c] / 2.0) + np.log(2.0)) - np.log(scale).sum()
                distance = (apart**2 / scale).sum(axis=1)
            else:
                factor = np.linalg.cholesky(law["scale"][c])
                logs = 2.0 * np.log(np.diag(factor)).sum()
                log_precision = digamma((df[c] - np.arange(d)) / 2.0).sum() + d * np.log(2.0) - logs
                distance = (np.linalg.solve(factor, apart.T) ** 2).sum(axis=0)
            found[:, c] = 0.5 * (
                log_precision - d * np.log(2.0 * np.pi) - d / law["strength"][c] - df[c] * distance
            )
        return found

    def means(self, law: Params) -> Params:
        """Return means, and expected covariances (their modes where no mean is finite)."""
        d, df = len(self.mean), law["df"]
        below = df - 2.0 if self.diagonal else df - d - 1.0
        mode = df + 2.0 if self.diagonal else df + d + 1.0
        shares = np.where(below > 0.0, below, mode)
        scale = law["scale"][:, :, None] * np.eye(d) if self.diagonal else law["scale"]
        return {"means": law["mean"], "covariances": scale / shares[:, None, None]}

    def drawn(self, rows: Array, weights: Array, rng: np.random.Generator) -> Params:
        """Return a draw of means and covariances."""
        law = self.posterior(rows, weights)
        d, k = len(self.mean), weights.shape[1]
        if self.diagonal:
            variances = law["scale"] / (2.0 * rng.gamma(np.repeat(law["df"][:, None] / 2.0, d, axis=1)))
            covariances = variances[:, :, None] * np.eye(d)
        else:
            covariances = inverse_wishart(law["df"], law["scale"], rng)
        white = rng.standard_normal((k, d)) / np.sqrt(law["strength"])[:, None]
        moved = np.einsum("kij,kj->ki", np.linalg.cholesky(covariances), white)
        return {"means": law["mean"] + moved, "covariances": covariances}

    def log_densities(self, params: Params, rows: Array) -> Array:
        """Return the log density of each row in each component."""
        return Gaussian(params["means"], params["covariances"], "full").log_densities(rows)


@dataclass(frozen=True)
class BernoulliFamily(ConjugateFamily):
    """Columns of zeros and ones with beta priors."""

    a: Array
    b: Array
    names: ClassVar = ("probs",)
    kind: ClassVar[int] = BERNOULLI

    def flat(self) -> Array:
        """Return the prior as kernels read it."""
        return np.concatenate([[0.0, 0.0], self.a, self.b])

    def posterior(self, rows: Array, weights: Array) -> Params:
        """Return the parameters of beta laws."""
        ones = weights.T @ rows
        return {"a": self.a + ones, "b": self.b + weights.sum(axis=0)[:, None] - ones}

    def log_normaliser(self, law: Params) -> Array:
        """Return the log beta functions, summed over columns."""
        from scipy.special import betaln

        return np.asarray(betaln(law["a"], law["b"]).sum(axis=1))

    def expected_logs(self, law: Params, rows: Array) -> Array:
        """Return the expected log density of each row."""
        from scipy.special import digamma

        one, zero = digamma(law["a"]), digamma(law["b"])
        return np.asarray(rows @ (one - zero).T + (zero - digamma(law["a"] + law["b"])).sum(axis=1))

    def means(self, law: Params) -> Params:
        """Return the probabilities of ones."""
        return {"probs": law["a"] / (law["a"] + law["b"])}

    def drawn(self, rows: Array, weights: Array, rng: np.random.Generator) -> Params:
        """Return a draw of probabilities."""
        law = self.posterior(rows, weights)
        return {"probs": rng.beta(law["a"], law["b"])}

    def log_densities(self, params: Params, rows: Array) -> Array:
        """Return the log density of each row in each component."""
        return Bernoulli(np.clip(params["probs"], 1e-300, 1.0 - 1e-16)).log_densities(rows)


@dataclass(frozen=True)
class PoissonFamily(ConjugateFamily):
    """Columns of counts with gamma priors of their rates."""

    shape: Array
    rate: Array
    names: ClassVar = ("rates",)
    kind: ClassVar[int] = POISSON

    def flat(self) -> Array:
        """Return the prior as kernels read it."""
        return np.concatenate([[0.0, 0.0], self.shape, self.rate])

    def posterior(self, rows: Array, weights: Array) -> Params:
        """Return the parameters of gamma laws."""
        return {"shape": self.shape + weights.T @ rows, "rate": self.rate + weights.sum(axis=0)[:, None]}

    def log_normaliser(self, law: Params) -> Array:
        """Return log Gamma(shape) - shape log rate, summed over columns."""
        from scipy.special import gammaln

        return np.asarray((gammaln(law["shape"]) - law["shape"] * np.log(law["rate"])).sum(axis=1))

    def expected_logs(self, law: Params, rows: Array) -> Array:
        """Return the expected log density of each row."""
        from scipy.special import digamma

        logs = digamma(law["shape"]) - np.log(law["rate"])
        return np.asarray(rows @ logs.T - (law["shape"] / law["rate"]).sum(axis=1) + self.base(rows)[:, None])

    def means(self, law: Params) -> Params:
        """Return the rates."""
        return {"rates": law["shape"] / law["rate"]}

    def drawn(self, rows: Array, weights: Array, rng: np.random.Generator) -> Params:
        """Return a draw of rates."""
        law = self.posterior(rows, weights)
        return {"rates": np.maximum(rng.gamma(law["shape"]) / law["rate"], 1e-300)}

    def log_densities(self, params: Params, rows: Array) -> Array:
        """Return the log density of each row in each component."""
        return Poisson(params["rates"]).log_densities(rows)

    def base(self, rows: Array) -> Array:
        """Return minus the log factorials."""
        return -log_factorials(rows)


@dataclass(frozen=True)
class DirichletFamily(ConjugateFamily):
    """Categories with Dirichlet priors: one of `levels` in each column, or, without levels, counts of one set of them."""

    weights: Array
    levels: tuple[int, ...] = ()
    names: ClassVar = ("probs",)

    @property
    def kind(self) -> int:
        """The kind of kernels."""
        return CATEGORICAL if self.levels else MULTINOMIAL

    @property
    def _starts(self) -> Any:
        return (
            np.concatenate([[0], np.cumsum(self.levels)[:-1]]).astype(np.int64)
            if self.levels
            else np.array([0])
        )

    def _sums(self, values: Array) -> Array:
        """Return sums over the levels of each column, spread over them again."""
        sums = np.add.reduceat(values, self._starts, axis=-1)
        return np.repeat(sums, self.levels or [values.shape[-1]], axis=-1)

    def _counts(self, rows: Array) -> Array:
        if not self.levels:
            return rows
        found = np.zeros((len(rows), sum(self.levels)))
        found[np.arange(len(rows))[:, None], rows.astype(np.int64)] = 1.0
        return found

    def flat(self) -> Array:
        """Return the prior as kernels read it."""
        if not self.levels:
            return np.concatenate([[self.weights.sum(), 0.0], self.weights])
        return np.concatenate([[0.0, 0.0], self.weights, np.add.reduceat(self.weights, self._starts)])

    def posterior(self, rows: Array, weights: Array) -> Params:
        """Return the parameters of Dirichlet laws, columns side by side."""
        return {"weights": self.weights + weights.T @ self._counts(rows)}

    def log_normaliser(self, law: Params) -> Array:
        """Return sums of log gamma functions."""
        from scipy.special import gammaln

        sums = np.add.reduceat(law["weights"], self._starts, axis=1)
        return np.asarray(gammaln(law["weights"]).sum(axis=1) - gammaln(sums).sum(axis=1))

    def expected_logs(self, law: Params, rows: Array) -> Array:
        """Return the expected log density of each row."""
        from scipy.special import digamma

        logs = digamma(law["weights"]) - digamma(self._sums(law["weights"]))
        return np.asarray(self._counts(rows) @ logs.T + self.base(rows)[:, None])

    def means(self, law: Params) -> Params:
        """Return the probabilities of levels, columns side by side."""
        return {"probs": law["weights"] / self._sums(law["weights"])}

    def drawn(self, rows: Array, weights: Array, rng: np.random.Generator) -> Params:
        """Return a draw of probabilities."""
        law = self.posterior(rows, weights)["weights"]
        parts = np.split(law, self._starts[1:], axis=1)
        return {"probs": np.concatenate([dirichlet_rows(part, rng) for part in parts], axis=1)}

    def log_densities(self, params: Params, rows: Array) -> Array:
        """Return the log density of each row in each component."""
        if not self.levels:
            return Multinomial(params["probs"]).log_densities(rows)
        logs = np.log(np.maximum(params["probs"], 1e-300))
        return np.asarray(logs.T[rows.astype(np.int64)].sum(axis=1))

    def base(self, rows: Array) -> Array:
        """Return the logs of multinomial coefficients."""
        return np.zeros(len(rows)) if self.levels else Multinomial().base(rows)


PRIORS = {
    "gaussian": ("mean", "strength", "scale", "df"),
    "bernoulli": ("a", "b"),
    "categorical": ("concentration",),
    "multinomial": ("concentration",),
    "poisson": ("shape", "rate"),
}
"""What `prior` may say, by name of the family."""


def conjugate_family(
    name: str,
    rows: Array,
    prior: Mapping[str, Any] | None = None,
    *,
    diagonal: bool = False,
    groups: float = 1.0,
    levels: tuple[int, ...] = (),
) -> ConjugateFamily:
    """Return a family by its name, with a prior; what that does not say follows the rows.

    `groups` says into about how many parts the rows fall: a normal component's expected covariance is that of the data
    divided among so many, as in Fraley and Raftery (2007).
    """
    d = rows.shape[1]
    said = _checked(name, prior or {}, sum(levels) if levels else d)
    if name == "gaussian":
        middle, variance = rows.mean(axis=0), rows.var(axis=0)
        spread = np.where(variance > 0.0, variance, 1.0) / groups ** (2.0 / d)
        df = float(said.get("df", 3.0 if diagonal else d + 2.0))
        if df <= (0.0 if diagonal else d - 1.0):
            raise InvalidArgument(f"prior= says df={df:g}, which is above {0 if diagonal else d - 1} here")
        scale = said.get("scale", np.diag(spread * (df - 2.0 if diagonal else df - d - 1.0)))
        full = scale if scale.ndim == 2 else np.broadcast_to(scale, (d,)) * np.eye(d)
        if np.linalg.eigvalsh(full)[0] <= 0.0:
            raise InvalidArgument("prior= has a scale that is not positive definite")
        centre = np.array(np.broadcast_to(said.get("mean", middle), (d,)))
        return NormalFamily(centre, float(said.get("strength", STRENGTH)), full, df, diagonal)
    if name == "bernoulli":
        return BernoulliFamily(_wide(said.get("a", 1.0), d), _wide(said.get("b", 1.0), d))
    if name == "poisson":
        rate = 1.0 / np.maximum(rows.mean(axis=0), 1e-10)
        return PoissonFamily(_wide(said.get("shape", 1.0), d), _wide(said.get("rate", rate), d))
    width = sum(levels) if name == "categorical" else d
    return DirichletFamily(
        _wide(said.get("concentration", 1.0), width), levels if name == "categorical" else ()
    )


STRENGTH = 0.01
"""Rows that a prior's mean counts for where nothing is said: centres of groups may lie anywhere within the data."""


def _wide(value: Any, d: int) -> Array:
    return np.array(np.broadcast_to(value, (d,)), dtype=np.float64)


def _checked(name: str, prior: Mapping[str, Any], width: int) -> dict[str, Array]:
    if not isinstance(prior, Mapping):
        raise InvalidArgument(f"prior= is a mapping with {', '.join(PRIORS[name])}, not {prior!r}")
    found = {}
    for key, value in prior.items():
        if key not in PRIORS[name]:
            hint = did_you_mean(key, PRIORS[name])
            raise InvalidArgument(f"prior= has no {key!r}{hint}; for {name} it has {', '.join(PRIORS[name])}")
        array = numbers(value, f"prior= says numbers for {key}")
        fits = array.shape in ((), (width,)) or (key == "scale" and array.shape == (width, width))
        if not fits or not np.isfinite(array).all():
            raise InvalidArgument(
                f"prior= has {key!r} as a finite number, or one a column of {width}, not {value!r}"
            )
        if key not in ("mean", "scale") and not (array > 0.0).all():
            raise InvalidArgument(f"prior= says {key}={value!r}, which is above 0")
        found[key] = array
    return found
