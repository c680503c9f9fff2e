from markovia.factors.networks.density_modules import (
    DensityModule as DensityModule,
    ModuleDistribution as ModuleDistribution,
)
from markovia.factors.networks.flow_modules import (
    EstimatedFlow as EstimatedFlow,
    InvertibleLaw as InvertibleLaw,
    NormalisingFlow as NormalisingFlow,
)
from markovia.factors.networks.autoregressive_modules import AutoregressiveStates as AutoregressiveStates
from markovia.factors.networks.flows import (
    autoregressive as autoregressive,
    continuous as continuous,
    coupling as coupling,
    glow as glow,
    linear as linear,
    made as made,
    nade as nade,
    pixel_cnn as pixel_cnn,
    planar as planar,
    radial as radial,
)
