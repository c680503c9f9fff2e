"""What a user may say about a variable: a state, a likelihood for every state, or states ruled out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidEvidence, UnknownVariable
from markovia.factors.factor import Array, Factor
from markovia.factors.variable import State, Variable


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


@dataclass(frozen=True, slots=True)
class Finding:
    """Evidence on one variable, checked: the code of a state, or a likelihood for every state."""

    variable: Variable
    said: Any
    code: int | None = None
    likelihood: Array | None = None

    @property
    def hard(self) -> bool:
        """Whether the variable is fixed to one state."""
        return self.code is not None

    def weights(self) -> Array:
        """Return the likelihood of every state (one-hot for a hard finding)."""
        if self.likelihood is not None:
            return self.likelihood
        weights = np.zeros(len(self.variable))
        weights[self.code] = 1.0
        return weights

    def factor(self) -> Factor:
        """Return the finding as a factor over its variable."""
        return Factor.of((self.variable,), self.weights())


Findings = dict[str, Finding]


def read_evidence(variables: Mapping[str, Variable], given: Mapping[str, Any] | None) -> Findings:
    """Check what the user said about each variable.

    Raises
    ------
    UnknownVariable, UnknownState, InvalidEvidence
        With the nearest name or the form that is expected.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidEvidence(f"given= is a mapping such as {{'rain': 'yes'}}, not {type(given).__name__}")
    findings: Findings = {}
    for name, said in given.items():
        if name not in variables:
            raise UnknownVariable(name, variables)
        findings[name] = read_finding(variables[name], said)
    return findings


def read_finding(variable: Variable, said: Any) -> Finding:
    """Check what the user said about one variable."""
    if isinstance(said, Not):
        weights = np.ones(len(variable))
        for state in said.states:
            weights[variable.index(state)] = 0.0
        if not weights.any():
            raise InvalidEvidence(f"{said!r} rules out every state of {variable.name!r}")
        return _from_weights(variable, said, weights)
    if isinstance(said, Mapping):
        for state in said:
            variable.index(state)
        missing = [s for s in variable.states if s not in said]
        if missing:
            raise InvalidEvidence(
                f"the likelihood for {variable.name!r} leaves out {', '.join(map(repr, missing))}; all need one"
            )
        return _from_weights(variable, said, _numbers(variable, [said[s] for s in variable.states]))
    if isinstance(said, list | tuple | np.ndarray) and not (isinstance(said, np.ndarray) and said.ndim == 0):
        return _from_weights(variable, said, _numbers(variable, said))
    if said is None:
        raise InvalidEvidence(f"None is no evidence for {variable.name!r}; leave the variable out of given=")
    return Finding(variable, said, code=variable.index(said))


def _from_weights(variable: Variable, said: Any, weights: Array) -> Finding:
    positive = np.flatnonzero(weights)
    if len(positive) == 0:
        raise InvalidEvidence(f"the likelihood for {variable.name!r} is zero for every state")
    return Finding(variable, said, likelihood=weights)


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
