"""A model's likelihood as a sum over the rows of a plate, so that engines may look at a few rows at a time.

A plate is one of rows if everything observed is on it, no number to infer is, and nothing outside looks at it; states to sum
out may be on it. Constants that were not declared and are as long as the plate are taken to be rows, too; whether that is so
is tried out: the log likelihood of some rows must be that of all, minus that of the others.
"""

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.inference.densities.program.density import DensityRows
from markovia.inference.densities.program.layout import QuantityLayout
from markovia.inference.densities.program.node_densities import Nodes
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp

if TYPE_CHECKING:
    from markovia.inference.densities.program.program import Program


def rows_of(program: "Program") -> DensityRows | None:
    """Return the rows of the longest plate that has such; None where there is none.

    Rows that call a function (a Gaussian process) depend on each other, and are no such rows, unless it is known by its
    values at inducing inputs.
    """
    if program.functions is not None and any(
        program.functions.inducing.get(n) is None for n in program.functions.names
    ):
        return None
    layout = program.layout
    for plate in sorted(layout.lengths, key=layout.lengths.__getitem__, reverse=True):
        if layout.lengths[plate] > 1 and _is_of_rows(program, plate):
            found = DensityRows(layout.lengths[plate], _likelihood(program, plate))
            if _adds_up(program, found):
                return found
    return None


def _is_of_rows(program: "Program", plate: str) -> bool:
    sites = program.layout.sites.values()
    on = {s.name for s in sites if plate in s.plates}
    for site in sites:
        inside = site.name in on
        if site.lags and inside:
            return False
        if inside and (site.role == "latent" or site.name in program.slots or site.holes is not None):
            return False
        if not inside and (site.role == "observed" or on & set(site.sources)):
            return False
        if inside and any(z not in on for z in program.needs[site.name]):
            return False
        if plate in site.sources or any(x == site.name for x, _ in program.via):
            return False
    return any(s.role == "observed" for s in sites)


def shortened(program: "Program", plate: str, length: int) -> "Program":
    """Return the program of a model whose plate has another length."""
    clone = copy.copy(program)
    clone.layout = layout_of_length(program.layout, plate, length)
    clone.nodes = Nodes(clone.layout, program.nodes.mapped_plate)
    if program.functions is not None:
        clone.functions = program.functions.of_layout(clone.layout, clone.nodes)
    return clone


def layout_of_length(layout: QuantityLayout, plate: str, length: int) -> QuantityLayout:
    """Return a layout in which a plate has another length."""
    sites = {}
    for name, site in layout.sites.items():
        shape = list(site.shape)
        if plate in site.plates and shape:
            shape[site.plates.index(plate)] = length
        sites[name] = replace(site, shape=tuple(shape))
    return replace(layout, sites=sites, lengths={**layout.lengths, plate: length})


def row_axes(layout: QuantityLayout, plate: str) -> dict[str, int]:
    """Return, for every array of data that has rows, the axis that they lie along."""
    used = {source for s in layout.sites.values() if plate in s.plates for source in s.sources}
    found = {}
    for name, value in layout.data.items():
        plates = layout.plates_of(name)
        if plates is not None and plate in plates:
            found[name] = plates.index(plate)
        elif name in layout.parameters:
            continue
        elif plates is None and name in used and np.ndim(value) and len(value) == layout.lengths[plate]:
            found[name] = 0
    return found


def _likelihood(program: "Program", plate: str) -> Any:
    """Return `(u, data, positions) -> number`, the log likelihood of some rows."""
    axes = row_axes(program.layout, plate)

    def log_likelihood(u: Any, data: Any, at: Any) -> Any:
        some = {n: jnp.take(v, at, axis=axes[n]) if n in axes else v for n, v in data.items()}
        few = shortened(program, plate, len(at))
        return few.log_density(u, some) - few.log_density(u, some, observed=False)

    return log_likelihood


def _adds_up(program: "Program", rows: DensityRows) -> bool:
    """Say whether the likelihoods of two parts of the rows make up that of all, at a random point."""
    density = program.density
    with x64(), jax.ensure_compile_time_eval():  # a sampler may be traced meanwhile
        data = jax.tree.map(jnp.asarray, density.data)
        u = density.start(jax.random.PRNGKey(1), data)
        order = np.random.default_rng(0).permutation(rows.count)
        cut = max(1, rows.count // 3)

        def gap(u: Any, data: Any) -> Any:
            parts = [rows.log_likelihood(u, data, jnp.asarray(at)) for at in (order[:cut], order[cut:])]
            whole = density.log_likelihood(u, data)
            return sum(parts) - whole, whole

        try:
            found, whole = jax.jit(gap)(u, data)
        except (TypeError, ValueError, IndexError):  # shapes that only the whole plate has
            return False
        return abs(float(found)) <= 1e-8 * (1.0 + abs(float(whole)))
