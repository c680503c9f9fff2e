import contextlib
import io
import itertools
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import markovia as mk
from markovia.control.arms import ConjugateArms
from markovia.control.bandits import Bandit
from markovia.control.gittins import gittins_index
from markovia.control.policy_rules import ArmRule
from markovia.errors import InvalidArgument, Unanswered
from markovia.exponential import (
    Bernoulli,
    Beta,
    Exponential,
    Gaussian,
    GaussianKnownVariance,
    NormalGamma,
    Poisson,
)

LOGARITHMIC = ["thompson", "ucb", "bayes-ucb"]
WORLDS = {
    "bernoulli": (Beta(1, 1), [Bernoulli(p) for p in (0.3, 0.5, 0.4)]),
    "poisson": (Poisson.conjugate_prior(1.0, 0.5), [Poisson(m) for m in (1.0, 2.0, 1.5)]),
    "exponential": (Exponential.conjugate_prior(2.0, 1.0), [Exponential(1.0 / m) for m in (1.0, 2.0, 1.2)]),
    "normal": (
        GaussianKnownVariance.conjugate_prior(1.0, 0.0, 9.0),
        [Gaussian(m, 1.0) for m in (0.0, 1.0, 0.5)],
    ),
    "normal, unknown variance": (
        NormalGamma(0.0, 0.1, 1.0, 1.0),
        [Gaussian(m, 1.0) for m in (0.0, 1.0, 0.5)],
    ),
}


def lai_robbins(members):
    """Return the least slope of regret by log of time."""
    best = max(members, key=lambda m: m.mean)
    return sum((best.mean - m.mean) / m.kl(best) for m in members if m.mean < best.mean)


# -- regret --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", LOGARITHMIC)
def test_regret_of_coins_has_the_order_of_lai_and_robbins(rule):
    members = [Bernoulli(p) for p in (0.2, 0.6)]
    runs = [
        Bandit(Beta(1, 1), 2, rule=rule, seed=s).play(members, 1000, progress=False).regret for s in range(6)
    ]
    mean = np.mean(runs, axis=0)
    least = lai_robbins(members)
    grown = (mean[-1] - mean[99]) / np.log(10)  # the slope between 100 and 1000 pulls
    assert 0.2 * least < grown < 3.0 * least
    assert mean[-1] < 0.25 * 0.4 * 500  # far from linear


@pytest.mark.parametrize("rule", LOGARITHMIC)
@pytest.mark.parametrize("world", WORLDS)
def test_every_family_finds_its_best_arm_under_every_rule(world, rule):
    prior, members = WORLDS[world]
    history = Bandit(prior, 3, rule=rule, seed=1).play(members, 700, progress=False)
    assert history.counts.argmax() == int(np.argmax([m.mean for m in members]))
    assert history.regret[-1] < 12.0 * lai_robbins(members) + 15.0
    assert (np.diff(history.regret) >= -1e-12).all()


def test_epsilon_greedy_has_linear_regret_of_the_size_that_epsilon_says():
    members = [Bernoulli(0.1), Bernoulli(0.9)]
    runs = [
        Bandit(Beta(1, 1), 2, rule="epsilon-greedy", epsilon=0.2, seed=s)
        .play(members, 1000, progress=False)
        .regret
        for s in range(5)
    ]
    assert np.mean(runs, axis=0)[-1] == pytest.approx(0.2 * 0.5 * 0.8 * 1000, rel=0.2)


# -- the best there is: Gittins ------------------------------------------------------------------------------


def values_of_rule(discount, depth, choose):
    """Return the value of the game of two fresh coins, by a rule, or by dynamic programming; leaves are worth means."""

    @cache
    def value(state):
        a1, b1, a2, b2 = state
        if sum(state) - 4 == depth:
            return max(a1 / (a1 + b1), a2 / (a2 + b2)) / (1 - discount)
        worth = []
        for arm in (0, 1):
            a, b = state[2 * arm : 2 * arm + 2]
            p = a / (a + b)
            won, lost = list(state), list(state)
            won[2 * arm] += 1
            lost[2 * arm + 1] += 1
            worth.append((p, tuple(won), tuple(lost)))
        arms = (0, 1) if choose is None else (choose(state),)
        return max(
            p * (1 + discount * value(w)) + (1 - p) * discount * value(low)
            for p, w, low in (worth[i] for i in arms)
        )

    return value((1, 1, 1, 1))


