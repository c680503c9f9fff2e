"""One long hidden chain worked on from both ends at once, in two threads: smoothing and the best path.

The halves meet in the middle, where what came before and what follows are put together, and are then finished at once. Total
work is that of one end; answers do not depend on the number of threads.
"""

from typing import NamedTuple

import numpy as np

from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel

LONG = 200_000
"""Steps times states squared from which a lone sequence is halved."""
CHAIN = "markovia.kernels.sequences.hidden_chain"
KERNELS = "markovia.kernels.sequences.long_chain"


NOW = 2
"""Which k places of a room smoothing begins in."""


def room_of(k: int) -> Array:
    """Return what kernels of chains of k states work in; wide enough that no two threads write near each other."""
    return np.empty(4 * k + 16)


def no_smoothing(k: int) -> tuple[Ints, Array, Array, Array]:
    """Return what kernels take for nothing to add up."""
    return np.empty(0, dtype=np.int64), np.empty(k), np.empty((0, k, k)), np.empty((0, k))


class Arrays(NamedTuple):
    """The arrays of a chain and its only sequence, as kernels take them."""

    start: Array
    tables: Array
    moves: Ints
    logs: Array
    dens: Array
    tops: Array
    codes: Ints


class EndSums(NamedTuple):
    """What smoothing adds up: by observation or step, of the first step, of pairs over the tables; and log p."""

    sums: Array
    starts: Array
    pairs: Array
    log_prob: float


def smoothed(given: Arrays, into: Ints, size: int, *, own: bool, counted: bool) -> EndSums | None:
    """Return the sums of posteriors; None where numbers come too near the smallest ones for this way."""
    start, tables, moves, logs, dens, tops, codes = given
    n, k = len(codes), len(start)
    if (tables[tables > 0.0] < 1e-50).any():
        return None
    m = n // 2
    steps = n * (10 * k + 3 * k * k)
    forward = either(f"{CHAIN}:forward_backward", steps)
    messages_back = either(f"{KERNELS}:messages_back", steps)
    finish_first = either(f"{KERNELS}:finish_first", steps)
    finish_second = either(f"{KERNELS}:finish_second", steps)
    filtered, ahead, messages = np.empty((m, k)), np.empty((m, k)), np.empty((n - m + 1, k))
    log_prob, stuck = np.empty(1), np.empty(1, dtype=np.int64)

    def begin(half: int, _: None) -> bool:
        if half == 1:
            return bool(messages_back(m, n, tables, moves, logs, dens, codes, messages))
        forward(
            0, 1, np.array([0, m]), *given, filtered, ahead, room_of(k), *no_smoothing(k), log_prob, stuck
        )
        return bool(stuck[0] == -1)

    if not all(in_parallel(begin, range(2), lambda: None)):
        return None
    middle = filtered[-1] * messages[0]
    if middle.sum() < 1e-250:
        return None
    sums = np.zeros((1 if own else 2, size, k))
    starts, pairs = np.zeros(k), np.zeros((2, len(tables) if counted else 0, k, k))

    def finish(half: int, _: None) -> float:
        if half == 0:
            room = room_of(k)
            room[NOW * k : (NOW + 1) * k] = middle / middle.sum()
            finish_first(0, m, tables, moves, filtered, ahead, room, into, starts, pairs[0], sums[0])
            return float(log_prob[0])
        now = filtered[-1].copy()
        seen = (tables, moves, logs, dens, tops, codes, messages, into)
        return float(finish_second(m, n, now, *seen, pairs[1], sums[-1]))

    total = sum(in_parallel(finish, range(2), lambda: None))
    if total == -np.inf:
        return None
    return EndSums(sums[0] if own else sums.sum(axis=0), starts, pairs.sum(axis=0), total)


def best_path(start: Array, tables: Array, moves: Ints, logs: Array, codes: Ints) -> tuple[Ints, float]:
    """Return a most probable path and its log probability; `start` and `tables` are logarithms."""
    n, k = len(codes), len(start)
    m = n // 2
    paths = np.empty(n, dtype=np.int64)
    ways = either(f"{CHAIN}:best_ways", n * (10 * k + 3 * k * k))
    follow = either(f"{CHAIN}:follow_ways", 4 * n)
    rooms = [room_of(k), room_of(k)]
    rooms[0][:k], rooms[1][:k] = start, 0.0
    # where a half begins, its moves to the middle, their direction, tables in that direction, origins
    halves = [
        (0, m, 1, tables, np.empty((m, k), dtype=np.int16)),
        (
            n - 1,
            n - 1 - m,
            -1,
            np.ascontiguousarray(tables.swapaxes(1, 2)),
            np.empty((n - 1 - m, k), dtype=np.int16),
        ),
    ]

    def begin(half: int, _: None) -> float:
        t, count, turn, own, back = halves[half]
        return float(ways(t, count, turn, rooms[half], own, moves, logs, codes, back))

    totals = in_parallel(begin, range(2), lambda: None)
    met = rooms[0][:k] + rooms[1][:k] + logs[codes[m]]
    paths[m] = state = int(np.argmax(met))

    def finish(half: int, _: None) -> None:
        count, turn, back = (halves[half][i] for i in (1, 2, 4))
        follow(m, count, turn, state, back, paths)

    in_parallel(finish, range(2), lambda: None)
    return paths, float(sum(totals) + met[state])
