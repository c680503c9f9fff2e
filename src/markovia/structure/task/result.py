"""What structure learning returns: the graph, and how it was found."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from markovia.data.tables.row_sources import CodedTable
from markovia.errors import InvalidArgument
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.equivalence import cpdag, extend
from markovia.graphs.kinds.mixed import Mark, MixedGraph, edge_string
from markovia.graphs.kinds.plot_options import Highlight, Positions
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import pd
from markovia.runtime.shown import html_picture, html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 40
"""How many edges are printed."""
Graph = DAG | MixedGraph | UndirectedGraph


class SearchStep(NamedTuple):
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
class FoundGraph:
    """What one algorithm hands back; `LearnedStructure` says what the fields mean."""

    graph: Graph
    score: float | None = None
    path: list[SearchStep] = field(default_factory=list)
    tests: Sequence[TestMade] = field(default_factory=list)
    n_tests: int = 0
    separating_sets: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    weights: Array | None = None
    optimal: bool | None = None
    bound: float | None = None
    notes: list[str] = field(default_factory=list)
    details: Any = None


@dataclass(frozen=True, repr=False)
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
        What only this method has, as attributes: `found.details.families`, ...; None for nothing.
    """

    graph: Graph
    method: str
    score: float | None = None
    score_name: str | None = None
    test_name: str | None = None
    path: Sequence[SearchStep] = ()
    tests: Sequence[TestMade] = ()
    n_tests: int = 0
    separating_sets: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    weights: Array | None = None
    optimal: bool | None = None
    bound: float | None = None
    stopped: str | None = None
    seconds: float = 0.0
    notes: Sequence[str] = ()
    details: Any = None
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
        BayesianNetwork, MarkovNetwork or GaussianMarkovNetwork
            Columns of numbers become linear Gaussians, or a Gaussian field where the graph is undirected.
        """
        return ports.call("fit-structure", self, data, **settings)

    def compare(self, truth: Any) -> Any:
        """Compare with another graph or model; see `mk.graphs.compare_graphs`."""
        from markovia.graphs.comparison.comparison import compare_graphs

        return compare_graphs(self.graph, truth)

    def plot(
        self,
        *,
        ax: "Axes | None" = None,
        given: str | Iterable[str] | None = None,
        layout: Positions = "auto",
        highlight: Highlight = None,
        title: str = "",
        seed: int = 0,
        progress: bool | None = None,
    ) -> "Axes":
        """Draw the graph."""
        return ports.draw(
            "plot-graph",
            self.graph,
            ax=ax,
            given=given,
            layout=layout,
            highlight=highlight,
            title=title,
            seed=seed,
            progress=progress,
        )

    def path_frame(self) -> "pd.DataFrame":
        """Return the steps of the search as a table."""
        return pd.DataFrame(list(self.path), columns=list(SearchStep._fields))

    def test_frame(self) -> "pd.DataFrame":
        """Return the tests that were kept as a table."""
        return pd.DataFrame(list(self.tests), columns=list(TestMade._fields))

    def save(self, path: Any, format: str | None = None) -> None:  # noqa: A002
        """Write the graph to a file, without parameters; `fit().save(...)` writes a model.

        Parameters
        ----------
        path
            The file: `.json` keeps every graph, `.dagitty` those with directions.
        format
            The format's name where the suffix does not say it.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import markovia as mk
        >>> found = mk.learn_structure(mk.examples.sprinkler().sample(500, seed=1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "graph.dagitty"
        ...     found.save(file)
        ...     mk.load(file) == found.graph
        True
        """
        ports.call("save", self.graph, path, format=format)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the edges as a table: from, to, the edge as text, and its weight where the method has weights."""
        number = {name: i for i, name in enumerate(self.nodes)}
        rows = []
        for a, b, text in self._listed():
            row = {"from": a, "to": b, "edge": text}
            if self.weights is not None:
                i, j = number[a], number[b]
                row["weight"] = self.weights[i, j] if self.weights[i, j] else self.weights[j, i]
            rows.append(row)
        columns = ["from", "to", "edge", *(["weight"] if self.weights is not None else [])]
        return pd.DataFrame(rows, columns=columns)

    def _listed(self) -> list[tuple[str, str, str]]:
        """Return the edges as (a, b, text)."""
        if isinstance(self.graph, MixedGraph):
            return [(e[0], e[1], edge_string(e)) for e in self.graph.edges]
        sign = "---" if isinstance(self.graph, UndirectedGraph) else "-->"
        return [(a, b, f"{a} {sign} {b}") for a, b in self.graph.edges]

    @property
    def kind(self) -> str:
        """What kind of graph it is, in words."""
        if isinstance(self.graph, DAG):
            return "directed graph"
        if isinstance(self.graph, UndirectedGraph):
            return "undirected graph"
        marks = [(e[2], e[3]) for e in self.graph.edges]
        if any(Mark.CIRCLE in m or m == (Mark.ARROW, Mark.ARROW) for m in marks):
            return "partial ancestral graph"
        return "partially directed graph"

    def _summary(self) -> list[str]:
        by = f" ({self.score_name or self.test_name})" if self.score_name or self.test_name else ""
        nodes, edges = len(self.graph), self.n_edges
        lines = [
            f"{self.kind} with {nodes} node{'s' * (nodes != 1)} and {edges} edge{'s' * (edges != 1)}, "
            f"by {self.method}{by}"
        ]
        if self.score is not None:
            proof = ", proven the best" if self.optimal else ""
            lines.append(f"score {self.score:,.2f}{proof}")
        if self.n_tests:
            lines.append(f"{self.n_tests:,} tests")
        lines.append(f"{self.seconds:.3g} s" + (f", stopped early: {self.stopped}" if self.stopped else ""))
        return lines

    def __repr__(self) -> str:
        return f"<LearnedStructure: {self._summary()[0]}>"

    def __str__(self) -> str:
        listed = self._listed()
        lines = [self._summary()[0], *(f"  {text}" for _, _, text in listed[:SHOWN])]
        if len(listed) > SHOWN:
            lines.append(f"  ... and {len(listed) - SHOWN} more")
        lines.append("; ".join(self._summary()[1:]))
        lines.extend(f"note: {note}" for note in self.notes)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        listed = self._listed()
        first, *rest = self._summary()
        small = "; ".join([*rest, *self.notes])
        picture = html_picture(self, len(self.graph.nodes), "")
        return picture + html_table([], [[text] for _, _, text in listed], title=first, note=small)

    def __getstate__(self) -> dict[str, Any]:
        """Rows that are not in memory do not travel; `fit` then asks for them."""
        state = dict(self.__dict__)
        table = getattr(self.data, "table", None)
        if table is not None and not isinstance(table, CodedTable):
            state["data"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
