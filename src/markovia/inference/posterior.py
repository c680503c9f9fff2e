"""Answers as a user meets them: `Posterior` (a table that knows where it came from) and `Explanation`."""

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from math import exp, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.rendering import render_table
from markovia.factors.tables.variable import State, Variable
from markovia.inference.result import Info
from markovia.runtime import ports
from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class Posterior:
    """A normalised distribution over one or several discrete variables, with its provenance in `info`.

    Index it by a state (`posterior["yes"]`), by a tuple in the order of `variables`, by a mapping, or call
    it with keywords; a mapping or keywords that name only some variables give their marginal probability.

    Examples
    --------
    >>> p = Posterior(Factor([Variable("rain", ["no", "yes"])], [0.8, 0.2]), Info("enumeration"))
    >>> p["yes"]
    0.2
    >>> print(p)
    rain    p
    no    0.8
    yes   0.2
    """

    __slots__ = ("_factor", "info")

    def __init__(self, factor: Factor, info: Info) -> None:
        self._factor = factor
        self.info = info

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables in order."""
        return self._factor.names

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables in order."""
        return self._factor.variables

    @property
    def values(self) -> Array:
        """The probabilities as a read-only array, one axis a variable."""
        values = self._factor.values.view()
        values.setflags(write=False)
        return values

    @property
    def states(self) -> tuple[State, ...]:
        """The states of the only variable."""
        return self._only("states").states

    def factor(self) -> Factor:
        """Return the table as a factor."""
        return self._factor

    def __getitem__(self, key: object) -> float:
        return self._probability(key) if isinstance(key, Mapping) else self._factor[key]

    def __call__(self, /, **states: State) -> float:
        """Return the probability of the named states, summing over variables that are not named."""
        return self._probability(states)

    def __len__(self) -> int:
        return self._factor.size

    def marginal(self, names: str | Iterable[str]) -> "Posterior":
        """Return the distribution of some of the variables."""
        return Posterior(self._factor.marginal(names), self.info)

    def argmax(self) -> Any:
        """Return the most probable state, or a dict of states for several variables."""
        best = self._factor.argmax()
        return best if len(self.variables) > 1 else best[self.names[0]]

    def entropy(self, *, base: float | None = None) -> float:
        """Return the Shannon entropy in nats, or in units of `log(base)`."""
        return self._factor.entropy(base=base)

    def mean(self) -> float:
        """Return the mean of the only variable, whose states must be numbers."""
        return float(np.dot(self._numbers(), self._factor.values))

    def var(self) -> float:
        """Return the variance of the only variable, whose states must be numbers."""
        numbers = self._numbers()
        return float(np.dot((numbers - self.mean()) ** 2, self._factor.values))

    def to_pandas(self) -> "pd.Series[float]":
        """Return the probabilities as a Series indexed by the states."""
        return self._factor.to_pandas().rename("p")

    def to_dict(self) -> dict[Any, float]:
        """Return `{state: p}`, or `{(state, ...): p}` for several variables."""
        return self._factor.to_dict()

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the probabilities as bars (or a heat map for two variables); see `markovia.plotting.plot_posterior`."""
        drawn: Axes = ports.call("plot-posterior", self, ax=ax, title=title)
        return drawn

    def allclose(self, other: "Posterior", *, atol: float = 1e-9) -> bool:
        """Say whether two posteriors agree up to the order of variables."""
        return self._factor.allclose(other._factor, rtol=0.0, atol=atol)

    def __str__(self) -> str:
        return render_table(self.variables, self._factor.values, "p")

    def __repr__(self) -> str:
        return f"{self}\n[{self.info}]"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(n)}</th>" for n in (*self.names, "p"))
        rows = []
        for index, _ in zip(np.ndindex(*self._factor.shape), range(200), strict=False):
            cells = [str(v.states[i]) for v, i in zip(self.variables, index, strict=True)]
            cells.append(f"{self._factor.values[index]:.6g}")
            rows.append("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>")
        body = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        return f"{body}<small>{escape(str(self.info))}</small>"

    def _probability(self, states: Mapping[str, State]) -> float:
        for name in states:
            self._factor.axis(name)
        return self._factor.reduce(states).total

    def _only(self, what: str) -> Variable:
        if len(self.variables) != 1:
            raise InvalidArgument(f"{what} is for one variable; this posterior is over {list(self.names)}")
        return self.variables[0]

    def _numbers(self) -> Array:
        variable = self._only("the mean")
        if any(isinstance(s, str) for s in variable.states):
            raise InvalidArgument(f"the states of {variable.name!r} are not numbers, so it has no mean")
        return np.array([float(s) for s in variable.states])


class Explanation(Mapping[str, State]):
    """A most probable assignment: a mapping from name to state.

    Attributes
    ----------
    log_prob
        log of the joint probability of the assignment and the evidence. For an undirected model whose normaliser is not
        known (the engine only searched for the best states) it is the log weight; then `normalised` is false.
    log_posterior
        log of the probability of the assignment given the evidence; NaN where that is not known.
    log_weight
        log of the product of all tables at the assignment.
    bound
        An upper bound on `log_prob` over all assignments; equal to it where optimality is proved, infinite where
        nothing is known.
    normalised
        Whether `log_prob` is a probability's log.
    info
        How it was found.
    """

    __slots__ = ("_states", "bound", "info", "log_posterior", "log_prob", "log_weight", "normalised")

    def __init__(
        self,
        states: Mapping[str, State],
        log_prob: float,
        log_posterior: float,
        bound: float,
        info: Info,
        log_weight: float | None = None,
        normalised: bool = True,
    ) -> None:
        self._states = dict(states)
        self.log_prob = log_prob
        self.log_posterior = log_posterior
        self.bound = bound
        self.info = info
        self.log_weight = log_prob if log_weight is None else log_weight
        self.normalised = normalised

    @property
    def gap(self) -> float:
        """How far the assignment could be from the best: `bound - log_prob`, zero when proved best."""
        return self.bound - self.log_prob

    def __getitem__(self, name: str) -> State:
        return self._states[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def to_dict(self) -> dict[str, State]:
        """Return a plain dict from name to state."""
        return dict(self._states)

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self._states.items())
        if isnan(self.log_posterior):
            return f"Explanation({inside}; log weight {self.log_weight:.6g}, gap {self.gap:.3g})"
        return f"Explanation({inside}; p = {exp(self.log_posterior):.6g} given the evidence)"