def test_gittins_rule_is_worth_as_much_as_dynamic_programming_over_both_arms():
    discount, depth = 0.6, 14
    rule = ArmRule("gittins", discount)

    def chosen(state):
        priors = [Bernoulli.conjugate_prior(*state[:2]), Bernoulli.conjugate_prior(*state[2:])]
        return rule.choose(ConjugateArms(priors, [0, 1]), None, np.random.default_rng(0))

    best = values_of_rule(discount, depth, None)
    greedy = values_of_rule(discount, depth, lambda s: int(s[2] / (s[2] + s[3]) > s[0] / (s[0] + s[1])))
    assert best - greedy > 1e-3
    # what lies beyond the cut turns some choices near it
    assert 0.0 <= best - values_of_rule(discount, depth, chosen) < 1e-3 * (best - greedy)


def test_gittins_prefers_the_arm_of_the_larger_index_and_not_of_the_larger_mean():
    bandit = Bandit([Beta(55, 45), Beta(1, 1)], 2, rule="gittins", discount=0.9)
    assert gittins_index((55, 45), discount=0.9).value < gittins_index((1, 1), discount=0.9).value
    assert bandit.choose() == 1
    with pytest.raises(InvalidArgument, match="Beta priors"):
        Bandit(NormalGamma(), 2, rule="gittins", discount=0.9).choose()
    for wrong in ({"rule": "gittins"}, {"discount": 0.9}, {"rule": "gittins", "discount": 1.0}):
        with pytest.raises(InvalidArgument, match="discount="):
            Bandit(Beta(1, 1), 2, **wrong)


# -- indices against closed forms ----------------------------------------------------------------------------


def test_upper_bounds_solve_the_equation_of_the_divergence():
    rewards = {
        "bernoulli": [1, 0, 0, 1, 0],
        "poisson": [3, 0, 2],
        "exponential": [0.5, 2.0, 1.0],
        "normal": [0.3, -1.0],
    }
    for world, seen in rewards.items():
        prior, members = WORLDS[world]
        bandit = Bandit(prior, 2)
        for r in seen:
            bandit.update(0, r)
        bandit.update(1, seen[0])
        bound = bandit.arms.upper_bound(1.7, None)[0]
        family = type(members[0]) if world != "normal" else None
        at = {"bernoulli": Bernoulli, "poisson": Poisson}.get(world)
        if world == "exponential":
            kl = Exponential(1 / np.mean(seen)).kl(Exponential(1 / bound))
        elif family is None:
            kl = Gaussian(np.mean(seen), 1.0).kl(Gaussian(bound, 1.0))
        else:
            kl = at(np.mean(seen)).kl(at(bound))
        assert bound > np.mean(seen)
        assert len(seen) * kl == pytest.approx(1.7, rel=1e-6)


@pytest.mark.parametrize("world", WORLDS)
def test_quantiles_and_means_agree_with_many_draws_of_the_posterior(world):
    prior, members = WORLDS[world]
    bandit = Bandit(prior, 1, seed=0)
    bandit.play(members[1:2], 30, progress=False)
    rng = np.random.default_rng(3)
    draws = np.array([bandit.arms.draw(None, rng)[0] for _ in range(4000)])
    assert np.mean(draws <= bandit.arms.quantile(0.8, None)[0]) == pytest.approx(0.8, abs=0.03)
    assert draws.mean() == pytest.approx(bandit.arms.means(None)[0], rel=0.05, abs=0.02)


def test_posteriors_are_those_of_the_priors_themselves():
    history = Bandit(NormalGamma(1.0, 2.0, 3.0, 4.0), 2, seed=2).play(
        [Gaussian(5, 4), Gaussian(0, 1)], 40, progress=False
    )
    for arm in (0, 1):
        alone = NormalGamma(1.0, 2.0, 3.0, 4.0).posterior(history.rewards[history.arms == arm])
        found = history.posteriors[arm]
        assert (found.location, found.kappa, found.shape) == pytest.approx(
            (alone.location, alone.kappa, alone.shape)
        )
        assert found.rate == pytest.approx(alone.rate)


