"""Variational Bayes for mixtures of conjugate components, with Dirichlet weights or the sticks of a Dirichlet process.

The posterior is approximated by one in which labels, parameters, weights and the concentration are independent; each in turn
takes its best law given the others, which never lowers the bound on the evidence. Directly after parameters and weights
were updated the bound needs only log normalisers:

    bound = sum_k log Z(posterior_k) - log Z(prior) + (the same for weights) + entropy of the labels.

References: Attias (2000); Blei and Jordan (2006). Cost of a step: rows times components times a density.
"""

from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from markovia.learning.components.conjugate import ConjugateComponents, Law
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array


@dataclass
class DirichletWeights:
    """Weights of k components under a symmetric Dirichlet law."""

    concentration: float

    def update(self, sizes: Array) -> None:
        """Take the best law given expected sizes of components."""
        self._law = sizes + self.concentration

    def logs(self) -> Array:
        """Return the expected log weights."""
        from scipy.special import digamma

        return np.asarray(digamma(self._law) - digamma(self._law.sum()))

    def means(self) -> Array:
        """Return the expected weights."""
        return np.asarray(self._law / self._law.sum())

    def bound(self) -> float:
        """Return what weights add to the bound."""
        from scipy.special import gammaln

        k, a = len(self._law), self.concentration
        before = k * gammaln(a) - gammaln(k * a)
        return float(gammaln(self._law).sum() - gammaln(self._law.sum()) - before)


@dataclass
class StickWeights:
    """Weights of a stick that ends after k pieces; a concentration with a gamma prior (shape, rate) is learned."""

    concentration: float
    prior: tuple[float, float] | None = None
    discount: float = 0.0

    def __post_init__(self) -> None:
        self._posterior = self.prior
        if self.prior is not None:
            self.concentration = self.prior[0] / self.prior[1]

    def update(self, sizes: Array) -> None:
        """Take the best law of the sticks given expected sizes of components, then that of the concentration."""
        from scipy.special import digamma

        place = np.arange(1, len(sizes)) * self.discount
        self._before = self.concentration
        self._a = 1.0 - self.discount + sizes[:-1]
        self._b = self.concentration + place + (sizes.sum() - np.cumsum(sizes))[:-1]
        whole = digamma(self._a + self._b)
        self._taken, self._left = digamma(self._a) - whole, digamma(self._b) - whole
        if self.prior is not None:
            self._posterior = self.prior[0] + len(self._a), self.prior[1] - float(self._left.sum())
            self.concentration = self._posterior[0] / self._posterior[1]

    def logs(self) -> Array:
        """Return the expected log weights."""
        gone = np.concatenate([[0.0], np.cumsum(self._left)])
        return np.asarray(np.append(self._taken, 0.0) + gone)

    def means(self) -> Array:
        """Return the expected weights."""
        share = np.append(self._a / (self._a + self._b), 1.0)
        return np.asarray(share * np.concatenate([[1.0], np.cumprod(1.0 - share[:-1])]))

    def bound(self) -> float:
        """Return what sticks and the concentration add to the bound."""
        from scipy.special import betaln, digamma, gammaln

        found = betaln(self._a, self._b).sum()
        if self.prior is None or self._posterior is None:
            place = np.arange(1, len(self._a) + 1) * self.discount
            return float(found - betaln(1.0 - self.discount, self.concentration + place).sum())
        (shape, rate), (new, scale) = self.prior, self._posterior
        logs = digamma(new) - np.log(scale)
        found += len(self._a) * logs + (self.concentration - self._before) * self._left.sum()
        found += shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * logs - rate * self.concentration
        found -= new * np.log(scale) - gammaln(new) + (new - 1.0) * logs - scale * self.concentration
        return float(found)


class VariationalMixture(NamedTuple):
    """Responsibilities, and the laws of parameters and of weights."""

    responsibilities: Array
    law: Law
    weights: DirichletWeights | StickWeights


def variational_mixture(
    component: ConjugateComponents,
    prior: Law,
    rows: Array,
    weights: DirichletWeights | StickWeights,
    responsibilities: Array,
    *,
    max_iter: int = 200,
    tol: float = 1e-6,
    time_limit: float | None = None,
    progress: bool | None = False,
) -> Climb[VariationalMixture]:
    """Climb the bound on the evidence from given responsibilities, (rows, components); a number observed is a row."""
    from scipy.special import entr

    constant = np.sum(component.base(rows))

    def step(now: VariationalMixture) -> tuple[VariationalMixture, float]:
        law, weights = component.posterior(rows, now.responsibilities, prior), copy(now.weights)
        weights.update(now.responsibilities.sum(axis=0))
        bound = component.log_marginal(law, prior).sum() + weights.bound() + constant
        bound += entr(now.responsibilities).sum()
        joint = component.expected_logs(law, rows) + weights.logs()
        joint -= joint.max(axis=1, keepdims=True)
        chances = np.exp(joint)
        return VariationalMixture(chances / chances.sum(axis=1, keepdims=True), law, weights), float(bound)

    return climb(
        step, VariationalMixture(responsibilities, {}, weights), max_iter=max_iter, tol=tol, size=len(rows),
        time_limit=time_limit, progress=progress, name="variational Bayes",
    )  # fmt: skip
