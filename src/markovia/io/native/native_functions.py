"""Function nodes in native JSON: distributions by name and numbers, functions by the name they are imported by.

    {"form": FORM, "arguments": {"theta": "theta"}, "previous": {"before": ["z", 1]}, "first": FORM, "by_state": false}

A FORM is one of

    {"distribution": "Normal", "parameters": {"loc": 0.0, "scale": 5.0}}    {"input": true}    {"flat": true}
    {"distribution": "ImproperUniform", "support": "positive", "shape": [2]}
    {"expand": [3], "base": FORM}    {"event": 1, "base": FORM}    {"ordered": FORM}
    {"function": "package.module:name"}    {"table": [[0.9, 0.1], [0.2, 0.8]]}    {"value": 3.0}
    {"process": COVARIANCE, "mean": 0.0}   a node that is a function (`native_covariances`)

Nothing is pickled and no text is evaluated: reading a file imports the modules that its functions are in, and nothing else.
A lambda has no name to be imported by, so it cannot be stored.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from markovia.errors import MarkoviaError, UnsupportedModel
from markovia.factors.covariances.process import GP, FittedProcess
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.amortised_guide import AmortisedGuide
from markovia.factors.functions.function_node import Flat, FunctionNode, Input, Lag
from markovia.factors.functions.reading import TableLookup
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.variable import Variable
from markovia.io.native.json_paths import JsonNode
from markovia.io.native.native_covariances import read_process, written_process
from markovia.runtime.double_precision import x64
from markovia.runtime.source_text import brief, shown

_SUPPORTS = (
    "real",
    "positive",
    "unit_interval",
    "simplex",
    "ordered_vector",
    "positive_ordered_vector",
    "real_vector",
)


def write_function(node: FunctionNode) -> dict[str, Any]:
    """Return a function node as plain values.

    Raises
    ------
    UnsupportedModel
        For a lambda or another function that cannot be imported by name, and distributions with more than numbers in them.
    """
    name = node.variable.name
    found: dict[str, Any] = {"form": written_form(name, node.form), "arguments": node.arguments}
    if node.previous:
        found["previous"] = {k: [lag.node, lag.steps] for k, lag in node.previous.items()}
        found["first"] = written_form(name, node.first)
    if node.by_state:
        found["by_state"] = True
    return found


def read_function(own: JsonNode, variable: Variable, parents: tuple[Variable, ...]) -> FunctionNode:
    """Build a function node from plain values."""
    own.only("form", "arguments", "previous", "first", "by_state")
    if not isinstance(variable, Quantity):
        own.fail(f"expected a number; {shown(variable.name)} has states")
    arguments = {k: v.text() for k, v in own.get("arguments").fields()}
    previous = {}
    if "previous" in own:
        for parameter, lag in own.get("previous").fields():
            pair = lag.need(list, "[node, steps back]")
            if len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], int) or pair[1] < 1:
                lag.fail("expected [node, steps back]")
            previous[parameter] = Lag(*pair)
    first = read_form(own.get("first"), tuple(arguments)) if "first" in own else None
    by_state = "by_state" in own and own.get("by_state").value is True
    form = read_form(own.get("form"), tuple(arguments))
    return FunctionNode(variable, form, arguments, parents, previous, first, by_state)


def written_form(name: str, form: Any) -> dict[str, Any]:
    """Return a function by its name, a distribution by its name and numbers, or values; `name` is for messages."""
    if isinstance(form, Input):
        return {"input": True}
    if isinstance(form, Flat):
        return {"flat": True}
    if isinstance(form, AmortisedGuide):
        return {"amortised": dict(vars(form))}
    if isinstance(form, TableLookup):
        return {"table": form.table.tolist()}
    if isinstance(form, np.ndarray):
        return {"value": form.tolist()}
    if is_distribution(form):
        return _distribution(name, form)
    if isinstance(form, GP | FittedProcess):
        return written_process(name, form)
    home = f"{getattr(form, '__module__', '')}:{getattr(form, '__qualname__', '')}"
    if not isinstance(form, FunctionType) or "<" in home or home.startswith("__main__"):
        raise UnsupportedModel(
            f"the function of {name!r} cannot be stored: a file holds functions by the name they are imported by. Define it "
            "with def in a module, and pass it by name instead of a lambda"
        )
    if _imported(home) is not form:
        raise UnsupportedModel(f"the function of {name!r} is not what {home!r} is when it is imported")
    return {"function": home}


def _distribution(name: str, d: Any) -> dict[str, Any]:
    kind = type(d).__name__
    if kind == "ExpandedDistribution":
        return {"expand": list(d.batch_shape), "base": _distribution(name, d.base_dist)}
    if kind == "Independent":
        return {"event": int(d.reinterpreted_batch_ndims), "base": _distribution(name, d.base_dist)}
    if kind == "Ordered":
        return {"ordered": _distribution(name, d.base)}
    if kind == "ImproperUniform":
        for support in _SUPPORTS:
            if _constraint(support) == getattr(d.support, "base_constraint", d.support):
                return {
                    "distribution": kind,
                    "support": support,
                    "plates": list(d.batch_shape),
                    "shape": list(d.event_shape),
                }
    held = {k: getattr(d, k, None) for k in d.arg_constraints}
    made = {k: np.asarray(v).tolist() for k, v in held.items() if k in d.__dict__ or v is not None}
    try:
        _made(kind, made)
    except Exception:
        raise UnsupportedModel(
            f"the distribution of {name!r} ({kind}) is not made of numbers alone; write it as a function in a module"
        ) from None
    return {"distribution": kind, "parameters": made}


def read_form(form: JsonNode, parents: tuple[str, ...] = ()) -> Any:
    """Return the function, distribution or value that was written."""
    form.need(dict, "an object")
    readers: Mapping[str, Callable[[], Any]] = {
        "input": Input,
        "flat": Flat,
        "value": lambda: np.asarray(form.get("value").value),
        "table": lambda: TableLookup(parents, np.asarray(form.get("table").value, dtype=np.float64)),
        "function": lambda: _imported(form.get("function").text()),
        "amortised": lambda: AmortisedGuide(**form.get("amortised").need(dict, "settings")),
        "expand": lambda: read_form(form.get("base"), parents).expand(tuple(form.get("expand").value)),
        "event": lambda: read_form(form.get("base"), parents).to_event(int(form.get("event").value)),
        "ordered": lambda: _door("Ordered")(read_form(form.get("ordered"), parents)),
        "distribution": lambda: _read_distribution(form),
        "process": lambda: read_process(form),
    }
    key = next((key for key in readers if key in form), None)
    if key is None:
        form.fail(f"expected one of {', '.join(map(repr, readers))}")
    try:
        with x64():
            return readers[key]()
    except MarkoviaError:
        raise
    except Exception as error:
        form.fail(f"expected a {key}; {brief(str(error))}")


def _read_distribution(form: JsonNode) -> Any:
    kind = form.get("distribution").text()
    if kind == "ImproperUniform":
        support = form.get("support").text()
        if support not in _SUPPORTS:
            form.get("support").fail(f"expected one of {', '.join(_SUPPORTS)}")
        return _door(kind)(
            _constraint(support), tuple(form.get("plates").value), tuple(form.get("shape").value)
        )
    return _made(kind, form.get("parameters").need(dict, "an object"))


def _made(kind: str, parameters: Mapping[str, Any]) -> Any:
    import numpyro.distributions as theirs

    cls = getattr(theirs, kind, None)
    if not (isinstance(cls, type) and issubclass(cls, theirs.Distribution)):
        raise UnsupportedModel(f"there is no distribution {kind!r}")
    return cls(**{k: np.asarray(v) if isinstance(v, list) else v for k, v in parameters.items()})


def _door(kind: str) -> Any:
    import markovia.distributions as ours

    return getattr(ours, kind)


def _constraint(name: str) -> Any:
    import numpyro.distributions as theirs

    return getattr(theirs.constraints, name)


def _imported(home: str) -> Any:
    """Return the function that a name such as `package.module:name` stands for."""
    module, _, path = home.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnsupportedModel(f"the function {home!r} cannot be imported: {error}") from None
    if not isinstance(found, FunctionType):
        raise UnsupportedModel(f"{home!r} is no function")
    return found
