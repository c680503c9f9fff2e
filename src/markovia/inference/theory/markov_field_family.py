"""Discrete Markov random fields seen as an exponential family.

    p(x) = h(x) exp(theta . F(x) - A(theta))

The features F are the sufficient statistics, the weights theta the natural parameters, the log partition function A = log Z
comes from the exact engine, and the mean parameters are the expected features: for indicator features the marginals of
single variables and of edges. h is 1 where the model is possible at all and 0 elsewhere. Indicator features are
overcomplete (the indicators of one variable sum to one), so several weights name the same distribution.
Cost: one exact query a group of variables; covariance, entropy bounds and duals by listing where there are at most 16,384
configurations. Reference: Wainwright & Jordan (2008), section 3.3.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.distributions.checked_numbers import finite_numbers
from markovia.factors.distributions.exponential_family import (
    ExponentialFamily,
    average_statistics,
    newton_to_natural,
)
from markovia.factors.potentials.log_linear import Feature, LogLinear
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.choosing.auto import Auto
from markovia.inference.engine import Engine
from markovia.inference.exact.junction_tree import JunctionTree
from markovia.inference.problem import Problem
from markovia.inference.theory.marginal_polytope import _codes, _features, _support, conjugate_dual
from markovia.inference.theory.variational_theory import as_problem
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator

_MOST_FEATURES = 1 << 16
_FEW = 12


class MarkovField(ExponentialFamily):
    """A log-linear Markov field as a member of its exponential family.

    Parameters
    ----------
    model
        A `LogLinear`: its features are the statistics. Or any discrete model with factors: its statistics are the indicators
        of the entries of every factor, its natural parameters their logarithms; entries of zero belong to h.

    Examples
    --------
    >>> from markovia import Feature, Variable
    >>> from markovia.local import LogLinear
    >>> x, y = Variable("x", 2), Variable("y", 2)
    >>> field = MarkovField(LogLinear([Feature(x, [0, 1]), Feature([x, y], [[1, 0], [0, 1]], "same")], [1.0, 0.5]))
    >>> round(field.log_partition(), 6), field.moments().round(6).tolist()
    (2.287339, [0.731059, 0.622459])
    >>> bool(np.allclose(field.with_moments(field.moments()).natural(), [1.0, 0.5]))
    True
    """

    minimal: ClassVar[bool] = False
    _mean_space = "they are outside the marginal polytope, or on its boundary"

    def __init__(self, model: Any) -> None:
        self._base: tuple[Factor, ...] = ()
        if isinstance(model, LogLinear):
            self.log_linear = model
        else:
            self.log_linear, self._base = _indicators_of(as_problem(model))

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(v.name for v in self.log_linear.variables)

    @property
    def n_parameters(self) -> int:
        """The number of features."""
        return len(self.log_linear.features)

    @property
    def n_free(self) -> int:
        """The rank of the features and a constant, less one (small models only)."""
        held = self._listed()
        return int(np.linalg.matrix_rank(np.column_stack([np.ones(len(held)), held]))) - 1

    def natural(self) -> Array:
        """Return the weights."""
        return self.log_linear.weights

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the same features under other weights."""
        made = object.__new__(type(self))
        made.log_linear, made._base = LogLinear(self.log_linear.features, self._eta(eta)), self._base
        return made

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return log Z, by the exact engine."""
        return Auto().log_mass(self._problem(eta))

    def moments(self, eta: ArrayLike | None = None) -> Array:
        """Return the expected features, by the exact engine."""
        problem = self._problem(eta)
        scopes = {frozenset(v.name for v in i[0]) for f in self.log_linear.features for i in f.instances}
        # one calibrated tree answers many small questions; a few are quicker without compiled code
        engine: Engine = JunctionTree() if len(scopes) > _FEW else Auto()
        known: dict[frozenset[str], Factor] = {}

        def ask(names: tuple[str, ...]) -> Factor:
            key = frozenset(names)
            if key not in known:
                known[key] = engine.joint(problem, list(names)).tables[0]
            return known[key]

        return self.log_linear.expected_features(ask)

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the covariance of the features, by listing the configurations.

        Raises
        ------
        TooLarge
            If there are more than 16,384.
        """
        held = self._listed()
        scores = held @ self._eta(eta)
        p = np.exp(scores - scores.max())
        p /= p.sum()
        centred = held - p @ held
        return np.asarray((centred * p[:, None]).T @ centred)

    def sufficient_statistics(self, x: Any) -> Array:
        """Return F(x) of one assignment (a mapping from names to states), or a row for each entry of columns of states."""
        codes, one = self._read(x)
        size = len(next(iter(codes.values()))) if codes else 1
        found = np.zeros((size, self.n_parameters))
        for j, feature in enumerate(self.log_linear.features):
            for variables, table in feature.instances:
                found[:, j] += table[tuple(codes[v.name] for v in variables)]
        return found[0] if one else found

    def log_base_measure(self, x: Any) -> Any:
        """Return 0 (or a constant factor of the model) where the model is possible, minus infinity elsewhere."""
        codes, one = self._read(x)
        size = len(next(iter(codes.values()))) if codes else 1
        logs = np.zeros(size)
        with np.errstate(divide="ignore"):
            for factor in self._base:
                logs += np.log(factor.values[tuple(codes[n] for n in factor.names)])
        return float(logs[0]) if one else logs

    def sample(self, n: int, seed: Seed = None) -> dict[str, Array]:
        """Draw n configurations exactly; one array of states a variable."""
        drawn = Auto().sample(self._problem(None), n, generator(seed))
        return {v.name: np.array(v.states, dtype=object)[drawn[v.name]] for v in self.log_linear.variables}

    def fit(self, x: Any, weights: ArrayLike | None = None) -> Self:
        """Return the maximum-likelihood member: the weights whose expected features are the averages over the data.

        Raises
        ------
        InvalidArgument
            If the averages lie on the boundary of the marginal polytope, where no finite weights match them.
        """
        return self.with_moments(average_statistics(self, x, weights))

    def conjugate_dual(self, mu: ArrayLike | None = None) -> float:
        """Return A*(mu): minus the largest entropy of a distribution with these expected features."""
        if mu is None or self._base:
            return super().conjugate_dual(mu)
        return float(conjugate_dual(self.log_linear, self._mu(mu)))

    @property
    def mean(self) -> Any:
        """Not defined: states are labels. The expected features are `moments()`."""
        raise InvalidArgument(
            "the states of a Markov field are labels without a mean; use moments() for expected features"
        )

    @property
    def variance(self) -> Any:
        """Not defined: states are labels. The covariance of the features is `covariance()`."""
        raise InvalidArgument(
            "the states of a Markov field are labels; use covariance() for that of the features"
        )

    def kl(self, other: ExponentialFamily) -> float:
        """Return KL(self || other) for another member over the same features."""
        if isinstance(other, MarkovField) and other.log_linear.features != self.log_linear.features:
            raise InvalidArgument("the divergence needs two Markov fields over the same features")
        return super().kl(other)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _problem(self, eta: ArrayLike | None) -> Problem:
        model = self.log_linear if eta is None else LogLinear(self.log_linear.features, self._eta(eta))
        variables = {v.name: v for v in model.variables}
        return Problem(variables, [*model.factors(), *self._base], {}, memory={})

    def _listed(self) -> Array:
        """Return the features of every possible configuration."""
        found = _features(self.log_linear)
        if not self._base:
            return found
        codes = dict(zip(self.variables, _codes(self.log_linear.variables), strict=True))
        possible = np.ones(len(found), dtype=bool)
        for factor in self._base:
            possible &= factor.values[tuple(codes[n] for n in factor.names)] > 0
        return found[possible]

    def _expected_log_base(self) -> float:
        return float(sum(np.log(float(f.values)) for f in self._base if not f.names))

    def _realisable(self, mu: Array) -> bool:
        held = _support(self._listed(), mu)
        return held is not None and bool(np.all(held))

    def _to_natural(self, mu: Array) -> Array:
        return newton_to_natural(self, mu, np.zeros(self.n_parameters))

    def _read(self, x: Any) -> tuple[dict[str, Any], bool]:
        """Return state codes by name, and whether they came as one assignment."""
        if not isinstance(x, Mapping) and not hasattr(x, "columns"):
            raise InvalidArgument(
                "values of a Markov field are a mapping from names to states, or columns of states (a DataFrame or a dict)"
            )
        given = {str(n): x[n] for n in (x.columns if hasattr(x, "columns") else x)}
        known = {v.name: v for v in self.log_linear.variables}
        for name in given:
            if name not in known and isinstance(x, Mapping):
                raise UnknownVariable(name, known)
        for name in known:
            if name not in given:
                raise InvalidArgument(f"the assignment has no state for {name!r}")
        one = all(np.ndim(given[n]) == 0 for n in known)
        for name in known:
            if not one and np.ndim(given[name]) != 1:
                raise InvalidArgument(
                    f"some variables have a column of states, but {name!r} has {given[name]!r}"
                )
        codes = {n: _coded(v, [given[n]] if one else given[n]) for n, v in known.items()}
        if len({len(c) for c in codes.values()}) > 1:
            raise InvalidArgument("the columns have different lengths")
        return codes, one

    def __repr__(self) -> str:
        return f"MarkovField({self.n_parameters} features of {len(self.log_linear.variables)} variables)"


