"""How a dynamic network answers questions about whole sequences: which engine, and what it is handed."""

from collections.abc import Mapping, Sequence
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
from markovia.inference.result import Info
from markovia.inference.sequences.interface import Interface
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.dynamic_answers import Beliefs, BestPaths
from markovia.models.temporal.dynamic.dynamic_evidence import (
    Evidence,
    compiled,
    impossible_at,
    is_gaussian,
    longer,
    read_evidence,
    seen_of,
    unseen,
)
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice
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
        evidence, ahead = longer(evidence, steps)
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
            return found if ahead is None else found.rows(ahead, steps, dates)
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
    return found if ahead is None else found.rows(ahead, steps, dates)


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


def decode(process: "DynamicBayesianNetwork", data: Any, lengths: Lengths, by: str | None) -> BestPaths:
    """Answer `decode`."""
    begin = now()
    networks, variables, evidence = _opened(process, data, lengths, by)
    if is_gaussian(networks):
        raise InvalidArgument(
            "all variables are numbers, and the most probable ones are the means; use smooth()"
        )
    slices = compiled(process, networks)
    engine = Interface(slices, seen_of(networks, slices, evidence))
    paths = engine.best()
    _require_possible(engine, evidence)
    info = Info(engine.engine or "interface", exact=True, seconds=now() - begin)
    return BestPaths(variables, paths, evidence.offsets, engine.log_probs, info)


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
