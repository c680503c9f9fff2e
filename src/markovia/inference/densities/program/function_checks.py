"""Checks of a model's functions, made with plain NumPy arrays before anything is compiled.

A function acts element by element along its own plates: one that mixes rows (`z - z.mean()`) would make summing out discrete
variables, mini-batches and predictions for other rows silently wrong. And JAX clamps an index that is out of range, where
NumPy raises. Each function is called with values of its parents (`probe_values`), and again with one row changed. A parent
on another plate comes whole, to be indexed; one that is not, and acts on the element at its own place, fits only because two
plates happen to be equally long.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from markovia.errors import AccidentalShapeWarning, InvalidArgument, warn_user
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.function_node import FunctionNode
from markovia.inference.densities.program.layout import QuantityLayout, Site
from markovia.inference.densities.program.node_densities import FunctionFailed, Nodes
from markovia.inference.densities.program.probe_values import probe

ATTEMPTS = 20
"""Values of a function's parents that it may refuse (a scale below zero) before it is refused itself."""
MOST_ROWS = 4
"""Rows of a plate that are changed, one at a time."""


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


def check_functions(layout: QuantityLayout, nodes: Nodes) -> dict[str, Any]:
    """Raise where a function mixes rows of its own plates, or indexes what is not there.

    Returns
    -------
    dict
        Values of all nodes that every function was called with.

    Raises
    ------
    InvalidArgument
        Also where a function can be called with none of several draws of its parents.
    """
    asked = [
        site
        for site in layout.sites.values()
        if isinstance(site.piece, FunctionNode) and not site.lags and not site.piece.by_state and site.sources
        if site.role != "function"
    ]
    if not asked:
        return {}
    failed: FunctionFailed | None = None
    for attempt in range(ATTEMPTS):
        try:
            values = probe(layout, nodes, attempt)
            others = cache(lambda attempt=attempt: probe(layout, nodes, attempt + 2))
            for site in asked:
                _check(layout, nodes, site, values, others)
        except FunctionFailed as problem:
            failed = problem
        else:
            return values
    assert failed is not None
    raise failed


def _check(
    layout: QuantityLayout,
    nodes: Nodes,
    site: Site,
    values: dict[str, Any],
    others: Callable[[], dict[str, Any]],
) -> None:
    env = {name: _watched(value, name, site.name) for name, value in values.items()}
    if (
        site.role == "input"
        or not callable(nodes.forms[site.name])
        or is_distribution(nodes.forms[site.name])
    ):
        return
    before = _numbers(nodes.call(site, env))
    for name in site.sources:
        if isinstance(values.get(name), np.ndarray) and name not in getattr(env[name], "indexed", ()):
            _warn_accidental(layout, nodes, site, name, values, others, before)
    for i, plate in enumerate(site.plates):
        if layout.lengths[plate] < 2:
            continue
        moving = {
            name: plates.index(plate)
            for name in site.sources
            if isinstance(values.get(name), np.ndarray)
            and (plates := layout.plates_of(name))
            and plate in plates
        }
        for row in _extreme_rows([np.moveaxis(values[n], axis, 0) for n, axis in moving.items()]):
            moved = {name: _changed(values[name], axis, row) for name, axis in moving.items()}
            after = _numbers(nodes.call(site, {**env, **moved}))
            for (old, inner), (new, _) in zip(before, after, strict=True):
                axis = _axis(old.ndim - inner, i, len(site.plates))
                if axis >= 0 and old.shape[axis] > 1:
                    old, new = (np.delete(x, row, axis) for x in (old, new))
                if not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
                    raise InvalidArgument(
                        f"the function of {site.name!r} mixes elements of plate {plate!r}: when one changes, others do, "
                        "too. Along its plates a function acts element by element; make it one vector-valued node instead "
                        "(no plate)"
                    )


def _extreme_rows(arrays: list[Any]) -> list[int]:
    """Return rows that have the largest or the smallest number of some array: a change of one shows in a maximum, too."""
    found: dict[int, None] = {}
    for rows in arrays:
        height = rows.reshape(len(rows), -1).sum(axis=1)
        found.update({int(height.argmax()): None, int(height.argmin()): None})
    return list(found)[:MOST_ROWS]


def _warn_accidental(
    layout: QuantityLayout,
    nodes: Nodes,
    site: Site,
    name: str,
    values: dict[str, Any],
    others: Callable[[], dict[str, Any]],
    before: list[tuple[Any, int]],
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
                moved, places = _moved_element(
                    layout.sites.get(name), values[name], others()[name], axis, place
                )
                if not places:  # no other value of its support is different in so few places
                    own = False
                    break
                after = _numbers(nodes.call(site, {**values, name: moved}))
                rows: set[int] = set()
                for (old, inner), (new, _) in zip(before, after, strict=True):
                    along = _axis(old.ndim - inner, i, len(site.plates))
                    if along >= 0 and old.shape[along] == n:
                        rows |= set(np.nonzero(old != new)[along].tolist())
                    elif not np.array_equal(old, new):
                        own = False
                own = own and rows == places
            if own:
                over = f"plate {plates[axis]!r}" if plates else "no plate"
                warn_user(
                    f"{name!r}, on {over}, acts on {site.name!r} element by element along plate {plate!r}, which works only "
                    f"because both are {n} long; index it ({name}[...]), or put it on plate {plate!r}",
                    AccidentalShapeWarning,
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


def _changed(value: Any, axis: int, row: int) -> Any:
    """Return an array with an element along an axis replaced by the first one that differs."""
    moved = np.array(value)
    along = np.moveaxis(moved, axis, 0)
    differs = (along != along[row]).reshape(len(along), -1).any(axis=1)
    along[row] = along[differs.argmax()]
    return moved


def _moved_element(node: Site | None, value: Any, other: Any, axis: int, place: int) -> tuple[Any, set[int]]:
    """Return a value of the same support that differs at one place along an axis, or at two; and at which.

    One element may not be free to change by itself, as in a simplex: there it is exchanged with its neighbour.
    """
    at = (slice(None),) * axis
    near = place - 1 if place else 1
    replaced, exchanged = value.copy(), value.copy()
    replaced[(*at, place)] = other[(*at, place)]
    exchanged[(*at, place)], exchanged[(*at, near)] = value[(*at, near)], value[(*at, place)]
    for moved, places in ((replaced, {place}), (exchanged, {place, near})):
        if node is None or node.support is None or np.all(node.support(moved)):
            return moved, places
    return value, set()


def _watched(value: Any, name: str, child: str) -> Any:
    if not isinstance(value, np.ndarray) or not value.ndim:
        return value
    made = value.view(_Watched)
    made.name, made.child, made.indexed = name, child, set()
    return made
