"""Checks of scikit-learn that an estimator fails on purpose."""

FRACTIONS = "the check trains on numbers with fractions, which discrete classifiers refuse"
EXPECTED_OF_DISCRETE = {
    "check_positive_only_tag_during_fit": FRACTIONS,
    "check_sample_weight_equivalence_on_dense_data": FRACTIONS,
    "check_classifiers_one_label_sample_weights": FRACTIONS,
}
