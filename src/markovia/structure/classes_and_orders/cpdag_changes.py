"""What one move changes in an equivalence class, found from the surroundings of the move alone.

A move changes the parents of one or two nodes of some member. Which edges of the new class are compelled is decided node by
node (Chickering 1995): let x be the parent of y that no other parent of y has as its own parent. All edges into y are
compelled if a compelled edge into x, or another parent of y, comes from outside the parents of y, or of x; otherwise those
are whose tail has a compelled edge into x. So a node's answer depends on one parent only, and a change is followed down
that forest until nothing differs. Members are made only where they are looked at, one undirected part at a time, by maximum
cardinality search (Tarjan and Yannakakis 1984) begun with a clique of choice; this makes that clique the first of its part.
Cost: the undirected parts at the nodes that are looked at, whatever the size of the graph.
"""

from collections.abc import Sequence
from typing import NamedTuple

from markovia.graphs.kinds.masks import members
from markovia.structure.classes_and_orders.cpdag_masks import ClassGraph


class Surroundings(NamedTuple):
    """What a class says of one node, as masks."""

    parents: int
    joined: int
    children: int
    adjacent: int


Change = dict[int, Surroundings]
"""The nodes whose surroundings change, with what they change to."""


def put(graph: ClassGraph, change: Change) -> Change:
    """Change a class; return what puts it back."""
    before = {}
    for v, new in change.items():
        before[v] = _around(graph, v)
        graph.parents[v], graph.joined[v], graph.children[v], graph.adjacent[v] = new
    return before


class LocalMember:
    """A directed graph of a class, its undirected parts directed when they are first looked at.

    Examples
    --------
    >>> graph = ClassGraph.of_parents([0, 0b001, 0b010])     # 0 - 1 - 2
    >>> member = LocalMember(graph)
    >>> member.orient((1,)), members(member.parents(0))
    (True, [1])
    >>> sorted(member.changed({0: 0b110}))                   # with 2 -> 0 nothing is compelled in the triangle
    [0, 2]
    """

    def __init__(self, graph: ClassGraph) -> None:
        self.graph = graph
        self._own: dict[int, int] = {}

    def orient(self, first: Sequence[int]) -> bool:
        """Direct an undirected part by maximum cardinality search; say whether that makes a member of the class.

        Parameters
        ----------
        first
            The order that the part begins with: the edges among these variables point forwards, and the edges to the
            rest of the part away from them.
        """
        joined, own = self.graph.joined, self._own
        if first[0] in own:
            return True
        done = 0
        reached: dict[int, int] = {}
        waiting: list[list[int]] = [[], []]
        most = 1
        given = len(first)
        while most:
            if given:
                v = first[len(first) - given]
                given -= 1
            elif waiting[most]:
                v = waiting[most].pop()
                if v in own or reached.get(v, 0) != most:
                    continue
            else:
                most -= 1
                continue
            before = joined[v] & done
            if not self.graph.is_clique(before):
                return False
            own[v] = self.graph.parents[v] | before
            done |= 1 << v
            for w in members(joined[v] & ~done):
                count = reached[w] = reached.get(w, 0) + 1
                if count == len(waiting):
                    waiting.append([])
                waiting[count].append(w)
                most = max(most, count)
        return True

    def parents(self, v: int) -> int:
        """Return a node's parents in the member."""
        if not self.graph.joined[v]:
            return self.graph.parents[v]
        if v not in self._own:
            self.orient((v,))
        return self._own[v]

    def children(self, v: int) -> list[int]:
        """Return a node's children in the member."""
        bit = 1 << v
        found = [w for w in members(self.graph.joined[v]) if self.parents(w) & bit]
        return found + members(self.graph.children[v])

    def changed(self, families: dict[int, int]) -> Change:
        """Return what changes in the class if some nodes of the member get other parents."""
        graph = self.graph

        def parents(v: int) -> int:
            found = families.get(v)
            return self.parents(v) if found is None else found

        def below(v: int) -> list[int]:
            found = [w for w in self.children(v) if w not in families]
            return found + [w for w, own in families.items() if own >> v & 1]

        compelled: dict[int, int] = {}
        waiting = [*(w for v in families for w in below(v)), *families]
        while waiting:
            v = waiting.pop()
            own = parents(v)
            new, last = own, -1
            if own:
                tails = members(own)
                last = next(x for x in tails if not any(parents(w) >> x & 1 for w in tails if w != x))
                rest = own ^ 1 << last
                above = compelled.get(last, graph.parents[last])
                if not above & ~own and not (rest and rest & ~parents(last)):
                    new = above
            if new != compelled.get(v, graph.parents[v]):
                compelled[v] = new
                waiting += below(v)
        nodes: dict[int, list[int]] = {}

        def at(v: int) -> list[int]:
            if v not in nodes:
                nodes[v] = list(_around(graph, v))
            return nodes[v]

        touched = list({**families, **compelled})
        for v in touched:
            for w in members(self.parents(v)):
                head, tail, keep_v, keep_w = at(v), at(w), ~(1 << v), ~(1 << w)
                head[0] &= keep_w
                head[1] &= keep_w
                head[3] &= keep_w
                tail[1] &= keep_v
                tail[2] &= keep_v
                tail[3] &= keep_v
        for v in touched:
            directed = compelled.get(v, graph.parents[v])
            for w in members(parents(v)):
                head, tail = at(v), at(w)
                head[3] |= 1 << w
                tail[3] |= 1 << v
                if directed >> w & 1:
                    head[0] |= 1 << w
                    tail[2] |= 1 << v
                else:
                    head[1] |= 1 << w
                    tail[1] |= 1 << v
        change = {v: Surroundings(*found) for v, found in nodes.items()}
        return {v: to for v, to in change.items() if to != _around(graph, v)}


def _around(graph: ClassGraph, v: int) -> Surroundings:
    return Surroundings(graph.parents[v], graph.joined[v], graph.children[v], graph.adjacent[v])
