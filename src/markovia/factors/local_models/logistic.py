"""Logistic and softmax children: a generalised linear model of the parents' states.

    logistic   P(y = yes | x) = 1 / (1 + exp(-(bias + sum_i w_i(x_i))))
    softmax    P(y = k | x)   proportional to exp(bias_k + sum_i w_ki(x_i))

A weight is a number (times the value of an integer or boolean state; for two other states the first counts 0,
the second 1) or a mapping from states to numbers (a state left out has weight 0). The parameters are linear
in the number of parents and so is the time for a row.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.local_models.local_model import (
    CausalIndependence,
    Contribution,
    Recipe,
    check_mapping,
    number,
)
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array

Weight = float | Mapping[Any, float]


class SoftmaxConditional(CausalIndependence):
    """P(child | parents) of a softmax: contributions are scores, one a child state."""

    def __init__(
        self,
        variable: Variable,
        parents: tuple[Variable, ...],
        contributions: Sequence[Contribution],
        start: Contribution,
        n_parameters: int,
    ) -> None:
        super().__init__(variable, parents, contributions, start)
        self._n_parameters = n_parameters

    @property
    def n_parameters(self) -> int:
        """(Child states - 1) times the free weights of one: the bias, a number 1, a mapping states - 1."""
        return self._n_parameters

    def scores(self) -> tuple[Array, tuple[Array, ...]]:
        """Return the bias and, a parent, the weights of its states: shapes (width,) and (states, width)."""
        return self.start, self.contributions

    def _finish(self, combined: Contribution) -> Array:
        shifted = combined - combined.max(axis=-1, keepdims=True)
        logs: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        return logs


class LogisticConditional(SoftmaxConditional):
    """P(child | parents) of a logistic regression: one score, the log odds of the second child state."""

    def _finish(self, combined: Contribution) -> Array:
        odds = combined[..., 0]
        logs: Array = -np.logaddexp(0.0, np.stack([odds, -odds], axis=-1))
        return logs


class Logistic(Recipe):
    """A binary child whose log odds are a sum of what its parents contribute.

    Parameters
    ----------
    weights
        For each parent a number, or a mapping from its states to numbers.
    bias
        The log odds of the second child state when nothing contributes.

    Examples
    --------
    >>> dose, sex = Variable("dose", [0, 1, 2]), Variable("sex", ["f", "m"])
    >>> cured = Logistic({"dose": 1.5, "sex": {"m": -0.5}}, bias=-1.0)
    >>> p = cured.bind(Variable("cured", ["no", "yes"]), (dose, sex))
    >>> p.row(dose=2, sex="m").round(4).tolist()
    [0.1824, 0.8176]
    """

    kind = "logistic"

    def __init__(self, weights: Mapping[str, Weight], bias: float = 0.0) -> None:
        check_mapping(weights, "Logistic", "{'dose': 1.5, 'sex': {'m': -0.5}}")
        self.weights = dict(weights)
        self.bias = number(bias, "the bias of a logistic")

    @property
    def parent_names(self) -> tuple[str, ...]:
        """The parents that have a weight."""
        return tuple(self.weights)

    def default_states(self) -> Sequence[State]:
        """Return False and True."""
        return [False, True]

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> LogisticConditional:
        """Return the distribution over the given variables."""
        self._check_parents(variable, parents)
        self._check_binary(variable)
        contributions = [_scores(p, self.weights[p.name], variable)[:, None] for p in parents]
        free = 1 + sum(_width(p, self.weights[p.name]) for p in parents)
        return LogisticConditional(variable, parents, contributions, np.array([self.bias]), free)

    def __repr__(self) -> str:
        return f"Logistic({self.weights}, bias={self.bias:g})"


class Softmax(Recipe):
    """A child of several states, each scored by what the parents contribute.

    Parameters
    ----------
    weights
        For each child state a mapping from parents to weights (numbers, or mappings from parent states). A
        child state or parent left out contributes 0; leaving one child state out makes it the reference.
    bias
        For each child state the score when nothing contributes; 0 where left out.

    Examples
    --------
    >>> age = Variable("age", ["young", "old"])
    >>> car = Softmax({"suv": {"age": 1.0}, "van": {"age": {"old": -1.0}}}, bias={"suv": 0.5})
    >>> p = car.bind(Variable("car", ["mini", "suv", "van"]), (age,))
    >>> p.row(age="old").round(4).tolist()
    [0.171, 0.7662, 0.0629]
    """

    kind = "softmax"

    def __init__(
        self, weights: Mapping[Any, Mapping[str, Weight]], bias: Mapping[Any, float] | None = None
    ) -> None:
        example = "{'suv': {'age': 1.0}, 'van': {'age': -1.0}}"
        if not isinstance(weights, Mapping):
            raise InvalidArgument(f"Softmax takes a mapping such as {example}, not {type(weights).__name__}")
        for inner in weights.values():
            check_mapping(inner, "Softmax", example)
        self.weights = {state: dict(inner) for state, inner in weights.items()}
        self.bias = {s: number(b, f"the bias of {s!r} in a softmax") for s, b in (bias or {}).items()}

    @property
    def parent_names(self) -> tuple[str, ...]:
        """The parents that have a weight for some child state."""
        return tuple(dict.fromkeys(name for inner in self.weights.values() for name in inner))

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> SoftmaxConditional:
        """Return the distribution over the given variables."""
        self._check_parents(variable, parents)
        start = np.zeros(len(variable))
        for state, bias in self.bias.items():
            start[variable.index(state)] = bias
        contributions = {p.name: np.zeros((len(p), len(variable))) for p in parents}
        widths = dict.fromkeys(contributions, 0)
        own = {p.name: p for p in parents}
        for state, inner in self.weights.items():
            column = variable.index(state)
            for name, weight in inner.items():
                contributions[name][:, column] = _scores(own[name], weight, variable)
                widths[name] = max(widths[name], _width(own[name], weight))
        free = (len(variable) - 1) * (1 + sum(widths.values()))
        return SoftmaxConditional(variable, parents, list(contributions.values()), start, free)

    def __repr__(self) -> str:
        return f"Softmax({self.weights}, bias={self.bias})"


def _scores(parent: Variable, weight: object, child: Variable) -> Array:
    """Return what each state of the parent contributes."""
    what = f"the weight of {parent.name!r} for {child.name!r}"
    if isinstance(weight, Mapping):
        scores = np.zeros(len(parent))
        for state, value in weight.items():
            scores[parent.index(state)] = number(value, f"{what} at {state!r}")
        return scores
    return number(weight, what) * _numeric(parent)


def state_numbers(parent: Variable) -> Array | None:
    """Return what one weight is multiplied by at each state of a parent; None where states are more than two words."""
    if not any(isinstance(s, str) for s in parent.states):
        return np.array([int(s) for s in parent.states], dtype=np.float64)
    return np.array([0.0, 1.0]) if len(parent) == 2 else None


def _numeric(parent: Variable) -> Array:
    found = state_numbers(parent)
    if found is not None:
        return found
    raise InvalidArgument(
        f"one weight for {parent.name!r} needs integer states or just two; give a mapping from its states "
        f"{', '.join(map(repr, parent.states))} to weights"
    )


def _width(parent: Variable, weight: object) -> int:
    return len(parent) - 1 if isinstance(weight, Mapping) else 1
