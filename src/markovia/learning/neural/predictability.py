"""Predictability minimisation: a code whose units tell nothing of each other.

Reference: Schmidhuber (1992). Predictors guess each unit of a code from the others, and what makes the code learns to make
them fail: two players with opposite aims. The code is a node: a function of the data, or latent with a guide, whose bound is
then made large besides.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks.recipes import mlp
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.elbo import refuse_states
from markovia.learning.neural.objective import ObjectiveSetup, Values
from markovia.optimise.players import Player
from markovia.runtime.checks import NOT_NEGATIVE, Count, check_options
from markovia.runtime.libraries import jax, jnp

PREDICTORS = "predictor {} of the code"


@dataclass(frozen=True, kw_only=True)
class PredictabilityMinimisation:
    """Make the units of a code unpredictable from each other, besides making the evidence lower bound large.

    Parameters
    ----------
    code
        A node with a vector for each row: a function of observed nodes, or a latent node with a guide.
    measure
        What predictors make small and the code large: "error", the squared errors, for units between two limits, which
        then become independent bits; or "share", errors as shares of the units' variances, which knows no scale: for codes
        that something else keeps informative, such as a decoder.
    weight
        How much it counts beside the bound.
    hidden
        Hidden units of each predictor.
    repeats
        Moves of the predictors a step.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.objectives.PredictabilityMinimisation(code="z", measure="share").kind
    'predictability minimisation'
    """

    code: str
    measure: Literal["error", "share"] = "error"
    weight: Annotated[float, NOT_NEGATIVE] = 1.0
    hidden: Count = 16
    repeats: Count = 1
    kind: ClassVar[str] = "predictability minimisation"
    is_bound: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_options(self)

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return two players: the model with its code, and the predictors."""
        refuse_states(program)
        sites = program.program.layout.sites
        if self.code not in sites:
            raise UnknownVariable(self.code, [*sites], "code=")
        shape = sites[self.code].shape
        if len(shape) != 2 or shape[1] < 2:
            raise InvalidArgument(
                f"the code {self.code!r} has shape {shape}; it has to be a vector of two units or more for each row"
            )
        n = shape[1]
        recipe = mlp(n - 1, "scalar", hidden=self.hidden, layers=1)
        extra = {PREDICTORS.format(i): Parameter(recipe) for i in range(n)}
        others = np.array([[j for j in range(n) if j != i] for i in range(n)])

        def failure(free: Any, code: Any, weight: Any) -> Any:
            """Return the mean error of the predictors, summed over units."""
            weight = weight[:, None] / jnp.sum(weight)
            guesses = jnp.stack([jax.vmap(free[m])(code[:, others[i]]) for i, m in enumerate(extra)], axis=1)
            errors = jnp.sum(weight * (guesses - code) ** 2, axis=0)
            if self.measure == "share":
                centred = code - jnp.sum(weight * code, axis=0)
                spread = jnp.sum(weight * centred**2, axis=0)
                errors = errors / jnp.where(spread > 0, spread, 1.0)
            return jnp.sum(errors)

        def parameters_of(free: Any) -> dict[str, Any]:
            return values({n: v for n, v in free.items() if n not in extra})

        def encode(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = parameters_of(free)
            bound = program.bound(parameters, batch.rows, batch.weight, key) / jnp.sum(batch.weight)
            code = program.proposed(parameters, batch.rows, key)[self.code]
            return -bound - self.weight * failure(free, code, batch.weight), memory

        def predict(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            code = program.proposed(parameters_of(free), batch.rows, key)[self.code]
            return failure(free, jax.lax.stop_gradient(code), batch.weight), memory

        players = [Player(encode, names), Player(predict, tuple(extra), repeats=self.repeats)]
        return ObjectiveSetup(players, extra)
