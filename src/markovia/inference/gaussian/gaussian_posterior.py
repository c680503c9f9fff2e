"""Posteriors of numbers: Gaussians and mixtures of Gaussians, by themselves or together with states."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable, UnsupportedModel, check_known
from markovia.factors.quantities.soft_findings import Interval
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.number_distributions import shortest_interval
from markovia.inference.posterior import Posterior
from markovia.inference.posterior_questions import PosteriorQuestions, numbers_meant, states_meant
from markovia.inference.result import Info
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_count
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import aligned, html_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_LINES = 60
JUDGED = 20_000
"""Draws on which an event that is a function is judged."""


@dataclass(frozen=True)
class MixtureOfGaussians:
    """Components: a weight, codes of the states, a mean and a covariance each."""

    numbers: tuple[str, ...]
    states: tuple[Variable, ...]
    weights: Array
    codes: Ints
    means: Array
    covariances: Array

    @cached_property
    def deviations(self) -> Array:
        """The standard deviation of every number in every component."""
        return np.sqrt(np.maximum(np.diagonal(self.covariances, axis1=1, axis2=2), 0.0))

    @cached_property
    def mean(self) -> Array:
        """The mean of all components together."""
        return np.asarray(self.weights @ self.means)

    @cached_property
    def covariance(self) -> Array:
        """The covariance of all components together."""
        gap = self.means - self.mean
        return np.asarray(
            np.tensordot(self.weights, self.covariances, 1) + (self.weights[:, None] * gap).T @ gap
        )

    def collapsed(self) -> "MixtureOfGaussians":
        """Return one Gaussian for each configuration of the states, with the same moments (the weak marginal)."""
        keys, group = np.unique(self.codes, axis=0, return_inverse=True)
        group = group.reshape(-1)
        weights: Array = np.bincount(group, self.weights, len(keys)).astype(np.float64)
        means, covariances = (
            np.empty((len(keys), len(self.numbers))),
            np.empty((len(keys), *self.covariances.shape[1:])),
        )
        for k in range(len(keys)):
            at = group == k
            part = MixtureOfGaussians(
                self.numbers,
                (),
                self.weights[at] / weights[k],
                self.codes[at],
                self.means[at],
                self.covariances[at],
            )
            means[k], covariances[k] = part.mean, part.covariance
        return MixtureOfGaussians(self.numbers, self.states, weights, keys, means, covariances)

    def marginal(self, numbers: Sequence[str], states: Sequence[Variable]) -> "MixtureOfGaussians":
        """Return the distribution of some of the numbers and states; components stay apart."""
        at = [self.numbers.index(n) for n in numbers]
        axes = [self.states.index(v) for v in states]
        return MixtureOfGaussians(
            tuple(numbers), tuple(states), self.weights, self.codes[:, axes], self.means[:, at],
            self.covariances[:, at][:, :, at],
        )  # fmt: skip

    def table(self) -> Factor:
        """Return the distribution of the states."""
        values = np.zeros(tuple(len(v) for v in self.states))
        np.add.at(values, tuple(self.codes.T), self.weights)
        return Factor.of(self.states, values / values.sum())


@dataclass(frozen=True, eq=False)
class MixtureNumbers:
    """The distribution of one number that is Gaussian in every component; a deviation may be zero."""

    weights: Array
    means: Array
    deviations: Array

    def mean(self) -> float:
        """Return the mean."""
        return float(self.weights @ self.means)

    def variance(self) -> float:
        """Return the variance: within components and between them."""
        return float(self.weights @ (self.deviations**2 + (self.means - self.mean()) ** 2))

    def cdf(self, x: Any) -> Any:
        """Return the probability of being at most x."""
        return self._up_to(x, np.greater_equal)

    def below(self, x: Any) -> Any:
        """Return the probability of being less than x, which differs where a component is certain."""
        return self._up_to(x, np.greater)

    def _up_to(self, x: Any, reached: Callable[[Any, Any], Any]) -> Any:
        from scipy.special import ndtr

        gap = np.asarray(x, dtype=np.float64)[..., None] - self.means
        with np.errstate(divide="ignore", invalid="ignore"):
            each = ndtr(gap / self.deviations)
        return np.where(self.deviations == 0.0, reached(gap, 0.0), each) @ self.weights

    def quantile(self, q: Any) -> float:
        """Return the number below which a share q lies, a root between the components' quantiles (Brent's method)."""
        from scipy.optimize import brentq
        from scipy.special import ndtri

        with np.errstate(invalid="ignore"):  # zero times infinity: a certain number
            ends = self.means + np.where(self.deviations > 0.0, float(ndtri(q)) * self.deviations, 0.0)
        low, high = float(ends.min()), float(ends.max())
        if low == high or not np.isfinite(high - low):
            return low if q < 0.5 else high
        if self.cdf(low) >= q:
            return low
        if self.cdf(high) <= q:
            return high
        return float(brentq(lambda x: float(self.cdf(x)) - q, low, high, xtol=1e-300, maxiter=500))

    def shortest(self, prob: float) -> tuple[float, float]:
        """Return the ends of the shortest interval."""
        if len(self.weights) == 1:
            return self.quantile(0.5 - prob / 2.0), self.quantile(0.5 + prob / 2.0)
        low, high = shortest_interval(self.quantile, prob)
        return low, high


class GaussianPosterior(PosteriorQuestions):
    """A Gaussian, or a mixture of Gaussians, over one or several numbers, with its provenance in `info`.

    Discrete variables that were asked for together with the numbers belong to it too: each component then has its states.
    `post["x"]` is the posterior of one of the variables.

    Attributes
    ----------
    names
        The variables in the order they were asked for.
    info
        How it was computed.

    Examples
    --------
    >>> import markovia as mk
    >>> m = mk.BayesianNetwork()
    >>> m.add("x", mk.LinearGaussian(1, {}, 4))
    >>> m.add("y", mk.LinearGaussian(0, {"x": 2}, 1))
    >>> p = m.query(["x", "y"])
    >>> print(p)
          mean     sd      5%    95%
    x        1      2   -2.29   4.29
    y        2  4.123  -4.782  8.782
    >>> p.covariance().round(6).tolist()
    [[4.0, 8.0], [8.0, 17.0]]
    >>> [round(x, 4) for x in p.interval("x", 0.5)]
    [-0.349, 2.349]
    """

    __slots__ = ("_mixture", "_moments", "info", "names")

    def __init__(self, names: Sequence[str], mixture: MixtureOfGaussians, info: Info) -> None:
        self.names = tuple(names)
        self.info = info
        self._mixture: MixtureOfGaussians | None = mixture
        self._moments = (0.0, 0.0)

    @classmethod
    def single(cls, name: str, mean: float, variance: float, info: Info) -> "GaussianPosterior":
        """Return one Gaussian number; its arrays are made when they are asked for."""
        made = object.__new__(cls)
        made.names, made.info, made._mixture, made._moments = (name,), info, None, (mean, variance)
        return made

    # -- components ----------------------------------------------------------------------------------------------

    @property
    def mixture(self) -> MixtureOfGaussians:
        """The components as arrays."""
        if self._mixture is None:
            mean, variance = self._moments
            codes = np.zeros((1, 0), np.int64)
            self._mixture = MixtureOfGaussians(
                self.names, (), np.ones(1), codes, np.array([[mean]]), np.array([[[variance]]])
            )
        return self._mixture

    @property
    def weights(self) -> Array:
        """The probability of every component."""
        return self.mixture.weights

    @property
    def means(self) -> Array:
        """The means of the numbers, one row a component."""
        return self.mixture.means

    @property
    def covariances(self) -> Array:
        """The covariance matrix of every component."""
        return self.mixture.covariances

    @property
    def states(self) -> list[dict[str, Any]]:
        """The states of the discrete variables, one mapping a component."""
        found = self.mixture
        return [
            {v.name: v.states[c] for v, c in zip(found.states, row, strict=True)}
            for row in found.codes.tolist()
        ]

    def marginal(self, names: str | Iterable[str]) -> "GaussianPosterior | Posterior":
        """Return the distribution of some of the variables; of states alone it is a table."""
        wanted = [names] if isinstance(names, str) else list(names)
        check_known(wanted, self.names, "the posterior")
        if tuple(wanted) == self.names:
            return self
        found = self.mixture
        part = found.marginal(
            [n for n in wanted if n in found.numbers],
            [v for n in wanted for v in found.states if v.name == n],
        )
        if not part.numbers:
            return Posterior(part.table().transpose(wanted), self.info)
        return GaussianPosterior(wanted, part, self.info)

    def __getitem__(self, name: str) -> "GaussianPosterior | Posterior":
        return self.marginal(name)

    def collapsed(self) -> "GaussianPosterior":
        """Return one Gaussian of the same mean and covariance (for each configuration of the states asked for)."""
        return GaussianPosterior(self.names, self.mixture.collapsed(), self.info)

    # -- moments -------------------------------------------------------------------------------------------------

    def mean(self, name: str | None = None) -> float:
        """Return the mean of a number."""
        if self._mixture is None and name in (None, self.names[0]):
            return float(self._moments[0])
        return float(super().mean(name))

    def var(self, name: str | None = None) -> float:
        """Return the variance of a number."""
        if self._mixture is None and name in (None, self.names[0]):
            return float(self._moments[1])
        return float(super().var(name))

    def _distribution(self, name: str, what: str) -> MixtureNumbers:
        at, found = self._at(name), self.mixture
        return MixtureNumbers(
            found.weights / found.weights.sum(), found.means[:, at], found.deviations[:, at]
        )

    def _covariance(self, names: Sequence[str]) -> tuple[Array, list[tuple[int, ...]]]:
        at = [self._at(n) for n in names]
        return self.mixture.covariance[np.ix_(at, at)], [()] * len(at)

    def _numbers_asked_for(self) -> Sequence[str]:
        return self.mixture.numbers

    def _probability_of(self, event: Mapping[str, Any]) -> float:
        found, weights = self.mixture, self.mixture.weights / self.mixture.weights.sum()
        boxes: list[tuple[int, Interval]] = []
        for name, said in event.items():
            states = next((k for k, v in enumerate(found.states) if v.name == name), None)
            if states is not None:
                weights = weights * states_meant(found.states[states], said)[found.codes[:, states]]
            else:
                boxes.append((self._at(name), numbers_meant(name, said)))
        if len(boxes) == 1:  # the distribution function of one number has a closed form
            (at, box), means, spread = boxes[0], found.means, found.deviations
            return float(
                sum(
                    w * float(each.cdf(box.high) - each.below(box.low))
                    for w, m, s in zip(weights, means[:, at], spread[:, at], strict=True)
                    for each in (MixtureNumbers(np.ones(1), np.array([m]), np.array([s])),)
                    if w > 0.0
                )
            )
        if not boxes:
            return float(weights.sum())
        from scipy.stats import multivariate_normal

        places = [at for at, _ in boxes]
        low, high = (np.array([getattr(b, end) for _, b in boxes]) for end in ("low", "high"))
        return float(
            sum(
                w
                * multivariate_normal(m[places], s[np.ix_(places, places)], allow_singular=True).cdf(
                    high, lower_limit=low, rng=0
                )
                for w, m, s in zip(weights, found.means, found.covariances, strict=True)
                if w > 0.0
            )
        )

    def _probability_where(self, happened: Callable[..., bool], names: Sequence[str]) -> float:
        check_known(names, self.names, "the posterior")
        rows = self.sample(JUDGED, seed=0)
        return float(np.mean([bool(happened(*row)) for row in zip(*(rows[n] for n in names), strict=True)]))

    def _positions(self, name: str, values: Any) -> Any:
        variable = next((v for v in self.mixture.states if v.name == name), None)
        return values if variable is None else np.array([variable.index(s) for s in values])

    def entropy(self, *, base: float | None = None) -> float:
        """Return the differential entropy of one Gaussian, in nats or in units of `log(base)`."""
        found = self.mixture
        if len(found.weights) > 1 or found.states:
            raise UnsupportedModel(
                "the entropy of a mixture of Gaussians has no closed form; ask for collapsed().entropy(), an upper bound, "
                "or estimate it as -p.log_prob(p.sample(10_000)).mean()"
            )
        nats = 0.5 * float(np.linalg.slogdet(2 * np.pi * np.exp(1.0) * found.covariances[0])[1])
        return nats if base is None else nats / float(np.log(base))

    # -- densities and draws -------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Any:
        """Return the log density (times the probability of the states) at one or many points.

        Parameters
        ----------
        x
            For one number, a number or an array; for several variables a mapping from every name to a value or an array,
            or a frame.
        """
        found = self.mixture
        if not isinstance(x, Mapping) and not hasattr(x, "columns"):
            if len(self.names) > 1:
                raise InvalidArgument(
                    f"a point of {list(self.names)} is a mapping with a value for each, or a frame"
                )
            x = {self.names[0]: x}
        for name in self.names:
            if name not in x:
                raise InvalidArgument(f"a point of {list(self.names)} needs a value for {name!r} too")
        scalar = not any(np.ndim(x[n]) for n in self.names)
        point = np.stack(
            np.broadcast_arrays(*(np.asarray(x[n], np.float64) for n in found.numbers)), axis=-1
        )  # a posterior without numbers is a table
        logs = np.full((*point.shape[:-1], len(found.weights)), -np.inf)
        for k, (w, m, s) in enumerate(zip(found.weights, found.means, found.covariances, strict=True)):
            root = np.linalg.cholesky(s)
            z = np.linalg.solve(root, (point - m)[..., None])[..., 0]
            logs[..., k] = (
                np.log(w)
                - 0.5 * (z**2).sum(-1)
                - np.log(np.diag(root)).sum()
                - 0.5 * len(m) * np.log(2 * np.pi)
            )
        for axis, v in enumerate(found.states):
            said = x[v.name]
            codes = np.array([v.index(s) for s in (said if np.ndim(said) else [said])])
            logs = np.where(codes[:, None] == found.codes[:, axis], logs, -np.inf)
        top = logs.max(axis=-1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            answer = np.log(np.exp(logs - top).sum(-1)) + top[..., 0]
        return float(answer.reshape(-1)[0]) if scalar else answer

    def sample(self, n: int = 1, seed: Seed = None) -> dict[str, Any]:
        """Draw n joint values, an array by name."""
        check_count("n", n)
        rng, found = generator(seed), self.mixture
        chosen = rng.choice(len(found.weights), size=n, p=found.weights / found.weights.sum())
        values = np.empty((n, len(found.numbers)))
        for k in np.unique(chosen):
            rows = np.flatnonzero(chosen == k)
            values[rows] = found.means[k] + rng.standard_normal((len(rows), values.shape[1])) @ _root(
                found.covariances[k]
            )
        columns: dict[str, Any] = {n: values[:, k] for k, n in enumerate(found.numbers)}
        for axis, v in enumerate(found.states):
            columns[v.name] = np.array(v.states, dtype=object)[found.codes[chosen, axis]]
        return {name: columns[name] for name in self.names}

    # -- looking -------------------------------------------------------------------------------------------------

    def to_pandas(self, prob: float = 0.9) -> "pd.DataFrame":
        """Return mean, standard deviation and the central interval of every number, one row each."""
        import pandas as pd

        low, high = f"{50 - 50 * prob:g}%", f"{50 + 50 * prob:g}%"
        rows = [[self.mean(n), self.sd(n), *self.interval(n, prob)] for n in self.names if self._is_number(n)]
        index = [n for n in self.names if self._is_number(n)]
        return pd.DataFrame(rows, index=index, columns=["mean", "sd", low, high])

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the density of each number; see `markovia.plotting.plot_density`."""
        return ports.draw("plot-density", self, ax=ax, title=title)

    def allclose(self, other: "GaussianPosterior", *, atol: float = 1e-9) -> bool:
        """Say whether two posteriors of the same variables have the same means and covariances."""
        if set(self.names) != set(other.names) or set(self.mixture.numbers) != set(other.mixture.numbers):
            return False
        names = self.mixture.numbers
        return all(abs(self.mean(n) - other.mean(n)) <= atol for n in names) and bool(
            np.abs(self.covariance(names) - other.covariance(names)).max(initial=0.0) <= atol
        )

    def line(self) -> str:
        """Return the posterior of one number in a few words, for a list of many."""
        more = (
            f", {len(self.weights)} components" if self._mixture is not None and len(self.weights) > 1 else ""
        )
        return f"mean {self.mean():.4g}, sd {self.sd():.4g}{more}"

    def _lines(self) -> tuple[list[str], list[list[str]]]:
        header = ["", "mean", "sd", "5%", "95%"]
        shown = [n for n in self.names if self._is_number(n)][:MOST_LINES]
        rows = [[n, *(f"{x:.4g}" for x in (self.mean(n), self.sd(n), *self.interval(n)))] for n in shown]
        return header, rows

    def __str__(self) -> str:
        header, rows = self._lines()
        lines = [aligned(header, rows)]
        for v in self.mixture.states:
            table = self.marginal(v.name)
            said = ", ".join(f"{s} {p:.4g}" for s, p in table.to_dict().items())  # type: ignore[union-attr]
            lines.append(f"{v.name}  {said}")
        hidden = len(self.names) - len(rows) - len(self.mixture.states)
        return "\n".join(lines + [f"... and {hidden:,} more numbers"] * (hidden > 0))

    def __repr__(self) -> str:
        count = len(self.weights)
        more = f"; mixture of {count:,} Gaussians" if count > 1 else ""
        return f"{self}\n[{self.info}{more}]"

    def _repr_html_(self) -> str:
        given = f"given {self.info.evidence()}; " if self.info.given else ""
        return html_table(*self._lines(), note=f"{given}{self.info}")

    def _is_number(self, name: str) -> bool:
        return self._mixture is None or name in self._mixture.numbers

    def _at(self, name: str) -> int:
        numbers = self.names if self._mixture is None else self._mixture.numbers
        if name not in numbers:
            if name in self.names:
                raise InvalidArgument(f"{name!r} has states; ask for marginal({name!r})")
            raise UnknownVariable(name, self.names, "the posterior")
        return numbers.index(name)


def _root(covariance: Array) -> Array:
    """Return a matrix R with R'R the covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)
