"""What a user may say about a variable: a state, a likelihood for every state, states ruled out, or a new belief."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidEvidence, UnknownVariable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array


class Not:
    """Evidence that a variable is in none of the named states.

    Examples
    --------
    >>> Not("no")
    Not('no')
    """

    __slots__ = ("states",)

    def __init__(self, *states: State) -> None:
        if not states:
            raise InvalidEvidence("Not(...) needs at least one state to exclude")
        self.states = states

    def __repr__(self) -> str:
        return f"Not({', '.join(map(repr, self.states))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Not) and set(self.states) == set(other.states)

    def __hash__(self) -> int:
        return hash(frozenset(self.states))


class Jeffrey:
    """Evidence that fixes what is believed about a variable: its posterior will be exactly this distribution.

    A likelihood says how well a signal fits each state and is combined with what was believed before. `Jeffrey` says
    what to believe in the end, whatever was believed before: Jeffrey's rule for one variable, and iterative
    proportional fitting for several at once. Beliefs given the variable itself do not change.

    Parameters
    ----------
    probabilities
        One probability a state, in the order of the states or as a dict; they sum to one.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.examples.sprinkler()
    >>> round(bn.query("cloudy", given={"rain": mk.Jeffrey([0.3, 0.7])})["yes"], 6)
    0.62
    """

    __slots__ = ("probabilities",)

    def __init__(self, probabilities: Mapping[State, float] | Iterable[float]) -> None:
        if isinstance(probabilities, str | set | frozenset) or not isinstance(probabilities, Iterable):
            raise InvalidEvidence(
                f"Jeffrey(...) takes one probability a state, as a list or a dict, not {probabilities!r}"
            )
        self.probabilities: dict[State, float] | list[Any] = (
            dict(probabilities) if isinstance(probabilities, Mapping) else list(probabilities)
        )

    def __repr__(self) -> str:
        return f"Jeffrey({self.probabilities!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Jeffrey) and self.probabilities == other.probabilities

    def __hash__(self) -> int:
        said = self.probabilities
        return hash(frozenset(said.items()) if isinstance(said, dict) else tuple(said))


@dataclass(frozen=True, slots=True)
class Finding:
    """Evidence on one variable, checked: the code of a state, a likelihood for every state, or a fixed posterior.

    About a quantity it is its `value`, a number or an array; what is said of it otherwise stands in `said`.
    A fixed posterior (`belief`) becomes a likelihood once the whole model is known; see
    `markovia.inference.questions.jeffrey.settled`.
    """

    variable: Variable
    said: Any
    code: int | None = None
    likelihood: Array | None = None
    belief: Array | None = None
    value: Any = None

    @property
    def hard(self) -> bool:
        """Whether the variable is fixed to one state or value."""
        return self.code is not None or self.value is not None

    def weights(self) -> Array:
        """Return the likelihood of every state (one-hot for a hard finding)."""
        if self.likelihood is not None:
            return self.likelihood
        if self.belief is not None:
            raise InvalidEvidence(
                f"Jeffrey(...) on {self.variable.name!r} fixes a posterior and has no likelihoods of its own; "
                "here write one number a state as a plain list"
            )
        weights = np.zeros(len(self.variable))
        weights[self.code] = 1.0
        return weights

    def factor(self) -> Factor:
        """Return the finding as a factor over its variable."""
        return Factor.of((self.variable,), self.weights())


Findings = dict[str, Finding]
PLAIN = (str, int, bool)
"""Types of what is said that are states as they stand."""


def read_evidence(variables: Mapping[str, Variable], given: Mapping[str, Any] | None) -> Findings:
    """Check what the user said about each variable.

    Raises
    ------
    UnknownVariable, UnknownState, InvalidEvidence
        With the nearest name or the form that is expected.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) and not (hasattr(given, "items") and hasattr(given, "index")):
        raise InvalidEvidence(f"given= is a mapping such as {{'rain': 'yes'}}, not {type(given).__name__}")
    findings: Findings = {}
    for name, said in given.items():  # of a mapping or a pandas Series
        if name not in variables:
            raise UnknownVariable(name, variables)
        if type(said) in PLAIN or not is_missing(said):
            findings[name] = read_finding(variables[name], said)
    return findings


