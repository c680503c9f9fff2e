"""Sweeps of dual block ascent: log potentials move between tables and separators so that the sum of maxima falls.

`sweep_pairs` is sequential tree-reweighted message passing (Kolmogorov 2006) for factors of two variables. `sweep`
is its extension to tables of any size that share *separators* (Kolmogorov 2015, "A new look at reweighted message
passing"): a separator collects the max-marginals of all tables around it and hands its potential out again. Both
keep the log weight of every configuration and never let the bound rise. States that some table rules out get minus
infinity and stay out.
"""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import pointers
from markovia.runtime.array_types import Array, Ints


class Links(NamedTuple):
    """A pairwise model for `sweep_pairs`.

    Variable s has the links `ends[s] : ends[s + 1]`, those to variables before it up to `splits[s]`. `arrive[k]` is where
    the message along link k arrives at s, `theirs[k]` where the one at the other end does, `table[k]` where the table
    begins, `second[k]` whether s is its second variable, `potts[k]` whether it has but two values. `peaks` holds the
    greatest belief of each variable when it last sent; their sum over a full sweep is the bound.
    """

    shares: Array
    starts: Ints
    unary: Array
    tables: Array
    ends: Ints
    splits: Ints
    others: Ints
    theirs: Ints
    arrive: Ints
    table: Ints
    second: NDArray[np.int8]
    potts: NDArray[np.int8]
    incoming: Array
    peaks: Array
    codes: Ints
    belief: Array
    outgoing: Array


class DualTables(NamedTuple):
    """Tables and the separators they share; the first n separators are the variables."""

    starts: Ints  # (separators + 1,): where a separator's potential begins
    potentials: Array  # (states,)
    table_ptr: Ints  # (tables + 1,): where a table begins
    tables: Array  # (entries,): in logarithms
    scope_ptr: Ints  # (tables + 1,): where the variables of a table begin, in the order of their edges
    scope: Ints  # (edges to variables,)
    edge_ptr: Ints  # (separators + 1,): where the edges at a separator begin
    edges: Ints  # (edges,)
    edge_factor: Ints  # (edges,): the table of an edge
    map_ptr: Ints  # (edges + 1,)
    maps: NDArray[np.int32]  # the separator's state at each entry of the edge's table


class SignedGraph(NamedTuple):
    """The neighbours of each node, whether they prefer to differ from it (1) or not (0), and how much."""

    ptr: Ints
    others: Ints
    odd: Ints
    strengths: Array


class CycleRoom(NamedTuple):
    """Room for searches: at each place the stamp of the last one that was there and where it came from; queue and path."""

    seen: Ints
    came: Ints
    queue: Ints
    path: Ints


