"""Components as nodes of a network: a node for each column, under the hidden nodes that choose among components."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.learning.components.discrete import Bernoulli, Categorical
from markovia.learning.components.families import Components
from markovia.learning.components.gaussian import Gaussian
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array


def column_names(name: str, components: Components) -> list[str]:
    """Return what the columns of components are called: `x`, or `x_0`, `x_1`, ... where there are several."""
    d = 1 if isinstance(components, Categorical) else components.params[components.names[0]].shape[1]
    return [name] if d == 1 else [f"{name}_{j}" for j in range(d)]


def add_components(
    network: BayesianNetwork,
    components: Components,
    names: Sequence[str],
    parents: Sequence[str],
    labels: Sequence[Any] | None = None,
) -> None:
    """Add the columns of components, called by names; `labels` are as in `add_vector`.

    Raises
    ------
    UnsupportedModel
        For components that are neither categorical nor Bernoulli nor Gaussian.
    """
    if isinstance(components, Gaussian):
        none = np.zeros((*components.means.shape, 0))
        add_vector(network, names, components.means, none, (), components.covariances, parents, labels)
    elif isinstance(components, Bernoulli):
        for name, probs in zip(names, components.probs.T, strict=True):
            network.add(name, states=[0, 1], parents=parents, p=np.column_stack([1.0 - probs, probs]))
    elif isinstance(components, Categorical):
        sizes = [len(network.states(parent)) for parent in parents]
        table = components.probs.reshape((*sizes, -1))
        network.add(names[0], states=list(components.symbols), parents=parents, p=table)
    else:
        raise UnsupportedModel(
            f"{type(components).__name__} components are no nodes of a network; categorical, Bernoulli and Gaussian ones are"
        )


def add_vector(
    network: BayesianNetwork,
    names: Sequence[str],
    biases: Array,
    matrices: Array,
    inputs: Sequence[str],
    covs: Array,
    parents: Sequence[str] = (),
    labels: Sequence[Any] | None = None,
) -> None:
    """Add a vector that is linear in inputs, each number given those before it.

    Parameters
    ----------
    network
        What to add to.
    names
        Of the numbers.
    biases, matrices, covs
        Of one law, or of one for each label.
    inputs
        The names of the matrices' columns.
    parents
        The nodes that choose among laws, if any.
    labels
        The states of the parents, tuples where there are several, in the order of laws; 0, 1, ... by default.
    """
    for i, name in enumerate(names):
        laws = []
        for bias, matrix, cov in zip(biases, matrices, covs, strict=True):
            on = np.linalg.pinv(cov[:i, :i], hermitian=True) @ cov[:i, i]
            weights = dict(zip(inputs, (matrix[i] - on @ matrix[:i]).tolist(), strict=True))
            weights |= dict(zip(names[:i], on.tolist(), strict=True))
            noise = max(0.0, float(cov[i, i] - on @ cov[:i, i]))
            laws.append((float(bias[i] - on @ bias[:i]), weights, noise))
        # a weight that is zero in every law is no edge
        used = {source for _, weights, _ in laws for source, w in weights.items() if w != 0.0}
        made = [
            LinearGaussian(bias, {source: w for source, w in weights.items() if source in used}, noise)
            for bias, weights, noise in laws
        ]
        if parents:
            network.add(name, dict(zip(labels or range(len(made)), made, strict=True)), parents=list(parents))
        else:
            network.add(name, made[0])
