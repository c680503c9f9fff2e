"""Structured conditionals (noisy-or, logistic, logical, ...) in native JSON: their class and few parameters.

    NoisyOrConditional, NoisyAndConditional    {"strengths": [...], "leak": p, "on": [codes]}
    NoisyMaxConditional, NoisyMinConditional   {"start": [...], "contributions": [[[...]]], "n_parameters": n}
    LogisticConditional, SoftmaxConditional    the same
    DeterministicConditional                   {"combine": "add", "contributions": [[[...]]],
                                                "outcomes": [...], "codes": [...]}
    GaussianConditional                        {"bias": ..., "weights": [...], "variance": ...}, nested lists with one
                                               axis a parent with states (these come first), weights last
    DecisionNode, UtilityNode                  see `markovia.io.native.native_decisions`

`contributions` has one table a parent (a row a state) and `start` is what is there without parents; see
`markovia.factors.local_models.local_model`. A logarithm of zero is written as null. A table of any other class is
written out; any other kind of node is refused.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import MarkoviaError, ParseError, UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import UtilityNode
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.local_models.local_model import CausalIndependence
from markovia.factors.local_models.logical import DeterministicConditional
from markovia.factors.local_models.logistic import LogisticConditional, SoftmaxConditional
from markovia.factors.local_models.noisy import (
    NoisyAndConditional,
    NoisyMaxConditional,
    NoisyMinConditional,
    NoisyOrConditional,
)
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.io.native.json_paths import JsonNode
from markovia.io.native.native_decisions import DECISION, UTILITY, read_decision, write_decision
from markovia.io.native.native_functions import read_function, write_function
from markovia.runtime.source_text import brief, shown

_PROBABILITY = {"NoisyOrConditional": NoisyOrConditional, "NoisyAndConditional": NoisyAndConditional}
_SCORES: dict[str, type[NoisyMaxConditional] | type[SoftmaxConditional]] = {
    "NoisyMaxConditional": NoisyMaxConditional,
    "NoisyMinConditional": NoisyMinConditional,
    "LogisticConditional": LogisticConditional,
    "SoftmaxConditional": SoftmaxConditional,
}
_COMBINE: dict[str, np.ufunc] = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}
_DETERMINISTIC = "DeterministicConditional"
_GAUSSIAN, _FUNCTION = "GaussianConditional", "FunctionNode"
_OTHERS = (_DETERMINISTIC, _GAUSSIAN, _FUNCTION, DECISION, UTILITY)


def write_local(conditional: Conditional) -> tuple[str, dict[str, Any]] | None:
    """Return class name and parameters of a structured conditional, or None if its table is to be written."""
    kind = type(conditional).__name__
    if kind in _PROBABILITY and isinstance(conditional, NoisyOrConditional):
        own = conditional.parameters()
        strengths = np.asarray(own.strengths).tolist()
        return kind, {"strengths": strengths, "leak": float(own.leak), "on": [int(c) for c in own.on]}
    if isinstance(conditional, DecisionNode | UtilityNode):
        return write_decision(conditional)
    if isinstance(conditional, FunctionNode):
        return kind, write_function(conditional)
    if isinstance(conditional, GaussianConditional):
        own_arrays = {
            "bias": conditional.bias,
            "weights": conditional.weights,
            "variance": conditional.variance,
        }
        return kind, {name: array.tolist() for name, array in own_arrays.items()}
    if conditional.kind != "table":
        raise UnsupportedModel(
            f"files hold no nodes of the kind {conditional.kind!r}, which {conditional.variable.name!r} is; pickle keeps it"
        )
    if not isinstance(conditional, CausalIndependence):
        return None
    contributions = [_listed(c) for c in conditional.contributions]
    if kind in _SCORES:
        start = _listed(conditional.start)
        return kind, {
            "start": start,
            "contributions": contributions,
            "n_parameters": conditional.n_parameters,
        }
    if kind == _DETERMINISTIC and isinstance(conditional, DeterministicConditional):
        combine = conditional.combine.__name__
        if combine in _COMBINE:
            return kind, {
                "combine": combine,
                "contributions": contributions,
                "outcomes": conditional.outcomes.tolist(),
                "codes": conditional.codes.tolist(),
            }
    return None


def read_local(entry: JsonNode, variable: Variable, parents: tuple[Variable, ...]) -> Conditional:
    """Build a structured conditional from its class name and parameters.

    Raises
    ------
    ParseError
        If the class is unknown or the parameters do not fit.
    """
    kind = entry.get("model").text()
    own = entry.get("parameters")
    own.need(dict, "an object")
    try:
        if kind in (DECISION, UTILITY):
            return read_decision(kind, own, variable, parents)
        if kind == _FUNCTION:
            return read_function(own, variable, parents)
        if kind == _GAUSSIAN:
            return _read_gaussian(own, variable, parents)
        if isinstance(variable, Quantity):
            entry.get("model").fail(
                f"expected {_GAUSSIAN}, {_FUNCTION}, {DECISION} or {UTILITY}; {shown(variable.name)} is a number"
            )
        if kind in _PROBABILITY:
            return _read_noisy(own, _PROBABILITY[kind], variable, parents)
        if kind in _SCORES:
            return _read_scores(own, _SCORES[kind], variable, parents)
        if kind != _DETERMINISTIC:
            entry.get("model").fail(f"expected one of {', '.join([*_PROBABILITY, *_SCORES, *_OTHERS])}")
        return _read_deterministic(own, variable, parents)
    except ParseError:
        raise
    except MarkoviaError as error:
        own.fail(f"expected the parameters of a {kind}; {brief(str(error))}")


def _read_gaussian(own: JsonNode, variable: Variable, parents: tuple[Variable, ...]) -> GaussianConditional:
    own.only("bias", "weights", "variance")
    if not isinstance(variable, Quantity):
        own.fail(f"expected a number; {shown(variable.name)} has states")
    discrete = tuple(p for p in parents if not isinstance(p, Quantity))
    if discrete != parents[: len(discrete)]:
        own.fail("expected the parents with states before those that are numbers")
    shape, rest = tuple(len(p) for p in discrete), parents[len(discrete) :]
    variance = _array(own.get("variance"), shape)
    if (variance < 0.0).any():
        own.get("variance").fail("expected variances that are not negative")
    weights = _array(own.get("weights"), (*shape, len(rest)))
    return GaussianConditional(variable, discrete, rest, _array(own.get("bias"), shape), weights, variance)


def _read_noisy(
    own: JsonNode, cls: type[NoisyOrConditional], variable: Variable, parents: tuple[Variable, ...]
) -> NoisyOrConditional:
    own.only("strengths", "leak", "on")
    n = len(parents)
    if len(variable) != 2:
        own.fail(f"expected a child of two states; {shown(variable.name)} has {len(variable)}")
    strengths = _array(own.get("strengths"), (n,))
    leak = float(_array(own.get("leak"), ()))
    if not (((strengths >= 0.0) & (strengths <= 1.0)).all() and 0.0 <= leak <= 1.0):
        own.fail("expected strengths and a leak from 0 to 1")
    on = _codes(own.get("on"), n)
    if any(not 0 <= code < len(parent) for code, parent in zip(on, parents, strict=True)):
        own.get("on").fail("expected the position of a state of each parent")
    return cls(variable, parents, strengths, leak, tuple(on.tolist()))


def _read_scores(
    own: JsonNode,
    cls: type[NoisyMaxConditional] | type[SoftmaxConditional],
    variable: Variable,
    parents: tuple[Variable, ...],
) -> Conditional:
    own.only("start", "contributions", "n_parameters")
    k = len(variable)
    width = {NoisyMaxConditional: k - 1, NoisyMinConditional: k - 1, LogisticConditional: 1}.get(cls, k)
    if cls is LogisticConditional and k != 2:
        own.fail(f"expected a child of two states; {shown(variable.name)} has {k}")
    logs = issubclass(cls, NoisyMaxConditional)
    start = _array(own.get("start"), (width,), logs)
    listed = own.get("contributions")
    contributions = [
        _array(c, (len(p), width), logs) for c, p in zip(_exactly(listed, len(parents)), parents, strict=True)
    ]
    if logs and not all(_cumulative(c) for c in [start, *contributions]):
        listed.fail("expected logarithms of cumulative probabilities")
    n_parameters = own.get("n_parameters").need(int, "a number of parameters")
    return cls(variable, parents, contributions, start, n_parameters)


def _read_deterministic(
    own: JsonNode, variable: Variable, parents: tuple[Variable, ...]
) -> DeterministicConditional:
    own.only("combine", "contributions", "outcomes", "codes")
    combine = _COMBINE.get(own.get("combine").text())
    if combine is None:
        own.get("combine").fail(f"expected one of {', '.join(_COMBINE)}")
    listed = _exactly(own.get("contributions"), len(parents))
    contributions = [_codes(c, len(p), nested=True) for c, p in zip(listed, parents, strict=True)]
    outcomes = _codes(own.get("outcomes"))
    codes = _codes(own.get("codes"), len(outcomes))
    if not len(outcomes) or (np.diff(outcomes) <= 0).any():
        own.get("outcomes").fail("expected the outcomes in increasing order")
    if ((codes < 0) | (codes >= len(variable))).any():
        own.get("codes").fail(f"expected positions of states of {shown(variable.name)}")
    if not np.isin(_reached(own, combine, contributions), outcomes).all():
        own.get("outcomes").fail("expected every value that can come out")
    return DeterministicConditional(variable, parents, contributions, combine, outcomes, codes)


def _reached(own: JsonNode, combine: np.ufunc, contributions: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return every value that the parents can combine to."""
    if combine is np.add:
        reached = np.zeros(1, dtype=np.int64)
    elif contributions:
        reached = np.unique(contributions[0])
    else:
        own.fail("expected at least one parent for a minimum or maximum")
    for contribution in contributions:
        if len(reached) * len(contribution) > 2**24:
            own.fail("expected fewer values that can come out")
        reached = np.unique(combine.outer(reached, np.unique(contribution)))
    return reached


