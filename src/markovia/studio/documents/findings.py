"""Findings and interventions, from the words of the page to the evidence of the library and back."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
from msgspec import UNSET

from markovia.errors import InvalidArgument, InvalidEvidence, UnknownState, UnsupportedModel, check_known
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.quantities.soft_findings import Interval
from markovia.factors.tables.evidence import Not, read_finding
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.directed_model import DirectedModel
from markovia.studio.documents import messages as m
from markovia.studio.documents.views import state_labels


def findings(model: GraphicalModel, given: Mapping[str, m.Finding | m.Cell]) -> dict[str, Any]:
    """Return findings as the evidence that the library takes; what is null is not known."""
    check_known(given, model.variables)
    return {name: evidence_of(model.variable(name), said) for name, said in given.items() if said is not None}


def evidence_of(variable: Any, said: m.Finding | m.Cell) -> Any:
    """Return one finding, or a plain cell, as evidence."""
    if not isinstance(said, m.Finding):
        return cell_of(variable, said)
    parts = [
        p for p in (said.state, said.excluded, said.weights, said.value, said.interval) if p is not UNSET
    ]
    if len(parts) != 1:
        raise InvalidEvidence(
            f"a finding on {variable.name!r} has one of state, not, weights, value and interval, not {len(parts)}"
        )
    if isinstance(variable, Quantity):
        if said.value is not UNSET:
            return float(said.value)
        if said.interval is not UNSET:
            low, high = said.interval
            return Interval(-np.inf if low is None else float(low), np.inf if high is None else float(high))
        raise InvalidEvidence(f"{variable.name!r} is a number; a finding on it is a value or an interval")
    if said.state is not UNSET:
        return state_of(variable, said.state)
    if said.excluded is not UNSET:
        return Not(*(state_of(variable, s) for s in said.excluded))
    if said.weights is not UNSET:
        weights = {state_of(variable, s): float(w) for s, w in said.weights.items()}
        return {s: weights.get(s, 0.0) for s in variable.states}
    if said.value is not UNSET:
        return state_of(variable, f"{said.value:g}")
    raise InvalidEvidence(f"{variable.name!r} has states, so an interval says nothing about it")


def cell_of(variable: Any, cell: m.Cell) -> Any:
    """Return the state or the number that a plain cell means."""
    if isinstance(variable, Quantity):
        if isinstance(cell, str | bool) or cell is None:
            raise InvalidArgument(f"{variable.name!r} is a number, and {cell!r} is none")
        return float(cell)
    if isinstance(cell, str):
        return state_of(variable, cell)
    return variable.states[variable.index(cell)]


def setting(model: GraphicalModel, name: str, said: str | float) -> Any:
    """Return what an intervention sets a variable to."""
    variable = model.variable(name)
    if isinstance(variable, Quantity):
        try:
            value = float(said)
        except ValueError:
            raise InvalidArgument(f"{name!r} is a number; it cannot be set to {said!r}") from None
        if not isfinite(value):
            raise InvalidArgument(f"{name!r} cannot be set to {said!r}")
        return value
    return state_of(variable, str(said))


def state_of(variable: Any, text: str) -> Any:
    """Return the state that a text means."""
    told_as = state_labels(variable.states)
    try:
        return variable.states[told_as.index(text)]
    except ValueError:
        raise UnknownState(variable.name, text, told_as) from None


def told_findings(model: Any, given: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return evidence as the page says it, one finding a variable.

    Examples
    --------
    >>> import markovia as mk
    >>> told_findings(mk.examples.asia(), {"smoke": "yes", "xray": mk.Not("no"), "dysp": [0.8, 0.1]})
    {'smoke': {'state': 'yes'}, 'xray': {'not': ['no']}, 'dysp': {'weights': {'yes': 0.8, 'no': 0.1}}}
    """
    return {name: told_finding(model.variable(name), said) for name, said in (given or {}).items()}


def told_finding(variable: Any, said: Any) -> dict[str, Any]:
    """Return what is known of one variable as the page says it."""
    if isinstance(variable, Quantity):
        if isinstance(said, Interval):
            return {"interval": [float(x) if np.isfinite(x) else None for x in (said.low, said.high)]}
        if np.ndim(said) == 0 and isinstance(said, int | float | np.number):
            return {"value": float(said)}
        raise InvalidEvidence(f"a page shows a value or an interval of {variable.name!r}, not {said!r}")
    labels = state_labels(variable.states)
    finding = read_finding(variable, said)
    if finding.code is not None:
        return {"state": labels[finding.code]}
    if isinstance(said, Not):
        return {"not": [labels[variable.index(s)] for s in said.states]}
    return {"weights": dict(zip(labels, finding.weights().tolist(), strict=True))}


def told_interventions(model: Any, do: Mapping[str, Any] | None) -> dict[str, str | float]:
    """Return interventions as the page says them; those that the model's class of graphs does not answer are refused.

    Examples
    --------
    >>> import markovia as mk
    >>> told_interventions(mk.examples.asia(), {"smoke": "no"})
    {'smoke': 'no'}
    """
    told: dict[str, str | float] = {}
    for name, value in (do or {}).items():
        variable = model.variable(name)
        if isinstance(variable, Quantity):
            told[name] = float(value)
        else:
            told[name] = state_labels(variable.states)[variable.index(value)]
    if told and not isinstance(model, DirectedModel):
        raise UnsupportedModel("interventions need a directed network; this model has no directions")
    if told:
        model.do(do)
    return told
