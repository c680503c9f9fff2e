"""A problem cut to a few elements of one plate: the same model, with the rows of a batch as its data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel, did_you_mean
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.quantities.columns import Column
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.engine import without_cure
from markovia.inference.problem import Problem
from markovia.runtime.array_types import Ints


@dataclass(frozen=True)
class PlateRows:
    """What runs along a plate.

    Attributes
    ----------
    count
        The length of the plate.
    axes
        By name, the axis of a finding or an input that runs along it.
    """

    problem: Problem
    plate: str
    count: int
    axes: Mapping[str, int]

    @classmethod
    def of(cls, problem: Problem, plate: str) -> "PlateRows":
        """Find what runs along a plate; an array that was not declared does where its first axis is as long.

        Raises
        ------
        InvalidArgument
            For an unknown plate, or one with nothing observed on it.
        """
        on = {n: v.plates for n, v in problem.variables.items() if isinstance(v, Quantity)}
        known = sorted({p for plates in on.values() for p in plates})
        if plate not in known:
            raise InvalidArgument(
                f"there is no plate {plate!r}{did_you_mean(plate, known)}; plates are {known}"
            )
        for piece in problem.pieces:
            if isinstance(piece, FunctionNode) and (plate in piece.arguments.values() or piece.previous):
                raise without_cure(
                    UnsupportedModel,
                    f"{piece.names[-1]!r} depends on the length of plate {plate!r} or on earlier elements, so a few "
                    "rows do not stand for all",
                )
        observed = [n for n in problem.findings if plate in on.get(n, ())]
        if not observed:
            raise InvalidArgument(
                f"nothing is observed on plate {plate!r}, so there are no rows to draw batches from"
            )
        axes = {n: on[n].index(plate) for n in observed}
        count = int(np.shape(problem.findings[observed[0]].value)[axes[observed[0]]])
        for name, value in problem.inputs.items():
            if isinstance(value, Column):
                if value.plate == plate:
                    axes[name] = 0
            elif plate in on.get(name, ()):
                axes[name] = on[name].index(plate)
            elif isinstance(value, np.ndarray) and value.ndim and value.shape[0] == count:
                axes[name] = 0
        return cls(problem, plate, count, axes)

    def cut(self, rows: Ints) -> Problem:
        """Return the problem with some rows only."""
        findings = dict(self.problem.findings)
        inputs = {n: v for n, v in self.problem.inputs.items() if n != self.plate}
        data = self.take(rows)
        for name in self.axes:
            if name in findings:
                findings[name] = replace(findings[name], value=data[name])
            elif isinstance(inputs[name], Column):
                inputs[name] = Column(data[name], self.plate)
            else:
                inputs[name] = data[name]
        return replace(self.problem, findings=findings, inputs=inputs)

    def take(self, rows: Ints) -> dict[str, Any]:
        """Return the data of some rows by name; nothing else is read."""
        found = {}
        for name, axis in self.axes.items():
            if name in self.problem.findings:
                whole = self.problem.findings[name].value
            else:
                given = self.problem.inputs[name]
                whole = given.values if isinstance(given, Column) else given
            found[name] = np.ascontiguousarray(whole[rows] if axis == 0 else np.take(whole, rows, axis))
        return found
