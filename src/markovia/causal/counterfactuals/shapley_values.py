"""Shares of a whole by players: the Shapley values of any game, exact for few players, by random orders for many."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks, aligned

if TYPE_CHECKING:
    import pandas as pd

MOST_SUBSETS = 10
"""Players of whom all sets are taken."""
ORDERS = 200


@dataclass(frozen=True)
class Attribution(InNotebooks):
    """Shares by cause, with standard errors (zero where the answer is exact); `total` is what they sum to.

    Examples
    --------
    >>> print(Attribution("variance of y", {"x": 4.0, "y": 1.0}, {"x": 0.0, "y": 0.0}))
       share  error
    x      4      0
    y      1      0
    """

    what: str
    values: Mapping[Any, float]
    errors: Mapping[Any, float]

    @property
    def total(self) -> float:
        """The sum of the shares."""
        return float(sum(self.values.values()))

    def __getitem__(self, name: Any) -> float:
        return self.values[name]

    def to_pandas(self) -> "pd.DataFrame":
        """Return a frame with columns `share` and `error`."""
        import pandas as pd

        return pd.DataFrame({"share": dict(self.values), "error": dict(self.errors)})

    def __str__(self) -> str:
        rows = [
            [" -> ".join(n) if isinstance(n, tuple) else n, f"{v:.4g}", f"{self.errors[n]:.2g}"]
            for n, v in self.values.items()
        ]
        return aligned(["", "share", "error"], rows)

    def __repr__(self) -> str:
        return f"{self}\n[{self.what}]"


def shapley(
    value: Callable[[frozenset[str]], Any], players: Sequence[str], *, seed: Seed = None
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the Shapley value of each player and its standard error.

    Parameters
    ----------
    value
        The value of a set of players: a number, or an array with one estimate a batch.
    players
        Their names; up to 10 are taken in all sets, more in 200 random orders.
    seed
        Of the orders.

    Examples
    --------
    >>> shapley(lambda s: float(len(s) == 2), ["left", "right"])[0]
    {'left': 0.5, 'right': 0.5}
    """
    known: dict[frozenset[str], Array] = {}

    def worth(members: frozenset[str]) -> Array:
        if members not in known:
            known[members] = np.atleast_1d(np.asarray(value(members), dtype=np.float64))
        return known[members]

    n, everybody = len(players), list(players)
    shares: dict[str, Array] = {}
    if n <= MOST_SUBSETS:
        for player in everybody:
            others = [p for p in everybody if p != player]
            shares[player] = sum(
                (worth(frozenset((*s, player))) - worth(frozenset(s))) / (n * comb(n - 1, k))
                for k in range(n)
                for s in combinations(others, k)
            )  # type: ignore[assignment]
    else:
        rng = generator(seed)
        gains: dict[str, list[float]] = {p: [] for p in everybody}
        for _ in range(ORDERS):
            members: frozenset[str] = frozenset()
            for player in rng.permutation(everybody).tolist():
                gains[player].append(float((worth(members | {player}) - worth(members)).mean()))
                members |= {player}
        shares = {p: np.array(g) for p, g in gains.items()}
    errors = {p: float(s.std(ddof=1) / np.sqrt(len(s))) if len(s) > 1 else 0.0 for p, s in shares.items()}
    return {p: float(s.mean()) for p, s in shares.items()}, errors
