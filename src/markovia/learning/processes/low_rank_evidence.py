"""Processes of few functions: the log evidence of n rows in time n m^2, and what is known of the function.

A basis has m functions; whitened, they are the rows v(x) of a matrix V with f(x) = v(x) w + rest, w ~ N(0, 1). Inducing
points (`inducing_points.py`) and finite features (`feature_evidence.py`) are bases. What is left of the variance of f,
r(x) = k(x, x) - |v(x)|^2, is dropped (SoR, DTC), given to the noise of each row (FITC; Snelson and Ghahramani 2006), or
taxed, -sum r / (2 noise), which makes the value a bound from below (SGPR; Titsias 2009). With the noise's variances l,

    B = 1 + V' l^-1 V,   b = V' l^-1 y,   2 log p(y) = -n log 2 pi - sum log l - log |B| - y' l^-1 y + b' B^-1 b.

Rows pass twice, for the sums B and b and for the gradient: blocks that fit into memory are kept, others are made anew.
Blocks are shared out among threads in an order of their own, so that the number of threads changes no number.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable
from math import log, pi
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovia.factors.covariances.algebra import White, added
from markovia.factors.covariances.covariance import Covariance
from markovia.inference.gaussian.function_values import FunctionMoments, FunctionPosterior, as_rows
from markovia.inference.result import Info
from markovia.learning.components.block_passes import one_blas_thread
from markovia.learning.processes.evidence_method import (
    Gradient,
    function_and_noise,
    rows_and_targets,
    with_noise,
)
from markovia.runtime.array_types import Array
from markovia.runtime.memory_budget import default_budget
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.threads import in_parallel

CELLS = 400_000
"""Cells of a block, rows times functions: about what a cache holds."""
PARTS = 16
"""Parts that rows are shared out in; each adds its blocks up in order."""
KEPT = 2**30
"""Bytes of blocks that are kept between the two passes at most."""


class Basis(NamedTuple):
    """The functions that a process is made of, for one covariance.

    Attributes
    ----------
    size
        How many functions there are.
    values
        From inputs to the functions there, rows by functions.
    forward
        The same, with what pulls weights back to hyper-parameters.
    whiten
        A lower triangular matrix with v(x) = values(x) whiten'; None where they are white already.
    pull_root
        From weights of the covariance matrix that it whitens to derivatives by hyper-parameters.
    covariance
        What r(x) is counted by; None where the functions are all there is.
    places
        The inputs whose values of the function the functions stand for, where they do.
    note
        What `Info` should say of it.
    """

    size: int
    values: Callable[[Array], Array]
    forward: Callable[[Array], tuple[Array, Callable[[Array], Gradient]]]
    whiten: Any = None
    pull_root: Callable[[Array], Gradient] = lambda W: {}
    covariance: Covariance | None = None
    places: Array | None = None
    note: str = ""


class _Sums(NamedTuple):
    """What the first pass adds up: V' l^-1 V, V' l^-1 y, sum log l, y' l^-1 y, sum r / l."""

    S: Any = 0.0
    b: Any = 0.0
    logs: float = 0.0
    squares: float = 0.0
    left: float = 0.0

    def __add__(self, other: Any) -> "_Sums":
        return _Sums(*(mine + its for mine, its in zip(self, other, strict=True)))


class _Solved(NamedTuple):
    """The sums, a factor of B, its inverse, B^-1 b and the log evidence."""

    sums: _Sums
    factor: Array
    inverse: Array
    weights: Array
    value: float


