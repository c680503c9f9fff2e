"""Deep belief networks: restricted Boltzmann machines stacked one by one, then tuned together."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

import numpy as np

from markovia.errors import ApproximateWarning, TooLarge, warn_user
from markovia.learning.fields import belief_layers
from markovia.learning.fields.belief_layers import BeliefLayers
from markovia.learning.fields.layered_answers import LayeredAnswers, by_rows, greedy
from markovia.learning.fields.layered_field import LayeredField
from markovia.learning.fields.layered_training import NegativePhase
from markovia.learning.fields.unit_layers import UNBOUNDED, UnitLayer
from markovia.models.deep.boltzmann import BoltzmannSettings, field_network
from markovia.models.graphical.chain_graph_model import ChainGraphModel
from markovia.optimise.players import Player
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Several, Whole
from markovia.runtime.estimator import check_fitted
from markovia.runtime.seeds import Seed, generator

WIDEST = 14
"""Units above that the table of one unit may depend on."""
DRAWS = 1000
"""Proposals a row, where a score is estimated."""


@dataclass(eq=False, repr=False)
class DBN(BoltzmannSettings):
    """A deep belief network: directed layers of binary units, and a restricted Boltzmann machine at the top.

    Layers are learned one by one, each as a restricted machine of what the last one makes of the rows, and then together.

    Parameters
    ----------
    layers
        Hidden units of each layer, the one next to the data first.
    fine_tune
        "wake-sleep" (the up-down algorithm), "likelihood" (exact, of small networks), "autoencoder" (layers unroll into an
        autoencoder, which `transform` and `inverse_transform` then use; the network itself stays), or None.
    tune_epochs
        Passes over the rows for it.
    visible, method, epochs, ...
        As in `RBM`, for each layer by itself.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 20)
    >>> dbn = mk.deep.DBN((3, 2), epochs=100, tune_epochs=20, random_state=0).fit(rows)
    >>> dbn.transform(rows[:2]).shape, len(dbn.network().components)
    ((2, 2), 5)
    """

    layers: Annotated[tuple[int, ...], Several(Whole(1), "numbers of units, such as (16, 8)")] = (16, 8)
    _: KW_ONLY
    fine_tune: Literal["wake-sleep", "likelihood", "autoencoder"] | None = "wake-sleep"
    tune_epochs: Annotated[int, Whole(1)] = 20

    @property
    def _net(self) -> BeliefLayers:
        check_fitted(self, "parameters_")
        return BeliefLayers(self._field().layers)

    def _field(self) -> LayeredField:
        return LayeredField((self._layer(self._width()), *(UnitLayer("binary", n) for n in self.layers)))

    def _begun(self, X: Any, y: Any) -> dict[str, Array]:  # noqa: N803
        vars(self).pop("autoencoder_", None)
        self.stacked_ = False
        return super()._begun(X, y)

    def _learn_rows(self, rows: dict[str, Array], training: Training) -> None:
        """Stack machines, or where there are some already go on tuning."""
        net, tuning = self._net, training
        if not self.stacked_:
            phase = NegativePhase(self.method, self.steps, self.chains, self.temperatures)
            pairs = greedy(net.layers, self.base_, rows["x"], phase, training, self.random_state)
            for k, found in enumerate(pairs):
                self.parameters_ |= {f"weight{k}": found["weight0"], f"bias{k + 1}": found["bias1"]}
                if k == 0:
                    self.parameters_ |= {n: v for n, v in found.items() if n in ("bias0", "log_precision")}
                if k < len(pairs) - 1:
                    self.parameters_ |= {f"up{k}": found["weight0"], f"up_bias{k + 1}": found["bias1"]}
            tuning = self._training(epochs=min(self.tune_epochs, training.epochs))
        self.stacked_ = True
        if self.fine_tune is None:
            return
        learned, loss = self.parameters_, belief_layers.up_down_loss(net, self.steps)
        if self.fine_tune == "autoencoder":
            learned, loss = (
                belief_layers.unrolled(learned, len(self.layers)),
                belief_layers.reconstruction_loss(net),
            )
            learned = getattr(self, "autoencoder_", learned)
        elif self.fine_tune == "likelihood":
            loss = belief_layers.likelihood_loss(net)
        code = repr((net, self.fine_tune, self.steps))
        self.fit_ = tuning.run([Player(loss, tuple(learned))], learned, rows, code=code)
        setattr(
            self, "autoencoder_" if self.fine_tune == "autoencoder" else "parameters_", self.fit_.parameters
        )

    def _asked(self) -> LayeredAnswers:
        """Return the machine at the top."""
        check_fitted(self, "parameters_")
        net = self._net
        base = (
            self.base_
            if len(self.layers) == 1
            else np.asarray(self.parameters_[f"bias{len(self.layers) - 1}"])
        )
        return LayeredAnswers(net.top, net.of_top(self.parameters_), base)

    def score_samples(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Return log p(x) of each row; where hidden layers have too many states an estimate, and a warning says so."""
        check_fitted(self, "parameters_")
        net, rows = self._net, self._prepared(X, y, reset=False)["x"]
        unit = np.log(self.scale_).sum() if self.visible in UNBOUNDED else 0.0
        try:
            net.check_listed()
        except TooLarge:
            log_z = self.log_partition()
            warn_user(
                f"scores are estimates, from below on average, from {DRAWS} draws of the way up; log Z of the top is "
                f"{log_z.method}, with standard error {log_z.error:.2g}",
                ApproximateWarning,
            )
            code = repr((net, "weights"))
            logs = by_rows(code, lambda p, k, v, c: net.log_weights(p, k, v, DRAWS), self.parameters_, rows)
            return np.asarray(logs - log_z.value - unit)
        code = repr((net, "likelihood"))
        return by_rows(code, lambda p, k, v, c: net.log_likelihood(p, v), self.parameters_, rows) - unit

    def _coder(self) -> Any:
        check_fitted(self, "parameters_")
        return getattr(self, "autoencoder_", belief_layers.unrolled(self.parameters_, len(self.layers)))

    def transform(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Return the means of the last hidden layer, going up through means."""
        net, coder, rows = self._net, self._coder(), self._prepared(X, y, reset=False)["x"]
        return by_rows(repr((net, "up")), lambda p, k, v, c: belief_layers.coded(net, p, v), coder, rows)

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """Return the means of rows given values of the last hidden layer, going down through means."""
        net, coder, code = self._net, self._coder(), self._hidden(X)

        def down(p: Any, k: Any, v: Any, c: Any) -> Any:
            return net.layers[0].mean(belief_layers.decoded(net, p, v), p.get("log_precision"))

        return self._shown(by_rows(repr((net, "down")), down, coder, code))

    def sample(self, n: int = 1, seed: Seed = None, *, steps: int = 1000) -> Array:
        """Return n rows: the machine at the top is drawn from as an `RBM` is, and then the layers below it."""
        top, rng = self._asked(), generator(seed)
        net, drawn = self._net, top.draws(np.zeros((n, len(top.base))), steps, rng)
        code = repr((net, "dreams"))
        return self._shown(
            by_rows(code, lambda p, k, v, c: net.dreamt(p, k, v)[0], self.parameters_, drawn, None, rng)
        )

    def network(self, of: Any = None) -> Any:
        """Return the chain graph that it stands for: arrows from layer to layer, and lines between the last two.

        Of one hidden layer it is a Markov network. The tables of a unit are over all units above it, so these are few.
        """
        check_fitted(self, "parameters_")
        if max((0, *self.layers[:-1])) > WIDEST:
            raise TooLarge(
                f"in a chain graph each unit has a table over the layer above it, here {max(self.layers[:-1])} units and "
                f"at most {WIDEST}; ask score_samples, transform or sample"
            )
        whole = field_network(LayeredAnswers(self._field(), self.parameters_, self.base_))
        if len(self.layers) == 1:
            return whole
        last = f"h{len(self.layers) - 1}_"
        edges = [f"{a} -- {b}" if a.startswith(last) else f"{b} -> {a}" for a, b in whole.edges]
        return ChainGraphModel(
            "; ".join(edges), whole.factors, variables=[whole.variable(n) for n in whole.variables]
        )
