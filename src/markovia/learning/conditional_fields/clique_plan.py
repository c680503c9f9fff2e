"""Clique trees for conditional random fields: made once from a graph, used for every input that shares it.

Method: variables are eliminated in min-fill order; each elimination is a clique, and its parent is the clique of the
first of its neighbours to go (a bucket tree). Reference: Koller and Friedman (2009), chapter 10. Cost of making one:
near linear in the graph plus the entries of all cliques; of using one: two passes over the entries
(`kernels/crf_cliques.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from markovia.errors import TooLarge
from markovia.graphs.triangulation.elimination import eliminate
from markovia.kernels.fields.crf_records import FieldCliques
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints

MOST_ENTRIES = 2**20
"""Entries of all cliques together up to which a graph counts as narrow enough for exact marginals."""
MOST_NODES = 2500
"""Nodes up to which a graph with cycles is looked at at all: wide graphs of this size are never narrow enough."""


@dataclass(frozen=True)
class CliquePlan:
    """A clique tree for factors in one array."""

    tree: FieldCliques

    def marginals(self, logs: Array) -> tuple[float, Array]:
        """Return the log mass of factors with the given log values, and the marginal of each factor.

        Examples
        --------
        >>> plan = clique_plan([2, 2], [(0,), (0, 1)])
        >>> mass, tables = plan.marginals(np.log([1.0, 3.0, 1.0, 1.0, 1.0, 1.0]))
        >>> round(float(np.exp(mass)), 6), tables.round(3).tolist()
        (8.0, [0.25, 0.75, 0.125, 0.125, 0.375, 0.375])
        """
        found = np.empty(len(logs))
        steps = 5 * len(self.tree.up_map) + 2 * (len(self.tree.down_map) + len(self.tree.factor_map))
        clique_tree_marginals = either("markovia.kernels.fields.crf_cliques:clique_tree_marginals", steps)
        return float(clique_tree_marginals(self.tree, logs, found)), found


def clique_plan(
    cards: Sequence[int], scopes: Sequence[Sequence[int]], most: int = MOST_ENTRIES
) -> CliquePlan:
    """Make a clique tree for factors over numbered variables.

    Parameters
    ----------
    cards
        The number of states of each variable.
    scopes
        The variables of each factor; its values are in C order of these axes.
    most
        Entries of all cliques together that are allowed.

    Raises
    ------
    TooLarge
        If the cliques found need more entries; nothing has been allocated then.
    """
    neighbours: list[set[int]] = [set() for _ in cards]
    for scope in scopes:
        for v in scope:
            neighbours[v].update(u for u in scope if u != v)
    steps = eliminate(neighbours, "min-fill", [float(c) for c in cards])
    when = {v: c for c, (v, _) in enumerate(steps)}
    cliques = [(v, *sorted(around, key=when.__getitem__)) for v, around in steps]
    sizes = [prod(cards[v] for v in clique) for clique in cliques]
    homes = [min((when[v] for v in scope), default=0) for scope in scopes]
    if sum(sizes) > most:
        raise TooLarge(
            f"exact marginals of this graph need {sum(sizes):,} clique entries, more than {most:,}; "
            "use inference='loopy-bp', 'tree-reweighted' or 'pseudo-likelihood'",
            bytes=8.0 * sum(sizes),
        )
    parents = [when[clique[1]] if len(clique) > 1 else -1 for clique in cliques]
    up = [_places(clique, clique[1:], cards) for clique in cliques]
    down = [
        _places(cliques[p], clique[1:], cards) if p >= 0 else np.zeros(0, np.int32)
        for clique, p in zip(cliques, parents, strict=True)
    ]
    own = [_places(cliques[h], scope, cards) for h, scope in zip(homes, scopes, strict=True)]
    tree = FieldCliques(
        np.array(parents, dtype=np.int64),
        _pointers(sizes),
        _pointers([prod(cards[v] for v in clique[1:]) for clique in cliques]),
        _joined(up),
        _pointers([len(m) for m in down]),
        _joined(down),
        np.array(homes, dtype=np.int64),
        _pointers([prod(cards[v] for v in scope) for scope in scopes]),
        _pointers([len(m) for m in own]),
        _joined(own),
    )
    return CliquePlan(tree)


def _places(clique: Sequence[int], scope: Sequence[int], cards: Sequence[int]) -> NDArray[np.int32]:
    """Return for each entry of a clique's table the entry of a smaller table that it agrees with."""
    shape = [cards[v] for v in clique]
    found = np.zeros(shape, dtype=np.int32)
    stride = 1
    for v in reversed(scope):
        axis = clique.index(v)
        steps = np.arange(cards[v], dtype=np.int32) * stride
        found += steps.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        stride *= cards[v]
    return found.ravel()


def _pointers(sizes: Sequence[int]) -> Ints:
    return np.concatenate(([0], np.cumsum(np.asarray(sizes, dtype=np.int64)))).astype(np.int64)


def _joined(maps: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate(maps) if maps else np.zeros(0, np.int32)