def is_missing(value: object) -> bool:
    """Say whether a value stands for one that is not known: None, NaN, NaT or pandas.NA.

    Examples
    --------
    >>> [is_missing(v) for v in (None, float("nan"), 0, "", [0.5, 0.5])]
    [True, True, False, False, False]
    """
    if value is None or isinstance(value, float | np.floating):
        return value is None or bool(value != value)
    if isinstance(value, list | tuple | dict | np.ndarray):
        return False
    same: object = value == value  # false for NaT, neither true nor false for pandas.NA
    return not isinstance(same, bool | np.bool_) or not same


def read_finding(variable: Variable, said: Any) -> Finding:
    """Check what the user said about one variable."""
    if type(said) in PLAIN:
        return Finding(variable, said, variable.index(said))
    if isinstance(said, Not):
        weights = np.ones(len(variable))
        for state in said.states:
            weights[variable.index(state)] = 0.0
        if not weights.any():
            raise InvalidEvidence(f"{said!r} rules out every state of {variable.name!r}")
        return _from_weights(variable, said, weights)
    if isinstance(said, Jeffrey):
        return Finding(variable, said, belief=_belief(variable, said))
    if isinstance(said, Mapping):
        return _from_weights(variable, said, _numbers(variable, _by_state(variable, said, "likelihood")))
    if isinstance(said, list | tuple | np.ndarray) and not (isinstance(said, np.ndarray) and said.ndim == 0):
        return _from_weights(variable, said, _numbers(variable, said))
    return Finding(variable, said, code=variable.index(said))


def _from_weights(variable: Variable, said: Any, weights: Array) -> Finding:
    positive = np.flatnonzero(weights)
    if len(positive) == 0:
        raise InvalidEvidence(f"the likelihood for {variable.name!r} is zero for every state")
    return Finding(variable, said, likelihood=weights)


def _belief(variable: Variable, said: Jeffrey) -> Array:
    listed = said.probabilities
    values = _by_state(variable, listed, "probability") if isinstance(listed, dict) else listed
    try:
        belief = np.array(values, dtype=np.float64)
    except (ValueError, TypeError):
        raise InvalidEvidence(
            f"Jeffrey(...) on {variable.name!r} is one probability a state ({len(variable)} numbers)"
        ) from None
    if belief.shape != (len(variable),):
        raise InvalidEvidence(
            f"Jeffrey(...) on {variable.name!r} needs {len(variable)} probabilities, one a state, not {belief.size}"
        )
    if not np.all((belief >= 0) & np.isfinite(belief)):
        raise InvalidEvidence(
            f"probabilities are finite and not negative, not {belief.tolist()} for {variable.name!r}"
        )
    total = float(belief.sum())
    if abs(total - 1.0) > 1e-6:
        raise InvalidEvidence(
            f"the probabilities of Jeffrey(...) on {variable.name!r} sum to {total:.9g}; they must sum to one "
            "(likelihoods, which need not, are a plain list)"
        )
    return np.asarray(belief / total)


def _by_state(variable: Variable, said: Mapping[Any, Any], what: str) -> list[Any]:
    """Return the values of a dict in the order of the states."""
    values = {variable.states[variable.index(state)]: value for state, value in said.items()}
    missing = [s for s in variable.states if s not in values]
    if missing:
        raise InvalidEvidence(
            f"the {what} for {variable.name!r} leaves out {', '.join(map(repr, missing))}; all need one"
        )
    return [values[s] for s in variable.states]


def _numbers(variable: Variable, values: Iterable[Any]) -> Array:
    try:
        weights = np.array(list(values), dtype=np.float64)
    except (ValueError, TypeError):
        raise InvalidEvidence(
            f"soft evidence on {variable.name!r} is one likelihood a state ({len(variable)} numbers); "
            "for several possible states write Not(...) of the others"
        ) from None
    if weights.shape != (len(variable),):
        raise InvalidEvidence(
            f"soft evidence on {variable.name!r} needs {len(variable)} likelihoods, one a state, not {weights.size}"
        )
    if not np.all((weights >= 0) & np.isfinite(weights)):
        raise InvalidEvidence(
            f"likelihoods are finite and not negative, not {weights.tolist()} for {variable.name!r}"
        )
    return weights
