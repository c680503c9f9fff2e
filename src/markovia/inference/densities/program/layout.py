"""A model of function nodes made definite: what is observed, how long plates are, and what shape everything has.

Names are resolved when a question is asked: an argument is a node, a constant that was given, or a plate (its length).
Values have their plates in front, in the order written, and their event axes behind. A parent on some of the child's plates
comes in the child's order, with axes of length one for the plates that it is not on; a parent with a foreign plate, and a
constant that was not declared, come whole.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError as GraphCycle
from graphlib import TopologicalSorter
from typing import Any

import numpy as np

from markovia.errors import (
    CycleError,
    IncompleteModel,
    InvalidArgument,
    InvalidEvidence,
    UnknownVariable,
)
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.functions.parameter import ModuleSkeleton, ParameterValue
from markovia.factors.quantities.columns import Column
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.evidence import Finding
from markovia.inference.problem import Problem

SEEN = "entries seen of "
"""What the mask of a node whose entries were partly observed is called among the data."""
BOUND_KEY = "key of bounds"
"""What the random key is called among the values that nodes without a density, but with a bound, are drawn bounds by."""


@dataclass
class Site:
    """A node as this question sees it.

    Attributes
    ----------
    piece
        Its distribution: a function node, a table or a linear Gaussian.
    plates
        Its plates; the last is the one that earlier elements are on.
    role
        "input", "observed", "deterministic", "latent" (a number to infer) or "discrete" (a state to sum out).
    shape
        Lengths of the plates, then event axes.
    family
        The class of its distribution, where it has one.
    states
        How many states a discrete node has.
    support
        The constraint on its values, where it does not depend on other nodes.
    free_shape
        The shape of the unconstrained numbers behind a latent quantity.
    scaled
        Whether it is a location plus a scale that is inferred, too, or a vector with correlations: centred, that is hard
        to explore.
    drawable
        Whether its distribution can be drawn from.
    holes
        Positions of entries of an observed array that are missing: axes by entries; None where it is complete.
    soft
        What was found about it that is not one value: an `Interval`, a `Soft` likelihood, or weights of its states.
    centred
        Whether its values are what is inferred, and not their distances from the location in units of the scale.
    masked
        Whether some entries of its elements were not observed and do not count; `SEEN + name` among the data says which did.
    bounded
        Whether its distribution has no density, but a lower bound on it.
    chained
        Whether it is the law of a chain of steps back from noise, which can be walked given some entries.
    """

    name: str
    piece: Conditional
    plates: tuple[str, ...]
    role: str = "latent"
    family: str = ""
    shape: tuple[int, ...] = ()
    states: int = 0
    support: Any = None
    free_shape: tuple[int, ...] = ()
    scaled: bool = False
    centred: bool = True
    drawable: bool = True
    soft: Finding | None = None
    holes: Any = None
    masked: bool = False
    bounded: bool = False
    chained: bool = False

    @property
    def lags(self) -> Mapping[str, Any]:
        """Arguments that are earlier elements, by parameter."""
        return self.piece.previous if isinstance(self.piece, FunctionNode) else {}

    @property
    def depth(self) -> int:
        """How many first elements have no earlier ones."""
        return max((lag.steps for lag in self.lags.values()), default=0)

    @property
    def sources(self) -> tuple[str, ...]:
        """What it depends on within a step: names of nodes, constants and plates."""
        if isinstance(self.piece, FunctionNode):
            return tuple(dict.fromkeys(self.piece.arguments.values()))
        return self.piece.parent_names


@dataclass
class QuantityLayout:
    """All sites in an order in which parents come first, with the values that are known."""

    sites: dict[str, Site]
    lengths: dict[str, int]
    data: dict[str, Any]
    """Observations and inputs that are arrays, by name."""
    fixed: dict[str, Any]
    """Constants and codes that are plain numbers: they may decide shapes and branches."""
    column_plates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The plates of inputs that have some."""
    parameters: dict[str, ModuleSkeleton | None] = field(default_factory=dict)
    """The names among the data that are learned, with what makes a module of their numbers where they are one."""
    compared: bool = False
    """Whether functions of other nodes may have data: draws are compared with them, and nothing is conditioned on them."""

    def plates_of(self, name: str) -> tuple[str, ...] | None:
        """Return the plates of a node or input; None for a constant that comes whole."""
        if name in self.sites:
            return self.sites[name].plates
        return self.column_plates.get(name)

    def shape_of(self, plates: Iterable[str]) -> tuple[int, ...]:
        """Return the lengths of plates."""
        return tuple(self.lengths[p] for p in plates)


