"""Importance sampling with a proposal that you choose, or that learns.

Method: draw from a proposal Q instead of the model P and weigh each draw by P / Q. The mean weight estimates the mass that
agrees with the evidence without bias; weighted shares estimate posteriors. Proposals:

- "mini-bucket": eliminate the variables one by one, splitting products that would be larger than `table_entries` (weighted
  mini-buckets), and draw in the reverse order from what the eliminated tables say. Any model, directed or not; if nothing
  had to be split, all weights are equal and the draws are exact. Liu and Ihler (2011); Gogate and Dechter (2011).
- "prior": the network's own conditionals, which is likelihood weighting.
- "adaptive": conditional tables that start from the prior (or from small mini-buckets) and are moved towards the weighted
  counts of the draws in some rounds; then draws from the last ones. Cheng and Druzdzel (2000), AIS-BN.
- a mapping from name to probabilities or `Posterior`: independent marginals, such as those of mean field or loopy BP.
- a Bayesian network over the same variables.

Cost: draws times variables (plus tables that the proposal is made from). What can go wrong: where Q is small and P is not,
a few draws carry all the weight, and the answer looks stable until one turns up. `pareto_k`, `effective_draws` and
`largest_share` of the details show it, and an answer with a Pareto k above 0.7 counts as not converged.
Use it where likelihood weighting has few effective draws, for log Z of undirected models of moderate width, and to correct
the marginals of a variational method.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from markovia.errors import InvalidArgument
from markovia.factors.tables.conditional import Conditional
from markovia.inference.flat_graphs.unfolding import unfolded
from markovia.inference.problem import Problem
from markovia.inference.weighted_draws.importance_proposals import (
    adapted_sampler,
    marginal_sampler,
    mini_bucket_sampler,
    network_sampler,
)
from markovia.inference.weighted_draws.sequential_draws import SequentialSampler, ancestral_sampler
from markovia.inference.weighted_draws.weight_diagnostics import WeightDetails, WeightSums
from markovia.inference.weighted_draws.weighted_engine import WeightedEngine
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, FromZero, NumberRange

ENTRIES_A_SECOND = 5e6
NAMED = ("mini-bucket", "prior", "adaptive")


@dataclass(frozen=True, kw_only=True)
class ImportanceSampling(WeightedEngine):
    """Weighted draws from a proposal.

    Parameters
    ----------
    proposal
        "mini-bucket", "prior", "adaptive", a mapping from name to probabilities (of every free variable), or a Bayesian
        network over the same variables. A network has to give positive probability to whatever the model does; named
        proposals and marginals see to that themselves.
    normalised
        True divides by the sum of the weights (the usual estimate, slightly biased). False divides by the number of draws
        and the mass, which must be known: 1 for a Bayesian network without evidence, otherwise give `known_log_mass`. It is
        unbiased, but a table need not sum to one.
    known_log_mass
        Log of the mass that agrees with the evidence, for `normalised=False`.
    table_entries
        Entries that a table of the "mini-bucket" or "adaptive" proposal may have; fewer if the time limit is short.
    rounds, round_draws
        How often "adaptive" learns, and from how many draws each time (fewer where they would fill the memory).
    draws, tolerance, seed, time_limit
        As in `LikelihoodWeighting`.

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.ImportanceSampling(proposal="adaptive", draws=50_000)
    >>> p = mk.examples.sprinkler().query("rain", given={"wet": "yes"}, engine=engine)
    >>> abs(p["yes"] - 0.707928) < 4 * p.info.error < 0.02
    True
    """

    proposal: Any = "mini-bucket"
    normalised: bool = True
    known_log_mass: Annotated[float | None, NumberRange(open="both", said="a finite number", none=True)] = (
        None
    )
    table_entries: Count = 2**16
    rounds: FromZero = 10
    round_draws: Count = 4096

    name: ClassVar[str] = "importance"
    continuous: ClassVar[str] = "markovia.inference.densities.engines.density_importance:DensityImportance"
    advice: ClassVar[str] = (
        "try more draws, another proposal= (larger table_entries, 'adaptive'), or engine='gibbs'"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.proposal, str) and self.proposal not in NAMED:
            raise InvalidArgument(
                f"proposal= is one of {', '.join(NAMED)}, a mapping from name to probabilities or a Bayesian network, "
                f"not {self.proposal!r}"
            )
        if not isinstance(self.proposal, str | Mapping) and not hasattr(self.proposal, "pieces"):
            raise InvalidArgument(
                f"proposal= is a name, a mapping or a Bayesian network, not {type(self.proposal).__name__}"
            )

    def _sampler(self, problem: Problem, targets: Sequence[str] | None) -> SequentialSampler:
        return make_sampler(self, problem, targets)

    def _estimate(self, problem: Problem, sums: WeightSums) -> tuple[Array, Array]:
        return sums.ratios() if self.normalised else sums.means(self._mass(problem))

    def _mass(self, problem: Problem) -> float:
        if self.known_log_mass is not None:
            return float(self.known_log_mass)
        directed = all(isinstance(p, Conditional) for p in problem.pieces)
        if not directed or problem.findings or problem.unmentioned():
            raise InvalidArgument(
                "normalised=False needs the mass that agrees with the evidence; give known_log_mass=, or leave "
                "normalised=True"
            )
        return 0.0

    def _details(self, sums: WeightSums) -> WeightDetails:
        given = "dict" if isinstance(self.proposal, Mapping) else type(self.proposal).__name__
        kind = self.proposal if isinstance(self.proposal, str) else given
        return replace(super()._details(sums), proposal=kind)


def make_sampler(
    engine: ImportanceSampling, problem: Problem, targets: Sequence[str] | None
) -> SequentialSampler:
    """Return the sampler that an engine's proposal stands for."""
    proposal = engine.proposal
    if proposal == "mini-bucket" and isinstance(proposal, str):
        problem = unfolded(problem, proposal)  # other proposals need no tables
        return mini_bucket_sampler(problem, targets, _entries(engine, problem))
    if proposal == "prior" and isinstance(proposal, str):
        return ancestral_sampler(problem, targets, engine.name)
    if proposal == "adaptive" and isinstance(proposal, str):
        return adapted_sampler(
            problem,
            targets,
            _entries(engine, problem),
            engine.rounds,
            engine.round_draws,
            engine.seed,
            None if engine.time_limit is None else engine.time_limit / 2.0,
        )
    if isinstance(proposal, Mapping):
        return marginal_sampler(problem, targets, proposal)
    return network_sampler(problem, proposal.pieces())


def _entries(engine: ImportanceSampling, problem: Problem) -> int:
    """Return how large tables may be, less if there is little time to make them."""
    if engine.time_limit is None:
        return engine.table_entries
    affordable = int(ENTRIES_A_SECOND * engine.time_limit / max(1, len(problem.variables)))
    return min(engine.table_entries, max(2**6, affordable))
