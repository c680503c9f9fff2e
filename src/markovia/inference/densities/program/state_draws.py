"""Discrete latent variables that were summed out, recovered for each draw of the others."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import State, Variable
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info
from markovia.runtime.array_types import Array, Codes
from markovia.runtime.shown import aligned, html_table

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


class PlatedPosterior:
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
    def names(self) -> tuple[str, ...]:
        """The name of the variable."""
        return (self.variable.name,)

    @property
    def states(self) -> tuple[State, ...]:
        """The states, in the order of the last axis of `probabilities`."""
        return self.variable.states

    def __getitem__(self, element: int | tuple[int, ...]) -> Posterior:
        """Return the posterior of one element."""
        return Posterior(Factor.of((self.variable,), self.probabilities[element]), self.info)

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
            [f"{self.variable.name}[{','.join(map(str, at))}]", *(f"{p:.4g}" for p in row)]
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
