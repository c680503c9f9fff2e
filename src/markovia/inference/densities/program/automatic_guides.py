"""Guides that nobody wrote: encoders of what is observed, for quantities of each row, and a mean field for the others.

A mean field is a normal with a location and a scale for each unconstrained number (Kucukelbir et al. 2017), trained beside
the rest: its draw stands in for the quantities, and its divergence from their prior counts once, not for each row.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from markovia.errors import IncompleteModel, InvalidArgument, UnsupportedModel
from markovia.factors.functions.amortised_guide import AmortisedGuide, EncodedProposal, encoder_name, outputs
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.functions.parameter import Parameter, ParameterValue
from markovia.factors.networks.recipes import ModuleRecipe
from markovia.inference.densities.program.layout import SEEN, QuantityLayout, Site, lay_out
from markovia.inference.densities.program.node_densities import Nodes
from markovia.inference.densities.program.node_tracing import trace
from markovia.inference.densities.program.program import program_of
from markovia.inference.problem import Problem
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import eqx, jax, jnp

LOCATIONS, LOG_SCALES = "locations of latent quantities", "log scales of latent quantities"


def new_encoders(
    problem: Problem, guides: Mapping[str, FunctionNode], seed: int | None
) -> dict[str, Parameter]:
    """Return the encoders of guides that are to be made, in the units of the data, as parameters by name."""
    wanted = [n for n, g in guides.items() if isinstance(g.form, AmortisedGuide)]
    if not wanted:
        return {}
    with x64():
        layout = lay_out(problem)
        trace(layout, Nodes(layout), True, guides)
    found = {}
    for k, name in enumerate(wanted):
        site, spec = layout.sites[name], guides[name].form
        if site.support is None or not site.plates or (n := outputs(site.support)) is None:
            raise UnsupportedModel(
                f"no family of proposals fits {name!r} ({site.family}) by itself; say m.guide({name!r}, lambda ...: ...)"
            )
        read = _read(layout, site)
        if not read:
            raise InvalidArgument(
                f"nothing below {name!r} is observed, so that an encoder has nothing to read"
            )
        sizes = tuple((q, prod(layout.data[q].shape[1:])) for q in read)
        settings = tuple(vars(spec).items())
        recipe = ModuleRecipe("amortised", (sizes, n * prod(_free(site))), settings)
        module = recipe.build((0 if seed is None else seed) + 7919 * (k + 1))
        columns = [np.where(layout.data.get(SEEN + q, True), layout.data[q], np.nan) for q in read]
        joined = np.concatenate([c.reshape(len(c), -1) for c in columns], axis=1)
        centre, scale = np.nan_to_num(np.nanmean(joined, axis=0)), np.nan_to_num(np.nanstd(joined, axis=0))
        units = (jnp.asarray(centre), jnp.asarray(np.where(scale > 0, scale, 1.0)))
        module = eqx.tree_at(lambda m: (m.centre, m.scale), module, units)
        found[encoder_name(name)] = Parameter(recipe).with_value(module)
    return found


def _free(site: Site) -> tuple[int, ...]:
    """Return the shape of a row's unconstrained numbers, or of its states."""
    return (site.shape if site.support.is_discrete else site.free_shape)[1:]


def _read(layout: QuantityLayout, site: Site) -> list[str]:
    """Return what an encoder reads: what is known of nodes below, of their other parents, and of its own parents."""
    below = {site.name}
    for other in layout.sites.values():  # parents come first
        if below & {*other.sources, *(lag.node for lag in other.lags.values())}:
            below.add(other.name)
    near = below | {q for n in below for q in layout.sites[n].sources}
    plate = site.plates[0]
    return [n for n, s in layout.sites.items() if n in near and s.role in ("observed", "input")
            and n in layout.data and s.plates[:1] == (plate,) and s.holes is None]  # fmt: skip


def reading(
    problem: Problem, guides: Mapping[str, FunctionNode], layout: QuantityLayout
) -> dict[str, FunctionNode]:
    """Return guides with those that were made as functions of what is known in this question."""
    found = {}
    for name, guide in guides.items():
        found[name] = guide
        if not isinstance(guide.form, AmortisedGuide):
            continue
        value = problem.inputs.get(encoder_name(name))
        if not isinstance(value, ParameterValue):
            raise IncompleteModel(f"the guide of {name!r} is made by fit; call fit first")
        known = tuple(n for n, _ in value.skeleton.static.inputs  # type: ignore[union-attr]
                      if n in layout.sites and layout.sites[n].role in ("observed", "input"))  # fmt: skip
        form = EncodedProposal(known)
        arguments = {q: q for q in form.parents} | {"encoder": encoder_name(name)}
        found[name] = FunctionNode(guide.variable, form, arguments)
    return found


def settled_guides(guides: Mapping[str, FunctionNode], sites: Mapping[str, Site]) -> dict[str, FunctionNode]:
    """Return guides with those that were made as proposals on the supports of their nodes."""
    return {
        n: FunctionNode(
            g.variable, EncodedProposal(g.form.nodes, sites[n].support, _free(sites[n])), g.arguments
        )
        if isinstance(g.form, EncodedProposal)
        else g
        for n, g in guides.items()
    }


class SharedQuantities:
    """Latent quantities that all rows share, with their prior: `names`, and how many unconstrained numbers they are."""

    def __init__(self, problem: Problem, layout: QuantityLayout, plate: str) -> None:
        pieces = [p for p in problem.pieces if plate not in layout.sites[p.names[-1]].plates]
        about = replace(problem, pieces=pieces, findings={}, guides={}, memory=None)
        self._program = program_of(about, "none")
        self.names, self.size = tuple(self._program.slots), self._program.density.size
        if self.names and self._program.hidden:
            raise UnsupportedModel(
                f"{next(iter(self._program.hidden))!r} is discrete and shared by all rows, which fit cannot sum out"
            )

    @classmethod
    def given_to(cls, problem: Problem, layout: QuantityLayout, plate: str) -> "SharedQuantities | None":
        """Return the quantities of a layout and make them its inputs; None where there are none."""
        if "potential" in problem.kinds or not any(
            s.role == "latent" and plate not in s.plates for s in layout.sites.values()
        ):
            return None
        found = cls(problem, layout, plate)
        if not found.names:
            return None
        values = found._program.constrain(np.zeros(found.size), found._program.density.data)
        for name in found.names:
            layout.sites[name].role, layout.data[name] = "input", np.asarray(values[name])
        return found

    def drawn(self, u: Any, parameters: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return the quantities at unconstrained numbers, and the log prior density of these."""
        density = self._program.density
        data = dict(density.data)
        for name in data.keys() & parameters.keys():  # a module as the vector of its numbers
            flat = jnp.concatenate([jnp.ravel(a) for a in jax.tree.leaves(parameters[name])])
            data[name] = flat.reshape(jnp.shape(data[name]))
        values = density.constrain(u, data)
        return {n: values[n] for n in self.names}, density.log_prior(u, data)
