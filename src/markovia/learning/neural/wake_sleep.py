"""Wake and sleep: the model learns from what the guide proposes, and the guide from what the model dreams.

References: Hinton, Dayan, Frey and Neal (1995); Bornschein and Bengio (2015) for proposals that are weighed. No gradient
goes through a draw, so latent variables may be discrete. Which parameters are whose, the graph says: the guide's are those
that only its functions take.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from markovia.errors import InvalidArgument
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.objective import ObjectiveSetup, Values, weighted_mean
from markovia.optimise.players import Player
from markovia.runtime.checks import Whole, check_options
from markovia.runtime.libraries import jax, jnp


@dataclass(frozen=True, kw_only=True)
class WakeSleep:
    """Train the model on proposals of the guide (wake), and the guide on draws of the model (sleep)."""

    kind: ClassVar[str] = "wake-sleep"
    is_bound: ClassVar[bool] = False

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return two players."""
        models, guides = sides(program, names)

        def wake(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = values(free)
            proposed = jax.lax.stop_gradient(program.proposed(parameters, batch.rows, key))
            logs = program.joint_log_probs(parameters, batch.rows, proposed)
            return -weighted_mean(logs, batch.weight), memory

        def sleep(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = values(free)
            dreamt = jax.lax.stop_gradient(program.dream(parameters, batch.rows, key))
            return -jnp.mean(program.guide_log_probs(parameters, batch.rows, dreamt)), memory

        return ObjectiveSetup([Player(wake, models), Player(sleep, guides)])


@dataclass(frozen=True, kw_only=True)
class ReweightedWakeSleep:
    """Wake and sleep with several proposals a row, weighed by how well the model likes them.

    Parameters
    ----------
    draws
        Proposals a row.
    """

    draws: Annotated[int, Whole(1)] = 5
    kind: ClassVar[str] = "reweighted wake-sleep"
    is_bound: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_options(self)

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return two players, both awake."""
        models, guides = sides(program, names)

        def weighed(free: Any, key: Any, batch: Any) -> Any:
            parameters = values(free)

            def one(key: Any) -> Any:
                proposed = jax.lax.stop_gradient(program.proposed(parameters, batch.rows, key))
                log_p = program.joint_log_probs(parameters, batch.rows, proposed)
                return log_p, program.guide_log_probs(parameters, batch.rows, proposed)

            log_p, log_q = jax.vmap(one)(jax.random.split(key, self.draws))
            return log_p, log_q, jax.lax.stop_gradient(jax.nn.softmax(log_p - log_q, axis=0))

        def wake(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            log_p, _, shares = weighed(free, key, batch)
            return -weighted_mean(jnp.sum(shares * log_p, axis=0), batch.weight), memory

        def propose(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            _, log_q, shares = weighed(free, key, batch)
            return -weighted_mean(jnp.sum(shares * log_q, axis=0), batch.weight), memory

        return ObjectiveSetup([Player(wake, models), Player(propose, guides)])


def sides(program: RowwiseModel, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the parameters of the model, and those that only the guide takes."""
    if program.guide is None:
        raise InvalidArgument(
            "wake-sleep trains a guide beside the model; say what latent nodes are proposed from: m.guide"
        )
    own = {source for site in program.program.layout.sites.values() for source in site.sources}
    models = tuple(n for n in names if n in own)
    guides = tuple(n for n in names if n not in own)
    if not models or not guides:
        raise InvalidArgument("wake-sleep needs parameters of the model and others of its guide")
    return models, guides
