"""Dynamic networks of states and linear Gaussians as switching state-space models.

A regime is a joint state of the discrete variables that later steps or numbers look at; given the regimes, the numbers of a
step are linear in those before. What was seen of discrete variables is in the moves between regimes, which then differ from
step to step, and the numbers are observed without noise or hidden, as in `linear_steps`. First steps that differ from
later ones have regimes of their own. References: Lauritzen (1992); Murphy (1998), "Switching Kalman filters".
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import TooLarge, UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.tables.conditional import Conditional
from markovia.inference.sequences.linear_steps import matrices, stacked
from markovia.inference.sequences.slice_sums import Key, TableElimination
from markovia.inference.sequences.slices import Place, SliceEvidence, Slices, split_name
from markovia.inference.sequences.switching_filter import Method, Regimes
from markovia.inference.sequences.switching_runs import all_paths, filter_runs, smoother_runs
from markovia.runtime.array_types import Array, Ints

MOST_REGIMES = 512
FEW_PATHS = 2**12
"""Up to so many paths of regimes are summed without being asked to."""
FEW_REGIMES = 16
"""Up to so many regimes each pair of them has its Gaussian (gpb2), beyond each regime (imm)."""
PATHS = 100


def gaussian_numbers(steps: Sequence[Mapping[str, Conditional]]) -> list[str]:
    """Return the numbers that are linear Gaussians at all steps."""
    return [n for n in steps[-1] if all(isinstance(tables[n], GaussianConditional) for tables in steps)]


class Switching:
    """A process as regimes and matrices.

    Parameters
    ----------
    steps
        The distributions of the variables of first steps, and last those of every later step.
    slices
        The same as products of tables.
    targets
        Variables with states that a regime is to know as well.
    """

    def __init__(
        self, steps: Sequence[Mapping[str, Conditional]], slices: Slices, targets: Sequence[str] = ()
    ) -> None:
        self.steps, self.slices = steps, slices
        self.order = len(steps) - 1
        self.numbers = gaussian_numbers(steps)
        asked = [(n, 0) for n in targets if n in self.slices.sizes]
        self.places: list[tuple[Place, ...]] = []
        for kind, step in enumerate(steps):
            tables: dict[str, Any] = {n: step[n] for n in self.numbers}
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

    def regimes(self, evidence: SliceEvidence) -> Regimes:
        """Return the model of some sequences."""
        d, order = len(self.numbers), self.order
        n, K = d * order, self.n_regimes
        A, b, Q = np.zeros((K, n, n)), np.zeros((K, n)), np.zeros((K, n, n))
        mean, cov = b.copy(), Q.copy()
        for kind, tables in enumerate(self.steps):
            for r, codes in enumerate(self.codes[kind].tolist()):
                fixed = dict(zip(self.places[kind], codes, strict=True))
                part = stacked(matrices(tables, self.numbers, order, fixed), d, order)
                k = self.starts[kind] + r
                if kind:
                    A[k], b[k], Q[k] = part
                else:
                    _, mean[k], cov[k] = part
        C = np.array(np.broadcast_to(np.eye(d, n), (K, d, n)))
        return Regimes(*self._chain(evidence), A, b, Q, C, np.zeros((K, d)), np.zeros((K, d, d)), mean, cov)

    def _chain(self, evidence: SliceEvidence) -> tuple[Array, Array]:
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
            start, moves = np.log(start), np.log(moves)
        if evidence.logs is not None:  # what densities were divided by
            first = time == 0
            start[owner[first]] += evidence.logs[first, None]
            moves[owner[~first], time[~first]] += evidence.logs[~first, None, None]
        return start, moves

    def _moves(self, kind: int, before: int, steps: Ints, evidence: SliceEvidence) -> Array:
        """Return p(regime, what was seen | regime before) at some steps: (steps, regimes before, regimes)."""
        past = tuple((n, j + 1) for n, j in self.places[before]) if before >= 0 else ()
        here = self.places[kind]
        scopes, tables = [], []
        place = self.slices.kinds(evidence.offsets)[1][steps]
        for node in self.slices.steps[kind]:
            if node.name not in self.numbers:
                scopes.append(node.scope)
                own = node.values
                tables.append(evidence.densities[node.name, kind][place] if own is None else own)
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

    def answer(
        self,
        evidence: SliceEvidence,
        method: Method | None,
        smooth: bool,
        particles: int,
        rng: np.random.Generator,
    ) -> "SwitchingAnswer":
        """Return what a method says of regimes and numbers; None sums over all paths where they are few.

        Raises
        ------
        ImpossibleSequenceError
            Where what was seen has probability zero.
        """
        model, rows, offsets = self.regimes(evidence), evidence.columns(self.numbers), evidence.offsets
        parts: list[Any] | None = None
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
            method = method or ("gpb2" if self.n_regimes <= FEW_REGIMES else "imm")
            if smooth:
                parts = list(smoother_runs(model, rows, offsets, method, particles, PATHS, rng))
            else:
                parts = list(filter_runs(model, rows, offsets, method, particles, rng))
        assert method is not None
        log_prob = np.array([float(one.log_prob) for one in parts])
        return SwitchingAnswer(
            [p.logs for p in parts], [p.mean for p in parts], [p.cov for p in parts], log_prob, method
        )

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


def told_by(
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


def largest_gap(
    ours: Sequence[Mapping[str, Array]], exact: Sequence[Mapping[str, Array]], steps: int
) -> tuple[float, str]:
    """Return how far probabilities, or means in standard deviations, are from exact ones, and the words for it."""
    gaps = [np.abs(ours[0][n] - exact[0][n]).max() for n in exact[0]]
    for n in exact[1]:
        away, sd = np.abs(ours[1][n] - exact[1][n]), np.sqrt(exact[2][n])
        gaps.append(np.divide(away, sd, out=np.zeros_like(away), where=sd > 1e-9).max())
    return float(max(gaps, default=0.0)), (
        "largest difference of a probability, or of a mean in standard deviations, from the sum over all paths on the "
        f"first {steps} steps"
    )
