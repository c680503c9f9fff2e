"""The storage of a directed network: variables, parents, tables, and the graph that is kept along."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from markovia.errors import IncompleteModel
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.graphs.directed import DAG
from markovia.graphs.undirected import UndirectedGraph
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
    def edges(self) -> list[tuple[str, str]]:
        """All edges (parent, child)."""
        return [(q, n) for n in self._variables for q in self._parents[n]]

    @property
    def has_quantities(self) -> bool:
        """Whether some variable is a number instead of one of some states."""
        return Quantity in map(type, self._variables.values())

    @property
    def normalised(self) -> bool:
        """A Bayesian network sums to one."""
        return True

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
        return list(tables)  # type: ignore[arg-type]

    def unstated(self) -> set[str]:
        """Return the variables whose states nobody stated, neither by name nor by a table: a fit reads them off the data."""
        used = {q for n, t in self._tables.items() if t is not None for q in (n, *self._parents[n])}
        return self._assumed - used

    def install(self, variables: Mapping[str, Variable], tables: Mapping[str, Conditional]) -> None:
        """Take over learned variables, all of them, and learned distributions at once; other tables stay."""
        self._variables = dict(variables)
        self._tables = {**self._tables, **tables}
        # a number lists its parents with states first
        self._parents = {**self._parents, **{n: t.parent_names for n, t in tables.items()}}
        self._assumed = set()

    # -- inside --------------------------------------------------------------------------------------------------

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
