"""Diffusion models: rows drowned in noise step by step, and a network that learns to take the noise away again.

References: Ho, Jain and Abbeel (2020); Song et al. (2021) for continuous time; Lipman et al. (2023) for flow matching. The
law is a node of a network: its density has a lower bound, or in continuous time is known, and missing entries are drawn
given the others. Cost: one call of the network a row and step of training, one a step of the way back for a draw.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks.diffusion import denoiser, diffusion, diffusion_distribution
from markovia.factors.networks.recipes import ModuleRecipe
from markovia.models.classifiers.input_checks import class_codes, labels
from markovia.models.deep.deep_model import DeepModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NOT_NEGATIVE, Count, CountOrNone, NumberRange, Positive, Whole
from markovia.runtime.estimator import check_fitted
from markovia.runtime.libraries import laws
from markovia.runtime.registry import resolve

_TWISTED = "markovia.inference.densities.engines.twisted_smc:TwistedSMC"
WAVY = 64
"""Columns up to which the perceptron also sees waves of each."""
LONGEST = 50
"""Steps of a chain that `unroll` writes out at most."""
LEFT = 0.01
"""The share of the learning rate that is left at the end."""
SCHEDULES = {"ddpm": "cosine", "score-sde": "vp", "flow-matching": "flow"}
SAMPLERS = {"ddpm": "ancestral", "score-sde": "ode", "flow-matching": "ode"}


@dataclass(eq=False, repr=False)
class Diffusion(DeepModel):
    """A diffusion model of rows of numbers, perhaps given a class.

    Parameters
    ----------
    steps
        Steps between data and noise.
    kind
        "ddpm", a chain of steps with a bound; "score-sde" or "flow-matching", paths in continuous time with a density.
    schedule
        How noise grows: "cosine", "linear", "sigmoid" or variances of a chain; "vp" or "ve" of a score-sde. None for the
        first of its kind.
    prediction
        What the network says: "noise", "x0" (the row), "mean" or "velocity"; None for the velocity.
    variance
        Of the steps of a chain: "learned", "fixed small" or "fixed large"; None learns that of a chain.
    weighting
        What is made small: "bound", minus the bound itself, or a setting of `mk.objectives.Denoising`. None for "simple" of
        a chain, "velocity" in flow matching.
    sampler, eta, sampling_steps
        How rows are drawn: "ancestral", "ddim" (fewer steps, eta times the noise), or "ode"; None for that of the kind.
    guidance, dropped
        How much more than it should a class counts when rows are drawn, and the share of rows that learn without theirs.
    hidden, layers, net
        Of the perceptron; or a recipe for another network of `(x, t, *context)`, such as `mk.networks.unet(...)`.
    ema
        The weight of the past in the average of the weights that is kept; None keeps the last.
    epochs, batch, learning_rate, training, time_limit, progress, random_state
        As in `mk.Training`.

    Attributes
    ----------
    network_
        The trained network: node "x", parameter "law", and "y" where there are classes.
    classes_
        The classes, if there were any.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> d = mk.deep.Diffusion(steps=8, hidden=8, layers=1, epochs=5, random_state=0).fit(rows)
    >>> d.sample(3, seed=0).shape, d.network().variables
    ((3, 2), ['x'])
    """

    steps: Count = 100
    _: KW_ONLY
    kind: Literal["ddpm", "score-sde", "flow-matching"] = "ddpm"
    schedule: Any = None
    prediction: Literal["noise", "x0", "mean", "velocity"] | None = None
    variance: Literal["learned", "fixed small", "fixed large"] | None = None
    weighting: Literal["bound", "simple", "x0", "velocity", "min-snr"] | None = None
    sampler: Literal["ancestral", "ddim", "ode"] | None = None
    eta: Annotated[float, NOT_NEGATIVE] = 0.0
    sampling_steps: CountOrNone = None
    guidance: Annotated[float, NOT_NEGATIVE] = 0.0
    dropped: Annotated[float, NumberRange(0.0, 1.0, open="high", said="a share below 1")] = 0.1
    hidden: Count = 128
    layers: Annotated[int, Whole(0)] = 3
    net: ModuleRecipe | None = None
    ema: float | None = 0.999
    epochs: Count = 500
    batch: CountOrNone = 128
    learning_rate: Positive = 5e-3

    @staticmethod
    def distribution(net: Any, *context: Any, steps: int = 100, **settings: Any) -> Any:
        """Return the law of a diffusion in a node's function: `lambda net: mk.deep.Diffusion.distribution(net, steps=100)`.

        `net` is a parameter such as `mk.networks.denoiser(2)`, `context` what each element is given, and settings are those
        of `mk.networks.diffusion`.
        """
        return diffusion_distribution(net, *context, steps=steps, **settings)

    # -- what the base asks for --------------------------------------------------------------------------------------

    def _begin(self, rows: Array, y: Any) -> None:
        """Take the units of the first rows, and the classes."""
        self._location = rows.mean(axis=0)
        spread = rows.std(axis=0)
        self._scale = np.where(spread > 0.0, spread, 1.0)
        if y is not None:
            self.classes_, counts = np.unique(labels(self, y, rows), return_counts=True)
            self._shares = counts / len(rows)
        elif hasattr(self, "classes_"):
            del self.classes_

    @property
    def _classes(self) -> int:
        return len(self.classes_) if hasattr(self, "classes_") else 0

    def _stated(self, width: int) -> BayesianNetwork:
        """Return the network: a node with the law, below its class if there are any."""
        chain = self.kind == "ddpm"
        variance = self.variance or ("learned" if chain else "fixed small")
        net = self.net or denoiser(
            width, hidden=self.hidden, layers=self.layers, context=self._classes,
            frequencies=4 if self.layers and width <= WAVY else 0, learned_variance=variance == "learned",
        )  # fmt: skip
        schedule = SCHEDULES[self.kind] if self.schedule is None else self.schedule
        law = diffusion(
            net, shape=[width], steps=self.steps, schedule=schedule if isinstance(schedule, str) else list(schedule),
            prediction=self.prediction or "velocity", variance=variance, sampler=self.sampler or SAMPLERS[self.kind],
            eta=self.eta, sampling_steps=self.sampling_steps, classes=self._classes,
            location=self._location.tolist(), scale=self._scale.tolist(),
        )  # fmt: skip
        if chain != (schedule not in ("vp", "ve", "flow")):
            raise InvalidArgument(f"schedule={schedule!r} does not go with kind={self.kind!r}")
        m = BayesianNetwork()
        m.add("law", Parameter(law))
        if self._classes:
            m.add("y", laws.Categorical(self._shares), plate="row")
            m.add("x", rows_of_class, plate="row")
        else:
            m.add("x", rows_of_law, plate="row")
        return m

    def _objective(self) -> Any:
        """Return the bound, or the denoising loss."""
        weighting = self.weighting or ("velocity" if self.kind == "flow-matching" else "simple")
        if weighting == "bound":
            return "elbo"
        dropped = self.dropped if self._classes else 0.0
        return resolve("markovia.learning.neural.denoising:Denoising")(weighting=weighting, dropped=dropped)

    def _data(self, rows: Array, y: Any = None) -> dict[str, Any]:
        """Return rows with the codes of their classes."""
        if not self._classes:
            if y is not None and hasattr(self, "network_"):
                raise InvalidArgument("the model was fitted without classes, so that y= means nothing to it")
            return {"x": rows}
        if y is None:
            raise InvalidArgument("the model was fitted with classes; say y=, one a row")
        return {"x": rows, "y": self._codes(y)}

    def _codes(self, y: Any) -> Any:
        return np.asarray(class_codes(np.asarray(y), self.classes_), dtype=np.int64)

    def _read(self, X: Any, reset: bool) -> Array:  # noqa: N803
        rows = super()._read(X, reset)
        if np.isnan(rows).any():
            raise InvalidArgument(
                "X has missing entries (NaN); fit needs complete rows, impute(X) draws them"
            )
        return rows

    def _training(self, **changed: Any) -> Training:
        how = super()._training(**changed)
        return how if self.training is not None else replace(how, ema=self.ema, decay=LEFT)

    # -- verbs -------------------------------------------------------------------------------------------------------

    def sample(
        self, n: int = 1, seed: Any = None, *, y: Any = None, guidance: float | None = None, classifier: Any = None,
    ) -> Array:  # fmt: skip
        """Return n rows drawn from the model.

        `y` is the class of all, or one a row; classes are drawn where none are said. `guidance` is how much more than it
        should the class counts, or the weight of the gradient of `classifier`, a function in JAX of a row with noise and the
        time between 0 and 1 that returns the log probability of what is wanted.
        """
        check_fitted(self, "network_")
        network = self.network_
        weight = self.guidance if guidance is None else guidance
        if weight or classifier is not None:
            if classifier is None and not self._classes:
                raise InvalidArgument("guidance= needs classes or a classifier=, and there is neither")
            network = network.copy()
            law: Any = network._parameters["law"]
            guided = replace(law.value, guidance=float(weight), classifier=classifier)
            network._parameters = {"law": law.with_value(guided)}
        if y is not None:
            network = network.do(y=self._codes(np.broadcast_to(y, (n,))))
        drawn: Any = network.sample(1, given={"row": n}, seed=seed)
        found: Array = np.asarray(drawn["x"])[0]
        return found

    def score_samples(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Return the log density of each row (with its class, if it is said), or a lower bound on it.

        Classes that are not said are summed over.
        """
        check_fitted(self, "network_")
        rows = self._read(X, reset=False)
        if y is None and self._classes:
            each = [self.score_samples(X, np.full(len(rows), label)) for label in self.classes_]
            return np.asarray(np.logaddexp.reduce(each, axis=0))
        return np.asarray(self.network_.log_evidence(self._data(rows, y), by="row"))

    def impute(self, X: Any, y: Any = None, *, draws: int | None = None, **settings: Any) -> Array:  # noqa: N803
        """Return rows with missing entries (NaN) drawn given the others; several times with `draws`, draws in front.

        Known entries stay. Settings are those of the engine "twisted-smc", such as `particles` and `seed`.
        """
        check_fitted(self, "network_")
        rows = np.array(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise InvalidArgument(f"impute takes rows of {self.n_features_in_} numbers, not {rows.shape}")
        gaps = np.isnan(rows).any(axis=1)
        found = np.repeat(rows[None], draws or 1, axis=0)
        if gaps.any():
            engine = resolve(_TWISTED)(draws=draws or 1, **settings)
            given = self._data(rows[gaps], None if y is None else np.asarray(y)[gaps])
            post: Any = self.network_.query("x", given=given, missing="impute", engine=engine)
            found[:, gaps] = np.asarray(post.draws["x"])[0]
        return found if draws is not None else found[0]

    def unroll(self) -> BayesianNetwork:
        """Return the chain as a network: "x8", noise, to "x0", a row, each a normal distribution given the one before.

        Of chains with few steps, which other engines then answer. Rows are on the plate "row".
        """
        check_fitted(self, "network_")
        if self.kind != "ddpm" or self.steps > LONGEST:
            raise InvalidArgument(
                f"unroll is for kind='ddpm' of at most {LONGEST} steps, not {self.kind!r} of {self.steps}"
            )
        m = BayesianNetwork()
        m._parameters = dict(self.network_._parameters)
        above = []
        if self._classes:
            m.add("y", laws.Categorical(self._shares), plate="row")
            above = ["y"]
        m.add(f"x{self.steps}", laws.Normal(0.0, 1.0), size=self.n_features_in_, plate="row")
        for step in range(self.steps, 0, -1):
            form: Any = ReverseStep(step).of_class if above else ReverseStep(step)
            m.add(f"x{step - 1}", form, parents=[f"x{step}", *above, "law"], plate="row")
        return m


def rows_of_law(law: Any) -> Any:
    """Return the law of rows."""
    return law.distribution()


def rows_of_class(y: Any, law: Any) -> Any:
    """Return the law of rows given their classes."""
    return law.distribution(y)


@dataclass(frozen=True)
class ReverseStep:
    """A step back as a node's function, perhaps given a class."""

    step: int

    def __call__(self, x: Any, law: Any) -> Any:
        """Return the distribution of the step before."""
        return laws.Normal(*law(x, step=self.step))

    def of_class(self, x: Any, y: Any, law: Any) -> Any:
        """Return the distribution of the step before, given classes."""
        return laws.Normal(*law(x, y, step=self.step))
