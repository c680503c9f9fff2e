"""How models take evidence and names of variables."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from markovia.errors import InvalidArgument


class DataFrameLike(Protocol):
    """A table with named columns, of whatever library."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""


Given = Mapping[str, Any] | None
"""Evidence by name: a state, likelihoods, `Not(...)` or `Jeffrey(...)`; None for none."""
Rows = (
    DataFrameLike
    | NDArray[Any]
    | Sequence[Mapping[str, Any]]
    | str
    | PathLike[str]
    | Sequence[str | PathLike[str]]
)
"""Many rows of evidence: a frame of any library, a list of mappings, an array, or data files."""
Impossible = Literal["raise", "nan", "prior"]
"""What becomes of a row of probability zero: an error, no answer, or the answer without evidence."""


def list_of_names(names: str | Iterable[str], what: str) -> list[str]:
    """Return one name or several as a list."""
    if isinstance(names, str):
        return [names]
    if not isinstance(names, Iterable):
        raise InvalidArgument(f"{what} are names of variables, not {names!r}")
    return list(names)
