"""What was found about a latent node that is not one value: bounds, a likelihood of its value, or weights of its states.

Bounds narrow the support that the node is sampled in; a likelihood is one more factor, counted with the observations.
"""

from typing import Any

import numpy as np

from markovia.errors import InvalidEvidence, UnsupportedModel
from markovia.factors.quantities.soft_findings import Interval, Soft
from markovia.inference.densities.program.layout import Site
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import jax, jnp


def bounded(site: Site) -> bool:
    """Say whether a node is known to lie between two numbers."""
    return site.soft is not None and isinstance(site.soft.said, Interval)


def between(site: Site, support: Any, event: tuple[int, ...]) -> Any:
    """Return the support of a node inside its bounds; as it is where there are none.

    Raises
    ------
    UnsupportedModel
        For bounds on vectors, on states, and on supports that depend on other nodes.
    InvalidEvidence
        For bounds that the support does not reach into.
    """
    from numpyro.distributions import constraints

    if not bounded(site):
        return support
    assert site.soft is not None
    said: Interval = site.soft.said
    lower, upper = (getattr(support, side, None) for side in ("lower_bound", "upper_bound"))
    known = isinstance(support, type(constraints.real)) or (lower, upper) != (None, None)
    moving = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(support))
    if event or support.is_discrete or moving or not known:
        raise UnsupportedModel(
            f"Interval(...) on {site.name!r} is for single numbers whose support does not depend on other nodes, not for "
            f"{support}"
        )
    low = max(said.low, -np.inf if lower is None else float(lower))
    high = min(said.high, np.inf if upper is None else float(upper))
    if not low < high:
        raise InvalidEvidence(f"{site.name!r} cannot be in {said}: its distribution is on {support}")
    if np.isinf(low):
        return support if np.isinf(high) else constraints.less_than(high)
    return constraints.greater_than(low) if np.isinf(high) else constraints.interval(low, high)


def likelihood(site: Site, value: Any) -> Any:
    """Return the log likelihood of a number, latent or a function of such; zero for bounds, which are in its support."""
    assert site.soft is not None
    if bounded(site) and site.role == "latent":
        return jnp.zeros(())
    if site.role not in ("latent", "deterministic") or not isinstance(site.soft.said, Soft):
        raise UnsupportedModel(
            f"{site.soft.said!r} on {site.name!r} is not treated here; {site.name!r} is {site.role}"
        )
    return jnp.sum(site.soft.said.distribution.log_prob(value))


def likelihoods(site: Site, value: Any) -> Any:
    """Return the log likelihood of every element of a function of other nodes: an array over its plates."""
    assert site.soft is not None
    logs = site.soft.said.distribution.log_prob(value)
    k = len(site.plates)
    if jnp.shape(logs)[:k] != jnp.shape(value)[:k]:
        raise UnsupportedModel(
            f"Soft(...) on {site.name!r} has to be independent along its plates: the log likelihood of values of shape "
            f"{jnp.shape(value)} has shape {jnp.shape(logs)}"
        )
    return jnp.sum(logs, axis=tuple(range(k, jnp.ndim(logs))))


def state_weights(site: Site) -> Array:
    """Return the logs of the weights of a discrete node's states."""
    assert site.soft is not None
    if isinstance(site.soft.said, Interval | Soft) or site.plates:
        raise UnsupportedModel(
            f"{site.soft.said!r} on {site.name!r}, which has states; give one weight a state, and no plate"
        )
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(site.soft.weights()), -1e30)
