"""Sampling-importance-resampling: posterior draws without weights, picked by weight from a larger pool (Rubin 1987).

Method: make a pool of weighted draws (likelihood weighting for a Bayesian network, a mini-bucket proposal otherwise), then
draw from the pool with probabilities proportional to the weights (`resampling`). The result is a set of unweighted, nearly
independent posterior draws as long as the pool is much larger than what is drawn from it. Cost: that of the pool, whose
weights are kept in memory; what is picked is drawn again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from markovia.factors.tables.conditional import Conditional
from markovia.inference.problem import Problem
from markovia.inference.result import Tables
from markovia.inference.weighted_draws.importance_sampling import ImportanceSampling
from markovia.inference.weighted_draws.resampling import Scheme, resample
from markovia.inference.weighted_draws.sequential_draws import SequentialSampler
from markovia.inference.weighted_draws.weighted_engine import (
    Counter,
    Pool,
    WeightedEngine,
    proved_impossible,
    tables_of,
)
from markovia.runtime.array_types import Codes
from markovia.runtime.checks import CountOrNone
from markovia.runtime.clock import now

DRAWS = 10_000


@dataclass(frozen=True, kw_only=True)
class SamplingImportanceResampling(WeightedEngine):
    """Unweighted posterior draws, resampled by weight from a larger pool.

    Parameters
    ----------
    draws
        Draws kept by resampling (10,000 by default); answers are their shares.
    pool
        Weighted draws made first; by default ten times `draws`.
    scheme
        "systematic", "stratified", "residual" or "multinomial".
    proposal
        As in `ImportanceSampling`; "auto" is the prior for a Bayesian network and "mini-bucket" otherwise.
    seed
        The same seed gives the same answer.
    tolerance
        The answer counts as converged if the largest standard error is below.

    Notes
    -----
    `time_limit` bounds the size of the pool. The error adds the error of the pool and that of resampling.

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.SamplingImportanceResampling(draws=20_000, pool=200_000)
    >>> p = mk.examples.sprinkler().query("rain", given={"wet": "yes"}, engine=engine)
    >>> abs(p["yes"] - 0.707928) < 4 * p.info.error < 0.03
    True
    """

    pool: CountOrNone = None
    scheme: Scheme = "systematic"
    proposal: Any = "auto"

    name: ClassVar[str] = "sir"
    advice: ClassVar[str] = "try a larger pool, another proposal, or engine='gibbs'"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.proposal != "auto":
            ImportanceSampling(proposal=self.proposal)

    def _sampler(self, problem: Problem, targets: Sequence[str] | None) -> SequentialSampler:
        proposal = self.proposal
        if isinstance(proposal, str) and proposal == "auto":
            children = [p.variable.name for p in problem.pieces if isinstance(p, Conditional)]
            directed = len(set(children)) == len(problem.pieces)
            proposal = "prior" if directed else "mini-bucket"
        return ImportanceSampling(proposal=proposal, seed=self.seed)._sampler(problem, targets)

    def _answer(self, problem: Problem, targets: Sequence[str], groups: Sequence[tuple[str, ...]]) -> Tables:
        begin = now()
        sampler = self._sampler(problem, targets)
        n = DRAWS if self.draws is None else self.draws
        count = Counter(sampler.variables, sampler.column, groups)
        # what is kept is drawn once more from its seed, so the pool gets half the time
        deadline = np.inf if self.time_limit is None else begin + 0.5 * self.time_limit
        pool = Pool(sampler, self._pool_size(n), self.seed, count, deadline)
        whole = pool.sums
        if whole.positive == 0:
            return self._blank(problem, groups, whole, -np.inf if proved_impossible(problem) else np.nan)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(2**32 - 1,)))
        kept = pool.rows(resample(pool.log_weights, n, rng, self.scheme))
        shares = count(kept, np.zeros(n)).ratios()[0]
        errors = np.sqrt(whole.ratios()[1] ** 2 + shares * (1.0 - shares) / n)
        record = self._record(whole, errors)
        details = replace(record.details, kept=n, different=_different(kept))
        return Tables(tables_of(problem, groups, shares), whole.log_mean, replace(record, details=details))

    def _pool_size(self, n: int) -> int:
        return max(10 * n, 1000) if self.pool is None else self.pool

    def _scheme(self) -> Scheme:
        return self.scheme


def _different(rows: Codes) -> int:
    """Return how many different rows there are, told apart by a random sum (by chance alike: never in practice)."""
    mixing = np.random.default_rng(0).integers(2**63, size=rows.shape[1])
    return len(np.unique(rows.astype(np.int64) @ mixing))
