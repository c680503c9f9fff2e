"""What happens at a decision: the best is taken, or a soft best, or what a given policy says.

Planning, soft control and evaluation are one backward pass; only this operator changes. All of them are monotone, and
adding a constant to Q adds it to V, so bounds from residuals hold for each.

Method
------
- `HardOperator`: V = max_a Q(a).
- `SoftOperator`: V = tau log sum_a p(a)^kappa exp(Q(a) / tau). With kappa = 1 the prior p (uniform by default) is a
  probability, so V is never above the hard value: reward minus tau KL(policy | prior). With `entropy=True` kappa = 0:
  reward plus tau times the entropy, the convention of actor-critic methods, larger by tau log A at each decision among
  A choices.
- `EvaluatedOperator`: V = sum_a pi(a) Q(a).

References: Todorov (2009), "Efficient computation of optimal actions"; Levine (2018), "Reinforcement learning and
control as probabilistic inference".

Cost: a few passes over Q. Q is an array of NumPy or JAX; its last axis is the choices.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable
from markovia.runtime.checks import check_number, numbers

TIE = 1e-12
"""Relative difference below which two choices are worth the same; the first of them is taken."""


class DecisionOperator(Protocol):
    """What turns the worth of choices into the worth of choosing."""

    def value(self, q: Any, allowed: Any = None) -> Any:
        """Return V from Q, whose last axis is the choices; those not `allowed` do not count."""

    def policy(self, q: Any, allowed: Any = None) -> Any:
        """Return the probabilities of choices, in the shape of Q."""


@dataclass(frozen=True)
class HardOperator:
    """The best choice; of several that are equally good the first.

    Parameters
    ----------
    tie
        Relative difference below which two choices are worth the same.

    Examples
    --------
    >>> q = np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]])
    >>> HardOperator().value(q).tolist(), HardOperator().policy(q).tolist()
    ([3.0, 2.0], [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    >>> HardOperator().value(q, allowed=np.array([True, False, True])).tolist()
    [3.0, 2.0]
    """

    tie: float = TIE

    def value(self, q: Any, allowed: Any = None) -> Any:
        """Return the largest of the last axis."""
        return q.__array_namespace__().max(_masked(q, allowed), axis=-1)

    def choices(self, q: Any, allowed: Any = None) -> Any:
        """Return the first of the best choices, as a number."""
        xp, q = q.__array_namespace__(), _masked(q, allowed)
        best = xp.max(q, axis=-1, keepdims=True)
        return xp.argmax(q >= best - self.tie * xp.maximum(xp.abs(best), 1e-300), axis=-1)

    def policy(self, q: Any, allowed: Any = None) -> Any:
        """Return one for the first of the best choices, zero for the others."""
        xp = q.__array_namespace__()
        return xp.where(xp.arange(q.shape[-1]) == self.choices(q, allowed)[..., None], 1.0, 0.0)


@dataclass(frozen=True)
class SoftOperator:
    """A soft best: choices are drawn the more often the more they are worth.

    Parameters
    ----------
    temperature
        How soft, in units of reward.
    prior
        Probabilities of choices, one for each or in the shape of Q; uniform over what is allowed by default.
    entropy
        Whether the entropy of the policy counts, in place of its divergence from the prior.

    Examples
    --------
    >>> q = np.array([0.0, np.log(3.0)])
    >>> SoftOperator(1.0).value(q).round(6).item(), SoftOperator(1.0, entropy=True).value(q).round(6).item()  # log 2, log 4
    (0.693147, 1.386294)
    >>> SoftOperator(1.0).policy(q).round(6).tolist(), SoftOperator(1.0, prior=[0.75, 0.25]).policy(q).round(6).tolist()
    ([0.25, 0.75], [0.5, 0.5])
    """

    temperature: float
    prior: Any = None
    entropy: bool = False
    _log_prior: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature, positive=True)
        if self.prior is None:
            return
        if self.entropy:
            raise InvalidArgument("entropy=True counts entropy in place of a prior; leave prior= out")
        prior = numbers(self.prior, "prior= holds probabilities of choices")
        if not (prior >= 0.0).all() or not np.allclose(prior.sum(axis=-1), 1.0, rtol=0.0, atol=1e-6):
            raise InvalidTable("prior= holds probabilities of choices, which are not negative and sum to one")
        with np.errstate(divide="ignore"):
            object.__setattr__(self, "_log_prior", np.log(prior))

    def value(self, q: Any, allowed: Any = None) -> Any:
        """Return tau log sum p exp(Q / tau) over the last axis."""
        xp, logits = q.__array_namespace__(), self._logits(q, allowed)
        top = xp.max(logits, axis=-1, keepdims=True)
        return self.temperature * (top[..., 0] + xp.log(xp.sum(xp.exp(logits - top), axis=-1)))

    def policy(self, q: Any, allowed: Any = None) -> Any:
        """Return p exp((Q - V) / tau)."""
        xp, logits = q.__array_namespace__(), self._logits(q, allowed)
        weights = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
        return weights / xp.sum(weights, axis=-1, keepdims=True)

    def log_prior(self, n: int, allowed: Any = None) -> Any:
        """Return what is added to Q / tau for each of n choices: kappa log p over what is allowed."""
        if self.entropy:
            return np.zeros(n)
        if self._log_prior is None:
            return np.full(n, -np.log(n)) if allowed is None else -np.log(_counted(allowed)) + np.zeros(n)
        if allowed is None:
            return self._log_prior
        xp = allowed.__array_namespace__()
        prior = xp.asarray(self._log_prior)
        return prior - xp.log(xp.sum(xp.where(allowed, xp.exp(prior), 0.0), axis=-1, keepdims=True))

    def _logits(self, q: Any, allowed: Any) -> Any:
        """Return Q / tau plus the log prior over what is allowed."""
        prior = q.__array_namespace__().asarray(self.log_prior(q.shape[-1], allowed))
        return _masked(q / self.temperature + prior, allowed)


@dataclass(frozen=True)
class EvaluatedOperator:
    """What a given policy makes of it.

    Parameters
    ----------
    policy
        Probabilities of choices: one for each, or in the shape of Q.

    Examples
    --------
    >>> EvaluatedOperator([0.25, 0.75]).value(np.array([[4.0, 8.0], [0.0, 4.0]])).tolist()
    [7.0, 3.0]
    """

    given: Any

    def __post_init__(self) -> None:
        given = numbers(self.given, "a policy holds probabilities of choices")
        wrong = np.argwhere((np.abs(given.sum(axis=-1) - 1.0) > 1e-6) | ~(given >= 0.0).all(axis=-1))
        if len(wrong):
            where = f" in row {tuple(wrong[0].tolist())}" if given.ndim > 1 else ""
            raise InvalidTable(f"a policy holds probabilities of choices, which sum to one; not so{where}")
        object.__setattr__(self, "given", given)

    def value(self, q: Any, allowed: Any = None) -> Any:
        """Return the mean of Q under the policy."""
        xp = q.__array_namespace__()
        given = xp.asarray(self.given)
        return xp.sum(xp.where(given > 0.0, given * q, 0.0), axis=-1)

    def policy(self, q: Any, allowed: Any = None) -> Any:
        """Return the policy itself."""
        xp = q.__array_namespace__()
        return xp.broadcast_to(xp.asarray(self.given), q.shape)


def _masked(q: Any, allowed: Any) -> Any:
    """Return Q, minus infinity where a choice is not allowed."""
    if allowed is None:
        return q
    xp = q.__array_namespace__()
    return xp.where(xp.asarray(allowed), q, -xp.inf)


def _counted(allowed: Any) -> Any:
    """Return how many choices are allowed, with the last axis kept."""
    xp = allowed.__array_namespace__()
    return xp.sum(xp.where(allowed, 1.0, 0.0), axis=-1, keepdims=True)
