"""A model on rows of data: log probability, prediction, posterior tables.

Rows go to `markovia.inference.choosing.evidence_rows`, which runs them in compiled code where that is worth it. Rows
that say the same are answered once. Where nothing is compiled yet, complete rows are scored by indexing the tables with
NumPy.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import numpy as np

from markovia.data.tables.data_files import names_data
from markovia.data.tables.distant_rows import is_far, is_files
from markovia.data.tables.reading import OrderedRows, column_names, ordered_rows
from markovia.data.tables.row_sources import MISSING, CodedTable
from markovia.errors import InvalidArgument
from markovia.factors.tables.factor import Factor
from markovia.inference.choosing.evidence_rows import Answers, answers, compiled_for, row_problem
from markovia.inference.engine import BEYOND_TABLES, TABLES, Engine, asking, refuse_gpu
from markovia.inference.flat_graphs.possibility import judged_log_mass
from markovia.inference.flat_graphs.unfolding import unfolded
from markovia.inference.impossible_evidence import impossible as conflict
from markovia.inference.posterior import RowMarginals
from markovia.inference.problem import Problem
from markovia.models.graphical.arguments import Impossible
from markovia.models.graphical.data_rows import function_rows, number_rows
from markovia.runtime.array_types import Array, Codes
from markovia.runtime.checks import check_choice
from markovia.runtime.libraries import pd
from markovia.runtime.progress import progress_bar

if TYPE_CHECKING:
    from markovia.models.graphical.base import GraphicalModel
    from markovia.models.graphical.bayesian_network import BayesianNetwork

ModelT = TypeVar("ModelT", bound="GraphicalModel")


def are_rows(given: Any) -> bool:
    """Say whether evidence is many rows of it, in any form but a mapping of columns."""
    if given is None or isinstance(given, Mapping):
        return False
    if isinstance(given, list | tuple) and all(isinstance(row, Mapping) for row in given):
        return True
    if is_files(given):
        return all(
            isinstance(f, Path) or names_data(f)
            for f in ([given] if isinstance(given, str | Path) else given)
        )
    return isinstance(given, np.ndarray | CodedTable) or is_far(given) or hasattr(given, "columns")


def about(model: ModelT, frame: Any, names: Sequence[str] = ()) -> ModelT:
    """Return the model without barren nodes of other kinds than those that tell of the targets and the rows' columns."""
    if len(kinds_of(model)) < 2:  # so it is a Bayesian network that may have some
        return model
    columns = (
        list(frame) if isinstance(frame, Mapping) or hasattr(frame, "data_vars") else column_names(frame)
    )
    seen = [n for n in columns if n in model]
    if not seen and columns:
        return model  # the columns have no names, or wrong ones
    problem = model._problem(None)
    left = problem.about([*names, *seen])
    if left is problem:
        return model
    twin = cast("BayesianNetwork", model).subnetwork(left.variables)
    twin.__dict__["_memory"] = left.memory
    return cast("ModelT", twin)


def kinds_of(model: "GraphicalModel") -> frozenset[str]:
    """Return the kinds of a model's pieces, which say how its rows are answered."""
    return frozenset([piece.kind for piece in model.pieces()])


def _asked_kinds(model: "GraphicalModel", engine: Engine) -> frozenset[str]:
    """Return the kinds of a model's pieces; refuse those that an engine is to answer on the GPU and cannot."""
    kinds = kinds_of(model)
    if not kinds <= TABLES:
        refuse_gpu(engine, BEYOND_TABLES)
    return kinds


def log_prob(
    model: "GraphicalModel", frame: Any, engine: Engine, progress: bool | None, inputs: Any = None
) -> Array:
    """Return the log probability of each row; missing cells and columns are summed out."""
    model = about(model, frame)
    kinds = _asked_kinds(model, engine)
    if "distribution" in kinds:
        return function_rows.log_prob(model, frame, inputs)
    if inputs is not None:
        raise InvalidArgument("inputs= is for models with functions of parents; this one takes no constants")
    if not kinds <= TABLES:
        return number_rows.log_prob(model, frame, engine)
    columns, table, _ = ordered_rows(frame, _variables(model))
    problem = _problem(model, engine)
    with asking(engine, problem, "log_mass"):
        log_z = 0.0 if model.normalised else model._log_z(engine)
    result = np.empty(len(table))
    program = compiled_for(problem, engine, (), columns, table)
    rest = np.ones(len(table), dtype=bool)
    if program is None and len(columns) == len(model):
        rest = (table == MISSING).any(axis=1)
        whole = table[~rest]
        result[~rest] = _log_weight(model, dict(zip(columns, whole.T, strict=True)), len(whole))
    if rest.any():
        found = np.empty(int(rest.sum()))
        with progress_bar(progress, len(found), unit="row", scale=True) as advance:
            for part in answers(problem, engine, (), columns, table[rest], program, advance):
                found[part.first : part.last] = part.log_mass
        result[rest] = found
    return result - log_z


def predict(
    model: "GraphicalModel",
    frame: Any,
    names: Sequence[str],
    engine: Engine,
    progress: bool | None,
    impossible: Impossible,
    given: Any = None,
) -> "pd.DataFrame":
    """Return the mode of each target's posterior for every row, one column a target; None where there is none."""
    model = about(model, frame, names)
    if _by_questions(model, engine):
        return function_rows.predict(model, frame, names, engine, impossible, given)
    function_rows.refuse_given(given)
    if not kinds_of(model) <= TABLES:
        return number_rows.predict(model, frame, names, impossible)
    data = ordered_rows(frame, _variables(model), leave_out=names)
    ends = _ends(model, names)
    best = {n: np.empty(len(data.codes), dtype=np.intp) for n in names}
    for part in _posteriors(model, data, names, engine, progress, impossible):
        for n, (low, high) in zip(names, ends, strict=True):
            found = part.posteriors[:, low:high]
            best[n][part.first : part.last] = np.where(np.isnan(found[:, 0]), -1, found.argmax(axis=1))
    modes = {n: np.array([*model.variable(n).states, None], dtype=object)[best[n]] for n in names}
    return pd.DataFrame(modes, index=data.index).infer_objects()


