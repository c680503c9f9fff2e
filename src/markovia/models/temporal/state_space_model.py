"""What models of hidden numbers behind numbers share: the questions about steps that are still to come.

A subclass filters (`_forecast`); Gaussian ones filter on over steps of which nothing is seen (`continued`).
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.errors import UnsupportedModel
from markovia.inference.sequences.forecast import Forecast
from markovia.inference.sequences.padded import PerSequence
from markovia.models.temporal.sequence_model import (
    CountedSequenceModel,
    GivenSequences,
    SequenceModel,
    inputs_of_steps,
)
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count, check_level
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class StateSpaceModel(SequenceModel):
    """A model of states that move, seen through observations; missing numbers are NaN."""

    _lists_draws: ClassVar[bool] = True

    @abstractmethod
    def _forecast(self, given: GivenSequences, steps: int, ahead: Array | None, level: float) -> Forecast:
        """Return what comes after sequences; `ahead` are the inputs of the steps."""

    @guided
    def forecast(
        self,
        sequences: Any,
        steps: int,
        lengths: Lengths = None,
        *,
        by: str | None = None,
        inputs: Any = None,
        future_inputs: Any = None,
        level: float = 0.95,
    ) -> Forecast:
        """Return what comes after each sequence.

        Parameters
        ----------
        sequences, lengths, by, inputs
            As in `log_prob`.
        steps
            How many steps ahead.
        future_inputs
            The inputs of those steps: one array for all sequences, where inputs drive the model.
        level
            The probability of the intervals.
        """
        check_count("steps", steps, 1)
        check_level("level", level)
        given, ahead = self._read(sequences, lengths, by, inputs), None
        if given.inputs is not None:
            ahead = inputs_of_steps("future_inputs", future_inputs, steps, given.inputs.shape[1])
        return self._forecast(given, steps, ahead, level).after(given.rows, steps)

    def _expected(self, given: GivenSequences) -> PerSequence:
        """Return the mean of each step given those before."""
        raise UnsupportedModel(
            "each step given those before is not kept here; forecast() after the steps before has its law"
        )

    @guided
    def predict(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> PerSequence:
        """Return what each step was expected to be given those before: one array (steps, numbers) a sequence.

        `forecast` says what comes after the last step, `smooth` what is known of states from the whole.

        Examples
        --------
        >>> from markovia import ARIMA
        >>> ARIMA((1, 0, 0), params=[0.5, 1.0]).predict([2.0, 4.0, 1.0])[0][:, 0].tolist()
        [0.0, 1.0, 2.0]
        """
        return self._expected(self._read(sequences, lengths, by, inputs))

    @guided
    def plot(
        self, sequences: Any, steps: int = 12, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None,
        future_inputs: Any = None, level: float = 0.95, sequence: int = 0, last: int | None = None,
        ax: "Axes | None" = None, title: str | None = None,
    ) -> Any:  # fmt: skip
        """Draw a sequence and the forecast of some steps after it; see `markovia.plotting.plot_forecast`."""
        ahead = self.forecast(
            sequences, steps, lengths, by=by, inputs=inputs, future_inputs=future_inputs, level=level
        )
        seen = self._read(sequences, lengths, by).rows
        numbers = seen.split(seen.numbers())
        return ahead.plot(numbers, sequence=sequence, last=last, ax=ax, title=title)


class CountedStateSpace(CountedSequenceModel):
    """A state space whose matrices are learned: criteria count the free entries of matrices, and the numbers observed."""

    def _counted(self, rows: Sequences) -> int:
        return int(np.isfinite(rows.numbers()).sum())

    def _facts(self) -> dict[str, Any]:
        known = vars(self)
        history, seen = known.get("log_likelihoods_"), known.get("n_seen_")
        facts: dict[str, Any] = {"numbers": seen}
        if history is not None:
            facts["log likelihood"] = best = float(max(history))
            if seen:
                free = facts["free parameters"] = self.n_free
                facts |= {"AIC": 2.0 * (free - best), "BIC": free * float(np.log(seen)) - 2.0 * best}
        return facts | super()._facts()


def entries_of(name: str, free: Any) -> int:
    """Return how many numbers are free in a matrix, of which `free` marks the entries; a covariance counts its triangle."""
    marked = np.asarray(free, dtype=bool)
    return int(np.tril(marked).sum() if name.endswith("_cov") else marked.sum())


def continued(given: GivenSequences, steps: int, ahead: Array | None) -> GivenSequences:
    """Return sequences with steps after each of which nothing is seen but their inputs."""
    rows, unseen = given.rows, np.full((steps, given.rows.values.shape[1]), np.nan)
    offsets = rows.offsets + steps * np.arange(len(rows.offsets))

    def longer(values: Array, more: Array) -> Array:
        return np.concatenate([np.concatenate([part, more]) for part in rows.split(values)])

    inputs = None if given.inputs is None or ahead is None else longer(given.inputs, ahead)
    values = longer(rows.numbers(), unseen)
    return GivenSequences(Sequences(values, offsets, rows.names, rows.columns, rows.single), inputs)
