"""Log-linear models: features fitted to data, and posteriors tilted until features have bounded expectations."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, TooLarge
from markovia.factors.potentials.log_linear import Feature, LogLinear
from markovia.factors.tables.factor import Factor
from markovia.inference.exact.derivatives import mass_gradient
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.field_fit_verbs import listed_features, open_rows, owned_feature
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.memory_budget import readable
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from markovia.learning.fields.log_linear_fit import FieldFit
    from markovia.learning.fields.posterior_regularisation import Projection


@dataclass(frozen=True)
class LogLinearResult(InNotebooks):
    """A fitted log-linear model.

    Attributes
    ----------
    fit
        Everything about the fit.
    """

    fit: "FieldFit"

    @property
    def model(self) -> LogLinear:
        """The features with their weights."""
        return self.fit.model

    @property
    def weights(self) -> Array:
        """The weights."""
        return self.fit.weights

    @property
    def network(self) -> MarkovNetwork:
        """The model as a Markov network, to ask questions of."""
        return MarkovNetwork(self.fit.layout.variables, self.model.factors())

    @property
    def log_likelihood(self) -> float:
        """The log likelihood of all rows, in nats; not a number where log Z is out of reach."""
        return self.fit.log_likelihood

    @property
    def history(self) -> Sequence[float]:
        """The best objective (a row) after each step."""
        return self.fit.history

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.fit.converged

    @property
    def gradient(self) -> Array:
        """The gradient of the mean loss of a row at the end, penalties left out."""
        return self.fit.gradient

    @property
    def expected(self) -> Array:
        """The features' expectations under the model."""
        return self.fit.expected

    @property
    def observed(self) -> Array:
        """The features' means in the data."""
        return self.fit.observed

    def __str__(self) -> str:
        return str(self.fit)


def fit_log_linear(
    features: Iterable[Feature],
    data: Any,
    *,
    weights: Any = None,
    latent: str | Iterable[str] = (),
    missing: str = "error",
    **settings: Any,
) -> LogLinearResult:
    """Fit the weights of features to data.

    Parameters
    ----------
    features
        The features, tied or free.
    data, weights, latent, missing
        As in `MarkovNetwork.fit`.
    **settings
        `method`, `l2`, `l1`, `group_l1`, `groups`, `optimizer`, `start`, `seed`, `restarts`, `max_iterations`, `tolerance`,
        `time_limit`, `checkpoint` and `progress`, as in `MarkovNetwork.fit`.

    Examples
    --------
    >>> import markovia as mk
    >>> coin = mk.Feature("coin", [0, 1], "heads")
    >>> found = mk.fit_log_linear([coin], {"coin": [0, 1, 1, 1]})
    >>> round(float(found.weights[0]), 4)  # log 3
    1.0986
    >>> round(found.log_likelihood, 4), found.converged
    (-2.2493, True)
    """
    from markovia.learning.fields.field_layout import layout_of_features
    from markovia.learning.fields.fitting import fit_field

    unknown = set(settings) - _SETTINGS
    if unknown:
        raise InvalidArgument(f"{sorted(unknown)[0]!r} is no setting of a fit; there are {sorted(_SETTINGS)}")
    listed = listed_features(features)
    layout = layout_of_features(listed)
    source, _ = open_rows(data, {v.name: v for v in layout.variables}, weights, missing, latent)
    return LogLinearResult(fit_field(layout, source, features=listed, **settings))


_SETTINGS = {
    "method", "l2", "l1", "group_l1", "groups", "optimizer", "start", "seed", "restarts", "max_iterations", "tolerance",
    "time_limit", "checkpoint", "progress",
}  # fmt: skip


def posterior_regularisation(
    model: Any,
    features: Iterable[Feature],
    bounds: Any = None,
    *,
    weights: Any = None,
    given: Any = None,
    equal: Any = False,
    slack: float = 0.0,
    max_iterations: int = 500,
    tolerance: float = 1e-9,
) -> "tuple[MarkovNetwork, Projection]":
    """Return the distribution nearest to a model's posterior whose features have bounded expectations, or pull at it.

    Parameters
    ----------
    model
        A Markov network, factor graph or Bayesian network.
    features, bounds
        `E_q[feature] <= bound`, one number a feature.
    weights
        Instead of bounds: what each feature, such as a rule that is 0 or 1, is worth in nats; one number for all or one
        each. The result is the model times exp(weights · features).
    given
        Evidence that the model is conditioned on first.
    equal
        Whether constraints are `=`: for all, or one truth value a feature.
    slack
        The Euclidean length by which all constraints together may be missed.
    max_iterations, tolerance
        Steps at most, and the largest violation that counts as none.

    Returns
    -------
    tuple
        The tilted model over the unobserved variables, and its projection: multipliers and the KL divergence.

    Examples
    --------
    >>> import markovia as mk
    >>> coin = mk.MarkovNetwork({"coin": 2}, [mk.Factor(["coin"], [1, 3])])
    >>> heads = mk.Feature(coin.variable("coin"), [0, 1], "heads")
    >>> tilted, found = mk.posterior_regularisation(coin, [heads], 0.5)
    >>> tilted.query("coin").values.round(6).tolist(), round(float(found.multipliers[0]), 4)
    ([0.5, 0.5], 1.0986)
    >>> pulled, found = mk.posterior_regularisation(coin, [heads], weights=1.0986)
    >>> pulled.query("coin").values.round(4).tolist(), round(found.objective, 4)
    ([0.1, 0.9], -0.9163)
    """
    from markovia.learning.fields.posterior_regularisation import project

    if not isinstance(model, GraphicalModel):
        raise InvalidArgument(
            f"a Markov network, factor graph or Bayesian network is needed, not {type(model).__name__}"
        )
    problem = model._problem(given)
    if not problem.free:
        raise InvalidArgument("all variables are observed, so there is nothing left to regularise")
    variables = [problem.variables[n] for n in problem.free]
    factors = problem.reduced(None)
    known = {v.name: v for v in variables}
    listed = [owned_feature(f, known) for f in ([features] if isinstance(features, Feature) else features)]
    found = project(
        variables,
        factors,
        listed,
        bounds,
        weights=weights,
        equal=equal,
        slack=slack,
        max_iterations=max_iterations,
        tolerance=tolerance,
    )
    return MarkovNetwork(variables, [*factors, *found.factors]), found


def feature_marginals(model: LogLinear, engine: Any = "auto") -> Callable[[tuple[str, ...]], Factor]:
    """Return what a log-linear model's features need to be averaged: a function from names to their marginal."""
    network = MarkovNetwork.log_linear(model)
    if engine != "auto":
        return lambda names: network.query(list(names), engine=engine).factor()
    problem = network._problem(None)
    try:
        gradient = mass_gradient(problem)
    except TooLarge as error:
        raise TooLarge(
            f"exact expectations of the features need {readable(error.bytes or 0.0)}; name an engine that approximates "
            "them, as engine='loopy-bp' or 'gibbs'",
            bytes=error.bytes,
        ) from None
    # an entry's probability is the entry times the derivative of the mass by it, over the mass
    found: dict[frozenset[str], Factor] = {}
    for i, piece in enumerate(problem.pieces):
        table = problem.cut(piece)
        with np.errstate(divide="ignore"):
            logs = np.log(table.values) + gradient.log_slopes[i] - gradient.log_mass
        found[frozenset(table.names)] = Factor.of(table.variables, np.exp(logs))
    return lambda names: found[frozenset(names)]
