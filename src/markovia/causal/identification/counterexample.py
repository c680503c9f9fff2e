"""Two models that agree on all that is observed and differ in an effect: the proof that it is not identified.

A hedge is two nested sets T and C, each joined by bidirected edges, with directed paths inside T from all of it to
C. Every node holds a few bits, each the sum (modulo two) of bits above it. Along a tree of hidden fair coins that spans
C and then T, and along paths from T to C, the "hedge" bits add up; in the second model the nodes of C listen to C
only. In both, all observed values that keep the sum over C even are equally likely. After the treatment is set, the
sum is still even in the second model, and a fair coin in the first. "sum" bits carry that sum down to the outcome or
to what is given. If all of it ends at what is given, a coin hides it at one of these nodes, and a path that is open
given the others tells the outcome the coin: with all that is given, the outcome shows the sum. Reference: Shpitser and
Pearl, *Identification of joint interventional distributions in recursive semi-Markovian causal models*, theorem 4, and
*of conditional interventional distributions*, theorem 6 (2006), with bits that travel to the outcome instead of a
reduction.
"""

from collections import defaultdict
from itertools import pairwise

import numpy as np

from markovia.causal.identification.id_algorithm import Hedge, Identifier
from markovia.causal.problem import Problem
from markovia.errors import InvalidArgument
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.masks import members
from markovia.graphs.kinds.named import Names
from markovia.graphs.kinds.trails import open_trails
from markovia.models.graphical.bayesian_network import BayesianNetwork

Bits = dict[str, dict[str, list[tuple[str, str]]]]  # of each node, by label, the parents' bits that add up
COIN = [("", "")]  # a bit that is tossed


def counterexample(
    graph: object, treatment: Names, outcome: Names, *, given: Names = (), latent: Names = ()
) -> tuple[BayesianNetwork, BayesianNetwork]:
    """Return two networks of one graph with the same observed distribution and different effects.

    Parameters
    ----------
    graph, treatment, outcome, given, latent
        As for `identify`.

    Returns
    -------
    tuple of BayesianNetwork
        Over the observed variables and a variable `U(a,b)` for each hidden common cause that is used. The effects of
        setting all treatments to 0 differ; with `given`, they differ at some values that are possible in both.

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
    [[0.5, 0.5], [1.0, 0.0]]
    """
    problem = Problem.of(graph, treatment, outcome, given, latent)
    admg = problem.admg
    identifier = Identifier(admg)
    y = admg.mask(problem.outcome)
    x, z = identifier.moved(admg.mask(problem.treatment), y, admg.mask(problem.given))
    try:
        identifier.effect(x, y | z)
    except Hedge as hedge:
        return _network(admg, _bits(admg, x, y, z, hedge)), _network(
            admg, _bits(admg, x, y, z, hedge, deaf=True)
        )
    raise InvalidArgument("the effect is identified: models that agree on what is observed agree on it, too")


def _bits(g: Admg, x: int, y: int, z: int, hedge: Hedge, deaf: bool = False) -> Bits:
    t, c, names = hedge.larger, hedge.smaller, g.names
    bits: Bits = defaultdict(lambda: defaultdict(list))
    for name in g.named(t):
        bits[name]["hedge"] = []
    for a, b in _spanning(g, c, c & -c) + _spanning(g, t, c):
        coin = _coin(g, a, b)
        bits[coin]["hedge"] = COIN
        for v, other in ((a, b), (b, a)):
            if not (deaf and c >> v & 1 and not c >> other & 1):
                bits[names[v]]["hedge"].append((coin, "hedge"))
    for v, child in _one_child(g, c, t).items():
        if not (deaf and c >> child & 1):
            bits[names[child]]["hedge"].append((names[v], "hedge"))
    # to the outcome where that avoids what is given, else to what is given
    below = {v: w for v, w in _one_child(g, z, ~x).items() if not y >> v & 1} | _one_child(g, y, ~x & ~z)
    shown, used = 0, c
    for v in g.ordered(g.everything):
        if used >> v & 1 and v not in below:
            shown |= 1 << v
        elif used >> v & 1:
            used |= 1 << below[v]
            bits[names[below[v]]]["sum"] += [(names[v], k) for k in ("hedge", "sum") if k in bits[names[v]]
                                             and (k == "sum" or c >> v & 1)]  # fmt: skip
    if not shown & y:
        _hide(g, x, y, z, members(shown)[0], c, bits)
    return bits


def _hide(g: Admg, x: int, y: int, z: int, v: int, c: int, bits: Bits) -> None:
    """Add a coin to what a node shows of the sum, and let an open path tell it to the outcome."""
    name, others = g.names[v], z & ~(1 << v)
    hidden = [(_coin(g, a, b), g.names[e]) for a, b in _joined(g) for e in (a, b) if not x >> e & 1]
    seen = [
        (g.names[p], g.names[e]) for e in range(len(g.names)) if not x >> e & 1
        for p in members(g.parents[e] & ~(1 << v))
    ]  # fmt: skip
    dag = DAG([*hidden, *seen], nodes=g.names)
    conditions = g.named(x | others)
    trail = next(t for w in g.named(y) for t in open_trails(dag, name, w, conditions, limit=1))
    into: dict[str, list[str]] = {n: [] for n in trail.nodes}
    for (a, b), arrow in zip(pairwise(trail.nodes), trail.arrows, strict=True):
        into[b if arrow == "->" else a].append(a if arrow == "->" else b)
    own = bits[name]
    own["sum"] += [*(own.pop("hedge") if c >> v & 1 else []), *((p, "path") for p in into.pop(name))]
    down = _one_child(g, others, ~x & ~(1 << v))
    for n, parents in into.items():
        bits[n]["path"] = [(p, "path") for p in parents] or COIN
        if len(parents) == 2:  # a collider: what is given below it shows the sum of both sides
            at, told, label = g.number[n], (n, "path"), f"below {n}"
            while not others >> at & 1:
                at = down[at]
                bits[g.names[at]][label] = [told]
                told = (g.names[at], label)


def _network(g: Admg, bits: Bits) -> BayesianNetwork:
    network = BayesianNetwork()
    hidden = [name for a, b in _joined(g) if (name := _coin(g, a, b)) in bits]
    for name in [*hidden, *(g.names[v] for v in g.order)]:
        own = bits.get(name) or {"nothing": []}
        parents = list(dict.fromkeys(p for inputs in own.values() for p, _ in inputs if p))
        place = {p: list(bits[p]) for p in parents}
        rows = np.zeros((*(2 ** len(place[p]) for p in parents), 2 ** len(own)))
        for at in np.ndindex(*rows.shape[:-1]):
            value = dict(zip(parents, at, strict=True))
            row = np.ones(1)
            for inputs in own.values():
                odd = sum(value[p] >> place[p].index(k) for p, k in inputs if p) % 2
                row = np.kron([0.5, 0.5] if inputs == COIN else [1 - odd, odd], row)
            rows[at] = row
        network.add(name, states=rows.shape[-1], parents=parents, p=rows)
    return network


def _coin(g: Admg, a: int, b: int) -> str:
    return f"U({g.names[min(a, b)]},{g.names[max(a, b)]})"


def _joined(g: Admg) -> list[tuple[int, int]]:
    return [(a, b) for a in range(len(g.names)) for b in members(g.siblings[a]) if a < b]


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
