"""Comparing a learned graph with the true one: structural Hamming distance, precision and recall, intervention distance.

Graphs are compared on one level. Two DAGs are compared edge by edge, a DAG and a CPDAG as classes (the DAG gives its
CPDAG), two partial ancestral graphs mark by mark, two undirected graphs by their edges. The structural Hamming distance
counts pairs of nodes: one for an edge that is missing, too many, or has other marks, so that a reversed edge counts one
(Tsamardinos, Brown and Aliferis, *The max-min hill-climbing Bayesian network structure learning algorithm*, Machine
Learning 65, 2006, on CPDAGs).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from markovia.errors import InvalidArgument, InvalidGraph, TooLarge
from markovia.graphs.comparison.intervention_distance import (
    SIDBounds,
    intervention_bounds,
    intervention_distance,
)
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.equivalence import cpdag, extend
from markovia.graphs.kinds.mixed import Mark, MixedGraph, edge_string
from markovia.graphs.kinds.plot_options import Positions
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime import ports
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Graph = DAG | MixedGraph | UndirectedGraph
Level = Literal["dag", "cpdag", "pag", "undirected"]
Pair = tuple[str, str]
_Ends = frozenset[tuple[Mark, Mark]]
FEW = 6
"""Up to so many edges of a kind are printed."""


class Rates(NamedTuple):
    """How many of the things that were found are right, and how many of the true ones were found.

    Nothing found is as precise as can be (1), and so is the recall of nothing.
    """

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """The share of what was found that is right."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """The share of what is true that was found."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = 2 * self.right + self.wrong + self.missed
        return 2 * self.right / total if total else 1.0


class EdgeDifference(NamedTuple):
    """A pair of nodes whose edges differ: "missing", "extra", "reversed" or "reoriented", and the edge in each graph."""

    kind: str
    learned: str | None
    truth: str | None


