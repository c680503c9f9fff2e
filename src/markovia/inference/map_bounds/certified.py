"""From a dual solution to a configuration with a certificate: what the bounding engines share.

A configuration is polished by changing one variable at a time while that helps (Besag 1986), and its weight is
compared with the bound: where they meet, the configuration is proved to be a best one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from markovia.errors import Unanswered
from markovia.inference.approximate import Approximate
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.impossible_evidence import impossible
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Ranked, Record
from markovia.runtime.array_types import Flags, Ints

PROOF = 1e-9
"""A gap this small beside the size of the numbers is rounding."""


class Certified(Approximate):
    """Base of engines that maximise over all variables and bound the weight of every configuration."""

    answers: ClassVar[frozenset[str]] = frozenset({"best"})

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the best configuration that was found, with a bound; none if nothing is possible.

        Raises
        ------
        ImpossibleEvidence
            If the findings rule everything out, with those that contradict each other.
        """
        self._refuse_parts(problem, targets, m)
        found = self._solve(problem)
        if not found and problem.findings:
            raise impossible(problem, lambda some: 0.0 if self._solve(some) else -np.inf)
        return found

    def _solve(self, problem: Problem) -> Ranked:
        """Answer what is plain; the search has a graph of some variables and positive tables."""
        graph = flat_graph(problem)
        if graph.log_scale == -np.inf:
            return nothing()
        if not len(graph.cards):
            return answer(graph, np.zeros(0, dtype=np.int64), graph.log_scale, Record())
        return self._search(graph)

    def _search(self, graph: FlatGraph) -> Ranked:
        raise NotImplementedError

    def _need_pairs(self, graph: FlatGraph, others: str) -> None:
        """Refuse a graph with factors of three or more variables; `others` are engines that take it."""
        if len(graph.arity) and graph.arity.max() > 2:
            arity = next(k for k in graph.arity if k > 2)
            raise Unanswered(
                f"engine {self.name!r} needs factors of at most two variables, but one has {arity}; use engine={others}"
            )


def answer(graph: FlatGraph, codes: Ints, bound: float, record: Record) -> Ranked:
    """Return a configuration with its log weight and bound; it is exact where the two meet."""
    value = graph.log_weight(codes) if len(codes) else graph.log_scale
    exact = proved(graph, value, bound)
    if exact:
        record = replace(record, exact=True, bound=value, converged=True, error=0.0)
    else:
        record = replace(record, exact=False, bound=max(bound, value))
    return Ranked([Assignment(graph.assignment(codes), value)], record)


def nothing() -> Ranked:
    """Return the answer that every configuration has weight zero."""
    return Ranked(record=Record(exact=True, bound=-np.inf))


def proved(graph: FlatGraph, value: float, bound: float) -> bool:
    """Say whether a log weight meets its bound up to rounding."""
    if value == -np.inf:
        return False
    size = max(1.0, abs(value), abs(graph.log_scale), abs(value - graph.log_scale))
    return bool(bound - value <= PROOF * size)


def polished(graph: FlatGraph, codes: Ints, fixed: Flags | None = None) -> Ints:
    """Change one variable at a time while that helps; `fixed` ones stay."""
    from markovia.kernels.maximising.single_changes import climb

    found = np.array(codes, dtype=np.int64)
    held = np.zeros(len(found), dtype=np.int8) if fixed is None else np.asarray(fixed).astype(np.int8)
    if graph.n_factors:
        scores, queue = np.zeros(int(graph.cards.max())), np.empty(len(found), dtype=np.int64)
        climb(graph.log_arrays, found, held, scores, queue, np.zeros_like(held))
    elif len(found):
        found = np.where(held, found, graph.largest_states(graph.log_unary))
    return found
