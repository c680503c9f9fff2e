"""Networks that change over time or conditions: reading the times of rows, and the result with one graph a time.

`edges_over_time` lists who was joined to whom when.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, check_known
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime.array_types import Array
from markovia.runtime.checks import numbers
from markovia.structure.task.result import FoundGraph, LearnedStructure
from markovia.structure.task.task import Task
from markovia.structure.task.undirected_edges import joined, undirected_graph, within_rules
from markovia.structure.undirected.sparse_logistic import Spins, read_spins

if TYPE_CHECKING:
    import pandas as pd


def timed_spins(task: Task, times: Any, what: str) -> tuple[Spins, Array]:
    """Return two-state columns and the time of each row, rows sorted by time.

    Parameters
    ----------
    times
        The name of a column, which is then no variable of the network; or one number a row; None numbers the rows.
    """
    mixed = task.rows
    if isinstance(times, str):
        check_known([times], mixed.names, "the data")
        spins = read_spins(mixed, task.rules, what, without=[times])
        at = mixed.names.index(times)
        if mixed.kinds[at] == "continuous":
            assert mixed.matrix is not None
            moments = mixed.matrix[:, mixed.columns[at]]
        else:
            labels = _numbers(mixed.variable(at).states, times)
            moments = labels[mixed.codes().column(times)]
    else:
        spins = read_spins(mixed, task.rules, what)
        n = spins.design.shape[1]
        rule = "times= is the name of a column, or one number a row"
        moments = np.arange(n, dtype=np.float64) if times is None else numbers(times, rule)
        if moments.shape != (n,):
            raise InvalidArgument(
                f"times= has {moments.size} numbers, and {n} rows were read (equal rows of a large source are read as one: "
                "name a column of times there)"
            )
    if not np.isfinite(moments).all():
        raise InvalidArgument("times= has a number that is missing or infinite")
    order = np.argsort(moments, kind="stable")
    return spins.in_order(order), np.asarray(moments[order], dtype=np.float64)


def condition_spins(
    task: Task, times: Any, conditions: Any, what: str
) -> tuple[Spins, NDArray[np.int64], list[Any], NDArray[np.int64]]:
    """Return two-state columns, the number of each row's condition, the conditions, and the edges between them.

    Parameters
    ----------
    times
        The name of a column of labels, which is then no variable of the network; or one label a row.
    conditions
        Pairs of labels, or an undirected graph over them.
    """
    mixed = task.rows
    if times is None:
        raise InvalidArgument("conditions= needs times=: the name of a column of labels, or one label a row")
    if isinstance(times, str):
        check_known([times], mixed.names, "the data")
        spins = read_spins(mixed, task.rules, what, without=[times])
        at = mixed.names.index(times)
        if mixed.kinds[at] != "discrete":
            raise InvalidArgument(f"the conditions in {times!r} are labels, not measurements")
        codes, states = mixed.codes().column(times), list(mixed.variable(at).states)
        used = np.unique(codes)
        labels = [states[k] for k in used.tolist()]
        number = np.searchsorted(used, codes).astype(np.int64)
    else:
        spins = read_spins(mixed, task.rules, what)
        each = list(times)
        if len(each) != spins.design.shape[1]:
            raise InvalidArgument(
                f"times= has {len(each)} labels, and {spins.design.shape[1]} rows were read (equal rows of a large source "
                "are read as one: name a column of labels there)"
            )
        labels = list(dict.fromkeys(each))
        place = {label: k for k, label in enumerate(labels)}
        number = np.array([place[label] for label in each], dtype=np.int64)
    found = conditions.edges if isinstance(conditions, UndirectedGraph) else conditions
    where = {label: k for k, label in enumerate(labels)}
    edges = []
    for pair in found:
        if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
            raise InvalidArgument(f"conditions= has pairs of two labels, not {pair!r}")
        for label in pair:
            if label not in where:
                raise InvalidArgument(f"conditions= names {label!r}, which no row has")
        edges.append(sorted((where[pair[0]], where[pair[1]])))
    order = np.argsort(number, kind="stable")
    unique = np.unique(np.array(edges, dtype=np.int64).reshape(-1, 2), axis=0)
    return spins.in_order(order), number[order], labels, unique


@dataclass(frozen=True, eq=False, kw_only=True)
class ChangingDetails:
    """One network a time.

    Attributes
    ----------
    times, graphs
        The times, and the graph at each.
    weights, fields
        `weights[t, i, j]` is the coupling of i and j at time t, `fields[t, i]` the preference of i.
    rule
        How two regressions became one edge.
    """

    times: Any
    graphs: list[UndirectedGraph]
    weights: Array
    fields: Array
    rule: str


def changing_result(
    spins: Spins,
    times: Any,
    thetas: Array,
    rule: str,
    details: Callable[..., ChangingDetails],
    notes: list[str],
) -> FoundGraph:
    """Return one graph a time from `thetas[t, k, j]`, the parameter of j in the regression of k at time t.

    The result's graph is their union, its weights the strongest coupling of each pair over time.
    """
    n = len(spins.names)
    graphs, weights = [], []
    for theta in thetas:
        couplings = theta[:, :n]
        strength = (couplings + couplings.T) / 2
        keep = within_rules(joined(couplings, rule), strength, spins.rules)
        graphs.append(undirected_graph(spins.names, keep))
        weights.append(np.where(keep, strength, 0.0))
    stack = np.array(weights)
    union = np.zeros((n, n), dtype=bool)
    for graph in graphs:
        for a, b in graph.edges:
            i, j = spins.names.index(a), spins.names.index(b)
            union[i, j] = union[j, i] = True
    strongest = np.take_along_axis(stack, np.abs(stack).argmax(axis=0)[None], axis=0)[0]
    return FoundGraph(
        undirected_graph(spins.names, union),
        weights=strongest,
        notes=notes,
        details=details(times=times, graphs=graphs, weights=stack, fields=thetas[:, :, n], rule=rule),
    )


def edges_over_time(found: LearnedStructure) -> "pd.DataFrame":
    """List the edges of a changing network: a row for each edge at each time, with its weight.

    Parameters
    ----------
    found
        What "kernel-weighted" or "tesla" learned.

    Returns
    -------
    DataFrame
        With the columns time, a, b, weight.
    """
    import pandas as pd

    told = found.details
    if not isinstance(told, ChangingDetails):
        raise InvalidArgument(f"{found.method} learned one graph, which does not change over time")
    names = list(found.nodes)
    place = {name: i for i, name in enumerate(names)}
    rows = [
        (time, a, b, weights[place[a], place[b]])
        for time, graph, weights in zip(told.times, told.graphs, told.weights, strict=True)
        for a, b in graph.edges
    ]
    return pd.DataFrame(rows, columns=["time", "a", "b", "weight"])


def _numbers(states: Sequence[Any], name: str) -> Array:
    try:
        return np.array([float(s) for s in states])
    except (TypeError, ValueError):
        raise InvalidArgument(f"the times in {name!r} are numbers, not {states[0]!r}") from None
