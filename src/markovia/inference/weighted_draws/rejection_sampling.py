"""Rejection sampling: forward draws that happen to agree with the evidence.

Method: draw the whole network forward, observed variables included, and keep a draw if it has the observed states. Soft
evidence keeps it with probability likelihood / largest likelihood. What is kept are independent exact draws from the
posterior, and the share kept estimates P(evidence). Reference: Henrion (1988). Cost: 1 / P(evidence) draws for each one
kept, so it stops being useful when the evidence is unlikely: "likelihood-weighting" wastes no draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from markovia.inference.problem import Problem
from markovia.inference.result import Draws
from markovia.inference.weighted_draws.sequential_draws import Codes, SequentialSampler, ancestral_sampler
from markovia.inference.weighted_draws.weight_diagnostics import WeightDetails, WeightSums
from markovia.inference.weighted_draws.weighted_engine import Counter, WeightedEngine
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count


@dataclass(frozen=True, kw_only=True)
class RejectionSampling(WeightedEngine):
    """Forward draws of a Bayesian network, kept where they agree with the evidence.

    Parameters
    ----------
    draws
        Forward draws made, kept or not; otherwise as in `LikelihoodWeighting`.
    tolerance, seed, time_limit
        As in `LikelihoodWeighting`.
    max_tries
        For `sample`: forward draws made for each row that is asked for, at most.

    Notes
    -----
    `info.details` has `acceptance` (the share that was kept) and `accepted` (how many).

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.RejectionSampling(draws=50_000)
    >>> p = mk.examples.sprinkler().query("rain", given={"wet": "yes"}, engine=engine)
    >>> abs(p["yes"] - 0.707928) < 4 * p.info.error < 0.02, round(p.info.details.acceptance, 2)
    (True, 0.65)
    """

    max_tries: Count = 10_000

    name: ClassVar[str] = "rejection"
    advice: ClassVar[str] = (
        "try engine='likelihood-weighting', 'importance' or 'gibbs', which fix the evidence"
    )

    def _sampler(self, problem: Problem, targets: Sequence[str] | None) -> SequentialSampler:
        return ancestral_sampler(problem, targets, self.name, draw_evidence=True)

    def _tally(
        self, count: Counter, sampler: SequentialSampler, rows: int, seed: np.random.SeedSequence
    ) -> WeightSums:
        codes, logs = self._kept(sampler, rows, seed)
        return count(codes, logs)

    def _kept(
        self, sampler: SequentialSampler, rows: int, seed: np.random.SeedSequence
    ) -> tuple[Codes, Array]:
        """Return draws whose log weight is the constant of the sampler, or minus infinity if not kept."""
        codes, logs = sampler.draw(rows, seed)
        coin = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1)))
        kept = coin.random(rows) < np.exp(np.minimum(0.0, logs - sampler.base))
        return codes, np.where(kept, sampler.base, -np.inf)

    def _details(self, sums: WeightSums) -> WeightDetails:
        share = sums.positive / max(1, sums.draws)
        return replace(super()._details(sums), acceptance=share, accepted=sums.positive)

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw until n draws are kept, at most `max_tries` times n; what is kept are exact posterior draws."""
        sampler = self._sampler(problem, None)
        entropy = int(rng.integers(2**63))
        found: list[Codes] = []
        kept, tried, i = 0, 0, 0
        while kept < n:
            if tried >= max(self.max_tries * n, sampler.chunk):
                raise self._nothing(problem)
            codes, logs = self._kept(sampler, sampler.chunk, np.random.SeedSequence(entropy, spawn_key=(i,)))
            found.append(codes[logs > -np.inf])
            kept, tried, i = kept + len(found[-1]), tried + sampler.chunk, i + 1
        codes = np.concatenate(found)[:n] if found else np.zeros((0, len(sampler.variables)), dtype=np.int32)
        return Draws({m: codes[:, sampler.column[m]].astype(np.int64) for m in problem.free})
