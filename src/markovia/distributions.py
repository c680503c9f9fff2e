"""Distributions by name: `import markovia.distributions as dist`.

Examples
--------
>>> import markovia.distributions as dist
>>> dist.Normal(0, 1) + dist.Normal(0, 1)
Normal(loc=0, scale=1.4142135623730951)
"""

from markovia.factors.distributions.gaussian import MultivariateNormal
from markovia.factors.distributions.standard import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Distribution,
    Multinomial,
    Normal,
    Uniform,
)

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "Distribution",
    "Multinomial",
    "MultivariateNormal",
    "Normal",
    "Uniform",
]
