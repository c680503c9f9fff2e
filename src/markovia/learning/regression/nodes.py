"""A fitted generalised linear model as the conditional distribution of a node with discrete parents.

The linear predictor is a sum of what each parent contributes, so the distribution has independence of causal influence (see
`factors.local_models`): any number of parents, and a dense table only when somebody asks for one. Logistic and softmax
models become the library's own `Logistic` and `Softmax`; other links of a two-class model and truncated Poisson counts have
distributions of their own here (files keep them as tables). A column of X is either a parent with numeric states, or a
dummy column for one state of a parent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable, UnsupportedModel, check_known
from markovia.factors.local_models.local_model import CausalIndependence, Contribution, Recipe
from markovia.factors.local_models.logistic import Logistic, LogisticConditional, Softmax, SoftmaxConditional
from markovia.factors.tables.variable import State, Variable
from markovia.learning.regression.families import LINKS, family_and_link
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count

Weights = dict[str, float | dict[State, float]]


def node_of(model: Any, columns: Any, max_count: int | None) -> Recipe:
    """Return the local model of a fitted GLM; see `GLM.as_conditional`."""
    places = _places(model, columns)
    link = "" if model.family == "categorical" else family_and_link(model.family, model.link)[1].name
    if max_count is not None and model.family != "poisson":
        raise InvalidArgument(f"max_count= is for the family 'poisson', not {model.family!r}")
    if model.family == "categorical":
        states = _states(model.classes_)
        weights = {s: _weights(places, row) for s, row in zip(states, model.coef_, strict=True)}
        bias = {s: float(b) for s, b in zip(states, model.intercept_, strict=True)}
        return FittedSoftmax(weights, bias, states)
    own = _weights(places, np.ravel(model.coef_))
    bias_ = float(np.ravel(model.intercept_)[0])
    if model.family == "bernoulli":
        states = _states(model.classes_)
        if link == "logit":
            return FittedLogistic(own, bias_, states)
        if LINKS[link].tails is not None:
            return LinkedNode(own, bias_, link, states)
        raise UnsupportedModel(
            f"the link {link!r} does not keep probabilities between 0 and 1; use logit, probit or cloglog"
        )
    if model.family == "poisson":
        if max_count is None:
            raise UnsupportedModel(
                "a Poisson count has no largest value, and nodes have finitely many states; give max_count=, from which on "
                "all counts become one last state"
            )
        check_count("max_count", max_count, 1)
        return CountNode(own, bias_, link, int(max_count))
    raise UnsupportedModel(
        f"a {model.family} response is not discrete, and nodes of a network are; only bernoulli, categorical and poisson "
        "models can be nodes"
    )


class FittedLogistic(Logistic):
    """A logistic node that knows its classes."""

    def __init__(self, weights: Mapping[str, Any], bias: float, states: Sequence[State]) -> None:
        super().__init__(weights, bias)
        self.states = tuple(states)

    def default_states(self) -> Sequence[State]:
        """Return the classes the model was fitted to."""
        return list(self.states)

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> LogisticConditional:
        """Return the distribution; the child's states are the classes, in either order."""
        _check_states(variable, self.states)
        if variable.states == self.states:
            return super().bind(variable, parents)
        turned = {
            n: {s: -v for s, v in w.items()} if isinstance(w, Mapping) else -w
            for n, w in self.weights.items()
        }
        return Logistic(turned, -self.bias).bind(variable, parents)


class FittedSoftmax(Softmax):
    """A softmax node that knows its classes."""

    def __init__(
        self, weights: Mapping[Any, Mapping[str, Any]], bias: Mapping[Any, float], states: Sequence[State]
    ) -> None:
        super().__init__(weights, bias)
        self.states = tuple(states)

    def default_states(self) -> Sequence[State]:
        """Return the classes the model was fitted to."""
        return list(self.states)

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> SoftmaxConditional:
        """Return the distribution; the child's states are the classes, in any order."""
        _check_states(variable, self.states)
        return super().bind(variable, parents)


class _Scored(CausalIndependence):
    """P(child | parents) as a function of one linear predictor."""

    def __init__(
        self,
        variable: Variable,
        parents: tuple[Variable, ...],
        logistic: LogisticConditional,
        link: str,
    ) -> None:
        start, contributions = logistic.scores()
        super().__init__(variable, parents, contributions, start)
        self.link = link
        self._n_parameters = logistic.n_parameters

    @property
    def n_parameters(self) -> int:
        """The bias and the free weights."""
        return self._n_parameters


class LinkedConditional(_Scored):
    """A child of two states with another link than the logit."""

    def _finish(self, combined: Contribution) -> Array:
        tails = LINKS[self.link].tails
        assert tails is not None
        up, down, _ = tails(combined[..., 0])
        return np.stack([down, up], axis=-1)


