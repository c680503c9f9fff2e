"""What models of hidden numbers behind numbers share: the questions about steps that are still to come.

A subclass filters (`_forecast`); Gaussian ones filter on over steps of which nothing is seen (`continued`).
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.inference.sequences.forecast import Forecast
from markovia.models.temporal.sequence_model import GivenSequences, SequenceModel, inputs_of_steps
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count, check_level
from markovia.runtime.keyword_advice import guided


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
        return replace(self._forecast(given, steps, ahead, level), dates=given.rows.dates_ahead(steps))


def continued(given: GivenSequences, steps: int, ahead: Array | None) -> GivenSequences:
    """Return sequences with steps after each of which nothing is seen but their inputs."""
    rows, unseen = given.rows, np.full((steps, given.rows.values.shape[1]), np.nan)
    offsets = rows.offsets + steps * np.arange(len(rows.offsets))

    def longer(values: Array, more: Array) -> Array:
        return np.concatenate([np.concatenate([part, more]) for part in rows.split(values)])

    inputs = None if given.inputs is None or ahead is None else longer(given.inputs, ahead)
    values = longer(rows.numbers(), unseen)
    return GivenSequences(Sequences(values, offsets, rows.names, rows.columns, rows.single), inputs)
