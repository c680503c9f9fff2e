"""Answers as a user meets them: `Posterior` (a table that knows where it came from) and `Explanation`."""

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence
from itertools import islice, product
from math import exp, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.rendering import render_table, table_html
from markovia.factors.tables.variable import State, Variable
from markovia.inference.number_distributions import WeightedNumbers
from markovia.inference.posterior_questions import PosteriorQuestions, state_numbers, states_meant
from markovia.inference.result import Info
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_count
from markovia.runtime.libraries import pd
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import Share, html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Posterior(PosteriorQuestions):
    """A normalised distribution over one or several discrete variables, with its provenance in `info`.

    Index it by a state (`posterior["yes"]`), by a tuple in the order of `variables`, by a mapping, or call
    it with keywords; a mapping or keywords that name only some variables give their marginal probability. It is
    asked what all posteriors are: `mean`, `sd`, `interval`, `hdi`, `probability`, `sample`, ....

    Examples
    --------
    >>> p = Posterior(Factor([Variable("rain", ["no", "yes"])], [0.8, 0.2]), Info("enumeration", exact=True))
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

    @classmethod
    def of_draws(cls, name: str, draws: Ints, info: Info) -> "Posterior":
        """Return how often each whole number was drawn, as the posterior of a variable."""
        numbers, times = np.unique(draws, return_counts=True)
        return cls(Factor([Variable(name, numbers.tolist())], times / times.sum()), info)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
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

    def __iter__(self) -> Iterator[Any]:
        """Go through the states, or tuples of states for several variables, as `to_dict` lists them."""
        return iter(self.to_dict())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._factor.values, dtype=dtype, copy=copy)

    def keys(self) -> KeysView[Any]:
        """Return the states, or tuples of states for several variables."""
        return self.to_dict().keys()

    def items(self) -> ItemsView[Any, float]:
        """Return pairs of a state (or a tuple of states) and its probability; `values` is the array of the latter."""
        return self.to_dict().items()

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

    def _distribution(self, name: str, what: str) -> WeightedNumbers:
        variable = self.variables[self._factor.axis(name)]
        numbers = state_numbers(variable, what)
        return WeightedNumbers(numbers, self._factor.marginal(name).values)

    def _covariance(self, names: Sequence[str]) -> tuple[Array, list[tuple[int, ...]]]:
        numbers = [state_numbers(self.variables[self._factor.axis(n)], "covariance") for n in names]
        means = [float(self.mean(n)) for n in names]
        found = np.empty((len(names), len(names)))
        for i, a in enumerate(names):
            for j, b in enumerate(names[: i + 1]):
                gaps = numbers[i] - means[i], numbers[j] - means[j]
                if a == b:
                    found[i, j] = gaps[0] ** 2 @ self._factor.marginal(a).values
                else:
                    table = self._factor.marginal((a, b)).transpose((a, b)).values
                    found[i, j] = found[j, i] = gaps[0] @ table @ gaps[1]
        return found, [()] * len(names)

    def _probability_of(self, event: Mapping[str, Any]) -> float:
        values: Array = self._factor.values
        for name, said in event.items():
            axis = self._factor.axis(name)
            meant = states_meant(self.variables[axis], said)
            values = values * meant.reshape([-1 if i == axis else 1 for i in range(values.ndim)])
        return float(values.sum())

    def _probability_where(self, happened: Callable[..., bool], names: Sequence[str]) -> float:
        table = self._factor.marginal(names).transpose(names)
        states = product(*(v.states for v in table.variables))
        pairs = zip(table.values.ravel().tolist(), states, strict=True)
        return float(sum(p for p, row in pairs if p > 0.0 and bool(happened(*row))))

    def sample(self, n: int = 1, seed: Seed = None) -> dict[str, Any]:
        """Draw n times: by name, an array of states."""
        check_count("n", n)
        values = self._factor.values
        cells = generator(seed).choice(values.size, size=n, p=values.ravel() / values.sum())
        codes = np.unravel_index(cells, values.shape)
        return {v.name: _array_of(v.states)[c] for v, c in zip(self.variables, codes, strict=True)}

    def log_prob(self, x: Any) -> Any:
        """Return the log probability of a state, or of a mapping from every name to a state; of arrays, for each place."""
        given = x if isinstance(x, Mapping) or hasattr(x, "columns") else {self._named(None): x}
        missing = next((n for n in self.names if n not in given), None)
        if missing is not None:
            raise InvalidArgument(f"a point of {list(self.names)} needs a state for {missing!r} too")
        codes = []
        for v in self.variables:
            said = given[v.name]
            several = isinstance(said, list | tuple | np.ndarray) or hasattr(said, "to_numpy")
            codes.append(np.array([v.index(s) for s in said]) if several else v.index(said))
        with np.errstate(divide="ignore"):
            found = np.log(self._factor.values[tuple(codes)])
        return found if np.ndim(found) else float(found)

    def _positions(self, name: str, values: Any) -> Any:
        variable = self.variables[self._factor.axis(name)]
        return values if values.dtype.kind in "biuf" else np.array([variable.index(s) for s in values])

    def to_pandas(self) -> "pd.Series[float]":
        """Return the probabilities as a Series indexed by the states."""
        return self._factor.to_pandas().rename("p")

    def to_dict(self) -> dict[Any, float]:
        """Return `{state: p}`, or `{(state, ...): p}` for several variables."""
        return self._factor.to_dict()

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the probabilities as bars (or a heat map for two variables); see `markovia.plotting.plot_posterior`."""
        return ports.draw("plot-posterior", self, ax=ax, title=title)

    def allclose(self, other: "Posterior", *, atol: float = 1e-9) -> bool:
        """Say whether two posteriors agree up to the order of variables."""
        return self._factor.allclose(other._factor, rtol=0.0, atol=atol)

    def __str__(self) -> str:
        return render_table(self.variables, self._factor.values, "p")

    def __repr__(self) -> str:
        return f"{self}\n[{self.info}]"

    def _repr_html_(self) -> str:
        if len(self.variables) > 1:
            return table_html(self.variables, self._factor.values, "p", note=_note(self.info))
        rows = ((state, f"{p:.6g}", Share(p)) for state, p in self.items())
        return html_table([self.names[0], "p", ""], rows, note=_note(self.info))

    def _probability(self, states: Mapping[str, State]) -> float:
        for name in states:
            self._factor.axis(name)
        return self._factor.reduce(states).total

    def _only(self, what: str) -> Variable:
        if len(self.variables) != 1:
            raise InvalidArgument(f"{what} is for one variable; this posterior is over {list(self.names)}")
        return self.variables[0]


