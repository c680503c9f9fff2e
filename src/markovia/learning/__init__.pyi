"""The names that `markovia.learning` hands out, each with its home."""

from markovia.data.text.tf_idf import tf_idf as tf_idf, tf_idf_weights as tf_idf_weights
from markovia.learning.association.association import (
    AssociationMatrix as AssociationMatrix,
    covariance as covariance,
    mahalanobis as mahalanobis,
    partial_correlation as partial_correlation,
    pearson as pearson,
)
from markovia.learning.association.association_graphs import (
    correlation_graph as correlation_graph,
    dependency_graph as dependency_graph,
    partial_correlation_graph as partial_correlation_graph,
)
from markovia.learning.association.divergences import (
    information_lower_bound as information_lower_bound,
    jensen_shannon as jensen_shannon,
    total_variation as total_variation,
)
from markovia.learning.association.information import (
    conditional_entropy as conditional_entropy,
    conditional_mutual_information as conditional_mutual_information,
    entropy as entropy,
    joint_entropy as joint_entropy,
    kl_divergence as kl_divergence,
    mutual_information as mutual_information,
    mutual_information_of_table as mutual_information_of_table,
)
from markovia.learning.association.kernel_measures_of_tables import (
    hsic_of_table as hsic_of_table,
    mmd_of_tables as mmd_of_tables,
)
from markovia.learning.association.kernel_tests import (
    PermutationTest as PermutationTest,
    hsic as hsic,
    hsic_test as hsic_test,
    mmd as mmd,
    mmd_test as mmd_test,
    permutation_test as permutation_test,
)
from markovia.learning.association.optimal_transport import (
    TransportPlan as TransportPlan,
    optimal_transport as optimal_transport,
    wasserstein as wasserstein,
)
from markovia.learning.association.two_samples import (
    DensityRatio as DensityRatio,
    ModeCoverage as ModeCoverage,
    density_ratio as density_ratio,
    energy_distance as energy_distance,
    mode_coverage as mode_coverage,
)
from markovia.learning.fields.contrastive_divergence import ContrastiveDivergence as ContrastiveDivergence
from markovia.learning.fields.regularised_labels import LabelRule as LabelRule
from markovia.learning.fields.identifiability import (
    Identifiability as Identifiability,
    identifiability as identifiability,
)
from markovia.learning.incomplete.e_step import expected_counts as expected_counts
from markovia.learning.incomplete.sigmoid_gradient import (
    SigmoidGradient as SigmoidGradient,
    sigmoid_gradient as sigmoid_gradient,
)
from markovia.learning.prediction.bias_variance_decomposition import (
    BiasVariance as BiasVariance,
    bias_variance as bias_variance,
    squared_decomposition as squared_decomposition,
    zero_one_decomposition as zero_one_decomposition,
)
from markovia.learning.prediction.calibration_measures import (
    Calibration as Calibration,
    calibration as calibration,
)
from markovia.learning.prediction.label_propagation import (
    PropagatedLabels as PropagatedLabels,
    propagate_labels as propagate_labels,
)
from markovia.learning.regression.iteratively_reweighted import (
    SoftmaxFit as SoftmaxFit,
    fit_softmax as fit_softmax,
)
