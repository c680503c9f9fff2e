"""The public names of markovia, each with its home."""

from markovia import (
    causal as causal,
    ci_tests as ci_tests,
    distributions as distributions,
    engines as engines,
    errors as errors,
    exponential as exponential,
    factors as factors,
    graphs as graphs,
    inference as inference,
    io as io,
    learning as learning,
    local as local,
    monte_carlo as monte_carlo,
    plotting as plotting,
    processes as processes,
    results as results,
    scores as scores,
    variational as variational,
)
from markovia.causal.counterfactuals.structural_model import StructuralModel as StructuralModel
from markovia.data.text.corpus import Corpus as Corpus
from markovia.data.tables.counting import counts as counts
from markovia.data.tables.discretization import Discretizer as Discretizer
from markovia.errors import MarkoviaError as MarkoviaError
from markovia.factors.functions.function_node import Flat as Flat, Input as Input
from markovia.factors.gaussian.canonical_form import GaussianFactor as GaussianFactor
from markovia.factors.gaussian.linear_gaussian import LinearGaussian as LinearGaussian
from markovia.factors.potentials.log_linear import Feature as Feature
from markovia.factors.quantities.soft_findings import Interval as Interval, Soft as Soft
from markovia.factors.tables.evidence import Jeffrey as Jeffrey, Not as Not
from markovia.factors.tables.factor import Factor as Factor
from markovia.factors.tables.variable import Variable as Variable
from markovia.io import load as load, save as save
from markovia.learning.incomplete.em import EM as EM
from markovia.learning.regression.glm import GLM as GLM
from markovia.learning.regression.regressions import (
    LinearRegression as LinearRegression,
    LogisticRegression as LogisticRegression,
    PoissonRegression as PoissonRegression,
    SoftmaxRegression as SoftmaxRegression,
)
from markovia.learning.prediction.entity_scores import entity_scores as entity_scores
from markovia.learning.tables import priors as priors
from markovia.models.choosing_components import choose_components as choose_components
from markovia.models.choosing_states import choose_states as choose_states, compare_states as compare_states
from markovia.models.classifiers.label_propagation import LabelPropagation as LabelPropagation
from markovia.models.classifiers.mixed_naive_bayes import NaiveBayes as NaiveBayes
from markovia.models.classifiers.naive_bayes import (
    BernoulliNaiveBayes as BernoulliNaiveBayes,
    CategoricalNaiveBayes as CategoricalNaiveBayes,
    GaussianNaiveBayes as GaussianNaiveBayes,
)
from markovia.models.classifiers.network_classifier import (
    BayesianNetworkClassifier as BayesianNetworkClassifier,
)
from markovia.models.classifiers.tree_augmented import TreeAugmentedNaiveBayes as TreeAugmentedNaiveBayes
from markovia.models.compiling import compile as compile
from markovia.models.crf.chain_crf import ChainCRF as ChainCRF
from markovia.models.crf.crf import CRF as CRF
from markovia.models.crf.feature_crf import ConditionalFeature as ConditionalFeature, FeatureCRF as FeatureCRF
from markovia.models.crf.grid_crf import GridCRF as GridCRF
from markovia.models.crf.memm import MEMM as MEMM
from markovia.models.crf.neural_crf import NeuralCRF as NeuralCRF
from markovia.models.crf.segment_crf import SegmentCRF as SegmentCRF
from markovia.models.gallery import examples as examples, generators as generators, images as images
from markovia.models.graphical.bayesian_network import BayesianNetwork as BayesianNetwork
from markovia.models.graphical.calibration import calibrate as calibrate
from markovia.models.graphical.factor_graph import FactorGraph as FactorGraph
from markovia.models.gaussian.gaussian_markov_network import GaussianMarkovNetwork as GaussianMarkovNetwork
from markovia.models.graphical.log_linear_models import (
    fit_log_linear as fit_log_linear,
    posterior_regularisation as posterior_regularisation,
)
from markovia.models.graphical.markov_network import MarkovNetwork as MarkovNetwork
from markovia.models.mixtures.expert_mixtures import (
    MixtureOfExperts as MixtureOfExperts,
    RegressionMixture as RegressionMixture,
)
from markovia.models.mixtures.factor_analysis import (
    FactorAnalysis as FactorAnalysis,
    ProbabilisticPCA as ProbabilisticPCA,
)
from markovia.models.mixtures.independent_components import ICA as ICA
from markovia.models.temporal.infinite_hmm import InfiniteHMM as InfiniteHMM
from markovia.models.mixtures.dirichlet_process import DirichletProcessMixture as DirichletProcessMixture
from markovia.models.mixtures.k_means import KMeans as KMeans
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
from markovia.models.mixtures.latent_features import LatentFeatures as LatentFeatures
from markovia.models.topics.hdp import HDP as HDP
from markovia.models.topics.hierarchical_lda import HierarchicalLDA as HierarchicalLDA
from markovia.models.topics.lda import LDA as LDA
from markovia.models.temporal.arima import ARIMA as ARIMA
from markovia.models.temporal.dynamic_factor import DynamicFactor as DynamicFactor
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork as DynamicBayesianNetwork
from markovia.models.temporal.factorial_hmm import FactorialHMM as FactorialHMM
from markovia.models.temporal.dynamic.dynamic_structure import (
    learn_dynamic_structure as learn_dynamic_structure,
)
from markovia.models.temporal.hidden_semi_markov import HiddenSemiMarkov as HiddenSemiMarkov
from markovia.models.temporal.hmm import HMM as HMM
from markovia.models.temporal.joint_hmm import CoupledHMM as CoupledHMM
from markovia.models.temporal.linear_state_space import LinearStateSpace as LinearStateSpace
from markovia.models.temporal.markov_chain import MarkovChain as MarkovChain
from markovia.models.temporal.nonlinear_state_space import NonlinearStateSpace as NonlinearStateSpace
from markovia.models.temporal.particle_filter import ParticleFilter as ParticleFilter
from markovia.models.temporal.sequence_mixture import SequenceMixture as SequenceMixture
from markovia.models.temporal.structural_series import StructuralSeries as StructuralSeries
from markovia.models.temporal.switching_state_space import SwitchingStateSpace as SwitchingStateSpace
from markovia.models.topics.authors import AuthorTopics as AuthorTopics
from markovia.models.topics.bigram import BigramTopics as BigramTopics
from markovia.models.topics.correlated import CorrelatedTopics as CorrelatedTopics
from markovia.models.topics.dynamic import DynamicTopics as DynamicTopics
from markovia.models.topics.hmm_lda import HMMLDA as HMMLDA
from markovia.models.topics.labelled import LabelledLDA as LabelledLDA
from markovia.models.topics.lsi import LSI as LSI
from markovia.models.topics.plsi import PLSI as PLSI
from markovia.models.topics.supervised import SupervisedLDA as SupervisedLDA
from markovia.models.topics.tied import TiedTopics as TiedTopics
from markovia.models.topics.unigrams import UnigramMixture as UnigramMixture
from markovia.models.topics.poisson_factorisation import PoissonFactorisation as PoissonFactorisation
from markovia.structure.changing.changing_network import edges_over_time as edges_over_time
from markovia.structure.confidence.bootstrap import bootstrap_structure as bootstrap_structure
from markovia.structure.confidence.edge_strength import edge_strength as edge_strength
from markovia.structure.confidence.posterior_edges import edge_posterior as edge_posterior
from markovia.structure.functional.pairwise_direction import pairwise_direction as pairwise_direction
from markovia.structure.independence_test import independence_test as independence_test
from markovia.structure.ci_tests.granger import granger as granger
from markovia.structure.learn import learn_structure as learn_structure
from markovia.structure.methods import structure_methods as structure_methods
from markovia.structure.score_graph import score_graph as score_graph
from markovia.structure.task.knowledge import Knowledge as Knowledge

__version__: str
