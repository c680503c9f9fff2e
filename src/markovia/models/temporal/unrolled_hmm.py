"""A hidden Markov model as a Bayesian network of some steps, and as a dynamic network."""

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.learning.sequences.discrete_emissions import Bernoulli, Categorical
from markovia.learning.sequences.emissions import Emission
from markovia.learning.sequences.gaussian_emissions import Gaussian
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
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


def two_slices(start: Array, transition: Array, emission: Emission) -> DynamicBayesianNetwork:
    """Return the dynamic network of states `z` and observations `x`; see `HMM.network`."""
    if isinstance(emission, Categorical):
        symbols = {"x": (list(emission.symbols), emission.probs)}
    elif isinstance(emission, Bernoulli):
        ones = emission.probs.T
        names = ["x"] if len(ones) == 1 else [f"x_{j}" for j in range(len(ones))]
        symbols = {n: ([0, 1], np.column_stack([1.0 - p, p])) for n, p in zip(names, ones, strict=True)}
    else:
        raise UnsupportedModel(
            f"dynamic networks have tables, and {type(emission).__name__} emissions have none; unroll(T) may do"
        )
    first, later = BayesianNetwork(), BayesianNetwork()
    states = list(range(len(start)))
    first.add("z", states=states, p=start)
    later.add("z@-1", states=states)
    later.add("z", states=states, parents=["z@-1"], p=transition)
    for network in (first, later):
        for name, (known, table) in symbols.items():
            network.add(name, states=known, parents=["z"], p=table)
    return DynamicBayesianNetwork(first, later)


def _given_earlier(emission: Gaussian, k: int, j: int, names: list[str]) -> LinearGaussian:
    """Return column j of a state's Gaussian given the columns before it."""
    mean, covariance = emission.means[k], emission.covariances[k]
    weights = np.linalg.solve(covariance[:j, :j], covariance[:j, j])
    bias = mean[j] - weights @ mean[:j]
    variance = covariance[j, j] - weights @ covariance[:j, j]
    return LinearGaussian(float(bias), dict(zip(names[:j], weights.tolist(), strict=True)), float(variance))
