"""What hidden states will show: the law of coming observations, and draws of whole paths of them.

The law of a step is the mixture of the states' emissions by their probabilities: exact for symbols, Gaussians and mixtures
of Gaussians, by draws of paths for what has no such form.
"""

from typing import Any

import numpy as np

from markovia.inference.sequences.forecast import DrawnSteps, GaussianSteps, StateSteps, StepLaws
from markovia.learning.components.discrete import Categorical
from markovia.learning.components.gaussian import Gaussian, GaussianMixtureComponents
from markovia.learning.components.regressions import LaggedCategorical
from markovia.learning.components.tied import Tied, expanded, untied
from markovia.runtime.array_types import Array, Ints

DRAWS = 4_000
"""Paths that the law of observations is made from, where it has no closed form."""


def mixed_emissions(emission: Any, states: Array) -> list[StepLaws] | None:
    """Return the laws of observations from the probabilities of states (sequences, steps, states); None without a form."""
    one = expanded(emission)
    if isinstance(one, Categorical):
        return [StateSteps(p @ one.probs, one.symbols) for p in states]
    if type(one) not in (Gaussian, GaussianMixtureComponents):
        return None
    k = states.shape[-1]
    shares = getattr(one, "weights", np.ones((k, 1)))
    means, covs = (
        np.reshape(x, (k * shares.shape[1], *x.shape[-1 - i :]))
        for i, x in enumerate((one.means, one.covariances))
    )
    weights = (states[..., None] * shares).reshape(*states.shape[:2], -1)
    return [
        GaussianSteps(w, *(np.broadcast_to(x, (len(w), *x.shape)) for x in (means, covs))) for w in weights
    ]


def drawn_laws(emission: Any, paths: list[Any]) -> list[StepLaws]:
    """Return the laws of observations as drawn paths (draws, steps, columns) have them."""
    one = untied(emission)
    if not isinstance(one, LaggedCategorical):
        return [DrawnSteps(drawn) for drawn in paths]
    shares = [np.stack([(drawn[:, :, 0] == s).mean(axis=0) for s in one.symbols], axis=1) for drawn in paths]
    return [StateSteps(p, one.symbols) for p in shares]


def drawn_emissions(
    emission: Any, states: Ints, past: Any, inputs: Array | None, rng: np.random.Generator
) -> Any:
    """Draw what paths of states (draws, steps) show, (draws, steps, columns), after the rows of what was seen before.

    `inputs` are those of the steps, where they drive what is shown.
    """
    inner = untied(emission)
    if not hasattr(inner, "draw_after"):
        return emission.draw(states.ravel(), rng).reshape(*states.shape, -1)
    own = emission.groups[states] if isinstance(emission, Tied) else states
    before: list[Any] = [np.repeat(row[None], len(states), axis=0) for row in past[-max(inner.memory, 1) :]]
    for t in range(states.shape[1]):
        before.append(inner.draw_after(own[:, t], before, None if inputs is None else inputs[t], rng))
    return np.stack(before[len(before) - states.shape[1] :], axis=1)
