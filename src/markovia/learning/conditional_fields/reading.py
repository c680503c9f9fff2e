"""Reading the inputs and labels of conditional random fields: many instances into flat arrays.

An instance is an array of node features, one row a node; or a list with one mapping a node from feature names to values
(a number, a truth value, or a string, which makes the indicator `name=value`); or a tuple `(features, edges)` or
`(features, edges, edge_features)` with a graph of its own. Edges are pairs of node numbers. Nothing is dropped, except
that features by name that training never saw have no weight.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.text.vocabulary import OUTSIDE, Vocabulary
from markovia.errors import InvalidArgument, InvalidGraph, check_known
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import numbers


@dataclass(frozen=True)
class Inputs:
    """All instances: node features (an array or a CSR matrix), graphs, edge features, and the columns' names if any."""

    features: Any
    node_ptr: Ints
    edge_ptr: Ints
    tails: Ints
    heads: Ints
    edge_features: Array
    vocabulary: Vocabulary | None


@dataclass(frozen=True)
class FieldGraph:
    """The graph that instances without edges of their own have: a chain of any length, or fixed edges."""

    edges: Ints | None
    names: tuple[str, ...] | None
    n: int | None

    @staticmethod
    def of(graph: Any) -> "FieldGraph | None":
        """Read `graph=`: "chain", pairs of node numbers, pairs of names, an `UndirectedGraph`, or None."""
        if graph is None:
            return None
        if isinstance(graph, str):
            if graph != "chain":
                raise InvalidArgument(
                    f"graph= is 'chain', pairs of nodes, or an UndirectedGraph, not {graph!r}"
                )
            return FieldGraph(None, None, None)
        if isinstance(graph, UndirectedGraph):
            names = tuple(graph.nodes)
            return FieldGraph(_named_edges(graph.edges, names), names, len(names))
        if not isinstance(graph, Iterable) or hasattr(graph, "parents"):
            raise InvalidArgument(
                f"graph= is 'chain', pairs of nodes, or an UndirectedGraph, not {type(graph).__name__}"
            )
        pairs = [tuple(p) if isinstance(p, Iterable) else (p,) for p in graph]
        if any(len(p) != 2 for p in pairs):
            raise InvalidGraph("graph= is a list of pairs of nodes")
        if pairs and all(isinstance(v, str) for p in pairs for v in p):
            names = tuple(dict.fromkeys(v for p in pairs for v in p))
            return FieldGraph(_named_edges(pairs, names), names, len(names))
        return FieldGraph(_edges(pairs, "graph="), None, None)


def read_inputs(
    inputs: Any, graph: FieldGraph | None, vocabulary: Vocabulary | None = None, *, grow: bool = False
) -> Inputs:
    """Read instances.

    Parameters
    ----------
    inputs
        A sequence of instances.
    graph
        The graph of instances that bring none.
    vocabulary
        Columns of features by name, from training.
    grow
        Whether to make a vocabulary from these instances.
    """
    if isinstance(inputs, Mapping | str) or not isinstance(inputs, Iterable):
        raise InvalidArgument(f"inputs are a list of instances, not {type(inputs).__name__}")
    instances = list(inputs)
    if not instances:
        raise InvalidArgument("there is no instance; give a list with at least one")
    blocks, edges, edge_blocks = [], [], []
    for g, instance in enumerate(instances):
        nodes, own, features = _parts(instance)
        if isinstance(nodes, Mapping) and graph is not None and graph.names is not None:
            nodes = [_one(nodes, name, g) for name in graph.names]
        blocks.append(nodes)
        edges.append(own)
        edge_blocks.append(features)
    by_name = any(_is_dicts(block) for block in blocks)
    sizes: list[int] = []
    if by_name:
        matrix, names, sizes = _from_dicts(blocks, vocabulary, grow)
    else:
        if vocabulary is not None and not grow:
            raise InvalidArgument("the model was trained on features by name; give one mapping a node")
        arrays = [_array(block, g) for g, block in enumerate(blocks)]
        widths = {a.shape[1] for a in arrays}
        if len(widths) > 1:
            odd = next(g for g, a in enumerate(arrays) if a.shape[1] != arrays[0].shape[1])
            raise InvalidArgument(
                f"instance {odd} has {arrays[odd].shape[1]} node features but instance 0 has {arrays[0].shape[1]}"
            )
        matrix, names, sizes = np.concatenate(arrays), None, [len(a) for a in arrays]
    node_ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    tails, heads, edge_ptr = graph_edges(edges, graph, node_ptr)
    return Inputs(matrix, node_ptr, edge_ptr, tails, heads, _edge_features(edge_blocks, edge_ptr), names)


