"""Multiplicative utilities of attributes: what one is worth depends on how well the others do.

    1 + K u = prod_i (1 + K k_i u_i),   with K from   1 + K = prod_i (1 + K k_i)

Attributes of 0 to 1, the worst and the best of each, make a total of 0 to 1. Where the weights sum to one K is zero and the
form additive; above one, attributes stand in for each other, below one they complement each other.
Reference: Keeney and Raiffa (1976), "Decisions with Multiple Objectives", chapter 6 (mutual utility independence).
"""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.checks import Kind, check

ADDITIVE = 1e-12
"""How far from one weights may sum and still be additive."""


class Multiplicative:
    """The multiplicative form of some attributes, each from 0 (worst) to 1 (best).

    Parameters
    ----------
    weights
        For each attribute what it is worth if it is at its best and all others at their worst, between 0 and 1.

    Attributes
    ----------
    interaction
        The constant K.

    Examples
    --------
    >>> form = Multiplicative({"cost": 0.4, "life": 0.5})
    >>> round(form.interaction, 6), round(form(1.0, 1.0), 6), round(form(1.0, 0.0), 6)
    (0.5, 1.0, 0.4)
    """

    __slots__ = ("interaction", "weights")

    def __init__(self, weights: Mapping[str, float]) -> None:
        check("weights", weights, Kind((Mapping,), "a mapping from attribute to weight"))
        self.weights = {name: _weight(name, value) for name, value in weights.items()}
        self.interaction = interaction_constant(np.array([*self.weights.values()]))

    @property
    def parent_names(self) -> tuple[str, ...]:
        """The attributes."""
        return tuple(self.weights)

    def __call__(self, *amounts: Any) -> Any:
        """Return the total for amounts, or arrays of amounts, in the order of the weights."""
        parts = [
            k * np.asarray(u, dtype=np.float64) for k, u in zip(self.weights.values(), amounts, strict=True)
        ]
        total: Any = parts[0]
        for part in parts[1:]:  # 1 + K total = (1 + K total)(1 + K part), without dividing by a small K
            total = total + part + self.interaction * total * part
        return float(total) if np.ndim(total) == 0 else total

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Multiplicative) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(tuple(self.weights.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Multiplicative, (self.weights,))

    def __repr__(self) -> str:
        return f"multiplicative({self.weights})"


def multiplicative(weights: Mapping[str, float]) -> Multiplicative:
    """Return a multiplicative form of attributes, for a utility of utilities.

    Parameters
    ----------
    weights
        For each attribute, a utility from 0 (worst) to 1 (best), what it is worth alone; see `Multiplicative`.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("treat", mk.Decision(["no", "mild", "hard"]))
    >>> bn.add("cost", mk.Utility({"no": 1.0, "mild": 0.6, "hard": 0.0}), parents=["treat"])
    >>> bn.add("life", mk.Utility({"no": 0.0, "mild": 0.7, "hard": 1.0}), parents=["treat"])
    >>> bn.add("total", mk.Utility(multiplicative({"cost": 0.4, "life": 0.5})))
    >>> policy = bn.decide()
    >>> policy.act("treat"), round(policy.value, 6)
    ('mild', 0.632)
    """
    return Multiplicative(weights)


def interaction_constant(weights: Any) -> float:
    """Return the K above -1, and not zero unless weights sum to one, with `1 + K = prod(1 + K k_i)`.

    Examples
    --------
    >>> round(interaction_constant(np.array([0.5, 0.5, 0.5])), 6)  # -0.763932 = sqrt(5) - 3
    -0.763932
    """
    excess = float(weights.sum()) - 1.0
    if abs(excess) <= ADDITIVE:
        return 0.0
    if len(weights) < 2 or weights.max() >= 1.0:
        raise InvalidArgument(
            "weights are below one, two attributes or more; a weight of one leaves nothing to the others"
        )
    from scipy.optimize import brentq

    def surplus(k: float) -> float:  # its sign is that of prod(1 + K k_i) - (1 + K), times that of K
        return float(np.log1p(k * weights).sum() - np.log1p(k)) / k if k else excess

    if excess > 0:
        edge = 1.0
        while surplus(edge - 1.0) > 0:  # toward -1, where log(1 + K) falls without end
            edge /= 2.0
            if edge < 1e-300:
                raise InvalidArgument(
                    "the weights are too close to one for their interaction to be told from -1"
                )
        return float(brentq(surplus, edge - 1.0, 0.0, xtol=1e-15, rtol=4 * np.finfo(float).eps))
    top = 1.0
    while surplus(top) < 0 and top < inf:
        top *= 2.0
    return float(brentq(surplus, 0.0, top, xtol=1e-15, rtol=4 * np.finfo(float).eps))


def _weight(name: str, value: Any) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(f"the weight of {name!r} is a number, not {value!r}") from None
    if not 0.0 < weight <= 1.0:
        raise InvalidArgument(f"the weight of {name!r} is above 0 and not above 1, not {weight:g}")
    return weight
