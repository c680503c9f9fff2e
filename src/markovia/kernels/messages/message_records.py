"""What kernels of messages between variables and factors work on; the shape of each array stands beside it."""

from typing import NamedTuple

from markovia.runtime.array_types import Array, Ints


class MessageBuffers(NamedTuple):
    """Messages, that of edge e at `at[e] : at[e + 1]`, and room."""

    incoming: Array  # from factors to variables
    outgoing: Array  # from variables to factors
    work: Array  # (as `factor_messages.room_needed` says,)
    stack: Ints  # (512,)


class SweepLimits(NamedTuple):
    """How much of an old message stays, the largest move that counts as none, and rounds (or updates) at most."""

    damping: float
    tolerance: float
    rounds: int


class FactorQueue(NamedTuple):
    """Factors as a binary heap on their urgency, what their incoming messages have moved since they last sent."""

    heap: Ints  # (factors,)
    place: Ints  # (factors,): where each one is in the heap
    urgency: Array  # (factors,)


class DecodingRoom(NamedTuple):
    """A configuration that is read off messages, and room."""

    outgoing: Array  # from variables to factors
    state: Ints  # (variables,): -1 where there is none yet
    room: Array  # (most states or more,)
    score: Array  # (most states,)
    axes: Ints  # (variables of the widest factor,)
    places: Ints  # (the same,)
