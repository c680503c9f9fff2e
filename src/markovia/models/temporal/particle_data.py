"""Sequences as a particle filter takes them: what each step observed, what is missing of it, and the step's inputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import InvalidArgument
from markovia.inference.particles.laws import ALONE, value_of
from markovia.inference.particles.model import Shape
from markovia.inference.particles.moves import SeenSteps
from markovia.runtime.array_types import Array, Flags

LEAST_ROOM = 16


@dataclass(frozen=True)
class ParticleData:
    """Observations by name, one row a step of all sequences, missing numbers filled and flagged."""

    read: Sequences
    y: dict[str, Any]
    missing: dict[str, Any]
    u: Any

    @property
    def room(self) -> int:
        """Steps that compiled code has room for: rounded up, so that similar lengths share it."""
        return max(LEAST_ROOM, 1 << (int(self.read.lengths.max()) - 1).bit_length())

    @property
    def stacked(self) -> SeenSteps:
        """All sequences, one a row."""
        every = [self.of(i) for i in range(len(self.read))]
        return SeenSteps(*(_stacked([one[k] for one in every]) for k in range(3)))

    def at(self, i: int, t: int) -> str:
        """Return where step t of sequence i is, in words."""
        return self.read.at(int(self.read.offsets[i]) + t)

    def of(self, i: int) -> SeenSteps:
        """Return one sequence, filled up to `room` steps."""
        a, b = self.read.offsets[i], self.read.offsets[i + 1]

        def part(rows: Any) -> Any:
            return np.concatenate([rows[a:b], np.repeat(rows[b - 1 : b], self.room - (b - a), axis=0)])

        y = value_of({n: part(x) for n, x in self.y.items()})
        missing = value_of({n: part(x) for n, x in self.missing.items()})
        return SeenSteps(y, missing, None if self.u is None else part(self.u))


def _stacked(parts: list[Any]) -> Any:
    if parts[0] is None:
        return None
    if isinstance(parts[0], dict):
        return {name: np.stack([p[name] for p in parts]) for name in parts[0]}
    return np.stack(parts)


def particle_data(read: Sequences, shape: Shape, inputs: Array | None) -> ParticleData:
    """Return sequences as observations of a model's shape.

    Raises
    ------
    InvalidArgument
        For another number of columns than the model observes, or numbers missing that cannot be left out alone.
    """
    columns = _columns(read, shape)
    values = read.numbers()
    y, missing = {}, {}
    for name, own in columns.items():
        rows = values[:, own].reshape(-1, *shape.observed[name])
        holes = np.isnan(rows)
        if not shape.partial[name]:
            some = holes.reshape(len(rows), -1)
            cut = np.flatnonzero(some.any(axis=1) & ~some.all(axis=1))
            if len(cut):
                raise InvalidArgument(
                    f"{read.at(int(cut[0]))} misses a part of its observation, which has a joint distribution; leave out "
                    "the whole step, or give independent distributions, with .to_event(1)"
                )
        _refuse_outside(read, rows, holes, shape.supports.get(name))
        known = rows[~holes]
        y[name] = np.where(holes, known[0] if len(known) else 0.0, rows)
        missing[name] = holes
    u = None if inputs is None else inputs[:, 0] if inputs.shape[1] == 1 else inputs
    return ParticleData(read, y, missing, u)


def _refuse_outside(read: Sequences, rows: Array, holes: Flags, support: Any) -> None:
    """Refuse numbers that no state could have made, however many particles there are."""
    if support is None:
        return
    inside = holes | np.asarray(support(rows))
    if support.is_discrete:
        inside &= holes | (rows == np.round(rows))
    wrong = np.argwhere(~inside)
    if len(wrong):
        low, high = (getattr(support, side, None) for side in ("lower_bound", "upper_bound"))
        kind = "whole numbers" if support.is_discrete else "numbers"
        above = "above" if type(support).__name__ in ("_Positive", "_GreaterThan") else "from"
        ends = (f" {above} {low:g}" if low is not None else "") + (
            f" to {high:g}" if high is not None else ""
        )
        said = "0 or 1" if type(support).__name__ == "_Boolean" else f"{kind}{ends}"
        raise InvalidArgument(
            f"{read.at(int(wrong[0][0]))} has {rows[tuple(wrong[0])]:g}, which observation= gives to no state: its values "
            f"are {said}; correct the value, or take a distribution that has it"
        )


def _columns(read: Sequences, shape: Shape) -> dict[str, list[int]]:
    """Return the columns of each observed quantity: by name where a frame has such columns, in order otherwise."""
    sizes = {name: int(np.prod(event, dtype=int)) for name, event in shape.observed.items()}
    named = [n for n in sizes if n in read.columns]
    if named and ALONE not in sizes:
        for name, size in sizes.items():
            if size == 1 and name not in read.columns:
                raise InvalidArgument(f"the sequences have no column {name!r}, which observation= speaks of")
        if all(size == 1 for size in sizes.values()):
            return {name: [read.columns.index(name)] for name in sizes}
    if sum(sizes.values()) != read.values.shape[1]:
        raise InvalidArgument(
            f"a step of the sequences has {read.values.shape[1]} numbers, but observation= is about {sum(sizes.values())}"
        )
    ends = np.cumsum([0, *sizes.values()])
    return {name: list(range(a, b)) for name, a, b in zip(sizes, ends[:-1], ends[1:], strict=True)}
