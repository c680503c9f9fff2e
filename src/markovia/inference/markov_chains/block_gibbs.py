"""Block Gibbs sampling: several variables at once are drawn exactly from their joint distribution given the rest.

Blocks that induce a forest are drawn by forward filtering and backward sampling (Hamze and de Freitas 2004 for trees in
grids), in O(states**2) a link; small ones by enumeration; others by exact inference. `blocks="trees"` draws new random
forests each sweep: greedily, in random order, each variable that closes no loop joins; on a square lattice that is about
two thirds of the variables, and the rest follows in a second forest. Use blocks where neighbours are strongly coupled:
single-variable updates then move slowly, or not at all where only several changes together keep a positive weight.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from markovia.errors import InvalidArgument, check_known
from markovia.factors.tables.evidence import read_finding
from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.markov_chains.chain_runs import ChainSetUp, Stepper
from markovia.kernels.sampling.sampler_records import DrawPlan
from markovia.runtime.array_types import Ints

if TYPE_CHECKING:
    from markovia.kernels.sampling.chains import Chain
    from markovia.kernels.sampling.forest_draws import ForestArrays

Blocks = None | Literal["auto", "red-black", "trees"] | Sequence[Sequence[str]]
MOST_STATES = 1024
"""Joint states up to which a block is drawn by enumeration."""


def check_blocks(blocks: object) -> None:
    """Refuse what is neither None, a known name, nor a list of lists of names."""
    if blocks is None or (isinstance(blocks, str) and blocks in ("auto", "red-black", "trees")):
        return
    fine = (
        isinstance(blocks, list | tuple)
        and len(blocks) > 0
        and all(isinstance(b, list | tuple) and b and all(isinstance(n, str) for n in b) for b in blocks)
    )
    if not fine:
        raise InvalidArgument(
            "blocks= is None, 'auto', 'red-black', 'trees' or a list of lists of names such as [['a', 'b'], ['c']], "
            f"not {blocks!r}"
        )
    assert isinstance(blocks, list | tuple)
    for block in blocks:
        if len(set(block)) < len(block):
            raise InvalidArgument(f"a block names each variable once, not {list(block)!r}")


def two_colours(graph: FlatGraph) -> list[Ints]:
    """Return the two sides of a bipartite graph.

    Raises
    ------
    InvalidArgument
        If some variables that share tables form an odd cycle.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import breadth_first_order

    ptr, other = graph.neighbours()
    n = len(graph.variables)
    side = np.full(n, -1, dtype=np.int64)
    links = csr_matrix((np.ones(len(other), dtype=np.int8), other, ptr), shape=(n, n))
    for i in range(n):
        if side[i] >= 0:
            continue
        if ptr[i] == ptr[i + 1]:
            side[i] = 0
            continue
        nodes, before = breadth_first_order(links, i, directed=False)
        side[i] = 0
        for v in nodes[1:]:
            side[v] = 1 - side[before[v]]
    rows = np.repeat(np.arange(n), np.diff(ptr))
    clash = np.flatnonzero(side[rows] == side[other])
    if len(clash):
        a, b = graph.names[rows[clash[0]]], graph.names[other[clash[0]]]
        raise InvalidArgument(
            f"blocks='red-black' needs a bipartite graph, but {a!r} and {b!r} lie on an odd cycle (a table over three "
            "variables makes one); use scan='chromatic' or blocks='trees'"
        )
    return [np.flatnonzero(side == s) for s in (0, 1) if (side == s).any()]


def make_blocks(blocks: Blocks, run: ChainSetUp) -> "BlockStepper":
    """Return the transition for `blocks="trees"` or given blocks."""
    if isinstance(blocks, str) or blocks is None:
        return BlockStepper(run, None)
    graph = run.graph
    listed: list[Ints] = []
    for block in blocks:
        check_known(block, run.problem.variables)
        # observed variables, and those that do not matter to the question, need no update
        inside = [graph.index[name] for name in block if name in graph.index]
        if inside:
            listed.append(np.array(inside, dtype=np.int64))
    covered = np.concatenate([np.zeros(0, dtype=np.int64), *listed])
    rest = np.setdiff1d(np.arange(len(graph.variables)), covered)
    listed.extend([np.array([i], dtype=np.int64) for i in rest])
    return BlockStepper(run, listed)