def _array_of(states: Sequence[State]) -> Any:
    """Return states as an array: of numbers where all are, else of what they are."""
    if all(isinstance(s, int) for s in states):
        return np.array(states)
    found = np.empty(len(states), dtype=object)
    found[:] = states
    return found


def _note(info: Info | None) -> str:
    if info is None:
        return ""
    return f"given {info.evidence()}; {info}" if info.given else str(info)


MOST_LINES, MOST_STATES = 60, 8


class Marginals(dict[str, Posterior]):
    """Posteriors by variable; prints one line a variable.

    Examples
    --------
    >>> import markovia as mk
    >>> found = mk.examples.sprinkler().marginals(given={"wet": "yes"})
    >>> print(found)
    cloudy     no 0.4242, yes 0.5758
    sprinkler  no 0.5702, yes 0.4298
    rain       no 0.2921, yes 0.7079
    >>> round(float(found.to_pandas()["rain", "yes"]), 4)
    0.7079
    """

    def to_pandas(self) -> "pd.Series[float]":
        """Return the probabilities indexed by (variable, state)."""
        pairs = [(name, state) for name, p in self.items() for state in p]
        index = pd.MultiIndex.from_tuples(pairs, names=["variable", "state"])
        return pd.Series(np.concatenate([np.zeros(0), *map(np.asarray, self.values())]), index, name="p")

    def plot(
        self,
        names: str | Sequence[str] | None = None,
        *,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> Any:
        """Draw each posterior in a panel of its own; see `markovia.plotting.plot_marginals`."""
        return ports.call("plot-marginals", self, names, ax=ax, title=title)

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        lines = [f"{name:<{width}}  {said}" for name, said in islice(self._lines(), MOST_LINES)]
        hidden = len(self) - len(lines)
        return "\n".join(lines + [f"... and {hidden:,} more variables"] * (hidden > 0))

    def __repr__(self) -> str:
        return f"{self}\n[{self._info()}]" if self else "Marginals()"

    def _repr_html_(self) -> str:
        return html_table(["variable", "p"], self._lines(), note=_note(self._info()))

    def _info(self) -> Info | None:
        return next((p.info for p in self.values()), None)

    def _lines(self) -> Iterator[tuple[str, str]]:
        for name, p in self.items():
            if not isinstance(p, Posterior):  # of a number
                yield name, p.line()
                continue
            said = [f"{state} {value:.4g}" for state, value in islice(p.items(), MOST_STATES)]
            yield name, ", ".join(said + ["..."] * (len(p) > MOST_STATES))


class RowMarginals(dict[str, "pd.DataFrame"]):
    """Posteriors for rows of evidence: by variable, a frame with one column a state."""

    def _repr_html_(self) -> str:
        frame = self.to_pandas()
        header = ["row", *(f"{name}={state}" for name, found in self.items() for state in found.columns)]
        rows = zip(frame.index, frame.to_numpy(), strict=True)
        return html_table(header, ([at, *(f"{p:.4g}" for p in row)] for at, row in rows))

    def to_pandas(self) -> "pd.DataFrame":
        """Return one frame with columns (variable, state)."""
        return pd.concat(dict(self), axis=1, names=["variable", "state"])


class Explanation(Mapping[str, State]):
    """A most probable assignment: a mapping from name to state.

    Attributes
    ----------
    log_prob
        log of the joint probability of the assignment and the evidence. For an undirected model whose normaliser is not
        known (the engine only searched for the best states) it is the log weight; then `normalised` is false.
    log_posterior
        log of the probability of the assignment given the evidence, or of its density where it has numbers; NaN where that
        is not known.
    log_weight
        log of the product of all tables at the assignment.
    bound
        An upper bound on `log_prob` over all assignments; equal to it where optimality is proved, infinite where
        nothing is known.
    normalised
        Whether `log_prob` is a probability's log.
    is_density
        Whether numbers are among what was found, so that it has a density instead of a probability.
    info
        How it was found.
    """

    __slots__ = (
        "_states",
        "bound",
        "info",
        "is_density",
        "log_posterior",
        "log_prob",
        "log_weight",
        "normalised",
    )

    def __init__(
        self,
        states: Mapping[str, State],
        log_prob: float,
        log_posterior: float,
        bound: float,
        info: Info,
        log_weight: float | None = None,
        normalised: bool = True,
        is_density: bool = False,
    ) -> None:
        self._states = dict(states)
        self.is_density = is_density
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

    def _repr_html_(self) -> str:
        return html_table(["variable", "state"], self._states.items(), note=f"{self._worth()}; {self.info}")

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self._states.items())
        return f"Explanation({inside}; {self._worth()})"

    def _worth(self) -> str:
        if isnan(self.log_posterior):
            return f"log weight {self.log_weight:.6g}, gap {self.gap:.3g}"
        if self.is_density:
            return f"log density {self.log_posterior:.6g} given the evidence"
        return f"p = {exp(self.log_posterior):.6g} given the evidence"
