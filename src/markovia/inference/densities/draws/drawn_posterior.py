"""A posterior made of draws, as a user meets it: means, intervals, errors, diagnostics, tables and pictures.

Effective sample sizes, R-hat and Monte Carlo errors are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), as
ArviZ computes them. Weighted draws (importance sampling) count by their weights in means, spreads and intervals; `draws` and
everything that shows draws has them resampled.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from markovia.errors import Unanswered
from markovia.factors.quantities.columns import Column
from markovia.inference.densities.draws.inference_data import inference_data, predictive
from markovia.inference.densities.draws.named_draws import NamedDraws, every_draw
from markovia.inference.densities.draws.predictive_scores import PredictiveScore, loo, waic
from markovia.inference.densities.program.state_draws import PlatedPosterior
from markovia.inference.markov_chains.diagnostics import ess, mcse, rhat
from markovia.inference.posterior import Posterior
from markovia.inference.posterior_questions import (
    element_name,
)
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_level
from markovia.runtime.libraries import pd
from markovia.runtime.shown import aligned, html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from markovia.inference.densities.draws.function_draws import NodeFunction

MOST_ROWS = 20
INTERVAL = 0.9
PREDICTIONS = 50
MOST_KEPT = 10**7
"""Log likelihoods, draws times observations, that a pickle or a file holds at most."""


class DrawnPosterior(NamedDraws):
    """The posterior of one or several quantities as draws; `draws` holds every latent quantity.

    Parameters
    ----------
    names
        What was asked for: these print, and are what methods are about that are given no name.
    draws
        By name, draws of numbers (chains, draws, own axes) or draws of states of a discrete variable.
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
    >>> from markovia.inference.result import Info
    >>> rng = np.random.default_rng(0)
    >>> post = DrawnPosterior(["mu"], {"mu": rng.normal(3.0, 1.0, size=(4, 1000))}, Info("nuts"))
    >>> round(post.mean(), 1), round(post.sd(), 1), [round(x, 1) for x in post.interval(0.9)]
    (3.0, 1.0, [1.4, 4.6])
    >>> post.draws["mu"].shape, list(post.summary().columns)
    ((4, 1000), ['mean', 'sd', '5%', '95%', 'mcse', 'ess_bulk', 'ess_tail', 'r_hat'])
    """

    def __getitem__(self, name: str) -> "DrawnPosterior | Posterior | PlatedPosterior":
        """Return the posterior of one variable, or of one element (`post["g[0]"]`): a table for a discrete one."""
        if name in self._functions and name not in self._numbers:
            return self.function(name)  # type: ignore[return-value]
        quantity, at, state = self._place(name)
        if quantity in self._states and state is None:
            found = self._states[quantity].posterior(self.info, self._weights)
            return found if not at else found[at if len(at) > 1 else at[0]]  # type: ignore[return-value]
        return self._about((name,))  # type: ignore[return-value]

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
            chosen = self._all_names()
        else:
            chosen = [names] if isinstance(names, str) else list(names)
        for name in chosen:
            self._place(name)
        return chosen

    def scalars(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Give label and draws (chains, draws) of each scalar of some quantities; states are numbers or shares."""
        for name in names:
            if self._as_states(name):
                quantity, at, _ = self._place(name)
                found = self._states[quantity]
                shares = found.probabilities[every_draw(at)]
                for *place, k in np.ndindex(*shares.shape[2:]):
                    label = f"{element_name(name, place)}={found.variable.states[k]}"
                    yield label, shares[every_draw((*place, k))]
                continue
            values = self._values(name)
            for at in np.ndindex(*values.shape[2:]):
                yield element_name(name, at), values[every_draw(at)]

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
            {label: self.resampled(x).ravel() for label, x in self.scalars(self.names)}, index
        )

    def to_arviz(self) -> Any:
        """Return an ArviZ `InferenceData` with what its functions (`loo`, `compare`, `plot_ppc`, ...) look for.

        Draws of every latent quantity and what the sampler says of them; the data that were observed, the inputs as
        constants, and the log likelihood of each observation, where there is one; data drawn anew at each draw
        (`posterior_predictive`), and draws before any data (`prior`, `prior_predictive`) where the prior can be drawn from.
        One that was loaded from a file knows its model no more, so it draws nothing anew.
        """
        return inference_data(self)

    # -- functions --------------------------------------------------------------------------------------------------

    def function(self, name: str | None = None) -> "NodeFunction":
        """Return the posterior of a node that is a function (`mk.GP`), averaged over the draws in closed form."""
        if self.program is None:
            raise Unanswered(
                "draws that were loaded know their model no more; ask the model again for a function at inputs"
            )
        from markovia.inference.densities.draws.function_draws import function_of

        flat: dict[str, Any] = {n: v.reshape(-1, *v.shape[2:]) for n, v in self._numbers.items()}
        flat |= {n: v.codes.reshape(-1, *v.codes.shape[2:]) for n, v in self._states.items()}
        shares = None if self._weights is None else self._weights.ravel()
        return function_of(self.program, name, flat, shares, self.info, self)

    def at(self, *where: Any, member: Any = None) -> Any:
        """Return what a function is at inputs: `at(x)`, or `at("f", x)` where there are several.

        `member` says of which of the functions of a plate.
        """
        name, x = where if len(where) == 2 else (None, *where)
        return self.function(name).at(x, member)

    # -- comparing models -------------------------------------------------------------------------------------------

    def log_likelihood(self) -> dict[str, Array]:
        """Return the log likelihood of each observation at each draw, by observed node: chains, draws, observations."""
        if "log_likelihood" in self._kept:
            return dict(self._kept["log_likelihood"])
        if self._pointwise is None:
            raise Unanswered("these draws do not know the log likelihood of single observations")
        return {n: self.resampled(np.asarray(v)) for n, v in self._pointwise().items()}

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
            seen = self.data("observed")
            name = next(iter(seen)) if names is None and len(seen) == 1 else names
            if isinstance(name, str) and name in seen:
                anew = predictive(self, PREDICTIONS)
                shown, names, observed = (
                    DrawnPosterior((name,), {name: anew[name][None]}, self.info),
                    None,
                    seen[name],
                )
        return ports.call(
            "plot-draws", shown, shown._chosen(names), kind=kind, observed=observed, ax=ax, title=title
        )

    # -- kept ---------------------------------------------------------------------------------------------------

    def data(self, role: Literal["observed", "input"] = "observed") -> dict[str, Array]:
        """Return the data that the posterior is given, by name: what was observed, or the inputs."""
        if self.program is None:
            return dict(self._kept.get(role, {}))
        layout = self.program.layout
        found = {
            s.name: np.asarray(layout.data[s.name])
            for s in layout.sites.values()
            if s.role == role and s.piece.kind != "potential"
        }
        if role == "input":  # constants that are no nodes, and columns along a plate
            given = self.program.problem.inputs
            values = {n: np.asarray(v.values if isinstance(v, Column) else v) for n, v in given.items()}
            found |= {n: v for n, v in values.items() if n not in layout.lengths and v.dtype.kind in "biufU"}
        return found

    def plates(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the lengths of the plates, and for each input that runs along a plate which one it is."""
        if self.program is None:
            return self._kept.get("lengths", {}), self._kept.get("columns", {})
        layout = self.program.layout
        columns = {n: plates[0] for n, plates in layout.column_plates.items()}
        return {n: int(v) for n, v in layout.lengths.items()}, columns

    def __getstate__(self) -> dict[str, Any]:
        """Return draws and data without the model, whose functions no file can hold; log likelihoods are computed now."""
        dropped = ("program", "_pointwise", "_kept", "draws", "_rows")
        state = {k: v for k, v in self.__dict__.items() if k not in dropped}
        kept: dict[str, Any] = {role: self.data(role) for role in ("observed", "input")}
        kept["lengths"], kept["columns"] = self.plates()
        size = sum(np.size(v) for v in kept["observed"].values()) * self._chains * self._length
        if size <= MOST_KEPT:
            with suppress(Unanswered):
                kept["log_likelihood"] = self.log_likelihood()
        return {**state, "_states": dict(self._states), "_kept": kept}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.program = self._pointwise = None
        self.__dict__.update(state)

    def _table(self) -> tuple[list[list[str]], int]:
        total = sum(int(np.prod(self._size(n))) for n in self.names)
        lines = [
            [label, *(_number(v) for v in row)]
            for label, row in islice(self._summaries(list(self.names), INTERVAL), MOST_ROWS)
        ]
        return lines, total - len(lines)

    def _size(self, name: str) -> tuple[int, ...]:
        if self._as_states(name):
            quantity, at, _ = self._place(name)
            return self._states[quantity].probabilities.shape[2 + len(at) :]
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
