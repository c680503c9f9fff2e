"""The pictures of the page on functions inside larger networks."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk
import markovia.distributions as dist
from markovia.plotting import style

k = mk.covariances
ACCENT = "#c0392b"
WAVES = "#1f6f8b"


def _seen_twice() -> Any:
    """Return a network of a trend and a wave, and two plates of rows that tell of them."""
    m = mk.BayesianNetwork()
    m.add("length", dist.LogNormal(1, 0.5))
    m.add("trend", lambda length: mk.GP(2.0 * k.RBF(length)))
    m.add("wave", mk.GP(k.Periodic(length=1.0, period=1.0)))
    m.add("t", mk.Input(), plate="row")
    m.add("a", lambda trend, wave, t: dist.Normal(trend(t) + wave(t), 0.3), plate="row")
    m.add("u", mk.Input(), plate="station")
    m.add("b", lambda trend, u: dist.Normal(2 * trend(u) - 1, 0.5), plate="station")
    return m


def function_node() -> Any:
    """Show a network with two functions, and one function seen by values and by slopes."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.4, 3.6), layout="constrained", width_ratios=(1, 1.35)
    )
    _seen_twice().plot(ax=left)
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(k.RBF(length=1.0)))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.05), plate="row")
    m.add("slope", lambda f, top: dist.Normal(f.grad(top), 0.05), plate="touch")
    seen = {"x": np.array([0.0, 2.0]), "y": np.array([0.0, 0.4]), "top": np.array([0.8, 3.6])}
    touched = {"slope": np.array([0.0, -0.8])}
    there = np.linspace(-0.7, 4.7, 300)
    for given, colour, name in (
        (seen, "0.65", "values alone"),
        ({**seen, **touched}, WAVES, "values and slopes"),
    ):
        found = m.query("f", given=given).at(there)
        low, high = found.interval(0.9)
        right.fill_between(there, low, high, color=colour, alpha=0.25, linewidth=0)
        right.plot(there, found.mean(), color=colour, label=name)
    values = m.query("f", given={**seen, **touched}).at(seen["top"]).mean()
    for x, y, slope in zip(seen["top"], values, touched["slope"], strict=True):
        right.plot([x - 0.35, x + 0.35], [y - 0.35 * slope, y + 0.35 * slope], color=ACCENT, linewidth=2.2)
    right.plot(seen["x"], seen["y"], "o", color=style.INK)
    right.set(xlabel="x", ylabel="f")
    right.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False, fontsize=8)
    return figure


def function_hyper_parameters() -> Any:
    """Show what is known of the length, and the function at the best length and averaged over all of them."""
    rng = np.random.default_rng(4)
    x = np.array([0.2, 0.6, 1.0, 2.4, 2.7, 4.6])
    y = np.sin(1.6 * x) + 0.1 * rng.normal(size=len(x))
    m = mk.BayesianNetwork()
    m.add("length", dist.LogNormal(0, 0.8))
    m.add("f", lambda length: mk.GP(k.RBF(length)))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.15), plate="row")
    post = m.query("length", given={"x": x, "y": y}, engine=mk.engines.NUTS(seed=0, progress=False))
    best = m.map(given={"x": x, "y": y})
    there = np.linspace(-1.0, 6.5, 300)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.2), layout="constrained", width_ratios=(1, 2))
    left.hist(np.ravel(post.draws["length"]), bins=60, range=(0.0, 4.0), density=True, color=WAVES, alpha=0.6)
    left.axvline(best["length"], color=ACCENT, linewidth=1.4)
    left.set(xlabel="length", ylabel="density")
    for found, colour, name in (
        (post.at("f", there), WAVES, "averaged over lengths"),
        (best["f"].at(there), ACCENT, "best length"),
    ):
        low, high = found.interval(0.9)
        right.fill_between(there, low, high, color=colour, alpha=0.15, linewidth=0)
        right.plot(there, low, there, high, color=colour, linewidth=0.6)
        right.plot(there, found.mean(), color=colour, linewidth=1.4, label=name)
    right.plot(x, y, "o", color=style.INK)
    right.set(xlabel="x", ylabel="f")
    right.legend(frameon=False, fontsize=8)
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    return figure


FIGURES: list[Callable[[], Any]] = [function_node, function_hyper_parameters]
