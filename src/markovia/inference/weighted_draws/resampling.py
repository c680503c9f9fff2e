"""Resampling: draw from weighted draws by weight. Reference: Douc, Cappe and Moulines (2005). Cost: linear.

Schemes: *multinomial* draws independently; *stratified* takes one uniform number from each of n equal intervals;
*systematic* the same number in every interval; *residual* gives each draw the whole part of n times its share first and
draws the rest. All have the right expectation; the last three have less variance than the first.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count
from markovia.runtime.seeds import Seed, generator

Scheme = Literal["multinomial", "stratified", "systematic", "residual"]


def resample(
    log_weights: Sequence[float] | Array, n: int, seed: Seed = None, scheme: Scheme = "systematic"
) -> NDArray[np.int64]:
    """Return n positions, each drawn with a probability proportional to its weight.

    Parameters
    ----------
    log_weights
        Logs of the weights; minus infinity for zero.
    n
        How many to draw.
    seed
        A whole number or a NumPy generator.
    scheme
        "systematic" (default), "stratified", "residual" or "multinomial".

    Examples
    --------
    >>> np.bincount(resample(np.log([0.5, 0.25, 0.25]), 8, seed=0)).tolist()
    [4, 2, 2]
    """
    check_choice("scheme", scheme, get_args(Scheme))
    check_count("n", n)
    logs = np.asarray(log_weights, dtype=np.float64)
    top = float(logs.max(initial=-np.inf))
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    if not np.isfinite(top) or np.isnan(logs).any():
        raise InvalidArgument("resampling needs log weights that are numbers, at least one of them finite")
    rng = generator(seed)
    weights = np.exp(logs - top)
    shares = weights / weights.sum()
    if scheme == "residual":
        whole = np.floor(n * shares + 1e-12).astype(np.int64)
        rest = np.maximum(0.0, n * shares - whole)
        kept = np.repeat(np.arange(len(shares)), whole)
        left = n - len(kept)
        if left <= 0:
            return kept[:n]
        return np.concatenate([kept, positions(rest, np.sort(rng.random(left)))])
    if scheme == "multinomial":
        u = np.sort(rng.random(n))
    elif scheme == "stratified":
        u = (np.arange(n) + rng.random(n)) / n
    else:
        u = (np.arange(n) + rng.random()) / n
    found: NDArray[np.int64] = positions(shares, u)
    return found


def positions(weights: Any, u: Any, library: Any = np) -> Any:
    """Return the places at which the cumulative share passes each u; never one of weight zero.

    Parameters
    ----------
    weights
        Not negative, with a positive sum.
    u
        Numbers from 0 up to 1, sorted or not.
    library
        `numpy`, or `jax.numpy` for arrays of JAX.
    """
    edges = library.cumsum(weights)
    at = library.searchsorted(edges, u * edges[-1], side="right")
    last = len(weights) - 1 - library.argmax(weights[::-1] > 0)
    return library.minimum(at, last).astype(library.int64)
