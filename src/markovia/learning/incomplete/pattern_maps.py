"""Maps of clique trees for patterns of missing variables: which entry of a small table each entry of a clique goes with.

A map has one number for each entry of a clique: the offset in a family's table, or in a child's message. Maps with the same
lengths and strides of axes are made once. Cost: near linear in the axes of all cliques, and the entries of the maps.
"""

import numpy as np

from markovia.kernels.incomplete.incomplete_records import MissingGroups, NetworkFamilies, PatternTrees
from markovia.kernels.plain_code import either
from markovia.learning.incomplete.missing_groups import number_lists, places_of, starts_of
from markovia.runtime.array_types import Ints


def with_maps(
    groups: MissingGroups, families: NetworkFamilies, clique_at: Ints, clique: Ints, axis: Ints, slot: Ints
) -> PatternTrees:
    """Return the trees of `plan_patterns` with the maps of all slots and messages."""
    card, scope_start, scope = families.card, families.scope_start, families.scope
    clique, slot = clique.reshape(-1, 8), slot.reshape(-1, 2)
    n = len(clique) - 1
    pattern = np.repeat(np.arange(len(clique_at) - 1), np.diff(clique_at))
    first, n_axes, n_sep = clique[:n, 5], np.diff(clique[:, 5]), clique[:n, 7]
    variable = groups.member[np.repeat(groups.member_start[pattern], n_axes) + axis]
    length = card[variable]
    step_up = _separator_strides(first, n_sep, length)
    # maps of families, then of messages; each over the axes of one clique
    owner = np.repeat(np.arange(n), np.diff(clique[:, 4]))
    child = np.flatnonzero(clique[:n, 2] >= 0)
    over = np.concatenate([owner, clique_at[pattern[child]] + clique[child, 2]])
    lengths = n_axes[over]
    places = places_of(first[over], lengths)
    steps = np.zeros(len(places), dtype=np.int64)
    own = int(lengths[: len(owner)].sum())
    family, seen = np.repeat(slot[:, 0], lengths[: len(owner)]), variable[places[:own]]
    widths = np.diff(scope_start)
    for q in range(int(widths.max(initial=0))):
        entry = np.minimum(scope_start[family] + q, len(scope) - 1)
        hit = np.flatnonzero((widths[family] > q) & (scope[entry] == seen))
        steps[hit] = families.stride[entry[hit]]
    below, seen = np.repeat(child, lengths[len(owner) :]), axis[places[own:]]
    for q in range(int(n_sep[child].max(initial=0))):
        entry = np.minimum(first[below] + q, max(len(axis) - 1, 0))
        hit = np.flatnonzero((n_sep[below] > q) & (axis[entry] == seen))
        steps[own + hit] = step_up[entry[hit]]
    words = np.column_stack([length[places], steps]).ravel()
    number, distinct = number_lists(2 * starts_of(lengths), words)
    sizes = 2 * lengths[distinct]
    chosen = words[places_of(2 * starts_of(lengths)[distinct], sizes)]
    at = starts_of(clique[over[distinct], 0])
    maps = np.empty(int(at[-1]), dtype=np.int32)
    fill_maps = either("markovia.kernels.incomplete.pattern_trees:fill_maps", len(maps))
    fill_maps(starts_of(sizes), chosen, at, maps)
    slot[:, 1] = at[number[: len(owner)]]
    clique[child, 3] = at[number[len(owner) :]]
    return PatternTrees(clique_at, clique, axis, length, slot, maps)


def _separator_strides(first: Ints, n_sep: Ints, cards: Ints) -> Ints:
    """Return for each axis in a clique's separator its stride there; separators come first."""
    found = np.zeros(len(cards), dtype=np.int64)
    run = np.ones(len(first), dtype=np.int64)
    for q in range(int(n_sep.max(initial=0)) - 1, -1, -1):
        wide = np.flatnonzero(n_sep > q)
        found[first[wide] + q] = run[wide]
        run[wide] *= cards[first[wide] + q]
    return found
