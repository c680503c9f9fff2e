"""How much each edge of a graph is worth to the data.

For an edge parent -> child with the child's other parents Z: the p-value of the test of child and parent being independent
given Z; the score that the graph loses without the edge (log of a Bayes factor for BDeu); or the conditional mutual
information of child and parent given Z in nats. Cost: one test, or two families, an edge.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import InvalidArgument, check_known
from markovia.factors.tables.variable import State
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.equivalence import extend
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice
from markovia.runtime.shown import html_table
from markovia.structure.ci_tests.ci_tests import CITest, bind_test
from markovia.structure.ci_tests.table_tests import table_statistic
from markovia.structure.scores.local_score import LocalScore
from markovia.structure.scores.scores import bind_score
from markovia.structure.task.settings import Reading

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("p-value", "score", "mutual-information")


class EdgeStrength(Mapping[tuple[str, str], float]):
    """The strength of each edge of a graph: a mapping from (parent, child) to a number, the strongest first.

    Attributes
    ----------
    measure
        "p-value" (smaller is stronger), "score" (the loss without the edge, larger is stronger) or "mutual-information".
    by
        The test or score that was used.
    """

    def __init__(self, values: Mapping[tuple[str, str], float], measure: str, by: str) -> None:
        sign = 1.0 if measure == "p-value" else -1.0
        self._values = dict(sorted(values.items(), key=lambda item: sign * item[1]))
        self.measure = measure
        self.by = by

    def __getitem__(self, edge: tuple[str, str]) -> float:
        return self._values[edge]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a table with one row an edge: from, to, and the measure."""
        import pandas as pd

        rows = [(a, b, value) for (a, b), value in self._values.items()]
        return pd.DataFrame(rows, columns=["from", "to", self.measure])

    def _heading(self) -> str:
        return f"{self.measure} of {len(self)} edge{'s' * (len(self) != 1)}, by {self.by}"

    def __repr__(self) -> str:
        return f"<EdgeStrength: {self._heading()}>"

    def __str__(self) -> str:
        width = max([len(f"{a} -> {b}") for a, b in self._values] or [0])
        rows = [f"  {f'{a} -> {b}':<{width}}  {value:.4g}" for (a, b), value in self._values.items()]
        return "\n".join([self._heading(), *rows])

    def _repr_html_(self) -> str:
        rows = [(a, b, f"{value:.4g}") for (a, b), value in self._values.items()]
        return html_table(["from", "to", self.measure], rows, note=self._heading())


def edge_strength(
    graph: Any,
    data: Any = None,
    measure: str = "p-value",
    *,
    test: Any = None,
    score: Any = None,
    continuous: bool | Sequence[str] | None = None,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
    missing: str = "error",
) -> EdgeStrength:
    """Return how strongly the data speak for each edge of a directed graph.

    Parameters
    ----------
    graph
        A `DAG`, a Bayesian network or a `LearnedStructure`; of a class of graphs one member is measured.
    data
        The rows; by default those that a `LearnedStructure` was learned from.
    measure
        "p-value" of the test that the child is independent of the parent given its other parents; "score", the loss when the
        edge is removed; or "mutual-information" of child and parent given the other parents, in nats.
    test
        For p-values: a name such as "g2", or a test; by default the one for the kind of data.
    score
        For the loss: a name such as "bic", or a score; by default BIC.
    continuous, states, weights, missing
        As for `learn_structure`.

    Returns
    -------
    EdgeStrength

    Examples
    --------
    >>> import markovia as mk
    >>> truth = mk.examples.sprinkler()
    >>> rows = truth.sample(1000, seed=1)
    >>> strength = mk.edge_strength(truth, rows, "score")
    >>> strength["rain", "wet"] > 10
    True
    """
    check_choice("measure", measure, MEASURES)
    if test is not None and measure != "p-value":
        raise InvalidArgument(f"test= is for measure='p-value', not {measure!r}")
    if score is not None and measure != "score":
        raise InvalidArgument(f"score= is for measure='score', not {measure!r}")
    dag = _directed(graph)
    if isinstance(test, CITest):  # already bound to its rows
        return _tested(dag, test)
    if isinstance(score, LocalScore):
        return _scored(dag, score)
    rows = data if data is not None else getattr(graph, "data", None)
    if rows is None:
        raise InvalidArgument("give the rows to measure the edges with")
    mixed = Reading(dag.nodes, continuous, states, weights, missing).complete(rows)
    if measure == "p-value":
        return _tested(dag, bind_test(test, mixed.spread(), mixed.names))
    if measure == "score":
        return _scored(dag, bind_score(score, mixed))
    found = _families(dag, mixed.names)
    values = _information(mixed, [(p, c) for p, c, _ in found], [z for _, _, z in found])
    return _named(found, values, mixed.names, measure, "counts" if mixed.discrete else "correlations")


