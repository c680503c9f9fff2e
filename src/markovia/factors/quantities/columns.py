"""What a frame says that was given for a plate: columns with the plate that they run along, and its length with labels."""

from typing import Any, NamedTuple


class Column(NamedTuple):
    """Values along a plate."""

    values: Any
    plate: str


class Length(int):
    """The length of a plate, with the labels of its elements."""

    labels: Any

    def __new__(cls, number: int, labels: Any = None) -> "Length":
        """Make the number and keep the labels with it."""
        made = super().__new__(cls, number)
        made.labels = labels
        return made
