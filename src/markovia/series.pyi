"""The names that `markovia.series` hands out, each with its home."""

from markovia.models.choosing_states import choose_states as choose_states, compare_states as compare_states
from markovia.models.temporal.arima import ARIMA as ARIMA
from markovia.models.temporal.context_free_grammar import ContextFreeGrammar as ContextFreeGrammar
from markovia.models.temporal.dynamic_factor import DynamicFactor as DynamicFactor
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork as DynamicBayesianNetwork
from markovia.models.temporal.factorial_hmm import FactorialHMM as FactorialHMM
from markovia.models.temporal.hidden_semi_markov import HiddenSemiMarkov as HiddenSemiMarkov
from markovia.models.temporal.hmm import HMM as HMM
from markovia.models.temporal.infinite_hmm import InfiniteHMM as InfiniteHMM
from markovia.models.temporal.joint_hmm import CoupledHMM as CoupledHMM
from markovia.models.temporal.linear_state_space import LinearStateSpace as LinearStateSpace
from markovia.models.temporal.markov_chain import MarkovChain as MarkovChain
from markovia.models.temporal.nonlinear_state_space import NonlinearStateSpace as NonlinearStateSpace
from markovia.models.temporal.particle_filter import ParticleFilter as ParticleFilter
from markovia.models.temporal.sequence_mixture import SequenceMixture as SequenceMixture
from markovia.models.temporal.structural_series import StructuralSeries as StructuralSeries
from markovia.models.temporal.switching_state_space import SwitchingStateSpace as SwitchingStateSpace
