"""The names that `markovia.mixtures` hands out, each with its home."""

from markovia.models.choosing_components import choose_components as choose_components
from markovia.models.mixtures.dirichlet_process import DirichletProcessMixture as DirichletProcessMixture
from markovia.models.mixtures.expert_mixtures import (
    MixtureOfExperts as MixtureOfExperts,
    RegressionMixture as RegressionMixture,
)
from markovia.models.mixtures.factor_analysis import (
    FactorAnalysis as FactorAnalysis,
    ProbabilisticPCA as ProbabilisticPCA,
)
from markovia.models.mixtures.independent_components import ICA as ICA
from markovia.models.mixtures.k_means import KMeans as KMeans
from markovia.models.mixtures.latent_features import LatentFeatures as LatentFeatures
from markovia.models.mixtures.mixture import Mixture as Mixture
from markovia.models.mixtures.named_mixtures import (
    BernoulliMixture as BernoulliMixture,
    CategoricalMixture as CategoricalMixture,
    GaussianMixture as GaussianMixture,
    LatentClass as LatentClass,
    MarkovChainMixture as MarkovChainMixture,
    PoissonMixture as PoissonMixture,
    StudentTMixture as StudentTMixture,
)
from markovia.models.mixtures.sum_product_network import SumProductNetwork as SumProductNetwork
