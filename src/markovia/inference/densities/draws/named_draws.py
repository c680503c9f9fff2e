"""Draws of quantities under the names that are printed, and what they say of moments, quantiles, events and densities.

Weighted draws (importance sampling) count by their weights; `draws` has them resampled. Discrete variables that were summed
out count with their exact probabilities given each draw (Rao-Blackwell).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, did_you_mean
from markovia.factors.tables.variable import Variable
from markovia.inference.densities.program.draw_stats import DrawStats
from markovia.inference.densities.program.state_draws import StateDraws
from markovia.inference.number_distributions import NumberDistribution, WeightedNumbers
from markovia.inference.posterior_questions import (
    PosteriorQuestions,
    check_element,
    element_name,
    element_of,
    numbers_meant,
    states_meant,
)
from markovia.inference.result import Info
from markovia.inference.weighted_draws.resampling import resample
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator


class NamedDraws(PosteriorQuestions):
    """Draws of numbers and of states, chains and draws first; see `DrawnPosterior`, which shows and keeps them."""

    def __init__(
        self,
        names: Sequence[str],
        draws: Mapping[str, Array | StateDraws],
        info: Info,
        *,
        stats: DrawStats | None = None,
        log_weights: Array | None = None,
        pointwise: Callable[[], Mapping[str, Array]] | None = None,
        program: Any = None,
        states: Mapping[str, StateDraws] | None = None,
    ) -> None:
        self.program = program
        self.names = tuple(names)
        self.info = info
        self.stats = stats
        self._numbers = {n: v for n, v in draws.items() if isinstance(v, np.ndarray)}
        own = {n: v for n, v in draws.items() if isinstance(v, StateDraws)}
        self._states: Mapping[str, StateDraws] = own if states is None else states
        self._pointwise = pointwise
        self._kept: dict[str, Any] = {}
        self._weights: Array | None = None
        if log_weights is not None:
            weights = np.exp(log_weights - log_weights.max())
            self._weights = weights / weights.sum()

    # -- draws ------------------------------------------------------------------------------------------------------

    @cached_property
    def draws(self) -> dict[str, Array]:
        """Draws of every latent quantity by name, chains and draws first; discrete ones as positions of their states."""
        every: dict[str, Any] = {**self._numbers, **{n: v.codes for n, v in self._states.items()}}
        return {n: self.resampled(v) for n, v in every.items()}

    @cached_property
    def _rows(self) -> Any:
        assert self._weights is not None
        with np.errstate(divide="ignore"):
            logs = np.log(self._weights.ravel())
        return resample(logs, len(logs), seed=0)

    def resampled(self, values: Any) -> Any:
        """Return something by chains and draws as the draws are: weighted ones are drawn again by their weights."""
        if self._weights is None:
            return values
        return values.reshape(-1, *values.shape[2:])[self._rows].reshape(values.shape)

    def _about(self, names: Sequence[str]) -> "NamedDraws":
        """Return the same draws as the posterior of other quantities."""
        other: NamedDraws = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.names = tuple(names)
        return other

    def sample(self, n: int = 1, seed: Seed = None) -> dict[str, Array]:
        """Return n draws of every latent quantity, by name; at random, and with repetitions only where n is larger.

        Examples
        --------
        >>> from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
        >>> from markovia.inference.result import Info
        >>> post = DrawnPosterior(["x"], {"x": np.arange(8.0).reshape(2, 4)}, Info("nuts"))
        >>> sorted(post.sample(8, seed=0)["x"].tolist()) == list(range(8))
        True
        """
        rng = generator(seed)
        many = self._chains * self._length
        p = None if self._weights is None else self._weights.ravel()
        rows = rng.choice(many, n, replace=n > many or p is not None, p=p)
        every: dict[str, Any] = {**self._numbers, **{k: v.codes for k, v in self._states.items()}}
        return {k: v.reshape(-1, *v.shape[2:])[rows] for k, v in every.items()}

    @property
    def _shape(self) -> tuple[int, int]:
        numbers = next(iter(self._numbers.values()), None)
        if numbers is None and not self._states:  # all that there is are functions, which are summed out
            return 1, 1
        first: Any = next(iter(self._states.values())).codes if numbers is None else numbers
        return first.shape[0], first.shape[1]

    @property
    def _functions(self) -> Sequence[str]:
        """The nodes that are functions."""
        functions = getattr(self.program, "functions", None)
        return () if functions is None else functions.names

    @property
    def _chains(self) -> int:
        return self._shape[0]

    @property
    def _length(self) -> int:
        return self._shape[1]

    # -- numbers ----------------------------------------------------------------------------------------------------

    def _distribution(self, name: str, what: str) -> NumberDistribution:
        values = self._values(name)
        rows = values.reshape(-1, *values.shape[2:])
        weights = np.full(len(rows), 1.0 / len(rows)) if self._weights is None else self._weights.ravel()
        weights = weights.reshape(-1, *(1,) * (rows.ndim - 1))
        return WeightedNumbers(rows, weights, drawn=self._weights is None)

    def _covariance(self, names: Sequence[str]) -> tuple[Array, list[tuple[int, ...]]]:
        values = [self._values(n) for n in names]
        rows = np.concatenate([v.reshape(v.shape[0] * v.shape[1], -1) for v in values], axis=1)
        weights = None if self._weights is None else self._weights.ravel()
        found = np.cov(rows.T, aweights=weights, ddof=0 if self._weights is not None or len(rows) < 2 else 1)
        return np.atleast_2d(found), [v.shape[2:] for v in values]

    def _probability_of(self, event: Mapping[str, Any]) -> Any:
        share: Any = np.ones((self._chains, self._length))
        discrete = [n for n in event if self._place(n)[0] in self._states and self._place(n)[2] is None]
        for name, said in event.items():
            if name not in discrete:
                values = self._values(name)
                box = None if isinstance(said, Real) else numbers_meant(name, said)
                inside = values == said if box is None else (box.low <= values) & (values <= box.high)
            else:
                quantity, at, _ = self._place(name)
                states = self._states[quantity]
                meant, place = states_meant(states.variable, said), every_draw(at)
                # the exact probability given each draw says more than one draw of it, but not of two together
                inside = (
                    states.probabilities[place] @ meant if len(discrete) == 1 else meant[states.codes[place]]
                )
            if share.ndim > 2 and inside.ndim > 2 and share.shape != inside.shape:
                raise InvalidArgument(
                    f"{list(event)} have different shapes; name elements, such as {element_name(name, (0,))!r}"
                )
            share, inside = (
                x.reshape(x.shape + (1,) * (max(share.ndim, inside.ndim) - x.ndim)) for x in (share, inside)
            )
            share = share * inside
        return self._average(share)

    def _probability_where(self, happened: Callable[..., bool], names: Sequence[str]) -> float:
        return drawn_expectation(lambda *row: float(bool(happened(*row))), self._about(names))

    def log_prob(self, x: Any) -> Any:
        """Return the log density of the quantities asked for at x, by a Gaussian kernel estimate from the draws.

        Parameters
        ----------
        x
            A number or an array of numbers for one scalar quantity; for several, a mapping from name to such.
        """
        from scipy.stats import gaussian_kde

        given = self._given(x)
        draws, points = [], []
        for name in self.names:
            values = self._values(name)
            place = np.asarray(given[name], dtype=np.float64)
            draws.append(values.reshape(values.shape[0] * values.shape[1], -1))
            points.append(place.reshape(-1, draws[-1].shape[1]))
        weights = None if self._weights is None else self._weights.ravel()
        kernel = gaussian_kde(np.concatenate(draws, axis=1).T, weights=weights)
        found = kernel.logpdf(np.concatenate(points, axis=1).T)
        scalar = all(np.ndim(given[n]) == self._values(n).ndim - 2 for n in self.names)
        return float(found[0]) if scalar else found

    def _given(self, x: Any) -> Mapping[str, Any]:
        """Return the values in x of the quantities asked for, by name."""
        given = x if isinstance(x, Mapping) else {self._named(None): x}
        missing = [n for n in self.names if n not in given]
        if missing:
            raise InvalidArgument(
                f"x has no value for {missing[0]!r}; give {{name: value}} for {list(self.names)}"
            )
        return {n: given[n] for n in self.names}

    def _average(self, values: Any) -> Any:
        if self._weights is None:
            return values.mean(axis=(0, 1))
        return np.tensordot(self._weights, values, axes=([0, 1], [0, 1]))

    def _values(self, name: str) -> Array:
        """Return the draws of what is printed under a name: a quantity, an element, or the share of a state."""
        quantity, at, state = self._place(name)
        place = every_draw(at)
        if quantity in self._numbers:
            return np.asarray(self._numbers[quantity][place])
        found = self._states[quantity]
        if state is not None:
            return np.asarray(found.probabilities[(*place, ..., state)])
        if has_names(found.variable):
            raise InvalidArgument(
                f"the states of {name!r} are no numbers; post[{name!r}] has their probabilities"
            )
        return np.asarray(np.array([float(s) for s in found.variable.states])[found.codes[place]])

    def _place(self, name: str) -> tuple[str, tuple[int, ...], int | None]:
        """Return the quantity of a printed name (`g`, `g[0]`, `z=red`, `z[0]=red`), the element, and the state's code."""
        known = self._all_names()
        quantity, at = element_of(name, known)
        state: int | None = None
        if quantity not in known and "=" in name:
            before, _, word = name.rpartition("=")
            quantity, at = element_of(before, known)
            words = (
                [str(s) for s in self._states[quantity].variable.states] if quantity in self._states else []
            )
            state = words.index(word) if word in words else None
        if name in self._functions and name not in known:
            raise InvalidArgument(
                f"{name!r} is a function, which is asked for at inputs: post.at({name!r}, x)"
            )
        if quantity not in known or (state is None and not name.startswith(quantity)):
            raise InvalidArgument(
                f"there are no draws of {name!r}{did_you_mean(name, known)}; there are {known}"
            )
        if at:
            check_element(quantity, at, self._shape_of(quantity))
        return quantity, at, state

    def _all_names(self) -> list[str]:
        return [*self._numbers, *self._states]

    def _shape_of(self, quantity: str) -> tuple[int, ...]:
        held: Any = self._numbers[quantity] if quantity in self._numbers else self._states[quantity].codes
        return tuple(held.shape[2:])

    def _as_states(self, name: str) -> bool:
        """Say whether a name is of states without numbers, which are shown as the share of each."""
        quantity, _, state = self._place(name)
        return state is None and quantity in self._states and has_names(self._states[quantity].variable)


