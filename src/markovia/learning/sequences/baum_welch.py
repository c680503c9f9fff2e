"""Learning hidden Markov models by expectation-maximisation.

One iteration takes expected counts under the present values (or the counts of best paths: Viterbi training) and then the
values that make those most probable, with Dirichlet priors of start and transition and the emission's own prior. States that
were told are kept. The objective, log p(data) plus the log prior, never falls. References: Baum and others (1970);
Rabiner (1989). Cost of an iteration: steps times (states squared plus what the emissions need).
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from markovia.errors import ConvergenceWarning, InvalidArgument
from markovia.inference.sequences.hidden_chain import Expected, HiddenChain
from markovia.learning.sequences.discrete_emissions import dirichlet, shares
from markovia.learning.sequences.emissions import NOTHING, Emission, Observations
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.progress import progress_bar

Algorithm = Literal["baum-welch", "viterbi"]


class HiddenMarkov(NamedTuple):
    """The parameters of a hidden Markov model."""

    start: Array
    transition: Array
    emission: Emission

    @property
    def chain(self) -> HiddenChain:
        """The hidden chain."""
        return HiddenChain(self.start, self.transition)

    @property
    def n_free(self) -> int:
        """The number of free parameters; entries that are zero by construction are none."""
        rows = [self.start, *self.transition]
        return self.emission.n_free + sum(max(int((row > 0.0).sum()) - 1, 0) for row in rows)


@dataclass(frozen=True)
class Priors:
    """Dirichlet concentrations of the start and of rows of the transition, 1 for none, and the emission's prior."""

    start: Any
    transition: Any
    emission: Mapping[str, Any]

    def log_density(self, model: HiddenMarkov) -> float:
        """Return the log prior of a model, up to a constant; entries that are zero stay out of it."""
        rows = ((model.start, self.start), (model.transition, self.transition))
        found = sum(dirichlet(np.where(p > 0.0, p, 1.0), {"concentration": a}) for p, a in rows)
        return found + model.emission.log_prior(self.emission)


class Training(NamedTuple):
    """What learning found: the model, the objective before each iteration, whether it settled, states without data."""

    model: HiddenMarkov
    history: list[float]
    converged: bool
    hungry: list[int]

    @property
    def objective(self) -> float:
        """The last objective."""
        return self.history[-1]


def learn(
    model: HiddenMarkov,
    seen: Observations,
    priors: Priors,
    *,
    algorithm: Algorithm = "baum-welch",
    max_iter: int = 100,
    tol: float = 1e-2,
    progress: bool | None = False,
    where: Callable[[int], str] = str,
) -> Training:
    """Learn from starting values until an iteration gains less than `tol`."""
    history: list[float] = []
    converged = False
    fed = np.zeros(len(model.start), dtype=bool)
    with progress_bar(progress, max_iter, unit="iteration") as advance:
        for _ in range(max_iter):
            expected = expect(model, seen, algorithm, where)
            history.append(seen.total(expected.log_probs) + priors.log_density(model))
            weights = seen.weights(expected.sums)
            fed = _visits(expected) > NOTHING
            model = maximise(model, seen, expected, weights, priors)
            advance(note=f"{history[-1]:.6g}")
            if len(history) > 1 and history[-1] - history[-2] < tol:
                converged = True
                break
    return Training(model, history, converged, np.flatnonzero(~fed).tolist())


def learn_told(model: HiddenMarkov, seen: Observations, states: Ints, priors: Priors) -> Training:
    """Learn from sequences whose states are all known: by counting."""
    expected = _counted(model, seen, states, np.zeros(len(seen.offsets) - 1))
    made = maximise(model, seen, expected, seen.weights(expected.sums), priors)
    found = made.chain.expect(seen.seen_by(made.emission))
    objective = seen.total(found.log_probs) + priors.log_density(made)
    return Training(made, [objective], True, np.flatnonzero(_visits(expected) <= NOTHING).tolist())


