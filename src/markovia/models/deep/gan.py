"""Models that are learned by a critic: rows are a function of noise, and draws are told from data until they cannot be.

References: Goodfellow et al. (2014); Gulrajani et al. (2017), the default; Mirza and Osindero (2014) for classes; Chen et
al. (2016) for codes that are read off; Makhzani et al. (2015) for autoencoders; Karras et al. (2018) for growing pictures.
A row has no density here: compare samples (`mk.learning.energy_distance`, `mode_coverage`). What led to a row is a question
to the network, with noise.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.functions.function_node import Input
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks.adversarial_networks import pyramid_critic, pyramid_generator, spectral
from markovia.factors.networks.recipes import gaussian_mlp, mlp
from markovia.models.classifiers.feature_rows import numbers
from markovia.models.deep.deep_model import DeepModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, CountOrNone, NumberRange, Positive
from markovia.runtime.estimator import check_fitted, fitting
from markovia.runtime.libraries import laws
from markovia.runtime.registry import resolve

Game = Literal[
    "wasserstein", "non-saturating", "vanilla", "least-squares", "hinge", "kl", "reverse-kl", "pearson"
]
Penalty = NumberRange(0.0, np.inf, open="high", said="a number, 0 or more", none=True)
SIDES = (4, 8, 16, 32, 64)
"""The sides of pictures that a progressive model goes through."""


class CriticModel(DeepModel):
    """What presets share whose objective has a critic: units, whole rows, and a critic that goes on with them."""

    latent: int
    sizes_: tuple[int, ...] = ()
    classes_: Any = None

    def _read(self, X: Any, reset: bool) -> Array:  # noqa: N803
        gaps = "drop those rows, or impute them: a critic compares whole rows"
        return np.asarray(numbers(self, X, reset=reset, gaps=gaps))

    def _begin(self, rows: Array, y: Any) -> None:
        self.loc_, scale = rows.mean(axis=0), rows.std(axis=0)
        self.scale_ = np.where(scale > 1e-12 * np.abs(self.loc_), scale, 1.0)

    def _units(self) -> BayesianNetwork:
        """Return a network with what all have: the code, and the units of the data."""
        m = BayesianNetwork()
        m.add("loc", Parameter(self.loc_, fixed=True))
        m.add("scale", Parameter(self.scale_, fixed=True))
        m.add("z", laws.Normal(0.0, 1.0), size=self.latent, plate="row")
        return m

    def _training(self, **changed: Any) -> Any:
        """Return how to train; steps become short towards the end of a fit, where a game would go on in circles."""
        return super()._training(**({} if self.training or changed else {"decay": 0.05}), **changed)

    def _critic(self) -> Any:
        """Return the critic of the network's last fit, to go on with; None where there is none."""
        details = {} if self.network_.fit_ is None else self.network_.fit_.details
        return next(iter(details.get("extra", {}).values()), None)

    def _adversarial(self, recipe: Any, fresh: bool = False, **settings: Any) -> Any:
        """Return the objective, with the critic of the fit before or one of a recipe."""
        kind = resolve("markovia.learning.neural.adversarial:Adversarial")
        return kind(critic=recipe if fresh else self._critic() or recipe, **settings)

    def _computed(self, function: Any, taken: str, rows: Any, *others: str) -> Array:
        """Return a function of rows and of trained parameters."""
        m = BayesianNetwork()
        for name in (*others, "loc", "scale"):
            m.add(name, self.network_._parameters[name])
        m.add(taken, Input(), plate="row")
        m.add("value", function, plate="row")
        drawn: Any = m.sample(1, given={taken: rows}, seed=0)
        found: Array = np.asarray(drawn["value"])[0]
        return found

    def _checked(self, codes: Any) -> Array:
        check_fitted(self, "network_")
        found, wanted = np.asarray(codes, float), self.latent
        if found.ndim != 2 or found.shape[1] != wanted:
            raise InvalidArgument(f"codes have {wanted} columns, not shape {found.shape}")
        return found


