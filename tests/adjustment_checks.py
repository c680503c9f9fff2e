"""What adjustment is checked against: paths taken one by one, and random models whose effects are known."""

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np

from markovia.graphs import DAG, Mark, MixedGraph


def subsets(names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    names = list(names)
    return chain.from_iterable(combinations(names, k) for k in range(len(names) + 1))


def simple_paths(
    graph: MixedGraph, start: str, goals: Container[str]
) -> Iterator[tuple[list[str], list[Any]]]:
    """Yield [(node, marks of the edge to the next)] as lists of nodes and of mark pairs, for all simple paths."""
    stack: list[tuple[list[str], list[Any]]] = [([start], [])]
    while stack:
        nodes, marks = stack.pop()
        if nodes[-1] in goals:
            yield nodes, marks
            continue
        for other in graph.neighbors(nodes[-1]):
            if other not in nodes:
                stack += [([*nodes, other], [*marks, pair]) for pair in graph.marks(nodes[-1], other)]


def meets_criterion(
    graph: MixedGraph, x: Iterable[str], y: Iterable[str], given: Iterable[str], *, visible: Any = None
) -> bool:
    """Check the adjustment criterion by its definition, path by path, in a graph of directed and bidirected edges.

    `visible` lists the edges that may start a causal path, where not all may.
    """
    causes, goals, held = set(x), set(y), set(given)
    directed = (Mark.TAIL, Mark.ARROW)
    below = {n: {n} | {m for m in graph.nodes if n in graph.ancestors(m)} for n in graph.nodes}
    above_given = graph.ancestors(held, include_self=True) if held else set()
    forbidden: set[str] = set()
    blocked = True
    for start in causes:
        for nodes, marks in simple_paths(graph, start, goals):
            if causes & set(nodes[1:]):
                continue
            if all(pair == directed for pair in marks):
                if visible is not None and (nodes[0], nodes[1]) not in visible:
                    return False
                forbidden.update(*(below[n] for n in nodes[1:]))
                continue
            inner = zip(nodes[1:-1], marks, marks[1:], strict=False)
            colliders = {n: a[1] is Mark.ARROW and b[0] is Mark.ARROW for n, a, b in inner}
            if all(n in above_given if collider else n not in held for n, collider in colliders.items()):
                blocked = False
    return blocked and not held & forbidden


class RandomModel:
    """Random tables for two-valued variables; `joint[v1, v2, ...]` in the order of the nodes."""

    def __init__(self, dag: DAG, rng: np.random.Generator) -> None:
        self.names = dag.topological_order()
        self.axis = {name: i for i, name in enumerate(self.names)}
        self.tables: dict[str, Any] = {}
        for name in self.names:
            family = [*dag.parents(name), name]
            table = rng.uniform(0.1, 0.9, size=[2] * len(family[:-1]))
            shape = [2 if other in family else 1 for other in self.names]
            full = np.stack([1 - table, table], axis=-1)
            order = np.argsort([self.axis[other] for other in family])
            self.tables[name] = full.transpose(order).reshape(shape)
        self.joint = self.product(self.names)

    def product(self, names: Iterable[str]) -> Any:
        found = np.ones([2] * len(self.names))
        for name in names:
            found = found * self.tables[name]
        return found

    def over(self, table: Any, names: Container[str]) -> Any:
        """Sum out all others, keeping the axes."""
        return table.sum(axis=tuple(i for i, n in enumerate(self.names) if n not in names), keepdims=True)

    def effect(self, x: Sequence[str], y: Sequence[str]) -> Any:
        """Return P(y | do(x)) by truncated factorisation."""
        return self.over(self.product([n for n in self.names if n not in x]), [*x, *y])

    def adjusted(self, x: Sequence[str], y: Sequence[str], given: Sequence[str]) -> Any:
        """Return sum over z of P(y | x, z) P(z)."""
        together = self.over(self.joint, [*x, *y, *given]) / self.over(self.joint, [*x, *given])
        return self.over(together * self.over(self.joint, given), [*x, *y])

    def through_front_door(self, x: Sequence[str], y: Sequence[str], z: Sequence[str]) -> Any:
        """Return the front-door formula."""
        mediated = self.over(self.joint, [*x, *z]) / self.over(self.joint, x)
        rest = self.adjusted(z, y, x)
        return self.over(mediated * rest, [*x, *y])


def random_problem(
    rng: np.random.Generator, n: int, latents: int = 0, edges: int | None = None
) -> tuple[DAG, list[str], str, str]:
    """Return a random DAG, names of latent nodes, a treatment and an outcome in a random order of the nodes."""
    names = [f"v{i}" for i in rng.permutation(n)]
    pairs = list(combinations(names, 2))
    count = int(rng.integers(n - 1, min(2 * n, len(pairs)) + 1)) if edges is None else edges
    dag = DAG([pairs[i] for i in rng.choice(len(pairs), count, replace=False)], nodes=sorted(names))
    hidden = sorted(rng.choice(sorted(names), latents, replace=False).tolist())
    seen = [name for name in dag.nodes if name not in hidden]
    x, y = rng.choice(len(seen), 2, replace=False)
    return dag, hidden, seen[x], seen[y]


def linear_model(dag: DAG, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return edge weights (from row to column), the covariance and the total effects of a random linear model."""
    n = len(dag)
    weights = np.zeros((n, n))
    for a, b in dag.edges:
        weights[dag.nodes.index(a), dag.nodes.index(b)] = rng.choice([-1, 1]) * rng.uniform(0.4, 1.2)
    total = np.linalg.inv(np.eye(n) - weights)
    return weights, total.T @ np.diag(rng.uniform(0.5, 1.5, n)) @ total, total
