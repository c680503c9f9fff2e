"""Symmetries of a model: found, checked, and broken, so that an algorithm works on one of several mirror images.

Method: colour refinement tells which states may be exchanged. Where two states of one variable look alike, each is
marked in turn, the colours are refined, and states of equal colour are matched; the exchange counts only if every table
is carried to a table with the same numbers. Then one of the two states gets the weight of both and the other none. The
mass stays what it was, the rest of the model is smaller, and marginals of the original are means of marginals over the
mirror images. In pedigrees, where father's and mother's side of every founder may be exchanged, this takes away the many
equally good modes that message passing would have to choose from.
References: colour refinement as in McKay and Piperno (2014), "Practical graph isomorphism"; in graphical models, Kersting,
Ahmadi and Natarajan (2009), "Counting belief propagation", and Bui, Huynh and Riedel (2013), "Automorphism groups of
graphical models and lifted variational inference".
Cost: a few passes over all table entries for every exchange that is found.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import now

Colours = NDArray[np.uint64]
CLOSE = 1e-10


class Broken(NamedTuple):
    """A model with some symmetries broken, and how to get back.

    `mirrors` holds for every step the exchanges of states whose mean restores it, the identity left out.
    """

    graph: FlatGraph
    mirrors: list[list[Ints]]

    def restored(self, marginals: Array) -> Array:
        """Return the marginals of the whole model from those of the broken one, over all states of all variables."""
        for exchanges in reversed(self.mirrors):
            total = marginals.copy()
            for exchange in exchanges:
                total[exchange] += marginals
            marginals = total / (1 + len(exchanges))
        return marginals


def break_symmetries(graph: FlatGraph, deadline: float | None = None) -> Broken:
    """Break the symmetries that exchange states of one variable (and perhaps others with it), one after the other.

    Parameters
    ----------
    graph
        The model.
    deadline
        When to stop looking, in seconds of `runtime.clock.now`.

    Examples
    --------
    >>> import markovia as mk
    >>> from markovia.inference.flat_graphs.flat_graph import flat_graph
    >>> magnet = mk.generators.ising_grid(3, 3, coupling=0.4)
    >>> broken = break_symmetries(flat_graph(magnet._problem({}, "junction-tree")))
    >>> len(broken.mirrors)  # all spins may be flipped together
    1
    """
    mirrors: list[list[Ints]] = []
    failed: set[tuple[int, int]] = set()
    if not graph.n_factors:
        return Broken(graph, mirrors)
    value_colour = _coloured(graph.values)
    degree = np.diff(graph.edge_ptr)
    order = np.argsort(-degree, kind="stable").tolist()
    while deadline is None or now() < deadline:
        colour = _refined(graph, value_colour, _coloured(graph.unary))
        step = None
        for v in order:
            first, last = int(graph.starts[v]), int(graph.starts[v + 1])
            alike = _alike(colour, graph.unary, first, last, failed)
            if alike is None:
                continue
            exchanges = []
            for other in alike[1:]:
                found = _exchange(graph, value_colour, colour, alike[0], other)
                if found is None:
                    failed.add((alike[0], other))
                else:
                    exchanges.append((other, found))
            if exchanges:
                step = alike[0], exchanges
                break
            if deadline is not None and now() > deadline:
                break
        if step is None:
            break
        keep, exchanges = step
        unary = graph.unary.copy()
        unary[[other for other, _ in exchanges]] = 0.0
        v = int(np.searchsorted(graph.starts, keep, side="right")) - 1
        first, last = int(graph.starts[v]), int(graph.starts[v + 1])
        unary[keep] *= 1 + len(exchanges)
        top = float(unary[first:last].max())
        unary[first:last] /= top
        mirrors.append([g for _, g in exchanges])
        graph = replace(graph, unary=unary, log_scale=graph.log_scale + float(np.log(top)))
    return Broken(graph, mirrors)


def _alike(
    colour: Colours, unary: Array, first: int, last: int, failed: set[tuple[int, int]]
) -> list[int] | None:
    """Return possible states of one variable that look alike, or None."""
    groups: dict[int, list[int]] = {}
    for p in range(first, last):
        if unary[p] > 0:
            groups.setdefault(int(colour[p]), []).append(p)
    for group in groups.values():
        fresh = [group[0], *[p for p in group[1:] if (group[0], p) not in failed]]
        if len(fresh) > 1:
            return fresh
    return None


def _exchange(graph: FlatGraph, value_colour: Colours, colour: Colours, a: int, b: int) -> Ints | None:
    """Return a symmetry of the model that carries state a to state b of the same variable, or None."""
    here, there = colour.copy(), colour.copy()
    mark = np.uint64(1)
    one, other = a, b
    v = int(np.searchsorted(graph.starts, a, side="right")) - 1
    for _ in range(200):
        here[one] ^= mark
        there[other] ^= mark
        mark += np.uint64(1)
        here = _refined(graph, value_colour, here)
        there = _refined(graph, value_colour, there)
        if not np.array_equal(np.sort(here), np.sort(there)):
            return None
        image = np.where(here == there, np.arange(len(here)), -1)
        open_points = np.flatnonzero(image < 0)
        if not len(open_points):
            break
        wanted, inverse, counts = np.unique(here[open_points], return_inverse=True, return_counts=True)
        their_points = open_points[np.argsort(there[open_points], kind="stable")]
        theirs = there[their_points]
        if not np.array_equal(theirs, np.repeat(wanted, counts)):
            return None
        if (counts == 1).all():
            image[open_points] = their_points[inverse]
            break
        k = int(np.flatnonzero(counts[inverse] > 1)[0])
        one = int(open_points[k])
        other = int(their_points[np.searchsorted(theirs, here[one])])
    else:
        return None
    if not (graph.starts[v] <= image[a] < graph.starts[v + 1] and image[a] == b):
        return None
    return image if is_symmetry(graph, image) else None


def is_symmetry(graph: FlatGraph, image: Ints) -> bool:
    """Say whether an exchange of states carries variables to variables and every table to an equal one."""
    owner = np.repeat(np.arange(len(graph.cards)), graph.cards)
    if not np.array_equal(np.sort(image), np.arange(len(image))):
        return False
    target = owner[image[graph.starts[:-1]]]
    if not np.array_equal(owner[image], np.repeat(target, graph.cards)):
        return False
    if not np.array_equal(graph.cards[target], graph.cards):
        return False
    if not np.allclose(graph.unary[image], graph.unary, rtol=CLOSE, atol=0.0):
        return False
    digit = image - graph.starts[owner[image]]
    moved = image != np.arange(len(image))
    touched = np.unique(graph.edge_factor[np.add.reduceat(moved, graph.starts[:-1])[graph.scope] > 0])
    place = {frozenset(graph.members(f).tolist()): f for f in range(graph.n_factors)}
    for f in touched.tolist():
        members = graph.members(f)
        g = place.get(frozenset(target[members].tolist()))
        if g is None:
            return False
        step = dict(
            zip(
                graph.members(g).tolist(),
                graph.strides[graph.scope_ptr[g] : graph.scope_ptr[g + 1]].tolist(),
                strict=True,
            )
        )
        where = np.zeros((1,), dtype=np.int64)
        for i in members.tolist():
            own = digit[graph.starts[i] : graph.starts[i + 1]] * step[int(target[i])]
            where = (where[:, None] + own[None, :]).ravel()
        mine = graph.values[graph.table_ptr[f] : graph.table_ptr[f + 1]]
        theirs = graph.values[graph.table_ptr[g] : graph.table_ptr[g + 1]]
        if len(mine) != len(theirs) or not np.allclose(theirs[where], mine, rtol=CLOSE, atol=0.0):
            return False
    return True


def _refined(graph: FlatGraph, value_colour: Colours, colour: Colours) -> Colours:
    """Refine the colours of all states until there are no more of them."""
    found, fresh = colour.copy(), np.empty_like(colour)
    known, count = -1, len(np.unique(found))
    steps = 60.0 * float((np.diff(graph.table_ptr) * np.diff(graph.scope_ptr)).sum()) + 40.0 * len(found)
    while count > known:
        refine = either("markovia.kernels.flat_graphs.colour_refinement:refine_once", steps)
        refine(
            graph.starts,
            graph.scope_ptr,
            graph.scope,
            graph.strides,
            graph.table_ptr,
            value_colour,
            found,
            fresh,
        )
        known, count = count, len(np.unique(found))
    return found


def _coloured(values: Sequence[float] | Array) -> Colours:
    """Return a colour for every number; numbers that differ by rounding have the same."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.asarray(values, dtype=np.float64))
    return np.ascontiguousarray(np.round(logs, 9) + 0.0).view(np.uint64).copy()
