"""What a page needs to answer by itself: the tables of a model that is small enough, and findings in its words."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from markovia.errors import InvalidEvidence, UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.quantities.soft_findings import Interval
from markovia.factors.tables.evidence import Not, read_finding
from markovia.graphs.elimination import eliminate
from markovia.models.graphical.directed_model import DirectedModel
from markovia.studio.documents.views import state_labels

MOST_CELLS = 2**18
"""Cells of the clusters that a page computes with: an answer takes it a few hundredths of a second."""


def page_tables(model: Any, most: float = MOST_CELLS) -> dict[str, Any] | None:
    """Return the tables of a discrete model for `exact.js`; None where elimination would need more cells than `most`.

    Examples
    --------
    >>> import markovia as mk
    >>> tables = page_tables(mk.examples.sprinkler())
    >>> tables["tables"][1]
    {'scope': [0, 1], 'values': [0.5, 0.5, 0.9, 0.1], 'child': 1}
    >>> page_tables(mk.examples.sprinkler(), most=10) is None
    True
    """
    if elimination_cells(model) > most:
        return None
    number = {name: k for k, name in enumerate(model.variables)}
    directed = isinstance(model, DirectedModel)
    tables: list[dict[str, Any]] = []
    for piece in model.pieces():
        if not piece.names:
            continue  # a constant cancels
        factor = piece.factor() if directed else piece
        scope = [number[n] for n in factor.names]
        tables.append({"scope": scope, "values": np.asarray(factor.values).ravel().tolist()})
        if directed:
            tables[-1]["child"] = scope[-1]
    variables = [{"name": n, "states": state_labels(model.variable(n).states)} for n in model.variables]
    return {"variables": variables, "tables": tables}


def elimination_cells(model: Any) -> float:
    """Return how many table cells eliminating all variables by min-fill makes; infinite where one is a number."""
    if model.has_quantities:
        return float("inf")
    number = {name: k for k, name in enumerate(model.variables)}
    sizes = [len(model.variable(n)) for n in model.variables]
    near: list[set[int]] = [set() for _ in number]
    for piece in model.pieces():
        scope = {number[n] for n in piece.names}
        for v in scope:
            near[v] |= scope - {v}
    order = eliminate(near, "min-fill", [float(k) for k in sizes])
    return float(sum(sizes[v] * prod(float(sizes[u]) for u in around) for v, around in order))


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
    """Return interventions as the page says them.

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
    return told
