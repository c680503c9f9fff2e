"""How a dynamic network answers questions about whole sequences: which engine, and what it is handed."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.sequences.sequences import Lengths
from markovia.errors import (
    InvalidArgument,
    UnknownArgument,
    UnsupportedModel,
    check_known,
)
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.map_bounds.beam_search import BeamSearch
from markovia.inference.result import Info
from markovia.inference.sequences.interface import Interface
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.dynamic_answers import Beliefs, BestPaths, Paths
from markovia.models.temporal.dynamic.dynamic_evidence import (
    Evidence,
    compiled,
    findings_of_steps,
    impossible_at,
    is_gaussian,
    longer,
    read_evidence,
    seen_of,
    unseen,
)
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Whole, check, check_choice
from markovia.runtime.clock import now

if TYPE_CHECKING:
    from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork

SWITCHING = ("gpb2", "imm", "rao-blackwell")
ENGINES = ("auto", "interface", "boyen-koller", "factored-frontier", "particles", *SWITCHING)
SETTINGS = {
    "auto": ("memory", "window"),
    "interface": ("memory",),
    "boyen-koller": ("clusters", "window"),
    "factored-frontier": ("window",),
    "particles": ("particles", "seed", "window"),
    "gpb2": ("window",),
    "imm": ("window",),
    "rao-blackwell": ("particles", "seed", "window"),
}


def beliefs(
    process: "DynamicBayesianNetwork",
    what: str,
    data: Any,
    lengths: Lengths,
    by: str | None,
    targets: str | Sequence[str] | None,
    engine: str,
    steps: int = 0,
    **options: Any,
) -> Beliefs:
    """Answer `filter`, `smooth` and `forecast`; options are settings of the engine, None where they are left out."""
    begin = now()
    check_choice("engine", engine, ENGINES)
    settings = {name: value for name, value in options.items() if value is not None}
    for name in settings:
        if name not in SETTINGS[engine]:
            raise UnknownArgument(f"engine={engine!r} takes {', '.join(SETTINGS[engine])}, not {name!r}")
    networks, variables, evidence = _opened(process, data, lengths, by, nothing=steps > 0)
    ahead = dates = None
    if steps:
        dates = evidence.rows.dates_ahead(steps)
        seen = evidence
        evidence, ahead = longer(evidence, steps)

    def paths() -> Paths:
        return partial(paths_ahead, process, variables, seen, steps)

    asked = _targets(variables, targets, evidence)
    numbers = [n for n in asked if isinstance(variables[n], Quantity)]
    gaussian = is_gaussian(networks)
    if not gaussian and engine in ("auto", *SWITCHING):
        from markovia.models.temporal.dynamic.dynamic_switching import hidden_causes, switching_beliefs

        if engine in SWITCHING or (targets is not None and numbers) or hidden_causes(networks, evidence):
            method: Any = None if engine == "auto" else engine
            given = {n: v for n, v in settings.items() if n != "memory"}
            found = switching_beliefs(
                networks, variables, asked, evidence, method, given, smooth=what == "smooth", begin=begin
            )
            return found if ahead is None else found.rows(ahead, steps, dates, paths())
    if engine in SWITCHING:
        raise InvalidArgument(
            f"all variables are numbers, so that nothing switches; engine='auto' is exact, not {engine!r}"
        )
    if numbers and engine != "particles" and not gaussian:
        if targets is not None:
            raise UnsupportedModel(
                f"{numbers[0]!r} is a number among variables with states; engine='auto', 'particles' or the unrolled "
                f"network (query('{numbers[0]}@0', given=...)) answers about it"
            )
        asked = [n for n in asked if n not in numbers]
    if engine in ("auto", "interface") and gaussian:
        from markovia.models.temporal.dynamic.dynamic_gaussian import gaussian_beliefs

        found = gaussian_beliefs(networks, variables, asked, evidence, smooth=what == "smooth", begin=begin)
    elif engine in ("auto", "interface"):
        found = _exact(process, networks, asked, evidence, what == "smooth", settings.get("memory"), begin)
    else:
        from markovia.models.temporal.dynamic.dynamic_approximation import approximate

        smooth = what == "smooth"
        found = approximate(process, networks, asked, evidence, engine, settings, begin, smooth=smooth)
    return found if ahead is None else found.rows(ahead, steps, dates, paths())


def paths_ahead(
    process: "DynamicBayesianNetwork",
    variables: Mapping[str, Any],
    evidence: Evidence,
    steps: int,
    n: int,
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    """Return n draws of the steps after each sequence, all variables together: by name, an array (n, steps).

    They are drawn from the unrolled network given what was seen, so the cost grows with the steps that came before.
    """
    found = []
    for first, last in pairwise(evidence.offsets.tolist()):
        network = process.unroll(last - first + steps)
        given = findings_of_steps(variables, evidence, first, last)
        rows = network.sample(n, given=given, seed=rng)
        coming = range(last - first, last - first + steps)
        found.append({name: rows[[f"{name}@{t}" for t in coming]].to_numpy() for name in variables})
    return found


def _opened(
    process: "DynamicBayesianNetwork", data: Any, lengths: Lengths, by: str | None, *, nothing: bool = False
) -> tuple[list[BayesianNetwork], dict[str, Any], Evidence]:
    """Return a process's networks and variables, and what was seen; `nothing` says that no data is fine."""
    networks = process.ready()
    variables = {n: networks[0].variable(n) for n in process.variables}
    blank = nothing and data is None
    return networks, variables, unseen([0]) if blank else read_evidence(variables, data, lengths, by)