@kernel(bare=True)
def sweep_pairs(links, low, high, forward, decoding):
    """Send the messages of variables low to high to those after them, or backwards from high to low to those before.

    With `decoding` each variable takes the best state given those already visited and the messages of the others.
    Returns False if a variable has no possible state.
    """
    shares, starts, unary, tables, ends, splits, others, theirs, arrive, table, second, potts, incoming, peaks, codes, \
        belief, outgoing = pointers(links)  # fmt: skip
    for step in range(high - low):
        s = low + step if forward else high - 1 - step
        base = starts[s]
        card = starts[s + 1] - base
        first, split, last = ends[s], splits[s], ends[s + 1]
        mine = arrive[first] if last > first else 0
        share = shares[s]
        begin, end = (split, last) if forward else (first, split)
        # the belief: what it is itself and what all links say
        if card == 2:
            b0, b1 = unary[base], unary[base + 1]
            for k in range(last - first):
                b0 += incoming[mine + 2 * k]
                b1 += incoming[mine + 2 * k + 1]
            belief[0], belief[1] = b0, b1
        else:
            for x in range(card):
                belief[x] = unary[base + x]
            for k in range(last - first):
                at = mine + k * card
                for x in range(card):
                    belief[x] += incoming[at + x]
        peak = belief[0]
        for x in range(1, card):
            peak = belief[x] if belief[x] > peak else peak
        peaks[s] = peak
        if peak == -inf:
            return False
        # the best state given those chosen before it, and the messages of those that come later
        if decoding:
            for x in range(card):
                outgoing[x] = unary[base + x]
            for k in range(first, last):
                at = mine + (k - first) * card
                if begin <= k < end:
                    for x in range(card):
                        outgoing[x] += incoming[at + x]
                else:
                    t = others[k]
                    width = starts[t + 1] - starts[t]
                    down, across = (1, card) if second[k] else (width, 1)
                    row = table[k] + codes[t] * across
                    for x in range(card):
                        outgoing[x] += tables[row + x * down]
            best = -1
            for x in range(card):
                if belief[x] > -inf and (best < 0 or outgoing[x] > outgoing[best]):
                    best = x
            codes[s] = best
        # send: a share of the belief less what came from there, maximised over the table; tables of two
        # values and of two states have short ways
        for k in range(begin, end):
            at = mine + (k - first) * card
            to = theirs[k]
            row = table[k]
            t = others[k]
            width = starts[t + 1] - starts[t]
            if card == 2:
                u0 = share * (belief[0] - peak) - incoming[at] if belief[0] > -inf else -inf
                u1 = share * (belief[1] - peak) - incoming[at + 1] if belief[1] > -inf else -inf
                outgoing[0], outgoing[1] = u0, u1
                if width == 2:
                    c, d = (row + 1, row + 2) if second[k] else (row + 2, row + 1)
                    u, v = tables[row] + u0, tables[c] + u1
                    incoming[to] = u if u > v else v
                    u, v = tables[d] + u0, tables[row + 3] + u1
                    incoming[to + 1] = u if u > v else v
                    continue
            else:
                for x in range(card):
                    u = share * (belief[x] - peak) - incoming[at + x]
                    outgoing[x] = u if belief[x] > -inf else -inf
            if potts[k]:
                top = outgoing[0]
                for x in range(1, card):
                    top = outgoing[x] if outgoing[x] > top else top
                same, top = tables[row], top + tables[row + 1]
                for y in range(width):
                    u = outgoing[y] + same
                    incoming[to + y] = u if u > top else top
            elif not second[k]:
                sent = outgoing[0]
                for y in range(width):
                    incoming[to + y] = tables[row + y] + sent
                for x in range(1, card):
                    sent = outgoing[x]
                    row += width
                    for y in range(width):
                        u, v = tables[row + y] + sent, incoming[to + y]
                        incoming[to + y] = u if u > v else v
            else:
                for y in range(width):
                    top = tables[row] + outgoing[0]
                    for x in range(1, card):
                        u = tables[row + x] + outgoing[x]
                        top = u if u > top else top
                    incoming[to + y] = top
                    row += card
    return True


@kernel(_nrt=False)
def sweep(low, high, forward, order, shares, dual, belief, gathered):
    """Visit the separators at places low to high of the order, or backwards; return by how much the bound fell.

    `shares[e]` is the part of the separator's potential that the table of edge e gets. Minus infinity in the answer: nothing
    is possible.
    """
    starts, potentials, table_ptr, tables, _, _, edge_ptr, edges, edge_factor, map_ptr, maps = dual
    change = 0.0
    for step in range(high - low):
        s = order[low + step if forward else high - 1 - step]
        base = starts[s]
        card = starts[s + 1] - base
        top = -np.inf
        for x in range(card):
            belief[x] = potentials[base + x]
            top = max(top, belief[x])
        change -= top
        # collect the max-marginals of all tables around
        used = 0
        for k in range(edge_ptr[s], edge_ptr[s + 1]):
            e = edges[k]
            f = edge_factor[e]
            first = table_ptr[f]
            places = map_ptr[e]
            for x in range(card):
                gathered[used + x] = -np.inf
            for y in range(table_ptr[f + 1] - first):
                x = used + maps[places + y]
                if tables[first + y] > gathered[x]:
                    gathered[x] = tables[first + y]
            top = -np.inf
            for x in range(card):
                belief[x] += gathered[used + x]
                top = max(top, gathered[used + x])
            change -= top
            used += card
        peak = -np.inf
        for x in range(card):
            peak = max(peak, belief[x])
        if peak == -np.inf:
            return -np.inf
        change += peak
        # hand their sum out again, to each its share in place of its own
        used = 0
        kept = 1.0
        for k in range(edge_ptr[s], edge_ptr[s + 1]):
            e = edges[k]
            f = edge_factor[e]
            first = table_ptr[f]
            places = map_ptr[e]
            share = shares[e]
            kept -= share
            for x in range(card):
                if belief[x] == -np.inf:
                    gathered[used + x] = -np.inf
                else:
                    gathered[used + x] = share * (belief[x] - peak) - gathered[used + x]
            for y in range(table_ptr[f + 1] - first):
                tables[first + y] += gathered[used + maps[places + y]]
            used += card
        for x in range(card):
            if belief[x] > -np.inf:
                potentials[base + x] = max(kept, 0.0) * (belief[x] - peak)
            else:
                potentials[base + x] = -np.inf
    return change


