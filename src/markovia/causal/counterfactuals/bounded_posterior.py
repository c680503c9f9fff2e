"""An answer that the model does not determine: the least and the greatest probability it can be."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from markovia.errors import InvalidArgument, Unanswered, UnknownVariable
from markovia.factors.tables.variable import State, Variable
from markovia.inference.posterior_questions import PosteriorQuestions, state_numbers, states_meant
from markovia.inference.result import Info
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.shown import aligned, html_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class BoundedNumbers:
    """Numbers whose probabilities lie between bounds; every answer is a pair, the least and the greatest it can be.

    Any distribution between the bounds is allowed for, also those that no model has: the pairs always hold, and need not
    be sharp where the bounds are.
    """

    values: Array
    lower: Array
    upper: Array

    def mean(self) -> Array:
        """Return the least and the greatest mean: what is free goes to the smallest, or to the largest numbers."""
        ends = []
        for order in (np.argsort(self.values), np.argsort(-self.values)):
            room = (self.upper - self.lower)[order]
            free = np.clip(1.0 - self.lower.sum() - np.cumsum(room) + room, 0.0, room)
            ends.append(float(self.values[order] @ (self.lower[order] + free)))
        return np.array(ends)

    def variance(self) -> NoReturn:
        """Raise: bounds of probabilities do not say which distributions lie between them."""
        raise Unanswered(_ONE_DISTRIBUTION.format("variance"))

    def cdf(self, x: Any) -> Array:
        """Return the least and the greatest probability of being at most x, along the first axis."""
        points = np.asarray(x, dtype=np.float64)
        found = [bounded_probability(self.lower, self.upper, self.values <= p) for p in points.ravel()]
        return np.array(found).T.reshape(2, *points.shape)

    def quantile(self, q: float) -> Array:
        """Return the least and the greatest number that the quantile can be."""
        ascending = np.unique(self.values)
        least, greatest = self.cdf(ascending)
        return np.array([ascending[np.argmax(up_to >= q - 1e-12)] for up_to in (greatest, least)])

    def shortest(self, prob: float) -> NoReturn:
        """Raise: the shortest interval is one of a distribution."""
        raise Unanswered(_ONE_DISTRIBUTION.format("shortest interval"))


_ONE_DISTRIBUTION = (
    "the model gives bounds of each probability and no one distribution, so it has no {}; ask for mean, cdf, quantile or "
    "probability, which come as a lower and an upper bound, or say mechanism= to have one distribution"
)


def bounded_probability(lower: Array, upper: Array, meant: Flags) -> tuple[float, float]:
    """Return the bounds of an event from those of its cells: what they allow, and what the other cells leave."""
    least = max(float(lower[meant].sum()), 1.0 - float(upper[~meant].sum()))
    greatest = min(float(upper[meant].sum()), 1.0 - float(lower[~meant].sum()))
    return min(max(least, 0.0), 1.0), min(max(greatest, 0.0), 1.0)


class BoundedPosterior(PosteriorQuestions):
    """Bounds on the probability of every state, with their provenance in `info`.

    Each pair bounds the probability of its own state (or tuple of states); all lower bounds together are in general not a
    distribution. It is asked what all posteriors are, and answers with the least and the greatest value there can be:
    `mean`, `quantile`, `median`, `interval`, `cdf`, `probability`, `log_prob`. What only one distribution has (a variance,
    draws) it refuses.

    Attributes
    ----------
    variables
        What was asked for.
    lower, upper
        Arrays with an axis a variable.
    sharp
        Whether every bound is attained by some model that agrees with everything known.
    info
        How they were found.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("drug", p=[0.5, 0.5])
    >>> bn.add("cured", parents=["drug"], p=[[0.7, 0.3], [0.4, 0.6]])
    >>> bounds = bn.counterfactual("cured", given={"drug": 0, "cured": 0}, do={"drug": 1})
    >>> print(bounds)
    cured   lower   upper
    0      0.1429  0.5714
    1      0.4286  0.8571
    >>> [round(p, 4) for p in bounds[1]]
    [0.4286, 0.8571]
    >>> bounds.mean().round(4).tolist(), bounds.median().tolist()
    ([0.4286, 0.8571], [0.0, 1.0])
    """

    __slots__ = ("info", "lower", "sharp", "upper", "variables")

    def __init__(
        self, variables: tuple[Variable, ...], lower: Array, upper: Array, info: Info, *, sharp: bool
    ) -> None:
        self.variables = variables
        self.lower, self.upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
        self.info = info
        self.sharp = sharp

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the variables in order."""
        return tuple(v.name for v in self.variables)

    def __getitem__(self, key: State | tuple[State, ...]) -> tuple[float, float]:
        """Return the bounds of a state, or of a tuple of states."""
        states = key if isinstance(key, tuple) else (key,)
        at = tuple(v.index(s) for v, s in zip(self.variables, states, strict=True))
        return float(self.lower[at]), float(self.upper[at])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_dict())

    def to_dict(self) -> dict[Any, tuple[float, float]]:
        """Return `{state: (lower, upper)}`, with tuples of states for several variables."""
        pairs = zip(self.lower.ravel().tolist(), self.upper.ravel().tolist(), strict=True)
        keys = product(*(v.states for v in self.variables))
        return {(k[0] if len(k) == 1 else k): pair for k, pair in zip(keys, pairs, strict=True)}

    def to_pandas(self) -> "pd.DataFrame":
        """Return a frame with columns `lower` and `upper`, indexed by the states."""
        import pandas as pd

        index = pd.MultiIndex.from_product([v.states for v in self.variables], names=self.names)
        flat = {"lower": self.lower.ravel(), "upper": self.upper.ravel()}
        return pd.DataFrame(flat, index.get_level_values(0) if len(self.variables) == 1 else index)

    # -- the questions of all posteriors -------------------------------------------------------------------------

    def _axis(self, name: str) -> int:
        if name not in self.names:
            raise UnknownVariable(name, self.names)
        return self.names.index(name)

    def _distribution(self, name: str, what: str) -> BoundedNumbers:
        axis = self._axis(name)
        variable = self.variables[axis]
        numbers = state_numbers(variable, what)
        each = [bounded_probability(self.lower, self.upper, self._meant({name: s})) for s in variable.states]
        return BoundedNumbers(numbers, *np.array(each).T)

    def _meant(self, event: Mapping[str, Any]) -> Flags:
        """Return for each cell whether an event holds in it."""
        meant = np.ones(self.lower.shape, dtype=bool)
        for name, said in event.items():
            axis = self._axis(name)
            own = states_meant(self.variables[axis], said)
            meant &= own.reshape([-1 if i == axis else 1 for i in range(meant.ndim)])
        return meant

    def _probability_of(self, event: Mapping[str, Any]) -> Array:
        return np.array(bounded_probability(self.lower, self.upper, self._meant(event)))

    def _probability_where(self, happened: Callable[..., bool], names: Sequence[str]) -> Any:
        axes = [self._axis(n) for n in names]
        cells = product(*(v.states for v in self.variables))
        meant = np.array([bool(happened(*(cell[a] for a in axes))) for cell in cells])
        return np.array(bounded_probability(self.lower, self.upper, meant.reshape(self.lower.shape)))

    def _covariance(self, names: Sequence[str]) -> NoReturn:
        raise Unanswered(_ONE_DISTRIBUTION.format("covariance"))

    def sample(self, n: int = 1, seed: Any = None) -> NoReturn:
        """Raise: there are draws of one distribution only."""
        raise Unanswered(_ONE_DISTRIBUTION.format("draws"))

    def log_prob(self, x: Any) -> tuple[float, float]:
        """Return the bounds of the log probability of a state, or of a mapping from every name to a state."""
        states = x if isinstance(x, Mapping) else {self._named(None): x}
        missing = next((n for n in self.names if n not in states), None)
        if missing is not None:
            raise InvalidArgument(f"a point of {list(self.names)} needs a state for {missing!r} too")
        with np.errstate(divide="ignore"):
            low, high = np.log(self[tuple(states[n] for n in self.names)])
        return float(low), float(high)

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        rows = []
        for key, (low, high) in self.to_dict().items():
            states = key if isinstance(key, tuple) else (key,)
            rows.append([*map(str, states), f"{low:.4g}", f"{high:.4g}"])
        return [*self.names, "lower", "upper"], rows

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw a bar from bound to bound for each state; see `markovia.plotting.plot_bounds`."""
        return ports.draw("plot-bounds", self, ax=ax, title=title)

    def __str__(self) -> str:
        header, rows = self._rows()
        return aligned(header, rows)

    def __repr__(self) -> str:
        return f"{self}\n[{self.info}]"

    def _repr_html_(self) -> str:
        return html_table(*self._rows(), note=str(self.info))
