"""Score matching: the gradient of the log density by the data has no log Z in it, and is learned instead.

References: Hyvarinen (2005), the mean of the trace of its Jacobian plus half its square, which needs no density of the data;
Song et al. (2020) for that trace along random directions; Vincent (2011) for data with noise, where the score of the noised
density is the mean direction back. Song and Ermon (2019) learn it for several noise levels at once, for annealed Langevin
sampling. All are in units of the data's spread. Cost a row: the exact trace takes as many derivatives of the score as there
are numbers, sliced takes `directions`, denoising none.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.energy_rows import EnergyRows, score
from markovia.learning.neural.objective import ObjectiveSetup, Values, weighted_mean
from markovia.optimise.players import Player
from markovia.runtime.checks import Count, check_options
from markovia.runtime.libraries import jax, jnp


@dataclass(frozen=True, kw_only=True)
class ScoreMatching:
    """Match the score of the model to that of the data ("score-matching", "sliced-..." or "denoising-score-matching").

    Parameters
    ----------
    variant
        "exact", "sliced" (the trace along random directions) or "denoising" (of data with noise).
    noise
        Denoising: the noise's standard deviation in units of the data's spread, or several of them, from large to small, of
        which each row gets one.
    level
        With several: the input of each row that tells the model how much noise there is.
    directions
        Sliced: how many a row.
    """

    variant: Literal["exact", "sliced", "denoising"] = "exact"
    noise: Any = 0.1
    level: str | None = None
    directions: Count = 1
    kind: ClassVar[str] = "score matching"
    is_bound: ClassVar[bool] = False
    unnormalised: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)
        if not (
            np.size(self.noise) and np.ndim(self.noise) < 2 and np.all(np.asarray(self.noise, float) > 0.0)
        ):
            raise InvalidArgument(f"noise= is a positive number or a list of such, not {self.noise!r}")
        if np.size(self.noise) > 1 and self.level is None:
            raise InvalidArgument(
                "several levels of noise= need level=, the input that tells the model which it is"
            )

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player."""
        energy = EnergyRows(program, "score matching")
        if self.level is not None and self.level not in program.rows:
            raise InvalidArgument(
                f"level={self.level!r} is an input on the plate of rows, and there is none of this name"
            )
        levels = np.atleast_1d(np.asarray(self.noise, float))

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters, units, rows = values(free), memory["units"], dict(batch.rows)
            points = energy.vectors(rows, units)
            if self.variant == "denoising":
                first, second = jax.random.split(key)
                sd = memory["levels"][jax.random.randint(first, points.shape[:1], 0, len(levels))]
                noise = jax.random.normal(second, points.shape)
                points = points + sd[:, None] * noise
                if self.level is not None:
                    rows[self.level] = jnp.broadcast_to(
                        jnp.reshape(sd, (-1, *(1,) * (rows[self.level].ndim - 1))), rows[self.level].shape
                    )
                slope = score(lambda v: energy.log_probs(parameters, rows, v, units), points)
                # in units of the noise, so that all levels count alike
                return weighted_mean(
                    0.5 * jnp.sum((sd[:, None] * slope + noise) ** 2, axis=1), batch.weight
                ), memory

            def slopes(points: Any) -> Any:
                return score(lambda v: energy.log_probs(parameters, rows, v, units), points)

            def along(direction: Any) -> Any:
                return jnp.sum(direction * jax.jvp(slopes, (points,), (direction,))[1], axis=1)

            if self.variant == "exact":
                each = jnp.eye(energy.size, dtype=points.dtype)
                trace = jnp.sum(jax.vmap(lambda e: along(jnp.broadcast_to(e, points.shape)))(each), axis=0)
            else:
                signs = jax.random.rademacher(key, (self.directions, *points.shape), points.dtype)
                trace = jnp.mean(jax.vmap(along)(signs), axis=0)
            found = trace + 0.5 * jnp.sum(slopes(points) ** 2, axis=1)
            return weighted_mean(found, batch.weight), memory

        return ObjectiveSetup([Player(loss, names)], memory={"units": energy.units(), "levels": levels})


def sliced() -> ScoreMatching:
    """Return score matching along random directions."""
    return ScoreMatching(variant="sliced")


def denoising() -> ScoreMatching:
    """Return score matching of data with noise."""
    return ScoreMatching(variant="denoising")
