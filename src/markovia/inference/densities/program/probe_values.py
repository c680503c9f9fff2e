"""Values to try a model's functions at: inside every support, and, should a function refuse those, draws of the prior.

Checks, recorded indices and the search for closed forms all call functions before there is a sampler. What they call them
with comes from here alone: what is given stays, functions of others are computed, a quantity is the image of free numbers
under its support's bijection, or a draw from its distribution. So a Cholesky factor is one, and a row of a table adds up.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.factors.functions.function_node import Flat
from markovia.inference.densities.program.layout import QuantityLayout, Site
from markovia.inference.densities.program.node_densities import Nodes
from markovia.inference.densities.program.process_calls import StandIn
from markovia.inference.densities.program.simulation import simulate
from markovia.inference.densities.program.soft_evidence import bounded
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import jax

REACH = 2.0
"""Free numbers are uniform between minus this and this, as the starting points of samplers are."""


def probe(layout: QuantityLayout, nodes: Nodes, attempt: int = 0) -> dict[str, Any]:
    """Return a value for every node, input and constant; call inside `x64()`.

    Parameters
    ----------
    layout, nodes
        A model after `trace`, which says shapes and supports.
    attempt
        Even attempts go through the supports' bijections, odd ones draw from the prior: a function may hold only where the
        prior puts its parents (`Gamma(w - 4, 1)` with w near 100).

    Raises
    ------
    FunctionFailed
        If a function cannot be called with what its parents were given.
    """
    rng = np.random.default_rng(attempt)
    given = {**layout.fixed, **layout.data, **_filled_holes(layout, rng)}
    if attempt % 2 == 0:
        return _through_supports(layout, nodes, given, rng)
    held = {s.name: _free_value(s, s.support, rng) for s in layout.sites.values() if _not_drawn(s)}
    held |= _stand_ins(layout)
    drawn = simulate(jax.random.PRNGKey(attempt), nodes, {**given, **held}, {})
    functions = {n: held[n] for n in held if n not in drawn}
    return {**given, **functions, **{n: _plain(v) for n, v in drawn.items() if n not in given}}


def _through_supports(
    layout: QuantityLayout, nodes: Nodes, given: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """Return values, first of nodes whose range is known, then of others; only endless counts are drawn as they are."""
    values = {**given, **_stand_ins(layout)}
    missing = [s for s in layout.sites.values() if s.name not in values]
    for site in missing:  # a function of others may look back at nodes that come after it
        if site.role == "discrete" and site.states:
            values[site.name] = rng.integers(0, site.states, size=site.shape or None)
        elif site.role == "latent" and site.support is not None and not site.support.is_discrete:
            values[site.name] = _free_value(site, site.support, rng)
    for site in missing:
        if site.role == "deterministic":
            values[site.name] = _plain(nodes.deterministic(site, values))
        elif site.name not in values and site.role == "latent" and site.support is None:
            support = nodes.spread(site, nodes.call(site, values), site.plates).support
            values[site.name] = _free_value(site, support, rng)
        elif site.name not in values:
            key = jax.random.PRNGKey(int(rng.integers(2**31)))
            values[site.name] = _plain(simulate(key, nodes, values, {})[site.name])
    return values


def _stand_ins(layout: QuantityLayout) -> dict[str, Any]:
    """Return something to call for every node that is a function."""
    return {s.name: StandIn(s.name, bool(s.plates)) for s in layout.sites.values() if s.role == "function"}


def mapped(support: Any, free: Array) -> Array | None:
    """Return the image of free numbers, as many as the value has, in a support that NumPy maps to; None for others."""
    from numpyro.distributions import constraints

    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    if support is constraints.real or support is constraints.real_vector:
        return free
    if support is constraints.positive:
        return np.asarray(np.exp(free))
    low, high = getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)
    if low is not None and high is not None:
        return np.asarray(low + (np.asarray(high) - low) / (1.0 + np.exp(-free)))
    if support is constraints.simplex:
        return np.asarray(np.exp(free) / np.exp(free).sum(-1, keepdims=True))
    return None


def _free_value(site: Site, support: Any, rng: np.random.Generator) -> Any:
    from numpyro.distributions.transforms import biject_to

    found = mapped(support, rng.uniform(-REACH, REACH, site.shape))
    if found is None:
        found = np.asarray(biject_to(support)(rng.uniform(-REACH, REACH, site.free_shape)))
    return found


def _filled_holes(layout: QuantityLayout, rng: np.random.Generator) -> dict[str, Any]:
    """Return the observed arrays that have missing entries, with values of their support there."""
    found = {}
    for site in layout.sites.values():
        if site.holes is not None:
            value = np.array(layout.data[site.name])
            inside = mapped(site.support, rng.uniform(-REACH, REACH, value.shape))
            value[site.holes] = (value if inside is None else inside)[site.holes]
            found[site.name] = value
    return found


def _not_drawn(site: Site) -> bool:
    """Say whether a quantity has no distribution to draw from, or not one that the findings agree with."""
    first = getattr(site.piece, "first", None)
    improper = not site.drawable or isinstance(first, Flat) or bounded(site)
    return site.role == "latent" and improper and site.support is not None


def _plain(value: Any) -> Any:
    """Return a NumPy array, or a NumPy number, which has the methods of an array."""
    return np.asarray(value)[()]
