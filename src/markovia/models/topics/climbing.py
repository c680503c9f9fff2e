"""What models of topics share that climb an objective step by step: settings, and how it ended."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from markovia.models.topics.base import TopicModel
from markovia.optimise.ascent import Climb
from markovia.runtime.checks import Count, TimeLimit, Tolerance


@dataclass(eq=False, repr=False)
class ClimbingTopics(TopicModel):
    """The base of models learned by EM.

    Parameters
    ----------
    max_iter, tol
        Steps at most; the gain a word below which learning stops.
    time_limit, progress
        Seconds after which learning ends; a progress bar.
    random_state
        The seed of the start.

    Attributes
    ----------
    history_, converged_, n_iter_
        The objective of each step, whether it settled, and how many steps there were.
    """

    _: KW_ONLY
    max_iter: Count = 200
    tol: Tolerance = 1e-5
    time_limit: TimeLimit = None
    progress: bool | None = None
    random_state: Any = None

    def _end(self, found: Climb[Any]) -> None:
        """Keep how learning ended, and warn where it still gained."""
        self.history_, self.converged_, self.n_iter_ = found.history, found.converged, len(found.history)
        found.warn(self.tol)
