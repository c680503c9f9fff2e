"""What every node of a model is in a question: traced once with abstract arrays, before anything is computed.

Functions are called with arrays that have shapes and no values, parents first. That tells shapes, supports, what is discrete
with how many states, what is a function of others, and which hierarchies may be sampled non-centred.
"""

from collections.abc import Container
from math import prod
from typing import Any

import numpy as np

from markovia.errors import InvalidEvidence, UnsupportedModel
from markovia.factors.covariances.process import is_process
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.function_node import Flat
from markovia.inference.densities.program.layout import QuantityLayout, Site
from markovia.inference.densities.program.node_densities import Nodes
from markovia.inference.densities.program.non_centred import base_of, standardisable
from markovia.inference.densities.program.process_calls import StandIn
from markovia.inference.densities.program.soft_evidence import between, bounded
from markovia.runtime.libraries import jax, jnp


def trace(layout: QuantityLayout, nodes: Nodes, only_drawn: bool, proposed: Container[str] = ()) -> None:
    """Call every function once with abstract arrays, and note what each node is.

    `proposed` are nodes whose values come from a guide: discrete ones among them are not summed out.
    """
    under: dict[
        str, set[str]
    ] = {}  # what is discrete and not observed above each node, also through functions

    def pass_through(data: dict[str, Any]) -> None:
        env: dict[str, Any] = {**layout.fixed, **data}
        for site in layout.sites.values():
            for lag in site.lags.values():  # earlier elements are looked at before their own node is reached
                if lag.node not in env:
                    env[lag.node] = _unseen(nodes, layout.sites[lag.node], env)
            if site.role == "input":
                _check_input(layout, site)
                site.shape = tuple(np.shape(env[site.name]))
                continue
            above = [
                under.get(q, set()) if layout.sites[q].role == "deterministic" else {q}
                for q in site.sources
                if q in layout.sites and layout.sites[q].role in ("deterministic", "discrete")
            ]
            under[site.name] = set().union(*above)
            found, inner = _looked_at(nodes, site, env)
            if is_process(found):
                if site.role == "observed":
                    raise InvalidEvidence(
                        f"{site.name!r} is a function; what is known of it are values at inputs: given={{{site.name!r}: "
                        "mk.Points(x, values)}"
                    )
                site.role, env[site.name] = "function", StandIn(site.name, bool(site.plates))
                continue
            if not is_distribution(found):
                _note_value(nodes, site, found, inner, env)
                continue
            site.family = type(base_of(found)).__name__
            spread = nodes.spread(site, found, inner)
            site.bounded = hasattr(spread, "bound")
            site.chained = hasattr(getattr(spread, "module", None), "reverse")
            event = tuple(spread.event_shape)
            site.shape = (*layout.shape_of(site.plates), *event)
            support = spread.support
            alone = not site.lags and not found.event_shape and hasattr(spread, "base_dist")
            if site.masked and not alone and not site.chained:
                raise InvalidEvidence(
                    f"missing entries of {site.name!r} can be left out only where its entries are independent given its "
                    f"parents: a distribution without .to_event(), not {site.family}"
                )
            if site.role == "observed":
                _check_observed(layout, site, support)
                site.support = support
                continue
            if site.soft is not None:
                support = between(site, support, event)
            if support.is_discrete and site.name not in proposed:
                site.role = "discrete"
                site.states = _states(spread, event)
                if not site.states and not only_drawn:
                    raise UnsupportedModel(
                        f"{site.name!r} is discrete, not observed, and has no finite list of values 0, 1, ... "
                        f"({site.family}), so it cannot be summed out; observe it, or use a distribution that has"
                    )
                env[site.name] = jnp.zeros(site.shape, dtype=int) if site.plates else 0
                continue
            site.role = "latent"
            site.drawable = _drawable(found) and not isinstance(getattr(site.piece, "first", None), Flat)
            if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(support)):
                site.support = support
            if under[site.name] and not only_drawn:
                _refuse_moving_support(nodes, site, env, under)
            if site.support is None and site.lags:
                raise UnsupportedModel(
                    f"{site.name!r} has a support that depends on its parents, which a node with previous= cannot have"
                )
            site.scaled = not support.is_discrete and (
                standardisable(found) and not bounded(site) and not site.lags and not under[site.name]
            )
            free = jax.eval_shape(bijection(support).inv, jnp.zeros(site.shape))
            site.free_shape = tuple(free.shape)
            env[site.name] = jnp.zeros(site.shape, int if support.is_discrete else None)

    jax.eval_shape(pass_through, {k: jnp.asarray(v) for k, v in layout.data.items()})


def bijection(support: Any) -> Any:
    """Return the map from free numbers to a support; discrete values, which only a guide proposes, are their own."""
    from numpyro.distributions.transforms import IdentityTransform, biject_to

    return IdentityTransform() if support.is_discrete else biject_to(support)


def _refuse_moving_support(nodes: Nodes, site: Site, env: dict[str, Any], under: dict[str, set[str]]) -> None:
    """Refuse a quantity whose range depends on what is summed out: no bijection covers all cases."""
    sites = nodes.layout.sites
    for name in sorted(under[site.name]):
        fixed = site.support is not None
        for k in range(1, sites[name].states if fixed and not sites[name].plates and not site.lags else 0):
            other = {**env, name: k}
            for step in sites.values():
                if step.role == "deterministic" and name in under.get(step.name, ()):
                    other[step.name] = nodes.deterministic(step, other)
            support = nodes.spread(site, nodes.call(site, other), site.plates).support
            here, there = jax.tree.leaves(site.support), jax.tree.leaves(support)
            fixed = fixed and type(support) is type(site.support)
            fixed = fixed and all(np.array_equal(a, b) for a, b in zip(here, there, strict=True))
        if not fixed:
            raise UnsupportedModel(
                f"the support of {site.name!r} depends on {name!r}, which is discrete and not observed; give it one support "
                f"in all cases, or observe {name!r} or {site.name!r}"
            )


