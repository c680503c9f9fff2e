"""What a page needs to answer by itself: the tables of a model that is small enough."""

from math import prod
from typing import Any

import numpy as np

from markovia.graphs.triangulation.elimination import eliminate
from markovia.models.graphical.directed_model import DirectedModel
from markovia.studio.documents.decision_answers import is_diagram
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
    """Return how many table cells eliminating all variables by min-fill makes; infinite where one is a number or decided."""
    if model.has_quantities or is_diagram(model):
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
