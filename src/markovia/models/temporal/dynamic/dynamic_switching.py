"""Dynamic networks of states and linear Gaussians as switching state-space models.

A regime is a joint state of the discrete variables that later steps or numbers look at; given the regimes, the numbers of a
step are linear in those before. What was seen of discrete variables is in the moves between regimes, which then differ from
step to step, and the numbers are observed without noise or hidden, as in `dynamic_gaussian`. First steps that differ from
later ones have regimes of their own. References: Lauritzen (1992); Murphy (1998), "Switching Kalman filters".
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import ImpossibleEvidence, TooLarge, UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.variable import Variable
from markovia.inference.result import Info
from markovia.inference.sequences.slice_sums import Key, TableElimination
from markovia.inference.sequences.slices import Place, Slices
from markovia.inference.sequences.switching_filter import Method, Regimes
from markovia.inference.sequences.switching_runs import (
    ImpossibleSequenceError,
    all_paths,
    filter_runs,
    smoother_runs,
)
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.dynamic_answers import Beliefs
from markovia.models.temporal.dynamic.dynamic_evidence import (
    Evidence,
    density,
    first_steps,
    longer,
    slices_of,
    unseen,
)
from markovia.models.temporal.dynamic.dynamic_gaussian import matrices, stacked
from markovia.models.temporal.dynamic.dynamic_language import own_variables, split_name
from markovia.models.temporal.switching_state_space import SwitchingStateSpace
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import now
from markovia.runtime.seeds import generator

MOST_REGIMES = 512
FEW_PATHS = 2**12
"""Up to so many paths of regimes are summed without being asked to."""
PARTICLES, PATHS, WINDOW = 500, 100, 20


def gaussian_numbers(networks: Sequence[BayesianNetwork]) -> list[str]:
    """Return the numbers that are linear Gaussians at all steps."""
    names = own_variables(networks[-1])
    return [n for n in names if all(isinstance(net[n], GaussianConditional) for net in networks)]


def hidden_causes(networks: Sequence[BayesianNetwork], evidence: Evidence) -> list[str]:
    """Return the linear Gaussians that something depends on and that were not always seen."""
    used = {split_name(q.name)[0] for net in networks for n in own_variables(net) for q in net[n].parents}
    return [
        n
        for n in gaussian_numbers(networks)
        if n in used and (n not in evidence.numbers or bool(np.isnan(evidence.numbers[n]).any()))
    ]


class Switching:
    """A process as regimes and matrices.

    Parameters
    ----------
    networks
        Of the first steps, and of later ones.
    targets
        Variables with states that a regime is to know as well.
    """

    def __init__(self, networks: Sequence[BayesianNetwork], targets: Sequence[str] = ()) -> None:
        self.networks = networks
        self.slices: Slices = slices_of(networks)
        self.order = len(networks) - 1
        self.numbers = gaussian_numbers(networks)
        asked = [(n, 0) for n in targets if n in self.slices.sizes]
        self.places: list[tuple[Place, ...]] = []
        for kind, network in enumerate(networks):
            tables: dict[str, Any] = {n: network[n] for n in self.numbers}
            for n, table in tables.items():
                for q in table.continuous:
                    if split_name(q.name)[0] not in tables:
                        raise UnsupportedModel(
                            f"{n!r} depends on {q.name!r}, which is a number but no linear Gaussian; engine='particles' "
                            "answers about such processes"
                        )
            looked = [split_name(q.name) for table in tables.values() for q in table.discrete]
            self.places.append(tuple(dict.fromkeys([*self.slices.interface(kind), *looked, *asked])))
        # one set of regimes does for the first step and later ones where both know the same variables
        self.shared = self.order == 1 and set(self.places[0]) == set(self.places[1])
        if self.shared:
            self.places[0] = self.places[1]
        self.sizes = [prod(self.slices.shape(p)) for p in self.places]
        ends = np.cumsum(self.sizes[self.shared :])
        self.starts = [0, 0] if self.shared else [0, *ends[:-1].tolist()]
        self.n_regimes = int(ends[-1])
        if self.n_regimes > MOST_REGIMES:
            raise TooLarge(
                f"the discrete variables that numbers and later steps look at have {self.n_regimes:,} joint states, too "
                "many regimes for a Gaussian each; engine='particles' draws them",
                bytes=8.0 * self.n_regimes**2,
            )
        self.codes = [_codes(self.slices.shape(p)) for p in self.places]

    def regimes(self, evidence: Evidence) -> Regimes:
        """Return the model of some sequences."""
        d, order = len(self.numbers), self.order
        n, K = d * order, self.n_regimes
        A, b, Q = np.zeros((K, n, n)), np.zeros((K, n)), np.zeros((K, n, n))
        mean, cov = b.copy(), Q.copy()
        for kind, network in enumerate(self.networks):
            for r, codes in enumerate(self.codes[kind].tolist()):
                fixed = dict(zip(self.places[kind], codes, strict=True))
                part = stacked(matrices(network, self.numbers, order, fixed), d, order)
                k = self.starts[kind] + r
                if kind:
                    A[k], b[k], Q[k] = part
                else:
                    _, mean[k], cov[k] = part
        C = np.array(np.broadcast_to(np.eye(d, n), (K, d, n)))
        return Regimes(*self._chain(evidence), A, b, Q, C, np.zeros((K, d)), np.zeros((K, d, d)), mean, cov)

    def _chain(self, evidence: Evidence) -> tuple[Array, Array]:
        """Return the log probabilities of first regimes and of moves into each step, with what was seen of states."""
        kinds = self.slices.kinds(evidence.offsets)[0]
        lengths, K = np.diff(evidence.offsets), self.n_regimes
        start = np.zeros((len(lengths), K))
        moves = np.zeros((len(lengths), int(lengths.max()), K, K))
        owner = np.repeat(np.arange(len(lengths)), lengths)
        time = np.arange(len(owner)) - evidence.offsets[owner]
        for kind in range(self.order + 1):
            steps = np.flatnonzero(kinds == kind)
            if not len(steps):
                continue
            for before in range(max(0, kind - 1), kind + 1) if kind == self.order else [kind - 1]:
                # later steps come after later steps, but the first of them after the last first step
                own = steps[(time[steps] > kind) == (before == kind)] if kind == self.order else steps
                if not len(own):
                    continue
                table = self._moves(kind, before, own, evidence)
                b = slice(self.starts[kind], self.starts[kind] + self.sizes[kind])
                if before < 0:
                    start[owner[own], b] = table[:, 0]
                else:
                    a = slice(self.starts[before], self.starts[before] + self.sizes[before])
                    moves[owner[own], time[own], a, b] = table
        with np.errstate(divide="ignore"):
            return np.log(start), np.log(moves)

    def _moves(self, kind: int, before: int, steps: Ints, evidence: Evidence) -> Array:
        """Return p(regime, what was seen | regime before) at some steps: (steps, regimes before, regimes)."""
        past = tuple((n, j + 1) for n, j in self.places[before]) if before >= 0 else ()
        here = self.places[kind]
        network, scopes, tables = self.networks[kind], [], []
        hidden = np.full(int(evidence.offsets[-1]), np.nan)
        values = {
            n: evidence.numbers.get(n, hidden) for n in own_variables(network) if n not in self.slices.sizes
        }
        for node in self.slices.steps[kind]:
            if node.name in self.numbers:
                continue
            scopes.append(node.scope)
            if node.values is not None:
                tables.append(node.values)
            else:
                used = node.name in self.slices.sizes
                logs = density(network[node.name], node, steps, values, self.slices, used, evidence)
                tables.append(np.exp(logs))
        for name, codes in evidence.codes.items():
            scopes.append(((name, 0),))
            tables.append(evidence.weights[name][codes[steps]])
        keep = tuple(dict.fromkeys([*past, *here]))
        known = {p for scope in scopes for p in scope}
        for p in keep:
            if p not in known:
                scopes.append((p,))
                tables.append(np.ones(self.slices.sizes[p[0]]))
        sizes: dict[Key, int] = {p: self.slices.sizes[p[0]] for scope in scopes for p in scope}
        found = TableElimination(scopes, sizes, keep).sums(tables)
        found = np.broadcast_to(found, (len(steps), *self.slices.shape(keep)))
        then = self.codes[before] if before >= 0 else np.zeros((1, 0), dtype=np.int64)
        # a variable that both regimes know has one state
        at: list[Any] = []
        fits = np.ones((len(then), self.sizes[kind]), dtype=bool)
        for p in keep:
            old: Any = then[:, past.index(p)][:, None] if p in past else None
            new: Any = self.codes[kind][:, here.index(p)][None] if p in here else None
            if old is not None and new is not None:
                fits &= old == new
            at.append(np.broadcast_to(new if old is None else old, fits.shape))
        places: Any = (slice(None), *at)
        rows = found[places] if at else found[:, None, None]
        return np.where(fits, rows, 0.0)

    def observed(self, evidence: Evidence) -> Array:
        """Return the numbers that were seen, one row a step."""
        hidden = np.full(int(evidence.offsets[-1]), np.nan)
        return np.column_stack([evidence.numbers.get(m, hidden) for m in self.numbers])

    def known(self, name: str) -> Array:
        """Return which state of a variable each regime knows: (regimes, states) of zeros and ones."""
        found = np.zeros((self.n_regimes, self.slices.sizes[name]))
        for first, places, codes in zip(self.starts, self.places, self.codes, strict=True):
            found[first + np.arange(len(codes)), codes[:, places.index((name, 0))]] = 1.0
        return found


def _codes(shape: tuple[int, ...]) -> Ints:
    """Return all joint states, (joint states, variables)."""
    return np.array(list(np.ndindex(*shape)), dtype=np.int64).reshape(prod(shape), len(shape))


class SwitchingAnswer(NamedTuple):
    """Log probabilities of regimes, moments of numbers by regime, and how they were found."""

    logs: list[Array]
    mean: list[Array]
    cov: list[Array]
    log_prob: Array
    engine: Method


def _found(
    switching: Switching,
    evidence: Evidence,
    method: Method | None,
    smooth: bool,
    settings: Mapping[str, Any],
) -> SwitchingAnswer:
    model, rows, offsets = switching.regimes(evidence), switching.observed(evidence), evidence.offsets
    parts: list[Any] | None = None
    try:
        if method in (None, "exact"):
            most = FEW_PATHS if method is None else None
            sums = all_paths(model, rows, offsets) if most is None else all_paths(model, rows, offsets, most)
            if all(one is not None for one in sums):
                parts = [one[int(smooth)] for one in sums if one is not None]
                method = "exact"
            elif method == "exact":
                raise UnsupportedModel(
                    "there are too many paths of the discrete variables to sum over; say engine='gpb2', 'imm' or "
                    "'rao-blackwell'"
                )
        if parts is None:
            method = method or ("gpb2" if switching.n_regimes <= 16 else "imm")
            particles, rng = settings.get("particles", PARTICLES), generator(settings.get("seed"))
            if smooth:
                parts = list(smoother_runs(model, rows, offsets, method, particles, PATHS, rng))
            else:
                parts = list(filter_runs(model, rows, offsets, method, particles, rng))
    except ImpossibleSequenceError as error:
        failed = ImpossibleEvidence({})
        failed.args = (
            f"what was seen of sequence {evidence.rows.names[error.sequence]!r} has probability zero, or a number that "
            "others fix was seen as well",
        )
        raise failed from None
    assert method is not None
    log_prob = np.array([float(one.log_prob) for one in parts])
    return SwitchingAnswer(
        [p.logs for p in parts], [p.mean for p in parts], [p.cov for p in parts], log_prob, method
    )


def switching_log_prob(networks: Sequence[BayesianNetwork], evidence: Evidence) -> Array:
    """Return the log density of what was seen of each sequence; zero probability is minus infinity."""
    switching = Switching(networks)
    found = []
    for i in range(len(evidence.rows)):
        try:
            found.append(_found(switching, first_steps(evidence, None, i), None, False, {}).log_prob[0])
        except ImpossibleEvidence:
            found.append(-np.inf)
    return np.array(found)


def switching_model(networks: Sequence[BayesianNetwork]) -> SwitchingStateSpace:
    """Return the process as a model of its own: regimes are joint states, and all numbers are observed."""
    switching = Switching(networks)
    model = switching.regimes(longer(unseen([0]), switching.order + 1)[0])
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
    switching = Switching(networks, targets)
    wanted = [n for n in targets if isinstance(variables[n], Quantity)]
    for n in wanted:
        if n not in switching.numbers:
            raise UnsupportedModel(
                f"{n!r} is a number but no linear Gaussian; engine='particles' answers about it"
            )
    found = _found(switching, evidence, method, smooth, settings)
    states, mean, var = _answers(switching, found, targets)
    error, note = 0.0, ""
    if found.engine != "exact":
        error, note = _measured(switching, targets, evidence, found.engine, smooth, settings)
    info = Info(
        "all-paths" if found.engine == "exact" else found.engine,
        exact=found.engine == "exact",
        error=error,
        seconds=now() - begin,
        note=note,
    )
    return Beliefs(variables, states, evidence.offsets, found.log_prob, info, mean, var)


def _answers(
    switching: Switching, found: SwitchingAnswer, targets: Sequence[str]
) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
    """Return what regimes say together of each target: probabilities of states, means and variances of numbers."""
    w = np.exp(np.concatenate(found.logs))
    w /= w.sum(axis=1, keepdims=True)
    m, V = np.concatenate(found.mean), np.concatenate(found.cov)
    states = {n: w @ switching.known(n) for n in targets if n in switching.slices.sizes}
    mean, var = {}, {}
    for n in targets:
        if n not in states:
            i = switching.numbers.index(n)
            mean[n] = (w * m[:, :, i]).sum(axis=1)
            spread = V[:, :, i, i] + (m[:, :, i] - mean[n][:, None]) ** 2
            var[n] = np.maximum((w * spread).sum(axis=1), 0.0)
    return states, mean, var


def _measured(
    switching: Switching,
    targets: Sequence[str],
    evidence: Evidence,
    method: Method,
    smooth: bool,
    settings: Mapping[str, Any],
) -> tuple[float, str]:
    """Return the largest error on as many first steps of the first sequence as all paths can be summed over."""
    first, truth = _summed_window(switching, evidence, smooth, settings.get("window", WINDOW))
    if truth is None:
        return float("nan"), "not compared with an exact answer"
    ours = _answers(switching, _found(switching, first, method, smooth, settings), targets)
    return _difference(ours, _answers(switching, truth, targets), int(first.offsets[-1]))


def switching_error(
    networks: Sequence[BayesianNetwork],
    evidence: Evidence,
    found: tuple[Mapping[str, Array], Mapping[str, Array]],
    window: int,
) -> tuple[float, str]:
    """Return the largest error of filtered probabilities and means, found in any way, on the first steps."""
    targets = [*found[0], *found[1]]
    switching = Switching(networks, targets)
    first, truth = _summed_window(switching, evidence, False, window)
    if truth is None:
        return float("nan"), "not compared with an exact answer"
    steps = int(first.offsets[-1])
    ours = [{n: x[:steps] for n, x in part.items()} for part in found]
    return _difference(ours, _answers(switching, truth, targets), steps)


def _summed_window(
    switching: Switching, evidence: Evidence, smooth: bool, window: int
) -> tuple[Evidence, SwitchingAnswer | None]:
    """Return the first steps of the first sequence, as many as there are few paths for, and what all paths say of them."""
    steps, first = min(window, int(evidence.offsets[1])), evidence
    while steps:
        first = first_steps(evidence, steps)
        truth = _found(switching, first, None, smooth, {})
        if truth.engine == "exact":
            return first, truth
        steps //= 2
    return first, None


def _difference(
    ours: Sequence[Mapping[str, Array]], exact: Sequence[Mapping[str, Array]], steps: int
) -> tuple[float, str]:
    gaps = [np.abs(ours[0][n] - exact[0][n]).max() for n in exact[0]]
    for n in exact[1]:
        away, sd = np.abs(ours[1][n] - exact[1][n]), np.sqrt(exact[2][n])
        gaps.append(np.divide(away, sd, out=np.zeros_like(away), where=sd > 1e-9).max())
    return float(max(gaps, default=0.0)), (
        "largest difference of a probability, or of a mean in standard deviations, from the sum over all paths on the "
        f"first {steps} steps"
    )
