"""Presets of laws with exact densities: normalising flows, and autoregressive models of numbers, bits and pictures.

References in `markovia.factors.networks.flow_layers` and `autoregressive_modules`. A row's log density is one pass through
the network, no bound. Numbers are in any unit: training sees columns less their mean in units of their deviation.
"""

from dataclasses import KW_ONLY, dataclass, replace
from math import isqrt, prod
from typing import Any, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.functions.function_node import Input
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks import flows
from markovia.factors.networks.recipes import ModuleRecipe
from markovia.models.classifiers.feature_rows import numbers
from markovia.models.classifiers.input_checks import class_codes
from markovia.models.deep.deep_model import DeepModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, CountOrNone, Positive
from markovia.runtime.estimator import check_fitted
from markovia.runtime.libraries import laws
from markovia.runtime.registry import resolve


class RowLaw(DeepModel):
    """What presets share whose rows have one law, perhaps given what `fit(X, y)` is told of each: a class, or numbers."""

    shape: Any
    classes_: Array | None

    _recipe: Any

    def _begin(self, rows: Array, y: Any, units: bool = True) -> None:
        """Look at the units of columns, and at what rows are given."""
        self._units = (rows.mean(axis=0), rows.std(axis=0)) if units else (np.zeros(0), np.zeros(0))
        same = self._units[1] <= 1e-13 * np.abs(self._units[0])
        if same.any():
            many = f"all {len(rows)} rows" if len(rows) > 1 else "the one sample"
            raise InvalidArgument(
                f"column {int(same.argmax())} is the same in {many}, so that its density has no bound; leave it out, or "
                "add noise to rows that were rounded"
            )
        self.classes_, self._context = None, 0
        if y is not None:
            self.classes_ = None if np.asarray(y).dtype.kind == "f" else np.unique(y)
            told = self._told(y, len(rows))
            spread = told.std(axis=0)
            self._told_units = told.mean(axis=0), np.where(spread > 0, spread, 1.0)
            self._context = told.shape[1]

    def _told(self, y: Any, n: int) -> Array:
        """Return what rows are given as columns of numbers: classes are 0 and 1."""
        said = np.asarray(y)
        if self.classes_ is not None:
            said = np.eye(len(self.classes_))[np.asarray(class_codes(said, self.classes_), dtype=np.int64)]
        said = np.asarray(said, dtype=np.float64).reshape(len(said), -1)
        if len(said) != n or self._context not in (0, said.shape[1]) or not np.isfinite(said).all():
            raise InvalidArgument(f"y= is a class or finite numbers for each of {n} rows, not {np.shape(y)}")
        return said

    def _stated(self, width: int) -> BayesianNetwork:
        """Return the network: rows of the law, below what they are given."""
        m = BayesianNetwork()
        m.add("law", Parameter(self._recipe(width)))
        shape = self.shape if self.shape and self._units[0].size else self._units[0].shape
        known = dict(zip(("centre", "unit"), (v.reshape(shape) for v in self._units), strict=True))
        if self._context:
            known |= dict(zip(("given_centre", "given_unit"), self._told_units, strict=True))
            m.add("y", Input(), plate="row")
        for name, value in known.items():
            m.add(name, Parameter(value, fixed=True))
        m.add("x", rows_given if self._context else rows_alone, plate="row")
        return m

    def _data(self, rows: Array, y: Any = None) -> dict[str, Any]:
        """Return rows in their shape, and what they are given."""
        if (y is None) == bool(self._context):
            have = "with y=, what rows are given; say it" if y is None else "without y="
            raise InvalidArgument(f"the model was fitted {have}")
        data = {"x": rows.reshape(len(rows), *(self.shape or rows.shape[1:]))}
        return data if y is None else data | {"y": self._told(y, len(rows))}

    def _learn(self, network: BayesianNetwork, data: dict[str, Any], how: Training, go_on: bool) -> None:
        """Train in standard units, for which 32 bits are enough, and put the units back afterwards."""
        own = {n: network._parameters[n] for n in ("centre", "unit")}
        centre, unit = (p.value for p in own.values())
        plain = {"centre": Parameter(0 * centre, fixed=True), "unit": Parameter(0 * unit + 1, fixed=True)}
        network._parameters = {**network._parameters, **plain}
        if centre.size:
            data = {**data, "x": (data["x"] - centre) / unit}
        super()._learn(network, data, how, go_on)
        network._parameters = {**network._parameters, **own}
        assert network._fit is not None
        record, tables = network._fit
        lost = float(np.log(unit).sum())
        moved: dict[str, Any] = {"history": tuple(h - lost for h in record.history)}
        moved |= {"log_likelihood": record.log_likelihood - len(data["x"]) * lost}
        network._fit = (replace(record, **moved), tables)

    def _read(self, X: Any, reset: bool) -> Array:  # noqa: N803
        return np.asarray(numbers(self, X, reset=reset, gaps="fill them in: the law is one of whole rows"))

    def score_samples(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Return the exact log density of each row, given what `y=` says: `network().log_evidence(..., by="row")`."""
        check_fitted(self, "network_")
        found: Array = self.network_.log_evidence(self._data(self._read(X, reset=False), y), by="row")
        return found

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the mean log density of a row."""
        return float(self.score_samples(X, y).mean())

    def sample(self, n: int = 1, seed: Any = None, y: Any = None) -> Array:
        """Return n rows drawn from the law, given what `y=` says of all of them, or of each."""
        check_fitted(self, "network_")
        y = np.full(n, y) if y is not None and np.ndim(y) == 0 else y
        given = {**self._data(np.zeros((n, self.n_features_in_)), y), "row": n}
        given.pop("x")
        drawn: Any = self.network_.sample(1, given=given, seed=seed)
        rows: Array = np.asarray(drawn["x"])[0].reshape(n, -1)
        return rows


@dataclass(eq=False, repr=False)
class Flow(RowLaw):
    """A normalising flow: rows of numbers are normal noise, bent by invertible layers that are learned.

    Parameters
    ----------
    kind
        The layers: "coupling", "autoregressive", "planar", "radial", "linear" (a Gaussian), "continuous", "glow" (pictures).
    bend
        How couplings and autoregressive layers bend a number: "spline", "affine" or "additive".
    layers, hidden, depth
        How many layers (on each scale of a picture), and width and depth of the networks inside them.
    shape
        (height, width) or (channels, height, width) of the pictures that rows are, for "glow".
    epochs, batch, learning_rate, training, time_limit, progress, random_state
        As in `mk.Training`; unless `training=` says otherwise, the learning rate falls to a hundredth.

    Attributes
    ----------
    network_
        The trained network: node "x", parameter "law", and the input "y" after `fit(X, y)`; `network()` is a copy of it.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.random.default_rng(0).normal(size=(100, 2)) * [1e-3, 1e3]
    >>> flow = mk.deep.Flow(bend="affine", layers=2, hidden=8, epochs=5, random_state=0).fit(rows)
    >>> flow.transform(rows[:3]).shape, flow.sample(4, seed=0).shape, flow.score_samples(rows[:3]).shape
    ((3, 2), (4, 2), (3,))
    """

    kind: Literal["coupling", "autoregressive", "planar", "radial", "linear", "continuous", "glow"] = (
        "coupling"
    )
    _: KW_ONLY
    bend: Literal["spline", "affine", "additive"] = "spline"
    layers: Count = 6
    hidden: Count = 64
    depth: Count = 2
    shape: Any = None
    epochs: Count = 150
    batch: CountOrNone = 128
    learning_rate: Positive = 3e-3

    def _recipe(self, width: int) -> ModuleRecipe:
        """Return the recipe of the settings."""
        if self.kind == "glow":
            if self.shape is None or prod(self.shape) != width:
                raise InvalidArgument(
                    f"'glow' needs the shape= of pictures of {width} numbers, not {self.shape}"
                )
            return flows.glow(
                self.shape, steps=self.layers, hidden=self.hidden, kind=self.bend, context=self._context
            )
        if self.kind == "linear":
            if self._context:
                raise InvalidArgument("kind='linear' is one Gaussian for all rows, and takes no y=")
            return flows.linear(width)
        said: dict[str, Any] = {"context": self._context}
        if self.kind != "continuous":
            said["layers"] = self.layers
        if self.kind not in ("planar", "radial"):
            said |= {"hidden": self.hidden, "depth": self.depth}
        if self.kind in ("coupling", "autoregressive"):
            said["kind"] = self.bend
        made: ModuleRecipe = getattr(flows, self.kind)(width, **said)
        return made

    def _training(self, **changed: Any) -> Training:
        how = super()._training(**changed)
        return how if self.training is not None or "epochs" in changed else replace(how, decay=0.01, clip=1.0)

    def transform(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Return the noise behind each row, normal and independent where the model is right."""
        check_fitted(self, "network_")
        return self._carried(self._read(X, reset=False), y, True)

    def inverse_transform(self, U: Any, y: Any = None) -> Array:  # noqa: N803
        """Return the rows that some noise becomes."""
        check_fitted(self, "network_")
        return self._carried(np.asarray(U, dtype=np.float64), y, False)

    def _carried(self, rows: Array, y: Any, back: bool) -> Array:
        data, parts = self._data(rows, y), self.network_.parameters
        given = [(data["y"] - parts["given_centre"]) / parts["given_unit"]] if y is not None else []
        value = (data["x"] - parts["centre"]) / parts["unit"] if back else data["x"]
        carried = resolve("markovia.factors.networks.flow_modules:carried_rows")
        found: Array = carried(parts["law"], value, given, back)[0]
        return (found if back else parts["centre"] + parts["unit"] * found).reshape(len(rows), -1)


@dataclass(eq=False, repr=False)
class Autoregressive(RowLaw):
    """Rows whose columns are drawn one after the other, each given those before it; densities are exact.

    Parameters
    ----------
    kind
        "made" (a masked perceptron), "nade" (shared weights), or "pixel-cnn" (masked convolutions, for pictures).
    law
        What a column is: "binary" (0 and 1), "gaussian", or for pictures "states" (0, 1, ..., up to the largest seen).
    hidden, depth
        Width and depth of the network; of convolutions, planes and how many.
    shape
        (height, width) of pictures; by default they are square.
    epochs, batch, learning_rate, training, time_limit, progress, random_state
        As in `mk.Training`.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 20)
    >>> made = mk.deep.Autoregressive(hidden=16, epochs=60, learning_rate=0.02, random_state=0).fit(rows)
    >>> bool(made.score_samples(rows).mean() > -1), made.sample(3, seed=0).shape
    (True, (3, 4))
    """

    kind: Literal["made", "nade", "pixel-cnn"] = "made"
    _: KW_ONLY
    law: Literal["binary", "gaussian", "states"] = "binary"
    hidden: Count = 64
    depth: Count = 2
    shape: Any = None

    def _begin(self, rows: Array, y: Any, units: bool = True) -> None:
        """Look at the states of columns."""
        self._top = 1 if self.law == "binary" else max(int(rows.max()), 1)
        if self.law != "gaussian" and ((rows % 1 != 0) | (rows < 0) | (rows > self._top)).any():
            raise InvalidArgument(
                f"law={self.law!r} is for whole numbers from 0 to {self._top}; say 'gaussian'"
            )
        super()._begin(rows, y, self.law == "gaussian")

    def _data(self, rows: Array, y: Any = None) -> dict[str, Any]:
        data = super()._data(rows, y)
        picture = self._picture(rows.shape[1]) if self.kind == "pixel-cnn" else rows.shape[1:]
        return data | {"x": rows.reshape(len(rows), *picture)}

    def _picture(self, width: int) -> tuple[int, ...]:
        shape = (isqrt(width), isqrt(width)) if self.shape is None else tuple(self.shape)
        if prod(shape) != width:
            raise InvalidArgument(f"rows of {width} numbers are no pictures of shape {shape}; say shape=")
        return shape

    def _recipe(self, width: int) -> ModuleRecipe:
        """Return the recipe of the settings."""
        if self.law == ("gaussian" if self.kind == "pixel-cnn" else "states"):
            raise InvalidArgument(
                f"kind={self.kind!r} has no law={self.law!r}: numbers 'made', states 'pixel-cnn'"
            )
        inside: dict[str, Any] = {"hidden": self.hidden, "context": self._context}
        if self.kind == "pixel-cnn":
            return flows.pixel_cnn(self._picture(width), states=self._top + 1, blocks=self.depth, **inside)
        if self.kind == "nade":
            return flows.nade(width, law=self.law, **inside)
        return flows.made(width, law=self.law, depth=self.depth, **inside)


def rows_alone(law: Any, centre: Any, unit: Any) -> Any:
    """Return the law of rows."""
    return _in_units(law.distribution(), centre, unit)


def rows_given(y: Any, law: Any, centre: Any, unit: Any, given_centre: Any, given_unit: Any) -> Any:
    """Return the law of rows given what is told."""
    return _in_units(law.distribution((y - given_centre) / given_unit), centre, unit)


def _in_units(law: Any, centre: Any, unit: Any) -> Any:
    """Return the law of numbers in their units; states have none."""
    if not centre.size:
        return law
    scaled = laws.transforms.AffineTransform(centre, unit)
    return laws.TransformedDistribution(law, laws.transforms.IndependentTransform(scaled, centre.ndim))
