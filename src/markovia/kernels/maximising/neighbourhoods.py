"""The best states of a region of variables while all others stay fixed, in compiled code.

`choose_region` eliminates variables by smallest table, as a quotient graph of cliques, and fixes a variable whenever every
table left would be too large: what was eliminated is a region that can be solved exactly within the limit.
`solve_region` runs max-sum bucket elimination over the region in the order found and walks back for the best states.
All axes are in elimination order, the eliminated variable first, so that messages line up with the tables they enter and
whole runs of entries are added at once. Reference: Dechter (1999) for buckets; Bidyuk and Dechter (2007) for w-cutsets.
Cost: a few nanoseconds for each entry of each table.
"""

import numpy as np
from numpy.typing import NDArray

from markovia.kernels.flat_graph import Graph
from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import pointer, pointers
from markovia.kernels.random_numbers import below, uniform
from markovia.runtime.array_types import Array, Ints

MOST_AXES = 40


@kernel(bare=True)
def spread_from(near, root, rng, rank, distance, queue):
    """Write for every variable its place in a breadth-first walk from a root, ties at random, and its distance.

    Variables that the root does not reach follow from further random roots; `queue` gets the variables by their place.
    Returns the largest distance.
    """
    n = len(rank)
    near_ptr, near = pointers(near)
    rng, rank, distance, queue = pointers((rng, rank, distance, queue))
    for v in range(n):
        rank[v] = -1
    head, tail, deepest = 0, 0, 0
    while tail < n:
        if tail > 0:
            root = below(rng, n)
            while rank[root] >= 0:
                root = (root + 1) % n
        queue[tail] = root
        rank[root] = tail
        distance[root] = 0
        tail += 1
        while head < tail:
            # a random one among those of the same distance keeps the front round, not slanted
            last = head
            while last + 1 < tail and last - head < 16 and distance[queue[last + 1]] == distance[queue[head]]:
                last += 1
            pick = head + below(rng, last - head + 1)
            queue[head], queue[pick] = queue[pick], queue[head]
            v = queue[head]
            rank[v] = head
            head += 1
            for e in range(near_ptr[v], near_ptr[v + 1]):
                u = near[e]
                if rank[u] < 0:
                    rank[u] = tail
                    distance[u] = distance[v] + 1
                    if distance[u] > deepest:
                        deepest = distance[u]
                    queue[tail] = u
                    tail += 1
    return deepest


def choose_region(
    near: tuple[Ints, Ints],
    logs: Array,
    candidate: NDArray[np.uint8],
    fix_order: Ints,
    limit: float,
    total: float,
    rng: NDArray[np.uint64],
    order: Ints,
) -> int:
    """Fill `order` with an elimination order of a region; return how many variables it has, -1 if it costs too much.

    Parameters
    ----------
    near
        Who shares a table with whom: pointers and numbers.
    logs
        Log2 of the number of states.
    candidate
        Which variables may be in the region; the others are fixed from the start.
    fix_order
        All variables, those to fix first in front.
    limit, total
        Log2 of the entries of the largest table, and the number of entries of all tables together.
    """
    n, levels, most = len(logs), 2 * int(limit) + 3, int(limit) + 2
    after, before = np.full((2, n + levels + 1), -1, np.int64)
    after[n:] = before[n:] = np.arange(n, n + levels + 1)
    link_head, mark = np.full((2, n), -1, np.int64)
    members, link_clique = np.empty((2, n * most + 1), np.int32)
    alive, absorbed = np.zeros((2, n), np.uint8)
    given = (*near, logs, candidate, fix_order, rng, order)
    lists = (
        after,
        before,
        np.zeros(n + 1, np.int64),
        members,
        link_head,
        np.empty(n * most + 1, np.int64),
        link_clique,
    )
    room = alive, absorbed, mark, np.empty(n, np.int64)
    return int(_choose(n, levels, float(limit), float(total), given, lists, room))


