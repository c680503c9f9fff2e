"""Answers read off an evaluated clique tree: posteriors by slot, joints, paths between cliques, the next best."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import count

import numpy as np

from markovia.factors.tables.factor import Factor
from markovia.inference.exact.tree_plan import TreePlan
from markovia.inference.exact.tree_state import TreeState
from markovia.inference.problem import Problem
from markovia.inference.result import Tables
from markovia.runtime.array_types import Array, Ints


def cut_up(
    problem: Problem, targets: Sequence[str], slots: list[int], plan: TreePlan, flat: Array, log_mass: float
) -> Tables:
    """Return the posteriors of the targets, which lie one after the other in `flat` by slot."""
    flat.setflags(write=False)
    starts, variables = plan.starts, problem.variables
    tables = Factor.cut_up(
        [variables[t] for t in targets], flat, [starts[s] for s in slots], [starts[s + 1] for s in slots]
    )
    return Tables(tables, log_mass, plan.record)


def onto(state: TreeState, c: int, slots: Sequence[int]) -> Array:
    """Return the joint posterior of slots of one clique, in the order asked for."""
    table = state.belief(c)
    axes: list[int] = state.free_slots(c).tolist()
    drop = tuple(i for i, s in enumerate(axes) if s not in slots)
    kept = [s for s in axes if s in slots]
    return np.asarray(table.sum(axis=drop).transpose([kept.index(s) for s in slots]))


def subtree(parent: list[int], homes: set[int]) -> set[int]:
    """Return the cliques on the paths between the homes, in every tree of the forest."""
    paths: dict[int, list[int]] = {}
    for home in homes:
        path = [home]
        while parent[path[-1]] >= 0:
            path.append(parent[path[-1]])
        paths[home] = path
    found: set[int] = set()
    by_root: dict[int, list[list[int]]] = {}
    for path in paths.values():
        by_root.setdefault(path[-1], []).append(path)
    for group in by_root.values():
        shared = set(group[0]).intersection(*map(set, group[1:]))
        top = min(
            shared
        )  # children have smaller numbers, so the lowest common clique is the smallest shared one
        for path in group:
            found.update(path[: path.index(top) + 1])
    return found


def by_regret(state: TreeState) -> Iterator[tuple[float, Ints]]:
    """Yield configurations of positive weight, best first, with their log loss against the best.

    A configuration is reached from the one that agrees with it up to its last deviation from the greedy choice. At each
    clique the joint states of its own variables are ranked; a heap holds for every solution found the next rank at its
    deviation and the second rank at every later clique.
    """
    best = state.walk_best()
    yield 0.0, best
    order = [c for c in range(state.plan.n_cliques - 1, -1, -1) if state.entries(c) > 1]
    serial = count()
    heap: list[tuple[float, int, Ints, int, int, float]] = []

    def offer(states: Ints, k: int, rank: int, base: float) -> None:
        ranked, losses = state.ranked(order[k], states)
        if rank < len(ranked):
            heappush(heap, (base + float(losses[rank]), next(serial), states, k, rank, base))

    for k in range(len(order)):
        offer(best, k, 1, 0.0)
    while heap:
        regret, _, states, k, rank, base = heappop(heap)
        offer(states, k, rank + 1, base)
        found = state.completed(states, order, k, rank)
        yield regret, found
        for later in range(k + 1, len(order)):
            offer(found, later, 1, regret)
