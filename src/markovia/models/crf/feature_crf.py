"""Conditional random fields with features written as functions: one fixed set of named labels, any cliques.

    P(y | x) = exp( sum_k theta_k f_k(x, y) ) / Z(x),    f_k(x, y) = sum over scopes c of f_k(x, c, y_c)

A feature is a function of the input and of the labels of a few variables, used at one or several places under one
weight. Features are tabulated once an instance; training then takes exact expectations from a clique tree (observed
minus expected features, L-BFGS; the objective is concave). References: Lafferty, McCallum and Pereira (2001); Koller
and Friedman (2009), section 20.3.2. Cost of a gradient: instances times the entries of the cliques. Use it for models
written by hand on few variables; for long chains, trees and images with plain arrays as features `CRF` is much
faster.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import ConvergenceWarning, IncompleteModel, InvalidArgument, check_known, warn_user
from markovia.factors.local_models.local_model import number
from markovia.factors.potentials.log_linear import Feature, LogLinear
from markovia.factors.tables.variable import State, Variable
from markovia.learning.conditional_fields.clique_plan import CliquePlan, clique_plan
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.optimise.minimise import Minimum, minimise
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Penalty, Positive, check_options
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import Estimator

Labelling = Mapping[str, State] | Sequence[State]


class ConditionalFeature:
    """A function of the input and of a few labels, used at one or several places under one weight.

    Parameters
    ----------
    scopes
        The places: names of variables, or a list of tuples of names.
    function
        Called as `function(x, names, *states)` with the input, the names of the place, and a state of each.
    name
        How the feature is called in print.

    Examples
    --------
    >>> differs = ConditionalFeature([("a", "b"), ("b", "c")], lambda x, at, y, z: float(y != z), "differs")
    >>> differs
    ConditionalFeature('differs', 2 places)
    """

    def __init__(
        self,
        scopes: Iterable[str | Sequence[str]] | str,
        function: Callable[..., float],
        name: str = "",
    ) -> None:
        if not callable(function):
            raise InvalidArgument(
                f"a feature's function is called with x, names and states; {function!r} cannot be called"
            )
        listed = [scopes] if isinstance(scopes, str) else list(scopes)
        self.scopes = tuple((s,) if isinstance(s, str) else tuple(s) for s in listed)
        if not self.scopes or not all(self.scopes):
            raise InvalidArgument("a feature needs at least one place, and a place at least one variable")
        for scope in self.scopes:
            if len(set(scope)) != len(scope):
                raise InvalidArgument(f"a feature's place names a variable twice: {scope}")
        self.function = function
        self.name = name or getattr(function, "__name__", "feature")

    def table(self, x: Any, variables: Sequence[Variable]) -> Array:
        """Return the values at one place, one axis a variable."""
        names = tuple(v.name for v in variables)
        found = np.empty([len(v) for v in variables])
        for at in np.ndindex(*found.shape):
            states = tuple(v.states[i] for v, i in zip(variables, at, strict=True))
            found[at] = number(self.function(x, names, *states), f"the feature {self.name!r} at {states}")
        return found

    def __repr__(self) -> str:
        places = len(self.scopes)
        return f"ConditionalFeature({self.name!r}, {places} place{'s' if places > 1 else ''})"


@dataclass(eq=False, repr=False)
class FeatureCRF(Estimator):
    """A conditional random field over named variables with features written as functions.

    Parameters
    ----------
    variables
        A mapping from name to states (a list, or a number for `0 ... k-1`).
    features
        The features, one weight each.
    C
        The penalty `||theta||^2 / C`; infinity for none.
    max_iter, tol
        Steps of L-BFGS at most; the gradient, a mean over instances, at which to stop.
    progress
        Whether to show a progress bar.

    Attributes
    ----------
    coef_
        One weight a feature. `training_` says how they were found.

    Examples
    --------
    >>> place = {"y1": 0, "y2": 1, "y3": 2}
    >>> on = ConditionalFeature(list(place), lambda x, at, y: x[place[at[0]]] * y, "x when on")
    >>> differs = ConditionalFeature([("y1", "y2"), ("y2", "y3")], lambda x, at, y, z: float(y != z), "differs")
    >>> crf = FeatureCRF(dict.fromkeys(place, 2), [on, differs]).set_weights([3.0, -2.0])
    >>> x = [0.1, 0.7, 0.3]
    >>> crf.expected_features(x).round(4).tolist()
    [1.0283, 0.1557]
    >>> crf.predict([x])
    [{'y1': 1, 'y2': 1, 'y3': 1}]
    """

    variables: Mapping[str, int | Sequence[State]]
    features: Sequence[ConditionalFeature]
    _: KW_ONLY
    C: Penalty = 10.0
    max_iter: Count = 500
    tol: Positive = 1e-6
    progress: bool | None = None

    def set_weights(self, weights: ArrayLike) -> Self:
        """Take weights that are known; returns the model."""
        self._layout()
        found = np.array(weights, dtype=np.float64)
        if found.shape != (len(self.features),) or not np.all(np.isfinite(found)):
            raise InvalidArgument(
                f"one finite weight a feature is needed, {len(self.features)}, not {weights!r}"
            )
        self.coef_ = found
        return self

    def fit(self, X: Sequence[Any], Y: Sequence[Labelling]) -> Self:  # noqa: N803
        """Learn the weights: maximise the sum of log P(y | x) minus `||theta||^2 / C`."""
        check_options(self)
        if not len(X):
            raise InvalidArgument("there is no instance; give a list with at least one")
        layout = self._layout()
        design, observed = self._design(layout, X, Y)

        def objective(theta: Array) -> tuple[float, Array]:
            value, gradient = _likelihood(layout.plan, design, observed, theta)
            return -value + float(theta @ theta) / self.C, -gradient + 2.0 * theta / self.C

        with Clock(None, self.progress, total=self.max_iter) as clock:
            found = minimise(
                objective,
                np.zeros(len(self.features)),
                height=len(X),
                convex=True,
                max_iter=self.max_iter,
                tol=self.tol,
                clock=clock,
                bar=True,
            )
        if not found.converged:
            warn_user(
                f"training stopped after {found.iterations} steps before it converged; raise max_iter=",
                ConvergenceWarning,
            )
        self.coef_ = found.point
        self.training_: Minimum = found
        return self

    def log_likelihood(self, X: Sequence[Any], Y: Sequence[Labelling], *, penalised: bool = False) -> float:  # noqa: N803
        """Return the sum of log P(y | x) over all instances; with `penalised` less ||weights||^2 / C, which `fit` maximises.

        Examples
        --------
        >>> same = ConditionalFeature([("a", "b")], lambda x, at, a, b: x * (a == b), "same")
        >>> crf = FeatureCRF({"a": 2, "b": 2}, [same], C=1.0).set_weights([0.5])
        >>> X, Y = [1.0, 2.0], [[0, 0], [0, 1]]
        >>> round(crf.log_likelihood(X, Y), 4), round(crf.log_likelihood(X, Y, penalised=True), 4)
        (-3.1736, -3.4236)
        >>> crf.gradient(X, Y).round(4).tolist(), crf.gradient(X, Y, penalised=True).round(4).tolist()
        ([-1.0846], [-2.0846])
        """
        layout, theta = self._layout(), self._weights()
        value, _ = _likelihood(layout.plan, *self._design(layout, X, Y), theta)
        return value - float(theta @ theta) / self.C if penalised else value

    def gradient(self, X: Sequence[Any], Y: Sequence[Labelling], *, penalised: bool = False) -> Array:  # noqa: N803
        """Return the gradient of `log_likelihood` at the present weights: observed minus expected features.

        With `penalised` that of what `fit` maximises, which has `- 2 weights / C` more.
        """
        layout, theta = self._layout(), self._weights()
        _, found = _likelihood(layout.plan, *self._design(layout, X, Y), theta)
        return found - 2.0 * theta / self.C if penalised else found

    def feature_vector(self, x: Any, y: Labelling) -> Array:
        """Return f(x, y): the value of every feature."""
        layout = self._layout()
        found: Array = self._design(layout, [x], [y])[1][0]
        return found

    def expected_features(self, x: Any) -> Array:
        """Return the expectation of every feature under P(y | x)."""
        layout = self._layout()
        design = layout.tabulate(self.features, x)
        _, marginals = layout.plan.marginals(design @ self._weights())
        found: Array = marginals @ design
        return found

    def network(self, x: Any) -> MarkovNetwork:
        """Return the Markov network over the labels of one input, for any question and engine."""
        layout, weights = self._layout(), self._weights()
        features = [
            Feature.tied(
                [
                    Feature([layout.variables[n] for n in s], f.table(x, [layout.variables[n] for n in s]))
                    for s in f.scopes
                ],
                f.name,
            )
            for f in self.features
        ]
        return MarkovNetwork(list(layout.variables.values()), LogLinear(features, weights).factors())

    def predict(self, X: Iterable[Any]) -> list[dict[str, State]]:  # noqa: N803
        """Return a most probable labelling of each input, by name."""
        return [{n: found[n] for n in self.variables} for found in (self.network(x).map() for x in X)]

    def predict_proba(self, X: Iterable[Any]) -> list[dict[str, Array]]:  # noqa: N803
        """Return the marginal distribution of every variable for each input, by name."""
        found = []
        for x in X:
            marginals = self.network(x).marginals()
            found.append({n: np.asarray(marginals[n].values) for n in self.variables})
        return found

    predict_marginals = predict_proba

    def score(self, X: Sequence[Any], Y: Sequence[Labelling]) -> float:  # noqa: N803
        """Return the share of variables that `predict` labels right."""
        return float(np.mean(self._right(X, Y)))

    def score_exact(self, X: Sequence[Any], Y: Sequence[Labelling]) -> float:  # noqa: N803
        """Return the share of instances of which `predict` labels every variable right."""
        return float(np.mean(np.all(self._right(X, Y), axis=1)))

    def _right(self, inputs: Sequence[Any], labels: Sequence[Labelling]) -> Any:
        layout = self._layout()
        truth = np.array([layout.codes(y, g) for g, y in enumerate(labels)])
        found = np.array([layout.codes(y, g) for g, y in enumerate(self.predict(inputs))])
        return truth == found

    def _weights(self) -> Array:
        if not hasattr(self, "coef_"):
            raise IncompleteModel(
                "this FeatureCRF has no weights yet; call fit(X, Y) or set_weights([...]) first"
            )
        return self.coef_

    def _layout(self) -> "_FeatureLayout":
        kept = getattr(self, "_made", None)
        if kept is None or kept[0] is not self.variables or kept[1] is not self.features:
            kept = (self.variables, self.features, _FeatureLayout(self.variables, self.features))
            self._made = kept
        made: _FeatureLayout = kept[2]
        return made

    def _design(
        self, layout: "_FeatureLayout", inputs: Sequence[Any], labels: Sequence[Labelling]
    ) -> tuple[list[Array], Array]:
        """Return the tabulated features of all instances and their observed values."""
        if len(inputs) != len(labels):
            raise InvalidArgument(f"there are {len(inputs)} instances but {len(labels)} labellings")
        codes = [layout.codes(y, g) for g, y in enumerate(labels)]
        design = [layout.tabulate(self.features, x) for x in inputs]
        observed = np.array([d[layout.cells(c)].sum(axis=0) for d, c in zip(design, codes, strict=True)])
        return design, observed


class _FeatureLayout:
    """The factors that features need, one a group of variables, and their clique tree."""

    def __init__(
        self, variables: Mapping[str, int | Sequence[State]], features: Sequence[ConditionalFeature]
    ) -> None:
        if not isinstance(variables, Mapping) or not variables:
            raise InvalidArgument("variables are a mapping from name to states, with at least one")
        if not len(features):
            raise InvalidArgument("a FeatureCRF needs at least one feature")
        self.variables = {n: Variable(n, s) for n, s in variables.items()}
        self.names = list(self.variables)
        place = {n: i for i, n in enumerate(self.names)}
        self.scopes: list[tuple[int, ...]] = []
        self.where: list[list[tuple[int, tuple[str, ...]]]] = []
        slots: dict[tuple[int, ...], int] = {}
        for feature in features:
            used = []
            for scope in feature.scopes:
                check_known(scope, place, f"the feature {feature.name!r}")
                key = tuple(place[n] for n in scope)
                used.append((slots.setdefault(key, len(slots)), scope))
            self.where.append(used)
        self.scopes = list(slots)
        self.cards = [len(v) for v in self.variables.values()]
        sizes = [prod(self.cards[i] for i in s) for s in self.scopes]
        self.starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.plan = clique_plan(self.cards, self.scopes, 2**24)

    def tabulate(self, features: Sequence[ConditionalFeature], x: Any) -> Array:
        """Return the values of all features at all entries of all factors, shape (entries, features)."""
        found = np.zeros((int(self.starts[-1]), len(features)))
        for j, (feature, used) in enumerate(zip(features, self.where, strict=True)):
            for slot, scope in used:
                table = feature.table(x, [self.variables[n] for n in scope])
                found[self.starts[slot] : self.starts[slot + 1], j] += table.ravel()
        return found

    def codes(self, labels: Labelling, g: int) -> list[int]:
        if isinstance(labels, Mapping):
            check_known(labels, self.variables, f"the labels of instance {g}")
            missing = [n for n in self.names if n not in labels]
            if missing:
                raise InvalidArgument(f"instance {g} has no label for {missing[0]!r}")
            listed = [labels[n] for n in self.names]
        else:
            listed = list(labels)
            if len(listed) != len(self.names):
                raise InvalidArgument(
                    f"instance {g} has {len(listed)} labels for {len(self.names)} variables"
                )
        plain = [s.item() if isinstance(s, np.generic) else s for s in listed]
        return [v.index(s) for v, s in zip(self.variables.values(), plain, strict=True)]

    def cells(self, codes: Sequence[int]) -> list[int]:
        """Return the entry of each factor that a labelling takes."""
        found = []
        for slot, scope in enumerate(self.scopes):
            at = 0
            for i in scope:
                at = at * self.cards[i] + codes[i]
            found.append(int(self.starts[slot]) + at)
        return found


def _likelihood(
    plan: CliquePlan, design: Sequence[Array], observed: Array, theta: Array
) -> tuple[float, Array]:
    """Return the log likelihood and its gradient."""
    value, gradient = float(observed.sum(axis=0) @ theta), observed.sum(axis=0)
    for table in design:
        mass, marginals = plan.marginals(table @ theta)
        value -= mass
        gradient = gradient - marginals @ table
    return value, gradient
