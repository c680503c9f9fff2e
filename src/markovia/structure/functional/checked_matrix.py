"""The matrix of numbers that functional methods start from, checked."""

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.structure.task.task import Task


def measured_columns(task: Task, what: str) -> Array:
    """Return the rows as one matrix, one column a variable.

    Refused are discrete columns, weights, a column without variation or in an extreme unit, and fewer rows than columns
    plus two.
    """
    matrix = task.rows.numbers(what)
    if task.rows.weights is not None:
        raise InvalidArgument(f"{what} takes no weights=; repeat the rows instead")
    n, p = matrix.shape
    if n < p + 2:
        raise InvalidArgument(f"{what} needs at least {p + 2} rows for {p} columns, not {n}")
    spread = matrix.max(axis=0) - matrix.min(axis=0)
    for name, width in zip(task.names, spread.tolist(), strict=True):
        if width == 0.0:
            raise InvalidArgument(f"the column {name!r} is constant; leave it out with names=")
        if not 1e-75 < width < 1e75:
            raise InvalidArgument(
                f"the column {name!r} spans {width:.2g}, and its powers leave the range of numbers; choose another unit"
            )
    return matrix
