"""Inference engines with their settings: `model.query(..., engine=mk.engines.VariableElimination(order="min-fill"))`.

Examples
--------
>>> import markovia as mk
>>> engine = mk.engines.VariableElimination(order="min-degree")
>>> mk.examples.sprinkler().query("rain", engine=engine).info.engine
'variable-elimination'
"""

from markovia.inference.choosing.auto import Auto, load_kernels
from markovia.inference.conjugacy.cavi import CAVI
from markovia.inference.conjugacy.conjugate import Conjugate
from markovia.inference.conjugacy.gibbs_blocks import BlockGibbs
from markovia.inference.conjugacy.svi import SVI
from markovia.inference.density_engines.advi import ADVI
from markovia.inference.density_engines.density_importance import DensityImportance
from markovia.inference.density_engines.flow_vi import FlowVI
from markovia.inference.density_engines.hmc import HMC
from markovia.inference.density_engines.laplace import Laplace
from markovia.inference.density_engines.mala import MALA
from markovia.inference.density_engines.nuts import NUTS
from markovia.inference.density_engines.random_walk import RandomWalkMetropolis
from markovia.inference.density_engines.sgld import SGLD, Langevin
from markovia.inference.density_engines.smc import SMC
from markovia.inference.engine import Engine, engine_names, get_engine
from markovia.inference.exact.conditioning import Conditioning
from markovia.inference.exact.enumeration import Enumeration
from markovia.inference.exact.junction_tree import JunctionTree
from markovia.inference.exact.variable_elimination import VariableElimination
from markovia.inference.gaussian.strong_elimination import Gaussian
from markovia.inference.local_search.block_icm import BlockICM
from markovia.inference.local_search.guided_local_search import GuidedLocalSearch
from markovia.inference.local_search.icm import IteratedConditionalModes
from markovia.inference.local_search.large_neighbourhood import LargeNeighbourhood
from markovia.inference.local_search.map_search import MapSearch
from markovia.inference.local_search.marginal_map_search import MarginalMapSearch
from markovia.inference.local_search.simulated_annealing import SimulatedAnnealing
from markovia.inference.local_search.tabu_search import TabuSearch
from markovia.inference.map_bounds.dual_decomposition import DualDecomposition
from markovia.inference.map_bounds.graph_cut import GraphCut
from markovia.inference.map_bounds.linear_program import LinearProgram
from markovia.inference.map_bounds.move_making import AlphaBetaSwap, AlphaExpansion
from markovia.inference.map_bounds.trw_s import TRWS
from markovia.inference.markov_chains.gibbs import Gibbs
from markovia.inference.markov_chains.metropolis import MetropolisHastings, metropolis_hastings
from markovia.inference.markov_chains.parallel_tempering import ParallelTempering
from markovia.inference.markov_chains.swendsen_wang import SwendsenWang
from markovia.inference.message_passing.generalized_bp import GeneralizedBP
from markovia.inference.message_passing.join_graph import JoinGraph
from markovia.inference.message_passing.loopy_bp import LoopyBP
from markovia.inference.message_passing.max_product import MaxProduct
from markovia.inference.variational.mean_field import MeanField
from markovia.inference.variational.structured_mean_field import StructuredMeanField
from markovia.inference.variational.tree_reweighted import TreeReweighted
from markovia.inference.weighted_draws.annealed_importance import AnnealedImportance
from markovia.inference.weighted_draws.forward_sampling import ForwardSampling
from markovia.inference.weighted_draws.importance_sampling import ImportanceSampling
from markovia.inference.weighted_draws.likelihood_weighting import LikelihoodWeighting
from markovia.inference.weighted_draws.rejection_sampling import RejectionSampling
from markovia.inference.weighted_draws.resampling import SamplingImportanceResampling

__all__ = [
    "ADVI",
    "CAVI",
    "HMC",
    "MALA",
    "NUTS",
    "SGLD",
    "SMC",
    "SVI",
    "TRWS",
    "AlphaBetaSwap",
    "AlphaExpansion",
    "AnnealedImportance",
    "Auto",
    "BlockGibbs",
    "BlockICM",
    "Conditioning",
    "Conjugate",
    "DensityImportance",
    "DualDecomposition",
    "Engine",
    "Enumeration",
    "FlowVI",
    "ForwardSampling",
    "Gaussian",
    "GeneralizedBP",
    "Gibbs",
    "GraphCut",
    "GuidedLocalSearch",
    "ImportanceSampling",
    "IteratedConditionalModes",
    "JoinGraph",
    "JunctionTree",
    "Langevin",
    "Laplace",
    "LargeNeighbourhood",
    "LikelihoodWeighting",
    "LinearProgram",
    "LoopyBP",
    "MapSearch",
    "MarginalMapSearch",
    "MaxProduct",
    "MeanField",
    "MetropolisHastings",
    "ParallelTempering",
    "RandomWalkMetropolis",
    "RejectionSampling",
    "SamplingImportanceResampling",
    "SimulatedAnnealing",
    "StructuredMeanField",
    "SwendsenWang",
    "TabuSearch",
    "TreeReweighted",
    "VariableElimination",
    "engine_names",
    "get_engine",
    "load_kernels",
    "metropolis_hastings",
]
