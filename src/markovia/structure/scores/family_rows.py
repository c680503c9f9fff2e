"""Scores of families in rows: one child, some parents, and each further parent in turn.

Searches over classes and orders ask for the same rows again and again; a row is computed once, in one batch, and kept as an
array over all variables, or as the short list of the further parents that gain, where only these are asked for. Cost: one
score for each candidate of each row that is asked for.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.graphs.kinds.masks import members
from markovia.runtime.array_types import Array, Flags
from markovia.structure.scores.local_score import Gainful, LocalScore

LEAST_GAIN = 1e-7
"""What a further parent has to gain, so that rounding is no gain."""


class FamilyRows:
    """A score, remembered in rows.

    Parameters
    ----------
    score
        The score.
    candidates
        `candidates[i, j]`: i is asked for as a further parent of j.
    """

    def __init__(self, score: LocalScore, candidates: Flags) -> None:
        self.score = score
        self.n = score.n
        self.candidates = candidates
        self._rows: list[dict[int, Array]] = [{} for _ in range(self.n)]
        self._known: list[dict[int, float]] = [{} for _ in range(self.n)]
        self._gainful: list[dict[int, Gainful]] = [{} for _ in range(self.n)]

    def local(self, child: int, parents: int) -> float:
        """Return the score of one family, its parents as a mask."""
        known = self._known[child]
        found = known.get(parents)
        if found is None:
            found = self._in_rows(child, parents)
            if found is None:
                found = self.score.local(child, members(parents))
            known[parents] = found
        return found

    def know(self, families: Sequence[tuple[int, int]]) -> None:
        """Compute single families (child, parents as a mask) together, those that are in no row."""
        fresh = []
        for child, parents in families:
            if parents not in self._known[child]:
                found = self._in_rows(child, parents)
                if found is None:
                    fresh.append((child, parents))
                else:
                    self._known[child][parents] = found
        if fresh:
            scores = self.score.many([(child, tuple(members(parents))) for child, parents in fresh])
            for (child, parents), value in zip(fresh, scores.tolist(), strict=True):
                self._known[child][parents] = value

    def row(self, child: int, parents: int) -> Array:
        """Return the scores of a child with the parents and each further one; minus infinity where there is none."""
        if parents not in self._rows[child]:
            self.fetch([(child, parents)])
        return self._rows[child][parents]

    def fetch(self, wanted: Sequence[tuple[int, int]]) -> None:
        """Compute rows (child, parents) together, those that are not there yet."""
        asked: list[Any] = []
        fresh = []
        for child, parents in dict.fromkeys(wanted):
            if parents in self._rows[child]:
                continue
            found = self._rows[child][parents] = np.full(self.n, -np.inf)
            free = self._free(child, parents)
            if len(free):
                asked.append((child, members(parents), free))
                fresh.append((found, free))
        if asked:
            for (found, free), scores in zip(fresh, self.score.added_batch(asked), strict=True):
                found[free] = scores

    def first_rows(self) -> None:
        """Compute the rows without parents; a score that equivalent graphs share is computed for half of the pairs."""
        self.know([(v, 0) for v in range(self.n)])
        if not self.score.equivalent or not (self.candidates == self.candidates.T).all():
            self.fetch([(child, 0) for child in range(self.n)])
            return
        alone = np.array([self.local(v, 0) for v in range(self.n)])
        table = np.full((self.n, self.n), -np.inf)
        later = [v + 1 + np.flatnonzero(self.candidates[v, v + 1 :]) for v in range(self.n)]
        some = [v for v in range(self.n) if len(later[v])]
        asked: list[Any] = [(v, (), later[v]) for v in some]
        for v, scores in zip(some, self.score.added_batch(asked), strict=True):
            table[v, later[v]] = scores
            table[later[v], v] = scores - alone[v] + alone[later[v]]
        for v in range(self.n):
            self._rows[v].setdefault(0, table[v])

    def gains(self, child: int, parents: int) -> Gainful:
        """Return the further parents that gain, best first, and what they gain."""
        if parents not in self._gainful[child]:
            self.fetch_gains([(child, parents)])
        return self._gainful[child][parents]

    def fetch_gains(self, wanted: Sequence[tuple[int, int]]) -> None:
        """Compute lists of gains (child, parents) together, those that are not there yet."""
        fresh = []
        for child, parents in dict.fromkeys(wanted):
            if parents in self._gainful[child]:
                continue
            row = self._rows[child].get(parents)
            if row is None:
                fresh.append((child, parents))
                continue
            gains = row - self.local(child, parents)
            places = np.flatnonzero(gains > LEAST_GAIN)
            self._gainful[child][parents] = places, gains[places]
        asked = ((child, members(parents), self._free(child, parents)) for child, parents in fresh)
        for (child, parents), found in zip(fresh, self.score.gainful(asked, LEAST_GAIN), strict=True):
            self._gainful[child][parents] = found

    def first_gains(self) -> None:
        """Compute the lists of gains without parents together."""
        for child, found in enumerate(self.score.gainful_pairs(self.candidates, LEAST_GAIN)):
            self._gainful[child][0] = found

    def total(self, dag: Sequence[int]) -> float:
        """Return the score of a directed graph, given as masks of parents."""
        self.know(list(enumerate(dag)))
        return float(sum(self.local(v, own) for v, own in enumerate(dag)))

    def _in_rows(self, child: int, parents: int) -> float | None:
        rows = self._rows[child]
        rest = parents
        while rest:
            low = rest & -rest
            rest ^= low
            row = rows.get(parents ^ low)
            if row is not None and (found := float(row[low.bit_length() - 1])) > -np.inf:
                return found
        return None

    def _free(self, child: int, parents: int) -> NDArray[np.int64]:
        free = self.candidates[:, child].copy()
        free[members(parents)] = False
        return np.flatnonzero(free)
