"""Pictures of the pages on learning from trial and on records of other policies; drawn while the pages are built."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import markovia as mk

FIRST, SECOND, THIRD, FOURTH = "#1f6f8b", "#d1603d", "#8a9a5b", "#6b4e8e"


def river(n: int) -> mk.MDP:
    """Return a river of n places with a small reward at the near bank and a large one at the far bank."""
    left, right = 0.9 * np.eye(n, k=-1) + 0.1 * np.eye(n), 0.9 * np.eye(n, k=1) + 0.1 * np.eye(n)
    left[0, 0] = right[-1, -1] = 1
    pay = np.zeros((2, n, n))
    pay[0, 0, 0], pay[1, n - 2, n - 1] = 0.02, 1
    return mk.MDP([left, right], pay, actions=["left", "right"], initial=0, terminal=[n - 1])


def learning_curves() -> Any:
    """Show how the mean return of episodes grows with steps in the world, for a model and two networks."""
    figure, ax = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
    told = {"horizon": 40, "discount": 0.9, "seed": 0}
    runs = (
        ("posterior-sampling", FIRST, {"steps": 10_000, "reward_size": 1.0}),
        ("deep-q", SECOND, {"steps": 10_000, "warm_up": 300, "hidden": 16}),
        ("actor-critic", THIRD, {"steps": 10_000}),
    )
    for method, colour, settings in runs:
        history = mk.control.learn(river(10), method, **told, **settings).history
        ends, returns = np.array(history.episode_ends), np.array(history.episode_returns)
        smooth = pd.Series(returns).rolling(30, min_periods=5).mean()
        ax.plot(ends, smooth, color=colour, label=method)
    ax.set(xlabel="steps in the world", ylabel="return, mean of 30 episodes")
    ax.legend(frameon=False, loc="lower right")
    return figure


def bandit_regret() -> Any:
    """Show the regret of four rules for three coins, and what an arm is worth beyond its mean when little is known."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.6), layout="constrained")
    coins = [mk.exponential.Bernoulli(p) for p in (0.2, 0.5, 0.6)]
    rules = ("thompson", "bayes-ucb", "ucb", "epsilon-greedy")
    for rule, colour in zip(rules, (FIRST, THIRD, FOURTH, SECOND), strict=True):
        regrets = [
            mk.control.Bandit(mk.exponential.Beta(1, 1), arms=3, rule=rule, seed=s).play(coins, 1000).regret
            for s in range(12)
        ]
        left.plot(np.mean(regrets, axis=0), color=colour, label=rule)
    left.set(xlabel="pull", ylabel="regret, mean of 12 runs", title="coins of 0.2, 0.5 and 0.6")
    left.legend(frameon=False)
    pulls = [2, 4, 8, 16, 32, 64]
    for discount, colour in ((0.5, THIRD), (0.9, FIRST), (0.97, SECOND)):
        worth = [
            float(mk.control.gittins_index((k / 2, k / 2), discount=discount, tolerance=1e-4)) for k in pulls
        ]
        right.plot(pulls, worth, "o-", color=colour, label=f"discount {discount}")
    right.axhline(0.5, color="0.7", linewidth=0.8)
    right.set(
        xscale="log", xlabel="pulls, half of them with success (the prior's two too)", ylabel="Gittins index",
        title="an arm with mean 0.5", xticks=pulls, xticklabels=pulls,
    )  # fmt: skip
    right.minorticks_off()
    right.legend(frameon=False)
    return figure


def clinic() -> mk.BayesianNetwork:
    """Return a clinic that gives a first and a second drug, with the gain as a utility."""
    bn = mk.BayesianNetwork()
    bn.add("severe", [0.6, 0.4], states=["no", "yes"])
    bn.add("first", [[0.8, 0.2], [0.3, 0.7]], states=["mild", "strong"], parents=["severe"])
    better = [[[0.35, 0.65], [0.3, 0.7]], [[0.8, 0.2], [0.3, 0.7]]]
    bn.add("better", better, states=["no", "yes"], parents=["severe", "first"])
    bn.add("second", [[0.3, 0.7], [0.8, 0.2]], states=["mild", "strong"], parents=["better"])

    def well(severe: str, first: str, better: str, second: str) -> list[float]:
        p = (0.8 if better == "yes" else 0.4) - 0.1 * (severe == "yes")
        if second == "strong":
            p += 0.3 if (first, better) == ("mild", "no") else -0.1
        return [1 - p, p]

    bn.add("well", well, states=["no", "yes"])
    bn.add("gain", mk.Utility([0, 1]), parents=["well"])
    return bn


