"""What a way of computing with a Gaussian process has to say: the log evidence with its gradient, and the posterior.

`exact`, inducing points, random features, grids, state spaces and likelihoods that are not normal all have this one face,
so that one ascent (`evidence_ascent`) fits them all, and one preset (`GaussianProcess`) holds them. A method that has to
do more than climb has `fit(covariance, **ascent)` of its own, with the arguments and the answer of `maximise_evidence`.
"""

# ruff: noqa: N803 (letters of the literature)

from typing import Any, ClassVar, Protocol

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import White, added, split_white
from markovia.factors.covariances.covariance import Covariance
from markovia.inference.gaussian.function_values import FunctionPosterior, as_rows
from markovia.runtime.array_types import Array

Gradient = dict[tuple[int, str], Any]
"""Derivatives by hyper-parameters: (id of the part, its name), as `Covariance.forward` gives them."""


class EvidenceMethod(Protocol):
    """A way of computing with a Gaussian process at some data: made with the rows X and targets y, and settings of its own.

    Attributes
    ----------
    X
        The rows.
    name
        What the method is called in `method=`.
    exact
        Whether it computes what the process says, up to rounding.
    """

    X: Array
    name: ClassVar[str]
    exact: ClassVar[bool]

    def __init__(self, X: Any, y: Any, **settings: Any) -> None: ...

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the log evidence (or a bound on it) of a covariance whose numbers are known, and its gradient.

        Independent noise is a `White` that is added (`algebra.split_white`).
        """
        ...

    def posterior(self, covariance: Covariance) -> FunctionPosterior:
        """Return the posterior of the function, without the noise, at the data."""
        ...


def rows_and_targets(X: Any, y: Any, *, gaps: bool = False) -> tuple[Array, Array]:
    """Return rows of inputs and one target a row, or say what is wrong with them; gaps are targets that are NaN.

    Examples
    --------
    >>> rows_and_targets([0.0, 1.0], [2.0, 3.0])[0].tolist()
    [[0.0], [1.0]]
    """
    rows, targets = as_rows(X), np.asarray(y, dtype=np.float64).reshape(-1)
    if len(rows) != len(targets) or not len(targets):
        raise InvalidArgument(
            f"{len(rows)} rows of inputs and {len(targets)} targets; one target a row, one row at least"
        )
    if np.isinf(targets).any() or (not gaps and np.isnan(targets).any()):
        raise InvalidArgument("a target is not a finite number; leave out rows without one")
    return rows, targets


def function_and_noise(covariance: Covariance, name: str) -> tuple[Covariance, tuple[White, ...], float]:
    """Return the covariance of the function, the noise that is added to it, and the variance of all of that.

    Examples
    --------
    >>> import markovia as mk
    >>> function_and_noise(mk.covariances.RBF(1.0) + mk.covariances.White(0.1), "sgpr")
    (RBF(length=1), (White(variance=0.1),), 0.1)
    """
    rest, noise = split_white(covariance)
    variance = float(sum(part.number("variance") for part in noise))
    if rest is None:
        raise InvalidArgument("the covariance is noise alone; add a function, such as mk.covariances.RBF()")
    if not variance > 0.0:
        raise InvalidArgument(
            f"{name} needs a function and noise of a positive variance: covariance + mk.covariances.White(0.01)"
        )
    if any(isinstance(part, White) for part in rest.tree()):
        raise InvalidArgument(f"{name} takes noise as a summand of the covariance, not inside {rest!r}")
    return rest, noise, variance


def with_noise(found: Gradient, noise: tuple[White, ...], slope: float) -> Gradient:
    """Return derivatives by the numbers of the function, and with them those by the variances of the noise."""
    return added([found, *(part.pulled(variance=lambda: slope) for part in noise)])


def density(y: Array, alpha: Array, logdet: float) -> float:
    """Return the log density of targets from the solution for them and the log determinant of their covariance."""
    return float(-0.5 * (y @ alpha + logdet + len(y) * np.log(2.0 * np.pi)))
