"""The Bayesian network of a mixture: a node for the component, and the columns under it.

Columns of zeros and ones and of categories are tables. Gaussians are linear ones, and a column has as parents also those
before it with which it covaries in some component. Counts are functions of the component.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.learning.components.columns import CategoricalColumns, Product
from markovia.learning.components.discrete import Bernoulli, Poisson
from markovia.learning.components.gaussian import Gaussian
from markovia.models.classifiers.input_checks import feature_names
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

COMPONENT = "component"


def mixture_network(mixture: Any) -> BayesianNetwork:
    """Return the network of a learned mixture."""
    names = feature_names(mixture)
    if COMPONENT in names:
        raise InvalidArgument(f"a column is called {COMPONENT!r}, as the hidden node is; rename the column")
    network = BayesianNetwork()
    k = len(mixture.weights_)
    network.add(COMPONENT, states=list(range(k)), p=mixture.weights_ / mixture.weights_.sum())
    add_columns(network, mixture._groups.components, names)
    return network


def add_columns(network: BayesianNetwork, components: Any, names: "Sequence[str]") -> None:
    """Add the columns of components, under the node of the component."""
    if isinstance(components, Gaussian):
        _add_gaussian(network, components, names)
    elif isinstance(components, Bernoulli):
        for name, probs in zip(names, components.probs.T, strict=True):
            network.add(name, states=[0, 1], parents=[COMPONENT], p=np.column_stack([1.0 - probs, probs]))
    elif isinstance(components, Poisson):
        for name, rates in zip(names, components.rates.T, strict=True):
            network.add(name, _poisson(rates), parents=[COMPONENT])
    elif isinstance(components, CategoricalColumns):
        for name, probs, symbols in zip(names, components.probs, components.symbols, strict=True):
            network.add(name, states=list(symbols), parents=[COMPONENT], p=probs)
    elif isinstance(components, Product):
        for own, members in zip(components.families, components.columns, strict=True):
            add_columns(network, own, members)
    else:
        raise UnsupportedModel(
            f"a mixture of {type(components).__name__} components has no Bayesian network of its columns"
        )


def _add_gaussian(network: BayesianNetwork, components: Gaussian, names: "Sequence[str]") -> None:
    means, covariances = components.means, components.covariances
    for i, name in enumerate(names):
        pull = np.array([np.linalg.solve(c[:i, :i], c[:i, i]) for c in covariances])
        used = np.flatnonzero(pull.any(axis=0)).tolist()
        given = {}
        for j in range(len(means)):
            bias = float(means[j, i] - pull[j] @ means[j, :i])
            variance = float(covariances[j, i, i] - pull[j] @ covariances[j, :i, i])
            given[j] = LinearGaussian(bias, {names[c]: float(pull[j, c]) for c in used}, variance)
        network.add(name, given, parents=[COMPONENT])


def _poisson(rates: Array) -> Any:
    def count(component: Any) -> Any:
        import jax.numpy as jnp
        import numpyro.distributions as dist

        return dist.Poisson(jnp.asarray(rates)[component])

    return count
