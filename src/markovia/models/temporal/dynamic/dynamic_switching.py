"""Dynamic networks of states and linear Gaussians: their switching state-space model answers, and its error is measured."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.errors import ImpossibleEvidence, UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.variable import Variable
from markovia.inference.result import Info
from markovia.inference.sequences.slices import split_name
from markovia.inference.sequences.switching_filter import Method
from markovia.inference.sequences.switching_networks import (
    Switching,
    SwitchingAnswer,
    gaussian_numbers,
    largest_gap,
    told_by,
)
from markovia.inference.sequences.switching_runs import ImpossibleSequenceError
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.dynamic_answers import Beliefs
from markovia.models.temporal.dynamic.dynamic_evidence import (
    Evidence,
    first_steps,
    longer,
    seen_of,
    slices_of,
    step_tables,
    unseen,
)
from markovia.models.temporal.dynamic.dynamic_language import own_variables
from markovia.models.temporal.switching_state_space import SwitchingStateSpace
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now
from markovia.runtime.seeds import generator

PARTICLES, WINDOW = 500, 20


def hidden_causes(networks: Sequence[BayesianNetwork], evidence: Evidence) -> list[str]:
    """Return the linear Gaussians that something depends on and that were not always seen."""
    used = {split_name(q.name)[0] for net in networks for n in own_variables(net) for q in net[n].parents}
    return [
        n
        for n in gaussian_numbers(step_tables(networks))
        if n in used and (n not in evidence.numbers or bool(np.isnan(evidence.numbers[n]).any()))
    ]


class SwitchingProcess:
    """Networks as a switching model that is asked about evidence as it was read."""

    def __init__(self, networks: Sequence[BayesianNetwork], targets: Sequence[str] = ()) -> None:
        self.networks = networks
        names = own_variables(networks[-1])
        tables = [{n: own[n] for n in names} for own in step_tables(networks)]
        self.switching = Switching(tables, slices_of(networks), targets)

    def answer(
        self, evidence: Evidence, method: Method | None, smooth: bool, settings: Mapping[str, Any]
    ) -> SwitchingAnswer:
        """Return what a method says; impossible evidence names its sequence."""
        own = self.switching
        seen = seen_of(self.networks, own.slices, evidence, without=own.numbers)
        particles, rng = settings.get("particles", PARTICLES), generator(settings.get("seed"))
        try:
            return own.answer(seen, method, smooth, particles, rng)
        except ImpossibleSequenceError as error:
            raise ImpossibleEvidence.because(
                f"what was seen of sequence {evidence.rows.names[error.sequence]!r} has probability zero, or a number that "
                "others fix was seen as well"
            ) from None


def switching_log_prob(networks: Sequence[BayesianNetwork], evidence: Evidence) -> Array:
    """Return the log density of what was seen of each sequence; zero probability is minus infinity."""
    process = SwitchingProcess(networks)
    found = []
    for i in range(len(evidence.rows)):
        try:
            found.append(process.answer(first_steps(evidence, None, i), None, False, {}).log_prob[0])
        except ImpossibleEvidence:
            found.append(-np.inf)
    return np.array(found)


def switching_model(networks: Sequence[BayesianNetwork]) -> SwitchingStateSpace:
    """Return the process as a model of its own: regimes are joint states, and all numbers are observed."""
    process = SwitchingProcess(networks)
    switching, nothing = process.switching, longer(unseen([0]), len(networks))[0]
    model = switching.regimes(seen_of(networks, switching.slices, nothing, without=switching.numbers))
    moves = np.exp(model.moves[0]).max(axis=0)  # each pair of kinds has its moves at one step
    moves[moves.sum(axis=1) == 0] = 1.0 / len(moves)
    return SwitchingStateSpace(
        transition=model.A,
        transition_cov=model.Q,
        observation=model.C,
        observation_cov=model.R,
        initial_mean=model.mean,
        initial_cov=model.cov,
        transition_offset=model.b,
        regime_transition=moves,
        regime_start=np.exp(model.start[0]),
    )


def switching_beliefs(
    networks: Sequence[BayesianNetwork],
    variables: Mapping[str, Variable],
    targets: Sequence[str],
    evidence: Evidence,
    method: Method | None,
    settings: Mapping[str, Any],
    *,
    smooth: bool,
    begin: float,
) -> Beliefs:
    """Return distributions of states, and means and variances of numbers, at every step."""
    process = SwitchingProcess(networks, targets)
    wanted = [n for n in targets if isinstance(variables[n], Quantity)]
    for n in wanted:
        if n not in process.switching.numbers:
            raise UnsupportedModel(
                f"{n!r} is a number but no linear Gaussian; engine='particles' answers about it"
            )
    found = process.answer(evidence, method, smooth, settings)
    states, mean, var = told_by(process.switching, found, targets)
    error, note = 0.0, ""
    if found.engine != "exact":
        error, note = _measured(process, targets, evidence, found.engine, smooth, settings)
    info = Info(
        "all-paths" if found.engine == "exact" else found.engine,
        exact=found.engine == "exact",
        error=error,
        seconds=now() - begin,
        note=note,
    )
    return Beliefs(variables, states, evidence.offsets, found.log_prob, info, mean, var)


def _measured(
    process: SwitchingProcess,
    targets: Sequence[str],
    evidence: Evidence,
    method: Method,
    smooth: bool,
    settings: Mapping[str, Any],
) -> tuple[float, str]:
    """Return the largest error on as many first steps of the first sequence as all paths can be summed over."""
    first, truth = _summed_window(process, evidence, smooth, settings.get("window", WINDOW))
    if truth is None:
        return float("nan"), "not compared with an exact answer"
    ours = told_by(process.switching, process.answer(first, method, smooth, settings), targets)
    return largest_gap(ours, told_by(process.switching, truth, targets), int(first.offsets[-1]))


def switching_error(
    networks: Sequence[BayesianNetwork],
    evidence: Evidence,
    found: tuple[Mapping[str, Array], Mapping[str, Array]],
    window: int,
) -> tuple[float, str]:
    """Return the largest error of filtered probabilities and means, found in any way, on the first steps."""
    targets = [*found[0], *found[1]]
    process = SwitchingProcess(networks, targets)
    first, truth = _summed_window(process, evidence, False, window)
    if truth is None:
        return float("nan"), "not compared with an exact answer"
    steps = int(first.offsets[-1])
    ours = [{n: x[:steps] for n, x in part.items()} for part in found]
    return largest_gap(ours, told_by(process.switching, truth, targets), steps)


def _summed_window(
    process: SwitchingProcess, evidence: Evidence, smooth: bool, window: int
) -> tuple[Evidence, SwitchingAnswer | None]:
    """Return the first steps of the first sequence, as many as there are few paths for, and what all paths say of them."""
    steps, first = min(window, int(evidence.offsets[1])), evidence
    while steps:
        first = first_steps(evidence, steps)
        truth = process.answer(first, None, smooth, {})
        if truth.engine == "exact":
            return first, truth
        steps //= 2
    return first, None
