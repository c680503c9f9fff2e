"""The tilt of a hidden Markov model by rewards of steps, without entropy: exact, by one pass along the hidden chain.

With kappa = 1 states and symbols are tilted together: in state z the symbol v beside the wanted symbol c has the weight
E(v | z) exp(r(c, v) / tau), and their sum is what the hidden chain sees. Counts of symbols follow from those of states.
The fit is one step of expectation maximisation, which never lowers the objective. A power of the model other than 1
would tie all steps together, since p(y)^kappa is no product; then sequences are listed or drawn.

Cost: steps times states squared.
"""

from copy import deepcopy
from typing import Any

import numpy as np

from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.learning.control.reward_tilt import SequenceTilt, TiltPowers, refuse_impossible
from markovia.runtime.array_types import Array, Ints


class HiddenTilt(SequenceTilt):
    """Tilts of a hidden Markov model of symbols."""

    def __init__(self, model: Any, steps: Array, wanted: list[Ints], powers: TiltPowers) -> None:
        gains = np.exp(steps / powers.temperature)  # wanted, said
        joint = model.emissionprob_[None] * gains[:, None, :]  # wanted, state, said
        weights = joint.sum(axis=2)
        with np.errstate(divide="ignore"):
            logs = np.log(weights)
        offsets = np.concatenate([[0], np.cumsum([len(w) for w in wanted])])
        seen = Observed(logs, np.concatenate(wanted), offsets)
        found = HiddenChain(model.startprob_, model.transmat_).expect(seen)
        refuse_impossible(found.log_probs)
        self._masses = found.log_probs
        self.starts, self.pairs = found.starts, found.pairs[0]
        share = np.divide(found.sums, weights, out=np.zeros_like(weights), where=weights > 0)
        self.said = np.einsum("cz,czv->zv", share, joint)

    @staticmethod
    def fits(model: Any, powers: TiltPowers) -> bool:
        """Say whether a model is a plain chain of symbols, with no prior but the flat one."""
        plain = {
            "order": 1,
            "lags": 0,
            "tied": None,
            "start_prior": 1.0,
            "transition_prior": 1.0,
            "emission_prior": None,
        }
        alike = all(getattr(model, name, value) == value for name, value in plain.items())
        tables = all(np.ndim(getattr(model, name, 0)) == 2 for name in ("transmat_", "emissionprob_"))
        return powers.power == 1.0 and alike and tables and getattr(model, "emission", None) == "categorical"

    def log_masses(self) -> Array:
        """Return log Z."""
        return self._masses

    def fitted(self, model: Any) -> Any:
        """Return the model with the expected shares; a state that is never expected keeps its rows."""
        after = deepcopy(model)
        after.startprob_ = self.starts / self.starts.sum()
        after.transmat_ = _shares(self.pairs, model.transmat_)
        after.emissionprob_ = _shares(self.said, model.emissionprob_)
        return after


def _shares(counts: Array, before: Array) -> Array:
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), before)
