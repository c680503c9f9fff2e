"""Denoising losses of diffusions: how far off a network is about the noise in an element, at a time drawn evenly.

References: Ho, Jain and Abbeel (2020) for the simple loss; Vincent (2011) and Song et al. (2021) for score matching; Lipman
et al. (2023) for flow matching; Hang et al. (2023) for truncated weights; Ho and Salimans (2021) for contexts taken away.
They weigh the terms of the bound differently, so they are no bound, and nothing can be added to them. Cost: one call a row.
"""

from dataclasses import dataclass
from math import prod
from typing import Annotated, Any, ClassVar, Literal

from markovia.errors import UnsupportedModel
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.objective import ObjectiveSetup, Values, weighted_mean
from markovia.optimise.players import Player
from markovia.runtime.checks import NumberRange, check_options
from markovia.runtime.libraries import jnp


@dataclass(frozen=True, kw_only=True)
class Denoising:
    """The mean squared error of a diffusion's network.

    Parameters
    ----------
    weighting
        What is compared: "simple", the noise; "x0", the element; "velocity", of flow matching; "min-snr", the element with
        weights of at most 5 where there is little noise.
    dropped
        The share of rows whose context is taken away, so that the network also learns to do without: for guidance.
    """

    weighting: Literal["simple", "x0", "velocity", "min-snr"] = "simple"
    dropped: Annotated[float, NumberRange(0.0, 1.0, open="high", said="a share below 1")] = 0.0
    kind: ClassVar[str] = "denoising loss"
    is_bound: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_options(self)

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player."""
        name = _alone(program)

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            law = program.law(name, values(free), batch.rows)
            if not hasattr(getattr(law, "module", None), "denoising_losses"):
                raise UnsupportedModel(
                    f"the denoising loss is for diffusions (mk.networks.diffusion), and {name!r} is {type(law).__name__}"
                )
            lead = law.batch_shape
            several = (prod(lead),)
            rows = jnp.reshape(batch.rows[name], several + law.event_shape)
            contexts = [jnp.broadcast_to(c, lead + jnp.shape(c)[len(lead) :]) for c in law.context]
            contexts = [jnp.reshape(c, several + jnp.shape(c)[len(lead) :]) for c in contexts]
            found = law.module.denoising_losses(key, rows, contexts, self.weighting, self.dropped)
            found = jnp.sum(jnp.reshape(found, lead), axis=tuple(range(1, len(lead))))
            return weighted_mean(found, batch.weight), memory

        return ObjectiveSetup([Player(loss, names)])


def _alone(program: RowwiseModel) -> str:
    """Return the name of the one diffusion; refuse what would have to be added to a loss that is no bound."""
    layout = program.program.layout
    found = [s for s in layout.sites.values() if s.role == "observed" and {*layout.parameters} & {*s.sources}]
    if program.guide is not None or program.program.hidden or len(found) != 1:
        raise UnsupportedModel(
            "the denoising loss is no bound, so nothing can be added to it: it is for one diffusion that stands alone, "
            "without latent nodes and other observed ones with parameters; leave method= out for the bound"
        )
    return found[0].name
