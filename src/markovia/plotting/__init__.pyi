"""The names that `markovia.plotting` hands out, each with its home."""

from markovia.plotting.bias_variance_plot import plot_bias_variance as plot_bias_variance
from markovia.plotting.calibration_plot import plot_calibration as plot_calibration
from markovia.plotting.chain_plot import (
    plot_autocorrelation as plot_autocorrelation,
    plot_trace as plot_trace,
)
from markovia.plotting.groups.choosing_components import plot_component_choice as plot_component_choice
from markovia.plotting.comparison_plot import plot_comparison as plot_comparison
from markovia.plotting.convergence_plot import plot_convergence as plot_convergence
from markovia.plotting.decision_sensitivity_pictures import (
    plot_decision_sensitivity as plot_decision_sensitivity,
    plot_tornado as plot_tornado,
)
from markovia.plotting.density_plot import plot_density as plot_density
from markovia.plotting.dot import to_dot as to_dot
from markovia.plotting.draws_plot import plot_draws as plot_draws
from markovia.plotting.edge_confidence_plot import plot_edge_confidence as plot_edge_confidence
from markovia.plotting.effects.paths import plot_effect as plot_effect
from markovia.plotting.effects.estimates import (
    plot_balance as plot_balance,
    plot_dose_response as plot_dose_response,
    plot_effect_report as plot_effect_report,
    plot_effects as plot_effects,
    plot_event_study as plot_event_study,
    plot_propensity as plot_propensity,
    plot_sensitivity as plot_sensitivity,
    plot_synthetic_control as plot_synthetic_control,
)
from markovia.plotting.series.function_plot import (
    plot_function_values as plot_function_values,
    plot_gaussian_process as plot_gaussian_process,
)
from markovia.plotting.graph_plot import plot_graph as plot_graph, plot_model as plot_model
from markovia.plotting.groups.clusters import plot_clusters as plot_clusters
from markovia.plotting.groups.partitions import plot_partition as plot_partition
from markovia.plotting.groups.processes import (
    plot_latent_features as plot_latent_features,
    plot_process as plot_process,
)
from markovia.plotting.groups.topic_tree import plot_topic_tree as plot_topic_tree
from markovia.plotting.groups.topics import (
    plot_documents as plot_documents,
    plot_topic_map as plot_topic_map,
    plot_topics as plot_topics,
)
from markovia.plotting.groups.topics_over_time import (
    plot_topics_over_time as plot_topics_over_time,
    plot_words_over_time as plot_words_over_time,
)
from markovia.plotting.heat_map import plot_table as plot_table
from markovia.plotting.decisions.policies import (
    plot_policy as plot_policy,
    plot_total_utility as plot_total_utility,
)
from markovia.plotting.posterior_plot import (
    plot_bounds as plot_bounds,
    plot_marginals as plot_marginals,
    plot_posterior as plot_posterior,
)
from markovia.plotting.rank_plot import plot_ranks as plot_ranks
from markovia.plotting.series.bandit_history import plot_bandit as plot_bandit
from markovia.plotting.series.bands import plot_band as plot_band
from markovia.plotting.series.probabilities import (
    plot_beliefs as plot_beliefs,
    plot_hidden_states as plot_hidden_states,
)
from markovia.plotting.series.searches import plot_study as plot_study
from markovia.plotting.series.slices import plot_dynamic as plot_dynamic
from markovia.plotting.series.state_paths import (
    plot_forecast as plot_forecast,
    plot_state_path as plot_state_path,
)
from markovia.plotting.style import theme as theme