@kernel(bare=True)
def _choose(n, levels, limit, total, given, lists, room):
    near_ptr, near, logs, candidate, fix_order, rng, order = pointers(given)
    after, before, member_ptr, members, link_head, link_next, link_clique = pointers(lists)
    alive, absorbed, mark, waiting = pointers(room)
    # all candidates wait for their first cost, in random order
    links = 0
    stamp = 0
    n_waiting = 0
    for v in range(n):
        if candidate[v] and logs[v] > 0.0:
            alive[v] = 1
            waiting[n_waiting] = v
            n_waiting += 1
    for i in range(n_waiting - 1, 0, -1):
        j = below(rng, i + 1)
        waiting[i], waiting[j] = waiting[j], waiting[i]
    n_cliques, found, spent, to_fix = 0, 0, 0.0, 0
    while True:
        for w in range(n_waiting):  # the cost of every variable whose surroundings changed
            v = waiting[w]
            if not alive[v]:
                continue
            stamp += 1
            mark[v] = stamp
            cost = logs[v]
            for e in range(near_ptr[v], near_ptr[v + 1]):
                u = near[e]
                if alive[u] and mark[u] != stamp:
                    mark[u] = stamp
                    cost += logs[u]
                    if cost > limit:
                        break
            link = link_head[v]
            while link >= 0 and cost <= limit:
                c = link_clique[link]
                if not absorbed[c]:
                    for e in range(member_ptr[c], member_ptr[c + 1]):
                        u = members[e]
                        if alive[u] and mark[u] != stamp:
                            mark[u] = stamp
                            cost += logs[u]
                link = link_next[link]
            # variables of about the same cost are in one list, at either end at random
            new = levels if cost > limit else int(2.0 * cost)
            if after[v] >= 0:
                after[before[v]] = after[v]
                before[after[v]] = before[v]
            left = n + new if uniform(rng) < 0.5 else before[n + new]
            right = after[left]
            after[left] = v
            before[v] = left
            after[v] = right
            before[right] = v
        # the cheapest is eliminated; where none fits, the next one of the given order is fixed instead
        n_waiting = 0
        best = 0
        while best < levels and after[n + best] == n + best:
            best += 1
        if spent > total:
            return -1
        if best == levels:
            while to_fix < n and not alive[fix_order[to_fix]]:
                to_fix += 1
            if to_fix == n:
                break
            v = fix_order[to_fix]
        else:
            v = after[n + best]
        after[before[v]] = after[v]
        before[after[v]] = before[v]
        # its neighbours now: by factors, and by the cliques that earlier eliminations left, which its own takes in
        stamp += 1
        mark[v] = stamp
        cost = logs[v]
        first = member_ptr[n_cliques]
        size = first
        for e in range(near_ptr[v], near_ptr[v + 1]):
            u = near[e]
            if alive[u] and mark[u] != stamp:
                mark[u] = stamp
                waiting[n_waiting] = u
                n_waiting += 1
        link = link_head[v]
        while link >= 0:
            c = link_clique[link]
            if not absorbed[c]:
                for e in range(member_ptr[c], member_ptr[c + 1]):
                    u = members[e]
                    if alive[u] and mark[u] != stamp:
                        mark[u] = stamp
                        waiting[n_waiting] = u
                        n_waiting += 1
                if best < levels:
                    absorbed[c] = 1
            link = link_next[link]
        alive[v] = 0
        if best == levels:
            continue
        # they are a clique, which each of them is linked to
        for w in range(n_waiting):
            u = waiting[w]
            cost += logs[u]
            members[size] = u
            size += 1
            link_clique[links] = n_cliques
            link_next[links] = link_head[u]
            link_head[u] = links
            links += 1
        n_cliques += 1
        member_ptr[n_cliques] = size
        spent += 2.0**cost
        order[found] = v
        found += 1
    return found


@inner(bare=True)
def _add(table, n_axes, dims, strides, values, at, shape, step, count):
    """Add values laid out by strides to a table in C order; neighbouring axes that run on are walked as one.

    `count` is zero before and after.
    """
    m = 0
    for a in range(n_axes):
        if dims[a] == 1:
            continue
        if m > 0 and step[m - 1] == strides[a] * dims[a]:
            shape[m - 1] *= dims[a]
            step[m - 1] = strides[a]
        else:
            shape[m] = dims[a]
            step[m] = strides[a]
            m += 1
    if m == 0:
        table[0] += values[at]
        return
    inner, stride = shape[m - 1], step[m - 1]
    outer = 1
    for a in range(m - 1):
        outer *= shape[a]
    place = 0
    for _ in range(outer):
        if stride == 0:
            value = values[at]
            for i in range(inner):
                table[place + i] += value
        elif stride == 1:
            for i in range(inner):
                table[place + i] += values[at + i]
        else:
            for i in range(inner):
                table[place + i] += values[at + i * stride]
        place += inner
        a = m - 2
        while a >= 0:
            count[a] += 1
            at += step[a]
            if count[a] < shape[a]:
                break
            at -= step[a] * shape[a]
            count[a] = 0
            a -= 1


def solve_region(graph: Graph, rng: NDArray[np.uint64], x: Ints, order: Ints, found: int) -> None:
    """Set the variables of a region to their best states given all others; ties are broken at random.

    The tables of the graph are finite logs. Only `x` is written.
    """
    place, mark = np.full((2, len(x)), -1, np.int64)
    place[order[:found]] = np.arange(found)
    head, follow = np.full((2, found), -1, np.int64)
    about_ptr, message_ptr = np.zeros((2, found + 1), np.int64)
    owner, about = np.full(len(graph.table_ptr), -1, np.int64), np.empty(found * MOST_AXES + 1, np.int64)
    plan = order, place, owner, head, follow, about_ptr, about, message_ptr
    largest = _lay_out(graph, found, plan, mark)
    dims, step, shape, run, count = np.zeros((5, MOST_AXES), np.int64)
    room = np.empty(message_ptr[found]), np.empty(largest), np.empty(graph.cards.max(initial=1))
    _solve(graph, found, rng, x, plan, (*room, dims, step, shape, run, count, mark))


