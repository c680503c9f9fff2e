"""Learning from data: counts, parameters, regressions, measures of association, tests of dependence.

Names are imported on first use: most of them need only a part of what is here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "association": ("AssociationMatrix", "covariance", "mahalanobis", "partial_correlation", "pearson"),
    "association_graphs": ("correlation_graph", "dependency_graph", "partial_correlation_graph"),
    "bias_variance_decomposition": (
        "BiasVariance",
        "bias_variance",
        "squared_decomposition",
        "zero_one_decomposition",
    ),
    "calibration_measures": ("Calibration", "calibration"),
    "contrastive_divergence": ("ContrastiveDivergence",),
    "e_step": ("expected_counts",),
    "identifiability": ("Identifiability", "identifiability"),
    "information": (
        "conditional_entropy",
        "conditional_mutual_information",
        "entropy",
        "joint_entropy",
        "kl_divergence",
        "mutual_information",
        "mutual_information_of_table",
    ),
    "iteratively_reweighted": ("SoftmaxFit", "fit_softmax"),
    "kernel_tests": ("PermutationTest", "hsic", "hsic_test", "mmd", "mmd_test", "permutation_test"),
    "label_propagation": ("PropagatedLabels", "propagate_labels"),
    "tables": ("hsic_of_table", "mmd_of_tables"),
    "text": ("tf_idf", "tf_idf_weights"),
}
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'markovia.learning' has no attribute {name!r}")
    value = getattr(import_module(f"markovia.learning.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from markovia.learning.association import (
        AssociationMatrix,
        covariance,
        mahalanobis,
        partial_correlation,
        pearson,
    )
    from markovia.learning.association_graphs import (
        correlation_graph,
        dependency_graph,
        partial_correlation_graph,
    )
    from markovia.learning.bias_variance_decomposition import (
        BiasVariance,
        bias_variance,
        squared_decomposition,
        zero_one_decomposition,
    )
    from markovia.learning.calibration_measures import Calibration, calibration
    from markovia.learning.contrastive_divergence import ContrastiveDivergence
    from markovia.learning.e_step import expected_counts
    from markovia.learning.identifiability import Identifiability, identifiability
    from markovia.learning.information import (
        conditional_entropy,
        conditional_mutual_information,
        entropy,
        joint_entropy,
        kl_divergence,
        mutual_information,
        mutual_information_of_table,
    )
    from markovia.learning.iteratively_reweighted import SoftmaxFit, fit_softmax
    from markovia.learning.kernel_tests import (
        PermutationTest,
        hsic,
        hsic_test,
        mmd,
        mmd_test,
        permutation_test,
    )
    from markovia.learning.label_propagation import PropagatedLabels, propagate_labels
    from markovia.learning.tables import hsic_of_table, mmd_of_tables
    from markovia.learning.text import tf_idf, tf_idf_weights
