"""Checks of a model's functions, made with plain NumPy arrays before anything is compiled.

A function acts element by element along its own plates: one that mixes rows (`z - z.mean()`) would make summing out discrete
variables, mini-batches and predictions for other rows silently wrong. And JAX clamps an index that is out of range, where
NumPy raises. Each function is called with made-up values, and once more with one row changed. A parent on another plate
comes whole, to be indexed; one that is not, and acts on the element at its own place, fits only because two plates happen to
be equally long.
"""

import warnings
from typing import Any

import numpy as np

from markovia.errors import AccidentalShapeWarning, InvalidArgument, outside
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.function_node import FunctionNode
from markovia.inference.differentiable.layout import Layout, Site
from markovia.inference.differentiable.node_densities import Nodes


class _Watched(np.ndarray):
    """An array that refuses indices out of range, negative ones among them."""

    name: str
    child: str

    def __array_finalize__(self, source: Any) -> None:
        self.name, self.child = getattr(source, "name", ""), getattr(source, "child", "")
        self.indexed: set[str] = getattr(source, "indexed", set())

    def __getitem__(self, index: Any) -> Any:
        found = np.asarray(self)
        for axis, part in enumerate(index if isinstance(index, tuple) else (index,)):
            if isinstance(part, np.ndarray) and part.dtype.kind in "iu" and axis < found.ndim and part.size:
                self.indexed.add(self.name)
                low, high = int(part.min()), int(part.max())
                if low < 0 or high >= found.shape[axis]:
                    wrong = low if low < 0 else high
                    raise InvalidArgument(
                        f"the function of {self.child!r} takes element {wrong} of {self.name!r}, which has "
                        f"{found.shape[axis]} (numbered from 0)"
                    )
        return found[index]


def check_functions(layout: Layout, nodes: Nodes) -> None:
    """Raise where a function mixes rows of its own plates, or indexes what is not there."""
    values = _made_up(layout)
    for site in layout.sites.values():
        if (
            isinstance(site.piece, FunctionNode)
            and not site.lags
            and not site.piece.by_state
            and site.sources
        ):
            _check(layout, nodes, site, values)


def _check(layout: Layout, nodes: Nodes, site: Site, values: dict[str, Any]) -> None:
    env = {name: _watched(value, name, site.name) for name, value in values.items()}
    if (
        site.role == "input"
        or not callable(nodes.forms[site.name])
        or is_distribution(nodes.forms[site.name])
    ):
        return
    before = _numbers(nodes.call(site, env))
    for name in site.sources:
        if name in values and name not in getattr(env[name], "indexed", ()):
            _warn_accidental(layout, nodes, site, name, values, before)
    for i, plate in enumerate(site.plates):
        if layout.lengths[plate] < 2:
            continue
        moved = {
            name: _changed(values[name], plates.index(plate))
            for name in site.sources
            if name in values and (plates := layout.plates_of(name)) and plate in plates
        }
        if not moved:
            continue
        after = _numbers(nodes.call(site, {**env, **moved}))
        for (old, inner), (new, _) in zip(before, after, strict=True):
            axis = _axis(old.ndim - inner, i, len(site.plates))
            rest = (slice(None),) * max(axis, 0) + (
                (slice(1, None),) if axis >= 0 and old.shape[axis] > 1 else ()
            )
            if not np.array_equal(old[rest], new[rest], equal_nan=True):
                raise InvalidArgument(
                    f"the function of {site.name!r} mixes elements of plate {plate!r}: when one changes, others do, too. "
                    "Along its plates a function acts element by element; make it one vector-valued node instead (no plate)"
                )


def _warn_accidental(
    layout: Layout, nodes: Nodes, site: Site, name: str, values: dict[str, Any], before: list[tuple[Any, int]]
) -> None:
    """Warn of a parent that is not on a plate, and whose elements still each go to one element along it."""
    plates = layout.plates_of(name)
    if plates is None or (plates and set(plates) <= set(site.plates)):
        return  # a constant that was not declared comes whole on purpose; a parent on the same plates is aligned
    for i, plate in enumerate(site.plates):
        n = layout.lengths[plate]
        for axis in range(len(plates) or np.ndim(values[name])) if plate not in plates and n > 1 else ():
            if values[name].shape[axis] != n or values[name].dtype.kind != "f":
                continue
            own = True
            for place in (0, n - 1):
                moved = values[name].copy()
                at = (slice(None),) * axis + (place,)
                moved[at] = moved[at] * 0.75 + 0.125
                after = _numbers(nodes.call(site, {**values, name: moved}))
                rows: set[int] = set()
                for (old, inner), (new, _) in zip(before, after, strict=True):
                    along = _axis(old.ndim - inner, i, len(site.plates))
                    if along >= 0 and old.shape[along] == n:
                        rows |= set(np.nonzero(old != new)[along].tolist())
                    elif not np.array_equal(old, new):
                        own = False
                own = own and rows == {place}
            if own:
                over = f"plate {plates[axis]!r}" if plates else "no plate"
                warnings.warn(
                    f"{name!r}, on {over}, acts on {site.name!r} element by element along plate {plate!r}, which works only "
                    f"because both are {n} long; index it ({name}[...]), or put it on plate {plate!r}",
                    AccidentalShapeWarning,
                    stacklevel=outside(),
                )


def _numbers(found: Any) -> list[tuple[Any, int]]:
    """Return the parameters of a distribution, or a value, each with how many of its last axes are no plates."""
    if not is_distribution(found):
        return [(np.asarray(found), 0)]
    parameters = []
    for name, constraint in found.arg_constraints.items():
        value = found.__dict__.get(name)
        if value is not None:
            parameters.append((np.asarray(value), int(constraint.event_dim)))
    return parameters


def _axis(axes: int, plate: int, plates: int) -> int:
    """Return where a plate is among the axes of a parameter; below zero for a parameter without it."""
    return plate if axes >= plates else plate - (plates - axes)


def _changed(value: Any, axis: int) -> Any:
    """Return an array with its first element along an axis replaced by the second, or by another number."""
    moved = np.array(value)
    first = (slice(None),) * axis + (0,)
    second = (slice(None),) * axis + (1,)
    moved[first] = np.where(moved[first] == moved[second], moved[first], moved[second])
    if np.array_equal(moved, value) and moved.dtype.kind == "f":
        moved[first] = moved[first] * 0.75 + 0.125
    return moved


def _watched(value: Any, name: str, child: str) -> Any:
    if not isinstance(value, np.ndarray) or not value.ndim:
        return value
    made = value.view(_Watched)
    made.name, made.child, made.indexed = name, child, set()
    return made


def _made_up(layout: Layout) -> dict[str, Any]:
    """Return values for all nodes: those given, and numbers that most supports have."""
    rng = np.random.default_rng(0)
    values: dict[str, Any] = {**layout.fixed, **layout.data}
    for site in layout.sites.values():
        if site.name in values:
            continue
        if site.role == "discrete":
            most = site.states or 2  # every count may be 0 or 1
            values[site.name] = rng.integers(0, most, size=site.shape) if site.shape else 0
            continue
        made = 0.3 + 0.4 * rng.random(site.shape)
        kind = type(site.support).__name__.lower()
        if "simplex" in kind:
            made = made / made.sum(axis=-1, keepdims=True)
        elif "ordered" in kind:
            made = np.sort(made, axis=-1)
        values[site.name] = made
    return values
