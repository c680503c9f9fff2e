"""What local searches for the best configuration work on; the shape of each array stands beside it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array, Ints


class SearchState(NamedTuple):
    """The present configuration of n variables and the best one."""

    x: Ints  # (n,)
    score: Array  # (states of all variables,)
    rng: NDArray[np.uint64]  # (4,): the state of a generator
    best_x: Ints  # (n,)
    totals: Array  # (2,): the scores of both


class SearchPenalties(NamedTuple):
    """Penalties of entries, by how often they were to blame for a local optimum."""

    unary: Array  # (states of all variables,)
    tables: Array  # (entries,)
    values: Array  # (entries,): logs with penalties taken off
