"""Gittins indices: what an arm of a discounted bandit is worth; the arm of the largest index is the best to pull.

The index of an arm in a state is the fixed reward a step for which one is indifferent between that reward for ever and
pulling the arm with the right to stop:

    index = sup over stopping times t >= 1 of  E[sum_{i < t} g^i r_i] / E[sum_{i < t} g^i]

Method: for a finite chain, states are eliminated from the largest index down (Sonin 2008): the state with the largest
ratio of reward to time is taken out, and what passes through it is added to the rows of the others. For an arm of zeros
and ones with a Beta prior the state space is a tree without end. It is cut at some depth; there the value of the game
with a fixed reward `l` is at least that of the better of the two for ever, max(l, E p), and at most that of knowing p,
E max(l, p). Both games are solved for many `l` at once, and two searches close in on the index from below and from
above; the depth grows until the two agree. So the bounds are proved, up to rounding.

References: Gittins (1979); Whittle (1980) for the game; Sonin (2008). Cost: S^3 for a chain; depth^2 a search for Beta
arms, the depth about log(1 / tolerance) / (1 - g).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, InvalidTable, TooLarge
from markovia.runtime.array_types import Array
from markovia.runtime.checks import LEVEL, POSITIVE, check, numbers
from markovia.runtime.memory_budget import readable
from markovia.runtime.shown import InNotebooks

TRIED = 32
"""Fixed rewards that are tried in one pass."""
DEEPEST = 8_000
"""Pulls to look ahead at most."""
ROUNDING = 1e-15
"""What rounding may do to a value in one step; steps add up to this over 1 - discount."""


@dataclass(frozen=True)
class GittinsIndex(InNotebooks):
    """An index with proved bounds.

    Attributes
    ----------
    value
        The index: a number, or one for each state of a chain.
    lower, upper
        Bounds on it; the same as the value for a chain, whose indices are exact up to rounding.
    depth
        How many pulls ahead were looked at; 0 for a chain.
    """

    value: Any
    lower: Any
    upper: Any
    depth: int

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        if np.ndim(self.value):
            return f"Gittins indices {np.round(self.value, 6).tolist()}"
        return f"Gittins index {self.value:.9g} (from {self.lower:.9g} to {self.upper:.9g}, {self.depth} pulls ahead)"


def gittins_index(
    arm: Any, rewards: ArrayLike | None = None, *, discount: float, tolerance: float = 1e-9
) -> GittinsIndex:
    """Return the Gittins index of an arm: of zeros and ones with a Beta prior, or of each state of a finite chain.

    Parameters
    ----------
    arm
        A Beta distribution of `markovia.distributions` or `markovia.exponential`, a pair of its two counts, or a
        conjugate prior of a `Bernoulli`; or the table of moves of a chain, whose rows sum to one.
    rewards
        For a chain: the expected reward of a pull in each state.
    discount
        What a reward one pull later is worth, between 0 and 1.
    tolerance
        How far apart the bounds may be, for a Beta arm.

    Returns
    -------
    GittinsIndex
        The index and its bounds.

    Raises
    ------
    TooLarge
        If a discount so near to 1 needs too long a look ahead for the tolerance.

    Examples
    --------
    >>> print(gittins_index((1, 1), discount=0.9, tolerance=1e-8))
    Gittins index 0.70288919... (from 0.7028891... to 0.7028891..., ... pulls ahead)
    >>> chain = gittins_index([[0, 1], [1, 0]], [0.0, 1.0], discount=0.5)
    >>> chain.value.round(6).tolist()
    [0.333333, 1.0]
    """
    check("discount", discount, LEVEL)
    check("tolerance", tolerance, POSITIVE)
    if rewards is not None:
        found = _chain_indices(arm, rewards, discount)
        return GittinsIndex(found, found, found, 0)
    a, b = beta_counts(arm)
    return _beta_index(a, b, discount, max(tolerance, 1e-12))


def beta_counts(prior: Any) -> tuple[float, float]:
    """Return the two numbers of a Beta prior, in whatever form it comes."""
    for one, other in (("concentration1", "concentration0"), ("a", "b")):
        if hasattr(prior, one) and hasattr(prior, other):
            pair = getattr(prior, one), getattr(prior, other)
            break
    else:
        chi, nu = getattr(prior, "chi", None), getattr(prior, "nu", None)
        if chi is not None and type(getattr(prior, "family", None)).__name__ == "Bernoulli":
            pair = chi[0], nu - chi[0]
        else:
            pair = prior
    given = numbers(
        pair, "an arm is a Beta prior, two positive numbers such as (1, 1), or a chain with its rewards="
    )
    if given.shape != (2,) or not (np.isfinite(given) & (given > 0)).all():
        raise InvalidArgument(
            f"an arm is a Beta prior, two positive numbers such as (1, 1), or a chain with its rewards=, not {prior!r}"
        )
    return float(given[0]), float(given[1])


def _chain_indices(transitions: Any, rewards: ArrayLike, discount: float) -> Array:
    moves = numbers(transitions, "the moves of a chain are a square table of numbers", InvalidTable)
    gains = numbers(rewards, "rewards= has a number for each state")
    if moves.ndim != 2 or moves.shape[0] != moves.shape[1] or not len(moves):
        raise InvalidTable(f"the moves of a chain are a square table, not of shape {moves.shape}")
    if gains.shape != (len(moves),) or not np.isfinite(gains).all():
        raise InvalidArgument(f"rewards= has a finite number for each of {len(moves)} states")
    off = ~(np.abs(moves.sum(axis=1) - 1.0) <= 1e-6) | ~(moves >= 0).all(axis=1)
    if off.any():
        raise InvalidTable(
            f"row {int(off.argmax())} of the moves is no distribution: it sums to {moves[off][0].sum():g}"
        )
    # each state's weighted moves, reward and time until what is left is reached
    flow = discount * moves / moves.sum(axis=1, keepdims=True)
    reward, time = gains, np.ones(len(gains))
    left, found = np.ones(len(gains), dtype=bool), np.zeros(len(gains))
    for _ in range(len(gains)):
        best = int(np.argmax(np.where(left, reward / time, -np.inf)))
        found[best] = reward[best] / time[best]
        left[best] = False
        through = np.where(left, flow[:, best] / (1.0 - flow[best, best]), 0.0)
        reward = reward + through * reward[best]
        time = time + through * time[best]
        flow = flow + np.outer(through, np.where(left, flow[best], 0.0))
    return found


def _beta_index(a: float, b: float, discount: float, tolerance: float) -> GittinsIndex:
    # at this depth what the cut leaves open is worth less than the tolerance even where nothing more is learned
    depth = max(8, int(np.ceil(np.log(0.25) / np.log(discount))))
    low, high = a / (a + b), 1.0  # one pull and stopping gives the mean
    while True:
        if depth > DEEPEST:
            raise TooLarge(
                f"discount={discount:g} needs more than {DEEPEST:,} pulls ahead for bounds {tolerance:g} apart "
                f"({readable(8.0 * TRIED * DEEPEST)} a pass); a larger tolerance= does with fewer",
                operations=float(TRIED) * DEEPEST**2,
            )
        low = _root(a, b, discount, depth, low, high, 0.2 * tolerance, knowing=False)[0]
        high = _root(a, b, discount, depth, low, high, 0.2 * tolerance, knowing=True)[1]
        if high - low <= tolerance:
            return GittinsIndex(0.5 * (low + high), low, high, depth)
        depth *= 2


def _root(
    a: float, b: float, discount: float, depth: int, low: float, high: float, width: float, *, knowing: bool
) -> tuple[float, float]:
    """Return two fixed rewards around the one at which pulling and not pulling are worth the same."""
    while high - low > width:
        tried = np.linspace(low, high, TRIED + 2)[1:-1]
        worth = _advantage(a, b, discount, depth, tried, knowing=knowing)
        # rounding must not push a bound past the index
        noise = ROUNDING / (1.0 - discount)
        clear = worth >= -noise if knowing else worth > noise
        above = int(np.count_nonzero(np.logical_and.accumulate(clear)))
        edges = np.concatenate([[low], tried, [high]])
        low, high = float(edges[above]), float(edges[above + 1])
        if above in (0, TRIED) and high - low >= edges[-1] - edges[0]:
            break
    return low, high


def _advantage(a: float, b: float, discount: float, depth: int, fixed: Array, *, knowing: bool) -> Array:
    """Return by how much pulling once, with the right to go on, beats each fixed reward for ever (in rewards a step).

    Values are kept as averages a step, that is times 1 - discount.
    """
    from scipy.special import betainc

    wins = np.arange(depth + 1.0)
    p, q = (a + wins)[:, None], (b + depth - wins)[:, None]
    mean = p / (p + q)
    value: Array = np.maximum(fixed, mean)
    if knowing:  # E max(l, p) = l P(p < l) + E[p; p > l]
        value = fixed * betainc(p, q, fixed) + mean * (1.0 - betainc(p + 1.0, q, fixed))
    for pulled in range(depth - 1, -1, -1):
        mean = ((a + wins[: pulled + 1]) / (a + b + pulled))[:, None]
        ahead = mean * value[1 : pulled + 2] + (1.0 - mean) * value[: pulled + 1]
        value = (1.0 - discount) * mean + discount * ahead
        if pulled:
            value = np.maximum(fixed, value)
    return np.asarray(value[0] - fixed)
