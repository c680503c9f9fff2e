"""End components: sets of states among which one can stay for ever, and processes in which each of them is one node.

Without a discount, what matters is where a policy settles. States that reach each other by chosen actions without ever
risking to leave are alike in that: going from one to the other is free, so they may be taken together. What remains
ends under every policy, or is settled in on purpose.

References: de Alfaro (1997), "Formal Verification of Probabilistic Systems"; Haddad and Monmege (2018), "Interval
iteration algorithm for MDPs and IMDPs". Cost: a few strongly connected components of the graph of moves, each linear in
the nonzeros.
"""

from typing import NamedTuple

import numpy as np

from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.policy_iteration import solved
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.libraries import csgraph, sparse

MARGIN = 1e-12
"""Relative gain below which an action is not worth a change of policy."""


ROUNDING = 1e-12
PATIENCE = 1.0 - 1e-5
"""The discount by which the policy to start from is found."""
ROUNDS = 10_000


class EndComponents(NamedTuple):
    """The largest end components of some actions.

    Attributes
    ----------
    label
        The component of each state, -1 for none.
    inside
        Whether an action, a * S + s, stays within the component.
    n
        How many components there are.
    """

    label: Ints
    inside: Flags
    n: int


class StatePairs(NamedTuple):
    """A process as a list of choices, those of a node side by side; what is missing in a row has ended.

    Attributes
    ----------
    owner
        The node of each choice, ascending.
    rows
        Where a choice leads, (choices, nodes).
    rewards
        What it earns.
    source
        The action a * S + s that it is; -1 for settling.
    """

    owner: Ints
    rows: sparse.csr_array
    rewards: Array
    source: Ints


def open_pairs(process: DecisionProcess) -> Flags:
    """Return which actions a * S + s may be taken where the process is not over."""
    n, k = process.rewards.shape
    found = np.ones(n * k, dtype=bool) if process.allowed is None else process.allowed.T.reshape(-1).copy()
    if process.terminal is not None:
        found &= ~np.tile(process.terminal, k)
    return found


def end_components(rows: sparse.csr_array, owner: Ints, usable: Flags) -> EndComponents:
    """Return the largest end components of the usable actions.

    Examples
    --------
    >>> leave, stay = [[0, 1, 0], [1, 0, 0], [0, 0, 1]], [[0.5, 0, 0.5], [0, 0, 1], [0, 0, 1]]
    >>> both = sparse.csr_array(np.concatenate([leave, stay]).astype(float))
    >>> end_components(both, np.tile(np.arange(3), 2), np.ones(6, dtype=bool)).label.tolist()
    [0, 0, 1]
    """
    n = rows.shape[1]
    lengths = np.diff(rows.indptr)
    pair_of = np.repeat(np.arange(len(owner)), lengths)
    kept = usable & (lengths > 0)
    while True:
        edge = kept[pair_of]
        graph = sparse.csr_array(
            (np.ones(edge.sum()), (owner[pair_of[edge]], rows.indices[edge])), shape=(n, n)
        )
        _, label = csgraph.connected_components(graph, directed=True, connection="strong")
        leaves = np.zeros(len(owner), dtype=bool)
        leaves[pair_of[edge][label[owner[pair_of[edge]]] != label[rows.indices[edge]]]] = True
        if not leaves.any():
            break
        kept &= ~leaves
    found = np.full(n, -1, dtype=np.int64)
    members = np.unique(owner[kept])
    names, found[members] = np.unique(label[members], return_inverse=True)
    return EndComponents(found, kept, len(names))


def collapsed(
    process: DecisionProcess, components: EndComponents, settling: Array, rewards: Array
) -> tuple[StatePairs, Ints]:
    """Return the process with each component as one node that may settle for what is given, and the node of each state.

    States that are terminal have no node (-1). `rewards` are those of actions a * S + s.
    """
    n = process.n_states
    node = np.where(components.label >= 0, components.label, -1)
    alone = (components.label < 0) & (
        np.ones(n, dtype=bool) if process.terminal is None else ~process.terminal
    )
    node[alone] = components.n + np.arange(alone.sum())
    size = components.n + int(alone.sum())
    real = np.flatnonzero(node >= 0)
    merge = sparse.csr_array((np.ones(len(real)), (real, node[real])), shape=(n, size))
    leaving = np.flatnonzero(open_pairs(process) & ~components.inside)
    rows = sparse.vstack(
        [process.transitions[leaving] @ merge, sparse.csr_array((components.n, size))], format="csr"
    )
    owner = np.concatenate([node[leaving % n], np.arange(components.n)])
    worth = np.concatenate([rewards[leaving], settling])
    source = np.concatenate([leaving, np.full(components.n, -1)])
    order = np.argsort(owner, kind="stable")
    return StatePairs(owner[order], sparse.csr_array(rows[order]), worth[order], source[order]), node


