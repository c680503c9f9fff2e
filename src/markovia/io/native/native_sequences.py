"""Hidden Markov models and Markov chains in the native format: their values, and the settings that these need."""

from typing import Any

import numpy as np

from markovia.errors import MarkoviaError, UnsupportedModel
from markovia.io.native.json_paths import JsonNode
from markovia.learning.sequences.baum_welch import HiddenMarkov
from markovia.models.temporal.hidden_states.emission_families import EMISSIONS
from markovia.models.temporal.hmm import HMM
from markovia.models.temporal.markov_chain import MarkovChain
from markovia.runtime.source_text import brief

_PLAIN = (str, int, float, bool)
_SHAPE = {"order": 1, "lags": 0, "structure": "ergodic", "band": None, "tied": None, "transition_mask": None}
_COMMON = ("format", "version", "kind")


def is_plain_hmm(model: HMM) -> bool:
    """Say whether a hidden Markov model is its start, its transition and emissions with a name, and nothing else."""
    return (
        type(model) is HMM
        and not any(getattr(model, n) is not v and getattr(model, n) != v for n, v in _SHAPE.items())
        and getattr(model, "_chain_law", None) is None
        and np.ndim(model.transition) != 3
    )


def write_hmm(model: HMM) -> dict[str, Any]:
    """Return the content of a hidden Markov model that has values."""
    if not isinstance(model.emission, str):
        raise UnsupportedModel(
            "the native format holds HMMs whose emission has a name; pickle keeps the others"
        )
    values = model._model()
    if type(values) is not HiddenMarkov or type(values.emission) is not EMISSIONS[model.emission]:
        raise UnsupportedModel("the native format holds HMMs that no inputs drive; pickle keeps the others")
    params = {name: np.asarray(value).tolist() for name, value in values.emission.params.items()}
    content: dict[str, Any] = {
        "states": model.n_states,
        "emission": model.emission,
        "covariance_type": model.covariance_type,
        "start": values.start.tolist(),
        "transition": values.transition.tolist(),
        "parameters": params,
    }
    if model.emission == "categorical":
        content["symbols"] = _symbols(values.emission.symbols)  # type: ignore[attr-defined]
    if hasattr(model, "feature_names_in_"):
        content["columns"] = [str(c) for c in model.feature_names_in_]
    return content


def read_hmm(root: JsonNode) -> HMM:
    """Read a hidden Markov model; what it has are values that learning may go on from."""
    named = ("states", "emission", "covariance_type", "start", "transition", "parameters")
    root.only(*_COMMON, *named, "symbols", "columns")
    symbols = root.get("symbols").need(list, "a list of symbols") if "symbols" in root else None
    model = HMM(
        root.get("states").need(int, "a number of states"),
        emission=root.get("emission").text(),
        covariance_type=root.get("covariance_type").text(),  # type: ignore[arg-type]
        start=root.get("start").value,
        transition=root.get("transition").value,
        symbols=symbols,
        emission_params={name: node.value for name, node in root.get("parameters").fields()},
    )
    try:
        values = model._model()
    except (MarkoviaError, KeyError, TypeError, ValueError) as error:
        root.get("parameters").fail(f"expected the values of a hidden Markov model; {brief(str(error))}")
    model._keep(values)
    width = values.emission.width
    model.n_features_in_ = 1 if width is None else width
    if "columns" in root:
        names = [node.text() for node in root.get("columns").items()]
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def write_chain(chain: MarkovChain) -> dict[str, Any]:
    """Return the content of a Markov chain that has a table."""
    return {
        "symbols": _symbols(chain.symbols),
        "order": chain.order,
        "smoothing": chain.smoothing,
        "back_off": chain.back_off,
        "start": chain.start.tolist(),
        "table": chain.table.reshape(-1, len(chain.symbols)).tolist(),
    }


def read_chain(root: JsonNode) -> MarkovChain:
    """Read a Markov chain."""
    root.only(*_COMMON, "symbols", "order", "smoothing", "back_off", "start", "table")
    symbols = root.get("symbols").need(list, "a list of symbols")
    order = root.get("order").need(int, "an order")
    try:
        table = np.asarray(root.get("table").value, dtype=np.float64).reshape((len(symbols),) * (order + 1))
        return MarkovChain(
            table,
            symbols,
            start=root.get("start").value,
            order=order,
            smoothing=root.get("smoothing").value,
            back_off=root.get("back_off").value,
        )
    except (MarkoviaError, TypeError, ValueError) as error:
        root.get("table").fail(f"expected the table of a Markov chain; {brief(str(error))}")


def _symbols(symbols: Any) -> list[Any]:
    found = [s.item() if isinstance(s, np.generic) else s for s in symbols]
    for one in found:
        if not isinstance(one, _PLAIN):
            raise UnsupportedModel(
                f"the native format holds symbols that are strings or numbers, not {one!r}"
            )
    return found
