"""Tests of conditional independence, bound to data or to a graph that knows the truth.

A specification (`G2(alpha=0.01)`) is what users name; bound to data it becomes a `CITest`, which algorithms ask in batches:
is x independent of y given a set? Variables are numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.masks import mask_of, members, turned
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.graphs.kinds.named import Names, as_names
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice, check_level
from markovia.runtime.clock import Clock, now
from markovia.runtime.registry import named
from markovia.structure.ci_tests.many_tests import PairTests, Row, SetTests, TestsMade
from markovia.structure.task.result import TestMade
from markovia.structure.task.task import Task

SLICE_SECONDS = 0.5
"""Costly tests are asked in parts that take about this long, so that a time limit and Ctrl-C are seen in between."""

MOST_KEPT = 2**26
"""Tests made by the thousand of which the p-values are kept, about: a gigabyte of them."""
SAME = 1e-9
"""Conditional probabilities of a model that differ by less are the same."""
Query = tuple[int, int, tuple[int, ...]]
"""Two variables and what is given, in increasing order."""


class Measured(NamedTuple):
    """What a test finds for many queries: p-values, statistics and degrees of freedom (NaN where there are none)."""

    p_value: Array
    statistic: Array
    dof: Array


class CITest(ABC):
    """A test bound to data.

    A test of one's own derives from it and defines `_compute`; `_measure` as well if it has a statistic to show.

    Attributes
    ----------
    name
        What it is called.
    names
        The variables.
    alpha
        Independence is accepted where the p-value is larger.
    batch
        How many queries are asked at once where a search could also ask one by one.
    costly
        Whether one query takes long enough to be worth a process of its own (`jobs`).
    jobs
        Processes for costly tests, as joblib understands it.
    threads
        Threads for compiled tests; None for as many as there are processors.
    """

    name: str
    batch = 1
    costly = False

    def __init__(self, names: Sequence[str], alpha: float) -> None:
        check_level("alpha", alpha)
        self.names = tuple(names)
        self.alpha = float(alpha)
        self.known: dict[Query, float] = {}
        self.measured: dict[Query, tuple[float, float]] = {}
        self.log: list[PairTests | SetTests] = []
        self.n_forgotten = 0
        self.jobs: int | None = None
        self.threads: int | None = None

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.names)

    @property
    def n_made(self) -> int:
        """The number of tests made so far."""
        return len(self.known) + self._n_kept + self.n_forgotten

    @property
    def _n_kept(self) -> int:
        return sum(part.size for part in self.log)

    def note(self, part: PairTests | SetTests) -> None:
        """Keep tests that were made by the thousand; once there are too many, count them only."""
        if self._n_kept < MOST_KEPT:
            self.log.append(part)
        else:
            self.n_forgotten += part.size

    def pair_blocks(self) -> Iterator[tuple[int, int, Array]] | None:
        """Yield the p-values of all pairs given nothing, block by block: low, high, and an array (high - low, n).

        None where a test has no faster way than one pair after the other.
        """
        return None

    def p_array(self, xs: Ints, ys: Ints, given: Ints) -> Array:
        """Return the p-values of many queries; `given` has one row a query. The test does not remember them."""
        return self._compute(
            [(x, y, tuple(z)) for x, y, z in zip(xs.tolist(), ys.tolist(), given.tolist(), strict=True)]
        )

    @abstractmethod
    def _compute(self, queries: Sequence[Query]) -> Array:
        """Return the p-values of queries that are not known yet; x < y, given in increasing order."""

    def _measure(self, queries: Sequence[Query]) -> Measured:
        """Return p-values with their statistics; by default there are none."""
        nothing = np.full(len(queries), np.nan)
        return Measured(self._compute(queries), nothing, nothing)

    def p_values(self, queries: Sequence[Query]) -> Array:
        """Return the p-values of many queries."""
        asked = [_ordered(q) for q in queries]
        fresh = [q for q in dict.fromkeys(asked) if q not in self.known]
        if fresh:
            found = self._shared_out(fresh)
            self.known.update(zip(fresh, found.p_value.tolist(), strict=True))
            pairs = zip(found.statistic.tolist(), found.dof.tolist(), strict=True)
            self.measured.update(zip(fresh, pairs, strict=True))
        return np.array([self.known[q] for q in asked])

    def p_values_until(self, queries: Sequence[Query], clock: Clock) -> list[float]:
        """Return the p-values of many queries; those of the first ones only where the clock ends it in between.

        Costly tests are asked a few at a time. At least one query is answered.
        """
        if not self.costly:
            return self.p_values(queries).tolist()  # type: ignore[no-any-return]
        found: list[float] = []
        step = 1
        while len(found) < len(queries) and not (found and clock.over()):
            start = now()
            found += self.p_values(queries[len(found) : len(found) + step]).tolist()
            seconds = now() - start
            step = (
                2 * step
                if seconds < SLICE_SECONDS / 2
                else max(1, step // 2)
                if seconds > SLICE_SECONDS
                else step
            )
        return found

    def _shared_out(self, queries: list[Query]) -> Measured:
        if not self.costly or self.jobs in (None, 1) or len(queries) < 2:
            return self._measure(queries)
        from joblib import Parallel, delayed

        bare = copy(self)
        bare.known, bare.measured, bare.log, bare.jobs = {}, {}, [], None
        parts = Parallel(n_jobs=self.jobs)(delayed(bare._measure)([q]) for q in queries)
        return Measured(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def p_value(self, x: int, y: int, given: Sequence[int] = ()) -> float:
        """Return the p-value of one query."""
        return float(self.p_values([(x, y, tuple(given))])[0])

    def statistic(self, x: int, y: int, given: Sequence[int] = ()) -> tuple[float, float]:
        """Return the statistic of one query and its degrees of freedom, NaN where the test has none."""
        self.p_value(x, y, given)
        return self.measured[_ordered((x, y, tuple(given)))]

    def independent(self, x: int, y: int, given: Sequence[int] = ()) -> bool:
        """Say whether independence is accepted."""
        return self.p_value(x, y, given) > self.alpha

    def kept(self, keep: Any) -> Sequence[TestMade]:
        """Return the tests made so far as `keep_tests=` asks: all of them, none, or the first so many."""
        if not isinstance(keep, bool) and (not isinstance(keep, int | np.integer) or keep < 0):
            raise InvalidArgument(f"keep_tests= is True, False or a number of tests, not {keep!r}")
        there = self.n_made - self.n_forgotten
        size = there if keep is True else min(int(keep), there)
        if not self.log:
            return list(TestsMade(self._made, size, self.names, self.alpha))
        return TestsMade(self._made, size, self.names, self.alpha) if size else []

    def _made(self) -> Iterator[Row]:
        for part in self.log:
            yield from part
        yield from ((x, y, given, p) for (x, y, given), p in self.known.items())


@lru_cache(maxsize=1)
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which linear algebra uses one thread: small matrices lose more by waiting than they gain."""
    found: AbstractContextManager[Any] = _blas().limit(limits=1, user_api="blas")
    return found


