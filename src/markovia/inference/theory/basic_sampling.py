"""Monte Carlo from first principles: the inverse transform, rejection and importance sampling on any target.

Methods: `inverse_transform` maps uniform numbers through the inverse of a cumulative distribution function.
`rejection_sample` draws from a proposal q and keeps x with probability p(x) / (k q(x)), which needs k q >= p everywhere; the
share that is kept is Z / k, Z being the mass of p. `importance_estimate` keeps every draw and weighs it by p / q: divided by
the number of draws it is unbiased but needs a normalised p; divided by the sum of the weights it needs no normaliser, is
slightly biased, and the mean weight estimates Z. References: von Neumann (1951); Kahn and Marshall (1953); Robert and
Casella (2004), chapters 2 and 3.
Cost: one evaluation a draw. Use these to learn and to test; models have the engines of `markovia.engines`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.tables.conditional import draw_rows
from markovia.inference.weighted_draws.weight_diagnostics import pareto_k
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

LogDensity = Callable[[Any], Any]
Draw = Callable[[np.random.Generator, int], Any]
BISECTIONS = 200
BATCH = 4096


def inverse_transform(
    source: Callable[[Array], Any] | Sequence[float] | Array,
    n: int,
    seed: Seed = None,
    *,
    bracket: tuple[float, float] | None = None,
) -> Array:
    """Draw by inverting a cumulative distribution function.

    Parameters
    ----------
    source
        The inverse of the function (a callable on arrays of numbers in [0, 1)); the probabilities of the outcomes
        0, 1, 2, ...; or, with `bracket`, the increasing function itself, which is inverted by bisection.
    n
        How many draws.
    seed
        A whole number or a NumPy generator.
    bracket
        Two numbers between which the function rises from 0 to 1.

    Examples
    --------
    >>> draws = inverse_transform(lambda u: -np.log1p(-u) / 2.0, 100_000, seed=0)  # exponential, rate 2
    >>> bool(abs(draws.mean() - 0.5) < 0.01)
    True
    >>> np.bincount(inverse_transform([0.2, 0.8], 10_000, seed=0)).round(-2).tolist()
    [2000, 8000]
    """
    check_count("n", n)
    rng = generator(seed)
    if not callable(source):
        weights = np.asarray(source, dtype=np.float64)
        if weights.ndim != 1 or not np.all(weights >= 0) or not np.isclose(weights.sum(), 1.0, atol=1e-6):
            raise InvalidArgument("probabilities are a list of numbers >= 0 that sum to one")
        return draw_rows(weights, n, rng)  # type: ignore[return-value]
    u = rng.random(n)
    if bracket is None:
        return np.asarray(source(u))
    low, high = np.full(n, float(bracket[0])), np.full(n, float(bracket[1]))
    if not low.size:
        return low
    ends = np.asarray(source(np.array([low[0], high[0]])), dtype=np.float64)
    if not (bracket[0] < bracket[1] and ends[0] <= 1e-6 and ends[1] >= 1.0 - 1e-6):
        raise InvalidArgument(
            f"the function rises from {ends[0]:.3g} to {ends[1]:.3g} on bracket={bracket}, not from 0 to 1"
        )
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        below = np.asarray(source(middle)) < u
        low, high = np.where(below, middle, low), np.where(below, high, middle)
        if np.all(high - low <= 4e-16 * np.maximum(np.abs(low), np.abs(high))):
            break
    found: Array = 0.5 * (low + high)
    return found


@dataclass(frozen=True)
class Accepted(InNotebooks):
    """What rejection sampling kept.

    Attributes
    ----------
    draws
        Exact draws from the target, in order.
    tries
        How many were proposed, up to and including the one that gave the last draw.
    acceptance
        The share that was kept; its expectation is Z / k.
    log_mass
        Estimate of log Z of the target: the log of the share, plus log k.
    """

    draws: Any
    tries: int
    acceptance: float
    log_mass: float


def rejection_sample(
    log_target: LogDensity,
    proposal_sample: Draw,
    proposal_log_density: LogDensity,
    log_k: float,
    n: int,
    seed: Seed = None,
    *,
    max_tries: int = 10_000_000,
) -> Accepted:
    """Draw exactly from a target that lies below k times a proposal.

    Parameters
    ----------
    log_target
        Log of the target, which need not be normalised; takes an array of draws, gives one number each.
    proposal_sample
        Called with a NumPy generator and a number of draws.
    proposal_log_density
        Log density of the proposal, normalised.
    log_k
        Log of the factor k with target <= k times proposal everywhere.
    n
        How many draws to return.
    seed
        A whole number or a NumPy generator.
    max_tries
        Stop with an error after this many proposals.

    Raises
    ------
    InvalidArgument
        If the target is seen above k times the proposal, or if too few proposals are kept.

    Examples
    --------
    A normal target under a Cauchy envelope, k = 2 pi / sqrt(e) = 3.810945; the share kept is sqrt(2 pi) / k = 0.657745.

    >>> found = rejection_sample(
    ...     lambda x: -(x**2) / 2, lambda rng, n: rng.standard_cauchy(n),
    ...     lambda x: -np.log(np.pi * (1 + x**2)), np.log(2 * np.pi) - 0.5, 20_000, seed=2)
    >>> len(found.draws), round(found.acceptance, 2)
    (20000, 0.66)
    """
    check_count("n", n, 1)
    check_count("max_tries", max_tries, 1)
    rng = generator(seed)
    kept: list[Any] = []
    have, tries, last = 0, 0, 0
    while have < n:
        if tries >= max_tries:
            raise InvalidArgument(
                f"only {have:,} of {tries:,} proposals were kept, not the n={n:,} asked for; use a proposal nearer to "
                "the target, or importance_estimate"
            )
        x = np.asarray(proposal_sample(rng, BATCH))
        ratio = np.asarray(log_target(x)) - np.asarray(proposal_log_density(x)) - log_k
        if np.any(ratio > 1e-9):
            worst = float(np.max(ratio))
            raise InvalidArgument(
                f"the target exceeds k times the proposal by a factor {np.exp(worst):.4g}; log_k must be at least "
                f"{log_k + worst:.6g}"
            )
        with np.errstate(divide="ignore"):
            accept = np.flatnonzero(np.log(rng.random(BATCH)) < ratio)[: n - have]
        kept.append(x[accept])
        have += len(accept)
        last = tries + int(accept[-1]) + 1 if len(accept) else last
        tries += BATCH
    share = n / last
    return Accepted(np.concatenate(kept), last, share, float(np.log(share) + log_k))


@dataclass(frozen=True)
class Estimate(InNotebooks):
    """An importance-sampling estimate of an expectation.

    Attributes
    ----------
    value, error
        The estimate and its standard error.
    log_mass, log_mass_error
        Log of the mean weight, an estimate of log Z, and its standard error.
    effective
        The effective number of draws.
    pareto_k
        The tail index of the weights; above 0.7 nothing here can be trusted.
    """

    value: float
    error: float
    log_mass: float
    log_mass_error: float
    effective: float
    pareto_k: float


def importance_estimate(
    f: Callable[[Any], Any],
    log_target: LogDensity,
    proposal_sample: Draw,
    proposal_log_density: LogDensity,
    n: int,
    seed: Seed = None,
    *,
    normalised: bool = True,
) -> Estimate:
    """Estimate the expectation of f under a target by weighted draws from a proposal.

    Parameters
    ----------
    f
        Takes an array of draws, gives one number each.
    log_target, proposal_sample, proposal_log_density, seed
        As in `rejection_sample`.
    n
        How many draws.
    normalised
        True divides by the sum of the weights; the target need not be normalised. False divides by n; it must be.

    Examples
    --------
    >>> found = importance_estimate(
    ...     lambda x: x**2, lambda x: -(x**2) / 2, lambda rng, n: 2 * rng.standard_normal(n),
    ...     lambda x: -(x**2) / 8 - np.log(2 * np.sqrt(2 * np.pi)), 50_000, seed=0)
    >>> bool(abs(found.value - 1) < 4 * found.error < 0.05), round(float(np.exp(found.log_mass)), 1)
    (True, 2.5)
    """
    check_count("n", n, 2)
    x = proposal_sample(generator(seed), n)
    logs = np.asarray(log_target(x), dtype=np.float64) - np.asarray(proposal_log_density(x))
    values = np.asarray(f(x), dtype=np.float64)
    top = float(logs.max())
    if not top > -np.inf:
        raise InvalidArgument("every draw of the proposal has weight zero; it misses the target altogether")
    w = np.exp(logs - top)
    total, squares = float(w.sum()), float(np.dot(w, w))
    if normalised:
        value = float(np.dot(w, values)) / total
        error = float(np.sqrt(np.dot(w**2, (values - value) ** 2) * n / (n - 1))) / total
    else:
        terms = np.exp(logs) * values
        value, error = float(terms.mean()), float(terms.std(ddof=1) / np.sqrt(n))
    relative = max(0.0, squares / total**2 - 1.0 / n) * n / (n - 1)
    return Estimate(
        value,
        error,
        top + float(np.log(total / n)),
        float(np.sqrt(relative)),
        total**2 / squares,
        pareto_k(logs),
    )
