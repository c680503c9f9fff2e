"""What models of topics share that climb an objective step by step: settings, the clock, and how it ended."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

from markovia.errors import ConvergenceWarning, outside
from markovia.models.topics.base import TopicModel
from markovia.runtime.checks import Count, TimeLimit, Tolerance
from markovia.runtime.clock import Clock


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

    def _clock(self, runs: int = 1) -> Clock:
        return Clock(
            self.time_limit, self.progress, total=runs * self.max_iter, unit="step", name=type(self).__name__
        )

    def _end(self, history: list[float], converged: bool, cut: bool) -> None:
        """Keep how learning ended, and warn where it still gained and was not cut."""
        self.history_, self.converged_, self.n_iter_ = history, converged, len(history)
        if not converged and not cut:
            warnings.warn(
                f"still gaining after {self.max_iter} steps; raise max_iter= or tol=",
                ConvergenceWarning,
                stacklevel=outside(),
            )
