"""The process of a node whose parents may be states that JAX traces."""

# ruff: noqa: D102, N803 (letters of the literature; methods are said by the base)

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.factors.covariances.covariance import Covariance
from markovia.factors.covariances.process import GP
from markovia.inference.densities.program.layout import Site
from markovia.inference.densities.program.node_densities import Nodes
from markovia.runtime.libraries import jax, jnp


class SelectedCovariance(Covariance):
    """One of several covariances, by a position that JAX traces."""

    def __init__(self, parts: Sequence[Covariance], at: Any) -> None:
        super().__init__(parts=parts)
        self.at = at

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        return xp.stack([part.value(X, Z, xp) for part in self.parts])[self.at]

    def diag(self, X: Any, xp: Any) -> Any:
        return xp.stack([part.diagonal(X, xp) for part in self.parts])[self.at]


def process_at(nodes: Nodes, site: Site, env: Mapping[str, Any]) -> GP:
    """Return the process of a node; where it depends on states that are traced, the one of each is picked."""
    sites = nodes.layout.sites
    loose = [
        q
        for q in site.sources
        if q in sites and sites[q].role == "discrete" and isinstance(env[q], jax.core.Tracer)
    ]
    if not loose:
        return nodes.call(site, env)  # type: ignore[no-any-return]
    sizes = [sites[q].states for q in loose]
    every: list[GP] = [
        nodes.call(site, {**env, **dict(zip(loose, at, strict=True))}) for at in np.ndindex(*sizes)
    ]
    at = jnp.ravel_multi_index([jnp.asarray(env[q], int) for q in loose], tuple(sizes), mode="clip")
    return GP(
        SelectedCovariance([p.covariance for p in every], at),
        lambda X: jnp.stack([p.mean_at(X if X.ndim == 2 else X[:, None], jnp) for p in every])[at],
    )