@kernel(bare=True)
def _lay_out(graph, found, plan, mark):
    """Write which bucket each factor goes to, what each bucket's message is about, how large it is and where it goes.

    Returns the entries of the largest table.
    """
    g = pointers(graph)
    order, place, owner, head, follow, about_ptr, about, message_ptr = pointers(plan)
    mark = pointer(mark)
    largest = 1
    for k in range(found):
        v = order[k]
        mark[v] = k
        size = about_ptr[k]
        for e in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
            f = g.edge_factor[g.edges[e]]
            if owner[f] >= 0:
                continue
            owner[f] = k
            for j in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
                u = g.scope[j]
                if place[u] > k and mark[u] != k:
                    mark[u] = k
                    about[size] = place[u]
                    size += 1
        c = head[k]
        while c >= 0:
            for j in range(about_ptr[c], about_ptr[c + 1]):
                u = order[about[j]]
                if mark[u] != k:
                    mark[u] = k
                    about[size] = place[u]
                    size += 1
            c = follow[c]
        for i in range(about_ptr[k] + 1, size):  # few: sort by insertion
            p = about[i]
            j = i - 1
            while j >= about_ptr[k] and about[j] > p:
                about[j + 1] = about[j]
                j -= 1
            about[j + 1] = p
        about_ptr[k + 1] = size
        entries = 1
        for j in range(about_ptr[k], size):
            entries *= g.cards[order[about[j]]]
        message_ptr[k + 1] = message_ptr[k] + entries
        if entries * g.cards[v] > largest:
            largest = entries * g.cards[v]
        if size > about_ptr[k]:
            to = about[about_ptr[k]]
            follow[k] = head[to]
            head[to] = k
    return largest


@kernel(bare=True)
def _solve(graph, found, rng, x, plan, room):
    """Fill in the tables and messages of the buckets, and walk back for the best states."""
    g = pointers(graph)
    order, place, owner, head, follow, about_ptr, about, message_ptr = pointers(plan)
    messages, table, row, dims, step, shape, run, count, axis = pointers(room)
    rng, x = pointer(rng), pointer(x)
    # buckets in the order of elimination: factors with what is outside the region fixed, messages of earlier ones
    for k in range(found):
        v = order[k]
        n_axes = about_ptr[k + 1] - about_ptr[k] + 1
        dims[0] = g.cards[v]
        axis[k] = 0
        for a in range(1, n_axes):
            p = about[about_ptr[k] + a - 1]
            axis[p] = a
            dims[a] = g.cards[order[p]]
        entries = message_ptr[k + 1] - message_ptr[k]
        for s in range(g.cards[v]):
            for i in range(entries):
                table[s * entries + i] = g.unary[g.starts[v] + s]
        for e in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
            f = g.edge_factor[g.edges[e]]
            if owner[f] != k:
                continue
            at = g.table_ptr[f]
            for a in range(n_axes):
                step[a] = 0
            for j in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
                p = place[g.scope[j]]
                if p < 0:
                    at += g.strides[j] * x[g.scope[j]]
                else:
                    step[axis[p]] = g.strides[j]
            _add(table, n_axes, dims, step, g.values, at, shape, run, count)
        c = head[k]
        while c >= 0:
            for a in range(n_axes):
                step[a] = 0
            stride = 1
            for j in range(about_ptr[c + 1] - 1, about_ptr[c] - 1, -1):
                step[axis[about[j]]] = stride
                stride *= g.cards[order[about[j]]]
            _add(table, n_axes, dims, step, messages, message_ptr[c], shape, run, count)
            c = follow[c]
        # maximise the variable out
        out = message_ptr[k]
        for i in range(entries):
            messages[out + i] = table[i]
        for s in range(1, g.cards[v]):
            for i in range(entries):
                value, least = table[s * entries + i], messages[out + i]
                messages[out + i] = value if value > least else least
    # walk back: the last one eliminated knows its best state first
    for k in range(found - 1, -1, -1):
        v = order[k]
        for s in range(g.cards[v]):
            row[s] = g.unary[g.starts[v] + s]
        for e in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
            f = g.edge_factor[g.edges[e]]
            if owner[f] != k:
                continue
            at = g.table_ptr[f]
            own = 0
            for j in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
                u = g.scope[j]
                if u == v:
                    own = g.strides[j]
                else:
                    at += g.strides[j] * x[u]
            for s in range(g.cards[v]):
                row[s] += g.values[at + s * own]
        c = head[k]
        while c >= 0:
            at = message_ptr[c]
            stride = 1
            own = 0
            for j in range(about_ptr[c + 1] - 1, about_ptr[c] - 1, -1):
                u = order[about[j]]
                if u == v:
                    own = stride
                else:
                    at += stride * x[u]
                stride *= g.cards[u]
            for s in range(g.cards[v]):
                row[s] += messages[at + s * own]
            c = follow[c]
        # the best state, one of several at random
        top = row[0]
        for s in range(1, g.cards[v]):
            if row[s] > top:
                top = row[s]
        ties = 0
        choice = 0
        for s in range(g.cards[v]):
            if row[s] >= top - 1e-10:
                ties += 1
                if ties == 1 or uniform(rng) * ties < 1.0:
                    choice = s
        x[v] = choice
