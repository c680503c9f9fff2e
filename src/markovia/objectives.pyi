from markovia.learning.neural.adversarial import (
    MMD as MMD,
    Adversarial as Adversarial,
    WassersteinGAN as WassersteinGAN,
)
from markovia.learning.neural.denoising import Denoising as Denoising
from markovia.learning.neural.discrete_codes import (
    GumbelSoftmax as GumbelSoftmax,
    VectorQuantised as VectorQuantised,
)
from markovia.learning.neural.elbo import (
    ELBO as ELBO,
    ImportanceWeighted as ImportanceWeighted,
)
from markovia.learning.neural.hidden_units import (
    GibbsLearning as GibbsLearning,
    SigmoidMeanField as SigmoidMeanField,
)
from markovia.learning.neural.noise_contrastive import NoiseContrastive as NoiseContrastive
from markovia.learning.neural.persistent_chains import PersistentChains as PersistentChains
from markovia.learning.neural.predictability import PredictabilityMinimisation as PredictabilityMinimisation
from markovia.learning.neural.score_gradients import (
    NVIL as NVIL,
    VIMCO as VIMCO,
)
from markovia.learning.neural.score_matching import ScoreMatching as ScoreMatching
from markovia.learning.neural.wake_sleep import (
    ReweightedWakeSleep as ReweightedWakeSleep,
    WakeSleep as WakeSleep,
)
