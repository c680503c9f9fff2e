from markovia.models.deep.belief_nets import SigmoidBeliefNetwork as SigmoidBeliefNetwork
from markovia.models.deep.boltzmann import RBM as RBM
from markovia.models.deep.boltzmann_kinds import (
    DBM as DBM,
    ConditionalRBM as ConditionalRBM,
    ConvolutionalRBM as ConvolutionalRBM,
)
from markovia.models.deep.dbn import DBN as DBN
from markovia.models.deep.diffusion_model import Diffusion as Diffusion
from markovia.models.deep.energy_model import EnergyModel as EnergyModel
from markovia.models.deep.gan import (
    GAN as GAN,
    AdversarialAutoencoder as AdversarialAutoencoder,
    InfoGAN as InfoGAN,
)
from markovia.models.deep.vae import (
    VAE as VAE,
    ConditionalVAE as ConditionalVAE,
    SemiSupervisedVAE as SemiSupervisedVAE,
)
from markovia.models.deep.sequence_vae import SequenceVAE as SequenceVAE
from markovia.models.deep.flow import (
    Autoregressive as Autoregressive,
    Flow as Flow,
)
