"""dagitty model strings (`.dagitty`): graphs for causal work, without numbers.

    dag {
      bb="0,0,1,1"
      smoke [exposure, pos="0.1,0.2"]
      cancer [outcome]
      {age sex} -> smoke -> tar -> cancer
      smoke <-> diet
    }

The language itself is read and written by `graphs/causal/text.py`; this is the file format on top of it.
"""

from markovia.errors import CycleError, UnsupportedModel, warn_user
from markovia.graphs.causal.text import graph_text, parse_graph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.factor_model import FactorModel
from markovia.runtime.source_text import shown


def read_dagitty(text: str, source: str | None = None) -> DAG | MixedGraph:
    """Read a dagitty model string.

    Parameters
    ----------
    text
        The model string.
    source
        The file's name, for errors.

    Returns
    -------
    DAG or MixedGraph
        A `DAG` if every edge is directed. Latent variables are ordinary nodes; `read_dagitty_roles` names them.

    Raises
    ------
    ParseError
        If the text is malformed, an edge joins a node to itself, or a graph of directed edges has a cycle.

    Examples
    --------
    >>> read_dagitty("dag { x -> y <- z }")
    DAG([('x', 'y'), ('z', 'y')])
    >>> read_dagitty("dag { x -> y ; x <-> y }")
    MixedGraph(['x --> y', 'x <-> y'])
    """
    return parse_graph(text, source, framed=True).graph


def read_dagitty_roles(text: str, source: str | None = None) -> dict[str, set[str]]:
    """Return the roles of the nodes of a dagitty model string.

    Returns
    -------
    dict
        From each node to the roles it has: "exposure", "outcome", "latent", "adjusted", "selected".

    Raises
    ------
    ParseError
        If the text is malformed.

    Examples
    --------
    >>> read_dagitty_roles("dag { x [exposure] u [latent] x -> y <- u }")
    {'x': {'exposure'}, 'u': {'latent'}, 'y': set()}
    """
    return dict(parse_graph(text, source, framed=True).roles)


def write_dagitty(model: object) -> str:
    """Write a graph, or the graph of a model, as a dagitty model string.

    The kind of graph is `dag` where the edges are directed or bidirected, `pdag` where they are directed or
    undirected, `mag` with all three, and `pag` with circles. An `UndirectedGraph` is read back as a
    `MixedGraph` of the same undirected edges.

    Raises
    ------
    UnsupportedModel
        If the object is neither a graph nor a model with one, or a name holds a NUL character.

    Warns
    -----
    UserWarning
        If a model has tables: they are not part of the format.

    Examples
    --------
    >>> print(write_dagitty(DAG([("x", "y")])))
    dag {
    x
    y
    x -> y
    }
    """
    graph = as_mixed(model, "dagitty")
    if (bad := next((name for name in graph.nodes if "\0" in name), None)) is not None:
        raise UnsupportedModel(
            f"dagitty is plain text, and the name {shown(bad)} holds a NUL character; save as .json"
        )
    return graph_text(graph)


def as_mixed(model: object, format_name: str) -> MixedGraph:
    """Return the graph of a model, or a graph itself, with marks at its edges; warn of tables that are lost."""
    graph = model
    if isinstance(model, GraphicalModel):
        known = getattr(model, "equivalence_class", None)
        graph = getattr(model, "graph", None) if known is None else known
    if isinstance(graph, DAG | UndirectedGraph | MixedGraph) and _has_tables(model):
        warn_user(f"only the graph was written: tables, states and properties are not part of {format_name}")
    if isinstance(graph, DAG):
        return MixedGraph.from_dag(graph)
    if isinstance(graph, UndirectedGraph):
        return MixedGraph.from_undirected(graph)
    if isinstance(graph, MixedGraph):
        if len(graph.directed_edges()) == graph.n_edges:  # read again it would be a DAG
            try:
                graph.to_dag()
            except CycleError as error:
                raise UnsupportedModel(f"{format_name} holds no directed cycle: {error}") from None
        return graph
    raise UnsupportedModel(
        f"{format_name} holds a directed, undirected or mixed graph, and {type(model).__name__} has none"
    )


def _has_tables(model: object) -> bool:
    if isinstance(model, BayesianNetwork):
        return any(map(model.has_table, model.variables))
    return isinstance(model, FactorModel) and bool(model.factors)
