"""Forward sampling: parents first, every variable from its conditional distribution.

Method: ancestral sampling in a topological order; a probability is the share of draws that have it. References: Henrion
(1988), "probabilistic logic sampling". Cost: draws times variables; the error of a probability p is
`sqrt(p (1 - p) / draws)`, whatever the width of the network.
Use it to estimate priors of networks too wide for exact inference. Evidence needs "likelihood-weighting" or "rejection".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from markovia.errors import Unanswered
from markovia.inference.problem import Problem
from markovia.inference.weighted_draws.sequential_draws import (
    SequentialSampler,
    ancestral_sampler,
    refuse_undirected,
)
from markovia.inference.weighted_draws.weighted_engine import WeightedEngine


@dataclass(frozen=True, kw_only=True)
class ForwardSampling(WeightedEngine):
    """Ancestral draws of a Bayesian network without evidence.

    Parameters
    ----------
    draws, tolerance, seed, time_limit
        As in `LikelihoodWeighting`.

    Examples
    --------
    >>> import markovia as mk
    >>> p = mk.examples.sprinkler().query("wet", engine=mk.engines.ForwardSampling(draws=40_000))
    >>> abs(p["yes"] - 0.6471) < 4 * p.info.error < 0.02
    True
    """

    name: ClassVar[str] = "forward"
    advice: ClassVar[str] = "try more draws"

    def _sampler(self, problem: Problem, targets: Sequence[str] | None) -> SequentialSampler:
        refuse_undirected(problem, self.name)
        if problem.findings:
            raise Unanswered(
                f"engine 'forward' draws without evidence, but there is some on {next(iter(problem.findings))!r}; "
                "use engine='likelihood-weighting'"
            )
        return ancestral_sampler(problem, targets, self.name)
