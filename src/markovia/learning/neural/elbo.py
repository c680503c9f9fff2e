"""Evidence lower bounds: the log evidence less the divergence of what a guide proposes from the posterior.

References: Kingma and Welling (2014), Rezende, Mohamed and Wierstra (2014); Burda, Grosse and Salakhutdinov (2016) for
several draws in one logarithm. Without latent quantities the bound is the log likelihood itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.densities.program.rowwise_model import LABELS, RowwiseModel
from markovia.learning.neural.objective import ObjectiveSetup, Values, weighted_mean
from markovia.optimise.players import Player
from markovia.runtime.checks import NOT_NEGATIVE, Whole, check_options
from markovia.runtime.libraries import jax, jnp


@dataclass(frozen=True, kw_only=True)
class ELBO:
    """The evidence lower bound.

    Parameters
    ----------
    draws
        Proposals a row and step, whose bounds are averaged.
    beta
        How often the divergence of proposals from the prior counts: above 1, codes say less of their rows and are more
        independent (Higgins and others, 2017), and what is made large is still a bound.
    target, target_weight
        A variable with states that is observed in some rows, and how much more its labels count: that often the log
        probability of the label given the rest of its row is added. The bound alone cares little for it.
    """

    draws: Annotated[int, Whole(1)] = 1
    beta: Annotated[float, NOT_NEGATIVE] = 1.0
    target: str | None = None
    target_weight: Annotated[float, NOT_NEGATIVE] = 1.0
    kind: ClassVar[str] = "evidence lower bound"

    @property
    def is_bound(self) -> bool:
        """Whether its values are bounds on the log evidence: not if divergences count too little."""
        return self.beta >= 1.0

    def __post_init__(self) -> None:
        check_options(self)
        if self.beta != 1.0 and self.target is not None:
            raise InvalidArgument("beta= and target= do not go together; say one of them")

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player, whose loss is minus the mean bound of the rows of a batch."""
        refuse_states(program)
        if self.target is not None:
            return ObjectiveSetup([Player(self._with_target(program, values), names)])

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = values(free)
            if self.draws == 1 or program.guide is None:
                total = program.bound(parameters, batch.rows, batch.weight, key, self.beta)
            else:
                keys = jax.random.split(key, self.draws)
                total = jnp.mean(
                    jax.vmap(lambda k: program.bound(parameters, batch.rows, batch.weight, k, self.beta))(
                        keys
                    )
                )
            return -total / jnp.sum(batch.weight), memory

        return ObjectiveSetup([Player(loss, names)])

    def _with_target(self, program: RowwiseModel, values: Values) -> Callable[..., Any]:
        """Return the loss with the labels' log probabilities: the weight of a row with its label over that without."""
        labels = LABELS + str(self.target)
        if labels not in program.rows:
            raise InvalidArgument(
                f"target={self.target!r} is a variable with states that is observed in some rows only, NaN in the others; "
                "where all are observed, condition on it instead"
            )

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = values(free)
            unknown = {**batch.rows, labels: jnp.full_like(batch.rows[labels], -1)}

            def one(key: Any) -> Any:
                bound = program.log_weights(parameters, batch.rows, key)
                share = bound - program.log_weights(
                    parameters, unknown, key
                )  # the same proposals: 0 without a label
                return bound + self.target_weight * share

            found = jnp.mean(jax.vmap(one)(jax.random.split(key, self.draws)), axis=0)
            return -weighted_mean(found, batch.weight), memory

        return loss


@dataclass(frozen=True, kw_only=True)
class ImportanceWeighted:
    """The bound of several proposals together: the log of the mean of their importance weights.

    Parameters
    ----------
    draws
        Proposals a row.
    """

    draws: Annotated[int, Whole(1)] = 10
    kind: ClassVar[str] = "importance weighted bound"
    is_bound: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player, whose loss is minus the mean bound of the rows of a batch."""
        refuse_states(program)

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters, keys = values(free), jax.random.split(key, self.draws)
            logs = jax.vmap(lambda k: program.log_weights(parameters, batch.rows, k))(keys)
            bounds = jax.nn.logsumexp(logs, axis=0) - jnp.log(self.draws)
            # rows that only fill up a batch are real rows seen twice, so their bounds are finite
            return -jnp.sum(batch.weight * bounds) / jnp.sum(batch.weight), memory

        return ObjectiveSetup([Player(loss, names)])


def refuse_states(program: RowwiseModel) -> None:
    """Refuse guides of discrete nodes: no gradient goes through a draw of states."""
    for name in program.guide.names if program.guide is not None else ():
        support = program.program.layout.sites[name].support
        if support is not None and support.is_discrete:
            raise UnsupportedModel(
                f"the guide proposes {name!r}, which is discrete, and no gradient goes through its draws; leave the guide "
                "out where its states can be summed out, or say method='wake-sleep',"
                " 'reweighted-wake-sleep', 'nvil' or 'vimco'"
            )
