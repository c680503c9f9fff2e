"""Most probable states of pairwise models with many states, by moves that change many variables at once.

Method: *alpha-expansion* lets every variable keep its state or take state alpha; *alpha-beta swap* lets the
variables in state alpha or beta exchange them; *alpha-expansion beta-shrink* lets every variable take alpha and those that
have it take beta instead, which holds the moves of both. The best move of a kind is a minimum cut, and moves are made for
all states (pairs of states) in turn until none improves the weight, which never falls. Expansion moves need costs
(negative logs) with the triangle inequality `V(b,a) + V(a,c) >= V(b,c) + V(a,a)`; swaps need only `V(a,b) + V(b,a) >=
V(a,a) + V(b,b)`. Pairs that fail this are truncated in the move (Rother et al. 2005): the weight still never falls, but
the move need not be the best one. For metric costs with zeros on the diagonal the end of expansion moves has at most 2c
times the least cost, c the ratio of the largest to the smallest cost of different states (c = 1 for Potts); this bounds
the weight of every configuration.
References: Boykov, Veksler and Zabih (2001), "Fast approximate energy minimization via graph cuts"; Schmidt and Alahari
(2011) for shrinking.
Cost of a move: one minimum cut, about linear in the number of pairs on images.
Use it for segmentation, stereo and other labellings with few states; `trw-s` bounds better.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from markovia.errors import Unanswered
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.map_bounds.certified import Certified, answer, nothing, polished
from markovia.inference.map_bounds.flow_network import FlowNetwork
from markovia.inference.map_bounds.trw_s import PairSweeps
from markovia.inference.problem import Problem
from markovia.inference.result import Ranked, Record
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, FromZero, TimeLimit
from markovia.runtime.clock import now

Move = tuple[Ints, Ints, Ints]
Nonmetric = Literal["truncate", "refuse"]
ROUNDING = 1e-9


@dataclass(frozen=True)
class MoveDetails:
    """Moves made, pairs truncated in some move, and the energy after each move."""

    moves: int
    truncated: int
    energies: tuple[float, ...]


@dataclass(frozen=True)
class _Moves(Certified):
    """What the engines share; the fields are described with them."""

    nonmetric: Nonmetric = "truncate"
    max_iterations: Count = 100
    bound_sweeps: FromZero = 20
    time_limit: TimeLimit = None

    def _solve(self, problem: Problem) -> Ranked:
        """Return a configuration that no move improves."""
        deadline = np.inf if self.time_limit is None else now() + self.time_limit
        graph = flat_graph(problem)
        if graph.log_scale == -np.inf:
            return nothing()
        self._need_pairs(graph, "'dual-decomposition' or 'trw-s'")
        if self.nonmetric == "refuse":
            self._refuse_nonmetric(graph)
        sweeps = PairSweeps(graph)
        for _ in range(self.bound_sweeps):
            if not sweeps.there_and_back(deadline):
                break
        if sweeps.bound == -np.inf:
            return nothing()
        search = MoveSearch(graph, deadline)
        cycles, local = 0, False
        while cycles < self.max_iterations and not local and not search.late:
            cycles += 1
            before = search.energy
            for move in self._moves(graph, search):
                search.make(move)
                if search.late:
                    break
            local = not search.late and search.energy >= before
        bound = min(sweeps.bound, self._guarantee(graph, search) if local else np.inf)
        record = Record(
            converged=local,
            iterations=cycles,
            advice="raise max_iterations or time_limit",
            details=MoveDetails(search.moves, search.truncated, tuple(search.energies)),
        )
        return answer(graph, search.codes, bound, record)

    def _moves(self, graph: FlatGraph, search: "MoveSearch") -> Iterator[Move]:
        raise NotImplementedError

    def _guarantee(self, graph: FlatGraph, search: "MoveSearch") -> float:
        return np.inf

    def _refuse_nonmetric(self, graph: FlatGraph) -> None:
        fails: Callable[[Array], bool] = self._fails
        for f in range(graph.n_factors):
            with np.errstate(divide="ignore"):
                costs = -np.log(graph.table(f))
            if fails(costs):
                a, b = (graph.names[i] for i in graph.members(f))
                raise Unanswered(
                    f"the costs of {a!r} and {b!r} are no {self._needs}, which the moves of {self.name!r} need; use "
                    "nonmetric='truncate', or engine='trw-s'"
                )

    _needs: ClassVar[str] = "metric"

    @staticmethod
    def _fails(costs: Array) -> bool:
        raise NotImplementedError


@dataclass(frozen=True)
class AlphaExpansion(_Moves):
    """Most probable states of pairwise models by alpha-expansion moves.

    `info.details` has `moves` (made), `truncated` (pairs truncated in some move; zero means that every move was the best
    of its kind) and `energies` (the negative log weight after each move).

    Parameters
    ----------
    nonmetric
        What to do with pairs whose costs break the triangle inequality: "truncate" them in the move, which loses
        the guarantee, or "refuse" the model.
    max_iterations
        Rounds over all states at most.
    bound_sweeps
        Sweeps of `trw-s` for the bound; zero for none.
    time_limit
        Seconds after which the best configuration so far is returned.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.generators.potts_grid(8, 8, 4, coupling=0.6, field="random", seed=0)
    >>> found = model.map(engine="alpha-expansion")
    >>> found.info.details.truncated, found.log_weight <= found.bound
    (0, True)
    """

    name: ClassVar[str] = "alpha-expansion"

    def _moves(self, graph: FlatGraph, search: "MoveSearch") -> Iterator[Move]:
        zero = np.zeros(len(graph.cards), dtype=np.int64)
        for alpha in range(int(graph.cards.max(initial=1))):
            yield search.codes, np.where(graph.cards > alpha, alpha, search.codes), zero

    def _guarantee(self, graph: FlatGraph, search: "MoveSearch") -> float:
        ratio = _metric_ratio(graph)
        cost = graph.log_scale - graph.log_weight(search.codes)
        return graph.log_scale - cost / (2 * ratio) if np.isfinite(ratio) else np.inf

    @staticmethod
    def _fails(costs: Array) -> bool:
        if costs.shape[0] != costs.shape[1] or np.isinf(costs).any():
            return True
        via = costs[:, :, None] + costs[None, :, :]  # b to a, a to c
        direct = costs[:, None, :] + np.diagonal(costs)[None, :, None]
        return bool(np.any(via - direct < -ROUNDING * (1.0 + np.abs(costs).max())))


@dataclass(frozen=True)
class AlphaExpansionBetaShrink(AlphaExpansion):
    """Most probable states of pairwise models by alpha-expansion beta-shrink moves.

    The answer is one that no expansion and no swap improves either; a round makes a move for each pair of states.

    Parameters
    ----------
    nonmetric, max_iterations, bound_sweeps, time_limit
        As in `AlphaExpansion`; rounds are over all pairs of states.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.generators.potts_grid(8, 8, 4, coupling=0.6, field="random", seed=0)
    >>> found = model.map(engine="expansion-shrink")
    >>> found.log_weight >= model.map(engine="alpha-expansion").log_weight, found.log_weight <= found.bound
    (True, True)
    """

    name: ClassVar[str] = "expansion-shrink"

    def _moves(self, graph: FlatGraph, search: "MoveSearch") -> Iterator[Move]:
        states = range(int(graph.cards.max(initial=1)))
        for alpha in states:
            for beta in states:
                codes = search.codes
                inside = codes == alpha
                shrinks = inside & (graph.cards > beta)
                # where nobody can shrink, one move for each alpha is the plain expansion
                plain = beta == alpha and not (inside & (graph.cards > 1)).any()
                if plain or (beta != alpha and shrinks.any()):
                    expanded = np.where(graph.cards > alpha, alpha, codes)
                    yield np.where(shrinks, beta, codes), expanded, inside.astype(np.int64)


@dataclass(frozen=True)
class AlphaBetaSwap(_Moves):
    """Most probable states of pairwise models by alpha-beta swap moves.

    Parameters
    ----------
    nonmetric
        What to do with pairs whose costs are no semi-metric: "truncate" them in the move, or "refuse" the model.
    max_iterations
        Rounds over all pairs of states at most.
    bound_sweeps
        Sweeps of `trw-s` for the bound; zero for none.
    time_limit
        Seconds after which the best configuration so far is returned.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.generators.potts_grid(8, 8, 3, coupling=0.6, field="random", seed=0)
    >>> found = model.map(engine="alpha-beta-swap")
    >>> found.info.details.truncated, found.log_weight <= found.bound
    (0, True)
    """

    name: ClassVar[str] = "alpha-beta-swap"
    _needs: ClassVar[str] = "semi-metric"

    def _moves(self, graph: FlatGraph, search: "MoveSearch") -> Iterator[Move]:
        for alpha, beta in combinations(range(int(graph.cards.max(initial=1))), 2):
            codes = search.codes
            inside = (graph.cards > beta) & ((codes == alpha) | (codes == beta))
            if inside.any():
                zero, one = np.where(inside, alpha, codes), np.where(inside, beta, codes)
                yield zero, one, (inside & (codes == beta)).astype(np.int64)

    @staticmethod
    def _fails(costs: Array) -> bool:
        if costs.shape[0] != costs.shape[1] or np.isinf(costs).any():
            return True
        own = np.diagonal(costs)
        both = costs + costs.T - own[:, None] - own[None, :]
        return bool(np.any(both < -ROUNDING * (1.0 + np.abs(costs).max())))


class MoveSearch:
    """The present configuration and the network in which moves are solved.

    Impossible entries get a cost above the sum of all others, so that a configuration of positive weight is found
    where moves can.
    """

    def __init__(self, graph: FlatGraph, deadline: float = np.inf, start: Ints | None = None) -> None:
        self.graph = graph
        self.deadline = deadline
        spread = float(-graph.log_unary[np.isfinite(graph.log_unary)].sum())
        spread -= float(graph.log_values[np.isfinite(graph.log_values)].sum())
        forbidden = min(spread + 1.0, 1e9)
        self.unary = np.where(np.isinf(graph.log_unary), forbidden, -graph.log_unary)
        self.costs = np.where(np.isinf(graph.log_values), forbidden, -graph.log_values)
        self.left, self.right = graph.scope[0::2].copy(), graph.scope[1::2].copy()
        self.stride = graph.strides[0::2].copy()
        self.network = FlowNetwork(len(graph.cards), self.left, self.right)
        if start is None:
            start = polished(graph, graph.largest_states(graph.unary))
        self.codes: Ints = start
        self.energy = self.cost(start)
        self.energies = [self.energy]
        self.moves = self.truncated = 0
        self.late = False

    def cost(self, codes: Ints) -> float:
        """Return the sum of all costs of a configuration."""
        total = float(self.unary[self.graph.starts[:-1] + codes].sum())
        where = self.graph.table_ptr[:-1] + codes[self.left] * self.stride + codes[self.right]
        return total + float(self.costs[where].sum())

    def make(self, move: Move) -> bool:
        """Make the best move in which each variable takes one of two states, if it lowers the cost.

        Parameters
        ----------
        move
            The two states of each variable, and which of them (0 or 1) is the present one.
        """
        from markovia.kernels.maximising.max_flow import move_costs

        zero, one, present = (np.ascontiguousarray(part) for part in move)
        graph, network = self.graph, self.network
        cap, terminal = np.zeros(len(network.head)), np.zeros(len(zero))
        self.truncated += int(
            move_costs(
                (zero, one, present), (graph.starts, self.unary, graph.table_ptr, self.costs),
                (self.left, self.right, self.stride), (network.place, network.rev), cap, terminal,
            )
        )  # fmt: skip
        cut = network.solve(cap, terminal, self.deadline)
        self.late = now() > self.deadline
        if not cut.finished:
            return False
        codes = np.where(cut.ones == 1, one, zero)
        energy = self.cost(codes)
        if energy >= self.energy - ROUNDING * max(1.0, abs(self.energy)) * 1e-3:
            return False
        self.codes, self.energy = codes, energy
        self.energies.append(energy)
        self.moves += 1
        return True


def _metric_ratio(graph: FlatGraph) -> float:
    """Return the largest c of all pairs if all are metrics with zeros on the diagonal; infinity if not."""
    if not graph.n_factors:
        return 1.0
    if np.any(graph.cards != graph.cards[0]) or np.isinf(graph.log_values).any() or graph.cards[0] == 1:
        return np.inf
    k = int(graph.cards[0])
    costs = -graph.log_values.reshape(-1, k, k)
    own = np.diagonal(costs, axis1=1, axis2=2)
    other = costs[:, ~np.eye(k, dtype=bool)]
    if np.abs(own).max() > ROUNDING or np.abs(costs - costs.transpose(0, 2, 1)).max() > ROUNDING:
        return np.inf
    if np.ptp(other, axis=1).max() <= ROUNDING:
        return 1.0
    for a in range(k):
        if np.any(costs[:, :, a, None] + costs[:, None, a, :] < costs - ROUNDING):
            return np.inf
    least, most = other.min(axis=1), other.max(axis=1)
    used = most > ROUNDING
    return float((most[used] / np.maximum(least[used], 1e-300)).max(initial=1.0))
