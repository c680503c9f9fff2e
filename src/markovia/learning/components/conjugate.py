"""Components with a conjugate prior: what Bayesian mixtures and Gibbs sampling ask of them, beside learning.

A prior and a posterior have the same parameters by name; those of a posterior, its *law*, have one entry a component. From
rows that belong by weight to components come the law, its log normaliser (a ratio of two is the probability of the rows
between them), expected log densities (variational Bayes), means and draws, and the rows as compiled samplers read them
that sum parameters out. Reference: Murphy (2012), sections 3.3 to 3.5 and 4.6. Cost: rows times components times columns,
of columns squared for whole covariances.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from markovia.inference.collapsed.conjugate_rows import (
    BERNOULLI,
    CATEGORICAL,
    DIAGONAL,
    GAUSSIAN,
    POISSON,
    ConjugateRows,
)
from markovia.learning.components.block_passes import IN_CACHE
from markovia.learning.components.conjugate_draws import dirichlet_rows, inverse_wishart
from markovia.learning.components.families import Components
from markovia.learning.components.normal_sums import column_scale
from markovia.runtime.array_types import Array, Ints

Law = dict[str, Any]
WEAK = 0.01
"""Rows that a prior's mean counts for where nothing is said: centres of groups may lie anywhere within the data."""
TINY = 1e-300
"""The least probability or rate of a draw, so that no draw forbids a row."""


