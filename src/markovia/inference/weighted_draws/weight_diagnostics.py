"""What the weights of draws say about the answer: effective number, largest share, tail index, standard errors.

Importance sampling fails quietly: when the proposal misses where the model has its weight, all draws look alike until one
of them outweighs the rest. Three numbers show it. The *effective number of draws* `(sum w)^2 / sum w^2` (Kong 1992); the
*share* of the heaviest draw; and the *tail index* k of a generalised Pareto distribution fitted to the largest weights
(Vehtari, Simpson, Gelman, Yao and Gabry 2024): above 0.7 the error cannot be trusted at any practical number of draws.

`WeightSums` adds up a chunk of draws in the scale of its largest weight, and two of them can be merged, so
nothing overflows.
"""

from dataclasses import dataclass

import numpy as np

from markovia.runtime.array_types import Array

KEPT_TOPS = 2**18
MAX_TAIL_INDEX = 0.7
FEWEST_EFFECTIVE = 30.0


@dataclass
class WeightSums:
    """Sums over weighted draws, in units of `exp(top)`.

    Attributes
    ----------
    draws, positive
        How many draws, and how many of positive weight.
    top
        The scale: log of the largest weight so far.
    w, w2
        Sums of weights and of their squares.
    a, b, c
        For each number f in [0, 1] that is averaged: sums of `w f`, `w^2 f^2` and `w^2 f`.
    tops
        The largest log weights.
    """

    draws: int
    positive: int
    top: float
    w: float
    w2: float
    a: Array
    b: Array
    c: Array
    tops: Array

    @classmethod
    def none(cls, size: int) -> "WeightSums":
        """Return the sums over no draws."""
        zero = np.zeros(size)
        return cls(0, 0, -np.inf, 0.0, 0.0, zero, zero.copy(), zero.copy(), np.zeros(0))

    def merge(self, other: "WeightSums") -> "WeightSums":
        """Return the sums over the draws of both."""
        top = max(self.top, other.top)
        mine, theirs = _shift(self.top, top), _shift(other.top, top)
        tops = np.concatenate([self.tops, other.tops])
        if len(tops) > 2 * KEPT_TOPS:
            tops = np.partition(tops, len(tops) - KEPT_TOPS)[-KEPT_TOPS:]
        return WeightSums(
            self.draws + other.draws,
            self.positive + other.positive,
            top,
            self.w * mine + other.w * theirs,
            self.w2 * mine**2 + other.w2 * theirs**2,
            self.a * mine + other.a * theirs,
            self.b * mine**2 + other.b * theirs**2,
            self.c * mine**2 + other.c * theirs**2,
            tops,
        )

    # -- answers -----------------------------------------------------------------------------------------------

    @property
    def log_mean(self) -> float:
        """Log of the mean weight; minus infinity if all are zero."""
        return self.top + float(np.log(self.w / self.draws)) if self.w > 0 else -np.inf

    @property
    def log_mean_error(self) -> float:
        """The standard error of `log_mean` (delta method)."""
        if not self.w > 0:
            return np.inf
        n = self.draws
        variance = max(0.0, self.w2 / self.w**2 - 1.0 / n)
        return float(np.sqrt(variance * n / (n - 1))) if n > 1 else np.inf

    def ratios(self) -> tuple[Array, Array]:
        """Return the self-normalised means `a / w` and their standard errors (delta method)."""
        if not self.w > 0:
            return np.zeros_like(self.a), np.full_like(self.a, np.inf)
        p = self.a / self.w
        spread = np.maximum(0.0, self.b - 2.0 * p * self.c + p**2 * self.w2)
        n = self.draws
        return p, np.sqrt(spread * (n / (n - 1.0) if n > 1 else np.inf)) / self.w

    def means(self, log_mass: float) -> tuple[Array, Array]:
        """Return the means of `w f` divided by a known mass, and their standard errors."""
        n = self.draws
        scale = float(np.exp(self.top - log_mass)) if self.w > 0 else 0.0
        p = self.a * scale / n
        variance = np.maximum(0.0, self.b * scale**2 / n - p**2) / max(1, n - 1)
        return p, np.sqrt(variance)

    @property
    def effective(self) -> float:
        """The effective number of draws."""
        return self.w**2 / self.w2 if self.w > 0 else 0.0

    @property
    def largest_share(self) -> float:
        """The share of the heaviest draw."""
        return 1.0 / self.w if self.w > 0 else 1.0

    def details(self) -> "WeightDetails":
        """Return what the weights say of an answer."""
        tail = pareto_k(self.tops, self.draws)
        return WeightDetails(self.effective, self.largest_share, tail, self.log_mean_error)


