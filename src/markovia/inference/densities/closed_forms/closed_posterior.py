"""A posterior in closed form with the face of one made of draws: moments, quantiles and densities need no draws."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.inference.densities.closed_forms.closed_form import ClosedForm
from markovia.inference.densities.closed_forms.closed_questions import ClosedQuestions
from markovia.inference.densities.closed_forms.conditional_conjugacy import Terms, unconstrained
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
from markovia.inference.densities.program.compiled_functions import constrained
from markovia.inference.densities.program.draw_stats import DensityDraws, DrawStats
from markovia.inference.densities.program.program import Program
from markovia.inference.densities.program.state_draws import PlatedPosterior, StateDraws
from markovia.inference.posterior import Posterior
from markovia.inference.posterior_questions import element_name, plain_number
from markovia.inference.result import Info, LogMass, Record
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHAINS, DRAWS = 4, 1000


class ClosedAnswer:
    """The answer of an engine that knows the distribution of the latent quantities in closed form."""

    def __init__(
        self, program: Program, form: ClosedForm, log_mass: float, record: Record, seed: int
    ) -> None:
        self.program, self.form, self.seed = program, form, seed
        self.log_mass, self.record = log_mass, record

    @cached_property
    def finished(self) -> Mapping[str, Array | StateDraws]:
        """Independent draws of every quantity, discrete ones and deterministic nodes too."""
        return self.program.finish(self.drawn)

    @cached_property
    def drawn(self) -> DensityDraws:
        """Independent draws, as those of a sampler; made when they are needed."""
        return drawn_from(self.program, self.form, self.record, self.log_mass, self.seed, CHAINS, DRAWS)

    def posterior(self, names: Sequence[str], info: Info) -> "ClosedPosterior | Posterior | PlatedPosterior":
        """Return the posterior of some quantities; of one discrete variable it is a table."""
        if len(names) == 1 and names[0] in self.program.hidden:
            only = self.finished[names[0]]
            assert isinstance(only, StateDraws)
            return only.posterior(info)
        return ClosedPosterior(names, self, info)


def drawn_from(
    program: Program,
    form: ClosedForm,
    record: Record,
    log_mass: float,
    seed: int | np.random.Generator,
    chains: int,
    draws: int,
) -> DensityDraws:
    """Return independent draws from a closed form, chains by draws."""
    values = form.sample(chains * draws, np.random.default_rng(seed))
    points = unconstrained(Terms(program), values).reshape(chains, draws, -1)
    logs = form.log_prob(values).reshape(chains, draws)
    return DensityDraws(
        points, constrained(program.density, points), DrawStats(logs), record, log_mass=LogMass(log_mass)
    )


class ClosedPosterior(ClosedQuestions, DrawnPosterior):
    """The posterior of one or several quantities in closed form; `draws`, of every latent quantity, are made on request.

    Examples
    --------
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> m = mk.BayesianNetwork()
    >>> m.add("p", dist.Beta(1, 1))
    >>> m.add("heads", lambda p: dist.Binomial(10, p))
    >>> post = m.query("p", given={"heads": 7})
    >>> post.mean() == 8 / 12, post.info.engine, post.info.exact
    (True, 'conjugate', True)
    >>> post.draws["p"].shape
    (4, 1000)
    """

    def __init__(self, names: Sequence[str], answer: ClosedAnswer, info: Info) -> None:
        self.names = tuple(names)
        self.info = info
        self.program = answer.program
        self.form = answer.form
        self._answer = answer
        self._weights = None
        self._kept = {}

    @cached_property
    def stats(self) -> Any:  # type: ignore[override]
        """The log densities of the draws."""
        return self._answer.drawn.stats

    @cached_property
    def _numbers(self) -> dict[str, Array]:  # type: ignore[override]
        return {n: v for n, v in self._answer.finished.items() if isinstance(v, np.ndarray)}

    @cached_property
    def _states(self) -> dict[str, StateDraws]:  # type: ignore[override]
        return {n: v for n, v in self._answer.finished.items() if isinstance(v, StateDraws)}

    def _pointwise(self) -> Any:
        return self.program.pointwise(self._answer.drawn)

    def _place(self, name: str) -> tuple[str, tuple[int, ...], int | None]:
        place = self._in_form(name)
        return super()._place(name) if place is None else (*place, None)

    def sample(self, n: int = 1, seed: Seed = None) -> dict[str, Array]:
        """Return n independent draws of every latent quantity, by name."""
        if not (self._states if self.program is None else self.program.hidden):
            return self.form.sample(n, generator(seed))
        return super().sample(n, seed)

    # -- numbers ----------------------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Any:
        """Return the log density of the quantities asked for, together, at x.

        Parameters
        ----------
        x
            For one quantity its value (or several, along leading axes); for several, a mapping from name to such.
        """
        if all(n in self.form.names for n in self.names):
            return plain_number(self.form.log_prob(self._given(x)))
        if len(self.names) == 1 and self._closed(self.names[0]):  # an element by itself
            quantity, at, _ = self._place(self.names[0])
            point = self._given(x)[self.names[0]]
            return plain_number(self.form.numbers(quantity, at).log_prob(point))
        return super().log_prob(x)

    def _closed(self, name: str) -> bool:
        return self._in_form(name) is not None

    def _size(self, name: str) -> tuple[int, ...]:
        return np.shape(self.mean(name)) if self._closed(name) else super()._size(name)

    def __getstate__(self) -> dict[str, Any]:
        """Return the closed form, and draws, without the model."""
        drawn = {"_numbers": self._numbers, "stats": self.stats}
        return {**{k: v for k, v in super().__getstate__().items() if k != "_answer"}, **drawn}

    # -- tables -----------------------------------------------------------------------------------------------------

    def _columns(self, prob: float) -> list[str]:
        return super()._columns(prob)[:4]

    def _summaries(self, names: Sequence[str], prob: float) -> Iterator[tuple[str, list[float]]]:
        tail = (1.0 - prob) / 2.0
        for name in names:
            if not self._closed(name):
                yield from ((label, row[:4]) for label, row in super()._summaries([name], prob))
                continue
            columns = [
                self.mean(name),
                self.sd(name),
                self.quantile(name, tail),
                self.quantile(name, 1.0 - tail),
            ]
            for at in np.ndindex(*np.shape(columns[0])):
                yield element_name(name, at), [float(np.asarray(c)[at]) for c in columns]

    def plot(
        self,
        names: str | Sequence[str] | None = None,
        *,
        kind: str = "density",
        observed: Any = None,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> Any:
        """Draw the posterior, as densities of independent draws by default; see `DrawnPosterior.plot`."""
        return super().plot(names, kind=kind, observed=observed, ax=ax, title=title)

    def _note(self) -> str:
        return str(self.info)
