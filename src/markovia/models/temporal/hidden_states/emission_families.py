"""What a hidden state may emit: the families that have a name, any distribution, any Bayesian network."""

from collections.abc import Mapping
from typing import Any

from markovia.errors import InvalidArgument
from markovia.learning.components.discrete import Bernoulli, Categorical, Multinomial, Poisson
from markovia.learning.components.functions import DistributionFamily
from markovia.learning.components.gaussian import Gaussian, GaussianMixtureComponents, StudentT
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.hidden_states.network_emissions import NetworkFamily
from markovia.runtime.checks import Choice, check

EMISSIONS: dict[str, Any] = {
    "categorical": Categorical,
    "gaussian": Gaussian,
    "gmm": GaussianMixtureComponents,
    "student-t": StudentT,
    "poisson": Poisson,
    "bernoulli": Bernoulli,
    "multinomial": Multinomial,
}


def family_of(emission: Any, given: Mapping[str, Any] | None = None) -> Any:
    """Return the family that a name, a class or function of distributions, or a network stands for."""
    if isinstance(emission, BayesianNetwork):
        return NetworkFamily(emission)
    if callable(emission):
        if given is not None and not isinstance(given, Mapping):
            raise InvalidArgument(f"emission_params= is a mapping from name to values, not {given!r}")
        return DistributionFamily(emission, given)
    others = "a distribution of markovia.distributions, a function that returns one, or a BayesianNetwork"
    check("emission", emission, Choice(tuple(EMISSIONS), other=others))
    return EMISSIONS[emission]