@dataclass(frozen=True)
class GraphComparison(InNotebooks):
    """A learned graph beside the true one.

    Attributes
    ----------
    learned, truth
        The graphs as they are compared: on the level of classes a DAG is its CPDAG.
    level
        "dag", "cpdag", "pag" or "undirected".
    given
        The graphs as they were given.

    Examples
    --------
    >>> truth = DAG([("a", "b"), ("b", "c")])
    >>> found = compare_graphs(DAG([("a", "b"), ("c", "b"), ("a", "c")]), truth)
    >>> found.shd, found.cpdag_shd, found.extra, found.reversed, found.sid
    (2, 1, [('a', 'c')], [('b', 'c')], 2)
    >>> found.skeleton.precision, found.skeleton.recall
    (0.6666666666666666, 1.0)
    """

    learned: Graph
    truth: Graph
    level: Level
    given: tuple[Graph, Graph]

    @cached_property
    def edge_marks(self) -> tuple[dict[Pair, _Ends], dict[Pair, _Ends]]:
        """For the learned and the true graph: the marks (at a, at b) of each pair of adjacent nodes (a, b)."""
        nodes = self.truth.nodes
        number = {name: i for i, name in enumerate(nodes)}
        return _ends(self.learned, number), _ends(self.truth, number)

    @property
    def nodes(self) -> list[str]:
        """The nodes in the order of the true graph."""
        return self.truth.nodes

    @cached_property
    def missing(self) -> list[Pair]:
        """The edges of the true graph whose ends are not adjacent in the learned one, from tail to head."""
        learned, truth = self.edge_marks
        return [_directed(pair, truth[pair]) for pair in truth if pair not in learned]

    @cached_property
    def extra(self) -> list[Pair]:
        """The edges of the learned graph whose ends are not adjacent in the true one, from tail to head."""
        learned, truth = self.edge_marks
        return [_directed(pair, learned[pair]) for pair in learned if pair not in truth]

    @cached_property
    def reversed(self) -> list[Pair]:
        """The edges a -> b of the true graph that are b -> a in the learned one."""
        return [_directed(p, self.edge_marks[1][p]) for p in self._shared() if self._turned(p)]

    @cached_property
    def reoriented(self) -> list[Pair]:
        """The edges of the true graph that have other marks in the learned one, the reversed ones among them."""
        learned, truth = self.edge_marks
        return [_directed(p, truth[p]) for p in self._shared() if learned[p] != truth[p]]

    @cached_property
    def shared(self) -> list[Pair]:
        """The edges that are the same in both."""
        learned, truth = self.edge_marks
        return [_directed(p, truth[p]) for p in self._shared() if learned[p] == truth[p]]

    @cached_property
    def differences(self) -> list[EdgeDifference]:
        """Every pair of nodes whose edges differ, with its edge in each graph."""
        learned, truth = self.edge_marks
        found = []
        for pair in dict.fromkeys([*truth, *learned]):
            mine, true = learned.get(pair), truth.get(pair)
            if mine != true:
                turned = mine is not None and true is not None and self._turned(pair)
                kind = (
                    "missing"
                    if mine is None
                    else "extra"
                    if true is None
                    else "reversed"
                    if turned
                    else "reoriented"
                )
                found.append(EdgeDifference(kind, _text(pair, mine), _text(pair, true)))
        return found

    @property
    def shd(self) -> int:
        """The structural Hamming distance: the number of pairs of nodes whose edges differ."""
        return len(self.differences)

    @cached_property
    def mark_distance(self) -> int:
        """The number of ends of edges that differ: two for a missing or extra edge, one or two for another orientation."""
        learned, truth = self.edge_marks
        total = 0
        for pair in {*learned, *truth}:
            mine, true = learned.get(pair, frozenset()), truth.get(pair, frozenset())
            if len(mine) == len(true) == 1:
                (a, b), (c, d) = next(iter(mine)), next(iter(true))
                total += (a is not c) + (b is not d)
            else:
                total += 2 * max(len(mine - true), len(true - mine))
        return total

    @cached_property
    def cpdag_shd(self) -> int | None:
        """The structural Hamming distance of the classes; None where there are none (PAGs, undirected graphs)."""
        if self.level == "cpdag":
            return self.shd
        if self.level != "dag":
            return None
        return compare_graphs(_as_cpdag(self.learned), _as_cpdag(self.truth)).shd

    @cached_property
    def skeleton(self) -> Rates:
        """Precision and recall of adjacencies."""
        return Rates(len(self._shared()), len(self.extra), len(self.missing))

    @cached_property
    def arrows(self) -> Rates:
        """Precision and recall of arrowheads: ends of edges that point at a node."""
        mine, true = (_heads(edges) for edges in self.edge_marks)
        return Rates(len(mine & true), len(mine - true), len(true - mine))

    @cached_property
    def sid(self) -> int | SIDBounds:
        """The structural intervention distance of the learned graph from the true DAG; bounds if it stands for a class.

        Raises
        ------
        InvalidArgument
            If the truth is no DAG, or the learned graph stands for no DAG.
        TooLarge
            If the class is too large.
        """
        return sid(*self.given)

    def plot(
        self,
        *,
        axes: "Sequence[Axes] | None" = None,
        layout: Positions = "auto",
        titles: Sequence[str] = ("learned", "truth"),
        legend: bool = True,
        seed: int = 0,
    ) -> "tuple[Axes, Axes]":
        """Draw the two graphs side by side in one layout; see `markovia.plotting.plot_comparison`."""
        drawn: tuple[Axes, Axes] = ports.call(
            "plot-comparison", self, axes=axes, layout=layout, titles=titles, legend=legend, seed=seed
        )
        return drawn

    def __str__(self) -> str:
        kind = {
            "dag": "directed graphs",
            "cpdag": "classes of graphs (CPDAGs)",
            "pag": "partial ancestral graphs",
        }
        lines = [
            f"two {kind.get(self.level, 'undirected graphs')} over {len(self.nodes)} nodes: "
            f"{self.learned.n_edges} edges learned, {self.truth.n_edges} true",
            f"{'':<12}{'precision':>10}{'recall':>8}{'F1':>8}",
        ]
        rates = {"skeleton": self.skeleton} | (
            {} if self.level == "undirected" else {"arrowheads": self.arrows}
        )
        lines += [f"{name:<12}{r.precision:>10.3f}{r.recall:>8.3f}{r.f1:>8.3f}" for name, r in rates.items()]
        classes = f" ({self.cpdag_shd} between their classes)" if self.level == "dag" else ""
        marks = f" ({self.mark_distance} marks differ)" if self.level == "pag" else ""
        lines.append(f"SHD {self.shd}{classes}{marks}: {self._counted()}")
        if (told := self._sid_told()) is not None:
            lines.append(told)
        for kind_of in ("missing", "extra", "reversed", "reoriented"):
            edges = [d for d in self.differences if d.kind == kind_of]
            if edges:
                shown = ", ".join(
                    (
                        d.learned
                        if d.truth is None
                        else d.truth
                        if d.learned is None
                        else f"{d.learned} for {d.truth}"
                    )
                    or ""
                    for d in edges[:FEW]
                )
                lines.append(
                    f"{kind_of}: {shown}" + (f", and {len(edges) - FEW} more" if len(edges) > FEW else "")
                )
        return "\n".join(lines)

    def _counted(self) -> str:
        turned = len(self.reversed)
        other = len(self.reoriented) - turned
        told = [f"{len(self.missing)} missing", f"{len(self.extra)} extra"]
        if self.level != "undirected":
            told.append(f"{turned} reversed")
        return ", ".join(told + ([f"{other} with other marks"] if other else []))

    def _sid_told(self) -> str | None:
        try:
            found = self.sid
        except InvalidArgument:
            return None
        except TooLarge:
            return "SID: the class is too large"
        n = len(self.nodes)
        value = f"{found}" if isinstance(found, int) else f"between {found.lower} and {found.upper}"
        return f"SID {value} of {n * (n - 1)} effects wrong"

    def _shared(self) -> list[Pair]:
        learned, truth = self.edge_marks
        return [pair for pair in truth if pair in learned]

    def _turned(self, pair: Pair) -> bool:
        mine, true = self.edge_marks[0][pair], self.edge_marks[1][pair]
        return mine == {(b, a) for a, b in true} and all({a, b} == {Mark.TAIL, Mark.ARROW} for a, b in true)


