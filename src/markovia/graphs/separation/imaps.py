"""I-maps: graphs that state only independencies which hold, and as many of them as possible.

What holds is known to an *oracle*: any callable (x, y, given) -> bool on frozensets of names, or anything with a
method `independent`, such as a joint table or a model; statements may stand in for it. A graph is an
I-map of the oracle if all it states is true, a minimal one if no edge can go, and a perfect map (P-map) if
it states exactly what is true. A minimal directed I-map depends on the order of the variables and asks up
to 2^(n-1) questions for the last of them. References: Koller and Friedman (2009), sections 3.4 and 4.3.3;
Verma and Pearl (1990).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from markovia.errors import InvalidArgument
from markovia.graphs.kinds.chain_graph import ChainGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.graphs.kinds.named import Names, as_names, need
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.graphs.separation.independencies import Independence, all_independencies, local_independencies
from markovia.graphs.separation.semigraphoid import closure
from markovia.graphs.separation.separation import d_separated, separated
from markovia.runtime.shown import InNotebooks

Oracle: TypeAlias = Callable[[frozenset[str], frozenset[str], frozenset[str]], bool]


@runtime_checkable
class KnowsIndependence(Protocol):
    """Anything that can say what is independent in it: a joint table, a Gaussian, a model."""

    def independent(self, x: list[str], y: list[str], given: list[str]) -> bool:
        """Say whether x and y are independent given the rest."""


Truth: TypeAlias = Oracle | KnowsIndependence | Iterable[Independence]


@dataclass(frozen=True)
class GraphOracle:
    """An oracle that answers by separation in a graph.

    Examples
    --------
    >>> oracle = GraphOracle(DAG([("a", "c"), ("b", "c")]))
    >>> oracle(frozenset("a"), frozenset("b"), frozenset())
    True
    """

    graph: DAG | UndirectedGraph | MixedGraph

    def __post_init__(self) -> None:
        need(self.graph, DAG, UndirectedGraph, MixedGraph)

    def __call__(self, x: frozenset[str], y: frozenset[str], given: frozenset[str]) -> bool:
        """Tell whether x and y are separated by `given`."""
        if isinstance(self.graph, DAG):
            return d_separated(self.graph, x, y, given)
        if isinstance(self.graph, UndirectedGraph):
            return separated(self.graph, x, y, given)
        if isinstance(self.graph, ChainGraph):
            return self.graph.lwf_separated(x, y, given)
        return self.graph.m_separated(x, y, given)


class StatementOracle:
    """An oracle that answers yes to what follows from a list of statements by the semi-graphoid axioms.

    Parameters
    ----------
    statements
        What is known to hold.
    intersection, composition
        Further axioms, as in `closure`.

    Examples
    --------
    >>> oracle = StatementOracle([Independence("a", ["b", "c"])])
    >>> oracle(frozenset("a"), frozenset("b"), frozenset("c"))
    True
    """

    def __init__(
        self, statements: Iterable[Independence], *, intersection: bool = False, composition: bool = False
    ) -> None:
        self.statements = closure(statements, intersection=intersection, composition=composition)

    def __call__(self, x: frozenset[str], y: frozenset[str], given: frozenset[str]) -> bool:
        """Tell whether the independence of x and y given `given` follows from the statements."""
        return Independence(x, y, given) in self.statements


@dataclass(frozen=True)
class MinimalIMap(InNotebooks):
    """A minimal I-map, and the questions that were asked to find it with their answers."""

    graph: DAG
    queries: list[tuple[Independence, bool]]


def minimal_imap(oracle: Truth, order: Sequence[str]) -> MinimalIMap:
    """Build the minimal directed I-map for an order of the variables.

    Each variable gets as parents a smallest set of earlier variables given which it is independent of the
    other earlier ones. Sets are tried by increasing size.

    Parameters
    ----------
    oracle
        Tells which independencies hold.
    order
        The variables; edges go from earlier to later ones.

    Returns
    -------
    MinimalIMap
        The graph and the log of questions.

    Examples
    --------
    >>> result = minimal_imap(GraphOracle(DAG([("x1", "x3"), ("x2", "x3")])), ["x3", "x2", "x1"])
    >>> result.graph.edges
    [('x3', 'x2'), ('x3', 'x1'), ('x2', 'x1')]
    >>> for question, answer in result.queries:
    ...     print(question, answer)
    x2 ⊥ x3 False
    x1 ⊥ {x2, x3} False
    x1 ⊥ x2 | x3 False
    x1 ⊥ x3 | x2 False
    """
    oracle = _oracle(oracle)
    names = _distinct(order)
    queries: list[tuple[Independence, bool]] = []
    parents: dict[str, list[str]] = {}
    for k, name in enumerate(names):
        earlier = names[:k]
        parents[name] = earlier
        for chosen in (c for size in range(k) for c in combinations(earlier, size)):
            question = Independence(name, set(earlier).difference(chosen), chosen)
            answer = bool(oracle(frozenset([name]), frozenset(earlier).difference(chosen), frozenset(chosen)))
            queries.append((question, answer))
            if answer:
                parents[name] = list(chosen)
                break
    return MinimalIMap(DAG.from_parents(parents), queries)


def minimal_undirected_imap(
    oracle: Truth, names: Sequence[str], method: Literal["pairwise", "blanket"] = "pairwise"
) -> UndirectedGraph:
    """Build the minimal undirected I-map of a positive distribution.

    Parameters
    ----------
    oracle
        Tells which independencies hold.
    names
        The variables.
    method
        `"pairwise"`: join two variables unless they are independent given all others.
        `"blanket"`: join each variable to a smallest set given which it is independent of all others.
        Both give the same graph if the intersection axiom holds, as in positive distributions; without it the
        result need not be an I-map.

    Examples
    --------
    >>> chain = GraphOracle(DAG([("a", "b"), ("b", "c")]))
    >>> minimal_undirected_imap(chain, ["a", "b", "c"], method="blanket").edges
    [('a', 'b'), ('b', 'c')]
    """
    oracle = _oracle(oracle)
    names = _distinct(names)
    everything = frozenset(names)
    graph = UndirectedGraph(nodes=names)
    if method == "pairwise":
        for a, b in combinations(names, 2):
            if not oracle(frozenset([a]), frozenset([b]), everything - {a, b}):
                graph.add_edge(a, b)
        return graph
    if method == "blanket":
        for name in names:
            graph.add_edges(
                (name, other) for other in _blanket(oracle, name, [n for n in names if n != name])
            )
        return graph
    raise InvalidArgument(f"unknown method {method!r}; use 'pairwise' or 'blanket'")


def is_imap(graph: DAG | UndirectedGraph, truth: Truth) -> bool:
    """Decide whether every independence that the graph states holds.

    Parameters
    ----------
    graph
        For a DAG its local independencies are asked, which imply the others in any distribution. For an
        undirected graph they need not, so all 2^nodes separators are looked at.
    truth
        An oracle, a joint table or a model, or statements whose semi-graphoid closure is what holds.

    Examples
    --------
    >>> is_imap(DAG([("a", "b")], nodes=["c"]), [Independence("c", ["a", "b"])])
    True
    >>> is_imap(DAG([("a", "b")], nodes=["c"]), [Independence("c", "a")])
    False
    """
    need(graph, DAG, UndirectedGraph)
    oracle = _oracle(truth)
    if isinstance(graph, DAG):
        return all(oracle(s.x, s.y, s.given) for s in local_independencies(graph))
    everything = frozenset(graph.nodes)
    for size in range(max(len(graph) - 1, 0)):
        for given in combinations(graph.nodes, size):
            rest = everything.difference(given)
            parts = graph.subgraph(rest).connected_components()
            # a part against all others implies every coarser and finer split
            if len(parts) > 1 and not all(
                oracle(frozenset(part), rest.difference(part), frozenset(given)) for part in parts
            ):
                return False
    return True


def is_minimal_imap(graph: DAG | UndirectedGraph, truth: Truth) -> bool:
    """Decide whether the graph is an I-map and stops being one when any edge is removed.

    Parameters
    ----------
    graph, truth
        As for `is_imap`.

    Examples
    --------
    >>> is_minimal_imap(DAG([("a", "b")]), [Independence("a", "b")])
    False
    """
    oracle = _oracle(truth)
    if not is_imap(graph, oracle):
        return False
    for a, b in graph.edges:
        smaller = graph.copy()
        smaller.remove_edge(a, b)
        if is_imap(smaller, oracle):
            return False
    return True


def is_perfect_map(graph: DAG | UndirectedGraph, truth: Truth, names: Names | None = None) -> bool:
    """Decide whether the graph states exactly the independencies that hold.

    Parameters
    ----------
    graph, truth
        As for `is_imap`; all 4^nodes triples of sets are compared.
    names
        The variables that `truth` speaks of; those of the graph if not given.

    Examples
    --------
    >>> collider = DAG([("a", "c"), ("b", "c")])
    >>> is_perfect_map(collider, GraphOracle(collider)), is_perfect_map(collider, [])
    (True, False)
    """
    need(graph, DAG, UndirectedGraph)
    if names is not None and set(as_names(names)) != set(graph.nodes):
        return False
    oracle = _oracle(truth)
    stated = set(all_independencies(graph))
    return all(
        (question in stated) == bool(oracle(question.x, question.y, question.given))
        for question in all_independencies(UndirectedGraph(nodes=graph.nodes))
    )


def independencies_of(truth: Truth, names: Names) -> list[Independence]:
    """List every independence that holds between the named variables: I(P) of a distribution.

    Parameters
    ----------
    truth
        As for `is_imap`.
    names
        A few variables; all 4^names triples of sets are asked about.

    Examples
    --------
    >>> for statement in independencies_of(GraphOracle(DAG([("a", "c"), ("b", "c")])), ["a", "b", "c"]):
    ...     print(statement)
    a ⊥ b
    """
    oracle = _oracle(truth)
    questions = all_independencies(UndirectedGraph(nodes=_distinct(names)))
    return [q for q in questions if oracle(q.x, q.y, q.given)]


def _blanket(oracle: Oracle, name: str, others: list[str]) -> Sequence[str]:
    for size in range(len(others)):
        for chosen in combinations(others, size):
            if oracle(frozenset([name]), frozenset(others).difference(chosen), frozenset(chosen)):
                return chosen
    return others


def _oracle(truth: Truth) -> Oracle:
    if isinstance(truth, KnowsIndependence):
        known = truth
        return lambda x, y, given: known.independent(sorted(x), sorted(y), sorted(given))
    return truth if callable(truth) else StatementOracle(truth)


def _distinct(names: Names) -> list[str]:
    listed = as_names(names)
    if len(set(listed)) < len(listed):
        raise InvalidArgument(f"every variable is listed once, got {', '.join(map(str, listed))}")
    return listed
