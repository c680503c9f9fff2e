"""Partial ancestral graphs by brute force: the class of a maximal ancestral graph, enumerated.

Written from the definitions and without the orientation rules, so that it can judge them. Marks are letters:
`marks[x][y]` is the mark at y of the edge between x and y.
"""

from itertools import combinations

import numpy as np

import markovia as mk
from markovia.ci_tests import Oracle
from markovia.graphs import DAG, Mark, MixedGraph, d_separated

TAIL, ARROW, CIRCLE = "-", ">", "o"
PDS = ["x0 <-> x3", "x1 <-> x2", "x5 --> x1", "x2 <-> x3", "x2 --> x4", "x3 --> x5", "x4 <-> x5"]
"""A graph in which no set of neighbours separates x1 and x4, though they are separated."""
_MARKS = {TAIL: Mark.TAIL, ARROW: Mark.ARROW, CIRCLE: Mark.CIRCLE}


def random_hidden_case(seed, observed=(4, 7), hidden=(1, 3), selected=(0, 0), density=(0.25, 0.6)):
    """Return a random DAG with the names of its latent and of its selection nodes; observed ones are x0, x1, ..."""
    rng = np.random.default_rng(seed)
    n, h, s = (int(rng.integers(low, high + 1)) for low, high in (observed, hidden, selected))
    names = [f"x{i}" for i in range(n)] + [f"h{i}" for i in range(h)] + [f"s{i}" for i in range(s)]
    rate = rng.uniform(*density)
    order = [names[k] for k in rng.permutation(n + h + s)]
    edges = [(a, b) for a, b in combinations(order, 2) if rng.random() < rate and a[0] != "s"]
    return DAG(edges, nodes=names), [m for m in names if m[0] == "h"], [m for m in names if m[0] == "s"]


def maximal_ancestral_graph(dag, latent=(), selection=()):
    """Return the MAG of a DAG: x and y are adjacent if nothing separates them, with a tail at ancestors."""
    seen = [n for n in dag.nodes if n not in {*latent, *selection}]
    marks: dict[str, dict[str, str]] = {x: {} for x in seen}
    above = {x: dag.ancestors([x, *selection], include_self=True) for x in seen}
    for x, y in combinations(seen, 2):
        others = [z for z in (above[x] | above[y]) if z in marks and z not in (x, y)]
        if not d_separated(dag, x, y, [*others, *selection]):
            marks[x][y] = TAIL if y in dag.ancestors([x, *selection], include_self=True) else ARROW
            marks[y][x] = TAIL if x in dag.ancestors([y, *selection], include_self=True) else ARROW
    return marks


def as_graph(marks):
    nodes = list(marks)
    return MixedGraph(
        [
            (x, y, _MARKS[marks[y][x]], _MARKS[marks[x][y]])
            for x, y in combinations(nodes, 2)
            if y in marks[x]
        ],
        nodes=nodes,
    )


def separations(marks):
    """Return every separation (x, y, given) of an ancestral graph, by walking all open routes."""
    nodes = list(marks)
    above = {x: _ancestors(marks, x) for x in nodes}
    found = set()
    for x, y in combinations(nodes, 2):
        if y in marks[x]:
            continue
        rest = [z for z in nodes if z not in (x, y)]
        for size in range(len(rest) + 1):
            for given in combinations(rest, size):
                if not _connected(marks, above, x, y, set(given)):
                    found.add((x, y, given))
    return found


def markov_class(marks, undirected=False):
    """Return every MAG with the same separations; with `undirected` also those with undirected edges."""
    nodes = list(marks)
    edges = [(x, y) for x, y in combinations(nodes, 2) if y in marks[x]]
    colliders = {
        (a, b, c): marks[a][b] == ARROW and marks[c][b] == ARROW
        for b in nodes
        for a, c in combinations(sorted(marks[b]), 2)
        if c not in marks[a]
    }
    kinds = [(TAIL, ARROW), (ARROW, TAIL), (ARROW, ARROW)] + ([(TAIL, TAIL)] if undirected else [])
    wanted = separations(marks)
    current: dict[str, dict[str, str]] = {x: {} for x in nodes}
    found = []

    def place(k):
        if k == len(edges):
            if as_graph(current).is_ancestral() and separations(current) == wanted:
                found.append({x: dict(row) for x, row in current.items()})
            return
        x, y = edges[k]
        for at_x, at_y in kinds:
            current[y][x], current[x][y] = at_x, at_y
            if all(
                (current[a][b] == ARROW and current[c][b] == ARROW) == known
                for (a, b, c), known in colliders.items()
                if b in (x, y) and (x in (a, c) or y in (a, c)) and b in current[a] and b in current[c]
            ):
                place(k + 1)
        del current[y][x], current[x][y]

    place(0)
    return found


def true_pag(marks, undirected=False):
    """Return the graph with the marks that all members of the class share, circles elsewhere."""
    members = markov_class(marks, undirected)
    assert any(m == marks for m in members)
    return as_graph(
        {
            x: {y: mark if all(m[x][y] == mark for m in members) else CIRCLE for y, mark in row.items()}
            for x, row in marks.items()
        }
    )


def _ancestors(marks, x):
    """Return x and the nodes with a directed path to it."""
    found, queue = {x}, [x]
    for v in queue:
        for w, mark in marks[v].items():
            if mark == TAIL and marks[w][v] == ARROW and w not in found:
                found.add(w)
                queue.append(w)
    return found


def _connected(marks, above, x, y, given):
    opened = set().union(*(above[z] for z in given)) if given else set()
    seen, queue = {(x, False)}, [(x, False)]
    for v, by_arrow in queue:
        if v == y:
            return True
        for w in marks[v]:
            collider = by_arrow and marks[w][v] == ARROW
            state = (w, marks[v][w] == ARROW)
            if (v in opened if collider else v not in given) and state not in seen:
                seen.add(state)
                queue.append(state)
    return False


def learned(dag, latent=(), selection=(), method="fci", **options):
    return mk.learn_structure(
        method=method, test=Oracle(dag, latent=latent, selection=selection), progress=False, **options
    )


def spouses(edges):
    """Return a DAG with a hidden parent for each bidirected edge, and the names of those parents."""
    hidden: list[str] = []
    arcs: list[tuple[str, str]] = []
    for edge in edges:
        a, kind, b = edge.split()
        if kind == "<->":
            hidden.append(f"h{len(hidden)}")
            arcs += [(hidden[-1], a), (hidden[-1], b)]
        else:
            arcs.append((a, b))
    return DAG(arcs), hidden


def statements(*independent):
    """Return an oracle that knows exactly these independencies (x, y, given)."""
    known = {(frozenset(pair[:2]), frozenset(pair[2])) for pair in independent}
    return Oracle(lambda x, y, given: (frozenset((x, y)), frozenset(given)) in known)
