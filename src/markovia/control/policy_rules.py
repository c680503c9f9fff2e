"""Rules that choose the next arm of a bandit: each gives every arm a number, and the arm of the largest one is pulled.

    thompson         a draw of the mean reward from what is known
    ucb              the largest mean that the rewards so far do not exclude at the level 1 / f(t), f(t) = 1 + t
                     log(t)^2
    bayes-ucb        the quantile 1 - 1 / t of the posterior of the mean
    gittins          the Gittins index: the best for one reward after another that counts `discount` times as much
    epsilon-greedy   the posterior mean, and with the probability epsilon any arm

The first three have regret of the order log t, with the least constant there is (Lai and Robbins 1985) for
one-parameter families; epsilon-greedy with a fixed epsilon has linear regret and is there to be compared with.

References: Thompson (1933); Agrawal and Goyal (2012); Garivier and Cappé (2011); Kaufmann, Cappé and Garivier (2012);
Gittins (1979). Cost of a choice: linear in the arms; an index is computed once for each state of an arm.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log1p
from typing import Annotated, Any

import numpy as np

from markovia.control.arms import Arms, BetaMean, ConjugateArms
from markovia.control.gittins import gittins_index
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import LEVEL, Choice, NumberRange, check_options

TIE = 1e-12
"""Relative difference of numbers that count as equal; the first arm is then pulled."""
RULES = ("thompson", "ucb", "bayes-ucb", "gittins", "epsilon-greedy")


@dataclass(frozen=True)
class ArmRule:
    """A rule with its settings.

    Parameters
    ----------
    name
        "thompson", "ucb", "bayes-ucb", "gittins" or "epsilon-greedy".
    discount
        For "gittins": what a reward one pull later is worth.
    epsilon
        For "epsilon-greedy": how often any arm is pulled.

    Examples
    --------
    >>> from markovia.exponential import Bernoulli
    >>> arms = ConjugateArms([Bernoulli.conjugate_prior(1, 2), Bernoulli.conjugate_prior(1, 1)], ["a", "b"])
    >>> ArmRule("bayes-ucb").choose(arms, None, np.random.default_rng(0))
    1
    """

    name: Annotated[str, Choice(RULES)] = "thompson"
    discount: float | None = None
    epsilon: Annotated[float, NumberRange(0.0, 1.0)] = 0.1
    _indices: dict[tuple[float, float], float] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_options(self)
        if (self.name == "gittins") != (self.discount is not None):
            raise InvalidArgument(
                "rule='gittins' maximises discounted rewards: give it discount=, and no other rule"
            )
        if self.discount is not None and not LEVEL.admits(self.discount):
            raise InvalidArgument(f"discount= is between 0 and 1, not {self.discount!r}")

    def choose(self, arms: Arms, context: Any, rng: np.random.Generator) -> int:
        """Return the arm to pull next."""
        if self.name != "gittins" and (arms.contextual or self.name == "ucb"):
            few = arms.pulls < arms.least_pulls
            if few.any():
                return int(np.argmin(np.where(few, arms.pulls, np.iinfo(np.int64).max)))
        return largest(SCORES[self.name](self, arms, context, rng))

    def _thompson(self, arms: Arms, context: Any, rng: np.random.Generator) -> Array:
        return arms.draw(context, rng)

    def _ucb(self, arms: Arms, context: Any, rng: np.random.Generator) -> Array:
        t = int(arms.pulls.sum()) + 1
        return arms.upper_bound(log1p(t * np.log(t) ** 2), context)

    def _bayes_ucb(self, arms: Arms, context: Any, rng: np.random.Generator) -> Array:
        t = int(arms.pulls.sum()) + 1
        return arms.quantile(1.0 - 1.0 / max(t, 2), context)

    def _gittins(self, arms: Arms, context: Any, rng: np.random.Generator) -> Array:
        if not isinstance(arms, ConjugateArms) or not isinstance(arms.law, BetaMean) or self.discount is None:
            raise InvalidArgument(
                "rule='gittins' is for arms of zeros and ones with Beta priors; rule='thompson' does for others"
            )
        counts = [arms.law.parameters(p) for p in arms.posteriors]
        for a, b in counts:
            if (a, b) not in self._indices:
                self._indices[a, b] = float(gittins_index((a, b), discount=self.discount))
        return np.array([self._indices[a, b] for a, b in counts])

    def _epsilon_greedy(self, arms: Arms, context: Any, rng: np.random.Generator) -> Array:
        if rng.random() < self.epsilon:
            return rng.random(len(arms))
        return arms.means(context)


SCORES: dict[str, Callable[[ArmRule, Arms, Any, np.random.Generator], Array]] = {
    "thompson": ArmRule._thompson, "ucb": ArmRule._ucb, "bayes-ucb": ArmRule._bayes_ucb,
    "gittins": ArmRule._gittins, "epsilon-greedy": ArmRule._epsilon_greedy,
}  # fmt: skip


def largest(scores: Array) -> int:
    """Return the first place of the largest number; what rounding may separate counts as equal.

    Examples
    --------
    >>> largest(np.array([0.1 + 0.2, 0.3, 0.2]))
    0
    """
    top = float(scores.max())
    if not np.isfinite(top):
        return int(scores.argmax())
    return int(np.argmax(scores >= top - TIE * abs(top)))
