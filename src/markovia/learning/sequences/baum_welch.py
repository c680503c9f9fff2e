"""Learning hidden Markov models by expectation-maximisation.

One iteration takes expected counts under the present values (or the counts of best paths: Viterbi training) and then the
values that make those most probable, with Dirichlet priors of start and transition and the emission's own prior. States that
were told are kept. The objective, log p(data) plus the log prior, never falls. References: Baum and others (1970);
Rabiner (1989). Cost of an iteration: steps times (states squared plus what the emissions need).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.inference.sequences.hidden_chain import Expected, HiddenChain
from markovia.learning.components.discrete import chosen, dirichlet, shares
from markovia.learning.components.families import NOTHING, Components, Observations
from markovia.learning.sequences.transition_masks import masked
from markovia.optimise.ascent import Climb, climb
from markovia.optimise.checkpoint import Checkpoint
from markovia.runtime.array_types import Array, Flags, Ints

Algorithm = Literal["baum-welch", "viterbi", "stochastic"]


class HiddenModel(Protocol):
    """What learning needs of a model with hidden states."""

    @property
    def emission(self) -> Components:
        """What the states emit."""

    def chain_over(self, seen: Observations) -> HiddenChain:
        """Return the hidden chain over some sequences."""

    def learned(self, seen: Observations, expected: Expected, weights: Array, priors: "Priors") -> Any:
        """Return the model that makes expected counts, and rows with `weights`, most probable."""

    def log_prior(self, priors: "Priors") -> float:
        """Return the log prior, up to a constant."""


class HiddenMarkov(NamedTuple):
    """The parameters of a hidden Markov model."""

    start: Array
    transition: Array
    emission: Components

    @property
    def chain(self) -> HiddenChain:
        """The hidden chain."""
        return HiddenChain(self.start, self.transition)

    @property
    def last(self) -> Ints | None:
        """The state that each of the chain's states stands for; None where they are the same."""
        return None

    def chain_over(self, seen: Observations) -> HiddenChain:
        """Return the hidden chain over some sequences."""
        return self.chain

    def learned(
        self, seen: Observations, expected: Expected, weights: Array, priors: "Priors"
    ) -> "HiddenMarkov":
        """Return the model that makes expected counts most probable; probabilities that are zero stay so."""
        start = counted_rows(expected.starts, self.start, priors.start)
        transition = counted_rows(expected.pairs[0], self.transition, priors.transition)
        if priors.fixed is not None:
            transition = masked(transition, np.where(self.transition > 0.0, priors.fixed, 0.0))
        return HiddenMarkov(start, transition, self.emission.learned(seen.rows, weights, priors.emission))

    def log_prior(self, priors: "Priors") -> float:
        """Return the log prior, up to a constant; entries that are zero stay out of it."""
        rows = ((self.start, priors.start), (self.transition, priors.transition))
        found = sum(row_prior(p, a) for p, a in rows)
        return found + self.emission.log_prior(priors.emission)

    def ahead(self, now: Array, lengths: Ints, steps: int, inputs: Array | None = None) -> Array:
        """Return the distributions of the next steps' states, (sequences, steps, states), from those of the last ones."""
        found = []
        for _ in range(steps):
            now = now @ self.transition
            found.append(now)
        return np.stack(found, axis=1)

    def draw_states(
        self, count: int, steps: int, rng: np.random.Generator, inputs: Array | None = None
    ) -> Ints:
        """Return drawn paths (count, steps)."""
        states = np.empty((count, steps), dtype=np.int64)
        states[:, 0] = chosen(np.repeat(self.start[None], count, axis=0), rng)
        for t in range(1, steps):
            states[:, t] = chosen(self.transition[states[:, t - 1]], rng)
        return states


@dataclass(frozen=True)
class Priors:
    """Dirichlet concentrations of the start and of rows of the transition, 1 for none, and the emission's prior.

    `fixed` has the moves whose probabilities stay, NaN for the others; `penalty` is that of weights of inputs.
    """

    start: Any
    transition: Any
    emission: Mapping[str, Any]
    fixed: Array | None = None
    penalty: float = 0.0

    def log_density(self, model: HiddenModel) -> float:
        """Return the log prior of a model, up to a constant."""
        return model.log_prior(self)


def row_prior(probs: Array, concentration: Any) -> float:
    """Return the log density of rows under Dirichlet priors, up to a constant; entries that are zero stay out of it."""
    return dirichlet(np.where(probs > 0.0, probs, 1.0), {"concentration": concentration})


class LearnedChain(NamedTuple):
    """What learning found: the model, and which of its states got no data."""

    model: Any
    hungry: Flags


def learn(
    model: HiddenModel,
    seen: Observations,
    priors: Priors,
    *,
    algorithm: Algorithm = "baum-welch",
    max_iter: int = 100,
    tol: float = 1e-5,
    progress: bool | None = False,
    checkpoint: Checkpoint | None = None,
    where: Callable[[int], str] = str,
) -> Climb[LearnedChain]:
    """Climb from starting values (see `climb`); its history has the objective before each iteration."""

    def step(now: LearnedChain) -> tuple[LearnedChain, float]:
        expected = expect(now.model, seen, algorithm, where)
        objective = seen.total(expected.log_probs) + priors.log_density(now.model)
        learned = maximise(now.model, seen, expected, seen.weights(expected.sums), priors)
        return LearnedChain(learned, _hungry(expected)), objective

    start = LearnedChain(model, np.zeros(model.emission.n_states, dtype=bool))
    return climb(
        step, start, max_iter=max_iter, tol=tol, size=seen.steps, progress=progress, unit="iteration", checkpoint=checkpoint
    )  # fmt: skip


