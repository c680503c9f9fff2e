"""Decisions and utilities in native JSON: what is allowed, and what is worth how much.

    DecisionNode    {} or {"allowed": [[true, false], ...]}, one row for each configuration of what is seen
    UtilityNode     {"amounts": [...]}, the last parent fastest, or
                    {"terms": [[name, name, c], ...], "linear": {name: c}, "constant": c}, a quadratic form

The variable of a decision has states, or the domain "real"; that of a utility has the domain "utility". A utility given
by a function of parents with states is written as its table; one of numbers or of utilities only as a quadratic form.
"""

from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.quadratic import Quadratic
from markovia.factors.decisions.utility import UtilityNode, Worth
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.io.native.json_paths import JsonNode
from markovia.io.rows import checked_size
from markovia.runtime.source_text import shown

DECISION, UTILITY = "DecisionNode", "UtilityNode"
_FORM = ("terms", "linear", "constant")


def write_decision(node: DecisionNode | UtilityNode) -> tuple[str, dict[str, Any]]:
    """Return class name and parameters of a decision or a utility.

    Raises
    ------
    UnsupportedModel
        If a utility is a function of numbers or of utilities other than a quadratic form.
    """
    if isinstance(node, DecisionNode):
        if node.allowed is None:
            return DECISION, {}
        return DECISION, {"allowed": node.allowed.reshape(-1, len(node.variable)).tolist()}
    if node.worth is not None:
        return UTILITY, {"amounts": node.worth.reshape(-1).tolist()}
    form = node.form
    if not isinstance(form, Quadratic):
        raise UnsupportedModel(
            f"files hold no functions, and {node.variable.name!r} is worth one of "
            f"{', '.join(map(repr, node.parent_names))}; say it as mk.Quadratic(terms, linear=..., constant=...)"
        )
    terms = [[a, b, value] for (a, b), value in form.terms.items()]
    return UTILITY, {"terms": terms, "linear": form.linear, "constant": form.constant}


def read_decision(kind: str, own: JsonNode, variable: Variable, parents: tuple[Variable, ...]) -> Conditional:
    """Build a decision or a utility from its class name and parameters.

    Raises
    ------
    ParseError
        If the parameters do not fit.
    """
    if worthy := next((p.name for p in parents if kind == DECISION and isinstance(p, Worth)), None):
        own.fail(f"expected parents that can be seen; {shown(worthy)} is a utility")
    if kind == DECISION:
        return _decision(own, variable, parents)
    if not isinstance(variable, Worth):
        own.fail(f"expected the domain 'utility' for {shown(variable.name)}")
    if "amounts" in own:
        return _table(own, variable, parents)
    own.only(*_FORM)
    names = {p.name for p in parents}
    terms: dict[str | tuple[str, str], float] = {}
    for entry in own.get("terms").items():
        if len(entry.need(list, "[name, name, number]")) != 3:
            entry.fail("expected [name, name, number]")
        terms[_name(entry.at(0), names), _name(entry.at(1), names)] = _number(entry.at(2))
    linear = {}
    for name, value in own.get("linear").fields():
        if name not in names:
            value.fail(f"expected coefficients of parents, found {shown(name)}")
        linear[name] = _number(value)
    return UtilityNode(variable, parents, Quadratic(terms, linear, _number(own.get("constant"))))


def _decision(own: JsonNode, variable: Variable, parents: tuple[Variable, ...]) -> DecisionNode:
    own.only("allowed")
    if isinstance(variable, Worth):
        own.fail(f"expected states or a number to choose; {shown(variable.name)} is a utility")
    if "allowed" not in own:
        return DecisionNode(variable, parents)
    listed = own.get("allowed")
    if any(isinstance(v, Quantity) for v in (variable, *parents)):
        listed.fail("expected everything to be allowed where numbers are seen or chosen")
    shape = (*map(len, parents), len(variable))
    size = checked_size(shape, available=len(own.source.text))
    rows = listed.need(list, "a list of rows")
    fits = len(rows) * len(variable) == size and all(
        isinstance(row, list)
        and len(row) == len(variable)
        and all(isinstance(x, bool) for x in row)
        and any(row)
        for row in rows
    )
    if not fits:
        listed.fail(
            f"expected {size // len(variable):,} rows of {len(variable)} truth values, each with something allowed"
        )
    allowed = np.array(rows, dtype=bool).reshape(shape)
    allowed.setflags(write=False)
    return DecisionNode(variable, parents, allowed)


def _table(own: JsonNode, variable: Worth, parents: tuple[Variable, ...]) -> UtilityNode:
    own.only("amounts")
    listed = own.get("amounts")
    if odd := next((p.name for p in parents if isinstance(p, Quantity)), None):
        listed.fail(f"expected a form and no table: {shown(odd)} is a number or a utility")
    shape = tuple(map(len, parents))
    size = checked_size(shape, available=len(own.source.text))
    items = listed.need(list, "a list of amounts")
    if len(items) != size:
        listed.fail(f"expected {size:,} amounts, found {len(items):,}")
    numbers = [_number(listed.at(k)) if type(x) is not float else x for k, x in enumerate(items)]
    return UtilityNode(variable, parents, np.array(numbers).reshape(shape))


def _name(node: JsonNode, names: set[str]) -> str:
    if node.text() not in names:
        node.fail("expected the name of a parent")
    return node.text()


def _number(node: JsonNode) -> float:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e308:
        node.fail("expected a number")
    return float(value)
