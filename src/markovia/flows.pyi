from markovia.factors.networks.density_modules import (
    DensityModule as DensityModule,
    ModuleDistribution as ModuleDistribution,
)
