"""How many hidden states, as `choosing_components` has it; and whether two models have the same states."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.sequences.sequences import Lengths, read_sequences
from markovia.errors import InvalidArgument
from markovia.learning.sequences.blocked_gibbs import matching
from markovia.models.choosing_components import ComponentChoice, Criterion, chosen
from markovia.models.temporal.hmm import HMM
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Choice, check


def choose_states(
    hmm: HMM,
    sequences: Any,
    numbers: Iterable[int],
    lengths: Lengths = None,
    *,
    by: str | None = None,
    criterion: Criterion = "bic",
    folds: int = 5,
    held_out: float = 0.3,
    n_jobs: int | None = None,
    seed: Any = None,
    progress: bool | None = None,
) -> ComponentChoice:
    """Learn a hidden Markov model with each of some numbers of states, and say which is best.

    Parameters
    ----------
    hmm
        The settings of all models; it stays as it is.
    sequences, lengths, by
        The sequences.
    numbers
        The numbers of states to try.
    criterion
        "bic", "aic", "held-out" (a share of the sequences is not learned from) or "cross-validation".
    folds, held_out
        Parts of the sequences, for cross-validation; the share that is held out.
    n_jobs
        Processes, as joblib understands it.
    seed
        The seed of the split, and of models whose settings have none.
    progress
        Whether to show a progress bar; None for long runs on a terminal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data = [np.concatenate([rng.normal(0, 1, 25), rng.normal(9, 1, 25)]) for _ in range(4)]
    >>> found = choose_states(HMM(emission="gaussian"), data, range(1, 4), seed=0)
    >>> found.n_states
    2
    """
    check("criterion", criterion, Choice(("bic", "aic", "held-out", "cross-validation")))
    data = read_sequences(sequences, lengths, by=by)
    return chosen(
        hmm, (data.split(data.values),), numbers, parameter="n_states", worth=_worth, kind="sequences",
        criterion=criterion, folds=folds, held_out=held_out, n_jobs=n_jobs, seed=seed, progress=progress,
        fixed={"progress": False},
    )  # fmt: skip


def _worth(hmm: HMM, parts: list[Any]) -> tuple[float, float]:
    """Return the log likelihood a step of some sequences, and how many steps there are."""
    steps = float(sum(len(one) for one in parts))
    return hmm.score(parts) / steps, steps


@dataclass(frozen=True)
class StateMatch:
    """How the states of one model correspond to those of another.

    Attributes
    ----------
    order
        State i of the first model corresponds to state `order[i]` of the second.
    agreement
        The share of steps at which the decoded paths agree, once they are matched.
    transition, start
        How far the matched transition rows and starts are apart, at most, in total variation.
    """

    order: Ints
    agreement: float
    transition: float
    start: float


def compare_states(
    first: HMM, second: HMM, sequences: Any, lengths: Any = None, *, by: str | None = None
) -> StateMatch:
    """Match the states of two models by the paths they decode, so that the paths agree as often as they can.

    Examples
    --------
    >>> probs = [[0.9, 0.1], [0.2, 0.8]]
    >>> one = HMM(2, start=[0.6, 0.4], transition=[[0.9, 0.1], [0.3, 0.7]], emission_params={"probs": probs})
    >>> two = HMM(2, start=[0.4, 0.6], transition=[[0.7, 0.3], [0.1, 0.9]], emission_params={"probs": probs[::-1]})
    >>> found = compare_states(one, two, [[0, 0, 0, 1, 1, 1]])
    >>> found.order.tolist(), found.agreement, round(found.transition, 6)
    ([1, 0], 1.0, 0.0)
    """
    if first.n_states != second.n_states:
        raise InvalidArgument(
            f"states are matched one to one; the models have {first.n_states} and {second.n_states} of them"
        )
    a, b = (np.concatenate(m.decode(sequences, lengths, by=by)) for m in (first, second))
    order = matching(b, a, first.n_states)
    one, two = first._model(), second._model()

    def apart(p: Array, q: Array) -> float:
        return float(0.5 * np.abs(p - q).sum(axis=-1).max())

    return StateMatch(
        order,
        float((order[a] == b).mean()),
        apart(one.transition, two.transition[np.ix_(order, order)]),
        apart(one.start[None], two.start[order][None]),
    )
