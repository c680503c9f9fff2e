"""Inputs that drive a hidden chain and what it emits: read, checked against a model, and used in draws."""

from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.components.regressions import RegressionGaussian
from markovia.learning.components.tied import Tied, untied
from markovia.learning.sequences.chain_laws import Driven
from markovia.runtime.array_types import Array, Ints


def _wanted(model: Any) -> int:
    """Return how many inputs a model has."""
    emission = untied(model.emission)
    emits = emission.inputs.shape[2] if isinstance(emission, RegressionGaussian) else 0
    return int(max(emits, model.weights.shape[2] - 1 if isinstance(model, Driven) else 0))


def _checked(inputs: Any, model: Any, what: str) -> bool:
    """Say whether a model needs inputs, and refuse where it has none or too many."""
    wanted = _wanted(model)
    if inputs is None and wanted:
        raise InvalidArgument(f"{wanted} inputs drive this model; say {what}")
    if inputs is not None and not wanted:
        raise InvalidArgument(f"no inputs drive this model, so {what} says nothing to it")
    return wanted > 0


def asked_inputs(inputs: Array | None, model: Any) -> Array | None:
    """Return the inputs of sequences that a model is asked about, if they are those it has."""
    if _checked(inputs, model, "inputs=") and inputs is not None and inputs.shape[1] != _wanted(model):
        raise InvalidArgument(
            f"inputs= have {inputs.shape[1]} columns; {_wanted(model)} inputs drive this model"
        )
    return inputs


def coming_inputs(inputs: Any, model: Any, count: int, steps: int, what: str) -> Array | None:
    """Return the inputs of sequences to come, (count, steps, inputs); one array stands for all of them."""
    if not _checked(inputs, model, what):
        return None
    found = np.asarray(inputs, dtype=np.float64)
    shape = (count, steps, _wanted(model))
    if found.ndim == 1 and shape[2] == 1:
        found = found[:, None]
    if found.ndim == 2 and shape[2] == 1 and found.shape == shape[:2]:
        found = found[:, :, None]
    if found.shape not in (shape, shape[1:]) or not np.isfinite(found).all():
        raise InvalidArgument(
            f"{what} are finite numbers of shape {' x '.join(map(str, shape[1:]))}, or one such array a sequence, not "
            f"{' x '.join(map(str, found.shape))}"
        )
    return np.broadcast_to(found, shape)


def drawn_after(emission: Any, states: Ints, inputs: Array | None, rng: np.random.Generator) -> Any:
    """Return drawn observations (count, steps, columns) of emissions that depend on those before, or on inputs."""
    inner = untied(emission)
    own = emission.groups[states] if isinstance(emission, Tied) else states
    if not (isinstance(inner, RegressionGaussian) and inner.inputs.shape[2]):
        inputs = None
    past: list[Any] = []
    for t in range(states.shape[1]):
        past.append(inner.draw_after(own[:, t], past, None if inputs is None else inputs[:, t], rng))
    return np.stack(past, axis=1)
