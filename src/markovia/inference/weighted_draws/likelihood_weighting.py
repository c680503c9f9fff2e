"""Likelihood weighting: draw what is not observed, weigh by how well it explains what is.

Method: go through a Bayesian network parents first. An unobserved variable is drawn from its conditional distribution; an
observed one keeps its state and multiplies the weight by its probability given the parents; soft evidence multiplies it
by its likelihood. The mean weight is an unbiased estimate of P(evidence). Conditionals that do not matter to the question
are dropped first (barren nodes). References: Fung and Chang (1990), Shachter and Peot (1990).
Cost: draws times variables. Local models are used as they are, so a noisy-or with hundreds of parents costs its parents,
not its table. Tables run compiled, on all threads.
Use it where evidence is not too unlikely and sits near the roots; when observed leaves are improbable, few draws carry
the weight: then use "importance", or "gibbs".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from markovia.inference.problem import Problem
from markovia.inference.weighted_draws.sequential_draws import SequentialSampler, ancestral_sampler
from markovia.inference.weighted_draws.weighted_engine import WeightedEngine


@dataclass(frozen=True, kw_only=True)
class LikelihoodWeighting(WeightedEngine):
    """Weighted forward draws of a Bayesian network given evidence.

    Parameters
    ----------
    draws
        How many; by default 100,000, or as many as it takes where a tolerance or time limit is given.
    tolerance
        Stop when the largest standard error is below (of a probability; of the log for a log mass).
    seed
        The same seed gives the same answer, whatever the number of threads; None takes a new one.
    time_limit
        Seconds.

    Notes
    -----
    `info.error` is the largest standard error. `info.details` has `effective_draws`, `largest_share`, `pareto_k` and
    `log_mass_error`. The answer counts as converged if the Pareto index is at most 0.7, the draws are worth 30
    independent ones, and the tolerance, if any, is met.

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.LikelihoodWeighting(draws=50_000, seed=1)
    >>> p = mk.examples.sprinkler().query("rain", given={"wet": "yes"}, engine=engine)
    >>> abs(p["yes"] - 0.707928) < 4 * p.info.error < 0.02
    True
    """

    name: ClassVar[str] = "likelihood-weighting"

    def _sampler(self, problem: Problem, targets: Sequence[str] | None) -> SequentialSampler:
        return ancestral_sampler(problem, targets, self.name)
