"""A posterior made of draws, as a user meets it: means, intervals, errors, diagnostics, tables and pictures.

Effective sample sizes, R-hat and Monte Carlo errors are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), as
ArviZ computes them. Weighted draws (importance sampling) count by their weights in means, spreads and intervals; `draws` and
everything that shows draws has them resampled.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, Unanswered, did_you_mean
from markovia.inference.densities.draws.predictive_scores import PredictiveScore, arviz, loo, waic
from markovia.inference.densities.program.draw_stats import DrawStats
from markovia.inference.densities.program.state_draws import PlatedPosterior, StateDraws
from markovia.inference.markov_chains.diagnostics import ess, mcse, rhat
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info
from markovia.inference.weighted_draws.resampling import resample
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_level
from markovia.runtime.libraries import pd
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import aligned, html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 20
INTERVAL = 0.9
PREDICTIONS = 50


class DrawnPosterior:
    """The posterior of one or several quantities as draws; `draws` holds every latent quantity.

    Parameters
    ----------
    names
        What was asked for: these print, and are what methods are about that are given no name.
    draws
        By name, draws of numbers (chains, draws, own axes) or a `StateDraws` of a discrete variable.
    info
        Where it comes from.
    stats, log_weights
        What the sampler says of each draw, and logs of the draws' weights (chains, draws).
    pointwise
        Computes the log likelihood of each observation at each draw, by observed node: chains, draws, observations.
    states
        Discrete variables, where they are not among the draws.
    program
        The model and evidence that it is the posterior of, as the engine saw them; for predictive draws.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> post = DrawnPosterior(["mu"], {"mu": rng.normal(3.0, 1.0, size=(4, 1000))}, Info("nuts"))
    >>> round(post.mean(), 1), round(post.sd(), 1), [round(x, 1) for x in post.interval(0.9)]
    (3.0, 1.0, [1.4, 4.6])
    >>> post.draws["mu"].shape, list(post.summary().columns)
    ((4, 1000), ['mean', 'sd', '5%', '95%', 'mcse', 'ess_bulk', 'ess_tail', 'r_hat'])
    """

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
        self._weights: Array | None = None
        if log_weights is not None:
            weights = np.exp(log_weights - log_weights.max())
            self._weights = weights / weights.sum()

    # -- draws ------------------------------------------------------------------------------------------------------

    @cached_property
    def draws(self) -> dict[str, Array]:
        """Draws of every latent quantity by name, chains and draws first; discrete ones as positions of their states."""
        every: dict[str, Any] = {**self._numbers, **{n: v.codes for n, v in self._states.items()}}
        return {n: self._resampled(v) for n, v in every.items()}

    @cached_property
    def _rows(self) -> Any:
        assert self._weights is not None
        with np.errstate(divide="ignore"):
            logs = np.log(self._weights.ravel())
        return resample(logs, len(logs), seed=0)

    def _resampled(self, values: Any) -> Any:
        if self._weights is None:
            return values
        return values.reshape(-1, *values.shape[2:])[self._rows].reshape(values.shape)

    def __getitem__(self, name: str) -> "DrawnPosterior | Posterior | PlatedPosterior":
        """Return the posterior of one variable: a table for a discrete one."""
        self._known(name)
        if name in self._states:
            return self._states[name].posterior(self.info, self._weights)
        made = DrawnPosterior(
            (name,), self._numbers, self.info, stats=self.stats, program=self.program, states=self._states
        )
        made._weights, made._pointwise = self._weights, self._pointwise
        return made

    def sample(self, n: int, seed: Seed = None) -> dict[str, Array]:
        """Return n draws of every latent quantity, by name; at random, and with repetitions only where n is larger.

        Examples
        --------
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
        first: Any = next(iter(self._states.values())).codes if numbers is None else numbers
        return first.shape[0], first.shape[1]

    @property
    def _chains(self) -> int:
        return self._shape[0]

    @property
    def _length(self) -> int:
        return self._shape[1]

    # -- numbers ----------------------------------------------------------------------------------------------------

    def mean(self, name: str | None = None) -> Any:
        """Return the mean of a quantity: a number, or an array of its shape."""
        return plain_number(self._average(self._values(name)))

    def sd(self, name: str | None = None) -> Any:
        """Return the standard deviation of a quantity."""
        values = self._values(name)
        gaps = values - self._average(values)
        count = values.shape[0] * values.shape[1]
        correction = count / (count - 1) if self._weights is None and count > 1 else 1.0
        return plain_number(np.sqrt(self._average(gaps**2) * correction))

    def quantile(self, q: float, name: str | None = None) -> Any:
        """Return a quantile of a quantity."""
        values = self._values(name)
        rows = values.reshape(-1, *values.shape[2:])
        if self._weights is None:
            return plain_number(np.quantile(rows, q, axis=0))
        order = np.argsort(rows, axis=0)
        heights = np.cumsum(self._weights.ravel()[order], axis=0)
        at = np.minimum((heights < q).sum(axis=0), len(rows) - 1)
        sorted_rows = np.take_along_axis(rows, order, axis=0)
        return plain_number(np.take_along_axis(sorted_rows, at[None], axis=0)[0])

    def interval(self, name: str | float | None = None, prob: float = INTERVAL) -> tuple[Any, Any]:
        """Return the central interval that holds a quantity with a probability.

        The first argument may be the probability where there is one quantity.
        """
        if isinstance(name, float | int):
            prob, name = float(name), None
        check_level("prob", prob)
        tail = (1.0 - prob) / 2.0
        return self.quantile(tail, name), self.quantile(1.0 - tail, name)

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
        given = x if isinstance(x, Mapping) else {self._only(): x}
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

    def _values(self, name: str | None) -> Array:
        name = self._only() if name is None else name
        self._known(name)
        if name in self._numbers:
            return self._numbers[name]
        states = self._states[name].variable.states
        if any(isinstance(s, str) for s in states):
            raise InvalidArgument(
                f"the states of {name!r} are no numbers; post[{name!r}] has their probabilities"
            )
        return np.array([float(s) for s in states])[self._states[name].codes]

    def _known(self, name: str) -> None:
        known = [*self._numbers, *self._states]
        if name not in known:
            raise InvalidArgument(
                f"there are no draws of {name!r}{did_you_mean(name, known)}; there are {known}"
            )

    def _only(self) -> str:
        if len(self.names) != 1:
            raise InvalidArgument(f"say of which: this posterior is over {list(self.names)}")
        return self.names[0]

    # -- tables -----------------------------------------------------------------------------------------------------

    def summary(self, names: str | Sequence[str] | None = None, prob: float = INTERVAL) -> "pd.DataFrame":
        """Return one row a scalar: mean, sd, interval, Monte Carlo error, bulk and tail effective sample size, R-hat.

        R-hat compares chains, so draws that are none (of an approximation, weighted ones, a population) have no such column.

        Parameters
        ----------
        names
            Which quantities; those asked for by default, "all" for every latent one.
        prob
            The probability of the interval.
        """
        check_level("prob", prob)
        chosen = self._chosen(names)
        rows = list(self._summaries(chosen, prob))
        index = pd.Index([label for label, _ in rows], name="quantity")
        return pd.DataFrame([row for _, row in rows], index=index, columns=self._columns(prob))

    def _columns(self, prob: float) -> list[str]:
        tail = 50.0 * (1.0 - prob)
        found = ["mean", "sd", f"{tail:g}%", f"{100.0 - tail:g}%", "mcse", "ess_bulk", "ess_tail"]
        return [*found, "r_hat"] if self._of_chains else found

    @property
    def _of_chains(self) -> bool:
        """Whether R-hat means something: it compares chains."""
        return self._weights is None and (self.stats is None or self.stats.of_chains)

    def _chosen(self, names: str | Sequence[str] | None) -> list[str]:
        if names is None:
            chosen = list(self.names)
        elif names == "all":
            chosen = [*self._numbers, *self._states]
        else:
            chosen = [names] if isinstance(names, str) else list(names)
        for name in chosen:
            self._known(name)
        return chosen

    def scalars(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Give label and draws (chains, draws) of each scalar of some quantities; states are numbers or shares."""
        for name in names:
            if name in self._states and any(isinstance(s, str) for s in self._states[name].variable.states):
                found = self._states[name]
                for at in np.ndindex(*found.probabilities.shape[2:]):
                    *place, k = at
                    label = f"{name}[{','.join(map(str, place))}]" if place else name
                    yield (
                        f"{label}={found.variable.states[k]}",
                        found.probabilities[(slice(None), slice(None), *at)],
                    )
                continue
            values = self._values(name)
            for at in np.ndindex(*values.shape[2:]):
                label = f"{name}[{','.join(map(str, at))}]" if at else name
                yield label, values[(slice(None), slice(None), *at)]

    def _summaries(self, names: Sequence[str], prob: float) -> Iterator[tuple[str, list[float]]]:
        tail = (1.0 - prob) / 2.0
        for label, x in self.scalars(names):
            alone = DrawnPosterior(("x",), {"x": x}, self.info)
            alone._weights = self._weights
            numbers = [alone.mean(), alone.sd(), alone.quantile(tail), alone.quantile(1.0 - tail)]
            if self._weights is None:
                found = [*numbers, mcse(x), ess(x), ess(x, "tail")]
                yield label, [*found, rhat(x)] if self._of_chains else found
            else:
                gaps = self._weights * (x - numbers[0])
                worth = 1.0 / float((self._weights**2).sum())
                yield label, [*numbers, float(np.sqrt((gaps**2).sum())), worth, worth]

    def to_pandas(self) -> "pd.DataFrame":
        """Return the draws of what was asked for: one row a draw, one column a scalar, indexed by chain and draw."""
        index = pd.MultiIndex.from_product(
            [range(self._chains), range(self._length)], names=["chain", "draw"]
        )
        return pd.DataFrame(
            {label: self._resampled(x).ravel() for label, x in self.scalars(self.names)}, index
        )

    def to_arviz(self) -> Any:
        """Return an ArviZ `InferenceData`: draws of every latent quantity, and what the sampler says of them."""
        az = arviz()
        found: dict[str, Any] = {"posterior": self.draws}
        if self.stats is not None:
            said = {
                "lp": self.stats.log_density,
                "acceptance_rate": self.stats.acceptance,
                "diverging": self.stats.diverging,
                "energy": self.stats.energy,
                "n_steps": self.stats.steps,
                "tree_depth": self.stats.tree_depth,
                "step_size": self.stats.step_size,
            }
            found["sample_stats"] = {k: self._resampled(v) for k, v in said.items() if v is not None}
        return az.from_dict(**found)

    # -- comparing models -------------------------------------------------------------------------------------------

    def log_likelihood(self) -> dict[str, Array]:
        """Return the log likelihood of each observation at each draw, by observed node: chains, draws, observations."""
        if self._pointwise is None:
            raise Unanswered("these draws do not know the log likelihood of single observations")
        return {n: self._resampled(np.asarray(v)) for n, v in self._pointwise().items()}

    def loo(self) -> PredictiveScore:
        """Return the expected log density of new data, by Pareto-smoothed leave-one-out cross-validation."""
        return loo(self)

    def waic(self) -> PredictiveScore:
        """Return the expected log density of new data, by the widely applicable information criterion."""
        return waic(self)

    # -- shown ------------------------------------------------------------------------------------------------------

    def plot(
        self,
        names: str | Sequence[str] | None = None,
        *,
        kind: str = "trace",
        observed: Any = None,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> Any:
        """Draw the posterior; see `markovia.plotting.plot_draws`.

        Parameters
        ----------
        names
            Which quantities; those asked for by default.
        kind
            "trace" (density and trace), "density", "rank", "forest", "pair", "energy", "autocorrelation" or "predictive"
            (of an observed node: data drawn anew from the posterior, over the data).
        observed
            For `kind="predictive"` of other quantities: the data.
        ax, title
            Where to draw, for kinds of one picture, and the text above.
        """
        shown: DrawnPosterior = self
        if kind == "predictive" and observed is None:
            seen = (
                [s.name for s in self.program.layout.sites.values() if s.role == "observed"]
                if self.program
                else []
            )
            name = seen[0] if names is None and len(seen) == 1 else names
            if isinstance(name, str) and name in seen:
                shown, names, observed = self._predicted(name), None, self.program.layout.data[name]
        return ports.call(
            "plot-draws", shown, shown._chosen(names), kind=kind, observed=observed, ax=ax, title=title
        )

    def _predicted(self, name: str) -> "DrawnPosterior":
        """Return some draws of an observed node anew, at draws of the posterior."""
        from markovia.inference.densities.program.program import program_of
        from markovia.inference.densities.program.simulation import kept_latents, predictive_draws

        old = self.program
        problem = replace(old.problem, findings={}, inputs={**old.problem.inputs, **old.layout.lengths})
        fresh = program_of(problem, only_drawn=True)
        rows = self.sample(PREDICTIONS, seed=0)
        known = {k: rows[k] for k in kept_latents(old.layout, fresh.layout) if k in rows}
        drawn = predictive_draws(fresh.density, fresh.nodes, known, PREDICTIONS, 0)
        return DrawnPosterior((name,), {name: drawn[name][None]}, self.info)

    def _table(self) -> tuple[list[list[str]], int]:
        total = sum(int(np.prod(self._size(n))) for n in self.names)
        lines = [
            [label, *(_number(v) for v in row)]
            for label, row in islice(self._summaries(list(self.names), INTERVAL), MOST_ROWS)
        ]
        return lines, total - len(lines)

    def _size(self, name: str) -> tuple[int, ...]:
        if name in self._states and any(isinstance(s, str) for s in self._states[name].variable.states):
            return self._states[name].probabilities.shape[2:]
        return self._values(name).shape[2:]

    def line(self) -> str:
        """Return the posterior in a few words, for a list of many."""
        (name,) = self.names
        mean = np.asarray(self.mean(name))
        if mean.ndim:
            return f"{' x '.join(map(str, mean.shape))} numbers, means {mean.min():.4g} to {mean.max():.4g}"
        return f"mean {float(mean):.4g}, sd {float(self.sd(name)):.4g}"

    def __str__(self) -> str:
        lines, hidden = self._table()
        table = aligned(["quantity", *self._columns(INTERVAL)], lines)
        return table + (f"\n... and {hidden:,} more; see summary()" if hidden > 0 else "")

    def __repr__(self) -> str:
        return f"{self}\n[{self._note()}]"

    def _repr_html_(self) -> str:
        lines, _ = self._table()
        return html_table(["quantity", *self._columns(INTERVAL)], lines, note=self._note())

    def _note(self) -> str:
        return f"{self._chains} x {self._length:,} draws; {self.info}"


def _number(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def drawn_expectation(function: Callable[..., float], posterior: DrawnPosterior) -> float:
    """Return the average of a function of the quantities asked for over the draws, by their weights.

    It is called once a draw: with a number, the array of a node on plates, or the state of a discrete variable.
    """
    columns = []
    for name in posterior.names:
        if name in posterior._states:
            found = posterior._states[name]
            values: Any = np.array(found.variable.states, dtype=object)[found.codes]
        else:
            values = posterior._numbers[name]
        rows = values.reshape(-1, *values.shape[2:])
        columns.append(rows if rows.ndim > 1 else rows.tolist())
    try:
        terms = np.array([float(function(*row)) for row in zip(*columns, strict=True)])
    except (TypeError, ValueError):
        raise InvalidArgument("the function of an expectation returns one number for every draw") from None
    weights = None if posterior._weights is None else posterior._weights.ravel()
    return float(np.average(terms, weights=weights))


def plain_number(value: Any) -> Any:
    """Return an array of no axes as a number."""
    return value if np.ndim(value) else float(value)
