"""What every model of sequences shares: the forms its data comes in, and the verbs that follow from the law of a sequence.

A subclass says its mathematics on data that is read: `_log_prob` of each sequence, `_draw` of new ones, and `n_free` where
parameters are counted. `lengths=`, lists, frames with ids and dates, sequences that were read before and known inputs are
read here, for all of them.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences, read_inputs, read_sequences
from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.sequences.series_summary import SeriesSummary
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Whole, check, numbers
from markovia.runtime.keyword_advice import guided
from markovia.runtime.ports import Savable
from markovia.runtime.seeds import Seed


class GivenSequences(NamedTuple):
    """Sequences as a model is given them: their steps, and the known inputs of all steps, a row each, if there are some."""

    rows: Sequences
    inputs: Array | None = None


class SequenceModel(Savable):
    """A law of sequences.

    Verbs take sequences as `read_sequences` does: a list of arrays, one array (with `lengths` for several), a frame (with
    `by` for several), or `Sequences` that were read before.
    """

    _takes_inputs: ClassVar[bool] = True
    """Whether known inputs may drive the model."""
    _lists_draws: ClassVar[bool] = False
    """Whether `sample` returns lists also where one sequence is drawn."""

    def _log_prob(self, given: GivenSequences) -> Array:
        """Return log p(x) of each sequence."""
        raise NotImplementedError

    def _draw(self, steps: int, n: int, inputs: Any, seed: Seed) -> tuple[list[Any], ...]:
        """Return lists of n drawn sequences, and of what is hidden behind each."""
        raise NotImplementedError

    def _values(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the model's values, arrays or numbers by name, and the standard errors of those that have some."""
        learned = {n: x for n, x in vars(self).items() if n[0] != "_" and n.endswith("_") and n != "history_"}
        learned |= {
            f"{n[:-1]}{i}_": x
            for n, some in learned.items()
            if isinstance(some, tuple)
            for i, x in enumerate(some)
        }
        arrays = {n[:-1]: x for n, x in learned.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"}
        return arrays, {}

    def _facts(self) -> dict[str, Any]:
        """Return what is known of the model as a whole."""
        known = vars(self)
        return {"iterations": known.get("n_iter_"), "converged": known.get("converged_")}

    @guided
    def summary(
        self, sequences: Any = None, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> SeriesSummary:
        """Return what the model is, how well it fits, and its values with what is known about them.

        Standard errors, z and p-values are those of maximum likelihood, where learning finds them. Where `sequences` are
        given, log likelihood and criteria are those of them.

        Examples
        --------
        >>> from markovia import ARIMA
        >>> found = ARIMA((1, 0, 0)).fit([1.0, 0.5, 0.7, -0.2, 0.1, 0.4, -0.6, -0.1]).summary()
        >>> sorted(found.facts), list(found.values)
        (['AIC', 'BIC', 'converged', 'iterations', 'log likelihood', 'numbers'], ['ar1', 'variance'])
        """
        values, errors = self._values()
        facts = self._facts()
        if sequences is not None:
            given = self._read(sequences, lengths, by, inputs)
            facts = {**facts, **self._criteria(given)}
        return SeriesSummary.of(repr(self), facts, values, errors)

    def _criteria(self, given: GivenSequences) -> dict[str, Any]:
        """Return how well the model fits some sequences."""
        return {"steps": len(given.rows.values), "log likelihood": float(self._log_prob(given).sum())}

    def __str__(self) -> str:
        # a fitted model says what it learned
        return str(self.summary()) if "n_iter_" in vars(self) else repr(self)

    def _read(self, sequences: Any, lengths: Lengths, by: str | None, inputs: Any = None) -> GivenSequences:
        rows = read_sequences(sequences, lengths, by=by)
        if inputs is None:
            return GivenSequences(rows)
        if not self._takes_inputs:
            raise InvalidArgument("no inputs drive this model, so inputs= says nothing to it")
        return GivenSequences(rows, read_inputs(inputs, rows, by=by))

    @guided
    def log_prob(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> Array:
        """Return log p(x) of each sequence; minus infinity for an impossible one."""
        return self._log_prob(self._read(sequences, lengths, by, inputs))

    @guided
    def score(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> float:
        """Return log p(x) of all sequences together: a total, as in hmmlearn; `log_prob` has that of each sequence."""
        return float(self._log_prob(self._read(sequences, lengths, by, inputs)).sum())

    @guided
    def sample(self, steps: int = 1, n: int | None = None, *, inputs: Any = None, seed: Seed = None) -> Any:
        """Draw a sequence, with what is hidden behind it; lists of n of both where `n` is given.

        Parameters
        ----------
        steps
            How many steps each has.
        n
            How many sequences.
        inputs
            The known inputs of the steps, a row each, where some drive the model.
        seed
            For the same draws again.
        """
        check("steps", steps, Whole(1))
        check("n", n, Whole(1, none=True))
        drawn = self._draw(steps, 1 if n is None else n, inputs, seed)
        found = drawn if n is not None or self._lists_draws else tuple(one[0] for one in drawn)
        return found if len(found) > 1 else found[0]

    def stream(self) -> Any:
        """Return a filter that takes one observation at a time, where the law of the present state is all that counts."""
        raise UnsupportedModel(
            f"a {type(self).__name__} is asked about whole sequences and has no stream; "
            f"{'filter' if hasattr(self, 'filter') else 'log_prob'}() of all steps so far answers"
        )


class CountedSequenceModel(SequenceModel):
    """A law of sequences whose free parameters are counted."""

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        raise NotImplementedError

    @guided
    def bic(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> float:
        """Return the Bayesian information criterion on sequences, which counts steps; smaller is better."""
        given = self._read(sequences, lengths, by, inputs)
        return self.n_free * float(np.log(self._counted(given.rows))) - 2.0 * float(
            self._log_prob(given).sum()
        )

    @guided
    def aic(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> float:
        """Return Akaike's information criterion on sequences; smaller is better."""
        return 2.0 * self.n_free - 2.0 * self.score(sequences, lengths, by=by, inputs=inputs)

    def _criteria(self, given: GivenSequences) -> dict[str, Any]:
        found = super()._criteria(given)
        free, twice = self.n_free, 2.0 * found["log likelihood"]
        return {
            **found, "free parameters": free, "AIC": 2.0 * free - twice,
            "BIC": free * float(np.log(self._counted(given.rows))) - twice,
        }  # fmt: skip

    def _counted(self, rows: Sequences) -> int:
        """Return how many observations sequences are."""
        return len(rows.values)


def inputs_of_steps(name: str, inputs: Any, steps: int, width: int | None = None) -> Array:
    """Return the inputs of steps to come, (steps, inputs); one number a step where there is one input.

    Raises
    ------
    InvalidArgument
        Unless they are finite numbers, a row for each step and a column for each input.
    """
    found = numbers(inputs, f"{name}= are numbers, a row for each step")
    found = found[:, None] if found.ndim == 1 else found
    wanted = found.shape[-1] if width is None else width
    if found.ndim != 2 or found.shape != (steps, wanted) or not np.isfinite(found).all():
        columns = "a column an input" if width is None else f"{width} columns, one an input"
        raise InvalidArgument(f"{name}= has one row a step, {steps}, and {columns}, all finite")
    return found
