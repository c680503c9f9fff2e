"""Naive Bayes for tables whose columns are of different kinds: numbers, truth values and categories side by side.

Every column has the class-conditional distribution of its kind; the columns stay independent given the class, so the
log probabilities add up. Reference: Murphy (2012), section 3.5. Cost: rows x columns x classes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from markovia.data.tables.feature_coding import coded_features
from markovia.errors import InvalidArgument, UnknownVariable, did_you_mean
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import State, Variable
from markovia.learning.components.class_columns import ClassColumns, GaussianColumns
from markovia.models.classifiers.feature_rows import columns, feature_names
from markovia.models.classifiers.input_checks import zeros_and_ones
from markovia.models.classifiers.naive_bayes import (
    NaiveBayesClassifier,
    bernoulli_columns,
    bernoulli_tables,
    categorical_columns,
    categorical_tables,
    gaussian_nodes,
)
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Tolerance

KINDS = ("gaussian", "bernoulli", "categorical")


@dataclass(eq=False, repr=False, kw_only=True)
class NaiveBayes(NaiveBayesClassifier):
    """Naive Bayes with Gaussian, Bernoulli and categorical columns in one table.

    Parameters
    ----------
    kinds
        The kind of each column: None to go by type (numbers are "gaussian", truth values "bernoulli", everything else
        "categorical"), one kind for all, a list, or a mapping from some columns (name or position) to kinds.
    alpha
        Pseudo-counts of Bernoulli and categorical columns; 0 for maximum likelihood.
    var_smoothing
        This share of the largest variance of a Gaussian column is added to all of them.
    class_prior, states, unseen, impossible
        As in `CategoricalNaiveBayes`.

    Attributes
    ----------
    kinds_
        The kind of every column.
    class_count_, class_prior_, classes_, log_likelihood_
        As in `GaussianNaiveBayes`.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [31.0, 45.0, 28.0, 60.0], "plan": ["a", "b", "a", "b"], "new": [True, False, True, True]})
    >>> model = NaiveBayes().fit(X, ["stay", "go", "stay", "go"])
    >>> model.kinds_
    ['gaussian', 'categorical', 'bernoulli']
    >>> model.predict(X.head(2)).tolist()
    ['stay', 'go']
    """

    kinds: str | Sequence[str] | Mapping[Any, str] | None = None
    alpha: Tolerance = 1.0
    var_smoothing: Tolerance = 1e-9
    states: Mapping[str, int | Sequence[State]] | None = None
    unseen: Literal["error", "missing"] = "error"

    def _read(self, X: Any, *, reset: bool = False, fitting: bool = False) -> list[Any]:  # noqa: N803
        parts = columns(self, X, reset=reset)
        names = feature_names(self)
        if reset:
            self.kinds_ = _kinds(self.kinds, parts, names)
            at = {kind: [k for k, found in enumerate(self.kinds_) if found == kind] for kind in KINDS}
            self._at = {kind: places for kind, places in at.items() if places}
            chosen = self._at.get("categorical", [])
            self._features, codes = coded_features(
                [parts[k] for k in chosen], [names[k] for k in chosen], states=self.states
            )
        cells: list[Any] = []
        for kind, places in self._at.items():
            own, called = [parts[k] for k in places], [names[k] for k in places]
            if kind == "categorical":
                if not reset:
                    known = dict(zip(called, self._features, strict=True))
                    unseen = "error" if fitting else self.unseen
                    codes = coded_features(own, called, known=known, unseen=unseen)[1]
                cells.append(codes.T)
                continue
            table = _table(own, called, kind)
            cells.append(table if kind == "gaussian" else zeros_and_ones(table, called))
        return cells

    def _start(self, cells: list[Any], n_classes: int) -> list[ClassColumns]:
        made: dict[str, Any] = {
            "gaussian": lambda n: GaussianColumns(n_classes, n, self.var_smoothing),
            "bernoulli": lambda n: bernoulli_columns(n_classes, n, self.alpha),
            "categorical": lambda n: categorical_columns(n_classes, self._features, self.alpha),
        }
        return [made[kind](len(places)) for kind, places in self._at.items()]

    def _conditionals(self, target: Variable) -> list[Conditional]:
        names = feature_names(self)
        found: list[Conditional] = []
        for (kind, places), block in zip(self._at.items(), self._blocks, strict=True):
            own = [names[k] for k in places]
            if kind == "gaussian":
                found += gaussian_nodes(block, own, target)
            elif kind == "bernoulli":
                found += bernoulli_tables(block, own, target)
            else:
                found += categorical_tables(block, self._features, target)
        return sorted(found, key=lambda one: names.index(one.variable.name))

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        return {**super()._input_tags, "string": True}


def _kinds(given: Any, parts: Sequence[Any], names: Sequence[str]) -> list[str]:
    if isinstance(given, str):
        found = [given] * len(parts)
    elif given is None or isinstance(given, Mapping):
        found = [_kind_of(part) for part in parts]
        for key, kind in (given or {}).items():
            if key in names:
                found[names.index(key)] = kind
            elif isinstance(key, int) and 0 <= key < len(parts):
                found[key] = kind
            else:
                raise UnknownVariable(key, names, "the features")
    else:
        found = list(given)
        if len(found) != len(parts):
            raise InvalidArgument(f"kinds= names {len(found)} kinds for {len(parts)} columns")
    for kind in found:
        if kind not in KINDS:
            raise InvalidArgument(
                f"a kind is 'gaussian', 'bernoulli' or 'categorical', not {kind!r}{did_you_mean(kind, KINDS)}"
            )
    return found


def _kind_of(column: Any) -> str:
    """Return the kind that a column's type suggests; columns of objects go by the type of their cells."""
    from pandas.api.types import infer_dtype, is_bool_dtype, is_numeric_dtype

    if column.dtype == object:
        cells = infer_dtype(column, skipna=True)
        numeric = cells in ("floating", "integer", "mixed-integer-float", "decimal")
        return "gaussian" if numeric else "bernoulli" if cells == "boolean" else "categorical"
    if is_bool_dtype(column.dtype):
        return "bernoulli"
    return "gaussian" if is_numeric_dtype(column.dtype) else "categorical"


def _table(parts: Sequence[Any], names: Sequence[str], kind: str) -> Array:
    """Return columns as one table of finite numbers, NaN for missing cells."""
    table = np.empty((len(parts[0]), len(parts)))
    for k, (part, name) in enumerate(zip(parts, names, strict=True)):
        try:
            table[:, k] = (
                part.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(part, "to_numpy") else part
            )
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"the column {name!r} is {kind} but holds cells that are no numbers"
            ) from None
        if np.isinf(table[:, k]).any():
            raise InvalidArgument(f"the column {name!r} holds infinity")
    return table