def _ordered(query: Query) -> Query:
    x, y, given = query
    return (x, y, tuple(sorted(given))) if x < y else (y, x, tuple(sorted(given)))


class Oracle:
    """The truth instead of a test: separation in a graph, or independence in a distribution.

    Parameters
    ----------
    truth
        A `DAG`, a `MixedGraph`, an `UndirectedGraph`; a model, by its graph or by its distribution
        (`by="distribution"`); or a function of (x, y, given), with names, that says whether they are independent.
    latent
        Nodes that are not observed.
    selection
        Nodes that every row is selected by: they are always given and never seen.
    by
        "graph" or "distribution": what a model is asked.
    names
        The observed variables in their order; by default the nodes that are neither latent nor selection.

    Examples
    --------
    >>> oracle = Oracle(DAG([("a", "b"), ("b", "c")]))
    >>> oracle.bind(None).independent(0, 2, [1])
    True
    >>> Oracle(DAG([("a", "c"), ("b", "c")]), selection="c").bind(None).independent(0, 1)
    False
    """

    def __init__(
        self,
        truth: Any,
        latent: Names = (),
        selection: Names = (),
        by: str = "graph",
        names: Sequence[str] | None = None,
    ) -> None:
        self.truth = truth
        self.latent = tuple(as_names(latent))
        self.selection = tuple(as_names(selection))
        self.by = by
        self.names = None if names is None else tuple(as_names(names))
        check_choice("by", by, ("graph", "distribution"))
        both = set(self.latent) & set(self.selection)
        if both:
            raise InvalidArgument(f"{sorted(both)[0]!r} is latent and selected by")
        nodes = self._nodes()
        for name in (*self.latent, *self.selection, *(self.names or ())):
            if nodes is not None and name not in nodes:
                raise UnknownVariable(name, nodes, "the oracle")
        for name in self.names or ():
            if name in self.latent or name in self.selection:
                raise InvalidArgument(f"{name!r} is named as observed, and as latent or selection")

    def _nodes(self) -> list[str] | None:
        nodes = getattr(self.truth, "nodes", None)
        if nodes is None:
            nodes = getattr(self.truth, "variables", None)
        return None if nodes is None or callable(nodes) else list(nodes)

    @property
    def observed(self) -> list[str]:
        """The variables that are seen."""
        if self.names is not None:
            return list(self.names)
        nodes = self._nodes()
        if nodes is None:
            raise InvalidArgument("an oracle that is a function does not name its variables; give names=")
        hidden = {*self.latent, *self.selection}
        return [n for n in nodes if n not in hidden]

    def bind(self, data: MixedTable | None, names: Sequence[str] | None = None) -> "CITest":
        """Return the test over the observed variables, or over the named ones."""
        chosen, nodes = list(names or self.observed), self._nodes()
        for name in chosen:
            if nodes is not None and name not in nodes:
                raise UnknownVariable(name, nodes, "the oracle")
            if name in self.latent or name in self.selection:
                raise InvalidArgument(f"the oracle hides {name!r}, which is latent or selection")
        return _OracleTest(chosen, self._answer(), self.selection)

    def _answer(self) -> Callable[[str, str, list[str]], bool]:
        truth = self.truth
        if self.by == "distribution":
            if not hasattr(truth, "query"):
                raise InvalidArgument(f"by='distribution' asks a model, not {type(truth).__name__}")
            return lambda x, y, given: _independent_in(truth, x, y, given)
        graph = (
            truth if isinstance(truth, DAG | MixedGraph | UndirectedGraph) else getattr(truth, "graph", None)
        )
        if isinstance(graph, DAG):
            return _separation(graph)
        if isinstance(graph, UndirectedGraph):
            graph = MixedGraph.from_undirected(graph)
        if isinstance(graph, MixedGraph):
            mixed = graph
            return lambda x, y, given: mixed.m_separated(x, y, given)
        if callable(truth):
            return lambda x, y, given: bool(truth(x, y, given))
        raise InvalidArgument(f"an oracle is a graph, a model or a function, not {type(truth).__name__}")


