"""A Gaussian process times one normal factor a row: what Laplace, expectation propagation and variational bounds end with.

With the covariance matrix K of the rows and factors exp(-W f^2 / 2) it needs R = (K + 1 / W)^-1 and log |I + K W|. Both
come from the Cholesky factor of B = I + W^1/2 K W^1/2, whose eigenvalues are at least one (Rasmussen and Williams 2006,
section 3.4), so K may be singular. Rows whose W is negative (noise with heavy tails) are put in afterwards, by a small
matrix of those rows alone, which is positive definite just where the whole is. Cost: n^3 / 3 for the factor, twice that for
R.
"""

# ruff: noqa: N802, N803, N806, N815 (letters of the literature)

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument, Unanswered
from markovia.factors.covariances.algebra import split_white
from markovia.factors.covariances.covariance import Covariance
from markovia.inference.gaussian.function_values import FunctionMoments, FunctionPosterior
from markovia.inference.result import Info
from markovia.learning.processes.evidence_method import Gradient
from markovia.learning.processes.likelihoods import Likelihood, NoiseProcess, SoftmaxClasses, split_likelihood
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now

MEMORY = 6
"""Points from which a next one is extrapolated."""
SMALL = 1e-6
"""Factors that are this flat, in units of the prior, have posterior variances by products, not by a difference."""


