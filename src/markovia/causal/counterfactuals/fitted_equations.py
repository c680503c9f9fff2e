"""Equations learned from rows: additive noise around any regressor, classifiers for variables with states."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.causal.counterfactuals.couplings import check_mechanism
from markovia.causal.counterfactuals.equations import Equation, FunctionEquation, TableEquation, Values
from markovia.causal.counterfactuals.noises import Empirical
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, check_known
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Array


def fitted_equations(
    parents: Mapping[str, tuple[str, ...]], rows: Any, regressor: Any, classifier: Any, mechanism: str
) -> dict[str, Equation]:
    """Return the equation of every variable, parents first; see `StructuralModel.fit`."""
    check_mechanism(mechanism)
    frame = as_frame(rows)
    for name in parents:
        check_known([name], frame.columns, "the frame")
        if frame[name].isna().any():
            raise InvalidArgument(f"the column {name!r} has missing cells; drop or impute those rows first")
    if not len(frame):
        raise InvalidArgument("the frame has no rows")
    variables: dict[str, Variable] = {}
    columns: dict[str, Any] = {}
    for name in parents:
        variables[name], columns[name] = _read(name, frame[name])
    made: dict[str, Equation] = {}
    for name, above in parents.items():
        given = tuple(variables[q] for q in above)
        if isinstance(variables[name], Quantity):
            made[name] = _regression(variables[name], given, columns, _chosen(regressor, name))
        else:
            made[name] = _classification(
                variables[name], given, columns, _chosen(classifier, name), mechanism
            )
    return made


def _read(name: str, column: Any) -> tuple[Variable, Any]:
    """Return the variable of a column with its numbers, or its states as codes."""
    kind = column.dtype
    if getattr(kind, "kind", "O") in "iuf":
        return Quantity(name, "real"), column.to_numpy(dtype=np.float64)
    labels = (
        list(kind.categories) if hasattr(kind, "categories") else sorted(column.unique().tolist(), key=str)
    )
    labels = [bool(s) if isinstance(s, bool | np.bool_) else s for s in labels]
    codes = {s: i for i, s in enumerate(labels)}
    return Variable(name, labels), column.map(codes).to_numpy(dtype=np.int64)


def _chosen(form: Any, name: str) -> Any:
    return form.get(name) if isinstance(form, Mapping) else form


def _design(parents: tuple[Variable, ...], values: Values, n: int) -> Array:
    """Return parents as columns: numbers, and an indicator of every state but the first."""
    columns = []
    for p in parents:
        value = np.broadcast_to(np.asarray(values[p.name]), (n,))
        if isinstance(p, Quantity):
            columns.append(value.astype(np.float64))
        else:
            columns += [(value == k).astype(np.float64) for k in range(1, len(p))]
    return np.column_stack(columns)


def _regression(
    variable: Variable, parents: tuple[Variable, ...], columns: Values, regressor: Any
) -> FunctionEquation:
    seen = columns[variable.name]
    if not parents:
        return FunctionEquation(variable, (), lambda e: e, {"e": Empirical(seen)}, root=True)
    from sklearn.base import clone
    from sklearn.linear_model import LinearRegression

    model = clone(regressor) if regressor is not None else LinearRegression()
    model.fit(_design(parents, columns, len(seen)), seen)

    def predicted(e: Any, **values: Any) -> Any:
        n = max((np.size(v) for v in values.values()), default=1)
        return model.predict(_design(parents, values, n)) + e

    residuals = seen - model.predict(_design(parents, columns, len(seen)))
    return FunctionEquation(variable, parents, predicted, {"e": Empirical(residuals)}, by_code=True)


def _classification(
    variable: Variable, parents: tuple[Variable, ...], columns: Values, classifier: Any, mechanism: str
) -> TableEquation:
    seen, k = columns[variable.name], len(variable)
    if not parents or len(np.unique(seen)) < 2:
        shares = np.bincount(seen, minlength=k) / len(seen)
        return TableEquation(variable, parents, lambda values, n: np.broadcast_to(shares, (n, k)), mechanism)
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression

    model = clone(classifier) if classifier is not None else LogisticRegression(C=1e6, max_iter=1000)
    model.fit(_design(parents, columns, len(seen)), seen)

    def rows(values: Values, n: int) -> Array:
        found = np.zeros((n, k))
        found[:, model.classes_] = model.predict_proba(_design(parents, values, n))
        return found

    return TableEquation(variable, parents, rows, mechanism)
