"""Edges of many graphs, averaged: how often each pair is adjacent, how often each way, and one graph of the sure ones.

The graphs come from resampled data (`bootstrap.py`) or from a posterior over graphs (`posterior_edges.py`). The threshold
that separates sure edges from noise is the one of Scutari and Nagarajan, *Identifying significant edges in graphical models
of molecular networks*, Artificial Intelligence in Medicine 57 (2013): the point where the distribution of the shares is
nearest, in L1 distance, to one that only knows 0 and 1. Cost: a sort of the pairs.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, InvalidGraph, check_known
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.equivalence import cpdag, extend, meek, reversible_edges
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.graphs.kinds.plot_options import Positions
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.shown import html_table
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.result import Graph, LearnedStructure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SHOWN = 30
"""How many edges are printed."""
LEVELS = ("cpdag", "dag")


@dataclass(frozen=True, repr=False)
class EdgeConfidence:
    """How sure each edge is.

    Attributes
    ----------
    names
        The variables.
    arrows
        `arrows[i, j]`: the share of graphs with i -> j.
    lines
        `lines[i, j]`: the share of graphs where i and j are adjacent without a direction; symmetric.
    method
        What learned the graphs.
    level
        "cpdag" or "dag": whether a direction counts only where the whole class of equivalent graphs has it.
    n_graphs, asked
        How many graphs there are, and how many were asked for.
    stopped
        None, "time limit" or "interrupted": then there are fewer graphs than asked for.
    undirected
        Whether all graphs are undirected.
    seconds
        How long it took.
    """

    names: tuple[str, ...]
    arrows: Array
    lines: Array
    method: str
    level: str = "cpdag"
    n_graphs: int = 0
    asked: int = 0
    stopped: str | None = None
    undirected: bool = False
    ancestral: bool = False
    seconds: float = 0.0
    rules: Rules | None = field(default=None, compare=False)
    data: Any = field(default=None, compare=False)

    @property
    def strength(self) -> Array:
        """For each pair the share of graphs in which it is adjacent; a symmetric matrix."""
        found: Array = self.arrows + self.arrows.T + self.lines
        return found

    @property
    def direction(self) -> Array:
        """`direction[i, j]`: where i and j are adjacent, the share that points from i to j; a line counts half each way."""
        both = self.strength
        halves = self.arrows + self.lines / 2
        return np.divide(halves, both, out=np.zeros_like(both), where=both > 0)

    def __getitem__(self, edge: tuple[str, str]) -> float:
        """Return the share of graphs with the directed edge (parent, child)."""
        a, b = self._places(edge)
        return float(self.arrows[a, b])

    def adjacent(self, a: str, b: str) -> float:
        """Return the share of graphs in which two variables are adjacent."""
        i, j = self._places((a, b))
        return float(self.strength[i, j])

    @property
    def threshold(self) -> float:
        """The share above which an edge is significant, by Scutari and Nagarajan (2013)."""
        free = np.ones((len(self.names),) * 2, dtype=bool) if self.rules is None else self.rules.pairs
        above = np.triu(free, 1)
        return significance_threshold(self.strength[above])

    def consensus(self, threshold: float | None = None) -> LearnedStructure:
        """Return one graph of the sure edges: directed, acyclic and within what is known beforehand.

        Edges come in the order of their strength, in the direction that most graphs have. An edge without a direction gets
        one that makes no new collider where there is one. An edge that would close a cycle is turned, or else left out with
        a note.

        Parameters
        ----------
        threshold
            Edges of at least this strength; by default those above `threshold`.

        Returns
        -------
        LearnedStructure
            Its `fit()` gives a model.
        """
        strength = self.strength
        if threshold is None:
            sure = strength > self.threshold
        else:
            if not 0 < threshold <= 1:
                raise InvalidArgument(f"threshold is more than 0 and at most 1, not {threshold!r}")
            sure = strength >= threshold - 1e-12
        if self.ancestral:
            raise InvalidArgument(
                f"{self.method} learns partial ancestral graphs, which have no consensus; to_pandas() lists the edges"
            )
        pairs = [(int(i), int(j)) for i, j in zip(*np.nonzero(np.triu(sure, 1)), strict=True)]
        pairs.sort(key=lambda p: (-strength[p], p))
        notes: list[str] = []
        graph: Graph
        if self.undirected:
            graph = UndirectedGraph([(self.names[i], self.names[j]) for i, j in pairs], nodes=self.names)
        else:
            graph = _averaged(self, pairs, notes)
        return LearnedStructure(
            graph=graph,
            method=f"consensus of {self.n_graphs:,} graphs by {self.method}",
            notes=notes,
            seconds=self.seconds,
            stopped=self.stopped,
            data=self.data,
        )

    def undecided(self, graph: DAG) -> MixedGraph | None:
        """Return a consensus without the arrows that the graphs do not decide; None where they decide all.

        An edge loses its direction where no more graphs point one way than the other, or leave it open, and where turning
        it alone or with others gives an equivalent graph.

        Parameters
        ----------
        graph
            The `graph` of `consensus()`.

        Examples
        --------
        >>> import markovia as mk
        >>> sure = mk.bootstrap_structure(mk.examples.sprinkler().sample(500, seed=1), "ges", replicates=10, seed=0)
        >>> len(sure.undecided(sure.consensus().graph).undirected_edges())
        2
        """
        free = reversible_edges(graph)
        found = MixedGraph.from_dag(graph)
        for a, b in graph.edges:
            i, j = self._places((a, b))
            ahead, back = self.arrows[i, j], self.arrows[j, i]
            if (a, b) in free and (ahead == back or self.lines[i, j] > ahead + back):
                found.set_marks(a, b, Mark.TAIL, Mark.TAIL)
        found = meek(found)
        return found if found.undirected_edges() else None

    def to_pandas(self) -> "pd.DataFrame":
        """Return a table of all pairs that are adjacent in some graph, the surest first.

        The columns: from, to (the direction most graphs have), strength (the share in which they are adjacent), direction
        (the share of those that point that way, lines counting half), and the shares of each kind: forward, backward,
        undirected.
        """
        import pandas as pd

        columns = ["from", "to", "strength", "direction", "forward", "backward", "undirected"]
        return pd.DataFrame(self._rows(), columns=columns)

    def plot(
        self,
        *,
        least: float | None = None,
        labels: bool = True,
        ax: "Axes | None" = None,
        layout: Positions = "auto",
        title: str | None = None,
        seed: int = 0,
    ) -> "Axes":
        """Draw the edges, wider and darker the surer they are; returns the matplotlib axes."""
        return ports.draw(
            "plot-edge-confidence",
            self,
            least=least,
            labels=labels,
            ax=ax,
            layout=layout,
            title=title,
            seed=seed,
        )

    def _rows(self) -> list[tuple[Any, ...]]:
        strength, direction = self.strength, self.direction
        rows = []
        for i, j in zip(*np.nonzero(np.triu(strength, 1)), strict=True):
            a, b = (i, j) if direction[i, j] >= direction[j, i] else (j, i)
            rows.append(
                (
                    self.names[a],
                    self.names[b],
                    float(strength[a, b]),
                    float(direction[a, b]),
                    float(self.arrows[a, b]),
                    float(self.arrows[b, a]),
                    float(self.lines[a, b]),
                )
            )
        # rounding errors do not decide between edges that are sure
        rows.sort(key=lambda r: (-round(r[2], 6), -r[3]))
        return rows

    def _places(self, edge: Sequence[str]) -> tuple[int, int]:
        number = {name: i for i, name in enumerate(self.names)}
        if isinstance(edge, str) or len(edge) != 2:
            raise InvalidArgument(f"an edge is a pair (parent, child), not {edge!r}")
        check_known(edge, number, "the graphs")
        return number[edge[0]], number[edge[1]]

    def _heading(self) -> str:
        short = f", of {self.asked:,} asked for ({self.stopped})" if self.stopped else ""
        return f"edges of {self.n_graphs:,} graphs by {self.method}{short}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._heading()}>"

    def __str__(self) -> str:
        rows = self._rows()
        sure = self.threshold
        width = max([len(f"{r[0]} -> {r[1]}") for r in rows[:SHOWN]] or [4])
        lines = [self._heading(), f"  {'edge':<{width}}  strength  direction"]
        for r in rows[:SHOWN]:
            sign = "--" if self.undirected else "->"
            way = "" if self.undirected else f"{r[3]:9.2f}"
            lines.append(f"  {f'{r[0]} {sign} {r[1]}':<{width}}  {r[2]:8.2f}  {way}".rstrip())
        if len(rows) > SHOWN:
            lines.append(f"  ... and {len(rows) - SHOWN} more")
        lines.append(
            f"significant above {sure:.3g}: {sum(r[2] > sure for r in rows)} edges; {self.seconds:.3g} s"
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(r[0], r[1], f"{r[2]:.2f}", f"{r[3]:.2f}") for r in self._rows()]
        note = f"significant above {self.threshold:.3g}"
        return html_table(["from", "to", "strength", "direction"], rows, title=self._heading(), note=note)


def significance_threshold(strengths: Array) -> float:
    """Return the strength above which edges are significant (Scutari and Nagarajan 2013).

    With F the distribution function of the strengths, the ideal one is t on [0, 1) for some t; the nearest in L1 has the
    median of F over [0, 1] as t, and the threshold is the t-quantile of the strengths.

    Examples
    --------
    >>> significance_threshold(np.array([0.0460, 0.2242, 0.3921, 0.7689, 0.8935, 0.9439]))
    0.3921
    """
    values = np.sort(np.asarray(strengths, dtype=np.float64))
    if not len(values):
        return 0.0
    edges = np.concatenate([[0.0], values, [1.0]])
    lengths = np.diff(edges)  # F is k / n on the stretch after the k-th value
    middle = int(np.searchsorted(np.cumsum(lengths), 0.5 * lengths.sum() * (1 - 1e-12)))
    return 0.0 if middle == 0 else float(values[middle - 1])


def edge_flags(
    graph: Graph, names: Sequence[str], level: str, rules: Rules
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the arrows and the lines of a graph as matrices, at the level of graphs or of classes.

    At the level of classes, directions that follow from the rules count as well.
    """
    number = {name: i for i, name in enumerate(names)}
    n = len(names)
    arrows, lines = np.zeros((n, n), dtype=bool), np.zeros((n, n), dtype=bool)
    if isinstance(graph, UndirectedGraph):
        for a, b in graph.edges:
            lines[number[a], number[b]] = lines[number[b], number[a]] = True
        return arrows, lines
    if isinstance(graph, DAG) and level == "cpdag":
        graph = _within(cpdag(graph), names, rules)
    elif isinstance(graph, MixedGraph) and level == "dag" and not _has_other_marks(graph):
        with suppress(InvalidGraph):  # where tests contradict each other the lines stay lines
            graph = extend(graph)
    if isinstance(graph, DAG):
        for a, b in graph.edges:
            arrows[number[a], number[b]] = True
        return arrows, lines
    for a, b, mark_a, mark_b in graph.edges:
        i, j = number[a], number[b]
        if (mark_a, mark_b) == (Mark.TAIL, Mark.ARROW):
            arrows[i, j] = True
        elif (mark_a, mark_b) == (Mark.ARROW, Mark.TAIL):
            arrows[j, i] = True
        else:
            lines[i, j] = lines[j, i] = True
    return arrows, lines