class GaussianSites:
    """A normal prior with covariance matrix K, times a factor exp(-W f^2 / 2) for each number."""

    def __init__(self, K: Array, W: Array) -> None:
        from scipy.linalg.lapack import dpotrf

        self.K, self.W, self.negative = K, W, np.flatnonzero(W < 0.0)
        self.s = np.sqrt(np.maximum(W, 0.0))
        B = K * self.s[:, None]
        B *= self.s
        B.flat[:: len(B) + 1] += 1.0
        self._factor, failed = dpotrf(B.T, lower=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("the covariance matrix is not positive semidefinite")
        self.log_det = 2.0 * float(np.log(self._factor.diagonal()).sum())
        if len(self.negative):  # the rest of the factors, on top of a posterior that is normal already
            at, w = self.negative, np.sqrt(-W[self.negative])
            Q = -self._solved(K[:, at])
            Q[at, np.arange(len(at))] += 1.0
            C = np.eye(len(at)) - w[:, None] * (K[at] @ Q) * w
            L = np.linalg.cholesky(C)  # fails where the whole has no maximum
            self._less = np.linalg.solve(L, (Q * w).T)
            self.log_det += 2.0 * float(np.log(np.diag(L)).sum())

    def _solved(self, b: Array) -> Array:
        from scipy.linalg.lapack import dpotrs

        s = self.s if b.ndim == 1 else self.s[:, None]
        return np.asarray(s * dpotrs(self._factor, s * b, lower=1)[0].reshape(b.shape))

    def solve(self, b: Array) -> Array:
        """Return R b."""
        found = self._solved(b)
        return np.asarray(found - self._less.T @ (self._less @ b)) if len(self.negative) else found

    @cached_property
    def R(self) -> Array:
        """The matrix (K + 1 / W)^-1."""
        from scipy.linalg.lapack import dpotri

        half = dpotri(self._factor, lower=1)[0]  # above the diagonal there are zeros
        found = half + half.T
        found *= self.s[:, None]
        found *= self.s
        found.flat[:: len(found) + 1] *= 0.5
        return np.asarray(found - self._less.T @ self._less) if len(self.negative) else found

    @cached_property
    def variances(self) -> Array:
        """The posterior variances."""
        from scipy.linalg.lapack import dtrtri

        prior = self.K.diagonal()
        flat = np.abs(self.W) * prior < SMALL
        W = np.where(flat, 1.0, self.W)
        inverse = dtrtri(self._factor, lower=1)[0]
        diagonal = np.einsum("ij,ij->j", inverse, inverse) * self.s**2  # that of R, without the rest
        if len(self.negative):
            diagonal = diagonal - np.einsum("ij,ij->j", self._less, self._less)
        found = (1.0 - diagonal / W) / W
        if flat.any():
            found[flat] = prior[flat] - np.einsum("ij,ij->j", self.K[:, flat], self.R @ self.K[:, flat])
        return np.asarray(found)


class Extrapolation:
    """Steps to a fixed point from the last few points and moves (Anderson 1965): neither slow nor back and forth.

    Examples
    --------
    >>> steps, x = Extrapolation(), np.array([4.0, -3.0])
    >>> for _ in range(4):  # half way to 1, and from one side of 2 to the other
    ...     x = steps.after(x, np.array([0.5, -1.9]) * (x - [1.0, 2.0]) + [1.0, 2.0] - x, np.ones(2))
    >>> x.round(6).tolist()
    [1.0, 2.0]
    """

    def __init__(self) -> None:
        self.points: list[Array] = []
        self.moves: list[Array] = []

    def after(self, point: Array, move: Array, weight: Array) -> Array:
        """Return where to go from a point, with the move that is made there; weights say how much a number counts."""
        self.points, self.moves = [*self.points, point][-MEMORY:], [*self.moves, move][-MEMORY:]
        if len(self.points) == 1:
            return np.asarray(point + move)
        X, F = np.diff(self.points, axis=0), np.diff(self.moves, axis=0)
        share = np.linalg.lstsq((F * weight).T, move * weight, rcond=1e-10)[0]
        return np.asarray(point + move - share @ (X + F))


@dataclass(frozen=True)
class SiteFit:
    """What an approximation found: the posterior of the functions is normal, with means K alpha and covariances K - K R K.

    Attributes
    ----------
    log_evidence
        Its log evidence, or a lower bound of it.
    alphas
        One row a function.
    blocks
        R between two functions, by their places; those that are zero are left out.
    by_K
        The derivative of the log evidence by the covariance matrix of each function; symmetric.
    by_hypers
        Derivatives by the numbers of the likelihood.
    converged, iterations
        How the search for it ended.
    """

    log_evidence: float
    alphas: Array
    blocks: Mapping[tuple[int, int], Array]
    by_K: tuple[Array, ...]
    by_hypers: Mapping[str, Any]
    converged: bool
    iterations: int


class SiteEvidence:
    """The log evidence where targets are not normal, by a normal approximation of the posterior; base of three methods.

    Parameters
    ----------
    X, y
        Rows and targets; classes are numbered from 0.
    max_iter, tol
        Steps of the inner search, and about how far from its goal it stops, in nats.
    """

    name: ClassVar[str]
    exact: ClassVar[bool] = False
    bound: ClassVar[Any] = None

    def __init__(self, X: Any, y: Any, *, max_iter: int = 200, tol: float = 1e-18) -> None:
        self.X, self.y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        self.max_iter, self.tol = max_iter, tol
        self._last: Any = None  # where the search for other hyper-parameters ended: the next one starts there

    def fit_sites(self, Ks: list[Array], likelihood: Any) -> SiteFit:
        """Find the approximation for the covariance matrices of the functions."""
        raise NotImplementedError

    def _fitted(self, covariance: Covariance) -> tuple[SiteFit, list[Any], list[Covariance], Likelihood]:
        rest, likelihood = split_likelihood(covariance)
        if self.name not in likelihood.ways:
            raise InvalidArgument(
                f"method={self.name!r} does not know likelihood={likelihood.word!r}; "
                f"{' and '.join(map(repr, likelihood.ways))} {'does' if len(likelihood.ways) == 1 else 'do'}"
            )
        self.y = likelihood.checked(self.y)
        functions = [rest, *likelihood.parts] if isinstance(likelihood, NoiseProcess) else [rest]
        forward = [part.forward(self.X) for part in functions]
        fit = self.fit_sites([K for K, _ in forward], likelihood)
        return fit, [pull for _, pull in forward], functions, likelihood

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the log evidence of a covariance plus a likelihood, and its gradient by the numbers of both."""
        fit, pulls, _, likelihood = self._fitted(covariance)
        found: Gradient = {}
        for pull, by_K in zip(pulls, fit.by_K, strict=True):
            found.update(pull(by_K))
        own = {name: lambda d=d: d for name, d in fit.by_hypers.items() if name in likelihood.own}
        return fit.log_evidence, {**found, **likelihood.pulled(**own)}

    def posterior(self, covariance: Covariance) -> "SitePosterior":
        """Return the posterior of the functions, which is normal."""
        began = now()
        fit, _, functions, likelihood = self._fitted(covariance)
        bound = None if isinstance(likelihood, SoftmaxClasses) else self.bound  # that is averaged over points
        advice = (
            ""
            if fit.converged
            else "the approximation did not settle; give max_iter=, or take another method="
        )
        info = Info(
            engine=self.name, exact=self.exact, converged=fit.converged, iterations=fit.iterations, advice=advice,
            log_evidence=fit.log_evidence, seconds=now() - began, mass_bound=bound,
        )  # fmt: skip
        return SitePosterior(self.X, fit, functions, likelihood, info)


class SitePosterior(FunctionPosterior):
    """The function behind targets that are not normal, and what targets are at other inputs, averaged over the function."""

    def __init__(
        self, X: Array, fit: SiteFit, functions: list[Covariance], likelihood: Any, info: Info
    ) -> None:
        self.X, self.fit, self.functions, self.likelihood, self.info = X, fit, functions, likelihood, info

    def moments(self, X: Array, *, joint: bool = False) -> FunctionMoments:
        """Return mean and variance of the function; of the first one where there are several."""
        if isinstance(self.likelihood, SoftmaxClasses):
            raise Unanswered(
                "there is a function for each class; ask .latent(X) for means and covariances of all of them"
            )
        return self._moments(X, 0, joint)

    def _moments(self, X: Array, at: int, joint: bool = False) -> FunctionMoments:
        covariance = self.functions[at]
        cross = covariance.value(X, self.X)
        explained = cross @ self.fit.blocks[at, at]
        mean = cross @ self.fit.alphas[at]
        rest, _ = split_white(covariance)
        if rest is None:
            return FunctionMoments(mean[None], np.zeros((1, len(X), len(X)) if joint else (1, len(X))))
        if joint:
            return FunctionMoments(mean[None], (rest.value(X) - explained @ cross.T)[None])
        return FunctionMoments(
            mean[None], np.maximum(rest.diagonal(X) - np.einsum("ij,ij->i", explained, cross), 0.0)[None]
        )

    def latent(self, X: Array) -> tuple[Array, Array]:
        """Return means (functions by inputs) and covariances (inputs by functions by functions) of all functions."""
        n = len(self.fit.alphas)
        means, found = [], np.zeros((len(X), n, n))
        for i in range(n):
            covariance = self.functions[i if len(self.functions) == n else 0]
            cross = covariance.value(X, self.X)
            means.append(cross @ self.fit.alphas[i])
            found[:, i, i] = covariance.diagonal(X)  # what is white in it is noise of a new place, too
            for j in range(n):
                if (i, j) in self.fit.blocks:
                    other = cross if len(self.functions) == 1 else self.functions[j].value(X, self.X)
                    found[:, i, j] -= np.einsum("ij,ij->i", cross @ self.fit.blocks[i, j], other)
        return np.stack(means), found

    def probabilities(self, X: Array) -> Array:
        """Return the probability of each class at the rows of X, averaged over the function."""
        m, V = self.latent(X)
        if isinstance(self.likelihood, SoftmaxClasses):
            return self.likelihood.probabilities(m, V)
        return np.asarray(self.likelihood.probabilities(m[0], np.maximum(V[:, 0, 0], 0.0)))

    def target_moments(self, X: Array) -> tuple[Array, Array]:
        """Return means and variances of targets at the rows of X, averaged over the function."""
        m, V = self.latent(X)
        v = np.maximum(np.einsum("ncc->cn", V), 0.0)
        found: tuple[Array, Array] = self.likelihood.target(*((m, v) if len(m) > 1 else (m[0], v[0])))
        return found
