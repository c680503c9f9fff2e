"""Scores of discrete families from their tables of counts: penalised likelihoods and Bayesian Dirichlet scores.

BIC (Schwarz 1978), AIC (Akaike 1974), BDeu (Buntine 1991; Heckerman, Geiger & Chickering 1995), K2 (Cooper & Herskovits
1992), and the log-likelihood itself. All but K2 give equivalent graphs the same score, because a family's sum is that of the
set of child and parents minus that of the parents; large batches of families are computed as such sets, each once.
Cost: see `markovia.kernels.structure.family_scores`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_number
from markovia.structure.scores.family_tables import (
    LIKELIHOOD,
    NO_CHILD,
    NOTHING,
    ONES,
    SPREAD,
    FamilyTables,
)
from markovia.structure.scores.local_score import Extension, Family, LocalScore

SHARED_SETS = 64
"""From so many families on, sets of columns that several families need are computed once."""


class TableScore(LocalScore):
    """A score from tables of counts.

    Parameters
    ----------
    data
        Discrete columns.
    name
        What the score is called.
    kind, sample_size
        The sum over a table, as for `FamilyTables.sums`.
    """

    def __init__(self, data: MixedTable, name: str, kind: int = LIKELIHOOD, sample_size: float = 0.0) -> None:
        if not data.discrete:
            first = next(n for n, k in zip(data.names, data.kinds, strict=True) if k == "continuous")
            raise InvalidArgument(
                f"the score {name} is for discrete columns, and {first!r} is continuous; discretise it, or use "
                "'gaussian-bic' or 'cg-bic'"
            )
        super().__init__(data)
        assert data.table is not None
        self.name = name
        self.kind = kind
        self.sample_size = sample_size
        self.equivalent = kind != ONES
        self.tables = FamilyTables(data.table, data.names)
        # the states of each column, with 1 for the last, -1, which is no column
        self._size_of = np.append(self.tables.cards, 1).astype(np.float64)
        self._sizes: list[float] = self._size_of.tolist()

    def _penalty(self, own: Array, configurations: Array) -> Array:
        """Return what is taken away from a family's sum, given its child's states and its parent configurations."""
        return np.zeros(len(own))

    def sets(self, chosen: Sequence[Sequence[int]]) -> Array:
        """Return for each set of columns the sum that families are made of; not for K2.

        A family's score is the sum of child and parents minus the sum of the parents, minus the penalty.
        """
        if not self.equivalent:
            raise InvalidArgument(f"the score {self.name} is no difference of sums over sets of columns")
        groups, place = _grouped([(NO_CHILD, tuple(s)) for s in chosen])
        found = np.empty(len(chosen))
        found[place] = np.concatenate(self.tables.sums(groups, self.kind, self.sample_size))
        return found

    def _compute(self, families: Sequence[Family]) -> Array:
        if self.equivalent and len(families) >= SHARED_SETS:
            found = self._by_sets(families)
            if found is not None:
                return found
        return self._extend_and_compute((), families)[1]

    def _extend(self, groups: Sequence[Extension]) -> list[Array]:
        sizes = self._sizes
        return [
            sums
            - self._penalty(
                np.full(len(fresh), sizes[child]), prod(sizes[v] for v in base) * self._size_of[fresh]
            )
            for (child, base, fresh), sums in zip(
                groups, self.tables.sums(groups, self.kind, self.sample_size), strict=True
            )
        ]

    def _extend_and_compute(
        self, groups: Sequence[Extension], families: Sequence[Family]
    ) -> tuple[list[Array], Array]:
        """Do both in one pass: of a few families calling costs more than counting, and each is an extension of one less."""
        more, place = _grouped(families)
        scores = self._extend([*groups, *more])
        found = np.empty(len(families))
        if families:
            found[place] = np.concatenate(scores[len(groups) :])
        return scores[: len(groups)], found

    def _by_sets(self, families: Sequence[Family]) -> Array | None:
        """Compute families as differences of sets, unless they share too few."""
        at: dict[tuple[int, ...], int] = {}
        above = np.empty(len(families), dtype=np.int64)
        below = np.empty(len(families), dtype=np.int64)
        for k, (child, parents) in enumerate(families):
            above[k] = at.setdefault(tuple(sorted((child, *parents))), len(at))
            below[k] = at.setdefault(parents, len(at))
        if len(at) > 0.8 * len(families):
            return None
        sums, sizes = self.sets(list(at)), self._sizes
        own = np.array([sizes[child] for child, _ in families])
        configurations = np.array([prod(sizes[v] for v in parents) for _, parents in families], dtype=float)
        found: Array = sums[above] - sums[below] - self._penalty(own, configurations)
        return found


def _grouped(families: Sequence[Family]) -> tuple[list[Extension], list[int]]:
    """Put families together that share the child and all parents but the last; and say where each family then is."""
    members: dict[Family, list[int]] = {}
    alone = []
    for k, (child, parents) in enumerate(families):
        if parents:
            members.setdefault((child, parents[:-1]), []).append(k)
        else:
            alone.append(k)
    groups: list[Extension] = [(families[k][0], (), NOTHING) for k in alone]
    place = list(alone)
    for (child, base), own in members.items():
        groups.append((child, base, np.array([families[k][1][-1] for k in own], dtype=np.int64)))
        place.extend(own)
    return groups, place


class PenalisedLikelihood(TableScore):
    """The log-likelihood minus a price for each free parameter."""

    def __init__(self, data: MixedTable, name: str, price: float) -> None:
        super().__init__(data, name)
        self.price = price

    def _penalty(self, own: Array, configurations: Array) -> Array:
        return self.price * (own - 1.0) * configurations


@dataclass(frozen=True)
class AIC:
    """Akaike's information criterion: log-likelihood minus the number of free parameters.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> mk.learn_structure(rows, score="aic").score_name
    'aic'
    """

    def bind(self, data: MixedTable) -> LocalScore:
        """Return the score for these data."""
        return PenalisedLikelihood(data, "aic", 1.0)


@dataclass(frozen=True)
class LogLikelihood:
    """The largest log-likelihood (nats); it never falls with more edges, so bound the parents when searching with it.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> mk.learn_structure(rows, score="log-likelihood", max_parents=1).n_edges
    3
    """

    def bind(self, data: MixedTable) -> LocalScore:
        """Return the score for these data."""
        return TableScore(data, "log-likelihood")


@dataclass(frozen=True)
class BDeu:
    """The log probability of the data with the tables integrated out, under pseudo-counts that equivalent graphs share.

    Every cell of a family's table has `equivalent_sample_size` divided by its number of cells.

    Parameters
    ----------
    equivalent_sample_size
        How many imaginary rows the prior is worth. Larger values favour more edges.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> mk.learn_structure(rows, score=mk.scores.BDeu(equivalent_sample_size=1)).score_name
    'bdeu'
    """

    equivalent_sample_size: float = 10.0

    def bind(self, data: MixedTable) -> LocalScore:
        """Return the score for these data."""
        check_number("equivalent_sample_size", self.equivalent_sample_size, positive=True)
        return TableScore(data, "bdeu", SPREAD, float(self.equivalent_sample_size))


@dataclass(frozen=True)
class K2:
    """The log probability of the data with the tables integrated out, under one pseudo-count a cell.

    Equivalent graphs may score differently.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> mk.learn_structure(rows, score="k2").score_name
    'k2'
    """

    def bind(self, data: MixedTable) -> LocalScore:
        """Return the score for these data."""
        return TableScore(data, "k2", ONES)
