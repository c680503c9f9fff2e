"""Rules that choose numbers: linear in what is seen."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable, check_known
from markovia.factors.gaussian.linear_gaussian import GaussianConditional, LinearGaussian
from markovia.factors.tables.variable import Variable
from markovia.inference.result import Info
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks


class NumberRule(GaussianConditional):
    """What to choose for a decision that is a number: a linear function of what is seen, for certain.

    Parameters
    ----------
    variable, seen
        The decision and what its rule looks at.
    coefficients, constant
        The rule.

    Examples
    --------
    >>> from markovia.factors.quantities.quantity import Quantity
    >>> rule = NumberRule(Quantity("u"), [Quantity("x")], [-0.5], 1.0)
    >>> rule, rule.act(x=4.0)
    (u = 1 - 0.5 x, -1.0)
    """

    __slots__ = ()

    def __init__(
        self, variable: Variable, seen: Sequence[Variable], coefficients: Any, constant: float
    ) -> None:
        super().__init__(variable, (), seen, constant, coefficients, 0.0)

    def act(self, **sights: float) -> float:
        """Return what to choose given the numbers that are seen."""
        names = [p.name for p in self.continuous]
        check_known(sights, names, f"what {self.variable.name!r} sees")
        if missing := [n for n in names if n not in sights]:
            raise InvalidArgument(
                f"what to do for {self.variable.name!r} depends on {missing[0]!r}, too; say {missing[0]}=..."
            )
        return float(self.bias) + float(self.weights @ np.array([float(sights[n]) for n in names]))

    @property
    def coefficients(self) -> dict[str, float]:
        """The coefficient of each number that is seen."""
        return dict(zip([p.name for p in self.continuous], self.weights.tolist(), strict=True))

    @property
    def constant(self) -> float:
        """What is chosen where all that is seen is zero."""
        return float(self.bias)

    def __repr__(self) -> str:
        terms = [(self.constant, "")] + [(w, n) for n, w in self.coefficients.items()]
        said = ""
        for number, name in terms:
            if number:
                size = f"{abs(number):.6g} {name}".strip()
                said += (f" {'-' if number < 0 else '+'} " if said else "-" * (number < 0)) + size
        return f"{self.variable.name} = {said or '0'}"


class LinearPolicy(Mapping[str, NumberRule], InNotebooks):
    """A linear rule for every decision that is a number; `follow` takes it.

    Attributes
    ----------
    value
        The expected utility.
    bound
        What perfect recall would be worth.
    gap
        How much more the best policy of the same memory may be worth.
    info
        How it was found.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("x", mk.LinearGaussian(0, {}, 1))
    >>> bn.add("seen", mk.LinearGaussian(0, {"x": 1}, 1))
    >>> bn.add("u", mk.Decision(), parents=["seen"])
    >>> bn.add("miss", mk.Utility(mk.Quadratic({"x": -1, "u": -1, ("x", "u"): 2})))  # -(x - u)^2
    >>> print(bn.decide())
    expected utility -0.5, exact
    u = 0.5 seen
    """

    def __init__(
        self, rules: Mapping[str, NumberRule], value: float, bound: float, info: Info, gap: float = 0.0
    ) -> None:
        self._rules = dict(rules)
        self.value, self.bound, self.gap, self.info = value, bound, gap, info

    def __getitem__(self, name: str) -> NumberRule:
        """Return the rule of a decision."""
        if name not in self._rules:
            raise UnknownVariable(name, self._rules, "the policy")
        return self._rules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def act(self, name: str, /, **sights: float) -> float:
        """Return the number to choose for a decision given the numbers that it sees; others may be said too."""
        rule = self[name]
        others = {n for other in self._rules.values() for n in other.names}
        check_known(sights, [*rule.parent_names, *others], f"what {name!r} sees")
        return rule.act(**{n: x for n, x in sights.items() if n in rule.parent_names})

    def to_pandas(self) -> Any:
        """Return one row a rule: the constant, and a column for each number that is seen."""
        import pandas as pd

        rows = [{"constant": rule.constant, **rule.coefficients} for rule in self._rules.values()]
        return pd.DataFrame(rows, index=[*self._rules]).fillna(0.0)

    def __str__(self) -> str:
        more = (
            f" (perfect recall {self.bound:.6g})"
            if self.bound > self.value + 1e-9 * max(1.0, abs(self.value))
            else ""
        )
        first = f"expected utility {self.value:.6g}, {'exact' if self.info.exact else 'not proved to be best'}{more}"
        return "\n".join([first, *map(repr, self._rules.values())])

    __repr__ = __str__


def rule_of(regression: LinearGaussian, variable: Variable, seen: Sequence[Variable]) -> NumberRule:
    """Return the rule that a linear Gaussian without variance is."""
    weights: Array = np.array([regression.weights.get(p.name, 0.0) for p in seen])
    return NumberRule(variable, seen, weights, regression.bias)
