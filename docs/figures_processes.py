"""Pictures of the page on dynamic networks; everything is drawn from fixed seeds while the pages are built."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk

FIRST, SECOND = "#1f6f8b", "#d1603d"


def machine() -> mk.DynamicBayesianNetwork:
    """Return a machine whose bearing wears while its load comes and goes; as in `guide/dynamic_networks.md`."""
    process = mk.DynamicBayesianNetwork()
    process.add(
        "load", states=["low", "high"], parents=["load@-1"], p=[[0.9, 0.1], [0.2, 0.8]], initial=[0.7, 0.3]
    )
    process.add(
        "bearing",
        states=["good", "worn"],
        parents=["bearing@-1", "load"],
        p=[[[0.99, 0.01], [0.93, 0.07]], [[0, 1], [0, 1]]],
        initial=[[0.98, 0.02], [0.98, 0.02]],
    )
    process.add(
        "hot", states=["no", "yes"], parents=["load", "bearing"],
        p=[[[0.95, 0.05], [0.7, 0.3]], [[0.6, 0.4], [0.15, 0.85]]],
    )  # fmt: skip
    process.add("noise", states=["no", "yes"], parents=["bearing"], p=[[0.9, 0.1], [0.4, 0.6]])
    return process


def dynamic_network() -> Any:
    """Show two steps of the machine, and what is believed about its bearing over time, with and without hindsight."""
    process = machine()
    drawn = process.sample(1, steps=60, seed=2).iloc[0]
    truth = np.array([drawn[f"bearing@{t}"] == "worn" for t in range(60)])
    seen = {n: [drawn[f"{n}@{t}"] for t in range(60)] for n in ("hot", "noise")}
    seen["noise"][16:22] = [None] * 6
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.4, 3.6), layout="constrained", width_ratios=(1, 1.7)
    )
    process.plot(2, ax=left, title="two steps")
    right.fill_between(range(60), 0, 1, where=truth, step="mid", color="0.9", label="worn in truth")
    for found, colour, name in (
        (process.filter(seen), FIRST, "filtered: up to this step"),
        (process.smooth(seen), SECOND, "smoothed: all steps"),
    ):
        right.plot(found["bearing"][0][:, 1], color=colour, label=name)
    right.set(xlabel="step", ylabel="p(bearing is worn)", ylim=(0, 1), xlim=(0, 59))
    right.legend(loc="upper left")
    return figure


def hidden_regimes() -> Any:
    """Show a series of two regimes, and what an HMM and a model with explicit durations believe about them."""
    truth = mk.series.HiddenSemiMarkov(
        2,
        emission="gaussian",
        start=[1, 0],
        transition=[[0, 1], [1, 0]],
        max_duration=80,
        duration_params={"rates": [40.0, 20.0]},
        emission_params={"means": [[0.3], [-0.5]], "covariances": [[[0.3]], [[2.0]]]},
    )
    (series,), (states,) = truth.sample(300, 1, seed=4)
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 4.6), sharex=True, height_ratios=(3, 2))
    top.plot(series[:, 0], color="0.35", linewidth=0.8)
    low, high = float(series.min()), float(series.max())
    top.fill_between(range(300), low, high, where=states == 1, step="mid", color="0.9", label="wild in truth")
    top.set(ylabel="series", ylim=(low, high), xlim=(0, 299))
    top.legend(loc="upper left")
    models = (
        (mk.HMM(2, emission="gaussian", random_state=0), FIRST, "HMM"),
        (
            mk.series.HiddenSemiMarkov(2, emission="gaussian", max_duration=80, random_state=0),
            SECOND,
            "HiddenSemiMarkov",
        ),
    )
    for model, colour, name in models:
        wild = int(np.argmax(model.fit(series).covars_[:, 0, 0]))
        bottom.plot(model.smooth(series)[0][:, wild], color=colour, label=name)
    bottom.set(xlabel="step", ylabel="p(wild | series)", ylim=(-0.02, 1.02))
    bottom.legend(loc="upper left")
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (dynamic_network, hidden_regimes)
