"""Fitting local models to counts so that they keep their form.

    logistic, softmax             multinomial logistic regression (`markovia.learning.tables.softmax_fit`)
    noisy-or, -and, -max, -min    expectation-maximisation over the hidden effects (`markovia.learning.tables.noisy_fit`)
    gates, sums, counts           have no parameters and stay as they are

All of them work on the rows that occur, so the number of parents does not matter. What a prior means for a local model
is said in `markovia.learning.tables.priors`: each parent is treated as if it were the only one.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.local_models.local_model import CausalIndependence
from markovia.factors.local_models.logistic import SoftmaxConditional
from markovia.factors.local_models.noisy import NoisyMaxConditional
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.learning.tables.priors import Gaussian, Prior
from markovia.learning.tables.row_counts import RowCounts
from markovia.runtime.array_types import Array


class LocalFit(Protocol):
    """Fits one local model, again and again for other counts."""

    def fit(self, rows: RowCounts) -> Conditional:
        """Return the distribution of the same form that maximises log likelihood plus `log_prior`."""

    def log_prior(self, conditional: Conditional) -> float:
        """Return the log density of the parameters under the prior, up to a constant."""


class Unchanged:
    """A local model without parameters."""

    def __init__(self, before: Conditional) -> None:
        self.before = before

    def fit(self, rows: RowCounts) -> Conditional:
        """Return the model as it is."""
        return self.before

    def log_prior(self, conditional: Conditional) -> float:
        """Return zero."""
        return 0.0


def local_fit(before: CausalIndependence, prior: Prior | None) -> LocalFit:
    """Return who fits a local model.

    Raises
    ------
    InvalidArgument
        For a form with parameters that nobody here can fit.
    """
    if isinstance(before, SoftmaxConditional):
        from markovia.learning.tables.softmax_fit import SoftmaxNodeFit

        if isinstance(prior, Gaussian):
            return SoftmaxNodeFit(before, [], scale=prior.scale)
        return SoftmaxNodeFit(before, lone_counts(before, prior))
    if isinstance(before, NoisyMaxConditional):
        from markovia.learning.tables.noisy_fit import NoisyFit

        return NoisyFit(before, lone_counts(before, prior))
    if before.n_parameters == 0:
        return Unchanged(before)
    raise InvalidArgument(
        f"the {type(before).__name__} of {before.variable.name!r} cannot be fitted; name it in fixed=, or give the "
        f"node a table first"
    )


def lone_counts(before: CausalIndependence, prior: Prior | None) -> list[Array]:
    """Return the pseudo-counts of the child given each parent alone, and of the child without any; empty for no prior."""
    if prior is None:
        return []
    scopes: list[Sequence[Variable]] = [*((p,) for p in before.parents), ()]
    try:
        return [np.asarray(prior.pseudo_counts(before.variable, scope)) for scope in scopes]
    except InvalidArgument as error:
        raise InvalidArgument(
            f"{error}; {before.variable.name!r} is a {type(before).__name__}, and a prior speaks about it one parent at a "
            f"time, so give one number for it"
        ) from None
