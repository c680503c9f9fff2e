"""The Bayesian network of some steps of a hidden Markov model."""

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.learning.sequences.discrete_emissions import Bernoulli, Categorical
from markovia.learning.sequences.emissions import Emission
from markovia.learning.sequences.gaussian_emissions import Gaussian
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.unrolled import hidden_markov_model, markov_chain
from markovia.runtime.array_types import Array


def unrolled(start: Array, transition: Array, emission: Emission, T: int) -> BayesianNetwork:  # noqa: N803
    """Return the network of T steps; see `HMM.unroll`."""
    if isinstance(emission, Categorical):
        return hidden_markov_model(start, transition, emission.probs, T, symbols=emission.symbols)
    if not isinstance(emission, Bernoulli | Gaussian):
        raise UnsupportedModel(
            f"only categorical, Bernoulli and Gaussian emissions are unrolled, not {type(emission).__name__}"
        )
    network = markov_chain(start, transition, T, variable="z", name="hidden_markov_model")
    d = len(emission.params[emission.names[0]][0])
    for t in range(T):
        names = [f"x{t}"] if d == 1 else [f"x{t}_{j}" for j in range(d)]
        for j, name in enumerate(names):
            if isinstance(emission, Bernoulli):
                table = np.column_stack([1.0 - emission.probs[:, j], emission.probs[:, j]])
                network.add(name, states=[0, 1], parents=[f"z{t}"], p=table)
            else:
                by_state = {k: _given_earlier(emission, k, j, names) for k in range(len(start))}
                network.add(name, by_state, parents=[f"z{t}"])
    return network


def _given_earlier(emission: Gaussian, k: int, j: int, names: list[str]) -> LinearGaussian:
    """Return column j of a state's Gaussian given the columns before it."""
    mean, covariance = emission.means[k], emission.covariances[k]
    weights = np.linalg.solve(covariance[:j, :j], covariance[:j, j])
    bias = mean[j] - weights @ mean[:j]
    variance = covariance[j, j] - weights @ covariance[:j, j]
    return LinearGaussian(float(bias), dict(zip(names[:j], weights.tolist(), strict=True)), float(variance))
