"""Learning from data: measures of association, tests of dependence, and graphs built from them."""

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
from markovia.learning.information import (
    conditional_entropy,
    conditional_mutual_information,
    entropy,
    joint_entropy,
    kl_divergence,
    mutual_information,
    mutual_information_of_table,
)
from markovia.learning.kernel_tests import (
    PermutationTest,
    hsic,
    hsic_test,
    mmd,
    mmd_test,
    permutation_test,
)
from markovia.learning.tables import hsic_of_table, mmd_of_tables
from markovia.learning.text import tf_idf, tf_idf_weights

__all__ = [
    "AssociationMatrix",
    "PermutationTest",
    "conditional_entropy",
    "conditional_mutual_information",
    "correlation_graph",
    "covariance",
    "dependency_graph",
    "entropy",
    "hsic",
    "hsic_of_table",
    "hsic_test",
    "joint_entropy",
    "kl_divergence",
    "mahalanobis",
    "mmd",
    "mmd_of_tables",
    "mmd_test",
    "mutual_information",
    "mutual_information_of_table",
    "partial_correlation",
    "partial_correlation_graph",
    "pearson",
    "permutation_test",
    "tf_idf",
    "tf_idf_weights",
]
