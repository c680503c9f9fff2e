"""Boltzmann machines with more to them: several layers, filters over images, biases that depend on other numbers."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.fields.layered_answers import greedy
from markovia.learning.fields.layered_field import LayeredField
from markovia.learning.fields.layered_training import NegativePhase
from markovia.learning.fields.unit_layers import UnitLayer
from markovia.models.deep.boltzmann import RBM, BoltzmannSettings
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Several, Whole
from markovia.runtime.estimator import check_fitted
from markovia.runtime.seeds import Seed


@dataclass(eq=False, repr=False)
class DBM(BoltzmannSettings):
    """A deep Boltzmann machine: layers of binary hidden units, each connected to the next.

    Layers are first learned one by one as restricted machines, whose weights are then halved, since units between hear two
    layers; and then together: the positive phase by mean field, the negative one by even and odd layers in turn.

    Parameters
    ----------
    layers
        Hidden units of each layer, the one next to the data first.
    pretrain
        Epochs for each layer by itself; 0 for none.
    visible, method, epochs, ...
        As in `RBM`.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 20)
    >>> dbm = mk.deep.DBM((3, 2), epochs=50, pretrain=20, random_state=0).fit(rows)
    >>> dbm.network().variables[4:], dbm.transform(rows[:2]).shape
    (['h1_0', 'h1_1', 'h1_2', 'h2_0', 'h2_1'], (2, 2))
    """

    layers: Annotated[tuple[int, ...], Several(Whole(1), "numbers of units, such as (16, 8)")] = (16, 8)
    _: KW_ONLY
    pretrain: Annotated[int, Whole(0)] = 20

    def _field(self) -> LayeredField:
        return LayeredField((self._layer(self._width()), *(UnitLayer("binary", n) for n in self.layers)))

    def _pretrain(self, rows: dict[str, Array]) -> None:
        if self.pretrain:
            phase, how = NegativePhase("cd", self.steps), self._training(epochs=self.pretrain)
            pairs = greedy(self._field().layers, self.base_, rows["x"], phase, how, self.random_state)
            for k, found in enumerate(pairs):
                self.parameters_ |= {f"weight{k}": 0.5 * found["weight0"], f"bias{k + 1}": found["bias1"]}


@dataclass(eq=False, repr=False)
class ConvolutionalRBM(RBM):
    """A restricted Boltzmann machine whose weights are filters that slide over an image.

    Parameters
    ----------
    n_components
        Filters, each with a map of hidden units.
    image
        Height and width of the rows, and channels where there are several.
    filter
        The side of the filters.
    visible, method, epochs, ...
        As in `RBM`; `visible` is "binary", "spin", "gaussian" or "relu".

    Examples
    --------
    >>> import markovia as mk
    >>> bars = np.tile(np.eye(4)[[0, 2]], (10, 1)).repeat(4, axis=1)
    >>> crbm = mk.deep.ConvolutionalRBM(2, image=(4, 4), filter=3, epochs=20, random_state=0).fit(bars)
    >>> crbm.transform(bars[:1]).shape, crbm.parameters_["weight0"].shape
    ((1, 8), (3, 3, 1, 2))
    """

    _: KW_ONLY
    image: tuple[int, ...] = (8, 8)
    filter: Count = 3
    visible: Literal["binary", "spin", "gaussian", "relu"] = "binary"
    hidden: Literal["binary"] = "binary"

    def _field(self) -> LayeredField:
        height, width, channels = self._shape()
        maps = (height - self.filter + 1) * (width - self.filter + 1)
        if height * width * channels != self._width() or self.filter > min(height, width):
            raise InvalidArgument(
                f"image={self.image} has {height * width * channels} cells and takes filters up to its sides; X has "
                f"{self._width()} columns, and filter={self.filter}"
            )
        layers = (self._layer(self._width()), UnitLayer("binary", maps * self.n_components))
        return LayeredField(layers, image=(height, width, channels), filter=self.filter)

    def _shape(self) -> tuple[int, int, int]:
        return (*self.image, 1)[:3]  # type: ignore[return-value]

    def _first(self, rows: Array) -> Array:
        return super()._first(rows.reshape(-1, self._shape()[2]))  # one bias a channel


@dataclass(eq=False, repr=False)
class ConditionalRBM(RBM):
    """A restricted Boltzmann machine of rows y whose biases are linear in other numbers X that come with them.

    It learns p(y | X): of a series X may be the rows before. Methods are "cd", "mean-field" and "exact".

    Examples
    --------
    >>> import markovia as mk
    >>> x = np.array([[0.0], [1.0]] * 20)
    >>> crbm = mk.deep.ConditionalRBM(2, epochs=200, random_state=0).fit(x, np.hstack([x, 1 - x]))
    >>> crbm.sample([[0.0], [1.0]], seed=0).tolist(), crbm.score_samples([[1.0]], [[1, 0]]).shape
    ([[0.0, 1.0], [1.0, 0.0]], (1,))
    """

    _: KW_ONLY
    method: Literal["cd", "mean-field", "exact"] = "cd"

    def _prepared(self, X: Any, y: Any, reset: bool) -> dict[str, Array]:  # noqa: N803
        context, rows = self._context(X, reset), np.asarray(np.nan if y is None else y, np.float64)
        width = rows.shape[-1] if reset and rows.ndim else getattr(self, "n_outputs_", 0)
        if rows.shape != (len(context), width) or not np.isfinite(rows).all():
            raise InvalidArgument(
                f"a conditional machine takes X and y, with {len(context)} rows as X and always as many columns; y has the "
                f"shape {rows.shape}"
            )
        self.n_outputs_ = width
        return {"x": self._coded(rows, reset), "context": context}

    def _context(self, X: Any, reset: bool = False) -> Array:  # noqa: N803
        context = self._read(X, reset)
        if reset:
            spread = context.std(axis=0)
            self.context_center_, self.context_scale_ = (
                context.mean(axis=0),
                np.where(spread > 0, spread, 1.0),
            )
        return np.asarray((context - self.context_center_) / self.context_scale_)

    def _width(self) -> int:
        return self.n_outputs_

    def _field(self) -> LayeredField:
        return replace(super()._field(), context=self.n_features_in_)

    def sample(self, X: Any, seed: Seed = None, *, steps: int = 1000) -> Array:  # type: ignore[override]  # noqa: N803
        """Return a draw of y for each row of X, after `steps` sweeps."""
        asked = self._asked()
        rows, context = self._blank(X)
        return self._shown(asked.draws(rows, steps, seed, context))

    def _blank(self, of: Any) -> tuple[Array, Array | None]:
        check_fitted(self, "parameters_")
        context = self._context(np.atleast_2d(of))
        return np.zeros((len(context), len(self.base_))), context
