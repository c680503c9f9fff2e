"""Answers about every step of some sequences of a dynamic network."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable, UnsupportedModel
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info
from markovia.inference.sequences.forecast import Forecast, GaussianSteps, StateSteps, StepLaws
from markovia.inference.sequences.padded import PerSequence
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_count
from markovia.runtime.libraries import pd
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Paths = Callable[[int, np.random.Generator], list[dict[str, Any]]]
"""Draws whole paths: for each sequence, by name, an array (draws, steps)."""


class Beliefs(Mapping[str, list[Array]], InNotebooks):
    """Distributions of variables at every step: `beliefs["rain"]` is a list of arrays (steps, states), one a sequence.

    Attributes
    ----------
    log_prob
        The log probability of what was seen, one number a sequence.
    info
        How the answer was found; of an approximate one, `info.error` is the largest difference from the exact
        probabilities that was found on a window of steps.
    mean, var
        For variables that are numbers, by name: lists of arrays, one a sequence.
    dates
        Of a forecast, the dates of its steps, where the data had dates at equal distances.
    """

    def __init__(
        self,
        variables: Mapping[str, Variable],
        steps: Mapping[str, Array],
        offsets: Ints,
        log_prob: Array,
        info: Info,
        mean: Mapping[str, Array] | None = None,
        var: Mapping[str, Array] | None = None,
    ) -> None:
        self._variables, self._steps, self._offsets = dict(variables), dict(steps), offsets
        self.log_prob, self.info = log_prob, info
        self.mean = {n: PerSequence.of(x, offsets) for n, x in (mean or {}).items()}
        self.var = {n: PerSequence.of(x, offsets) for n, x in (var or {}).items()}
        self.dates: list[Any] | None = None
        self._paths: Paths | None = None

    def rows(
        self, kept: Ints, steps: int, dates: list[Any] | None = None, paths: Paths | None = None
    ) -> "Beliefs":
        """Return only some rows, `steps` of them for each sequence, which may have dates, and be drawn together."""
        offsets = steps * np.arange(len(self._offsets))
        mean = {n: np.concatenate(x)[kept] for n, x in self.mean.items()}
        var = {n: np.concatenate(x)[kept] for n, x in self.var.items()}
        found = {n: rows[kept] for n, rows in self._steps.items()}
        some = Beliefs(self._variables, found, offsets, self.log_prob, self.info, mean, var)
        some.dates, some._paths = dates, paths
        return some

    def __getitem__(self, name: str) -> list[Array]:
        if name in self.mean:
            raise InvalidArgument(f"{name!r} is a number; take mean[{name!r}] and var[{name!r}]")
        if name not in self._steps:
            raise UnknownVariable(name, [*self._steps], "the answer")
        return PerSequence.of(self._steps[name], self._offsets)

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    def states(self, name: str) -> list[Any]:
        """Return the states of a variable, in the order of its columns."""
        self[name]
        return list(self._variables[name].states)

    def at(self, step: int, sequence: int = 0) -> dict[str, Posterior]:
        """Return the distributions at one step of one sequence; -1 is the last step."""
        length = int(self._offsets[sequence + 1] - self._offsets[sequence])
        if not -length <= step < length:
            raise InvalidArgument(f"sequence {sequence} has steps 0 to {length - 1}, and no step {step}")
        return {
            n: Posterior(Factor.of((self._variables[n],), self[n][sequence][step].copy()), self.info)
            for n in self
        }

    def frame(self, sequence: int = 0) -> "pd.DataFrame":
        """Return one sequence as a DataFrame: one row a step, a column for each variable and state."""
        parts = {(n, state): self[n][sequence][:, i] for n in self for i, state in enumerate(self.states(n))}
        for n in self.mean:
            parts[n, "mean"] = self.mean[n][sequence]
            parts[n, "sd"] = np.sqrt(self.var[n][sequence])
        return pd.DataFrame(parts)

    def sample(self, n: int = 1_000, *, seed: Seed = None) -> list[dict[str, Any]]:
        """Draw the steps of a forecast, all variables and steps together: for each sequence, by name, an array (n, steps).

        Examples
        --------
        >>> import markovia as mk
        >>> rain = mk.DynamicBayesianNetwork()
        >>> rain.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.9, 0.1], [0.1, 0.9]], initial=[0.5, 0.5])
        >>> (paths,) = rain.forecast({"rain": ["yes"]}, 2).sample(2000, seed=0)
        >>> float((paths["rain"] == "yes").all(axis=1).mean().round(2))  # 0.9 * 0.9
        0.81
        """
        if self._paths is None:
            raise UnsupportedModel(
                "paths are drawn of a forecast(); of steps that were seen, decode() finds the best one"
            )
        check_count("n", n, 1)
        return self._paths(n, generator(seed))

    def _paths_of(self, name: str, n: int, rng: np.random.Generator) -> list[Any]:
        assert self._paths is not None
        drawn = [one[name] for one in self._paths(n, rng)]
        return [x[..., None] for x in drawn] if name in self.mean else drawn

    def forecast(self, name: str) -> Forecast:
        """Return one variable as a `Forecast`: means (probabilities of states), intervals, quantiles, a table, a picture.

        A variable that is a number is taken for Gaussian, with its mean and variance.
        """
        offsets = self._offsets.tolist()
        paths = None if self._paths is None else partial(self._paths_of, name)
        if name in self.mean:
            pairs = zip(self.mean[name], self.var[name], strict=True)
            laws: list[StepLaws] = [GaussianSteps.of(m[:, None], v[:, None, None]) for m, v in pairs]
            return Forecast(laws, dates=self.dates, names=(name,), paths=paths)
        states = self.states(name)
        return Forecast(
            [StateSteps(self._steps[name][a:b], states) for a, b in pairwise(offsets)],
            dates=self.dates,
            paths=paths,
        )

    def to_pandas(self) -> "pd.DataFrame":
        """Return a row for each variable, sequence, step (from 1) and state or number: its mean and its 95% interval.

        Rows of a forecast are indexed by the dates of their steps, where the data had dates.
        """
        parts = {n: self.forecast(n).to_pandas() for n in [*self, *self.mean]}
        for name, part in parts.items():
            part.insert(0, "variable", name)
        return pd.concat([*parts.values()], ignore_index=self.dates is None)

    def plot(
        self,
        names: str | Sequence[str] | None = None,
        *,
        sequence: int = 0,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> Any:
        """Draw the distributions over the steps; see `markovia.plotting.plot_beliefs`."""
        return ports.call("plot-beliefs", self, names, sequence=sequence, ax=ax, title=title)

    def __repr__(self) -> str:
        named = ", ".join([*self, *self.mean])
        return f"Beliefs({named}; {len(self._offsets) - 1} sequences, {int(self._offsets[-1]):,} steps; {self.info})"


class BestPaths(Sequence["pd.DataFrame"]):
    """The most probable explanation of each sequence: a list of frames, one row a step, one column a variable.

    Attributes
    ----------
    log_prob
        The log probability of each explanation together with what was seen.
    gap
        How much larger that of another explanation can be: zero where it is proved to be a best one.
    info
        How it was found.
    """

    def __init__(
        self,
        variables: Mapping[str, Variable],
        paths: Mapping[str, Ints],
        offsets: Ints,
        log_prob: Array,
        info: Info,
        gap: Array | None = None,
    ) -> None:
        self._variables, self._paths, self._offsets = dict(variables), dict(paths), offsets
        self.log_prob, self.info = log_prob, info
        self.gap = np.zeros_like(log_prob) if gap is None else gap

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, sequence: Any) -> Any:
        if isinstance(sequence, slice):
            return [self[i] for i in range(len(self))[sequence]]
        if not -len(self) <= sequence < len(self):
            raise IndexError(f"there are {len(self)} sequences, and no sequence {sequence}")
        a, b = self._offsets[sequence % len(self)], self._offsets[sequence % len(self) + 1]
        columns = {}
        for name, codes in self._paths.items():
            states = np.empty(len(self._variables[name]), dtype=object)
            states[:] = self._variables[name].states
            columns[name] = states[codes[a:b]]
        return pd.DataFrame(columns).infer_objects()

    def __repr__(self) -> str:
        return f"BestPaths({len(self)} sequences; log p {np.round(self.log_prob, 4).tolist()}; {self.info})"
