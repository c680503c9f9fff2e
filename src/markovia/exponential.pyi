"""The names that `markovia.exponential` hands out, each with its home."""

from markovia.factors.distributions.conjugate_priors import (
    ConjugatePrior as ConjugatePrior,
    Predictive as Predictive,
    StudentT as StudentT,
)
from markovia.factors.distributions.discrete_families import (
    Bernoulli as Bernoulli,
    Categorical as Categorical,
    Multinomial as Multinomial,
    Poisson as Poisson,
)
from markovia.factors.distributions.exponential_family import ExponentialFamily as ExponentialFamily
from markovia.factors.distributions.gaussian_families import (
    Gaussian as Gaussian,
    GaussianKnownVariance as GaussianKnownVariance,
    NormalGamma as NormalGamma,
)
from markovia.factors.distributions.multivariate_gaussian import (
    MultivariateGaussian as MultivariateGaussian,
    NormalInverseWishart as NormalInverseWishart,
)
from markovia.factors.distributions.positive_families import (
    Beta as Beta,
    Dirichlet as Dirichlet,
    Exponential as Exponential,
    Gamma as Gamma,
)
from markovia.inference.theory.markov_field_family import MarkovField as MarkovField
