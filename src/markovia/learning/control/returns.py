"""Returns and advantages along trajectories, with arrays of axes (step, agent).

The future of a step counts unless its episode terminated there. Where it was merely cut (truncated, or the record ends) the
value of the state that was seen last stands for it: termination is not truncation.

References: Sutton (1988); Schulman et al. (2016) for generalised advantages; Blelloch (1990) for recurrences by doubling.
Cost: log2(steps) passes over the arrays.
"""

from typing import Any

import numpy as np

from markovia.runtime.array_types import Array


def backward_sums(terms: Array, shares: Array) -> Array:
    """Return x of x[t] = terms[t] + shares[t] x[t + 1] along the first axis, by doubling the steps that are summed.

    Examples
    --------
    >>> backward_sums(np.array([1.0, 1.0, 1.0]), np.array([0.5, 0.5, 0.5])).tolist()
    [1.75, 1.5, 1.0]
    """
    total, factor = np.array(terms, np.float64), np.array(shares, np.float64)
    step = 1
    while step < len(total):
        total[:-step] += factor[:-step] * total[step:]
        factor[:-step] *= factor[step:]
        factor[-step:] = 0.0
        step *= 2
    return total


def generalised_advantages(
    reward: Array,
    value: Array,
    value_after: Array,
    terminated: Any,
    truncated: Any,
    *,
    discount: float,
    trace: float,
) -> Array:
    """Return the discounted sum of temporal differences that lie ahead: `trace` 0 is one of them, 1 the whole return.

    Parameters
    ----------
    reward, value, value_after
        What a step was worth, and what the states before and after it are worth.
    terminated, truncated
        Whether the episode ended there, or was cut.
    discount, trace
        What is left of a reward one step later, and how much of it is taken from rewards rather than values.

    Examples
    --------
    >>> zero, no = np.zeros(2), np.zeros(2, bool)
    >>> found = generalised_advantages(np.ones(2), zero, np.array([0.0, 8.0]), no, no, discount=0.5, trace=1.0)
    >>> found.tolist()
    [3.5, 5.0]
    """
    ended = np.asarray(terminated, bool)
    difference = reward + discount * np.where(ended, 0.0, value_after) - value
    return backward_sums(difference, discount * trace * ~(ended | np.asarray(truncated, bool)))


def discounted_returns(
    reward: Array, terminated: Any, truncated: Any, *, discount: float, value_after: Array | None = None
) -> Array:
    """Return the discounted sum of rewards from each step on.

    Parameters
    ----------
    reward, terminated, truncated, discount
        As in `generalised_advantages`.
    value_after
        What the states after steps are worth, which counts where the record is cut; nothing by default.

    Examples
    --------
    >>> no = np.zeros(3, bool)
    >>> discounted_returns(np.ones(3), np.array([False, True, False]), no, discount=0.5).tolist()
    [1.5, 1.0, 1.0]
    """
    after = np.zeros_like(reward, dtype=np.float64) if value_after is None else value_after
    over = np.asarray(truncated, bool).copy()
    over[-1] = True  # the record ends there
    ended = np.asarray(terminated, bool)
    terms = reward + discount * np.where(over & ~ended, after, 0.0)
    return backward_sums(terms, discount * ~(over | ended))
