"""Restricted and deep Boltzmann machines: hidden units that pull visible ones, without arrows.

References: Smolensky (1986), Hinton (2002); Salakhutdinov and Hinton (2009) for more layers and for texts; Taylor, Hinton
and Roweis (2007) for conditional machines; Lee, Grosse, Ranganath and Ng (2009) for filters. What is computed is in
`learning/fields/layered_field.py`. Machines whose units have states are Markov networks: `network()`.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np

from markovia.errors import ApproximateWarning, InvalidArgument, UnsupportedModel, warn_user
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.learning.fields.block_gibbs import PartitionEstimate
from markovia.learning.fields.layered_answers import LayeredAnswers
from markovia.learning.fields.layered_field import LayeredField
from markovia.learning.fields.layered_training import NegativePhase, learn_field
from markovia.learning.fields.unit_layers import UNBOUNDED, UnitLayer
from markovia.models.classifiers.feature_rows import numbers
from markovia.models.deep.deep_model import DeepModel
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, NumberRange, Positive, Whole, check_choice
from markovia.runtime.estimator import check_fitted, fitting
from markovia.runtime.seeds import Seed, generator

GAPS = "learn from complete rows; network().query answers rows with gaps"
FLOOR = 0.1
"""Over the columns: the least share of the rows that a first bias speaks for."""
LEVELS = {"binary": 0.0, "spin": -1.0}
"""The lower of two states."""
LAST = 0.05
"""The share of the learning rate that is left at the last step: chains cannot follow parameters that move fast."""

Visible = Literal["binary", "spin", "softmax", "replicated softmax", "gaussian", "relu"]
Hidden = Literal["binary", "spin", "softmax", "gaussian", "relu"]
Method = Literal["pcd", "cd", "parallel-tempering", "mean-field", "exact"]


@dataclass(eq=False, repr=False)
class BoltzmannSettings(DeepModel):
    """What all layered machines share: the rows, the two phases of learning, and the questions."""

    _: KW_ONLY
    visible: Visible = "binary"
    method: Method = "pcd"
    steps: Count = 1
    chains: Count = 100
    temperatures: Annotated[int, Whole(2)] = 5
    binarize: Annotated[float | None, NumberRange(said="a number", none=True)] = None
    learning_rate: Positive = 0.02

    _not_saved = ("_memory", "_partition", "fit_")
    _memory = _partition = None

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from rows."""
        with fitting(self):
            rows = self._begun(X, y)
            self._pretrain(rows)
            self._learn_rows(rows, self._training())
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Go on learning from more rows: one pass over them."""
        with fitting(self):
            begun = hasattr(self, "parameters_")
            rows = self._prepared(X, y, reset=False) if begun else self._begun(X, y)
            self._learn_rows(rows, self._training(epochs=1))
        return self

    def _begun(self, X: Any, y: Any) -> dict[str, Array]:  # noqa: N803
        """Read the first rows and state the machine that they begin with."""
        rows = self._prepared(X, y, reset=True)
        self.parameters_ = self._field().begun(self.base_, self.random_state)
        self._memory = None
        return rows

    def _learn_rows(self, rows: dict[str, Array], training: Training) -> None:
        phase = NegativePhase(self.method, self.steps, self.chains, self.temperatures)
        self.fit_ = learn_field(self._field(), self.parameters_, rows, phase, training, self._memory)
        self.parameters_, self._memory = self.fit_.parameters, self.fit_.memory
        self._partition = None

    def _training(self, **changed: Any) -> Training:
        if self.training is None and changed.get("epochs") != 1:
            changed = {"decay": LAST, **changed}
        return super()._training(**changed)

    def _pretrain(self, rows: dict[str, Array]) -> None:
        """Find parameters to start from, where there is more than one hidden layer."""

    def _prepared(self, X: Any, y: Any, reset: bool) -> dict[str, Array]:  # noqa: N803
        return {"x": self._coded(self._read(X, reset), reset)}

    def _read(self, X: Any, reset: bool) -> Array:  # noqa: N803
        return np.asarray(numbers(self, X, reset=reset, gaps=GAPS))

    def _coded(self, rows: Array, reset: bool) -> Array:
        """Return rows as the visible layer has them; `reset` looks at their states and units."""
        kind = self.visible
        if self.binarize is not None and kind in LEVELS:
            rows = np.where(rows > self.binarize, 1.0, LEVELS[kind])
        if kind in LEVELS:
            low = LEVELS[kind]
            bad, said = (rows != low) & (rows != 1), f"{low:g} or 1 (binarize= makes them so)"
        elif kind in UNBOUNDED:
            bad, said = (rows < 0) & (kind == "relu"), "numbers, 0 or more"
        else:
            bad, said = (rows < 0) | (rows != np.floor(rows)), "whole numbers from 0"
        if kind == "softmax" and not reset:
            bad, said = bad | (rows >= np.array(self.states_)), "states that it has learned"
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise InvalidArgument(f"visible={kind!r} takes {said}; row {i} has {rows[i, j]:g} in column {j}")
        if reset:
            most = rows.max(axis=0).astype(int).clip(1)
            self.states_: tuple[int, ...] = tuple((most + 1).tolist()) if kind == "softmax" else ()
            self.center_ = rows.mean(axis=0) if kind == "gaussian" else np.zeros(rows.shape[1])
            spread = rows.std(axis=0) if kind in UNBOUNDED else np.zeros(rows.shape[1])
            self.scale_ = np.where(spread > 1e-12 * np.abs(rows).max(axis=0), spread, 1.0)
            self.lengths_ = np.unique(rows.sum(axis=1)) if kind == "replicated softmax" else np.zeros(1)
        if kind == "softmax":
            rows = self._layer(rows.shape[1]).one_hot(rows)
        elif kind in UNBOUNDED:
            rows = (rows - self.center_) / self.scale_
        if reset:
            self.base_: Array = self._first(rows)
        return rows

    def _first(self, rows: Array) -> Array:
        """Return the inputs of independent visible units with the means of the rows."""
        if self.visible in UNBOUNDED:
            return np.zeros(rows.shape[1])
        share = (rows > 0).mean(axis=0) if self.visible in LEVELS else rows.sum(axis=0) / max(rows.sum(), 1.0)
        share = share.clip(FLOOR / len(share), 1 - FLOOR / len(share))
        half = 0.5 if self.visible == "spin" else 1.0
        logs = half * (np.log(share) - np.log1p(-share)) if self.visible in LEVELS else np.log(share)
        return np.asarray(logs)

    def _layer(self, width: int) -> UnitLayer:
        if self.visible == "softmax":
            return UnitLayer("softmax", width * max(self.states_), self.states_)
        return UnitLayer(self.visible, width)

    def _shown(self, layer: Array) -> Array:
        """Return rows in the units of the data: of softmax units the most probable states."""
        if self.visible == "softmax":
            layer = layer.reshape(len(layer), len(self.states_), -1).argmax(axis=-1)
        return np.asarray(layer * self.scale_ + self.center_)

    def _field(self) -> LayeredField:
        raise NotImplementedError

    def _width(self) -> int:
        """Return the columns of the rows that are modelled."""
        return self.n_features_in_

    def _asked(self) -> LayeredAnswers:
        check_fitted(self, "parameters_")
        return LayeredAnswers(self._field(), self.parameters_, self.base_)

    def log_partition(
        self, method: str = "auto", *, of: Any = None, chains: int = 100, temperatures: int = 1000, seed: Seed = 0
    ) -> PartitionEstimate:  # fmt: skip
        """Return log Z: its `value` and `method`, and of an estimate the standard `error` and the `effective` chains.

        Parameters
        ----------
        method
            "exact" goes through the states of every other layer, "ais" is annealed importance sampling, and "auto" the first
            where it can be done.
        of
            Of texts: how many words they have; of a conditional machine: a row of X.
        chains, temperatures, seed
            Of "ais".
        """
        check_choice("method", method, ("auto", "exact", "ais"))
        asked = self._asked()
        return asked.log_partition(method, *self._blank(of), chains, temperatures, seed)[0]

    def score_samples(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Return log p(x) of each row; where log Z is estimated, or log Z(x) bounded, a warning says so.

        Of texts it is the log probability of the counts given their number.
        """
        asked, rows = self._asked(), self._prepared(X, y, reset=False)
        logs, exact = asked.log_weights(rows["x"], rows.get("context"))
        shown, place = rows["x"], np.arange(len(logs))
        if texts := self.visible == "replicated softmax":  # a log Z for each length
            _, first, place = np.unique(shown.sum(axis=1), return_index=True, return_inverse=True)
            shown = shown[first]
        elif "context" not in rows:
            shown, place = shown[:1], np.zeros(len(logs), int)
        kept = self._partition if not texts and "context" not in rows else None
        if kept is None:
            kept = self._partition = asked.log_partition("auto", shown, rows.get("context"), 100, 1000, 0)
        notes = [] if exact else ["log Z(x) is mean field's lower bound"]
        if kept[0].method == "ais":
            worst = max(p.error for p in kept)
            notes.append(f"log Z is estimated by annealing, with a standard error of {worst:.2g}")
        if notes:
            warn_user(f"scores are no exact log probabilities: {', and '.join(notes)}", ApproximateWarning)
        unit = np.log(self.scale_).sum() if self.visible in UNBOUNDED else 0.0
        return np.asarray(logs - np.array([p.value for p in kept])[place] - unit)

    def transform(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Return the means of the last hidden layer given each row; with several layers, by mean field."""
        asked, rows = self._asked(), self._prepared(X, y, reset=False)
        return asked.means(rows["x"], rows.get("context"))

    def fit_transform(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Learn from rows and return their hidden means."""
        return self.fit(X, y).transform(X, y)

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """Return the means of rows given values of the last hidden layer (of softmax units the most probable states)."""
        return self._shown(self._asked().below(self._hidden(X)))

    def _hidden(self, X: Any) -> Array:  # noqa: N803
        hidden, width = np.asarray(X, np.float64), self._asked().field.layers[-1].size
        if hidden.ndim != 2 or hidden.shape[1] != width:
            raise InvalidArgument(
                f"hidden values have {width} columns, one a unit, not the shape {hidden.shape}"
            )
        return hidden

    def sample(self, n: int = 1, seed: Seed = None, *, steps: int = 1000) -> Array:
        """Return n rows drawn from the model: exactly where half the layers have few states, else after `steps` sweeps."""
        asked, rng = self._asked(), generator(seed)
        return self._shown(asked.draws(self._blank(rng.choice(self.lengths_, n))[0], steps, rng))

    def network(self, of: Any = None) -> Any:
        """Return the Markov network, with variables "v0", "v1", ... and "h0", ... (of more layers "h1_0", "h2_0", ...).

        Texts have words "v0", "v1", ..., whose states are the columns: `of` says how many. Of a conditional machine, `of` is
        a row of X.
        """
        rows, context = self._blank(of)
        return field_network(self._asked(), int(rows[0].sum()), context)

    def _blank(self, of: Any) -> tuple[Array, Array | None]:
        """Return rows that say how long texts are and nothing else, and the context of a conditional machine."""
        check_fitted(self, "parameters_")
        lengths = np.atleast_1d(self.lengths_[-1] if of is None else of)
        return np.eye(1, len(self.base_)) * lengths[:, None], None


@dataclass(eq=False, repr=False)
class RBM(BoltzmannSettings):
    """A restricted Boltzmann machine: visible units, hidden units, and a weight between each two of different layers.

    Parameters
    ----------
    n_components
        Hidden units.
    visible, hidden
        Kinds of units: "binary" (0 and 1), "spin" (-1 and 1), "softmax" (visible: columns of states 0, 1, ...; hidden: one
        unit is on, which makes a mixture), "gaussian" (columns are standardised), "relu" (a normal cut off at zero), and for
        rows of counts of words "replicated softmax".
    method
        Where states of the model come from when it learns: "pcd" (chains that go on), "cd" (from the rows),
        "parallel-tempering" (chains at several temperatures), "mean-field", or "exact" for small machines.
    steps, chains, temperatures
        Block Gibbs sweeps a step, chains, and temperatures of "parallel-tempering".
    binarize
        A number above which a cell is one.
    epochs, batch, learning_rate, training, time_limit, progress, random_state
        As in `mk.Training`; the rate falls to a twentieth along half a cosine unless `training` is given.

    Attributes
    ----------
    parameters_
        `bias0`, `weight0`, `bias1`.
    fit_
        What training led to.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 20)
    >>> rbm = mk.deep.RBM(2, epochs=200, batch=10, learning_rate=0.05, random_state=0).fit(rows)
    >>> bool(rbm.score(rows) > -1.0), rbm.log_partition().method
    (True, 'exact')
    >>> bool(rbm.network().query("v1", given={"v0": 1})[1] > 0.9)
    True
    """

    n_components: Count = 16
    _: KW_ONLY
    hidden: Hidden = "binary"

    def _field(self) -> LayeredField:
        if {self.visible, self.hidden} <= set(UNBOUNDED):
            raise InvalidArgument(
                f"visible={self.visible!r} and hidden={self.hidden!r} are unbounded, so that large weights have no log Z; "
                "let one layer have states, such as hidden='binary'"
            )
        hidden = UnitLayer(
            self.hidden, self.n_components, (self.n_components,) if self.hidden == "softmax" else ()
        )
        return LayeredField((self._layer(self._width()), hidden))


def field_network(asked: LayeredAnswers, words: int = 1, context: Array | None = None) -> MarkovNetwork:
    """Return the Markov network of a machine whose units have states: a table for each unit, and for each weight."""
    layers = asked.field.layers
    biases, weights = asked.dense(context)
    parts: list[list[tuple[Variable, Array, slice]]] = []
    for k, layer in enumerate(layers):
        texts = layer.kind == "replicated softmax"
        cards = (layer.size,) * words if texts else layer.cards
        if cards is None:
            raise UnsupportedModel(
                f"{layer.kind} units have no states, and a Markov network is tables; ask score_samples, transform or sample"
            )
        head, width = "v" if k == 0 else "h" if len(layers) == 2 else f"h{k}_", layer.size // len(cards)
        parts.append([])
        for i, card in enumerate(cards):
            # the vectors of the unit's states, and where they stand in the layer; all words of a text stand in one place
            two = layer.kind in LEVELS
            vectors = np.array([[LEVELS[layer.kind]], [1.0]]) if two else np.eye(card)
            variable = Variable(f"{head}{i}", [-1, 1] if layer.kind == "spin" else card)
            parts[k].append(
                (
                    variable,
                    vectors,
                    slice(0, card) if texts else slice(i * width, i * width + vectors.shape[1]),
                )
            )
    factors = [
        Factor([v], np.exp(y @ b[at])) for own, b in zip(parts, biases, strict=True) for v, y, at in own
    ]
    for low, high, weight in zip(parts, parts[1:], weights, strict=False):
        for v, left, rows in low:
            for u, right, columns in high:
                if np.any(block := weight[rows, columns]):
                    factors.append(Factor([v, u], np.exp(left @ block @ right.T)))
    return MarkovNetwork([v for own in parts for v, _, _ in own], factors)
