"""The exact log evidence of Markov covariances of one input in linear time, with its gradient, by a Kalman filter.

Matern 1/2, 3/2 and 5/2, cosines, constants, their sums, products and multiples have a state space (`MarkovForm`). A filter
goes through the sorted rows, and one backward pass gives the derivatives by all hyper-parameters. Inputs may repeat, be
irregular and far apart; rows may come in any order; targets that are NaN are not there. Reference: Hartikainen and Sarkka
(2010). Cost: rows times the cube of the number of states.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import split_white
from markovia.factors.covariances.covariance import Covariance
from markovia.factors.covariances.markov_form import MarkovForm, MarkovMoves, markov_form
from markovia.inference.gaussian.markov_posterior import (
    MarkovPosterior,
    form_column,
    markov_backward,
    markov_filter,
)
from markovia.learning.processes.evidence_method import Gradient, rows_and_targets
from markovia.runtime.array_types import Array


class StateSpaceEvidence:
    """A Gaussian process with a Markov covariance along one input, in linear time.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> k = mk.covariances.Matern52(1.0) + mk.covariances.White(0.1)
    >>> method = StateSpaceEvidence(np.array([[0.0], [0.5], [2.0]]), np.array([1.0, 0.2, -0.7]))
    >>> round(method.evidence(k)[0], 10)
    -3.4051925874
    >>> values = method.posterior(k).at([1.0])
    >>> values.mean().round(8).tolist(), values.sd().round(8).tolist()
    ([-0.2078689], [0.51861839])
    """

    name: ClassVar[str] = "state-space"
    exact: ClassVar[bool] = True

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = rows_and_targets(X, y, gaps=True)
        self._sorted: dict[int, tuple[Array, Array]] = {}

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the log evidence and its gradient by all free hyper-parameters."""
        form, noise, times, y = self._read(covariance)
        free = bool(covariance.free())
        moves, pull = form.forward(np.diff(times), free)
        found = markov_filter(form, noise, times, y, free, moves)
        if not free:
            return found.value, {}
        by_noise, r, N, by_A, by_Q = markov_backward(form, found, True)
        gradient = pull(MarkovMoves(by_A, by_Q, 0.5 * (np.outer(r[0], r[0]) - N[0])))
        for hyper in covariance.free().values():
            key = id(hyper.part), hyper.name
            # a noise is no part of the process; a length that is an array of one number stays one
            slope = gradient.get(key, by_noise)
            gradient[key] = np.reshape(slope, np.shape(hyper.value))
        return found.value, gradient

    def posterior(self, covariance: Covariance) -> MarkovPosterior:
        """Return the posterior of the function at any inputs."""
        form, noise, times, y = self._read(covariance)
        try:
            value = markov_filter(form, noise, times, y, keep=False).value
        except np.linalg.LinAlgError as error:
            raise InvalidArgument(str(error)) from None
        return MarkovPosterior(form, noise, times, y, value)

    def _read(self, covariance: Covariance) -> tuple[MarkovForm, float, Array, Array]:
        rest, white = split_white(covariance)
        form = None if rest is None else markov_form(rest)
        if form is None:
            raise InvalidArgument(
                f"{rest or covariance!r} is no Markov process of one input, as Matern12, Matern32, Matern52, Cosine, "
                "Constant, their sums, products and multiples are; method='exact', or 'cg' for many rows, takes any"
            )
        column = form_column(form)
        if column is None and self.X.shape[1] != 1:
            raise InvalidArgument(
                f"a state space runs along one input, and rows have {self.X.shape[1]}; say columns=[0] in the covariance, "
                "or take method='exact' or 'cg'"
            )
        at = column or 0
        if at not in self._sorted:
            order = np.argsort(self.X[:, at], kind="stable")
            self._sorted[at] = np.ascontiguousarray(self.X[order, at]), self.y[order]
        return form, float(sum(part.number("variance") for part in white)), *self._sorted[at]
