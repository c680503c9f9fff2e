"""What Markov chains say of themselves: effective sample sizes, R-hat, Monte Carlo errors, burn-in, pictures.

Effective sample size and rank-normalised split R-hat follow Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), with
Geyer's initial monotone sequence; Geweke's (1992) test compares the beginning of a chain with its end. The functions take
arrays of draws, one row a chain (one chain may be one-dimensional). `Diagnostics` is what an engine puts at
`posterior.info.diagnostics`. Cost: one fast Fourier transform a chain, and one sort for ranks.

An answer counts as converged if every R-hat is below 1.05 and the effective sample size at least 100 in all: that shows
that chains from dispersed starts agree, not that there is no region that none of them found.
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, inf, isfinite, log10, sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

R_HAT_LIMIT = 1.05
ESS_FLOOR = 100.0
CHECKED = 32
CHECKED_DRAWS = 500
FEWEST_DRAWS = 8
Kind = Literal["bulk", "tail", "mean"]


def autocorrelation(chains: ArrayLike, max_lag: int | None = None) -> Array:
    """Return the autocorrelation at lags 0, 1, ..., averaged over chains.

    Parameters
    ----------
    chains
        Draws: one chain, or one row a chain.
    max_lag
        The last lag; all of them by default.

    Examples
    --------
    >>> autocorrelation([1.0, -1.0, 1.0, -1.0], max_lag=2).round(3).tolist()
    [1.0, -0.75, 0.5]
    """
    found = _autocovariance(_read(chains))
    first = found[:, 0]
    safe = np.where(first > 0, first, 1.0)
    mean: Array = np.where(first[:, None] > 0, found / safe[:, None], 0.0).mean(axis=0)
    mean[0] = 1.0
    return mean[: None if max_lag is None else max_lag + 1]


def inflation_factor(lag_one: float) -> float:
    """Return how many correlated draws are worth one independent draw, from the lag-one autocorrelation alone.

    It is `(1 + r) / (1 - r)`, right for a chain whose correlation decays geometrically; `ess` uses all lags.

    Examples
    --------
    >>> inflation_factor(0.5), round(1000 / inflation_factor(0.5), 2)
    (3.0, 333.33)
    """
    if not -1 < lag_one < 1:
        raise InvalidArgument(f"an autocorrelation at lag one lies between -1 and 1, not at {lag_one!r}")
    return (1.0 + lag_one) / (1.0 - lag_one)


def ess(chains: ArrayLike, kind: Kind = "bulk") -> float:
    """Return the effective sample size: how many independent draws would do as well.

    Parameters
    ----------
    chains
        Draws: one chain, or one row a chain.
    kind
        "bulk" (on normalised ranks), "tail" (the smaller one of the 5% and 95% quantiles), or "mean" (of the draws as
        they are, which the error of their mean needs).

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> 3500 < ess(draws) < 4500
    True
    """
    whole = _read(chains)
    x = _split(whole)
    if kind == "bulk":
        return _effective(_normal_scores(_with_ties(x)))
    if kind == "mean":
        return _effective(x)
    if kind != "tail":
        raise InvalidArgument(f"kind= is 'bulk', 'tail' or 'mean', not {kind!r}")
    return min(_effective((x <= np.quantile(whole, q)).astype(np.float64)) for q in (0.05, 0.95))


def rhat(chains: ArrayLike, *, ranked: bool = True) -> float:
    """Return split R-hat: how much wider all chains are together than each half of one; 1 if they agree.

    Parameters
    ----------
    chains
        Draws: one row a chain.
    ranked
        Rank-normalise, and also compare spreads (2021); otherwise the classical split R-hat of the draws as they are.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> rhat(draws) < 1.01, rhat(draws + [[0], [0], [0], [3]]) > 1.3
    (True, True)
    """
    x = _split(_read(chains))
    if not ranked:
        return _plain_rhat(x)
    x = _with_ties(x)
    return max(_plain_rhat(_normal_scores(x)), _plain_rhat(_normal_scores(np.abs(x - np.median(x)))))


def mcse(chains: ArrayLike) -> float:
    """Return the Monte Carlo standard error of the mean of all draws.

    Examples
    --------
    >>> import numpy as np
    >>> 0.014 < mcse(np.random.default_rng(0).normal(size=(4, 1000))) < 0.018
    True
    """
    x = _read(chains)
    return float(x.std(ddof=1)) / sqrt(ess(x, "mean")) if x.size > 1 and x.std() > 0 else 0.0


def geweke(chain: ArrayLike, first: float = 0.1, last: float = 0.5) -> float:
    """Return by how many standard errors the mean of a chain's beginning differs from that of its end.

    Values beyond 2 or 3 in size say that the burn-in was too short.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=2000)
    >>> abs(geweke(draws)) < 3, geweke(draws + np.linspace(3, 0, 2000)) > 3
    (True, True)
    """
    x = _read(chain)
    if len(x) != 1:
        raise InvalidArgument("geweke() takes one chain, a one-dimensional array")
    if not (0 < first < 1 and 0 < last < 1 and first + last <= 1):
        raise InvalidArgument(
            f"first= and last= are shares of the chain that do not overlap, not {first!r}, {last!r}"
        )
    n = x.shape[1]
    a, b = x[:, : max(2, int(first * n))], x[:, n - max(2, int(last * n)) :]
    spread = sqrt(mcse(a) ** 2 + mcse(b) ** 2)
    gap = float(a.mean() - b.mean())
    return gap / spread if spread > 0 else (0.0 if gap == 0 else inf * np.sign(gap))


def burn_in_advice(traces: ArrayLike) -> int:
    """Return after how many draws every chain's trace has reached its plateau.

    The plateau is the second half; it is reached where a moving average over a hundredth of the trace first comes within two
    standard deviations of its mean.

    Examples
    --------
    >>> import numpy as np
    >>> rise = np.minimum(np.arange(1000) / 100.0, 1.0) * 50 + np.random.default_rng(0).normal(size=1000)
    >>> 80 < burn_in_advice(rise) < 110
    True
    """
    x = _read(traces)
    n = x.shape[1]
    window = max(1, n // 100)
    end = x[:, n // 2 :]
    smooth = np.stack([np.convolve(row, np.ones(window) / window, mode="valid") for row in x])
    near = np.abs(smooth - end.mean(axis=1, keepdims=True)) <= 2.0 * end.std(axis=1, keepdims=True) + 1e-12
    return int(near.argmax(axis=1).max())


@dataclass(frozen=True)
class Diagnostics(InNotebooks):
    """How a run of Markov chains went.

    Attributes
    ----------
    quantities
        What was traced draw by draw: the log weight, and states as "name=state" (their full conditionals where the engine
        averages these). At most 200; running batch means stand for the others.
    traces
        The draws: chains, draws, quantities.
    warm
        The log weight in the burn-in: chains, draws.
    acceptance
        Share of proposals accepted; None for samplers that propose nothing.
    r_hat
        The largest R-hat: classical for every probability asked for, rank-normalised for the log weight and a few states.
    effective
        The smallest effective sample size of the probabilities asked for, from batch means, and of the log weight.
    error
        The largest Monte Carlo standard error of the probabilities asked for.
    converged, advice
        Whether R-hat is below 1.05 and the effective sample size at least 100, and what to do where not.
    burn_in
        How many draws it took the log weight to reach its plateau; see `burn_in_advice`.
    """

    quantities: list[str]
    traces: Array = field(repr=False)
    warm: Array = field(repr=False)
    acceptance: float | None
    r_hat: float
    effective: float
    error: float
    converged: bool
    advice: str
    thin: int = 1

    @cached_property
    def burn_in(self) -> int:
        """Draws after which the log weight of every chain had reached its plateau, counted from the start."""
        return burn_in_advice(np.concatenate([self.warm, self.traces[:, :, 0]], axis=1))

    @cached_property
    def _table(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for q in range(len(self.quantities)):
            x = self.traces[:, :, q]
            rows.append(
                {
                    "mean": float(x.mean()),
                    "sd": float(x.std(ddof=1)) if x.size > 1 else 0.0,
                    "mcse": mcse(x),
                    "ess_bulk": ess(x),
                    "ess_tail": ess(x, "tail"),
                    "r_hat": rhat(x),
                    "lag_1": float(autocorrelation(x, 1)[-1]),
                }
            )
        return pd.DataFrame(rows, index=pd.Index(self.quantities, name="quantity"))

    def summary(self) -> "pd.DataFrame":
        """Return one row a traced quantity: mean, sd, mcse, ess_bulk, ess_tail, r_hat, lag_1."""
        return self._table.copy()

    def autocorrelation(self, quantity: str = "log weight", max_lag: int | None = None) -> Array:
        """Return the autocorrelation of a traced quantity, averaged over chains."""
        return autocorrelation(self.trace(quantity), max_lag)

    def trace(self, quantity: str = "log weight") -> Array:
        """Return the draws of a traced quantity, one row a chain."""
        if quantity not in self.quantities:
            raise InvalidArgument(
                f"{quantity!r} was not traced; these were: {', '.join(self.quantities[:8])}"
                f"{', ...' if len(self.quantities) > 8 else ''}"
            )
        found: Array = self.traces[:, :, self.quantities.index(quantity)]
        return found

    def plot_trace(
        self, quantity: str = "log weight", *, ax: "Axes | None" = None, title: str | None = None
    ) -> "Axes":
        """Draw a traced quantity against time, one line a chain, burn-in included; returns the matplotlib axes."""
        return ports.draw("plot-trace", self, quantity, ax=ax, title=title)

    def plot_autocorrelation(
        self,
        quantity: str = "log weight",
        *,
        max_lag: int = 50,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> "Axes":
        """Draw the autocorrelation of a traced quantity, one line a chain; returns the matplotlib axes."""
        return ports.draw("plot-autocorrelation", self, quantity, max_lag=max_lag, ax=ax, title=title)

    def __str__(self) -> str:
        chains, draws, _ = self.traces.shape
        lines = [
            f"{chains} chains of {draws:,} draws: {'converged' if self.converged else 'NOT CONVERGED'}",
            f"  largest R-hat {self.r_hat:.4g}, smallest effective sample size {self.effective:,.0f}, "
            f"largest error {self.error:.2g}",
            f"  log weight on its plateau after {self.burn_in:,} of {self.warm.shape[1]:,} burn-in draws",
        ]
        if self.acceptance is not None:
            lines.append(f"  {100 * self.acceptance:.1f}% of proposals accepted")
        if not self.converged:
            lines.append(f"  {self.advice}")
        return "\n".join(lines)


def diagnose(
    quantities: list[str],
    traces: Array,
    *,
    warm: Array,
    batch_means: Array,
    acceptance: float | None = None,
    thin: int = 1,
) -> Diagnostics:
    """Return the diagnostics of a run: cheap ones now, exact ones when they are asked for.

    Parameters
    ----------
    quantities, traces, warm, acceptance
        As in `Diagnostics`.
    batch_means
        For every probability that was asked for, its average over consecutive batches: chains, batches, probabilities.
    """
    chains, draws, n = traces.shape
    hats = [1.0]
    step = max(1, draws // CHECKED_DRAWS)
    checked = np.unique(np.linspace(0, n - 1, min(n, CHECKED)).astype(int))
    hats.extend(rhat(traces[:, ::step, q]) for q in checked)
    sizes = [_effective(_split(traces[:, ::step, 0])) * (step if step > 1 else 1)]
    error = inf
    if batch_means.shape[1] >= 2 and batch_means.shape[2]:
        batches = batch_means.shape[1]
        chain_means = batch_means.mean(axis=1)
        half = batches // 2
        halves = np.concatenate([batch_means[:, :half].mean(axis=1), batch_means[:, half:].mean(axis=1)])
        within = (halves * (1.0 - halves)).mean(axis=0)
        between = halves.var(axis=0, ddof=1)
        stuck = (within <= 1e-12 * between) & (between > 1e-18)
        ratio = between / np.where(within > 0, within, 1.0)
        hats.append(inf if stuck.any() else float(np.sqrt(1.0 + ratio.max())))
        spread = batch_means.reshape(chains * batches, -1).var(axis=0, ddof=1) / (chains * batches)
        if (
            chains > 1
        ):  # batches of chains that disagree vary too little; with few chains that has to be plain
            apart = chain_means.var(axis=0, ddof=1) / chains
            spread = np.where(apart > 6.0 * spread, apart, spread)
        error = float(np.sqrt(spread.max()))
        p = chain_means.mean(axis=0)
        varies = (spread > 1e-24) & (p > 0) & (p < 1)
        sizes.append(float((p[varies] * (1 - p[varies]) / spread[varies]).min(initial=inf)))
    elif n > 1 and draws >= FEWEST_DRAWS:  # stopped before two batches were full: from the traces
        error = max(mcse(traces[:, :, q]) for q in checked if q)
    worst, fewest = float(max(hats)), float(min(sizes))
    fewest = min(fewest, float(chains * draws)) if isfinite(fewest) else float(chains * draws)
    converged = worst < R_HAT_LIMIT and (fewest >= ESS_FLOOR or error == 0.0)
    return Diagnostics(
        quantities,
        traces,
        warm,
        acceptance,
        worst,
        fewest,
        error,
        converged,
        _advice(converged, worst, fewest, draws),
        thin,
    )


def _advice(converged: bool, worst: float, fewest: float, draws: int) -> str:
    if converged:
        return f"errors halve with four times the draws ({4 * draws:,} a chain)"
    if worst > 1.5:
        return (
            f"the chains disagree (R-hat {worst:.3g}): they may be stuck in separate regions; try "
            "engine='parallel-tempering', Gibbs(blocks='trees'), or an exact engine"
        )
    factor = max(ESS_FLOOR / max(fewest, 1.0), (worst**2 - 1.0) / (R_HAT_LIMIT**2 - 1.0), 1.5)
    return f"about draws={_round_up(draws * factor):,} a chain would do"


def _round_up(value: float) -> int:
    digits = 10 ** max(0, int(log10(max(value, 1.0))) - 1)
    return int(ceil(value / digits) * digits)


def _read(chains: ArrayLike) -> Array:
    x = np.asarray(chains, dtype=np.float64)
    if x.ndim == 1:
        x = x[None, :]
    if x.ndim != 2 or not x.size:
        raise InvalidArgument(f"draws are an array of chains by draws, not of shape {np.shape(chains)}")
    return x


def _split(x: Array) -> Array:
    """Return both halves of every chain as chains; of an odd number of draws the middle one is left out."""
    half = x.shape[1] // 2
    return x if half < 2 else np.concatenate([x[:, :half], x[:, x.shape[1] - half :]])


def _with_ties(x: Array) -> Array:
    """Round draws to twelve digits of the largest: weights added up in another order are the same to their ranks."""
    size = float(np.abs(x).max(initial=0.0))
    return np.round(x / size, 12) if 0.0 < size < inf else x


def _normal_scores(x: Array) -> Array:
    """Return the draws replaced by normal quantiles of their ranks, ties averaged."""
    from scipy.special import ndtri

    _, where, count = np.unique(x, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - 0.5 * (count - 1))[where].reshape(x.shape)
    scores: Array = ndtri((ranks - 0.375) / (x.size + 0.25))
    return scores


def _plain_rhat(x: Array) -> float:
    n = x.shape[1]
    if n < 2 or len(x) < 2:
        return inf if n < 2 else 1.0
    within = float(x.var(axis=1, ddof=1).mean())
    between = float(x.mean(axis=1).var(ddof=1))
    if within <= 1e-12 * between:
        return 1.0 if between <= 1e-24 else inf
    return sqrt((n - 1) / n + between / within) if within > 0 else 1.0


def _autocovariance(x: Array) -> Array:
    """Return the biased autocovariance of each chain at all lags, by a fast Fourier transform."""
    from scipy.fft import irfft, next_fast_len, rfft

    n = x.shape[1]
    size = next_fast_len(2 * n, real=True)
    centred = x - x.mean(axis=1, keepdims=True)
    waves = rfft(centred, n=size, axis=1)
    found: Array = irfft(waves * np.conj(waves), n=size, axis=1)[:, :n] / n
    return found


def _effective(x: Array) -> float:
    """Return the effective sample size of chains as they are."""
    m, n = x.shape
    if n < 4 or np.ptp(x) <= 1e-300:
        return float(x.size)
    covariance = _autocovariance(x)
    within = float(covariance[:, 0].mean()) * n / (n - 1)
    total = within * (n - 1) / n + (float(x.mean(axis=1).var(ddof=1)) if m > 1 else 0.0)
    if total <= 0:
        return float(x.size)
    rho = 1.0 - (within - covariance.mean(axis=0)) / total
    rho[0] = 1.0
    pairs = rho[0 : 2 * ((n - 1) // 2) : 2] + rho[1 : 2 * ((n - 1) // 2) : 2]
    negative = np.flatnonzero(pairs <= 0)
    end = int(negative[0]) if len(negative) else len(pairs)
    tau = -1.0 + 2.0 * float(np.minimum.accumulate(pairs[:end]).sum())
    if end < len(pairs):
        tau += max(0.0, float(rho[2 * end]))
    return x.size / max(tau, 1.0 / log10(x.size))
