"""Linear structural equations that may feed back on each other: x = c + B x + e, with independent Gaussian noises e.

If I - B can be inverted, the equations have one solution for each noise, x = (I - B)^-1 (c + e): the *equilibrium*, a
Gaussian with precision (I - B)' W (I - B), W being one over the noises' variances. A process that updates x over and over
gets there from every start exactly if the spectral radius of B is below one (`stable`). Setting a variable cuts its row
of B; a loop can be stable before and not after. All worlds are functions of the noises, so one network over noises, this
world and the other one answers counterfactuals exactly.
References: Spirtes, *Directed cyclic graphical representations of feedback models*, UAI (1995); Bongers, Forré, Peters and
Mooij, *Foundations of structural causal models with cycles and latent variables*, Annals of Statistics 49 (2021).
Cost: cubic in the variables.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from markovia.errors import InvalidArgument, InvalidGraph, check_known
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.graphs.kinds.named import Names, as_names, need
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior
from markovia.learning.gaussian.covariance_selection import field_moments
from markovia.learning.gaussian.feedback_equations import fit_feedback_equations
from markovia.learning.tables.fit_record import Fit
from markovia.models.gaussian.gaussian_markov_network import GaussianMarkovNetwork
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.checks import numbers
from markovia.runtime.clock import now
from markovia.runtime.seeds import Seed
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd

EXACT = 1e-12
"""A share of a variable's variance that counts as no noise."""
SINGULAR = 1e-12
"""An eigenvalue of B this close to one counts as one."""


