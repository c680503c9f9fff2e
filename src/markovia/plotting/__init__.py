"""Pictures of models, graphs and posteriors, drawn with matplotlib; Graphviz text for those who prefer that.

>>> import markovia as mk
>>> from markovia.plotting import to_dot
>>> print(to_dot(mk.graphs.DAG([("rain", "wet")])))
digraph {
  node [shape=box, style="rounded,filled", fillcolor="#EAF3FA", color="#0072B2"];
  "rain";
  "wet";
  "rain" -> "wet";
}
"""

from markovia.plotting.bias_variance_plot import plot_bias_variance
from markovia.plotting.calibration_plot import plot_calibration
from markovia.plotting.chain_plot import plot_autocorrelation, plot_trace
from markovia.plotting.comparison_plot import plot_comparison
from markovia.plotting.density_plot import plot_density
from markovia.plotting.dot import to_dot
from markovia.plotting.effect_plot import plot_effect
from markovia.plotting.graph_plot import plot_graph, plot_model
from markovia.plotting.posterior_plot import plot_posterior

__all__ = [
    "plot_autocorrelation",
    "plot_bias_variance",
    "plot_calibration",
    "plot_comparison",
    "plot_density",
    "plot_effect",
    "plot_graph",
    "plot_model",
    "plot_posterior",
    "plot_trace",
    "to_dot",
]
