"""The Bayesian network of a mixture: a node for the component, and the columns under it.

Columns of zeros and ones and of categories are tables. Gaussians are linear ones, and a column has as parents also those
before it with which it covaries in some component. Counts are tables up to where next to nothing is left; a column of
Student's t is a function of the component.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.learning.components.columns import CategoricalColumns, Product
from markovia.learning.components.discrete import Bernoulli, Poisson
from markovia.learning.components.gaussian import Gaussian, StudentT
from markovia.models.classifiers.feature_rows import feature_names
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

COMPONENT = "component"
LEFT = 1e-13
"""The probability of counts that tables leave out."""


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
            table = _counts(rates)
            network.add(name, states=list(range(table.shape[1])), parents=[COMPONENT], p=table)
    elif isinstance(components, StudentT):
        if len(names) > 1:
            raise UnsupportedModel(
                "columns that are Student-t together share a hidden scale, which a network of the columns has not; "
                "component={'a': 'student-t', 'b': 'student-t'} makes them independent"
            )
        network.add(names[0], _student(components), parents=[COMPONENT])
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


def _counts(rates: Array) -> Array:
    """Return tables of counts, up to the one beyond which all components have less than `LEFT`."""
    from scipy.stats import poisson

    found = poisson.pmf(np.arange(int(poisson.isf(LEFT, rates.max())) + 1), rates[:, None])
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _student(components: StudentT) -> Any:
    def column(component: Any) -> Any:
        import jax.numpy as jnp
        import numpyro.distributions as dist

        df, mean = jnp.asarray(components.df), jnp.asarray(components.means[:, 0])
        scale = jnp.sqrt(jnp.asarray(components.scales[:, 0, 0]))
        return dist.StudentT(df[component], mean[component], scale[component])

    return column
