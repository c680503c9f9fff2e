"""The names that `markovia.results` hands out, each with its home."""

from markovia.inference.circuits.parse_tree import ParseTree as ParseTree
from markovia.inference.decisions.diagrams.information_value import InformationValue as InformationValue
from markovia.inference.decisions.processes.plan import Plan as Plan
from markovia.inference.decisions.diagrams.policy import Policy as Policy
from markovia.inference.decisions.diagrams.utility_distribution import TotalUtility as TotalUtility
from markovia.inference.densities.closed_forms.closed_posterior import ClosedPosterior as ClosedPosterior
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior as DrawnPosterior
from markovia.inference.densities.draws.predictive_scores import (
    PredictiveScore as PredictiveScore,
    compare as compare,
)
from markovia.inference.densities.program.state_draws import PlatedPosterior as PlatedPosterior
from markovia.inference.exact.calibrated_tree import (
    CalibratedTree as CalibratedTree,
    CliqueMessage as CliqueMessage,
    CliqueTree as CliqueTree,
)
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior as GaussianPosterior
from markovia.inference.gaussian.mean_sensitivity import MeanSensitivity as MeanSensitivity
from markovia.inference.markov_chains.diagnostics import Diagnostics as Diagnostics
from markovia.inference.posterior import (
    Explanation as Explanation,
    Marginals as Marginals,
    Posterior as Posterior,
    RowMarginals as RowMarginals,
)
from markovia.inference.questions.agreement import Agreement as Agreement
from markovia.inference.questions.evidence_conflict import Conflict as Conflict
from markovia.inference.questions.information_gain import Information as Information
from markovia.inference.questions.sensitivity import (
    Sensitivity as Sensitivity,
    SensitivityFunction as SensitivityFunction,
)
from markovia.inference.result import Info as Info
from markovia.inference.variational.log_z_bounds import LogBounds as LogBounds
from markovia.learning.tables.fit_record import Fit as Fit
from markovia.learning.gaussian.wishart_posterior import FieldPosterior as FieldPosterior
from markovia.models.graphical.differences import Difference as Difference
from markovia.models.graphical.log_linear_models import LogLinearResult as LogLinearResult
from markovia.models.graphical.posterior_network import (
    NetworkPosterior as NetworkPosterior,
    NumberPosterior as NumberPosterior,
    SampledPosterior as SampledPosterior,
)
from markovia.models.regularised_fit import RegularisedFit as RegularisedFit
from markovia.structure.confidence.edge_strength import EdgeStrength as EdgeStrength
from markovia.structure.confidence.model_averaging import EdgeConfidence as EdgeConfidence
from markovia.structure.confidence.posterior_edges import EdgePosterior as EdgePosterior
from markovia.structure.functional.pairwise_direction import PairwiseDirection as PairwiseDirection
from markovia.structure.independence_test import IndependenceTest as IndependenceTest
from markovia.structure.task.result import LearnedStructure as LearnedStructure
