"""Scores of directed graphs that are sums over families, larger is better.

A specification (`BIC(penalty=2)`) is what users name; bound to data it becomes a `LocalScore`, which algorithms ask for the
scores of families: one child and its parents, as numbers of variables. Families are computed in batches and remembered.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.reading_mixed import MixedTable
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_number
from markovia.runtime.registry import named
from markovia.structure.task.task import Task

Family = tuple[int, tuple[int, ...]]
"""A child and its parents, in increasing order."""
Extension = tuple[int, tuple[int, ...], NDArray[np.int64]]
"""A child, its parents in increasing order, and the variables that are tried as one further parent."""
Numbers = Sequence[int] | NDArray[np.int64]
MOST_REMEMBERED = 2**25
"""Numbers in `LocalScore.extended`; beyond, it starts anew."""


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

    def local(self, child: int, parents: Sequence[int] = ()) -> float:
        """Return the score of one family; parents in any order."""
        return float(self.many([(child, tuple(sorted(parents)))])[0])

    def many(self, families: Sequence[Family]) -> Array:
        """Return the scores of families; parents in increasing order."""
        known = self.known
        fresh = []
        for family in dict.fromkeys(families):
            if family not in known:
                seen = self._as_extension(family)
                if seen is None:
                    fresh.append(family)
                else:
                    known[family] = seen
        if fresh:
            self.n_computed += len(fresh)
            known.update(zip(fresh, self._compute(fresh).tolist(), strict=True))
        return np.array([known[f] for f in families])

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

    def know_pairs(self, wanted: NDArray[np.bool_]) -> None:
        """Compute the families with one parent, i -> j where `wanted[i, j]`, together.

        Scores that equivalent graphs share are computed for one direction of a pair; the other follows.
        """
        if not self.equivalent:
            self.added_batch([(j, (), np.flatnonzero(wanted[:, j])) for j in range(self.n)])
            return
        alone = self.many([(j, ()) for j in range(self.n)])
        either = np.triu(wanted | wanted.T, 1)
        rows = [np.flatnonzero(either[j]) for j in range(self.n)]
        for j, found in enumerate(self.added_batch([(j, (), row) for j, row in enumerate(rows)])):
            for i, value in zip(rows[j].tolist(), (found - alone[j] + alone[rows[j]]).tolist(), strict=True):
                self.extended[i, ()][j] = value

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


@dataclass(frozen=True)
class BIC:
    """Bayesian information criterion: log-likelihood in nats minus ln(n) / 2 for each free parameter.

    A discrete family has (states - 1) times the product of the parents' states free parameters, whether or not all
    configurations occur. Continuous and mixed data are scored by `GaussianBIC` and `ConditionalGaussianBIC`.

    Parameters
    ----------
    penalty
        Multiplies the penalty.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> mk.learn_structure(rows, score=mk.scores.BIC(penalty=2.0)).score_name
    'bic'
    """

    penalty: float = 1.0

    def bind(self, data: MixedTable) -> LocalScore:
        """Return the score for these data."""
        check_number("penalty", self.penalty)
        if data.continuous:
            from markovia.structure.scores.gaussian_scores import GaussianBIC

            return GaussianBIC(self.penalty).bind(data)
        if not data.discrete:
            from markovia.structure.scores.conditional_gaussian_score import ConditionalGaussianBIC

            return ConditionalGaussianBIC(self.penalty).bind(data)
        from markovia.structure.scores.table_scores import PenalisedLikelihood

        return PenalisedLikelihood(data, "bic", self.penalty * log(data.total) / 2 if data.total > 0 else 0.0)


SCORES = {
    "bic": "markovia.structure.scores.scores:BIC",
    "aic": "markovia.structure.scores.table_scores:AIC",
    "bdeu": "markovia.structure.scores.table_scores:BDeu",
    "k2": "markovia.structure.scores.table_scores:K2",
    "log-likelihood": "markovia.structure.scores.table_scores:LogLikelihood",
    "qnml": "markovia.structure.scores.quotient_nml:QNML",
    "gaussian-bic": "markovia.structure.scores.gaussian_scores:GaussianBIC",
    "cg-bic": "markovia.structure.scores.conditional_gaussian_score:ConditionalGaussianBIC",
}
"""Where each score is, by its public name."""
SCORE_ALIASES = {
    "ll": "log-likelihood",
    "loglik": "log-likelihood",
    "bic-g": "gaussian-bic",
    "bic-cg": "cg-bic",
    "conditional-gaussian-bic": "cg-bic",
}


def default_score(data: MixedTable) -> str:
    """Return the name of BIC for the kind of data."""
    return "bic" if data.discrete else "gaussian-bic" if data.continuous else "cg-bic"


def score_for(task: Task) -> LocalScore:
    """Return the score that a task asks for, ready for its data."""
    found = bind_score(task.score, task.rows)
    task.score_name = found.name
    return found


def bind_score(score: Any, data: MixedTable) -> LocalScore:
    """Return a score for data by name, specification, or the default for the kind of data."""
    if score is None or (isinstance(score, str) and score == "auto"):
        score = default_score(data)
    if isinstance(score, LocalScore):
        return score
    if isinstance(score, str):
        score = named(score, SCORES, SCORE_ALIASES, "score")()
    if isinstance(score, type) and hasattr(score, "bind"):
        raise InvalidArgument(f"score= is a score, not a class of scores; write mk.scores.{score.__name__}()")
    if not hasattr(score, "bind"):
        raise InvalidArgument(
            f"score= is a name such as 'bic', or a score such as mk.scores.BIC(), not {score!r}"
        )
    found: LocalScore = score.bind(data)
    return found