def predict_proba(
    model: "GraphicalModel",
    frame: Any,
    names: Sequence[str],
    engine: Engine,
    progress: bool | None,
    impossible: Impossible,
    given: Any = None,
) -> "pd.DataFrame":
    """Return the posterior of each target for every row, columns (target, state)."""
    model = about(model, frame, names)
    if _by_questions(model, engine):
        frames = function_rows.tables(model, frame, names, engine, impossible, given)
        return pd.concat(frames, axis=1, names=["target", "state"])
    function_rows.refuse_given(given)
    if kinds_of(model) <= TABLES:
        data = ordered_rows(frame, _variables(model), leave_out=names)
        tables = _tables(model, data, names, engine, progress, impossible)
    else:
        tables = number_rows.tables(model, frame, names, impossible)
    return pd.concat(tables, axis=1, names=["target", "state"])


def marginals(
    model: "GraphicalModel",
    frame: Any,
    names: Sequence[str] | None,
    engine: Engine,
    progress: bool | None,
    impossible: Impossible = "raise",
) -> RowMarginals:
    """Return the posteriors for every row by name; by default of all variables that some row does not observe."""
    model = model if names is None else about(model, frame, names)
    if not _asked_kinds(model, engine) <= TABLES:
        return number_rows.marginals(model, frame, names, engine, impossible)
    data = ordered_rows(frame, _variables(model))
    if names is None:
        whole = {n for k, n in enumerate(data.names) if (data.codes[:, k] != MISSING).all()}
        names = [n for n in model.variables if n not in whole]
    return RowMarginals(_tables(model, data, names, engine, progress, impossible))


def _by_questions(model: "GraphicalModel", engine: Engine) -> bool:
    """Say whether rows are questions of their own: functions of parents, or linear Gaussians and another engine."""
    kinds = _asked_kinds(model, engine)
    return not kinds <= TABLES and ("distribution" in kinds or not number_rows.answers_together(engine))


def _tables(
    model: "GraphicalModel",
    data: OrderedRows,
    names: Sequence[str],
    engine: Engine,
    progress: bool | None,
    impossible: Impossible,
) -> dict[str, "pd.DataFrame"]:
    ends = _ends(model, names)
    flat = np.empty((len(data.codes), ends[-1][1] if ends else 0))
    for part in _posteriors(model, data, names, engine, progress, impossible):
        flat[part.first : part.last] = part.posteriors
    return {
        # views of one array: a copy of each takes longer than the answers
        n: pd.DataFrame(
            flat[:, low:high], index=data.index, columns=pd.Index(model.variable(n).states), copy=False
        )
        for n, (low, high) in zip(names, ends, strict=True)
    }


def _posteriors(
    model: "GraphicalModel",
    data: OrderedRows,
    names: Sequence[str],
    engine: Engine,
    progress: bool | None,
    impossible: Impossible,
) -> Iterator[Answers]:
    """Yield the posteriors of the targets, a stretch of rows at a time."""
    check_choice("impossible", impossible, get_args(Impossible))
    columns, table, index = data
    problem = _problem(model, engine)
    program = compiled_for(problem, engine, names, columns, table)
    with (
        progress_bar(progress, len(table), unit="row", scale=True) as advance,
        asking(engine, problem, "marginals"),
    ):
        for part in (
            answers(problem, engine, names, columns, table, program, advance, impossible != "raise")
            if len(table)
            else ()
        ):
            bad = np.flatnonzero(np.isneginf(part.log_mass))
            if len(bad) and impossible == "raise":
                judge = engine.log_mass if engine.exact else judged_log_mass
                first = part.first + int(bad[0])
                label = first if index is None else index[first : first + 1].tolist()[0]
                raise conflict(row_problem(problem, columns, table[first]), judge, label)
            if len(bad):
                part.posteriors[bad] = np.nan if impossible == "nan" else _priors(problem, engine, names)
            yield part


def _priors(problem: Problem, engine: Engine, names: Sequence[str]) -> Array:
    return np.concatenate([t.values for t in engine.marginals(problem, names).tables])


def _ends(model: "GraphicalModel", names: Sequence[str]) -> list[tuple[int, int]]:
    """Return where each target's posterior begins and ends in a row."""
    stops = np.cumsum([len(model.variable(n)) for n in names]).tolist()
    return list(pairwise([0, *stops]))


def _variables(model: "GraphicalModel") -> dict[str, Any]:
    return {n: model.variable(n) for n in model.variables}


def _problem(model: "GraphicalModel", engine: Engine) -> Problem:
    whole = Problem(_variables(model), model.pieces(), {}, model.__dict__.setdefault("_memory", {}))
    return unfolded(whole, engine.name)


def _log_weight(model: "GraphicalModel", codes: Mapping[str, Codes], n: int) -> Array:
    """Return the log of the product of the pieces for complete rows."""
    total = np.zeros(n)
    for piece in model.pieces():
        if isinstance(piece, Factor):
            with np.errstate(divide="ignore"):
                total += np.log(piece.values[tuple(codes[n] for n in piece.names)])
        else:
            total += piece.log_prob(codes[piece.variable.name], [codes[p] for p in piece.parent_names])
    return total
