"""Inference engines with their settings: `model.query(..., engine=mk.engines.VariableElimination(order="min-fill"))`.

Examples
--------
>>> import markovia as mk
>>> engine = mk.engines.VariableElimination(order="min-degree")
>>> mk.examples.sprinkler().query("rain", engine=engine).info.engine
'variable-elimination'
"""

from markovia.inference.annealed_importance import AnnealedImportance
from markovia.inference.auto import Auto, load_kernels
from markovia.inference.block_icm import BlockICM
from markovia.inference.conditioning import Conditioning
from markovia.inference.dual_decomposition import DualDecomposition
from markovia.inference.engine import Engine, engine_names, get_engine
from markovia.inference.enumeration import Enumeration
from markovia.inference.forward_sampling import ForwardSampling
from markovia.inference.generalized_bp import GeneralizedBP
from markovia.inference.gibbs import Gibbs
from markovia.inference.graph_cut import GraphCut
from markovia.inference.guided_local_search import GuidedLocalSearch
from markovia.inference.icm import IteratedConditionalModes
from markovia.inference.importance_sampling import ImportanceSampling
from markovia.inference.join_graph import JoinGraph
from markovia.inference.junction_tree import JunctionTree
from markovia.inference.large_neighbourhood import LargeNeighbourhood
from markovia.inference.likelihood_weighting import LikelihoodWeighting
from markovia.inference.linear_program import LinearProgram
from markovia.inference.loopy_bp import LoopyBP
from markovia.inference.map_search import MapSearch
from markovia.inference.marginal_map_search import MarginalMapSearch
from markovia.inference.max_product import MaxProduct
from markovia.inference.mean_field import MeanField
from markovia.inference.metropolis import MetropolisHastings, metropolis_hastings
from markovia.inference.move_making import AlphaBetaSwap, AlphaExpansion
from markovia.inference.parallel_tempering import ParallelTempering
from markovia.inference.rejection_sampling import RejectionSampling
from markovia.inference.resampling import SamplingImportanceResampling
from markovia.inference.simulated_annealing import SimulatedAnnealing
from markovia.inference.structured_mean_field import StructuredMeanField
from markovia.inference.swendsen_wang import SwendsenWang
from markovia.inference.tabu_search import TabuSearch
from markovia.inference.tree_reweighted import TreeReweighted
from markovia.inference.trw_s import TRWS
from markovia.inference.variable_elimination import VariableElimination

__all__ = [
    "TRWS",
    "AlphaBetaSwap",
    "AlphaExpansion",
    "AnnealedImportance",
    "Auto",
    "BlockICM",
    "Conditioning",
    "DualDecomposition",
    "Engine",
    "Enumeration",
    "ForwardSampling",
    "GeneralizedBP",
    "Gibbs",
    "GraphCut",
    "GuidedLocalSearch",
    "ImportanceSampling",
    "IteratedConditionalModes",
    "JoinGraph",
    "JunctionTree",
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