def is_ancestral(graph: Graph) -> bool:
    """Say whether a graph has circles or bidirected edges."""
    return isinstance(graph, MixedGraph) and _has_other_marks(graph)


def _has_other_marks(graph: MixedGraph) -> bool:
    return any(Mark.CIRCLE in e[2:] or e[2] is e[3] is Mark.ARROW for e in graph.edges)


def _within(graph: MixedGraph, names: Sequence[str], rules: Rules) -> MixedGraph:
    """Direct the lines whose direction is known beforehand, and what follows from them."""
    if rules.free:
        return graph
    number = {name: i for i, name in enumerate(names)}
    result = graph.copy()
    for a, b in graph.undirected_edges():
        i, j = number[a], number[b]
        if rules.required[i, j] or not rules.allowed[j, i]:
            result.set_marks(a, b, Mark.TAIL, Mark.ARROW)
        elif rules.required[j, i] or not rules.allowed[i, j]:
            result.set_marks(b, a, Mark.TAIL, Mark.ARROW)
    return meek(result)


def _averaged(confidence: EdgeConfidence, pairs: Sequence[tuple[int, int]], notes: list[str]) -> DAG:
    """Put the pairs together: directions by majority in the order of strength, then the lines."""
    names, rules = confidence.names, confidence.rules
    n = len(names)
    allowed = ~np.eye(n, dtype=bool) if rules is None else rules.allowed
    most = n if rules is None else rules.max_parents
    parents: list[set[int]] = [set() for _ in range(n)]
    wanted = list(pairs)
    if rules is not None:
        for i, j in zip(*np.nonzero(rules.required), strict=True):
            parents[int(j)].add(int(i))
        wanted = [p for p in pairs if not rules.required_pairs[p]]
    open_pairs = []
    for i, j in wanted:
        forward, backward = confidence.arrows[i, j], confidence.arrows[j, i]
        if forward == backward or confidence.lines[i, j] > forward + backward:
            open_pairs.append((i, j))
            continue
        _place(parents, (i, j) if forward > backward else (j, i), allowed, most, names, notes)
    chosen = _extended(parents, open_pairs, names)
    legal = chosen is not None and all(
        len(own) <= most and all(allowed[p, c] for p in own) for c, own in enumerate(chosen)
    )
    if chosen is not None and legal:
        parents = chosen
    else:
        for i, j in open_pairs:
            ahead = confidence.arrows[i, j] >= confidence.arrows[j, i]
            _place(parents, (i, j) if ahead else (j, i), allowed, most, names, notes)
    return DAG([(names[p], names[c]) for c in range(n) for p in sorted(parents[c])], nodes=names)


