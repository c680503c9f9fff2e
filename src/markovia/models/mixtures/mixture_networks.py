"""The Bayesian network of a mixture: a node for the component, and the columns under it.

Columns of zeros and ones and of categories are tables. Gaussians are linear ones, and a column has as parents also those
before it with which it covaries in some component. Counts are tables up to where next to nothing is left; a column of
Student's t is a function of the component.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.learning.components.columns import CategoricalColumns, Product
from markovia.learning.components.discrete import Poisson
from markovia.learning.components.gaussian import StudentT
from markovia.models.classifiers.feature_rows import feature_names
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.hidden_states.component_nodes import add_components
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
    if isinstance(components, Poisson):
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
        add_components(network, components, names, [COMPONENT])


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
