"""Discrete codes that gradients go through: relaxed draws of states, and the nearest vectors of a code book.

References: Jang, Gu and Poole (2017) and Maddison, Mnih and Teh (2017) for relaxed states; van den Oord, Vinyals and
Kavukcuoglu (2017) for code books. A few states are better summed out, without a guide: that is exact. `WakeSleep` and its
relatives need no gradient through draws.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from markovia.errors import InvalidArgument
from markovia.inference.densities.program.rowwise_model import Proposals, RowwiseModel, state_logits
from markovia.learning.neural.objective import ObjectiveSetup, Values, weighted_mean
from markovia.optimise.players import Player
from markovia.runtime.checks import NOT_NEGATIVE, POSITIVE, Whole, check_options
from markovia.runtime.libraries import jax, jnp


@dataclass(frozen=True, kw_only=True)
class GumbelSoftmax:
    """The evidence lower bound with draws of states that are softened, so that gradients go through them.

    It is for nodes with states that have a guide, both `Categorical`. Their divergence from the prior is exact.

    Parameters
    ----------
    codes
        The node that has states, and the function of it that says 1 at its state and 0 elsewhere (`eye[k]`), in pairs.
    temperature
        How soft: near 0 draws are states and gradients noisy.
    hard
        Whether the model sees states and only gradients the soft draws (straight through). Then the values are draws of
        the bound; those of soft draws are none.
    draws
        Proposals a row and step, whose bounds are averaged.
    beta
        How often the divergence counts.
    """

    codes: tuple[tuple[str, str], ...]
    temperature: Annotated[float, POSITIVE] = 0.67
    hard: bool = True
    draws: Annotated[int, Whole(1)] = 1
    beta: Annotated[float, NOT_NEGATIVE] = 1.0
    kind: ClassVar[str] = "evidence lower bound by relaxed states"

    @property
    def is_bound(self) -> bool:
        """Whether its values are bounds: soft draws are no states, and with beta below 1 they are above."""
        return self.hard and self.beta >= 1.0

    def __post_init__(self) -> None:
        check_options(self)

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player, whose loss is minus the mean bound of the rows of a batch."""
        sites = program.program.layout.sites
        guided = () if program.guide is None else program.guide.names
        for state, code in self.codes:
            if state not in guided or code not in sites or sites[code].role != "deterministic":
                raise InvalidArgument(
                    f"codes= has ({state!r}, {code!r}): a node with states and a guide, and a function of it, eye[{state}]"
                )

        def relaxed(drawn: Proposals, key: Any) -> dict[str, Any]:
            found = {}
            for i, (state, code) in enumerate(self.codes):
                logits = state_logits(drawn.distributions[state])
                if logits is None:
                    raise InvalidArgument(
                        f"the guide of {state!r} is no Categorical, so that its draws cannot be softened"
                    )
                found[state], found[code] = self._relaxed(logits, jax.random.fold_in(key, i))
            return found

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = values(free)

            def one(key: Any) -> Any:
                return program.bound(parameters, batch.rows, batch.weight, key, self.beta, relaxed)

            totals = jax.vmap(one)(jax.random.split(key, self.draws)) if self.draws > 1 else one(key)
            return -jnp.mean(totals) / jnp.sum(batch.weight), memory

        return ObjectiveSetup([Player(loss, names)])

    def _relaxed(self, logits: Any, key: Any) -> tuple[Any, Any]:
        """Return states, and soft draws of them, or states again that let gradients through as soft draws do."""
        noise = jax.random.gumbel(key, logits.shape, logits.dtype)
        soft = jax.nn.softmax((logits + noise) / self.temperature)
        states = jnp.argmax(soft, axis=-1)
        if not self.hard:
            return states, soft
        hot = jax.nn.one_hot(states, logits.shape[-1], dtype=soft.dtype)
        return states, soft + jax.lax.stop_gradient(hot - soft)


@dataclass(frozen=True, kw_only=True)
class VectorQuantised:
    """The log probability of rows with the nearest code each, and how far the codes are from what was encoded.

    The guide of a node with states is `mk.networks.NearestCode`. Gradients pass from the code to what was encoded. The value
    is a lower bound on the log evidence: that of one state, less squares.

    Parameters
    ----------
    code
        The node that is the code of the state: a function such as `codes[k]`.
    codebook, commitment
        How much it counts that codes are near what was encoded, and what was encoded near its code.
    """

    code: str
    codebook: Annotated[float, NOT_NEGATIVE] = 1.0
    commitment: Annotated[float, NOT_NEGATIVE] = 0.25
    kind: ClassVar[str] = "vector quantisation"
    is_bound: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player."""
        from markovia.factors.networks.code_books import NearestCode

        guided = () if program.guide is None else program.guide.names
        site = program.program.layout.sites.get(self.code)
        if site is None or site.role != "deterministic" or len(guided) != 1:
            raise InvalidArgument(
                f"code={self.code!r} has to be a function of the one node that has a guide, the code of its state"
            )
        state = guided[0]

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = values(free)
            law = program.drawn(parameters, batch.rows, key).distributions[state]
            while not isinstance(law, NearestCode) and hasattr(law, "base_dist"):  # several codes a row
                law = law.base_dist
            if not isinstance(law, NearestCode):
                raise InvalidArgument(
                    f"the guide of {state!r} is {type(law).__name__}; it has to be mk.networks.NearestCode(encoded, codes)"
                )
            found = {state: law.state, self.code: law.passed()}
            logs = program.joint_log_probs(parameters, batch.rows, found, held={self.code})
            still = jax.lax.stop_gradient
            apart = self.codebook * (still(law.encoded) - law.nearest) ** 2
            apart = apart + self.commitment * (law.encoded - still(law.nearest)) ** 2
            cost = jnp.sum(apart.reshape(len(apart), -1), axis=1)
            return weighted_mean(cost - logs, batch.weight), memory

        return ObjectiveSetup([Player(loss, names)])
