"""What every structure-learning algorithm is given."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.structure.knowledge import Rules
from markovia.learning.structure.study import StructureData
from markovia.learning.structure.watch import Watch


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
    watch
        When to stop.
    rng
        For random choices.
    score, test
        What the caller asked for: a name, a specification, or None for the method's own choice.
    jobs
        Processes for independent pieces of work, as joblib understands it.
    """

    names: tuple[str, ...]
    data: StructureData | None
    rules: Rules
    watch: Watch
    rng: np.random.Generator
    score: Any = None
    test: Any = None
    jobs: int | None = None
    score_name: str | None = None
    test_name: str | None = None

    @property
    def study(self) -> StructureData:
        """The rows; an error where there are none."""
        if self.data is None:
            raise InvalidArgument("this method needs data")
        return self.data

    def bound_score(self) -> Any:
        """Return the score that was asked for, ready for these data (`scores.LocalScore`)."""
        from markovia.learning.structure.scores import bind_score

        found = bind_score(self.score, self.study)
        self.score_name = found.name
        return found

    def bound_test(self) -> Any:
        """Return the test that was asked for, ready for these data (`ci_tests.CITest`)."""
        from markovia.learning.structure.ci_tests import bind_test

        found = bind_test(self.test, self.data, self.names)
        self.test_name = found.name
        found.jobs = self.jobs
        return found
