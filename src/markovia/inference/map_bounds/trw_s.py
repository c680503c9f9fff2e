"""Sequential tree-reweighted message passing: most probable states with an upper bound.

Method: the model is a weighted sum of monotone chains along an order of the variables; messages run along the order
and back, and after each sweep the sum of the chains' maxima bounds the weight of every configuration. The bound
never rises; its limit is at least the optimum of the local linear program and often equal to it. Some sweeps also
decode a configuration, which is then polished by single changes. Factors of more than two variables are handled by
the same scheme on tables (SRMP).
References: Kolmogorov (2006), "Convergent tree-reweighted message passing for energy minimization"; Kolmogorov
(2015) for larger factors.
Cost of a sweep: the entries of all tables, once.
Use it as the default for most probable states of pairwise models too wide for exact search: stereo, segmentation,
grids. On trees and on submodular binary models the bound falls to the optimum. `dual-decomposition` can close gaps that it
leaves.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.map_bounds.certified import Certified, answer, nothing, polished, proved
from markovia.inference.map_bounds.dual_regions import Regions
from markovia.inference.problem import Problem
from markovia.inference.result import Ranked, Record
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import CountOrNone, TimeLimit, Tolerance
from markovia.runtime.clock import now

ITERATIONS = 1000
"""Iterations at most where neither their number nor the time is limited."""
CHUNK = 500_000
"""Table entries between two looks at the clock."""


@dataclass(frozen=True)
class TRWS(Certified):
    """Most probable states by sequential tree-reweighted message passing, with a bound.

    Parameters
    ----------
    max_iterations
        Sweeps there and back at most; by default 1000, or as many as fit into the time limit.
    tolerance
        Stop when a sweep lowers the bound by less than this, relative to the size of the gap and never less than
        rounding.
    time_limit
        Seconds after which the best configuration so far is returned.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.generators.potts_grid(6, 6, 3, coupling=0.5, field="random", seed=0)
    >>> found = model.map(engine="trw-s")
    >>> found.log_weight <= found.bound
    True
    """

    max_iterations: CountOrNone = None
    tolerance: Tolerance = 1e-5
    time_limit: TimeLimit = None

    name: ClassVar[str] = "trw-s"

    def _solve(self, problem: Problem) -> Ranked:
        """Return the best configuration that was found, with a bound."""
        deadline = np.inf if self.time_limit is None else now() + self.time_limit
        graph = flat_graph(problem)
        if graph.log_scale == -np.inf:
            return nothing()
        sweeps: Any = PairSweeps(graph) if np.all(graph.arity == 2) else Regions(graph)
        most = iteration_limit(self.max_iterations, self.time_limit)
        return run(sweeps, TreeReweightedSearch(graph), most, self.tolerance, deadline)


def run(
    sweeps: Any, search: "TreeReweightedSearch", max_iterations: float, tolerance: float, deadline: float
) -> Ranked:
    """Sweep until the gap is closed, the bound rests, or time is up; return the answer."""
    trace: list[float] = []
    rests, iteration = False, 0
    while iteration < max_iterations:
        iteration += 1
        finished = sweeps.there_and_back(deadline)
        if sweeps.bound == -np.inf:
            return nothing()
        trace.append(sweeps.bound)
        if iteration < 4 or iteration % 4 == 0 or not finished:
            search.offer(sweeps.decoded())
        if search.done(sweeps.bound) or not finished or now() > deadline:
            break
        if iteration >= 4 and trace[-4] - trace[-1] <= 3 * tolerance * search.gap(sweeps.bound):
            rests = True
            break
    for _ in range(2):
        search.offer(sweeps.decoded())
    details = DualDetails(tuple(trace))
    return search.answer(sweeps.bound, iteration, rests, details, "engine='dual-decomposition'")


@dataclass(frozen=True)
class DualDetails:
    """The bound after each iteration, and the clusters that were added to tighten it."""

    bounds: tuple[float, ...]
    clusters: int = 0


class TreeReweightedSearch:
    """The best configuration so far."""

    def __init__(self, graph: FlatGraph) -> None:
        self.graph = graph
        self.codes = np.zeros(len(graph.cards), dtype=np.int64)
        self.value = -np.inf
        self._seen: bytes | None = None

    def offer(self, codes: Ints) -> None:
        """Polish a configuration and keep it if it is better."""
        key = codes.tobytes()
        if key == self._seen:
            return
        self._seen = key
        found = polished(self.graph, codes)
        value = self.graph.log_weight(found)
        if value > self.value or self.value == -np.inf:
            self.codes, self.value = found, value

    def done(self, bound: float) -> bool:
        """Say whether the best configuration is proved to be one."""
        return proved(self.graph, self.value, bound)

    def gap(self, bound: float) -> float:
        """Return how far the bound is above the best value, at least one rounding."""
        if self.value == -np.inf:
            return max(1.0, abs(bound))
        return max(bound - self.value, 1e-9 * max(1.0, abs(self.value)))

    def answer(self, bound: float, iterations: int, rests: bool, details: DualDetails, other: str) -> Ranked:
        """Return the best configuration with its certificate; `other` is the engine to try besides more time."""
        record = Record(
            converged=rests,
            iterations=iterations,
            error=max(bound - self.value, 0.0),
            advice=f"more time or iterations, or {other}, lower the bound",
            details=details,
        )
        return answer(self.graph, self.codes, bound, record)


class PairSweeps:
    """The messages of a pairwise model and the bound they prove."""

    def __init__(self, graph: FlatGraph) -> None:
        from markovia.kernels.maximising.dual_sweeps import Links

        self.graph = graph
        n = len(graph.cards)
        other_edge = np.arange(len(graph.scope)) ^ 1
        links = np.lexsort((graph.scope[other_edge], graph.scope))
        self.links = links
        self.owner = graph.scope[links]
        self.others = graph.scope[other_edge[links]]
        self.ends = np.searchsorted(self.owner, np.arange(n + 1)).astype(np.int64)
        earlier = np.bincount(self.owner, weights=self.others < self.owner, minlength=n).astype(np.int64)
        self.splits = self.ends[:-1] + earlier
        arrives = np.concatenate(([0], np.cumsum(graph.cards[self.owner]))).astype(np.int64)
        link_of = np.empty(len(links), dtype=np.int64)
        link_of[links] = np.arange(len(links))
        factor = graph.edge_factor[links]
        self.incoming = np.zeros(int(arrives[-1]))
        self.peaks = np.zeros(n)
        self.codes = np.zeros(n, dtype=np.int64)
        later = np.diff(self.ends) - earlier
        self.shares = 1.0 / np.maximum(np.maximum(later, earlier), 1.0)
        self.arrays = Links(
            self.shares, graph.starts, graph.log_unary, graph.log_values, self.ends, self.splits, self.others,
            arrives[link_of[other_edge[links]]], arrives[:-1], graph.table_ptr[factor], (links % 2).astype(np.int8),
            _potts(graph)[factor].astype(np.int8), self.incoming, self.peaks, self.codes,
            *np.zeros((2, int(graph.cards.max(initial=1)))),
        )  # fmt: skip
        self.bound = graph.log_scale
        work = graph.table_ptr[-1] / max(n, 1)
        self.step = max(1, int(CHUNK / max(work, 1.0)))
        self.fresh = self.greedy = False

    def there_and_back(self, deadline: float = np.inf) -> bool:
        """Sweep along the order and back; the bound never rises. False if time ran out first."""
        self.fresh = False
        return self._one_way(True, deadline) and self._one_way(False, deadline)

    def _one_way(self, forward: bool, deadline: float, decoding: bool = False) -> bool:
        from markovia.kernels.maximising.dual_sweeps import sweep_pairs

        graph, n = self.graph, len(self.codes)
        for done in range(0, n, self.step):
            if done and now() > deadline:
                return False
            low, high = (
                (done, min(done + self.step, n)) if forward else (max(n - done - self.step, 0), n - done)
            )
            if not sweep_pairs(self.arrays, low, high, forward, decoding):
                self.bound = -np.inf
                return False
        self.bound = min(self.bound, graph.log_scale + float(self.peaks.sum()))
        return True

    def reparametrised(self) -> tuple[Array, Array]:
        """Return log potentials of states and what is added to each link's table, after a sweep there and back.

        The second array has one number for each state of each edge of the flat graph, edges in order.
        """
        graph = self.graph
        states = ranges(graph.starts[self.owner], graph.cards[self.owner])
        belief = graph.log_unary.copy()
        np.add.at(belief, states, self.incoming)
        belief -= np.repeat(self.peaks, graph.cards)
        earlier = self.splits - self.ends[:-1]
        kept = np.repeat(np.maximum(1.0 - earlier * self.shares, 0.0), graph.cards)
        share = np.where(self.others < self.owner, self.shares[self.owner], 0.0)
        with np.errstate(invalid="ignore"):
            dead = np.isneginf(belief)
            potentials = np.where(dead, -np.inf, kept * belief)
            sent = np.repeat(share, graph.cards[self.owner]) * belief[states] - self.incoming
        sent[dead[states]] = -np.inf
        by_edge = np.empty_like(sent)
        sizes = graph.cards[graph.scope]
        begins = np.cumsum(sizes) - sizes
        by_edge[ranges(begins[self.links], sizes[self.links])] = sent
        return potentials, by_edge

    def decoded(self) -> Ints:
        """Return the configuration that one more sweep decodes and, in turn with it, the best state of each belief."""
        self.greedy = not self.greedy
        if self.greedy:
            if not self.fresh:
                self.fresh = self._one_way(True, np.inf, decoding=True)
            return self.codes.copy()
        belief = self.graph.log_unary.copy()
        np.add.at(belief, ranges(self.graph.starts[self.owner], self.graph.cards[self.owner]), self.incoming)
        return self.graph.largest_states(belief)


def pair_places(graph: FlatGraph) -> tuple[Ints, Ints]:
    """Return for each entry of the tables of pairs the places of its two states among the states of all edges."""
    sizes = graph.cards[graph.scope]
    begins, columns = np.cumsum(sizes) - sizes, sizes[1::2]
    pair = np.repeat(np.arange(graph.n_factors), np.diff(graph.table_ptr))
    row, column = np.divmod(np.arange(len(graph.values)) - graph.table_ptr[pair], columns[pair])
    return begins[0::2][pair] + row, begins[1::2][pair] + column


def ranges(begins: Ints, sizes: Ints) -> Ints:
    """Return begin, begin + 1, ... for each range, one after the other."""
    total = np.cumsum(sizes)
    found: Ints = np.arange(int(total[-1]) if len(total) else 0) + np.repeat(begins - (total - sizes), sizes)
    return found


def _potts(graph: FlatGraph) -> NDArray[np.bool_]:
    """Say which factors have one value where the two states are equal and another, no larger one where they are not."""
    left, right = graph.cards[graph.scope[0::2]], graph.cards[graph.scope[1::2]]
    found = np.zeros(graph.n_factors, dtype=np.bool_)
    for card in np.unique(left[(left == right) & (left > 2)]).tolist():
        which = np.flatnonzero((left == card) & (right == card))
        tables = graph.log_values[graph.table_ptr[which][:, None] + np.arange(card * card)].reshape(
            -1, card, card
        )
        same, other = tables[:, 0, 0], tables[:, 0, 1]
        wanted = np.where(np.eye(card, dtype=bool), same[:, None, None], other[:, None, None])
        found[which] = (tables == wanted).all(axis=(1, 2)) & (same >= other)
    return found


def iteration_limit(max_iterations: int | None, time_limit: float | None) -> float:
    """Return how many iterations to make at most."""
    if max_iterations is not None:
        return max_iterations
    return ITERATIONS if time_limit is None else np.inf
