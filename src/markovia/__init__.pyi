"""The public names of markovia, each with its home."""

from markovia import (
    bayesopt as bayesopt,
    causal as causal,
    ci_tests as ci_tests,
    classifiers as classifiers,
    control as control,
    covariances as covariances,
    crf as crf,
    deep as deep,
    diagnostics as diagnostics,
    distributions as distributions,
    engines as engines,
    errors as errors,
    exponential as exponential,
    factors as factors,
    flows as flows,
    gp as gp,
    graphs as graphs,
    guides as guides,
    inference as inference,
    io as io,
    learning as learning,
    local as local,
    mixtures as mixtures,
    monte_carlo as monte_carlo,
    networks as networks,
    objectives as objectives,
    plotting as plotting,
    processes as processes,
    regression as regression,
    results as results,
    scores as scores,
    series as series,
    topics as topics,
    variational as variational,
)
from markovia.causal.counterfactuals.structural_model import StructuralModel as StructuralModel
from markovia.data.tables.counting import counts as counts
from markovia.data.tables.discretization import Discretizer as Discretizer
from markovia.errors import MarkoviaError as MarkoviaError
from markovia.factors.covariances.process import GP as GP, Points as Points
from markovia.factors.decisions.decision import Decision as Decision
from markovia.factors.decisions.quadratic import Quadratic as Quadratic
from markovia.factors.decisions.utility import Utility as Utility
from markovia.factors.functions.function_node import Flat as Flat, Input as Input
from markovia.factors.functions.parameter import Parameter as Parameter
from markovia.factors.gaussian.canonical_form import GaussianFactor as GaussianFactor
from markovia.factors.gaussian.linear_gaussian import LinearGaussian as LinearGaussian
from markovia.factors.potentials.log_linear import Feature as Feature
from markovia.factors.quantities.soft_findings import Interval as Interval, Soft as Soft
from markovia.factors.tables.evidence import Jeffrey as Jeffrey, Not as Not
from markovia.factors.tables.factor import Factor as Factor
from markovia.factors.tables.variable import Variable as Variable
from markovia.io import load as load, save as save
from markovia.learning.incomplete.em import EM as EM
from markovia.learning.tables import priors as priors
from markovia.models.compiling import compile as compile
from markovia.models.crf.chain_crf import ChainCRF as ChainCRF
from markovia.models.crf.memm import MEMM as MEMM
from markovia.models.gallery import examples as examples, generators as generators, images as images
from markovia.models.gaussian.gaussian_markov_network import GaussianMarkovNetwork as GaussianMarkovNetwork
from markovia.models.gaussian.gaussian_process import GaussianProcess as GaussianProcess
from markovia.models.graphical.bayesian_network import BayesianNetwork as BayesianNetwork
from markovia.models.graphical.calibration import calibrate as calibrate
from markovia.models.graphical.factor_graph import FactorGraph as FactorGraph
from markovia.models.graphical.log_linear_models import (
    fit_log_linear as fit_log_linear,
    posterior_regularisation as posterior_regularisation,
)
from markovia.models.graphical.markov_network import MarkovNetwork as MarkovNetwork
from markovia.models.mixtures.dirichlet_process import DirichletProcessMixture as DirichletProcessMixture
from markovia.models.mixtures.k_means import KMeans as KMeans
from markovia.models.mixtures.latent_features import LatentFeatures as LatentFeatures
from markovia.models.mixtures.mixture import Mixture as Mixture
from markovia.models.mixtures.named_mixtures import GaussianMixture as GaussianMixture
from markovia.models.regularised_fit import fit_regularised as fit_regularised
from markovia.models.temporal.arima import ARIMA as ARIMA
from markovia.models.temporal.dynamic.dynamic_structure import (
    learn_dynamic_structure as learn_dynamic_structure,
)
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork as DynamicBayesianNetwork
from markovia.models.temporal.hmm import HMM as HMM
from markovia.models.temporal.linear_state_space import LinearStateSpace as LinearStateSpace
from markovia.models.temporal.markov_chain import MarkovChain as MarkovChain
from markovia.models.temporal.dynamic.mdp import MDP as MDP
from markovia.models.temporal.particle_filter import ParticleFilter as ParticleFilter
from markovia.models.temporal.switching_state_space import SwitchingStateSpace as SwitchingStateSpace
from markovia.models.topics.correlated import CorrelatedTopics as CorrelatedTopics
from markovia.models.topics.hdp import HDP as HDP
from markovia.models.topics.lda import LDA as LDA
from markovia.models.topics.lsi import LSI as LSI
from markovia.models.topics.plsi import PLSI as PLSI
from markovia.optimise.training import Training as Training
from markovia.structure.changing.changing_network import edges_over_time as edges_over_time
from markovia.structure.ci_tests.granger import granger as granger
from markovia.structure.confidence.bootstrap import bootstrap_structure as bootstrap_structure
from markovia.structure.confidence.edge_strength import edge_strength as edge_strength
from markovia.structure.confidence.posterior_edges import edge_posterior as edge_posterior
from markovia.structure.functional.pairwise_direction import pairwise_direction as pairwise_direction
from markovia.structure.independence_test import independence_test as independence_test
from markovia.structure.learn import learn_structure as learn_structure
from markovia.structure.methods import structure_methods as structure_methods
from markovia.structure.score_graph import score_graph as score_graph
from markovia.structure.task.knowledge import Knowledge as Knowledge

__version__: str
