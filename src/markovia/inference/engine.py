"""The protocol that engines share, and the registry of their public names.

A new engine is one new file with a dataclass that has these methods, and one line in `_REGISTRY`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from functools import cache
from types import TracebackType
from typing import ClassVar, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np

from markovia.errors import InvalidArgument, Unanswered, UnknownEngine, UnsupportedModel, did_you_mean
from markovia.inference.problem import Problem
from markovia.inference.result import Draws, LogMass, Ranked, Tables
from markovia.runtime.checks import SECONDS, Choice, check
from markovia.runtime.devices import Device, usable_gpu
from markovia.runtime.progress import quietly
from markovia.runtime.registry import resolve

TABLES = frozenset({"table"})
"""The kinds of pieces that an engine treats unless it has an attribute `kinds` that says otherwise."""

CLOSED = frozenset({"table", "gaussian", "field"})
"""The kinds of pieces that have exact answers together."""

DENSITIES = frozenset({"table", "gaussian", "distribution", "potential"})
"""The kinds of pieces that together are a density of numbers, for samplers and optimisers."""

QUESTIONS = ("joint", "marginals", "log_mass", "best", "sample")
"""The questions of the protocol, by the names of its methods."""

ASKED_FOR = {
    "joint": "joint posteriors",
    "marginals": "marginals",
    "log_mass": "log partition functions",
    "best": "most probable states",
    "best of some": "most probable states of some variables, the others summed out",
    "several best": "several best assignments",
    "sample": "draws",
}
"""What engines are asked for, in words; two of them are more than the best assignment of everything."""

_INSTEAD: tuple[tuple[frozenset[str], Mapping[str, str]], ...] = (
    (
        TABLES,
        {
            "joint": "use engine='gibbs' or 'auto'",
            "marginals": "use engine='loopy-bp' or 'auto'",
            "log_mass": "use engine='tree-reweighted' or 'auto'",
            "best": "use engine='max-product' or 'auto'",
            "best of some": "use engine='variable-elimination' or 'marginal-map'",
            "several best": "use engine='junction-tree'",
            "sample": "use engine='gibbs' or 'auto'",
        },
    ),
    (CLOSED, dict.fromkeys(ASKED_FOR, "use engine='gaussian'")),
    (
        DENSITIES,
        {
            "joint": "use engine='nuts'",
            "marginals": "use engine='nuts'",
            "log_mass": "use engine='smc' or, faster and rougher, 'laplace'",
            "best": "use engine='laplace'",
            "best of some": "leave targets out for the mode of all together, or ask query(...) for their posterior",
            "several best": "leave m out, or give every latent variable states",
            "sample": "use engine='nuts'",
        },
    ),
)
"""By the kinds of the pieces, who answers each question: what every refusal ends with."""


@runtime_checkable
class Engine(Protocol):
    """An inference algorithm with its settings."""

    name: ClassVar[str]
    exact: ClassVar[bool]

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target."""

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log of the total weight that agrees with the findings; minus infinity for none."""

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the m best assignments of the targets, other variables summed out."""

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n configurations of the free variables given the findings, as state codes."""


_REGISTRY = {
    "auto": "markovia.inference.choosing.auto:Auto",
    "junction-tree": "markovia.inference.exact.junction_tree:JunctionTree",
    "variable-elimination": "markovia.inference.exact.variable_elimination:VariableElimination",
    "conditioning": "markovia.inference.exact.conditioning:Conditioning",
    "sliced-elimination": "markovia.inference.sliced.sliced_elimination:SlicedElimination",
    "enumeration": "markovia.inference.exact.enumeration:Enumeration",
    "loopy-bp": "markovia.inference.message_passing.loopy_bp:LoopyBP",
    "generalized-bp": "markovia.inference.message_passing.generalized_bp:GeneralizedBP",
    "join-graph": "markovia.inference.message_passing.join_graph:JoinGraph",
    "tree-reweighted": "markovia.inference.variational.tree_reweighted:TreeReweighted",
    "mean-field": "markovia.inference.variational.mean_field:MeanField",
    "structured-mean-field": "markovia.inference.variational.structured_mean_field:StructuredMeanField",
    "gibbs": "markovia.inference.markov_chains.gibbs:Gibbs",
    "metropolis": "markovia.inference.markov_chains.metropolis:MetropolisHastings",
    "swendsen-wang": "markovia.inference.markov_chains.swendsen_wang:SwendsenWang",
    "parallel-tempering": "markovia.inference.markov_chains.parallel_tempering:ParallelTempering",
    "annealed-importance": "markovia.inference.weighted_draws.annealed_importance:AnnealedImportance",
    "forward": "markovia.inference.weighted_draws.forward_sampling:ForwardSampling",
    "rejection": "markovia.inference.weighted_draws.rejection_sampling:RejectionSampling",
    "likelihood-weighting": "markovia.inference.weighted_draws.likelihood_weighting:LikelihoodWeighting",
    "importance": "markovia.inference.weighted_draws.importance_sampling:ImportanceSampling",
    "sir": "markovia.inference.weighted_draws.sampling_importance_resampling:SamplingImportanceResampling",
    "max-product": "markovia.inference.message_passing.max_product:MaxProduct",
    "dual-decomposition": "markovia.inference.map_bounds.dual_decomposition:DualDecomposition",
    "trw-s": "markovia.inference.map_bounds.trw_s:TRWS",
    "graph-cut": "markovia.inference.map_bounds.graph_cut:GraphCut",
    "alpha-expansion": "markovia.inference.map_bounds.move_making:AlphaExpansion",
    "alpha-beta-swap": "markovia.inference.map_bounds.move_making:AlphaBetaSwap",
    "expansion-shrink": "markovia.inference.map_bounds.move_making:AlphaExpansionBetaShrink",
    "beam": "markovia.inference.map_bounds.beam_search:BeamSearch",
    "a-star": "markovia.inference.map_bounds.a_star:AStar",
    "linear-program": "markovia.inference.map_bounds.linear_program:LinearProgram",
    "quadratic-program": "markovia.inference.map_bounds.quadratic_program:QuadraticProgram",
    "relaxation-labelling": "markovia.inference.map_bounds.relaxation_labelling:RelaxationLabelling",
    "map-search": "markovia.inference.local_search.map_search:MapSearch",
    "icm": "markovia.inference.local_search.icm:IteratedConditionalModes",
    "block-icm": "markovia.inference.local_search.block_icm:BlockICM",
    "simulated-annealing": "markovia.inference.local_search.simulated_annealing:SimulatedAnnealing",
    "tabu": "markovia.inference.local_search.tabu_search:TabuSearch",
    "guided-local-search": "markovia.inference.local_search.guided_local_search:GuidedLocalSearch",
    "large-neighbourhood": "markovia.inference.local_search.large_neighbourhood:LargeNeighbourhood",
    "marginal-map": "markovia.inference.local_search.marginal_map_search:MarginalMapSearch",
    "gaussian": "markovia.inference.gaussian.strong_elimination:Gaussian",
    "conjugate": "markovia.inference.densities.closed_forms.conjugate:Conjugate",
    "cavi": "markovia.inference.densities.closed_forms.cavi:CAVI",
    "svi": "markovia.inference.densities.closed_forms.svi:SVI",
    "nuts": "markovia.inference.densities.engines.nuts:NUTS",
    "hmc": "markovia.inference.densities.engines.hmc:HMC",
    "mala": "markovia.inference.densities.engines.mala:MALA",
    "langevin": "markovia.inference.densities.engines.sgld:Langevin",
    "sgld": "markovia.inference.densities.engines.sgld:SGLD",
    "annealed-langevin": "markovia.inference.densities.engines.annealed_langevin:AnnealedLangevin",
    "smc": "markovia.inference.densities.engines.smc:SMC",
    "laplace": "markovia.inference.densities.engines.laplace:Laplace",
    "advi": "markovia.inference.densities.engines.advi:ADVI",
    "flow-vi": "markovia.inference.densities.engines.flow_vi:FlowVI",
    "amortised": "markovia.inference.densities.engines.amortised:Amortised",
    "twisted-smc": "markovia.inference.densities.engines.twisted_smc:TwistedSMC",
}

_ALSO_CALLED = {
    "sliced": "sliced-elimination",
    "belief-propagation": "loopy-bp",
    "bp": "loopy-bp",
    "gbp": "generalized-bp",
    "kikuchi": "generalized-bp",
    "ijgp": "join-graph",
    "trw": "tree-reweighted",
    "trw-bp": "tree-reweighted",
    "metropolis-hastings": "metropolis",
    "ais": "annealed-importance",
    "annealed-importance-sampling": "annealed-importance",
    "forward-sampling": "forward",
    "rejection-sampling": "rejection",
    "importance-sampling": "importance",
    "sampling-importance-resampling": "sir",
    "alpha-expansion-beta-shrink": "expansion-shrink",
    "beam-search": "beam",
    "a*": "a-star",
    "relaxation-labeling": "relaxation-labelling",
    "mplp": "dual-decomposition",
    "trws": "trw-s",
    "iterated-conditional-modes": "icm",
    "tabu-search": "tabu",
}
"""Other names that people know engines by; accepted, not listed."""

DEVICES = Choice(get_args(Device), none=True)
"""What `device=` may be; None lets the engine choose."""

BEYOND_TABLES = "models that are more than tables of states"
"""What no engine treats on the GPU, as the beginning of a refusal."""

_AS_USUAL: AbstractContextManager[None] = nullcontext()

Refusal = TypeVar("Refusal", bound=Unanswered | UnsupportedModel)


def without_cure(kind: type[Refusal], message: str) -> Refusal:
    """Return the refusal of an engine that does not know who else answers; `asking` adds who does to its sentence."""
    refusal = kind(message)
    refusal.__dict__["without_cure"] = True
    return refusal


def instead(kinds: frozenset[str], question: str) -> str:
    """Return who answers a question about pieces of some kinds, as the end of a refusal.

    Examples
    --------
    >>> instead(frozenset({"table", "distribution"}), "best")
    "use engine='laplace'"
    """
    for known, cures in _INSTEAD:
        if kinds <= known:
            return cures[question]
    others = [n for n, home in _REGISTRY.items() if kinds <= getattr(resolve(home), "kinds", TABLES)]
    return f"use engine={others[0]!r}" if others else "no engine does"


class asking:  # noqa: N801
    """Open while a model asks an engine a question.

    Pieces that the engine does not treat and questions that it does not answer are refused, with the name of an engine that
    does; so are those that it refuses itself without a cure. `progress=False` is silence.

    Examples
    --------
    >>> with asking(get_engine("enumeration"), Problem({}, [], {}), "log_mass"):
    ...     get_engine("enumeration").log_mass(Problem({}, [], {}))
    0.0
    """

    __slots__ = ("kinds", "question", "silence")

    def __init__(self, engine: Engine, problem: Problem, question: str) -> None:
        self.kinds, self.question = problem.kinds, question
        treated = getattr(engine, "kinds", TABLES)
        if not self.kinds <= treated:
            strange = ", ".join(sorted(self.kinds - treated))
            raise UnsupportedModel(
                f"engine {engine.name!r} treats pieces of kind {', '.join(sorted(treated))}, not {strange}; "
                f"{instead(self.kinds, question)}"
            )
        asked = "best" if question in ("best of some", "several best") else question
        if asked not in getattr(engine, "answers", QUESTIONS):
            raise Unanswered(
                f"engine {engine.name!r} does not give {ASKED_FOR[question]}; {instead(self.kinds, question)}"
            )
        self.silence = quietly() if getattr(engine, "progress", None) is False else _AS_USUAL

    def __enter__(self) -> None:
        self.silence.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.silence.__exit__(kind, error, trace)
        if error is not None and error.__dict__.pop("without_cure", False):
            error.args = (f"{error}; {instead(self.kinds, self.question)}", *error.args[1:])


def engine_names() -> list[str]:
    """Return the names that `engine=` accepts.

    Examples
    --------
    >>> "variable-elimination" in engine_names()
    True
    """
    return list(_REGISTRY)


def get_engine(
    engine: "str | Engine", time_limit: float | None = None, device: Device | None = None
) -> Engine:
    """Return an engine by name, with default settings, or the given one; "auto" picks one for each question.

    A time limit and a device replace the engine's own; an engine without that setting refuses them, except for the
    processor, on which every engine runs. Where the GPU is asked for and there is none, a warning says so.
    """
    found = _engine(engine)
    if time_limit is not None:
        check("time_limit", time_limit, SECONDS)
        if not hasattr(found, "time_limit"):
            raise InvalidArgument(f"engine {found.name!r} has no time limit; leave it out, or use 'auto'")
        found = replace(found, time_limit=float(time_limit))  # type: ignore[type-var]
    if device is not None:
        check("device", device, DEVICES)
        if hasattr(found, "device"):
            found = replace(found, device=device)  # type: ignore[type-var]
        elif device == "gpu":
            raise InvalidArgument(
                f"engine {found.name!r} runs on the processor only; leave device= out, or use engine='auto'"
            )
        if device == "gpu":
            usable_gpu()  # here, since some answers need no engine in the end: those of complete rows, for instance
    return found


def refuse_gpu(engine: "str | Engine", what: str) -> None:
    """Raise where an engine is to run on the GPU, of what only the processor does.

    Examples
    --------
    >>> refuse_gpu("auto", "bounds")
    """
    if getattr(engine, "device", None) == "gpu":
        raise InvalidArgument(f"{what} run on the processor only; leave device= out")


def engine_for(
    engine: "str | Engine",
    problem: Problem,
    time_limit: float | None = None,
    question: str = "joint",
    names: Sequence[str] = (),
) -> Engine:
    """Return the engine for a question about a problem, by the kinds of its pieces; "auto" prefers closed forms.

    A problem of tables is what "auto" itself looks at. Tables with linear Gaussians are answered exactly, and so are
    conjugate distributions. What has a guide is proposed from it. Otherwise posteriors come from NUTS, the most probable
    values from an optimiser and the evidence from a sequential sampler.
    """
    found = get_engine(engine, time_limit)
    if problem.kinds <= TABLES:
        return found
    if found.name != "auto":
        other = counterpart(found, problem)
        if not hasattr(other, "device"):
            refuse_gpu(found, BEYOND_TABLES)
        return other
    refuse_gpu(found, BEYOND_TABLES)
    if problem.kinds <= CLOSED:
        return get_engine("gaussian")
    if question in ("best", "best of some", "several best"):
        name = "laplace"
    else:
        if problem.partly_seen and any(hasattr(v, "skeleton") for v in problem.inputs.values()):
            twisted: Engine | None = resolve(_TWISTED)(problem, found.seed, time_limit)  # type: ignore[attr-defined]
            if twisted is not None:
                return twisted
        closed: Engine | None = None
        try:
            if "potential" not in problem.kinds and not problem.partly_seen & {*names}:  # which are drawn
                closed = resolve(_CLOSED_FORM)(problem, found.seed)  # type: ignore[attr-defined]
        except UnsupportedModel:
            # guides may propose what cannot be summed out, and what is barren does not have to be
            if not problem.guides and problem.bare(names) is problem:
                raise
        if closed is not None:
            return closed
        if problem.guides:
            guided: Engine | None = resolve(_AMORTISED)(problem, found.seed, time_limit)  # type: ignore[attr-defined]
            if guided is not None:
                return guided
        name = "smc" if question == "log_mass" else "nuts"
    return replace(get_engine(name, time_limit), seed=found.seed)  # type: ignore[type-var, attr-defined]


def best_question(names: Sequence[str], free: Sequence[str], m: int) -> str:
    """Return what is asked for where the m best values of some of the free variables are."""
    return "several best" if m > 1 else "best of some" if set(names) < set(free) else "best"


def counterpart(engine: Engine, problem: Problem) -> Engine:
    """Return the engine of the same name for a problem with pieces that are no tables, or the engine itself.

    An engine that treats tables may name it in an attribute `continuous`. Settings that both have are handed over where they
    were changed from their default.
    """
    home: str | None = getattr(engine, "continuous", None)
    if home is None or problem.kinds <= TABLES:
        return engine
    kind = resolve(home)
    known = {f.name for f in fields(kind)}
    changed = {f.name: getattr(engine, f.name) for f in fields(engine) if f.name in known}  # type: ignore[arg-type]
    usual = type(engine)()
    made: Engine = kind(**{n: v for n, v in changed.items() if v != getattr(usual, n)})
    return made


_CLOSED_FORM = "markovia.inference.densities.closed_forms.conjugate:closed_engine"
_TWISTED = "markovia.inference.densities.engines.twisted_smc:twisted_engine"
_AMORTISED = "markovia.inference.densities.engines.amortised:amortised_engine"

_known: set[type] = set()
"""Classes that were found to be engines: looking at every method of a protocol takes longer than a small answer."""


def _engine(engine: "str | Engine") -> Engine:
    if not isinstance(engine, str):
        if type(engine) in _known:
            return engine
        if isinstance(engine, type):
            raise UnknownEngine(f"{engine.__name__} is a class; write engine={engine.__name__}()")
        if isinstance(engine, Engine):
            _known.add(type(engine))
            return engine
        raise UnknownEngine(
            f"engine= is a name or an engine such as engines.VariableElimination(), not {engine!r}"
        )
    engine = _ALSO_CALLED.get(engine, engine)
    if engine not in _REGISTRY:
        raise UnknownEngine(
            f"unknown engine {engine!r}; there are {', '.join(engine_names())}{did_you_mean(engine, engine_names())}"
        )
    return _default(_REGISTRY[engine])


@cache
def _default(home: str) -> Engine:
    """Return an engine with default settings; engines do not change, so one serves all."""
    made: Engine = resolve(home)()
    return made
