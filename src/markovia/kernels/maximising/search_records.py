"""What local searches for the best configuration work on; the shape of each array stands beside it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array, Ints


class SearchState(NamedTuple):
    """The present configuration of n variables and the best one."""

    x: Ints  # (n,)
    score: Array  # (states of all variables,)
    rng: NDArray[np.uint64]  # (4,): the state of a generator
    best_x: Ints  # (n,)
    totals: Array  # (2,): the scores of both


class SearchPenalties(NamedTuple):
    """Penalties of entries, by how often they were to blame for a local optimum."""

    unary: Array  # (states of all variables,)
    tables: Array  # (entries,)
    values: Array  # (entries,): logs with penalties taken off


class PrefixTables(NamedTuple):
    """Log tables in the order in which a search gives states to n variables; `depth` is a place in that order.

    The score of a prefix grows at depth d by the tables `joining` there, of which the variable at d is the last, and falls
    by those `leaving`: bounds on what d and later variables can add, which were counted before. The state of a variable is
    kept in its slot as long as a table asks for it, and slots are used again.

    | field | shape | holds |
    |---|---|---|
    | cards, slot | (n,) | states of the variable at each depth, and its slot |
    | live_ptr, live | (n + 1,), (.,) | the slots that are still asked for after each depth |
    | scope_ptr, scope, strides | (tables + 1,), (.,), (.,) | slots and strides of each table's variables, stride 1 last |
    | base, values | (tables,), (entries,) | where each table begins, and all entries |
    | joining_ptr, joining | (n + 1,), (.,) | tables by depth |
    | leaving_ptr, leaving | (n + 1,), (.,) | tables by depth |
    """

    cards: Ints
    slot: Ints
    live_ptr: Ints
    live: Ints
    scope_ptr: Ints
    scope: Ints
    strides: Ints
    base: Ints
    values: Array
    joining_ptr: Ints
    joining: Ints
    leaving_ptr: Ints
    leaving: Ints


class BeamState(NamedTuple):
    """The prefixes in a beam of width w over n variables with up to c states and s slots.

    Prefixes of even and of odd depths take turns in the first axis of `codes` and `scores`.
    """

    codes: Ints  # (2, w, s)
    scores: Array  # (2, w)
    parents: Ints  # (n, w): which prefix each was extended from
    states: Ints  # (n, w): by which state
    offered: Array  # (w c,): scores of all extensions
    hashed: Ints  # (power of two,): a hash table of extensions by what they leave behind
    heap: Ints  # (w,): the extensions kept, the worst first
    ends: Array  # (2,): number of prefixes, the largest score thrown away


class OpenNodes(NamedTuple):
    """The nodes of a best-first search, at most m: prefixes that are extended by one state each; -1 is the empty prefix."""

    bounds: Array  # (m,)
    parents: Ints  # (m,)
    states: Ints  # (m,)
    depths: Ints  # (m,): states in the prefix
    heap: Ints  # (m,): open nodes, the best first
    hashed: Ints  # (power of two,): extended nodes by what they leave behind
    codes: Ints  # (2, slots): room for two prefixes by slot
    path: Ints  # (n,)
    ends: Array  # (5,): nodes made, nodes open, nodes extended, the best value, its node
