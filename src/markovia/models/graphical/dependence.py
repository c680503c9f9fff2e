"""What two variables of a model tell about each other, and climbing to a probable configuration.

Information, correlation and kernel dependence are read off exact joint posteriors, so they are those of the model, not
estimates from data; for data see `markovia.learning`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import State
from markovia.inference.engine import Engine
from markovia.inference.gaussian import mixture_questions
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior
from markovia.inference.local_search.icm import ConditionalModes, Selection, iterated_conditional_modes
from markovia.inference.posterior import Posterior
from markovia.learning.association.kernel_measures_of_tables import hsic_of_table
from markovia.models.graphical.arguments import Given, list_of_names
from markovia.models.graphical.base import GraphicalModel
from markovia.runtime.array_types import Array
from markovia.runtime.keyword_advice import guided
from markovia.runtime.seeds import generator


class DependenceVerbs(GraphicalModel):
    """What variables of a model tell about each other."""

    @guided
    def mutual_information(
        self,
        x: str | Iterable[str],
        y: str | Iterable[str],
        given: str | Iterable[str] = (),
        base: float | None = None,
        engine: str | Engine = "auto",
    ) -> float:
        """Return the mutual information I(x; y | given) under the model, in nats unless a base is given.

        Here `given` names the variables conditioned on, over all their states, as in `independent`.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.sprinkler()
        >>> round(bn.mutual_information("sprinkler", "rain"), 6)
        0.035022
        >>> round(bn.mutual_information("sprinkler", "rain", given="cloudy"), 6)
        0.0
        """
        groups = [list_of_names(n, what) for n, what in ((x, "x"), (y, "y"), (given, "given="))]
        joint: Any = self.query([n for group in groups for n in group], engine=engine)
        if isinstance(joint, Posterior):
            return joint.factor().mutual_information(*groups, base=base)
        return mixture_questions.mutual_information(joint, *groups) / (
            1.0 if base is None else float(np.log(base))
        )

    @guided
    def correlation(self, x: str, y: str, given: Given = None, engine: str | Engine = "auto") -> float:
        """Return the Pearson correlation of two variables with numeric states, given evidence."""
        table = self.query([x, y], given=given, engine=engine)
        if not isinstance(table, Posterior):
            return _correlation(_covariance(table, [x, y]), x, y)
        a, b = table.marginal(x), table.marginal(y)
        scale = (a.var() * b.var()) ** 0.5
        if scale == 0.0:
            raise InvalidArgument(f"{x!r} or {y!r} is constant, so they have no correlation")
        mean = table.factor().expectation(lambda u, v: float(u) * float(v))
        return float((mean - a.mean() * b.mean()) / scale)

    @guided
    def partial_correlation(
        self, x: str, y: str, given: str | Iterable[str], engine: str | Engine = "auto"
    ) -> float:
        """Return the correlation of two variables after linear regression of both on the given ones.

        All states must be numbers; the moments are those of the model.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork("a->b->c", tables="random", seed=1)
        >>> round(abs(bn.partial_correlation("a", "c", given="b")), 6)
        0.0
        """
        others = list_of_names(given, "given=")
        table = self.query([x, y, *others], engine=engine)
        if not isinstance(table, Posterior):
            return _correlation(_left(_covariance(table, [x, y, *others])), x, y)
        numbers = [np.array([_number(v.name, s) for s in v.states]) for v in table.variables]
        grid = np.stack([m.ravel() for m in np.meshgrid(*numbers, indexing="ij")])
        covariance = np.cov(grid, aweights=table.values.ravel(), ddof=0)
        left = _left(covariance)
        scale = float(np.sqrt(max(0.0, left[0, 0] * left[1, 1])))
        if scale <= 1e-12 * float(np.sqrt(covariance[0, 0] * covariance[1, 1]) or 1.0):
            raise InvalidArgument(
                f"nothing of {x!r} or {y!r} is left once {others} are known; no correlation"
            )
        return float(left[0, 1]) / scale

    @guided
    def hsic(self, x: str, y: str, given: Given = None, engine: str | Engine = "auto") -> float:
        """Return the Hilbert-Schmidt independence criterion of two variables with the equal-states kernel.

        It is zero exactly if they are independent (given the evidence), whatever the kind of dependence.
        """
        return hsic_of_table(self.query([x, y], given=given, engine=engine).values)

    @guided
    def conditional_modes(
        self,
        start: Mapping[str, State] | None = None,
        given: Given = None,
        selection: Selection = "cyclic",
        seed: int | None = None,
    ) -> ConditionalModes:
        """Climb to a configuration that no single change improves (iterated conditional modes).

        Parameters
        ----------
        start
            A state for every unobserved variable; drawn at random by default.
        given
            Evidence as in `query`.
        selection
            "cyclic", "random", "greedy", or the names to update, in order.
        seed
            Seed of the random start and order.

        Examples
        --------
        >>> import markovia as mk
        >>> asia = mk.examples.asia()
        >>> found = asia.conditional_modes(asia.map(given={"xray": "yes"}), given={"xray": "yes"})
        >>> found.states["either"]
        'yes'
        """
        problem = self._problem(given)
        if start is None:
            rng = generator(seed)
            start = {
                n: self._variables[n].states[rng.integers(len(self._variables[n]))] for n in problem.free
            }
        return iterated_conditional_modes(problem, start, selection, seed)


def _covariance(joint: Any, names: list[str]) -> Array:
    """Return the covariance matrix of numbers from their joint posterior."""
    if not isinstance(joint, GaussianPosterior) or joint.mixture.states:
        raise InvalidArgument(f"a correlation here is between numbers, and not all of {names} are")
    found: Array = joint.covariance(names)
    return found


def _left(covariance: Array) -> Array:
    """Return the covariance of the first two variables after regression on the others."""
    inner = covariance[2:, 2:]
    return np.asarray(covariance[:2, :2] - covariance[:2, 2:] @ np.linalg.pinv(inner) @ covariance[2:, :2])


def _correlation(covariance: Array, x: str, y: str) -> float:
    scale = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
    if scale <= 0.0:
        raise InvalidArgument(f"{x!r} or {y!r} is constant, so they have no correlation")
    return float(covariance[0, 1]) / scale


def _number(name: str, state: State) -> float:
    if isinstance(state, str):
        raise InvalidArgument(f"the states of {name!r} are not numbers, so it has no correlation")
    return float(state)
