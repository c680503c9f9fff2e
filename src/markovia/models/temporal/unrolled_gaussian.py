"""Steps of linear Gaussian models as nodes of a network, one number a node."""

from collections.abc import Sequence

import numpy as np

from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array


def add_vector(
    network: BayesianNetwork,
    names: Sequence[str],
    biases: Array,
    matrices: Array,
    parents: Sequence[str],
    covs: Array,
    regime: str | None = None,
) -> None:
    """Add a vector that is linear in its parents, each number given those before it; a law a state of a regime, if any.

    Parameters
    ----------
    network
        What to add to.
    names
        Of the numbers.
    biases, matrices, covs
        One a state of the regime, or one.
    parents
        The names of the matrices' columns.
    regime
        The node that chooses among them.
    """
    for i, name in enumerate(names):
        laws = []
        for bias, matrix, cov in zip(biases, matrices, covs, strict=True):
            on = np.linalg.pinv(cov[:i, :i], hermitian=True) @ cov[:i, i]
            weights = dict(zip(parents, (matrix[i] - on @ matrix[:i]).tolist(), strict=True))
            weights |= dict(zip(names[:i], on.tolist(), strict=True))
            noise = max(0.0, float(cov[i, i] - on @ cov[:i, i]))
            laws.append((float(bias[i] - on @ bias[:i]), weights, noise))
        # a weight that is zero in every regime is no edge
        used = {parent for _, weights, _ in laws for parent, w in weights.items() if w != 0.0}
        made = [
            LinearGaussian(bias, {parent: w for parent, w in weights.items() if parent in used}, noise)
            for bias, weights, noise in laws
        ]
        if regime is None:
            network.add(name, made[0])
        else:
            network.add(name, dict(enumerate(made)), parents=[regime])
