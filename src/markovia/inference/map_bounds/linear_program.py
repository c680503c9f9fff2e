"""The linear program behind most probable states, solved by HiGHS; also as an integer program.

Method: a configuration is a 0/1 vector with one entry for each state of each variable and each entry of each table.
Allowing fractions, with tables that agree with their variables (the *local polytope*), gives a linear program whose
value bounds the log weight of every configuration. Where the solution is integral it is a best configuration; on
trees, and on submodular binary models, it is. Otherwise it is rounded and polished. With `integer=True` the solver
branches until the optimum is proved.
References: Schlesinger (1976); Wainwright and Jordan (2008), section 8; Huangfu and Hall (2018) for HiGHS.
Cost: that of a sparse linear program with one column for each possible entry of each table: thousands of variables,
not images.
Use it as the reference for the bounds of message passing, or with `integer=True` to prove optimality on medium
models.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovia.errors import TooLarge
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.map_bounds.certified import (
    Certified,
    answer,
    nothing,
    polished,
)
from markovia.inference.problem import Problem
from markovia.inference.result import Ranked, Record
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, TimeLimit
from markovia.runtime.clock import now

INTEGRAL = 1e-6


@dataclass(frozen=True)
class ProgramDetails:
    """The share of variables with an integral solution, the value of the program, and its shares of states by name."""

    integral: float
    value: float | None = None
    marginals: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class LinearProgram(Certified):
    """Most probable states by linear programming over the local polytope, with a bound and an integrality report.

    `info.details` has `value` (that of the program), `integral` (the share of variables with an integral solution), and
    `marginals`, the solution itself as a dictionary from name to an array over states.

    Parameters
    ----------
    integer
        Solve the integer program: exact if it ends in time.
    max_entries
        The most entries of tables that are tried.
    time_limit
        Seconds for the solver.

    Examples
    --------
    >>> import markovia as mk
    >>> chain = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[1, 5], [2, 3]])])
    >>> found = chain.map(engine="linear-program")
    >>> found.to_dict(), found.info.exact, found.info.details.integral
    ({'a': 0, 'b': 1}, True, 1.0)
    """

    integer: bool = False
    max_entries: Count = 2_000_000
    time_limit: TimeLimit = None

    name: ClassVar[str] = "linear-program"

    def _solve(self, problem: Problem) -> Ranked:
        """Return the rounded solution with the program's value as bound."""
        start = now()
        graph = flat_graph(problem)
        if graph.log_scale == -np.inf:
            return nothing()
        if not len(graph.cards):
            record = Record(details=ProgramDetails(1.0))
            return answer(graph, np.zeros(0, dtype=np.int64), graph.log_scale, record)
        entries = len(graph.values) + len(graph.unary)
        if entries > self.max_entries:
            raise TooLarge(
                f"the linear program has {entries:,} columns, over max_entries={self.max_entries:,}; "
                "use engine='trw-s' or 'dual-decomposition'"
            )
        left = None if self.time_limit is None else max(self.time_limit - (now() - start), 0.01)
        return self._answer(graph, _solved(graph, self.integer, left))

    def _answer(self, graph: FlatGraph, found: "_Solution") -> Ranked:
        if found.impossible:
            return nothing()
        shares = found.shares
        if shares is None:
            late = Record(
                converged=False,
                advice="the solver had too little time; raise time_limit",
                details=ProgramDetails(0.0),
            )
            start = graph.largest_states(graph.unary)
            return answer(graph, polished(graph, start), found.bound + graph.log_scale, late)
        codes = graph.largest_states(shares)
        peaks = np.maximum.reduceat(shares, graph.starts[:-1])
        integral = float(np.mean(peaks > 1.0 - INTEGRAL))
        if graph.log_weight(codes) == -np.inf or integral < 1.0:
            codes = polished(graph, codes)
        record = Record(
            converged=found.finished,
            advice="a longer time_limit lets the solver finish",
            details=ProgramDetails(integral, found.value + graph.log_scale, graph.by_name(shares)),
        )
        return answer(graph, codes, found.bound + graph.log_scale, record)