def _listed(array: NDArray[Any]) -> Any:
    """Return nested lists, with null for minus infinity."""
    if array.ndim > 1:
        return [_listed(row) for row in array]
    return [None if x == -np.inf else x for x in array.tolist()]


def _exactly(node: JsonNode, count: int) -> list[JsonNode]:
    items = list(node.items())
    if len(items) != count:
        node.fail(f"expected {count} entries, one for each parent, found {len(items)}")
    return items


def _array(node: JsonNode, shape: tuple[int, ...], logs: bool = False) -> NDArray[np.float64]:
    """Return numbers of a known shape; null stands for minus infinity where logarithms are meant."""
    if len(shape) == 0:
        if (
            isinstance(node.value, bool)
            or not isinstance(node.value, int | float)
            or not abs(node.value) < 1e308
        ):
            node.fail("expected a number")
        return np.array(float(node.value))
    items = list(node.items())
    if len(items) != shape[0]:
        node.fail(f"expected {shape[0]} entries, found {len(items)}")
    parts = [
        np.array(-np.inf) if logs and i.value is None and len(shape) == 1 else _array(i, shape[1:], logs)
        for i in items
    ]
    return np.stack(parts) if parts else np.empty(shape)


def _codes(node: JsonNode, count: int | None = None, *, nested: bool = False) -> NDArray[np.int64]:
    """Return a list of integers, or one column of them."""
    items = list(node.items())
    if count is not None and len(items) != count:
        node.fail(f"expected {count} entries, found {len(items)}")
    numbers = []
    for item in items:
        value = (
            item.value[0] if nested and isinstance(item.value, list) and len(item.value) == 1 else item.value
        )
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**44:
            item.fail("expected an integer")
        numbers.append(value)
    array = np.array(numbers, dtype=np.int64)
    return array[:, None] if nested else array


def _cumulative(logs: NDArray[np.float64]) -> bool:
    """Say whether rows are logarithms that grow and stay at or below zero."""
    with np.errstate(invalid="ignore"):
        steps = np.diff(np.exp(logs), axis=-1)
    return bool((logs <= 0.0).all() and (steps >= -1e-12).all())
