"""The tilt of a model of sequences by rewards: q(y) proportional to p(y)^kappa exp(R(y, wanted) / tau).

It is the q that maximises E_q R - alpha KL(q | p) + beta H(q), with tau = alpha + beta and kappa = alpha / tau; the
maximum is tau log Z. `markovia.posterior_regularisation(weights=)` is the case alpha = 1, beta = 0 for features of a
network. Three ways:

    chain        rewards of steps on a chain: the soft backward message with the powers of its tables; exact
    listed       all sequences, or all that have a finite reward; exact
    drawn        draws from a mixture of the model and of changed copies of what was wanted, weighed by q over their
                 density

Cost: steps times states squared; the sequences that are listed or drawn.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.learning.control.sequence_rewards import SequenceReward
from markovia.learning.sequences.history_tables import smoothed
from markovia.runtime.array_types import Array, Ints

LISTED = 50_000
"""Sequences that are listed at most."""
CHANGED = 0.3
"""The share of symbols that changed copies draw anew."""


@dataclass(frozen=True)
class TiltPowers:
    """The powers of the tilt, from the weights of KL divergence and entropy."""

    kl: float
    entropy: float

    @property
    def temperature(self) -> float:
        """The sum of both: what rewards are divided by."""
        return self.kl + self.entropy

    @property
    def power(self) -> float:
        """The power of the model."""
        return self.kl / self.temperature

    def tempered(self, log_p: Array) -> Array:
        """Return kappa log p; nothing is ruled out by a model of power 0."""
        return np.zeros_like(log_p) if self.power == 0.0 else self.power * log_p


class SequenceTilt(ABC):
    """What was wanted, and the tilts of a model by it."""

    @abstractmethod
    def log_masses(self) -> Array:
        """Return log Z for each wanted sequence."""

    @abstractmethod
    def fitted(self, model: Any) -> Any:
        """Return the model fitted to all tilts: the weighted fit."""

    @property
    def effective_draws(self) -> Array | None:
        """How many draws the weights leave for each wanted sequence; None where nothing is drawn."""
        return None


# -- sequences that are listed or drawn --------------------------------------------------------------------------------


class ListedTilt(SequenceTilt):
    """Tilts on candidates: rows of codes, and their weights, which sum to one for each wanted sequence."""

    def __init__(
        self,
        candidates: list[Ints],
        weights: list[Array],
        masses: Array,
        symbols: Sequence[Hashable],
        *,
        drawn: bool,
    ) -> None:
        self.candidates, self.weights, self._masses = candidates, weights, masses
        self.symbols, self._drawn = symbols, drawn

    def log_masses(self) -> Array:
        """Return log Z, estimated where candidates are drawn."""
        return self._masses

    @property
    def effective_draws(self) -> Array | None:
        """One over the sum of squared weights."""
        return np.array([1.0 / (w @ w) for w in self.weights]) if self._drawn else None

    def fitted(self, model: Any) -> Any:
        """Fit the model to the candidates by their weights."""
        rows, weights = [], []
        for codes, w in zip(self.candidates, self.weights, strict=True):
            held = np.flatnonzero(w > 0)
            rows += [[self.symbols[c] for c in row] for row in codes[held].tolist()]
            weights.append(w[held])
        return model.fit(rows, sample_weight=np.concatenate(weights))


def listed_tilt(
    log_prob: Callable[[Ints], Array],
    reward: SequenceReward,
    wanted: list[Ints],
    symbols: Sequence[Hashable],
    powers: TiltPowers,
) -> ListedTilt:
    """Return tilts on all sequences that are possible.

    Parameters
    ----------
    log_prob
        The model's log probability of each row of codes.
    reward, wanted, symbols, powers
        What sequences are worth, beside which; what codes stand for; the powers.
    """
    candidates, weights, masses = [], [], np.zeros(len(wanted))
    for i, target in enumerate(wanted):
        rows = reward.possible(target, symbols)
        rows = all_sequences(len(symbols), len(target)) if rows is None else rows
        gains = reward.values(rows, target, symbols) / powers.temperature
        logs = gains if powers.power == 0.0 else gains + powers.tempered(log_prob(rows))
        masses[i], w = _normalised(logs)
        candidates.append(rows)
        weights.append(w)
    refuse_impossible(masses)
    return ListedTilt(candidates, weights, masses, symbols, drawn=False)


def drawn_tilt(
    log_prob: Callable[[Ints], Array], sample: Callable[[int, int], Ints], reward: SequenceReward, wanted: list[Ints],
    symbols: Sequence[Hashable], powers: TiltPowers, draws: int, rng: np.random.Generator,
) -> ListedTilt:  # fmt: skip
    """Return tilts on draws: half of them from the model, half copies of what was wanted with some symbols drawn anew.

    Parameters
    ----------
    log_prob, reward, wanted, symbols, powers
        As in `listed_tilt`.
    sample
        Draws codes from the model: (steps, n) -> (n, steps).
    draws, rng
        How many for each wanted sequence, and from what.
    """
    candidates, weights, masses = [], [], np.zeros(len(wanted))
    size = len(symbols)
    for i, target in enumerate(wanted):
        half = draws // 2
        changed = np.repeat(target[None], draws - half, axis=0)
        anew = rng.random(changed.shape) < CHANGED
        changed = np.where(anew, rng.integers(size, size=changed.shape), changed)
        rows = np.concatenate([sample(len(target), half), changed]) if half else changed
        log_p = log_prob(rows)
        same = (rows == target).sum(axis=1)
        kept, other = 1.0 - CHANGED + CHANGED / size, CHANGED / size
        log_copy = same * np.log(kept) + (len(target) - same) * np.log(other)
        share = half / draws
        with np.errstate(divide="ignore"):
            density = np.logaddexp(np.log(share) + log_p, np.log(1.0 - share) + log_copy)
        logs = powers.tempered(log_p) + reward.values(rows, target, symbols) / powers.temperature - density
        mass, w = _normalised(logs)
        masses[i] = mass - np.log(draws)
        candidates.append(rows)
        weights.append(w)
    refuse_impossible(masses)
    return ListedTilt(candidates, weights, masses, symbols, drawn=True)


def all_sequences(size: int, steps: int) -> Ints:
    """Return all sequences of so many symbols, (size^steps, steps).

    Examples
    --------
    >>> all_sequences(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return np.stack(np.unravel_index(np.arange(size**steps), (size,) * steps), axis=1).astype(np.int64)


def refuse_impossible(log_masses: Array) -> None:
    """Raise where nothing that the model can say has a reward."""
    if not np.isfinite(log_masses).all():
        raise InvalidArgument(
            "no sequence that is possible under the model has a reward beside the wanted sequence "
            f"{int(np.argmin(np.isfinite(log_masses)))}; entropy= without kl= does not need the model's support, and "
            "smoothing widens it"
        )


def _normalised(logs: Array) -> tuple[float, Array]:
    """Return the log of the sum of weights, and the weights over it; zeros where all are."""
    top = float(logs.max(initial=-np.inf))
    if not np.isfinite(top):
        return top, np.zeros_like(logs)
    weights = np.exp(logs - top)
    return top + float(np.log(weights.sum())), weights / weights.sum()


# -- chains ------------------------------------------------------------------------------------------------------------


class ChainTilt(SequenceTilt):
    """Tilts of a chain by rewards of steps; states are histories, tuples of the last symbols."""

    def __init__(self, model: Any, steps: Array, wanted: list[Ints], powers: TiltPowers) -> None:
        self.size, self.order = len(model.symbols), model.order
        k, n = self.order, self.size
        with np.errstate(divide="ignore"):
            start = powers.tempered(np.log(model.start))
            table = powers.tempered(np.log(model.table.reshape(-1, n)))
        digits = np.stack(np.unravel_index(np.arange(n**k), (n,) * k), axis=1)
        # a move between histories keeps all symbols but the oldest
        moves = np.full((n**k, n**k), -np.inf)
        rows = np.repeat(np.arange(n**k), n)
        moves[rows, rows % n ** (k - 1) * n + np.tile(np.arange(n), n**k)] = table.reshape(-1)
        logs = []
        for target in wanted:
            gains = steps[target] / powers.temperature
            logs.append(gains[np.arange(k)[:, None], digits.T].sum(axis=0)[None])
            logs.append(gains[k:][:, digits[:, -1]])
        offsets = np.concatenate([[0], np.cumsum([len(t) - k + 1 for t in wanted])])
        found = HiddenChain.of_logs(start, moves).expect(Observed.of(np.concatenate(logs), offsets))
        refuse_impossible(found.log_probs)
        self._masses = found.log_probs
        self.starts = found.starts.reshape((n,) * k)
        self.pairs = found.pairs[0][rows, rows % n ** (k - 1) * n + np.tile(np.arange(n), n**k)].reshape(
            (n,) * (k + 1)
        )

    def log_masses(self) -> Array:
        """Return log Z."""
        return self._masses

    def fitted(self, model: Any) -> Any:
        """Return the chain of the expected counts, with the smoothing and back-off of its own `fit`."""
        n, k = self.size, self.order
        law: Array = np.full(n, 1.0 / n)
        for width in range(1, k + 2):
            law = smoothed(self._windows(width), law, model.smoothing, model.back_off if width > 1 else 0.0)
        start: Array = np.ones(())
        for width in range(1, k + 1):
            counts = self.starts.sum(axis=tuple(range(width, k)))
            start = np.asarray(
                start[..., None] * smoothed(counts, np.full((n,) * width, 1.0 / n), model.smoothing, 0.0)
            )
        named = {"order": k, "smoothing": model.smoothing, "back_off": model.back_off}
        return type(model)(law, list(model.symbols), start=start, **named)

    def _windows(self, width: int) -> Array:
        """Return expected counts of so many symbols in a row, wherever they stand."""
        k = self.order
        found = self.pairs.sum(axis=tuple(range(k + 1 - width)))
        for first in range(k - width + 1):  # those that lie within the first history
            others = tuple(a for a in range(k) if not first <= a < first + width)
            found = found + self.starts.sum(axis=others)
        return np.asarray(found)
