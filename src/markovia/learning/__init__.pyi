"""The names that `markovia.learning` hands out, each with its home."""

from markovia.data.tf_idf import (
    tf_idf as tf_idf,
)
from markovia.data.tf_idf import (
    tf_idf_weights as tf_idf_weights,
)
from markovia.learning.association.association import (
    AssociationMatrix as AssociationMatrix,
)
from markovia.learning.association.association import (
    covariance as covariance,
)
from markovia.learning.association.association import (
    mahalanobis as mahalanobis,
)
from markovia.learning.association.association import (
    partial_correlation as partial_correlation,
)
from markovia.learning.association.association import (
    pearson as pearson,
)
from markovia.learning.association.association_graphs import (
    correlation_graph as correlation_graph,
)
from markovia.learning.association.association_graphs import (
    dependency_graph as dependency_graph,
)
from markovia.learning.association.association_graphs import (
    partial_correlation_graph as partial_correlation_graph,
)
from markovia.learning.association.information import (
    conditional_entropy as conditional_entropy,
)
from markovia.learning.association.information import (
    conditional_mutual_information as conditional_mutual_information,
)
from markovia.learning.association.information import (
    entropy as entropy,
)
from markovia.learning.association.information import (
    joint_entropy as joint_entropy,
)
from markovia.learning.association.information import (
    kl_divergence as kl_divergence,
)
from markovia.learning.association.information import (
    mutual_information as mutual_information,
)
from markovia.learning.association.information import (
    mutual_information_of_table as mutual_information_of_table,
)
from markovia.learning.association.kernel_measures_of_tables import (
    hsic_of_table as hsic_of_table,
)
from markovia.learning.association.kernel_measures_of_tables import (
    mmd_of_tables as mmd_of_tables,
)
from markovia.learning.association.kernel_tests import (
    PermutationTest as PermutationTest,
)
from markovia.learning.association.kernel_tests import (
    hsic as hsic,
)
from markovia.learning.association.kernel_tests import (
    hsic_test as hsic_test,
)
from markovia.learning.association.kernel_tests import (
    mmd as mmd,
)
from markovia.learning.association.kernel_tests import (
    mmd_test as mmd_test,
)
from markovia.learning.association.kernel_tests import (
    permutation_test as permutation_test,
)
from markovia.learning.fields.contrastive_divergence import (
    ContrastiveDivergence as ContrastiveDivergence,
)
from markovia.learning.fields.identifiability import (
    Identifiability as Identifiability,
)
from markovia.learning.fields.identifiability import (
    identifiability as identifiability,
)
from markovia.learning.incomplete.e_step import (
    expected_counts as expected_counts,
)
from markovia.learning.prediction.bias_variance_decomposition import (
    BiasVariance as BiasVariance,
)
from markovia.learning.prediction.bias_variance_decomposition import (
    bias_variance as bias_variance,
)
from markovia.learning.prediction.bias_variance_decomposition import (
    squared_decomposition as squared_decomposition,
)
from markovia.learning.prediction.bias_variance_decomposition import (
    zero_one_decomposition as zero_one_decomposition,
)
from markovia.learning.prediction.calibration_measures import (
    Calibration as Calibration,
)
from markovia.learning.prediction.calibration_measures import (
    calibration as calibration,
)
from markovia.learning.prediction.label_propagation import (
    PropagatedLabels as PropagatedLabels,
)
from markovia.learning.prediction.label_propagation import (
    propagate_labels as propagate_labels,
)
from markovia.learning.regression.iteratively_reweighted import (
    SoftmaxFit as SoftmaxFit,
)
from markovia.learning.regression.iteratively_reweighted import (
    fit_softmax as fit_softmax,
)