# -- units, ties, one arm, wrong values ----------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["thompson", "ucb", "bayes-ucb"])
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_other_units_choose_the_same_arms(rule, unit):
    rewards = np.random.default_rng(0).normal([[0.0, 1.0, 0.5]], 1.0, size=(120, 3))

    def arms(scale):
        steps = itertools.count()
        bandit = Bandit(
            GaussianKnownVariance.conjugate_prior(scale**2, 0.0, 4 * scale**2), 3, rule=rule, seed=4
        )
        return bandit.play(lambda arm: scale * rewards[next(steps), arm], 120, progress=False).arms

    assert (arms(1.0) == arms(unit)).all()


def test_one_arm_and_equal_arms_are_pulled_in_order():
    assert (
        Bandit(Beta(1, 1), ["only"]).play(lambda arm: 1, 5, means=[1.0], progress=False).regret.tolist()
        == [0.0] * 5
    )
    for rule in ("ucb", "bayes-ucb"):
        assert Bandit(Beta(1, 1), 4, rule=rule).choose() == 0
    # 0.1 + 0.2 and 0.3 are one number here
    bandit = Bandit(
        [GaussianKnownVariance.conjugate_prior(1.0, m) for m in (0.3, 0.1 + 0.2)], 2, rule="bayes-ucb"
    )
    assert bandit.choose() == 0


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), "much", None, [1, 0]])
def test_rewards_that_are_no_finite_number_are_refused_and_change_nothing(reward):
    bandit = Bandit(NormalGamma(), 2)
    with pytest.raises(InvalidArgument, match="a reward is one"):
        bandit.update(0, reward)
    assert bandit.arms.pulls.tolist() == [0, 0]


def test_rewards_outside_the_family_and_unknown_arms_are_refused():
    with pytest.raises(InvalidArgument, match="outside the support"):
        Bandit(Beta(1, 1), 2).update(0, 0.5)
    with pytest.raises(InvalidArgument, match="no arm 2"):
        Bandit(Beta(1, 1), 2).update(2, 1)
    for prior in (mk.distributions.Normal(0, 1), "beta", 3):
        with pytest.raises(InvalidArgument, match="a bandit needs"):
            Bandit(prior, 2)
    with pytest.raises(InvalidArgument, match="priors are given"):
        Bandit([Beta(1, 1)], 2)
    with pytest.raises(InvalidArgument, match="of one family"):
        Bandit([Beta(1, 1), NormalGamma()], 2)
    with pytest.raises(InvalidArgument, match="do not look at a context"):
        Bandit(Beta(1, 1), 2).choose([1.0])
    for arms in (0, [], ["a", "a"], "ab"):
        with pytest.raises(InvalidArgument, match="arms="):
            Bandit(Beta(1, 1), arms)


def test_regret_asks_for_means_that_nobody_said():
    history = Bandit(Beta(1, 1), 2).play(lambda arm: 1, 3, progress=False)
    with pytest.raises(Unanswered, match="means="):
        _ = history.regret
    with pytest.raises(InvalidArgument, match="means="):
        Bandit(Beta(1, 1), 2).play(lambda arm: 1, 3, means=[1.0], progress=False)


def test_a_time_limit_keeps_what_was_pulled():
    history = Bandit(Beta(1, 1), 2, seed=0).play(
        [Bernoulli(0.5), Bernoulli(0.6)], 10**7, time_limit=0.2, progress=False
    )
    assert history.reason == "time limit"
    assert len(history.arms) == len(history.rewards) == history.counts.sum() < 10**7
    assert "time limit" in str(history)


def test_play_goes_on_from_what_is_known():
    bandit = Bandit(Beta(1, 1), 2, seed=0)
    members = [Bernoulli(0.1), Bernoulli(0.9)]
    bandit.play(members, 200, progress=False)
    assert bandit.play(members, 100, progress=False).regret[-1] < 5
    assert bandit.arms.pulls.sum() == 300


@pytest.mark.slow
def test_a_second_process_pulls_the_same_arms():
    code = (
        "import markovia as mk\n"
        "from markovia.control.bandits import Bandit\n"
        "from markovia.exponential import Beta, Bernoulli\n"
        "h = Bandit(Beta(1, 1), 3, seed=7).play([Bernoulli(p) for p in (.3, .5, .6)], 60, progress=False)\n"
        "print(h.arms.tolist(), h.rewards.sum())"
    )
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(code, {})
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert other == here.getvalue() != ""


# -- contexts ------------------------------------------------------------------------------------------------