def _separation(dag: DAG) -> Callable[[str, str, list[str]], bool]:
    """Return d-separation in one graph for many questions: reachability in the ancestors' moral graph, sets as bits."""
    number = {name: k for k, name in enumerate(dag.nodes)}
    parents = [mask_of(number[p] for p in dag.parents(name)) for name in number]
    children = turned(parents)
    above = [0] * len(number)
    for name in dag.topological_order():
        k = number[name]
        above[k] = 1 << k
        for p in members(parents[k]):
            above[k] |= above[p]

    def separated(x: str, y: str, given: list[str]) -> bool:
        start, goal, blocked = number[x], 1 << number[y], 0
        ancestors = above[start] | above[number[y]]
        for z in given:
            blocked |= 1 << number[z]
            ancestors |= above[number[z]]
        seen = waiting = 1 << start
        while waiting:
            low = waiting & -waiting
            waiting ^= low
            node = low.bit_length() - 1
            below = children[node] & ancestors
            near = parents[node] | below
            for child in members(below):
                near |= parents[child]
            if near & goal:
                return False
            near &= ~(seen | blocked)
            seen |= near
            waiting |= near
        return True

    return separated


def _independent_in(model: Any, x: str, y: str, given: list[str]) -> bool:
    """Say whether the model's own distribution makes two variables independent given others."""
    from itertools import product

    joint = model.query([x, y, *given])
    states = [model.states(n) for n in (x, y, *given)]
    table = np.array([joint[key] for key in product(*states)]).reshape([len(s) for s in states])
    flat = table.reshape(table.shape[0], table.shape[1], -1)
    # conditional probabilities, so that a rare configuration counts as much as a common one
    flat = flat[:, :, flat.sum(axis=(0, 1)) > 0]
    flat = flat / flat.sum(axis=(0, 1))
    apart = flat.sum(axis=1, keepdims=True) * flat.sum(axis=0, keepdims=True)
    return bool(np.abs(flat - apart).max(initial=0.0) < SAME)