def every_draw(at: Sequence[int]) -> Any:
    """Return the index of one element in all draws of all chains."""
    return (slice(None), slice(None), *at)


def drawn_expectation(function: Callable[..., float], posterior: NamedDraws) -> float:
    """Return the average of a function of the quantities asked for over the draws, by their weights.

    It is called once a draw: with a number, the array of a node on plates, or the state of a discrete variable.
    """
    columns = []
    for name in posterior.names:
        quantity, at, state = posterior._place(name)
        if quantity in posterior._states and state is None:
            found = posterior._states[quantity]
            values: Any = np.array(found.variable.states, dtype=object)[found.codes[every_draw(at)]]
        else:
            values = posterior._values(name)
        rows = values.reshape(-1, *values.shape[2:])
        columns.append(rows if rows.ndim > 1 else rows.tolist())
    try:
        terms = np.array([float(function(*row)) for row in zip(*columns, strict=True)])
    except (TypeError, ValueError):
        raise InvalidArgument("the function of an expectation returns one number for every draw") from None
    weights = None if posterior._weights is None else posterior._weights.ravel()
    return float(np.average(terms, weights=weights))


def has_names(variable: Variable) -> bool:
    """Say whether the states of a variable are names, and so no numbers."""
    return any(isinstance(s, str) for s in variable.states)
