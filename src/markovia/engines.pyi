"""The names that `markovia.engines` hands out, each with its home."""

from markovia.inference.choosing.auto import Auto as Auto, load_kernels as load_kernels
from markovia.inference.densities.closed_forms.cavi import CAVI as CAVI
from markovia.inference.densities.closed_forms.conjugate import Conjugate as Conjugate
from markovia.inference.densities.closed_forms.gibbs_blocks import BlockGibbs as BlockGibbs
from markovia.inference.densities.closed_forms.svi import SVI as SVI
from markovia.inference.densities.engines.advi import ADVI as ADVI
from markovia.inference.densities.engines.amortised import Amortised as Amortised
from markovia.inference.densities.engines.annealed_langevin import AnnealedLangevin as AnnealedLangevin
from markovia.inference.densities.engines.density_importance import DensityImportance as DensityImportance
from markovia.inference.densities.engines.flow_vi import FlowVI as FlowVI
from markovia.inference.densities.engines.hmc import HMC as HMC
from markovia.inference.densities.engines.laplace import Laplace as Laplace
from markovia.inference.densities.engines.mala import MALA as MALA
from markovia.inference.densities.engines.nuts import NUTS as NUTS
from markovia.inference.densities.engines.random_walk import RandomWalkMetropolis as RandomWalkMetropolis
from markovia.inference.densities.engines.sgld import SGLD as SGLD, Langevin as Langevin
from markovia.inference.densities.engines.smc import SMC as SMC
from markovia.inference.densities.engines.twisted_smc import TwistedSMC as TwistedSMC
from markovia.inference.engine import Engine as Engine, engine_names as engine_names, get_engine as get_engine
from markovia.inference.exact.conditioning import Conditioning as Conditioning
from markovia.inference.exact.enumeration import Enumeration as Enumeration
from markovia.inference.exact.junction_tree import JunctionTree as JunctionTree
from markovia.inference.exact.variable_elimination import VariableElimination as VariableElimination
from markovia.inference.gaussian.strong_elimination import Gaussian as Gaussian
from markovia.inference.local_search.block_icm import BlockICM as BlockICM
from markovia.inference.local_search.guided_local_search import GuidedLocalSearch as GuidedLocalSearch
from markovia.inference.local_search.icm import IteratedConditionalModes as IteratedConditionalModes
from markovia.inference.local_search.large_neighbourhood import LargeNeighbourhood as LargeNeighbourhood
from markovia.inference.local_search.map_search import MapSearch as MapSearch
from markovia.inference.local_search.marginal_map_search import MarginalMapSearch as MarginalMapSearch
from markovia.inference.local_search.simulated_annealing import SimulatedAnnealing as SimulatedAnnealing
from markovia.inference.local_search.tabu_search import TabuSearch as TabuSearch
from markovia.inference.map_bounds.a_star import AStar as AStar
from markovia.inference.map_bounds.beam_search import BeamSearch as BeamSearch
from markovia.inference.map_bounds.dual_decomposition import DualDecomposition as DualDecomposition
from markovia.inference.map_bounds.graph_cut import GraphCut as GraphCut
from markovia.inference.map_bounds.linear_program import LinearProgram as LinearProgram
from markovia.inference.map_bounds.move_making import (
    AlphaBetaSwap as AlphaBetaSwap,
    AlphaExpansion as AlphaExpansion,
    AlphaExpansionBetaShrink as AlphaExpansionBetaShrink,
)
from markovia.inference.map_bounds.quadratic_program import QuadraticProgram as QuadraticProgram
from markovia.inference.map_bounds.relaxation_labelling import RelaxationLabelling as RelaxationLabelling
from markovia.inference.map_bounds.trw_s import TRWS as TRWS
from markovia.inference.markov_chains.gibbs import Gibbs as Gibbs
from markovia.inference.markov_chains.metropolis import (
    MetropolisHastings as MetropolisHastings,
    metropolis_hastings as metropolis_hastings,
)
from markovia.inference.markov_chains.parallel_tempering import ParallelTempering as ParallelTempering
from markovia.inference.markov_chains.swendsen_wang import SwendsenWang as SwendsenWang
from markovia.inference.message_passing.generalized_bp import GeneralizedBP as GeneralizedBP
from markovia.inference.message_passing.join_graph import JoinGraph as JoinGraph
from markovia.inference.message_passing.loopy_bp import LoopyBP as LoopyBP
from markovia.inference.message_passing.max_product import MaxProduct as MaxProduct
from markovia.inference.variational.mean_field import MeanField as MeanField
from markovia.inference.sliced.sliced_elimination import SlicedElimination as SlicedElimination
from markovia.inference.variational.structured_mean_field import StructuredMeanField as StructuredMeanField
from markovia.inference.variational.tree_reweighted import TreeReweighted as TreeReweighted
from markovia.inference.weighted_draws.annealed_importance import AnnealedImportance as AnnealedImportance
from markovia.inference.weighted_draws.forward_sampling import ForwardSampling as ForwardSampling
from markovia.inference.weighted_draws.importance_sampling import ImportanceSampling as ImportanceSampling
from markovia.inference.weighted_draws.likelihood_weighting import LikelihoodWeighting as LikelihoodWeighting
from markovia.inference.weighted_draws.rejection_sampling import RejectionSampling as RejectionSampling
from markovia.inference.weighted_draws.sampling_importance_resampling import (
    SamplingImportanceResampling as SamplingImportanceResampling,
)
