"""What every structure-learning algorithm is given."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import InvalidArgument
from markovia.runtime.clock import Clock
from markovia.structure.task.knowledge import Rules


@dataclass
class Task:
    """Data, knowledge and limits of one search.

    Attributes
    ----------
    names
        The variables; algorithms number them in this order.
    data
        The rows; None where a test needs none (an oracle).
    rules
        What is known beforehand.
    clock
        When to stop.
    rng
        For random choices.
    score, test
        What the caller asked for: a name, a specification, or None for the method's own choice.
    jobs
        Processes for independent pieces of work, as joblib understands it.
    """

    names: tuple[str, ...]
    data: MixedTable | None
    rules: Rules
    clock: Clock
    rng: np.random.Generator
    score: Any = None
    test: Any = None
    jobs: int | None = None
    score_name: str | None = None
    test_name: str | None = None

    @property
    def rows(self) -> MixedTable:
        """The rows; an error where there are none."""
        if self.data is None:
            raise InvalidArgument("this method needs data")
        return self.data
