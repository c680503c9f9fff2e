"""The posterior of a fitted network as its user meets it: drawn networks, and answers with their uncertainty.

A network that was fitted under a prior has posterior means in its tables. Since every new case uses each row of each
table at most once, those means answer questions about one new case exactly as averaging over all parameters would: `query`
of the network itself is the predictive distribution (tied tables aside). What it does not say is how sure that number is.
`NetworkPosterior.query` asks the same of many networks drawn from the posterior, and reports the spread.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from markovia.data.tables.reading import read_data
from markovia.errors import InvalidArgument
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.inference.densities.closed_forms.closed_form import ClosedForm, Elements, Normals
from markovia.inference.densities.closed_forms.closed_questions import ParameterQuestions
from markovia.inference.engine import Engine
from markovia.inference.number_distributions import WeightedNumbers
from markovia.inference.posterior import Posterior
from markovia.inference.posterior_questions import element_name
from markovia.inference.result import Info
from markovia.learning.tables.row_counts import Counts, family_counts
from markovia.learning.tables.table_learner import TableLearner
from markovia.learning.tables.table_posterior import TablePosterior
from markovia.models.graphical.arguments import Given
from markovia.models.graphical.directed_model import DirectedModel
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_level
from markovia.runtime.clock import now
from markovia.runtime.keyword_advice import guided
from markovia.runtime.libraries import pd
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True)
class NetworkDraws:
    """The networks that an answer is the average of, and how many of them differ in their graph or tables."""

    networks: int
    different: int


class SampledPosterior(Posterior):
    """An answer averaged over networks; `draws` has the answer of each, along the first axis.

    `weights` says how much each counts; None if all count the same.
    """

    __slots__ = ("draws", "weights")

    def __init__(self, factor: Factor, info: Info, draws: Array, weights: Array | None = None) -> None:
        super().__init__(factor, info)
        self.draws = draws
        self.weights = weights

    def interval(self, name: str | float | None = None, prob: Any = None) -> Any:
        """Return mean and credible interval of every probability (quantiles over the networks, by their weights).

        With the name of a variable of numbers it is the central interval that holds that variable, as of all posteriors:
        `interval(0.9)` is a table of probabilities, `interval("cost", 0.9)` two numbers.
        """
        if isinstance(name, str):
            return super().interval(name) if prob is None else super().interval(name, prob)
        level: Any = prob if name is None else name
        level = 0.95 if level is None else level
        check_level("level", level)
        n = len(self.draws)
        weights = np.full(n, 1.0 / n) if self.weights is None else self.weights / self.weights.sum()
        weights = weights.reshape(-1, *(1,) * (self.draws.ndim - 1))
        over_networks = WeightedNumbers(self.draws, weights, drawn=self.weights is None)
        low, high = (over_networks.quantile(0.5 + side * level / 2.0) for side in (-1, 1))
        table = {"mean": self.values.ravel(), "low": low.ravel(), "high": high.ravel()}
        return pd.DataFrame(table, index=self.to_pandas().index)


class NetworkPosterior(InNotebooks, TablePosterior):
    """The distribution of a network's tables after the data; `bn.posterior_` after a fit with a prior.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork("rain->wet")
    >>> rows = {"rain": ["no", "no", "no", "yes"], "wet": ["no", "no", "yes", "yes"]}
    >>> post = bn.fit(rows, prior="laplace").posterior_
    >>> post
    NetworkPosterior(2 of 2 nodes, 6 Dirichlet parameters)
    >>> post.alpha("wet").values.tolist()
    [[3.0, 2.0], [1.0, 2.0]]
    >>> answer = post.query("rain", given={"wet": "yes"}, n=500, seed=0)
    >>> answer.interval(0.9).loc["yes"].round(2).to_dict()
    {'mean': 0.46, 'low': 0.1, 'high': 0.88}
    """

    def __init__(
        self,
        learner: TableLearner,
        counts: Sequence[Counts],
        tables: Sequence[Conditional],
        network: DirectedModel,
    ) -> None:
        super().__init__(learner, counts, tables)
        self._network = network

    def sample(self, n: int = 1, seed: Seed = None) -> list[Any]:  # type: ignore[override]
        """Return `n` networks drawn from the posterior.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork("coin").fit({"coin": ["h"] * 60 + ["t"] * 40}, prior="k2")
        >>> drawn = bn.posterior_.sample(200, seed=1)
        >>> round(float(sum(d["coin"].values[0] for d in drawn)) / 200, 1)
        0.6
        """
        _whole(n)
        rng = generator(seed)
        return [self._drawn(rng) for _ in range(n)]

    @guided
    def query(
        self,
        targets: str | Sequence[str],
        given: Given = None,
        n: int = 200,
        seed: Seed = 0,
        engine: str | Engine = "auto",
    ) -> SampledPosterior:
        """Return the mean of the answer over `n` networks drawn from the posterior, with its credible interval.

        With evidence this is the mean of P(targets | given) as a quantity one does not know; the network's own `query` is
        the predictive probability, which also lets the evidence itself speak about the parameters.

        Parameters
        ----------
        targets, given, engine
            As in the network's `query`.
        n
            The number of networks.
        seed
            Seed of the draws.

        Returns
        -------
        SampledPosterior
            A `Posterior` whose `interval(level)` is a table of means and credible intervals. `info.error` is the Monte
            Carlo error of the means.
        """
        _whole(n)
        start = now()
        rng = generator(seed)
        answers = [self._drawn(rng).query(targets, given=given, engine=engine) for _ in range(n)]
        draws = np.stack([a.values for a in answers])
        error = float(draws.std(axis=0, ddof=1).max() / n**0.5) if n > 1 else float("nan")
        info = replace(
            answers[0].info,
            exact=False,
            error=error,
            log_evidence=None,
            seconds=now() - start,
            details=NetworkDraws(n, n),
        )
        return SampledPosterior(Factor.of(answers[0].variables, draws.mean(axis=0)), info, draws)

    def log_predictive(self, data: Any, weights: Any = None) -> float:
        """Return the log probability of new complete rows together, tables integrated out.

        It is the sum of each row's log probability under a network that was updated with the rows before it. Fixed nodes
        and local models count with their value.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork("coin").fit({"coin": ["h", "h", "t"]}, prior="k2")
        >>> round(bn.posterior_.log_predictive({"coin": ["h", "h"]}), 6)  # 3/5 * 4/6
        -0.916291
        """
        families = self._learner.families
        variables = {f.variable.name: f.variable for f in families}
        scopes = [f.scope for f in families]
        source = read_data(data, variables, variables=variables, weights=weights, scopes=scopes)
        gaps = sum(source.missing().values())
        if gaps:
            raise InvalidArgument(f"{gaps:,} cells are missing; log_predictive needs complete rows")
        return self.log_gain(family_counts(source, families))

    def _drawn(self, rng: np.random.Generator) -> DirectedModel:
        twin = self._network.copy()
        variables = {n: twin.variable(n) for n in twin.variables}
        twin.install(variables, dict(zip(self._at, self.draw(rng), strict=True)))
        return twin


class NumberPosterior(InNotebooks, ParameterQuestions):
    """The distribution of a mixed network's parameters after the data: `bn.posterior_` after a fit with a prior.

    It is asked what all posteriors are. The name of a number stands for its bias and weights, in that order and behind an
    axis for each discrete parent (`"y[0]"` is a bias without such parents), `"variance(y)"` for what the regression leaves,
    and the name of a discrete node for its table.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = {"x": [0.1, 1.2, 1.9, 3.3, 4.1], "y": [0.2, 2.1, 4.2, 6.3, 8.4]}
    >>> post = mk.BayesianNetwork("x->y").fit(rows, prior=0.1).posterior_
    >>> post.interval("y", 0.9).round(2).loc["x"].tolist()
    [1.67, 2.3]
    >>> round(post.mean("y[1]"), 2), round(post.probability({"y[1]": mk.Interval(low=1.8)}), 2)
    (1.98, 0.85)
    >>> len(post.sample(3, seed=0))
    3
    """

    def __init__(self, regressions: dict[str, Any], alphas: dict[str, Array], network: DirectedModel) -> None:
        self.regressions = regressions
        """For each number, a `RegressionPosterior` for every configuration of its discrete parents (by code)."""
        self._alphas, self._network = alphas, network
        self.info = Info("conjugate", exact=True)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The quantities: coefficients and variances of numbers, and tables."""
        return self.form.names

    @cached_property
    def form(self) -> ClosedForm:  # type: ignore[override]
        """The distribution of all parameters: tables of Dirichlet rows, inverse gamma variances, coefficients given them."""
        from scipy.linalg import block_diag

        elements = {n: Elements(n, "dirichlet", a, np.zeros(0)) for n, a in self._alphas.items()}
        shapes: dict[str, tuple[int, ...]] = {}
        rows = [r for own in self.regressions.values() for r in own.values()]
        for name, own in self.regressions.items():
            lead = np.shape(self._network[name].bias)  # type: ignore[attr-defined]
            shape, scale = (np.array([getattr(r, k) for r in own.values()]) for k in ("shape", "scale"))
            noise = f"variance({name})"
            elements[noise] = Elements(noise, "inverse-gamma", shape.reshape(lead), scale.reshape(lead))
            shapes[name] = (*lead, len(next(iter(own.values())).mean))
        if not rows:
            return ClosedForm(elements)
        sizes = [len(r.mean) for r in rows]
        covariance = block_diag(*(np.linalg.inv(r.precision) for r in rows))
        # every regression is scaled by its own variance, which stand in the same order
        root = np.repeat(np.arange(len(rows)), sizes)
        mean = np.concatenate([r.mean for r in rows])
        return ClosedForm(elements, Normals(shapes, mean, covariance, root, np.zeros(len(mean), bool)))

    def to_pandas(self) -> "pd.DataFrame":
        """Return mean, standard deviation and a 95 % interval of every parameter, by its printed name."""
        rows = {}
        for name in self.names:
            low, high = super().interval(name, 0.95)
            columns = self.mean(name), self.sd(name), low, high
            for at in np.ndindex(*self.form.shape(name)):
                rows[element_name(name, at)] = [float(np.asarray(c)[at]) for c in columns]
        return pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "sd", "low", "high"])

    def alpha(self, name: str) -> Array:
        """Return the Dirichlet parameters of a table, axes `(*parents, child)`."""
        self._network.variable(name)
        if name not in self._alphas:
            raise InvalidArgument(f"{name!r} has no table with a Dirichlet posterior")
        return self._alphas[name]

    def interval(self, name: str, level: float = 0.95, **states: Any) -> "pd.DataFrame":  # type: ignore[override]
        """Return credible intervals of the bias and the weights of a number, for named states of discrete parents."""
        check_level("level", level)
        node: Any = self._network[name]
        if name not in self.regressions:
            raise InvalidArgument(f"{name!r} is no number with a posterior; see alpha() for tables")
        if set(states) != {v.name for v in node.discrete}:
            raise InvalidArgument(
                f"{name!r} has a regression for each state of {[v.name for v in node.discrete]}"
            )
        at = tuple(v.index(states[v.name]) for v in node.discrete)
        low, high = (end[at] for end in super().interval(name, level))
        index = ["bias", *(v.name for v in node.continuous)]
        return pd.DataFrame({"low": low, "high": high}, index=index)

    @property
    def log_evidence(self) -> float:
        """The log density of the numbers in the data given their parents, with all parameters integrated out."""
        return float(sum(r.log_evidence for own in self.regressions.values() for r in own.values()))

    def sample(self, n: int = 1, seed: Seed = None) -> list[Any]:  # type: ignore[override]
        """Return `n` networks drawn from the posterior."""
        _whole(n)
        rng = generator(seed)
        return [self._drawn(rng) for _ in range(n)]

    def _drawn(self, rng: np.random.Generator) -> DirectedModel:
        twin = self._network.copy()
        tables: dict[str, Conditional] = {}
        for name, own in self.regressions.items():
            node: Any = self._network[name]
            bias, weights, variance = (np.array(a) for a in (node.bias, node.weights, node.variance))
            for at, found in own.items():
                coefficients, variance[at] = found.draw(rng)
                bias[at], weights[at] = coefficients[0], coefficients[1:]
            tables[name] = GaussianConditional(
                node.variable, node.discrete, node.continuous, bias, weights, variance
            )
        for name, alpha in self._alphas.items():
            gammas = rng.standard_gamma(alpha) + 1e-300
            node = self._network[name]
            tables[name] = ConditionalTable.of(
                node.variable, node.parents, gammas / gammas.sum(axis=-1, keepdims=True)
            )
        twin.install({n: twin.variable(n) for n in twin.variables}, tables)
        return twin


def _whole(n: object) -> None:
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise InvalidArgument(f"n is a number of networks, at least one, not {n!r}")