def lay_out(problem: Problem) -> QuantityLayout:
    """Resolve names, order nodes, find lengths, and check the shapes of what was given.

    Raises
    ------
    UnknownVariable
        For an argument that is no node and was not given, with the nearest match.
    InvalidArgument, InvalidEvidence
        For lengths that disagree or are not known, and arrays that do not fit.
    """
    pieces = {piece.names[-1]: piece for piece in problem.pieces}
    sites = {name: Site(name, piece, _plates(piece)) for name, piece in pieces.items()}  # type: ignore[arg-type]
    plates = {p for site in sites.values() for p in site.plates}
    clash = plates & (sites.keys() | {n for n in problem.inputs if isinstance(problem.inputs[n], np.ndarray)})
    if clash:
        raise InvalidArgument(f"{min(clash)!r} is the name of a plate and of a node or constant; rename one")
    sites = {name: sites[name] for name in _order(sites)}
    layout = QuantityLayout(sites, {}, {}, {})
    _take_values(problem, layout, plates)
    _resolve(problem, layout, plates)
    return layout


def _plates(piece: Conditional) -> tuple[str, ...]:
    return piece.variable.plates if isinstance(piece.variable, Quantity) else ()


def _order(sites: Mapping[str, Site]) -> list[str]:
    sorter = TopologicalSorter({n: [q for q in s.sources if q in sites] for n, s in sites.items()})
    try:
        return list(sorter.static_order())
    except GraphCycle as circle:
        raise CycleError(circle.args[1]) from None


def _take_values(problem: Problem, layout: QuantityLayout, plates: set[str]) -> None:
    """Put what was given into the layout, and read lengths off it."""
    said: dict[str, dict[int, str]] = {}

    def length(plate: str, n: int, by: str) -> None:
        said.setdefault(plate, {}).setdefault(int(n), by)

    for site in layout.sites.values():
        if isinstance(site.piece.variable, Quantity):
            for plate, n in site.piece.variable.lengths.items():
                length(plate, n, f"plate= of {site.name!r}")
    for name, value in problem.inputs.items():
        if name in plates:
            length(name, value, "given")
        elif isinstance(value, Column):
            layout.column_plates[name] = (value.plate,)
            layout.data[name] = np.asarray(value.values)
            length(value.plate, len(layout.data[name]), repr(name))
        elif isinstance(value, ParameterValue):
            if value.node:  # a module whose numbers are those of a node
                layout.parameters.update({value.node: value.skeleton} if value.node in layout.sites else {})
                continue
            layout.data[name] = value.numbers
            layout.parameters[name] = value.skeleton
            for plate, n in zip(value.plates, np.shape(value.numbers), strict=False):
                layout.column_plates[name] = value.plates
                length(plate, n, repr(name))
        elif isinstance(value, np.ndarray):
            layout.data[name] = value
        else:
            layout.fixed[name] = value
    for name, finding in problem.findings.items():
        site = layout.sites[name]
        if not finding.hard:
            site.soft = finding
            continue
        site.role = "observed"
        if finding.code is not None:
            layout.fixed[name] = finding.code
        else:
            layout.data[name] = np.asarray(finding.value)
    for site in layout.sites.values():
        if isinstance(site.piece, FunctionNode) and site.piece.observed_only:
            site.role = "input"
            if site.name not in layout.data and site.name not in layout.fixed:
                raise IncompleteModel(
                    f"{site.name!r} is an input and was not given; pass given={{{site.name!r}: ...}}"
                )
        value = layout.data.get(site.name)
        if value is not None and value.ndim >= len(site.plates):
            for plate, n in zip(site.plates, value.shape, strict=False):
                length(plate, n, repr(site.name))
        elif value is not None:
            raise InvalidEvidence(
                f"{site.name!r} is on plates {', '.join(site.plates)}, but the array given for it has shape {value.shape}"
            )
    for plate in sorted(plates):
        found = said.get(plate) or _lengths_of_soft(layout, plate) or _lengths_of_constants(layout, plate)
        if not found:
            users = [s.name for s in layout.sites.values() if plate in s.plates]
            raise IncompleteModel(
                f"nothing says how long plate {plate!r} is (it has {', '.join(map(repr, users[:3]))}); give its length, "
                f"given={{{plate!r}: 10}}, or an array for one of its nodes"
            )
        if len(found) > 1:
            parts = ", ".join(f"{n} by {by}" for n, by in found.items())
            raise InvalidEvidence(f"plate {plate!r} has two lengths: {parts}")
        layout.lengths[plate] = next(iter(found))
        if layout.lengths[plate] == 0:
            raise InvalidEvidence(
                f"plate {plate!r} has length 0, by {found[0]}; it needs at least one element"
            )
    for site in layout.sites.values():
        if site.piece.kind == "potential":  # an observation of nothing, with a log likelihood
            site.role = "observed"
            layout.data[site.name] = np.zeros((*layout.shape_of(site.plates), 0))