def distances(owner: Ints, rows: sparse.csr_array, targets: Ints, size: int) -> Array:
    """Return the least number of moves from each node to the targets, infinite where there is no way."""
    pair_of = np.repeat(np.arange(len(owner)), np.diff(rows.indptr))
    reversed_graph = sparse.csr_array((np.ones(rows.nnz), (rows.indices, owner[pair_of])), shape=(size, size))
    if not len(targets):
        return np.full(size, np.inf)
    return np.asarray(csgraph.dijkstra(reversed_graph, indices=targets, unweighted=True, min_only=True))


def nearest(owner: Ints, rows: sparse.csr_array, away: Array) -> Ints:
    """Return the choice of each node that most probably leads nearer to the targets, or ends; -1 where none does."""
    pair_of = np.repeat(np.arange(len(owner)), np.diff(rows.indptr))
    nearer = np.where(away[rows.indices] < away[owner[pair_of]], rows.data, 0.0)
    share = np.bincount(pair_of, nearer, len(owner)) + np.maximum(0.0, 1.0 - rows.sum(axis=1))
    order = np.lexsort((-share, owner))
    leads = np.zeros(len(owner), dtype=bool)
    leads[order[np.flatnonzero(np.diff(owner[order], prepend=-1))]] = True
    return first_of_each(owner, leads & (share > ROUNDING), len(away))


def first_of_each(owner: Ints, choose: Flags, size: int) -> Ints:
    """Return the first chosen choice of each node, -1 where there is none."""
    found = np.full(size, -1, dtype=np.int64)
    places = np.flatnonzero(choose)[::-1]
    found[owner[places]] = places
    return found


def goes_on(pairs: StatePairs) -> Flags:
    """Return which choices never end by themselves."""
    return np.asarray(np.abs(pairs.rows.sum(axis=1) - 1.0) < 1e-9)


def ending_choice(pairs: StatePairs) -> Ints:
    """Return a choice for each node with which the process surely ends, soon if it can be; -1 where none can."""
    size = pairs.rows.shape[1]
    away = distances(pairs.owner, pairs.rows, np.unique(pairs.owner[~goes_on(pairs)]), size)
    direct = nearest(pairs.owner, pairs.rows, away)
    if (direct < 0).any() or not size:
        return direct
    # the way that is shortest in moves may take ages on average; patience is finite so that the equations are tame
    hasty = pairs._replace(
        rows=sparse.csr_array(PATIENCE * pairs.rows), rewards=np.where(pairs.source >= 0, -1.0, 0.0)
    )
    _, soon = best_total(hasty, direct)
    chosen = sparse.csr_array(pairs.rows[soon])
    ends = np.flatnonzero(~goes_on(pairs)[soon])
    sure = np.isfinite(distances(np.arange(size), chosen, ends, size)).all()
    return soon if sure else direct


def best_total(pairs: StatePairs, start: Ints) -> tuple[Array, Ints]:
    """Return the largest total rewards, and a choice for each node, by policy iteration from one that surely ends."""
    choice, size = start.copy(), len(start)
    values = np.zeros(size)
    first = np.flatnonzero(np.diff(pairs.owner, prepend=-1))
    for _ in range(ROUNDS if size else 0):
        values = solved(sparse.csr_array(pairs.rows[choice]), pairs.rewards[choice], 1.0)
        q = pairs.rewards + pairs.rows @ values
        best = np.maximum.reduceat(q, first)
        better = best > values + MARGIN * np.maximum(1.0, np.abs(values))
        if not better.any():
            break
        top = first_of_each(pairs.owner, q >= best[pairs.owner], size)
        choice = np.where(better, top, choice)
    return values, choice


def spread(
    process: DecisionProcess, components: EndComponents, node: Ints, pairs: StatePairs, choice: Ints
) -> tuple[Ints, Flags]:
    """Return an action for each state that does what its node chose, and which states settle where they are.

    In a component that is left, all states go to the one that leaves. Where a state settles, its action is any that
    stays.
    """
    n = process.n_states
    taken = pairs.source[choice]
    action = np.zeros(n, dtype=np.int64)
    here = np.flatnonzero(node >= 0)
    settles = np.zeros(n, dtype=bool)
    settles[here] = taken[node[here]] < 0
    inside = np.flatnonzero(components.inside)
    if len(inside):
        owner, rows = inside % n, sparse.csr_array(process.transitions[inside])
        exits = np.array([t % n for t in taken[: components.n] if t >= 0], dtype=np.int64)
        away = distances(owner, rows, exits, n)
        step = nearest(owner, rows, away)
        stays = first_of_each(owner, settles[owner], n)
        step = np.where(stays >= 0, stays, step)
        moving = np.flatnonzero(step >= 0)
        action[moving] = inside[step[moving]] // n
    leaving = taken[taken >= 0]
    action[leaving % n] = leaving // n
    return action, settles
