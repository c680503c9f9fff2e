"""A column of a frame that was given for a plate: values with the plate that they run along."""

from typing import Any, NamedTuple


class Column(NamedTuple):
    """Values along a plate."""

    values: Any
    plate: str
