"""Naive Bayes classifiers: features that are independent of each other given the class.

Gaussian, Bernoulli and categorical features as scikit-learn estimators; `markovia.models.classifiers.mixed_naive_bayes`
mixes them. Training is one pass of counting (Algorithm: class counts and per-class feature statistics), prediction a sum
of logs. Missing cells are left out, which is exact here. Reference: Murphy (2012), section 3.5. Cost: rows x columns x
classes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovia.data.tables.feature_coding import coded_features
from markovia.errors import InvalidArgument
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import State, Variable
from markovia.learning.components.block_passes import has_gaps
from markovia.learning.components.class_columns import ClassColumns, CountedColumns, GaussianColumns
from markovia.learning.components.columns import CategoricalColumns
from markovia.learning.components.discrete import Bernoulli
from markovia.learning.tables.table_learner import weighted_log
from markovia.models.classifiers.feature_rows import columns, feature_names, numbers
from markovia.models.classifiers.input_checks import (
    ProbabilisticClassifier,
    class_codes,
    class_variable,
    labels,
    sample_weights,
    settled,
    sparse_ones,
    zeros_and_ones,
)
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NumberRange, Tolerance
from markovia.runtime.estimator import fitting


class _Learned(ProbabilisticClassifier):
    """What naive Bayes classifiers learn."""

    class_count_: Array
    class_prior_: Array
    log_likelihood_: float
    _blocks: list[ClassColumns]
    _smoothing = "alpha > 0 avoids that"


@dataclass(eq=False, repr=False, kw_only=True)
class NaiveBayesClassifier(_Learned):
    """What all naive Bayes classifiers share; a subclass says how columns are read and scored."""

    class_prior: Any = None
    impossible: Literal["error", "prior"] = "error"

    # -- what a subclass writes ------------------------------------------------------------------------------------

    def _read(self, X: Any, *, reset: bool = False, fitting: bool = False) -> list[Any]:  # noqa: N803
        """Return the cells of each block; `reset` learns the columns, `fitting` says that they are counted."""
        raise NotImplementedError

    def _start(self, cells: list[Any], n_classes: int) -> list[ClassColumns]:
        """Return empty blocks for the cells."""
        raise NotImplementedError

    def _publish(self) -> None:
        """Set the learned attributes from the blocks."""

    def _conditionals(self, target: Variable) -> list[Conditional]:
        """Return each feature's distribution given the class."""
        raise NotImplementedError

    # -- scikit-learn's verbs --------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn from rows and their labels, forgetting what was learned before; return the classifier.

        Parameters
        ----------
        X
            A table of features, one row a case; NaN or None where a cell is missing.
        y
            The class of each row.
        sample_weight
            One number a row that is not negative, or None.
        """
        with fitting(self):
            return self._add(X, y, None, sample_weight, first=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Add a batch of rows; batches give the same as all rows at once.

        States of categorical columns that only come later have to be announced with `states=`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes
            All classes there will be; needed at the first call.
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise InvalidArgument("classes must be passed on the first call to partial_fit.")
        if not first and classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise InvalidArgument(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {self.classes_!r}"
            )
        with fitting(self):
            return self._add(X, y, classes, sample_weight, first=first)

    def _add(self, X: Any, y: Any, classes: Any, sample_weight: Any, first: bool) -> Self:  # noqa: N803
        cells = self._read(X, reset=first, fitting=True)
        target = labels(self, y, X)
        weights = sample_weights(sample_weight, len(target))
        if first:
            self.classes_ = np.unique(target if classes is None else np.asarray(classes))
            self.class_count_ = np.zeros(len(self.classes_))
            self._blocks = self._start(cells, len(self.classes_))
        else:
            # new arrays, so that a failure half-way leaves the old ones as they were
            from copy import deepcopy

            self._blocks = deepcopy(self._blocks)
        members = class_codes(target, self.classes_)
        self.class_count_ = self.class_count_ + np.bincount(
            members, weights=weights, minlength=len(self.classes_)
        )
        self.class_prior_ = self._prior()
        for block, part in zip(self._blocks, cells, strict=True):
            block.update(part, members, weights)
            block.estimate()
        self.log_likelihood_ = weighted_log(self.class_count_, self.class_prior_) + sum(
            block.log_likelihood() for block in self._blocks
        )
        self._publish()
        return self

    def _prior(self) -> Array:
        n = len(self.classes_)
        if self.class_prior is None:
            return np.asarray(self.class_count_ / self.class_count_.sum())
        if isinstance(self.class_prior, str):
            if self.class_prior != "uniform":
                raise InvalidArgument(
                    f"class_prior= is None, 'uniform' or probabilities, not {self.class_prior!r}"
                )
            return np.full(n, 1.0 / n)
        given = np.asarray(self.class_prior, dtype=np.float64)
        if given.shape != (n,) or not (given >= 0).all() or not np.isclose(given.sum(), 1.0):
            raise InvalidArgument(
                f"class_prior= is one probability for each of the {n} classes with sum 1, not {self.class_prior!r}"
            )
        return given

    def predict_joint_log_proba(self, X: Any) -> Array:  # noqa: N803
        """Return `log p(x, class)`, one column a class; minus infinity where that is impossible."""
        check_is_fitted(self)
        return self._joint(self._read(X))

    def _joint(self, cells: list[Any]) -> Array:
        with np.errstate(divide="ignore"):
            joint = self._blocks[0].log_prob(cells[0]) + np.log(self.class_prior_)
        for block, part in zip(self._blocks[1:], cells[1:], strict=True):
            joint += block.log_prob(part)
        return np.asarray(joint)

    def _settled(self, X: Any) -> Array:  # noqa: N803
        check_is_fitted(self)
        joint = self._joint(self._read(X))
        names = feature_names(self)
        return settled(joint, lambda: self.class_prior_, self.impossible, X, names, self._smoothing)

    # -- the graph it stands for -----------------------------------------------------------------------------------

    def to_network(self, target: str = "class") -> BayesianNetwork:
        """Return the Bayesian network, which answers as `predict_proba` does: the class as the only parent of every feature.

        A number is Gaussian, with a mean and a variance in each class; a column of numbers without any value is left out.

        Parameters
        ----------
        target
            The name of the class variable.

        Examples
        --------
        >>> model = GaussianNaiveBayes().fit([[1.0], [3.0], [6.0], [8.0]], ["a", "a", "b", "b"])
        >>> p = model.to_network().query("class", given={"x0": 4.0})
        >>> round(p["a"], 6), model.predict_proba([[4.0]]).round(6).tolist()
        (0.924142, [[0.924142, 0.075858]])
        """
        check_is_fitted(self)
        variable = class_variable(target, self.classes_, feature_names(self))
        prior = ConditionalTable.of(variable, (), np.array(self.class_prior_))
        return BayesianNetwork.from_conditionals([prior, *self._conditionals(variable)])


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianNaiveBayes(NaiveBayesClassifier):
    """Naive Bayes for numbers: every feature has a mean and a variance in every class.

    Parameters
    ----------
    var_smoothing
        This share of the largest variance of a feature is added to all variances.
    class_prior
        None for the shares of the classes in the data, "uniform", or one probability a class.
    impossible
        What to answer for a row so far away that its density is zero in every class: "error", or "prior".

    Attributes
    ----------
    theta_, var_
        Means and variances (with what was added), one row a class.
    epsilon_
        What was added to the variances.
    class_count_, class_prior_, classes_
        Weights of the rows of each class, probabilities, labels.
    log_likelihood_
        Of the training data: `sum_i log p(x_i, y_i)`, missing cells left out.

    Examples
    --------
    >>> X = [[1.0, 2.0], [1.2, np.nan], [3.0, 0.0], [3.4, 0.2]]
    >>> model = GaussianNaiveBayes().fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[1.1, np.nan], [np.nan, 0.1]]).tolist()
    ['a', 'b']
    """

    _smoothing = "a larger var_smoothing avoids that"

    var_smoothing: Tolerance = 1e-9

    def _read(self, X: Any, *, reset: bool = False, fitting: bool = False) -> list[Any]:  # noqa: N803
        return [numbers(self, X, reset=reset, unlearned=True)]

    def _start(self, cells: list[Any], n_classes: int) -> list[ClassColumns]:
        return [GaussianColumns(n_classes, cells[0].shape[1], self.var_smoothing)]

    def _publish(self) -> None:
        block: Any = self._blocks[0]
        self.theta_, self.var_, self.epsilon_ = block.mean, block.variance, block.epsilon

    def _conditionals(self, target: Variable) -> list[Conditional]:
        return gaussian_nodes(self._blocks[0], feature_names(self), target)


@dataclass(eq=False, repr=False, kw_only=True)
class BernoulliNaiveBayes(NaiveBayesClassifier):
    """Naive Bayes for features that are there or not; X may be sparse (words of texts, say).

    Parameters
    ----------
    alpha
        Pseudo-counts for one and for zero in every class; 0 for maximum likelihood.
    binarize
        Larger numbers are ones, others zeros; None if the cells are zeros and ones already.
    class_prior
        None for the shares of the classes in the data, "uniform", or one probability a class.
    impossible
        What to answer for a row that no class allows (only without pseudo-counts): "error", or "prior".

    Attributes
    ----------
    theta_
        The probability of a one, one row a class.
    feature_count_
        The weight of the ones, one row a class.
    class_count_, class_prior_, classes_, log_likelihood_
        As in `GaussianNaiveBayes`.

    Examples
    --------
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["A", "A", "B", "B"]
    >>> model = BernoulliNaiveBayes(alpha=0).fit(X, y)
    >>> model.theta_.tolist(), round(model.log_likelihood_, 6)
    ([[1.0, 0.5], [0.0, 1.0]], -4.158883)
    >>> model.to_network().query("class", given={"x0": 1})["A"]
    1.0
    """

    alpha: Tolerance = 1.0
    binarize: Annotated[float | None, NumberRange(said="a number", none=True)] = 0.0

    def _read(self, X: Any, *, reset: bool = False, fitting: bool = False) -> list[Any]:  # noqa: N803
        cells = numbers(self, X, reset=reset, sparse=True, unlearned=True)
        if hasattr(cells, "toarray"):
            return [sparse_ones(cells, self.binarize)]
        if self.binarize is None:
            return [zeros_and_ones(cells, feature_names(self))]
        ones = (cells > self.binarize).astype(np.float64)
        if has_gaps(cells):
            ones[np.isnan(cells)] = np.nan
        return [ones]

    def _start(self, cells: list[Any], n_classes: int) -> list[ClassColumns]:
        return [bernoulli_columns(n_classes, cells[0].shape[1], self.alpha)]

    def _publish(self) -> None:
        block: Any = self._blocks[0]
        self.theta_ = block.component.probs
        self.feature_count_ = block.sums[:, : self.n_features_in_]

    def _conditionals(self, target: Variable) -> list[Conditional]:
        return bernoulli_tables(self._blocks[0], feature_names(self), target)

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        return {**super()._input_tags, "sparse": True}


@dataclass(eq=False, repr=False, kw_only=True)
class CategoricalNaiveBayes(NaiveBayesClassifier):
    """Naive Bayes for features with a few states: strings, whole numbers, truth values or pandas categories.

    Parameters
    ----------
    alpha
        Pseudo-counts for every state in every class; 0 for maximum likelihood.
    class_prior
        None for the shares of the classes in the data, "uniform", or one probability a class.
    states
        States of some features by name (x0, x1, ... where X has no names); others are read off the data.
    unseen
        What a cell with a state that fitting never met is at prediction: "error", or "missing" (left out).
    impossible
        What to answer for a row that no class allows (only without pseudo-counts): "error", or "prior".

    Attributes
    ----------
    states_
        The states of every feature.
    category_count_, feature_log_prob_
        For every feature a table of class x state: the weight of the rows, and the log probabilities.
    class_count_, class_prior_, classes_, log_likelihood_
        As in `GaussianNaiveBayes`.

    Examples
    --------
    >>> X = [["sun", "hot"], ["rain", "mild"], ["rain", None], ["sun", "mild"]]
    >>> model = CategoricalNaiveBayes().fit(X, ["out", "in", "in", "out"])
    >>> model.predict([["rain", "hot"], ["sun", None]]).tolist()
    ['in', 'out']
    """

    alpha: Tolerance = 1.0
    states: Mapping[str, int | Sequence[State]] | None = None
    unseen: Literal["error", "missing"] = "error"

    def _read(self, X: Any, *, reset: bool = False, fitting: bool = False) -> list[Any]:  # noqa: N803
        parts = columns(self, X, reset=reset)
        names = feature_names(self)
        if reset:
            self._features, codes = coded_features(parts, names, states=self.states)
            return [codes.T]
        known = dict(zip(names, self._features, strict=True))
        # a batch with new states cannot be counted, whatever prediction does with them
        unseen = "error" if fitting else self.unseen
        return [coded_features(parts, names, known=known, unseen=unseen)[1].T]

    def _start(self, cells: list[Any], n_classes: int) -> list[ClassColumns]:
        return [categorical_columns(n_classes, self._features, self.alpha)]

    def _publish(self) -> None:
        block: Any = self._blocks[0]
        self.states_ = [list(v.states) for v in self._features]
        self.category_count_ = np.split(block.sums, np.cumsum([len(v) for v in self._features])[:-1], axis=1)
        with np.errstate(divide="ignore"):
            self.feature_log_prob_ = [np.log(t) for t in block.component.probs]

    def _conditionals(self, target: Variable) -> list[Conditional]:
        return categorical_tables(self._blocks[0], self._features, target)

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        return {**super()._input_tags, "categorical": True, "string": True}


def bernoulli_columns(n_classes: int, n_columns: int, alpha: float) -> CountedColumns:
    """Return columns of zeros and ones of which nothing is known yet."""
    return CountedColumns(Bernoulli(np.full((n_classes, n_columns), 0.5)), alpha)


def categorical_columns(n_classes: int, features: Sequence[Variable], alpha: float) -> CountedColumns:
    """Return columns of states of which nothing is known yet."""
    uniform = tuple(np.full((n_classes, len(v)), 1.0 / len(v)) for v in features)
    return CountedColumns(CategoricalColumns(uniform, tuple(v.states for v in features)), alpha)


def bernoulli_tables(block: Any, names: Sequence[str], target: Variable) -> list[Conditional]:
    """Return a table of class x {0, 1} for each column."""
    both = np.stack([block.component.zeros, block.component.probs], axis=-1)
    return [ConditionalTable.of(Variable(n, 2), (target,), both[:, k]) for k, n in enumerate(names)]


def categorical_tables(block: Any, features: Sequence[Variable], target: Variable) -> list[Conditional]:
    """Return a table of class x state for each column."""
    tables = zip(features, block.component.probs, strict=True)
    return [ConditionalTable.of(v, (target,), p.copy()) for v, p in tables]


def gaussian_nodes(block: Any, names: Sequence[str], target: Variable) -> list[Conditional]:
    """Return a mean and a variance given the class for each column; of a column without any value nothing is known."""
    none = np.empty((len(target), 0))
    return [
        GaussianConditional(Quantity(n), (target,), (), mean.copy(), none, variance.copy())
        for n, mean, variance in zip(names, block.mean.T, block.variance.T, strict=True)
        if not np.isnan(mean).any()
    ]
