from markovia.models.gaussian.gaussian_process import (
    GaussianProcess as GaussianProcess,
    LeftOut as LeftOut,
)
from markovia.models.gaussian.kernel_density import KernelDensity as KernelDensity
from markovia.models.gaussian.kernel_pca import KernelPCA as KernelPCA
from markovia.models.gaussian.kernel_regression import (
    KernelRidge as KernelRidge,
    LocalLinear as LocalLinear,
    NadarayaWatson as NadarayaWatson,
)
from markovia.models.gaussian.process_classifier import GaussianProcessClassifier as GaussianProcessClassifier
from markovia.models.gaussian.relevance_vectors import (
    RelevanceVectorClassifier as RelevanceVectorClassifier,
    RelevanceVectorRegressor as RelevanceVectorRegressor,
)
from markovia.models.gaussian.support_vectors import (
    OptimalityReport as OptimalityReport,
    SupportVectorClassifier as SupportVectorClassifier,
    SupportVectorRegressor as SupportVectorRegressor,
)
