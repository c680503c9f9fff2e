"""What structure learning returns: the graph, and how it was found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from markovia import ports
from markovia.errors import InvalidArgument
from markovia.factors.factor import Array
from markovia.graphs.directed import DAG
from markovia.graphs.equivalence import cpdag, extend
from markovia.graphs.mixed import Mark, MixedGraph
from markovia.graphs.undirected import UndirectedGraph

if TYPE_CHECKING:
    import pandas as pd

Graph = DAG | MixedGraph | UndirectedGraph


class Step(NamedTuple):
    """One step of a search: what it did, the score after it, and when (seconds since the start)."""

    move: str
    score: float
    seconds: float


class TestMade(NamedTuple):
    """One test of conditional independence."""

    x: str
    y: str
    given: tuple[str, ...]
    p_value: float
    independent: bool


@dataclass
class Found:
    """What one algorithm hands back; `LearnedStructure` says what the fields mean."""

    graph: Graph
    score: float | None = None
    path: list[Step] = field(default_factory=list)
    tests: list[TestMade] = field(default_factory=list)
    n_tests: int = 0
    separating_sets: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    weights: Array | None = None
    optimal: bool | None = None
    bound: float | None = None
    notes: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LearnedStructure:
    """A graph learned from data, and how it was found.

    Attributes
    ----------
    graph
        A `DAG`; a `MixedGraph` where the data settle only a class of graphs (CPDAG, PAG); or an `UndirectedGraph`.
    method
        The algorithm's name.
    score, score_name
        The graph's score, larger is better, or None for methods without one.
    path
        The steps of the search, each with its score.
    tests, n_tests
        The tests of conditional independence that were made (those that were kept), and how many.
    separating_sets
        For each pair of variables that is not adjacent, what makes it independent. Both orders of a pair are keys.
    weights
        Weights of the edges where the method has them (`weights[i, j]` belongs to i -> j, in the order of `nodes`), or None.
    optimal, bound
        Whether the graph is proven the best, and the bound on any graph's score, where the method knows.
    stopped
        None, "time limit" or "interrupted": then the graph is the best that was found until then.
    seconds
        How long it took.
    notes
        What the reader should know, such as orientations that contradict each other.
    details
        What only this method has.
    """

    graph: Graph
    method: str
    score: float | None = None
    score_name: str | None = None
    test_name: str | None = None
    path: Sequence[Step] = ()
    tests: Sequence[TestMade] = ()
    n_tests: int = 0
    separating_sets: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    weights: Array | None = None
    optimal: bool | None = None
    bound: float | None = None
    stopped: str | None = None
    seconds: float = 0.0
    notes: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    data: Any = field(default=None, repr=False, compare=False)

    @property
    def nodes(self) -> list[str]:
        """The variables in the order of the data."""
        return self.graph.nodes

    @property
    def edges(self) -> list[Any]:
        """The graph's edges, as the graph lists them."""
        return list(self.graph.edges)

    @property
    def n_edges(self) -> int:
        """The number of edges."""
        return self.graph.n_edges

    @property
    def dag(self) -> DAG:
        """The graph, or one member of its class, as a directed graph."""
        if isinstance(self.graph, DAG):
            return self.graph
        if isinstance(self.graph, UndirectedGraph):
            raise InvalidArgument(f"{self.method} learned an undirected graph, which has no directions")
        if any(Mark.CIRCLE in (e[2], e[3]) or e[2] is e[3] is Mark.ARROW for e in self.graph.edges):
            raise InvalidArgument(
                f"{self.method} learned a partial ancestral graph; its hidden causes are in no directed graph over these "
                "variables"
            )
        return extend(self.graph)

    @property
    def cpdag(self) -> MixedGraph:
        """The class of graphs that say the same about independence."""
        if isinstance(self.graph, MixedGraph):
            return self.graph
        return cpdag(self.dag)

    @property
    def skeleton(self) -> UndirectedGraph:
        """Who is adjacent to whom."""
        return self.graph if isinstance(self.graph, UndirectedGraph) else self.graph.skeleton()

    def fit(self, data: Any = None, **settings: Any) -> Any:
        """Return a model with this graph, its parameters learned from the data.

        Parameters
        ----------
        data
            Rows; by default those that the graph was learned from.
        **settings
            Passed on to the model's `fit`.

        Returns
        -------
        BayesianNetwork or MarkovNetwork
        """
        return ports.call("fit-structure", self, data, **settings)

    def compare(self, truth: Any) -> Any:
        """Compare with another graph or model; see `mk.compare_graphs`."""
        from markovia.graphs.comparison import compare_graphs

        return compare_graphs(self.graph, truth)

    def plot(self, **options: Any) -> Any:
        """Draw the graph."""
        return ports.call("plot-graph", self.graph, **options)

    def path_frame(self) -> "pd.DataFrame":
        """Return the steps of the search as a table."""
        import pandas as pd

        return pd.DataFrame(list(self.path), columns=list(Step._fields))

    def test_frame(self) -> "pd.DataFrame":
        """Return the tests that were kept as a table."""
        import pandas as pd

        return pd.DataFrame(list(self.tests), columns=list(TestMade._fields))

    def __str__(self) -> str:
        kind = type(self.graph).__name__
        if isinstance(self.graph, MixedGraph):
            circles = any(Mark.CIRCLE in (e[2], e[3]) for e in self.graph.edges)
            kind = "partial ancestral graph" if circles else "partially directed graph"
        elif isinstance(self.graph, DAG):
            kind = "directed graph"
        else:
            kind = "undirected graph"
        by = f" ({self.score_name or self.test_name})" if self.score_name or self.test_name else ""
        lines = [f"{kind} with {len(self.graph)} nodes and {self.n_edges} edges, by {self.method}{by}"]
        if self.score is not None:
            proof = ", the best there is" if self.optimal else ""
            lines.append(f"score {self.score:.6g}{proof}")
        if self.n_tests:
            lines.append(f"{self.n_tests:,} tests")
        lines.append(f"{self.seconds:.3g} s" + (f", stopped early: {self.stopped}" if self.stopped else ""))
        lines.extend(self.notes)
        return "\n".join(lines)
