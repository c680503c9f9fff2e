"""What kernels of hidden chains work on: k states, m transition tables, r different observations, n steps of all sequences.

Steps of sequences lie one after the other. The move into step t goes by table `moves[t]`, or by the only one where `moves`
has one entry. Step t is seen through row `codes[t]` of `logs`, so that steps with equal observations share a row; a row of
zeros is a step that was not observed.
"""

from typing import NamedTuple

from markovia.runtime.array_types import Array, Ints


class SeenChain(NamedTuple):
    """A chain and what was seen of it, for sums."""

    offsets: Ints  # (sequences + 1,): where each sequence begins
    start: Array  # (k,): the distribution of first states
    tables: Array  # (m, k, k): that of the next state in row i
    turned: Array  # (m, k, k): the same with next states in rows
    moves: Ints  # (1,) or (n,): which table leads into a step
    logs: Array  # (r, k): log densities of observations in each state
    dens: Array  # (r, k): exponentials of `logs` less each row's largest entry
    tops: Array  # (r,): these entries
    codes: Ints  # (n,): the row of each step


class SeenLogChain(NamedTuple):
    """The same for paths: start and tables are logarithms."""

    offsets: Ints
    start: Array
    tables: Array
    moves: Ints
    logs: Array
    codes: Ints


class Posteriors(NamedTuple):
    """Where smoothing adds to; empty arrays for nothing."""

    into: Ints  # (n,): row of `sums` for each step
    starts: Array  # (k,): posteriors of first steps
    pairs: Array  # (m, k, k): sums over two slices, still to be multiplied by the table; or none
    sums: Array  # (rows, k): posteriors of steps
