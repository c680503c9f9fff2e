"""Small scores for tests of searches: Gaussian BIC from a covariance matrix, and all graphs of four nodes."""

from functools import cache
from itertools import product

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.runtime.clock import Clock
from markovia.structure.classes_and_orders.cpdag_masks import ClassGraph
from markovia.structure.scores.local_score import LocalScore
from markovia.structure.task.knowledge import Knowledge
from markovia.structure.task.task import Task


class CovarianceBIC(LocalScore):
    """Gaussian BIC of rows with a given covariance; with that of the population and many rows it is an oracle."""

    name = "covariance-bic"

    def __init__(self, covariance, rows):
        n = len(covariance)
        names = [f"v{i}" for i in range(n)]
        super().__init__(MixedTable(names, ["continuous"] * n, None, np.zeros((1, n))))
        self.covariance, self.rows = covariance, rows

    def _compute(self, families):
        return np.array([self._one(c, list(ps)) for c, ps in families])

    def _one(self, child, parents):
        s = self.covariance
        left = s[child, child]
        if parents:
            cross = s[parents, child]
            left = left - cross @ np.linalg.solve(s[np.ix_(parents, parents)], cross)
        return -self.rows / 2 * np.log(left) - np.log(self.rows) / 2 * (len(parents) + 1)


def random_dag(rng, n, density):
    """Masks of parents of a random directed graph over shuffled numbers."""
    order = rng.permutation(n)
    dag = [0] * n
    for i in range(n):
        for j in range(i):
            if rng.random() < density:
                dag[order[i]] |= 1 << int(order[j])
    return dag


def covariance_of(rng, dag):
    """The covariance of a linear Gaussian model on a graph."""
    n = len(dag)
    weights = np.zeros((n, n))
    for y, own in enumerate(dag):
        for x in range(n):
            if own >> x & 1:
                weights[x, y] = rng.uniform(0.4, 1.2) * rng.choice([-1, 1])
    inverse = np.linalg.inv(np.eye(n) - weights)
    return inverse.T @ np.diag(rng.uniform(0.5, 1.5, n)) @ inverse


def sampled_covariance(rng, dag, rows):
    """The covariance of rows drawn from such a model."""
    data = rng.multivariate_normal(np.zeros(len(dag)), covariance_of(rng, dag), size=rows)
    return np.cov(data.T, bias=True)


def task_for(score, seed=0, time_limit=None, **knowledge):
    """A task as `learn_structure` makes it, for a score that is already bound."""
    names = tuple(score.data.names)
    rules = Knowledge(**knowledge).rules(names)
    return Task(names, score.data, rules, Clock(time_limit, False), np.random.default_rng(seed), score)


def is_acyclic(dag):
    left = (1 << len(dag)) - 1
    while left:
        sources = [v for v in range(len(dag)) if left >> v & 1 and not dag[v] & left]
        if not sources:
            return False
        for v in sources:
            left &= ~(1 << v)
    return True


@cache
def all_dags(n=4):
    """Every directed acyclic graph of n nodes as masks of parents."""
    choices = [[m for m in range(1 << n) if not m >> v & 1] for v in range(n)]
    return [dag for dag in product(*choices) if is_acyclic(dag)]


def key(graph):
    """What tells classes apart."""
    return tuple(graph.parents), tuple(graph.joined)


@cache
def all_classes(n=4):
    """Every class of n nodes with its members."""
    found: dict[tuple[object, ...], list[object]] = {}
    for dag in all_dags(n):
        found.setdefault(key(ClassGraph.of_parents(dag)), []).append(dag)
    return found


def masks_of(graph):
    """A named directed graph over v0, v1, ... as masks of parents."""
    return [sum(1 << int(p[1:]) for p in graph.parents(f"v{i}")) for i in range(len(graph))]
