"""Linear-time searches over integer adjacency lists, without recursion.

`adjacency[i]` lists the neighbours of node i (or its parents, or its children, whichever way the search
should go). All functions cost O(nodes + edges) at most.
"""

from collections.abc import Collection, Iterable, Sequence

Adjacency = Sequence[Collection[int]]


def topological_order(parents: Adjacency) -> tuple[list[int], list[int]]:
    """Order the nodes so that parents come first, or find a cycle.

    The order is a depth-first one that leaves the numbering alone as far as possible: if every node already
    comes after its parents, the order is 0, 1, 2, ...

    Parameters
    ----------
    parents
        The parents of each node.

    Returns
    -------
    tuple of list of int
        The order and an empty list; or the nodes finished so far and a cycle i -> j -> ... -> i.

    Examples
    --------
    >>> topological_order([[1], [], [0]])
    ([1, 0, 2], [])
    >>> topological_order([[1], [0]])
    ([], [0, 1, 0])
    """
    unseen, open_, done = 0, 1, 2
    state = bytearray(len(parents))
    order: list[int] = []
    for root in range(len(parents)):
        if state[root] != unseen:
            continue
        state[root] = open_
        stack, pending = [root], [iter(parents[root])]
        while stack:
            for parent in pending[-1]:
                if state[parent] == unseen:
                    state[parent] = open_
                    stack.append(parent)
                    pending.append(iter(parents[parent]))
                    break
                if state[parent] == open_:
                    upwards = stack[stack.index(parent) + 1 :]
                    return order, [parent, *reversed(upwards), parent]
            else:
                state[stack[-1]] = done
                order.append(stack.pop())
                pending.pop()
    return order, []


def reach(starts: Iterable[int], adjacency: Adjacency, blocked: Iterable[int] = ()) -> list[int]:
    """List the nodes that can be reached from `starts` (which are included) without entering a blocked node.

    Examples
    --------
    >>> reach([0], [[1], [2], [], [0]])
    [0, 1, 2]
    >>> reach([0], [[1], [2], []], blocked=[1])
    [0]
    """
    seen = bytearray(len(adjacency))
    for node in blocked:
        seen[node] = 1
    found: list[int] = []
    for start in starts:
        if not seen[start]:
            seen[start] = 1
            found.append(start)
    for node in found:  # grows while it is walked: a breadth-first queue
        for other in adjacency[node]:
            if not seen[other]:
                seen[other] = 1
                found.append(other)
    return found


def shortest_path(start: int, goal: int, adjacency: Adjacency, blocked: Iterable[int] = ()) -> list[int]:
    """Find a shortest path from start to goal that enters no blocked node; the empty list if there is none.

    Examples
    --------
    >>> shortest_path(0, 2, [[1], [2], []])
    [0, 1, 2]
    """
    came_from = dict.fromkeys(blocked, -1)
    came_from[start] = start
    queue = [start]
    for node in queue:
        if node == goal:
            path = [node]
            while path[-1] != start:
                path.append(came_from[path[-1]])
            return path[::-1]
        for other in adjacency[node]:
            if other not in came_from:
                came_from[other] = node
                queue.append(other)
    return []


def leads_to(start: int, goal: int, forward: Adjacency, backward: Adjacency) -> bool:
    """Decide whether `goal` can be reached from `start` by searching from both ends in turn.

    It stops as soon as either side is exhausted, so that growing a long chain edge by edge, in whatever
    direction, costs a constant for each edge.

    Examples
    --------
    >>> leads_to(0, 2, [[1], [2], []], [[], [0], [1]])
    True
    """
    if start == goal:
        return True
    if not forward[start] or not backward[goal]:
        return False
    down, up = [start], [goal]
    below, above = {start}, {goal}
    for d, u in zip(down, up, strict=False):
        for other in forward[d]:
            if other in above:
                return True
            if other not in below:
                below.add(other)
                down.append(other)
        for other in backward[u]:
            if other in below:
                return True
            if other not in above:
                above.add(other)
                up.append(other)
    return False


def components(adjacency: Adjacency) -> list[list[int]]:
    """Split an undirected graph into connected components, each sorted, in order of their first node.

    Examples
    --------
    >>> components([[2], [], [0]])
    [[0, 2], [1]]
    """
    label = [-1] * len(adjacency)
    parts: list[list[int]] = []
    for root in range(len(adjacency)):
        if label[root] >= 0:
            continue
        label[root] = len(parts)
        part = [root]
        for node in part:
            for other in adjacency[node]:
                if label[other] < 0:
                    label[other] = len(parts)
                    part.append(other)
        part.sort()
        parts.append(part)
    return parts
