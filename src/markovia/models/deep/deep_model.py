"""What all presets of deep models share: they state a network of rows, train it by an objective, and ask it."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from markovia.models.classifiers.feature_rows import numbers
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.mixtures.density_questions import DensityQuestions
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, CountOrNone, Positive, TimeLimit, WholeSeed
from markovia.runtime.estimator import Estimator, check_fitted, fitting
from markovia.runtime.ports import Savable


@dataclass(eq=False, repr=False)
class DeepSettings(DensityQuestions, Estimator, Savable):
    """The settings of training that all presets have."""

    _: KW_ONLY
    epochs: Count = 100
    batch: CountOrNone = 64
    learning_rate: Positive = 1e-3
    training: Training | None = None
    time_limit: TimeLimit = None
    progress: bool | None = None
    random_state: WholeSeed = None


class DeepModel(DeepSettings):
    """The verbs that all presets have.

    A preset says `_stated(width)`, the network with its parameters and guides whose rows are the node "x" on the plate
    "row"; `_objective()`, what `fit(method=)` of it takes; and what else it can do. It holds no densities, losses or loops.
    """

    network_: BayesianNetwork
    n_features_in_: int
    _takes_gaps: ClassVar[bool] = False

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        return {"allow_nan": self._takes_gaps}

    # -- what a preset says ------------------------------------------------------------------------------------------

    def _stated(self, width: int) -> BayesianNetwork:
        """Return the network, untrained, for rows of some width."""
        raise NotImplementedError

    def _objective(self) -> Any:
        """Return what is made large: a name or settings of `mk.objectives`."""
        return "elbo"

    def _data(self, rows: Array, y: Any = None) -> dict[str, Any]:
        """Return the data of the network's nodes."""
        return {"x": rows}

    def _begin(self, rows: Array, y: Any) -> None:
        """Look at the first rows, such as for their units."""

    # -- verbs -------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from rows."""
        with fitting(self):
            rows = self._read(X, reset=True)
            self._begin(rows, y)
            self.network_ = self._stated(rows.shape[1])
            self._learn(self.network_, self._data(rows, y), self._training(), False)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Go on learning from more rows: one pass over them."""
        with fitting(self):
            begun = hasattr(self, "network_")
            rows = self._read(X, reset=not begun)
            if not begun:
                self._begin(rows, y)
                self.network_ = self._stated(rows.shape[1])
            network = self.network_.copy()  # if it fails the old one is as it was
            self._learn(network, self._data(rows, y), self._training(epochs=1), True)
            self.network_ = network
        return self

    @available_if(lambda self: hasattr(self, "transform"))  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Learn from rows and return their codes."""
        found: Array = self.fit(X, y).transform(X)  # type: ignore[attr-defined]
        return found

    def network(self) -> BayesianNetwork:
        """Return the trained network, which answers every other question."""
        check_fitted(self, "network_")
        return self.network_.copy()

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """Return the log density of each row, or a lower bound on it: `network().log_evidence(..., by="row")`."""
        check_fitted(self, "network_")
        found: Array = self.network_.log_evidence(self._data(self._read(X, reset=False)), by="row")
        return found

    def sample(self, n: int = 1, seed: Any = None) -> Array:
        """Return n rows drawn from the model."""
        check_fitted(self, "network_")
        drawn: Any = self.network_.sample(1, given={"row": n}, seed=seed)
        rows: Array = np.asarray(drawn["x"])[0]
        return rows

    # -- inside ------------------------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self, "transform"):
            from sklearn.utils import TransformerTags

            tags.transformer_tags = TransformerTags()
        return tags

    def _read(self, X: Any, reset: bool) -> Array:  # noqa: N803
        """Return rows as numbers."""
        return np.asarray(numbers(self, X, reset=reset))

    def _learn(self, network: BayesianNetwork, data: dict[str, Any], how: Training, go_on: bool) -> None:
        """Train a network on data, from the start or from where it is."""
        (network.partial_fit if go_on else network.fit)(data, method=self._objective(), training=how)

    def _training(self, **changed: Any) -> Training:
        """Return how to train: `training=`, or one of the settings."""
        from dataclasses import replace

        if self.training is not None:
            return replace(self.training, **changed)
        settings = {
            "epochs": self.epochs, "batch": self.batch, "learning_rate": self.learning_rate,
            "time_limit": self.time_limit, "progress": self.progress, "seed": self.random_state, **changed,
        }  # fmt: skip
        return Training(**settings)
