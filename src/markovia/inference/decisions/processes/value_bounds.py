"""Bounds on values from the residual of Bellman's equation, tighter by far than its norm.

For any values V let m and M be the least and the largest entry of T V - V. Then, with discounts between b and B,
T V + c(m) <= worth of the policy that T took <= best worth <= T V + c(M), where c(d) = d x / (1 - x) with x = b or B,
whichever makes the bound safe. An error that is the same in all states drops out: only the span M - m counts.

References: MacQueen (1966), "A modified dynamic programming method for Markovian decision problems"; Porteus (1971).
"""

from typing import NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.decisions.processes.decision_process import StateProcess
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NumberRange, check

DISCOUNT = NumberRange(0.0, 1.0, open="high", said="a number from 0 up to but not 1")


class Shifts(NamedTuple):
    """What is to be added to T V for a lower and an upper bound on all values."""

    low: float
    high: float


def check_discount(discount: float | Array, process: StateProcess) -> None:
    """Raise unless a discount is below one, or one number below one for each state and action."""
    if np.ndim(discount) == 0:
        check("discount", float(discount) if isinstance(discount, np.ndarray) else discount, DISCOUNT)
        return
    table = np.asarray(discount)
    if table.shape != process.rewards.shape or not ((table >= 0.0) & (table < 1.0)).all():
        raise InvalidArgument(
            f"discount= is a number, or a table {process.rewards.shape} of numbers, from 0 up to but not 1"
        )


def discount_range(discount: float | Array) -> tuple[float, float]:
    """Return the smallest and the largest discount."""
    return float(np.min(discount)), float(np.max(discount))


def shifts(before: Array, after: Array, discount: float | Array) -> Shifts:
    """Return the bounds that values and their Bellman backup give.

    Examples
    --------
    >>> shifts(np.zeros(2), np.ones(2), 0.5)  # a reward of one for ever is worth 2
    Shifts(low=1.0, high=1.0)
    """
    moved = after - before
    low, high = float(moved.min()), float(moved.max())
    least, most = discount_range(discount)
    below = least if low >= 0.0 else most
    above = most if high >= 0.0 else least
    return Shifts(low * below / (1.0 - below), high * above / (1.0 - above))