def _coded(variable: Variable, states: Any) -> Any:
    return np.array(
        [variable.index(s.item() if isinstance(s, np.generic) else s) for s in states], dtype=np.intp
    )


def _indicators_of(problem: Problem) -> tuple[LogLinear, tuple[Factor, ...]]:
    """Return the indicator features of all positive entries with their logs, and 0/1 factors for the zeros."""
    factors = problem.reduced(None)
    size = sum(int(f.values.size) for f in factors)
    if size > _MOST_FEATURES:
        raise InvalidArgument(
            f"the factors have {size:,} entries, a feature each; at most {_MOST_FEATURES:,} are allowed"
        )
    features, weights, base = [], [], []
    for factor in factors:
        values = np.asarray(factor.values)
        if not factor.names:
            base.append(factor)
            continue
        if not np.all(values > 0):
            base.append(Factor.of(factor.variables, (values > 0).astype(np.float64)))
        for at in np.argwhere(values > 0):
            table = np.zeros(values.shape)
            table[tuple(at)] = 1.0
            states = ", ".join(f"{v.name}={v.states[i]!r}" for v, i in zip(factor.variables, at, strict=True))
            features.append(Feature(factor.variables, table, f"[{states}]"))
            weights.append(float(np.log(values[tuple(at)])))
    return LogLinear(features, finite_numbers(weights, "the log potentials")), tuple(base)
