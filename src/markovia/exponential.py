"""Distributions by name, as exponential families: densities, moments, draws, natural parameters, conjugate priors.

Examples
--------
>>> import markovia as mk
>>> coin = mk.exponential.Bernoulli.fit([1, 1, 0, 1])
>>> coin.moments().tolist(), coin.natural().round(6).tolist()
([0.75], [1.098612])
>>> mk.exponential.Poisson.conjugate_prior(shape=1, rate=1).posterior([4, 2]).parameters
Gamma(shape=7, rate=3)
"""

from markovia.factors.distributions.conjugate_priors import (
    ConjugatePrior,
    Predictive,
    StudentT,
)
from markovia.factors.distributions.discrete_families import Bernoulli, Categorical, Multinomial, Poisson
from markovia.factors.distributions.exponential_family import ExponentialFamily
from markovia.factors.distributions.gaussian_families import (
    Gaussian,
    GaussianKnownVariance,
    NormalGamma,
)
from markovia.factors.distributions.multivariate_gaussian import (
    MultivariateGaussian,
    NormalInverseWishart,
)
from markovia.factors.distributions.positive_families import Beta, Dirichlet, Exponential, Gamma
from markovia.inference.theory.markov_field_family import MarkovField

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "ConjugatePrior",
    "Dirichlet",
    "Exponential",
    "ExponentialFamily",
    "Gamma",
    "Gaussian",
    "GaussianKnownVariance",
    "MarkovField",
    "Multinomial",
    "MultivariateGaussian",
    "NormalGamma",
    "NormalInverseWishart",
    "Poisson",
    "Predictive",
    "StudentT",
]