def learn_told(model: HiddenModel, seen: Observations, states: Ints, priors: Priors) -> Climb[LearnedChain]:
    """Learn from sequences whose states are all known: by counting."""
    states = model.path_of(states, seen.offsets) if hasattr(model, "path_of") else states
    expected = counted(model, seen, states, np.zeros(len(seen.offsets) - 1))
    made = maximise(model, seen, expected, seen.weights(expected.sums), priors)
    found = made.chain_over(seen).expect(seen.seen_by(made.emission))
    objective = seen.total(found.log_probs) + priors.log_density(made)
    return Climb(LearnedChain(made, _hungry(expected)), [objective], "converged")


def expect(
    model: HiddenModel, seen: Observations, algorithm: Algorithm, where: Callable[[int], str] = str
) -> Expected:
    """Return expected counts, or those of best paths; `where` says in words where a step is."""
    observed = seen.seen_by(model.emission)
    chain = model.chain_over(seen)
    if algorithm == "viterbi":
        paths, log_probs = chain.best(observed)
        if (log_probs == -np.inf).any():
            refuse(chain.filter(observed).stuck, where)
        return counted(model, seen, paths, log_probs)
    expected = chain.expect(observed, seen.shares)
    refuse(expected.stuck, where)
    return expected


def refuse(stuck: Ints, where: Callable[[int], str]) -> None:
    """Raise where a sequence is impossible."""
    if (stuck >= 0).any():
        step = int(stuck[np.argmax(stuck >= 0)])
        raise InvalidArgument(
            f"{where(step)} is impossible under the model, whatever the states were; give what is zero some probability"
        )


def maximise(
    model: HiddenModel, seen: Observations, expected: Expected, weights: Array, priors: Priors
) -> Any:
    """Return the model that makes expected counts most probable; probabilities that are zero stay so."""
    return model.learned(seen, expected, weights, priors)


def counted_rows(counts: Array, before: Array, concentration: Any) -> Array:
    """Return counts as probabilities in each row under a Dirichlet prior; zeros stay, and so do rows without counts."""
    return shares(counts, before, {"concentration": np.where(before > 0.0, concentration, 1.0)})


def counted(model: HiddenModel, seen: Observations, states: Ints, log_probs: Array) -> Expected:
    """Return the counts of known paths of the chain."""
    k, chain = model.emission.n_states, model.chain_over(seen)
    n = (len(seen.rows) + 1) if seen.kinds is None else len(seen.kinds[0])
    each = np.ones(len(log_probs)) if seen.shares is None else seen.shares
    by_step = np.repeat(each, np.diff(seen.offsets))
    sums = np.bincount(seen.codes * k + states, by_step, n * k).reshape(n, k)
    inside = np.ones(len(states), dtype=bool)
    inside[seen.offsets[:-1]] = False
    later = np.flatnonzero(inside)
    m = len(chain.tables)
    which = chain.moves[0] if len(chain.moves) == 1 else chain.moves[later]
    moves = (which * k + states[later - 1]) * k + states[later]
    pairs = np.bincount(moves, by_step[later], m * k * k).reshape(m, k, k)
    starts = np.bincount(states[seen.offsets[:-1]], each, k)
    none = np.full(len(log_probs), -1, dtype=np.int64)
    return Expected(_floats(sums), _floats(starts), _floats(pairs), log_probs, none)


def _floats(counts: Any) -> Array:
    return np.asarray(counts, dtype=np.float64)


def _hungry(expected: Expected) -> Flags:
    """Return which states are never visited."""
    return np.asarray(expected.starts + expected.pairs.sum(axis=(0, 1)) <= NOTHING)


def say_hungry(hungry: Flags) -> None:
    """Warn of states that got no data."""
    states = np.flatnonzero(hungry).tolist()
    if states:
        which = ", ".join(map(str, states))
        warn_user(
            f"state{'s' if len(states) > 1 else ''} {which} got no data and kept the values from before; try fewer states "
            "or other starting values",
            ConvergenceWarning,
        )


def started_chain(
    k: int,
    rng: np.random.Generator,
    start: Array | None,
    transition: Array | None,
    fixed: Array | None = None,
) -> tuple[Array, Array]:
    """Return starting values of a chain: those given, else one that tends to stay and keeps what is fixed."""
    if start is None:
        start = np.full(k, 1.0 / k)
    if transition is None:
        transition = 0.5 * np.eye(k) + 0.5 * rng.dirichlet(np.full(k, 5.0), k)
    return start, transition if fixed is None else masked(transition, fixed)


def with_told(model: Any, seen: Observations, states: Ints, priors: Priors) -> Any:
    """Return starting values nearer to the states that were told: emissions from those steps, mixed with all steps."""
    labels = getattr(model.emission, "labels", np.arange(model.emission.n_states))
    k = int(labels.max()) + 1
    n = len(seen.rows) + 1
    every = np.bincount(seen.codes, minlength=n).astype(np.float64)
    there = states >= 0
    told = np.bincount(seen.codes[there] * k + states[there], minlength=n * k).reshape(n, k)
    weights = (told + 0.01 * every[:, None] / k)[:-1]
    return model._replace(emission=model.emission.learned(seen.rows, weights[:, labels], priors.emission))