def _drawable(found: Any) -> bool:
    """Say whether draws of a distribution have its density, as those of an improper or masked one do not."""
    while found is not None:
        if type(found).__name__ in ("ImproperUniform", "MaskedDistribution", "Unit") or not getattr(
            found, "alike", True
        ):
            return False
        found = getattr(found, "base_dist", None)
    return True


def children(layout: QuantityLayout, site: Site) -> int:
    """Return how many elements of other nodes depend on a node, also through functions."""
    total, seen, left = 0, set(), [site.name]
    while left:
        name = left.pop()
        for other in layout.sites.values():
            if name in other.sources and other.name not in seen:
                seen.add(other.name)
                if other.role == "deterministic":
                    left.append(other.name)
                else:
                    total += max(1, prod(other.shape))
    return total


def _unseen(nodes: Nodes, site: Site, env: dict[str, Any]) -> Any:
    """Return zeros of a chain's shape, which its first element tells; integers, which serve as numbers and positions."""
    event: tuple[int, ...] = ()
    first = nodes.first(site, env, 0) if site.lags else None
    inner = site.plates[:-1]
    if is_distribution(first):
        event = tuple(nodes.spread(site, first, inner).event_shape)
    elif first is not None and not isinstance(first, Flat):
        event = tuple(nodes.value(site, first, inner).shape[len(inner) :])
    return jnp.zeros((*nodes.layout.shape_of(site.plates), *event), dtype=int)


def _looked_at(nodes: Nodes, site: Site, env: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """Return what a node's function says, for whole arrays or one step, and the plates that it says it for."""
    if not site.lags:
        return nodes.call(site, env), site.plates
    step, moving = nodes.stepper(site, env, env, site.depth)
    return step({k: v[0] for k, v in moving.items()}), site.plates[:-1]


def _note_value(nodes: Nodes, site: Site, found: Any, inner: tuple[str, ...], env: dict[str, Any]) -> None:
    if site.role == "observed" and not nodes.layout.compared:
        raise InvalidEvidence(
            f"{site.name!r} is a function of its parents and cannot be observed; add noise to it: a distribution around it, "
            f"or given={{{site.name!r}: mk.Soft(dist.Normal(..., 0.1))}} in a query; fit takes it with an adversarial "
            "method= (mk.objectives.WassersteinGAN)"
        )
    value = nodes.value(site, found, inner)
    if site.lags:
        value = jnp.zeros(
            (*nodes.layout.shape_of(site.plates), *value.shape[len(inner) :]), dtype=jnp.result_type(float)
        )
    if site.role == "observed":
        seen = nodes.layout.data[site.name]
        if site.masked or site.holes is not None or seen.shape != value.shape:
            what = "missing entries" if seen.shape == value.shape else f"shape {seen.shape}"
            raise InvalidEvidence(
                f"the data of {site.name!r} have {what}, and what they are compared with has shape {value.shape}; give "
                "complete rows of that shape"
            )
    site.role = "deterministic"
    env[site.name] = value
    site.shape = tuple(value.shape)


def _states(spread: Any, event: tuple[int, ...]) -> int:
    """Return how many values 0, 1, ... a distribution has; 0 if they have no known end, or are others."""
    if event or not spread.has_enumerate_support:
        return 0
    try:
        with jax.ensure_compile_time_eval():
            values = np.asarray(spread.enumerate_support(expand=False))
    except (NotImplementedError, TypeError, jax.errors.JAXTypeError):  # as many as a node says
        return 0
    return len(values) if np.array_equal(values.ravel(), np.arange(len(values))) else 0


def _check_input(layout: QuantityLayout, site: Site) -> None:
    value = layout.data.get(site.name)
    wanted = layout.shape_of(site.plates)
    if value is not None and value.shape[: len(wanted)] != wanted:
        raise InvalidEvidence(
            f"the input {site.name!r} has shape {value.shape}, but its plates {', '.join(site.plates)} are {wanted}"
        )


def is_real(support: Any) -> bool:
    """Say whether a support is all real numbers, or arrays of such."""
    from numpyro.distributions import constraints

    whole = getattr(support, "base_constraint", support)
    return whole is constraints.real or isinstance(whole, type(constraints.real))


def _check_observed(layout: QuantityLayout, site: Site, support: Any) -> None:
    """Check shape and support of what was given for a node."""
    if site.name in layout.fixed:
        return
    value = layout.data[site.name]
    if value.shape != site.shape:
        over = f" (plates {', '.join(site.plates)})" if site.plates else ""
        raise InvalidEvidence(
            f"{site.name!r} has shape {site.shape}{over}, but what was given for it has {value.shape}"
        )
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(support)):
        return
    with jax.ensure_compile_time_eval():
        inside = np.asarray(support(value))
    if site.holes is not None:
        if support.is_discrete or (len(site.shape) != len(site.plates) and not is_real(support)):
            raise InvalidEvidence(
                f"missing entries of {site.name!r} can be imputed only where it is a single number, or where a potential "
                "takes it and its entries are real numbers"
            )
        if len(site.shape) == len(site.plates):
            inside[site.holes] = True
    if not inside.all():
        at = np.argwhere(~inside)[0]
        wrong = value[tuple(at)]
        where = f" at {tuple(map(int, at))}" if at.size else ""
        raise InvalidEvidence(f"{site.name!r} cannot be {wrong}{where}: its distribution is on {support}")
