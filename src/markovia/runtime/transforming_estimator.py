"""Estimators that turn rows into features, with scikit-learn's mixins for it."""

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from markovia.runtime.estimator import Estimator


class TransformingEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """An estimator that turns rows into features, which are called by its name and numbered."""
