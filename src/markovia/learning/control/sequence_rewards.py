"""What a sequence of symbols is worth beside the one that was wanted.

A reward of steps is a sum over positions, so that a chain is tilted exactly by messages. One of whole sequences, such
as BLEU, has no chain: sequences are listed where there are few, else drawn and weighed. Some rewards leave only few
sequences possible and list them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import numbers


class SequenceReward(ABC):
    """A reward R(said, wanted) of sequences of equal length; codes are positions of symbols."""

    @abstractmethod
    def values(self, said: Ints, wanted: Ints, symbols: Sequence[Hashable]) -> Array:
        """Return the reward of each row of `said`, (n, steps)."""

    def steps(self, symbols: Sequence[Hashable]) -> Array | None:
        """Return the reward of a step by wanted and said symbol, (V, V), where the reward is a sum of such."""
        return None

    def possible(self, wanted: Ints, symbols: Sequence[Hashable]) -> Ints | None:
        """Return all sequences with a finite reward, (n, steps), where these are few."""
        return None


@dataclass(frozen=True)
class StepReward(SequenceReward):
    """A sum of rewards of steps.

    Parameters
    ----------
    worth
        A function of the symbol that was said and the one that was wanted, or the word "hamming": minus one for each
        symbol that differs. Minus infinity rules a symbol out.

    Examples
    --------
    >>> near = StepReward(lambda said, wanted: -abs(said - wanted))
    >>> near.values(np.array([[0, 2], [1, 1]]), np.array([0, 0]), [0, 1, 2]).tolist()
    [-2.0, -2.0]
    """

    worth: Callable[[Any, Any], float] | str = "hamming"

    def steps(self, symbols: Sequence[Hashable]) -> Array:
        """Return the table of the function."""
        if not callable(self.worth):
            if self.worth != "hamming":
                raise InvalidArgument(
                    f"the worth of a step is a function of said and wanted, or 'hamming', not {self.worth!r}"
                )
            return np.eye(len(symbols)) - 1.0
        table = [[self.worth(said, wanted) for said in symbols] for wanted in symbols]
        return _checked(table, "a reward of steps is a number, or minus infinity")

    def values(self, said: Ints, wanted: Ints, symbols: Sequence[Hashable]) -> Array:
        """Return sums over steps."""
        return np.asarray(self.steps(symbols)[wanted, said].sum(axis=1))


@dataclass(frozen=True)
class WholeReward(SequenceReward):
    """A reward of whole sequences.

    Parameters
    ----------
    function
        Of the list of symbols that was said and the one that was wanted.

    Examples
    --------
    >>> same_sum = WholeReward(lambda said, wanted: -abs(sum(said) - sum(wanted)))
    >>> same_sum.values(np.array([[0, 2], [2, 2]]), np.array([1, 1]), [0, 1, 2]).tolist()
    [0.0, -2.0]
    """

    function: Callable[[list[Any], list[Any]], float]

    def values(self, said: Ints, wanted: Ints, symbols: Sequence[Hashable]) -> Array:
        """Call the function for each different row."""
        target = [symbols[c] for c in wanted]
        rows, back = np.unique(said, axis=0, return_inverse=True)
        found = [self.function([symbols[c] for c in row], list(target)) for row in rows]
        return _checked(found, "a reward is a number, or minus infinity")[np.ravel(back)]


@dataclass(frozen=True)
class ExactReward(SequenceReward):
    """One for what was wanted, minus infinity for all else: what maximum likelihood maximises."""

    def values(self, said: Ints, wanted: Ints, symbols: Sequence[Hashable]) -> Array:
        """Compare rows."""
        return np.where((said == wanted).all(axis=1), 1.0, -np.inf)

    def possible(self, wanted: Ints, symbols: Sequence[Hashable]) -> Ints:
        """Return the one sequence."""
        return wanted[None]


@dataclass(frozen=True)
class OneChangeReward(SequenceReward):
    """One for what differs from the wanted in exactly one symbol, minus infinity for all else: noise on data."""

    def values(self, said: Ints, wanted: Ints, symbols: Sequence[Hashable]) -> Array:
        """Count the symbols that differ."""
        return np.where((said != wanted).sum(axis=1) == 1, 1.0, -np.inf)

    def possible(self, wanted: Ints, symbols: Sequence[Hashable]) -> Ints:
        """Return the steps times (V - 1) neighbours."""
        size, steps = len(symbols), len(wanted)
        at, more = np.divmod(np.arange(steps * (size - 1)), max(size - 1, 1))
        found = np.repeat(wanted[None], len(at), axis=0)
        found[np.arange(len(at)), at] = (wanted[at] + 1 + more) % size
        return found


NAMED: dict[str, SequenceReward] = {
    "hamming": StepReward(), "exact": ExactReward(), "one-change": OneChangeReward()
}  # fmt: skip


def sequence_reward(given: Any) -> SequenceReward:
    """Return the reward that a word, a function of whole sequences or a reward itself stands for.

    Examples
    --------
    >>> sequence_reward("hamming")
    StepReward(worth='hamming')
    """
    if isinstance(given, SequenceReward):
        return given
    if isinstance(given, str) and given in NAMED:
        return NAMED[given]
    if callable(given):
        return WholeReward(given)
    known = ", ".join(map(repr, NAMED))
    raise InvalidArgument(
        f"reward= is {known}, a StepReward, or a function of the sequence that was said and the one that was wanted, not "
        f"{given!r:.60}"
    )


def _checked(values: Any, rule: str) -> Array:
    found = numbers(values, rule)
    if np.isnan(found).any() or (found == np.inf).any():
        raise InvalidArgument(f"{rule}, never NaN or plus infinity")
    return found
