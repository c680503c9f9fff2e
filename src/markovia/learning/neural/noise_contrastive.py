"""Noise-contrastive estimation: telling data from noise teaches the model's density, its normaliser included.

Reference: Gutmann and Hyvarinen (2012). A classifier whose log odds are the model's log density less that of the noise is
best where the model is the density of the data. Log Z is one more number that is learned. The noise should be as near to the
data as can be drawn and computed; where it is far off, telling apart is easy and little is learned.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.parameter import Parameter
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.energy_rows import EnergyRows
from markovia.learning.neural.objective import ObjectiveSetup, Values, weighted_mean
from markovia.optimise.players import Player
from markovia.runtime.checks import Count, check_options
from markovia.runtime.libraries import jax, jnp

LOG_Z = "log normaliser"
"""What log Z of a row is called among the parameters of the training."""


@dataclass(frozen=True, kw_only=True)
class NoiseContrastive:
    """Tell data from noise ("nce").

    `fit_.details["extra"]["log normaliser"].value` is then log Z of a row.

    Parameters
    ----------
    noise
        "gaussian", with the mean and the covariance of the data; "base", the distributions of the nodes without the
        potentials, at the parameters of the step; or a distribution of what is observed in a row.
    ratio
        Rows of noise for each row of data.
    """

    noise: Any = field(
        default="gaussian", repr=False
    )  # a distribution's numbers are data, and not part of the code
    ratio: Count = 1
    kind: ClassVar[str] = "noise-contrastive"
    is_bound: ClassVar[bool] = False
    unnormalised: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)
        if not is_distribution(self.noise) and self.noise not in ("gaussian", "base"):
            raise InvalidArgument(f"noise= is 'gaussian', 'base' or a distribution, not {self.noise!r}")

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player, and log Z as a parameter of its own."""
        energy = EnergyRows(program, "method 'nce'")
        units = energy.units()
        memory: dict[str, Any] = {"units": units, "noise": self._law(energy, units)}

        def drawn(key: Any, parameters: Any, rows: Any, units: Any, law: Any) -> Any:
            if law is None:
                return energy.vectors(program.dream(parameters, rows, key), units)
            return (law.sample(key, (len(next(iter(rows.values()))),)) - units[0]) / units[1]

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = values({n: v for n, v in free.items() if n != LOG_Z})
            fixed, units, law = jax.lax.stop_gradient(parameters), memory["units"], memory["noise"]

            def log_odds(rows: Any, points: Any) -> Any:
                mine = energy.log_probs(parameters, rows, points, units) - free[LOG_Z]
                other = (
                    energy.log_probs(fixed, rows, points, units, energy.names)
                    if law is None
                    else law.log_prob(units[0] + units[1] * points) + jnp.sum(jnp.log(units[1]))
                )
                return mine - other - jnp.log(self.ratio)

            repeated = {n: jnp.repeat(v, self.ratio, axis=0) for n, v in batch.rows.items()}
            weight = jnp.repeat(batch.weight, self.ratio)
            noise = jax.lax.stop_gradient(drawn(key, fixed, repeated, units, law))
            data = jax.nn.softplus(-log_odds(batch.rows, energy.vectors(batch.rows, units)))
            others = jax.nn.softplus(log_odds(repeated, noise))
            return weighted_mean(data, batch.weight) + self.ratio * weighted_mean(others, weight), memory

        return ObjectiveSetup([Player(loss, (*names, LOG_Z))], extra={LOG_Z: Parameter(0.0)}, memory=memory)

    def _law(self, energy: EnergyRows, units: Any) -> Any:
        """Return the noise as a distribution of vectors; None for the base of the model."""
        import numpyro.distributions as theirs

        if isinstance(self.noise, str) and self.noise == "base":
            return None
        if isinstance(self.noise, str):
            points = np.asarray(energy.vectors(energy.program.rows, units), float)
            spread = np.cov(points, rowvar=False, bias=True).reshape(energy.size, energy.size)
            factor = np.linalg.cholesky(spread + 1e-6 * np.eye(energy.size))
            return theirs.MultivariateNormal(units[0], scale_tril=units[1][:, None] * factor)
        shape = tuple(self.noise.shape())
        if len(energy.names) != 1 or not energy.real or shape not in ((), (energy.size,)):
            raise InvalidArgument(
                f"noise= is a distribution of the {energy.size} numbers of one real node, and has shape {shape}"
            )
        law = self.noise if shape else self.noise.expand((energy.size,))
        return law.to_event(len(law.batch_shape))
