"""Approximate answers about dynamic networks, with their error measured against exact ones on a window of steps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, TooLarge, UnknownVariable, UnsupportedModel
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.particles.network_particles import ParticleBeliefs, network_particles
from markovia.inference.result import Info
from markovia.inference.sequences.boyen_koller import (
    BoyenKoller,
    FactoredFrontier,
    StuckError,
    largest_difference,
)
from markovia.inference.sequences.interface import Interface
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.dynamic_answers import Beliefs
from markovia.models.temporal.dynamic.dynamic_evidence import (
    Evidence,
    compiled,
    first_steps,
    impossible_at,
    is_gaussian,
    plain_evidence,
    seen_of,
    step_tables,
)
from markovia.models.temporal.dynamic.dynamic_language import own_variables
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count
from markovia.runtime.clock import now
from markovia.runtime.seeds import generator

if TYPE_CHECKING:
    from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork

WINDOW = 20
PARTICLES = 1000


def approximate(
    process: "DynamicBayesianNetwork",
    networks: Sequence[BayesianNetwork],
    targets: list[str],
    evidence: Evidence,
    engine: str,
    settings: Mapping[str, Any],
    begin: float,
    *,
    smooth: bool,
) -> Beliefs:
    """Answer `filter`, `smooth` and `forecast` approximately."""
    if smooth and engine != "boyen-koller":
        cure = (
            "mk.ParticleFilter.from_network(process, observed).smooth(...) does so by paths drawn backwards"
            if engine == "particles"
            else "engine='boyen-koller' does so"
        )
        raise UnsupportedModel(f"engine={engine!r} filters and forecasts, but does not smooth; {cure}")
    window = settings.get("window", WINDOW)
    check_count("window", window)
    variables = {n: networks[0].variable(n) for n in own_variables(networks[-1])}
    discrete = [n for n in targets if not isinstance(variables[n], Quantity)]
    mean: dict[str, Array] = {}
    var: dict[str, Array] = {}
    try:
        if engine == "particles":
            found, mean, var, logs = _particles(networks, targets, evidence, settings)
        else:
            slices = compiled(process, networks)
            seen = seen_of(networks, slices, evidence)
            if engine == "boyen-koller":
                own = BoyenKoller(slices, seen, _clusters(process, settings))
                found = own.smoothed(discrete) if smooth else own.marginals(discrete)
                logs = own.log_probs
            else:
                run = FactoredFrontier(slices, seen)
                found, logs = run.marginals(discrete), run.log_probs
    except StuckError as stuck:
        raise impossible_at(evidence, stuck.step) from None
    if smooth and window:
        # what the future beyond the window says is in none of the exact answers, so the window is smoothed by itself
        steps = min(window, int(evidence.offsets[1]))
        part = seen_of(networks, slices, first_steps(evidence, steps))
        own = BoyenKoller(slices, part, _clusters(process, settings))
        compared = own.smoothed(discrete)
    else:
        compared = found
    error_, note = _measured(process, networks, evidence, compared, mean, window, smooth)
    info = Info(engine, exact=False, error=error_, seconds=now() - begin, note=note)
    return Beliefs(variables, found, evidence.offsets, logs, info, mean, var)


def _clusters(process: "DynamicBayesianNetwork", settings: Mapping[str, Any]) -> list[list[str]]:
    found = [[c] if isinstance(c, str) else list(c) for c in settings.get("clusters", ())]
    named: set[str] = set()
    for name in (n for cluster in found for n in cluster):
        if name not in process.variables:
            raise UnknownVariable(name, process.variables, "the process")
        if name in named:
            raise InvalidArgument(f"{name!r} is in two clusters=; each variable is in one")
        named.add(name)
    return found


def _measured(
    process: "DynamicBayesianNetwork",
    networks: Sequence[BayesianNetwork],
    evidence: Evidence,
    found: Mapping[str, Array],
    mean: Mapping[str, Array],
    window: int,
    smooth: bool,
) -> tuple[float, str]:
    """Return the largest error on the first steps of the first sequence, and what was compared."""
    steps = min(window, int(evidence.offsets[1]))
    if not steps:
        return float("nan"), "not compared with an exact answer (window=0)"
    first = first_steps(evidence, steps)
    try:
        if is_gaussian(networks):
            from markovia.models.temporal.dynamic.dynamic_gaussian import gaussian_beliefs

            variables = {n: networks[0].variable(n) for n in mean}
            exact = gaussian_beliefs(networks, variables, list(mean), first, smooth=False, begin=now())
            error = max((float(np.abs(mean[n][:steps] - exact.mean[n][0]).max()) for n in mean), default=0.0)
            return error, f"largest difference of a mean from the exact one on the first {steps} steps"
        from markovia.models.temporal.dynamic.dynamic_switching import hidden_causes, switching_error

        if mean or hidden_causes(networks, first):
            return switching_error(networks, evidence, (found, mean), window)
        slices = compiled(process, networks)
        engine = Interface(slices, seen_of(networks, slices, first))
        exactly = engine.marginals(list(found), smooth=smooth)
    except (TooLarge, UnsupportedModel) as error_:
        kind = "would be too large" if isinstance(error_, TooLarge) else "is not known"
        return float("nan"), f"not compared with an exact answer, which {kind}"
    error = largest_difference(found, exactly, steps)
    return error, f"largest difference from the exact probabilities on the first {steps} steps"


def _particles(
    networks: Sequence[BayesianNetwork],
    targets: Sequence[str],
    evidence: Evidence,
    settings: Mapping[str, Any],
) -> ParticleBeliefs:
    n = settings.get("particles", PARTICLES)
    check_count("particles", n, 1)
    steps = step_tables(networks)
    called = next((m for own in steps for m, piece in own.items() if isinstance(piece, FunctionNode)), None)
    if called is not None:
        raise UnsupportedModel(f"{called!r} is a function of its parents; mk.ParticleFilter takes functions")
    return network_particles(steps, targets, plain_evidence(evidence), n, generator(settings.get("seed")))
