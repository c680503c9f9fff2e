"""Discrete latent variables that were summed out, recovered for each draw of the others."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, Unanswered, check_known
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import State, Variable
from markovia.inference.number_distributions import WeightedNumbers
from markovia.inference.posterior import Marginals, Posterior
from markovia.inference.posterior_questions import (
    PosteriorQuestions,
    check_element,
    element_name,
    element_of,
    state_numbers,
    states_meant,
)
from markovia.inference.result import Info
from markovia.runtime.array_types import Array, Codes
from markovia.runtime.libraries import pd
from markovia.runtime.seeds import Seed
from markovia.runtime.shown import aligned, html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 20


@dataclass(frozen=True, eq=False)
class StateDraws:
    """A discrete latent variable, given each draw of the continuous ones.

    Attributes
    ----------
    variable
        The variable.
    probabilities
        The exact probabilities of its states given each draw: chains, draws, plates, states.
    codes
        Its state in a joint draw together with all other discrete latent variables: chains, draws, plates.
    """

    variable: Variable
    probabilities: Array
    codes: Codes

    def posterior(self, info: Info, weights: Array | None = None) -> "Posterior | PlatedPosterior":
        """Return its posterior: the average over draws, which weigh alike unless `weights` (chains, draws) are given."""
        rows = self.probabilities.reshape(-1, *self.probabilities.shape[2:])
        mean = np.average(rows, axis=0, weights=None if weights is None else weights.ravel())
        if mean.ndim == 1:
            return Posterior(Factor.of((self.variable,), mean / mean.sum()), info)
        return PlatedPosterior(self.variable, mean, info)


class LateStates(Mapping[str, StateDraws]):
    """Discrete variables by name, recovered when the first of them is looked at: that takes a compilation of its own."""

    def __init__(self, names: Iterable[str], recover: Callable[[], Mapping[str, StateDraws]]) -> None:
        self._names, self._recover = tuple(names), recover

    @cached_property
    def _found(self) -> Mapping[str, StateDraws]:
        return self._recover()

    def __getitem__(self, name: str) -> StateDraws:
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class PlatedPosterior(PosteriorQuestions):
    """Posteriors of a discrete variable on plates: one distribution over its states for each element.

    Examples
    --------
    >>> z = Variable("z", ["a", "b"])
    >>> post = PlatedPosterior(z, np.array([[0.9, 0.1], [0.2, 0.8]]), Info("nuts"))
    >>> post.argmax().tolist(), float(post[1]["b"])
    (['a', 'b'], 0.8)
    """

    def __init__(self, variable: Variable, probabilities: Array, info: Info) -> None:
        self.variable, self.probabilities, self.info = variable, probabilities, info

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The name of the variable."""
        return (self.variable.name,)

    @property
    def states(self) -> tuple[State, ...]:
        """The states, in the order of the last axis of `probabilities`."""
        return self.variable.states

    def __getitem__(self, element: str | int | tuple[int, ...]) -> Posterior:
        """Return the posterior of one element: by its place, or as it is printed (`post["z[0]"]`)."""
        at = self._place(element) if isinstance(element, str) else element
        if at == ():
            raise InvalidArgument(f"name one element, such as {element_name(self.names[0], self._first())!r}")
        return Posterior(Factor.of((self.variable,), self.probabilities[at]), self.info)

    def _first(self) -> tuple[int, ...]:
        return (0,) * (self.probabilities.ndim - 1)

    def _place(self, name: str) -> tuple[int, ...]:
        """Return the place of an element from its printed name; nothing for all of them."""
        quantity, at = element_of(name, self.names)
        check_known([quantity], self.names, "the posterior")
        check_element(quantity, at, self.probabilities.shape[:-1])
        return at

    def _distribution(self, name: str, what: str) -> WeightedNumbers:
        weights = np.moveaxis(self.probabilities[self._place(name)], -1, 0)
        numbers = state_numbers(self.variable, what)
        return WeightedNumbers(numbers.reshape(-1, *(1,) * (weights.ndim - 1)), weights)

    def _probability_of(self, event: Mapping[str, Any]) -> Any:
        if len(event) != 1:
            raise self._apart("a probability of several elements")
        ((name, said),) = event.items()
        return self.probabilities[self._place(name)] @ states_meant(self.variable, said)

    def _probability_where(self, happened: Callable[..., bool], names: Sequence[str]) -> Any:
        check_known(names, self.names, "the posterior")
        return self.probabilities @ np.array([bool(happened(s)) for s in self.states])

    def _covariance(self, names: Sequence[str]) -> tuple[Array, list[tuple[int, ...]]]:
        raise self._apart("a covariance of its elements")

    def sample(self, n: int = 1, seed: Seed = None) -> dict[str, Any]:
        """Say where draws of all elements together are had: this is the distribution of each by itself."""
        raise self._apart("draws of its elements together")

    def log_prob(self, x: Any) -> Any:
        """Say that the elements together are not known here."""
        raise self._apart("a probability of its elements together")

    def _apart(self, what: str) -> Unanswered:
        return Unanswered(
            f"{self.names[0]!r} holds the distribution of each element by itself, not {what}; "
            f"ask for one, such as post[{element_name(self.names[0], self._first())!r}], or model.sample(n, given=...)"
        )

    def to_pandas(self) -> "pd.DataFrame":
        """Return the probabilities: one row an element, one column a state."""
        places = list(np.ndindex(*self.probabilities.shape[:-1]))
        index = pd.Index([element_name(self.names[0], at) for at in places], name="element")
        return pd.DataFrame(self.probabilities.reshape(len(places), -1), index, columns=list(self.states))

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> Any:
        """Draw the posterior of each element in a panel of its own; see `markovia.plotting.plot_marginals`."""
        places = np.ndindex(*self.probabilities.shape[:-1])
        panels = Marginals({element_name(self.names[0], at): self[at] for at in places})
        return panels.plot(ax=ax, title=title)

    def __len__(self) -> int:
        return len(self.probabilities)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        return np.array(self.probabilities, dtype=dtype, copy=copy)  # type: ignore[call-overload, no-any-return]

    def line(self) -> str:
        """Return the posteriors in a few words, for a list of many."""
        share = self.probabilities.reshape(-1, len(self.states)).mean(axis=0)
        return (
            ", ".join(f"{state} {p:.4g}" for state, p in zip(self.states, share, strict=True)) + " on average"
        )

    def argmax(self) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
        """Return the most probable state of each element."""
        found: np.ndarray[tuple[int, ...], np.dtype[np.object_]]
        found = np.array(self.states, dtype=object)[self.probabilities.argmax(axis=-1)]
        return found

    def _rows(self) -> list[list[str]]:
        flat = self.probabilities.reshape(-1, len(self.states))[:SHOWN]
        places = np.ndindex(*self.probabilities.shape[:-1])
        return [
            [element_name(self.variable.name, at), *(f"{p:.4g}" for p in row)]
            for at, row in zip(places, flat, strict=False)
        ]

    def __str__(self) -> str:
        hidden = int(np.prod(self.probabilities.shape[:-1])) - SHOWN
        table = aligned(["element", *map(str, self.states)], self._rows())
        return table + (f"\n... and {hidden:,} more" if hidden > 0 else "")

    def __repr__(self) -> str:
        return f"{self}\n[{self.info}]"

    def _repr_html_(self) -> str:
        return html_table(["element", *map(str, self.states)], self._rows(), note=str(self.info))
