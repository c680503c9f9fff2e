"""The values of a hidden Markov model under the names of hmmlearn, to read and to set.

Before learning, setting one is giving it to the constructor: answers use it, and learning begins there. Afterwards it takes
the place of what was learned.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.learning.components.families import parameter, probabilities
from markovia.learning.components.tied import untied
from markovia.learning.sequences.chain_laws import Driven, HigherOrder
from markovia.runtime.array_types import Array
from markovia.runtime.keyword_advice import missing_attribute
from markovia.runtime.seeds import generator

WORDS = {
    "n_components": "n_states",
    "n_iter": "max_iter",
    "n_mix": "n_mixtures",
    "n_features": "n_features_in_",
    "score_samples": "log_prob and smooth",
    "get_stationary_distribution": "MarkovChain(hmm.transmat_).stationary()",
    "init_params": "init",
    "log_probability": "log_prob",
    "probability": "log_prob",
    "viterbi": "decode",
    "forward_backward": "smooth",
    "forward": "filter",
    "summarize": "partial_fit",
    "from_summaries": "partial_fit",
    "initialize": "fit",
    "fit_em": "fit",
    "fit_sgd": "fit",
    "most_likely_states": "decode",
    "smoother": "smooth",
    "marginal_log_prob": "log_prob",
    "posterior_sample": "sample_paths",
    "num_states": "n_states",
}
"""What hmmlearn, pomegranate and dynamax call verbs and settings, and what they are here."""


class Monitor(NamedTuple):
    """How learning went, under the names of hmmlearn's monitor."""

    converged: bool
    history: list[float]
    iter: int


def _emission_value(name: str, doc: str) -> property:
    """Return an attribute that is a value of the emissions: of learned ones, or of those that are given."""
    return property(
        lambda self: self._of_emission(name), lambda self, value: self._set_emission(name, value), doc=doc
    )


class KnownValues:
    """Attributes of `HMM` that are its values."""

    n_states: int
    order: int
    start: Any
    transition: Any
    symbols: Any
    emission_params: Any
    emission_: Any
    history_: Any
    converged_: bool
    n_iter_: int
    _emission_of: Any
    _law: Any
    _keep: Any
    _model: Any

    if not TYPE_CHECKING:  # a type checker is to see that a misspelt attribute is none

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            if hasattr(type(self), name):
                raise AttributeError(
                    f"this HMM has no {name!r}: it is not fitted, or its emissions have none"
                )
            raise missing_attribute(self, name, WORDS)

    @property
    def monitor_(self) -> Monitor:
        """How learning went: `converged`, `history` and `iter`."""
        return Monitor(bool(self.converged_), list(self.history_), self.n_iter_)

    startprob_ = property(
        lambda self: self._of_chain("startprob_", self.start),
        lambda self, value: self._set_chain("start", value),
        doc="The distribution of the first state.",
    )
    transmat_ = property(
        lambda self: self._of_chain("transmat_", self.transition),
        lambda self, value: self._set_chain("transition", value),
        doc="The moves: row i is the distribution of the state after state i.",
    )
    means_ = _emission_value("means", "The means.")
    covars_ = _emission_value(
        "covariances",
        "The covariances, in full for every kind; they may be set in the short shapes of their kind.",
    )
    weights_ = _emission_value("weights", "The weights of the parts of mixtures.")
    emissionprob_ = _emission_value("probs", "The probabilities of symbols.")
    rates_ = _emission_value("rates", "The rates.")
    lambdas_ = rates_

    # -- inside ------------------------------------------------------------------------------------------------

    def _of_chain(self, name: str, given: Any) -> Array:
        found = vars(self).get(name, given)
        if found is None:
            raise AttributeError(name)
        return np.asarray(found)

    def _set_chain(self, name: str, value: Any) -> None:
        if "emission_" not in vars(self):
            setattr(self, name, value)
            return
        model = self._model()
        if isinstance(model, Driven):
            raise UnsupportedModel(
                "inputs drive the moves of this model; give start= and transition= to a new one"
            )
        known = {"start": model.start, "transition": model.transition}
        shape = known[name].shape
        if name == "start":
            found = parameter(value, "startprob_", shape)
            known[name] = probabilities(found.ravel(), "startprob_", (found.size,)).reshape(shape)
        else:
            known[name] = probabilities(value, "transmat_", shape)
        if isinstance(model, HigherOrder):
            self._keep(self._law(generator(0), known["start"], known["transition"], self.emission_))
        else:
            self._keep(model._replace(**known))

    def _of_emission(self, name: str) -> Array:
        params = self.emission_.params if "emission_" in vars(self) else self.emission_params or {}
        if name not in params:
            raise AttributeError(name)
        return np.asarray(params[name])

    def _set_emission(self, name: str, value: Any) -> None:
        if "emission_" not in vars(self):
            self.emission_params = {**(self.emission_params or {}), name: value}
            return
        old = untied(self.emission_)
        if name not in old.params:
            raise AttributeError(f"the emissions of this HMM have {', '.join(old.params)}, and no {name}")
        self.emission_ = self._emission_of(
            {**old.params, name: value},
            getattr(old, "symbols", None),
            np.shape(old.params["inputs"])[-1] if "inputs" in old.params else 0,
        )