def _tested(dag: DAG, test: CITest) -> EdgeStrength:
    found = _families(dag, test.names)
    return _named(found, test.p_values(found), test.names, "p-value", test.name)


def _scored(dag: DAG, score: LocalScore) -> EdgeStrength:
    names = score.data.names
    found = _families(dag, names)
    whole = score.many([(c, tuple(sorted((p, *z)))) for p, c, z in found])
    return _named(found, whole - score.many([(c, z) for _, c, z in found]), names, "score", score.name)


def _families(dag: DAG, names: Sequence[str]) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return parent, child and the child's other parents for each edge, as numbers."""
    number = {name: i for i, name in enumerate(names)}
    check_known(dag.nodes, number, "the data")
    found = []
    for child in dag.nodes:
        own = sorted(number[p] for p in dag.parents(child))
        found += [(p, number[child], tuple(q for q in own if q != p)) for p in own]
    return found


def _named(
    found: Sequence[tuple[int, int, tuple[int, ...]]],
    values: Array,
    names: Sequence[str],
    measure: str,
    by: str,
) -> EdgeStrength:
    pairs = {(names[p], names[c]): float(v) for (p, c, _), v in zip(found, values, strict=True)}
    return EdgeStrength(pairs, measure, by)


def _directed(graph: Any) -> DAG:
    for candidate in (graph, getattr(graph, "graph", None)):
        if isinstance(candidate, DAG):
            return candidate
        if isinstance(candidate, MixedGraph):
            return extend(candidate)
    raise InvalidArgument(f"edges are measured in a directed graph, not in a {type(graph).__name__}")


def _information(
    mixed: MixedTable, edges: Sequence[tuple[int, int]], others: Sequence[tuple[int, ...]]
) -> Array:
    """Return the mutual information of parent and child given the others, from counts or Gaussian correlations."""
    if mixed.discrete:
        assert mixed.table is not None
        names = mixed.names
        scopes = [[names[v] for v in (p, c, *z)] for (p, c), z in zip(edges, others, strict=True)]
        return np.array([_table_information(t) for t in mixed.table.counts(scopes)])
    numbers = mixed.numbers("the mutual information of measurements")
    centred = numbers - np.average(numbers, axis=0, weights=mixed.weights)
    scaled = centred if mixed.weights is None else centred * np.sqrt(mixed.weights)[:, None]
    found = np.empty(len(edges))
    for k, ((p, c), z) in enumerate(zip(edges, others, strict=True)):
        pair = scaled[:, [p, c]]
        if z:
            given = scaled[:, list(z)]
            pair = pair - given @ np.linalg.lstsq(given, pair, rcond=None)[0]
        norms = np.sqrt((pair**2).sum(axis=0))
        r = 0.0 if not norms.all() else float(pair[:, 0] @ pair[:, 1] / norms.prod())
        found[k] = -0.5 * np.log1p(-min(r * r, 1.0)) if r * r < 1 else np.inf
    return found


def _table_information(table: Array) -> float:
    """Return the mutual information of the first two axes given the others: half of G2 for each row."""
    total = float(table.sum())
    strata = np.moveaxis(table.reshape(*table.shape[:2], -1), 2, 0)
    return table_statistic(strata)[0] / (2.0 * total) if total else 0.0
