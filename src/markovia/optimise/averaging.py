"""Averages of weights along a path of stochastic gradients: much of their noise goes, at no cost (Polyak and Juditsky 1992).

After a step the mean moves a share of the way to the weights. Each class says which share, in whatever array library the
step runs in (`xp`).
"""

from dataclasses import dataclass
from typing import Any, Protocol


class Averaging(Protocol):
    """How far the mean goes to the weights after a step (the first step is 0)."""

    def share(self, step: Any, xp: Any) -> Any:
        """Return a number between 0 and 1."""


@dataclass(frozen=True)
class ExponentialAverage:
    """Weights count less the older they are, by the factor `decay` a step; all count the same as long as there are few.

    Examples
    --------
    >>> import numpy as np
    >>> [float(ExponentialAverage(0.75).share(t, np).round(3)) for t in range(5)]
    [1.0, 0.5, 0.333, 0.25, 0.25]
    """

    decay: float

    def share(self, step: Any, xp: Any) -> Any:
        """Return 1 / (steps so far), at least 1 - decay."""
        return xp.maximum(1.0 - self.decay, 1.0 / (step + 1))


@dataclass(frozen=True)
class SinceStep:
    """The plain mean from a step on; before it the weights themselves."""

    start: int

    def share(self, step: Any, xp: Any) -> Any:
        """Return 1 / (steps since the start)."""
        return 1.0 / xp.maximum(1, step - self.start + 1)


@dataclass(frozen=True)
class SinceDoubling:
    """The plain mean of at least the last half of the path, however long it gets: it begins anew when passes double.

    Examples
    --------
    >>> import numpy as np
    >>> [float(SinceDoubling(1).share(t, np).round(3)) for t in range(7)]
    [1.0, 1.0, 0.5, 1.0, 0.5, 0.333, 0.25]
    """

    steps_per_pass: int

    def share(self, step: Any, xp: Any) -> Any:
        """Return 1 / (steps since passes doubled)."""
        passes = step // self.steps_per_pass + 1
        doubled = 2 ** (xp.frexp(xp.asarray(passes, float))[1] - 1)
        return 1.0 / (step - (doubled - 1) * self.steps_per_pass + 1)


@dataclass(frozen=True)
class ByPass:
    """The mean of the whole path, in which steps count as much as the number of their pass: later ones are nearer.

    Examples
    --------
    >>> import numpy as np
    >>> [float(np.round(ByPass(1).share(t, np), 3)) for t in range(4)]
    [1.0, 0.667, 0.5, 0.4]
    """

    steps_per_pass: int

    def share(self, step: Any, xp: Any) -> Any:
        """Return the weight of the step over the sum of weights."""
        number = step // self.steps_per_pass + 1
        before = self.steps_per_pass * number * (number - 1) // 2
        return number / (before + number * (step % self.steps_per_pass + 1))
