"""What comes with `given`: findings, and in a model of functions constants, lengths of plates, and frames for plates."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, InvalidEvidence, UnknownVariable
from markovia.factors.covariances.process import Points
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.quantities.columns import Column, Length
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.quantities.soft_findings import Interval, Soft
from markovia.factors.tables.evidence import PLAIN, Finding, Findings, is_missing, read_finding
from markovia.factors.tables.variable import Variable
from markovia.inference.problem import Piece, Problem
from markovia.runtime.libraries import pd
from markovia.runtime.source_text import brief


def read_given(
    variables: Mapping[str, Variable],
    pieces: Iterable[Piece],
    given: Mapping[str, Any] | None,
    impute: bool = False,
    known: dict[Any, Finding] | None = None,
) -> tuple[Findings, dict[str, Any]]:
    """Return findings by node, and inputs: constants, columns and lengths of plates by name.

    None means that a node is not observed; so does NaN, for states, and for a number where missing ones are inferred
    (`impute`). States that were found before are not read again: `known` keeps their findings.

    Raises
    ------
    UnknownVariable
        For a name that is no node, no plate and no argument of a function; with the nearest match.
    UnknownState, InvalidEvidence
        With the nearest name or the form that is expected.
    """
    findings: Findings = {}
    inputs: dict[str, Any] = {}
    if given is None:
        return findings, inputs
    mapping = type(given) is dict or isinstance(given, Mapping)  # the first is quicker
    if not mapping and not (hasattr(given, "items") and hasattr(given, "index")):
        example = "{'y': 3.2}" if Quantity in map(type, variables.values()) else "{'rain': 'yes'}"
        raise InvalidEvidence(f"given= is a mapping such as {example}, not {type(given).__name__}")
    others: dict[str, Any] = {}
    known = {} if known is None else known
    for name, said in given.items():  # of a mapping or a pandas Series
        if type(said) in PLAIN:
            finding = known.get((name, type(said), said))  # with the type: True equals 1
            if finding is not None and finding.variable is variables.get(name):
                findings[name] = finding
                continue
        variable = variables.get(name)
        if variable is None:
            others[name] = said
        elif isinstance(variable, Quantity):
            _add(findings, inputs, variable, _number_finding(variable, said, impute))
        elif type(said) in PLAIN:
            findings[name] = known[name, type(said), said] = read_finding(variable, said)
        elif not is_missing(said):
            findings[name] = read_finding(variable, said)
    if others:
        _read_others(variables, pieces, others, findings, inputs)
    return findings, inputs


def _read_others(
    variables: Mapping[str, Variable],
    pieces: Iterable[Piece],
    others: Mapping[str, Any],
    findings: Findings,
    inputs: dict[str, Any],
) -> None:
    """Read what is said of names that are no nodes: plates, and constants that functions take."""
    plates = {p for v in variables.values() if isinstance(v, Quantity) for p in v.plates}
    nodes = [piece for piece in pieces if isinstance(piece, FunctionNode)]
    wanted = {name for node in nodes for name in node.arguments.values()}
    for name, said in others.items():
        if name in plates and isinstance(said, Mapping) and said:
            lengths = {column: len(np.atleast_1d(values)) for column, values in said.items()}
            if len({*lengths.values()}) > 1:
                raise InvalidArgument(
                    f"the columns that plate {name!r} is given have different lengths: "
                    + ", ".join(f"{column!r} {length}" for column, length in lengths.items())
                )
            _spread(variables, name, pd.DataFrame(dict(said)), wanted, findings, inputs)
        elif name in plates and hasattr(said, "columns"):
            _spread(variables, name, said, wanted, findings, inputs)
        elif name in plates:
            inputs[name] = _length(name, said)
        elif name in wanted:
            inputs[name] = _constant(name, said)
        else:
            raise UnknownVariable(name, [*variables, *sorted(wanted | plates)])


def _add(findings: Findings, inputs: dict[str, Any], variable: Variable, found: Any) -> None:
    if isinstance(found, Finding):
        findings[variable.name] = found
    elif found is not None:
        inputs[variable.name] = found


def _number_finding(variable: Quantity, said: Any, impute: bool = False) -> Any:
    """Return what was found about a quantity; for an input its value; None for nothing.

    NaN is refused as in arrays, unless missing numbers are inferred: it may come from a computation that went wrong.
    """
    if variable.domain == "input":
        return _constant(variable.name, said)
    if isinstance(said, Interval | Soft | Points):
        return Finding(variable, said)
    if said is None:
        return None
    if np.ndim(said) == 0 and is_missing(said):
        if impute:
            return None
        raise InvalidEvidence(
            f"the value of {variable.name!r} is missing ({said!r}); leave it out of given= where it is not observed"
        )
    return Finding(variable, said, value=_numbers(variable, said))


def _numbers(variable: Quantity, said: Any) -> Any:
    """Return a finding on a quantity as a number or an array; states of a labelled one as positions."""
    raw = np.asarray(said.to_numpy() if hasattr(said, "to_numpy") else said)
    if variable.labels and raw.dtype.kind in "OUSb":
        flat = Variable(variable.name, variable.labels)
        codes = [flat.index(s) for s in raw.ravel().tolist()]
        return np.array(codes, dtype=np.int64).reshape(raw.shape)
    if raw.dtype.kind not in "biuf":
        try:
            raw = raw.astype(np.float64)
        except (TypeError, ValueError):
            raise InvalidEvidence(
                f"the value of {variable.name!r} is a number or an array, not {said!r}"
            ) from None
    if raw.dtype.kind == "b":
        raw = raw.astype(np.int64)
    return raw if raw.ndim else raw[()]


def _constant(name: str, said: Any) -> Any:
    """Return a constant as a plain number, which may decide shapes, or as an array."""
    if isinstance(said, bool | int | float | str):
        return said
    raw = np.asarray(said.to_numpy() if hasattr(said, "to_numpy") else said)
    if raw.dtype.kind == "O":
        try:
            raw = raw.astype(np.float64)
        except (TypeError, ValueError):
            raw = raw.astype(str)
    if raw.dtype.kind not in "biuf":
        raise InvalidArgument(
            f"{name!r} is text; functions take numbers, so code it as 0, 1, ... first (pandas.factorize, or .cat.codes)"
        )
    return raw


def _length(plate: str, said: Any) -> int:
    if not isinstance(said, int | np.integer) or isinstance(said, bool) or said < 1:
        raise InvalidArgument(
            f"plate {plate!r} is given its length, a positive integer, or columns (a frame or a dict of arrays), "
            f"not {brief(repr(said), 60)}"
        )
    return int(said)


def _spread(
    variables: Mapping[str, Variable],
    plate: str,
    frame: Any,
    wanted: set[str],
    findings: Findings,
    inputs: dict[str, Any],
) -> None:
    """Take the columns of a frame that the model knows; they run along the plate."""
    inputs[plate] = Length(len(frame), getattr(frame, "index", None))
    for column in frame.columns:
        variable = variables.get(column)
        if isinstance(variable, Quantity):
            found = _number_finding(variable, frame[column])
            _add(findings, inputs, variable, found if isinstance(found, Finding) else Column(found, plate))
        elif variable is not None:
            raise InvalidEvidence(
                f"{column!r} is on no plate, so a column along {plate!r} is no finding about it; give its state by itself"
            )
        elif column in wanted:
            inputs[column] = Column(_constant(column, frame[column]), plate)


def refuse_observed(problem: Problem, names: Sequence[str]) -> None:
    """Refuse names that a question cannot be about: observed numbers, unless entries of them are inferred, and inputs."""
    for name in names:
        finding = problem.findings.get(name)
        if finding is not None and finding.hard:
            if not (problem.impute and finding.code is None and np.isnan(finding.value).any()):
                raise InvalidArgument(f"{name!r} is observed, so there is nothing to ask about it")
            if name in problem.partly_seen:
                continue
            if not any(name in _uses(piece) for piece in problem.pieces):
                raise InvalidArgument(
                    f"the missing entries of {name!r} have no children that tell about them, so they are not drawn with the "
                    "rest; sample(n, given=posterior) predicts them"
                )
        if name in problem.inputs:
            raise InvalidArgument(f"{name!r} is an input and has no distribution")


def _uses(piece: Any) -> set[str]:
    """Return the nodes that a piece depends on, earlier elements of its own among them."""
    return {*piece.names[:-1], *(lag.node for lag in getattr(piece, "previous", {}).values())}
