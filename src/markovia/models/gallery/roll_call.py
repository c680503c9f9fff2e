"""Synthetic roll calls shaped like those of a senate: two parties, and a voter who changes sides little by little."""

from typing import TYPE_CHECKING

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.checks import NumberRange, Whole, check
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    import pandas as pd


def roll_call(
    voters: int = 100, votes: int = 542, *, loyalty: float = 0.85, blocs: int = 24, seed: Seed = 0
) -> "pd.DataFrame":
    """Return synthetic votes of a senate with two parties, in the order of time.

    Four bills in five divide the parties. Each party has blocs: a bloc follows its party, and a voter the bloc, each with a
    chance of `loyalty`. One voter, "mover", starts in a bloc of the first party and votes with one of the second more and
    more often.

    Parameters
    ----------
    voters, votes
        How many; the senate's 109th congress had 100 senators and 542 votes.
    loyalty
        The chance to vote with one's bloc.
    blocs
        The number of blocs in all, half in each party; voters of a bloc are neighbours.
    seed
        For the draws.

    Returns
    -------
    DataFrame
        A column "time" (0, 1, ...), then a column a voter: "yes" or "no". Voters are `a0, a1, ...` and `b0, b1, ...` by
        party, and "mover".

    Examples
    --------
    >>> frame = roll_call(6, 4, seed=1)
    >>> list(frame.columns)
    ['time', 'a0', 'a1', 'a2', 'b0', 'b1', 'mover']
    >>> frame.shape
    (4, 7)
    """
    import pandas as pd

    if voters < 4 or votes < 2:
        raise InvalidArgument(f"a senate has at least 4 voters and 2 votes, not {voters} and {votes}")
    check("loyalty", loyalty, NumberRange(0.5, 1.0))
    check("blocs", blocs, Whole(2))
    rng = generator(seed)
    n_first = voters // 2
    n_second = voters - 1 - n_first
    line = rng.integers(0, 2, votes)
    second = np.where(rng.random(votes) < 0.8, 1 - line, line)  # four bills in five divide the parties
    columns: dict[str, object] = {"time": np.arange(votes)}
    heads = {}
    for party, mark, size in ((line, "a", n_first), (second, "b", n_second)):
        n_blocs = min(size, max(1, blocs // 2))
        own = [np.where(rng.random(votes) < loyalty, party, 1 - party) for _ in range(n_blocs)]
        heads[mark] = own[0]
        for k in range(size):
            follow = own[k % n_blocs]
            columns[f"{mark}{k}"] = _words(np.where(rng.random(votes) < loyalty, follow, 1 - follow))
    crossed = rng.random(votes) < np.linspace(0, 1, votes)
    side = np.where(crossed, heads["b"], heads["a"])
    columns["mover"] = _words(np.where(rng.random(votes) < loyalty, side, 1 - side))
    return pd.DataFrame(columns)


def _words(votes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> "np.ndarray[tuple[int], np.dtype[np.str_]]":
    return np.where(votes == 1, "yes", "no")
