"""One long hidden chain worked on from both ends at once, in two threads: smoothing and the best path.

The halves meet in the middle, where what came before and what follows are put together, and are then finished at once. Total
work is that of one end; answers do not depend on the number of threads.
"""

from typing import Any, NamedTuple

import numpy as np

from markovia.kernels.plain_code import either
from markovia.kernels.sequences.chain_records import Posteriors, SeenChain, SeenLogChain
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


def origins_of(steps: int, k: int) -> Any:
    """Return room for the states that best ways into k states come from, a byte each where that holds them."""
    return np.empty((steps, k), dtype=np.uint8 if k <= 256 else np.int64)


def no_smoothing(k: int) -> Posteriors:
    """Return what kernels take for nothing to add up."""
    return Posteriors(np.empty(0, dtype=np.int64), np.empty(k), np.empty((0, k, k)), np.empty((0, k)))


class EndSums(NamedTuple):
    """What smoothing adds up: by observation or step, of the first step, of pairs over the tables; and log p."""

    sums: Array
    starts: Array
    pairs: Array
    log_prob: float


def smoothed(chain: SeenChain, into: Ints, size: int, *, own: bool, counted: bool) -> EndSums | None:
    """Return the sums of posteriors of a lone sequence; None where numbers come too near the smallest ones for this way."""
    tables = chain.tables
    n, k = len(chain.codes), len(chain.start)
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
            return bool(messages_back(m, n, chain, room_of(k), messages))
        first = chain._replace(offsets=np.array([0, m]))
        forward(0, 1, first, filtered, ahead, room_of(k), no_smoothing(k), log_prob, stuck)
        return bool(stuck[0] == -1)

    if not all(in_parallel(begin, range(2), lambda: None)):
        return None
    middle = filtered[-1] * messages[0]
    if middle.sum() < 1e-250:
        return None
    sums = np.zeros((1 if own else 2, size, k))
    starts, pairs = np.zeros(k), np.zeros((2, len(tables) if counted else 0, k, k))

    def finish(half: int, _: None) -> float:
        room = room_of(k)
        if half == 0:
            room[NOW * k : (NOW + 1) * k] = middle / middle.sum()
            finish_first(0, m, chain, filtered, ahead, room, Posteriors(into, starts, pairs[0], sums[0]))
            return float(log_prob[0])
        room[:k] = filtered[-1]
        return float(finish_second(m, n, chain, messages, room, Posteriors(into, starts, pairs[1], sums[-1])))

    total = sum(in_parallel(finish, range(2), lambda: None))
    if total == -np.inf:
        return None
    return EndSums(sums[0] if own else sums.sum(axis=0), starts, pairs.sum(axis=0), total)


def best_path(chain: SeenLogChain) -> tuple[Ints, float]:
    """Return a most probable path of a lone sequence and its log probability."""
    n, k = len(chain.codes), len(chain.start)
    m = n // 2
    paths = np.empty(n, dtype=np.int64)
    ways = either(f"{CHAIN}:best_ways", n * (10 * k + 3 * k * k))
    follow = either(f"{CHAIN}:follow_ways", 4 * n)
    rooms = [room_of(k), room_of(k)]
    rooms[0][:k], rooms[1][:k] = chain.start, 0.0
    against = chain._replace(tables=np.ascontiguousarray(chain.tables.swapaxes(1, 2)))
    # where a half begins, its moves to the middle, their direction, the chain in that direction, where moves come from
    halves = [
        (0, m, 1, chain, origins_of(m, k)),
        (n - 1, n - 1 - m, -1, against, origins_of(n - 1 - m, k)),
    ]

    def begin(half: int, _: None) -> float:
        return float(ways(*halves[half][:4], rooms[half], halves[half][4]))

    totals = in_parallel(begin, range(2), lambda: None)
    met = rooms[0][:k] + rooms[1][:k] + chain.logs[chain.codes[m]]
    paths[m] = state = int(np.argmax(met))

    def finish(half: int, _: None) -> None:
        count, turn, _own, origins = halves[half][1:]
        follow(m, count, turn, state, origins, paths)

    in_parallel(finish, range(2), lambda: None)
    return paths, float(sum(totals) + met[state])