class CyclicLinearModel(InNotebooks):
    """Linear equations with noise whose graph may have directed cycles.

    Parameters
    ----------
    weights
        For each variable its parents and their weights, such as `{"price": {"demand": 0.4}, "demand": {"price": -0.9}}`;
        variables without an equation have none.
    intercepts, variances
        By name; 0 and 1 where not given. A variance of 0 makes an equation exact.

    Raises
    ------
    InvalidArgument
        If the equations have no unique solution, or a number is no number.

    Examples
    --------
    >>> market = CyclicLinearModel(
    ...     {"price": {"demand": 0.5, "cost": 1.0}, "demand": {"price": -0.8, "income": 1.0}}, intercepts={"cost": 2.0}
    ... )
    >>> round(market.spectral_radius, 4), market.stable
    (0.6325, True)
    >>> round(market.query("price").mean(), 4), round(market.do({"demand": 0.0}).query("price").mean(), 4)
    (1.4286, 2.0)
    >>> round(market.counterfactual("price", given={"price": 3.0, "demand": 1.0}, do={"demand": 0.0}).mean(), 4)
    2.5
    >>> market.independent("cost", "income"), market.independent("cost", "income", given="price")
    (True, False)
    """

    def __init__(
        self,
        weights: Mapping[str, Mapping[str, float]],
        *,
        intercepts: Mapping[str, float] | None = None,
        variances: Mapping[str, float] | None = None,
    ) -> None:
        if not isinstance(weights, Mapping) or not all(isinstance(own, Mapping) for own in weights.values()):
            raise InvalidArgument(
                "weights map each variable to its parents' weights, such as {'y': {'x': 0.5}, 'x': {}}"
            )
        constants, spreads = intercepts or {}, variances or {}
        parents = [n for own in weights.values() for n in own]
        names = list(dict.fromkeys([*weights, *parents, *constants, *spreads]))
        entries = [[weights.get(n, {}).get(q, 0.0) for q in names] for n in names]
        read = [
            numbers(values, "weights, intercepts and variances are numbers")
            for values in (entries, [constants.get(n, 0.0) for n in names], [spreads.get(n, 1.0) for n in names])
        ]  # fmt: skip
        if not all(np.isfinite(values).all() for values in read):
            raise InvalidArgument("weights, intercepts and variances are finite numbers")
        if (read[2] < 0).any():
            raise InvalidArgument(f"the variance of {names[int(read[2].argmin())]!r} is below zero")
        self._set(_directed(weights, names), *read)

    def _set(self, graph: MixedGraph, weights: Array, intercepts: Array, variances: Array) -> Self:
        """Take over equations, and solve them."""
        self.graph, self.weights = graph, weights.reshape(len(graph), len(graph))
        self.intercepts, self.variances = intercepts, variances
        self.solution = self._cut([])
        self.fit_: Fit | None = None
        return self

    @property
    def variables(self) -> list[str]:
        """The names, in the order of `weights`, `mean` and `covariance`."""
        return self.graph.nodes

    @property
    def mean(self) -> Array:
        """The mean of the equilibrium."""
        return np.asarray(self.solution @ self.intercepts)

    @property
    def covariance(self) -> Array:
        """The covariance of the equilibrium."""
        return np.asarray((self.solution * self.variances) @ self.solution.T)

    @property
    def spectral_radius(self) -> float:
        """The largest absolute eigenvalue of the weights: by what a deviation shrinks a round, in the long run."""
        return float(np.abs(np.linalg.eigvals(self.weights)).max(initial=0.0))

    @property
    def stable(self) -> bool:
        """Whether updating all variables by their equations, with noises that stay, leads to the equilibrium."""
        return self.spectral_radius < 1.0

    def independent(self, x: Names, y: Names, given: Names = ()) -> bool:
        """Say whether the graph separates x from y: d-separation, which holds for linear equations with cycles too."""
        return self.graph.m_separated(x, y, given)

    def total_effect(self, cause: str, effect: str) -> float:
        """Return by how much the effect's equilibrium moves when the cause is set one higher; its own loops are cut."""
        i, j = self.graph._number(cause), self.graph._number(effect)
        return float(self._cut([i])[j, i])

    def __repr__(self) -> str:
        size = f"{len(self.graph)} variables, {self.graph.n_edges} edges"
        loops = "without cycles" if self.graph.is_acyclic() else "cyclic"
        settled = f"spectral radius {self.spectral_radius:.3g}: {'stable' if self.stable else 'not stable'}"
        return f"CyclicLinearModel({size}, {loops}, {settled})"

    def field(self) -> GaussianMarkovNetwork:
        """Return the equilibrium as a Gaussian Markov network; every noise needs a variance above zero."""
        for i in np.flatnonzero(self.variances == 0):
            raise InvalidArgument(
                f"{self.variables[i]!r} has no noise, so the equilibrium has no precision; use network()"
            )
        left = np.eye(len(self.variables)) - self.weights
        weighted = left / self.variances[:, None]
        pull = weighted.T @ self.intercepts
        return GaussianMarkovNetwork(left.T @ weighted, information=pull, names=self.variables)

    def network(self, do: Mapping[str, float] | None = None) -> BayesianNetwork:
        """Return the equilibrium as a Bayesian network: every variable a linear function of the standardised noises.

        With `do` the variables of the world in which those are set stand beside it, each under its name and a star.
        """
        names, network = self.variables, BayesianNetwork()
        noises: list[str] = []
        for name in names:
            noise = f"e_{name}"
            while noise in names or noise in noises:
                noise += "_"
            noises.append(noise)
            network.add(noise, LinearGaussian(0.0, {}, 1.0))
        spread = np.sqrt(self.variances)
        worlds = [("", self.solution, self.intercepts, spread)]
        if do is not None:
            held, values = self._settings(do)
            constants, left = self.intercepts.copy(), spread.copy()
            constants[held], left[held] = values, 0.0
            worlds.append(("*", self._cut(held), constants, left))
        for mark, solution, constants, scale in worlds:
            for name, row in zip(names, solution, strict=True):
                own = {noise: float(w) for noise, w in zip(noises, row * scale, strict=True) if w != 0.0}
                network.add(name + mark, LinearGaussian(float(row @ constants), own, 0.0))
        return network

    def query(
        self, targets: str | Sequence[str], given: Mapping[str, Any] | None = None
    ) -> GaussianPosterior:
        """Return the equilibrium distribution of some variables given others; exact."""
        found: GaussianPosterior = self.network().query(self._named(targets), given)  # type: ignore[assignment]
        return found

    def sample(self, n: int = 1, seed: Seed = None) -> "pd.DataFrame":
        """Draw n units in equilibrium."""
        return self.network().sample(n, seed=seed)[self.variables]

    def do(self, values: Mapping[str, float]) -> Self:
        """Return the model of the other variables when some are held: their equations no longer count.

        What is left must have one solution; `stable` of the answer says whether it settles there.
        """
        held, settings = self._settings(values)
        kept = [i for i in range(len(self.graph)) if i not in held]
        return type(self)({})._set(
            self.graph.subgraph(self.graph._named(kept)),
            self.weights[np.ix_(kept, kept)],
            self.intercepts[kept] + self.weights[np.ix_(kept, held)] @ settings,
            self.variances[kept],
        )

    def counterfactual(
        self, targets: str | Sequence[str], given: Mapping[str, Any] | None, do: Mapping[str, float]
    ) -> GaussianPosterior:
        """Return what the targets would have been with `do`, for a unit of which the facts `given` are known; exact.

        The unit keeps its noises; the other world is in equilibrium under the equations that are left.
        """
        names = self._named(targets)
        answer: Any = self.network(do).query([f"{n}*" for n in names], given)
        mixture = replace(answer.mixture, numbers=tuple(n.removesuffix("*") for n in answer.mixture.numbers))
        return GaussianPosterior(
            names, mixture, replace(answer.info, note="counterfactual; exact, by shared noises")
        )

    @classmethod
    def from_data(
        cls, graph: DAG | MixedGraph | Mapping[str, Iterable[str]], data: Any, *, weights: Any = None
    ) -> Self:
        """Fit the equations of a graph to rows by maximum likelihood.

        Parameters
        ----------
        graph
            Directed edges, with cycles or without, or a mapping from each variable to its parents.
        data, weights
            Complete rows of numbers in any form, and one number a row or a column's name.

        Returns
        -------
        the model
            `fit_` says whether the search converged, and in `fit_.details["identified"]` whether the covariance determines
            the parameters (at least near the answer): a loop whose variables have no other causes does not.

        Examples
        --------
        >>> truth = CyclicLinearModel({"x": {"y": 0.5, "a": 1.0}, "y": {"x": -0.7, "b": 1.0}})
        >>> learned = CyclicLinearModel.from_data(truth.graph, truth.sample(20_000, seed=0))
        >>> bool(abs(learned.weights - truth.weights).max() < 0.03), learned.fit_.details["identified"]
        (True, True)
        """
        began = now()
        if isinstance(graph, Mapping):
            graph = _directed({n: as_names(own) for n, own in graph.items()}, list(graph))
        need(graph, DAG, MixedGraph)
        mixed = MixedGraph.from_dag(graph) if isinstance(graph, DAG) else graph
        if len(mixed.directed_edges()) < mixed.n_edges:
            raise InvalidGraph(
                "equations are fitted to directed edges; a common cause that is not seen has none"
            )
        names = mixed.nodes
        mean, moments = field_moments(data, names, weights)
        unit = moments.deviations
        place = [(mixed._number(b), mixed._number(a)) for a, b in mixed.directed_edges()]
        row, column = np.array(place, dtype=np.int64).reshape(-1, 2).T
        found = fit_feedback_equations(moments.correlation, row, column)
        if found.noise.min(initial=1.0) < EXACT:
            raise InvalidArgument(
                f"the others determine {names[int(found.noise.argmin())]!r} without noise; leave a variable out"
            )
        entries = found.weights * unit[:, None] / unit
        model = cls({})._set(mixed.copy(), entries, mean - entries @ mean, found.noise * unit**2)
        log_determinant = 2 * found.end.value + 2 * float(np.log(unit).sum())
        model.fit_ = Fit(
            "maximum likelihood", len(moments.rows), moments.total,
            -0.5 * moments.total * (len(names) * (np.log(2 * np.pi) + 1) + log_determinant), {},
            len(row) + 2 * len(names), converged=found.end.converged, iterations=found.end.iterations,
            history=found.end.history, seconds=now() - began, details={"identified": found.identified},
        )  # fmt: skip
        return model

    def _named(self, targets: str | Sequence[str]) -> list[str]:
        return self.graph._named(self.graph._numbers(targets))

    def _settings(self, do: Mapping[str, float]) -> tuple[list[int], Array]:
        """Return the numbers of the variables that are set, and what to."""
        if not isinstance(do, Mapping):
            raise InvalidArgument(f"do= maps variables to numbers, not {do!r}")
        check_known(do, self.variables, "the model")
        if not all(isinstance(v, int | float | np.number) and np.isfinite(v) for v in do.values()):
            raise InvalidArgument("do= sets variables to finite numbers")
        return [self.graph._number(n) for n in do], np.array([*do.values()], dtype=float)

    def _cut(self, held: Sequence[int]) -> Array:
        """Return (I - B)^-1 with the rows of B of some variables cut."""
        weights = self.weights.copy()
        weights[held] = 0.0
        # eigenvalues do not change with the units of the variables
        if np.abs(1.0 - np.linalg.eigvals(weights)).min(initial=1.0) < SINGULAR:
            which = f"with {', '.join(self.graph._named(held))} held the" if held else "the"
            raise InvalidArgument(
                f"{which} equations have no unique solution: a loop feeds back exactly what it gets; change a weight"
            )
        return np.asarray(np.linalg.inv(np.eye(len(weights)) - weights))


def _directed(parents: Mapping[str, Iterable[str]], nodes: list[str]) -> MixedGraph:
    """Return the graph in which each variable has arrows from its parents."""
    edges = [(q, n, Mark.TAIL, Mark.ARROW) for n, own in parents.items() for q in own]
    return MixedGraph(edges, nodes=nodes)
