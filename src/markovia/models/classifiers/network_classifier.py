"""Bayesian networks as classifiers: any structure over a class and discrete features, as a scikit-learn estimator.

Fitting counts (`BayesianNetwork.fit`). A row whose class has its whole Markov blanket observed is answered by the product
of the class's table and its children's tables; rows with gaps go to the junction tree, many at a time
(`markovia.inference.choosing.evidence_rows`). Reference: Friedman, Geiger & Goldszmidt (1997), Bayesian network classifiers.
Cost: rows x tables of the blanket x classes; with gaps the cliques over what is missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovia.data.tables.coded_cells import code_type
from markovia.data.tables.feature_coding import coded_features
from markovia.data.tables.row_sources import MISSING, CodedTable
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.tables.variable import State, Variable
from markovia.inference.choosing.evidence_rows import answers, compiled_for
from markovia.inference.engine import Engine, get_engine
from markovia.inference.problem import Problem
from markovia.learning.components.block_passes import stretches
from markovia.learning.tables.priors import as_prior
from markovia.models.classifiers.feature_rows import columns, feature_names
from markovia.models.classifiers.input_checks import (
    ProbabilisticClassifier,
    class_codes,
    class_variable,
    labels,
    sample_weights,
    settled,
)
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array, Codes
from markovia.runtime.estimator import fitting
from markovia.structure.learn import learn_structure
from markovia.structure.methods import METHODS
from markovia.structure.trees.tree_augmented_search import tree_augmented_parents


class _LearnedNetwork(ProbabilisticClassifier):
    """What classifiers with a network learn."""

    network_: BayesianNetwork


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkClassifier(_LearnedNetwork):
    """What all classifiers with a network share; a subclass says which structure."""

    target: str | None = None
    prior: Any = "bdeu"
    engine: str | Engine = "auto"
    states: Mapping[str, int | Sequence[State]] | None = None
    missing: str = "error"
    unseen: Literal["error", "missing"] = "error"
    impossible: Literal["error", "prior"] = "error"

    def _structured(self, names: list[str], target: str) -> BayesianNetwork | None:
        """Return the structure; None for one that is learned by `_learned`."""
        return None

    def _learned(self, table: CodedTable, names: list[str], target: str) -> BayesianNetwork:
        """Return a structure learned from coded rows."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn from rows and their labels, forgetting what was learned before; return the classifier.

        Parameters
        ----------
        X
            A table of discrete features: strings, whole numbers, truth values or pandas categories. A network finds
            its variables by column name (x0, x1, ... where there are none); other columns are not looked at.
        y
            The class of each row.
        sample_weight
            One number a row that is not negative, or None.
        """
        with fitting(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:  # noqa: N803
        parts = columns(self, X, reset=True)
        found = labels(self, y, X)
        weights = sample_weights(sample_weight, len(found))
        as_prior(self.prior)
        get_engine(self.engine)
        names = feature_names(self)
        target = self._target_name(y)
        given = self._structured(names, target)
        stated: dict[str, Variable] = {}
        if given is not None:
            open_states = given.unstated()
            stated = {n: given.variable(n) for n in given.variables if n not in open_states}
            for name in given.variables:
                if name not in names and name != target:
                    raise UnknownVariable(name, names, "the features")
            names = [n for n in names if n in given.variables and n != target]
        if target in stated:
            self.classes_ = np.unique(np.array(stated[target].states))
            of_class = stated[target]
        else:
            self.classes_ = np.unique(found)
            of_class = class_variable(target, self.classes_, names)
        place = {n: k for k, n in enumerate(feature_names(self))}
        chosen = [parts[place[n]] for n in names]
        features, codes = coded_features(chosen, names, states=self.states, known=stated)
        order = np.array([of_class.codes[label] for label in self.classes_.tolist()])
        members = order[class_codes(found, self.classes_)]
        rows: Codes = np.empty((len(features) + 1, len(members)), dtype=code_type((*features, of_class)))
        rows[:-1], rows[-1] = codes, members
        table = CodedTable([*features, of_class], rows, weights)
        network = given if given is not None else self._learned(table, names, target)
        self.network_ = network.fit(table, prior=self.prior, missing=self.missing)
        self.target_ = target
        self.log_likelihood_ = network.fit_.log_likelihood if network.fit_ is not None else float("nan")
        self._names, self._places, self._order = names, [place[n] for n in names], order
        return self

    def _target_name(self, y: Any) -> str:
        if self.target is not None:
            return self.target
        name = getattr(y, "name", None)
        return name if isinstance(name, str) and name else "class"

    def predict_joint_log_proba(self, X: Any) -> Array:  # noqa: N803
        """Return `log p(x, class)` up to a constant a row, one column a class; minus infinity where impossible."""
        check_is_fitted(self)
        parts = columns(self, X, reset=False)
        known = {n: self.network_.variable(n) for n in self._names}
        codes = coded_features(
            [parts[k] for k in self._places], self._names, known=known, unseen=self.unseen
        )[1]
        engine = get_engine(self.engine)
        n_rows = len(parts[0])
        result = np.empty((n_rows, len(self.classes_)))
        around = _blanket(self.network_, self.target_)
        at = [self._names.index(n) for n in around]
        whole = (codes[at] != MISSING).all(axis=0) if at else np.ones(n_rows, dtype=bool)
        if not engine.exact:
            whole[:] = False
        if whole.all():
            result = blanket_log_weight(
                self.network_, self.target_, dict(zip(self._names, codes, strict=True)), n_rows
            )
        else:
            seen = {n: codes[k][whole] for k, n in enumerate(self._names)}
            result[whole] = blanket_log_weight(self.network_, self.target_, seen, int(whole.sum()))
            result[~whole] = self._by_engine(codes[:, ~whole].T, engine)
        return np.ascontiguousarray(result[:, self._order])

    def _by_engine(self, table: Codes, engine: Engine) -> Array:
        """Return log posteriors of rows with gaps; a row that is impossible is minus infinity throughout."""
        network = self.network_
        variables = {n: network.variable(n) for n in network.variables}
        problem = Problem(variables, network.pieces(), {}, network.__dict__.setdefault("_memory", {}))
        result = np.full((len(table), len(self.classes_)), -np.inf)
        first = 0
        while first < len(table):
            rest = table[first:]
            program = compiled_for(problem, engine, (self.target_,), self._names, rest)
            done = 0
            for part in answers(
                problem, engine, (self.target_,), self._names, rest, program, lambda rows: None
            ):
                with np.errstate(divide="ignore", invalid="ignore"):
                    logs = np.log(part.posteriors)
                bad = np.flatnonzero(np.isneginf(part.log_mass))
                logs[bad] = -np.inf
                # behind an impossible row nothing need have been answered
                good = int(bad[0]) + 1 if len(bad) else part.last - part.first
                result[first + part.first : first + part.first + good] = logs[:good]
                done = part.first + good
                if len(bad):
                    break
            first += done
        return result

    def _settled(self, X: Any) -> Array:  # noqa: N803
        joint = self.predict_joint_log_proba(X)

        def prior() -> Array:
            return np.asarray(self.network_.query(self.target_, engine=self.engine).values[self._order])

        return settled(joint, prior, self.impossible, X, feature_names(self), "a prior avoids that")

    def to_network(self) -> BayesianNetwork:
        """Return a copy of the fitted network."""
        check_is_fitted(self)
        return self.network_.copy()

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        return {**super()._input_tags, "categorical": True, "string": True}


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianNetworkClassifier(NetworkClassifier):
    """A Bayesian network of any structure over a class and discrete features.

    Parameters
    ----------
    structure
        "naive" (the class is the only parent of each feature), "tan" (`TreeAugmentedNaiveBayes`), a method of
        `mk.learn_structure` such as "hill-climb", or a text, a `DAG`, a mapping from name to parents, a list of edges or a
        `BayesianNetwork`; a network's own states are kept, its tables are learned anew in a copy.
    target
        The name of the class variable; by default the name of y if it has one, otherwise "class".
    prior
        As in `BayesianNetwork.fit`.
    engine
        Who answers rows with missing cells; an approximate engine answers all rows.
    states
        States of some features; others are read off the data.
    missing
        What `BayesianNetwork.fit` does with rows that miss a cell. At prediction missing cells are summed out.
    unseen
        What a cell with a state that fitting never met is at prediction: "error", or "missing".
    impossible
        What to answer for a row of probability zero (only without a prior): "error", or "prior".

    Attributes
    ----------
    network_
        The fitted network; `network_.fit_` says how it was fitted.
    classes_, target_, log_likelihood_
        The labels, the name of the class, and the log likelihood of the training data.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.asia().sample(2000, seed=1)
    >>> model = BayesianNetworkClassifier("smoke->lung->xray; smoke->bronc->dysp<-lung", target="lung", prior="bdeu")
    >>> model = model.fit(rows.drop(columns="lung"), rows["lung"])
    >>> model.predict_proba(rows[["asia", "tub", "smoke", "bronc", "either", "xray", "dysp"]].head(1)).shape
    (1, 2)
    """

    structure: Any = field(default="naive", kw_only=False)

    def _structured(self, names: list[str], target: str) -> BayesianNetwork | None:
        if self._learns():
            return None
        if isinstance(self.structure, str) and self.structure == "naive":
            if target in names:
                raise InvalidArgument(
                    f"a feature is called {target!r}; give the class another name with target="
                )
            return BayesianNetwork({target: [], **{n: [target] for n in names}})
        network = self.structure
        network = network.copy() if isinstance(network, BayesianNetwork) else BayesianNetwork(network)
        if target not in network.variables:
            raise UnknownVariable(target, network.variables, "the structure; target= names the class")
        return network

    def _learns(self) -> bool:
        return isinstance(self.structure, str) and (self.structure == "tan" or self.structure in METHODS)

    def _learned(self, table: CodedTable, names: list[str], target: str) -> BayesianNetwork:
        if self.structure == "tan":
            return BayesianNetwork(tree_augmented_parents(table, names, target)[0])
        gaps = "drop" if self.missing == "drop" else "error"
        return BayesianNetwork(learn_structure(table, self.structure, missing=gaps, progress=False).dag)


def blanket_log_weight(
    network: BayesianNetwork, target: str, codes: Mapping[str, Codes], n_rows: int
) -> Array:
    """Return the log of the target's table times its children's tables, one column a state of the target.

    `codes` hold every variable of the target's Markov blanket, without gaps.
    """
    tables = []
    for name in (target, *network.children(target)):
        values = network[name].values
        scope = [*network.parents(name), name]
        axis = scope.index(target)
        with np.errstate(divide="ignore"):
            logs = np.log(np.moveaxis(values, axis, -1))
        shape = logs.shape[:-1]
        strides = [prod(shape[k + 1 :]) for k in range(len(shape))]
        tables.append((logs.reshape(-1, logs.shape[-1]), [n for n in scope if n != target], strides))
    width = len(network.states(target))
    result = np.zeros((n_rows, width))
    for low, high in stretches(n_rows, 4 * width):
        part = result[low:high]
        for logs, others, strides in tables:
            index = np.zeros(high - low, dtype=np.int64)
            for n, stride in zip(others, strides, strict=True):
                index += codes[n][low:high] * np.int64(stride)
            part += logs.take(index, axis=0, mode="wrap")
    return result


def _blanket(network: BayesianNetwork, target: str) -> list[str]:
    around = {p for name in (target, *network.children(target)) for p in (name, *network.parents(name))}
    return [n for n in network.variables if n in around and n != target]