def linear_world(steps, seed=0):
    rng = np.random.default_rng(seed)
    contexts = np.column_stack([np.ones(steps), rng.uniform(-1, 1, steps)])
    slopes = np.array([[0.0, 1.0], [0.0, -1.0]])
    means = contexts @ slopes.T
    steps_ = iter(range(steps))
    noise = rng.normal(0, 0.1, steps)
    return contexts, means, lambda arm, row: float(slopes[arm] @ row + noise[next(steps_)])


@pytest.mark.parametrize("rule", ["thompson", "ucb", "bayes-ucb"])
def test_a_linear_model_learns_which_arm_suits_which_context(rule):
    contexts, means, world = linear_world(150)
    model = mk.regression.LinearRegression(fit_intercept=False, l2=0.01)
    history = Bandit(model, 2, rule=rule, seed=0).play(
        world, 150, contexts=contexts, means=means, progress=False
    )
    late = np.diff(history.regret)[60:]
    assert late.mean() < 0.1 * np.abs(means[:, 0] - means[:, 1]).mean() / 2  # of what a blind choice loses


def test_a_gaussian_process_with_a_dot_product_is_bayesian_linear_regression():
    k = mk.covariances
    contexts = np.array([[1.0, 0.5], [1.0, -0.5], [1.0, 2.0]])
    rewards = np.array([1.0, 0.2, 2.9])
    bandit = Bandit(mk.GaussianProcess(k.Linear(variance=1.0) + k.White(0.04), mean=0.0), 2, seed=0)
    for row, r in zip(contexts, rewards, strict=True):
        bandit.update(0, r, context=row)
        bandit.update(1, -r, context=row)
    precision = np.eye(2) + contexts.T @ contexts / 0.04
    mean = np.linalg.solve(precision, contexts.T @ rewards / 0.04)
    row = np.array([1.0, 1.0])
    deviation = np.sqrt(row @ np.linalg.solve(precision, row))
    assert bandit.arms.means(row) == pytest.approx([mean @ row, -mean @ row], rel=1e-5)
    assert bandit.arms.quantile(0.975, row)[0] == pytest.approx(mean @ row + 1.959964 * deviation, rel=1e-5)


def test_laplace_and_bootstrap_models_learn_clicks():
    sklearn = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(1)
    contexts = np.column_stack([np.ones(220), rng.choice([-2.0, 2.0], 220)])
    means = np.column_stack([np.where(contexts[:, 1] > 0, 0.9, 0.1), np.where(contexts[:, 1] > 0, 0.1, 0.9)])
    for model in (
        mk.regression.GLM(family="binomial", l2=1.0, fit_intercept=False),
        sklearn.DecisionTreeClassifier(max_depth=2),
    ):
        draws, at = rng.random(220), itertools.count()

        def click(arm, row, draws=draws, at=at):
            i = next(at)
            return int(draws[i] < means[i, arm])

        history = Bandit(model, 2, rule="thompson", refit=10, seed=0).play(
            click, 220, contexts=contexts, means=means, progress=False
        )
        assert np.diff(history.regret)[120:].mean() < 0.15 * 0.8


def test_contexts_are_checked():
    bandit = Bandit(mk.regression.LinearRegression(l2=1.0), 2)
    for wrong in ([np.nan], [[1.0]], "a", []):
        with pytest.raises(InvalidArgument, match="context="):
            bandit.choose(wrong)
    bandit.choose([1.0, 2.0])
    with pytest.raises(InvalidArgument, match="2 before, 1 now"):
        bandit.choose([1.0])
    with pytest.raises(InvalidArgument, match="give context="):
        bandit.choose()
    with pytest.raises(InvalidArgument, match="for 3 pulls"):
        bandit.play(lambda arm, row: 0.0, 3, contexts=[[1.0, 2.0]], progress=False)
    with pytest.raises(InvalidArgument, match="one number"):
        Bandit(mk.regression.SoftmaxRegression(), 2)


def test_a_gymnasium_environment_is_played():
    gymnasium = pytest.importorskip("gymnasium")

    class Slots(gymnasium.Env):
        action_space, observation_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Box(-1, 1, (1,))

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.at = 0
            return np.zeros(1), {}

        def step(self, action):
            self.at += 1
            return np.zeros(1), float(self.np_random.random() < (0.2, 0.8)[action]), False, self.at == 7, {}

    first, second = (Bandit(Beta(1, 1), 2, seed=5).play(Slots(), 150, progress=False) for _ in range(2))
    assert first.counts.argmax() == 1
    assert (first.arms == second.arms).all()