LOGGED = {
    "first": lambda severe: {"mild": 0.8, "strong": 0.2} if severe == "no" else {"mild": 0.3, "strong": 0.7},
    "second": lambda better: {"mild": 0.3, "strong": 0.7} if better == "no" else {"mild": 0.8, "strong": 0.2},
}
RULE = {
    "first": lambda severe: "strong" if severe == "yes" else "mild",
    "second": lambda first, better: "strong" if (first, better) == ("mild", "no") else "mild",
}


def rules_in_records() -> Any:
    """Show estimates of one rule by several methods beside the truth, and the effective rows of rules further away."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.6), layout="constrained")
    bn = clinic()
    rows = bn.sample(600, seed=1)
    truth = bn.free({"first": ["severe"], "second": ["first", "better"]}).expected_utility(RULE)
    methods = ("doubly robust", "fitted Q", "weighted", "importance")
    for i, method in enumerate(methods):
        found = mk.control.evaluate(RULE, rows, bn, method=method, behaviour=LOGGED)
        low, high = found.interval
        left.plot([low, high], [i, i], color=FIRST, linewidth=2)
        left.plot(found.value, i, "o", color=FIRST)
    left.axvline(truth, color=SECOND, linestyle=":", label="truth")
    gained = float((rows["well"] == "yes").mean())
    left.axvline(gained, color="0.6", linestyle=":", label="as it was")
    left.set_yticks(range(len(methods)), methods)
    left.set_ylim(4.4, -0.5)
    left.set(xlabel="share that gets well", title="one rule, 600 rows")
    left.legend(frameon=False, loc="lower center", ncols=2)
    amounts = np.linspace(0, 1, 21)
    effective: dict[str, list[float]] = {"first": [], "second": []}
    for amount in amounts:
        found = mk.control.evaluate(_nearer(amount), rows, bn, behaviour=LOGGED)
        for stage in found.overlap:
            effective[stage.name].append(stage.effective)
    for (name, values), colour in zip(effective.items(), (THIRD, FIRST), strict=True):
        right.plot(amounts, values, color=colour, label=f"after the {name} drug")
    right.set(
        xlabel="from the records' own rule (0) to strong drugs always (1)", ylabel="effective rows",
        title="what is left of 600 rows", ylim=(0, None),
    )  # fmt: skip
    right.legend(frameon=False)
    return figure


def _nearer(amount: float) -> dict[str, Callable[..., dict[str, float]]]:
    """Return the records' own rule, mixed with strong drugs."""

    def mixed(law: dict[str, float]) -> dict[str, float]:
        strong = (1 - amount) * law["strong"] + amount
        return {"mild": 1 - strong, "strong": strong}

    return {
        "first": lambda severe: mixed(LOGGED["first"](severe)),
        "second": lambda better: mixed(LOGGED["second"](better)),
    }


def policy_tree() -> Any:
    """Show patients by age and weight, which dose is best for them, and the rule that a tree learned from records."""
    rng = np.random.default_rng(0)
    age, weight = rng.uniform(20, 80, 2000), rng.normal(75, 12, 2000)
    dose = np.where(rng.random(2000) < 0.3 + 0.4 * (age > 50), "high", "low")
    helps = np.where((age < 45) & (weight > 70), 4, -3)
    days = 20 - 0.1 * age + np.where(dose == "high", helps, 0) + rng.normal(0, 3, 2000)
    frame = pd.DataFrame({"age": age, "weight": weight, "dose": dose, "days": days})
    regime = mk.control.learn_regime(frame, stages={"dose": ["age", "weight"]}, reward="days", method="tree")
    figure, ax = plt.subplots(figsize=(6.6, 4.0), layout="constrained")
    grid = np.meshgrid(np.linspace(20, 80, 241), np.linspace(40, 112, 289))
    asked = pd.DataFrame({"age": grid[0].ravel(), "weight": grid[1].ravel()})
    high = np.array([a == "high" for a in regime.actions("dose", asked)]).reshape(grid[0].shape)
    ax.contourf(*grid, high, levels=[-0.5, 0.5, 1.5], colors=["#f4f1ea", "#f3d3c6"])
    shown = slice(0, 500)
    for wanted, colour, name in ((True, SECOND, "high is best"), (False, FIRST, "low is best")):
        these = (helps[shown] > 0) == wanted
        ax.plot(age[shown][these], weight[shown][these], ".", color=colour, markersize=4, label=name)
    ax.set(xlabel="age", ylabel="weight", title="shaded: the learned rule says high", ylim=(40, 112))
    ax.legend(frameon=True, loc="upper right")
    return figure


FIGURES: list[Callable[[], Any]] = [learning_curves, bandit_regret, rules_in_records, policy_tree]