class BlockStepper(Stepper):
    """Updates of forests and other blocks."""

    def __init__(self, run: ChainSetUp, blocks: list[Ints] | None) -> None:
        super().__init__(run)
        self.graph, self.trees = run.graph, blocks is None
        self.forests = [forest_room(run.graph) for _ in run.seeds]
        self.generators = [np.random.default_rng(s.spawn(1)[0]) for s in run.seeds]
        self.wide: list[Ints] = []
        listed: list[Ints] = []
        kinds: list[int] = []
        touching: list[Ints] = []
        for block in blocks or []:
            kind = self._kind(block)
            if kind is None:
                self.wide.append(block)
                continue
            listed.append(block)
            kinds.append(kind)
            touching.append(self._touching(block))
        self.ptr, self.members = _flat(listed)
        self.factor_ptr, self.factors = _flat(touching)
        self.kinds = np.array(kinds, dtype=np.int64)
        self.forest_share: float | None = None
        self.drawn_by: dict[str, int] | None = None
        if not self.trees:
            forests = int((self.kinds == 0).sum())
            self.drawn_by = {
                "forests": forests,
                "enumerated": len(kinds) - forests,
                "exact inference": len(self.wide),
            }

    def advance(self, number: int, chain: "Chain", plan: DrawPlan) -> None:
        """Make draws; see `Stepper`."""
        from markovia.kernels.sampling.chains import log_weight
        from markovia.kernels.sampling.forest_draws import run_blocks, sweep_blocks

        listed = (self.ptr, self.members, self.kinds, self.factor_ptr, self.factors)
        room = self.forests[number]
        if not self.wide:
            run_blocks(self.arrays, chain, room, self.trees, listed, plan)
            return
        for t in range(plan.first, plan.first + plan.number):
            for _ in range(plan.thin):
                sweep_blocks(self.arrays, chain, room, listed)
                for block in self.wide:
                    self._draw_wide(block, chain, self.generators[number])
            self.record(chain, t, plan, log_weight(self.arrays, chain.x, chain.offset))

    def finish(self, chains: "list[Chain]") -> None:
        """Say how large the forests were."""
        if self.trees:
            total = np.sum([f.shares for f in self.forests], axis=0)
            self.forest_share = float(total[0] / max(total[1], 1.0))

    def _kind(self, block: Ints) -> int | None:
        from markovia.kernels.sampling.forest_draws import FOREST, SMALL, clean, grow

        room = self.forests[0]
        size = int(grow(self.arrays, block, room))
        clean(self.arrays, size, room)
        if size == len(block):
            return FOREST
        return SMALL if float(np.prod(self.graph.cards[block].astype(np.float64))) <= MOST_STATES else None

    def _touching(self, block: Ints) -> Ints:
        g = self.arrays
        found = [g.edge_factor[g.edge_ptr[i] : g.edge_ptr[i + 1]] for i in block]
        return np.unique(np.concatenate(found)).astype(np.int64)

    def _draw_wide(self, block: Ints, chain: "Chain", rng: np.random.Generator) -> None:
        from markovia.inference.choosing.auto import Auto
        from markovia.kernels.sampling.chains import place

        graph = self.graph
        findings = dict(self.run.problem.findings)
        inside = set(block.tolist())
        for i, variable in enumerate(graph.variables):
            if i not in inside:
                findings[variable.name] = read_finding(variable, variable.states[chain.x[i]])
        drawn = Auto().sample(self.run.problem.with_findings(findings), 1, rng)
        for i in block:
            chain.x[i] = drawn[graph.names[i]][0]
        place(self.arrays, chain.x, chain.offset)


def forest_room(graph: FlatGraph) -> "ForestArrays":
    """Return working room for forests of a graph."""
    from markovia.kernels.sampling.forest_draws import ForestArrays

    n = len(graph.variables)

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    return ForestArrays(
        member=ints(n),
        touched=ints(graph.n_factors),
        root=ints(n),
        stamp=np.full(n, -1, dtype=np.int64),
        head=ints(n),
        link=ints(2 * n, 5),
        up=ints(n, 4),
        nodes=ints(n),
        queue=ints(n),
        order=np.arange(n, dtype=np.int64),
        waiting=ints(n),
        belief=np.zeros(int(graph.starts[-1])),
        weights=np.zeros(MOST_STATES),
        shares=np.zeros(2),
    )


def _flat(lists: list[Ints]) -> tuple[Ints, Ints]:
    ptr = np.concatenate(([0], np.cumsum([len(a) for a in lists]))).astype(np.int64)
    return ptr, np.concatenate([np.zeros(0, dtype=np.int64), *lists]).astype(np.int64)
