"""How hard exact inference is, read off a model's graph: elimination orders, treewidth, junction trees.

Exact engines work on the *moral graph*, in which all variables of a factor (a node and its parents) are joined.
Eliminating the variables one by one joins what is left around each; the largest group that appears decides the cost.
Numbers in tables play no role here, so networks without tables answer too.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, prod
from typing import Any, Literal

from markovia.errors import UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.evidence import read_evidence
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.graphs.triangulation.chordal import is_chordal
from markovia.graphs.triangulation.elimination import Heuristic, check_heuristic, eliminate
from markovia.graphs.triangulation.junction_tree import junction_tree
from markovia.graphs.triangulation.treewidth import exact_treewidth
from markovia.inference.choosing.auto import kernels_loaded, kernels_on_disk
from markovia.inference.exact.calibrated_tree import CliqueTree
from markovia.models.graphical.arguments import list_of_names
from markovia.models.graphical.base import GraphicalModel
from markovia.runtime.keyword_advice import guided

OrderHeuristic = Heuristic | Literal["auto"]
HEURISTICS: tuple[Heuristic, ...] = ("min-fill", "weighted-min-fill", "min-weight", "min-degree")
LARGE = 500
"""Variables from which the compiled search is worth loading, if it was compiled before."""


class ExactCostVerbs(GraphicalModel):
    """Looking at what exact inference does."""

    @guided
    def treewidth(self, exact: bool = False) -> int:
        """Return the width of the narrowest elimination order found: an upper bound on the treewidth.

        The width of an order is the size of the largest clique that it creates, minus one. Finding the best order is
        NP-hard; greedy heuristics are tried, and the compiled search if it is loaded. The answer is the treewidth
        itself if the (moral) graph is chordal, in particular for trees and polytrees.

        Parameters
        ----------
        exact
            Prove the answer. This searches sets of variables and is for graphs that are small, or that the rules for
            safe eliminations make small.

        Raises
        ------
        TooLarge
            If the proof would take too many steps; the message has the bounds found.

        Examples
        --------
        >>> import markovia as mk
        >>> mk.examples.asia().treewidth()
        2
        >>> mk.generators.ising_grid(4, 4, coupling=0.5).treewidth(exact=True)
        4
        """
        graph = self._moral()
        if not len(graph):
            return 0
        width = min(_width(eliminate(_neighbours(graph), h)) for h in ("min-fill", "min-degree"))
        if width > 1 and _compiled(graph):
            width = min(width, _width_of(graph, _searched(graph.edges, graph.nodes, {})))
        return exact_treewidth(graph, at_most=width) if exact else width

    @guided
    def elimination_order(
        self,
        heuristic: OrderHeuristic = "auto",
        given: Mapping[str, Any] | str | Iterable[str] | None = None,
    ) -> list[str]:
        """Return an order in which to eliminate the variables, for `VariableElimination(order=...)` and the like.

        Parameters
        ----------
        heuristic
            `"min-degree"`, `"min-fill"`, `"min-weight"` (the smallest table), `"weighted-min-fill"`, or `"auto"`: the
            order with the smallest total of tables. If compiled kernels are loaded, or if the model is large and
            they were compiled before, that is the order of the junction tree engine's search; otherwise it is the
            best of the four. Name a heuristic for an order that is the same in every process.
        given
            Evidence as in `query`, or names of observed variables. What is fixed to a state needs no elimination.

        Examples
        --------
        >>> import markovia as mk
        >>> mk.examples.sprinkler().elimination_order("min-fill", given={"wet": "yes"})
        ['cloudy', 'sprinkler', 'rain']
        """
        check_heuristic(heuristic, ["auto"])
        observed = self._fixed(given)
        graph = self._moral()
        if observed:
            graph.remove_nodes(observed)
        if heuristic == "auto" and _compiled(graph):
            scopes = [[n for n in scope if n in graph] for scope in self._scopes()]
            return _searched(scopes, graph.nodes, self._sizes())
        return _greedy(graph, heuristic, self._sizes())

    @guided
    def junction_tree(
        self, heuristic: OrderHeuristic = "auto", order: Sequence[str] | None = None
    ) -> CliqueTree:
        """Return the junction tree of the model's (moral) graph: maximal cliques, joined along their separators.

        The tree has the running intersection property: every variable sits on a connected part of it. It is a maximum
        spanning tree of the cliques by the sizes of their intersections. Parts of the model that are not connected are
        joined by empty separators.

        Parameters
        ----------
        heuristic
            How to triangulate, as in `elimination_order`. A chordal graph is taken as it is.
        order
            An elimination order of all variables to use instead.

        Returns
        -------
        CliqueTree
            It has `width`, `cliques`, `edges`, `separators`, `total_entries()` and `plot()`; its `calibrate(given)` passes
            the messages and shows them with all beliefs.

        Examples
        --------
        >>> import markovia as mk
        >>> tree = mk.examples.sprinkler().junction_tree()
        >>> tree.cliques, tree.separators
        ((('cloudy', 'sprinkler', 'rain'), ('sprinkler', 'rain', 'wet')), (('sprinkler', 'rain'),))
        >>> tree.width, tree.total_entries()
        (2, 16)
        """
        check_heuristic(heuristic, ["auto"])
        graph, sizes = self._moral(), self._sizes()
        if order is not None:
            order = list_of_names(order, "order=")
            for name in order:
                self.variable(name)
        elif heuristic == "auto" and not is_chordal(graph):
            order = self.elimination_order()
        tree = junction_tree(
            graph, "min-fill" if heuristic == "auto" else heuristic, order=order, weights=sizes, states=sizes
        )
        if not tree.has_running_intersection():
            raise AssertionError("the running intersection property does not hold")
        return CliqueTree(tree.cliques, tree.edges, tree.separators, sizes, self._problem)

    # -- inside --------------------------------------------------------------------------------------------------

    def _sizes(self) -> dict[str, int]:
        number = next((n for n, v in self._variables.items() if isinstance(v, Quantity)), None)
        if number is not None:
            raise UnsupportedModel(
                f"clique trees and their costs are of tables, and {number!r} is a number that has no states; query() needs "
                "none, and triangulations of the graph alone are in mk.graphs"
            )
        return {n: len(v) for n, v in self._variables.items()}

    def _fixed(self, given: Mapping[str, Any] | str | Iterable[str] | None) -> list[str]:
        if given is None or isinstance(given, Mapping):
            return [n for n, f in read_evidence(self._variables, given).items() if f.hard]
        names = list(dict.fromkeys(list_of_names(given, "given=")))
        for name in names:
            self.variable(name)
        return names


def _greedy(graph: UndirectedGraph, heuristic: OrderHeuristic, sizes: Mapping[str, int]) -> list[str]:
    """Return the order of one heuristic, or the best of all of them by the total of its tables."""
    names = graph.nodes
    weights = [sizes[n] for n in names]
    best: list[int] = []
    least = inf
    for kind in HEURISTICS if heuristic == "auto" else (heuristic,):
        steps = eliminate(_neighbours(graph), kind, weights)
        total = sum(weights[v] * prod([weights[u] for u in around]) for v, around in steps)
        if total < least:
            best, least = [v for v, _ in steps], total
    return [names[v] for v in best]


def _neighbours(graph: UndirectedGraph) -> list[set[int]]:
    number = {n: i for i, n in enumerate(graph)}
    return [{number[u] for u in graph.neighbors(n)} for n in graph]


def _width(steps: Iterable[tuple[int, set[int]]]) -> int:
    return max(len(around) for _, around in steps)


def _width_of(graph: UndirectedGraph, order: Sequence[str]) -> int:
    return junction_tree(graph, order=order).width


def _compiled(graph: UndirectedGraph) -> bool:
    """Say whether the compiled search is at hand: looking never waits for a compiler."""
    return len(graph) > 0 and (kernels_loaded() or (len(graph) >= LARGE and kernels_on_disk()))


def _searched(scopes: Iterable[Sequence[str]], names: Sequence[str], sizes: Mapping[str, int]) -> list[str]:
    """Return the order that the compiled search finds; two states a variable where not given."""
    from markovia.inference.exact.tree_plan import TreeStructure, plan_for

    ids = {n: i for i, n in enumerate(names)}
    structure = TreeStructure([sizes.get(n, 2) for n in names], [[ids[n] for n in scope] for scope in scopes])
    found: list[int] = plan_for(structure).order.tolist()
    return [names[v] for v in found]
