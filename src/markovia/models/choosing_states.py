"""How many hidden states: one number for each model, in one call; and whether two models have the same states.

Criteria penalise parameters (`bic`, `aic`); held-out likelihoods and cross-validation ask how probable sequences are that
were not learned from. Reference: Celeux and Durand (2008). Cost: a fit for each number of states, and for each fold.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import clone

from markovia.data.sequences import read_sequences
from markovia.errors import InvalidArgument
from markovia.learning.sequences.blocked_gibbs import matching
from markovia.models.temporal.hmm import HMM
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import LEVEL, Choice, Whole, check
from markovia.runtime.parallel_tasks import task_results
from markovia.runtime.seeds import generator
from markovia.runtime.shown import aligned

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Criterion = Literal["bic", "aic", "held-out", "cross-validation"]


@dataclass(frozen=True)
class StateChoice:
    """What each number of states was worth.

    Attributes
    ----------
    numbers, scores
        The numbers of states and what each scored: an information criterion (smaller is better), or the log likelihood a
        step of sequences that were not learned from (larger is better).
    criterion
        Which it is.
    best
        The model with the best number of states, learned from all sequences.
    """

    numbers: tuple[int, ...]
    scores: tuple[float, ...]
    criterion: Criterion
    best: HMM

    @property
    def n_states(self) -> int:
        """The best number of states."""
        return int(self.best.n_states)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table of numbers of states and scores."""
        import pandas as pd

        return pd.DataFrame({"n_states": self.numbers, self.criterion: self.scores})

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the scores; see `markovia.plotting.state_choice_plot.plot_state_choice`."""
        drawn: Axes = ports.call("plot-state-choice", self, ax=ax, title=title)
        return drawn

    def __str__(self) -> str:
        rows = [[str(n), f"{s:.6g}"] for n, s in zip(self.numbers, self.scores, strict=True)]
        return aligned(["n_states", self.criterion], rows)


def choose_states(
    hmm: HMM,
    sequences: Any,
    numbers: Iterable[int],
    lengths: Iterable[int] | None = None,
    *,
    by: str | None = None,
    criterion: Criterion = "bic",
    folds: int = 5,
    held_out: float = 0.3,
    n_jobs: int | None = None,
    seed: Any = None,
    progress: bool | None = None,
) -> StateChoice:
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
    check("folds", folds, Whole(2))
    check("held_out", held_out, LEVEL)
    tried = tuple(numbers)
    if not tried:
        raise InvalidArgument("numbers= has at least one number of states to try")
    for k in tried:
        check("numbers", k, Whole(1))
    data = read_sequences(sequences, lengths, by=by)
    parts, rng = data.split(data.values), generator(seed)
    splits: list[Ints] = []
    if criterion in ("held-out", "cross-validation"):
        count = folds if criterion == "cross-validation" else 2
        if len(parts) < count:
            raise InvalidArgument(
                f"{criterion} needs {count} sequences or more, and there are {len(parts)}; cut long ones into pieces"
            )
        order = rng.permutation(len(parts))
        if criterion == "held-out":
            splits = [order[: min(max(round(held_out * len(parts)), 1), len(parts) - 1)]]
        else:
            splits = [np.asarray(s) for s in np.array_split(order, folds)]
    fixed = int(rng.integers(2**31)) if hmm.random_state is None else hmm.random_state
    work = partial(_scored, hmm=hmm, parts=parts, splits=splits, criterion=criterion, seed=fixed)
    found = list(task_results(work, tried, n_jobs=n_jobs, progress=progress, unit="model"))
    scores = [score for score, _ in found]
    best = int(np.argmin(scores) if criterion in ("bic", "aic") else np.argmax(scores))
    model = found[best][1]
    if model is None:
        model = _fitted(hmm, tried[best], parts, fixed)
    return StateChoice(tried, tuple(scores), criterion, model)


def _fitted(hmm: HMM, k: int, parts: list[Any], seed: Any) -> HMM:
    model: HMM = clone(hmm).set_params(n_states=k, random_state=seed, progress=False)
    return model.fit(parts)


def _scored(
    k: int, hmm: HMM, parts: list[Any], splits: list[Ints], criterion: Criterion, seed: Any
) -> tuple[float, HMM | None]:
    if not splits:
        model = _fitted(hmm, k, parts, seed)
        return (model.bic(parts) if criterion == "bic" else model.aic(parts)), model
    total, steps = 0.0, 0
    for out in splits:
        own = [parts[i] for i in np.setdiff1d(np.arange(len(parts)), out)]
        other = [parts[i] for i in out]
        total += _fitted(hmm, k, own, seed).score(other)
        steps += sum(len(one) for one in other)
    return total / steps, None


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
