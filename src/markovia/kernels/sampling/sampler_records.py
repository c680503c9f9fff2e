"""What samplers on flat graphs take besides the graph and the chain (`chains`)."""

from typing import NamedTuple

from markovia.runtime.array_types import Array, Ints


class DrawPlan(NamedTuple):
    """Which draws to make: numbers first ... first + number - 1 of `draws`, each after `thin` sweeps.

    `mode` says what a record adds up. While `warm` has room for them, only log weights are recorded, there.
    """

    thin: int
    first: int
    number: int
    draws: int
    mode: int
    warm: Array


class BlockMoves(NamedTuple):
    """What a Metropolis move changes: one variable, or together those of a block that zeros tie to each other.

    | field | shape | holds |
    |---|---|---|
    | picks | (m,) | what is changed with equal probability: variable i, or block -1 - i |
    | ptr, members | (blocks + 1,), (.,) | the variables of each block |
    | row_ptr | (blocks + 1,) | the first of each block's joint states, by number |
    | begins, rows | (blocks,), (.,) | where these states begin, and the states themselves, member by member |
    """

    picks: Ints
    ptr: Ints
    members: Ints
    row_ptr: Ints
    begins: Ints
    rows: Ints


class BinaryPairs(NamedTuple):
    """Log odds of a binary pairwise model of n variables; `base` is the log weight of all zeros.

    | field | shape | holds |
    |---|---|---|
    | ptr, other, coupling | (n + 1,), (links,), (links,) | neighbours of each variable and their couplings |
    | field | (n,) | log odds where all neighbours are 0 |
    | first | (n,) or none | where a variable's lists begin; none where too many variables differ |
    | odds, chance | (lists,) | log odds and probabilities of state 1 for all states of the neighbours |
    """

    ptr: Ints
    other: Ints
    coupling: Array
    field: Array
    base: float
    first: Ints
    odds: Array
    chance: Array


class PottsBonds(NamedTuple):
    """A Potts model of n variables with q states for cluster moves.

    | field | shape | holds |
    |---|---|---|
    | first, second, bond | (edges,) | the ends of each edge, and with what probability equal ones are bonded |
    | ptr, other, bond_at | (n + 1,), (2 edges,), (2 edges,) | the same by variable |
    | field | (n q,) | log weights of single states |
    """

    first: Ints
    second: Ints
    bond: Array
    ptr: Ints
    other: Ints
    bond_at: Array
    field: Array
    q: int


class HeatedRungs(NamedTuple):
    """Configurations at k temperatures; that of rung r lies in row `row[r]` of x (k, n) and offset (k, factors).

    `unary`, `values` and `held` have a row a rung, `swaps` (k - 1, 2) counts tries and successes.
    """

    unary: Array
    values: Array
    betas: Array
    x: Ints
    offset: Ints
    held: Array
    row: Ints
    swaps: Array
