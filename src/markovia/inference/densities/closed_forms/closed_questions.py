"""The questions of a posterior whose quantities have a distribution in closed form: moments, quantiles, densities, draws.

`ClosedQuestions` answers what a `ClosedForm` knows and hands everything else on to the next class, which has draws.
`ParameterQuestions` is for the parameters of a fitted network, all of which are in the form.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import UnknownVariable
from markovia.inference.number_distributions import NumberDistribution
from markovia.inference.posterior_questions import (
    PosteriorQuestions,
    check_element,
    element_of,
    numbers_meant,
    plain_number,
)
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from markovia.inference.densities.closed_forms.closed_form import ClosedForm

JUDGED = 20_000
"""Draws over which an event on several quantities, or one that is a function, is counted."""
Place = tuple[str, tuple[int, ...]]


class ClosedQuestions(PosteriorQuestions):
    """Answers from `form` for the quantities that are in it."""

    if TYPE_CHECKING:
        form: ClosedForm

    def _in_form(self, name: str) -> Place | None:
        """Return the quantity of the form that a printed name is about, and the element; None for another quantity."""
        quantity, at = element_of(name, self.form.names)
        if quantity not in self.form.names:
            return None
        check_element(quantity, at, self.form.shape(quantity))
        return quantity, at

    def _distribution(self, name: str, what: str) -> NumberDistribution:
        place = self._in_form(name)
        return super()._distribution(name, what) if place is None else self.form.numbers(*place)

    def _covariance(self, names: Sequence[str]) -> tuple[Array, list[tuple[int, ...]]]:
        places = [p for p in map(self._in_form, names) if p is not None]
        return self.form.covariance(places) if len(places) == len(names) else super()._covariance(names)

    def _probability_of(self, event: Mapping[str, Any]) -> Any:
        if len(event) == 1:
            ((name, said),) = event.items()
            if self._in_form(name) is not None:
                found, box = self._distribution(name, "interval"), numbers_meant(name, said)
                return found.cdf(box.high) - found.cdf(box.low)
        return super()._probability_of(event)


class ParameterQuestions(ClosedQuestions):
    """The parameters of a fitted network: arrays under the names of their nodes, elements as `"wet[0,1]"`."""

    def _in_form(self, name: str) -> Place:
        place = super()._in_form(name)
        if place is None:
            raise UnknownVariable(name, self.form.names)
        return place

    def sample_parameters(self, n: int = 1, seed: Seed = None) -> dict[str, Array]:
        """Return n draws of all parameters together: by name, an array with one row a draw; `sample` draws networks."""
        return self.form.sample(n, generator(seed))

    _export_draws = sample_parameters

    def _drawn_values(self, name: str, rows: Mapping[str, Array]) -> Array:
        quantity, at = self._in_form(name)
        place: Any = (slice(None), *at)
        return np.asarray(rows[quantity][place])

    def _probability_of(self, event: Mapping[str, Any]) -> Any:
        if len(event) == 1:
            return super()._probability_of(event)
        rows = self.sample_parameters(JUDGED, seed=0)
        happened: Flags = np.ones(JUDGED, dtype=bool)
        for name, said in event.items():
            values, box = self._drawn_values(name, rows), numbers_meant(name, said)
            inside = (box.low <= values) & (values <= box.high)
            happened &= inside.reshape(JUDGED, -1).all(axis=1)
        return float(happened.mean())

    def _probability_where(self, happened: Callable[..., bool], names: Sequence[str]) -> float:
        rows = self.sample_parameters(JUDGED, seed=0)
        columns = [self._drawn_values(n, rows) for n in names]
        return float(np.mean([bool(happened(*row)) for row in zip(*columns, strict=True)]))

    def log_prob(self, x: Mapping[str, Any]) -> Any:
        """Return the log density of some parameters together: `{name: array}`, axes as those of the mean."""
        places = {self._in_form(n)[0]: v for n, v in x.items()}
        return plain_number(self.form.log_prob(places))

    def plot(
        self, names: str | Sequence[str] | None = None, *, ax: Any = None, title: str | None = None
    ) -> Any:
        """Draw the density of parameters, of all of them by default; see `markovia.plotting.plot_draws`."""
        from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior

        rows = {n: v[None] for n, v in self.sample_parameters(4000, seed=0).items()}
        shown = DrawnPosterior(self.form.names, rows, self.info)
        return shown.plot(names, kind="density", ax=ax, title=title)
