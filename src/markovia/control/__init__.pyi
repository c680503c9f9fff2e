"""The names that `markovia.control` hands out, each with its home."""

from markovia.control.factored_posterior import FactoredPosterior as FactoredPosterior
from markovia.control.learning_from_trial import learn as learn
from markovia.learning.control.actor_critic import ActorCritic as ActorCritic
from markovia.learning.control.deep_q import DeepQ as DeepQ
from markovia.learning.control.fitted_q import FittedQ as FittedQ, fitted_q as fitted_q
from markovia.learning.control.learned_policy import (
    LearnedPolicy as LearnedPolicy,
    PolicyReturns as PolicyReturns,
)
from markovia.learning.control.model_based import (
    PosteriorSampling as PosteriorSampling,
    ProcessPosterior as ProcessPosterior,
)
from markovia.learning.control.policy_gradient import (
    ExactGradient as ExactGradient,
    PolicyGradient as PolicyGradient,
    exact_policy_gradient as exact_policy_gradient,
)
from markovia.learning.control.returns import (
    discounted_returns as discounted_returns,
    generalised_advantages as generalised_advantages,
)
from markovia.learning.control.soft_actor_critic import SoftActorCritic as SoftActorCritic
from markovia.learning.control.trial_loop import TrialHistory as TrialHistory
from markovia.learning.control.trajectories import Transitions as Transitions, collect as collect
from markovia.control.evaluation import PolicyEstimate as PolicyEstimate, evaluate as evaluate
from markovia.control.regimes import TreatmentRegime as TreatmentRegime, learn_regime as learn_regime
from markovia.learning.control.policy_trees import TreatmentTree as TreatmentTree, policy_tree as policy_tree
from markovia.control.bandits import Bandit as Bandit, BanditHistory as BanditHistory
from markovia.control.gittins import GittinsIndex as GittinsIndex, gittins_index as gittins_index
from markovia.control.inverse_rewards import inverse as inverse
from markovia.control.repair_plan import PlanStep as PlanStep, RepairPlan as RepairPlan
from markovia.control.troubleshooting import troubleshoot as troubleshoot
from markovia.learning.control.inverse import InverseReward as InverseReward
from markovia.learning.control.reward_fit import RewardFit as RewardFit, reward_fit as reward_fit
from markovia.learning.control.sequence_rewards import StepReward as StepReward
from markovia.inference.decisions.beliefs.belief_plan import (
    BeliefAgent as BeliefAgent,
    BeliefPlan as BeliefPlan,
)
from markovia.inference.decisions.beliefs.controllers import (
    FiniteController as FiniteController,
    bounded_controller as bounded_controller,
    controller_of as controller_of,
)
from markovia.inference.decisions.numbers.feedback import Feedback as Feedback, LinearAgent as LinearAgent
from markovia.inference.decisions.numbers.iterative_linear_quadratic import (
    ControlledPath as ControlledPath,
    plan_path as plan_path,
)
from markovia.inference.decisions.numbers.linear_quadratic import (
    LinearQuadratic as LinearQuadratic,
    regulate as regulate,
)
from markovia.inference.decisions.numbers.predictive_control import PredictiveControl as PredictiveControl
from markovia.models.temporal.dynamic.pomdp import POMDP as POMDP
from markovia.inference.decisions.processes.occupancy_program import UtilityLimit as UtilityLimit
from markovia.inference.decisions.processes.options import (
    TemporalOption as TemporalOption,
    semi_markov as semi_markov,
    with_options as with_options,
)
from markovia.control.sensitivity import (
    AdvicePiece as AdvicePiece,
    DecisionSensitivity as DecisionSensitivity,
)
from markovia.control.tornado_table import (
    TornadoBar as TornadoBar,
    TornadoTable as TornadoTable,
    tornado as tornado,
)
from markovia.factors.decisions.multiplicative import (
    Multiplicative as Multiplicative,
    multiplicative as multiplicative,
)
from markovia.inference.decisions.numbers.number_policy import (
    LinearPolicy as LinearPolicy,
    NumberRule as NumberRule,
)
from markovia.control.environments import ProcessEnvironment as ProcessEnvironment, environment as environment
from markovia.inference.decisions.processes.bellman import (
    EvaluatedOperator as EvaluatedOperator,
    HardOperator as HardOperator,
    SoftOperator as SoftOperator,
)
from markovia.inference.decisions.processes.decision_process import DecisionProcess as DecisionProcess
from markovia.inference.decisions.processes.occupancy_program import Occupancy as Occupancy
from markovia.inference.decisions.processes.options import (
    SemiMarkovChoices as SemiMarkovChoices,
)
from markovia.inference.decisions.processes.plan import Plan as Plan
from markovia.inference.decisions.processes.planning import plan_process as plan_process
from markovia.inference.decisions.processes.soft_values import (
    SoftValues as SoftValues,
    soft_values as soft_values,
)
from markovia.models.temporal.dynamic.optimality import OptimalityModel as OptimalityModel
from markovia.inference.decisions.beliefs.partially_observed import PartiallyObserved as PartiallyObserved
from markovia.inference.decisions.processes.factored_process import (
    FactoredProcess as FactoredProcess,
    ScopedTable as ScopedTable,
)
