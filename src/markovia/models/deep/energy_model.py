"""Energy-based models: a density that a neural network says up to a constant, on top of a wide normal distribution.

References: LeCun et al. (2006); Du and Mordatch (2019). The log density is that of a normal distribution, a few times as
wide as the data, minus an energy, minus log Z, which is estimated by tempering from the normal distribution to the model.
The units of the network are bounded (tanh), so that far from the data the normal distribution wins.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks.recipes import mlp
from markovia.inference.result import LogMass
from markovia.models.classifiers.feature_rows import numbers
from markovia.models.deep.deep_model import DeepModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Positive
from markovia.runtime.estimator import check_fitted
from markovia.runtime.libraries import laws

FEWEST = 1000
"""Points of the population that samples are taken from, at least."""


@dataclass(eq=False, repr=False)
class EnergyModel(DeepModel):
    """A density by the energy that a perceptron gives to each row.

    Parameters
    ----------
    hidden, layers
        Width and number of the hidden layers.
    objective
        How it learns: "pcd" (maximum likelihood with Langevin chains), "score-matching", "sliced-score-matching",
        "denoising-score-matching", "nce", or settings such as `mk.objectives.PersistentChains(steps=50)`.
    spread
        The spread of the normal distribution below the energy, as a multiple of that of each column.
    epochs, batch, learning_rate, training, time_limit, progress, random_state
        As in `mk.Training`.

    Attributes
    ----------
    network_
        The trained network: the node "x" on the plate "row", and the potential "minus the energy".
    log_partition_, log_partition_error_
        Log Z of a row, an estimate, and its standard error; computed when first asked for.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.random.default_rng(0).normal([0.0, 3.0], [1.0, 0.1], (200, 2))
    >>> model = mk.deep.EnergyModel(8, 1, objective="score-matching", epochs=20, random_state=0).fit(rows)
    >>> model.energy(rows[:2]).shape, bool(model.energy([[0.0, 3.0]])[0] < model.energy([[0.0, 5.0]])[0])
    ((2,), True)
    """

    hidden: Count = 64
    layers: Count = 2
    objective: Any = "pcd"
    _: KW_ONLY
    spread: Positive = 2.0
    learning_rate: Positive = 5e-3

    def _read(self, X: Any, reset: bool) -> Array:  # noqa: N803
        whole = "drop or fill them first: an energy takes whole rows"
        return np.asarray(numbers(self, X, reset=reset, gaps=whole))

    def _begin(self, rows: Array, y: Any) -> None:
        if np.isnan(rows).any():
            raise InvalidArgument(
                "some entries are missing, and an energy takes whole rows; drop or fill them first"
            )
        self.center_, sd = rows.mean(axis=0), rows.std(axis=0)
        # a constant has the spread of its size, or 1
        size = np.where(self.center_ == 0.0, 1.0, np.abs(self.center_))
        self.scale_ = np.where(sd <= 1e-12 * size, size, sd)

    def _stated(self, width: int) -> BayesianNetwork:
        """Return the network: a normal distribution of each column, weighed by the energy of standardised rows."""
        m = BayesianNetwork()
        m.add("center", Parameter(self.center_, fixed=True))
        m.add("scale", Parameter(self.scale_, fixed=True))
        m.add("spread", Parameter(self.spread, fixed=True))
        m.add(
            "energy",
            Parameter(mlp(width, "scalar", hidden=self.hidden, layers=self.layers, activation="tanh")),
        )
        m.add("x", wide_normal, plate="row")
        m.potential(minus_energy, plate="row", name="minus the energy")
        return m

    def _objective(self) -> Any:
        return self.objective

    def energy(self, X: Any) -> Array:  # noqa: N803
        """Return the energy of each row: minus its log density up to log Z, the normal distribution included."""
        check_fitted(self, "network_")
        from markovia.inference.densities.engines.amortised import Amortised, row_log_evidence

        problem = self.network_._problem(self._data(self._read(X, reset=False)))
        return -row_log_evidence(problem, Amortised())

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """Return the log density of each row, with log Z estimated: `network().log_evidence(..., by="row")`."""
        return -self.energy(X) - self.log_partition_

    def sample(self, n: int = 1, seed: Any = None) -> Array:
        """Return n rows drawn from the model, by a population that is tempered from the normal distribution to it."""
        check_fitted(self, "network_")
        from markovia.inference.densities.engines.smc import SMC

        engine: Any = SMC(draws=max(n, FEWEST))
        drawn: Any = self.network_.sample(n, given={"row": 1}, seed=seed, engine=engine)
        return np.asarray(drawn["x"])[:, 0]

    @property
    def log_partition_(self) -> float:
        """Log Z of a row, an estimate."""
        return float(self._mass())

    @property
    def log_partition_error_(self) -> float:
        """The standard error of `log_partition_`, from the spread of the population's weights."""
        return float(self._mass().record.error or 0.0)

    def _mass(self) -> LogMass:
        check_fitted(self, "network_")
        return cast("LogMass", self.network_._row_normaliser(self.network_._problem({"row": 1})))


def wide_normal(center: Any, scale: Any, spread: Any) -> Any:
    """Return the distribution below the energy."""
    return laws.Normal(center, spread * scale).to_event(1)


def minus_energy(x: Any, center: Any, scale: Any, energy: Any) -> Any:
    """Return the log weight of each row."""
    return -energy((x - center) / scale)
