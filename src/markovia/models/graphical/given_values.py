"""What comes with `given` in a model of quantities: findings, constants, lengths of plates, and frames for plates."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, InvalidEvidence, UnknownVariable
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.quantities.columns import Column, Length
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.quantities.soft_findings import Interval, Soft
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.evidence import Finding, Findings, is_missing, read_finding
from markovia.factors.tables.variable import Variable


def read_given(
    variables: Mapping[str, Variable],
    pieces: Mapping[str, Conditional | None],
    given: Mapping[str, Any] | None,
    impute: bool = False,
) -> tuple[Findings, dict[str, Any]]:
    """Return findings by node, and inputs: constants, columns and lengths of plates by name.

    None means that a node is not observed; so does NaN, for a number, where missing ones are inferred (`impute`).

    Raises
    ------
    UnknownVariable
        For a name that is no node, no plate and no argument of a function; with the nearest match.
    """
    findings: Findings = {}
    inputs: dict[str, Any] = {}
    if given is None:
        return findings, inputs
    if not isinstance(given, Mapping) and not (hasattr(given, "items") and hasattr(given, "index")):
        raise InvalidEvidence(f"given= is a mapping such as {{'y': 3.2}}, not {type(given).__name__}")
    plates = {p for v in variables.values() if isinstance(v, Quantity) for p in v.plates}
    nodes = [piece for piece in pieces.values() if isinstance(piece, FunctionNode)]
    wanted = {name for node in nodes for name in node.arguments.values()}
    for name, said in given.items():
        if name in variables:
            finding = _finding(variables[name], pieces.get(name), said, impute)
            if isinstance(finding, Finding):
                findings[name] = finding
            elif finding is not None:
                inputs[name] = finding
        elif name in plates:
            if hasattr(said, "columns"):
                _spread(variables, pieces, name, said, wanted, findings, inputs)
            else:
                inputs[name] = _length(name, said)
        elif name in wanted:
            inputs[name] = _constant(name, said)
        else:
            raise UnknownVariable(name, [*variables, *sorted(wanted | plates)])
    return findings, inputs


def _finding(variable: Variable, piece: Conditional | None, said: Any, impute: bool = False) -> Any:
    """Return what was found about a node; for an input its value; None for nothing.

    NaN is refused as in arrays, unless missing numbers are inferred: it may come from a computation that went wrong.
    """
    if isinstance(piece, FunctionNode) and piece.observed_only:
        return _constant(variable.name, said)
    if not isinstance(variable, Quantity):
        return None if is_missing(said) else read_finding(variable, said)
    if isinstance(said, Interval | Soft):
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
            f"plate {plate!r} is given its length, a positive integer, or a frame, not {said!r}"
        )
    return int(said)


def _spread(
    variables: Mapping[str, Variable],
    pieces: Mapping[str, Conditional | None],
    plate: str,
    frame: Any,
    wanted: set[str],
    findings: Findings,
    inputs: dict[str, Any],
) -> None:
    """Take the columns of a frame that the model knows; they run along the plate."""
    inputs[plate] = Length(len(frame), getattr(frame, "index", None))
    for column in frame.columns:
        if column in variables:
            found = _finding(variables[column], pieces.get(column), frame[column])
            if isinstance(found, Finding):
                findings[column] = found
            else:
                inputs[column] = Column(found, plate)
        elif column in wanted:
            inputs[column] = Column(_constant(column, frame[column]), plate)
