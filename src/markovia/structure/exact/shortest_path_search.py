"""The best order of variables by A* over the subsets that are placed first.

Method: Yuan and Malone (2013). A path from the empty to the full set places one variable after another; a step costs what
the variable's best parents among those placed lack to its best. The bound on what is yet to come is a static pattern
database (their k-cycle conflict heuristic): the variables are split into groups of up to `GROUP`, and each group's
remaining variables are placed at best with all other groups already there. Variables that need each other are put into one
group. Two things cut the search down: a variable whose best parents are all placed is placed at once (Karan and Zola
2016), and paths that are no better than an order found by local search are dropped.
Cost: exponential at worst, in time and memory; a few thousand sets where the data are clear. Stopped early, the local
search's order and the least cost of an open path are a solution and a bound.
Use it beyond 20 variables, or wherever the data leave few candidate parent sets.
"""

from dataclasses import dataclass

import numpy as np

from markovia.kernels.structure.structure_records import PatternDatabase, SubsetNodes
from markovia.runtime.clock import Clock
from markovia.structure.exact.order_problem import OrderProblem

GROUP = 18
"""The most variables in a group of the pattern database."""
STEPS = 20_000
"""Sets that are expanded between two looks at the clock."""
FIRST_ROOM = 1 << 14
"""Sets that there is room for at first."""


@dataclass
class PathSearch:
    """What A* found: an order, its loss, a bound on every order's loss, whether that is proven best, sets expanded."""

    order: list[int]
    loss: float
    least: float
    proven: bool
    expanded: int


def shortest_order(
    problem: OrderProblem,
    clock: Clock,
    order: list[int],
    loss: float,
    *,
    max_nodes: int = 20_000_000,
) -> PathSearch:
    """Search from an order and its loss; return that order or a better one.

    Parameters
    ----------
    problem
        The variables and their parent sets.
    clock
        When to stop.
    order, loss
        An order to start from: paths that are no better are not followed.
    max_nodes
        The most sets that are kept; about 45 bytes each.
    """
    from markovia.kernels.structure.best_orders import close_set, fill_pattern, fill_slots, shortest_path

    if loss <= problem.slack:
        return PathSearch(order, loss, 0.0, True, 0)
    groups = _groups(problem)
    by_group = [k for group in groups for k in group]
    own = problem.reordered(by_group)
    size = np.array([len(g) for g in groups], dtype=np.int64)
    shift = (np.cumsum(size) - size).astype(np.int64)
    pattern_at = np.concatenate([[0], np.cumsum(2**size)]).astype(np.int64)
    patterns = PatternDatabase(shift, size, pattern_at, np.empty(int(pattern_at[-1])))
    full = 2**own.m - 1
    for k in range(len(groups)):
        if clock.over():
            return PathSearch(order, loss, 0.0, False, 0)
        table = patterns.losses[pattern_at[k] : pattern_at[k + 1]]
        fill_pattern(int(shift[k]), int(size[k]), full, own.sets, table)
    upper = loss - own.slack
    nodes = _nodes(max(own.m + 1, min(FIRST_ROOM, max_nodes)))
    first = int(close_set(0, own.m, own.sets))
    left = full & ~first
    bound = sum(
        float(patterns.losses[pattern_at[k] + (left >> int(shift[k]) & ((1 << int(size[k])) - 1))])
        for k in range(len(groups))
    )
    nodes.mask[0], nodes.cost[0], nodes.bound[0], nodes.origin[0] = first, 0.0, bound, -1
    nodes.heap_f[0], nodes.heap_i[0] = bound, 0
    nodes.state[:2] = 1
    fill_slots(1, nodes)
    while True:
        code = shortest_path(own.m, own.sets, patterns, upper, STEPS, nodes)
        if code == 0:
            return PathSearch(order, loss, loss, True, int(nodes.state[3]))
        if code == 1:
            cost = float(nodes.cost[nodes.state[2]])
            path = _path(own, nodes)
            return PathSearch([by_group[k] for k in path], cost, cost, True, int(nodes.state[3]))
        clock.advance(note=f"gap {loss - float(nodes.heap_f[0]):.4g}")
        full_up = code == 2 and len(nodes.mask) >= max_nodes
        if full_up or clock.over():
            least = min(loss, float(nodes.heap_f[0]))
            return PathSearch(order, loss, least, False, int(nodes.state[3]))
        if code == 2:
            nodes = _nodes(min(2 * len(nodes.mask), max_nodes), nodes)
            fill_slots(int(nodes.state[0]), nodes)


