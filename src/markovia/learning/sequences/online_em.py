"""Learning hidden Markov models from data that comes in pieces: online and minibatch EM.

What the data so far say is kept as sums (counts of starts and moves; the size, sum and products of rows for each state). A
piece's own sums, scaled to all sequences so far, replace a share of them that falls with the number of pieces, t^-decay, and
the parameters follow. References: Cappe and Moulines (2009); Cappe (2011). Cost of a piece: one iteration of EM on it.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.inference.sequences.hidden_chain import Expected
from markovia.learning.components.discrete import Bernoulli, Categorical, Multinomial, Poisson
from markovia.learning.components.families import NOTHING, Observations
from markovia.learning.components.gaussian import Gaussian
from markovia.learning.components.tied import untied
from markovia.learning.sequences.baum_welch import HiddenMarkov, LearnedChain, Priors, expect, maximise
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array


@dataclass(frozen=True)
class OnlineSums:
    """Expected sums, per sequence: starts, moves, and for each state the size, sum and products of rows."""

    starts: Array
    pairs: Array
    size: Array
    first: Array
    second: Array | None
    sequences: float
    pieces: int

    def mixed(self, other: "OnlineSums", share: float) -> "OnlineSums":
        """Return these sums with a share of them replaced."""
        second = None
        if self.second is not None and other.second is not None:
            second = (1.0 - share) * self.second + share * other.second
        named = ("starts", "pairs", "size", "first")
        new = {n: (1.0 - share) * getattr(self, n) + share * getattr(other, n) for n in named}
        return OnlineSums(
            **new, second=second, sequences=self.sequences + other.sequences, pieces=self.pieces + 1
        )


def sums_of(model: HiddenMarkov, seen: Observations, expected: Expected) -> OnlineSums:
    """Return the expected sums of one piece."""
    weights, n = seen.weights(expected.sums), len(seen.offsets) - 1
    rows = _rows(model.emission, seen.rows)
    second = None
    if isinstance(untied(model.emission), Gaussian):
        second = np.array([(rows * w[:, None]).T @ rows for w in weights.T]) / n
    return OnlineSums(
        expected.starts / n,
        expected.pairs / n,
        weights.sum(axis=0) / n,
        weights.T @ rows / n,
        second,
        float(n),
        1,
    )


def follow(model: HiddenMarkov, sums: OnlineSums, priors: Priors) -> HiddenMarkov:
    """Return the model that makes sums most probable; rows that have the same sums stand for the data."""
    n = sums.sequences
    k, d = sums.first.shape
    fed = sums.size > NOTHING
    middles = sums.first / np.where(fed, sums.size, 1.0)[:, None]
    rows: Any
    if isinstance(untied(model.emission), Categorical):
        rows, weights = np.arange(d)[:, None], n * sums.first.T
    elif sums.second is None:
        rows, weights = middles, np.diag(n * sums.size)
    else:
        # points either side of the mean, one pair a direction, with the same mean and covariance
        covariances = sums.second / np.where(fed, sums.size, 1.0)[:, None, None]
        values, vectors = np.linalg.eigh(covariances - middles[:, :, None] * middles[:, None, :])
        moves = np.sqrt(d * np.maximum(values, 0.0))[:, None, :] * vectors
        points = middles[:, None, :] + np.concatenate([moves, -moves], axis=2).swapaxes(1, 2)
        rows = points.reshape(-1, d)
        weights = np.repeat(np.diag(n * sums.size / (2 * d)), 2 * d, axis=0)
    expected = Expected(
        np.zeros((0, k)), n * sums.starts, n * sums.pairs, np.zeros(0), np.zeros(0, dtype=np.int64)
    )
    stands = Observations(rows, np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    found: HiddenMarkov = maximise(model, stands, expected, weights, priors)
    return found


def online_step(
    model: HiddenMarkov,
    sums: OnlineSums | None,
    seen: Observations,
    priors: Priors,
    decay: float,
    where: Any = str,
) -> tuple[HiddenMarkov, OnlineSums, float]:
    """Return the model and sums after one more piece, and the piece's log p before it."""
    expected = expect(model, seen, "baum-welch", where)
    own = sums_of(model, seen, expected)
    new = own if sums is None else sums.mixed(own, float((sums.pieces + 1) ** -decay))
    return follow(model, new, priors), new, seen.total(expected.log_probs)


def learn_by_batches(
    model: HiddenMarkov,
    seen: Observations,
    priors: Priors,
    *,
    batch_size: int,
    decay: float,
    max_iter: int,
    tol: float,
    seed: Any,
    progress: bool | None = False,
    where: Any = str,
) -> Climb[LearnedChain]:
    """Learn in passes over sequences in a random order, some at a time; a step of the climb is a pass."""
    rng = np.random.default_rng(seed)
    count = len(seen.offsets) - 1

    def one_pass(now: tuple[HiddenMarkov, Any]) -> tuple[tuple[HiddenMarkov, Any], float]:
        (learned, sums), total, order = now, 0.0, rng.permutation(count)
        for first in range(0, count, batch_size):
            piece = part_of(seen, np.sort(order[first : first + batch_size]))
            learned, sums, log_prob = online_step(learned, sums, piece, priors, decay, where)
            sums = replace(sums, sequences=float(count))
            total += log_prob
        return (learned, sums), total + priors.log_density(learned)

    start: tuple[HiddenMarkov, Any] = model, None
    found = climb(
        one_pass,
        start,
        max_iter=max_iter,
        tol=tol,
        size=seen.steps,
        may_fall=True,
        progress=progress,
        unit="pass",
    )
    return Climb(LearnedChain(found.state[0], found.state[1].size <= NOTHING), found.history, found.reason)


def part_of(seen: Observations, which: Any) -> Observations:
    """Return some sequences, with only the rows they have."""
    lengths = np.diff(seen.offsets)[which]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    steps = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - seen.offsets[which], lengths)
    codes = seen.codes[steps]
    if seen.kinds is not None or not seen.apart:
        return replace(
            seen, codes=codes, offsets=offsets, shares=None if seen.shares is None else seen.shares[which]
        )
    there = codes < len(seen.rows)
    new = np.where(there, np.cumsum(there) - 1, int(there.sum()))
    shares = None if seen.shares is None else seen.shares[which]
    return Observations(np.ascontiguousarray(seen.rows[codes[there]]), new, offsets, True, None, shares)


def require_sums(emission: Any) -> None:
    """Refuse emissions whose data cannot be kept as sums."""
    if not isinstance(untied(emission), Categorical | Gaussian | Poisson | Bernoulli | Multinomial):
        raise UnsupportedModel(
            "learning in pieces is for categorical, gaussian, poisson, bernoulli and multinomial emissions, not for "
            f"{type(untied(emission)).__name__}"
        )


def _rows(emission: Any, rows: Any) -> Any:
    inner = untied(emission)
    if isinstance(inner, Categorical):
        return np.eye(len(inner.symbols))[rows[:, 0].astype(np.int64)]
    return rows