@kernel(_nrt=False)
def decode(order, propagating, dual, codes, score, best, room):
    """Give each variable in turn its best state given those before it, by the present potentials and tables.

    With `propagating`, states that have become impossible are ruled out after each choice (arc consistency). The room is
    for all states of variables (alive), all tables (queue and, zeros, queued) and the states of a table (supported).
    """
    alive, queue, queued, supported = room
    starts, potentials, table_ptr, tables, scope_ptr, scope, edge_ptr, edges, edge_factor, map_ptr, maps = (
        dual
    )
    n = len(codes)
    for x in range(starts[n]):
        alive[x] = potentials[x] > -np.inf
    for turn in range(len(order)):
        s = order[turn]
        if s >= n:
            continue
        base = starts[s]
        card = starts[s + 1] - base
        for x in range(card):
            score[x] = potentials[base + x] if alive[base + x] else -1e18
        # each table around adds its best entry among those that agree with what is alive
        for k in range(edge_ptr[s], edge_ptr[s + 1]):
            e = edges[k]
            if e >= len(scope):
                continue
            f = edge_factor[e]
            first = table_ptr[f]
            for x in range(card):
                best[x] = -1e18
            for y in range(table_ptr[f + 1] - first):
                x = maps[map_ptr[e] + y]
                if tables[first + y] <= best[x]:
                    continue
                agrees = True
                for o in range(scope_ptr[f], scope_ptr[f + 1]):
                    if o != e and not alive[starts[scope[o]] + maps[map_ptr[o] + y]]:
                        agrees = False
                        break
                if agrees:
                    best[x] = tables[first + y]
            for x in range(card):
                score[x] += best[x]
        # the best state becomes the only one alive
        chosen = 0
        for x in range(1, card):
            if score[x] > score[chosen]:
                chosen = x
        codes[s] = chosen
        for x in range(card):
            alive[base + x] = x == chosen
        if not propagating:
            continue
        # arc consistency: the tables around, and then those of every variable that loses a state
        count = 0
        for k in range(edge_ptr[s], edge_ptr[s + 1]):
            if edges[k] < len(scope):
                queue[count] = edge_factor[edges[k]]
                queued[queue[count]] = True
                count += 1
        while count > 0:
            count -= 1
            f = queue[count]
            queued[f] = False
            for x in range(len(supported)):
                supported[x] = False
            for y in range(table_ptr[f + 1] - table_ptr[f]):
                if tables[table_ptr[f] + y] == -np.inf:
                    continue
                agrees = True
                for o in range(scope_ptr[f], scope_ptr[f + 1]):
                    if not alive[starts[scope[o]] + maps[map_ptr[o] + y]]:
                        agrees = False
                        break
                if agrees:
                    at = 0
                    for o in range(scope_ptr[f], scope_ptr[f + 1]):
                        supported[at + maps[map_ptr[o] + y]] = True
                        at += starts[scope[o] + 1] - starts[scope[o]]
            # states without support die, unless all of a variable's would
            at = 0
            for o in range(scope_ptr[f], scope_ptr[f + 1]):
                t = scope[o]
                width = starts[t + 1] - starts[t]
                lost, left = False, False
                for x in range(width):
                    lost = lost or (alive[starts[t] + x] and not supported[at + x])
                    left = left or (alive[starts[t] + x] and supported[at + x])
                if lost and left:
                    for x in range(width):
                        alive[starts[t] + x] = alive[starts[t] + x] and supported[at + x]
                    for k in range(edge_ptr[t], edge_ptr[t + 1]):
                        if edges[k] < len(scope) and not queued[edge_factor[edges[k]]]:
                            queue[count] = edge_factor[edges[k]]
                            queued[queue[count]] = True
                            count += 1
                at += width
    return 0