def compare_graphs(learned: Any, truth: Any) -> GraphComparison:
    """Compare a learned graph with the true one.

    Parameters
    ----------
    learned, truth
        A `DAG`, `MixedGraph` or `UndirectedGraph`, or what has one as its `graph`: a model, a `LearnedStructure`. Both over
        the same nodes. If one is a DAG and the other a CPDAG, the classes are compared.

    Returns
    -------
    GraphComparison

    Raises
    ------
    InvalidArgument
        If the nodes differ, or the graphs are of kinds that cannot be compared.

    Examples
    --------
    >>> truth = DAG([("rain", "wet"), ("sprinkler", "wet")])
    >>> print(compare_graphs(DAG([("wet", "rain"), ("sprinkler", "wet")]), truth))
    two directed graphs over 3 nodes: 2 edges learned, 2 true
                 precision  recall      F1
    skeleton         1.000   1.000   1.000
    arrowheads       0.500   0.500   0.500
    SHD 1 (2 between their classes): 0 missing, 0 extra, 1 reversed
    SID 3 of 6 effects wrong
    reversed: wet --> rain for rain --> wet
    """
    given = _as_graph(learned, "learned"), _as_graph(truth, "truth")
    _check_nodes(*given)
    kinds = {_kind(g) for g in given}
    if "undirected" in kinds and len(kinds) > 1:
        raise InvalidArgument(
            "an undirected graph is compared with an undirected one; give the other's .skeleton() or .moral_graph()"
        )
    if kinds == {"dag", "pag"}:
        raise InvalidArgument(
            "a partial ancestral graph is compared with one; that of a DAG is "
            "mk.learn_structure(method='fci', test=mk.ci_tests.Oracle(dag, latent=[...])).graph"
        )
    level: Level = "pag" if "pag" in kinds else "cpdag" if "cpdag" in kinds else "dag"
    if kinds == {"undirected"}:
        level = "undirected"
    mine, true = (_as_cpdag(g) if level == "cpdag" and isinstance(g, DAG) else g for g in given)
    return GraphComparison(mine, true, level, given)


def shd(a: Any, b: Any) -> int:
    """Return the structural Hamming distance: the number of pairs of nodes whose edges differ.

    Parameters
    ----------
    a, b
        Two graphs as in `compare_graphs`; their order does not matter.

    Examples
    --------
    >>> chain = DAG([("a", "b"), ("b", "c")])
    >>> shd(chain, DAG([("b", "a"), ("b", "c")])), shd(cpdag(chain), DAG([("b", "a"), ("b", "c")]))
    (1, 0)
    """
    return compare_graphs(a, b).shd