@dataclass(eq=False, repr=False)
class GAN(CriticModel):
    """A generative adversarial network: rows are a network's function of noise, given a class if there are such.

    Parameters
    ----------
    latent
        Numbers of the noise.
    objective
        What the critic estimates: "wasserstein", or another loss of `mk.objectives.Adversarial`.
    hidden, layers
        Width and number of the hidden layers of the generator and of the critic.
    penalty, critic_steps
        Of the critic, as in `mk.objectives.Adversarial`; None for what is usual with the objective.
    spectral
        Whether the critic's matrices are divided by their largest singular values, in the place of a penalty; not of
        pictures that grow.
    progressive
        Whether rows are square pictures that are learned at 4 x 4 pixels first, then twice as fine, and so on, with as many
        epochs for each size.
    epochs, batch, learning_rate, training, time_limit, progress, random_state
        As in `mk.Training`; steps become short towards the end unless `training=` is given.

    Attributes
    ----------
    network_
        The trained network: nodes "z", "x" and, with classes, "y".
    classes_
        The classes; None without.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.random.default_rng(0).normal([[5.0, -1.0]], [[1.0, 0.1]], (60, 2))
    >>> gan = mk.deep.GAN(latent=2, hidden=8, epochs=2, random_state=0).fit(rows)
    >>> gan.sample(3, seed=0).shape
    (3, 2)
    """

    latent: Count = 8
    objective: Game = "wasserstein"
    _: KW_ONLY
    hidden: Count = 64
    layers: Count = 2
    penalty: Annotated[float | None, Penalty] = None
    critic_steps: CountOrNone = None
    spectral: bool = False
    progressive: bool = False
    epochs: Count = 200
    learning_rate: Positive = 2e-3

    # -- the network -------------------------------------------------------------------------------------------------

    def _begin(self, rows: Array, y: Any) -> None:
        super()._begin(rows, y)
        self.sizes_, self.classes_ = (), None
        if self.progressive:  # one unit for all pixels, which is that of all sizes
            self.loc_, self.scale_ = np.asarray(rows.mean()), np.asarray(rows.std() or 1.0)
            self.sizes_ = tuple(n for n in SIDES if n**2 <= rows.shape[1])
            if not self.sizes_ or self.sizes_[-1] ** 2 != rows.shape[1]:
                raise InvalidArgument(
                    f"progressive=True takes pictures of 4 x 4, 8 x 8, ... pixels, not rows of {rows.shape[1]} columns"
                )
        if y is not None:
            self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
            self.shares_ = np.bincount(codes) / len(codes)

    def _stated(self, width: int) -> BayesianNetwork:
        m, states = self._units(), 0 if self.classes_ is None else len(self.classes_)
        recipe = mlp(self.latent + states, width, hidden=self.hidden, layers=self.layers, activation="relu")
        if self.sizes_:
            recipe = pyramid_generator(self.latent + states, self.sizes_, hidden=self.hidden)
        m.add("generator", Parameter(recipe))
        if not states:
            m.add("x", generated, plate="row")
            return m
        m.add("indicators", Parameter(np.eye(states), fixed=True))
        m.add("shares", Parameter(self.shares_, fixed=True))
        m.add("y", of_shares, plate="row")
        m.add("x", generated_given, plate="row")
        return m

    def _data(self, rows: Array, y: Any = None) -> dict[str, Any]:
        if self.classes_ is None:
            return {"x": rows}
        if y is None:
            raise InvalidArgument("the model was begun with classes; give y= with the rows")
        return {"x": rows, "y": self._codes(y, len(rows))}

    def _codes(self, y: Any, n: int) -> Any:
        """Return the numbers of classes, one a row; one class is that of all rows."""
        if self.classes_ is None:
            raise InvalidArgument("the model was fitted without classes; fit(X, y) learns given them")
        labels = np.full(n, y) if np.ndim(y) == 0 else np.asarray(y)
        if labels.shape != (n,) or not np.isin(labels, self.classes_).all():
            raise InvalidArgument(
                f"y= is one of the classes {self.classes_.tolist()} for all {n} rows, or one for each"
            )
        return np.searchsorted(self.classes_, labels)

    def _objective(self, **settings: Any) -> Any:
        seen = 0 if self.classes_ is None or "sees" in settings else len(self.classes_)
        shape: dict[str, Any] = {"hidden": self.hidden, "layers": self.layers}
        recipe = mlp(seen + np.size(self.loc_), "scalar", activation="relu", **shape)
        if self.sizes_:
            recipe = pyramid_critic(seen, self.sizes_, hidden=self.hidden)
        elif self.spectral:
            recipe = spectral(recipe)
        return self._adversarial(
            recipe, loss=self.objective,
            penalty=0.0 if self.spectral and self.penalty is None else self.penalty,
            critic_steps=self.critic_steps or (3 if self.objective == "wasserstein" else 1),
            standardise="whole" if self.sizes_ else True, **settings,
        )  # fmt: skip

    # -- verbs -------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from rows, given their classes if there are such."""
        if not self.progressive:
            return super().fit(X, y)
        with fitting(self):
            rows = self._read(X, reset=True)
            self._begin(rows, y)
            sizes = self.sizes_
            for stage in range(1, len(sizes) + 1):
                self._grow(sizes[:stage], rows, y)
        return self

    def _grow(self, sizes: tuple[int, ...], rows: Array, y: Any) -> None:
        """Learn pictures of the last of some sizes, from where the sizes before have led to."""
        self.sizes_, side = sizes, sizes[-1]
        n = int(np.sqrt(rows.shape[1])) // side
        coarse = rows.reshape(-1, side, n, side, n).mean(axis=(2, 4)).reshape(len(rows), -1)
        network = self._stated(side**2)
        known, critic = network._parameters, None
        if len(sizes) > 1:
            critic = _larger(Parameter(self._objective(fresh=True).critic), self._critic())
            larger = _larger(known["generator"], self.network_._parameters["generator"])
            network._parameters = {**known, "generator": larger}
        self.network_ = network
        method = replace(self._objective(), **({"critic": critic} if critic else {}))
        network.partial_fit(self._data(coarse, y), method=method, training=self._training())

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """Say that rows have no density."""
        check_fitted(self, "network_")
        raise UnsupportedModel(
            f"{type(self).__name__} has no density of a row; compare samples with data by mk.learning.energy_distance or "
            "mode_coverage, or learn a model that has one"
        )

    def sample(self, n: int = 1, seed: Any = None, y: Any = None) -> Array:
        """Return n rows drawn from the model: of classes as in the data, of one class, or of one a row."""
        check_fitted(self, "network_")
        if y is None:
            return super().sample(n, seed)
        drawn: Any = self.network_.do(y=self._codes(y, n)).sample(1, given={"row": n}, seed=seed)
        found: Array = np.asarray(drawn["x"])[0]
        return found

    def inverse_transform(self, Z: Any, y: Any = None) -> Array:  # noqa: N803
        """Return the rows that codes lead to, given classes where the model has such."""
        codes = self._checked(Z)
        network = self.network_.do(z=codes)
        if self.classes_ is not None:
            network = network.do(y=self._codes(y, len(codes)))
        drawn: Any = network.sample(1, given={"row": len(codes)}, seed=0)
        found: Array = np.asarray(drawn["x"])[0]
        return found


