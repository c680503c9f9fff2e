"""What it is worth to see more before a decision."""

from typing import Any, Protocol

from markovia.runtime.shown import InNotebooks


class Valued(Protocol):
    """A solved decision problem."""

    value: float
    gap: float
    info: Any


class InformationValue(InNotebooks, float):
    """A difference of values: what an observation is worth, less what it costs.

    Attributes
    ----------
    informed, uninformed
        The values with and without the observation.
    cost
        What it costs.
    gap
        By how much the difference may be too small or too large, where the policies are local optima.

    Examples
    --------
    >>> InformationValue.between(55.0, 22.5)
    32.5 = 55 - 22.5
    """

    informed: float
    uninformed: float
    cost: float
    gap: tuple[float, float]

    @classmethod
    def between(
        cls, informed: float, uninformed: float, cost: float = 0.0, gap: tuple[float, float] = (0.0, 0.0)
    ) -> "InformationValue":
        """Return the difference of two values."""
        made = super().__new__(cls, informed - uninformed - cost)
        made.informed, made.uninformed, made.cost, made.gap = informed, uninformed, cost, gap
        return made

    @classmethod
    def of(cls, informed: Valued, uninformed: Valued, cost: float = 0.0) -> "InformationValue":
        """Return the difference between two policies, and how far each may be from the best."""
        return cls.between(informed.value, uninformed.value, cost, (uninformed.gap, informed.gap))

    def __repr__(self) -> str:
        less = f" - {self.cost:.6g}" if self.cost else ""
        low, high = self.gap
        room = f" (between {float(self) - low:.6g} and {float(self) + high:.6g})" if low or high else ""
        return f"{float(self):.6g} = {self.informed:.6g} - {self.uninformed:.6g}{less}{room}"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return (InformationValue.between, (self.informed, self.uninformed, self.cost, self.gap))