def local_order(
    problem: OrderProblem, start: list[int], rng: np.random.Generator, rounds: int | None = None
) -> tuple[list[int], float]:
    """Return a good order by local search from a feasible one, and its loss."""
    from markovia.kernels.structure.best_orders import improve_orders

    m = problem.m
    order = np.array(start, dtype=np.int64)
    rounds = min(200, 20 * m) if rounds is None else rounds
    kicks = rng.integers(0, m, (rounds, 2 * max(1, min(4, m // 4))))
    starts = np.array([rng.permutation(m) for _ in range(10)], dtype=np.int64)
    room = np.empty_like(order), np.empty(m)
    loss = improve_orders(order, m, problem.sets, kicks, starts, *room)
    return order.tolist(), float(loss)


def _nodes(room: int, old: SubsetNodes | None = None) -> SubsetNodes:
    """Return room for so many sets, with those of smaller room but for their hash table."""
    new = SubsetNodes(
        np.empty(room, np.int64), np.zeros(room, np.uint8), np.empty(room), np.empty(room), np.empty(room, np.int32),
        np.full(1 << int(4 * room - 1).bit_length(), -1, np.int32), np.empty(2 * room), np.empty(2 * room, np.int32),
        np.zeros(4, np.int64),
    )  # fmt: skip
    if old is not None:
        for name in set(SubsetNodes._fields) - {"slots"}:
            held = getattr(old, name)
            getattr(new, name)[: len(held)] = held
    return new


def _path(problem: OrderProblem, nodes: SubsetNodes) -> list[int]:
    """Return the order in which the best path places the variables."""
    chain = []
    at = int(nodes.state[2])
    while at >= 0:
        chain.append(int(nodes.mask[at]))
        at = int(nodes.origin[at])
    order: list[int] = []
    placed = 0
    for target in chain[::-1]:
        while placed != target:
            left = [k for k in range(problem.m) if (target & ~placed) >> k & 1]
            at_once = [k for k in left if int(problem.sets.masks[problem.sets.start[k]]) & ~placed == 0]
            if at_once:
                chosen = at_once[0]
            else:  # the one step that the path chose: it makes all others follow
                chosen = min(
                    (k for k in left if _closed(problem, placed | 1 << k) == target),
                    key=lambda k: problem.loss(k, placed),
                )
            order.append(chosen)
            placed |= 1 << chosen
    return order


def _closed(problem: OrderProblem, placed: int) -> int:
    from markovia.kernels.structure.best_orders import close_set

    return int(close_set(placed, problem.m, problem.sets))


def _groups(problem: OrderProblem) -> list[list[int]]:
    """Split variables into few groups of about one size; those that need each other come together."""
    m = problem.m
    count = -(-m // GROUP) if m > 2 * GROUP else min(2, m)
    room = -(-m // count)
    need = np.zeros((m, m))
    full = 2**m - 1
    for x in range(m):
        for y in range(m):
            if x != y:
                need[x, y] = min(1e12, problem.loss(x, full & ~(1 << x) & ~(1 << y)))
    both = np.minimum(need, need.T) + 1e-3 * (need + need.T)
    groups = [[k] for k in range(m)]
    while len(groups) > count:
        best, pair = -1.0, (-1, -1)
        for i in range(len(groups)):
            for j in range(i):
                if len(groups[i]) + len(groups[j]) <= room:
                    tie = float(both[groups[i]][:, groups[j]].sum()) / min(len(groups[i]), len(groups[j]))
                    if tie > best:
                        best, pair = tie, (i, j)
        if pair[0] < 0:
            break
        i, j = pair
        groups[j] += groups.pop(i)
    while len(groups) > count:  # pieces that do not fit whole: fill up the smallest with the others' members
        loose = groups.pop(min(range(len(groups)), key=lambda g: len(groups[g])))
        for k in loose:
            open_ = [g for g in groups if len(g) < room]
            max(open_, key=lambda g: float(both[k, g].sum())).append(k)
    return groups