@dataclass(eq=False, repr=False)
class InfoGAN(GAN):
    """A generative adversarial network with classes that nobody labelled, and that can be read off its rows.

    The class "y" is latent; its guide, which reads it off a row, is learned with the generator by a lower bound on the
    information that a row has about it.

    There are `codes` classes; `information` is the weight of the bound. Other settings as in `GAN`.
    """

    codes: Count = 10
    _: KW_ONLY
    information: Positive = 1.0

    def _begin(self, rows: Array, y: Any) -> None:
        if self.progressive:
            raise InvalidArgument("InfoGAN does not grow pictures; leave progressive= out")
        super()._begin(rows, None)
        self.classes_, self.shares_ = np.arange(self.codes), np.full(self.codes, 1 / self.codes)

    def _stated(self, width: int) -> BayesianNetwork:
        m = super()._stated(width)
        m.add("recogniser", Parameter(mlp(width, self.codes, hidden=self.hidden, layers=self.layers)))
        m.guide("y", recognised)
        return m

    def _data(self, rows: Array, y: Any = None) -> dict[str, Any]:
        return {"x": rows}

    def _objective(self, **settings: Any) -> Any:
        return super()._objective(information=self.information, sees=("x",))

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the probabilities of each class, given a row, by the guide."""
        check_fitted(self, "network_")
        logits = self._computed(recogniser_logits, "x", self._read(X, reset=False), "recogniser")
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the most probable class of each row, a number from 0."""
        return self.transform(X).argmax(axis=1)