class _Solution(NamedTuple):
    """What the solver says: the shares of states, the value and bound without the scale, and whether it ended."""

    shares: Array | None
    value: float
    bound: float
    finished: bool
    impossible: bool


def _solved(graph: FlatGraph, integer: bool, seconds: float | None) -> _Solution:
    """Build the program and run HiGHS; entries of weight zero have no column."""
    from scipy.optimize import Bounds, LinearConstraint, linprog, milp

    matrix, right, gains, states = _program(graph)
    if matrix is None:
        return _Solution(None, -np.inf, -np.inf, True, True)
    options: dict[str, Any] = {} if seconds is None else {"time_limit": seconds}
    upper = 0.0  # every gain is at most zero
    if integer:
        whole = np.zeros(len(gains), dtype=np.int64)
        whole[: len(states)] = 1
        found = milp(
            -gains,
            integrality=whole,
            bounds=Bounds(0.0, 1.0),
            constraints=LinearConstraint(matrix, right, right),
            options={**options, "mip_rel_gap": 0.0},
        )
        lowest = getattr(found, "mip_dual_bound", None)
        bound = upper if lowest is None or not np.isfinite(lowest) else min(upper, -float(lowest))
    else:
        found = linprog(-gains, A_eq=matrix, b_eq=right, bounds=(0.0, 1.0), method="highs", options=options)
        bound = min(upper, -float(found.fun)) if found.status == 0 else upper
    if found.status == 2:
        return _Solution(None, -np.inf, -np.inf, True, True)
    if found.x is None:
        return _Solution(None, -np.inf, bound, False, False)
    shares = np.zeros(len(graph.unary))
    shares[states] = np.clip(found.x[: len(states)], 0.0, 1.0)
    return _Solution(shares, -float(found.fun), bound, found.status == 0, False)


def _program(graph: FlatGraph) -> tuple[Any, Array, Array, Ints]:
    """Return the equations (None if a variable has no state), right sides, gains, and the states with columns."""
    from scipy.sparse import csr_matrix

    states = np.flatnonzero(graph.unary > 0)
    owner = np.repeat(np.arange(len(graph.cards)), graph.cards)
    column = np.full(len(graph.unary), -1, dtype=np.int64)
    column[states] = np.arange(len(states))
    entries = np.flatnonzero(graph.values > 0)
    entry_column = np.full(len(graph.values), -1, dtype=np.int64)
    entry_column[entries] = len(states) + np.arange(len(entries))
    gains = np.concatenate([graph.log_unary[states], graph.log_values[entries]])
    # one row a variable: its states add up to one; one row an edge and state: the table agrees with the variable
    n, cards = len(graph.cards), graph.cards[graph.scope]
    row_ptr = n + np.concatenate(([0], np.cumsum(cards)))
    sizes = np.diff(graph.table_ptr)[graph.edge_factor]
    edge = np.repeat(np.arange(len(graph.scope)), sizes)
    within = np.arange(len(edge)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    state = within // graph.strides[edge] % cards[edge]
    columns = entry_column[graph.table_ptr[graph.edge_factor[edge]] + within]
    used = columns >= 0
    rows = [owner[states], (row_ptr[edge] + state)[used]]
    where = [np.arange(len(states)), columns[used]]
    signs = [np.ones(len(states)), np.ones(int(used.sum()))]
    edge_state = np.repeat(np.arange(len(graph.scope)), cards)
    inner = np.arange(len(edge_state)) - np.repeat(np.cumsum(cards) - cards, cards)
    variable_column = column[graph.starts[graph.scope[edge_state]] + inner]
    has = variable_column >= 0
    rows.append((row_ptr[edge_state] + inner)[has])
    where.append(variable_column[has])
    signs.append(np.full(int(has.sum()), -1.0))
    shape = (int(row_ptr[-1]) if len(graph.scope) else n, len(gains))
    matrix = csr_matrix((np.concatenate(signs), (np.concatenate(rows), np.concatenate(where))), shape=shape)
    right = np.zeros(shape[0])
    right[:n] = 1.0
    if len(np.unique(owner[states])) < n:
        return None, right, gains, states
    return matrix, right, gains, states
