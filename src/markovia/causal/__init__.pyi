"""The names that `markovia.causal` hands out, each with its home."""

from markovia.causal.counterfactuals import examples as examples
from markovia.causal.counterfactuals.attribution import (
    arrow_strength as arrow_strength,
    attribute_anomaly as attribute_anomaly,
    attribute_change as attribute_change,
    causal_shapley as causal_shapley,
    intrinsic_influence as intrinsic_influence,
)
from markovia.causal.counterfactuals.bounded_posterior import BoundedPosterior as BoundedPosterior
from markovia.causal.counterfactuals.cyclic_linear import CyclicLinearModel as CyclicLinearModel
from markovia.causal.counterfactuals.necessity import (
    Causation as Causation,
    causation_bounds as causation_bounds,
    necessity as necessity,
)
from markovia.causal.identification.bounds import (
    EffectBounds as EffectBounds,
    bounds as bounds,
    instrumental_inequality as instrumental_inequality,
    mean_bounds as mean_bounds,
)
from markovia.causal.identification.adjustment import (
    adjustment_sets as adjustment_sets,
    each_adjustment_set as each_adjustment_set,
    is_adjustment_set as is_adjustment_set,
    is_backdoor_set as is_backdoor_set,
)
from markovia.causal.identification.confounding_equivalence import (
    PropensityIdentity as PropensityIdentity,
    confounding_equivalent as confounding_equivalent,
    propensity_identity as propensity_identity,
)
from markovia.causal.identification.effect_paths import (
    EffectPaths as EffectPaths,
    effect_paths as effect_paths,
)
from markovia.causal.identification.counterfactual import (
    CounterfactualEstimand as CounterfactualEstimand,
    NaturalEffects as NaturalEffects,
    effect_on_treated as effect_on_treated,
    identify_counterfactual as identify_counterfactual,
    natural_effects as natural_effects,
    path_specific as path_specific,
)
from markovia.causal.identification.events import Event as Event
from markovia.causal.identification.front_door import (
    front_door_sets as front_door_sets,
    is_front_door_set as is_front_door_set,
)
from markovia.causal.identification.ida import PossibleEffects as PossibleEffects, ida as ida
from markovia.causal.identification.instruments import (
    Instrument as Instrument,
    instruments as instruments,
    is_instrument as is_instrument,
)
from markovia.causal.identification.missing import Recovered as Recovered, recover as recover
from markovia.causal.identification.counterexample import counterexample as counterexample
from markovia.causal.identification.derivation import Derivation as Derivation
from markovia.causal.identification.estimand import Estimand as Estimand
from markovia.causal.identification.identify import (
    identify as identify,
    tian_pearl as tian_pearl,
    transport as transport,
)
from markovia.causal.estimation.designs.difference_in_differences import PreTrend as PreTrend
from markovia.causal.estimation.designs.designs import (
    StaggeredEffects as StaggeredEffects,
    difference_in_differences as difference_in_differences,
    staggered_differences as staggered_differences,
    regression_discontinuity as regression_discontinuity,
)
from markovia.causal.estimation.designs.one_treated_unit import (
    SyntheticControl as SyntheticControl,
    synthetic_control as synthetic_control,
)
from markovia.causal.estimation.adjustment.diagnostics import Balance as Balance, Overlap as Overlap
from markovia.causal.estimation.effect import effect as effect
from markovia.causal.estimation.propensity_score import (
    PropensityScore as PropensityScore,
    propensity_score as propensity_score,
)
from markovia.causal.estimation.dose_curve import DoseResponse as DoseResponse
from markovia.causal.estimation.effect_result import Effect as Effect
from markovia.causal.estimation.effect_table import EffectTable as EffectTable
from markovia.causal.estimation.adjustment.estimates import Estimate as Estimate
from markovia.causal.estimation.checks.falsification import (
    Falsification as Falsification,
    falsify_graph as falsify_graph,
)
from markovia.causal.estimation.designs.longitudinal_designs import (
    Mediation as Mediation,
    effect_over_time as effect_over_time,
    mediation as mediation,
)
from markovia.causal.estimation.checks.refutation import Refutation as Refutation, refute as refute
from markovia.causal.estimation.checks.report import Report as Report, report as report
from markovia.causal.estimation.checks.sensitivity import (
    Sensitivity as Sensitivity,
    e_value as e_value,
    robustness_value as robustness_value,
    rosenbaum_gamma as rosenbaum_gamma,
    sensitivity as sensitivity,
)
from markovia.causal import simulated_worlds as simulated_worlds
from markovia.causal.counterfactuals.shapley_values import Attribution as Attribution, shapley as shapley
from markovia.causal.identification.plans import PlanEstimand as PlanEstimand, identify_plan as identify_plan
from markovia.models.graphical.chain_graph_model import ChainGraphModel as ChainGraphModel
from markovia.causal.problem import Problem as Problem, read_graph as read_graph
from markovia.graphs.causal.admg import (
    districts as districts,
    is_ancestral_set as is_ancestral_set,
    markov_blanket as markov_blanket,
    pillow as pillow,
)
from markovia.graphs.causal.surgery import (
    do_graph as do_graph,
    selection_diagram as selection_diagram,
    single_world_graph as single_world_graph,
    twin_network as twin_network,
    visible_edges as visible_edges,
)
from markovia.graphs.causal.text import graph_text as graph_text, parse_graph as parse_graph
