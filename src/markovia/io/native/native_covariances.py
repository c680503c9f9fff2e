"""Gaussian processes in native JSON: nodes that are functions, with covariances by their class and numbers.

    {"process": COV, "mean": 0.0, "inducing": [[0.0], [1.0]], "node": "f"}

A COV is `{"covariance": "RBF", "own": {"length": 1.5}}`, with `columns`, `parts` (a list of COV), `settings` (whole numbers
and flags) where there are some. A hyper-parameter is a number, nested lists, null for what fit finds, or
`{"start": 1.0, "support": "positive", "fixed": false}`; `node` says whose parameters those
that are fitted are. Covariances of functions and modules are not held.
"""

from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.covariances.covariance import Covariance
from markovia.factors.covariances.process import GP, FittedProcess
from markovia.factors.functions.parameter import Parameter
from markovia.io.native.json_paths import JsonNode

SETTINGS = ("ard", "degree", "order", "rank", "column")
"""What a covariance has beside its numbers, parts and columns."""


def written_process(name: str, form: GP | FittedProcess) -> dict[str, Any]:
    """Return a process as plain values; `name` is that of its node, for messages.

    Raises
    ------
    UnsupportedModel
        Where its mean or its covariance is a function.
    """
    process = form.process if isinstance(form, FittedProcess) else form
    if callable(process.mean):
        raise UnsupportedModel(f"the mean of {name!r} cannot be stored: a file holds means that are numbers")
    found = {
        "process": written_covariance(name, process.covariance),
        "mean": _written_number(name, process.mean),
    }
    if isinstance(form, FittedProcess):
        found["node"] = form.node
    inducing = process.inducing
    if inducing is not None:
        found["inducing"] = inducing if isinstance(inducing, int) else inducing.tolist()
    return found


def read_process(form: JsonNode) -> GP | FittedProcess:
    """Build a process from plain values."""
    form.only("process", "mean", "inducing", "node")
    inducing = form.get("inducing").value if "inducing" in form else None
    process = GP(read_covariance(form.get("process")), _read_number(form.get("mean")), inducing=inducing)
    return FittedProcess(form.get("node").text(), process) if "node" in form else process


def written_covariance(name: str, covariance: Covariance) -> dict[str, Any]:
    """Return a covariance as plain values; `name` is what has it, for messages."""
    import markovia.covariances as door

    kind = type(covariance).__name__
    others = vars(covariance).keys() - {"own", "columns", "parts", *SETTINGS}
    if others or getattr(door, kind, None) is not type(covariance):
        raise UnsupportedModel(
            f"the covariance of {name!r} cannot be stored: {kind} holds a function, and a file holds those of numbers alone"
        )
    found: dict[str, Any] = {
        "covariance": kind,
        "own": {n: _written_number(name, v) for n, v in covariance.own.items()},
    }
    if covariance.columns is not None:
        found["columns"] = list(covariance.columns)
    if covariance.parts:
        found["parts"] = [written_covariance(name, part) for part in covariance.parts]
    if settings := {n: vars(covariance)[n] for n in SETTINGS if n in vars(covariance)}:
        found["settings"] = settings
    return found


def read_covariance(own: JsonNode) -> Covariance:
    """Build a covariance from plain values."""
    import markovia.covariances as door

    own.only("covariance", "own", "columns", "parts", "settings")
    name = own.get("covariance").text()
    kind = getattr(door, name, None) if name[:1].isupper() else None
    if not (isinstance(kind, type) and issubclass(kind, Covariance)):
        own.get("covariance").fail("expected a covariance of mk.covariances")
    parts = [read_covariance(part) for part in own.get("parts").items()] if "parts" in own else []
    numbers = {n: _read_number(v) for n, v in own.get("own").fields()}
    found: Covariance = object.__new__(kind)
    Covariance.__init__(found, numbers, own.get("columns").value if "columns" in own else None, parts)
    for setting, value in own.get("settings").fields() if "settings" in own else ():
        if setting not in SETTINGS or not isinstance(value.value, int | bool):
            value.fail(f"expected one of {', '.join(SETTINGS)}, a whole number or a flag")
        setattr(found, setting, value.value)
    return found


def _written_number(name: str, value: Any) -> Any:
    if isinstance(value, Parameter):
        if value.is_module or value.prior is not None or not isinstance(value.support, str | None):
            raise UnsupportedModel(
                f"a parameter of {name!r} has a prior, a constraint or a module, which a file does not hold"
            )
        return {"start": value.value.tolist(), "support": value.support, "fixed": value.fixed}
    return None if value is None else np.asarray(value).tolist()


def _read_number(own: JsonNode) -> Any:
    value = own.value
    if isinstance(value, dict):
        own.only("start", "support", "fixed")
        return Parameter(value["start"], support=value.get("support"), fixed=bool(value.get("fixed")))
    return None if value is None else np.asarray(value, dtype=np.float64)[()]
