"""Quotient normalised maximum likelihood: a score without settings that gives equivalent graphs the same score.

A set of columns is coded as one variable with as many states as it has configurations, by the normalised maximum likelihood
code; a family's score is that of child and parents minus that of the parents (Silander, Leppa-aho, Jaasaari & Roos 2018,
"Quotient normalized maximum likelihood criterion for learning Bayesian network structures"). The price of the code is the
log of the multinomial normaliser C(n, k), from the recurrence C(n, k + 2) = C(n, k + 1) + n / k C(n, k) (Kontkanen &
Myllymaki 2007); with more than `EXACT_STATES` states by the approximation of Szpankowski & Weinberger (2012), whose relative
error is far below that of the score there. Cost: that of BIC, and the number of configurations once.
"""

from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.runtime.array_types import Array
from markovia.structure.scores.local_score import LocalScore
from markovia.structure.scores.table_scores import TableScore

EXACT_STATES = 20_000
"""Up to so many states the normaliser is exact."""


@dataclass(frozen=True)
class QNML:
    """Quotient normalised maximum likelihood (qNML); no settings, and equivalent graphs score the same.

    Weighted rows whose weights add up to no whole number are coded as the nearest whole number of rows.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> mk.learn_structure(rows, score="qnml").score_name
    'qnml'
    """

    def bind(self, data: MixedTable) -> LocalScore:
        """Return the score for these data."""
        return QuotientScore(data)


class QuotientScore(TableScore):
    """qNML bound to data."""

    def __init__(self, data: MixedTable) -> None:
        super().__init__(data, "qnml")
        self.regret = MultinomialRegret(round(data.total))

    def _penalty(self, own: Array, configurations: Array) -> Array:
        pairs = zip((own * configurations).tolist(), configurations.tolist(), strict=True)
        return np.array([self.regret(joint) - self.regret(parents) for joint, parents in pairs])


class MultinomialRegret:
    """The log of the normaliser of the multinomial normalised maximum likelihood code.

    Parameters
    ----------
    n
        The number of rows.

    Examples
    --------
    >>> regret = MultinomialRegret(2)
    >>> round(float(np.exp(regret(2))), 6)  # two rows, two states: 1 + 1/2 + 1
    2.5
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._logs = [0.0, 0.0, _log_two_states(n)]
        self._known: dict[float, float] = {}

    def __call__(self, states: float) -> float:
        """Return log C(n, states)."""
        if self.n == 0:
            return 0.0
        if states <= EXACT_STATES:
            logs, log_n = self._logs, log(self.n)
            while len(logs) <= states:
                k = len(logs) - 2
                logs.append(logs[-1] + log1p(exp(log_n - log(k) + logs[-2] - logs[-1])))
            return logs[int(states)]
        if states not in self._known:
            self._known[states] = _approximate(self.n, states)
        return self._known[states]


def _log_two_states(n: int) -> float:
    if n == 0:
        return 0.0
    from scipy.special import gammaln, logsumexp, xlogy

    h = np.arange(n + 1, dtype=np.float64)
    terms = lgamma(n + 1) - gammaln(h + 1) - gammaln(n - h + 1) + xlogy(h, h / n) + xlogy(n - h, (n - h) / n)
    return float(logsumexp(terms))


def _approximate(n: int, states: float) -> float:
    a = states / n
    c = 0.5 + 0.5 * sqrt(1 + 4 / a)
    return n * (log(a) + (a + 2) * log(c) - 1 / c) - 0.5 * log(c + 2 / a)