class _OracleTest(CITest):
    name = "oracle"

    def __init__(
        self, names: Sequence[str], answer: Callable[[str, str, list[str]], bool], selection: Sequence[str]
    ) -> None:
        super().__init__(names, 0.5)
        self.answer = answer
        self.selection = list(selection)

    def _compute(self, queries: Sequence[Query]) -> Array:
        names = self.names
        return np.array(
            [
                float(self.answer(names[x], names[y], [*(names[z] for z in given), *self.selection]))
                for x, y, given in queries
            ]
        )


TESTS = {
    "g2": "markovia.structure.ci_tests.table_tests:G2",
    "chi2": "markovia.structure.ci_tests.table_tests:ChiSquare",
    "cmi": "markovia.structure.ci_tests.permutation_information_test:PermutationCMI",
    "fisher-z": "markovia.structure.ci_tests.fisher_z_test:FisherZ",
    "mixed": "markovia.structure.ci_tests.mixed_test:MixedTest",
    "hsic": "markovia.structure.ci_tests.kernel_ci_test:HSICTest",
    "kci": "markovia.structure.ci_tests.kernel_ci_test:KCI",
}
"""Where each test is, by its public name."""
TEST_ALIASES = {
    "g-squared": "g2",
    "gsq": "g2",
    "chi-square": "chi2",
    "chi-squared": "chi2",
    "chisq": "chi2",
    "fisherz": "fisher-z",
    "mutual-information": "cmi",
}


def is_truth(test: Any) -> bool:
    """Say whether a test is a graph, or a model with one, that answers by itself."""
    graphs = DAG | MixedGraph | UndirectedGraph
    return isinstance(test, graphs) or isinstance(getattr(test, "graph", None), graphs)


def default_test(data: MixedTable) -> str:
    """Return the name of the test for the kind of data."""
    return "g2" if data.discrete else "fisher-z" if data.continuous else "mixed"


def ci_test_for(task: Task) -> CITest:
    """Return the test that a task asks for, ready for its data."""
    found = bind_test(task.test, task.data, task.names)
    task.test_name = found.name
    found.jobs = task.jobs
    return found


def bind_test(test: Any, data: MixedTable | None, names: Sequence[str]) -> CITest:
    """Return a test for data by name, specification, graph, or the default for the kind of data.

    A name may come with its level, as a pair.
    """
    if isinstance(test, CITest):
        if test.names != tuple(names):
            raise InvalidArgument(
                f"the test is about {', '.join(test.names[:8])}, the search about {', '.join(list(names)[:8])}; "
                "bind the test to the same columns in the same order"
            )
        return test
    if is_truth(test):
        test = Oracle(test)
    if isinstance(test, Oracle):
        return test.bind(data, names)
    if data is None:
        raise InvalidArgument(
            "this test needs data; an oracle that is a function is mk.ci_tests.Oracle(function, names=)"
        )
    word, alpha = test if isinstance(test, tuple) else (test, None)
    if word is None or word == "auto":
        word = default_test(data)
    if isinstance(word, str):
        kind = named(word, TESTS, TEST_ALIASES, "test")
        word = kind() if alpha is None else kind(alpha=alpha)
    if isinstance(word, type) or not hasattr(word, "bind"):
        raise InvalidArgument(
            f"test= is a name such as 'g2', a test such as mk.ci_tests.G2(), or an oracle, not {word!r}"
        )
    found: CITest = word.bind(data)
    return found
