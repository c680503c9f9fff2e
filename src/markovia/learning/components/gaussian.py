"""Emissions of numbers: Gaussians, mixtures of them, and Student's t.

Covariances are always held in full, (states, columns, columns); `kind` says what may vary: "full", "diag", "spherical", or
"tied" (one for all states). Reference: Liu and Rubin (1995) for t.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, get_args

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import InvalidArgument
from markovia.kernels.plain_code import either
from markovia.learning.components.block_passes import BlockPass
from markovia.learning.components.conjugate import NormalLaw
from markovia.learning.components.discrete import chosen
from markovia.learning.components.families import (
    NOTHING,
    Components,
    Observations,
    clusters,
    column_sums,
    parameter,
    probabilities,
    separate,
    whole_steps,
)
from markovia.learning.components.gaussian_passes import gaussian_pass, pattern_logs
from markovia.learning.components.normal_sums import (
    NORMAL_PRIOR,
    CovarianceType,
    column_scale,
    covariance_mode,
    normal_prior,
    prior_numbers,
    regular,
    shaped,
)
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice, numbers
from markovia.runtime.threads import in_parallel

BLOCK, WIDTH = 4096, 256
HALVINGS = 20
"""How often the interval of the log degrees of freedom is halved."""
KERNELS = "markovia.kernels.sequences.gaussian_rows"


@dataclass(frozen=True)
class Gaussian(NormalLaw):
    """Normal distributions; `means (states, columns)`, `covariances (states, columns, columns)`.

    Examples
    --------
    >>> one = Gaussian(np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> one.learned(np.array([[1.0], [3.0]]), np.ones((2, 1)), {}).means.tolist()
    [[2.0]]
    """

    means: Array
    covariances: Array
    kind: CovarianceType = "full"
    names: ClassVar[tuple[str, ...]] = ("means", "covariances")
    priors: ClassVar = NORMAL_PRIOR

    @classmethod
    def of(cls, k: int, params: Mapping[str, Any], *, kind: CovarianceType = "full") -> Self:
        """Return checked emissions from parameters; covariances may have the short shapes of their kind."""
        means = _means(params["means"], (k, None))
        return cls(means, _covariances(params["covariances"], k, means.shape[1], kind), kind)

    @classmethod
    def started(
        cls, seen: Observations, k: int, rng: np.random.Generator, *, kind: CovarianceType = "full"
    ) -> Self:
        """Return the means of clusters, with the covariance of all rows."""
        return cls(_centres(seen.rows, k, rng), np.repeat(_overall(seen.rows, kind)[None], k, axis=0), kind)

    @staticmethod
    def read(sequences: Sequences) -> Observations:
        """Return rows of numbers as observations."""
        values, there = whole_steps(sequences, what="gaussian")
        return separate(values, there, sequences.offsets)

    @property
    def n_free(self) -> int:
        """Return the number of free parameters."""
        return int(self.means.size + _free(self.kind, *self.means.shape))

    def block_pass(self, *, gaps: bool = False, origin: Array | None = None) -> BlockPass:
        """Return a pass over blocks of rows."""
        return gaussian_pass(self, gaps=gaps, origin=origin)

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state; of what it shows, where cells are missing (NaN)."""
        if np.isnan(rows.sum()):
            return pattern_logs(rows, self.means, self.covariances).T
        squares, log_sizes = distances(rows, self.means, self.covariances)
        squares += log_sizes + rows.shape[1] * np.log(2.0 * np.pi)
        squares *= -0.5
        return squares

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the emission that makes weighted rows most probable."""
        means, covariances = normal_fit(
            rows, weights, column_sums(weights), self.means, self.covariances, self.kind, prior
        )
        return replace(self, means=means, covariances=covariances)

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some states."""
        return self.means[states] + _noise(self.covariances, states, rng)

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        return normal_prior(self.means, self.covariances, self.kind, prior)


@dataclass(frozen=True)
class GaussianMixtureComponents(Components):
    """Mixtures of normal distributions; `weights (states, parts)`, `means (states, parts, columns)`, `covariances`."""

    weights: Array
    means: Array
    covariances: Array
    kind: CovarianceType = "full"
    names: ClassVar = ("weights", "means", "covariances")
    priors: ClassVar = (*NORMAL_PRIOR, "concentration")

    @classmethod
    def of(cls, k: int, params: Mapping[str, Any], *, kind: CovarianceType = "full") -> Self:
        """Return checked emissions from parameters; covariances are full or, for "diag", their diagonals."""
        weights = probabilities(params["weights"], "'weights'", (k, None))
        means = _means(params["means"], (k, weights.shape[1], None))
        _, parts, d = means.shape
        given = np.asarray(params["covariances"], dtype=np.float64)
        tied = kind == "tied" and given.ndim == 2
        flat = given if tied or given.ndim < 2 else given.reshape(k * parts, *given.shape[2:])
        return cls(weights, means, _covariances(flat, k * parts, d, kind).reshape(k, parts, d, d), kind)

    @classmethod
    def started(
        cls,
        seen: Observations,
        k: int,
        rng: np.random.Generator,
        *,
        kind: CovarianceType = "full",
        parts: int = 2,
    ) -> Self:
        """Return clusters of clusters, with the covariance of all rows."""
        cluster = clusters(seen.rows, k, rng)
        means = np.array(
            [
                _centres(own if len(own := seen.rows[cluster == j]) > parts else seen.rows, parts, rng)
                for j in range(k)
            ]
        )
        shape = (k, parts, 1, 1)
        return cls(np.full((k, parts), 1.0 / parts), means, np.tile(_overall(seen.rows, kind), shape), kind)

    read = staticmethod(Gaussian.read)

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.means.shape[-1])

    @property
    def n_free(self) -> int:
        """Return the number of free parameters."""
        k, parts, d = self.means.shape
        return int(self.means.size + k * (parts - 1) + _free(self.kind, k * parts, d))

    def _parts(self, rows: Any) -> Array:
        """Return log(weight times density) of each row, state and part."""
        k, parts, d = self.means.shape
        flat = Gaussian(self.means.reshape(-1, d), self.covariances.reshape(-1, d, d))
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        return np.asarray(flat.log_densities(rows).reshape(-1, k, parts) + logs)

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state."""
        return np.asarray(np.logaddexp.reduce(self._parts(rows), axis=-1))

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the emission that makes weighted rows most probable."""
        k, parts, d = self.means.shape
        logs = self._parts(rows)
        shares = weights[..., None] * np.exp(logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True))
        flat = shares.reshape(-1, k * parts)
        means, covariances = normal_fit(
            rows,
            flat,
            column_sums(flat),
            self.means.reshape(-1, d),
            self.covariances.reshape(-1, d, d),
            self.kind,
            prior,
        )
        size = column_sums(flat).reshape(k, parts) + (prior.get("concentration", 1.0) - 1.0)
        total = size.sum(axis=1, keepdims=True)
        mixed = np.where(total > NOTHING, size / np.where(total > NOTHING, total, 1.0), self.weights)
        return replace(
            self,
            weights=mixed,
            means=means.reshape(k, parts, d),
            covariances=covariances.reshape(k, parts, d, d),
        )

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some states."""
        d = self.means.shape[-1]
        part = states * self.weights.shape[1] + chosen(self.weights[states], rng)
        return self.means.reshape(-1, d)[part] + _noise(self.covariances.reshape(-1, d, d), part, rng)

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        from scipy.special import xlogy

        d = self.means.shape[-1]
        found = normal_prior(self.means.reshape(-1, d), self.covariances.reshape(-1, d, d), self.kind, prior)
        return found + float(np.sum(xlogy(prior.get("concentration", 1.0) - 1.0, self.weights)))


@dataclass(frozen=True)
class StudentT(Components):
    """Student's t; `means (states, columns)`, `scales (states, columns, columns)`, degrees of freedom `df (states,)`."""

    means: Array
    scales: Array
    df: Array
    kind: CovarianceType = "full"
    names: ClassVar = ("means", "scales", "df")
    priors: ClassVar = NORMAL_PRIOR

    @classmethod
    def of(cls, k: int, params: Mapping[str, Any], *, kind: CovarianceType = "full") -> Self:
        """Return checked emissions from parameters."""
        means = _means(params["means"], (k, None))
        df = parameter(params["df"], "'df'", (k,))
        if (df <= 0.0).any():
            raise InvalidArgument("'df' are above 0")
        return cls(means, _covariances(params["scales"], k, means.shape[1], kind), df, kind)

    @classmethod
    def started(
        cls, seen: Observations, k: int, rng: np.random.Generator, *, kind: CovarianceType = "full"
    ) -> Self:
        """Return the means of clusters, with the covariance of all rows and 10 degrees of freedom."""
        plain = Gaussian.started(seen, k, rng, kind=kind)
        return cls(plain.means, plain.covariances, np.full(k, 10.0), kind)

    read = staticmethod(Gaussian.read)

    @property
    def n_free(self) -> int:
        """Return the number of free parameters."""
        return int(self.means.size + len(self.df) + _free(self.kind, *self.means.shape))

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state."""
        from scipy.special import gammaln

        d = rows.shape[1]
        squares, log_sizes = distances(rows, self.means, self.scales)
        inside = (self.df + d) / 2.0
        front = gammaln(inside) - gammaln(self.df / 2.0) - 0.5 * (d * np.log(self.df * np.pi) + log_sizes)
        return np.asarray(front - inside * np.log1p(squares / self.df))

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the emission that makes weighted rows most probable."""
        squares, _ = distances(rows, self.means, self.scales)
        precision = (self.df + rows.shape[1]) / (self.df + squares)
        size = column_sums(weights)
        means, scales = normal_fit(rows, weights * precision, size, self.means, self.scales, self.kind, prior)
        return replace(self, means=means, scales=scales)._with_df(rows, weights, size)

    def _with_df(self, rows: Any, weights: Array, size: Array) -> Self:
        """Return the same with the degrees of freedom, from 1 to 1,000, that make the rows most probable."""
        from scipy.special import digamma, gammaln

        d = rows.shape[1]
        squares, _ = distances(rows, self.means, self.scales)

        def summed(values: Array) -> Array:
            return np.asarray(np.einsum("nk,nk->k", weights, values))

        def loss(v: Array) -> Array:
            front = gammaln((v + d) / 2.0) - gammaln(v / 2.0) - 0.5 * d * np.log(v)
            return np.asarray((v + d) / 2.0 * summed(np.log1p(squares / v)) - size * front)

        def rises(v: Array) -> Any:
            """Say whether more degrees of freedom make the rows more probable."""
            front = digamma((v + d) / 2.0) - digamma(v / 2.0) - d / v
            inside = (v + d) / v * summed(squares / (v + squares)) - summed(np.log1p(squares / v))
            return size * front + inside > 0.0

        low, high = np.zeros(len(self.df)), np.full(len(self.df), np.log(1e3))
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            up = rises(np.exp(middle))
            low, high = np.where(up, middle, low), np.where(up, high, middle)
        found = np.exp((low + high) / 2.0)
        better = (size > NOTHING) & (loss(found) < loss(self.df))
        return replace(self, df=np.where(better, found, self.df))

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some states."""
        stretch = np.sqrt(self.df[states] / rng.chisquare(self.df[states]))
        return self.means[states] + stretch[:, None] * _noise(self.scales, states, rng)

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        return normal_prior(self.means, self.scales, self.kind, prior)


def distances(rows: Array, means: Array, covariances: Array) -> tuple[Array, Array]:
    """Return squared Mahalanobis distances of rows from means, (rows, means), and log determinants."""
    factors = np.linalg.cholesky(covariances)
    inverses = np.linalg.inv(factors)
    found = np.empty((len(rows), len(means)))
    diagonal = not np.tril(inverses, -1).any()
    given = (rows, np.ascontiguousarray(means), np.ascontiguousarray(inverses), diagonal)
    work = either(f"{KERNELS}:squared_lengths", found.size * _entries(rows, diagonal))
    room = (2 * rows.shape[1] + 2, WIDTH)
    in_parallel(lambda part, own: work(*part, *given, own, found), _blocks(len(rows)), lambda: np.empty(room))
    return found, 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)


def normal_fit(
    rows: Array,
    weights: Array,
    size: Array,
    means: Array,
    covariances: Array,
    kind: CovarianceType,
    prior: Mapping[str, Any],
) -> tuple[Array, Array]:
    """Return means and covariances that make weighted rows most probable; the sums of squares are divided by `size`.

    With a normal-inverse-Wishart prior (mean, strength, scale, df) they are its posterior's mode. States without data keep
    theirs.
    """
    d = rows.shape[1]
    strength, centre, _, _ = prior_numbers(prior, d)
    fed = size > NOTHING
    total = column_sums(weights)[:, None] + strength
    new = np.where(
        fed[:, None],
        (weights.T @ rows + strength * centre) / np.where(fed[:, None], total, 1.0),
        means,
    )

    diagonal = kind in ("diag", "spherical")
    work = either(f"{KERNELS}:weighted_squares", weights.size * _entries(rows, diagonal))
    given = (rows, np.ascontiguousarray(weights), new, diagonal)

    def block(part: tuple[int, int], room: Array) -> Array:
        sums = np.zeros((len(size), d, d))
        work(*part, *given, room, sums)
        return sums

    room = (2 * d + 1 + len(size), WIDTH)
    lower = np.sum(in_parallel(block, _blocks(len(rows)), lambda: np.empty(room)), axis=0)
    scatter = lower + np.tril(lower, -1).swapaxes(1, 2)
    apart = new - centre
    scatter += strength * apart[:, :, None] * apart[:, None, :]

    def spread() -> Array:
        total = weights.sum(axis=1)
        mean = np.average(rows, axis=0, weights=total)
        return column_scale(np.average((rows - mean) ** 2, axis=0, weights=total), mean)

    return new, covariance_mode(covariances, scatter, size, kind, prior, spread)


def _blocks(n: int) -> list[tuple[int, int]]:
    """Return ranges of rows; whatever the number of threads, so that sums are the same."""
    return [(a, min(a + BLOCK, n)) for a in range(0, n, BLOCK)]


def _entries(rows: Array, diagonal: bool) -> int:
    d = int(rows.shape[1])
    return d * (3 if diagonal else d + 3)


def _overall(rows: Array, kind: CovarianceType) -> Array:
    every = np.atleast_2d(np.cov(rows.T, bias=True))
    return np.asarray(regular(shaped(every[None], kind), lambda: rows.var(axis=0))[0])


def _centres(rows: Array, k: int, rng: np.random.Generator) -> Array:
    cluster = clusters(rows, k, rng)
    picks = rows[rng.integers(0, len(rows), k)]  # for clusters that are empty
    return np.array([rows[cluster == j].mean(axis=0) if (cluster == j).any() else picks[j] for j in range(k)])


def _free(kind: CovarianceType, k: int, d: int) -> int:
    """Return the number of free parameters of covariances."""
    return {"full": k * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": k * d, "spherical": k}[kind]


def _noise(covariances: Array, which: Ints, rng: np.random.Generator) -> Array:
    factors = np.linalg.cholesky(covariances)
    white = rng.standard_normal((len(which), covariances.shape[-1]))
    return np.asarray(np.einsum("nij,nj->ni", factors[which], white))


def _means(given: Any, shape: tuple[int | None, ...]) -> Array:
    if np.ndim(given) == len(shape) - 1:
        given = np.asarray(given)[..., None]
    return parameter(given, "'means'", shape)


def _covariances(given: Any, k: int, d: int, kind: CovarianceType) -> Array:
    """Return checked covariances in full, whatever shape their kind has."""
    check_choice("covariance_type", kind, get_args(CovarianceType))
    array = numbers(given, "covariances are numbers")
    eye = np.eye(d)
    if array.shape == (k, d, d):
        full = array
    elif kind == "diag" and array.shape == (k, d):
        full = array[:, :, None] * eye
    elif kind == "tied" and array.shape == (d, d):
        full = np.repeat(array[None], k, axis=0)
    elif kind == "spherical" and array.shape == (k,):
        full = array[:, None, None] * eye
    elif kind == "full" and d == 1 and array.shape in ((k,), (k, 1)):
        full = array.reshape(k, 1, 1)
    else:
        short = {"full": "", "diag": f" or {k} x {d}", "tied": f" or {d} x {d}", "spherical": f" or {k}"}[
            kind
        ]
        raise InvalidArgument(
            f"covariances have shape {k} x {d} x {d}{short}, not {' x '.join(map(str, array.shape))}"
        )
    for i, one in enumerate(full):
        if not np.isfinite(one).all() or not np.allclose(one, one.T) or np.linalg.eigvalsh(one)[0] <= 0.0:
            raise InvalidArgument(f"the covariance of state {i} is not symmetric and positive definite")
    return np.asarray(full)
