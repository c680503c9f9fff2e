"""Block iterated conditional modes: set whole blocks of variables to their joint best states.

Method: like iterated conditional modes, but a step maximises over a block exactly, all others fixed. Blocks are given, or
the colours of a colouring (no two neighbours in a block, as red and black on a grid), or random induced forests, which hold
about two thirds of a grid and are solved by max-product in linear time. The end is a maximum for each block, so
it is harder to get stuck than with single changes. Reference: Besag (1986); Hamze and de Freitas (2004) for trees.
Cost of a step: the tables that eliminating the block needs: for forests the square of the number of states.
Use it to polish quickly; `LargeNeighbourhood` chooses wider regions by itself and goes further.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from markovia.errors import TooLarge, check_known
from markovia.inference.local_search.local_search import LocalSearch, from_starts
from markovia.inference.local_search.search_space import BestSoFar, Outcome, SearchSpace
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import FromZero, NameLists
from markovia.runtime.seeds import kernel_seed

WIDEST = 24.0
"""Log2 of the entries of the largest table that a given block may need."""
TREES = 20
"""Random forests without gain after which a climb ends."""


@dataclass(frozen=True)
class BlockICM(LocalSearch):
    """Best configurations by exact steps on blocks of variables.

    Parameters
    ----------
    blocks
        "forests" for a new random induced forest each step, "colours" for the classes of a colouring (red and black on a
        grid), or lists of names. Variables in no given block are their own.
    restarts
        Climbs after the first. The first one starts from `start`, or from the states that the tables over single
        variables prefer; the others from random configurations.
    start
        A state for every free variable.
    seed, time_limit, progress
        Seed of the random numbers, seconds, and whether to show a bar (by default on a terminal).

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.BlockICM(seed=0)
    >>> mk.examples.sprinkler().map(given={"wet": "yes"}, engine=engine).to_dict()
    {'cloudy': 'yes', 'sprinkler': 'no', 'rain': 'yes'}
    """

    blocks: Annotated[
        Literal["forests", "colours"] | Sequence[Sequence[str]], NameLists(("forests", "colours"))
    ] = "forests"
    restarts: FromZero = 3

    name: ClassVar[str] = "block-icm"

    def _search(self, space: SearchSpace, rng: np.random.Generator, done: BestSoFar) -> Outcome:
        fixed = None if self.blocks == "forests" else self._orders(space, rng)

        def run(codes: Ints) -> bool:
            return _climb(space, codes, fixed, rng, done)

        return from_starts(run, self._first(space), self.restarts, rng, done)

    def _orders(self, space: SearchSpace, rng: np.random.Generator) -> list[Ints]:
        """Return the blocks, each in an order of elimination."""
        if isinstance(self.blocks, str):
            return colours(space)
        index, left = space.graph.index, set(range(len(space.graph.names)))
        found = []
        for block in self.blocks:
            check_known(block, list(index), "the free variables")
            inside = np.zeros(len(index), dtype=np.uint8)
            inside[[index[n] for n in block]] = 1
            order = region(space, inside, WIDEST, rng)
            if len(order) < np.count_nonzero(inside & (space.graph.cards > 1)):
                raise TooLarge(
                    f"a block of {len(block)} variables needs a table of more than 2**{WIDEST:.0f} entries; "
                    "give smaller blocks or use blocks='forests'"
                )
            left -= set(order.tolist())
            found.append(order)
        return [*found, *(np.array([v], dtype=np.int64) for v in sorted(left))]


def region(
    space: SearchSpace,
    inside: NDArray[np.uint8],
    limit: float,
    rng: np.random.Generator,
    forest: bool = False,
) -> Ints:
    """Return as many of the variables inside as can be eliminated within a limit, in order of elimination.

    The limit is log2 of the largest table; for a forest each table holds two variables at most.
    """
    from markovia.kernels.maximising.neighbourhoods import choose_region

    n = len(inside)
    order = np.empty(n, dtype=np.int64)
    bits = (space.graph.cards > 1).astype(np.float64) if forest else space.bits
    limit = 2.0 if forest else limit
    found = choose_region(
        space.near, bits, inside, rng.permutation(n), limit, np.inf, kernel_seed(rng), order
    )
    return order[:found]


def colours(space: SearchSpace) -> list[Ints]:
    """Return the classes of a greedy colouring in breadth-first order: two of them on a connected bipartite graph."""
    ptr, near = space.near
    colour = np.full(len(ptr) - 1, -1, dtype=np.int64)
    for root in range(len(colour)):
        queue = [root] if colour[root] < 0 else []
        for v in queue:
            if colour[v] >= 0:
                continue
            around = near[ptr[v] : ptr[v + 1]]
            taken = set(colour[around].tolist())
            colour[v] = next(c for c in range(len(colour) + 1) if c not in taken)
            queue.extend([u for u in around.tolist() if colour[u] < 0])
    return [np.flatnonzero(colour == c) for c in range(int(colour.max()) + 1)]


def _climb(
    space: SearchSpace, codes: Ints, fixed: list[Ints] | None, rng: np.random.Generator, done: BestSoFar
) -> bool:
    """Step from block to block until none helps, in place; return whether that was reached in time."""
    from markovia.kernels.maximising.neighbourhoods import solve_region

    state = kernel_seed(rng)
    score = space.score(codes)
    done.note(codes, score, 0)
    quiet, enough = 0, TREES if fixed is None else len(fixed)
    for order in _steps(space, fixed, rng):
        new = codes.copy()
        solve_region(space.arrays, state, new, order, len(order))
        value = space.score(new)
        quiet = 0 if value > score + 1e-9 else quiet + 1
        moved = 0
        if value >= score - 1e-9:
            moved = int(np.count_nonzero(new != codes))
            codes[:], score = new, value
        done.note(codes, score, 1, moved)
        if quiet >= enough:
            return True
        if done.over():
            return False
    return True


def _steps(space: SearchSpace, fixed: list[Ints] | None, rng: np.random.Generator) -> Iterator[Ints]:
    everything = np.ones(len(space.graph.names), dtype=np.uint8)
    while True:
        if fixed is None:
            yield region(space, everything, 2.0, rng, forest=True)
        else:
            yield from fixed
