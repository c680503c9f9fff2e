"""Samplers for the linear-Gaussian model with an Indian buffet prior: X = (Z * V) A + noise.

    Z ~ IndianBuffet(alpha),  V = 1 or N(0, 1),  A ~ N(0, spread),  noise ~ N(0, noise)
    alpha ~ Gamma(1, 1),  noise ~ InverseGamma(1, scale / 10),  spread ~ InverseGamma(1, scale), each learned or held

- `"collapsed"`: A summed out, a row at a time against the posterior of A from all other rows (the accelerated sampler of
  Doshi-Velez and Ghahramani 2009); features of one row only by Metropolis, proposed from their prior, those there replaced.
  O(rows K (K + columns)) a sweep. For V = 1.
- `"gibbs"`: A drawn; the same moves given A. The only one of the two for weights V.
- `"slice"`: A and the chances of features drawn, those that no row has down to a random level (Teh, Gorur, Ghahramani
  2007, semi-ordered): no Metropolis step, but new features come with values from the prior, so that in many columns it
  hardly finds any by itself; `started` lets "gibbs" find them first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from markovia.factors.processes.beta_process import BetaProcess
from markovia.factors.processes.indian_buffet import IndianBuffet
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.seeds import kernel_seed

_KERNELS = "markovia.kernels.collapsed.latent_features"
_ROOM = 24


@dataclass
class IndianBuffetGibbs:
    """The state of a sampler and its sweep; `run_sampler` runs it."""

    x: Array
    method: Literal["collapsed", "gibbs", "slice"] = "collapsed"
    weighted: bool = False
    missing: Flags | None = None
    alpha: float | None = None
    noise: float | None = None
    spread: float | None = None
    scale: float = 1.0
    z: Array = field(init=False)
    w: Array = field(init=False)
    a: Array = field(init=False)
    hyper: Array = field(init=False)

    def __post_init__(self) -> None:
        rows, wide = self.x.shape
        self.x = np.ascontiguousarray(self.x, dtype=np.float64)
        self.z, self.w = np.zeros((rows, 0)), np.zeros((rows, 0))
        self.a = np.zeros((0, wide))
        start = (1.0, self.scale / 4.0, self.scale)
        fixed = (self.alpha, self.noise, self.spread)
        self.hyper = np.array([s if f is None else f for s, f in zip(start, fixed, strict=True)])

    # -- what a run asks -------------------------------------------------------------------------------------------

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw features, their values, the three hyper-parameters and missing cells once."""
        if self.method == "collapsed":
            self._collapsed(rng)
        elif self.method == "gibbs":
            self.draw_rows(rng, -np.ones(1))
        else:
            self._sliced(rng)
        self._drop()
        self.draw_values(rng)
        self._draw_hyper(rng)
        if self.missing is not None and self.missing.any():
            drawn = self.w @ self.a + np.sqrt(self.hyper[1]) * rng.standard_normal(self.x.shape)
            self.x = np.where(self.missing, drawn, self.x)

    def started(self, rng: np.random.Generator, sweeps: int) -> "IndianBuffetGibbs":
        """Sweep some times, for "slice" as "gibbs", and return the sampler itself."""
        method = self.method
        self.method = "gibbs" if method == "slice" else method
        for _ in range(sweeps):
            self.sweep(rng)
        self.method = method
        return self

    def log_prob(self) -> float:
        """Return log p(X, Z, V) with A summed out, given the hyper-parameters."""
        alpha, noise, spread = self.hyper
        found = IndianBuffet(float(alpha)).log_prob(self.z) + log_marginal(self.x, self.w, noise, spread)
        if self.weighted:
            found -= 0.5 * float((self.w**2).sum() + self.z.sum() * np.log(2.0 * np.pi))
        return found

    def state(self) -> dict[str, Array]:
        """Return the state as arrays."""
        return {"z": self.z, "w": self.w, "a": self.a, "hyper": self.hyper, "x": self.x}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up a state."""
        for name, value in state.items():
            setattr(self, name, np.array(value, dtype=np.float64))

    # -- moves -----------------------------------------------------------------------------------------------------

    def values_law(self) -> tuple[Array, Array]:
        """Return the mean (K, columns) of A given all else, and the K x K covariance of each of its columns."""
        k = self.w.shape[1]
        noise, spread = self.hyper[1:]
        m = np.linalg.inv(self.w.T @ self.w + noise / spread * np.eye(k))
        return m @ self.w.T @ self.x, noise * (m + m.T) / 2.0

    def draw_values(self, rng: np.random.Generator) -> None:
        """Draw A given all else."""
        mean, covariance = self.values_law()
        root = np.linalg.cholesky(covariance) if len(mean) else covariance
        self.a = mean + root @ rng.standard_normal(mean.shape)

    def _collapsed(self, rng: np.random.Generator) -> None:
        alpha, noise, spread = (float(h) for h in self.hyper)
        rows, wide = self.x.shape
        start, seed, size = 0, kernel_seed(rng), np.array([self.z.shape[1]])
        while start < rows:
            k = int(size[0])
            room = k + _ROOM + int(16 * alpha / rows)
            z = np.zeros((rows, room))
            z[:, :k] = self.z
            m, mu = np.zeros((room, room)), np.zeros((room, wide))
            m[:k, :k] = np.linalg.inv(self.z.T @ self.z + noise / spread * np.eye(k))
            mu[:k] = m[:k, :k] @ (self.z.T @ self.x)
            counts = z.sum(axis=0)
            rows_kernel = either(f"{_KERNELS}:collapsed_rows", rows * (k + 1) * (k + 2 * wide))
            start = rows_kernel(
                self.x,
                z,
                counts,
                m,
                mu,
                size,
                alpha,
                noise,
                spread / noise,
                seed,
                start,
                np.empty(room),
                np.empty(wide),
            )
            self.z = np.ascontiguousarray(z[:, : int(size[0])])
        self.w = self.z

    def draw_rows(self, rng: np.random.Generator, chances: Array, others: int = 0) -> None:
        """Draw the rows given A and the chances of features (-1: summed out); `others` more rows have each feature."""
        alpha, noise, spread = (float(h) for h in self.hyper)
        rows, wide = self.x.shape
        start, seed, size = 0, kernel_seed(rng), np.array([self.z.shape[1]])
        while start < rows:
            k = int(size[0])
            room = k + (_ROOM + int(16 * alpha / rows) if chances[0] < 0 else 0)
            z, w, a = (np.zeros((rows, room)), np.zeros((rows, room)), np.zeros((room, wide)))
            z[:, :k], w[:, :k], a[:k] = self.z, self.w, self.a
            rows_kernel = either(f"{_KERNELS}:given_values", rows * (k + 1) * 4 * wide)
            hyper = alpha, noise, spread
            rest = (
                z.sum(axis=0) + others,
                size,
                chances,
                self.weighted,
                *hyper,
                seed,
                start,
                np.empty(wide),
                np.empty(room),
            )
            start = rows_kernel(self.x, z, w, a, *rest)
            k = int(size[0])
            self.z, self.w, self.a = (np.ascontiguousarray(v) for v in (z[:, :k], w[:, :k], a[:k]))

    def _sliced(self, rng: np.random.Generator) -> None:
        """Draw the chances of features in use, a level below them, and all other features above the level; then the rows."""
        rows, wide = self.x.shape
        m = self.z.sum(axis=0)
        used = rng.beta(m, 1.0 + rows - m)
        level = rng.random() * min(1.0, float(used.min(initial=1.0)))
        unseen = BetaProcess(float(self.hyper[0]) / (1.0 + rows), 1.0 + rows)
        most = float(unseen.tail(level))
        others = unseen.from_tail(rng.random(rng.poisson(most)) * most)
        values = np.sqrt(self.hyper[2]) * rng.standard_normal((others.size, wide))
        none = np.zeros((rows, others.size))
        self.z, self.w = np.hstack([self.z, none]), np.hstack([self.w, none])
        self.a = np.concatenate([self.a, values])
        chances = np.clip(np.append(used, others), 1e-300, 1.0 - 1e-15)
        if chances.size:
            self.draw_rows(rng, chances)

    def _drop(self) -> None:
        kept = self.z.any(axis=0)
        self.z, self.w = self.z[:, kept], self.w[:, kept]

    def _draw_hyper(self, rng: np.random.Generator) -> None:
        rows = self.x.shape[0]
        if self.alpha is None:
            self.hyper[0] = rng.gamma(
                1.0 + self.z.shape[1], 1.0 / (1.0 + (1.0 / np.arange(1, rows + 1)).sum())
            )
        if self.noise is None:
            square = ((self.x - self.w @ self.a) ** 2).sum()
            self.hyper[1] = (self.scale / 10.0 + square / 2.0) / rng.gamma(1.0 + self.x.size / 2.0)
        if self.spread is None:
            self.hyper[2] = (self.scale + (self.a**2).sum() / 2.0) / rng.gamma(1.0 + self.a.size / 2.0)


def log_marginal(x: Array, w: Array, noise: Any, spread: Any) -> float:
    """Return log p(X | W) with A summed out: each column of X is N(0, noise I + spread W W').

    Examples
    --------
    >>> round(log_marginal(np.array([[1.0]]), np.array([[1.0]]), 1.0, 3.0), 6)
    -1.737086
    """
    (rows, wide), k = x.shape, w.shape[1]
    inner = np.eye(k) + spread / noise * (w.T @ w)
    across = w.T @ x
    square = (x**2).sum() - spread / noise * (across * np.linalg.solve(inner, across)).sum()
    logs = rows * np.log(2.0 * np.pi * noise) + np.linalg.slogdet(inner)[1]
    return float(-0.5 * (wide * logs + square / noise))
