"""Values and rows for models with functions of parents: the log density of assignments, and predictions.

Without plates every row is evidence of its own. With plates, rows are new elements of a plate, and predictions are averages
over draws from a posterior of everything that rows share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.tables.in_memory import eager_columns
from markovia.data.tables.reading import known_columns
from markovia.errors import ImpossibleEvidence, InvalidArgument, InvalidEvidence
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.evidence import is_missing
from markovia.factors.tables.variable import Variable
from markovia.inference.engine import Engine
from markovia.inference.posterior import Posterior
from markovia.models.graphical import drawn_rows
from markovia.models.graphical.arguments import Impossible
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import pd
from markovia.runtime.seeds import generator

if TYPE_CHECKING:
    from markovia.models.graphical.base import GraphicalModel

MOST_CELLS = 2**24
"""Predicted numbers of one target that are held at a time; beyond, fewer draws are used."""


# -- the log density of assignments --------------------------------------------------------------------------------


def log_prob(model: "GraphicalModel", values: Any, inputs: Mapping[str, Any] | None) -> Array:
    """Return the log density of each assignment: rows, draws as `sample` gives them, or one mapping (then a number)."""
    from markovia.inference.densities.program.assignments import assignment_log_probs
    from markovia.inference.densities.program.layout import lay_out
    from markovia.inference.densities.program.program import program_of

    one = isinstance(values, Mapping) and not hasattr(values, "dims")
    one = one and bool(_plates(model) or any(np.ndim(v) == 0 for v in values.values()))
    if one:
        problem = model._problem({**values, **(inputs or {})})
        columns = {
            n: np.asarray(f.value if f.code is None else f.code)[None]
            for n, f in problem.findings.items()
            if f.hard
        }
    else:
        columns = _columns(model, values)
        first = {n: column[0] for n, column in columns.items()}
        problem = model._problem({**_said(model, first), **(inputs or {})})
    for name, column in columns.items():
        if column.dtype.kind == "f" and np.isnan(column).any():
            _refuse_gap(name, int(np.argwhere(np.isnan(column))[0][0]))
    lengths = lay_out(problem).lengths
    bare = replace(problem, findings={}, inputs={**problem.inputs, **lengths})
    program = program_of(bare, only_drawn=True)
    for site in program.layout.sites.values():
        if site.role == "function":
            raise InvalidEvidence(
                f"log_prob needs a value of every node, and {site.name!r} is a function; log_evidence(given=...) is the log "
                "density of some nodes, functions summed out"
            )
        if site.name in columns and columns[site.name].shape[1:] != site.shape:
            raise InvalidEvidence(
                f"{site.name!r} has shape {site.shape}, but its value has {columns[site.name].shape[1:]}"
            )
        if site.role in ("latent", "discrete") and site.name not in columns:
            _refuse_gap(site.name)
    found = assignment_log_probs(program, columns)
    return found[0] if one else found


def _refuse_gap(name: str, row: int | None = None) -> None:
    where = "" if row is None else f" in row {row}"
    raise InvalidEvidence(
        f"log_prob needs a value of every node, and {name!r} has none{where}; log_evidence(given=...) is the log density "
        "of some nodes, the others integrated out"
    )


def _plates(model: "GraphicalModel") -> set[str]:
    return {p for v in model._variables.values() if isinstance(v, Quantity) for p in v.plates}


def _columns(model: "GraphicalModel", values: Any) -> dict[str, Any]:
    """Return numbers and codes by node or constant, rows in front."""
    if hasattr(values, "dims") and "draw" in values.dims:
        raw = {n: np.moveaxis(v.values, v.dims.index("draw"), 0) for n, v in values.data_vars.items()}
    elif _plates(model):
        raise InvalidArgument(
            "a model with plates takes an assignment by names, as given= does ({'mu': 1.0, 'y': array, 'row': frame}), or "
            "the draws of sample()"
        )
    else:
        read = eager_columns(values)
        raw = {n: np.asarray(read.get(n)) for n in read.names}
    return {
        n: _numbers(model._variables[n], raw[n]) if n in model else raw[n].astype(np.float64)
        for n in known_columns(list(raw), _known(model), (), "note")
    }


def _known(model: "GraphicalModel") -> dict[str, Any]:
    """Return the names that a column may have: nodes and constants."""
    constants = {a for piece in model.pieces() for a in getattr(piece, "arguments", {}).values()}
    return {**dict.fromkeys(constants), **model._variables}


def _numbers(variable: Variable, column: Any) -> Any:
    """Return states as codes, other cells as numbers; a missing one is NaN."""
    labels = variable.labels if isinstance(variable, Quantity) else variable.states
    if labels and (not isinstance(variable, Quantity) or column.dtype.kind in "OUSb"):
        plain = Variable(variable.name, labels)
        cells = [np.nan if is_missing(c) else plain.index(c) for c in column.ravel().tolist()]
        codes = np.array(cells).reshape(column.shape)
        return codes.astype(np.int64) if codes.dtype.kind != "f" else codes
    return column if column.dtype.kind in "iuf" else column.astype(np.float64)


def _said(model: "GraphicalModel", codes: Mapping[str, Any]) -> dict[str, Any]:
    """Return codes as states, as a user would say them."""
    return {
        n: model.states(n)[int(v)]
        if n in model and not isinstance(model._variables[n], Quantity) and v == v
        else v
        for n, v in codes.items()
    }


# -- predictions ---------------------------------------------------------------------------------------------------


def predict(
    model: "GraphicalModel",
    rows: Any,
    names: Sequence[str],
    engine: Engine,
    impossible: Impossible,
    given: Any,
) -> "pd.DataFrame":
    """Return the mean of each number and the most probable state of each other target, one row a row."""
    found = {}
    for name, table in tables(model, rows, names, engine, impossible, given).items():
        if list(table.columns) == ["mean", "sd"]:
            found[name] = table["mean"]
            continue
        best = np.where(table.isna().any(axis=1), -1, table.fillna(0.0).to_numpy().argmax(axis=1))
        states = np.array([*table.columns, None], dtype=object)
        found[name] = pd.Series(states[best], index=table.index)
    return pd.DataFrame(found).infer_objects()


def tables(
    model: "GraphicalModel",
    rows: Any,
    names: Sequence[str],
    engine: Engine,
    impossible: Impossible,
    given: Any,
) -> dict[str, "pd.DataFrame"]:
    """Return for each target a frame: one column a state, or mean and standard deviation of a number."""
    if _plates(model):
        return _new_elements(model, rows, names, engine, given)
    refuse_given(given)
    return _own_rows(model, rows, names, engine, impossible)


def refuse_given(given: Any) -> None:
    """Refuse a posterior for models without plates."""
    if given is not None:
        raise InvalidArgument(
            "given= is for models with plates, whose rows share what a posterior is about; here each row is evidence of "
            "its own"
        )


def _own_rows(
    model: "GraphicalModel", rows: Any, names: Sequence[str], engine: Engine, impossible: Impossible
) -> dict[str, "pd.DataFrame"]:
    """Ask for the posterior of the targets row by row."""
    read = eager_columns(rows)
    columns = known_columns(read.names, _known(model), names, "note")
    cells = zip(*(np.asarray(read.get(n), dtype=object).tolist() for n in columns), strict=True)
    every = list(cells) if columns else [()] * read.n_rows
    answers: dict[Any, Any] = {}
    for i, row in enumerate(every):
        if row in answers:
            continue
        said = {n: cell for n, cell in zip(columns, row, strict=True) if not is_missing(cell)}
        try:
            answers[row] = model.marginals(targets=names, given=said, engine=engine)
        except ImpossibleEvidence as problem:
            if impossible == "raise":
                raise ImpossibleEvidence(problem.evidence, i) from None
            answers[row] = model.marginals(targets=names, engine=engine) if impossible == "prior" else None
    found = {}
    for name in names:
        made = [None if answers[row] is None else _cells(answers[row][name]) for row in every]
        heads = next((list(m) for m in made if m is not None), [])
        numbers = [[np.nan] * len(heads) if m is None else list(m.values()) for m in made]
        found[name] = pd.DataFrame(numbers, index=read.index, columns=pd.Index(heads))
    return found


def _cells(answer: Any) -> dict[Any, float]:
    if isinstance(answer, Posterior):
        return dict(zip(answer.variables[0].states, answer.values.tolist(), strict=True))
    return {"mean": float(answer.mean()), "sd": float(answer.sd())}


def _new_elements(
    model: "GraphicalModel", rows: Any, names: Sequence[str], engine: Engine, given: Any
) -> dict[str, "pd.DataFrame"]:
    """Average predictive draws of new elements of a plate."""
    plates = {v.plates if isinstance(v := model._variables[n], Quantity) else () for n in names}
    plate = plates.pop() if len(plates) == 1 else ()
    if len(plate) != 1:
        raise InvalidArgument(
            f"predict is about rows of one plate, and {' and '.join(map(repr, names))} are not on one alone; "
            "query(...) has the posterior of shared nodes, sample(n, given=posterior) predictive draws of any shape"
        )
    if given is None:
        raise InvalidArgument(
            f"rows of plate {plate[0]!r} are predicted from a posterior or from data: "
            f"predict(rows, {names[0]!r}, given=m.query(...))"
        )
    posterior = given if hasattr(given, "program") else _posterior(model, given, engine)
    if hasattr(rows, "columns"):
        inputs: Any = {plate[0]: rows[[c for c in rows.columns if c not in names]]}
    else:
        inputs = None if rows is None else {n: v for n, v in rows.items() if n not in names}
    length = len(rows) if hasattr(rows, "columns") else posterior.program.layout.lengths[plate[0]]
    n = max(1, min(drawn_rows.count(posterior), MOST_CELLS // length))
    _, drawn = drawn_rows.predicted(model, posterior, inputs, n, generator(0))
    found = {}
    for name in names:
        values = np.asarray(drawn[name])
        if values.ndim != 2:
            raise InvalidArgument(
                f"a row of {name!r} is an array of shape {values.shape[2:]}, not a number; "
                "sample(n, given=posterior) has its predictive draws"
            )
        states = _states(model, name, posterior.program.layout.sites[name].family)
        if states is None:
            table = {"mean": values.mean(axis=0), "sd": values.std(axis=0)}
        else:
            many_states = states or range(int(values.max()) + 1)
            table = {s: (values == k).mean(axis=0) for k, s in enumerate(many_states)}
        found[name] = pd.DataFrame(table, index=getattr(rows, "index", None))
    return found


def _states(model: "GraphicalModel", name: str, family: str) -> Sequence[Any] | None:
    """Return the states that a target is told by, empty for 0, 1, ...; None for a number."""
    variable = model._variables[name]
    labels = variable.labels if isinstance(variable, Quantity) else variable.states
    if labels:
        return labels
    if family.startswith("Bernoulli"):
        return (0, 1)
    return () if family.startswith("Categorical") else None


def _posterior(model: "GraphicalModel", given: Any, engine: Engine) -> Any:
    problem = model._problem(given)
    names = [n for n in problem.asked if n not in problem.inputs]
    found = model.query(names, given=given, engine=engine)
    if not hasattr(found, "program"):
        raise InvalidArgument(
            "given= leaves no numbers to draw; ask query(...) for the posterior of the rows"
        )
    return found
