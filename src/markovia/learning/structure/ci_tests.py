"""Tests of conditional independence, bound to data or to a graph that knows the truth.

A specification (`G2(alpha=0.01)`) is what users name; bound to data it becomes a `CITest`, which algorithms ask in batches:
is x independent of y given a set? Variables are numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.factor import Array
from markovia.graphs._named import Names, as_names
from markovia.graphs.directed import DAG
from markovia.graphs.mixed import MixedGraph
from markovia.graphs.separation import d_separated
from markovia.learning.structure.result import TestMade
from markovia.learning.structure.scores import named
from markovia.learning.structure.study import StructureData

Query = tuple[int, int, tuple[int, ...]]
"""Two variables and what is given, in increasing order."""


class CITest(ABC):
    """A test bound to data.

    Attributes
    ----------
    name
        What it is called.
    names
        The variables.
    alpha
        Independence is accepted where the p-value is larger.
    """

    name: str

    def __init__(self, names: Sequence[str], alpha: float) -> None:
        if not 0 < alpha < 1:
            raise InvalidArgument(f"alpha is between 0 and 1, not {alpha!r}")
        self.names = tuple(names)
        self.alpha = alpha
        self.known: dict[Query, float] = {}

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.names)

    @property
    def n_made(self) -> int:
        """The number of tests made so far."""
        return len(self.known)

    @abstractmethod
    def _compute(self, queries: Sequence[Query]) -> Array:
        """Return the p-values of queries that are not known yet; x < y, given in increasing order."""

    def p_values(self, queries: Sequence[Query]) -> Array:
        """Return the p-values of many queries."""
        asked = [_ordered(q) for q in queries]
        fresh = [q for q in dict.fromkeys(asked) if q not in self.known]
        if fresh:
            self.known.update(zip(fresh, self._compute(fresh).tolist(), strict=True))
        return np.array([self.known[q] for q in asked])

    def p_value(self, x: int, y: int, given: Sequence[int] = ()) -> float:
        """Return the p-value of one query."""
        return float(self.p_values([(x, y, tuple(given))])[0])

    def independent(self, x: int, y: int, given: Sequence[int] = ()) -> bool:
        """Say whether independence is accepted."""
        return self.p_value(x, y, given) > self.alpha

    def made(self) -> list[TestMade]:
        """Return the tests made so far, in their order."""
        names = self.names
        return [
            TestMade(names[x], names[y], tuple(names[z] for z in given), p, p > self.alpha)
            for (x, y, given), p in self.known.items()
        ]


def _ordered(query: Query) -> Query:
    x, y, given = query
    return (x, y, tuple(sorted(given))) if x < y else (y, x, tuple(sorted(given)))


class Oracle:
    """The truth instead of a test: separation in a graph, or independence in a distribution.

    Parameters
    ----------
    truth
        A `DAG`, a `MixedGraph`, a Bayesian network; a function of (x, y, given) with names; or a model whose
        distribution decides (`by="distribution"`).
    latent
        Nodes that are not observed.
    selection
        Nodes that every row is selected by.
    by
        "graph" or "distribution": what a model is asked.

    Examples
    --------
    >>> oracle = Oracle(DAG([("a", "b"), ("b", "c")]))
    >>> oracle.bind(None).independent(0, 2, [1])
    True
    """

    def __init__(self, truth: Any, latent: Names = (), selection: Names = (), by: str = "graph") -> None:
        self.truth = truth
        self.latent = tuple(as_names(latent))
        self.selection = tuple(as_names(selection))
        self.by = by
        if by not in ("graph", "distribution"):
            raise InvalidArgument(f"by= is 'graph' or 'distribution', not {by!r}")

    @property
    def observed(self) -> list[str]:
        """The variables that are seen."""
        hidden = {*self.latent, *self.selection}
        nodes = getattr(self.truth, "nodes", None)
        if nodes is None:
            nodes = getattr(self.truth, "variables", None)
        if nodes is None:
            raise InvalidArgument("an oracle that is a function does not name its variables; give names=")
        return [n for n in nodes if n not in hidden]

    def bind(self, data: StructureData | None, names: Sequence[str] | None = None) -> "CITest":
        """Return the test over the observed variables, or over the named ones."""
        return _OracleTest(list(names or self.observed), self._answer(), self.selection)

    def _answer(self) -> Callable[[str, str, list[str]], bool]:
        truth = self.truth
        if self.by == "distribution":
            return lambda x, y, given: _independent_in(truth, x, y, given)
        graph = truth if isinstance(truth, DAG | MixedGraph) else getattr(truth, "graph", None)
        if isinstance(graph, DAG):
            dag = graph
            return lambda x, y, given: d_separated(dag, x, y, given)
        if isinstance(graph, MixedGraph):
            mixed = graph
            return lambda x, y, given: mixed.m_separated(x, y, given)
        if callable(truth):
            return lambda x, y, given: bool(truth(x, y, given))
        raise InvalidArgument(f"an oracle is a graph, a model or a function, not {type(truth).__name__}")


def _independent_in(model: Any, x: str, y: str, given: list[str]) -> bool:
    """Say whether the model's own distribution makes two variables independent given others."""
    from itertools import product

    joint = model.query([x, y, *given])
    states = [model.states(n) for n in (x, y, *given)]
    table = np.array([joint[key] for key in product(*states)]).reshape([len(s) for s in states])
    flat = table.reshape(table.shape[0], table.shape[1], -1)
    both = flat * flat.sum(axis=(0, 1), keepdims=True)
    return bool(
        np.allclose(both, flat.sum(axis=1, keepdims=True) * flat.sum(axis=0, keepdims=True), atol=1e-10)
    )


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
    "g2": "table_tests:G2",
    "chi2": "table_tests:ChiSquare",
    "cmi": "permutation_information_test:PermutationCMI",
    "fisher-z": "fisher_z_test:FisherZ",
    "mixed": "mixed_test:MixedTest",
    "hsic": "kernel_ci_test:HSICTest",
    "kci": "kernel_ci_test:KCI",
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


def default_test(data: StructureData) -> str:
    """Return the name of the test for the kind of data."""
    return "g2" if data.discrete else "fisher-z" if data.continuous else "mixed"


def bind_test(test: Any, data: StructureData | None, names: Sequence[str]) -> CITest:
    """Return a test for data by name, specification, graph, or the default for the kind of data.

    A name may come with its level, as a pair.
    """
    if isinstance(test, CITest):
        return test
    if isinstance(test, DAG | MixedGraph) or isinstance(getattr(test, "graph", None), DAG | MixedGraph):
        test = Oracle(test)
    if isinstance(test, Oracle):
        return test.bind(data, names)
    if data is None:
        raise InvalidArgument("this test needs data")
    word, alpha = test if isinstance(test, tuple) else (test, None)
    if word is None or word == "auto":
        word = default_test(data)
    if isinstance(word, str):
        kind = named(word, TESTS, TEST_ALIASES, "test")
        word = kind() if alpha is None else kind(alpha=alpha)
    if not hasattr(word, "bind"):
        raise InvalidArgument(
            f"test= is a name such as 'g2', a test such as mk.ci_tests.G2(), or an oracle, not {word!r}"
        )
    found: CITest = word.bind(data)
    return found