def expect(
    model: HiddenMarkov, seen: Observations, algorithm: Algorithm, where: Callable[[int], str] = str
) -> Expected:
    """Return expected counts, or those of best paths; `where` says in words where a step is."""
    observed = seen.seen_by(model.emission)
    chain = model.chain
    if algorithm == "viterbi":
        paths, log_probs = chain.best(observed)
        if (log_probs == -np.inf).any():
            refuse(chain.filter(observed).stuck, where)
        return _counted(model, seen, paths, log_probs)
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
    model: HiddenMarkov, seen: Observations, expected: Expected, weights: Array, priors: Priors
) -> HiddenMarkov:
    """Return the model that makes expected counts most probable; probabilities that are zero stay so."""
    start = _rows(expected.starts, model.start, priors.start)
    transition = _rows(expected.pairs[0], model.transition, priors.transition)
    return HiddenMarkov(start, transition, model.emission.learned(seen.rows, weights, priors.emission))


def _rows(counts: Array, before: Array, concentration: Any) -> Array:
    return shares(counts, before, {"concentration": np.where(before > 0.0, concentration, 1.0)})


def _counted(model: HiddenMarkov, seen: Observations, states: Ints, log_probs: Array) -> Expected:
    """Return the counts of known paths."""
    k = len(model.start)
    n = (len(seen.rows) + 1) if seen.kinds is None else len(seen.kinds[0])
    each = np.ones(len(log_probs)) if seen.shares is None else seen.shares
    by_step = np.repeat(each, np.diff(seen.offsets))
    sums = np.bincount(seen.codes * k + states, by_step, n * k).reshape(n, k)
    inside = np.ones(len(states), dtype=bool)
    inside[seen.offsets[:-1]] = False
    later = np.flatnonzero(inside)
    pairs = np.bincount(states[later - 1] * k + states[later], by_step[later], k * k).reshape(1, k, k)
    starts = np.bincount(states[seen.offsets[:-1]], each, k)
    none = np.full(len(log_probs), -1, dtype=np.int64)
    return Expected(_floats(sums), _floats(starts), _floats(pairs), log_probs, none)


def _floats(counts: Any) -> Array:
    return np.asarray(counts, dtype=np.float64)


def _visits(expected: Expected) -> Array:
    return np.asarray(expected.starts + expected.pairs.sum(axis=(0, 1)))


def say_hungry(states: list[int]) -> None:
    """Warn of states that got no data."""
    if states:
        which = ", ".join(map(str, states))
        warnings.warn(
            f"state{'s' if len(states) > 1 else ''} {which} got no data and kept the values from before; try fewer states "
            "or other starting values",
            ConvergenceWarning,
            stacklevel=3,
        )


def started(
    k: int,
    seen: Observations,
    rng: np.random.Generator,
    make: Callable[[np.random.Generator], Emission],
    start: Array | None,
    transition: Array | None,
) -> HiddenMarkov:
    """Return starting values: those given, else emissions from the data and a chain that tends to stay."""
    emission = make(rng)
    if start is None:
        start = np.full(k, 1.0 / k)
    if transition is None:
        transition = 0.5 * np.eye(k) + 0.5 * rng.dirichlet(np.full(k, 5.0), k)
    return HiddenMarkov(start, transition, emission)


def with_told(model: HiddenMarkov, seen: Observations, states: Ints, priors: Priors) -> HiddenMarkov:
    """Return starting values nearer to the states that were told: emissions from those steps, mixed with all steps."""
    k = len(model.start)
    n = len(seen.rows) + 1
    every = np.bincount(seen.codes, minlength=n).astype(np.float64)
    there = states >= 0
    told = np.bincount(seen.codes[there] * k + states[there], minlength=n * k).reshape(n, k)
    weights = (told + 0.01 * every[:, None] / k)[:-1]
    return model._replace(emission=model.emission.learned(seen.rows, weights, priors.emission))