def _targets(
    variables: Mapping[str, Any], targets: str | Sequence[str] | None, evidence: Evidence
) -> list[str]:
    if targets is None:
        return [n for n in variables if _hidden(n, variables[n], evidence)]
    listed = [targets] if isinstance(targets, str) else list(targets)
    check_known(listed, variables, "the process")
    return listed


def _hidden(name: str, variable: Any, evidence: Evidence) -> bool:
    """Say whether a variable is not known at every step."""
    if isinstance(variable, Quantity):
        return name not in evidence.numbers or bool(np.isnan(evidence.numbers[name]).any())
    return name not in evidence.codes or bool((evidence.codes[name] >= len(variable)).any())


def _require_possible(engine: Interface, evidence: Evidence) -> None:
    if (engine.stuck >= 0).any():
        raise impossible_at(evidence, int(engine.stuck[np.argmax(engine.stuck >= 0)]))


def _exact(
    process: "DynamicBayesianNetwork",
    networks: Sequence[BayesianNetwork],
    targets: list[str],
    evidence: Evidence,
    smooth: bool,
    memory: float | None,
    begin: float,
) -> Beliefs:
    slices = compiled(process, networks)
    engine = Interface(slices, seen_of(networks, slices, evidence), memory)
    found = engine.marginals(targets, smooth=smooth)
    _require_possible(engine, evidence)
    note = f"messages kept at {engine.checkpoints:,} steps, the others made twice" * bool(engine.checkpoints)
    info = Info(engine.engine or "interface", exact=True, seconds=now() - begin, note=note)
    variables = {n: networks[0].variable(n) for n in targets}
    return Beliefs(variables, found, evidence.offsets, engine.log_probs, info)


def decode(
    process: "DynamicBayesianNetwork", data: Any, lengths: Lengths, by: str | None, beam: int | None = None
) -> BestPaths:
    """Answer `decode`."""
    check("beam", beam, Whole(1, none=True))
    begin = now()
    networks, variables, evidence = _opened(process, data, lengths, by)
    if is_gaussian(networks):
        raise InvalidArgument(
            "all variables are numbers, and the most probable ones are the means; use smooth()"
        )
    if beam is not None:
        return _by_beam(process, variables, evidence, beam, begin)
    slices = compiled(process, networks)
    engine = Interface(slices, seen_of(networks, slices, evidence))
    paths = engine.best()
    _require_possible(engine, evidence)
    info = Info(engine.engine or "interface", exact=True, seconds=now() - begin)
    return BestPaths(variables, paths, evidence.offsets, engine.log_probs, info)


def _by_beam(
    process: "DynamicBayesianNetwork", variables: dict[str, Any], evidence: Evidence, width: int, begin: float
) -> BestPaths:
    """Return explanations by beam search in the network of all steps, each sequence by itself."""
    numbers = [n for n, v in variables.items() if isinstance(v, Quantity)]
    if numbers:
        raise UnsupportedModel(
            f"{numbers[0]!r} is a number, and beam= is for variables with states; leave beam= out"
        )
    paths = {n: np.zeros(int(evidence.offsets[-1]), dtype=np.int64) for n in variables}
    logs, gaps = np.zeros(len(evidence.offsets) - 1), np.zeros(len(evidence.offsets) - 1)
    for s, (a, b) in enumerate(pairwise(evidence.offsets.tolist())):
        for name, codes in evidence.codes.items():
            paths[name][a:b] = np.minimum(codes[a:b], len(variables[name].states) - 1)
        given = findings_of_steps(variables, evidence, a, b)
        best = process.unroll(b - a).map(given=given, engine=BeamSearch(width=width))
        for place, state in best.items():
            name, step = place.rsplit("@", 1)
            paths[name][a + int(step)] = variables[name].index(state)
        logs[s], gaps[s] = best.log_prob, best.gap
    info = Info(BeamSearch.name, exact=not gaps.any(), seconds=now() - begin)
    return BestPaths(variables, paths, evidence.offsets, logs, info, gaps)


def log_prob(process: "DynamicBayesianNetwork", data: Any, lengths: Lengths, by: str | None) -> Array:
    """Answer `log_prob`."""
    networks, _, evidence = _opened(process, data, lengths, by)
    if is_gaussian(networks):
        from markovia.models.temporal.dynamic.dynamic_gaussian import gaussian_log_prob

        return gaussian_log_prob(networks, evidence)
    from markovia.models.temporal.dynamic.dynamic_switching import hidden_causes, switching_log_prob

    if hidden_causes(networks, evidence):
        return switching_log_prob(networks, evidence)
    slices = compiled(process, networks)
    return Interface(slices, seen_of(networks, slices, evidence)).run().log_probs
