"""Conjugate components by name, each with a checked prior."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.components.columns import CategoricalColumns
from markovia.learning.components.conjugate import ConjugateComponents, Law
from markovia.learning.components.discrete import Bernoulli, Multinomial, Poisson
from markovia.learning.components.families import checked_prior
from markovia.learning.components.gaussian import Gaussian
from markovia.runtime.array_types import Array

CONJUGATE: dict[str, Any] = {
    "gaussian": Gaussian,
    "bernoulli": Bernoulli,
    "categorical": CategoricalColumns,
    "multinomial": Multinomial,
    "poisson": Poisson,
}
"""Components that have conjugate priors."""


def blank_component(
    name: str, d: int, *, diagonal: bool = False, levels: tuple[int, ...] = ()
) -> ConjugateComponents:
    """Return one component over d columns, whose parameters do not matter; `levels` is how many symbols each column has."""
    if name == "gaussian":
        return Gaussian(np.zeros((1, d)), np.eye(d)[None], "diag" if diagonal else "full")
    if name == "categorical":
        uniform = tuple(np.full((1, n), 1.0 / n) for n in levels)
        return CategoricalColumns(uniform, tuple(tuple(range(n)) for n in levels))
    component: ConjugateComponents = CONJUGATE[name](np.full((1, d), 1.0 / d))
    return component


def conjugate_component(
    name: str,
    rows: Array,
    prior: Mapping[str, Any] | None = None,
    *,
    diagonal: bool = False,
    groups: float = 1.0,
    levels: tuple[int, ...] = (),
) -> tuple[ConjugateComponents, Law]:
    """Return a component by its name, and its prior; what that does not say follows the rows.

    `groups` says into about how many parts the rows fall. A normal prior's `df` is said of what may vary: of the covariance,
    or of the variance of each column where `diagonal`; its expected covariance, where no scale is said, is that of the rows
    divided among the groups.
    """
    d, symbols = rows.shape[1], sum(levels)
    component = blank_component(name, d, diagonal=diagonal, levels=levels)
    said = checked_prior(CONJUGATE[name].priors, prior, "prior")
    for key, value in said.items():
        width = symbols or d
        fits = value.shape in ((), (width,)) or (key == "scale" and value.shape == (d, d))
        if not fits or not np.isfinite(value).all():
            raise InvalidArgument(
                f"prior= has {key!r} as a finite number, or one a column of {width}, not {value.tolist()!r}"
            )
        if key not in ("mean", "scale") and not (value > 0.0).all():
            raise InvalidArgument(f"prior= says {key}={value.tolist()!r}, which is above 0")
    whole = component.whole_prior(rows, np.ones((len(rows), int(groups))), said)
    if name != "gaussian":
        return component, whole
    columns = 1 if diagonal else d
    df = whole["df"] = float(said.get("df", columns + 2.0))
    if df <= columns - 1.0:
        raise InvalidArgument(f"prior= says df={df:g}, which is above {columns - 1} here")
    if "scale" not in said:
        whole["scale"] = whole["scale"] * (df - columns - 1.0)
    try:
        np.linalg.cholesky(whole["scale"])
    except np.linalg.LinAlgError:
        raise InvalidArgument("prior= has a scale that is not positive definite") from None
    return component, whole