def _place(
    parents: list[set[int]],
    edge: tuple[int, int],
    allowed: NDArray[np.bool_],
    most: int,
    names: Sequence[str],
    notes: list[str],
) -> None:
    for k, (a, b) in enumerate((edge, edge[::-1])):
        if allowed[a, b] and len(parents[b]) < most and not _above(parents, b, a):
            parents[b].add(a)
            if k:
                notes.append(
                    f"{names[a]} -> {names[b]} is turned: the other way round is a cycle or not allowed"
                )
            return
    notes.append(f"{names[edge[0]]} -> {names[edge[1]]} is left out: either way is a cycle or not allowed")


def _above(parents: list[set[int]], start: int, node: int) -> bool:
    """Say whether `start` is an ancestor of `node`, or the node itself."""
    seen, queue = {node}, [node]
    while queue:
        at = queue.pop()
        if at == start:
            return True
        fresh = parents[at] - seen
        seen |= fresh
        queue.extend(fresh)
    return False


def _extended(
    parents: list[set[int]], lines: Sequence[tuple[int, int]], names: Sequence[str]
) -> list[set[int]] | None:
    """Direct the lines without a new collider, or return None where that cannot be done."""
    if not lines:
        return parents
    edges = [
        (names[p], names[c], Mark.TAIL, Mark.ARROW) for c, own in enumerate(parents) for p in sorted(own)
    ]
    edges += [(names[i], names[j], Mark.TAIL, Mark.TAIL) for i, j in lines]
    number = {name: i for i, name in enumerate(names)}
    try:
        dag = extend(MixedGraph(edges, nodes=names))
    except InvalidGraph:
        return None
    return [{number[p] for p in dag.parents(name)} for name in names]
