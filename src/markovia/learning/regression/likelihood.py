"""The likelihood of a generalised linear model at weights of one's own: its value, slope and curvature on any rows.

With dispersion phi the log likelihood is that of the saturated model less the deviance over 2 phi; with the canonical link
its gradient is X'(y - mu) / phi and its Hessian -X'WX / phi, W the variances of the means (McCullagh & Nelder 1989).
Cost: n p^2.
"""

from dataclasses import dataclass
from math import log, pi

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.regression.objectives import GlmObjective, SoftmaxObjective
from markovia.learning.regression.solving import RegressionProblem
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks, aligned


@dataclass(frozen=True, eq=False)
class GlmLikelihood(InNotebooks):
    """The log likelihood of rows at some weights, without penalties.

    Attributes
    ----------
    log_likelihood
        log p(y | X, weights); a row of weight 2 counts twice.
    gradient
        Its derivatives by the weights, the intercept first; those of several classes follow each other.
    hessian
        Its second derivatives.
    names
        What the entries belong to.
    """

    log_likelihood: float
    gradient: Array
    hessian: Array
    names: tuple[str, ...]

    def __str__(self) -> str:
        rows = [
            [n, f"{g:.6g}", f"{h:.6g}"]
            for n, g, h in zip(self.names, self.gradient, np.diag(self.hessian), strict=True)
        ]
        return f"log likelihood {self.log_likelihood:.6g}\n" + aligned(
            ["weight", "gradient", "curvature"], rows
        )

    __repr__ = __str__


def likelihood_at(
    problem: RegressionProblem, weights: Array, dispersion: float, names: tuple[str, ...]
) -> GlmLikelihood:
    """Return the likelihood of a checked problem at weights, flat; of a softmax those of every class."""
    none = np.zeros(problem.x.shape[1])
    if problem.response is None or problem.link is None:
        softmax = SoftmaxObjective(problem.x, problem.y, problem.offset, none, symmetric=True)
        return GlmLikelihood(
            -softmax.value(weights), -softmax.gradient(weights), -softmax.hessian(weights), names
        )
    objective = GlmObjective(
        problem.x, problem.y, problem.weights, problem.offset, problem.response, problem.link, none
    )
    half_deviance = objective.value(weights)
    if not np.isfinite(half_deviance):
        raise InvalidArgument(
            f"at these weights some row has a mean that the family {problem.response.name!r} does not have under the link "
            f"{problem.link.name!r}; try smaller ones"
        )
    if problem.response.name == "gaussian":
        saturated = -0.5 * float(problem.weights.sum()) * log(2.0 * pi * dispersion)
    else:
        saturated = problem.response.log_likelihood(problem.y, problem.y, problem.weights, dispersion)
    return GlmLikelihood(
        saturated - half_deviance / dispersion,
        -objective.gradient(weights) / dispersion,
        -objective.hessian(weights, observed=True) / dispersion,
        names,
    )
