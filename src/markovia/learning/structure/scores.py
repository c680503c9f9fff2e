"""Scores of directed graphs that are sums over families, larger is better.

A specification (`BIC(penalty=2)`) is what users name; bound to data it becomes a `LocalScore`, which algorithms ask for the
scores of families: one child and its parents, as numbers of variables. Families are computed in batches and remembered.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.factor import Array
from markovia.learning.structure.study import StructureData

Family = tuple[int, tuple[int, ...]]
"""A child and its parents, in increasing order."""


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
    """

    name: str
    equivalent = True

    def __init__(self, data: StructureData) -> None:
        self.data = data
        self.n = len(data.names)
        self.known: dict[Family, float] = {}
        self.n_computed = 0

    @abstractmethod
    def _compute(self, families: Sequence[Family]) -> Array:
        """Return the scores of families that are not known yet."""

    def local(self, child: int, parents: Sequence[int] = ()) -> float:
        """Return the score of one family; parents in any order."""
        return float(self.many([(child, tuple(sorted(parents)))])[0])

    def many(self, families: Sequence[Family]) -> Array:
        """Return the scores of families; parents in increasing order."""
        fresh = [f for f in dict.fromkeys(families) if f not in self.known]
        if fresh:
            self.n_computed += len(fresh)
            self.known.update(zip(fresh, self._compute(fresh).tolist(), strict=True))
        return np.array([self.known[f] for f in families])

    def added(self, child: int, parents: Sequence[int], candidates: Sequence[int]) -> Array:
        """Return for each candidate the score of the child with the parents and the candidate."""
        base = tuple(parents)
        return self.many([(child, tuple(sorted((*base, c)))) for c in candidates])

    def removed(self, child: int, parents: Sequence[int]) -> Array:
        """Return for each parent the score of the child with the other parents."""
        base = tuple(sorted(parents))
        found = self.many([(child, (*base[:i], *base[i + 1 :])) for i in range(len(base))])
        order = {p: i for i, p in enumerate(base)}
        return found[[order[p] for p in parents]]

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        """Return the score of a graph given each variable's parents."""
        return float(self.many([(i, tuple(sorted(p))) for i, p in enumerate(parents)]).sum())


class ScoreSpec(Protocol):
    """What a user names."""

    def bind(self, data: StructureData) -> LocalScore:
        """Return the score for these data."""


@dataclass(frozen=True)
class BIC:
    """Bayesian information criterion: log-likelihood minus ln(n) / 2 for each free parameter.

    Parameters
    ----------
    penalty
        Multiplies the penalty.
    """

    penalty: float = 1.0

    def bind(self, data: StructureData) -> LocalScore:
        """Return the score for these data."""
        return _DenseBIC(data, self.penalty)


class _DenseBIC(LocalScore):
    name = "bic"

    def __init__(self, data: StructureData, penalty: float) -> None:
        super().__init__(data)
        self.penalty = penalty

    def _compute(self, families: Sequence[Family]) -> Array:
        assert self.data.table is not None
        names, cards = self.data.names, self.data.cards
        tables = self.data.table.counts([[names[i] for i in (*ps, c)] for c, ps in families])
        weight = self.penalty * np.log(self.data.total) / 2
        found = np.empty(len(families))
        for k, ((child, parents), table) in enumerate(zip(families, tables, strict=True)):
            rows = table.sum(axis=-1)
            likelihood = _xlogx(table) - _xlogx(rows)
            free = (cards[child] - 1) * float(np.prod(cards[list(parents)], dtype=np.float64))
            found[k] = likelihood - weight * free
        return found


def _xlogx(values: Array) -> float:
    positive = values[values > 0]
    return float((positive * np.log(positive)).sum())


SCORES = {
    "bic": "scores:BIC",
    "aic": "table_scores:AIC",
    "bdeu": "table_scores:BDeu",
    "k2": "table_scores:K2",
    "log-likelihood": "table_scores:LogLikelihood",
    "qnml": "quotient_nml:QNML",
    "gaussian-bic": "gaussian_scores:GaussianBIC",
    "cg-bic": "conditional_gaussian_score:ConditionalGaussianBIC",
}
"""Where each score is, by its public name."""
SCORE_ALIASES = {
    "ll": "log-likelihood",
    "loglik": "log-likelihood",
    "bic-g": "gaussian-bic",
    "bic-cg": "cg-bic",
    "conditional-gaussian-bic": "cg-bic",
}


def default_score(data: StructureData) -> str:
    """Return the name of BIC for the kind of data."""
    return "bic" if data.discrete else "gaussian-bic" if data.continuous else "cg-bic"


def bind_score(score: Any, data: StructureData) -> LocalScore:
    """Return a score for data by name, specification, or the default for the kind of data."""
    if score is None or score == "auto":
        score = default_score(data)
    if isinstance(score, LocalScore):
        return score
    if isinstance(score, str):
        score = named(score, SCORES, SCORE_ALIASES, "score")()
    if not hasattr(score, "bind"):
        raise InvalidArgument(
            f"score= is a name such as 'bic', or a score such as mk.scores.BIC(), not {score!r}"
        )
    found: LocalScore = score.bind(data)
    return found


def named(word: str, homes: Mapping[str, str], aliases: Mapping[str, str], what: str) -> Any:
    """Import what a name stands for, or say which names there are."""
    plain = word.strip().lower().replace("_", "-").replace(" ", "-")
    plain = aliases.get(plain, plain)
    if plain not in homes:
        raise InvalidArgument(f"there is no {what} {word!r}; there are {', '.join(sorted(homes))}")
    module, _, name = homes[plain].partition(":")
    return getattr(import_module(f"markovia.learning.structure.{module}"), name)