class LinkedNode(FittedLogistic):
    """The recipe of a `LinkedConditional`."""

    kind = "generalised linear model"

    def __init__(self, weights: Mapping[str, Any], bias: float, link: str, states: Sequence[State]) -> None:
        super().__init__(weights, bias, states)
        self.link = link

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> Any:
        """Return the distribution; the child's states are the classes in their order."""
        if variable.states != self.states:
            raise InvalidTable(
                f"{variable.name!r} must have the states {', '.join(map(repr, self.states))} in this order"
            )
        return LinkedConditional(variable, parents, super().bind(variable, parents), self.link)


class CountConditional(_Scored):
    """Poisson counts whose last state collects all from `max_count` on."""

    def _finish(self, combined: Contribution) -> Array:
        from scipy.special import gammainc, gammaln, xlogy

        mean = LINKS[self.link].inverse(combined[..., :1])
        if not np.all(mean > 0):
            raise InvalidTable(
                f"the link {self.link!r} gives {self.variable.name!r} a mean count that is not positive"
            )
        largest = len(self.variable) - 1
        k = np.arange(largest)
        logs = xlogy(k, mean) - mean - gammaln(k + 1.0)
        with np.errstate(divide="ignore"):
            tail = np.log(gammainc(largest, mean))  # P(count >= largest)
        return np.asarray(np.concatenate([logs, tail], axis=-1))


class CountNode(Recipe):
    """The recipe of a `CountConditional`; the states are 0, 1, ..., and one such as "5+"."""

    kind = "generalised linear model"

    def __init__(self, weights: Mapping[str, Any], bias: float, link: str, max_count: int) -> None:
        self.weights, self.bias, self.link, self.max_count = dict(weights), bias, link, max_count

    @property
    def parent_names(self) -> tuple[str, ...]:
        """The parents that have a weight."""
        return tuple(self.weights)

    def default_states(self) -> Sequence[State]:
        """Return the counts below `max_count` and the label of all others."""
        return [*range(self.max_count), f"{self.max_count}+"]

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> CountConditional:
        """Return the distribution."""
        if len(variable) != self.max_count + 1:
            raise InvalidTable(
                f"{variable.name!r} needs {self.max_count + 1} states, the counts below {self.max_count} and one for all "
                f"others, not {len(variable)}"
            )
        scored = Logistic(self.weights, self.bias).bind(Variable(variable.name, 2), parents)
        return CountConditional(variable, parents, scored, self.link)

    def __repr__(self) -> str:
        return (
            f"CountNode({self.weights}, bias={self.bias:g}, link={self.link!r}, max_count={self.max_count})"
        )


def _places(model: Any, columns: Any) -> list[tuple[str, Any]]:
    """Return for each column of X its parent and, for a dummy, the state as a one-tuple (None for a number)."""
    names = getattr(model, "feature_names_in_", None)
    if columns is None:
        if names is None:
            raise InvalidArgument(
                "the model was fitted to columns without names; give columns=, a parent or a pair (parent, state) for each"
            )
        given: list[Any] = [str(n) for n in names]
    elif isinstance(columns, Mapping):
        if names is None:
            raise InvalidArgument("the model was fitted to columns without names; give columns= as a list")
        known = [str(n) for n in names]
        check_known(columns, known, "the columns of X")
        given = [columns.get(n, n) for n in known]
    else:
        given = list(columns)
        if len(given) != model.n_features_in_:
            raise InvalidArgument(
                f"columns= needs {model.n_features_in_} entries, one a column of X, not {len(given)}"
            )
    places: list[tuple[str, Any]] = []
    for entry in given:
        if isinstance(entry, str):
            places.append((entry, None))
        elif isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
            places.append((entry[0], (entry[1],)))
        else:
            raise InvalidArgument(f"a column is a parent's name or a pair (parent, state), not {entry!r}")
    return places


def _weights(places: list[tuple[str, Any]], coef: Array) -> Weights:
    weights: Weights = {}
    for (name, state), value in zip(places, coef, strict=True):
        if state is None:
            if name in weights:
                raise InvalidArgument(f"{name!r} is both a column of numbers and another column of X")
            weights[name] = float(value)
            continue
        own = weights.setdefault(name, {})
        if not isinstance(own, dict):
            raise InvalidArgument(f"{name!r} is both a column of numbers and a dummy column")
        if state[0] in own:
            raise InvalidArgument(f"two columns stand for the state {state[0]!r} of {name!r}")
        own[state[0]] = float(value)
    return weights


def _states(classes: Any) -> list[State]:
    found = []
    for c in classes:
        plain = c.item() if isinstance(c, np.generic) else c
        if isinstance(plain, float) and plain.is_integer():
            plain = int(plain)
        if not isinstance(plain, str | int):
            raise UnsupportedModel(
                f"the class {plain!r} is no state: states are strings, integers and booleans"
            )
        found.append(plain)
    return found


def _check_states(variable: Variable, states: Sequence[State]) -> None:
    if set(variable.states) != set(states) or len(variable) != len(states):
        raise InvalidTable(
            f"the model was fitted to the classes {', '.join(map(repr, states))}, but {variable.name!r} has the states "
            f"{', '.join(map(repr, variable.states))}"
        )