def read_labels(labels: Any, node_ptr: Ints, graph: FieldGraph | None) -> NDArray[Any]:
    """Return the labels of all nodes one after the other, after checking that every node has one."""
    if isinstance(labels, Mapping | str) or not isinstance(labels, Iterable):
        raise InvalidArgument(
            f"labels are a list with one labelling an instance, not {type(labels).__name__}"
        )
    listed = list(labels)
    if len(listed) != len(node_ptr) - 1:
        raise InvalidArgument(f"there are {len(node_ptr) - 1} instances but {len(listed)} labellings")
    found = []
    for g, y in enumerate(listed):
        if isinstance(y, Mapping):
            if graph is None or graph.names is None:
                raise InvalidArgument(
                    f"the labels of instance {g} are by name, but the graph's nodes have none"
                )
            y = [_one(y, name, g) for name in graph.names]
        codes = np.asarray(y)
        n = int(node_ptr[g + 1] - node_ptr[g])
        if codes.shape != (n,):
            raise InvalidArgument(f"instance {g} has {n} nodes but labels of shape {codes.shape}")
        if codes.dtype.kind in "USO" and not all(isinstance(v, str) for v in y):
            raise InvalidArgument(
                f"the labels of instance {g} are not all strings, or all whole numbers: {_few(y)}"
            )
        if n:
            found.append(codes)
    if not found:
        return np.zeros(0, dtype=np.int64)
    if len({c.dtype.kind in "USO" for c in found}) > 1:
        raise InvalidArgument("the labels of some instances are strings and those of others numbers")
    joined = np.concatenate([c.astype(str) if c.dtype.kind == "O" else c for c in found])
    if joined.dtype.kind == "f" and (not np.all(np.isfinite(joined)) or np.any(joined != np.round(joined))):
        raise InvalidArgument(
            "labels are categories (strings, whole numbers or truth values), not real numbers"
        )
    if joined.dtype.kind == "f":
        joined = joined.astype(np.int64)
    return joined


def _few(values: Any) -> str:
    listed = list(values)
    return ", ".join(repr(v) for v in listed[:5]) + (", ..." if len(listed) > 5 else "")


def code_labels(labels: NDArray[Any], classes: NDArray[Any]) -> Ints:
    """Return label codes; a label that is no class is an error."""
    if not len(classes):
        raise InvalidArgument("no instance has a node")
    if not len(labels):
        return np.zeros(0, dtype=np.int64)
    if (labels.dtype.kind in "USO") != (classes.dtype.kind in "USO"):
        shown = ", ".join(repr(c) for c in classes.tolist()[:12])
        raise InvalidArgument(f"unknown label {labels[:1].tolist()[0]!r}; the labels are {shown}")
    codes = np.searchsorted(classes, labels).astype(np.int64)
    wrong = (codes >= len(classes)) | (classes[np.minimum(codes, len(classes) - 1)] != labels)
    if np.any(wrong):
        shown = ", ".join(repr(c) for c in classes.tolist()[:12])
        raise InvalidArgument(f"unknown label {labels[np.argmax(wrong)].item()!r}; the labels are {shown}")
    return codes


def chain_edges(node_ptr: Ints) -> tuple[Ints, Ints, Ints]:
    """Return tails, heads and edge pointers of chains over consecutive nodes."""
    n = int(node_ptr[-1])
    last = np.zeros(n, dtype=np.bool_)
    sizes = np.diff(node_ptr)
    last[node_ptr[1:][sizes > 0] - 1] = True
    tails = np.flatnonzero(~last).astype(np.int64)
    return tails, tails + 1, np.concatenate(([0], np.cumsum(np.maximum(sizes - 1, 0)))).astype(np.int64)


def _parts(instance: Any) -> tuple[Any, Any, Any]:
    if isinstance(instance, tuple) and len(instance) in (2, 3) and not isinstance(instance[1], Mapping):
        return instance[0], instance[1], instance[2] if len(instance) == 3 else None
    return instance, None, None


def _is_dicts(block: Any) -> bool:
    return isinstance(block, Sequence) and len(block) > 0 and isinstance(block[0], Mapping)


def _one(values: Mapping[Any, Any], name: str, g: int) -> Any:
    check_known([name], values, f"instance {g}")
    return values[name]


