"""What an objective is: who moves which parameters, by which loss."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from markovia.factors.functions.parameter import Parameter
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.optimise.players import Player

Values = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Parameters as the model takes them, of free numbers."""


@dataclass(frozen=True)
class ObjectiveSetup:
    """What an objective makes of a model.

    Attributes
    ----------
    players
        Losses with the names of the parameters that they move, one after the other in each step.
    extra
        Parameters that belong to the objective and not to the model, such as a critic.
    memory
        What a step hands to the next, such as chains of a sampler.
    """

    players: Sequence[Player]
    extra: Mapping[str, Parameter] = field(default_factory=dict)
    memory: Any = None


class Objective(Protocol):
    """What `fit` makes small or large; settings are fields of a frozen dataclass."""

    kind: ClassVar[str]
    """What it is called in `fit_`."""
    is_bound: ClassVar[bool]
    """Whether minus the first player's loss is a lower bound on the mean log evidence of a row."""

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return the players for a model."""


def weighted_mean(numbers: Any, weight: Any) -> Any:
    """Return the mean of one number a row, by the rows' weights."""
    from markovia.runtime.libraries import jnp

    return jnp.sum(weight * numbers) / jnp.sum(weight)