@kernel(_nrt=False)
def project_pairs(rows, widths, dual, pair_ptr, room, beliefs):
    """Add to each pair's belief the max-marginals of the tables it lies in: rows of pair, table, first and second edge."""
    table_ptr, tables, map_ptr, maps = dual.table_ptr, dual.tables, dual.map_ptr, dual.maps
    for k in range(len(rows)):
        p, f, first, second = rows[k, 0], rows[k, 1], rows[k, 2], rows[k, 3]
        size = pair_ptr[p + 1] - pair_ptr[p]
        for x in range(size):
            room[x] = -np.inf
        for y in range(table_ptr[f + 1] - table_ptr[f]):
            x = maps[map_ptr[first] + y] * widths[k] + maps[map_ptr[second] + y]
            room[x] = max(room[x], tables[table_ptr[f] + y])
        for x in range(size):
            beliefs[pair_ptr[p] + x] += room[x]
    return 0


@kernel(_nrt=False)
def score_cycles(cycles, lengths, pair_of, cards, pairs, pair_ptr, beliefs, room, scores):
    """Fill in how much the bound could fall at least if the pairs around each cycle had to agree.

    `cycles` and `pair_of` (cycles, longest): the variables of each and the pair after each; `pairs` (pairs, 2), whose
    beliefs begin at `pair_ptr`; `room` (2, most states).
    """
    for c in range(len(lengths)):
        length = lengths[c]
        apart = 0.0
        for k in range(length):
            p = pair_of[c, k]
            top = -np.inf
            for x in range(pair_ptr[p], pair_ptr[p + 1]):
                top = max(top, beliefs[x])
            apart += top
        # the best way around for each first state, by steps from pair to pair
        together = -np.inf
        for start in range(cards[cycles[c, 0]]):
            for x in range(cards[cycles[c, 0]]):
                room[0, x] = 0.0 if x == start else -np.inf
            for k in range(length):
                i, j, p = cycles[c, k], cycles[c, (k + 1) % length], pair_of[c, k]
                straight = pairs[p, 0] == i
                for y in range(cards[j]):
                    top = -np.inf
                    for x in range(cards[i]):
                        at = x * cards[j] + y if straight else y * cards[i] + x
                        top = max(top, room[0, x] + beliefs[pair_ptr[p] + at])
                    room[1, y] = top
                for y in range(cards[j]):
                    room[0, y] = room[1, y]
            together = max(together, room[0, start])
        scores[c] = apart - together
    return 0


@kernel(_nrt=False)
def pair_signs(pairs, codes, cards, pair_ptr, beliefs, signs):
    """Fill in by how much each pair prefers that both its variables keep their state, or both change it; negative: one."""
    for p in range(len(pairs)):
        i, j = pairs[p, 0], pairs[p, 1]
        same, other = -1e18, -1e18
        at = pair_ptr[p]
        for x in range(cards[i]):
            for y in range(cards[j]):
                if (x == codes[i]) == (y == codes[j]):
                    same = max(same, beliefs[at])
                else:
                    other = max(other, beliefs[at])
                at += 1
        signs[p] = same - other
    return 0


@kernel(_nrt=False)
def odd_cycle(graph, search, start, end, sign, least, stamp):
    """Find a shortest path from start to end that makes an odd cycle with the edge between them; return its nodes' number.

    A place is twice a node plus the parity of the path to it. Only edges of strength at least `least` are used. Zero means
    that there is no such path as long as `path` has room for, or none without repeated nodes.
    """
    ptr, others, odd, strengths = graph
    seen, came, queue, path = search
    goal = 2 * end + 1 - sign
    queue[0] = 2 * start
    seen[2 * start] = stamp
    came[2 * start] = -1
    first, count = 0, 1
    while first < count and seen[goal] != stamp:
        here = queue[first]
        first += 1
        for k in range(ptr[here >> 1], ptr[(here >> 1) + 1]):
            there = 2 * others[k] + ((here & 1) ^ odd[k])
            if strengths[k] >= least and seen[there] != stamp:
                seen[there] = stamp
                came[there] = here
                queue[count] = there
                count += 1
    if seen[goal] != stamp:
        return 0
    length = 0
    here = goal
    while here >= 0:
        if length >= len(path):
            return 0
        for k in range(length):
            if path[k] == here >> 1:
                return 0
        path[length] = here >> 1
        length += 1
        here = came[here]
    return length