@dataclass(frozen=True)
class WeightDetails:
    """What the weights of draws say of an answer.

    Attributes
    ----------
    effective_draws
        How many independent draws they are worth.
    largest_share, pareto_k
        The largest weight's share of all, and the shape of the weights' tail; above 0.7 the error is not to be trusted.
    log_mass_error
        The standard error of the log mass.
    acceptance, accepted
        Of rejection sampling: the share of the draws that was kept, and how many.
    proposal
        Of importance sampling: what was drawn from.
    kept, different
        Of resampling: rows kept, and how many differ.
    """

    effective_draws: float
    largest_share: float
    pareto_k: float
    log_mass_error: float
    acceptance: float | None = None
    accepted: int | None = None
    proposal: str | None = None
    kept: int | None = None
    different: int | None = None


def summed(log_weights: Array, a: Array, b: Array, c: Array, top: float) -> WeightSums:
    """Return the sums of a chunk, given the weighted sums in the scale of its largest weight."""
    weights = np.exp(log_weights - top) if top > -np.inf else np.zeros(len(log_weights))
    positive = int(np.count_nonzero(log_weights > -np.inf))
    return WeightSums(
        len(log_weights),
        positive,
        top,
        float(weights.sum()),
        float((weights * weights).sum()),  # a BLAS product would wake its threads
        a,
        b,
        c,
        log_weights[log_weights > -np.inf],
    )


def pareto_k(log_weights: Array, draws: int | None = None) -> float:
    """Return the tail index of importance weights: how heavy the largest ones are.

    Parameters
    ----------
    log_weights
        Logs of the weights; minus infinity for zero.
    draws
        How many draws they are the largest of; all by default.

    Returns
    -------
    float
        Up to 0.5 all is well, up to 0.7 the answer is usable; above, more draws hardly help and the proposal has to be
        better. Minus infinity where the largest weights are all equal, infinity where fewer than five are positive.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bool(pareto_k(rng.exponential(size=10_000) * 0.25) < 0.5 < pareto_k(rng.exponential(size=10_000)))
    True
    """
    logs = np.asarray(log_weights, dtype=np.float64)
    n = len(logs) if draws is None else draws
    logs = logs[logs > -np.inf]
    tail = int(np.ceil(min(0.2 * n, 3.0 * np.sqrt(n))))
    size = min(tail + 1, len(logs))
    if len(logs) < 5 or size < 5:
        return np.inf if len(logs) < 5 and len(logs) < n else -np.inf if _equal(logs) else np.inf
    largest = np.sort(np.partition(logs, len(logs) - size)[-size:])
    if _equal(largest):
        return -np.inf
    excess = np.exp(largest[1:] - largest[-1]) - np.exp(largest[0] - largest[-1])
    excess = excess[excess > 0]
    return _generalised_pareto(excess) if len(excess) >= 5 else np.inf


def _equal(logs: Array) -> bool:
    return bool(len(logs) == 0 or np.ptp(logs) < 1e-10)


def _generalised_pareto(x: Array) -> float:
    """Return the shape of a generalised Pareto distribution by the method of Zhang and Stephens (2009).

    The mean over a quasi-posterior of the scale, and a weak prior that pulls short tails towards one half.
    """
    n = len(x)
    grid = 30 + int(np.sqrt(n))
    quartile = x[int(n / 4.0 + 0.5) - 1]
    theta = 1.0 / x[-1] + (1.0 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3.0 * quartile)
    with np.errstate(divide="ignore", invalid="ignore"):
        k = np.log1p(-theta[:, None] * x).mean(axis=1)
        likelihood = n * (np.log(-theta / k) - k - 1.0)
    likelihood = np.where(np.isfinite(likelihood), likelihood, -np.inf)
    weight = np.exp(likelihood - likelihood.max())
    best = float(np.dot(theta, weight) / weight.sum())
    shape = float(np.log1p(-best * x).mean())
    return (shape * n + 5.0) / (n + 10.0)


def _shift(mine: float, top: float) -> float:
    return float(np.exp(mine - top)) if mine > -np.inf else 0.0
