"""Bounds on counterfactuals of tables: optimisation over response functions (Balke and Pearl, 1994).

A table P(v | parents) is a distribution over functions from parents to v, of which it fixes only the share that sends each
configuration to each state. These shares are linear constraints, and the counterfactual probability is linear in the
distribution over functions of each undetermined node: one such node is a linear program; with several the optimum lies
at vertices of all but one of their polytopes, which are listed where they are few. Only configurations that facts and
intervention leave possible count, so a unit whose parents are all known has two per node.

Where this is too large the bounds of Fréchet are left: valid, not sharp.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, product
from math import comb, prod
from typing import NamedTuple

import numpy as np

from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import Variable
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array, Ints

MOST_FUNCTIONS = 4096
MOST_CELLS = 2**20
MOST_BASES = 5000
MOST_VERTEX_PAIRS = 4096


class Responses(NamedTuple):
    """The response functions of one node: its states by configuration that matters, and the shares they must have."""

    rows: Ints
    """The configurations that matter, as flat positions in the table."""
    functions: Ints
    """The state each function sends each of them to, (functions, rows)."""
    table: Array
    """The table of those configurations, (rows, states)."""

    def constraints(self) -> tuple[Array, Array]:
        """Return A and b such that `A q = b` says that q has the node's table; rows of A are independent."""
        equations, shares = [np.ones(len(self.functions))], [1.0]
        for c, row in enumerate(self.table):
            for state in np.flatnonzero(row > 0)[:-1]:
                equations.append((self.functions[:, c] == state).astype(np.float64))
                shares.append(float(row[state]))
        return np.array(equations), np.array(shares)

    def vertices(self) -> Array | None:
        """Return the extreme distributions over functions, one a row; None where listing them takes too long."""
        a, b = self.constraints()
        rank, n = a.shape
        if comb(n, rank) > MOST_BASES:
            return None
        bases = np.array(list(combinations(range(n), rank)))
        blocks = a.T[bases].transpose(0, 2, 1)
        sound = np.abs(np.linalg.det(blocks)) > 1e-9
        solved = np.linalg.solve(blocks[sound], np.broadcast_to(b, (int(sound.sum()), rank))[..., None])[
            ..., 0
        ]
        feasible = (solved > -1e-12).all(axis=1)
        found = np.zeros((int(feasible.sum()), n))
        np.put_along_axis(found, bases[sound][feasible], np.maximum(solved[feasible], 0.0), axis=1)
        return np.unique(found.round(14), axis=0)


def responses_of(
    model: BayesianNetwork,
    names: Sequence[str],
    copied: Collection[str],
    seen: Mapping[str, int],
    done: Mapping[str, int],
) -> dict[str, Responses] | None:
    """Return the response functions of the named nodes, or None where they are too many.

    `copied` have a copy in the second world; `seen` and `done` are the codes of observed variables and of those set.
    """
    found: dict[str, Responses] = {}
    for name in names:
        table = model[name]
        sizes = [len(p) for p in table.parents]
        was = [[seen[p.name]] if p.name in seen else range(len(p)) for p in table.parents]
        now = [
            ([done[p.name]] if p.name in done else range(len(p))) if p.name in copied else was[i]
            for i, p in enumerate(table.parents)
        ]
        if max(prod(map(len, was)), prod(map(len, now))) > MOST_FUNCTIONS:
            return None
        cells = {*product(*was), *product(*now)}
        rows = np.unique([np.ravel_multi_index(cell, sizes) for cell in cells])
        values = np.asarray(table.values).reshape(-1, len(table.variable))[rows]
        possible = [np.flatnonzero(row > 0).tolist() for row in values]
        if prod(map(len, possible)) > MOST_FUNCTIONS:
            return None
        found[name] = Responses(rows, np.array(list(product(*possible)), dtype=np.int64), values)
    return found


def response_nodes(
    model: BayesianNetwork, responses: Mapping[str, Responses]
) -> dict[str, tuple[Variable, Conditional, Conditional]]:
    """Return for every node its response variable and its distribution given the parents and that variable, twice."""
    made: dict[str, tuple[Variable, Conditional, Conditional]] = {}
    for name, given in responses.items():
        table = model[name]
        k, n = len(table.variable), len(given.functions)
        values = np.repeat(np.asarray(table.values).reshape(-1, 1, k), n, axis=1)
        values[given.rows] = np.eye(k)[given.functions.T]
        shaped = values.reshape(*(len(p) for p in table.parents), n, k)
        response = Variable(f"response of {name}", n)
        explicit = ConditionalTable.of(table.variable, (*table.parents, response), shaped)
        made[name] = (response, explicit, explicit)
    return made


def extreme_values(weights: Array, responses: Sequence[Responses]) -> tuple[Array, Array] | None:
    """Return the least and the greatest of sum_r weights[t, r1, r2, ...] q1(r1) q2(r2) ... for every t.

    Returns None where too many nodes have too many vertices.
    """
    # the node with most functions is left to the linear program, the others are listed
    order = np.argsort([len(r.functions) for r in responses]).tolist()
    weights = weights.transpose(0, *(i + 1 for i in order))
    *listed, last = [responses[i] for i in order]
    corners = [r.vertices() for r in listed]
    if any(c is None for c in corners) or prod(len(c) for c in corners if c is not None) > MOST_VERTEX_PAIRS:
        return None
    for c in corners:
        assert c is not None
        weights = np.moveaxis(np.tensordot(c, weights, (1, 1)), 0, -1)  # vertices go last, functions come up
    lines = np.moveaxis(weights, 1, -1)
    flat = lines.reshape(len(lines), -1, lines.shape[-1])
    low, high = np.full(len(flat), np.inf), np.full(len(flat), -np.inf)
    for t, rows in enumerate(flat):
        for row in np.unique(rows.round(15), axis=0):
            low[t] = min(low[t], _least(row, last))
            high[t] = max(high[t], -_least(-row, last))
    return low, high


def _least(weights: Array, responses: Responses) -> float:
    from scipy.optimize import linprog

    a, b = responses.constraints()
    solved = linprog(weights, A_eq=a, b_eq=b, bounds=(0, None), method="highs")
    return float(solved.fun)


def frechet_bounds(marginal: Array, facts: float) -> tuple[Array, Array]:
    """Return bounds on P(target | facts) from P(target) and P(facts), whatever connects them."""
    return np.maximum(0.0, (marginal + facts - 1.0) / facts), np.minimum(1.0, marginal / facts)
