"""The storage of a directed network: variables, parents, tables, and the graph that is kept along."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from markovia.errors import IncompleteModel, InvalidGraph, NotIdentifiable
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.inference.problem import Piece
from markovia.models.graphical.base import GraphicalModel

if TYPE_CHECKING:
    from markovia.learning.tables.fit_record import Fit


class DirectedModel(GraphicalModel):
    """Variables with parents and conditional distributions; see `BayesianNetwork`."""

    _parents: dict[str, tuple[str, ...]]
    _tables: dict[str, Conditional | None]
    _graph: DAG | None
    _removed: set[str]
    _assumed: set[str]
    """Variables whose states nobody stated: a fit reads them off the data."""
    _fit: "tuple[Fit, dict[str, Conditional | None]] | None" = None
    """What the last fit did, and the tables it left."""
    _unsettled: "tuple[frozenset[frozenset[str]], dict[str, frozenset[str]]] | None" = None
    """The pairs whose edge the data left without a direction, and the parents of every node when that was said."""

    @property
    def fit_(self) -> "Fit | None":
        """What the last fit did; None before the first, and after an edit, since the tables are then others."""
        if self._fit is None or self._fit[1].keys() != self._tables.keys():
            return None
        record, made = self._fit
        return record if all(table is made[name] for name, table in self._tables.items()) else None

    @property
    def graph(self) -> DAG:
        """The directed acyclic graph (a copy: edit the network, not its graph)."""
        return self._dag().copy()

    @property
    def equivalence_class(self) -> MixedGraph | None:
        """The class of graphs that the data cannot tell apart, where the network is one member of it; else None.

        A learned CPDAG leaves it with the network that is fitted to it: edges without an arrow are those whose direction
        is only the member's. Answers about probabilities are the same for all members; `do`, `counterfactual` and
        `markovia.causal` use the class, and refuse what differs among its members. An edit of the edges takes all
        directions as they stand; so does setting None.

        Raises
        ------
        InvalidGraph
            If a class is set that the network's graph is no member of.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork("smoke->lung; smoke->bronc", tables="random", seed=0)
        >>> bn.equivalence_class = mk.graphs.MixedGraph(["smoke --- lung", "smoke --- bronc"])
        >>> bn.do(smoke=1)
        Traceback (most recent call last):
        ...
        markovia.errors.NotIdentifiable: the data leave the edges smoke --- lung, smoke --- bronc without a direction, ...
        """
        pairs = self._unsettled_pairs()
        if not pairs:
            return None
        graph = MixedGraph.from_dag(self._dag())
        for a, b in self.edges:
            if frozenset((a, b)) in pairs:
                graph.set_marks(a, b, Mark.TAIL, Mark.TAIL)
        return graph

    @equivalence_class.setter
    def equivalence_class(self, graph: MixedGraph | None) -> None:
        if graph is None:
            self._unsettled = None
            return
        loose = frozenset(frozenset(pair) for pair in graph.undirected_edges())
        own = {*self.edges}
        settled = {edge for edge in own if frozenset(edge) not in loose}
        if (
            set(graph.nodes) != set(self._variables)
            or set(graph.directed_edges()) != settled
            or len(graph.directed_edges()) + len(loose) != graph.n_edges
            or len(loose) + len(settled) != len(own)
        ):
            raise InvalidGraph("the network is no member of this class: nodes, edges or directions differ")
        self._leave_unsettled(loose)

    def require_one_graph(self, question: str) -> None:
        """Refuse a question that the members of the network's equivalence class may answer differently."""
        if (known := self.equivalence_class) is not None:
            raise NotIdentifiable(without_direction(known.undirected_edges(), question))

    @property
    def edges(self) -> list[tuple[str, str]]:
        """All edges (parent, child)."""
        return [(q, n) for n in self._variables for q in self._parents[n]]

    @property
    def has_quantities(self) -> bool:
        """Whether some variable is a number instead of one of some states."""
        return Quantity in map(type, self._variables.values())

    @property
    def normalised(self) -> bool:
        """A Bayesian network sums to one, unless potentials weigh it."""
        return not self._potentials

    def parents(self, name: str) -> list[str]:
        """Return a variable's parents, in the order of its table's axes."""
        self.variable(name)
        return list(self._parents[name])

    def children(self, name: str) -> list[str]:
        """Return a variable's children."""
        self.variable(name)
        return self._dag().children(name)

    def __getitem__(self, name: str) -> Conditional:
        """Return a node's conditional distribution."""
        self.variable(name)
        table = self._tables[name]
        if table is None:
            raise IncompleteModel(
                f"{name!r} has no table yet; use replace({name!r}, p=...) or fill('uniform')"
            )
        return table

    def has_table(self, name: str) -> bool:
        """Say whether a node has its distribution."""
        self.variable(name)
        return self._tables[name] is not None

    def pieces(self) -> list[Piece]:
        """Return every node's conditional distribution."""
        tables = self._tables.values()
        if None in tables:
            missing = [n for n, t in self._tables.items() if t is None]
            raise IncompleteModel(
                f"{len(missing)} of {len(self)} variables have no table yet ({', '.join(map(repr, missing[:4]))}"
                f"{', ...' if len(missing) > 4 else ''}); use replace(), fill('uniform') or fill('random')"
            )
        return [*tables, *self._potentials.values()]  # type: ignore[list-item]

    def unstated(self) -> set[str]:
        """Return the variables whose states nobody stated, neither by name nor by a table: a fit reads them off the data."""
        used = {q for n, t in self._tables.items() if t is not None for q in (n, *self._parents[n])}
        return self._assumed - used

    def install(self, variables: Mapping[str, Variable], tables: Mapping[str, Conditional]) -> None:
        """Take over learned variables, all of them, and learned distributions at once; other tables stay."""
        if any({*t.parent_names} != {*self._parents[n]} for n, t in tables.items()):
            self._graph, self._removed = None, set()
        self._variables = dict(variables)
        self._tables = {**self._tables, **tables}
        # a number lists its parents with states first
        self._parents = {**self._parents, **{n: t.parent_names for n, t in tables.items()}}
        self._assumed = set()

    # -- inside --------------------------------------------------------------------------------------------------

    def _leave_unsettled(self, pairs: Iterable[frozenset[str]]) -> None:
        """Remember pairs of neighbours whose edge has no direction, for the graph as it is now."""
        kept = frozenset(pairs)
        self._unsettled = (kept, {n: frozenset(q) for n, q in self._parents.items()}) if kept else None

    def _unsettled_pairs(self) -> frozenset[frozenset[str]]:
        """Return these pairs; none once an edit has changed the parents of a node, as the graph is then another."""
        if self._unsettled is None:
            return frozenset()
        pairs, before = self._unsettled
        if any(n in before and before[n] != frozenset(q) for n, q in self._parents.items()):
            return frozenset()
        return frozenset(pair for pair in pairs if pair <= self._variables.keys())

    def _dag(self) -> DAG:
        """Return the graph of the variables; shared, so only the edits above may change it."""
        if self._graph is None:
            self._graph = DAG.from_parents(self._parents)
        elif self._removed:
            self._graph.remove_nodes(self._removed)
        self._removed = set()
        return self._graph

    def _moral(self) -> UndirectedGraph:
        return self._dag().moral_graph()

    def _scopes(self) -> list[list[str]]:
        return [[*self._parents[n], n] for n in self._variables]


def without_direction(edges: Sequence[tuple[str, str]], question: str) -> str:
    """Say which edges have no direction, and what cannot be answered for it."""
    shown = ", ".join(f"{a} --- {b}" for a, b in edges[:4]) + (", ..." if len(edges) > 4 else "")
    return (
        f"the data leave the edge{'s' * (len(edges) > 1)} {shown} without a direction, and {question}; "
        "learn with required= directions, or set equivalence_class = None to take the network's own"
    )