def _array(block: Any, g: int) -> Array:
    array = numbers(block, f"the node features of instance {g} are an array of numbers")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InvalidArgument(
            f"the node features of instance {g} have shape {array.shape}; one row a node is needed"
        )
    if not np.all(np.isfinite(array)):
        raise InvalidArgument(f"the node features of instance {g} have a missing or infinite entry")
    return array


def _from_dicts(
    blocks: Sequence[Any], vocabulary: Vocabulary | None, grow: bool
) -> tuple[Any, Vocabulary, list[int]]:
    """Return features by name as a sparse matrix."""
    from scipy.sparse import csr_matrix

    columns: list[int] = []
    values: list[float] = []
    ends = [0]
    known = Vocabulary() if grow or vocabulary is None else vocabulary
    for g, block in enumerate(blocks):
        for node in block:
            if not isinstance(node, Mapping):
                raise InvalidArgument(
                    f"a node of instance {g} has features of type {type(node).__name__}, not a mapping"
                )
            for name, value in node.items():
                key, number = (
                    (f"{name}={value}", 1.0) if isinstance(value, str) else (str(name), float(value))
                )
                if (column := known.code(key, grow=grow)) != OUTSIDE:
                    columns.append(column)
                    values.append(number)
            ends.append(len(columns))
    if not np.all(np.isfinite(values)):
        raise InvalidArgument("a node feature is missing or infinite")
    matrix = csr_matrix((values, columns, ends), shape=(len(ends) - 1, len(known)))
    matrix.sum_duplicates()
    return matrix, known, [len(b) for b in blocks]


def _edges(pairs: Any, where: str) -> Ints:
    try:
        array = np.asarray(pairs)
    except ValueError as error:
        raise InvalidGraph(f"the edges of {where} are no list of pairs of node numbers") from error
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise InvalidGraph(f"the edges of {where} are no list of pairs of node numbers")
    return array.astype(np.int64)


def _named_edges(pairs: Iterable[tuple[Any, ...]], names: Sequence[str]) -> Ints:
    place = {n: i for i, n in enumerate(names)}
    return _edges([(place[a], place[b]) for a, b in pairs], "graph=")


def graph_edges(own: Sequence[Any], graph: FieldGraph | None, node_ptr: Ints) -> tuple[Ints, Ints, Ints]:
    """Return tails, heads and edge pointers in global node numbers."""
    if all(e is None for e in own) and graph is not None and graph.edges is None:
        return chain_edges(node_ptr)
    found = []
    for g, edges in enumerate(own):
        n = int(node_ptr[g + 1] - node_ptr[g])
        if edges is not None:
            local = _edges(edges, f"instance {g}")
        elif graph is None:
            raise InvalidArgument(
                f"instance {g} has no edges; give (features, edges), or the model a graph= such as 'chain'"
            )
        elif graph.edges is None:
            local = np.stack([np.arange(max(n - 1, 0)), np.arange(max(n - 1, 0)) + 1], axis=1).astype(
                np.int64
            )
        else:
            local = graph.edges
            if graph.n is not None and n != graph.n:
                raise InvalidArgument(f"instance {g} has {n} nodes but the graph has {graph.n}")
        if local.size and (local.min() < 0 or local.max() >= n):
            wrong = int(local.max() if local.max() >= n else local.min())
            raise InvalidGraph(f"an edge of instance {g} names node {wrong}, but its nodes are 0 ... {n - 1}")
        found.append(local + node_ptr[g])
    both = np.concatenate(found)
    ends = np.concatenate(([0], np.cumsum([len(f) for f in found]))).astype(np.int64)
    return both[:, 0].copy(), both[:, 1].copy(), ends


def _edge_features(blocks: Sequence[Any], edge_ptr: Ints) -> Array:
    if all(b is None for b in blocks):
        return np.ones((int(edge_ptr[-1]), 1))
    found: list[Array] = []
    for g, block in enumerate(blocks):
        m = int(edge_ptr[g + 1] - edge_ptr[g])
        if block is None:
            raise InvalidArgument(
                f"instance {g} has no edge features but others have; give all of them or none"
            )
        array = np.asarray(block, dtype=np.float64)
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or len(array) != m:
            raise InvalidArgument(f"instance {g} has {m} edges but edge features of shape {np.shape(block)}")
        if found and array.shape[1] != found[0].shape[1]:
            raise InvalidArgument(
                f"instance {g} has {array.shape[1]} edge features but instance 0 has {found[0].shape[1]}"
            )
        if not np.all(np.isfinite(array)):
            raise InvalidArgument(f"the edge features of instance {g} have a missing or infinite entry")
        found.append(array)
    return np.concatenate(found)
