"""Taking incomplete rows apart: which missing cells hang together, and equal cases once.

A row's missing variables fall into groups: two of them are joined if some family mentions both. The *pattern* of a group is
its set of variables; a *case* is a pattern with the observed states around it. Lists of whole numbers (the variables of a
pattern, the offsets of a case) lie one after the other; equal lists get one number, by hashing all at once.
Cost: near linear in the missing cells times the families around each.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.kernels.incomplete.incomplete_records import GroupCases, MissingGroups, NetworkFamilies
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.seeds import mixed_bits


def starts_of(lengths: Any) -> Ints:
    """Return where lists of these lengths begin when they lie one after the other, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def places_of(first: Ints, lengths: Ints) -> Ints:
    """Return `first[i], first[i] + 1, ...`, as many as `lengths[i]`, for all i."""
    return np.arange(int(lengths.sum())) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)


def number_lists(start: Ints, words: Ints, kind: Ints | None = None) -> tuple[Ints, Ints]:
    """Return a number for each list, equal for equal lists of one kind, in the order they are first met; and those firsts.

    Examples
    --------
    >>> number, first = number_lists(np.array([0, 2, 3, 5]), np.array([4, 5, 4, 4, 5]))
    >>> number.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    """
    n, lengths = len(start) - 1, np.diff(start)
    kind = np.zeros(n, dtype=np.int64) if kind is None else kind
    within = places_of(np.zeros(n, dtype=np.int64), lengths)
    seed = 0
    while True:  # until no two different lists share a hash: nearly always once
        seed += 1
        sums = np.concatenate([[np.uint64(0)], np.cumsum(mixed_bits(words + (within << 33), seed))])
        hashes = mixed_bits(
            # kinds are mixed otherwise than words, or a list (1) of kind 0 would be a list (0) of kind 1
            sums[start[1:]] - sums[start[:-1]] + mixed_bits(kind, -seed) + lengths.view(np.uint64),
            seed,
        )
        _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
        same = first[number]
        alike = np.array_equal(lengths[same], lengths) and np.array_equal(kind[same], kind)
        if alike and np.array_equal(words[places_of(start[same], lengths)], words):
            break
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[number], first[order]


def split_rows(
    codes: NDArray[Any], used: NDArray[np.bool_], scopes: Sequence[Sequence[int]]
) -> MissingGroups:
    """Return the groups of missing cells of all used rows; `codes[i, r]` is variable i's state, negative if missing."""
    missing = (codes < 0) & used
    row, variable = np.nonzero(missing.T)
    label = np.arange(len(row))
    before = (starts_of(missing.sum(axis=0))[:-1] - 1).astype(np.int32)
    place = np.cumsum(missing, axis=0, dtype=np.int32) + before
    left, right = [], []
    for a, b in sorted({(min(p, q), max(p, q)) for scope in scopes for p in scope for q in scope if p != q}):
        both = np.flatnonzero(missing[a] & missing[b])
        left.append(place[a, both])
        right.append(place[b, both])
    if any(map(len, left)):
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        ends = np.concatenate(left), np.concatenate(right)
        joined = coo_matrix((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(len(row), len(row)))
        label = connected_components(joined, directed=False)[1]
        order = np.argsort(label, kind="stable")  # labels come in the order of their first cells
        row, label, variable = row[order], label[order], variable[order]
    fresh = np.concatenate([[True], label[1:] != label[:-1]]) if len(row) else np.zeros(0, dtype=np.bool_)
    start = np.append(np.flatnonzero(fresh), len(row))
    pattern, first = number_lists(start, variable)
    sizes = np.diff(start)[first]
    return MissingGroups(row[start[:-1]], pattern, starts_of(sizes), variable[places_of(start[first], sizes)])


def number_cases(
    codes: NDArray[Any],
    weights: Array,
    groups: MissingGroups,
    first_slot: Ints,
    family: Ints,
    families: NetworkFamilies,
) -> GroupCases:
    """Give numbers to the distinct cases of all groups, those of one pattern side by side.

    The tables of pattern p belong to the families `family[first_slot[p] : first_slot[p + 1]]`; a pattern without any has
    no tree. The offset of a table is where its entries begin once the observed states are put in.
    """
    lengths = np.diff(first_slot)
    order = np.argsort(groups.pattern, kind="stable")
    order = order[lengths[groups.pattern[order]] > 0]
    pattern, row = groups.pattern[order], groups.row[order]
    sizes = lengths[pattern]
    f = family[places_of(first_slot[pattern], sizes)]
    rows = np.repeat(row, sizes)
    words = families.table_at[f]
    by_family = np.argsort(f, kind="stable")
    ends = starts_of(np.bincount(f, minlength=len(families.table_at) - 1)).tolist()
    for i in range(len(ends) - 1):
        here = by_family[ends[i] : ends[i + 1]]
        seen = rows[here]
        for entry in range(int(families.scope_start[i]), int(families.scope_start[i + 1])):
            words[here] += np.maximum(codes[families.scope[entry]][seen], 0) * families.stride[entry]
    start = starts_of(sizes)
    number, first = number_lists(start, words, pattern)
    of = np.full(len(groups.row), -1)
    of[order] = number
    chosen = sizes[first]
    total = np.bincount(number, weights[row], minlength=len(first)).astype(np.float64)
    return GroupCases(of, pattern[first], total, starts_of(chosen), words[places_of(start[first], chosen)])