def _lengths_of_soft(layout: QuantityLayout, plate: str) -> dict[int, str]:
    """Return how long a plate is by the likelihoods of nodes on it, where these have all its plates as axes."""
    found: dict[int, str] = {}
    for site in layout.sites.values():
        said = getattr(site.soft, "said", None)
        shape = getattr(getattr(said, "distribution", None), "batch_shape", ())
        if plate in site.plates and len(shape) >= len(site.plates):
            found.setdefault(int(shape[site.plates.index(plate)]), repr(site.name))
    return found


def _lengths_of_constants(layout: QuantityLayout, plate: str) -> dict[int, str]:
    """Return how long the constant arrays are that functions on this plate alone take; nothing where they disagree."""
    found = {
        len(value): repr(name)
        for name, value in layout.data.items()
        if name not in layout.sites and name not in layout.column_plates and name not in layout.parameters
        if value.ndim
        if any(site.plates == (plate,) and name in site.sources for site in layout.sites.values())
    }
    return found if len(found) == 1 else {}


def _resolve(problem: Problem, layout: QuantityLayout, plates: set[str]) -> None:
    """Check that every argument means something, and that earlier elements are on the plate they are taken along."""
    for site in layout.sites.values():
        for source in site.sources:
            if not (source in layout.sites or source in plates or source in problem.inputs):
                known = [*layout.sites, *problem.inputs, *plates]
                raise UnknownVariable(
                    source,
                    known,
                    f"the arguments of {site.name!r} (nodes, constants that were given, and plates)",
                )
        for parameter, lag in site.lags.items():
            other = layout.sites.get(lag.node)
            if other is None or not other.plates or other.plates[-1] != site.plates[-1]:
                raise InvalidArgument(
                    f"previous={{{parameter!r}: {lag.node!r}}} of {site.name!r} goes back along plate {site.plates[-1]!r}, "
                    f"so {lag.node!r} must be a node whose last plate that is"
                )
        if site.depth and layout.lengths[site.plates[-1]] <= site.depth:
            raise InvalidArgument(
                f"{site.name!r} goes back {site.depth} steps along plate {site.plates[-1]!r}, which is only "
                f"{layout.lengths[site.plates[-1]]} long"
            )
    coupled = {q for s in layout.sites.values() if s.piece.kind == "potential" for q in s.sources}
    for name, value in list(layout.data.items()):
        node = layout.sites.get(name)
        if value.dtype.kind == "f" and np.isnan(value).any():
            if problem.impute and node is not None and node.role == "observed":
                if value.ndim > len(node.plates) and name not in coupled:  # else its entries are inferred
                    mask_entries(layout, node)
                    continue
                node.holes = np.nonzero(np.isnan(value))
                layout.data[name] = np.where(np.isnan(value), 0.0, value)
                continue
            rows = np.argwhere(np.isnan(value))
            where = ", ".join(str(tuple(map(int, r)) if len(r) != 1 else int(r[0])) for r in rows[:5])
            raise InvalidEvidence(
                f"{name!r} has {len(rows)} missing entries (at {where}{', ...' if len(rows) > 5 else ''}); drop those rows, "
                "or say missing='impute'" if node is not None and node.role == "observed" else
                f"{name!r} has {len(rows)} missing entries (at {where}); an input must be complete"
            )  # fmt: skip
        if name not in layout.sites and name not in layout.column_plates and name not in layout.parameters:
            _refuse_ambiguous(layout, name, value)


def mask_entries(layout: QuantityLayout, site: Site) -> None:
    """Let missing entries of an observed array not count: a value that is seen elsewhere stands in their place."""
    value = layout.data[site.name]
    missing = np.isnan(value)
    if missing.all():
        raise InvalidEvidence(f"all entries of {site.name!r} are missing; leave it out of given=")
    layout.data[site.name] = np.where(missing, value[~missing][0], value)
    layout.data[SEEN + site.name] = ~missing
    layout.column_plates[SEEN + site.name] = site.plates
    site.masked = True


def _refuse_ambiguous(layout: QuantityLayout, name: str, value: Any) -> None:
    """Refuse an undeclared vector whose length is that of two plates of one of its users."""
    if value.ndim != 1:
        return
    for site in layout.sites.values():
        fits = [p for p in site.plates if layout.lengths[p] == len(value)]
        if name in site.sources and len(site.plates) > 1 and len(fits) > 1:
            raise InvalidArgument(
                f"{name!r} has {len(value)} entries, as many as plates {' and '.join(map(repr, fits))} of {site.name!r}; "
                f"say which is meant: add({name!r}, mk.Input(), plate={fits[0]!r})"
            )