class ConjugateComponents(Components):
    """Components whose parameters have a conjugate law; how many there are is up to the law."""

    weak: ClassVar[Mapping[str, float]] = {}
    """What a prior says that says nothing, where that is the same for all rows."""

    def whole_prior(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Law:
        """Return a prior with what it does not say: weak, and on the scale of the rows."""
        return {**self.weak, **prior}

    @abstractmethod
    def posterior(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Law:
        """Return the law given rows by weight, (rows, components); no row gives the prior."""

    @abstractmethod
    def log_normaliser(self, law: Law) -> Array:
        """Return the log normaliser of each component's law, up to a constant of the family."""

    @abstractmethod
    def expected_logs(self, law: Law, rows: Any) -> Array:
        """Return the expected log density of each row under each component's law."""

    @abstractmethod
    def expected(self, law: Law) -> Self:
        """Return components with the mean of each parameter."""

    @abstractmethod
    def drawn(self, law: Law, rng: np.random.Generator) -> Self:
        """Return components drawn from their laws."""

    @abstractmethod
    def collapsed(self, rows: Any, prior: Mapping[str, Any], most: int = 0) -> ConjugateRows:
        """Return rows as compiled samplers read them; a component may have `most` rows of other data."""

    def prior_law(self, prior: Mapping[str, Any], k: int) -> Law:
        """Return a prior as the law of k components."""
        return self.posterior(np.zeros((0, self.width or 0), dtype=np.int64), np.zeros((0, k)), prior)

    def log_marginal(self, law: Law, prior: Mapping[str, Any]) -> Array:
        """Return the log probability of the rows that led from a prior to each component's law, less their `base`."""
        now = self.log_normaliser(law)
        return np.asarray(now - self.log_normaliser(self.prior_law(prior, len(now))))

    def redrawn(self, rows: Any, weights: Array, prior: Mapping[str, Any], rng: np.random.Generator) -> Self:
        """Return components drawn given rows by weight and a whole prior."""
        return self.drawn(self.posterior(rows, weights, prior), rng)

    @property
    def arrays(self) -> Law:
        """The parameters, each one array with an entry a component."""
        return self.params

    def with_arrays(self, arrays: Mapping[str, Array]) -> Self:
        """Return components with parameters as `arrays` has them."""
        return replace(self, **arrays)  # type: ignore[type-var]


class BetaLaw(ConjugateComponents):
    """Probabilities of ones, `probs`, with a beta law in each column."""

    weak: ClassVar = {"a": 1.0, "b": 1.0}

    def posterior(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Law:
        """Return the parameters of beta laws."""
        ones = weights.T @ rows
        return {"a": prior["a"] + ones, "b": prior["b"] + (weights.sum(axis=0)[:, None] - ones)}

    def log_normaliser(self, law: Law) -> Array:
        """Return the log beta functions, summed over columns."""
        from scipy.special import betaln

        return np.asarray(betaln(law["a"], law["b"]).sum(axis=1))

    def expected_logs(self, law: Law, rows: Any) -> Array:
        """Return the expected log density of each row."""
        from scipy.special import digamma

        one, zero = digamma(law["a"]), digamma(law["b"])
        return np.asarray(rows @ (one - zero).T + (zero - digamma(law["a"] + law["b"])).sum(axis=1))

    def expected(self, law: Law) -> Self:
        """Return the mean probabilities of ones."""
        return self.with_arrays({"probs": law["a"] / (law["a"] + law["b"])})

    def drawn(self, law: Law, rng: np.random.Generator) -> Self:
        """Return a draw of probabilities."""
        return self.with_arrays({"probs": np.clip(rng.beta(law["a"], law["b"]), TINY, 1.0 - 1e-16)})

    def collapsed(self, rows: Any, prior: Mapping[str, Any], most: int = 0) -> ConjugateRows:
        """Return rows as compiled samplers read them."""
        return kernel_rows(BERNOULLI, (0.0, 0.0), (prior["a"], prior["b"]), rows, most)


class GammaLaw(ConjugateComponents):
    """Rates of counts, `rates`, with a gamma law in each column."""

    def whole_prior(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Law:
        """Return a prior that is exponential with the rows' mean unless said otherwise."""
        mean = np.average(rows, axis=0, weights=weights.sum(axis=1))
        return {"shape": 1.0, "rate": 1.0 / np.maximum(mean, 1e-10), **prior}

    def posterior(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Law:
        """Return the parameters of gamma laws."""
        size = weights.sum(axis=0)[:, None]
        return {"shape": prior["shape"] + weights.T @ rows, "rate": prior["rate"] + size}

    def log_normaliser(self, law: Law) -> Array:
        """Return log Gamma(shape) - shape log rate, summed over columns."""
        from scipy.special import gammaln

        return np.asarray((gammaln(law["shape"]) - law["shape"] * np.log(law["rate"])).sum(axis=1))

    def expected_logs(self, law: Law, rows: Any) -> Array:
        """Return the expected log density of each row."""
        from scipy.special import digamma

        logs, means = digamma(law["shape"]) - np.log(law["rate"]), law["shape"] / law["rate"]
        return np.asarray(rows @ logs.T - means.sum(axis=1) + np.reshape(self.base(rows), (-1, 1)))

    def expected(self, law: Law) -> Self:
        """Return the mean rates."""
        return self.with_arrays({"rates": law["shape"] / law["rate"]})

    def drawn(self, law: Law, rng: np.random.Generator) -> Self:
        """Return a draw of rates."""
        return self.with_arrays({"rates": np.maximum(rng.gamma(law["shape"]) / law["rate"], TINY)})

    def collapsed(self, rows: Any, prior: Mapping[str, Any], most: int = 0) -> ConjugateRows:
        """Return rows as compiled samplers read them."""
        return kernel_rows(POISSON, (0.0, 0.0), (prior["shape"], prior["rate"]), rows, most)


class DirichletLaw(ConjugateComponents):
    """Probabilities of symbols, `probs`, with a Dirichlet law; those of several columns stand side by side."""

    weak: ClassVar = {"concentration": 1.0}

    @property
    def starts(self) -> Ints:
        """Where the symbols of each column start."""
        return np.zeros(1, dtype=np.int64)

    @abstractmethod
    def features(self, rows: Any) -> Any:
        """Return how often each row has each symbol, (symbols, rows)."""

    def _by_column(self, law: Law) -> list[Array]:
        return np.split(law["concentration"], self.starts[1:], axis=1)

    def posterior(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Law:
        """Return the parameters of Dirichlet laws."""
        return {"concentration": prior["concentration"] + (self.features(rows) @ weights).T}

    def log_normaliser(self, law: Law) -> Array:
        """Return sums of log gamma functions."""
        from scipy.special import gammaln

        sums = np.add.reduceat(law["concentration"], self.starts, axis=1)
        return np.asarray(gammaln(law["concentration"]).sum(axis=1) - gammaln(sums).sum(axis=1))

    def expected_logs(self, law: Law, rows: Any) -> Array:
        """Return the expected log density of each row."""
        from scipy.special import digamma

        logs = np.hstack([digamma(c) - digamma(c.sum(axis=1, keepdims=True)) for c in self._by_column(law)])
        return np.asarray((logs @ self.features(rows)).T + np.reshape(self.base(rows), (-1, 1)))

    def expected(self, law: Law) -> Self:
        """Return the mean probabilities."""
        shares = [c / c.sum(axis=1, keepdims=True) for c in self._by_column(law)]
        return self.with_arrays({"probs": np.hstack(shares)})

    def drawn(self, law: Law, rng: np.random.Generator) -> Self:
        """Return a draw of probabilities; a concentration of zero gives zero."""
        probs = np.hstack([dirichlet_rows(c, rng) for c in self._by_column(law)])
        return self.with_arrays({"probs": np.where(law["concentration"] > 0.0, np.maximum(probs, TINY), 0.0)})

    def collapsed(self, rows: Any, prior: Mapping[str, Any], most: int = 0) -> ConjugateRows:
        """Return rows as compiled samplers read them, symbols numbered through all columns."""
        each = np.broadcast_to(prior["concentration"], self.arrays["probs"].shape[1])
        sums = np.add.reduceat(each, self.starts)
        return kernel_rows(CATEGORICAL, (0.0, 0.0), (each, sums), rows + self.starts, most)


class NormalLaw(ConjugateComponents):
    """Normal distributions, `means` and `covariances`, with a normal-inverse-Wishart law: mean, strength, scale and df.

    A law's `scale` and `df` are of what may vary: a covariance ("full"), one for all components ("tied"), the variance of
    each column ("diag") or one variance ("spherical"). A prior's `scale` is a matrix.
    """

    kind: Any

    def whole_prior(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Law:
        """Return a prior whose covariance is that of the rows, divided among the components, unless said otherwise.

        Its `df` is said of whole covariances, whatever may vary. Reference: Fraley and Raftery (2007).
        """
        d, each = rows.shape[1], weights.sum(axis=1)
        middle = np.average(rows, axis=0, weights=each)
        spread = column_scale(np.average((rows - middle) ** 2, axis=0, weights=each), middle)
        scale = np.asarray(prior.get("scale", spread / weights.shape[1] ** (2.0 / d)))
        df = float(prior.get("df", d + 2.0))
        # the density |S|^-(df + d + 1)/2 exp(...) of a covariance S, where that is diagonal or a multiple of the identity
        of_kind = {"diag": df + d - 1.0, "spherical": d * (df + d + 1.0) - 2.0}
        return {
            "mean": np.array(np.broadcast_to(prior.get("mean", middle), d)),
            "strength": float(prior.get("strength", WEAK)),
            "scale": scale if scale.ndim == 2 else scale * np.eye(d),
            "df": of_kind.get(self.kind, df),
        }

    def posterior(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Law:
        """Return means, strengths, scales and degrees of freedom."""
        size = more = weights.sum(axis=0)
        strength = prior["strength"] + size
        mean = (weights.T @ rows + prior["strength"] * prior["mean"]) / strength[:, None]
        apart, spread = mean - prior["mean"], prior["scale"]
        if self.kind in ("diag", "spherical"):
            squares, spread = _scatter(rows, weights, mean, diagonal=True), np.diag(spread)
            squares += prior["strength"] * apart**2
            if self.kind == "spherical":  # every column tells of the one variance
                squares, spread, more = squares.sum(axis=1, keepdims=True), spread.sum(), rows.shape[1] * size
        else:
            squares = _scatter(rows, weights, mean, diagonal=False)
            squares += prior["strength"] * apart[:, :, None] * apart[:, None, :]
            if self.kind == "tied":  # every component tells of the one covariance
                squares, more = (
                    np.broadcast_to(squares.sum(axis=0), squares.shape),
                    np.full_like(size, size.sum()),
                )
        return {"mean": mean, "strength": strength, "scale": spread + squares, "df": prior["df"] + more}

    def log_normaliser(self, law: Law) -> Array:
        """Return log Gamma(df / 2) - df / 2 log |pi scale| of what varies, less d / 2 log strength.

        Components that share a covariance each have a share of its part.
        """
        from scipy.special import gammaln, multigammaln

        d, df, scale = law["mean"].shape[1], law["df"], law["scale"]
        if scale.ndim == 2:
            varying = scale.shape[1] * gammaln(df / 2.0) - df / 2.0 * np.log(np.pi * scale).sum(axis=1)
        else:
            varying = multigammaln(df / 2.0, d) - df / 2.0 * np.linalg.slogdet(np.pi * scale)[1]
        return np.asarray(
            varying / (len(df) if self.kind == "tied" else 1) - 0.5 * d * np.log(law["strength"])
        )

    def expected_logs(self, law: Law, rows: Any) -> Array:
        """Return the expected log density of each row."""
        from scipy.special import digamma

        d, logs = rows.shape[1], np.empty((len(rows), len(law["df"])))
        for c, (mean, strength, scale, df) in enumerate(
            zip(law["mean"], law["strength"], law["scale"], law["df"], strict=True)
        ):
            apart = rows - mean
            if scale.ndim == 1:
                log_precision = d * digamma(df / 2.0) - np.log(np.broadcast_to(scale, (d,))).sum()
                distance = (apart**2 / scale).sum(axis=1)
            else:
                factor = np.linalg.cholesky(scale)
                log_precision = digamma((df - np.arange(d)) / 2.0).sum() - 2.0 * np.log(np.diag(factor)).sum()
                distance = (np.linalg.solve(factor, apart.T) ** 2).sum(axis=0)
            logs[:, c] = 0.5 * (log_precision - d * np.log(np.pi) - d / strength - df * distance)
        return logs

    def expected(self, law: Law) -> Self:
        """Return means, and expected covariances (their modes where no mean is finite)."""
        scale, df = law["scale"], law["df"]
        d = 1 if scale.ndim == 2 else scale.shape[-1]
        shares = np.where(df > d + 1.0, df - d - 1.0, df + d + 1.0)
        return self._with_scales(law["mean"], scale / shares.reshape(-1, *[1] * (scale.ndim - 1)))

    def drawn(self, law: Law, rng: np.random.Generator) -> Self:
        """Return a draw of means and covariances."""
        scale, df = law["scale"], law["df"]
        if scale.ndim == 2:
            scales = scale / (2.0 * rng.gamma(np.broadcast_to(df[:, None] / 2.0, scale.shape)))
        elif self.kind == "tied":
            scales = np.repeat(inverse_wishart(df[:1], scale[:1], rng), len(df), axis=0)
        else:
            scales = inverse_wishart(df, scale, rng)
        centred: Any = self._with_scales(law["mean"], scales)
        white = rng.standard_normal(law["mean"].shape) / np.sqrt(law["strength"])[:, None]
        moved = np.einsum("kij,kj->ki", np.linalg.cholesky(centred.covariances), white)
        return replace(centred, means=law["mean"] + moved)  # type: ignore[no-any-return]

    def _with_scales(self, means: Array, scales: Array) -> Self:
        """Return components of these means, and covariances or variances."""
        full = scales if scales.ndim == 3 else scales[:, :, None] * np.eye(means.shape[1])
        return self.with_arrays({"means": means, "covariances": full})

    def collapsed(self, rows: Any, prior: Mapping[str, Any], most: int = 0) -> ConjugateRows:
        """Return rows as compiled samplers read them; "full" or "diag"."""
        kind = {"full": GAUSSIAN, "diag": DIAGONAL}[self.kind]
        scale = np.diag(prior["scale"]) if kind == DIAGONAL else np.linalg.cholesky(prior["scale"]).ravel()
        return kernel_rows(kind, (prior["strength"], prior["df"]), (prior["mean"], scale), rows, most)


def kernel_rows(
    kind: int, first: tuple[Any, ...], prior: Sequence[Any], rows: Any, most: int
) -> ConjugateRows:
    """Return rows as kernels read them; a prior has two numbers, and then entries of columns."""
    flat = np.concatenate([first, *(np.broadcast_to(p, np.shape(p) or rows.shape[1]) for p in prior)])
    return ConjugateRows(kind, flat, np.ascontiguousarray(rows, dtype=np.float64), most)


def _scatter(rows: Array, weights: Array, means: Array, *, diagonal: bool) -> Array:
    """Return weighted products of rows less the mean of each component, or only their squares.

    Squares around each component's own mean keep their digits where it is narrow and far from the others.
    """
    if rows.size * len(means) < IN_CACHE:  # all components at once
        apart = rows - means[:, None]
        if diagonal:
            return np.asarray((weights.T[:, None] @ apart**2)[:, 0])
        return np.asarray((apart * weights.T[:, :, None]).swapaxes(1, 2) @ apart)
    sums = []
    for mean, share in zip(means, weights.T, strict=True):
        some = share > 0.0
        near, own = rows[some] - mean, share[some]
        sums.append(own @ near**2 if diagonal else near.T @ (near * own[:, None]))
    return np.array(sums)