def sid(learned: Any, truth: Any) -> int | SIDBounds:
    """Return the structural intervention distance: for how many pairs (i, j) the effect of i on j is wrong.

    Parameters
    ----------
    learned
        A DAG, or a CPDAG, for which the bounds over its class are returned; or what has one as its `graph`.
    truth
        The true DAG, or what has it as its `graph`.

    Examples
    --------
    >>> truth = DAG([("a", "b"), ("b", "c")])
    >>> sid(DAG([("a", "b"), ("c", "b")]), truth), sid(cpdag(truth), truth)
    (3, SIDBounds(lower=0, upper=6))
    """
    mine, true = _as_graph(learned, "learned"), _as_graph(truth, "truth")
    _check_nodes(mine, true)
    if not isinstance(true, DAG):
        raise InvalidArgument("the structural intervention distance needs a DAG as the truth")
    if isinstance(mine, DAG):
        return intervention_distance(mine, true)
    if isinstance(mine, UndirectedGraph) or _kind(mine) != "cpdag":
        raise InvalidArgument("the structural intervention distance is for a learned DAG or CPDAG")
    try:
        extend(mine)
    except InvalidGraph as error:
        raise InvalidArgument(f"the learned graph stands for no directed graph: {error}") from None
    return intervention_bounds(mine, true)


def _as_graph(given: Any, what: str) -> Graph:
    graph = given
    if not isinstance(given, DAG | MixedGraph | UndirectedGraph):
        known = getattr(
            given, "equivalence_class", None
        )  # of a network that is one member of a learned class
        graph = getattr(given, "graph", None) if known is None else known
    if isinstance(graph, DAG | MixedGraph | UndirectedGraph):
        return graph
    raise InvalidArgument(
        f"{what} is a DAG, MixedGraph or UndirectedGraph, or a model with one, not {type(given).__name__}"
    )


def _check_nodes(learned: Graph, truth: Graph) -> None:
    mine, true = set(learned.nodes), set(truth.nodes)
    for where, others in (("the learned graph", mine - true), ("the true graph", true - mine)):
        if others:
            rest = f" and {len(others) - 1} more" if len(others) > 1 else ""
            raise InvalidArgument(f"both graphs need the same nodes; only {where} has {min(others)!r}{rest}")


def _kind(graph: Graph) -> Level:
    if isinstance(graph, DAG):
        return "dag"
    if isinstance(graph, UndirectedGraph):
        return "undirected"
    plain = graph.is_simple() and all(e[2] is Mark.TAIL and e[3] is not Mark.CIRCLE for e in graph.edges)
    return "cpdag" if plain else "pag"


def _as_cpdag(graph: Graph) -> MixedGraph:
    assert isinstance(graph, DAG)
    return cpdag(graph)


def _ends(graph: Graph, number: dict[str, int]) -> dict[Pair, _Ends]:
    """Return the marks of each pair of adjacent nodes, the pair in the order of the true graph."""
    if isinstance(graph, MixedGraph):
        edges = graph.edges
    else:
        head = Mark.ARROW if isinstance(graph, DAG) else Mark.TAIL
        edges = [(a, b, Mark.TAIL, head) for a, b in graph.edges]
    found: dict[Pair, set[tuple[Mark, Mark]]] = {}
    for a, b, at_a, at_b in edges:
        if number[a] > number[b]:
            a, b, at_a, at_b = b, a, at_b, at_a
        found.setdefault((a, b), set()).add((at_a, at_b))
    return {pair: frozenset(marks) for pair, marks in found.items()}


def _directed(pair: Pair, ends: _Ends) -> Pair:
    """Return a pair from tail to head where the edge has one, as it is otherwise."""
    turned = all(at_a is Mark.ARROW and at_b is not Mark.ARROW for at_a, at_b in ends)
    return (pair[1], pair[0]) if turned else pair


def _text(pair: Pair, ends: _Ends | None) -> str | None:
    if ends is None:
        return None
    a, b = pair
    turned = _directed(pair, ends) != pair
    edges = [(b, a, y, x) if turned else (a, b, x, y) for x, y in ends]
    return " and ".join(sorted(edge_string(e) for e in edges))


def _heads(edges: dict[Pair, _Ends]) -> set[Pair]:
    """Collect (a, b) for each arrowhead at b on an edge between a and b."""
    found = set()
    for (a, b), ends in edges.items():
        for at_a, at_b in ends:
            if at_b is Mark.ARROW:
                found.add((a, b))
            if at_a is Mark.ARROW:
                found.add((b, a))
    return found
