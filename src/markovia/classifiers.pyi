"""The names that `markovia.classifiers` hands out, each with its home."""

from markovia.models.classifiers.label_propagation import LabelPropagation as LabelPropagation
from markovia.models.classifiers.mixed_naive_bayes import NaiveBayes as NaiveBayes
from markovia.models.classifiers.naive_bayes import (
    BernoulliNaiveBayes as BernoulliNaiveBayes,
    CategoricalNaiveBayes as CategoricalNaiveBayes,
    GaussianNaiveBayes as GaussianNaiveBayes,
)
from markovia.models.classifiers.network_classifier import (
    BayesianNetworkClassifier as BayesianNetworkClassifier,
)
from markovia.models.classifiers.tree_augmented import TreeAugmentedNaiveBayes as TreeAugmentedNaiveBayes
