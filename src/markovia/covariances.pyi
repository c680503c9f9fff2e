from markovia.factors.covariances.algebra import (
    Constant as Constant,
    Product as Product,
    Scaled as Scaled,
    Sum as Sum,
    White as White,
)
from markovia.factors.covariances.categories import Categorical as Categorical, Index as Index
from markovia.factors.covariances.covariance import Covariance as Covariance
from markovia.factors.covariances.dot_products import (
    ArcCosine as ArcCosine,
    Brownian as Brownian,
    Linear as Linear,
    Polynomial as Polynomial,
)
from markovia.factors.covariances.input_maps import (
    Changepoint as Changepoint,
    FromFunction as FromFunction,
    Warped as Warped,
)
from markovia.factors.covariances.periodic import (
    Cosine as Cosine,
    Periodic as Periodic,
    QuasiPeriodic as QuasiPeriodic,
    SpectralMixture as SpectralMixture,
)
from markovia.factors.covariances.radial import (
    RBF as RBF,
    Matern12 as Matern12,
    Matern32 as Matern32,
    Matern52 as Matern52,
    RationalQuadratic as RationalQuadratic,
)
