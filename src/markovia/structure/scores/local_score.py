"""The contract of a score of directed graphs that is a sum over families, larger is better.

Bound to data a score is a `LocalScore`, which algorithms ask for the scores of families: one child and its parents, as
numbers of variables. Families are computed in batches and remembered.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.reading_mixed import MixedTable
from markovia.runtime.array_types import Array

Family = tuple[int, tuple[int, ...]]
"""A child and its parents, in increasing order."""
Extension = tuple[int, tuple[int, ...], NDArray[np.int64]]
"""A child, its parents in increasing order, and the variables that are tried as one further parent."""
Numbers = Sequence[int] | NDArray[np.int64]
Gainful = tuple[NDArray[np.int64], Array]
"""Variables that raise a child's score as one further parent, best first, and by how much."""
MOST_REMEMBERED = 2**25
"""Numbers in `LocalScore.extended`; beyond, it starts anew."""
AT_ONCE = 2**22
"""Families of which `LocalScore.gainful` holds the scores at a time."""


class LocalScore(ABC):
    """A score bound to data.

    Attributes
    ----------
    name
        What it is called.
    n
        The number of variables.
    equivalent
        Whether equivalent graphs have the same score.
    known, extended
        What was computed: the scores of families; and for a child and its parents the scores with each further parent (an
        array over all variables, NaN where it was not asked).
    n_computed
        How many families were computed.
    """

    name: str
    equivalent = True

    def __init__(self, data: MixedTable) -> None:
        self.data = data
        self.n = len(data.names)
        self.known: dict[Family, float] = {}
        self.extended: dict[Family, Array] = {}
        self.n_computed = 0

    @abstractmethod
    def _compute(self, families: Sequence[Family]) -> Array:
        """Return the scores of families that are not known yet."""

    def _extend(self, groups: Sequence[Extension]) -> list[Array]:
        """Return the scores of families that share all parents but one; scores with a faster way override this."""
        families = [(c, tuple(sorted((*base, int(v))))) for c, base, fresh in groups for v in fresh]
        found = self._compute(families)
        return np.split(found, np.cumsum([len(fresh) for _, _, fresh in groups])[:-1])

    def _extend_and_compute(
        self, groups: Sequence[Extension], families: Sequence[Family]
    ) -> tuple[list[Array], Array]:
        """Return what `_extend` and `_compute` do; scores that save by doing both at once override this."""
        computed = self._compute(families) if families else np.empty(0)
        return self._extend(groups) if groups else [], computed

    def local(self, child: int, parents: Sequence[int] = ()) -> float:
        """Return the score of one family; parents in any order."""
        return float(self.many([(child, tuple(sorted(parents)))])[0])

    def many(self, families: Sequence[Family]) -> Array:
        """Return the scores of families; parents in increasing order."""
        fresh = self._unknown(families)
        if fresh:
            self._remember(fresh, self._compute(fresh))
        return np.array([self.known[f] for f in families])

    def _unknown(self, families: Iterable[Family]) -> list[Family]:
        """Return the families that have to be computed, each once."""
        fresh = []
        for family in dict.fromkeys(families):
            if family not in self.known:
                seen = self._as_extension(family)
                if seen is None:
                    fresh.append(family)
                else:
                    self.known[family] = seen
        return fresh

    def _remember(self, families: Sequence[Family], scores: Array) -> None:
        self.n_computed += len(families)
        self.known.update(zip(families, scores.tolist(), strict=True))

    def added(self, child: int, parents: Sequence[int], candidates: Numbers) -> Array:
        """Return for each candidate the score of the child with the parents and the candidate."""
        return self.added_batch([(child, parents, candidates)])[0]

    def added_batch(self, asked: Sequence[tuple[int, Sequence[int], Numbers]]) -> list[Array]:
        """Return the same as `added` for several (child, parents, candidates), computed together."""
        if (len(self.extended) + len(asked)) * self.n > MOST_REMEMBERED:
            self.extended.clear()
        groups: list[Extension] = []
        rows = []
        for child, parents, candidates in asked:
            base = tuple(sorted(parents))
            row = self.extended.get((child, base))
            if row is None:
                row = self.extended[(child, base)] = np.full(self.n, np.nan)
            wanted = np.asarray(candidates, dtype=np.int64)
            fresh = wanted[np.isnan(row[wanted])]
            if len(fresh):
                groups.append((child, base, fresh))
            rows.append((row, wanted))
        if groups:
            self.n_computed += sum(len(fresh) for _, _, fresh in groups)
            for (child, base, fresh), found in zip(groups, self._extend(groups), strict=True):
                self.extended[(child, base)][fresh] = found
        return [row[wanted] for row, wanted in rows]

    def gainful(
        self,
        asked: Iterable[tuple[int, Sequence[int], NDArray[np.int64]]],
        least: float = 0.0,
        families: Sequence[Family] = (),
    ) -> list[Gainful]:
        """Return for each (child, parents, candidates) those candidates that gain more than `least`, and what they gain.

        Nothing else is kept: with n variables the rows of `added_batch` hold n numbers each, these lists a few. `families`
        are computed along with them, and known afterwards.
        """
        found: list[Gainful] = []
        part: list[Extension] = []
        held = 0
        for child, parents, candidates in asked:
            part.append((child, tuple(sorted(parents)), candidates))
            held += len(candidates)
            if held >= AT_ONCE:
                found += self._gainful(part, least, families)
                part, held, families = [], 0, ()
        return found + self._gainful(part, least, families)

    def _gainful(self, asked: Sequence[Extension], least: float, families: Sequence[Family]) -> list[Gainful]:
        fresh = self._unknown([*families, *((child, base) for child, base, _ in asked)])
        some = [group for group in asked if len(group[2])]
        self.n_computed += sum(len(candidates) for _, _, candidates in some)
        extended, computed = self._extend_and_compute(some, fresh)
        self._remember(fresh, computed)
        scores = iter(extended)
        found = []
        for child, base, candidates in asked:
            gains = next(scores) - self.known[child, base] if len(candidates) else np.empty(0)
            places = np.flatnonzero(gains > least)
            places = places[np.argsort(-gains[places], kind="stable")]
            found.append((candidates[places], gains[places]))
        return found

    def gainful_pairs(self, wanted: NDArray[np.bool_], least: float = 0.0) -> list[Gainful]:
        """Return for each child j without parents the gainful i where `wanted[i, j]`.

        Scores that equivalent graphs share gain the same in both directions, and are computed for one.
        """
        n = self.n
        if not self.equivalent:
            return self.gainful(((j, (), np.flatnonzero(wanted[:, j])) for j in range(n)), least)
        half = self.gainful(
            ((j, (), j + 1 + np.flatnonzero(wanted[j, j + 1 :] | wanted[j + 1 :, j])) for j in range(n)),
            least,
        )
        low = np.repeat(np.arange(n), [len(ids) for ids, _ in half])
        high = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in half)])
        once = np.concatenate([np.empty(0), *(gains for _, gains in half)])
        tails, heads = np.concatenate([low, high]), np.concatenate([high, low])
        gains = np.concatenate([once, once])
        order = np.lexsort([tails, -gains, heads])
        order = order[wanted[tails[order], heads[order]]]
        ends = np.searchsorted(heads[order], np.arange(1, n))
        return list(zip(np.split(tails[order], ends), np.split(gains[order], ends), strict=True))

    def removed(self, child: int, parents: Sequence[int]) -> Array:
        """Return for each parent the score of the child with the other parents."""
        base = tuple(sorted(parents))
        found = self.many([(child, (*base[:i], *base[i + 1 :])) for i in range(len(base))])
        order = {p: i for i, p in enumerate(base)}
        return found[[order[p] for p in parents]]

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        """Return the score of a graph given each variable's parents."""
        return float(self.many([(i, tuple(sorted(p))) for i, p in enumerate(parents)]).sum())

    def _as_extension(self, family: Family) -> float | None:
        child, parents = family
        for i, last in enumerate(parents):
            row = self.extended.get((child, (*parents[:i], *parents[i + 1 :])))
            if row is not None and not np.isnan(row[last]):
                return float(row[last])
        return None
