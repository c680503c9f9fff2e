"""The structure of a dynamic network from time series: structure learning on lagged columns.

Every step beside the ones before it is a row; the past comes before the present, and edges into the past are not asked for,
so any method with background knowledge finds each variable's parents in its own and in earlier steps.
Reference: Friedman, Murphy and Russell (1998).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.errors import InvalidArgument
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.inference.sequences.slices import lagged, split_name
from markovia.models.temporal.dynamic.dynamic_evidence import read_columns
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.runtime.checks import check_count
from markovia.runtime.libraries import pd
from markovia.runtime.shown import InNotebooks
from markovia.structure.learn import learn_structure
from markovia.structure.task.result import LearnedStructure


@dataclass(frozen=True)
class LearnedProcess(InNotebooks):
    """A learned dynamic structure.

    Attributes
    ----------
    order
        How many steps back it may look.
    names
        The variables of a step.
    parents
        For each variable its parents, such as `"x@-1"`.
    found
        What structure learning said about the lagged columns.
    """

    order: int
    names: tuple[str, ...]
    parents: dict[str, list[str]]
    found: LearnedStructure
    rows: Sequences
    numbers: frozenset[str]

    @property
    def edges(self) -> list[tuple[str, str]]:
        """All edges (parent, child), the child in the present step."""
        return [(q, n) for n in self.names for q in self.parents[n]]

    def fit(self, data: Any = None, lengths: Lengths = None, **settings: Any) -> DynamicBayesianNetwork:
        """Return the dynamic network of this structure, fitted to the sequences it was learned from, or to others.

        The settings are those of `DynamicBayesianNetwork.fit`.
        """
        process = DynamicBayesianNetwork()
        frame = pd.DataFrame(
            {n: self.rows.values[:, j] for j, n in enumerate(self.rows.columns)}
        ).infer_objects()
        for name in self._ordered():
            own = self.parents[name]
            if name in self.numbers:
                deep = max((split_name(q)[1] for q in own), default=0)
                first = [_level(frame[name], [q for q in own if split_name(q)[1] <= t]) for t in range(deep)]
                initial = None if not deep else first[0] if deep == 1 else first
                process.add(name, _level(frame[name], own), initial=initial)
            else:
                states = sorted(frame[name].dropna().unique().tolist())
                process.add(name, states=states, parents=own)
        if data is None:
            data, lengths = frame, np.diff(self.rows.offsets).tolist()
        return process.fit(data, lengths, **settings)

    def _ordered(self) -> list[str]:
        """Return the variables, parents of the same step first."""
        order: list[str] = []
        left = list(self.names)
        while left:
            ready = [n for n in left if all(split_name(q)[1] or q in order for q in self.parents[n])]
            order += ready
            left = [n for n in left if n not in order]
        return order

    def __repr__(self) -> str:
        shown = ", ".join(f"{q} -> {n}" for q, n in self.edges)
        return f"LearnedProcess(order {self.order}: {shown or 'no edges'})"


def _level(column: Any, parents: list[str]) -> LinearGaussian:
    """Return a stand-in for a node that is fitted next: its own mean and variance, no weights."""
    values = np.asarray(column, dtype=np.float64)
    variance = float(values.var()) or 1.0
    return LinearGaussian(float(values.mean()), dict.fromkeys(parents, 0.0), variance)


def learn_dynamic_structure(
    sequences: Any,
    method: str = "hill-climb",
    *,
    order: int = 1,
    intra: bool = True,
    lengths: Lengths = None,
    by: str | None = None,
    forbidden: Iterable[tuple[str, str]] = (),
    **options: Any,
) -> LearnedProcess:
    """Learn which variables of a step depend on which of the same step and of those before.

    Parameters
    ----------
    sequences, lengths, by
        Frames or mappings of columns, one row a step, without missing cells.
    method, options
        As in `learn_structure`: score= or test=, alpha=, max_parents=, required= and the others, over names such as
        `"x@-1"` and `"x"`.
    order
        How many steps back to look.
    intra
        Whether variables of one step may depend on each other.
    forbidden
        Edges (parent, child) that are not there.

    Examples
    --------
    >>> import markovia as mk
    >>> true = mk.DynamicBayesianNetwork()
    >>> true.add("a", states=2, parents=["a@-1"], p=[[0.9, 0.1], [0.2, 0.8]], initial=[0.5, 0.5])
    >>> true.add("b", states=2, parents=["a@-1"], p=[[0.8, 0.2], [0.1, 0.9]], initial=[0.5, 0.5])
    >>> wide = true.sample(60, steps=20, seed=0)
    >>> series = [{n: [row[f"{n}@{t}"] for t in range(20)] for n in "ab"} for _, row in wide.iterrows()]
    >>> found = mk.learn_dynamic_structure(series, score="bic")
    >>> found
    LearnedProcess(order 1: a@-1 -> a, a@-1 -> b)
    >>> found.fit().transition["a"].values.round(1).tolist()
    [[0.9, 0.1], [0.2, 0.8]]
    """
    check_count("order", order, 1)
    rows = read_columns(sequences, lengths, by)
    names = list(rows.columns)
    frame = pd.DataFrame({n: rows.values[:, j] for j, n in enumerate(names)}).infer_objects()
    if gaps := int(frame.isna().to_numpy().sum()):
        raise InvalidArgument(f"{gaps:,} cells are missing; structure is learned from complete sequences")
    starts = np.repeat(rows.offsets[:-1], np.diff(rows.offsets))
    later = np.flatnonzero(np.arange(len(frame)) - starts >= order)
    if not len(later):
        raise InvalidArgument(f"no sequence has {order} steps before another; order= is too large")
    columns = {}
    for lag in range(order, -1, -1):
        for n in names:
            columns[lagged(n, lag)] = frame[n].to_numpy()[later - lag]
    table = pd.DataFrame(columns)
    past = [c for c in columns if split_name(c)[1]]
    barred = {(a, b) for a in columns for b in past if a != b} | set(forbidden)
    if not intra:
        barred |= {(a, b) for a in names for b in names if a != b}
    found = learn_structure(table, method, forbidden=sorted(barred), **options)
    dag = found.dag
    place = {
        c: i for i, c in enumerate([*names, *(lagged(n, k) for k in range(1, order + 1) for n in names)])
    }
    parents = {n: sorted(dag.parents(n), key=place.__getitem__) for n in names}
    numbers = frozenset(n for n in names if frame[n].dtype.kind == "f" and (frame[n] % 1 != 0).any())
    return LearnedProcess(order, tuple(names), parents, found, rows, numbers)
