"""The score of a graph that is already there."""

from collections.abc import Mapping, Sequence
from typing import Any

from markovia.data.tables.reading_mixed import MixedTable, read_mixed
from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import State
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.equivalence import extend
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.structure.scores.scores import bind_score


def score_graph(
    graph: Any,
    data: Any,
    score: Any = None,
    *,
    continuous: bool | Sequence[str] | None = None,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
    by_node: bool = False,
) -> float | dict[str, float]:
    """Return the score of a graph on data, larger is better.

    Parameters
    ----------
    graph
        A `DAG`; a partially directed graph, of which one member is scored; a `LearnedStructure`; or a model, whose graph and
        states count and not its parameters.
    data
        What `mk.learn_structure` takes, without missing cells in the graph's columns.
    score
        A name ("bic", "aic", "bdeu", "k2", "log-likelihood", "qnml", "gaussian-bic", "cg-bic") or a score of `mk.scores`;
        BIC for the kind of data by default.
    continuous, states, weights
        As for `mk.learn_structure`.
    by_node
        Whether to return each node's part instead of their sum.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.examples.sprinkler()
    >>> rows = model.sample(2000, seed=1)
    >>> mk.score_graph(model, rows, "bdeu") > mk.score_graph(mk.graphs.DAG(nodes=list(model.graph.nodes)), rows, "bdeu")
    True
    """
    known = dict(states or {})
    held = getattr(graph, "graph", graph)
    if held is not graph and hasattr(graph, "states"):
        for name in graph.variables:
            known.setdefault(name, graph.states(name))
    if isinstance(held, MixedGraph):
        held = extend(held)
    if not isinstance(held, DAG):
        raise InvalidArgument(
            f"a score is for a directed graph or a model with one, not {type(graph).__name__}"
        )
    names = list(held.nodes)
    given = states if isinstance(data, MixedTable) else known or None  # data that were read have states
    mixed = read_mixed(data, names=names, continuous=continuous, states=given, weights=weights)
    bound = bind_score(score, mixed)
    number = {name: i for i, name in enumerate(mixed.names)}
    families = [(number[n], tuple(sorted(number[p] for p in held.parents(n)))) for n in names]
    found = bound.many(families)
    if by_node:
        return dict(zip(names, found.tolist(), strict=True))
    return float(found.sum())