@dataclass(eq=False, repr=False)
class AdversarialAutoencoder(CriticModel):
    """An autoencoder whose codes a critic cannot tell from draws of their prior.

    Rows are normal around a network's function of the code; the guide proposes codes from rows. It is learned by
    reconstruction, whose weight for each column is `reconstruction`, and by a critic of codes in the place of a divergence
    from the prior. Other settings as in `GAN`.
    """

    latent: Count = 2
    _: KW_ONLY
    hidden: Count = 64
    layers: Count = 2
    reconstruction: Positive = 1.0

    def _stated(self, width: int) -> BayesianNetwork:
        m = self._units()
        shape: dict[str, Any] = {"hidden": self.hidden, "layers": self.layers}
        m.add("generator", Parameter(mlp(self.latent, width, **shape)))
        m.add("encoder", Parameter(gaussian_mlp(width, self.latent, **shape)))
        m.add("noise", Parameter(0.5, support="positive"))
        m.add("x", decoded, plate="row")
        m.guide("z", encoded)
        return m

    def _objective(self) -> Any:
        recipe = mlp(self.latent, "scalar", hidden=self.hidden, layers=self.layers)
        return self._adversarial(recipe, sees=("z",), reconstruction=self.reconstruction / np.size(self.loc_))

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the mean of the guide's proposals for each row; the model's own answer is a `query` to `network()`."""
        check_fitted(self, "network_")
        return self._computed(encoder_location, "x", self._read(X, reset=False), "encoder")

    def inverse_transform(self, Z: Any) -> Array:  # noqa: N803
        """Return the means of the rows that codes lead to."""
        return self._computed(generated, "z", self._checked(Z), "generator")


def _larger(new: Parameter, old: Parameter) -> Parameter:
    """Return a parameter for a pyramid with more sizes than an old one, whose blocks it takes over."""
    assert new.recipe is not None
    grown = resolve("markovia.factors.networks.adversarial_modules:grown")
    return new.with_value(grown(new.recipe.build(0), old.value))


# -- the functions of the networks' nodes, by name so that they are saved ----------------------------------------------


def of_shares(shares: Any) -> Any:
    """Return the distribution of a class."""
    return laws.Categorical(probs=shares)


def generated(z: Any, generator: Any, loc: Any, scale: Any) -> Any:
    """Return rows of codes."""
    return loc + scale * generator(z)


def generated_given(z: Any, y: Any, generator: Any, indicators: Any, loc: Any, scale: Any) -> Any:
    """Return rows of codes and classes."""
    return loc + scale * generator(z, indicators[y])


def recogniser_logits(x: Any, recogniser: Any, loc: Any, scale: Any) -> Any:
    """Return log weights of classes, read off rows."""
    return recogniser((x - loc) / scale)


def recognised(x: Any, recogniser: Any, loc: Any, scale: Any) -> Any:
    """Return the guide of a class."""
    return laws.Categorical(logits=recogniser_logits(x, recogniser, loc, scale))


def decoded(z: Any, generator: Any, noise: Any, loc: Any, scale: Any) -> Any:
    """Return the distribution of rows, given their codes."""
    return laws.Normal(generated(z, generator, loc, scale), scale * noise)


def encoder_location(x: Any, encoder: Any, loc: Any, scale: Any) -> Any:
    """Return the means of proposed codes."""
    return encoder((x - loc) / scale)[0]


def encoded(x: Any, encoder: Any, loc: Any, scale: Any) -> Any:
    """Return the guide of codes."""
    return laws.Normal(*encoder((x - loc) / scale))
