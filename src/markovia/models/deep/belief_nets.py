"""Sigmoid belief networks: layers of binary units, each a logistic regression on the layer above, the data at the bottom.

References: Neal (1992) for the network and Gibbs sampling; Saul, Jaakkola and Jordan (1996) for mean field; Dayan, Hinton,
Neal and Zemel (1995) for the Helmholtz machine, which is one with a second that goes upwards, learned by wake and sleep
(Hinton, Dayan, Frey and Neal, 1995); Bornschein and Bengio (2015), Mnih and Gregor (2014) and Mnih and Rezende (2016) for
what came after. Exact answers take time that is exponential in the units of a layer: `tables()` is the network for them.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.functions.parameter import Parameter
from markovia.factors.local_models.logistic import Logistic
from markovia.inference.densities.engines.amortised import Amortised
from markovia.models.deep.deep_model import DeepModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, CountOrNone, Positive, Several, Whole
from markovia.runtime.estimator import check_fitted
from markovia.runtime.libraries import laws
from markovia.runtime.registry import resolve

_HOME = "markovia.learning.neural."
BLOCK = 200
"""Rows whose posteriors are computed at once."""


@dataclass(eq=False, repr=False)
class SigmoidBeliefNetwork(DeepModel):
    """Layers of binary hidden units that explain binary data, and a guide that goes the other way.

    Parameters
    ----------
    layers
        Hidden units of each layer, the one next to the data first.
    method
        How it learns: "wake-sleep" (with the guide, a Helmholtz machine), "reweighted-wake-sleep", "nvil", "vimco", "gibbs"
        (hidden units drawn one by one), or "mean-field" (units taken as independent given a row).
    draws
        Proposals a row of "reweighted-wake-sleep" and "vimco", sweeps of "gibbs", iterations of "mean-field"; None for the
        usual number of each.
    epochs, batch, learning_rate, training, time_limit, progress, random_state
        As in `mk.Training`.

    Attributes
    ----------
    network_
        The trained network: nodes "x", "h1", "h2", ..., with parameters "weights1" (from "h1" to "x"), "bias0" (of "x"),
        and so on, and those of the guide, "up1" and "up_bias1".

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 20)
    >>> sbn = mk.deep.SigmoidBeliefNetwork((2,), epochs=200, learning_rate=0.05, random_state=0).fit(rows)
    >>> sbn.transform(rows[:2]).shape, sbn.sample(3, seed=0).shape
    ((2, 2), (3, 4))
    >>> exact = sbn.tables()
    >>> bool(exact.query("x1", given={"x0": 1})[1] > 0.9)
    True
    """

    layers: Annotated[tuple[int, ...], Several(Whole(1), "numbers of units, such as (16, 8)")] = (16,)
    method: Literal["wake-sleep", "reweighted-wake-sleep", "nvil", "vimco", "gibbs", "mean-field"] = (
        "reweighted-wake-sleep"
    )
    _: KW_ONLY
    draws: CountOrNone = None
    epochs: Count = 100
    learning_rate: Positive = 5e-3
    _takes_gaps: ClassVar[bool] = True

    def _stated(self, width: int) -> BayesianNetwork:
        """Return the network: from the top down, then the guide from the data up."""
        rng = np.random.default_rng(self.random_state)
        sizes = [width, *self.layers]
        m = BayesianNetwork()
        for i, (below, units) in enumerate(zip(sizes, self.layers, strict=False), start=1):
            m.add(f"weights{i}", Parameter(rng.normal(0.0, 1 / np.sqrt(units), (units, below))))
            m.add(f"up{i}", Parameter(rng.normal(0.0, 1 / np.sqrt(below), (below, units))))
            m.add(f"up_bias{i}", Parameter(np.zeros(units)))
        for i, units in enumerate(sizes):
            m.add(f"bias{i}", Parameter(np.zeros(units)))
        top = len(self.layers)
        m.add(f"h{top}", top_units, parents=[f"bias{top}"], plate="row")
        for i in range(top, 0, -1):
            name = f"h{i - 1}" if i > 1 else "x"
            m.add(name, units_below, parents=[f"h{i}", f"weights{i}", f"bias{i - 1}"], plate="row")
        for i in range(1, top + 1):
            source = f"h{i - 1}" if i > 1 else "x"
            m.guide(f"h{i}", units_below, parents=[source, f"up{i}", f"up_bias{i}"])
        return m

    def _objective(self) -> Any:
        """Return the settings of the method."""
        home, draws = {
            "wake-sleep": ("wake_sleep:WakeSleep", None),
            "reweighted-wake-sleep": ("wake_sleep:ReweightedWakeSleep", "draws"),
            "nvil": ("score_gradients:NVIL", None),
            "vimco": ("score_gradients:VIMCO", "draws"),
            "gibbs": ("hidden_units:GibbsLearning", "sweeps"),
            "mean-field": ("hidden_units:SigmoidMeanField", "iterations"),
        }[self.method]
        settings: dict[str, Any] = {}
        if self.draws is not None:
            if draws is None:
                raise InvalidArgument(
                    f"draws= says nothing to method={self.method!r}, which draws once; leave it out"
                )
            settings[draws] = self.draws
        if self.method == "mean-field":
            top = len(self.layers)
            names = [
                (f"h{i}" if i else "x", f"weights{i + 1}" if i < top else None, f"bias{i}")
                for i in range(top + 1)
            ]
            settings["layers"] = tuple(names)
        return resolve(_HOME + home)(**settings)

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the posterior means of the hidden units, layer after layer from the data upwards."""
        check_fitted(self, "network_")
        rows = self._read(X, reset=False)
        names = [f"h{i + 1}" for i in range(len(self.layers))]
        found, engine = [], cast("Any", Amortised(seed=0))
        for start in range(0, len(rows), BLOCK):
            given = self._data(rows[start : start + BLOCK])
            post: Any = self.network_.query(names, given=given, engine=engine, missing="impute")
            found.append(np.concatenate([np.asarray(post.mean(n)) for n in names], axis=1))
        return np.concatenate(found)

    def tables(self) -> BayesianNetwork:
        """Return the model as a network of tables, each unit a logistic node: "x0", "x1", ..., "h1_0", ... with states 0, 1.

        All engines for tables answer it, exact ones where layers are narrow.
        """
        check_fitted(self, "network_")
        values = self.network_.parameters
        found = BayesianNetwork()
        above: list[str] = []
        for i in range(len(self.layers), -1, -1):
            bias = values[f"bias{i}"]
            names = [f"h{i}_{j}" if i else f"x{j}" for j in range(len(bias))]
            for j, name in enumerate(names):
                weights = {a: float(values[f"weights{i + 1}"][k, j]) for k, a in enumerate(above)}
                found.add(name, Logistic(weights, float(bias[j])), states=[0, 1])
            above = names
        return found


def top_units(bias: Any) -> Any:
    """Return the law of independent binary units."""
    return laws.Bernoulli(logits=bias).to_event(1)


def units_below(units: Any, weights: Any, bias: Any) -> Any:
    """Return the law of binary units given those of another layer."""
    return laws.Bernoulli(logits=units @ weights + bias)
