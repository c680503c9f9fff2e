"""State-space models in the native format: `linear-state-space` with its matrices, presets with settings and parameters.

    {"format": "markovia", "version": 1, "kind": "arima", "settings": {"order": [1, 0, 0]},
     "parameters": {"ar1": 0.5, "variance": 1.0}, "learned": {"standard_errors": {"ar1": 0.1, "variance": null}}}

Matrices have one more axis where they vary over time. An infinite variance of the start, and a standard error that is not
known, is null. `learned` is there after `fit`.
"""

from typing import Any

import numpy as np

from markovia.errors import MarkoviaError, UnsupportedModel
from markovia.io.native.json_paths import JsonNode
from markovia.models.temporal.arima import ARIMA
from markovia.models.temporal.dynamic_factor import DynamicFactor
from markovia.models.temporal.kalman_model import KalmanModel
from markovia.models.temporal.linear_state_space import LinearStateSpace
from markovia.models.temporal.parametric_series import ParametricSeries
from markovia.models.temporal.structural_series import StructuralSeries
from markovia.runtime.source_text import brief

PRESETS: dict[str, Any] = {
    "arima": ARIMA,
    "dynamic-factor": DynamicFactor,
    "structural-series": StructuralSeries,
}
_COMMON = ("format", "version", "kind")
_MATRICES = (
    "transition", "transition_cov", "observation", "observation_cov", "initial_mean", "initial_cov",
    "transition_offset", "observation_offset",
)  # fmt: skip
_INPUTS = ("transition_input", "observation_input")
_LEARNED = ("log_likelihood", "aic", "bic", "n_seen", "n_iter", "converged")


def state_space_content(model: KalmanModel) -> tuple[str, dict[str, Any]]:
    """Return the kind and the content of a state-space model."""
    kind = next((k for k, cls in PRESETS.items() if type(model) is cls), None)
    if kind is None and type(model) is not LinearStateSpace:
        raise UnsupportedModel(f"the native format holds no {type(model).__name__}; pickle does")
    learned: dict[str, Any] = {}
    if hasattr(model, "standard_errors_"):
        errors = model.standard_errors_
        learned = {"standard_errors": {name: _listed(value) for name, value in errors.items()}}
        learned |= {n: getattr(model, f"{n}_") for n in _LEARNED if hasattr(model, f"{n}_")}
    found: dict[str, Any] = {}
    if isinstance(model, ParametricSeries):
        settings = {name: value for name, value in model.get_params().items() if name != "params"}
        found = {"settings": settings, "parameters": model._known()}
    elif isinstance(model, LinearStateSpace):
        for name in _MATRICES:
            value = getattr(model.space, name)
            if name == "initial_cov":
                value = value + np.diag(np.where(model.space.diffuse, np.inf, 0.0))
            found[name] = _listed(value[0] if not name.startswith("initial") and len(value) == 1 else value)
        found |= {
            name: _listed(given) for name, given in model._input_matrices().items() if given is not None
        }
        found["settings"] = {"form": model.form, "method": model.method}
    return kind or "linear-state-space", {**found, **({"learned": learned} if learned else {})}


def read_state_space(root: JsonNode) -> KalmanModel:
    """Read a state-space model; its values are also where learning goes on from."""
    preset = PRESETS.get(root.get("kind").text())
    settings: dict[str, Any] = {
        name: tuple(node.value) if isinstance(node.value, list) else node.value
        for name, node in root.get("settings").fields()
    }
    try:
        if preset is not None:
            root.only(*_COMMON, "settings", "parameters", "learned")
            parameters = dict(root.get("parameters").need(dict, "the values of parameters"))
            model: KalmanModel = preset(**settings, params=parameters)
        else:
            root.only(*_COMMON, "settings", *_MATRICES, *_INPUTS, "learned")
            inputs = {name: _array(root.get(name), np.nan) for name in _INPUTS if name in root}
            given = {name: _array(root.get(name), np.inf) for name in _MATRICES}
            model = LinearStateSpace(**given, **inputs, **settings)
        space = model.space
    except (MarkoviaError, TypeError, ValueError) as error:
        root.fail(f"expected the values of a state-space model; {brief(str(error))}")
    if isinstance(model, LinearStateSpace) and preset is None:
        model._keep(space)
    if "learned" in root:
        _set_learned(model, root.get("learned"))
    return model


def _set_learned(model: KalmanModel, learned: JsonNode) -> None:
    learned.only("standard_errors", *_LEARNED)
    errors = {name: _array(node, np.nan) for name, node in learned.get("standard_errors").fields()}
    if isinstance(model, ParametricSeries):
        model.params_ = model._known()
        errors = {name: float(value) for name, value in errors.items()}
    vars(model)["standard_errors_"] = errors
    for name in _LEARNED:
        if name in learned:
            setattr(model, f"{name}_", learned.get(name).value)


def _listed(value: Any) -> Any:
    found = np.asarray(value, dtype=object)
    return np.where(np.isfinite(found.astype(np.float64)), found, np.array(None)).tolist()


def _array(node: JsonNode, gap: float) -> Any:
    value = np.array(node.value, dtype=object)
    try:
        return np.where(value == None, gap, value).astype(np.float64)  # noqa: E711 (each entry)
    except (TypeError, ValueError):
        node.fail("expected an array of numbers")
