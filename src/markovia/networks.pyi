from markovia.factors.networks.adversarial_networks import (
    pyramid_critic as pyramid_critic,
    pyramid_generator as pyramid_generator,
    spectral as spectral,
)
from markovia.factors.networks.diffusion import (
    denoiser as denoiser,
    diffusion as diffusion,
)
from markovia.factors.networks.network_recipes import (
    attention as attention,
    cnn as cnn,
    cnn_decoder as cnn_decoder,
    gaussian_attention as gaussian_attention,
    gaussian_cnn as gaussian_cnn,
    gaussian_gru as gaussian_gru,
    gaussian_lstm as gaussian_lstm,
    gaussian_rnn as gaussian_rnn,
    gru as gru,
    lstm as lstm,
    rnn as rnn,
    unet as unet,
)
from markovia.factors.networks.code_books import NearestCode as NearestCode
from markovia.factors.networks.recipes import (
    ModuleRecipe as ModuleRecipe,
    gaussian_mlp as gaussian_mlp,
    mlp as mlp,
)
from markovia.factors.networks.diffusion_laws import DiffusionLaw as DiffusionLaw
