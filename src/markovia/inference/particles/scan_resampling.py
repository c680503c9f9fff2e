"""Resampling inside compiled loops: the schemes of `markovia.inference.weighted_draws.resampling`, in JAX.

Stratified and systematic resampling take linear time on any device and neither sort nor search. If particle i owns the
interval up to c[i] of cumulative weights, the draws that fall below c[i] are counted directly, and the ancestor of draw j is
the number of particles whose draws end at j or before: a scattered count and a running sum. Multinomial and residual
resampling search, n log n. Reference: Douc, Cappe and Moulines (2005); Murray, Lee and Jacob (2016) for the counts.
"""

from collections.abc import Callable
from typing import Any

from markovia.runtime.libraries import jax, jnp

BLOCK, SMALL = 64, 1024


def ancestors(scheme: str, key: Any, log_weights: Any) -> Any:
    """Return positions (n,) drawn by weight, in rising order for all schemes but residual; call inside `x64()`.

    Parameters
    ----------
    scheme
        "systematic", "stratified", "multinomial" or "residual".
    key
        A JAX random key.
    log_weights
        Logs of n weights, whatever their sum; at least one finite.
    """
    return SCHEMES[scheme](key, jnp.exp(log_weights - log_weights.max()))


def running_sum(x: Any) -> Any:
    """Return the running sum of a vector of float64: sums of blocks by one matrix product, then of the blocks.

    Several times faster than `jnp.cumsum` on a processor, whose compiler makes that log n passes.
    """
    n = x.shape[0]
    if n <= SMALL:
        return jnp.cumsum(x)
    rows = -(-n // BLOCK)
    blocks = jnp.pad(x, (0, rows * BLOCK - n)).reshape(rows, BLOCK)
    inside = jnp.matmul(blocks, jnp.triu(jnp.ones((BLOCK, BLOCK), x.dtype)), precision="highest")
    before = running_sum(inside[:, -1]) - inside[:, -1]
    return (inside + before[:, None]).reshape(-1)[:n]


def _systematic(key: Any, weights: Any) -> Any:
    u = jax.random.uniform(key)
    return _from_ends(jnp.ceil(_edges(weights) - u), weights)


def _stratified(key: Any, weights: Any) -> Any:
    edges, n = _edges(weights), weights.shape[0]
    u = jax.random.uniform(key, (n,))
    whole = jnp.floor(edges)
    at = jnp.minimum(whole, n - 1).astype(jnp.int32)
    return _from_ends(whole + (u[at] < edges - whole), weights)


def _multinomial(key: Any, weights: Any) -> Any:
    # gaps between sorted uniform numbers are exponential: no sorting
    sums = running_sum(jax.random.exponential(key, (weights.shape[0] + 1,)))
    return _searched(weights, sums[:-1] / sums[-1])


def _residual(key: Any, weights: Any) -> Any:
    n = weights.shape[0]
    shares = n * weights / weights.sum()
    whole = jnp.floor(shares + 1e-9)
    ends = running_sum(whole)
    kept = _from_ends(ends, weights)
    rest = jnp.maximum(shares - whole, 0.0)
    # where nothing is left to draw, any positive weights will do: none of the draws is taken
    drawn = _searched(jnp.where(rest.sum() > 0, rest, weights), jax.random.uniform(key, (n,)))
    return jnp.where(jnp.arange(n) < ends[-1], kept, drawn)


def _edges(weights: Any) -> Any:
    """Return where each particle's share of n ends; the last one exactly at n."""
    sums = running_sum(weights)
    return sums * (weights.shape[0] / sums[-1])


def _from_ends(ends: Any, weights: Any) -> Any:
    """Return ancestors where the draws of particle i end before `ends[i]`; never one of weight zero at the end."""
    n = weights.shape[0]
    counts = jnp.zeros(n).at[ends.astype(jnp.int32)].add(1.0, mode="drop")
    return jnp.minimum(running_sum(counts).astype(jnp.int32), _last(weights))


def _searched(weights: Any, u: Any) -> Any:
    sums = running_sum(weights)
    found = jnp.searchsorted(sums, u * sums[-1], side="right")
    return jnp.minimum(found.astype(jnp.int32), _last(weights))


def _last(weights: Any) -> Any:
    """Return the last particle of positive weight: rounding must not pick one after it."""
    n = weights.shape[0]
    return n - 1 - jnp.argmax(weights[::-1] > 0).astype(jnp.int32)


SCHEMES: dict[str, Callable[[Any, Any], Any]] = {
    "systematic": _systematic,
    "stratified": _stratified,
    "multinomial": _multinomial,
    "residual": _residual,
}