class LowRankEvidence:
    """The log evidence and the posterior of a process of few functions; a subclass says its `basis`.

    Parameters
    ----------
    X, y
        Rows of inputs, and targets without their mean.
    """

    name: ClassVar[str] = ""
    exact: ClassVar[bool] = False
    left_over: ClassVar[str] = "dropped"
    """What becomes of the variance that the functions leave in the evidence: "dropped", "noise" or "taxed"."""
    whole: ClassVar[bool] = True
    """Whether the posterior has it."""

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = rows_and_targets(X, y)

    def basis(self, covariance: Covariance) -> Basis:
        """Return the functions that stand for a covariance without noise."""
        raise NotImplementedError

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the log evidence (a bound on it where the rest is taxed), and its gradient."""
        basis, noise, variance = self._read(covariance)
        kept: dict[int, Any] | None = (
            {} if 32.0 * len(self.y) * basis.size < min(KEPT, default_budget()) else None
        )
        with one_blas_thread():
            solved = self._solve(basis, variance, kept)
            found, slope = self._pull(basis, variance, solved, {} if kept is None else kept)
        return solved.value, with_noise(found, noise, slope)

    def posterior(self, covariance: Covariance) -> "LowRankPosterior":
        """Return what is known of the function."""
        basis, _, variance = self._read(covariance)
        with one_blas_thread():
            solved = self._solve(basis, variance, None)
        bound = "lower" if self.left_over == "taxed" else None
        info = Info(self.name, log_evidence=solved.value, mass_bound=bound, note=basis.note)  # type: ignore[arg-type]
        return LowRankPosterior(
            basis, solved.factor, solved.weights, basis.covariance if self.whole else None, info
        )

    # -- the two passes -------------------------------------------------------------------------------------------

    def _read(self, covariance: Covariance) -> tuple[Basis, tuple[White, ...], float]:
        rest, noise, variance = function_and_noise(covariance, self.name)
        return self.basis(rest), noise, variance

    def _parts(self, size: int) -> list[list[slice]]:
        n, step = len(self.y), max(64, CELLS // size)
        blocks = [slice(low, min(n, low + step)) for low in range(0, n, step)]
        return [blocks[i::PARTS] for i in range(min(PARTS, len(blocks)))]

    def _rows(self, basis: Basis, rows: slice, variance: float) -> tuple[Any, ...]:
        """Return V, the pull of its values, what is left of variances with its pull, and the weights 1 / l, of a block."""
        values, pull = basis.forward(self.X[rows])
        V = whitened(values, basis.whiten)
        left, pull_left = np.zeros(()), None
        if self.left_over != "dropped":
            assert basis.covariance is not None
            prior, pull_left = basis.covariance.forward_diagonal(self.X[rows])
            left = np.maximum(prior - np.einsum("ij,ij->i", V, V), 0.0)
        noise = variance + left if self.left_over == "noise" else np.full(len(V), variance)
        return V, pull, left, pull_left, 1.0 / noise

    def _solve(self, basis: Basis, variance: float, kept: dict[int, Any] | None) -> _Solved:
        from scipy.linalg import cho_solve, cholesky

        eye = np.eye(basis.size)

        def first(blocks: list[slice], _: Any) -> _Sums:
            total = _Sums()
            for rows in blocks:
                made = self._rows(basis, rows, variance)
                V, _, left, _, w = made
                if kept is not None:
                    kept[rows.start] = made
                y, scaled = self.y[rows], np.sqrt(w)[:, None] * V
                total += _Sums(
                    scaled.T @ scaled, V.T @ (w * y), -np.log(w).sum(), w @ (y * y), float((w * left).sum())
                )
            return total

        sums = sum(in_parallel(first, self._parts(basis.size), lambda: None), _Sums())
        factor = cholesky(sums.S + eye, lower=True)
        weights = cho_solve((factor, True), sums.b)
        half_log = np.log(np.diag(factor)).sum()
        value = -0.5 * (len(self.y) * log(2.0 * pi) + sums.logs + sums.squares - sums.b @ weights) - half_log
        value -= 0.5 * sums.left if self.left_over == "taxed" else 0.0
        return _Solved(sums, factor, cho_solve((factor, True), eye), weights, float(value))

    def _pull(
        self, basis: Basis, variance: float, solved: _Solved, kept: dict[int, Any]
    ) -> tuple[Gradient, float]:
        """Return derivatives of the value by hyper-parameters, and by the noise variance."""
        (S, b, _, squares, left_sum), _, inverse, beta, _ = solved
        whiten = basis.whiten
        taxed, noisy = self.left_over == "taxed", self.left_over == "noise"
        by_S = -0.5 * (inverse + np.outer(beta, beta))
        by_V = 2.0 * by_S + (np.eye(len(S)) if taxed else 0.0)  # dV = l^-1 (V by_V + y beta'), noise aside
        by_root = by_V @ S + np.outer(beta, b)
        # the derivative of V goes back to the values; one product does both where all rows have the same noise
        back, outer = (by_V, beta) if whiten is None or noisy else (by_V @ whiten, beta @ whiten)

        def second(blocks: list[slice], _: Any) -> tuple[list[Gradient], Any, float]:
            found: list[Gradient] = []
            squared, by_noise = np.zeros(()), 0.0
            for rows in blocks:
                V, pull, _, pull_left, w = kept.pop(rows.start, None) or self._rows(basis, rows, variance)
                y = self.y[rows]
                G = V @ back
                G += np.outer(y, outer)
                if noisy:
                    fitted = V @ beta
                    by_l = -(w**2) * 0.5 * (np.einsum("ij,ij->i", G, V) + y * fitted - y * y + 1.0 / w)
                    by_noise += by_l.sum()
                    G = w[:, None] * G
                    G -= (2.0 * by_l)[:, None] * V
                    squared = squared - 2.0 * (V.T @ (by_l[:, None] * V))
                    found.append(pull_left(by_l))
                    G = G if whiten is None else G @ whiten
                else:
                    G *= w[0]
                    if taxed:
                        found.append(pull_left(-0.5 * w))
                found.append(pull(G))
                found = [added(found)]
            return found, squared, by_noise

        results = in_parallel(second, self._parts(basis.size), lambda: None)
        found = [part for result in results for part in result[0]]
        if whiten is not None:
            by_root = by_root + sum(result[1] for result in results)
            W = whiten.T @ by_root @ whiten
            found.append(basis.pull_root(-0.25 * (W + W.T)))
        if noisy:
            return added(found), float(sum(result[2] for result in results))
        slope = np.vdot(by_S, S) + beta @ b + 0.5 * (len(self.y) - squares - (left_sum if taxed else 0.0))
        return added(found), float(-slope / variance)


class LowRankPosterior(FunctionPosterior):
    """A function of few functions whose weights are known up to a normal distribution, N(weights, B^-1)."""

    def __init__(
        self, basis: Basis, factor: Array, weights: Array, whole: Covariance | None, info: Info
    ) -> None:
        self.basis, self._factor, self.function_weights = basis, factor, weights
        self._whole, self.info = whole, info

    def moments(self, X: Array, *, joint: bool = False) -> FunctionMoments:
        """Return the mean and variances, or the covariance matrix, at the rows of X."""
        if joint:
            V = self._functions(X)
            T = self._spread(V)
            rest = 0.0 if self._whole is None else self._whole.value(X, X) - V @ V.T
            return FunctionMoments((V @ self.function_weights)[None], (T @ T.T + rest)[None])
        means, variances = np.empty(len(X)), np.empty(len(X))
        step = max(64, CELLS // self.basis.size)
        for low in range(0, len(X), step):
            part = X[low : low + step]
            V = self._functions(part)
            T = self._spread(V)
            rest = 0.0
            if self._whole is not None:
                rest = np.maximum(self._whole.diagonal(part) - np.einsum("ij,ij->i", V, V), 0.0)
            means[low : low + step] = V @ self.function_weights
            variances[low : low + step] = np.einsum("ij,ij->i", T, T) + rest
        return FunctionMoments(means[None], variances[None])

    def draws(self, n: int, seed: Seed = None) -> Callable[[Any], Array]:
        """Return n functions: weights drawn once; a draw of the prior is moved to them where the basis leaves variance.

        The prior's draw is made of random features (Matheron's rule; Wilson and others 2020).
        """
        from scipy.linalg import solve_triangular

        rng = generator(seed)
        noise = rng.standard_normal((len(self.function_weights), n))
        drawn = self.function_weights[:, None] + solve_triangular(self._factor, noise, lower=True, trans=1)
        prior: Callable[[Array], Array] | None = None
        if self._whole is not None:
            from markovia.learning.processes.feature_expansions import prior_draws

            prior = prior_draws(self._whole, n, rng)
            drawn = drawn - whitened(prior(self.basis.places), self.basis.whiten).T  # type: ignore[arg-type]

        def function(X: Any) -> Array:
            rows = as_rows(X)
            return np.asarray((0.0 if prior is None else prior(rows)) + (self._functions(rows) @ drawn).T)

        return function

    def _functions(self, X: Array) -> Array:
        return whitened(self.basis.values(X), self.basis.whiten)

    def _spread(self, V: Array) -> Array:
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self._factor, V.T, lower=True).T)


def whitened(values: Array, whiten: Array | None) -> Array:
    """Return rows times the transposed inverse of a lower triangular matrix; as they are where there is none."""
    if whiten is None:
        return values
    from scipy.linalg.blas import dtrmm

    return np.asarray(dtrmm(1.0, whiten, values.T, lower=1).T)


def inverse_root(root: Array) -> Array:
    """Return the inverse of a lower triangular matrix."""
    from scipy.linalg.lapack import dtrtri

    return np.asarray(dtrtri(root, lower=1)[0])
