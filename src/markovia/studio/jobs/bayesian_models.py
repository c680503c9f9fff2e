"""Bayesian models that the studio can sample: textbook examples, and regressions of an uploaded table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, check_known
from markovia.factors.quantities.quantity import Quantity
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Choice, check
from markovia.studio.documents.findings import findings
from markovia.studio.documents.messages import Given


class PosteriorQuestion(NamedTuple):
    """A model, what is given, what is asked for, and other names for quantities."""

    model: Any
    given: Mapping[str, Any]
    targets: Sequence[str]
    labels: Mapping[str, str] = {}


def of(source: Mapping[str, Any]) -> PosteriorQuestion:
    """Return the problem that a request describes; see `families.posterior`."""
    if "example" in source:
        if source["example"] not in EXAMPLES:
            raise InvalidArgument(
                f"there is no Bayesian example {source['example']!r}; there are {', '.join(EXAMPLES)}"
            )
        return EXAMPLES[source["example"]][1]()
    if "regression" in source:
        return regression(**source["regression"])
    model = ports.call("loads", source["model"], "json")
    given = findings(model, msgspec.convert(source["given"], Given))
    numbers = [n for n in model.variables if n not in given and isinstance(model.variable(n), Quantity)]
    if not numbers:
        raise InvalidArgument("the sampler draws numbers, and every variable of this model has states")
    return PosteriorQuestion(model, given, numbers)


def eight_schools() -> PosteriorQuestion:
    """Return Rubin's eight schools (1981): effects of coaching, partly pooled."""
    import markovia.distributions as dist

    model = BayesianNetwork()
    model.add("mu", dist.Normal(0, 5))
    model.add("tau", dist.HalfCauchy(5))
    model.add("theta", lambda mu, tau: dist.Normal(mu, tau), plate="school")
    model.add("y", lambda theta, sigma: dist.Normal(theta, sigma), plate="school")
    effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    labels = {f"theta[{i}]": f"school {name}" for i, name in enumerate("ABCDEFGH")}
    return PosteriorQuestion(model, {"y": effects, "sigma": errors}, ["mu", "tau", "theta"], labels)


def challenger() -> PosteriorQuestion:
    """Return the O-rings of 23 flights of the space shuttle (1981-86): damage against the temperature."""
    import markovia.distributions as dist

    model = BayesianNetwork()
    model.add("intercept", dist.Normal(0, 5))
    model.add("slope", dist.Normal(0, 1))
    model.add(
        "damage",
        lambda intercept, slope, warmth: dist.Bernoulli(logits=intercept + slope * warmth),
        plate="flight",
    )
    degrees = np.array(
        [66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58.0]
    )
    damaged = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1])
    given = {"damage": damaged, "warmth": degrees - degrees.mean()}
    return PosteriorQuestion(model, given, ["intercept", "slope"], {"slope": "slope a degree (°F)"})  # fmt: skip


EXAMPLES: dict[str, tuple[str, Callable[[], PosteriorQuestion]]] = {
    "eight-schools": ("Eight schools: effects of coaching, partly pooled", eight_schools),
    "challenger": ("Challenger: damage to O-rings against the temperature", challenger),
}
"""Examples by name: a title, and the problem."""


def regression(
    data: str, outcome: str, predictors: Sequence[str], family: str = "normal"
) -> PosteriorQuestion:
    """Return a regression of a column on others: "normal", "logistic" or "poisson".

    Predictors of numbers are standardised, so that one prior fits all slopes; those of states get a column for each
    state but the first.
    """
    import markovia.distributions as dist

    check("family", family, Choice(("normal", "logistic", "poisson")))
    if outcome in predictors or not predictors:
        raise InvalidArgument("a regression has one outcome and some other columns as predictors")
    frame = as_frame(data)
    check_known((outcome, *predictors), frame.columns, "the table")
    rows = frame[[outcome, *predictors]].dropna()
    x, names = _design(rows, predictors)
    y, unit = _outcome(rows[outcome], family)
    model = BayesianNetwork()
    model.add("intercept", dist.Normal(float(y.mean()) if family == "normal" else 0.0, 5.0 * unit))
    model.add("slope", dist.Normal(0.0, 2.5 * unit), plate={"predictor": len(names)})
    if family == "normal":
        model.add("sigma", dist.HalfNormal(2.0 * unit))
        law: Any = lambda intercept, slope, sigma, design: dist.Normal(intercept + design @ slope, sigma)  # noqa: E731
    elif family == "logistic":
        law = lambda intercept, slope, design: dist.Bernoulli(logits=intercept + design @ slope)  # noqa: E731
    else:
        law = lambda intercept, slope, design: dist.Poisson(_exp(intercept + design @ slope))  # noqa: E731
    model.add("outcome", law, plate="row")
    labels = {f"slope[{i}]": name for i, name in enumerate(names)}
    asked = ["intercept", "slope", *(["sigma"] if family == "normal" else [])]
    return PosteriorQuestion(model, {"outcome": y, "design": x}, asked, labels)


def _exp(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.exp(x)


def _design(rows: Any, predictors: Sequence[str]) -> tuple[Array, list[str]]:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    columns, names = [], []
    for name in predictors:
        cells = rows[name]
        if is_numeric_dtype(cells) and not is_bool_dtype(cells):
            values = cells.to_numpy(dtype=np.float64)
            spread = values.std()
            if not spread > 0:
                raise InvalidArgument(f"the column {name!r} has one value only, which tells nothing")
            columns.append((values - values.mean()) / spread)
            names.append(f"{name} (a standard deviation)")
            continue
        states = sorted(cells.unique(), key=str)
        if not 1 < len(states) <= 20:
            raise InvalidArgument(f"the column {name!r} has {len(states)} states; a predictor has 2 to 20")
        columns += [(cells == state).to_numpy(dtype=np.float64) for state in states[1:]]
        names += [f"{name} = {state}" for state in states[1:]]
    return np.column_stack(columns), names


def _outcome(cells: Any, family: str) -> tuple[Array, float]:
    """Return the outcome as numbers, and the unit of its priors."""
    name = cells.name
    if family == "logistic":
        states = sorted(cells.unique(), key=str)
        if len(states) != 2:
            raise InvalidArgument(f"a logistic regression needs two states; {name!r} has {len(states)}")
        return (cells == states[1]).to_numpy(dtype=np.int64), 1.0
    try:
        y = cells.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"the column {name!r} has cells that are no numbers") from None
    if family == "poisson":
        if (y < 0).any() or (y != np.floor(y)).any():
            raise InvalidArgument(f"a Poisson regression needs counts; {name!r} has other numbers")
        return y.astype(np.int64), 1.0
    if not y.std() > 0:
        raise InvalidArgument(f"the column {name!r} has one value only, which tells nothing")
    return y, float(y.std())
