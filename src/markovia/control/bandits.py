"""Bandits: several arms with unknown rewards, of which one is pulled at a time.

What is known of arms is in `arms.py` (conjugate posteriors) and `contextual_arms.py` (fitted models), how one is chosen
in `policy_rules.py`. Regret is counted by mean rewards: the sum over pulls of the best arm's mean less that of the
pulled arm.

References: Lai and Robbins (1985); Lattimore and Szepesvári (2020). Cost of a pull: linear in the arms.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from markovia.control.arms import Arms, ConjugateArms, conjugate_prior_of
from markovia.control.contextual_arms import FittedArms
from markovia.control.policy_rules import RULES, ArmRule
from markovia.errors import InvalidArgument, Unanswered
from markovia.factors.distributions.conjugate_priors import ConjugatePrior
from markovia.factors.distributions.exponential_family import ExponentialFamily
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Choice, Whole, check, numbers
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks, aligned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pull = Callable[[int, Any], float]
"""What answers a pull: from an arm's number and the context to a reward."""


@dataclass(frozen=True)
class BanditHistory(InNotebooks):
    """The pulls of a bandit.

    Attributes
    ----------
    rule
        How arms were chosen.
    names
        The arms.
    arms, rewards
        The number of the arm of each pull, and its reward.
    means
        The true mean rewards, of each arm or of each pull and arm; None where nobody said them.
    posteriors
        What was known of each arm at the end.
    reason
        Why it ended: "steps", "time limit" or "interrupted".
    """

    rule: str
    names: list[Hashable]
    arms: Ints
    rewards: Array
    means: Array | None
    posteriors: list[Any]
    reason: str = "steps"

    @property
    def counts(self) -> Ints:
        """How often each arm was pulled."""
        return np.bincount(self.arms, minlength=len(self.names)).astype(np.int64)

    @property
    def regret(self) -> Array:
        """The regret up to each pull, by true means."""
        if self.means is None:
            raise Unanswered(
                "regret needs the true mean rewards: give means= to play, or members of families as arms"
            )
        best = self.means.max(axis=-1)
        pulled = (
            self.means[self.arms]
            if self.means.ndim == 1
            else self.means[np.arange(len(self.arms)), self.arms]
        )
        return np.cumsum(best - pulled)

    def plot(
        self,
        kind: Literal["regret", "rewards", "arms"] | None = None,
        *,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> "Axes":
        """Draw the regret, or the mean reward where true means are not known; "arms" draws the share of each arm."""
        return ports.draw("plot-bandit", self, kind, ax=ax, title=title)

    def __str__(self) -> str:
        totals = np.bincount(self.arms, weights=self.rewards, minlength=len(self.names))
        rows = [
            [str(name), f"{n:,}", f"{total / n:.6g}" if n else "", _shown_posterior(posterior)]
            for name, n, total, posterior in zip(
                self.names, self.counts.tolist(), totals, self.posteriors, strict=True
            )
        ]
        ended = "" if self.reason == "steps" else f", ended by {self.reason!r}"
        lost = "" if self.means is None or not len(self.arms) else f", regret {self.regret[-1]:.6g}"
        head = (
            f"{len(self.arms):,} pulls by {self.rule!r}: total reward {self.rewards.sum():.6g}{lost}{ended}"
        )
        return f"{head}\n{aligned(['arm', 'pulls', 'mean reward', 'posterior'], rows)}"


class Bandit(InNotebooks):
    """Arms of unknown reward, and a rule that says which to pull.

    Parameters
    ----------
    prior
        What is known of the mean reward of each arm, one for all or a list: a Beta distribution for rewards 0 and 1, or
        a conjugate prior of `markovia.exponential` (`Bernoulli.conjugate_prior()`, `Poisson.conjugate_prior()`,
        `Exponential.conjugate_prior()`, `GaussianKnownVariance.conjugate_prior(var=1.0)`, `NormalGamma()`). Or, for
        rewards that depend on a context, a model to fit, of which each arm gets a copy: a `GaussianProcess`, a GLM, or
        any estimator with `fit` and `predict`.
    arms
        Their number, or their names.
    rule
        "thompson", "ucb", "bayes-ucb", "gittins" or "epsilon-greedy".
    discount, epsilon
        For "gittins" what a reward one pull later is worth; for "epsilon-greedy" how often any arm is pulled.
    refit
        After how many new rows a fitted model learns again.
    seed
        What random choices are made from.

    Examples
    --------
    >>> import markovia as mk
    >>> coins = [mk.exponential.Bernoulli(p) for p in (0.2, 0.5, 0.8)]
    >>> bandit = Bandit(mk.exponential.Beta(1, 1), arms=["red", "green", "blue"], seed=0)
    >>> history = bandit.play(coins, 400)
    >>> history.names[int(history.counts.argmax())], bool(history.regret[-1] < 30)
    ('blue', True)
    >>> bandit.posteriors[2].nu == 2.0 + int(history.counts[2])
    True

    By hand, one choice after another:

    >>> bandit = Bandit(mk.exponential.Beta(1, 1), arms=2, rule="bayes-ucb")
    >>> bandit.choose()
    0
    >>> bandit.update(0, reward=0)
    >>> bandit.choose()
    1
    """

    def __init__(
        self,
        prior: Any,
        arms: int | Iterable[Hashable] = 2,
        *,
        rule: Annotated[str, Choice(RULES)] = "thompson",
        discount: float | None = None,
        epsilon: float = 0.1,
        refit: int = 1,
        seed: Seed = None,
    ) -> None:
        names = _arm_names(arms)
        check("refit", refit, Whole(1))
        self.rule = ArmRule(rule, discount, epsilon)
        self._rng = generator(seed)
        self.arms: Arms
        if hasattr(prior, "fit") and hasattr(prior, "predict"):
            self.arms = FittedArms(prior, names, refit=refit, rng=self._rng)
        else:
            several = isinstance(prior, list | tuple)
            if several and len(prior) != len(names):
                raise InvalidArgument(
                    f"{len(prior)} priors are given for {len(names)} arms; give one for each, or one"
                )
            priors = [conjugate_prior_of(p) for p in (prior if several else [prior] * len(names))]
            self.arms = ConjugateArms(priors, names)

    @property
    def posteriors(self) -> list[Any]:
        """What is known of each arm: a conjugate posterior, or a fitted model."""
        return self.arms.posteriors

    def choose(self, context: Any = None) -> Hashable:
        """Return the arm to pull next; of equal ones the first."""
        return self.arms.names[self._choose(self.rule, self._checked_context(context), self._rng)]

    def update(self, arm: Hashable, reward: float, context: Any = None) -> None:
        """Learn the reward of a pull.

        Raises
        ------
        InvalidArgument
            If the reward is no finite number, or one that the family of rewards does not have.
        """
        if arm not in self.arms.names:
            raise InvalidArgument(f"there is no arm {arm!r}; the arms are {self.arms.names!r:.120}")
        self._learn(self.arms.names.index(arm), reward, self._checked_context(context))

    def play(
        self,
        env: Any,
        steps: int = 1000,
        *,
        rule: str | None = None,
        discount: float | None = None,
        contexts: Any = None,
        means: Any = None,
        seed: Seed = None,
        time_limit: float | None = None,
        progress: bool | None = None,
    ) -> BanditHistory:
        """Pull arms one after another, learning from each, and go on from what is known already.

        Parameters
        ----------
        env
            What gives rewards: a member of an exponential family for each arm; a function of the arm (and of the
            context, where there are some); or a Gymnasium environment, whose actions are the arms and whose
            observations the contexts.
        steps
            How many pulls.
        rule, discount
            Instead of those of the bandit.
        contexts
            A row of numbers for each pull.
        means
            The true mean rewards, for the regret: one an arm, or a row of them a pull.
        seed
            What choices and drawn rewards are made from; by default the stream of the bandit goes on.
        time_limit, progress
            Seconds after which it stops and keeps what it has, as Ctrl-C does; whether to show a bar.

        Examples
        --------
        >>> from markovia.exponential import Beta
        >>> Bandit(Beta(1, 1), arms=2).play(lambda arm: int(arm == 1), 50, rule="ucb", means=[0, 1]).counts.tolist()
        [1, 49]
        """
        check("steps", steps, Whole(1))
        chosen = self.rule if rule is None else ArmRule(rule, discount, self.rule.epsilon)
        if rule is None and discount is not None:
            raise InvalidArgument("discount= goes with rule='gittins'")
        rng = self._rng if seed is None else generator(seed)
        told = None if means is None else _true_means(means, steps, len(self.arms))
        world = _World.of(env, self.arms, contexts, steps, rng)
        told = world.means if told is None else told
        arms, rewards, reason = np.zeros(steps, dtype=np.int64), np.zeros(steps), "steps"
        done = 0
        with Clock(time_limit, progress, total=steps, unit="pull", name="bandit") as clock:
            for done in range(steps):
                if clock.over():
                    reason = str(clock.reason)
                    break
                context = self._checked_context(world.context(done))
                arms[done] = self._choose(chosen, context, rng)
                rewards[done] = self._learn(int(arms[done]), world.pull(int(arms[done]), context), context)
                clock.advance()
            else:
                done = steps
        kept = told[:done] if told is not None and told.ndim == 2 else told
        return BanditHistory(
            chosen.name, list(self.arms.names), arms[:done], rewards[:done], kept, self.posteriors, reason
        )

    def _choose(self, rule: ArmRule, context: Any, rng: np.random.Generator) -> int:
        return rule.choose(self.arms, context, rng)

    def _learn(self, arm: int, reward: Any, context: Any) -> float:
        given = numbers(reward, "a reward is one number")
        if given.size != 1 or not np.isfinite(given).all():
            raise InvalidArgument(f"a reward is one finite number, not {reward!r:.60}")
        self.arms.observe(arm, float(given.reshape(-1)[0]), context)
        return float(given.reshape(-1)[0])

    def _checked_context(self, context: Any) -> Any:
        if isinstance(self.arms, FittedArms):
            if context is None:
                raise InvalidArgument(
                    "the rewards are learned as functions of a context; give context= (contexts= to play)"
                )
            return self.arms.row(context)
        if context is not None:
            raise InvalidArgument(
                "these arms do not look at a context; a model as prior does, such as mk.GaussianProcess()"
            )
        return None

    def __str__(self) -> str:
        rows = [
            [str(name), f"{n:,}", _shown_posterior(posterior)]
            for name, n, posterior in zip(
                self.arms.names, self.arms.pulls.tolist(), self.posteriors, strict=True
            )
        ]
        return f"bandit of {len(self.arms)} arms, rule {self.rule.name!r}\n" + aligned(
            ["arm", "pulls", "posterior"], rows
        )


@dataclass(frozen=True)
class _World:
    """What answers pulls; `means` are those that it tells by itself."""

    pull: Pull
    context: Callable[[int], Any]
    means: Array | None

    @classmethod
    def of(cls, env: Any, arms: Arms, contexts: Any, steps: int, rng: np.random.Generator) -> "_World":
        if hasattr(env, "step") and hasattr(env, "reset"):
            return _environment(env, arms.contextual, rng)
        rows = None if contexts is None else list(contexts)
        if rows is not None and len(rows) < steps:
            raise InvalidArgument(f"contexts= has {len(rows)} rows for {steps} pulls; give one for each")

        def context(step: int) -> Any:
            return None if rows is None else rows[step]

        if isinstance(env, list | tuple):
            members = list(env)
            if len(members) != len(arms) or not all(isinstance(m, ExponentialFamily) for m in members):
                raise InvalidArgument(
                    f"a list of rewards has a member of markovia.exponential for each of {len(arms)} arms"
                )
            averages = np.array([float(m.mean) for m in members])
            return cls(lambda arm, _: float(members[arm].sample(1, rng)[0]), context, averages)
        if not callable(env):
            raise InvalidArgument(
                "what gives rewards is a function of the arm, a Gymnasium environment, or a member of "
                f"markovia.exponential for each arm, not {env!r:.60}"
            )
        names = arms.names
        if rows is None:
            return cls(lambda arm, _: env(names[arm]), context, None)
        return cls(lambda arm, row: env(names[arm], row), context, None)


def _environment(env: Any, contextual: bool, rng: np.random.Generator) -> _World:
    """Return a Gymnasium environment, begun anew where an episode ends."""
    seen = [env.reset(seed=int(rng.integers(2**31)))[0]]

    def pull(arm: int, _: Any) -> float:
        seen[0], reward, terminated, truncated, _info = env.step(arm)
        if terminated or truncated:
            seen[0] = env.reset()[0]
        return float(reward)

    return _World(pull, lambda step: np.ravel(seen[0]) if contextual else None, None)


def _shown_posterior(posterior: Any) -> str:
    return str(posterior.parameters if isinstance(posterior, ConjugatePrior) else posterior)[:60]


def _arm_names(arms: Any) -> list[Hashable]:
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        check("arms", arms, Whole(1))
        return list(range(int(arms)))
    names = list(arms) if isinstance(arms, Iterable) and not isinstance(arms, str) else []
    if not names or len(set(names)) < len(names):
        raise InvalidArgument(
            f"arms= is a number of arms, 1 or more, or a list of different names, not {arms!r}"
        )
    return names


def _true_means(means: Any, steps: int, arms: int) -> Array:
    rule = f"means= has one finite number for each of {arms} arms, or a row of them for each of {steps} pulls"
    found = numbers(means, rule)
    if found.shape not in ((arms,), (steps, arms)) or not np.isfinite(found).all():
        raise InvalidArgument(f"{rule}, not the shape {found.shape}")
    return found
