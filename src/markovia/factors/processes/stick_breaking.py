"""Sticks broken for ever: the weights of the Dirichlet and the Pitman-Yor process (GEM, after Griffiths, Engen, McCloskey).

    V_k ~ Beta(1 - discount, concentration + k discount),    pi_k = V_k prod_{j<k} (1 - V_j),    k = 1, 2, ...

Once m_k items are known to belong to stick k, V_k ~ Beta(1 - discount + m_k, concentration + k discount + m_{k+1} + ...).
Sethuraman (1994); Ishwaran and James (2001).
"""

from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import as_numbers
from markovia.factors.processes.law import Law
from markovia.runtime.array_types import Array
from markovia.runtime.checks import DAMPING, NumberRange, check_count
from markovia.runtime.seeds import Seed, generator


@dataclass(frozen=True)
class GEM(Law):
    """Weights from breaking a stick of length one, again and again.

    Parameters
    ----------
    concentration
        Above minus the discount; the larger, the smaller the pieces.
    discount
        From 0 up to but not 1.
    counts
        Items known to belong to the first sticks; `posterior` fills it.

    Examples
    --------
    >>> gem = GEM(concentration=2.0)
    >>> gem.mean(3).round(4).tolist()
    [0.3333, 0.2222, 0.1481]
    >>> gem.sample(2, sticks=3, seed=0).round(3).tolist()
    [[0.312, 0.001, 0.119], [0.86, 0.086, 0.024]]
    >>> gem.posterior([0, 0, 1]).mean(3).round(4).tolist()
    [0.5, 0.25, 0.0833]
    """

    concentration: Annotated[float, NumberRange(said="a number")] = 1.0
    discount: Annotated[float, DAMPING] = 0.0
    counts: tuple[int, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.concentration > -self.discount:
            raise InvalidArgument(
                f"concentration= is a number above minus the discount, not {self.concentration!r}"
            )

    def breaks(self, sticks: int) -> tuple[Array, Array]:
        """Return the two parameters of the beta law of each of the first breaks."""
        check_count("sticks", sticks, 1)
        counts = np.zeros(max(sticks, len(self.counts)))
        counts[: len(self.counts)] = self.counts
        later = counts.sum() - np.cumsum(counts)
        rising = self.concentration + self.discount * np.arange(1, counts.size + 1)
        return (1.0 - self.discount + counts)[:sticks], (rising + later)[:sticks]

    def sample(self, n: int, seed: Seed = None, sticks: int = 50) -> Array:
        """Draw n times the first weights: (n, sticks); what a row lacks to one is left for the later sticks."""
        check_count("n", n)
        a, b = self.breaks(sticks)
        return pieces(generator(seed).beta(a, b, (n, sticks)))

    def log_prob(self, x: ArrayLike) -> Array:
        """Return the log density of the first weights, or of each row of them."""
        from scipy.special import betaln, xlog1py, xlogy

        weights = as_numbers(x, "the weights")
        if not weights.ndim:
            raise InvalidArgument("log_prob takes a list of weights, or rows of them")
        a, b = self.breaks(weights.shape[-1])
        # what is left before each break; its sum of logs is the Jacobian from breaks to weights
        left = 1.0 - np.cumsum(weights, axis=-1) + weights
        with np.errstate(divide="ignore", invalid="ignore"):
            v = weights / left
            found = xlogy(a - 1.0, v) + xlog1py(b - 1.0, -v) - betaln(a, b) - np.log(left)
            inside = (weights > 0).all(axis=-1) & (weights.sum(axis=-1) <= 1.0)
            return np.asarray(np.where(inside, found.sum(axis=-1), -np.inf))[()]

    def mean(self, sticks: int) -> Array:
        """Return the expected first weights."""
        a, b = self.breaks(sticks)
        return pieces(a / (a + b))

    def posterior(self, data: ArrayLike) -> "GEM":
        """Return the law of the weights once each item is known to belong to a stick: labels 0, 1, ..."""
        labels = np.asarray(data)
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or (labels.size and labels.min() < 0):
            raise InvalidArgument("labels are the sticks 0, 1, ... that the items belong to")
        counts = np.bincount(labels, minlength=len(self.counts))
        counts[: len(self.counts)] += np.asarray(self.counts, dtype=np.int64)
        return replace(self, counts=tuple(counts.tolist()))


def pieces(breaks: Array) -> Array:
    """Return the weights that stick-breaking fractions (..., sticks) make.

    Examples
    --------
    >>> pieces(np.array([0.5, 0.5, 1.0])).tolist()
    [0.5, 0.25, 0.25]
    """
    left = np.cumprod(1.0 - breaks, axis=-1)
    return np.asarray(breaks * np.concatenate([np.ones_like(left[..., :1]), left[..., :-1]], axis=-1))
