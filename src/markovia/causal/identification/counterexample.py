"""Two models that agree on all that is observed and differ in an effect: the proof that it is not identified.

A hedge is two nested sets T and C, each joined by bidirected edges, with directed paths inside T from all of it to
C. Every node has two bits. Along a tree of hidden fair coins that spans C and then T, and along paths from T to C,
the first bit of a node is the sum (modulo two) of what is above it; in the second model the nodes of C listen to C
only. In both, all observed values that keep the sum over C even are equally likely. After the treatment is set, the
sum is still even in the second model, and a fair coin in the first. The second bits carry that sum down to the
outcome. Reference: Shpitser and Pearl, *Identification of joint interventional distributions in recursive
semi-Markovian causal models* (2006), theorem 4, with paths to the outcome as second bits instead of a reduction.
"""

import numpy as np

from markovia.causal.identification.id_algorithm import Hedge, Identifier
from markovia.causal.problem import Problem
from markovia.errors import InvalidArgument
from markovia.graphs.causal.admg import Admg
from markovia.graphs.masks import members
from markovia.graphs.named import Names
from markovia.models.graphical.bayesian_network import BayesianNetwork


def counterexample(
    graph: object, *, treatment: Names, outcome: Names, latent: Names = ()
) -> tuple[BayesianNetwork, BayesianNetwork]:
    """Return two networks of one graph with the same observed distribution and different effects.

    Parameters
    ----------
    graph, treatment, outcome, latent
        As for `identify`.

    Returns
    -------
    tuple of BayesianNetwork
        Over the observed variables, of four states each, and a coin `U(a,b)` for each hidden common cause that is used. The
        effects of setting all treatments to 0 differ.

    Raises
    ------
    InvalidArgument
        If the effect is identified, so that there are no such models.

    Examples
    --------
    >>> one, two = counterexample("x -> y; x <-> y", treatment="x", outcome="y")
    >>> one.query(["x", "y"]).allclose(two.query(["x", "y"]))
    True
    >>> [m.do(x=0).query("y").values.tolist() for m in (one, two)]
    [[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
    """
    problem = Problem.of(graph, treatment, outcome, latent=latent)
    admg = problem.admg
    x, y = admg.mask(problem.treatment), admg.mask(problem.outcome)
    try:
        Identifier(admg).effect(x, y)
    except Hedge as hedge:
        return _network(admg, x, y, hedge, deaf=False), _network(admg, x, y, hedge, deaf=True)
    raise InvalidArgument("the effect is identified: models that agree on what is observed agree on it, too")


def _network(g: Admg, x: int, y: int, hedge: Hedge, deaf: bool) -> BayesianNetwork:
    t, c = hedge.larger, hedge.smaller
    coins = _spanning(g, c, c & -c) + _spanning(g, t, c)
    inside = _one_child(g, c, t)  # along these the first bits add up
    carried = _one_child(g, y, g.ancestors(y, within=~x))  # along these the second bits
    heard: dict[int, list[tuple[int, int]]] = {v: [] for v in range(len(g.names))}
    for v, child in inside.items():
        if not (deaf and c >> child & 1):
            heard[child].append((v, 0b01))
    used = c
    for v in g.ordered(g.everything):
        if used >> v & 1 and v in carried:
            used |= 1 << carried[v]
            heard[carried[v]].append((v, 0b11 if c >> v & 1 else 0b10))
    network = BayesianNetwork()
    tossed: dict[int, list[str]] = {v: [] for v in heard}
    for a, b in coins:
        name = f"U({g.names[min(a, b)]},{g.names[max(a, b)]})"
        network.add(name, states=2, p=[0.5, 0.5])
        for v, other in ((a, b), (b, a)):
            if not (deaf and c >> v & 1 and not c >> other & 1):
                tossed[v].append(name)
    for v in g.ordered(g.everything):
        first = dict(p for p in heard[v] if p[1] == 0b01)
        second = {p: m for p, m in heard[v] if m != 0b01}
        parents = [*first, *(p for p in second if p not in first)]
        shape = [4] * len(parents) + [2] * len(tossed[v])
        rows = np.zeros((*shape, 4))
        for at in np.ndindex(*shape):
            value = dict(zip(parents, at, strict=False))
            low = sum(value[p] & 1 for p in first) + sum(at[len(parents) :])
            high = sum((value[p] & 1 & m) + (value[p] >> 1) for p, m in second.items())
            rows[(*at, low % 2 + 2 * (high % 2))] = 1.0
        network.add(g.names[v], states=4, parents=[*(g.names[p] for p in parents), *tossed[v]], p=rows)
    return network


def _spanning(g: Admg, nodes: int, start: int) -> list[tuple[int, int]]:
    """Return bidirected edges that join the nodes of a set to a part of it, without cycles."""
    found, done, queue = [], start, members(start)
    for v in queue:
        for w in members(g.siblings[v] & nodes & ~done):
            done |= 1 << w
            queue.append(w)
            found.append((v, w))
    return found


def _one_child(g: Admg, goal: int, within: int) -> dict[int, int]:
    """Return for each node above a goal, inside a set, the one child through which it gets there."""
    chosen: dict[int, int] = {}
    done, queue = goal, members(goal)
    for v in queue:
        for p in members(g.parents[v] & within & ~done):
            done |= 1 << p
            queue.append(p)
            chosen[p] = v
    return chosen
