"""The graph of a model whose nodes look at earlier elements, written out for some steps."""

from collections.abc import Mapping

from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.graphs.kinds.directed import DAG


def steps_graph(
    pieces: Mapping[str, Conditional | None], parents: Mapping[str, tuple[str, ...]]
) -> tuple[DAG, dict[str, list[str]]] | None:
    """Return the graph with a node for every step along the plates that nodes look back along, and those nodes by name.

    None where no node looks back: then the graph of names tells all there is. As many steps are written out as a path along
    all such nodes can take.
    """
    lags = {
        n: list(piece.previous.values())
        for n, piece in pieces.items()
        if isinstance(piece, FunctionNode) and piece.previous
    }
    if not lags:
        return None
    times = {
        piece.variable.plates[-1]
        for n, piece in pieces.items()
        if n in lags and isinstance(piece, FunctionNode)
    }

    def moves(name: str) -> bool:
        piece = pieces[name]
        return (
            piece is not None
            and isinstance(piece.variable, Quantity)
            and bool(times & set(piece.variable.plates))
        )

    depth = max(lag.steps for own in lags.values() for lag in own)
    length = depth * (sum(map(moves, pieces)) + 2)
    copies = {n: [f"{n} {t}" for t in range(length)] if moves(n) else [n] for n in pieces}
    edges = []
    for child, named in parents.items():
        for parent in named:
            if moves(parent) and moves(child):
                edges += list(zip(copies[parent], copies[child], strict=True))
            else:
                edges += [(a, b) for a in copies[parent] for b in copies[child]]
    for child, own in lags.items():
        for lag in own:
            edges += list(
                zip(copies[lag.node][: length - lag.steps], copies[child][lag.steps :], strict=True)
            )
    return DAG(dict.fromkeys(edges), nodes=[c for listed in copies.values() for c in listed]), copies
