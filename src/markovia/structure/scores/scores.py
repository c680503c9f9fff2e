"""The scores by name, and BIC, which every kind of data has.

A specification (`BIC(penalty=2)`) is what users name; bound to data it becomes a `LocalScore` (`local_score`).
"""

from dataclasses import dataclass
from math import log
from typing import Any

from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import InvalidArgument
from markovia.runtime.checks import check_number
from markovia.runtime.registry import named
from markovia.structure.scores.local_score import LocalScore
from markovia.structure.task.task import Task


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
